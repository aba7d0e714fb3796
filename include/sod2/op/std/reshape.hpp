// Operators that give the same elements another shape.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>
#include <sod2/shape/rules/reshape.hpp>

namespace sod2::ops {

namespace detail {

/// The axes of Squeeze and Unsqueeze: an attribute before opset 13, an input since. `given` is
/// false when there are none; `known` is false when they are a value that nobody knows yet.
template <class C>
status squeeze_axes(C& c, index_list& axes, bool& given, bool& known) {
  axes.clear();
  given = known = true;
  if (c.version() < 13) {
    SOD2_TRY(only_inputs(c, 1));
    std::span<const std::int64_t> list;
    given = static_cast<bool>(c.attributes()("axes"));
    SOD2_TRY(read(c.attributes(), "axes", list));
    for (std::int64_t a : list) axes.push_back(a);
    return {};
  }
  given = c.has_input(1);
  if (given) known = c.constants(1, axes);
  return {};
}
/// Marks the axes of a shape of `rank` dims.
template <class C>
status mark_axes(C& c, const index_list& axes, std::size_t rank, small_vector<bool, 8>& marked) {
  marked.assign(rank, false);
  for (std::int64_t a : axes) {
    std::size_t at = 0;
    SOD2_TRY(axis_of(c, 0, a, rank, at));
    if (marked[at])
      return error(errc::axis_range, "axis " + std::to_string(a) + " is given twice")
          .at_tensor(c.input_name(0));
    marked[at] = true;
  }
  return {};
}
template <class C>
std::string reshape_text(C& c, std::span<const typename C::value_type> from,
                         std::span<const typename C::value_type> to) {
  std::string text(text_of(errc::element_count));
  text.append(": ")
      .append(c.text(from))
      .append(" has ")
      .append(c.text(rules::element_count(c.domain(), from)));
  return text.append(", ")
      .append(c.text(to))
      .append(" has ")
      .append(c.text(rules::element_count(c.domain(), to)));
}
/// One unknown dim of input 0 from the number of elements of output 0.
template <class C>
status solve_one_dim(C& c) {
  auto& domain = c.domain();
  const auto& out = c.output(0);
  if (!out.rank_known() || !c.rank_known(0)) return {};
  typename C::dim_list mine, theirs = out.dims;
  for (const auto& d : theirs)
    if (!is_known(d)) return {};
  std::size_t missing = c.dims(0).size();
  for (std::size_t i = 0; i < c.dims(0).size(); ++i) {
    if (is_known(c.dims(0)[i])) {
      mine.push_back(c.dims(0)[i]);
    } else {
      if (missing != c.dims(0).size()) return {};
      missing = i;
    }
  }
  if (missing == c.dims(0).size()) return {};
  const auto total = rules::element_count(domain, theirs.view());
  const auto rest = rules::element_count(domain, mine.view());
  auto d = domain.constant(1);
  if (domain.div_exact(total, rest, d)) c.refine(0, missing, d);
  return {};
}

}  // namespace detail

/// Reshape-1 (attribute shape), 5 (input shape), 13, 14 (allowzero), 19, 21, 23, 24, 25: 0 copies
/// the input's dim, one -1 is inferred. An error names both shapes and both numbers of elements.
struct reshape {
  static constexpr int since[] = {1, 5, 13, 14, 19, 21, 23, 24, 25};
  static constexpr op_info info{.name = "Reshape",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::reorganize,
                                .inputs = {1, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    using value_type = typename C::value_type;
    auto& domain = c.domain();
    c.copy_type(0, 0);
    typename C::dim_list target;
    if (c.version() < 5) {
      SOD2_TRY(only_inputs(c, 1));
      std::span<const std::int64_t> shape;
      SOD2_TRY(require(c.attributes(), "shape", shape));
      for (std::int64_t d : shape) target.push_back(domain.constant(d));
    } else {
      if (!c.has_input(1)) return c.fail(errc::arity, "Reshape takes 2 inputs, not 1");
      if (c.pending(1)) return {};
      SOD2_TRY(need_rank(c, 1, 1));
      std::int64_t length = 0;
      if (c.has_value(1)) {
        target.append(c.value(1));
      } else if (list_length(c, 1, length)) {
        target.resize(static_cast<std::size_t>(length), unknown_dim(domain));
      } else {
        c.set_rank_unknown(0);
        return {};
      }
      if (!c.has_value(1)) {
        // Nothing of the values, but their number: bounded by the number of elements.
        if (c.pending(0)) return {};
        const std::int64_t most = c.rank_known(0) ? count_range(c, c.dims(0)).hi : infinity;
        for (std::size_t i = 0; i < target.size(); ++i) target[i] = c.fresh(0, i, {0, most});
        c.set_shape(0, target);
        return {};
      }
    }
    bool allow_zero = false;
    SOD2_TRY(read(c.attributes(), "allowzero", allow_zero));
    std::size_t inferred = 0;
    for (const value_type& d : target) {
      std::int64_t k = 0;
      if (is_known(d) && domain.as_constant(d, k)) {
        if (k < -1)
          return error(errc::value_range,
                       "reshape target " + c.text(target.view()) + " has a negative dim")
              .at_tensor(c.input_name(1));
        if (k == -1 && ++inferred > 1)
          return error(errc::value_range,
                       "reshape target " + c.text(target.view()) + " has more than one -1")
              .at_tensor(c.input_name(1));
      }
    }
    if (!c.rank_known(0)) {
      if (c.pending(0)) return {};
      for (std::size_t i = 0; i < target.size(); ++i) {
        std::int64_t k = 1;
        const bool open = !is_known(target[i]) || (domain.as_constant(target[i], k) &&
                                                   (k == -1 || (k == 0 && !allow_zero)));
        if (open && !is_undefined(target[i])) target[i] = c.fresh(0, i, {0, infinity});
      }
      c.set_shape(0, target);
      return {};
    }
    const auto in = c.dims(0);
    // An element of which nothing is known may be a -1 or a 0: its dim is a new symbol, and the
    // numbers of elements then prove nothing.
    bool all_known = true;
    typename C::dim_list wanted = target;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (is_undefined(wanted[i])) return {};
      if (is_known(wanted[i])) continue;
      all_known = false;
      wanted[i] = c.fresh(0, i, {0, count_range(c, in).hi});
    }
    if (!all_known) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        std::int64_t k = 1;
        if (!domain.as_constant(wanted[i], k)) continue;
        if (k == 0 && !allow_zero) {
          if (i >= in.size())
            return axis_error(c.input_name(0), static_cast<std::int64_t>(i), in.size());
          wanted[i] = in[i];
        } else if (k == -1) {
          wanted[i] = c.fresh(0, i, {0, count_range(c, in).hi});
        }
      }
      c.set_shape(0, wanted);
      return {};
    }
    typename C::dim_list out;
    const errc e = rules::reshape(domain, c, in, wanted.view(), allow_zero, out);
    if (e == errc::axis_range)
      return error(e, "reshape target " + c.text(target.view()) +
                          " copies a dim that the input of rank " + std::to_string(in.size()) +
                          " does not have")
          .at_tensor(c.input_name(0));
    if (e != errc::ok) {
      // The target as it will be, with copied dims in place.
      for (std::size_t i = 0; i < wanted.size() && i < in.size(); ++i) {
        std::int64_t k = 1;
        if (!allow_zero && domain.as_constant(wanted[i], k) && k == 0) wanted[i] = in[i];
      }
      if (inferred == 0)
        return c.fail(e, reshape_text(c, in, wanted.view())).at_tensor(c.input_name(0));
      std::string text(text_of(e));
      text.append(": ")
          .append(c.text(in))
          .append(" has ")
          .append(c.text(rules::element_count(domain, in)));
      return c
          .fail(e, text.append(", which the other dims of ")
                       .append(c.text(wanted.view()))
                       .append(" do not divide"))
          .at_tensor(c.input_name(0));
    }
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = size_or_fresh(c, 0, i, out[i], {0, count_range(c, in).hi});
    c.set_shape(0, out);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    return detail::solve_one_dim(c);
  }
  template <class C>
  static status value(C& c) {
    detail::pass_elements(c, 0, 0);
    return {};
  }
};

/// Flatten-1, 9, 11 (negative axis), 13, 21, 23, 24, 25: [prod(dims before axis), prod(the rest)].
struct flatten {
  static constexpr int since[] = {1, 9, 11, 13, 21, 23, 24, 25};
  static constexpr op_info info{.name = "Flatten", .versions = since, .map = mapping::reorganize};
  template <class C>
  static status forward(C& c) {
    c.copy_type(0, 0);
    if (c.pending(0)) return {};
    if (!c.rank_known(0)) {
      const typename C::dim_list dims = {c.fresh(0, 0, {0, infinity}),
                                         c.fresh(0, 1, {0, infinity})};
      c.set_shape(0, dims);
      return {};
    }
    const auto in = c.dims(0);
    std::int64_t axis = 1;
    SOD2_TRY(detail::read(c.attributes(), "axis", axis));
    std::size_t at = in.size();
    if (axis != static_cast<std::int64_t>(in.size()))
      SOD2_TRY(detail::axis_of(c, 0, axis, in.size(), at));
    typename C::dim_list dims;
    rules::flatten(c.domain(), in, at, dims);
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    return detail::solve_one_dim(c);
  }
  template <class C>
  static status value(C& c) {
    detail::pass_elements(c, 0, 0);
    return {};
  }
};

/// Squeeze-1, 11 (attribute axes), 13 (input axes), 21, 23, 24, 25: drops dims of 1. Without axes
/// the rank follows only where every dim is provably 1 or provably not.
struct squeeze {
  static constexpr int since[] = {1, 11, 13, 21, 23, 24, 25};
  static constexpr op_info info{.name = "Squeeze",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::reorganize,
                                .inputs = {1, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    if (!ranks_known(c, {0})) return {};
    if (c.pending(1)) return {};
    const auto in = c.dims(0);
    const auto one = c.domain().constant(1);
    index_list axes;
    bool given = false, known = false;
    SOD2_TRY(squeeze_axes(c, axes, given, known));
    typename C::dim_list out;
    if (!given) {
      for (const auto& d : in) {
        const tri t = c.domain().decide_eq(d, one);
        if (is_undefined(d)) return {};
        if (t == tri::unknown) {
          c.set_rank_unknown(0);
          return {};
        }
        if (t == tri::no) out.push_back(d);
      }
      c.set_shape(0, out);
      return {};
    }
    if (!known) {
      std::int64_t count = 0;
      if (!list_length(c, 1, count) || static_cast<std::size_t>(count) > in.size()) {
        c.set_rank_unknown(0);
        return {};
      }
      for (std::size_t i = 0; i + static_cast<std::size_t>(count) < in.size(); ++i)
        out.push_back(c.fresh(0, i, {0, count_range(c, in).hi}));
      c.set_shape(0, out);
      return {};
    }
    small_vector<bool, 8> dropped;
    SOD2_TRY(mark_axes(c, axes, in.size(), dropped));
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (dropped[i])
        SOD2_TRY(need_dim(c, 0, i, one));
      else
        out.push_back(in[i]);
    }
    c.set_shape(0, out);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    using namespace detail;
    const auto& out = c.output(0);
    if (!out.rank_known()) return {};
    index_list axes;
    bool given = false, known = false;
    SOD2_TRY(squeeze_axes(c, axes, given, known));
    if (!given || !known) return {};
    const std::size_t rank = out.dims.size() + axes.size();
    small_vector<bool, 8> dropped;
    SOD2_TRY(mark_axes(c, axes, rank, dropped));
    c.refine_rank(0, rank);
    std::size_t from = 0;
    for (std::size_t i = 0; i < rank; ++i)
      c.refine(0, i, dropped[i] ? c.domain().constant(1) : out.dims[from++]);
    return {};
  }
  template <class C>
  static status value(C& c) {
    detail::pass_elements(c, 0, 0);
    return {};
  }
};

/// Unsqueeze-1, 11 (attribute axes), 13 (input axes), 21, 23, 24, 25: inserts dims of 1.
struct unsqueeze {
  static constexpr int since[] = {1, 11, 13, 21, 23, 24, 25};
  static constexpr op_info info{.name = "Unsqueeze",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::reorganize,
                                .inputs = {1, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    if (c.version() < 13 && !c.attributes()("axes")) return no_attribute("axes");
    if (c.version() >= 13 && !c.has_input(1))
      return c.fail(errc::arity, "Unsqueeze takes 2 inputs, not 1");
    if (!ranks_known(c, {0})) return {};
    if (c.pending(1)) return {};
    const auto in = c.dims(0);
    index_list axes;
    bool given = false, known = false;
    SOD2_TRY(squeeze_axes(c, axes, given, known));
    typename C::dim_list out;
    if (!known) {
      std::int64_t count = 0;
      if (!list_length(c, 1, count)) {
        c.set_rank_unknown(0);
        return {};
      }
      for (std::size_t i = 0; i < in.size() + static_cast<std::size_t>(count); ++i)
        out.push_back(c.fresh(0, i, {0, max_of(1, count_range(c, in).hi)}));
      c.set_shape(0, out);
      return {};
    }
    const std::size_t rank = in.size() + axes.size();
    small_vector<bool, 8> added;
    SOD2_TRY(mark_axes(c, axes, rank, added));
    std::size_t from = 0;
    for (std::size_t i = 0; i < rank; ++i)
      out.push_back(added[i] ? c.domain().constant(1) : in[from++]);
    c.set_shape(0, out);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    using namespace detail;
    const auto& out = c.output(0);
    if (!out.rank_known()) return {};
    index_list axes;
    bool given = false, known = false;
    SOD2_TRY(squeeze_axes(c, axes, given, known));
    if (!given || !known || axes.size() > out.dims.size()) return {};
    small_vector<bool, 8> added;
    SOD2_TRY(mark_axes(c, axes, out.dims.size(), added));
    c.refine_rank(0, out.dims.size() - axes.size());
    std::size_t to = 0;
    for (std::size_t i = 0; i < out.dims.size(); ++i)
      if (!added[i]) c.refine(0, to++, out.dims[i]);
    return {};
  }
  template <class C>
  static status value(C& c) {
    detail::pass_elements(c, 0, 0);
    return {};
  }
};

/// Identity-1, 13, 14 (sequences), 16 (optionals), 19, 21, 23, 24, 25: the same fact.
struct identity {
  static constexpr int since[] = {1, 13, 14, 16, 19, 21, 23, 24, 25};
  static constexpr op_info info{.name = "Identity", .versions = since, .map = mapping::one_to_one};
  template <class C>
  static status forward(C& c) {
    if (is_container(c.input(0).kind)) {
      c.output(0) = c.input(0);
      return {};
    }
    return detail::same_shape_and_type(c);
  }
  template <class C>
  static status backward(C& c) {
    return c.output(0).kind == fact_kind::tensor ? detail::same_shape_back(c) : status{};
  }
  template <class C>
  static status value(C& c) {
    if (c.input(0).kind == fact_kind::tensor) detail::pass_elements(c, 0, 0);
    return {};
  }
};

/// Dropout-1, 6, 7, 10, 12 (ratio and training_mode as inputs), 13, 22: at inference the identity;
/// the mask is boolean (of the data's type before opset 10).
struct dropout {
  static constexpr int since[] = {1, 6, 7, 10, 12, 13, 22};
  static constexpr op_info info{.name = "Dropout",
                                .versions = since,
                                .map = mapping::one_to_one,
                                .inputs = {1, 3},
                                .outputs = {1, 2},
                                .deterministic = false};
  template <class C>
  static status forward(C& c) {
    if (c.output_count() > 1) {
      c.set_type(1, c.version() >= 10 ? dtype::boolean : c.input(0).type);
      c.copy_shape(0, 1);
    }
    return detail::same_shape_and_type(c);
  }
  template <class C>
  static status backward(C& c) {
    return detail::same_shape_back(c);
  }
};

using reshape_ops = op_set<reshape, flatten, squeeze, unsqueeze, identity, dropout>;

}  // namespace sod2::ops
