// Conditions on sizes: 0/1 expressions that stand for comparisons, read back as what they compare.
#pragma once

#include <string>

#include <sod2/expr/context.hpp>
#include <sod2/expr/print.hpp>

namespace sod2::detail {

/// The comparison that a 0/1 expression stands for: `difference == 0`, or `difference >= 1`.
struct comparison {
  enum class kind : std::uint8_t { none, equal, positive };
  kind what = kind::none;
  dim difference{};
};

// max(0, 1 - max(d, -d)) is d == 0; max(0, min(1, d)) is d >= 1, also where a bound that proofs
// make superfluous is missing.
inline comparison read_condition(dim_context& c, dim d) {
  comparison out;
  if (!d.is_known()) return out;
  const dim_kind k = c.kind(d);
  if (k == dim_kind::max || k == dim_kind::min) {
    dim rest{};
    const std::size_t n = c.operand_count(d);
    const dim dropped = k == dim_kind::max ? c.zero() : c.one();
    std::size_t others = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (c.operand(d, i).d != dropped) {
        rest = c.operand(d, i).d;
        ++others;
      }
    if (others != n && others == 1) {
      // A minimum with 1 only says "positive"; a maximum with 0 hides one more layer.
      const comparison inner = read_condition(c, rest);
      if (inner.what != comparison::kind::none) return inner;
      return {comparison::kind::positive, rest};
    }
  }
  // 1 - max(p, -p), or 1 - p where p >= 0 is proved.
  const dim rest = c.sub(c.one(), d);
  if (rest.is_known() && c.kind(rest) == dim_kind::max && c.operand_count(rest) == 2) {
    const dim p = c.operand(rest, 0).d, q = c.operand(rest, 1).d;
    if (c.add(p, q) == c.zero()) return {comparison::kind::equal, p};
  }
  return out;
}

/// `d` (0 or 1) has this outcome: what that says of the symbols becomes a fact where it can.
inline void assume(dim_context& c, dim d, bool outcome) {
  const comparison what = read_condition(c, c.resolve(d));
  if (what.what == comparison::kind::equal && outcome) {
    (void)c.assume_eq(what.difference, c.zero());
    return;
  }
  if (what.what != comparison::kind::positive) return;
  // difference >= 1 or <= 0 bounds a lone symbol.
  const dim e = c.resolve(what.difference);
  if (!e.is_known()) return;
  small_vector<std::uint32_t, 4> symbols;
  c.for_each_symbol(e, [&](std::uint32_t s) { symbols.push_back(s); });
  if (symbols.size() != 1) return;
  for (const std::int64_t sign : {std::int64_t{1}, std::int64_t{-1}}) {
    const dim offset = c.sub(e, c.mul(c.dim_of_symbol(symbols[0]), sign));
    if (!offset.is_known() || !c.is_constant(offset)) continue;
    const std::int64_t k = c.value(offset);
    interval range{};  // from sign*s + k >= 1, or <= 0
    if (outcome && sign > 0)
      range.lo = 1 - k;
    else if (outcome)
      range.hi = k - 1;
    else if (sign > 0)
      range.hi = -k;
    else
      range.lo = k;
    if (!meet(range, c.range_of_symbol(symbols[0])).empty())
      (void)c.assume_range(symbols[0], range);
  }
}

/// `left op right` for a difference left - right, with what is subtracted on the right.
inline std::string compared(dim_context& c, dim difference, const char* op) {
  dim left = c.zero(), right = c.zero();
  if (c.kind(difference) != dim_kind::sum) {
    left = difference;
  } else {
    for (std::size_t i = 0; i < c.operand_count(difference); ++i) {
      const dim_operand o = c.operand(difference, i);
      if (o.a > 0)
        left = c.add(left, c.mul(o.d, o.a));
      else
        right = c.sub(right, c.mul(o.d, o.a));
    }
  }
  return print(c, left) + op + print(c, right);
}

/// The condition as text: `H == 2*W`, `L > 16`, or the raw expression compared with its value.
inline std::string condition_text(dim_context& c, dim d, bool outcome) {
  const comparison what = read_condition(c, c.resolve(d));
  switch (what.what) {
    case comparison::kind::equal: return compared(c, what.difference, outcome ? " == " : " != ");
    case comparison::kind::positive: return compared(c, what.difference, outcome ? " > " : " <= ");
    case comparison::kind::none: break;
  }
  return print(c, d) + (outcome ? " == 1" : " == 0");
}

}  // namespace sod2::detail
