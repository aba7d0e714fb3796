// Sliding windows: the attributes and geometry that convolutions and pools share, and padded rows.
#pragma once

#include <cstdint>
#include <cstring>

#include <sod2/kernel/std/support.hpp>

namespace sod2::kernel_detail {

enum class auto_pad : std::uint8_t { notset, same_upper, same_lower, valid };

/// Decoded attributes; `rank` spatial axes, at most 3, stand in the LAST `rank` of three entries,
/// so that 1-D and 2-D windows are 3-D windows with leading ones.
struct window_attributes {
  int rank = 0;  // 0: not stated by any attribute
  bool has_kernel = false;
  i64 kernel[3] = {1, 1, 1};
  i64 stride[3] = {1, 1, 1};
  i64 dilation[3] = {1, 1, 1};
  i64 pad_begin[3] = {0, 0, 0};
  i64 pad_end[3] = {0, 0, 0};
  auto_pad padding = auto_pad::notset;
};

inline status decode_window(const prepare_args& args, int rank, window_attributes& w) {
  const auto kernel = args.attributes.integers("kernel_shape");
  const auto stride = args.attributes.integers("strides");
  const auto dilation = args.attributes.integers("dilations");
  const auto pads = args.attributes.integers("pads");
  for (std::size_t n : {kernel.size(), stride.size(), dilation.size(), pads.size() / 2})
    if (n > 0) rank = static_cast<int>(n);
  if (rank > 3) return error(errc::unsupported, "windows have at most 3 spatial axes");
  w.rank = rank;
  const auto fits = [&](std::span<const i64> v, int times) {
    return v.empty() || static_cast<int>(v.size()) == rank * times;
  };
  if (!fits(kernel, 1) || !fits(stride, 1) || !fits(dilation, 1) || !fits(pads, 2))
    return error(errc::bad_attribute, "window attributes differ in rank");
  w.has_kernel = !kernel.empty();
  for (int i = 0; i < rank; ++i) {
    const int to = 3 - rank + i;
    const std::size_t at = static_cast<std::size_t>(i);
    if (!kernel.empty()) w.kernel[to] = kernel[at];
    if (!stride.empty()) w.stride[to] = stride[at];
    if (!dilation.empty()) w.dilation[to] = dilation[at];
    if (!pads.empty()) {
      w.pad_begin[to] = pads[at];
      w.pad_end[to] = pads[at + static_cast<std::size_t>(rank)];
    }
    if (w.kernel[to] < 1 || w.stride[to] < 1 || w.dilation[to] < 1)
      return error(errc::bad_attribute, "window attribute below 1");
  }
  const std::string_view mode = args.attributes.string("auto_pad", "NOTSET");
  w.padding = mode == "SAME_UPPER"   ? auto_pad::same_upper
              : mode == "SAME_LOWER" ? auto_pad::same_lower
              : mode == "VALID"      ? auto_pad::valid
                                     : auto_pad::notset;
  return {};
}

/// A window over concrete dims; entries 0..2 are depth, height, width.
struct window {
  i64 in[3] = {1, 1, 1};
  i64 out[3] = {1, 1, 1};
  i64 kernel[3] = {1, 1, 1};
  i64 stride[3] = {1, 1, 1};
  i64 dilation[3] = {1, 1, 1};
  i64 pad[3] = {0, 0, 0};      // before the first element
  i64 pad_end[3] = {0, 0, 0};  // as stated, not as used

  i64 in_count() const { return in[0] * in[1] * in[2]; }
  i64 out_count() const { return out[0] * out[1] * out[2]; }
  i64 taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

/// Dims of x and y are N, C, spatial...; kernel dims are taken from `kernel` unless the attributes
/// state them. False when the rank is not supported.
inline bool resolve_window(const window_attributes& a, const tensor_view& x, const tensor_view& y,
                           std::span<const i64> kernel, window& w) {
  const int rank = static_cast<int>(x.rank) - 2;
  if (rank < 1 || rank > 3 || y.rank != x.rank || (a.rank != 0 && a.rank != rank)) return false;
  for (int i = 0; i < rank; ++i) {
    const int to = 3 - rank + i;
    w.in[to] = x.dims[i + 2];
    w.out[to] = y.dims[i + 2];
    w.kernel[to] = kernel.empty() ? a.kernel[to] : kernel[static_cast<std::size_t>(i)];
  }
  for (int i = 0; i < 3; ++i) {
    w.stride[i] = a.stride[i];
    w.dilation[i] = a.dilation[i];
    w.pad[i] = a.pad_begin[i];
    w.pad_end[i] = a.pad_end[i];
    if (a.padding == auto_pad::valid) w.pad[i] = w.pad_end[i] = 0;
    if (a.padding == auto_pad::same_upper || a.padding == auto_pad::same_lower) {
      const i64 reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
      i64 total = (w.out[i] - 1) * w.stride[i] + reach - w.in[i];
      if (total < 0) total = 0;
      w.pad[i] = a.padding == auto_pad::same_upper ? total / 2 : total - total / 2;
      w.pad_end[i] = total - w.pad[i];
    }
  }
  return true;
}

/// Floats of padded rows that `window_rows` keeps per thread, and outputs of one call.
inline constexpr i64 window_buffer_floats = 16 * 1024;
inline constexpr i64 window_max_columns = 256;
inline constexpr i64 window_max_taps = 225;

/// Columns of a chunk, or 0 when the window is too large for the buffer.
inline i64 window_columns(const window& w, i64 lanes) {
  if (w.taps() > window_max_taps || w.kernel[0] != 1 || w.out[0] != w.in[0] || w.stride[0] != 1 ||
      w.pad[0] != 0 || w.stride[2] > 8)
    return 0;
  const i64 rows = (w.kernel[1] - 1) * w.dilation[1] + 1;
  const i64 reach = (w.kernel[2] - 1) * w.dilation[2];
  i64 columns = (window_buffer_floats / rows - reach - 2) / w.stride[2];
  columns = columns / lanes * lanes;
  return columns < window_max_columns ? columns : window_max_columns;
}

/// Walks one plane: `row(oy, ox, n, taps)` gets pointers to the first element of every tap for
/// output columns [ox, ox + n); what lies outside the input reads as `fill`. Whole vectors may be
/// read: rows are padded to a multiple of `lanes` outputs. Every input row is copied once per
/// chunk.
template <class Row>
void window_rows(const window& w, const float* plane, float fill, i64 columns, i64 lanes,
                 float* buffer, const Row& row) {
  const i64 ring = (w.kernel[1] - 1) * w.dilation[1] + 1;
  const float* taps[window_max_taps];
  for (i64 ox = 0; ox < w.out[2]; ox += columns) {
    const i64 n = w.out[2] - ox < columns ? w.out[2] - ox : columns;
    const i64 padded = align_up(n, lanes);
    const i64 width = padded * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1;
    const i64 x0 = ox * w.stride[2] - w.pad[2];
    const i64 lo = x0 < 0 ? (-x0 < width ? -x0 : width) : 0;
    i64 hi = w.in[2] - x0;
    hi = hi < lo ? lo : hi > width ? width : hi;
    i64 next = -w.pad[1];  // first input row that is not in the ring
    for (i64 oy = 0; oy < w.out[1]; ++oy) {
      const i64 y0 = oy * w.stride[1] - w.pad[1];
      if (next < y0) next = y0;
      for (; next < y0 + ring; ++next) {
        float* to = buffer + floor_mod(next, ring) * width;
        if (next < 0 || next >= w.in[1]) {
          for (i64 i = 0; i < width; ++i) to[i] = fill;
          continue;
        }
        for (i64 i = 0; i < lo; ++i) to[i] = fill;
        if (hi > lo)
          std::memcpy(to + lo, plane + next * w.in[2] + x0 + lo,
                      static_cast<std::size_t>(hi - lo) * 4);
        for (i64 i = hi; i < width; ++i) to[i] = fill;
      }
      i64 t = 0;
      for (i64 ky = 0; ky < w.kernel[1]; ++ky) {
        const float* from = buffer + floor_mod(y0 + ky * w.dilation[1], ring) * width;
        for (i64 kx = 0; kx < w.kernel[2]; ++kx) taps[t++] = from + kx * w.dilation[2];
      }
      row(oy, ox, n, taps);
    }
  }
}

/// Calls f(tap, input offset) for every tap of output (z, y, x) that lies inside the input.
template <class F>
void for_each_tap(const window& w, i64 oz, i64 oy, i64 ox, const F& f) {
  i64 tap = 0;
  for (i64 kz = 0; kz < w.kernel[0]; ++kz) {
    const i64 z = oz * w.stride[0] - w.pad[0] + kz * w.dilation[0];
    for (i64 ky = 0; ky < w.kernel[1]; ++ky) {
      const i64 y = oy * w.stride[1] - w.pad[1] + ky * w.dilation[1];
      for (i64 kx = 0; kx < w.kernel[2]; ++kx, ++tap) {
        const i64 x = ox * w.stride[2] - w.pad[2] + kx * w.dilation[2];
        if (z >= 0 && z < w.in[0] && y >= 0 && y < w.in[1] && x >= 0 && x < w.in[2])
          f(tap, (z * w.in[1] + y) * w.in[2] + x);
      }
    }
  }
}

}  // namespace sod2::kernel_detail
