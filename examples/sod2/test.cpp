// sod2 test: folders in the layout of the ONNX backend tests.
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
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
  bool list = false, onnx_suite = false, symbolic = false;
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

/// Why the folder's results depend on more than its model and inputs, or empty.
std::string out_of_scope(const loaded_model& m, const std::vector<input_list>& sets) {
  const sod2::graph_view& view = m.view;
  constexpr std::string_view random[] = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                         "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
  for (std::uint32_t n = 0; n < view.node_count(); ++n) {
    const sod2::node_id id{n};
    const std::string_view op = view.operator_name(id), domain = view.operator_domain(id);
    if (domain == "ai.onnx.preview.training")
      return "operator '" + std::string(op) + "' of the training preview";
    if (!domain.empty()) continue;
    if (std::find(std::begin(random), std::end(random), op) != std::end(random))
      return "operator '" + std::string(op) + "' draws random numbers";
    // Training drops elements at random, unless it drops none.
    const auto inputs = view.inputs(id);
    if (op != "Dropout" || inputs.size() < 3 || inputs[2] == sod2::absent) continue;
    const auto ratio = std::find(view.inputs().begin(), view.inputs().end(), inputs[1]);
    const auto at = static_cast<std::size_t>(ratio - view.inputs().begin());
    bool drops = ratio == view.inputs().end();
    for (const input_list& set : sets) {
      if (drops || at >= set.size()) break;
      const auto* bytes = static_cast<const unsigned char*>(set[at].data());
      drops = !std::all_of(bytes, bytes + set[at].bytes(), [](unsigned char b) { return b == 0; });
    }
    if (drops) return "operator 'Dropout' draws random numbers in training mode";
  }
  return {};
}

/// NumPy has no bfloat16: files hold its bits as uint16.
host_tensor read_value(const fs::path& file, sod2::fact_kind kind, sod2::dtype declared) {
  host_tensor t = read_value_file(file.string(), kind);
  if (declared == sod2::dtype::bf16 && t.type() == sod2::dtype::u16) t.reinterpret(declared);
  return t;
}

/// Every size of an input becomes a symbol of its own, whatever the file says. Left alone are
/// lists of integers, whose length may be a rank, and inputs that nothing reads, of which some
/// tests give data of another rank.
void forget_sizes(loaded_model& m, const std::vector<input_list>& sets) {
  sod2::graph& g = m.model.graph;
  const auto& inputs = g.scopes()[0].inputs;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    sod2::graph::value& value = g.values()[inputs[k].index];
    const bool list = value.dims.size() == 1 && sod2::is_integer(value.type);
    if (sod2::is_container(value.kind) || list) continue;
    const bool as_declared = std::all_of(sets.begin(), sets.end(), [&](const input_list& set) {
      return k >= set.size() || set[k].dims().size() == value.dims.size();
    });
    if (as_declared)
      for (sod2::dim_spec& d : value.dims) d = sod2::dim_spec{};
  }
  m.view = need(sod2::make_view(g));
}

struct outcome {
  enum class kind : std::uint8_t { passed, failed, skipped } what = kind::passed;
  std::string why;
};
outcome failed_with(std::string why) { return {outcome::kind::failed, std::move(why)}; }

outcome run_case(const fs::path& folder, const test_options& o) {
  try {
    const auto m = load_model(folder.string());
    return with_file(*m, [&]() -> outcome {
      const auto folders = numbered(folder, "test_data_set_", "");
      const auto declared = m->view.inputs();
      std::vector<input_list> sets;
      shape_options shapes;
      for (const fs::path& set : folders) {
        sets.emplace_back();
        for (const fs::path& p : numbered(set, "input_", ".pb")) {
          const std::size_t k = sets.back().size();
          const sod2::declared_value what =
              k < declared.size() ? m->view.declared(declared[k]) : sod2::declared_value{};
          sets.back().push_back(read_value(p, what.kind, what.type));
        }
      }
      if (o.symbolic) forget_sizes(*m, sets);
      for (const input_list& set : sets) allow_empty(*m, set, shapes);
      if (std::string why = out_of_scope(*m, sets); !why.empty())
        return {outcome::kind::skipped, std::move(why)};
      const sod2::program program = compile_model(*m, shapes, o.run);
      running r(program, o.run);
      const tolerance t{o.rtol, o.atol};
      for (std::size_t k = 0; k < folders.size(); ++k) {
        const fs::path& set = folders[k];
        need(r.session.run(views_of(sets[k])));
        const auto outputs = numbered(set, "output_", ".pb");
        if (outputs.empty() || outputs.size() > m->own_outputs)
          return failed_with(set.filename().string() + ": expects " +
                             std::to_string(outputs.size()) + " outputs, the model has " +
                             std::to_string(m->own_outputs));
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          const host_tensor expected =
              read_value(outputs[i], program.outputs()[i].kind, r.session.output(i).type);
          const std::string d = difference(expected.view(), r.session.output(i), t);
          if (!d.empty())
            return failed_with(set.filename().string() + ": output '" + program.outputs()[i].name +
                               "': " + d);
        }
      }
      return {};
    });
  } catch (const failure& f) {
    return failed_with(f.error.text());
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
  std::size_t count[3] = {};  // per outcome::kind
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    if (terminal && watch.ms() > 1000) {
      const double s = watch.ms() / 1000, rate = static_cast<double>(k) / s;
      std::fprintf(stderr, "\r%zu of %zu, %.1f/s, %.0f s left \033[K", k, chosen.size(), rate,
                   static_cast<double>(chosen.size() - k) / (rate > 0 ? rate : 1));
    }
    const outcome got = run_case(chosen[k], o);
    ++count[static_cast<std::size_t>(got.what)];
    if (got.what != outcome::kind::passed && o.list)
      std::printf("%s %s: %s\n", got.what == outcome::kind::failed ? "failed" : "skipped",
                  chosen[k].c_str(), got.why.c_str());
  }
  if (terminal && watch.ms() > 1000) std::fprintf(stderr, "\r\033[K");
  std::printf("%zu passed, %zu failed, %zu skipped\n", count[0], count[1], count[2]);
  return count[1] == 0 ? success : answer_is_no;
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
  c.app->add_flag("--symbolic", o->symbolic,
                  "Plans as if no size of any input were known; the results are the same");
  c.app->add_option("--rtol", o->rtol, "Relative tolerance")->check(CLI::NonNegativeNumber);
  o->atol_given =
      c.app->add_option("--atol", o->atol, "Absolute tolerance")->check(CLI::NonNegativeNumber);
  add_run_options(*c.app, o->run);
  c.run = [o] { return test(*o); };
}

}  // namespace tool
