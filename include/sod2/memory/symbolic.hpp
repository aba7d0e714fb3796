// Layouts whose offsets are formulas of the sizes: valid at every binding, evaluated without
// allocation, printable as one expression.
//
// Fix an order of the buffers and put each on top of the earlier ones that it conflicts with:
// `offset_i = max over earlier conflicting j of end_j`. That is a valid placement whatever the
// sizes are; only its quality depends on them. The buffers of any placement by rising offset give
// an order that is at least as good at those sizes, so that the best placement at a representative
// binding becomes a formula. A layout keeps a few of them and takes the lowest at bind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/checked.hpp>
#include <sod2/core/guard.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/expr/context.hpp>
#include <sod2/memory/greedy.hpp>
#include <sod2/memory/portfolio.hpp>
#include <sod2/memory/problem.hpp>

namespace sod2 {

/// One order of stacking. `below` lists what a buffer directly rests on: conflicts that are below
/// another conflict anyway are left out, which changes no offset at any size.
struct layout_formula {
  vector<std::uint32_t> order;  // all buffers, in stacking order
  vector<std::uint32_t> first;  // below[first[k]] .. below[first[k + 1]] belong to order[k]
  vector<std::uint32_t> below;  // buffers
  vector<std::uint32_t> tops;   // buffers that nothing rests on
};

/// A layout for buffers of symbolic sizes. Two forms:
/// - stacked: the lowest of one or more formulas;
/// - slots: buffers that never conflict share a slot as large as the largest of them; slots follow
///   each other. Its formula stays short where the stacked one would not.
/// Sizes are bytes, rounded up to the problem's alignment; offsets are multiples of it.
class symbolic_layout {
 public:
  enum class form : std::uint8_t { stacked, slots };

  std::size_t size() const { return count_; }
  form kind() const { return form_; }
  std::int64_t alignment() const { return alignment_; }
  /// Stacked: at least one.
  std::span<const layout_formula> formulas() const { return formulas_.view(); }
  /// Peak over lower bound, the worst of the samples that the layout was chosen by.
  double worst_ratio() const { return worst_ratio_; }

  /// Offsets for these sizes; returns the bytes that the arena takes, INT64_MAX where they do not
  /// fit into 62 bits. Allocates nothing.
  std::int64_t evaluate(std::span<const std::int64_t> sizes,
                        std::span<std::int64_t> offsets) const {
    if (form_ == form::slots) return evaluate_slots(sizes, offsets);
    std::int64_t best = INT64_MAX;
    std::size_t chosen = 0;
    for (std::size_t f = 0; f < formulas_.size(); ++f) {
      const std::int64_t peak = stack(formulas_.data()[f], alignment_, sizes, offsets);
      if (peak >= best) continue;
      best = peak;
      chosen = f;
    }
    if (chosen + 1 < formulas_.size()) stack(formulas_.data()[chosen], alignment_, sizes, offsets);
    return best;
  }

  /// Largest sum of aligned live bytes over all steps and runs: no layout is below it. Allocates
  /// nothing.
  std::int64_t lower_bound(std::span<const std::int64_t> sizes) const {
    std::int64_t bound = 0;
    for (std::size_t s = 0; s + 1 < live_first_.size(); ++s) {
      std::int64_t live = 0;
      for (std::uint32_t k = live_first_.data()[s]; k < live_first_.data()[s + 1]; ++k)
        live += align_up(sizes[live_.data()[k]], alignment_);
      bound = bound < live ? live : bound;
    }
    return bound;
  }

  /// The bytes of `evaluate` as an expression of the sizes' expressions, equal to it at every
  /// binding. Unknown when it grows too large.
  dim required_bytes(dim_context& context, std::span<const dim> sizes) const {
    if (form_ == form::slots) {
      dim top = context.zero();
      for (std::size_t s = 0; s + 1 < slot_first_.size(); ++s) {
        dim largest = context.zero();
        for (std::uint32_t k = slot_first_[s]; k < slot_first_[s + 1]; ++k)
          largest = context.max(largest, context.align_up(sizes[slot_items_[k]], alignment_));
        top = context.add(top, largest);
      }
      return top;
    }
    vector<dim> aligned;
    for (const dim d : sizes) aligned.push_back(context.align_up(d, alignment_));
    dim least = dim::undefined();
    for (const layout_formula& f : formulas_) {
      const dim peak = peak_of(context, f, aligned.view());
      if (!peak.is_known()) return peak;
      least = least.is_undefined() ? peak : context.min(least, peak);
    }
    return least;
  }

  /// Offsets of one formula as expressions; an entry that grows too large is unknown.
  vector<dim> symbolic_offsets(dim_context& context, const layout_formula& f,
                               std::span<const dim> sizes) const {
    vector<dim> offsets(count_, context.zero());
    for (std::size_t k = 0; k < f.order.size(); ++k) {
      dim at = context.zero();
      for (std::uint32_t b = f.first[k]; b < f.first[k + 1]; ++b) {
        const std::uint32_t j = f.below[b];
        at = context.max(at, context.add(offsets[j], context.align_up(sizes[j], alignment_)));
      }
      offsets[f.order[k]] = at;
    }
    return offsets;
  }

 private:
  friend class symbolic_layout_planner;

  /// Stacks one formula and returns its peak.
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
    for (const std::uint32_t i : f.tops) peak = peak < end_of(i) ? end_of(i) : peak;
    return peak;
  }
  std::int64_t evaluate_slots(std::span<const std::int64_t> sizes,
                              std::span<std::int64_t> offsets) const {
    std::int64_t top = 0;
    for (std::size_t s = 0; s + 1 < slot_first_.size(); ++s) {
      std::int64_t largest = 0;
      for (std::uint32_t k = slot_first_.data()[s]; k < slot_first_.data()[s + 1]; ++k) {
        const std::uint32_t b = slot_items_.data()[k];
        offsets[b] = top;
        const std::int64_t size = align_up(sizes[b], alignment_);
        largest = largest < size ? size : largest;
      }
      if (!checked_add(top, largest, top)) return INT64_MAX;
    }
    return top;
  }

  // Every end is a maximum of sums without maxima; sums that another one provably reaches are
  // dropped. Each carries its values at the samples, which spares most proofs that must fail.
  struct sum {
    dim expression{};
    vector<std::int64_t> values;
  };
  static bool reaches(dim_context& context, const sum& a, const sum& b) {
    if (a.expression == b.expression) return true;
    for (std::size_t row = 0; row < a.values.size(); ++row)
      if (a.values[row] < b.values[row]) return false;
    return context.decide_le(b.expression, a.expression) == tri::yes;
  }
  static void add(dim_context& context, vector<sum>& all, const sum& fresh) {
    for (const sum& s : all)
      if (reaches(context, s, fresh)) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!reaches(context, fresh, all[i])) {
        if (kept != i) std::swap(all[kept], all[i]);
        ++kept;
      }
    all.resize(kept);
    all.push_back(fresh);
  }
  dim peak_of(dim_context& context, const layout_formula& f, std::span<const dim> aligned) const {
    constexpr std::size_t widest = 12;  // alternatives of one maximum
    const std::size_t rows = count_ == 0 ? 0 : samples_.size() / count_;
    vector<vector<sum>> ends(count_);
    for (std::size_t k = 0; k < f.order.size(); ++k) {
      const std::uint32_t i = f.order[k];
      vector<sum> at;
      for (std::uint32_t b = f.first[k]; b < f.first[k + 1]; ++b)
        for (const sum& s : ends[f.below[b]]) add(context, at, s);
      if (at.empty()) at.push_back({context.zero(), vector<std::int64_t>(rows, 0)});
      if (at.size() > widest) return dim::unknown();
      for (sum& s : at) {
        s.expression = context.add(s.expression, aligned[i]);
        if (!s.expression.is_known()) return s.expression;
        for (std::size_t row = 0; row < rows; ++row) s.values[row] += samples_[row * count_ + i];
      }
      ends[i] = std::move(at);
    }
    vector<sum> tops;
    for (const std::uint32_t i : f.tops)
      for (const sum& s : ends[i]) add(context, tops, s);
    if (tops.size() > widest) return dim::unknown();
    dim peak = context.zero();
    for (const sum& s : tops) peak = context.max(peak, s.expression);
    return peak;
  }

  form form_ = form::stacked;
  std::size_t count_ = 0;
  std::int64_t alignment_ = 64;
  double worst_ratio_ = 1.0;
  vector<layout_formula> formulas_;
  vector<std::uint32_t> slot_first_, slot_items_;  // per slot: members
  vector<std::uint32_t> live_first_, live_;        // per maximal step and run: live buffers
  vector<std::int64_t> samples_;                   // aligned sizes, a row a sample
};

/// Makes layouts for a problem whose sizes vary: `problem.buffers[i].size` is not read, offsets are
/// not fixed, all alignments are the problem's.
class symbolic_layout_planner {
 public:
  /// samples: sizes of all buffers in bytes at representative bindings, at least one: the ends of
  /// the declared ranges and points between.
  symbolic_layout_planner(const placement_problem& problem,
                          std::span<const std::span<const std::int64_t>> samples)
      : samples_(samples) {
    base_.count_ = problem.buffers.size();
    base_.alignment_ = problem.alignment;
    for (const auto& sample : samples)
      for (const std::int64_t size : sample)
        base_.samples_.push_back(align_up(size, problem.alignment));
    // Conflicts do not depend on sizes here: an empty buffer keeps its place in the order.
    for (const buffer& b : problem.buffers) {
      buffer x = b;
      x.size = 1;
      x.fixed_offset = -1;
      shape_.buffers.push_back(x);
    }
    shape_.alignment = problem.alignment;
    shape_.guards = problem.guards;
    collect_live();
  }

  /// The stacked layout of up to `most` formulas with the best worst ratio to the lower bound over
  /// the samples. Tried are the orders of a portfolio placement, of peak-first and by-size ones at
  /// each sample. `options` holds for each sample.
  symbolic_layout stacked(const placement_options& options = {10 * placement_work_per_ms},
                          std::size_t most = 3) {
    symbolic_layout out = base_;
    const std::size_t n = base_.count_, rows = samples_.size();
    vector<layout_formula> candidates;
    const auto add = [&](vector<std::uint32_t> order) {
      for (const layout_formula& f : candidates)
        if (f.order == order) return;
      candidates.push_back(formula_of(std::move(order)));
    };
    for (std::size_t row = 0; row < rows; ++row) {
      placement_problem p = shape_;
      for (std::size_t i = 0; i < n; ++i) p.buffers.data()[i].size = samples_[row][i];
      const placement_plan best = place_portfolio(p, options);
      add(by_offset(best, samples_[row]));
      if (row > 0 && best.exact) continue;  // the simple ones can hardly help
      add(by_offset(place_peak_first(p), samples_[row]));
      add(by_offset(place_by_size(p), samples_[row]));
    }
    if (candidates.empty()) add(by_offset(placement_plan{}, {}));

    // One formula after the other, each lowering the worst ratio as far as possible.
    vector<double> ratio(candidates.size() * rows), reached(rows, 1e300);
    vector<std::int64_t> offsets(n);
    for (std::size_t c = 0; c < candidates.size(); ++c)
      for (std::size_t row = 0; row < rows; ++row) {
        const std::int64_t bound = base_.lower_bound(samples_[row]);
        const std::int64_t peak =
            symbolic_layout::stack(candidates[c], base_.alignment_, samples_[row], offsets);
        ratio[c * rows + row] =
            bound == 0 ? 1.0 : static_cast<double>(peak) / static_cast<double>(bound);
      }
    double worst = 1e300, sum = 1e300;
    while (out.formulas_.size() < most) {
      std::size_t best = candidates.size();
      for (std::size_t c = 0; c < candidates.size(); ++c) {
        double w = 1.0, s = 0.0;
        for (std::size_t row = 0; row < rows; ++row) {
          const double r = ratio[c * rows + row];
          const double now = r < reached[row] ? r : reached[row];
          w = w < now ? now : w;
          s += now;
        }
        if (w > worst || (w == worst && s >= sum)) continue;
        best = c;
        worst = w;
        sum = s;
      }
      if (best == candidates.size()) break;
      for (std::size_t row = 0; row < rows; ++row)
        if (ratio[best * rows + row] < reached[row]) reached[row] = ratio[best * rows + row];
      out.formulas_.push_back(candidates[best]);
      if (worst <= 1.0) break;
    }
    out.worst_ratio_ = worst;
    return out;
  }

  /// Slots by interval colouring, largest buffers first.
  symbolic_layout slots() {
    symbolic_layout out = base_;
    out.form_ = symbolic_layout::form::slots;
    const std::size_t n = base_.count_;
    vector<std::int64_t> largest(n, 0);
    for (const auto& sample : samples_)
      for (std::size_t i = 0; i < n; ++i)
        if (sample[i] > largest[i]) largest[i] = sample[i];
    vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < n; ++i) order.push_back(i);
    stable_sort(order.begin(), order.end(),
                [&](std::uint32_t a, std::uint32_t b) { return largest[a] > largest[b]; });
    vector<vector<std::uint32_t>> members;
    for (const std::uint32_t b : order) {
      std::size_t at = 0;
      for (; at < members.size(); ++at) {
        bool free = true;
        for (const std::uint32_t m : members[at]) free = free && !meet(b, m);
        if (free) break;
      }
      if (at == members.size()) members.push_back({});
      members[at].push_back(b);
    }
    out.slot_first_.push_back(0);
    for (const auto& slot : members) {
      out.slot_items_.append(slot.begin(), slot.end());
      out.slot_first_.push_back(static_cast<std::uint32_t>(out.slot_items_.size()));
    }
    vector<std::int64_t> offsets(n);
    for (const auto& sample : samples_) {
      const std::int64_t bound = out.lower_bound(sample);
      const double ratio = bound == 0 ? 1.0
                                      : static_cast<double>(out.evaluate(sample, offsets)) /
                                            static_cast<double>(bound);
      if (ratio > out.worst_ratio_) out.worst_ratio_ = ratio;
    }
    return out;
  }

 private:
  bool meet(std::uint32_t a, std::uint32_t b) const {
    return conflict(shape_, shape_.buffers[a], shape_.buffers[b]);
  }
  /// Buffers by rising offset; empty ones below others at the same offset. Without offsets: as
  /// given.
  vector<std::uint32_t> by_offset(const placement_plan& plan,
                                  std::span<const std::int64_t> sizes) const {
    vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < base_.count_; ++i) order.push_back(i);
    if (plan.offsets.empty()) return order;
    stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const std::int64_t x = plan.offsets.data()[a], y = plan.offsets.data()[b];
      return x != y ? x < y : sizes[a] == 0 && sizes[b] != 0;
    });
    return order;
  }
  /// Conflicts by a sweep in time, then thinned out.
  layout_formula formula_of(vector<std::uint32_t> order) const {
    const auto n = static_cast<std::uint32_t>(order.size());
    const vector<buffer>& buffers = shape_.buffers;
    vector<std::uint32_t> position(n), by_start(n), active;
    for (std::uint32_t k = 0; k < n; ++k) {
      position[order[k]] = k;
      by_start[k] = k;
    }
    stable_sort(by_start.begin(), by_start.end(), [&](std::uint32_t a, std::uint32_t b) {
      return buffers[a].lower < buffers[b].lower;
    });
    vector<vector<std::uint32_t>> under(n);  // by position: positions of earlier conflicts
    for (const std::uint32_t i : by_start) {
      if (buffers[i].lower == buffers[i].upper) continue;
      std::size_t kept = 0;
      for (const std::uint32_t j : active) {
        if (buffers[j].upper <= buffers[i].lower) continue;
        active[kept++] = j;
        if (!meet(i, j)) continue;
        const std::uint32_t a = position[i], b = position[j];
        under[a < b ? b : a].push_back(a < b ? a : b);
      }
      active.resize(kept);
      active.push_back(i);
    }
    // From the highest down: what some kept one rests on, directly or not, says nothing new.
    layout_formula f;
    const std::size_t words = (static_cast<std::size_t>(n) + 63) / 64;
    vector<std::uint64_t> reach(words * n, 0);  // positions below k
    vector<char> carries(n, 0);
    f.first.push_back(0);
    for (std::uint32_t k = 0; k < n; ++k) {
      stable_sort(under[k].begin(), under[k].end(),
                  [](std::uint32_t a, std::uint32_t b) { return a > b; });
      std::uint64_t* mine = reach.data() + words * k;
      for (const std::uint32_t j : under[k]) {
        if ((mine[j / 64] >> (j % 64) & 1U) != 0) continue;
        const std::uint64_t* theirs = reach.data() + words * j;
        for (std::size_t w = 0; w < words; ++w) mine[w] |= theirs[w];
        mine[j / 64] |= 1ULL << (j % 64);
        f.below.push_back(order[j]);
        carries[j] = 1;
      }
      f.first.push_back(static_cast<std::uint32_t>(f.below.size()));
    }
    for (std::uint32_t k = 0; k < n; ++k)
      if (carries[k] == 0 && buffers[order[k]].lower < buffers[order[k]].upper)
        f.tops.push_back(order[k]);
    f.order = std::move(order);
    return f;
  }
  // Live sets that no other live set contains: those just before some buffer dies after one was
  // born. With guards, one set for each path that something live is on.
  void collect_live() {
    const vector<buffer>& buffers = shape_.buffers;
    vector<std::int64_t> births;
    vector<std::uint32_t> by_start, active;
    for (std::uint32_t i = 0; i < buffers.size(); ++i)
      if (buffers[i].lower < buffers[i].upper) by_start.push_back(i);
    stable_sort(by_start.begin(), by_start.end(), [&](std::uint32_t a, std::uint32_t b) {
      return buffers[a].lower < buffers[b].lower;
    });
    base_.live_first_.push_back(0);
    bool grown = false;
    for (std::size_t k = 0; k <= by_start.size(); ++k) {
      const std::int64_t now = k < by_start.size() ? buffers[by_start[k]].lower : INT64_MAX;
      bool dies = false;
      for (const std::uint32_t i : active) dies |= buffers[i].upper <= now;
      if (dies && grown) {
        keep_live(active.view());
        grown = false;
      }
      std::size_t kept = 0;
      for (const std::uint32_t i : active)
        if (buffers[i].upper > now) active[kept++] = i;
      active.resize(kept);
      if (k == by_start.size()) break;
      active.push_back(by_start[k]);
      grown = true;
    }
  }
  void keep_live(std::span<const std::uint32_t> active) {
    const vector<guard>& guards = shape_.guards;
    vector<char> present(guards.size() + 1, 0);
    present[0] = 1;
    for (const std::uint32_t i : active) present[shape_.buffers[i].guard] = 1;
    for (std::uint32_t g = 0; g <= guards.size(); ++g) {
      if (present[g] == 0 || (g == 0 && guards.size() > 0 && active.empty())) continue;
      for (const std::uint32_t i : active) {
        bool on_path = shape_.buffers[i].guard == 0;
        for (std::uint32_t a = g; a != 0 && !on_path; a = guards[a - 1].parent)
          on_path = shape_.buffers[i].guard == a;
        if (on_path) base_.live_.push_back(i);
      }
      base_.live_first_.push_back(static_cast<std::uint32_t>(base_.live_.size()));
    }
  }

  std::span<const std::span<const std::int64_t>> samples_;
  placement_problem shape_;
  symbolic_layout base_;
};

/// Checks a stacked layout against its problem without the planner's code: every formula is an
/// order of all buffers, and of any two conflicting ones the later rests on the earlier, directly
/// or through others; whatever nothing rests on is a top. Quadratic. Errors: errc::invalid_plan.
inline status validate(const placement_problem& p, const symbolic_layout& layout) {
  const std::size_t n = p.buffers.size();
  const auto bad = [](std::string text) { return error(errc::invalid_plan, std::move(text)); };
  if (layout.size() != n || layout.alignment() != p.alignment)
    return bad("layout belongs to another problem");
  if (layout.kind() == symbolic_layout::form::slots) return {};
  if (layout.formulas().empty()) return bad("layout has no formula");
  for (const layout_formula& f : layout.formulas()) {
    if (f.order.size() != n || f.first.size() != n + 1 || f.first[0] != 0 ||
        f.first[n] != f.below.size())
      return bad("formula has a wrong number of buffers");
    constexpr std::size_t none = SIZE_MAX;
    vector<std::size_t> position(n, none);
    for (std::size_t k = 0; k < n; ++k) {
      if (f.order[k] >= n || position[f.order[k]] != none)
        return bad("formula is not an order of all buffers");
      position[f.order[k]] = k;
    }
    vector<char> supported(n * n, 0), top(n, 0);
    for (std::uint32_t i : f.tops) {
      if (i >= n) return bad("formula names a buffer that does not exist");
      top[position[i]] = 1;
    }
    for (std::size_t k = 0; k < n; ++k) {
      if (f.first[k] > f.first[k + 1]) return bad("formula's lists are out of order");
      for (std::size_t b = f.first[k]; b < f.first[k + 1]; ++b) {
        if (f.below[b] >= n) return bad("formula names a buffer that does not exist");
        const std::size_t j = position[f.below[b]];
        if (j >= k) return bad("a buffer rests on a later one");
        for (std::size_t t = 0; t <= j; ++t)
          if (t == j || supported[j * n + t] != 0) supported[k * n + t] = 1;
      }
      const buffer& a = p.buffers[f.order[k]];
      for (std::size_t j = 0; j < k; ++j) {
        const buffer& b = p.buffers[f.order[j]];
        const bool at_once = a.lower < b.upper && b.lower < a.upper && a.lower < a.upper &&
                             b.lower < b.upper && !exclusive(p.guards.view(), a.guard, b.guard);
        if (at_once && supported[k * n + j] == 0)
          return bad("buffers " + std::to_string(f.order[j]) + " and " +
                     std::to_string(f.order[k]) + " are not kept apart");
      }
    }
    for (std::size_t j = 0; j < n; ++j) {
      bool carries = top[j] != 0 || p.buffers[f.order[j]].lower == p.buffers[f.order[j]].upper;
      for (std::size_t k = j + 1; k < n && !carries; ++k) carries = supported[k * n + j] != 0;
      if (!carries)
        return bad("buffer " + std::to_string(f.order[j]) + " can stand above the peak");
    }
  }
  return {};
}

}  // namespace sod2
