// An order problem prepared for planners: flat arrays of edges and storages, and a state that
// executes nodes and takes them back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/schedule/problem.hpp>

namespace sod2::detail {

/// Rows of numbers in one array.
struct number_lists {
  vector<std::uint32_t> first;
  vector<std::uint32_t> items;

  std::span<const std::uint32_t> operator[](std::uint32_t row) const {
    return {items.data() + first.data()[row], first.data()[row + 1] - first.data()[row]};
  }
};

/// Builds lists from (row, item) pairs; items keep their order. `pairs` holds row, item, row, ...
inline number_lists make_lists(std::size_t rows, const vector<std::uint32_t>& pairs) {
  number_lists lists;
  lists.first.assign(rows + 1, 0);
  for (std::size_t k = 0; k < pairs.size(); k += 2) ++lists.first.data()[pairs.data()[k] + 1];
  for (std::size_t r = 0; r < rows; ++r) lists.first.data()[r + 1] += lists.first.data()[r];
  vector<std::uint32_t> at(lists.first);
  lists.items.resize(pairs.size() / 2);
  for (std::size_t k = 0; k < pairs.size(); k += 2)
    lists.items.data()[at.data()[pairs.data()[k]]++] = pairs.data()[k + 1];
  return lists;
}

struct order_graph {
  struct storage {
    std::int64_t bytes = 0;
    std::uint32_t touches = 0;  // nodes that touch it
    bool input = false;
    bool pinned = false;
  };
  struct reuse {
    std::uint32_t output = 0, input = 0;  // storages
  };
  std::uint32_t nodes = 0;
  vector<storage> storages;
  vector<std::int64_t> workspace;
  number_lists touched;   // node -> storages, each once
  number_lists touchers;  // storage -> nodes
  number_lists next, previous;
  vector<std::uint32_t> reuse_first;  // node -> in-place pairs
  vector<reuse> reuses;
  std::int64_t base = 0;  // bytes live before the first node

  explicit order_graph(const order_problem& p) : nodes(static_cast<std::uint32_t>(p.nodes.size())) {
    const std::size_t m = p.values.size();
    vector<std::uint32_t> storage_of(m), members;
    for (std::uint32_t i = 0; i < m; ++i)
      if (p.values[i].alias_class != 0) members.push_back(i);
    stable_sort(members.begin(), members.end(), [&](std::uint32_t a, std::uint32_t b) {
      return p.values[a].alias_class < p.values[b].alias_class;
    });
    for (std::size_t k = 0; k < members.size(); ++k) {
      if (k == 0 || p.values[members[k]].alias_class != p.values[members[k - 1]].alias_class)
        storages.push_back({});
      storage_of[members[k]] = static_cast<std::uint32_t>(storages.size() - 1);
    }
    for (std::uint32_t i = 0; i < m; ++i) {
      const order_value& x = p.values[i];
      if (x.alias_class == 0) {
        storage_of[i] = static_cast<std::uint32_t>(storages.size());
        storages.push_back({});
      }
      storage& s = storages[storage_of[i]];
      if (x.bytes > s.bytes) s.bytes = x.bytes;
      s.input |= x.is_input;
      s.pinned |= x.is_output;
    }
    vector<std::uint32_t> producer(m, nodes), seen(storages.size(), nodes), by_node, by_storage;
    workspace.resize(nodes);
    reuse_first.assign(nodes + 1, 0);
    for (std::uint32_t v = 0; v < nodes; ++v) {
      const order_node& node = p.nodes[v];
      workspace[v] = node.workspace;
      const auto touch = [&](std::uint32_t x) {
        const std::uint32_t s = storage_of[x];
        if (seen[s] == v) return;
        seen[s] = v;
        ++storages[s].touches;
        by_node.push_back(v);
        by_node.push_back(s);
        by_storage.push_back(s);
        by_storage.push_back(v);
      };
      for (std::uint32_t x : node.inputs) touch(x);
      for (std::uint32_t x : node.outputs) {
        touch(x);
        producer[x] = v;
      }
      for (std::size_t k = 0; k < node.in_place.size(); ++k) {
        const std::uint32_t out = storage_of[node.in_place[k].output];
        const std::uint32_t in = storage_of[node.in_place[k].input];
        bool free = out != in && !storages[in].input && !storages[in].pinned &&
                    !storages[out].input && storages[out].bytes <= storages[in].bytes;
        for (std::size_t j = 0; j < k; ++j)  // an input is reused once, an output placed once
          free = free && storage_of[node.in_place[j].input] != in &&
                 storage_of[node.in_place[j].output] != out;
        if (free) reuses.push_back({out, in});
      }
      reuse_first[v + 1] = static_cast<std::uint32_t>(reuses.size());
    }
    touched = make_lists(nodes, by_node);
    touchers = make_lists(storages.size(), by_storage);
    vector<std::uint32_t> before, forward, known(nodes, nodes);
    for (std::uint32_t v = 0; v < nodes; ++v) {
      const auto edge = [&](std::uint32_t u) {
        if (known[u] == v) return;
        known[u] = v;
        before.push_back(v);
        before.push_back(u);
        forward.push_back(u);
        forward.push_back(v);
      };
      for (std::uint32_t x : p.nodes[v].inputs)
        if (producer[x] != nodes) edge(producer[x]);
      for (std::uint32_t u : p.nodes[v].after) edge(u);
    }
    previous = make_lists(nodes, before);
    next = make_lists(nodes, forward);
    for (const storage& s : storages)
      if (s.input && (s.touches > 0 || s.pinned)) base += s.bytes;
  }
};

/// What has been executed, as far as memory and readiness need it.
struct order_state {
  const order_graph* graph;
  vector<std::uint32_t> waits;    // node -> predecessors to come
  vector<std::uint32_t> to_come;  // storage -> touching nodes to come
  std::int64_t live = 0;

  explicit order_state(const order_graph& g) : graph(&g), live(g.base) {
    waits.resize(g.nodes);
    for (std::uint32_t v = 0; v < g.nodes; ++v)
      waits.data()[v] = static_cast<std::uint32_t>(g.previous[v].size());
    to_come.resize(g.storages.size());
    for (std::size_t s = 0; s < g.storages.size(); ++s)
      to_come.data()[s] = g.storages.data()[s].touches;
  }

  struct cost {
    std::int64_t need = 0;   // bytes while the node runs, over those live before
    std::int64_t delta = 0;  // bytes live after, less those live before
  };
  cost cost_of(std::uint32_t v) const {
    const order_graph& g = *graph;
    cost c;
    for (const std::uint32_t s : g.touched[v]) {
      const order_graph::storage& x = g.storages.data()[s];
      const std::uint32_t left = to_come.data()[s];
      if (left == x.touches && !x.input) c.need += x.bytes, c.delta += x.bytes;
      if (left == 1 && !x.pinned) c.delta -= x.bytes;
    }
    c.need += g.workspace.data()[v];
    for (std::uint32_t k = g.reuse_first.data()[v]; k < g.reuse_first.data()[v + 1]; ++k) {
      const order_graph::reuse& r = g.reuses.data()[k];
      if (to_come.data()[r.input] == 1 &&
          to_come.data()[r.output] == g.storages.data()[r.output].touches)
        c.need -= g.storages.data()[r.output].bytes;
    }
    return c;
  }
  /// Executes v; `ready(w)` is called for nodes that become ready, `last(s)` for storages that now
  /// have one toucher to come.
  template <class Ready, class Last>
  void run(std::uint32_t v, std::int64_t delta, Ready ready, Last last) {
    const order_graph& g = *graph;
    live += delta;
    for (const std::uint32_t s : g.touched[v])
      if (--to_come.data()[s] == 1) last(s);
    for (const std::uint32_t w : g.next[v])
      if (--waits.data()[w] == 0) ready(w);
  }
  void undo(std::uint32_t v, std::int64_t delta) {
    const order_graph& g = *graph;
    live -= delta;
    for (const std::uint32_t s : g.touched[v]) ++to_come.data()[s];
    for (const std::uint32_t w : g.next[v]) ++waits.data()[w];
  }
};

inline constexpr auto ignore = [](std::uint32_t) {};

/// Peak of an order without regard to guards (an upper bound of the true one).
inline std::int64_t peak_of(const order_graph& g, std::span<const std::uint32_t> order) {
  order_state s(g);
  std::int64_t peak = s.live;
  for (const std::uint32_t v : order) {
    const order_state::cost c = s.cost_of(v);
    if (s.live + c.need > peak) peak = s.live + c.need;
    s.run(v, c.delta, ignore, ignore);
  }
  return peak;
}

}  // namespace sod2::detail
