// The dimension domain: what transfer functions and shape rules may do with a dimension. Rules are
// written once against it and run over integers, intervals, and symbolic expressions (at compile
// time and at run time).
#pragma once

#include <cstdint>

#include <sod2/core/checked.hpp>
#include <sod2/expr/context.hpp>
#include <sod2/expr/dim.hpp>
#include <sod2/expr/interval.hpp>

namespace sod2 {

/// Requirements: `value_type`; constant, add, sub, mul, floordiv (positive constant divisor), min,
/// max, broadcast; three-valued decide_eq and decide_le; div_exact (false when not exact);
/// as_constant (false when not a constant); fresh(interval); join of two facts.
template <class D>
concept dimension_domain = requires(D& d, typename D::value_type v, std::int64_t k,
                                    std::int64_t& out, typename D::value_type& r) {
  { d.constant(k) };
  { d.add(v, v) };
  { d.sub(v, v) };
  { d.mul(v, v) };
  { d.floordiv(v, k) };
  { d.min(v, v) };
  { d.max(v, v) };
  { d.broadcast(v, v) };
  { d.decide_eq(v, v) };
  { d.decide_le(v, v) };
  { d.div_exact(v, v, r) };
  { d.as_constant(v, out) };
  { d.fresh(interval{}) };
  { d.join(v, v) };
};

/// Concrete shapes and elements, which wrap as tensors of integers do.
struct integer_domain {
  using value_type = std::int64_t;
  static constexpr std::int64_t constant(std::int64_t k) { return k; }
  static constexpr std::int64_t add(std::int64_t a, std::int64_t b) { return wrap_add(a, b); }
  static constexpr std::int64_t sub(std::int64_t a, std::int64_t b) { return wrap_sub(a, b); }
  static constexpr std::int64_t mul(std::int64_t a, std::int64_t b) { return wrap_mul(a, b); }
  static constexpr std::int64_t floordiv(std::int64_t a, std::int64_t k) { return floor_div(a, k); }
  static constexpr std::int64_t min(std::int64_t a, std::int64_t b) { return min_of(a, b); }
  static constexpr std::int64_t max(std::int64_t a, std::int64_t b) { return max_of(a, b); }
  static constexpr std::int64_t broadcast(std::int64_t a, std::int64_t b) { return a == 1 ? b : a; }
  static constexpr tri decide_eq(std::int64_t a, std::int64_t b) { return to_tri(a == b); }
  static constexpr tri decide_le(std::int64_t a, std::int64_t b) { return to_tri(a <= b); }
  static constexpr bool div_exact(std::int64_t a, std::int64_t b, std::int64_t& out) {
    if (b == 0 || a % b != 0) return false;
    out = a / b;
    return true;
  }
  static constexpr bool as_constant(std::int64_t a, std::int64_t& out) {
    out = a;
    return true;
  }
  static constexpr std::int64_t fresh(interval range) { return range.lo; }
  static constexpr std::int64_t join(std::int64_t a, std::int64_t b) { return max_of(a, b); }
};

/// Ranges of sizes.
struct interval_domain {
  using value_type = interval;
  static constexpr interval constant(std::int64_t k) { return interval::point(k); }
  static constexpr interval add(interval a, interval b) { return a + b; }
  static constexpr interval sub(interval a, interval b) { return a - b; }
  static constexpr interval mul(interval a, interval b) { return a * b; }
  static constexpr interval floordiv(interval a, std::int64_t k) { return sod2::floordiv(a, k); }
  static constexpr interval min(interval a, interval b) { return sod2::min(a, b); }
  static constexpr interval max(interval a, interval b) { return sod2::max(a, b); }
  static constexpr interval broadcast(interval a, interval b) {
    if (a == interval::point(1)) return b;
    if (b == interval::point(1)) return a;
    return {min_of(a.lo, b.lo), max_of(a.hi, b.hi)};
  }
  static constexpr tri decide_eq(interval a, interval b) {
    if (a.is_point() && a == b) return tri::yes;
    return meet(a, b).empty() ? tri::no : tri::unknown;
  }
  static constexpr tri decide_le(interval a, interval b) {
    return a.hi <= b.lo ? tri::yes : a.lo > b.hi ? tri::no : tri::unknown;
  }
  static constexpr bool div_exact(interval a, interval b, interval& out) {
    if (b.lo < 1) return false;
    out = {detail::is_infinite(a.lo) ? a.lo : ceil_div(a.lo, a.lo < 0 ? b.lo : b.hi),
           detail::is_infinite(a.hi) ? a.hi : floor_div(a.hi, a.hi < 0 ? b.hi : b.lo)};
    return true;
  }
  static constexpr bool as_constant(interval a, std::int64_t& out) {
    out = a.lo;
    return a.is_point();
  }
  static constexpr interval fresh(interval range) { return range; }
  static constexpr interval join(interval a, interval b) { return hull(a, b); }
};

/// Symbolic expressions of a context; also the compile-time domain, since the context is constexpr.
class symbolic_domain {
 public:
  using value_type = dim;
  constexpr explicit symbolic_domain(dim_context& context) : context_(&context) {}
  constexpr dim_context& context() { return *context_; }
  constexpr dim constant(std::int64_t k) { return context_->constant(k); }
  constexpr dim add(dim a, dim b) { return context_->add(a, b); }
  constexpr dim sub(dim a, dim b) { return context_->sub(a, b); }
  constexpr dim mul(dim a, dim b) { return context_->mul(a, b); }
  constexpr dim floordiv(dim a, std::int64_t k) { return context_->floordiv(a, k); }
  constexpr dim min(dim a, dim b) { return context_->min(a, b); }
  constexpr dim max(dim a, dim b) { return context_->max(a, b); }
  constexpr dim broadcast(dim a, dim b) { return context_->broadcast(a, b); }
  constexpr tri decide_eq(dim a, dim b) { return context_->decide_eq(a, b); }
  constexpr tri decide_le(dim a, dim b) { return context_->decide_le(a, b); }
  constexpr bool div_exact(dim a, dim b, dim& out) {
    if (context_->decide_le(context_->one(), b) != tri::yes) return false;
    out = context_->div_exact(a, b);
    return out.is_known();
  }
  constexpr bool as_constant(dim a, std::int64_t& out) {
    if (!a.is_known()) return false;
    a = context_->resolve(a);
    if (!a.is_known() || !context_->is_constant(a)) return false;
    out = context_->value(a);
    return true;
  }
  constexpr dim fresh(interval range) { return context_->fresh(range); }
  /// Equal stays exact; different dims become a bounded symbol.
  constexpr dim join(dim a, dim b) {
    if (a.is_undefined()) return b;
    if (b.is_undefined()) return a;
    if (!a.is_known() || !b.is_known()) return dim::unknown();
    if (context_->resolve(a) == context_->resolve(b)) return a;
    return context_->fresh(hull(context_->bounds(a), context_->bounds(b)));
  }

 private:
  dim_context* context_;
};

}  // namespace sod2
