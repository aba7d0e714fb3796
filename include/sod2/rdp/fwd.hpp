// Declarations of rdp/.
#pragma once

namespace sod2 {
class analysis;
struct analysis_options;
struct assertion;
}  // namespace sod2
