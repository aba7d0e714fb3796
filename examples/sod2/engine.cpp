#include "engine.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include <sys/resource.h>
#include <unistd.h>

#include <sod2/kernel/table.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/runtime/compile.hpp>

namespace tool {

sod2::program compile_model(const loaded_model& m, const shape_options& shapes,
                            const run_options& o) {
  sod2::compile_options options;
  options.analysis = shapes.analysis;
  options.fusion.enabled = !o.no_fusion;
  options.reorder = !o.no_order;
  options.share_memory = !o.no_memory;
  options.describe_memory = o.describe_memory;
  options.threads = o.threads;
  options.all_branches = o.policy == "all_branches";
  return need(sod2::compile(m.view, sod2::standard_registry(), sod2::standard_kernels(), options));
}

namespace {
// What does not fit into the machine is refused with a number instead of failing somewhere.
std::int64_t physical_memory_bytes() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

sod2::session_options session_options_of(thread_pool& pool, const run_options& o,
                                         void (*observer)(void*, std::size_t), void* context) {
  sod2::session_options s;
  s.pool = pool.ref();
  s.memory_budget = o.memory_budget > 0 ? o.memory_budget : physical_memory_bytes();
  s.observer = observer;
  s.observer_context = context;
  return s;
}
}  // namespace
running::running(const sod2::program& p, const run_options& o,
                 void (*observer)(void* context, std::size_t step), void* context)
    : pool(o.threads), session(p, session_options_of(pool, o, observer, context)) {}

symbol_values symbols_of(const loaded_model& m, const shape_options& shapes,
                         const input_list& given) {
  const sod2::graph_view& view = m.view;
  symbol_values values;
  std::map<std::string, std::string> source;  // who said so
  for (const auto& b : shapes.bound) {
    values[b.name] = b.value;
    source[b.name] = "--dim";
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].type() == sod2::dtype::undefined) continue;
    const sod2::value_id input = view.inputs()[i];
    const auto& declared = view.declared(input);
    if (!declared.has_shape || declared.dims.size() != given[i].dims().size())
      continue;  // the session says what is wrong
    for (std::size_t axis = 0; axis < declared.dims.size(); ++axis) {
      const std::string symbol = symbol_of(view, input, axis);
      if (symbol.empty()) continue;
      const std::int64_t size = given[i].dims()[axis];
      const auto [at, fresh] = values.emplace(symbol, size);
      const std::string who = "input '" + std::string(view.name(input)) + "'";
      if (!fresh && at->second != size)
        fail(sod2::error(sod2::errc::input_shape, "symbol '" + symbol + "' has two values")
                 .at_tensor(view.name(input), static_cast<int>(axis))
                 .between(std::to_string(at->second) + " by " + source[symbol],
                          std::to_string(size) + " by " + who));
      source.emplace(symbol, who);
    }
  }
  return values;
}

void allow_empty(const loaded_model& m, const input_list& given, shape_options& shapes) {
  const sod2::graph_view& view = m.view;
  for (std::size_t i = 0; i < given.size() && i < view.inputs().size(); ++i)
    for (std::size_t axis = 0; axis < given[i].dims().size(); ++axis) {
      if (given[i].dims()[axis] != 0) continue;
      if (axis >= view.declared(view.inputs()[i]).dims.size()) break;
      const std::string symbol = symbol_of(view, view.inputs()[i], axis);
      auto& list = shapes.analysis.symbols;
      const bool known =
          std::any_of(list.begin(), list.end(), [&](const auto& s) { return s.name == symbol; });
      if (!symbol.empty() && !known) list.push_back({symbol, {0, sod2::default_symbol_max, 1, 0}});
    }
}

std::vector<std::string> unbound_symbols(const loaded_model& m, const shape_options& shapes,
                                         const symbol_values& values) {
  std::vector<std::string> names;
  const auto note = [&](const std::string& symbol) {
    if (symbol.empty() || values.contains(symbol)) return;
    for (const auto& s : shapes.analysis.symbols)  // a range of one value is a value
      if (s.name == symbol && s.facts.lo == s.facts.hi) return;
    if (std::find(names.begin(), names.end(), symbol) == names.end()) names.push_back(symbol);
  };
  for (sod2::value_id v : m.view.inputs())
    for (std::size_t axis = 0; axis < m.view.declared(v).dims.size(); ++axis)
      note(symbol_of(m.view, v, axis));
  return names;
}

namespace {

// Rows of the smallest table that the elements of v index, directly or through casts and views.
std::int64_t index_limit(const sod2::graph_view& view, sod2::value_id v, int depth) {
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  if (depth > 8) return limit;
  for (sod2::node_id n : view.consumers(v)) {
    const std::string_view op = view.operator_name(n);
    const auto inputs = view.inputs(n);
    if ((op == "Gather" || op == "GatherElements") && inputs.size() > 1 && inputs[1] == v) {
      const auto& table = view.declared(inputs[0]);
      const std::int64_t rank = static_cast<std::int64_t>(table.dims.size());
      std::int64_t axis = view.attributes(n).integer("axis", 0);
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) continue;
      const std::int64_t rows = table.dims[static_cast<std::size_t>(axis)].size;
      if (rows >= 0) limit = std::min(limit, rows);
    } else if (op == "Cast" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" ||
               op == "Identity" || op == "Flatten" || op == "Transpose" || op == "Slice") {
      if (inputs[0] == v) limit = std::min(limit, index_limit(view, view.outputs(n)[0], depth + 1));
    }
  }
  return limit;
}

void store(host_tensor& t, std::size_t k, std::int64_t value) {
  std::byte* out = static_cast<std::byte*>(t.data()) + k * sod2::bytes_of(t.type());
  std::memcpy(out, &value, sod2::bytes_of(t.type()));  // little-endian: the low bytes
}
}  // namespace

void fill_inputs(const loaded_model& m, const shape_options& shapes, const symbol_values& values,
                 std::uint64_t seed, input_list& inputs) {
  const sod2::graph_view& view = m.view;
  inputs.resize(view.inputs().size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].type() != sod2::dtype::undefined) continue;
    const sod2::value_id v = view.inputs()[i];
    const auto& declared = view.declared(v);
    const std::string name(view.name(v));
    if (declared.kind != sod2::fact_kind::tensor || !declared.has_shape)
      fail(sod2::error(sod2::errc::input_missing,
                       "only tensors of known rank can be made up: give --input")
               .at_tensor(name));
    std::vector<std::int64_t> dims;
    for (std::size_t axis = 0; axis < declared.dims.size(); ++axis) {
      const std::string symbol = symbol_of(view, v, axis);
      if (symbol.empty()) {
        dims.push_back(declared.dims[axis].size);
        continue;
      }
      const auto known = values.find(symbol);
      std::int64_t size = known == values.end() ? -1 : known->second;
      for (const auto& s : shapes.analysis.symbols)
        if (size < 0 && s.name == symbol && s.facts.lo == s.facts.hi) size = s.facts.lo;
      if (size < 0)
        fail(sod2::error(sod2::errc::unbound_symbol,
                         "symbol '" + symbol + "' has no value: give --dim '" + symbol + "=VALUE'")
                 .at_tensor(name, static_cast<int>(axis)));
      dims.push_back(size);
    }
    const std::int64_t limit = index_limit(view, v, 0);
    const std::int64_t below = limit == std::numeric_limits<std::int64_t>::max() ? 2 : limit;
    inputs[i] = random_tensor(declared.type, std::move(dims), seed + 0x9e3779b9ULL * i,
                              std::min<std::int64_t>(below, 100));
    for (const std::string& shaped : shapes.analysis.shape_inputs) {
      if (shaped != name || !sod2::is_integer(declared.type)) continue;
      for (std::int64_t k = 0; k < inputs[i].count(); ++k)
        if (const auto e = values.find(name + "[" + std::to_string(k) + "]"); e != values.end())
          store(inputs[i], static_cast<std::size_t>(k), e->second);
    }
  }
}

std::vector<sod2::tensor_view> views_of(const input_list& inputs) {
  std::vector<sod2::tensor_view> views;
  for (const host_tensor& t : inputs) views.push_back(t.view());
  return views;
}

std::vector<std::int64_t> in_order(const sod2::program& p, const symbol_values& values) {
  std::vector<std::int64_t> out;
  for (const sod2::program_symbol& s : p.symbols()) {
    const auto known = values.find(s.name);
    if (known == values.end() && s.lo != s.hi)
      fail(sod2::errc::unbound_symbol,
           "symbol '" + s.name + "' has no value: give --dim '" + s.name + "=VALUE'");
    out.push_back(known == values.end() ? s.lo : known->second);
  }
  return out;
}

std::int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace tool
