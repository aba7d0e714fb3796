// Text: conversions, normalisation, n-gram counts.
#pragma once

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <sod2/kernel/std/product.hpp>

namespace sod2::kernel_detail {

/// Copies characters into memory that outlives the run; false when there is none.
inline bool keep_text(const kernel_args& args, std::string_view text, std::string_view& out) {
  char* const to = args.text.get(args.text.context, text.size());
  if (to == nullptr) return false;
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  out = {to, text.size()};
  return true;
}

// ---- Cast (9 on), CastLike (15 on) from and to strings
// -------------------------------------------------------------------------

/// The shortest digits that read back as the same number, plain between 1e-4 and 1e16.
template <class T>
std::size_t print_number(T v, char* to, std::size_t room) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::size_t>(std::to_chars(to, to + room, v).ptr - to);
  } else {
    const auto word = [&](const char* text) {
      std::memcpy(to, text, std::strlen(text));
      return std::strlen(text);
    };
    if (std::isnan(v)) return word("NaN");
    if (std::isinf(v)) return word(v < 0 ? "-INF" : "INF");
    const T size = std::fabs(v);
    const bool plain = size == 0 || (size >= T(1e-4) && size < T(1e16));
    const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
    char* end = std::to_chars(to, to + room - 2, v, format).ptr;
    if (plain && std::memchr(to, '.', static_cast<std::size_t>(end - to)) == nullptr) {
      *end++ = '.';
      *end++ = '0';
    }
    return static_cast<std::size_t>(end - to);
  }
}
/// Whole texts only: numbers as C writes them, INF and NaN in any case.
inline bool read_number(std::string_view text, double& out) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  return code == std::errc{} && end == text.data() + text.size();
}
inline bool read_number(std::string_view text, i64& out) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (code == std::errc{} && end == text.data() + text.size()) return true;
  double real = 0;  // "3.7" becomes 3
  if (!read_number(text, real) || !(std::fabs(real) < 9.2e18)) return false;
  out = static_cast<i64>(real);
  return true;
}

inline result<kernel_state> prepare_cast_text(const prepare_args& args) {
  if (args.inputs.empty() || args.outputs.empty()) return error(errc::arity);
  const dtype from = args.inputs[0].type, to = args.outputs[0].type;
  const auto other = from == dtype::string ? to : from;
  if ((from != dtype::string && to != dtype::string) ||
      (other != dtype::string && other != dtype::f32 && other != dtype::f64 &&
       other != dtype::f16 && other != dtype::bf16 && other != dtype::boolean &&
       !is_integer(other)))
    return error(errc::type_mismatch, "Cast of these element types");
  return kernel_state();
}
inline errc run_cast_text(const kernel_args& args) {
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  errc failed = errc::ok;
  const i64 n = y.count();
  if (x.type == dtype::string && y.type == dtype::string) {
    if (n > 0) std::memcpy(y.data, x.data, idx(bytes_of(y.type, n)));
    return errc::ok;
  }
  if (x.type == dtype::string) {
    with_storage(y.type, [&]<class T>() {
      for (i64 i = 0; i < n && failed == errc::ok; ++i) {
        const std::string_view text = x.as<const std::string_view>()[i];
        double real = 0;
        i64 whole = 0;
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
          if (!read_number(text, whole)) failed = errc::value_range;
          y.as<T>()[i] = static_cast<T>(whole);
        } else {
          if (!read_number(text, real)) failed = errc::value_range;
          y.as<T>()[i] = convert_value<T>(real);
        }
      }
    });
    return failed;
  }
  with_storage(x.type, [&]<class T>() {
    char room[64];
    for (i64 i = 0; i < n && failed == errc::ok; ++i) {
      std::size_t size = 0;
      const T v = x.as<const T>()[i];
      if constexpr (std::is_same_v<T, bool>)
        size = print_number(static_cast<int>(v), room, sizeof room);
      else
        size = print_number(widen(v), room, sizeof room);
      if (!keep_text(args, {room, size}, y.as<std::string_view>()[i])) failed = errc::out_of_memory;
    }
  });
  return failed;
}

// ---- StringConcat (20)
// -------------------------------------------------------------------------

inline result<kernel_state> prepare_string_concat(const prepare_args& args) {
  if (input_type(args, 0) != dtype::string || input_type(args, 1) != dtype::string)
    return error(errc::type_mismatch, "StringConcat takes strings");
  return kernel_state();
}
inline errc run_string_concat(const kernel_args& args) {
  const tensor_view &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
  for (i64 i = 0, n = y.count(); i < n; ++i) {
    std::string_view part[2];
    for (int k = 0; k < 2; ++k) {
      const tensor_view& t = k == 0 ? a : b;
      i64 at = 0, rest = i, step = 1;
      for (i64 d = static_cast<i64>(y.rank) - 1, e = static_cast<i64>(t.rank) - 1; d >= 0;
           --d, --e) {
        if (e >= 0) {
          if (t.dims[e] != 1) at += rest % y.dims[d] * step;
          step *= t.dims[e];
        }
        rest /= y.dims[d];
      }
      part[k] = t.as<const std::string_view>()[at];
    }
    char* const to = args.text.get(args.text.context, part[0].size() + part[1].size());
    if (to == nullptr) return errc::out_of_memory;
    for (std::size_t k = 0, at = 0; k < 2; at += part[k].size(), ++k)
      if (!part[k].empty()) std::memcpy(to + at, part[k].data(), part[k].size());
    y.as<std::string_view>()[i] = {to, part[0].size() + part[1].size()};
  }
  return errc::ok;
}

// ---- StringNormalizer (10)
// -------------------------------------------------------------------------

struct string_normalizer_state {
  int change = 0;  // -1 lower, 1 upper
  bool exact = false;
  std::vector<std::string> stop;  // in lower case unless `exact`
};
/// One byte of UTF-8 text: letters of ASCII change, all others stay as they are.
inline char change_case(char c, int change) {
  if (change < 0 && c >= 'A' && c <= 'Z') return static_cast<char>(c + 32);
  if (change > 0 && c >= 'a' && c <= 'z') return static_cast<char>(c - 32);
  return c;
}
inline result<kernel_state> prepare_string_normalizer(const prepare_args& args) {
  if (input_type(args, 0) != dtype::string)
    return error(errc::type_mismatch, "StringNormalizer takes strings");
  auto* s = new (std::nothrow) string_normalizer_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  const std::string_view action = args.attributes.string("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return error(errc::bad_attribute, "case_change_action is NONE, LOWER or UPPER");
  s->change = action == "LOWER" ? -1 : action == "UPPER" ? 1 : 0;
  s->exact = args.attributes.integer("is_case_sensitive", 0) != 0;
  const attribute_view stop = args.attributes("stopwords");
  s->stop.assign(stop.strings.begin(), stop.strings.end());
  if (!s->exact)
    for (std::string& word : s->stop)
      for (char& c : word) c = change_case(c, -1);
  return owner;
}
/// (C) or (1, C): leaves the stop words out and changes the case of the others; where nothing is
/// left, one empty string.
inline errc run_string_normalizer(const kernel_args& args) {
  const auto& s = state_of<string_normalizer_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.rank == 2 && x.dims[0] != 1) return errc::dim_mismatch;
  const auto stops = [&](std::string_view text) {
    for (const std::string& word : s.stop) {
      bool same = word.size() == text.size();
      for (std::size_t i = 0; i < word.size() && same; ++i)
        same = word[i] == (s.exact ? text[i] : change_case(text[i], -1));
      if (same) return true;
    }
    return false;
  };
  i64 kept = 0;
  for (i64 i = 0, n = x.count(); i < n; ++i) {
    const std::string_view text = x.as<const std::string_view>()[i];
    if (stops(text)) continue;
    char* const to = args.text.get(args.text.context, text.size());
    if (to == nullptr) return errc::out_of_memory;
    for (std::size_t k = 0; k < text.size(); ++k) to[k] = change_case(text[k], s.change);
    y.as<std::string_view>()[kept++] = {to, text.size()};
  }
  if (kept == 0 && y.count() > 0) y.as<std::string_view>()[kept++] = {};
  if (args.counts != nullptr) args.counts[0] = kept;
  return errc::ok;
}

// ---- TfIdfVectorizer (9)
// -------------------------------------------------------------------------

struct tf_idf_state {
  enum class weighting : std::uint8_t { tf, idf, tf_idf } mode = weighting::tf;
  i64 least = 1, most = 1, skips = 0;
  std::vector<std::string> words;  // the pool of string inputs
  std::vector<i64> pool;           // n-grams one after the other, by length
  std::vector<i64> starts;         // per length from 1 on: where its n-grams start in the pool
  std::vector<i64> columns;        // per n-gram: of the output
  std::vector<float> weights;

  /// First place of a word in the pool, or -1.
  i64 position(std::string_view word) const {
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] == word) return static_cast<i64>(i);
    return -1;
  }
};

inline result<kernel_state> prepare_tf_idf(const prepare_args& args) {
  const dtype t = input_type(args, 0);
  if (t != dtype::i32 && t != dtype::i64 && t != dtype::string)
    return error(errc::type_mismatch, "TfIdfVectorizer takes strings, int32 and int64");
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
  if (t == dtype::string) {
    // Elements are compared as positions in the pool.
    const attribute_view words = a("pool_strings");
    s->words.assign(words.strings.begin(), words.strings.end());
    for (std::size_t i = 0; i < s->words.size(); ++i) s->pool.push_back(s->position(s->words[i]));
  } else {
    s->pool = list(a.integers("pool_int64s"));
  }
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
  const auto token = [&](i64 at) {
    return x.type == dtype::string ? s.position(x.as<const std::string_view>()[at])
                                   : integer_at(x, at);
  };
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
              while (k < n && token(row * length + i + k * step) == s.pool[idx(at + k)]) ++k;
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
