// Flat size programs: values, overflow, floating point.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include <sod2/expr.hpp>

using namespace sod2;

namespace {
// Also as a constant expression: the program is the same loop.
constexpr std::int64_t at_compile_time() {
  dim_context c;
  const dim h = c.symbol("H"), w = c.symbol("W", {8, 800, 8, 0});
  size_program_builder builder(c);
  builder.add_output(c.add(c.mul(c.ceildiv(h, 2), c.floordiv(w, 4)), c.min(h, w)));
  const size_program program = std::move(builder).finish();
  std::int64_t symbols[8] = {7, 16}, scratch[32] = {}, out[1] = {};
  if (program.register_count() > 32) return -1;
  if (program.evaluate(symbols, scratch, out) != errc::ok) return -2;
  return out[0];
}
static_assert(at_compile_time() == 4 * 4 + 7);
}  // namespace

TEST_CASE("common parts are computed once") {
  dim_context c;
  const dim h = c.symbol("H"), half = c.ceildiv(h, 2);
  size_program_builder builder(c);
  for (int i = 1; i <= 10; ++i) builder.add_output(c.mul(half, i));
  const size_program program = std::move(builder).finish();
  // H, H + 1, the division, and at most a product an output.
  CHECK(program.instruction_count() <= 4 + 10 * 2);
}

TEST_CASE("overflow is reported, whatever follows") {
  dim_context c;
  const dim a = c.symbol("A"), b = c.symbol("B");
  const dim large = c.mul(c.mul(a, a), c.mul(a, a));
  const std::int64_t fits[] = {50000, 7}, over[] = {100000, 7};
  CHECK(*evaluate(c, large, fits) == 6250000000000000000);
  CHECK(evaluate(c, large, over).error().code() == errc::overflow);
  CHECK(evaluate(c, c.floordiv(c.add(large, b), 1000000007), over).error().code() ==
        errc::overflow);
  CHECK(evaluate(c, c.min(large, b), over).error().code() == errc::overflow);
}

TEST_CASE("dims that do not broadcast are reported") {
  dim_context c;
  const dim d = c.broadcast(c.symbol("A"), c.symbol("B"));
  const std::int64_t one[] = {1, 5}, same[] = {5, 5}, other[] = {4, 5}, empty[] = {1, 0};
  CHECK(*evaluate(c, d, one) == 5);
  CHECK(*evaluate(c, d, same) == 5);
  CHECK(*evaluate(c, d, empty) == 0);
  CHECK(evaluate(c, d, other).error().code() == errc::broadcast);
}

TEST_CASE("floating-point sizes equal what a kernel computes, at every value") {
  dim_context c;
  const dim h = c.symbol("H");
  const auto single = parse(c, "floor(f32(H) * 0.7)"), wide = parse(c, "floor(f64(H) * 0.7)");
  const auto root = parse(c, "ceil(sqrt(f32(H)))");
  REQUIRE((single.ok() && wide.ok() && root.ok()));
  const interval bound = c.bounds(*single);
  for (std::int64_t v = 1; v < 20000; v += 7) {
    const float f = static_cast<float>(v);
    CHECK(*evaluate(c, *single, {&v, 1}) == static_cast<std::int64_t>(std::floor(f * 0.7f)));
    CHECK(*evaluate(c, *wide, {&v, 1}) ==
          static_cast<std::int64_t>(std::floor(static_cast<double>(v) * 0.7)));
    CHECK(*evaluate(c, *root, {&v, 1}) == static_cast<std::int64_t>(std::ceil(std::sqrt(f))));
    CHECK(bound.contains(*evaluate(c, *single, {&v, 1})));
  }
  // Division by zero is infinity, which no size is.
  const auto infinite = parse(c, "floor(f32(H) / f32(0))");
  REQUIRE(infinite.ok());
  const std::int64_t v = 3;
  CHECK(evaluate(c, *infinite, {&v, 1}).error().code() == errc::overflow);
  CHECK(h.is_known());
}
