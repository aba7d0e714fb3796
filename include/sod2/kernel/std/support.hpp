// What the kernel families share: states, packed buffers, decoded axes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include <sod2/expr/context.hpp>
#include <sod2/kernel/kernel.hpp>
#include <sod2/kernel/std/tile_run.hpp>

namespace sod2::kernel_detail {

using i64 = std::int64_t;
inline std::size_t idx(i64 i) { return static_cast<std::size_t>(i); }

/// Hands a state to its `kernel_state`.
template <class State>
result<kernel_state> own(State* state, i64 bytes = 0, std::uint64_t consumed = 0) {
  if (state == nullptr) return error(errc::out_of_memory);
  return kernel_state(
      state, [](void* p) { delete static_cast<State*>(p); }, bytes, consumed);
}
template <class State>
const State& state_of(const kernel_args& args) {
  return *static_cast<const State*>(args.state);
}

/// 64-byte aligned floats of a packed constant.
class packed_floats {
 public:
  packed_floats() = default;
  packed_floats(const packed_floats&) = delete;
  packed_floats& operator=(const packed_floats&) = delete;
  ~packed_floats() { release(); }
  bool allocate(i64 count) {
    release();
    count_ = count;
    data_ = static_cast<float*>(
        ::operator new(idx(count > 0 ? count : 1) * 4, std::align_val_t(64), std::nothrow));
    return data_ != nullptr;
  }
  float* data() { return data_; }
  const float* data() const { return data_; }
  i64 bytes() const { return count_ * 4; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  void release() {
    if (data_ != nullptr) ::operator delete(data_, std::align_val_t(64));
    data_ = nullptr;
  }
  float* data_ = nullptr;
  i64 count_ = 0;
};

/// The dims of a tensor as values on the stack.
inline constexpr int max_rank = static_cast<int>(tile_max_rank);

inline i64 product_of(std::span<const i64> dims) {
  i64 n = 1;
  for (i64 d : dims) n *= d;
  return n;
}
inline i64 product_of(const tensor_view& t, std::size_t begin, std::size_t end) {
  i64 n = 1;
  for (std::size_t d = begin; d < end; ++d) n *= t.dims[d];
  return n;
}

/// Element i of a small integer tensor (int32 or int64).
inline i64 integer_at(const tensor_view& t, i64 i) {
  return t.type == dtype::i32 ? t.as<const std::int32_t>()[i] : t.as<const i64>()[i];
}
inline double real_at(const tensor_view& t, i64 i) {
  double v = 0;
  with_storage(t.type, [&]<class T>() { v = convert_value<double>(t.as<const T>()[i]); });
  return v;
}
inline bool has_input(const kernel_args& a, std::size_t i) {
  return i < a.inputs.size() && a.inputs[i].present();
}
inline bool has_input(const prepare_args& a, std::size_t i) {
  return i < a.inputs.size() && a.inputs[i].type != dtype::undefined;
}
inline dtype input_type(const prepare_args& a, std::size_t i) {
  return i < a.inputs.size() ? a.inputs[i].type : dtype::undefined;
}

/// Bytes of a workspace that does not depend on any dim.
inline dim fixed_bytes(dim_context& context, i64 bytes) {
  return context.constant(align_up(bytes, 64));
}

/// Row-major strides of a shape.
inline void dense_strides(std::span<const i64> dims, i64* stride) {
  i64 s = 1;
  for (std::size_t d = dims.size(); d-- > 0;) {
    stride[d] = s;
    s *= dims[d];
  }
}

/// Copies a possibly misaligned constant of floats.
inline void read_floats(const constant_view& c, float* out) {
  std::memcpy(out, c.data, idx(c.count()) * 4);
}

/// A state for kernels that decode nothing.
struct empty_state {
  const simd_table* simd = nullptr;
};
inline result<kernel_state> prepare_empty(const prepare_args& args) {
  return own(new (std::nothrow) empty_state{&simd_of(args.simd)});
}

/// An element of 16 bytes: strings and complex doubles.
struct two_words {
  std::uint64_t first = 0, second = 0;
  two_words() = default;
  explicit two_words(int) {}
};

/// Calls f for a type by its size: for kernels that only move data.
template <class F>
errc with_size(dtype type, F&& f) {
  switch (bytes_of(type)) {
    case 1: return f.template operator()<std::uint8_t>();
    case 2: return f.template operator()<std::uint16_t>();
    case 4: return f.template operator()<std::uint32_t>();
    case 8: return f.template operator()<std::uint64_t>();
    case 16: return f.template operator()<two_words>();
    default: return errc::unsupported;
  }
}
inline bool movable(dtype type) {
  const unsigned bits = bits_of(type);
  return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128;
}

}  // namespace sod2::kernel_detail
