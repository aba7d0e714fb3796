// Arithmetic on the elements of small tensors (the V-map): integers and booleans as integer
// expressions, floats as `real` expressions that a run evaluates in IEEE; over plain integers a
// float element is the bits of a double.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops::detail {

enum class element_op : std::uint8_t {
  add,
  sub,
  mul,
  div,
  mod,
  fmod,
  pow,
  min,
  max,
  equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  logical_xor,
  abs,
  neg,
  sign,
  floor,
  ceil,
  round,
  sqrt,
  relu,
  logical_not,
  identity,
};

constexpr bool is_comparison(element_op op) {
  return op >= element_op::equal && op <= element_op::greater_equal;
}
constexpr bool is_unary(element_op op) { return op >= element_op::abs; }

/// Truth of an integer element.
template <class D>
tri truth(D& domain, typename D::value_type v) {
  return is_known(v) ? !domain.decide_eq(v, domain.constant(0)) : tri::unknown;
}

template <class D>
typename D::value_type boolean(D& domain, tri t) {
  return domain.constant(t == tri::yes ? 1 : 0);
}

/// Is v provably >= 0.
template <class D>
bool non_negative(D& domain, typename D::value_type v) {
  return domain.decide_le(domain.constant(0), v) == tri::yes;
}

/// ONNX integer division truncates towards zero; an expression only has floor division, so the
/// signs must be proved. False: not expressible.
template <class D>
bool truncating_div(D& domain, typename D::value_type a, typename D::value_type b,
                    typename D::value_type& out) {
  std::int64_t k = 0, n = 0;
  if (domain.as_constant(b, k)) {
    if (k == 0) return false;
    if (domain.as_constant(a, n)) {
      if (n == INT64_MIN && k == -1) return false;
      out = domain.constant(n / k);
      return true;
    }
    if (k < 0 && k != INT64_MIN) {
      if (!truncating_div(domain, a, domain.constant(-k), out)) return false;
      out = domain.sub(domain.constant(0), out);
      return true;
    }
    if (k == 1) {
      out = a;
      return true;
    }
    if (k > 0 && non_negative(domain, a)) {
      out = domain.floordiv(a, k);
      return true;
    }
    if (k > 0 && domain.decide_le(a, domain.constant(0)) == tri::yes) {
      out = domain.sub(domain.constant(0), domain.floordiv(domain.sub(domain.constant(0), a), k));
      return true;
    }
  }
  // Where b divides a as a polynomial, rounding does not matter.
  if constexpr (is_symbolic<D>) return domain.div_exact(a, b, out);
  return false;
}

/// Mod with the sign of the divisor (fmod = 0), as Python.
template <class D>
bool floor_mod_of(D& domain, typename D::value_type a, typename D::value_type b,
                  typename D::value_type& out) {
  std::int64_t k = 0, n = 0;
  if (!domain.as_constant(b, k) || k == 0 || k == INT64_MIN) return false;
  if (k < 0) {
    if (!domain.as_constant(a, n)) return false;
    const std::int64_t rest = k == -1 ? 0 : n % k;
    out = domain.constant(rest > 0 ? rest + k : rest);
    return true;
  }
  out = domain.sub(a, domain.mul(domain.floordiv(a, k), domain.constant(k)));
  if constexpr (!is_symbolic<D> && !is_concrete<D>) out = meet(out, interval{0, k - 1});
  return true;
}

/// An undecided truth value as an expression that is 0 or 1 at every binding: conditions on sizes
/// stay functions of the symbols, so that they can be decided at bind.
template <class D>
bool indicator(D& domain, element_op op, typename D::value_type a, typename D::value_type b,
               typename D::value_type& out) {
  const auto zero = domain.constant(0), one = domain.constant(1);
  const auto less = [&](const auto& x, const auto& y) {  // x < y
    return domain.max(zero, domain.min(one, domain.sub(y, x)));
  };
  const auto is_boolean = [&](const auto& x) {
    return domain.decide_le(zero, x) == tri::yes && domain.decide_le(x, one) == tri::yes;
  };
  switch (op) {
    case element_op::equal: {
      const auto d = domain.sub(a, b);
      out = domain.max(zero, domain.sub(one, domain.max(d, domain.sub(zero, d))));
      break;
    }
    case element_op::less: out = less(a, b); break;
    case element_op::greater: out = less(b, a); break;
    case element_op::less_equal: out = less(a, domain.add(b, one)); break;
    case element_op::greater_equal: out = less(b, domain.add(a, one)); break;
    case element_op::logical_and:
      if (!is_boolean(a) || !is_boolean(b)) return false;
      out = domain.min(a, b);
      break;
    case element_op::logical_or:
      if (!is_boolean(a) || !is_boolean(b)) return false;
      out = domain.max(a, b);
      break;
    case element_op::logical_not:
      if (!is_boolean(a)) return false;
      out = domain.sub(one, a);
      break;
    default: return false;
  }
  return is_known(out);
}

/// condition ? x : y with a condition that is an undecided 0 or 1; unknown where that is no integer
/// expression.
template <class D>
typename D::value_type select(D& domain, typename D::value_type condition, typename D::value_type x,
                              typename D::value_type y) {
  if constexpr (is_symbolic<D>) {
    dim_context& c = domain.context();
    if (is_known(condition) && is_known(x) && is_known(y) && !c.is_real_valued(x) &&
        !c.is_real_valued(y))
      return c.add(y, c.mul(condition, c.sub(x, y)));
  }
  return unknown_dim(domain);
}

template <class D>
bool integer_element(D& domain, element_op op, typename D::value_type a, typename D::value_type b,
                     typename D::value_type& out) {
  const auto zero = domain.constant(0);
  tri t = tri::unknown;
  switch (op) {
    case element_op::add: out = domain.add(a, b); return true;
    case element_op::sub: out = domain.sub(a, b); return true;
    case element_op::mul: out = domain.mul(a, b); return true;
    case element_op::div: return truncating_div(domain, a, b, out);
    case element_op::mod: return floor_mod_of(domain, a, b, out);
    case element_op::fmod: {
      // The sign of the dividend: a - b*trunc(a/b).
      typename D::value_type q = zero;
      if (!truncating_div(domain, a, b, q)) return false;
      out = domain.sub(a, domain.mul(b, q));
      return true;
    }
    case element_op::pow: {
      std::int64_t k = 0;
      if (!domain.as_constant(b, k) || k < 0 || k > 4) return false;
      out = domain.constant(1);
      for (std::int64_t i = 0; i < k; ++i) out = domain.mul(out, a);
      return true;
    }
    case element_op::min: out = domain.min(a, b); return true;
    case element_op::max: out = domain.max(a, b); return true;
    case element_op::equal: t = domain.decide_eq(a, b); break;
    case element_op::less: t = !domain.decide_le(b, a); break;
    case element_op::less_equal: t = domain.decide_le(a, b); break;
    case element_op::greater: t = !domain.decide_le(a, b); break;
    case element_op::greater_equal: t = domain.decide_le(b, a); break;
    case element_op::logical_and: {
      const tri x = truth(domain, a), y = truth(domain, b);
      if (x == tri::no || y == tri::no)
        t = tri::no;
      else if (x == tri::yes && y == tri::yes)
        t = tri::yes;
      break;
    }
    case element_op::logical_or: {
      const tri x = truth(domain, a), y = truth(domain, b);
      if (x == tri::yes || y == tri::yes)
        t = tri::yes;
      else if (x == tri::no && y == tri::no)
        t = tri::no;
      break;
    }
    case element_op::logical_xor: {
      const tri x = truth(domain, a), y = truth(domain, b);
      if (x != tri::unknown && y != tri::unknown) t = to_tri(x != y);
      break;
    }
    case element_op::logical_not: t = !truth(domain, a); break;
    case element_op::abs:
      if (domain.decide_le(a, zero) == tri::yes)
        out = domain.sub(zero, a);
      else
        out = non_negative(domain, a) ? a : domain.max(a, domain.sub(zero, a));
      return true;
    case element_op::neg: out = domain.sub(zero, a); return true;
    case element_op::sign:
      if (domain.decide_le(domain.constant(1), a) == tri::yes) {
        out = domain.constant(1);
        return true;
      }
      out = domain.min(domain.constant(1), domain.max(domain.constant(-1), a));
      return true;
    case element_op::relu: out = domain.max(a, zero); return true;
    case element_op::identity:
    case element_op::floor:
    case element_op::ceil:
    case element_op::round: out = a; return true;
    case element_op::sqrt: return false;
  }
  if (t != tri::unknown) {
    out = boolean(domain, t);
    return true;
  }
  if constexpr (is_symbolic<D>)
    return indicator(domain, op, a, b, out);
  else
    return false;
}

/// The operation of the algebra of real expressions, `literal` when there is none.
constexpr real_op real_code(element_op op) {
  switch (op) {
    case element_op::add: return real_op::add;
    case element_op::sub: return real_op::sub;
    case element_op::mul: return real_op::mul;
    case element_op::div: return real_op::div;
    case element_op::min: return real_op::min;
    case element_op::max:
    case element_op::relu: return real_op::max;
    case element_op::neg: return real_op::neg;
    case element_op::floor: return real_op::floor;
    case element_op::ceil: return real_op::ceil;
    case element_op::round: return real_op::round;
    default: return real_op::literal;
  }
}
/// One operation on known numbers; a truth value comes as 0 or 1. False where the result is not a
/// finite computation that a size could come from.
inline bool fold_real(element_op op, bool wide, double a, double b, double& out) {
  switch (op) {
    case element_op::equal: out = a == b; return true;
    case element_op::less: out = a < b; return true;
    case element_op::less_equal: out = a <= b; return true;
    case element_op::greater: out = a > b; return true;
    case element_op::greater_equal: out = a >= b; return true;
    case element_op::abs: out = a < 0 ? -a : a; return true;
    case element_op::identity: out = a; return true;
    case element_op::sqrt:
      if (!(a >= 0)) return false;
      out = wide ? std::sqrt(a) : static_cast<double>(std::sqrt(static_cast<float>(a)));
      return true;
    default: break;
  }
  const real_op code = real_code(op);
  if (code == real_op::literal || (op == element_op::div && b == 0.0)) return false;
  out = dim_context::apply_real(code, wide, a, op == element_op::relu ? 0.0 : b);
  return true;
}

/// Intervals do not track floats.
template <class D>
bool real_element(D& domain, element_op op, bool wide, typename D::value_type a,
                  typename D::value_type b, typename D::value_type& out) {
  double folded = 0.0;
  if constexpr (is_concrete<D>) {
    if (!fold_real(op, wide, std::bit_cast<double>(a), std::bit_cast<double>(b), folded))
      return false;
    out =
        is_comparison(op) ? static_cast<std::int64_t>(folded) : std::bit_cast<std::int64_t>(folded);
    return true;
  } else if constexpr (is_symbolic<D>) {
    dim_context& context = domain.context();
    const bool literals =
        context.is_real_literal(a) && (is_unary(op) || context.is_real_literal(b));
    if (literals) {
      const double y = is_unary(op) ? 0.0 : context.literal_value(b);
      if (!fold_real(op, wide, context.literal_value(a), y, folded)) return false;
      out = is_comparison(op) ? context.constant(static_cast<std::int64_t>(folded))
                              : context.real_literal(folded, wide);
      return true;
    }
    if (op == element_op::identity || (op == element_op::abs && context.bounds(a).lo >= 0)) {
      out = a;
      return true;
    }
    const real_op code = op == element_op::sqrt ? real_op::sqrt : real_code(op);
    if (code == real_op::literal) return false;
    if (code == real_op::div && context.is_real_literal(b) && context.literal_value(b) == 0.0)
      return false;
    const dim args[2] = {a, op == element_op::relu ? context.real_literal(0.0, wide) : b};
    const bool one = is_unary(op) && op != element_op::relu;
    out = context.real(code, wide, std::span<const dim>(args, one ? 1 : 2));
    return true;
  } else {
    (void)domain, (void)op, (void)wide, (void)a, (void)b, (void)out, (void)folded;
    return false;
  }
}
/// A number as an element of a float tensor; false over intervals.
template <class D>
bool real_constant(D& domain, double v, bool wide, typename D::value_type& out) {
  if constexpr (is_symbolic<D>) {
    out = domain.context().real_literal(v, wide);
    return true;
  } else if constexpr (is_concrete<D>) {
    out = std::bit_cast<std::int64_t>(v);
    return true;
  } else {
    (void)domain, (void)v, (void)wide, (void)out;
    return false;
  }
}

/// One element; false when it is not expressible. `type` is the type of the operands.
template <class D>
bool element(D& domain, element_op op, dtype type, typename D::value_type a,
             typename D::value_type b, typename D::value_type& out) {
  if (!is_known(a) || !is_known(b)) {
    // A known operand may still decide: false && x, true || x.
    if (op != element_op::logical_and && op != element_op::logical_or) return false;
    return integer_element(domain, op, a, b, out);
  }
  if (type == dtype::f32 || type == dtype::f64)
    return real_element(domain, op, type == dtype::f64, a, b, out);
  if (is_integer(type) || type == dtype::boolean) return integer_element(domain, op, a, b, out);
  return false;
}

/// Value rule of unary operators.
template <class C>
status unary_value(C& c, element_op op) {
  if (!c.has_value(0)) return {};
  element_list<C> out(c);
  for (const auto& v : c.value(0)) {
    auto r = v;
    if (element(c.domain(), op, c.input(0).type, v, v, r))
      out.push(r);
    else if (is_undefined(v))
      out.push(v);
    else
      out.push_unknown();
  }
  out.commit(0);
  return {};
}

/// Value rule of operators that combine inputs [0, n) pairwise under numpy broadcasting.
template <class C>
status broadcast_value(C& c, element_op op) {
  using value_type = typename C::value_type;
  index_list dims, next, joined, left, right;
  small_vector<value_type, 8> acc;
  if (c.input_count() == 0 || !c.has_value(0) || !concrete_dims(c, 0, dims)) return {};
  for (const value_type& v : c.value(0)) acc.push_back(v);
  for (std::size_t i = 1; i < c.input_count(); ++i) {
    if (!c.has_value(i) || !concrete_dims(c, i, next)) return {};
    const std::size_t rank = dims.size() > next.size() ? dims.size() : next.size();
    joined.assign(rank, 1);
    for (std::size_t k = 0; k < rank; ++k) {
      const std::int64_t a = k + dims.size() < rank ? 1 : dims[k + dims.size() - rank];
      const std::int64_t b = k + next.size() < rank ? 1 : next[k + next.size() - rank];
      joined[k] = a == 1 ? b : a;
      if (a != b && a != 1 && b != 1) return {};
    }
    if (!tracked(product_of(joined))) return {};
    broadcast_indices(dims, joined, left);
    broadcast_indices(next, joined, right);
    const auto b = c.value(i);
    small_vector<value_type, 8> result;
    bool dropped = false;
    for (std::size_t k = 0; k < left.size(); ++k) {
      const value_type x = acc[static_cast<std::size_t>(left[k])],
                       y = b[static_cast<std::size_t>(right[k])];
      value_type r = x;
      if (element(c.domain(), op, c.input(0).type, x, y, r)) {
      } else if (is_undefined(x) || is_undefined(y)) {
        r = value_type{};
      } else if constexpr (is_symbolic<typename C::domain_type>) {
        r = dim::unknown();
      } else if constexpr (is_concrete<typename C::domain_type>) {
        dropped = true;
      } else {
        r = value_type{};
      }
      result.push_back(r);
    }
    if (dropped) return {};
    acc = result;
    dims = joined;
  }
  c.set_value(0, acc);
  return {};
}

/// Cast of one element from `from` to `to`; false when the result is not expressible.
template <class D>
bool cast_element(D& domain, dtype from, dtype to, typename D::value_type v,
                  typename D::value_type& out) {
  const bool from_integer = is_integer(from) || from == dtype::boolean;
  const bool from_real = from == dtype::f32 || from == dtype::f64;
  if (!is_known(v)) return false;
  if (from == to) {
    out = v;
    return from_integer || from_real;
  }
  if (to == dtype::boolean) {
    if (from_integer) {
      const interval range = bounds_of(domain, v);
      if (range.lo >= 0 && range.hi <= 1) {
        out = v;
        return true;
      }
      const tri t = truth(domain, v);
      if (t != tri::unknown) out = boolean(domain, t);
      return t != tri::unknown;
    }
    if constexpr (is_symbolic<D>) {
      if (from_real && domain.context().is_real_literal(v)) {
        out = domain.constant(domain.context().literal_value(v) != 0.0 ? 1 : 0);
        return true;
      }
    } else if constexpr (is_concrete<D>) {
      if (from_real) {
        out = std::bit_cast<double>(v) != 0.0 ? 1 : 0;
        return true;
      }
    }
    return false;
  }
  if (from_integer && is_integer(to)) {
    std::int64_t k = 0;
    out = v;
    // Constants wrap as the conversion does; expressions are sizes and stay what they are.
    if (!domain.as_constant(v, k)) return true;
    switch (to) {
      case dtype::i8: k = static_cast<std::int8_t>(k); break;
      case dtype::u8: k = static_cast<std::uint8_t>(k); break;
      case dtype::i16: k = static_cast<std::int16_t>(k); break;
      case dtype::u16: k = static_cast<std::uint16_t>(k); break;
      case dtype::i32: k = static_cast<std::int32_t>(k); break;
      case dtype::u32: k = static_cast<std::uint32_t>(k); break;
      case dtype::i64: break;
      default: return k >= 0;
    }
    out = domain.constant(k);
    return true;
  }
  if constexpr (is_concrete<D>) {
    if (to == dtype::f32 || to == dtype::f64) {
      if (!from_integer && !from_real) return false;
      double x = from_real ? std::bit_cast<double>(v) : static_cast<double>(v);
      if (to == dtype::f32)
        x = static_cast<double>(from_real ? static_cast<float>(x) : static_cast<float>(v));
      out = std::bit_cast<std::int64_t>(x);
      return true;
    }
    if (!from_real || !is_integer(to)) return false;
    const double x = std::bit_cast<double>(v);
    if (!(x >= -9.2e18 && x <= 9.2e18)) return false;
    return cast_element(domain, dtype::i64, to, static_cast<std::int64_t>(x), out);
  } else if constexpr (is_symbolic<D>) {
    dim_context& context = domain.context();
    const dim args[2] = {v, v};
    const std::span<const dim> one(args, 1);
    if (from_integer && (to == dtype::f32 || to == dtype::f64)) {
      out = context.real(real_op::from_int, to == dtype::f64, one);
      return true;
    }
    if (!from_real) return false;
    const bool wide = from == dtype::f64;
    if (is_integer(to)) {
      real_op code = real_op::trunc_int;
      dim inner = v;
      if (context.kind(v) == dim_kind::real && context.operand_count(v) > 0) {
        // Cast of a rounded value is one rounding to an integer.
        const real_op rounding = context.real_operation(v);
        if (rounding == real_op::floor) code = real_op::floor_int;
        if (rounding == real_op::ceil) code = real_op::ceil_int;
        if (rounding == real_op::round) code = real_op::round_int;
        if (code != real_op::trunc_int) inner = context.operand(v, 0).d;
      }
      const dim rounded[1] = {inner};
      out = context.real(code, wide, std::span<const dim>(rounded, 1));
      return true;
    }
    if (to == dtype::f32 || to == dtype::f64) {
      if (context.is_real_literal(v)) {
        const double x = context.literal_value(v);
        out = context.real_literal(
            to == dtype::f64 ? x : static_cast<double>(static_cast<float>(x)), to == dtype::f64);
        return true;
      }
      // The minimum of a value with itself, in the new width: nothing but the rounding.
      out = context.real(real_op::min, to == dtype::f64, std::span<const dim>(args, 2));
      return true;
    }
  }
  return false;
}

}  // namespace sod2::ops::detail
