// Closed integer intervals with saturating ends; the extreme values of int64 stand for infinity.
#pragma once

#include <cstdint>

#include <sod2/core/checked.hpp>

namespace sod2 {

inline constexpr std::int64_t infinity = INT64_MAX;
inline constexpr std::int64_t minus_infinity = INT64_MIN;

/// [lo, hi]; empty when lo > hi.
struct interval {
  std::int64_t lo = minus_infinity;
  std::int64_t hi = infinity;

  static constexpr interval point(std::int64_t v) { return {v, v}; }
  constexpr bool is_point() const { return lo == hi; }
  constexpr bool empty() const { return lo > hi; }
  constexpr bool contains(std::int64_t v) const { return lo <= v && v <= hi; }
  friend constexpr bool operator==(interval, interval) = default;
};

namespace detail {
constexpr bool is_infinite(std::int64_t v) { return v == infinity || v == minus_infinity; }
constexpr std::int64_t sat_neg(std::int64_t v) {
  return v == minus_infinity ? infinity : v == infinity ? minus_infinity : -v;
}
// Sums of one end each; overflow saturates. Where opposite infinities meet, `weak` is the end that
// promises nothing.
constexpr std::int64_t sat_add(std::int64_t a, std::int64_t b, std::int64_t weak) {
  if (is_infinite(a)) return is_infinite(b) && a != b ? weak : a;
  if (is_infinite(b)) return b;
  std::int64_t r = 0;
  if (checked_add(a, b, r)) return r;
  return a > 0 ? infinity : minus_infinity;
}
constexpr std::int64_t sat_mul(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  std::int64_t r = 0;
  if (!is_infinite(a) && !is_infinite(b) && checked_mul(a, b, r)) return r;
  return (a > 0) == (b > 0) ? infinity : minus_infinity;
}
}  // namespace detail

constexpr std::int64_t min_of(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t max_of(std::int64_t a, std::int64_t b) { return a < b ? b : a; }

constexpr interval operator-(interval a) { return {detail::sat_neg(a.hi), detail::sat_neg(a.lo)}; }
constexpr interval operator+(interval a, interval b) {
  return {detail::sat_add(a.lo, b.lo, minus_infinity), detail::sat_add(a.hi, b.hi, infinity)};
}
constexpr interval operator-(interval a, interval b) { return a + (-b); }
constexpr interval operator*(interval a, interval b) {
  const std::int64_t p = detail::sat_mul(a.lo, b.lo), q = detail::sat_mul(a.lo, b.hi);
  const std::int64_t r = detail::sat_mul(a.hi, b.lo), s = detail::sat_mul(a.hi, b.hi);
  return {min_of(min_of(p, q), min_of(r, s)), max_of(max_of(p, q), max_of(r, s))};
}
/// Requires k > 0.
constexpr interval floordiv(interval a, std::int64_t k) {
  return {detail::is_infinite(a.lo) ? a.lo : floor_div(a.lo, k),
          detail::is_infinite(a.hi) ? a.hi : floor_div(a.hi, k)};
}
constexpr interval min(interval a, interval b) { return {min_of(a.lo, b.lo), min_of(a.hi, b.hi)}; }
constexpr interval max(interval a, interval b) { return {max_of(a.lo, b.lo), max_of(a.hi, b.hi)}; }
constexpr interval meet(interval a, interval b) { return {max_of(a.lo, b.lo), min_of(a.hi, b.hi)}; }
constexpr interval hull(interval a, interval b) { return {min_of(a.lo, b.lo), max_of(a.hi, b.hi)}; }

}  // namespace sod2
