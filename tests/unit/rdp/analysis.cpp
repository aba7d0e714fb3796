#include <doctest/doctest.h>

#include <sod2/rdp/explain.hpp>
#include <sod2/rdp/regions.hpp>

#include "unit/rdp/support.hpp"

using namespace sod2;
using test::analysed;
using test::range;
using test::refused;
using test::symbols;

namespace {

// ---- small operators of a domain of their own
// ----------------------------------------------------

constexpr int since[] = {1};

/// Both inputs and the output have one shape, whichever of them is known.
struct tie {
  static constexpr op_info info{
      .name = "Tie", .domain = "test", .versions = since, .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    c.copy_type(0, 0);
    c.copy_shape(c.rank_known(0) ? 0 : 1, 0);
    if (!c.rank_known(0) || !c.rank_known(1)) return {};
    if (c.dims(0).size() != c.dims(1).size()) return c.fail(errc::rank_mismatch);
    for (std::size_t i = 0; i < c.dims(0).size(); ++i)
      if (!c.require_eq(c.dims(1)[i], c.dims(0)[i], errc::dim_mismatch))
        return c.fail(errc::dim_mismatch, 1, static_cast<int>(i), c.text(c.dims(1)[i]),
                      c.text(c.dims(0)[i]));
    return {};
  }
  template <class C>
  static status backward(C& c) {
    if (!c.output(0).rank_known()) return {};
    c.refine_shape(0, c.output(0).dims.view());
    c.refine_shape(1, c.output(0).dims.view());
    return {};
  }
};
/// The count of nonzero elements, known to the run only.
struct count_nonzero {
  static constexpr op_info info{
      .name = "CountNonzero", .domain = "test", .versions = since, .base = dynamism::edo};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, dtype::i64);
    if (!c.rank_known(0)) return {};
    auto n = c.domain().constant(1);
    for (const auto& d : c.dims(0)) n = c.domain().mul(n, d);
    const typename C::value_type dims[] = {
        c.domain().constant(static_cast<std::int64_t>(c.dims(0).size())),
        c.fresh(0, 1, {0, c.bounds(n).hi})};
    c.set_shape(0, dims);
    return {};
  }
};
struct choice {
  static constexpr op_info info{.name = "If",
                                .versions = since,
                                .base = dynamism::edo,
                                .map = mapping::barrier,
                                .outputs = {1, any_number}};
  template <class C>
  static status forward(C&) {
    return {};
  }
};
registry with_test_operators() {
  registry r = standard_registry();
  r.add(op_set<tie, count_nonzero, choice>{});
  return r;
}
value_id test_op(graph& g, std::string op, std::vector<value_id> inputs, std::string name) {
  graph::node n;
  n.op = std::move(op);
  n.domain = "test";
  n.inputs = std::move(inputs);
  n.outputs = {g.add_value(std::move(name))};
  g.add_node(n);
  return n.outputs[0];
}
value_id conv(graph& g, value_id x, std::int64_t in, std::int64_t out, std::int64_t k,
              std::int64_t stride, std::int64_t pad, std::string name) {
  const value_id w =
      g.constant<float>(name + ".weight", {out, in, k, k},
                        std::vector<float>(static_cast<std::size_t>(in * out * k * k), 0.5F));
  return g.op("Conv", {x, w}, {{"strides", {stride, stride}}, {"pads", {pad, pad, pad, pad}}},
              std::move(name));
}

}  // namespace

// ---- forward, backward, values
// -------------------------------------------------------------------

TEST_CASE("the paper's forward example: Softmax, Shape, Min, TopK") {
  // Fig. 3a: S0 = [a, b]; V2 = [a, b]; V3 = min(a, b); S4 = (a, min(a, b)).
  graph g;
  const value_id x = g.input("x", dtype::f32, {"a", "b"});
  const value_id s1 = g.op("Softmax", {x}, {}, "s1");
  const value_id s2 = g.op("Shape", {s1}, {}, "s2");
  const value_id s3 = g.op("ReduceMin", {s2}, {{"keepdims", 1}}, "s3");
  // The same demand on a size as TopK's: columns 0 .. V3.
  const value_id zero = g.constant<std::int64_t>("zero", {1}, {0});
  const value_id one = g.constant<std::int64_t>("one", {1}, {1});
  g.output(g.op("Slice", {s1, zero, s3, one}, {}, "s4"));
  analysed a(g);
  CHECK(a.shape("s1") == "(a, b)");
  CHECK(a.shape("s2") == "(2)");
  CHECK(a.elements("s2") == "(a, b)");
  CHECK(a.shape("s3") == "(1)");
  CHECK(a.elements("s3") == "(min(a, b))");
  CHECK(a.shape("s4") == "(a, min(a, b))");
  CHECK(a.assertions().empty());
  // Classes: Shape is ISDO, Min is promoted to it, the value-dependent operator is demoted.
  CHECK(a.node("s2").effective == dynamism::isdo);
  CHECK(a.node("s3").effective == dynamism::isdo);
  CHECK(a.node("s4").op.row->info->base == dynamism::isvdos);
  CHECK(a.node("s4").effective == dynamism::isdos);
}

TEST_CASE("the paper's backward example: MatMul's output gives an operand, Transpose its input") {
  // Fig. 3b: S4 = [2a, 4b] and S3 = [2a, 2c] known => S1 = [2c, 4b], S0 = [4b, 2c].
  graph g;
  value_id unknown = g.add_value("s0");
  g.scopes()[0].inputs.push_back(unknown);  // an input of which nothing is declared
  g.values()[unknown.index].type = dtype::f32;
  const value_id s2 = g.input("s2", dtype::f32, {"A", "C"});
  const value_id s1 = g.op("Transpose", {unknown}, {{"perm", {1, 0}}}, "s1");
  const value_id s3 = g.op("Sigmoid", {s2}, {}, "s3");
  const value_id s4 = g.op("MatMul", {s3, s1}, {}, "s4");
  g.output(s4);
  const analysis_options options =
      symbols({range("A", 2, 512, 2), range("B", 4, 512, 4), range("C", 2, 512, 2)});
  SUBCASE("from a declared shape of the output") {
    g.values()[s4.index].has_shape = true;
    g.values()[s4.index].type = dtype::f32;
    g.values()[s4.index].dims = {"A", "B"};
    analysed a(g, options);
    CHECK(a.shape("s1") == "(C, B)");
    CHECK(a.shape("s0") == "(B, C)");
    CHECK(a.assertions().empty());
  }
  SUBCASE("from a consumer") {
    const value_id other = g.input("other", dtype::f32, {"A", "B"});
    g.output(test_op(g, "Tie", {s4, other}, "tied"));
    analysed a(g, options, with_test_operators());
    CHECK(a.shape("s4") == "(A, B)");
    CHECK(a.shape("s1") == "(C, B)");
    CHECK(a.shape("s0") == "(B, C)");
    CHECK(a.assertions().empty());
  }
  SUBCASE("a claim of a file is no fact") {
    g.values()[s4.index].has_shape = true;
    g.values()[s4.index].is_hint = true;
    g.values()[s4.index].dims = {"A", "B"};
    analysed a(g, options);
    CHECK(a.shape("s1") != "(C, B)");
  }
}

TEST_CASE("shape arithmetic of an exporter folds into expressions") {
  // x.view(x.size(0), -1, 4): Shape, Gather, Unsqueeze, Concat, Reshape.
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", "L", 8});
  const value_id shape = g.op("Shape", {x}, {}, "shape");
  const value_id first = g.op("Gather", {shape, g.constant<std::int64_t>("i", {}, {0})}, {}, "n");
  const value_id axes = g.constant<std::int64_t>("axes", {1}, {0});
  const value_id row = g.op("Unsqueeze", {first, axes}, {}, "row");
  const value_id rest = g.constant<std::int64_t>("rest", {2}, {-1, 4});
  const value_id target = g.op("Concat", {row, rest}, {{"axis", 0}}, "target");
  g.output(g.op("Reshape", {x, target}, {}, "y"));
  analysed a(g);
  CHECK(a.elements("target") == "(N, -1, 4)");
  CHECK(a.shape("y") == "(N, 2*L, 4)");
  CHECK(a.node("y").effective == dynamism::isdos);
  CHECK(a.node("target").effective == dynamism::isdo);
  CHECK(a.assertions().empty());
}

TEST_CASE("three spellings of half a size are one expression") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"B", 3, "H", "W"});
  const value_id a7 = conv(g, x, 3, 8, 7, 2, 3, "k7");
  const value_id a3 = conv(g, x, 3, 8, 3, 2, 1, "k3");
  const value_id a1 = conv(g, x, 3, 8, 1, 2, 0, "k1");
  g.output(g.op("Add", {g.op("Add", {a7, a3}), a1}, {}, "sum"));
  analysed a(g);
  CHECK(a.shape("k7") == "(B, 8, ceildiv(H, 2), ceildiv(W, 2))");
  CHECK(a.shape("k7") == a.shape("k3"));
  CHECK(a.shape("k7") == a.shape("k1"));
  CHECK(a.shape("sum") == a.shape("k1"));
  CHECK(a.assertions().empty());
}

TEST_CASE("a stride of the input proves the additions of a feature pyramid") {
  const auto pyramid = [](graph& g) {
    value_id x = g.input("image", dtype::f32, {1, 3, "H", "W"});
    std::vector<value_id> levels;
    std::int64_t channels = 3;
    for (int i = 0; i < 5; ++i) {
      x = conv(g, x, channels, 4, 3, 2, 1, "down" + std::to_string(i));
      channels = 4;
      levels.push_back(x);
    }
    const value_id scales = g.constant<float>("scales", {4}, {1, 1, 2, 2});
    for (int i = 3; i >= 0; --i) {
      const value_id up = g.op("Resize", {x, absent, scales}, {{"mode", "nearest"}});
      x = g.op("Add", {up, levels[static_cast<std::size_t>(i)]}, {}, "merged" + std::to_string(i));
    }
    g.output(x);
  };
  graph g;
  pyramid(g);
  analysed strided(g, symbols({range("H", 32, 1024, 32), range("W", 32, 1024, 32)}));
  CHECK(strided.assertions().empty());
  CHECK(strided.shape("merged0") == strided.shape("down0"));
  analysed loose(g);
  CHECK(loose.assertions().size() > 0);  // 2*ceildiv(H, 32) is not ceildiv(H, 16) at every H
}

// ---- what cannot be proved
// -----------------------------------------------------------------------

TEST_CASE("a product of unrelated sizes gives one assertion and one symbol") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"M", "K1"});
  const value_id y = g.input("y", dtype::f32, {"K2", "N"});
  g.output(g.op("MatMul", {x, y}, {}, "p"));
  g.output(g.op("MatMul", {x, y}));  // says the same again
  g.nodes()[0].name = "product";
  analysed a(g);
  CHECK(a.shape("p") == "(M, N)");
  REQUIRE(a.assertions().size() == 1);
  CHECK(a.assertions()[0] == "node 'product': K1 == K2");
  CHECK(a.facts.assertions()[0].code == errc::inner_dims);
  CHECK(a.facts.assertions()[0].what == assertion::kind::equal);
  // From here on they are equal.
  CHECK(a.facts.context().decide_eq(a.facts.dims(a["x"])[1], a.facts.dims(a["y"])[0]) == tri::yes);
}

TEST_CASE("a broadcast of unrelated sizes is not over-committed") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"A"});
  const value_id y = g.input("y", dtype::f32, {"B"});
  g.output(g.op("Add", {x, y}, {}, "sum"));
  analysed a(g);
  CHECK(a.shape("sum") == "(broadcast(A, B))");
  REQUIRE(a.facts.assertions().size() == 1);
  CHECK(a.facts.assertions()[0].what == assertion::kind::broadcast);
  CHECK(a.facts.context().decide_eq(a.facts.dims(a["x"])[0], a.facts.dims(a["y"])[0]) ==
        tri::unknown);
  // With ranges that exclude 1 the dims must be equal.
  analysed larger(g, symbols({range("A", 2, 100), range("B", 2, 100)}));
  REQUIRE(larger.facts.assertions().size() == 1);
  CHECK(larger.facts.assertions()[0].what == assertion::kind::equal);
  CHECK(larger.facts.assertions()[0].text.find("A == B") != std::string::npos);
}

TEST_CASE("contradictions name node, tensor, axis and both expressions") {
  graph g;
  SUBCASE("inner dims of a product") {
    const value_id x = g.input("x", dtype::f32, {"M", 3});
    const value_id y = g.input("y", dtype::f32, {4, "N"});
    g.output(g.op("MatMul", {x, y}));
    g.nodes()[0].name = "product";
    const error e = refused(g);
    CHECK(e.code() == errc::inner_dims);
    CHECK(e.text() ==
          "node 'product': tensor 'y' axis 0: inner dimensions of a product do not agree (3 vs 4)");
  }
  SUBCASE("a reshape that loses elements") {
    const value_id x = g.input("x", dtype::f32, {"Batch", 64});
    const value_id target = g.constant<std::int64_t>("target", {3}, {0, 30, 2});
    g.output(g.op("Reshape", {x, target}));
    g.nodes()[0].name = "fold";
    const error e = refused(g);
    CHECK(e.code() == errc::element_count);
    CHECK(e.detail().node == "fold");
    CHECK(e.text().find("64*Batch") != std::string::npos);
    CHECK(e.text().find("60*Batch") != std::string::npos);
    CHECK(e.text().find('\n') == std::string::npos);
  }
  SUBCASE("symbolic sizes that differ at every binding") {
    const value_id x = g.input("x", dtype::f32, {"M", "K"});
    const value_id y = g.op("Concat", {x, x}, {{"axis", 1}}, "y");
    g.output(test_op(g, "Tie", {x, y}, "tied"));
    g.nodes()[1].name = "tie";
    const error e = refused(g, {}, with_test_operators());
    CHECK(e.code() == errc::dim_mismatch);
    CHECK(e.detail().node == "tie");
    CHECK(e.detail().tensor == "y");
    CHECK(e.detail().axis == 1);
    CHECK(e.detail().left == "2*K");
    CHECK(e.detail().right == "K");
  }
  SUBCASE("equalities that contradict each other") {
    const value_id x = g.input("x", dtype::f32, {"A"});
    const value_id p = g.input("p", dtype::f32, {3});
    const value_id q = g.input("q", dtype::f32, {4});
    g.output(test_op(g, "Tie", {x, p}, "first"));
    g.output(test_op(g, "Tie", {x, q}, "second"));
    const error e = refused(g, {}, with_test_operators());
    CHECK(e.detail().node == "Tie_1");
    CHECK(((e.detail().left == "3" && e.detail().right == "4") ||
           (e.detail().left == "4" && e.detail().right == "3")));
  }
  SUBCASE("an axis that does not exist") {
    const value_id x = g.input("x", dtype::f32, {"A", "B"});
    g.output(g.op("Softmax", {x}, {{"axis", 2}}));
    const error e = refused(g);
    CHECK(e.code() == errc::axis_range);
    CHECK(e.detail().node == "Softmax_0");
  }
  SUBCASE("a declared output that the operator cannot give") {
    const value_id x = g.input("x", dtype::f32, {"A", 4});
    const value_id y = g.op("Relu", {x}, {}, "y");
    g.values()[y.index].has_shape = true;
    g.values()[y.index].type = dtype::f32;
    g.values()[y.index].dims = {"A", 5};
    g.output(y);
    const error e = refused(g);
    CHECK(e.code() == errc::dim_mismatch);
    CHECK(e.detail().node == "Relu_0");
    CHECK(e.detail().axis == 1);
  }
  SUBCASE("types") {
    const value_id x = g.input("x", dtype::f32, {"A"});
    const value_id y = g.input("y", dtype::i64, {"A"});
    g.output(g.op("Add", {x, y}));
    CHECK(refused(g).code() == errc::type_mismatch);
  }
}

TEST_CASE("unknown operators, opsets and arities are refused with the operator's name") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"A"});
  SUBCASE("not registered") {
    g.output(g.op("Wibble", {x}));
    const error e = refused(g);
    CHECK(e.code() == errc::unknown_operator);
    CHECK(e.text().find("'Wibble'") != std::string::npos);
  }
  SUBCASE("newer than the opset") {
    g.set_opset(6);
    g.output(g.op("Where", {x, x, x}));
    const error e = refused(g);
    CHECK(e.code() == errc::unknown_operator);
    CHECK(e.text().find("opset 6") != std::string::npos);
  }
  SUBCASE("too many inputs") {
    g.output(g.op("Relu", {x, x}));
    const error e = refused(g);
    CHECK(e.code() == errc::arity);
    CHECK(e.detail().node == "Relu_0");
  }
  SUBCASE("a required input left out") {
    g.output(g.op("Add", {absent, x}));
    CHECK(refused(g).code() == errc::arity);
  }
}

// ---- symbols
// -------------------------------------------------------------------------------------

TEST_CASE("declared ranges, strides and bound symbols reach the shapes") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", "L"});
  const value_id y = g.input("y", dtype::f32, {dim_spec{}, "L"});
  g.output(g.op("Relu", {x}, {}, "a"));
  g.output(g.op("Relu", {y}, {}, "b"));
  SUBCASE("unnamed dims are called input.axis") {
    analysed a(g);
    CHECK(a.shape("b") == "(\"y.0\", L)");
    CHECK(a.facts.context().bounds(a.facts.dims(a["a"])[0]) == interval{1, default_symbol_max});
  }
  SUBCASE("ranges and strides") {
    analysed a(g, symbols({range("N", 0, 8), range("L", 16, 512, 16)}));
    dim_context& c = a.facts.context();
    CHECK(a.shape("a") == "(N, L)");
    CHECK(c.bounds(a.facts.dims(a["a"])[0]) == interval{0, 8});
    CHECK(c.decide_divisible(a.facts.dims(a["b"])[1], 16) == tri::yes);
    CHECK(c.decide_divisible(a.facts.dims(a["b"])[1], 32) == tri::unknown);
  }
  SUBCASE("a range of one value binds") {
    analysed a(g, symbols({range("N", 4, 4), range("y.0", 7, 7)}));
    CHECK(a.shape("a") == "(4, L)");
    CHECK(a.shape("b") == "(7, L)");
  }
  SUBCASE("ranges without a value are refused") {
    CHECK(refused(g, symbols({range("N", 5, 4)})).code() == errc::contradiction);
    const error e = refused(g, symbols({range("N", 33, 63, 32)}));
    CHECK(e.code() == errc::contradiction);
    CHECK(e.text().find("'N'") != std::string::npos);
  }
}

TEST_CASE("elements of declared shape inputs are symbols") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 12});
  const value_id target = g.input("target", dtype::i64, {2});
  g.output(g.op("Reshape", {x, target}, {}, "y"));
  analysis_options options;
  options.shape_inputs = {"target"};
  analysed bound(g, options);
  CHECK(bound.shape("y") == "(\"target[0]\", \"target[1]\")");
  REQUIRE(bound.assertions().size() == 1);
  analysed free(g);
  CHECK(free.facts.fact(free["y"]).rank_known());  // the rank is the length of `target`
  CHECK(free.shape("y") != bound.shape("y"));
}

// ---- control flow, explanations, regions
// ---------------------------------------------------------

namespace {
// y = condition ? f(x) : g(x)
struct two_arms {
  graph g;
  value_id x, condition, y;
  graph::node owner;
  scope_id arms[2];
  two_arms() {
    x = g.input("x", dtype::f32, {"N", "L"});
    condition = g.input("condition", dtype::boolean, {});
    y = g.add_value("y");
    owner.name = "choose";
    owner.op = "If";
    owner.inputs = {condition};
    owner.outputs = {y};
    arms[0] = g.add_scope("then_branch");
    arms[1] = g.add_scope("else_branch");
    owner.scopes = {arms[0], arms[1]};
    g.add_node(owner);
    g.output(y);
  }
  template <class F>
  void arm(int i, F&& f) {
    const scope_id before = g.enter(arms[i]);
    g.output(f());
    g.enter(before);
  }
};
}  // namespace

TEST_CASE("arms of an If: equal dims stay, different ones become a bounded symbol") {
  two_arms m;
  m.arm(0, [&] { return m.g.op("Relu", {m.x}); });
  SUBCASE("equal") {
    m.arm(1, [&] { return m.g.op("Sigmoid", {m.x}); });
    analysed a(m.g, {}, with_test_operators());
    CHECK(a.shape("y") == "(N, L)");
    CHECK_FALSE(a.node("y").boundary);
  }
  SUBCASE("one dim differs") {
    m.arm(1, [&] { return m.g.op("Concat", {m.x, m.x}, {{"axis", 1}}); });
    analysed a(m.g, symbols({range("L", 4, 10)}), with_test_operators());
    const auto dims = a.facts.dims(a["y"]);
    REQUIRE(dims.size() == 2);
    CHECK(print(a.facts.context(), dims[0]) == "N");
    CHECK_FALSE(a.facts.context().only_input_symbols(dims[1]));
    CHECK(a.facts.context().bounds(dims[1]) == interval{4, 20});
    CHECK(a.node("y").boundary);
    CHECK(a.assertions().empty());
  }
  SUBCASE("ranks differ") {
    m.arm(1, [&] { return m.g.op("Flatten", {m.g.op("Relu", {m.x})}, {{"axis", 0}}); });
    analysed same(m.g, {}, with_test_operators());  // Flatten gives rank 2 as well
    CHECK(same.facts.fact(same["y"]).rank_known());
    two_arms other;
    other.arm(0, [&] { return other.g.op("Relu", {other.x}); });
    other.arm(1, [&] {
      const value_id axis = other.g.constant<std::int64_t>("axis", {1}, {0});
      return other.g.op("Unsqueeze", {other.x, axis});
    });
    analysed a(other.g, {}, with_test_operators());
    CHECK(a.facts.fact(a["y"]).rank == rank_state::unknown);
    CHECK(a.shape("y") == "(unknown rank)");
  }
}

TEST_CASE("what an arm needs of an outer value says nothing of it elsewhere") {
  two_arms m;
  const value_id target = m.g.input("target", dtype::i64, {"K"});
  const value_id rows = m.g.op("Reshape", {m.x, target}, {}, "rows");  // of any rank
  m.arm(0, [&] { return m.g.op("Transpose", {rows}, {{"perm", {1, 0}}}); });
  m.arm(1, [&] { return m.g.op("Flatten", {rows}); });
  m.g.output(rows);
  analysed either(m.g, {}, with_test_operators());
  CHECK_FALSE(either.facts.fact(either["rows"]).rank_known());

  // Where the condition is assumed to hold, the arm always runs.
  analysis_options decided;
  for (std::uint32_t n = 0; n < either.view.node_count(); ++n)
    if (either.view.operator_name(node_id{n}) == "If")
      decided.decided.push_back({node_id{n}, true});
  analysed taken(m.g, decided, with_test_operators());
  CHECK(taken.facts.fact(taken["rows"]).dims.size() == 2);
}

TEST_CASE("explain follows a dim back to the input that made it") {
  graph g;
  const value_id x = g.input("image", dtype::f32, {"B", 3, "H", "W"});
  const value_id c = conv(g, x, 3, 4, 3, 2, 1, "half");
  const value_id r = g.op("Relu", {c}, {}, "active");
  const value_id t = g.op("Transpose", {r}, {{"perm", {0, 2, 3, 1}}}, "last");
  g.output(t);
  analysed a(g);
  auto why = explain(a.view, a.facts, a["last"], 1);
  REQUIRE(why);
  REQUIRE(why->size() == 4);
  CHECK((*why)[0].op == "Transpose");
  CHECK((*why)[0].expression == "ceildiv(H, 2)");
  CHECK((*why)[1].op == "Relu");
  CHECK((*why)[1].axis == 2);
  CHECK((*why)[2].op == "Conv");
  CHECK((*why)[3].value == a["image"]);
  CHECK((*why)[3].axis == 2);
  CHECK((*why)[3].expression == "H");
  CHECK((*why)[3].node.empty());
  CHECK(explain(a.view, a.facts, a["last"], 4).error().code() == errc::axis_range);
  CHECK(explain(a.view, a.facts, a["last"], -1).error().code() == errc::axis_range);
}

TEST_CASE("a size of the run is a bounded symbol and ends its region") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 4});
  const value_id r = g.op("Relu", {x}, {}, "r");
  const value_id at = test_op(g, "CountNonzero", {r}, "at");
  const value_id after = g.op("Transpose", {at}, {}, "after");
  g.output(g.op("Relu", {g.constant<float>("fixed", {2}, {1, 2})}, {}, "constant"));
  g.output(after);
  analysed a(g, symbols({range("N", 1, 10)}), with_test_operators());
  const auto dims = a.facts.dims(a["after"]);
  REQUIRE(dims.size() == 2);  // the rank and the other dim are kept
  CHECK(a.facts.context().bounds(dims[0]) == interval{0, 40});
  CHECK(print(a.facts.context(), dims[1]) == "2");
  CHECK(a.node("at").boundary);
  CHECK_FALSE(a.node("after").boundary);
  CHECK(a.node("at").effective == dynamism::edo);

  const auto regions = partition(a.view, a.facts);
  REQUIRE(regions.size() == 2);
  CHECK(regions[0].nodes.size() == 2);
  CHECK(regions[1].nodes.size() == 2);
  CHECK(regions[0].kind == region_kind::mixed);
  CHECK(partition(a.view, a.facts, true)[0].kind == region_kind::with_nac);

  // Nothing has a size that needs the count: one region, which the coarse rule cuts all the same.
  graph last;
  last.output(test_op(last, "CountNonzero", {last.input("x", dtype::f32, {"N"})}, "at"));
  last.output(last.op("Relu", {last.input("y", dtype::f32, {"N"})}, {}, "other"));
  analysed b(last, {}, with_test_operators());
  CHECK(partition(b.view, b.facts).size() == 1);
  CHECK(partition(b.view, b.facts, true).size() == 2);
}

TEST_CASE("a graph with constants alone is one region without symbols") {
  graph g;
  g.output(g.op("Relu", {g.input("x", dtype::f32, {2, 3})}));
  analysed a(g);
  const auto regions = partition(a.view, a.facts);
  REQUIRE(regions.size() == 1);
  CHECK(regions[0].kind == region_kind::all_constant);
  CHECK(regions[0].symbols == 0);
}

TEST_CASE("a long chain takes a visit or two a node") {
  graph g;
  value_id x = g.input("x", dtype::f32, {"N", "L"});
  constexpr int count = 20000;
  for (int i = 0; i < count; ++i) x = g.op(i % 2 == 0 ? "Relu" : "Sigmoid", {x});
  g.output(x, "last");
  analysed a(g);
  CHECK(a.shape("last") == "(N, L)");
  CHECK(a.facts.statistics().visits <= 2 * count);
}
