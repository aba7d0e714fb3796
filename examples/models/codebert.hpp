// CodeBERT: RoBERTa-base with its pooler, twelve post-norm transformer layers over tokens of source
// code.
#pragma once

#include "layers.hpp"

namespace models::codebert {

inline constexpr std::int64_t heads = 12;

/// Positions count the tokens that are no padding (token 1), from 2 on.
inline tensor position_ids(network& n, tensor ids) {
  const tensor is_token =
      n.cast(n.op("Not", {n.op("Equal", {ids, n.integer(1)})}), sod2::dtype::i64);
  const tensor running = n.op("CumSum", {is_token, n.integer(1)});
  return n.add(n.mul(running, is_token), n.integer(1));
}

inline tensor embeddings(network& n, tensor ids) {
  const auto here = n.part("embeddings");
  const std::int64_t d = n.wide(768, heads);
  const tensor words = n.weight_around("word", {n.wide(50265), d}, 0, 1);
  const tensor positions = n.weight_around("position", {514, d}, 0, 0.1);
  const tensor types = n.weight_around("type", {1, d}, 0, 0.1);
  // Every token is of type 0: zeros of the shape of the ids.
  const tensor zeros =
      n.op("ConstantOfShape", {n.shape({n.size(ids, 0), n.size(ids, 1)})},
           {{"value", sod2::constant_tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{0})}});
  const tensor sum = n.add({n.add(n.gather(words, ids, 0), n.gather(types, zeros, 0)), d},
                           n.gather(positions, position_ids(n, ids), 0));
  return n.named(n.layer_norm_in_pieces({sum, d}, "LayerNorm"), "embedded");
}

/// 0 where a token may be looked at, the lowest number elsewhere: (B, 1, 1, L).
inline tensor extended_mask(network& n, tensor mask) {
  const tensor seen = n.cast(n.unsqueeze(mask, {1, 2}), sod2::dtype::f32);
  return n.mul(n.sub(n.real(1), seen), n.real(-3.4028234663852886e38));
}

inline tensor attention(network& n, tensor x, tensor mask) {
  const std::int64_t d = x.channels;
  const tensor q = n.split_heads(n.linear(x, "query", d), heads, {0, 2, 1, 3});
  const tensor k = n.split_heads(n.linear(x, "key", d), heads, {0, 2, 3, 1});
  const tensor v = n.split_heads(n.linear(x, "value", d), heads, {0, 2, 1, 3});
  const tensor raw = n.div(n.matmul(n.named(q, "heads"), k), n.real(std::sqrt(d / heads)));
  const tensor scores = n.named(n.add(raw, mask), "scores");
  return n.linear(n.join_heads(n.matmul(n.softmax(scores), v), d), "output", d);
}

inline sod2::graph build(const config& c = {}) {
  network n(c);
  const tensor ids = n.input("input_ids", sod2::dtype::i64, {"B", "L"});
  const tensor mask = extended_mask(n, n.input("attention_mask", sod2::dtype::i64, {"B", "L"}));
  tensor x = embeddings(n, ids);
  for (std::int64_t i = 0; i < n.deep(12); ++i) {
    const auto layer = n.part("layer", i);
    x = n.layer_norm_in_pieces(n.add(x, attention(n, x, mask)), "attention_norm");
    const tensor inner = n.gelu(n.linear(x, "intermediate", 4 * x.channels));
    x = n.layer_norm_in_pieces(n.add(x, n.linear(inner, "output_dense", x.channels)),
                               "output_norm");
  }
  n.output(x, "last_hidden_state");
  const tensor first = n.gather(x, n.integer(0), 1);
  n.output(n.op("Tanh", {n.gemm(first, "pooler", x.channels)}), "pooled");
  return n.finish();
}

inline sod2::analysis_options facts() { return assuming({multiples("L", 1, 512)}); }

}  // namespace models::codebert
