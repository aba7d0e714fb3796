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

namespace detail {

// Which nodes are to be visited. What a transfer is handed to report changes with. Marks are kept
// by node, so that one look tells of a consumer that waits for its first visit that there is no
// news.
template <class Transfer>
class solve_queue {
 public:
  solve_queue(const graph_view& view, const Transfer& transfer)
      : view_(view),
        transfer_(transfer),
        order_(nested_order(view)),
        dirty_(view.node_count(), std::uint8_t{1}),
        pending_(order_.size()) {}

  /// The fact of v moved. What a node learns of its own inputs may tell it more of its outputs;
  /// what it wrote itself tells it nothing.
  void operator()(value_id v) {
    for (node_id n : view_.consumers(v)) wake(n);
    if (const std::uint32_t producer = view_.producer(v);
        producer != no_index && producer != current_)
      wake(node_id{producer});
    if (const vector<node_id>* more = transfer_.also(v); more != nullptr)
      for (node_id n : *more) wake(n);
  }
  /// n is to be visited (again).
  void wake(node_id n) {
    if (dirty_[n.index] != 0) return;
    dirty_[n.index] = 1;
    ++pending_;
  }

  bool empty() const { return pending_ == 0; }
  std::size_t size() const { return order_.size(); }
  node_id node(std::uint32_t position) const { return order_[position]; }
  /// Takes the node at `position` if it is to be visited.
  bool take(std::uint32_t position) {
    const std::uint32_t n = order_[position].index;
    if (dirty_[n] == 0) return false;
    dirty_[n] = 0;
    --pending_;
    current_ = n;
    return true;
  }

 private:
  const graph_view& view_;
  const Transfer& transfer_;
  vector<node_id> order_;
  vector<std::uint8_t> dirty_;
  std::size_t pending_;
  std::uint32_t current_ = no_index;
};

}  // namespace detail

/// Runs `transfer.visit(node, changed)` until no fact changes. `changed(value)` marks a value whose
/// fact moved: its consumers and its producer are visited again; `changed.wake(node)` marks a node.
/// A node is visited at most `most_visits` times, which bounds the work for transfers that are not
/// monotone.
///
/// Transfer: `status visit(node_id, Changed& changed)` and `const vector<node_id>* also(value_id)`:
/// further nodes that read a value (owners of sub-graphs), or null.
template <class Transfer>
result<solve_statistics> solve(const graph_view& view, Transfer& transfer,
                               std::uint32_t most_visits = 64) {
  detail::solve_queue<Transfer> queue(view, transfer);
  vector<std::uint16_t> visits(queue.size(), std::uint16_t{0});
  solve_statistics statistics;
  while (!queue.empty()) {
    ++statistics.sweeps;
    for (std::uint32_t at = 0; at < queue.size() && !queue.empty(); ++at) {
      if (!queue.take(at) || visits[at] >= most_visits) continue;
      ++visits[at];
      ++statistics.visits;
      SOD2_TRY(transfer.visit(queue.node(at), queue));
    }
  }
  return statistics;
}

}  // namespace sod2
