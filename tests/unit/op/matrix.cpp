// Products, convolutions, pooling, normalisation, recurrent layers, attention.
#include "unit/op/support.hpp"

#include <sod2/op/std/attention.hpp>
#include <sod2/op/std/convolution.hpp>
#include <sod2/op/std/normalization.hpp>
#include <sod2/op/std/pooling.hpp>
#include <sod2/op/std/product.hpp>
#include <sod2/op/std/recurrent.hpp>

using namespace test;
namespace ops = sod2::ops;

TEST_CASE("MatMul") {
  check<ops::mat_mul>({13, {in("M, K"), in("K, N")}}, {"(M, N)"}, dtype::f32);
  check<ops::mat_mul>({13, {in("B, 1, M, 64"), in("H, 64, N")}}, {"(B, H, M, N)"});
  check<ops::mat_mul>({9, {in("K"), in("B, K, N")}}, {"(B, N)"});
  check<ops::mat_mul>({9, {in("B, M, K"), in("K")}}, {"(B, M)"});
  check<ops::mat_mul>({1, {in("K"), in("K")}}, {"()"});
  check<ops::mat_mul>({13, {in("0, 3"), in("3, 4")}}, {"(0, 4)"});
  check<ops::mat_mul>({13, {no_rank(), in("K, N")}}, {"unknown"});
  check<ops::mat_mul_integer>({10, {in("M, K", dtype::u8), in("K, N", dtype::i8)}}, {"(M, N)"},
                              dtype::i32);
  const auto scale = in(""), zero = in("", dtype::i8);
  check<ops::qlinear_mat_mul>(
      {10, {in("M, K", dtype::i8), scale, zero, in("K, N", dtype::i8), scale, zero, scale, zero}},
      {"(M, N)"}, dtype::i8);
}

TEST_CASE("MatMul: inner dims are required equal") {
  symbols s;
  std::vector<sod2::symbolic_fact> out;
  std::vector<sod2::symbolic_transfer::requirement> needs;
  REQUIRE(s.apply<ops::mat_mul>({13, {in("M, K1"), in("K2, N")}}, out, &needs));
  REQUIRE(needs.size() == 1);
  CHECK(needs[0].code == sod2::errc::inner_dims);
  CHECK(sod2::print(s.context, needs[0].left) == "K1");
  CHECK(sod2::print(s.context, needs[0].right) == "K2");
  check_error<ops::mat_mul>(
      {13, {in("M, 3"), in("4, N")}}, sod2::errc::inner_dims,
      "node 'node': tensor 'in1' axis 0: inner dimensions of a product do not agree (3 vs 4)");
  check_error<ops::mat_mul>(
      {13, {in("2, M, 3"), in("3, 3, N")}}, sod2::errc::broadcast,
      "node 'node': tensor 'in1' axis 0: dimensions do not broadcast ((2, M, 3) vs (3, 3, N))");
  check_error<ops::mat_mul>({13, {in(""), in("4, N")}}, sod2::errc::rank_mismatch,
                            "tensor 'in0': rank must be at least 1, not 0");
}

TEST_CASE("MatMul, backward: the paper's Figure 3") {
  // S4 = [2a, 4b], S3 = [2a, 2c] gives S1 = [2c, 4b].
  check_back<ops::mat_mul>({13, {in("2*a, 2*c"), no_rank()}}, {"2*a, 4*b"},
                           {"", "rank 2 0=2*c 1=4*b"});
  check_back<ops::mat_mul>({13, {no_rank(), in("K, N")}}, {"B, M, N"}, {"rank 3 2=K 1=M 0=B", ""});
  check_back<ops::mat_mul>({13, {no_rank(), in("B, K, N")}}, {"B, N"}, {"rank 1 0=K", ""});
  check_back<ops::gemm>({13, {no_rank(), no_rank()}, attributes().set("transB", 1)}, {"M, N"},
                        {"rank 2 0=M", "rank 2 0=N"});
  check_back<ops::gemm>({13, {in("M, K"), no_rank()}, attributes().set("transB", 1)}, {"M, N"},
                        {"", "rank 2 0=N 1=K"});
}

TEST_CASE("Gemm, Det, Einsum") {
  check<ops::gemm>({13, {in("M, K"), in("K, N"), in("N")}}, {"(M, N)"});
  check<ops::gemm>(
      {7, {in("K, M"), in("N, K"), in("M, 1")}, attributes().set("transA", 1).set("transB", 1)},
      {"(M, N)"});
  check<ops::gemm>({13, {no_rank(), in("K, N")}}, {"(?, N)"});
  check_error<ops::gemm>(
      {13, {in("M, 3"), in("4, N")}}, sod2::errc::inner_dims,
      "node 'node': tensor 'in1' axis 0: inner dimensions of a product do not agree (4 vs 3)");
  check_error<ops::gemm>({13, {in("M, 3, 1"), in("4, N")}}, sod2::errc::rank_mismatch,
                         "tensor 'in0': rank must be 2, not 3");
  check<ops::det>({11, {in("B, N, N")}}, {"(B)"});
  check<ops::einsum>(
      {12, {in("B, I, J"), in("B, J, K")}, attributes().set("equation", "bij, bjk -> bik")},
      {"(B, I, K)"});
  check<ops::einsum>({12, {in("A, B, I, J")}, attributes().set("equation", "...ij->...ji")},
                     {"(A, B, J, I)"});
  check<ops::einsum>({12, {in("I, J"), in("J")}, attributes().set("equation", "ij,j")}, {"(I)"});
  check<ops::einsum>({12, {in("N, N")}, attributes().set("equation", "ii->")}, {"()"});
  check<ops::einsum>({12, {no_rank(), in("J")}, attributes().set("equation", "ij,j->i")}, {"(?)"});
}

TEST_CASE("Conv: kernel, stride, pads, dilation, groups") {
  check<ops::conv>({11,
                    {in("N, 3, H, W"), in("64, 3, 7, 7")},
                    attributes().ints("strides", {2, 2}).ints("pads", {3, 3, 3, 3})},
                   {"(N, 64, floordiv(H - 1, 2) + 1, ceildiv(W, 2))"}, dtype::f32);
  check<ops::conv>({22,
                    {in("N, 8, H"), in("16, 4, 3"), in("16")},
                    attributes().set("group", 2).ints("dilations", {2})},
                   {"(N, 16, H - 4)"});
  check<ops::conv>({1,
                    {in("1, 1, 28, 28"), in("4, 1, 5, 5")},
                    attributes()
                        .ints("kernel_shape", {5, 5})
                        .set("auto_pad", "SAME_UPPER")
                        .ints("strides", {3, 2})},
                   {"(1, 4, 10, 14)"});
  check<ops::conv>(
      {11, {in("1, 1, 9, 9"), in("4, 1, 3, 3")}, attributes().set("auto_pad", "VALID")},
      {"(1, 4, 7, 7)"});
  // A weight that is not constant keeps its extent as an expression.
  check<ops::conv>({11, {in("N, C, H + 8"), in("M, C, K")}}, {"(N, M, H + 9 - K)"});
  check<ops::conv>({11, {no_rank(), in("4, 1, 3, 3")}}, {"(?, 4, ?, ?)"});
  check<ops::conv>({11, {in("0, 3, 8, 8"), in("4, 3, 3, 3")}}, {"(0, 4, 6, 6)"});
  check<ops::conv_integer>({10, {in("N, 3, H", dtype::u8), in("4, 3, 1", dtype::u8)}},
                           {"(N, 4, H)"}, dtype::i32);
  const auto scale = in(""), zero = in("", dtype::u8);
  check<ops::qlinear_conv>(
      {10,
       {in("N, 3, H", dtype::u8), scale, zero, in("4, 3, 1", dtype::u8), scale, zero, scale, zero}},
      {"(N, 4, H)"}, dtype::u8);
  check<ops::deform_conv>({19, {in("N, 3, 8, 8"), in("4, 3, 3, 3"), in("N, 18, 6, 6")}},
                          {"(N, 4, 6, 6)"});
}

TEST_CASE("Conv: errors") {
  check_error<ops::conv>({11, {in("N, 3, 8, 8"), in("4, 2, 3, 3")}}, sod2::errc::channels,
                         "node 'node': tensor 'in0' axis 1: channels do not agree (3 vs 2)");
  check_error<ops::conv>({11, {in("N, 4, 8"), in("3, 2, 3")}, attributes().set("group", 2)},
                         sod2::errc::channels,
                         "node 'node': tensor 'in1' axis 0: channels do not agree (3 vs 2 groups)");
  check_error<ops::conv>({11, {in("N, 3, 8, 8"), in("4, 3, 3")}}, sod2::errc::rank_mismatch,
                         "tensor 'in1': rank must be 4, not 3");
  check_error<ops::conv>({11, {in("N, 3, 3"), in("4, 3, 9")}}, sod2::errc::dim_mismatch,
                         "tensor 'in0' axis 2: window does not fit into the padded input (3 vs 9)");
  check_error<ops::conv>({11, {in("N, 3, 8"), in("4, 3, 3")}, attributes().ints("strides", {0})},
                         sod2::errc::bad_attribute, "attribute 'strides' must be positive");
  check_error<ops::conv>(
      {11, {in("N, 3, 8"), in("4, 3, 3")}, attributes().ints("pads", {1})},
      sod2::errc::bad_attribute,
      "attribute 'pads' must be a list of 2 integers, one for each axis it is about, not (1)");
}

TEST_CASE("Conv, backward: exact for stride 1 only") {
  check_back<ops::conv>(
      {11, {no_rank(), in("64, 3, 3, 3")}, attributes().ints("pads", {1, 1, 1, 1})},
      {"N, 64, H, W"}, {"rank 4 1=3 0=N 2=H 3=W"});
  check_back<ops::conv>({11, {no_rank(), in("64, 3, 3")}, attributes().ints("strides", {2})},
                        {"N, 64, H"}, {"rank 3 1=3 0=N"});
  check_back<ops::conv_transpose>(
      {11, {no_rank(), in("8, 4, 2")}, attributes().ints("strides", {2})}, {"N, 4, 2*L"},
      {"rank 3 1=8 0=N 2=L"});
  check_back<ops::conv>({11, {in("N, 3, H"), no_rank()}, attributes().ints("kernel_shape", {3})},
                        {"N, 64, H - 2"}, {"", "rank 3 0=64"});
  check_back<ops::max_pool>({12, {no_rank()}, attributes().ints("kernel_shape", {3})}, {"N, C, L"},
                            {"rank 3 0=N 1=C 2=L + 2"});
}

TEST_CASE("ConvTranspose") {
  check<ops::conv_transpose>(
      {11, {in("N, 8, H, W"), in("8, 4, 2, 2")}, attributes().ints("strides", {2, 2})},
      {"(N, 4, 2*H, 2*W)"});
  check<ops::conv_transpose>({11,
                              {in("N, 8, L"), in("8, 2, 3")},
                              attributes()
                                  .ints("strides", {2})
                                  .ints("pads", {1, 1})
                                  .ints("output_padding", {1})
                                  .set("group", 2)},
                             {"(N, 4, 2*L)"});
  check<ops::conv_transpose>(
      {1, {in("N, 8, L"), in("8, 4, 3")}, attributes().ints("output_shape", {17})}, {"(N, 4, 17)"});
  check<ops::conv_transpose>({11,
                              {in("N, 8, L"), in("8, 4, 3")},
                              attributes().ints("strides", {3}).set("auto_pad", "SAME_LOWER")},
                             {"(N, 4, 3*L)"});
}

TEST_CASE("pooling") {
  check<ops::max_pool>(
      {12,
       {in("N, C, H, W")},
       attributes().ints("kernel_shape", {3, 3}).ints("strides", {2, 2}).ints("pads", {1, 1, 1, 1}),
       2},
      {"(N, C, ceildiv(H, 2), ceildiv(W, 2))", "(N, C, ceildiv(H, 2), ceildiv(W, 2))"});
  check<ops::average_pool>(
      {19,
       {in("1, 1, 6")},
       attributes().ints("kernel_shape", {2}).ints("strides", {4}).set("ceil_mode", 1)},
      {"(1, 1, 2)"});
  // A window that would start in the trailing padding is dropped.
  check<ops::max_pool>(
      {12,
       {in("1, 1, 5")},
       attributes().ints("kernel_shape", {1}).ints("strides", {3}).set("ceil_mode", 1)},
      {"(1, 1, 2)"});
  check<ops::max_pool>({12,
                        {in("1, 1, 4")},
                        attributes()
                            .ints("kernel_shape", {2})
                            .ints("strides", {3})
                            .ints("pads", {0, 1})
                            .set("ceil_mode", 1)},
                       {"(1, 1, 2)"});
  check<ops::lp_pool>(
      {18, {in("N, C, 10")}, attributes().ints("kernel_shape", {3}).ints("dilations", {2})},
      {"(N, C, 6)"});
  check<ops::global_average_pool>({1, {in("N, C, H, W")}}, {"(N, C, 1, 1)"});
  check<ops::global_max_pool>({22, {in("N, C, L")}}, {"(N, C, 1)"});
  check<ops::max_unpool>({11,
                          {in("N, C, L"), in("N, C, L", dtype::i64)},
                          attributes().ints("kernel_shape", {2}).ints("strides", {2})},
                         {"(N, C, 2*L)"});
  check<ops::max_unpool>({11,
                          {in("N, C, L"), in("N, C, L", dtype::i64), vec("N, C, 9")},
                          attributes().ints("kernel_shape", {2})},
                         {"(N, C, 9)"});
  check<ops::max_roi_pool>(
      {1, {in("N, C, H, W"), in("R, 5")}, attributes().ints("pooled_shape", {7, 6})},
      {"(R, C, 7, 6)"});
  check<ops::roi_align>({16,
                         {in("N, C, H, W"), in("R, 4"), in("R", dtype::i64)},
                         attributes().set("output_height", 7)},
                        {"(R, C, 7, 1)"});
  check_error<ops::max_pool>({12, {in("N, C, H")}}, sod2::errc::missing_attribute,
                             "required attribute 'kernel_shape' is missing");
}

TEST_CASE("normalisations") {
  const auto c = in("C");
  check<ops::batch_normalization>({15, {in("N, C, H"), c, c, c, c}}, {"(N, C, H)"});
  check<ops::batch_normalization>(
      {14, {in("N, C, H"), c, c, c, c}, attributes().set("training_mode", 1), 3},
      {"(N, C, H)", "(C)", "(C)"});
  check<ops::layer_normalization>({17, {in("B, L, 64"), in("64"), in("64")}, {}, 3},
                                  {"(B, L, 64)", "(B, L, 1)", "(B, L, 1)"});
  check<ops::layer_normalization>(
      {17, {in("B, L, 64"), in("L, 64")}, attributes().set("axis", 1), 2},
      {"(B, L, 64)", "(B, 1, 1)"});
  check<ops::instance_normalization>({6, {in("N, C, H, W"), c, c}}, {"(N, C, H, W)"});
  check<ops::group_normalization>(
      {21, {in("N, 8, H"), in("8"), in("8")}, attributes().set("num_groups", 4)}, {"(N, 8, H)"});
  check<ops::softmax>({13, {in("N, C")}, attributes().set("axis", -2)}, {"(N, C)"});
  check<ops::log_softmax>({11, {in("N, C")}, attributes().set("axis", 2)}, {"(N, C)"});
  check_error<ops::softmax>({13, {in("N, C")}, attributes().set("axis", 2)}, sod2::errc::axis_range,
                            "tensor 'in0': axis 2 is out of range for rank 2");
  check_error<ops::batch_normalization>(
      {15, {in("N, 8"), in("4"), in("4"), in("4"), in("4")}}, sod2::errc::channels,
      "node 'node': tensor 'in1' axis 0: channels do not agree (4 vs 8)");
  check_error<ops::group_normalization>(
      {21, {in("N, 9"), in("9"), in("9")}, attributes().set("num_groups", 4)},
      sod2::errc::divisibility,
      "node 'node': tensor 'in0' axis 1: dimension is not divisible (9 vs 4 groups)");
  check_back<ops::batch_normalization>({15, {no_rank(), c, c, c, c}}, {"N, _, H"},
                                       {"rank 3 0=N 2=H 1=C"});
  check_back<ops::instance_normalization>({6, {no_rank(), no_rank(), no_rank()}}, {"N, 8, H"},
                                          {"rank 3 0=N 1=8 2=H 1=8", "rank 1 0=8", "rank 1 0=8"});
}

TEST_CASE("recurrent layers") {
  check<ops::lstm>({14, {in("T, B, I"), in("1, 4*H, I"), in("1, 4*H, H")}, {}, 3},
                   {"(T, 1, B, H)", "(1, B, H)", "(1, B, H)"});
  check<ops::gru>({14,
                   {in("T, B, 8"), in("2, 48, 8"), in("2, 48, 16")},
                   attributes().set("hidden_size", 16).set("direction", "bidirectional"),
                   2},
                  {"(T, 2, B, 16)", "(2, B, 16)"});
  check<ops::rnn>(
      {14, {in("B, T, 8"), in("1, 16, 8"), in("1, 16, 16")}, attributes().set("layout", 1), 2},
      {"(B, T, 1, 16)", "(B, 1, 16)"});
  check_back<ops::lstm>({14, {no_rank(), in("1, 32, 5"), in("1, 32, 8")}}, {"T, 1, B, 8"},
                        {"rank 3 2=5 0=T 1=B"});
  check_error<ops::lstm>(
      {14, {in("T, B, 7"), in("1, 32, 5"), in("1, 32, 8")}}, sod2::errc::inner_dims,
      "node 'node': tensor 'in1' axis 2: inner dimensions of a product do not agree (5 vs 7)");
}

TEST_CASE("attention") {
  check<ops::attention>({23, {in("B, 8, S, 64"), in("B, 8, T, 64"), in("B, 8, T, 32")}},
                        {"(B, 8, S, 32)"});
  check<ops::attention>(
      {23,
       {in("B, S, 512"), in("B, T, 128"), in("B, T, 64"), absent(), in("B, 2, P, 64"),
        in("B, 2, P, 32")},
       attributes().set("q_num_heads", 8).set("kv_num_heads", 2),
       4},
      {"(B, S, 256)", "(B, 2, P + T, 64)", "(B, 2, P + T, 32)", "(B, 8, S, P + T)"});
  check<ops::rotary_embedding>({23, {in("B, S, 64"), in("M, 32"), in("M, 32")}}, {"(B, S, 64)"});
  check<ops::linear_attention>({27,
                                {in("B, T, 64"), in("B, T, 64"), in("B, T, 64")},
                                attributes().set("q_num_heads", 4).set("kv_num_heads", 4),
                                2},
                               {"(B, T, 64)", "(B, 4, 16, 16)"});
  check<ops::causal_conv_with_state>({27, {in("B, C, L"), in("C, 1, 4")}, {}, 2},
                                     {"(B, C, L)", "(B, C, 3)"});
}
