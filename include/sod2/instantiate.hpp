// The opt-in header: include it in exactly ONE translation unit of a program. It instantiates the
// heavy code (kernels for every instruction set) and defines the standard tables.
#pragma once

#include <sod2/kernel/std/instantiate.hpp>
#include <sod2/op/std/instantiate.hpp>
