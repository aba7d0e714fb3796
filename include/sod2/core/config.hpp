// Compiler and build switches. No other header tests a compiler macro.
#pragma once

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define SOD2_HAS_EXCEPTIONS 1
#else
#define SOD2_HAS_EXCEPTIONS 0
#endif

// A broken precondition is a bug of the caller, never of a model: it traps instead of returning an
// error. Users may define their own before including the library.
#ifndef SOD2_ASSERT
#define SOD2_ASSERT(condition) ((condition) ? static_cast<void>(0) : __builtin_trap())
#endif

#define SOD2_ALWAYS_INLINE [[gnu::always_inline]] inline
#define SOD2_NOINLINE [[gnu::noinline]]
#define SOD2_RESTRICT __restrict

// Heavy functions are defined in their headers, or, where SOD2_INSTANTIATED is defined for every unit
// of a program, once: in the unit that includes sod2/instantiate.hpp. That unit takes most of the
// compile time away from the others.
#ifdef SOD2_INSTANTIATED
#define SOD2_HEAVY
#else
#define SOD2_HEAVY inline
#endif
