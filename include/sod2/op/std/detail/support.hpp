// What the standard operators share: attributes with errors, axes, missing ranks, element lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <sod2/core/attribute.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/expr/domain.hpp>
#include <sod2/op/definition.hpp>
#include <sod2/shape/rules/broadcast.hpp>

namespace sod2::ops {

/// No operator is limited to fewer inputs than this.
inline constexpr std::uint16_t many = any_number;

namespace detail {

template <class D>
inline constexpr bool is_symbolic = false;
template <>
inline constexpr bool is_symbolic<symbolic_domain> = true;
template <class D>
inline constexpr bool is_concrete = false;
template <>
inline constexpr bool is_concrete<integer_domain> = true;

using index_list = small_vector<std::int64_t, 8>;

// ---- attributes ----

inline error wrong_attribute(std::string_view name, std::string_view wanted) {
  std::string text("attribute '");
  text.append(name).append("' must be ").append(wanted);
  return error(errc::bad_attribute, text);
}
inline std::string list_text(std::span<const std::int64_t> list) {
  std::string out = "(";
  for (std::size_t i = 0; i < list.size(); ++i)
    out.append(i > 0 ? ", " : "").append(std::to_string(list[i]));
  return out += ")";
}
inline error no_attribute(std::string_view name) {
  std::string text("required attribute '");
  text.append(name).append("' is missing");
  return error(errc::missing_attribute, text);
}
// An absent attribute leaves `out` as it is.
inline status read(const attribute_source& attributes, std::string_view name, std::int64_t& out) {
  const attribute_view a = attributes(name);
  if (a && a.kind != attribute_kind::integer) return wrong_attribute(name, "an integer");
  if (a) out = a.integer;
  return {};
}
inline status read(const attribute_source& attributes, std::string_view name, double& out) {
  const attribute_view a = attributes(name);
  if (a && a.kind != attribute_kind::real) return wrong_attribute(name, "a float");
  if (a) out = a.real;
  return {};
}
inline status read(const attribute_source& attributes, std::string_view name,
                   std::string_view& out) {
  const attribute_view a = attributes(name);
  if (a && a.kind != attribute_kind::string) return wrong_attribute(name, "a string");
  if (a) out = a.string;
  return {};
}
inline status read(const attribute_source& attributes, std::string_view name,
                   std::span<const std::int64_t>& out) {
  const attribute_view a = attributes(name);
  if (a && a.kind != attribute_kind::integers) return wrong_attribute(name, "a list of integers");
  if (a) out = a.integers;
  return {};
}
inline status read(const attribute_source& attributes, std::string_view name, bool& out) {
  std::int64_t k = out ? 1 : 0;
  SOD2_TRY(read(attributes, name, k));
  out = k != 0;
  return {};
}
/// As read, but the attribute must be there.
template <class T>
status require(const attribute_source& attributes, std::string_view name, T& out) {
  if (!attributes(name)) return no_attribute(name);
  return read(attributes, name, out);
}
/// A list with one entry per spatial axis, `fallback` everywhere when it is absent.
inline status read_list(const attribute_source& attributes, std::string_view name,
                        std::size_t count, std::int64_t fallback, index_list& out) {
  std::span<const std::int64_t> given;
  out.assign(count, fallback);
  if (!attributes(name)) return {};
  SOD2_TRY(read(attributes, name, given));
  if (given.size() != count)
    return wrong_attribute(name, "a list of " + std::to_string(count) +
                                     " integers, one for each axis it is about, not " +
                                     list_text(given));
  for (std::size_t i = 0; i < count; ++i) out[i] = given[i];
  return {};
}
/// Element type from an attribute that holds a TensorProto.DataType.
inline status read_type(const attribute_source& attributes, std::string_view name, dtype& out) {
  std::int64_t k = static_cast<std::int64_t>(out);
  SOD2_TRY(read(attributes, name, k));
  if (k < 0 || k > 31) return wrong_attribute(name, "an element type");
  out = static_cast<dtype>(k);
  return {};
}

// ---- axes ----

/// Negative axes count from the end.
constexpr bool wrap_axis(std::int64_t axis, std::size_t rank, std::size_t& out) {
  const std::int64_t r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r) return false;
  out = static_cast<std::size_t>(axis < 0 ? axis + r : axis);
  return true;
}
inline error axis_error(std::string_view tensor, std::int64_t axis, std::size_t rank) {
  return error(errc::axis_range,
               "axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank))
      .at_tensor(tensor);
}
/// The axis among those of a rank that input i has.
template <class C>
status axis_of(C& c, std::size_t i, std::int64_t axis, std::size_t rank, std::size_t& out) {
  if (wrap_axis(axis, rank, out)) return {};
  return axis_error(c.input_name(i), axis, rank);
}

// ---- facts ----

/// Are the ranks of these inputs known? If not, every output says so: nothing yet while one of the
/// inputs has no fact at all, an unknown rank otherwise. Types stay as they are.
template <class C>
bool ranks_known(C& c, std::initializer_list<std::size_t> inputs) {
  bool known = true, pending = false;
  for (std::size_t i : inputs) {
    known = known && c.rank_known(i);
    pending = pending || c.pending(i);
  }
  if (!known && !pending)
    for (std::size_t o = 0; o < c.output_count(); ++o) c.set_rank_unknown(o);
  return known;
}
inline error rank_error(std::string_view tensor, std::size_t rank, std::string_view wanted) {
  std::string text("rank must be ");
  text.append(wanted).append(", not ").append(std::to_string(rank));
  return error(errc::rank_mismatch, text).at_tensor(tensor);
}
template <class C>
status need_rank(C& c, std::size_t i, std::size_t rank) {
  if (!c.rank_known(i) || c.dims(i).size() == rank) return {};
  return rank_error(c.input_name(i), c.dims(i).size(), std::to_string(rank));
}
template <class C>
status need_rank_least(C& c, std::size_t i, std::size_t rank) {
  if (!c.rank_known(i) || c.dims(i).size() >= rank) return {};
  return rank_error(c.input_name(i), c.dims(i).size(), "at least " + std::to_string(rank));
}
/// dims(i)[axis] must be `d`; an error names input i and the axis.
template <class C>
status need_dim(C& c, std::size_t i, std::size_t axis, typename C::value_type d,
                errc code = errc::dim_mismatch) {
  if (c.require_eq(c.dims(i)[axis], d, code)) return {};
  return c.fail(code, i, static_cast<int>(axis), c.text(c.dims(i)[axis]), c.text(d));
}
template <class C>
status need_same_type(C& c, std::size_t i, std::size_t j) {
  if (!c.has_input(i) || !c.has_input(j)) return {};
  const dtype a = c.input(i).type, b = c.input(j).type;
  if (a == b || a == dtype::undefined || b == dtype::undefined) return {};
  return c.fail(errc::type_mismatch, j, -1, std::string(name_of(a)), std::string(name_of(b)));
}
/// The type of input i if known, else of input j.
template <class C>
dtype type_of(C& c, std::size_t i, std::size_t j) {
  if (c.has_input(i) && c.input(i).type != dtype::undefined) return c.input(i).type;
  return c.has_input(j) ? c.input(j).type : dtype::undefined;
}

/// A size for axis `axis` of output o: the element itself, a bounded symbol when nothing is known
/// of it, nothing while it is undefined.
template <class C>
typename C::value_type size_or_fresh(C& c, std::size_t o, std::size_t axis,
                                     typename C::value_type d, interval range = {0, infinity}) {
  return is_known(d) || is_undefined(d) ? d : c.fresh(o, axis, range);
}
/// The largest value a size can have.
template <class C>
std::int64_t upper_bound(C& c, const typename C::value_type& d) {
  return is_known(d) ? c.bounds(d).hi : infinity;
}
/// Product of dims as a range.
template <class C>
interval count_range(C& c, std::span<const typename C::value_type> dims) {
  interval n = interval::point(1);
  for (const auto& d : dims) n = n * (is_known(d) ? c.bounds(d) : interval{0, infinity});
  return n;
}
/// All dims of input i as integers.
template <class C>
bool concrete_dims(C& c, std::size_t i, index_list& out) {
  out.clear();
  if (!c.rank_known(i)) return false;
  for (const auto& d : c.dims(i)) {
    std::int64_t k = 0;
    if (!is_known(d) || !c.domain().as_constant(d, k)) return false;
    out.push_back(k);
  }
  return true;
}
constexpr std::int64_t product_of(const index_list& dims) {
  std::int64_t n = 1;
  for (std::int64_t d : dims)
    if (!checked_mul(n, d, n)) return INT64_MAX;
  return n;
}
constexpr bool tracked(std::int64_t count) {
  return count >= 0 && count <= static_cast<std::int64_t>(max_tracked_elements);
}

/// What later versions take as inputs stands in attributes here.
template <class C>
status only_inputs(C& c, std::size_t count) {
  for (std::size_t i = count; i < c.input_count(); ++i)
    if (c.has_input(i))
      return c.fail(errc::arity, "version " + std::to_string(c.version()) + " takes " +
                                     std::to_string(count) + " inputs, not " +
                                     std::to_string(i + 1));
  return {};
}

/// Longer lists are no shapes.
inline constexpr std::int64_t most_dims = 64;
/// The length of vector input i, where that is known and may be a rank.
template <class C>
bool list_length(C& c, std::size_t i, std::int64_t& length) {
  return c.rank_known(i) && c.dims(i).size() == 1 && is_known(c.dims(i)[0]) &&
         c.domain().as_constant(c.dims(i)[0], length) && length >= 0 && length <= most_dims;
}

/// Dims of output 0 as the elements of vector input i say: symbols where an element is not known, a
/// whole shape of symbols where only the length is. False (with the output marked) when not even
/// that is known, or too early to tell.
template <class C>
bool dims_from_value(C& c, std::size_t i, typename C::dim_list& out) {
  out.clear();
  if (c.pending(i)) return false;
  if (c.has_value(i)) {
    std::size_t axis = 0;
    for (const auto& d : c.value(i)) out.push_back(size_or_fresh(c, 0, axis++, d));
    return true;
  }
  std::int64_t length = 0;
  if (c.rank_known(i) && c.dims(i).size() == 1 && is_undefined(c.dims(i)[0])) return false;
  if (list_length(c, i, length)) {
    for (std::int64_t k = 0; k < length; ++k)
      out.push_back(c.fresh(0, static_cast<std::size_t>(k), {0, infinity}));
    return true;
  }
  c.set_rank_unknown(0);
  return false;
}

/// Elements of an output, some of them unknown. Concrete shapes have no unknown elements: there the
/// whole value is dropped.
template <class C>
class element_list {
 public:
  using value_type = typename C::value_type;
  explicit element_list(C& c) : context_(c) {}
  void push(value_type v) { items_.push_back(v); }
  void push_constant(std::int64_t k) { items_.push_back(context_.domain().constant(k)); }
  void push_unknown() {
    if constexpr (is_symbolic<typename C::domain_type>)
      items_.push_back(dim::unknown());
    else if constexpr (is_concrete<typename C::domain_type>)
      dropped_ = true;
    else
      items_.push_back(interval{});
  }
  void push_truth(tri t) {
    if (t == tri::unknown)
      push_unknown();
    else
      push_constant(t == tri::yes ? 1 : 0);
  }
  void commit(std::size_t output) {
    if (!dropped_) context_.set_value(output, items_);
  }

 private:
  C& context_;
  small_vector<value_type, 8> items_;
  bool dropped_ = false;
};

/// Output o gets the elements of input i at `indices`.
template <class C>
void pick_elements(C& c, std::size_t i, std::span<const std::int64_t> indices, std::size_t o) {
  const auto from = c.value(i);
  small_vector<typename C::value_type, 8> to;
  for (std::int64_t k : indices) {
    if (k < 0 || static_cast<std::size_t>(k) >= from.size()) return;
    to.push_back(from[static_cast<std::size_t>(k)]);
  }
  c.set_value(o, to);
}
/// Output o has the elements of input i, unchanged.
template <class C>
void pass_elements(C& c, std::size_t i, std::size_t o) {
  if (c.has_value(i)) c.set_value(o, c.value(i));
}

/// Flat indices of a strided view: element (i0, i1, ...) is at offset + sum i_k*strides_k.
inline void strided_indices(const index_list& dims, const index_list& strides, std::int64_t offset,
                            index_list& out) {
  out.clear();
  const std::int64_t count = product_of(dims);
  if (!tracked(count)) return;
  index_list at(dims.size());
  for (std::int64_t n = 0; n < count; ++n) {
    out.push_back(offset);
    for (std::size_t k = dims.size(); k-- > 0;) {
      offset += strides[k];
      if (++at[k] < dims[k]) break;
      offset -= strides[k] * dims[k];
      at[k] = 0;
    }
  }
}
/// Strides of a dense row-major tensor.
constexpr index_list dense_strides(const index_list& dims) {
  index_list out(dims.size());
  std::int64_t step = 1;
  for (std::size_t k = dims.size(); k-- > 0; step *= dims[k]) out[k] = step;
  return out;
}
/// Flat indices into a tensor of `from` dims when it is broadcast to `to`.
inline void broadcast_indices(const index_list& from, const index_list& to, index_list& out) {
  const index_list dense = dense_strides(from);
  index_list strides(to.size());
  for (std::size_t k = 0; k < from.size(); ++k)
    if (from[k] != 1) strides[k + to.size() - from.size()] = dense[k];
  strided_indices(to, strides, 0, out);
}

// ---- shapes that many operators have ----

/// Output 0 has the shape of input 0.
template <class C>
status same_shape(C& c) {
  c.copy_shape(0, 0);
  return {};
}
template <class C>
status same_shape_and_type(C& c) {
  c.copy_shape(0, 0);
  c.copy_type(0, 0);
  return {};
}
/// Input 0 has the shape of output 0.
template <class C>
status same_shape_back(C& c) {
  if (c.output(0).rank_known()) c.refine_shape(0, c.output(0).dims.view());
  return {};
}

/// Base of operators whose first output has the shape and type of the first input.
struct keeps_shape {
  template <class C>
  static status forward(C& c) {
    return same_shape_and_type(c);
  }
  template <class C>
  static status backward(C& c) {
    return same_shape_back(c);
  }
};

/// Numpy broadcast of inputs [first, last) into dims; false (with outputs marked) when a rank is
/// missing.
template <class C>
status broadcast_inputs(C& c, std::size_t first, std::size_t last, typename C::dim_list& out,
                        bool& known) {
  known = true;
  bool pending = false;
  for (std::size_t i = first; i < last; ++i) {
    if (!c.has_input(i)) continue;
    known = known && c.rank_known(i);
    pending = pending || c.pending(i);
  }
  if (!known) {
    if (!pending) c.set_rank_unknown(0);
    return {};
  }
  bool started = false;
  for (std::size_t i = first; i < last; ++i) {
    if (!c.has_input(i)) continue;
    if (!started) {
      out = c.input(i).dims;
      started = true;
      continue;
    }
    std::size_t axis = 0;
    const typename C::dim_list before = out;
    if (rules::broadcast_shapes(c.domain(), c, before.view(), c.dims(i), out, &axis) != errc::ok) {
      const std::size_t rank = before.size() > c.dims(i).size() ? before.size() : c.dims(i).size();
      return c.fail(errc::broadcast, i, static_cast<int>(axis + c.dims(i).size() - rank),
                    c.text(before.view()), c.text(c.dims(i)));
    }
  }
  return {};
}

/// What an output says about the inputs [first, last) that were broadcast to it: a dim d where all
/// other inputs have a literal 1 there, nothing where another one may have it too.
template <class C>
status broadcast_back(C& c, std::size_t first, std::size_t last) {
  const auto& out = c.output(0);
  if (!out.rank_known()) return {};
  const std::size_t rank = out.dims.size();
  const auto one = c.domain().constant(1);
  for (std::size_t i = first; i < last; ++i) {
    if (!c.has_input(i)) continue;
    // The rank of one operand follows only when the others have a smaller one.
    std::size_t widest = 0;
    bool others_known = true;
    for (std::size_t j = first; j < last; ++j) {
      if (j == i || !c.has_input(j)) continue;
      if (!c.rank_known(j))
        others_known = false;
      else if (c.dims(j).size() > widest)
        widest = c.dims(j).size();
    }
    if (!others_known) continue;
    const bool rank_follows = widest < rank;
    if (!c.rank_known(i) && !rank_follows) continue;
    if (!c.rank_known(i)) c.refine_rank(i, rank);
    const std::size_t own = c.rank_known(i) ? c.dims(i).size() : rank;
    for (std::size_t axis = 0; axis < own; ++axis) {
      const std::size_t at = axis + rank - own;
      bool alone = true;
      for (std::size_t j = first; j < last && alone; ++j) {
        if (j == i || !c.has_input(j)) continue;
        const auto dims = c.dims(j);
        if (at + dims.size() < rank) continue;
        alone = c.domain().decide_eq(dims[at + dims.size() - rank], one) == tri::yes;
      }
      if (alone) c.refine(i, axis, out.dims[at]);
    }
  }
  return {};
}

}  // namespace detail
}  // namespace sod2::ops
