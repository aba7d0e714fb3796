// Execution order on random graphs and shared instances. `ratio` is peak over lower bound, `given`
// the same of the order as written.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <sod2/schedule.hpp>

namespace {

using planner = sod2::order_plan (*)(const sod2::order_problem&);

void run(benchmark::State& state, const sod2::order_problem& problem, planner plan_of) {
  sod2::order_plan plan;
  for (auto _ : state) {
    plan = plan_of(problem);
    benchmark::DoNotOptimize(plan);
  }
  if (!sod2::validate(problem, plan)) state.SkipWithError("invalid plan");
  const double bound = static_cast<double>(plan.lower_bound_bytes);
  state.counters["ratio"] = static_cast<double>(plan.peak_bytes) / bound;
  state.counters["given"] = static_cast<double>(sod2::order_given(problem).peak_bytes) / bound;
  state.counters["exact"] = plan.exact ? 1 : 0;
}

/// Layers of 4 to 12 nodes; each node reads one to three of the last two layers' nodes, sometimes
/// an older one, and what the layer before last left unread. Only the last layers are outputs.
sod2::order_problem random_graph(std::uint32_t nodes, std::uint64_t seed) {
  sod2::order_problem p;
  std::uint64_t s = seed * 0x9e3779b97f4a7c15ULL + 1;
  const auto below = [&](std::uint32_t n) {
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return static_cast<std::uint32_t>((s >> 16) % n);
  };
  sod2::vector<bool> read(nodes, false);
  const auto connect = [&](sod2::order_node& node, std::uint32_t u) {
    for (const std::uint32_t x : node.inputs)
      if (x == u) return;
    node.inputs.push_back(u);
    read[u] = true;
  };
  std::uint32_t before_last = 0, last = 0;
  while (p.nodes.size() < nodes) {
    const auto start = static_cast<std::uint32_t>(p.nodes.size());
    const std::uint32_t wanted = 4 + below(9);
    const std::uint32_t width = wanted < nodes - start ? wanted : nodes - start;
    for (std::uint32_t k = 0; k < width; ++k) {
      sod2::order_node node;
      node.outputs.push_back(start + k);
      if (start > 0)
        for (std::uint32_t e = 1 + below(3); e > 0; --e) {
          const std::uint32_t from = below(20) == 0 ? 0 : before_last;
          connect(node, from + below(start - from));
        }
      sod2::order_value value;
      value.bytes = 1024 * (1 + below(64));
      p.values.push_back(value);
      p.nodes.push_back(node);
    }
    for (std::uint32_t u = before_last; u < last; ++u)
      if (!read[u]) connect(p.nodes[start + below(width)], u);
    before_last = last;
    last = start;
  }
  for (std::uint32_t v = 0; v < nodes; ++v) p.values[v].is_output = !read[v];
  return p;
}

sod2::order_plan best(const sod2::order_problem& p) { return sod2::order_best(p); }
sod2::order_plan beam(const sod2::order_problem& p) { return sod2::order_beam(p); }

const struct {
  const char* name;
  planner plan_of;
} planners[] = {{"given", sod2::order_given},
                {"depth_first", sod2::order_depth_first},
                {"greedy", sod2::order_greedy},
                {"beam", beam},
                {"best", best}};

const bool registered = [] {
  for (const std::uint32_t n : {100U, 1000U, 5000U})
    for (std::uint64_t seed = 1; seed <= (n == 5000 ? 20U : 2U); ++seed)
      for (const auto& p : planners)
        benchmark::RegisterBenchmark(
            (std::string(p.name) + "/random/" + std::to_string(n) + "/" + std::to_string(seed))
                .c_str(),
            [n, seed, plan_of = p.plan_of](benchmark::State& state) {
              run(state, random_graph(n, seed), plan_of);
            })
            ->Unit(benchmark::kMillisecond);
  const char* root = std::getenv("SOD2_SHARED");
  if (root == nullptr) return true;
  const std::filesystem::path path = std::filesystem::path(root) / "instances" / "dags";
  if (!std::filesystem::exists(path)) return true;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() != ".dag") continue;
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    auto file = sod2::read_order_dag(text.str());
    if (!file) continue;
    for (const auto& p : planners)
      benchmark::RegisterBenchmark(
          (std::string(p.name) + "/" + entry.path().stem().string()).c_str(),
          [problem = file->problem, plan_of = p.plan_of](benchmark::State& state) {
            run(state, problem, plan_of);
          })
          ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
