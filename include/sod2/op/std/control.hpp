// Control flow. What flows through the sub-graphs is the solver's work (rdp); here stands only what
// the operators are.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops {

namespace detail {
struct with_subgraphs {
  template <class C>
  static status forward(C&) {
    return {};
  }
};
}  // namespace detail

/// If-1, 11, 13, 16, 19, 21, 23, 24, 25: outputs are the meet of both branches' outputs.
struct if_ : detail::with_subgraphs {
  static constexpr int since[] = {1, 11, 13, 16, 19, 21, 23, 24, 25};
  static constexpr op_info info{.name = "If",
                                .versions = since,
                                .base = dynamism::edo,
                                .map = mapping::barrier,
                                .outputs = {1, many}};
};
/// Loop-1, 11, 13, 16, 19, 21, 23, 24, 25: inputs M, cond, carried values; outputs the last carried
/// values, then the scanned ones with the trip count in front.
struct loop : detail::with_subgraphs {
  static constexpr int since[] = {1, 11, 13, 16, 19, 21, 23, 24, 25};
  static constexpr op_info info{.name = "Loop",
                                .versions = since,
                                .base = dynamism::edo,
                                .map = mapping::barrier,
                                .inputs = {2, many},
                                .outputs = {1, many}};
};
/// Scan-8 (with a batch axis), 9, 11, 16, 19, 21, 23, 24, 25: the trip count is a dim.
struct scan : detail::with_subgraphs {
  static constexpr int since[] = {8, 9, 11, 16, 19, 21, 23, 24, 25};
  static constexpr op_info info{.name = "Scan",
                                .versions = since,
                                .map = mapping::barrier,
                                .inputs = {1, many},
                                .outputs = {1, many}};
};
/// SequenceMap-17: sequences of the input's length.
struct sequence_map : detail::with_subgraphs {
  static constexpr int since[] = {17};
  static constexpr op_info info{.name = "SequenceMap",
                                .versions = since,
                                .map = mapping::barrier,
                                .inputs = {1, many},
                                .outputs = {1, many}};
};

using control_ops = op_set<if_, loop, scan, sequence_map>;

}  // namespace sod2::ops
