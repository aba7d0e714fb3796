// Placement by one pass over the buffers in a fixed order. Microseconds, no guarantee.
#pragma once

#include <sod2/memory/detail/fit.hpp>
#include <sod2/memory/detail/instance.hpp>
#include <sod2/memory/detail/orders.hpp>
#include <sod2/memory/problem.hpp>

namespace sod2 {

namespace detail {
inline placement_plan place_once(const placement_problem& p, order_key key, fit_rule rule) {
  const placement_instance in = prepare(p);
  fit_scratch s;
  place_all(in, make_order(in, key).view(), rule, INT64_MAX, s);
  return make_plan(p, in, s.offsets.view(), in.bound);
}
}  // namespace detail

// All planners require a problem that `validate` accepts; they return a plan even above the
// capacity (then `feasible` is false), except that `place_exact` searches below it only.

/// Best fit in execution order: the baseline of the paper (its "greedy", 1.16x in section 5).
inline placement_plan place_greedy(const placement_problem& p) {
  return detail::place_once(p, detail::order_key::start, detail::fit_rule::best);
}

/// Buffers live at the fullest step first, then those of the next fullest and so on, the largest in
/// bytes times steps first (SoD2, dynamic memory planning; the paper sweeps outwards in time, which
/// does worse on real models).
inline placement_plan place_peak_first(const placement_problem& p) {
  return detail::place_once(p, detail::order_key::peak, detail::fit_rule::first);
}

/// Largest first (Pisarchyk and Lee 2020, "greedy by size for offset calculation").
inline placement_plan place_by_size(const placement_problem& p) {
  return detail::place_once(p, detail::order_key::size, detail::fit_rule::best);
}

/// Steps by live bytes, the buffers of a step by size (Pisarchyk and Lee 2020, "greedy by
/// breadth").
inline placement_plan place_by_breadth(const placement_problem& p) {
  return detail::place_once(p, detail::order_key::breadth, detail::fit_rule::best);
}

}  // namespace sod2
