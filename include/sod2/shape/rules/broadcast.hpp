// numpy broadcasting (ONNX Broadcasting.md, multidirectional and unidirectional).
#pragma once

#include <cstddef>
#include <span>

#include <sod2/core/diagnostic.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/expr/domain.hpp>

namespace sod2::rules {

/// A sink collects what a rule needs to hold but cannot prove:
/// `require_eq(a, b, code)` and `require_broadcast(a, b)`; false means contradicted, and the rule
/// stops with the same code.
struct trust_all {
  template <class V>
  constexpr bool require_eq(const V&, const V&, errc) {
    return true;
  }
  template <class V>
  constexpr bool require_broadcast(const V&, const V&) {
    return true;
  }
};

/// One axis: 1 yields to the other. Unequal dims of which none is 1 contradict. Never guesses that
/// two unknown dims are equal.
template <class Domain, class Sink>
constexpr errc broadcast_dim(Domain& domain, Sink& sink, typename Domain::value_type a,
                             typename Domain::value_type b, typename Domain::value_type& out) {
  const auto one = domain.constant(1);
  const tri equal = domain.decide_eq(a, b);
  if (equal == tri::yes) {
    out = a;
    return errc::ok;
  }
  const tri a_is_one = domain.decide_eq(a, one), b_is_one = domain.decide_eq(b, one);
  if (a_is_one != tri::yes && b_is_one != tri::yes) {
    if (a_is_one == tri::no && b_is_one == tri::no) {
      // Neither yields: they must be equal.
      if (equal == tri::no || !sink.require_eq(a, b, errc::broadcast)) return errc::broadcast;
    } else if (!sink.require_broadcast(a, b)) {
      return errc::broadcast;
    }
  }
  // A dim that cannot be 1 decides, even beside one of which nothing is known.
  out = a_is_one == tri::no ? a : b_is_one == tri::no ? b : domain.broadcast(a, b);
  return errc::ok;
}

/// Shapes aligned at their last axes. After an error `failed`, if given, holds the axis of the
/// result that does not broadcast.
template <class Domain, class Sink, class Out>
constexpr errc broadcast_shapes(Domain& domain, Sink& sink,
                                std::span<const typename Domain::value_type> a,
                                std::span<const typename Domain::value_type> b, Out& out,
                                std::size_t* failed = nullptr) {
  using value = typename Domain::value_type;
  const std::size_t rank = a.size() > b.size() ? a.size() : b.size();
  Out result;
  for (std::size_t i = 0; i < rank; ++i) {
    value d = domain.constant(1);
    const bool has_a = i + a.size() >= rank, has_b = i + b.size() >= rank;
    if (has_a && has_b) {
      if (const errc e =
              broadcast_dim(domain, sink, a[i + a.size() - rank], b[i + b.size() - rank], d);
          e != errc::ok) {
        if (failed != nullptr) *failed = i;
        return e;
      }
    } else {
      d = has_a ? a[i + a.size() - rank] : b[i + b.size() - rank];
    }
    result.push_back(d);
  }
  out = result;
  return errc::ok;
}

}  // namespace sod2::rules
