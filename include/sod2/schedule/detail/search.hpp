// Search over downsets (sets of executed nodes that are closed under predecessors).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/schedule/detail/graph.hpp>

namespace sod2::detail {

/// 128 bits name a downset: enough that a collision among all sets ever met is out of the question.
struct downset_key {
  std::uint64_t a = 0, b = 0;
  friend constexpr bool operator==(const downset_key&, const downset_key&) = default;
};

class downset_table {
 public:
  /// Adds a key with its record; false when it is there already (then `record` is set to it).
  bool add(const downset_key& key, std::uint32_t& record) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = key.a & mask;; at = (at + 1) & mask) {
      slot& s = slots_.data()[at];
      if (s.record == free_slot) {
        s = {key, record};
        ++used_;
        return true;
      }
      if (s.key == key) {
        record = s.record;
        return false;
      }
    }
  }

 private:
  static constexpr std::uint32_t free_slot = UINT32_MAX;
  struct slot {
    downset_key key;
    std::uint32_t record = free_slot;
  };
  void grow() {
    vector<slot> old = std::move(slots_);
    slots_ = vector<slot>(old.size() < 512 ? 1024 : 2 * old.size());
    const std::size_t mask = slots_.size() - 1;
    for (const slot& s : old) {
      if (s.record == free_slot) continue;
      std::size_t at = s.key.a & mask;
      while (slots_.data()[at].record != free_slot) at = (at + 1) & mask;
      slots_.data()[at] = s;
    }
  }
  vector<slot> slots_;
  std::size_t used_ = 0;
};

/// A tree of partial orders over one segment of a graph, and a cursor that stands at one of them.
/// Nodes outside the segment were executed before (`prefix`) or come later.
class downset_search {
 public:
  struct record {
    std::uint32_t parent = 0;
    std::uint32_t first = 0, count = 0;  // moves from the parent, in moves_
    std::uint32_t depth = 0;             // tree edges from the root
    std::uint32_t done = 0;              // executed nodes of the segment
    std::int64_t live = 0;
    std::int64_t peak = 0;
    downset_key key;
  };

  downset_search(const order_graph& g, std::span<const std::uint32_t> prefix,
                 std::span<const std::uint32_t> segment)
      : graph_(g),
        state_(g),
        inside_(g.nodes, 0),
        position_(g.nodes, 0),
        size_(static_cast<std::uint32_t>(segment.size())) {
    for (const std::uint32_t v : prefix) state_.run(v, state_.cost_of(v).delta, ignore, ignore);
    for (const std::uint32_t v : segment) {
      inside_.data()[v] = 1;
      if (state_.waits.data()[v] == 0) insert(v);
    }
    record root;
    root.live = root.peak = state_.live;
    records_.push_back(root);
    std::uint32_t at = 0;
    table_.add(root.key, at);
  }

  std::uint32_t size() const { return size_; }
  std::uint64_t work() const { return work_; }
  const record& at(std::uint32_t r) const { return records_.data()[r]; }
  std::size_t record_count() const { return records_.size(); }
  std::span<const std::uint32_t> ready() const { return ready_.view(); }
  std::int64_t live() const { return state_.live; }
  order_state::cost cost_of(std::uint32_t v) {
    work_ += graph_.touched[v].size() + 2;
    return state_.cost_of(v);
  }

  /// Moves the cursor to a record.
  void go_to(std::uint32_t target) {
    path_.clear();
    std::uint32_t t = target;
    while (cursor_ != t) {
      if (records_.data()[t].depth > records_.data()[cursor_].depth) {
        path_.push_back(t);
        t = records_.data()[t].parent;
      } else {
        const record& r = records_.data()[cursor_];
        for (std::uint32_t k = r.count; k > 0; --k) step_back(moves_.data()[r.first + k - 1]);
        cursor_ = r.parent;
      }
    }
    for (std::size_t k = path_.size(); k > 0; --k) {
      const record& r = records_.data()[path_.data()[k - 1]];
      for (std::uint32_t i = 0; i < r.count; ++i) step(moves_.data()[r.first + i].node);
    }
    cursor_ = target;
    trail_.clear();
  }

  /// Tries node v and everything that is safe after it below `limit`; leaves the cursor
  /// where it was. Returns the new record, or `known` when that set was met before.
  static constexpr std::uint32_t known = UINT32_MAX;
  std::uint32_t try_move(std::uint32_t v, std::int64_t limit) {
    step(v);
    run_safe(limit);
    return keep();
  }
  /// Only what is safe from here; `nothing` when nothing is.
  static constexpr std::uint32_t nothing = UINT32_MAX - 1;
  std::uint32_t try_safe(std::int64_t limit) {
    run_safe(limit);
    return trail_.empty() ? nothing : keep();
  }

  /// The order of the segment that leads to a record.
  vector<std::uint32_t> order_to(std::uint32_t r) const {
    vector<std::uint32_t> order;
    for (; r != 0; r = records_.data()[r].parent)
      for (std::uint32_t k = records_.data()[r].count; k > 0; --k)
        order.push_back(moves_.data()[records_.data()[r].first + k - 1].node);
    std::reverse(order.begin(), order.end());
    return order;
  }

 private:
  struct move {
    std::uint32_t node = 0;
    std::int64_t delta = 0;
    std::int64_t top = 0;  // live bytes while it ran
  };

  void insert(std::uint32_t v) {
    position_.data()[v] = static_cast<std::uint32_t>(ready_.size());
    ready_.push_back(v);
  }
  void remove(std::uint32_t v) {
    const std::uint32_t hole = position_.data()[v], last = ready_.back();
    ready_.data()[hole] = last;
    position_.data()[last] = hole;
    ready_.pop_back();
  }
  void step(std::uint32_t v) {
    const order_state::cost c = cost_of(v);
    trail_.push_back({v, c.delta, state_.live + c.need});
    remove(v);
    state_.run(
        v, c.delta,
        [&](std::uint32_t w) {
          if (inside_.data()[w] != 0) insert(w);
        },
        ignore);
  }
  void step_back(const move& m) {
    for (const std::uint32_t w : graph_.next[m.node])
      if (state_.waits.data()[w] == 0 && inside_.data()[w] != 0) remove(w);
    state_.undo(m.node, m.delta);
    insert(m.node);
  }
  void step_back() {
    step_back(trail_.back());
    trail_.pop_back();
  }

  /// Executes what no order needs to postpone: a node, or a chain of nodes each depending on the
  /// one before, that ends with no more bytes than it started with and stays within the limit.
  /// Proof by exchange: a storage freed or already made stays so in larger sets, hence for every
  /// larger set the rest of the chain changes live memory by no more than it does here; up to its
  /// first non-positive sum each rest is negative, so that pulling the chain forward raises no
  /// later step.
  void run_safe(std::int64_t limit) {
    for (std::size_t k = 0; k < ready_.size();) {
      const std::uint32_t v = ready_.data()[k];
      const order_state::cost c = cost_of(v);
      if (state_.live + c.need > limit) {
        ++k;
        continue;
      }
      if (c.delta <= 0 || run_chain(v, limit)) {
        if (c.delta <= 0) step(v);
        k = 0;
        continue;
      }
      ++k;
    }
  }
  bool run_chain(std::uint32_t v, std::int64_t limit) {
    const std::int64_t start = state_.live;
    const std::size_t mark = trail_.size();
    for (std::uint32_t length = 0; length < 64; ++length) {
      const std::size_t before = ready_.size() - 1;
      step(v);
      if (state_.live <= start) return true;
      // Those that just became ready stand at the end. `remove` moved one entry into v's place.
      std::uint32_t best = known;
      std::int64_t best_delta = 0;
      for (std::size_t k = before; k < ready_.size(); ++k) {
        const std::uint32_t w = ready_.data()[k];
        const order_state::cost c = cost_of(w);
        if (state_.live + c.need > limit) continue;
        if (best == known || c.delta < best_delta) {
          best = w;
          best_delta = c.delta;
        }
      }
      if (best == known) break;
      v = best;
    }
    while (trail_.size() > mark) step_back();
    return false;
  }
  std::uint32_t keep() {
    const record& here = records_.data()[cursor_];
    record r;
    r.parent = cursor_;
    r.first = static_cast<std::uint32_t>(moves_.size());
    r.count = static_cast<std::uint32_t>(trail_.size());
    r.depth = here.depth + 1;
    r.done = here.done + r.count;
    r.live = state_.live;
    r.peak = here.peak;
    r.key = here.key;
    for (const move& m : trail_) {
      r.peak = std::max(r.peak, m.top);
      const std::uint64_t h = hash_mix(0x51ed270b7f3a4c15ULL, m.node);
      r.key.a ^= h;
      r.key.b ^= hash_mix(h, ~static_cast<std::uint64_t>(m.node));
    }
    std::uint32_t id = static_cast<std::uint32_t>(records_.size());
    if (table_.add(r.key, id)) {
      records_.push_back(r);
      moves_.append(trail_.begin(), trail_.end());
    } else {
      id = known;
    }
    while (!trail_.empty()) step_back();
    return id;
  }

  const order_graph& graph_;
  order_state state_;
  vector<char> inside_;
  vector<std::uint32_t> position_, ready_, path_;
  std::uint32_t size_;
  std::uint32_t cursor_ = 0;
  vector<record> records_;
  vector<move> moves_, trail_;
  downset_table table_;
  std::uint64_t work_ = 0;
};

}  // namespace sod2::detail
