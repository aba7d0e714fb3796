// Control flow in RDP: arms meet, loops and scans are brought to a fixpoint by widening single
// dims. Part of rdp/analysis.hpp.
#pragma once

#include <sod2/rdp/detail/condition.hpp>
#include <sod2/rdp/detail/transfer.hpp>

namespace sod2 {

inline bool rdp_transfer::inside(scope_id s, scope_id outer) const {
  while (s != outer) {
    if (s == graph_view::root()) return false;
    s = view_.scope(node_id{view_.owner(s)});
  }
  return true;
}

inline bool rdp_transfer::is_open(scope_id s) const {
  while (s != graph_view::root()) {
    const node_id owner{view_.owner(s)};
    if (view_.operator_name(owner) != "If" && !loops_[s.index].open) return false;
    s = view_.scope(owner);
  }
  return true;
}

inline bool rdp_transfer::is_then(scope_id arm) const {
  return view_.own_name(arm).starts_with("then");
}

inline bool rdp_transfer::runs_with(scope_id inner, scope_id outer) {
  while (inner != outer) {
    if (inner == graph_view::root()) return false;
    const node_id owner{view_.owner(inner)};
    if (view_.operator_name(owner) != "If") return false;  // a body may make no trip
    if (outcome(owner) != to_tri(is_then(inner))) return false;
    inner = view_.scope(owner);
  }
  return true;
}

inline tri rdp_transfer::truth(value_id v) const {
  if (v == absent) return tri::unknown;
  const symbolic_fact& f = out_.facts_[v.index];
  if (!f.has_value || f.elements.size() != 1 || !f.elements[0].is_known()) return tri::unknown;
  dim_context& c = out_.context_;
  const dim d = c.resolve(f.elements[0]);
  return d.is_known() && c.is_constant(d) ? to_tri(c.value(d) != 0) : tri::unknown;
}

inline tri rdp_transfer::outcome(node_id n) {
  const value_id condition = view_.inputs(n)[0];
  if (const tri proved = truth(condition); proved != tri::unknown) return proved;
  dim_context& c = out_.context_;
  const symbolic_fact& f = out_.facts_[condition.index];
  for (const decision& d : options_.decided) {
    if (d.node != n) {
      // The same condition elsewhere has the same outcome, its complement the opposite one.
      const symbolic_fact& other = out_.facts_[view_.inputs(d.node)[0].index];
      if (!f.has_value || !other.has_value || f.elements.size() != 1 ||
          other.elements.size() != 1 || !f.elements[0].is_known() || !other.elements[0].is_known())
        continue;
      if (c.decide_eq(f.elements[0], other.elements[0]) == tri::yes) return to_tri(d.outcome);
      if (c.decide_eq(c.add(f.elements[0], other.elements[0]), c.one()) == tri::yes)
        return to_tri(!d.outcome);
      continue;
    }
    // What the outcome says of sizes is a fact of the scenario.
    if (f.has_value && f.elements.size() == 1 && f.elements[0].is_known())
      detail::assume(c, f.elements[0], d.outcome);
    return to_tri(d.outcome);
  }
  return tri::unknown;
}

template <class Changed>
status rdp_transfer::visit_control(node_id n, Changed& changed) {
  const std::string_view op = view_.operator_name(n);
  if (op == "If") return visit_if(n, changed);
  if (view_.scopes(n).size() == 1 && op == "Loop") return visit_loop(n, changed);
  if (view_.scopes(n).size() == 1 && op == "Scan") return visit_scan(n, changed);
  if (view_.scopes(n).size() == 1 && op == "SequenceMap") return visit_sequence_map(n, changed);
  return error(errc::unsupported, "analysis of operator '" + std::string(op) + "' with a sub-graph")
      .at_node(view_.name(n));
}

template <class Changed>
status rdp_transfer::visit_if(node_id n, Changed& changed) {
  const auto scopes = view_.scopes(n);
  const auto outputs = view_.outputs(n);
  const tri taken = outcome(n);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == absent) continue;
    symbolic_fact merged;
    bool first = true;
    for (scope_id s : scopes) {
      if (i >= view_.outputs(s).size())
        return error(errc::arity, "an arm gives fewer values than the node has outputs")
            .at_node(view_.name(n));
      const bool then = is_then(s);
      // A proved condition leaves one arm; an arm that cannot run gives nothing.
      if ((taken == tri::yes && !then) || (taken == tri::no && then)) continue;
      if (impossible_[s.index] != 0) continue;
      const symbolic_fact& arm = out_.facts_[view_.outputs(s)[i].index];
      merged = first ? arm : join(n, i, merged, arm);
      first = false;
    }
    if (!first) SOD2_TRY(merge(n, outputs[i], merged, changed));
    if (first) {
      // No arm can run, so neither can this node.
      std::string why = "no arm can run";
      for (const impossible_scope& k : out_.impossible_)
        if (k.scope == scopes[0]) why += ": " + k.text;
      error e = error(errc::contradiction, std::move(why)).at_node(view_.name(n));
      if (unconditional(n)) return e;
      return exclude(n, std::move(e));
    }
  }
  return {};
}

template <class Changed>
void rdp_transfer::restart(scope_id s, Changed& changed) {
  // What was found from narrower facts is forgotten, requirements included.
  vector<scope_id> todo;
  todo.push_back(s);
  while (!todo.empty()) {
    const scope_id inner = todo.back();
    todo.pop_back();
    impossible_[inner.index] = 0;
    if (inner != s) loops_[inner.index] = {};
    for (node_id n : view_.order(inner)) {
      for (value_id v : view_.outputs(n))
        if (v != absent) out_.facts_[v.index] = {};
      changed.wake(n);
      for (scope_id child : view_.scopes(n)) todo.push_back(child);
    }
  }
  std::size_t possible = 0;
  for (std::size_t k = 0; k < out_.impossible_.size(); ++k)
    if (!inside(out_.impossible_[k].scope, s)) {
      if (possible != k) out_.impossible_[possible] = std::move(out_.impossible_[k]);
      ++possible;
    }
  out_.impossible_.resize(possible);
  std::size_t kept = 0;
  for (std::size_t k = 0; k < out_.assertions_.size(); ++k)
    if (!inside(view_.scope(out_.assertions_[k].node), s)) {
      if (kept != k) out_.assertions_[kept] = std::move(out_.assertions_[k]);
      ++kept;
    }
  out_.assertions_.resize(kept);
  recorded_count_ = no_index;  // the table of them is made anew
}

inline status rdp_transfer::check_ranks() {
  dim_context& c = out_.context_;
  bool differ = false;
  for (std::size_t i = 0; i < view_.node_count(); ++i) {
    const node_id n{i};
    if (view_.operator_name(n) != "If" || view_.scopes(n).empty()) continue;
    const symbolic_fact& f = out_.facts_[view_.inputs(n)[0].index];
    if (truth(view_.inputs(n)[0]) == tri::unknown && f.has_value && f.elements.size() == 1 &&
        f.elements[0].is_known() && !c.is_constant(c.resolve(f.elements[0])))
      return {};  // scenarios decide this one, and with it perhaps the others
    for (value_id v : view_.outputs(n))
      differ = differ || (v != absent && out_.facts_[v.index].rank == rank_state::unknown);
  }
  if (!differ) return {};
  for (node_id n : view_.order()) {
    bool lost = false;
    for (value_id v : view_.outputs(n))
      lost = lost || (v != absent && out_.facts_[v.index].rank == rank_state::unknown);
    if (!lost) continue;
    const auto inputs = view_.inputs(n);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == absent || (out_.nodes_[n.index].ranks_missed >> (i < 31 ? i : 31) & 1) == 0)
        continue;
      // Back through nodes that hand the rank on, to the arms.
      value_id v = inputs[i];
      std::uint32_t producer = view_.producer(v);
      while (producer != no_index && view_.scopes(node_id{producer}).empty()) {
        value_id before{};
        for (value_id k : view_.inputs(node_id{producer}))
          if (k != absent && out_.facts_[k.index].rank == rank_state::unknown) before = k;
        if (before == absent) break;
        v = before;
        producer = view_.producer(v);
      }
      if (producer == no_index || view_.operator_name(node_id{producer}) != "If") continue;
      const node_id owner{producer};
      std::size_t output = 0;
      while (view_.outputs(owner)[output] != v) ++output;
      const auto scopes = view_.scopes(owner);
      if (scopes.size() != 2) continue;
      const value_id a = view_.outputs(scopes[0])[output], b = view_.outputs(scopes[1])[output];
      if (!out_.facts_[a.index].rank_known() || !out_.facts_[b.index].rank_known()) continue;
      return error(errc::rank_unknown, std::string(text_of(errc::rank_unknown)) +
                                           ", but the arms of '" + std::string(view_.name(owner)) +
                                           "' give different ones")
          .at_node(view_.name(n))
          .at_tensor(view_.name(inputs[i]))
          .between(out_.text(a), out_.text(b));
    }
  }
  return {};
}

template <class Changed>
bool rdp_transfer::widen(node_id n, loop_state& state, std::span<const symbolic_fact> initial,
                         std::span<const value_id> formal, std::span<const value_id> given,
                         Changed& changed) {
  dim_context& c = out_.context_;
  const std::size_t count = initial.size();
  bool again = false;
  if (!state.open) {
    state.open = true;
    state.start.resize(count);
    state.widened.resize(count);
    state.rank_lost.assign(count, 0);
    again = true;
  }
  for (std::size_t k = 0; k < count; ++k) {
    symbolic_fact& start = state.start[k];
    const symbolic_fact& first = initial[k];
    const symbolic_fact& last = out_.facts_[given[k].index];
    // What the initial value has come to be known as since.
    if (start.kind == fact_kind::undefined && first.kind != fact_kind::undefined) {
      start = first;
      start.has_value = false;  // values change from trip to trip
      start.elements.clear();
      state.widened[k].assign(start.dims.size(), dim::undefined());
      again = true;
    }
    if (is_container(start.kind)) {
      symbolic_fact wider = start;
      wider.length = dim::unknown();
      join_elements(wider, first);
      join_elements(wider, last);
      again = again || !same_elements(wider, start);
      start = std::move(wider);
      continue;
    }
    if (!start.rank_known() && first.rank_known() && state.rank_lost[k] == 0) {
      start.rank = rank_state::known;
      start.dims = first.dims;
      state.widened[k].assign(start.dims.size(), dim::undefined());
      again = true;
    }
    if (!start.rank_known() || last.rank == rank_state::undefined || again) continue;
    if (!last.rank_known() || last.dims.size() != start.dims.size()) {
      state.rank_lost[k] = 1;
      start.rank = rank_state::unknown;
      start.dims.clear();
      again = true;
      continue;
    }
    for (std::size_t axis = 0; axis < start.dims.size(); ++axis) {
      if (state.widened[k][axis].is_known()) continue;
      const dim now = last.dims[axis];
      if (now.is_undefined() || (now.is_known() && start.dims[axis].is_known() &&
                                 c.resolve(now) == c.resolve(start.dims[axis])))
        continue;
      const dim symbol = c.fresh({0, infinity}, view_.name(n));
      state.widened[k][axis] = symbol;
      start.dims[axis] = symbol;
      again = true;
    }
  }
  if (again) {
    ++state.passes;
    restart(view_.scopes(n)[0], changed);
    for (std::size_t k = 0; k < count; ++k) {
      out_.facts_[formal[k].index] = state.start[k];
      changed(formal[k]);
    }
    changed.wake(n);
  }
  return again;
}

inline symbolic_fact rdp_transfer::carried_result(node_id n, std::size_t output,
                                                  const loop_state& state,
                                                  const symbolic_fact& first, value_id given,
                                                  dim trips, bool zero_trips) {
  dim_context& c = out_.context_;
  const symbolic_fact& last = out_.facts_[given.index];
  symbolic_fact out;
  if (is_container(first.kind)) {
    out = first;
    if (is_container(last.kind)) out.kind = last.kind;  // an optional may become what it holds
    out.length = dim::unknown();
    join_elements(out, last);
    return out;
  }
  out.kind = first.kind == fact_kind::undefined ? last.kind : first.kind;
  out.type = first.type == dtype::undefined ? last.type : first.type;
  if (last.rank == rank_state::undefined) return {};
  if (!first.rank_known() || !last.rank_known() || first.dims.size() != last.dims.size()) {
    out.rank = rank_state::unknown;
    return out;
  }
  out.rank = rank_state::known;
  for (std::size_t axis = 0; axis < last.dims.size(); ++axis) {
    const dim a = first.dims[axis], b = last.dims[axis];
    const std::size_t k = output;
    const dim symbol = k < state.widened.size() && axis < state.widened[k].size()
                           ? state.widened[k][axis]
                           : dim::undefined();
    if (!symbol.is_known()) {
      out.dims.push_back(zero_trips ? join_dim(n, output, axis, a, b) : b);
      continue;
    }
    // d + c per trip comes to d0 + c * trips.
    const dim step = b.is_known() ? c.sub(b, symbol) : dim::unknown();
    if (step.is_known() && c.is_constant(step) && a.is_known() && trips.is_known()) {
      out.dims.push_back(c.add(a, c.mul(trips, step)));
      continue;
    }
    dim phi{};
    for (const auto& e : caches_[n.index])
      if (e.output == output && e.axis == axis) phi = e.symbol;
    if (!phi.is_known()) {
      phi = c.fresh({0, infinity}, view_.name(n));
      caches_[n.index].push_back(
          {static_cast<std::uint32_t>(output), static_cast<std::uint32_t>(axis), phi});
    }
    out.dims.push_back(phi);
  }
  return out;
}

inline symbolic_fact rdp_transfer::stacked_result(node_id n, std::size_t output,
                                                  const loop_state& state, value_id given,
                                                  dim trips, std::size_t axis) {
  dim_context& c = out_.context_;
  const symbolic_fact& last = out_.facts_[given.index];
  symbolic_fact out;
  if (last.rank == rank_state::undefined) return out;
  out.kind = fact_kind::tensor;
  out.type = last.type;
  if (!last.rank_known()) {
    out.rank = rank_state::unknown;
    return out;
  }
  out.rank = rank_state::known;
  for (std::size_t k = 0; k < last.dims.size(); ++k) {
    dim d = last.dims[k];
    // A size that changes from trip to trip is no size of the stack.
    bool local = false;
    if (d.is_known())
      c.for_each_symbol(d, [&](std::uint32_t s) {
        for (const auto& axes : state.widened)
          for (dim w : axes) local = local || (w.is_known() && c.symbol_index(w) == s);
      });
    if (local) {
      d = dim::undefined();
      for (const auto& e : caches_[n.index])
        if (e.output == output && e.axis == k) d = e.symbol;
      if (!d.is_known()) {
        d = c.fresh({0, infinity}, view_.name(n));
        caches_[n.index].push_back(
            {static_cast<std::uint32_t>(output), static_cast<std::uint32_t>(k), d});
      }
    }
    out.dims.push_back(d);
  }
  out.dims.insert(axis <= out.dims.size() ? axis : out.dims.size(), trips);
  return out;
}

template <class Changed>
status rdp_transfer::visit_loop(node_id n, Changed& changed) {
  const scope_id body = view_.scopes(n)[0];
  const auto inputs = view_.inputs(n), outputs = view_.outputs(n);
  const auto formal = view_.inputs(body), given = view_.outputs(body);
  if (inputs.size() < 2 || formal.size() != inputs.size() || given.size() + 1 < formal.size() ||
      outputs.size() + 1 > given.size())
    return error(errc::arity, "the body's inputs and outputs do not fit those of the loop")
        .at_node(view_.name(n));
  const std::size_t carried = inputs.size() - 2;
  dim_context& c = out_.context_;
  loop_state& state = loops_[body.index];
  if (!state.open) {
    const dtype types[2] = {dtype::i64, dtype::boolean};
    for (int k = 0; k < 2; ++k) {
      if (formal[static_cast<std::size_t>(k)] == absent) continue;
      symbolic_fact& f = out_.facts_[formal[static_cast<std::size_t>(k)].index];
      f.kind = fact_kind::tensor;
      f.type = types[k];
      f.rank = rank_state::known;
      f.dims.clear();
    }
  }
  const auto initial = initial_facts(inputs.subspan(2));
  if (widen(n, state, initial, formal.subspan(2), given.subspan(1, carried), changed)) return {};
  // Trips: M, when neither the condition nor the body ends the loop earlier.
  constexpr std::uint32_t trip_key = 0xffff;
  const tri enters = inputs[1] == absent ? tri::yes : truth(inputs[1]);
  const tri goes_on = truth(given[0]);
  dim limit = dim::unknown();
  if (inputs[0] != absent) {
    const symbolic_fact& m = out_.facts_[inputs[0].index];
    if (m.has_value && m.elements.size() == 1 && m.elements[0].is_known())
      limit = c.max(c.zero(), m.elements[0]);
  }
  dim trips{};
  if (enters == tri::no) {
    trips = c.zero();
  } else if (enters == tri::yes && goes_on == tri::yes && limit.is_known()) {
    trips = limit;
  } else {
    for (const auto& e : caches_[n.index])
      if (e.output == trip_key) trips = e.symbol;
    if (!trips.is_known()) {
      trips = c.fresh({0, limit.is_known() ? c.bounds(limit).hi : infinity}, view_.name(n));
      caches_[n.index].push_back({trip_key, 0, trips});
    }
  }
  const bool zero_trips = c.decide_le(c.one(), trips) != tri::yes;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k] == absent) continue;
    const symbolic_fact f =
        k < carried ? carried_result(n, k, state, initial[k], given[k + 1], trips, zero_trips)
                    : stacked_result(n, k, state, given[k + 1], trips, 0);
    SOD2_TRY(merge(n, outputs[k], f, changed));
  }
  return {};
}

template <class Changed>
status rdp_transfer::visit_scan(node_id n, Changed& changed) {
  const scope_id body = view_.scopes(n)[0];
  const auto outputs = view_.outputs(n);
  auto inputs = view_.inputs(n);
  const auto formal = view_.inputs(body), given = view_.outputs(body);
  const attribute_source& attributes = view_.attributes(n);
  // Version 8 batches along axis 0 and may pass sequence lengths first.
  const bool batched = out_.nodes_[n.index].op.version < 9;
  if (batched && !inputs.empty()) inputs = inputs.subspan(1);
  const std::int64_t scanned = attributes.integer("num_scan_inputs", 0);
  if (scanned < 1 || static_cast<std::size_t>(scanned) > inputs.size() ||
      formal.size() != inputs.size() ||
      given.size() < inputs.size() - static_cast<std::size_t>(scanned) ||
      outputs.size() > given.size())
    return error(errc::arity, "the body's inputs and outputs do not fit those of the scan")
        .at_node(view_.name(n));
  const std::size_t states = inputs.size() - static_cast<std::size_t>(scanned);
  dim_context& c = out_.context_;
  loop_state& state = loops_[body.index];
  const auto axis_of = [&](std::string_view list, std::size_t k, std::size_t rank) {
    if (batched) return std::size_t{1};
    const auto axes = attributes.integers(list);
    std::int64_t axis = k < axes.size() ? axes[k] : 0;
    if (axis < 0) axis += static_cast<std::int64_t>(rank);
    return static_cast<std::size_t>(axis < 0 ? 0 : axis);
  };
  // Slices: the scanned axis goes (and the batch of version 8).
  dim trips{};
  bool ready = true;
  for (std::size_t k = states; k < inputs.size(); ++k) {
    const symbolic_fact& whole = out_.facts_[inputs[k].index];
    symbolic_fact slice = whole;
    slice.has_value = false;
    slice.elements.clear();
    if (whole.rank_known()) {
      const std::size_t axis = axis_of("scan_input_axes", k - states, whole.dims.size());
      if (axis >= whole.dims.size())
        return error(errc::axis_range)
            .at_node(view_.name(n))
            .at_tensor(view_.name(inputs[k]), static_cast<int>(axis));
      const dim length = whole.dims[axis];
      if (trips.is_known() && length.is_known()) {
        symbolic_transfer::requirement same{trips, length, errc::dim_mismatch, false};
        SOD2_TRY(record(n, {&same, 1}));
      }
      if (!trips.is_known()) trips = length;
      slice.dims.erase(axis);
      if (batched) slice.dims.erase(0);
    } else {
      ready = false;
    }
    symbolic_fact& have = out_.facts_[formal[k].index];
    if (have.kind == fact_kind::undefined || (!have.rank_known() && slice.rank_known())) {
      have = slice;
      changed(formal[k]);
      state.open = false;  // the body starts (again) from these
    }
  }
  if (!ready) return {};
  const auto initial = initial_facts(inputs.first(states), batched);
  if (widen(n, state, initial, formal.first(states), given.first(states), changed)) return {};
  if (!trips.is_known()) trips = dim::unknown();
  const bool zero_trips = c.decide_le(c.one(), trips) != tri::yes;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k] == absent) continue;
    symbolic_fact f;
    if (k < states) {
      f = carried_result(n, k, state, initial[k], given[k], trips, zero_trips);
    } else {
      const symbolic_fact& last = out_.facts_[given[k].index];
      const std::size_t rank = last.dims.size() + 1;
      f = stacked_result(n, k, state, given[k], trips,
                         batched ? 0 : axis_of("scan_output_axes", k - states, rank));
    }
    if (batched && f.rank_known()) f.dims.insert(0, out_.facts_[inputs[states].index].dims[0]);
    SOD2_TRY(merge(n, outputs[k], f, changed));
  }
  return {};
}

template <class Changed>
status rdp_transfer::visit_sequence_map(node_id n, Changed& changed) {
  const scope_id body = view_.scopes(n)[0];
  const auto inputs = view_.inputs(n), outputs = view_.outputs(n);
  const auto formal = view_.inputs(body), given = view_.outputs(body);
  if (inputs.empty() || formal.size() != inputs.size() || given.size() < outputs.size())
    return error(errc::arity, "the body's inputs and outputs do not fit those of the map")
        .at_node(view_.name(n));
  dim_context& c = out_.context_;
  const auto shared = [&](dim d) { return d.is_known() && c.only_input_symbols(c.resolve(d)); };
  // Elements may differ in a size: the body's is a symbol of its own, bound in each trip.
  const auto size_of_element = [&](std::size_t input, std::size_t axis, dim d) {
    constexpr std::uint32_t element_key = 0x8000;
    const auto key = element_key + static_cast<std::uint32_t>(input);
    if (shared(d)) return d;
    for (const auto& e : caches_[n.index])
      if (e.output == key && e.axis == axis) return e.symbol;
    const dim made = c.fresh({0, infinity}, view_.name(n));
    caches_[n.index].push_back({key, static_cast<std::uint32_t>(axis), made});
    return made;
  };
  loop_state& state = loops_[body.index];
  bool again = !state.open;
  state.start.resize(inputs.size());
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    symbolic_fact one = out_.facts_[inputs[k].index];
    if (one.kind == fact_kind::undefined) return {};
    one.has_value = false;
    one.elements.clear();
    one.length = {};
    if (is_container(one.kind)) {
      one.kind = fact_kind::tensor;
      for (std::size_t axis = 0; axis < one.dims.size(); ++axis)
        one.dims[axis] = size_of_element(k, axis, one.dims[axis]);
    }
    again = again || !same_elements(state.start[k], one);
    state.start[k] = std::move(one);
  }
  if (again) {
    state.open = true;
    restart(body, changed);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      out_.facts_[formal[k].index] = state.start[k];
      changed(formal[k]);
    }
    changed.wake(n);
    return {};
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k] == absent) continue;
    symbolic_fact f = out_.facts_[given[k].index];
    if (f.rank == rank_state::undefined) continue;
    f.kind = fact_kind::sequence;
    f.has_value = false;
    f.elements.clear();
    for (dim& d : f.dims)
      if (!shared(d)) d = dim::unknown();
    f.length = out_.facts_[inputs[0].index].length;
    SOD2_TRY(merge(n, outputs[k], f, changed));
  }
  return {};
}

}  // namespace sod2
