// Conv with stride 1, where nothing is unfolded: taps read a padded strip of input rows.
//
// A strip holds, per channel, rows of `width` = outputs of a row + (kernel - 1) * dilation floats.
// At position p = row * width + column every tap is equally far away whatever p is, so the right
// operand of the product is one pointer for each (channel, tap). The positions behind the last
// output of a row are computed and dropped: kernel - 1 of `width`.
#pragma once

#include <cstdint>
#include <cstring>

#include <sod2/expr/domain.hpp>
#include <sod2/kernel/std/product.hpp>
#include <sod2/kernel/std/window.hpp>

namespace sod2::kernel_detail {

struct convolution_call {
  const simd_table* simd = nullptr;
  window w;
  i64 batch = 0, channels = 0, features = 0, group = 1;
  const float *x = nullptr, *weights = nullptr, *bias = nullptr;
  float* y = nullptr;
  const bound_epilogue* epilogue = nullptr;
  thread_pool_ref pool{};
  float* workspace = nullptr;
};

/// Outputs that a strip has room for, if the image has as many: padding is copied once for them.
inline constexpr i64 strip_positions = 4 * gemm_block_columns;
/// Rows of one product; its block stays in L1 on the way to the output.
inline constexpr i64 strip_features = 64;
inline constexpr i64 strip_slack = 64;  // floats behind the last plane that vectors may touch

/// Floats that a thread needs: the strip, a block of the product, a pointer per (channel, tap).
/// `channels` of a group; `rows` of outputs; `width` of a strip; `reach`: rows that the kernel
/// spans beyond the first.
template <class D>
typename D::value_type strip_floats(D& d, typename D::value_type channels,
                                    typename D::value_type rows, typename D::value_type width,
                                    i64 reach, i64 taps) {
  const auto plane = d.add(d.min(d.add(d.constant(strip_positions), width), d.mul(rows, width)),
                           d.mul(width, d.constant(reach)));
  const auto pointers = d.mul(channels, d.constant(taps * 2));
  const auto all = d.add(d.add(d.mul(channels, plane), pointers),
                         d.constant(strip_slack + strip_features * gemm_block_columns + 15));
  return d.mul(d.floordiv(all, 16), d.constant(16));
}

/// A window as strips see it. Of one spatial axis the elements are rows of one column: nothing is
/// dropped then.
struct strip_window {
  i64 in_rows, in_columns, out_rows, out_columns;
  i64 kernel_rows, kernel_columns, row_dilation, column_dilation, row_pad, column_pad;

  strip_window(const window& w, bool upright) {
    const int r = upright ? 2 : 1, c = upright ? 1 : 2;
    in_rows = w.in[r], in_columns = w.in[c];
    out_rows = w.out[r], out_columns = w.out[c];
    kernel_rows = w.kernel[r], kernel_columns = w.kernel[c];
    row_dilation = w.dilation[r], column_dilation = w.dilation[c];
    row_pad = w.pad[r], column_pad = w.pad[c];
  }
  i64 width() const { return out_columns + (kernel_columns - 1) * column_dilation; }
  i64 reach() const { return (kernel_rows - 1) * row_dilation; }
};

/// Copies `rows` rows of a channel from row `first` of the padded image on.
inline void fill_strip(const strip_window& s, const float* channel, i64 first, i64 rows,
                       float* to) {
  const i64 width = s.width();
  i64 from = s.row_pad - first, until = s.row_pad - first + s.in_rows;  // rows that hold input
  from = from < 0 ? 0 : from > rows ? rows : from;
  until = until < from ? from : until > rows ? rows : until;
  i64 lo = s.column_pad < 0 ? 0 : s.column_pad, hi = s.column_pad + s.in_columns;
  lo = lo > width ? width : lo;
  hi = hi < lo ? lo : hi > width ? width : hi;
  const float* row = channel + (first + from - s.row_pad) * s.in_columns;
  std::memset(to, 0, idx(from * width) * 4);
  if (lo == 0 && hi == width && s.in_columns == width) {
    std::memcpy(to + from * width, row, idx((until - from) * width) * 4);
  } else {
    for (i64 r = from; r < until; ++r, row += s.in_columns) {
      float* const line = to + r * width;
      for (i64 i = 0; i < lo; ++i) line[i] = 0;
      std::memcpy(line + lo, row + lo - s.column_pad, idx(hi - lo) * 4);
      for (i64 i = hi; i < width; ++i) line[i] = 0;
    }
  }
  std::memset(to + until * width, 0, idx((rows - until) * width) * 4);
}

inline void run_strips(const convolution_call& c, const strip_window& s) {
  const simd_table& simd = *c.simd;
  const i64 features = c.features / c.group, channels = c.channels / c.group;
  const i64 taps = s.kernel_rows * s.kernel_columns, depth = channels * taps;
  const i64 pixels = s.out_rows * s.out_columns, in_plane = s.in_rows * s.in_columns;
  if (c.batch * c.features * pixels == 0) return;
  const i64 width = s.width(), reach = s.reach();
  i64 height = ceil_div(strip_positions, width);  // rows of outputs in a strip
  if (height > s.out_rows) height = s.out_rows;
  const i64 strips = ceil_div(s.out_rows, height), plane = (height + reach) * width;
  const i64 threads = c.pool.parallel_for != nullptr && c.pool.threads > 1 ? c.pool.threads : 1;
  i64 rows = features;
  if (threads > 1 && c.batch * c.group * strips < 4 * threads) {
    rows = align_up(ceil_div(features, 2 * threads), simd.mr);
    if (rows > features) rows = features;
  }
  const i64 chunks = ceil_div(features, rows), step_k = depth_step(depth);
  integer_domain integers;
  const i64 scratch = strip_floats(integers, channels, s.out_rows, width, reach, taps);
  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(depth) *
                       static_cast<double>(height * s.out_columns);
  const i64 grain = flops > 1e6 ? 1 : static_cast<i64>(1e6 / (flops + 1)) + 1;
  parallel_parts(
      c.pool, c.batch * c.group * strips * chunks, grain, [&](i64 part, i64 begin, i64 end) {
        // Pointers first: the workspace is aligned for them, and their floats are even in number.
        auto** const sources = reinterpret_cast<const float**>(c.workspace + part * scratch);
        float* const block = c.workspace + part * scratch + 2 * depth;
        float* const strip = block + strip_features * gemm_block_columns;
        for (i64 k = 0; k < depth; ++k) {
          const i64 tap = k % taps;
          sources[k] = strip + k / taps * plane + tap / s.kernel_columns * s.row_dilation * width +
                       tap % s.kernel_columns * s.column_dilation;
        }
        std::memset(strip + channels * plane, 0, strip_slack * 4);
        i64 filled = -1;
        for (i64 u = begin; u < end; ++u) {
          const i64 chunk = u % chunks, at = u / chunks;
          const i64 y0 = at % strips * height, g = at / strips % c.group, n = at / strips / c.group;
          const i64 here = s.out_rows - y0 < height ? s.out_rows - y0 : height;
          if (filled != at) {
            const float* x = c.x + (n * c.channels + g * channels) * in_plane;
            for (i64 k = 0; k < channels; ++k)
              fill_strip(s, x + k * in_plane, y0, here + reach, strip + k * plane);
            filled = at;
          }
          const i64 last = g * features + (chunk + 1) * rows;
          const i64 feature_end = last < (g + 1) * features ? last : (g + 1) * features;
          const i64 positions = (here - 1) * width + s.out_columns;
          for (i64 p0 = 0; p0 < positions; p0 += gemm_block_columns) {
            gemm_block b;
            b.n = positions - p0 < gemm_block_columns ? positions - p0 : gemm_block_columns;
            b.b_first = p0;
            for (i64 f = g * features + chunk * rows; f < feature_end; f += strip_features) {
              b.m = feature_end - f < strip_features ? feature_end - f : strip_features;
              float* const y = c.y + (n * c.features + f) * pixels + y0 * s.out_columns;
              const i64 y_at = y - c.y;
              // Where no position is dropped the product writes to the output itself.
              const bool whole = width == s.out_columns || p0 % width + b.n <= s.out_columns;
              const i64 first = p0 / width * s.out_columns + p0 % width;
              b.c = whole ? y + first : block;
              b.ldc = whole ? pixels : gemm_block_columns;
              b.bias = c.bias != nullptr ? c.bias + f : nullptr;
              for (i64 k0 = 0; k0 == 0 || k0 < depth; k0 += step_k) {
                b.k = depth - k0 < step_k ? depth - k0 : step_k;
                b.a = c.weights + f * depth + k0;
                b.lda = depth;
                b.b_rows = sources + k0;
                b.init = k0 > 0              ? gemm_init::accumulate
                         : b.bias != nullptr ? gemm_init::row_bias
                                             : gemm_init::zero;
                simd.gemm(b);
              }
              if (whole) {
                if (c.epilogue != nullptr)
                  c.epilogue->apply_rows(y_at + first, b.m, pixels, b.n, b.c);
                continue;
              }
              for (i64 p = p0; p < p0 + b.n;) {
                const i64 row = p / width, column = p % width, rest = p0 + b.n - p;
                const i64 run = s.out_columns - column < rest ? s.out_columns - column : rest;
                const i64 to = row * s.out_columns + column;
                for (i64 i = 0; i < b.m && run > 0; ++i)
                  std::memcpy(y + i * pixels + to, block + i * gemm_block_columns + p - p0,
                              idx(run) * 4);
                if (run > 0 && c.epilogue != nullptr)
                  c.epilogue->apply_rows(y_at + to, b.m, pixels, run, y + to);
                p += width - column;
              }
            }
          }
        }
      });
}

}  // namespace sod2::kernel_detail
