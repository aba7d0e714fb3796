// The networks of the paper, eight times narrower, run at five sizes each.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sod2/graph/view.hpp>
#include <sod2/kernel/table.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/runtime/compile.hpp>
#include <sod2/runtime/session.hpp>

#include "models/all.hpp"
#include "models/inputs.hpp"

using namespace sod2;

namespace {

constexpr models::config twin{.width = 8, .weights = models::weight_source::synthetic};

program compiled(const graph& g, const compile_options& options) {
  auto view = make_view(g);
  if (!view) FAIL(view.error().text());
  auto p = compile(*view, standard_registry(), standard_kernels(), options);
  if (!p) FAIL(p.error().text());
  return *std::move(p);
}

struct result_tensor {
  std::vector<std::int64_t> dims;
  std::vector<double> values;
};
std::vector<result_tensor> run(session& s, const program& p,
                               const std::vector<models::array>& inputs) {
  const status done = s.run(models::views(inputs));
  if (!done) FAIL(done.error().text());
  std::vector<result_tensor> out;
  for (std::size_t i = 0; i < p.outputs().size(); ++i) {
    const tensor_view& t = s.output(i);
    result_tensor r;
    r.dims.assign(t.shape().begin(), t.shape().end());
    for (std::int64_t k = 0; k < t.count(); ++k)
      r.values.push_back(t.type == dtype::f32 ? static_cast<double>(t.as<float>()[k])
                                              : static_cast<double>(t.as<std::int64_t>()[k]));
    out.push_back(std::move(r));
  }
  return out;
}

/// The same network with all planning and with none.
struct two_plans {
  program planned, plain;
  two_plans(const graph& g, const analysis_options& facts)
      : planned(compiled(g, options(facts, true))), plain(compiled(g, options(facts, false))) {}
  static compile_options options(const analysis_options& facts, bool on) {
    compile_options o;
    o.analysis = facts;
    o.fusion.enabled = o.reorder = o.share_memory = on;
    return o;
  }
  static session start(const program& p) {
    session_options careful;
    careful.poison = true;
    return session(p, careful);
  }
};

}  // namespace

TEST_CASE("twins run at five sizes, and no plan changes what they say") {
  for (const models::entry& m : models::all) {
    CAPTURE(m.name);
    const graph g = m.build(twin);
    const two_plans plans(g, m.facts());
    session a = plans.start(plans.planned), b = plans.start(plans.plain);
    for (int k = 0; k < models::size_count; ++k) {
      CAPTURE(k);
      const auto inputs = models::inputs_at(g, m.facts(), k, 10 + static_cast<std::uint64_t>(k));
      const auto got = run(a, plans.planned, inputs), expected = run(b, plans.plain, inputs);
      REQUIRE(got.size() == expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        REQUIRE(got[i].dims == expected[i].dims);
        double largest = 0, furthest = 0;
        for (std::size_t j = 0; j < got[i].values.size(); ++j) {
          REQUIRE(std::isfinite(expected[i].values[j]));
          REQUIRE(std::isfinite(got[i].values[j]));  // a maximum would lose it
          largest = std::max(largest, std::abs(expected[i].values[j]));
          furthest = std::max(furthest, std::abs(got[i].values[j] - expected[i].values[j]));
        }
        CHECK(largest > 0);
        CHECK(furthest <= 1e-3 * largest);
      }
    }
  }
}

TEST_CASE("a mixture of experts: every choice of every token is computed once") {
  const models::entry* const m = models::find("mixture_of_experts");
  REQUIRE(m != nullptr);
  const graph g = m->build(twin);
  const two_plans plans(g, {});
  session a = plans.start(plans.planned), b = plans.start(plans.plain);
  for (int k = 0; k < models::size_count; ++k) {
    CAPTURE(k);
    const auto inputs = models::inputs_at(g, m->facts(), k, 20 + static_cast<std::uint64_t>(k));
    const auto got = run(a, plans.planned, inputs), expected = run(b, plans.plain, inputs);
    REQUIRE(got.size() == 2);
    REQUIRE(got[0].dims == inputs[0].dims);
    for (std::size_t j = 0; j < got[0].values.size(); ++j)
      REQUIRE(std::abs(got[0].values[j] - expected[0].values[j]) <= 1e-3);
    CHECK(got[1].values == expected[1].values);
    double sum = 0;
    for (const double count : got[1].values) sum += count;
    const auto tokens = inputs[0].dims[0] * inputs[0].dims[1];
    CHECK(sum == static_cast<double>(models::mixture_of_experts::chosen * tokens));
  }
}

TEST_CASE("only the blocks that a policy keeps are run") {
  const graph g = models::blockdrop::build(twin);
  const program p = compiled(g, {});
  session s(p);
  auto inputs = models::inputs_at(g, {}, 1);
  const std::int64_t blocks = inputs[1].count();
  const auto nodes = [&](auto keep) {
    for (std::int64_t i = 0; i < blocks; ++i) inputs[1].as<std::uint8_t>()[i] = keep(i) ? 1 : 0;
    run(s, p, inputs);
    return static_cast<std::int64_t>(s.nodes_run());
  };
  const std::int64_t none = nodes([](std::int64_t) { return false; });
  std::int64_t sum = 0, odd = 0;
  for (std::int64_t t = 0; t < blocks; ++t) {
    const std::int64_t alone = nodes([&](std::int64_t i) { return i == t; }) - none;
    CHECK(alone >= 5);  // three convolutions and their activations
    sum += alone;
    if (t % 2 == 1) odd += alone;
  }
  CHECK(nodes([](std::int64_t) { return true; }) == none + sum);
  CHECK(nodes([](std::int64_t i) { return i % 2 == 1; }) == none + odd);
}

TEST_CASE("gates read the input: operators that run differ between inputs") {
  for (const char* name : {"skipnet", "convnet_aig", "ranet"}) {
    CAPTURE(name);
    const graph g = models::find(name)->build(twin);
    const program p = compiled(g, {});
    session s(p);
    std::vector<std::uint64_t> counts;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      auto inputs = models::inputs_at(g, {}, 0, seed);
      // From faint to strong.
      for (std::int64_t i = 0; i < inputs[0].count(); ++i)
        inputs[0].as<float>()[i] *= 0.1F + 0.2F * static_cast<float>(seed);
      run(s, p, inputs);
      const std::uint64_t once = s.nodes_run();
      run(s, p, inputs);
      CHECK(s.nodes_run() == once);
      counts.push_back(once);
    }
    std::sort(counts.begin(), counts.end());
    CHECK(std::unique(counts.begin(), counts.end()) - counts.begin() >= 3);
  }
}
