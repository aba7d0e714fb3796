#include "support.hpp"

using namespace kernel_test;

namespace {

struct geometry {
  int rank = 2;
  shape in, kernel, stride, dilation, pads;  // pads: begins, then ends
};

tensor reference_conv(const tensor& x, const tensor& w, const tensor& bias, const shape& out,
                      const geometry& g, i64 group, const shape& begin) {
  tensor y(x.type(), out);
  const i64 channels = x.dims()[1], features = w.dims()[0], cg = channels / group,
            fg = features / group;
  for_each_index(out, [&](const shape& o, i64 index) {
    double sum = bias.present() ? bias.value(o[1]) : 0;
    for_each_index(g.kernel, [&](const shape& k, i64 tap) {
      i64 at = 0;
      for (int d = 0; d < g.rank; ++d) {
        const std::size_t i = static_cast<std::size_t>(d);
        const i64 v = o[i + 2] * g.stride[i] - begin[i] + k[i] * g.dilation[i];
        if (v < 0 || v >= g.in[i]) return;
        at = at * g.in[i] + v;
      }
      const i64 plane = count_of(g.in), taps = count_of(g.kernel);
      for (i64 c = 0; c < cg; ++c)
        sum += x.value((o[0] * channels + o[1] / fg * cg + c) * plane + at) *
               w.value((o[1] * cg + c) * taps + tap);
    });
    y.set(index, sum);
  });
  return y;
}

geometry random_geometry(random_source& rng, int rank, i64 limit) {
  geometry g;
  g.rank = rank;
  for (int d = 0; d < rank; ++d) {
    g.in.push_back(rng.extent(limit));
    g.kernel.push_back(rng.integer(1, 3));
    g.stride.push_back(rng.integer(1, 3));
    g.dilation.push_back(rng.integer(1, 2));
  }
  for (int d = 0; d < 2 * rank; ++d) g.pads.push_back(rng.integer(0, 2));
  return g;
}

bool output_dims(const geometry& g, shape& out) {
  for (int d = 0; d < g.rank; ++d) {
    const std::size_t i = static_cast<std::size_t>(d);
    const i64 room = g.in[i] + g.pads[i] + g.pads[i + static_cast<std::size_t>(g.rank)] -
                     ((g.kernel[i] - 1) * g.dilation[i] + 1);
    if (room < 0) return false;
    out.push_back(room / g.stride[i] + 1);
  }
  return true;
}

void set_geometry(attributes& a, const geometry& g) {
  a.set("kernel_shape", g.kernel)
      .set("strides", g.stride)
      .set("dilations", g.dilation)
      .set("pads", g.pads);
}

}  // namespace

TEST_CASE("Conv agrees with a plain convolution in 1, 2 and 3 dims") {
  random_source rng;
  int done = 0;
  for (int round = 0; done < 70; ++round) {
    const int rank = 1 + round % 3;
    const geometry g = random_geometry(rng, rank, rank == 3 ? 9 : 40);
    const i64 group = rng.integer(1, 3), batch = rng.integer(1, 2);
    const i64 channels = group * (round % 4 == 0 ? 1 : rng.integer(1, 9));
    const i64 features = group * (round % 4 == 0 ? rng.integer(1, 2) : rng.extent(33));
    shape out{batch, features};
    if (!output_dims(g, out)) continue;
    ++done;
    shape xs{batch, channels}, ws{features, channels / group};
    xs.insert(xs.end(), g.in.begin(), g.in.end());
    ws.insert(ws.end(), g.kernel.begin(), g.kernel.end());
    const tensor x = rng.fill(dtype::f32, xs), w = rng.fill(dtype::f32, ws);
    tensor bias;
    if (rng.integer(0, 1) != 0) bias = rng.fill(dtype::f32, {features});
    const tensor expected = reference_conv(x, w, bias, out, g, group, g.pads);
    for (const auto* table : targets())
      for (int threads : {1, 3}) {
        call c;
        c.table = table;
        c.name = "Conv";
        set_geometry(c.attrs, g);
        c.attrs.set("group", group);
        c.inputs = {x, w};
        if (bias.present()) c.inputs.push_back(bias);
        c.outputs = {tensor(dtype::f32, out)};
        c.threads = threads;
        REQUIRE(c.run() == sod2::errc::ok);
        check_close(c.outputs[0], expected, 1e-4, 1e-4);
      }
  }
}

TEST_CASE("Conv: depth beyond one block, wide rows, depthwise of every stride") {
  random_source rng;
  struct item {
    i64 channels, features, group, h, w, k, stride, pad;
  };
  for (const item& t : {item{70, 20, 1, 9, 11, 3, 1, 1}, item{600, 9, 1, 5, 5, 1, 1, 0},
                        item{3, 17, 1, 33, 29, 7, 2, 3}, item{4, 4, 4, 12, 300, 3, 1, 1},
                        item{4, 4, 4, 12, 600, 3, 2, 1}, item{6, 6, 6, 14, 14, 5, 1, 2},
                        item{6, 12, 6, 13, 13, 3, 3, 1}, item{2, 2, 2, 7, 7, 7, 1, 0},
                        item{2, 2, 2, 40, 40, 17, 1, 8}}) {
    geometry g;
    g.in = {t.h, t.w};
    g.kernel = {t.k, t.k};
    g.stride = {t.stride, t.stride};
    g.dilation = {1, 1};
    g.pads = {t.pad, t.pad, t.pad, t.pad};
    shape out{1, t.features};
    REQUIRE(output_dims(g, out));
    const tensor x = rng.fill(dtype::f32, {1, t.channels, t.h, t.w});
    const tensor w = rng.fill(dtype::f32, {t.features, t.channels / t.group, t.k, t.k});
    const tensor bias = rng.fill(dtype::f32, {t.features});
    const tensor expected = reference_conv(x, w, bias, out, g, t.group, g.pads);
    for (const auto* table : targets()) {
      tensor first;
      for (int threads : {1, 4}) {
        call c;
        c.table = table;
        c.name = "Conv";
        set_geometry(c.attrs, g);
        c.attrs.set("group", t.group);
        c.inputs = {x, w, bias};
        c.outputs = {tensor(dtype::f32, out)};
        c.threads = threads;
        REQUIRE(c.run() == sod2::errc::ok);
        check_close(c.outputs[0], expected, 1e-4, 2e-4);
        if (threads == 1)
          first = c.outputs[0];
        else
          check_equal(c.outputs[0], first);
      }
    }
  }
}

TEST_CASE("Conv: auto_pad") {
  random_source rng;
  for (const char* mode : {"SAME_UPPER", "SAME_LOWER", "VALID"})
    for (i64 size : {5, 6, 7, 8})
      for (i64 k : {1, 2, 3, 4})
        for (i64 stride : {1, 2, 3}) {
          geometry g;
          g.in = {size, size + 1};
          g.kernel = {k, k};
          g.stride = {stride, stride};
          g.dilation = {1, 1};
          shape out{1, 3}, begin;
          for (std::size_t d = 0; d < 2; ++d) {
            if (std::string(mode) == "VALID") {
              out.push_back((g.in[d] - k) / stride + 1);
              begin.push_back(0);
            } else {
              const i64 o = (g.in[d] + stride - 1) / stride;
              const i64 total = std::max<i64>((o - 1) * stride + k - g.in[d], 0);
              out.push_back(o);
              begin.push_back(std::string(mode) == "SAME_UPPER" ? total / 2 : total - total / 2);
            }
          }
          const tensor x = rng.fill(dtype::f32, {1, 2, g.in[0], g.in[1]});
          const tensor w = rng.fill(dtype::f32, {3, 2, k, k});
          call c;
          c.name = "Conv";
          c.attrs.set("auto_pad", mode).set("strides", g.stride);
          c.inputs = {x, w};
          c.outputs = {tensor(dtype::f32, out)};
          REQUIRE(c.run() == sod2::errc::ok);
          check_close(c.outputs[0], reference_conv(x, w, {}, out, g, 1, begin));
        }
}

TEST_CASE("Conv: double, empty batch, epilogue over channels") {
  random_source rng;
  geometry g;
  g.in = {6, 7};
  g.kernel = {3, 3};
  g.stride = {1, 2};
  g.dilation = {1, 1};
  g.pads = {1, 1, 1, 1};
  shape out{2, 5};
  REQUIRE(output_dims(g, out));
  {
    const tensor x = rng.fill(dtype::f64, {2, 4, 6, 7}), w = rng.fill(dtype::f64, {5, 4, 3, 3});
    call c;
    c.name = "Conv";
    set_geometry(c.attrs, g);
    c.inputs = {x, w};
    c.outputs = {tensor(dtype::f64, out)};
    REQUIRE(c.run() == sod2::errc::ok);
    check_close(c.outputs[0], reference_conv(x, w, {}, out, g, 1, g.pads), 1e-12, 1e-12);
  }
  {
    call c;
    c.name = "Conv";
    set_geometry(c.attrs, g);
    c.inputs = {rng.fill(dtype::f32, {0, 4, 6, 7}), rng.fill(dtype::f32, {5, 4, 3, 3})};
    c.outputs = {tensor(dtype::f32, {0, 5, out[2], out[3]})};
    CHECK(c.run() == sod2::errc::ok);
  }
  // y = relu(conv * scale + shift) with per-channel operands aligned to axis 1.
  sod2::tile_builder b;
  const auto block = b.input(dtype::f32), scale = b.input(dtype::f32, 1),
             shift = b.input(dtype::f32, 1);
  auto r = b.emit(sod2::tile_op::mul, dtype::f32, block, scale);
  r = b.emit(sod2::tile_op::add, dtype::f32, r, shift);
  b.output(b.emit(sod2::tile_op::relu, dtype::f32, r));
  auto program = b.finish();
  REQUIRE(program.ok());
  for (i64 group : {1, 4}) {
    shape o = out;
    o[1] = group == 1 ? 5 : 4;
    const tensor x = rng.fill(dtype::f32, {2, 4, 6, 7}),
                 w = rng.fill(dtype::f32, {o[1], 4 / group, 3, 3});
    const tensor s = rng.fill(dtype::f32, {o[1]}), t = rng.fill(dtype::f32, {o[1]});
    const sod2::tensor_view operands[] = {s.view(), t.view()};
    const sod2::epilogue_call epilogue{&*program, operands};
    tensor expected = reference_conv(x, w, {}, o, g, group, g.pads);
    const i64 plane = o[2] * o[3];
    for (i64 i = 0; i < expected.count(); ++i) {
      const i64 f = i / plane % o[1];
      expected.set(i, std::max(0.0, expected.value(i) * s.value(f) + t.value(f)));
    }
    for (const auto* table : targets()) {
      call c;
      c.table = table;
      c.name = "Conv";
      set_geometry(c.attrs, g);
      c.attrs.set("group", group);
      c.inputs = {x, w};
      c.outputs = {tensor(dtype::f32, o)};
      c.epilogue = &epilogue;
      c.threads = 2;
      REQUIRE(c.run() == sod2::errc::ok);
      check_close(c.outputs[0], expected);
    }
  }
}

TEST_CASE("ConvTranspose agrees with scattering") {
  random_source rng;
  for (int round = 0; round < 80; ++round) {
    const int rank = 1 + round % 3;
    geometry g = random_geometry(rng, rank, rank == 3 ? 7 : 20);
    const i64 group = rng.integer(1, 2), batch = rng.integer(1, 2);
    const i64 channels = group * (round % 10 == 9 ? 550 : rng.integer(1, 9)),
              mg = rng.integer(1, 5);
    shape out{batch, group * mg}, padding, begin;
    const int mode =
        static_cast<int>(rng.integer(0, 3));  // pads, output_shape, SAME_UPPER, SAME_LOWER
    bool valid = true;
    shape spatial;
    for (int d = 0; d < rank; ++d) {
      const std::size_t i = static_cast<std::size_t>(d);
      padding.push_back(g.stride[i] > 1 ? rng.integer(0, 1) : 0);
      const i64 full =
          g.stride[i] * (g.in[i] - 1) + padding[i] + (g.kernel[i] - 1) * g.dilation[i] + 1;
      i64 o = full - g.pads[i] - g.pads[i + static_cast<std::size_t>(rank)];
      begin.push_back(g.pads[i]);
      if (mode != 0) {
        o = mode == 1 ? std::max<i64>(1, full - rng.integer(0, 2)) : g.in[i] * g.stride[i];
        const i64 total = std::max<i64>(0, full - o);
        begin.back() = mode == 2 ? total / 2 : total - total / 2;
      }
      if (o < 1) valid = false;
      spatial.push_back(o);
    }
    if (!valid) continue;
    out.insert(out.end(), spatial.begin(), spatial.end());
    shape xs{batch, channels}, ws{channels, mg};
    xs.insert(xs.end(), g.in.begin(), g.in.end());
    ws.insert(ws.end(), g.kernel.begin(), g.kernel.end());
    const dtype type = round % 13 == 12 ? dtype::f64 : dtype::f32;
    const tensor x = rng.fill(type, xs), w = rng.fill(type, ws),
                 bias = rng.fill(type, {group * mg});
    std::vector<double> sums(idx(count_of(out)));
    const i64 out_plane = count_of(spatial), in_plane = count_of(g.in), taps = count_of(g.kernel);
    for (i64 p = 0; p < batch * group * mg; ++p)
      for (i64 i = 0; i < out_plane; ++i)
        sums[idx(p * out_plane + i)] = bias.value(p % (group * mg));
    for (i64 n = 0; n < batch; ++n)
      for (i64 ch = 0; ch < channels; ++ch)
        for (i64 f = 0; f < mg; ++f) {
          const i64 feature = ch / (channels / group) * mg + f;
          for_each_index(g.in, [&](const shape& at, i64 from) {
            for_each_index(g.kernel, [&](const shape& k, i64 tap) {
              i64 to = 0;
              for (std::size_t d = 0; d < at.size(); ++d) {
                const i64 v = at[d] * g.stride[d] - begin[d] + k[d] * g.dilation[d];
                if (v < 0 || v >= spatial[d]) return;
                to = to * spatial[d] + v;
              }
              sums[idx((n * group * mg + feature) * out_plane + to)] +=
                  x.value((n * channels + ch) * in_plane + from) *
                  w.value((ch * mg + f) * taps + tap);
            });
          });
        }
    tensor expected(type, out);
    for (i64 i = 0; i < expected.count(); ++i) expected.set(i, sums[idx(i)]);
    for (const auto* table : targets())
      for (bool constant : {false, true}) {
        call c;
        c.table = table;
        c.name = "ConvTranspose";
        c.attrs.set("kernel_shape", g.kernel).set("strides", g.stride).set("dilations", g.dilation);
        c.attrs.set("group", group).set("output_padding", padding);
        if (mode == 0) c.attrs.set("pads", g.pads);
        if (mode == 1) c.attrs.set("output_shape", spatial);
        if (mode == 2) c.attrs.set("auto_pad", "SAME_UPPER");
        if (mode == 3) c.attrs.set("auto_pad", "SAME_LOWER");
        c.inputs = {x, w, bias};
        c.constant = {false, constant, constant};
        c.outputs = {tensor(type, out)};
        c.threads = constant ? 3 : 1;
        REQUIRE(c.run() == sod2::errc::ok);
        check_close(c.outputs[0], expected, 1e-4, 1e-4);
      }
  }
}
