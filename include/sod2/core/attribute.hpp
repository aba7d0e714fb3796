// Attributes of operators as an operator sees them: a small view over whatever the graph stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <sod2/core/tensor_view.hpp>

namespace sod2 {

enum class attribute_kind : std::uint8_t {
  none,
  integer,
  real,
  string,
  integers,
  reals,
  strings,
  tensor,
  graph,  // `integer` holds the index of the scope
};

/// The value of one attribute; `kind == none` when it is not set.
struct attribute_view {
  attribute_kind kind = attribute_kind::none;
  std::int64_t integer = 0;
  double real = 0.0;
  std::string_view string{};
  std::span<const std::int64_t> integers{};
  std::span<const float> reals{};
  std::span<const std::string> strings{};
  constant_view tensor{};

  constexpr explicit operator bool() const { return kind != attribute_kind::none; }
};

/// Attributes of one node by name, type-erased so that operators never see a graph type.
struct attribute_source {
  const void* graph = nullptr;
  std::uint64_t node = 0;  // the graph's own handle
  attribute_view (*find)(const void* graph, std::uint64_t node, std::string_view name) = nullptr;
  /// Name of the i-th attribute that is set, empty behind the last one; null when the graph cannot
  /// list them.
  std::string_view (*name_at)(const void* graph, std::uint64_t node, std::size_t i) = nullptr;

  attribute_view operator()(std::string_view name) const {
    return find != nullptr ? find(graph, node, name) : attribute_view{};
  }
  std::int64_t integer(std::string_view name, std::int64_t fallback) const {
    const attribute_view a = (*this)(name);
    return a.kind == attribute_kind::integer ? a.integer : fallback;
  }
  double real(std::string_view name, double fallback) const {
    const attribute_view a = (*this)(name);
    return a.kind == attribute_kind::real ? a.real : fallback;
  }
  std::string_view string(std::string_view name, std::string_view fallback) const {
    const attribute_view a = (*this)(name);
    return a.kind == attribute_kind::string ? a.string : fallback;
  }
  std::span<const std::int64_t> integers(std::string_view name) const {
    const attribute_view a = (*this)(name);
    return a.kind == attribute_kind::integers ? a.integers : std::span<const std::int64_t>{};
  }
};

}  // namespace sod2
