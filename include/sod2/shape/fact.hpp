// What is known of a value: the S-map entry (rank, dims) and the V-map entry (small tensors as
// expressions), for tensors, sequences and optionals (paper section 3, RDP lattice).
#pragma once

#include <cstdint>

#include <sod2/core/dtype.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/expr/dim.hpp>

namespace sod2 {

/// `optional_sequence`: an optional whose element is a sequence.
enum class fact_kind : std::uint8_t { undefined, tensor, sequence, optional, optional_sequence };

/// Sequences and optionals.
constexpr bool is_container(fact_kind k) { return k > fact_kind::tensor; }

/// Lattice of ranks: undefined > known > unknown.
enum class rank_state : std::uint8_t { undefined, known, unknown };

/// Larger tensors are not tracked as values.
inline constexpr std::size_t max_tracked_elements = 64;

/// A fact about one value over dims of type V (integers, intervals or symbolic dims).
///
/// Tensors: `dims` holds `rank` entries once the rank is known; an entry may itself be undefined or
/// unknown. `elements` holds the row-major elements when `has_value`; integers and booleans are
/// integer expressions, floats are `real` expressions (over plain integers the bits of a double);
/// single elements may be unknown.
/// Sequences and optionals: type, rank and dims describe the join of the elements (undefined while
/// there is none), `length` the number of elements (0 or 1 for an optional).
template <class V>
struct basic_fact {
  fact_kind kind = fact_kind::undefined;
  dtype type = dtype::undefined;
  rank_state rank = rank_state::undefined;
  bool has_value = false;
  small_vector<V, 6> dims;
  small_vector<V, 2> elements;
  V length{};

  constexpr bool rank_known() const { return rank == rank_state::known; }
  constexpr bool is_scalar() const { return rank_known() && dims.empty(); }
};

using symbolic_fact = basic_fact<dim>;

}  // namespace sod2
