// Pooling and its inverses.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>
#include <sod2/op/std/detail/window.hpp>

namespace sod2::ops {

namespace detail {

/// (N, C, D...) -> (N, C, D'...) for every output.
template <class C>
status pool_forward(C& c) {
  auto& domain = c.domain();
  if (!c.attributes()("kernel_shape")) return no_attribute("kernel_shape");
  if (!ranks_known(c, {0})) return {};
  SOD2_TRY(need_rank_least(c, 0, 2));
  const auto in = c.dims(0);
  const std::size_t spatial = in.size() - 2;
  window_attributes window;
  SOD2_TRY(read_window(c.attributes(), spatial, window));
  index_list kernel;
  SOD2_TRY(read_list(c.attributes(), "kernel_shape", spatial, 1, kernel));
  bool ceil_mode = false;
  SOD2_TRY(read(c.attributes(), "ceil_mode", ceil_mode));
  typename C::dim_list out = c.input(0).dims;
  for (std::size_t i = 0; i < spatial; ++i) {
    if (window.pad == auto_pad::same) {
      out[i + 2] = rules::same_count(domain, in[i + 2], window.stride[i]);
      continue;
    }
    out[i + 2] =
        rules::pool_count(domain, in[i + 2], kernel[i], window.stride[i], window.dilation[i],
                          window.pads[i], window.pads[i + spatial], ceil_mode);
    SOD2_TRY(need_room(c, i + 2, in[i + 2], domain.constant(kernel[i]), out[i + 2]));
  }
  for (std::size_t o = 0; o < c.output_count(); ++o) c.set_shape(o, out);
  return {};
}
template <class C>
status pool_back(C& c) {
  auto& domain = c.domain();
  const auto& out = c.output(0);
  if (!out.rank_known() || out.dims.size() < 2) return {};
  const std::size_t spatial = out.dims.size() - 2;
  c.refine_rank(0, out.dims.size());
  c.refine(0, 0, out.dims[0]);
  c.refine(0, 1, out.dims[1]);
  window_attributes window;
  SOD2_TRY(read_window(c.attributes(), spatial, window));
  index_list kernel;
  SOD2_TRY(read_list(c.attributes(), "kernel_shape", spatial, 1, kernel));
  for (std::size_t i = 0; i < spatial; ++i) {
    if (window.stride[i] != 1) continue;
    c.refine(0, i + 2,
             window.pad == auto_pad::same
                 ? out.dims[i + 2]
                 : rules::window_input(domain, out.dims[i + 2], domain.constant(kernel[i]),
                                       window.dilation[i], window.padding(i)));
  }
  return {};
}
struct pool {
  template <class C>
  static status forward(C& c) {
    c.copy_type(0, 0);
    return pool_forward(c);
  }
  template <class C>
  static status backward(C& c) {
    return pool_back(c);
  }
};
/// (N, C, D...) -> (N, C, 1...).
struct global_pool {
  template <class C>
  static status forward(C& c) {
    c.copy_type(0, 0);
    if (!ranks_known(c, {0})) return {};
    SOD2_TRY(need_rank_least(c, 0, 2));
    typename C::dim_list out = c.input(0).dims;
    for (std::size_t i = 2; i < out.size(); ++i) out[i] = c.domain().constant(1);
    c.set_shape(0, out);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    const auto& out = c.output(0);
    if (!out.rank_known() || out.dims.size() < 2) return {};
    c.refine_rank(0, out.dims.size());
    c.refine(0, 0, out.dims[0]);
    c.refine(0, 1, out.dims[1]);
    return {};
  }
};

}  // namespace detail

/// AveragePool-1, 7 (count_include_pad), 10 (ceil_mode), 11, 19 (dilations), 22.
struct average_pool : detail::pool {
  static constexpr int since[] = {1, 7, 10, 11, 19, 22};
  static constexpr op_info info{.name = "AveragePool", .versions = since};
};
/// MaxPool-1, 8 (Indices), 10 (ceil_mode, dilations), 11, 12 (8-bit), 22.
struct max_pool {
  static constexpr int since[] = {1, 8, 10, 11, 12, 22};
  static constexpr op_info info{.name = "MaxPool", .versions = since, .outputs = {1, 2}};
  template <class C>
  static status forward(C& c) {
    c.copy_type(0, 0);
    if (c.output_count() > 1) c.set_type(1, dtype::i64);
    return detail::pool_forward(c);
  }
  template <class C>
  static status backward(C& c) {
    return detail::pool_back(c);
  }
};
/// LpPool-1, 2, 11, 18 (ceil_mode, dilations), 22.
struct lp_pool : detail::pool {
  static constexpr int since[] = {1, 2, 11, 18, 22};
  static constexpr op_info info{.name = "LpPool", .versions = since};
};
/// GlobalAveragePool-1, 22.
struct global_average_pool : detail::global_pool {
  static constexpr int since[] = {1, 22};
  static constexpr op_info info{.name = "GlobalAveragePool", .versions = since};
};
/// GlobalMaxPool-1, 22.
struct global_max_pool : detail::global_pool {
  static constexpr int since[] = {1, 22};
  static constexpr op_info info{.name = "GlobalMaxPool", .versions = since};
};
/// GlobalLpPool-1, 2, 22.
struct global_lp_pool : detail::global_pool {
  static constexpr int since[] = {1, 2, 22};
  static constexpr op_info info{.name = "GlobalLpPool", .versions = since};
};

/// MaxUnpool-9, 11, 22: (D - 1)*stride - pads + kernel, or what input output_shape says.
struct max_unpool {
  static constexpr int since[] = {9, 11, 22};
  static constexpr op_info info{
      .name = "MaxUnpool", .versions = since, .base = dynamism::isvdos, .inputs = {2, 3}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    auto& domain = c.domain();
    c.copy_type(0, 0);
    if (!c.attributes()("kernel_shape")) return no_attribute("kernel_shape");
    if (!ranks_known(c, {0})) return {};
    SOD2_TRY(need_rank_least(c, 0, 2));
    const std::size_t spatial = c.dims(0).size() - 2;
    typename C::dim_list out = c.input(0).dims;
    if (c.has_input(2)) {
      if (c.pending(2)) return {};
      const bool tracked_target = c.has_value(2) && c.value(2).size() == out.size();
      for (std::size_t i = 0; i < out.size(); ++i)
        if (tracked_target)
          out[i] = size_or_fresh(c, 0, i, c.value(2)[i]);
        else if (i >= 2)
          out[i] = c.fresh(0, i, {0, infinity});
      c.set_shape(0, out);
      return {};
    }
    window_attributes window;
    SOD2_TRY(read_window(c.attributes(), spatial, window));
    index_list kernel;
    SOD2_TRY(read_list(c.attributes(), "kernel_shape", spatial, 1, kernel));
    for (std::size_t i = 0; i < spatial; ++i)
      out[i + 2] = rules::transposed_count(domain, out[i + 2], domain.constant(kernel[i]),
                                           window.stride[i], 1, window.padding(i), 0);
    c.set_shape(0, out);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    const auto& out = c.output(0);
    if (c.rank_known(1)) {
      c.refine_shape(0, c.dims(1));
    } else if (out.rank_known() && out.dims.size() >= 2) {
      c.refine_rank(0, out.dims.size());
      c.refine(0, 0, out.dims[0]);
      c.refine(0, 1, out.dims[1]);
    }
    return {};
  }
};

/// MaxRoiPool-1, 22: X (N, C, H, W), rois (R, 5) -> (R, C, pooled_shape...).
struct max_roi_pool {
  static constexpr int since[] = {1, 22};
  static constexpr op_info info{.name = "MaxRoiPool", .versions = since, .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    std::span<const std::int64_t> pooled;
    SOD2_TRY(require(c.attributes(), "pooled_shape", pooled));
    if (c.pending(0) || c.pending(1)) return {};
    SOD2_TRY(need_rank(c, 0, 4));
    SOD2_TRY(need_rank(c, 1, 2));
    typename C::dim_list out(2, unknown_dim(c.domain()));
    if (c.rank_known(1)) out[0] = c.dims(1)[0];
    if (c.rank_known(0)) out[1] = c.dims(0)[1];
    for (std::int64_t d : pooled) out.push_back(c.domain().constant(d));
    c.set_shape(0, out);
    return {};
  }
};
/// RoiAlign-10, 16 (coordinate_transformation_mode), 22: X (N, C, H, W), rois (R, 4),
/// batch_indices (R) -> (R, C, output_height, output_width).
struct roi_align {
  static constexpr int since[] = {10, 16, 22};
  static constexpr op_info info{.name = "RoiAlign", .versions = since, .inputs = {3, 3}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    std::int64_t height = 1, width = 1;
    SOD2_TRY(read(c.attributes(), "output_height", height));
    SOD2_TRY(read(c.attributes(), "output_width", width));
    if (c.pending(0) || c.pending(1)) return {};
    SOD2_TRY(need_rank(c, 0, 4));
    SOD2_TRY(need_rank(c, 1, 2));
    SOD2_TRY(need_rank(c, 2, 1));
    typename C::dim_list out(2, unknown_dim(c.domain()));
    if (c.rank_known(1))
      out[0] = c.dims(1)[0];
    else if (c.rank_known(2))
      out[0] = c.dims(2)[0];
    if (c.rank_known(1) && c.rank_known(2)) SOD2_TRY(need_dim(c, 2, 0, c.dims(1)[0]));
    if (c.rank_known(0)) out[1] = c.dims(0)[1];
    out.push_back(c.domain().constant(height));
    out.push_back(c.domain().constant(width));
    c.set_shape(0, out);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    c.refine_rank(1, 2);
    if (c.rank_known(2) && c.dims(2).size() == 1) c.refine(1, 0, c.dims(2)[0]);
    return {};
  }
};

using pooling_ops = op_set<average_pool, max_pool, lp_pool, global_average_pool, global_max_pool,
                           global_lp_pool, max_unpool, max_roi_pool, roi_align>;

}  // namespace sod2::ops
