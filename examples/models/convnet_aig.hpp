// ConvNet-AIG: a ResNet-50 whose blocks each ask a small gate of their own whether to run.
#pragma once

#include "resnet.hpp"

namespace models::convnet_aig {

/// 1 for each sample that wants the block, as (B, 1, 1, 1): the larger of two logits.
inline tensor gate(network& n, tensor x) {
  const auto here = n.part("gate");
  const tensor hidden =
      n.relu(n.batch_norm(n.conv(n.global_pool(x), "fc1", 16, {.contrast = true}), "bn"));
  const tensor weights = n.contrast_weight("fc2.weight", {2, 16, 1, 1}, 16, 4);
  const tensor shut = n.weight_around("fc2.shut", {1}, 0, 0.1);
  const tensor open = n.weight_around("fc2.open", {1}, n.gate_bias(), 0.1);
  const tensor logits = n.op("Conv", {hidden, weights, n.concat({shut, open}, 0)});
  return n.cast(n.op("ArgMax", {logits}, {{"axis", 1}, {"keepdims", 1}}), sod2::dtype::f32);
}

inline sod2::graph build(const config& c = {}) {
  network n(c);
  tensor x = resnet::stem(n, n.input("image", sod2::dtype::f32, {"B", 3, "H", "W"}, 3));
  x = resnet::stages(
      n, x, {3, 4, 6, 3}, [&](tensor in, std::int64_t planes, std::int64_t stride, bool) {
        const tensor wanted = gate(n, in);
        const auto base = [&] {
          return resnet::shortcut(n, in, resnet::expansion * planes, stride);
        };
        return n.relu(n.choose(
            n.any(wanted),
            [&] { return n.add(base(), n.mul(resnet::bottleneck(n, in, planes, stride), wanted)); },
            [&] { return n.identity(base()); }));
      });
  resnet::classify(n, x);
  return n.finish();
}

/// Any size will do.
inline sod2::analysis_options facts() { return {}; }

}  // namespace models::convnet_aig
