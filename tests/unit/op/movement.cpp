// Transpose, join, cut, gather, scatter, pad, repeat; reductions and TopK.
#include "unit/op/support.hpp"

#include <sod2/op/std/movement.hpp>
#include <sod2/op/std/reduction.hpp>

using namespace test;
namespace ops = sod2::ops;

TEST_CASE("Transpose") {
  check<ops::transpose>({13, {in("A, B, C")}, attributes().ints("perm", {0, 2, 1})}, {"(A, C, B)"});
  check<ops::transpose>({1, {in("A, B, C")}}, {"(C, B, A)"});
  check<ops::transpose>({13, {no_rank()}, attributes().ints("perm", {1, 0})}, {"(?, ?)"});
  check_back<ops::transpose>({13, {no_rank()}, attributes().ints("perm", {2, 0, 1})}, {"A, B, C"},
                             {"rank 3 2=A 0=B 1=C"});
  check_value<ops::transpose>({13, {values("2, 2", "A, B, C, D")}}, "(A, C, B, D)");
  check_error<ops::transpose>({13, {in("A, B")}, attributes().ints("perm", {0, 0})},
                              sod2::errc::bad_attribute,
                              "tensor 'in0': attribute 'perm' must be a permutation of the axes "
                              "of rank 2, not (0, 0)");
}

TEST_CASE("Concat") {
  check<ops::concat>(
      {13, {in("N, 3, H"), in("N, M, H"), in("N, 1, H")}, attributes().set("axis", 1)},
      {"(N, M + 4, H)"});
  check<ops::concat>({4, {in("2, 3"), in("2, 0")}, attributes().set("axis", -1)}, {"(2, 3)"});
  check<ops::concat>({1, {in("2, 3"), in("2, 3")}}, {"(2, 6)"});
  check<ops::concat>({13, {in("N, 3"), no_rank()}, attributes().set("axis", 1)}, {"(N, *)"});
  check<ops::concat>({13, {in("?, 3"), in("N, 3")}, attributes().set("axis", 1)}, {"(N, 6)"});
  check_back<ops::concat>({13, {in("N, 3"), no_rank()}, attributes().set("axis", 1)}, {"N, M + 3"},
                          {"", "rank 2 0=N 1=M"});
  check_value<ops::concat>({13, {vec("N"), vec("-1, M")}, attributes().set("axis", 0)},
                           "(N, -1, M)");
  check_value<ops::concat>({13, {vec("N"), in("2", dtype::i64)}, attributes().set("axis", 0)},
                           "(N, ?, ?)");
  check_value<ops::concat>(
      {13, {values("2, 1", "A, B"), values("2, 1", "C, D")}, attributes().set("axis", 1)},
      "(A, C, B, D)");
  check_error<ops::concat>({13, {in("2, 3"), in("3, 3")}, attributes().set("axis", 1)},
                           sod2::errc::dim_mismatch,
                           "node 'node': tensor 'in1' axis 0: dimensions do not agree (3 vs 2)");
  check_error<ops::concat>({13, {in("2, 3")}}, sod2::errc::missing_attribute,
                           "required attribute 'axis' is missing");
}

TEST_CASE("Split") {
  check<ops::split>({13, {in("N, 12"), vec("4, 8")}, attributes().set("axis", 1), 2},
                    {"(N, 4)", "(N, 8)"});
  check<ops::split>({11, {in("2*N")}, {}, 2}, {"(N)", "(N)"});
  check<ops::split>({2, {in("5")}, attributes().ints("split", {2, 3}), 2}, {"(2)", "(3)"});
  check<ops::split>({18, {in("7")}, attributes().set("num_outputs", 3), 3}, {"(3)", "(3)", "(1)"});
  check<ops::split>({18, {in("N")}, attributes().set("num_outputs", 2), 2},
                    {"(ceildiv(N, 2))", "(N - ceildiv(N, 2))"});
  check<ops::split>({13, {in("N, 3"), in("2", dtype::i64)}, {}, 2}, {"(*, 3)", "(*, 3)"});
  check_back<ops::split>({13, {no_rank(), vec("2, 3")}, attributes().set("axis", 1), 2},
                         {"N, 2", "N, 3"}, {"rank 2 0=N 0=N 1=5", ""});
  check_value<ops::split>({13, {vec("N, M, 3"), vec("1, 2")}, {}, 2}, "(N)");
  check_error<ops::split>({13, {in("N, 12"), vec("4, 9")}, attributes().set("axis", 1), 2},
                          sod2::errc::dim_mismatch,
                          "node 'node': tensor 'in0' axis 1: dimensions do not agree (12 vs 13)");
}

TEST_CASE("Slice: constants, negative indices, steps, clamping") {
  check<ops::slice>({13, {in("10, 8"), vec("2"), vec("5")}}, {"(3, 8)"});
  check<ops::slice>({13, {in("N, 8"), vec("0"), vec("9223372036854775807"), vec("0")}}, {"(N, 8)"});
  check<ops::slice>({10, {in("10, 8"), vec("-3"), vec("-1"), vec("-1")}}, {"(10, 2)"});
  check<ops::slice>({13, {in("10"), vec("-1"), vec("-9223372036854775807"), vec("0"), vec("-1")}},
                    {"(10)"});
  check<ops::slice>({13, {in("10"), vec("1"), vec("9"), vec("0"), vec("3")}}, {"(3)"});
  check<ops::slice>({13, {in("4"), vec("7"), vec("9")}}, {"(0)"});
  check<ops::slice>(
      {1, {in("10, 8")}, attributes().ints("starts", {1}).ints("ends", {100}).ints("axes", {1})},
      {"(10, 7)"});
  check<ops::slice>({13, {in("512"), vec("0"), vec("S")}}, {"(min(S, 512))"});
  check<ops::slice>({13, {in("S"), vec("0"), vec("-1")}}, {"(S - 1)"});
  check<ops::slice>({13, {in("S"), vec("1"), vec("2147483647")}}, {"(S - 1)"});
  check<ops::slice>({13, {in("N, S"), in("1", dtype::i64), in("1", dtype::i64), vec("1")}},
                    {"(N, *)"});
  check<ops::slice>(
      {13, {in("N, S"), in("1", dtype::i64), in("1", dtype::i64), in("1", dtype::i64)}},
      {"(*, *)"});
  check_error<ops::slice>({13, {in("4"), vec("0"), vec("1"), vec("0"), vec("0")}},
                          sod2::errc::value_range,
                          "tensor 'in4': Slice needs steps that are not 0");
}

TEST_CASE("Slice: symbolic start and end (patterns 1, 2 and 3)") {
  // Causal mask: bias[kl - ql : kl, : kl] with kl = P + S, ql = S.
  check<ops::slice>({13, {in("P + S + 7, 4"), vec("P"), vec("P + S"), vec("0")}}, {"(S, 4)"});
  // Relative positions: pe[c - T + 1 : c + T] of 2c - 1 rows.
  symbols s;
  s.context.symbol("T", {1, 2000, 1, 0});
  std::vector<sod2::symbolic_fact> out;
  REQUIRE(
      s.apply<ops::slice>({13, {in("9999, 64"), vec("5000 - T"), vec("4999 + T"), vec("0")}}, out));
  CHECK(s.text(out[0]) == "(2*T - 1, 64)");
  // Without a bound on T the size is exact too, only less readable.
  check<ops::slice>({13, {in("99"), vec("50 - T"), vec("49 + T")}}, {""});
  symbols open;
  REQUIRE(open.apply<ops::slice>({13, {in("99"), vec("50 - T"), vec("49 + T")}}, out));
  CHECK(open.context.only_input_symbols(out[0].dims[0]));
  for (std::int64_t t : {1, 10, 49, 50, 51, 60, 200}) {
    std::vector<std::int64_t> binding(open.context.symbol_count(), t);
    std::int64_t v = -1;
    REQUIRE(open.evaluate(out[0].dims[0], binding, v));
    std::int64_t first = 50 - t, last = 49 + t;
    if (first < 0) first += 99;
    if (first < 0) first = 0;
    if (last > 99) last = 99;
    CHECK(v == (last > first ? last - first : 0));
  }
}

TEST_CASE("Slice: values and backward") {
  check_value<ops::slice>({13, {vec("N, C, H, W"), vec("2"), vec("9223372036854775807")}},
                          "(H, W)");
  check_value<ops::slice>({13, {vec("N, C, H, W"), vec("-1"), vec("-5"), vec("0"), vec("-1")}},
                          "(W, H, C, N)");
  check_value<ops::slice>({13, {vec("N, C, H"), vec("0"), vec("S + 2")}}, "(N, C, H)");
  check_value<ops::slice>({13, {values("2, 2", "A, B, C, D"), vec("1"), vec("2"), vec("1")}},
                          "(B, D)");
  check_value<ops::slice>({13, {vec("N, C"), in("1", dtype::i64), vec("2")}}, "untracked");
  check_back<ops::slice>({13, {in("_, _"), vec("0"), vec("3"), vec("1")}}, {"N, 3"},
                         {"0=N", "", "", ""});
}

TEST_CASE("Gather and its relatives") {
  check<ops::gather>({13, {in("V, 64"), in("B, L", dtype::i64)}}, {"(B, L, 64)"}, dtype::f32);
  check<ops::gather>({1, {in("N, C, H"), in("", dtype::i64)}, attributes().set("axis", 1)},
                     {"(N, H)"});
  check<ops::gather_elements>(
      {13, {in("N, 3"), in("N, 2", dtype::i64)}, attributes().set("axis", 1)}, {"(N, 2)"});
  check<ops::gather_nd>({12, {in("N, M, 8"), in("K, 2", dtype::i64)}}, {"(K, 8)"});
  check<ops::gather_nd>(
      {12, {in("B, M, 8"), in("B, K, 1", dtype::i64)}, attributes().set("batch_dims", 1)},
      {"(B, K, 8)"});
  check<ops::gather_nd>({11, {in("N, M"), in("K, R", dtype::i64)}}, {"unknown"});
  check_back<ops::gather>({13, {in("_, _"), no_rank(dtype::i64)}, attributes().set("axis", 0)},
                          {"B, L, 64"}, {"1=64", "rank 2 0=B 1=L"});
  check_value<ops::gather>({13, {vec("N, C, H"), scalar("1")}}, "(C)");
  check_value<ops::gather>({13, {vec("N, C, H"), vec("-1, 0, ?")}}, "(H, N, ?)");
  check_value<ops::gather>(
      {13, {values("2, 2", "A, B, C, D"), vec("1")}, attributes().set("axis", 1)}, "(B, D)");
  check_value<ops::gather_elements>({13, {vec("A, B, C"), vec("2, 0")}}, "(C, A)");
  check_value<ops::gather_nd>({13, {values("2, 2", "A, B, C, D"), values("1, 2", "1, 0")}}, "(C)");
  check_value<ops::gather_nd>({13, {values("2, 2", "A, B, C, D"), values("1, 1", "1")}}, "(C, D)");
}

TEST_CASE("Scatter and its relatives") {
  check<ops::scatter_elements>({16, {in("N, 3"), in("1, 3", dtype::i64), in("1, 3")}}, {"(N, 3)"});
  check<ops::scatter_nd>({16, {in("N, 8"), in("K, 1", dtype::i64), in("K, 8")}}, {"(N, 8)"});
  check<ops::tensor_scatter>({24, {in("B, M, 8"), in("B, 1, 8"), in("B", dtype::i64)}},
                             {"(B, M, 8)"});
  check_value<ops::scatter_elements>({13, {vec("N, C, H"), vec("1, -1"), vec("7, M")}},
                                     "(N, 7, M)");
  check_value<ops::scatter_elements>({13, {vec("N, C, H"), vec("?"), vec("7")}}, "untracked");
  check_value<ops::scatter_nd>({13, {vec("N, C, H"), values("1, 1", "2"), vec("7")}}, "(N, C, 7)");
  check_error<ops::scatter_nd>(
      {16, {in("N, 8"), in("K, 1", dtype::i64), in("K, 9")}}, sod2::errc::dim_mismatch,
      "node 'node': tensor 'in2' axis 1: dimensions do not agree (9 vs 8)");
}

TEST_CASE("Pad: constants and computed pads (pattern 4)") {
  check<ops::pad>({13, {in("N, C, H"), vec("0, 0, 1, 0, 0, 2")}}, {"(N, C, H + 3)"});
  check<ops::pad>({2, {in("4, 5")}, attributes().ints("pads", {0, 1, 0, -2})}, {"(4, 4)"});
  check<ops::pad>({1, {in("4")}, attributes().ints("paddings", {1, 1})}, {"(6)"});
  check<ops::pad>({18, {in("N, H, W"), vec("1, 1"), absent(), vec("-1")}}, {"(N, H, W + 2)"});
  check<ops::pad>({13, {in("N, H"), in("4", dtype::i64)}}, {"(*, *)"});
  // (7 - H mod 7) mod 7 more rows make 7*ceil(H/7).
  check<ops::pad>({13, {in("N, H"), vec("0, 0, 0, mod(7 - mod(H, 7), 7)")}},
                  {"(N, 7*ceildiv(H, 7))"});
  check_back<ops::pad>({13, {no_rank(), vec("0, 1, 0, 1")}}, {"N, H"}, {"rank 2 0=N 1=H - 2", ""});
  check_error<ops::pad>({13, {in("N, 3"), vec("0, 1")}}, sod2::errc::dim_mismatch,
                        "tensor 'in1': pads has 2 entries, not 2 for each of 2 axes");
}

TEST_CASE("Tile, Expand, OneHot, Trilu") {
  check<ops::tile>({13, {in("N, 3"), vec("2, M")}}, {"(2*N, 3*M)"});
  check<ops::tile>({1, {in("N, 3"), scalar("2"), scalar("1")}}, {"(N, 6)"});
  check<ops::tile>({13, {no_rank(), in("3", dtype::i64)}}, {"(?, ?, ?)"});
  check_value<ops::tile>({13, {values("2", "A, B"), vec("2")}}, "(A, B, A, B)");
  check_back<ops::tile>({13, {no_rank(), vec("2, 1")}}, {"2*N, M"}, {"rank 2 0=N 1=M", ""});
  check<ops::expand>({13, {in("N, 1"), vec("1, M")}}, {"(N, M)"});
  check<ops::expand>({8, {in("3"), vec("2, 1")}}, {"(2, 3)"});
  check<ops::expand>({13, {in("8, 1"), vec("?, ?")}}, {"(8, *)"});
  check<ops::expand>({13, {in("1, 8"), in("3", dtype::i64)}}, {"(*, *, 8)"});
  check_value<ops::expand>({13, {vec("N"), vec("3")}}, "(N, N, N)");
  check_error<ops::expand>(
      {13, {in("3"), vec("2")}}, sod2::errc::broadcast,
      "node 'node': tensor 'in0' axis 0: dimensions do not broadcast (3 vs 2)");
  check<ops::one_hot>({11, {in("N, L", dtype::i64), scalar("D"), in("2")}}, {"(N, L, D)"},
                      dtype::f32);
  check<ops::one_hot>(
      {9, {in("N", dtype::i64), in("", dtype::i64), in("2")}, attributes().set("axis", 0)},
      {"(*, N)"});
  check_back<ops::one_hot>({11, {no_rank(dtype::i64), scalar("5"), in("2")}}, {"N, L, 5"},
                           {"rank 2 0=N 1=L"});
  check<ops::trilu>({14, {in("N, M")}}, {"(N, M)"});
  check<ops::reverse_sequence>({10, {in("T, B"), in("B", dtype::i64)}}, {"(T, B)"});
}

TEST_CASE("reductions: axes as attribute and as input") {
  check<ops::reduce_mean>({13, {in("N, C, H, W")}, attributes().ints("axes", {2, -1})},
                          {"(N, C, 1, 1)"});
  check<ops::reduce_mean>({18, {in("N, C, H"), vec("1")}, attributes().set("keepdims", 0)},
                          {"(N, H)"});
  check<ops::reduce_sum>({13, {in("N, C"), vec("0")}}, {"(1, C)"});
  check<ops::reduce_max>({20, {in("N, C")}}, {"(1, 1)"});
  check<ops::reduce_max>({20, {in("N, C")}, attributes().set("keepdims", 0)}, {"()"});
  check<ops::reduce_min>({18, {in("N, C")}, attributes().set("noop_with_empty_axes", 1)},
                         {"(N, C)"});
  check<ops::reduce_l2>({11, {in("N, C")}, attributes().ints("axes", {1}).set("keepdims", 0)},
                        {"(N)"});
  check<ops::reduce_sum>({13, {in("N, 1"), in("1", dtype::i64)}}, {"(*, 1)"});
  check<ops::reduce_sum>({13, {in("N, 4"), in("1", dtype::i64)}, attributes().set("keepdims", 0)},
                         {"(*)"});
  check<ops::reduce_sum>({13, {no_rank()}, attributes().set("keepdims", 0)}, {"()"});
  check<ops::arg_max>({13, {in("N, C, H")}, attributes().set("axis", 1)}, {"(N, 1, H)"},
                      dtype::i64);
  check<ops::arg_min>({11, {in("N, C")}, attributes().set("axis", -1).set("keepdims", 0)}, {"(N)"},
                      dtype::i64);
  check_back<ops::reduce_mean>({13, {no_rank()}, attributes().ints("axes", {1}).set("keepdims", 0)},
                               {"N, H"}, {"rank 3 0=N 2=H"});
  check_back<ops::reduce_mean>({13, {no_rank()}, attributes().ints("axes", {1})}, {"N, 1, H"},
                               {"rank 3 0=N 2=H"});
  check_error<ops::reduce_sum>({11, {in("N")}, attributes().ints("axes", {1})},
                               sod2::errc::axis_range,
                               "tensor 'in0': axis 1 is out of range for rank 1");
}

TEST_CASE("reductions of values, CumSum, TopK") {
  check_value<ops::reduce_prod>({13, {vec("N, C, H")}, attributes().set("keepdims", 0)}, "(N*C*H)");
  check_value<ops::reduce_sum>({13, {vec("N, 3")}}, "(N + 3)");
  check_value<ops::reduce_min>({13, {vec("N, M, 8")}}, "(min(N, M, 8))");
  check_value<ops::reduce_max>({13, {values("2, 2", "A, 0, B, 5")}, attributes().ints("axes", {1})},
                               "(A, max(B, 5))");
  check_value<ops::reduce_max>({13, {vec("N, ?")}}, "(?)");
  check_value<ops::cum_sum>({14, {vec("N, M, 1"), scalar("0")}}, "(N, N + M, N + M + 1)");
  check_value<ops::cum_sum>(
      {14, {vec("N, M, 1"), scalar("0")}, attributes().set("exclusive", 1).set("reverse", 1)},
      "(M + 1, 1, 0)");
  check<ops::top_k>({11, {in("N, 100"), vec("5")}, {}, 2}, {"(N, 5)", "(N, 5)"});
  check<ops::top_k>({1, {in("N, 100")}, attributes().set("k", 3).set("axis", 0), 2},
                    {"(3, 100)", "(3, 100)"});
  check<ops::top_k>({11, {in("N, M"), vec("min(M, 300)")}, {}, 2}, {"(N, min(M, 300))", ""});
  check<ops::top_k>({11, {in("N, 100"), in("1", dtype::i64)}, {}, 2}, {"(N, *)", "(N, *)"});
  check_back<ops::top_k>({11, {no_rank(), vec("5")}, {}, 2}, {"N, 5", "N, 5"}, {"rank 2 0=N"});
  check_error<ops::top_k>({11, {in("N, 4"), vec("5")}, {}, 2}, sod2::errc::value_range,
                          "node 'node': tensor 'in0' axis 1: value is out of range (5 vs 4)");
}
