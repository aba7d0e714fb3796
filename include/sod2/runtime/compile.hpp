// compile: graph, operators and kernels in, an immutable program out. The only place that turns a
// fused graph into order, memory and kernel problems.
#pragma once

#include <sod2/core/config.hpp>
#include <sod2/core/status.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/kernel/table.hpp>
#include <sod2/op/registry.hpp>
#include <sod2/runtime/options.hpp>
#include <sod2/runtime/program.hpp>

namespace sod2 {

/// Compiles a graph to a program that outlives it: constants are copied or packed. Errors name the
/// node, tensor and axis; `kernel_missing` and `unsupported` say what cannot be run.
SOD2_HEAVY result<program> compile(const graph_view& view, const registry& ops,
                                   const kernel_table& kernels,
                                   const compile_options& options = {});

}  // namespace sod2

#ifndef SOD2_INSTANTIATED
#include <sod2/runtime/detail/compiler.hpp>
#endif
