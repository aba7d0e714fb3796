// The closed list of executable groups (design: executable without a JIT).
#pragma once

#include <cstdint>
#include <string_view>

namespace sod2 {

enum class group_kind : std::uint8_t {
  host,         // shape arithmetic: evaluated in size programs, launches nothing
  view,         // moves no bytes: the output aliases the input
  tile,         // pointwise bytecode over cache-resident vector tiles
  row,          // reductions along the last axes, in pieces
  product,      // matrix product with epilogue
  convolution,  // convolution with epilogue
  attention,    // blocked, never holding L x L
  opaque,       // one operator, one kernel
};

constexpr std::string_view name_of(group_kind kind) {
  constexpr std::string_view names[] = {"host",    "view",        "tile",      "row",
                                        "product", "convolution", "attention", "opaque"};
  return names[static_cast<unsigned>(kind)];
}

}  // namespace sod2
