// The operator half of sod2/instantiate.hpp: all standard operators over the symbolic domain.
#pragma once

#include <sod2/op/standard.hpp>
#include <sod2/op/std.hpp>

namespace sod2 {

const registry& standard_registry() {
  static const registry table{standard_ops{}};
  return table;
}

}  // namespace sod2
