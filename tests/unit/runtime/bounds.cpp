// Upper bounds: what a run finds out has its place in the arena before the run.
#include <cstdint>
#include <new>
#include <vector>

#include "unit/runtime/regions.hpp"

using namespace sod2;
using test::careful;
using test::compiled;
using test::must;
using test::tensor;

namespace {
std::uint64_t calls = 0;
allocator_ref counting() {
  allocator_ref a;
  a.allocate = [](void*, std::size_t bytes, std::size_t alignment) -> void* {
    ++calls;
    return ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
  };
  a.release = [](void*, void* data, std::size_t, std::size_t alignment) {
    ::operator delete(data, std::align_val_t(alignment));
  };
  return a;
}
tensor with_nonzeros(std::size_t size, std::size_t count) {
  tensor t{{static_cast<std::int64_t>(size)}, std::vector<float>(size)};
  for (std::size_t k = 0; k < count; ++k) t.data[(k * 7) % size] = static_cast<float>(k + 1);
  return t;
}
}  // namespace

TEST_CASE("upper bounds: runs allocate nothing, however much NonZero finds") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id where = g.op("NonZero", {x});
  const value_id rows = g.op("Squeeze", {where, g.constant<std::int64_t>("axes", {1}, {0})});
  const value_id kept = g.op("Gather", {x, rows});
  g.output(g.op("Mul", {g.op("Exp", {g.op("Neg", {kept})}), kept}));
  compile_options bounded;
  bounded.upper_bounds = true;
  const program plain = compiled(g), limited = compiled(g, bounded);
  for (std::size_t n : {30U, 100U}) {
    session_options o = careful();
    o.allocator = counting();
    session s(limited, o), usual(plain, careful());
    std::vector<float> out(n);
    const output_target target{output_target::protocol::buffer, out.data(), n * sizeof(float)};
    const tensor none = with_nonzeros(n, 0);
    must(s.bind_inputs(std::vector<tensor_view>{none.view()}));
    const std::int64_t arena = s.arena_bytes();
    for (std::size_t count : {std::size_t{0}, n / 2, n, std::size_t{3}, n}) {
      const tensor in = with_nonzeros(n, count);
      const tensor_view input = in.view();
      calls = 0;
      const std::uint64_t before = test::allocations();
      const status done = s.run({&input, 1}, {&target, 1});
      CHECK(test::allocations() == before);
      must(done);
      CHECK(calls == 0);
      CHECK(s.arena_bytes() == arena);
      must(usual.run({&input, 1}));
      CHECK(tensor::of(s.output(0)).dims ==
            std::vector<std::int64_t>{static_cast<std::int64_t>(count)});
      CHECK(test::close(tensor::of(s.output(0)), tensor::of(usual.output(0))));
    }
  }
}

TEST_CASE("upper bounds: NonMaxSuppression gives at most what it is asked for") {
  graph g;
  const value_id boxes = g.input("boxes", dtype::f32, {1, "B", 4});
  const value_id scores = g.input("scores", dtype::f32, {1, 2, "B"});
  const value_id chosen =
      g.op("NonMaxSuppression",
           {boxes, scores, g.constant<std::int64_t>("most", {1}, {5}),
            g.constant<float>("overlap", {1}, {0.5F}), g.constant<float>("least", {1}, {0.4F})});
  g.output(g.op("Cast", {chosen}, {{"to", 1}}));
  compile_options bounded;
  bounded.upper_bounds = true;
  const program p = compiled(g, bounded);
  session_options o = careful();
  o.allocator = counting();
  session s(p, o);
  const std::int64_t n = 40;
  tensor in{{1, n, 4}, {}};
  for (std::int64_t k = 0; k < n; ++k)
    for (float d : {0.0F, 0.0F, 0.9F, 0.9F}) in.data.push_back(static_cast<float>(k) + d);
  std::vector<float> out(30);
  const output_target target{output_target::protocol::buffer, out.data(), 30 * sizeof(float)};
  tensor score{{1, 2, n}, std::vector<float>(static_cast<std::size_t>(2 * n))};
  must(s.bind_inputs(std::vector<tensor_view>{in.view(), score.view()}));
  const std::int64_t arena = s.arena_bytes();
  for (std::size_t good : {0U, 3U, 40U}) {
    for (std::size_t k = 0; k < score.data.size(); ++k) score.data[k] = k % 40 < good ? 0.9F : 0.1F;
    const std::vector<tensor_view> inputs{in.view(), score.view()};
    calls = 0;
    must(s.run(inputs, {&target, 1}));
    CHECK(calls == 0);
    CHECK(s.arena_bytes() == arena);
    CHECK(s.output(0).dim(0) == static_cast<std::int64_t>(2 * (good < 5 ? good : 5)));
  }
}
