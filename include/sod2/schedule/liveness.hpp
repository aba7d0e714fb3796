// From an order to live ranges: what the placement of values in memory starts from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/schedule/problem.hpp>

namespace sod2 {

/// Half-open range of steps; step s is the s-th node of the order. Values that nothing touches and
/// that are no output have lower == upper.
struct live_range {
  std::int64_t lower = 0;
  std::int64_t upper = 0;

  constexpr bool empty() const { return lower == upper; }
};

/// The live range of every value in an order that `validate` accepts. Inputs live from step 0,
/// outputs to the last step's end (at least one step, also without nodes). Values of one alias
/// class get the union of their ranges, since they share memory. A value that a node only writes
/// lives for that step.
inline vector<live_range> live_ranges(const order_problem& p,
                                      std::span<const std::uint32_t> order) {
  const auto steps = static_cast<std::int64_t>(order.size() == 0 ? 1 : order.size());
  vector<live_range> ranges(p.values.size());
  const auto join = [](live_range& r, std::int64_t lower, std::int64_t upper) {
    if (r.empty()) {
      r = {lower, upper};
      return;
    }
    if (lower < r.lower) r.lower = lower;
    if (upper > r.upper) r.upper = upper;
  };
  for (std::size_t s = 0; s < order.size(); ++s) {
    const order_node& node = p.nodes[order[s]];
    const auto step = static_cast<std::int64_t>(s);
    for (std::uint32_t x : node.inputs) join(ranges[x], step, step + 1);
    for (std::uint32_t x : node.outputs) join(ranges[x], step, step + 1);
  }
  for (std::size_t i = 0; i < p.values.size(); ++i) {
    if (p.values[i].is_output) join(ranges[i], steps - 1, steps);
    if (p.values[i].is_input && !ranges[i].empty()) ranges[i].lower = 0;
  }
  // Class numbers are the caller's and may be sparse.
  vector<live_range> shared;
  vector<std::uint32_t> names;
  const auto slot_of = [&](std::uint32_t name) {
    std::size_t low = 0, high = names.size();
    while (low < high) {
      const std::size_t mid = (low + high) / 2;
      if (names[mid] < name)
        low = mid + 1;
      else
        high = mid;
    }
    return low;
  };
  for (const order_value& x : p.values) {
    if (x.alias_class == 0) continue;
    names.push_back(x.alias_class);
  }
  stable_sort(names.begin(), names.end(), [](std::uint32_t a, std::uint32_t b) { return a < b; });
  shared.resize(names.size());
  for (std::size_t i = 0; i < p.values.size(); ++i)
    if (p.values[i].alias_class != 0 && !ranges[i].empty())
      join(shared[slot_of(p.values[i].alias_class)], ranges[i].lower, ranges[i].upper);
  for (std::size_t i = 0; i < p.values.size(); ++i)
    if (p.values[i].alias_class != 0) ranges[i] = shared[slot_of(p.values[i].alias_class)];
  return ranges;
}

}  // namespace sod2
