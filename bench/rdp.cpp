// RDP: time per node against the size of the graph, on chains, transformer layers, residual
// networks and random graphs with symbolic sizes; the cost of one bind of a decoder with a cache.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <sod2/expr/evaluate.hpp>
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

// Operators on random earlier values: long and short edges, broadcasts, sequences of many lengths.
graph random_graph(std::int64_t nodes) {
  graph g;
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  struct tensor {
    value_id v{};
    std::size_t length = 0;  // which of the lengths: tensors of one length may be added
  };
  std::vector<tensor> all;
  for (std::size_t i = 0; i < 8; ++i)
    all.push_back(
        {g.input("x" + std::to_string(i), dtype::f32, {"B", "L" + std::to_string(i), 64}), i});
  std::size_t lengths = all.size();
  const value_id w = g.constant<float>("w", {64, 64}, std::vector<float>(64 * 64));
  const value_id axis = g.constant<std::int64_t>("axis", {1}, std::vector<std::int64_t>{1});
  std::vector<tensor> last(all);  // the newest of each length
  for (std::int64_t made = 0; made < nodes; ++made) {
    const tensor a = all[random() % 2 == 0 ? below(all.size()) : all.size() - 1 - below(8)];
    tensor out{value_id{}, a.length};
    switch (below(lengths < 64 ? 6 : 5)) {
      case 0: out.v = g.op("Relu", {a.v}); break;
      case 1: out.v = g.op("Softmax", {a.v}); break;
      case 2: out.v = g.op("MatMul", {a.v, w}); break;
      case 3: out.v = g.op("Add", {a.v, last[a.length].v}); break;
      case 4: {
        const value_id mean = g.op("ReduceMean", {last[below(lengths)].v, axis});
        out.v = g.op("Mul", {a.v, mean});
        ++made;
        break;
      }
      default:
        out.v = g.op("Concat", {a.v, last[below(8)].v}, {{"axis", 1}});
        out.length = lengths++;
        last.push_back({});
    }
    last[out.length] = out;
    all.push_back(out);
  }
  g.output(all.back().v);
  return g;
}

// A decoder with a cache of keys and values in each layer, as GPT-2 is exported: 46 nodes a layer.
graph decoder(std::int64_t layers) {
  graph g;
  const auto ints = [&](std::vector<std::int64_t> list) {
    const auto n = static_cast<std::int64_t>(list.size());
    return g.constant<std::int64_t>("", {n}, list);
  };
  const auto weight = [&](std::int64_t rows, std::int64_t columns) {
    return g.constant<float>("", {rows, columns},
                             std::vector<float>(static_cast<std::size_t>(rows * columns)));
  };
  value_id x = g.input("x", dtype::f32, {"B", "L", 96});
  const value_id zero = ints({0}), one = ints({1}), two = ints({2});
  const value_id heads = ints({12, 8}), width = ints({96});
  const value_id w = weight(96, 96), up = weight(96, 384), down = weight(384, 96);
  const value_id mask = g.constant<float>("mask", {1, 1, 1024, 1024}, std::vector<float>(1 << 20));
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto past = [&](const char* what) {
      return g.input(what + std::to_string(layer), dtype::f32, {"B", 12, "P", 8});
    };
    const auto take = [&](value_id v, value_id at) {
      return g.op("Gather", {g.op("Shape", {v}), at});
    };
    const auto split = [&] {
      const value_id target = g.op("Concat", {take(x, zero), take(x, one), heads}, {{"axis", 0}});
      return g.op("Transpose", {g.op("Reshape", {g.op("MatMul", {x, w}), target})},
                  {{"perm", {0, 2, 1, 3}}});
    };
    const value_id q = split();
    const value_id k = g.op("Concat", {past("k"), split()}, {{"axis", 2}});
    const value_id v = g.op("Concat", {past("v"), split()}, {{"axis", 2}});
    value_id scores = g.op("MatMul", {q, g.op("Transpose", {k}, {{"perm", {0, 1, 3, 2}}})});
    const value_id whole = take(k, two), start = g.op("Sub", {whole, take(q, two)});
    const value_id rows = g.op("Slice", {mask, start, whole, two});
    scores = g.op("Add", {scores, g.op("Slice", {rows, zero, whole, ints({3})})});
    value_id y = g.op("MatMul", {g.op("Softmax", {scores}), v});
    y = g.op("Transpose", {y}, {{"perm", {0, 2, 1, 3}}});
    y = g.op("Reshape", {y, g.op("Concat", {take(y, zero), take(y, one), width}, {{"axis", 0}})});
    x = g.op("Add", {x, g.op("MatMul", {y, w})});
    x = g.op("Add", {x, g.op("MatMul", {g.op("Relu", {g.op("MatMul", {x, up})}), down})});
    g.output(k);
    g.output(v);
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
  state.counters["us_per_node"] = benchmark::Counter(
      static_cast<double>(done) * 1e-6, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(analyze<chain>)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK(analyze<residual>)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK(analyze<transformer>)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK(analyze<random_graph>)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);

// All sizes of all tensors, and how many bytes each takes, for other sizes of the inputs each time.
void bind_decoder(benchmark::State& state) {
  const graph g = decoder(48);
  auto view = sod2::make_view(g);
  auto facts = sod2::analyze(*view, sod2::standard_registry());
  if (!facts) return state.SkipWithError(facts.error().text().c_str());
  sod2::dim_context& c = facts->context();
  sod2::size_program_builder builder(c);
  for (std::uint32_t i = 1; i < view->value_count(); ++i) {
    sod2::dim count = c.one();
    for (sod2::dim d : facts->dims(value_id{i})) {
      builder.add_output(d);
      count = c.mul(count, d);
    }
    builder.add_output(c.mul(count, 4));
  }
  const sod2::size_program sizes = std::move(builder).finish();
  std::vector<std::int64_t> symbols(c.symbol_count(), 1), scratch(sizes.register_count()),
      out(sizes.output_count());
  const auto slot = [&](const char* name) -> std::int64_t& {
    return symbols[static_cast<std::size_t>(c.find_symbol(name))];
  };
  std::int64_t past = 0;
  for (auto _ : state) {
    past = (past + 1) % 1000;
    slot("B") = past % 3 + 1;
    slot("L") = past % 24 + 1;
    slot("P") = past;
    if (sizes.evaluate(symbols, scratch, out) != sod2::errc::ok)
      return state.SkipWithError("a size does not fit");
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["nodes"] = static_cast<double>(view->node_count());
  state.counters["sizes"] = static_cast<double>(out.size());
}
BENCHMARK(bind_decoder)->Unit(benchmark::kMicrosecond);

void view_of_chain(benchmark::State& state) {
  const graph g = chain(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(sod2::make_view(g));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(view_of_chain)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);

}  // namespace
