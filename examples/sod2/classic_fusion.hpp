// How many kernels a DNNFusion-style greedy would make of a model: the yardstick `column_a`.
#pragma once

#include <cstddef>

#include <sod2/graph/view.hpp>
#include <sod2/rdp/analysis.hpp>

namespace tool {

/// Kernels after DNNFusion (Niu et al., PLDI 2021, Listing 1 and Table 3) on the folded main graph:
/// blocks grow from one-to-one operators to successors and predecessors, hold at most one
/// many-to-many operator, and none behind a one-to-many one; what has to be profiled counts as
/// fused. Nodes whose values are known before a run are folded away.
std::size_t classic_kernels(const sod2::graph_view& view, sod2::analysis& facts);

}  // namespace tool
