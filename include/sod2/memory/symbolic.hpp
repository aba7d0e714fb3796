// Layouts whose offsets are formulas of the sizes: valid at every binding, evaluated without
// allocation, printable as one expression.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/checked.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/expr/context.hpp>
#include <sod2/memory/portfolio.hpp>
#include <sod2/memory/problem.hpp>

namespace sod2 {

/// A layout for buffers of symbolic sizes. Two forms:
/// - stacked: for a fixed placement order, `offset_i = max over earlier conflicting j of end_j`;
/// - slots: buffers that never conflict share a slot as large as the largest of them; slots follow
///   each other. Its formula stays short where the stacked one would not.
/// Sizes are bytes, rounded up to the problem's alignment; offsets are multiples of it.
class symbolic_layout {
 public:
  enum class form : std::uint8_t { stacked, slots };

  std::size_t size() const { return count_; }
  form kind() const { return form_; }

  /// Offsets for these sizes; returns the bytes that the arena takes. Allocates nothing.
  std::int64_t evaluate(std::span<const std::int64_t> sizes,
                        std::span<std::int64_t> offsets) const {
    std::int64_t top = 0;
    if (form_ == form::slots) {
      for (std::size_t s = 0; s + 1 < first_.size(); ++s) {
        std::int64_t largest = 0;
        for (std::uint32_t k = first_[s]; k < first_[s + 1]; ++k) {
          const std::uint32_t b = items_[k];
          offsets[b] = top;
          largest = max_of(largest, align_up(sizes[b], alignment_));
        }
        top += largest;
      }
      return top;
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
      std::int64_t offset = 0;
      for (std::uint32_t k = first_[i]; k < first_[i + 1]; ++k) {
        const std::uint32_t j = items_[k];
        offset = max_of(offset, offsets[j] + align_up(sizes[j], alignment_));
      }
      offsets[order_[i]] = offset;
      top = max_of(top, offset + align_up(sizes[order_[i]], alignment_));
    }
    return top;
  }

  /// Largest sum of aligned live bytes over all steps: no layout is below it. Allocates nothing.
  std::int64_t lower_bound(std::span<const std::int64_t> sizes) const {
    std::int64_t bound = 0;
    for (std::size_t s = 0; s + 1 < live_first_.size(); ++s) {
      std::int64_t live = 0;
      for (std::uint32_t k = live_first_[s]; k < live_first_[s + 1]; ++k)
        live += align_up(sizes[live_[k]], alignment_);
      bound = max_of(bound, live);
    }
    return bound;
  }

  /// The bytes of `evaluate` as an expression of the sizes' expressions, equal to it at every
  /// binding. Unknown when it grows too large.
  dim required_bytes(dim_context& context, std::span<const dim> sizes) const {
    vector<dim> end(count_, context.zero());
    dim top = context.zero();
    if (form_ == form::slots) {
      for (std::size_t s = 0; s + 1 < first_.size(); ++s) {
        dim largest = context.zero();
        for (std::uint32_t k = first_[s]; k < first_[s + 1]; ++k)
          largest = context.max(largest, context.align_up(sizes[items_[k]], alignment_));
        top = context.add(top, largest);
      }
      return top;
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
      dim offset = context.zero();
      for (std::uint32_t k = first_[i]; k < first_[i + 1]; ++k)
        offset = context.max(offset, end[items_[k]]);
      end[order_[i]] = context.add(offset, context.align_up(sizes[order_[i]], alignment_));
      if (!end[order_[i]].is_known()) return end[order_[i]];
      top = context.max(top, end[order_[i]]);
    }
    return top;
  }

 private:
  friend class symbolic_layout_planner;
  form form_ = form::stacked;
  std::size_t count_ = 0;
  std::int64_t alignment_ = 64;
  vector<std::uint32_t> order_;  // stacked: placement order
  vector<std::uint32_t> first_,
      items_;  // per position: earlier conflicting buffers; per slot: members
  vector<std::uint32_t> live_first_, live_;  // per maximal step: live buffers
};

/// Makes layouts for a problem whose sizes vary. `problem.buffers[i].size` is not read.
class symbolic_layout_planner {
 public:
  /// samples: sizes of all buffers at representative bindings, at least one.
  symbolic_layout_planner(const placement_problem& problem,
                          std::span<const std::span<const std::int64_t>> samples)
      : problem_(problem), samples_(samples) {
    base_.count_ = problem.buffers.size();
    base_.alignment_ = problem.alignment;
    collect_live();
  }

  /// The stacked layout with the best worst ratio to the lower bound over the samples. Orders
  /// tried: by the offsets of a portfolio placement at each sample, and by size.
  symbolic_layout stacked(const placement_options& options = {10 * placement_work_per_ms}) {
    symbolic_layout best = base_;
    double best_ratio = -1;
    for (const auto& sample : samples_) {
      placement_problem p = problem_;
      for (std::size_t i = 0; i < p.buffers.size(); ++i) p.buffers[i].size = sample[i];
      const placement_plan plan = place_portfolio(p, options);
      consider(sorted([&](std::uint32_t b) { return plan.offsets[b]; }, sample), best, best_ratio);
      consider(sorted([&](std::uint32_t b) { return -sample[b]; }, sample), best, best_ratio);
    }
    return best;
  }

  /// Slots by interval colouring, largest buffers first.
  symbolic_layout slots() {
    symbolic_layout out = base_;
    out.form_ = symbolic_layout::form::slots;
    const auto largest = [&](std::uint32_t b) {
      std::int64_t n = 0;
      for (const auto& sample : samples_) n = max_of(n, sample[b]);
      return n;
    };
    const vector<std::uint32_t> order =
        sorted([&](std::uint32_t b) { return -largest(b); }, samples_[0]);
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
    out.first_.push_back(0);
    for (const auto& slot : members) {
      out.items_.append(slot.begin(), slot.end());
      out.first_.push_back(static_cast<std::uint32_t>(out.items_.size()));
    }
    return out;
  }

 private:
  // Like `conflict`, whatever the sizes.
  bool meet(std::uint32_t a, std::uint32_t b) const {
    buffer x = problem_.buffers[a], y = problem_.buffers[b];
    x.size = y.size = 1;
    return conflict(problem_, x, y);
  }
  template <class Key>
  vector<std::uint32_t> sorted(Key key, std::span<const std::int64_t> sample) const {
    vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < problem_.buffers.size(); ++i) order.push_back(i);
    stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const std::int64_t x = key(a), y = key(b);
      return x != y ? x < y : sample[a] > sample[b];
    });
    return order;
  }
  void consider(const vector<std::uint32_t>& order, symbolic_layout& best,
                double& best_ratio) const {
    symbolic_layout candidate = base_;
    candidate.order_ = order;
    candidate.first_.push_back(0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j)
        if (meet(order[i], order[j])) candidate.items_.push_back(order[j]);
      candidate.first_.push_back(static_cast<std::uint32_t>(candidate.items_.size()));
    }
    vector<std::int64_t> offsets(base_.count_, std::int64_t{0});
    double worst = 0;
    for (const auto& sample : samples_) {
      const std::int64_t bound = candidate.lower_bound(sample);
      const std::int64_t peak = candidate.evaluate(sample, offsets);
      const double ratio = bound > 0 ? static_cast<double>(peak) / static_cast<double>(bound) : 1.0;
      if (ratio > worst) worst = ratio;
    }
    if (best_ratio < 0 || worst < best_ratio) {
      best_ratio = worst;
      best = candidate;
    }
  }
  // Live sets that no other live set contains: those just before some buffer dies after one was
  // born.
  void collect_live() {
    vector<std::int64_t> times;
    for (const buffer& b : problem_.buffers) times.push_back(b.lower);
    stable_sort(times.begin(), times.end(), [](std::int64_t a, std::int64_t b) { return a < b; });
    base_.live_first_.push_back(0);
    for (std::size_t t = 0; t < times.size(); ++t) {
      if (t + 1 < times.size() && times[t + 1] == times[t]) continue;
      bool dies =
          t + 1 == times.size();  // nothing dies before the next birth: that step covers this
      for (const buffer& b : problem_.buffers)
        dies = dies || (b.lower <= times[t] && b.upper > times[t] && t + 1 < times.size() &&
                        b.upper <= times[t + 1]);
      if (!dies) continue;
      for (std::uint32_t i = 0; i < problem_.buffers.size(); ++i)
        if (problem_.buffers[i].lower <= times[t] && times[t] < problem_.buffers[i].upper)
          base_.live_.push_back(i);
      base_.live_first_.push_back(static_cast<std::uint32_t>(base_.live_.size()));
    }
  }

  const placement_problem& problem_;
  std::span<const std::span<const std::int64_t>> samples_;
  symbolic_layout base_;
};

}  // namespace sod2
