// Placement: simple passes, portfolio and exact search on random problems and on shared instances.
// `ratio` is peak over lower bound, `ns_per_buffer` planning time.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <sod2/memory.hpp>

namespace {

using planner = sod2::placement_plan (*)(const sod2::placement_problem&);

void run(benchmark::State& state, const sod2::placement_problem& problem, planner plan_of) {
  sod2::placement_plan plan;
  for (auto _ : state) {
    plan = plan_of(problem);
    benchmark::DoNotOptimize(plan);
  }
  if (!sod2::validate(problem, plan)) state.SkipWithError("invalid plan");
  const double bound = static_cast<double>(plan.lower_bound_bytes);
  state.counters["ratio"] = bound > 0 ? static_cast<double>(plan.peak_bytes) / bound : 1.0;
  state.counters["ns_per_buffer"] = benchmark::Counter(
      static_cast<double>(problem.buffers.size()) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// Mostly short lives and a few long ones, as networks have them.
sod2::placement_problem random_problem(std::int64_t buffers) {
  sod2::placement_problem p;
  std::uint64_t s = 7;
  const auto below = [&](std::int64_t n) {
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return static_cast<std::int64_t>((s >> 16) % static_cast<std::uint64_t>(n));
  };
  for (std::int64_t i = 0; i < buffers; ++i) {
    sod2::buffer b;
    b.lower = i;
    b.upper = i + 1 + below(below(10) == 0 ? buffers : 4);
    b.size = 64 * (1 + below(1000));
    p.buffers.push_back(b);
  }
  return p;
}

sod2::placement_plan portfolio_30ms(const sod2::placement_problem& p) {
  return sod2::place_portfolio(p);
}
sod2::placement_plan portfolio_passes(const sod2::placement_problem& p) {
  return sod2::place_portfolio(p, {0});
}

const struct {
  const char* name;
  planner plan_of;
} planners[] = {{"greedy", sod2::place_greedy},   {"peak_first", sod2::place_peak_first},
                {"by_size", sod2::place_by_size}, {"by_breadth", sod2::place_by_breadth},
                {"passes", portfolio_passes},     {"portfolio", portfolio_30ms}};

const bool registered = [] {
  for (const std::int64_t n : {50, 500, 5000})
    for (const auto& p : planners)
      benchmark::RegisterBenchmark((std::string(p.name) + "/random/" + std::to_string(n)).c_str(),
                                   [n, plan_of = p.plan_of](benchmark::State& state) {
                                     run(state, random_problem(n), plan_of);
                                   });
  const char* root = std::getenv("SOD2_SHARED");
  if (root == nullptr) return true;
  for (const char* folder : {"traces", "placement"}) {
    const std::filesystem::path path = std::filesystem::path(root) / "instances" / folder;
    if (!std::filesystem::exists(path)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() != ".csv") continue;
      std::ifstream in(entry.path());
      std::stringstream text;
      text << in.rdbuf();
      auto file = sod2::read_placement_csv(text.str());
      if (!file) continue;
      for (const auto& p : planners)
        benchmark::RegisterBenchmark(
            (std::string(p.name) + "/" + entry.path().stem().string()).c_str(),
            [problem = file->problem, plan_of = p.plan_of](benchmark::State& state) {
              run(state, problem, plan_of);
            })
            ->Unit(benchmark::kMicrosecond);
    }
  }
  return true;
}();

}  // namespace
