// Models as graphs: names, scopes, constants, opsets, functions.
#include <doctest/doctest.h>

#include <sod2/graph/view.hpp>
#include <sod2/onnx.hpp>

#include "unit/onnx/craft.hpp"

using namespace craft;
using sod2::dtype;
using sod2::errc;
using sod2::onnx::read_bytes;

namespace {

// The bytes live as long as the model that points into them.
struct loaded {
  std::string bytes;
  sod2::result<sod2::onnx::model> model;
  explicit loaded(const message& m) : bytes(m.bytes()), model(read_bytes(bytes)) {}
  sod2::onnx::model& operator*() {
    REQUIRE_MESSAGE(model, (model ? std::string() : model.error().text()));
    return *model;
  }
  errc code() const { return model ? errc::ok : model.error().code(); }
  const sod2::error_detail& detail() const { return model.error().detail(); }
};

const sod2::graph::node& node_of(const sod2::graph& g, std::string_view op) {
  for (const auto& n : g.nodes())
    if (n.op == op) return n;
  FAIL("no such node");
  return g.nodes()[0];
}

}  // namespace

TEST_CASE("a small model") {
  loaded l(model(small_graph()).text(field::model_producer_name, "hand"));
  auto& m = *l;
  CHECK(m.ir_version == 8);
  CHECK(m.producer_name == "hand");
  CHECK(m.nodes_imported == 1);
  REQUIRE(m.opset_imports.size() == 1);
  CHECK(m.opset_imports[0].version == 17);
  const sod2::graph& g = m.graph;
  REQUIRE(g.scopes()[0].inputs.size() == 1);
  const auto& x = g[g.scopes()[0].inputs[0]];
  CHECK(x.name == "x");
  CHECK(x.type == dtype::f32);
  CHECK(!x.is_hint);
  REQUIRE(x.dims.size() == 2);
  CHECK(x.dims[0].symbol == "N");
  CHECK(x.dims[1].size == 4);
  const auto& y = g[g.scopes()[0].outputs[0]];
  CHECK(y.is_hint);
  CHECK(y.has_shape);
  CHECK(g.nodes()[0].opset == 17);
  CHECK(sod2::make_view(g).ok());
}

TEST_CASE("dims without a positive size or a name are unnamed") {
  message shape;
  shape.add(field::shape_dim, message().number(field::dim_value, 0))
      .add(field::shape_dim, message().number(field::dim_value, -1))
      .add(field::shape_dim, message())
      .add(field::shape_dim, message().text(field::dim_param, ""))
      .add(field::shape_dim, message().text(field::dim_param, "H"));
  const message type =
      message().number(field::tensor_type_elem, 1).add(field::tensor_type_shape, shape);
  const message input =
      info("x").add(field::value_info_type, message().add(field::type_tensor, type));
  loaded l(model(message()
                     .add(field::graph_node, node("Relu", {"x"}, {"y"}))
                     .add(field::graph_input, input)
                     .add(field::graph_output, info("y"))));
  const auto& x = *value_named((*l).graph, "x");
  REQUIRE(x.dims.size() == 5);
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(x.dims[k].size == -1);
    CHECK(x.dims[k].symbol.empty());
  }
  CHECK(x.dims[4].symbol == "H");
}

TEST_CASE("sequence and optional inputs; inputs without a shape") {
  const auto in = [](std::string_view name, sod2::fact_kind kind, bool shape) {
    const std::vector<sod2::dim_spec> dims = {2};
    return info(name).text(field::value_info_type,
                           sod2::onnx::detail::type_bytes(kind, dtype::f32, shape, dims));
  };
  loaded l(model(message()
                     .add(field::graph_node, node("F", {"s", "o", "t"}, {"y"}))
                     .add(field::graph_input, in("s", sod2::fact_kind::sequence, true))
                     .add(field::graph_input, in("o", sod2::fact_kind::optional, false))
                     .add(field::graph_input, in("t", sod2::fact_kind::tensor, false))
                     .add(field::graph_output, info("y"))));
  const sod2::graph& g = (*l).graph;
  CHECK(value_named(g, "s")->kind == sod2::fact_kind::sequence);
  CHECK(value_named(g, "s")->has_shape);
  CHECK(value_named(g, "o")->kind == sod2::fact_kind::optional);
  CHECK(value_named(g, "o")->type == dtype::f32);
  CHECK(!value_named(g, "t")->has_shape);
}

TEST_CASE("nodes in any order, a cycle and an undefined name") {
  const auto graph = [](std::string_view first, std::string_view second) {
    return message()
        .add(field::graph_node, node("Relu", {std::string(second)}, {"y"}))
        .add(field::graph_node, node("Abs", {std::string(first)}, {"h"}, "abs"))
        .add(field::graph_input, info("x", dtype::f32, {1}))
        .add(field::graph_output, info("y"));
  };
  loaded good(model(graph("x", "h")));
  CHECK(sod2::make_view((*good).graph).ok());
  loaded cycle(model(graph("y", "h")));
  CHECK(sod2::make_view((*cycle).graph).error().code() == errc::cycle);
  loaded undefined(model(graph("z", "h")));
  CHECK(undefined.code() == errc::undefined_value);
  CHECK(undefined.detail().node == "abs");
  CHECK(undefined.detail().tensor == "z");
}

TEST_CASE("names are defined once, except by Constants") {
  const auto twice = [](const message& a, const message& b) {
    return model(small_graph().add(field::graph_node, a).add(field::graph_node, b));
  };
  loaded repeated(twice(constant("c", 1), constant("c", 2)));
  const auto& m = *repeated;
  CHECK(m.warnings.size() == 1);
  CHECK(m.nodes_imported == 3);
  const auto* c = value_named(m.graph, "c");
  REQUIRE(c != nullptr);
  CHECK(elements<std::int64_t>(m.graph.constants()[c->constant]) == std::vector<std::int64_t>{2});
  CHECK(loaded(twice(constant("c", 1), node("Abs", {"x"}, {"c"}))).code() == errc::duplicate_value);
  CHECK(loaded(twice(node("Abs", {"x"}, {"c"}), node("Abs", {"x"}, {"c"}))).code() ==
        errc::duplicate_value);
  CHECK(loaded(twice(node("Abs", {"x"}, {"x"}), constant("c", 1))).code() == errc::duplicate_value);
}

TEST_CASE("initializers that are listed as inputs are constants") {
  loaded l(model(message()
                     .add(field::graph_node, node("Add", {"x", "w"}, {"y"}))
                     .add(field::graph_initializer, raw<float>("w", dtype::f32, {1}, {3}))
                     .add(field::graph_input, info("x", dtype::f32, {1}))
                     .add(field::graph_input, info("w", dtype::f32, {1}))
                     .add(field::graph_output, info("y"))));
  const sod2::graph& g = (*l).graph;
  CHECK(g.scopes()[0].inputs.size() == 1);
  CHECK(value_named(g, "w")->constant == 0);
}

TEST_CASE("every form of Constant") {
  const auto with = [](std::string_view output, const message& attribute) {
    return node("Constant", {}, {std::string(output)}).add(field::node_attribute, attribute);
  };
  const message sparse =
      message()
          .add(field::sparse_values, raw<float>("", dtype::f32, {1}, {5}))
          .add(field::sparse_indices, raw<std::int64_t>("", dtype::i64, {1}, {1}))
          .packed(field::sparse_dims, {2});
  message g = small_graph();
  g.add(field::graph_node, constant("tensor", 4));
  g.add(field::graph_node,
        with("sparse", attribute("sparse_value", 11).add(field::attribute_sparse_tensor, sparse)));
  g.add(field::graph_node, with("int", attribute("value_int", 2).number(field::attribute_i, -3)));
  g.add(field::graph_node,
        with("ints", attribute("value_ints", 7).packed(field::attribute_ints, {1, 2, 3})));
  g.add(field::graph_node,
        with("float", attribute("value_float", 1).real(field::attribute_f, 0.5F)));
  g.add(field::graph_node, with("floats", attribute("value_floats", 6)
                                              .real(field::attribute_floats, 1)
                                              .real(field::attribute_floats, 2)));
  g.add(field::graph_node,
        with("string", attribute("value_string", 3).text(field::attribute_s, "s")));
  g.add(field::graph_node, with("strings", attribute("value_strings", 8)
                                               .text(field::attribute_strings, "a")
                                               .text(field::attribute_strings, "b")));
  g.add(field::graph_node,
        with("untyped",
             message().text(field::attribute_name, "value_int").number(field::attribute_i, 9)));
  loaded l(model(g));
  const auto& m = *l;
  CHECK(m.nodes_imported == 10);
  CHECK(m.graph.nodes().size() == 1);
  const auto tensor_of = [&](std::string_view name) -> const sod2::constant_tensor& {
    const auto* v = value_named(m.graph, name);
    REQUIRE(v != nullptr);
    return m.graph.constants()[v->constant];
  };
  using ints = std::vector<std::int64_t>;
  using floats = std::vector<float>;
  CHECK(elements<std::int64_t>(tensor_of("tensor")) == ints{4});
  CHECK(elements<float>(tensor_of("sparse")) == floats{0, 5});
  CHECK(elements<std::int64_t>(tensor_of("int")) == ints{-3});
  CHECK(tensor_of("int").dims.empty());
  CHECK(elements<std::int64_t>(tensor_of("ints")) == ints{1, 2, 3});
  CHECK(elements<float>(tensor_of("float")) == floats{0.5F});
  CHECK(elements<float>(tensor_of("floats")) == floats{1, 2});
  CHECK(tensor_of("string").strings == std::vector<std::string>{"s"});
  CHECK(tensor_of("strings").strings == std::vector<std::string>{"a", "b"});
  CHECK(elements<std::int64_t>(tensor_of("untyped")) == ints{9});
  CHECK(loaded(model(small_graph().add(field::graph_node, node("Constant", {}, {"c"})))).code() ==
        errc::missing_attribute);
}

TEST_CASE("sub-graphs see outer names, also later ones, and may shadow them") {
  // late is made after the If that captures it; the else arm has an x of its own.
  const message then_graph = message()
                                 .add(field::graph_node, node("Add", {"x", "late"}, {"t"}))
                                 .add(field::graph_output, info("t"));
  const message else_graph = message()
                                 .add(field::graph_node, node("Neg", {"x"}, {"e"}))
                                 .add(field::graph_node, node("Abs", {"late"}, {"x"}))
                                 .add(field::graph_output, info("e"));
  const message choice =
      node("If", {"c"}, {"y"}, "choice")
          .add(field::node_attribute, graph_attribute("else_branch", else_graph))
          .add(field::node_attribute, graph_attribute("then_branch", then_graph));
  loaded l(model(message()
                     .add(field::graph_node, choice)
                     .add(field::graph_node, node("Exp", {"x"}, {"late"}))
                     .add(field::graph_input, info("x", dtype::f32, {1}))
                     .add(field::graph_input, info("c", dtype::boolean, {}))
                     .add(field::graph_output, info("y"))));
  const auto& m = *l;
  const sod2::graph& g = m.graph;
  CHECK(m.nodes_imported == 5);
  const auto& choice_node = node_of(g, "If");
  REQUIRE(choice_node.scopes.size() == 2);
  CHECK(g.scopes()[choice_node.scopes[0].index].name == "else_branch");
  CHECK(g.scopes()[choice_node.scopes[1].index].name == "then_branch");
  REQUIRE(choice_node.attributes.size() == 2);
  CHECK(choice_node.attributes[1].kind == sod2::attribute_kind::graph);
  CHECK(choice_node.attributes[1].integer == choice_node.scopes[1].index);
  const auto outer_x = g.scopes()[0].inputs[0];
  const auto late = node_of(g, "Exp").outputs[0];
  CHECK(node_of(g, "Add").inputs[0] == outer_x);
  CHECK(node_of(g, "Add").inputs[1] == late);
  CHECK(node_of(g, "Neg").inputs[0] == node_of(g, "Abs").outputs[0]);
  CHECK(node_of(g, "Neg").inputs[0] != outer_x);
  auto view = sod2::make_view(g);
  REQUIRE(view);
  bool scoped = false;
  for (std::size_t v = 1; v < view->value_count(); ++v)
    scoped |= view->name(sod2::value_id{v}) == "choice/else_branch/x";
  CHECK(scoped);
  // Nothing leaks out.
  loaded leak(model(message()
                        .add(field::graph_node, choice)
                        .add(field::graph_node, node("Exp", {"t"}, {"late"}))
                        .add(field::graph_input, info("x", dtype::f32, {1}))
                        .add(field::graph_input, info("c", dtype::boolean, {}))
                        .add(field::graph_output, info("y"))));
  CHECK(leak.code() == errc::undefined_value);
}

TEST_CASE("initializers of sub-graphs") {
  const message body = message()
                           .add(field::graph_initializer, scalar("w", 2))
                           .add(field::graph_node, node("Identity", {"w"}, {"z"}))
                           .add(field::graph_output, info("z"));
  loaded l(model(small_graph()
                     .add(field::graph_initializer, scalar("w", 1))
                     .add(field::graph_node,
                          node("If", {"x"}, {"q"})
                              .add(field::node_attribute, graph_attribute("then_branch", body)))));
  const sod2::graph& g = (*l).graph;
  const auto inner = node_of(g, "Identity").inputs[0];
  CHECK(elements<std::int64_t>(g.constants()[g[inner].constant]) == std::vector<std::int64_t>{2});
}

TEST_CASE("deep nesting is refused, not followed") {
  message g = message()
                  .add(field::graph_node, node("Abs", {"x"}, {"y"}))
                  .add(field::graph_output, info("y"));
  for (int k = 0; k < 300; ++k)
    g = message()
            .add(field::graph_node,
                 node("If", {"x"}, {"y"}).add(field::node_attribute, graph_attribute("b", g)))
            .add(field::graph_output, info("y"));
  g.add(field::graph_input, info("x", dtype::f32, {1}));
  CHECK(loaded(model(g)).code() == errc::malformed_model);
  message type;
  for (int k = 0; k < 5000; ++k)
    type = message().add(field::type_sequence, message().add(field::container_elem, type));
  CHECK(loaded(model(small_graph().add(field::graph_value_info,
                                       info("z").add(field::value_info_type, type))))
            .code() == errc::malformed_model);
}

TEST_CASE("opsets") {
  CHECK(loaded(model(small_graph(), sod2::onnx::newest_known_opset)).code() == errc::ok);
  CHECK(loaded(model(small_graph(), sod2::onnx::newest_known_opset + 1)).code() ==
        errc::unknown_opset);
  CHECK(loaded(model(small_graph(), 0)).code() == errc::malformed_model);
  CHECK(loaded(message().number(field::model_ir_version, 8).add(field::model_graph, small_graph()))
            .code() == errc::malformed_model);
  loaded old(message().number(field::model_ir_version, 2).add(field::model_graph, small_graph()));
  CHECK((*old).graph.nodes()[0].opset == 1);
  const message custom = node("Thing", {"x"}, {"q"}).text(field::node_domain, "com.example");
  const message same = node("Abs", {"x"}, {"r"}).text(field::node_domain, "ai.onnx");
  const message g = small_graph().add(field::graph_node, custom).add(field::graph_node, same);
  loaded missing(model(g));
  CHECK((*missing).warnings.size() == 1);
  loaded given(model(g).add(field::model_opset_import, import("com.example", 40)));
  CHECK((*given).warnings.empty());
  CHECK(node_of((*given).graph, "Thing").opset == 40);
  CHECK(node_of((*given).graph, "Abs").domain.empty());
  CHECK(node_of((*given).graph, "Abs").opset == 17);
}

TEST_CASE("attributes of all kinds") {
  message n = node("Op", {"x"}, {"q"});
  n.add(field::node_attribute, attribute("f", 1).real(field::attribute_f, 2.5F));
  n.add(field::node_attribute, attribute("i", 2).number(field::attribute_i, -7));
  n.add(field::node_attribute, attribute("s", 3).text(field::attribute_s, "text"));
  n.add(field::node_attribute, attribute("t", 4).add(field::attribute_t, scalar("", 8)));
  n.add(field::node_attribute, attribute("fs", 6).packed_floats(field::attribute_floats, {1, 2}));
  n.add(field::node_attribute,
        attribute("is", 7).number(field::attribute_ints, 1).number(field::attribute_ints, -2));
  n.add(field::node_attribute, attribute("ss", 8).text(field::attribute_strings, "a"));
  n.add(field::node_attribute, attribute("empty", 7));
  loaded l(model(small_graph().add(field::graph_node, n)));
  using traits = sod2::graph_traits<sod2::graph>;
  const sod2::graph& g = (*l).graph;
  const auto get = [&](std::string_view name) {
    return traits::attribute(g, sod2::node_id{1U}, name);
  };
  CHECK(get("f").real == 2.5);
  CHECK(get("i").integer == -7);
  CHECK(get("s").string == "text");
  CHECK(get("t").tensor.count() == 1);
  CHECK(get("fs").reals.size() == 2);
  CHECK(get("is").integers[1] == -2);
  CHECK(get("ss").strings[0] == "a");
  CHECK(get("empty").kind == sod2::attribute_kind::integers);
  CHECK(!get("none"));
  loaded bad(model(small_graph().add(
      field::graph_node,
      node("Op", {"x"}, {"q"}, "op").add(field::node_attribute, attribute("a", 77)))));
  CHECK(bad.code() == errc::bad_attribute);
  CHECK(bad.detail().node == "op");
}

TEST_CASE("parameters that a call leaves out are left out by the nodes that read them") {
  // f(a, lo) = Clip(a, lo)
  const message function = message()
                               .text(field::function_name, "F")
                               .text(field::function_domain, "local")
                               .text(field::function_input, "a")
                               .text(field::function_input, "lo")
                               .text(field::function_output, "h")
                               .add(field::function_node, node("Clip", {"a", "lo"}, {"h"}))
                               .add(field::function_opset_import, import("", 15));
  const message shorter = node("F", {"x"}, {"p"}, "first").text(field::node_domain, "local");
  const message empty = node("F", {"p", ""}, {"q"}, "second").text(field::node_domain, "local");
  loaded l(model(small_graph().add(field::graph_node, shorter).add(field::graph_node, empty))
               .add(field::model_functions, function));
  const auto& nodes = (*l).graph.nodes();
  REQUIRE(nodes.size() == 3);  // Relu, Clip, Clip
  for (std::size_t k : {1U, 2U}) {
    REQUIRE(nodes[k].inputs.size() == 2);
    CHECK(nodes[k].inputs[1] == sod2::absent);
  }
  CHECK(sod2::make_view((*l).graph).ok());
}

TEST_CASE("model-local functions are inlined") {
  // f(a; k = 3) = (Scale(a, k), a)
  const message scale = node("Scale", {"a"}, {"h"})
                            .add(field::node_attribute, message()
                                                            .text(field::attribute_name, "factor")
                                                            .text(field::attribute_ref_name, "k")
                                                            .number(field::attribute_type, 2));
  const message function =
      message()
          .text(field::function_name, "F")
          .text(field::function_domain, "local")
          .text(field::function_input, "a")
          .text(field::function_output, "h")
          .text(field::function_output, "a")
          .add(field::function_node, scale)
          .add(field::function_attribute_proto, attribute("k", 2).number(field::attribute_i, 3))
          .add(field::function_opset_import, import("", 15));
  const message plain = node("F", {"x"}, {"p", "q"}, "first").text(field::node_domain, "local");
  const message given =
      node("F", {"q"}, {"r"}, "second")
          .text(field::node_domain, "local")
          .add(field::node_attribute, attribute("k", 2).number(field::attribute_i, 5));
  loaded l(model(small_graph().add(field::graph_node, plain).add(field::graph_node, given))
               .add(field::model_functions, function));
  const auto& m = *l;
  CHECK(m.nodes_imported == 3);
  REQUIRE(m.graph.nodes().size() == 4);  // Relu, Scale, Identity, Scale
  const auto& first = m.graph.nodes()[1];
  CHECK(first.name == "first/");
  CHECK(first.opset == 15);
  REQUIRE(first.attributes.size() == 1);
  CHECK(first.attributes[0].name == "factor");
  CHECK(first.attributes[0].integer == 3);
  CHECK(m.graph[first.outputs[0]].name == "p");
  CHECK(m.graph.nodes()[2].op == "Identity");
  CHECK(m.graph[m.graph.nodes()[2].outputs[0]].name == "q");
  CHECK(m.graph.nodes()[3].attributes[0].integer == 5);
  CHECK(sod2::make_view(m.graph).ok());

  // A function that calls itself, and one that unfolds without end.
  const message self =
      message()
          .text(field::function_name, "F")
          .text(field::function_domain, "local")
          .text(field::function_input, "a")
          .text(field::function_output, "h")
          .add(field::function_node, node("F", {"a"}, {"g"}).text(field::node_domain, "local"))
          .add(field::function_node, node("F", {"g"}, {"h"}).text(field::node_domain, "local"));
  CHECK(loaded(model(small_graph()
                         .add(field::graph_node, given)
                         .add(field::graph_node, node("Abs", {"x"}, {"q"})))
                   .add(field::model_functions, self))
            .code() == errc::malformed_model);
}
