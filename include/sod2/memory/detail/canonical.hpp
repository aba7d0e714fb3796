// Exact placement below a capacity: search over canonical placements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/checked.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/memory/detail/instance.hpp>

namespace sod2::detail {

/// Decides whether all items fit below a capacity.
///
/// Any placement can be compacted until every item rests on the bottom or on another item, and its
/// items listed by (offset, rank). The search builds that list: the next item is placed at its
/// lowest offset over what is placed already. This is the setting of TelaMalloc (ASPLOS 2023) and
/// MiniMalloc (ASPLOS 2024). What cuts the tree here:
/// - an item passed over must come later in the list, hence rest on an item that is still to come:
///   its lowest offset rises to the lowest end among those (`raise_skipped`);
/// - no item may be placed at or above the lowest end of an unplaced one, which would have fitted
///   underneath;
/// - in every slot, for every offset r, r plus the sizes of the items that start at or above r must
///   stay below the capacity (one machine with release dates);
/// - what falls apart in time is solved one part after the other.
/// Not for fixed offsets and guards.
class canonical_search {
 public:
  explicit canonical_search(const placement_instance& in)
      : in_(in),
        lowest_(in.count),
        floor_(in.count),
        offset_(in.count, unplaced_),
        rank_(in.count),
        room_(in.slots, 0),
        flag_(in.count, 0),
        blame_(in.count, 0) {}

  /// yes: `offsets()` is a placement; no: there is none; unknown: the work ran out.
  /// `order` lists all items, preferred ones first.
  tri solve(std::int64_t capacity, std::span<const std::uint32_t> order, std::uint64_t work) {
    capacity_ = capacity;
    limit_ = work_ + work;
    next_capacity_ = INT64_MAX;
    for (std::uint32_t& b : blame_) b -= b / 8;
    std::fill(lowest_.begin(), lowest_.end(), 0);
    std::fill(floor_.begin(), floor_.end(), 0);
    std::fill(offset_.begin(), offset_.end(), unplaced_);
    trail_.clear();
    lists_.clear();
    for (std::uint32_t k = 0; k < order.size(); ++k) {
      rank_.data()[order[k]] = k;
      lists_.push_back(order[k]);
    }
    if (!bounds_hold(0, lists_.size(), 0, in_.slots)) return tri::no;
    return solve_parts(0, lists_.size());
  }

  /// How often an item was part of a slot that overflowed, older runs fading: an order for the next
  /// run should prefer those.
  std::span<const std::uint32_t> blame() const { return blame_.view(); }
  void forget_blame() { std::fill(blame_.begin(), blame_.end(), 0U); }
  std::span<const std::int64_t> offsets() const { return offset_.view(); }
  std::uint64_t work() const { return work_; }
  /// After a `no`: no placement has a peak below this.
  std::int64_t next_capacity() const { return next_capacity_; }

 private:
  static constexpr std::int64_t unplaced_ = -1;
  struct change {
    std::uint32_t item = 0;
    std::int64_t lowest = 0, floor = 0;
  };

  void refuse(std::int64_t needed) {
    if (needed > capacity_ && needed < next_capacity_) next_capacity_ = needed;
  }
  std::int64_t aligned(std::uint32_t i, std::int64_t offset) const {
    return in_.same_alignment ? offset : align_up(offset, in_.alignment.data()[i]);
  }
  /// Offset of i is known to be at least this; false if i no longer fits.
  bool raise(std::uint32_t i, std::int64_t offset) {
    offset = aligned(i, offset);
    std::int64_t& low = lowest_.data()[i];
    if (offset <= low) return true;
    trail_.push_back({i, low, floor_.data()[i]});
    low = offset;
    if (offset + in_.size.data()[i] <= capacity_) return true;
    refuse(offset + in_.size.data()[i]);
    return false;
  }
  /// A placed conflict of i ends here.
  bool raise_floor(std::uint32_t i, std::int64_t end) {
    end = aligned(i, end);
    std::int64_t& floor = floor_.data()[i];
    if (end <= floor) return true;
    if (end > lowest_.data()[i]) {
      const std::int64_t old = floor;
      const bool fits = raise(i, end);
      trail_.back().floor = old;
      floor = end;
      return fits;
    }
    trail_.push_back({i, lowest_.data()[i], floor});
    floor = end;
    return true;
  }
  void undo(std::size_t mark) {
    while (trail_.size() > mark) {
      const change& c = trail_.data()[trail_.size() - 1];
      lowest_.data()[c.item] = c.lowest;
      floor_.data()[c.item] = c.floor;
      trail_.pop_back();
    }
  }
  bool before(std::uint32_t a, std::uint32_t b) const {
    const std::int64_t x = lowest_.data()[a], y = lowest_.data()[b];
    return x != y ? x < y : rank_.data()[a] < rank_.data()[b];
  }

  /// The one-machine bound of the slots [left, right) over the items lists_[from, to), sorted by
  /// lowest offset.
  bool bounds_hold(std::size_t from, std::size_t to, std::uint32_t left, std::uint32_t right) {
    const std::uint32_t* items = lists_.data();
    std::int64_t* room = room_.data();
    std::fill(room + left, room + right, std::int64_t{0});
    for (std::size_t k = to; k > from; --k) {
      const std::uint32_t i = items[k - 1];
      const std::uint32_t begin = std::max(left, in_.lower.data()[i]);
      const std::uint32_t end = std::min(right, in_.upper.data()[i]);
      if (begin >= end) continue;
      const std::int64_t size = in_.size.data()[i];
      std::int64_t most = 0;
      for (std::uint32_t t = begin; t < end; ++t) {
        room[t] += size;
        most = most < room[t] ? room[t] : most;
      }
      work_ += (end - begin) / 4 + 1;
      if (lowest_.data()[i] + most > capacity_) {
        refuse(lowest_.data()[i] + most);
        std::uint32_t full = begin;
        while (room[full] < most) ++full;
        for (std::size_t j = k - 1; j < to; ++j)
          if (in_.lower.data()[items[j]] <= full && full < in_.upper.data()[items[j]])
            ++blame_.data()[items[j]];
        return false;
      }
    }
    work_ += (to - from) / 4;
    return true;
  }

  /// Splits lists_[from, to) where no item spans and solves every part; all must succeed.
  tri solve_parts(std::size_t from, std::size_t to) {
    if (from == to) return tri::yes;
    // Items by start: count how far the union of ranges reaches.
    const std::size_t base = lists_.size();
    starts_.assign(in_.slots + 1, 0);
    for (std::size_t k = from; k < to; ++k) {
      const std::uint32_t i = lists_.data()[k];
      std::uint32_t& reach = starts_.data()[in_.lower.data()[i]];
      reach = std::max(reach, in_.upper.data()[i]);
    }
    small_vector<std::uint32_t, 8> edges;
    std::uint32_t reach = 0;
    for (std::uint32_t t = 0; t < in_.slots; ++t) {
      const std::uint32_t far = starts_.data()[t];
      if (far == 0) continue;
      if (t >= reach) edges.push_back(t);
      reach = std::max(reach, far);
    }
    work_ += (to - from) + in_.slots / 4;
    if (edges.size() == 1) return solve_list(from, to);
    // The smallest first: where it fails, that is found out soonest.
    edges.push_back(in_.slots);
    small_vector<std::uint32_t, 8> sizes(edges.size(), 0), parts;
    const auto part_of = [&](std::uint32_t i) {
      std::uint32_t e = 0;
      while (in_.lower.data()[i] >= edges[e + 1]) ++e;
      return e;
    };
    for (std::size_t k = from; k < to; ++k) ++sizes[part_of(lists_.data()[k])];
    for (std::uint32_t e = 0; e + 1 < edges.size(); ++e) parts.push_back(e);
    stable_sort(parts.begin(), parts.end(),
                [&](std::uint32_t a, std::uint32_t b) { return sizes[a] < sizes[b]; });
    tri all = tri::yes;
    for (std::size_t e = 0; e < parts.size() && all == tri::yes; ++e) {
      const std::size_t part = lists_.size();
      for (std::size_t k = from; k < to; ++k) {
        const std::uint32_t i = lists_.data()[k];
        if (part_of(i) == parts[e]) lists_.push_back(i);
      }
      all = solve_list(part, lists_.size());
      lists_.resize(part);
    }
    if (all != tri::yes)
      for (std::size_t k = from; k < to; ++k) offset_.data()[lists_.data()[k]] = unplaced_;
    lists_.resize(base);
    return all;
  }

  /// Items lists_[from, to) are connected in time and sorted by `before`. On success they are
  /// placed, else everything is as it was.
  tri solve_list(std::size_t from, std::size_t to) {
    std::int64_t ceiling = INT64_MAX;  // lowest end that an unplaced item could have now
    for (std::size_t k = from; k < to; ++k) {
      const std::uint32_t i = lists_.data()[k];
      ceiling = std::min(ceiling, floor_.data()[i] + in_.size.data()[i]);
    }
    tri answer = tri::no;
    for (std::size_t k = from; k < to; ++k) {
      if (work_ > limit_) {
        answer = tri::unknown;
        break;
      }
      const std::uint32_t p = lists_.data()[k];
      const std::int64_t at = lowest_.data()[p];
      if (at >= ceiling) break;
      if (at != floor_.data()[p]) continue;  // nothing there for it to rest on
      const std::size_t mark = trail_.size(), child = lists_.size();
      offset_.data()[p] = at;
      if (place(p, at, from, k, to) && bounds_hold(child, lists_.size(), left_, right_)) {
        answer = solve_parts(child, lists_.size());
        if (answer != tri::no) {
          if (answer == tri::unknown) {
            undo(mark);
            offset_.data()[p] = unplaced_;
          }
          lists_.resize(child);
          return answer;
        }
      }
      undo(mark);
      offset_.data()[p] = unplaced_;
      lists_.resize(child);
      answer = tri::no;
    }
    return answer;
  }

  /// Places p = lists_[k] and appends the child's list, sorted. False when some item cannot fit.
  bool place(std::uint32_t p, std::int64_t at, std::size_t from, std::size_t k, std::size_t to) {
    const std::int64_t end = at + in_.size.data()[p];
    const std::uint32_t* c = in_.other.data() + in_.first.data()[p];
    const std::uint32_t* stop = in_.other.data() + in_.first.data()[p + 1];
    work_ += static_cast<std::uint64_t>(stop - c) / 2 + (to - from) / 2;
    const std::size_t mark = trail_.size();
    for (; c != stop; ++c)
      if (offset_.data()[*c] == unplaced_ && !raise_floor(*c, end)) return false;
    // Items passed over come later in the list, on something that comes later itself, unless they
    // rest on p. Each raised offset can raise others.
    for (bool again = k > from; again;) {
      again = false;
      for (std::size_t s = from; s < k; ++s) {
        const std::uint32_t q = lists_.data()[s];
        if (floor_.data()[q] >= end) continue;
        const std::int64_t support = support_of(q, at);
        if (support == INT64_MAX) return false;
        if (aligned(q, support) > lowest_.data()[q]) {
          if (!raise(q, support)) return false;
          again = true;
        }
      }
    }
    // The child's list: what did not move keeps its order; what moved is sorted and merged in.
    moved_.clear();
    left_ = in_.lower.data()[p];
    right_ = in_.upper.data()[p];
    for (std::size_t t = mark; t < trail_.size(); ++t) {
      const std::uint32_t i = trail_.data()[t].item;
      if (flag_.data()[i] != 0) continue;
      flag_.data()[i] = 1;
      moved_.push_back(i);
      left_ = std::min(left_, in_.lower.data()[i]);
      right_ = std::max(right_, in_.upper.data()[i]);
    }
    std::sort(moved_.begin(), moved_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return before(a, b); });
    std::size_t m = 0;
    lists_.reserve(lists_.size() + (to - from));
    for (std::size_t s = from; s < to; ++s) {
      const std::uint32_t i = lists_.data()[s];
      if (i == p || flag_.data()[i] != 0) continue;
      while (m < moved_.size() && before(moved_.data()[m], i)) lists_.push_back(moved_.data()[m++]);
      lists_.push_back(i);
    }
    while (m < moved_.size()) lists_.push_back(moved_.data()[m++]);
    for (const std::uint32_t i : moved_) flag_.data()[i] = 0;
    return true;
  }

  /// Lowest offset, not below `at`, at which q can come to rest on an unplaced item.
  std::int64_t support_of(std::uint32_t q, std::int64_t at) {
    std::int64_t best = INT64_MAX;
    const std::uint32_t* c = in_.other.data() + in_.first.data()[q];
    const std::uint32_t* stop = in_.other.data() + in_.first.data()[q + 1];
    work_ += static_cast<std::uint64_t>(stop - c) / 2;
    for (; c != stop; ++c)
      if (offset_.data()[*c] == unplaced_)
        best = std::min(best, std::max(lowest_.data()[*c], at) + in_.size.data()[*c]);
    return best;
  }

  const placement_instance& in_;
  std::int64_t capacity_ = 0;
  std::int64_t next_capacity_ = INT64_MAX;
  std::uint64_t work_ = 0, limit_ = 0;
  vector<std::int64_t> lowest_;  // lowest possible offset of an unplaced item
  vector<std::int64_t> floor_;   // highest end of the placed items it conflicts with
  vector<std::int64_t> offset_;  // of a placed item
  vector<std::uint32_t> rank_;
  vector<std::int64_t> room_;
  vector<change> trail_;
  vector<std::uint32_t> lists_;  // stack of item lists, one per level
  vector<std::uint32_t> moved_;
  std::uint32_t left_ = 0, right_ = 0;  // slots where `place` changed something
  vector<std::uint32_t> starts_;
  vector<char> flag_;
  vector<std::uint32_t> blame_;
};

}  // namespace sod2::detail
