// Makes layouts for buffers of symbolic sizes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/checked.hpp>
#include <sod2/core/guard.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/expr/context.hpp>
#include <sod2/memory/greedy.hpp>
#include <sod2/memory/portfolio.hpp>
#include <sod2/memory/problem.hpp>
#include <sod2/memory/symbolic.hpp>

namespace sod2 {

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
    collect_conflicts();
    for (const auto& sample : samples) bounds_.push_back(base_.lower_bound(sample));
  }

  /// The layout of up to `most` formulas with the best worst ratio to the lower bound over the
  /// samples. `options` holds for the placement at each sample, and for what improves the result.
  symbolic_layout stacked(const placement_options& options = {10 * placement_work_per_ms},
                          std::size_t most = 3) {
    find_candidates(options);
    return choose(most, candidates_.size());
  }

  /// The same with proofs: of layouts that are equally good at the samples, the one whose formula
  /// has the fewest alternatives beside sums of live bytes. `required` tells what it needs.
  symbolic_layout stacked(dim_context& context, std::span<const dim> bytes,
                          symbolic_layout::requirement& required,
                          const placement_options& options = {10 * placement_work_per_ms},
                          std::size_t most = 3) {
    find_candidates(options);
    symbolic_layout best = choose(most, candidates_.size());
    required = best.required_bytes(context, bytes);
    // Single formulas that are no worse, in the order in which they were tried: nesting first.
    constexpr int tries = 4;
    int left = tries;
    for (std::size_t c = 0; c < candidates_.size() && left > 0 && !required.proved(); ++c) {
      if (worst_of(c) > best.worst_ratio_) continue;
      if (best.formulas_.size() == 1 && best.formulas_[0].order == candidates_[c].order &&
          best.formulas_[0].hangs == candidates_[c].hangs)
        continue;
      --left;
      symbolic_layout other = choose(1, c);
      const symbolic_layout::requirement needs = other.required_bytes(context, bytes);
      if (!needs.bytes.is_known() || (required.bytes.is_known() && needs.excess >= required.excess))
        continue;
      best = std::move(other);
      required = needs;
    }
    return best;
  }

 private:
  /// An order of stacking and the ends of the buffers.
  struct arrangement {
    vector<std::uint32_t> order;
    vector<char> hangs;
  };

  std::span<const std::uint32_t> conflicts(std::uint32_t i) const {
    return {other_.data() + first_.data()[i], first_.data()[i + 1] - first_.data()[i]};
  }
  bool meet(std::uint32_t a, std::uint32_t b) const {
    return conflict(shape_, shape_.buffers[a], shape_.buffers[b]);
  }
  std::span<const std::int64_t> aligned(std::size_t row) const {
    return base_.samples_.view().subspan(row * base_.count_, base_.count_);
  }

  // ---- candidates ----

  /// Only so many samples are placed one by one; all of them judge.
  static constexpr std::size_t placed_samples = 3;

  void find_candidates(const placement_options& options) {
    candidates_.clear();
    arrangements_.clear();
    ratios_.clear();
    if (samples_.empty() || base_.count_ == 0) {
      add_candidate(in_order());
      return;
    }
    add_candidate(nested());
    if (worst_of(0) <= 1.0) return;
    for (std::size_t row = 0; row < std::min(samples_.size(), placed_samples); ++row) {
      placement_problem p = shape_;
      for (std::size_t i = 0; i < base_.count_; ++i) p.buffers.data()[i].size = samples_[row][i];
      const placement_plan best = place_portfolio(p, options);
      add_candidate(by_offset(best, samples_[row]));
      if (row > 0 && best.exact) continue;  // the simple ones can hardly help
      add_candidate(by_offset(place_peak_first(p), samples_[row]));
      add_candidate(by_offset(place_by_size(p), samples_[row]));
    }
    const std::size_t found = candidates_.size();
    std::size_t best = 0;
    for (std::size_t c = 0; c < found; ++c)
      if (better(c, best)) best = c;
    if (worst_of(best) <= 1.0) return;
    // Both the nested one and the best so far may be a few moves from a good one.
    improve(arrangements_[0], options.work);
    if (best != 0 && worst_of(candidates_.size() - 1) > 1.0)
      improve(arrangements_[best], options.work);
  }
  double worst_of(std::size_t c) const {
    double worst = 1.0;
    for (std::size_t row = 0; row < samples_.size(); ++row)
      worst = std::max(worst, ratios_[c * samples_.size() + row]);
    return worst;
  }
  double sum_of(std::size_t c) const {
    double sum = 0;
    for (std::size_t row = 0; row < samples_.size(); ++row)
      sum += ratios_[c * samples_.size() + row];
    return sum;
  }
  bool better(std::size_t a, std::size_t b) const {
    const double x = worst_of(a), y = worst_of(b);
    return x != y ? x < y : sum_of(a) < sum_of(b);
  }
  void add_candidate(arrangement a) {
    for (const arrangement& known : arrangements_)
      if (known.order == a.order && known.hangs == a.hangs) return;
    candidates_.push_back(formula_of(a));
    arrangements_.push_back(std::move(a));
    vector<std::int64_t> offsets(base_.count_);
    for (std::size_t row = 0; row < samples_.size(); ++row) {
      const std::int64_t peak =
          symbolic_layout::stack(candidates_.back(), base_.alignment_, samples_[row], offsets);
      ratios_.push_back(ratio(peak, row));
    }
  }
  double ratio(std::int64_t peak, std::size_t row) const {
    return bounds_[row] == 0 ? 1.0 : static_cast<double>(peak) / static_cast<double>(bounds_[row]);
  }
  /// One formula after the other, each lowering the worst ratio as far as possible; `only`: that
  /// candidate alone, if there is such a one.
  symbolic_layout choose(std::size_t most, std::size_t only) const {
    symbolic_layout out = base_;
    const std::size_t rows = samples_.size();
    vector<double> reached(rows, 1e300);
    double worst = 1e300, sum = 1e300;
    while (out.formulas_.size() < most) {
      std::size_t best = candidates_.size();
      for (std::size_t c = 0; c < candidates_.size(); ++c) {
        if (only < candidates_.size() && c != only) continue;
        double w = 1.0, s = 0.0;
        for (std::size_t row = 0; row < rows; ++row) {
          const double now = std::min(ratios_[c * rows + row], reached[row]);
          w = std::max(w, now);
          s += now;
        }
        if (w > worst || (w == worst && s >= sum)) continue;
        best = c;
        worst = w;
        sum = s;
      }
      if (best == candidates_.size()) break;
      for (std::size_t row = 0; row < rows; ++row)
        reached[row] = std::min(reached[row], ratios_[best * rows + row]);
      out.formulas_.push_back(candidates_[best]);
      if (worst <= 1.0) break;
    }
    out.worst_ratio_ = worst;
    return out;
  }

  // ---- arrangements ----

  arrangement in_order() const {
    arrangement a;
    for (std::uint32_t i = 0; i < base_.count_; ++i) a.order.push_back(i);
    a.hangs.assign(base_.count_, 0);
    return a;
  }
  /// All at the low end by rising offset; empty ones below others at the same offset.
  arrangement by_offset(const placement_plan& plan, std::span<const std::int64_t> sizes) const {
    arrangement out = in_order();
    stable_sort(out.order.begin(), out.order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const std::int64_t x = plan.offsets.data()[a], y = plan.offsets.data()[b];
      return x != y ? x < y : sizes[a] == 0 && sizes[b] != 0;
    });
    return out;
  }
  /// Longer lives below shorter ones, and as few lives as possible that cross another one (born
  /// later, dies later) at the same end: those open holes. Crossings are the edges of a graph that
  /// wants two colours; where it has odd cycles, crossings that cost little at the samples stay.
  arrangement nested() const {
    struct crossing {
      std::uint32_t a = 0, b = 0;
      std::int64_t cost = 0;   // bytes in a million of the bound that the hole adds to the peak
      std::int64_t bytes = 0;  // the hole's own
    };
    const auto n = static_cast<std::uint32_t>(base_.count_);
    const vector<buffer>& buffers = shape_.buffers;
    vector<crossing> crossings;
    for (std::uint32_t a = 0; a < n; ++a)
      for (const std::uint32_t b : conflicts(a))
        if (buffers[a].lower < buffers[b].lower && buffers[a].upper < buffers[b].upper)
          crossings.push_back({a, b, 0, 0});
    const auto share = [](std::int64_t bytes, std::int64_t bound) {
      return static_cast<std::int64_t>(static_cast<double>(bytes) / static_cast<double>(bound) *
                                       1e6);
    };
    for (std::size_t row = 0; row < samples_.size(); ++row) {
      if (bounds_[row] == 0) continue;
      const live_bytes live(buffers, aligned(row));
      for (crossing& c : crossings) {
        // Either a hole below the later one once the earlier is gone, or the other way round.
        const std::int64_t x = aligned(row)[c.a], y = aligned(row)[c.b];
        const std::int64_t late = live.most(buffers[c.a].upper, buffers[c.b].upper) + x;
        const std::int64_t early = live.most(buffers[c.a].lower, buffers[c.b].lower) + y;
        const std::int64_t least = std::min(late, early) - bounds_[row];
        c.cost = std::max(c.cost, share(std::max<std::int64_t>(least, 0), bounds_[row]));
        c.bytes = std::max(c.bytes, share(std::min(x, y), bounds_[row]));
      }
    }
    stable_sort(crossings.begin(), crossings.end(), [](const crossing& x, const crossing& y) {
      return x.cost != y.cost ? x.cost > y.cost : x.bytes > y.bytes;
    });
    // Union-find with parity: the costliest crossings are kept apart first.
    vector<std::uint32_t> parent(n);
    vector<char> parity(n, 0);  // to the parent
    for (std::uint32_t i = 0; i < n; ++i) parent[i] = i;
    const auto find = [&](std::uint32_t i) {
      char odd = 0;
      while (parent[i] != i) {
        odd ^= parity[i];
        i = parent[i];
      }
      return std::pair<std::uint32_t, char>(i, odd);
    };
    for (const crossing& c : crossings) {
      const auto [x, odd_a] = find(c.a);
      const auto [y, odd_b] = find(c.b);
      if (x == y) continue;
      const std::uint32_t root = x < y ? x : y;
      const std::uint32_t leaf = x < y ? y : x;
      parent[leaf] = root;
      parity[leaf] = static_cast<char>(1 ^ odd_a ^ odd_b);
    }
    arrangement out = in_order();
    for (std::uint32_t i = 0; i < n; ++i) out.hangs[i] = find(i).second;
    stable_sort(out.order.begin(), out.order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return buffers[a].lower != buffers[b].lower ? buffers[a].lower < buffers[b].lower
                                                  : buffers[a].upper > buffers[b].upper;
    });
    return out;
  }
  /// Live bytes of every step at one sample.
  struct live_bytes {
    vector<std::int64_t> steps, bytes;
    live_bytes(const vector<buffer>& buffers, std::span<const std::int64_t> sizes) {
      struct event {
        std::int64_t step = 0, change = 0;
      };
      vector<event> events;
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        if (buffers[i].lower == buffers[i].upper) continue;
        events.push_back({buffers[i].lower, sizes[i]});
        events.push_back({buffers[i].upper, -sizes[i]});
      }
      stable_sort(events.begin(), events.end(),
                  [](const event& a, const event& b) { return a.step < b.step; });
      std::int64_t now = 0;
      for (std::size_t k = 0; k < events.size(); ++k) {
        now += events[k].change;
        if (k + 1 < events.size() && events[k + 1].step == events[k].step) continue;
        steps.push_back(events[k].step);
        bytes.push_back(now);
      }
    }
    std::int64_t most(std::int64_t from, std::int64_t to) const {
      std::size_t low = 0, high = steps.size();
      while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (steps[middle] < from)
          low = middle + 1;
        else
          high = middle;
      }
      std::int64_t out = 0;
      for (; low < steps.size() && steps[low] < to; ++low) out = std::max(out, bytes[low]);
      return out;
    }
  };

  /// Changes the arrangement where it hurts at the worst sample: a buffer of the chains that make
  /// the peak goes to the other end, or below or above another one.
  void improve(arrangement a, std::uint64_t work) {
    const auto n = static_cast<std::uint32_t>(base_.count_);
    const std::size_t rows = samples_.size();
    vector<std::uint32_t> position(n);
    vector<std::int64_t> at(n);
    vector<std::uint32_t> culprits;
    std::uint64_t used = 0, state = 0x9e3779b97f4a7c15ULL;
    const auto below = [&](std::uint64_t limit) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      return (state >> 16) % limit;
    };
    struct score {
      double worst = 1.0, sum = 0.0;
      std::size_t row = 0;
    };
    const auto peak_of = [&](const arrangement& x, std::size_t row, bool trace) {
      const std::span<const std::int64_t> sizes = aligned(row);
      for (const std::uint32_t i : x.order) {
        std::int64_t offset = 0;
        for (const std::uint32_t j : conflicts(i))
          if (position[j] < position[i] && x.hangs[j] == x.hangs[i])
            offset = std::max(offset, at[j] + sizes[j]);
        at[i] = offset;
        used += conflicts(i).size() + 2;
      }
      std::int64_t peak = -1;
      std::uint32_t low = n, high = n;
      for (std::size_t s = 0; s + 1 < base_.live_first_.size(); ++s) {
        std::int64_t ends[2] = {0, 0};
        std::uint32_t tops[2] = {n, n};
        for (std::uint32_t k = base_.live_first_[s]; k < base_.live_first_[s + 1]; ++k) {
          const std::uint32_t i = base_.live_[k];
          const int side = x.hangs[i] != 0 ? 1 : 0;
          if (at[i] + sizes[i] <= ends[side]) continue;
          ends[side] = at[i] + sizes[i];
          tops[side] = i;
        }
        if (ends[0] + ends[1] <= peak) continue;
        peak = ends[0] + ends[1];
        low = tops[0];
        high = tops[1];
      }
      used += base_.live_.size();
      if (trace) {
        culprits.clear();
        for (std::uint32_t i : {low, high})
          while (i < n) {
            culprits.push_back(i);
            std::uint32_t under = n;
            for (const std::uint32_t j : conflicts(i))
              if (position[j] < position[i] && x.hangs[j] == x.hangs[i] &&
                  at[j] + sizes[j] == at[i] && at[i] > 0)
                under = j;
            i = under;
          }
      }
      return peak;
    };
    const auto rate = [&](const arrangement& x, double limit) {
      score out;
      for (std::uint32_t k = 0; k < n; ++k) position[x.order[k]] = k;
      for (std::size_t row = 0; row < rows; ++row) {
        const double r = ratio(peak_of(x, row, false), row);
        if (r > out.worst) {
          out.worst = r;
          out.row = row;
        }
        out.sum += r;
        if (out.worst > limit) break;
      }
      return out;
    };
    score best = rate(a, 1e300);
    arrangement fresh;
    while (used < work && best.worst > 1.0) {
      for (std::uint32_t k = 0; k < n; ++k) position[a.order[k]] = k;
      peak_of(a, best.row, true);
      for (int tries = 0; tries < 24 && used < work; ++tries) {
        fresh = a;
        const std::uint32_t i = culprits[below(culprits.size())];
        const std::uint64_t move = below(4);
        if (move < 2) fresh.hangs[i] = fresh.hangs[i] != 0 ? 0 : 1;
        if (move > 0 && !conflicts(i).empty()) {
          // To the place of one that it conflicts with.
          const std::uint32_t j = conflicts(i)[below(conflicts(i).size())];
          std::size_t from = 0, to = 0;
          while (fresh.order[from] != i) ++from;
          while (fresh.order[to] != j) ++to;
          fresh.order.erase(from);
          fresh.order.insert(to, i);
          if (move == 3) fresh.hangs[i] = fresh.hangs[j];
        }
        const score now = rate(fresh, best.worst);
        if (now.worst > best.worst || (now.worst == best.worst && now.sum > best.sum)) continue;
        const bool moved = now.row != best.row || now.worst < best.worst;
        best = now;
        a = fresh;
        if (moved) break;
      }
    }
    add_candidate(std::move(a));
  }

  // ---- structure ----

  /// Who rests on whom, and which ends meet, thinned out.
  layout_formula formula_of(const arrangement& a) const {
    const auto n = static_cast<std::uint32_t>(base_.count_);
    const vector<buffer>& buffers = shape_.buffers;
    vector<std::uint32_t> position(n);
    for (std::uint32_t k = 0; k < n; ++k) position[a.order[k]] = k;
    layout_formula f;
    f.order = a.order;
    f.hangs = a.hangs;
    // From the highest down: what some kept one rests on, directly or not, says nothing new. Sets
    // are bits by position.
    const std::size_t words = (static_cast<std::size_t>(n) + 63) / 64;
    const auto has = [](const std::uint64_t* set, std::uint32_t k) {
      return (set[k / 64] >> (k % 64) & 1U) != 0;
    };
    const auto put = [](std::uint64_t* set, std::uint32_t k) { set[k / 64] |= 1ULL << (k % 64); };
    vector<std::uint64_t> reach(words * n, 0);  // positions that k rests on
    vector<vector<std::uint32_t>> above(n);     // that rest on k directly
    vector<std::uint32_t> under;
    f.first.push_back(0);
    for (std::uint32_t k = 0; k < n; ++k) {
      under.clear();
      for (const std::uint32_t j : conflicts(a.order[k]))
        if (position[j] < k && a.hangs[j] == a.hangs[a.order[k]]) under.push_back(position[j]);
      stable_sort(under.begin(), under.end(),
                  [](std::uint32_t x, std::uint32_t y) { return x > y; });
      std::uint64_t* mine = reach.data() + words * k;
      for (const std::uint32_t j : under) {
        if (has(mine, j)) continue;
        const std::uint64_t* theirs = reach.data() + words * j;
        for (std::size_t w = 0; w < words; ++w) mine[w] |= theirs[w];
        put(mine, j);
        f.below.push_back(a.order[j]);
        above[j].push_back(k);
      }
      f.first.push_back(static_cast<std::uint32_t>(f.below.size()));
    }
    // Ends that meet. What a buffer carries meets at least as much of the other end as it does.
    vector<std::uint64_t> met(words * n, 0), carried(words), covered(words);
    for (std::uint32_t k = n; k-- > 0;) {
      const std::uint32_t i = a.order[k];
      if (buffers[i].lower == buffers[i].upper) continue;
      std::uint64_t* mine = met.data() + words * k;
      for (std::uint64_t& w : carried) w = 0;
      for (const std::uint32_t j : above[k])
        for (std::size_t w = 0; w < words; ++w) carried[w] |= met[words * j + w];
      for (std::size_t w = 0; w < words; ++w) mine[w] = carried[w];
      for (const std::uint32_t j : conflicts(i))
        if (a.hangs[j] != a.hangs[i]) put(mine, position[j]);
      if (a.hangs[i] != 0) continue;
      // Dropped: what something above it meets too, and what carries something that is met.
      for (std::size_t w = 0; w < words; ++w) covered[w] = carried[w];
      bool any = false;
      for (std::uint32_t j = n; j-- > 0;) {
        if (!has(mine, j)) continue;
        any = true;
        const std::uint64_t* theirs = reach.data() + words * j;
        for (std::size_t w = 0; w < words; ++w) covered[w] |= theirs[w];
        if (!has(covered.data(), j)) f.meetings.push_back({i, a.order[j]});
      }
      if (!any && above[k].empty()) f.meetings.push_back({i, layout_formula::nothing});
    }
    for (std::uint32_t k = 0; k < n; ++k) {
      const std::uint32_t i = a.order[k];
      if (a.hangs[i] == 0 || !above[k].empty() || buffers[i].lower == buffers[i].upper) continue;
      bool any = false;
      for (const std::uint32_t j : conflicts(i)) any |= a.hangs[j] == 0;
      if (!any) f.meetings.push_back({layout_formula::nothing, i});
    }
    return f;
  }
  /// Conflicts by a sweep in time.
  void collect_conflicts() {
    const auto n = static_cast<std::uint32_t>(base_.count_);
    const vector<buffer>& buffers = shape_.buffers;
    vector<std::uint32_t> by_start, active;
    vector<vector<std::uint32_t>> lists(n);
    for (std::uint32_t i = 0; i < n; ++i)
      if (buffers[i].lower < buffers[i].upper) by_start.push_back(i);
    stable_sort(by_start.begin(), by_start.end(), [&](std::uint32_t a, std::uint32_t b) {
      return buffers[a].lower < buffers[b].lower;
    });
    for (const std::uint32_t i : by_start) {
      std::size_t kept = 0;
      for (const std::uint32_t j : active) {
        if (buffers[j].upper <= buffers[i].lower) continue;
        active[kept++] = j;
        if (!meet(i, j)) continue;
        lists[i].push_back(j);
        lists[j].push_back(i);
      }
      active.resize(kept);
      active.push_back(i);
    }
    first_.push_back(0);
    for (const vector<std::uint32_t>& list : lists) {
      other_.append(list.view());
      first_.push_back(static_cast<std::uint32_t>(other_.size()));
    }
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
  vector<std::int64_t> bounds_;          // per sample
  vector<std::uint32_t> first_, other_;  // conflicts of i: other_[first_[i]] .. [first_[i + 1]]
  vector<layout_formula> candidates_;
  vector<arrangement> arrangements_;  // of the candidates
  vector<double> ratios_;             // a row a candidate
};

}  // namespace sod2
