// Quantised operators: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, and products and
// convolutions of 8-bit tensors.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <sod2/kernel/std/product.hpp>
#include <sod2/kernel/std/window.hpp>

namespace sod2::kernel_detail {

// ---- elements of every quantised type
// ------------------------------------------------------------

/// An 8-bit float: exponent bits, bias, and whether its only special value is the negative zero
/// pattern (fnuz) or, with e5m2, there are infinities.
struct float8_format {
  int exponent = 4, bias = 7;
  bool fnuz = false, infinities = false;
  int mantissa() const { return 7 - exponent; }
};
inline bool float8_of(dtype type, float8_format& f) {
  switch (type) {
    case dtype::f8e4m3fn: f = {4, 7, false, false}; return true;
    case dtype::f8e4m3fnuz: f = {4, 8, true, false}; return true;
    case dtype::f8e5m2: f = {5, 15, false, true}; return true;
    case dtype::f8e5m2fnuz: f = {5, 16, true, false}; return true;
    default: return false;
  }
}
inline float float8_value(const float8_format& f, std::uint8_t bits) {
  const int m = f.mantissa(), exponent = bits >> m & ((1 << f.exponent) - 1);
  const int fraction = bits & ((1 << m) - 1), top = (1 << f.exponent) - 1;
  const bool negative = (bits & 0x80) != 0;
  if (f.fnuz && bits == 0x80) return std::numeric_limits<float>::quiet_NaN();
  if (!f.fnuz && exponent == top) {
    if (f.infinities && fraction == 0)
      return negative ? -std::numeric_limits<float>::infinity()
                      : std::numeric_limits<float>::infinity();
    if (f.infinities || fraction == (1 << m) - 1) return std::numeric_limits<float>::quiet_NaN();
  }
  const float v = exponent == 0
                      ? std::ldexp(static_cast<float>(fraction), 1 - f.bias - m)
                      : std::ldexp(static_cast<float>(fraction + (1 << m)), exponent - f.bias - m);
  return negative ? -v : v;
}
/// Largest finite pattern without its sign.
inline std::uint8_t float8_largest(const float8_format& f) {
  if (f.fnuz) return 0x7f;
  return f.infinities ? 0x7b : 0x7e;
}
/// Rounds to nearest, ties to even; too large saturates or becomes infinity (NaN without one).
inline std::uint8_t float8_bits(const float8_format& f, float v, bool saturate) {
  const std::uint8_t sign = std::signbit(v) ? 0x80 : 0;
  const std::uint8_t nan = f.fnuz ? 0x80 : static_cast<std::uint8_t>(sign | 0x7f);
  if (v != v) return nan;
  const std::uint8_t largest = float8_largest(f);
  const float magnitude = std::fabs(v), limit = float8_value(f, largest);
  const auto overflow = [&] {
    // Infinity itself saturates too, as the reference tables have it.
    if (saturate) return static_cast<std::uint8_t>(sign | largest);
    return f.infinities ? static_cast<std::uint8_t>(sign | 0x7c) : nan;
  };
  if (!(magnitude <= std::numeric_limits<float>::max())) return overflow();
  const int m = f.mantissa();
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = magnitude == 0 ? 1 - f.bias : exponent - 1;  // magnitude = 1.x * 2^exponent
  if (exponent < 1 - f.bias) exponent = 1 - f.bias;
  // A count of units in the last place, rounded in exact arithmetic.
  const float units = std::nearbyint(std::ldexp(magnitude, m - exponent));
  const float rounded = std::ldexp(units, exponent - m);
  if (rounded > limit) return overflow();
  int count = static_cast<int>(units);
  if (count >= 2 << m) {
    count >>= 1;
    ++exponent;
  }
  if (count == 0) return f.fnuz ? std::uint8_t{0} : sign;
  const int field = count >= 1 << m ? exponent + f.bias : 0;
  return static_cast<std::uint8_t>(sign | field << m | (count & ((1 << m) - 1)));
}

/// Element i of a quantised tensor.
inline double quantized_at(const void* data, dtype type, i64 i) {
  float8_format f;
  switch (type) {
    case dtype::u8: return static_cast<const std::uint8_t*>(data)[i];
    case dtype::i8: return static_cast<const std::int8_t*>(data)[i];
    case dtype::u16: return static_cast<const std::uint16_t*>(data)[i];
    case dtype::i16: return static_cast<const std::int16_t*>(data)[i];
    case dtype::i32: return static_cast<const std::int32_t*>(data)[i];
    case dtype::u4:
    case dtype::i4: {
      const int byte = static_cast<const std::uint8_t*>(data)[i / 2];
      const int v = i % 2 == 0 ? byte & 15 : byte >> 4;
      return type == dtype::i4 && v > 7 ? v - 16 : v;
    }
    default:
      return float8_of(type, f)
                 ? static_cast<double>(float8_value(f, static_cast<const std::uint8_t*>(data)[i]))
                 : 0;
  }
}
struct quantized_range {
  double lo = 0, hi = -1;  // empty: no integer type
};
inline quantized_range range_of(dtype type) {
  switch (type) {
    case dtype::u8: return {0, 255};
    case dtype::i8: return {-128, 127};
    case dtype::u16: return {0, 65535};
    case dtype::i16: return {-32768, 32767};
    case dtype::u4: return {0, 15};
    case dtype::i4: return {-8, 7};
    default: return {};
  }
}
/// Stores a saturated integer. Both halves of a 4-bit byte must be stored by one thread, even
/// first.
inline void store_quantized(void* data, dtype type, i64 i, double v) {
  const quantized_range r = range_of(type);
  const int n = v != v ? 0 : static_cast<int>(v < r.lo ? r.lo : v > r.hi ? r.hi : v);
  switch (type) {
    case dtype::u8: static_cast<std::uint8_t*>(data)[i] = static_cast<std::uint8_t>(n); break;
    case dtype::i8: static_cast<std::int8_t*>(data)[i] = static_cast<std::int8_t>(n); break;
    case dtype::u16: static_cast<std::uint16_t*>(data)[i] = static_cast<std::uint16_t>(n); break;
    case dtype::i16: static_cast<std::int16_t*>(data)[i] = static_cast<std::int16_t>(n); break;
    default: {
      std::uint8_t& byte = static_cast<std::uint8_t*>(data)[i / 2];
      byte = static_cast<std::uint8_t>(i % 2 == 0 ? n & 15 : (byte & 15) | (n & 15) << 4);
    }
  }
}
inline bool quantized_type(dtype type) {
  float8_format f;
  return range_of(type).hi > 0 || float8_of(type, f);
}

// ---- QuantizeLinear, DequantizeLinear (10, 13, 19, 21, 23, 24, 25)
// -------------------------------

struct quantize_state {
  i64 axis = 1, block = 0;
  bool saturate = true;
};
inline result<kernel_state> make_quantize_state(const prepare_args& args) {
  const i64 block = args.attributes.integer("block_size", 0);
  if (block < 0) return error(errc::bad_attribute, "block_size is negative");
  return own(new (std::nothrow) quantize_state{args.attributes.integer("axis", 1), block,
                                               args.attributes.integer("saturate", 1) != 0});
}
inline result<kernel_state> prepare_quantize(const prepare_args& args) {
  if (args.inputs.size() < 2 || args.outputs.empty())
    return error(errc::arity, "QuantizeLinear needs x and y_scale");
  const dtype x = input_type(args, 0);
  if ((!is_float(x) && x != dtype::i32) || !quantized_type(args.outputs[0].type))
    return error(errc::type_mismatch, "QuantizeLinear does not support these element types");
  return make_quantize_state(args);
}
inline result<kernel_state> prepare_dequantize(const prepare_args& args) {
  if (args.inputs.size() < 2 || args.outputs.empty())
    return error(errc::arity, "DequantizeLinear needs x and x_scale");
  const dtype x = input_type(args, 0);
  if ((!quantized_type(x) && x != dtype::i32) || !is_float(args.outputs[0].type))
    return error(errc::type_mismatch, "DequantizeLinear does not support these element types");
  return make_quantize_state(args);
}

/// Which scale belongs to which element: one for all, one per index of an axis, or one per block.
struct scale_walk {
  i64 n = 1, inner = 1, block = 0, blocks = 1;
  bool single = false;
  errc resolve(const quantize_state& s, const tensor_view& x, const tensor_view& scale) {
    if (scale.count() == 1 && s.block == 0) {
      single = true;
      return errc::ok;
    }
    const i64 rank = static_cast<i64>(x.rank), axis = s.axis < 0 ? s.axis + rank : s.axis;
    if (axis < 0 || axis >= rank) return errc::axis_range;
    n = x.dims[axis];
    inner = product_of(x, idx(axis) + 1, x.rank);
    if (s.block == 0) return scale.count() == n ? errc::ok : errc::broadcast;
    block = s.block;
    blocks = n > 0 ? ceil_div(n, block) : 0;
    if (scale.rank != x.rank) return errc::rank_mismatch;
    for (i64 d = 0; d < rank; ++d)
      if (scale.dims[d] != (d == axis ? blocks : x.dims[d])) return errc::broadcast;
    return errc::ok;
  }
  i64 at(i64 i) const {
    if (single) return 0;
    const i64 k = i / inner % n;
    if (block == 0) return k;
    return (i / inner / n * blocks + k / block) * inner + i % inner;
  }
};

inline errc run_quantize(const kernel_args& args) {
  const auto& s = state_of<quantize_state>(args);
  const tensor_view &x = args.inputs[0], &scale = args.inputs[1], &y = args.outputs[0];
  scale_walk w;
  if (const errc e = w.resolve(s, x, scale); e != errc::ok) return e;
  const bool zero = has_input(args, 2);
  if (zero && args.inputs[2].count() != scale.count()) return errc::broadcast;
  float8_format f8;
  const bool to_float8 = float8_of(y.type, f8);
  // 4-bit neighbours share a byte: whole bytes go to one thread.
  parallel_parts(args.pool, ceil_div(x.count(), 2), 8000, [&](i64, i64 begin, i64 end) {
    const i64 last = 2 * end < x.count() ? 2 * end : x.count();
    for (i64 i = 2 * begin; i < last; ++i) {
      const i64 at = w.at(i);
      const float v = static_cast<float>(real_at(x, i)) / static_cast<float>(real_at(scale, at));
      if (to_float8)
        y.as<std::uint8_t>()[i] = float8_bits(f8, v, s.saturate);
      else
        store_quantized(y.data, y.type, i,
                        static_cast<double>(std::nearbyint(v)) +
                            (zero ? quantized_at(args.inputs[2].data, y.type, at) : 0));
    }
  });
  return errc::ok;
}

inline errc run_dequantize(const kernel_args& args) {
  const auto& s = state_of<quantize_state>(args);
  const tensor_view &x = args.inputs[0], &scale = args.inputs[1], &y = args.outputs[0];
  scale_walk w;
  if (const errc e = w.resolve(s, x, scale); e != errc::ok) return e;
  const bool zero = has_input(args, 2);
  if (zero && args.inputs[2].count() != scale.count()) return errc::broadcast;
  bool known = false;
  with_storage(y.type, [&]<class T>() {
    if constexpr (!std::is_integral_v<T>) {
      known = true;
      parallel_parts(args.pool, x.count(), 16000, [&](i64, i64 begin, i64 end) {
        for (i64 i = begin; i < end; ++i) {
          const i64 at = w.at(i);
          const double v = quantized_at(x.data, x.type, i) -
                           (zero ? quantized_at(args.inputs[2].data, x.type, at) : 0);
          y.as<T>()[i] =
              convert_value<T>(static_cast<float>(v) * static_cast<float>(real_at(scale, at)));
        }
      });
    }
  });
  return known ? errc::ok : errc::unsupported;
}

// ---- DynamicQuantizeLinear (11)
// ------------------------------------------------------------------

inline result<kernel_state> prepare_dynamic_quantize(const prepare_args& args) {
  if (input_type(args, 0) != dtype::f32)
    return error(errc::type_mismatch, "DynamicQuantizeLinear works on float32");
  auto* s = new (std::nothrow) empty_state;
  if (s != nullptr) s->simd = &simd_of(args.simd);
  return own(s);
}
/// The scale spreads [min(x, 0), max(x, 0)] over 0 .. 255, so that zero has an exact code.
inline errc run_dynamic_quantize(const kernel_args& args) {
  const simd_table& simd = *state_of<empty_state>(args).simd;
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const float* const from = x.as<const float>();
  const i64 n = x.count();
  float lo = 0, hi = 0;
  if (n > 0) {
    const float least = simd.reduce(reduction::min, from, n),
                most = simd.reduce(reduction::max, from, n);
    lo = least < 0 ? least : 0;
    hi = most > 0 ? most : 0;
  }
  const float scale = hi > lo ? (hi - lo) / 255.0f : 1.0f;
  float zero = std::nearbyint(-lo / scale);
  zero = zero > 0 ? (zero < 255 ? zero : 255.0f) : 0.0f;
  if (y.present())
    parallel_parts(args.pool, n, 16000, [&](i64, i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) {
        const float v = std::nearbyint(from[i] / scale) + zero;
        y.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(v > 0 ? (v < 255 ? v : 255.0f) : 0.0f);
      }
    });
  if (args.outputs.size() > 1 && args.outputs[1].present()) *args.outputs[1].as<float>() = scale;
  if (args.outputs.size() > 2 && args.outputs[2].present())
    *args.outputs[2].as<std::uint8_t>() = static_cast<std::uint8_t>(zero);
  return errc::ok;
}

// ---- MatMulInteger (10), QLinearMatMul (10, 21)
// --------------------------------------------------

inline bool byte_type(dtype type) { return type == dtype::u8 || type == dtype::i8; }
inline i64 byte_at(const tensor_view& t, i64 i) {
  return t.type == dtype::i8 ? t.as<const std::int8_t>()[i] : t.as<const std::uint8_t>()[i];
}
/// Element of a parameter that is one number, or one per index (`i` of `n`), per matrix or shared.
inline i64 parameter_index(const tensor_view& t, i64 batch, i64 i, i64 n) {
  const i64 count = t.count();
  return count == 1 ? 0 : count == n ? i : batch * n + i;
}
inline bool parameter_fits(const kernel_args& args, std::size_t input, i64 batches, i64 n) {
  if (!has_input(args, input)) return true;
  const i64 count = args.inputs[input].count();
  return count == 1 || count == n || count == batches * n;
}

inline result<kernel_state> prepare_matmul_integer(const prepare_args& args) {
  if (!byte_type(input_type(args, 0)) || !byte_type(input_type(args, 1)))
    return error(errc::type_mismatch, "MatMulInteger works on 8-bit integers");
  return own(new (std::nothrow) empty_state);
}
inline result<kernel_state> prepare_qlinear_matmul(const prepare_args& args) {
  if (args.inputs.size() < 8) return error(errc::arity, "QLinearMatMul needs eight inputs");
  if (!byte_type(input_type(args, 0)) || !byte_type(input_type(args, 3)) ||
      !byte_type(input_type(args, 7)))
    return error(errc::type_mismatch, "QLinearMatMul works on 8-bit integers");
  return own(new (std::nothrow) empty_state);
}

/// Where the operands of an integer product stand among the inputs.
struct integer_operands {
  std::size_t a, a_zero, b, b_zero;
};

/// sums[j] += (a[k] - a_zero) * (b[k][j] - b_zero[j]) for w columns.
template <class A, class B>
void integer_row(const void* a, std::int32_t a_zero, const void* b, i64 step,
                 const std::int32_t* b_zero, i64 depth, i64 w, std::int32_t* sums) {
  for (i64 k = 0; k < depth; ++k) {
    const std::int32_t x = static_cast<const A*>(a)[k] - a_zero;
    const B* row = static_cast<const B*>(b) + k * step;
    for (i64 j = 0; j < w; ++j) sums[j] = wrap_add(sums[j], x * (row[j] - b_zero[j]));
  }
}

/// Every 64 columns of a row of the product at a time: store(matrix of a, matrix of b, row, first
/// column, count, sums, offset in the output).
template <class Store>
errc integer_product(const kernel_args& args, const integer_operands& at, const Store& store) {
  const tensor_view &a = args.inputs[at.a], &b = args.inputs[at.b], &c = args.outputs[0];
  const bool a_vector = a.rank == 1, b_vector = b.rank == 1;
  if (a.rank == 0 || b.rank == 0) return errc::rank_mismatch;
  const i64 m = a_vector ? 1 : a.dims[a.rank - 2], k = a.dims[a.rank - 1];
  const i64 n = b_vector ? 1 : b.dims[b.rank - 1];
  if ((b_vector ? b.dims[0] : b.dims[b.rank - 2]) != k) return errc::inner_dims;
  const int rank = static_cast<int>(c.rank) - (a_vector ? 0 : 1) - (b_vector ? 0 : 1);
  const int a_rank = a_vector ? 0 : static_cast<int>(a.rank) - 2;
  const int b_rank = b_vector ? 0 : static_cast<int>(b.rank) - 2;
  if (rank > max_rank) return errc::unsupported;
  if (c.count() == 0) return errc::ok;
  const i64 batches = c.count() / (m * n);
  const i64 a_batches = a.count() / (m * (k > 0 ? k : 1));
  const i64 b_batches = b.count() / (n * (k > 0 ? k : 1));
  if (!parameter_fits(args, at.a_zero, a_batches, m) ||
      !parameter_fits(args, at.b_zero, b_batches, n))
    return errc::broadcast;
  const bool a_signed = a.type == dtype::i8, b_signed = b.type == dtype::i8;
  const auto row_function = a_signed ? (b_signed ? integer_row<std::int8_t, std::int8_t>
                                                 : integer_row<std::int8_t, std::uint8_t>)
                                     : (b_signed ? integer_row<std::uint8_t, std::int8_t>
                                                 : integer_row<std::uint8_t, std::uint8_t>);
  parallel_parts(args.pool, batches * m, 100000 / (n * (k + 1)) + 1, [&](i64, i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) {
      const i64 batch = r / m, i = r % m;
      i64 rest = batch, a_at = 0, b_at = 0, a_step = 1, b_step = 1;
      for (int d = rank - 1; d >= 0; --d) {
        const i64 index = rest % c.dims[d];
        rest /= c.dims[d];
        if (const int ad = d - rank + a_rank; ad >= 0) {
          if (a.dims[ad] != 1) a_at += index * a_step;
          a_step *= a.dims[ad];
        }
        if (const int bd = d - rank + b_rank; bd >= 0) {
          if (b.dims[bd] != 1) b_at += index * b_step;
          b_step *= b.dims[bd];
        }
      }
      const std::int32_t a_zero =
          has_input(args, at.a_zero)
              ? static_cast<std::int32_t>(byte_at(
                    args.inputs[at.a_zero], parameter_index(args.inputs[at.a_zero], a_at, i, m)))
              : 0;
      for (i64 j0 = 0; j0 < n; j0 += 64) {
        const i64 w = n - j0 < 64 ? n - j0 : 64;
        std::int32_t sums[64] = {}, b_zero[64] = {};
        if (has_input(args, at.b_zero))
          for (i64 j = 0; j < w; ++j)
            b_zero[j] = static_cast<std::int32_t>(byte_at(
                args.inputs[at.b_zero], parameter_index(args.inputs[at.b_zero], b_at, j0 + j, n)));
        row_function(a.as<const std::byte>() + (a_at * m + i) * k, a_zero,
                     b.as<const std::byte>() + b_at * k * n + j0, n, b_zero, k, w, sums);
        store(a_at, b_at, i, j0, w, sums, r * n + j0);
      }
    }
  });
  return errc::ok;
}

/// A (..., M, K), B (..., K, N) of 8 bits, zero points as numbers, per row of A, per column of B ->
/// int32.
inline errc run_matmul_integer(const kernel_args& args) {
  std::int32_t* const c = args.outputs[0].as<std::int32_t>();
  return integer_product(args, {0, 2, 1, 3},
                         [&](i64, i64, i64, i64, i64 w, const std::int32_t* sums, i64 to) {
                           std::memcpy(c + to, sums, idx(w) * 4);
                         });
}

inline errc run_qlinear_matmul(const kernel_args& args) {
  const tensor_view &a = args.inputs[0], &b = args.inputs[3], &y = args.outputs[0];
  if (a.rank == 0 || b.rank == 0) return errc::rank_mismatch;
  const i64 m = a.rank == 1 ? 1 : a.dims[a.rank - 2], n = b.rank == 1 ? 1 : b.dims[b.rank - 1];
  const tensor_view &a_scale = args.inputs[1], &b_scale = args.inputs[4], &y_scale = args.inputs[6],
                    &y_zero = args.inputs[7];
  const auto fits = [](const tensor_view& t, i64 of, i64 size) {
    const i64 count = t.count();
    return count == 1 || count == of || (of > 0 && count % of == 0 && size % count == 0);
  };
  if (!fits(a_scale, m, a.count()) || !fits(b_scale, n, b.count()) ||
      !fits(y_scale, m, y.count()) || !fits(y_zero, m, y.count()))
    return errc::broadcast;
  return integer_product(
      args, {0, 2, 3, 5},
      [&](i64 a_at, i64 b_at, i64 i, i64 j0, i64 w, const std::int32_t* sums, i64 to) {
        const float sa = static_cast<float>(real_at(a_scale, parameter_index(a_scale, a_at, i, m)));
        const i64 batch = to / n / m;
        const float sy =
            static_cast<float>(real_at(y_scale, parameter_index(y_scale, batch, i, m)));
        const double zero =
            quantized_at(y_zero.data, y_zero.type, parameter_index(y_zero, batch, i, m));
        for (i64 j = 0; j < w; ++j) {
          const float sb =
              static_cast<float>(real_at(b_scale, parameter_index(b_scale, b_at, j0 + j, n)));
          const float v = static_cast<float>(sums[j]) * (sa * sb / sy);
          store_quantized(y.data, y.type, to + j, static_cast<double>(std::nearbyint(v)) + zero);
        }
      });
}

// ---- ConvInteger (10), QLinearConv (10)
// ----------------------------------------------------------

struct integer_conv_state {
  window_attributes window;
  i64 group = 1;
};
template <std::size_t Weights>  // which input holds the weights
result<kernel_state> prepare_integer_conv(const prepare_args& args) {
  if (args.inputs.size() <= Weights) return error(errc::arity, "too few inputs of a convolution");
  if (!byte_type(input_type(args, 0)) || !byte_type(input_type(args, Weights)))
    return error(errc::type_mismatch, "this convolution works on 8-bit integers");
  auto* s = new (std::nothrow) integer_conv_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  s->group = args.attributes.integer("group", 1);
  if (s->group < 1) return error(errc::bad_attribute, "group below 1");
  const int rank = args.inputs[0].rank > 2 ? args.inputs[0].rank - 2 : 0;
  SOD2_TRY(decode_window(args, rank, s->window));
  return owner;
}

/// One plane of sums for each thread.
inline dim qlinear_conv_bytes(dim_context& context, const void*, std::span<const operand_info>,
                              std::span<const operand_info> outputs) {
  if (outputs.empty() || outputs[0].dims.size() < 3) return context.constant(0);
  dim n = context.constant(4);
  for (std::size_t d = 2; d < outputs[0].dims.size(); ++d) n = context.mul(n, outputs[0].dims[d]);
  return context.align_up(n, 64);
}

/// sums[o] += (x - x_zero) * weight over the outputs whose tap lies inside the input.
template <class T>
void integer_tap(const window& w, const T* plane, std::int32_t x_zero, std::int32_t weight, i64 kz,
                 i64 ky, i64 kx, std::int32_t* sums) {
  for (i64 oz = 0; oz < w.out[0]; ++oz) {
    const i64 z = oz * w.stride[0] - w.pad[0] + kz * w.dilation[0];
    if (z < 0 || z >= w.in[0]) continue;
    for (i64 oy = 0; oy < w.out[1]; ++oy) {
      const i64 y = oy * w.stride[1] - w.pad[1] + ky * w.dilation[1];
      if (y < 0 || y >= w.in[1]) continue;
      const i64 x0 = kx * w.dilation[2] - w.pad[2], step = w.stride[2];
      const i64 lo = x0 < 0 ? ceil_div(-x0, step) : 0;
      i64 hi = w.in[2] > x0 ? ceil_div(w.in[2] - x0, step) : 0;
      if (hi > w.out[2]) hi = w.out[2];
      const T* row = plane + (z * w.in[1] + y) * w.in[2] + x0;
      std::int32_t* to = sums + (oz * w.out[1] + oy) * w.out[2];
      for (i64 o = lo; o < hi; ++o)
        to[o] = wrap_add(to[o], (static_cast<std::int32_t>(row[o * step]) - x_zero) * weight);
    }
  }
}

/// Sums of every output plane, then finish(plane, feature, sums).
template <class Plane, class Finish>
errc integer_conv(const kernel_args& args, const integer_operands& at, const Plane& sums_of,
                  const Finish& finish) {
  const auto& s = state_of<integer_conv_state>(args);
  const tensor_view &x = args.inputs[at.a], &weights = args.inputs[at.b], &y = args.outputs[0];
  window w;
  if (weights.rank != x.rank || x.rank < 3) return errc::rank_mismatch;
  if (!resolve_window(s.window, x, y, weights.shape().subspan(2), w)) return errc::unsupported;
  const i64 features = y.dims[1], depth = weights.dims[1];
  if (x.dims[1] != depth * s.group || features % s.group != 0 || weights.dims[0] != features)
    return errc::channels;
  const bool has_zero = has_input(args, at.b_zero);
  if (has_zero && args.inputs[at.b_zero].count() != 1 && args.inputs[at.b_zero].count() != features)
    return errc::broadcast;
  if (y.count() == 0) return errc::ok;
  const i64 plane = w.out_count(), in_plane = w.in_count(), taps = w.taps();
  const std::int32_t x_zero = has_input(args, at.a_zero)
                                  ? static_cast<std::int32_t>(byte_at(args.inputs[at.a_zero], 0))
                                  : 0;
  parallel_parts(
      args.pool, y.dims[0] * features, 100000 / (plane * taps * (depth + 1) + 1) + 1,
      [&](i64 part, i64 begin, i64 end) {
        for (i64 p = begin; p < end; ++p) {
          const i64 image = p / features, feature = p % features;
          const std::int32_t zero =
              has_zero
                  ? static_cast<std::int32_t>(byte_at(
                        args.inputs[at.b_zero], args.inputs[at.b_zero].count() == 1 ? 0 : feature))
                  : 0;
          std::int32_t* const sums = sums_of(part, p);
          for (i64 i = 0; i < plane; ++i) sums[i] = 0;
          const i64 first = (image * s.group + feature / (features / s.group)) * depth;
          for (i64 c = 0; c < depth; ++c)
            for (i64 t = 0; t < taps; ++t) {
              const i64 kx = t % w.kernel[2], ky = t / w.kernel[2] % w.kernel[1],
                        kz = t / w.kernel[2] / w.kernel[1];
              const std::int32_t weight =
                  static_cast<std::int32_t>(byte_at(weights, (feature * depth + c) * taps + t)) -
                  zero;
              const i64 from = (first + c) * in_plane;
              if (x.type == dtype::i8)
                integer_tap(w, x.as<const std::int8_t>() + from, x_zero, weight, kz, ky, kx, sums);
              else
                integer_tap(w, x.as<const std::uint8_t>() + from, x_zero, weight, kz, ky, kx, sums);
            }
          finish(p, feature, sums);
        }
      });
  return errc::ok;
}

/// x (N, C, D...), w (M, C / group, k...), zero points (w's per feature or one) -> int32. Padding
/// counts as the zero point.
inline errc run_conv_integer(const kernel_args& args) {
  const tensor_view& y = args.outputs[0];
  const i64 plane = y.rank > 2 ? product_of(y, 2, y.rank) : 0;
  return integer_conv(
      args, {0, 2, 1, 3}, [&](i64, i64 p) { return y.as<std::int32_t>() + p * plane; },
      [](i64, i64, const std::int32_t*) {});
}

inline errc run_qlinear_conv(const kernel_args& args) {
  const tensor_view &y = args.outputs[0], &scale = args.inputs[4];
  if (y.count() > 0 && args.workspace == nullptr) return errc::unsupported;
  const i64 plane = y.rank > 2 ? product_of(y, 2, y.rank) : 0;
  if (y.rank > 1 && scale.count() != 1 && scale.count() != y.dims[1]) return errc::broadcast;
  const float x_scale = static_cast<float>(real_at(args.inputs[1], 0));
  const float y_scale = static_cast<float>(real_at(args.inputs[6], 0));
  const double zero = quantized_at(args.inputs[7].data, args.inputs[7].type, 0);
  const std::int32_t* const bias =
      has_input(args, 8) ? args.inputs[8].as<const std::int32_t>() : nullptr;
  return integer_conv(
      args, {0, 2, 3, 5},
      [&](i64 part, i64) {
        return reinterpret_cast<std::int32_t*>(args.workspace + part * align_up(plane * 4, 64));
      },
      [&](i64 p, i64 feature, const std::int32_t* sums) {
        const float w_scale = static_cast<float>(real_at(scale, scale.count() == 1 ? 0 : feature));
        const float factor = x_scale * w_scale / y_scale;
        for (i64 i = 0; i < plane; ++i) {
          const std::int32_t v = bias == nullptr ? sums[i] : wrap_add(sums[i], bias[feature]);
          store_quantized(
              y.data, y.type, p * plane + i,
              static_cast<double>(std::nearbyint(static_cast<float>(v) * factor)) + zero);
        }
      });
}

}  // namespace sod2::kernel_detail
