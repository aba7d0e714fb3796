// Orders in which items are placed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/checked.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/memory/detail/instance.hpp>

namespace sod2::detail {

enum class order_key : std::uint8_t {
  start,     // execution order
  end,       // longest alive last: latest end first
  size,      // largest first
  area,      // size times lifetime, largest first
  duration,  // longest lifetime first
  breadth,   // by the live bytes of the fullest slot that holds the item, then by size
  peak,      // the same, then by area: those live at the peak first
  outward,   // outwards in time from the peak slot
  conflict,  // most conflicts first
};

/// Items by descending (first, second), then by start.
template <class First, class Second>
vector<std::uint32_t> sorted_items(const placement_instance& in, First first, Second second) {
  struct entry {
    std::int64_t first = 0, second = 0;
    std::uint32_t item = 0;
  };
  vector<entry> entries(in.count);
  for (std::uint32_t k = 0; k < in.count; ++k) {
    const std::uint32_t i = in.by_start.data()[k];
    entries.data()[k] = {first(i), second(i), i};
  }
  stable_sort(entries.begin(), entries.end(), [](const entry& a, const entry& b) {
    return a.first != b.first ? a.first > b.first : a.second > b.second;
  });
  vector<std::uint32_t> order(in.count);
  for (std::uint32_t k = 0; k < in.count; ++k) order.data()[k] = entries.data()[k].item;
  return order;
}

/// Largest value of a range of slots in constant time: two overlapping powers of two cover any
/// range. Most ranges are short, and looked at directly.
class range_max {
 public:
  explicit range_max(vector<std::int64_t> values) { levels_.push_back(std::move(values)); }

  std::int64_t operator()(std::uint32_t lower, std::uint32_t upper) {
    const std::uint32_t length = upper - lower;
    if (length <= 8) {
      const std::int64_t* v = levels_.data()[0].data();
      std::int64_t most = v[lower];
      for (std::uint32_t s = lower + 1; s < upper; ++s) most = most < v[s] ? v[s] : most;
      return most;
    }
    const auto level = static_cast<std::uint32_t>(31 - __builtin_clz(length));
    while (levels_.size() <= level) grow();
    const std::int64_t* row = levels_.data()[level].data();
    const std::int64_t a = row[lower], b = row[upper - (1U << level)];
    return a < b ? b : a;
  }

 private:
  void grow() {
    const vector<std::int64_t>& below = levels_.back();
    const std::size_t step = std::size_t{1} << (levels_.size() - 1);
    vector<std::int64_t> level(below.size() - step);
    for (std::size_t s = 0; s < level.size(); ++s) {
      const std::int64_t a = below.data()[s], b = below.data()[s + step];
      level.data()[s] = a < b ? b : a;
    }
    levels_.push_back(std::move(level));
  }
  vector<vector<std::int64_t>> levels_;
};

inline vector<std::uint32_t> make_order(const placement_instance& in, order_key key) {
  const auto size = [&](std::uint32_t i) { return in.size.data()[i]; };
  const auto none = [](std::uint32_t) { return std::int64_t{0}; };
  const auto life = [&](std::uint32_t i) {
    return static_cast<std::int64_t>(in.upper.data()[i] - in.lower.data()[i]);
  };
  const auto area = [&](std::uint32_t i) {
    std::int64_t product = 0;
    return checked_mul(in.size.data()[i], life(i), product) ? product : INT64_MAX;
  };
  const auto by_slot_value = [&](vector<std::int64_t> values, auto second) {
    range_max most(std::move(values));
    return sorted_items(
        in, [&](std::uint32_t i) { return most(in.lower.data()[i], in.upper.data()[i]); }, second);
  };
  switch (key) {
    case order_key::start: break;
    case order_key::end:
      return sorted_items(
          in, [&](std::uint32_t i) { return static_cast<std::int64_t>(in.upper.data()[i]); }, size);
    case order_key::size: return sorted_items(in, size, none);
    case order_key::area: return sorted_items(in, area, none);
    case order_key::duration: return sorted_items(in, life, size);
    case order_key::breadth: return by_slot_value(in.live, size);
    case order_key::peak: return by_slot_value(in.live, area);
    case order_key::outward: {
      vector<std::int64_t> closeness(in.slots);
      for (std::uint32_t s = 0; s < in.slots; ++s)
        closeness.data()[s] =
            -static_cast<std::int64_t>(s < in.peak_slot ? in.peak_slot - s : s - in.peak_slot);
      return by_slot_value(std::move(closeness), size);
    }
    case order_key::conflict:
      return sorted_items(
          in,
          [&](std::uint32_t i) {
            return static_cast<std::int64_t>(in.first.data()[i + 1] - in.first.data()[i]);
          },
          size);
  }
  return in.by_start;
}

}  // namespace sod2::detail
