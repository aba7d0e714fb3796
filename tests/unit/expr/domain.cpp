// One formula, three kinds of dimension: intervals contain what integers give, and symbolic sizes
// evaluate to it.
#include <doctest/doctest.h>

#include <sod2/expr.hpp>

using namespace sod2;

static_assert(dimension_domain<integer_domain>);
static_assert(dimension_domain<interval_domain>);
static_assert(dimension_domain<symbolic_domain>);

namespace {
template <dimension_domain D>
constexpr typename D::value_type formula(D& d, typename D::value_type h, typename D::value_type w) {
  const auto a = d.add(d.floordiv(d.sub(h, d.constant(3)), 2), d.constant(1));
  return d.max(d.min(d.mul(a, w), d.constant(500)), d.floordiv(w, 3));
}
constexpr std::int64_t with_integers(std::int64_t h, std::int64_t w) {
  integer_domain d;
  return formula(d, h, w);
}
static_assert(with_integers(11, 7) == 35);
}  // namespace

TEST_CASE("a formula over integers, intervals and symbols") {
  dim_context c;
  symbolic_domain symbols(c);
  interval_domain intervals;
  const dim height = c.symbol("H", {3, 40, 1, 0}), width = c.symbol("W", {1, 60, 1, 0});
  const dim d = formula(symbols, height, width);
  const interval range = formula(intervals, {3, 40}, {1, 60});
  for (std::int64_t h = 3; h <= 40; ++h)
    for (std::int64_t w = 1; w <= 60; w += 5) {
      const std::int64_t values[] = {h, w}, v = with_integers(h, w);
      REQUIRE(range.contains(v));
      REQUIRE(*evaluate(c, d, values) == v);
    }
}

TEST_CASE("interval arithmetic never forgets a value, also at infinity") {
  const std::int64_t ends[] = {minus_infinity, -7, -1, 0, 1, 5, infinity};
  const std::int64_t samples[] = {-9, -7, -3, -1, 0, 1, 2, 5, 8};
  for (const std::int64_t al : ends)
    for (const std::int64_t ah : ends)
      for (const std::int64_t bl : ends)
        for (const std::int64_t bh : ends) {
          const interval a{al, ah}, b{bl, bh};
          for (const std::int64_t x : samples)
            for (const std::int64_t y : samples) {
              if (!a.contains(x) || !b.contains(y)) continue;
              REQUIRE((a + b).contains(x + y));
              REQUIRE((a - b).contains(x - y));
              REQUIRE((a * b).contains(x * y));
              REQUIRE(min(a, b).contains(x < y ? x : y));
              REQUIRE(max(a, b).contains(x < y ? y : x));
              REQUIRE(floordiv(a, 3).contains(floor_div(x, 3)));
              interval quotient;
              std::int64_t q = 0;
              if (y > 0 && integer_domain::div_exact(x, y, q) &&
                  interval_domain::div_exact(a, b, quotient))
                REQUIRE(quotient.contains(q));
            }
        }
}
