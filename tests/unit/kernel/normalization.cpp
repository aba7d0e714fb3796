#include "support.hpp"

using namespace kernel_test;

TEST_CASE("GroupNormalization with parameters per group and per channel") {
  random_source rng;
  for (dtype type : {dtype::f32, dtype::f64})
    for (const shape& dims : {shape{2, 6, 5, 3}, shape{1, 6, 17}, shape{3, 12}, shape{0, 6, 2},
                              shape{2, 6, 0}, shape{1, 6, 1, 1, 1}})
      for (i64 groups : {1, 2, 3, 6})
        for (int version : {18, 21})
          for (const auto* table : targets()) {
            const i64 C = dims[1], plane = count_of(dims) == 0 ? 0 : count_of(dims) / dims[0] / C;
            const shape parameters{version == 18 ? groups : C};
            const tensor x = rng.fill(type, dims, -2, 3), scale = rng.fill(type, parameters),
                         bias = rng.fill(type, parameters);
            tensor expected(type, dims);
            for (i64 i = 0; i < x.count(); ++i) {
              const i64 size = C / groups * plane, g = i / size;
              double mean = 0, var = 0;
              for (i64 k = 0; k < size; ++k) mean += x.value(g * size + k);
              mean /= static_cast<double>(size);
              for (i64 k = 0; k < size; ++k) var += std::pow(x.value(g * size + k) - mean, 2);
              const i64 p = version == 18 ? g % groups : i / plane % C;
              expected.set(i, (x.value(i) - mean) /
                                      std::sqrt(var / static_cast<double>(size) + 1e-3) *
                                      scale.value(p) +
                                  bias.value(p));
            }
            call c;
            c.table = table;
            c.name = "GroupNormalization";
            c.version = version;
            c.attrs.set("num_groups", groups).set("epsilon", 1e-3);
            c.inputs = {x, scale, bias};
            c.outputs = {tensor(type, dims)};
            c.threads = 2;
            REQUIRE(c.run() == sod2::errc::ok);
            check_close(c.outputs[0], expected, 1e-4, 1e-4);
          }
}

TEST_CASE("RMSNormalization with scales that broadcast") {
  random_source rng;
  const shape dims{3, 4, 37};
  for (dtype type : {dtype::f32, dtype::f64})
    for (i64 axis : {-1, 1, 0, -2})
      for (const shape& form : {shape{37}, shape{1}, shape{}, shape{4, 37}, shape{4, 1},
                                shape{3, 4, 37}, shape{3, 1, 1}}) {
        const tensor x = rng.fill(type, dims), scale = rng.fill(type, form);
        const std::size_t a = axis < 0 ? dims.size() - idx(-axis) : idx(axis);
        i64 n = 1;
        for (std::size_t d = a; d < 3; ++d) n *= dims[d];
        tensor expected(type, dims);
        for_each_index(dims, [&](const shape& at, i64 i) {
          double sum = 0;
          for (i64 k = 0; k < n; ++k) sum += std::pow(x.value(i / n * n + k), 2);
          expected.set(i, x.value(i) / std::sqrt(sum / static_cast<double>(n) + 1e-5) *
                              scale.value(broadcast_offset(form, at)));
        });
        call c;
        c.name = "RMSNormalization";
        c.version = 23;
        c.attrs.set("axis", axis);
        c.inputs = {x, scale};
        c.outputs = {tensor(type, dims)};
        REQUIRE(c.run() == sod2::errc::ok);
        check_close(c.outputs[0], expected);
      }
}

TEST_CASE("LpNormalization") {
  random_source rng;
  for (const shape& dims : {shape{3, 4, 5}, shape{7}, shape{2, 0, 3}, shape{1, 1}})
    for (int axis = -1; axis < static_cast<int>(dims.size()); ++axis)
      for (int p : {1, 2}) {
        const tensor x = rng.fill(dtype::f32, dims);
        const std::size_t a = axis < 0 ? dims.size() - 1 : static_cast<std::size_t>(axis);
        if (p == 1 && axis == 0 && dims.size() == 1)
          for (i64 i = 0; i < x.count(); ++i) x.set(i, 0);
        tensor expected(dtype::f32, dims);
        for_each_index(dims, [&](const shape& at, i64 i) {
          double sum = 0;
          shape q = at;
          for (q[a] = 0; q[a] < dims[a]; ++q[a])
            sum += std::pow(std::fabs(x.value(offset_of(dims, q))), p);
          sum = p == 1 ? sum : std::sqrt(sum);
          expected.set(i, sum == 0 ? 0 : x.value(i) / sum);
        });
        call c;
        c.name = "LpNormalization";
        c.attrs.set("axis", axis).set("p", p);
        c.inputs = {x};
        c.outputs = {tensor(dtype::f32, dims)};
        REQUIRE(c.run() == sod2::errc::ok);
        check_close(c.outputs[0], expected);
      }
}

TEST_CASE("MeanVarianceNormalization") {
  random_source rng;
  for (const shape& dims : {shape{2, 3, 4, 5}, shape{1, 1, 1, 7}, shape{2, 3, 0, 1}})
    for (const shape& axes : {shape{}, shape{0, 2, 3}, shape{1}, shape{-1, 0}, shape{0, 1, 2, 3}}) {
      const tensor x = rng.fill(dtype::f32, dims);
      shape row = dims;
      for (i64 a : axes.empty() ? shape{0, 2, 3} : axes) row[idx(a < 0 ? a + 4 : a)] = 1;
      std::vector<double> sum(idx(count_of(row))), var(sum), n(sum);
      const auto walk = [&](auto f) {
        for_each_index(dims, [&](const shape& at, i64 i) {
          f(idx(broadcast_offset(row, at)), x.value(i), i);
        });
      };
      walk([&](std::size_t r, double v, i64) {
        sum[r] += v;
        n[r] += 1;
      });
      walk([&](std::size_t r, double v, i64) { var[r] += std::pow(v - sum[r] / n[r], 2) / n[r]; });
      tensor expected(dtype::f32, dims);
      walk([&](std::size_t r, double v, i64 i) {
        expected.set(i, (v - sum[r] / n[r]) / (std::sqrt(var[r]) + 1e-9));
      });
      call c;
      c.name = "MeanVarianceNormalization";
      if (!axes.empty()) c.attrs.set("axes", axes);
      c.inputs = {x};
      c.outputs = {tensor(dtype::f32, dims)};
      c.threads = 2;
      REQUIRE(c.run() == sod2::errc::ok);
      check_close(c.outputs[0], expected, 1e-4, 1e-4);
    }
}

TEST_CASE("BatchNormalization in training mode: statistics of the batch, running ones beside") {
  random_source rng;
  for (const shape& dims : {shape{2, 3, 4, 5}, shape{5, 1}, shape{3, 7, 1}, shape{1, 2, 9, 1, 2}}) {
    const i64 channels = dims[1];
    const tensor x = rng.fill(dtype::f32, dims, -3, 5);
    const auto per_channel = [&](double lo) { return rng.fill(dtype::f32, {channels}, lo, 2); };
    const std::vector<tensor> in{x, per_channel(-2), per_channel(-2), per_channel(-2),
                                 per_channel(0.1)};
    tensor y(dtype::f32, dims), mean(dtype::f32, {channels}), variance(dtype::f32, {channels});
    for (i64 k = 0; k < channels; ++k) {
      double sum = 0, squares = 0, n = 0;
      for_each_index(dims, [&](const shape& at, i64 i) {
        if (at[1] != k) return;
        sum += x.value(i);
        squares += x.value(i) * x.value(i);
        n += 1;
      });
      const double m = sum / n, v = squares / n - m * m;
      for_each_index(dims, [&](const shape& at, i64 i) {
        if (at[1] == k)
          y.set(i, (x.value(i) - m) / std::sqrt(v + 0.01) * in[1].value(k) + in[2].value(k));
      });
      mean.set(k, in[3].value(k) * 0.75 + m * 0.25);
      variance.set(k, in[4].value(k) * 0.75 + v * 0.25);
    }
    call c;
    c.name = "BatchNormalization";
    c.version = 15;
    c.attrs.set("training_mode", i64{1}).set("epsilon", 0.01).set("momentum", 0.75);
    c.inputs = in;
    c.outputs = {tensor(dtype::f32, dims), tensor(dtype::f32, {channels}),
                 tensor(dtype::f32, {channels})};
    c.threads = 2;
    REQUIRE(c.run() == sod2::errc::ok);
    check_close(c.outputs[0], y, 1e-3, 1e-3);
    check_close(c.outputs[1], mean);
    check_close(c.outputs[2], variance, 1e-3, 1e-3);
  }
}
