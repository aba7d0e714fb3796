// Reshape and its relatives: shapes that keep the number of elements (ONNX Reshape-5/14, Flatten).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sod2/core/diagnostic.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/expr/domain.hpp>

namespace sod2::rules {

template <class Domain>
constexpr typename Domain::value_type element_count(
    Domain& domain, std::span<const typename Domain::value_type> dims) {
  auto n = domain.constant(1);
  for (const auto& d : dims) n = domain.mul(n, d);
  return n;
}

/// target: entries as the model gives them; 0 copies the input's dim unless allow_zero, -1 is
/// inferred from the rest. `out` gets the resolved dims. Errors: element_count (sizes contradict,
/// or -1 twice), axis_range (0 past the input's rank).
///
/// A sink may provide `fresh_dim(domain, axis, range)` to name the symbol of a -1 that no
/// expression can hold.
///
/// Dims that input and target share cancel before the division, so that -1 resolves under symbolic
/// dims: (B, L, 768) to (0, -1, 12, 64) gives L.
template <class Domain, class Sink, class Out>
constexpr errc reshape(Domain& domain, Sink& sink, std::span<const typename Domain::value_type> in,
                       std::span<const typename Domain::value_type> target, bool allow_zero,
                       Out& out) {
  using value = typename Domain::value_type;
  Out dims;
  std::size_t inferred = target.size();
  for (std::size_t i = 0; i < target.size(); ++i) {
    std::int64_t k = 1;
    value d = target[i];
    if (domain.as_constant(d, k)) {
      if (k == 0 && !allow_zero) {
        if (i >= in.size()) return errc::axis_range;
        d = in[i];
      } else if (k == -1) {
        if (inferred != target.size()) return errc::element_count;
        inferred = i;
        d = domain.constant(1);
      } else if (k < 0) {
        return errc::element_count;
      }
    }
    dims.push_back(d);
  }
  const value have = element_count(domain, in);
  const value rest = element_count(domain, std::span<const value>(dims.data(), dims.size()));
  if (inferred == target.size()) {
    const tri same = domain.decide_eq(have, rest);
    if (same == tri::no) return errc::element_count;
    if (same == tri::unknown && !sink.require_eq(have, rest, errc::element_count))
      return errc::element_count;
    out = dims;
    return errc::ok;
  }
  // Cancel equal factors first: exact also where the cancelled dim may be zero at run time only if
  // ONNX itself defines the result, so a zero left in `rest` stays an error of the run.
  Out left(in), right;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i == inferred) continue;
    bool cancelled = false;
    for (std::size_t j = 0; j < left.size() && !cancelled; ++j)
      if (domain.decide_eq(left[j], dims[i]) == tri::yes) {
        left.erase(j);
        cancelled = true;
      }
    if (!cancelled) right.push_back(dims[i]);
  }
  const value numerator = element_count(domain, std::span<const value>(left.data(), left.size()));
  const value denominator =
      element_count(domain, std::span<const value>(right.data(), right.size()));
  value quotient = domain.constant(1);
  std::int64_t k = 0;
  if (domain.decide_eq(denominator, domain.constant(1)) == tri::yes) {
    quotient = numerator;
  } else if (domain.div_exact(numerator, denominator, quotient)) {
  } else if (domain.as_constant(denominator, k) && k > 0) {
    quotient = domain.floordiv(numerator, k);
    const value back = domain.mul(quotient, denominator);
    if (domain.decide_eq(back, numerator) == tri::no ||
        !sink.require_eq(numerator, back, errc::element_count))
      return errc::element_count;
  } else {
    if constexpr (requires { sink.fresh_dim(domain, inferred, interval{}); })
      quotient = sink.fresh_dim(domain, inferred, interval{0, infinity});
    else
      quotient = domain.fresh(interval{0, infinity});
    if (!sink.require_eq(numerator, domain.mul(quotient, denominator), errc::element_count))
      return errc::element_count;
  }
  dims[inferred] = quotient;
  out = dims;
  return errc::ok;
}

/// Flatten: [prod(dims before axis), prod(the rest)].
template <class Domain, class Out>
constexpr void flatten(Domain& domain, std::span<const typename Domain::value_type> in,
                       std::size_t axis, Out& out) {
  Out dims;
  dims.push_back(element_count(domain, in.first(axis)));
  dims.push_back(element_count(domain, in.subspan(axis)));
  out = dims;
}

}  // namespace sod2::rules
