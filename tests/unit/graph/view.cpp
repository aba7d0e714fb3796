#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sod2/graph/graph.hpp>
#include <sod2/graph/view.hpp>

// ---- an archetype: only what the concept asks for, integers as handles
// ---------------------------

namespace {
struct minimal_net {
  struct unit {
    std::string kind;
    std::vector<int> reads, writes;
  };
  std::vector<unit> units;
  std::vector<int> inputs, outputs;
};

// ---- a foreign graph: pointers as handles
// --------------------------------------------------------

struct blob {
  std::string name;
};
struct layer {
  std::string kind;
  std::vector<const blob*> bottom, top;
};
struct pointer_net {
  std::vector<std::unique_ptr<blob>> blobs;
  std::vector<std::unique_ptr<layer>> layers;
  std::vector<const blob*> feeds, fetches;
  const blob* add(std::string name) {
    blobs.push_back(std::make_unique<blob>(blob{std::move(name)}));
    return blobs.back().get();
  }
  const layer* add(std::string kind, std::vector<const blob*> bottom,
                   std::vector<const blob*> top) {
    layers.push_back(
        std::make_unique<layer>(layer{std::move(kind), std::move(bottom), std::move(top)}));
    return layers.back().get();
  }
};
}  // namespace

template <>
struct sod2::graph_traits<minimal_net> {
  using node_handle = int;
  using value_handle = int;
  static std::vector<int> nodes(const minimal_net& n) {
    std::vector<int> out;
    for (int i = 0; i < static_cast<int>(n.units.size()); ++i) out.push_back(i);
    return out;
  }
  static const minimal_net::unit& at(const minimal_net& n, int u) {
    return n.units[static_cast<std::size_t>(u)];
  }
  static const std::vector<int>& inputs(const minimal_net& n, int u) { return at(n, u).reads; }
  static const std::vector<int>& outputs(const minimal_net& n, int u) { return at(n, u).writes; }
  static const std::vector<int>& graph_inputs(const minimal_net& n) { return n.inputs; }
  static const std::vector<int>& graph_outputs(const minimal_net& n) { return n.outputs; }
  static std::string_view operator_name(const minimal_net& n, int u) { return at(n, u).kind; }
};
static_assert(sod2::operator_graph<minimal_net>);
static_assert(!sod2::graph_with_scopes<minimal_net>);

template <>
struct sod2::graph_traits<pointer_net> {
  using node_handle = const layer*;
  using value_handle = const blob*;
  static std::vector<const layer*> nodes(const pointer_net& n) {
    std::vector<const layer*> out;
    for (const auto& l : n.layers) out.push_back(l.get());
    return out;
  }
  static const auto& inputs(const pointer_net&, const layer* l) { return l->bottom; }
  static const auto& outputs(const pointer_net&, const layer* l) { return l->top; }
  static const auto& graph_inputs(const pointer_net& n) { return n.feeds; }
  static const auto& graph_outputs(const pointer_net& n) { return n.fetches; }
  static std::string_view operator_name(const pointer_net&, const layer* l) { return l->kind; }
  static std::string_view value_name(const pointer_net&, const blob* b) { return b->name; }
};
static_assert(sod2::operator_graph<pointer_net>);
static_assert(sod2::graph_with_scopes<sod2::graph>);

using namespace sod2;

namespace {
value_id value_named(const graph_view& view, std::string_view name) {
  for (std::uint32_t i = 1; i < view.value_count(); ++i)
    if (view.name(value_id{i}) == name) return value_id{i};
  FAIL("no value called ", std::string(name));
  return {};
}
// Every node of a scope stands behind what it, or a sub-graph of its, reads.
bool in_order(const graph_view& view) {
  std::vector<std::uint32_t> position(view.node_count(), no_index);
  for (std::uint32_t s = 0; s < view.scope_count(); ++s) {
    std::uint32_t at = 0;
    for (node_id n : view.order(scope_id{s})) position[n.index] = at++;
  }
  for (std::uint32_t i = 0; i < view.node_count(); ++i) {
    if (position[i] == no_index) return false;
    for (value_id v : view.inputs(node_id{i})) {
      if (v == absent || view.producer(v) == no_index) continue;
      const node_id producer{view.producer(v)};
      node_id user{i};
      while (view.scope(user) != view.scope(producer)) user = node_id{view.owner(view.scope(user))};
      if (position[producer.index] >= position[user.index]) return false;
    }
  }
  return true;
}
graph::node node_of(std::string name, std::string op, std::vector<value_id> in,
                    std::vector<value_id> out) {
  graph::node n;
  n.name = std::move(name);
  n.op = std::move(op);
  n.inputs = std::move(in);
  n.outputs = std::move(out);
  return n;
}
}  // namespace

TEST_CASE("nodes may come in any order") {
  // c <- b <- a, d <- {a, c}, shuffled in every way.
  std::vector<int> order{0, 1, 2, 3};
  int seen = 0;
  do {
    graph g;
    const value_id x = g.input("x", dtype::f32, {"N"});
    const value_id a = g.add_value("a"), b = g.add_value("b"), c = g.add_value("c"),
                   d = g.add_value("d");
    const graph::node nodes[] = {node_of("na", "Relu", {x}, {a}), node_of("nb", "Relu", {a}, {b}),
                                 node_of("nc", "Relu", {b}, {c}),
                                 node_of("nd", "Add", {a, c}, {d})};
    for (int i : order) g.add_node(nodes[i]);
    g.output(d);
    auto view = make_view(g);
    REQUIRE(view);
    CHECK(in_order(*view));
    CHECK(view->node_count() == 4);
    CHECK(view->name(view->order()[0]) == "na");
    CHECK(view->name(view->order()[3]) == "nd");
    CHECK(view->consumers(value_named(*view, "a")).size() == 2);
    CHECK(view->is_graph_output(value_named(*view, "d")));
    CHECK_FALSE(view->is_graph_output(value_named(*view, "c")));
    ++seen;
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(seen == 24);
}

TEST_CASE("a valid order is kept as it is") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id late = g.op("Relu", {x});
  const value_id early = g.op("Sigmoid", {x});
  g.output(g.op("Add", {early, late}));
  auto view = make_view(g);
  REQUIRE(view);
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(view->order()[i].index == i);
}

TEST_CASE("cycles are refused and a node of the cycle is named") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id a = g.add_value("a"), b = g.add_value("b"), c = g.add_value("c");
  g.add_node(node_of("before", "Relu", {x}, {c}));
  SUBCASE("of two nodes") {
    g.add_node(node_of("one", "Add", {c, b}, {a}));
    g.add_node(node_of("two", "Relu", {a}, {b}));
    g.output(b);
    auto view = make_view(g);
    REQUIRE_FALSE(view);
    CHECK(view.error().code() == errc::cycle);
    CHECK(view.error().detail().node == "one");
  }
  SUBCASE("of one node") {
    g.add_node(node_of("self", "Add", {c, a}, {a}));
    g.output(a);
    auto view = make_view(g);
    REQUIRE_FALSE(view);
    CHECK(view.error().code() == errc::cycle);
    CHECK(view.error().detail().node == "self");
  }
  SUBCASE("through a sub-graph that reads its owner's output") {
    const scope_id arm = g.add_scope("then_branch");
    graph::node owner = node_of("choice", "If", {c}, {a});
    owner.scopes = {arm};
    g.add_node(owner);
    g.enter(arm);
    g.add_node(node_of("inner", "Relu", {a}, {b}));
    g.output(b);
    g.enter(graph_view::root());
    g.output(a);
    auto view = make_view(g);
    REQUIRE_FALSE(view);
    CHECK(view.error().code() == errc::cycle);
    CHECK(view.error().detail().node == "choice");
  }
}

TEST_CASE("undefined and repeated values are named with the node") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id ghost = g.add_value("ghost"), a = g.add_value("a");
  SUBCASE("undefined input of a node") {
    g.add_node(node_of("reader", "Add", {x, ghost}, {a}));
    auto view = make_view(g);
    REQUIRE_FALSE(view);
    CHECK(view.error().code() == errc::undefined_value);
    CHECK(view.error().detail().node == "reader");
    CHECK(view.error().detail().tensor == "ghost");
  }
  SUBCASE("undefined graph output") {
    g.output(ghost);
    auto view = make_view(g);
    REQUIRE_FALSE(view);
    CHECK(view.error().code() == errc::undefined_value);
    CHECK(view.error().detail().tensor == "ghost");
  }
  SUBCASE("two producers") {
    g.add_node(node_of("first", "Relu", {x}, {a}));
    g.add_node(node_of("second", "Relu", {x}, {a}));
    auto view = make_view(g);
    REQUIRE_FALSE(view);
    CHECK(view.error().code() == errc::duplicate_value);
    CHECK(view.error().detail().node == "second");
    CHECK(view.error().detail().tensor == "a");
  }
  SUBCASE("a node that writes an input") {
    g.add_node(node_of("writer", "Relu", {x}, {x}));
    auto view = make_view(g);
    REQUIRE_FALSE(view);
    CHECK(view.error().code() == errc::duplicate_value);
  }
  SUBCASE("a value of a sub-graph, read outside of it") {
    const scope_id arm = g.add_scope("body");
    graph::node owner = node_of("owner", "Loop", {x}, {a});
    owner.scopes = {arm};
    g.add_node(owner);
    g.enter(arm);
    const value_id hidden = g.op("Relu", {x}, {}, "hidden");
    g.output(hidden);
    g.enter(graph_view::root());
    g.add_node(node_of("outside", "Relu", {hidden}, {ghost}));
    auto view = make_view(g);
    REQUIRE_FALSE(view);
    CHECK(view.error().code() == errc::undefined_value);
    CHECK(view.error().detail().node == "outside");
    CHECK(view.error().detail().tensor == "hidden");
  }
}

TEST_CASE("optional inputs and outputs that are left out are value 0") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id y = g.add_value("y");
  g.add_node(node_of("n", "Op", {x, absent, x}, {absent, y}));
  g.output(y);
  auto view = make_view(g);
  REQUIRE(view);
  const node_id n = view->order()[0];
  REQUIRE(view->inputs(n).size() == 3);
  CHECK(view->inputs(n)[1] == absent);
  CHECK(view->outputs(n)[0] == absent);
  CHECK(view->name(view->outputs(n)[1]) == "y");
  // A consumer is listed once for each use.
  CHECK(view->consumers(view->inputs(n)[0]).size() == 2);
}

TEST_CASE("names that a graph leaves away are made up and differ") {
  graph g;
  const value_id x = g.input("", dtype::f32, {"N"});
  const std::vector<value_id> two = g.ops("Split", {x}, 2);
  g.output(g.op("Add", {two[0], two[1]}));
  auto view = make_view(g);
  REQUIRE(view);
  CHECK(view->name(view->inputs()[0]) == "input0");
  CHECK(view->name(view->order()[0]) == "Split_0");
  CHECK(view->name(view->outputs(view->order()[0])[1]) == "Split_0:1");
  CHECK(view->name(view->order()[1]) == "Add_1");
}

TEST_CASE("scopes are flattened, captured values are used by id") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id condition = g.input("condition", dtype::boolean, {});
  const value_id y = g.add_value("y");
  // The owner stands before what its arms capture: they decide its place.
  graph::node owner = node_of("choice", "If", {condition}, {y});
  const scope_id then_arm = g.add_scope("then_branch"), else_arm = g.add_scope("else_branch");
  owner.scopes = {then_arm, else_arm};
  const value_id outer = g.add_value("outer");
  g.add_node(owner);
  g.add_node(node_of("late", "Relu", {x}, {outer}));
  g.enter(then_arm);
  const value_id inner = g.op("Neg", {outer}, {}, "inner");
  g.output(g.op("Exp", {inner}, {}, "result"));
  g.enter(else_arm);
  g.output(outer);  // an arm that only passes a captured value on
  g.enter(graph_view::root());
  g.output(y);

  auto view = make_view(g);
  REQUIRE(view);
  CHECK(in_order(*view));
  CHECK(view->scope_count() == 3);
  REQUIRE(view->order().size() == 2);
  CHECK(view->name(view->order()[0]) == "late");
  const node_id choice = view->order()[1];
  REQUIRE(view->scopes(choice).size() == 2);
  const scope_id then_scope = view->scopes(choice)[0], else_scope = view->scopes(choice)[1];
  CHECK(view->name(then_scope) == "choice/then_branch");
  CHECK(view->owner(then_scope) == choice.index);
  CHECK(view->owner(graph_view::root()) == no_index);
  REQUIRE(view->order(then_scope).size() == 2);
  CHECK(view->order(else_scope).empty());
  const value_id v = value_named(*view, "choice/then_branch/inner");
  CHECK(view->local_name(v) == "inner");
  CHECK(view->scope(v) == then_scope);
  CHECK(view->inputs(view->order(then_scope)[0])[0] == value_named(*view, "outer"));
  CHECK(view->outputs(else_scope)[0] == value_named(*view, "outer"));
}

TEST_CASE("handles of a view lead back to the user's graph") {
  pointer_net net;
  const blob* x = net.add("data");
  const blob* h = net.add("hidden");
  const blob* y = net.add("out");
  const layer* second = net.add("activation", {h}, {y});
  const layer* first = net.add("dense", {x, nullptr}, {h});
  net.feeds = {x};
  net.fetches = {y};
  auto view = make_view(net);
  REQUIRE(view);
  REQUIRE(view->order().size() == 2);
  CHECK(view->operator_name(view->order()[0]) == "dense");
  CHECK(view->user_key(view->order()[0]) == reinterpret_cast<std::uintptr_t>(first));
  CHECK(user_handle<pointer_net>(*view, view->order()[1]) == second);
  CHECK(user_handle<pointer_net>(*view, value_named(*view, "hidden")) == h);
  CHECK(find_value<pointer_net>(*view, y) == value_named(*view, "out"));
  CHECK(find_value<pointer_net>(*view, net.add("stranger")) == absent);
  CHECK(view->inputs(view->order()[0])[1] == absent);  // a null pointer is an absent value
  CHECK_FALSE(view->attributes(view->order()[0])("axis"));
  CHECK(view->opset(view->order()[0]) == newest_opset);
}

TEST_CASE("a graph with nothing but the required traits is enough, with integers as handles") {
  minimal_net net;
  net.units = {{"second", {5}, {6}}, {"first", {0}, {5, 7}}};
  net.inputs = {0};  // 0 is a handle like any other
  net.outputs = {6, 7};
  auto view = make_view(net);
  REQUIRE(view);
  REQUIRE(view->order().size() == 2);
  CHECK(view->operator_name(view->order()[0]) == "first");
  CHECK(view->user_key(view->inputs()[0]) == 0);
  CHECK(user_handle<minimal_net>(*view, view->order()[0]) == 1);
  CHECK(view->value_count() == 5);
  CHECK_FALSE(view->declared(view->inputs()[0]).has_shape);
  CHECK(view->name(view->order()[0]) == "first_1");

  net.units[0].reads.push_back(99);
  CHECK(make_view(net).error().code() == errc::undefined_value);
}

TEST_CASE("attributes are read through the view") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  g.output(g.op("Concat", {x, x}, {{"axis", -1}, {"alpha", 0.25}, {"mode", "m"}}));
  auto view = make_view(g);
  REQUIRE(view);
  const attribute_source& a = view->attributes(view->order()[0]);
  CHECK(a.integer("axis", 7) == -1);
  CHECK(a.integer("none", 7) == 7);
  CHECK(a.integer("alpha", 7) == 7);  // another kind counts as not set
  CHECK(a.real("alpha", 0) == 0.25);
  CHECK(a.string("mode", "") == "m");
}

TEST_CASE("an empty graph has an empty view") {
  const graph g;
  auto view = make_view(g);
  REQUIRE(view);
  CHECK(view->node_count() == 0);
  CHECK(view->order().empty());
  CHECK(view->value_count() == 1);
}
