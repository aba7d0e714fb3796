// Declarations of fuse/.
#pragma once

namespace sod2 {
struct fused_group;
struct fusion_plan;
struct fusion_options;
enum class node_role : unsigned char;
}  // namespace sod2
