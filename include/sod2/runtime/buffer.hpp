// Owned memory of programs and sessions: aligned, through the caller's allocator, failing as a
// value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace sod2 {

/// The caller's allocator. The default uses aligned operator new without exceptions.
struct allocator_ref {
  void* context = nullptr;
  void* (*allocate)(void* context, std::size_t bytes, std::size_t alignment) = nullptr;
  void (*release)(void* context, void* data, std::size_t bytes, std::size_t alignment) = nullptr;

  void* get(std::size_t bytes, std::size_t alignment) const {
    if (allocate != nullptr) return allocate(context, bytes, alignment);
    return ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
  }
  void put(void* data, std::size_t bytes, std::size_t alignment) const {
    if (allocate != nullptr)
      release(context, data, bytes, alignment);
    else
      ::operator delete(data, std::align_val_t(alignment));
  }
};

/// Alignment of every tensor that the library places, in bytes.
inline constexpr std::size_t tensor_alignment = 64;

/// A growable block. Growing does not keep the content.
class memory_block {
 public:
  memory_block() = default;
  explicit memory_block(allocator_ref allocator) : allocator_(allocator) {}
  memory_block(memory_block&& other) noexcept
      : allocator_(other.allocator_),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  memory_block& operator=(memory_block&& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~memory_block() { release(); }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// At least `bytes`; false when memory ran out (the block is then empty).
  bool reserve(std::size_t bytes) {
    if (bytes <= bytes_) return true;
    release();
    data_ = static_cast<std::byte*>(allocator_.get(bytes, tensor_alignment));
    bytes_ = data_ != nullptr ? bytes : 0;
    return data_ != nullptr;
  }
  void release() {
    if (data_ != nullptr) allocator_.put(data_, bytes_, tensor_alignment);
    data_ = nullptr;
    bytes_ = 0;
  }

 private:
  allocator_ref allocator_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace sod2
