// Shapes of matrix products (numpy.matmul; ONNX MatMul-1/9/13, Gemm).
#pragma once

#include <cstddef>
#include <span>

#include <sod2/core/diagnostic.hpp>
#include <sod2/expr/domain.hpp>
#include <sod2/shape/rules/broadcast.hpp>

namespace sod2::rules {

/// [batch..., M, K] x [batch..., K, N] -> [broadcast(batch)..., M, N]; a 1-D operand is promoted
/// and its dim stripped again. Errors: rank_mismatch (a scalar), inner_dims, broadcast.
template <class Domain, class Sink, class Out>
constexpr errc matmul(Domain& domain, Sink& sink, std::span<const typename Domain::value_type> a,
                      std::span<const typename Domain::value_type> b, Out& out,
                      std::size_t* failed = nullptr) {
  if (a.empty() || b.empty()) return errc::rank_mismatch;
  const auto k_a = a.back();
  const auto k_b = b.size() == 1 ? b[0] : b[b.size() - 2];
  const tri same = domain.decide_eq(k_a, k_b);
  if (same == tri::no || (same == tri::unknown && !sink.require_eq(k_a, k_b, errc::inner_dims)))
    return errc::inner_dims;
  Out dims;
  const auto batch_a = a.first(a.size() < 2 ? 0 : a.size() - 2);
  const auto batch_b = b.first(b.size() < 2 ? 0 : b.size() - 2);
  if (const errc e = broadcast_shapes(domain, sink, batch_a, batch_b, dims, failed); e != errc::ok)
    return e;
  if (a.size() > 1) dims.push_back(a[a.size() - 2]);
  if (b.size() > 1) dims.push_back(b.back());
  out = dims;
  return errc::ok;
}

}  // namespace sod2::rules
