// sod2 plan: fusion, order and memory, without running anything.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sod2/op/standard.hpp>
#include <sod2/rdp.hpp>
#include <sod2/runtime.hpp>

#include "classic_fusion.hpp"
#include "engine.hpp"

namespace tool {

namespace {
struct plan_options {
  model_options model;
  run_options run;
  std::string nac, output;
};

json regions_json(const sod2::graph_view& view, sod2::analysis& facts, bool whole) {
  int total = 0, constant = 0, one = 0, few = 0, many = 0, nac = 0;
  for (const sod2::region& r : sod2::partition(view, facts, whole)) {
    ++total;
    if (r.kind == sod2::region_kind::with_nac)
      ++nac;
    else if (r.kind == sod2::region_kind::all_constant)
      ++constant;
    else
      ++(r.symbols <= 1 ? one : r.symbols <= 4 ? few : many);
  }
  return {{"total", total},   {"all_constant", constant}, {"mixed_1", one},
          {"mixed_2_4", few}, {"mixed_5_8", many},        {"with_nac", nac}};
}

json mapping_json(const sod2::graph_view& view, sod2::analysis& facts) {
  json counts = json::object();
  for (int k = 0; k <= static_cast<int>(sod2::mapping::barrier); ++k)
    counts[std::string(name_of(static_cast<sod2::mapping>(k)))] = 0;
  for (std::size_t i = 0; i < view.node_count(); ++i) {
    json& n = counts[std::string(name_of(facts.node(sod2::node_id{i}).op.row->info->map))];
    n = n.get<int>() + 1;
  }
  return counts;
}

/// Steps in their order, and the arena's buffers with live ranges; sizes and offsets where a
/// binding is given.
json plan_json(const sod2::program& p, sod2::session* bound) {
  const sod2::program_region& r = p.root();
  struct life {
    std::int64_t lower = -1, upper = -1;
    std::vector<std::string> tensors;
  };
  std::vector<life> lives(r.buffers);
  const auto touch = [&](std::uint32_t buffer, std::int64_t step) {
    life& l = lives[buffer];
    if (l.lower < 0) l.lower = step;
    l.upper = step + 1;
  };
  json groups = json::array();
  for (std::size_t s = 0; s < r.steps.size(); ++s) {
    const sod2::program_step& step = r.steps[s];
    const auto names = [&](std::uint32_t first, std::uint32_t count) {
      json list = json::array();
      for (std::uint32_t k = first; k < first + count; ++k) {
        const std::uint32_t t = r.operands[k];
        if (t == sod2::no_slot) continue;
        list.push_back(r.tensors[t].name);
        if (r.tensors[t].kind == sod2::storage_kind::arena)
          touch(r.tensors[t].storage, static_cast<std::int64_t>(s));
      }
      return list;
    };
    json inputs = names(step.input_first, step.input_count);
    for (const json& n : names(step.operand_first, step.operand_count)) inputs.push_back(n);
    json outputs = names(step.output_first, step.output_count);
    if (step.workspace != sod2::no_slot) touch(step.workspace, static_cast<std::int64_t>(s));
    groups.push_back({{"anchor", step.name},
                      {"op", step.op},
                      {"kind", name_of(step.kind)},
                      {"nodes", step.nodes},
                      {"inputs", std::move(inputs)},
                      {"outputs", std::move(outputs)}});
  }
  for (const sod2::program_tensor& t : r.tensors)
    if (t.kind == sod2::storage_kind::arena) lives[t.storage].tensors.push_back(t.name);
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? json() : json(text);
  };
  json buffers = json::array();
  for (std::size_t b = 0; b < lives.size(); ++b) {
    json entry = {{"id", b}, {"lower", lives[b].lower}, {"upper", lives[b].upper}};
    if (bound != nullptr && b < bound->buffer_offsets().size()) {
      entry["bytes"] = bound->buffer_bytes()[b];
      entry["offset"] = bound->buffer_offsets()[b];
    } else if (b < r.described.size()) {
      entry["bytes"] = text_or_null(r.described[b].bytes);
      // One for each version of the plan; the version that needs the fewest bytes is taken.
      json offsets = json::array();
      for (const std::string& at : r.described[b].offsets) offsets.push_back(text_or_null(at));
      entry["offset"] = offsets.size() == 1 ? offsets[0] : std::move(offsets);
    }
    entry["tensors"] = lives[b].tensors;
    buffers.push_back(std::move(entry));
  }
  json order = json::array();
  for (const sod2::program_step& step : r.steps) order.push_back(step.name);
  return {
      {"groups", std::move(groups)}, {"order", std::move(order)}, {"buffers", std::move(buffers)}};
}

int plan(const plan_options& given, bool as_json) {
  plan_options o = given;
  check_run_options(o.run);
  if (!o.nac.empty() && o.nac != "whole")
    fail(sod2::errc::invalid_argument, "--nac knows only 'whole'");
  const auto m = load_model(o.model.model);
  return with_file(*m, [&] {
    shape_options shapes = read_shapes(*m, o.model, false);
    const symbol_values values = symbols_of(*m, shapes, {});
    const bool bound = unbound_symbols(*m, shapes, values).empty();
    // Values of some symbols only become facts; values of all are bound afterwards.
    if (!bound) shapes = read_shapes(*m, o.model, true);

    sod2::analysis facts = need(sod2::analyze(m->view, sod2::standard_registry(), shapes.analysis));
    stopwatch watch;
    run_options planned_options = o.run;
    planned_options.describe_memory = !bound && !o.output.empty();
    const sod2::program program = compile_model(*m, shapes, planned_options);
    const double plan_ms = watch.ms();
    run_options unfused_options = o.run;
    unfused_options.no_fusion = true;
    const sod2::program unfused = compile_model(*m, shapes, unfused_options);
    const sod2::program_summary& s = program.summary();

    json arena = s.required_bytes, lower = s.lower_bound_bytes, bind_us = nullptr;
    double ratio = s.layout_ratio;
    bool proved = s.layout_proved;
    json intermediate = s.intermediate_bytes;
    json intermediate_unfused = unfused.summary().intermediate_bytes;
    std::unique_ptr<running> r;
    if (bound) {
      r = std::make_unique<running>(program, o.run);
      const std::vector<std::int64_t> bindings = in_order(program, values);
      need(r->session.bind(bindings));
      watch = stopwatch();
      need(r->session.bind(bindings));
      bind_us = rounded(watch.us());
      arena = r->session.arena_bytes();
      lower = r->session.lower_bound_bytes();
      ratio = lower.get<double>() > 0 ? arena.get<double>() / lower.get<double>() : 1.0;
      proved = proved || arena == lower;
      intermediate = r->session.intermediate_bytes();
      run_options free_options = unfused_options;
      free_options.memory_budget = 0;
      running plain(unfused, free_options);
      need(plain.session.bind(in_order(unfused, values)));
      intermediate_unfused = plain.session.intermediate_bytes();
    }
    json report = {{"model", m->path},
                   {"nodes_imported", m->model.nodes_imported},
                   {"nodes", s.nodes},
                   {"groups", s.groups},
                   {"column_a", classic_kernels(m->view, facts)},
                   {"mapping", mapping_json(m->view, facts)},
                   {"intermediate_bytes_unfused", std::move(intermediate_unfused)},
                   {"intermediate_bytes", std::move(intermediate)},
                   {"regions", regions_json(m->view, facts, o.nac == "whole")},
                   {"order_exact", s.order_exact},
                   {"plan_versions", program.root().layout.formulas().size()},
                   {"arena_bytes", std::move(arena)},
                   {"lower_bound_bytes", std::move(lower)},
                   {"ratio", ratio},
                   {"proved", proved},
                   {"layout", s.required_bytes.empty() ? "planned" : "symbolic"},
                   {"required_bytes", s.required_bytes},
                   {"plan_ms", rounded(plan_ms)},
                   {"bind_us", std::move(bind_us)}};
    if (!o.output.empty()) {
      json file = report;
      const json details = plan_json(program, r ? &r->session : nullptr);
      for (const auto& [key, value] : details.items()) file[key] = value;
      write_text(o.output, dump(file, 1) + "\n");
    }
    print_report(report, as_json);
    print_warnings(*m);
    return static_cast<int>(success);
  });
}
}  // namespace

void add_plan(CLI::App& app, std::vector<command>& list) {
  command& c = add_command(app, list, "plan", "Plans fusion, order and memory");
  auto o = std::make_shared<plan_options>();
  add_model_options(*c.app, o->model);
  add_run_options(*c.app, o->run);
  c.app->add_option("--nac", o->nac,
                    "whole: a size that only execution decides cuts as in the paper");
  c.app->add_option("-o", o->output, "Writes the plan as JSON");
  c.run = [o, &c] { return plan(*o, c.as_json); };
}

}  // namespace tool
