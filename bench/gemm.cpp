// One list of matrix products (M, N, K): constant right operands, packed once, and plain ones.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <sod2/expr/context.hpp>
#include <sod2/kernel.hpp>

namespace {

struct product_shape {
  std::int64_t m, n, k;
};
constexpr product_shape shapes[] = {
    {384, 768, 768},  {384, 3072, 768}, {384, 768, 3072},   {77, 768, 768},  {32, 768, 3072},
    {1, 768, 768},    {8, 768, 768},    {12544, 64, 147},   {3136, 64, 576}, {784, 128, 1152},
    {196, 256, 2304}, {49, 512, 4608},  {1024, 1024, 1024}, {20, 6625, 120}, {128, 30522, 768},
    {3, 3, 3},        {17, 31, 13},
};

std::vector<float> random_floats(std::int64_t count) {
  std::vector<float> v(static_cast<std::size_t>(count));
  std::uint32_t s = 1;
  for (float& x : v) {
    s = s * 1664525U + 1013904223U;
    x = static_cast<float>(s >> 8) / 8388608.0f - 1.0f;
  }
  return v;
}

void matmul(benchmark::State& state, product_shape p, bool packed) {
  const sod2::kernel_table& table = sod2::standard_kernels();
  const sod2::kernel_row* row = table.find("", "MatMul", 13);
  const std::vector<float> a = random_floats(p.m * p.k), b = random_floats(p.k * p.n);
  std::vector<float> c(static_cast<std::size_t>(p.m * p.n));
  const std::int64_t ad[] = {p.m, p.k}, bd[] = {p.k, p.n}, cd[] = {p.m, p.n};
  sod2::operand_info in[2], out[1];
  in[0].type = in[1].type = out[0].type = sod2::dtype::f32;
  if (packed)
    in[1].constant = {reinterpret_cast<const std::byte*>(b.data()), b.size() * 4, bd,
                      sod2::dtype::f32};
  sod2::prepare_args prepare;
  prepare.since_version = 13;
  prepare.inputs = in;
  prepare.outputs = out;
  prepare.simd = table.simd;
  auto kernel = row->prepare(prepare);
  if (!kernel) return state.SkipWithError("prepare failed");
  sod2::dim_context context;
  const auto bytes = static_cast<std::size_t>(
      context.value(row->workspace_bytes(context, kernel->data, prepare.inputs, prepare.outputs)));
  const std::unique_ptr<std::byte, void (*)(std::byte*)> workspace(
      static_cast<std::byte*>(std::aligned_alloc(64, bytes + 64)),
      [](std::byte* q) { std::free(q); });
  const sod2::tensor_view inputs[] = {{const_cast<float*>(a.data()), ad, 2, sod2::dtype::f32},
                                      {const_cast<float*>(b.data()), bd, 2, sod2::dtype::f32}};
  const sod2::tensor_view outputs[] = {{c.data(), cd, 2, sod2::dtype::f32}};
  sod2::kernel_args args;
  args.state = kernel->data;
  args.inputs = inputs;
  args.outputs = outputs;
  args.workspace = workspace.get();
  for (auto _ : state) {
    if (row->run(args) != sod2::errc::ok) return state.SkipWithError("run failed");
    benchmark::ClobberMemory();
  }
  const double flops =
      2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  state.counters["GFLOP/s"] = benchmark::Counter(
      flops * static_cast<double>(state.iterations()) * 1e-9, benchmark::Counter::kIsRate);
}

const bool registered = [] {
  for (const product_shape& p : shapes)
    for (bool packed : {true, false}) {
      const std::string name = std::string("matmul/") + (packed ? "packed/" : "plain/") +
                               std::to_string(p.m) + "x" + std::to_string(p.n) + "x" +
                               std::to_string(p.k);
      benchmark::RegisterBenchmark(name.c_str(), matmul, p, packed);
    }
  return true;
}();

}  // namespace
