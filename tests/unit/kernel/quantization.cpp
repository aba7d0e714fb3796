#include "support.hpp"

#include <algorithm>

using namespace kernel_test;

namespace {

double saturated(dtype type, double v) {
  const double lo = type == dtype::i8    ? -128
                    : type == dtype::i16 ? -32768
                    : type == dtype::i4  ? -8
                                         : 0;
  const double hi = type == dtype::i8    ? 127
                    : type == dtype::u8  ? 255
                    : type == dtype::i16 ? 32767
                    : type == dtype::u16 ? 65535
                    : type == dtype::i4  ? 7
                                         : 15;
  return std::min(hi, std::max(lo, v));
}
/// Element of a tensor whose type may have 4 bits.
double code(const tensor& t, i64 i) {
  if (t.type() != dtype::u4 && t.type() != dtype::i4) return t.value(i);
  const int v = t.data<std::uint8_t>()[i / 2] >> (i % 2 * 4) & 15;
  return t.type() == dtype::i4 && v > 7 ? v - 16 : v;
}
void set_code(const tensor& t, i64 i, double v) {
  if (t.type() != dtype::u4 && t.type() != dtype::i4) return t.set(i, v);
  std::uint8_t& byte = t.data<std::uint8_t>()[i / 2];
  const int n = static_cast<int>(v) & 15;
  byte = static_cast<std::uint8_t>(i % 2 == 0 ? (byte & 0xf0) | n : (byte & 15) | n << 4);
}

}  // namespace

TEST_CASE("QuantizeLinear and DequantizeLinear: whole, per axis, per block") {
  random_source rng;
  for (dtype type : {dtype::u8, dtype::i8, dtype::u16, dtype::i16, dtype::u4, dtype::i4})
    for (const shape& dims : {shape{3, 5, 4}, shape{2, 7}, shape{4}, shape{2, 0, 3}, shape{1, 1}})
      for (i64 axis = -1; axis < static_cast<i64>(dims.size()); ++axis)
        for (i64 block : {0, 2})
          for (bool whole : {true, false})
            for (bool zero : {true, false}) {
              if (whole && block != 0) continue;
              const std::size_t a = axis < 0 ? dims.size() - 1 : idx(axis);
              shape form{dims[a]};
              if (whole) form = {};
              if (block != 0) {
                form = dims;
                form[a] = (dims[a] + block - 1) / block;
              }
              const auto where = [&](const shape& at) -> i64 {
                if (whole) return 0;
                if (block == 0) return at[a];
                shape p = at;
                p[a] /= block;
                return offset_of(form, p);
              };
              const tensor x = rng.fill(dtype::f32, dims, -30, 30);
              const tensor scale = rng.fill(dtype::f32, form, 0.1, 2);
              tensor zp(type, form), y(type, dims), back(dtype::f32, dims);
              for (i64 i = 0; i < zp.count(); ++i)
                set_code(zp, i, zero ? static_cast<double>(rng.integer(0, 7)) : 0);
              call q;
              q.name = "QuantizeLinear";
              q.version = 21;
              q.attrs.set("axis", axis).set("block_size", block);
              q.inputs = {x, scale};
              if (zero) q.inputs.push_back(zp);
              q.outputs = {y};
              q.threads = 2;
              REQUIRE(q.run() == sod2::errc::ok);
              call d = q;
              d.name = "DequantizeLinear";
              d.inputs[0] = y;
              d.outputs = {back};
              REQUIRE(d.run() == sod2::errc::ok);
              for_each_index(dims, [&](const shape& at, i64 i) {
                const float s = scale.at<float>(where(at));
                const double z = zero ? code(zp, where(at)) : 0;
                const double expected =
                    saturated(type, static_cast<double>(std::nearbyint(x.at<float>(i) / s)) + z);
                CHECK(code(y, i) == expected);
                CHECK(back.at<float>(i) == static_cast<float>(expected - z) * s);
              });
            }
}

TEST_CASE("8-bit floats: every value round-trips, halfway goes to even, overflow as stated") {
  for (dtype type : {dtype::f8e4m3fn, dtype::f8e4m3fnuz, dtype::f8e5m2, dtype::f8e5m2fnuz}) {
    tensor all(type, {256}), again(type, {256}), values(dtype::f32, {256});
    for (i64 i = 0; i < 256; ++i) all.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i);
    call d;
    d.name = "DequantizeLinear";
    d.version = 19;
    d.inputs = {all, tensor::scalar(1)};
    d.outputs = {values};
    REQUIRE(d.run() == sod2::errc::ok);
    call q;
    q.name = "QuantizeLinear";
    q.version = 19;
    q.attrs.set("saturate", 0);
    q.inputs = {values, tensor::scalar(1)};
    q.outputs = {again};
    REQUIRE(q.run() == sod2::errc::ok);
    std::vector<std::pair<float, int>> finite;
    for (i64 i = 0; i < 256; ++i) {
      const float v = values.at<float>(i);
      if (std::isnan(v)) {
        CHECK(std::isnan(v));
        continue;
      }
      CHECK(again.data<std::uint8_t>()[i] == i);
      if (i < 128 && !std::isinf(v)) finite.push_back({v, static_cast<int>(i)});
    }
    CHECK(std::is_sorted(finite.begin(), finite.end()));
    for (std::size_t i = 0; i + 1 < finite.size(); ++i) {
      const float middle = (finite[i].first + finite[i + 1].first) / 2;
      const float below = std::nextafter(middle, 0.0f), above = std::nextafter(middle, 1e9f);
      tensor three(dtype::f32, {3}), bits(type, {3});
      three.set(0, static_cast<double>(below));
      three.set(1, static_cast<double>(middle));
      three.set(2, static_cast<double>(above));
      q.inputs[0] = three;
      q.outputs = {bits};
      REQUIRE(q.run() == sod2::errc::ok);
      const int lo = finite[i].second, hi = finite[i + 1].second;
      CHECK(bits.data<std::uint8_t>()[0] == lo);
      CHECK(bits.data<std::uint8_t>()[1] == (lo % 2 == 0 ? lo : hi));
      CHECK(bits.data<std::uint8_t>()[2] == hi);
    }
    tensor huge(dtype::f32, {1}), bits(type, {1});
    huge.set(0, 1e9);
    q.inputs[0] = huge;
    q.outputs = {bits};
    REQUIRE(q.run() == sod2::errc::ok);
    const float over = values.at<float>(bits.data<std::uint8_t>()[0]);
    CHECK((type == dtype::f8e5m2 ? std::isinf(over) : std::isnan(over)));
    q.attrs.set("saturate", 1);
    REQUIRE(q.run() == sod2::errc::ok);
    CHECK(bits.data<std::uint8_t>()[0] == finite.back().second);
  }
  tensor one(dtype::f8e4m3fn, {1}), v(dtype::f32, {1});
  v.set(0, 448);
  call q;
  q.name = "QuantizeLinear";
  q.version = 19;
  q.inputs = {v, tensor::scalar(1)};
  q.outputs = {one};
  REQUIRE(q.run() == sod2::errc::ok);
  CHECK(one.data<std::uint8_t>()[0] == 0x7e);
}

TEST_CASE("DynamicQuantizeLinear") {
  random_source rng;
  for (const shape& dims : {shape{6}, shape{3, 37}, shape{0}, shape{1}})
    for (double lo : {-3.0, 0.5, -7.0}) {
      const tensor x = rng.fill(dtype::f32, dims, lo, lo + 6);
      float least = 0, most = 0;
      for (i64 i = 0; i < x.count(); ++i) {
        least = std::min(least, x.at<float>(i));
        most = std::max(most, x.at<float>(i));
      }
      const float scale = most > least ? (most - least) / 255 : 1;
      const double zero = saturated(dtype::u8, static_cast<double>(std::nearbyint(-least / scale)));
      call c;
      c.name = "DynamicQuantizeLinear";
      c.inputs = {x};
      c.outputs = {tensor(dtype::u8, dims), tensor(dtype::f32, {}), tensor(dtype::u8, {})};
      REQUIRE(c.run() == sod2::errc::ok);
      CHECK(c.outputs[1].at<float>(0) == scale);
      CHECK(c.outputs[2].value(0) == zero);
      for (i64 i = 0; i < x.count(); ++i)
        CHECK(c.outputs[0].value(i) ==
              saturated(dtype::u8,
                        static_cast<double>(std::nearbyint(x.at<float>(i) / scale)) + zero));
    }
}

TEST_CASE("MatMulInteger and QLinearMatMul") {
  random_source rng;
  const shape forms[][3] = {{{3, 4}, {4, 5}, {3, 5}},      {{4}, {4, 70}, {70}},
                            {{2, 3, 4}, {4}, {2, 3}},      {{2, 1, 3, 5}, {3, 5, 2}, {2, 3, 3, 2}},
                            {{3, 0}, {0, 2}, {3, 2}},      {{0, 4}, {4, 2}, {0, 2}},
                            {{5, 17}, {17, 130}, {5, 130}}};
  for (const auto& form : forms)
    for (dtype ta : {dtype::u8, dtype::i8})
      for (dtype tb : {dtype::u8, dtype::i8})
        for (int zeros = 0; zeros < 3; ++zeros) {
          const double la = ta == dtype::u8 ? 0 : -128, lb = tb == dtype::u8 ? 0 : -128;
          const tensor a = rng.fill(ta, form[0], la, la + 255),
                       b = rng.fill(tb, form[1], lb, lb + 255);
          const bool av = form[0].size() == 1, bv = form[1].size() == 1;
          const i64 m = av ? 1 : form[0][form[0].size() - 2], k = form[0].back();
          const i64 n = bv ? 1 : form[1].back();
          const bool per_row = zeros == 2;
          const tensor za = rng.fill(ta, per_row ? shape{m} : shape{}, 0, 20);
          const tensor zb = rng.fill(tb, per_row ? shape{n} : shape{}, 0, 20);
          const tensor sa = rng.fill(dtype::f32, per_row ? shape{m} : shape{}, 0.01, 0.1);
          const tensor sb = rng.fill(dtype::f32, per_row ? shape{n} : shape{}, 0.01, 0.1);
          const tensor sy = tensor::scalar(0.9f), zy = rng.fill(ta, {}, 0, 20);
          shape whole = form[2];
          if (bv) whole.push_back(1);
          if (av) whole.insert(whole.end() - 1, 1);
          tensor expected(dtype::i32, form[2]), quantised(ta, form[2]);
          for_each_index(whole, [&](const shape& at, i64 o) {
            const i64 i = at[at.size() - 2], j = at.back();
            const shape batch(at.begin(), at.end() - 2);
            shape ad = av ? shape{1, k} : form[0], bd = bv ? shape{k, 1} : form[1];
            const i64 ab = broadcast_offset(shape(ad.begin(), ad.end() - 2), batch);
            const i64 bb = broadcast_offset(shape(bd.begin(), bd.end() - 2), batch);
            double sum = 0;
            for (i64 l = 0; l < k; ++l)
              sum += (a.value((ab * m + i) * k + l) - (zeros > 0 ? za.value(per_row ? i : 0) : 0)) *
                     (b.value((bb * k + l) * n + j) - (zeros > 0 ? zb.value(per_row ? j : 0) : 0));
            expected.set(o, sum);
            const float f = sa.at<float>(per_row ? i : 0) * sb.at<float>(per_row ? j : 0) / 0.9f;
            quantised.set(
                o, saturated(ta, static_cast<double>(std::nearbyint(static_cast<float>(sum) * f)) +
                                     zy.value(0)));
          });
          call c;
          c.name = "MatMulInteger";
          c.inputs = {a, b};
          if (zeros > 0) c.inputs = {a, b, za, zb};
          c.outputs = {tensor(dtype::i32, form[2])};
          c.threads = 2;
          REQUIRE(c.run() == sod2::errc::ok);
          check_equal(c.outputs[0], expected);
          if (zeros == 0) continue;
          c.name = "QLinearMatMul";
          c.inputs = {a, sa, za, b, sb, zb, sy, zy};
          c.outputs = {tensor(ta, form[2])};
          REQUIRE(c.run() == sod2::errc::ok);
          check_equal(c.outputs[0], quantised);
        }
}

TEST_CASE("ConvInteger and QLinearConv") {
  random_source rng;
  for (int round = 0; round < 80; ++round) {
    const std::size_t rank = idx(rng.integer(1, 3));
    const i64 N = rng.integer(0, 2), G = rng.integer(1, 2), depth = rng.integer(1, 3),
              M = G * rng.integer(1, 3);
    shape xs{N, G * depth}, ws{M, depth}, ys{N, M}, stride, dilation, pads(2 * rank), kernel;
    for (std::size_t d = 0; d < rank; ++d) {
      xs.push_back(rng.integer(4, 7));
      kernel.push_back(rng.integer(1, 3));
      ws.push_back(kernel[d]);
      stride.push_back(rng.integer(1, 2));
      dilation.push_back(rng.integer(1, 2));
      pads[d] = rng.integer(0, 2);
      pads[d + rank] = rng.integer(0, 2);
      ys.push_back((xs[d + 2] + pads[d] + pads[d + rank] - dilation[d] * (kernel[d] - 1) - 1) /
                       stride[d] +
                   1);
      if (ys.back() < 1) ys.back() = 0;
    }
    const dtype tx = rng.integer(0, 1) == 1 ? dtype::u8 : dtype::i8;
    const dtype tw = rng.integer(0, 1) == 1 ? dtype::u8 : dtype::i8;
    const double lx = tx == dtype::u8 ? 0 : -128, lw = tw == dtype::u8 ? 0 : -128;
    const tensor x = rng.fill(tx, xs, lx, lx + 255), w = rng.fill(tw, ws, lw, lw + 255);
    const bool per = rng.integer(0, 1) == 1;
    const tensor zx = rng.fill(tx, {}, 0, 9), zw = rng.fill(tw, per ? shape{M} : shape{}, 0, 9);
    const tensor sw = rng.fill(dtype::f32, per ? shape{M} : shape{}, 0.01, 0.02);
    const tensor bias = rng.fill(dtype::i32, {M}, -5000, 5000), zy = rng.fill(tx, {}, 0, 9);
    tensor expected(dtype::i32, ys), quantised(tx, ys);
    for_each_index(ys, [&](const shape& at, i64 o) {
      double sum = 0;
      for_each_index(shape(ws.begin() + 1, ws.end()), [&](const shape& t, i64 i) {
        shape p{at[0], at[1] / (M / G) * depth + t[0]};
        for (std::size_t d = 0; d < rank; ++d) {
          p.push_back(at[d + 2] * stride[d] - pads[d] + t[d + 1] * dilation[d]);
          if (p.back() < 0 || p.back() >= xs[d + 2]) return;
        }
        sum += (x.value(offset_of(xs, p)) - zx.value(0)) *
               (w.value(at[1] * count_of(shape(ws.begin() + 1, ws.end())) + i) -
                zw.value(per ? at[1] : 0));
      });
      expected.set(o, sum);
      const float f = 0.05f * sw.at<float>(per ? at[1] : 0) / 0.7f;
      quantised.set(o, saturated(tx, static_cast<double>(std::nearbyint(
                                         static_cast<float>(sum + bias.value(at[1])) * f)) +
                                         zy.value(0)));
    });
    call c;
    c.name = "ConvInteger";
    c.attrs.set("strides", stride).set("dilations", dilation).set("pads", pads).set("group", G);
    c.inputs = {x, w, zx, zw};
    c.outputs = {tensor(dtype::i32, ys)};
    c.threads = 2;
    REQUIRE(c.run() == sod2::errc::ok);
    check_equal(c.outputs[0], expected);
    c.name = "QLinearConv";
    c.inputs = {x, tensor::scalar(0.05f), zx, w, sw, zw, tensor::scalar(0.7f), zy, bias};
    c.outputs = {tensor(tx, ys)};
    REQUIRE(c.run() == sod2::errc::ok);
    check_equal(c.outputs[0], quantised);
  }
}
