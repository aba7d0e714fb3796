// Forward declarations of memory/.
#pragma once

namespace sod2 {

struct buffer;
struct placement_problem;
struct placement_plan;

struct layout_formula;
class symbolic_layout;
class symbolic_layout_planner;

}  // namespace sod2
