#include "support.hpp"

#include <limits>

using namespace kernel_test;

namespace {

double reduce_reference(const std::string& name, const std::vector<double>& v) {
  double sum = 0, square = 0, prod = 1, absolute = 0, expo = 0;
  double top = -std::numeric_limits<double>::infinity(), low = -top;
  for (double x : v) {
    sum += x;
    square += x * x;
    prod *= x;
    absolute += std::fabs(x);
    expo += std::exp(x);
    top = std::max(top, x);
    low = std::min(low, x);
  }
  if (name == "ReduceSum") return sum;
  if (name == "ReduceMean") return sum / static_cast<double>(v.size());
  if (name == "ReduceMax") return top;
  if (name == "ReduceMin") return low;
  if (name == "ReduceProd") return prod;
  if (name == "ReduceL1") return absolute;
  if (name == "ReduceL2") return std::sqrt(square);
  if (name == "ReduceLogSum") return std::log(sum);
  if (name == "ReduceLogSumExp") return std::log(expo);
  return square;
}

const char* const reductions[] = {"ReduceSum",       "ReduceMean",     "ReduceMax", "ReduceMin",
                                  "ReduceProd",      "ReduceL1",       "ReduceL2",  "ReduceLogSum",
                                  "ReduceLogSumExp", "ReduceSumSquare"};

}  // namespace

TEST_CASE("reductions over every subset of axes") {
  random_source rng;
  for (const shape& dims :
       {shape{5}, shape{3, 70}, shape{70, 3}, shape{4, 5, 6}, shape{2, 3, 4, 37},
        shape{2, 1, 3, 1, 4}, shape{3, 1100}, shape{}, shape{1, 1}})
    for (unsigned mask = 0; mask < 1U << dims.size(); ++mask)
      for (const char* name : reductions) {
        const bool log_sum = std::string(name) == "ReduceLogSum";
        const tensor x = rng.fill(dtype::f32, dims, log_sum ? 0.1 : -1, 1);
        shape axes, keep, drop;
        for (std::size_t d = 0; d < dims.size(); ++d) {
          const bool reduced = mask == 0 || (mask >> d & 1U) != 0;
          if ((mask >> d & 1U) != 0)
            axes.push_back(static_cast<i64>(d) - (d % 2 == 1 ? static_cast<i64>(dims.size()) : 0));
          keep.push_back(reduced ? 1 : dims[d]);
          if (!reduced) drop.push_back(dims[d]);
        }
        std::vector<std::vector<double>> groups(idx(count_of(keep)));
        for_each_index(dims, [&](const shape& at, i64 i) {
          groups[idx(broadcast_offset(keep, at))].push_back(x.value(i));
        });
        const bool keepdims = (mask + dims.size()) % 2 == 0;
        tensor expected(dtype::f32, keepdims ? keep : drop);
        for (std::size_t g = 0; g < groups.size(); ++g)
          expected.set(static_cast<i64>(g), reduce_reference(name, groups[g]));
        for (const auto* table : targets())
          for (bool from_input : {false, true}) {
            call c;
            c.table = table;
            c.name = name;
            c.version = from_input ? 18 : 11;
            c.attrs.set("keepdims", keepdims ? 1 : 0);
            c.inputs = {x};
            if (from_input)
              c.inputs.push_back(tensor::ints(axes));
            else if (!axes.empty())
              c.attrs.set("axes", axes);
            c.outputs = {tensor(dtype::f32, expected.dims())};
            c.threads = from_input ? 3 : 1;
            REQUIRE(c.run() == sod2::errc::ok);
            INFO(name, " mask ", mask);
            check_close(c.outputs[0], expected, 1e-4, 1e-4);
          }
      }
}

TEST_CASE("reductions of nothing") {
  for (const char* name : reductions) {
    call c;
    c.name = name;
    c.version = 11;
    c.attrs.set("keepdims", 0).set("axes", shape{1});
    c.inputs = {tensor(dtype::f32, {2, 0})};
    c.outputs = {tensor(dtype::f32, {2})};
    REQUIRE(c.run() == sod2::errc::ok);
    const double expected = std::string(name) == "ReduceProd" ? 1 : 0;
    if (std::string(name) == "ReduceSum" || std::string(name) == "ReduceProd")
      CHECK(c.outputs[0].value(1) == expected);
    if (std::string(name) == "ReduceLogSumExp") CHECK(std::isinf(c.outputs[0].value(0)));
  }
}

TEST_CASE("reductions: integers, double, empty axes, no-op, infinities") {
  random_source rng;
  for (dtype type : {dtype::i32, dtype::i64, dtype::f64, dtype::u8}) {
    const tensor x = rng.fill(type, {4, 5, 6}, 0, 9);
    for (const char* name : {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"}) {
      if (type == dtype::u8 && (name[6] == 'S' || name[6] == 'P')) continue;
      tensor expected(type, {4, 6});
      for (i64 a = 0; a < 4; ++a)
        for (i64 b = 0; b < 6; ++b) {
          std::vector<double> v;
          for (i64 k = 0; k < 5; ++k) v.push_back(x.value((a * 5 + k) * 6 + b));
          expected.set(a * 6 + b, reduce_reference(name, v));
        }
      call c;
      c.name = name;
      c.version = 18;
      c.attrs.set("keepdims", 0);
      c.inputs = {x, tensor::ints({1})};
      c.outputs = {tensor(type, {4, 6})};
      REQUIRE(c.run() == sod2::errc::ok);
      check_close(c.outputs[0], expected);
    }
  }
  const tensor x = rng.fill(dtype::f32, {3, 4});
  call noop;
  noop.name = "ReduceSum";
  noop.attrs.set("noop_with_empty_axes", 1);
  noop.inputs = {x};
  noop.outputs = {tensor(dtype::f32, {3, 4})};
  REQUIRE(noop.run() == sod2::errc::ok);
  check_equal(noop.outputs[0], x);
  call empty;
  empty.name = "ReduceSum";
  empty.inputs = {tensor(dtype::f32, {2, 0, 3}), tensor::ints({1})};
  empty.outputs = {tensor(dtype::f32, {2, 1, 3})};
  REQUIRE(empty.run() == sod2::errc::ok);
  for (i64 i = 0; i < 6; ++i) CHECK(empty.outputs[0].value(i) == 0);
  empty.name = "ReduceMax";
  REQUIRE(empty.run() == sod2::errc::ok);
  CHECK(empty.outputs[0].value(0) == -std::numeric_limits<double>::infinity());
  empty.inputs[1] = tensor::ints({3});
  CHECK(empty.run() == sod2::errc::axis_range);
  call big;
  big.name = "ReduceLogSumExp";
  big.inputs = {tensor::of<float>({2}, {1000.0f, 1000.0f})};
  big.outputs = {tensor(dtype::f32, {1})};
  REQUIRE(big.run() == sod2::errc::ok);
  CHECK(big.outputs[0].value(0) == doctest::Approx(1000.6931));
}

TEST_CASE("ArgMax and ArgMin") {
  random_source rng;
  for (dtype type : {dtype::f32, dtype::i32, dtype::u8})
    for (bool last : {false, true})
      for (i64 axis : {0, 1, -1}) {
        const tensor x = rng.fill(type, {4, 5, 6}, 0, 3);
        const std::size_t a = axis < 0 ? 2 : idx(axis);
        shape out = x.dims();
        out[a] = 1;
        for (bool max : {true, false}) {
          tensor expected(dtype::i64, out);
          for_each_index(out, [&](const shape& at, i64 i) {
            shape p = at;
            double best = x.value(offset_of(x.dims(), p));
            i64 where = 0;
            for (i64 k = 1; k < x.dims()[a]; ++k) {
              p[a] = k;
              const double v = x.value(offset_of(x.dims(), p));
              if ((max ? v > best : v < best) || (last && v == best)) {
                best = v;
                where = k;
              }
            }
            expected.set(i, static_cast<double>(where));
          });
          call c;
          c.name = max ? "ArgMax" : "ArgMin";
          c.attrs.set("axis", axis).set("select_last_index", last ? 1 : 0);
          c.inputs = {x};
          c.outputs = {tensor(dtype::i64, out)};
          c.threads = 2;
          REQUIRE(c.run() == sod2::errc::ok);
          check_equal(c.outputs[0], expected);
        }
      }
}

TEST_CASE("Softmax, LogSoftmax, Hardmax in both meanings") {
  random_source rng;
  for (const shape& dims :
       {shape{3, 7}, shape{2, 3, 40}, shape{2, 3, 4, 5}, shape{6}, shape{2, 300}})
    for (int version : {11, 13})
      for (i64 axis = -static_cast<i64>(dims.size()); axis < static_cast<i64>(dims.size()); ++axis)
        for (const char* name : {"Softmax", "LogSoftmax", "Hardmax"}) {
          const dtype type = axis == 0 ? dtype::f64 : dtype::f32;
          const tensor x = rng.fill(type, dims, -30, 30);
          const std::size_t a = axis < 0 ? dims.size() - idx(-axis) : idx(axis);
          // Row of every element: its index without the reduced axes.
          shape row = dims;
          for (std::size_t d = a; d < dims.size(); ++d)
            if (d == a || version < 13) row[d] = 1;
          std::vector<double> top(idx(count_of(row)), -1e9), sum(idx(count_of(row)), 0);
          std::vector<i64> first(idx(count_of(row)), -1);
          for_each_index(dims, [&](const shape& at, i64 i) {
            const std::size_t r = idx(broadcast_offset(row, at));
            if (x.value(i) > top[r]) {
              top[r] = x.value(i);
              first[r] = i;
            }
          });
          for_each_index(dims, [&](const shape& at, i64 i) {
            const std::size_t r = idx(broadcast_offset(row, at));
            sum[r] += std::exp(x.value(i) - top[r]);
          });
          tensor expected(type, dims);
          for_each_index(dims, [&](const shape& at, i64 i) {
            const std::size_t r = idx(broadcast_offset(row, at));
            const std::string k = name;
            const double shifted = x.value(i) - top[r];
            expected.set(i, k == "Softmax"      ? std::exp(shifted) / sum[r]
                            : k == "LogSoftmax" ? shifted - std::log(sum[r])
                                                : double(first[r] == i));
          });
          for (const auto* table : targets()) {
            call c;
            c.table = table;
            c.name = name;
            c.version = version;
            c.attrs.set("axis", axis);
            c.inputs = {x};
            c.outputs = {tensor(type, dims)};
            c.threads = 2;
            REQUIRE(c.run() == sod2::errc::ok);
            INFO(name, " version ", version, " axis ", axis);
            check_close(c.outputs[0], expected, 1e-5, 1e-5);
          }
        }
}

TEST_CASE("InstanceNormalization, LayerNormalization, LRN") {
  random_source rng;
  for (const shape& dims : {shape{2, 3, 5, 7}, shape{1, 4, 33}, shape{2, 2, 1, 1}})
    for (dtype type : {dtype::f32, dtype::f64})
      for (const auto* table : targets()) {
        const i64 c = dims[1], n = count_of(dims) / (dims[0] * c);
        const tensor x = rng.fill(type, dims), g = rng.fill(type, {c}), b = rng.fill(type, {c});
        tensor expected(type, dims);
        for (i64 p = 0; p < dims[0] * c; ++p) {
          double mean = 0, var = 0;
          for (i64 i = 0; i < n; ++i) mean += x.value(p * n + i) / static_cast<double>(n);
          for (i64 i = 0; i < n; ++i)
            var += std::pow(x.value(p * n + i) - mean, 2) / static_cast<double>(n);
          for (i64 i = 0; i < n; ++i)
            expected.set(p * n + i,
                         (x.value(p * n + i) - mean) / std::sqrt(var + 1e-3) * g.value(p % c) +
                             b.value(p % c));
        }
        call k;
        k.table = table;
        k.name = "InstanceNormalization";
        k.attrs.set("epsilon", 1e-3);
        k.inputs = {x, g, b};
        k.outputs = {tensor(type, dims)};
        REQUIRE(k.run() == sod2::errc::ok);
        check_close(k.outputs[0], expected, 1e-4, 1e-5);
        for (i64 axis : {-1, 1}) {
          const std::size_t a = axis < 0 ? dims.size() - 1 : 1;
          const shape tail(dims.begin() + static_cast<std::ptrdiff_t>(a), dims.end());
          const i64 m = count_of(tail), rows = count_of(dims) / m;
          const tensor scale = rng.fill(type, tail), shift = rng.fill(type, tail);
          for (bool bias : {false, true}) {
            tensor e(type, dims);
            for (i64 r = 0; r < rows; ++r) {
              double mean = 0, var = 0;
              for (i64 i = 0; i < m; ++i) mean += x.value(r * m + i) / static_cast<double>(m);
              for (i64 i = 0; i < m; ++i)
                var += std::pow(x.value(r * m + i) - mean, 2) / static_cast<double>(m);
              for (i64 i = 0; i < m; ++i)
                e.set(r * m + i,
                      (x.value(r * m + i) - mean) / std::sqrt(var + 1e-3) * scale.value(i) +
                          (bias ? shift.value(i) : 0));
            }
            call l;
            l.table = table;
            l.name = "LayerNormalization";
            l.version = 17;
            l.attrs.set("epsilon", 1e-3).set("axis", axis);
            l.inputs = {x, scale};
            if (bias) l.inputs.push_back(shift);
            l.outputs = {tensor(type, dims)};
            REQUIRE(l.run() == sod2::errc::ok);
            check_close(l.outputs[0], e, 1e-4, 1e-5);
          }
        }
        for (i64 size : {1, 2, 3, 5}) {
          tensor e(type, dims);
          for_each_index(dims, [&](const shape& at, i64 i) {
            double sum = 0;
            for (i64 q = at[1] - (size - 1) / 2; q <= at[1] + size / 2; ++q) {
              if (q < 0 || q >= c) continue;
              shape p = at;
              p[1] = q;
              sum += std::pow(x.value(offset_of(dims, p)), 2);
            }
            e.set(i, x.value(i) / std::pow(1.5 + 0.2 / static_cast<double>(size) * sum, 0.6));
          });
          call r;
          r.name = "LRN";
          r.attrs.set("size", size).set("alpha", 0.2).set("beta", 0.6).set("bias", 1.5);
          r.inputs = {x};
          r.outputs = {tensor(type, dims)};
          REQUIRE(r.run() == sod2::errc::ok);
          check_close(r.outputs[0], e);
        }
      }
}
