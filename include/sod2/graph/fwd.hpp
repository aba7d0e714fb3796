// Declarations of graph/.
#pragma once

namespace sod2 {
template <class G>
struct graph_traits;
class graph;
class graph_view;
}  // namespace sod2
