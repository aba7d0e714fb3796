// Quantisation. Products of quantised tensors stand with their floating-point relatives.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops {

/// QuantizeLinear-10, 13 (axis), 19 (float8), 21 (blocks, output_dtype), 23, 24, 25, 28: the type
/// of y_zero_point, else output_dtype, else uint8.
struct quantize_linear {
  static constexpr int since[] = {10, 13, 19, 21, 23, 24, 25, 28};
  static constexpr op_info info{
      .name = "QuantizeLinear", .versions = since, .map = mapping::one_to_one, .inputs = {2, 3}};
  template <class C>
  static status forward(C& c) {
    dtype type = dtype::undefined;
    SOD2_TRY(detail::read_type(c.attributes(), "output_dtype", type));
    if (c.has_input(2))
      type = c.input(2).type;
    else if (type == dtype::undefined)
      type = dtype::u8;
    c.set_type(0, type);
    return detail::same_shape(c);
  }
  template <class C>
  static status backward(C& c) {
    return detail::same_shape_back(c);
  }
};
/// DequantizeLinear-10, 13 (axis), 19 (float8), 21 (blocks), 23 (output_dtype), 24, 25, 28: the
/// type of x_scale.
struct dequantize_linear {
  static constexpr int since[] = {10, 13, 19, 21, 23, 24, 25, 28};
  static constexpr op_info info{
      .name = "DequantizeLinear", .versions = since, .map = mapping::one_to_one, .inputs = {2, 3}};
  template <class C>
  static status forward(C& c) {
    dtype type = dtype::undefined;
    SOD2_TRY(detail::read_type(c.attributes(), "output_dtype", type));
    c.set_type(0, type != dtype::undefined ? type
                  : c.version() < 19       ? dtype::f32
                                           : c.input(1).type);
    return detail::same_shape(c);
  }
  template <class C>
  static status backward(C& c) {
    return detail::same_shape_back(c);
  }
};
/// DynamicQuantizeLinear-11: y as x (uint8), y_scale and y_zero_point scalars.
struct dynamic_quantize_linear {
  static constexpr int since[] = {11};
  static constexpr op_info info{
      .name = "DynamicQuantizeLinear", .versions = since, .outputs = {3, 3}};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, dtype::u8);
    if (c.output_count() > 1) {
      c.set_type(1, dtype::f32);
      c.set_rank(1, 0);
    }
    if (c.output_count() > 2) {
      c.set_type(2, dtype::u8);
      c.set_rank(2, 0);
    }
    return detail::same_shape(c);
  }
  template <class C>
  static status backward(C& c) {
    return detail::same_shape_back(c);
  }
};

using quantization_ops = op_set<quantize_linear, dequantize_linear, dynamic_quantize_linear>;

}  // namespace sod2::ops
