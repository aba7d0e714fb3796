// A symbolic dimension: a handle to a canonical, interned expression of a dim_context.
#pragma once

#include <cstdint>

namespace sod2 {

/// Kinds of canonical expressions. Sums and products form polynomials with integer coefficients
/// over atoms; everything from `symbol` to `real` is an atom. mod, ceildiv and alignup are sugar:
/// `mod(e, k) = e - k*floordiv(e, k)`, so that no two spellings of one size differ.
enum class dim_kind : std::uint8_t {
  undefined,  // top of the lattice: nothing known yet
  unknown,    // bottom (nac): not a function of symbols
  overflow,   // sticky error value
  constant,
  symbol,
  floordiv,  // floor(e / k), k > 1
  min,
  max,
  broadcast,  // the numpy result of two dims: 1 yields to the other
  real,       // floating-point operation evaluated in IEEE as a kernel would
  product,    // atoms with powers
  sum,        // coefficients times products, plus a constant
};

/// Operations of `real` nodes. The integer-valued ones (floor_int ...) may enter integer
/// polynomials; the others stand for elements of floating-point tensors.
enum class real_op : std::uint8_t {
  literal,   // a floating-point constant
  from_int,  // conversion of an integer expression
  add,
  sub,
  mul,
  div,
  min,
  max,
  neg,
  sqrt,
  floor,  // float -> float
  ceil,
  round,      // half to even, as ONNX Round
  floor_int,  // float -> integer
  ceil_int,
  round_int,
  trunc_int,  // conversion as Cast does it
};

/// A value handle, meaningful with its context only. Equality of handles is equality of canonical
/// expressions; `decide_eq` of the context asks for provable equality.
struct dim {
  std::uint32_t id = 0;
  friend constexpr bool operator==(dim, dim) = default;

  constexpr bool is_undefined() const { return id == 0; }
  constexpr bool is_unknown() const { return id == 1; }
  constexpr bool is_overflow() const { return id == 2; }
  /// A constant, symbol or expression.
  constexpr bool is_known() const { return id > 2; }

  static constexpr dim undefined() { return {0}; }
  static constexpr dim unknown() { return {1}; }
  static constexpr dim overflow() { return {2}; }
};

}  // namespace sod2
