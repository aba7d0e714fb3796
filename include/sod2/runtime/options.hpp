// Options of compile.
#pragma once

#include <cstdint>

#include <sod2/fuse/plan.hpp>
#include <sod2/fuse/rewrite.hpp>
#include <sod2/rdp/analysis.hpp>

namespace sod2 {

struct compile_options {
  analysis_options analysis;
  rewrite_options rewrite;
  fusion_options fusion;
  bool reorder = true;       // false: the graph's own order
  bool share_memory = true;  // false: every intermediate has bytes of its own
  /// Both arms of a branch run and its condition selects among their results, as in engines without
  /// control flow: a baseline to measure against. What the other arm breaks is ignored.
  bool all_branches = false;
  /// Keeps the formulas of all offsets, for reports.
  bool describe_memory = false;
  /// Sizes that only a run knows, but which cannot exceed a bound that `bind` knows (counts of
  /// NonZero, NonMaxSuppression, ...), get their memory in the arena, for the bound: runs do not
  /// grow it. Without a bound, and inside arms and bodies, memory grows as ever.
  bool upper_bounds = false;
  int threads = 1;  // most threads of any session
  /// Largest result of constant folding, in bytes; larger ones are computed at run.
  std::int64_t fold_limit = std::int64_t{16} << 20;
};

}  // namespace sod2
