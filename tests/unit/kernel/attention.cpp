#include "support.hpp"

#include <limits>

using namespace kernel_test;

namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

/// (B, S, H * W) <-> (B, H, S, W).
tensor flattened(const tensor& t) {
  const shape& d = t.dims();
  tensor f(t.type(), {d[0], d[2], d[1] * d[3]});
  for_each_index(d, [&](const shape& at, i64 i) {
    f.set(((at[0] * d[2] + at[2]) * d[1] + at[1]) * d[3] + at[3], t.value(i));
  });
  return f;
}
tensor joined(const tensor& a, const tensor& b) {  // along axis 2
  if (!a.present()) return b;
  shape d = b.dims();
  const i64 n = a.dims()[2];
  d[2] += n;
  tensor t(b.type(), d);
  for_each_index(d, [&](const shape& at, i64 i) {
    shape p = at;
    if (at[2] >= n) p[2] -= n;
    t.set(i, at[2] < n ? a.value(offset_of(a.dims(), p)) : b.value(offset_of(b.dims(), p)));
  });
  return t;
}

}  // namespace

TEST_CASE("Attention: groups, masks, cache, caps, every version") {
  random_source rng;
  for (int round = 0; round < 240; ++round) {
    const auto coin = [&] { return rng.integer(0, 1) == 1; };
    const i64 B = rng.integer(1, 2), Hk = rng.integer(1, 2), Hq = Hk * rng.integer(1, 3);
    const i64 S = round % 30 == 29 ? 0 : rng.integer(1, 5), K = rng.integer(S > 1 ? S : 1, 7);
    const i64 D = rng.extent(9), V = round % 20 == 0 ? 70 : rng.extent(9);
    const int version = 23 + static_cast<int>(rng.integer(0, 2));
    const bool flat = coin(), past = coin(), causal = coin();
    const bool counted = version >= 24 && !past && rng.integer(0, 2) == 0;
    const i64 mask_form = rng.integer(0, 4), mode = rng.integer(0, 3);
    const double cap = coin() ? 0 : 1.5;
    const dtype type = round % 4 == 0 ? dtype::f32 : dtype::f64;
    const tensor q = rng.fill(type, {B, Hq, S, D}), k = rng.fill(type, {B, Hk, K, D}),
                 v = rng.fill(type, {B, Hk, K, V});
    tensor pk, pv;
    const i64 P = past ? rng.integer(0, 3) : 0, T = P + K;
    if (past) {
      pk = rng.fill(type, {B, Hk, P, D});
      pv = rng.fill(type, {B, Hk, P, V});
    }
    tensor mask, valid;
    const i64 wide = version >= 24 && coin() ? rng.integer(1, T) : T;
    if (mask_form == 1) mask = rng.fill(type, {S, wide});
    if (mask_form == 2) mask = rng.fill(type, {B, Hq, S, wide});
    if (mask_form == 3) mask = rng.fill(dtype::boolean, {B, 1, S, wide}, 0, 1);
    if (mask_form == 4) mask = rng.fill(dtype::boolean, {1, wide}, 0, 1);
    if (mask.present() && mask.type() == dtype::boolean)
      for (i64 i = 0; i < mask.count(); i += wide) mask.set(i, 1);  // no row is all excluded
    if (counted)
      valid = rng.fill(dtype::i64, {B}, static_cast<double>(S > 1 ? S : 1), static_cast<double>(K));
    const double scale = coin() ? 0.3 : 1 / std::sqrt(static_cast<double>(D));
    const tensor keys = joined(pk, k), values = joined(pv, v);
    tensor y(type, {B, Hq, S, V}), expected(type, {B, Hq, S, V}), scores(type, {B, Hq, S, T}),
        shown(type, {B, Hq, S, T});
    for (i64 b = 0; b < B; ++b)
      for (i64 h = 0; h < Hq; ++h)
        for (i64 i = 0; i < S; ++i) {
          const i64 g = h / (Hq / Hk), row = (b * Hq + h) * S + i;
          std::vector<double> s(idx(T)), p(idx(T));
          double sum = 0;
          for (i64 j = 0; j < T; ++j) {
            double dot = 0, bias = 0;
            for (i64 d = 0; d < D; ++d)
              dot += q.value(row * D + d) * keys.value(((b * Hk + g) * T + j) * D + d);
            if (mask.present()) {
              shape md = mask.dims();
              md.insert(md.begin(), 4 - md.size(), 1);
              const i64 o =
                  ((md[0] > 1 ? b : 0) * md[1] + (md[1] > 1 ? h : 0)) * md[2] + (md[2] > 1 ? i : 0);
              const i64 at = T > 1 && wide == 1 && version < 24 ? 0 : j;
              const double m = at < wide ? mask.value(o * wide + at) : never;
              bias = at >= wide ? never : mask.type() == dtype::boolean ? (m != 0 ? 0 : never) : m;
            }
            const i64 ahead = past ? P : counted ? valid.at<i64>(b) - S : 0;
            if (causal && j > i + ahead) bias = never;
            if (counted && j >= valid.at<i64>(b)) bias = never;
            const auto capped = [&](double x) { return cap > 0 ? cap * std::tanh(x / cap) : x; };
            const double raw = dot * scale;
            const double first = version >= 25 ? capped(raw) : raw + bias;
            const double second = version >= 25 ? first + bias : capped(first);
            s[idx(j)] = std::exp(second);
            sum += s[idx(j)];
            p[idx(j)] = mode == 0 ? raw : mode == 1 ? first : second;
          }
          for (i64 j = 0; j < T; ++j)
            shown.set(row * T + j, mode == 3 ? s[idx(j)] / sum : p[idx(j)]);
          for (i64 d = 0; d < V; ++d) {
            double total = 0;
            for (i64 j = 0; j < T; ++j)
              total += s[idx(j)] / sum * values.value(((b * Hk + g) * T + j) * V + d);
            expected.set(row * V + d, total);
          }
        }
    call c;
    c.name = "Attention";
    c.version = version;
    c.attrs.set("is_causal", causal ? 1 : 0).set("softcap", cap).set("scale", scale);
    c.attrs.set("qk_matmul_output_mode", mode);
    if (flat) c.attrs.set("q_num_heads", Hq).set("kv_num_heads", Hk);
    c.inputs = {flat ? flattened(q) : q,
                flat ? flattened(k) : k,
                flat ? flattened(v) : v,
                mask,
                pk,
                pv,
                valid};
    if (flat) y = flattened(y);
    c.outputs = {y, tensor(type, keys.dims()), tensor(type, values.dims()), scores};
    if (coin()) c.outputs[1] = tensor();
    c.threads = 2;
    INFO("round ", round, " version ", version, " mask ", mask_form, " causal ", causal);
    REQUIRE(c.run() == sod2::errc::ok);
    check_close(c.outputs[0], flat ? flattened(expected) : expected);
    if (c.outputs[1].present()) check_equal(c.outputs[1], keys);
    check_equal(c.outputs[2], values);
    check_close(c.outputs[3], shown);
  }
}

TEST_CASE("RotaryEmbedding") {
  random_source rng;
  for (int round = 0; round < 64; ++round) {
    const bool flat = (round & 1) != 0, interleaved = (round & 2) != 0, ids = (round & 4) != 0,
               partial = (round & 8) != 0;
    const i64 B = 2, H = 3, S = round % 16 == 5 ? 0 : rng.integer(1, 4), D = 2 * rng.integer(2, 5);
    const i64 R = partial ? D - 2 : D, half = R / 2, rows = 9;
    const tensor x = rng.fill(dtype::f32, {B, H, S, D});
    const shape form = ids ? shape{rows, half} : shape{B, S, half};
    const tensor cosine = rng.fill(dtype::f32, form), sine = rng.fill(dtype::f32, form);
    const tensor position = rng.fill(dtype::i64, {B, S}, 0, static_cast<double>(rows - 1));
    tensor expected(dtype::f32, x.dims());
    for_each_index(x.dims(), [&](const shape& at, i64 i) {
      const i64 d = at[3], p = ids ? position.at<i64>(at[0] * S + at[2]) : at[0] * S + at[2];
      if (d >= R) {
        expected.set(i, x.value(i));
        return;
      }
      const i64 pair = interleaved ? d / 2 : d % half;
      const bool second = interleaved ? d % 2 == 1 : d >= half;
      const i64 other = interleaved ? (second ? -1 : 1) : (second ? -half : half);
      expected.set(i, cosine.value(p * half + pair) * x.value(i) +
                          (second ? 1 : -1) * sine.value(p * half + pair) * x.value(i + other));
    });
    call c;
    c.name = "RotaryEmbedding";
    c.version = 23;
    c.attrs.set("interleaved", interleaved ? 1 : 0);
    if (partial) c.attrs.set("rotary_embedding_dim", R);
    if (flat) c.attrs.set("num_heads", H);
    c.inputs = {flat ? flattened(x) : x, cosine, sine};
    if (ids) c.inputs.push_back(position);
    c.outputs = {tensor(dtype::f32, c.inputs[0].dims())};
    c.threads = 2;
    REQUIRE(c.run() == sod2::errc::ok);
    check_close(c.outputs[0], flat ? flattened(expected) : expected);
    if (!ids || S == 0) continue;
    position.set(0, static_cast<double>(rows));
    CHECK(c.run() == sod2::errc::index_range);
  }
}
