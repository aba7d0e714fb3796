// Convolutions. The formulas stand in shape/rules/convolution.hpp.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>
#include <sod2/op/std/detail/window.hpp>

namespace sod2::ops {

namespace detail {

/// Output 0 of a convolution of input x by weight w: (N, C, D...) * (M, C/group, k...) ->
/// (N, M, D'...).
template <class C>
status conv_forward(C& c, std::size_t x, std::size_t w) {
  auto& domain = c.domain();
  if (c.pending(x) || c.pending(w)) return {};
  if (!c.rank_known(x) && !c.rank_known(w)) {
    c.set_rank_unknown(0);
    return {};
  }
  const std::size_t rank = c.rank_known(x) ? c.dims(x).size() : c.dims(w).size();
  SOD2_TRY(need_rank_least(c, x, 2));
  SOD2_TRY(need_rank(c, w, rank));
  const std::size_t spatial = rank - 2;
  window_attributes window;
  SOD2_TRY(read_window(c.attributes(), spatial, window));
  typename C::dim_list kernel;
  SOD2_TRY(kernel_extents(c, w, spatial, kernel));
  std::int64_t group = 1;
  SOD2_TRY(read(c.attributes(), "group", group));
  if (group < 1) return wrong_attribute("group", "positive");
  const auto none = unknown_dim(domain);
  typename C::dim_list out(rank, none);
  if (c.rank_known(w)) {
    out[1] = c.dims(w)[0];
    std::int64_t filters = 0;
    if (is_known(out[1]) && domain.as_constant(out[1], filters) && filters % group != 0)
      return c.fail(errc::channels, w, 0, std::to_string(filters),
                    std::to_string(group) + " groups");
    if (c.rank_known(x)) {
      const auto expected = domain.mul(c.dims(w)[1], domain.constant(group));
      SOD2_TRY(need_dim(c, x, 1, expected, errc::channels));
    }
  }
  if (c.rank_known(x)) {
    const auto in = c.dims(x);
    out[0] = in[0];
    for (std::size_t i = 0; i < spatial; ++i) {
      if (window.pad == auto_pad::same) {
        out[i + 2] = rules::same_count(domain, in[i + 2], window.stride[i]);
        continue;
      }
      out[i + 2] = rules::window_count(domain, in[i + 2], kernel[i], window.stride[i],
                                       window.dilation[i], window.padding(i));
      SOD2_TRY(need_room(c, i + 2, in[i + 2], kernel[i], out[i + 2]));
    }
  }
  c.set_shape(0, out);
  return {};
}

/// Batch from the output, channels from the weight, spatial dims where the stride is 1; the filters
/// of a weight from the output.
template <class C>
status conv_back(C& c, std::size_t x, std::size_t w) {
  auto& domain = c.domain();
  const auto& out = c.output(0);
  const std::size_t rank = out.rank_known()  ? out.dims.size()
                           : c.rank_known(w) ? c.dims(w).size()
                                             : 0;
  if (rank < 2 || (c.rank_known(w) && c.dims(w).size() != rank)) return {};
  c.refine_rank(x, rank);
  if (c.rank_known(w)) {
    std::int64_t group = 1;
    SOD2_TRY(read(c.attributes(), "group", group));
    c.refine(x, 1, domain.mul(c.dims(w)[1], domain.constant(group)));
  }
  if (!out.rank_known()) return {};
  c.refine(x, 0, out.dims[0]);
  c.refine_rank(w, rank);
  c.refine(w, 0, out.dims[1]);
  window_attributes window;
  SOD2_TRY(read_window(c.attributes(), rank - 2, window));
  typename C::dim_list kernel;
  SOD2_TRY(kernel_extents(c, w, rank - 2, kernel));
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (window.stride[i] != 1) continue;  // a larger stride leaves an interval
    c.refine(x, i + 2,
             window.pad == auto_pad::same
                 ? out.dims[i + 2]
                 : rules::window_input(domain, out.dims[i + 2], kernel[i], window.dilation[i],
                                       window.padding(i)));
  }
  return {};
}

}  // namespace detail

/// Conv-1, 11, 22: X (N, C, D...), W (M, C/group, k...), B (M).
struct conv {
  static constexpr int since[] = {1, 11, 22};
  static constexpr op_info info{.name = "Conv", .versions = since, .inputs = {2, 3}};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, detail::type_of(c, 0, 1));
    SOD2_TRY(detail::conv_forward(c, 0, 1));
    if (c.rank_known(2) && c.rank_known(1)) {
      SOD2_TRY(detail::need_rank(c, 2, 1));
      SOD2_TRY(detail::need_dim(c, 2, 0, c.dims(1)[0], errc::channels));
    }
    return {};
  }
  template <class C>
  static status backward(C& c) {
    return detail::conv_back(c, 0, 1);
  }
};
/// ConvInteger-10: 8-bit operands, int32 result.
struct conv_integer {
  static constexpr int since[] = {10};
  static constexpr op_info info{.name = "ConvInteger", .versions = since, .inputs = {2, 4}};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, dtype::i32);
    return detail::conv_forward(c, 0, 1);
  }
  template <class C>
  static status backward(C& c) {
    return detail::conv_back(c, 0, 1);
  }
};
/// QLinearConv-10: x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B.
struct qlinear_conv {
  static constexpr int since[] = {10};
  static constexpr op_info info{.name = "QLinearConv", .versions = since, .inputs = {8, 9}};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, detail::type_of(c, 7, 0));
    return detail::conv_forward(c, 0, 3);
  }
  template <class C>
  static status backward(C& c) {
    return detail::conv_back(c, 0, 3);
  }
};

/// ConvTranspose-1, 11, 22: X (N, C, D...), W (C, M/group, k...) -> (N, M, D'...), D' =
/// stride*(D-1) + output_padding + effective kernel - pads; attribute output_shape sets D' itself,
/// SAME gives D*stride.
struct conv_transpose {
  static constexpr int since[] = {1, 11, 22};
  static constexpr op_info info{.name = "ConvTranspose", .versions = since, .inputs = {2, 3}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    auto& domain = c.domain();
    c.set_type(0, type_of(c, 0, 1));
    if (c.pending(0) || c.pending(1)) return {};
    if (!c.rank_known(0) && !c.rank_known(1)) {
      c.set_rank_unknown(0);
      return {};
    }
    const std::size_t rank = c.rank_known(0) ? c.dims(0).size() : c.dims(1).size();
    SOD2_TRY(need_rank_least(c, 0, 2));
    SOD2_TRY(need_rank(c, 1, rank));
    const std::size_t spatial = rank - 2;
    window_attributes window;
    SOD2_TRY(read_window(c.attributes(), spatial, window));
    typename C::dim_list kernel;
    SOD2_TRY(kernel_extents(c, 1, spatial, kernel));
    std::int64_t group = 1;
    SOD2_TRY(read(c.attributes(), "group", group));
    index_list extra;
    SOD2_TRY(read_list(c.attributes(), "output_padding", spatial, 0, extra));
    std::span<const std::int64_t> fixed;
    SOD2_TRY(read(c.attributes(), "output_shape", fixed));
    // Some exporters write the whole shape, batch and channels included.
    if (fixed.size() == rank) fixed = fixed.subspan(2);
    if (!fixed.empty() && fixed.size() != spatial)
      return wrong_attribute("output_shape", "a list with one entry per spatial axis");
    typename C::dim_list out(rank, unknown_dim(domain));
    if (c.rank_known(1)) {
      out[1] = domain.mul(c.dims(1)[1], domain.constant(group));
      if (c.rank_known(0)) SOD2_TRY(need_dim(c, 0, 1, c.dims(1)[0], errc::channels));
    }
    if (c.rank_known(0)) out[0] = c.dims(0)[0];
    for (std::size_t i = 0; i < spatial; ++i) {
      if (!fixed.empty()) {
        out[i + 2] = domain.constant(fixed[i]);
      } else if (c.rank_known(0)) {
        const auto in = c.dims(0)[i + 2];
        out[i + 2] = window.pad == auto_pad::same
                         ? domain.mul(in, domain.constant(window.stride[i]))
                         : rules::transposed_count(domain, in, kernel[i], window.stride[i],
                                                   window.dilation[i], window.padding(i), extra[i]);
        SOD2_TRY(need_room(c, i + 2, in, kernel[i], out[i + 2]));
      }
    }
    c.set_shape(0, out);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    using namespace detail;
    auto& domain = c.domain();
    const auto& result = c.output(0);
    const std::size_t rank = result.rank_known() ? result.dims.size()
                             : c.rank_known(1)   ? c.dims(1).size()
                                                 : 0;
    if (rank < 2 || (c.rank_known(1) && c.dims(1).size() != rank)) return {};
    c.refine_rank(0, rank);
    if (c.rank_known(1)) c.refine(0, 1, c.dims(1)[0]);
    if (!result.rank_known()) return {};
    c.refine(0, 0, result.dims[0]);
    if (c.attributes()("output_shape")) return {};
    window_attributes window;
    SOD2_TRY(read_window(c.attributes(), rank - 2, window));
    typename C::dim_list kernel;
    SOD2_TRY(kernel_extents(c, 1, rank - 2, kernel));
    index_list extra;
    SOD2_TRY(read_list(c.attributes(), "output_padding", rank - 2, 0, extra));
    for (std::size_t i = 0; i + 2 < rank; ++i) {
      // What an input of size 0 would give, subtracted, is stride times the input.
      const auto at_zero =
          window.pad == auto_pad::same
              ? domain.constant(0)
              : rules::transposed_count(domain, domain.constant(0), kernel[i], window.stride[i],
                                        window.dilation[i], window.padding(i), extra[i]);
      auto in = domain.constant(0);
      if (is_known(result.dims[i + 2]) && is_known(at_zero) &&
          domain.div_exact(domain.sub(result.dims[i + 2], at_zero),
                           domain.constant(window.stride[i]), in))
        c.refine(0, i + 2, in);
    }
    return {};
  }
};

/// DeformConv-19, 22: as Conv; offset (N, groups*k*2, D'...) has the output's spatial dims.
struct deform_conv {
  static constexpr int since[] = {19, 22};
  static constexpr op_info info{.name = "DeformConv", .versions = since, .inputs = {3, 5}};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, detail::type_of(c, 0, 1));
    SOD2_TRY(detail::conv_forward(c, 0, 1));
    if (!c.rank_known(2) || !c.output(0).rank_known()) return {};
    const std::size_t rank = c.output(0).dims.size();
    SOD2_TRY(detail::need_rank(c, 2, rank));
    for (std::size_t i = 2; i < rank; ++i) {
      if (!is_known(c.output(0).dims[i])) c.output(0).dims[i] = c.dims(2)[i];
      SOD2_TRY(detail::need_dim(c, 2, i, c.output(0).dims[i]));
    }
    return {};
  }
  template <class C>
  static status backward(C& c) {
    return detail::conv_back(c, 0, 1);
  }
};

using convolution_ops = op_set<conv, conv_integer, qlinear_conv, conv_transpose, deform_conv>;

}  // namespace sod2::ops
