// Random graphs of pointwise, heavy, view and opaque nodes with random extra edges: every plan must
// pass the validator, whatever the limits.
#include <random>

#include "unit/fuse/support.hpp"

using namespace sod2;

namespace {

// Values of four shapes: (N, 16), (N, 1), (N, 8), (N, 4, 4).
class random_graph {
 public:
  random_graph(std::uint32_t seed, int nodes) : random_(seed) {
    w16_ = g_.constant<float>("w16", {16, 16}, std::vector<float>(256, 0.1F));
    w8_ = g_.constant<float>("w8", {16, 8}, std::vector<float>(128, 0.1F));
    four_ = g_.constant<std::int64_t>("four", {3}, {0, 4, 4});
    flat_ = g_.constant<std::int64_t>("flat", {2}, {0, 16});
    full_.push_back(g_.input("x", dtype::f32, {"N", 16}));
    full_.push_back(g_.input("y", dtype::f32, {"N", 16}));
    column_.push_back(g_.input("z", dtype::f32, {"N", 1}));
    for (int i = 0; i < nodes; ++i) add();
    // A few values leave the graph, the last ones always.
    g_.output(full_.back());
    if (pick(2) == 0) g_.output(any(full_));
    if (!narrow_.empty()) g_.output(narrow_.back());
    if (!square_.empty()) g_.output(square_.back());
  }
  const graph& get() const { return g_; }

 private:
  std::size_t pick(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }
  // Mostly recent values, sometimes any.
  value_id any(const std::vector<value_id>& of) {
    const std::size_t back =
        pick(3) == 0 ? pick(of.size()) : pick(std::min<std::size_t>(of.size(), 4));
    return of[of.size() - 1 - back];
  }
  void add() {
    switch (pick(12)) {
      case 0: full_.push_back(g_.op("MatMul", {any(full_), w16_})); break;
      case 1: narrow_.push_back(g_.op("MatMul", {any(full_), w8_})); break;
      case 2: column_.push_back(g_.op("ReduceMean", {any(full_)}, {{"axes", {1}}})); break;
      case 3: full_.push_back(g_.op("Softmax", {any(full_)})); break;
      case 4: full_.push_back(g_.op("Add", {any(full_), any(column_)})); break;
      case 5: column_.push_back(g_.op("Sigmoid", {any(column_)})); break;
      case 6: square_.push_back(g_.op("Reshape", {any(full_), four_})); break;
      case 7:
        if (!square_.empty()) full_.push_back(g_.op("Reshape", {any(square_), flat_}));
        break;
      case 8:
        if (!narrow_.empty()) narrow_.push_back(g_.op("Relu", {any(narrow_)}));
        break;
      case 9:
        if (!square_.empty()) square_.push_back(g_.op("Mul", {any(square_), any(square_)}));
        break;
      case 10: full_.push_back(g_.op("Relu", {any(full_)})); break;
      default: full_.push_back(g_.op("Mul", {any(full_), any(full_)})); break;
    }
  }

  std::mt19937 random_;
  graph g_;
  value_id w16_, w8_, four_, flat_;
  std::vector<value_id> full_, column_, narrow_, square_;
};

// ReduceMean with `axes` as an attribute is of opset 13.
graph with_opset(const graph& g, int opset) {
  graph out = g;
  for (graph::node& n : out.nodes()) n.opset = opset;
  return out;
}

}  // namespace

TEST_CASE("plans of random graphs are valid") {
  std::size_t fused = 0, single = 0;
  for (std::uint32_t seed = 0; seed < 1500; ++seed) {
    CAPTURE(seed);
    const graph g = with_opset(random_graph(seed, 6 + static_cast<int>(seed % 45)).get(), 13);
    test::fusable f(g);
    fusion_options options;
    if (seed % 3 == 1) options = {true, 4, 3, 1, 8};
    if (seed % 3 == 2) options.window = 6;
    const fusion_plan p = f.plan(options);
    for (const fused_group& group : p.groups) (group.nodes.size() > 1 ? fused : single) += 1;
    for (const fused_group& group : p.groups) {
      CHECK(group.nodes.size() <= options.max_nodes);
      if (group.nodes.size() == 1) continue;
      CHECK(group.inputs.size() <= options.max_inputs);
      CHECK(group.outputs.size() <= options.max_outputs);
    }
    const fusion_plan off = f.plan({false});
    CHECK(off.groups.size() == f.view.order().size());
  }
  CHECK(fused > 1500);  // the generator does make graphs worth fusing
  CHECK(single > 1500);
}

TEST_CASE("the same graph gives the same plan") {
  const graph g = with_opset(random_graph(7, 40).get(), 13);
  test::fusable a(g), b(g);
  const fusion_plan p = a.plan(), q = b.plan();
  REQUIRE(p.groups.size() == q.groups.size());
  for (std::size_t i = 0; i < p.groups.size(); ++i) CHECK(p.groups[i].nodes == q.groups[i].nodes);
}

TEST_CASE("dead nodes belong to no group") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const graph g = with_opset(random_graph(seed, 25).get(), 13);
    test::fusable f(g);
    // Backwards, as compile does: what nobody reads is dead.
    for (std::size_t i = f.view.order().size(); i-- > 0;) {
      const node_id n = f.view.order()[i];
      bool used = false;
      for (value_id v : f.view.outputs(n)) {
        used = used || f.view.is_graph_output(v);
        for (node_id c : f.view.consumers(v)) used = used || f.roles[c.index] != node_role::dead;
      }
      if (!used) f.roles[n.index] = node_role::dead;
    }
    const fusion_plan p = f.plan();
    for (std::uint32_t i = 0; i < f.view.node_count(); ++i)
      CHECK((p.group_of[i] == no_index) == (f.roles[i] == node_role::dead));
  }
}
