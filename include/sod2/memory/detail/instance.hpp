// A placement problem prepared for planners: only the buffers that take room, steps numbered
// densely, conflicts as lists, the lower bound.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/checked.hpp>
#include <sod2/core/guard.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/memory/problem.hpp>

namespace sod2::detail {

struct placement_instance {
  std::uint32_t count = 0;      // items: buffers that take room
  std::uint32_t slots = 0;      // between two slots, nothing starts or ends
  std::int64_t grain = 1;       // all offsets are multiples of it
  std::int64_t bound = 0;       // no placement is lower, bytes
  std::uint32_t peak_slot = 0;  // where the most bytes are live
  std::int64_t fixed_top = 0;   // highest end of a fixed item
  bool same_alignment = true;   // every alignment equals the grain
  bool any_fixed = false;
  bool guarded = false;
  vector<std::uint32_t> source;  // item -> buffer of the problem
  vector<std::int64_t> size;     // rounded up to the grain
  vector<std::int64_t> alignment;
  vector<std::int64_t> fixed;          // offset or -1
  vector<std::uint32_t> lower, upper;  // half-open slots
  vector<std::int64_t> live;           // bytes live in a slot, guards taken into account
  vector<std::uint32_t> first;         // conflicts of i: other[first[i]] .. other[first[i + 1]]
  vector<std::uint32_t> other;
  vector<std::uint32_t> by_start;  // items by lower slot
};

/// Bytes of the worst run: arms of one choice are alternatives. `own[g]` holds the bytes of guard g
/// and is consumed.
inline std::int64_t worst_run(std::span<const guard> guards, vector<std::int64_t>& own) {
  // Going backwards, all arms of a choice and all their descendants are complete when its first
  // guard comes up; that one passes the largest arm on to the parent.
  for (std::size_t g = guards.size(); g > 0; --g) {
    const std::uint32_t choice = guards[g - 1].choice;
    bool first = true;
    for (std::size_t h = 1; h < g && first; ++h) first = guards[h - 1].choice != choice;
    if (!first) continue;
    std::int64_t largest = 0;
    for (std::size_t h = g; h <= guards.size(); ++h)
      if (guards[h - 1].choice == choice && own[h] > largest) largest = own[h];
    own[guards[g - 1].parent] += largest;
  }
  return own[0];
}

/// Live bytes of every slot of an instance without guards, and the bound.
inline void find_bound(placement_instance& in) {
  vector<std::int64_t> change(in.slots + 1, 0);
  for (std::uint32_t i = 0; i < in.count; ++i) {
    change.data()[in.lower.data()[i]] += in.size.data()[i];
    change.data()[in.upper.data()[i]] -= in.size.data()[i];
  }
  in.live.resize(in.slots);
  std::int64_t bytes = 0;
  for (std::uint32_t s = 0; s < in.slots; ++s) {
    in.live.data()[s] = bytes += change.data()[s];
    if (bytes > in.bound) {
      in.bound = bytes;
      in.peak_slot = s;
    }
  }
  if (in.fixed_top > in.bound) in.bound = in.fixed_top;
}

/// Everything but the conflicts.
inline placement_instance prepare_steps(const placement_problem& p) {
  placement_instance in;
  const std::size_t total = p.buffers.size();
  std::int64_t grain = 0;
  std::int64_t lowest = INT64_MAX, highest = INT64_MIN;
  for (std::size_t i = 0; i < total; ++i) {
    const buffer& b = p.buffers.data()[i];
    if (b.size <= 0 || b.lower >= b.upper) continue;
    const std::int64_t a = b.alignment != 0 ? b.alignment : p.alignment;
    if (a != grain) grain = gcd(grain, a);
    if (b.lower < lowest) lowest = b.lower;
    if (b.upper > highest) highest = b.upper;
    in.source.push_back(static_cast<std::uint32_t>(i));
  }
  const std::uint32_t n = in.count = static_cast<std::uint32_t>(in.source.size());
  in.first.assign(n + 1, 0);
  if (n == 0) return in;
  in.grain = grain;
  in.size.resize(n);
  in.alignment.resize(n);
  in.fixed.resize(n);
  in.lower.resize(n);
  in.upper.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const buffer& b = p.buffers.data()[in.source.data()[i]];
    const std::int64_t a = b.alignment != 0 ? b.alignment : p.alignment;
    const std::int64_t size = align_up(b.size, grain);
    in.size.data()[i] = size;
    in.alignment.data()[i] = a;
    in.fixed.data()[i] = b.fixed_offset;
    if (a != grain) in.same_alignment = false;
    in.guarded |= b.guard != 0;
    if (b.fixed_offset >= 0) {
      in.any_fixed = true;
      if (b.fixed_offset + size > in.fixed_top) in.fixed_top = b.fixed_offset + size;
    }
  }

  // Dense slots: one for each step at which something starts (nothing can grow in between). Small
  // step numbers are counted, others sorted.
  const auto span = static_cast<std::uint64_t>(highest) - static_cast<std::uint64_t>(lowest);
  if (span <= 8ULL * n + 64) {
    vector<std::uint32_t> rank(static_cast<std::size_t>(span) + 1, 0);
    for (std::uint32_t i = 0; i < n; ++i)
      rank.data()[p.buffers.data()[in.source.data()[i]].lower - lowest] = 1;
    std::uint32_t slots = 0;
    for (std::size_t s = 0; s < rank.size(); ++s) {
      const std::uint32_t here = rank.data()[s];
      rank.data()[s] = slots;
      slots += here;
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      const buffer& b = p.buffers.data()[in.source.data()[i]];
      in.lower.data()[i] = rank.data()[b.lower - lowest];
      in.upper.data()[i] = rank.data()[b.upper - lowest];
    }
    in.slots = slots;
  } else {
    vector<std::int64_t> starts(n);
    for (std::uint32_t i = 0; i < n; ++i) starts[i] = p.buffers[in.source[i]].lower;
    stable_sort(starts.begin(), starts.end(), [](std::int64_t a, std::int64_t b) { return a < b; });
    std::uint32_t slots = 0;
    for (std::uint32_t i = 0; i < n; ++i)
      if (i == 0 || starts[i] != starts[slots - 1]) starts[slots++] = starts[i];
    const auto rank_of = [&](std::int64_t step) {  // number of starts before the step
      std::uint32_t low = 0, high = slots;
      while (low < high) {
        const std::uint32_t mid = (low + high) / 2;
        if (starts.data()[mid] < step)
          low = mid + 1;
        else
          high = mid;
      }
      return low;
    };
    for (std::uint32_t i = 0; i < n; ++i) {
      in.lower[i] = rank_of(p.buffers[in.source[i]].lower);
      in.upper[i] = rank_of(p.buffers[in.source[i]].upper);
    }
    in.slots = slots;
  }

  // Items by start, by counting.
  in.by_start.resize(n);
  {
    vector<std::uint32_t> at(in.slots + 1, 0);
    for (std::uint32_t i = 0; i < n; ++i) ++at.data()[in.lower.data()[i] + 1];
    for (std::uint32_t s = 0; s < in.slots; ++s) at.data()[s + 1] += at.data()[s];
    for (std::uint32_t i = 0; i < n; ++i) in.by_start.data()[at.data()[in.lower.data()[i]]++] = i;
  }

  if (!in.guarded) {
    find_bound(in);
    return in;
  }
  in.live.assign(in.slots, 0);
  const std::size_t width = p.guards.size() + 1;
  vector<std::int64_t> now(width, 0), copy;
  vector<std::uint32_t> by_end(in.by_start.view());
  stable_sort(by_end.begin(), by_end.end(),
              [&](std::uint32_t a, std::uint32_t b) { return in.upper[a] < in.upper[b]; });
  std::uint32_t started = 0, ended = 0;
  for (std::uint32_t s = 0; s < in.slots; ++s) {
    for (; ended < n && in.upper[by_end[ended]] <= s; ++ended)
      now[p.buffers[in.source[by_end[ended]]].guard] -= in.size[by_end[ended]];
    for (; started < n && in.lower[in.by_start[started]] <= s; ++started)
      now[p.buffers[in.source[in.by_start[started]]].guard] += in.size[in.by_start[started]];
    copy = now;
    in.live[s] = worst_run(p.guards.view(), copy);
  }
  for (std::uint32_t s = 0; s < in.slots; ++s)
    if (in.live.data()[s] > in.bound) {
      in.bound = in.live.data()[s];
      in.peak_slot = s;
    }
  if (in.fixed_top > in.bound) in.bound = in.fixed_top;
  return in;
}

/// Fills in the conflicts: a sweep over the live items meets each pair once, when the later one
/// starts.
inline void add_conflicts(const placement_problem& p, placement_instance& in) {
  const std::uint32_t n = in.count;
  in.first.assign(n + 1, 0);
  in.other.clear();
  const auto apart = [&](std::uint32_t i, std::uint32_t j) {
    const std::uint32_t a = p.buffers[in.source[i]].guard, b = p.buffers[in.source[j]].guard;
    return a != 0 && b != 0 && exclusive(p.guards.view(), a, b);
  };
  vector<std::uint32_t> active, pairs;
  for (std::uint32_t k = 0; k < n; ++k) {
    const std::uint32_t i = in.by_start.data()[k];
    const std::uint32_t start = in.lower.data()[i];
    std::uint32_t kept = 0;
    pairs.reserve(pairs.size() + 1 + active.size());
    const std::size_t header = pairs.size();
    pairs.push_back(0);
    for (std::uint32_t a = 0; a < active.size(); ++a) {
      const std::uint32_t j = active.data()[a];
      if (in.upper.data()[j] <= start) continue;
      active.data()[kept++] = j;
      if (in.guarded && apart(i, j)) continue;
      pairs.push_back(j);
      ++in.first.data()[j + 1];
    }
    const auto met = static_cast<std::uint32_t>(pairs.size() - header - 1);
    pairs.data()[header] = met;
    in.first.data()[i + 1] += met;
    active.resize(kept);
    active.push_back(i);
  }
  for (std::uint32_t i = 0; i < n; ++i) in.first.data()[i + 1] += in.first.data()[i];
  in.other.resize(in.first.data()[n]);
  {
    vector<std::uint32_t> at(in.first.view());
    const std::uint32_t* from = pairs.data();
    for (std::uint32_t k = 0; k < n; ++k) {
      const std::uint32_t i = in.by_start.data()[k];
      for (std::uint32_t met = *from++; met > 0; --met) {
        const std::uint32_t j = *from++;
        in.other.data()[at.data()[i]++] = j;
        in.other.data()[at.data()[j]++] = i;
      }
    }
  }
}

inline placement_instance prepare(const placement_problem& p) {
  placement_instance in = prepare_steps(p);
  add_conflicts(p, in);
  return in;
}

/// The instance of the items that are not flagged, without conflicts; slots stay as they are.
inline placement_instance without(const placement_instance& in, std::span<const char> flagged) {
  placement_instance out;
  out.slots = in.slots;
  out.grain = in.grain;
  out.same_alignment = in.same_alignment;
  vector<std::uint32_t> renamed(in.count, 0);
  for (std::uint32_t i = 0; i < in.count; ++i) {
    if (flagged[i] != 0) continue;
    renamed.data()[i] = out.count++;
    out.source.push_back(in.source.data()[i]);
    out.size.push_back(in.size.data()[i]);
    out.alignment.push_back(in.alignment.data()[i]);
    out.fixed.push_back(in.fixed.data()[i]);
    out.lower.push_back(in.lower.data()[i]);
    out.upper.push_back(in.upper.data()[i]);
  }
  for (const std::uint32_t i : in.by_start)
    if (flagged[i] == 0) out.by_start.push_back(renamed.data()[i]);
  find_bound(out);
  return out;
}

/// The plan for the problem from offsets of the items and a proved lower bound.
inline placement_plan make_plan(const placement_problem& p, const placement_instance& in,
                                std::span<const std::int64_t> item_offsets, std::int64_t bound) {
  placement_plan plan;
  plan.offsets.resize(p.buffers.size(), 0);
  for (std::size_t i = 0; i < p.buffers.size(); ++i)
    if (p.buffers.data()[i].fixed_offset >= 0)
      plan.offsets.data()[i] = p.buffers.data()[i].fixed_offset;
  for (std::uint32_t i = 0; i < in.count; ++i) {
    const std::int64_t at = item_offsets[i];
    plan.offsets.data()[in.source.data()[i]] = at;
    if (at + in.size.data()[i] > plan.peak_bytes) plan.peak_bytes = at + in.size.data()[i];
  }
  plan.lower_bound_bytes = bound;
  plan.exact = plan.peak_bytes == bound;
  plan.feasible = p.capacity == 0 || plan.peak_bytes <= p.capacity;
  return plan;
}

}  // namespace sod2::detail
