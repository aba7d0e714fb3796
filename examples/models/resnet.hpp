// What the gated networks have in common: the trunk of ResNet for ImageNet, cut into its blocks.
#pragma once

#include "layers.hpp"

namespace models::resnet {

inline constexpr std::int64_t classes = 1000, expansion = 4;

inline tensor conv_bn(network& n, tensor x, std::string_view conv, std::string_view norm,
                      std::int64_t out, std::int64_t kernel, std::int64_t stride = 1,
                      double gain = 1) {
  return n.batch_norm(n.conv(x, conv, out, {.kernel = kernel, .stride = stride, .bias = false}),
                      norm, gain);
}

/// A quarter of the image in both directions.
inline tensor stem(network& n, tensor image) {
  const tensor half = n.relu(conv_bn(n, image, "conv1", "bn1", n.wide(64), 7, 2));
  return n.named(n.max_pool(n.named(half, "half"), 3, 2, 1), "quarter");
}

/// What a bottleneck block adds to its shortcut.
inline tensor bottleneck(network& n, tensor x, std::int64_t planes, std::int64_t stride) {
  tensor y = n.relu(conv_bn(n, x, "conv1", "bn1", planes, 1));
  y = n.relu(conv_bn(n, y, "conv2", "bn2", planes, 3, stride));
  return conv_bn(n, y, "conv3", "bn3", expansion * planes, 1, 1, 0.5);
}

/// The shortcut: x, or its projection where the block changes shape. The arms of a gate each have
/// their own nodes for it, over the same weights.
inline tensor shortcut(network& n, tensor x, std::int64_t out, std::int64_t stride) {
  if (stride == 1 && x.channels == out) return x;
  return conv_bn(n, x, "downsample.0", "downsample.1", out, 1, stride);
}

/// Calls visit(x, planes, stride, first) for each block of the four stages, with the name of the
/// block as current part; values after the stages are called "layer1" to "layer4".
template <class Visit>
tensor stages(network& n, tensor x, std::initializer_list<std::int64_t> blocks, Visit&& visit) {
  std::int64_t planes = n.wide(64), stage = 0;
  for (const std::int64_t count : blocks) {
    ++stage;
    const std::string name = "layer" + std::to_string(stage);
    for (std::int64_t i = 0; i < n.deep(count); ++i) {
      const auto block = n.part(name, i);
      x = visit(x, planes, i == 0 && stage > 1 ? 2 : 1, stage == 1 && i == 0);
    }
    n.named(x, name);
    planes *= 2;
  }
  return x;
}

/// Pooling over the whole map, so that the size of the image is free.
inline void classify(network& n, tensor x) {
  const tensor pooled = n.named(n.global_pool(x), "pooled");
  n.output(n.gemm(n.flatten(pooled), "fc", n.wide(classes)), "logits");
}

}  // namespace models::resnet
