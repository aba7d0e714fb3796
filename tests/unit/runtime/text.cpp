// Strings at run time: moved, made, and given back as inputs of the next run.
#include <limits>
#include <string>
#include <string_view>

#include "unit/runtime/support.hpp"

using namespace sod2;
using test::compiled;

namespace {
using texts = std::vector<std::string_view>;

struct words {
  texts data;
  std::vector<std::int64_t> dims;
  tensor_view view() {
    return {data.data(), dims.data(), static_cast<std::uint32_t>(dims.size()), dtype::string};
  }
};
void must(const status& s) {
  if (!s) FAIL(s.error().text());
}
texts read(const tensor_view& t) {
  REQUIRE(t.type == dtype::string);
  return {t.as<std::string_view>(), t.as<std::string_view>() + t.count()};
}
}  // namespace

TEST_CASE("text: joined, gathered and transposed, with constants, back as inputs") {
  graph g;
  const value_id x = g.input("x", dtype::string, {"N", 2});
  const value_id end = g.constant("end", constant_tensor::of_strings({2}, {"!", ""}));
  const value_id first = g.constant<std::int64_t>("", {1}, {0});
  const value_id y = g.op("StringConcat", {x, end});
  g.output(y, "y");
  g.output(g.op("Transpose", {g.op("Gather", {y, first})}), "z");
  const program p = compiled(g);
  session s(p);
  words in{{"a", "b", "", "a longer word than any buffer inside"}, {2, 2}};
  std::vector<std::string> expected(in.data.begin(), in.data.end());
  for (int run = 0; run < 5; ++run) {
    must(s.run(std::vector<tensor_view>{in.view()}));
    for (std::size_t i = 0; i < expected.size(); i += 2) expected[i] += "!";
    const texts got = read(s.output(0));
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == expected[i]);
    CHECK(read(s.output(1)) == texts{got[0], got[1]});
    CHECK(s.output(1).shape()[0] == 2);
    in.data = got;  // views of what the session made
  }
  words none{{}, {0, 2}};
  graph e;
  const value_id w = e.input("x", dtype::string, {"N", 2});
  e.output(e.op("StringConcat", {w, w}), "y");
  compile_options options;
  options.analysis.symbols.push_back({"N", {0, 8, 1, 0}});
  const program empty = compiled(e, options);
  session quiet(empty);
  must(quiet.run(std::vector<tensor_view>{none.view()}));
  CHECK(quiet.output(0).count() == 0);
}

TEST_CASE("text: numbers to strings and back") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  const value_id text = g.op("Cast", {x}, {{"to", 8}});
  g.output(text, "text");
  g.output(g.op("Cast", {text}, {{"to", 1}}), "back");
  const program p = compiled(g);
  session s(p);
  const float inf = std::numeric_limits<float>::infinity();
  test::tensor in{{9}, {0.1F, -3, 1e-5F, 1e20F, 0, inf, -inf, 0.47892547F, 123456}};
  must(s.run(test::views({in})));
  CHECK(read(s.output(0)) ==
        texts{"0.1", "-3.0", "1e-05", "1e+20", "0.0", "INF", "-INF", "0.47892547", "123456.0"});
  CHECK(test::tensor::of(s.output(1)).data == in.data);
  graph h;
  h.output(h.op("Cast", {h.input("x", dtype::string, {"N"})}, {{"to", 7}}), "y");
  const program q = compiled(h);
  session r(q);
  words numbers{{"12", "+7", "-9223372036854775808", "3.7"}, {4}};
  must(r.run(std::vector<tensor_view>{numbers.view()}));
  const auto* got = r.output(0).as<std::int64_t>();
  CHECK(std::vector<std::int64_t>(got, got + 4) ==
        std::vector<std::int64_t>{12, 7, std::numeric_limits<std::int64_t>::min(), 3});
  words wrong{{"12x"}, {1}};
  CHECK(r.run(std::vector<tensor_view>{wrong.view()}).error().code() == errc::value_range);
}

TEST_CASE("text: normalisation leaves stop words out, or one empty string") {
  graph g;
  const value_id x = g.input("x", dtype::string, {"N"});
  attribute stop("stopwords", std::vector<std::string>{"The", "a"});
  g.output(g.op("StringNormalizer", {x}, {{"case_change_action", "UPPER"}, stop}), "loose");
  g.output(g.op("StringNormalizer", {x},
                {{"case_change_action", "LOWER"}, {"is_case_sensitive", 1}, stop}),
           "exact");
  const program p = compiled(g);
  session s(p);
  words in{{"the", "The", "cat", "A", "a", "Hat"}, {6}};
  must(s.run(std::vector<tensor_view>{in.view()}));
  CHECK(read(s.output(0)) == texts{"CAT", "HAT"});
  CHECK(read(s.output(1)) == texts{"the", "cat", "a", "hat"});
  words gone{{"the", "A"}, {2}};
  must(s.run(std::vector<tensor_view>{gone.view()}));
  CHECK(read(s.output(0)) == texts{""});
  CHECK(read(s.output(1)) == texts{"the", "a"});
}
