#include "support.hpp"

#include <algorithm>

using namespace kernel_test;

namespace {

struct resize_case {
  std::string mode = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double a = -0.75;
  bool exclude = false, antialias = false;
  double extrapolation = 0;
  bool old = false;  // Resize-10
  bool by_sizes = false;
};

double source_of(const resize_case& r, i64 o, double scale, i64 in, i64 out, double start,
                 double end) {
  const double x = static_cast<double>(o), n = static_cast<double>(in),
               m = static_cast<double>(out);
  if (r.coordinates == "half_pixel") return (x + 0.5) / scale - 0.5;
  if (r.coordinates == "half_pixel_symmetric") {
    const double adjust = m / (scale * n);
    return n / 2 * (1 - adjust) + (x + 0.5) / scale - 0.5;
  }
  if (r.coordinates == "pytorch_half_pixel") return out > 1 ? (x + 0.5) / scale - 0.5 : 0;
  if (r.coordinates == "align_corners")  // of a length that is not cut to a whole number
    return out > 1 ? x * (n - 1) / ((r.by_sizes ? m : scale * n) - 1) : 0;
  if (r.coordinates == "asymmetric") return x / scale;
  if (r.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  return out > 1 ? start * (n - 1) + x * (end - start) * (n - 1) / (m - 1)
                 : 0.5 * (start + end) * (n - 1);
}

/// Weights over the whole input axis: what the specification's one-dimensional interpolation gives.
std::vector<double> weights_of(const resize_case& r, double x, double scale, i64 n) {
  std::vector<double> w(idx(n), 0.0);
  const auto clamp = [&](i64 i) { return idx(std::clamp<i64>(i, 0, n - 1)); };
  if (r.mode == "nearest") {
    double v;
    if (r.old)
      v = scale < 1 ? std::ceil(x) : std::floor(x);
    else if (r.nearest == "round_prefer_floor")
      v = x == std::floor(x) + 0.5 ? std::floor(x) : std::round(x);
    else if (r.nearest == "round_prefer_ceil")
      v = x == std::floor(x) + 0.5 ? std::ceil(x) : std::round(x);
    else
      v = r.nearest == "floor" ? std::floor(x) : std::ceil(x);
    w[clamp(static_cast<i64>(v))] = 1;
    return w;
  }
  const double s = r.antialias ? std::min(scale, 1.0) : 1.0;
  const double reach = r.mode == "linear" ? 1 : 2;
  const i64 first = static_cast<i64>(std::floor(-reach / s)) + 1,
            base = static_cast<i64>(std::floor(x));
  double sum = 0;
  for (i64 i = first; i < 2 - first; ++i) {  // symmetric: i_end = 2 - i_start
    const double d = std::fabs((static_cast<double>(base + i) - x) * s);
    double k = 0;
    if (r.mode == "linear")
      k = std::max(0.0, 1 - d);
    else if (d <= 1)
      k = (r.a + 2) * d * d * d - (r.a + 3) * d * d + 1;
    else if (d < 2)
      k = r.a * d * d * d - 5 * r.a * d * d + 8 * r.a * d - 4 * r.a;
    if (r.exclude && (base + i < 0 || base + i >= n)) k = 0;
    w[clamp(base + i)] += k;
    sum += k;
  }
  if ((r.exclude || s < 1) && sum != 0)
    for (double& v : w) v /= sum;
  return w;
}

tensor reference_resize(const resize_case& r, const tensor& x, const shape& out,
                        const std::vector<double>& scales, const std::vector<double>& roi) {
  const std::size_t rank = out.size();
  std::vector<std::vector<std::vector<double>>> w(rank);
  std::vector<std::vector<bool>> inside(rank);
  for (std::size_t d = 0; d < rank; ++d)
    for (i64 o = 0; o < out[d]; ++o) {
      const i64 n = x.dims()[d];
      const double v = source_of(r, o, scales[d], n, out[d], roi.empty() ? 0 : roi[d],
                                 roi.empty() ? 1 : roi[d + rank]);
      const bool identity =
          scales[d] == 1 && n == out[d] &&
          (r.coordinates != "tf_crop_and_resize" || (roi[d] == 0 && roi[d + rank] == 1));
      if (identity) {
        std::vector<double> one(idx(n), 0.0);
        one[idx(o)] = 1;
        w[d].push_back(one);
        inside[d].push_back(true);
      } else {
        w[d].push_back(weights_of(r, v, scales[d], n));
        inside[d].push_back(r.coordinates != "tf_crop_and_resize" ||
                            (v >= 0 && v <= static_cast<double>(n - 1)));
      }
    }
  tensor y(x.type(), out);
  for_each_index(out, [&](const shape& at, i64 i) {
    for (std::size_t d = 0; d < rank; ++d)
      if (!inside[d][idx(at[d])]) {
        y.set(i, r.extrapolation);
        return;
      }
    double sum = 0;
    for_each_index(x.dims(), [&](const shape& p, i64 j) {
      double k = 1;
      for (std::size_t d = 0; d < rank && k != 0; ++d) k *= w[d][idx(at[d])][idx(p[d])];
      if (k != 0) sum += k * x.value(j);
    });
    y.set(i, sum);
  });
  return y;
}

}  // namespace

TEST_CASE("Resize: every mode, coordinate rule and rounding") {
  random_source rng;
  const char* const coordinates[] = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
      "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
  const char* const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  for (int round = 0; round < 400; ++round) {
    resize_case r;
    r.mode = round % 3 == 0 ? "nearest" : round % 3 == 1 ? "linear" : "cubic";
    r.coordinates = coordinates[rng.integer(0, 6)];
    r.nearest = roundings[rng.integer(0, 3)];
    r.a = rng.integer(0, 1) == 0 ? -0.75 : -0.5;
    r.exclude = r.mode == "cubic" && rng.integer(0, 1) == 0;
    r.antialias = r.mode != "nearest" && rng.integer(0, 2) == 0;
    r.extrapolation = 7;
    const bool by_sizes = rng.integer(0, 1) == 0;
    r.by_sizes = by_sizes;
    const int rank = static_cast<int>(rng.integer(1, 4));
    shape dims, out;
    std::vector<double> scales, roi;
    std::vector<float> float_scales, float_roi;
    for (int d = 0; d < rank; ++d) {
      const i64 n = rng.integer(1, 7);
      dims.push_back(n);
      const double choices[] = {1, 1, 2, 3, 0.5, 1.5, 0.6f, 2.3f};
      double s = choices[rng.integer(0, 7)];
      i64 o = std::max<i64>(1, static_cast<i64>(std::floor(static_cast<double>(n) * s)));
      if (by_sizes) s = static_cast<double>(static_cast<float>(o) / static_cast<float>(n));
      out.push_back(o);
      scales.push_back(s);
      float_scales.push_back(static_cast<float>(s));
    }
    for (int d = 0; d < 2 * rank; ++d) {
      float_roi.push_back(d < rank ? 0.25f * static_cast<float>(rng.integer(-1, 1))
                                   : 0.75f + 0.25f * static_cast<float>(rng.integer(0, 2)));
      roi.push_back(static_cast<double>(float_roi.back()));
    }
    const dtype type = round % 5 == 4 ? dtype::f64 : dtype::f32;
    const tensor x = rng.fill(type, dims);
    // Coordinates in floats and doubles may round differently exactly at .5 and at whole numbers:
    // the reference uses the same double arithmetic.
    const tensor expected = reference_resize(r, x, out, scales, roi);
    call c;
    c.name = "Resize";
    c.version = 19;
    c.attrs.set("mode", r.mode.c_str())
        .set("coordinate_transformation_mode", r.coordinates.c_str());
    c.attrs.set("nearest_mode", r.nearest.c_str())
        .set("cubic_coeff_a", r.a)
        .set("extrapolation_value", 7.0);
    c.attrs.set("exclude_outside", r.exclude ? 1 : 0).set("antialias", r.antialias ? 1 : 0);
    c.inputs = {x, tensor::of<float>({2 * rank}, float_roi)};
    if (by_sizes) {
      c.inputs.push_back(tensor());
      c.inputs.push_back(tensor::ints(out));
    } else {
      c.inputs.push_back(tensor::of<float>({rank}, float_scales));
    }
    c.outputs = {tensor(type, out)};
    c.threads = round % 2 + 1;
    INFO(r.mode, " ", r.coordinates, " ", r.nearest, " antialias ", r.antialias);
    REQUIRE(c.run() == sod2::errc::ok);
    check_close(c.outputs[0], expected, 1e-4, 1e-5);
  }
}

TEST_CASE("Resize-10, Upsample 7 and 9, axes, integers") {
  random_source rng;
  for (bool linear : {false, true})
    for (double s : {2.0, 0.5, 1.5}) {
      const tensor x = rng.fill(dtype::f32, {1, 2, 6, 4});
      const shape out{1, 2, static_cast<i64>(6 * s), static_cast<i64>(4 * s)};
      resize_case r;
      r.mode = linear ? "linear" : "nearest";
      r.coordinates = "asymmetric";
      r.old = true;
      const tensor expected = reference_resize(r, x, out, {1, 1, s, s}, {});
      const std::vector<float> scales{1, 1, static_cast<float>(s), static_cast<float>(s)};
      for (int form = 0; form < 3; ++form) {
        call c;
        c.name = form == 0 ? "Resize" : "Upsample";
        c.version = form == 0 ? 10 : form == 1 ? 9 : 7;
        c.attrs.set("mode", r.mode.c_str());
        c.inputs = {x};
        if (form == 2)
          c.attrs.set("scales", scales);
        else
          c.inputs.push_back(tensor::of<float>({4}, scales));
        c.outputs = {tensor(dtype::f32, out)};
        REQUIRE(c.run() == sod2::errc::ok);
        check_close(c.outputs[0], expected);
      }
    }
  // Axes in another order than the dims; uint8 moves by size.
  const tensor x = rng.fill(dtype::u8, {2, 3, 4}, 0, 200);
  resize_case r;
  const tensor expected = reference_resize(r, x, {6, 3, 8}, {3, 1, 2}, {});
  call c;
  c.name = "Resize";
  c.version = 18;
  c.attrs.set("axes", shape{2, 0});
  c.inputs = {x, tensor(), tensor::of<float>({2}, {2, 3})};
  c.outputs = {tensor(dtype::u8, {6, 3, 8})};
  REQUIRE(c.run() == sod2::errc::ok);
  check_equal(c.outputs[0], expected);
}

TEST_CASE("Resize of wide rows in pieces") {
  random_source rng;
  const tensor x = rng.fill(dtype::f32, {2, 3, 400});
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    resize_case r;
    r.mode = mode;
    const tensor expected = reference_resize(r, x, {2, 6, 800}, {1, 2, 2}, {});
    for (int threads : {1, 4}) {
      call c;
      c.name = "Resize";
      c.attrs.set("mode", mode);
      c.inputs = {x, tensor(), tensor::of<float>({3}, {1, 2, 2})};
      c.outputs = {tensor(dtype::f32, {2, 6, 800})};
      c.threads = threads;
      REQUIRE(c.run() == sod2::errc::ok);
      check_close(c.outputs[0], expected);
    }
  }
}
