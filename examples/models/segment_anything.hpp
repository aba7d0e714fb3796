// Segment Anything without its image encoder, as its authors export it: prompts (points and a mask)
// and an image embedding become four masks of the size of the original image, which is an input.
#pragma once

#include "layers.hpp"

namespace models::segment_anything {

inline constexpr std::int64_t heads = 8;

/// Of tokens and pixels; cross-attention splits half of them into heads.
inline std::int64_t features(const network& n) { return n.wide(256, 2 * heads); }

/// Random Fourier features of points in pixels, plus a learned vector for each kind of point.
inline tensor embed_points(network& n, tensor coords, tensor labels, std::int64_t image) {
  const auto here = n.part("point_encoder");
  const std::int64_t d = features(n);
  const tensor unit = n.div(n.add(coords, n.real(0.5)), n.real(static_cast<double>(image)));
  const tensor centred = n.sub(n.mul(unit, n.real(2)), n.real(1));
  const tensor waves =
      n.mul(n.matmul(centred, n.buffer("gaussian", {2, d / 2})), n.real(6.283185307179586));
  tensor x = n.concat({n.op("Sin", {waves}), n.op("Cos", {waves})}, -1);
  const tensor kind =
      n.expand(n.unsqueeze(labels, {-1}), {n.size(x, 0), n.size(x, 1), n.size(x, 2)});
  const auto is = [&](std::int64_t label) {
    return n.cast(n.op("Equal", {kind, n.integer(label)}), sod2::dtype::f32);
  };
  x = n.mul(x, n.sub(n.real(1), is(-1)));
  x = n.add(x, n.mul(n.weight_around("not_a_point", {1, d}, 0, 1), is(-1)));
  for (std::int64_t i = 0; i < 4; ++i)
    x = n.add(x, n.mul(n.weight_around("point." + std::to_string(i), {1, d}, 0, 1), is(i)));
  return {x, d};
}

/// A mask scaled down four times; a learned vector everywhere where none is given.
inline tensor embed_mask(network& n, tensor mask, tensor given) {
  const auto here = n.part("mask_downscaling");
  const conv_shape halve{.kernel = 2, .stride = 2, .pad = 0};
  tensor x = n.conv(mask, "0", n.wide(16) < 4 ? 2 : n.wide(16) / 4, halve);
  x = n.gelu(n.layer_norm_in_pieces(x, "1", 1, 1e-6));
  x = n.conv(x, "3", 4 * x.channels, halve);
  x = n.gelu(n.layer_norm_in_pieces(x, "4", 1, 1e-6));
  x = n.conv(x, "6", features(n));
  const tensor none = n.weight_around("no_mask", {1, x.channels, 1, 1}, 0, 1);
  return n.add(n.mul(x, given), n.mul(n.sub(n.real(1), given), none));
}

/// Multi-head attention whose heads live in `inner` features.
inline tensor attention(network& n, std::string_view name, tensor q, tensor k, tensor v,
                        std::int64_t inner) {
  const auto here = n.part(name);
  const auto split = [&](tensor x, std::string_view projection) {
    return n.split_heads(n.linear(x, projection, inner), heads, {0, 2, 1, 3});
  };
  const tensor keys = n.transpose(split(k, "k_proj"), {0, 1, 3, 2});
  const tensor raw = n.matmul(split(q, "q_proj"), keys);
  const tensor scores = n.named(n.div(raw, n.real(std::sqrt(inner / heads))), "scores");
  const tensor mixed = n.matmul(n.softmax(scores), split(v, "v_proj"));
  return n.linear(n.join_heads(mixed, inner), "out_proj", q.channels);
}

struct streams {
  tensor tokens, image;
};

/// Tokens and pixels look at each other; both positions are added wherever keys or queries are
/// made.
inline streams two_way(network& n, tensor tokens, tensor image, tensor positions) {
  const auto here = n.part("transformer");
  const std::int64_t d = tokens.channels;
  const tensor points = tokens;
  for (std::int64_t i = 0; i < n.deep(2); ++i) {
    const auto layer = n.part("layers", i);
    const tensor q = i == 0 ? tokens : n.add(tokens, points);
    const tensor own = attention(n, "self_attn", q, q, tokens, d);
    tokens = n.layer_norm(i == 0 ? own : n.add(tokens, own), "norm1");
    const tensor looked = attention(n, "cross_attn_token_to_image", n.add(tokens, points),
                                    n.add(image, positions), image, d / 2);
    tokens = n.layer_norm(n.add(tokens, looked), "norm2");
    tokens = n.layer_norm(n.add(tokens, n.mlp(tokens, "mlp", {8 * d, d})), "norm3");
    const tensor seen = attention(n, "cross_attn_image_to_token", n.add(image, positions),
                                  n.add(tokens, points), tokens, d / 2);
    image = n.layer_norm(n.add(image, seen), "norm4");
  }
  const tensor last = attention(n, "final_attn_token_to_image", n.add(tokens, points),
                                n.add(image, positions), image, d / 2);
  return {n.layer_norm(n.add(tokens, last), "norm_final"), image};
}

/// To the padded square, cut to where the image was in it, to the size of the original.
inline tensor postprocess(network& n, tensor masks, tensor original, std::int64_t image) {
  const tensor square = n.resize(masks, n.integers({image, image}), "half_pixel");
  const tensor size = n.cast(original, sod2::dtype::f32);
  const tensor scale =
      n.div(n.real(static_cast<double>(image)), n.op("ReduceMax", {size}, {{"keepdims", 0}}));
  const tensor kept =
      n.cast(n.op("Floor", {n.add(n.mul(scale, size), n.real(0.5))}), sod2::dtype::i64);
  const auto element = [&](tensor x, std::int64_t i) { return n.gather(x, n.integer(i), 0); };
  tensor x = n.slice(square, 2, 0, element(kept, 0));
  x = n.slice(x, 3, 0, element(kept, 1));
  return n.resize(x, n.shape({element(original, 0), element(original, 1)}), "half_pixel");
}

inline sod2::graph build(const config& c = {}) {
  using sod2::dtype;
  network n(c);
  const std::int64_t d = features(n), side = n.side(64, 8), image = 16 * side;
  const tensor embedding = n.input("image_embeddings", dtype::f32, {1, d, side, side}, d);
  const tensor coords = n.input("point_coords", dtype::f32, {1, "P", 2}, 2);
  const tensor labels = n.input("point_labels", dtype::i64, {1, "P"});
  const tensor mask_input = n.input("mask_input", dtype::f32, {1, 1, 4 * side, 4 * side}, 1);
  const tensor has_mask = n.input("has_mask_input", dtype::f32, {1});
  const tensor original = n.input("orig_im_size", dtype::i64, {2});

  const tensor prompts = embed_points(n, coords, labels, image);
  const tensor dense = embed_mask(n, mask_input, has_mask);
  const tensor learned = n.concat(
      {n.weight_around("iou_token", {1, d}, 0, 1), n.weight_around("mask_tokens", {4, d}, 0, 1)},
      0);
  const tensor own = n.expand(n.unsqueeze(learned, {0}), {n.size(prompts, 0), 5, d});
  const tensor tokens = n.named({n.concat({own, prompts}, 1), d}, "tokens");

  // One image for each set of prompts; attention sees a row for each pixel.
  const auto repeated = [&](tensor x) {
    return n.op("Tile", {x, n.shape({n.size(tokens, 0), 1, 1, 1})});
  };
  const auto rows = [&](tensor x) { return tensor{n.transpose(n.flat_map(x), {0, 2, 1}), d}; };
  const tensor source = n.add(repeated(embedding), dense);
  const tensor positions = repeated(n.buffer("dense_positions", {1, d, side, side}));
  const streams out = two_way(n, tokens, rows(source), rows(positions));

  const tensor map = n.reshape(n.transpose(out.image, {0, 2, 1}),
                               {n.size(source, 0), d, n.size(source, 2), n.size(source, 3)});
  tensor up = n.conv_transpose({map, d}, "upscaling.0", d / 4);
  up = n.gelu(n.layer_norm_in_pieces(up, "upscaling.1", 1, 1e-6));
  up = n.gelu(n.conv_transpose(up, "upscaling.3", d / 8));
  const auto token = [&](std::int64_t i) {
    return tensor{n.gather(out.tokens, n.integer(i), 1), d};
  };
  std::vector<tensor> kernels;
  for (std::int64_t i = 0; i < 4; ++i) {
    const tensor weights = n.mlp(token(1 + i), "hyper." + std::to_string(i), {d, d, d / 8});
    kernels.push_back(n.unsqueeze(weights, {1}));
  }
  const tensor product = n.matmul(n.concat(kernels, 1), n.flat_map(up));
  const tensor masks = n.reshape(product, {n.size(up, 0), -1, n.size(up, 2), n.size(up, 3)});
  const tensor iou = n.mlp(token(0), "iou_head", {d, d, 4});
  n.output(postprocess(n, masks, original, image), "masks");
  n.output(iou, "iou_predictions");
  n.output(masks, "low_res_masks");
  return n.finish();
}

/// The value of orig_im_size decides the size of the masks.
inline sod2::analysis_options facts() {
  return assuming({multiples("P", 1, 1024), multiples("orig_im_size[0]", 1, 16384),
                   multiples("orig_im_size[1]", 1, 16384)},
                  {"orig_im_size"});
}

}  // namespace models::segment_anything
