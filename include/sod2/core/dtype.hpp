// Element types, numbered as in ONNX TensorProto.DataType.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <sod2/core/checked.hpp>

namespace sod2 {

enum class dtype : std::uint8_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  c64 = 14,
  c128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  // Not element types: values that hold tensors, see tensor_view.
  sequence = 64,
  optional = 65,
};

constexpr bool is_container(dtype t) { return t == dtype::sequence || t == dtype::optional; }

/// Storage bits of one element; a string element is a std::string object.
constexpr unsigned bits_of(dtype t) {
  switch (t) {
    case dtype::undefined: return 0;
    case dtype::u4:
    case dtype::i4: return 4;
    case dtype::u8:
    case dtype::i8:
    case dtype::boolean:
    case dtype::f8e4m3fn:
    case dtype::f8e4m3fnuz:
    case dtype::f8e5m2:
    case dtype::f8e5m2fnuz: return 8;
    case dtype::u16:
    case dtype::i16:
    case dtype::f16:
    case dtype::bf16: return 16;
    case dtype::f32:
    case dtype::i32:
    case dtype::u32: return 32;
    case dtype::i64:
    case dtype::u64:
    case dtype::f64:
    case dtype::c64: return 64;
    case dtype::c128: return 128;
    case dtype::string: return 8 * sizeof(std::string_view);
    case dtype::sequence:
    case dtype::optional: return 0;
  }
  return 0;
}
constexpr std::size_t bytes_of(dtype t) { return bits_of(t) / 8; }
/// Bytes of `count` elements, 4-bit types packed two to a byte.
constexpr std::int64_t bytes_of(dtype t, std::int64_t count) {
  return t == dtype::u4 || t == dtype::i4 ? ceil_div(count, 2)
                                          : count * static_cast<std::int64_t>(bytes_of(t));
}

constexpr bool is_float(dtype t) {
  return t == dtype::f32 || t == dtype::f64 || t == dtype::f16 || t == dtype::bf16;
}
constexpr bool is_integer(dtype t) {
  switch (t) {
    case dtype::u8:
    case dtype::i8:
    case dtype::u16:
    case dtype::i16:
    case dtype::i32:
    case dtype::i64:
    case dtype::u32:
    case dtype::u64:
    case dtype::u4:
    case dtype::i4: return true;
    default: return false;
  }
}

constexpr std::string_view name_of(dtype t) {
  constexpr std::string_view names[] = {
      "undefined",      "float32",    "uint8",          "int8",       "uint16",   "int16",
      "int32",          "int64",      "string",         "bool",       "float16",  "float64",
      "uint32",         "uint64",     "complex64",      "complex128", "bfloat16", "float8e4m3fn",
      "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",      "int4"};
  if (t == dtype::sequence) return "sequence";
  if (t == dtype::optional) return "optional";
  const auto i = static_cast<std::size_t>(t);
  return i < sizeof(names) / sizeof(names[0]) ? names[i] : names[0];
}

template <class T>
inline constexpr dtype dtype_of = dtype::undefined;
template <>
inline constexpr dtype dtype_of<float> = dtype::f32;
template <>
inline constexpr dtype dtype_of<double> = dtype::f64;
template <>
inline constexpr dtype dtype_of<std::int8_t> = dtype::i8;
template <>
inline constexpr dtype dtype_of<std::uint8_t> = dtype::u8;
template <>
inline constexpr dtype dtype_of<std::int16_t> = dtype::i16;
template <>
inline constexpr dtype dtype_of<std::uint16_t> = dtype::u16;
template <>
inline constexpr dtype dtype_of<std::int32_t> = dtype::i32;
template <>
inline constexpr dtype dtype_of<std::uint32_t> = dtype::u32;
template <>
inline constexpr dtype dtype_of<std::int64_t> = dtype::i64;
template <>
inline constexpr dtype dtype_of<std::uint64_t> = dtype::u64;
template <>
inline constexpr dtype dtype_of<bool> = dtype::boolean;

}  // namespace sod2
