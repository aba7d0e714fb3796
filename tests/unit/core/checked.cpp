#include <doctest/doctest.h>

#include <cstdint>

#include <sod2/core/checked.hpp>
#include <sod2/core/guard.hpp>
#include <sod2/core/ids.hpp>

using namespace sod2;

static_assert(floor_div(-7, 2) == -4 && ceil_div(-7, 2) == -3 && floor_mod(-7, 2) == 1);
static_assert(align_up(33, 32) == 64 && align_up(64, 32) == 64 && align_up(0, 32) == 0);
static_assert(gcd(-12, 18) == 6 && gcd(0, 5) == 5);
static_assert((!tri::yes) == tri::no && (!tri::unknown) == tri::unknown);

TEST_CASE("division rounds down, for every sign") {
  for (std::int64_t a = -50; a <= 50; ++a)
    for (std::int64_t b = 1; b <= 12; ++b) {
      const std::int64_t q = floor_div(a, b), r = floor_mod(a, b);
      REQUIRE(q * b + r == a);
      REQUIRE((r >= 0 && r < b));
      REQUIRE(ceil_div(a, b) == -floor_div(-a, b));
      REQUIRE(align_up(a, b) % b == 0);
    }
}

TEST_CASE("overflow is noticed at the ends") {
  std::int64_t out = 0;
  CHECK_FALSE(checked_add(INT64_MAX, 1, out));
  CHECK_FALSE(checked_sub(INT64_MIN, 1, out));
  CHECK_FALSE(checked_mul(INT64_MAX / 2, 3, out));
  CHECK((checked_add(INT64_MAX, -1, out) && out == INT64_MAX - 1));
  CHECK(floor_div(INT64_MIN, 3) == INT64_MIN / 3 - 1);
  CHECK(ceil_div(INT64_MAX, 2) == INT64_MAX / 2 + 1);
}

TEST_CASE("arms of one choice exclude each other, nested ones too") {
  //  choice 0: arm 0 (guard 1) holds choice 1 (guards 3, 4); arm 1 is guard 2
  const guard guards[] = {{0, 0, 0}, {0, 0, 1}, {1, 1, 0}, {1, 1, 1}};
  CHECK(well_formed(guards));
  CHECK(exclusive(guards, 1, 2));
  CHECK(exclusive(guards, 3, 4));
  CHECK(exclusive(guards, 3, 2));
  CHECK_FALSE(exclusive(guards, 3, 1));
  CHECK_FALSE(exclusive(guards, 0, 4));
  const guard twice[] = {{0, 0, 0}, {0, 0, 0}};
  CHECK_FALSE(well_formed(twice));
  CHECK(absent == value_id{});
}
