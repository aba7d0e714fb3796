// Strong dense indices. Value 0 is "absent" (an optional input that is not given).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace sod2 {

template <class Tag>
struct strong_id {
  std::uint32_t index = 0;
  constexpr strong_id() = default;
  constexpr explicit strong_id(std::size_t i) : index(static_cast<std::uint32_t>(i)) {}
  friend constexpr bool operator==(strong_id, strong_id) = default;
  friend constexpr auto operator<=>(strong_id a, strong_id b) { return a.index <=> b.index; }
};

using value_id = strong_id<struct value_tag>;
using node_id = strong_id<struct node_tag>;
using scope_id = strong_id<struct scope_tag>;
using group_id = strong_id<struct group_tag>;

inline constexpr value_id absent{};

}  // namespace sod2
