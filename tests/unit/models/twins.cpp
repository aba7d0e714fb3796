// The networks of the paper, eight times narrower, run at five sizes each.
#include <doctest/doctest.h>

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

}  // namespace

TEST_CASE("twins run at five sizes, and no plan changes what they say") {
  for (const models::entry& m : models::all) {
    CAPTURE(m.name);
    const graph g = m.build(twin);
    compile_options options;
    options.analysis = m.facts();
    const program planned = compiled(g, options);
    options.fusion.enabled = options.reorder = options.share_memory = false;
    const program plain = compiled(g, options);
    session_options careful;
    careful.poison = true;
    session a(planned, careful), b(plain, careful);
    for (int k = 0; k < models::size_count; ++k) {
      CAPTURE(k);
      const auto inputs = models::inputs_at(g, m.facts(), k, 10 + static_cast<std::uint64_t>(k));
      const auto got = run(a, planned, inputs), expected = run(b, plain, inputs);
      REQUIRE(got.size() == expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        REQUIRE(got[i].dims == expected[i].dims);
        double largest = 0, furthest = 0;
        for (std::size_t j = 0; j < got[i].values.size(); ++j) {
          REQUIRE(std::isfinite(expected[i].values[j]));
          largest = std::max(largest, std::abs(expected[i].values[j]));
          furthest = std::max(furthest, std::abs(got[i].values[j] - expected[i].values[j]));
        }
        CHECK(largest > 0);
        CHECK(furthest <= 1e-3 * largest);
      }
    }
  }
}
