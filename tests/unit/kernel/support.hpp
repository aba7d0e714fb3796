// Tensors, attributes and calls for kernel tests.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <sod2/expr/context.hpp>
#include <sod2/kernel.hpp>

namespace kernel_test {

using sod2::dtype;
using i64 = std::int64_t;
using shape = std::vector<i64>;

inline std::size_t idx(i64 i) { return static_cast<std::size_t>(i); }
inline i64 count_of(const shape& dims) {
  i64 n = 1;
  for (i64 d : dims) n *= d;
  return n;
}

/// An owning tensor in a heap block of its exact size, so that ASan sees every step outside.
class tensor {
 public:
  tensor() = default;
  tensor(dtype type, shape dims) : type_(type), dims_(std::move(dims)) {
    const i64 bytes = sod2::bytes_of(type_, count());
    data_ = std::shared_ptr<void>(std::malloc(idx(bytes > 0 ? bytes : 1)), std::free);
    std::memset(data_.get(), 0xcd, idx(bytes));
  }
  template <class T>
  static tensor of(shape dims, const std::vector<T>& values) {
    tensor t(sod2::dtype_of<T>, std::move(dims));
    REQUIRE(static_cast<i64>(values.size()) == t.count());
    for (std::size_t i = 0; i < values.size(); ++i) t.data<T>()[i] = values[i];
    return t;
  }
  static tensor ints(const std::vector<i64>& values) {
    return of<i64>({static_cast<i64>(values.size())}, values);
  }
  static tensor scalar(float v) { return of<float>({}, {v}); }

  bool present() const { return type_ != dtype::undefined; }
  dtype type() const { return type_; }
  const shape& dims() const { return dims_; }
  i64 count() const { return count_of(dims_); }
  template <class T>
  T* data() const {
    return static_cast<T*>(data_.get());
  }
  template <class T>
  T& at(i64 i) const {
    return data<T>()[i];
  }
  /// Element i as a double, whatever the type (16-bit floats excepted).
  double value(i64 i) const {
    switch (type_) {
      case dtype::f32: return static_cast<double>(at<float>(i));
      case dtype::f64: return at<double>(i);
      case dtype::i8: return at<std::int8_t>(i);
      case dtype::u8: return at<std::uint8_t>(i);
      case dtype::i16: return at<std::int16_t>(i);
      case dtype::u16: return at<std::uint16_t>(i);
      case dtype::i32: return at<std::int32_t>(i);
      case dtype::u32: return at<std::uint32_t>(i);
      case dtype::i64: return static_cast<double>(at<std::int64_t>(i));
      case dtype::u64: return static_cast<double>(at<std::uint64_t>(i));
      case dtype::boolean: return at<std::uint8_t>(i) != 0 ? 1 : 0;
      default: return 0;
    }
  }
  void set(i64 i, double v) const {
    switch (type_) {
      case dtype::f32: at<float>(i) = static_cast<float>(v); break;
      case dtype::f64: at<double>(i) = v; break;
      case dtype::i8: at<std::int8_t>(i) = static_cast<std::int8_t>(v); break;
      case dtype::u8: at<std::uint8_t>(i) = static_cast<std::uint8_t>(v); break;
      case dtype::i16: at<std::int16_t>(i) = static_cast<std::int16_t>(v); break;
      case dtype::u16: at<std::uint16_t>(i) = static_cast<std::uint16_t>(v); break;
      case dtype::i32: at<std::int32_t>(i) = static_cast<std::int32_t>(v); break;
      case dtype::u32: at<std::uint32_t>(i) = static_cast<std::uint32_t>(v); break;
      case dtype::i64: at<std::int64_t>(i) = static_cast<std::int64_t>(v); break;
      case dtype::u64: at<std::uint64_t>(i) = static_cast<std::uint64_t>(v); break;
      case dtype::boolean: at<std::uint8_t>(i) = v != 0; break;
      default: break;
    }
  }
  sod2::tensor_view view() const {
    if (!present()) return {};
    return {data_.get(), dims_.data(), static_cast<std::uint32_t>(dims_.size()), type_};
  }
  sod2::constant_view constant() const {
    return {static_cast<const std::byte*>(data_.get()), idx(sod2::bytes_of(type_, count())), dims_,
            type_};
  }
  tensor clone() const {
    tensor t(type_, dims_);
    std::memcpy(t.data<void>(), data_.get(), idx(sod2::bytes_of(type_, count())));
    return t;
  }

 private:
  dtype type_ = dtype::undefined;
  shape dims_;
  std::shared_ptr<void> data_;
};

struct random_source {
  std::mt19937 engine{12345};
  i64 integer(i64 lo, i64 hi) { return std::uniform_int_distribution<i64>(lo, hi)(engine); }
  double real(double lo, double hi) {
    return std::uniform_real_distribution<double>(lo, hi)(engine);
  }
  tensor fill(dtype type, shape dims, double lo = -1, double hi = 1) {
    tensor t(type, std::move(dims));
    for (i64 i = 0; i < t.count(); ++i)
      t.set(i, type == dtype::f32 || type == dtype::f64
                   ? real(lo, hi)
                   : static_cast<double>(integer(static_cast<i64>(lo), static_cast<i64>(hi))));
    return t;
  }
  /// Extents that find tails: 1, odd, around vector lengths.
  i64 extent(i64 limit = 40) {
    static const i64 some[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 37, 40};
    i64 v;
    do v = some[idx(integer(0, 13))];
    while (v > limit);
    return v;
  }
};

/// Attributes of one node.
class attributes {
 public:
  attributes& set(const std::string& name, i64 v) {
    sod2::attribute_view a;
    a.kind = sod2::attribute_kind::integer;
    a.integer = v;
    map_[name] = a;
    return *this;
  }
  attributes& set(const std::string& name, int v) { return set(name, static_cast<i64>(v)); }
  attributes& set(const std::string& name, double v) {
    sod2::attribute_view a;
    a.kind = sod2::attribute_kind::real;
    a.real = v;
    map_[name] = a;
    return *this;
  }
  attributes& set(const std::string& name, const char* v) {
    sod2::attribute_view a;
    a.kind = sod2::attribute_kind::string;
    a.string = v;
    map_[name] = a;
    return *this;
  }
  attributes& set(const std::string& name, const shape& v) {
    lists_.push_back(std::make_shared<shape>(v));
    sod2::attribute_view a;
    a.kind = sod2::attribute_kind::integers;
    a.integers = *lists_.back();
    map_[name] = a;
    return *this;
  }
  attributes& set(const std::string& name, const std::vector<float>& v) {
    reals_.push_back(std::make_shared<std::vector<float>>(v));
    sod2::attribute_view a;
    a.kind = sod2::attribute_kind::reals;
    a.reals = *reals_.back();
    map_[name] = a;
    return *this;
  }
  attributes& set(const std::string& name, const std::vector<std::string>& v) {
    strings_.push_back(std::make_shared<std::vector<std::string>>(v));
    sod2::attribute_view a;
    a.kind = sod2::attribute_kind::strings;
    a.strings = *strings_.back();
    map_[name] = a;
    return *this;
  }
  attributes& set(const std::string& name, const tensor& v) {
    tensors_.push_back(v);
    sod2::attribute_view a;
    a.kind = sod2::attribute_kind::tensor;
    a.tensor = tensors_.back().constant();
    map_[name] = a;
    return *this;
  }
  sod2::attribute_source source() const {
    return {this, 0, [](const void* graph, std::uint64_t, std::string_view name) {
              const auto& m = static_cast<const attributes*>(graph)->map_;
              const auto at = m.find(std::string(name));
              return at == m.end() ? sod2::attribute_view{} : at->second;
            }};
  }

 private:
  std::map<std::string, sod2::attribute_view> map_;
  std::vector<std::shared_ptr<shape>> lists_;
  std::vector<std::shared_ptr<std::vector<float>>> reals_;
  std::vector<std::shared_ptr<std::vector<std::string>>> strings_;
  std::vector<tensor> tensors_;
};

/// Splits the work as `threads` threads would, in reverse order, on this one.
inline sod2::thread_pool_ref fake_pool(int threads) {
  sod2::thread_pool_ref pool;
  pool.threads = threads;
  if (threads > 1)
    pool.parallel_for = [](void*, i64 count, void (*body)(void*, i64, i64), void* arg) {
      for (i64 i = count; i-- > 0;) body(arg, i, i + 1);
    };
  return pool;
}

inline std::vector<const sod2::kernel_table*> targets() {
  std::vector<const sod2::kernel_table*> all;
  for (sod2::simd_target t :
       {sod2::simd_target::baseline, sod2::simd_target::sse4, sod2::simd_target::avx2,
        sod2::simd_target::avx512, sod2::simd_target::neon})
    if (const sod2::kernel_table* table = sod2::standard_kernels(t)) all.push_back(table);
  return all;
}

struct call {
  const sod2::kernel_table* table = &sod2::standard_kernels();
  std::string name;
  int version = 13;
  attributes attrs;
  std::vector<tensor> inputs;
  std::vector<tensor> outputs;
  std::vector<bool> constant;  // input i is known to prepare
  int threads = 1;
  const sod2::epilogue_call* epilogue = nullptr;
  i64* counts = nullptr;
  std::string domain{};

  /// Prepares and runs; returns the error of either.
  sod2::errc run() {
    const sod2::kernel_row* row = table->find(domain, name, version);
    REQUIRE_MESSAGE(row != nullptr, name);
    std::vector<sod2::operand_info> in, out;
    sod2::dim_context context;
    std::vector<std::vector<sod2::dim>> dims;  // workspaces may depend on them
    const auto dims_of = [&](const tensor& t) {
      dims.emplace_back();
      for (i64 d : t.dims()) dims.back().push_back(context.constant(d));
      return std::span<const sod2::dim>(dims.back());
    };
    dims.reserve(inputs.size() + outputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      sod2::operand_info o;
      o.type = inputs[i].type();
      o.rank = static_cast<int>(inputs[i].dims().size());
      o.dims = dims_of(inputs[i]);
      if (i < constant.size() && constant[i]) o.constant = inputs[i].constant();
      in.push_back(o);
    }
    for (const tensor& t : outputs) {
      sod2::operand_info o;
      o.type = t.type();
      o.rank = static_cast<int>(t.dims().size());
      o.dims = dims_of(t);
      out.push_back(o);
    }
    sod2::prepare_args args;
    args.attributes = attrs.source();
    args.since_version = version;
    args.inputs = in;
    args.outputs = out;
    args.simd = table->simd;
    auto state = row->prepare(args);
    if (!state) return state.error().code();
    i64 bytes = 0;
    if (row->workspace_bytes != nullptr) {
      const sod2::dim d = row->workspace_bytes(context, state->data, in, out);
      REQUIRE(context.is_constant(d));
      bytes = context.value(d);
      CHECK(bytes % 64 == 0);
    }
    std::unique_ptr<std::byte, void (*)(std::byte*)> workspace(
        static_cast<std::byte*>(std::aligned_alloc(64, idx(bytes * threads + 64))),
        [](std::byte* p) { std::free(p); });
    std::memset(workspace.get(), 0xff, idx(bytes * threads));  // NaN
    std::vector<sod2::tensor_view> iv, ov;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      iv.push_back(inputs[i].view());
      if (i < 64 && (state->consumed >> i & 1U) != 0) iv.back().data = nullptr;
    }
    for (const tensor& t : outputs) ov.push_back(t.view());
    sod2::kernel_args k;
    k.state = state->data;
    k.inputs = iv;
    k.outputs = ov;
    k.workspace = workspace.get();
    k.epilogue = epilogue;
    k.pool = fake_pool(threads);
    k.counts = counts;
    return row->run(k);
  }
};

inline void check_close(const tensor& got, const tensor& expected, double rtol = 1e-4,
                        double atol = 1e-5) {
  REQUIRE(got.dims() == expected.dims());
  for (i64 i = 0; i < got.count(); ++i) {
    const double a = got.value(i), b = expected.value(i);
    if (std::isnan(b) && std::isnan(a)) continue;
    if (a == b) continue;
    if (!(std::fabs(a - b) <= atol + rtol * std::fabs(b))) {
      CHECK_MESSAGE(false, "element ", i, ": ", a, " expected ", b);
      return;
    }
  }
}
inline void check_equal(const tensor& got, const tensor& expected) {
  REQUIRE(got.dims() == expected.dims());
  REQUIRE(got.type() == expected.type());
  CHECK(std::memcmp(got.data<void>(), expected.data<void>(),
                    idx(sod2::bytes_of(got.type(), got.count()))) == 0);
}

/// Walks an index space in row-major order.
inline void for_each_index(const shape& dims, const std::function<void(const shape&, i64)>& f) {
  const i64 n = count_of(dims);
  shape at(dims.size(), 0);
  for (i64 i = 0; i < n; ++i) {
    f(at, i);
    for (std::size_t d = dims.size(); d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
}
inline i64 offset_of(const shape& dims, const shape& at) {
  i64 o = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) o = o * dims[d] + at[d];
  return o;
}
/// Offset in an operand that broadcasts (trailing axes aligned).
inline i64 broadcast_offset(const shape& dims, const shape& at) {
  i64 o = 0;
  const std::size_t shift = at.size() - dims.size();
  for (std::size_t d = 0; d < dims.size(); ++d)
    o = o * dims[d] + (dims[d] == 1 ? 0 : at[d + shift]);
  return o;
}

}  // namespace kernel_test
