// Slicing arithmetic (ONNX Slice-10/13, Range, numpy semantics).
#pragma once

#include <cstdint>

#include <sod2/core/checked.hpp>
#include <sod2/expr/domain.hpp>

namespace sod2::rules {

/// Indices beyond this are no sizes: larger ones are clamps, and below it a sign is a floor
/// division.
inline constexpr std::int64_t index_limit = std::int64_t{1} << 40;

/// A start or end index moved into [low, high(size)]: negative counts from the end, out of range
/// clamps. For step > 0 the range is [0, size], for step < 0 it is [-1, size - 1].
///
/// An index of unknown sign still has an exact answer: floor(index / 2^40) is -1 below zero and 0
/// elsewhere, so `index - size*floor(index / 2^40)` wraps it. False only where the index has no
/// finite bounds.
template <class Domain>
constexpr bool clamp_index(Domain& domain, typename Domain::value_type size,
                           typename Domain::value_type index, bool backwards,
                           typename Domain::value_type& out) {
  const auto zero = domain.constant(0);
  const tri non_negative = domain.decide_le(zero, index);
  const tri negative =
      non_negative == tri::yes ? tri::no : domain.decide_le(index, domain.constant(-1));
  auto wrapped = index;
  if (negative == tri::yes) {
    wrapped = domain.add(index, size);
  } else if (non_negative != tri::yes) {
    if (domain.decide_le(index, domain.constant(index_limit - 1)) != tri::yes ||
        domain.decide_le(domain.constant(-index_limit), index) != tri::yes)
      return false;
    wrapped = domain.sub(index, domain.mul(size, domain.floordiv(index, index_limit)));
  }
  const auto high = backwards ? domain.sub(size, domain.constant(1)) : size;
  const auto low = backwards ? domain.constant(-1) : zero;
  out = domain.max(low, domain.min(wrapped, high));
  return true;
}

/// Number of elements that start:end:step takes from an axis of `size`; `first`, if given, gets the
/// first index. Constants of extreme size (INT64_MAX, INT64_MIN and the int32 ones) mean "to the
/// end". False when a symbolic index has no bounds: the result then only lies in [0, size].
template <class Domain>
constexpr bool slice_length(Domain& domain, typename Domain::value_type size,
                            typename Domain::value_type start, typename Domain::value_type end,
                            std::int64_t step, typename Domain::value_type& out,
                            typename Domain::value_type* first = nullptr) {
  constexpr std::int64_t far = 2147483647;
  const bool backwards = step < 0;
  const auto top = backwards ? domain.sub(size, domain.constant(1)) : size;
  const auto bottom = backwards ? domain.constant(-1) : domain.constant(0);
  auto clamp = [&](typename Domain::value_type index, typename Domain::value_type& to) {
    std::int64_t k = 0;
    if (domain.as_constant(index, k) && (k >= far || k <= -far)) {
      to = k > 0 ? top : bottom;
      return true;
    }
    return clamp_index(domain, size, index, backwards, to);
  };
  auto from = domain.constant(0);
  auto to = domain.constant(0);
  if (!clamp(start, from) || !clamp(end, to)) return false;
  if (first != nullptr) *first = from;
  const std::int64_t stride = backwards ? -step : step;
  const auto distance = backwards ? domain.sub(from, to) : domain.sub(to, from);
  const auto count = domain.floordiv(domain.add(distance, domain.constant(stride - 1)), stride);
  out = domain.max(domain.constant(0), count);
  return true;
}

}  // namespace sod2::rules
