// The solver knows nothing of shapes: other lattices run on it.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <sod2/expr/interval.hpp>
#include <sod2/graph/graph.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/rdp/solver.hpp>

using namespace sod2;

namespace {

// ---- data layouts: forward through elementwise operators, backward from those that care
// ----------

enum class order : std::uint8_t { any, channels_first, channels_last, mixed };

struct layouts {
  const graph_view& view;
  std::vector<order> of;
  int visits = 0;

  explicit layouts(const graph_view& v) : view(v), of(v.value_count(), order::any) {}
  const vector<node_id>* also(value_id) const { return nullptr; }

  template <class Changed>
  void meet(value_id v, order o, Changed& changed) {
    order& have = of[v.index];
    const order now = have == order::any || have == o ? o : o == order::any ? have : order::mixed;
    if (now == have) return;
    have = now;
    changed(v);
  }
  template <class Changed>
  status visit(node_id n, Changed& changed) {
    ++visits;
    const auto op = view.operator_name(n);
    const value_id out = view.outputs(n)[0];
    if (op == "first" || op == "last") {
      const order o = op == "first" ? order::channels_first : order::channels_last;
      for (value_id v : view.inputs(n)) meet(v, o, changed);
      meet(out, o, changed);
    } else if (op == "same") {  // inputs and outputs agree
      for (value_id v : view.inputs(n)) meet(out, of[v.index], changed);
      for (value_id w : view.outputs(n)) meet(w, of[out.index], changed);
      for (value_id v : view.inputs(n)) meet(v, of[out.index], changed);
    } else if (op == "fail") {
      return error(errc::unsupported, "no layout");
    }
    return {};
  }
};

// ---- value ranges: forward only, with a bound on the iterations
// ----------------------------------

struct ranges {
  const graph_view& view;
  std::vector<interval> of;

  explicit ranges(const graph_view& v) : view(v), of(v.value_count()) {}
  const vector<node_id>* also(value_id) const { return nullptr; }
  template <class Changed>
  status visit(node_id n, Changed& changed) {
    const auto in = [&](std::size_t i) { return of[view.inputs(n)[i].index]; };
    const auto op = view.operator_name(n);
    interval r;
    if (op == "Relu") r = max(in(0), interval::point(0));
    if (op == "Sigmoid") r = {0, 1};
    if (op == "Add") r = in(0) + in(1);
    if (op == "Mul") r = in(0) * in(1);
    interval& have = of[view.outputs(n)[0].index];
    if (have != r) {
      have = r;
      changed(view.outputs(n)[0]);
    }
    return {};
  }
};

// The output beside the demanded one is known through the input only.
struct two_way : layouts {
  using layouts::layouts;
  template <class Changed>
  status visit(node_id n, Changed& changed) {
    if (view.operator_name(n) != "split") return layouts::visit(n, changed);
    const value_id in = view.inputs(n)[0];
    meet(view.outputs(n)[0], of[in.index], changed);
    meet(in, of[view.outputs(n)[1].index], changed);
    return {};
  }
};
// Reports a change at every visit.
struct restless {
  const graph_view& view;
  int visits = 0;
  const vector<node_id>* also(value_id) const { return nullptr; }
  template <class Changed>
  status visit(node_id n, Changed& changed) {
    ++visits;
    changed(view.inputs(n)[0]);
    changed(view.outputs(n)[0]);
    return {};
  }
};

value_id named(const graph_view& view, std::string_view name) {
  for (std::uint32_t i = 1; i < view.value_count(); ++i)
    if (view.name(value_id{i}) == name) return value_id{i};
  FAIL("no such value");
  return {};
}

}  // namespace

TEST_CASE("layouts flow forward, backward and sideways to a fixpoint") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {});
  const value_id a = g.op("same", {x}, {}, "a");
  const value_id b = g.op("same", {a}, {}, "b");
  const value_id c = g.op("same", {b}, {}, "c");
  g.output(g.op("last", {c}, {}, "d"));
  const value_id other = g.op("same", {a}, {}, "other");  // learns it from a
  g.output(other);
  g.output(g.op("first", {g.input("y", dtype::f32, {})}, {}, "alone"));
  auto view = make_view(g);
  REQUIRE(view);
  layouts transfer(*view);
  auto done = solve(*view, transfer);
  REQUIRE(done);
  for (const char* name : {"x", "a", "b", "c", "d", "other"})
    CHECK(transfer.of[named(*view, name).index] == order::channels_last);
  CHECK(transfer.of[named(*view, "alone").index] == order::channels_first);
  CHECK(done->visits == static_cast<std::uint64_t>(transfer.visits));
  CHECK(done->sweeps > 1);
}

TEST_CASE("two demands on one value meet at the bottom, not in a loop") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {});
  const value_id a = g.op("same", {x}, {}, "a");
  g.output(g.op("last", {a}));
  g.output(g.op("first", {a}));
  auto view = make_view(g);
  layouts transfer(*view);
  REQUIRE(solve(*view, transfer));
  CHECK(transfer.of[named(*view, "a").index] == order::mixed);
  CHECK(transfer.of[named(*view, "x").index] == order::mixed);
}

TEST_CASE("what a node learns of its input reaches its other outputs") {
  // `split` has its first output without a demand; only the demand on the second one says what the
  // input is, and only the input says what the first output is.
  graph g;
  const value_id x = g.input("x", dtype::f32, {});
  const auto parts = g.ops("split", {x}, 2, {}, "first_part");
  g.output(parts[0]);
  g.output(g.op("last", {parts[1]}));
  auto view = make_view(g);
  two_way transfer(*view);
  REQUIRE(solve(*view, transfer));
  CHECK(transfer.of[named(*view, "x").index] == order::channels_last);
  CHECK(transfer.of[named(*view, "first_part").index] == order::channels_last);
}

TEST_CASE("value ranges of another domain on the same solver") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {});
  const value_id gate = g.op("Sigmoid", {x}, {}, "gate");
  const value_id kept = g.op("Relu", {x}, {}, "kept");
  const value_id sum = g.op("Add", {gate, gate}, {}, "sum");
  g.output(g.op("Mul", {sum, sum}, {}, "square"));
  g.output(g.op("Mul", {kept, gate}, {}, "scaled"));
  auto view = make_view(g);
  ranges transfer(*view);
  auto done = solve(*view, transfer);
  REQUIRE(done);
  CHECK(transfer.of[named(*view, "square").index] == interval{0, 4});
  CHECK(transfer.of[named(*view, "scaled").index] == interval{0, infinity});
  CHECK(done->visits == 5);  // in topological order one visit each is enough
}

TEST_CASE("an error of the transfer ends the run, a restless transfer is cut off") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {});
  SUBCASE("error") {
    g.output(g.op("fail", {x}));
    auto view = make_view(g);
    layouts transfer(*view);
    auto done = solve(*view, transfer);
    REQUIRE_FALSE(done);
    CHECK(done.error().code() == errc::unsupported);
  }
  SUBCASE("restless") {
    g.output(g.op("b", {g.op("a", {x})}));
    auto view = make_view(g);
    restless transfer{*view};
    REQUIRE(solve(*view, transfer, 10));
    CHECK(transfer.visits == 20);
  }
}

TEST_CASE("nodes of sub-graphs stand before their owner") {
  graph g;
  const value_id x = g.input("x", dtype::boolean, {});
  graph::node owner;
  owner.name = "owner";
  owner.op = "If";
  owner.inputs = {x};
  owner.outputs = {g.add_value("y")};
  const scope_id arm = g.add_scope("then_branch");
  owner.scopes = {arm};
  g.add_node(owner);
  g.enter(arm);
  g.output(g.op("inner", {x}));
  g.enter(graph_view::root());
  g.output(owner.outputs[0]);
  auto view = make_view(g);
  REQUIRE(view);
  const auto order = nested_order(*view);
  REQUIRE(order.size() == 2);
  CHECK(view->operator_name(order[0]) == "inner");
  CHECK(view->operator_name(order[1]) == "If");
}
