// The order problem and its plan: plain data.
#pragma once

#include <cstdint>

#include <sod2/core/guard.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/schedule/fwd.hpp>

namespace sod2 {

/// A tensor. Values of one alias class (not 0) share memory: as many bytes as the largest of them,
/// live from the first node that touches any of them to the last.
struct order_value {
  std::int64_t bytes = 0;         // >= 0
  bool is_input = false;          // live from the start, without a producer, never written
  bool is_output = false;         // live to the end
  std::uint32_t alias_class = 0;  // 0: memory of its own
};

/// One kernel launch. Numbers are positions in order_problem::values and ::nodes.
struct order_node {
  struct in_place_pair {
    std::uint32_t output = 0, input = 0;
  };
  small_vector<std::uint32_t, 4> inputs;
  small_vector<std::uint32_t, 2> outputs;
  small_vector<std::uint32_t, 0> after;     // nodes that must come before, without a value
  small_vector<in_place_pair, 0> in_place;  // the output may take the memory of the dying input
  std::int64_t workspace = 0;               // bytes, only while the node runs
  std::uint32_t guard = 0;                  // number in ::guards plus one; 0: always runs
};

/// Find the topological order of the nodes with the least peak of live bytes. While a node runs,
/// its inputs, outputs and workspace are live; afterwards every value dies that no node still to
/// come touches and that is no output. Arms that exclude each other are never live together.
struct order_problem {
  vector<order_value> values;
  vector<order_node> nodes;
  vector<guard> guards;
};

/// A topological order of nodes with its peak in bytes. No order is below `lower_bound_bytes`;
/// `exact`: none is below `peak_bytes`.
struct order_plan {
  vector<std::uint32_t> order;
  std::int64_t peak_bytes = 0;
  std::int64_t lower_bound_bytes = 0;
  bool exact = false;
};

}  // namespace sod2
