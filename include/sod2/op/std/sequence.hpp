// Sequences and optionals: a fact holds the number of elements and the join of their shapes.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops {

namespace detail {

/// What holds for both: equal dims stay, others become one bounded symbol of output o.
template <class C>
void join_shape(C& c, std::size_t o, const typename C::fact& other) {
  auto& f = c.output(o);
  if (f.type == dtype::undefined) f.type = other.type;
  if (other.rank == rank_state::undefined) return;
  if (f.rank == rank_state::undefined) {
    f.rank = other.rank;
    f.dims = other.dims;
    return;
  }
  if (f.rank == rank_state::unknown || other.rank == rank_state::unknown ||
      f.dims.size() != other.dims.size()) {
    f.rank = rank_state::unknown;
    f.dims.clear();
    return;
  }
  for (std::size_t i = 0; i < f.dims.size(); ++i) {
    const auto a = f.dims[i], b = other.dims[i];
    if (is_undefined(a) || c.domain().decide_eq(a, b) == tri::yes) {
      f.dims[i] = is_undefined(a) ? b : a;
      continue;
    }
    if (is_undefined(b)) continue;
    const interval range =
        is_known(a) && is_known(b) ? hull(c.bounds(a), c.bounds(b)) : interval{0, infinity};
    f.dims[i] = c.fresh(o, i, range);
  }
}
/// Is a joined dim one that all elements share? Symbols of a join are inferred ones.
template <class C>
bool shared_by_all(C& c, const typename C::value_type& d) {
  if constexpr (is_symbolic<typename C::domain_type>)
    return c.domain().context().only_input_symbols(d);
  else
    return (void)c, (void)d, is_concrete<typename C::domain_type>;
}
/// Output o becomes an element of container i: a tensor with the joined shape, where a size in
/// which elements may differ is one of its own.
template <class C>
void element_of(C& c, std::size_t i, std::size_t o) {
  auto& f = c.output(o);
  f.type = c.input(i).type;
  if (c.input(i).kind == fact_kind::optional_sequence) {
    f.kind = fact_kind::sequence;
    f.rank = c.input(i).rank;
    f.dims = c.input(i).dims;
    f.length = unknown_dim(c.domain());
    return;
  }
  f.kind = fact_kind::tensor;
  f.rank = c.input(i).rank;
  f.dims.clear();
  for (std::size_t k = 0; k < c.input(i).dims.size(); ++k) {
    const auto d = c.input(i).dims[k];
    if (is_undefined(d) || (is_known(d) && shared_by_all(c, d)))
      f.dims.push_back(d);
    else
      f.dims.push_back(c.fresh(o, k, is_known(d) ? c.bounds(d) : interval{0, infinity}));
  }
}
template <class C>
void start_sequence(C& c, fact_kind kind, dtype type, typename C::value_type length) {
  auto& f = c.output(0);
  f.kind = kind;
  f.type = type;
  f.rank = rank_state::undefined;
  f.dims.clear();
  f.length = length;
}
}  // namespace detail

/// SequenceEmpty-11: no elements; type from attribute dtype.
struct sequence_empty {
  static constexpr int since[] = {11};
  static constexpr op_info info{
      .name = "SequenceEmpty", .versions = since, .map = mapping::barrier, .inputs = {0, 0}};
  template <class C>
  static status forward(C& c) {
    dtype type = dtype::f32;
    SOD2_TRY(detail::read_type(c.attributes(), "dtype", type));
    detail::start_sequence(c, fact_kind::sequence, type, c.domain().constant(0));
    return {};
  }
};
/// SequenceConstruct-11: one element per input.
struct sequence_construct {
  static constexpr int since[] = {11};
  static constexpr op_info info{
      .name = "SequenceConstruct", .versions = since, .map = mapping::barrier, .inputs = {1, many}};
  template <class C>
  static status forward(C& c) {
    const auto length = c.domain().constant(static_cast<std::int64_t>(c.input_count()));
    detail::start_sequence(c, fact_kind::sequence, c.input(0).type, length);
    for (std::size_t i = 0; i < c.input_count(); ++i)
      if (c.has_input(i)) detail::join_shape(c, 0, c.input(i));
    return {};
  }
};
/// SequenceInsert-11: one element more.
struct sequence_insert {
  static constexpr int since[] = {11};
  static constexpr op_info info{
      .name = "SequenceInsert", .versions = since, .map = mapping::barrier, .inputs = {2, 3}};
  template <class C>
  static status forward(C& c) {
    if (c.input(0).kind != fact_kind::sequence) return {};
    const auto length = c.domain().add(c.input(0).length, c.domain().constant(1));
    detail::start_sequence(c, fact_kind::sequence, detail::type_of(c, 0, 1), length);
    std::int64_t before = 0;
    const bool empty = is_known(c.input(0).length) &&
                       c.domain().as_constant(c.input(0).length, before) && before == 0;
    if (!empty) detail::join_shape(c, 0, c.input(0));
    detail::join_shape(c, 0, c.input(1));
    return {};
  }
};
/// SequenceErase-11: one element less.
struct sequence_erase {
  static constexpr int since[] = {11};
  static constexpr op_info info{
      .name = "SequenceErase", .versions = since, .map = mapping::barrier, .inputs = {1, 2}};
  template <class C>
  static status forward(C& c) {
    if (c.input(0).kind != fact_kind::sequence) return {};
    const auto length = c.domain().sub(c.input(0).length, c.domain().constant(1));
    detail::start_sequence(c, fact_kind::sequence, c.input(0).type, length);
    detail::join_shape(c, 0, c.input(0));
    return {};
  }
};
/// SequenceAt-11: a tensor of the joined shape.
struct sequence_at {
  static constexpr int since[] = {11};
  static constexpr op_info info{.name = "SequenceAt",
                                .versions = since,
                                .base = dynamism::edo,
                                .map = mapping::barrier,
                                .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    if (c.input(0).kind == fact_kind::sequence) detail::element_of(c, 0, 0);
    return {};
  }
};
/// SequenceLength-11: a scalar, the tracked length.
struct sequence_length {
  static constexpr int since[] = {11};
  static constexpr op_info info{
      .name = "SequenceLength", .versions = since, .base = dynamism::isdo, .map = mapping::source};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, dtype::i64);
    c.set_rank(0, 0);
    return {};
  }
  template <class C>
  static status value(C& c) {
    if (c.input(0).kind != fact_kind::sequence) return {};
    const typename C::value_type length[1] = {c.input(0).length};
    if (is_known(length[0]) && detail::shared_by_all(c, length[0]))
      c.set_value(0, std::span<const typename C::value_type>(length));
    return {};
  }
};
/// ConcatFromSequence-11: along an axis, or stacked along a new one.
struct concat_from_sequence {
  static constexpr int since[] = {11};
  static constexpr op_info info{.name = "ConcatFromSequence",
                                .versions = since,
                                .base = dynamism::edo,
                                .map = mapping::barrier};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    if (c.input(0).kind != fact_kind::sequence) return {};
    c.set_type(0, c.input(0).type);
    std::int64_t axis = 0;
    bool stacks = false;
    SOD2_TRY(require(c.attributes(), "axis", axis));
    SOD2_TRY(read(c.attributes(), "new_axis", stacks));
    if (!c.input(0).rank_known()) {
      if (c.input(0).rank == rank_state::unknown) c.set_rank_unknown(0);
      return {};
    }
    typename C::dim_list dims = c.input(0).dims;
    std::size_t at = 0;
    SOD2_TRY(axis_of(c, 0, axis, dims.size() + (stacks ? 1 : 0), at));
    const auto length = c.input(0).length;
    const bool counted = is_known(length) && shared_by_all(c, length);
    const bool alike = !stacks && is_known(dims[at]) && shared_by_all(c, dims[at]);
    // The other axes agree; where their size is no input's, this node is who tells it.
    for (std::size_t k = 0; k < dims.size(); ++k)
      if ((stacks || k != at) && !is_undefined(dims[k]) &&
          !(is_known(dims[k]) && shared_by_all(c, dims[k])))
        dims[k] = c.fresh(0, stacks && k >= at ? k + 1 : k,
                          is_known(dims[k]) ? c.bounds(dims[k]) : interval{0, infinity});
    if (stacks)
      dims.insert(at, counted ? length : c.fresh(0, at, {0, infinity}));
    else if (alike && counted)
      dims[at] = c.domain().mul(dims[at], length);
    else
      dims[at] = c.fresh(0, at, {0, infinity});
    c.set_shape(0, dims);
    return {};
  }
};
/// SplitToSequence-11, 24: parts of a constant size, the listed sizes, or single slices (keepdims).
struct split_to_sequence {
  static constexpr int since[] = {11, 24};
  static constexpr op_info info{.name = "SplitToSequence",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::one_to_one,
                                .inputs = {1, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    using value_type = typename C::value_type;
    auto& domain = c.domain();
    if (c.pending(0) || c.pending(1)) return {};
    std::int64_t axis = 0;
    bool keep = true;
    SOD2_TRY(read(c.attributes(), "axis", axis));
    SOD2_TRY(read(c.attributes(), "keepdims", keep));
    const value_type none = unknown_dim(domain);
    if (!c.rank_known(0)) {
      start_sequence(c, fact_kind::sequence, c.input(0).type, none);
      c.output(0).rank = rank_state::unknown;
      return {};
    }
    typename C::dim_list dims = c.input(0).dims;
    std::size_t at = 0;
    SOD2_TRY(axis_of(c, 0, axis, dims.size(), at));
    const value_type size = dims[at];
    value_type length = none;
    const interval range{0, upper_bound(c, size)};
    if (!c.has_input(1)) {
      length = size;
      if (keep)
        dims[at] = domain.constant(1);
      else
        dims.erase(at);
    } else if (c.rank_known(1) && c.dims(1).empty()) {
      index_list part;
      if (c.constants(1, part) && part.size() == 1 && part[0] > 0) {
        length = domain.floordiv(domain.add(size, domain.constant(part[0] - 1)), part[0]);
        const auto whole = domain.mul(domain.floordiv(size, part[0]), domain.constant(part[0]));
        dims[at] = domain.decide_eq(whole, size) == tri::yes
                       ? domain.constant(part[0])
                       : c.fresh(0, at, {0, min_of(range.hi, part[0])});
      } else {
        length = c.fresh(0, dims.size(), {0, infinity});
        dims[at] = c.fresh(0, at, range);
      }
    } else {
      if (c.rank_known(1)) length = c.dims(1)[0];
      bool same = c.has_value(1) && !c.value(1).empty();
      if (same)
        for (const value_type& d : c.value(1))
          same = same && domain.decide_eq(d, c.value(1)[0]) == tri::yes;
      dims[at] = same ? c.value(1)[0] : c.fresh(0, at, range);
    }
    start_sequence(c, fact_kind::sequence, c.input(0).type, length);
    c.output(0).rank = rank_state::known;
    c.output(0).dims = dims;
    return {};
  }
};

/// Optional-15, 28: wraps a tensor or a sequence, or is empty (of the type in attribute `type`).
struct optional {
  static constexpr int since[] = {15, 28};
  static constexpr op_info info{
      .name = "Optional", .versions = since, .map = mapping::one_to_one, .inputs = {0, 1}};
  template <class C>
  static status forward(C& c) {
    const bool given = c.has_input(0);
    if (given && c.input(0).kind == fact_kind::undefined) return {};
    const attribute_view type = c.attributes()("type");
    const bool nests = given ? c.input(0).kind == fact_kind::sequence : type.string == "sequence";
    detail::start_sequence(c, nests ? fact_kind::optional_sequence : fact_kind::optional,
                           given ? c.input(0).type : static_cast<dtype>(type.integer),
                           c.domain().constant(given ? 1 : 0));
    if (given) detail::join_shape(c, 0, c.input(0));
    return {};
  }
};
/// OptionalGetElement-15, 18 (tensors and sequences pass), 28: the wrapped value.
struct optional_get_element {
  static constexpr int since[] = {15, 18, 28};
  static constexpr op_info info{
      .name = "OptionalGetElement", .versions = since, .map = mapping::one_to_one};
  template <class C>
  static status forward(C& c) {
    if (c.input(0).kind == fact_kind::optional || c.input(0).kind == fact_kind::optional_sequence)
      detail::element_of(c, 0, 0);
    else
      c.output(0) = c.input(0);
    return {};
  }
};
/// OptionalHasElement-15, 18 (tensors, sequences, no input), 28: a boolean scalar.
struct optional_has_element {
  static constexpr int since[] = {15, 18, 28};
  static constexpr op_info info{.name = "OptionalHasElement",
                                .versions = since,
                                .base = dynamism::isdo,
                                .map = mapping::source,
                                .inputs = {0, 1}};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, dtype::boolean);
    c.set_rank(0, 0);
    return {};
  }
  template <class C>
  static status value(C& c) {
    if (c.has_input(0) && c.input(0).kind == fact_kind::undefined) return {};
    const bool wraps = c.has_input(0) && (c.input(0).kind == fact_kind::optional ||
                                          c.input(0).kind == fact_kind::optional_sequence);
    const typename C::value_type has[1] = {wraps ? c.input(0).length
                                                 : c.domain().constant(c.has_input(0) ? 1 : 0)};
    if (is_known(has[0]) && detail::shared_by_all(c, has[0]))
      c.set_value(0, std::span<const typename C::value_type>(has));
    return {};
  }
};

using sequence_ops = op_set<sequence_empty, sequence_construct, sequence_insert, sequence_erase,
                            sequence_at, sequence_length, concat_from_sequence, split_to_sequence,
                            optional, optional_get_element, optional_has_element>;

}  // namespace sod2::ops
