// The microkernels of one instruction set. Included once per target by foreach_target (see
// kernel/std/instantiate.hpp); each inclusion defines `table()` in that target's namespace.
#if defined(SOD2_KERNEL_SIMD_KERNELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SOD2_KERNEL_SIMD_KERNELS_INL
#undef SOD2_KERNEL_SIMD_KERNELS_INL
#else
#define SOD2_KERNEL_SIMD_KERNELS_INL
#endif

#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#include <sod2/core/config.hpp>
#include <sod2/kernel/simd/table.hpp>

#include <sod2/kernel/simd/math-inl.hpp>

HWY_BEFORE_NAMESPACE();
namespace sod2::kernel_detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using tag = HWY_FULL(float);
using vec = hn::Vec<tag>;

inline std::int64_t lane_count() { return static_cast<std::int64_t>(hn::Lanes(tag())); }
#define SOD2_LANE_BUFFER HWY_ALIGN float

// ---- matrix product --------------------------------------------------------------------------

// Register tile: accumulators, panel vectors and one broadcast must fit into the register file.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr int max_rows = 8;
inline constexpr int max_vectors = 3;
#elif HWY_TARGET == HWY_SCALAR
inline constexpr int max_rows = 4;
inline constexpr int max_vectors = 2;
#else
inline constexpr int max_rows = 6;
inline constexpr int max_vectors = 2;
#endif

template <int Rows, int Vectors, bool Listed>
HWY_NOINLINE void gemm_tile(const gemm_block& g, std::int64_t i0, std::int64_t j0,
                            const float* SOD2_RESTRICT b) {
  const tag d;
  const std::int64_t lanes = lane_count();
  const std::int64_t columns = g.n - j0 < Vectors * lanes ? g.n - j0 : Vectors * lanes;
  const bool whole = columns == Vectors * lanes;
  float* const c = g.c + i0 * g.ldc + j0;
  SOD2_LANE_BUFFER edge[static_cast<std::size_t>(Vectors) * HWY_MAX_BYTES / 4];

  // Sums start from zero and meet the bias, or the block of the previous depth step, at the end:
  // roundings are then those of the products alone, however large the bias is.
  vec acc[Rows][Vectors];
  HWY_UNROLL(8)
  for (int r = 0; r < Rows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < Vectors; ++v) acc[r][v] = hn::Zero(d);
  }

  const float* a[Rows];
  for (int r = 0; r < Rows; ++r) a[r] = g.a + (i0 + r) * g.lda;
  const std::int64_t depth = g.k;
  [[maybe_unused]] const std::int64_t step = g.b_step, first = g.b_first + j0;
  for (std::int64_t k = 0; k < depth; ++k) {
    if constexpr (Listed) b = g.b_rows[k] + first;
    vec bv[Vectors];
    HWY_UNROLL(4)
    for (int v = 0; v < Vectors; ++v) bv[v] = hn::LoadU(d, b + v * lanes);
    HWY_UNROLL(8)
    for (int r = 0; r < Rows; ++r) {
      const vec av = hn::Set(d, a[r][k]);
      HWY_UNROLL(4)
      for (int v = 0; v < Vectors; ++v) acc[r][v] = hn::MulAdd(av, bv[v], acc[r][v]);
    }
    if constexpr (!Listed) b += step;
  }

  switch (g.init) {
    default: break;
    case gemm_init::row_bias:
      HWY_UNROLL(8)
      for (int r = 0; r < Rows; ++r) {
        HWY_UNROLL(4)
        for (int v = 0; v < Vectors; ++v)
          acc[r][v] = hn::Add(acc[r][v], hn::Set(d, g.bias[i0 + r]));
      }
      break;
    case gemm_init::column_bias: {
      const float* bias = g.bias + j0;
      if (!whole) {
        std::memset(edge, 0, sizeof edge);
        std::memcpy(edge, bias, static_cast<std::size_t>(columns) * 4);
        bias = edge;
      }
      HWY_UNROLL(8)
      for (int r = 0; r < Rows; ++r) {
        HWY_UNROLL(4)
        for (int v = 0; v < Vectors; ++v)
          acc[r][v] = hn::Add(acc[r][v], hn::LoadU(d, bias + v * lanes));
      }
      break;
    }
    case gemm_init::accumulate:
      HWY_UNROLL(8)
      for (int r = 0; r < Rows; ++r) {
        const float* row = c + r * g.ldc;
        if (!whole) {
          std::memset(edge, 0, sizeof edge);
          std::memcpy(edge, row, static_cast<std::size_t>(columns) * 4);
          row = edge;
        }
        HWY_UNROLL(4)
        for (int v = 0; v < Vectors; ++v)
          acc[r][v] = hn::Add(acc[r][v], hn::LoadU(d, row + v * lanes));
      }
      break;
  }

  HWY_UNROLL(8)
  for (int r = 0; r < Rows; ++r) {
    float* row = c + r * g.ldc;
    if (whole) {
      HWY_UNROLL(4)
      for (int v = 0; v < Vectors; ++v) hn::StoreU(acc[r][v], d, row + v * lanes);
    } else {
      HWY_UNROLL(4)
      for (int v = 0; v < Vectors; ++v) hn::StoreU(acc[r][v], d, edge + v * lanes);
      std::memcpy(row, edge, static_cast<std::size_t>(columns) * 4);
    }
  }
}

template <int Rows, bool Listed>
inline void gemm_rows(const gemm_block& g, std::int64_t i0) {
  const std::int64_t lanes = lane_count();
  const float* b = g.b;
  for (std::int64_t j = 0; j < g.n; j += max_vectors * lanes, b += g.b_panel) {
    const std::int64_t left = g.n - j;
    if (max_vectors > 2 && left > 2 * lanes)
      gemm_tile<Rows, max_vectors, Listed>(g, i0, j, b);
    else if (left > lanes)
      gemm_tile<Rows, 2, Listed>(g, i0, j, b);
    else
      gemm_tile<Rows, 1, Listed>(g, i0, j, b);
  }
}

template <bool Listed>
inline void gemm_of(const gemm_block& g) {
  std::int64_t i = 0;
  for (; i + max_rows <= g.m; i += max_rows) gemm_rows<max_rows, Listed>(g, i);
  if constexpr (max_rows > 4) {
    for (; i + 4 <= g.m; i += 4) gemm_rows<4, Listed>(g, i);
  }
  if (i + 2 <= g.m) {
    gemm_rows<2, Listed>(g, i);
    i += 2;
  }
  if (i < g.m) gemm_rows<1, Listed>(g, i);
}

inline void gemm(const gemm_block& g) {
  g.b_rows != nullptr ? gemm_of<true>(g) : gemm_of<false>(g);
}

// ---- convolution and pooling rows --------------------------------------------------------------

template <int Vectors>
inline void depthwise_span(const depthwise_row& r, std::int64_t x) {
  const tag d;
  const std::int64_t lanes = lane_count();
  vec acc[Vectors];
  HWY_UNROLL(4)
  for (int v = 0; v < Vectors; ++v) acc[v] = hn::Zero(d);
  for (std::int64_t t = 0; t < r.taps; ++t) {
    const vec w = hn::Set(d, r.weights[t]);
    const float* in = r.in[t] + x;
    HWY_UNROLL(4)
    for (int v = 0; v < Vectors; ++v) acc[v] = hn::MulAdd(w, hn::LoadU(d, in + v * lanes), acc[v]);
  }
  HWY_UNROLL(4)
  for (int v = 0; v < Vectors; ++v)
    hn::StoreU(hn::Add(acc[v], hn::Set(d, r.bias)), d, r.out + x + v * lanes);
}

#if HWY_TARGET == HWY_SCALAR
inline constexpr bool has_interleaved = false;
#else
inline constexpr bool has_interleaved = true;
#endif

/// Every second of 2 * lanes floats.
inline vec load_even(const float* p) {
  const tag d;
#if HWY_TARGET == HWY_SCALAR
  return hn::LoadU(d, p);
#else
  return hn::ConcatEven(d, hn::LoadU(d, p + hn::Lanes(d)), hn::LoadU(d, p));
#endif
}

inline void depthwise(const depthwise_row& r) {
  const tag d;
  const std::int64_t lanes = lane_count();
  std::int64_t x = 0;
  if (r.stride == 1) {
    for (; x + 4 * lanes <= r.n; x += 4 * lanes) depthwise_span<4>(r, x);
    for (; x + lanes <= r.n; x += lanes) depthwise_span<1>(r, x);
  } else if (has_interleaved && r.stride == 2) {
    for (; x + lanes <= r.n; x += lanes) {
      vec acc = hn::Zero(d);
      for (std::int64_t t = 0; t < r.taps; ++t)
        acc = hn::MulAdd(hn::Set(d, r.weights[t]), load_even(r.in[t] + 2 * x), acc);
      hn::StoreU(hn::Add(acc, hn::Set(d, r.bias)), d, r.out + x);
    }
  }
  for (; x < r.n; ++x) {
    // One lane of the same arithmetic, so that a value does not depend on where a row was split.
    vec acc = hn::Zero(d);
    for (std::int64_t t = 0; t < r.taps; ++t)
      acc = hn::MulAdd(hn::Set(d, r.weights[t]), hn::Set(d, r.in[t][x * r.stride]), acc);
    r.out[x] = hn::GetLane(acc) + r.bias;
  }
}

/// Maximum that keeps NaN.
inline vec max_nan(vec a, vec b) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  // maxps returns its second operand when either is NaN.
  const vec m = hn::Max(a, b);
  return hn::IfThenElse(hn::IsNaN(a), a, m);
#else
  const vec m = hn::IfThenElse(hn::Lt(a, b), b, a);
  return hn::IfThenElse(hn::IsNaN(b), b, m);
#endif
}
inline vec min_nan(vec a, vec b) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const vec m = hn::Min(a, b);
  return hn::IfThenElse(hn::IsNaN(a), a, m);
#else
  const vec m = hn::IfThenElse(hn::Lt(b, a), b, a);
  return hn::IfThenElse(hn::IsNaN(b), b, m);
#endif
}

inline void max_rows_of(const max_row& r) {
  const tag d;
  const std::int64_t lanes = lane_count();
  std::int64_t x = 0;
  if (r.stride == 1) {
    for (; x + lanes <= r.n; x += lanes) {
      vec m = hn::LoadU(d, r.in[0] + x);
      for (std::int64_t t = 1; t < r.taps; ++t) m = max_nan(m, hn::LoadU(d, r.in[t] + x));
      hn::StoreU(m, d, r.out + x);
    }
  } else if (has_interleaved && r.stride == 2) {
    for (; x + lanes <= r.n; x += lanes) {
      vec m = load_even(r.in[0] + 2 * x);
      for (std::int64_t t = 1; t < r.taps; ++t) m = max_nan(m, load_even(r.in[t] + 2 * x));
      hn::StoreU(m, d, r.out + x);
    }
  }
  for (; x < r.n; ++x) {
    float m = r.in[0][x * r.stride];
    for (std::int64_t t = 1; t < r.taps; ++t) {
      const float v = r.in[t][x * r.stride];
      if (v > m || v != v) m = v;
      if (m != m) break;
    }
    r.out[x] = m;
  }
}

// ---- rows --------------------------------------------------------------------------------------

struct sum_op {
  static HWY_INLINE vec start(tag d) { return hn::Zero(d); }
  static HWY_INLINE vec step(vec a, vec x) { return hn::Add(a, x); }
  static HWY_INLINE vec join(vec a, vec b) { return hn::Add(a, b); }
};
struct sum_square_op {
  static HWY_INLINE vec start(tag d) { return hn::Zero(d); }
  static HWY_INLINE vec step(vec a, vec x) { return hn::MulAdd(x, x, a); }
  static HWY_INLINE vec join(vec a, vec b) { return hn::Add(a, b); }
};
struct l1_op {
  static HWY_INLINE vec start(tag d) { return hn::Zero(d); }
  static HWY_INLINE vec step(vec a, vec x) { return hn::Add(a, hn::Abs(x)); }
  static HWY_INLINE vec join(vec a, vec b) { return hn::Add(a, b); }
};
struct max_op {
  static HWY_INLINE vec start(tag d) { return hn::Set(d, -__builtin_inff()); }
  static HWY_INLINE vec step(vec a, vec x) { return max_nan(a, x); }
  static HWY_INLINE vec join(vec a, vec b) { return max_nan(a, b); }
};
struct min_op {
  static HWY_INLINE vec start(tag d) { return hn::Set(d, __builtin_inff()); }
  static HWY_INLINE vec step(vec a, vec x) { return min_nan(a, x); }
  static HWY_INLINE vec join(vec a, vec b) { return min_nan(a, b); }
};
struct prod_op {
  static HWY_INLINE vec start(tag d) { return hn::Set(d, 1.0f); }
  static HWY_INLINE vec step(vec a, vec x) { return hn::Mul(a, x); }
  static HWY_INLINE vec join(vec a, vec b) { return hn::Mul(a, b); }
};

template <class Op>
inline float fold(const float* x, std::int64_t n) {
  const tag d;
  const std::int64_t lanes = lane_count();
  vec a = Op::start(d), b = a, c = a, e = a;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = Op::step(a, hn::LoadU(d, x + i));
    b = Op::step(b, hn::LoadU(d, x + i + lanes));
    c = Op::step(c, hn::LoadU(d, x + i + 2 * lanes));
    e = Op::step(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = Op::step(a, hn::LoadU(d, x + i));
  a = Op::join(Op::join(a, b), Op::join(c, e));
  SOD2_LANE_BUFFER buffer[HWY_MAX_BYTES / 4];
  hn::StoreU(a, d, buffer);
  vec total = hn::Set(d, buffer[0]);
  for (std::int64_t l = 1; l < lanes; ++l) total = Op::join(total, hn::Set(d, buffer[l]));
  for (; i < n; ++i) total = Op::step(total, hn::Set(d, x[i]));
  return hn::GetLane(total);
}

inline float reduce(reduction op, const float* x, std::int64_t n) {
  switch (op) {
    case reduction::max: return fold<max_op>(x, n);
    case reduction::min: return fold<min_op>(x, n);
    case reduction::sum_square:
    case reduction::l2: return fold<sum_square_op>(x, n);
    case reduction::l1: return fold<l1_op>(x, n);
    case reduction::prod: return fold<prod_op>(x, n);
    default: return fold<sum_op>(x, n);
  }
}

template <class Op>
inline void fold_into(float* acc, const float* x, std::int64_t n) {
  const tag d;
  const std::int64_t lanes = lane_count();
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(Op::step(hn::LoadU(d, acc + i), hn::LoadU(d, x + i)), d, acc + i);
  for (; i < n; ++i) acc[i] = hn::GetLane(Op::step(hn::Set(d, acc[i]), hn::Set(d, x[i])));
}

inline void accumulate(reduction op, float* acc, const float* x, std::int64_t n) {
  switch (op) {
    case reduction::max: return fold_into<max_op>(acc, x, n);
    case reduction::min: return fold_into<min_op>(acc, x, n);
    case reduction::sum_square:
    case reduction::l2: return fold_into<sum_square_op>(acc, x, n);
    case reduction::l1: return fold_into<l1_op>(acc, x, n);
    case reduction::prod: return fold_into<prod_op>(acc, x, n);
    default: return fold_into<sum_op>(acc, x, n);
  }
}

/// Calls f(vector) for every vector of x and stores the result; the tail goes through a buffer.
#define SOD2_MAP_ROW(x, y, n, expression)                                 \
  do {                                                                    \
    const std::int64_t lanes_ = lane_count();                             \
    std::int64_t i = 0;                                                   \
    for (; i + lanes_ <= (n); i += lanes_) {                              \
      const vec v = hn::LoadU(d, (x) + i);                                \
      hn::StoreU((expression), d, (y) + i);                               \
    }                                                                     \
    if (i < (n)) {                                                        \
      SOD2_LANE_BUFFER buffer_[HWY_MAX_BYTES / 4] = {};                   \
      std::memcpy(buffer_, (x) + i, static_cast<std::size_t>((n)-i) * 4); \
      const vec v = hn::LoadU(d, buffer_);                                \
      hn::StoreU((expression), d, buffer_);                               \
      std::memcpy((y) + i, buffer_, static_cast<std::size_t>((n)-i) * 4); \
    }                                                                     \
  } while (false)

inline float exp_sum(const float* x, float shift, float* y, std::int64_t n) {
  const tag d;
  const vec s = hn::Set(d, shift);
  SOD2_MAP_ROW(x, y, n, exp(d, hn::Sub(v, s)));
  return fold<sum_op>(y, n);
}

inline void affine(const float* x, float scale, float shift, float* y, std::int64_t n) {
  const tag d;
  const vec a = hn::Set(d, scale), b = hn::Set(d, shift);
  SOD2_MAP_ROW(x, y, n, hn::MulAdd(v, a, b));
}

inline void normalize(const float* x, float mean, float scale, const float* gamma,
                      const float* beta, float* y, std::int64_t n) {
  const tag d;
  const std::int64_t lanes = lane_count();
  const vec m = hn::Set(d, mean), s = hn::Set(d, scale);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const vec v = hn::Mul(hn::Mul(hn::Sub(hn::LoadU(d, x + i), m), s), hn::LoadU(d, gamma + i));
    hn::StoreU(beta != nullptr ? hn::Add(v, hn::LoadU(d, beta + i)) : v, d, y + i);
  }
  for (; i < n; ++i) {
    const float v = (x[i] - mean) * scale * gamma[i];
    y[i] = beta != nullptr ? v + beta[i] : v;
  }
}

inline float square_deviation(const float* x, float mean, std::int64_t n) {
  const tag d;
  const std::int64_t lanes = lane_count();
  const vec m = hn::Set(d, mean);
  vec a = hn::Zero(d), b = a;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const vec u = hn::Sub(hn::LoadU(d, x + i), m);
    const vec v = hn::Sub(hn::LoadU(d, x + i + lanes), m);
    a = hn::MulAdd(u, u, a);
    b = hn::MulAdd(v, v, b);
  }
  float total = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
  for (; i < n; ++i) total += (x[i] - mean) * (x[i] - mean);
  return total;
}

// ---- tile programs -----------------------------------------------------------------------------

struct add_fn {
  static HWY_INLINE vec of(tag, vec a, vec b, const tile_instruction&) { return hn::Add(a, b); }
};
struct sub_fn {
  static HWY_INLINE vec of(tag, vec a, vec b, const tile_instruction&) { return hn::Sub(a, b); }
};
struct mul_fn {
  static HWY_INLINE vec of(tag, vec a, vec b, const tile_instruction&) { return hn::Mul(a, b); }
};
struct div_fn {
  static HWY_INLINE vec of(tag, vec a, vec b, const tile_instruction&) { return hn::Div(a, b); }
};
struct max_fn {
  static HWY_INLINE vec of(tag, vec a, vec b, const tile_instruction&) { return max_nan(a, b); }
};
struct min_fn {
  static HWY_INLINE vec of(tag, vec a, vec b, const tile_instruction&) { return min_nan(a, b); }
};
struct prelu_fn {
  static HWY_INLINE vec of(tag d, vec a, vec b, const tile_instruction&) {
    return hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Mul(a, b), a);
  }
};

template <class Op>
void binary(const tile_instruction& in, void* dst, const void* const* src, unsigned scalars,
            std::int64_t n) {
  const tag d;
  const std::int64_t lanes = lane_count();
  float* const y = static_cast<float*>(dst);
  const float* const a = static_cast<const float*>(src[0]);
  const float* const b = static_cast<const float*>(src[1]);
  const std::int64_t whole = n / lanes * lanes;
  std::int64_t i = 0;
  if ((scalars & 1U) != 0) {
    const vec va = hn::Set(d, a[0]);
    for (; i < whole; i += lanes) hn::StoreU(Op::of(d, va, hn::LoadU(d, b + i), in), d, y + i);
  } else if ((scalars & 2U) != 0) {
    const vec vb = hn::Set(d, b[0]);
    for (; i < whole; i += lanes) hn::StoreU(Op::of(d, hn::LoadU(d, a + i), vb, in), d, y + i);
  } else {
    for (; i < whole; i += lanes)
      hn::StoreU(Op::of(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i), in), d, y + i);
  }
  for (; i < n; ++i)
    y[i] = hn::GetLane(Op::of(d, hn::Set(d, a[(scalars & 1U) != 0 ? 0 : i]),
                              hn::Set(d, b[(scalars & 2U) != 0 ? 0 : i]), in));
}

HWY_INLINE vec imm0(tag d, const tile_instruction& in) {
  return hn::Set(d, static_cast<float>(in.imm[0]));
}
HWY_INLINE vec imm1(tag d, const tile_instruction& in) {
  return hn::Set(d, static_cast<float>(in.imm[1]));
}
HWY_INLINE vec one(tag d) { return hn::Set(d, 1.0f); }

#define SOD2_UNARY(name, expression)                                        \
  struct name {                                                             \
    static HWY_INLINE vec of([[maybe_unused]] tag d, vec x,                 \
                             [[maybe_unused]] const tile_instruction& in) { \
      return (expression);                                                  \
    }                                                                       \
  };
SOD2_UNARY(neg_fn, hn::Neg(x))
SOD2_UNARY(abs_fn, hn::Abs(x))
SOD2_UNARY(sqrt_fn, hn::Sqrt(x))
SOD2_UNARY(exp_fn, exp(d, x))
SOD2_UNARY(log_fn, log(d, x))
SOD2_UNARY(erf_fn, erf(d, x))
SOD2_UNARY(reciprocal_fn, hn::Div(one(d), x))
SOD2_UNARY(ceil_fn, hn::Ceil(x))
SOD2_UNARY(floor_fn, hn::Floor(x))
SOD2_UNARY(round_fn, hn::Round(x))
SOD2_UNARY(tanh_fn, tanh(d, x))
SOD2_UNARY(relu_fn, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x))
SOD2_UNARY(leaky_relu_fn, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, imm0(d, in)), x))
SOD2_UNARY(elu_fn, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(expm1(d, x), imm0(d, in)), x))
SOD2_UNARY(celu_fn, hn::IfThenElse(hn::Lt(x, hn::Zero(d)),
                                   hn::Mul(expm1(d, hn::Div(x, imm0(d, in))), imm0(d, in)), x))
SOD2_UNARY(selu_fn, hn::Mul(imm1(d, in), hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x,
                                                        hn::Mul(expm1(d, x), imm0(d, in)))))
SOD2_UNARY(sigmoid_fn, sigmoid(d, x))
SOD2_UNARY(hard_sigmoid_fn,
           min_nan(max_nan(hn::MulAdd(x, imm0(d, in), imm1(d, in)), hn::Zero(d)), one(d)))
SOD2_UNARY(hard_swish_fn,
           hn::Mul(x, min_nan(max_nan(hn::MulAdd(x, hn::Set(d, 1.0f / 6), hn::Set(d, 0.5f)),
                                      hn::Zero(d)),
                              one(d))))
SOD2_UNARY(softplus_fn,
           hn::Add(max_nan(x, hn::Zero(d)), log1p_unit(d, exp(d, hn::Neg(hn::Abs(x))))))
SOD2_UNARY(softsign_fn, hn::Div(x, hn::Add(one(d), hn::Abs(x))))
SOD2_UNARY(gelu_erf_fn,
           hn::Mul(hn::Mul(x, hn::Set(d, 0.5f)),
                   hn::Add(one(d), erf(d, hn::Mul(x, hn::Set(d, 0.70710678118654752f))))))
SOD2_UNARY(gelu_tanh_fn,
           hn::Mul(hn::Mul(x, hn::Set(d, 0.5f)),
                   hn::Add(one(d), tanh(d, hn::Mul(hn::Set(d, 0.79788456080286536f),
                                                   hn::MulAdd(hn::Mul(hn::Mul(x, x), x),
                                                              hn::Set(d, 0.044715f), x))))))
SOD2_UNARY(silu_fn, hn::Mul(x, sigmoid(d, x)))
SOD2_UNARY(clip_fn, min_nan(max_nan(x, imm0(d, in)), imm1(d, in)))
struct mish_fn {
  // x * tanh(log(1 + e^x)) = x * (e^2 + 2e) / (e^2 + 2e + 2); 1 to rounding above 20.
  static HWY_INLINE vec of(tag d, vec x, const tile_instruction&) {
    const vec e = exp(d, bound(d, x, -104.0f, 20.0f));
    const vec t = hn::Mul(e, hn::Add(e, hn::Set(d, 2.0f)));
    return hn::Mul(x, hn::Div(t, hn::Add(t, hn::Set(d, 2.0f))));
  }
};

template <class Op>
void unary(const tile_instruction& in, void* dst, const void* const* src, unsigned,
           std::int64_t n) {
  const tag d;
  float* const y = static_cast<float*>(dst);
  const float* const x = static_cast<const float*>(src[0]);
  SOD2_MAP_ROW(x, y, n, Op::of(d, v, in));
}

inline void fma_tile(const tile_instruction&, void* dst, const void* const* src, unsigned,
                     std::int64_t n) {
  const tag d;
  const std::int64_t lanes = lane_count();
  float* const y = static_cast<float*>(dst);
  const float* const a = static_cast<const float*>(src[0]);
  const float* const b = static_cast<const float*>(src[1]);
  const float* const c = static_cast<const float*>(src[2]);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), hn::LoadU(d, c + i)), d, y + i);
  for (; i < n; ++i)
    y[i] = hn::GetLane(hn::MulAdd(hn::Set(d, a[i]), hn::Set(d, b[i]), hn::Set(d, c[i])));
}

inline simd_table make_table(const char* name) {
  simd_table t;
  t.name = name;
  t.lanes = lane_count();
  t.mr = max_rows;
  t.nr = max_vectors * t.lanes;
  t.gemm = gemm;
  t.depthwise = depthwise;
  t.max_rows = max_rows_of;
  t.reduce = reduce;
  t.accumulate = accumulate;
  t.exp_sum = exp_sum;
  t.affine = affine;
  t.normalize = normalize;
  t.square_deviation = square_deviation;
  const auto at = [&t](tile_op op) -> tile_function& { return t.tile[static_cast<unsigned>(op)]; };
  at(tile_op::add) = binary<add_fn>;
  at(tile_op::sub) = binary<sub_fn>;
  at(tile_op::mul) = binary<mul_fn>;
  at(tile_op::div) = binary<div_fn>;
  at(tile_op::max) = binary<max_fn>;
  at(tile_op::min) = binary<min_fn>;
  at(tile_op::prelu) = binary<prelu_fn>;
  at(tile_op::neg) = unary<neg_fn>;
  at(tile_op::abs) = unary<abs_fn>;
  at(tile_op::sqrt) = unary<sqrt_fn>;
  at(tile_op::exp) = unary<exp_fn>;
  at(tile_op::log) = unary<log_fn>;
  at(tile_op::erf) = unary<erf_fn>;
  at(tile_op::reciprocal) = unary<reciprocal_fn>;
  at(tile_op::ceil) = unary<ceil_fn>;
  at(tile_op::floor) = unary<floor_fn>;
  at(tile_op::round) = unary<round_fn>;
  at(tile_op::tanh) = unary<tanh_fn>;
  at(tile_op::relu) = unary<relu_fn>;
  at(tile_op::leaky_relu) = unary<leaky_relu_fn>;
  at(tile_op::elu) = unary<elu_fn>;
  at(tile_op::celu) = unary<celu_fn>;
  at(tile_op::selu) = unary<selu_fn>;
  at(tile_op::sigmoid) = unary<sigmoid_fn>;
  at(tile_op::hard_sigmoid) = unary<hard_sigmoid_fn>;
  at(tile_op::hard_swish) = unary<hard_swish_fn>;
  at(tile_op::softplus) = unary<softplus_fn>;
  at(tile_op::softsign) = unary<softsign_fn>;
  at(tile_op::gelu_erf) = unary<gelu_erf_fn>;
  at(tile_op::gelu_tanh) = unary<gelu_tanh_fn>;
  at(tile_op::mish) = unary<mish_fn>;
  at(tile_op::silu) = unary<silu_fn>;
  at(tile_op::clip) = unary<clip_fn>;
  at(tile_op::fma) = fma_tile;
  return t;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace sod2::kernel_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#undef SOD2_MAP_ROW
#undef SOD2_UNARY
#undef SOD2_LANE_BUFFER
#endif
