// Operators whose output size only execution decides: one bounded dim is a symbol, rank and other
// dims stay known.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/elements.hpp>
#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops {

namespace detail {
/// Number of elements of input i that are not 0, where every one is decided.
template <class C>
bool count_true(C& c, std::size_t i, std::int64_t& count) {
  if (!c.has_value(i)) return false;
  count = 0;
  const dtype type = c.input(i).type;
  for (const auto& v : c.value(i)) {
    auto b = v;
    if (!cast_element(c.domain(), type, dtype::boolean, v, b)) return false;
    const tri t = truth(c.domain(), b);
    if (t == tri::unknown) return false;
    count += t == tri::yes ? 1 : 0;
  }
  return true;
}
}  // namespace detail

/// NonZero-9, 13: (rank, u), 0 <= u <= number of elements.
struct non_zero {
  static constexpr int since[] = {9, 13};
  static constexpr op_info info{
      .name = "NonZero", .versions = since, .base = dynamism::edo, .map = mapping::barrier};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.set_type(0, dtype::i64);
    if (c.pending(0)) return {};
    const bool known = c.rank_known(0);
    std::int64_t count = 0;
    typename C::dim_list dims;
    // A scalar counts as a vector of one.
    dims.push_back(known ? c.domain().constant(
                               c.dims(0).empty() ? 1 : static_cast<std::int64_t>(c.dims(0).size()))
                         : c.fresh(0, 0, {0, 64}));
    if (count_true(c, 0, count))
      dims.push_back(c.domain().constant(count));
    else
      dims.push_back(c.fresh(0, 1, {0, known ? count_range(c, c.dims(0)).hi : infinity}));
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    const auto& out = c.output(0);
    std::int64_t rank = 0;
    // Rank 1 may also be a scalar.
    if (out.rank_known() && out.dims.size() == 2 && is_known(out.dims[0]) &&
        c.domain().as_constant(out.dims[0], rank) && rank > 1)
      c.refine_rank(0, static_cast<std::size_t>(rank));
    return {};
  }
  template <class C>
  static status value(C& c) {
    using namespace detail;
    index_list dims;
    std::int64_t count = 0;
    if (!count_true(c, 0, count) || !concrete_dims(c, 0, dims)) return {};
    if (dims.empty()) dims.push_back(1);
    const index_list strides = dense_strides(dims);
    if (!tracked(count * static_cast<std::int64_t>(dims.size()))) return {};
    element_list<C> elements(c);
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      for (std::size_t n = 0; n < c.value(0).size(); ++n) {
        auto b = c.value(0)[n];
        (void)cast_element(c.domain(), c.input(0).type, dtype::boolean, c.value(0)[n], b);
        if (truth(c.domain(), b) == tri::yes)
          elements.push_constant(static_cast<std::int64_t>(n) / strides[axis] % dims[axis]);
      }
    elements.commit(0);
    return {};
  }
};

/// Unique-11, 28: Y (u) or, along an axis, the input's dims with u there; indices and counts (u),
/// inverse (D); 1 <= u <= D where D >= 1.
struct unique {
  static constexpr int since[] = {11, 28};
  static constexpr op_info info{.name = "Unique",
                                .versions = since,
                                .base = dynamism::edo,
                                .map = mapping::barrier,
                                .outputs = {1, 4}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    using value_type = typename C::value_type;
    c.copy_type(0, 0);
    for (std::size_t o = 1; o < c.output_count(); ++o) c.set_type(o, dtype::i64);
    if (c.pending(0)) return {};
    const bool along = static_cast<bool>(c.attributes()("axis"));
    std::int64_t axis = 0;
    SOD2_TRY(read(c.attributes(), "axis", axis));
    std::size_t at = 0;
    value_type whole = unknown_dim(c.domain());
    interval range{0, infinity};
    if (c.rank_known(0)) {
      if (along) {
        SOD2_TRY(axis_of(c, 0, axis, c.dims(0).size(), at));
        whole = c.dims(0)[at];
        range = is_known(whole) ? c.bounds(whole) : range;
      } else {
        whole = c.domain().constant(1);
        for (const auto& d : c.dims(0)) whole = c.domain().mul(whole, d);
        range = count_range(c, c.dims(0));
      }
    }
    // One symbol for all outputs.
    const value_type u = c.fresh(0, at, {range.lo >= 1 ? 1 : 0, range.hi});
    typename C::dim_list dims;
    if (!along) {
      dims.push_back(u);
      c.set_shape(0, dims);
    } else if (c.rank_known(0)) {
      dims = c.input(0).dims;
      dims[at] = u;
      c.set_shape(0, dims);
    } else {
      c.set_rank_unknown(0);
    }
    for (std::size_t o = 1; o < c.output_count(); ++o) {
      const value_type one[1] = {o == 2 ? whole : u};
      c.set_shape(o, one);
    }
    return {};
  }
};

/// Compress-9, 11, 28: (u), or along an axis; u <= min(D, length of condition).
struct compress {
  static constexpr int since[] = {9, 11, 28};
  static constexpr op_info info{.name = "Compress",
                                .versions = since,
                                .base = dynamism::edo,
                                .map = mapping::barrier,
                                .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.copy_type(0, 0);
    if (c.pending(0) || c.pending(1)) return {};
    SOD2_TRY(need_rank(c, 1, 1));
    const bool along = static_cast<bool>(c.attributes()("axis"));
    std::int64_t axis = 0, count = 0, most = infinity;
    SOD2_TRY(read(c.attributes(), "axis", axis));
    std::size_t at = 0;
    if (c.rank_known(1)) most = upper_bound(c, c.dims(1)[0]);
    if (along && !c.rank_known(0)) {
      c.set_rank_unknown(0);
      return {};
    }
    typename C::dim_list dims(1);
    if (along) {
      SOD2_TRY(axis_of(c, 0, axis, c.dims(0).size(), at));
      dims = c.input(0).dims;
      most = min_of(most, upper_bound(c, dims[at]));
    } else if (c.rank_known(0)) {
      most = min_of(most, count_range(c, c.dims(0)).hi);
    }
    // Conditions longer than the axis are cut, so a count from the value holds only up to it.
    if (count_true(c, 1, count) && count <= most && c.rank_known(0) &&
        c.domain().decide_le(c.dims(1)[0], along ? dims[at] : c.domain().constant(most)) ==
            tri::yes)
      dims[at] = c.domain().constant(count);
    else
      dims[at] = c.fresh(0, at, {0, most});
    c.set_shape(0, dims);
    return {};
  }
};

/// NonMaxSuppression-10, 11: boxes (B, N, 4), scores (B, K, N) -> (u, 3), u <= B*K*min(max_output,
/// N).
struct non_max_suppression {
  static constexpr int since[] = {10, 11};
  static constexpr op_info info{.name = "NonMaxSuppression",
                                .versions = since,
                                .base = dynamism::edo,
                                .map = mapping::barrier,
                                .inputs = {2, 5}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    c.set_type(0, dtype::i64);
    if (c.pending(0) || c.pending(1)) return {};
    SOD2_TRY(need_rank(c, 0, 3));
    SOD2_TRY(need_rank(c, 1, 3));
    if (c.rank_known(0)) SOD2_TRY(need_dim(c, 0, 2, c.domain().constant(4)));
    if (c.rank_known(0) && c.rank_known(1)) {
      SOD2_TRY(need_dim(c, 1, 0, c.dims(0)[0]));
      SOD2_TRY(need_dim(c, 1, 2, c.dims(0)[1]));
    }
    std::int64_t most = infinity;
    if (c.rank_known(1)) {
      const auto scores = c.dims(1);
      interval kept{0, upper_bound(c, scores[2])};
      // Without a limit nothing is selected.
      if (!c.has_input(2))
        kept = interval::point(0);
      else if (c.has_value(2) && c.value(2).size() == 1 && is_known(c.value(2)[0]))
        kept = sod2::min(kept, sod2::max(c.bounds(c.value(2)[0]), interval::point(0)));
      const interval pairs =
          interval{0, upper_bound(c, scores[0])} * interval{0, upper_bound(c, scores[1])};
      most = (pairs * kept).hi;
    }
    const typename C::dim_list dims = {c.fresh(0, 0, {0, most}), c.domain().constant(3)};
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    c.refine_rank(0, 3);
    c.refine_rank(1, 3);
    c.refine(0, 2, c.domain().constant(4));
    if (c.rank_known(1) && c.dims(1).size() == 3) {
      c.refine(0, 0, c.dims(1)[0]);
      c.refine(0, 1, c.dims(1)[2]);
    }
    if (c.rank_known(0) && c.dims(0).size() == 3) {
      c.refine(1, 0, c.dims(0)[0]);
      c.refine(1, 2, c.dims(0)[1]);
    }
    return {};
  }
};

using dynamic_ops = op_set<non_zero, unique, compress, non_max_suppression>;

}  // namespace sod2::ops
