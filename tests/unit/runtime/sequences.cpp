// Sequences and optionals as values, against plain C++.
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "unit/runtime/regions.hpp"

using namespace sod2;
using test::careful;
using test::compiled;
using test::control;
using test::flag;
using test::formal;
using test::must;
using test::number;
using test::tensor;

namespace {
using tensors = std::vector<tensor>;

/// A sequence or optional that lives in the caller's memory.
struct list {
  tensors owned;
  std::vector<tensor_view> items;
  std::int64_t count = 0;
  dtype type;

  explicit list(tensors from, dtype type_ = dtype::sequence)
      : owned(std::move(from)),
        items(test::views(owned)),
        count(static_cast<std::int64_t>(items.size())),
        type(type_) {}
  explicit list(tensor_view item) : items{item}, count(1), type(dtype::optional) {}
  tensor_view view() { return {items.data(), &count, 1, type}; }
};
value_id list_input(graph& g, std::string name, fact_kind kind) {
  const value_id v = g.add_value(std::move(name));
  g.values()[v.index].kind = kind;
  g.values()[v.index].type = dtype::f32;
  g.scopes()[0].inputs.push_back(v);
  return v;
}
value_id ranked_list_input(graph& g, std::string name, fact_kind kind, std::vector<dim_spec> dims) {
  const value_id v = list_input(g, std::move(name), kind);
  g.values()[v.index].has_shape = true;
  g.values()[v.index].dims = std::move(dims);
  return v;
}
tensors items_of(const tensor_view& v) {
  REQUIRE(v.type == dtype::sequence);
  tensors out;
  for (std::int64_t k = 0; k < v.count(); ++k) out.push_back(tensor::of(v.item(k)));
  return out;
}
bool same(const tensors& a, const tensors& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k)
    if (a[k].dims != b[k].dims || a[k].data != b[k].data) return false;
  return true;
}
std::string why(const status& s) { return s ? std::string("it ran") : s.error().text(); }
}  // namespace

TEST_CASE("sequences: construct, insert, erase, at, length, with elements of different sizes") {
  graph g;
  const value_id a = g.input("a", dtype::f32, {"A"});
  const value_id b = g.input("b", dtype::f32, {"B"});
  const value_id at = g.input("at", dtype::i64, {});
  const value_id both = g.op("SequenceConstruct", {a, b});
  const value_id more = g.op("SequenceInsert", {both, g.op("Neg", {a}), at});
  const value_id less = g.op("SequenceErase", {more, at});
  g.output(more);
  g.output(less);
  g.output(g.op("Relu", {g.op("SequenceAt", {more, at})}));
  g.output(g.op("SequenceLength", {less}));
  const program p = compiled(g);
  session s(p, careful());
  const tensor x = tensor::random({3}, 1), y = tensor::random({5}, 2);
  tensor minus = x;
  for (float& v : minus.data) v = -v;
  for (std::int64_t k : {0, 1, 2, -1, -2}) {
    if (k == 2) {  // erase and at take one position less than insert
      must(s.run(std::vector<tensor_view>{x.view(), y.view(), number(k)}));
      CHECK(same(items_of(s.output(0)), {x, y, minus}));
      continue;
    }
    must(s.run(std::vector<tensor_view>{x.view(), y.view(), number(k)}));
    tensors want{x, y};
    want.insert(want.begin() + static_cast<std::ptrdiff_t>(k < 0 ? k + 2 : k), minus);
    CHECK(same(items_of(s.output(0)), want));
    const auto where = static_cast<std::size_t>(k < 0 ? k + 3 : k);
    tensor relu = want[where];
    for (float& v : relu.data) v = v < 0 ? 0 : v;
    CHECK(test::close(tensor::of(s.output(2)), relu));
    want.erase(want.begin() + static_cast<std::ptrdiff_t>(where));
    CHECK(same(items_of(s.output(1)), want));
    CHECK(*s.output(3).as<std::int64_t>() == 2);
  }
  std::int64_t wrong = 7;
  CHECK(why(s.run(std::vector<tensor_view>{x.view(), y.view(), number(wrong)}))
            .find("position 7 in a sequence of 2 elements") != std::string::npos);
}

TEST_CASE("a wrong position is one line with the node and both numbers") {
  graph g;
  const value_id q = ranked_list_input(g, "q", fact_kind::sequence, {"N"});
  const value_id at = g.input("at", dtype::i64, {});
  g.output(g.op("SequenceAt", {q, at}));
  const program p = compiled(g);
  session s(p);
  const tensors in{tensor::random({2}, 1), tensor::random({4}, 2), tensor::random({1}, 3)};
  list given(in);
  for (std::int64_t k : {3, -4}) {
    const std::string text = why(s.run(std::vector<tensor_view>{given.view(), number(k)}));
    CHECK(text ==
          "node 'SequenceAt_0': position " + std::to_string(k) + " in a sequence of 3 elements");
  }
  std::int64_t last = -1;
  must(s.run(std::vector<tensor_view>{given.view(), number(last)}));
  CHECK(test::close(tensor::of(s.output(0)), in[2]));
  list wrong(in, dtype::optional);
  CHECK(why(s.run(std::vector<tensor_view>{wrong.view(), number(last)})) ==
        "tensor 'q': input has a wrong element type (sequence vs optional)");
}

TEST_CASE("sequences that alias inputs and each other; empty ones") {
  graph g;
  const value_id q = ranked_list_input(g, "q", fact_kind::sequence, {"N"});
  const value_id same_one = g.op("Identity", {q});
  g.output(q);
  g.output(same_one);
  g.output(same_one);
  g.output(g.op("SequenceEmpty", {}, {{"dtype", 1}}));
  const value_id none = g.constant<float>("c", {2}, {4, 5});
  g.output(none);
  g.output(none);
  const program p = compiled(g);
  session s(p, careful());
  for (const tensors& in : {tensors{tensor::random({2}, 1), tensor::random({0}, 2)}, tensors{}}) {
    list given(in);
    must(s.run(std::vector<tensor_view>{given.view()}));
    for (std::size_t k : {0U, 1U, 2U}) {
      CHECK(same(items_of(s.output(k)), in));
      if (!in.empty()) CHECK(s.output(k).item(0).data != given.items[0].data);
    }
    CHECK(items_of(s.output(3)).empty());
    CHECK(tensor::of(s.output(4)).data == std::vector<float>{4, 5});
    CHECK(tensor::of(s.output(5)).data == std::vector<float>{4, 5});
  }
}

TEST_CASE("split to a sequence and back, along any axis, in equal, listed and single parts") {
  const tensor in = tensor::random({4, 5, 3}, 7);
  for (std::int64_t axis : {0, 1, 2, -1})
    for (int how : {0, 1, 2, 3}) {
      CAPTURE(axis);
      CAPTURE(how);
      graph g;
      const value_id x = g.input("x", dtype::f32, {"A", "B", "C"});
      const auto extent = in.dims[static_cast<std::size_t>(axis < 0 ? axis + 3 : axis)];
      std::vector<value_id> inputs{x};
      if (how == 0) inputs.push_back(g.constant<std::int64_t>("part", {}, {2}));
      if (how == 1) inputs.push_back(g.constant<std::int64_t>("parts", {2}, {1, extent - 1}));
      std::vector<attribute> attributes{{"axis", axis}};
      if (how == 3) attributes.push_back({"keepdims", 0});
      const value_id q = g.op("SplitToSequence", inputs, attributes);
      g.output(g.op("ConcatFromSequence", {q}, {{"axis", axis}, {"new_axis", how == 3 ? 1 : 0}}));
      g.output(g.op("SequenceLength", {q}));
      const program p = compiled(g);
      session s(p, careful());
      must(s.run(std::vector<tensor_view>{in.view()}));
      CHECK(test::close(tensor::of(s.output(0)), in));
      CHECK(*s.output(1).as<std::int64_t>() == (how == 0   ? (extent + 1) / 2
                                                : how == 1 ? 2
                                                           : extent));
    }
}

TEST_CASE("branches of sequences; optionals with and without a value") {
  graph g;
  const value_id o = ranked_list_input(g, "o", fact_kind::optional, {"N"});
  const value_id x = g.input("x", dtype::f32, {"M"});
  const value_id has = g.op("OptionalHasElement", {o});
  const value_id q = control(g, "If", {has}, 1,
                             {{"then_branch",
                               [&] {
                                 const value_id v = g.op("OptionalGetElement", {o});
                                 g.output(g.op("SequenceConstruct", {v, x}));
                               }},
                              {"else_branch", [&] {
                                 const value_id empty = g.op("SequenceEmpty", {}, {{"dtype", 1}});
                                 g.output(g.op("SequenceInsert", {empty, x}));
                               }}})[0];
  g.output(q);
  g.output(has);
  g.output(g.op("ConcatFromSequence", {q}, {{"axis", 0}}));
  g.output(g.op("Identity", {g.op("Optional", {q})}));
  const program p = compiled(g);
  session s(p, careful());
  const tensor held = tensor::random({3}, 1), in = tensor::random({2}, 2);
  for (bool given : {true, false, true}) {
    list value(given ? tensors{held} : tensors{}, dtype::optional);
    must(s.run(std::vector<tensor_view>{value.view(), in.view()}));
    const tensors want = given ? tensors{held, in} : tensors{in};
    CHECK(same(items_of(s.output(0)), want));
    CHECK(*s.output(1).as<std::uint8_t>() == (given ? 1 : 0));
    CHECK(s.output(2).dim(0) == (given ? 5 : 2));
    REQUIRE(s.output(3).type == dtype::optional);
    CHECK(same(items_of(s.output(3).item(0)), want));
  }
}

TEST_CASE("an optional sequence without a value") {
  graph g;
  const value_id o = list_input(g, "o", fact_kind::optional_sequence);
  g.output(g.op("OptionalGetElement", {o}));
  g.output(g.op("OptionalHasElement", {g.op("Optional", {})}));
  const program p = compiled(g);
  session s(p);
  const tensors in{tensor::random({2}, 1), tensor::random({4}, 2)};
  list inner(in), value(inner.view()), nothing(tensors{}, dtype::optional);
  must(s.run(std::vector<tensor_view>{value.view()}));
  CHECK(same(items_of(s.output(0)), in));
  CHECK(*s.output(1).as<std::uint8_t>() == 0);
  CHECK(why(s.run(std::vector<tensor_view>{nothing.view()})) ==
        "node 'OptionalGetElement_0': the optional has no value");
}

namespace {
/// `m` trips, each of which puts x + trip at the end of a sequence that starts as q.
graph collecting(bool start_empty) {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id m = g.input("m", dtype::i64, {});
  const value_id q =
      start_empty ? g.op("SequenceEmpty", {}, {{"dtype", 1}}) : g.op("SequenceConstruct", {x});
  const auto out = control(g, "Loop", {m, absent, q}, 1,
                           {{"body", [&] {
                               const value_id trip = g.input("trip", dtype::i64, {});
                               const value_id on = g.input("on", dtype::boolean, {});
                               const value_id have = formal(g, "have");
                               g.output(on);
                               const value_id t = g.op("Cast", {trip}, {{"to", 1}});
                               g.output(g.op("SequenceInsert", {have, g.op("Add", {x, t})}));
                             }}});
  g.output(out[0]);
  g.output(g.op("SequenceLength", {out[0]}));
  return g;
}
}  // namespace

TEST_CASE("a sequence that grows in a loop; no trips; a steady run allocates nothing") {
  const tensor in = tensor::random({3}, 4);
  for (bool start_empty : {true, false}) {
    const program p = compiled(collecting(start_empty));
    std::uint64_t least = 0;
    for (std::int64_t n : {0, 1, 100, 10000}) {
      session s(p, careful());
      const std::vector<tensor_view> inputs{in.view(), number(n)};
      must(s.bind_inputs(inputs));
      std::uint64_t before = test::allocations();
      must(s.run(inputs));
      const std::uint64_t first = test::allocations() - before;
      if (n == 1) least = first;
      // Elements, and what lists of them three values take turns to hold.
      if (n > 1)
        CHECK(static_cast<double>(first - least) <= 10 * std::log2(static_cast<double>(n)));
      tensors want(start_empty ? 0 : 1, in);
      for (std::int64_t t = 0; t < n; ++t) {
        want.push_back(in);
        for (float& v : want.back().data) v += static_cast<float>(t);
      }
      CHECK(same(items_of(s.output(0)), want));
      CHECK(*s.output(1).as<std::int64_t>() == static_cast<std::int64_t>(want.size()));
      must(s.run(inputs));
      before = test::allocations();
      const status again = s.run(inputs);
      CHECK(test::allocations() == before);
      must(again);
    }
  }
}

TEST_CASE("a loop returns its sequences, swapped and unchanged") {
  graph g;
  const value_id a = g.input("a", dtype::f32, {"A"});
  const value_id b = g.input("b", dtype::f32, {"B"});
  const value_id m = g.input("m", dtype::i64, {});
  const auto out = control(g, "Loop",
                           {m, absent, g.op("SequenceConstruct", {a, a}),
                            g.op("SequenceConstruct", {b}), g.op("SequenceConstruct", {a, b})},
                           3, {{"body", [&] {
                                  (void)g.input("trip", dtype::i64, {});
                                  const value_id on = g.input("on", dtype::boolean, {});
                                  const value_id p = formal(g, "p"), q = formal(g, "q");
                                  const value_id r = formal(g, "r");
                                  g.output(on);
                                  g.output(q);
                                  g.output(p);
                                  g.output(r);
                                }}});
  for (value_id v : out) g.output(v);
  const program p = compiled(g);
  session s(p, careful());
  const tensor x = tensor::random({2}, 1), y = tensor::random({3}, 2);
  for (std::int64_t n : {0, 1, 2, 5}) {
    must(s.run(std::vector<tensor_view>{x.view(), y.view(), number(n)}));
    CHECK(same(items_of(s.output(n % 2 == 0 ? 0 : 1)), {x, x}));
    CHECK(same(items_of(s.output(n % 2 == 0 ? 1 : 0)), {y}));
    CHECK(same(items_of(s.output(2)), {x, y}));
  }
}

TEST_CASE("a map over sequences whose elements differ in size") {
  graph g;
  const value_id q = ranked_list_input(g, "q", fact_kind::sequence, {"N"});
  const value_id x = g.input("x", dtype::f32, {1});
  const auto out = control(g, "SequenceMap", {q, x}, 2,
                           {{"body", [&] {
                               const value_id one = formal(g, "one"), other = formal(g, "other");
                               g.output(g.op("Add", {one, other}));
                               g.output(g.op("Concat", {one, one}, {{"axis", 0}}));
                             }}});
  for (value_id v : out) g.output(v);
  const program p = compiled(g);
  session s(p, careful());
  const tensor add{{1}, {2}};
  for (const tensors& in :
       {tensors{tensor::random({2}, 1), tensor::random({4}, 2), tensor::random({2}, 3)},
        tensors{}}) {
    list given(in);
    must(s.run(std::vector<tensor_view>{given.view(), add.view()}));
    tensors sums = in, twice = in;
    for (std::size_t k = 0; k < in.size(); ++k) {
      for (float& v : sums[k].data) v += 2;
      twice[k].dims[0] *= 2;
      twice[k].data.insert(twice[k].data.end(), in[k].data.begin(), in[k].data.end());
    }
    CHECK(same(items_of(s.output(0)), sums));
    CHECK(same(items_of(s.output(1)), twice));
  }
}
