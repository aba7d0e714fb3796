// Compiles the microkernels for every instruction set and picks one. Part of sod2/instantiate.hpp:
// foreach_target works once per translation unit.
#pragma once

#include <cstddef>

// Only the code generator of Highway is used: its checks in debug builds would call into its
// library. SSSE3 and the newest AVX-512 variants add code but no speed here.
#ifndef HWY_IS_DEBUG_BUILD
#define HWY_IS_DEBUG_BUILD 0
#endif
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sod2/kernel/simd/kernels-inl.hpp"
#include <hwy/foreach_target.h>

#include <sod2/kernel/simd/kernels-inl.hpp>

#include <sod2/kernel/table.hpp>

namespace sod2::kernel_detail {

#if HWY_ARCH_X86
inline bool cpu_has_sse4() {
  return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0 &&
         __builtin_cpu_supports("aes") != 0;
}
inline bool cpu_has_avx2() {
  return cpu_has_sse4() && __builtin_cpu_supports("avx2") != 0 &&
         __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("bmi2") != 0;  // every such CPU has f16c
}
inline bool cpu_has_avx512() {
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512cd") != 0;
}
#endif

/// The microkernels for a target; null when it is not built in or this CPU cannot run it.
inline const simd_table* simd_for(simd_target target) {
#if HWY_ARCH_X86
#if HWY_TARGETS & HWY_AVX3
  if ((target == simd_target::best || target == simd_target::avx512) && cpu_has_avx512()) {
    static const simd_table table = N_AVX3::make_table("avx512");
    return &table;
  }
#endif
#if HWY_TARGETS & HWY_AVX2
  if ((target == simd_target::best || target == simd_target::avx2) && cpu_has_avx2()) {
    static const simd_table table = N_AVX2::make_table("avx2");
    return &table;
  }
#endif
#if HWY_TARGETS & HWY_SSE4
  if ((target == simd_target::best || target == simd_target::sse4) && cpu_has_sse4()) {
    static const simd_table table = N_SSE4::make_table("sse4");
    return &table;
  }
#endif
#endif
#if HWY_ARCH_ARM
  constexpr simd_target own = simd_target::neon;
#else
  constexpr simd_target own = simd_target::baseline;
#endif
  if (target == simd_target::best || target == simd_target::baseline || target == own) {
    static const simd_table table =
        HWY_NAMESPACE::make_table(own == simd_target::neon ? "neon" : "baseline");
    return &table;
  }
  return nullptr;
}

inline const simd_table& best_simd() {
  static const simd_table* const best = simd_for(simd_target::best);
  return *best;
}
inline const simd_table& simd_of(const simd_table* asked) {
  return asked != nullptr ? *asked : best_simd();
}

}  // namespace sod2::kernel_detail
