// Sampling of images and volumes: RoiAlign, MaxRoiPool, GridSample, AffineGrid, MaxUnpool,
// CenterCropPad, Col2Im, DeformConv.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include <sod2/kernel/std/reduction.hpp>
#include <sod2/kernel/std/window.hpp>

namespace sod2::kernel_detail {

// ---- RoiAlign (10, 16, 22), MaxRoiPool (1, 22)
// ---------------------------------------------------

struct roi_state {
  bool maximum = false;
  bool half_pixel = false;
  i64 ratio = 0;
  float scale = 1;
};
inline result<kernel_state> prepare_roi(const prepare_args& args) {
  if (!is_float(input_type(args, 0)) || input_type(args, 0) != input_type(args, 1))
    return error(errc::type_mismatch, "regions need floating-point inputs of one type");
  const std::string_view mode = args.attributes.string("mode", "avg");
  // Before version 16 there was no shift by half a pixel.
  const std::string_view transform =
      args.attributes.string("coordinate_transformation_mode",
                             args.since_version >= 16 ? "half_pixel" : "output_half_pixel");
  if (mode != "avg" && mode != "max") return error(errc::bad_attribute, "mode is avg or max");
  if (transform != "half_pixel" && transform != "output_half_pixel")
    return error(errc::bad_attribute,
                 "coordinate_transformation_mode is half_pixel or output_half_pixel");
  return own(new (std::nothrow) roi_state{
      mode == "max", transform == "half_pixel", args.attributes.integer("sampling_ratio", 0),
      static_cast<float>(args.attributes.real("spatial_scale", 1.0))});
}

/// Four corners and their weights around a point; no weight beyond one pixel outside.
template <class S>
struct bilinear_point {
  i64 at[4] = {0, 0, 0, 0};
  S weight[4] = {0, 0, 0, 0};
  bilinear_point(S y, S x, i64 height, i64 width) {
    if (!(y >= -1 && y <= static_cast<S>(height) && x >= -1 && x <= static_cast<S>(width))) return;
    const auto split = [](S& v, i64 n, i64& lo, i64& hi) {
      if (v < 0) v = 0;
      lo = static_cast<i64>(v);
      hi = lo + 1;
      if (lo >= n - 1) {
        lo = hi = n - 1;
        v = static_cast<S>(lo);
      }
      return v - static_cast<S>(lo);
    };
    i64 y0, y1, x0, x1;
    const S fy = split(y, height, y0, y1), fx = split(x, width, x0, x1);
    at[0] = y0 * width + x0;
    at[1] = y0 * width + x1;
    at[2] = y1 * width + x0;
    at[3] = y1 * width + x1;
    weight[0] = (1 - fy) * (1 - fx);
    weight[1] = (1 - fy) * fx;
    weight[2] = fy * (1 - fx);
    weight[3] = fy * fx;
  }
};

/// X (N, C, H, W), rois (R, 4) as x1, y1, x2, y2, batch_indices (R) -> (R, C, h, w). The maximum is
/// taken over the weighted corners of all samples, as the reference implementation defines it.
inline errc run_roi_align(const kernel_args& args) {
  const auto& s = state_of<roi_state>(args);
  const tensor_view &x = args.inputs[0], &rois = args.inputs[1], &batch = args.inputs[2],
                    &y = args.outputs[0];
  if (x.rank != 4 || y.rank != 4 || rois.rank != 2 || rois.dims[1] != 4) return errc::rank_mismatch;
  const i64 count = y.dims[0], channels = y.dims[1], out_h = y.dims[2], out_w = y.dims[3];
  const i64 height = x.dims[2], width = x.dims[3], plane = height * width;
  if (rois.dims[0] != count || batch.count() != count) return errc::dim_mismatch;
  for (i64 r = 0; r < count; ++r) {
    const i64 b = integer_at(batch, r);
    if (b < 0 || b >= x.dims[0]) return errc::index_range;
  }
  if (y.count() == 0) return errc::ok;
  if (plane == 0) return errc::value_range;
  return with_real(x.type, [&]<class T>() {
    using S = typename accumulator<T>::type;
    parallel_parts(args.pool, count * out_h, 1, [&](i64, i64 begin, i64 end) {
      for (i64 row = begin; row < end; ++row) {
        const i64 r = row / out_h, py = row % out_h;
        const T* roi = rois.as<const T>() + r * 4;
        const S scale = static_cast<S>(s.scale), offset = s.half_pixel ? S(0.5) : S(0);
        const S x0 = widen(roi[0]) * scale - offset, y0 = widen(roi[1]) * scale - offset;
        S w = widen(roi[2]) * scale - offset - x0, h = widen(roi[3]) * scale - offset - y0;
        if (!s.half_pixel) {
          if (w < 1) w = 1;
          if (h < 1) h = 1;
        }
        const S bin_h = h / static_cast<S>(out_h), bin_w = w / static_cast<S>(out_w);
        // A bound keeps the conversion defined and a nonsensical region finite.
        const auto samples = [&](S bin) {
          if (s.ratio > 0) return s.ratio;
          const S n = std::ceil(bin);
          return !(n > 0) ? i64{0} : n > S(4096) ? i64{4096} : static_cast<i64>(n);
        };
        const i64 grid_h = samples(bin_h), grid_w = samples(bin_w);
        const S divisor = static_cast<S>(grid_h * grid_w > 1 ? grid_h * grid_w : 1);
        const T* image = x.as<const T>() + integer_at(batch, r) * channels * plane;
        for (i64 px = 0; px < out_w; ++px)
          for (i64 c = 0; c < channels; ++c) {
            S sum = 0;
            bool first = true;
            for (i64 gy = 0; gy < grid_h; ++gy)
              for (i64 gx = 0; gx < grid_w; ++gx) {
                const S yy = y0 + static_cast<S>(py) * bin_h +
                             (static_cast<S>(gy) + S(0.5)) * bin_h / static_cast<S>(grid_h);
                const S xx = x0 + static_cast<S>(px) * bin_w +
                             (static_cast<S>(gx) + S(0.5)) * bin_w / static_cast<S>(grid_w);
                const bilinear_point<S> p(yy, xx, height, width);
                for (int k = 0; k < 4; ++k) {
                  const S v = p.weight[k] * widen(image[c * plane + p.at[k]]);
                  if (!s.maximum)
                    sum += v;
                  else if (first || v > sum)
                    sum = v;
                  first = false;
                }
              }
            y.as<T>()[((r * channels + c) * out_h + py) * out_w + px] =
                narrow<T>(s.maximum ? sum : sum / divisor);
          }
      }
    });
  });
}

/// X (N, C, H, W), rois (R, 5) as batch, x1, y1, x2, y2 (inclusive) -> (R, C, h, w); a bin without
/// pixels gives 0.
inline errc run_max_roi_pool(const kernel_args& args) {
  const auto& s = state_of<roi_state>(args);
  const tensor_view &x = args.inputs[0], &rois = args.inputs[1], &y = args.outputs[0];
  if (x.rank != 4 || y.rank != 4 || rois.rank != 2 || rois.dims[1] != 5) return errc::rank_mismatch;
  const i64 channels = y.dims[1], out_h = y.dims[2], out_w = y.dims[3];
  const i64 size[2] = {x.dims[2], x.dims[3]}, out[2] = {out_h, out_w};
  for (i64 r = 0; r < rois.dims[0]; ++r) {
    const double b = real_at(rois, r * 5);
    if (!(b >= 0 && b < static_cast<double>(x.dims[0]))) return errc::index_range;
  }
  return with_real(x.type, [&]<class T>() {
    using S = typename accumulator<T>::type;
    parallel_parts(args.pool, y.dims[0] * channels, 1, [&](i64, i64 begin, i64 end) {
      for (i64 p = begin; p < end; ++p) {
        const T* roi = rois.as<const T>() + p / channels * 5;
        const T* plane =
            x.as<const T>() +
            (static_cast<i64>(widen(roi[0])) * channels + p % channels) * size[0] * size[1];
        i64 first[2];
        double bin[2];
        for (int a = 0; a < 2; ++a) {  // height, width
          const double lo =
              std::round(static_cast<double>(widen(roi[2 - a])) * static_cast<double>(s.scale));
          const double hi =
              std::round(static_cast<double>(widen(roi[4 - a])) * static_cast<double>(s.scale));
          const double limit = 1e15;  // keeps the conversion defined
          first[a] = static_cast<i64>(lo < -limit ? -limit : lo > limit ? limit : lo);
          bin[a] = (hi - lo + 1 > 1 ? hi - lo + 1 : 1) / static_cast<double>(out[a]);
        }
        const auto edge = [&](int a, double v) {
          const double at = v + static_cast<double>(first[a]);
          return at < 0                              ? i64{0}
                 : at > static_cast<double>(size[a]) ? size[a]
                                                     : static_cast<i64>(at);
        };
        for (i64 py = 0; py < out_h; ++py)
          for (i64 px = 0; px < out_w; ++px) {
            const i64 y0 = edge(0, std::floor(static_cast<double>(py) * bin[0]));
            const i64 y1 = edge(0, std::ceil(static_cast<double>(py + 1) * bin[0]));
            const i64 x0 = edge(1, std::floor(static_cast<double>(px) * bin[1]));
            const i64 x1 = edge(1, std::ceil(static_cast<double>(px + 1) * bin[1]));
            S best = 0;
            bool any = false;
            for (i64 iy = y0; iy < y1; ++iy)
              for (i64 ix = x0; ix < x1; ++ix) {
                const S v = widen(plane[iy * size[1] + ix]);
                if (!any || v > best) best = v;
                any = true;
              }
            y.as<T>()[(p * out_h + py) * out_w + px] = narrow<T>(best);
          }
      }
    });
  });
}

// ---- GridSample (16, 20, 22)
// ---------------------------------------------------------------------

struct grid_state {
  enum class sampling : std::uint8_t { nearest, linear, cubic } mode = sampling::linear;
  enum class border : std::uint8_t { zeros, border, reflection } padding = border::zeros;
  bool align_corners = false;
};
inline result<kernel_state> prepare_grid_sample(const prepare_args& args) {
  if (!is_float(input_type(args, 0)))
    return error(errc::type_mismatch, "GridSample works on floats");
  grid_state s;
  const std::string_view mode = args.attributes.string("mode", "linear");
  const std::string_view padding = args.attributes.string("padding_mode", "zeros");
  if (mode == "nearest")
    s.mode = grid_state::sampling::nearest;
  else if (mode == "cubic" || mode == "bicubic")
    s.mode = grid_state::sampling::cubic;
  else if (mode != "linear" && mode != "bilinear")
    return error(errc::bad_attribute, "mode is nearest, linear or cubic");
  if (padding == "border")
    s.padding = grid_state::border::border;
  else if (padding == "reflection")
    s.padding = grid_state::border::reflection;
  else if (padding != "zeros")
    return error(errc::bad_attribute, "padding_mode is zeros, border or reflection");
  s.align_corners = args.attributes.integer("align_corners", 0) != 0;
  return own(new (std::nothrow) grid_state(s));
}

/// Reflects v into [lo, hi], as often as needed.
template <class S>
S reflect_into(S v, S lo, S hi) {
  const S range = hi - lo;
  if (!(range > 0)) return lo;
  S over = std::fmod(std::fabs(v - lo), 2 * range);
  if (!(over >= 0)) over = 0;  // not a number
  return over <= range ? lo + over : hi - (over - range);
}

/// The taps of one axis; index -1 reads as zero.
template <class S>
struct grid_taps {
  int count = 1;
  i64 at[4] = {};
  S weight[4] = {1, 0, 0, 0};

  grid_taps() = default;
  grid_taps(const grid_state& s, S v, i64 n) {
    const S size = static_cast<S>(n);
    const S lo = s.align_corners ? S(0) : S(-0.5);
    const S hi = s.align_corners ? size - 1 : size - S(0.5);
    v = s.align_corners ? (v + 1) / 2 * (size - 1) : ((v + 1) * size - 1) / 2;
    if (s.mode == grid_state::sampling::nearest) v = std::nearbyint(v);
    if (s.padding == grid_state::border::border)
      v = v > 0 ? (v < size - 1 ? v : size - 1) : S(0);
    else if (s.padding == grid_state::border::reflection && !(v >= lo && v <= hi))
      v = reflect_into(v, lo, hi);
    // Far outside, or not a number: all taps miss.
    if (!(v > -4)) v = -4;
    if (v > size + 4) v = size + 4;
    const S floor = std::floor(v), f = v - floor;
    i64 first = static_cast<i64>(floor);
    if (s.mode == grid_state::sampling::linear) {
      count = 2;
      weight[0] = 1 - f;
      weight[1] = f;
    } else if (s.mode == grid_state::sampling::cubic) {
      count = 4;
      --first;
      constexpr S a = S(-0.75);
      const auto near = [&](S t) { return ((a + 2) * t - (a + 3)) * t * t + 1; };
      const auto far = [&](S t) { return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a; };
      weight[0] = far(f + 1);
      weight[1] = near(f);
      weight[2] = near(1 - f);
      weight[3] = far(2 - f);
    }
    for (int k = 0; k < count; ++k) {
      i64 i = first + k;
      if (i < 0 || i >= n) {
        if (s.padding == grid_state::border::zeros)
          i = -1;
        else if (s.padding == grid_state::border::border)
          i = i < 0 ? 0 : n - 1;
        else
          i = static_cast<i64>(std::nearbyint(reflect_into(static_cast<S>(i), lo, hi)));
        if (i >= n) i = n - 1;
      }
      at[k] = i;
    }
  }
};

/// X (N, C, D...), grid (N, D'..., rank) with coordinates in [-1, 1], last axis first -> (N, C,
/// D'...), up to three spatial axes.
inline errc run_grid_sample(const kernel_args& args) {
  const auto& s = state_of<grid_state>(args);
  const tensor_view &x = args.inputs[0], &grid = args.inputs[1], &y = args.outputs[0];
  const int rank = static_cast<int>(x.rank) - 2;
  if (rank < 1 || rank > 3 || grid.rank != x.rank || grid.dims[rank + 1] != rank)
    return errc::unsupported;
  const i64 channels = y.dims[1], points = product_of(y, 2, y.rank);
  const i64 plane = product_of(x, 2, x.rank);
  if (y.count() == 0) return errc::ok;
  if (plane == 0) return errc::value_range;
  return with_real(x.type, [&]<class T>() {
    using S = typename accumulator<T>::type;
    const auto coordinate = [&](i64 i) {
      return grid.type == x.type ? static_cast<S>(widen(grid.as<const T>()[i]))
                                 : static_cast<S>(real_at(grid, i));
    };
    parallel_parts(
        args.pool, y.dims[0] * points, 2000 / channels + 1, [&](i64, i64 begin, i64 end) {
          for (i64 p = begin; p < end; ++p) {
            const i64 n = p / points, at = p % points;
            grid_taps<S> axis[3];  // depth, height, width; missing axes have one tap at 0
            i64 extent[3] = {1, 1, 1};
            for (int d = 0; d < rank; ++d) {
              const int to = 3 - rank + d;
              extent[to] = x.dims[d + 2];
              axis[to] = grid_taps<S>(s, coordinate(p * rank + rank - 1 - d), extent[to]);
            }
            for (i64 c = 0; c < channels; ++c) {
              const T* from = x.as<const T>() + (n * channels + c) * plane;
              S sum = 0;
              for (int i = 0; i < axis[0].count; ++i)
                for (int j = 0; j < axis[1].count; ++j)
                  for (int k = 0; k < axis[2].count; ++k) {
                    const i64 a = axis[0].at[i], b = axis[1].at[j], e = axis[2].at[k];
                    if (a < 0 || b < 0 || e < 0) continue;
                    sum += axis[0].weight[i] * axis[1].weight[j] * axis[2].weight[k] *
                           widen(from[(a * extent[1] + b) * extent[2] + e]);
                  }
              y.as<T>()[(n * channels + c) * points + at] = narrow<T>(sum);
            }
          }
        });
  });
}

// ---- AffineGrid (20)
// -----------------------------------------------------------------------------

struct affine_grid_state {
  bool align_corners = false;
};
inline result<kernel_state> prepare_affine_grid(const prepare_args& args) {
  if (!is_float(input_type(args, 0)))
    return error(errc::type_mismatch, "AffineGrid works on floats");
  return own(new (std::nothrow)
                 affine_grid_state{args.attributes.integer("align_corners", 0) != 0});
}
/// theta (N, r, r + 1) -> (N, spatial dims..., r): theta times (coordinates, last axis first; 1).
inline errc run_affine_grid(const kernel_args& args) {
  const bool align = state_of<affine_grid_state>(args).align_corners;
  const tensor_view &theta = args.inputs[0], &y = args.outputs[0];
  const int rank = static_cast<int>(y.rank) - 2;
  if ((rank != 2 && rank != 3) || theta.rank != 3 || theta.dims[1] != rank ||
      theta.dims[2] != rank + 1 || theta.dims[0] != y.dims[0])
    return errc::dim_mismatch;
  const i64 points = product_of(y, 1, y.rank - 1);
  return with_real(y.type, [&]<class T>() {
    using S = typename accumulator<T>::type;
    parallel_parts(args.pool, y.dims[0] * points, 4000, [&](i64, i64 begin, i64 end) {
      for (i64 p = begin; p < end; ++p) {
        const T* m = theta.as<const T>() + p / points * rank * (rank + 1);
        S base[3] = {};
        i64 rest = p % points;
        for (int d = rank - 1; d >= 0; --d) {
          const i64 n = y.dims[d + 1], i = rest % n;
          rest /= n;
          base[rank - 1 - d] =
              align ? (n > 1 ? static_cast<S>(2 * i) / static_cast<S>(n - 1) - 1 : S(0))
                    : static_cast<S>(2 * i + 1) / static_cast<S>(n) - 1;
        }
        for (int k = 0; k < rank; ++k) {
          S sum = widen(m[k * (rank + 1) + rank]);
          for (int j = 0; j < rank; ++j)
            sum += static_cast<S>(widen(m[k * (rank + 1) + j])) * base[j];
          y.as<T>()[p * rank + k] = narrow<T>(sum);
        }
      }
    });
  });
}

// ---- MaxUnpool (9, 11, 22)
// -----------------------------------------------------------------------

struct unpool_state {
  window_attributes window;
};
inline result<kernel_state> prepare_unpool(const prepare_args& args) {
  if (args.inputs.size() < 2) return error(errc::arity, "MaxUnpool needs two inputs");
  if (!movable(input_type(args, 0)) || input_type(args, 1) != dtype::i64)
    return error(errc::type_mismatch, "MaxUnpool does not support these element types");
  auto* s = new (std::nothrow) unpool_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  const int rank = args.inputs[0].rank > 2 ? args.inputs[0].rank - 2 : 0;
  SOD2_TRY(decode_window(args, rank, s->window));
  return owner;
}
/// Scatters X by indices into the unpooled tensor; a larger output_shape keeps it at its origin.
inline errc run_unpool(const kernel_args& args) {
  const window_attributes& w = state_of<unpool_state>(args).window;
  const tensor_view &x = args.inputs[0], &indices = args.inputs[1], &y = args.outputs[0];
  const int rank = static_cast<int>(x.rank);
  if (rank < 3 || rank > 5 || y.rank != x.rank || w.rank != rank - 2) return errc::unsupported;
  if (indices.count() != x.count()) return errc::dim_mismatch;
  i64 inner[5] = {}, stride[5] = {};
  dense_strides(y.shape(), stride);
  i64 total = 1;
  for (int d = 0; d < rank; ++d) {
    inner[d] = x.dims[d];
    if (d >= 2) {
      const int a = 3 - w.rank + d - 2;
      inner[d] = (x.dims[d] - 1) * w.stride[a] + w.kernel[a] - w.pad_begin[a] - w.pad_end[a];
    }
    total *= inner[d];
  }
  for (i64 i = 0; i < indices.count(); ++i) {
    i64 at = indices.as<const i64>()[i];
    if (at < 0 || at >= total) return errc::index_range;
    for (int d = rank - 1; d >= 0; --d) {
      if (at % inner[d] >= y.dims[d]) return errc::index_range;
      at /= inner[d];
    }
  }
  if (y.count() == 0) return errc::ok;
  std::memset(y.data, 0, idx(y.count()) * bytes_of(y.type));
  return with_size(x.type, [&]<class T>() {
    for (i64 i = 0; i < x.count(); ++i) {
      i64 at = indices.as<const i64>()[i], to = 0;
      for (int d = rank - 1; d >= 0; --d) {
        to += at % inner[d] * stride[d];
        at /= inner[d];
      }
      y.as<T>()[to] = x.as<const T>()[i];
    }
    return errc::ok;
  });
}

// ---- CenterCropPad (18)
// --------------------------------------------------------------------------

inline result<kernel_state> prepare_center(const prepare_args& args) {
  if (!movable(input_type(args, 0)))
    return error(errc::type_mismatch, "CenterCropPad does not support this element type");
  return own(new (std::nothrow) empty_state);
}
/// The centre of x in the centre of y; where a difference is odd, the odd element is at the end.
inline errc run_center(const kernel_args& args) {
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const int rank = static_cast<int>(x.rank);
  if (rank > max_rank || y.rank != x.rank) return errc::unsupported;
  if (y.count() == 0) return errc::ok;
  std::memset(y.data, 0, idx(y.count()) * bytes_of(y.type));
  if (x.count() == 0) return errc::ok;
  i64 from_step[max_rank] = {}, to_step[max_rank] = {}, n[max_rank] = {};
  dense_strides(x.shape(), from_step);
  dense_strides(y.shape(), to_step);
  i64 from = 0, to = 0, count = 1;
  for (int d = 0; d < rank; ++d) {
    const i64 more = x.dims[d] - y.dims[d];
    if (more > 0)
      from += more / 2 * from_step[d];
    else
      to += -more / 2 * to_step[d];
    n[d] = more > 0 ? y.dims[d] : x.dims[d];
    count *= n[d];
  }
  return with_size(y.type, [&]<class T>() {
    i64 at[max_rank] = {};
    for (i64 i = 0; i < count; ++i) {
      y.as<T>()[to] = x.as<const T>()[from];
      for (int d = rank - 1; d >= 0; --d) {
        from += from_step[d];
        to += to_step[d];
        if (++at[d] < n[d]) break;
        from -= n[d] * from_step[d];
        to -= n[d] * to_step[d];
        at[d] = 0;
      }
    }
    return errc::ok;
  });
}

// ---- Col2Im (18)
// ---------------------------------------------------------------------------------

struct col2im_state {
  i64 stride[max_rank] = {}, dilation[max_rank] = {}, begin[max_rank] = {}, end[max_rank] = {};
};
inline result<kernel_state> prepare_col2im(const prepare_args& args) {
  if (!is_float(input_type(args, 0))) return error(errc::type_mismatch, "Col2Im works on floats");
  auto* s = new (std::nothrow) col2im_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  for (int d = 0; d < max_rank; ++d) s->stride[d] = s->dilation[d] = 1;
  const auto strides = args.attributes.integers("strides");
  const auto dilations = args.attributes.integers("dilations");
  const auto pads = args.attributes.integers("pads");
  if (strides.size() > idx(max_rank) || dilations.size() > idx(max_rank) ||
      pads.size() > 2 * idx(max_rank) || pads.size() % 2 != 0)
    return error(errc::bad_attribute, "too many spatial axes");
  for (std::size_t d = 0; d < strides.size(); ++d) s->stride[d] = strides[d];
  for (std::size_t d = 0; d < dilations.size(); ++d) s->dilation[d] = dilations[d];
  for (std::size_t d = 0; d < pads.size() / 2; ++d) {
    s->begin[d] = pads[d];
    s->end[d] = pads[d + pads.size() / 2];
  }
  for (int d = 0; d < max_rank; ++d)
    if (s->stride[d] < 1 || s->dilation[d] < 1)
      return error(errc::bad_attribute, "window attribute below 1");
  return owner;
}
/// (N, C * block, L) -> (N, C, image...): every pixel sums the block elements that cover it.
inline errc run_col2im(const kernel_args& args) {
  const auto& s = state_of<col2im_state>(args);
  const tensor_view &x = args.inputs[0], &block = args.inputs[2], &y = args.outputs[0];
  const int rank = static_cast<int>(y.rank) - 2;
  if (rank < 1 || rank > max_rank - 2 || x.rank != 3 || block.count() != rank)
    return errc::unsupported;
  i64 kernel[max_rank] = {}, steps[max_rank] = {};
  i64 taps = 1, length = 1;
  for (int d = 0; d < rank; ++d) {
    kernel[d] = integer_at(block, d);
    if (kernel[d] < 1) return errc::value_range;
    const i64 room = y.dims[d + 2] + s.begin[d] + s.end[d] - s.dilation[d] * (kernel[d] - 1) - 1;
    steps[d] = room < 0 ? 0 : room / s.stride[d] + 1;
    taps *= kernel[d];
    length *= steps[d];
  }
  if (x.dims[1] != y.dims[1] * taps || x.dims[2] != length) return errc::dim_mismatch;
  const i64 pixels = product_of(y, 2, y.rank);
  return with_real(y.type, [&]<class T>() {
    using S = typename accumulator<T>::type;
    parallel_parts(args.pool, y.count(), 20000 / taps + 1, [&](i64, i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) {
        const i64 plane = i / pixels;  // n * C + c
        i64 at[max_rank] = {}, rest = i % pixels;
        for (int d = rank - 1; d >= 0; --d) {
          at[d] = rest % y.dims[d + 2] + s.begin[d];
          rest /= y.dims[d + 2];
        }
        S sum = 0;
        for (i64 t = 0; t < taps; ++t) {
          i64 tap = t, column = 0, scale = 1;
          bool inside = true;
          for (int d = rank - 1; d >= 0 && inside; --d) {
            const i64 from = at[d] - tap % kernel[d] * s.dilation[d];
            tap /= kernel[d];
            inside = from >= 0 && from % s.stride[d] == 0 && from / s.stride[d] < steps[d];
            column += from / s.stride[d] * scale;
            scale *= steps[d];
          }
          if (inside) sum += widen(x.as<const T>()[(plane * taps + t) * length + column]);
        }
        y.as<T>()[i] = narrow<T>(sum);
      }
    });
  });
}

// ---- DeformConv (19, 22)
// -------------------------------------------------------------------------

struct deform_state {
  window_attributes window;
  i64 group = 1, offset_group = 1;
};
inline result<kernel_state> prepare_deform(const prepare_args& args) {
  if (args.inputs.size() < 3) return error(errc::arity, "DeformConv needs X, W and offset");
  if (!is_float(input_type(args, 0)))
    return error(errc::type_mismatch, "DeformConv works on floats");
  for (std::size_t i = 1; i < args.inputs.size(); ++i)
    if (has_input(args, i) && input_type(args, i) != input_type(args, 0))
      return error(errc::type_mismatch, "inputs of DeformConv differ in type");
  auto* s = new (std::nothrow) deform_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  s->group = args.attributes.integer("group", 1);
  s->offset_group = args.attributes.integer("offset_group", 1);
  if (s->group < 1 || s->offset_group < 1) return error(errc::bad_attribute, "group below 1");
  const int rank = args.inputs[0].rank > 2 ? args.inputs[0].rank - 2 : 0;
  SOD2_TRY(decode_window(args, rank, s->window));
  return owner;
}
/// The sampled inputs of one output pixel.
inline dim deform_bytes(dim_context& context, const void*, std::span<const operand_info> inputs,
                        std::span<const operand_info>) {
  if (inputs.size() < 2 || inputs[1].dims.size() < 3) return context.constant(0);
  dim n = context.constant(8);
  for (std::size_t d = 1; d < inputs[1].dims.size(); ++d) n = context.mul(n, inputs[1].dims[d]);
  return context.align_up(n, 64);
}

/// Interpolates between the two nearest elements of every axis; what lies outside is zero.
template <class T, class S>
S sample_point(const window& w, const T* plane, const S* at) {
  i64 first[3];
  S weight[3][2];
  for (int d = 0; d < 3; ++d) {
    if (!(at[d] > -1 && at[d] < static_cast<S>(w.in[d]))) return 0;
    const S floor = std::floor(at[d]);
    first[d] = static_cast<i64>(floor);
    weight[d][1] = at[d] - floor;
    weight[d][0] = 1 - weight[d][1];
  }
  S sum = 0;
  for (int corner = 0; corner < 8; ++corner) {
    const int k[3] = {corner >> 2 & 1, corner >> 1 & 1, corner & 1};
    S product = 1;
    i64 offset = 0;
    bool inside = true;
    for (int d = 0; d < 3; ++d) {
      const i64 i = first[d] + k[d];
      inside = inside && i >= 0 && i < w.in[d];
      product *= weight[d][k[d]];
      offset = offset * w.in[d] + i;
    }
    if (inside && product != 0) sum += product * static_cast<S>(widen(plane[offset]));
  }
  return sum;
}

/// X (N, C, D...), W (M, C / group, k...), offset (N, offset_group * taps * rank, D'...), B (M),
/// mask (N, offset_group * taps, D'...): every tap reads at its own displaced point.
inline errc run_deform(const kernel_args& args) {
  const auto& s = state_of<deform_state>(args);
  const tensor_view &x = args.inputs[0], &weights = args.inputs[1], &y = args.outputs[0];
  window w;
  if (x.rank < 3 || weights.rank != x.rank) return errc::rank_mismatch;
  if (!resolve_window(s.window, x, y, weights.shape().subspan(2), w)) return errc::unsupported;
  const int rank = static_cast<int>(x.rank) - 2;
  const i64 channels = x.dims[1], features = y.dims[1], depth = weights.dims[1];
  if (channels != depth * s.group || features % s.group != 0 || weights.dims[0] != features ||
      channels % s.offset_group != 0)
    return errc::channels;
  const i64 taps = w.taps(), plane = w.in_count(), pixels = w.out_count();
  const bool has_bias = has_input(args, 3), masked = has_input(args, 4);
  if (args.inputs[2].count() != x.dims[0] * s.offset_group * taps * rank * pixels ||
      (masked && args.inputs[4].count() != x.dims[0] * s.offset_group * taps * pixels) ||
      (has_bias && args.inputs[3].count() != features))
    return errc::dim_mismatch;
  if (y.count() == 0) return errc::ok;
  if (args.workspace == nullptr && depth > 0) return errc::unsupported;
  const i64 wide = depth * taps, many = features / s.group;
  return with_real(x.type, [&]<class T>() {
    using S = typename accumulator<T>::type;
    parallel_parts(args.pool, y.dims[0] * s.group * pixels, 1, [&](i64 part, i64 begin, i64 end) {
      S* const column = reinterpret_cast<S*>(args.workspace + part * align_up(wide * 8, 64));
      for (i64 r = begin; r < end; ++r) {
        const i64 pixel = r % pixels, group = r / pixels % s.group, n = r / pixels / s.group;
        const i64 out[3] = {pixel / w.out[2] / w.out[1], pixel / w.out[2] % w.out[1],
                            pixel % w.out[2]};
        for (i64 c = 0; c < depth; ++c) {
          const i64 channel = group * depth + c;
          const i64 set = n * s.offset_group + channel / (channels / s.offset_group);
          for (i64 t = 0; t < taps; ++t) {
            const i64 tap[3] = {t / w.kernel[2] / w.kernel[1], t / w.kernel[2] % w.kernel[1],
                                t % w.kernel[2]};
            S at[3] = {};
            for (int d = 0; d < 3; ++d) {
              at[d] = static_cast<S>(out[d] * w.stride[d] - w.pad[d] + tap[d] * w.dilation[d]);
              if (const int axis = d - (3 - rank); axis >= 0)
                at[d] += widen(
                    args.inputs[2]
                        .template as<const T>()[((set * taps + t) * rank + axis) * pixels + pixel]);
            }
            S v = sample_point<T, S>(w, x.as<const T>() + (n * channels + channel) * plane, at);
            if (masked)
              v *= widen(args.inputs[4].template as<const T>()[(set * taps + t) * pixels + pixel]);
            column[c * taps + t] = v;
          }
        }
        for (i64 m = group * many; m < (group + 1) * many; ++m) {
          S sum = has_bias ? static_cast<S>(widen(args.inputs[3].template as<const T>()[m])) : S(0);
          const T* row = weights.as<const T>() + m * wide;
          for (i64 k = 0; k < wide; ++k) sum += column[k] * static_cast<S>(widen(row[k]));
          y.as<T>()[(n * features + m) * pixels + pixel] = narrow<T>(sum);
        }
      }
    });
  });
}

}  // namespace sod2::kernel_detail
