#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <sod2/graph/graph.hpp>
#include <sod2/graph/view.hpp>

using namespace sod2;

TEST_CASE("the builder makes nodes, constants and attributes that the traits give back") {
  graph g;
  g.set_opset(13);
  const value_id x = g.input("x", dtype::f32, {"N", 3, dim_spec{}});
  const value_id w = g.constant<float>("w", {2, 2}, {1.0F, 2.0F, 3.0F, 4.0F});
  const std::vector<value_id> parts =
      g.ops("Split", {x}, 2, {{"axis", 1}, {"sizes", {1, 2}}, {"mode", "even"}, {"ratio", 0.5}});
  g.output(parts[1], "rest");

  using traits = graph_traits<graph>;
  const node_id n = g.scopes()[0].nodes[0];
  CHECK(traits::operator_name(g, n) == "Split");
  CHECK(traits::opset(g, n) == 13);
  CHECK(traits::value_name(g, parts[1]) == "rest");
  CHECK(traits::attribute(g, n, "axis").integer == 1);
  CHECK(traits::attribute(g, n, "sizes").integers.size() == 2);
  CHECK(traits::attribute(g, n, "mode").string == "even");
  CHECK(traits::attribute(g, n, "ratio").real == 0.5);
  CHECK_FALSE(traits::attribute(g, n, "none"));

  const declared_value of_x = traits::facts(g, x);
  REQUIRE(of_x.dims.size() == 3);
  CHECK(of_x.dims[0].symbol == "N");
  CHECK(of_x.dims[1].size == 3);
  CHECK((of_x.dims[2].size == -1 && of_x.dims[2].symbol.empty()));
  const declared_value of_w = traits::facts(g, w);
  CHECK(of_w.constant.present());
  CHECK(of_w.constant.count() == 4);
  CHECK(of_w.constant.bytes == 16);
}

TEST_CASE("a later constant of the same value replaces the earlier one") {
  graph g;
  const value_id w = g.constant<std::int64_t>("w", {1}, {1});
  g.set_constant(w, constant_tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{5, 6}));
  CHECK(g.constants().size() == 1);
  CHECK(graph_traits<graph>::facts(g, w).constant.count() == 2);
}

TEST_CASE("copies of constants own their bytes") {
  graph copy;
  {
    graph g;
    g.output(g.op("Identity", {g.constant<std::int32_t>("w", {2}, {7, 8})}));
    copy = g;
    g = graph();  // its memory is gone
  }
  auto view = make_view(copy);
  REQUIRE(view);
  const value_id w = view->inputs(view->order()[0])[0];
  const constant_view c = view->declared(w).constant;
  REQUIRE(c.bytes == 8);
  std::int32_t second = 0;
  std::memcpy(&second, c.data + 4, 4);
  CHECK(second == 8);
}

TEST_CASE("string constants are std::string objects") {
  graph g;
  const value_id s =
      g.constant("s", constant_tensor::of_strings({2}, {"a", "long enough for heap"}));
  const constant_view c = graph_traits<graph>::facts(g, s).constant;
  CHECK(c.type == dtype::string);
  CHECK(reinterpret_cast<const std::string*>(c.data)[1] == "long enough for heap");
}
