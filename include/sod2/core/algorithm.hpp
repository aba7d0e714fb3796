// The few algorithms that analysis headers need, constexpr and cheap to include.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <sod2/core/vector.hpp>

namespace sod2 {

/// Stable merge sort of [first, last).
template <class T, class Less>
constexpr void stable_sort(T* first, T* last, Less less) {
  const std::size_t n = static_cast<std::size_t>(last - first);
  for (std::size_t i = 0; i < n; i += 8) {  // short runs by insertion
    const std::size_t stop = i + 8 < n ? i + 8 : n;
    for (std::size_t j = i + 1; j < stop; ++j)
      for (std::size_t k = j; k > i && less(first[k], first[k - 1]); --k)
        std::swap(first[k], first[k - 1]);
  }
  if (n <= 8) return;
  vector<T> buffer;
  buffer.resize(n);
  T* from = first;
  T* to = buffer.data();
  for (std::size_t width = 8; width < n; width *= 2) {
    for (std::size_t i = 0; i < n; i += 2 * width) {
      std::size_t a = i, b = i + width < n ? i + width : n;
      const std::size_t mid = b, stop = i + 2 * width < n ? i + 2 * width : n;
      for (std::size_t out = i; out < stop; ++out) {
        if (a < mid && (b >= stop || !less(from[b], from[a])))
          to[out] = std::move(from[a++]);
        else
          to[out] = std::move(from[b++]);
      }
    }
    std::swap(from, to);
  }
  if (from != first)
    for (std::size_t i = 0; i < n; ++i) first[i] = std::move(from[i]);
}

constexpr std::uint64_t hash_mix(std::uint64_t h, std::uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdULL;
  return h ^ (h >> 32);  // tables look at low bits, floating-point literals differ in high ones
}
constexpr std::uint64_t hash_text(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h ^ (h >> 29);
}

}  // namespace sod2
