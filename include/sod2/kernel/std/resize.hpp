// Resize (10, 11, 13, 18, 19) and Upsample (7, 9): every mode over any axes, row by row.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include <sod2/kernel/std/product.hpp>

namespace sod2::kernel_detail {

enum class resize_mode : std::uint8_t { nearest, linear, cubic };
enum class resize_coordinates : std::uint8_t {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  tf_half_pixel_for_nn,
  tf_crop_and_resize,
};
enum class resize_nearest : std::uint8_t {
  round_prefer_floor,
  round_prefer_ceil,
  floor,
  ceil,
  simple,  // Resize-10: ceil when shrinking, floor when growing
};

struct resize_state {
  resize_mode mode = resize_mode::nearest;
  resize_coordinates coordinates = resize_coordinates::half_pixel;
  resize_nearest nearest = resize_nearest::round_prefer_floor;
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  int policy = 0;  // keep_aspect_ratio_policy: 0 stretch, 1 not_larger, 2 not_smaller
  double extrapolation = 0;
  int axis_count = -1;
  i64 axes[max_rank] = {};
  int scale_input = 2, size_input = 3;
  int scale_count = 0;  // Upsample-7 only
  double scales[max_rank] = {};
};

inline result<kernel_state> prepare_resize(const prepare_args& args) {
  auto* s = new (std::nothrow) resize_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  const auto& a = args.attributes;
  const std::string_view mode = a.string("mode", "nearest");
  if (mode == "linear" || mode == "bilinear" || mode == "trilinear")
    s->mode = resize_mode::linear;
  else if (mode == "cubic")
    s->mode = resize_mode::cubic;
  else if (mode != "nearest")
    return error(errc::bad_attribute, "unknown Resize mode");
  if (args.since_version < 11) {
    s->coordinates = resize_coordinates::asymmetric;
    s->nearest = resize_nearest::simple;
    s->scale_input = 1;
    s->size_input = -1;
    const attribute_view scales = a("scales");
    if (scales.kind == attribute_kind::reals) {
      if (scales.reals.size() > static_cast<std::size_t>(max_rank)) return error(errc::unsupported);
      s->scale_count = static_cast<int>(scales.reals.size());
      for (std::size_t i = 0; i < scales.reals.size(); ++i)
        s->scales[i] = static_cast<double>(scales.reals[i]);
    }
    return owner;
  }
  const std::string_view c = a.string("coordinate_transformation_mode", "half_pixel");
  if (c == "half_pixel_symmetric")
    s->coordinates = resize_coordinates::half_pixel_symmetric;
  else if (c == "pytorch_half_pixel")
    s->coordinates = resize_coordinates::pytorch_half_pixel;
  else if (c == "align_corners")
    s->coordinates = resize_coordinates::align_corners;
  else if (c == "asymmetric")
    s->coordinates = resize_coordinates::asymmetric;
  else if (c == "tf_half_pixel_for_nn")
    s->coordinates = resize_coordinates::tf_half_pixel_for_nn;
  else if (c == "tf_crop_and_resize")
    s->coordinates = resize_coordinates::tf_crop_and_resize;
  else if (c != "half_pixel")
    return error(errc::bad_attribute, "unknown coordinate_transformation_mode");
  const std::string_view n = a.string("nearest_mode", "round_prefer_floor");
  if (n == "round_prefer_ceil")
    s->nearest = resize_nearest::round_prefer_ceil;
  else if (n == "floor")
    s->nearest = resize_nearest::floor;
  else if (n == "ceil")
    s->nearest = resize_nearest::ceil;
  else if (n != "round_prefer_floor")
    return error(errc::bad_attribute, "unknown nearest_mode");
  s->cubic_a = a.real("cubic_coeff_a", -0.75);
  s->exclude_outside = a.integer("exclude_outside", 0) != 0;
  s->extrapolation = a.real("extrapolation_value", 0);
  s->antialias = a.integer("antialias", 0) != 0;
  const std::string_view policy = a.string("keep_aspect_ratio_policy", "stretch");
  s->policy = policy == "not_larger" ? 1 : policy == "not_smaller" ? 2 : 0;
  const attribute_view axes = a("axes");
  if (axes.kind == attribute_kind::integers) {
    if (axes.integers.size() > static_cast<std::size_t>(max_rank)) return error(errc::unsupported);
    s->axis_count = static_cast<int>(axes.integers.size());
    for (std::size_t i = 0; i < axes.integers.size(); ++i) s->axes[i] = axes.integers[i];
  }
  return owner;
}

/// One axis of a call.
struct resize_axis {
  i64 in = 1, out = 1;
  double scale = 1;
  double length = 1;  // of the result: `out`, or what a given scale makes before it is cut to `out`
  double roi_start = 0, roi_end = 1;
  bool active = false;  // anything but the identity

  double source(resize_coordinates mode, i64 o) const {
    const double x = static_cast<double>(o), n = static_cast<double>(in);
    switch (mode) {
      case resize_coordinates::half_pixel: return (x + 0.5) / scale - 0.5;
      case resize_coordinates::half_pixel_symmetric: {
        const double adjustment = static_cast<double>(out) / (scale * n);
        return n / 2 * (1 - adjustment) + (x + 0.5) / scale - 0.5;
      }
      case resize_coordinates::pytorch_half_pixel: return out > 1 ? (x + 0.5) / scale - 0.5 : 0;
      case resize_coordinates::align_corners: return out > 1 ? x * (n - 1) / (length - 1) : 0;
      case resize_coordinates::asymmetric: return x / scale;
      case resize_coordinates::tf_half_pixel_for_nn: return (x + 0.5) / scale;
      case resize_coordinates::tf_crop_and_resize:
        return out > 1 ? roi_start * (n - 1) +
                             x * (roi_end - roi_start) * (n - 1) / static_cast<double>(out - 1)
                       : 0.5 * (roi_start + roi_end) * (n - 1);
    }
    return x;
  }
};

inline i64 clamp_index(i64 i, i64 n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

inline i64 nearest_index(const resize_state& s, const resize_axis& a, double x) {
  double r = 0;
  switch (s.nearest) {
    case resize_nearest::round_prefer_floor: r = std::ceil(x - 0.5); break;
    case resize_nearest::round_prefer_ceil: r = std::floor(x + 0.5); break;
    case resize_nearest::floor: r = std::floor(x); break;
    case resize_nearest::ceil: r = std::ceil(x); break;
    case resize_nearest::simple: r = a.scale < 1 ? std::ceil(x) : std::floor(x); break;
  }
  return clamp_index(static_cast<i64>(r), a.in);
}

inline double resize_kernel(const resize_state& s, double d) {
  d = std::fabs(d);
  if (s.mode == resize_mode::linear) return d < 1 ? 1 - d : 0;
  const double a = s.cubic_a;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

/// Taps of an axis: 1 for identity and nearest, else 2 or 4, more when antialiasing shrinks.
inline i64 resize_taps(const resize_state& s, const resize_axis& a) {
  if (!a.active || s.mode == resize_mode::nearest) return 1;
  const double reach = s.mode == resize_mode::linear ? 1 : 2;
  const double scale = s.antialias && a.scale < 1 ? a.scale : 1;
  return 2 - 2 * (static_cast<i64>(std::floor(-reach / scale)) + 1);
}

/// Indices and weights of one output coordinate; false where it is extrapolated.
template <class Index, class Weight>
bool resize_row(const resize_state& s, const resize_axis& a, i64 o, i64 taps, Index* index,
                Weight* weight, i64 step) {
  if (!a.active) {
    index[0] = static_cast<Index>(o);
    weight[0] = 1;
    return true;
  }
  const double x = a.source(s.coordinates, o);
  const bool inside = s.coordinates != resize_coordinates::tf_crop_and_resize ||
                      (x >= 0 && x <= static_cast<double>(a.in - 1));
  if (s.mode == resize_mode::nearest) {
    index[0] = static_cast<Index>(nearest_index(s, a, x));
    weight[0] = 1;
    return inside;
  }
  const double scale = s.antialias && a.scale < 1 ? a.scale : 1;
  const double base = std::floor(x);
  double sum = 0;
  const i64 first = static_cast<i64>(base) - (taps / 2 - 1);
  for (i64 t = 0; t < taps; ++t) {
    const i64 at = first + t;
    double w = resize_kernel(s, (static_cast<double>(at) - x) * scale);
    if (s.exclude_outside && (at < 0 || at >= a.in)) w = 0;
    index[t * step] = static_cast<Index>(clamp_index(at, a.in));
    weight[t * step] = static_cast<Weight>(w);
    sum += w;
  }
  if ((s.exclude_outside || scale < 1) && sum != 0)
    for (i64 t = 0; t < taps; ++t)
      weight[t * step] = static_cast<Weight>(static_cast<double>(weight[t * step]) / sum);
  return inside;
}

inline constexpr i64 resize_table = 2048;  // entries of the column table
inline constexpr int resize_outer = 4;     // active axes before the last one
inline constexpr i64 resize_outer_taps = 256;

template <class T, bool Nearest>
errc resize_rows(const resize_state& s, const resize_axis* axes, int rank, const T* x, T* y,
                 const thread_pool_ref& pool) {
  using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const int last = rank - 1;
  i64 taps[max_rank], stride[max_rank];
  i64 rows = 1, s_in = 1;
  int outer[resize_outer];
  int outer_count = 0;
  for (int d = last; d >= 0; --d) {
    taps[d] = resize_taps(s, axes[d]);
    stride[d] = s_in;
    s_in *= axes[d].in;
    if (d == last) continue;
    rows *= axes[d].out;
    if (axes[d].active) {
      if (outer_count == resize_outer || taps[d] > resize_outer_taps) return errc::unsupported;
      outer[outer_count++] = d;
    }
  }
  if (taps[last] > resize_table) return errc::unsupported;
  const i64 width = axes[last].out;
  i64 columns = resize_table / taps[last];
  if (columns > 256) columns = 256;
  const T fill = narrow<T>(static_cast<A>(s.extrapolation));
  parallel_parts(
      pool, rows, 16384 / (width * taps[last]) + 1, [&](i64 begin_part, i64 begin, i64 end) {
        static_cast<void>(begin_part);
        std::int32_t column_index[resize_table];
        A column_weight[resize_table];
        bool column_inside[256];
        i64 row_index[resize_outer][resize_outer_taps];
        A row_weight[resize_outer][resize_outer_taps];
        for (i64 j0 = 0; j0 < width; j0 += columns) {
          const i64 n = width - j0 < columns ? width - j0 : columns;
          bool all_inside = true;
          for (i64 j = 0; j < n; ++j) {
            column_inside[j] = resize_row(s, axes[last], j0 + j, taps[last], column_index + j,
                                          column_weight + j, columns);
            all_inside = all_inside && column_inside[j];
          }
          for (i64 r = begin; r < end; ++r) {
            i64 rest = r, at = 0;
            bool inside = true;
            int active = outer_count;
            for (int d = last - 1; d >= 0; --d) {
              const i64 o = rest % axes[d].out;
              rest /= axes[d].out;
              if (!axes[d].active) {
                at += o * stride[d];
                continue;
              }
              // `outer` lists axes from the innermost outwards, as this loop meets them.
              const int k = outer_count - active--;
              inside = resize_row(s, axes[d], o, taps[d], row_index[k], row_weight[k], 1) && inside;
            }
            T* const to = y + r * width + j0;
            if (!inside) {
              for (i64 j = 0; j < n; ++j) to[j] = fill;
              continue;
            }
            if constexpr (Nearest) {
              for (int k = 0; k < outer_count; ++k) at += row_index[k][0] * stride[outer[k]];
              const T* const from = x + at;
              for (i64 j = 0; j < n; ++j) to[j] = from[column_index[j]];
            } else {
              A sum[256] = {};
              i64 pick[resize_outer] = {};
              while (true) {
                i64 offset = at;
                A w = 1;
                for (int k = 0; k < outer_count; ++k) {
                  offset += row_index[k][pick[k]] * stride[outer[k]];
                  w *= row_weight[k][pick[k]];
                }
                if (w != 0) {
                  const T* const from = x + offset;
                  for (i64 t = 0; t < taps[last]; ++t) {
                    const std::int32_t* const index = column_index + t * columns;
                    const A* const weight = column_weight + t * columns;
                    for (i64 j = 0; j < n; ++j)
                      sum[j] += w * weight[j] * static_cast<A>(widen(from[index[j]]));
                  }
                }
                int k = 0;
                for (; k < outer_count; ++k) {
                  if (++pick[k] < taps[outer[k]]) break;
                  pick[k] = 0;
                }
                if (k == outer_count) break;
              }
              for (i64 j = 0; j < n; ++j) {
                if constexpr (std::is_integral_v<T>)
                  to[j] = convert_value<T>(sum[j]);
                else
                  to[j] = narrow<T>(sum[j]);
              }
            }
            if (!all_inside)
              for (i64 j = 0; j < n; ++j)
                if (!column_inside[j]) to[j] = fill;
          }
        }
      });
  return errc::ok;
}

inline errc run_resize(const kernel_args& args) {
  const auto& s = state_of<resize_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const int rank = static_cast<int>(x.rank);
  if (rank > max_rank || rank < 1 || y.rank != x.rank) return errc::rank_mismatch;
  if (y.count() == 0) return errc::ok;
  resize_axis axes[max_rank];
  for (int d = 0; d < rank; ++d) {
    axes[d].in = x.dims[d];
    axes[d].out = y.dims[d];
    axes[d].length = static_cast<double>(y.dims[d]);
    if (x.dims[d] == 0) return errc::value_range;
    axes[d].scale =
        static_cast<double>(static_cast<float>(y.dims[d]) / static_cast<float>(x.dims[d]));
  }
  const auto scale_input = static_cast<std::size_t>(s.scale_input);
  const bool has_scales = has_input(args, scale_input) && args.inputs[scale_input].count() > 0;
  const bool has_sizes = s.size_input >= 0 &&
                         has_input(args, static_cast<std::size_t>(s.size_input)) &&
                         args.inputs[static_cast<std::size_t>(s.size_input)].count() > 0;
  const int listed = s.axis_count >= 0 ? s.axis_count : rank;
  const auto axis_at = [&](int i) {
    i64 axis = s.axis_count >= 0 ? s.axes[i] : i;
    return axis < 0 ? axis + rank : axis;
  };
  for (int i = 0; i < listed; ++i)
    if (axis_at(i) < 0 || axis_at(i) >= rank) return errc::axis_range;
  if (s.scale_count > 0) {
    if (s.scale_count != rank) return errc::rank_mismatch;
    for (int d = 0; d < rank; ++d) axes[d].scale = s.scales[d];
  } else if (has_scales) {
    if (args.inputs[scale_input].count() != listed) return errc::rank_mismatch;
    for (int i = 0; i < listed; ++i) axes[axis_at(i)].scale = real_at(args.inputs[scale_input], i);
  } else if (has_sizes && s.policy != 0) {
    const tensor_view& sizes = args.inputs[static_cast<std::size_t>(s.size_input)];
    if (sizes.count() != listed) return errc::rank_mismatch;
    double scale = 0;
    for (int i = 0; i < listed; ++i) {
      const double v =
          static_cast<double>(integer_at(sizes, i)) / static_cast<double>(axes[axis_at(i)].in);
      if (i == 0 || (s.policy == 1 ? v < scale : v > scale)) scale = v;
    }
    for (int i = 0; i < listed; ++i) axes[axis_at(i)].scale = scale;
  }
  if (s.scale_count > 0 || has_scales)
    for (int d = 0; d < rank; ++d) axes[d].length = axes[d].scale * static_cast<double>(axes[d].in);
  if (s.coordinates == resize_coordinates::tf_crop_and_resize) {
    if (!has_input(args, 1) || args.inputs[1].count() != 2 * listed) return errc::rank_mismatch;
    for (int i = 0; i < listed; ++i) {
      axes[axis_at(i)].roi_start = real_at(args.inputs[1], i);
      axes[axis_at(i)].roi_end = real_at(args.inputs[1], i + listed);
    }
  }
  for (int d = 0; d < rank; ++d) {
    resize_axis& a = axes[d];
    if (!(a.scale > 0)) return errc::value_range;
    a.active = a.scale != 1 || a.in != a.out ||
               (s.coordinates == resize_coordinates::tf_crop_and_resize &&
                (a.roi_start != 0 || a.roi_end != 1));
  }
  // Leading axes that pass through become one.
  int skip = 0;
  while (skip + 1 < rank && !axes[skip].active && !axes[skip + 1].active) {
    axes[skip + 1].in *= axes[skip].in;
    axes[skip + 1].out *= axes[skip].out;
    ++skip;
  }
  if (s.mode == resize_mode::nearest) {
    // Only extrapolation needs the type, and that is rare: others move by size.
    const auto nearest = [&]<class T>() {
      if constexpr (std::is_same_v<T, two_words>)
        return errc::unsupported;
      else
        return resize_rows<T, true>(s, axes + skip, rank - skip, x.as<const T>(), y.as<T>(),
                                    args.pool);
    };
    if (s.coordinates == resize_coordinates::tf_crop_and_resize) {
      errc outcome = errc::unsupported;
      with_number(y.type, [&]<class T>() { outcome = nearest.template operator()<T>(); });
      return outcome;
    }
    return with_size(y.type, nearest);
  }
  const auto smooth = [&]<class T>() {
    return resize_rows<T, false>(s, axes + skip, rank - skip, x.as<const T>(), y.as<T>(),
                                 args.pool);
  };
  switch (y.type) {
    case dtype::f32: return smooth.template operator()<float>();
    case dtype::f64: return smooth.template operator()<double>();
    case dtype::f16: return smooth.template operator()<half>();
    case dtype::bf16: return smooth.template operator()<brain>();
    case dtype::u8: return smooth.template operator()<std::uint8_t>();
    case dtype::i8: return smooth.template operator()<std::int8_t>();
    case dtype::i32: return smooth.template operator()<std::int32_t>();
    default: return errc::unsupported;
  }
}

}  // namespace sod2::kernel_detail
