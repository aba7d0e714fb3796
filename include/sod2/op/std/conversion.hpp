// Operators that change the element type.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/elements.hpp>
#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops {

namespace detail {
template <class C>
status cast_value(C& c, dtype to) {
  if (!c.has_value(0)) return {};
  element_list<C> out(c);
  for (const auto& v : c.value(0)) {
    auto r = v;
    if (cast_element(c.domain(), c.input(0).type, to, v, r))
      out.push(r);
    else if (is_undefined(v))
      out.push(v);
    else
      out.push_unknown();
  }
  out.commit(0);
  return {};
}
}  // namespace detail

/// Cast-1 (the type is a string), 6, 9, 13, 19, 21, 23, 24, 25, 28: shape of the input, type `to`.
struct cast {
  static constexpr int since[] = {1, 6, 9, 13, 19, 21, 23, 24, 25, 28};
  static constexpr op_info info{.name = "Cast", .versions = since, .map = mapping::one_to_one};
  template <class C>
  static status target(C& c, dtype& to) {
    if (c.version() >= 6) {
      if (!c.attributes()("to")) return detail::no_attribute("to");
      return detail::read_type(c.attributes(), "to", to);
    }
    std::string_view name;
    SOD2_TRY(detail::require(c.attributes(), "to", name));
    constexpr std::string_view names[] = {
        "UNDEFINED", "FLOAT", "UINT8",   "INT8",   "UINT16", "INT16",  "INT32",     "INT64",
        "STRING",    "BOOL",  "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128"};
    for (std::size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
      if (names[i] == name) to = static_cast<dtype>(i);
    return {};
  }
  template <class C>
  static status forward(C& c) {
    dtype to = dtype::undefined;
    SOD2_TRY(target(c, to));
    c.set_type(0, to);
    return detail::same_shape(c);
  }
  template <class C>
  static status backward(C& c) {
    return detail::same_shape_back(c);
  }
  template <class C>
  static status value(C& c) {
    dtype to = dtype::undefined;
    SOD2_TRY(target(c, to));
    return detail::cast_value(c, to);
  }
};

/// CastLike-15, 19, 21, 23, 24, 25: shape of the input, type of the second one.
struct cast_like {
  static constexpr int since[] = {15, 19, 21, 23, 24, 25};
  static constexpr op_info info{
      .name = "CastLike", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, c.input(1).type);
    return detail::same_shape(c);
  }
  template <class C>
  static status backward(C& c) {
    return detail::same_shape_back(c);
  }
  template <class C>
  static status value(C& c) {
    return detail::cast_value(c, c.input(1).type);
  }
};

/// BitCast-26: type `to`; widths differ in the last dim: (..., D) of a bits is (..., D*a/b) of b.
struct bit_cast {
  static constexpr int since[] = {26};
  static constexpr op_info info{.name = "BitCast", .versions = since, .map = mapping::one_to_one};
  template <class C>
  static status forward(C& c) {
    dtype to = dtype::undefined;
    SOD2_TRY(cast::target(c, to));
    c.set_type(0, to);
    if (!detail::ranks_known(c, {0})) return {};
    const unsigned have = bits_of(c.input(0).type), want = bits_of(to);
    typename C::dim_list dims = c.input(0).dims;
    if (have != want) {
      if (have == 0 || want == 0) {
        if (!dims.empty()) dims.back() = unknown_dim(c.domain());
      } else {
        SOD2_TRY(detail::need_rank_least(c, 0, 1));
        auto& domain = c.domain();
        const auto bits = domain.mul(dims.back(), domain.constant(have));
        dims.back() = domain.floordiv(bits, want);
        if (!c.require_eq(domain.mul(dims.back(), domain.constant(want)), bits, errc::divisibility))
          return c.fail(errc::divisibility, 0, static_cast<int>(dims.size()) - 1, c.text(bits),
                        std::to_string(want));
      }
    }
    c.set_shape(0, dims);
    return {};
  }
};

using conversion_ops = op_set<cast, cast_like, bit_cast>;

}  // namespace sod2::ops
