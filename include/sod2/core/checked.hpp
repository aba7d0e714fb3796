// Integer arithmetic that notices overflow or wraps, and division with floor semantics.
#pragma once

#include <cstdint>
#include <type_traits>

namespace sod2 {

/// Three-valued answer of every question about symbolic sizes.
enum class tri : std::uint8_t { no, yes, unknown };

constexpr tri to_tri(bool b) { return b ? tri::yes : tri::no; }
constexpr tri operator!(tri t) {
  return t == tri::unknown ? tri::unknown : to_tri(t == tri::no);
}

/// Wraps instead of being undefined, as tensors of integers do.
template <class T>
using wrapping = std::make_unsigned_t<std::conditional_t<(sizeof(T) < sizeof(int)), int, T>>;
template <class T>
constexpr T wrap_add(T a, T b) {
  return static_cast<T>(static_cast<wrapping<T>>(a) + static_cast<wrapping<T>>(b));
}
template <class T>
constexpr T wrap_sub(T a, T b) {
  return static_cast<T>(static_cast<wrapping<T>>(a) - static_cast<wrapping<T>>(b));
}
template <class T>
constexpr T wrap_mul(T a, T b) {
  return static_cast<T>(static_cast<wrapping<T>>(a) * static_cast<wrapping<T>>(b));
}

// Each returns true on success (the inverse of the builtins, so that calls chain with &&).
constexpr bool checked_add(std::int64_t a, std::int64_t b, std::int64_t& out) {
  return !__builtin_add_overflow(a, b, &out);
}
constexpr bool checked_sub(std::int64_t a, std::int64_t b, std::int64_t& out) {
  return !__builtin_sub_overflow(a, b, &out);
}
constexpr bool checked_mul(std::int64_t a, std::int64_t b, std::int64_t& out) {
  return !__builtin_mul_overflow(a, b, &out);
}

/// Requires b > 0.
constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return a % b < 0 ? q - 1 : q;
}
/// Requires b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return a % b > 0 ? q + 1 : q;
}
/// Result in [0, b). Requires b > 0.
constexpr std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  const std::int64_t r = a % b;
  return r < 0 ? r + b : r;
}
constexpr std::int64_t gcd(std::int64_t a, std::int64_t b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const std::int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}
/// Smallest multiple of `k` that is >= a. Requires k > 0.
constexpr std::int64_t align_up(std::int64_t a, std::int64_t k) { return ceil_div(a, k) * k; }

}  // namespace sod2
