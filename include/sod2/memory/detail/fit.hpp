// Placing items one after another into the gaps that their conflicts leave.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sod2/core/checked.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/memory/detail/instance.hpp>

namespace sod2::detail {

enum class fit_rule : std::uint8_t {
  first,  // lowest gap that is large enough
  best,   // smallest gap that is large enough
};

inline constexpr std::int64_t unplaced = -1;

/// Reused memory of the placing loop.
struct fit_scratch {
  struct piece {
    std::int64_t from, to;
  };
  vector<piece> pieces;
  vector<std::int64_t> offsets;
  std::uint64_t work = 0;  // conflicts looked at, the planners' deterministic clock
};

/// Where item i goes among the placed items it conflicts with.
inline std::int64_t fit(const placement_instance& in, std::uint32_t i, fit_rule rule,
                        fit_scratch& s) {
  const std::uint32_t begin = in.first.data()[i], end = in.first.data()[i + 1];
  s.work += end - begin + 4;
  fit_scratch::piece* pieces = s.pieces.data();
  std::size_t n = 0;
  const std::int64_t* offsets = s.offsets.data();
  const std::int64_t* sizes = in.size.data();
  for (std::uint32_t c = begin; c < end; ++c) {
    const std::uint32_t j = in.other.data()[c];
    const std::int64_t at = offsets[j];
    if (at == unplaced) continue;
    pieces[n++] = {at, at + sizes[j]};
  }
  const std::int64_t size = sizes[i];
  const std::int64_t alignment = in.same_alignment ? 1 : in.alignment.data()[i];
  if (rule == fit_rule::first && n <= 16) {
    // Jump past everything in the way until nothing is; cheaper than sorting, as few jumps do.
    for (std::int64_t at = 0;;) {
      std::int64_t next = at;
      const std::int64_t top = at + size;
      for (std::size_t k = 0; k < n; ++k) {
        const std::int64_t to = pieces[k].from < top ? pieces[k].to : 0;
        next = next < to ? to : next;
      }
      if (next == at) return at;
      at = alignment == 1 ? next : align_up(next, alignment);
    }
  }
  std::sort(pieces, pieces + n, [](const auto& a, const auto& b) { return a.from < b.from; });
  std::int64_t floor = 0, best = unplaced, best_gap = INT64_MAX;
  for (std::size_t k = 0; k < n; ++k) {
    const std::int64_t gap = pieces[k].from - floor;
    if (gap >= size && gap < best_gap) {
      if (rule == fit_rule::first) return floor;
      best = floor;
      best_gap = gap;
    }
    if (pieces[k].to > floor)
      floor = alignment == 1 ? pieces[k].to : align_up(pieces[k].to, alignment);
  }
  return best != unplaced ? best : floor;
}

/// Forgets all but the fixed items.
inline void reset(const placement_instance& in, fit_scratch& s) {
  s.offsets.resize(in.count);
  s.pieces.resize(in.count);
  for (std::uint32_t i = 0; i < in.count; ++i) s.offsets.data()[i] = in.fixed.data()[i];
}

/// Places all items in the given order and returns the peak, or -1 as soon as it would exceed
/// `limit`. Offsets are left in the scratch.
inline std::int64_t place_all(const placement_instance& in, std::span<const std::uint32_t> order,
                              fit_rule rule, std::int64_t limit, fit_scratch& s) {
  reset(in, s);
  std::int64_t peak = in.fixed_top;
  if (peak > limit) return -1;
  for (const std::uint32_t i : order) {
    if (s.offsets.data()[i] != unplaced) continue;
    const std::int64_t at = fit(in, i, rule, s);
    const std::int64_t end = at + in.size.data()[i];
    if (end > peak) {
      if (end > limit) return -1;
      peak = end;
    }
    s.offsets.data()[i] = at;
  }
  return peak;
}

}  // namespace sod2::detail
