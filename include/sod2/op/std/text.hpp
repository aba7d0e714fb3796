// Operators on strings.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>
#include <sod2/op/std/elementwise.hpp>

namespace sod2::ops {

/// StringConcat-20: broadcast.
struct string_concat : detail::arithmetic {
  static constexpr int since[] = {20};
  static constexpr op_info info{
      .name = "StringConcat", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
};
/// RegexFullMatch-20: strings to boolean.
struct regex_full_match : detail::unary_predicate {
  static constexpr int since[] = {20};
  static constexpr op_info info{
      .name = "RegexFullMatch", .versions = since, .map = mapping::one_to_one};
};
/// StringSplit-20: Y (..., u) with the largest number of parts, Z (...) their numbers.
struct string_split {
  static constexpr int since[] = {20};
  static constexpr op_info info{.name = "StringSplit",
                                .versions = since,
                                .base = dynamism::edo,
                                .map = mapping::barrier,
                                .outputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, dtype::string);
    if (c.output_count() > 1) {
      c.set_type(1, dtype::i64);
      c.copy_shape(0, 1);
    }
    if (!c.rank_known(0)) {
      if (!c.pending(0)) c.set_rank_unknown(0);
      return {};
    }
    std::int64_t most = -1;
    SOD2_TRY(detail::read(c.attributes(), "maxsplit", most));
    typename C::dim_list dims = c.input(0).dims;
    dims.push_back(
        c.fresh(0, dims.size(), {0, most >= 0 && most < infinity ? most + 1 : infinity}));
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    if (c.output_count() > 1 && c.output(1).rank_known())
      c.refine_shape(0, c.output(1).dims.view());
    return {};
  }
};
/// StringNormalizer-10: (C) or (1, C); with stop words only a run tells how many remain, at least
/// one.
struct string_normalizer {
  static constexpr int since[] = {10};
  static constexpr op_info info{.name = "StringNormalizer",
                                .versions = since,
                                .base = dynamism::edo,
                                .map = mapping::barrier};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, dtype::string);
    if (!detail::ranks_known(c, {0})) return {};
    typename C::dim_list dims = c.input(0).dims;
    if (dims.empty() || dims.size() > 2)
      return detail::rank_error(c.input_name(0), dims.size(), "1 or 2");
    const attribute_view words = c.attributes()("stopwords");
    if (words && !words.strings.empty())
      dims.back() =
          c.fresh(0, dims.size() - 1, {1, max_of(1, detail::upper_bound(c, dims.back()))});
    c.set_shape(0, dims);
    return {};
  }
};
/// TfIdfVectorizer-9: (C) -> (V), (N, C) -> (N, V), V = max(ngram_indexes) + 1.
struct tf_idf_vectorizer {
  static constexpr int since[] = {9};
  static constexpr op_info info{.name = "TfIdfVectorizer", .versions = since};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, dtype::f32);
    std::span<const std::int64_t> indexes;
    SOD2_TRY(detail::require(c.attributes(), "ngram_indexes", indexes));
    if (!detail::ranks_known(c, {0})) return {};
    const auto in = c.dims(0);
    if (in.empty() || in.size() > 2)
      return detail::rank_error(c.input_name(0), in.size(), "1 or 2");
    std::int64_t width = 0;
    for (std::int64_t k : indexes) width = max_of(width, k + 1);
    typename C::dim_list dims;
    if (in.size() == 2) dims.push_back(in[0]);
    dims.push_back(c.domain().constant(width));
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    const auto& out = c.output(0);
    if (!out.rank_known()) return {};
    c.refine_rank(0, out.dims.size());
    if (out.dims.size() == 2) c.refine(0, 0, out.dims[0]);
    return {};
  }
};

using text_ops =
    op_set<string_concat, regex_full_match, string_split, string_normalizer, tf_idf_vectorizer>;

}  // namespace sod2::ops
