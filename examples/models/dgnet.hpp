// DGNet (ResDG-34): each block of a ResNet-34 predicts which tiles of its map and which channels
// between its two convolutions matter, and computes only those: gathered, convolved densely,
// scattered. The image has a fixed size; how much is computed depends on its content.
#pragma once

#include "resnet.hpp"

namespace models::dgnet {

/// How a map is cut: as many tiles in each direction in every stage, of ever smaller size.
struct tiling {
  std::int64_t grid = 0, tile = 0;
  std::int64_t side() const { return grid * tile; }
};

/// Logits that are positive for what a sample computes, opened at the stated rate.
inline tensor is_open(network& n, tensor logits) {
  return n.op("GreaterOrEqual", {logits, n.real(0)});
}

/// One bit for each tile of what the block gives: (B, grid, grid).
inline tensor tile_mask(network& n, tensor x, std::int64_t window) {
  const tensor cells =
      n.op("AveragePool", {x}, {{"kernel_shape", {window, window}}, {"strides", {window, window}}});
  const auto here = n.part("mask_s");
  const tensor logits = n.conv(cells, "conv", 1, {.kernel = 3, .bias = false, .contrast = true});
  return n.squeeze(is_open(n, n.add(logits, n.real(n.gate_bias()))), {1});
}

/// One bit for each channel: (B, C).
inline tensor channel_mask(network& n, tensor x, std::int64_t out) {
  const auto here = n.part("mask_c");
  const std::int64_t hidden = x.channels < 4 ? 1 : x.channels / 4;
  tensor y = n.conv(n.global_pool(x), "squeeze", hidden, {.bias = false, .contrast = true});
  y = n.relu(n.batch_norm(y, "bn"));
  const tensor weights = n.weight("expand.weight", {out, hidden, 1, 1}, hidden, 0.5);
  const tensor bias = n.weight_around("expand.bias", {out}, n.gate_bias(), 0.2);
  return n.flatten({is_open(n, n.op("Conv", {y, weights, bias})), out});
}

/// Indices of what is set, one row each: (u, rank).
inline tensor indices_of(network& n, tensor mask) {
  return n.transpose(n.op("NonZero", {mask}), {1, 0});
}

/// A 3x3 convolution computed on the listed tiles only, each with its halo: (u, C, e, e).
inline tensor conv_tiles(network& n, tensor x, tensor tiles, tensor weights, tensor bias,
                         tiling cut, std::int64_t stride) {
  const std::int64_t halo = (cut.tile - 1) * stride + 3;
  std::vector<std::int64_t> rows;
  for (std::int64_t t = 0; t < cut.grid; ++t)
    for (std::int64_t k = 0; k < halo; ++k) rows.push_back(t * cut.tile * stride + k);
  const tensor index = n.reshape(n.integers(rows), {cut.grid, halo});
  const tensor padded = n.op("Pad", {x, n.integers({0, 0, 1, 1, 0, 0, 1, 1})});
  // (B, C, H, W) -> (B, C, grid, halo, grid, halo) -> (B, grid, grid, C, halo, halo)
  const tensor windows = n.gather(n.gather(padded, index, 2), index, 4);
  const tensor chosen = n.op("GatherND", {n.transpose(windows, {0, 2, 4, 1, 3, 5}), tiles});
  return n.op("Conv", {chosen, weights, bias},
              {{"kernel_shape", {3, 3}}, {"strides", {stride, stride}}, {"pads", {0, 0, 0, 0}}});
}

/// Tiles at their places in a map of zeros: (B, C, H, W).
inline tensor scatter_tiles(network& n, tensor computed, tensor tiles, tensor batch,
                            extent channels, tiling cut) {
  const tensor zeros =
      n.op("ConstantOfShape", {n.shape({batch, cut.grid, cut.grid, channels, cut.tile, cut.tile})});
  const tensor all = n.op("ScatterND", {zeros, tiles, computed});
  return n.reshape(n.transpose(all, {0, 3, 1, 4, 2, 5}), {batch, channels, cut.side(), cut.side()});
}

inline tensor block(network& n, tensor x, std::int64_t out, tiling cut, std::int64_t stride) {
  const tensor batch = n.size(x, 0);
  const tensor tiles = n.named(indices_of(n, tile_mask(n, x, cut.tile * stride)), "tiles");
  const tensor mask = channel_mask(n, x, out);
  // Channels that any sample wants; each sample's own choice is applied to its tiles.
  const tensor wanted =
      n.op("ReduceMax", {n.cast(mask, sod2::dtype::f32)}, {{"axes", {0}}, {"keepdims", 0}});
  const tensor channels = n.named(n.squeeze(n.op("NonZero", {wanted}), {0}), "channels");
  const tensor count = n.size(channels, 0);
  const tensor sample = n.squeeze(n.slice(tiles, 1, 0, 1), {1});
  const tensor rows = n.gather(n.gather(n.cast(mask, sod2::dtype::f32), sample, 0), channels, 1);

  const tensor weight1 = n.weight("conv1.weight", {out, x.channels, 3, 3}, 9 * x.channels);
  const tensor bias1 = n.weight_around("conv1.bias", {out}, 0, 0.05);
  tensor y = conv_tiles(n, x, tiles, n.gather(weight1, channels, 0), n.gather(bias1, channels, 0),
                        cut, stride);
  y = n.mul(n.relu(y), n.unsqueeze(rows, {2, 3}));
  y = n.named(scatter_tiles(n, y, tiles, batch, count, cut), "inner");
  const tensor weight2 = n.weight("conv2.weight", {out, out, 3, 3}, 9 * out);
  const tensor bias2 = n.weight_around("conv2.bias", {out}, 0, 0.05);
  y = conv_tiles(n, y, tiles, n.gather(weight2, channels, 1), bias2, cut, 1);
  y = scatter_tiles(n, y, tiles, batch, out, cut);
  return n.relu(n.add({y, out}, resnet::shortcut(n, x, out, stride)));
}

inline sod2::graph build(const config& c = {}) {
  network n(c);
  const std::int64_t image = n.side(224, 32);
  tensor x = resnet::stem(n, n.input("image", sod2::dtype::f32, {"B", 3, image, image}, 3));
  tiling cut{image / 32, 8};
  x = resnet::stages(n, x, {3, 4, 6, 3},
                     [&](tensor in, std::int64_t planes, std::int64_t stride, bool) {
                       cut.tile /= stride;
                       return block(n, in, planes, cut, stride);
                     });
  resnet::classify(n, x);
  return n.finish();
}

/// Only the batch is free.
inline sod2::analysis_options facts() { return {}; }

}  // namespace models::dgnet
