// sod2 test: folders in the layout of the ONNX backend tests.
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "engine.hpp"

namespace tool {

namespace {
namespace fs = std::filesystem;

struct test_options {
  std::vector<std::string> dirs;
  std::string only;
  bool list = false, onnx_suite = false;
  double rtol = 1e-3, atol = 1e-4;
  CLI::Option* atol_given = nullptr;
  run_options run;
};

/// Number behind the last '_' of a name's stem, or -1.
long number_of(const fs::path& p) {
  const std::string stem = p.stem().string();
  const std::size_t at = stem.rfind('_');
  long n = -1;
  if (at != std::string::npos) {
    const auto [end, code] = std::from_chars(stem.data() + at + 1, stem.data() + stem.size(), n);
    if (code != std::errc{} || end != stem.data() + stem.size()) n = -1;
  }
  return n;
}
/// Entries called `prefix..suffix`, by number.
std::vector<fs::path> numbered(const fs::path& folder, std::string_view prefix,
                               std::string_view suffix) {
  std::vector<fs::path> found;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    const std::string name = it->path().filename().string();
    if (name.size() >= prefix.size() + suffix.size() &&
        name.compare(0, prefix.size(), prefix) == 0 &&
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0)
      found.push_back(it->path());
  }
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    const long x = number_of(a), y = number_of(b);
    return x != y ? x < y : a < b;
  });
  return found;
}

/// Folders with a model and data sets below `dir`, itself included.
void collect(const fs::path& dir, std::vector<fs::path>& out) {
  std::error_code code;
  if (fs::is_regular_file(dir / "model.onnx", code) && !numbered(dir, "test_data_set_", "").empty())
    out.push_back(dir);
  std::vector<fs::path> below;
  for (fs::directory_iterator it(dir, code), end; !code && it != end; it.increment(code))
    if (it->is_directory(code) && !it->is_symlink(code)) below.push_back(it->path());
  std::sort(below.begin(), below.end());
  for (const fs::path& p : below) collect(p, out);
}

input_list read_inputs(const loaded_model& m, const fs::path& set) {
  input_list inputs;
  for (const fs::path& p : numbered(set, "input_", ".pb")) {
    const std::size_t k = inputs.size();
    inputs.push_back(read_value_file(p.string(), k < m.view.inputs().size()
                                                     ? m.view.declared(m.view.inputs()[k]).kind
                                                     : sod2::fact_kind::tensor));
  }
  return inputs;
}
/// Sizes are at least 1 unless somebody says otherwise: data that are empty along an axis do.
void allow_empty(const loaded_model& m, const input_list& inputs, shape_options& shapes) {
  for (const auto& [name, size] : symbols_of(m, shapes, inputs))
    if (size == 0) shapes.analysis.symbols.push_back({name, {0, sod2::default_symbol_max, 1, 0}});
}

/// What went wrong, or empty.
std::string run_case(const fs::path& folder, const test_options& o) {
  try {
    const auto m = load_model(folder.string());
    return with_file(*m, [&]() -> std::string {
      const std::vector<fs::path> sets = numbered(folder, "test_data_set_", "");
      std::vector<input_list> inputs;
      shape_options shapes;
      for (const fs::path& set : sets) {
        inputs.push_back(read_inputs(*m, set));
        if (inputs.back().size() <= m->view.inputs().size()) allow_empty(*m, inputs.back(), shapes);
      }
      const sod2::program program = compile_model(*m, shapes, o.run);
      running r(program, o.run);
      const tolerance t{o.rtol, o.atol};
      for (std::size_t k = 0; k < sets.size(); ++k) {
        const fs::path& set = sets[k];
        need(r.session.run(views_of(inputs[k])));
        const auto outputs = numbered(set, "output_", ".pb");
        if (outputs.empty() || outputs.size() > m->own_outputs)
          return set.filename().string() + ": expects " + std::to_string(outputs.size()) +
                 " outputs, the model has " + std::to_string(m->own_outputs);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          const host_tensor expected =
              read_value_file(outputs[i].string(), program.outputs()[i].kind);
          const std::string d = difference(expected.view(), r.session.output(i), t);
          if (!d.empty())
            return set.filename().string() + ": output '" + program.outputs()[i].name + "': " + d;
        }
      }
      return {};
    });
  } catch (const failure& f) {
    return f.error.text();
  }
}

int test(test_options o) {
  check_run_options(o.run);
  if (o.onnx_suite && o.atol_given->count() == 0) o.atol = 1e-7;
  std::vector<fs::path> folders;
  for (const std::string& dir : o.dirs) {
    std::error_code code;
    if (!fs::is_directory(dir, code))
      fail(sod2::error(sod2::errc::io, "not a folder").in_file(dir));
    collect(fs::path(dir), folders);
  }
  // The same folder by several ways counts once.
  std::vector<fs::path> real, chosen;
  for (const fs::path& p : folders) {
    std::error_code code;
    fs::path r = fs::canonical(p, code);
    if (std::find(real.begin(), real.end(), r) != real.end()) continue;
    const std::string name = r.filename().string();
    real.push_back(std::move(r));
    if (o.only.empty() || fnmatch(o.only.c_str(), name.c_str(), 0) == 0 ||
        fnmatch(o.only.c_str(), p.c_str(), 0) == 0)
      chosen.push_back(p);
  }
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const stopwatch watch;
  std::size_t passed = 0, failed = 0;
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    if (terminal && watch.ms() > 1000) {
      const double s = watch.ms() / 1000, rate = static_cast<double>(k) / s;
      std::fprintf(stderr, "\r%zu of %zu, %.1f/s, %.0f s left \033[K", k, chosen.size(), rate,
                   static_cast<double>(chosen.size() - k) / (rate > 0 ? rate : 1));
    }
    const std::string problem = run_case(chosen[k], o);
    ++(problem.empty() ? passed : failed);
    if (!problem.empty() && o.list)
      std::printf("failed %s: %s\n", chosen[k].c_str(), problem.c_str());
  }
  if (terminal && watch.ms() > 1000) std::fprintf(stderr, "\r\033[K");
  std::printf("%zu passed, %zu failed, 0 skipped\n", passed, failed);
  return failed == 0 ? success : answer_is_no;
}
}  // namespace

void add_test(CLI::App& app, std::vector<command>& list) {
  command& c =
      add_command(app, list, "test", "Runs models with reference outputs and compares", false);
  auto o = std::make_shared<test_options>();
  c.app->add_option("DIR", o->dirs, "Folders, searched recursively for model.onnx with data sets")
      ->required();
  c.app->add_option("--only", o->only, "Only folders whose name matches this pattern");
  c.app->add_flag("--list", o->list, "Names failures and skipped folders with reasons");
  c.app->add_flag("--onnx-suite", o->onnx_suite, "Tolerances of the ONNX backend tests");
  c.app->add_option("--rtol", o->rtol, "Relative tolerance")->check(CLI::NonNegativeNumber);
  o->atol_given =
      c.app->add_option("--atol", o->atol, "Absolute tolerance")->check(CLI::NonNegativeNumber);
  add_run_options(*c.app, o->run);
  c.run = [o] { return test(*o); };
}

}  // namespace tool
