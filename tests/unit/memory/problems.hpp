// Seeded random placement problems, a brute-force optimum, and the shared instances.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <sod2/memory.hpp>

namespace problems {

struct random {
  std::uint64_t state;
  explicit random(std::uint64_t seed) : state(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  std::int64_t operator()(std::int64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<std::int64_t>((state >> 16) % static_cast<std::uint64_t>(below));
  }
};

struct shape {
  std::int64_t buffers = 8, steps = 10, largest = 16, unit = 1;
  bool alignments = false, guards = false, fixed = false;
};

inline sod2::placement_problem make(random& r, const shape& s) {
  sod2::placement_problem p;
  p.alignment = s.unit;
  if (s.guards) p.guards = {{0, 1, 0}, {0, 1, 1}, {1, 2, 0}, {1, 2, 1}, {0, 3, 0}};
  for (std::int64_t i = 0; i < s.buffers; ++i) {
    sod2::buffer b;
    b.lower = r(s.steps);
    b.upper = b.lower + r(s.steps - b.lower + 1);
    b.size = r(s.largest + 1);
    if (s.alignments && r(2) == 0) b.alignment = std::int64_t{1} << r(4);
    if (s.guards) b.guard = static_cast<std::uint32_t>(r(6));
    p.buffers.push_back(b);
  }
  if (s.fixed && s.buffers > 0) {  // one fixed buffer never overlaps another fixed one
    p.buffers[0].fixed_offset = 16 * r(4);
    p.buffers[0].alignment = 16;
  }
  return p;
}

/// Least peak by trying all orders with first fit, which reaches every canonical placement.
inline std::int64_t least_peak(const sod2::placement_problem& p) {
  const auto n = static_cast<std::uint32_t>(p.buffers.size());
  std::int64_t grain = 0;
  for (const sod2::buffer& b : p.buffers)
    if (b.size > 0 && b.lower < b.upper)
      grain = sod2::gcd(grain, b.alignment != 0 ? b.alignment : p.alignment);
  std::string order(n, '\0');
  for (std::uint32_t i = 0; i < n; ++i) order[i] = static_cast<char>(i);
  std::int64_t best = INT64_MAX;
  do {
    std::int64_t peak = 0;
    sod2::vector<std::int64_t> at(n, -1);
    for (const char c : order) {
      const auto i = static_cast<std::uint32_t>(c);
      const sod2::buffer& b = p.buffers[i];
      if (b.size == 0 || b.lower == b.upper) continue;
      const std::int64_t step = b.alignment != 0 ? b.alignment : p.alignment;
      std::int64_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (std::uint32_t j = 0; j < n; ++j) {
          if (at[j] < 0 || !sod2::conflict(p, b, p.buffers[j])) continue;
          if (offset < at[j] + p.buffers[j].size && at[j] < offset + b.size) {
            offset = sod2::align_up(at[j] + p.buffers[j].size, step);
            moved = true;
          }
        }
      }
      at[i] = offset;
      peak = std::max(peak, sod2::align_up(offset + b.size, grain));
    }
    best = std::min(best, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

/// Text of a file below the shared instances; empty where they are not there.
inline std::string shared_text(const std::string& name) {
  const char* root = std::getenv("SOD2_SHARED");
  if (root == nullptr) return {};
  std::ifstream in(std::string(root) + "/instances/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace problems
