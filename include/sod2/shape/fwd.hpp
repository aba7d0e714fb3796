// Declarations of shape/.
#pragma once

namespace sod2 {
template <class V>
struct basic_fact;
}  // namespace sod2
