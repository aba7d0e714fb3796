// Operators that move elements: transpose, join, cut, gather, scatter, pad, repeat.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/elements.hpp>
#include <sod2/op/std/detail/support.hpp>
#include <sod2/shape/rules/slicing.hpp>

namespace sod2::ops {

namespace detail {
/// Output 0 has the shape of input 0, and inputs j and k have one shape.
template <class C>
status same_dims(C& c, std::size_t j, std::size_t k) {
  if (!c.rank_known(j) || !c.rank_known(k)) return {};
  SOD2_TRY(need_rank(c, k, c.dims(j).size()));
  for (std::size_t i = 0; i < c.dims(j).size(); ++i) SOD2_TRY(need_dim(c, k, i, c.dims(j)[i]));
  return {};
}
/// A constant index into an axis of `size`, negative from the end; false when out of range or not
/// constant.
template <class C>
bool constant_index(C& c, const typename C::value_type& v, std::int64_t size, std::int64_t& out) {
  if (!is_known(v) || !c.domain().as_constant(v, out)) return false;
  if (out < 0) out += size;
  return out >= 0 && out < size;
}
}  // namespace detail

/// Transpose-1, 13, 21, 23, 24, 25: dims permuted by perm, reversed without it.
struct transpose {
  static constexpr int since[] = {1, 13, 21, 23, 24, 25};
  static constexpr op_info info{.name = "Transpose", .versions = since, .map = mapping::shuffle};
  template <class C>
  static status permutation(C& c, std::size_t rank, detail::index_list& perm) {
    std::span<const std::int64_t> given;
    SOD2_TRY(detail::read(c.attributes(), "perm", given));
    perm.clear();
    if (!c.attributes()("perm")) {
      for (std::size_t i = rank; i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
      return {};
    }
    if (given.size() != rank)
      return detail::rank_error(c.input_name(0), rank,
                                std::to_string(given.size()) + " as perm has it");
    small_vector<bool, 8> seen(rank, false);
    for (std::int64_t a : given) {
      std::size_t at = 0;
      if (!detail::wrap_axis(a, rank, at) || seen[at])
        return detail::wrong_attribute("perm", "a permutation of the axes of rank " +
                                                   std::to_string(rank) + ", not " +
                                                   detail::list_text(given))
            .at_tensor(c.input_name(0));
      seen[at] = true;
      perm.push_back(static_cast<std::int64_t>(at));
    }
    return {};
  }
  template <class C>
  static status forward(C& c) {
    c.copy_type(0, 0);
    if (!c.rank_known(0)) {
      if (c.pending(0)) return {};
      if (const attribute_view perm = c.attributes()("perm"); perm)
        c.set_rank(0, perm.integers.size());
      else
        c.set_rank_unknown(0);
      return {};
    }
    detail::index_list perm;
    SOD2_TRY(permutation(c, c.dims(0).size(), perm));
    typename C::dim_list dims;
    for (std::int64_t a : perm) dims.push_back(c.dims(0)[static_cast<std::size_t>(a)]);
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    const auto& out = c.output(0);
    if (!out.rank_known()) return {};
    detail::index_list perm;
    SOD2_TRY(permutation(c, out.dims.size(), perm));
    c.refine_rank(0, out.dims.size());
    for (std::size_t i = 0; i < perm.size(); ++i)
      c.refine(0, static_cast<std::size_t>(perm[i]), out.dims[i]);
    return {};
  }
  template <class C>
  static status value(C& c) {
    detail::index_list dims, perm, to, strides, at;
    if (!c.has_value(0) || !detail::concrete_dims(c, 0, dims)) return {};
    SOD2_TRY(permutation(c, dims.size(), perm));
    const detail::index_list dense = detail::dense_strides(dims);
    for (std::int64_t a : perm) {
      to.push_back(dims[static_cast<std::size_t>(a)]);
      strides.push_back(dense[static_cast<std::size_t>(a)]);
    }
    detail::strided_indices(to, strides, 0, at);
    detail::pick_elements(c, 0, at.view(), 0);
    return {};
  }
};

/// Concat-1 (axis 1 by default), 4, 11, 13: sums the dims of one axis, the others agree.
struct concat {
  static constexpr int since[] = {1, 4, 11, 13};
  static constexpr op_info info{
      .name = "Concat", .versions = since, .map = mapping::one_to_one, .inputs = {1, many}};
  template <class C>
  static status axis(C& c, std::int64_t& out) {
    out = 1;
    return c.version() < 4 ? detail::read(c.attributes(), "axis", out)
                           : detail::require(c.attributes(), "axis", out);
  }
  template <class C>
  static status forward(C& c) {
    auto& domain = c.domain();
    std::int64_t given = 0;
    SOD2_TRY(axis(c, given));
    for (std::size_t i = 1; i < c.input_count(); ++i) SOD2_TRY(detail::need_same_type(c, 0, i));
    c.copy_type(0, 0);
    bool pending = false, all = true;
    std::size_t rank = 0, like = c.input_count();
    for (std::size_t i = 0; i < c.input_count(); ++i) {
      pending = pending || c.pending(i);
      all = all && c.rank_known(i);
      if (!c.rank_known(i)) continue;
      if (like == c.input_count()) {
        like = i;
        rank = c.dims(i).size();
      }
      SOD2_TRY(detail::need_rank(c, i, rank));
    }
    if (pending) return {};
    if (like == c.input_count()) {
      c.set_rank_unknown(0);
      return {};
    }
    std::size_t at = 0;
    SOD2_TRY(detail::axis_of(c, like, given, rank, at));
    typename C::dim_list dims(rank, unknown_dim(domain));
    auto sum = domain.constant(0);
    for (std::size_t i = 0; i < c.input_count(); ++i) {
      if (!c.rank_known(i)) continue;
      const auto in = c.dims(i);
      sum = domain.add(sum, in[at]);
      for (std::size_t k = 0; k < rank; ++k) {
        if (k == at) continue;
        if (i == like || !is_known(dims[k]))
          dims[k] = in[k];
        else
          SOD2_TRY(detail::need_dim(c, i, k, dims[k]));
      }
    }
    dims[at] = all ? sum : c.fresh(0, at, {0, infinity});
    c.set_shape(0, dims);
    return {};
  }
  /// All other dims are the output's; one missing dim on the axis is the rest of the output's.
  template <class C>
  static status backward(C& c) {
    auto& domain = c.domain();
    const auto& out = c.output(0);
    if (!out.rank_known()) return {};
    std::int64_t given = 0;
    SOD2_TRY(axis(c, given));
    std::size_t at = 0;
    const std::size_t rank = out.dims.size();
    SOD2_TRY(detail::axis_of(c, 0, given, rank, at));
    std::size_t missing = c.input_count(), holes = 0;
    auto rest = out.dims[at];
    for (std::size_t i = 0; i < c.input_count(); ++i) {
      c.refine_rank(i, rank);
      for (std::size_t k = 0; k < rank; ++k)
        if (k != at) c.refine(i, k, out.dims[k]);
      if (c.rank_known(i) && c.dims(i).size() == rank && is_known(c.dims(i)[at]))
        rest = domain.sub(rest, c.dims(i)[at]);
      else
        missing = i, ++holes;
    }
    if (holes == 1) c.refine(missing, at, rest);
    return {};
  }
  template <class C>
  static status value(C& c) {
    using namespace detail;
    std::int64_t given = 0;
    SOD2_TRY(axis(c, given));
    std::size_t at = 0;
    if (!c.rank_known(0)) return {};
    SOD2_TRY(axis_of(c, 0, given, c.dims(0).size(), at));
    // Inputs that are not tracked leave unknown elements, if their sizes are known.
    index_list dims, joined;
    bool any = false;
    for (std::size_t i = 0; i < c.input_count(); ++i) {
      if (!concrete_dims(c, i, dims) || at >= dims.size()) return {};
      any = any || c.has_value(i);
      if (i == 0)
        joined = dims;
      else
        joined[at] += dims[at];
    }
    if (!any || !tracked(product_of(joined))) return {};
    std::int64_t outer = 1, inner = 1;
    for (std::size_t k = 0; k < at; ++k) outer *= joined[k];
    for (std::size_t k = at + 1; k < joined.size(); ++k) inner *= joined[k];
    element_list<C> elements(c);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::size_t i = 0; i < c.input_count(); ++i) {
        if (!concrete_dims(c, i, dims)) return {};
        const std::int64_t run = dims[at] * inner;
        for (std::int64_t k = 0; k < run; ++k) {
          if (c.has_value(i))
            elements.push(c.value(i)[static_cast<std::size_t>(o * run + k)]);
          else
            elements.push_unknown();
        }
      }
    elements.commit(0);
    return {};
  }
};

/// Split-1, 2, 11 (attribute split), 13 (input split), 18 (num_outputs): equal parts without it;
/// since 18 the last part may be smaller.
struct split {
  static constexpr int since[] = {1, 2, 11, 13, 18};
  static constexpr op_info info{.name = "Split",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::one_to_one,
                                .inputs = {1, 2},
                                .outputs = {1, many}};
  /// Sizes of the parts; `known` is false when they are a value that nobody knows.
  template <class C>
  static status parts(C& c, std::size_t at, typename C::dim_list& sizes, bool& known) {
    using namespace detail;
    auto& domain = c.domain();
    const std::size_t count = c.output_count();
    sizes.clear();
    known = true;
    const bool by_input = (c.version() >= 13 || c.version() == 1) && c.has_input(1);
    std::span<const std::int64_t> given;
    if (c.version() < 13 && !by_input) SOD2_TRY(read(c.attributes(), "split", given));
    if (by_input) {
      known = c.has_value(1);
      if (known)
        for (const auto& d : c.value(1)) sizes.push_back(d);
    } else {
      for (std::int64_t k : given) sizes.push_back(domain.constant(k));
    }
    if (!known) return {};
    const auto total = c.dims(0)[at];
    if (by_input || !given.empty()) {
      if (sizes.size() != count)
        return error(errc::arity, "split has " + std::to_string(sizes.size()) +
                                      " parts, the node has " + std::to_string(count) + " outputs")
            .at_tensor(c.input_name(by_input ? 1 : 0));
      auto sum = domain.constant(0);
      for (const auto& d : sizes) sum = domain.add(sum, d);
      if (!c.require_eq(total, sum, errc::dim_mismatch))
        return c.fail(errc::dim_mismatch, 0, static_cast<int>(at), c.text(total), c.text(sum));
      return {};
    }
    std::int64_t n = static_cast<std::int64_t>(count);
    if (c.version() >= 18) {
      SOD2_TRY(read(c.attributes(), "num_outputs", n));
      if (n != static_cast<std::int64_t>(count))
        return wrong_attribute("num_outputs", "the number of outputs");
      const auto chunk = domain.floordiv(domain.add(total, domain.constant(n - 1)), n);
      for (std::int64_t i = 0; i + 1 < n; ++i) sizes.push_back(chunk);
      sizes.push_back(domain.sub(total, domain.mul(chunk, domain.constant(n - 1))));
      return {};
    }
    const auto chunk = domain.floordiv(total, n);
    if (!c.require_eq(total, domain.mul(chunk, domain.constant(n)), errc::divisibility))
      return c.fail(errc::divisibility, 0, static_cast<int>(at), c.text(total),
                    std::to_string(n) + " equal parts");
    for (std::int64_t i = 0; i < n; ++i) sizes.push_back(chunk);
    return {};
  }
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    for (std::size_t o = 0; o < c.output_count(); ++o) c.copy_type(0, o);
    if (!ranks_known(c, {0})) return {};
    if (c.pending(1)) return {};
    std::int64_t axis = 0;
    SOD2_TRY(read(c.attributes(), "axis", axis));
    std::size_t at = 0;
    SOD2_TRY(axis_of(c, 0, axis, c.dims(0).size(), at));
    typename C::dim_list sizes, dims = c.input(0).dims;
    bool known = false;
    SOD2_TRY(parts(c, at, sizes, known));
    const interval range{0, upper_bound(c, dims[at])};
    for (std::size_t o = 0; o < c.output_count(); ++o) {
      dims[at] = known ? size_or_fresh(c, o, at, sizes[o], range) : c.fresh(o, at, range);
      c.set_shape(o, dims);
    }
    return {};
  }
  template <class C>
  static status backward(C& c) {
    auto& domain = c.domain();
    std::int64_t axis = 0;
    SOD2_TRY(detail::read(c.attributes(), "axis", axis));
    std::size_t rank = 0;
    for (std::size_t o = 0; o < c.output_count(); ++o)
      if (c.output(o).rank_known()) rank = c.output(o).dims.size();
    if (rank == 0) return {};
    std::size_t at = 0;
    SOD2_TRY(detail::axis_of(c, 0, axis, rank, at));
    c.refine_rank(0, rank);
    auto sum = domain.constant(0);
    bool all = true;
    for (std::size_t o = 0; o < c.output_count(); ++o) {
      const auto& out = c.output(o);
      if (!out.rank_known() || out.dims.size() != rank) {
        all = false;
        continue;
      }
      sum = domain.add(sum, out.dims[at]);
      for (std::size_t k = 0; k < rank; ++k)
        if (k != at) c.refine(0, k, out.dims[k]);
    }
    if (all) c.refine(0, at, sum);
    return {};
  }
  template <class C>
  static status value(C& c) {
    using namespace detail;
    index_list dims, indices;
    if (!c.has_value(0) || !concrete_dims(c, 0, dims)) return {};
    std::int64_t axis = 0, first = 0;
    SOD2_TRY(read(c.attributes(), "axis", axis));
    std::size_t at = 0;
    SOD2_TRY(axis_of(c, 0, axis, dims.size(), at));
    const index_list strides = dense_strides(dims);
    typename C::dim_list sizes;
    bool known = false;
    SOD2_TRY(parts(c, at, sizes, known));
    for (std::size_t o = 0; known && o < c.output_count(); ++o) {
      std::int64_t part = 0;
      if (!is_known(sizes[o]) || !c.domain().as_constant(sizes[o], part)) return {};
      dims[at] = part;
      strided_indices(dims, strides, first * strides[at], indices);
      pick_elements(c, 0, indices.view(), o);
      first += part;
    }
    return {};
  }
};

/// Slice-1 (attributes), 10 (inputs, steps), 11, 13: clamps as numpy does. Exact for every start
/// and end that is an expression, whatever its sign; bounded by the dim where it is not known at
/// all.
struct slice {
  static constexpr int since[] = {1, 10, 11, 13};
  static constexpr op_info info{.name = "Slice",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::one_to_one,
                                .inputs = {1, 5}};
  template <class V>
  struct cut {
    V start{}, end{};
    std::int64_t step = 1;
    bool sliced = false, known = false;
  };
  template <class C>
  using cuts = small_vector<cut<typename C::value_type>, 8>;

  /// Per axis what is cut; `axes_known` is false when any axis may be.
  template <class C>
  static status read_cuts(C& c, cuts<C>& out, bool& axes_known) {
    using namespace detail;
    using value_type = typename C::value_type;
    auto& domain = c.domain();
    const std::size_t rank = c.dims(0).size();
    out.clear();
    out.resize(rank);
    axes_known = true;
    index_list axes, steps;
    typename C::dim_list starts, ends;
    bool starts_known = true, ends_known = true, steps_known = true;
    if (c.version() < 10) {
      SOD2_TRY(only_inputs(c, 1));
      std::span<const std::int64_t> s, e, a;
      SOD2_TRY(require(c.attributes(), "starts", s));
      SOD2_TRY(require(c.attributes(), "ends", e));
      SOD2_TRY(read(c.attributes(), "axes", a));
      for (std::int64_t k : s) starts.push_back(domain.constant(k));
      for (std::int64_t k : e) ends.push_back(domain.constant(k));
      for (std::size_t i = 0; i < s.size(); ++i)
        axes.push_back(c.attributes()("axes") ? (i < a.size() ? a[i] : -1)
                                              : static_cast<std::int64_t>(i));
      steps.assign(s.size(), 1);
    } else {
      if (!c.has_input(1) || !c.has_input(2))
        return c.fail(errc::arity, "Slice takes 3 to 5 inputs");
      std::size_t count = 0;
      bool count_known = false;
      auto read_vector = [&](std::size_t i, typename C::dim_list& to, bool& known) {
        known = c.has_value(i);
        if (known) to.append(c.value(i));
        std::int64_t length = 0;
        if (known) {
          count = to.size();
          count_known = true;
        } else if (list_length(c, i, length)) {
          count = static_cast<std::size_t>(length);
          count_known = true;
        }
      };
      read_vector(1, starts, starts_known);
      read_vector(2, ends, ends_known);
      if (c.has_input(3)) {
        axes_known = c.constants(3, axes);
      } else if (count_known) {
        for (std::size_t i = 0; i < count; ++i) axes.push_back(static_cast<std::int64_t>(i));
      } else {
        axes_known = false;
      }
      if (!axes_known) return {};
      if (c.has_input(4)) {
        typename C::dim_list given;
        steps_known = c.has_value(4);
        if (steps_known) given.append(c.value(4));
        for (const value_type& v : given) {
          std::int64_t k = 0;  // 0: not constant
          if (is_known(v) && domain.as_constant(v, k) && k == 0)
            return error(errc::value_range, "Slice needs steps that are not 0")
                .at_tensor(c.input_name(4));
          steps.push_back(k);
        }
      } else {
        steps.assign(axes.size(), 1);
      }
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
      std::size_t at = 0;
      SOD2_TRY(axis_of(c, 0, axes[i], rank, at));
      cut<value_type>& slot = out[at];
      slot.sliced = true;
      if (!starts_known || !ends_known || !steps_known || i >= starts.size() || i >= ends.size() ||
          i >= steps.size())
        continue;
      slot.start = starts[i];
      slot.end = ends[i];
      slot.step = steps[i];
      slot.known = is_known(starts[i]) && is_known(ends[i]) && steps[i] != 0;
    }
    return {};
  }
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    if (!ranks_known(c, {0})) return {};
    for (std::size_t i = 1; i < c.input_count(); ++i)
      if (c.pending(i)) return {};
    cuts<C> cut_at;
    bool axes_known = false;
    SOD2_TRY(read_cuts(c, cut_at, axes_known));
    typename C::dim_list dims = c.input(0).dims;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (axes_known && !cut_at[i].sliced) continue;
      const auto size = dims[i];
      if (is_undefined(size)) continue;
      if (!axes_known || !cut_at[i].known || !is_known(size) ||
          !rules::slice_length(c.domain(), size, cut_at[i].start, cut_at[i].end, cut_at[i].step,
                               dims[i]) ||
          !is_known(dims[i]))
        dims[i] = c.fresh(0, i, {0, upper_bound(c, size)});
    }
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    const auto& out = c.output(0);
    if (!out.rank_known()) return {};
    c.refine_rank(0, out.dims.size());
    if (!c.rank_known(0) || c.dims(0).size() != out.dims.size()) return {};
    cuts<C> cut_at;
    bool axes_known = false;
    SOD2_TRY(read_cuts(c, cut_at, axes_known));
    for (std::size_t i = 0; axes_known && i < out.dims.size(); ++i)
      if (!cut_at[i].sliced) c.refine(0, i, out.dims[i]);
    return {};
  }
  template <class C>
  static status value(C& c) {
    using namespace detail;
    index_list dims, indices;
    if (!c.has_value(0) || !concrete_dims(c, 0, dims)) return {};
    cuts<C> cut_at;
    bool axes_known = false;
    SOD2_TRY(read_cuts(c, cut_at, axes_known));
    if (!axes_known) return {};
    auto& domain = c.domain();
    index_list strides = dense_strides(dims);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (!cut_at[i].sliced) continue;
      if (!cut_at[i].known) return {};
      const auto size = domain.constant(dims[i]);
      auto length = size, first = size;
      std::int64_t n = 0, from = 0;
      if (!rules::slice_length(domain, size, cut_at[i].start, cut_at[i].end, cut_at[i].step, length,
                               &first) ||
          !domain.as_constant(length, n))
        return {};
      if (n > 0 && !domain.as_constant(first, from)) return {};
      dims[i] = n;
      offset += from * strides[i];
      strides[i] *= cut_at[i].step;
    }
    strided_indices(dims, strides, offset, indices);
    pick_elements(c, 0, indices.view(), 0);
    return {};
  }
};

/// Gather-1, 11 (negative indices), 13: data[:axis] + indices + data[axis+1:].
struct gather {
  static constexpr int since[] = {1, 11, 13};
  static constexpr op_info info{
      .name = "Gather", .versions = since, .map = mapping::one_to_many, .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    c.copy_type(0, 0);
    if (!detail::ranks_known(c, {0, 1})) return {};
    SOD2_TRY(detail::need_rank_least(c, 0, 1));
    const auto data = c.dims(0);
    std::int64_t axis = 0;
    SOD2_TRY(detail::read(c.attributes(), "axis", axis));
    std::size_t at = 0;
    SOD2_TRY(detail::axis_of(c, 0, axis, data.size(), at));
    typename C::dim_list dims;
    dims.append(data.first(at));
    dims.append(c.dims(1));
    dims.append(data.subspan(at + 1));
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    const auto& out = c.output(0);
    if (!out.rank_known() || !c.rank_known(0) || c.dims(0).empty()) return {};
    const std::size_t rank = c.dims(0).size();
    if (out.dims.size() + 1 < rank) return {};
    std::int64_t axis = 0;
    SOD2_TRY(detail::read(c.attributes(), "axis", axis));
    std::size_t at = 0;
    SOD2_TRY(detail::axis_of(c, 0, axis, rank, at));
    const std::size_t own = out.dims.size() + 1 - rank;
    c.refine_rank(1, own);
    if (c.rank_known(1) && c.dims(1).size() != own) return {};
    for (std::size_t i = 0; i < at; ++i) c.refine(0, i, out.dims[i]);
    for (std::size_t i = 0; i < own; ++i) c.refine(1, i, out.dims[at + i]);
    for (std::size_t i = at + 1; i < rank; ++i) c.refine(0, i, out.dims[i + own - 1]);
    return {};
  }
  template <class C>
  static status value(C& c) {
    using namespace detail;
    using value_type = typename C::value_type;
    index_list dims;
    if (!c.has_value(0) || !c.has_value(1) || !concrete_dims(c, 0, dims) || dims.empty()) return {};
    std::int64_t axis = 0;
    SOD2_TRY(read(c.attributes(), "axis", axis));
    std::size_t at = 0;
    SOD2_TRY(axis_of(c, 0, axis, dims.size(), at));
    std::int64_t outer = 1, inner = 1;
    for (std::size_t k = 0; k < at; ++k) outer *= dims[k];
    for (std::size_t k = at + 1; k < dims.size(); ++k) inner *= dims[k];
    const auto from = c.value(0);
    const auto picked = c.value(1);
    if (!tracked(outer * inner * static_cast<std::int64_t>(picked.size()))) return {};
    element_list<C> elements(c);
    for (std::int64_t o = 0; o < outer; ++o)
      for (const value_type& index : picked) {
        std::int64_t k = 0;
        const bool known = constant_index(c, index, dims[at], k);
        for (std::int64_t i = 0; i < inner; ++i) {
          if (known)
            elements.push(from[static_cast<std::size_t>((o * dims[at] + k) * inner + i)]);
          else
            elements.push_unknown();
        }
      }
    elements.commit(0);
    return {};
  }
};

/// GatherElements-11, 13: the shape of indices.
struct gather_elements {
  static constexpr int since[] = {11, 13};
  static constexpr op_info info{
      .name = "GatherElements", .versions = since, .map = mapping::one_to_many, .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    c.copy_type(0, 0);
    if (c.rank_known(0) && c.rank_known(1)) SOD2_TRY(detail::need_rank(c, 1, c.dims(0).size()));
    c.copy_shape(1, 0);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    if (!c.output(0).rank_known()) return {};
    c.refine_shape(1, c.output(0).dims.view());
    c.refine_rank(0, c.output(0).dims.size());
    return {};
  }
  template <class C>
  static status value(C& c) {
    using namespace detail;
    index_list dims, index_dims;
    if (!c.has_value(0) || !c.has_value(1) || !concrete_dims(c, 0, dims) ||
        !concrete_dims(c, 1, index_dims))
      return {};
    std::int64_t axis = 0;
    SOD2_TRY(read(c.attributes(), "axis", axis));
    std::size_t at = 0;
    SOD2_TRY(axis_of(c, 0, axis, dims.size(), at));
    if (index_dims.size() != dims.size()) return {};
    // Where each index stands in data, with its own axis at 0.
    index_list strides = dense_strides(dims), bases;
    const std::int64_t along = strides[at];
    strides[at] = 0;
    strided_indices(index_dims, strides, 0, bases);
    element_list<C> elements(c);
    for (std::size_t n = 0; n < bases.size(); ++n) {
      std::int64_t k = 0;
      if (constant_index(c, c.value(1)[n], dims[at], k))
        elements.push(c.value(0)[static_cast<std::size_t>(bases[n] + k * along)]);
      else
        elements.push_unknown();
    }
    elements.commit(0);
    return {};
  }
};

/// GatherND-11, 12 (batch_dims), 13: indices[:-1] + data[batch_dims + indices[-1]:].
struct gather_nd {
  static constexpr int since[] = {11, 12, 13};
  static constexpr op_info info{
      .name = "GatherND", .versions = since, .map = mapping::one_to_many, .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    if (!ranks_known(c, {0, 1})) return {};
    SOD2_TRY(need_rank_least(c, 0, 1));
    SOD2_TRY(need_rank_least(c, 1, 1));
    const auto data = c.dims(0), indices = c.dims(1);
    std::int64_t batch = 0, depth = 0;
    SOD2_TRY(read(c.attributes(), "batch_dims", batch));
    if (batch < 0 || static_cast<std::size_t>(batch) >= data.size() ||
        static_cast<std::size_t>(batch) >= indices.size())
      return wrong_attribute("batch_dims", "less than both ranks");
    if (is_undefined(indices.back())) return {};
    if (!is_known(indices.back()) || !c.domain().as_constant(indices.back(), depth)) {
      c.set_rank_unknown(0);
      return {};
    }
    if (depth < 1 || static_cast<std::size_t>(batch + depth) > data.size())
      return c.fail(errc::rank_mismatch, 1, static_cast<int>(indices.size()) - 1,
                    std::to_string(depth), c.text(data));
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch); ++i)
      SOD2_TRY(need_dim(c, 1, i, data[i]));
    typename C::dim_list dims;
    dims.append(indices.first(indices.size() - 1));
    dims.append(data.subspan(static_cast<std::size_t>(batch + depth)));
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status value(C& c) {
    using namespace detail;
    index_list dims, index_dims;
    std::int64_t batch = 0;
    SOD2_TRY(read(c.attributes(), "batch_dims", batch));
    if (batch != 0 || !c.has_value(0) || !c.has_value(1) || !concrete_dims(c, 0, dims) ||
        !concrete_dims(c, 1, index_dims) || index_dims.empty())
      return {};
    const std::int64_t depth = index_dims.back();
    if (depth < 1 || static_cast<std::size_t>(depth) > dims.size()) return {};
    const index_list strides = dense_strides(dims);
    const std::int64_t run = strides[static_cast<std::size_t>(depth) - 1];
    const std::int64_t tuples = static_cast<std::int64_t>(c.value(1).size()) / depth;
    if (!tracked(tuples * run)) return {};
    element_list<C> elements(c);
    for (std::int64_t t = 0; t < tuples; ++t) {
      std::int64_t base = 0;
      bool known = true;
      for (std::int64_t d = 0; d < depth && known; ++d) {
        std::int64_t k = 0;
        const std::size_t axis = static_cast<std::size_t>(d);
        known =
            constant_index(c, c.value(1)[static_cast<std::size_t>(t * depth + d)], dims[axis], k);
        base += k * strides[axis];
      }
      for (std::int64_t i = 0; i < run; ++i) {
        if (known)
          elements.push(c.value(0)[static_cast<std::size_t>(base + i)]);
        else
          elements.push_unknown();
      }
    }
    elements.commit(0);
    return {};
  }
};

/// ScatterElements-11, 13, 16 (reduction), 18 (min, max): the shape of data; updates as indices.
struct scatter_elements {
  static constexpr int since[] = {11, 13, 16, 18};
  static constexpr op_info info{.name = "ScatterElements", .versions = since, .inputs = {3, 3}};
  template <class C>
  static status forward(C& c) {
    SOD2_TRY(detail::same_dims(c, 1, 2));
    if (c.rank_known(0) && c.rank_known(1)) SOD2_TRY(detail::need_rank(c, 1, c.dims(0).size()));
    return detail::same_shape_and_type(c);
  }
  template <class C>
  static status backward(C& c) {
    if (c.rank_known(1)) c.refine_shape(2, c.dims(1));
    if (c.rank_known(2)) c.refine_shape(1, c.dims(2));
    return detail::same_shape_back(c);
  }
  template <class C>
  static status value(C& c) {
    using namespace detail;
    using value_type = typename C::value_type;
    index_list dims, index_dims;
    std::string_view reduction = "none";
    SOD2_TRY(read(c.attributes(), "reduction", reduction));
    if (reduction != "none" || !c.has_value(0) || !c.has_value(1) || !c.has_value(2) ||
        !concrete_dims(c, 0, dims) || !concrete_dims(c, 1, index_dims) ||
        dims.size() != index_dims.size())
      return {};
    std::int64_t axis = 0;
    SOD2_TRY(read(c.attributes(), "axis", axis));
    std::size_t at = 0;
    SOD2_TRY(axis_of(c, 0, axis, dims.size(), at));
    index_list strides = dense_strides(dims), bases;
    const std::int64_t along = strides[at];
    strides[at] = 0;
    strided_indices(index_dims, strides, 0, bases);
    small_vector<value_type, 8> elements(c.value(0));
    if (c.value(2).size() != bases.size()) return {};
    for (std::size_t n = 0; n < bases.size(); ++n) {
      std::int64_t k = 0;
      if (!constant_index(c, c.value(1)[n], dims[at], k)) return {};  // it could hit any element
      elements[static_cast<std::size_t>(bases[n] + k * along)] = c.value(2)[n];
    }
    c.set_value(0, elements);
    return {};
  }
};
/// Scatter-9 (deprecated in 11 for ScatterElements): the shape of data.
struct scatter {
  static constexpr int since[] = {9};
  static constexpr op_info info{.name = "Scatter", .versions = since, .inputs = {3, 3}};
  template <class C>
  static status forward(C& c) {
    return scatter_elements::forward(c);
  }
  template <class C>
  static status backward(C& c) {
    return scatter_elements::backward(c);
  }
  template <class C>
  static status value(C& c) {
    return scatter_elements::value(c);
  }
};

/// ScatterND-11, 13, 16 (reduction), 18 (min, max): the shape of data; updates are
/// indices[:-1] + data[indices[-1]:].
struct scatter_nd {
  static constexpr int since[] = {11, 13, 16, 18};
  static constexpr op_info info{.name = "ScatterND", .versions = since, .inputs = {3, 3}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    std::int64_t depth = 0;
    if (c.rank_known(0) && c.rank_known(1) && c.rank_known(2) && !c.dims(1).empty() &&
        is_known(c.dims(1).back()) && c.domain().as_constant(c.dims(1).back(), depth)) {
      const auto data = c.dims(0), indices = c.dims(1);
      if (depth < 0 || static_cast<std::size_t>(depth) > data.size())
        return c.fail(errc::rank_mismatch, 1, static_cast<int>(indices.size()) - 1,
                      std::to_string(depth), c.text(data));
      const std::size_t lead = indices.size() - 1, keep = static_cast<std::size_t>(depth);
      SOD2_TRY(need_rank(c, 2, lead + data.size() - keep));
      for (std::size_t i = 0; i < lead; ++i) SOD2_TRY(need_dim(c, 2, i, indices[i]));
      for (std::size_t i = keep; i < data.size(); ++i)
        SOD2_TRY(need_dim(c, 2, lead + i - keep, data[i]));
    }
    return same_shape_and_type(c);
  }
  template <class C>
  static status backward(C& c) {
    return detail::same_shape_back(c);
  }
  template <class C>
  static status value(C& c) {
    using namespace detail;
    using value_type = typename C::value_type;
    index_list dims, index_dims;
    std::string_view reduction = "none";
    SOD2_TRY(read(c.attributes(), "reduction", reduction));
    if (reduction != "none" || !c.has_value(0) || !c.has_value(1) || !c.has_value(2) ||
        !concrete_dims(c, 0, dims) || !concrete_dims(c, 1, index_dims) || index_dims.empty())
      return {};
    const std::int64_t depth = index_dims.back();
    if (depth < 1 || static_cast<std::size_t>(depth) > dims.size()) return {};
    const index_list strides = dense_strides(dims);
    const std::int64_t run = strides[static_cast<std::size_t>(depth) - 1];
    const std::int64_t tuples = static_cast<std::int64_t>(c.value(1).size()) / depth;
    if (static_cast<std::int64_t>(c.value(2).size()) != tuples * run) return {};
    small_vector<value_type, 8> elements(c.value(0));
    for (std::int64_t t = 0; t < tuples; ++t) {
      std::int64_t base = 0;
      for (std::int64_t d = 0; d < depth; ++d) {
        std::int64_t k = 0;
        const std::size_t axis = static_cast<std::size_t>(d);
        if (!constant_index(c, c.value(1)[static_cast<std::size_t>(t * depth + d)], dims[axis], k))
          return {};
        base += k * strides[axis];
      }
      for (std::int64_t i = 0; i < run; ++i)
        elements[static_cast<std::size_t>(base + i)] =
            c.value(2)[static_cast<std::size_t>(t * run + i)];
    }
    c.set_value(0, elements);
    return {};
  }
};
/// TensorScatter-24: the shape of past_cache.
struct tensor_scatter : detail::keeps_shape {
  static constexpr int since[] = {24};
  static constexpr op_info info{.name = "TensorScatter", .versions = since, .inputs = {2, 3}};
};

/// Pad-1 (paddings), 2 (pads), 11 (inputs), 13, 18 (axes), 19, 21, 23, 24, 25: D + begin + end.
struct pad {
  static constexpr int since[] = {1, 2, 11, 13, 18, 19, 21, 23, 24, 25};
  static constexpr op_info info{.name = "Pad",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::one_to_many,
                                .inputs = {1, 4}};
  /// Growth of each axis; `known` is false when nothing is known of the pads.
  template <class C>
  static status growth(C& c, std::size_t rank, typename C::dim_list& out, bool& known) {
    using namespace detail;
    auto& domain = c.domain();
    known = true;
    out.clear();
    out.resize(rank, domain.constant(0));
    typename C::dim_list pads;
    index_list axes;
    if (c.version() < 11) {
      SOD2_TRY(only_inputs(c, 1));
      std::span<const std::int64_t> given;
      SOD2_TRY(require(c.attributes(), c.version() < 2 ? "paddings" : "pads", given));
      for (std::int64_t k : given) pads.push_back(domain.constant(k));
    } else {
      if (!c.has_input(1)) return c.fail(errc::arity, "Pad takes 2 to 4 inputs, not 1");
      known = c.has_value(1);
      if (!known) return {};
      pads.append(c.value(1));
      if (c.has_input(3)) {
        known = c.constants(3, axes);
        if (!known) return {};
      }
    }
    if (!c.has_input(3) || c.version() < 18) {
      axes.clear();
      for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
    }
    if (pads.size() != 2 * axes.size())
      return error(errc::dim_mismatch, "pads has " + std::to_string(pads.size()) +
                                           " entries, not 2 for each of " +
                                           std::to_string(axes.size()) + " axes")
          .at_tensor(c.input_name(1));
    for (std::size_t i = 0; i < axes.size(); ++i) {
      std::size_t at = 0;
      SOD2_TRY(axis_of(c, 0, axes[i], rank, at));
      out[at] = domain.add(out[at], domain.add(pads[i], pads[i + axes.size()]));
    }
    return {};
  }
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    if (!ranks_known(c, {0})) return {};
    if (c.pending(1) || c.pending(3)) return {};
    typename C::dim_list more, dims = c.input(0).dims;
    bool known = false;
    SOD2_TRY(growth(c, dims.size(), more, known));
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (is_undefined(dims[i])) continue;
      dims[i] = known ? size_or_fresh(c, 0, i, c.domain().add(dims[i], more[i]))
                      : c.fresh(0, i, {0, infinity});
      if (c.domain().decide_le(c.domain().constant(0), dims[i]) == tri::no)
        return c.fail(errc::dim_mismatch, 0, static_cast<int>(i), c.text(c.dims(0)[i]),
                      c.text(more[i]));
    }
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    const auto& out = c.output(0);
    if (!out.rank_known()) return {};
    c.refine_rank(0, out.dims.size());
    typename C::dim_list more;
    bool known = false;
    SOD2_TRY(growth(c, out.dims.size(), more, known));
    for (std::size_t i = 0; known && i < out.dims.size(); ++i)
      c.refine(0, i, c.domain().sub(out.dims[i], more[i]));
    return {};
  }
};

/// Tile-1 (tiles along one axis), 6, 13: D*repeats.
struct tile {
  static constexpr int since[] = {1, 6, 13};
  static constexpr op_info info{.name = "Tile",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::one_to_many,
                                .inputs = {2, 3}};
  template <class C>
  static status repeats(C& c, std::size_t rank, typename C::dim_list& out, bool& known) {
    using namespace detail;
    out.clear();
    known = c.has_value(1);
    if (!known) return {};
    if (c.version() < 6) {
      index_list axis;
      known = c.constants(2, axis) && axis.size() == 1 && c.value(1).size() == 1;
      if (!known) return {};
      std::size_t at = 0;
      SOD2_TRY(axis_of(c, 0, axis[0], rank, at));
      out.resize(rank, c.domain().constant(1));
      out[at] = c.value(1)[0];
      return {};
    }
    if (c.value(1).size() != rank)
      return error(errc::rank_mismatch, "repeats has " + std::to_string(c.value(1).size()) +
                                            " entries for an input of rank " + std::to_string(rank))
          .at_tensor(c.input_name(1));
    out.append(c.value(1));
    return {};
  }
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    if (!c.rank_known(0)) {
      std::int64_t length = 0;
      if (c.pending(0) || c.pending(1)) return {};
      if (c.version() >= 6 && list_length(c, 1, length))
        c.set_rank(0, static_cast<std::size_t>(length));
      else
        c.set_rank_unknown(0);
      return {};
    }
    if (c.pending(1)) return {};
    typename C::dim_list by, dims = c.input(0).dims;
    bool known = false;
    SOD2_TRY(repeats(c, dims.size(), by, known));
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (is_undefined(dims[i])) continue;
      dims[i] = known ? size_or_fresh(c, 0, i, c.domain().mul(dims[i], by[i]))
                      : c.fresh(0, i, {0, infinity});
    }
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    const auto& out = c.output(0);
    if (!out.rank_known()) return {};
    c.refine_rank(0, out.dims.size());
    typename C::dim_list by;
    bool known = false;
    SOD2_TRY(repeats(c, out.dims.size(), by, known));
    for (std::size_t i = 0; known && i < out.dims.size(); ++i) {
      auto d = out.dims[i];
      if (is_known(d) && is_known(by[i]) && c.domain().div_exact(out.dims[i], by[i], d))
        c.refine(0, i, d);
    }
    return {};
  }
  template <class C>
  static status value(C& c) {
    using namespace detail;
    index_list dims, counts, out, indices;
    typename C::dim_list by;
    bool known = false;
    if (!c.has_value(0) || !concrete_dims(c, 0, dims)) return {};
    SOD2_TRY(repeats(c, dims.size(), by, known));
    if (!known) return {};
    // (r0, d0, r1, d1, ...) with stride 0 along each repeat.
    const index_list dense = dense_strides(dims);
    index_list strides;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      std::int64_t k = 0;
      if (!is_known(by[i]) || !c.domain().as_constant(by[i], k) || k < 0) return {};
      out.push_back(k);
      out.push_back(dims[i]);
      strides.push_back(0);
      strides.push_back(dense[i]);
    }
    if (!tracked(product_of(out))) return {};
    strided_indices(out, strides, 0, indices);
    pick_elements(c, 0, indices.view(), 0);
    return {};
  }
};

/// Expand-8, 13: broadcast of the input with a shape that is a value.
struct expand {
  static constexpr int since[] = {8, 13};
  static constexpr op_info info{.name = "Expand",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::one_to_many,
                                .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    auto& domain = c.domain();
    c.copy_type(0, 0);
    if (!ranks_known(c, {0})) return {};
    if (c.pending(1)) return {};
    SOD2_TRY(need_rank(c, 1, 1));
    typename C::dim_list target;
    std::int64_t length = 0;
    if (c.has_value(1)) {
      target.append(c.value(1));
    } else if (detail::list_length(c, 1, length)) {
      target.resize(static_cast<std::size_t>(length), unknown_dim(domain));
    } else {
      c.set_rank_unknown(0);
      return {};
    }
    const bool tracked_target = c.has_value(1);
    const auto in = c.dims(0);
    const std::size_t rank = in.size() > target.size() ? in.size() : target.size();
    const auto one = domain.constant(1);
    typename C::dim_list out;
    for (std::size_t i = 0; i < rank; ++i) {
      const bool has_in = i + in.size() >= rank, has_target = i + target.size() >= rank;
      const auto d = has_in ? in[i + in.size() - rank] : one;
      if (!has_target) {
        out.push_back(d);
        continue;
      }
      const auto t = target[i + target.size() - rank];
      auto joined = d;
      if (is_undefined(d) || (tracked_target && is_undefined(t))) {
        out.push_back(is_undefined(d) ? d : t);
        continue;
      }
      if (!tracked_target || !is_known(t) || !is_known(d)) {
        // A dim that cannot be 1 stays; anything else may become the element.
        const bool fixed = is_known(d) && domain.decide_eq(d, one) == tri::no;
        const bool sure = is_known(t) && tracked_target && domain.decide_eq(t, one) == tri::no;
        out.push_back(fixed ? d : sure ? t : c.fresh(0, i, {0, infinity}));
        continue;
      }
      if (rules::broadcast_dim(domain, c, d, t, joined) != errc::ok)
        return c.fail(errc::broadcast, 0, has_in ? static_cast<int>(i + in.size() - rank) : -1,
                      c.text(d), c.text(t));
      out.push_back(joined);
    }
    c.set_shape(0, out);
    return {};
  }
  template <class C>
  static status value(C& c) {
    using namespace detail;
    index_list dims, target, indices;
    if (!c.has_value(0) || !concrete_dims(c, 0, dims) || !c.constants(1, target)) return {};
    const std::size_t rank = dims.size() > target.size() ? dims.size() : target.size();
    index_list to(rank, 1);
    for (std::size_t i = 0; i < target.size(); ++i) to[i + rank - target.size()] = target[i];
    for (std::size_t i = 0; i < dims.size(); ++i) {
      std::int64_t& slot = to[i + rank - dims.size()];
      if (slot == 1) slot = dims[i];
      if (dims[i] != 1 && dims[i] != slot) return {};
    }
    if (!tracked(product_of(to))) return {};
    broadcast_indices(dims, to, indices);
    pick_elements(c, 0, indices.view(), 0);
    return {};
  }
};

/// ReverseSequence-10, 28: the shape of the input.
struct reverse_sequence : detail::keeps_shape {
  static constexpr int since[] = {10, 28};
  static constexpr op_info info{
      .name = "ReverseSequence", .versions = since, .map = mapping::shuffle, .inputs = {2, 2}};
};
/// Trilu-14: the shape of the input, at least a matrix.
struct trilu : detail::keeps_shape {
  static constexpr int since[] = {14};
  static constexpr op_info info{
      .name = "Trilu", .versions = since, .map = mapping::one_to_one, .inputs = {1, 2}};
  template <class C>
  static status forward(C& c) {
    SOD2_TRY(detail::need_rank_least(c, 0, 2));
    return detail::same_shape_and_type(c);
  }
};

/// OneHot-9, 11, 28: the dims of indices with `depth` inserted at `axis`; type of `values`.
struct one_hot {
  static constexpr int since[] = {9, 11, 28};
  static constexpr op_info info{.name = "OneHot",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::one_to_many,
                                .inputs = {3, 3}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.set_type(0, c.input(2).type);
    if (!ranks_known(c, {0})) return {};
    if (c.pending(1)) return {};
    std::int64_t axis = -1;
    SOD2_TRY(read(c.attributes(), "axis", axis));
    std::size_t at = 0;
    SOD2_TRY(axis_of(c, 0, axis, c.dims(0).size() + 1, at));
    auto depth = unknown_dim(c.domain());
    bool known = false;
    if (c.has_value(1) && c.value(1).size() == 1) {
      // A depth that is a float is truncated.
      known = cast_element(c.domain(),
                           c.input(1).type == dtype::undefined ? dtype::i64 : c.input(1).type,
                           dtype::i64, c.value(1)[0], depth);
    }
    typename C::dim_list dims = c.input(0).dims;
    dims.insert(at, known ? depth : c.fresh(0, at, {0, infinity}));
    c.set_shape(0, dims);
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
    typename C::dim_list dims = out.dims;
    dims.erase(at);
    c.refine_shape(0, dims.view());
    return {};
  }
};

using movement_ops = op_set<transpose, concat, split, slice, gather, gather_elements, gather_nd,
                            scatter_elements, scatter, scatter_nd, tensor_scatter, pad, tile,
                            expand, reverse_sequence, trilu, one_hot>;

}  // namespace sod2::ops
