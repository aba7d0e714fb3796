// Every rewriting rule: fewer launches, the same results; and where a rule must keep its hands off.
#include "unit/runtime/support.hpp"

using namespace sod2;
using test::tensor;

namespace {

sod2::program plain(const graph& g) {
  compile_options options;
  options.rewrite.enabled = false;
  return test::compiled(g, options);
}
void check_same(const graph& g, const std::vector<tensor>& inputs, std::uint64_t saved) {
  const program before = plain(g), after = test::compiled(g);
  CHECK(before.summary().nodes_imported == after.summary().nodes_imported);
  CHECK(before.summary().nodes == after.summary().nodes + saved);
  const auto expected = test::run(before, inputs), got = test::run(after, inputs);
  REQUIRE(expected.size() == got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(test::close(got[i], expected[i]));
    CHECK(after.outputs()[i].name == before.outputs()[i].name);
  }
}
value_id weights(graph& g, std::vector<std::int64_t> dims, std::uint32_t seed) {
  const tensor t = tensor::random(std::move(dims), seed);
  return g.constant<float>("w" + std::to_string(seed), t.dims, t.data);
}
value_id positive(graph& g, std::int64_t n, std::uint32_t seed) {
  tensor t = tensor::random({n}, seed);
  for (float& v : t.data) v = v * v + 0.1F;
  return g.constant<float>("v" + std::to_string(seed), t.dims, t.data);
}
value_id normalised(graph& g, value_id x, std::int64_t channels) {
  return g.op("BatchNormalization",
              {x, weights(g, {channels}, 11), weights(g, {channels}, 12),
               weights(g, {channels}, 13), positive(g, channels, 14)},
              {{"epsilon", 1e-3}});
}

}  // namespace

TEST_CASE("rewrite: normalisation goes into convolutions") {
  for (const std::int64_t groups : {1, 2})
    for (const bool bias : {false, true})
      for (const bool transposed : {false, true}) {
        CAPTURE(groups);
        CAPTURE(bias);
        CAPTURE(transposed);
        graph g;
        g.set_opset(17);
        const value_id x = g.input("x", dtype::f32, {"N", 4, "H", 5});
        std::vector<value_id> in{x, transposed ? weights(g, {4, 6 / groups, 3, 3}, 1)
                                               : weights(g, {6, 4 / groups, 3, 3}, 1)};
        if (bias) in.push_back(weights(g, {6}, 2));
        const value_id y = g.op(transposed ? "ConvTranspose" : "Conv", in, {{"group", groups}});
        g.output(g.op("Relu", {normalised(g, y, 6)}), "y");
        check_same(g, {tensor::random({2, 4, 7, 5}, 3)}, 1);
      }
}

TEST_CASE("rewrite: normalisation stays where its input is read elsewhere") {
  graph g;
  g.set_opset(17);
  const value_id x = g.input("x", dtype::f32, {1, 4, "H", 5});
  const value_id y = g.op("Conv", {x, weights(g, {4, 4, 1, 1}, 1)});
  g.output(g.op("Add", {normalised(g, y, 4), y}), "y");
  check_same(g, {tensor::random({1, 4, 3, 5}, 3)}, 0);
  graph h;
  h.set_opset(17);
  const value_id a = h.input("x", dtype::f32, {1, 4, "H", 5});
  const value_id b = h.op("Conv", {a, weights(h, {4, 4, 1, 1}, 1)});
  h.output(b, "conv");
  h.output(normalised(h, b, 4), "y");
  check_same(h, {tensor::random({1, 4, 3, 5}, 3)}, 0);
}

TEST_CASE("rewrite: zero padding goes into the convolution, other padding does not") {
  const auto build = [](std::vector<std::int64_t> pads, float value, const char* mode) {
    graph g;
    g.set_opset(13);
    const value_id x = g.input("x", dtype::f32, {"N", 2, "H", 6});
    const value_id padded = g.op(
        "Pad", {x, g.constant<std::int64_t>("p", {8}, pads), g.constant<float>("v", {}, {value})},
        {{"mode", mode}});
    g.output(g.op("Conv", {padded, weights(g, {3, 2, 3, 3}, 1)}, {{"pads", {1, 0, 0, 2}}}), "y");
    return g;
  };
  const std::vector<tensor> in{tensor::random({2, 2, 5, 6}, 4)};
  check_same(build({0, 0, 1, 2, 0, 0, 3, 0}, 0, "constant"), in, 1);
  check_same(build({0, 0, 1, 2, 0, 0, 3, 0}, 1, "constant"), in, 0);
  check_same(build({0, 0, 1, 2, 0, 0, 3, 0}, 0, "reflect"), in, 0);
  check_same(build({0, 0, -1, 2, 0, 0, 3, 0}, 0, "constant"), in, 0);
  check_same(build({1, 0, 1, 2, 0, 0, 3, 0}, 0, "constant"), in, 0);
}

TEST_CASE("rewrite: transpositions compose") {
  graph g;
  g.set_opset(13);
  const value_id x = g.input("x", dtype::f32, {"A", "B", "C", 2});
  const value_id y = g.op("Transpose", {x}, {{"perm", {2, 0, 3, 1}}});
  g.output(g.op("Transpose", {g.op("Transpose", {y}, {{"perm", {1, 3, 0, 2}}})},
                {{"perm", {3, 1, 0, 2}}}),
           "y");
  check_same(g, {tensor::random({3, 4, 5, 2}, 5)}, 2);
}

TEST_CASE("rewrite: equal nodes are one") {
  graph g;
  g.set_opset(13);
  const value_id x = g.input("x", dtype::f32, {"N", 8});
  const auto branch = [&](std::int64_t axis, float scale) {
    const value_id s = g.op("Softmax", {x}, {{"axis", axis}});
    return g.op("MatMul", {s, g.constant<float>("", {8, 1}, std::vector<float>(8, scale))});
  };
  // Twice the same, once with another constant, once with another attribute.
  const value_id sum = g.op("Add", {branch(1, 2), branch(1, 2)});
  g.output(g.op("Add", {sum, g.op("Add", {branch(1, 3), branch(0, 2)})}), "y");
  check_same(g, {tensor::random({5, 8}, 6)}, 3);
}

TEST_CASE("rewrite: results that the caller named, and random numbers, are not merged") {
  graph g;
  g.set_opset(13);
  const value_id x = g.input("x", dtype::f32, {"N", 8});
  g.output(g.op("Softmax", {x}), "a");
  g.output(g.op("Softmax", {x}), "b");
  check_same(g, {tensor::random({5, 8}, 6)}, 0);
  graph r;
  r.set_opset(13);
  const value_id z = r.input("x", dtype::f32, {"N", 8});
  r.output(r.op("Sub", {r.op("RandomUniformLike", {z}), r.op("RandomUniformLike", {z})}), "y");
  CHECK(plain(r).summary().nodes == test::compiled(r).summary().nodes);
}

TEST_CASE("rewrite: an arm reads what is computed outside, not what the other arm computes") {
  graph g;
  g.set_opset(13);
  const value_id x = g.input("x", dtype::f32, {"N", 8});
  const value_id flag = g.input("flag", dtype::f32, {1});
  const value_id outside = g.op("Softmax", {x});
  const value_id open = g.op("Greater", {flag, g.constant<float>("", {1}, {0.0F})});
  graph::node choose;
  choose.op = "If";
  choose.opset = 13;
  choose.inputs = {open};
  choose.outputs = {g.add_value("z")};
  for (const char* name : {"then_branch", "else_branch"}) {
    const scope_id s = g.add_scope(name);
    const scope_id before = g.enter(s);
    const value_id again = g.op("Softmax", {x});
    const value_id own = g.op("ReduceMean", {x}, {{"axes", {1}}});
    const bool then = name[0] == 't';
    g.output(then ? g.op("Add", {again, own}) : g.op("Sub", {again, own}));
    g.enter(before);
    choose.scopes.push_back(s);
  }
  const value_id z = choose.outputs[0];
  g.add_node(std::move(choose));
  g.output(g.op("Add", {z, outside}), "y");
  for (const float sign : {-1.0F, 1.0F})
    check_same(g, {tensor::random({3, 8}, 7), tensor{{1}, {sign}}}, 2);
}
