#include "unit/op/support.hpp"

#include <sod2/op/std/conversion.hpp>
#include <sod2/op/std/elementwise.hpp>

using namespace test;
namespace ops = sod2::ops;

TEST_CASE("unary operators keep shape and type") {
  check<ops::relu>({14, {in("N, 3, H")}}, {"(N, 3, H)"}, dtype::f32);
  check<ops::exp>({13, {in("0, 5", dtype::f64)}}, {"(0, 5)"}, dtype::f64);
  check<ops::hard_sigmoid>({6, {in("")}}, {"()"});
  check<ops::is_nan>({9, {in("N")}}, {"(N)"}, dtype::boolean);
  check<ops::not_>({1, {in("N", dtype::boolean)}}, {"(N)"}, dtype::boolean);
  check<ops::sqrt>({13, {no_rank()}}, {"unknown"}, dtype::f32);
  check<ops::clip>({13, {in("N, 2"), scalar("0", dtype::f32), absent()}}, {"(N, 2)"});
  check<ops::clip>({6, {in("N, 2")}, attributes().set("min", 0.0)}, {"(N, 2)"});
}

TEST_CASE("binary operators broadcast as numpy") {
  check<ops::add>({14, {in("N, 1, H"), in("5, 1")}}, {"(N, 5, H)"}, dtype::f32);
  check<ops::mul>({7, {in("2, 3"), in("2, 3")}}, {"(2, 3)"});
  check<ops::sub>({13, {in(""), in("N")}}, {"(N)"});
  check<ops::div>({14, {in("0, 3"), in("1, 3")}}, {"(0, 3)"});
  check<ops::less>({13, {in("A, 4"), in("1")}}, {"(A, 4)"}, dtype::boolean);
  check<ops::pow>({15, {in("N", dtype::f32), in("1", dtype::i64)}}, {"(N)"}, dtype::f32);
  check<ops::mod>({13, {in("N", dtype::i32), in("N", dtype::i32)}}, {"(N)"}, dtype::i32);
  check<ops::add>({14, {in("N, 4"), in("N, 4")}}, {"(N, 4)"});
  check<ops::add>({14, {no_rank(), in("N, 4")}}, {"unknown"});
  // A dim that is not 1 decides, whatever the other one is.
  check<ops::add>({14, {in("?, 4"), in("8, 4")}}, {"(8, 4)"});
  check<ops::prelu>({9, {in("N, C, H"), in("C, 1")}}, {"(N, C, H)"});
}

TEST_CASE("legacy broadcast of opsets before 7 aligns at axis") {
  check<ops::add>({6, {in("N, C, H, W"), in("C")}, attributes().set("broadcast", 1).set("axis", 1)},
                  {"(N, C, H, W)"});
  check<ops::mul>({1, {in("N, C"), in("C")}, attributes().set("broadcast", 1)}, {"(N, C)"});
  check<ops::add>({6, {in("N, C"), in("N, C")}}, {"(N, C)"});
  check_error<ops::add>(
      {6, {in("2, 3, 4"), in("5")}, attributes().set("broadcast", 1).set("axis", 1)},
      sod2::errc::broadcast,
      "node 'node': tensor 'in1' axis 0: dimensions do not broadcast (5 vs 3)");
}

TEST_CASE("unequal symbols are a requirement, not a guess") {
  symbols s;
  std::vector<sod2::symbolic_fact> out;
  std::vector<sod2::symbolic_transfer::requirement> needs;
  REQUIRE(s.apply<ops::add>({14, {in("A, 4"), in("B, 4")}}, out, &needs));
  CHECK(s.text(out[0]) == "(broadcast(A, B), 4)");
  REQUIRE(needs.size() == 1);
  CHECK(needs[0].broadcast);
  REQUIRE(s.apply<ops::add>({14, {in("A + 1"), in("B + 1")}}, out, &needs));
  REQUIRE(needs.size() == 1);
  CHECK_FALSE(needs[0].broadcast);
  CHECK(needs[0].code == sod2::errc::broadcast);
}

TEST_CASE("variadic operators and Where") {
  check<ops::max>({13, {in("N, 1"), in("1, M"), in("")}}, {"(N, M)"});
  check<ops::sum>({8, {in("N, 3")}}, {"(N, 3)"});
  check<ops::mean>({13, {in("2"), in("2"), in("2")}}, {"(2)"});
  check<ops::where>({16, {in("N, 1", dtype::boolean), in("1, M"), in("3, 1, 1")}}, {"(3, N, M)"},
                    dtype::f32);
}

TEST_CASE("broadcast and type errors name input and axis") {
  check_error<ops::add>(
      {14, {in("N, 3"), in("N, 4")}}, sod2::errc::broadcast,
      "node 'node': tensor 'in1' axis 1: dimensions do not broadcast ((N, 3) vs (N, 4))");
  check_error<ops::add>({14, {in("3"), in("3", dtype::i64)}}, sod2::errc::type_mismatch,
                        "node 'node': tensor 'in1': element types do not agree (float32 vs int64)");
}

TEST_CASE("backward: shapes of elementwise inputs") {
  check_back<ops::relu>({14, {no_rank()}}, {"N, 2*M"}, {"rank 2 0=N 1=2*M"});
  check_back<ops::add>({14, {in("_, _"), in("1, 4")}}, {"N, 4"}, {"0=N", ""});
  check_back<ops::add>({14, {no_rank(), in("1")}}, {"N, 4"}, {"rank 2 0=N 1=4", ""});
  // Both may be 1 or N: nothing follows.
  check_back<ops::add>({14, {in("_"), in("_")}}, {"N"}, {"", ""});
  check_back<ops::where>({16, {in("1", dtype::boolean), in("1"), no_rank()}}, {"2, N"},
                         {"", "", "rank 2 0=2 1=N"});
}

TEST_CASE("values: integer arithmetic on shapes") {
  check_value<ops::add>({14, {vec("N, 3"), vec("1, N")}}, "(N + 1, N + 3)");
  check_value<ops::add>({14, {vec("N, M"), scalar("1")}}, "(N + 1, M + 1)");
  check_value<ops::sub>({14, {vec("N"), vec("N")}}, "(0)");
  check_value<ops::mul>({14, {vec("N, 2"), vec("M, N")}}, "(M*N, 2*N)");
  check_value<ops::neg>({13, {vec("N")}}, "(-N)");
  check_value<ops::abs>({13, {vec("N, -3, -N")}}, "(N, 3, N)");
  check_value<ops::min>({13, {vec("N"), vec("512"), vec("M")}}, "(min(512, M, N))");
  check_value<ops::max>({13, {vec("N"), vec("0")}}, "(N)");
  check_value<ops::sum>({13, {vec("N"), vec("M"), vec("1")}}, "(M + N + 1)");
  check_value<ops::clip>({13, {vec("N"), scalar("1"), scalar("64")}}, "(min(64, N))");
  check_value<ops::sign>({13, {vec("N, -N, 0")}}, "(1, -1, 0)");
  check_value<ops::pow>({13, {vec("N"), vec("2")}}, "(N*N)");
}

TEST_CASE("values: integer division truncates and Mod takes the divisor's sign") {
  check_value<ops::div>({14, {vec("N, 7, -7"), scalar("2")}}, "(floordiv(N, 2), 3, -3)");
  check_value<ops::div>({14, {vec("-N"), vec("2")}}, "(-floordiv(N, 2))");
  check_value<ops::div>({14, {vec("N - 5"), vec("2")}}, "(?)");  // the sign is open
  check_value<ops::div>({14, {vec("6*N - 12"), vec("6")}}, "(N - 2)");
  check_value<ops::div>({14, {vec("N*M"), vec("M")}}, "(N)");
  check_value<ops::div>({14, {vec("7"), vec("N")}}, "(?)");
  check_value<ops::div>({14, {vec("7"), vec("0")}}, "(?)");
  check_value<ops::mod>({13, {vec("N, 7, -7"), vec("4, -4, 4")}}, "(N - 4*floordiv(N, 4), -1, 1)");
  check_value<ops::mod>({13, {vec("-9223372036854775807 - 1"), vec("-1")}}, "(0)");
  check_value<ops::mod>({13, {vec("-7, N"), vec("4, 4")}, attributes().set("fmod", 1)},
                        "(-3, N - 4*floordiv(N, 4))");
}

TEST_CASE("values: comparisons decide, or are expressions of 0 and 1") {
  check_value<ops::equal>({13, {vec("N, N, 2"), vec("N, -1, 3")}}, "(1, 0, 0)");
  check_value<ops::equal>({13, {vec("N"), vec("M")}}, "(max(0, 1 - max(M - N, N - M)))");
  check_value<ops::less>({13, {vec("N, N, 0"), vec("N + 1, 1, N")}}, "(1, 0, 1)");
  check_value<ops::greater_or_equal>({16, {vec("N"), vec("1")}}, "(1)");
  check_value<ops::less_or_equal>({16, {vec("N"), vec("8")}}, "(max(0, min(9 - N, 1)))");
  check_value<ops::and_>({7, {vec("1, 0, 1", dtype::boolean), vec("1, 1, 0", dtype::boolean)}},
                         "(1, 0, 0)");
  check_value<ops::and_>({7, {vec("?, ?", dtype::boolean), vec("0, 1", dtype::boolean)}}, "(0, ?)");
  check_value<ops::or_>({7, {vec("?, ?", dtype::boolean), vec("0, 1", dtype::boolean)}}, "(?, 1)");
  check_value<ops::xor_>({7, {vec("1, 1", dtype::boolean), vec("0, 1", dtype::boolean)}}, "(1, 0)");
  check_value<ops::not_>({1, {vec("1, 0, ?", dtype::boolean)}}, "(0, 1, ?)");
  check_value<ops::where>({16, {vec("1, 0", dtype::boolean), vec("N, N"), vec("M, M")}}, "(N, M)");
  check_value<ops::where>({16, {vec("?, ?", dtype::boolean), vec("N, N"), vec("M, N")}}, "(?, N)");
}

TEST_CASE("values: sizes through floating point, as exporters write them") {
  // floor(float(H) * 2) back to an integer.
  check_value<ops::cast>({13, {vec("N", dtype::i64)}, attributes().set("to", 1)}, "(f32(N))");
  check_value<ops::mul>({13, {vec("f32(H)", dtype::f32), vec("2", dtype::f32)}}, "(f32(H) * 2.0)");
  check_value<ops::floor>({13, {vec("f32(H)", dtype::f32)}}, "(float_floor(f32(H)))");
  check_value<ops::cast>(
      {13, {vec("float_floor(f32(H) * 0.5)", dtype::f32)}, attributes().set("to", 7)},
      "(floor(f32(H) * 0.5))");
  check_value<ops::cast>({13, {vec("2.75, -2.75", dtype::f32)}, attributes().set("to", 7)},
                         "(2, -2)");
  check_value<ops::cast>({13, {vec("N, 0, 3")}, attributes().set("to", 9)}, "(1, 0, 1)");
  check_value<ops::cast>({13, {vec("300")}, attributes().set("to", 2)}, "(44)");
  check_value<ops::cast>({13, {vec("N")}, attributes().set("to", 6)}, "(N)");
  check_value<ops::sqrt>({13, {vec("9", dtype::f32)}}, "(3.0)");
  check_value<ops::less>({13, {vec("1.5", dtype::f32), vec("2", dtype::f32)}}, "(1)");
  check_value<ops::round>({11, {vec("2.5, 3.5", dtype::f32)}}, "(2.0, 4.0)");
}

TEST_CASE("Cast sets the type and wants it") {
  check<ops::cast>({13, {in("N, 2")}, attributes().set("to", 7)}, {"(N, 2)"}, dtype::i64);
  check<ops::cast>({1, {in("N, 2")}, attributes().set("to", "INT32")}, {"(N, 2)"}, dtype::i32);
  check<ops::cast_like>({15, {in("N"), in("", dtype::f16)}}, {"(N)"}, dtype::f16);
  check<ops::bit_cast>({26, {in("N, 4", dtype::f32)}, attributes().set("to", 2)}, {"(N, 16)"},
                       dtype::u8);
  check_error<ops::cast>({13, {in("N")}}, sod2::errc::missing_attribute,
                         "required attribute 'to' is missing");
  check_error<ops::cast>({13, {in("N")}, attributes().set("to", 1.5)}, sod2::errc::bad_attribute,
                         "attribute 'to' must be an integer");
}
