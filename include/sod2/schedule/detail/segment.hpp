// Exact and beam search within one segment, and how a graph falls into segments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/schedule/detail/graph.hpp>
#include <sod2/schedule/detail/search.hpp>

namespace sod2::detail {

/// Positions in a topological order after which the graph is cut: exactly the same nodes come
/// before in every topological order. The last position is one of them.
inline vector<std::uint32_t> cuts_of(const order_graph& g, std::span<const std::uint32_t> order) {
  const std::uint32_t n = g.nodes;
  vector<std::uint32_t> position(n), reach(n + 1, 0), back(n + 1, n), cuts;
  for (std::uint32_t k = 0; k < n; ++k) position[order[k]] = k;
  // reach[k]: the farthest first successor among the nodes before k. A node at k that is not below
  // reach[k] has all of them as ancestors. back[k]: the nearest last predecessor of those from k
  // on.
  for (std::uint32_t k = 0; k < n; ++k) {
    std::uint32_t nearest = n;
    for (const std::uint32_t w : g.next[order[k]]) nearest = std::min(nearest, position[w]);
    reach[k + 1] = std::max(reach[k], nearest);
  }
  for (std::uint32_t k = n; k > 0; --k) {
    std::uint32_t farthest = n;  // a source is nobody's descendant
    for (const std::uint32_t u : g.previous[order[k - 1]])
      farthest = farthest == n ? position[u] : std::max(farthest, position[u]);
    back[k - 1] = std::min(back[k], farthest == n ? 0 : farthest);
    if (farthest == n) back[k - 1] = 0;
  }
  bool source_after = false;
  vector<char> clear(n, 0);
  for (std::uint32_t k = n; k > 0; --k) {
    clear[k - 1] = !source_after && (k == n || back[k] >= k - 1);
    source_after |= g.previous[order[k - 1]].empty();
  }
  // A node comparable with all others separates them: once before it, once after it.
  for (std::uint32_t k = 0; k < n; ++k) {
    if (reach[k] > k || clear[k] == 0) continue;
    if (k > 0 && (cuts.empty() || cuts.back() != k - 1)) cuts.push_back(k - 1);
    cuts.push_back(k);
  }
  if (n > 0 && (cuts.empty() || cuts.back() != n - 1)) cuts.push_back(n - 1);
  return cuts;
}

struct segment_result {
  vector<std::uint32_t> order;  // empty: nothing below the limit was found
  std::int64_t bound = 0;       // no order of the segment has a lower peak
  std::uint64_t work = 0;
};

/// Least peak by a search that is best-first in the peak and depth-first within it. Starts at peak
/// `floor` and stops below `limit`: an empty order with bound == limit proves that none is lower.
inline segment_result exact_segment(const order_graph& g, std::span<const std::uint32_t> prefix,
                                    std::span<const std::uint32_t> segment, std::int64_t floor,
                                    std::int64_t limit, std::uint64_t budget) {
  downset_search search(g, prefix, segment);
  struct blocked {
    std::int64_t need = 0;
    std::uint32_t record = 0;
  };
  const auto later = [](const blocked& a, const blocked& b) {
    return a.need != b.need ? a.need > b.need : a.record < b.record;
  };
  segment_result result;
  vector<blocked> waiting;
  vector<std::uint32_t> open, ready, children;
  std::int64_t level = std::max(floor, search.live());
  open.push_back(0);
  while (level < limit) {
    if (open.empty()) {
      if (waiting.empty()) {
        level = limit;
        break;
      }
      level = waiting.front().need;
      if (level >= limit) break;
      while (!waiting.empty() && waiting.front().need <= level) {
        open.push_back(waiting.front().record);
        std::pop_heap(waiting.begin(), waiting.end(), later);
        waiting.pop_back();
      }
    }
    const std::uint32_t here = open.back();
    open.pop_back();
    if (search.at(here).done == search.size()) {
      result.order = search.order_to(here);
      break;
    }
    if (search.work() > budget) break;
    search.go_to(here);
    const std::uint32_t safe = search.try_safe(level);
    if (safe != downset_search::nothing) {
      if (safe != downset_search::known) open.push_back(safe);
      continue;
    }
    ready.assign(0, 0);
    ready.append(search.ready());
    children.clear();
    std::int64_t next_level = INT64_MAX;
    for (const std::uint32_t v : ready) {
      const std::int64_t need = search.live() + search.cost_of(v).need;
      if (need > level) {
        next_level = std::min(next_level, need);
        continue;
      }
      const std::uint32_t child = search.try_move(v, level);
      if (child != downset_search::known) children.push_back(child);
    }
    if (next_level < limit) {
      waiting.push_back({next_level, here});
      std::push_heap(waiting.begin(), waiting.end(), later);
    }
    // The most promising child is expanded first: it stands last.
    stable_sort(children.begin(), children.end(), [&](std::uint32_t a, std::uint32_t b) {
      return search.at(a).live > search.at(b).live;
    });
    open.append(children.begin(), children.end());
  }
  result.bound = std::min(level, limit);
  result.work = search.work();
  return result;
}

/// The best of `width` partial orders at every number of executed nodes, by peak and live bytes.
/// Only orders with a peak below `limit` are kept; an empty result means that none survived.
inline segment_result beam_segment(const order_graph& g, std::span<const std::uint32_t> prefix,
                                   std::span<const std::uint32_t> segment, std::int64_t floor,
                                   std::int64_t limit, std::uint32_t width, std::uint32_t branch,
                                   std::uint64_t budget) {
  downset_search search(g, prefix, segment);
  segment_result result;
  result.bound = floor;
  struct choice {
    std::int64_t top = 0, delta = 0;
    std::uint32_t node = 0;
  };
  const auto better = [&](std::uint32_t a, std::uint32_t b) {
    const auto& x = search.at(a);
    const auto& y = search.at(b);
    if (x.peak != y.peak) return x.peak < y.peak;
    return x.live != y.live ? x.live < y.live : a < b;
  };
  vector<vector<std::uint32_t>> rows(segment.size() + 1);
  rows[0].push_back(0);
  vector<choice> choices;
  for (std::size_t done = 0; done < segment.size(); ++done) {
    vector<std::uint32_t> row = std::move(rows[done]);
    std::sort(row.begin(), row.end(), better);
    if (row.size() > width) row.resize(width);
    for (const std::uint32_t here : row) {
      if (search.work() > budget) {
        result.work = search.work();
        return result;
      }
      search.go_to(here);
      const std::int64_t level = std::max(floor, search.at(here).peak);
      choices.clear();
      for (const std::uint32_t v : search.ready()) {
        const order_state::cost c = search.cost_of(v);
        choices.push_back({std::max(level, search.live() + c.need), c.delta, v});
      }
      const std::size_t kept = std::min<std::size_t>(branch, choices.size());
      std::partial_sort(choices.begin(), choices.begin() + kept, choices.end(),
                        [](const choice& a, const choice& b) {
                          if (a.top != b.top) return a.top < b.top;
                          return a.delta != b.delta ? a.delta < b.delta : a.node < b.node;
                        });
      for (std::size_t k = 0; k < kept && choices[k].top < limit; ++k) {
        const std::uint32_t child = search.try_move(choices[k].node, choices[k].top);
        if (child != downset_search::known) rows[search.at(child).done].push_back(child);
      }
    }
  }
  result.work = search.work();
  const vector<std::uint32_t>& last = rows[segment.size()];
  if (last.empty()) return result;
  const std::uint32_t best = *std::min_element(last.begin(), last.end(), better);
  result.order = search.order_to(best);
  return result;
}

}  // namespace sod2::detail
