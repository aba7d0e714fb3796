// A transformer's feed-forward layer as a mixture of experts: a router sends each token to the best
// two of eight; how many tokens an expert gets is known only in a run. Each gathers its tokens,
// computes on these alone and scatters its answers back.
#pragma once

#include "layers.hpp"

namespace models::mixture_of_experts {

inline constexpr std::int64_t experts = 8, chosen = 2;

inline sod2::graph build(const config& c = {}) {
  network n(c);
  const std::int64_t d = n.wide(512);
  const tensor input = n.input("hidden", sod2::dtype::f32, {"B", "L", d}, d);
  const tensor normal = n.layer_norm(input, "norm");
  const tensor tokens{n.named(n.reshape(normal, {-1, d}), "tokens"), d};

  // Tokens differ in direction alone after the norm, so the logits spread as they are.
  const tensor odds = n.softmax(n.linear(tokens, "router", experts));
  const auto best = n.ops("TopK", {odds, n.integers({chosen})}, 2, {{"axis", -1}});
  const tensor sum = n.op("ReduceSum", {best[0], n.integers({-1})}, {{"keepdims", 1}});
  const tensor shares = n.div(best[0], sum);

  tensor mixed = n.op("ConstantOfShape", {n.op("Shape", {tokens})});
  std::vector<tensor> counts;
  for (std::int64_t e = 0; e < experts; ++e) {
    const auto here = n.part("expert", e);
    // One row for each token that chose it: which token, and as which of its choices.
    const tensor mine = n.op("Equal", {best[1], n.integer(e)});
    const tensor places = n.named(n.transpose(n.op("NonZero", {mine}), {1, 0}), "places");
    const tensor rows = n.slice(places, 1, 0, 1);
    const tensor gathered{n.op("GatherND", {tokens, rows}), d};
    const tensor hidden = n.gelu(n.linear(n.named(gathered, "gathered"), "linear1", 4 * d));
    const tensor answer = n.linear(hidden, "linear2", d);
    const tensor share = n.unsqueeze(n.op("GatherND", {shares, places}), {1});
    mixed = n.op("ScatterND", {mixed, rows, n.mul(answer, share)}, {{"reduction", "add"}});
    counts.push_back(n.unsqueeze(n.size(places, 0), {0}));
  }
  const tensor shaped = n.op("Reshape", {mixed, n.op("Shape", {input})});
  n.output(n.add(input, shaped), "mixed");
  n.output(n.concat(counts, 0), "counts");
  return n.finish();
}

/// Any number of tokens will do.
inline sod2::analysis_options facts() { return {}; }

}  // namespace models::mixture_of_experts
