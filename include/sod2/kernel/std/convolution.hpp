// Conv and ConvTranspose, channels first. Conv is a product whose right operand is read from padded
// strips of the input (stride 1), or unfolded one cache-resident block at a time; depthwise Conv
// works on padded rows.
#pragma once

#include <cstdint>
#include <cstring>

#include <sod2/kernel/std/convolution_strip.hpp>
#include <sod2/kernel/std/product.hpp>
#include <sod2/kernel/std/window.hpp>

namespace sod2::kernel_detail {

struct convolution_state {
  const simd_table* simd = nullptr;
  window_attributes window;
  i64 group = 1;
  bool strips = false;  // Conv only; `window` states the kernel then
  // ConvTranspose only.
  packed_floats weights;  // [group][channels out * taps][channels in]
  i64 output_padding[3] = {0, 0, 0};
  bool output_shape = false;
};

inline bool convolution_type(dtype t) {
  return t == dtype::f32 || t == dtype::f64 || t == dtype::f16 || t == dtype::bf16;
}

// ---- unfolding
// -----------------------------------------------------------------------------------

/// The runs of a block of output pixels that lie in one output row.
struct pixel_runs {
  struct run {
    i64 z, y, x, n;
  };
  run runs[gemm_block_columns];
  i64 count = 0;

  void cut(const window& w, i64 first, i64 n) {
    count = 0;
    while (n > 0) {
      run& r = runs[count++];
      r.x = first % w.out[2];
      r.y = first / w.out[2] % w.out[1];
      r.z = first / w.out[2] / w.out[1];
      r.n = w.out[2] - r.x < n ? w.out[2] - r.x : n;
      first += r.n;
      n -= r.n;
    }
  }
};

inline void copy_short(float* to, const float* from, i64 n) {
  if (n >= 32) {
    std::memcpy(to, from, idx(n) * 4);
    return;
  }
  for (i64 i = 0; i < n; ++i) to[i] = from[i];
}

/// Row k of the unfolded input is (channel, kz, ky, kx); packs rows [k0, k0 + depth) for the pixels
/// of `runs` into rows of gemm_block_columns floats.
inline void unfold(const window& w, const float* x, const pixel_runs& runs, i64 k0, i64 depth,
                   i64 columns, i64 lanes, float* out) {
  const i64 taps = w.taps(), plane = w.in_count();
  const i64 padded = align_up(columns, lanes);
  for (i64 k = k0; k < k0 + depth; ++k, out += gemm_block_columns) {
    const i64 channel = k / taps, tap = k % taps;
    const i64 kx = tap % w.kernel[2], ky = tap / w.kernel[2] % w.kernel[1],
              kz = tap / w.kernel[2] / w.kernel[1];
    const float* base = x + channel * plane;
    float* to = out;
    for (i64 r = 0; r < runs.count; ++r) {
      const pixel_runs::run& run = runs.runs[r];
      const i64 z = run.z * w.stride[0] - w.pad[0] + kz * w.dilation[0];
      const i64 y = run.y * w.stride[1] - w.pad[1] + ky * w.dilation[1];
      const i64 n = run.n;
      if (z < 0 || z >= w.in[0] || y < 0 || y >= w.in[1]) {
        for (i64 i = 0; i < n; ++i) to[i] = 0;
        to += n;
        continue;
      }
      const i64 x0 = run.x * w.stride[2] - w.pad[2] + kx * w.dilation[2];
      const float* row = base + (z * w.in[1] + y) * w.in[2];
      const i64 s = w.stride[2];
      i64 lo = x0 < 0 ? ceil_div(-x0, s) : 0;
      if (lo > n) lo = n;
      i64 hi = w.in[2] > x0 ? ceil_div(w.in[2] - x0, s) : 0;
      hi = hi < lo ? lo : hi > n ? n : hi;
      for (i64 i = 0; i < lo; ++i) to[i] = 0;
      if (s == 1) {
        if (hi > lo) copy_short(to + lo, row + x0 + lo, hi - lo);
      } else {
        for (i64 i = lo; i < hi; ++i) to[i] = row[x0 + i * s];
      }
      for (i64 i = hi; i < n; ++i) to[i] = 0;
      to += n;
    }
    for (i64 i = columns; i < padded; ++i) out[i] = 0;
  }
}

// ---- Conv (1, 11)
// --------------------------------------------------------------------------------

inline result<kernel_state> prepare_conv(const prepare_args& args) {
  if (args.inputs.size() < 2) return error(errc::arity, "Conv needs two inputs");
  if (!convolution_type(input_type(args, 0)))
    return error(errc::type_mismatch, "Conv does not support this element type");
  auto* s = new (std::nothrow) convolution_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  s->simd = &simd_of(args.simd);
  s->group = args.attributes.integer("group", 1);
  if (s->group < 1) return error(errc::bad_attribute, "group below 1");
  const int rank = args.inputs[0].rank > 2 ? args.inputs[0].rank - 2 : 0;
  SOD2_TRY(decode_window(args, rank, s->window));
  window_attributes& w = s->window;
  if (const constant_view& k = args.inputs[1].constant; !w.has_kernel && k.present()) {
    for (int i = 0; i < rank && rank <= 3 && k.dims.size() == idx(rank + 2); ++i)
      w.kernel[3 - rank + i] = k.dims[idx(i + 2)];
    w.has_kernel = true;
  }
  const bool more = w.kernel[1] * w.kernel[2] > 1;
  s->strips = w.has_kernel && more && w.kernel[0] == 1 && (rank == 1 || rank == 2) &&
              w.stride[1] == 1 && w.stride[2] == 1;
  return owner;
}

inline dim conv_bytes(dim_context& context, const void* state, std::span<const operand_info> inputs,
                      std::span<const operand_info> outputs) {
  if (!outputs.empty() && outputs[0].type != dtype::f32) return context.constant(0);
  const auto& s = *static_cast<const convolution_state*>(state);
  if (!s.strips || inputs[1].rank < 3) return fixed_bytes(context, 4 * product_block_floats);
  // Depthwise kernels of many columns do not come here, but nobody knows yet how many there are.
  const bool upright = inputs[1].rank == 3;
  const window_attributes& w = s.window;
  const dim width = upright
                        ? context.one()
                        : context.add(outputs[0].dims.back(), (w.kernel[2] - 1) * w.dilation[2]);
  const i64 reach = upright ? (w.kernel[2] - 1) * w.dilation[2] : (w.kernel[1] - 1) * w.dilation[1];
  symbolic_domain d(context);
  // A strip has no more rows than the image; formulas are shorter where that is left out.
  const auto& out = outputs[0].dims;
  dim rows = out[out.size() - (upright ? 1 : 2)];
  if (!context.is_constant(rows)) rows = context.constant(strip_positions + 1);
  const dim strip =
      strip_floats(d, inputs[1].dims[1], rows, width, reach, w.kernel[1] * w.kernel[2]);
  return context.mul(context.max(strip, context.constant(product_block_floats)), 4);
}

inline void run_depthwise(const convolution_call& c, i64 columns) {
  const window& w = c.w;
  const i64 multiplier = c.features / c.group;
  const i64 in_plane = w.in_count(), out_plane = w.out_count(), taps = w.taps();
  const i64 lanes = c.simd->lanes;
  const i64 cost = out_plane * (taps + 4) + 1;
  parallel_parts(
      c.pool, c.batch * c.features, 200000 / cost + 1, [&](i64 part, i64 begin, i64 end) {
        float* const buffer = c.workspace + part * product_block_floats;
        float* const edge = buffer + window_buffer_floats;
        for (i64 p = begin; p < end; ++p) {
          const i64 feature = p % c.features, n = p / c.features;
          depthwise_row call;
          call.stride = w.stride[2];
          call.weights = c.weights + feature * taps;
          call.taps = taps;
          call.bias = c.bias != nullptr ? c.bias[feature] : 0;
          for (i64 z = 0; z < w.out[0]; ++z) {
            const float* plane =
                c.x + (n * c.channels + feature / multiplier) * in_plane + z * w.in[1] * w.in[2];
            float* const y = c.y + p * out_plane + z * w.out[1] * w.out[2];
            window_rows(w, plane, 0, columns, lanes, buffer,
                        [&](i64 oy, i64 ox, i64 count, const float* const* in) {
                          call.in = in;
                          float* const to = y + oy * w.out[2] + ox;
                          const i64 padded = align_up(count, lanes);
                          call.n = padded;
                          call.out = padded == count ? to : edge;
                          c.simd->depthwise(call);
                          if (padded != count) std::memcpy(to, edge, idx(count) * 4);
                        });
          }
          if (c.epilogue != nullptr)
            c.epilogue->apply(p * out_plane, out_plane, c.y + p * out_plane);
        }
      });
}

inline void run_convolution(const convolution_call& c, bool strips, bool upright) {
  const window& w = c.w;
  const simd_table& simd = *c.simd;
  const i64 features = c.features / c.group, channels = c.channels / c.group;
  const i64 depth = channels * w.taps(), pixels = w.out_count();
  if (c.batch * c.features * pixels == 0) return;
  if (channels == 1 && c.group > 1) {
    const i64 columns = window_columns(w, simd.lanes);
    if (columns >= simd.lanes) return run_depthwise(c, columns);
  }
  if (strips) return run_strips(c, strip_window(w, upright));
  const bool plain = w.taps() == 1 && w.in_count() == pixels && w.pad[0] == 0 && w.pad[1] == 0 &&
                     w.pad[2] == 0 && w.stride[0] == 1 && w.stride[1] == 1 && w.stride[2] == 1;
  const i64 blocks = ceil_div(pixels, gemm_block_columns);
  const i64 threads = c.pool.parallel_for != nullptr && c.pool.threads > 1 ? c.pool.threads : 1;
  i64 rows = features;
  if (threads > 1 && c.batch * c.group * blocks < 4 * threads) {
    rows = align_up(ceil_div(features, 2 * threads), simd.mr);
    if (rows > features) rows = features;
  }
  const i64 chunks = ceil_div(features, rows);
  const i64 step_k = depth_step(depth);
  const double flops =
      2.0 * static_cast<double>(rows) * static_cast<double>(depth) *
      static_cast<double>(pixels < gemm_block_columns ? pixels : gemm_block_columns);
  const i64 grain = flops > 1e6 ? 1 : static_cast<i64>(1e6 / (flops + 1)) + 1;
  parallel_parts(
      c.pool, c.batch * c.group * blocks * chunks, grain, [&](i64 part, i64 begin, i64 end) {
        float* const block = c.workspace + part * product_block_floats;
        pixel_runs runs;
        i64 packed = -1;
        for (i64 u = begin; u < end; ++u) {
          const i64 chunk = u % chunks, at = u / chunks;
          const i64 p0 = at % blocks * gemm_block_columns;
          const i64 g = at / blocks % c.group, n = at / blocks / c.group;
          const i64 columns = pixels - p0 < gemm_block_columns ? pixels - p0 : gemm_block_columns;
          const i64 m0 = chunk * rows, m = features - m0 < rows ? features - m0 : rows;
          const float* x = c.x + (n * c.channels + g * channels) * w.in_count();
          const i64 feature = g * features + m0;
          const i64 y_at = (n * c.features + feature) * pixels + p0;
          if (!plain && packed != at) runs.cut(w, p0, columns);
          gemm_block b;
          b.lda = depth;
          b.b = block;
          b.b_step = gemm_block_columns;
          b.b_panel = simd.nr;
          b.c = c.y + y_at;
          b.ldc = pixels;
          b.m = m;
          b.n = columns;
          b.bias = c.bias != nullptr ? c.bias + feature : nullptr;
          for (i64 k0 = 0; k0 == 0 || k0 < depth; k0 += step_k) {
            b.k = depth - k0 < step_k ? depth - k0 : step_k;
            if (packed != at || depth > step_k) {
              if (plain)
                pack_block(x + k0 * pixels + p0, pixels, 1, b.k, columns, simd.lanes, block);
              else
                unfold(w, x, runs, k0, b.k, columns, simd.lanes, block);
            }
            b.a = c.weights + feature * depth + k0;
            b.init = k0 > 0              ? gemm_init::accumulate
                     : b.bias != nullptr ? gemm_init::row_bias
                                         : gemm_init::zero;
            simd.gemm(b);
          }
          packed = at;
          if (c.epilogue != nullptr) c.epilogue->apply_rows(y_at, m, pixels, columns, b.c);
        }
      });
}

/// Any floating-point type, one output at a time.
template <class T>
void plain_convolution(const window& w, i64 batch, i64 channels, i64 features, i64 group,
                       const T* x, const T* weights, const T* bias, T* y,
                       const thread_pool_ref& pool) {
  using S = typename accumulator<T>::type;
  const i64 in_plane = w.in_count(), out_plane = w.out_count(), taps = w.taps();
  const i64 cg = channels / group, fg = features / group;
  parallel_parts(pool, batch * features, 100000 / (out_plane * taps * cg + 1) + 1,
                 [&](i64, i64 begin, i64 end) {
                   for (i64 p = begin; p < end; ++p) {
                     const i64 f = p % features, n = p / features;
                     const T* xg = x + (n * channels + f / fg * cg) * in_plane;
                     const T* wf = weights + f * cg * taps;
                     T* to = y + p * out_plane;
                     for (i64 oz = 0; oz < w.out[0]; ++oz)
                       for (i64 oy = 0; oy < w.out[1]; ++oy)
                         for (i64 ox = 0; ox < w.out[2]; ++ox) {
                           S sum = bias != nullptr ? widen(bias[f]) : S(0);
                           for_each_tap(w, oz, oy, ox, [&](i64 tap, i64 at) {
                             for (i64 c = 0; c < cg; ++c)
                               sum += widen(xg[c * in_plane + at]) * widen(wf[c * taps + tap]);
                           });
                           *to++ = narrow<T>(sum);
                         }
                   }
                 });
}

inline errc run_conv(const kernel_args& args) {
  const auto& s = state_of<convolution_state>(args);
  const tensor_view &x = args.inputs[0], &k = args.inputs[1], &y = args.outputs[0];
  convolution_call c;
  if (k.rank < 3 || k.rank != x.rank || !resolve_window(s.window, x, y, k.shape().subspan(2), c.w))
    return errc::unsupported;
  c.simd = s.simd;
  c.batch = x.dims[0];
  c.channels = x.dims[1];
  c.features = k.dims[0];
  c.group = s.group;
  if (c.channels % c.group != 0 || c.features % c.group != 0 || k.dims[1] * c.group != c.channels ||
      y.dims[1] != c.features)
    return errc::channels;
  bound_epilogue epilogue;
  if (const errc e = epilogue.bind(*s.simd, args.epilogue, y); e != errc::ok) return e;
  if (y.count() == 0) return errc::ok;
  if (y.type == dtype::f32) {
    c.x = x.as<const float>();
    c.weights = k.as<const float>();
    c.bias = has_input(args, 2) ? args.inputs[2].as<const float>() : nullptr;
    c.y = y.as<float>();
    c.epilogue = epilogue.active ? &epilogue : nullptr;
    c.pool = args.pool;
    c.workspace = reinterpret_cast<float*>(args.workspace);
    run_convolution(c, s.strips, x.rank == 3);
    return errc::ok;
  }
  const auto plain = [&]<class T>() {
    plain_convolution<T>(
        c.w, c.batch, c.channels, c.features, c.group, x.as<const T>(), k.as<const T>(),
        has_input(args, 2) ? args.inputs[2].as<const T>() : nullptr, y.as<T>(), args.pool);
  };
  switch (y.type) {
    case dtype::f64: plain.template operator()<double>(); break;
    case dtype::f16: plain.template operator()<half>(); break;
    case dtype::bf16: plain.template operator()<brain>(); break;
    default: return errc::unsupported;
  }
  epilogue.apply(0, y.count(), y.data);
  return errc::ok;
}

// ---- ConvTranspose (1, 11)
// -----------------------------------------------------------------------

inline constexpr i64 transpose_rows = 64;
/// Floats per thread: a block of the input, a block of weights, and their product.
inline constexpr i64 transpose_workspace = product_block_floats +
                                           transpose_rows * (gemm_block_depth + 8) +
                                           transpose_rows * gemm_block_columns;

inline result<kernel_state> prepare_conv_transpose(const prepare_args& args) {
  result<kernel_state> prepared = prepare_conv(args);
  if (!prepared) return prepared;
  kernel_state owner = *std::move(prepared);
  auto* s = static_cast<convolution_state*>(owner.data);
  const auto padding = args.attributes.integers("output_padding");
  const auto shape = args.attributes.integers("output_shape");
  const int rank = s->window.rank != 0
                       ? s->window.rank
                       : static_cast<int>(padding.empty() ? shape.size() : padding.size());
  if (static_cast<int>(padding.size()) > 3 ||
      (!padding.empty() && static_cast<int>(padding.size()) != rank))
    return error(errc::bad_attribute, "output_padding has a wrong rank");
  for (std::size_t i = 0; i < padding.size(); ++i)
    s->output_padding[3 - idx(rank) + i] = padding[i];
  s->output_shape = !shape.empty();
  const constant_view& w = args.inputs[1].constant;
  if (w.type == dtype::f32 && w.dims.size() >= 3 && w.count() > 0 && w.dims[0] % s->group == 0) {
    const i64 channels = w.dims[0] / s->group, rows = w.count() / w.dims[0];
    packed_floats copy;
    if (!copy.allocate(w.count()) || !s->weights.allocate(w.count()))
      return error(errc::out_of_memory);
    read_floats(w, copy.data());
    for (i64 g = 0; g < s->group; ++g)
      for (i64 c = 0; c < channels; ++c)
        for (i64 r = 0; r < rows; ++r)
          s->weights.data()[(g * rows + r) * channels + c] =
              copy.data()[(g * channels + c) * rows + r];
    owner.bytes = s->weights.bytes();
    owner.consumed = 0;  // its dims say the kernel's size and its data are small: keep the source
  }
  return owner;
}

inline dim conv_transpose_bytes(dim_context& context, const void*, std::span<const operand_info>,
                                std::span<const operand_info> outputs) {
  if (!outputs.empty() && outputs[0].type != dtype::f32) return context.constant(0);
  return fixed_bytes(context, 4 * transpose_workspace);
}

/// Adds the products of one tap: row[j] belongs to input pixel first + j.
template <class S>
void fold_tap(const window& w, i64 tap, i64 first, i64 n, const S* row, S* plane) {
  const i64 kx = tap % w.kernel[2], ky = tap / w.kernel[2] % w.kernel[1],
            kz = tap / w.kernel[2] / w.kernel[1];
  while (n > 0) {
    const i64 ix = first % w.in[2], iy = first / w.in[2] % w.in[1], iz = first / w.in[2] / w.in[1];
    const i64 take = w.in[2] - ix < n ? w.in[2] - ix : n;
    const i64 z = iz * w.stride[0] - w.pad[0] + kz * w.dilation[0];
    const i64 y = iy * w.stride[1] - w.pad[1] + ky * w.dilation[1];
    if (z >= 0 && z < w.out[0] && y >= 0 && y < w.out[1]) {
      const i64 s = w.stride[2];
      const i64 x0 = ix * s - w.pad[2] + kx * w.dilation[2];
      i64 lo = x0 < 0 ? ceil_div(-x0, s) : 0;
      i64 hi = w.out[2] > x0 ? ceil_div(w.out[2] - x0, s) : 0;
      if (hi > take) hi = take;
      S* to = plane + (z * w.out[1] + y) * w.out[2] + x0;
      if (s == 1)
        for (i64 i = lo; i < hi; ++i) to[i] += row[i];
      else
        for (i64 i = lo; i < hi; ++i) to[i * s] += row[i];
    }
    row += take;
    first += take;
    n -= take;
  }
}

inline void run_transpose(const convolution_call& c, const float* rows_of_weights) {
  const window& w = c.w;
  const simd_table& simd = *c.simd;
  const i64 channels = c.channels / c.group, features = c.features / c.group;
  const i64 taps = w.taps(), in_plane = w.in_count(), out_plane = w.out_count();
  const i64 step_k = depth_step(channels);
  const i64 cost = in_plane * taps * channels + out_plane;
  parallel_parts(
      c.pool, c.batch * c.features, 500000 / (cost + 1) + 1, [&](i64 part, i64 begin, i64 end) {
        float* const block = c.workspace + part * transpose_workspace;
        float* const a_block = block + product_block_floats;
        float* const columns = a_block + transpose_rows * (gemm_block_depth + 8);
        for (i64 p = begin; p < end;) {
          // Output planes [p, stop) share one group of one image.
          const i64 n = p / c.features, f = p % c.features, g = f / features;
          i64 stop = p - f % features + features;
          if (stop > end) stop = end;
          for (i64 q = p; q < stop; ++q) {
            float* y = c.y + q * out_plane;
            const float start = c.bias != nullptr ? c.bias[q % c.features] : 0;
            for (i64 i = 0; i < out_plane; ++i) y[i] = start;
          }
          const i64 row0 = f % features * taps, row1 = row0 + (stop - p) * taps;
          const float* x = c.x + (n * c.channels + g * channels) * in_plane;
          for (i64 j0 = 0; j0 < in_plane; j0 += gemm_block_columns) {
            const i64 width =
                in_plane - j0 < gemm_block_columns ? in_plane - j0 : gemm_block_columns;
            for (i64 r0 = row0; r0 < row1; r0 += transpose_rows) {
              const i64 rows = row1 - r0 < transpose_rows ? row1 - r0 : transpose_rows;
              gemm_block b;
              b.b = block;
              b.b_step = gemm_block_columns;
              b.b_panel = simd.nr;
              b.c = columns;
              b.ldc = gemm_block_columns;
              b.m = rows;
              b.n = width;
              for (i64 k0 = 0; k0 < channels; k0 += step_k) {
                b.k = channels - k0 < step_k ? channels - k0 : step_k;
                if (r0 == row0 || channels > step_k)
                  pack_block(x + k0 * in_plane + j0, in_plane, 1, b.k, width, simd.lanes, block);
                if (rows_of_weights != nullptr) {
                  b.a = rows_of_weights + (g * features * taps + r0) * channels + k0;
                  b.lda = channels;
                } else {
                  const float* from = c.weights + (g * channels + k0) * features * taps + r0;
                  for (i64 k = 0; k < b.k; ++k)
                    for (i64 r = 0; r < rows; ++r)
                      a_block[r * b.k + k] = from[k * features * taps + r];
                  b.a = a_block;
                  b.lda = b.k;
                }
                b.init = k0 > 0 ? gemm_init::accumulate : gemm_init::zero;
                simd.gemm(b);
              }
              for (i64 r = 0; r < rows; ++r) {
                const i64 row = r0 + r;
                fold_tap<float>(w, row % taps, j0, width, columns + r * gemm_block_columns,
                                c.y + (p + (row - row0) / taps) * out_plane);
              }
            }
          }
          if (c.epilogue != nullptr)
            c.epilogue->apply(p * out_plane, (stop - p) * out_plane, c.y + p * out_plane);
          p = stop;
        }
      });
}

template <class T>
void plain_transpose(const convolution_call& c, const T* x, const T* weights, const T* bias, T* y) {
  using S = typename accumulator<T>::type;
  const window& w = c.w;
  const i64 channels = c.channels / c.group, features = c.features / c.group;
  const i64 taps = w.taps(), in_plane = w.in_count(), out_plane = w.out_count();
  for (i64 p = 0; p < c.batch * c.features; ++p) {
    const i64 n = p / c.features, f = p % c.features, g = f / features;
    // Gather: the inputs whose windows hold this output, so that 16-bit types sum in float.
    for (i64 o = 0; o < out_plane; ++o) {
      const i64 at[3] = {o / w.out[2] / w.out[1], o / w.out[2] % w.out[1], o % w.out[2]};
      S sum = bias != nullptr ? widen(bias[f]) : S(0);
      for (i64 tap = 0; tap < taps; ++tap) {
        const i64 k[3] = {tap / w.kernel[2] / w.kernel[1], tap / w.kernel[2] % w.kernel[1],
                          tap % w.kernel[2]};
        i64 from = 0;
        bool inside = true;
        for (int d = 0; d < 3; ++d) {
          const i64 v = at[d] + w.pad[d] - k[d] * w.dilation[d];
          inside = inside && v >= 0 && v % w.stride[d] == 0 && v / w.stride[d] < w.in[d];
          from = from * w.in[d] + (inside ? v / w.stride[d] : 0);
        }
        if (!inside) continue;
        for (i64 ch = 0; ch < channels; ++ch)
          sum += widen(x[(n * c.channels + g * channels + ch) * in_plane + from]) *
                 widen(weights[((g * channels + ch) * features + f % features) * taps + tap]);
      }
      y[p * out_plane + o] = narrow<T>(sum);
    }
  }
}

inline errc run_conv_transpose(const kernel_args& args) {
  const auto& s = state_of<convolution_state>(args);
  const tensor_view &x = args.inputs[0], &k = args.inputs[1], &y = args.outputs[0];
  convolution_call c;
  if (k.rank < 3 || k.rank != x.rank) return errc::unsupported;
  window_attributes attributes = s.window;
  attributes.padding = auto_pad::notset;
  if (!resolve_window(attributes, x, y, k.shape().subspan(2), c.w)) return errc::unsupported;
  if (s.output_shape || s.window.padding == auto_pad::same_upper ||
      s.window.padding == auto_pad::same_lower) {
    for (int d = 0; d < 3; ++d) {
      i64 total = (c.w.in[d] - 1) * c.w.stride[d] + s.output_padding[d] +
                  (c.w.kernel[d] - 1) * c.w.dilation[d] + 1 - c.w.out[d];
      if (total < 0) total = 0;
      c.w.pad[d] = s.window.padding == auto_pad::same_upper ? total / 2 : total - total / 2;
    }
  } else if (s.window.padding == auto_pad::valid) {
    for (i64& pad : c.w.pad) pad = 0;
  }
  c.simd = s.simd;
  c.batch = x.dims[0];
  c.channels = x.dims[1];
  c.group = s.group;
  c.features = k.dims[1] * s.group;
  if (k.dims[0] != c.channels || c.channels % c.group != 0 || y.dims[1] != c.features)
    return errc::channels;
  bound_epilogue epilogue;
  if (const errc e = epilogue.bind(*s.simd, args.epilogue, y); e != errc::ok) return e;
  if (y.count() == 0) return errc::ok;
  if (y.type == dtype::f32) {
    c.x = x.as<const float>();
    c.weights = k.as<const float>();
    c.bias = has_input(args, 2) ? args.inputs[2].as<const float>() : nullptr;
    c.y = y.as<float>();
    c.epilogue = epilogue.active ? &epilogue : nullptr;
    c.pool = args.pool;
    c.workspace = reinterpret_cast<float*>(args.workspace);
    run_transpose(c, s.weights.data());
    return errc::ok;
  }
  const auto plain = [&]<class T>() {
    plain_transpose<T>(c, x.as<const T>(), k.as<const T>(),
                       has_input(args, 2) ? args.inputs[2].as<const T>() : nullptr, y.as<T>());
  };
  switch (y.type) {
    case dtype::f64: plain.template operator()<double>(); break;
    case dtype::f16: plain.template operator()<half>(); break;
    case dtype::bf16: plain.template operator()<brain>(); break;
    default: return errc::unsupported;
  }
  epilogue.apply(0, y.count(), y.data);
  return errc::ok;
}

}  // namespace sod2::kernel_detail
