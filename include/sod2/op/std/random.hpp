// Random tensors. Never folded: each run draws anew.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops {

namespace detail {
/// Dims and type from attributes.
struct random_source {
  template <class C>
  static status forward(C& c) {
    dtype type = dtype::f32;
    SOD2_TRY(read_type(c.attributes(), "dtype", type));
    std::span<const std::int64_t> shape;
    SOD2_TRY(require(c.attributes(), "shape", shape));
    typename C::dim_list dims;
    for (std::int64_t d : shape) dims.push_back(c.domain().constant(d));
    c.set_type(0, type);
    c.set_shape(0, dims);
    return {};
  }
};
/// Dims of the input; type from attribute dtype, else the input's.
struct random_like {
  template <class C>
  static status forward(C& c) {
    dtype type = c.input(0).type;
    SOD2_TRY(read_type(c.attributes(), "dtype", type));
    c.set_type(0, type);
    return same_shape(c);
  }
  template <class C>
  static status backward(C& c) {
    return same_shape_back(c);
  }
};
}  // namespace detail

/// RandomNormal-1, 22.
struct random_normal : detail::random_source {
  static constexpr int since[] = {1, 22};
  static constexpr op_info info{.name = "RandomNormal",
                                .versions = since,
                                .map = mapping::source,
                                .inputs = {0, 0},
                                .deterministic = false};
};
/// RandomUniform-1, 22.
struct random_uniform : detail::random_source {
  static constexpr int since[] = {1, 22};
  static constexpr op_info info{.name = "RandomUniform",
                                .versions = since,
                                .map = mapping::source,
                                .inputs = {0, 0},
                                .deterministic = false};
};
/// RandomNormalLike-1, 22.
struct random_normal_like : detail::random_like {
  static constexpr int since[] = {1, 22};
  static constexpr op_info info{.name = "RandomNormalLike",
                                .versions = since,
                                .map = mapping::one_to_one,
                                .deterministic = false};
};
/// RandomUniformLike-1, 22.
struct random_uniform_like : detail::random_like {
  static constexpr int since[] = {1, 22};
  static constexpr op_info info{.name = "RandomUniformLike",
                                .versions = since,
                                .map = mapping::one_to_one,
                                .deterministic = false};
};
/// Bernoulli-15, 22.
struct bernoulli : detail::random_like {
  static constexpr int since[] = {15, 22};
  static constexpr op_info info{
      .name = "Bernoulli", .versions = since, .map = mapping::one_to_one, .deterministic = false};
};
/// Multinomial-7, 22: (B, classes) -> (B, sample_size), int32 by default.
struct multinomial {
  static constexpr int since[] = {7, 22};
  static constexpr op_info info{.name = "Multinomial", .versions = since, .deterministic = false};
  template <class C>
  static status forward(C& c) {
    dtype type = dtype::i32;
    std::int64_t samples = 1;
    SOD2_TRY(detail::read_type(c.attributes(), "dtype", type));
    SOD2_TRY(detail::read(c.attributes(), "sample_size", samples));
    c.set_type(0, type);
    if (c.pending(0)) return {};
    SOD2_TRY(detail::need_rank(c, 0, 2));
    const typename C::dim_list dims = {c.rank_known(0) ? c.dims(0)[0] : unknown_dim(c.domain()),
                                       c.domain().constant(samples)};
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    c.refine_rank(0, 2);
    if (c.output(0).rank_known() && c.output(0).dims.size() == 2)
      c.refine(0, 0, c.output(0).dims[0]);
    return {};
  }
};

using random_ops = op_set<random_normal, random_uniform, random_normal_like, random_uniform_like,
                          bernoulli, multinomial>;

}  // namespace sod2::ops
