// Random graphs under every combination of switches: all give what a plain interpreter gives, and
// plans of the same kernels give the same bits.
#include <sod2/expr/evaluate.hpp>
#include <sod2/expr/parse.hpp>

#include "unit/runtime/support.hpp"

using namespace sod2;
using test::compiled;
using test::interpreter;
using test::tensor;

namespace {

class random_graph {
 public:
  random_graph(std::uint32_t seed, int nodes) : random_(seed) {
    g_.set_opset(13);
    w16_ = g_.constant<float>("w16", {16, 16}, scaled(tensor::random({16, 16}, seed)));
    w8_ = g_.constant<float>("w8", {16, 8}, scaled(tensor::random({16, 8}, seed + 1)));
    four_ = g_.constant<std::int64_t>("four", {3}, {0, 4, 4});
    flat_ = g_.constant<std::int64_t>("flat", {2}, {0, 16});
    row_ = g_.constant<float>("row", {16}, tensor::random({16}, seed + 2).data);
    full_ = {g_.input("x", dtype::f32, {"N", 16}), g_.input("y", dtype::f32, {"N", 16})};
    column_ = {g_.input("z", dtype::f32, {"N", 1})};
    for (int i = 0; i < nodes; ++i) add();
    g_.output(full_.back());
    if (pick(2) == 0) g_.output(any(full_));
    if (pick(2) == 0) g_.output(any(column_));
    if (!narrow_.empty()) g_.output(narrow_.back());
    if (!square_.empty()) g_.output(square_.back());
  }
  const graph& get() const { return g_; }

 private:
  static std::vector<float> scaled(tensor t) {
    for (float& v : t.data) v *= 0.25F;
    return t.data;
  }
  std::size_t pick(std::size_t n) { return random_() % n; }
  value_id any(const std::vector<value_id>& of) {
    const std::size_t near = std::min<std::size_t>(of.size(), 4);
    return of[of.size() - 1 - (pick(3) == 0 ? pick(of.size()) : pick(near))];
  }
  void add() {
    switch (pick(14)) {
      case 0: full_.push_back(g_.op("MatMul", {any(full_), w16_})); break;
      case 1: narrow_.push_back(g_.op("MatMul", {any(full_), w8_})); break;
      case 2: column_.push_back(g_.op("ReduceMean", {any(full_)}, {{"axes", {1}}})); break;
      case 3: full_.push_back(g_.op("Softmax", {any(full_)})); break;
      case 4: full_.push_back(g_.op("Add", {any(full_), any(column_)})); break;
      case 5: column_.push_back(g_.op("Sigmoid", {any(column_)})); break;
      case 6: square_.push_back(g_.op("Reshape", {any(full_), four_})); break;
      case 7:
        if (!square_.empty()) full_.push_back(g_.op("Reshape", {any(square_), flat_}));
        break;
      case 8:
        if (!narrow_.empty()) narrow_.push_back(g_.op("Relu", {any(narrow_)}));
        break;
      case 9:
        if (!square_.empty()) square_.push_back(g_.op("Mul", {any(square_), any(square_)}));
        break;
      case 10: full_.push_back(g_.op("Relu", {any(full_)})); break;
      case 11:
        if (narrow_.size() > 1)
          full_.push_back(g_.op("Concat", {any(narrow_), any(narrow_)}, {{"axis", 1}}));
        break;
      case 12: full_.push_back(g_.op("Add", {any(full_), row_})); break;
      default: full_.push_back(g_.op("Mul", {any(full_), any(full_)})); break;
    }
  }

  std::mt19937 random_;
  graph g_;
  value_id w16_, w8_, four_, flat_, row_;
  std::vector<value_id> full_, column_, narrow_, square_;
};

std::vector<tensor> inputs_of(std::int64_t n, std::uint32_t seed) {
  return {tensor::random({n, 16}, seed), tensor::random({n, 16}, seed + 1),
          tensor::random({n, 1}, seed + 2)};
}
bool same_bits(const std::vector<tensor>& a, const std::vector<tensor>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i)
    same = a[i].dims == b[i].dims &&
           std::memcmp(a[i].data.data(), b[i].data.data(), a[i].data.size() * sizeof(float)) == 0;
  return same;
}

}  // namespace

TEST_CASE("fusion, order, memory and poison change no result") {
  std::size_t fused = 0;
  for (std::uint32_t seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    const random_graph made(seed, 5 + static_cast<int>(seed % 40));
    const graph& g = made.get();
    const std::vector<tensor> few = inputs_of(3, seed), many = inputs_of(37, seed);
    const auto want_few = interpreter::run(g, few), want_many = interpreter::run(g, many);
    for (const bool fuse : {true, false}) {
      std::vector<std::vector<tensor>> all;
      for (int switches = 0; switches < 4; ++switches) {
        CAPTURE(fuse);
        CAPTURE(switches);
        compile_options options;
        options.fusion.enabled = fuse;
        options.reorder = (switches & 1) != 0;
        options.share_memory = (switches & 2) != 0;
        const program p = compiled(g, options);
        fused += p.summary().groups < p.summary().nodes;
        session_options poisoned;
        poisoned.poison = true;
        session s(p), t(p, poisoned);
        const auto got_few = test::run(s, p, few), got_many = test::run(s, p, many);
        for (std::size_t i = 0; i < want_few.size(); ++i) {
          CHECK(test::close(got_few[i], want_few[i]));
          CHECK(test::close(got_many[i], want_many[i]));
        }
        CHECK(same_bits(test::run(t, p, many), got_many));
        CHECK(same_bits(test::run(t, p, few), got_few));
        CHECK(same_bits(test::run(s, p, few), got_few));
        CHECK(s.arena_bytes() >= s.lower_bound_bytes());
        all.push_back(got_many);
      }
      for (const auto& other : all) CHECK(same_bits(other, all[0]));
    }
  }
  CHECK(fused > 100);
}

TEST_CASE("required_bytes read back as an expression is what a session takes") {
  std::size_t checked = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const random_graph made(seed, 8 + static_cast<int>(seed % 30));
    const program p = compiled(made.get());
    REQUIRE_FALSE(p.summary().required_bytes.empty());
    dim_context c;
    auto parsed = parse(c, p.summary().required_bytes);
    if (!parsed) FAIL(parsed.error().text());
    session s(p);
    std::mt19937 random(seed);
    for (int k = 0; k < 10; ++k) {
      const std::int64_t n = 1 + static_cast<std::int64_t>(random() % 5000);
      std::vector<std::int64_t> values(c.symbol_count(), n);
      const std::int64_t bound[] = {n};
      REQUIRE(s.bind(bound));
      auto bytes = evaluate(c, *parsed, values);
      REQUIRE(bytes);
      CHECK(*bytes == s.arena_bytes());
      ++checked;
    }
  }
  CHECK(checked == 600);
}

TEST_CASE("formulas over two symbols with strides and rounding") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {1, 2, "H", "W"});
  std::vector<float> ones(2 * 2 * 9, 0.1F);
  const value_id w = g.constant<float>("w", {2, 2, 3, 3}, ones);
  value_id y = x;
  for (int i = 0; i < 3; ++i)
    y = g.op("Softmax", {g.op("Conv", {y, w}, {{"pads", {1, 1, 1, 1}}, {"strides", {2, 2}}})},
             {{"axis", 3}});
  g.output(y);
  for (const bool strided : {false, true}) {
    compile_options options;
    if (strided) options.analysis.symbols = {{"H", {8, 512, 8, 0}}, {"W", {8, 512, 8, 0}}};
    const program p = compiled(g, options);
    dim_context c;
    auto parsed = parse(c, p.summary().required_bytes);
    REQUIRE(parsed);
    session s(p);
    for (std::int64_t k = 1; k <= 20; ++k) {
      const std::int64_t h = strided ? 8 * k : 5 * k + 3, width = strided ? 16 * k : 300 - 7 * k;
      std::vector<std::int64_t> bound(2);
      bound[p.find_symbol("H")] = h;
      bound[p.find_symbol("W")] = width;
      REQUIRE(s.bind(bound));
      std::vector<std::int64_t> values;
      for (std::uint32_t symbol = 0; symbol < c.symbol_count(); ++symbol)
        values.push_back(c.name_of_symbol(symbol) == "H" ? h : width);
      auto bytes = evaluate(c, *parsed, values);
      REQUIRE(bytes);
      CHECK(*bytes == s.arena_bytes());
    }
  }
}

TEST_CASE("pointwise operators on large constants are folded") {
  sod2::graph g;
  const sod2::value_id x = g.input("x", sod2::dtype::f32, {"N", 500});
  const sod2::value_id c = g.constant<float>("c", {500}, std::vector<float>(500, 1.0F));
  g.output(g.op("MatMul", {x, g.op("Reshape", {g.op("Exp", {g.op("Add", {c, c})}),
                                               g.constant<std::int64_t>("s", {2}, {500, 1})})}));
  auto view = sod2::make_view(g);
  REQUIRE(view);
  auto program = sod2::compile(*view, sod2::standard_registry(), sod2::standard_kernels());
  REQUIRE(program);
  CHECK(program->summary().groups == 1);
}
