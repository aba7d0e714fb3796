// Graphs: traits for any graph type, the dense view, the reference graph.
#pragma once

#include <sod2/graph/graph.hpp>
#include <sod2/graph/traits.hpp>
#include <sod2/graph/view.hpp>
