// Counts every allocation of this program.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "unit/runtime/support.hpp"

namespace {
std::atomic<std::uint64_t> count{0};

void* take(std::size_t bytes, std::size_t alignment) {
  count.fetch_add(1, std::memory_order_relaxed);
  const std::size_t whole = (bytes + alignment) / alignment * alignment;  // at least one
  return std::aligned_alloc(alignment, whole);
}
void* take_or_die(std::size_t bytes, std::size_t alignment) {
  void* const data = take(bytes, alignment);
  if (data == nullptr) std::abort();
  return data;
}
constexpr std::size_t plain = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
}  // namespace

std::uint64_t test::allocations() { return count.load(); }

void* operator new(std::size_t n) { return take_or_die(n, plain); }
void* operator new[](std::size_t n) { return take_or_die(n, plain); }
void* operator new(std::size_t n, std::align_val_t a) {
  return take_or_die(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return take_or_die(n, static_cast<std::size_t>(a));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return take(n, plain); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return take(n, plain); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(n, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
