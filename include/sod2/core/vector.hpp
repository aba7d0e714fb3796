// A growable array that also works in constant expressions (clang 16 with libstdc++ 12 rejects
// std::vector there) and can hold its first `Inline` elements without allocating.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include <sod2/core/config.hpp>

namespace sod2 {

/// Elements must be default-constructible and cheap to assign. Iterators are pointers.
template <class T, std::uint32_t Inline = 0>
class small_vector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  constexpr small_vector() = default;
  constexpr explicit small_vector(std::size_t count, const T& value = T()) { resize(count, value); }
  constexpr small_vector(std::initializer_list<T> list) { append(list.begin(), list.end()); }
  constexpr explicit small_vector(std::span<const T> items) {
    append(items.data(), items.data() + items.size());
  }
  constexpr small_vector(const small_vector& other) { append(other.begin(), other.end()); }
  constexpr small_vector(small_vector&& other) noexcept { take(other); }
  constexpr small_vector& operator=(const small_vector& other) {
    if (this != &other) {
      clear();
      append(other.begin(), other.end());
    }
    return *this;
  }
  constexpr small_vector& operator=(small_vector&& other) noexcept {
    if (this != &other) {
      delete[] heap_;
      heap_ = nullptr;
      capacity_ = Inline;
      size_ = 0;
      take(other);
    }
    return *this;
  }
  constexpr ~small_vector() { delete[] heap_; }

  constexpr std::size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr std::size_t capacity() const noexcept { return capacity_; }
  constexpr T* data() noexcept { return heap_ != nullptr ? heap_ : inline_data(); }
  constexpr const T* data() const noexcept {
    return heap_ != nullptr ? heap_ : const_cast<small_vector*>(this)->inline_data();
  }
  constexpr T* begin() noexcept { return data(); }
  constexpr T* end() noexcept { return data() + size_; }
  constexpr const T* begin() const noexcept { return data(); }
  constexpr const T* end() const noexcept { return data() + size_; }
  constexpr T& operator[](std::size_t i) {
    SOD2_ASSERT(i < size_);
    return data()[i];
  }
  constexpr const T& operator[](std::size_t i) const {
    SOD2_ASSERT(i < size_);
    return data()[i];
  }
  constexpr T& front() { return (*this)[0]; }
  constexpr const T& front() const { return (*this)[0]; }
  constexpr T& back() { return (*this)[size_ - 1]; }
  constexpr const T& back() const { return (*this)[size_ - 1]; }

  constexpr void clear() noexcept { size_ = 0; }
  constexpr void reserve(std::size_t count) {
    if (count > capacity_) grow(count);
  }
  constexpr T& push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    T& slot = data()[size_++];
    slot = std::move(value);
    return slot;
  }
  constexpr void pop_back() {
    SOD2_ASSERT(size_ > 0);
    --size_;
  }
  constexpr void resize(std::size_t count, const T& value = T()) {
    reserve(count);
    for (std::size_t i = size_; i < count; ++i) data()[i] = value;
    size_ = static_cast<std::uint32_t>(count);
  }
  constexpr void assign(std::size_t count, const T& value) {
    clear();
    resize(count, value);
  }
  /// The range may not point into this vector.
  constexpr void append(const T* first, const T* last) {
    reserve(size_ + static_cast<std::size_t>(last - first));
    T* out = data() + size_;
    for (; first != last; ++first) *out++ = *first;
    size_ = static_cast<std::uint32_t>(out - data());
  }
  constexpr void append(std::span<const T> items) {
    append(items.data(), items.data() + items.size());
  }
  constexpr void insert(std::size_t at, T value) {
    push_back(std::move(value));
    for (std::size_t i = size_ - 1; i > at; --i) std::swap(data()[i], data()[i - 1]);
  }
  constexpr void erase(std::size_t at) {
    SOD2_ASSERT(at < size_);
    for (std::size_t i = at; i + 1 < size_; ++i) data()[i] = std::move(data()[i + 1]);
    --size_;
  }

  // Converts to std::span as any contiguous range does.
  constexpr std::span<const T> view() const noexcept { return {data(), size_}; }

  friend constexpr bool operator==(const small_vector& a, const small_vector& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i)
      if (!(a[i] == b[i])) return false;
    return true;
  }

 private:
  constexpr T* inline_data() noexcept {
    if constexpr (Inline > 0)
      return inline_.items;
    else
      return nullptr;
  }
  constexpr void grow(std::size_t needed) {
    std::size_t wanted = capacity_ + capacity_ / 2 + 4;
    if (wanted < needed) wanted = needed;
    T* fresh = new T[wanted]();
    for (std::size_t i = 0; i < size_; ++i) fresh[i] = std::move(data()[i]);
    delete[] heap_;
    heap_ = fresh;
    capacity_ = static_cast<std::uint32_t>(wanted);
  }
  constexpr void take(small_vector& other) noexcept {
    if (other.heap_ != nullptr) {
      heap_ = std::exchange(other.heap_, nullptr);
      capacity_ = std::exchange(other.capacity_, Inline);
      size_ = std::exchange(other.size_, 0U);
    } else {
      for (std::size_t i = 0; i < other.size_; ++i) inline_data()[i] = std::move(other.data()[i]);
      size_ = std::exchange(other.size_, 0U);
    }
  }

  struct no_items {};
  struct some_items {
    T items[Inline == 0 ? 1 : Inline] = {};
  };
  template <bool Some, class Yes, class No>
  struct pick {
    using type = Yes;
  };
  template <class Yes, class No>
  struct pick<false, Yes, No> {
    using type = No;
  };

  T* heap_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = Inline;
  [[no_unique_address]] typename pick<(Inline > 0), some_items, no_items>::type inline_{};
};

template <class T>
using vector = small_vector<T, 0>;

}  // namespace sod2
