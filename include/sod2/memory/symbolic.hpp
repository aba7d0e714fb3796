// Layouts whose offsets are formulas of the sizes: valid at every binding, evaluated without
// allocation, printable as one expression.
//
// Fix an order of the buffers and an end of the arena for each. A buffer at the low end lies on top
// of the earlier low ones that it conflicts with, `offset_i = max over earlier conflicting j of
// end_j`; one at the high end hangs below the earlier high ones in the same way, counted from the
// arena's end. The arena is as large as the largest low end and high end that meet. That is a valid
// placement whatever the sizes are; only its quality depends on them.
//
// Where lifetimes nest at each end (of two buffers at one end, the one born later dies first), no
// hole ever opens and the arena is the largest sum of live bytes, at all sizes. Networks come close
// to that: chains alternate between the ends. Elsewhere orders of good placements at sample sizes
// help, and a layout keeps a few formulas and takes the lowest at bind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <sod2/core/checked.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/expr/context.hpp>
#include <sod2/memory/problem.hpp>

namespace sod2 {

/// One order of stacking. `below` lists what a buffer directly rests on: conflicts that are below
/// another conflict anyway are left out, which changes no offset at any size.
struct layout_formula {
  static constexpr std::uint32_t nothing = 0xffffffff;
  /// A buffer of the low end and one of the high end that must not meet; either may be `nothing`.
  struct meeting {
    std::uint32_t low = nothing, high = nothing;
    friend bool operator==(const meeting&, const meeting&) = default;
  };
  vector<std::uint32_t> order;  // all buffers, in stacking order
  vector<std::uint32_t> first;  // below[first[k]] .. below[first[k + 1]] belong to order[k]
  vector<std::uint32_t> below;  // buffers at the same end
  vector<char> hangs;           // per buffer: it is at the high end
  vector<meeting> meetings;     // those that no other one implies; they give the peak
};

/// A layout for buffers of symbolic sizes: the lowest of one or more formulas. Sizes are bytes,
/// rounded up to the problem's alignment; offsets are multiples of it.
class symbolic_layout {
 public:
  std::size_t size() const { return count_; }
  std::int64_t alignment() const { return alignment_; }
  /// At least one.
  std::span<const layout_formula> formulas() const { return formulas_.view(); }
  /// Peak over lower bound, the worst of the samples that the layout was chosen by.
  double worst_ratio() const { return worst_ratio_; }

  /// Offsets for these sizes; returns the bytes that the arena takes, INT64_MAX where they do not
  /// fit into 62 bits. Allocates nothing.
  std::int64_t evaluate(std::span<const std::int64_t> sizes,
                        std::span<std::int64_t> offsets) const {
    std::int64_t best = INT64_MAX;
    std::size_t chosen = 0;
    for (std::size_t f = 0; f < formulas_.size(); ++f) {
      const std::int64_t peak = stack(formulas_.data()[f], alignment_, sizes, offsets);
      if (peak >= best) continue;
      best = peak;
      chosen = f;
    }
    if (best == INT64_MAX) return best;
    const layout_formula& f = formulas_.data()[chosen];
    if (chosen + 1 < formulas_.size()) stack(f, alignment_, sizes, offsets);
    for (std::size_t i = 0; i < count_; ++i)
      if (f.hangs.data()[i] != 0) offsets[i] = best - offsets[i] - align_up(sizes[i], alignment_);
    return best;
  }

  /// Largest sum of aligned live bytes over all steps and runs: no layout is below it; INT64_MAX
  /// where it does not fit. Allocates nothing.
  std::int64_t lower_bound(std::span<const std::int64_t> sizes) const {
    std::int64_t bound = 0;
    for (std::size_t s = 0; s + 1 < live_first_.size(); ++s) {
      std::int64_t live = 0;
      for (std::uint32_t k = live_first_.data()[s]; k < live_first_.data()[s + 1]; ++k)
        if (const std::int64_t size = sizes[live_.data()[k]];
            size > INT64_MAX - alignment_ || !checked_add(live, align_up(size, alignment_), live))
          return INT64_MAX;
      bound = bound < live ? live : bound;
    }
    return bound;
  }

  /// What `required_bytes` finds.
  struct requirement {
    dim bytes = dim::unknown();        // those of `evaluate`, at every binding
    dim lower_bound = dim::unknown();  // those of `lower_bound`
    std::size_t excess = 0;            // alternatives of `bytes` that are no sum of live bytes
    /// No layout of these live ranges is smaller, whatever the sizes.
    bool proved() const { return bytes.is_known() && excess == 0; }
  };
  /// The bytes of `evaluate` and `lower_bound` as expressions of the sizes' expressions, equal to
  /// them at every binding. Unknown where they grow too large.
  requirement required_bytes(dim_context& context, std::span<const dim> sizes) const {
    requirement out;
    vector<dim> aligned;
    for (const dim d : sizes) {
      aligned.push_back(context.align_up(d, alignment_));
      if (!aligned.back().is_known()) return out;
    }
    // No formula is below a sum of live bytes, so that these may stand beside its own sums. They
    // are few, and dominate most of what is stacked elsewhere.
    vector<sum> bound;
    if (live_first_.size() < 2) bound.push_back(nothing_live(context));
    if (!bound_sums(context, aligned.view(), bound)) return out;
    const std::size_t sums = bound.size();
    vector<dim> all;
    for (const sum& s : bound) all.push_back(s.expression);
    out.lower_bound = context.max_of(all.view());
    dim least = dim::undefined();
    for (const layout_formula& f : formulas_) {
      vector<sum> tops = bound;
      if (!add_peak(context, f, aligned.view(), tops, sums)) return out;
      if (tops.size() == sums) {
        out.bytes = out.lower_bound;
        out.excess = 0;
        return out;
      }
      out.excess += tops.size() - sums;
      vector<dim> own;
      for (std::size_t k = sums; k < tops.size(); ++k) own.push_back(tops[k].expression);
      const dim highest = context.max_of(own.view());
      least = least.is_undefined() ? highest : context.min(least, highest);
      if (!least.is_known()) return out;
    }
    all.push_back(least);
    out.bytes = context.max_of(all.view());
    return out;
  }

  /// Offsets of formula number `version` as expressions; an entry that grows too large is unknown.
  vector<dim> symbolic_offsets(dim_context& context, std::size_t version,
                               std::span<const dim> sizes) const {
    const layout_formula& f = formulas_[version];
    symbolic_layout alone = *this;
    alone.formulas_.clear();
    alone.formulas_.push_back(f);
    const dim arena = alone.required_bytes(context, sizes).bytes;
    vector<dim> offsets(count_, context.zero());
    for (std::size_t k = 0; k < f.order.size(); ++k) {
      dim at = context.zero();
      for (std::uint32_t b = f.first[k]; b < f.first[k + 1]; ++b) {
        const std::uint32_t j = f.below[b];
        at = context.max(at, context.add(offsets[j], context.align_up(sizes[j], alignment_)));
      }
      offsets[f.order[k]] = at;
    }
    for (std::size_t i = 0; i < count_; ++i)
      if (f.hangs[i] != 0)
        offsets[i] =
            context.sub(arena, context.add(offsets[i], context.align_up(sizes[i], alignment_)));
    return offsets;
  }

 private:
  friend class symbolic_layout_planner;

  /// Stacks one formula, distances from the own end of each buffer; returns the peak.
  static std::int64_t stack(const layout_formula& f, std::int64_t alignment,
                            std::span<const std::int64_t> sizes, std::span<std::int64_t> offsets) {
    const std::uint32_t* below = f.below.data();
    const std::uint32_t* first = f.first.data();
    const std::int64_t* size = sizes.data();
    std::int64_t* at = offsets.data();
    constexpr std::int64_t limit = INT64_MAX >> 1;
    const auto end_of = [&](std::uint32_t i) { return at[i] + align_up(size[i], alignment); };
    for (std::size_t k = 0; k < f.order.size(); ++k) {
      const std::uint32_t i = f.order.data()[k];
      std::int64_t offset = 0;
      for (std::uint32_t b = first[k]; b < first[k + 1]; ++b) {
        const std::int64_t end = end_of(below[b]);
        offset = offset < end ? end : offset;
      }
      if (size[i] > limit - alignment || offset > limit - alignment - size[i]) return INT64_MAX;
      at[i] = offset;
    }
    std::int64_t peak = 0;
    for (const layout_formula::meeting& m : f.meetings) {
      std::int64_t both = m.low == layout_formula::nothing ? 0 : end_of(m.low);
      if (m.high != layout_formula::nothing) both += end_of(m.high);
      peak = peak < both ? both : peak;
    }
    return peak <= limit ? peak : INT64_MAX;
  }

  // Every end is a maximum of sums without maxima; sums that another one provably reaches are
  // dropped. Each carries its values at the samples, which spares most proofs that must fail.
  struct sum {
    dim expression{};
    vector<std::int64_t> values;
  };
  static constexpr std::size_t widest = 48;  // alternatives of one maximum
  std::size_t rows() const { return count_ == 0 ? 0 : samples_.size() / count_; }
  sum nothing_live(dim_context& context) const {
    return {context.zero(), vector<std::int64_t>(rows(), 0)};
  }
  void grow(dim_context& context, sum& s, std::uint32_t buffer, dim aligned) const {
    s.expression = context.add(s.expression, aligned);
    for (std::size_t row = 0; row < s.values.size(); ++row)
      s.values[row] += samples_[row * count_ + buffer];
  }
  static bool reaches(dim_context& context, const sum& a, const sum& b) {
    if (a.expression == b.expression) return true;
    for (std::size_t row = 0; row < a.values.size(); ++row)
      if (a.values[row] < b.values[row]) return false;
    return context.decide_le(b.expression, a.expression) == tri::yes;
  }
  /// Those before `fixed` stay where they are.
  static void add(dim_context& context, vector<sum>& all, const sum& fresh, std::size_t fixed = 0) {
    for (const sum& s : all)
      if (reaches(context, s, fresh)) return;
    std::size_t kept = fixed;
    for (std::size_t i = fixed; i < all.size(); ++i)
      if (!reaches(context, fresh, all[i])) {
        if (kept != i) std::swap(all[kept], all[i]);
        ++kept;
      }
    all.resize(kept);
    all.push_back(fresh);
  }
  bool bound_sums(dim_context& context, std::span<const dim> aligned, vector<sum>& out) const {
    for (std::size_t s = 0; s + 1 < live_first_.size(); ++s) {
      sum live = nothing_live(context);
      for (std::uint32_t k = live_first_[s]; k < live_first_[s + 1]; ++k)
        grow(context, live, live_[k], aligned[live_[k]]);
      if (!live.expression.is_known()) return false;
      add(context, out, live);
      if (out.size() > widest) return false;
    }
    return true;
  }
  /// Adds the sums whose maximum is the formula's peak. False when they are too many.
  bool add_peak(dim_context& context, const layout_formula& f, std::span<const dim> aligned,
                vector<sum>& tops, std::size_t fixed) const {
    vector<vector<sum>> ends(count_);
    for (std::size_t k = 0; k < f.order.size(); ++k) {
      const std::uint32_t i = f.order[k];
      vector<sum> at;
      for (std::uint32_t b = f.first[k]; b < f.first[k + 1]; ++b)
        for (const sum& s : ends[f.below[b]]) add(context, at, s);
      if (at.empty()) at.push_back(nothing_live(context));
      if (at.size() > widest) return false;
      for (sum& s : at) {
        grow(context, s, i, aligned[i]);
        if (!s.expression.is_known()) return false;
      }
      ends[i] = std::move(at);
    }
    vector<sum> none;
    none.push_back(nothing_live(context));
    for (const layout_formula::meeting& m : f.meetings)
      for (const sum& a : m.low == layout_formula::nothing ? none : ends[m.low])
        for (const sum& b : m.high == layout_formula::nothing ? none : ends[m.high]) {
          sum both = a;
          both.expression = context.add(a.expression, b.expression);
          if (!both.expression.is_known()) return false;
          for (std::size_t row = 0; row < both.values.size(); ++row)
            both.values[row] += b.values[row];
          add(context, tops, both, fixed);
          if (tops.size() > fixed + widest) return false;
        }
    return true;
  }

  std::size_t count_ = 0;
  std::int64_t alignment_ = 64;
  double worst_ratio_ = 1.0;
  vector<layout_formula> formulas_;
  vector<std::uint32_t> live_first_, live_;  // per maximal step and run: live buffers
  vector<std::int64_t> samples_;             // aligned sizes, a row a sample
};

/// Checks a layout against its problem without the planner's code: every formula is an order of all
/// buffers; of any two conflicting ones at one end the later rests on the earlier, directly or
/// through others; conflicting ones at different ends are below a meeting; whatever nothing rests
/// on is in one. Cubic in the worst case. Errors: errc::invalid_plan.
inline status validate(const placement_problem& p, const symbolic_layout& layout) {
  const std::size_t n = p.buffers.size();
  const auto bad = [](std::string text) { return error(errc::invalid_plan, std::move(text)); };
  if (layout.size() != n || layout.alignment() != p.alignment)
    return bad("layout belongs to another problem");
  if (layout.formulas().empty()) return bad("layout has no formula");
  for (const layout_formula& f : layout.formulas()) {
    if (f.order.size() != n || f.hangs.size() != n || f.first.size() != n + 1 || f.first[0] != 0 ||
        f.first[n] != f.below.size())
      return bad("formula has a wrong number of buffers");
    constexpr std::size_t none = SIZE_MAX;
    vector<std::size_t> position(n, none);
    for (std::size_t k = 0; k < n; ++k) {
      if (f.order[k] >= n || position[f.order[k]] != none)
        return bad("formula is not an order of all buffers");
      position[f.order[k]] = k;
    }
    // By buffers: carried[i * n + j] when i is j or rests on it.
    vector<char> carried(n * n, 0);
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t i = f.order[k];
      carried[i * n + i] = 1;
      if (f.first[k] > f.first[k + 1]) return bad("formula's lists are out of order");
      for (std::size_t b = f.first[k]; b < f.first[k + 1]; ++b) {
        const std::size_t j = f.below[b];
        if (j >= n) return bad("formula names a buffer that does not exist");
        if (position[j] >= k) return bad("a buffer rests on a later one");
        if (f.hangs[i] != f.hangs[j]) return bad("a buffer rests on one at the other end");
        for (std::size_t t = 0; t < n; ++t) carried[i * n + t] |= carried[j * n + t];
      }
    }
    vector<char> apart(n * n, 0), below_peak(n, 0);
    for (const layout_formula::meeting& m : f.meetings) {
      const bool low = m.low != layout_formula::nothing, high = m.high != layout_formula::nothing;
      if ((low && (m.low >= n || f.hangs[m.low] != 0)) ||
          (high && (m.high >= n || f.hangs[m.high] == 0)))
        return bad("formula's meeting is of no two ends");
      for (std::size_t a = 0; a < n; ++a) {
        const bool under_low = low && carried[m.low * n + a] != 0;
        const bool under_high = high && carried[m.high * n + a] != 0;
        if (under_low || under_high) below_peak[a] = 1;
        if (under_low && high)
          for (std::size_t b = 0; b < n; ++b) apart[a * n + b] |= carried[m.high * n + b];
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      const buffer& a = p.buffers[i];
      if (a.lower < a.upper && below_peak[i] == 0)
        return bad("buffer " + std::to_string(i) + " can stand above the peak");
      for (std::size_t j = 0; j < i; ++j) {
        const buffer& b = p.buffers[j];
        const bool at_once = a.lower < b.upper && b.lower < a.upper && a.lower < a.upper &&
                             b.lower < b.upper && !exclusive(p.guards.view(), a.guard, b.guard);
        if (!at_once) continue;
        const bool kept = f.hangs[i] == f.hangs[j] ? (carried[i * n + j] | carried[j * n + i]) != 0
                                                   : (apart[i * n + j] | apart[j * n + i]) != 0;
        if (!kept)
          return bad("buffers " + std::to_string(j) + " and " + std::to_string(i) +
                     " are not kept apart");
      }
    }
  }
  return {};
}

}  // namespace sod2
