// Sizes scaled by floating-point factors (ONNX Resize-10..19, Upsample-7/9).
#pragma once

#include <cstdint>
#include <span>

#include <sod2/expr/domain.hpp>

namespace sod2::rules {

/// A factor p / 2^q with small p: sizes scale without rounding, floor(D*p / 2^q). Other factors
/// (0.7f) multiply in float32 as the runtimes do.
constexpr bool dyadic_factor(double factor, std::int64_t& p, std::int64_t& divisor) {
  divisor = 1;
  for (int q = 0; q <= 8; ++q, divisor *= 2) {
    const double scaled = factor * static_cast<double>(divisor);
    if (scaled < 0 || scaled > 4096) return false;
    p = static_cast<std::int64_t>(scaled);
    if (static_cast<double>(p) == scaled) return true;
  }
  return false;
}
/// floor(float32(size) * factor).
constexpr std::int64_t scale_integer(std::int64_t size, double factor) {
  const double x = static_cast<double>(static_cast<float>(size));
  const double y = dim_context::apply_real(real_op::mul, false, x, factor);
  const double f = dim_context::apply_real(real_op::floor, true, y, 0.0);
  return f >= -9.2e18 && f <= 9.2e18 ? static_cast<std::int64_t>(f) : 0;
}

/// floor(float32(size) * factor) where the factor is itself a floating-point expression.
constexpr dim scaled_by(symbolic_domain& domain, dim size, dim factor) {
  dim_context& context = domain.context();
  if (!size.is_known()) return size;
  if (!factor.is_known()) return factor;
  const dim sizes[1] = {size};
  const dim product[2] = {context.real(real_op::from_int, false, sizes), factor};
  const dim scaled[1] = {context.real(real_op::mul, false, product)};
  return context.real(real_op::floor_int, false, scaled);
}

/// floor(size * factor) of a constant factor.
template <class Domain>
constexpr typename Domain::value_type scaled_size(Domain& domain, typename Domain::value_type size,
                                                  double factor) {
  std::int64_t p = 0, divisor = 1;
  if (dyadic_factor(factor, p, divisor))
    return domain.floordiv(domain.mul(size, domain.constant(p)), divisor);
  if constexpr (requires { domain.context(); }) {
    const dim literal = domain.context().real_literal(factor, false);
    return scaled_by(domain, size, literal);
  } else if constexpr (requires { size.lo; }) {
    auto end = [&](std::int64_t v) {
      return v == infinity || v == minus_infinity ? v : scale_integer(v, factor);
    };
    return {end(size.lo), end(size.hi)};
  } else {
    return domain.constant(scale_integer(size, factor));
  }
}

}  // namespace sod2::rules
