// Attributes of sliding windows, shared by convolution and pooling.
#pragma once

#include <sod2/op/std/detail/support.hpp>
#include <sod2/shape/rules/convolution.hpp>

namespace sod2::ops::detail {

enum class auto_pad : std::uint8_t { not_set, valid, same };

struct window_attributes {
  index_list stride, dilation, pads;  // pads: all begins, then all ends
  auto_pad pad = auto_pad::not_set;

  std::int64_t padding(std::size_t axis) const { return pads[axis] + pads[axis + stride.size()]; }
};

inline status read_window(const attribute_source& attributes, std::size_t spatial,
                          window_attributes& out) {
  SOD2_TRY(read_list(attributes, "strides", spatial, 1, out.stride));
  SOD2_TRY(read_list(attributes, "dilations", spatial, 1, out.dilation));
  SOD2_TRY(read_list(attributes, "pads", 2 * spatial, 0, out.pads));
  for (std::size_t i = 0; i < spatial; ++i)
    if (out.stride[i] < 1 || out.dilation[i] < 1)
      return wrong_attribute(out.stride[i] < 1 ? "strides" : "dilations", "positive");
  std::string_view mode = "NOTSET";
  SOD2_TRY(read(attributes, "auto_pad", mode));
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER")
    out.pad = auto_pad::same;
  else if (mode == "VALID")
    out.pad = auto_pad::valid;
  else if (mode != "NOTSET" && !mode.empty())
    return wrong_attribute("auto_pad", "NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  if (out.pad == auto_pad::valid) out.pads.assign(2 * spatial, 0);
  return {};
}

/// Extents of the kernel: attribute kernel_shape, else the weight's spatial dims.
template <class C>
status kernel_extents(C& c, std::size_t weight, std::size_t spatial, typename C::dim_list& out) {
  index_list given;
  const bool has_attribute = static_cast<bool>(c.attributes()("kernel_shape"));
  if (has_attribute) SOD2_TRY(read_list(c.attributes(), "kernel_shape", spatial, 1, given));
  out.clear();
  for (std::size_t i = 0; i < spatial; ++i) {
    if (has_attribute) {
      out.push_back(c.domain().constant(given[i]));
      if (c.rank_known(weight)) SOD2_TRY(need_dim(c, weight, i + 2, out[i]));
    } else {
      out.push_back(c.rank_known(weight) ? c.dims(weight)[i + 2] : unknown_dim(c.domain()));
    }
  }
  return {};
}

/// A window that provably does not fit is an error, whatever the sizes are at run time.
template <class C>
status need_room(C& c, std::size_t axis, const typename C::value_type& in,
                 const typename C::value_type& kernel, const typename C::value_type& out) {
  if (!is_known(out) || c.domain().decide_le(c.domain().constant(0), out) != tri::no) return {};
  return error(errc::dim_mismatch, "window does not fit into the padded input")
      .at_tensor(c.input_name(0), static_cast<int>(axis))
      .between(c.text(in), c.text(kernel));
}

}  // namespace sod2::ops::detail
