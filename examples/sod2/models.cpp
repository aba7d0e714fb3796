#include "models.hpp"

#include <algorithm>
#include <cstdio>
#include <unordered_map>

#include <sod2/expr/print.hpp>

namespace tool {

namespace {
// A value by its scoped name in a view, or by its own name in the main graph.
void add_outputs(sod2::onnx::model& m, const std::vector<std::string>& names) {
  sod2::graph& g = m.graph;
  std::unordered_map<std::string_view, sod2::value_id> main;
  for (sod2::node_id n : g.scopes()[0].nodes)
    for (sod2::value_id v : g[n].outputs) main.emplace(g[v].name, v);
  for (sod2::value_id v : g.scopes()[0].inputs) main.emplace(g[v].name, v);
  for (const std::string& name : names) {
    const auto found = main.find(name);
    if (found == main.end() || found->second == sod2::absent)
      fail(sod2::error(sod2::errc::undefined_value, "no tensor of the main graph has this name")
               .at_tensor(name));
    g.scopes()[0].outputs.push_back(found->second);
  }
}
}  // namespace

std::unique_ptr<loaded_model> load_model(const std::string& path,
                                         const std::vector<std::string>& extra_outputs) {
  const stopwatch watch;
  auto m = std::make_unique<loaded_model>();
  m->path = path;
  m->model = need(sod2::onnx::read_file(path));
  m->own_outputs = m->model.graph.scopes()[0].outputs.size();
  with_file(*m, [&] {
    add_outputs(m->model, extra_outputs);
    m->view = need(sod2::make_view(m->model.graph));
  });
  m->load_ms = watch.ms();
  return m;
}

void print_warnings(const loaded_model& m) {
  for (const std::string& w : m.model.warnings) {
    std::string text = w;
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    std::fprintf(stderr, "sod2: warning: %s: %s\n", m.path.c_str(), text.c_str());
  }
}

std::string symbol_of(const sod2::graph_view& view, sod2::value_id input, std::size_t axis) {
  const sod2::declared_dim& d = view.declared(input).dims[axis];
  if (d.size >= 0 || sod2::is_container(view.declared(input).kind)) return {};
  if (!d.symbol.empty()) return std::string(d.symbol);
  return std::string(view.name(input)) + "." + std::to_string(axis);
}

shape_options read_shapes(const loaded_model& m, const model_options& o, bool bind_in_analysis) {
  const sod2::graph_view& view = m.view;
  std::vector<std::string> symbols, inputs;
  for (sod2::value_id v : view.inputs()) {
    inputs.emplace_back(view.name(v));
    for (std::size_t axis = 0; axis < view.declared(v).dims.size(); ++axis)
      symbols.push_back(symbol_of(view, v, axis));
  }
  const auto among = [](const std::vector<std::string>& names, const std::string& name) {
    return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
  };
  shape_options s;
  for (const std::string& name : o.shape_inputs) {
    if (!among(inputs, name))
      fail(sod2::error(sod2::errc::invalid_argument,
                       "--shape-input: the model has no input '" + name + "'"));
    s.analysis.shape_inputs.push_back(name);
  }
  for (const std::string& text : o.dims) {
    dim_option d = parse_dim(text);
    const std::size_t bracket = d.name.rfind('[');
    const bool element =
        bracket != std::string::npos && among(s.analysis.shape_inputs, d.name.substr(0, bracket));
    if (!element && !among(symbols, d.name))
      fail(sod2::errc::invalid_argument, "--dim: no input dim is called '" + d.name + "'");
    if (d.bound) {
      if (const std::int64_t* earlier = s.value_of(d.name); earlier != nullptr) {
        if (*earlier != d.facts.lo)
          fail(sod2::error(sod2::errc::contradiction, "--dim: '" + d.name + "' has two values")
                   .between(std::to_string(*earlier), std::to_string(d.facts.lo)));
        continue;
      }
      s.bound.push_back({d.name, d.facts.lo});
      if (!bind_in_analysis) continue;
    }
    // Ranges of one symbol given twice meet.
    const auto known = std::find_if(s.analysis.symbols.begin(), s.analysis.symbols.end(),
                                    [&](const auto& k) { return k.name == d.name; });
    if (known == s.analysis.symbols.end()) {
      s.analysis.symbols.push_back({d.name, d.facts});
      continue;
    }
    sod2::symbol_facts& f = known->facts;
    f.lo = std::max(f.lo, d.facts.lo);
    f.hi = std::min(f.hi, d.facts.hi);
    if (d.facts.step > 1) f.step = f.step / sod2::gcd(f.step, d.facts.step) * d.facts.step;
  }
  return s;
}

json dim_json(sod2::dim_context& c, sod2::dim d) {
  if (!d.is_known()) return nullptr;
  d = c.resolve(d);
  if (c.is_constant(d)) return c.value(d);
  return sod2::print(c, d);
}

sod2::onnx::annotation annotation_of(sod2::analysis& facts, sod2::value_id v) {
  sod2::dim_context& c = facts.context();
  const sod2::symbolic_fact& f = facts.fact(v);
  sod2::onnx::annotation a;
  a.kind = f.kind;
  a.type = f.type;
  a.rank_known = f.rank_known();
  if (!a.rank_known) return a;
  for (sod2::dim d : f.dims) {
    sod2::dim_spec s;
    if (d.is_known()) {
      d = c.resolve(d);
      if (c.is_constant(d)) {
        s.size = c.value(d);
      } else {
        s.symbol = sod2::print(c, d);
        // A symbol alone keeps its name as it is, without the quotes of odd names.
        if (s.symbol.size() > 1 && s.symbol.front() == '"' &&
            s.symbol.find('"', 1) == s.symbol.size() - 1)
          s.symbol = s.symbol.substr(1, s.symbol.size() - 2);
      }
    }
    a.dims.push_back(std::move(s));
  }
  return a;
}

}  // namespace tool
