#include "support.hpp"

#include <complex>

using namespace kernel_test;

namespace {
constexpr double two_pi = 6.283185307179586477;
}

TEST_CASE("DFT along every axis, forward and back, one-sided, cut and padded") {
  random_source rng;
  for (const shape& dims : {shape{2, 12, 1}, shape{2, 7, 3, 2}, shape{1, 1, 2}, shape{5, 16, 1},
                            shape{0, 4, 2}, shape{1, 31, 2}})
    for (std::size_t axis = 0; axis + 1 < dims.size(); ++axis)
      for (int form = 0; form < 3; ++form)
        for (i64 change : {0, -1, 3})
          for (dtype type : {dtype::f32, dtype::f64}) {
            const bool inverse = form == 1, one_sided = form == 2;
            const i64 n = dims[axis] + change, parts = dims.back();
            if (n < 1) continue;
            shape out = dims;
            out[axis] = one_sided ? n / 2 + 1 : n;
            out.back() = 2;
            const tensor x = rng.fill(type, dims);
            if (one_sided)  // of real signals only
              for (i64 i = 1; parts == 2 && i < x.count(); i += 2) x.set(i, 0);
            tensor expected(type, out);
            for_each_index(out, [&](const shape& at, i64 i) {
              std::complex<double> sum;
              for (i64 k = 0; k < std::min(n, dims[axis]); ++k) {
                shape p = at;
                p[axis] = k;
                p.back() = 0;
                const i64 o = offset_of(dims, p);
                const std::complex<double> v(x.value(o), parts == 2 ? x.value(o + 1) : 0);
                sum += v * std::polar(1.0, (inverse ? two_pi : -two_pi) *
                                               static_cast<double>(k * at[axis]) /
                                               static_cast<double>(n));
              }
              if (inverse) sum /= static_cast<double>(n);
              expected.set(i, at.back() == 0 ? sum.real() : sum.imag());
            });
            for (int version : {17, 20}) {
              call c;
              c.name = "DFT";
              c.version = version;
              c.attrs.set("inverse", inverse ? 1 : 0).set("onesided", one_sided ? 1 : 0);
              c.inputs = {x};
              if (change != 0 || version == 20)
                c.inputs.push_back(change != 0 ? tensor::of<i64>({}, {n}) : tensor());
              if (version == 20)
                c.inputs.push_back(tensor::of<i64>({}, {static_cast<i64>(axis)}));
              else
                c.attrs.set("axis", static_cast<i64>(axis));
              c.outputs = {tensor(type, out)};
              c.threads = 2;
              REQUIRE(c.run() == sod2::errc::ok);
              check_close(c.outputs[0], expected, 1e-4, 1e-5);
            }
          }
}

TEST_CASE("DFT: a one-sided inverse undoes a one-sided transform") {
  random_source rng;
  for (i64 n : {8, 9, 2, 30}) {
    const tensor x = rng.fill(dtype::f64, {2, n, 1}), half(dtype::f64, {2, n / 2 + 1, 2});
    call c;
    c.name = "DFT";
    c.version = 20;
    c.attrs.set("onesided", 1);
    c.inputs = {x};
    c.outputs = {half};
    REQUIRE(c.run() == sod2::errc::ok);
    c.attrs.set("inverse", 1);
    c.inputs = {half, tensor::of<i64>({}, {n})};
    if (n % 2 == 0) c.inputs.pop_back();
    c.outputs = {tensor(dtype::f64, {2, n, 1})};
    REQUIRE(c.run() == sod2::errc::ok);
    check_close(c.outputs[0], x, 1e-9, 1e-9);
  }
}

TEST_CASE("STFT") {
  random_source rng;
  for (i64 n : {1, 4, 7, 16})
    for (i64 step : {1, 3})
      for (int form = 0; form < 8; ++form) {
        const bool one_sided = (form & 1) != 0, windowed = (form & 2) != 0;
        const i64 parts = (form & 4) != 0 && !one_sided ? 2 : 1, length = 20;
        const i64 frames = (length - n) / step + 1, bins = one_sided ? n / 2 + 1 : n;
        const tensor x = rng.fill(dtype::f32, {2, length, parts}), w = rng.fill(dtype::f32, {n});
        tensor expected(dtype::f32, {2, frames, bins, 2});
        for_each_index(expected.dims(), [&](const shape& at, i64 i) {
          std::complex<double> sum;
          for (i64 k = 0; k < n; ++k) {
            const i64 o = (at[0] * length + at[1] * step + k) * parts;
            const std::complex<double> v(x.value(o), parts == 2 ? x.value(o + 1) : 0);
            sum +=
                v * (windowed ? w.value(k) : 1.0) *
                std::polar(1.0, -two_pi * static_cast<double>(k * at[2]) / static_cast<double>(n));
          }
          expected.set(i, at[3] == 0 ? sum.real() : sum.imag());
        });
        call c;
        c.name = "STFT";
        c.version = 17;
        c.attrs.set("onesided", one_sided ? 1 : 0);
        c.inputs = {x, tensor::of<i64>({}, {step}), windowed ? w : tensor()};
        if (!windowed) c.inputs.push_back(tensor::of<i64>({}, {n}));
        c.outputs = {tensor(dtype::f32, expected.dims())};
        c.threads = 2;
        REQUIRE(c.run() == sod2::errc::ok);
        check_close(c.outputs[0], expected, 1e-4, 1e-4);
      }
}

TEST_CASE("windows") {
  for (i64 size : {0, 1, 2, 9, 10})
    for (bool periodic : {true, false}) {
      const double n = static_cast<double>(periodic ? size : std::max<i64>(size - 1, 1));
      for (int kind = 0; kind < 3; ++kind) {
        tensor expected(dtype::f64, {size});
        for (i64 k = 0; k < size; ++k) {
          const double half = two_pi / 2 * static_cast<double>(k) / n, sine = std::sin(half);
          const double c = std::cos(2 * half), hann = sine * sine;
          expected.set(k, kind == 0   ? hann
                          : kind == 1 ? (25 - 21 * c) / 46
                                      : 0.42 - 0.5 * c + 0.08 * (2 * c * c - 1));
          if (size == 1 && !periodic) expected.set(k, 1);
        }
        call c;
        c.name = kind == 0 ? "HannWindow" : kind == 1 ? "HammingWindow" : "BlackmanWindow";
        c.version = 17;
        c.attrs.set("periodic", periodic ? 1 : 0);
        c.inputs = {tensor::of<i64>({}, {size})};
        c.outputs = {tensor(dtype::f64, {size})};
        REQUIRE(c.run() == sod2::errc::ok);
        check_close(c.outputs[0], expected, 1e-9, 1e-9);
      }
    }
}

TEST_CASE("MelWeightMatrix: triangles that meet") {
  // The example of the specification.
  call c;
  c.name = "MelWeightMatrix";
  c.version = 17;
  c.inputs = {tensor::of<i64>({}, {8}), tensor::of<i64>({}, {16}), tensor::of<i64>({}, {8192}),
              tensor::scalar(0), tensor::scalar(4096)};
  c.outputs = {tensor(dtype::f32, {9, 8})};
  REQUIRE(c.run() == sod2::errc::ok);
  const float expected[9][8] = {
      {1, 1, 0, 0, 0, 0, 0, 0}, {0, 0, 1, 1, 0, 0, 0, 0}, {0, 0, 0, 0, 1, 0, 0, 0},
      {0, 0, 0, 0, 0, 1, 0, 0}, {0, 0, 0, 0, 0, 0, 1, 0}, {0, 0, 0, 0, 0, 0, 0, 1},
      {0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0}};
  for (i64 i = 0; i < 72; ++i) CHECK(c.outputs[0].at<float>(i) == expected[i / 8][i % 8]);
  c.inputs = {tensor::of<i64>({}, {5}), tensor::of<i64>({}, {512}), tensor::of<i64>({}, {16000}),
              tensor::scalar(80), tensor::scalar(7000)};
  c.outputs = {tensor(dtype::f32, {257, 5})};
  REQUIRE(c.run() == sod2::errc::ok);
  for (i64 b = 0; b < 5; ++b) {
    double top = 0;
    i64 where = 0;
    for (i64 i = 0; i < 257; ++i)
      if (c.outputs[0].value(i * 5 + b) > top) {
        top = c.outputs[0].value(i * 5 + b);
        where = i;
      }
    CHECK(top == 1);
    // Where one triangle peaks, its neighbours have come down to zero.
    if (b > 0) CHECK(c.outputs[0].value(where * 5 + b - 1) == 0);
  }
}
