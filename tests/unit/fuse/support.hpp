// Graphs with roles that need no kernels: by operator name.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/fuse/planner.hpp>
#include <sod2/fuse/validate.hpp>
#include <sod2/fuse/views.hpp>
#include <sod2/graph/graph.hpp>
#include <sod2/op/standard.hpp>

namespace test {

struct fusable {
  sod2::graph_view view;
  sod2::analysis facts;
  std::vector<sod2::node_role> roles;

  explicit fusable(const sod2::graph& g, const sod2::analysis_options& options = {}) {
    auto made = sod2::make_view(g);
    if (!made) FAIL(made.error().text());
    view = *std::move(made);
    auto done = sod2::analyze(view, sod2::standard_registry(), options);
    if (!done) FAIL(done.error().text());
    facts = *std::move(done);
    for (std::uint32_t i = 0; i < view.node_count(); ++i)
      roles.push_back(role_of(view.operator_name(sod2::node_id{i})));
  }
  static sod2::node_role role_of(std::string_view op) {
    using sod2::node_role;
    if (op == "Conv") return node_role::convolution;
    if (op == "MatMul") return node_role::product;
    if (op == "Flatten" || op == "Reshape" || op == "Identity") return node_role::view;
    if (op == "Softmax" || op == "ReduceMean" || op == "Transpose" || op == "Concat")
      return node_role::opaque;
    if (op == "Shape") return node_role::host;
    return node_role::pointwise;
  }
  /// A plan that has passed the validator.
  sod2::fusion_plan plan(const sod2::fusion_options& options = {}) {
    sod2::fusion_plan p = sod2::plan_fusion(view, facts, roles, options);
    const sod2::status s = validate(p);
    if (!s) FAIL(s.error().text());
    return p;
  }
  sod2::status validate(const sod2::fusion_plan& p) {
    return sod2::validate(view, facts, roles, p);
  }
  /// "Conv Sigmoid Mul | Softmax": the operators of each group.
  std::string text(const sod2::fusion_plan& p) const {
    std::string out;
    for (const sod2::fused_group& g : p.groups) {
      if (!out.empty()) out += " | ";
      for (std::size_t i = 0; i < g.nodes.size(); ++i)
        out.append(i > 0 ? " " : "").append(view.operator_name(g.nodes[i]));
    }
    return out;
  }
  sod2::node_id node(std::size_t i) const { return view.order()[i]; }
};

inline sod2::analysis_options symbols(std::vector<sod2::symbol_declaration> declared) {
  sod2::analysis_options out;
  out.symbols = std::move(declared);
  return out;
}

}  // namespace test
