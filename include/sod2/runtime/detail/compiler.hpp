// The stages of compile in their order, and one program for each scenario where ranks need it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <sod2/fuse/planner.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/kernel/table.hpp>
#include <sod2/op/registry.hpp>
#include <sod2/rdp/analysis.hpp>
#include <sod2/rdp/scenario.hpp>
#include <sod2/runtime/compile.hpp>
#include <sod2/runtime/detail/emission.hpp>
#include <sod2/runtime/options.hpp>
#include <sod2/runtime/program.hpp>

namespace sod2 {

namespace detail {

class program_compiler final : private emission {
 public:
  using emission::emission;

  result<program> run() {
    SOD2_ASSIGN(facts_, analyze(view_, ops_, options_.analysis));
    constant_.resize(view_.value_count());
    constant_state_.assign(view_.value_count(), 0);
    roles_.assign(view_.node_count(), node_role::dead);
    binds_.resize(view_.node_count());
    scope_binds_.resize(view_.scope_count());
    needed_.assign(view_.value_count(), 0);
    container_of_.assign(view_.value_count(), no_slot);
    bound_.assign(context().symbol_count(), 0);
    wanted_.assign(context().symbol_count(), 0);
    for (std::uint32_t s = 0; s < bound_.size(); ++s) {
      bound_[s] = context().origin_of_symbol(s) != symbol_origin::inferred;
      late_symbols_ = late_symbols_ || bound_[s] == 0;
    }
    impossible_.resize(view_.scope_count());
    for (const impossible_scope& k : facts_.impossible()) impossible_[k.scope.index] = k;
    SOD2_TRY(assign_roles(graph_view::root()));
    mark_needed(graph_view::root());
    out_.run_tile = kernels_.run_tile;
    out_.threads = options_.threads;
    out_.all_branches = options_.all_branches;
    out_.upper_bounds = options_.upper_bounds;
    out_.summary.nodes_imported = view_.node_count();
    describe_symbols();
    SOD2_TRY(compile_scope(graph_view::root()));
    return program(std::move(out_));
  }

 private:
  result<std::uint32_t> compile_scope(scope_id s) override {
    scope_work outer = std::exchange(w_, scope_work{});
    w_.scope = s;
    w_.region = static_cast<std::uint32_t>(out_.regions.size());
    out_.regions.emplace_back();
    w_.tensor_of.assign(view_.value_count(), no_slot);
    w_.storage_of.assign(view_.value_count(), no_slot);
    w_.segment_of_symbol.assign(context().symbol_count(), 0);
    if (is_compiled(s)) {
      fusion_plan fused = plan_fusion(view_, facts_, roles_, options_.fusion, s);
      SOD2_TRY(lower_groups(fused));
      assign_storages();
      SOD2_TRY(choose_order());
      share_in_place();
      SOD2_TRY(emit());
    } else {
      here().segments.resize(1);
    }
    here().impossible = impossible_[s.index].text;
    const std::uint32_t region = w_.region;
    required_ = w_.required;
    w_ = std::move(outer);
    return region;
  }
};

/// One program per scenario; each is guarded by the conditions that led to it.
inline result<program> compile_variants(const graph_view& view, const registry& ops,
                                        const kernel_table& kernels, const compile_options& options,
                                        const std::vector<scenario>& scenarios) {
  std::vector<program_data> variants;
  for (const scenario& s : scenarios) {
    compile_options assumed = options;
    assumed.analysis.decided = options.analysis.decided;
    std::vector<program_guard> guards;
    for (std::size_t k = options.analysis.decided.size(); k < s.decided.size(); ++k) {
      // The condition as it stands before its outcome is assumed.
      SOD2_ASSIGN(analysis before, analyze(view, ops, assumed.analysis));
      size_program_builder builder(before.context());
      builder.add_output(before.fact(view.inputs(s.decided[k].node)[0]).elements[0]);
      guards.push_back({std::move(builder).finish(), s.decided[k].outcome});
      assumed.analysis.decided.push_back(s.decided[k]);
    }
    SOD2_ASSIGN(program variant, program_compiler(view, ops, kernels, assumed).run());
    variants.push_back(std::move(variant).release());
    variants.back().guards = std::move(guards);
  }
  program_data first = std::move(variants[0]);
  for (std::size_t k = 1; k < variants.size(); ++k)
    first.variants.emplace_back(std::move(variants[k]));
  return program(std::move(first));
}

/// Compiles the graph as it is.
inline result<program> compile_view(const graph_view& view, const registry& ops,
                                    const kernel_table& kernels, const compile_options& options) {
  auto general = program_compiler(view, ops, kernels, options).run();
  if (general || general.error().code() != errc::rank_unknown) return general;
  // Ranks that conditions on sizes decide: one variant for each of their outcomes.
  SOD2_ASSIGN(const std::vector<scenario> scenarios,
              analyze_scenarios(view, ops, options.analysis));
  if (scenarios.empty() || scenarios[0].condition.empty()) return general;
  return compile_variants(view, ops, kernels, options, scenarios);
}

}  // namespace detail

SOD2_HEAVY result<program> compile(const graph_view& view, const registry& ops,
                                   const kernel_table& kernels, const compile_options& options) {
  if (!options.rewrite.enabled || !can_rewrite(view))
    return detail::compile_view(view, ops, kernels, options);
  const rewritten_graph better = rewrite(view, ops, options.rewrite);
  SOD2_ASSIGN(const graph_view rewritten, make_view(better.result));
  compile_options same = options;
  for (decision& d : same.analysis.decided)
    for (std::uint32_t n = 0; n < rewritten.node_count(); ++n)
      if (rewritten.user_key(node_id{n}) == d.node.index) {
        d.node = node_id{n};
        break;
      }
  SOD2_ASSIGN(program made, detail::compile_view(rewritten, ops, kernels, same));
  program_data data = std::move(made).release();
  data.summary.nodes_imported = view.node_count();
  return program(std::move(data));
}

}  // namespace sod2
