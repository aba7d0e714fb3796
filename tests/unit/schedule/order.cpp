#include <doctest/doctest.h>

#include <sod2/schedule.hpp>

#include "problems.hpp"

using namespace sod2;

namespace {

template <class Check>
void with_all_planners(const order_problem& p, Check check) {
  const auto run = [&](const char* name, const order_plan& plan) {
    const status s = validate(p, plan);
    CHECK_MESSAGE(s.ok(), name << ": " << s.error().text());
    check(name, plan);
  };
  order_options little;
  little.work = 3'000'000;
  run("given", order_given(p));
  run("depth_first", order_depth_first(p));
  run("greedy", order_greedy(p));
  run("beam", order_beam(p, little));
  run("exact", order_exact(p, little));
  run("best", order_best(p, little));
}

/// a -> {b, c} -> d; b is large and c small.
order_problem diamond() {
  order_problem p;
  for (const std::int64_t bytes : {10, 100, 20, 5}) {
    order_value v;
    v.bytes = bytes;
    p.values.push_back(v);
  }
  p.values[3].is_output = true;
  p.nodes.resize(4);
  for (std::uint32_t i = 0; i < 4; ++i) p.nodes[i].outputs.push_back(i);
  p.nodes[1].inputs.push_back(0);
  p.nodes[2].inputs.push_back(0);
  p.nodes[3].inputs.push_back(1);
  p.nodes[3].inputs.push_back(2);
  return p;
}

std::int64_t peak(const order_problem& p, std::initializer_list<std::uint32_t> order) {
  const vector<std::uint32_t> nodes(order);
  auto result = peak_of(p, nodes.view());
  REQUIRE(result.ok());
  return *result;
}

}  // namespace

TEST_CASE("the peak counts inputs, outputs, workspace and what dies in place") {
  order_problem p = diamond();
  CHECK(peak(p, {0, 1, 2, 3}) == 130);
  p.nodes[1].workspace = 50;
  CHECK(peak(p, {0, 1, 2, 3}) == 160);
  CHECK(peak(p, {0, 2, 1, 3}) == 180);
  p.nodes[1].workspace = 0;
  p.values[0].is_output = true;  // lives to the end
  CHECK(peak(p, {0, 1, 2, 3}) == 135);
  p.values[0].is_output = false;
  p.nodes[3].in_place.push_back({3, 2});
  CHECK(peak(p, {0, 1, 2, 3}) == 130);
  p.values[3].bytes = 20;
  CHECK(peak(p, {0, 1, 2, 3}) == 130);  // reuses the 20 bytes of value 2
  p.nodes[3].in_place.clear();
  CHECK(peak(p, {0, 1, 2, 3}) == 140);
  p.values[1].alias_class = p.values[3].alias_class = 4;  // node 3 writes into value 1
  CHECK(peak(p, {0, 1, 2, 3}) == 130);
}

TEST_CASE("arms that exclude each other are never live together") {
  order_problem p = diamond();
  p.guards = {{0, 1, 0}, {0, 1, 1}};
  p.nodes[1].guard = 1;
  p.nodes[2].guard = 2;
  // Values 1 and 2 are read by node 3, which always runs: they count as live always.
  CHECK(peak(p, {0, 1, 2, 3}) == 130);
  // Read within the arms only, they exclude each other.
  p.nodes[3].inputs.clear();
  CHECK(peak(p, {0, 1, 2, 3}) == 110);
  CHECK(peak(p, {0, 2, 1, 3}) == 110);
}

TEST_CASE("malformed problems and broken plans are refused") {
  const auto code_of = [](auto breakage) {
    order_problem p = diamond();
    breakage(p);
    return validate(p).error().code();
  };
  CHECK(validate(diamond()).ok());
  CHECK(code_of([](order_problem& p) { p.nodes[0].inputs.push_back(3); }) == errc::cycle);
  CHECK(code_of([](order_problem& p) { p.nodes[0].inputs.push_back(9); }) == errc::undefined_value);
  CHECK(code_of([](order_problem& p) { p.nodes[0].outputs.clear(); }) == errc::undefined_value);
  CHECK(code_of([](order_problem& p) { p.nodes[0].outputs.push_back(3); }) ==
        errc::duplicate_value);
  CHECK(code_of([](order_problem& p) { p.nodes[0].after.push_back(7); }) == errc::invalid_argument);
  CHECK(code_of([](order_problem& p) { p.nodes[0].guard = 1; }) == errc::invalid_argument);
  CHECK(code_of([](order_problem& p) {
          p.nodes[0].in_place.push_back({0, 1});
        }) == errc::invalid_argument);
  CHECK(code_of([](order_problem& p) { p.values[0].bytes = -1; }) == errc::overflow);
  CHECK(code_of([](order_problem& p) { p.values[0].bytes = INT64_MAX; }) == errc::overflow);

  const order_problem p = diamond();
  const order_plan good = order_best(p);
  REQUIRE(validate(p, good).ok());
  const auto refused = [&](auto breakage) {
    order_plan plan = good;
    breakage(plan);
    return !validate(p, plan).ok();
  };
  CHECK(refused([](order_plan& x) { std::swap(x.order[0], x.order[3]); }));
  CHECK(refused([](order_plan& x) { x.order[1] = x.order[0]; }));
  CHECK(refused([](order_plan& x) { x.order.pop_back(); }));
  CHECK(refused([](order_plan& x) { x.peak_bytes -= 1; }));
  CHECK(refused([](order_plan& x) { x.lower_bound_bytes = x.peak_bytes + 1; }));
  CHECK(refused([](order_plan& x) { x.exact = false; }));
}

TEST_CASE("small problems: all planners are valid, exact ones optimal") {
  problems::random r(21);
  for (int round = 0; round < 1500; ++round) {
    const problems::features with{round % 3 == 0, round % 4 == 3, round % 2 == 0, round % 5 == 0};
    const order_problem p = problems::make(r, r(7), with);
    REQUIRE(validate(p).ok());
    const std::int64_t least = problems::least_peak(p);
    with_all_planners(p, [&](std::string_view name, const order_plan& plan) {
      CHECK(plan.lower_bound_bytes <= least);
      if (plan.exact) CHECK(plan.peak_bytes == least);
      if (!with.guards && (name == "exact" || name == "best")) CHECK(plan.exact);
    });
  }
}

TEST_CASE("large problems: all planners are valid, best is never worse than any") {
  problems::random r(22);
  for (int round = 0; round < 20; ++round) {
    const problems::features with{round % 3 == 0, round % 4 == 3, round % 2 == 0, round % 5 == 0};
    const order_problem p = problems::make(r, 50 + r(400), with);
    std::int64_t least = INT64_MAX, bound = 0;
    with_all_planners(p, [&](std::string_view name, const order_plan& plan) {
      if (name == "best") CHECK(plan.peak_bytes <= least);
      if (name != "beam" && name != "exact") least = std::min(least, plan.peak_bytes);
      bound = std::max(bound, plan.lower_bound_bytes);
    });
    CHECK(bound <= least);
  }
}

TEST_CASE("empty and single problems, chains, many nodes without a quadratic blow-up") {
  order_problem p;
  with_all_planners(p, [](std::string_view, const order_plan& plan) {
    CHECK(plan.peak_bytes == 0);
    CHECK(plan.exact);
  });
  order_value v;
  v.bytes = 7;
  v.is_output = true;
  p.values.push_back(v);
  p.nodes.resize(1);
  p.nodes[0].outputs.push_back(0);
  with_all_planners(p, [](std::string_view, const order_plan& plan) {
    CHECK(plan.peak_bytes == 7);
    CHECK(plan.exact);
  });
  order_problem chain;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    v.is_output = i % 1000 == 999;
    v.bytes = 1 + i % 17;
    chain.values.push_back(v);
    chain.nodes.push_back({});
    chain.nodes[i].outputs.push_back(i);
    if (i > 0) chain.nodes[i].inputs.push_back(i - 1);
    if (i > 40 && i % 3 == 0) chain.nodes[i].inputs.push_back(i - 40);
  }
  const order_plan plan = order_best(chain);
  CHECK(validate(chain, plan).ok());
}

TEST_CASE("planners are deterministic") {
  problems::random r(23);
  const order_problem p = problems::make(r, 300, {});
  CHECK(order_best(p).order == order_best(p).order);
}

TEST_CASE("published graphs and real models: the proved optimum") {
  const std::string optima = problems::shared_text("dags/optima.csv");
  std::stringstream lines(optima);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::stringstream fields(line);
    std::string name, nodes, peak_text, kind;
    std::getline(fields, name, ',');
    std::getline(fields, nodes, ',');
    std::getline(fields, peak_text, ',');
    std::getline(fields, kind, ',');
    auto file = read_order_dag(problems::shared_text("dags/" + name));
    REQUIRE_MESSAGE(file.ok(), name);
    const order_plan plan = order_best(file->problem);
    CHECK_MESSAGE(validate(file->problem, plan).ok(), name);
    CHECK_MESSAGE(plan.peak_bytes <= order_given(file->problem).peak_bytes, name);
    if (kind != "proved") continue;
    CHECK_MESSAGE(plan.peak_bytes == std::stoll(peak_text), name);
    CHECK_MESSAGE(plan.exact, name);
  }
}
