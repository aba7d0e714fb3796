// Regions: branches, loops, scans and sizes that only a run knows, against plain C++.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>

#include "unit/runtime/regions.hpp"

using namespace sod2;
using test::careful;
using test::compiled;
using test::control;
using test::flag;
using test::formal;
using test::must;
using test::number;
using test::shape_of;
using test::tensor;

namespace {
std::int64_t one[1] = {1};
}  // namespace

TEST_CASE("a branch runs the taken arm alone and captures without copies") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 4});
  const value_id c = g.input("c", dtype::boolean, {});
  const value_id y = g.op("Relu", {x});
  const value_id out = control(g, "If", {c}, 1,
                               {{"then_branch",
                                 [&] {
                                   g.output(g.op("Add", {g.op("Sigmoid", {y}), x}));
                                 }},
                                {"else_branch", [&] { g.output(g.op("Softmax", {y})); }}})[0];
  g.output(g.op("Mul", {out, y}), "z");
  const program p = compiled(g);
  session s(p, careful());
  for (std::int64_t n : {3, 1, 7}) {
    const tensor in = tensor::random({n, 4}, 5);
    for (std::uint8_t taken : {std::uint8_t{1}, std::uint8_t{0}}) {
      must(s.run(std::vector<tensor_view>{in.view(), flag(taken)}));
      const tensor got = tensor::of(s.output(0));
      tensor want = in;
      for (std::size_t row = 0; row < static_cast<std::size_t>(n); ++row) {
        double sum = 0;
        for (std::size_t k = 0; k < 4; ++k)
          sum += std::exp(std::max(0.0, static_cast<double>(in.data[row * 4 + k])));
        for (std::size_t k = 0; k < 4; ++k) {
          const float v = in.data[row * 4 + k], r = std::max(0.0F, v);
          want.data[row * 4 + k] =
              r * (taken != 0 ? 1 / (1 + std::exp(-r)) + v
                              : static_cast<float>(std::exp(static_cast<double>(r)) / sum));
        }
      }
      CHECK(test::close(got, want));
      CHECK(s.nodes_run() == (taken != 0 ? 5 : 4));
    }
  }
}

TEST_CASE(
    "all branches: both arms run, the condition selects, what the other one breaks is ignored") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id index = g.input("index", dtype::i64, {});
  const value_id c = g.input("c", dtype::boolean, {});
  const value_id out = control(g, "If", {c}, 1,
                               {{"then_branch",
                                 [&] {  // fails where the index is beyond x
                                   const value_id one_element = g.op("Gather", {x, index});
                                   g.output(g.op("Add", {x, one_element}));
                                 }},
                                {"else_branch", [&] { g.output(g.op("Relu", {x})); }}})[0];
  g.output(out, "z");
  compile_options both;
  both.all_branches = true;
  const program p = compiled(g), wasteful = compiled(g, both);
  session s(p, careful()), all(wasteful, careful());
  const tensor in = tensor::random({5}, 3);
  const auto steps = [&](session& of, std::int64_t at, std::uint8_t taken) {
    must(of.run(std::vector<tensor_view>{in.view(), number(at), flag(taken)}));
    tensor want = in;
    for (float& v : want.data)
      v = taken != 0 ? v + in.data[static_cast<std::size_t>(at)] : std::max(0.0F, v);
    CHECK(test::close(tensor::of(of.output(0)), want));
    return of.nodes_run();
  };
  CHECK(steps(s, 2, 1) == 3);
  CHECK(steps(s, 2, 0) == 2);
  CHECK(steps(all, 2, 1) == 4);
  CHECK(steps(all, 2, 0) == 4);
  CHECK(steps(all, 9, 0) == 2);
  std::int64_t beyond = 9;
  std::uint8_t yes = 1;
  CHECK(all.run(std::vector<tensor_view>{in.view(), number(beyond), flag(yes)}).error().code() ==
        errc::index_range);
}

TEST_CASE("all branches: an arm that cannot run goes as far as it can") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {6});
  const value_id c = g.input("c", dtype::boolean, {});
  const value_id weights = g.constant<float>("w", {4, 4}, std::vector<float>(16, 1.0F));
  g.output(control(g, "If", {c}, 1,
                   {{"then_branch", [&] { g.output(g.op("Relu", {x})); }},
                    {"else_branch",
                     [&] {
                       const value_id soft = g.op("Softmax", {g.op("Sigmoid", {x})});
                       g.output(g.op("MatMul", {g.op("Neg", {soft}), weights}));
                     }}})[0],
           "z");
  compile_options both;
  both.all_branches = true;
  const program p = compiled(g), wasteful = compiled(g, both);
  session s(p, careful()), all(wasteful, careful());
  const tensor in = tensor::random({6}, 3);
  std::uint8_t yes = 1, no = 0;
  for (session* of : {&s, &all}) {
    must(of->run(std::vector<tensor_view>{in.view(), flag(yes)}));
    tensor want = in;
    for (float& v : want.data) v = std::max(0.0F, v);
    CHECK(test::close(tensor::of(of->output(0)), want));
    CHECK(of->nodes_run() == (of == &s ? 2 : 5));
    const status broken = of->run(std::vector<tensor_view>{in.view(), flag(no)});
    CHECK(broken.error().code() == errc::contradiction);
  }
}

TEST_CASE("branches nest eight deep") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  std::vector<value_id> conditions;
  for (int k = 0; k < 8; ++k)
    conditions.push_back(g.input("c" + std::to_string(k), dtype::boolean, {}));
  const std::function<value_id(std::size_t, value_id)> nest = [&](std::size_t depth,
                                                                  value_id v) -> value_id {
    if (depth == 8) return v;
    return control(g, "If", {conditions[depth]}, 1,
                   {{"then_branch",
                     [&] {
                       g.output(nest(depth + 1, g.op("Add", {v, x})));
                     }},
                    {"else_branch", [&] { g.output(g.op("Neg", {v})); }}})[0];
  };
  g.output(nest(0, x), "y");
  const program p = compiled(g);
  session s(p, careful());
  const tensor in = tensor::random({6}, 3);
  for (std::size_t last = 0; last <= 8; ++last) {
    std::array<std::uint8_t, 8> c{};
    for (std::size_t k = 0; k < last; ++k) c[k] = 1;
    std::vector<tensor_view> inputs{in.view()};
    for (std::uint8_t& b : c) inputs.push_back(flag(b));
    must(s.run(inputs));
    tensor want = in;
    for (float& v : want.data) v *= (last < 8 ? -1.0F : 1.0F) * static_cast<float>(last + 1);
    CHECK(test::close(tensor::of(s.output(0)), want));
  }
}

TEST_CASE("arms of different sizes; the size is the run's") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 3});
  const value_id c = g.input("c", dtype::boolean, {});
  const value_id out = control(g, "If", {c}, 1,
                               {{"then_branch",
                                 [&] {
                                   g.output(g.op("Concat", {x, x}, {{"axis", 0}}));
                                 }},
                                {"else_branch", [&] { g.output(x); }}})[0];
  g.output(g.op("Relu", {g.op("Neg", {out})}), "y");
  const program p = compiled(g);
  session s(p, careful());
  for (std::uint8_t taken : {std::uint8_t{1}, std::uint8_t{0}, std::uint8_t{1}}) {
    const tensor in = tensor::random({5, 3}, 9);
    must(s.run(std::vector<tensor_view>{in.view(), flag(taken)}));
    tensor want = in;
    if (taken != 0) {
      want.dims[0] = 10;
      want.data.insert(want.data.end(), in.data.begin(), in.data.end());
    }
    for (float& v : want.data) v = std::max(0.0F, -v);
    CHECK(test::close(tensor::of(s.output(0)), want));
  }
}

TEST_CASE("NonZero, Gather and what follows, down to nothing") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id zero = g.constant<float>("zero", {}, std::vector<float>{0.0F});
  const value_id at = g.op("NonZero", {g.op("Greater", {x, zero})});
  const value_id index = g.op("Squeeze", {at, g.constant<std::int64_t>("axes", {1}, {0})});
  const value_id kept = g.op("Gather", {x, index});
  g.output(g.op("Add", {g.op("Mul", {kept, kept}), kept}), "y");
  g.output(kept, "kept");
  g.output(at, "at");
  const program p = compiled(g);
  session s(p, careful());
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    tensor in = tensor::random({static_cast<std::int64_t>(seed * 7 + 1)}, seed);
    if (seed == 3)
      for (float& v : in.data) v = -1.0F;
    must(s.run(std::vector<tensor_view>{in.view()}));
    tensor want{{0}, {}}, kept_want{{0}, {}};
    for (float v : in.data)
      if (v > 0) {
        want.data.push_back(v * v + v);
        kept_want.data.push_back(v);
      }
    kept_want.dims[0] = want.dims[0] = static_cast<std::int64_t>(want.data.size());
    CHECK(test::close(tensor::of(s.output(0)), want));
    CHECK(test::close(tensor::of(s.output(1)), kept_want));
    CHECK(shape_of(s.output(2)) == std::vector<std::int64_t>{1, want.dims[0]});
  }
  // The other two protocols.
  const tensor in = tensor::random({40}, 77);
  must(s.run(std::vector<tensor_view>{in.view()}));
  const tensor first = tensor::of(s.output(0));
  std::array<float, 40> mine{}, rest{};
  std::array<std::int64_t, 40> places{};
  std::array<output_target, 3> targets{};
  for (output_target& t : targets) t.how = output_target::protocol::buffer;
  targets[0].data = mine.data();
  targets[0].capacity = sizeof mine;
  targets[1].data = rest.data();
  targets[1].capacity = sizeof rest;
  targets[2].data = places.data();
  targets[2].capacity = sizeof places;
  must(s.run(std::vector<tensor_view>{in.view()}, targets));
  CHECK(s.output(0).data == mine.data());
  CHECK(test::close(tensor::of(s.output(0)), first));
  targets[0].capacity = 4;
  const status small = s.run(std::vector<tensor_view>{in.view()}, targets);
  REQUIRE(!small);
  CHECK(small.error().code() == errc::buffer_too_small);
  std::vector<std::byte> given(4096);
  targets[0].how = output_target::protocol::callback;
  targets[0].context = given.data();
  targets[0].allocate = [](void* c, std::size_t, const std::int64_t*, std::size_t, dtype,
                           std::size_t) { return c; };
  must(s.run(std::vector<tensor_view>{in.view()}, targets));
  CHECK(s.output(0).data == given.data());
  CHECK(test::close(tensor::of(s.output(0)), first));
}

TEST_CASE("sizes that steering values give: Slice, Reshape, Range, Tile") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id n = g.input("n", dtype::i64, {1});
  const value_id start = g.constant<std::int64_t>("start", {1}, {0});
  const value_id cut = g.op("Slice", {x, start, n});
  const value_id minus = g.constant<std::int64_t>("minus", {1}, {-1});
  const value_id rows = g.op("Reshape", {cut, g.op("Concat", {n, minus}, {{"axis", 0}})});
  g.output(g.op("Relu", {rows}), "rows");
  g.output(g.op("Tile", {x, n}), "tiled");
  const program p = compiled(g);
  session s(p, careful());
  const tensor in = tensor::random({9}, 1);
  for (std::int64_t k : {1, 4, 9, 2}) {
    must(s.run(std::vector<tensor_view>{in.view(), {&k, one, 1, dtype::i64}}));
    tensor want{{k, 1}, {}}, tiled{{9 * k}, {}};
    for (std::int64_t i = 0; i < k; ++i) {
      want.data.push_back(std::max(0.0F, in.data[static_cast<std::size_t>(i)]));
      tiled.data.insert(tiled.data.end(), in.data.begin(), in.data.end());
    }
    CHECK(test::close(tensor::of(s.output(0)), want));
    CHECK(test::close(tensor::of(s.output(1)), tiled));
  }
}

namespace {
/// sum += x (captured) each trip, a scan output of every sum; goes on while the limit of the input
/// is not reached.
graph summing(bool by_condition, bool stacked = true) {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id m = g.input("m", dtype::i64, {});
  const value_id start = g.op("Sub", {x, x});
  const auto out =
      control(g, "Loop", {by_condition ? absent : m, absent, start}, stacked ? 2 : 1,
              {{"body", [&] {
                  const value_id trip = g.input("trip", dtype::i64, {});
                  const value_id on = g.input("on", dtype::boolean, {});
                  const value_id sum = formal(g, "sum");
                  const value_id next = g.op("Add", {sum, x});
                  const value_id last =
                      g.op("Add", {trip, g.constant<std::int64_t>("one", {}, {std::int64_t{1}})});
                  g.output(by_condition ? g.op("Less", {last, m}) : g.op("Identity", {on}));
                  g.output(next);
                  if (stacked) g.output(g.op("Neg", {next}));
                }}});
  g.output(out[0], "sum");
  if (stacked) g.output(out[1], "all");
  return g;
}
}  // namespace

TEST_CASE("a loop with fixed carried shapes: any trips, both kinds of exit") {
  for (bool by_condition : {false, true}) {
    const program p = compiled(summing(by_condition));
    session s(p, careful());
    const tensor in = tensor::random({5}, 4);
    for (std::int64_t m : {1, 3, 8, 0, 2}) {
      if (by_condition && m == 0) continue;
      must(s.run(std::vector<tensor_view>{in.view(), number(m)}));
      tensor want = in, all{{m, 5}, {}};
      for (float& v : want.data) v *= static_cast<float>(m);
      for (std::int64_t t = 0; t < m; ++t)
        for (float v : in.data) all.data.push_back(-v * static_cast<float>(t + 1));
      CHECK(test::close(tensor::of(s.output(0)), want));
      CHECK(test::close(tensor::of(s.output(1)), all));
    }
  }
}

TEST_CASE("a loop returns its inputs, swapped and unchanged") {
  graph g;
  const value_id a = g.input("a", dtype::f32, {"N"});
  const value_id b = g.input("b", dtype::f32, {"N"});
  const value_id m = g.input("m", dtype::i64, {});
  const auto out = control(g, "Loop", {m, absent, a, b, a}, 3,
                           {{"body", [&] {
                               (void)g.input("trip", dtype::i64, {});
                               const value_id on = g.input("on", dtype::boolean, {});
                               std::vector<value_id> in;
                               for (int k = 0; k < 3; ++k)
                                 in.push_back(formal(g, "f" + std::to_string(k)));
                               g.output(on);
                               g.output(in[1]);
                               g.output(in[0]);
                               g.output(in[2]);
                             }}});
  for (value_id v : out) g.output(v);
  const program p = compiled(g);
  session s(p, careful());
  const tensor x = tensor::random({6}, 1), y = tensor::random({6}, 2);
  for (std::int64_t n : {0, 1, 2, 5}) {
    must(s.run(std::vector<tensor_view>{x.view(), y.view(), number(n)}));
    CHECK(test::close(tensor::of(s.output(0)), n % 2 == 0 ? x : y));
    CHECK(test::close(tensor::of(s.output(1)), n % 2 == 0 ? y : x));
    CHECK(test::close(tensor::of(s.output(2)), x));
  }
}

namespace {
/// Allocations of the first run of a new session.
std::uint64_t allocations_of(const program& p, const tensor& in, std::int64_t trips) {
  session s(p);
  const std::vector<tensor_view> inputs{in.view(), number(trips)};
  const std::uint64_t before = test::allocations();
  const status done = s.run(inputs);
  const std::uint64_t made = test::allocations() - before;
  must(done);
  return made;
}
}  // namespace

TEST_CASE("a growing loop: what is carried gets longer every trip") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id m = g.input("m", dtype::i64, {});
  const auto out = control(g, "Loop", {m, absent, x}, 1,
                           {{"body", [&] {
                               (void)g.input("trip", dtype::i64, {});
                               const value_id on = g.input("on", dtype::boolean, {});
                               const value_id have = formal(g, "have");
                               g.output(on);
                               g.output(g.op("Concat", {have, x}, {{"axis", 0}}));
                             }}});
  g.output(g.op("Neg", {out[0]}), "y");
  const program p = compiled(g);
  const tensor in = tensor::random({3}, 8);
  for (std::int64_t n : {0, 1, 17, 300}) {
    session s(p, careful());
    must(s.run(std::vector<tensor_view>{in.view(), number(n)}));
    tensor want{{3 * (n + 1)}, {}};
    for (std::int64_t t = 0; t <= n; ++t)
      for (float v : in.data) want.data.push_back(-v);
    CHECK(test::close(tensor::of(s.output(0)), want));
  }
  // Doubling: what a trip more costs, beyond what any run does.
  for (std::int64_t n : {16, 256, 4096}) {
    const std::uint64_t least = allocations_of(p, in, 1), all = allocations_of(p, in, n);
    CHECK(static_cast<double>(all - least) <= 2 + 2 * std::log2(static_cast<double>(n)));
  }
}

TEST_CASE("a loop with fixed carried shapes allocates nothing after its first trips") {
  const tensor in = tensor::random({5}, 4);
  for (bool by_condition : {false, true}) {
    const program p = compiled(summing(by_condition, false));
    CHECK(allocations_of(p, in, 10000) == allocations_of(p, in, 2));
    session s(p);
    std::int64_t m = 10000;
    const std::vector<tensor_view> inputs{in.view(), number(m)};
    must(s.run(inputs));
    const std::uint64_t before = test::allocations();
    const status again = s.run(inputs);
    CHECK(test::allocations() == before);
    must(again);
  }
}

TEST_CASE("scans run in both directions along any axis") {
  for (int backwards : {0, 1})
    for (int axis : {0, 1, -1})
      for (int out_axis : {0, 1}) {
        graph g;
        const value_id x = g.input("x", dtype::f32, {"A", "B"});
        const value_id start =
            g.input("s", dtype::f32, {axis == 0 ? dim_spec("B") : dim_spec("A")});
        const auto out = control(g, "Scan", {start, x}, 2,
                                 {{"body",
                                   [&] {
                                     const value_id sum = formal(g, "sum"), row = formal(g, "row");
                                     const value_id next = g.op("Add", {sum, row});
                                     g.output(next);
                                     g.output(g.op("Neg", {next}));
                                   }}},
                                 {{"num_scan_inputs", 1},
                                  {"scan_input_axes", {axis}},
                                  {"scan_output_axes", {out_axis}},
                                  {"scan_input_directions", {backwards}},
                                  {"scan_output_directions", {1 - backwards}}});
        g.output(out[0], "last");
        g.output(out[1], "all");
        const program p = compiled(g);
        session s(p, careful());
        for (std::int64_t rows : {4, 1}) {
          const tensor in = tensor::random({rows, 3}, 6);
          const std::int64_t trips = axis == 0 ? rows : 3, width = axis == 0 ? 3 : rows;
          const tensor first = tensor::random({width}, 2);
          must(s.run(std::vector<tensor_view>{in.view(), first.view()}));
          tensor sum = first, all{{trips, width}, {}};
          if (out_axis == 1) all.dims = {width, trips};
          all.data.resize(static_cast<std::size_t>(trips * width));
          for (std::int64_t t = 0; t < trips; ++t) {
            const std::int64_t from = backwards != 0 ? trips - 1 - t : t;
            const std::int64_t to = backwards != 0 ? t : trips - 1 - t;
            for (std::int64_t k = 0; k < width; ++k) {
              float& v = sum.data[static_cast<std::size_t>(k)];
              v += in.data[static_cast<std::size_t>(axis == 0 ? from * 3 + k : k * 3 + from)];
              all.data[static_cast<std::size_t>(out_axis == 0 ? to * width + k : k * trips + to)] =
                  -v;
            }
          }
          CHECK(test::close(tensor::of(s.output(0)), sum));
          CHECK(test::close(tensor::of(s.output(1)), all));
        }
      }
}

TEST_CASE("outputs that alias inputs, captures and each other") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id c = g.input("c", dtype::boolean, {});
  const auto out = control(g, "If", {c}, 2,
                           {{"then_branch",
                             [&] {
                               g.output(x);
                               g.output(x);
                             }},
                            {"else_branch", [&] {
                               const value_id y = g.op("Neg", {x});
                               g.output(y);
                               g.output(y);
                             }}});
  g.output(x);
  g.output(out[0]);
  g.output(out[1]);
  const program p = compiled(g);
  session s(p, careful());
  const tensor in = tensor::random({4}, 1);
  for (std::uint8_t taken : {std::uint8_t{0}, std::uint8_t{1}}) {
    must(s.run(std::vector<tensor_view>{in.view(), flag(taken)}));
    tensor want = in;
    for (float& v : want.data) v = taken != 0 ? v : -v;
    CHECK(test::close(tensor::of(s.output(0)), in));
    CHECK(test::close(tensor::of(s.output(1)), want));
    CHECK(test::close(tensor::of(s.output(2)), want));
  }
}

TEST_CASE("views of fixed size into memory whose size a run finds out") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 4});
  const value_id n = g.input("n", dtype::i64, {1});
  const value_id next =
      g.op("Add", {n, g.constant<std::int64_t>("one", {1}, std::vector<std::int64_t>{1})});
  const value_id row = g.op(
      "Slice", {x, n, next, g.constant<std::int64_t>("axes", {1}, std::vector<std::int64_t>{0})});
  const value_id flat =
      g.op("Reshape", {row, g.constant<std::int64_t>("four", {1}, std::vector<std::int64_t>{4})});
  g.output(g.op("Neg", {flat}), "y");
  g.output(flat, "flat");
  const program p = compiled(g);
  session s(p, careful());
  const tensor in = tensor::random({3, 4}, 1);
  for (std::int64_t k : {0, 2, 1}) {
    must(s.run(std::vector<tensor_view>{in.view(), {&k, one, 1, dtype::i64}}));
    tensor want{{4}, {in.data.begin() + k * 4, in.data.begin() + k * 4 + 4}};
    CHECK(test::close(tensor::of(s.output(1)), want));
    for (float& v : want.data) v = -v;
    CHECK(test::close(tensor::of(s.output(0)), want));
  }
}

TEST_CASE("counts inside branches inside loops, captured across two levels") {
  // Each trip: if trip is even, sum += number of elements of x above the trip, found by NonZero,
  // times every one of those elements' sum; else an inner loop adds `scale` trip times.
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id m = g.input("m", dtype::i64, {});
  const value_id scale = g.op("Mul", {x, x});
  const auto scalar = [&](const char* name, float v) {
    return g.constant<float>(name, {}, std::vector<float>{v});
  };
  const value_id zero = scalar("zero", 0.0F), tenth = scalar("tenth", 0.1F);
  const value_id two = g.constant<std::int64_t>("two", {}, std::vector<std::int64_t>{2});
  const value_id none = g.constant<std::int64_t>("none", {}, std::vector<std::int64_t>{0});
  const value_id axes = g.constant<std::int64_t>("axes", {1}, std::vector<std::int64_t>{0});
  const value_id start = g.op("ReduceSum", {g.op("Sub", {x, x})}, {{"keepdims", 0}});
  const auto out =
      control(g, "Loop", {m, absent, start}, 2,
              {{"body", [&] {
                  const value_id trip = g.input("trip", dtype::i64, {});
                  const value_id on = g.input("on", dtype::boolean, {});
                  const value_id sum = formal(g, "sum");
                  const value_id even = g.op("Equal", {g.op("Mod", {trip, two}), none});
                  const value_id level = g.op("Mul", {g.op("Cast", {trip}, {{"to", 1}}), tenth});
                  const value_id next = control(
                      g, "If", {even}, 1,
                      {{"then_branch",
                        [&] {
                          const value_id at = g.op(
                              "Squeeze", {g.op("NonZero", {g.op("Greater", {x, level})}), axes});
                          const value_id kept = g.op("Gather", {scale, at});
                          const value_id total =
                              g.op("ReduceSum", {g.op("Add", {kept, zero})}, {{"keepdims", 0}});
                          g.output(g.op("Add", {sum, total}));
                        }},
                       {"else_branch", [&] {
                          const auto inner = control(g, "Loop", {trip, absent, sum}, 1,
                                                     {{"body", [&] {
                                                         (void)g.input("t2", dtype::i64, {});
                                                         const value_id go =
                                                             g.input("c2", dtype::boolean, {});
                                                         const value_id have = formal(g, "have");
                                                         g.output(go);
                                                         g.output(g.op("Add", {have, level}));
                                                       }}});
                          g.output(inner[0]);
                        }}})[0];
                  g.output(on);
                  g.output(next);
                  g.output(next);
                }}});
  g.output(out[0], "sum");
  g.output(out[1], "all");
  const program p = compiled(g);
  session s(p, careful());
  for (std::int64_t n : {1, 6, 0, 9}) {
    const tensor in = tensor::random({13}, 11);
    must(s.run(std::vector<tensor_view>{in.view(), number(n)}));
    double sum = 0;
    tensor all{{n}, {}};
    for (std::int64_t t = 0; t < n; ++t) {
      const float level = static_cast<float>(t) * 0.1F;
      if (t % 2 == 0) {
        for (float v : in.data)
          if (v > level) sum += static_cast<double>(v) * static_cast<double>(v);
      } else {
        sum += static_cast<double>(t) * static_cast<double>(level);
      }
      all.data.push_back(static_cast<float>(sum));
    }
    CHECK(test::close(tensor::of(s.output(0)), tensor{{}, {static_cast<float>(sum)}}));
    CHECK(test::close(tensor::of(s.output(1)), all));
  }
  // A second run of a bound session makes nothing new but what kernels' sizes ask for.
  const tensor in = tensor::random({13}, 11);
  std::int64_t n = 8;
  must(s.run(std::vector<tensor_view>{in.view(), number(n)}));
  const std::int64_t before = s.arena_bytes();
  for (int k = 0; k < 20; ++k) must(s.run(std::vector<tensor_view>{in.view(), number(n)}));
  CHECK(s.arena_bytes() == before);
}

TEST_CASE("a count of which only the size is read") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  g.output(g.op("Shape", {g.op("NonZero", {x})}));
  const program p = compiled(g);
  session s(p, careful());
  const tensor in{{5}, {1, 0, 2, 0, 3}};
  must(s.run(std::vector<tensor_view>{in.view()}));
  CHECK(s.output(0).as<std::int64_t>()[0] == 1);
  CHECK(s.output(0).as<std::int64_t>()[1] == 3);
}

TEST_CASE("a scan of opset 8 runs sample by sample, each as long as it is") {
  for (bool with_lengths : {false, true}) {
    graph g;
    const value_id lengths = with_lengths ? g.input("lengths", dtype::i64, {"B"}) : absent;
    const value_id start = g.input("start", dtype::f32, {"B", 2});
    const value_id x = g.input("x", dtype::f32, {"B", "L", 2});
    const auto out = control(g, "Scan", {lengths, start, x}, 2,
                             {{"body",
                               [&] {
                                 const value_id sum = formal(g, "sum"), slice = formal(g, "slice");
                                 const value_id next = g.op("Add", {sum, slice});
                                 g.output(next);
                                 g.output(g.op("Identity", {next}));
                               }}},
                             {{"num_scan_inputs", 1}});
    g.nodes().back().opset = 8;
    g.output(out[0]);
    g.output(out[1]);
    const program p = compiled(g);
    session s(p, careful());
    const tensor first = tensor::random({3, 2}, 1), in = tensor::random({3, 4, 2}, 2);
    std::int64_t given[3] = {4, 1, 2}, three = 3;
    std::vector<tensor_view> inputs{first.view(), in.view()};
    if (with_lengths) inputs.insert(inputs.begin(), {given, &three, 1, dtype::i64});
    must(s.run(inputs));
    tensor sums = first, all{{3, 4, 2}, std::vector<float>(24)};
    for (std::size_t b = 0; b < 3; ++b)
      for (std::size_t t = 0; t < (with_lengths ? static_cast<std::size_t>(given[b]) : 4U); ++t)
        for (std::size_t k = 0; k < 2; ++k)
          all.data[(b * 4 + t) * 2 + k] = sums.data[b * 2 + k] += in.data[(b * 4 + t) * 2 + k];
    CHECK(test::close(tensor::of(s.output(0)), sums));
    CHECK(test::close(tensor::of(s.output(1)), all));
  }
}
