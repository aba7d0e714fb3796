// A network whose shapes are checked while compiling, with sizes that stay symbols, run at several
// batches.
#include <cmath>
#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

#include <sod2/kernel.hpp>
#include <sod2/model.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/runtime.hpp>

// [symbols]
inline constexpr struct Batch : sod2::symbol<"Batch"> {
} batch;
inline constexpr struct Height : sod2::symbol<"Height", 8, 512, 8> {  // 8, 16, .. 512
} height;
// [symbols]

int main() {
  using namespace sod2::model;
  using sod2::dims;

  // [network]
  constexpr auto net = sequential(dense<64>, relu, reshape<dims<batch, 32, 2>>)(dims<batch, 128>{});
  // [network]
  static_assert(std::is_same_v<decltype(net)::output, dims<batch, 32, 2>>);
  std::printf("%s\n", describe(net).c_str());
  // reshape<dims<batch, 30, 2>> would not compile:
  //   sod2: reshape must keep the number of elements

  // Sizes that a layer computes are types with names too: Height / 4 is exact, since 8 divides it.
  constexpr auto stem =
      sequential(conv2d<8, 3, 2, 1>, relu, conv2d<8, 3, 2, 1>,
                 residual(conv2d<8, 3, 1, 1>, relu))(dims<batch, 3, height, 100>{});
  static_assert(decltype(stem)::output::dim<2>{} == floordiv(height, sod2::lit<4>{}));
  std::printf("%s\n", describe(stem).c_str());

  // [run]
  std::vector<float> weights(static_cast<std::size_t>(weight_count(net)));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(static_cast<float>(i));
  auto program = compile(net, weights, sod2::standard_registry(), sod2::standard_kernels());
  if (!program) return std::printf("%s\n", program.error().text().c_str()), 1;
  sod2::session session(*program);
  for (const std::int64_t rows : {1, 7}) {
    const std::int64_t shape[] = {rows, 128};
    std::vector<float> x(static_cast<std::size_t>(rows * 128), 0.5F);
    const sod2::tensor_view input{x.data(), shape, 2, sod2::dtype::f32};
    if (const sod2::status s = session.run({&input, 1}); !s)
      return std::printf("%s\n", s.error().text().c_str()), 1;
    const sod2::tensor_view& y = session.output(0);
    std::printf("batch %lld: (%lld, %lld, %lld)\n", static_cast<long long>(rows),
                static_cast<long long>(y.dim(0)), static_cast<long long>(y.dim(1)),
                static_cast<long long>(y.dim(2)));
  }
  // [run]
  return 0;
}
