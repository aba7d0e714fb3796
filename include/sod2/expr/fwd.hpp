// Declarations of expr/.
#pragma once

#include <cstdint>

namespace sod2 {
struct dim;
struct interval;
struct symbol_facts;
class dim_context;
class size_program;
}  // namespace sod2
