// Damaged models: whatever stands in a file, reading, compiling and running it ends, with a result
// or with an error that says something.
//
// mutants FOLDER [COUNT [FIRST]]: copies of the model.onnx files below FOLDER, each with a few
// bytes changed. Mutant k is the same for every machine; the last one begun stands on stderr, so
// that a crash can be repeated with FIRST. Meant for a build with sanitizers.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <sod2/graph/view.hpp>
#include <sod2/kernel/table.hpp>
#include <sod2/onnx/reader.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/runtime/compile.hpp>
#include <sod2/runtime/session.hpp>

namespace {

constexpr unsigned seconds_each = 60;  // more is a hang
constexpr std::int64_t budget = std::int64_t{64} << 20;

/// The same numbers on every machine.
class dice {
 public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t bits() { return engine_(); }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(bits() % n); }

 private:
  std::mt19937_64 engine_;
};

/// Changes, repeats, removes or cuts: what a transmission or a careless exporter does.
void damage(std::string& bytes, dice& d) {
  for (std::size_t edits = 1 + d.below(3); edits > 0 && !bytes.empty(); --edits) {
    const std::size_t at = d.below(bytes.size());
    switch (d.below(16)) {
      case 0: bytes.erase(at, 1 + d.below(4)); break;
      case 1: bytes.insert(at, bytes.substr(d.below(bytes.size()), 1 + d.below(16))); break;
      case 2: bytes.resize(d.below(8) == 0 ? at : bytes.size()); break;
      case 3: bytes[at] = static_cast<char>(d.bits()); break;
      case 4: bytes[at] = static_cast<char>(d.below(2) == 0 ? 0 : 0xff); break;
      case 5:
      case 6:
      case 7: bytes[at] = static_cast<char>(bytes[at] ^ (1 << d.below(8))); break;
      default: bytes[at] = static_cast<char>(bytes[at] + (d.below(2) == 0 ? 1 : -1));
    }
  }
}

/// An input as the program declares it; free sizes are small.
struct input {
  std::vector<std::int64_t> dims;
  std::vector<std::uint64_t> storage;
  sod2::dtype type = sod2::dtype::f32;

  bool make(const sod2::program_input& in, std::vector<std::int64_t>& symbols, dice& d) {
    if (sod2::is_container(in.kind) || in.type == sod2::dtype::string) return false;
    type = in.type;
    std::int64_t count = 1;
    for (const auto& a : in.axes) {
      const std::int64_t size = a.size >= 0 ? a.size : symbols[a.symbol];
      dims.push_back(size);
      if (size > 4096 || (count *= size) > 1 << 20) return false;
    }
    storage.resize(2 * static_cast<std::size_t>(count) + 2);  // the widest elements have 16 bytes
    auto* const bytes = reinterpret_cast<unsigned char*>(storage.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const auto small = static_cast<std::int64_t>(d.below(8)) - 2;
      switch (type) {
        case sod2::dtype::f32:
          reinterpret_cast<float*>(bytes)[i] = static_cast<float>(small);
          break;
        case sod2::dtype::f64:
          reinterpret_cast<double*>(bytes)[i] = static_cast<double>(small);
          break;
        case sod2::dtype::i64: reinterpret_cast<std::int64_t*>(bytes)[i] = small; break;
        case sod2::dtype::boolean: bytes[i] = small > 1 ? 1 : 0; break;
        default: bytes[i] = static_cast<unsigned char>(small & 7);
      }
    }
    return true;
  }
  sod2::tensor_view view() {
    return {storage.data(), dims.data(), static_cast<std::uint32_t>(dims.size()), type};
  }
};

enum outcome { refused, not_compiled, not_run, ran, outcomes };

outcome use(const std::string& bytes, dice& d) {
  const auto model = sod2::onnx::read_bytes(bytes);
  if (!model) return model.error().text().empty() ? outcomes : refused;
  const auto view = sod2::make_view(model->graph);
  if (!view) return view.error().text().empty() ? outcomes : refused;
  sod2::compile_options options;
  options.fold_limit = 1 << 20;
  const auto program =
      sod2::compile(*view, sod2::standard_registry(), sod2::standard_kernels(), options);
  if (!program) return program.error().text().empty() ? outcomes : not_compiled;
  std::vector<std::int64_t> symbols;
  for (const sod2::program_symbol& s : program->symbols())
    symbols.push_back(std::max(s.lo, static_cast<std::int64_t>(d.below(6))));
  std::vector<input> inputs(program->inputs().size());
  std::vector<sod2::tensor_view> views;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].make(program->inputs()[i], symbols, d)) return not_run;
    views.push_back(inputs[i].view());
  }
  sod2::session_options limits;
  limits.memory_budget = budget;
  limits.poison = true;
  sod2::session session(*program, limits);
  const sod2::status s = session.run(views);
  if (!s) return s.error().text().empty() ? outcomes : not_run;
  return ran;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::size_t count = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1000;
  const std::size_t first = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 0;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1]))
    if (entry.path().filename() == "model.onnx") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::fprintf(stderr, "no model.onnx below %s\n", argv[1]);
    return 2;
  }
  std::size_t counts[outcomes] = {};
  for (std::size_t k = first; k < first + count; ++k) {
    dice d(k);
    const std::filesystem::path& file = files[d.below(files.size())];
    std::ifstream stream(file, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    damage(bytes, d);
    std::ofstream("mutant.onnx", std::ios::binary) << bytes;
    std::ofstream("mutant.txt") << k << ' ' << file.parent_path().filename().string() << '\n';
    alarm(seconds_each);
    const outcome got = use(bytes, d);
    if (got == outcomes) {
      std::fprintf(stderr, "mutant %zu: an error without a word\n", k);
      return 1;
    }
    ++counts[got];
  }
  std::printf("%zu mutants: %zu not read, %zu not compiled, %zu not run, %zu ran\n", count,
              counts[refused], counts[not_compiled], counts[not_run], counts[ran]);
  return 0;
}
