// Inputs for the example networks, made up from a seed: images that differ in colour and contrast,
// tokens, points, policies. What an input means is told by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <sod2/core/tensor_view.hpp>
#include <sod2/graph/graph.hpp>
#include <sod2/rdp/analysis.hpp>

namespace models {

/// A tensor that owns its elements.
struct array {
  sod2::dtype type = sod2::dtype::undefined;
  std::vector<std::int64_t> dims;
  std::vector<std::uint64_t> storage;  // aligned for any element

  array(sod2::dtype t, std::vector<std::int64_t> d) : type(t), dims(std::move(d)) {
    storage.resize(static_cast<std::size_t>(count()) * sod2::bytes_of(type) / 8 + 1);
  }
  std::int64_t count() const {
    std::int64_t n = 1;
    for (const std::int64_t d : dims) n *= d;
    return n;
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(storage.data());
  }
  sod2::tensor_view view() const {
    return {const_cast<std::uint64_t*>(storage.data()), dims.data(),
            static_cast<std::uint32_t>(dims.size()), type};
  }
};

inline std::vector<sod2::tensor_view> views(const std::vector<array>& arrays) {
  std::vector<sod2::tensor_view> out;
  for (const array& a : arrays) out.push_back(a.view());
  return out;
}

/// Numbers that are the same everywhere for the same seed.
class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) { bits(); }
  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n));
  }

 private:
  std::uint64_t state_;
};

/// Small sizes that every example accepts, in this many different combinations.
inline constexpr int size_count = 5;

/// What symbol `name` is in combination k: at most 64, within what the model assumes of it.
inline std::int64_t size_at(std::string_view name, int k, const sod2::analysis_options& facts) {
  constexpr struct {
    std::string_view name;
    std::int64_t sizes[size_count];
  } table[] = {{"B", {1, 2, 1, 3, 1}},     {"H", {64, 32, 40, 20, 30}}, {"W", {64, 50, 24, 17, 57}},
               {"T", {64, 7, 33, 50, 21}}, {"L", {64, 1, 17, 33, 48}},  {"P", {1, 5, 2, 8, 3}}};
  std::int64_t size = 24 + 10 * k;
  for (const auto& row : table)
    if (row.name == name) size = row.sizes[k];
  for (const sod2::symbol_declaration& s : facts.symbols)
    if (s.name == name && s.facts.step > 1)
      size = (size + s.facts.step - 1) / s.facts.step * s.facts.step;
  return size;
}

/// One array for each input of the graph, at combination k of sizes.
inline std::vector<array> inputs_at(const sod2::graph& g, const sod2::analysis_options& facts,
                                    int k, std::uint64_t seed = 1) {
  std::vector<array> out;
  dice d(seed);
  for (const sod2::value_id v : g.scopes()[0].inputs) {
    const sod2::graph::value& value = g[v];
    std::vector<std::int64_t> dims;
    for (const sod2::dim_spec& s : value.dims)
      dims.push_back(s.size >= 0 ? s.size : size_at(s.symbol, k, facts));
    array a(value.type, dims);
    const std::int64_t count = a.count();
    if (value.type == sod2::dtype::f32 && dims.size() == 4) {
      // Each channel of each image has a level and a contrast of its own.
      const std::int64_t plane = dims[2] * dims[3];
      double level = 0, contrast = 1;
      for (std::int64_t i = 0; i < count; ++i) {
        if (i % plane == 0) {
          level = 3 * d.uniform() - 1.5;
          contrast = 0.5 + 2 * d.uniform();
        }
        a.as<float>()[i] = static_cast<float>(level + contrast * (2 * d.uniform() - 1));
      }
    } else if (value.type == sod2::dtype::f32) {
      const double scale = value.name == "point_coords" ? 64 : 1;  // pixels
      for (std::int64_t i = 0; i < count; ++i)
        a.as<float>()[i] = static_cast<float>(scale * d.uniform());
      if (value.name == "has_mask_input") a.as<float>()[0] = static_cast<float>(k % 2);
    } else if (value.type == sod2::dtype::boolean) {
      const double open = d.uniform();  // policies differ in how much they keep
      for (std::int64_t i = 0; i < count; ++i) a.as<std::uint8_t>()[i] = d.uniform() < open ? 1 : 0;
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t& x = a.as<std::int64_t>()[i];
        if (value.name == "attention_mask")
          x = i % dims.back() == 0 || d.below(4) > 0 ? 1 : 0;
        else if (value.name == "point_labels")
          x = d.below(5) - 1;
        else if (value.name == "orig_im_size")
          x = size_at(value.name + "[" + std::to_string(i) + "]", k, facts) - 5 * i;
        else
          x = d.below(100);  // tokens
      }
    }
    out.push_back(std::move(a));
  }
  return out;
}

}  // namespace models
