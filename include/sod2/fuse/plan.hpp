// Fusion problems and plans as plain data.
#pragma once

#include <cstdint>
#include <vector>

#include <sod2/core/group_kind.hpp>
#include <sod2/core/ids.hpp>
#include <sod2/fuse/fwd.hpp>

namespace sod2 {

/// What may be done with a node; the caller derives it from its kernels, so that fusion never asks
/// for what cannot be executed.
enum class node_role : unsigned char {
  dead,         // not needed, or folded away
  host,         // shape arithmetic: its values are expressions, nothing is launched
  view,         // output 0 aliases input 0
  pointwise,    // lowers to tile instructions
  product,      // matrix product that accepts an epilogue
  convolution,  // convolution that accepts an epilogue
  opaque,       // a kernel of its own
};

/// One launch (or view, or host computation). Nodes are in topological order; `anchor` is the
/// product or convolution, else the first node.
struct fused_group {
  group_kind kind = group_kind::opaque;
  node_id anchor{};
  std::vector<node_id> nodes;
  std::vector<value_id> inputs;   // values made outside and read inside, each once
  std::vector<value_id> outputs;  // values made inside and read outside (or graph outputs)
};

/// Groups in a valid execution order.
struct fusion_plan {
  std::vector<fused_group> groups;
  std::vector<std::uint32_t> group_of;  // per node; no_index when dead

  std::size_t launches() const {
    std::size_t n = 0;
    for (const fused_group& g : groups)
      n += g.kind != group_kind::host && g.kind != group_kind::view;
    return n;
  }
};

/// Limits of a group. The defaults fit the standard tile executor.
struct fusion_options {
  bool enabled = true;
  std::uint32_t max_nodes = 24;
  std::uint32_t max_inputs = 12;
  std::uint32_t max_outputs = 4;
  std::uint32_t window = 512;  // nodes that a group's growth may look ahead
};

}  // namespace sod2
