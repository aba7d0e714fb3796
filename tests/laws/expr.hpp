// The laws of symbolic sizes as one table: the same functions run in the unit tests and, as
// constant expressions, in tests/static.
#pragma once

#include <cstdint>

#include <sod2/expr/context.hpp>

namespace laws {

using sod2::dim;
using sod2::dim_context;
using sod2::dim_kind;
using sod2::interval;
using sod2::real_op;
using sod2::tri;

struct law {
  const char* name;
  bool (*holds)(dim_context&);
};

// Output of a convolution as the operator's text has it, without any of the library's shortcuts.
constexpr dim conv(dim_context& c, dim in, std::int64_t kernel, std::int64_t stride,
                   std::int64_t pad) {
  return c.add(c.floordiv(c.add(in, 2 * pad - kernel), stride), 1);
}
constexpr dim real2(dim_context& c, real_op op, bool wide, dim a, dim b) {
  const dim args[] = {a, b};
  return c.real(op, wide, args);
}
constexpr dim real1(dim_context& c, real_op op, bool wide, dim a) {
  return c.real(op, wide, {&a, 1});
}

inline constexpr law expression_laws[] = {
    // ---- polynomials ----
    {"addition is commutative and associative",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B"), d = c.symbol("D");
       return c.add(a, b) == c.add(b, a) && c.add(c.add(a, b), d) == c.add(a, c.add(d, b));
     }},
    {"multiplication is commutative, associative and distributes",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B"), d = c.symbol("D");
       return c.mul(a, b) == c.mul(b, a) && c.mul(c.mul(a, b), d) == c.mul(a, c.mul(d, b)) &&
              c.mul(a, c.add(b, d)) == c.add(c.mul(b, a), c.mul(a, d));
     }},
    {"zero and one are neutral and absorbing",
     [](dim_context& c) {
       const dim a = c.symbol("A");
       return c.add(a, 0) == a && c.mul(a, 1) == a && c.mul(a, 0) == c.zero() &&
              c.sub(a, a) == c.zero();
     }},
    {"binomials expand and cancel",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B");
       const dim square = c.mul(c.add(a, b), c.add(a, b));
       const dim left = c.sub(square, c.mul(c.mul(a, b), 2));
       return left == c.add(c.mul(a, a), c.mul(b, b));
     }},
    {"the order of construction does not show",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B");
       const dim first = c.min(c.floordiv(c.add(a, b), 3), c.mul(a, b));
       const dim second = c.min(c.mul(b, a), c.floordiv(c.add(b, a), 3));
       return first == second;
     }},
    // ---- floor and ceil ----
    {"three convolutions spell ceil(H/2) the same",
     [](dim_context& c) {
       const dim h = c.symbol("H");
       const dim wanted = c.ceildiv(h, 2);
       return conv(c, h, 7, 2, 3) == wanted && conv(c, h, 3, 2, 1) == wanted &&
              conv(c, h, 1, 2, 0) == wanted;
     }},
    {"whole multiples leave a floor division",
     [](dim_context& c) {
       const dim h = c.symbol("H"), w = c.symbol("W");
       return c.floordiv(c.add(c.mul(h, 6), c.add(w, 5)), 3) ==
              c.add(c.mul(h, 2), c.add(c.floordiv(c.add(w, 2), 3), 1));
     }},
    {"common factors cancel",
     [](dim_context& c) {
       const dim h = c.symbol("H");
       return c.floordiv(c.add(c.mul(h, 2), 1), 6) == c.floordiv(h, 3) &&
              c.floordiv(c.mul(h, 4), 4) == h;
     }},
    {"nested floors collapse",
     [](dim_context& c) {
       const dim h = c.symbol("H");
       return c.floordiv(c.floordiv(h, 2), 3) == c.floordiv(h, 6) &&
              c.floordiv(c.floordiv(c.floordiv(h, 2), 2), 2) == c.floordiv(h, 8) &&
              c.floordiv(c.add(c.floordiv(h, 3), 1), 2) == c.floordiv(c.add(h, 3), 6);
     }},
    {"nested ceils collapse",
     [](dim_context& c) {
       dim h = c.symbol("H");
       const dim wanted = c.ceildiv(h, 32);
       for (int i = 0; i < 5; ++i) h = conv(c, h, 3, 2, 1);
       return h == wanted;
     }},
    {"a negated numerator is a ceil",
     [](dim_context& c) {
       const dim h = c.symbol("H");
       return c.neg(c.floordiv(c.neg(h), 4)) == c.ceildiv(h, 4) &&
              c.floordiv(c.sub(c.mul(h, 3), c.one()), 4) == c.sub(h, c.floordiv(c.add(h, 4), 4));
     }},
    {"ceil division of one stays one, and of small ranges is constant",
     [](dim_context& c) {
       const dim s = c.symbol("S", {1, 8, 1, 0});
       return c.ceildiv(s, 8) == c.one() && c.floordiv(s, 9) == c.zero();
     }},
    {"interleaved slices add up to the whole",
     [](dim_context& c) {
       const dim h = c.symbol("H");
       const dim two = c.add(c.floordiv(h, 2), c.ceildiv(h, 2));
       const dim three =
           c.add(c.add(c.floordiv(h, 3), c.floordiv(c.add(h, 1), 3)), c.floordiv(c.add(h, 2), 3));
       return two == h && three == h &&
              c.decide_eq(c.sub(h, c.floordiv(h, 2)), c.ceildiv(h, 2)) == tri::yes;
     }},
    // ---- mod, alignment ----
    {"mod is sugar and lies in its range",
     [](dim_context& c) {
       const dim h = c.symbol("H");
       const dim m = c.mod(h, 7);
       return c.add(c.mul(c.floordiv(h, 7), 7), m) == h && c.bounds(m) == interval{0, 6} &&
              c.mod(c.add(h, 14), 7) == m && c.mod(c.mul(h, 7), 7) == c.zero();
     }},
    {"align_up covers and is divisible",
     [](dim_context& c) {
       const dim h = c.symbol("H");
       const dim a = c.align_up(h, 32);
       return c.decide_divisible(a, 32) == tri::yes && c.decide_divisible(a, 64) == tri::unknown &&
              c.decide_le(h, a) == tri::yes && c.decide_le(a, c.add(h, 31)) == tri::yes &&
              c.decide_le(a, c.add(h, 30)) == tri::unknown && c.align_up(a, 32) == a;
     }},
    // ---- min, max, broadcast ----
    {"min and max are idempotent, commutative, associative and absorbing",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B"), d = c.symbol("D");
       return c.min(a, a) == a && c.max(a, b) == c.max(b, a) &&
              c.min(c.min(a, b), d) == c.min(a, c.min(d, b)) && c.min(a, c.max(a, b)) == a &&
              c.max(a, c.min(a, b)) == a && c.add(c.min(a, b), c.max(a, b)) == c.add(a, b);
     }},
    {"bounds decide min and max",
     [](dim_context& c) {
       const dim s = c.symbol("S", {1, 384, 1, 0}), l = c.symbol("L");
       return c.min(s, c.constant(512)) == s && c.max(c.constant(512), s) == c.constant(512) &&
              c.max(l, 1) == l && c.min(c.min(l, 512), 384) == c.min(l, 384) &&
              c.max(c.add(l, 1), l) == c.add(l, 1);
     }},
    {"one yields in a broadcast, what is not one decides",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B"), n = c.symbol("N", {2, 100, 1, 0});
       return c.broadcast(a, c.one()) == a && c.broadcast(c.one(), a) == a &&
              c.broadcast(a, a) == a && c.broadcast(a, n) == n && c.broadcast(n, a) == n &&
              c.broadcast(a, c.constant(0)) == c.zero() && c.broadcast(a, b) == c.broadcast(b, a) &&
              c.kind(c.broadcast(a, b)) == dim_kind::broadcast;
     }},
    {"a broadcast of positive dims is at least each of them",
     [](dim_context& c) {
       const dim a = c.symbol("A", {1, 10, 1, 0}), b = c.symbol("B", {1, 20, 1, 0});
       return c.bounds(c.broadcast(a, b)) == interval{1, 20};
     }},
    // ---- exact division ----
    {"products divide exactly",
     [](dim_context& c) {
       const dim b = c.symbol("B"), h = c.symbol("H"), w = c.symbol("W");
       const dim numel = c.mul(c.mul(b, c.mul(h, w)), 96);
       return c.div_exact(numel, c.mul(b, h)) == c.mul(w, 96) &&
              c.div_exact(numel, c.mul(w, 5)).is_undefined() &&
              c.div_exact(c.zero(), h) == c.zero() && c.div_exact(h, h) == c.one();
     }},
    {"sums divide exactly as polynomials",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B"), l = c.ceildiv(c.symbol("L"), 2);
       const dim p = c.add(a, l), q = c.add(c.mul(b, 3), 2);
       return c.div_exact(c.mul(p, q), p) == q && c.div_exact(c.mul(p, q), q) == p &&
              c.div_exact(c.add(c.mul(p, q), 1), q).is_undefined();
     }},
    // ---- substitution, inversion ----
    {"substitution is evaluation in steps",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B");
       const dim d = c.add(c.mul(a, c.floordiv(c.add(a, b), 3)), c.min(a, c.mul(b, b)));
       const dim e = c.substitute(c.substitute(d, a, c.constant(7)), b, c.constant(4));
       return e == c.constant(7 * 3 + 7) && c.substitute(d, c.symbol("C"), a) == d &&
              c.substitute(c.ceildiv(a, 2), a, c.mul(b, 2)) == b;
     }},
    {"a convolution's size is inverted to a range of inputs",
     [](dim_context& c) {
       const dim h = c.symbol("H"), v = c.symbol("V");
       dim lo{}, hi{};
       const bool strided = c.solve(conv(c, h, 3, 2, 1), h, v, lo, hi) &&
                            lo == c.sub(c.mul(v, 2), 1) && hi == c.mul(v, 2);
       const bool plain =
           c.solve(c.add(c.mul(h, 3), 2), h, c.add(c.mul(v, 3), 2), lo, hi) && lo == v && hi == v;
       const bool negative = c.solve(c.sub(c.constant(10), h), h, v, lo, hi) && lo == hi &&
                             lo == c.sub(c.constant(10), v);
       return strided && plain && negative && !c.solve(c.mul(h, h), h, v, lo, hi) &&
              !c.solve(c.add(h, c.floordiv(h, 2)), h, v, lo, hi);
     }},
    // ---- facts ----
    {"equal symbols become one",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B"), d = c.symbol("D");
       const dim before = c.add(a, c.floordiv(b, 3));
       return c.assume_eq(a, b) == tri::yes && c.assume_eq(b, d) == tri::yes &&
              c.resolve(a) == c.resolve(d) &&
              c.resolve(before) == c.resolve(c.add(d, c.floordiv(a, 3))) &&
              c.decide_eq(a, d) == tri::yes;
     }},
    {"equal sums replace one symbol",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B"), u = c.fresh({0, 1000});
       return c.assume_eq(u, c.add(c.mul(a, 2), b)) == tri::yes &&
              c.resolve(u) == c.add(b, c.mul(a, 2)) &&
              c.assume_eq(c.mul(a, 2), c.constant(6)) == tri::yes && c.resolve(u) == c.add(b, 6) &&
              c.symbol("A") == c.constant(3);
     }},
    {"a compound atom can be what is replaced",
     [](dim_context& c) {
       const dim h = c.symbol("H"), w = c.symbol("W");
       const dim p = c.floordiv(h, 3), q = c.floordiv(w, 3);
       return c.assume_eq(p, q) == tri::yes && c.resolve(c.add(p, 1)) == c.resolve(c.add(q, 1)) &&
              c.floordiv(h, 3) == c.floordiv(w, 3);
     }},
    {"contradictions are found",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B", {1, 10, 1, 0}), e = c.symbol("E");
       return c.assume_eq(c.constant(3), c.constant(4)) == tri::no &&
              c.assume_eq(a, c.add(a, 1)) == tri::no && c.assume_eq(b, c.constant(11)) == tri::no &&
              c.assume_eq(c.mul(a, 2), c.add(c.mul(e, 2), 1)) == tri::no &&
              c.assume_eq(b, c.constant(4)) == tri::yes && c.assume_eq(b, c.constant(5)) == tri::no;
     }},
    {"ranges narrow, also through equalities",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B");
       const auto ia = static_cast<std::uint32_t>(c.find_symbol("A"));
       const auto ib = static_cast<std::uint32_t>(c.find_symbol("B"));
       return c.assume_eq(a, b) == tri::yes && c.assume_range(ia, {4, 100}) &&
              c.assume_range(ib, {1, 50}) && c.bounds(a) == interval{4, 50} &&
              c.bounds(b) == interval{4, 50} && !c.assume_range(ib, {60, 70});
     }},
    {"a sum of two sizes bounds both",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B");
       return c.assume_eq(c.add(a, b), c.constant(10)) == tri::yes &&
              c.bounds(a) == interval{1, 9} && c.bounds(b) == interval{1, 9};
     }},
    {"new ranges reach what was built before",
     [](dim_context& c) {
       const dim s = c.symbol("S");
       const dim m = c.add(c.min(s, c.constant(512)), 1);
       const bool before = c.kind(c.sub(m, c.one())) == dim_kind::min;
       return before && c.assume_range(0, {1, 384}) && c.resolve(m) == c.add(s, 1) &&
              c.bounds(m) == interval{2, 385};
     }},
    // ---- strides ----
    {"a stride makes divisions exact",
     [](dim_context& c) {
       const dim h = c.symbol("H", {32, 640, 32, 0});
       const dim e = c.floordiv(h, 32);
       return c.mul(c.ceildiv(h, 32), 2) == c.ceildiv(h, 16) && c.mul(e, 32) == h &&
              c.mod(h, 8) == c.zero() && c.decide_divisible(h, 16) == tri::yes &&
              c.bounds(e) == interval{1, 20} && c.bounds(h) == interval{32, 640};
     }},
    {"a stride learnt later reaches what was built before",
     [](dim_context& c) {
       const dim h = c.symbol("H");
       const dim up = c.mul(c.ceildiv(c.ceildiv(h, 16), 2), 32);
       return c.resolve(up) != h && c.assume_divisible(0, 32) && c.resolve(up) == c.resolve(h);
     }},
    {"strides combine, with their offsets",
     [](dim_context& c) {
       const dim h = c.symbol("H");
       const bool ok =
           c.assume_divisible(0, 4, 1) && c.assume_divisible(0, 6, 3);  // 1 (4), 3 (6): 9 (12)
       return ok && c.mod(c.resolve(h), 12) == c.constant(9) && !c.assume_divisible(0, 2) &&
              c.bounds(h).lo == 9;
     }},
    {"a stride that no value has contradicts",
     [](dim_context& c) {
       c.symbol("H", {1, 30, 1, 0});
       return !c.assume_divisible(0, 32) || c.bounds(c.symbol("H")).empty();
     }},
    // ---- proofs ----
    {"floor division is monotone",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B");
       return c.decide_le(c.floordiv(a, 7), c.floordiv(c.add(a, b), 7)) == tri::yes &&
              c.decide_le(c.ceildiv(a, 4), c.ceildiv(c.add(a, 3), 4)) == tri::yes &&
              c.decide_le(c.floordiv(a, 4), c.floordiv(a, 2)) == tri::yes;
     }},
    {"order of products and extremes",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B");
       return c.decide_le(a, c.mul(a, b)) == tri::yes && c.decide_le(c.min(a, b), b) == tri::yes &&
              c.decide_le(c.max(a, b), c.add(a, b)) == tri::yes &&
              c.decide_le(c.add(c.mul(a, b), 1), c.mul(a, b)) == tri::no &&
              c.decide_le(a, b) == tri::unknown;
     }},
    {"parity and ranges refute equality",
     [](dim_context& c) {
       const dim a = c.symbol("A"), b = c.symbol("B"), s = c.symbol("S", {1, 10, 1, 0}),
                 l = c.symbol("L", {11, 99, 1, 0});
       return c.decide_eq(c.mul(a, 2), c.add(c.mul(b, 4), 1)) == tri::no &&
              c.decide_eq(s, l) == tri::no && c.decide_eq(a, b) == tri::unknown &&
              c.decide_eq(c.add(a, b), b) == tri::no;
     }},
    {"divisibility of sums, products and extremes",
     [](dim_context& c) {
       const dim a = c.mul(c.symbol("A"), 8), b = c.mul(c.symbol("B"), 12);
       return c.decide_divisible(c.add(a, b), 4) == tri::yes &&
              c.decide_divisible(c.mul(a, b), 96) == tri::yes &&
              c.decide_divisible(c.min(a, b), 4) == tri::yes &&
              c.decide_divisible(c.add(a, 2), 4) == tri::no &&
              c.decide_divisible(c.mul(c.max(a, b), c.symbol("C")), 2) == tri::yes;
     }},
    // ---- error values ----
    {"overflow is sticky",
     [](dim_context& c) {
       const dim big = c.mul(c.symbol("A"), INT64_MAX / 2);
       const dim over = c.mul(big, 5);
       return over.is_overflow() && c.add(over, 1).is_overflow() &&
              c.min(c.one(), over).is_overflow() && c.floordiv(over, 3).is_overflow() &&
              c.mul(over, dim::unknown()).is_overflow();
     }},
    {"unknown and undefined pass through",
     [](dim_context& c) {
       const dim a = c.symbol("A");
       return c.add(a, dim::unknown()).is_unknown() &&
              c.mul(dim::unknown(), dim::undefined()).is_undefined() &&
              c.decide_eq(a, dim::unknown()) == tri::unknown;
     }},
    {"no expression grows without bound",
     [](dim_context& c) {
       dim power = c.symbol("A"), nested = c.symbol("B");
       for (int i = 0; i < 8; ++i) power = c.mul(power, power);
       for (int i = 0; i < 12; ++i) {
         const dim f = real1(c, real_op::from_int, true, nested);
         nested = real1(c, real_op::floor_int, true, real2(c, real_op::mul, true, f, f));
       }
       return power.is_unknown() && nested.is_unknown();
     }},
    // ---- floating point ----
    {"float32 constants fold as a kernel computes them",
     [](dim_context& c) {
       const dim seven = c.real_literal(static_cast<double>(0.7f), false);
       const dim ten = real1(c, real_op::from_int, false, c.constant(10));
       const dim single =
           real1(c, real_op::floor_int, false, real2(c, real_op::mul, false, ten, seven));
       const dim wide =
           real1(c, real_op::floor_int, true,
                 real2(c, real_op::mul, true, real1(c, real_op::from_int, true, c.constant(29)),
                       c.real_literal(0.1 * 10, true)));
       return single == c.constant(static_cast<std::int64_t>(10.0f * 0.7f)) &&
              wide == c.constant(29) &&
              real1(c, real_op::from_int, false, c.constant(16777217)) ==
                  c.real_literal(16777216.0, false);
     }},
    {"rounding is half to even, casts truncate",
     [](dim_context& c) {
       auto of = [&](real_op op, double v) { return real1(c, op, true, c.real_literal(v, true)); };
       return of(real_op::round_int, 2.5) == c.constant(2) &&
              of(real_op::round_int, 3.5) == c.constant(4) &&
              of(real_op::round_int, -2.5) == c.constant(-2) &&
              of(real_op::trunc_int, -2.7) == c.constant(-2) &&
              of(real_op::floor_int, -2.1) == c.constant(-3) &&
              of(real_op::ceil_int, 2.1) == c.constant(3);
     }},
    {"integers that fit pass through floating point",
     [](dim_context& c) {
       const dim h = c.symbol("H", {1, 4096, 1, 0});
       const dim f = real1(c, real_op::from_int, false, h);
       const dim doubled = real2(c, real_op::mul, false, f, c.real_literal(2.0, false));
       const dim halved = real2(c, real_op::mul, false, f, c.real_literal(0.5, false));
       const dim third = real2(c, real_op::div, false, f, c.real_literal(3.0, false));
       return real1(c, real_op::trunc_int, false, f) == h &&
              real1(c, real_op::floor_int, false, doubled) == c.mul(h, 2) &&
              real1(c, real_op::floor_int, false, halved) == c.floordiv(h, 2) &&
              real1(c, real_op::ceil_int, false, third) == c.ceildiv(h, 3);
     }},
    {"floating-point sizes have monotone bounds",
     [](dim_context& c) {
       const dim h = c.symbol("H", {10, 100, 1, 0});
       const dim scaled = real2(c, real_op::mul, false, real1(c, real_op::from_int, false, h),
                                c.real_literal(static_cast<double>(0.7f), false));
       const dim size = real1(c, real_op::floor_int, false, scaled);
       return c.bounds(size) == interval{7, 70} || c.bounds(size) == interval{6, 70} ||
              c.bounds(size) == interval{6, 69} || c.bounds(size) == interval{7, 69};
     }},
};
inline constexpr std::size_t expression_law_count =
    sizeof(expression_laws) / sizeof(expression_laws[0]);

constexpr bool holds(const law& l) {
  dim_context context;
  return l.holds(context);
}

}  // namespace laws
