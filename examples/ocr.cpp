// Text detection and recognition at changing sizes: one compiled program each, a table of what every
// size costs. `example_ocr DETECTION.onnx RECOGNITION.onnx` runs the PP-OCRv4 models; without
// arguments a small convolutional network stands in for both.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <sod2/graph.hpp>
#include <sod2/kernel.hpp>
#include <sod2/onnx.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/rdp.hpp>
#include <sod2/runtime.hpp>

namespace {

struct size {
  std::int64_t height, width;
};

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// One input (B, 3, H, W), any number of outputs; prints a row a size. Returns false on an error.
bool table(const char* title, const sod2::graph& graph, const sod2::compile_options& options, const std::vector<size>& sizes) {
  const auto fail = [&](const sod2::error& e) {
    std::fprintf(stderr, "%s: %s\n", title, e.text().c_str());
    return false;
  };
  auto view = sod2::make_view(graph);
  if (!view) return fail(view.error());
  const auto start = std::chrono::steady_clock::now();
  auto program = sod2::compile(*view, sod2::standard_registry(), sod2::standard_kernels(), options);
  if (!program) return fail(program.error());
  const sod2::program_summary& s = program->summary();
  std::printf("\n%s: %llu operators, %llu after folding, %llu launches; compiled in %.0f ms\n", title,
              static_cast<unsigned long long>(s.nodes_imported), static_cast<unsigned long long>(s.nodes),
              static_cast<unsigned long long>(s.groups), milliseconds_since(start));
  std::printf("%-18s %10s %10s %12s %12s %7s  %s\n", "input", "bind us", "run ms", "arena bytes", "lower bound", "ratio",
              "output");
  sod2::session session(*program);
  for (const size& at : sizes) {
    const std::vector<std::int64_t> dims{1, 3, at.height, at.width};
    std::vector<float> pixels(static_cast<std::size_t>(3 * at.height * at.width));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 255) / 255.0F - 0.5F;
    const sod2::tensor_view input{pixels.data(), dims.data(), 4, sod2::dtype::f32};
    const auto bind = std::chrono::steady_clock::now();
    if (sod2::status e = session.bind_inputs({&input, 1}); !e) return fail(e.error());
    const double bind_us = milliseconds_since(bind) * 1000;
    double best = 0;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto run = std::chrono::steady_clock::now();
      if (sod2::status e = session.run({&input, 1}); !e) return fail(e.error());
      const double ms = milliseconds_since(run);
      if (repeat == 0 || ms < best) best = ms;
    }
    std::string shape;
    for (const std::int64_t d : session.output(0).shape()) shape += (shape.empty() ? "" : "x") + std::to_string(d);
    const std::int64_t bound = session.lower_bound_bytes();
    std::printf("1x3x%-4lldx%-8lld %10.0f %10.1f %12lld %12lld %7.3f  %s\n", static_cast<long long>(at.height),
                static_cast<long long>(at.width), bind_us, best, static_cast<long long>(session.arena_bytes()),
                static_cast<long long>(bound),
                bound > 0 ? static_cast<double>(session.arena_bytes()) / static_cast<double>(bound) : 1.0, shape.c_str());
  }
  return true;
}

// Three strided convolutions and an upsampling branch.
sod2::graph small_network() {
  sod2::graph g;
  sod2::value_id x = g.input("image", sod2::dtype::f32, {"B", 3, "H", "W"});
  std::int64_t channels = 3;
  for (int layer = 0; layer < 3; ++layer) {
    const std::int64_t next = channels == 3 ? 8 : channels * 2;
    const auto weight = g.constant<float>("w" + std::to_string(layer), {next, channels, 3, 3},
                                          std::vector<float>(static_cast<std::size_t>(next * channels * 9), 0.02F));
    x = g.op("Relu", {g.op("Conv", {x, weight}, {{"strides", {2, 2}}, {"pads", {1, 1, 1, 1}}})});
    channels = next;
  }
  const auto gate = g.op("Sigmoid", {g.op("GlobalAveragePool", {x})});
  g.output(g.op("Mul", {x, gate}), "features");
  return g;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<size> images{{320, 320}, {480, 640}, {640, 480}, {736, 1280}, {960, 960}};
  const std::vector<size> lines{{48, 96}, {48, 160}, {48, 320}, {48, 480}, {48, 333}};
  if (argc == 1) {
    const sod2::graph g = small_network();
    return table("small network", g, {}, {{32, 32}, {64, 96}, {101, 57}}) ? 0 : 1;
  }
  if (argc != 3) {
    std::fprintf(stderr, "usage: example_ocr [DETECTION.onnx RECOGNITION.onnx]\n");
    return 2;
  }
  const struct {
    const char* title;
    const char* path;
    const std::vector<size>& sizes;
  } jobs[] = {{"detection", argv[1], images}, {"recognition", argv[2], lines}};
  for (const auto& job : jobs) {
    auto model = sod2::onnx::read_file(job.path);
    if (!model) return std::fprintf(stderr, "%s\n", model.error().text().c_str()), 1;
    if (!table(job.title, model->graph, {}, job.sizes)) return 1;
  }
  return 0;
}
