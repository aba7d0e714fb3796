// The encoder of Stable Diffusion v1's autoencoder with its quantising convolution: an image
// becomes moments of an eight times smaller latent.
#pragma once

#include "layers.hpp"

namespace models::stable_diffusion_encoder {

/// Groups that share a normalisation; channels come in whole ones.
inline std::int64_t groups(const network& n) { return n.wide(32); }
inline std::int64_t wide(const network& n, std::int64_t channels) {
  return n.wide(channels, groups(n));
}

inline tensor norm_swish(network& n, tensor x, std::string_view name) {
  return n.swish(n.group_norm(x, name, groups(n), 1e-6));
}

inline tensor resnet_block(network& n, tensor x, std::int64_t out) {
  tensor y = n.conv(norm_swish(n, x, "norm1"), "conv1", out, {.kernel = 3});
  y = n.conv(norm_swish(n, y, "norm2"), "conv2", out, {.kernel = 3});
  return n.add(x.channels == out ? x : n.conv(x, "nin_shortcut", out), y);
}

/// Halves height and width; only the far edges are padded.
inline tensor downsample(network& n, tensor x) {
  const tensor padded = n.op("Pad", {x, n.integers({0, 0, 0, 0, 0, 0, 1, 1})});
  return n.conv(padded, "conv", x.channels, {.kernel = 3, .stride = 2, .pad = 0});
}

/// One head over all pixels.
inline tensor attention_block(network& n, tensor x) {
  const tensor normal = n.group_norm(x, "norm", groups(n), 1e-6);
  const tensor q = n.transpose(n.flat_map(n.conv(normal, "q", x.channels)), {0, 2, 1});
  const tensor k = n.flat_map(n.conv(normal, "k", x.channels));
  const tensor v = n.flat_map(n.conv(normal, "v", x.channels));
  const double scale = 1 / std::sqrt(static_cast<double>(x.channels));
  const tensor scores = n.named(n.mul(n.matmul(q, k), n.real(scale)), "scores");
  const tensor mixed = n.matmul(v, n.transpose(n.softmax(scores, 2), {0, 2, 1}));
  const tensor image = n.reshape(mixed, {n.size(x, 0), n.size(x, 1), n.size(x, 2), n.size(x, 3)});
  return n.add(x, n.conv({image, x.channels}, "proj_out", x.channels));
}

inline sod2::graph build(const config& c = {}) {
  network n(c);
  const tensor image = n.input("image", sod2::dtype::f32, {"B", 3, "H", "W"}, 3);
  tensor x = n.conv(image, "conv_in", wide(n, 128), {.kernel = 3});
  const std::int64_t channels[] = {128, 256, 512, 512};
  for (std::int64_t level = 0; level < 4; ++level) {
    const auto down = n.part("down", level);
    for (std::int64_t i = 0; i < n.deep(2); ++i) {
      const auto block = n.part("block", i);
      x = resnet_block(n, x, wide(n, channels[level]));
    }
    if (level == 3) break;
    const auto halve = n.part("downsample");
    x = n.named(downsample(n, x), "out");
  }
  const auto middle = [&](const char* name, auto layer) {
    const auto mid = n.part(name);
    x = layer();
  };
  middle("mid.block_1", [&] { return resnet_block(n, x, x.channels); });
  middle("mid.attn_1", [&] { return attention_block(n, x); });
  middle("mid.block_2", [&] { return resnet_block(n, x, x.channels); });
  x = n.conv(norm_swish(n, x, "norm_out"), "conv_out", 8, {.kernel = 3});
  n.output(n.conv(x, "quant_conv", 8), "moments");
  return n.finish();
}

/// Sizes it is made for.
inline sod2::analysis_options facts() {
  return assuming({multiples("H", 8, 4096, 8), multiples("W", 8, 4096, 8)});
}

}  // namespace models::stable_diffusion_encoder
