// TensorProto and SparseTensorProto: every encoding of elements, checked before anything is
// allocated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sod2/core/checked.hpp>
#include <sod2/core/dtype.hpp>
#include <sod2/core/status.hpp>
#include <sod2/graph/graph.hpp>
#include <sod2/onnx/detail/wire.hpp>
#include <sod2/onnx/file.hpp>
#include <sod2/onnx/fwd.hpp>

namespace sod2::onnx {

/// A tensor of a `.pb` file. Elements of `raw_data` are not copied: they point into the bytes read.
struct named_tensor {
  std::string name;
  constant_tensor tensor;
};

namespace detail {

inline constexpr std::int64_t max_dense_bytes = std::int64_t{1} << 31;

inline dtype dtype_from(std::int64_t number) {
  if (number <= 0 || number > static_cast<std::int64_t>(dtype::i4))
    refuse(errc::unsupported, "element type " + std::to_string(number) + " is not supported");
  return static_cast<dtype>(number);
}

/// Number of elements; refuses negative dims and products beyond 64 bits.
inline std::int64_t count_of(const std::vector<std::int64_t>& dims) {
  std::int64_t n = 1;
  for (std::int64_t d : dims) {
    if (d < 0) refuse(errc::malformed_model, "tensor has a negative dim");
    if (!checked_mul(n, d, n)) refuse(errc::malformed_model, "tensor is larger than 64 bits count");
  }
  return n;
}
inline std::int64_t checked_bytes(dtype type, std::int64_t count) {
  std::int64_t bits = 0;
  if (!checked_mul(count, static_cast<std::int64_t>(bits_of(type)), bits))
    refuse(errc::malformed_model, "tensor is larger than 64 bits count");
  return bytes_of(type, count);
}

/// Reads a repeated int64 field, packed or not, into `out`.
inline bool read_integers(pbf_reader& r, pbf_tag_type f, std::vector<std::int64_t>& out) {
  if (r.tag() != f) return false;
  if (r.wire_type() == pbf_wire_type::length_delimited) {
    const auto range = r.get_packed_int64();
    for (auto it = range.begin(); it != range.end(); ++it) out.push_back(*it);
    return true;
  }
  if (r.wire_type() != pbf_wire_type::varint) return false;
  out.push_back(r.get_int64());
  return true;
}

/// The external files of one model: opened once, kept as long as the model.
class external_files {
 public:
  external_files() = default;
  external_files(std::filesystem::path model_file, bool map)
      : model_file_(std::move(model_file)), map_(map) {}

  /// `location` is relative to the model's folder and may not leave it. Links may point to where
  /// the model file itself is (download caches keep both as links side by side).
  std::string_view open(const std::string& location) {
    namespace fs = std::filesystem;
    if (model_file_.empty())
      refuse(errc::unsupported, "external data needs a model that is read from a file");
    if (const auto known = opened_.find(location); known != opened_.end())
      return files_[known->second].view();
    const fs::path relative = fs::path(location).lexically_normal();
    if (location.empty() || location.find('\0') != std::string::npos || relative.is_absolute() ||
        relative.has_root_path() || relative.empty() || *relative.begin() == "..")
      refuse(errc::malformed_model,
             "external data at '" + location + "' is outside of the model's folder");
    const fs::path folder = model_file_.parent_path();
    const fs::path path = (folder.empty() ? fs::path(".") : folder) / relative;
    std::error_code code;
    const fs::path real = fs::canonical(path, code);
    if (code) refuse(errc::io, "external data '" + location + "' cannot be opened");
    const fs::path home = fs::canonical(folder.empty() ? fs::path(".") : folder, code);
    const fs::path beside = fs::canonical(model_file_, code).parent_path();
    if (code || (!inside(real, home) && !inside(real, beside)))
      refuse(errc::malformed_model,
             "external data at '" + location + "' is outside of the model's folder");
    auto file = file_bytes::open(real, map_);
    if (!file)
      refuse(errc::io, "external data '" + location + "': " + std::string(file.error().message()));
    opened_.emplace(location, files_.size());
    files_.push_back(*std::move(file));
    return files_.back().view();
  }

 private:
  static bool inside(const std::filesystem::path& file, const std::filesystem::path& folder) {
    auto f = file.begin();
    for (auto d = folder.begin(); d != folder.end(); ++d, ++f)
      if (f == file.end() || *f != *d) return false;
    return f != file.end();
  }
  std::filesystem::path model_file_;
  bool map_ = true;
  std::unordered_map<std::string, std::size_t> opened_;
  std::vector<file_bytes> files_;
};

/// Decodes one TensorProto.
class tensor_reader {
 public:
  explicit tensor_reader(external_files& files) : files_(files) {}

  named_tensor read(std::string_view bytes) {
    fields f;
    for (pbf_reader r = message_of(bytes); r.next();) {
      if (read_integers(r, field::tensor_dims, f.dims)) continue;
      switch (r.tag_and_type()) {
        case varint_field(field::tensor_data_type): f.type = r.get_int64(); break;
        case bytes_field(field::tensor_segment): f.segmented = true, r.skip(); break;
        case bytes_field(field::tensor_name): f.name = text_of(r.get_view()); break;
        case bytes_field(field::tensor_raw_data):
          f.raw = text_of(r.get_view());
          f.has_raw = true;
          break;
        case bytes_field(field::tensor_external_data): read_entry(text_of(r.get_view()), f); break;
        case varint_field(field::tensor_data_location): f.external = r.get_int64() == 1; break;
        default:  // typed data is read when type and dims are known, whatever their order
          f.typed |= is_typed_data(r.tag());
          r.skip();
      }
    }
    try {
      return decode(bytes, f);
    } catch (refusal& r) {
      if (!f.name.empty()) refuse(std::move(r.error).at_tensor(f.name));
      throw;
    }
  }

  /// Decodes one SparseTensorProto into a dense tensor.
  named_tensor read_sparse(std::string_view bytes) {
    named_tensor values, indices;
    std::vector<std::int64_t> dims;
    for (pbf_reader r = message_of(bytes); r.next();) {
      if (read_integers(r, field::sparse_dims, dims)) continue;
      switch (r.tag_and_type()) {
        case bytes_field(field::sparse_values): values = read(text_of(r.get_view())); break;
        case bytes_field(field::sparse_indices): indices = read(text_of(r.get_view())); break;
        default: r.skip();
      }
    }
    const auto bad = [&](const char* what) {
      refuse(error(errc::malformed_model, std::string("sparse tensor ") + what)
                 .at_tensor(values.name));
    };
    const constant_tensor& v = values.tensor;
    const constant_tensor& at = indices.tensor;
    if (v.type == dtype::undefined || v.dims.size() != 1) bad("has no list of values");
    if (v.type == dtype::string || bits_of(v.type) < 8) bad("has an unsupported element type");
    const std::int64_t count = v.dims[0];
    const auto rank = static_cast<std::int64_t>(dims.size());
    const bool linear = at.dims.size() == 1;
    if (at.type != dtype::i64 && count > 0) bad("has indices that are not int64");
    if (count > 0 && !(linear && at.dims[0] == count) &&
        !(at.dims.size() == 2 && at.dims[0] == count && at.dims[1] == rank))
      bad("has a wrong number of indices");
    const std::int64_t total = checked_bytes(v.type, count_of(dims));
    if (total > max_dense_bytes) bad("is too large to be made dense");
    const std::size_t size = bytes_of(v.type);
    named_tensor dense;
    dense.name = values.name;
    dense.tensor.type = v.type;
    dense.tensor.owned.resize(static_cast<std::size_t>(total));
    const std::int64_t elements = count_of(dims);
    for (std::int64_t k = 0; k < count; ++k) {
      std::int64_t position = 0;
      const auto index = [&](std::int64_t i) {
        std::int64_t x = 0;
        std::memcpy(&x, at.data + 8 * i, 8);
        return x;
      };
      if (linear) {
        position = index(k);
      } else {
        for (std::int64_t a = 0; a < rank; ++a) {
          const std::int64_t x = index(k * rank + a);
          const std::int64_t d = dims[static_cast<std::size_t>(a)];
          if (x < 0 || x >= d) bad("has an index out of range");
          position = position * d + x;
        }
      }
      if (position < 0 || position >= elements) bad("has an index out of range");
      std::memcpy(dense.tensor.owned.data() + static_cast<std::size_t>(position) * size,
                  v.data + static_cast<std::size_t>(k) * size, size);
    }
    dense.tensor.dims = std::move(dims);
    dense.tensor.data = dense.tensor.owned.data();
    dense.tensor.size = dense.tensor.owned.size();
    return dense;
  }

 private:
  struct fields {
    std::vector<std::int64_t> dims;
    std::int64_t type = 0;
    std::string_view name, raw;
    bool has_raw = false, typed = false, external = false, segmented = false;
    std::string location, offset, length;
  };

  static bool is_typed_data(pbf_tag_type tag) {
    switch (tag) {
      case field::tensor_float_data:
      case field::tensor_int32_data:
      case field::tensor_string_data:
      case field::tensor_int64_data:
      case field::tensor_double_data:
      case field::tensor_uint64_data: return true;
      default: return false;
    }
  }
  static void read_entry(std::string_view bytes, fields& f) {
    std::string_view key, value;
    for (pbf_reader r = message_of(bytes); r.next();) {
      switch (r.tag_and_type()) {
        case bytes_field(field::entry_key): key = text_of(r.get_view()); break;
        case bytes_field(field::entry_value): value = text_of(r.get_view()); break;
        default: r.skip();
      }
    }
    if (key == "location") f.location = value;
    if (key == "offset") f.offset = value;
    if (key == "length") f.length = value;
  }
  static std::int64_t number(const std::string& text, const char* what) {
    std::int64_t n = 0;
    bool good = !text.empty();
    for (char c : text)
      good = good && c >= '0' && c <= '9' && checked_mul(n, 10, n) && checked_add(n, c - '0', n);
    if (!good) refuse(errc::malformed_model, std::string("external data has a bad ") + what);
    return n;
  }

  named_tensor decode(std::string_view bytes, fields& f) {
    if (f.segmented) refuse(errc::unsupported, "tensor segments are not supported");
    named_tensor out;
    out.name = f.name;
    constant_tensor& t = out.tensor;
    t.type = dtype_from(f.type);
    const std::int64_t count = count_of(f.dims);
    const std::int64_t size = checked_bytes(t.type, count);
    if (f.external) {
      if (t.type == dtype::string) refuse(errc::malformed_model, "external data of strings");
      const std::string_view file = files_.open(f.location);
      const std::int64_t have = static_cast<std::int64_t>(file.size());
      const std::int64_t from = f.offset.empty() ? 0 : number(f.offset, "offset");
      const std::int64_t length = f.length.empty() ? size : number(f.length, "length");
      if (from > have || length > have - from)
        refuse(
            error(errc::malformed_model, "external data ends beyond its file")
                .between("offset " + std::to_string(from) + " + length " + std::to_string(length),
                         "file of " + std::to_string(have) + " bytes"));
      if (length != size) wrong_size(size, length, "bytes");
      f.raw = file.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(length));
      point_to(t, f.raw);
    } else if (t.type == dtype::string) {
      read_strings(bytes, t, count);
    } else if (f.has_raw && !(f.raw.empty() && f.typed)) {
      const auto have = static_cast<std::int64_t>(f.raw.size());
      if (have != size) wrong_size(size, have, "bytes");
      point_to(t, f.raw);
    } else {
      read_typed(bytes, t, static_cast<std::size_t>(size));
    }
    t.dims = std::move(f.dims);
    return out;
  }
  [[noreturn]] static void wrong_size(std::int64_t expected, std::int64_t have, const char* unit) {
    refuse(error(errc::malformed_model, "dims and data of the tensor do not agree")
               .between(std::to_string(expected) + " " + unit, std::to_string(have) + " " + unit));
  }
  static void point_to(constant_tensor& t, std::string_view raw) {
    t.data = reinterpret_cast<const std::byte*>(raw.data());
    t.size = raw.size();
  }

  static void read_strings(std::string_view bytes, constant_tensor& t, std::int64_t count) {
    std::vector<std::string> strings;
    for (pbf_reader r = message_of(bytes); r.next();) {
      if (r.tag_and_type() == bytes_field(field::tensor_string_data))
        strings.emplace_back(text_of(r.get_view()));
      else
        r.skip();
    }
    if (static_cast<std::int64_t>(strings.size()) != count)
      wrong_size(count, static_cast<std::int64_t>(strings.size()), "strings");
    t = constant_tensor::of_strings({}, std::move(strings));
  }

  /// Appends numbers as they come and stops at the first one too many: the memory taken is bounded
  /// by the encoded data, not by what the dims claim.
  struct sink {
    std::vector<std::byte>& out;
    std::size_t limit;
    template <class T>
    void operator()(T value) {
      if (out.size() + sizeof(T) > limit)
        wrong_size(static_cast<std::int64_t>(limit), static_cast<std::int64_t>(out.size()) + 1,
                   "bytes or more");
      const std::size_t at = out.size();
      out.resize(at + sizeof(T));
      std::memcpy(out.data() + at, &value, sizeof(T));
    }
  };

  static void read_typed(std::string_view bytes, constant_tensor& t, std::size_t size) {
    sink put{t.owned, size};
    const auto integers = [&](pbf_tag_type f, auto store) {
      for (pbf_reader r = message_of(bytes); r.next();) {
        if (r.tag() == f && r.wire_type() == pbf_wire_type::length_delimited) {
          const auto range = r.get_packed_uint64();
          t.owned.reserve(std::min(size, t.owned.size() + range.size() * bytes_of(t.type)));
          for (auto it = range.begin(); it != range.end(); ++it) store(*it);
        } else if (r.tag() == f && r.wire_type() == pbf_wire_type::varint) {
          store(r.get_uint64());
        } else {
          r.skip();
        }
      }
    };
    const auto reals = [&] {
      for (pbf_reader r = message_of(bytes); r.next();) {
        if (r.tag_and_type() == bytes_field(field::tensor_float_data)) {
          const auto range = r.get_packed_float();
          t.owned.reserve(std::min(size, t.owned.size() + 4 * range.size()));
          for (float x : range) put(x);
        } else if (r.tag_and_type() == fixed32_field(field::tensor_float_data)) {
          put(r.get_float());
        } else {
          r.skip();
        }
      }
    };
    const auto doubles = [&] {
      for (pbf_reader r = message_of(bytes); r.next();) {
        if (r.tag_and_type() == bytes_field(field::tensor_double_data)) {
          const auto range = r.get_packed_double();
          t.owned.reserve(std::min(size, t.owned.size() + 8 * range.size()));
          for (double x : range) put(x);
        } else if (r.tag_and_type() == fixed64_field(field::tensor_double_data)) {
          put(r.get_double());
        } else {
          r.skip();
        }
      }
    };
    switch (t.type) {
      case dtype::f32:
      case dtype::c64: reals(); break;
      case dtype::f64:
      case dtype::c128: doubles(); break;
      case dtype::i64: integers(field::tensor_int64_data, [&](std::uint64_t x) { put(x); }); break;
      case dtype::u64: integers(field::tensor_uint64_data, [&](std::uint64_t x) { put(x); }); break;
      case dtype::u32:
        integers(field::tensor_uint64_data,
                 [&](std::uint64_t x) { put(static_cast<std::uint32_t>(x)); });
        break;
      case dtype::i32:
        integers(field::tensor_int32_data,
                 [&](std::uint64_t x) { put(static_cast<std::uint32_t>(x)); });
        break;
      case dtype::i16:
      case dtype::u16:
      case dtype::f16:
      case dtype::bf16:  // 16-bit floats are stored as their bits
        integers(field::tensor_int32_data,
                 [&](std::uint64_t x) { put(static_cast<std::uint16_t>(x)); });
        break;
      case dtype::boolean:
        integers(field::tensor_int32_data,
                 [&](std::uint64_t x) { put(static_cast<std::uint8_t>(x != 0)); });
        break;
      default:  // all of 8 bits, and 4-bit pairs
        integers(field::tensor_int32_data,
                 [&](std::uint64_t x) { put(static_cast<std::uint8_t>(x)); });
    }
    if (t.owned.size() != size)
      wrong_size(static_cast<std::int64_t>(size), static_cast<std::int64_t>(t.owned.size()),
                 "bytes");
    t.data = t.owned.data();
    t.size = size;
  }

  external_files& files_;
};

}  // namespace detail

/// Decodes a TensorProto, as `.pb` test data hold it. `bytes` must outlive the tensor. Errors:
/// errc::malformed_model, unsupported (external data included).
inline result<named_tensor> read_tensor(std::string_view bytes) {
  return detail::guarded<named_tensor>([&] {
    detail::external_files none;
    return detail::tensor_reader(none).read(bytes);
  });
}

/// Elements of a SequenceProto or OptionalProto (which of them, its type says).
struct value_list {
  bool has_value = true;  // false: an optional without one
  std::vector<named_tensor> elements;
};
/// Decodes a value of kind sequence, optional or optional_sequence; see read_tensor.
inline result<value_list> read_list(std::string_view bytes, fact_kind kind) {
  return detail::guarded<value_list>([&] {
    using namespace detail;
    external_files none;
    tensor_reader reader(none);
    value_list out;
    const auto read_sequence = [&](std::string_view sequence) {
      for (pbf_reader r = message_of(sequence); r.next();) {
        if (r.tag_and_type() == bytes_field(field::sequence_tensors))
          out.elements.push_back(reader.read(text_of(r.get_view())));
        else
          r.skip();
      }
    };
    if (kind == fact_kind::sequence) {
      read_sequence(bytes);
      return out;
    }
    out.has_value = false;
    for (pbf_reader r = message_of(bytes); r.next();) {
      if (r.tag_and_type() == bytes_field(field::optional_tensor)) {
        out.elements.push_back(reader.read(text_of(r.get_view())));
        out.has_value = true;
      } else if (r.tag_and_type() == bytes_field(field::optional_sequence)) {
        read_sequence(text_of(r.get_view()));
        out.has_value = true;
      } else {
        r.skip();
      }
    }
    return out;
  });
}

}  // namespace sod2::onnx
