// RDP: warm time of each model in $SOD2_SHARED/models; nothing is measured where that is not set.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <sod2/graph.hpp>
#include <sod2/onnx.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/rdp.hpp>

namespace {

void analyze_model(benchmark::State& state, const std::filesystem::path& file) {
  auto model = sod2::onnx::read_file(file);
  if (!model) return state.SkipWithError(model.error().text().c_str());
  auto view = sod2::make_view(model->graph);
  if (!view) return state.SkipWithError(view.error().text().c_str());
  for (auto _ : state) {
    auto facts = sod2::analyze(*view, sod2::standard_registry());
    if (!facts) return state.SkipWithError(facts.error().text().c_str());
    benchmark::DoNotOptimize(facts->facts_bytes());
  }
  state.counters["nodes"] = static_cast<double>(view->node_count());
}

[[maybe_unused]] const bool registered = [] {
  const char* const shared = std::getenv("SOD2_SHARED");
  if (shared == nullptr) return false;
  std::vector<std::filesystem::path> files;
  std::error_code code;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(shared) / "models", code))
    if (std::filesystem::exists(entry.path() / "model.onnx", code)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files)
    benchmark::RegisterBenchmark(file.filename().string().c_str(), [file](benchmark::State& state) {
      analyze_model(state, file);
    })->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
