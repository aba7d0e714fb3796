// MaxPool, AveragePool, LpPool and their global forms, channels first.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <sod2/kernel/std/product.hpp>
#include <sod2/kernel/std/window.hpp>

namespace sod2::kernel_detail {

struct pool_state {
  const simd_table* simd = nullptr;
  window_attributes window;
  bool count_include_pad = false;
  bool ceil_mode = false;
  bool column_major = false;  // MaxPool storage_order of Indices
  i64 p = 2;
};

inline result<kernel_state> prepare_pool(const prepare_args& args) {
  auto* s = new (std::nothrow) pool_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  s->simd = &simd_of(args.simd);
  const int rank = !args.inputs.empty() && args.inputs[0].rank > 2 ? args.inputs[0].rank - 2 : 0;
  SOD2_TRY(decode_window(args, rank, s->window));
  s->count_include_pad = args.attributes.integer("count_include_pad", 0) != 0;
  s->ceil_mode = args.attributes.integer("ceil_mode", 0) != 0;
  s->column_major = args.attributes.integer("storage_order", 0) != 0;
  const attribute_view p = args.attributes("p");
  s->p = p.kind == attribute_kind::real      ? static_cast<i64>(p.real)
         : p.kind == attribute_kind::integer ? p.integer
                                             : 2;
  return owner;
}
inline result<kernel_state> prepare_window_pool(const prepare_args& args) {
  if (args.attributes.integers("kernel_shape").empty())
    return error(errc::missing_attribute, "pool needs kernel_shape");
  return prepare_pool(args);
}

inline dim pool_bytes(dim_context& context, const void*, std::span<const operand_info>,
                      std::span<const operand_info> outputs) {
  if (!outputs.empty() && outputs[0].type != dtype::f32) return context.constant(0);
  return fixed_bytes(context, 4 * (window_buffer_floats + window_max_columns));
}

template <class F>
errc with_pool_type(dtype type, F&& f) {
  switch (type) {
    case dtype::f32: f.template operator()<float>(); return errc::ok;
    case dtype::f64: f.template operator()<double>(); return errc::ok;
    case dtype::f16: f.template operator()<half>(); return errc::ok;
    case dtype::bf16: f.template operator()<brain>(); return errc::ok;
    case dtype::i8: f.template operator()<std::int8_t>(); return errc::ok;
    case dtype::u8: f.template operator()<std::uint8_t>(); return errc::ok;
    default: return errc::unsupported;
  }
}

// ---- MaxPool (1, 8, 10, 11, 12)
// ------------------------------------------------------------------

template <class T>
void plain_max_pool(const window& w, i64 planes, const T* x, T* y, i64* indices, bool column_major,
                    const thread_pool_ref& pool) {
  using S = typename accumulator<T>::type;
  const i64 in_plane = w.in_count(), out_plane = w.out_count();
  parallel_parts(pool, planes, 100000 / (out_plane * w.taps() + 1) + 1,
                 [&](i64, i64 begin, i64 end) {
                   for (i64 p = begin; p < end; ++p) {
                     const T* plane = x + p * in_plane;
                     i64 o = p * out_plane;
                     for (i64 oz = 0; oz < w.out[0]; ++oz)
                       for (i64 oy = 0; oy < w.out[1]; ++oy)
                         for (i64 ox = 0; ox < w.out[2]; ++ox, ++o) {
                           S best{};
                           i64 where = -1;
                           for_each_tap(w, oz, oy, ox, [&](i64, i64 at) {
                             const S v = widen(plane[at]);
                             if (where < 0 || v > best || (v != v && best == best)) {
                               best = v;
                               where = at;
                             }
                           });
                           if (where < 0) {  // a window wholly inside the padding
                             if constexpr (is_real<S>)
                               best = -std::numeric_limits<S>::infinity();
                             else
                               best = std::numeric_limits<S>::lowest();
                             where = 0;
                           }
                           y[o] = narrow<T>(best);
                           if (indices == nullptr) continue;
                           if (column_major) {
                             const i64 ix = where % w.in[2], iy = where / w.in[2] % w.in[1],
                                       iz = where / w.in[2] / w.in[1];
                             where = (ix * w.in[1] + iy) * w.in[0] + iz;
                           }
                           indices[o] = p * in_plane + where;
                         }
                   }
                 });
}

inline errc run_max_pool(const kernel_args& args) {
  const auto& s = state_of<pool_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  window w;
  if (!resolve_window(s.window, x, y, {}, w)) return errc::unsupported;
  i64* indices =
      args.outputs.size() > 1 && args.outputs[1].present() ? args.outputs[1].as<i64>() : nullptr;
  const i64 planes = y.dims[0] * y.dims[1];
  if (y.count() == 0) return errc::ok;
  const i64 columns = window_columns(w, s.simd->lanes);
  if (y.type == dtype::f32 && indices == nullptr && columns >= s.simd->lanes) {
    const i64 out_plane = w.out_count(), lanes = s.simd->lanes;
    float* const workspace = reinterpret_cast<float*>(args.workspace);
    parallel_parts(
        args.pool, planes, 200000 / (out_plane * w.taps() + 1) + 1,
        [&](i64 part, i64 begin, i64 end) {
          float* const buffer = workspace + part * (window_buffer_floats + window_max_columns);
          float* const edge = buffer + window_buffer_floats;
          max_row call;
          call.stride = w.stride[2];
          call.taps = w.taps();
          for (i64 p = begin; p < end; ++p)
            for (i64 z = 0; z < w.out[0]; ++z) {
              float* const to = y.as<float>() + p * out_plane + z * w.out[1] * w.out[2];
              window_rows(w, x.as<const float>() + p * w.in_count() + z * w.in[1] * w.in[2],
                          -std::numeric_limits<float>::infinity(), columns, lanes, buffer,
                          [&](i64 oy, i64 ox, i64 n, const float* const* taps) {
                            call.in = taps;
                            call.n = align_up(n, lanes);
                            float* const row = to + oy * w.out[2] + ox;
                            call.out = call.n == n ? row : edge;
                            s.simd->max_rows(call);
                            if (call.n != n) std::memcpy(row, edge, idx(n) * 4);
                          });
            }
        });
    return errc::ok;
  }
  return with_pool_type(y.type, [&]<class T>() {
    plain_max_pool<T>(w, planes, x.as<const T>(), y.as<T>(), indices, s.column_major, args.pool);
  });
}

// ---- AveragePool (1, 7, 10, 11, 19), LpPool (1, 2, 11, 18)
// ---------------------------------------

/// Elements of the window of output o along one axis that count: those inside the input, or inside
/// input and stated padding when padding counts (what ceil_mode adds beyond never does).
inline i64 window_extent(const window& w, int axis, i64 o, bool include_pad) {
  const i64 first = o * w.stride[axis] - w.pad[axis];
  const i64 lo = include_pad ? -w.pad[axis] : 0;
  const i64 hi = include_pad ? w.in[axis] + w.pad_end[axis] : w.in[axis];
  i64 n = 0;
  for (i64 k = 0; k < w.kernel[axis]; ++k) {
    const i64 at = first + k * w.dilation[axis];
    if (at >= lo && at < hi) ++n;
  }
  return n;
}

template <class T>
void plain_sum_pool(const window& w, i64 planes, const T* x, T* y, bool include_pad, i64 p_norm,
                    const thread_pool_ref& pool) {
  using S = typename accumulator<T>::type;
  const i64 in_plane = w.in_count(), out_plane = w.out_count();
  parallel_parts(pool, planes, 100000 / (out_plane * w.taps() + 1) + 1,
                 [&](i64, i64 begin, i64 end) {
                   for (i64 p = begin; p < end; ++p) {
                     const T* plane = x + p * in_plane;
                     i64 o = p * out_plane;
                     for (i64 oz = 0; oz < w.out[0]; ++oz)
                       for (i64 oy = 0; oy < w.out[1]; ++oy)
                         for (i64 ox = 0; ox < w.out[2]; ++ox, ++o) {
                           double sum = 0;
                           for_each_tap(w, oz, oy, ox, [&](i64, i64 at) {
                             const auto v = static_cast<double>(widen(plane[at]));
                             if (p_norm == 0)
                               sum += v;
                             else if (p_norm == 1)
                               sum += std::fabs(v);
                             else if (p_norm == 2)
                               sum += v * v;
                             else
                               sum += std::pow(std::fabs(v), static_cast<double>(p_norm));
                           });
                           if (p_norm == 0) {
                             const i64 n = window_extent(w, 0, oz, include_pad) *
                                           window_extent(w, 1, oy, include_pad) *
                                           window_extent(w, 2, ox, include_pad);
                             sum = n > 0 ? sum / static_cast<double>(n) : 0;
                           } else if (p_norm == 2) {
                             sum = std::sqrt(sum);
                           } else if (p_norm != 1) {
                             sum = std::pow(sum, 1.0 / static_cast<double>(p_norm));
                           }
                           y[o] = narrow<T>(static_cast<S>(sum));
                         }
                   }
                 });
}

inline errc run_average_pool(const kernel_args& args) {
  const auto& s = state_of<pool_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  window w;
  if (!resolve_window(s.window, x, y, {}, w)) return errc::unsupported;
  const i64 planes = y.dims[0] * y.dims[1];
  if (y.count() == 0) return errc::ok;
  const i64 columns = window_columns(w, s.simd->lanes);
  if (y.type == dtype::f32 && columns >= s.simd->lanes) {
    const i64 out_plane = w.out_count(), lanes = s.simd->lanes;
    float* const workspace = reinterpret_cast<float*>(args.workspace);
    float ones[window_max_taps];
    for (float& one : ones) one = 1;
    parallel_parts(
        args.pool, planes, 200000 / (out_plane * w.taps() + 1) + 1,
        [&](i64 part, i64 begin, i64 end) {
          float* const buffer = workspace + part * (window_buffer_floats + window_max_columns);
          float* const edge = buffer + window_buffer_floats;
          depthwise_row call;
          call.stride = w.stride[2];
          call.taps = w.taps();
          call.weights = ones;
          call.out = edge;
          for (i64 p = begin; p < end; ++p)
            for (i64 z = 0; z < w.out[0]; ++z) {
              float* const to = y.as<float>() + p * out_plane + z * w.out[1] * w.out[2];
              window_rows(
                  w, x.as<const float>() + p * w.in_count() + z * w.in[1] * w.in[2], 0, columns,
                  lanes, buffer, [&](i64 oy, i64 ox, i64 n, const float* const* taps) {
                    call.in = taps;
                    call.n = align_up(n, lanes);
                    s.simd->depthwise(call);
                    float* const row = to + oy * w.out[2] + ox;
                    const i64 high = window_extent(w, 1, oy, s.count_include_pad);
                    // Interior columns share one count.
                    i64 last = -1;
                    float divisor = 1;
                    for (i64 i = 0; i < n; ++i) {
                      const i64 at = (ox + i) * w.stride[2] - w.pad[2];
                      const bool whole =
                          at >= 0 && at + (w.kernel[2] - 1) * w.dilation[2] < w.in[2];
                      const i64 wide =
                          whole ? w.kernel[2] : window_extent(w, 2, ox + i, s.count_include_pad);
                      if (wide != last) {
                        last = wide;
                        divisor = static_cast<float>(high * wide);
                      }
                      row[i] = divisor > 0 ? edge[i] / divisor : 0;
                    }
                  });
            }
        });
    return errc::ok;
  }
  return with_pool_type(y.type, [&]<class T>() {
    plain_sum_pool<T>(w, planes, x.as<const T>(), y.as<T>(), s.count_include_pad, 0, args.pool);
  });
}

inline errc run_lp_pool(const kernel_args& args) {
  const auto& s = state_of<pool_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  window w;
  if (!resolve_window(s.window, x, y, {}, w)) return errc::unsupported;
  if (s.p < 1) return errc::unsupported;
  return with_pool_type(y.type, [&]<class T>() {
    plain_sum_pool<T>(w, y.dims[0] * y.dims[1], x.as<const T>(), y.as<T>(), false, s.p, args.pool);
  });
}

// ---- global pools (1)
// ----------------------------------------------------------------------------

enum class global_pool : std::uint8_t { average, max, lp };

template <global_pool Kind>
errc run_global_pool(const kernel_args& args) {
  const auto& s = state_of<pool_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.rank < 2) return errc::rank_mismatch;
  const i64 planes = x.dims[0] * x.dims[1], n = product_of(x, 2, x.rank);
  return with_pool_type(y.type, [&]<class T>() {
    parallel_parts(args.pool, planes, 100000 / (n + 1) + 1, [&](i64, i64 begin, i64 end) {
      for (i64 p = begin; p < end; ++p) {
        const T* plane = x.as<const T>() + p * n;
        if constexpr (std::is_same_v<T, float>) {
          if (Kind == global_pool::average) {
            y.as<float>()[p] = s.simd->reduce(reduction::sum, plane, n) / static_cast<float>(n);
            continue;
          }
          if (Kind == global_pool::max) {
            y.as<float>()[p] = s.simd->reduce(reduction::max, plane, n);
            continue;
          }
        }
        double acc = Kind == global_pool::max ? -std::numeric_limits<double>::infinity() : 0;
        for (i64 i = 0; i < n; ++i) {
          const auto v = static_cast<double>(widen(plane[i]));
          if (Kind == global_pool::average)
            acc += v;
          else if (Kind == global_pool::max)
            acc = v > acc || v != v ? v : acc;
          else
            acc += std::pow(std::fabs(v), static_cast<double>(s.p));
        }
        if (Kind == global_pool::average) acc /= static_cast<double>(n);
        if (Kind == global_pool::lp) acc = std::pow(acc, 1.0 / static_cast<double>(s.p));
        y.as<T>()[p] = narrow<T>(static_cast<typename accumulator<T>::type>(acc));
      }
    });
  });
}

}  // namespace sod2::kernel_detail
