// Orders in which items are placed.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/memory/detail/instance.hpp>

namespace sod2::detail {

enum class order_key : std::uint8_t {
  start,     // execution order
  size,      // largest first
  area,      // size times lifetime, largest first
  duration,  // longest lifetime first
  breadth,   // by the live bytes of the widest slot that holds the item, then by size
  peak,      // outwards from the peak slot (paper, section 4.4.1 DMP)
  conflict,  // most conflicts first
};

template <class Key>
void sort_descending(vector<std::uint32_t>& order, Key key) {
  struct entry {
    std::int64_t key = 0;
    std::uint32_t item = 0;
  };
  vector<entry> entries(order.size());
  for (std::size_t k = 0; k < order.size(); ++k)
    entries.data()[k] = {key(order.data()[k]), order.data()[k]};
  stable_sort(entries.begin(), entries.end(),
              [](const entry& a, const entry& b) { return a.key > b.key; });
  for (std::size_t k = 0; k < order.size(); ++k) order.data()[k] = entries.data()[k].item;
}

/// Items first seen when the slots are visited in the given order; those of one slot by size.
inline vector<std::uint32_t> by_slots(const placement_instance& in,
                                      std::span<const std::uint32_t> slots) {
  // The rank of an item is the earliest visit among its slots: a range minimum.
  vector<std::uint32_t> visit(in.slots, in.slots);
  for (std::uint32_t v = 0; v < slots.size(); ++v) visit.data()[slots[v]] = v;
  // Sparse table over visits; two overlapping powers of two cover any range.
  vector<vector<std::uint32_t>> table;
  table.push_back(visit);
  for (std::uint32_t width = 1; 2 * width <= in.slots; width *= 2) {
    const vector<std::uint32_t>& below = table.back();
    vector<std::uint32_t> level(in.slots - 2 * width + 1);
    for (std::uint32_t s = 0; s + 2 * width <= in.slots; ++s) {
      const std::uint32_t a = below.data()[s], b = below.data()[s + width];
      level.data()[s] = a < b ? a : b;
    }
    table.push_back(std::move(level));
  }
  const auto earliest = [&](std::uint32_t i) {
    const std::uint32_t lower = in.lower.data()[i], length = in.upper.data()[i] - lower;
    const auto level = static_cast<std::uint32_t>(31 - __builtin_clz(length));
    const vector<std::uint32_t>& row = table.data()[level];
    const std::uint32_t a = row.data()[lower], b = row.data()[lower + length - (1U << level)];
    return a < b ? a : b;
  };
  vector<std::uint32_t> order(in.by_start.view());
  sort_descending(order, [&](std::uint32_t i) { return in.size.data()[i]; });
  sort_descending(order, [&](std::uint32_t i) { return -static_cast<std::int64_t>(earliest(i)); });
  return order;
}

inline vector<std::uint32_t> make_order(const placement_instance& in, order_key key) {
  vector<std::uint32_t> order(in.by_start.view());
  const auto life = [&](std::uint32_t i) {
    return static_cast<std::int64_t>(in.upper.data()[i] - in.lower.data()[i]);
  };
  switch (key) {
    case order_key::start: break;
    case order_key::size:
      sort_descending(order, [&](std::uint32_t i) { return in.size.data()[i]; });
      break;
    case order_key::area:
      sort_descending(order, [&](std::uint32_t i) {
        std::int64_t area = 0;
        return checked_mul(in.size.data()[i], life(i), area) ? area : INT64_MAX;
      });
      break;
    case order_key::duration:
      sort_descending(order, [&](std::uint32_t i) { return in.size.data()[i]; });
      sort_descending(order, life);
      break;
    case order_key::breadth: {
      vector<std::uint32_t> slots(in.slots);
      for (std::uint32_t s = 0; s < in.slots; ++s) slots.data()[s] = s;
      sort_descending(slots, [&](std::uint32_t s) { return in.live.data()[s]; });
      return by_slots(in, slots.view());
    }
    case order_key::peak: {
      // Both neighbours at distance d are visited together, the fuller one first.
      vector<std::uint32_t> slots;
      slots.reserve(in.slots);
      if (in.slots > 0) slots.push_back(in.peak_slot);
      for (std::uint32_t d = 1; slots.size() < in.slots; ++d) {
        const bool left = d <= in.peak_slot, right = in.peak_slot + d < in.slots;
        const std::uint32_t l = in.peak_slot - d, r = in.peak_slot + d;
        const bool right_first = left && right && in.live.data()[r] > in.live.data()[l];
        if (right && right_first) slots.push_back(r);
        if (left) slots.push_back(l);
        if (right && !right_first) slots.push_back(r);
      }
      return by_slots(in, slots.view());
    }
    case order_key::conflict:
      sort_descending(order, [&](std::uint32_t i) { return in.size.data()[i]; });
      sort_descending(order, [&](std::uint32_t i) {
        return static_cast<std::int64_t>(in.first.data()[i + 1] - in.first.data()[i]);
      });
      break;
  }
  return order;
}

}  // namespace sod2::detail
