// Losses, and the optimisers of the training domain.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops {

namespace detail {
/// The shape of input 1 without a reduction, else a scalar.
template <class C>
status loss_forward(C& c) {
  std::string_view reduction = "mean";
  SOD2_TRY(read(c.attributes(), "reduction", reduction));
  c.copy_type(0, 0);
  if (c.rank_known(0) && c.rank_known(1)) {
    const auto scores = c.dims(0), labels = c.dims(1);
    SOD2_TRY(need_rank_least(c, 0, 2));
    SOD2_TRY(need_rank(c, 1, scores.size() - 1));
    SOD2_TRY(need_dim(c, 1, 0, scores[0]));
    for (std::size_t i = 1; i < labels.size(); ++i) SOD2_TRY(need_dim(c, 1, i, scores[i + 1]));
  }
  if (reduction == "none")
    c.copy_shape(1, 0);
  else
    c.set_rank(0, 0);
  return {};
}
template <class C>
status loss_back(C& c) {
  std::string_view reduction = "mean";
  SOD2_TRY(read(c.attributes(), "reduction", reduction));
  if (reduction == "none" && c.output(0).rank_known()) c.refine_shape(1, c.output(0).dims.view());
  return {};
}
/// Inputs: the rate, the step, then `per_tensor` groups of n tensors each; outputs: the groups
/// whose positions are listed, n tensors each, shaped as they were.
template <class C>
status optimizer_forward(C& c, std::size_t per_tensor, std::initializer_list<std::size_t> groups) {
  const std::size_t given = c.input_count() - 2;
  if (c.input_count() < 2 || given % per_tensor != 0)
    return error(errc::arity, "an optimiser takes " + std::to_string(per_tensor) +
                                  " inputs for each tensor, after two");
  const std::size_t n = given / per_tensor;
  std::size_t o = 0;
  for (std::size_t group : groups)
    for (std::size_t i = 0; i < n && o < c.output_count(); ++i, ++o) {
      const std::size_t from = 2 + group * n + i;
      if (!c.has_input(from)) continue;
      c.copy_type(from, o);
      c.copy_shape(from, o);
    }
  return {};
}
inline constexpr std::string_view training_domain = "ai.onnx.preview.training";
}  // namespace detail

/// NegativeLogLikelihoodLoss-12, 13, 22: input (N, C, D...), target (N, D...).
struct negative_log_likelihood_loss {
  static constexpr int since[] = {12, 13, 22};
  static constexpr op_info info{
      .name = "NegativeLogLikelihoodLoss", .versions = since, .inputs = {2, 3}};
  template <class C>
  static status forward(C& c) {
    return detail::loss_forward(c);
  }
  template <class C>
  static status backward(C& c) {
    return detail::loss_back(c);
  }
};
/// SoftmaxCrossEntropyLoss-12, 13: scores (N, C, D...), labels (N, D...); log_prob as scores.
struct softmax_cross_entropy_loss {
  static constexpr int since[] = {12, 13};
  static constexpr op_info info{
      .name = "SoftmaxCrossEntropyLoss", .versions = since, .inputs = {2, 3}, .outputs = {1, 2}};
  template <class C>
  static status forward(C& c) {
    if (c.output_count() > 1) {
      c.copy_type(0, 1);
      c.copy_shape(0, 1);
    }
    return detail::loss_forward(c);
  }
  template <class C>
  static status backward(C& c) {
    if (c.output_count() > 1 && c.output(1).rank_known())
      c.refine_shape(0, c.output(1).dims.view());
    return detail::loss_back(c);
  }
};
/// Adagrad-1: R, T, then X, G, H -> X, H.
struct adagrad {
  static constexpr int since[] = {1};
  static constexpr op_info info{.name = "Adagrad",
                                .domain = detail::training_domain,
                                .versions = since,
                                .map = mapping::one_to_one,
                                .inputs = {3, many},
                                .outputs = {1, many}};
  template <class C>
  static status forward(C& c) {
    return detail::optimizer_forward(c, 3, {0, 2});
  }
};
/// Adam-1: R, T, then X, G, V, H -> X, V, H.
struct adam {
  static constexpr int since[] = {1};
  static constexpr op_info info{.name = "Adam",
                                .domain = detail::training_domain,
                                .versions = since,
                                .map = mapping::one_to_one,
                                .inputs = {3, many},
                                .outputs = {1, many}};
  template <class C>
  static status forward(C& c) {
    return detail::optimizer_forward(c, 4, {0, 2, 3});
  }
};
/// Momentum-1: R, T, then X, G, V -> X, V.
struct momentum {
  static constexpr int since[] = {1};
  static constexpr op_info info{.name = "Momentum",
                                .domain = detail::training_domain,
                                .versions = since,
                                .map = mapping::one_to_one,
                                .inputs = {3, many},
                                .outputs = {1, many}};
  template <class C>
  static status forward(C& c) {
    return detail::optimizer_forward(c, 3, {0, 2});
  }
};
/// Gradient-1: one output for each name in attribute xs, shaped as that input.
struct gradient {
  static constexpr int since[] = {1};
  static constexpr op_info info{.name = "Gradient",
                                .domain = detail::training_domain,
                                .versions = since,
                                .map = mapping::barrier,
                                .inputs = {1, many},
                                .outputs = {1, many}};
  template <class C>
  static status forward(C& c) {
    for (std::size_t o = 0; o < c.output_count() && c.has_input(o); ++o) {
      c.copy_type(o, o);
      c.copy_shape(o, o);
    }
    return {};
  }
};

using training_ops = op_set<negative_log_likelihood_loss, softmax_cross_entropy_loss, adagrad, adam,
                            momentum, gradient>;

}  // namespace sod2::ops
