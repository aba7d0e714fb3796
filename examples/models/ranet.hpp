// RANet: four sub-networks from the lowest resolution to the highest, each fed by the features of
// the one before, and an exit after each late block: as soon as one is sure enough, the rest is
// skipped.
#pragma once

#include <functional>

#include "resnet.hpp"

namespace models::ranet {

inline constexpr std::int64_t scales = 4, block_step = 2;
inline constexpr std::int64_t factor[] = {4, 2, 2, 1};  // of channels and of bottlenecks
inline constexpr double sharpness = 8;  // of synthetic logits: some exits must be sure

inline tensor conv_bn_relu(network& n, tensor x, std::string_view name, std::int64_t out,
                           std::int64_t kernel = 1, std::int64_t stride = 1) {
  const auto here = n.part(name);
  return n.relu(resnet::conv_bn(n, x, "conv", "bn", out, kernel, stride));
}

/// Through a narrow 1x1 convolution where that saves anything.
inline tensor layer(network& n, tensor x, std::string_view name, std::int64_t out,
                    std::int64_t bottleneck, std::int64_t stride = 1) {
  const auto here = n.part(name);
  const std::int64_t inner = std::min(x.channels, bottleneck * out);
  return conv_bn_relu(n, conv_bn_relu(n, x, "narrow", inner), "wide", out, 3, stride);
}

inline std::int64_t quarter(std::int64_t channels) { return channels < 4 ? 1 : channels / 4; }

/// A block gives its result and what each of its layers saw, for the next sub-network.
struct block_result {
  tensor out;
  std::vector<tensor> seen;
};

/// Dense layers; with `low`, each also reads what a layer of the lower resolution saw, and the last
/// one may halve the map.
inline block_result block(network& n, tensor x, std::int64_t scale, std::int64_t growth,
                          const std::vector<tensor>* low, bool halves, bool reduces) {
  block_result r{x, {x}};
  const std::int64_t layers = n.deep(8);
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto here = n.part("layers", i);
    if (low == nullptr) {
      x = n.concat({x, layer(n, x, "normal", growth, factor[scale])});
    } else {
      const std::int64_t from_low = quarter(growth);
      const bool strided = halves && i + 1 == layers;
      const tensor own = layer(n, x, "normal", growth - from_low, factor[scale], strided ? 2 : 1);
      const tensor up =
          layer(n, (*low)[static_cast<std::size_t>(i)], "up", from_low, factor[scale - 1]);
      x = n.concat({n.resize_like(x, own), n.resize_like(up, own), own});
    }
    r.seen.push_back(x);
  }
  if (low != nullptr) {
    const tensor last = conv_bn_relu(n, low->back(), "last", quarter(x.channels));
    x = n.concat({x, n.resize_like(last, x)});
  }
  if (reduces) x = conv_bn_relu(n, x, "transition", std::max<std::int64_t>(1, x.channels / 2));
  r.out = x;
  return r;
}

inline tensor classifier(network& n, tensor x) {
  const auto here = n.part("classifier");
  x = n.named(conv_bn_relu(n, x, "0", x.channels, 3, 2), "half");
  x = n.named(conv_bn_relu(n, x, "1", x.channels, 3, 2), "quarter");
  return n.gemm(n.flatten(n.global_pool(x)), "linear", n.wide(resnet::classes), sharpness);
}

/// Is every sample of the batch sure of its class? The surer it must be, the more blocks run.
inline tensor is_sure(network& n, tensor logits) {
  const tensor best = n.op("ReduceMax", {n.softmax(logits, 1)}, {{"axes", {1}}, {"keepdims", 0}});
  return n.op("GreaterOrEqual",
              {n.op("ReduceMin", {best}, {{"keepdims", 0}}), n.real(n.settings().open)});
}

/// Block `index` of sub-network `scale` and all that follows: what the model says from there on.
inline tensor run_from(network& n, const std::vector<tensor>& bases, std::int64_t scale,
                       std::int64_t index, tensor x, const std::vector<std::vector<tensor>>& low,
                       std::vector<std::vector<tensor>> seen) {
  const std::int64_t fused = block_step * scale, blocks = fused + block_step, number = index + 1;
  std::string part = "scale." + std::to_string(scale);
  // Within a sub-network, blocks that fuse come first; the resolution falls where an earlier one
  // ended, the number of channels at each equal share.
  const bool fuses = index < fused;
  const bool halves = fuses && number % block_step == 0;
  bool reduces = false;
  for (std::int64_t i = 1; i <= scale; ++i) reduces = reduces || number == i * blocks / (scale + 1);
  block_result r;
  {
    const auto here = n.part(part + ".block", index);
    const std::int64_t growth = std::max<std::int64_t>(2, n.wide(16) * factor[scale]);
    r = block(n, x, scale, growth, fuses ? &low[static_cast<std::size_t>(index)] : nullptr, halves,
              reduces);
    n.named(r.out, "out");
  }
  seen.push_back(r.seen);
  const auto rest = [&] {
    if (number < blocks) return run_from(n, bases, scale, index + 1, r.out, low, seen);
    return run_from(n, bases, scale + 1, 0, bases[static_cast<std::size_t>(scale + 1)], seen, {});
  };
  if (fuses) return rest();
  const tensor logits = [&] {
    const auto here = n.part(part + ".block", index);
    return n.named(classifier(n, r.out), "exit");
  }();
  if (scale + 1 == scales && number == blocks) return logits;
  return n.choose(
      is_sure(n, logits), [&] { return n.identity(logits); }, rest);
}

inline sod2::graph build(const config& c = {}) {
  network n(c);
  const tensor image = n.input("image", sod2::dtype::f32, {"B", 3, "H", "W"}, 3);
  // Base features from a quarter of the image down to a thirty-second, the coarsest first.
  std::vector<tensor> bases(scales);
  tensor x = n.relu(
      n.batch_norm(n.conv(image, "first.0", n.wide(32), {.kernel = 7, .stride = 2}), "first.bn"));
  x = n.max_pool(x, 3, 2, 1);
  for (std::int64_t s = scales - 1; s >= 0; --s) {
    if (s + 1 < scales)
      x = conv_bn_relu(n, x, "first." + std::to_string(scales - 1 - s), n.wide(32) * factor[s], 3,
                       2);
    bases[static_cast<std::size_t>(s)] = n.named(x, "base." + std::to_string(s));
  }
  const tensor logits = run_from(n, bases, 0, 0, bases[0], {}, {});
  n.output(logits, "logits");
  return n.finish();
}

/// Any size will do.
inline sod2::analysis_options facts() { return {}; }

}  // namespace models::ranet
