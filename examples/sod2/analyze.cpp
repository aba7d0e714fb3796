// sod2 analyze: what is known of every tensor before any shape is.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sod2/expr/print.hpp>
#include <sod2/onnx.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/rdp.hpp>

#include "models.hpp"
#include "options.hpp"

namespace tool {

namespace {
struct analyze_options {
  model_options model;
  std::string output, explain, dot;
};

struct counts {
  std::size_t tensors = 0, rank_known = 0;
  std::size_t constant = 0, symbolic = 0, inferred = 0, unknown = 0;
};

void count(sod2::dim_context& c, const sod2::symbolic_fact& f, counts& n) {
  ++n.tensors;
  if (!f.rank_known()) return;
  ++n.rank_known;
  for (sod2::dim d : f.dims) {
    if (!d.is_known())
      ++n.unknown;
    else if (c.is_constant(c.resolve(d)))
      ++n.constant;
    else if (c.only_input_symbols(c.resolve(d)))
      ++n.symbolic;
    else
      ++n.inferred;
  }
}

counts count_all(const sod2::graph_view& view, sod2::analysis& facts) {
  counts n;
  for (std::size_t i = 0; i < view.node_count(); ++i)
    for (sod2::value_id v : view.outputs(sod2::node_id{i}))
      if (v != sod2::absent) count(facts.context(), facts.fact(v), n);
  return n;
}
json dims_json(const counts& n) {
  return {{"total", n.constant + n.symbolic + n.inferred + n.unknown},
          {"constant", n.constant},
          {"symbolic", n.symbolic},
          {"inferred", n.inferred},
          {"unknown", n.unknown}};
}
/// One entry a combination of outcomes of the conditions on sizes; none where there are none.
json scenarios_json(const sod2::graph_view& view, const sod2::analysis_options& options) {
  json list = json::array();
  if (view.scope_count() == 1) return list;
  auto scenarios = sod2::analyze_scenarios(view, sod2::standard_registry(), options);
  if (!scenarios) fail(std::move(scenarios).error());
  for (sod2::scenario& s : *scenarios) {
    if (s.condition.empty()) continue;
    const counts n = count_all(view, s.facts);
    list.push_back(
        {{"condition", s.condition}, {"rank_known", n.rank_known}, {"dims", dims_json(n)}});
  }
  return list;
}

json value_json(const sod2::graph_view& view, sod2::analysis& facts, sod2::value_id v) {
  const sod2::symbolic_fact& f = facts.fact(v);
  json shape;  // null: the rank is unknown
  if (f.rank_known()) {
    shape = json::array();
    for (sod2::dim d : f.dims) shape.push_back(dim_json(facts.context(), d));
  }
  return {{"name", view.name(v)}, {"dtype", name_of(f.type)}, {"shape", std::move(shape)}};
}

/// The symbols that the analysis made up, with what is known of them and where they come from.
json symbols_json(const sod2::dim_context& c) {
  json list = json::array();
  for (std::uint32_t i = 0; i < c.symbol_count(); ++i) {
    if (c.origin_of_symbol(i) != sod2::symbol_origin::inferred) continue;
    const sod2::interval range = c.range_of_symbol(i);
    list.push_back({{"name", c.name_of_symbol(i)},
                    {"lower", range.lo},
                    {"upper", range.hi},
                    {"source", c.note_of_symbol(i)}});
  }
  return list;
}

/// The facts by the graph's own values, as the ONNX writer takes them.
std::vector<sod2::onnx::annotation> annotations(const loaded_model& m, sod2::analysis& facts) {
  std::vector<sod2::onnx::annotation> out(m.model.graph.values().size());
  for (std::size_t i = 1; i < m.view.value_count(); ++i)
    out[m.view.user_key(sod2::value_id{i})] = annotation_of(facts, sod2::value_id{i});
  return out;
}

std::string dot_text(const sod2::graph_view& view, sod2::analysis& facts) {
  const auto quoted = [](std::string_view text) {
    std::string out = "\"";
    for (char ch : text) {
      if (ch == '"' || ch == '\\') out += '\\';
      out += static_cast<unsigned char>(ch) < 0x20 ? ' ' : ch;
    }
    return out + "\"";
  };
  constexpr const char* colours[] = {"gray85", "white", "lightblue", "salmon"};
  std::string out = "digraph model {\n  node [shape=box, style=filled];\n";
  const auto source = [&](sod2::value_id v) {
    const std::uint32_t p = view.producer(v);
    return p == sod2::no_index ? "v" + std::to_string(v.index) : "n" + std::to_string(p);
  };
  for (sod2::value_id v : view.inputs())
    out += "  " + source(v) + " [shape=ellipse, fillcolor=white, label=" + quoted(view.name(v)) +
           "];\n";
  for (std::size_t i = 0; i < view.node_count(); ++i) {
    const sod2::node_id n{i};
    const auto effective = static_cast<std::size_t>(facts.node(n).effective);
    out += "  n" + std::to_string(i) + " [fillcolor=" + colours[effective] + ", label=" +
           quoted(std::string(view.operator_name(n)) + "  " + std::string(view.name(n))) + "];\n";
    for (sod2::value_id v : view.inputs(n))
      if (v != sod2::absent && !view.is_constant(v))
        out += "  " + source(v) + " -> n" + std::to_string(i) + " [label=" + quoted(facts.text(v)) +
               "];\n";
  }
  for (sod2::value_id v : view.outputs())
    out += "  o" + std::to_string(v.index) +
           " [shape=ellipse, fillcolor=white, label=" + quoted(view.name(v)) + "];\n  " +
           source(v) + " -> o" + std::to_string(v.index) + " [label=" + quoted(facts.text(v)) +
           "];\n";
  return out + "}\n";
}

json explain(const sod2::graph_view& view, sod2::analysis& facts, const std::string& what) {
  const std::size_t colon = what.rfind(':');
  int axis = -1;
  bool good = colon != std::string::npos && colon > 0 && colon + 1 < what.size() &&
              what.size() - colon <= 5;
  for (std::size_t k = colon + 1; good && k < what.size(); ++k)
    good = what[k] >= '0' && what[k] <= '9';
  if (!good) fail(sod2::errc::invalid_argument, "--explain " + what + ": expected TENSOR:AXIS");
  axis = std::stoi(what.substr(colon + 1));
  const std::string name = what.substr(0, colon);
  for (std::size_t i = 1; i < view.value_count(); ++i) {
    if (view.name(sod2::value_id{i}) != name) continue;
    json steps = json::array();
    for (const auto& s : need(sod2::explain(view, facts, sod2::value_id{i}, axis)))
      steps.push_back({{"expression", s.expression},
                       {"tensor", view.name(s.value)},
                       {"axis", s.axis},
                       {"op", s.op},
                       {"node", s.node}});
    return steps;
  }
  fail(sod2::error(sod2::errc::undefined_value, "no tensor has this name").at_tensor(name));
}

int analyze(const analyze_options& o, bool as_json) {
  const auto m = load_model(o.model.model);
  const sod2::graph_view& view = m->view;
  return with_file(*m, [&] {
    const shape_options shapes = read_shapes(*m, o.model, true);
    const stopwatch watch;
    sod2::analysis facts = need(sod2::analyze(view, sod2::standard_registry(), shapes.analysis));
    json scenarios = scenarios_json(view, shapes.analysis);
    const double analyze_ms = watch.ms();

    const counts n = count_all(view, facts);
    json values = json::array();
    for (sod2::value_id v : view.inputs()) values.push_back(value_json(view, facts, v));
    json base = {{"ISDO", 0}, {"ISDOS", 0}, {"ISVDOS", 0}, {"EDO", 0}}, effective = base;
    for (std::size_t i = 0; i < view.node_count(); ++i) {
      const sod2::node_id node{i};
      const auto& info = facts.node(node);
      json& b = base[std::string(name_of(info.op.row->info->base))];
      b = b.get<int>() + 1;
      json& e = effective[std::string(name_of(info.effective))];
      e = e.get<int>() + 1;
      for (sod2::value_id v : view.outputs(node)) {
        if (v == sod2::absent) continue;
        values.push_back(value_json(view, facts, v));
      }
    }
    json assertions = json::array();
    for (const sod2::assertion& a : facts.assertions()) assertions.push_back(a.text);
    json report = {{"model", m->path},
                   {"nodes_imported", m->model.nodes_imported},
                   {"tensors", n.tensors},
                   {"rank_known", n.rank_known},
                   {"dims", dims_json(n)},
                   {"class_base", std::move(base)},
                   {"class_effective", std::move(effective)},
                   {"regions", sod2::partition(view, facts).size()},
                   {"assertions", std::move(assertions)},
                   {"scenarios", std::move(scenarios)},
                   {"load_ms", rounded(m->load_ms)},
                   {"analyze_ms", rounded(analyze_ms)}};
    if (!o.explain.empty()) report["explain"] = explain(view, facts, o.explain);
    if (!o.output.empty()) {
      const auto known = annotations(*m, facts);
      write_text(o.output, need(sod2::onnx::annotate(m->model, known)));
    }
    if (!o.dot.empty()) write_text(o.dot, dot_text(view, facts));
    if (as_json) {
      report["values"] = std::move(values);
      report["symbols"] = symbols_json(facts.context());
    } else {
      json shown = json::object();
      for (sod2::value_id v : view.inputs()) shown[std::string(view.name(v))] = facts.text(v);
      report["inputs"] = std::move(shown);
      shown = json::object();
      for (sod2::value_id v : view.outputs()) shown[std::string(view.name(v))] = facts.text(v);
      report["outputs"] = std::move(shown);
    }
    print_report(report, as_json);
    print_warnings(*m);
    return static_cast<int>(success);
  });
}
}  // namespace

void add_analyze(CLI::App& app, std::vector<command>& list) {
  command& c = add_command(app, list, "analyze", "Propagates symbolic shapes through a model");
  auto o = std::make_shared<analyze_options>();
  add_model_options(*c.app, o->model);
  c.app->add_option("-o", o->output, "Writes the model with every known shape in value_info");
  c.app->add_option("--explain", o->explain, "TENSOR:AXIS, why that dim is what it is");
  c.app->add_option("--dot", o->dot, "Writes the graph for Graphviz, coloured by class");
  c.run = [o, &c] { return analyze(*o, c.as_json); };
}

}  // namespace tool
