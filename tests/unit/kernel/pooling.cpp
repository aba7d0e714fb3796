#include "support.hpp"

#include <limits>

using namespace kernel_test;

namespace {

struct pool_case {
  int rank;
  shape in, kernel, stride, dilation, begin, end;
  bool ceil_mode;
  shape out;
};

bool random_pool(random_source& rng, int rank, bool dilate, pool_case& p) {
  p = {};
  p.rank = rank;
  p.ceil_mode = rng.integer(0, 1) != 0;
  for (int d = 0; d < rank; ++d) {
    const i64 in = rng.extent(rank == 3 ? 9 : 40), k = rng.integer(1, 4), s = rng.integer(1, 3);
    const i64 dil = dilate ? rng.integer(1, 2) : 1;
    const i64 b = rng.integer(0, k - 1), e = rng.integer(0, k - 1);
    const i64 room = in + b + e - ((k - 1) * dil + 1);
    if (room < 0) return false;
    i64 out = room / s + 1;
    if (p.ceil_mode && room % s != 0 && out * s < in + b)
      ++out;  // starts inside input or left padding
    p.in.push_back(in);
    p.kernel.push_back(k);
    p.stride.push_back(s);
    p.dilation.push_back(dil);
    p.begin.push_back(b);
    p.end.push_back(e);
    p.out.push_back(out);
  }
  return true;
}

attributes pool_attributes(const pool_case& p) {
  shape pads = p.begin;
  pads.insert(pads.end(), p.end.begin(), p.end.end());
  attributes a;
  a.set("kernel_shape", p.kernel).set("strides", p.stride).set("pads", pads);
  a.set("dilations", p.dilation).set("ceil_mode", p.ceil_mode ? 1 : 0);
  return a;
}

/// Calls f(inside, padded, offset) for every tap; `padded`: inside the stated padding.
void taps_of(const pool_case& p, const shape& o, const std::function<void(bool, bool, i64)>& f) {
  for_each_index(p.kernel, [&](const shape& k, i64) {
    i64 at = 0;
    bool inside = true, padded = true;
    for (std::size_t d = 0; d < k.size(); ++d) {
      const i64 v = o[d + 2] * p.stride[d] - p.begin[d] + k[d] * p.dilation[d];
      inside = inside && v >= 0 && v < p.in[d];
      padded = padded && v >= -p.begin[d] && v < p.in[d] + p.end[d];
      at = at * p.in[d] + (inside ? v : 0);
    }
    f(inside, padded, at);
  });
}

}  // namespace

TEST_CASE("MaxPool, with and without indices") {
  random_source rng;
  for (int round = 0; round < 120; ++round) {
    pool_case p;
    if (!random_pool(rng, 1 + round % 3, true, p)) continue;
    const bool indices = round % 4 == 1, column_major = round % 8 == 1;
    const dtype type = round % 7 == 6 ? dtype::f64 : round % 7 == 5 ? dtype::u8 : dtype::f32;
    shape xs{2, 3}, ys{2, 3};
    xs.insert(xs.end(), p.in.begin(), p.in.end());
    ys.insert(ys.end(), p.out.begin(), p.out.end());
    const tensor x = rng.fill(type, xs, type == dtype::u8 ? 0 : -1, type == dtype::u8 ? 200 : 1);
    tensor expected(type, ys), where(dtype::i64, ys);
    const i64 plane = count_of(p.in);
    for_each_index(ys, [&](const shape& o, i64 i) {
      double best = type == dtype::u8 ? 0 : -std::numeric_limits<double>::infinity();
      i64 found = -1;
      taps_of(p, o, [&](bool inside, bool, i64 at) {
        if (!inside) return;
        const double v = x.value((o[0] * 3 + o[1]) * plane + at);
        if (found < 0 || v > best) {
          best = v;
          found = at;
        }
      });
      expected.set(i, best);
      if (found < 0) found = 0;
      if (column_major) {
        shape at(p.in.size());
        for (std::size_t d = p.in.size(), rest = idx(found); d-- > 0; rest /= idx(p.in[d]))
          at[d] = static_cast<i64>(rest) % p.in[d];
        found = 0;
        for (std::size_t d = p.in.size(); d-- > 0;) found = found * p.in[d] + at[d];
      }
      where.set(i, static_cast<double>((o[0] * 3 + o[1]) * plane + found));
    });
    for (const auto* table : targets()) {
      call c;
      c.table = table;
      c.name = "MaxPool";
      c.attrs = pool_attributes(p).set("storage_order", column_major ? 1 : 0);
      c.inputs = {x};
      c.outputs = {tensor(type, ys)};
      if (indices) c.outputs.push_back(tensor(dtype::i64, ys));
      c.threads = round % 2 + 1;
      REQUIRE(c.run() == sod2::errc::ok);
      check_close(c.outputs[0], expected, 0, 0);
      if (indices) check_equal(c.outputs[1], where);
    }
  }
}

TEST_CASE("AveragePool and LpPool") {
  random_source rng;
  for (int round = 0; round < 150; ++round) {
    pool_case p;
    if (!random_pool(rng, 1 + round % 3, true, p)) continue;
    const bool include = rng.integer(0, 1) != 0, lp = round % 5 == 4;
    const i64 norm = rng.integer(1, 3);
    const dtype type = round % 7 == 6 ? dtype::f64 : dtype::f32;
    shape xs{2, 3}, ys{2, 3};
    xs.insert(xs.end(), p.in.begin(), p.in.end());
    ys.insert(ys.end(), p.out.begin(), p.out.end());
    const tensor x = rng.fill(type, xs);
    tensor expected(type, ys);
    const i64 plane = count_of(p.in);
    for_each_index(ys, [&](const shape& o, i64 i) {
      double sum = 0;
      i64 n = 0;
      taps_of(p, o, [&](bool inside, bool padded, i64 at) {
        const double v = inside ? x.value((o[0] * 3 + o[1]) * plane + at) : 0;
        sum += lp ? std::pow(std::fabs(v), static_cast<double>(norm)) : v;
        n += include ? (padded ? 1 : 0) : (inside ? 1 : 0);
      });
      expected.set(i, lp      ? std::pow(sum, 1.0 / static_cast<double>(norm))
                      : n > 0 ? sum / static_cast<double>(n)
                              : 0);
    });
    for (const auto* table : targets()) {
      call c;
      c.table = table;
      c.name = lp ? "LpPool" : "AveragePool";
      c.version = 19;
      c.attrs = pool_attributes(p).set("count_include_pad", include ? 1 : 0).set("p", norm);
      c.inputs = {x};
      c.outputs = {tensor(type, ys)};
      c.threads = round % 2 + 1;
      REQUIRE(c.run() == sod2::errc::ok);
      check_close(c.outputs[0], expected, 1e-5, 1e-6);
    }
  }
}

TEST_CASE("pools: auto_pad, wide rows, empty batch") {
  random_source rng;
  for (const char* mode : {"SAME_UPPER", "SAME_LOWER"})
    for (i64 width : {5, 6, 700}) {
      pool_case p;
      p.rank = 2;
      p.in = {4, width};
      p.kernel = {2, 3};
      p.stride = {2, 2};
      p.dilation = {1, 1};
      for (std::size_t d = 0; d < 2; ++d) {
        const i64 o = (p.in[d] + 1) / 2,
                  total = std::max<i64>(0, (o - 1) * 2 + p.kernel[d] - p.in[d]);
        p.out.push_back(o);
        p.begin.push_back(std::string(mode) == "SAME_UPPER" ? total / 2 : total - total / 2);
        p.end.push_back(total - p.begin.back());
      }
      const tensor x = rng.fill(dtype::f32, {1, 2, p.in[0], p.in[1]});
      const shape ys{1, 2, p.out[0], p.out[1]};
      tensor expected(dtype::f32, ys);
      for_each_index(ys, [&](const shape& o, i64 i) {
        double best = -9;
        taps_of(p, o, [&](bool inside, bool, i64 at) {
          if (inside) best = std::max(best, x.value(o[1] * p.in[0] * p.in[1] + at));
        });
        expected.set(i, best);
      });
      call c;
      c.name = "MaxPool";
      c.attrs.set("kernel_shape", p.kernel).set("strides", p.stride).set("auto_pad", mode);
      c.inputs = {x};
      c.outputs = {tensor(dtype::f32, ys)};
      REQUIRE(c.run() == sod2::errc::ok);
      check_close(c.outputs[0], expected, 0, 0);
    }
  call c;
  c.name = "AveragePool";
  c.attrs.set("kernel_shape", shape{2, 2});
  c.inputs = {tensor(dtype::f32, {0, 2, 4, 4})};
  c.outputs = {tensor(dtype::f32, {0, 2, 3, 3})};
  CHECK(c.run() == sod2::errc::ok);
}

TEST_CASE("global pools") {
  random_source rng;
  for (const shape& dims :
       {shape{2, 3, 5}, shape{1, 4, 17, 33}, shape{2, 2, 3, 4, 5}, shape{3, 1, 1, 1}})
    for (dtype type : {dtype::f32, dtype::f64})
      for (const char* name : {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}) {
        const tensor x = rng.fill(type, dims);
        shape ys(dims.size(), 1);
        ys[0] = dims[0];
        ys[1] = dims[1];
        tensor expected(type, ys);
        const i64 n = x.count() / (dims[0] * dims[1]);
        for (i64 p = 0; p < dims[0] * dims[1]; ++p) {
          double sum = 0, top = -9, square = 0;
          for (i64 i = 0; i < n; ++i) {
            const double v = x.value(p * n + i);
            sum += v;
            square += v * v;
            top = std::max(top, v);
          }
          const std::string k = name;
          expected.set(p, k == "GlobalMaxPool"  ? top
                          : k == "GlobalLpPool" ? std::sqrt(square)
                                                : sum / static_cast<double>(n));
        }
        for (const auto* table : targets()) {
          call c;
          c.table = table;
          c.name = name;
          c.inputs = {x};
          c.outputs = {tensor(type, ys)};
          REQUIRE(c.run() == sod2::errc::ok);
          check_close(c.outputs[0], expected);
        }
      }
}
