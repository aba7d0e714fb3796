// The judge of placement plans. It shares no code with the planners.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>

#include <sod2/core/checked.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/memory/problem.hpp>

namespace sod2 {

/// Is the problem itself well formed? errc::invalid_argument names the buffer if it isn't.
inline status validate(const placement_problem& p) {
  const auto bad = [](std::size_t i, const char* what) {
    return error(errc::invalid_argument, "buffer " + std::to_string(i) + " " + what);
  };
  if (p.alignment < 1) return error(errc::invalid_argument, "alignment is below 1");
  if (p.capacity < 0) return error(errc::invalid_argument, "capacity is negative");
  if (!well_formed(p.guards.view()))
    return error(errc::invalid_argument, "guards are not a forest of choices");
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    const buffer& b = p.buffers[i];
    if (b.size < 0) return bad(i, "has a negative size");
    if (b.upper < b.lower) return bad(i, "ends before it starts");
    if (b.alignment < 0) return bad(i, "has a negative alignment");
    if (b.guard > p.guards.size()) return bad(i, "has an unknown guard");
    const std::int64_t alignment = b.alignment != 0 ? b.alignment : p.alignment;
    if (b.fixed_offset >= 0 && b.fixed_offset % alignment != 0)
      return bad(i, "is fixed at a misaligned offset");
    std::int64_t need = 0;
    // Even stacked on top of each other, with padding, all must fit into 62 bits.
    if (!checked_add(b.size, alignment, need) || !checked_add(sum, need, sum) ||
        !checked_add(sum, b.fixed_offset > 0 ? b.fixed_offset : 0, sum) || sum > (INT64_MAX >> 1))
      return error(errc::overflow, "sizes do not fit into 62 bits");
  }
  return {};
}

/// Checks a plan against its problem from first principles: alignment, fixed offsets, overlap of
/// conflicting buffers, the claimed peak, bound and exactness, and the capacity where the plan
/// claims to be feasible. Quadratic in the buffers live at one step.
/// Errors: errc::invalid_plan with the buffers' numbers; errc::infeasible above the capacity.
inline status validate(const placement_problem& p, const placement_plan& plan) {
  SOD2_TRY(validate(p));
  const auto bad = [](std::string text) { return error(errc::invalid_plan, std::move(text)); };
  const std::size_t n = p.buffers.size();
  if (plan.offsets.size() != n) return bad("plan has a wrong number of offsets");

  std::int64_t grain = 0, top = 0;
  for (const buffer& b : p.buffers)
    if (b.size > 0 && b.lower < b.upper)
      grain = std::gcd(grain, b.alignment != 0 ? b.alignment : p.alignment);
  if (grain == 0) grain = 1;
  vector<std::uint32_t> by_start;
  for (std::size_t i = 0; i < n; ++i) {
    const buffer& b = p.buffers[i];
    const std::int64_t at = plan.offsets[i];
    const std::string name = "buffer " + std::to_string(i);
    if (at < 0) return bad(name + " has a negative offset");
    if (b.fixed_offset >= 0 && at != b.fixed_offset) return bad(name + " left its fixed offset");
    if (b.size == 0 || b.lower == b.upper) continue;
    if (at % (b.alignment != 0 ? b.alignment : p.alignment) != 0)
      return bad(name + " is misaligned");
    if (at > plan.peak_bytes - b.size) return bad(name + " ends above the claimed peak");
    top = std::max(top, (at + b.size + grain - 1) / grain * grain);
    by_start.push_back(static_cast<std::uint32_t>(i));
  }
  if (top != plan.peak_bytes) return bad("claimed peak is not the highest end");

  std::sort(by_start.begin(), by_start.end(), [&](std::uint32_t a, std::uint32_t b) {
    return p.buffers[a].lower < p.buffers[b].lower;
  });
  vector<std::uint32_t> live;
  for (std::uint32_t i : by_start) {
    const buffer& b = p.buffers[i];
    std::size_t kept = 0;
    for (std::uint32_t j : live) {
      const buffer& c = p.buffers[j];
      if (c.upper <= b.lower) continue;
      live[kept++] = j;
      if (!conflict(p, b, c)) continue;
      if (plan.offsets[i] < plan.offsets[j] + c.size && plan.offsets[j] < plan.offsets[i] + b.size)
        return bad("buffers " + std::to_string(j) + " and " + std::to_string(i) + " overlap");
    }
    live.resize(kept);
    live.push_back(i);
  }
  if (plan.lower_bound_bytes > plan.peak_bytes) return bad("lower bound is above the peak");
  if (plan.lower_bound_bytes == plan.peak_bytes && !plan.exact)
    return bad("plan meets its bound but is not called exact");
  const bool fits = p.capacity == 0 || plan.peak_bytes <= p.capacity;
  if (plan.feasible != fits) return bad("plan and capacity disagree on feasibility");
  if (!fits)
    return error(errc::infeasible, "peak of " + std::to_string(plan.peak_bytes) +
                                       " bytes is above the capacity of " +
                                       std::to_string(p.capacity));
  return {};
}

}  // namespace sod2
