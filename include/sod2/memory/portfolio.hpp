// Placement by many attempts under a budget, and exact placement.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/checked.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/memory/detail/canonical.hpp>
#include <sod2/memory/detail/fit.hpp>
#include <sod2/memory/detail/instance.hpp>
#include <sod2/memory/detail/orders.hpp>
#include <sod2/memory/problem.hpp>

namespace sod2 {

/// Work instead of time keeps plans deterministic: a unit is a conflict looked at. About this many
/// take a millisecond on a core of the 2020s.
inline constexpr std::uint64_t placement_work_per_ms = 300'000;

struct placement_options {
  std::uint64_t work = 30 * placement_work_per_ms;
};

namespace detail {

class placement_planner {
 public:
  explicit placement_planner(const placement_problem& p) : problem_(p), in_(prepare_steps(p)) {
    plain_ = !in_.any_fixed && !in_.guarded;
    bound_ = in_.bound;
    for (const buffer& b : p.buffers)
      steps_ = std::max(steps_, static_cast<double>(b.upper - b.lower));
  }

  /// No placement is below this; proofs raise it.
  std::int64_t bound() const { return bound_; }
  std::int64_t peak() const { return peak_; }
  std::uint64_t work() const { return work_; }
  bool done(std::int64_t target) const { return peak_ <= std::max(target, bound_); }

  /// One pass for each of many orders, until one meets the target or all are tried.
  void passes(std::int64_t target) {
    target = std::max(target, in_.bound);
    if (in_.count == 0) {
      peak_ = in_.fixed_top;
      return;
    }
    constexpr order_key quick[] = {order_key::peak, order_key::size, order_key::area};
    if (reserve_long_lived(in_.bound / 32) || reserve_long_lived(in_.bound / 1024)) {
      add_conflicts(problem_, rest_);
      for (const order_key key : quick)
        if (attempt(rest_, reserved_bytes_, key, fit_rule::first, target)) return;
    }
    add_conflicts(problem_, in_);
    // Nothing but the target counts at first, so that a hopeless pass ends early.
    for (const order_key key : quick)
      if (attempt(in_, 0, key, fit_rule::first, target)) return;
    constexpr order_key all[] = {order_key::peak,     order_key::size,    order_key::area,
                                 order_key::breadth,  order_key::end,     order_key::duration,
                                 order_key::conflict, order_key::outward, order_key::start};
    for (const order_key key : all)
      for (const fit_rule rule : {fit_rule::first, fit_rule::best}) {
        attempt(in_, 0, key, rule, peak_ - 1);
        if (done(target)) return;
      }
  }

  /// Spends the work on lowering the peak: canonical search below ever lower capacities, or changed
  /// orders where that does not apply.
  void improve(std::int64_t target, std::uint64_t work) {
    target = std::max(target, in_.bound);
    const std::uint64_t limit = work_ + work;
    if (!plain_) {
      perturb(target, limit);
      return;
    }
    canonical_search search(in_);
    std::uint64_t slice = 2000ULL * in_.count;
    std::int64_t low = target;
    std::uint32_t round = 0, tries = 0;
    while (!done(target) && work_ < limit) {
      // Each capacity gets a few ranks; where they fail, the next is half way up to the peak known.
      const std::int64_t capacity = low;
      const tri found =
          search_below(search, capacity, round * ranks + tries, std::min(slice, limit - work_));
      if (found == tri::yes) {
        low = target;
        tries = 0;
        continue;
      }
      if (++tries < 3 && found == tri::unknown) continue;
      tries = 0;
      if (done(target)) break;
      const std::int64_t gap = peak_ - 1 - low;
      low = std::max(bound_, low + std::max<std::int64_t>(gap / 2, 1));
      if (gap < in_.bound / 128 || low >= peak_) {
        low = std::max(target, bound_);
        slice *= 2;
        ++round;
      }
    }
  }

  /// Canonical search below one capacity until it is decided or the work is used up.
  tri decide(std::int64_t capacity, std::uint64_t work) {
    const std::uint64_t limit = work_ + work;
    canonical_search search(in_);
    // Many short runs: where an order goes wrong early, no run is long enough.
    std::uint64_t slice = std::max<std::uint64_t>(6'000ULL * in_.count, 1'000'000);
    for (std::uint32_t run = 0; work_ < limit; ++run) {
      const tri found = search_below(search, capacity, run, std::min(slice, limit - work_));
      if (found != tri::unknown) return found;
      if (run % (8 * ranks) == 8 * ranks - 1) slice += slice / 8;
      // What the past blames can be wrong for good: now and then, start afresh.
      if (run % (50 * ranks) == 50 * ranks - 1) search.forget_blame();
    }
    return tri::unknown;
  }
  /// Does canonical search apply?
  bool plain() const { return plain_; }

  placement_plan plan() const { return make_plan(problem_, in_, offsets_.view(), bound_); }

 private:
  /// Small buffers that are live for long around the fullest step all conflict with each other.
  /// Stacked at the bottom they are out of the way, and what remains is much smaller. That costs
  /// nothing where the live bytes of the others leave as much room at every step; buffers that are
  /// in the way of that (not live at a step that is nearly full) aren't taken.
  bool reserve_long_lived(std::int64_t largest) {
    if (!plain_ || !in_.same_alignment) return false;
    constexpr std::uint32_t long_life = 24, worthwhile = 8;
    vector<char> reserved(in_.count, 0);
    vector<std::int64_t> over;
    std::uint32_t first = in_.peak_slot, last = in_.peak_slot;
    for (int round = 0; round < 5; ++round) {
      std::uint32_t found = 0;
      std::int64_t bytes = 0;
      over.assign(in_.slots + 1, 0);  // change of reserved live bytes from slot to slot
      for (std::uint32_t i = 0; i < in_.count; ++i) {
        const std::uint32_t lower = in_.lower.data()[i], upper = in_.upper.data()[i];
        reserved.data()[i] = lower <= first && upper > last && upper - lower >= long_life &&
                             in_.size.data()[i] <= largest;
        if (reserved.data()[i] == 0) continue;
        ++found;
        bytes += in_.size.data()[i];
        over.data()[lower] += in_.size.data()[i];
        over.data()[upper] -= in_.size.data()[i];
      }
      if (found < worthwhile) return false;
      bool fits = true;
      std::int64_t own = 0;
      for (std::uint32_t s = 0; s < in_.slots; ++s) {
        own += over.data()[s];
        if (in_.live.data()[s] - own + bytes <= in_.bound) continue;
        fits = false;
        first = std::min(first, s);
        last = std::max(last, s);
      }
      if (fits) return reserve(reserved.view());
    }
    return false;
  }
  bool reserve(std::span<const char> reserved) {
    offsets_.resize(in_.count);
    for (std::uint32_t i = 0; i < in_.count; ++i) {
      if (reserved[i] == 0) {
        from_rest_.push_back(i);
        continue;
      }
      offsets_.data()[i] = reserved_bytes_;
      reserved_bytes_ += in_.size.data()[i];
    }
    rest_ = without(in_, reserved);
    return true;
  }

  /// True when the pass stays within the limit; its offsets are kept then.
  bool attempt(const placement_instance& in, std::int64_t base, order_key key, fit_rule rule,
               std::int64_t limit) {
    const std::uint64_t before = scratch_.work;
    const std::int64_t peak =
        place_all(in, make_order(in, key).view(), rule, limit - base, scratch_);
    work_ += scratch_.work - before;
    if (peak < 0) return false;
    peak_ = peak + base;
    if (&in == &in_) {
      offsets_ = scratch_.offsets;
    } else {
      for (std::uint32_t k = 0; k < in.count; ++k)
        offsets_.data()[from_rest_.data()[k]] = scratch_.offsets.data()[k] + base;
    }
    return true;
  }

  static constexpr std::uint32_t ranks = 5;
  /// Preferences of the canonical search: a key by lifetime, fullest slot (MiniMalloc, ASPLOS 2024)
  /// or conflicts, raised by what earlier runs failed at, and blurred from the second round on.
  vector<std::uint32_t> rank_order(std::uint32_t run, std::span<const std::uint32_t> blame) const {
    const std::uint32_t kind = run % ranks, round = run / ranks;
    range_max fullest(in_.live);
    std::uint32_t most_blamed = 1;
    for (const std::uint32_t b : blame) most_blamed = std::max(most_blamed, b);
    const auto key = [&](std::uint32_t i) {
      const buffer& b = problem_.buffers.data()[in_.source.data()[i]];
      const double steps = static_cast<double>(b.upper - b.lower) / steps_;
      const double slots =
          static_cast<double>(in_.upper.data()[i] - in_.lower.data()[i]) / in_.slots;
      const double full = static_cast<double>(fullest(in_.lower.data()[i], in_.upper.data()[i])) /
                          static_cast<double>(in_.bound);
      double k = 0;
      switch (kind) {
        case 0:
          k = static_cast<double>(in_.first.data()[i + 1] - in_.first.data()[i]) / in_.count;
          break;
        case 1: k = slots; break;
        case 2: k = full + steps * 1e-6; break;
        case 3: k = steps; break;
        default: k = full * full * full * slots; break;
      }
      const std::uint64_t noise = hash_mix(hash_mix(round, kind), i) >> 40;  // 24 bits
      if (round > 0) k *= 0.7 + 0.6 * static_cast<double>(noise) / (1 << 24);
      k *= 1.0 + (round % 2 == 0 ? 5.0 : 1.0) * blame[i] / most_blamed;
      return static_cast<std::int64_t>(k * 1e17);
    };
    return sorted_items(in_, key, [&](std::uint32_t i) { return in_.size.data()[i]; });
  }

  tri search_below(canonical_search& search, std::int64_t capacity, std::uint32_t run,
                   std::uint64_t work) {
    const std::uint64_t before = search.work();
    const tri found = search.solve(capacity, rank_order(run, search.blame()).view(), work);
    work_ += search.work() - before + in_.count;
    if (found == tri::no) bound_ = std::max(bound_, search.next_capacity());
    if (found != tri::yes) return found;
    offsets_.resize(in_.count);
    peak_ = 0;
    for (std::uint32_t i = 0; i < in_.count; ++i) {
      offsets_.data()[i] = search.offsets()[i];
      peak_ = std::max(peak_, offsets_.data()[i] + in_.size.data()[i]);
    }
    return found;
  }

  /// Local search over orders: an item at the peak moves before an item that it conflicts with.
  void perturb(std::int64_t target, std::uint64_t limit) {
    vector<std::uint32_t> order = sorted_items(
        in_, [&](std::uint32_t i) { return -offsets_.data()[i]; },
        [](std::uint32_t) { return std::int64_t{0}; });
    vector<std::uint32_t> trial, tops;
    std::uint64_t state = 0x9e3779b97f4a7c15ULL;
    const auto random = [&](std::size_t below) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      return static_cast<std::size_t>((state >> 20) % below);
    };
    while (!done(target) && work_ < limit) {
      tops.clear();
      for (std::uint32_t k = 0; k < order.size(); ++k)
        if (offsets_.data()[order[k]] + in_.size.data()[order[k]] == peak_) tops.push_back(k);
      trial = order;
      const std::uint32_t from = tops[random(tops.size())];
      const std::size_t to = from == 0 ? random(order.size()) : random(from);
      const std::uint32_t item = trial[from];
      trial.erase(from);
      trial.insert(to, item);
      const std::uint64_t before = scratch_.work;
      const std::int64_t peak = place_all(in_, trial.view(), fit_rule::first, peak_, scratch_);
      work_ += scratch_.work - before + in_.count;
      if (peak < 0) continue;
      peak_ = peak;
      offsets_ = scratch_.offsets;
      std::swap(order, trial);
    }
  }

  const placement_problem& problem_;
  placement_instance in_, rest_;
  bool plain_ = false;
  std::int64_t reserved_bytes_ = 0;
  vector<std::uint32_t> from_rest_;
  vector<std::int64_t> offsets_;
  std::int64_t peak_ = INT64_MAX;
  std::int64_t bound_ = 0;
  double steps_ = 1;  // longest live range
  std::uint64_t work_ = 0;
  fit_scratch scratch_;
};

}  // namespace detail

/// The best of many passes (orders times first and best fit), then search below ever lower peaks
/// until the lower bound is met or the work is used up. Microseconds where a pass meets the bound.
inline placement_plan place_portfolio(const placement_problem& p,
                                      const placement_options& options = {}) {
  detail::placement_planner planner(p);
  planner.passes(0);
  if (!planner.done(0) && planner.work() < options.work)
    planner.improve(0, options.work - planner.work());
  return planner.plan();
}

/// With a capacity: any placement below it, or a proof that there is none (`lower_bound_bytes` is
/// above the capacity then, and the plan is the best found). Without: the least peak. When the work
/// runs out, the plan is neither feasible nor `exact`. Fixed offsets and guards are beyond the
/// exact search: there, local search takes its place, and only the lower bound proves anything.
inline placement_plan place_exact(const placement_problem& p, const placement_options& options = {
                                                                  60'000 * placement_work_per_ms}) {
  detail::placement_planner planner(p);
  const auto left = [&] { return options.work - std::min(options.work, planner.work()); };
  planner.passes(p.capacity);
  if (!planner.plain()) {
    planner.improve(p.capacity, left());
    return planner.plan();
  }
  planner.improve(p.capacity, std::min(left(), 10 * placement_work_per_ms));
  while (!planner.done(p.capacity) && left() > 0) {
    if (p.capacity != 0 && planner.bound() > p.capacity) break;
    if (planner.decide(std::max(p.capacity, planner.bound()), left()) == tri::unknown) break;
  }
  return planner.plan();
}

}  // namespace sod2
