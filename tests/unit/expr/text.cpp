// Expressions as text: what people read, and what reads back as the same expression.
#include <doctest/doctest.h>

#include <string>

#include <sod2/expr.hpp>

using namespace sod2;

namespace {
std::string round_trip(dim_context& c, const char* text) {
  const auto d = parse(c, text);
  if (!d) return "error: " + d.error().text();
  const std::string shown = print(c, *d);
  const auto again = parse(c, shown);
  if (!again) return "error of " + shown + ": " + again.error().text();
  return *again == *d ? shown : "another expression: " + shown;
}
}  // namespace

TEST_CASE("expressions print as they are read") {
  const struct {
    const char* text;
    const char* shown;
  } cases[] = {
      {"7", "7"},
      {"-3", "-3"},
      {"H", "H"},
      {"2*H+1", "2*H + 1"},
      {"H - H*2 + 1", "1 - H"},
      {"H*W - W*H", "0"},
      {"(A + B)*(A - B)", "A*A - B*B"},
      {"floordiv(H + 1, 2)", "ceildiv(H, 2)"},
      {"floordiv(H - 3 + 2*1, 2) + 1", "ceildiv(H, 2)"},
      {"ceildiv(ceildiv(H, 2), 2)", "ceildiv(H, 4)"},
      {"mod(H, 4)", "H - 4*floordiv(H, 4)"},
      {"alignup(H, 32)", "32*ceildiv(H, 32)"},
      {"min(S, 512, 384)", "min(S, 384)"},
      {"max(A, B + 1)", "max(A, B + 1)"},
      {"broadcast(A, B)", "broadcast(A, B)"},
      {"floor(f32(H) * 0.7)", "floor(f32(H) * 0.7)"},
      {"ceil(f64(H) / 3.5 + 0.5)", "ceil((f64(H) / 3.5) + 0.5)"},
      {"trunc(float_floor(f32(H) * 0.7) * 2.5)", "floor(float_floor(f32(H) * 0.7) * 2.5)"},
      {"trunc(f32(H) * 0.7 - 3.0)", "trunc((f32(H) * 0.7) - 3.0)"},
      {"round(sqrt(f64(H)))", "round(sqrt(f64(H)))"},
      {"\"a b\" + 1", "\"a b\" + 1"},
      {"p2o.DynamicDimension.1", "\"p2o.DynamicDimension.1\""},
  };
  for (const auto& each : cases) {
    dim_context c;
    CHECK(round_trip(c, each.text) == each.shown);
  }
}

TEST_CASE("strided symbols keep their name in text") {
  dim_context c;
  c.symbol("H", {32, 640, 32, 0});
  c.symbol("T", {1, 99, 4, 1});
  CHECK(round_trip(c, "H") == "H");
  CHECK(round_trip(c, "H*3 + 1") == "3*H + 1");
  CHECK(round_trip(c, "ceildiv(H, 16)") == "floordiv(H, 16)");
  CHECK(round_trip(c, "floordiv(H, 64)") == "floordiv(floordiv(H, 32), 2)");
  CHECK(round_trip(c, "floordiv(T, 4)") == "floordiv(T - 1, 4)");
}

TEST_CASE("inferred symbols read back") {
  dim_context c;
  const dim u = c.fresh({0, 100}, "NonZero");
  const std::string text = print(c, c.add(c.mul(u, 2), 1));
  const auto back = parse(c, text);
  REQUIRE(back.ok());
  CHECK(*back == c.add(c.mul(u, 2), 1));
  CHECK(c.note_of_symbol(c.symbol_index(u)) == "NonZero");
  dim_context taken;
  taken.symbol("u0");
  CHECK(print(taken, taken.fresh({0, 1})) != "u0");
}

TEST_CASE("what is not an expression is refused") {
  const char* const wrong[] = {"",
                               "H +",
                               "(H",
                               "H)",
                               "floordiv(H)",
                               "floordiv(H, 0)",
                               "mod(H, W)",
                               "nothing(H)",
                               "floor(H)",
                               "3 4",
                               "*",
                               "f32(",
                               "\"open",
                               "99999999999999999999999999 + H",
                               "min()"};
  for (const char* text : wrong) {
    dim_context c;
    const auto d = parse(c, text);
    CAPTURE(text);
    REQUIRE_FALSE(d.ok());
    CHECK(d.error().text().find('\n') == std::string::npos);
  }
  dim_context c;
  const auto over = parse(c, "9000000000000000000 * 2");
  REQUIRE_FALSE(over.ok());
  CHECK(over.error().code() == errc::overflow);
  std::string deep(100000, '(');
  CHECK_FALSE(parse(c, deep).ok());
  CHECK_FALSE(parse(c, std::string(100000, '-') + "H").ok());
}

TEST_CASE("a shape prints as a tuple") {
  dim_context c;
  const dim dims[] = {c.symbol("B"), c.constant(3), c.ceildiv(c.symbol("H"), 2), dim::unknown()};
  CHECK(print(c, dims) == "(B, 3, ceildiv(H, 2), ?)");
}
