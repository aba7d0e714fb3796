// The standard ONNX operators as a table. Declared here, defined in the one unit of a program that
// includes sod2/instantiate.hpp: nobody else pays for their code.
#pragma once

#include <sod2/op/registry.hpp>

namespace sod2 {

/// Every operator of op/std, over the symbolic domain. Made at the first call; never changes.
const registry& standard_registry();

}  // namespace sod2
