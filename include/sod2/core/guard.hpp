// Path conditions as a small forest: what only happens in one arm of a choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sod2 {

/// One arm of one choice (an If, a Switch), nested in the arm `parent`. Guards are named by their
/// position in a list plus one; 0 means "always".
struct guard {
  std::uint32_t parent = 0;  // a smaller guard number, or 0
  std::uint32_t choice = 0;  // which choice of the program
  std::uint32_t arm = 0;     // which of its outcomes
};

/// True when no run can take both paths: they part at different arms of the same choice.
constexpr bool exclusive(std::span<const guard> guards, std::uint32_t a, std::uint32_t b) {
  for (std::uint32_t i = a; i != 0; i = guards[i - 1].parent)
    for (std::uint32_t j = b; j != 0; j = guards[j - 1].parent)
      if (guards[i - 1].choice == guards[j - 1].choice && guards[i - 1].arm != guards[j - 1].arm)
        return true;
  return false;
}

/// True when every parent comes before its children, a choice stands under one parent only, and no
/// arm is listed twice.
constexpr bool well_formed(std::span<const guard> guards) {
  for (std::size_t i = 0; i < guards.size(); ++i) {
    if (guards[i].parent > i) return false;
    for (std::size_t j = 0; j < i; ++j)
      if (guards[j].choice == guards[i].choice &&
          (guards[j].parent != guards[i].parent || guards[j].arm == guards[i].arm))
        return false;
  }
  return true;
}

}  // namespace sod2
