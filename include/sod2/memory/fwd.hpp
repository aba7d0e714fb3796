// Forward declarations of memory/.
#pragma once

namespace sod2 {

struct buffer;
struct placement_problem;
struct placement_plan;
enum class placement_algorithm : unsigned char;
struct symbolic_buffer;
struct symbolic_placement;

}  // namespace sod2
