#include <doctest/doctest.h>

#include <sod2/memory.hpp>

#include "problems.hpp"

using namespace sod2;

namespace {

/// Runs every planner and hands each plan to `check(name, plan)` after the validator.
template <class Check>
void with_all_planners(const placement_problem& p, Check check) {
  const placement_options little{200'000};
  const auto run = [&](const char* name, const placement_plan& plan) {
    const status s = validate(p, plan);
    const bool fine = s.ok() || s.error().code() == errc::infeasible;
    CHECK_MESSAGE(fine, name << ": " << s.error().text());
    check(name, plan);
  };
  run("greedy", place_greedy(p));
  run("peak_first", place_peak_first(p));
  run("by_size", place_by_size(p));
  run("by_breadth", place_by_breadth(p));
  run("portfolio", place_portfolio(p, little));
  run("exact", place_exact(p, little));
}

}  // namespace

TEST_CASE("small problems: all planners are valid, exact ones optimal") {
  problems::random r(1);
  for (int round = 0; round < 400; ++round) {
    problems::shape s;
    s.buffers = r(8);
    s.steps = 1 + r(8);
    s.largest = 1 + r(12);
    s.alignments = round % 3 == 1;
    if (round % 4 == 2) s.unit = 4;
    const placement_problem p = problems::make(r, s);
    REQUIRE(validate(p).ok());
    const std::int64_t least = problems::least_peak(p);
    with_all_planners(p, [&](std::string_view name, const placement_plan& plan) {
      CHECK(plan.lower_bound_bytes <= least);
      CHECK(plan.peak_bytes >= least);
      if (plan.exact) CHECK(plan.peak_bytes == least);
      if (name == "exact") CHECK(plan.exact);
    });
  }
}

TEST_CASE("guards and fixed offsets: plans stay valid and bounds below the optimum") {
  problems::random r(2);
  for (int round = 0; round < 300; ++round) {
    problems::shape s;
    s.buffers = r(8);
    s.steps = 1 + r(8);
    s.guards = round % 2 == 0;
    s.fixed = round % 3 == 0;
    s.alignments = round % 5 == 0;
    const placement_problem p = problems::make(r, s);
    REQUIRE(validate(p).ok());
    const std::int64_t least = s.fixed ? INT64_MAX : problems::least_peak(p);
    with_all_planners(p, [&](std::string_view, const placement_plan& plan) {
      CHECK(plan.lower_bound_bytes <= least);
      if (plan.exact && !s.fixed) CHECK(plan.peak_bytes == least);
    });
  }
}

TEST_CASE("large problems: all planners are valid and the portfolio is never worse") {
  problems::random r(3);
  for (int round = 0; round < 30; ++round) {
    problems::shape s;
    s.buffers = 20 + r(300);
    s.steps = 10 + r(round % 2 == 0 ? 40 : 100'000);
    s.largest = 100'000;
    s.unit = 64;
    s.guards = round % 4 == 3;
    const placement_problem p = problems::make(r, s);
    std::int64_t best = INT64_MAX;
    with_all_planners(p, [&](std::string_view name, const placement_plan& plan) {
      if (name == "portfolio") CHECK(plan.peak_bytes <= best);
      best = std::min(best, plan.peak_bytes);
    });
  }
}

TEST_CASE("capacity: exact finds a placement where there is one, else proves that there is none") {
  problems::random r(4);
  int infeasible = 0;
  for (int round = 0; round < 200; ++round) {
    problems::shape s;
    s.buffers = 7;
    s.steps = 6;
    placement_problem p = problems::make(r, s);
    const std::int64_t least = problems::least_peak(p);
    if (least < 2) continue;
    p.capacity = least;
    CHECK(validate(p, place_exact(p)).ok());
    p.capacity = least - 1;
    const placement_plan plan = place_exact(p);
    CHECK(validate(p, plan).error().code() == errc::infeasible);
    CHECK(plan.lower_bound_bytes > p.capacity);
    ++infeasible;
  }
  CHECK(infeasible > 100);
}

TEST_CASE("empty problems, single buffers, nothing to place") {
  placement_problem p;
  with_all_planners(p, [](std::string_view, const placement_plan& plan) {
    CHECK(plan.peak_bytes == 0);
    CHECK(plan.exact);
  });
  p.buffers.push_back({5, 6, 1});
  with_all_planners(p, [](std::string_view, const placement_plan& plan) {
    CHECK(plan.offsets[0] == 0);
    CHECK(plan.peak_bytes == 64);
    CHECK(plan.exact);
  });
  p.buffers.push_back({0, 9, 0});  // no bytes
  p.buffers.push_back({5, 5, 9});  // no steps
  with_all_planners(
      p, [](std::string_view, const placement_plan& plan) { CHECK(plan.peak_bytes == 64); });
}

TEST_CASE("planners are deterministic") {
  problems::random r(5);
  problems::shape s;
  s.buffers = 120;
  s.steps = 60;
  s.largest = 5000;
  const placement_problem p = problems::make(r, s);
  CHECK(place_portfolio(p).offsets == place_portfolio(p).offsets);
  CHECK(place_exact(p, {3'000'000}).offsets == place_exact(p, {3'000'000}).offsets);
}

TEST_CASE("traces of real models: portfolio meets the bound") {
  for (const char* name :
       {"basicpitch.opt", "basicpitch.view", "bert_S32.view", "bilstm_S64.opt", "gpt2_S128_P1.opt",
        "magika.opt", "nonzero_S50.view", "ppocr_det_736x1280.opt", "tv_swin_t_224.opt",
        "tv_efficientnet_b0_224.view", "yolo_320.opt", "yunet_n_320.view"}) {
    const std::string text = problems::shared_text("traces/" + std::string(name) + ".csv");
    if (text.empty()) continue;
    auto file = read_placement_csv(text);
    REQUIRE(file.ok());
    const placement_plan plan = place_portfolio(file->problem);
    CHECK(validate(file->problem, plan).ok());
    CHECK_MESSAGE(plan.peak_bytes == plan.lower_bound_bytes, name);
    const placement_plan peak_first = place_peak_first(file->problem);
    CHECK(peak_first.peak_bytes <= plan.lower_bound_bytes + plan.lower_bound_bytes / 20);
  }
}

TEST_CASE("hard instances: portfolio is near the bound") {
  for (const char* name : {"A", "C", "E", "G", "I", "K"}) {
    const std::string text =
        problems::shared_text("placement/" + std::string(name) + ".1048576.csv");
    if (text.empty()) continue;
    auto file = read_placement_csv(text);
    REQUIRE(file.ok());
    const placement_plan plan = place_portfolio(file->problem);
    CHECK(validate(file->problem, plan).ok());
    CHECK_MESSAGE(plan.peak_bytes * 100 <= plan.lower_bound_bytes * 120, name);
  }
}

TEST_CASE("hard instances: exact finds a placement at capacity") {
  for (const char* name : {"A", "C", "G", "I", "K"}) {
    const std::string text =
        problems::shared_text("placement/" + std::string(name) + ".1048576.csv");
    if (text.empty()) continue;
    auto file = read_placement_csv(text);
    REQUIRE(file.ok());
    file->problem.capacity = 1'048'576;
    CHECK_MESSAGE(validate(file->problem, place_exact(file->problem)).ok(), name);
  }
}
