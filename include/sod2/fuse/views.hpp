// Which nodes move no bytes: by what the operator is, or because its shapes prove it.
#pragma once

#include <cstdint>
#include <string_view>

#include <sod2/graph/view.hpp>
#include <sod2/rdp/analysis.hpp>

namespace sod2 {

namespace detail {

inline bool same_shape(analysis& facts, value_id a, value_id b) {
  const symbolic_fact& x = facts.fact(a);
  const symbolic_fact& y = facts.fact(b);
  if (!x.rank_known() || !y.rank_known() || x.dims.size() != y.dims.size()) return false;
  for (std::size_t i = 0; i < x.dims.size(); ++i)
    if (facts.context().decide_eq(x.dims[i], y.dims[i]) != tri::yes) return false;
  return true;
}

// A transposition that only moves axes of size 1 keeps the row-major order.
inline bool keeps_order(const graph_view& view, analysis& facts, node_id n) {
  const symbolic_fact& f = facts.fact(view.inputs(n)[0]);
  if (!f.rank_known()) return false;
  const auto perm = view.attributes(n).integers("perm");
  const std::size_t rank = f.dims.size();
  if (!perm.empty() && perm.size() != rank) return false;
  std::int64_t last = -1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t from = perm.empty() ? static_cast<std::int64_t>(rank - 1 - i) : perm[i];
    if (from < 0 || from >= static_cast<std::int64_t>(rank)) return false;
    if (facts.context().decide_eq(f.dims[static_cast<std::size_t>(from)], facts.context().one()) ==
        tri::yes)
      continue;
    if (from < last) return false;
    last = from;
  }
  return true;
}

// All steps of a Slice are 1 (attribute-less versions read them from input 4).
inline bool unit_steps(const graph_view& view, analysis& facts, node_id n) {
  const auto inputs = view.inputs(n);
  if (inputs.size() < 5 || inputs[4] == absent) return true;
  const symbolic_fact& f = facts.fact(inputs[4]);
  if (!f.has_value) return false;
  for (dim d : f.elements)
    if (facts.context().decide_eq(d, facts.context().one()) != tri::yes) return false;
  return true;
}

}  // namespace detail

/// Does output 0 hold the bytes of input 0 in the same order, at every binding? Then the node is an
/// alias and launches nothing.
inline bool is_view(const graph_view& view, analysis& facts, node_id n) {
  const auto inputs = view.inputs(n);
  const auto outputs = view.outputs(n);
  if (inputs.empty() || outputs.empty() || inputs[0] == absent || outputs[0] == absent)
    return false;
  for (std::size_t i = 1; i < outputs.size(); ++i)
    if (outputs[i] != absent) return false;
  const symbolic_fact& in = facts.fact(inputs[0]);
  const symbolic_fact& out = facts.fact(outputs[0]);
  if (in.kind != fact_kind::tensor || out.kind != fact_kind::tensor || in.type != out.type)
    return false;
  const op_info& info = *facts.node(n).op.row->info;
  if (!info.domain.empty()) return false;
  const std::string_view op = info.name;
  if (info.map == mapping::reorganize || op == "Identity" || op == "OptionalGetElement")
    return true;
  if (op == "Dropout") {
    // Training needs the mask and a random generator.
    if (inputs.size() < 3 || inputs[2] == absent)
      return view.attributes(n).integer("is_test", 1) != 0;
    const symbolic_fact& training = facts.fact(inputs[2]);
    return training.has_value && training.elements.size() == 1 &&
           training.elements[0] == facts.context().zero();
  }
  if (op == "Cast") return true;  // same type
  if (op == "Transpose") return detail::keeps_order(view, facts, n);
  if (!detail::same_shape(facts, inputs[0], outputs[0])) return false;
  if (op == "Expand" || op == "Tile") return true;
  if (op == "Slice") return detail::unit_steps(view, facts, n);
  return op == "Concat" && inputs.size() == 1;
}

}  // namespace sod2
