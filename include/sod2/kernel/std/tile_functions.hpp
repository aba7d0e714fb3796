// Tile instructions for every element type as plain loops. Float32 has vector versions of the
// common ones in simd/; what stands here is the reference for them as well.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <sod2/core/dtype.hpp>
#include <sod2/kernel/simd/table.hpp>
#include <sod2/kernel/std/half.hpp>

namespace sod2::kernel_detail {

template <class T>
inline constexpr bool is_real = std::is_floating_point_v<T>;

template <class T>
T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return static_cast<T>((exponent & 1) != 0 ? -1 : 1);
      return 0;
    }
  }
  T result = 1;
  while (exponent != 0) {
    if ((exponent & 1) != 0) result = wrap_mul(result, base);
    base = wrap_mul(base, base);
    exponent = static_cast<T>(exponent >> 1);
  }
  return result;
}

/// One binary operation on T; the result type is R.
template <tile_op Op, class T>
auto binary_value(T a, T b) {
  if constexpr (Op == tile_op::add) {
    if constexpr (is_real<T>)
      return static_cast<T>(a + b);
    else
      return wrap_add(a, b);
  } else if constexpr (Op == tile_op::sub) {
    if constexpr (is_real<T>)
      return static_cast<T>(a - b);
    else
      return wrap_sub(a, b);
  } else if constexpr (Op == tile_op::mul) {
    if constexpr (is_real<T>)
      return static_cast<T>(a * b);
    else
      return wrap_mul(a, b);
  } else if constexpr (Op == tile_op::div) {
    if constexpr (is_real<T>) {
      return static_cast<T>(a / b);
    } else {
      if (b == 0) return static_cast<T>(0);
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return wrap_sub(static_cast<T>(0), a);
      return static_cast<T>(a / b);
    }
  } else if constexpr (Op == tile_op::mod) {
    if constexpr (is_real<T>) {
      T r = std::fmod(a, b);
      if (r == 0) return std::copysign(r, b);
      if ((r < 0) != (b < 0)) r += b;
      return r;
    } else {
      if (b == 0) return static_cast<T>(0);
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return static_cast<T>(0);
        const T r = static_cast<T>(a % b);
        return static_cast<T>(r != 0 && (r < 0) != (b < 0) ? r + b : r);
      } else {
        return static_cast<T>(a % b);
      }
    }
  } else if constexpr (Op == tile_op::fmod) {
    if constexpr (is_real<T>) {
      return static_cast<T>(std::fmod(a, b));
    } else {
      if (b == 0) return static_cast<T>(0);
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return static_cast<T>(0);
      return static_cast<T>(a % b);
    }
  } else if constexpr (Op == tile_op::pow) {
    if constexpr (is_real<T>) {
      // Exponents 1, 2, 3 and 1/2 are the ones that models use; each is correctly rounded or close.
      if (b == T(2)) return static_cast<T>(a * a);
      if (b == T(1)) return a;
      if (b == T(0.5)) return static_cast<T>(std::sqrt(a));
      if (b == T(3)) return static_cast<T>(a * a * a);
      return static_cast<T>(std::pow(a, b));
    } else {
      return integer_power(a, b);
    }
  } else if constexpr (Op == tile_op::max) {
    if constexpr (is_real<T>)
      return static_cast<T>(a > b || a != a ? a : b);
    else
      return a > b ? a : b;
  } else if constexpr (Op == tile_op::min) {
    if constexpr (is_real<T>)
      return static_cast<T>(a < b || a != a ? a : b);
    else
      return a < b ? a : b;
  } else if constexpr (Op == tile_op::equal) {
    return a == b;
  } else if constexpr (Op == tile_op::less) {
    return a < b;
  } else if constexpr (Op == tile_op::less_equal) {
    return a <= b;
  } else if constexpr (Op == tile_op::logical_and) {
    return a != 0 && b != 0;
  } else if constexpr (Op == tile_op::logical_or) {
    return a != 0 || b != 0;
  } else if constexpr (Op == tile_op::logical_xor) {
    return (a != 0) != (b != 0);
  } else if constexpr (Op == tile_op::bit_and) {
    return static_cast<T>(a & b);
  } else if constexpr (Op == tile_op::bit_or) {
    return static_cast<T>(a | b);
  } else if constexpr (Op == tile_op::bit_xor) {
    return static_cast<T>(a ^ b);
  } else if constexpr (Op == tile_op::shift_left || Op == tile_op::shift_right) {
    using U = std::make_unsigned_t<T>;
    const U n = static_cast<U>(b);
    const bool outside = n >= sizeof(T) * 8;  // also by negative numbers
    if constexpr (Op == tile_op::shift_left)
      return outside ? static_cast<T>(0) : static_cast<T>(static_cast<U>(a) << n);
    else  // copies of the sign bit come in
      return outside ? static_cast<T>(a < 0 ? -1 : 0) : static_cast<T>(a >> n);
  } else {
    static_assert(Op == tile_op::prelu);
    if constexpr (is_real<T>)
      return static_cast<T>(a < 0 ? a * b : a);
    else
      return a < T(0) ? wrap_mul(a, b) : a;
  }
}

/// One unary operation on T.
template <tile_op Op, class T>
auto unary_value(T x, [[maybe_unused]] const tile_instruction& in) {
  [[maybe_unused]] const auto p = static_cast<T>(in.imm[0]);
  [[maybe_unused]] const auto q = static_cast<T>(in.imm[1]);
  if constexpr (Op == tile_op::neg) {
    if constexpr (is_real<T>)
      return static_cast<T>(-x);
    else
      return wrap_sub(static_cast<T>(0), x);
  } else if constexpr (Op == tile_op::abs) {
    if constexpr (is_real<T>)
      return static_cast<T>(std::fabs(x));
    else if constexpr (std::is_signed_v<T>)
      return x < 0 ? wrap_sub(static_cast<T>(0), x) : x;
    else
      return x;
  } else if constexpr (Op == tile_op::sign) {
    if constexpr (is_real<T>)
      return x != x ? x : static_cast<T>((x > 0) - (x < 0));
    else
      return static_cast<T>((x > 0) - (x < T(0)));
  } else if constexpr (Op == tile_op::relu) {
    return x < T(0) ? T(0) : x;
  } else if constexpr (Op == tile_op::clip) {
    const T low = x < p ? p : x;
    return low > q ? q : low;
  } else if constexpr (Op == tile_op::bit_not) {
    return static_cast<T>(~x);
  } else if constexpr (Op == tile_op::logical_not) {
    return x == T(0);
  } else if constexpr (Op == tile_op::is_nan) {
    return x != x;
  } else if constexpr (Op == tile_op::is_inf) {
    constexpr T inf = std::numeric_limits<T>::infinity();
    return (in.imm[0] != 0 && x == inf) || (in.imm[1] != 0 && x == -inf);
  } else if constexpr (Op == tile_op::sqrt) {
    return static_cast<T>(std::sqrt(x));
  } else if constexpr (Op == tile_op::exp) {
    return static_cast<T>(std::exp(x));
  } else if constexpr (Op == tile_op::log) {
    return static_cast<T>(std::log(x));
  } else if constexpr (Op == tile_op::erf) {
    return static_cast<T>(std::erf(x));
  } else if constexpr (Op == tile_op::reciprocal) {
    return static_cast<T>(T(1) / x);
  } else if constexpr (Op == tile_op::ceil) {
    return static_cast<T>(std::ceil(x));
  } else if constexpr (Op == tile_op::floor) {
    return static_cast<T>(std::floor(x));
  } else if constexpr (Op == tile_op::round) {
    return static_cast<T>(std::nearbyint(x));
  } else if constexpr (Op == tile_op::sin) {
    return static_cast<T>(std::sin(x));
  } else if constexpr (Op == tile_op::cos) {
    return static_cast<T>(std::cos(x));
  } else if constexpr (Op == tile_op::tan) {
    return static_cast<T>(std::tan(x));
  } else if constexpr (Op == tile_op::asin) {
    return static_cast<T>(std::asin(x));
  } else if constexpr (Op == tile_op::acos) {
    return static_cast<T>(std::acos(x));
  } else if constexpr (Op == tile_op::atan) {
    return static_cast<T>(std::atan(x));
  } else if constexpr (Op == tile_op::sinh) {
    return static_cast<T>(std::sinh(x));
  } else if constexpr (Op == tile_op::cosh) {
    return static_cast<T>(std::cosh(x));
  } else if constexpr (Op == tile_op::tanh) {
    return static_cast<T>(std::tanh(x));
  } else if constexpr (Op == tile_op::asinh) {
    return static_cast<T>(std::asinh(x));
  } else if constexpr (Op == tile_op::acosh) {
    return static_cast<T>(std::acosh(x));
  } else if constexpr (Op == tile_op::atanh) {
    return static_cast<T>(std::atanh(x));
  } else if constexpr (Op == tile_op::leaky_relu) {
    return static_cast<T>(x < 0 ? x * p : x);
  } else if constexpr (Op == tile_op::elu) {
    return static_cast<T>(x < 0 ? p * std::expm1(x) : x);
  } else if constexpr (Op == tile_op::celu) {
    return static_cast<T>(x < 0 ? p * std::expm1(x / p) : x);
  } else if constexpr (Op == tile_op::selu) {
    return static_cast<T>(x > 0 ? q * x : q * p * std::expm1(x));
  } else if constexpr (Op == tile_op::sigmoid) {
    return static_cast<T>(T(1) / (T(1) + std::exp(-x)));
  } else if constexpr (Op == tile_op::hard_sigmoid) {
    const T y = x * p + q;
    return static_cast<T>(y < 0 ? T(0) : y > 1 ? T(1) : y);
  } else if constexpr (Op == tile_op::hard_swish) {
    const T y = x / T(6) + T(0.5);
    return static_cast<T>(x * (y < 0 ? T(0) : y > 1 ? T(1) : y));
  } else if constexpr (Op == tile_op::softplus) {
    return static_cast<T>((x > 0 ? x : T(0)) + std::log1p(std::exp(-std::fabs(x))));
  } else if constexpr (Op == tile_op::softsign) {
    return static_cast<T>(x / (T(1) + std::fabs(x)));
  } else if constexpr (Op == tile_op::thresholded_relu) {
    return x > p ? x : T(0);
  } else if constexpr (Op == tile_op::shrink) {
    return static_cast<T>(x < -q ? x + p : x > q ? x - p : T(0));
  } else if constexpr (Op == tile_op::gelu_erf) {
    return static_cast<T>(T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440))));
  } else if constexpr (Op == tile_op::gelu_tanh) {
    return static_cast<T>(
        T(0.5) * x * (T(1) + std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x))));
  } else if constexpr (Op == tile_op::mish) {
    return static_cast<T>(x * std::tanh((x > 0 ? x : T(0)) + std::log1p(std::exp(-std::fabs(x)))));
  } else {
    static_assert(Op == tile_op::silu);
    return static_cast<T>(x / (T(1) + std::exp(-x)));
  }
}

template <tile_op Op, class T>
void binary_loop(const tile_instruction&, void* dst, const void* const* src, unsigned,
                 std::int64_t n) {
  const T* const a = static_cast<const T*>(src[0]);
  const T* const b = static_cast<const T*>(src[1]);
  auto* const y = static_cast<decltype(binary_value<Op, T>(T(), T()))*>(dst);
  for (std::int64_t i = 0; i < n; ++i) y[i] = binary_value<Op, T>(a[i], b[i]);
}
template <tile_op Op, class T>
void unary_loop(const tile_instruction& in, void* dst, const void* const* src, unsigned,
                std::int64_t n) {
  const T* const x = static_cast<const T*>(src[0]);
  auto* const y = static_cast<decltype(unary_value<Op, T>(T(), in))*>(dst);
  for (std::int64_t i = 0; i < n; ++i) y[i] = unary_value<Op, T>(x[i], in);
}

template <class T>
void where_loop(const tile_instruction&, void* dst, const void* const* src, unsigned,
                std::int64_t n) {
  const auto* const c = static_cast<const std::uint8_t*>(src[0]);
  const T* const a = static_cast<const T*>(src[1]);
  const T* const b = static_cast<const T*>(src[2]);
  T* const y = static_cast<T*>(dst);
  for (std::int64_t i = 0; i < n; ++i) y[i] = c[i] != 0 ? a[i] : b[i];
}
template <class T>
void fma_loop(const tile_instruction&, void* dst, const void* const* src, unsigned,
              std::int64_t n) {
  const T* const a = static_cast<const T*>(src[0]);
  const T* const b = static_cast<const T*>(src[1]);
  const T* const c = static_cast<const T*>(src[2]);
  T* const y = static_cast<T*>(dst);
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = binary_value<tile_op::add, T>(binary_value<tile_op::mul, T>(a[i], b[i]), c[i]);
}
template <class T>
void copy_loop(const tile_instruction&, void* dst, const void* const* src, unsigned,
               std::int64_t n) {
  if (dst != src[0]) std::memcpy(dst, src[0], static_cast<std::size_t>(n) * sizeof(T));
}

// ---- cast --------------------------------------------------------------------------------------

/// Conversion as ONNX Cast does it: to bool by comparison with 0, real to integer by truncation
/// (NaN gives 0, what passes 64 bits saturates, narrower types keep the low bits).
template <class To, class From>
To convert_value(From v) {
  if constexpr (std::is_same_v<From, half> || std::is_same_v<From, brain>) {
    return convert_value<To>(to_float(v));
  } else if constexpr (std::is_same_v<To, half>) {
    return to_half(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, brain>) {
    return to_brain(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (is_real<From> && std::is_integral_v<To>) {
    if (!(v > From(-9.3e18))) return v == v ? static_cast<To>(INT64_MIN) : To(0);
    if constexpr (std::is_same_v<To, std::uint64_t>) {
      if (v >= From(18446744073709551616.0)) return UINT64_MAX;
      if (v >= From(9223372036854775808.0)) return static_cast<std::uint64_t>(v);
    }
    if (v >= From(9223372036854775808.0)) return static_cast<To>(INT64_MAX);
    if (v <= From(-9223372036854775808.0)) return static_cast<To>(INT64_MIN);
    return static_cast<To>(static_cast<std::int64_t>(v));
  } else {
    return static_cast<To>(v);
  }
}

template <class From, class To>
void cast_loop(const tile_instruction&, void* dst, const void* const* src, unsigned,
               std::int64_t n) {
  const From* const x = static_cast<const From*>(src[0]);
  To* const y = static_cast<To*>(dst);
  for (std::int64_t i = 0; i < n; ++i) y[i] = convert_value<To, From>(x[i]);
}

// The commonest conversion: one compare per element instead of four.
template <>
inline void cast_loop<float, std::int32_t>(const tile_instruction&, void* dst,
                                           const void* const* src, unsigned, std::int64_t n) {
  const float* const x = static_cast<const float*>(src[0]);
  auto* const y = static_cast<std::int32_t*>(dst);
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    const bool small = v > -2147483648.0f && v < 2147483648.0f;
    y[i] = small ? static_cast<std::int32_t>(v) : convert_value<std::int32_t>(v);
  }
}

/// Calls f.template operator()<T>() for the C++ type that stores `type`; false when there is none.
template <class F>
constexpr bool with_storage(dtype type, F&& f) {
  switch (type) {
    case dtype::f32: f.template operator()<float>(); return true;
    case dtype::f64: f.template operator()<double>(); return true;
    case dtype::i8: f.template operator()<std::int8_t>(); return true;
    case dtype::u8: f.template operator()<std::uint8_t>(); return true;
    case dtype::i16: f.template operator()<std::int16_t>(); return true;
    case dtype::u16: f.template operator()<std::uint16_t>(); return true;
    case dtype::i32: f.template operator()<std::int32_t>(); return true;
    case dtype::u32: f.template operator()<std::uint32_t>(); return true;
    case dtype::i64: f.template operator()<std::int64_t>(); return true;
    case dtype::u64: f.template operator()<std::uint64_t>(); return true;
    case dtype::boolean: f.template operator()<bool>(); return true;
    case dtype::f16: f.template operator()<half>(); return true;
    case dtype::bf16: f.template operator()<brain>(); return true;
    default: return false;
  }
}
/// The same without the 16-bit floats and bool.
template <class F>
constexpr bool with_number(dtype type, F&& f) {
  if (type == dtype::boolean || type == dtype::f16 || type == dtype::bf16) return false;
  return with_storage(type, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool> && !std::is_same_v<T, half> && !std::is_same_v<T, brain>)
      f.template operator()<T>();
  });
}

// ---- lookup ------------------------------------------------------------------------------------

enum class element_set : std::uint8_t { real, number, integer, boolean, any_number_or_bool };

template <tile_op Op, element_set Set, bool Unary>
tile_function pick(dtype type) {
  tile_function found = nullptr;
  with_storage(type, [&]<class T>() {
    constexpr bool stored_only = std::is_same_v<T, half> || std::is_same_v<T, brain>;
    constexpr bool boolean = std::is_same_v<T, bool>;
    constexpr bool number = !stored_only && !boolean;
    constexpr bool wanted = (Set == element_set::real && number && is_real<T>) ||
                            (Set == element_set::number && number) ||
                            (Set == element_set::integer && number && !is_real<T>) ||
                            (Set == element_set::boolean && boolean) ||
                            (Set == element_set::any_number_or_bool && (number || boolean));
    if constexpr (wanted) {
      if constexpr (Unary)
        found = unary_loop<Op, T>;
      else
        found = binary_loop<Op, T>;
    }
  });
  return found;
}

inline tile_function cast_function(dtype from, dtype to) {
  tile_function found = nullptr;
  with_storage(from, [&]<class From>() {
    with_storage(to, [&]<class To>() {
      if constexpr (std::is_same_v<From, To>)
        found = copy_loop<From>;
      else
        found = cast_loop<From, To>;
    });
  });
  return found;
}

inline void constant_tile(const tile_instruction& in, void* dst, const void* const*, unsigned,
                          std::int64_t n) {
  with_storage(in.to, [&]<class T>() {
    T value{};
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      value = static_cast<T>(in.bits);
    else
      value = convert_value<T>(in.imm[0]);
    for (std::int64_t i = 0; i < n; ++i) static_cast<T*>(dst)[i] = value;
  });
}

/// The plain loop for an instruction; null when its type does not support it.
inline tile_function generic_tile(const tile_instruction& in) {
  const dtype t = in.type;
  switch (in.op) {
    case tile_op::copy:
      switch (bytes_of(t)) {
        case 1: return copy_loop<std::uint8_t>;
        case 2: return copy_loop<std::uint16_t>;
        case 4: return copy_loop<std::uint32_t>;
        case 8: return copy_loop<std::uint64_t>;
        default: return nullptr;
      }
    case tile_op::where:
      switch (bytes_of(t)) {
        case 1: return where_loop<std::uint8_t>;
        case 2: return where_loop<std::uint16_t>;
        case 4: return where_loop<std::uint32_t>;
        case 8: return where_loop<std::uint64_t>;
        default: return nullptr;
      }
    case tile_op::cast: return cast_function(t, in.to);
    case tile_op::constant: return constant_tile;
    case tile_op::fma: {
      tile_function found = nullptr;
      with_number(t, [&]<class T>() { found = fma_loop<T>; });
      return found;
    }
#define SOD2_BINARY(op, set) \
  case tile_op::op: return pick<tile_op::op, element_set::set, false>(t);
      SOD2_BINARY(add, number)
      SOD2_BINARY(sub, number)
      SOD2_BINARY(mul, number)
      SOD2_BINARY(div, number)
      SOD2_BINARY(mod, number)
      SOD2_BINARY(fmod, number)
      SOD2_BINARY(pow, number)
      SOD2_BINARY(max, number)
      SOD2_BINARY(min, number)
      SOD2_BINARY(equal, any_number_or_bool)
      SOD2_BINARY(less, number)
      SOD2_BINARY(less_equal, number)
      SOD2_BINARY(logical_and, boolean)
      SOD2_BINARY(logical_or, boolean)
      SOD2_BINARY(logical_xor, boolean)
      SOD2_BINARY(bit_and, integer)
      SOD2_BINARY(bit_or, integer)
      SOD2_BINARY(bit_xor, integer)
      SOD2_BINARY(shift_left, integer)
      SOD2_BINARY(shift_right, integer)
      SOD2_BINARY(prelu, number)
#undef SOD2_BINARY
#define SOD2_UNARY(op, set) \
  case tile_op::op: return pick<tile_op::op, element_set::set, true>(t);
      SOD2_UNARY(neg, number)
      SOD2_UNARY(abs, number)
      SOD2_UNARY(sqrt, real)
      SOD2_UNARY(exp, real)
      SOD2_UNARY(log, real)
      SOD2_UNARY(erf, real)
      SOD2_UNARY(reciprocal, real)
      SOD2_UNARY(ceil, real)
      SOD2_UNARY(floor, real)
      SOD2_UNARY(round, real)
      SOD2_UNARY(sign, number)
      SOD2_UNARY(sin, real)
      SOD2_UNARY(cos, real)
      SOD2_UNARY(tan, real)
      SOD2_UNARY(asin, real)
      SOD2_UNARY(acos, real)
      SOD2_UNARY(atan, real)
      SOD2_UNARY(sinh, real)
      SOD2_UNARY(cosh, real)
      SOD2_UNARY(tanh, real)
      SOD2_UNARY(asinh, real)
      SOD2_UNARY(acosh, real)
      SOD2_UNARY(atanh, real)
      SOD2_UNARY(relu, number)
      SOD2_UNARY(leaky_relu, real)
      SOD2_UNARY(elu, real)
      SOD2_UNARY(celu, real)
      SOD2_UNARY(selu, real)
      SOD2_UNARY(sigmoid, real)
      SOD2_UNARY(hard_sigmoid, real)
      SOD2_UNARY(hard_swish, real)
      SOD2_UNARY(softplus, real)
      SOD2_UNARY(softsign, real)
      SOD2_UNARY(thresholded_relu, real)
      SOD2_UNARY(shrink, number)
      SOD2_UNARY(gelu_erf, real)
      SOD2_UNARY(gelu_tanh, real)
      SOD2_UNARY(mish, real)
      SOD2_UNARY(silu, real)
      SOD2_UNARY(clip, number)
      SOD2_UNARY(bit_not, integer)
      SOD2_UNARY(logical_not, boolean)
      SOD2_UNARY(is_nan, real)
      SOD2_UNARY(is_inf, real)
#undef SOD2_UNARY
    case tile_op::count_: return nullptr;
  }
  return nullptr;
}

/// The function of an instruction on one instruction set.
inline tile_function tile_function_of(const simd_table& simd, const tile_instruction& in,
                                      bool& takes_scalars) {
  takes_scalars = false;
  if (in.type == dtype::f32 && in.op != tile_op::cast) {
    const tile_function f = simd.tile[static_cast<std::size_t>(in.op)];
    if (f != nullptr) {
      takes_scalars = tile_builder::arity(in.op) == 2;
      return f;
    }
  }
  return generic_tile(in);
}

}  // namespace sod2::kernel_detail
