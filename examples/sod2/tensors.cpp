#include "tensors.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <new>

#include <sod2/core/checked.hpp>
#include <sod2/onnx.hpp>

#include "sha256.hpp"

namespace tool {

using sod2::dtype;

void host_tensor::release::operator()(std::byte* p) const {
  ::operator delete(p, std::align_val_t(64));
}
host_tensor::host_tensor(dtype type, std::vector<std::int64_t> dims)
    : type_(type), dims_(std::move(dims)) {
  std::int64_t n = 1, bytes = 0;
  bool fits = true;
  for (std::int64_t d : dims_) fits = fits && d >= 0 && sod2::checked_mul(n, d, n);
  fits = fits && sod2::checked_mul(n, static_cast<std::int64_t>(sod2::bits_of(type)), bytes);
  if (!fits) fail(sod2::errc::overflow, "a tensor of shape " + shape_text(dims_) + " is too large");
  if (type == dtype::string) {
    *this = of_strings(std::move(dims_), std::vector<std::string>(static_cast<std::size_t>(n)));
    return;
  }
  bytes_ = static_cast<std::size_t>(sod2::bytes_of(type, n));
  void* p = ::operator new(bytes_ == 0 ? 1 : bytes_, std::align_val_t(64), std::nothrow);
  if (p == nullptr)
    fail(sod2::errc::out_of_memory, "no memory for a tensor of shape " + shape_text(dims_));
  storage_.reset(static_cast<std::byte*>(p));
}
host_tensor::host_tensor(const sod2::tensor_view& t)
    : host_tensor(t.type, std::vector<std::int64_t>(t.dims, t.dims + t.rank)) {
  if (sod2::is_container(type_)) {
    std::vector<host_tensor> elements;
    for (std::int64_t k = 0; k < t.count(); ++k) elements.emplace_back(t.item(k));
    *this = of_list(type_, std::move(elements));
    return;
  }
  if (type_ == dtype::string) {
    for (std::size_t k = 0; k < strings_.size(); ++k) strings_[k] = t.as<std::string_view>()[k];
    texts_.assign(strings_.begin(), strings_.end());
  } else if (bytes_ > 0) {
    std::memcpy(storage_.get(), t.data, bytes_);
  }
}
host_tensor host_tensor::of_list(dtype type, std::vector<host_tensor> elements) {
  host_tensor t;
  t.type_ = type;
  t.dims_ = {static_cast<std::int64_t>(elements.size())};
  t.elements_ = std::move(elements);
  for (const host_tensor& e : t.elements_) t.views_.push_back(e.view());
  return t;
}
host_tensor host_tensor::of_strings(std::vector<std::int64_t> dims,
                                    std::vector<std::string> elements) {
  host_tensor t;
  t.type_ = dtype::string;
  t.dims_ = std::move(dims);
  t.strings_ = std::move(elements);
  t.texts_.assign(t.strings_.begin(), t.strings_.end());
  return t;
}
std::int64_t host_tensor::count() const {
  std::int64_t n = 1;
  for (std::int64_t d : dims_) n *= d;
  return n;
}
void* host_tensor::data() const {
  if (type_ == dtype::string) return const_cast<std::string_view*>(texts_.data());
  if (sod2::is_container(type_)) return const_cast<sod2::tensor_view*>(views_.data());
  return storage_.get();
}

// ---- .npy --------------------------------------------------------------------------------------

namespace {
struct npy_type {
  dtype type;
  std::string_view code;  // without the byte order
};
// NumPy has no bfloat16: its bits are written as uint16.
constexpr npy_type npy_types[] = {{dtype::f32, "f4"}, {dtype::f64, "f8"},   {dtype::f16, "f2"},
                                  {dtype::i8, "i1"},  {dtype::i16, "i2"},   {dtype::i32, "i4"},
                                  {dtype::i64, "i8"}, {dtype::u8, "u1"},    {dtype::u16, "u2"},
                                  {dtype::u32, "u4"}, {dtype::u64, "u8"},   {dtype::boolean, "b1"},
                                  {dtype::c64, "c8"}, {dtype::c128, "c16"}, {dtype::bf16, "u2"}};

std::string_view after(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = header.substr(at + key.size());
  while (!rest.empty() && (rest[0] == ' ' || rest[0] == ':')) rest.remove_prefix(1);
  return rest;
}

host_tensor read_npy(std::string_view bytes) {
  const auto bad = [](const char* what) {
    fail(sod2::errc::malformed_model, std::string("not a usable .npy file: ") + what);
  };
  if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY") bad("the magic number is missing");
  const bool long_header = bytes[6] >= 2;
  if (bytes.size() < 12) bad("it is too short");
  std::size_t header_size = 0, start = long_header ? 12 : 10;
  for (std::size_t k = 0; k < (long_header ? 4U : 2U); ++k)
    header_size |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[8 + k])) << (8 * k);
  if (header_size > bytes.size() - start) bad("it is too short");
  const std::string_view header = bytes.substr(start, header_size);
  const std::string_view data = bytes.substr(start + header_size);

  const std::string_view descr = after(header, "'descr'");
  const std::size_t close = descr.find('\'', 1);
  if (descr.size() < 4 || close == std::string_view::npos) bad("its type is missing");
  const std::string_view code = descr.substr(1, close - 1);
  if (code.size() < 3 || code[0] == '>') bad("its type is not supported");
  dtype type = dtype::undefined;
  for (const npy_type& t : npy_types)
    if (type == dtype::undefined && code.substr(1) == t.code) type = t.type;
  if (type == dtype::undefined) bad("its type is not supported");
  const std::string_view order = after(header, "'fortran_order'");
  const bool fortran = order.substr(0, 4) == "True";

  std::string_view shape = after(header, "'shape'");
  if (shape.empty() || shape[0] != '(') bad("its shape is missing");
  std::vector<std::int64_t> dims;
  for (shape.remove_prefix(1); !shape.empty() && shape[0] != ')';) {
    if (shape[0] == ' ' || shape[0] == ',') {
      shape.remove_prefix(1);
      continue;
    }
    std::int64_t d = 0;
    const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), d);
    if (error != std::errc{} || d < 0) bad("its shape is wrong");
    dims.push_back(d);
    shape.remove_prefix(static_cast<std::size_t>(end - shape.data()));
  }
  if (fortran && dims.size() > 1) bad("its elements are in column-major order");
  std::int64_t n = 1, size = 0;
  bool fits = true;
  for (std::int64_t d : dims) fits = fits && sod2::checked_mul(n, d, n);
  if (!fits || !sod2::checked_mul(n, static_cast<std::int64_t>(sod2::bytes_of(type)), size) ||
      static_cast<std::int64_t>(data.size()) != size)
    bad("shape and data do not agree");
  host_tensor t(type, std::move(dims));
  if (!data.empty()) std::memcpy(t.data(), data.data(), data.size());
  return t;
}

host_tensor to_host(sod2::constant_tensor c) {
  if (c.type == dtype::string)
    return host_tensor::of_strings(std::move(c.dims), std::move(c.strings));
  host_tensor t(c.type, std::move(c.dims));
  if (c.size > 0) std::memcpy(t.data(), c.data, c.size);
  return t;
}
host_tensor read_pb(std::string_view bytes, sod2::fact_kind kind) {
  if (!is_container(kind)) return to_host(need(sod2::onnx::read_tensor(bytes)).tensor);
  sod2::onnx::value_list read = need(sod2::onnx::read_list(bytes, kind));
  std::vector<host_tensor> elements;
  for (auto& e : read.elements) elements.push_back(to_host(std::move(e.tensor)));
  if (kind == sod2::fact_kind::optional)
    return host_tensor::of_list(dtype::optional, std::move(elements));
  host_tensor list = host_tensor::of_list(dtype::sequence, std::move(elements));
  if (kind == sod2::fact_kind::sequence) return list;
  std::vector<host_tensor> held;
  if (read.has_value) held.push_back(std::move(list));
  return host_tensor::of_list(dtype::optional, std::move(held));
}
}  // namespace

host_tensor read_value_file(const std::string& path, sod2::fact_kind kind) {
  auto file = sod2::onnx::file_bytes::open(path, false);
  if (!file) fail(std::move(file).error().in_file(path));
  const bool npy = path.size() > 4 && path.compare(path.size() - 4, 4, ".npy") == 0;
  try {
    return npy ? read_npy(file->view()) : read_pb(file->view(), kind);
  } catch (failure& f) {
    f.error = std::move(f.error).in_file(path);
    throw;
  }
}

std::string to_npy(const sod2::tensor_view& t) {
  std::string_view code;
  for (const npy_type& n : npy_types)
    if (n.type == t.type) code = n.code;
  if (code.empty())
    fail(sod2::errc::unsupported,
         "tensors of type " + std::string(name_of(t.type)) + " cannot be written as .npy");
  std::string shape;
  for (std::int64_t d : t.shape()) shape += std::to_string(d) + ", ";
  if (t.rank > 1) shape.resize(shape.size() - 2);  // (2,) but (2, 3)
  if (t.rank == 1) shape.pop_back();
  std::string header = "{'descr': '" + std::string(sod2::bytes_of(t.type) == 1 ? "|" : "<") +
                       std::string(code) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  out.append(static_cast<const char*>(t.data),
             static_cast<std::size_t>(sod2::bytes_of(t.type, t.count())));
  return out;
}

// ---- numbers -----------------------------------------------------------------------------------

namespace {
float from_f16(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000) << 16;
  const std::uint32_t exponent = h >> 10 & 31;
  const std::uint32_t mantissa = h & 1023;
  if (exponent == 0) {
    const float v = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -v : v;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | mantissa << 13);
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}
std::uint16_t to_f16(float v) {  // of [0, 1): truncation is good enough for random numbers
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(v);
  const int exponent = static_cast<int>(bits >> 23 & 255) - 112;
  if (exponent <= 0) return 0;
  return static_cast<std::uint16_t>(static_cast<std::uint32_t>(exponent) << 10 |
                                    (bits >> 13 & 1023));
}
float from_bf16(std::uint16_t h) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16);
}

/// splitmix64
struct generator {
  std::uint64_t state;
  std::uint64_t next() {
    state += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
};

template <class T, class Make>
void fill(host_tensor& t, Make make) {
  T* out = static_cast<T*>(t.data());
  for (std::int64_t k = 0, n = t.count(); k < n; ++k) out[k] = make();
}
}  // namespace

host_tensor random_tensor(dtype type, std::vector<std::int64_t> dims, std::uint64_t seed,
                          std::int64_t below) {
  host_tensor t(type, std::move(dims));
  generator g{seed};
  const auto integer = [&] {
    return static_cast<std::int64_t>(g.next() % static_cast<std::uint64_t>(below < 1 ? 1 : below));
  };
  const auto real = [&] { return static_cast<float>(g.next() >> 40) * 0x1p-24F; };
  switch (type) {
    case dtype::f32: fill<float>(t, real); break;
    case dtype::f64: fill<double>(t, [&] { return g.unit(); }); break;
    case dtype::f16: fill<std::uint16_t>(t, [&] { return to_f16(real()); }); break;
    case dtype::bf16:
      fill<std::uint16_t>(t, [&] {
        return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(real()) >> 16);
      });
      break;
    case dtype::c64:
      fill<std::complex<float>>(t, [&] { return std::complex(real(), 0.0F); });
      break;
    case dtype::c128:
      fill<std::complex<double>>(t, [&] { return std::complex(g.unit(), 0.0); });
      break;
    case dtype::i8:
    case dtype::u8:
      fill<std::uint8_t>(t, [&] { return static_cast<std::uint8_t>(integer()); });
      break;
    case dtype::boolean:
      fill<std::uint8_t>(t, [&] { return static_cast<std::uint8_t>(g.next() & 1); });
      break;
    case dtype::i16:
    case dtype::u16:
      fill<std::uint16_t>(t, [&] { return static_cast<std::uint16_t>(integer()); });
      break;
    case dtype::i32:
    case dtype::u32:
      fill<std::uint32_t>(t, [&] { return static_cast<std::uint32_t>(integer()); });
      break;
    case dtype::i64:
    case dtype::u64: fill<std::int64_t>(t, integer); break;
    case dtype::string: break;  // empty strings
    default: fail(sod2::errc::unsupported, "random inputs of type " + std::string(name_of(type)));
  }
  return t;
}

std::string sha256_of(const sod2::tensor_view& t) {
  sha256 h;
  if (sod2::is_container(t.type)) {
    for (std::int64_t k = 0; k < t.count(); ++k) h.update(sha256_of(t.item(k)));
    return h.finish();
  }
  if (t.type == dtype::string) {
    for (std::int64_t k = 0; k < t.count(); ++k) {
      h.update(t.as<std::string_view>()[k]);
      h.update(std::string_view("\0", 1));
    }
  } else {
    h.update({static_cast<const char*>(t.data),
              static_cast<std::size_t>(sod2::bytes_of(t.type, t.count()))});
  }
  return h.finish();
}

std::string shape_text(std::span<const std::int64_t> dims) {
  std::string text = "(";
  for (std::size_t k = 0; k < dims.size(); ++k) {
    if (k > 0) text += ", ";
    text += std::to_string(dims[k]);
  }
  return text + ")";
}
json shape_json(std::span<const std::int64_t> dims) {
  json shape = json::array();
  for (std::int64_t d : dims) shape.push_back(d);
  return shape;
}

// ---- comparing ---------------------------------------------------------------------------------

namespace {
std::string number_text(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}
template <class T>
std::string number_text(T v)
  requires std::is_integral_v<T>
{
  return std::to_string(v);
}
std::string at_text(std::int64_t k, const std::string& expected, const std::string& got) {
  return "element " + std::to_string(k) + ": expected " + expected + ", got " + got;
}

template <class T>
std::string exact(const sod2::tensor_view& a, const sod2::tensor_view& b) {
  for (std::int64_t k = 0, n = a.count(); k < n; ++k)
    if (a.as<T>()[k] != b.as<T>()[k])
      return at_text(k, number_text(a.as<T>()[k]), number_text(b.as<T>()[k]));
  return {};
}
template <class T, class Convert>
std::string close(const sod2::tensor_view& a, const sod2::tensor_view& b, std::int64_t count,
                  tolerance t, Convert convert) {
  for (std::int64_t k = 0; k < count; ++k) {
    const double x = static_cast<double>(convert(a.as<T>()[k]));
    const double y = static_cast<double>(convert(b.as<T>()[k]));
    const bool same = (std::isnan(x) && std::isnan(y)) || x == y;
    // Written so that a NaN on one side only is a difference.
    if (!same && !(std::abs(x - y) <= t.absolute + t.relative * std::abs(x)))
      return at_text(k, number_text(x), number_text(y));
  }
  return {};
}
}  // namespace

std::string difference(const sod2::tensor_view& a, const sod2::tensor_view& b, tolerance t) {
  if (a.type != b.type)
    return "expected type " + std::string(name_of(a.type)) + ", got " +
           std::string(name_of(b.type));
  if (!std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end()))
    return "expected shape " + shape_text(a.shape()) + ", got " + shape_text(b.shape());
  if (sod2::is_container(a.type)) {
    for (std::int64_t k = 0; k < a.count(); ++k)
      if (const std::string d = difference(a.item(k), b.item(k), t); !d.empty())
        return "element " + std::to_string(k) + ": " + d;
    return {};
  }
  const auto itself = [](auto v) { return v; };
  switch (a.type) {
    case dtype::f32: return close<float>(a, b, a.count(), t, itself);
    case dtype::c64: return close<float>(a, b, 2 * a.count(), t, itself);
    case dtype::f64: return close<double>(a, b, a.count(), t, itself);
    case dtype::c128: return close<double>(a, b, 2 * a.count(), t, itself);
    case dtype::f16: return close<std::uint16_t>(a, b, a.count(), t, from_f16);
    case dtype::bf16:  // one unit in the last place: old test data is cut off, not rounded
      t.relative = std::max(t.relative, 0x1p-7);
      return close<std::uint16_t>(a, b, a.count(), t, from_bf16);
    case dtype::string:
      for (std::int64_t k = 0; k < a.count(); ++k)
        if (a.as<std::string_view>()[k] != b.as<std::string_view>()[k])
          return at_text(k, "'" + std::string(a.as<std::string_view>()[k]) + "'",
                         "'" + std::string(b.as<std::string_view>()[k]) + "'");
      return {};
    case dtype::i8: return exact<std::int8_t>(a, b);
    case dtype::i16: return exact<std::int16_t>(a, b);
    case dtype::u16: return exact<std::uint16_t>(a, b);
    case dtype::i32: return exact<std::int32_t>(a, b);
    case dtype::u32: return exact<std::uint32_t>(a, b);
    case dtype::i64: return exact<std::int64_t>(a, b);
    case dtype::u64: return exact<std::uint64_t>(a, b);
    default: {  // bytes
      const std::int64_t bytes = sod2::bytes_of(a.type, a.count());
      for (std::int64_t k = 0; k < bytes; ++k)
        if (a.as<std::uint8_t>()[k] != b.as<std::uint8_t>()[k])
          return at_text(k, number_text(a.as<std::uint8_t>()[k]),
                         number_text(b.as<std::uint8_t>()[k]));
      return {};
    }
  }
}

}  // namespace tool
