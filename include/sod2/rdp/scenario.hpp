// Scenarios: conditions that are pure functions of symbols are decided at bind, so analysis looks
// at each combination of outcomes on its own (a condition on data stays undecided in all of them).
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <sod2/rdp/analysis.hpp>
#include <sod2/rdp/detail/condition.hpp>

namespace sod2 {

struct scenario {
  std::string condition;  // conjunction of what is assumed; empty when nothing had to be
  std::vector<decision> decided;
  analysis facts;
};

namespace detail {
/// The condition of a conditional node as an expression; unknown where it is none.
inline dim condition_of(const graph_view& view, const analysis& facts, node_id n) {
  const symbolic_fact& f = facts.fact(view.inputs(n)[0]);
  return f.has_value && f.elements.size() == 1 ? f.elements[0] : dim::unknown();
}
}  // namespace detail

/// The outcome of an `If`: proved, decided, or that of an equal (or opposite) decided condition.
inline tri outcome_of(const graph_view& view, analysis& facts, const std::vector<decision>& decided,
                      node_id n) {
  dim_context& c = facts.context();
  const dim d = detail::condition_of(view, facts, n);
  if (d.is_known() && c.is_constant(d)) return to_tri(c.value(d) != 0);
  for (const decision& k : decided) {
    if (k.node == n) return to_tri(k.outcome);
    const dim other = detail::condition_of(view, facts, k.node);
    if (!d.is_known() || !other.is_known()) continue;
    if (c.decide_eq(d, other) == tri::yes) return to_tri(k.outcome);
    if (c.decide_eq(c.add(d, other), c.one()) == tri::yes) return to_tri(!k.outcome);
  }
  return tri::unknown;
}

namespace detail {

/// The first conditional node, in topological order, whose condition is a known expression of input
/// symbols but not a constant; no_index when there is none.
inline std::uint32_t undecided_node(const graph_view& view, analysis& facts,
                                    const std::vector<decision>& decided) {
  for (node_id n : nested_order(view)) {
    if (view.scopes(n).empty() || view.operator_name(n) != "If" || view.inputs(n)[0] == absent)
      continue;
    const dim d = condition_of(view, facts, n);
    if (!d.is_known() || !facts.context().only_input_symbols(d)) continue;
    if (outcome_of(view, facts, decided, n) == tri::unknown) return n.index;
  }
  return no_index;
}

}  // namespace detail

/// Analyses a graph once per combination of outcomes of its conditions on sizes, at most `most`;
/// with more, one analysis that joins the arms instead. Combinations that contradict the declared
/// facts are left out. Errors: those of `analyze`, where no combination remains.
inline result<std::vector<scenario>> analyze_scenarios(const graph_view& view, const registry& ops,
                                                       const analysis_options& options = {},
                                                       std::size_t most = 8) {
  SOD2_ASSIGN(analysis general, analyze(view, ops, options));
  std::vector<scenario> done, open;
  open.push_back({{}, options.decided, std::move(general)});
  error last;
  while (!open.empty()) {
    scenario s = std::move(open.back());
    open.pop_back();
    const std::uint32_t n = detail::undecided_node(view, s.facts, s.decided);
    if (n == no_index) {
      done.push_back(std::move(s));
      if (done.size() + open.size() <= most) continue;
      break;
    }
    if (done.size() + open.size() + 2 > most) {
      done.clear();
      break;
    }
    const dim d = s.facts.fact(view.inputs(node_id{n})[0]).elements[0];
    for (const bool outcome : {false, true}) {  // the first arm is looked at first
      analysis_options assumed = options;
      assumed.decided = s.decided;
      assumed.decided.push_back({node_id{n}, outcome});
      auto facts = analyze(view, ops, assumed);
      if (!facts) {
        last = std::move(facts).error();
        continue;
      }
      std::string text = s.condition.empty() ? std::string() : s.condition + " and ";
      text += detail::condition_text(s.facts.context(), d, outcome);
      open.push_back({std::move(text), assumed.decided, std::move(*facts)});
    }
  }
  if (!done.empty()) return done;
  if (open.empty() && !last.ok()) return last;
  SOD2_ASSIGN(analysis joined, analyze(view, ops, options));
  done.push_back({{}, options.decided, std::move(joined)});
  return done;
}

}  // namespace sod2
