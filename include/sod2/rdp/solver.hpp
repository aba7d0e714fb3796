// A generic data-flow solver: chaotic iteration over a graph in topological order until nothing
// changes (paper Algorithm 1), forward and backward. The graph and the transfer are parameters; the
// lattice is the transfer's business.
#pragma once

#include <cstdint>

#include <sod2/core/ids.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/graph/view.hpp>

namespace sod2 {

struct solve_statistics {
  std::uint64_t visits = 0;
  std::uint32_t sweeps = 0;
};

/// All nodes of a view, sub-graphs included: the nodes of a sub-graph stand right before the node
/// that owns it.
inline vector<node_id> nested_order(const graph_view& view) {
  struct frame {
    scope_id scope;
    std::size_t at = 0;
    std::size_t child = 0;
  };
  vector<node_id> out;
  out.reserve(view.node_count());
  vector<frame> stack;
  stack.push_back({graph_view::root(), 0, 0});
  while (!stack.empty()) {
    frame& top = stack.back();
    const auto order = view.order(top.scope);
    if (top.at == order.size()) {
      stack.pop_back();
      continue;
    }
    const node_id n = order[top.at];
    if (const auto children = view.scopes(n); top.child < children.size()) {
      stack.push_back({children[top.child++], 0, 0});
      continue;
    }
    out.push_back(n);
    ++top.at;
    top.child = 0;
  }
  return out;
}

/// Runs `transfer.visit(node, changed)` until no fact changes. `changed(value)` marks a value whose
/// fact moved: its consumers and its producer are visited again. A node is visited at most
/// `most_visits` times, which bounds the work for transfers that are not monotone.
///
/// Transfer: `status visit(node_id, Changed& changed)` and `const vector<node_id>* also(value_id)`:
/// further nodes that read a value (owners of sub-graphs), or null.
template <class Transfer>
result<solve_statistics> solve(const graph_view& view, Transfer& transfer,
                               std::uint32_t most_visits = 64) {
  const vector<node_id> order = nested_order(view);
  vector<std::uint32_t> position(view.node_count(), no_index);
  for (std::uint32_t i = 0; i < order.size(); ++i) position[order[i].index] = i;
  vector<std::uint8_t> dirty(order.size(), std::uint8_t{1});
  vector<std::uint16_t> visits(order.size(), std::uint16_t{0});
  solve_statistics statistics;
  std::size_t pending = order.size();
  std::uint32_t current = 0;
  const auto wake = [&](node_id n) {
    const std::uint32_t p = position[n.index];
    if (p == no_index || dirty[p] != 0) return;
    dirty[p] = 1;
    ++pending;
  };
  const auto changed = [&](value_id v) {
    // What a node learns of its own inputs may tell it more of its outputs; what it wrote itself
    // tells it nothing.
    for (node_id n : view.consumers(v)) wake(n);
    if (const std::uint32_t producer = view.producer(v);
        producer != no_index && position[producer] != current)
      wake(node_id{producer});
    if (const vector<node_id>* more = transfer.also(v); more != nullptr)
      for (node_id n : *more) wake(n);
  };
  while (pending > 0) {
    ++statistics.sweeps;
    for (current = 0; current < order.size() && pending > 0; ++current) {
      if (dirty[current] == 0) continue;
      dirty[current] = 0;
      --pending;
      if (visits[current] >= most_visits) continue;
      ++visits[current];
      ++statistics.visits;
      SOD2_TRY(transfer.visit(order[current], changed));
    }
  }
  return statistics;
}

}  // namespace sod2
