// YOLOv6-L 3.0: a CSP backbone, a bidirectional feature pyramid and three anchor-free heads;
// batch norms are folded.
#pragma once

#include "layers.hpp"

namespace models::yolo_v6 {

inline constexpr std::int64_t classes = 80, bins = 17;

inline tensor block(network& n, tensor x, std::string_view name, std::int64_t out,
                    std::int64_t kernel = 1, std::int64_t stride = 1) {
  return n.swish(n.conv(x, name, out, {.kernel = kernel, .stride = stride}));
}

/// A cross-stage block of `repeats` 3x3 convolutions, paired by learned shortcuts.
inline tensor bep_c3(network& n, tensor x, std::string_view name, std::int64_t out,
                     std::int64_t repeats) {
  const auto here = n.part(name);
  tensor y = block(n, x, "cv1", out / 2);
  for (std::int64_t i = 0; i < n.deep(repeats / 2); ++i) {
    const auto pair = n.part("m", i);
    const tensor inner = block(n, block(n, y, "conv1", y.channels, 3), "conv2", y.channels, 3);
    y = n.add(inner, n.mul(y, n.weight_around("alpha", {1}, 1, 0)));
  }
  return block(n, n.concat({y, block(n, x, "cv2", out / 2)}), "cv3", out);
}

inline tensor sppf(network& n, tensor x) {
  const auto here = n.part("sppf");
  std::vector<tensor> scales{block(n, x, "cv1", x.channels / 2)};
  for (int i = 0; i < 3; ++i) scales.push_back(n.max_pool(scales.back(), 5, 1, 2));
  return block(n, n.concat(scales), "cv2", x.channels);
}

/// Joins three neighbouring levels at the middle one.
inline tensor bi_fusion(network& n, std::string_view name, tensor coarse, tensor same,
                        tensor fine) {
  const auto here = n.part(name);
  const std::int64_t c = coarse.channels;
  const tensor up = n.named(n.conv_transpose(coarse, "upsample", c), "up");
  const tensor down = block(n, block(n, fine, "cv2", c), "downsample", c, 3, 2);
  return block(n, n.named(n.concat({up, block(n, same, "cv1", c), down}), "joined"), "cv3", c);
}

struct prediction {
  tensor scores, distances, anchors, strides;
};

/// What one level says of each of its cells, one row a cell.
inline prediction head(network& n, tensor x, std::int64_t level, std::int64_t stride) {
  const auto here = n.part("head", level);
  const tensor height = n.size(x, 2), width = n.size(x, 3), cells = n.mul(height, width);
  const tensor batch = n.size(x, 0);
  x = block(n, x, "stem", x.channels);
  const tensor scores =
      n.sigmoid(n.conv(block(n, x, "cls_conv", x.channels, 3), "cls_pred", classes));
  const tensor sides = n.conv(block(n, x, "reg_conv", x.channels, 3), "reg_pred", 4 * bins);
  // A distance is the mean of a distribution over bins.
  const tensor apart = n.transpose(n.reshape(sides, {-1, 4, bins, cells}), {0, 2, 1, 3});
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < bins; ++i) numbers.push_back(static_cast<float>(i));
  const tensor mean =
      n.op("Conv", {n.softmax(apart, 1),
                    {n.graph().constant<float>("buffer:bins." + std::to_string(level),
                                               {1, bins, 1, 1}, numbers)}});
  // Centres of the cells, x before y.
  const auto centres = [&](tensor count) {
    return n.add(n.cast(n.op("Range", {n.integer(0), count, n.integer(1)}), sod2::dtype::f32),
                 n.real(0.5));
  };
  const auto grid = [&](tensor line, std::int64_t axis) {
    return n.reshape(n.expand(n.unsqueeze(line, {axis}), {height, width}), {-1, 1});
  };
  const tensor anchors = n.concat({grid(centres(width), 0), grid(centres(height), 1)}, 1);
  const tensor strides = n.expand(n.real(static_cast<double>(stride)), {cells, 1});
  return {n.reshape(scores, {batch, classes, cells}), n.reshape(mean, {batch, 4, cells}), anchors,
          strides};
}

inline sod2::graph build(const config& c = {}) {
  network n(c);
  tensor x = n.input("images", sod2::dtype::f32, {"B", 3, "H", "W"}, 3);
  x = block(n, x, "stem", n.wide(64), 3, 2);
  const std::int64_t widths[] = {128, 256, 512, 1024}, repeats[] = {6, 12, 18, 6};
  tensor p[4];  // strides 4 to 32
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto stage = n.part("stage", i + 2);
    x = block(n, x, "down", n.wide(widths[i]), 3, 2);
    x = bep_c3(n, x, "csp", x.channels, repeats[i]);
    if (i == 3) x = sppf(n, x);
    p[i] = n.named(x, "out");
  }

  const std::int64_t w = n.wide(128);
  const auto neck = n.part("neck");
  const tensor top = block(n, p[3], "reduce0", 2 * w);
  const tensor middle = bep_c3(n, bi_fusion(n, "fusion0", top, p[2], p[1]), "rep_p4", 2 * w, 12);
  const tensor low = block(n, middle, "reduce1", w);
  const tensor out3 = bep_c3(n, bi_fusion(n, "fusion1", low, p[1], p[0]), "rep_p3", w, 12);
  const tensor out4 =
      bep_c3(n, n.concat({block(n, out3, "down2", w, 3, 2), low}), "rep_n3", 2 * w, 12);
  const tensor out5 =
      bep_c3(n, n.concat({block(n, out4, "down1", 2 * w, 3, 2), top}), "rep_n4", 4 * w, 12);

  const prediction levels[] = {head(n, out3, 0, 8), head(n, out4, 1, 16), head(n, out5, 2, 32)};
  const auto joined = [&](tensor prediction::*member, std::int64_t axis) {
    return n.concat({levels[0].*member, levels[1].*member, levels[2].*member}, axis);
  };
  const tensor scores = n.transpose(joined(&prediction::scores, 2), {0, 2, 1});
  const tensor distances = n.transpose(joined(&prediction::distances, 2), {0, 2, 1});
  // Distances to the left top and right bottom become centre and size.
  const tensor anchors = joined(&prediction::anchors, 0);
  const auto corners = n.ops("Split", {distances}, 2, {{"axis", 2}});
  const tensor first = n.sub(anchors, corners[0]), last = n.add(anchors, corners[1]);
  const tensor centre = n.div(n.add(first, last), n.real(2));
  const tensor boxes =
      n.mul(n.concat({centre, n.sub(last, first)}, -1), joined(&prediction::strides, 0));
  const tensor ones =
      n.op("ConstantOfShape", {n.shape({n.size(boxes, 0), n.size(boxes, 1), 1})},
           {{"value", sod2::constant_tensor::of<float>({1}, std::vector<float>{1.0F})}});
  n.output(n.concat({boxes, ones, scores}, -1), "outputs");
  return n.finish();
}

/// The pyramid only fits together at multiples of the largest stride.
inline sod2::analysis_options facts() {
  return assuming({multiples("H", 32, 4096, 32), multiples("W", 32, 4096, 32)});
}

}  // namespace models::yolo_v6
