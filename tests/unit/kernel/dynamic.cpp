#include "support.hpp"

#include <algorithm>
#include <array>

using namespace kernel_test;

TEST_CASE("Compress along axes and flattened") {
  random_source rng;
  for (dtype type : {dtype::f32, dtype::u8, dtype::i64})
    for (const shape& dims : {shape{3, 4, 5}, shape{7}, shape{1, 1}, shape{2, 0, 3}, shape{17, 3}})
      for (int axis = -static_cast<int>(dims.size()); axis <= static_cast<int>(dims.size()); ++axis)
        for (i64 extra : {-1, 0, 2}) {
          const bool along = axis < static_cast<int>(dims.size());
          const std::size_t a = axis < 0 ? dims.size() - idx(-axis) : along ? idx(axis) : 0;
          const i64 n = along ? dims[a] : count_of(dims);
          const tensor x = rng.fill(type, dims, 0, 100);
          const tensor condition = rng.fill(dtype::boolean, {std::max<i64>(n + extra, 0)}, 0, 1);
          std::vector<i64> kept;
          for (i64 i = 0; i < std::min(n, condition.count()); ++i)
            if (condition.value(i) != 0) kept.push_back(i);
          const i64 count = static_cast<i64>(kept.size());
          shape bound = along ? dims : shape{n}, out = bound;
          out[a] = count;
          i64 reported = -1;
          call c;
          c.name = "Compress";
          if (along) c.attrs.set("axis", axis);
          c.inputs = {x, condition};
          c.outputs = {tensor(type, bound)};
          c.counts = &reported;
          REQUIRE(c.run() == sod2::errc::ok);
          REQUIRE(reported == count);
          for_each_index(out, [&](const shape& at, i64 i) {
            shape p = at;
            p[a] = kept[idx(at[a])];
            CHECK(c.outputs[0].value(i) == x.value(along ? offset_of(dims, p) : p[0]));
          });
          if (count == 0) continue;
          bound[a] = count - 1;
          c.outputs = {tensor(type, bound)};
          CHECK(c.run() == sod2::errc::buffer_too_small);
        }
}

TEST_CASE("Unique: every output, sorted or in order of appearance, along axes") {
  random_source rng;
  for (dtype type : {dtype::f32, dtype::u8, dtype::i64, dtype::f64})
    for (const shape& dims : {shape{6}, shape{1}, shape{0}, shape{37}, shape{5, 2}, shape{2, 7, 2},
                              shape{3, 0}, shape{}})
      for (int axis = -static_cast<int>(dims.size()); axis <= static_cast<int>(dims.size()); ++axis)
        for (bool sorted : {true, false}) {
          const bool along = axis < static_cast<int>(dims.size());
          const std::size_t a = axis < 0 ? dims.size() - idx(-axis) : along ? idx(axis) : 0;
          const i64 n = along ? dims[a] : count_of(dims);
          const tensor x = rng.fill(type, dims, 0, 2);
          if (type == dtype::f32 || type == dtype::f64)
            for (i64 i = 0; i < x.count(); ++i)
              x.set(i, std::floor(x.value(i) * 1.5) + (rng.integer(0, 9) == 0 ? NAN : 0));
          // Slices as lists; NaN as a number above all others.
          std::vector<std::vector<double>> slices(idx(n));
          for_each_index(dims, [&](const shape& at, i64 i) {
            const double v = x.value(i);
            slices[idx(along ? at[a] : i)].push_back(std::isnan(v) ? 1e9 : v);
          });
          std::vector<std::vector<double>> kinds;
          for (const auto& v : slices)
            if (std::find(kinds.begin(), kinds.end(), v) == kinds.end()) kinds.push_back(v);
          if (sorted) std::sort(kinds.begin(), kinds.end());
          const i64 u = static_cast<i64>(kinds.size());
          shape bound = along ? dims : shape{n}, out = bound;
          out[a] = u;
          i64 reported[4] = {-1, -1, -1, -1};
          call c;
          c.name = "Unique";
          c.version = 11;
          c.attrs.set("sorted", sorted ? 1 : 0);
          if (along) c.attrs.set("axis", axis);
          c.inputs = {x};
          c.outputs = {tensor(type, bound), tensor(dtype::i64, {n}), tensor(dtype::i64, {n}),
                       tensor(dtype::i64, {n})};
          c.counts = reported;
          REQUIRE(c.run() == sod2::errc::ok);
          REQUIRE(reported[0] == u);
          CHECK((reported[1] == u && reported[3] == u));
          for (i64 k = 0; k < u; ++k) {
            const auto at = std::find(slices.begin(), slices.end(), kinds[idx(k)]);
            CHECK(c.outputs[1].at<i64>(k) == at - slices.begin());
            CHECK(c.outputs[3].at<i64>(k) ==
                  std::count(slices.begin(), slices.end(), kinds[idx(k)]));
          }
          for (i64 i = 0; i < n; ++i) CHECK(kinds[idx(c.outputs[2].at<i64>(i))] == slices[idx(i)]);
          std::vector<std::size_t> next(idx(u), 0);
          for_each_index(out, [&](const shape& at, i64 i) {
            const std::size_t k = idx(along ? at[a] : i);
            const double v = c.outputs[0].value(i);
            CHECK((std::isnan(v) ? 1e9 : v) == kinds[k][next[k]++]);
          });
          c.outputs = {tensor(type, bound), tensor(), tensor(dtype::i64, {n})};
          CHECK(c.run() == sod2::errc::ok);
          c.outputs = {tensor(type, bound)};
          CHECK(c.run() == sod2::errc::ok);
        }
}

TEST_CASE("NonMaxSuppression") {
  random_source rng;
  for (int round = 0; round < 120; ++round) {
    const i64 batches = rng.integer(0, 2), classes = rng.integer(1, 3);
    const i64 n = round % 10 == 0 ? 0 : rng.extent(33);
    const bool centered = rng.integer(0, 1) == 1;
    const i64 limit = rng.integer(0, 6);
    const double iou = rng.real(0, 0.6), least = rng.real(0, 0.6);
    const bool given = rng.integer(0, 1) == 1;
    const tensor boxes = rng.fill(dtype::f32, {batches, n, 4}, 0, 1);
    const tensor scores = rng.fill(dtype::f32, {batches, classes, n}, 0, 1);
    for (i64 i = 0; i + 1 < scores.count(); i += 5) scores.set(i + 1, scores.value(i));
    // Repeatedly takes the best box that is left and removes what it covers.
    std::vector<std::array<i64, 3>> expected;
    const auto corners = [&](i64 b, i64 i) {
      std::array<double, 4> v{};
      for (i64 k = 0; k < 4; ++k) v[idx(k)] = boxes.value((b * n + i) * 4 + k);
      if (centered) v = {v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2};
      return std::array<double, 4>{std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]),
                                   std::max(v[1], v[3])};
    };
    bool close = false;  // a ratio within rounding of the threshold decides nothing
    for (i64 b = 0; b < batches; ++b)
      for (i64 k = 0; k < classes; ++k) {
        std::vector<i64> left;
        for (i64 i = 0; i < n; ++i)
          if (!given || scores.value((b * classes + k) * n + i) > static_cast<float>(least))
            left.push_back(i);
        for (i64 taken = 0; taken < limit && !left.empty(); ++taken) {
          i64 best = left[0];
          for (i64 i : left)
            if (scores.value((b * classes + k) * n + i) >
                scores.value((b * classes + k) * n + best))
              best = i;
          expected.push_back({b, k, best});
          std::vector<i64> rest;
          for (i64 i : left) {
            const auto p = corners(b, best), q = corners(b, i);
            const double w = std::min(p[2], q[2]) - std::max(p[0], q[0]);
            const double h = std::min(p[3], q[3]) - std::max(p[1], q[1]);
            const double shared = std::max(w, 0.0) * std::max(h, 0.0);
            const double whole = (p[2] - p[0]) * (p[3] - p[1]) + (q[2] - q[0]) * (q[3] - q[1]);
            const double ratio = shared / (whole - shared);
            close = close || std::fabs(ratio - iou) < 1e-5;
            if (i != best && !(ratio > iou)) rest.push_back(i);
          }
          left = rest;
        }
      }
    const i64 bound = batches * classes * std::min(limit, n);
    i64 count = -1;
    call c;
    c.name = "NonMaxSuppression";
    c.version = 11;
    c.attrs.set("center_point_box", centered ? 1 : 0);
    c.inputs = {boxes, scores, tensor::ints({limit}),
                tensor::of<float>({1}, {static_cast<float>(iou)})};
    if (given) c.inputs.push_back(tensor::of<float>({1}, {static_cast<float>(least)}));
    c.outputs = {tensor(dtype::i64, {bound, 3})};
    c.counts = &count;
    REQUIRE(c.run() == sod2::errc::ok);
    if (close) continue;
    REQUIRE(count == static_cast<i64>(expected.size()));
    for (i64 i = 0; i < count * 3; ++i)
      CHECK(c.outputs[0].at<i64>(i) == expected[idx(i / 3)][idx(i % 3)]);
  }
}
