// Conformer: a speech encoder of convolution-augmented transformer blocks with relative positions.
#pragma once

#include "layers.hpp"

namespace models::conformer {

inline constexpr std::int64_t heads = 8, mel_bands = 80, longest = 5000, classes = 1000;

/// Two unpadded strided convolutions: a quarter of the frames, with all bands as features.
inline tensor subsample(network& n, tensor frames, std::int64_t d) {
  const auto here = n.part("subsampling");
  const conv_shape halve{.kernel = 3, .stride = 2, .pad = 0};
  tensor x = n.relu(n.conv({n.unsqueeze(frames, {1}), 1}, "conv.0", d, halve));
  x = n.relu(n.conv(x, "conv.2", d, halve));
  const std::int64_t bands = ((mel_bands - 1) / 2 - 1) / 2;
  const tensor rows = n.transpose(x, {0, 2, 1, 3});
  const tensor flat = n.reshape(rows, {n.size(rows, 0), n.size(rows, 1), d * bands});
  return n.linear({flat, d * bands}, "input_projection", d);
}

inline tensor feed_forward(network& n, tensor x, std::string_view name) {
  const auto here = n.part(name);
  const tensor inner = n.swish(n.linear(n.layer_norm(x, "norm"), "linear1", 4 * x.channels));
  return n.add(x, n.mul(n.linear(inner, "linear2", x.channels), n.real(0.5)));
}

/// Scores by distance become scores by position: a zero column in front, the rows read one element
/// later, and the first half of what comes out.
inline tensor relative_shift(network& n, tensor scores) {
  const tensor batch = n.size(scores, 0), head = n.size(scores, 1), queries = n.size(scores, 2),
               distances = n.size(scores, 3);
  const tensor zeros = n.op("ConstantOfShape", {n.shape({batch, head, queries, 1})});
  const tensor padded = n.concat({zeros, scores}, 3);
  const tensor skewed =
      n.named(n.reshape(padded, {batch, head, n.add(distances, n.integer(1)), queries}), "skewed");
  const tensor later = n.slice(skewed, 2, 1, std::int64_t{0x7fffffffffffffff});
  const tensor back = n.op("Reshape", {later, n.op("Shape", {scores})});
  const tensor kept = n.add(n.div(distances, n.integer(2)), n.integer(1));
  return n.named(n.slice(back, 3, 0, kept), "shifted");
}

inline tensor attention(network& n, tensor x, tensor table) {
  const auto here = n.part("self_attention");
  const std::int64_t d = x.channels, head = d / heads;
  const tensor batch = n.size(x, 0), length = n.size(x, 1);
  // The middle row of the table is distance 0; rows before it are keys that lie ahead.
  const std::int64_t middle = longest - 1;
  const tensor from = n.add(n.sub(n.integer(middle), length), n.integer(1));
  const tensor near = n.slice(table, 1, from, n.add(n.integer(middle), length));
  const tensor positions = n.named(n.op("Tile", {near, n.shape({batch, 1, 1})}), "positions");

  const tensor normal = n.layer_norm(x, "norm");
  const auto split = [&](tensor t, std::string_view name, bool bias) {
    return n.reshape(n.linear(t, name, d, bias), {batch, -1, heads, head});
  };
  const tensor q = split(normal, "query", true);
  const tensor k = n.transpose(split(normal, "key", true), {0, 2, 3, 1});
  const tensor v = n.transpose(split(normal, "value", true), {0, 2, 1, 3});
  const tensor p = n.transpose(split({positions, d}, "position", false), {0, 2, 3, 1});
  const auto query_with = [&](std::string_view bias) {
    return n.transpose(n.add(q, n.weight_around(bias, {heads, head}, 0, 0.1)), {0, 2, 1, 3});
  };
  const tensor content = n.matmul(query_with("u_bias"), k);
  const tensor by_distance = n.named(n.matmul(query_with("v_bias"), p), "by_distance");
  const tensor scores = n.div(n.add(content, relative_shift(n, by_distance)),
                              n.real(std::sqrt(static_cast<double>(d))));
  const tensor mixed = n.transpose(n.matmul(n.softmax(scores), v), {0, 2, 1, 3});
  return n.add(x, n.linear({n.reshape(mixed, {batch, -1, d}), d}, "out", d));
}

inline tensor convolution(network& n, tensor x) {
  const auto here = n.part("convolution");
  const std::int64_t d = x.channels;
  tensor y = n.transpose(n.layer_norm(x, "norm"), {0, 2, 1});
  y = n.conv(y, "pointwise1", 2 * d, {.axes = 1});
  const auto halves = n.ops("Split", {y}, 2, {{"axis", 1}});
  y = {n.mul(halves[0], n.sigmoid(halves[1])), d};
  y = n.conv(y, "depthwise", d, {.kernel = 31, .groups = d, .bias = false, .axes = 1});
  y = n.conv(n.swish(n.batch_norm(y, "batch_norm")), "pointwise2", d, {.axes = 1});
  return n.add(x, n.transpose(y, {0, 2, 1}));
}

inline sod2::graph build(const config& c = {}) {
  network n(c);
  const std::int64_t d = n.wide(512, heads);
  const tensor frames = n.input("frames", sod2::dtype::f32, {"B", "T", mel_bands}, mel_bands);
  const tensor table = n.buffer("relative_positions", {1, 2 * longest - 1, d});
  tensor x = n.named(subsample(n, frames, d), "subsampled");
  for (std::int64_t i = 0; i < n.deep(11); ++i) {
    const auto block = n.part("block", i);
    x = feed_forward(n, x, "feed_forward1");
    x = attention(n, x, table);
    x = convolution(n, x);
    x = n.layer_norm(feed_forward(n, x, "feed_forward2"), "norm");
  }
  const tensor logits = n.linear(x, "head", n.wide(classes), false);
  n.output(n.op("LogSoftmax", {logits}, {{"axis", -1}}), "log_probabilities");
  return n.finish();
}

/// Long enough for one frame of output, short enough for the table of positions.
inline sod2::analysis_options facts() { return assuming({multiples("T", 7, 4 * longest)}); }

}  // namespace models::conformer
