// Reductions, arg-reductions, scans along an axis, and TopK.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/elements.hpp>
#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops {

namespace detail {

/// What a reduction reduces.
struct reduced_axes {
  index_list axes;
  bool keep = true;   // reduced axes stay with size 1
  bool all = false;   // no axes given
  bool none = false;  // no axes given, and that means nothing is reduced
  bool known = true;  // false: the axes are a value that is not known
};

/// `input_since`: the first version with the axes as an input.
template <class C>
status read_reduction(C& c, int input_since, reduced_axes& out) {
  SOD2_TRY(read(c.attributes(), "keepdims", out.keep));
  if (c.version() < input_since) {
    SOD2_TRY(only_inputs(c, 1));
    std::span<const std::int64_t> given;
    SOD2_TRY(read(c.attributes(), "axes", given));
    for (std::int64_t a : given) out.axes.push_back(a);
  } else if (c.has_input(1)) {
    out.known = c.constants(1, out.axes);
    if (!out.known) return {};
  }
  bool noop = false;
  SOD2_TRY(read(c.attributes(), "noop_with_empty_axes", noop));
  if (out.axes.empty()) (noop ? out.none : out.all) = true;
  return {};
}
template <class C>
status mark_reduced(C& c, const reduced_axes& r, std::size_t rank, small_vector<bool, 8>& reduced) {
  reduced.assign(rank, r.all);
  for (std::int64_t a : r.axes) {
    std::size_t at = 0;
    SOD2_TRY(axis_of(c, 0, a, rank, at));
    reduced[at] = true;
  }
  return {};
}
template <class C>
status reduce_forward(C& c, const reduced_axes& r) {
  if (c.pending(0) || c.pending(1)) return {};
  if (!c.rank_known(0)) {
    if (r.known && r.all && !r.keep)
      c.set_rank(0, 0);
    else
      c.set_rank_unknown(0);
    return {};
  }
  const auto in = c.dims(0);
  const auto one = c.domain().constant(1);
  typename C::dim_list dims;
  if (!r.known) {
    std::int64_t count = 0;
    if (r.keep) {
      for (std::size_t i = 0; i < in.size(); ++i) {
        const interval range = is_known(in[i]) ? c.bounds(in[i]) : interval{0, infinity};
        dims.push_back(c.domain().decide_eq(in[i], one) == tri::yes
                           ? one
                           : c.fresh(0, i, {min_of(range.lo, 1), max_of(range.hi, 1)}));
      }
      c.set_shape(0, dims);
    } else if (list_length(c, 1, count) && count > 0 &&
               static_cast<std::size_t>(count) <= in.size()) {
      for (std::size_t i = 0; i + static_cast<std::size_t>(count) < in.size(); ++i)
        dims.push_back(c.fresh(0, i, {0, infinity}));
      c.set_shape(0, dims);
    } else {
      c.set_rank_unknown(0);
    }
    return {};
  }
  small_vector<bool, 8> reduced;
  SOD2_TRY(mark_reduced(c, r, in.size(), reduced));
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!reduced[i])
      dims.push_back(in[i]);
    else if (r.keep)
      dims.push_back(one);
  }
  c.set_shape(0, dims);
  return {};
}
/// The dims that are not reduced.
template <class C>
status reduce_back(C& c, const reduced_axes& r) {
  const auto& out = c.output(0);
  if (!out.rank_known() || !r.known || (r.all && !r.keep)) return {};
  const std::size_t rank = r.keep ? out.dims.size() : out.dims.size() + r.axes.size();
  small_vector<bool, 8> reduced;
  SOD2_TRY(mark_reduced(c, r, rank, reduced));
  c.refine_rank(0, rank);
  if (c.rank_known(0) && c.dims(0).size() != rank) return {};
  std::size_t from = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!reduced[i] && from < out.dims.size()) c.refine(0, i, out.dims[from]);
    if (!reduced[i] || r.keep) ++from;
  }
  return {};
}
template <class C>
status reduce_value(C& c, const reduced_axes& r, element_op op) {
  index_list dims, kept, indices;
  if (!r.known || !c.has_value(0) || !concrete_dims(c, 0, dims)) return {};
  small_vector<bool, 8> reduced;
  SOD2_TRY(mark_reduced(c, r, dims.size(), reduced));
  // Where each element of the input goes: reduced axes have stride 0.
  index_list strides(dims.size());
  std::int64_t step = 1;
  for (std::size_t k = dims.size(); k-- > 0;)
    if (!reduced[k]) {
      strides[k] = step;
      step *= dims[k];
    }
  if (!tracked(step)) return {};
  const auto in = c.value(0);
  if (in.empty()) return {};  // the neutral element depends on the type
  using value_type = typename C::value_type;
  strided_indices(dims, strides, 0, indices);
  small_vector<value_type, 8> acc(static_cast<std::size_t>(step));
  small_vector<bool, 8> started(static_cast<std::size_t>(step), false),
      lost(static_cast<std::size_t>(step), false);
  for (std::size_t n = 0; n < indices.size(); ++n) {
    const std::size_t to = static_cast<std::size_t>(indices[n]);
    if (!started[to]) {
      started[to] = true;
      acc[to] = in[n];
      lost[to] = !is_known(in[n]);
    } else if (!lost[to]) {
      value_type joined = acc[to];
      lost[to] = !element(c.domain(), op, c.input(0).type, acc[to], in[n], joined);
      acc[to] = joined;
    }
  }
  element_list<C> elements(c);
  for (std::size_t n = 0; n < acc.size(); ++n) {
    if (lost[n] || !started[n])
      elements.push_unknown();
    else
      elements.push(acc[n]);
  }
  elements.commit(0);
  return {};
}

/// Reductions of the input's type.
template <int InputSince>
struct reduction {
  template <class C>
  static status forward(C& c) {
    c.copy_type(0, 0);
    reduced_axes r;
    SOD2_TRY(read_reduction(c, InputSince, r));
    return reduce_forward(c, r);
  }
  template <class C>
  static status backward(C& c) {
    reduced_axes r;
    SOD2_TRY(read_reduction(c, InputSince, r));
    return reduce_back(c, r);
  }
};
template <class Op, int InputSince>
struct reduction_with_value : reduction<InputSince> {
  template <class C>
  static status value(C& c) {
    reduced_axes r;
    SOD2_TRY(read_reduction(c, InputSince, r));
    return reduce_value(c, r, Op::element);
  }
};

/// ArgMax and ArgMin: one axis, int64.
struct arg_reduction {
  template <class C>
  static status read_axis(C& c, reduced_axes& r) {
    std::int64_t axis = 0;
    SOD2_TRY(read(c.attributes(), "axis", axis));
    SOD2_TRY(read(c.attributes(), "keepdims", r.keep));
    r.axes.push_back(axis);
    return {};
  }
  template <class C>
  static status forward(C& c) {
    c.set_type(0, dtype::i64);
    reduced_axes r;
    SOD2_TRY(read_axis(c, r));
    return reduce_forward(c, r);
  }
  template <class C>
  static status backward(C& c) {
    reduced_axes r;
    SOD2_TRY(read_axis(c, r));
    return reduce_back(c, r);
  }
};

}  // namespace detail

/// ReduceL1-1, 11, 13, 18 (axes as input).
struct reduce_l1 : detail::reduction<18> {
  static constexpr int since[] = {1, 11, 13, 18};
  static constexpr op_info info{
      .name = "ReduceL1", .versions = since, .base = dynamism::isvdos, .inputs = {1, 2}};
};
/// ReduceL2-1, 11, 13, 18 (axes as input).
struct reduce_l2 : detail::reduction<18> {
  static constexpr int since[] = {1, 11, 13, 18};
  static constexpr op_info info{
      .name = "ReduceL2", .versions = since, .base = dynamism::isvdos, .inputs = {1, 2}};
};
/// ReduceLogSum-1, 11, 13, 18 (axes as input), 28.
struct reduce_log_sum : detail::reduction<18> {
  static constexpr int since[] = {1, 11, 13, 18, 28};
  static constexpr op_info info{
      .name = "ReduceLogSum", .versions = since, .base = dynamism::isvdos, .inputs = {1, 2}};
};
/// ReduceLogSumExp-1, 11, 13, 18 (axes as input), 28.
struct reduce_log_sum_exp : detail::reduction<18> {
  static constexpr int since[] = {1, 11, 13, 18, 28};
  static constexpr op_info info{
      .name = "ReduceLogSumExp", .versions = since, .base = dynamism::isvdos, .inputs = {1, 2}};
};
/// ReduceMax-1, 11, 12, 13, 18 (axes as input), 20.
struct reduce_max : detail::reduction_with_value<reduce_max, 18> {
  static constexpr int since[] = {1, 11, 12, 13, 18, 20};
  static constexpr op_info info{
      .name = "ReduceMax", .versions = since, .base = dynamism::isvdos, .inputs = {1, 2}};
  static constexpr auto element = detail::element_op::max;
};
/// ReduceMean-1, 11, 13, 18 (axes as input).
struct reduce_mean : detail::reduction<18> {
  static constexpr int since[] = {1, 11, 13, 18};
  static constexpr op_info info{
      .name = "ReduceMean", .versions = since, .base = dynamism::isvdos, .inputs = {1, 2}};
};
/// ReduceMin-1, 11, 12, 13, 18 (axes as input), 20.
struct reduce_min : detail::reduction_with_value<reduce_min, 18> {
  static constexpr int since[] = {1, 11, 12, 13, 18, 20};
  static constexpr op_info info{
      .name = "ReduceMin", .versions = since, .base = dynamism::isvdos, .inputs = {1, 2}};
  static constexpr auto element = detail::element_op::min;
};
/// ReduceProd-1, 11, 13, 18 (axes as input).
struct reduce_prod : detail::reduction_with_value<reduce_prod, 18> {
  static constexpr int since[] = {1, 11, 13, 18};
  static constexpr op_info info{
      .name = "ReduceProd", .versions = since, .base = dynamism::isvdos, .inputs = {1, 2}};
  static constexpr auto element = detail::element_op::mul;
};
/// ReduceSum-1, 11, 13 (axes as input).
struct reduce_sum : detail::reduction_with_value<reduce_sum, 13> {
  static constexpr int since[] = {1, 11, 13};
  static constexpr op_info info{
      .name = "ReduceSum", .versions = since, .base = dynamism::isvdos, .inputs = {1, 2}};
  static constexpr auto element = detail::element_op::add;
};
/// ReduceSumSquare-1, 11, 13, 18 (axes as input).
struct reduce_sum_square : detail::reduction<18> {
  static constexpr int since[] = {1, 11, 13, 18};
  static constexpr op_info info{
      .name = "ReduceSumSquare", .versions = since, .base = dynamism::isvdos, .inputs = {1, 2}};
};

/// ArgMax-1, 11, 12 (select_last_index), 13: index of the largest along one axis.
struct arg_max : detail::arg_reduction {
  static constexpr int since[] = {1, 11, 12, 13};
  static constexpr op_info info{.name = "ArgMax", .versions = since};
};
/// ArgMin-1, 11, 12 (select_last_index), 13: index of the smallest along one axis.
struct arg_min : detail::arg_reduction {
  static constexpr int since[] = {1, 11, 12, 13};
  static constexpr op_info info{.name = "ArgMin", .versions = since};
};

/// CumSum-11, 14: the shape of x; the axis is a value that does not change it.
struct cum_sum : detail::keeps_shape {
  static constexpr int since[] = {11, 14};
  static constexpr op_info info{.name = "CumSum", .versions = since, .inputs = {2, 2}};
  template <class C>
  static status value(C& c) {
    using namespace detail;
    index_list dims, axis;
    bool exclusive = false, reverse = false;
    SOD2_TRY(read(c.attributes(), "exclusive", exclusive));
    SOD2_TRY(read(c.attributes(), "reverse", reverse));
    if (!c.has_value(0) || !concrete_dims(c, 0, dims) || dims.size() != 1 ||
        !c.constants(1, axis) || axis.size() != 1 || !is_integer(c.input(0).type))
      return {};
    const auto in = c.value(0);
    small_vector<typename C::value_type, 8> out(in);
    auto sum = c.domain().constant(0);
    for (std::size_t n = 0; n < in.size(); ++n) {
      const std::size_t at = reverse ? in.size() - 1 - n : n;
      const auto before = sum;
      sum = c.domain().add(sum, in[at]);
      out[at] = exclusive ? before : sum;
    }
    c.set_value(0, out);
    return {};
  }
};
/// CumProd-26: the shape of x.
struct cum_prod : detail::keeps_shape {
  static constexpr int since[] = {26};
  static constexpr op_info info{.name = "CumProd", .versions = since, .inputs = {2, 2}};
};

/// TopK-1 (attribute k), 10 (input K), 11 (largest, sorted), 24: one axis gets K; Values and
/// Indices.
struct top_k {
  static constexpr int since[] = {1, 10, 11, 24};
  static constexpr op_info info{.name = "TopK",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .inputs = {1, 2},
                                .outputs = {1, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    auto& domain = c.domain();
    c.copy_type(0, 0);
    if (c.output_count() > 1) c.set_type(1, dtype::i64);
    if (!ranks_known(c, {0})) return {};
    if (c.pending(1)) return {};
    typename C::dim_list dims = c.input(0).dims;
    std::int64_t axis = -1, fixed = 0;
    SOD2_TRY(read(c.attributes(), "axis", axis));
    std::size_t at = 0;
    SOD2_TRY(axis_of(c, 0, axis, dims.size(), at));
    const auto size = dims[at];
    if (c.version() < 10) {
      SOD2_TRY(detail::only_inputs(c, 1));
      SOD2_TRY(require(c.attributes(), "k", fixed));
      dims[at] = domain.constant(fixed);
    } else {
      if (!c.has_input(1)) return c.fail(errc::arity, "TopK takes 2 inputs, not 1");
      const interval range{0, upper_bound(c, size)};
      dims[at] = c.has_value(1) && c.value(1).size() == 1
                     ? size_or_fresh(c, 0, at, c.value(1)[0], range)
                     : c.fresh(0, at, range);
    }
    if (domain.decide_le(dims[at], size) == tri::no)
      return c.fail(errc::value_range, 0, static_cast<int>(at), c.text(dims[at]), c.text(size));
    for (std::size_t o = 0; o < c.output_count(); ++o) c.set_shape(o, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    const auto& out = c.output(0);
    if (!out.rank_known() || out.dims.empty()) return {};
    std::int64_t axis = -1;
    SOD2_TRY(detail::read(c.attributes(), "axis", axis));
    std::size_t at = 0;
    SOD2_TRY(detail::axis_of(c, 0, axis, out.dims.size(), at));
    c.refine_rank(0, out.dims.size());
    for (std::size_t i = 0; i < out.dims.size(); ++i)
      if (i != at) c.refine(0, i, out.dims[i]);
    return {};
  }
};

using reduction_ops = op_set<reduce_l1, reduce_l2, reduce_log_sum, reduce_log_sum_exp, reduce_max,
                             reduce_mean, reduce_min, reduce_prod, reduce_sum, reduce_sum_square,
                             arg_max, arg_min, cum_sum, cum_prod, top_k>;

}  // namespace sod2::ops
