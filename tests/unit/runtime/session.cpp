#include <array>
#include <cstddef>
#include <cstring>

#include "unit/runtime/support.hpp"

using namespace sod2;
using test::compiled;
using test::interpreter;
using test::tensor;

namespace {
// Two layers of a perceptron with a residual and a softmax; (N, 12) -> (N, 12).
graph perceptron() {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 12});
  const value_id w1 = g.constant<float>("w1", {12, 20}, tensor::random({12, 20}, 1).data);
  const value_id b1 = g.constant<float>("b1", {20}, tensor::random({20}, 2).data);
  const value_id w2 = g.constant<float>("w2", {20, 12}, tensor::random({20, 12}, 3).data);
  const value_id h = g.op("Relu", {g.op("Add", {g.op("MatMul", {x, w1}), b1})}, {}, "hidden");
  const value_id r = g.op("Add", {g.op("MatMul", {h, w2}), x}, {}, "residual");
  g.output(g.op("Softmax", {r}, {{"axis", -1}}, "y"));
  return g;
}
}  // namespace

TEST_CASE("a program runs at changing sizes and agrees with a plain computation") {
  const graph g = perceptron();
  const program p = compiled(g);
  REQUIRE(p.symbols().size() == 1);
  CHECK(p.symbols()[0].name == "N");
  CHECK(p.find_symbol("N") == 0);
  CHECK(p.find_symbol("M") == no_slot);
  CHECK(p.summary().nodes == 6);
  CHECK(p.summary().groups == 3);  // two products with epilogues, one softmax
  session s(p);
  for (const std::int64_t n : {1, 7, 64, 3, 129}) {
    CAPTURE(n);
    const std::vector<tensor> inputs{tensor::random({n, 12}, static_cast<std::uint32_t>(n))};
    const auto got = test::run(s, p, inputs);
    CHECK(test::close(got[0], interpreter::run(g, inputs)[0]));
    CHECK(s.nodes_run() == 6);
    CHECK(s.groups_run() == 3);
    CHECK(s.arena_bytes() >= s.lower_bound_bytes());
    CHECK(s.lower_bound_bytes() >= n * 20 * 4);
  }
}

TEST_CASE("a program outlives its graph") {
  program p = [] {
    const graph g = perceptron();
    return compiled(g);
  }();
  const graph g = perceptron();
  const std::vector<tensor> inputs{tensor::random({5, 12}, 1)};
  CHECK(test::close(test::run(p, inputs)[0], interpreter::run(g, inputs)[0]));
  const program moved = std::move(p);
  CHECK(test::close(test::run(moved, inputs)[0], interpreter::run(g, inputs)[0]));
}

TEST_CASE("a convolution with its epilogue at two sizes") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {1, 2, "H", "W"});
  std::vector<float> ones(2 * 2 * 3 * 3, 1.0F);
  const value_id w = g.constant<float>("w", {2, 2, 3, 3}, ones);
  const value_id c = g.op("Conv", {x, w}, {{"pads", {1, 1, 1, 1}}, {"strides", {2, 2}}}, "c");
  g.output(g.op("Mul", {c, g.op("Sigmoid", {c})}, {}, "silu"));
  const program p = compiled(g);
  CHECK(p.summary().groups == 1);
  session s(p);
  for (const std::int64_t h : {5, 8}) {
    const std::int64_t width = h + 3;
    tensor in = tensor::random({1, 2, h, width}, 9);
    const tensor out = test::run(s, p, {in})[0];
    const std::int64_t oh = (h + 1) / 2, ow = (width + 1) / 2;
    REQUIRE(out.dims == std::vector<std::int64_t>{1, 2, oh, ow});
    for (std::int64_t i = 0; i < oh; ++i)
      for (std::int64_t j = 0; j < ow; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < 2; ++k)
          for (std::int64_t y = 2 * i - 1; y <= 2 * i + 1; ++y)
            for (std::int64_t z = 2 * j - 1; z <= 2 * j + 1; ++z)
              if (y >= 0 && y < h && z >= 0 && z < width)
                sum += in.data[static_cast<std::size_t>((k * h + y) * width + z)];
        const float want = sum / (1.0F + std::exp(-sum));
        CHECK(out.data[static_cast<std::size_t>(i * ow + j)] ==
              doctest::Approx(want).epsilon(1e-4));
      }
  }
}

// ---- binding
// -------------------------------------------------------------------------------------

TEST_CASE("bind checks ranges, strides and assertions, and names what is wrong in one line") {
  graph g;
  const value_id a = g.input("a", dtype::f32, {"M", "K1"});
  const value_id b = g.input("b", dtype::f32, {"K2", "N"});
  g.output(g.op("MatMul", {a, b}));
  g.nodes()[0].name = "product";
  compile_options options;
  options.analysis.symbols = {{"M", {4, 64, 4, 0}}};
  const program p = compiled(g, options);
  session s(p);
  const auto bind = [&](std::int64_t m, std::int64_t k1, std::int64_t k2, std::int64_t n) {
    std::vector<std::int64_t> values(p.symbols().size(), 0);
    values[p.find_symbol("M")] = m;
    values[p.find_symbol("K1")] = k1;
    values[p.find_symbol("K2")] = k2;
    values[p.find_symbol("N")] = n;
    return s.bind(values);
  };
  CHECK(bind(8, 3, 3, 2));
  CHECK(s.bound());
  const auto refused = [&](status st, errc code, std::initializer_list<std::string_view> words) {
    REQUIRE_FALSE(st);
    const std::string text = st.error().text();
    CAPTURE(text);
    CHECK(st.error().code() == code);
    for (std::string_view w : words) CHECK(text.find(w) != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
    CHECK_FALSE(s.bound());
  };
  refused(bind(68, 3, 3, 2), errc::assertion_failed, {"'M'", "68", "4..64"});
  refused(bind(2, 3, 3, 2), errc::assertion_failed, {"'M'", "2", "4..64"});
  refused(bind(6, 3, 3, 2), errc::assertion_failed, {"'M'", "6", "multiple of 4"});
  refused(bind(8, 0, 0, 2), errc::assertion_failed, {"'K1'", "0"});
  refused(bind(8, 5, 7, 2), errc::inner_dims, {"product", "5", "7", "K1 == K2"});
  refused(s.bind(std::array<std::int64_t, 1>{8}), errc::invalid_argument, {});
  CHECK(bind(64, 5, 5, 2));  // usable after every error
  const tensor x = tensor::random({8, 5}, 1), y = tensor::random({5, 2}, 2);
  CHECK(test::run(s, p, {x, y})[0].dims == std::vector<std::int64_t>{8, 2});
}

TEST_CASE("run checks inputs against what the model declares") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 4});
  const value_id y = g.input("y", dtype::f32, {"N", 4});
  g.output(g.op("Add", {x, y}));
  const program p = compiled(g);
  session s(p);
  const auto refused = [&](const std::vector<tensor_view>& in, errc code, std::string_view tensor) {
    const status st = s.run(in);
    REQUIRE_FALSE(st);
    CHECK(st.error().code() == code);
    CHECK(st.error().detail().tensor == tensor);
  };
  const test::tensor a = tensor::random({3, 4}, 1), b = tensor::random({2, 4}, 2);
  const test::tensor wide = tensor::random({3, 5}, 1), flat = tensor::random({12}, 1);
  refused({a.view()}, errc::input_missing, "");
  refused({a.view(), b.view()}, errc::input_shape, "y");  // N has two values
  refused({a.view(), wide.view()}, errc::input_shape, "y");
  refused({flat.view(), a.view()}, errc::input_shape, "x");
  tensor_view typed = a.view();
  typed.type = dtype::i32;
  refused({typed, a.view()}, errc::input_type, "x");
  CHECK(s.run(test::views({a, a})));
}

TEST_CASE("overflowing sizes are an error of bind, never a small arena") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"A", "B", "C"});
  g.output(g.op("Relu", {g.op("Softmax", {x})}));
  const program p = compiled(g);
  session s(p);
  const std::int64_t large = default_symbol_max;
  const status st = s.bind(std::array<std::int64_t, 3>{large, large, large});
  REQUIRE_FALSE(st);
  CHECK(st.error().code() == errc::overflow);
  CHECK(s.bind(std::array<std::int64_t, 3>{1, 2, 3}));
}

TEST_CASE("elements of shape inputs are bound from the data") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 6});
  const value_id target = g.input("target", dtype::i64, {2});
  g.output(g.op("Relu", {g.op("Reshape", {x, target})}));
  compile_options options;
  options.analysis.shape_inputs = {"target"};
  const program p = compiled(g, options);
  session s(p);
  const tensor in = tensor::random({2, 6}, 1);
  const std::int64_t two = 2;
  std::int64_t want[] = {4, 3};
  const tensor_view both[] = {in.view(), {want, &two, 1, dtype::i64}};
  REQUIRE(s.run(both));
  CHECK(tensor::of(s.output(0)).dims == std::vector<std::int64_t>{4, 3});
  want[0] = 5;
  const status st = s.run(both);
  REQUIRE_FALSE(st);
  CHECK(st.error().code() == errc::element_count);
}

// ---- outputs and memory
// --------------------------------------------------------------------------

TEST_CASE("the three output protocols give the same bytes") {
  const graph g = perceptron();
  const program p = compiled(g);
  session s(p);
  const tensor in = tensor::random({9, 12}, 4);
  const tensor want = test::run(s, p, {in})[0];
  const tensor_view input = in.view();

  SUBCASE("a caller's buffer") {
    std::vector<float> mine(9 * 12, -7.0F);
    output_target t;
    t.how = output_target::protocol::buffer;
    t.data = mine.data();
    t.capacity = mine.size() * sizeof(float);
    REQUIRE(s.run({&input, 1}, {&t, 1}));
    CHECK(s.output(0).data == mine.data());
    CHECK(mine == want.data);

    t.capacity -= 4;
    const status st = s.run({&input, 1}, {&t, 1});
    REQUIRE_FALSE(st);
    CHECK(st.error().code() == errc::buffer_too_small);
    CHECK(st.error().text().find("432") != std::string::npos);  // bytes needed
    CHECK(st.error().detail().tensor == "y");
  }
  SUBCASE("a callback") {
    struct seen {
      std::vector<float> data;
      std::vector<std::int64_t> dims;
      bool fail = false;
    } mine;
    output_target t;
    t.how = output_target::protocol::callback;
    t.context = &mine;
    t.allocate = [](void* context, std::size_t output, const std::int64_t* dims, std::size_t rank,
                    dtype type, std::size_t bytes) -> void* {
      seen& m = *static_cast<seen*>(context);
      if (m.fail) return nullptr;
      CHECK(output == 0);
      CHECK(type == dtype::f32);
      m.dims.assign(dims, dims + rank);
      m.data.resize(bytes / sizeof(float));
      return m.data.data();
    };
    REQUIRE(s.run({&input, 1}, {&t, 1}));
    CHECK(mine.data == want.data);
    CHECK(mine.dims == want.dims);
    mine.fail = true;
    const status st = s.run({&input, 1}, {&t, 1});
    REQUIRE_FALSE(st);
    CHECK(st.error().code() == errc::out_of_memory);
    mine.fail = false;
    CHECK(s.run({&input, 1}, {&t, 1}));
  }
  SUBCASE("a wrong number of targets") {
    output_target t[2];
    CHECK(s.run({&input, 1}, t).error().code() == errc::invalid_argument);
  }
}

TEST_CASE("inputs are never written") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  g.output(g.op("Relu", {g.op("Sigmoid", {g.op("Relu", {x})})}));
  for (const bool fuse : {true, false}) {
    compile_options options;
    options.fusion.enabled = fuse;
    const program p = compiled(g, options);
    tensor in = tensor::random({100}, 1);
    const tensor before = in;
    test::run(p, {in});
    CHECK(in.data == before.data);
  }
}

TEST_CASE("the caller may own the arena; its size is checked at bind") {
  const graph g = perceptron();
  const program p = compiled(g);
  const tensor in = tensor::random({9, 12}, 4);
  const tensor want = test::run(p, {in})[0];
  session measure(p);
  const std::int64_t nine[] = {9};
  REQUIRE(measure.bind(nine));
  const auto bytes = static_cast<std::size_t>(measure.arena_bytes());
  REQUIRE(bytes > 64);

  memory_block mine;
  REQUIRE(mine.reserve(bytes));
  std::memset(mine.data(), 0xff, bytes);
  session_options options;
  options.arena = {mine.data(), bytes};
  session s(p, options);
  CHECK(test::run(s, p, {in})[0].data == want.data);

  options.arena = {mine.data(), bytes - 1};
  session small(p, options);
  const status st = small.bind(nine);
  REQUIRE_FALSE(st);
  CHECK(st.error().code() == errc::buffer_too_small);
  CHECK(st.error().text().find(std::to_string(bytes)) != std::string::npos);
  const std::int64_t one[] = {1};
  CHECK(small.bind(one));
}

TEST_CASE("a budget limits the arena") {
  const graph g = perceptron();
  const program p = compiled(g);
  session_options options;
  options.memory_budget = 4096;
  session s(p, options);
  const std::int64_t few[] = {8}, many[] = {4000};
  CHECK(s.bind(few));
  const status st = s.bind(many);
  REQUIRE_FALSE(st);
  CHECK(st.error().code() == errc::budget);
  CHECK(s.bind(few));
}

namespace {
struct counting_allocator {
  std::size_t calls = 0, live = 0, largest = 0;
  bool fail = false;
  allocator_ref ref() {
    allocator_ref a;
    a.context = this;
    a.allocate = [](void* c, std::size_t bytes, std::size_t alignment) -> void* {
      counting_allocator& self = *static_cast<counting_allocator*>(c);
      if (self.fail) return nullptr;
      ++self.calls;
      self.live += bytes;
      self.largest = std::max(self.largest, bytes);
      return ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
    };
    a.release = [](void* c, void* data, std::size_t bytes, std::size_t alignment) {
      static_cast<counting_allocator*>(c)->live -= bytes;
      ::operator delete(data, std::align_val_t(alignment));
    };
    return a;
  }
};
}  // namespace

TEST_CASE("memory comes from the caller's allocator and goes back; failure is a value") {
  const graph g = perceptron();
  const program p = compiled(g);
  counting_allocator memory;
  {
    session_options options;
    options.allocator = memory.ref();
    session s(p, options);
    const tensor in = tensor::random({9, 12}, 4);
    const tensor want = test::run(s, p, {in})[0];
    CHECK(memory.calls > 0);
    CHECK(memory.live >= static_cast<std::size_t>(s.arena_bytes()));
    const std::size_t before = memory.live;
    s.trim();
    CHECK(memory.live < before);
    memory.fail = true;
    const tensor larger = tensor::random({900, 12}, 4);
    const status st = s.run(test::views({larger}));
    REQUIRE_FALSE(st);
    CHECK(st.error().code() == errc::out_of_memory);
    memory.fail = false;
    CHECK(test::run(s, p, {in})[0].data == want.data);
  }
  CHECK(memory.live == 0);
}

TEST_CASE("a steady run allocates nothing, a stream of shapes does not grow") {
  const graph g = perceptron();
  for (const bool fuse : {true, false}) {
    compile_options options;
    options.fusion.enabled = fuse;
    const program p = compiled(g, options);
    session s(p);
    std::vector<tensor> inputs;
    for (const std::int64_t n : {40, 3, 17, 40, 1, 25})
      inputs.push_back(tensor::random({n, 12}, 1));
    std::vector<std::vector<tensor_view>> in;
    for (const tensor& t : inputs) in.push_back({t.view()});
    for (const auto& i : in) REQUIRE(s.run(i));
    // The same shape again: nothing at all.
    const std::uint64_t before = test::allocations();
    for (int k = 0; k < 10; ++k)
      if (!s.run(in.back())) FAIL("run");
    CHECK(test::allocations() == before);
    // Shapes seen before, and smaller ones than the largest: nothing either.
    for (int k = 0; k < 10; ++k)
      for (const auto& i : in)
        if (!s.run(i)) FAIL("run");
    CHECK(test::allocations() == before);
  }
  CHECK(test::allocations() > 0);  // the counter counts
}

TEST_CASE("a dying input's memory is taken over") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 64});
  value_id y = g.op("Softmax", {x});
  for (int i = 0; i < 5; ++i) y = g.op("Softmax", {g.op("Relu", {y})});
  g.output(g.op("Sigmoid", {y}));
  compile_options options;
  options.fusion.enabled = false;
  const program p = compiled(g, options);
  session s(p);
  const std::int64_t n[] = {10};
  REQUIRE(s.bind(n));
  const std::int64_t one = 10 * 64 * 4;
  CHECK(s.arena_bytes() <= 2 * one);
  CHECK(s.intermediate_bytes() == 11 * one);
  options.share_memory = false;
  const program apart = compiled(g, options);
  session t(apart);
  REQUIRE(t.bind(n));
  CHECK(t.arena_bytes() == 11 * one);
  const tensor in = tensor::random({10, 64}, 5);
  CHECK(test::run(s, p, {in})[0].data == test::run(t, apart, {in})[0].data);
}

// ---- odd graphs
// ----------------------------------------------------------------------------------

TEST_CASE("outputs may be inputs, constants, shapes, views and each other") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 4});
  const value_id c = g.constant<float>("c", {2}, {1.5F, -2.5F});
  const value_id r = g.op("Relu", {x}, {}, "r");
  const value_id flat = g.op("Flatten", {r}, {{"axis", 0}}, "flat");
  const value_id again = g.op("Flatten", {x}, {{"axis", 0}}, "again");
  const value_id shape = g.op("Shape", {x}, {}, "shape");
  const value_id folded = g.op("Add", {c, c}, {}, "folded");
  const value_id user = g.op("Sigmoid", {flat}, {}, "user");
  for (const value_id v : {x, c, r, flat, r, again, shape, folded, user}) g.output(v);
  const program p = compiled(g);
  session s(p);
  for (const std::int64_t n : {3, 1}) {
    const tensor in = tensor::random({n, 4}, 3);
    REQUIRE(s.run(test::views({in})));
    const auto out = [&](std::size_t i) { return tensor::of(s.output(i)); };
    tensor relu = in;
    for (float& v : relu.data) v = std::max(v, 0.0F);
    CHECK(out(0).data == in.data);
    CHECK(out(1).data == std::vector<float>{1.5F, -2.5F});
    CHECK(out(2).data == relu.data);
    CHECK(out(2).dims == in.dims);
    CHECK(out(3).data == relu.data);
    CHECK(out(3).dims == std::vector<std::int64_t>{1, 4 * n});
    CHECK(out(4).data == relu.data);
    CHECK(out(5).data == in.data);
    REQUIRE(s.output(6).type == dtype::i64);
    CHECK(s.output(6).as<std::int64_t>()[0] == n);
    CHECK(s.output(6).as<std::int64_t>()[1] == 4);
    CHECK(out(7).data == std::vector<float>{3.0F, -5.0F});
    CHECK(out(8).data[0] == doctest::Approx(1 / (1 + std::exp(-relu.data[0]))));
    // All are memory of their own: none is the caller's input.
    for (std::size_t i = 0; i < 9; ++i) {
      CHECK(s.output(i).data != in.data.data());
      for (std::size_t k = 0; k < i; ++k) CHECK(s.output(i).data != s.output(k).data);
    }
  }
}

TEST_CASE("sizes of zero run through") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 12});
  const value_id w = g.constant<float>("w", {12, 8}, tensor::random({12, 8}, 3).data);
  const value_id p1 = g.op("Relu", {g.op("MatMul", {x, w})}, {}, "p");
  g.output(g.op("Softmax", {p1}));
  g.output(g.op("Concat", {p1, x}, {{"axis", 1}}));
  compile_options options;
  options.analysis.symbols = {{"N", {0, 100, 1, 0}}};
  const program p = compiled(g, options);
  session s(p);
  const auto none = test::run(s, p, {tensor{{0, 12}, {}}});
  CHECK(none[0].dims == std::vector<std::int64_t>{0, 8});
  CHECK(none[1].dims == std::vector<std::int64_t>{0, 20});
  const std::vector<tensor> some{tensor::random({2, 12}, 8)};
  const auto got = test::run(s, p, some), want = interpreter::run(g, some);
  CHECK(test::close(got[0], want[0]));
  CHECK(test::close(got[1], want[1]));
}

TEST_CASE("a graph of constants and one of nothing") {
  graph g;
  const value_id c = g.constant<float>("c", {2}, {1, 2});
  g.output(g.op("Mul", {c, c}, {}, "y"));
  const program p = compiled(g);
  CHECK(p.summary().groups == 0);
  CHECK(test::run(p, {})[0].data == std::vector<float>{1, 4});
  const program empty = compiled(graph());
  session s(empty);
  CHECK(s.run({}));
  CHECK(s.arena_bytes() == 0);
}

TEST_CASE("nodes that nobody needs are not run") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  (void)g.op("Softmax", {g.op("Relu", {x})});
  g.output(g.op("Sigmoid", {x}));
  const program p = compiled(g);
  CHECK(p.summary().groups == 1);
  session s(p);
  test::run(s, p, {tensor::random({5}, 1)});
  CHECK(s.nodes_run() == 1);
}

TEST_CASE("what cannot be run is refused with the node's name") {
  const auto refused = [](const graph& g) {
    auto view = make_view(g);
    REQUIRE(view);
    auto p = compile(*view, standard_registry(), standard_kernels());
    REQUIRE_FALSE(p);
    return std::move(p).error();
  };
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  SUBCASE("no kernel") {
    registry ops = standard_registry();
    static constexpr int since[] = {1};
    struct strange {
      static constexpr op_info info_of() {
        return {.name = "Strange", .domain = "test", .versions = since};
      }
    };
    static constexpr op_info info = strange::info_of();
    op_row row;
    row.info = &info;
    row.forward = [](symbolic_transfer& c) -> status {
      c.copy_type(0, 0);
      c.copy_shape(0, 0);
      return {};
    };
    ops.add(row);
    graph::node n;
    n.name = "odd";
    n.op = "Strange";
    n.domain = "test";
    n.inputs = {x};
    n.outputs = {g.add_value("y")};
    g.add_node(n);
    g.output(n.outputs[0]);
    auto view = make_view(g);
    auto p = compile(*view, ops, standard_kernels());
    REQUIRE_FALSE(p);
    CHECK(p.error().code() == errc::kernel_missing);
    CHECK(p.error().detail().node == "odd");
    CHECK(p.error().text().find("Strange") != std::string::npos);
  }
  SUBCASE("an unknown operator") {
    g.output(g.op("Wibble", {x}));
    CHECK(refused(g).code() == errc::unknown_operator);
  }
  SUBCASE("an unknown rank") {
    const value_id u = g.add_value("u");
    g.scopes()[0].inputs.push_back(u);
    g.values()[u.index].type = dtype::f32;
    g.output(g.op("Relu", {u}));
    const error e = refused(g);
    CHECK(e.code() == errc::rank_unknown);
    CHECK(e.detail().node == "Relu_0");
  }
}

TEST_CASE("a pool of any width gives the same bits") {
  const graph g = perceptron();
  compile_options options;
  options.threads = 4;
  const program p = compiled(g, options);
  const tensor in = tensor::random({20001, 12}, 6);
  const tensor want = test::run(p, {in})[0];
  int parts = 0;
  session_options pooled;
  pooled.pool.context = &parts;
  // Parts one by one and last first, as threads might finish.
  pooled.pool.parallel_for = [](void* context, std::int64_t count,
                                void (*body)(void*, std::int64_t, std::int64_t), void* arg) {
    for (std::int64_t i = count; i-- > 0;) body(arg, i, i + 1);
    *static_cast<int*>(context) += static_cast<int>(count);
  };
  for (const int threads : {1, 2, 4}) {
    pooled.pool.threads = threads;
    CHECK(test::run(p, {in}, pooled)[0].data == want.data);
  }
  CHECK(parts > 0);
}

TEST_CASE("an observer is called after every step") {
  const graph g = perceptron();
  const program p = compiled(g);
  std::vector<std::size_t> steps;
  session_options options;
  options.observer_context = &steps;
  options.observer = [](void* context, std::size_t step) {
    static_cast<std::vector<std::size_t>*>(context)->push_back(step);
  };
  test::run(p, {tensor::random({2, 12}, 1)}, options);
  CHECK(steps == std::vector<std::size_t>{0, 1, 2});
}
