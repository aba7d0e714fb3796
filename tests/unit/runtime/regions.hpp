// What tests of regions share: nodes with sub-graphs and scalar inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "unit/runtime/support.hpp"

namespace test {

using namespace sod2;

inline tensor_view flag(std::uint8_t& b) { return {&b, nullptr, 0, dtype::boolean}; }
inline tensor_view number(std::int64_t& n) { return {&n, nullptr, 0, dtype::i64}; }

/// A node with sub-graphs, built by `fill` inside each new scope.
inline std::vector<value_id> control(
    graph& g, std::string op, std::vector<value_id> inputs, std::size_t outputs,
    std::vector<std::pair<std::string, std::function<void()>>> scopes,
    std::vector<attribute> attributes = {}) {
  graph::node n;
  n.op = std::move(op);
  n.inputs = std::move(inputs);
  n.attributes = std::move(attributes);
  for (auto& [name, fill] : scopes) {
    const scope_id s = g.add_scope(name);
    const scope_id outer = g.enter(s);
    fill();
    g.enter(outer);
    n.scopes.push_back(s);
  }
  for (std::size_t k = 0; k < outputs; ++k) n.outputs.push_back(g.add_value());
  const auto made = n.outputs;
  g.add_node(std::move(n));
  return made;
}
/// An input of the current scope whose type and shape follow from outside.
inline value_id formal(graph& g, std::string name) {
  const scope_id here = g.enter(scope_id{});
  g.enter(here);
  const value_id v = g.add_value(std::move(name));
  g.scopes()[here.index].inputs.push_back(v);
  return v;
}
inline session_options careful() {
  session_options o;
  o.poison = true;
  return o;
}
inline void must(const status& s) {
  if (!s) FAIL(s.error().text());
}
inline std::vector<std::int64_t> shape_of(const tensor_view& t) {
  return {t.shape().begin(), t.shape().end()};
}

}  // namespace test
