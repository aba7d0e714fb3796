// Values in files: `.npy` (NumPy format 1 to 3) and `.pb` (ONNX TensorProto, SequenceProto,
// OptionalProto); random ones; and how results are compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sod2/core/dtype.hpp>
#include <sod2/core/tensor_view.hpp>
#include <sod2/shape/fact.hpp>

#include "report.hpp"

namespace tool {

/// A tensor that owns its elements, 64-byte aligned, or a list of such: a sequence or an optional.
/// Move it, don't copy it.
class host_tensor {
 public:
  host_tensor() = default;
  host_tensor(sod2::dtype type, std::vector<std::int64_t> dims);
  explicit host_tensor(const sod2::tensor_view& t);  // copies the elements
  static host_tensor of_list(sod2::dtype type, std::vector<host_tensor> elements);
  static host_tensor of_strings(std::vector<std::int64_t> dims, std::vector<std::string> elements);

  sod2::dtype type() const { return type_; }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  /// The same bytes under a type as wide.
  void reinterpret(sod2::dtype type) { type_ = type; }
  std::int64_t count() const;
  std::size_t bytes() const { return bytes_; }
  void* data() const;
  std::span<const std::string> strings() const { return strings_; }
  sod2::tensor_view view() const {
    return {data(), dims_.data(), static_cast<std::uint32_t>(dims_.size()), type_};
  }

 private:
  struct release {
    void operator()(std::byte* p) const;
  };
  sod2::dtype type_ = sod2::dtype::undefined;
  std::vector<std::int64_t> dims_;
  std::size_t bytes_ = 0;
  std::unique_ptr<std::byte[], release> storage_;
  std::vector<std::string> strings_;
  std::vector<std::string_view> texts_;  // of the strings
  std::vector<host_tensor> elements_;
  std::vector<sod2::tensor_view> views_;  // of the elements
};

/// Reads `.npy` or, of the kind that the model says, `.pb`, by the name's ending. Fails with the
/// file's name.
host_tensor read_value_file(const std::string& path, sod2::fact_kind kind);
std::string to_npy(const sod2::tensor_view& t);

/// Uniform in [0, 1) for floats, in [0, below) for integers; the same for the same seed everywhere.
host_tensor random_tensor(sod2::dtype type, std::vector<std::int64_t> dims, std::uint64_t seed,
                          std::int64_t below);

std::string sha256_of(const sod2::tensor_view& t);

/// `(2, 3)`
std::string shape_text(std::span<const std::int64_t> dims);
json shape_json(std::span<const std::int64_t> dims);

struct tolerance {
  double relative = 1e-3, absolute = 1e-4;
};
/// Empty when equal within the tolerance (floats; NaN equals NaN), else what differs first.
std::string difference(const sod2::tensor_view& expected, const sod2::tensor_view& got,
                       tolerance t);

}  // namespace tool
