#include <doctest/doctest.h>

#include <sod2/schedule.hpp>

#include "problems.hpp"

using namespace sod2;

TEST_CASE("live ranges follow the order, inputs and outputs are pinned") {
  order_problem p;
  p.values.resize(5);
  p.values[0].is_input = true;   // read by node 0
  p.values[2].is_output = true;  // made by node 1
  p.values[3].is_input = true;   // nobody reads it
  p.nodes.resize(3);
  p.nodes[0].inputs.push_back(0);
  p.nodes[0].outputs.push_back(1);
  p.nodes[1].inputs.push_back(1);
  p.nodes[1].outputs.push_back(2);
  p.nodes[2].inputs.push_back(1);
  p.nodes[2].outputs.push_back(4);
  const std::uint32_t order[] = {0, 1, 2};
  const vector<live_range> ranges = live_ranges(p, order);
  const auto is = [&](std::size_t i, std::int64_t lower, std::int64_t upper) {
    return ranges[i].lower == lower && ranges[i].upper == upper;
  };
  CHECK(is(0, 0, 1));
  CHECK(is(1, 0, 3));
  CHECK(is(2, 1, 3));
  CHECK(ranges[3].empty());
  CHECK(is(4, 2, 3));
  p.values[0].alias_class = p.values[4].alias_class = 9;
  CHECK(live_ranges(p, order)[0].upper == 3);
  CHECK(live_ranges(p, order)[4].lower == 0);
}

TEST_CASE("the most bytes live at one step are the peak of the order") {
  problems::random r(31);
  for (int round = 0; round < 200; ++round) {
    // Without workspace and in-place effects the two models agree.
    order_problem p = problems::make(r, 1 + r(40), {round % 2 == 0, false, false, false});
    for (order_node& node : p.nodes) node.workspace = 0;
    const order_plan plan = order_greedy(p);
    const vector<live_range> ranges = live_ranges(p, plan.order.view());
    std::int64_t most = 0;
    for (std::size_t step = 0; step < p.nodes.size(); ++step) {
      std::int64_t live = 0;
      vector<std::int64_t> by_class(4, 0);
      for (std::size_t i = 0; i < p.values.size(); ++i) {
        if (p.values[i].alias_class != 0) {  // the class takes the largest of its members
          auto& most_of_class = by_class[p.values[i].alias_class];
          const auto now = static_cast<std::int64_t>(step);
          if (ranges[i].lower <= now && now < ranges[i].upper)
            most_of_class = std::max(most_of_class, p.values[i].bytes);
        } else if (ranges[i].lower <= static_cast<std::int64_t>(step) &&
                   static_cast<std::int64_t>(step) < ranges[i].upper) {
          live += p.values[i].bytes;
        }
      }
      for (const std::int64_t bytes : by_class) live += bytes;
      most = std::max(most, live);
    }
    CHECK(most == plan.peak_bytes);
  }
}
