// Independent check of fusion plans: shares nothing with the planner.
#pragma once

#include <span>
#include <string>

#include <sod2/core/status.hpp>
#include <sod2/fuse/plan.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/rdp/analysis.hpp>

namespace sod2 {

/// Every live node of the scope is in one group of its kind; groups stand after everything they
/// read; members of a tile program or epilogue are pointwise with the anchor's shape at every
/// binding; an epilogue has one output; whatever is read outside is listed as an output, and
/// nothing is that another group makes. Errors: invalid_plan, naming the node.
inline status validate(const graph_view& view, analysis& facts, std::span<const node_role> roles,
                       const fusion_plan& plan, scope_id scope = graph_view::root()) {
  const auto bad = [&](node_id n, const char* what) {
    return error(errc::invalid_plan, std::string(what)).at_node(view.name(n));
  };
  std::vector<std::uint8_t> given(view.value_count(), 0);  // an output of some scope
  for (std::size_t s = 0; s < view.scope_count(); ++s)
    for (value_id v : view.outputs(scope_id{s})) given[v.index] = 1;
  std::vector<std::uint32_t> group_of(view.node_count(), no_index);
  for (std::uint32_t g = 0; g < plan.groups.size(); ++g)
    for (node_id n : plan.groups[g].nodes) {
      if (n.index >= view.node_count())
        return error(errc::invalid_plan, "group holds a node that does not exist");
      if (group_of[n.index] != no_index) return bad(n, "node is in two groups");
      if (roles[n.index] == node_role::dead) return bad(n, "dead node is in a group");
      group_of[n.index] = g;
    }
  for (node_id n : view.order(scope))
    if (roles[n.index] != node_role::dead && group_of[n.index] == no_index)
      return bad(n, "node is in no group");
  if (plan.group_of != group_of)
    return error(errc::invalid_plan, "plan and its groups disagree on where nodes are");
  const auto kind_of = [&](node_id n) {
    switch (roles[n.index]) {
      case node_role::host: return group_kind::host;
      case node_role::view: return group_kind::view;
      case node_role::pointwise: return group_kind::tile;
      case node_role::product: return group_kind::product;
      case node_role::convolution: return group_kind::convolution;
      default: return group_kind::opaque;
    }
  };
  const auto listed = [](const std::vector<value_id>& list, value_id v) {
    for (value_id x : list)
      if (x == v) return true;
    return false;
  };
  for (std::uint32_t g = 0; g < plan.groups.size(); ++g) {
    const fused_group& group = plan.groups[g];
    if (group.nodes.empty() || group.anchor != group.nodes[0])
      return error(errc::invalid_plan, "group without an anchor");
    if (group.kind != kind_of(group.anchor)) return bad(group.anchor, "group has a wrong kind");
    const bool heavy = group.kind == group_kind::product || group.kind == group_kind::convolution;
    if (group.nodes.size() > 1 && !heavy && group.kind != group_kind::tile)
      return bad(group.anchor, "a group of this kind is one node");
    for (value_id v : group.outputs)
      if (v == absent || view.producer(v) == no_index || group_of[view.producer(v)] != g)
        return bad(group.anchor, "group lists an output that it does not make");
    const value_id head =
        view.outputs(group.anchor).empty() ? absent : view.outputs(group.anchor)[0];
    for (std::size_t i = 0; i < group.nodes.size(); ++i) {
      const node_id n = group.nodes[i];
      for (value_id v : view.inputs(n)) {
        if (v == absent || view.producer(v) == no_index) continue;
        const std::uint32_t from = group_of[view.producer(v)];
        if (from == no_index) continue;  // folded to a constant
        if (from > g) return bad(n, "group stands before what it reads");
        if (from == g) {
          bool earlier = false;
          for (std::size_t j = 0; j < i; ++j)
            earlier = earlier || group.nodes[j].index == view.producer(v);
          if (!earlier) return bad(n, "nodes of a group are out of order");
        } else if (!listed(group.inputs, v)) {
          return bad(n, "group reads a value that is not listed as its input");
        }
      }
      if (i > 0) {
        if (roles[n.index] != node_role::pointwise)
          return bad(n, "only pointwise nodes may follow an anchor");
        const auto a = facts.dims(head), b = facts.dims(view.outputs(n)[0]);
        if (a.size() != b.size()) return bad(n, "index spaces of a group differ in rank");
        for (std::size_t k = 0; k < a.size(); ++k)
          if (facts.context().decide_eq(a[k], b[k]) != tri::yes)
            return bad(n, "index spaces of a group are not proved equal");
      }
      for (value_id v : view.outputs(n)) {
        if (v == absent) continue;
        bool outside = given[v.index] != 0;
        for (node_id c : view.consumers(v))
          outside = outside || (group_of[c.index] != g && roles[c.index] != node_role::dead &&
                                roles[c.index] != node_role::host);
        if (outside && !listed(group.outputs, v))
          return bad(n, "a value read outside its group is not listed as its output");
      }
    }
    if (heavy && group.nodes.size() > 1 && group.outputs.size() != 1)
      return bad(group.anchor, "an epilogue has one output");
    if (heavy && group.nodes.size() > 1 &&
        facts.fact(group.outputs[0]).type != facts.fact(head).type)
      return bad(group.anchor, "an epilogue has the element type of its anchor");
  }
  return {};
}

}  // namespace sod2
