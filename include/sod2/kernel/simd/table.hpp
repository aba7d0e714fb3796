// What one instruction set provides: microkernels behind plain function pointers. Private to
// kernel/; everything above works through `kernel_row` and `tile_call`.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sod2/kernel/tile.hpp>

namespace sod2 {

/// Columns of a packed block of the right operand, and its depth: 144 is a multiple of every
/// target's panel width and no multiple of a cache page, 512 * 144 floats stay in L2.
inline constexpr std::int64_t gemm_block_columns = 144;
inline constexpr std::int64_t gemm_block_depth = 128;

enum class gemm_init : std::uint8_t { zero, accumulate, row_bias, column_bias };

/// C[m][n] = init + A[m][k] * B[k][n], row-major A and C. Panel p of B holds columns
/// [p * nr, (p + 1) * nr): element (k, j) stands at b[p * b_panel + k * b_step + j - p * nr].
/// Columns of a panel past n, up to the next multiple of the vector length, must be readable.
struct gemm_block {
  const float* a = nullptr;
  std::int64_t lda = 0;
  const float* b = nullptr;
  std::int64_t b_step = 0;
  std::int64_t b_panel = 0;
  /// If given, row k of B begins at b_rows[k] + b_first, and b, b_step and b_panel do not count.
  const float* const* b_rows = nullptr;
  std::int64_t b_first = 0;
  float* c = nullptr;
  std::int64_t ldc = 0;
  std::int64_t m = 0, n = 0, k = 0;
  gemm_init init = gemm_init::zero;
  const float* bias = nullptr;  // m values (row_bias) or n values (column_bias)
};

/// One row of a depthwise convolution: out[x] = bias + sum over taps of weight * in[tap][x * stride].
/// With stride 2, 2 * n floats of every tap must be readable. The same holds for max_row.
struct depthwise_row {
  float* out = nullptr;
  std::int64_t n = 0;
  std::int64_t stride = 1;  // 1 or 2
  const float* const* in = nullptr;  // per tap: first input element
  const float* weights = nullptr;
  std::int64_t taps = 0;
  float bias = 0;
};

/// out[x] = max over taps of in[tap][x * stride]; NaN is kept.
struct max_row {
  float* out = nullptr;
  std::int64_t n = 0;
  std::int64_t stride = 1;
  const float* const* in = nullptr;
  std::int64_t taps = 0;
};

enum class reduction : std::uint8_t { sum, mean, max, min, prod, l1, l2, log_sum, log_sum_exp, sum_square };

/// `src[i]` points to n elements, or to one where bit i of `scalars` is set (binary float32 only).
using tile_function = void (*)(const tile_instruction&, void* dst, const void* const* src,
                               unsigned scalars, std::int64_t n);

struct simd_table {
  const char* name = "";
  std::int64_t lanes = 1;  // floats per vector
  std::int64_t mr = 1;     // rows of the register tile
  std::int64_t nr = 1;     // columns of the register tile, divides gemm_block_columns
  void (*gemm)(const gemm_block&) = nullptr;
  void (*depthwise)(const depthwise_row&) = nullptr;
  void (*max_rows)(const max_row&) = nullptr;
  /// Reduces n contiguous floats; n = 0 gives the neutral element. Only sum, max, min, sum_square, l1.
  float (*reduce)(reduction, const float* x, std::int64_t n) = nullptr;
  /// acc[i] = acc[i] op x[i].
  void (*accumulate)(reduction, float* acc, const float* x, std::int64_t n) = nullptr;
  /// y[i] = exp(x[i] - shift); returns the sum. y may be x.
  float (*exp_sum)(const float* x, float shift, float* y, std::int64_t n) = nullptr;
  /// y[i] = x[i] * scale + shift. y may be x.
  void (*affine)(const float* x, float scale, float shift, float* y, std::int64_t n) = nullptr;
  /// y[i] = (x[i] - mean) * scale * gamma[i] + beta[i]; beta may be null.
  void (*normalize)(const float* x, float mean, float scale, const float* gamma, const float* beta,
                    float* y, std::int64_t n) = nullptr;
  /// sum of (x[i] - mean)^2.
  float (*square_deviation)(const float* x, float mean, std::int64_t n) = nullptr;
  tile_function tile[static_cast<std::size_t>(tile_op::count_)] = {};  // float32, null: generic
};

}  // namespace sod2
