// BlockDrop: a ResNet-101 whose 33 blocks run or not as a policy says; the policy is an input, so
// the whole path is known before anything runs.
#pragma once

#include "resnet.hpp"

namespace models::blockdrop {

inline sod2::graph build(const config& c = {}) {
  network n(c);
  const std::initializer_list<std::int64_t> blocks{3, 4, 23, 3};
  std::int64_t total = 0, next = 0;
  for (const std::int64_t count : blocks) total += n.deep(count);

  const tensor image = n.input("image", sod2::dtype::f32, {"B", 3, "H", "W"}, 3);
  const tensor policy = n.input("policy", sod2::dtype::boolean, {total});
  const auto keep = n.ops("Split", {policy}, static_cast<std::size_t>(total), {{"axis", 0}});
  const tensor x = resnet::stages(
      n, resnet::stem(n, image), blocks,
      [&](tensor in, std::int64_t planes, std::int64_t stride, bool) {
        const auto base = [&] {
          return resnet::shortcut(n, in, resnet::expansion * planes, stride);
        };
        return n.choose(
            keep[static_cast<std::size_t>(next++)],
            [&] { return n.relu(n.add(base(), resnet::bottleneck(n, in, planes, stride))); },
            [&] { return n.identity(base()); });
      });
  resnet::classify(n, x);
  return n.finish();
}

/// Any size will do.
inline sod2::analysis_options facts() { return {}; }

}  // namespace models::blockdrop
