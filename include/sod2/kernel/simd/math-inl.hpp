// Vector math for float32. Included once per instruction set by foreach_target.
#if defined(SOD2_KERNEL_SIMD_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SOD2_KERNEL_SIMD_MATH_INL
#undef SOD2_KERNEL_SIMD_MATH_INL
#else
#define SOD2_KERNEL_SIMD_MATH_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sod2::kernel_detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Coefficients are minimax fits (iteratively reweighted least squares) on the stated intervals.

/// x within [low, high]; NaN stays.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V bound(D d, V x, float low, float high) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  x = hn::IfThenElse(hn::Gt(x, hn::Set(d, high)), hn::Set(d, high), x);
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, low)), hn::Set(d, low), x);
#else
  // minps and maxps return their second operand on NaN; NEON keeps NaN anyway.
  return hn::Max(hn::Set(d, low), hn::Min(hn::Set(d, high), x));
#endif
}

/// exp(x): below 2 ulp; exact 0 below -104, inf above 88.73; NaN stays.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  x = bound(d, x, -104.0f, 89.0f);
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504089f)));
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::Set(d, 0.00139411062f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.00836318016f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0416663753f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.16666577f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.500000003f));
  // One rounding near 1, at the very end.
  p = hn::Add(hn::Set(d, 1.0f), hn::MulAdd(hn::Mul(r, r), p, r));
  // 2^n in two factors, so that subnormal results and the overflow to inf come out right.
  const auto k = hn::ConvertTo(di, n);
  const auto k0 = hn::ShiftRight<1>(k);
  const auto k1 = hn::Sub(k, k0);
  const auto bias = hn::Set(di, 127);
  const V s0 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k0, bias)));
  const V s1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k1, bias)));
  return hn::Mul(hn::Mul(p, s0), s1);
}

/// exp(x) - 1 with small relative error near 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V expm1(D d, V x) {
  V p = hn::Set(d, 1.0f / 5040);
  p = hn::MulAdd(p, x, hn::Set(d, 1.0f / 720));
  p = hn::MulAdd(p, x, hn::Set(d, 1.0f / 120));
  p = hn::MulAdd(p, x, hn::Set(d, 1.0f / 24));
  p = hn::MulAdd(p, x, hn::Set(d, 1.0f / 6));
  p = hn::MulAdd(p, x, hn::Set(d, 0.5f));
  p = hn::MulAdd(hn::Mul(x, x), p, x);
  const V e = hn::Sub(exp(d, x), hn::Set(d, 1.0f));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0.25f)), p, e);
}

/// log(x): below 2 ulp for normal and subnormal x; -inf at 0, NaN below, inf at inf.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto tiny = hn::Lt(x, hn::Set(d, 1.17549435e-38f));
  const V scaled = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 8388608.0f)), x);
  auto bits = hn::BitCast(di, scaled);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  const auto off = hn::Sub(bits, hn::Set(di, 0x3f3504f3));
  V e = hn::ConvertTo(d, hn::ShiftRight<23>(off));
  e = hn::Sub(e, hn::IfThenElseZero(tiny, hn::Set(d, 23.0f)));
  bits = hn::Add(hn::And(off, hn::Set(di, 0x007fffff)), hn::Set(di, 0x3f3504f3));
  const V f = hn::Sub(hn::BitCast(d, bits), hn::Set(d, 1.0f));
  V p = hn::Set(d, 0.0733215648f);
  p = hn::MulAdd(p, f, hn::Set(d, -0.116597706f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.116347268f));
  p = hn::MulAdd(p, f, hn::Set(d, -0.123967269f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.142511519f));
  p = hn::MulAdd(p, f, hn::Set(d, -0.166691497f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.200006882f));
  p = hn::MulAdd(p, f, hn::Set(d, -0.249999812f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.333333313f));
  const V f2 = hn::Mul(f, f);
  V r = hn::Mul(hn::Mul(f2, f), p);
  r = hn::MulAdd(e, hn::Set(d, -2.12194440e-4f), r);
  r = hn::NegMulAdd(hn::Set(d, 0.5f), f2, r);
  r = hn::Add(r, f);
  r = hn::MulAdd(e, hn::Set(d, 0.693359375f), r);
  const V inf = hn::Set(d, __builtin_inff());
  r = hn::IfThenElse(hn::Eq(x, inf), inf, r);
  r = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(inf), r);
  // Negative and NaN alike: neither is >= 0.
  return hn::IfThenElse(hn::Ge(x, hn::Zero(d)), r, hn::Set(d, __builtin_nanf("")));
}

/// log(1 + y) for 0 <= y <= 1, absolute error below 1e-7, relative 1e-6.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log1p_unit(D d, V y) {
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Add(one, y);
  // What rounding of 1 + y lost, to first order.
  const V lost = hn::Sub(y, hn::Sub(u, one));
  return hn::Add(log(d, u), hn::Div(lost, u));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  // Where e is inf, 1/s is 0 already and its correction would be NaN.
  const V e = hn::Min(exp(d, hn::Neg(x)), hn::Set(d, 1.7e38f));
  const V s = hn::Add(one, e);
  const V q = hn::Div(one, s);
  // What the sum lost (exactly, as in Fast2Sum), and what the quotient lost with it.
  const V big = hn::Max(one, e), small = hn::Min(one, e);
  const V lost = hn::Sub(small, hn::Sub(s, big));
  const V rest = hn::NegMulAdd(lost, q, hn::NegMulAdd(s, q, one));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::MulAdd(rest, q, q));
}

/// tanh(x): below 4 ulp.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  const V u = hn::Mul(x, x);
  V p = hn::Set(d, 0.0150839744f);
  p = hn::MulAdd(p, u, hn::Set(d, -0.0518477205f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.133051589f));
  p = hn::MulAdd(p, u, hn::Set(d, -0.333320039f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.999999899f));
  p = hn::Mul(p, x);
  const V one = hn::Set(d, 1.0f);
  const V a = hn::Abs(x);
  const V e = exp(d, hn::Add(a, a));
  const V big = hn::CopySign(hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one))), x);
  return hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625f)), p, big);
}

/// erf(x): absolute error below 2e-7, relative below 4 ulp under 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Mul(x, x);
  V p = hn::Set(d, 7.88910948e-05f);
  p = hn::MulAdd(p, u, hn::Set(d, -0.000802083862f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.00518953509f));
  p = hn::MulAdd(p, u, hn::Set(d, -0.0268544445f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.112836002f));
  p = hn::MulAdd(p, u, hn::Set(d, -0.376126271f));
  p = hn::MulAdd(p, u, hn::Set(d, 1.12837917f));
  p = hn::Mul(p, x);
  // erfc(a) = exp(-a^2) * poly(1 / (1 + 0.4 a)) on [1, 4]; beyond 4 it is below 2e-8.
  const V a = bound(d, hn::Abs(x), 0.0f, 4.0f);
  const V t = hn::Div(one, hn::MulAdd(hn::Set(d, 0.4f), a, one));
  V q = hn::Set(d, -0.229509754f);
  q = hn::MulAdd(q, t, hn::Set(d, 0.832339819f));
  q = hn::MulAdd(q, t, hn::Set(d, -0.583743755f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.660856526f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.0659178564f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.256712018f));
  q = hn::MulAdd(q, t, hn::Set(d, -0.00257671754f));
  q = hn::Mul(q, exp(d, hn::Neg(hn::Mul(a, a))));
  const V big = hn::CopySign(hn::Sub(one, q), x);
  return hn::IfThenElse(hn::Lt(a, one), p, big);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace sod2::kernel_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
