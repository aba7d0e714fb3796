#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/vector.hpp>

using sod2::small_vector;

namespace {
constexpr int sum_at_compile_time() {
  small_vector<int, 2> v{1, 2, 3};
  v.push_back(4);
  small_vector<int, 2> moved = std::move(v);
  moved.insert(0, 10);
  moved.erase(1);
  int total = 0;
  for (int i : moved) total += i;
  return total * 10 + static_cast<int>(v.size());
}
static_assert(sum_at_compile_time() == 190);
}  // namespace

TEST_CASE("a small vector behaves as std::vector does") {
  std::mt19937 random(7);
  small_vector<std::string, 3> ours;
  std::vector<std::string> theirs;
  for (int step = 0; step < 5000; ++step) {
    const std::size_t at = theirs.empty() ? 0 : random() % theirs.size();
    const std::string text = std::to_string(random() % 1000) + std::string(random() % 40, 'x');
    switch (random() % 7) {
      case 0:
      case 1:
        ours.push_back(text);
        theirs.push_back(text);
        break;
      case 2:
        ours.insert(at, text);
        theirs.insert(theirs.begin() + static_cast<std::ptrdiff_t>(at), text);
        break;
      case 3:
        if (!theirs.empty()) {
          ours.erase(at);
          theirs.erase(theirs.begin() + static_cast<std::ptrdiff_t>(at));
        }
        break;
      case 4:
        if (theirs.size() > 8) {
          ours.resize(at);
          theirs.resize(at);
        }
        break;
      case 5: {
        small_vector<std::string, 3> copy = ours;
        small_vector<std::string, 3> other{"other"};
        other = std::move(ours);
        CHECK(ours.empty());
        ours = copy;
        CHECK(ours == other);
        break;
      }
      default:
        if (!theirs.empty()) {
          ours.pop_back();
          theirs.pop_back();
        }
        break;
    }
    REQUIRE(ours.size() == theirs.size());
    for (std::size_t i = 0; i < theirs.size(); ++i) REQUIRE(ours[i] == theirs[i]);
  }
}

TEST_CASE("the sort is stable at every length") {
  std::mt19937 random(11);
  for (std::size_t n = 0; n < 200; ++n) {
    std::vector<std::pair<int, int>> ours, theirs;
    for (std::size_t i = 0; i < n; ++i)
      ours.emplace_back(static_cast<int>(random() % 8), static_cast<int>(i));
    theirs = ours;
    const auto less = [](const auto& a, const auto& b) { return a.first < b.first; };
    sod2::stable_sort(ours.data(), ours.data() + n, less);
    std::stable_sort(theirs.begin(), theirs.end(), less);
    REQUIRE(ours == theirs);
  }
}
