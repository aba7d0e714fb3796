// The opt-in header: include it in exactly ONE translation unit of a program. It instantiates the
// heavy code (kernels for every instruction set) and defines the standard tables. Where all units of
// the program define SOD2_INSTANTIATED, it defines analysis, compilation and sessions as well.
#pragma once

#include <sod2/kernel/std/instantiate.hpp>
#include <sod2/op/std/instantiate.hpp>
#include <sod2/rdp/detail/transfer.hpp>
#include <sod2/runtime/detail/compiler.hpp>
#include <sod2/runtime/detail/session.hpp>
