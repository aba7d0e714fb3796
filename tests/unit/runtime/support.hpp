// What tests of the runtime share: tensors that own their data, compiling with the standard tables,
// and a plain interpreter of a few operators to compare with.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/graph/graph.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/kernel/table.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/runtime/compile.hpp>
#include <sod2/runtime/session.hpp>

namespace test {

/// Allocations of the whole program so far.
std::uint64_t allocations();

struct tensor {
  std::vector<std::int64_t> dims;
  std::vector<float> data;

  std::int64_t count() const {
    std::int64_t n = 1;
    for (std::int64_t d : dims) n *= d;
    return n;
  }
  sod2::tensor_view view() const {
    return {const_cast<float*>(data.data()), dims.data(), static_cast<std::uint32_t>(dims.size()),
            sod2::dtype::f32};
  }
  static tensor of(const sod2::tensor_view& t) {
    tensor out;
    out.dims.assign(t.shape().begin(), t.shape().end());
    REQUIRE(t.type == sod2::dtype::f32);
    out.data.assign(t.as<float>(), t.as<float>() + t.count());
    return out;
  }
  /// Values in [-1, 1) that depend on the seed and the shape alone.
  static tensor random(std::vector<std::int64_t> dims, std::uint32_t seed) {
    tensor out{std::move(dims), {}};
    std::mt19937 random(seed);
    for (std::int64_t i = 0; i < out.count(); ++i)
      out.data.push_back(static_cast<float>(random() % 2001) / 1000.0F - 1.0F);
    return out;
  }
};

inline bool close(const tensor& a, const tensor& b) {
  if (a.dims != b.dims || a.data.size() != b.data.size()) return false;
  for (std::size_t i = 0; i < a.data.size(); ++i)
    if (!(std::abs(a.data[i] - b.data[i]) <= 1e-4F + 1e-3F * std::abs(b.data[i]))) return false;
  return true;
}

inline sod2::program compiled(const sod2::graph& g, const sod2::compile_options& options = {}) {
  auto view = sod2::make_view(g);
  if (!view) FAIL(view.error().text());
  auto program = sod2::compile(*view, sod2::standard_registry(), sod2::standard_kernels(), options);
  if (!program) FAIL(program.error().text());
  return *std::move(program);
}
inline std::vector<sod2::tensor_view> views(const std::vector<tensor>& tensors) {
  std::vector<sod2::tensor_view> out;
  for (const tensor& t : tensors) out.push_back(t.view());
  return out;
}
/// All outputs of one run that must succeed.
inline std::vector<tensor> run(sod2::session& s, const sod2::program& p,
                               const std::vector<tensor>& inputs) {
  const sod2::status done = s.run(views(inputs));
  if (!done) FAIL(done.error().text());
  std::vector<tensor> out;
  for (std::size_t i = 0; i < p.outputs().size(); ++i) out.push_back(tensor::of(s.output(i)));
  return out;
}
inline std::vector<tensor> run(const sod2::program& p, const std::vector<tensor>& inputs,
                               const sod2::session_options& options = {}) {
  sod2::session s(p, options);
  return run(s, p, inputs);
}

// ---- the plain interpreter
// -----------------------------------------------------------------------

/// Runs graphs of Relu, Sigmoid, Add, Mul, MatMul, Softmax (last axis), ReduceMean (last axis
/// kept), Transpose, Concat and Reshape on float32, one element at a time.
class interpreter {
 public:
  static std::vector<tensor> run(const sod2::graph& g, const std::vector<tensor>& inputs) {
    interpreter i(g);
    for (std::size_t k = 0; k < inputs.size(); ++k)
      i.values_[g.scopes()[0].inputs[k].index] = inputs[k];
    for (const sod2::graph::node& n : g.nodes()) i.values_[n.outputs[0].index] = i.evaluate(n);
    std::vector<tensor> out;
    for (sod2::value_id v : g.scopes()[0].outputs) out.push_back(i.value(v));
    return out;
  }

 private:
  explicit interpreter(const sod2::graph& g) : g_(g) {}

  const tensor& value(sod2::value_id v) {
    if (const auto known = values_.find(v.index); known != values_.end()) return known->second;
    const sod2::constant_view c = sod2::graph_traits<sod2::graph>::facts(g_, v).constant;
    REQUIRE(c.type == sod2::dtype::f32);
    tensor t;
    t.dims.assign(c.dims.begin(), c.dims.end());
    t.data.resize(static_cast<std::size_t>(c.count()));
    if (c.bytes > 0) std::memcpy(t.data.data(), c.data, c.bytes);
    return values_[v.index] = t;
  }
  std::vector<std::int64_t> integers(sod2::value_id v) const {
    const sod2::constant_view c = sod2::graph_traits<sod2::graph>::facts(g_, v).constant;
    REQUIRE(c.type == sod2::dtype::i64);
    std::vector<std::int64_t> out(static_cast<std::size_t>(c.count()));
    std::memcpy(out.data(), c.data, c.bytes);
    return out;
  }
  template <class F>
  static tensor broadcast(const tensor& a, const tensor& b, F f) {
    tensor out;
    const std::size_t rank = std::max(a.dims.size(), b.dims.size());
    const auto dim = [&](const tensor& t, std::size_t i) {
      return i + t.dims.size() < rank ? 1 : t.dims[i + t.dims.size() - rank];
    };
    for (std::size_t i = 0; i < rank; ++i)
      out.dims.push_back(dim(a, i) == 1 ? dim(b, i) : dim(a, i));
    for (std::int64_t k = 0; k < out.count(); ++k) {
      std::int64_t at_a = 0, at_b = 0, rest = k, step_a = 1, step_b = 1;
      for (std::size_t i = rank; i-- > 0;) {
        const std::int64_t at = rest % out.dims[i];
        rest /= out.dims[i];
        if (dim(a, i) != 1) at_a += at * step_a;
        if (dim(b, i) != 1) at_b += at * step_b;
        step_a *= dim(a, i);
        step_b *= dim(b, i);
      }
      out.data.push_back(
          f(a.data[static_cast<std::size_t>(at_a)], b.data[static_cast<std::size_t>(at_b)]));
    }
    return out;
  }
  template <class F>
  static tensor map(tensor t, F f) {
    for (float& v : t.data) v = f(v);
    return t;
  }
  tensor evaluate(const sod2::graph::node& n) {
    const tensor& a = value(n.inputs[0]);
    if (n.op == "Relu") return map(a, [](float v) { return v < 0 ? 0.0F : v; });
    if (n.op == "Sigmoid") return map(a, [](float v) { return 1.0F / (1.0F + std::exp(-v)); });
    if (n.op == "Add")
      return broadcast(a, value(n.inputs[1]), [](float x, float y) { return x + y; });
    if (n.op == "Mul")
      return broadcast(a, value(n.inputs[1]), [](float x, float y) { return x * y; });
    const auto last = static_cast<std::size_t>(a.dims.back());
    if (n.op == "MatMul") {
      const tensor& b = value(n.inputs[1]);  // a matrix
      tensor out{a.dims, {}};
      out.dims.back() = b.dims[1];
      const auto columns = static_cast<std::size_t>(b.dims[1]);
      for (std::size_t row = 0; row < a.data.size() / std::max<std::size_t>(last, 1); ++row)
        for (std::size_t j = 0; j < columns; ++j) {
          double sum = 0;
          for (std::size_t k = 0; k < last; ++k)
            sum += static_cast<double>(a.data[row * last + k]) *
                   static_cast<double>(b.data[k * columns + j]);
          out.data.push_back(static_cast<float>(sum));
        }
      return out;
    }
    if (n.op == "Softmax" || n.op == "ReduceMean") {
      const bool mean = n.op == "ReduceMean";
      tensor out = a;
      if (mean) {
        out.dims.back() = 1;
        out.data.clear();
      }
      for (std::size_t row = 0; row + last <= a.data.size(); row += last) {
        double sum = 0;
        for (std::size_t k = 0; k < last; ++k) {
          const double v = static_cast<double>(a.data[row + k]);
          sum += mean ? v : std::exp(v);
        }
        if (mean) out.data.push_back(static_cast<float>(sum / static_cast<double>(last)));
        for (std::size_t k = 0; k < last && !mean; ++k)
          out.data[row + k] =
              static_cast<float>(std::exp(static_cast<double>(a.data[row + k])) / sum);
      }
      return out;
    }
    if (n.op == "Reshape") {
      tensor out = a;
      out.dims = integers(n.inputs[1]);
      std::int64_t rest = 1;
      for (std::size_t i = 0; i < out.dims.size(); ++i) {
        if (out.dims[i] == 0) out.dims[i] = a.dims[i];
        if (out.dims[i] > 0) rest *= out.dims[i];
      }
      for (std::int64_t& d : out.dims)
        if (d < 0) d = a.count() / rest;
      return out;
    }
    if (n.op == "Transpose") {  // of matrices
      tensor out{{a.dims[1], a.dims[0]}, {}};
      for (std::size_t j = 0; j < last; ++j)
        for (std::size_t i = 0; i < static_cast<std::size_t>(a.dims[0]); ++i)
          out.data.push_back(a.data[i * last + j]);
      return out;
    }
    if (n.op == "Concat") {  // two, along the last axis
      const tensor& b = value(n.inputs[1]);
      const auto other = static_cast<std::size_t>(b.dims.back());
      tensor out{a.dims, {}};
      out.dims.back() += b.dims.back();
      for (std::size_t row = 0; row * last < a.data.size(); ++row) {
        for (std::size_t k = 0; k < last; ++k) out.data.push_back(a.data[row * last + k]);
        for (std::size_t k = 0; k < other; ++k) out.data.push_back(b.data[row * other + k]);
      }
      return out;
    }
    FAIL("the interpreter does not know ", n.op);
    return {};
  }

  const sod2::graph& g_;
  std::map<std::uint32_t, tensor> values_;
};

}  // namespace test
