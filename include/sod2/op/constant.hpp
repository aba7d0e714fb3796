// From constants in memory (initialisers, attributes) to facts: type, shape, and the elements of
// small ones.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <sod2/core/tensor_view.hpp>
#include <sod2/expr/domain.hpp>
#include <sod2/shape/fact.hpp>

namespace sod2 {

namespace detail {
template <class T>
T load_element(const std::byte* at) {
  T v{};
  std::memcpy(&v, at, sizeof(T));
  return v;
}
/// Element i of an integer or boolean constant.
inline bool integer_element(const constant_view& t, std::int64_t i, std::int64_t& out) {
  const std::byte* at = t.data + static_cast<std::size_t>(i) * bytes_of(t.type);
  switch (t.type) {
    case dtype::boolean: out = load_element<std::uint8_t>(at) != 0 ? 1 : 0; return true;
    case dtype::u8: out = load_element<std::uint8_t>(at); return true;
    case dtype::i8: out = load_element<std::int8_t>(at); return true;
    case dtype::u16: out = load_element<std::uint16_t>(at); return true;
    case dtype::i16: out = load_element<std::int16_t>(at); return true;
    case dtype::u32: out = load_element<std::uint32_t>(at); return true;
    case dtype::i32: out = load_element<std::int32_t>(at); return true;
    case dtype::i64: out = load_element<std::int64_t>(at); return true;
    case dtype::u64: {
      const std::uint64_t v = load_element<std::uint64_t>(at);
      out = static_cast<std::int64_t>(v);
      return v <= static_cast<std::uint64_t>(INT64_MAX);
    }
    default: return false;
  }
}
inline bool real_element(const constant_view& t, std::int64_t i, double& out) {
  const std::byte* at = t.data + static_cast<std::size_t>(i) * bytes_of(t.type);
  if (t.type == dtype::f32) {
    out = static_cast<double>(load_element<float>(at));
    return true;
  }
  if (t.type == dtype::f64) {
    out = load_element<double>(at);
    return true;
  }
  return false;
}
}  // namespace detail

/// Fills a fact from a constant. Floating-point elements are `real` expressions in the symbolic
/// domain and the bits of a double over integers; intervals do not track them.
template <class Domain>
void read_constant(Domain& domain, const constant_view& t,
                   basic_fact<typename Domain::value_type>& out) {
  out.kind = fact_kind::tensor;
  out.type = t.type;
  out.rank = rank_state::known;
  out.has_value = false;
  out.dims.clear();
  out.elements.clear();
  for (std::int64_t d : t.dims) out.dims.push_back(domain.constant(d));
  const std::int64_t count = t.count();
  if (count < 0 || count > static_cast<std::int64_t>(max_tracked_elements)) return;
  const bool integers = is_integer(t.type) || t.type == dtype::boolean;
  if (bits_of(t.type) < 8 || (count > 0 && t.data == nullptr) ||
      t.bytes < static_cast<std::size_t>(bytes_of(t.type, count)))
    return;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t k = 0;
    double r = 0.0;
    if (integers && detail::integer_element(t, i, k)) {
      out.elements.push_back(domain.constant(k));
      continue;
    }
    if constexpr (requires { domain.context(); }) {
      if (detail::real_element(t, i, r)) {
        out.elements.push_back(domain.context().real_literal(r, t.type == dtype::f64));
        continue;
      }
    } else if constexpr (std::is_same_v<typename Domain::value_type, std::int64_t>) {
      if (detail::real_element(t, i, r)) {
        out.elements.push_back(std::bit_cast<std::int64_t>(r));
        continue;
      }
    }
    out.elements.clear();
    return;
  }
  out.has_value = integers || t.type == dtype::f32 || t.type == dtype::f64;
}

}  // namespace sod2
