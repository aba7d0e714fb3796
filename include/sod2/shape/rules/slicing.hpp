// Slicing arithmetic (ONNX Slice-10/13, Range, numpy semantics).
#pragma once

#include <cstdint>

#include <sod2/core/checked.hpp>
#include <sod2/expr/domain.hpp>

namespace sod2::rules {

/// A start or end index moved into [low, high(size)]: negative counts from the end, out of range
/// clamps. For step > 0 the range is [0, size], for step < 0 it is [-1, size - 1].
/// False when the sign of a symbolic index is not known.
template <class Domain>
constexpr bool clamp_index(Domain& domain, typename Domain::value_type size,
                           typename Domain::value_type index, bool backwards,
                           typename Domain::value_type& out) {
  const auto zero = domain.constant(0);
  const tri non_negative = domain.decide_le(zero, index);
  const tri negative =
      non_negative == tri::yes ? tri::no : domain.decide_le(index, domain.constant(-1));
  if (non_negative != tri::yes && negative != tri::yes) return false;
  const auto wrapped = negative == tri::yes ? domain.add(index, size) : index;
  const auto high = backwards ? domain.sub(size, domain.constant(1)) : size;
  const auto low = backwards ? domain.constant(-1) : zero;
  out = domain.max(low, domain.min(wrapped, high));
  return true;
}

/// Number of elements that start:end:step takes from an axis of `size`. Constants of extreme size
/// (INT64_MAX, INT64_MIN and the int32 ones) mean "to the end". False when a symbolic index has an
/// unknown sign: the result then only lies in [0, size].
template <class Domain>
constexpr bool slice_length(Domain& domain, typename Domain::value_type size,
                            typename Domain::value_type start, typename Domain::value_type end,
                            std::int64_t step, typename Domain::value_type& out) {
  constexpr std::int64_t far = 2147483647;
  std::int64_t k = 0;
  auto first = domain.constant(0);
  auto last = domain.constant(0);
  const bool backwards = step < 0;
  const auto top = backwards ? domain.sub(size, domain.constant(1)) : size;
  const auto bottom = backwards ? domain.constant(-1) : domain.constant(0);
  if (domain.as_constant(start, k) && (k >= far || k <= -far))
    first = k > 0 ? top : bottom;
  else if (!clamp_index(domain, size, start, backwards, first))
    return false;
  if (domain.as_constant(end, k) && (k >= far || k <= -far))
    last = k > 0 ? top : bottom;
  else if (!clamp_index(domain, size, end, backwards, last))
    return false;
  const std::int64_t stride = backwards ? -step : step;
  const auto distance = backwards ? domain.sub(first, last) : domain.sub(last, first);
  const auto count = domain.floordiv(domain.add(distance, domain.constant(stride - 1)), stride);
  out = domain.max(domain.constant(0), count);
  return true;
}

}  // namespace sod2::rules
