// A graph built by hand: symbolic shapes, the plan, and a run at two sizes.
#include <cstdio>
#include <string>
#include <vector>

#include <sod2/graph.hpp>
#include <sod2/kernel.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/rdp.hpp>
#include <sod2/runtime.hpp>

int main() {
  // [build]
  sod2::graph g;
  const auto image = g.input("image", sod2::dtype::f32, {"B", 3, "H", "W"});
  const auto weight =
      g.constant<float>("weight", {8, 3, 3, 3}, std::vector<float>(8 * 3 * 3 * 3, 0.1F));
  const auto bias = g.constant<float>("bias", {8}, std::vector<float>(8, 0.5F));
  const auto conv =
      g.op("Conv", {image, weight, bias},
           {{"strides", {2, 2}}, {"pads", {1, 1, 1, 1}}, {"kernel_shape", {3, 3}}}, "conv");
  const auto relu = g.op("Relu", {conv}, {}, "relu");
  const auto pooled = g.op("GlobalAveragePool", {relu}, {}, "pooled");
  const auto scaled = g.op("Mul", {relu, pooled}, {}, "scaled");
  const auto flat = g.op("Flatten", {scaled}, {{"axis", 2}}, "flat");
  g.output(flat, "features");
  // [build]

  // [analyse]
  auto view = sod2::make_view(g);
  if (!view) return std::printf("%s\n", view.error().text().c_str()), 1;
  auto facts = sod2::analyze(*view, sod2::standard_registry());
  if (!facts) return std::printf("%s\n", facts.error().text().c_str()), 1;
  for (const sod2::value_id v : {conv, relu, pooled, scaled, flat}) {
    const sod2::value_id id = sod2::find_value<sod2::graph>(*view, v);
    std::printf("%-8s %s\n", std::string(view->name(id)).c_str(), facts->text(id).c_str());
  }
  // [analyse]

  // [run]
  auto program = sod2::compile(*view, sod2::standard_registry(), sod2::standard_kernels());
  if (!program) return std::printf("%s\n", program.error().text().c_str()), 1;
  std::printf("\n%llu nodes in %llu launches; arena bytes = %s\n",
              static_cast<unsigned long long>(program->summary().nodes),
              static_cast<unsigned long long>(program->summary().groups),
              program->summary().required_bytes.c_str());
  sod2::session session(*program);
  for (const std::int64_t size : {32, 101}) {
    const std::vector<std::int64_t> dims{1, 3, size, size + 7};
    std::vector<float> pixels(static_cast<std::size_t>(3 * size * (size + 7)), 1.0F);
    const sod2::tensor_view input{pixels.data(), dims.data(), 4, sod2::dtype::f32};
    if (sod2::status s = session.run({&input, 1}); !s)
      return std::printf("%s\n", s.error().text().c_str()), 1;
    const sod2::tensor_view& out = session.output(0);
    std::printf("%lldx%lld -> %lldx%lld, first value %.3f, arena %lld bytes\n",
                static_cast<long long>(size), static_cast<long long>(size + 7),
                static_cast<long long>(out.dim(0)), static_cast<long long>(out.dim(1)),
                static_cast<double>(out.as<float>()[0]),
                static_cast<long long>(session.arena_bytes()));
    const std::int64_t positions = (size + 1) / 2 * ((size + 8) / 2);
    if (out.dim(0) != 8 || out.dim(1) != positions) return 1;
  }
  // [run]
  return 0;
}
