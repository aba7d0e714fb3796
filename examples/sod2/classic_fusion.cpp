#include "classic_fusion.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <sod2/op/kind.hpp>

namespace tool {

namespace {

using sod2::mapping;

class fuser {
 public:
  fuser(const sod2::graph_view& view, sod2::analysis& facts) : view_(view), facts_(facts) {}

  std::size_t count() {
    const auto order = view_.order();
    position_.assign(view_.node_count(), 0);
    for (std::uint32_t i = 0; i < order.size(); ++i) position_[order[i].index] = i;
    find_live();
    block_.assign(view_.node_count(), none);
    std::uint32_t blocks = 0;
    for (sod2::node_id n : order)
      if (live_[n.index] && block_[n.index] == none && kind(n) == mapping::one_to_one)
        grow(n, blocks++);
    for (sod2::node_id n : order)
      if (live_[n.index] && block_[n.index] == none) block_[n.index] = blocks++;
    return blocks;
  }

 private:
  static constexpr std::uint32_t none = 0xffffffff;

  bool known_value(sod2::value_id v) const {
    if (view_.is_constant(v)) return true;
    const std::uint32_t p = view_.producer(v);
    return p != sod2::no_index && folded_[p] != 0;
  }
  // Folded: the values are known or pure shape arithmetic. Dead: nobody needs them.
  void find_live() {
    const auto order = view_.order();
    folded_.assign(view_.node_count(), 0);
    live_.assign(view_.node_count(), 0);
    for (sod2::node_id n : order) {
      const auto& info = facts_.node(n);
      bool constant = info.op.row->info->deterministic && !view_.inputs(n).empty();
      for (sod2::value_id v : view_.inputs(n))
        constant = constant && (v == sod2::absent || known_value(v));
      folded_[n.index] = constant || info.effective == sod2::dynamism::isdo;
    }
    for (sod2::value_id v : view_.outputs()) need(v);
    for (std::size_t k = order.size(); k > 0; --k) {
      const sod2::node_id n = order[k - 1];
      if (live_[n.index] == 0) continue;
      for (sod2::value_id v : view_.inputs(n)) need(v);
      for (sod2::scope_id s : view_.scopes(n)) need_captured(s);
    }
  }
  void need(sod2::value_id v) {
    if (v == sod2::absent) return;
    const std::uint32_t p = view_.producer(v);
    if (p != sod2::no_index && folded_[p] == 0) live_[p] = 1;
  }
  void need_captured(sod2::scope_id s) {
    for (sod2::value_id v : view_.outputs(s)) need(v);
    for (sod2::node_id n : view_.order(s)) {
      for (sod2::value_id v : view_.inputs(n)) need(v);
      for (sod2::scope_id inner : view_.scopes(n)) need_captured(inner);
    }
  }

  // An elementwise operator that broadcasts an activation is one-to-many.
  mapping kind(sod2::node_id n) {
    const mapping m = facts_.node(n).op.row->info->map;
    if (m != mapping::one_to_one || view_.outputs(n).empty()) return m;
    const auto& out = facts_.fact(view_.outputs(n)[0]);
    for (sod2::value_id v : view_.inputs(n)) {
      if (v == sod2::absent || known_value(v)) continue;
      const auto& in = facts_.fact(v);
      if (!in.rank_known() || !out.rank_known() || in.dims.size() != out.dims.size())
        return mapping::one_to_many;
      for (std::size_t k = 0; k < in.dims.size(); ++k)
        if (facts_.context().decide_eq(in.dims[k], out.dims[k]) != sod2::tri::yes)
          return mapping::one_to_many;
    }
    return m;
  }
  static bool fusible(mapping m) { return m != mapping::source && m != mapping::barrier; }
  // Table 3 of the paper: the only pairs that never fuse.
  static bool table_forbids(mapping first, mapping second) {
    return second == mapping::many_to_many &&
           (first == mapping::one_to_many || first == mapping::many_to_many);
  }
  static mapping combine(mapping first, mapping second) {
    if (first == mapping::one_to_one) return second;
    if (second == mapping::one_to_one) return first;
    if (first == mapping::many_to_many || second == mapping::many_to_many)
      return mapping::many_to_many;
    if (first == mapping::one_to_many || second == mapping::one_to_many)
      return mapping::one_to_many;
    return mapping::reorganize;
  }

  void grow(sod2::node_id seed, std::uint32_t block) {
    std::vector<sod2::node_id> members{seed};
    block_[seed.index] = block;
    mapping type = mapping::one_to_one;
    for (const bool forward : {true, false})
      for (std::size_t k = 0; k < members.size() && members.size() < 64; ++k) {
        const auto offer = [&](sod2::node_id n) {
          if (live_[n.index] == 0 || block_[n.index] != none) return;
          if (view_.scope(n) != sod2::graph_view::root()) return;
          const mapping other = kind(n);
          if (!fusible(other)) return;
          const mapping first = forward ? type : other, second = forward ? other : type;
          if (table_forbids(first, second)) return;
          if (type == mapping::many_to_many && other == mapping::many_to_many) return;
          block_[n.index] = block;
          if (leaves_and_returns(members, n, block)) {
            block_[n.index] = none;
            return;
          }
          members.push_back(n);
          type = combine(first, second);
        };
        const sod2::node_id at = members[k];
        if (forward) {
          for (sod2::value_id v : view_.outputs(at))
            if (v != sod2::absent)
              for (sod2::node_id n : view_.consumers(v)) offer(n);
        } else {
          for (sod2::value_id v : view_.inputs(at))
            if (v != sod2::absent && view_.producer(v) != sod2::no_index)
              offer(sod2::node_id{view_.producer(v)});
        }
      }
  }
  // Would the block depend on itself? Walks from what leaves the block, whole blocks at a time.
  bool leaves_and_returns(const std::vector<sod2::node_id>& members, sod2::node_id added,
                          std::uint32_t block) {
    std::uint32_t last = position_[added.index];
    for (sod2::node_id n : members) last = std::max(last, position_[n.index]);
    seen_.resize(view_.node_count(), 0);
    ++round_;
    std::vector<sod2::node_id> open;
    bool returns = false;
    const auto follow = [&](sod2::node_id n, bool inside) {
      for (sod2::value_id v : view_.outputs(n)) {
        if (v == sod2::absent) continue;
        for (sod2::node_id c : view_.consumers(v)) {
          if (view_.scope(c) != sod2::graph_view::root()) continue;
          if (block_[c.index] == block) {
            returns = returns || !inside;
          } else if (seen_[c.index] != round_ && position_[c.index] <= last) {
            seen_[c.index] = round_;
            open.push_back(c);
          }
        }
      }
    };
    for (sod2::node_id n : members) follow(n, true);
    follow(added, true);
    while (!open.empty() && !returns) {
      const sod2::node_id n = open.back();
      open.pop_back();
      follow(n, false);
    }
    return returns;
  }

  const sod2::graph_view& view_;
  sod2::analysis& facts_;
  std::vector<std::uint32_t> position_, block_, seen_;
  std::vector<std::uint8_t> folded_, live_;
  std::uint32_t round_ = 0;
};

}  // namespace

std::size_t classic_kernels(const sod2::graph_view& view, sod2::analysis& facts) {
  return fuser(view, facts).count();
}

}  // namespace tool
