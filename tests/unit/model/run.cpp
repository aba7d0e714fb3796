// Compile-time networks as graphs and as programs, against the same arithmetic written out.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <sod2/model.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/runtime.hpp>

using namespace sod2;
using namespace sod2::model;

namespace {

inline constexpr struct Batch : symbol<"Batch", 1, 64> {
} batch;
inline constexpr struct Height : symbol<"Height", 8, 64, 4> {
} height;
inline constexpr struct Width : symbol<"Width"> {
} width;

std::vector<float> random_floats(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> unit(-1.0F, 1.0F);
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& f : out) f = unit(random);
  return out;
}
tensor_view view_of(std::vector<float>& data, const std::vector<std::int64_t>& dims) {
  tensor_view v;
  v.data = data.data();
  v.dims = dims.data();
  v.rank = static_cast<std::uint32_t>(dims.size());
  v.type = dtype::f32;
  return v;
}

}  // namespace

TEST_CASE("a network describes itself") {
  constexpr auto net = sequential(dense<64>, relu, reshape<dims<batch, 32, 2>>);
  CHECK(describe(net(dims<batch, 128>{})) ==
        "(Batch, 128) -> dense (Batch, 64) -> relu (Batch, 64) -> reshape (Batch, 32, 2)");
}

TEST_CASE("a network becomes a graph") {
  constexpr auto net = sequential(dense<4>, residual(dense<4>, model::tanh),
                                  reshape<dims<batch, 2, 2>>)(dims<batch, 3>{});
  static_assert(weight_count(net) == 4 * 4 + 5 * 4);
  const std::vector<float> weights = random_floats(weight_count(net), 1);
  auto lowered = lower(net, weights);
  REQUIRE(lowered.ok());
  const graph& g = *lowered;
  std::string ops;
  for (const graph::node& n : g.nodes()) ops += n.op + "(" + n.name + ") ";
  CHECK(ops ==
        "MatMul(MatMul_0) Add(Add_1) MatMul(residual_2/MatMul_2) Add(residual_2/Add_3) "
        "Tanh(residual_2/Tanh_4) "
        "Add(residual_5) Reshape(Reshape_6) ");
  const value_id in = g.scopes()[0].inputs[0];
  CHECK(g[in].dims[0].symbol == "Batch");
  CHECK(g[in].dims[1].size == 3);
  // The graph's own analysis gives what the types say.
  auto view = make_view(g);
  REQUIRE(view.ok());
  auto facts = analyze(*view, standard_registry(), assumptions(net));
  REQUIRE(facts.ok());
  CHECK(facts->text(view->outputs()[0]) == "(Batch, 2, 2)");
  CHECK(facts->assertions().empty());

  const auto short_of = lower(net, std::span<const float>(weights).first(7));
  REQUIRE_FALSE(short_of.ok());
  CHECK(short_of.error().text() == "the network takes another number of weights (36 vs 7)");
}

TEST_CASE("a dense network runs at every batch") {
  constexpr auto net =
      sequential(dense<6>, relu, dense<4>, softmax, reshape<dims<batch, 2, 2>>)(dims<batch, 5>{});
  const std::vector<float> w = random_floats(weight_count(net), 2);
  auto made = model::compile(net, w, standard_registry(), standard_kernels());
  if (!made) MESSAGE(made.error().text());
  REQUIRE(made.ok());
  session s(*made);
  for (const std::int64_t n : {1, 3, 17, 64}) {
    std::vector<float> x = random_floats(n * 5, static_cast<unsigned>(n));
    const std::vector<std::int64_t> shape{n, 5};
    const tensor_view input = view_of(x, shape);
    const status ran = s.run({&input, 1});
    if (!ran) MESSAGE(ran.error().text());
    REQUIRE(ran.ok());
    const tensor_view& y = s.output(0);
    REQUIRE(y.rank == 3);
    CHECK((y.dims[0] == n && y.dims[1] == 2 && y.dims[2] == 2));
    for (std::int64_t row = 0; row < n; ++row) {
      float hidden[6], logits[4], total = 0;
      for (std::size_t j = 0; j < 6; ++j) {
        hidden[j] = w[5 * 6 + j];
        for (std::size_t k = 0; k < 5; ++k)
          hidden[j] += x[static_cast<std::size_t>(row) * 5 + k] * w[k * 6 + j];
        hidden[j] = hidden[j] > 0 ? hidden[j] : 0;
      }
      for (std::size_t j = 0; j < 4; ++j) {
        logits[j] = w[36 + 6 * 4 + j];
        for (std::size_t k = 0; k < 6; ++k) logits[j] += hidden[k] * w[36 + k * 4 + j];
        logits[j] = std::exp(logits[j]);
        total += logits[j];
      }
      for (std::size_t j = 0; j < 4; ++j)
        REQUIRE(y.as<float>()[static_cast<std::size_t>(row) * 4 + j] ==
                doctest::Approx(logits[j] / total).epsilon(1e-4));
    }
  }
  // What the symbol's type declares is checked at bind.
  std::vector<float> x(65 * 5);
  const std::vector<std::int64_t> shape{65, 5};
  const tensor_view input = view_of(x, shape);
  const status refused_batch = s.run({&input, 1});
  REQUIRE_FALSE(refused_batch.ok());
  CHECK(refused_batch.error().text().find("Batch") != std::string::npos);
}

TEST_CASE("a convolutional network runs at every image size") {
  constexpr auto net = sequential(conv2d<4, 3, 2, 1>, relu, residual(conv2d<4, 3, 1, 1>, sigmoid),
                                  flatten)(dims<batch, 2, height, width>{});
  using made_net = std::remove_const_t<decltype(net)>;
  // Height is a multiple of 4, so half of it is exact; Width is not.
  static_assert(
      std::is_same_v<made_net::shape<1>,
                     static_shape<Batch, lit<4>, ct::floordiv<Height, 2>, ct::ceildiv<Width, 2>>>);
  const std::vector<float> w = random_floats(weight_count(net), 3);
  auto made = model::compile(net, w, standard_registry(), standard_kernels());
  if (!made) MESSAGE(made.error().text());
  REQUIRE(made.ok());
  session s(*made);
  const auto convolve = [](const std::vector<float>& x, std::int64_t c, std::int64_t h,
                           std::int64_t wd, const float* kernel, std::int64_t stride) {
    const std::int64_t m = 4, oh = (h - 1) / stride + 1, ow = (wd - 1) / stride + 1;
    std::vector<float> y(static_cast<std::size_t>(m * oh * ow));
    for (std::int64_t o = 0; o < m; ++o)
      for (std::int64_t i = 0; i < oh; ++i)
        for (std::int64_t j = 0; j < ow; ++j) {
          float sum = kernel[m * c * 9 + o];
          for (std::int64_t ch = 0; ch < c; ++ch)
            for (std::int64_t a = 0; a < 3; ++a)
              for (std::int64_t b = 0; b < 3; ++b) {
                const std::int64_t r = i * stride + a - 1, q = j * stride + b - 1;
                if (r < 0 || q < 0 || r >= h || q >= wd) continue;
                sum += x[static_cast<std::size_t>((ch * h + r) * wd + q)] *
                       kernel[((o * c + ch) * 3 + a) * 3 + b];
              }
          y[static_cast<std::size_t>((o * oh + i) * ow + j)] = sum;
        }
    return y;
  };
  const std::int64_t sizes[][2] = {{8, 5}, {12, 12}, {64, 31}};
  for (const auto& size : sizes) {
    const std::int64_t h = size[0], wd = size[1];
    std::vector<float> x = random_floats(2 * h * wd, 9);
    const std::vector<std::int64_t> shape{1, 2, h, wd};
    const tensor_view input = view_of(x, shape);
    const status ran = s.run({&input, 1});
    if (!ran) MESSAGE(ran.error().text());
    REQUIRE(ran.ok());
    std::vector<float> first = convolve(x, 2, h, wd, w.data(), 2);
    for (float& f : first) f = f > 0 ? f : 0;
    const std::vector<float> second =
        convolve(first, 4, h / 2, (wd + 1) / 2, w.data() + 4 * 2 * 9 + 4, 1);
    const tensor_view& y = s.output(0);
    REQUIRE(y.rank == 2);
    REQUIRE(y.dims[1] == static_cast<std::int64_t>(first.size()));
    for (std::size_t i = 0; i < first.size(); ++i)
      REQUIRE(y.as<float>()[i] ==
              doctest::Approx(first[i] + 1 / (1 + std::exp(-second[i]))).epsilon(1e-3));
  }
}
