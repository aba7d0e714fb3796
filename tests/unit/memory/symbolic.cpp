#include <doctest/doctest.h>

#include <utility>

#include <sod2/expr/context.hpp>
#include <sod2/expr/evaluate.hpp>
#include <sod2/memory.hpp>

#include "problems.hpp"

using namespace sod2;

namespace {

/// A random problem over H and W with its sizes compiled.
struct case_of {
  dim_context context;
  placement_problem problem;
  vector<dim> bytes;
  size_program sizes;
  std::uint32_t h = 0, w = 0;

  case_of(problems::random& r, std::int64_t buffers) {
    const dim H = context.symbol("H", {1, 4096, 1, 0}), W = context.symbol("W", {8, 1024, 8, 0});
    h = static_cast<std::uint32_t>(context.find_symbol("H"));
    w = static_cast<std::uint32_t>(context.find_symbol("W"));
    for (std::int64_t i = 0; i < buffers; ++i) {
      buffer b;
      b.lower = r(12);
      b.upper = b.lower + r(6);
      const dim bases[] = {
          H, W, context.mul(H, W), context.ceildiv(H, 2), context.one(), context.max(H, W)};
      bytes.push_back(context.mul(bases[r(6)], 4 * (1 + r(8))));
      problem.buffers.push_back(b);
    }
    size_program_builder builder(context);
    for (const dim d : bytes) builder.add_output(d);
    sizes = std::move(builder).finish();
  }
  vector<std::int64_t> evaluate(const size_program& program, std::int64_t at_h, std::int64_t at_w) {
    vector<std::int64_t> symbols(context.symbol_count(), 0), scratch(program.register_count()),
        out(program.output_count());
    symbols[h] = at_h;
    symbols[w] = at_w;
    REQUIRE(program.evaluate(symbols.view(), {scratch.data(), scratch.size()},
                             {out.data(), out.size()}) == errc::ok);
    return out;
  }
};

}  // namespace

TEST_CASE("a layout is valid at every size, and required_bytes is its peak") {
  problems::random r(11);
  int known = 0;
  for (int round = 0; round < 60; ++round) {
    case_of c(r, r(round < 30 ? 6 : 40));
    const std::size_t n = c.problem.buffers.size();
    vector<vector<std::int64_t>> rows;
    for (const auto& [h, w] : {std::pair{1, 8}, std::pair{64, 64}, std::pair{4096, 1024}})
      rows.push_back(c.evaluate(c.sizes, h, w));
    vector<std::span<const std::int64_t>> samples;
    for (const auto& row : rows) samples.push_back(row.view());
    symbolic_layout_planner planner(c.problem, samples.view());
    symbolic_layout::requirement proved;
    for (const symbolic_layout& layout :
         {planner.stacked(), planner.stacked(c.context, c.bytes.view(), proved)}) {
      const status valid = validate(c.problem, layout);
      CHECK_MESSAGE(valid.ok(), valid.error().text());
      const symbolic_layout::requirement needs = layout.required_bytes(c.context, c.bytes.view());
      const dim bytes = needs.bytes;
      size_program formula;
      if (bytes.is_known()) {
        ++known;
        size_program_builder builder(c.context);
        builder.add_output(bytes);
        builder.add_output(needs.lower_bound);
        formula = std::move(builder).finish();
      }
      for (int k = 0; k < 20; ++k) {
        const std::int64_t h = 1 + r(4096), w = 8 + 8 * r(127);
        placement_plan plan;
        plan.offsets.resize(n);
        placement_problem concrete = c.problem;
        const vector<std::int64_t> sizes = c.evaluate(c.sizes, h, w);
        for (std::size_t i = 0; i < n; ++i) concrete.buffers[i].size = sizes[i];
        plan.peak_bytes = layout.evaluate(sizes.view(), {plan.offsets.data(), n});
        plan.lower_bound_bytes = layout.lower_bound(sizes.view());
        CHECK(plan.lower_bound_bytes == place_greedy(concrete).lower_bound_bytes);
        plan.exact = plan.peak_bytes == plan.lower_bound_bytes;
        const status s = validate(concrete, plan);
        CHECK_MESSAGE(s.ok(), s.error().text());
        if (!bytes.is_known()) continue;
        CHECK(c.evaluate(formula, h, w)[0] == plan.peak_bytes);
        CHECK(c.evaluate(formula, h, w)[1] == plan.lower_bound_bytes);
        if (needs.proved()) CHECK(plan.peak_bytes == plan.lower_bound_bytes);
      }
    }
  }
  CHECK(known > 90);
}

TEST_CASE("a regime change between samples is closed by a second formula") {
  // At H = 1 the constant buffers are the large ones, at H = 64 the quadratic ones.
  dim_context context;
  const dim H = context.symbol("H", {1, 64, 1, 0});
  placement_problem p;
  const dim quadratic = context.mul(context.mul(H, H), 64), constant = context.constant(6400);
  const vector<dim> bytes{quadratic, constant, quadratic, constant, context.mul(H, 64)};
  p.buffers = {{0, 2, 0}, {1, 3, 0}, {2, 4, 0}, {3, 5, 0}, {0, 5, 0}};
  vector<vector<std::int64_t>> rows;
  for (const std::int64_t h : {1, 10, 64})
    rows.push_back({64 * h * h, 6400, 64 * h * h, 6400, 64 * h});
  const std::span<const std::int64_t> samples[] = {rows[0].view(), rows[1].view(), rows[2].view()};
  const symbolic_layout layout = symbolic_layout_planner(p, samples).stacked();
  CHECK(validate(p, layout).ok());
  CHECK(layout.worst_ratio() == 1.0);
  CHECK(layout.required_bytes(context, bytes.view()).bytes.is_known());
}

TEST_CASE("layouts without buffers, with guards, with sizes that do not fit") {
  dim_context context;
  placement_problem p;
  symbolic_layout layout = symbolic_layout_planner(p, {}).stacked();
  CHECK(validate(p, layout).ok());
  CHECK(layout.evaluate({}, {}) == 0);
  CHECK(layout.required_bytes(context, {}).bytes == context.zero());

  const dim H = context.symbol("H");
  const dim bytes[] = {context.mul(H, 64), context.mul(H, 64)};
  p.guards = {{0, 1, 0}, {0, 1, 1}};
  p.buffers = {{0, 2, 0}, {0, 2, 0}};
  p.buffers[0].guard = 1;
  p.buffers[1].guard = 2;
  const std::int64_t sizes[] = {6400, 6400};
  const std::span<const std::int64_t> samples[] = {sizes};
  layout = symbolic_layout_planner(p, samples).stacked();
  CHECK(validate(p, layout).ok());
  CHECK(layout.required_bytes(context, bytes).bytes == bytes[0]);
  CHECK(layout.lower_bound(sizes) == 6400);
  const std::int64_t huge[] = {INT64_MAX - 5, 1};
  std::int64_t offsets[2];
  CHECK(layout.evaluate(huge, offsets) == INT64_MAX);
  CHECK(layout.symbolic_offsets(context, 0, bytes)[1] == context.zero());
}

TEST_CASE("the validator refuses a layout of another problem") {
  placement_problem p;
  p.buffers = {{0, 2, 0}, {0, 2, 0}, {3, 4, 0}};
  const std::int64_t sizes[] = {64, 64, 64};
  const std::span<const std::int64_t> samples[] = {sizes};
  const symbolic_layout layout = symbolic_layout_planner(p, samples).stacked();
  REQUIRE(validate(p, layout).ok());
  placement_problem other = p;
  other.buffers[2].lower = 1;  // now meets the first two
  CHECK(!validate(other, layout).ok());
  other = p;
  other.alignment = 32;
  CHECK(!validate(other, layout).ok());
  other = p;
  other.buffers.push_back({0, 1, 0});
  CHECK(!validate(other, layout).ok());
}

TEST_CASE("twelve layers of attention: one formula is the lower bound at every length") {
  // Scores grow with the square of the length and overtake the rest inside the range: an order of
  // stacking taken from one end of it is up to 1.15 times the bound at the other.
  dim_context context;
  const dim B = context.symbol("B", {1, 4, 1, 0}), L = context.symbol("L", {32, 384, 1, 0});
  const dim hidden = context.mul(context.mul(B, L), 4 * 768);
  const dim inner = context.mul(context.mul(B, L), 4 * 3072);
  const dim scores = context.mul(context.mul(context.mul(B, L), L), 4 * 12);
  placement_problem p;
  vector<dim> bytes;
  const auto live = [&](std::int64_t lower, std::int64_t upper, dim size) {
    p.buffers.push_back({lower, upper});
    bytes.push_back(size);
  };
  std::int64_t t = 0;
  for (int layer = 0; layer < 12; ++layer, t += 9) {
    live(t, t + 7, hidden);      // kept for the first sum
    live(t + 1, t + 4, hidden);  // query, key, value
    live(t + 2, t + 4, hidden);
    live(t + 3, t + 6, hidden);
    live(t + 4, t + 6, scores);
    live(t + 5, t + 7, hidden);
    live(t + 6, t + 10, hidden);  // kept for the second sum
    live(t + 7, t + 9, inner);
    live(t + 8, t + 10, hidden);
  }
  size_program_builder builder(context);
  for (const dim d : bytes) builder.add_output(d);
  const size_program program = std::move(builder).finish();
  const auto sizes_at = [&](std::int64_t b, std::int64_t l) {
    vector<std::int64_t> symbols(context.symbol_count(), 0), scratch(program.register_count()),
        out(program.output_count());
    symbols[static_cast<std::size_t>(context.find_symbol("B"))] = b;
    symbols[static_cast<std::size_t>(context.find_symbol("L"))] = l;
    REQUIRE(program.evaluate(symbols.view(), {scratch.data(), scratch.size()},
                             {out.data(), out.size()}) == errc::ok);
    return out;
  };
  // Only the short end is shown to the planner.
  const vector<std::int64_t> sample = sizes_at(1, 32);
  const std::span<const std::int64_t> samples[] = {sample.view()};
  symbolic_layout::requirement needs;
  const symbolic_layout layout =
      symbolic_layout_planner(p, samples).stacked(context, bytes.view(), needs);
  CHECK(validate(p, layout).ok());
  CHECK(layout.formulas().size() == 1);
  CHECK(needs.proved());
  vector<std::int64_t> offsets(bytes.size());
  for (const std::int64_t b : {1, 4})
    for (std::int64_t l = 32; l <= 384; l += 11) {
      const vector<std::int64_t> sizes = sizes_at(b, l);
      CHECK(layout.evaluate(sizes.view(), {offsets.data(), offsets.size()}) ==
            layout.lower_bound(sizes.view()));
    }
}
