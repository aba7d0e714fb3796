// Normalisations beyond those of reduction.hpp: GroupNormalization, RMSNormalization,
// LpNormalization, MeanVarianceNormalization.
#pragma once

#include <cmath>
#include <cstdint>

#include <sod2/kernel/std/reduction.hpp>

namespace sod2::kernel_detail {

/// 16-bit floats are summed in float32, the others in their own type.
template <class T>
using sum_of = typename accumulator<T>::type;

// ---- GroupNormalization (18, 21)
// -----------------------------------------------------------------

struct group_normalization_state {
  const simd_table* simd = nullptr;
  i64 groups = 1;
  double epsilon = 1e-5;
  bool per_group = false;  // version 18: scale and bias have one element per group
};
inline result<kernel_state> prepare_group_normalization(const prepare_args& args) {
  if (args.inputs.size() < 3) return error(errc::arity, "GroupNormalization needs three inputs");
  if (!is_float(input_type(args, 0)))
    return error(errc::type_mismatch, "normalisation needs a floating-point input");
  const i64 groups = args.attributes.integer("num_groups", 0);
  if (groups < 1) return error(errc::bad_attribute, "num_groups must be positive");
  return own(new (std::nothrow) group_normalization_state{
      &simd_of(args.simd), groups, args.attributes.real("epsilon", 1e-5), args.since_version < 21});
}

/// X (N, C, D...): mean and variance of each group of channels; then scale and shift per channel.
inline errc run_group_normalization(const kernel_args& args) {
  const auto& s = state_of<group_normalization_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.rank < 2) return errc::rank_mismatch;
  const i64 channels = x.dims[1], plane = product_of(x, 2, x.rank);
  if (channels % s.groups != 0) return errc::divisibility;
  const i64 size = channels / s.groups, n = size * plane;
  if (x.count() == 0) return errc::ok;
  const i64 parameters = args.inputs[1].count();
  const bool per_group = s.per_group && parameters == s.groups;
  if (!per_group && parameters != channels) return errc::channels;
  return with_real(x.type, [&]<class T>() {
    using S = sum_of<T>;
    const T* const gamma = args.inputs[1].as<const T>();
    const T* const beta = args.inputs[2].as<const T>();
    parallel_parts(args.pool, x.dims[0] * s.groups, 50000 / n + 1, [&](i64, i64 begin, i64 end) {
      for (i64 g = begin; g < end; ++g) {
        const T* a = x.as<const T>() + g * n;
        T* b = y.as<T>() + g * n;
        S mean = 0, var = 0;
        if constexpr (std::is_same_v<T, float>) {
          mean = s.simd->reduce(reduction::sum, a, n) / static_cast<float>(n);
          var = s.simd->square_deviation(a, mean, n);
        } else {
          for (i64 i = 0; i < n; ++i) mean += widen(a[i]);
          mean /= static_cast<S>(n);
          for (i64 i = 0; i < n; ++i) var += (widen(a[i]) - mean) * (widen(a[i]) - mean);
        }
        const S root = S(1) / std::sqrt(var / static_cast<S>(n) + static_cast<S>(s.epsilon));
        for (i64 k = 0; k < size; ++k, a += plane, b += plane) {
          const i64 p = per_group ? g % s.groups : g % s.groups * size + k;
          const S scale = widen(gamma[p]) * root, shift = widen(beta[p]) - mean * scale;
          if constexpr (std::is_same_v<T, float>)
            s.simd->affine(a, scale, shift, b, plane);
          else
            for (i64 i = 0; i < plane; ++i) b[i] = narrow<T>(widen(a[i]) * scale + shift);
        }
      }
    });
  });
}

// ---- RMSNormalization (23)
// -----------------------------------------------------------------------

/// Y = X / sqrt(mean of X^2 over the axes from `axis` on + epsilon) * scale; the scale broadcasts.
inline errc run_rms_normalization(const kernel_args& args) {
  const auto& s = state_of<normalization_state>(args);
  const tensor_view &x = args.inputs[0], &scale = args.inputs[1], &y = args.outputs[0];
  const i64 rank = static_cast<i64>(x.rank), axis = s.axis < 0 ? s.axis + rank : s.axis;
  if (axis < 0 || axis >= rank) return errc::axis_range;
  if (rank > max_rank || scale.rank > x.rank) return errc::unsupported;
  const i64 rows = product_of(x, 0, idx(axis)), n = product_of(x, idx(axis), x.rank);
  i64 step[max_rank] = {};  // of the scale, over the axes of x
  i64 stride = 1;
  for (i64 d = rank - 1, e = static_cast<i64>(scale.rank) - 1; e >= 0; --d, --e) {
    if (scale.dims[e] != 1 && scale.dims[e] != x.dims[d]) return errc::broadcast;
    step[d] = scale.dims[e] == 1 ? 0 : stride;
    stride *= scale.dims[e];
  }
  if (rows * n == 0) return errc::ok;
  return with_real(x.type, [&]<class T>() {
    using S = sum_of<T>;
    parallel_parts(args.pool, rows, 30000 / n + 1, [&](i64, i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) {
        const T* a = x.as<const T>() + r * n;
        T* b = y.as<T>() + r * n;
        S sum = 0;
        if constexpr (std::is_same_v<T, float>)
          sum = s.simd->reduce(reduction::sum_square, a, n);
        else
          for (i64 i = 0; i < n; ++i) sum += widen(a[i]) * widen(a[i]);
        const S root = S(1) / std::sqrt(sum / static_cast<S>(n) + static_cast<S>(s.epsilon));
        if constexpr (std::is_same_v<T, float>)
          if (scale.type == dtype::f32 && scale.count() == n &&
              scale.rank == x.rank - static_cast<std::uint32_t>(axis)) {
            s.simd->normalize(a, 0, root, scale.as<const float>(), nullptr, b, n);
            continue;
          }
        for (i64 i = 0; i < n; ++i) {
          i64 rest = r * n + i, at = 0;
          for (i64 d = rank - 1; d >= 0; --d) {
            at += rest % x.dims[d] * step[d];
            rest /= x.dims[d];
          }
          // The scale may have a type of its own.
          b[i] = narrow<T>(widen(a[i]) * root * static_cast<S>(real_at(scale, at)));
        }
      }
    });
  });
}

// ---- BatchNormalization (14, 15) in training mode
// ---------------------------------------------------------------------

struct batch_statistics_state {
  double epsilon = 1e-5, momentum = 0.9;
};
inline result<kernel_state> prepare_batch_statistics(const prepare_args& args) {
  if (args.attributes.integer("training_mode", 0) == 0)
    return error(errc::unsupported, "BatchNormalization without training mode is no kernel");
  if (!is_float(input_type(args, 0)))
    return error(errc::type_mismatch, "BatchNormalization works on floats");
  return own(new (std::nothrow) batch_statistics_state{args.attributes.real("epsilon", 1e-5),
                                                       args.attributes.real("momentum", 0.9)});
}
/// (N, C, ...) by the mean and the population variance of each channel; outputs 1 and 2 are the
/// running statistics, input * momentum + batch * (1 - momentum).
inline errc run_batch_statistics(const kernel_args& args) {
  const auto& s = state_of<batch_statistics_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.rank < 2) return errc::rank_mismatch;
  const i64 batch = x.dims[0], channels = x.dims[1], plane = product_of(x, 2, x.rank);
  for (std::size_t k = 1; k < 5; ++k)
    if (args.inputs[k].count() != channels) return errc::channels;
  return with_real(x.type, [&]<class T>() {
    parallel_parts(
        args.pool, channels, 30000 / (batch * plane + 1) + 1, [&](i64, i64 begin, i64 end) {
          for (i64 c = begin; c < end; ++c) {
            const auto each = [&](auto&& f) {
              for (i64 n = 0; n < batch; ++n)
                for (i64 i = 0; i < plane; ++i) f((n * channels + c) * plane + i);
            };
            const auto count = static_cast<double>(batch * plane);
            double sum = 0, squares = 0;
            each([&](i64 at) { sum += static_cast<double>(widen(x.as<const T>()[at])); });
            const double mean = sum / count;
            each([&](i64 at) {
              const double d = static_cast<double>(widen(x.as<const T>()[at])) - mean;
              squares += d * d;
            });
            const double variance = squares / count;
            const double factor = real_at(args.inputs[1], c) / std::sqrt(variance + s.epsilon);
            const double shift = real_at(args.inputs[2], c);
            each([&](i64 at) {
              const double v = static_cast<double>(widen(x.as<const T>()[at]));
              y.as<T>()[at] = convert_value<T>((v - mean) * factor + shift);
            });
            const double batch_value[] = {mean, variance};
            for (std::size_t k = 0; k < 2; ++k) {
              if (args.outputs.size() <= k + 1 || !args.outputs[k + 1].present()) continue;
              const double running =
                  real_at(args.inputs[3 + k], c) * s.momentum + batch_value[k] * (1 - s.momentum);
              with_storage(args.outputs[k + 1].type, [&]<class U>() {
                args.outputs[k + 1].as<U>()[c] = convert_value<U>(running);
              });
            }
          }
        });
  });
}

// ---- LpNormalization (1, 22)
// ---------------------------------------------------------------------

struct lp_normalization_state {
  i64 axis = -1, p = 2;
};
inline result<kernel_state> prepare_lp_normalization(const prepare_args& args) {
  if (!is_float(input_type(args, 0)))
    return error(errc::type_mismatch, "normalisation needs a floating-point input");
  const i64 p = args.attributes.integer("p", 2);
  if (p != 1 && p != 2) return error(errc::bad_attribute, "p is 1 or 2");
  return own(new (std::nothrow) lp_normalization_state{args.attributes.integer("axis", -1), p});
}

/// X divided by its L1 or L2 norm along an axis; a row of zeros stays zero.
inline errc run_lp_normalization(const kernel_args& args) {
  const auto& s = state_of<lp_normalization_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const i64 rank = static_cast<i64>(x.rank), axis = s.axis < 0 ? s.axis + rank : s.axis;
  if (axis < 0 || axis >= rank) return errc::axis_range;
  const i64 n = x.dims[axis], outer = product_of(x, 0, idx(axis)),
            inner = product_of(x, idx(axis) + 1, x.rank);
  return with_real(x.type, [&]<class T>() {
    using S = sum_of<T>;
    parallel_parts(args.pool, outer * inner, 20000 / (n + 1) + 1, [&](i64, i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) {
        const i64 at = r / inner * n * inner + r % inner;
        const T* a = x.as<const T>() + at;
        T* b = y.as<T>() + at;
        S norm = 0;
        for (i64 i = 0; i < n; ++i) {
          const S v = widen(a[i * inner]);
          norm += s.p == 1 ? std::fabs(v) : v * v;
        }
        if (s.p == 2) norm = std::sqrt(norm);
        for (i64 i = 0; i < n; ++i)
          b[i * inner] = narrow<T>(norm == 0 ? S(0) : static_cast<S>(widen(a[i * inner])) / norm);
      }
    });
  });
}

// ---- MeanVarianceNormalization (9, 13)
// -----------------------------------------------------------

struct mean_variance_state {
  std::uint32_t reduced = 0;   // bit d: axis d, counted from the front
  std::uint32_t from_end = 0;  // bit k: axis -1 - k
};
inline result<kernel_state> prepare_mean_variance(const prepare_args& args) {
  if (!is_float(input_type(args, 0)))
    return error(errc::type_mismatch, "normalisation needs a floating-point input");
  auto* s = new (std::nothrow) mean_variance_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  const attribute_view axes = args.attributes("axes");
  constexpr i64 standard[] = {0, 2, 3};
  for (i64 a :
       axes.kind == attribute_kind::integers ? axes.integers : std::span<const i64>(standard)) {
    if (a >= max_rank || a < -max_rank) return error(errc::axis_range, "axis is out of range");
    if (a >= 0)
      s->reduced |= 1U << static_cast<unsigned>(a);
    else
      s->from_end |= 1U << static_cast<unsigned>(-1 - a);
  }
  return owner;
}

/// Y = (X - mean) / sqrt(variance) over the axes; 1e-9 keeps a constant group finite, as the
/// function body of the operator does.
inline errc run_mean_variance(const kernel_args& args) {
  const auto& s = state_of<mean_variance_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const int rank = static_cast<int>(x.rank);
  if (rank > max_rank) return errc::unsupported;
  std::uint32_t reduced = s.reduced;
  for (int k = 0; k < max_rank; ++k)
    if ((s.from_end >> k & 1U) != 0) {
      if (k >= rank) return errc::axis_range;
      reduced |= 1U << static_cast<unsigned>(rank - 1 - k);
    }
  if ((reduced >> rank) != 0) return errc::axis_range;
  if (x.count() == 0) return errc::ok;
  i64 stride[max_rank] = {};
  dense_strides(x.shape(), stride);
  i64 n = 1;
  for (int d = 0; d < rank; ++d)
    if ((reduced >> d & 1U) != 0) n *= x.dims[d];
  const i64 groups = x.count() / n;
  return with_real(x.type, [&]<class T>() {
    using S = sum_of<T>;
    parallel_parts(args.pool, groups, 20000 / n + 1, [&](i64, i64 begin, i64 end) {
      for (i64 g = begin; g < end; ++g) {
        i64 base = 0, rest = g;
        for (int d = rank - 1; d >= 0; --d)
          if ((reduced >> d & 1U) == 0) {
            base += rest % x.dims[d] * stride[d];
            rest /= x.dims[d];
          }
        // Walks the group's elements in row-major order.
        const auto walk = [&](auto&& f) {
          i64 at[max_rank] = {}, offset = base;
          for (i64 i = 0; i < n; ++i) {
            f(offset);
            for (int d = rank - 1; d >= 0; --d) {
              if ((reduced >> d & 1U) == 0) continue;
              offset += stride[d];
              if (++at[d] < x.dims[d]) break;
              offset -= x.dims[d] * stride[d];
              at[d] = 0;
            }
          }
        };
        const T* const from = x.as<const T>();
        S mean = 0, var = 0;
        walk([&](i64 i) { mean += widen(from[i]); });
        mean /= static_cast<S>(n);
        walk([&](i64 i) { var += (widen(from[i]) - mean) * (widen(from[i]) - mean); });
        const S scale = S(1) / (std::sqrt(var / static_cast<S>(n)) + static_cast<S>(1e-9));
        walk([&](i64 i) { y.as<T>()[i] = narrow<T>((widen(from[i]) - mean) * scale); });
      }
    });
  });
}

}  // namespace sod2::kernel_detail
