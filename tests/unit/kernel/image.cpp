#include "support.hpp"

#include <algorithm>

using namespace kernel_test;

namespace {

/// Bilinear interpolation by tent functions over the whole image, clamped to its border.
double tent(const tensor& x, i64 plane, i64 H, i64 W, double y, double c, bool maximum) {
  if (y < -1 || y > static_cast<double>(H) || c < -1 || c > static_cast<double>(W)) return 0;
  y = std::min(std::max(y, 0.0), static_cast<double>(H - 1));
  c = std::min(std::max(c, 0.0), static_cast<double>(W - 1));
  double sum = 0, top = -1e30;
  int corners = 0;
  for (i64 i = 0; i < H; ++i)
    for (i64 j = 0; j < W; ++j) {
      const double w = std::max(0.0, 1 - std::fabs(y - static_cast<double>(i))) *
                       std::max(0.0, 1 - std::fabs(c - static_cast<double>(j)));
      if (w <= 0) continue;
      ++corners;
      sum += w * x.value((plane * H + i) * W + j);
      top = std::max(top, w * x.value((plane * H + i) * W + j));
    }
  // Corners without weight count as zero.
  return maximum ? (corners < 4 ? std::max(top, 0.0) : top) : sum;
}

double reflected(double v, double lo, double hi) {
  if (hi <= lo) return lo;
  while (v < lo || v > hi) v = v < lo ? 2 * lo - v : 2 * hi - v;
  return v;
}

}  // namespace

TEST_CASE("RoiAlign in every mode") {
  random_source rng;
  for (int round = 0; round < 160; ++round) {
    const i64 N = rng.integer(1, 3), C = rng.integer(1, 3), H = rng.integer(1, 9),
              W = rng.integer(1, 9), R = round % 10 == 0 ? 0 : rng.integer(1, 4);
    const i64 h = rng.integer(1, 3), w = rng.integer(1, 3), ratio = rng.integer(0, 2);
    const bool maximum = rng.integer(0, 1) == 1;
    const int version = rng.integer(0, 1) == 1 ? 10 : 16;
    const bool half = version == 16 && rng.integer(0, 2) != 0;
    const dtype type = round % 2 == 0 ? dtype::f64 : dtype::f32;
    const double scale = 0.5;
    const tensor x = rng.fill(type, {N, C, H, W});
    tensor rois = rng.fill(type, {R, 4}, -4, 22);
    for (i64 r = 0; r < R; ++r)
      if (rng.integer(0, 4) != 0)
        for (i64 k = 0; k < 2; ++k)
          if (rois.value(r * 4 + k) > rois.value(r * 4 + k + 2)) {
            const double v = rois.value(r * 4 + k);
            rois.set(r * 4 + k, rois.value(r * 4 + k + 2));
            rois.set(r * 4 + k + 2, v);
          }
    const tensor batch = rng.fill(dtype::i64, {R}, 0, static_cast<double>(N - 1));
    tensor expected(type, {R, C, h, w});
    for_each_index(expected.dims(), [&](const shape& at, i64 i) {
      const i64 r = at[0];
      const double shift = half ? 0.5 : 0;
      double edge[4], size[2];
      for (i64 k = 0; k < 4; ++k) edge[k] = rois.value(r * 4 + k) * scale - shift;
      for (i64 k = 0; k < 2; ++k) {
        size[k] = edge[k + 2] - edge[k];
        if (!half) size[k] = std::max(size[k], 1.0);
      }
      const double bh = size[1] / static_cast<double>(h), bw = size[0] / static_cast<double>(w);
      const i64 gh = ratio > 0 ? ratio : std::max<i64>(0, static_cast<i64>(std::ceil(bh)));
      const i64 gw = ratio > 0 ? ratio : std::max<i64>(0, static_cast<i64>(std::ceil(bw)));
      double sum = 0, top = -1e30;
      for (i64 a = 0; a < gh; ++a)
        for (i64 b = 0; b < gw; ++b) {
          const double y = edge[1] + bh * (static_cast<double>(at[2]) +
                                           (static_cast<double>(a) + .5) / static_cast<double>(gh));
          const double c = edge[0] + bw * (static_cast<double>(at[3]) +
                                           (static_cast<double>(b) + .5) / static_cast<double>(gw));
          const double v = tent(x, batch.at<i64>(r) * C + at[1], H, W, y, c, maximum);
          sum += v;
          top = std::max(top, v);
        }
      if (gh * gw == 0) top = 0;
      expected.set(i, maximum ? top : sum / static_cast<double>(std::max<i64>(gh * gw, 1)));
    });
    call c;
    c.name = "RoiAlign";
    c.version = version;
    c.attrs.set("mode", maximum ? "max" : "avg").set("output_height", h).set("output_width", w);
    c.attrs.set("sampling_ratio", ratio).set("spatial_scale", scale);
    if (version == 16 && !half) c.attrs.set("coordinate_transformation_mode", "output_half_pixel");
    c.inputs = {x, rois, batch};
    c.outputs = {tensor(type, {R, C, h, w})};
    c.threads = 2;
    INFO("round ", round);
    REQUIRE(c.run() == sod2::errc::ok);
    // Exact on a lattice of doubles; float32 may round a sample across a border.
    if (type == dtype::f64) check_close(c.outputs[0], expected, 1e-6, 1e-6);
    if (R > 0) {
      batch.set(0, static_cast<double>(N));
      CHECK(c.run() == sod2::errc::index_range);
    }
  }
}

TEST_CASE("MaxRoiPool") {
  random_source rng;
  for (int round = 0; round < 40; ++round) {
    const i64 N = 2, C = 3, H = rng.integer(1, 9), W = rng.integer(1, 9), R = rng.integer(0, 4);
    const i64 h = rng.integer(1, 3), w = rng.integer(1, 4);
    const tensor x = rng.fill(dtype::f32, {N, C, H, W});
    tensor rois = rng.fill(dtype::f32, {R, 5}, -2, 12);
    for (i64 r = 0; r < R; ++r) rois.set(r * 5, static_cast<double>(rng.integer(0, N - 1)));
    tensor expected(dtype::f32, {R, C, h, w});
    for_each_index(expected.dims(), [&](const shape& at, i64 i) {
      double lo[2], bin[2];
      for (i64 k = 0; k < 2; ++k) {
        lo[k] = std::round(rois.value(at[0] * 5 + 1 + k) * 0.5);
        bin[k] = std::max(1.0, std::round(rois.value(at[0] * 5 + 3 + k) * 0.5) - lo[k] + 1) /
                 static_cast<double>(k == 0 ? w : h);
      }
      double top = -1e30;
      bool any = false;
      for (i64 y = 0; y < H; ++y)
        for (i64 c = 0; c < W; ++c) {
          const double py = static_cast<double>(at[2]), px = static_cast<double>(at[3]);
          const double dy = static_cast<double>(y) - lo[1], dx = static_cast<double>(c) - lo[0];
          if (dy < std::floor(py * bin[1]) || dy >= std::ceil((py + 1) * bin[1]) ||
              dx < std::floor(px * bin[0]) || dx >= std::ceil((px + 1) * bin[0]))
            continue;
          any = true;
          const i64 n = static_cast<i64>(rois.value(at[0] * 5));
          top = std::max(top, x.value(((n * C + at[1]) * H + y) * W + c));
        }
      expected.set(i, any ? top : 0);
    });
    call c;
    c.name = "MaxRoiPool";
    c.attrs.set("pooled_shape", shape{h, w}).set("spatial_scale", 0.5);
    c.inputs = {x, rois};
    c.outputs = {tensor(dtype::f32, {R, C, h, w})};
    REQUIRE(c.run() == sod2::errc::ok);
    check_equal(c.outputs[0], expected);
  }
}

TEST_CASE("GridSample in every mode, 1 to 3 spatial axes") {
  random_source rng;
  const char* const modes[] = {"nearest", "linear", "cubic"};
  const char* const paddings[] = {"zeros", "border", "reflection"};
  for (std::size_t rank = 1; rank <= 3; ++rank)
    for (int mode = 0; mode < 3; ++mode)
      for (int padding = 0; padding < 3; ++padding)
        for (bool align : {false, true})
          for (int size = 0; size < 3; ++size) {
            shape in{2, 3}, grid{2}, out{2, 3};
            for (std::size_t d = 0; d < rank; ++d) {
              in.push_back(size == 0 ? 1 : rng.integer(2, 5));
              grid.push_back(size == 1 && d == 0 ? 0 : rng.integer(1, 4));
              out.push_back(grid.back());
            }
            grid.push_back(static_cast<i64>(rank));
            const tensor x = rng.fill(dtype::f64, in), g = rng.fill(dtype::f64, grid, -1.9, 1.9);
            tensor expected(dtype::f64, out);
            for_each_index(out, [&](const shape& at, i64 i) {
              shape point{at[0]};
              for (std::size_t d = 0; d < rank; ++d) point.push_back(at[d + 2]);
              // Weight of every element of every axis.
              std::vector<std::vector<double>> weight;
              for (std::size_t d = 0; d < rank; ++d) {
                shape q = point;
                q.push_back(static_cast<i64>(rank - 1 - d));
                const i64 n = in[d + 2];
                const double len = static_cast<double>(n), v = g.value(offset_of(grid, q));
                const double lo = align ? 0 : -.5, hi = align ? len - 1 : len - .5;
                double p = align ? (v + 1) / 2 * (len - 1) : ((v + 1) * len - 1) / 2;
                if (mode == 0) p = std::nearbyint(p);
                if (padding == 1) p = std::min(std::max(p, 0.0), len - 1);
                if (padding == 2) p = reflected(p, lo, hi);
                std::vector<double> w(idx(n), 0.0);
                for (i64 k = -8; k < n + 8; ++k) {
                  const double t = std::fabs(p - static_cast<double>(k)), a = -.75;
                  double f = mode == 0 ? (t < .5 ? 1 : 0) : std::max(0.0, 1 - t);
                  if (mode == 2)
                    f = t <= 1  ? (a + 2) * t * t * t - (a + 3) * t * t + 1
                        : t < 2 ? a * t * t * t - 5 * a * t * t + 8 * a * t - 4 * a
                                : 0;
                  i64 where = k;
                  if (k < 0 || k >= n) {
                    if (padding == 0) continue;
                    where = padding == 1 ? (k < 0 ? 0 : n - 1)
                                         : static_cast<i64>(std::nearbyint(
                                               reflected(static_cast<double>(k), lo, hi)));
                  }
                  w[idx(std::min(where, n - 1))] += f;
                }
                weight.push_back(w);
              }
              double sum = 0;
              const shape spatial(in.begin() + 2, in.end());
              for_each_index(spatial, [&](const shape& s, i64 k) {
                double w = 1;
                for (std::size_t d = 0; d < rank; ++d) w *= weight[d][idx(s[d])];
                sum += w * x.value((at[0] * 3 + at[1]) * count_of(spatial) + k);
              });
              expected.set(i, sum);
            });
            call c;
            c.name = "GridSample";
            c.version = 20;
            c.attrs.set("mode", modes[mode]).set("padding_mode", paddings[padding]);
            c.attrs.set("align_corners", align ? 1 : 0);
            c.inputs = {x, g};
            c.outputs = {tensor(dtype::f64, out)};
            c.threads = 2;
            INFO(rank, " ", modes[mode], " ", paddings[padding], " ", align, " ", size);
            REQUIRE(c.run() == sod2::errc::ok);
            check_close(c.outputs[0], expected, 1e-6, 1e-6);
          }
}

TEST_CASE("AffineGrid") {
  random_source rng;
  for (const shape& out :
       {shape{2, 3, 4, 2}, shape{1, 1, 5, 2}, shape{2, 2, 1, 3, 3}, shape{0, 2, 2, 2}})
    for (bool align : {false, true}) {
      const i64 r = out.back();
      const tensor theta = rng.fill(dtype::f32, {out[0], r, r + 1});
      tensor expected(dtype::f32, out);
      for_each_index(out, [&](const shape& at, i64 i) {
        double v = theta.value((at[0] * r + at.back()) * (r + 1) + r);
        for (i64 k = 0; k < r; ++k) {  // coordinate k walks the k-th axis from the end
          const std::size_t d = idx(r - k);
          const double n = static_cast<double>(out[d]), p = static_cast<double>(at[d]);
          const double x = align ? (n > 1 ? -1 + 2 * p / (n - 1) : 0) : -1 + (2 * p + 1) / n;
          v += x * theta.value((at[0] * r + at.back()) * (r + 1) + k);
        }
        expected.set(i, v);
      });
      call c;
      c.name = "AffineGrid";
      c.version = 20;
      c.attrs.set("align_corners", align ? 1 : 0);
      c.inputs = {theta, tensor::ints(out)};
      c.outputs = {tensor(dtype::f32, out)};
      REQUIRE(c.run() == sod2::errc::ok);
      check_close(c.outputs[0], expected);
    }
}

TEST_CASE("MaxUnpool puts values where the pool found them") {
  random_source rng;
  for (bool larger : {false, true})
    for (const shape& dims :
         {shape{2, 3, 2, 4}, shape{1, 1, 3}, shape{1, 2, 2, 2, 2}, shape{0, 1, 2, 2}}) {
      const std::size_t rank = dims.size() - 2;
      shape inner = dims;
      for (std::size_t d = 2; d < dims.size(); ++d) inner[d] = dims[d] * 2;
      shape out = inner;
      if (larger)
        for (std::size_t d = 2; d < dims.size(); ++d) out[d] += static_cast<i64>(d) - 1;
      const tensor x = rng.fill(dtype::f32, dims);
      tensor where(dtype::i64, dims), expected(dtype::f32, out);
      for (i64 i = 0; i < expected.count(); ++i) expected.set(i, 0);
      for_each_index(dims, [&](const shape& at, i64 i) {
        shape p = at;
        for (std::size_t d = 2; d < dims.size(); ++d) p[d] = at[d] * 2 + rng.integer(0, 1);
        where.set(i, static_cast<double>(offset_of(inner, p)));
        expected.set(offset_of(out, p), x.value(i));
      });
      call c;
      c.name = "MaxUnpool";
      c.version = 11;
      c.attrs.set("kernel_shape", shape(rank, 2)).set("strides", shape(rank, 2));
      c.inputs = {x, where};
      if (larger) c.inputs.push_back(tensor::ints(out));
      c.outputs = {tensor(dtype::f32, out)};
      REQUIRE(c.run() == sod2::errc::ok);
      check_equal(c.outputs[0], expected);
      if (x.count() == 0) continue;
      where.set(0, static_cast<double>(count_of(inner)));
      CHECK(c.run() == sod2::errc::index_range);
    }
}

TEST_CASE("CenterCropPad and Col2Im") {
  random_source rng;
  for (int round = 0; round < 60; ++round) {
    shape in, out;
    for (i64 d = rng.integer(1, 4); d > 0; --d) {
      in.push_back(rng.integer(0, 6));
      out.push_back(rng.integer(0, 6));
    }
    const dtype type = round % 2 == 0 ? dtype::f32 : dtype::u8;
    const tensor x = rng.fill(type, in, 0, 9);
    tensor expected(type, out);
    for_each_index(out, [&](const shape& at, i64 i) {
      shape p = at;
      bool inside = true;
      for (std::size_t d = 0; d < in.size(); ++d) {
        p[d] += in[d] > out[d] ? (in[d] - out[d]) / 2 : -((out[d] - in[d]) / 2);
        inside = inside && p[d] >= 0 && p[d] < in[d];
      }
      expected.set(i, inside ? x.value(offset_of(in, p)) : 0);
    });
    call c;
    c.name = "CenterCropPad";
    c.version = 18;
    c.inputs = {x, tensor::ints(out)};
    c.outputs = {tensor(type, out)};
    REQUIRE(c.run() == sod2::errc::ok);
    check_equal(c.outputs[0], expected);
  }
  for (int round = 0; round < 60; ++round) {
    const std::size_t rank = idx(rng.integer(1, 3));
    const i64 N = rng.integer(0, 2), C = rng.integer(1, 2);
    shape image, block, stride, dilation, pads(2 * rank), steps, out{N, C};
    for (std::size_t d = 0; d < rank; ++d) {
      image.push_back(rng.integer(3, 6));
      block.push_back(rng.integer(1, 3));
      stride.push_back(rng.integer(1, 2));
      dilation.push_back(rng.integer(1, 2));
      pads[d] = rng.integer(1, 2);
      pads[d + rank] = rng.integer(1, 2);
      steps.push_back(
          (image[d] + pads[d] + pads[d + rank] - dilation[d] * (block[d] - 1) - 1) / stride[d] + 1);
      out.push_back(image[d]);
    }
    const i64 taps = count_of(block), length = count_of(steps);
    const tensor x = rng.fill(dtype::f64, {N, C * taps, length});
    tensor expected(dtype::f64, out);
    for (i64 i = 0; i < expected.count(); ++i) expected.set(i, 0);
    for_each_index(x.dims(), [&](const shape& at, i64 i) {  // scatters; the kernel gathers
      i64 tap = at[1] % taps, l = at[2];
      shape p(rank + 2);
      p[0] = at[0];
      p[1] = at[1] / taps;
      for (std::size_t d = rank; d-- > 0;) {
        p[d + 2] = l % steps[d] * stride[d] + tap % block[d] * dilation[d] - pads[d];
        l /= steps[d];
        tap /= block[d];
      }
      for (std::size_t d = 0; d < rank; ++d)
        if (p[d + 2] < 0 || p[d + 2] >= image[d]) return;
      const i64 o = offset_of(out, p);
      expected.set(o, expected.value(o) + x.value(i));
    });
    call c;
    c.name = "Col2Im";
    c.version = 18;
    c.attrs.set("strides", stride).set("dilations", dilation).set("pads", pads);
    c.inputs = {x, tensor::ints(image), tensor::ints(block)};
    c.outputs = {tensor(dtype::f64, out)};
    c.threads = 2;
    REQUIRE(c.run() == sod2::errc::ok);
    check_close(c.outputs[0], expected);
  }
}

TEST_CASE("DeformConv") {
  random_source rng;
  for (int round = 0; round < 60; ++round) {
    const std::size_t rank = round % 3 == 0 ? idx(rng.integer(1, 3)) : 2;
    const i64 N = rng.integer(0, 2), G = rng.integer(1, 2), O = rng.integer(1, 2),
              depth = 2 * rng.integer(1, 2), M = G * rng.integer(1, 3), C = G * depth;
    shape xs{N, C}, ws{M, depth}, ys{N, M}, stride, dilation, pads(2 * rank), kernel;
    for (std::size_t d = 0; d < rank; ++d) {
      xs.push_back(rng.integer(3, 5));
      kernel.push_back(rng.integer(1, 2));
      ws.push_back(kernel[d]);
      stride.push_back(rng.integer(1, 2));
      dilation.push_back(rng.integer(1, 2));
      pads[d] = rng.integer(0, 1);
      pads[d + rank] = rng.integer(0, 1);
      ys.push_back((xs[d + 2] + pads[d] + pads[d + rank] - dilation[d] * (kernel[d] - 1) - 1) /
                       stride[d] +
                   1);
    }
    const i64 taps = count_of(kernel), axes = static_cast<i64>(rank);
    shape os = ys, ms = ys;
    os[1] = O * taps * axes;
    ms[1] = O * taps;
    const tensor x = rng.fill(dtype::f64, xs), w = rng.fill(dtype::f64, ws),
                 offset = rng.fill(dtype::f64, os, -1.5, 1.5), mask = rng.fill(dtype::f64, ms),
                 bias = rng.fill(dtype::f64, {M});
    const bool masked = rng.integer(0, 1) == 1, biased = rng.integer(0, 1) == 1;
    tensor expected(dtype::f64, ys);
    for_each_index(ys, [&](const shape& at, i64 i) {
      double sum = biased ? bias.value(at[1]) : 0;
      for_each_index(shape(ws.begin() + 1, ws.end()), [&](const shape& t, i64 k) {
        const i64 channel = at[1] / (M / G) * depth + t[0], set = channel / (C / O);
        const i64 tap = offset_of(kernel, shape(t.begin() + 1, t.end()));
        std::vector<double> point;
        shape q = at;
        for (std::size_t d = 0; d < rank; ++d) {
          q[1] = (set * taps + tap) * axes + static_cast<i64>(d);
          point.push_back(
              static_cast<double>(at[d + 2] * stride[d] - pads[d] + t[d + 1] * dilation[d]) +
              offset.value(offset_of(os, q)));
        }
        // Tent functions over the whole input.
        double v = 0;
        const shape spatial(xs.begin() + 2, xs.end());
        for_each_index(spatial, [&](const shape& p, i64 o) {
          double weight = 1;
          for (std::size_t d = 0; d < rank; ++d)
            weight *= std::max(0.0, 1 - std::fabs(point[d] - static_cast<double>(p[d])));
          v += weight * x.value((at[0] * C + channel) * count_of(spatial) + o);
        });
        q[1] = set * taps + tap;
        if (masked) v *= mask.value(offset_of(ms, q));
        sum += v * w.value(at[1] * count_of(shape(ws.begin() + 1, ws.end())) + k);
      });
      expected.set(i, sum);
    });
    call c;
    c.name = "DeformConv";
    c.version = 19;
    c.attrs.set("strides", stride).set("dilations", dilation).set("pads", pads);
    c.attrs.set("group", G).set("offset_group", O);
    c.inputs = {x, w, offset, biased ? bias : tensor()};
    if (masked) c.inputs.push_back(mask);
    c.outputs = {tensor(dtype::f64, ys)};
    c.threads = 2;
    REQUIRE(c.run() == sod2::errc::ok);
    check_close(c.outputs[0], expected, 1e-6, 1e-6);
  }
}
