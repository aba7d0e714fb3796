// The placement problem and its plan: plain data.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sod2/core/guard.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/memory/fwd.hpp>

namespace sod2 {

/// One piece of memory with a lifetime. Two buffers conflict when their live ranges meet, both have
/// bytes, and their guards aren't exclusive. A buffer without bytes or without steps takes no room.
struct buffer {
  std::int64_t lower = 0;          // first step where it is live
  std::int64_t upper = 0;          // first step where it no longer is; requires upper >= lower
  std::int64_t size = 0;           // bytes, >= 0
  std::int64_t alignment = 0;      // bytes; 0: the problem's
  std::int64_t fixed_offset = -1;  // bytes from the arena's start; -1: the planner chooses
  std::uint32_t guard = 0;         // number in placement_problem::guards plus one; 0: always live
};

/// Find an offset for every buffer so that no two conflicting ones overlap, and the arena is small.
struct placement_problem {
  vector<buffer> buffers;
  std::int64_t alignment = 64;  // of buffers that don't say otherwise, bytes, >= 1
  std::int64_t capacity = 0;    // bytes; 0: no limit
  vector<guard> guards;
};

/// Offsets in bytes, one a buffer. A plan is a certificate of its own quality: no plan at all can
/// be below `lower_bound_bytes`, and `exact` says that none is below `peak_bytes`. Ends are counted
/// rounded up to the problem's granularity (the greatest common divisor of all alignments), which
/// is what keeps bound and peak comparable.
struct placement_plan {
  vector<std::int64_t> offsets;
  std::int64_t peak_bytes = 0;
  std::int64_t lower_bound_bytes = 0;
  bool exact = false;
  bool feasible = true;  // peak_bytes <= capacity, if there is one
};

/// Both take room, at a common step of a common run.
constexpr bool conflict(const placement_problem& p, const buffer& a, const buffer& b) {
  return a.size > 0 && b.size > 0 && a.lower < a.upper && b.lower < b.upper && a.lower < b.upper &&
         b.lower < a.upper &&
         (a.guard == 0 || b.guard == 0 || !exclusive(p.guards.view(), a.guard, b.guard));
}

}  // namespace sod2
