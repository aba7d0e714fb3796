// Reductions, ArgMax/ArgMin, softmax and normalisations.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <sod2/kernel/std/product.hpp>

namespace sod2::kernel_detail {

// ---- Reduce* (1, 11, 13, 18, 20)
// -----------------------------------------------------------------

struct reduce_state {
  const simd_table* simd = nullptr;
  i64 axes[max_rank] = {};
  int axis_count = -1;  // -1: no attribute
  bool noop_with_empty_axes = false;
};

inline result<kernel_state> prepare_reduce(const prepare_args& args) {
  auto* s = new (std::nothrow) reduce_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  s->simd = &simd_of(args.simd);
  const auto axes = args.attributes.integers("axes");
  if (axes.size() > static_cast<std::size_t>(max_rank)) return error(errc::unsupported);
  if (!axes.empty()) s->axis_count = static_cast<int>(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) s->axes[i] = axes[i];
  s->noop_with_empty_axes = args.attributes.integer("noop_with_empty_axes", 0) != 0;
  const dtype t = input_type(args, 0);
  if (t == dtype::undefined || !with_storage(t, []<class T>() {}))
    return error(errc::type_mismatch, "reduction does not support this element type");
  return owner;
}

/// The index space of a reduction: collapsed axes, alternately kept and reduced.
struct reduce_axes {
  int rank = 0;
  i64 dims[max_rank] = {};
  bool reduced[max_rank] = {};
  i64 kept_count = 1, reduced_count = 1;

  void add(i64 extent, bool is_reduced) {
    (is_reduced ? reduced_count : kept_count) *= extent;
    if (extent == 1) return;
    if (rank > 0 && reduced[rank - 1] == is_reduced) {
      dims[rank - 1] *= extent;
    } else {
      dims[rank] = extent;
      reduced[rank++] = is_reduced;
    }
  }
};

/// Which axes a call reduces. False when an axis is out of range.
inline bool reduced_axes(const kernel_args& args, const reduce_state& s, bool* reduced,
                         bool& noop) {
  const tensor_view& x = args.inputs[0];
  const int rank = static_cast<int>(x.rank);
  for (int d = 0; d < rank; ++d) reduced[d] = false;
  i64 n = s.axis_count > 0 ? s.axis_count : 0;
  const bool from_input = has_input(args, 1);
  if (from_input) n = args.inputs[1].count();
  noop = false;
  if (n == 0) {
    noop = s.noop_with_empty_axes;
    for (int d = 0; d < rank; ++d) reduced[d] = !noop;
    return true;
  }
  for (i64 i = 0; i < n; ++i) {
    i64 axis = from_input ? integer_at(args.inputs[1], i) : s.axes[i];
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false;
    reduced[axis] = true;
  }
  return true;
}

template <reduction Op, class S>
struct reducer {
  static S start() {
    if constexpr (Op == reduction::prod) return S(1);
    if constexpr (Op == reduction::max) {
      if constexpr (is_real<S>)
        return -std::numeric_limits<S>::infinity();
      else
        return std::numeric_limits<S>::lowest();
    }
    if constexpr (Op == reduction::min) {
      if constexpr (is_real<S>)
        return std::numeric_limits<S>::infinity();
      else
        return std::numeric_limits<S>::max();
    }
    return S(0);
  }
  static S step(S a, S x) {
    if constexpr (std::is_same_v<S, bool>) {
      return Op == reduction::max ? a || x : a && x;
    } else if constexpr (Op == reduction::max) {
      return binary_value<tile_op::max, S>(a, x);
    } else if constexpr (Op == reduction::min) {
      return binary_value<tile_op::min, S>(a, x);
    } else if constexpr (Op == reduction::prod) {
      return binary_value<tile_op::mul, S>(a, x);
    } else if constexpr (Op == reduction::l1) {
      return binary_value<tile_op::add, S>(a, unary_value<tile_op::abs, S>(x, {}));
    } else if constexpr (Op == reduction::l2 || Op == reduction::sum_square) {
      return binary_value<tile_op::add, S>(a, binary_value<tile_op::mul, S>(x, x));
    } else if constexpr (Op == reduction::log_sum_exp) {
      return static_cast<S>(a + static_cast<S>(std::exp(static_cast<double>(x))));
    } else {
      return binary_value<tile_op::add, S>(a, x);
    }
  }
  static S finish(S a, [[maybe_unused]] i64 n) {
    if constexpr (std::is_same_v<S, bool>)
      return a;
    else if constexpr (Op == reduction::mean)
      return n == 0 && !is_real<S> ? S(0) : static_cast<S>(a / static_cast<S>(n));
    else if constexpr (Op == reduction::l2)
      return static_cast<S>(std::sqrt(static_cast<double>(a)));
    else if constexpr (Op == reduction::log_sum || Op == reduction::log_sum_exp)
      return static_cast<S>(std::log(static_cast<double>(a)));
    else
      return a;
  }
};

/// Visits the offsets of one side (kept or reduced) of the index space in row-major order. Out of
/// line: it serves eighty instances of the plain reduction, none of them hot.
struct side_walk {
  int rank = 0;
  i64 dims[max_rank] = {}, stride[max_rank] = {}, at[max_rank] = {};
  i64 offset = 0;

  SOD2_NOINLINE side_walk(const reduce_axes& a, bool reduced_side, bool skip_last) {
    i64 strides[max_rank];
    dense_strides({a.dims, static_cast<std::size_t>(a.rank)}, strides);
    for (int d = 0; d < a.rank; ++d)
      if (a.reduced[d] == reduced_side && !(skip_last && d == a.rank - 1)) {
        dims[rank] = a.dims[d];
        stride[rank++] = strides[d];
      }
  }
  SOD2_NOINLINE void seek(i64 index) {
    offset = 0;
    for (int d = rank - 1; d >= 0; --d) {
      at[d] = index % dims[d];
      index /= dims[d];
      offset += at[d] * stride[d];
    }
  }
  SOD2_NOINLINE void next() {
    for (int d = rank - 1; d >= 0; --d) {
      offset += stride[d];
      if (++at[d] < dims[d]) return;
      offset -= at[d] * stride[d];
      at[d] = 0;
    }
  }
  i64 count() const {
    i64 n = 1;
    for (int d = 0; d < rank; ++d) n *= dims[d];
    return n;
  }
};

template <reduction Op, class T>
void plain_reduce(const reduce_axes& a, const T* x, T* y, const thread_pool_ref& pool) {
  using S = typename accumulator<T>::type;
  using R = reducer<Op, S>;
  parallel_parts(
      pool, a.kept_count, 50000 / (a.reduced_count + 1) + 1, [&](i64, i64 begin, i64 end) {
        side_walk kept(a, false, false);
        kept.seek(begin);
        for (i64 o = begin; o < end; ++o, kept.next()) {
          S acc = R::start();
          side_walk inner(a, true, false);
          if constexpr (Op == reduction::log_sum_exp) {
            // Shifted by the maximum, so that nothing overflows.
            double top = -std::numeric_limits<double>::infinity();
            for (i64 i = 0; i < a.reduced_count; ++i, inner.next()) {
              const auto v = static_cast<double>(widen(x[kept.offset + inner.offset]));
              if (v > top) top = v;
            }
            if (!(top > -std::numeric_limits<double>::infinity() &&
                  top < std::numeric_limits<double>::infinity()))
              top = 0;
            double sum = 0;
            if (a.reduced_count > 0) inner.seek(0);
            for (i64 i = 0; i < a.reduced_count; ++i, inner.next())
              sum += std::exp(static_cast<double>(widen(x[kept.offset + inner.offset])) - top);
            y[o] = narrow<T>(static_cast<S>(std::log(sum) + top));
            continue;
          }
          for (i64 i = 0; i < a.reduced_count; ++i, inner.next())
            acc = R::step(acc, widen(x[kept.offset + inner.offset]));
          y[o] = narrow<T>(R::finish(acc, a.reduced_count));
        }
      });
}

inline float finish_reduction(reduction op, float v, i64 n) {
  switch (op) {
    case reduction::mean: return v / static_cast<float>(n);
    case reduction::l2: return std::sqrt(v);
    case reduction::log_sum: return std::log(v);
    default: return v;
  }
}

/// Float32: rows where the last axis is reduced, whole vectors of accumulators where it is kept.
inline void vector_reduce(const simd_table& simd, reduction op, const reduce_axes& a,
                          const float* x, float* y, const thread_pool_ref& pool) {
  const bool rows = a.rank > 0 && a.reduced[a.rank - 1];
  const i64 last = a.rank > 0 ? a.dims[a.rank - 1] : 1;
  if (rows) {
    parallel_parts(pool, a.kept_count, 50000 / (a.reduced_count + 1) + 1,
                   [&](i64, i64 begin, i64 end) {
                     side_walk kept(a, false, false);
                     kept.seek(begin);
                     const side_walk outer(a, true, true);
                     const i64 pieces = outer.count();
                     for (i64 o = begin; o < end; ++o, kept.next()) {
                       side_walk inner = outer;
                       float acc = simd.reduce(op, x + kept.offset, last);
                       for (i64 i = 1; i < pieces; ++i) {
                         inner.next();
                         const float v = simd.reduce(op, x + kept.offset + inner.offset, last);
                         if (op == reduction::max)
                           acc = binary_value<tile_op::max, float>(acc, v);
                         else if (op == reduction::min)
                           acc = binary_value<tile_op::min, float>(acc, v);
                         else if (op == reduction::prod)
                           acc *= v;
                         else
                           acc += v;
                       }
                       y[o] = finish_reduction(op, acc, a.reduced_count);
                     }
                   });
    return;
  }
  // The last axis is kept: split it so that accumulators stay in cache and threads have work.
  const i64 piece = last < 1024 ? last : 1024;
  const i64 pieces = ceil_div(last, piece);
  const i64 outer_kept = a.kept_count / last;
  float start = 0;
  if (op == reduction::max) start = -std::numeric_limits<float>::infinity();
  if (op == reduction::min) start = std::numeric_limits<float>::infinity();
  if (op == reduction::prod) start = 1;
  parallel_parts(pool, outer_kept * pieces, 50000 / (a.reduced_count * piece + 1) + 1,
                 [&](i64, i64 begin, i64 end) {
                   side_walk kept(a, false, true);
                   for (i64 u = begin; u < end; ++u) {
                     const i64 o = u / pieces, j0 = u % pieces * piece;
                     const i64 n = last - j0 < piece ? last - j0 : piece;
                     kept.seek(o);
                     float* const acc = y + o * last + j0;
                     for (i64 j = 0; j < n; ++j) acc[j] = start;
                     side_walk inner(a, true, false);
                     for (i64 i = 0; i < a.reduced_count; ++i, inner.next())
                       simd.accumulate(op, acc, x + kept.offset + inner.offset + j0, n);
                     if (op == reduction::mean || op == reduction::l2 || op == reduction::log_sum)
                       for (i64 j = 0; j < n; ++j)
                         acc[j] = finish_reduction(op, acc[j], a.reduced_count);
                   }
                 });
}

template <reduction Op>
errc run_reduce(const kernel_args& args) {
  const auto& s = state_of<reduce_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  bool reduced[max_rank];
  bool noop = false;
  if (x.rank > static_cast<std::uint32_t>(max_rank)) return errc::unsupported;
  if (!reduced_axes(args, s, reduced, noop)) return errc::axis_range;
  if (noop) {
    if (y.data != x.data && y.count() > 0)
      std::memcpy(y.data, x.data, static_cast<std::size_t>(bytes_of(y.type, y.count())));
    return errc::ok;
  }
  reduce_axes a;
  for (std::uint32_t d = 0; d < x.rank; ++d) a.add(x.dims[d], reduced[d]);
  if (a.kept_count == 0) return errc::ok;
  if (y.count() != a.kept_count) return errc::dim_mismatch;
  if constexpr (Op != reduction::log_sum_exp)
    if (x.type == dtype::f32 && a.reduced_count > 0) {
      vector_reduce(*s.simd, Op, a, x.as<const float>(), y.as<float>(), args.pool);
      return errc::ok;
    }
  errc outcome = errc::unsupported;
  with_storage(x.type, [&]<class T>() {
    constexpr bool wide = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                          std::is_same_v<T, half> || std::is_same_v<T, std::int32_t> ||
                          std::is_same_v<T, std::int64_t> || std::is_same_v<T, brain> ||
                          std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t>;
    constexpr bool compares = Op == reduction::max || Op == reduction::min;
    if constexpr (wide || (compares && (sizeof(T) == 1))) {
      plain_reduce<Op, T>(a, x.as<const T>(), y.as<T>(), args.pool);
      outcome = errc::ok;
    }
  });
  return outcome;
}

// ---- ArgMax, ArgMin (1, 11, 12, 13)
// --------------------------------------------------------------

struct arg_state {
  i64 axis = 0;
  bool last = false;  // select_last_index
};

inline result<kernel_state> prepare_arg(const prepare_args& args) {
  return own(new (std::nothrow) arg_state{args.attributes.integer("axis", 0),
                                          args.attributes.integer("select_last_index", 0) != 0});
}

template <bool Max>
errc run_arg(const kernel_args& args) {
  const auto& s = state_of<arg_state>(args);
  const tensor_view& x = args.inputs[0];
  const i64 rank = static_cast<i64>(x.rank);
  const i64 axis = s.axis < 0 ? s.axis + rank : s.axis;
  if (axis < 0 || axis >= rank) return errc::axis_range;
  const i64 outer = product_of(x, 0, idx(axis)), n = x.dims[axis],
            inner = product_of(x, idx(axis) + 1, x.rank);
  if (outer * inner == 0) return errc::ok;
  if (n == 0) return errc::value_range;
  i64* const y = args.outputs[0].as<i64>();
  const bool known = with_storage(x.type, [&]<class T>() {
    parallel_parts(args.pool, outer, 50000 / (n * inner + 1) + 1, [&](i64, i64 begin, i64 end) {
      for (i64 o = begin; o < end; ++o) {
        const T* block = x.as<const T>() + o * n * inner;
        for (i64 i = 0; i < inner; ++i) {
          auto best = widen(block[i]);
          i64 where = 0;
          for (i64 k = 1; k < n; ++k) {
            const auto v = widen(block[k * inner + i]);
            const bool better = Max ? v > best : v < best;
            if (better || (s.last && v == best)) {
              best = v;
              where = k;
            }
          }
          y[o * inner + i] = where;
        }
      }
    });
  });
  return known ? errc::ok : errc::unsupported;
}

// ---- Softmax, LogSoftmax, Hardmax (1, 11, 13)
// ----------------------------------------------------

enum class softmax_kind : std::uint8_t { softmax, log_softmax, hardmax };

struct softmax_state {
  const simd_table* simd = nullptr;
  i64 axis = -1;
  bool coerced = false;  // before 13: everything from the axis on is one row
};

inline result<kernel_state> prepare_softmax(const prepare_args& args) {
  const bool coerced = args.since_version < 13;
  const dtype t = input_type(args, 0);
  if (!is_float(t)) return error(errc::type_mismatch, "Softmax needs a floating-point input");
  return own(new (std::nothrow) softmax_state{
      &simd_of(args.simd), args.attributes.integer("axis", coerced ? 1 : -1), coerced});
}

template <softmax_kind Kind, class T>
void softmax_strided(const T* x, T* y, i64 n, i64 step) {
  using S = typename accumulator<T>::type;
  S top = widen(x[0]);
  i64 where = 0;
  for (i64 i = 1; i < n; ++i) {
    const S v = widen(x[i * step]);
    if (v > top) {
      top = v;
      where = i;
    }
  }
  if (Kind == softmax_kind::hardmax) {
    for (i64 i = 0; i < n; ++i) y[i * step] = narrow<T>(S(i == where ? 1 : 0));
    return;
  }
  S sum = 0;
  for (i64 i = 0; i < n; ++i) sum += std::exp(widen(x[i * step]) - top);
  if (Kind == softmax_kind::softmax) {
    for (i64 i = 0; i < n; ++i) y[i * step] = narrow<T>(std::exp(widen(x[i * step]) - top) / sum);
  } else {
    const S shift = top + std::log(sum);
    for (i64 i = 0; i < n; ++i) y[i * step] = narrow<T>(widen(x[i * step]) - shift);
  }
}

template <softmax_kind Kind>
errc run_softmax(const kernel_args& args) {
  const auto& s = state_of<softmax_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const i64 rank = static_cast<i64>(x.rank);
  i64 axis = s.axis < 0 ? s.axis + rank : s.axis;
  if (rank == 0) axis = 0;
  if (axis < 0 || axis > rank || (axis == rank && rank > 0 && !s.coerced)) return errc::axis_range;
  i64 outer = product_of(x, 0, idx(axis));
  i64 n, inner = 1;
  if (s.coerced || rank == 0) {
    n = product_of(x, idx(axis), x.rank);
  } else {
    n = x.dims[axis];
    inner = product_of(x, idx(axis) + 1, x.rank);
  }
  if (outer * n * inner == 0) return errc::ok;
  const simd_table& simd = *s.simd;
  const i64 grain = 20000 / (n * inner + 1) + 1;
  if (x.type == dtype::f32 && Kind != softmax_kind::hardmax) {
    const float* const from = x.as<const float>();
    float* const to = y.as<float>();
    if (inner == 1) {
      parallel_parts(args.pool, outer, grain, [&](i64, i64 begin, i64 end) {
        for (i64 o = begin; o < end; ++o) {
          const float* a = from + o * n;
          float* b = to + o * n;
          const float top = simd.reduce(reduction::max, a, n);
          // A row of -inf alone (fully masked) gives NaN, as the definition does.
          if (Kind == softmax_kind::softmax) {
            const float sum = simd.exp_sum(a, top, b, n);
            simd.affine(b, 1.0f / sum, 0.0f, b, n);
          } else {
            float sum = 0;
            float chunk[256];
            for (i64 i = 0; i < n; i += 256)
              sum += simd.exp_sum(a + i, top, chunk, n - i < 256 ? n - i : 256);
            simd.affine(a, 1.0f, -(top + std::log(sum)), b, n);
          }
        }
      });
      return errc::ok;
    }
  }
  errc outcome = errc::ok;
  const auto strided = [&]<class T>() {
    parallel_parts(args.pool, outer * inner, 20000 / n + 1, [&](i64, i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) {
        const i64 at = r / inner * n * inner + r % inner;
        softmax_strided<Kind, T>(x.as<const T>() + at, y.as<T>() + at, n, inner);
      }
    });
  };
  switch (x.type) {
    case dtype::f32: strided.template operator()<float>(); break;
    case dtype::f64: strided.template operator()<double>(); break;
    case dtype::f16: strided.template operator()<half>(); break;
    case dtype::bf16: strided.template operator()<brain>(); break;
    default: outcome = errc::unsupported;
  }
  return outcome;
}

// ---- InstanceNormalization (1, 6), LayerNormalization (17), LRN (1, 13)
// --------------------------

struct normalization_state {
  const simd_table* simd = nullptr;
  double epsilon = 1e-5;
  i64 axis = -1;
  // LRN
  i64 size = 0;
  float alpha = 0.0001f, beta = 0.75f, bias = 1;
};

inline result<kernel_state> prepare_normalization(const prepare_args& args) {
  if (!is_float(input_type(args, 0)))
    return error(errc::type_mismatch, "normalisation needs a floating-point input");
  auto* s = new (std::nothrow) normalization_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  s->simd = &simd_of(args.simd);
  s->epsilon = args.attributes.real("epsilon", 1e-5);
  s->axis = args.attributes.integer("axis", -1);
  s->size = args.attributes.integer("size", 1);
  if (s->size < 1 || s->size > INT32_MAX) return error(errc::bad_attribute, "size below 1");
  s->alpha = static_cast<float>(args.attributes.real("alpha", 0.0001));
  s->beta = static_cast<float>(args.attributes.real("beta", 0.75));
  s->bias = static_cast<float>(args.attributes.real("bias", 1.0));
  return owner;
}

template <class F>
errc with_real(dtype type, F&& f) {
  switch (type) {
    case dtype::f32: f.template operator()<float>(); return errc::ok;
    case dtype::f64: f.template operator()<double>(); return errc::ok;
    case dtype::f16: f.template operator()<half>(); return errc::ok;
    case dtype::bf16: f.template operator()<brain>(); return errc::ok;
    default: return errc::unsupported;
  }
}

inline errc run_instance_normalization(const kernel_args& args) {
  const auto& s = state_of<normalization_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.rank < 2) return errc::rank_mismatch;
  const i64 channels = x.dims[1], n = product_of(x, 2, x.rank);
  if (x.count() == 0) return errc::ok;
  return with_real(x.type, [&]<class T>() {
    using S = typename accumulator<T>::type;
    const T* const gamma = args.inputs[1].as<const T>();
    const T* const beta = args.inputs[2].as<const T>();
    parallel_parts(args.pool, x.dims[0] * channels, 50000 / n + 1, [&](i64, i64 begin, i64 end) {
      for (i64 p = begin; p < end; ++p) {
        const T* a = x.as<const T>() + p * n;
        T* b = y.as<T>() + p * n;
        const S g = widen(gamma[p % channels]), shift = widen(beta[p % channels]);
        if constexpr (std::is_same_v<T, float>) {
          const float mean = s.simd->reduce(reduction::sum, a, n) / static_cast<float>(n);
          const float var = s.simd->square_deviation(a, mean, n) / static_cast<float>(n);
          const float scale = g / std::sqrt(var + static_cast<float>(s.epsilon));
          s.simd->affine(a, scale, shift - mean * scale, b, n);
        } else {
          S mean = 0, var = 0;
          for (i64 i = 0; i < n; ++i) mean += widen(a[i]);
          mean /= static_cast<S>(n);
          for (i64 i = 0; i < n; ++i) var += (widen(a[i]) - mean) * (widen(a[i]) - mean);
          const S scale = g / std::sqrt(var / static_cast<S>(n) + static_cast<S>(s.epsilon));
          for (i64 i = 0; i < n; ++i) b[i] = narrow<T>((widen(a[i]) - mean) * scale + shift);
        }
      }
    });
  });
}

inline errc run_layer_normalization(const kernel_args& args) {
  const auto& s = state_of<normalization_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const i64 rank = static_cast<i64>(x.rank), axis = s.axis < 0 ? s.axis + rank : s.axis;
  if (axis < 0 || axis >= rank) return errc::axis_range;
  const i64 rows = product_of(x, 0, idx(axis)), n = product_of(x, idx(axis), x.rank);
  if (rows * n == 0) return errc::ok;
  const tensor_view& gamma = args.inputs[1];
  const bool has_beta = has_input(args, 2);
  // Scale and bias broadcast against the normalised axes; a shorter one repeats.
  const i64 gamma_count = gamma.count(), beta_count = has_beta ? args.inputs[2].count() : n;
  if (gamma_count == 0 || n % gamma_count != 0 || beta_count == 0 || n % beta_count != 0)
    return errc::broadcast;
  float* const means = args.outputs.size() > 1 && args.outputs[1].type == dtype::f32
                           ? args.outputs[1].as<float>()
                           : nullptr;
  float* const scales = args.outputs.size() > 2 && args.outputs[2].type == dtype::f32
                            ? args.outputs[2].as<float>()
                            : nullptr;
  return with_real(x.type, [&]<class T>() {
    using S = typename accumulator<T>::type;
    parallel_parts(args.pool, rows, 30000 / n + 1, [&](i64, i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) {
        const T* a = x.as<const T>() + r * n;
        T* b = y.as<T>() + r * n;
        S mean = 0, scale = 0;
        if constexpr (std::is_same_v<T, float>) {
          mean = s.simd->reduce(reduction::sum, a, n) / static_cast<float>(n);
          const float var = s.simd->square_deviation(a, mean, n) / static_cast<float>(n);
          scale = 1.0f / std::sqrt(var + static_cast<float>(s.epsilon));
          if (gamma_count == n && beta_count == n) {
            s.simd->normalize(a, mean, scale, gamma.as<const float>(),
                              has_beta ? args.inputs[2].as<const float>() : nullptr, b, n);
            if (means != nullptr) means[r] = mean;
            if (scales != nullptr) scales[r] = scale;
            continue;
          }
        } else {
          S var = 0;
          for (i64 i = 0; i < n; ++i) mean += widen(a[i]);
          mean /= static_cast<S>(n);
          for (i64 i = 0; i < n; ++i) var += (widen(a[i]) - mean) * (widen(a[i]) - mean);
          scale = S(1) / std::sqrt(var / static_cast<S>(n) + static_cast<S>(s.epsilon));
        }
        for (i64 i = 0; i < n; ++i) {
          S v = (widen(a[i]) - mean) * scale * widen(gamma.as<const T>()[i % gamma_count]);
          if (has_beta) v += widen(args.inputs[2].as<const T>()[i % beta_count]);
          b[i] = narrow<T>(v);
        }
        if (means != nullptr) means[r] = static_cast<float>(mean);
        if (scales != nullptr) scales[r] = static_cast<float>(scale);
      }
    });
  });
}

/// Square sum over [c - floor((size-1)/2), c + ceil((size-1)/2)] of the channels.
inline errc run_lrn(const kernel_args& args) {
  const auto& s = state_of<normalization_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.rank < 2) return errc::rank_mismatch;
  const i64 channels = x.dims[1], n = product_of(x, 2, x.rank);
  if (x.count() == 0) return errc::ok;
  const i64 before = (s.size - 1) / 2, after = s.size - 1 - before;
  return with_real(x.type, [&]<class T>() {
    using S = typename accumulator<T>::type;
    parallel_parts(args.pool, x.dims[0] * channels, 20000 / n + 1, [&](i64, i64 begin, i64 end) {
      for (i64 p = begin; p < end; ++p) {
        const i64 c = p % channels;
        const i64 lo = c < before ? 0 : c - before;
        const i64 hi = c + after < channels ? c + after : channels - 1;
        const T* image = x.as<const T>() + (p - c) * n;
        for (i64 i = 0; i < n; ++i) {
          S sum = 0;
          for (i64 k = lo; k <= hi; ++k) sum += widen(image[k * n + i]) * widen(image[k * n + i]);
          const S root = std::pow(
              static_cast<S>(s.bias) + static_cast<S>(s.alpha) / static_cast<S>(s.size) * sum,
              static_cast<S>(s.beta));
          y.as<T>()[p * n + i] = narrow<T>(widen(image[c * n + i]) / root);
        }
      }
    });
  });
}

}  // namespace sod2::kernel_detail
