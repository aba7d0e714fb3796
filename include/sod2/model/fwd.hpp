// Declarations of model/.
#pragma once

#include <cstdint>

namespace sod2::model {
template <class... Layers>
struct network;
template <class Input, class... Layers>
struct instance;
}  // namespace sod2::model
