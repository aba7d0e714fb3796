// Forward declarations of schedule/.
#pragma once

namespace sod2 {

struct order_value;
struct order_node;
struct order_problem;
struct order_plan;
struct live_range;

}  // namespace sod2
