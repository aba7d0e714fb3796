// Views of tensors in memory, and constants. Nothing here owns anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sod2/core/checked.hpp>
#include <sod2/core/dtype.hpp>

namespace sod2 {

/// A dense row-major tensor in memory: pointer, element type, dims. Elements of a string tensor are
/// std::string_view; their characters live elsewhere. An absent optional tensor has
/// type `undefined`. `data` may be null when a dim is zero.
/// A sequence (type `sequence`) has rank 1 and one dim, its length; `data` points to the views of
/// its elements. An optional (type `optional`) looks the same with a length of 0 or 1; its element
/// is a tensor or a sequence.
struct tensor_view {
  void* data = nullptr;
  const std::int64_t* dims = nullptr;
  std::uint32_t rank = 0;
  dtype type = dtype::undefined;

  constexpr bool present() const { return type != dtype::undefined; }
  constexpr std::int64_t dim(std::size_t axis) const { return dims[axis]; }
  constexpr std::span<const std::int64_t> shape() const { return {dims, rank}; }
  constexpr std::int64_t count() const {
    std::int64_t n = 1;
    for (std::uint32_t i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }
  /// The bytes of all elements; false where their bits do not fit into 64.
  constexpr bool checked_bytes(std::int64_t& out) const {
    std::int64_t n = 1;
    bool fits = true;
    for (std::uint32_t i = 0; i < rank; ++i) {
      if (dims[i] == 0) {
        out = 0;
        return true;
      }
      fits = fits && checked_mul(n, dims[i], n);
    }
    fits = fits && checked_mul(n, static_cast<std::int64_t>(bits_of(type)), out);
    out = ceil_div(out, 8);
    return fits;
  }
  /// Element i of a sequence or optional.
  constexpr const tensor_view& item(std::int64_t i) const {
    return static_cast<const tensor_view*>(data)[i];
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

/// A constant (initialiser, Constant attribute) whose bytes live elsewhere. Bytes may be misaligned
/// (ONNX raw data often is): read through memcpy or copy first. Strings: `data` points to
/// std::string objects.
struct constant_view {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::span<const std::int64_t> dims{};
  dtype type = dtype::undefined;

  constexpr bool present() const { return type != dtype::undefined; }
  constexpr std::int64_t count() const {
    std::int64_t n = 1;
    for (std::int64_t d : dims) n *= d;
    return n;
  }
};

}  // namespace sod2
