// Planners of execution order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <sod2/core/guard.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/schedule/detail/graph.hpp>
#include <sod2/schedule/detail/heuristics.hpp>
#include <sod2/schedule/detail/segment.hpp>
#include <sod2/schedule/problem.hpp>
#include <sod2/schedule/validate.hpp>

namespace sod2 {

/// How much work the searches may do. A unit is about one storage looked at, 5-10 ns; counting work
/// instead of time keeps plans deterministic.
struct order_options {
  std::uint64_t work = 180'000'000;
  std::uint32_t beam_width = 64;  // widest beam tried
};

namespace detail {

/// Bytes that every order needs while some node runs: what the node touches, and what a node before
/// it made for a node after it. The second part needs reachability, quadratic in bits, and is left
/// out for large or guarded problems.
inline std::int64_t order_bound(const order_graph& g, bool guarded) {
  std::int64_t bound = 0;
  const auto own_need = [&](std::uint32_t v) {
    std::int64_t bytes = g.workspace.data()[v];
    for (const std::uint32_t s : g.touched[v]) bytes += g.storages.data()[s].bytes;
    for (std::uint32_t k = g.reuse_first.data()[v]; k < g.reuse_first.data()[v + 1]; ++k)
      bytes -= g.storages.data()[g.reuses.data()[k].output].bytes;
    return bytes;
  };
  if (!guarded) bound = g.base;
  for (std::uint32_t v = 0; v < g.nodes; ++v) bound = std::max(bound, own_need(v));
  constexpr std::uint32_t large = 6000;
  if (guarded || g.nodes == 0 || g.nodes > large) return bound;

  // before(v), after(v): bits of ancestors and descendants.
  const std::size_t words = (g.nodes + 63) / 64;
  const vector<std::uint32_t> order = first_ready_order(g);
  vector<std::uint64_t> before(words * g.nodes, 0), after(words * g.nodes, 0);
  const auto merge = [&](vector<std::uint64_t>& bits, std::uint32_t into, std::uint32_t from) {
    std::uint64_t* a = bits.data() + words * into;
    const std::uint64_t* b = bits.data() + words * from;
    for (std::size_t w = 0; w < words; ++w) a[w] |= b[w];
    a[from / 64] |= 1ULL << (from % 64);
  };
  for (const std::uint32_t v : order)
    for (const std::uint32_t u : g.previous[v]) merge(before, v, u);
  for (std::size_t k = order.size(); k > 0; --k)
    for (const std::uint32_t w : g.next[order[k - 1]]) merge(after, order[k - 1], w);

  // A storage is live while v runs if some toucher is an ancestor (or it is an input) and some is
  // a descendant (or it is an output). Per storage: the nodes that lie in both sets.
  vector<std::int64_t> live(g.nodes, 0);
  vector<std::uint64_t> made(words), used(words);
  for (std::uint32_t s = 0; s < g.storages.size(); ++s) {
    const order_graph::storage& x = g.storages[s];
    if (x.touches == 0 && !(x.input && x.pinned)) continue;
    std::fill(made.begin(), made.end(), x.input ? ~0ULL : 0ULL);
    std::fill(used.begin(), used.end(), x.pinned ? ~0ULL : 0ULL);
    for (const std::uint32_t t : g.touchers[s])
      for (std::size_t w = 0; w < words; ++w) {
        made.data()[w] |= after.data()[words * t + w];
        used.data()[w] |= before.data()[words * t + w];
      }
    for (const std::uint32_t t : g.touchers[s]) made.data()[t / 64] &= ~(1ULL << (t % 64));
    for (std::size_t w = 0; w < words; ++w) {
      std::uint64_t both = made.data()[w] & used.data()[w];
      for (; both != 0; both &= both - 1) {
        const std::size_t v = 64 * w + static_cast<std::size_t>(__builtin_ctzll(both));
        if (v < g.nodes) live.data()[v] += x.bytes;
      }
    }
  }
  for (std::uint32_t v = 0; v < g.nodes; ++v) bound = std::max(bound, live[v] + own_need(v));
  // At the very end all outputs are live, at the start all inputs.
  return bound;
}

/// Peak as `validate` counts it.
inline std::int64_t true_peak(const order_problem& p, const order_graph& g,
                              std::span<const std::uint32_t> order) {
  if (p.guards.empty()) return peak_of(g, order);
  auto peak = sod2::peak_of(p, order);
  return peak ? *peak : INT64_MAX;
}

inline order_plan make_plan(const order_problem& p, const order_graph& g,
                            vector<std::uint32_t> order) {
  order_plan plan;
  plan.peak_bytes = true_peak(p, g, order.view());
  plan.order = std::move(order);
  plan.lower_bound_bytes = order_bound(g, !p.guards.empty());
  plan.exact = plan.peak_bytes == plan.lower_bound_bytes;
  return plan;
}

/// Searches the graph segment by segment, starting from the best order known.
class order_improver {
 public:
  order_improver(const order_graph& g, vector<std::uint32_t> order, std::int64_t bound)
      : graph_(g), order_(std::move(order)), bound_(bound) {
    const vector<std::uint32_t> cuts = cuts_of(g, order_.view());
    std::uint32_t from = 0;
    for (const std::uint32_t cut : cuts) {
      parts_.push_back({from, cut + 1, 0, 0});
      from = cut + 1;
    }
    measure();
    for (part& x : parts_) x.bound = x.from + 1 == x.to ? x.peak : 0;
  }

  /// Takes over whatever segment of another order is better: in every topological order a segment
  /// holds the same nodes.
  void offer(std::span<const std::uint32_t> other) {
    order_state s(graph_);
    for (part& x : parts_) {
      std::int64_t peak = s.live;
      for (std::uint32_t k = x.from; k < x.to; ++k) {
        const order_state::cost c = s.cost_of(other[k]);
        peak = std::max(peak, s.live + c.need);
        s.run(other[k], c.delta, ignore, ignore);
      }
      if (peak < x.peak) {
        x.peak = peak;
        for (std::uint32_t k = x.from; k < x.to; ++k) order_[k] = other[k];
      }
    }
  }

  std::int64_t peak() const {
    std::int64_t most = graph_.base;
    for (const part& x : parts_) most = std::max(most, x.peak);
    return most;
  }
  std::int64_t bound() const {
    std::int64_t most = bound_;
    for (const part& x : parts_) most = std::max(most, x.bound);
    return most;
  }
  vector<std::uint32_t> take() && { return std::move(order_); }

  /// Lowers the highest step by reordering a window around it, wider windows after narrow ones,
  /// until that fails or the work is used up: what remains for graphs too large to be searched as a
  /// whole.
  std::uint64_t refine(const std::uint64_t budget) {
    std::uint64_t work = budget;
    const std::uint32_t n = graph_.nodes;
    vector<std::int64_t> need(n);
    while (work > 0) {
      order_state s(graph_);
      std::uint32_t top = 0;
      for (std::uint32_t k = 0; k < n; ++k) {
        const order_state::cost c = s.cost_of(order_[k]);
        need[k] = s.live + c.need;
        if (need[k] > need[top]) top = k;
        s.run(order_[k], c.delta, ignore, ignore);
      }
      work -= std::min<std::uint64_t>(work, n);
      if (n == 0 || need[top] <= bound()) break;
      bool lowered = false;
      for (std::uint32_t width = 24; !lowered && work > 0; width *= 3) {
        const std::uint32_t from = top > width / 2 ? top - width / 2 : 0;
        const std::uint32_t to = std::min(n, top + width / 2 + 1);
        // Below the highest step elsewhere nothing is gained.
        std::int64_t floor = bound();
        for (std::uint32_t k = 0; k < n; ++k)
          if ((k < from || k >= to) && need[k] > floor) floor = need[k];
        floor = std::min(floor, need[top] - 1);
        const auto prefix = order_.view().first(from);
        const auto window = order_.view().subspan(from, to - from);
        const std::uint64_t slice = std::min<std::uint64_t>(work, 4'000'000);
        segment_result r = exact_segment(graph_, prefix, window, floor, need[top], slice / 2);
        work -= std::min(work, r.work + n);
        if (r.order.empty() && r.bound < need[top]) {
          r = beam_segment(graph_, prefix, window, floor, need[top], 16, 6, slice);
          work -= std::min(work, r.work + n);
        }
        if (!r.order.empty()) {
          for (std::uint32_t k = 0; k < r.order.size(); ++k) order_[from + k] = r.order[k];
          lowered = true;
        }
        if (to - from == n) break;
      }
      if (!lowered) break;
    }
    measure();
    return budget - work;
  }

  /// Improves the segment with the highest peak until that is proved or the budget is used up.
  /// Search is `search(prefix, segment, floor, limit, work)`, returning a segment_result. Returns
  /// the work done.
  template <class Search>
  std::uint64_t improve(const std::uint64_t budget, Search search) {
    std::uint64_t work = budget;
    for (part& x : parts_) x.tried = false;
    while (work > 0 && peak() > bound()) {
      part* worst = nullptr;
      for (part& x : parts_)
        if (!x.tried && x.peak > bound() && (worst == nullptr || x.peak > worst->peak)) worst = &x;
      if (worst == nullptr) break;
      worst->tried = true;
      const auto prefix = order_.view().first(worst->from);
      const auto segment = order_.view().subspan(worst->from, worst->to - worst->from);
      segment_result r = search(prefix, segment, bound(), worst->peak, work);
      work -= std::min(work, r.work);
      worst->bound = std::max(worst->bound, r.bound);
      if (r.order.empty()) continue;
      for (std::uint32_t k = 0; k < r.order.size(); ++k) order_[worst->from + k] = r.order[k];
      measure();
    }
    return budget - work;
  }

 private:
  struct part {
    std::uint32_t from = 0, to = 0;
    std::int64_t peak = 0, bound = 0;
    bool tried = false;
  };
  void measure() {
    order_state s(graph_);
    for (part& x : parts_) {
      x.peak = s.live;
      for (std::uint32_t k = x.from; k < x.to; ++k) {
        const order_state::cost c = s.cost_of(order_[k]);
        x.peak = std::max(x.peak, s.live + c.need);
        s.run(order_[k], c.delta, ignore, ignore);
      }
    }
  }

  const order_graph& graph_;
  vector<std::uint32_t> order_;
  std::int64_t bound_;
  vector<part> parts_;
};

/// The better of a plan and what an improver made of it.
inline order_plan finish(const order_problem& p, const order_graph& g, order_plan plan,
                         order_improver improver) {
  // The search counted guarded nodes as if all ran: its bound is none then.
  if (p.guards.empty()) plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, improver.bound());
  vector<std::uint32_t> found = std::move(improver).take();
  const std::int64_t peak = true_peak(p, g, found.view());
  if (peak < plan.peak_bytes) {
    plan.order = std::move(found);
    plan.peak_bytes = peak;
  }
  plan.exact = plan.peak_bytes == plan.lower_bound_bytes;
  return plan;
}

inline order_plan best_of(const order_problem& p, const order_graph& g,
                          vector<vector<std::uint32_t>> starts, const order_options& options) {
  std::size_t best = 0;
  std::int64_t best_peak = INT64_MAX;
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const std::int64_t peak = true_peak(p, g, starts[k].view());
    if (peak < best_peak) {
      best_peak = peak;
      best = k;
    }
  }
  vector<std::uint32_t> order = starts[best];
  order_plan plan = make_plan(p, g, std::move(order));
  if (plan.exact) return plan;
  order_improver improver(g, starts[best], plan.lower_bound_bytes);
  for (const auto& other : starts) improver.offer(other.view());
  std::uint64_t left = options.work;
  const auto exact = [&](std::uint64_t share) {
    left -= improver.improve(std::min(left, share),
                             [&](auto prefix, auto segment, auto floor, auto limit, auto work) {
                               return exact_segment(g, prefix, segment, floor, limit, work);
                             });
  };
  const auto beam = [&](std::uint64_t share, std::uint32_t width) {
    if (width > options.beam_width) return;
    left -= improver.improve(
        std::min(left, share), [&](auto prefix, auto segment, auto floor, auto limit, auto work) {
          return beam_segment(g, prefix, segment, floor, limit, width, 8, work);
        });
  };
  // A narrow beam lowers the limit of the exact search. Where that gives up, windows are reordered,
  // then wider beams follow, and what is left goes to windows again.
  beam(options.work / 16, 4);
  exact(options.work / 16);
  left -= improver.refine(std::min(left, options.work / 4));
  exact(options.work / 3);
  beam(options.work / 12, 16);
  beam(options.work / 8, options.beam_width);
  left -= improver.refine(left);
  return finish(p, g, std::move(plan), std::move(improver));
}

}  // namespace detail

// All planners require a problem that `validate` accepts and are deterministic. With guards they
// search as if all arms ran and report the peak that `validate` counts.

/// The order of the nodes as numbered, repaired where that is not topological.
inline order_plan order_given(const order_problem& p) {
  const detail::order_graph g(p);
  return detail::make_plan(p, g, detail::first_ready_order(g));
}

/// Depth-first from the outputs, heavier subtrees first. Linear.
inline order_plan order_depth_first(const order_problem& p) {
  const detail::order_graph g(p);
  return detail::make_plan(p, g, detail::depth_first_order(g));
}

/// The ready node with the least growth of live memory first. O(E log N).
inline order_plan order_greedy(const order_problem& p) {
  const detail::order_graph g(p);
  return detail::make_plan(p, g, detail::greedy_order(g, detail::greedy_rule::delta_oldest));
}

/// Beam search of `options.beam_width` within the work of `options`, from the greedy order.
inline order_plan order_beam(const order_problem& p, const order_options& options = {}) {
  const detail::order_graph g(p);
  order_plan plan = order_greedy(p);
  detail::order_improver improver(g, plan.order, plan.lower_bound_bytes);
  improver.improve(options.work, [&](auto prefix, auto segment, auto floor, auto limit, auto work) {
    return detail::beam_segment(g, prefix, segment, floor, limit, options.beam_width, 8, work);
  });
  return detail::finish(p, g, std::move(plan), std::move(improver));
}

/// Exact search over downsets (in the spirit of SERENITY, MLSys 2020), segment by segment between
/// nodes that every order passes at the same place, from the given order; `exact` is false when the
/// work ran out.
inline order_plan order_exact(const order_problem& p, const order_options& options = {}) {
  const detail::order_graph g(p);
  order_plan plan = order_given(p);
  detail::order_improver improver(g, plan.order, plan.lower_bound_bytes);
  improver.improve(options.work, [&](auto prefix, auto segment, auto floor, auto limit, auto work) {
    return detail::exact_segment(g, prefix, segment, floor, limit, work);
  });
  return detail::finish(p, g, std::move(plan), std::move(improver));
}

/// Everything: the passes above, then exact search, then beams and reordered windows where that
/// gave up. Never worse than any of the passes.
inline order_plan order_best(const order_problem& p, const order_options& options = {}) {
  const detail::order_graph g(p);
  vector<vector<std::uint32_t>> starts;
  starts.push_back(detail::first_ready_order(g));
  starts.push_back(detail::depth_first_order(g));
  for (const auto rule : {detail::greedy_rule::delta_oldest, detail::greedy_rule::delta_newest,
                          detail::greedy_rule::need})
    starts.push_back(detail::greedy_order(g, rule));
  return detail::best_of(p, g, std::move(starts), options);
}

}  // namespace sod2
