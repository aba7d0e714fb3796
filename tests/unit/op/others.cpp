// Data-dependent sizes, sequences, random tensors, quantisation, signal, text, losses.
#include "unit/op/support.hpp"

#include <sod2/op/std/control.hpp>
#include <sod2/op/std/dynamic.hpp>
#include <sod2/op/std/quantization.hpp>
#include <sod2/op/std/random.hpp>
#include <sod2/op/std/sequence.hpp>
#include <sod2/op/std/signal.hpp>
#include <sod2/op/std/text.hpp>
#include <sod2/op/std/training.hpp>

using namespace test;
namespace ops = sod2::ops;

namespace {
sod2::interval bounds(symbols& s, const sod2::symbolic_fact& f, std::size_t axis) {
  return s.context.bounds(f.dims[axis]);
}
}  // namespace

TEST_CASE("data-dependent sizes are bounded, the rest stays known") {
  symbols s;
  std::vector<sod2::symbolic_fact> out;
  REQUIRE(s.apply<ops::non_zero>({13, {in("4, 5", dtype::boolean)}}, out));
  CHECK(s.text(out[0]) == "(2, u0)");
  CHECK(bounds(s, out[0], 1) == sod2::interval{0, 20});
  check<ops::non_zero>({13, {vec("1, 0, 5")}}, {"(1, 2)"}, dtype::i64);
  check_value<ops::non_zero>({13, {vec("1, 0, N")}}, "(0, 2)");
  check_value<ops::non_zero>({13, {values("2, 2", "1, 0, 0, 1")}}, "(0, 1, 0, 1)");
  check<ops::non_zero>({13, {no_rank()}}, {"(*, *)"});

  REQUIRE(s.apply<ops::unique>({11, {in("3, 5")}, {}, 4}, out));
  CHECK(out[0].dims == out[1].dims);
  CHECK(out[0].dims == out[3].dims);
  CHECK(s.text(out[2]) == "(15)");
  CHECK(bounds(s, out[0], 0) == sod2::interval{1, 15});
  check<ops::unique>({11, {in("N, 4")}, attributes().set("axis", 1), 3}, {"(N, *)", "(*)", "(4)"});

  REQUIRE(s.apply<ops::compress>(
      {11, {in("N, 8"), in("6", dtype::boolean)}, attributes().set("axis", 1)}, out));
  CHECK(bounds(s, out[0], 1) == sod2::interval{0, 6});
  check<ops::compress>(
      {11, {in("N, 8"), vec("1, 0, 1", dtype::boolean)}, attributes().set("axis", 1)}, {"(N, 2)"});
  check<ops::compress>({9, {in("2, 3"), vec("1, 0, 1", dtype::boolean)}}, {"(2)"});

  REQUIRE(s.apply<ops::non_max_suppression>(
      {11, {in("1, 1000, 4"), in("1, 80, 1000"), scalar("10")}}, out));
  CHECK(bounds(s, out[0], 0) == sod2::interval{0, 800});
  check<ops::non_max_suppression>({10, {in("B, N, 4"), in("B, C, N")}},
                                  {"(0, 3)"});  // no limit: none
  check_back<ops::non_max_suppression>({11, {no_rank(), in("B, C, N")}}, {"u, 3"},
                                       {"rank 3 2=4 0=B 1=N", ""});
}

TEST_CASE("a later call with a smaller range narrows the symbol") {
  symbols s;
  run<sod2::symbolic_domain> wide(s.domain), narrow(s.domain);
  wide.facts.push_back(s.fact(in("N", dtype::i64)));
  wide.start({13, {in("N", dtype::i64)}});
  REQUIRE(wide.go(under_test<ops::non_zero>.symbols));
  narrow.facts.push_back(s.fact(in("7", dtype::i64)));
  narrow.cache = wide.cache;
  narrow.start({13, {in("7", dtype::i64)}});
  REQUIRE(narrow.go(under_test<ops::non_zero>.symbols));
  CHECK(narrow.results[0].dims[1] == wide.results[0].dims[1]);
  CHECK(s.context.bounds(wide.results[0].dims[1]) == sod2::interval{0, 7});
}

TEST_CASE("sequences and optionals") {
  symbols s;
  run<sod2::symbolic_domain> r(s.domain);
  const node two{11, {in("N, 3"), in("N, 4")}};
  for (const operand& o : two.inputs) r.facts.push_back(s.fact(o));
  r.start(two);
  REQUIRE(r.go(under_test<ops::sequence_construct>.symbols));
  const sod2::symbolic_fact list = r.results[0];
  CHECK(list.kind == sod2::fact_kind::sequence);
  CHECK(sod2::print(s.context, list.length) == "2");
  CHECK(s.context.bounds(list.dims[1]) == sod2::interval{3, 4});
  CHECK(list.dims[0] == s.parse("N"));

  auto with = [&](auto op, std::vector<sod2::symbolic_fact> facts, attributes a = {}) {
    run<sod2::symbolic_domain> next(s.domain);
    next.facts = std::move(facts);
    node n{11, operand_list::placeholders(next.facts.size()), std::move(a)};
    next.start(n);
    const auto done = next.go(under_test<decltype(op)>.symbols);
    if (!done) FAIL(done.error().text());
    return next.results[0];
  };
  CHECK(s.elements(with(ops::sequence_length{}, {list})) == "(2)");
  CHECK(s.text(with(ops::sequence_at{}, {list, s.fact(scalar("0"))})) == "(N, u1)");
  const auto more = with(ops::sequence_insert{}, {list, s.fact(in("N, 9"))});
  CHECK(sod2::print(s.context, more.length) == "3");
  CHECK(sod2::print(s.context, with(ops::sequence_erase{}, {more}).length) == "2");
  const auto empty = with(ops::sequence_empty{}, {});
  const auto one = with(ops::sequence_insert{}, {empty, s.fact(in("N, 5"))});
  CHECK(s.text(with(ops::sequence_at{}, {one, s.fact(scalar("0"))})) == "(N, 5)");
  CHECK(s.text(with(ops::concat_from_sequence{}, {one}, attributes().set("axis", 0))) == "(N, 5)");
  CHECK(s.text(with(ops::concat_from_sequence{}, {list},
                    attributes().set("axis", 0).set("new_axis", 1))) == "(2, N, u3)");
  CHECK(s.text(with(ops::concat_from_sequence{}, {list}, attributes().set("axis", 0))) ==
        "(2*N, u4)");
  const auto parts = with(ops::split_to_sequence{}, {s.fact(in("6, N")), s.fact(scalar("2"))});
  CHECK(sod2::print(s.context, parts.length) == "3");
  CHECK(sod2::print(s.context, parts.dims.view()) == "(2, N)");
  const auto rows =
      with(ops::split_to_sequence{}, {s.fact(in("M, N"))}, attributes().set("keepdims", 0));
  CHECK(sod2::print(s.context, rows.length) == "M");
  CHECK(sod2::print(s.context, rows.dims.view()) == "(N)");
  const auto some = with(ops::optional{}, {s.fact(in("N"))});
  CHECK(some.kind == sod2::fact_kind::optional);
  CHECK(s.elements(with(ops::optional_has_element{}, {some})) == "(1)");
  CHECK(s.text(with(ops::optional_get_element{}, {some})) == "(N)");
}

TEST_CASE("random tensors") {
  check<ops::random_normal>({1, {}, attributes().ints("shape", {2, 3}).set("dtype", 11)},
                            {"(2, 3)"}, dtype::f64);
  check<ops::random_uniform_like>({1, {in("N, 3", dtype::f16)}}, {"(N, 3)"}, dtype::f16);
  check<ops::bernoulli>({15, {in("N")}, attributes().set("dtype", 9)}, {"(N)"}, dtype::boolean);
  check<ops::multinomial>({7, {in("B, 10")}, attributes().set("sample_size", 4)}, {"(B, 4)"},
                          dtype::i32);
  check_error<ops::random_uniform>({1, {}}, sod2::errc::missing_attribute,
                                   "required attribute 'shape' is missing");
}

TEST_CASE("quantisation") {
  check<ops::quantize_linear>({13, {in("N, 3"), in("")}}, {"(N, 3)"}, dtype::u8);
  check<ops::quantize_linear>({13, {in("N, 3"), in(""), in("", dtype::i8)}}, {"(N, 3)"}, dtype::i8);
  check<ops::dequantize_linear>({19, {in("N, 3", dtype::i8), in("", dtype::f16)}}, {"(N, 3)"},
                                dtype::f16);
  check<ops::dynamic_quantize_linear>({11, {in("N, 3")}, {}, 3}, {"(N, 3)", "()", "()"}, dtype::u8);
}

TEST_CASE("signal") {
  check<ops::dft>({17, {in("B, L, 1")}}, {"(B, L, 2)"});
  check<ops::dft>({17, {in("B, L, 1")}, attributes().set("onesided", 1)},
                  {"(B, floordiv(L, 2) + 1, 2)"});
  check<ops::dft>({20, {in("B, 6, 2")}, attributes().set("onesided", 1).set("inverse", 1)},
                  {"(B, 10, 1)"});
  check<ops::dft>({20, {in("B, L, 1"), scalar("16"), scalar("1")}}, {"(B, 16, 2)"});
  check<ops::stft>({17, {in("B, L + 400, 1"), scalar("160"), absent(), scalar("400")}},
                   {"(B, floordiv(L, 160) + 1, 201, 2)"});
  check<ops::stft>(
      {17, {in("B, 1000, 1"), scalar("100"), in("200")}, attributes().set("onesided", 0)},
      {"(B, 9, 200, 2)"});
  check<ops::hann_window>({17, {scalar("N")}}, {"(N)"}, dtype::f32);
  check<ops::hamming_window>({17, {in("", dtype::i64)}}, {"(*)"});
  check<ops::mel_weight_matrix>(
      {17, {scalar("80"), scalar("400"), in("", dtype::i64), in(""), in("")}}, {"(201, 80)"});
}

TEST_CASE("text") {
  check<ops::string_concat>({20, {in("N, 1", dtype::string), in("M", dtype::string)}}, {"(N, M)"});
  check<ops::regex_full_match>({20, {in("N", dtype::string)}}, {"(N)"}, dtype::boolean);
  check<ops::string_split>({20, {in("N", dtype::string)}, {}, 2}, {"(N, *)", "(N)"});
  check<ops::string_normalizer>({10, {in("N", dtype::string)}}, {"(N)"});
  check<ops::string_normalizer>(
      {10, {in("1, N", dtype::string)}, attributes().strings("stopwords", {"a"})}, {"(1, *)"});
  check<ops::tf_idf_vectorizer>(
      {9, {in("N, L", dtype::i64)}, attributes().ints("ngram_indexes", {0, 4, 2})}, {"(N, 5)"},
      dtype::f32);
}

TEST_CASE("losses and optimisers") {
  check<ops::negative_log_likelihood_loss>({13, {in("N, C, D"), in("N, D", dtype::i64)}}, {"()"});
  check<ops::negative_log_likelihood_loss>(
      {13, {in("N, C, D"), in("N, D", dtype::i64)}, attributes().set("reduction", "none")},
      {"(N, D)"});
  check<ops::softmax_cross_entropy_loss>({13, {in("N, C"), in("N", dtype::i64)}, {}, 2},
                                         {"()", "(N, C)"});
  check<ops::momentum>({1, {in(""), in("", dtype::i64), in("3, 4"), in("3, 4"), in("3, 4")}, {}, 2},
                       {"(3, 4)", "(3, 4)"});
  check<ops::adam>({1, {in(""), in("", dtype::i64), in("3"), in("3"), in("3"), in("3")}, {}, 3},
                   {"(3)", "(3)", "(3)"});
}
