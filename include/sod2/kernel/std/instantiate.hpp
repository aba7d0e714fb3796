// The kernel half of sod2/instantiate.hpp: every standard kernel, and the tables that name them.
#pragma once

#include <sod2/kernel/simd/dispatch.hpp>  // first: foreach_target compiles it once per target

#include <sod2/kernel/std/pointwise.hpp>
#include <sod2/kernel/std/rows.hpp>
#include <sod2/kernel/std/tile_run.hpp>
#include <sod2/kernel/table.hpp>

namespace sod2 {

namespace kernel_detail {

template <simd_target Target>
errc run_tile_target(const tile_call& call) {
  return run_tile_on(*simd_for(Target), call);
}
inline errc run_tile_best(const tile_call& call) { return run_tile_on(best_simd(), call); }

template <simd_target Target>
const kernel_table* table_for() {
  const simd_table* const simd = simd_for(Target);
  if (simd == nullptr) return nullptr;
  static const kernel_table table{kernel_rows, pointwise_rows, run_tile_target<Target>, simd,
                                  simd->name};
  return &table;
}

}  // namespace kernel_detail

const kernel_table& standard_kernels() {
  static const kernel_table table{kernel_detail::kernel_rows, kernel_detail::pointwise_rows,
                                  kernel_detail::run_tile_best, &kernel_detail::best_simd(),
                                  kernel_detail::best_simd().name};
  return table;
}

const kernel_table* standard_kernels(simd_target target) {
  switch (target) {
    case simd_target::best: return &standard_kernels();
    case simd_target::baseline: return kernel_detail::table_for<simd_target::baseline>();
    case simd_target::sse4: return kernel_detail::table_for<simd_target::sse4>();
    case simd_target::avx2: return kernel_detail::table_for<simd_target::avx2>();
    case simd_target::avx512: return kernel_detail::table_for<simd_target::avx512>();
    case simd_target::neon: return kernel_detail::table_for<simd_target::neon>();
  }
  return nullptr;
}

}  // namespace sod2
