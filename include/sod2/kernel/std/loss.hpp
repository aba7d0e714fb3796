// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#pragma once

#include <cmath>
#include <cstdint>

#include <sod2/kernel/std/reduction.hpp>

namespace sod2::kernel_detail {

struct loss_state {
  enum class reduce : std::uint8_t { none, sum, mean } reduction = reduce::mean;
  bool ignores = false;
  i64 ignored = 0;
};
inline result<kernel_state> prepare_loss(const prepare_args& args) {
  if (args.inputs.size() < 2) return error(errc::arity, "a loss needs scores and labels");
  const dtype type = input_type(args, 0), labels = input_type(args, 1);
  if (!is_float(type) || (labels != dtype::i32 && labels != dtype::i64) ||
      (has_input(args, 2) && input_type(args, 2) != type))
    return error(errc::type_mismatch, "a loss takes floats and integer labels");
  loss_state s;
  const std::string_view reduction = args.attributes.string("reduction", "mean");
  if (reduction == "none")
    s.reduction = loss_state::reduce::none;
  else if (reduction == "sum")
    s.reduction = loss_state::reduce::sum;
  else if (reduction != "mean")
    return error(errc::bad_attribute, "reduction is none, sum or mean");
  const attribute_view ignored = args.attributes("ignore_index");
  s.ignores = ignored.kind == attribute_kind::integer;
  s.ignored = ignored.integer;
  return own(new (std::nothrow) loss_state(s));
}

/// Scores (N, C, D...), labels (N, D...), weights (C). With `Softmax` scores become log
/// probabilities first (output 1). The mean is weighted; sums run in one order, in double.
template <bool Softmax>
errc run_loss(const kernel_args& args) {
  const auto& s = state_of<loss_state>(args);
  const tensor_view &x = args.inputs[0], &labels = args.inputs[1], &y = args.outputs[0];
  if (x.rank < 2) return errc::rank_mismatch;
  const i64 classes = x.dims[1], inner = product_of(x, 2, x.rank), rows = x.dims[0] * inner;
  const bool weighted = has_input(args, 2);
  if (labels.count() != rows || (weighted && args.inputs[2].count() != classes))
    return errc::dim_mismatch;
  for (i64 r = 0; r < rows; ++r) {
    const i64 label = integer_at(labels, r);
    if (!(s.ignores && label == s.ignored) && (label < 0 || label >= classes))
      return errc::index_range;
  }
  return with_real(x.type, [&]<class T>() {
    T* const logs = Softmax && args.outputs.size() > 1 && args.outputs[1].present()
                        ? args.outputs[1].template as<T>()
                        : nullptr;
    double total = 0, weights = 0;
    for (i64 r = 0; r < rows; ++r) {
      const i64 at = r / inner * classes * inner + r % inner;
      const auto score = [&](i64 c) {
        return static_cast<double>(widen(x.as<const T>()[at + c * inner]));
      };
      double shift = 0;  // log of the sum of exponentials
      if constexpr (Softmax) {
        double top = -INFINITY, sum = 0;
        for (i64 c = 0; c < classes; ++c) top = score(c) > top ? score(c) : top;
        for (i64 c = 0; c < classes; ++c) sum += std::exp(score(c) - top);
        shift = top + std::log(sum);
        if (logs != nullptr)
          for (i64 c = 0; c < classes; ++c)
            logs[at + c * inner] = convert_value<T>(score(c) - shift);
      }
      const i64 label = integer_at(labels, r);
      const bool ignored = s.ignores && label == s.ignored;
      const double weight =
          ignored    ? 0
          : weighted ? static_cast<double>(widen(args.inputs[2].template as<const T>()[label]))
                     : 1;
      const double loss = ignored ? 0 : (shift - score(label)) * weight;
      if (s.reduction == loss_state::reduce::none) y.as<T>()[r] = convert_value<T>(loss);
      total += loss;
      weights += weight;
    }
    if (s.reduction == loss_state::reduce::sum) y.as<T>()[0] = convert_value<T>(total);
    if (s.reduction == loss_state::reduce::mean) y.as<T>()[0] = convert_value<T>(total / weights);
  });
}

}  // namespace sod2::kernel_detail
