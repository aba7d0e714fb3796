// Symbolic sizes: how fast they are built, proved, evaluated.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include <sod2/expr.hpp>

namespace {

using sod2::dim;
using sod2::dim_context;

// One layer of a convolutional network: two outputs of a window and their element count.
void build_sizes(benchmark::State& state) {
  dim_context c;
  const dim b = c.symbol("B");
  dim h = c.symbol("H"), w = c.symbol("W");
  std::int64_t made = 0;
  for (auto _ : state) {
    const dim oh = c.add(c.floordiv(c.add(h, -1), 2), 1);
    const dim ow = c.add(c.floordiv(c.add(w, -1), 2), 1);
    benchmark::DoNotOptimize(c.mul(c.mul(b, 64), c.mul(oh, ow)));
    made += 9;
  }
  state.SetItemsProcessed(made);
}
BENCHMARK(build_sizes);

void add(benchmark::State& state) {
  dim_context c;
  const dim x = c.add(c.symbol("A"), 1), y = c.mul(c.symbol("B"), 3);
  if (state.range(0) != 0) {  // with facts known
    c.symbol("C");
    static_cast<void>(c.assume_divisible(2, 4));
  }
  for (auto _ : state) benchmark::DoNotOptimize(c.add(x, y));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(add)->Arg(0)->Arg(1);

void mul(benchmark::State& state) {
  dim_context c;
  const dim x = c.mul(c.symbol("A"), c.symbol("B")), y = c.add(c.symbol("C"), 3);
  for (auto _ : state) benchmark::DoNotOptimize(c.mul(x, y));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(mul);

void floordiv(benchmark::State& state) {
  dim_context c;
  const dim x = c.add(c.mul(c.symbol("A"), 3), 5);
  for (auto _ : state) benchmark::DoNotOptimize(c.floordiv(x, 8));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(floordiv);

void broadcast_undecided(benchmark::State& state) {
  dim_context c;
  const dim x = c.symbol("A"), y = c.ceildiv(c.symbol("B"), 4);
  for (auto _ : state) benchmark::DoNotOptimize(c.broadcast(x, y));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(broadcast_undecided);

void prove_le(benchmark::State& state) {
  dim_context c;
  const dim a = c.symbol("A"), b = c.symbol("B");
  const dim x = c.floordiv(a, 7), y = c.floordiv(c.add(a, b), 7);
  for (auto _ : state) benchmark::DoNotOptimize(c.decide_le(x, y));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(prove_le);

// Finding one of many symbols by its name.
void symbol_by_name(benchmark::State& state) {
  dim_context c;
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    names.push_back("dimension_" + std::to_string(i));
    c.symbol(names.back());
  }
  std::size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(c.symbol(names[at]));
    at = (at + 17) % names.size();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(symbol_by_name)->Arg(10)->Arg(10000);

// A fact about one symbol, then a look at sizes that do not contain it.
void resolve_unconcerned(benchmark::State& state) {
  dim_context c;
  std::vector<dim> sizes;
  dim h = c.symbol("H");
  for (int i = 0; i < 1000; ++i) sizes.push_back(c.add(c.floordiv(h, i + 2), i));
  c.symbol("Z", {1, std::int64_t{1} << 40, 1, 0});
  std::int64_t high = std::int64_t{1} << 40;
  for (auto _ : state) {
    static_cast<void>(c.assume_range(1, {1, --high}));
    for (dim d : sizes) benchmark::DoNotOptimize(c.resolve(d));
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(resolve_unconcerned)->Iterations(2000);

// A hundred sizes of a network, as `bind` computes them.
void evaluate_sizes(benchmark::State& state) {
  dim_context c;
  const dim b = c.symbol("B");
  dim h = c.symbol("H"), w = c.symbol("W");
  sod2::size_program_builder builder(c);
  std::int64_t outputs = 0;
  for (std::int64_t i = 0; i < 25; ++i) {
    if (i % 5 == 4) {
      h = c.ceildiv(h, 2);
      w = c.ceildiv(w, 2);
    }
    for (const dim d : {h, w, c.mul(h, w), c.mul(c.mul(b, 16 + i), c.mul(h, w))}) {
      builder.add_output(d);
      ++outputs;
    }
  }
  const sod2::size_program program = std::move(builder).finish();
  std::vector<std::int64_t> scratch(program.register_count()), out(program.output_count());
  const std::int64_t symbols[] = {2, 640, 480};
  for (auto _ : state) {
    benchmark::DoNotOptimize(program.evaluate(symbols, scratch, out));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * outputs);
  state.counters["instructions"] = static_cast<double>(program.instruction_count());
}
BENCHMARK(evaluate_sizes);

}  // namespace
