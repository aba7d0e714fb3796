// Why a dim is what it is: the chain of nodes from a tensor's axis back to the model's inputs.
#pragma once

#include <string>
#include <vector>

#include <sod2/expr/print.hpp>
#include <sod2/rdp/analysis.hpp>

namespace sod2 {

struct explanation_step {
  value_id value;
  int axis = 0;
  std::string expression;  // of the dim
  std::string node;        // producer, empty for inputs and constants
  std::string op;
};

/// The chain for `axis` of `value`, first the dim itself. Each step follows the input dim that
/// decides it: an equal one if there is one, else the first that shares a symbol. Errors:
/// axis_range, rank_unknown.
inline result<std::vector<explanation_step>> explain(const graph_view& view, analysis& facts,
                                                     value_id value, int axis) {
  dim_context& c = facts.context();
  std::vector<explanation_step> steps;
  for (std::size_t guard = 0; guard <= view.node_count(); ++guard) {
    const symbolic_fact& f = facts.fact(value);
    if (!f.rank_known()) return error(errc::rank_unknown).at_tensor(view.name(value));
    if (axis < 0 || static_cast<std::size_t>(axis) >= f.dims.size())
      return error(errc::axis_range).at_tensor(view.name(value), axis);
    const dim d = f.dims[static_cast<std::size_t>(axis)];
    explanation_step step{value, axis, print(c, d), {}, {}};
    const std::uint32_t producer = view.producer(value);
    if (producer == no_index) {
      steps.push_back(std::move(step));
      return steps;
    }
    step.node = view.name(node_id{producer});
    step.op = view.operator_name(node_id{producer});
    steps.push_back(std::move(step));
    // Candidates: the same axis first, so that chains through elementwise operators stay straight.
    value_id next{};
    int next_axis = 0, best = 0;
    for (value_id in : view.inputs(node_id{producer})) {
      if (in == absent || !facts.fact(in).rank_known()) continue;
      const auto dims = facts.fact(in).dims.view();
      for (std::size_t k = 0; k < dims.size(); ++k) {
        int score = 0;
        if (d.is_known() && dims[k].is_known() && !c.is_constant(dims[k])) {
          if (dims[k] == d) {
            score = static_cast<int>(k) == axis ? 4 : 3;
          } else {
            bool shares = false;
            c.for_each_symbol(dims[k], [&](std::uint32_t s) {
              c.for_each_symbol(d, [&](std::uint32_t t) { shares = shares || s == t; });
            });
            if (shares) score = static_cast<int>(k) == axis ? 2 : 1;
          }
        }
        if (score > best) {
          best = score;
          next = in;
          next_axis = static_cast<int>(k);
        }
      }
    }
    if (best == 0) return steps;
    value = next;
    axis = next_axis;
  }
  return steps;
}

}  // namespace sod2
