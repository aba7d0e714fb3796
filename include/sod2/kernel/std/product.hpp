// Matrix products: MatMul and Gemm over one blocked driver.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <Eigen/Core>

#include <sod2/kernel/std/support.hpp>

namespace sod2::kernel_detail {

// ---- packing
// -------------------------------------------------------------------------------------

/// Packs a constant right operand, B(k, j) = b[k * k_step + j * column_step], times `scale`, into
/// panels of `nr` columns over the whole depth; the last panel is padded with zeros.
inline void pack_panels(const float* b, i64 k_step, i64 column_step, i64 depth, i64 columns, i64 nr,
                        float scale, float* out) {
  for (i64 j0 = 0; j0 < columns; j0 += nr) {
    const i64 width = columns - j0 < nr ? columns - j0 : nr;
    for (i64 k = 0; k < depth; ++k) {
      const float* row = b + k * k_step + j0 * column_step;
      for (i64 j = 0; j < width; ++j) out[j] = row[j * column_step] * scale;
      for (i64 j = width; j < nr; ++j) out[j] = 0;
      out += nr;
    }
  }
}

/// Packs a block of at most gemm_block_depth x gemm_block_columns into rows of gemm_block_columns.
inline void pack_block(const float* b, i64 k_step, i64 column_step, i64 depth, i64 columns,
                       i64 lanes, float* out) {
  const i64 padded = align_up(columns, lanes);
  if (column_step == 1) {
    for (i64 k = 0; k < depth; ++k) {
      float* row = out + k * gemm_block_columns;
      std::memcpy(row, b + k * k_step, idx(columns) * 4);
      for (i64 j = columns; j < padded; ++j) row[j] = 0;
    }
    return;
  }
  for (i64 k0 = 0; k0 < depth; k0 += 16) {  // a cache line of every column at a time
    const i64 k1 = k0 + 16 < depth ? k0 + 16 : depth;
    for (i64 j = 0; j < columns; ++j)
      for (i64 k = k0; k < k1; ++k)
        out[k * gemm_block_columns + j] = b[k * k_step + j * column_step];
    for (i64 k = k0; k < k1; ++k)
      for (i64 j = columns; j < padded; ++j) out[k * gemm_block_columns + j] = 0;
  }
}

/// Equal pieces of at most gemm_block_depth; depends on the depth alone, so sums never change.
inline i64 depth_step(i64 depth) {
  if (depth <= gemm_block_depth) return depth > 0 ? depth : 1;
  const i64 pieces = ceil_div(depth, gemm_block_depth);
  return align_up(ceil_div(depth, pieces), 8);
}

// ---- driver
// --------------------------------------------------------------------------------------

/// C = alpha * A * B + beta * D, then an epilogue. A is row-major with step `lda`, or transposed.
struct product_call {
  const simd_table* simd = nullptr;
  i64 batches = 1, m = 0, n = 0, k = 0;
  const float* a = nullptr;
  i64 lda = 0;
  bool a_transposed = false;
  const float* b = nullptr;  // plain operand ..
  i64 b_k_step = 0, b_column_step = 1;
  const float* panels = nullptr;  // .. or packed by pack_panels
  float* c = nullptr;
  // Batch offsets in elements, by mixed radix over the batch dims.
  int batch_rank = 0;
  i64 batch_dims[max_rank] = {};
  i64 a_step[max_rank] = {}, b_step[max_rank] = {};
  float alpha = 1, beta = 0;
  const float* d = nullptr;
  i64 d_row_step = 0, d_column_step = 0;
  const bound_epilogue* epilogue = nullptr;
  thread_pool_ref pool{};
  float* workspace = nullptr;  // per thread: product_workspace floats
};

inline constexpr i64 product_rows_transposed = 64;
/// Floats per thread: a block of B, and a block of A if it is transposed.
inline constexpr i64 product_block_floats = (gemm_block_depth + 8) * gemm_block_columns;
inline constexpr i64 product_workspace(bool plain_b, bool a_transposed) {
  return (plain_b ? product_block_floats : 0) +
         (a_transposed ? product_rows_transposed * (gemm_block_depth + 8) : 0);
}

inline void run_product(const product_call& p) {
  if (p.batches == 0 || p.m == 0 || p.n == 0) return;
  const simd_table& simd = *p.simd;
  const i64 groups = ceil_div(p.n, gemm_block_columns);
  const i64 threads = p.pool.parallel_for != nullptr && p.pool.threads > 1 ? p.pool.threads : 1;
  // Rows of a unit: few enough that the output block stays in L2, many enough to reuse a block of
  // B.
  i64 rows = p.panels != nullptr ? 192 : 1024;
  if (p.a_transposed) rows = product_rows_transposed;
  if (threads > 1 && p.batches * groups < 4 * threads) {
    const i64 wanted = align_up(ceil_div(p.m, 2 * threads), simd.mr);
    if (wanted < rows) rows = wanted;
  }
  if (rows > p.m) rows = p.m;
  const i64 chunks = ceil_div(p.m, rows);
  const i64 units = p.batches * groups * chunks;
  const bool bias_first =
      p.d != nullptr && p.alpha == 1 && p.beta == 1 && p.d_row_step == 0 && p.d_column_step == 1;
  const bool post = !bias_first && (p.alpha != 1 || (p.d != nullptr && p.beta != 0));
  // With one row block nothing reuses a packed B: read it where it is.
  const bool in_place = p.panels == nullptr && p.b_column_step == 1 && p.m <= simd.mr;
  const i64 step_k = depth_step(p.k);
  const i64 scratch = product_workspace(p.panels == nullptr, p.a_transposed);
  const double flops = 2.0 * static_cast<double>(rows) *
                       static_cast<double>(p.n < gemm_block_columns ? p.n : gemm_block_columns) *
                       static_cast<double>(p.k + 4);
  const i64 grain = flops > 1e6 ? 1 : static_cast<i64>(1e6 / (flops + 1)) + 1;

  parallel_parts(p.pool, units, grain, [&](i64 part, i64 begin, i64 end) {
    float* const block = p.workspace == nullptr ? nullptr : p.workspace + part * scratch;
    float* const a_block =
        block == nullptr || p.panels != nullptr ? block : block + product_block_floats;
    i64 packed_group = -1;  // batch * groups + group whose only depth step is in `block`
    for (i64 u = begin; u < end; ++u) {
      const i64 chunk = u % chunks, group = u / chunks % groups, batch = u / chunks / groups;
      const i64 i0 = chunk * rows, j0 = group * gemm_block_columns;
      const i64 m = p.m - i0 < rows ? p.m - i0 : rows;
      const i64 n = p.n - j0 < gemm_block_columns ? p.n - j0 : gemm_block_columns;
      i64 a_at = 0, b_at = 0, rest = batch;
      for (int d = p.batch_rank - 1; d >= 0; --d) {
        const i64 index = rest % p.batch_dims[d];
        rest /= p.batch_dims[d];
        a_at += index * p.a_step[d];
        b_at += index * p.b_step[d];
      }
      const i64 c_at = (batch * p.m + i0) * p.n + j0;
      float* const c = p.c + c_at;
      gemm_block g;
      g.c = c;
      g.ldc = p.n;
      g.m = m;
      g.bias = bias_first ? p.d + j0 : nullptr;
      for (i64 k0 = 0; k0 == 0 || k0 < p.k; k0 += step_k) {
        const i64 k = p.k - k0 < step_k ? p.k - k0 : step_k;
        g.k = k;
        g.init = k0 > 0       ? gemm_init::accumulate
                 : bias_first ? gemm_init::column_bias
                              : gemm_init::zero;
        if (p.a_transposed) {
          const float* a = p.a + a_at + k0 * p.lda + i0;
          for (i64 i1 = 0; i1 < m; i1 += 16) {
            const i64 i2 = i1 + 16 < m ? i1 + 16 : m;
            for (i64 kk = 0; kk < k; ++kk)
              for (i64 i = i1; i < i2; ++i) a_block[i * k + kk] = a[kk * p.lda + i];
          }
          g.a = a_block;
          g.lda = k;
        } else {
          g.a = p.a + a_at + i0 * p.lda + k0;
          g.lda = p.lda;
        }
        g.n = n;
        if (p.panels != nullptr) {
          g.b = p.panels + (j0 / simd.nr * p.k + k0) * simd.nr;
          g.b_step = simd.nr;
          g.b_panel = p.k * simd.nr;
          simd.gemm(g);
          continue;
        }
        const float* b = p.b + b_at + k0 * p.b_k_step + j0 * p.b_column_step;
        if (in_place) {
          const i64 tail = n % simd.lanes;
          g.n = n - tail;
          g.b = b;
          g.b_step = p.b_k_step;
          g.b_panel = simd.nr;
          if (g.n > 0) simd.gemm(g);
          if (tail > 0) {  // a whole vector would read past the end of the operand
            pack_block(b + g.n, p.b_k_step, 1, k, tail, simd.lanes, block);
            gemm_block t = g;
            t.c = c + g.n;
            if (t.bias != nullptr) t.bias += g.n;
            t.n = tail;
            t.b = block;
            t.b_step = gemm_block_columns;
            simd.gemm(t);
          }
          continue;
        }
        const i64 name = p.k <= step_k ? batch * groups + group : -1;
        if (name < 0 || name != packed_group)
          pack_block(b, p.b_k_step, p.b_column_step, k, n, simd.lanes, block);
        packed_group = name;
        g.b = block;
        g.b_step = gemm_block_columns;
        g.b_panel = simd.nr;
        simd.gemm(g);
      }
      if (post)
        for (i64 i = 0; i < m; ++i) {
          float* row = c + i * p.n;
          if (p.alpha != 1)
            for (i64 j = 0; j < n; ++j) row[j] *= p.alpha;
          if (p.d != nullptr && p.beta != 0) {
            const float* d = p.d + (i0 + i) * p.d_row_step + j0 * p.d_column_step;
            for (i64 j = 0; j < n; ++j) row[j] += p.beta * d[j * p.d_column_step];
          }
        }
      if (p.epilogue != nullptr) p.epilogue->apply_rows(c_at, m, p.n, n, c);
    }
  });
}

// ---- plain products of other types --------------------------------------------------------------

template <class T>
struct accumulator {
  using type = T;
};
template <>
struct accumulator<half> {
  using type = float;
};
template <>
struct accumulator<brain> {
  using type = float;
};

template <class T>
auto widen(T v) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, brain>)
    return to_float(v);
  else
    return v;
}
template <class T, class V>
T narrow(V v) {
  if constexpr (std::is_same_v<T, half>)
    return to_half(static_cast<float>(v));
  else if constexpr (std::is_same_v<T, brain>)
    return to_brain(static_cast<float>(v));
  else
    return static_cast<T>(v);
}

/// A matrix of doubles in memory, of which one of the two strides is 1.
template <int Order>
using double_matrix = Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Order>,
                                 Eigen::Unaligned, Eigen::OuterStride<>>;
template <class F>
void with_double_matrix(const double* data, i64 rows, i64 columns, i64 row_step, i64 column_step,
                        F&& f) {
  if (column_step == 1)
    f(double_matrix<Eigen::RowMajor>(data, rows, columns, Eigen::OuterStride<>(row_step)));
  else
    f(double_matrix<Eigen::ColMajor>(data, rows, columns, Eigen::OuterStride<>(column_step)));
}

/// Doubles are the long tail: Eigen's product, over blocks whose packed copies it keeps on the
/// stack (two of 64 KiB), so that nothing is allocated. Each operand has a stride of 1.
inline void double_product(i64 m, i64 n, i64 k, const double* a, i64 a_row, i64 a_k,
                           const double* b, i64 b_k, i64 b_column, double* c) {
  constexpr i64 side = 64, depth = 128;
  Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> y(c, m, n);
  y.setZero();
  for (i64 j = 0; j < n; j += side)
    for (i64 l = 0; l < k; l += depth)
      for (i64 i = 0; i < m; i += side) {
        const i64 height = m - i < side ? m - i : side, width = n - j < side ? n - j : side;
        const i64 deep = k - l < depth ? k - l : depth;
        with_double_matrix(
            a + i * a_row + l * a_k, height, deep, a_row, a_k, [&](const auto& left) {
              with_double_matrix(b + l * b_k + j * b_column, deep, width, b_k, b_column,
                                 [&](const auto& right) {
                                   y.block(i, j, height, width).noalias() += left * right;
                                 });
            });
      }
}

/// Any strides, any numeric type: c(i, j) = sum over k of a(i, k) * b(k, j), integers wrap.
template <class T>
void plain_product(i64 m, i64 n, i64 k, const T* a, i64 a_row, i64 a_k, const T* b, i64 b_k,
                   i64 b_column, T* c) {
  if constexpr (std::is_same_v<T, double>)
    return double_product(m, n, k, a, a_row, a_k, b, b_k, b_column, c);
  using S = typename accumulator<T>::type;
  for (i64 i = 0; i < m; ++i)
    for (i64 j0 = 0; j0 < n; j0 += 64) {
      const i64 w = n - j0 < 64 ? n - j0 : 64;
      S sum[64] = {};
      for (i64 l = 0; l < k; ++l) {
        const S x = widen(a[i * a_row + l * a_k]);
        const T* row = b + l * b_k + j0 * b_column;
        for (i64 j = 0; j < w; ++j) {
          const S y = widen(row[j * b_column]);
          if constexpr (is_real<S>)
            sum[j] += x * y;
          else
            sum[j] = wrap_add(sum[j], wrap_mul(x, y));
        }
      }
      for (i64 j = 0; j < w; ++j) c[i * n + j0 + j] = narrow<T>(sum[j]);
    }
}

template <class F>
bool with_product_type(dtype type, F&& f) {
  switch (type) {
    case dtype::f64: f.template operator()<double>(); return true;
    case dtype::i32: f.template operator()<std::int32_t>(); return true;
    case dtype::u32: f.template operator()<std::uint32_t>(); return true;
    case dtype::i64: f.template operator()<std::int64_t>(); return true;
    case dtype::u64: f.template operator()<std::uint64_t>(); return true;
    case dtype::f16: f.template operator()<half>(); return true;
    case dtype::bf16: f.template operator()<brain>(); return true;
    default: return false;
  }
}
inline bool product_type(dtype type) {
  return type == dtype::f32 || with_product_type(type, []<class T>() {});
}

// ---- MatMul (1, 9, 13)
// ---------------------------------------------------------------------------

struct product_state {
  const simd_table* simd = nullptr;
  packed_floats panels;
  i64 k = 0, n = 0;  // of the packed operand
  bool a_transposed = false, b_transposed = false;
  float alpha = 1, beta = 1;
};

inline result<kernel_state> prepare_matmul(const prepare_args& args) {
  if (args.inputs.size() < 2) return error(errc::arity, "MatMul needs two inputs");
  if (!product_type(input_type(args, 0)) || input_type(args, 0) != input_type(args, 1))
    return error(errc::type_mismatch, "MatMul does not support this element type");
  auto* s = new (std::nothrow) product_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  s->simd = &simd_of(args.simd);
  const constant_view& b = args.inputs[1].constant;
  if (b.type == dtype::f32 && b.dims.size() >= 2 && b.count() > 0 &&
      b.count() == b.dims[b.dims.size() - 1] * b.dims[b.dims.size() - 2]) {
    s->k = b.dims[b.dims.size() - 2];
    s->n = b.dims[b.dims.size() - 1];
    packed_floats copy;  // aligned: raw data of a file may stand anywhere
    if (!copy.allocate(s->k * s->n) || !s->panels.allocate(s->k * align_up(s->n, s->simd->nr)))
      return error(errc::out_of_memory);
    read_floats(b, copy.data());
    pack_panels(copy.data(), s->n, 1, s->k, s->n, s->simd->nr, 1, s->panels.data());
    owner.bytes = s->panels.bytes();
    owner.consumed = 2;
  }
  return owner;
}

inline dim product_bytes(dim_context& context, const void* state, std::span<const operand_info>,
                         std::span<const operand_info> outputs) {
  const auto& s = *static_cast<const product_state*>(state);
  if (!outputs.empty() && outputs[0].type != dtype::f32) return context.constant(0);
  return fixed_bytes(context, 4 * product_workspace(!s.panels, s.a_transposed));
}

inline errc run_matmul(const kernel_args& args) {
  const auto& s = state_of<product_state>(args);
  const tensor_view &a = args.inputs[0], &b = args.inputs[1], &c = args.outputs[0];
  const bool a_vector = a.rank == 1, b_vector = b.rank == 1;
  product_call p;
  p.simd = s.simd;
  p.m = a_vector ? 1 : a.dims[a.rank - 2];
  p.k = a.dims[a.rank - 1];
  p.n = b_vector ? 1 : b.dims[b.rank - 1];
  if ((b_vector ? b.dims[0] : b.dims[b.rank - 2]) != p.k) return errc::inner_dims;
  p.lda = p.k;
  p.b_k_step = p.n;
  const int rank = static_cast<int>(c.rank) - (a_vector ? 0 : 1) - (b_vector ? 0 : 1);
  const int a_batch = a_vector ? 0 : static_cast<int>(a.rank) - 2;
  const int b_batch = b_vector ? 0 : static_cast<int>(b.rank) - 2;
  if (rank > max_rank) return errc::unsupported;
  p.batch_rank = rank;
  i64 a_stride = p.m * p.k, b_stride = p.k * p.n;
  i64 a_count = 1, b_count = 1;
  for (int d = rank - 1; d >= 0; --d) {
    p.batch_dims[d] = c.dims[d];
    p.batches *= c.dims[d];
    const int ad = d - rank + a_batch, bd = d - rank + b_batch;
    if (ad >= 0) {
      p.a_step[d] = a.dims[ad] == 1 ? 0 : a_stride;
      a_stride *= a.dims[ad];
      a_count *= a.dims[ad];
    }
    if (bd >= 0) {
      p.b_step[d] = b.dims[bd] == 1 ? 0 : b_stride;
      b_stride *= b.dims[bd];
      b_count *= b.dims[bd];
    }
  }
  if (b_count == 1 && a_count == p.batches) {  // one right operand: the batch is more rows
    p.m *= p.batches;
    p.batches = 1;
    p.batch_rank = 0;
  }
  bound_epilogue epilogue;
  if (const errc e = epilogue.bind(*s.simd, args.epilogue, c); e != errc::ok) return e;
  if (c.count() == 0) return errc::ok;
  if (c.type == dtype::f32) {
    p.a = a.as<const float>();
    p.b = b.as<const float>();
    p.panels = s.panels.data();
    p.c = c.as<float>();
    p.epilogue = epilogue.active ? &epilogue : nullptr;
    p.pool = args.pool;
    p.workspace = reinterpret_cast<float*>(args.workspace);
    run_product(p);
    return errc::ok;
  }
  const bool known = with_product_type(c.type, [&]<class T>() {
    parallel_parts(args.pool, p.batches * p.m, 16384 / (p.n * p.k + 1) + 1,
                   [&](i64, i64 begin, i64 end) {
                     for (i64 r = begin, rows = 0; r < end; r += rows) {
                       rows = p.m - r % p.m < end - r ? p.m - r % p.m : end - r;
                       i64 a_at = 0, b_at = 0, rest = r / p.m;
                       for (int d = p.batch_rank - 1; d >= 0; --d) {
                         const i64 index = rest % p.batch_dims[d];
                         rest /= p.batch_dims[d];
                         a_at += index * p.a_step[d];
                         b_at += index * p.b_step[d];
                       }
                       T* y = c.as<T>() + r * p.n;
                       plain_product<T>(rows, p.n, p.k, a.as<const T>() + a_at + r % p.m * p.k, p.k,
                                        1, b.as<const T>() + b_at, p.n, 1, y);
                       epilogue.apply(r * p.n, rows * p.n, y);
                     }
                   });
  });
  return known ? errc::ok : errc::unsupported;
}

// ---- Gemm (1, 6, 7, 9, 11, 13)
// -------------------------------------------------------------------

inline result<kernel_state> prepare_gemm(const prepare_args& args) {
  if (args.inputs.size() < 2) return error(errc::arity, "Gemm needs two inputs");
  if (!product_type(input_type(args, 0)) || input_type(args, 0) != input_type(args, 1))
    return error(errc::type_mismatch, "Gemm does not support this element type");
  auto* s = new (std::nothrow) product_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  s->simd = &simd_of(args.simd);
  s->a_transposed = args.attributes.integer("transA", 0) != 0;
  s->b_transposed = args.attributes.integer("transB", 0) != 0;
  s->alpha = static_cast<float>(args.attributes.real("alpha", 1.0));
  s->beta = static_cast<float>(args.attributes.real("beta", 1.0));
  const constant_view& b = args.inputs[1].constant;
  if (b.type == dtype::f32 && b.dims.size() == 2 && b.count() > 0) {
    s->k = b.dims[s->b_transposed ? 1 : 0];
    s->n = b.dims[s->b_transposed ? 0 : 1];
    packed_floats copy;
    if (!copy.allocate(s->k * s->n) || !s->panels.allocate(s->k * align_up(s->n, s->simd->nr)))
      return error(errc::out_of_memory);
    read_floats(b, copy.data());
    pack_panels(copy.data(), s->b_transposed ? 1 : s->n, s->b_transposed ? s->k : 1, s->k, s->n,
                s->simd->nr, s->alpha, s->panels.data());
    s->alpha = 1;  // folded into the weights
    owner.bytes = s->panels.bytes();
    owner.consumed = 2;
  }
  return owner;
}

inline errc run_gemm(const kernel_args& args) {
  const auto& s = state_of<product_state>(args);
  const tensor_view &a = args.inputs[0], &b = args.inputs[1], &c = args.outputs[0];
  if (a.rank != 2 || b.rank != 2 || c.rank != 2) return errc::rank_mismatch;
  const i64 m = c.dims[0], n = c.dims[1], k = a.dims[s.a_transposed ? 0 : 1];
  if (b.dims[s.b_transposed ? 1 : 0] != k) return errc::inner_dims;
  i64 d_row = 0, d_column = 0;
  const bool has_d = has_input(args, 2);
  if (has_d) {
    const tensor_view& d = args.inputs[2];
    const i64 columns = d.rank >= 1 ? d.dims[d.rank - 1] : 1;
    const i64 rows = d.rank >= 2 ? d.dims[d.rank - 2] : 1;
    if ((columns != 1 && columns != n) || (rows != 1 && rows != m)) return errc::broadcast;
    d_column = columns == 1 ? 0 : 1;
    d_row = rows == 1 ? 0 : columns;
  }
  bound_epilogue epilogue;
  if (const errc e = epilogue.bind(*s.simd, args.epilogue, c); e != errc::ok) return e;
  if (m == 0 || n == 0) return errc::ok;
  if (c.type == dtype::f32) {
    product_call p;
    p.simd = s.simd;
    p.m = m;
    p.n = n;
    p.k = k;
    p.a = a.as<const float>();
    p.lda = a.dims[1];
    p.a_transposed = s.a_transposed;
    p.b = b.as<const float>();
    p.b_k_step = s.b_transposed ? 1 : n;
    p.b_column_step = s.b_transposed ? k : 1;
    p.panels = s.panels.data();
    p.c = c.as<float>();
    p.alpha = s.alpha;
    p.beta = s.beta;
    if (has_d) {
      p.d = args.inputs[2].as<const float>();
      p.d_row_step = d_row;
      p.d_column_step = d_column;
    }
    p.epilogue = epilogue.active ? &epilogue : nullptr;
    p.pool = args.pool;
    p.workspace = reinterpret_cast<float*>(args.workspace);
    run_product(p);
    return errc::ok;
  }
  const bool known = with_product_type(c.type, [&]<class T>() {
    using S = typename accumulator<T>::type;
    T* const y = c.as<T>();
    plain_product<T>(m, n, k, a.as<const T>(), s.a_transposed ? 1 : k, s.a_transposed ? m : 1,
                     b.as<const T>(), s.b_transposed ? 1 : n, s.b_transposed ? k : 1, y);
    const T* d = has_d ? args.inputs[2].as<const T>() : nullptr;
    if (s.alpha != 1 || (d != nullptr && s.beta != 0))
      for (i64 i = 0; i < m; ++i)
        for (i64 j = 0; j < n; ++j) {
          const S v = static_cast<S>(widen(y[i * n + j]));
          S r = s.alpha != 1 ? static_cast<S>(static_cast<double>(v) * static_cast<double>(s.alpha))
                             : v;
          if (d != nullptr && s.beta != 0) {
            const S e = static_cast<S>(widen(d[i * d_row + j * d_column]));
            const S scaled =
                s.beta == 1 ? e
                            : static_cast<S>(static_cast<double>(e) * static_cast<double>(s.beta));
            if constexpr (is_real<S>)
              r += scaled;
            else
              r = wrap_add(r, scaled);
          }
          y[i * n + j] = narrow<T>(r);
        }
    epilogue.apply(0, m * n, y);
  });
  return known ? errc::ok : errc::unsupported;
}

}  // namespace sod2::kernel_detail
