// Output sizes of convolution, pooling and transposed convolution: the only place where these
// formulas stand (ONNX Conv-1/11/22, MaxPool, AveragePool, LpPool, ConvTranspose-1/11/22).
#pragma once

#include <cstdint>

#include <sod2/expr/domain.hpp>

namespace sod2::rules {

/// Extent that a dilated kernel covers.
constexpr std::int64_t effective_kernel(std::int64_t kernel, std::int64_t dilation) {
  return dilation * (kernel - 1) + 1;
}

/// Sliding windows: floor((in + pads - effective_kernel) / stride) + 1; with `ceil_mode` rounded
/// up. `kernel` is an expression since a weight's extent may be one. pads = begin + end.
template <class Domain>
constexpr typename Domain::value_type window_count(Domain& domain, typename Domain::value_type in,
                                                   typename Domain::value_type kernel,
                                                   std::int64_t stride, std::int64_t dilation,
                                                   std::int64_t pads, bool ceil_mode = false) {
  // in + pads - (dilation*(kernel-1) + 1)
  const auto span =
      domain.add(domain.mul(kernel, domain.constant(dilation)), domain.constant(1 - dilation));
  const auto free = domain.sub(domain.add(in, domain.constant(pads)), span);
  const auto rounded = ceil_mode ? domain.add(free, domain.constant(stride - 1)) : free;
  return domain.add(domain.floordiv(rounded, stride), domain.constant(1));
}

/// Pooling with ceil_mode: as window_count, but a last window that would start inside the trailing
/// padding is dropped (ONNX MaxPool-19 note, as every runtime does).
template <class Domain>
constexpr typename Domain::value_type pool_count(Domain& domain, typename Domain::value_type in,
                                                 std::int64_t kernel, std::int64_t stride,
                                                 std::int64_t dilation, std::int64_t pad_begin,
                                                 std::int64_t pad_end, bool ceil_mode) {
  const auto count = window_count(domain, in, domain.constant(kernel), stride, dilation,
                                  pad_begin + pad_end, ceil_mode);
  if (!ceil_mode) return count;
  // The last window starts at (count-1)*stride and must lie before in + pad_begin.
  const auto starts =
      domain.floordiv(domain.add(in, domain.constant(pad_begin + stride - 1)), stride);
  return domain.min(count, starts);
}

/// auto_pad SAME_UPPER / SAME_LOWER: ceil(in / stride), whatever the kernel.
template <class Domain>
constexpr typename Domain::value_type same_count(Domain& domain, typename Domain::value_type in,
                                                 std::int64_t stride) {
  return domain.floordiv(domain.add(in, domain.constant(stride - 1)), stride);
}

/// stride*(in - 1) + output_padding + effective kernel - pads.
template <class Domain>
constexpr typename Domain::value_type transposed_count(
    Domain& domain, typename Domain::value_type in, typename Domain::value_type kernel,
    std::int64_t stride, std::int64_t dilation, std::int64_t pads, std::int64_t output_padding) {
  const auto moved = domain.mul(domain.sub(in, domain.constant(1)), domain.constant(stride));
  const auto span =
      domain.add(domain.mul(kernel, domain.constant(dilation)), domain.constant(1 - dilation));
  return domain.add(domain.add(moved, span), domain.constant(output_padding - pads));
}

/// Inverse of window_count for stride 1: in = out - 1 + effective_kernel - pads. A larger stride
/// only bounds the input.
template <class Domain>
constexpr typename Domain::value_type window_input(Domain& domain, typename Domain::value_type out,
                                                   typename Domain::value_type kernel,
                                                   std::int64_t dilation, std::int64_t pads) {
  const auto span =
      domain.add(domain.mul(kernel, domain.constant(dilation)), domain.constant(1 - dilation));
  return domain.add(domain.add(out, span), domain.constant(-1 - pads));
}

}  // namespace sod2::rules
