// The seam to a thread pool. Kernels never create threads; they split their output statically.
#pragma once

#include <cstdint>

namespace sod2 {

/// A pool that the caller owns. The default runs everything inline on the calling thread.
///
/// `parallel_for(context, count, body, arg)` calls `body(arg, begin, end)` for disjoint ranges that
/// cover [0, count), from any threads, and returns when all are done. `body` never throws. Kernels
/// use at most `threads` parts and never split a sum, so results are bit-identical for any number.
struct thread_pool_ref {
  void* context = nullptr;
  int threads = 1;
  void (*parallel_for)(void* context, std::int64_t count,
                       void (*body)(void* arg, std::int64_t begin, std::int64_t end),
                       void* arg) = nullptr;
};

/// Splits [0, count) into at most `pool.threads` contiguous parts of at least `grain` items and
/// calls `f(part, begin, end)` once per part; `part` < `pool.threads` numbers the workspace slice.
template <class F>
void parallel_parts(const thread_pool_ref& pool, std::int64_t count, std::int64_t grain,
                    const F& f) {
  if (count <= 0) return;
  if (grain < 1) grain = 1;
  std::int64_t parts = count / grain;
  if (pool.parallel_for == nullptr || parts < 1) parts = 1;
  if (parts > pool.threads) parts = pool.threads;
  if (parts <= 1) {
    f(std::int64_t{0}, std::int64_t{0}, count);
    return;
  }
  struct call {
    const F* f;
    std::int64_t count, parts;
  } c{&f, count, parts};
  pool.parallel_for(
      pool.context, parts,
      [](void* arg, std::int64_t begin, std::int64_t end) {
        const call& k = *static_cast<const call*>(arg);
        for (std::int64_t p = begin; p < end; ++p)
          (*k.f)(p, k.count* p / k.parts, k.count * (p + 1) / k.parts);
      },
      &c);
}

}  // namespace sod2
