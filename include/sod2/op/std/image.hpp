// Resizing, rearranging and sampling of images.
#pragma once

#include <bit>
#include <cmath>

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>
#include <sod2/op/std/detail/window.hpp>
#include <sod2/shape/rules/reshape.hpp>
#include <sod2/shape/rules/resize.hpp>

namespace sod2::ops {

namespace detail {

/// Is optional input i really given? Resize-11 marks a missing one by an empty tensor.
template <class C>
bool non_empty(C& c, std::size_t i) {
  if (!c.has_input(i)) return false;
  if (!c.rank_known(i)) return true;
  std::int64_t n = 0;
  for (const auto& d : c.dims(i))
    if (is_known(d) && c.domain().as_constant(d, n) && n == 0) return false;
  return true;
}

/// floor(size * factor) where the factor is element k of value input i. Known factors only: a
/// symbol otherwise.
template <class C>
typename C::value_type scale_axis(C& c, std::size_t i, std::size_t k, typename C::value_type size,
                                  std::size_t axis) {
  if (is_undefined(size)) return size;
  if constexpr (is_symbolic<typename C::domain_type>) {
    if (c.has_value(i) && k < c.value(i).size() && is_known(size)) {
      const dim factor = c.value(i)[k];
      dim_context& context = c.domain().context();
      if (factor.is_undefined()) return factor;
      if (factor.is_known()) {
        const dim out = context.is_real_literal(factor)
                            ? rules::scaled_size(c.domain(), size, context.literal_value(factor))
                            : rules::scaled_by(c.domain(), size, factor);
        if (out.is_known()) return out;
      }
    }
  } else if constexpr (is_concrete<typename C::domain_type>) {
    if (c.has_value(i) && k < c.value(i).size())
      return rules::scaled_size(c.domain(), size, std::bit_cast<double>(c.value(i)[k]));
  } else {
    (void)k;
    c.has_value(i);
  }
  return c.fresh(0, axis, {0, infinity});
}

}  // namespace detail

/// Resize-10 (scales), 11 (roi, sizes), 13, 18 (axes, keep_aspect_ratio_policy), 19: sizes, or
/// floor(D*scale).
struct resize {
  static constexpr int since[] = {10, 11, 13, 18, 19};
  static constexpr op_info info{.name = "Resize",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::one_to_many,
                                .inputs = {1, 4}};
  template <class C>
  static status axes_of(C& c, std::size_t rank, small_vector<std::size_t, 8>& out) {
    std::span<const std::int64_t> given;
    out.clear();
    if (c.version() >= 18) SOD2_TRY(detail::read(c.attributes(), "axes", given));
    for (std::int64_t a : given) {
      std::size_t at = 0;
      SOD2_TRY(detail::axis_of(c, 0, a, rank, at));
      out.push_back(at);
    }
    for (std::size_t i = 0; given.empty() && i < rank; ++i) out.push_back(i);
    return {};
  }
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    const std::size_t scales = c.version() == 10 ? 1 : 2, sizes = 3;
    const bool by_sizes = c.version() >= 11 && non_empty(c, sizes);
    if (!by_sizes && !non_empty(c, scales))
      return c.fail(errc::arity, "Resize needs scales or sizes");
    const std::size_t source = by_sizes ? sizes : scales;
    if (c.pending(0) || c.pending(source)) return {};
    if (!c.rank_known(0)) {
      // All axes are listed unless attribute axes says otherwise.
      std::int64_t length = 0;
      if (!c.attributes()("axes") && list_length(c, source, length)) {
        typename C::dim_list dims;
        for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i)
          dims.push_back(by_sizes && c.has_value(sizes) ? size_or_fresh(c, 0, i, c.value(sizes)[i])
                                                        : c.fresh(0, i, {0, infinity}));
        c.set_shape(0, dims);
      } else {
        c.set_rank_unknown(0);
      }
      return {};
    }
    typename C::dim_list dims = c.input(0).dims;
    small_vector<std::size_t, 8> axes;
    SOD2_TRY(axes_of(c, dims.size(), axes));
    if (c.has_value(source) && c.value(source).size() != axes.size())
      return error(errc::dim_mismatch, std::string(by_sizes ? "sizes" : "scales") + " has " +
                                           std::to_string(c.value(source).size()) +
                                           " entries for " + std::to_string(axes.size()) + " axes")
          .at_tensor(c.input_name(source));
    std::string_view policy = "stretch", mode;
    if (c.version() >= 18) SOD2_TRY(read(c.attributes(), "keep_aspect_ratio_policy", policy));
    SOD2_TRY(read(c.attributes(), "coordinate_transformation_mode", mode));
    const bool crops = mode == "tf_crop_and_resize";
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const std::size_t at = axes[k];
      if (by_sizes && policy != "stretch")
        dims[at] = keep_ratio(c, axes, k, policy == "not_larger");
      else if (by_sizes)
        dims[at] = c.has_value(sizes) ? size_or_fresh(c, 0, at, c.value(sizes)[k])
                                      : c.fresh(0, at, {0, infinity});
      else if (crops)
        dims[at] = cropped(c, scales, k, at, axes.size());
      else
        dims[at] = scale_axis(c, scales, k, dims[at], at);
    }
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    if (!c.output(0).rank_known()) return {};
    c.refine_rank(0, c.output(0).dims.size());
    return {};
  }

 private:
  /// One scale for all axes, the smallest or largest of sizes/dims; sizes round to the nearest.
  template <class C>
  static typename C::value_type keep_ratio(C& c, const small_vector<std::size_t, 8>& axes,
                                           std::size_t k, bool smallest) {
    const std::size_t at = axes[k];
    if (c.has_value(3)) {
      const auto sizes = c.value(3);
      if constexpr (detail::is_symbolic<typename C::domain_type>) {
        dim_context& context = c.domain().context();
        dim scale{};
        bool known = true;
        for (std::size_t i = 0; i < axes.size() && known; ++i) {
          const dim size[1] = {sizes[i]}, in[1] = {c.dims(0)[axes[i]]};
          known = size[0].is_known() && in[0].is_known();
          if (!known) break;
          const dim parts[2] = {context.real(real_op::from_int, false, size),
                                context.real(real_op::from_int, false, in)};
          const dim both[2] = {scale, context.real(real_op::div, false, parts)};
          scale =
              i == 0 ? both[1] : context.real(smallest ? real_op::min : real_op::max, false, both);
        }
        if (known) {
          const dim in[1] = {c.dims(0)[at]};
          const dim product[2] = {context.real(real_op::from_int, false, in), scale};
          const dim half[2] = {context.real(real_op::mul, false, product),
                               context.real_literal(0.5, false)};
          const dim sum[1] = {context.real(real_op::add, false, half)};
          const dim out = context.real(real_op::floor_int, false, sum);
          if (out.is_known()) return out;
        }
      } else if constexpr (detail::is_concrete<typename C::domain_type>) {
        float scale = 0;
        for (std::size_t i = 0; i < axes.size(); ++i) {
          const std::int64_t in = c.dims(0)[axes[i]];
          if (in == 0) return 0;
          const float ratio = static_cast<float>(sizes[i]) / static_cast<float>(in);
          if (i == 0 || (smallest ? ratio < scale : ratio > scale)) scale = ratio;
        }
        const float x = static_cast<float>(c.dims(0)[at]) * scale + 0.5F;
        return static_cast<std::int64_t>(x);
      }
    }
    return c.fresh(0, at, {0, infinity});
  }
  /// floor(D * (end - start) * scale), the region from input roi.
  template <class C>
  static typename C::value_type cropped(C& c, std::size_t scales, std::size_t k, std::size_t at,
                                        std::size_t count) {
    if constexpr (detail::is_symbolic<typename C::domain_type>) {
      dim_context& context = c.domain().context();
      const dim in[1] = {c.dims(0)[at]};
      if (c.has_value(1) && c.value(1).size() == 2 * count && c.has_value(scales) &&
          in[0].is_known()) {
        const dim ends[2] = {c.value(1)[k + count], c.value(1)[k]};
        const dim scale = c.value(scales)[k];
        if (ends[0].is_known() && ends[1].is_known() && scale.is_known()) {
          const dim product[2] = {context.real(real_op::from_int, false, in),
                                  context.real(real_op::sub, false, ends)};
          const dim again[2] = {context.real(real_op::mul, false, product), scale};
          const dim all[1] = {context.real(real_op::mul, false, again)};
          const dim out = context.real(real_op::floor_int, false, all);
          if (out.is_known()) return out;
        }
      }
    } else if constexpr (detail::is_concrete<typename C::domain_type>) {
      if (c.has_value(1) && c.value(1).size() == 2 * count && c.has_value(scales)) {
        auto real = [](std::int64_t bits) {
          return static_cast<float>(std::bit_cast<double>(bits));
        };
        const float region = real(c.value(1)[k + count]) - real(c.value(1)[k]);
        const float size = static_cast<float>(c.dims(0)[at]) * region * real(c.value(scales)[k]);
        return static_cast<std::int64_t>(std::floor(size));
      }
    } else {
      c.has_value(1), c.has_value(scales), (void)k, (void)count;
    }
    return c.fresh(0, at, {0, infinity});
  }
};

/// Upsample-7 (attribute scales), 9 (input scales), deprecated since 10: floor(D*scale).
struct upsample {
  static constexpr int since[] = {7, 9};
  static constexpr op_info info{.name = "Upsample",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::one_to_many,
                                .inputs = {1, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    if (!ranks_known(c, {0})) return {};
    if (c.pending(1)) return {};
    typename C::dim_list dims = c.input(0).dims;
    if (c.version() < 9) {
      SOD2_TRY(only_inputs(c, 1));
      const attribute_view scales = c.attributes()("scales");
      if (!scales) return no_attribute("scales");
      if (scales.kind != attribute_kind::reals || scales.reals.size() != dims.size())
        return wrong_attribute("scales", "one float for each axis");
      for (std::size_t i = 0; i < dims.size(); ++i)
        if (is_known(dims[i]))
          dims[i] = rules::scaled_size(c.domain(), dims[i], static_cast<double>(scales.reals[i]));
    } else {
      if (!c.has_input(1)) return c.fail(errc::arity, "Upsample takes 2 inputs, not 1");
      for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = scale_axis(c, 1, i, dims[i], i);
    }
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    if (!c.output(0).rank_known()) return {};
    c.refine_rank(0, c.output(0).dims.size());
    return {};
  }
};

/// DepthToSpace-1, 11 (mode), 13, 28: (N, C, H, W) -> (N, C/b^2, H*b, W*b).
struct depth_to_space {
  static constexpr int since[] = {1, 11, 13, 28};
  static constexpr op_info info{.name = "DepthToSpace", .versions = since, .map = mapping::shuffle};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    auto& domain = c.domain();
    c.copy_type(0, 0);
    std::int64_t b = 0;
    SOD2_TRY(require(c.attributes(), "blocksize", b));
    if (b < 1 || b > 65536) return wrong_attribute("blocksize", "positive");
    if (c.pending(0)) return {};
    SOD2_TRY(need_rank(c, 0, 4));
    if (!c.rank_known(0)) {
      c.set_rank(0, 4);
      return {};
    }
    typename C::dim_list dims = c.input(0).dims;
    dims[1] = domain.floordiv(dims[1], b * b);
    if (!c.require_eq(domain.mul(dims[1], domain.constant(b * b)), c.dims(0)[1],
                      errc::divisibility))
      return c.fail(errc::divisibility, 0, 1, c.text(c.dims(0)[1]), std::to_string(b * b));
    for (std::size_t i = 2; i < 4; ++i) dims[i] = domain.mul(dims[i], domain.constant(b));
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    return inverse(c, true);
  }
  /// Inverse shape of DepthToSpace (true) or SpaceToDepth.
  template <class C>
  static status inverse(C& c, bool to_space) {
    auto& domain = c.domain();
    const auto& out = c.output(0);
    std::int64_t b = 0;
    SOD2_TRY(detail::require(c.attributes(), "blocksize", b));
    if (!out.rank_known() || out.dims.size() != 4 || b < 1) return {};
    c.refine_rank(0, 4);
    c.refine(0, 0, out.dims[0]);
    for (std::size_t i = 1; i < 4; ++i) {
      const auto factor = domain.constant(i == 1 ? b * b : b);
      auto d = out.dims[i];
      if ((i == 1) == to_space)
        c.refine(0, i, domain.mul(d, factor));
      else if (is_known(d) && domain.div_exact(out.dims[i], factor, d))
        c.refine(0, i, d);
    }
    return {};
  }
};
/// SpaceToDepth-1, 13, 28 (mode): (N, C, H, W) -> (N, C*b^2, H/b, W/b).
struct space_to_depth {
  static constexpr int since[] = {1, 13, 28};
  static constexpr op_info info{.name = "SpaceToDepth", .versions = since, .map = mapping::shuffle};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    auto& domain = c.domain();
    c.copy_type(0, 0);
    std::int64_t b = 0;
    SOD2_TRY(require(c.attributes(), "blocksize", b));
    if (b < 1 || b > 65536) return wrong_attribute("blocksize", "positive");
    if (c.pending(0)) return {};
    SOD2_TRY(need_rank(c, 0, 4));
    if (!c.rank_known(0)) {
      c.set_rank(0, 4);
      return {};
    }
    typename C::dim_list dims = c.input(0).dims;
    dims[1] = domain.mul(dims[1], domain.constant(b * b));
    for (std::size_t i = 2; i < 4; ++i) {
      dims[i] = domain.floordiv(dims[i], b);
      if (!c.require_eq(domain.mul(dims[i], domain.constant(b)), c.dims(0)[i], errc::divisibility))
        return c.fail(errc::divisibility, 0, static_cast<int>(i), c.text(c.dims(0)[i]),
                      std::to_string(b));
    }
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    return depth_to_space::inverse(c, false);
  }
};

/// GridSample-16, 20 (volumes), 22: X (N, C, D...), grid (N, D'..., rank) -> (N, C, D'...).
struct grid_sample {
  static constexpr int since[] = {16, 20, 22};
  static constexpr op_info info{.name = "GridSample", .versions = since, .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    if (!ranks_known(c, {0, 1})) return {};
    SOD2_TRY(need_rank_least(c, 0, 3));
    SOD2_TRY(need_rank(c, 1, c.dims(0).size()));
    const auto grid = c.dims(1);
    SOD2_TRY(need_dim(c, 1, 0, c.dims(0)[0]));
    SOD2_TRY(need_dim(c, 1, grid.size() - 1,
                      c.domain().constant(static_cast<std::int64_t>(grid.size()) - 2)));
    typename C::dim_list dims = {c.dims(0)[0], c.dims(0)[1]};
    dims.append(grid.subspan(1, grid.size() - 2));
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    const auto& out = c.output(0);
    if (!out.rank_known() || out.dims.size() < 3) return {};
    const std::size_t rank = out.dims.size();
    for (std::size_t i = 0; i < 2; ++i) {
      c.refine_rank(i, rank);
      c.refine(i, 0, out.dims[0]);
    }
    c.refine(0, 1, out.dims[1]);
    for (std::size_t i = 2; i < rank; ++i) c.refine(1, i - 1, out.dims[i]);
    c.refine(1, rank - 1, c.domain().constant(static_cast<std::int64_t>(rank) - 2));
    return {};
  }
};

/// AffineGrid-20: theta (N, 2, 3), size [N, C, H, W] -> (N, H, W, 2); volumes (N, D, H, W, 3).
struct affine_grid {
  static constexpr int since[] = {20};
  static constexpr op_info info{.name = "AffineGrid",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::one_to_many,
                                .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    if (c.pending(0) || c.pending(1)) return {};
    SOD2_TRY(need_rank(c, 0, 3));
    typename C::dim_list size, dims;
    if (!dims_from_value(c, 1, size)) return {};
    if (size.size() != 4 && size.size() != 5)
      return rank_error(c.input_name(1), size.size(), "4 or 5");
    dims.push_back(size[0]);
    for (std::size_t i = 2; i < size.size(); ++i) dims.push_back(size[i]);
    dims.push_back(c.domain().constant(static_cast<std::int64_t>(size.size()) - 2));
    if (c.rank_known(0)) SOD2_TRY(need_dim(c, 0, 0, size[0]));
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    c.refine_rank(0, 3);
    if (c.output(0).rank_known() && !c.output(0).dims.empty()) c.refine(0, 0, c.output(0).dims[0]);
    return {};
  }
};

/// CenterCropPad-18: the axes of attribute axes (all without it) get the dims in `shape`.
struct center_crop_pad {
  static constexpr int since[] = {18};
  static constexpr op_info info{.name = "CenterCropPad",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::one_to_many,
                                .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    if (!ranks_known(c, {0})) return {};
    if (c.pending(1)) return {};
    typename C::dim_list dims = c.input(0).dims;
    std::span<const std::int64_t> given;
    SOD2_TRY(read(c.attributes(), "axes", given));
    const std::size_t count = given.empty() ? dims.size() : given.size();
    const bool known = c.has_value(1);
    if (known && c.value(1).size() != count)
      return c.fail(errc::dim_mismatch, 1, 0, std::to_string(c.value(1).size()),
                    std::to_string(count));
    for (std::size_t k = 0; k < count; ++k) {
      std::size_t at = k;
      if (!given.empty()) SOD2_TRY(axis_of(c, 0, given[k], dims.size(), at));
      dims[at] = known ? size_or_fresh(c, 0, at, c.value(1)[k]) : c.fresh(0, at, {0, infinity});
    }
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    if (!c.output(0).rank_known()) return {};
    c.refine_rank(0, c.output(0).dims.size());
    return {};
  }
};

/// Col2Im-18: (N, C*prod(block), L) -> (N, C, image_shape...).
struct col2im {
  static constexpr int since[] = {18};
  static constexpr op_info info{
      .name = "Col2Im", .versions = since, .base = dynamism::isvdos, .inputs = {3, 3}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    auto& domain = c.domain();
    c.copy_type(0, 0);
    if (c.pending(0) || c.pending(1) || c.pending(2)) return {};
    SOD2_TRY(need_rank(c, 0, 3));
    typename C::dim_list dims(2, unknown_dim(domain));
    if (c.rank_known(0)) dims[0] = c.dims(0)[0];
    index_list block;
    bool channels = false;
    if (c.rank_known(0) && c.constants(2, block)) {
      const std::int64_t area = product_of(block);
      if (area < 1)
        return error(errc::value_range, "block_shape must be positive").at_tensor(c.input_name(2));
      dims[1] = domain.floordiv(c.dims(0)[1], area);
      if (!c.require_eq(domain.mul(dims[1], domain.constant(area)), c.dims(0)[1],
                        errc::divisibility))
        return c.fail(errc::divisibility, 0, 1, c.text(c.dims(0)[1]), std::to_string(area));
      channels = true;
    }
    std::int64_t length = 0;
    if (c.has_value(1)) {
      for (const auto& d : c.value(1)) dims.push_back(size_or_fresh(c, 0, dims.size(), d));
    } else if (list_length(c, 1, length)) {
      for (std::int64_t i = 0; i < length; ++i)
        dims.push_back(c.fresh(0, dims.size(), {0, infinity}));
    } else {
      c.set_rank_unknown(0);
      return {};
    }
    if (!channels)
      dims[1] = c.fresh(0, 1, {0, c.rank_known(0) ? upper_bound(c, c.dims(0)[1]) : infinity});
    c.set_shape(0, dims);
    return {};
  }
};

/// ImageDecoder-20: an encoded stream -> (H, W, channels) of uint8; only decoding tells H and W.
struct image_decoder {
  static constexpr int since[] = {20};
  static constexpr op_info info{
      .name = "ImageDecoder", .versions = since, .base = dynamism::edo, .map = mapping::barrier};
  template <class C>
  static status forward(C& c) {
    std::string_view format = "RGB";
    SOD2_TRY(detail::read(c.attributes(), "pixel_format", format));
    c.set_type(0, dtype::u8);
    const typename C::dim_list dims = {c.fresh(0, 0, {1, infinity}), c.fresh(0, 1, {1, infinity}),
                                       c.domain().constant(format == "Grayscale" ? 1 : 3)};
    c.set_shape(0, dims);
    return {};
  }
};

using image_ops = op_set<resize, upsample, depth_to_space, space_to_depth, grid_sample, affine_grid,
                         center_crop_pad, col2im, image_decoder>;

}  // namespace sod2::ops
