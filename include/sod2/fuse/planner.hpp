// Fusion by symbolic proofs (paper section 4.1 over DNNFusion's mapping types): a pointwise node
// joins a group when its index space is provably the group's, at every binding: one version.
#pragma once

#include <span>

#include <sod2/core/status.hpp>
#include <sod2/fuse/plan.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/rdp/analysis.hpp>

namespace sod2 {

namespace detail {

class fusion_planner {
 public:
  fusion_planner(const graph_view& view, analysis& facts, std::span<const node_role> roles,
                 const fusion_options& options, scope_id scope)
      : view_(view), facts_(facts), roles_(roles), options_(options), scope_(scope) {}

  fusion_plan plan() {
    const auto order = view_.order(scope_);
    position_.assign(view_.node_count(), no_index);
    for (std::uint32_t i = 0; i < order.size(); ++i) position_[order[i].index] = i;
    survey();
    plan_.group_of.assign(view_.node_count(), no_index);
    straddled_.assign(order.size() + 1, 0);
    visited_.assign(view_.node_count(), 0);
    // Heavy operators first: they gain most from an epilogue.
    if (options_.enabled) {
      for (node_id n : order)
        if (role(n) == node_role::product || role(n) == node_role::convolution) grow(n);
      for (node_id n : order)
        if (role(n) == node_role::pointwise && plan_.group_of[n.index] == no_index) grow(n);
    }
    for (node_id n : order)
      if (role(n) != node_role::dead && plan_.group_of[n.index] == no_index) open({n});
    for (fused_group& g : plan_.groups) interface(g);
    arrange();
    return std::move(plan_);
  }

 private:
  node_role role(node_id n) const { return roles_[n.index]; }
  static group_kind kind_of(node_role r) {
    switch (r) {
      case node_role::host: return group_kind::host;
      case node_role::view: return group_kind::view;
      case node_role::pointwise: return group_kind::tile;
      case node_role::product: return group_kind::product;
      case node_role::convolution: return group_kind::convolution;
      default: return group_kind::opaque;
    }
  }
  void open(std::vector<node_id> nodes) {
    fused_group g;
    g.anchor = nodes[0];
    g.kind = kind_of(role(nodes[0]));
    for (node_id n : nodes)
      plan_.group_of[n.index] = static_cast<std::uint32_t>(plan_.groups.size());
    for (std::uint32_t p = position_[nodes[0].index] + 1; p <= position_[nodes.back().index]; ++p)
      ++straddled_[p];
    g.nodes = std::move(nodes);
    plan_.groups.push_back(std::move(g));
  }
  bool same_space(std::span<const dim> a, value_id v) {
    const symbolic_fact& f = facts_.fact(v);
    if (!f.rank_known() || f.dims.size() != a.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (facts_.context().decide_eq(a[i], f.dims[i]) != tri::yes) return false;
    return true;
  }
  /// Does a live node outside `member` read v, or is it a graph output?
  template <class Member>
  bool escapes(value_id v, const Member& member) const {
    if (given_[v.index] != 0) return true;
    for (node_id c : view_.consumers(v))
      if (!member(c) && role(c) != node_role::dead && role(c) != node_role::host) return true;
    return captured(v);
  }
  bool captured(value_id v) const {
    for (node_id c : view_.consumers(v))
      if (view_.scope(c) != view_.scope(v)) return true;
    return false;
  }

  // What happens in a sub-graph happens where the node stands that owns it: nested nodes get its
  // position, and what they capture is read by it.
  void survey() {
    given_.assign(view_.value_count(), 0);
    for (std::size_t s = 0; s < view_.scope_count(); ++s)
      for (value_id v : view_.outputs(scope_id{s})) given_[v.index] = 1;
    if (view_.scope_count() < 2) return;
    for (std::uint32_t i = 0; i < view_.node_count(); ++i)
      if (const std::uint32_t at = holder(view_.scope(node_id{i})); at != no_index) {
        position_[i] = position_[at];
        for (value_id v : view_.inputs(node_id{i})) capture(at, v);
      }
    for (std::size_t s = 1; s < view_.scope_count(); ++s)
      if (const std::uint32_t at = holder(scope_id{s}); at != no_index)
        for (value_id v : view_.outputs(scope_id{s})) capture(at, v);
  }
  /// The node of the planned scope in whose sub-graphs scope s is, or no_index.
  std::uint32_t holder(scope_id s) const {
    std::uint32_t owner = no_index;
    while (s != scope_) {
      owner = view_.owner(s);
      if (owner == no_index) return no_index;
      s = view_.scope(node_id{owner});
    }
    return owner;
  }
  void capture(std::uint32_t node, value_id v) {
    if (v == absent || view_.producer(v) == no_index || view_.scope(v) != scope_) return;
    captures_.resize(view_.node_count());
    captures_[node].push_back(v);
  }
  /// Values that n reads, itself or in its sub-graphs.
  template <class F>
  void for_each_read(node_id n, F&& f) const {
    for (value_id v : view_.inputs(n)) f(v);
    if (n.index < captures_.size())
      for (value_id v : captures_[n.index]) f(v);
  }
  /// Host values that exist only once a size of the run is bound: they order what reads them.
  bool is_late(node_id n) const {
    if (role(n) != node_role::host) return false;
    for (value_id v : view_.outputs(n)) {
      if (v == absent) continue;
      for (dim d : facts_.fact(v).elements)
        if (!facts_.context().only_input_symbols(d)) return true;
    }
    return false;
  }

  // Collects pointwise successors in topological order. A node joins when its first output has the
  // anchor's index space and none of its inputs depends on the group through a node outside it.
  void grow(node_id anchor) {
    if (plan_.group_of[anchor.index] != no_index) return;
    const auto order = view_.order(scope_);
    const value_id head = view_.outputs(anchor).empty() ? absent : view_.outputs(anchor)[0];
    if (head == absent || !facts_.fact(head).rank_known()) return;
    const auto space = facts_.dims(head);
    const bool heavy = role(anchor) != node_role::pointwise;
    enum : std::uint8_t { outside, inside, tainted };
    std::vector<std::uint8_t> state(view_.node_count() <= options_.window ? view_.node_count() : 0);
    // Large graphs keep a sparse state, since growth stays within the window.
    handle_map sparse;
    const auto state_of = [&](node_id n) -> std::uint8_t {
      if (!state.empty()) return state[n.index];
      const std::uint32_t s = sparse.find(n.index);
      return s == no_index ? std::uint8_t{outside} : static_cast<std::uint8_t>(s);
    };
    const auto mark = [&](node_id n, std::uint8_t s) {
      if (!state.empty())
        state[n.index] = s;
      else
        sparse.insert(n.index, s);
    };
    std::vector<node_id> members{anchor};
    mark(anchor, inside);
    std::size_t best = 1;
    const std::uint32_t first = position_[anchor.index];
    std::uint32_t last_reader = 0;
    const auto watch = [&](node_id n) {
      for (value_id v : view_.outputs(n))
        if (v != absent)
          for (node_id c : view_.consumers(v))
            if (position_[c.index] != no_index && position_[c.index] > last_reader)
              last_reader = position_[c.index];
    };
    watch(anchor);
    for (std::uint32_t p = first + 1;
         p < order.size() && p <= last_reader && p - first <= options_.window; ++p) {
      const node_id n = order[p];
      if (role(n) == node_role::dead || (role(n) == node_role::host && !is_late(n))) continue;
      bool reads_group = false, reads_tainted = false;
      for_each_read(n, [&](value_id v) {
        if (v == absent || view_.producer(v) == no_index) return;
        const std::uint8_t s = state_of(node_id{view_.producer(v)});
        reads_group = reads_group || s == inside;
        reads_tainted = reads_tainted || s == tainted;
      });
      if (!reads_group && !reads_tainted) continue;
      const bool fits = reads_group && !reads_tainted && role(n) == node_role::pointwise &&
                        plan_.group_of[n.index] == no_index &&
                        members.size() < options_.max_nodes && view_.outputs(n)[0] != absent &&
                        same_space(space, view_.outputs(n)[0]) &&
                        !closes_cycle(n, first, [&](node_id m) { return state_of(m) == inside; });
      if (!fits) {
        mark(n, tainted);
        if (p + 1 > last_reader) break;
        continue;
      }
      mark(n, inside);
      members.push_back(n);
      watch(n);
      if (acceptable(members, heavy)) best = members.size();
    }
    members.resize(best);
    if (heavy || best > 1) open(std::move(members));
  }
  // Would n, joining the group that starts at position `first`, close a cycle: does something that
  // n reads from outside depend on the group, through nodes and whole groups? Edges go up in
  // position and only the members of a group are reached downward, so that nothing below the groups
  // that straddle `first` can depend on it. Gives up, saying yes, past the window.
  template <class Inside>
  bool closes_cycle(node_id n, std::uint32_t first, const Inside& inside) {
    std::uint32_t lowest = first;
    while (straddled_[lowest] != 0) --lowest;
    ++epoch_;
    stack_.clear();
    std::size_t visits = 0;
    const auto push = [&](node_id u) {
      if (view_.scope(u) != scope_ || position_[u.index] < lowest || visited_[u.index] == epoch_)
        return;
      visited_[u.index] = epoch_;
      ++visits;
      stack_.push_back(u);
    };
    const auto push_producers = [&](node_id u) {
      for_each_read(u, [&](value_id v) {
        if (v != absent && view_.producer(v) != no_index) push(node_id{view_.producer(v)});
      });
    };
    for (value_id v : view_.inputs(n))
      if (v != absent && view_.producer(v) != no_index && !inside(node_id{view_.producer(v)}))
        push(node_id{view_.producer(v)});
    while (!stack_.empty()) {
      const node_id u = stack_.back();
      stack_.pop_back();
      if (inside(u) || visits > options_.window) return true;
      if (role(u) == node_role::dead || (role(u) == node_role::host && !is_late(u))) continue;
      push_producers(u);
      if (const std::uint32_t g = plan_.group_of[u.index]; g != no_index)
        for (node_id m : plan_.groups[g].nodes) push(m);
    }
    return false;
  }
  // An epilogue works in place: it has one output, of the anchor's element type. A tile program has
  // a few. Operand counts stay within the limits.
  bool acceptable(const std::vector<node_id>& members, bool heavy) const {
    const auto member = [&](node_id n) {
      for (node_id m : members)
        if (m == n) return true;
      return false;
    };
    std::size_t outputs = 0, inputs = 0;
    std::vector<value_id> seen;
    for (node_id m : members) {
      for (value_id v : view_.outputs(m))
        if (v != absent && escapes(v, member)) {
          ++outputs;
          if (heavy && facts_.fact(v).type != facts_.fact(view_.outputs(members[0])[0]).type)
            return false;
        }
      for (value_id v : view_.inputs(m)) {
        if (v == absent) continue;
        if (view_.producer(v) != no_index && member(node_id{view_.producer(v)})) continue;
        bool known = false;
        for (value_id s : seen) known = known || s == v;
        if (!known) {
          seen.push_back(v);
          ++inputs;
        }
      }
    }
    return outputs >= 1 && outputs <= (heavy ? 1 : options_.max_outputs) &&
           inputs <= options_.max_inputs;
  }
  void interface(fused_group& g) const {
    const auto member = [&](node_id n) {
      return plan_.group_of[n.index] == plan_.group_of[g.anchor.index];
    };
    for (node_id n : g.nodes) {
      for_each_read(n, [&](value_id v) {
        if (v == absent) return;
        if (view_.producer(v) != no_index && member(node_id{view_.producer(v)})) return;
        bool known = false;
        for (value_id s : g.inputs) known = known || s == v;
        if (!known) g.inputs.push_back(v);
      });
      for (value_id v : view_.outputs(n))
        if (v != absent && (g.nodes.size() == 1 || escapes(v, member))) g.outputs.push_back(v);
    }
  }
  // Orders groups topologically; ties keep the position of a group's first node.
  void arrange() {
    const std::size_t n = plan_.groups.size();
    std::vector<std::uint32_t> waiting(n, 0);
    std::vector<std::vector<std::uint32_t>> next(n);
    for (std::uint32_t g = 0; g < n; ++g)
      for (value_id v : plan_.groups[g].inputs) {
        if (view_.producer(v) == no_index) continue;
        const std::uint32_t from = plan_.group_of[view_.producer(v)];
        if (from == no_index || from == g) continue;
        next[from].push_back(g);
        ++waiting[g];
      }
    std::vector<std::uint32_t> by_position(n);
    for (std::uint32_t g = 0; g < n; ++g) by_position[g] = g;
    stable_sort(by_position.data(), by_position.data() + n, [&](std::uint32_t a, std::uint32_t b) {
      return position_[plan_.groups[a].anchor.index] < position_[plan_.groups[b].anchor.index];
    });
    std::vector<std::uint32_t> rank(n), heap, order;
    for (std::uint32_t i = 0; i < n; ++i) rank[by_position[i]] = i;
    // `heap` holds ranks; the smallest is taken, so the given order is kept where it is valid.
    const auto push = [&](std::uint32_t r) {
      heap.push_back(r);
      for (std::size_t i = heap.size() - 1; i > 0 && heap[(i - 1) / 2] > heap[i]; i = (i - 1) / 2)
        std::swap(heap[i], heap[(i - 1) / 2]);
    };
    for (std::uint32_t i = 0; i < n; ++i)
      if (waiting[by_position[i]] == 0) push(i);
    while (!heap.empty()) {
      const std::uint32_t g = by_position[heap[0]];
      heap[0] = heap.back();
      heap.pop_back();
      for (std::size_t i = 0;;) {
        std::size_t c = 2 * i + 1;
        if (c >= heap.size()) break;
        if (c + 1 < heap.size() && heap[c + 1] < heap[c]) ++c;
        if (heap[i] <= heap[c]) break;
        std::swap(heap[i], heap[c]);
        i = c;
      }
      order.push_back(g);
      for (std::uint32_t to : next[g])
        if (--waiting[to] == 0) push(rank[to]);
    }
    SOD2_ASSERT(order.size() == n);  // growth never closes a cycle
    std::vector<fused_group> sorted;
    sorted.reserve(n);
    for (std::uint32_t g : order) sorted.push_back(std::move(plan_.groups[g]));
    plan_.groups = std::move(sorted);
    for (std::uint32_t g = 0; g < n; ++g)
      for (node_id m : plan_.groups[g].nodes) plan_.group_of[m.index] = g;
  }

  const graph_view& view_;
  analysis& facts_;
  std::span<const node_role> roles_;
  const fusion_options& options_;
  scope_id scope_;
  fusion_plan plan_;
  std::vector<std::uint8_t> given_;              // per value: an output of some scope
  std::vector<std::vector<value_id>> captures_;  // per node; empty without sub-graphs
  std::vector<std::uint32_t> position_;
  std::vector<std::uint32_t> straddled_;  // groups with a member below position p and one not below
  std::vector<std::uint32_t> visited_;    // epoch of the last search that met a node
  std::vector<node_id> stack_;
  std::uint32_t epoch_ = 0;
};

}  // namespace detail

/// Plans fusion of one scope. `roles`: one entry a node; nodes with sub-graphs are opaque.
inline fusion_plan plan_fusion(const graph_view& view, analysis& facts,
                               std::span<const node_role> roles, const fusion_options& options = {},
                               scope_id scope = graph_view::root()) {
  return detail::fusion_planner(view, facts, roles, options, scope).plan();
}

}  // namespace sod2
