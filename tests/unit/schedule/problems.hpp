// Seeded random order problems and a brute-force optimum.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <sod2/schedule.hpp>

namespace problems {

struct random {
  std::uint64_t state;
  explicit random(std::uint64_t seed) : state(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  std::uint32_t operator()(std::uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<std::uint32_t>((state >> 16) % below);
  }
};

struct features {
  bool aliases = false, guards = false, in_place = false, after = false;
};

/// Nodes are numbered in a topological order.
inline sod2::order_problem make(random& r, std::uint32_t nodes, const features& with) {
  sod2::order_problem p;
  if (with.guards) p.guards = {{0, 1, 0}, {0, 1, 1}, {1, 2, 0}, {1, 2, 1}};
  for (std::uint32_t i = r(3); i > 0; --i) {
    sod2::order_value v;
    v.bytes = r(20);
    v.is_input = true;
    v.is_output = r(8) == 0;
    p.values.push_back(v);
  }
  for (std::uint32_t v = 0; v < nodes; ++v) {
    sod2::order_node node;
    node.workspace = r(4) == 0 ? r(20) : 0;
    if (with.guards) node.guard = r(5);
    const auto known = static_cast<std::uint32_t>(p.values.size());
    for (std::uint32_t k = known > 0 ? r(3) : 0; k > 0; --k)
      node.inputs.push_back(r(2) == 0 && known > 6 ? known - 1 - r(6) : r(known));
    for (std::uint32_t k = r(4) == 0 ? 2 : 1; k > 0; --k) {
      sod2::order_value x;
      x.bytes = r(20);
      x.is_output = r(6) == 0;
      if (with.aliases && r(3) == 0) x.alias_class = 1 + r(2);
      node.outputs.push_back(static_cast<std::uint32_t>(p.values.size()));
      p.values.push_back(x);
    }
    if (with.in_place && r(3) == 0)
      for (const std::uint32_t in : node.inputs)
        for (const std::uint32_t out : node.outputs)
          if (r(2) == 0) node.in_place.push_back({out, in});
    if (with.after && v > 0 && r(4) == 0) node.after.push_back(r(v));
    p.nodes.push_back(std::move(node));
  }
  return p;
}

/// Least peak over all topological orders, by trying them.
inline std::int64_t least_peak(const sod2::order_problem& p) {
  const auto n = static_cast<std::uint32_t>(p.nodes.size());
  std::string order(n, '\0');
  for (std::uint32_t i = 0; i < n; ++i) order[i] = static_cast<char>(i);
  std::int64_t best = INT64_MAX;
  do {
    sod2::vector<std::uint32_t> nodes;
    for (const char c : order) nodes.push_back(static_cast<std::uint32_t>(c));
    if (auto peak = sod2::peak_of(p, nodes.view())) best = std::min(best, *peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

/// Text of a file below the shared instances; empty where they are not there.
inline std::string shared_text(const std::string& name) {
  const char* root = std::getenv("SOD2_SHARED");
  if (root == nullptr) return {};
  std::ifstream in(std::string(root) + "/instances/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace problems
