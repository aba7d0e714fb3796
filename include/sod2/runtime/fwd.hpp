// Declarations of runtime/.
#pragma once

namespace sod2 {
class program;
class session;
struct compile_options;
struct session_options;
}  // namespace sod2
