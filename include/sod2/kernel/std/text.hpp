// Text: n-gram counts.
#pragma once

#include <cstdint>
#include <vector>

#include <sod2/kernel/std/support.hpp>

namespace sod2::kernel_detail {

// ---- TfIdfVectorizer (9)
// -------------------------------------------------------------------------

struct tf_idf_state {
  enum class weighting : std::uint8_t { tf, idf, tf_idf } mode = weighting::tf;
  i64 least = 1, most = 1, skips = 0;
  std::vector<i64> pool;     // n-grams one after the other, by length
  std::vector<i64> starts;   // per length from 1 on: where its n-grams start in the pool
  std::vector<i64> columns;  // per n-gram: of the output
  std::vector<float> weights;
};

inline result<kernel_state> prepare_tf_idf(const prepare_args& args) {
  const dtype t = input_type(args, 0);
  if (t != dtype::i32 && t != dtype::i64)
    return error(errc::unsupported, "TfIdfVectorizer of this element type");
  auto* s = new (std::nothrow) tf_idf_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  const auto& a = args.attributes;
  const std::string_view mode = a.string("mode", "");
  if (mode == "TF")
    s->mode = tf_idf_state::weighting::tf;
  else if (mode == "IDF")
    s->mode = tf_idf_state::weighting::idf;
  else if (mode == "TFIDF")
    s->mode = tf_idf_state::weighting::tf_idf;
  else
    return error(errc::bad_attribute, "mode is TF, IDF or TFIDF");
  s->least = a.integer("min_gram_length", 1);
  s->most = a.integer("max_gram_length", 1);
  s->skips = a.integer("max_skip_count", 0);
  const auto list = [](std::span<const i64> v) { return std::vector<i64>(v.begin(), v.end()); };
  s->pool = list(a.integers("pool_int64s"));
  s->starts = list(a.integers("ngram_counts"));
  s->columns = list(a.integers("ngram_indexes"));
  const attribute_view weights = a("weights");
  s->weights.assign(weights.reals.begin(), weights.reals.end());
  if (s->least < 1 || s->most < s->least || s->skips < 0)
    return error(errc::bad_attribute, "lengths of n-grams are positive and ordered");
  if (static_cast<i64>(s->starts.size()) < s->most)
    return error(errc::bad_attribute, "ngram_counts is shorter than max_gram_length");
  i64 grams = 0, before = 0;
  for (std::size_t n = 0; n < s->starts.size(); ++n) {
    const i64 end = n + 1 < s->starts.size() ? s->starts[n + 1] : static_cast<i64>(s->pool.size());
    const i64 length = static_cast<i64>(n) + 1;
    if (s->starts[n] < before || end < s->starts[n] || (end - s->starts[n]) % length != 0 ||
        end > static_cast<i64>(s->pool.size()))
      return error(errc::bad_attribute, "ngram_counts does not cut the pool into n-grams");
    before = s->starts[n];
    grams += (end - s->starts[n]) / length;
  }
  if (static_cast<i64>(s->columns.size()) != grams)
    return error(errc::bad_attribute, "ngram_indexes needs one entry for each n-gram");
  for (i64 c : s->columns)
    if (c < 0) return error(errc::bad_attribute, "ngram_indexes below 0");
  if (s->mode != tf_idf_state::weighting::tf && s->weights.size() != s->columns.size())
    return error(errc::bad_attribute, "weights needs one entry for each n-gram");
  return owner;
}
/// (C) -> (columns), or (N, C) -> (N, columns): how often the n-grams of the pool occur, with up to
/// max_skip_count elements left out between two of theirs, weighted.
inline errc run_tf_idf(const kernel_args& args) {
  const auto& s = state_of<tf_idf_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.rank < 1 || x.rank > 2 || y.rank != x.rank) return errc::rank_mismatch;
  const i64 length = x.dims[x.rank - 1], width = y.dims[y.rank - 1];
  for (i64 c : s.columns)
    if (c >= width) return errc::index_range;
  const i64 rows = x.rank == 2 ? x.dims[0] : 1;
  parallel_parts(args.pool, rows, 1, [&](i64, i64 begin, i64 end) {
    for (i64 row = begin; row < end; ++row) {
      float* const out = y.as<float>() + row * width;
      for (i64 i = 0; i < width; ++i) out[i] = 0;
      std::size_t gram = 0;
      for (i64 n = 1; n <= static_cast<i64>(s.starts.size()); ++n) {
        const i64 first = s.starts[idx(n - 1)];
        const i64 stop =
            idx(n) < s.starts.size() ? s.starts[idx(n)] : static_cast<i64>(s.pool.size());
        for (i64 at = first; at < stop; at += n, ++gram) {
          if (n < s.least || n > s.most) continue;
          i64 found = 0;
          // Single elements have nothing to skip in between.
          for (i64 step = 1; step <= (n == 1 ? 1 : s.skips + 1); ++step)
            for (i64 i = 0; i + (n - 1) * step < length; ++i) {
              i64 k = 0;
              while (k < n && integer_at(x, row * length + i + k * step) == s.pool[idx(at + k)])
                ++k;
              found += k == n;
            }
          if (found == 0) continue;
          const float weight = s.mode == tf_idf_state::weighting::tf ? 1 : s.weights[gram];
          const float times =
              s.mode == tf_idf_state::weighting::idf ? 1 : static_cast<float>(found);
          out[s.columns[gram]] += times * weight;
        }
      }
    }
  });
  return errc::ok;
}

}  // namespace sod2::kernel_detail
