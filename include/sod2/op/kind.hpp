// How dynamic an operator is (paper section 3.1, Table 2) and how it maps indices (DNNFusion Table 2).
#pragma once

#include <cstdint>
#include <string_view>

namespace sod2 {

/// What decides an operator's output.
enum class dynamism : std::uint8_t {
  isdo,    // input shapes decide output shape and value
  isdos,   // input shapes decide the output shape
  isvdos,  // shapes and some input values decide the output shape
  edo,     // only execution decides the output shape
};

/// DNNFusion's mapping types.
enum class mapping : std::uint8_t {
  one_to_one,
  one_to_many,
  many_to_many,
  reorganize,
  shuffle,
  source,   // no data input: constants, ranges, random
  barrier,  // never fused: control flow, sequences, data-dependent sizes
};

constexpr std::string_view name_of(dynamism d) {
  constexpr std::string_view names[] = {"ISDO", "ISDOS", "ISVDOS", "EDO"};
  return names[static_cast<unsigned>(d)];
}
constexpr std::string_view name_of(mapping m) {
  constexpr std::string_view names[] = {"one_to_one", "one_to_many", "many_to_many", "reorganize",
                                        "shuffle",    "source",      "barrier"};
  return names[static_cast<unsigned>(m)];
}

}  // namespace sod2
