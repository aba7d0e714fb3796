// What a compile-time model says when shapes do not fit: the sentence of core's table, and a type
// that shows the shapes. After the first refusal nothing more is reported.
#pragma once

#include <sod2/core/diagnostic.hpp>
#include <sod2/shape/static_shape.hpp>

/// `condition` should be the member of a diag:: type, since compilers print that. The sentence is
/// the table's, which the first assertion checks.
#define SOD2_STATIC_CHECK(code, sentence, ...)                                             \
  static_assert(::sod2::text_of(code) == sentence, "the sentence differs from the table"); \
  static_assert(__VA_ARGS__, "sod2: " sentence)

namespace sod2::diag {

/// A reshape from one shape to another, with both counts of elements.
template <class From, class To, class FromCount, class ToCount>
struct element_count {
  static constexpr bool equal = __is_same(FromCount, ToCount);
};
/// A layer and the shape that it was given.
template <class Layer, class Input>
struct rank {
  static constexpr bool accepted = false;
};
/// Two shapes that are added.
template <class Left, class Right>
struct shapes {
  static constexpr bool equal = false;
};
/// Weights have a fixed size: the dim that decides it must be a literal.
template <class Layer, class Input, class Dim>
struct weights {
  static constexpr bool fixed = false;
};
/// The window is larger than any input that the shape allows.
template <class Layer, class Input>
struct window {
  static constexpr bool fits = false;
};
/// A dim of an input must be a symbol or a literal.
template <class Input, class Dim>
struct input_dim {
  static constexpr bool plain = false;
};

}  // namespace sod2::diag
