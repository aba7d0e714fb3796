// Every standard kernel by operator name and version.
#pragma once

#include <limits>
#include <string_view>

#include <sod2/kernel/std/algebra.hpp>
#include <sod2/kernel/std/attention.hpp>
#include <sod2/kernel/std/convolution.hpp>
#include <sod2/kernel/std/dynamic.hpp>
#include <sod2/kernel/std/image.hpp>
#include <sod2/kernel/std/loss.hpp>
#include <sod2/kernel/std/movement.hpp>
#include <sod2/kernel/std/normalization.hpp>
#include <sod2/kernel/std/pooling.hpp>
#include <sod2/kernel/std/product.hpp>
#include <sod2/kernel/std/quantization.hpp>
#include <sod2/kernel/std/random.hpp>
#include <sod2/kernel/std/recurrent.hpp>
#include <sod2/kernel/std/reduction.hpp>
#include <sod2/kernel/std/resize.hpp>
#include <sod2/kernel/std/sequence.hpp>
#include <sod2/kernel/std/signal.hpp>
#include <sod2/kernel/std/text.hpp>

namespace sod2::kernel_detail {

using prepare_function = result<kernel_state> (*)(const prepare_args&);
using workspace_function = dim (*)(dim_context&, const void*, std::span<const operand_info>,
                                   std::span<const operand_info>);

constexpr kernel_row kernel_of(std::string_view name, int since, prepare_function prepare,
                               kernel_run run, std::uint32_t in_place = 0,
                               workspace_function workspace = nullptr, bool epilogue = false) {
  kernel_row row;
  row.name = name;
  row.since = since;
  row.prepare = prepare;
  row.run = run;
  row.in_place = in_place;
  row.workspace_bytes = workspace;
  row.takes_epilogue = epilogue;
  return row;
}
constexpr kernel_row until(kernel_row row, int last) {
  row.until = last;
  return row;
}

inline constexpr kernel_row kernel_rows[] = {
    // products and convolutions
    kernel_of("MatMul", 1, prepare_matmul, run_matmul, 0, product_bytes, true),
    kernel_of("Gemm", 1, prepare_gemm, run_gemm, 0, product_bytes, true),
    kernel_of("Conv", 1, prepare_conv, run_conv, 0, conv_bytes, true),
    kernel_of("ConvTranspose", 1, prepare_conv_transpose, run_conv_transpose, 0,
              conv_transpose_bytes, true),
    // pools
    kernel_of("MaxPool", 1, prepare_window_pool, run_max_pool, 0, pool_bytes),
    kernel_of("AveragePool", 1, prepare_window_pool, run_average_pool, 0, pool_bytes),
    kernel_of("LpPool", 1, prepare_window_pool, run_lp_pool),
    kernel_of("GlobalAveragePool", 1, prepare_pool, run_global_pool<global_pool::average>),
    kernel_of("GlobalMaxPool", 1, prepare_pool, run_global_pool<global_pool::max>),
    kernel_of("GlobalLpPool", 1, prepare_pool, run_global_pool<global_pool::lp>),
    // reductions
    kernel_of("ReduceSum", 1, prepare_reduce, run_reduce<reduction::sum>),
    kernel_of("ReduceMean", 1, prepare_reduce, run_reduce<reduction::mean>),
    kernel_of("ReduceMax", 1, prepare_reduce, run_reduce<reduction::max>),
    kernel_of("ReduceMin", 1, prepare_reduce, run_reduce<reduction::min>),
    kernel_of("ReduceProd", 1, prepare_reduce, run_reduce<reduction::prod>),
    kernel_of("ReduceL1", 1, prepare_reduce, run_reduce<reduction::l1>),
    kernel_of("ReduceL2", 1, prepare_reduce, run_reduce<reduction::l2>),
    kernel_of("ReduceLogSum", 1, prepare_reduce, run_reduce<reduction::log_sum>),
    kernel_of("ReduceLogSumExp", 1, prepare_reduce, run_reduce<reduction::log_sum_exp>),
    kernel_of("ReduceSumSquare", 1, prepare_reduce, run_reduce<reduction::sum_square>),
    kernel_of("ArgMax", 1, prepare_arg, run_arg<true>),
    kernel_of("ArgMin", 1, prepare_arg, run_arg<false>),
    // normalisation
    kernel_of("Softmax", 1, prepare_softmax, run_softmax<softmax_kind::softmax>, 1),
    kernel_of("LogSoftmax", 1, prepare_softmax, run_softmax<softmax_kind::log_softmax>, 1),
    kernel_of("Hardmax", 1, prepare_softmax, run_softmax<softmax_kind::hardmax>, 1),
    kernel_of("InstanceNormalization", 1, prepare_normalization, run_instance_normalization, 1),
    kernel_of("LayerNormalization", 1, prepare_normalization, run_layer_normalization, 1),
    kernel_of("LRN", 1, prepare_normalization, run_lrn),
    kernel_of("GroupNormalization", 18, prepare_group_normalization, run_group_normalization, 1),
    kernel_of("RMSNormalization", 23, prepare_normalization, run_rms_normalization, 1),
    kernel_of("LpNormalization", 1, prepare_lp_normalization, run_lp_normalization, 1),
    kernel_of("BatchNormalization", 14, prepare_batch_statistics, run_batch_statistics),
    kernel_of("MeanVarianceNormalization", 9, prepare_mean_variance, run_mean_variance, 1),
    // data movement
    kernel_of("Identity", 1, prepare_move, run_flat_copy, 1),
    kernel_of("Reshape", 1, prepare_move, run_flat_copy, 1),
    kernel_of("Squeeze", 1, prepare_move, run_flat_copy, 1),
    kernel_of("Unsqueeze", 1, prepare_move, run_flat_copy, 1),
    kernel_of("Flatten", 1, prepare_move, run_flat_copy, 1),
    kernel_of("Transpose", 1, prepare_transpose, run_transpose_axes),
    kernel_of("Concat", 1, prepare_concat, run_concat),
    kernel_of("Split", 1, prepare_split, run_split),
    kernel_of("Slice", 1, prepare_slice, run_slice),
    kernel_of("Expand", 8, prepare_move, run_expand),
    kernel_of("Tile", 1, prepare_move, run_tile_operator),
    kernel_of("DepthToSpace", 1, prepare_block, run_depth_to_space),
    kernel_of("SpaceToDepth", 1, prepare_block, run_space_to_depth),
    kernel_of("Gather", 1, prepare_axis, run_gather),
    kernel_of("GatherElements", 11, prepare_axis, run_gather_elements),
    kernel_of("GatherND", 11, prepare_gather_nd, run_gather_nd),
    kernel_of("ScatterElements", 11, prepare_scatter, run_scatter_elements, 1),
    until(kernel_of("Scatter", 9, prepare_scatter, run_scatter_elements, 1), 10),
    kernel_of("ScatterND", 11, prepare_scatter, run_scatter_nd, 1),
    kernel_of("BitCast", 26, prepare_any, run_bit_cast, 1),
    kernel_of("TensorScatter", 24, prepare_tensor_scatter, run_tensor_scatter, 1),
    kernel_of("Pad", 1, prepare_pad, run_pad),
    kernel_of("Resize", 10, prepare_resize, run_resize),
    until(kernel_of("Upsample", 7, prepare_resize, run_resize), 9),
    // values
    kernel_of("Shape", 1, prepare_shape, run_shape),
    kernel_of("Size", 1, prepare_any, run_size),
    kernel_of("ConstantOfShape", 9, prepare_constant_of_shape, run_constant_of_shape),
    kernel_of("Trilu", 14, prepare_trilu, run_trilu, 1),
    kernel_of("CumSum", 11, prepare_cumsum, run_cumulative<tile_op::add>, 1),
    kernel_of("CumProd", 26, prepare_cumsum, run_cumulative<tile_op::mul>, 1),
    kernel_of("Range", 11, prepare_any, run_range),
    kernel_of("OneHot", 9, prepare_one_hot, run_one_hot),
    kernel_of("TopK", 1, prepare_topk, run_topk),
    kernel_of("NonZero", 9, prepare_any, run_non_zero),
    // images
    kernel_of("RoiAlign", 10, prepare_roi, run_roi_align),
    kernel_of("MaxRoiPool", 1, prepare_roi, run_max_roi_pool),
    kernel_of("GridSample", 16, prepare_grid_sample, run_grid_sample),
    kernel_of("AffineGrid", 20, prepare_affine_grid, run_affine_grid),
    kernel_of("MaxUnpool", 9, prepare_unpool, run_unpool),
    kernel_of("CenterCropPad", 18, prepare_center, run_center),
    kernel_of("Col2Im", 18, prepare_col2im, run_col2im),
    kernel_of("DeformConv", 19, prepare_deform, run_deform, 0, deform_bytes),
    // quantisation
    kernel_of("QuantizeLinear", 10, prepare_quantize, run_quantize),
    kernel_of("DequantizeLinear", 10, prepare_dequantize, run_dequantize),
    kernel_of("DynamicQuantizeLinear", 11, prepare_dynamic_quantize, run_dynamic_quantize),
    kernel_of("MatMulInteger", 10, prepare_matmul_integer, run_matmul_integer),
    kernel_of("QLinearMatMul", 10, prepare_qlinear_matmul, run_qlinear_matmul),
    kernel_of("ConvInteger", 10, prepare_integer_conv<1>, run_conv_integer),
    kernel_of("QLinearConv", 10, prepare_integer_conv<3>, run_qlinear_conv, 0, qlinear_conv_bytes),
    // algebra
    kernel_of("Einsum", 12, prepare_einsum, run_einsum),
    kernel_of("Det", 11, prepare_det, run_det, 0, det_bytes),
    kernel_of("ReverseSequence", 10, prepare_reverse, run_reverse),
    kernel_of("EyeLike", 9, prepare_eye, run_eye),
    // attention
    kernel_of("Attention", 23, prepare_attention, run_attention, 0, attention_bytes),
    kernel_of("RotaryEmbedding", 23, prepare_rotary, run_rotary),
    // losses
    kernel_of("NegativeLogLikelihoodLoss", 12, prepare_loss, run_loss<false>),
    kernel_of("SoftmaxCrossEntropyLoss", 12, prepare_loss, run_loss<true>),
    // signals
    kernel_of("DFT", 17, prepare_dft, run_dft, 0, dft_bytes),
    kernel_of("STFT", 17, prepare_stft, run_stft, 0, stft_bytes),
    kernel_of("HannWindow", 17, prepare_window_function, run_hann),
    kernel_of("HammingWindow", 17, prepare_window_function, run_hamming),
    kernel_of("BlackmanWindow", 17, prepare_window_function, run_blackman),
    kernel_of("MelWeightMatrix", 17, prepare_any, run_mel_weights),
    // text
    kernel_of("TfIdfVectorizer", 9, prepare_tf_idf, run_tf_idf),
    kernel_of("StringNormalizer", 10, prepare_string_normalizer, run_string_normalizer),
    kernel_of("StringConcat", 20, prepare_string_concat, run_string_concat),
    kernel_of("Cast", 9, prepare_cast_text, run_cast_text),
    kernel_of("CastLike", 15, prepare_cast_text, run_cast_text),
    // random numbers
    kernel_of("RandomUniform", 1, prepare_random_uniform, run_random_uniform),
    kernel_of("RandomUniformLike", 1, prepare_random_uniform, run_random_uniform),
    kernel_of("RandomNormal", 1, prepare_random_normal, run_random_normal),
    kernel_of("RandomNormalLike", 1, prepare_random_normal, run_random_normal),
    kernel_of("Bernoulli", 15, prepare_random, run_bernoulli),
    kernel_of("Multinomial", 7, prepare_random, run_multinomial),
    kernel_of("Dropout", 12, prepare_dropout, run_dropout),
    // sizes that only data decides
    kernel_of("Compress", 9, prepare_optional_axis, run_compress),
    kernel_of("Unique", 11, prepare_optional_axis, run_unique, 0, unique_bytes),
    kernel_of("NonMaxSuppression", 10, prepare_suppression, run_suppression, 0, suppression_bytes),
    // recurrent layers
    kernel_of("LSTM", 1, prepare_recurrent<recurrent_kind::lstm>, run_recurrent, 0,
              recurrent_bytes),
    kernel_of("GRU", 1, prepare_recurrent<recurrent_kind::gru>, run_recurrent, 0, recurrent_bytes),
    kernel_of("RNN", 1, prepare_recurrent<recurrent_kind::rnn>, run_recurrent, 0, recurrent_bytes),
};

}  // namespace sod2::kernel_detail
