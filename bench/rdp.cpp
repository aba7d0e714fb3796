// RDP: time per node against the size of the graph, on chains, transformer layers and residual
// networks with symbolic sizes; the cost of one bind.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include <sod2/graph.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/rdp.hpp>

namespace {

using sod2::dtype;
using sod2::graph;
using sod2::value_id;

graph chain(std::int64_t nodes) {
  graph g;
  value_id x = g.input("x", dtype::f32, {"B", "L", 64});
  for (std::int64_t i = 0; i < nodes; ++i) x = g.op(i % 2 == 0 ? "Relu" : "Sigmoid", {x});
  g.output(x);
  return g;
}

// 3x3 convolutions with stride 2 every fourth layer and a residual sum each: ceil divisions nest.
graph residual(std::int64_t nodes) {
  graph g;
  value_id x = g.input("x", dtype::f32, {"B", 8, "H", "W"});
  const value_id w = g.constant<float>("w", {8, 8, 3, 3}, std::vector<float>(8 * 8 * 9));
  for (std::int64_t i = 0; i < nodes / 3; ++i) {
    const bool strided = i < 40 && i % 4 == 0;
    const std::int64_t s = strided ? 2 : 1;
    const value_id a = g.op("Conv", {x, w}, {{"pads", {1, 1, 1, 1}}, {"strides", {s, s}}});
    const value_id b =
        strided ? g.op("MaxPool", {x}, {{"kernel_shape", {1, 1}}, {"strides", {s, s}}}) : x;
    x = g.op("Relu", {g.op("Add", {a, b})});
  }
  g.output(x);
  return g;
}

// Attention as exporters write it: head splits through Shape, Gather, Concat, Reshape.
graph transformer(std::int64_t nodes) {
  graph g;
  value_id x = g.input("x", dtype::f32, {"B", "L", 64});
  const value_id w = g.constant<float>("w", {64, 64}, std::vector<float>(64 * 64));
  const value_id zero = g.constant<std::int64_t>("zero", {1}, std::vector<std::int64_t>{0});
  const value_id one = g.constant<std::int64_t>("one", {1}, std::vector<std::int64_t>{1});
  const value_id heads = g.constant<std::int64_t>("heads", {2}, std::vector<std::int64_t>{4, 16});
  for (std::int64_t i = 0; i < nodes / 14; ++i) {
    const value_id shape = g.op("Shape", {x});
    const value_id b = g.op("Gather", {shape, zero}), l = g.op("Gather", {shape, one});
    const value_id target = g.op("Concat", {b, l, heads}, {{"axis", 0}});
    const auto split = [&](std::vector<std::int64_t> perm) {
      return g.op("Transpose", {g.op("Reshape", {g.op("MatMul", {x, w}), target})},
                  {{"perm", std::move(perm)}});
    };
    const value_id q = split({0, 2, 1, 3}), k = split({0, 2, 3, 1});
    const value_id scores = g.op("Softmax", {g.op("MatMul", {q, k})});
    const value_id mixed =
        g.op("Transpose", {g.op("MatMul", {scores, q})}, {{"perm", {0, 2, 1, 3}}});
    x = g.op("Add", {x, g.op("Reshape", {mixed, shape})});
  }
  g.output(x);
  return g;
}

template <graph (*Make)(std::int64_t)>
void analyze(benchmark::State& state) {
  const graph g = Make(state.range(0));
  auto view = sod2::make_view(g);
  std::int64_t done = 0;
  for (auto _ : state) {
    auto facts = sod2::analyze(*view, sod2::standard_registry());
    if (!facts) return state.SkipWithError(facts.error().text().c_str());
    benchmark::DoNotOptimize(facts->facts_bytes());
    done += static_cast<std::int64_t>(view->node_count());
    state.counters["bytes_per_tensor"] =
        static_cast<double>(facts->facts_bytes()) / static_cast<double>(view->value_count());
  }
  state.SetItemsProcessed(done);
}
BENCHMARK(analyze<chain>)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK(analyze<residual>)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK(analyze<transformer>)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);

void view_of_chain(benchmark::State& state) {
  const graph g = chain(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(sod2::make_view(g));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(view_of_chain)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);

}  // namespace
