// Normalisations and softmax: the output has the shape of the input.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops {

namespace detail {
/// A parameter (C) for axis 1 of input 0.
template <class C>
status per_channel(C& c, std::size_t i) {
  SOD2_TRY(need_rank(c, i, 1));
  if (c.rank_known(0) && c.dims(0).size() > 1 && c.rank_known(i))
    SOD2_TRY(need_dim(c, i, 0, c.dims(0)[1], errc::channels));
  return {};
}
/// The shape of X from Y, its channels from a parameter, and the parameters [1, last) from either.
template <class C>
void channels_back(C& c, std::size_t last) {
  const auto& out = c.output(0);
  if (out.rank_known()) c.refine_shape(0, out.dims.view());
  auto channels = typename C::value_type{};
  bool found = false;
  if (out.rank_known() && out.dims.size() > 1 && is_known(out.dims[1])) {
    channels = out.dims[1];
    found = true;
  }
  for (std::size_t i = 1; i < last; ++i)
    if (!found && c.rank_known(i) && c.dims(i).size() == 1 && is_known(c.dims(i)[0])) {
      channels = c.dims(i)[0];
      found = true;
    }
  if (found && ((c.rank_known(0) && c.dims(0).size() > 1) || out.dims.size() > 1))
    c.refine(0, 1, channels);
  for (std::size_t i = 1; i < last; ++i) {
    c.refine_rank(i, 1);
    if (found) c.refine(i, 0, channels);
  }
}
/// Softmax and its kin: attribute axis must be in range.
struct along_axis {
  template <class C>
  static status forward(C& c) {
    std::int64_t axis = c.version() < 13 ? 1 : -1;
    SOD2_TRY(read(c.attributes(), "axis", axis));
    if (c.rank_known(0) && !c.dims(0).empty()) {
      const std::size_t rank = c.dims(0).size();
      // Before opset 13 the axis split the shape in two, so axis == rank was an empty second half.
      std::size_t at = 0;
      if (!(c.version() < 13 && axis == static_cast<std::int64_t>(rank)))
        SOD2_TRY(axis_of(c, 0, axis, rank, at));
    }
    return same_shape_and_type(c);
  }
  template <class C>
  static status backward(C& c) {
    return same_shape_back(c);
  }
};
}  // namespace detail

/// BatchNormalization-1, 6, 7, 9, 14 (training_mode), 15: X (N, C, ...), four parameters (C), or
/// before 9, where `spatial` is 0, (C, ...); Y as X, the statistics as the parameters.
struct batch_normalization {
  static constexpr int since[] = {1, 6, 7, 9, 14, 15};
  static constexpr op_info info{.name = "BatchNormalization",
                                .versions = since,
                                .map = mapping::one_to_one,
                                .inputs = {5, 5},
                                .outputs = {1, 5}};
  template <class C>
  static status per_element(C& c, bool& out) {
    bool spatial = true;
    if (c.version() < 9) SOD2_TRY(detail::read(c.attributes(), "spatial", spatial));
    out = !spatial;
    return {};
  }
  template <class C>
  static status forward(C& c) {
    c.copy_shape(0, 0);
    c.copy_type(0, 0);
    bool elements = false;
    SOD2_TRY(per_element(c, elements));
    for (std::size_t i = 1; i < 5; ++i) {
      if (!elements) {
        SOD2_TRY(detail::per_channel(c, i));
      } else if (c.rank_known(0) && c.rank_known(i)) {
        SOD2_TRY(detail::need_rank_least(c, 0, 1));
        SOD2_TRY(detail::need_rank(c, i, c.dims(0).size() - 1));
        for (std::size_t axis = 1; axis < c.dims(0).size(); ++axis)
          SOD2_TRY(detail::need_dim(c, i, axis - 1, c.dims(0)[axis]));
      }
    }
    for (std::size_t o = 1; o < c.output_count(); ++o) {
      const std::size_t like = c.version() >= 14 && c.has_input(3) ? 3 : 1;
      c.set_type(o, c.input(like).type);
      c.copy_shape(1, o);
    }
    return {};
  }
  template <class C>
  static status backward(C& c) {
    bool elements = false;
    SOD2_TRY(per_element(c, elements));
    if (elements) return detail::same_shape_back(c);
    detail::channels_back(c, 5);
    return {};
  }
};
/// InstanceNormalization-1, 6, 22: X (N, C, D...), scale (C), B (C).
struct instance_normalization {
  static constexpr int since[] = {1, 6, 22};
  static constexpr op_info info{
      .name = "InstanceNormalization", .versions = since, .inputs = {3, 3}};
  template <class C>
  static status forward(C& c) {
    for (std::size_t i = 1; i < 3; ++i) SOD2_TRY(detail::per_channel(c, i));
    return detail::same_shape_and_type(c);
  }
  template <class C>
  static status backward(C& c) {
    detail::channels_back(c, 3);
    return {};
  }
};
/// GroupNormalization-18 (scale per group), 21 (scale per channel): X (N, C, D...).
struct group_normalization {
  static constexpr int since[] = {18, 21};
  static constexpr op_info info{.name = "GroupNormalization", .versions = since, .inputs = {3, 3}};
  template <class C>
  static status forward(C& c) {
    std::int64_t groups = 0, channels = 0;
    SOD2_TRY(detail::require(c.attributes(), "num_groups", groups));
    if (groups < 1) return detail::wrong_attribute("num_groups", "positive");
    if (c.version() >= 21)
      for (std::size_t i = 1; i < 3; ++i) SOD2_TRY(detail::per_channel(c, i));
    if (c.rank_known(0) && c.dims(0).size() > 1 && is_known(c.dims(0)[1]) &&
        c.domain().as_constant(c.dims(0)[1], channels) && channels % groups != 0)
      return c.fail(errc::divisibility, 0, 1, std::to_string(channels),
                    std::to_string(groups) + " groups");
    return detail::same_shape_and_type(c);
  }
  template <class C>
  static status backward(C& c) {
    if (c.version() >= 21)
      detail::channels_back(c, 3);
    else
      return detail::same_shape_back(c);
    return {};
  }
};
/// LayerNormalization-17: Y as X; Mean and InvStdDev as X with 1 from `axis` on, in the type of
/// stash_type.
struct layer_normalization {
  static constexpr int since[] = {17};
  static constexpr op_info info{
      .name = "LayerNormalization", .versions = since, .inputs = {2, 3}, .outputs = {1, 3}};
  template <class C>
  static status forward(C& c) {
    c.copy_type(0, 0);
    dtype stash = dtype::f32;
    SOD2_TRY(detail::read_type(c.attributes(), "stash_type", stash));
    for (std::size_t o = 1; o < c.output_count(); ++o) c.set_type(o, stash);
    if (!detail::ranks_known(c, {0})) return {};
    std::int64_t axis = -1;
    SOD2_TRY(detail::read(c.attributes(), "axis", axis));
    std::size_t first = 0;
    SOD2_TRY(detail::axis_of(c, 0, axis, c.dims(0).size(), first));
    c.copy_shape(0, 0);
    typename C::dim_list dims = c.input(0).dims;
    for (std::size_t i = first; i < dims.size(); ++i) dims[i] = c.domain().constant(1);
    for (std::size_t o = 1; o < c.output_count(); ++o) c.set_shape(o, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    if (c.output(0).rank_known()) c.refine_shape(0, c.output(0).dims.view());
    return {};
  }
};
/// RMSNormalization-23: Y as X.
struct rms_normalization : detail::along_axis {
  static constexpr int since[] = {23};
  static constexpr op_info info{.name = "RMSNormalization", .versions = since, .inputs = {2, 2}};
};
/// LRN-1, 13: X (N, C, D...).
struct lrn : detail::keeps_shape {
  static constexpr int since[] = {1, 13};
  static constexpr op_info info{.name = "LRN", .versions = since};
  template <class C>
  static status forward(C& c) {
    std::int64_t size = 0;  // channels that a sum takes in
    SOD2_TRY(detail::require(c.attributes(), "size", size));
    if (size < 1 || size > INT32_MAX) return detail::wrong_attribute("size", "positive");
    return detail::keeps_shape::forward(c);
  }
};
/// LpNormalization-1, 22.
struct lp_normalization : detail::keeps_shape {
  static constexpr int since[] = {1, 22};
  static constexpr op_info info{.name = "LpNormalization", .versions = since};
};
/// MeanVarianceNormalization-9, 13.
struct mean_variance_normalization : detail::keeps_shape {
  static constexpr int since[] = {9, 13};
  static constexpr op_info info{.name = "MeanVarianceNormalization", .versions = since};
};
/// Softmax-1, 11 (over all axes from `axis` on), 13 (over one axis).
struct softmax : detail::along_axis {
  static constexpr int since[] = {1, 11, 13};
  static constexpr op_info info{.name = "Softmax", .versions = since};
};
/// LogSoftmax-1, 11, 13: as Softmax.
struct log_softmax : detail::along_axis {
  static constexpr int since[] = {1, 11, 13};
  static constexpr op_info info{.name = "LogSoftmax", .versions = since};
};
/// Hardmax-1, 11, 13: as Softmax.
struct hardmax : detail::along_axis {
  static constexpr int since[] = {1, 11, 13};
  static constexpr op_info info{.name = "Hardmax", .versions = since};
};

using normalization_ops = op_set<batch_normalization, instance_normalization, group_normalization,
                                 layer_normalization, rms_normalization, lrn, lp_normalization,
                                 mean_variance_normalization, softmax, log_softmax, hardmax>;

}  // namespace sod2::ops
