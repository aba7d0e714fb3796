// What tests of analysis share: build a graph, analyse it, ask for shapes by name.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/graph/graph.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/rdp/analysis.hpp>

namespace test {

inline sod2::graph_view view_of(const sod2::graph& g) {
  auto view = sod2::make_view(g);
  if (!view) FAIL(view.error().text());
  return *std::move(view);
}
inline sod2::value_id value_named(const sod2::graph_view& view, std::string_view name) {
  for (std::uint32_t i = 1; i < view.value_count(); ++i)
    if (view.name(sod2::value_id{i}) == name) return sod2::value_id{i};
  FAIL("no value called ", std::string(name));
  return {};
}

/// A graph that must analyse without an error. The graph must outlive it.
struct analysed {
  sod2::graph_view view;
  sod2::analysis facts;

  explicit analysed(const sod2::graph& g, const sod2::analysis_options& options = {},
                    const sod2::registry& operators = sod2::standard_registry())
      : view(view_of(g)) {
    auto done = sod2::analyze(view, operators, options);
    if (!done) FAIL(done.error().text());
    facts = *std::move(done);
  }
  sod2::value_id operator[](std::string_view name) const { return value_named(view, name); }
  std::string shape(std::string_view name) { return facts.text((*this)[name]); }
  /// Elements of a tracked value.
  std::string elements(std::string_view name) {
    const sod2::symbolic_fact& f = facts.fact((*this)[name]);
    return f.has_value ? sod2::print(facts.context(), f.elements.view()) : std::string("untracked");
  }
  const sod2::analysis::node_info& node(std::string_view output) {
    return facts.node(sod2::node_id{view.producer((*this)[output])});
  }
  std::vector<std::string> assertions() const {
    std::vector<std::string> out;
    for (const sod2::assertion& a : facts.assertions()) out.push_back(a.text);
    return out;
  }
};

/// The error of a graph that must not analyse.
inline sod2::error refused(const sod2::graph& g, const sod2::analysis_options& options = {},
                           const sod2::registry& operators = sod2::standard_registry()) {
  const sod2::graph_view view = view_of(g);
  auto done = sod2::analyze(view, operators, options);
  REQUIRE_FALSE(done);
  return std::move(done).error();
}

/// A range of multiples: `lo..hi%step`.
inline sod2::symbol_declaration range(std::string name, std::int64_t lo, std::int64_t hi,
                                      std::int64_t step = 1, std::int64_t offset = 0) {
  return {std::move(name), {lo, hi, step, offset}};
}

inline sod2::analysis_options symbols(std::vector<sod2::symbol_declaration> declared) {
  sod2::analysis_options out;
  out.symbols = std::move(declared);
  return out;
}

}  // namespace test
