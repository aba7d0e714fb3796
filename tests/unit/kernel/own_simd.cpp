// A user's own Highway code in a unit of its own, next to two umbrellas of the library: Highway's
// foreach_target works once per unit, and the library's use of it stands in another one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unit/kernel/own_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace user::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y += a * x
void axpy(float a, const float* x, float* y, std::size_t n) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::MulAdd(hn::Set(d, a), hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, y + i);
  for (; i < n; ++i) y[i] += a * x[i];
}

}  // namespace user::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <doctest/doctest.h>

#include <vector>

#include <sod2/kernel.hpp>
#include <sod2/rdp.hpp>

namespace user {
void call_axpy(float a, const float* x, float* y, std::size_t n) {
  HWY_STATIC_DISPATCH(axpy)(a, x, y, n);
}
}  // namespace user

TEST_CASE("a user's SIMD kernel lives beside the library's") {
  std::vector<float> x(37), y(37, 1.0F);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  user::call_axpy(2.0F, x.data(), y.data(), x.size());
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == 1.0F + 2.0F * static_cast<float>(i));
  // The library's own kernels answer in the same program.
  CHECK(sod2::standard_kernels().find("", "MatMul", 13) != nullptr);
}
#endif
