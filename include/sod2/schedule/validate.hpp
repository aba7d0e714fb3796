// The judge of orders. It shares no code with the planners.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <sod2/core/checked.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/schedule/problem.hpp>

namespace sod2 {

/// Is the problem itself well formed? Each value has one producer or is an input, numbers are in
/// range, some order exists, all bytes together fit into 62 bits.
/// Errors: errc::invalid_argument, undefined_value, duplicate_value, cycle, overflow.
inline status validate(const order_problem& p) {
  const std::size_t n = p.nodes.size(), m = p.values.size();
  const auto at_node = [](errc code, std::size_t v, const char* what) {
    return error(code, "node " + std::to_string(v) + " " + what);
  };
  if (!well_formed(p.guards.view()))
    return error(errc::invalid_argument, "guards are not a forest of choices");
  std::int64_t sum = 0;
  const auto count = [&](std::int64_t bytes) { return bytes >= 0 && checked_add(sum, bytes, sum); };
  for (std::size_t i = 0; i < m; ++i)
    if (!count(p.values[i].bytes) || sum > (INT64_MAX >> 1))
      return error(errc::overflow, "value " + std::to_string(i) + " has no proper size");
  vector<std::uint32_t> producer(m, static_cast<std::uint32_t>(n));
  for (std::size_t v = 0; v < n; ++v) {
    const order_node& node = p.nodes[v];
    if (!count(node.workspace) || sum > (INT64_MAX >> 1))
      return at_node(errc::overflow, v, "has no proper workspace size");
    if (node.guard > p.guards.size())
      return at_node(errc::invalid_argument, v, "has an unknown guard");
    for (std::uint32_t x : node.inputs)
      if (x >= m) return at_node(errc::undefined_value, v, "reads a value that does not exist");
    for (std::uint32_t u : node.after)
      if (u >= n) return at_node(errc::invalid_argument, v, "waits for a node that does not exist");
    for (std::uint32_t x : node.outputs) {
      if (x >= m) return at_node(errc::undefined_value, v, "writes a value that does not exist");
      if (producer[x] != n || p.values[x].is_input)
        return at_node(errc::duplicate_value, v, "writes a value that exists already");
      producer[x] = static_cast<std::uint32_t>(v);
    }
    for (const auto& pair : node.in_place) {
      if (std::find(node.inputs.begin(), node.inputs.end(), pair.input) == node.inputs.end() ||
          std::find(node.outputs.begin(), node.outputs.end(), pair.output) == node.outputs.end())
        return at_node(errc::invalid_argument, v, "has an in-place pair that it does not touch");
    }
  }
  vector<std::uint32_t> waits(n, 0);
  vector<vector<std::uint32_t>> next(n);
  for (std::size_t v = 0; v < n; ++v) {
    const auto edge = [&](std::uint32_t u) {
      next[u].push_back(static_cast<std::uint32_t>(v));
      ++waits[v];
    };
    for (std::uint32_t x : p.nodes[v].inputs) {
      if (producer[x] != n)
        edge(producer[x]);
      else if (!p.values[x].is_input)
        return at_node(errc::undefined_value, v, "reads a value that nothing produces");
    }
    for (std::uint32_t u : p.nodes[v].after) edge(u);
  }
  vector<std::uint32_t> ready;
  for (std::size_t v = 0; v < n; ++v)
    if (waits[v] == 0) ready.push_back(static_cast<std::uint32_t>(v));
  for (std::size_t k = 0; k < ready.size(); ++k)
    for (std::uint32_t w : next[ready[k]])
      if (--waits[w] == 0) ready.push_back(w);
  if (ready.size() != n) return error(errc::cycle, "no order exists: the nodes form a cycle");
  return {};
}

/// Peak of live bytes of an order (see `order_problem`), or what is wrong with it:
/// errc::invalid_plan. Linear in the problem, but for guards: nodes times guards.
inline result<std::int64_t> peak_of(const order_problem& p, std::span<const std::uint32_t> order) {
  const std::size_t n = p.nodes.size(), m = p.values.size();
  const auto bad = [](std::string text) { return error(errc::invalid_plan, std::move(text)); };
  if (order.size() != n) return bad("order has a wrong number of nodes");
  vector<std::size_t> step(n, n);
  for (std::size_t s = 0; s < n; ++s) {
    if (order[s] >= n) return bad("order names a node that does not exist");
    if (step[order[s]] != n) return bad("node " + std::to_string(order[s]) + " comes twice");
    step[order[s]] = s;
  }
  // A storage is one value, or an alias class: its bytes, its first and last step, its guard (the
  // common one of its nodes, else 0).
  struct storage {
    std::int64_t bytes = 0;
    std::size_t from = SIZE_MAX, to = 0;
    bool used = false, input = false, pinned = false;
    std::uint32_t guard = 0;
  };
  vector<std::size_t> storage_of(m), producer_step(m, SIZE_MAX);
  vector<std::pair<std::uint32_t, std::size_t>> classes;
  vector<storage> stores;
  for (std::size_t i = 0; i < m; ++i)
    if (p.values[i].alias_class != 0) classes.push_back({p.values[i].alias_class, i});
  std::sort(classes.begin(), classes.end());
  for (std::size_t k = 0; k < classes.size(); ++k) {
    if (k == 0 || classes[k].first != classes[k - 1].first) stores.push_back({});
    storage_of[classes[k].second] = stores.size() - 1;
  }
  for (std::size_t i = 0; i < m; ++i) {
    const order_value& x = p.values[i];
    if (x.alias_class == 0) {
      storage_of[i] = stores.size();
      stores.push_back({});
    }
    storage& s = stores[storage_of[i]];
    s.bytes = std::max(s.bytes, x.bytes);
    s.input |= x.is_input;
    s.pinned |= x.is_output;
  }
  for (std::size_t v = 0; v < n; ++v) {
    const auto touch = [&](std::uint32_t x) {
      storage& s = stores[storage_of[x]];
      s.guard = !s.used || s.guard == p.nodes[v].guard ? p.nodes[v].guard : 0;
      s.used = true;
      s.from = std::min(s.from, step[v]);
      s.to = std::max(s.to, step[v] + 1);
    };
    for (std::uint32_t x : p.nodes[v].inputs) touch(x);
    for (std::uint32_t x : p.nodes[v].outputs) {
      touch(x);
      producer_step[x] = step[v];
    }
  }
  for (std::size_t v = 0; v < n; ++v) {
    const auto late = [&](std::size_t u) {
      return bad("node " + std::to_string(v) + " comes before node " + std::to_string(u) +
                 ", which it needs");
    };
    for (std::uint32_t x : p.nodes[v].inputs)
      if (producer_step[x] != SIZE_MAX && producer_step[x] >= step[v])
        return late(order[producer_step[x]]);
    for (std::uint32_t u : p.nodes[v].after)
      if (step[u] >= step[v]) return late(u);
  }
  vector<vector<std::uint32_t>> starts(n + 1), ends(n + 1);
  const std::size_t width = p.guards.size() + 1;
  vector<std::int64_t> live(width, 0);  // by guard
  for (std::size_t i = 0; i < stores.size(); ++i) {
    storage& s = stores[i];
    if (s.input) s.from = 0;
    if (s.input) s.guard = 0;
    if (s.pinned) s.to = n + 1;
    if (!s.used && !s.pinned) continue;  // nothing touches it
    if (s.from == SIZE_MAX) s.from = n;  // an output that no node writes: live at the very end
    if (s.input)
      live[0] += s.bytes;
    else
      starts[s.from].push_back(static_cast<std::uint32_t>(i));
    if (s.to <= n) ends[s.to].push_back(static_cast<std::uint32_t>(i));
  }
  std::int64_t peak = live[0];
  // Bytes of the worst run that takes the path of guard g: below an arm, every choice takes its
  // largest arm, except that the path's own choices are settled.
  const auto worst = [&](std::uint32_t g) {
    if (width == 1) return live[0];
    vector<std::int64_t> sums(live.view());
    for (std::size_t a = width - 1; a > 0; --a) {
      std::int64_t largest = 0;
      std::uint32_t lowest = static_cast<std::uint32_t>(a);
      for (std::size_t b = 1; b < width; ++b) {
        if (p.guards[b - 1].choice != p.guards[a - 1].choice) continue;
        lowest = std::min(lowest, static_cast<std::uint32_t>(b));
        const bool possible =
            g == 0 || !exclusive(p.guards.view(), g, static_cast<std::uint32_t>(b));
        if (possible) largest = std::max(largest, sums[b]);
      }
      if (lowest == a) sums[p.guards[a - 1].parent] += largest;
    }
    return sums[0];
  };
  for (std::size_t s = 0; s < n; ++s) {
    for (std::uint32_t i : ends[s]) live[stores[i].guard] -= stores[i].bytes;
    for (std::uint32_t i : starts[s]) live[stores[i].guard] += stores[i].bytes;
    const order_node& node = p.nodes[order[s]];
    std::int64_t saved = 0;
    for (std::size_t k = 0; k < node.in_place.size(); ++k) {
      const std::size_t in = storage_of[node.in_place[k].input];
      const std::size_t out = storage_of[node.in_place[k].output];
      bool free = in != out && stores[in].to == s + 1 && !stores[in].input &&
                  stores[out].from == s && !stores[in].pinned && !stores[out].input &&
                  stores[out].bytes <= stores[in].bytes;
      for (std::size_t j = 0; j < k; ++j)  // an input is reused once, an output placed once
        free = free && storage_of[node.in_place[j].input] != in &&
               storage_of[node.in_place[j].output] != out;
      if (free) saved += stores[out].bytes;
    }
    peak = std::max(peak, worst(node.guard) + node.workspace - saved);
  }
  return peak;
}

/// Checks a plan: a topological order of all nodes with the claimed peak, not below its own bound.
/// Errors: errc::invalid_plan.
inline status validate(const order_problem& p, const order_plan& plan) {
  SOD2_TRY(validate(p));
  SOD2_ASSIGN(const std::int64_t peak, peak_of(p, plan.order.view()));
  if (peak != plan.peak_bytes)
    return error(errc::invalid_plan, "claimed peak is " + std::to_string(plan.peak_bytes) +
                                         ", the order has " + std::to_string(peak));
  if (plan.lower_bound_bytes > plan.peak_bytes)
    return error(errc::invalid_plan, "lower bound is above the peak");
  if (plan.lower_bound_bytes == plan.peak_bytes && !plan.exact)
    return error(errc::invalid_plan, "plan meets its bound but is not called exact");
  return {};
}

}  // namespace sod2
