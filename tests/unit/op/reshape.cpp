// Reshape and its relatives, shapes as values, ranges, images.
#include "unit/op/support.hpp"

#include <sod2/op/std/image.hpp>
#include <sod2/op/std/reshape.hpp>
#include <sod2/op/std/shape.hpp>

using namespace test;
namespace ops = sod2::ops;

TEST_CASE("Reshape") {
  check<ops::reshape>({14, {in("Batch, 64"), vec("Batch, 32, 2")}}, {"(Batch, 32, 2)"});
  check<ops::reshape>({13, {in("B, L, 768"), vec("0, -1, 12, 64")}}, {"(B, L, 12, 64)"});
  check<ops::reshape>({5, {in("N, C, H, W"), vec("0, -1")}}, {"(N, C*H*W)"});
  check<ops::reshape>({1, {in("N, 4")}, attributes().ints("shape", {-1})}, {"(4*N)"});
  check<ops::reshape>({14, {in("2, 0"), vec("0, 5")}, attributes().set("allowzero", 1)},
                      {"(0, 5)"});
  check<ops::reshape>({13, {in("1"), vec("")}}, {"()"});
  // Products on both sides divide (pattern 12).
  check<ops::reshape>({13, {in("B, H, T, D"), vec("B*H, -1, D")}}, {"(B*H, T, D)"});
  check<ops::reshape>({13, {in("A*B, C*D"), vec("A, -1, D")}}, {"(A, B*C, D)"});
  check<ops::reshape>({13, {in("N, 6"), vec("-1, 4")}}, {"(floordiv(6*N, 4), 4)"});
  // Targets of which only the length or a part is known.
  check<ops::reshape>({13, {in("N, 6"), in("3", dtype::i64)}}, {"(*, *, *)"});
  check<ops::reshape>({13, {in("N, 6"), in("K", dtype::i64)}}, {"unknown"});
  check<ops::reshape>({13, {in("N, 6"), vec("0, ?")}}, {"(N, *)"});
  check<ops::reshape>({13, {no_rank(), vec("N, -1, 4")}}, {"(N, *, 4)"});
  check_value<ops::reshape>({13, {vec("N, M"), vec("2, 1")}}, "(N, M)");
  check_back<ops::reshape>({13, {in("_, 64"), vec("B, 32, 2")}}, {"B, 32, 2"}, {"0=B", ""});
}

TEST_CASE("Reshape: errors name both shapes and both numbers of elements") {
  check_error<ops::reshape>(
      {14, {in("Batch, 64"), vec("Batch, 30, 2")}}, sod2::errc::element_count,
      "node 'node': tensor 'in0': reshape must keep the number of elements: (Batch, 64) "
      "has 64*Batch, (Batch, 30, 2) has 60*Batch");
  check_error<ops::reshape>(
      {14, {in("Batch, 64"), vec("0, 30, 2")}}, sod2::errc::element_count,
      "node 'node': tensor 'in0': reshape must keep the number of elements: (Batch, 64) "
      "has 64*Batch, (Batch, 30, 2) has 60*Batch");
  check_error<ops::reshape>(
      {14, {in("3, 5"), vec("4, -1")}}, sod2::errc::element_count,
      "node 'node': tensor 'in0': reshape must keep the number of elements: (3, 5) has 15, "
      "which the other dims of (4, -1) do not divide");
  check_error<ops::reshape>({14, {in("3"), vec("-1, -1")}}, sod2::errc::value_range,
                            "tensor 'in1': reshape target (-1, -1) has more than one -1");
  check_error<ops::reshape>(
      {14, {in("3"), vec("3, 0")}}, sod2::errc::axis_range,
      "tensor 'in0': reshape target (3, 0) copies a dim that the input of rank 1 does not have");
}

TEST_CASE("Flatten, Squeeze, Unsqueeze, Identity, Dropout") {
  check<ops::flatten>({13, {in("N, C, H")}}, {"(N, C*H)"});
  check<ops::flatten>({13, {in("N, C, H")}, attributes().set("axis", 3)}, {"(N*C*H, 1)"});
  check<ops::flatten>({11, {in("N, C, H")}, attributes().set("axis", -1)}, {"(N*C, H)"});
  check<ops::flatten>({13, {no_rank()}}, {"(*, *)"});
  check_back<ops::flatten>({13, {in("N, _, 4")}}, {"N, 4*C"}, {"1=C"});
  check<ops::squeeze>({13, {in("N, 1, 1"), vec("-1")}}, {"(N, 1)"});
  check<ops::squeeze>({11, {in("1, N, 1")}, attributes().ints("axes", {0, 2})}, {"(N)"});
  check<ops::squeeze>({13, {in("1, 4, 1")}}, {"(4)"});
  check<ops::squeeze>({13, {in("1, N, 1")}}, {"unknown"});  // N may be 1
  check<ops::squeeze>({13, {in("1, N + 1")}}, {"(N + 1)"});
  check<ops::squeeze>({13, {in("N, 1"), in("1", dtype::i64)}}, {"(*)"});
  check_value<ops::squeeze>({13, {vec("N"), vec("0")}}, "(N)");
  check_back<ops::squeeze>({13, {no_rank(), vec("1")}}, {"N, H"}, {"rank 3 0=N 1=1 2=H", ""});
  check_error<ops::squeeze>({13, {in("N, 2"), vec("1")}}, sod2::errc::dim_mismatch,
                            "node 'node': tensor 'in0' axis 1: dimensions do not agree (2 vs 1)");
  check<ops::unsqueeze>({13, {in("N, H"), vec("0, -1")}}, {"(1, N, H, 1)"});
  check<ops::unsqueeze>({1, {in("")}, attributes().ints("axes", {0})}, {"(1)"});
  check<ops::unsqueeze>({13, {in("N"), in("1", dtype::i64)}}, {"(*, *)"});
  check_value<ops::unsqueeze>({13, {scalar("N"), vec("0")}}, "(N)");
  check_back<ops::unsqueeze>({13, {no_rank(), vec("1")}}, {"N, 1, H"}, {"rank 2 0=N 1=H", ""});
  check_error<ops::unsqueeze>({13, {in("N"), vec("0, 0")}}, sod2::errc::axis_range,
                              "tensor 'in0': axis 0 is given twice");
  check_error<ops::unsqueeze>({11, {in("N")}}, sod2::errc::missing_attribute,
                              "required attribute 'axes' is missing");
  check<ops::identity>({13, {in("N, 2", dtype::i8)}}, {"(N, 2)"}, dtype::i8);
  check_value<ops::identity>({13, {vec("N, ?")}}, "(N, ?)");
  check<ops::dropout>({13, {in("N, 2")}, {}, 2}, {"(N, 2)", "(N, 2)"});
}

TEST_CASE("Shape and Size") {
  check<ops::shape>({13, {in("N, 3, H")}}, {"(3)"}, dtype::i64);
  check<ops::shape>({15, {no_rank()}}, {"(*)"});
  check_value<ops::shape>({13, {in("N, 3, H")}}, "(N, 3, H)");
  check_value<ops::shape>({15, {in("N, 3, H")}, attributes().set("start", 1).set("end", -1)},
                          "(3)");
  check_value<ops::shape>({15, {in("N, 3, H")}, attributes().set("start", -1)}, "(H)");
  check_value<ops::shape>({15, {in("N, 3")}, attributes().set("start", 5)}, "()");
  check_value<ops::size>({13, {in("N, 3, H")}}, "(3*N*H)");
  check_back<ops::shape>({13, {no_rank()}}, {"3"}, {"rank 3"});
}

TEST_CASE("Constant") {
  check_value<ops::constant>({13, {}, attributes().tensor<std::int64_t>("value", {2}, {3, -1})},
                             "(3, -1)");
  check<ops::constant>({13, {}, attributes().tensor<float>("value", {1, 2}, {0.5F, 1.0F})},
                       {"(1, 2)"}, dtype::f32);
  check_value<ops::constant>({13, {}, attributes().tensor<float>("value", {1}, {0.5F})}, "(0.5)");
  check_value<ops::constant>({12, {}, attributes().set("value_int", 7)}, "(7)");
  check_value<ops::constant>({12, {}, attributes().ints("value_ints", {1, 2})}, "(1, 2)");
  check_value<ops::constant>({12, {}, attributes().set("value_float", 0.5)}, "(0.5)");
  check<ops::constant>({12, {}, attributes().reals("value_floats", {1, 2})}, {"(2)"}, dtype::f32);
  check<ops::constant>({12, {}, attributes().strings("value_strings", {"a"})}, {"(1)"},
                       dtype::string);
  check_error<ops::constant>({13, {}}, sod2::errc::missing_attribute,
                             "required attribute 'value' is missing");
}

TEST_CASE("ConstantOfShape, Range, EyeLike") {
  check<ops::constant_of_shape>({9, {vec("N, 3")}}, {"(N, 3)"}, dtype::f32);
  check<ops::constant_of_shape>(
      {9, {in("2", dtype::i64)}, attributes().tensor<std::int64_t>("value", {1}, {1})}, {"(*, *)"},
      dtype::i64);
  check<ops::constant_of_shape>({9, {vec("")}}, {"()"});
  check_value<ops::constant_of_shape>(
      {9, {vec("3")}, attributes().tensor<std::int64_t>("value", {1}, {-1})}, "(-1, -1, -1)");
  check<ops::range>({11, {scalar("0"), scalar("N"), scalar("1")}}, {"(N)"}, dtype::i64);
  check<ops::range>({11, {scalar("N"), scalar("0"), scalar("-2")}}, {"(ceildiv(N, 2))"});
  check<ops::range>({11, {scalar("5"), scalar("2"), scalar("1")}}, {"(0)"});
  check<ops::range>({11, {scalar("2"), scalar("N"), scalar("3")}}, {"(max(0, ceildiv(N - 2, 3)))"});
  check<ops::range>({11, {scalar("5"), scalar("0"), scalar("-9223372036854775807 - 1")}}, {"(1)"});
  check<ops::range>({11, {in("", dtype::i64), scalar("N"), scalar("1")}}, {"(*)"});
  check<ops::range>(
      {11, {scalar("0", dtype::f32), scalar("1", dtype::f32), scalar("0.25", dtype::f32)}},
      {"(4)"});
  check_value<ops::range>({11, {scalar("N"), scalar("N + 3"), scalar("1")}}, "(N, N + 1, N + 2)");
  check_error<ops::range>({11, {scalar("0"), scalar("4"), scalar("0")}}, sod2::errc::value_range,
                          "tensor 'in2': Range needs a delta that is not 0");
  check<ops::eye_like>({9, {in("N, M")}, attributes().set("dtype", 7)}, {"(N, M)"}, dtype::i64);
}

TEST_CASE("Resize by scales") {
  check<ops::resize>({13, {in("N, C, H, W"), absent(), vec("1, 1, 2, 0.5", dtype::f32)}},
                     {"(N, C, 2*H, floordiv(W, 2))"});
  check<ops::resize>({10, {in("N, C, H, W"), vec("1, 1, 1.5, 3", dtype::f32)}},
                     {"(N, C, floordiv(3*H, 2), 3*W)"});
  // 0.7 is no dyadic factor: the product is taken in float32, as runtimes do.
  check<ops::resize>({11, {in("10, 8"), absent(), vec("0.7, 1", dtype::f32)}}, {"(7, 8)"});
  check<ops::resize>(
      {19, {in("N, C, H"), absent(), vec("2", dtype::f32)}, attributes().ints("axes", {2})},
      {"(N, C, 2*H)"});
  check<ops::resize>({13, {in("N, H"), absent(), in("2")}}, {"(*, *)"});
  check<ops::resize>({13,
                      {in("1, 10"), vec("0, 0.25, 1, 0.75", dtype::f32), vec("1, 2", dtype::f32)},
                      attributes().set("coordinate_transformation_mode", "tf_crop_and_resize")},
                     {"(1, 10)"});
  check<ops::upsample>({9, {in("N, C, H, W"), vec("1, 1, 2, 2", dtype::f32)}},
                       {"(N, C, 2*H, 2*W)"});
  check<ops::upsample>({7, {in("N, C, H, W")}, attributes().reals("scales", {1, 1, 2, 2})},
                       {"(N, C, 2*H, 2*W)"});
  symbols s;
  std::vector<sod2::symbolic_fact> out;
  REQUIRE(s.apply<ops::resize>({11, {in("H"), absent(), vec("0.7", dtype::f32)}}, out));
  for (std::int64_t h : {1, 10, 33, 1000}) {
    std::int64_t v = 0;
    REQUIRE(s.evaluate(out[0].dims[0], {h}, v));
    CHECK(v == static_cast<std::int64_t>(static_cast<float>(h) * 0.7F));
  }
}

TEST_CASE("Resize by sizes (pattern 5): every element of sizes may be an expression") {
  check<ops::resize>({13, {in("N, C, H, W"), absent(), absent(), vec("N, C, 2*H, min(W, 800)")}},
                     {"(N, C, 2*H, min(W, 800))"});
  check<ops::resize>({11, {in("N, C, H, W"), in("0"), in("0"), vec("N, C, ?, 7")}},
                     {"(N, C, *, 7)"});
  check<ops::resize>({13, {in("N, C, H, W"), absent(), absent(), in("4", dtype::i64)}},
                     {"(*, *, *, *)"});
  check<ops::resize>({13, {no_rank(), absent(), absent(), vec("1, 3, 8, 8")}}, {"(1, 3, 8, 8)"});
  check<ops::resize>(
      {18,
       {in("1, 3, 10, 20"), absent(), absent(), vec("40, 40")},
       attributes().ints("axes", {2, 3}).set("keep_aspect_ratio_policy", "not_larger")},
      {"(1, 3, 20, 40)"});
  check<ops::resize>(
      {18,
       {in("1, 3, 10, 20"), absent(), absent(), vec("40, 40")},
       attributes().ints("axes", {2, 3}).set("keep_aspect_ratio_policy", "not_smaller")},
      {"(1, 3, 40, 80)"});
  check_error<ops::resize>({13, {in("N, C"), absent(), absent(), vec("1")}},
                           sod2::errc::dim_mismatch,
                           "tensor 'in3': sizes has 1 entries for 2 axes");
  check_error<ops::resize>({13, {in("N, C")}}, sod2::errc::arity,
                           "node 'node': Resize needs scales or sizes");
}

TEST_CASE("image rearranging and sampling") {
  check<ops::depth_to_space>({13, {in("N, 12, H, W")}, attributes().set("blocksize", 2)},
                             {"(N, 3, 2*H, 2*W)"});
  check<ops::space_to_depth>({13, {in("N, C, 2*H, 4")}, attributes().set("blocksize", 2)},
                             {"(N, 4*C, H, 2)"});
  check_back<ops::depth_to_space>({13, {no_rank()}, attributes().set("blocksize", 2)},
                                  {"N, C, 2*H, 2*W"}, {"rank 4 0=N 1=4*C 2=H 3=W"});
  check_error<ops::depth_to_space>(
      {13, {in("N, 6, H, W")}, attributes().set("blocksize", 2)}, sod2::errc::divisibility,
      "node 'node': tensor 'in0' axis 1: dimension is not divisible (6 vs 4)");
  check<ops::grid_sample>({16, {in("N, C, H, W"), in("N, A, B, 2")}}, {"(N, C, A, B)"});
  check<ops::affine_grid>({20, {in("N, 2, 3"), vec("N, C, H, W")}}, {"(N, H, W, 2)"});
  check<ops::center_crop_pad>({18, {in("N, H, W"), vec("8, M")}, attributes().ints("axes", {1, 2})},
                              {"(N, 8, M)"});
  check<ops::col2im>({18, {in("N, 18, L"), vec("H, W"), vec("3, 3")}}, {"(N, 2, H, W)"});
  check<ops::image_decoder>({20, {in("L", dtype::u8)}}, {"(*, *, 3)"}, dtype::u8);
}
