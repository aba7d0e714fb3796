// Orders found in one pass, linear or nearly so.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/schedule/detail/graph.hpp>

namespace sod2::detail {

/// Kahn's algorithm, always the smallest ready node number: the given order if that is one.
inline vector<std::uint32_t> first_ready_order(const order_graph& g) {
  const auto later = [](std::uint32_t a, std::uint32_t b) { return a > b; };
  vector<std::uint32_t> heap, order, waits(g.nodes);
  for (std::uint32_t v = 0; v < g.nodes; ++v) {
    waits[v] = static_cast<std::uint32_t>(g.previous[v].size());
    if (waits[v] == 0) heap.push_back(v);
  }
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const std::uint32_t v = heap.back();
    heap.pop_back();
    order.push_back(v);
    for (const std::uint32_t w : g.next[v])
      if (--waits[w] == 0) {
        heap.push_back(w);
        std::push_heap(heap.begin(), heap.end(), later);
      }
  }
  return order;
}

/// Post-order from the sinks. Among predecessors the one whose subtree needs most beyond what it
/// leaves comes first (Sethi and Ullman's rule, exact on trees, a guess on graphs).
inline vector<std::uint32_t> depth_first_order(const order_graph& g) {
  const vector<std::uint32_t> given = first_ready_order(g);
  vector<std::int64_t> peak(g.nodes, 0), left(g.nodes, 0);
  vector<std::uint32_t> children;
  number_lists sorted = g.previous;
  const auto later = [&](std::uint32_t a, std::uint32_t b) {
    return peak.data()[a] - left.data()[a] > peak.data()[b] - left.data()[b];
  };
  for (const std::uint32_t v : given) {
    std::uint32_t* begin = sorted.items.data() + sorted.first.data()[v];
    std::uint32_t* end = sorted.items.data() + sorted.first.data()[v + 1];
    stable_sort(begin, end, later);
    std::int64_t live = 0, top = 0, made = g.workspace.data()[v];
    for (const std::uint32_t* u = begin; u != end; ++u) {
      top = std::max(top, live + peak.data()[*u]);
      live += left.data()[*u];
    }
    for (const std::uint32_t s : g.touched[v])
      if (g.touchers[s].front() == v && !g.storages.data()[s].input) {
        made += g.storages.data()[s].bytes;
        left.data()[v] += g.storages.data()[s].bytes;
      }
    peak.data()[v] = std::max(top, live + made);
  }
  vector<std::uint32_t> order, stack, cursor(g.nodes);
  vector<char> seen(g.nodes, 0);
  for (std::uint32_t v = 0; v < g.nodes; ++v) cursor[v] = sorted.first[v];
  for (const std::uint32_t root : given) {
    if (!g.next[root].empty() || seen[root]) continue;
    seen[root] = 1;
    stack.push_back(root);
    while (!stack.empty()) {
      const std::uint32_t v = stack.back();
      if (cursor[v] == sorted.first[v + 1]) {
        order.push_back(v);
        stack.pop_back();
        continue;
      }
      const std::uint32_t u = sorted.items[cursor[v]++];
      if (!seen[u]) {
        seen[u] = 1;
        stack.push_back(u);
      }
    }
  }
  return order;
}

enum class greedy_rule : std::uint8_t {
  delta_oldest,  // least growth, then the node that became ready first
  delta_newest,  // least growth, then the node that became ready last
  need,          // least growth if it shrinks, else least need while running
};

/// Always runs the ready node with the least growth of live memory. A lazy heap: an entry is
/// renewed when a storage that the node touches gets down to its last toucher, so that the whole
/// costs O((nodes + edges) log nodes).
inline vector<std::uint32_t> greedy_order(const order_graph& g, greedy_rule rule) {
  struct entry {
    std::int64_t first = 0, second = 0;
    std::uint32_t age = 0, node = 0, stamp = 0;
  };
  const auto worse = [](const entry& a, const entry& b) {
    if (a.first != b.first) return a.first > b.first;
    if (a.second != b.second) return a.second > b.second;
    if (a.age != b.age) return a.age > b.age;
    return a.node > b.node;
  };
  order_state state(g);
  vector<entry> heap;
  vector<std::uint32_t> order, stamp(g.nodes, 0), age(g.nodes, 0);
  vector<char> ready(g.nodes, 0);
  std::uint32_t clock = 0;
  const auto push = [&](std::uint32_t v) {
    const order_state::cost c = state.cost_of(v);
    entry e;
    if (rule == greedy_rule::need && c.delta > 0) {
      e.first = 1;
      e.second = c.need;
    } else {
      e.first = rule == greedy_rule::need ? 0 : c.delta;
      e.second = rule == greedy_rule::need ? c.delta : c.need;
    }
    e.age = rule == greedy_rule::delta_oldest ? age.data()[v] : ~age.data()[v];
    e.node = v;
    e.stamp = ++stamp.data()[v];
    heap.push_back(e);
    std::push_heap(heap.begin(), heap.end(), worse);
  };
  const auto make_ready = [&](std::uint32_t v) {
    ready.data()[v] = 1;
    age.data()[v] = ++clock;
    push(v);
  };
  for (std::uint32_t v = 0; v < g.nodes; ++v)
    if (state.waits[v] == 0) make_ready(v);
  vector<std::uint32_t> fresh, settled;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), worse);
    const entry e = heap.back();
    heap.pop_back();
    const std::uint32_t v = e.node;
    if (e.stamp != stamp.data()[v] || ready.data()[v] != 1) continue;
    ready.data()[v] = 2;
    order.push_back(v);
    fresh.clear();
    settled.clear();
    state.run(
        v, state.cost_of(v).delta, [&](std::uint32_t w) { fresh.push_back(w); },
        [&](std::uint32_t s) { settled.push_back(s); });
    for (const std::uint32_t w : fresh) make_ready(w);
    for (const std::uint32_t s : settled)
      for (const std::uint32_t w : g.touchers[s])
        if (ready.data()[w] == 1) push(w);
    // A shared storage that v is the first to touch makes its other touchers cheaper.
    for (const std::uint32_t s : g.touched[v]) {
      if (state.to_come.data()[s] + 1 != g.storages.data()[s].touches) continue;
      if (g.touchers[s].size() > 1)
        for (const std::uint32_t w : g.touchers[s])
          if (ready.data()[w] == 1) push(w);
    }
  }
  return order;
}

}  // namespace sod2::detail
