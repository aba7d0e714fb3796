// Conversion of 16-bit floating point in software, exact in both directions.
#pragma once

#include <bit>
#include <cstdint>

namespace sod2::kernel_detail {

/// Storage-only types: arithmetic happens in float.
struct half {
  std::uint16_t bits;
};
struct brain {
  std::uint16_t bits;
};

inline float to_float(half h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000U) << 16;
  const std::uint32_t rest = h.bits & 0x7fffU;
  if (rest >= 0x7c00U)  // inf, NaN
    return std::bit_cast<float>(sign | 0x7f800000U | (rest & 0x3ffU) << 13);
  if (rest >= 0x400U) return std::bit_cast<float>(sign | ((rest << 13) + (112U << 23)));
  // Subnormal: value = rest * 2^-24.
  const float v = static_cast<float>(rest) * 5.9604644775390625e-8f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(v));
}

/// Round to nearest, ties to even; overflow gives inf.
inline half to_half(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t rest = bits & 0x7fffffffU;
  if (rest > 0x7f800000U) return {static_cast<std::uint16_t>(sign | 0x7e00U)};
  if (rest >= 0x47800000U) return {static_cast<std::uint16_t>(sign | 0x7c00U)};
  if (rest < 0x38800000U) {  // subnormal or zero: adding 0.5 rounds at the right bit
    const float shifted = std::bit_cast<float>(rest) + 0.5f;
    return {
        static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U))};
  }
  const std::uint32_t odd = rest >> 13 & 1U;
  return {static_cast<std::uint16_t>(sign | ((rest - (112U << 23) + 0xfffU + odd) >> 13))};
}

inline float to_float(brain b) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16);
}
inline brain to_brain(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>(bits >> 16 | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16)};
}

}  // namespace sod2::kernel_detail
