// sod2 run: inference.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "engine.hpp"

namespace tool {

namespace {
struct inference_options {
  model_options model;
  run_options run;
  std::vector<std::string> inputs, dumps;
  std::string output_dir, profile;
  std::uint64_t seed = 0;
  int repeat = 1;
  bool frozen = false;
};

input_list given_inputs(const loaded_model& m, const std::vector<std::string>& options) {
  input_list inputs(m.view.inputs().size());
  for (const std::string& text : options) {
    const named_file f = parse_named_file(text, "--input");
    bool found = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (m.view.name(m.view.inputs()[i]) != f.name) continue;
      inputs[i] = read_value_file(f.file, m.view.declared(m.view.inputs()[i]).kind);
      found = true;
    }
    if (!found)
      fail(sod2::errc::invalid_argument, "--input: the model has no input '" + f.name + "'");
  }
  return inputs;
}

/// A file's name from a tensor's: what folders or shells would read differently becomes '_'.
std::string file_name(std::string_view tensor) {
  std::string name;
  for (char c : tensor)
    name += c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 ? '_' : c;
  return name.empty() || name == "." || name == ".." ? "_" + name : name;
}

/// `path.npy`; of sequences and optionals one file an element, `path.0.npy` and so on.
void write_value(const std::string& path, const sod2::tensor_view& v) {
  if (!sod2::is_container(v.type)) return write_text(path + ".npy", to_npy(v));
  for (std::int64_t k = 0; k < v.count(); ++k)
    write_value(path + "." + std::to_string(k), v.item(k));
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  return n % 2 == 1 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
}

/// When each step of the last run ended.
struct step_times {
  stopwatch watch;
  std::vector<double> us;
  static void note(void* self, std::size_t step) {
    auto& t = *static_cast<step_times*>(self);
    t.us[step] = t.watch.us();
  }
};
/// The last run in the trace format of Chrome: one event a launch.
std::string chrome_trace(const sod2::program& p, const sod2::session& s, const step_times& times) {
  const sod2::program_region& r = p.root();
  json events = json::array();
  double begin = 0;
  for (std::size_t k = 0; k < r.steps.size(); ++k) {
    const sod2::program_step& step = r.steps[k];
    std::int64_t bytes = 0;
    json shape = json::array();
    const auto add = [&](std::uint32_t first, std::uint32_t count, bool output) {
      for (std::uint32_t i = first; i < first + count; ++i) {
        if (r.operands[i] == sod2::no_slot) continue;
        const sod2::tensor_view& t = s.tensor(r.operands[i]);
        bytes += sod2::bytes_of(t.type, t.count());
        if (output && i == first) shape = shape_json(t.shape());
      }
    };
    add(step.input_first, step.input_count, false);
    add(step.operand_first, step.operand_count, false);
    add(step.output_first, step.output_count, true);
    events.push_back({{"name", step.op},
                      {"cat", name_of(step.kind)},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", 1},
                      {"ts", rounded(begin)},
                      {"dur", rounded(times.us[k] - begin)},
                      {"args",
                       {{"node", step.name},
                        {"nodes", step.nodes},
                        {"shape", std::move(shape)},
                        {"ms", rounded((times.us[k] - begin) / 1000)},
                        {"bytes", bytes}}}});
    begin = times.us[k];
  }
  return dump({{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}) + "\n";
}

int infer(const inference_options& given, bool as_json) {
  inference_options o = given;
  check_run_options(o.run);
  std::vector<named_file> dumps;
  std::vector<std::string> dumped;
  for (const std::string& text : o.dumps) {
    dumps.push_back(parse_named_file(text, "--dump"));
    dumped.push_back(dumps.back().name);
  }
  const auto m = load_model(o.model.model, dumped);
  return with_file(*m, [&] {
    shape_options shapes = read_shapes(*m, o.model, o.frozen);
    input_list inputs = given_inputs(*m, o.inputs);
    allow_empty(*m, inputs, shapes);
    const symbol_values values = symbols_of(*m, shapes, inputs);
    if (const auto open = unbound_symbols(*m, shapes, values); !open.empty())
      fail(sod2::errc::unbound_symbol,
           "symbol '" + open[0] + "' has no value: give --dim '" + open[0] + "=VALUE'" +
               (open.size() > 1 ? ", and " + std::to_string(open.size() - 1) + " more" : ""));
    if (o.frozen)
      for (const auto& [name, value] : values) {
        auto& list = shapes.analysis.symbols;
        const auto known = std::find_if(list.begin(), list.end(),
                                        [&, n = name](const auto& s) { return s.name == n; });
        if (known == list.end()) list.push_back({name, {value, value, 1, 0}});
      }
    stopwatch watch;
    const sod2::program program = compile_model(*m, shapes, o.run);
    const double compile_ms = watch.ms();

    fill_inputs(*m, shapes, values, o.seed, inputs);
    step_times steps;
    steps.us.resize(program.root().steps.size());
    running r(program, o.run, o.profile.empty() ? nullptr : &step_times::note, &steps);
    const std::vector<std::int64_t> bindings = in_order(program, values);
    std::vector<double> binds;
    for (int k = 0; k < 9; ++k) {
      watch = stopwatch();
      need(r.session.bind(bindings));
      binds.push_back(watch.us());
    }
    const std::vector<sod2::tensor_view> views = views_of(inputs);
    std::vector<double> times;
    for (int k = 0; k < o.repeat; ++k) {
      watch = steps.watch = stopwatch();
      need(r.session.run(views));
      times.push_back(watch.ms());
    }
    const double first = times[0];
    if (times.size() > 1) times.erase(times.begin());

    json outputs = json::array();
    for (std::size_t i = 0; i < m->own_outputs; ++i) {
      const sod2::tensor_view& t = r.session.output(i);
      outputs.push_back({{"name", program.outputs()[i].name},
                         {"dtype", name_of(t.type)},
                         {"shape", shape_json(t.shape())},
                         {"sha256", sha256_of(t)}});
    }
    if (!o.output_dir.empty()) {
      std::error_code code;
      std::filesystem::create_directories(o.output_dir, code);
      if (code) fail(sod2::error(sod2::errc::io, "cannot be made").in_file(o.output_dir));
      for (std::size_t i = 0; i < m->own_outputs; ++i)
        write_value(
            (std::filesystem::path(o.output_dir) / file_name(program.outputs()[i].name)).string(),
            r.session.output(i));
    }
    if (!o.profile.empty()) write_text(o.profile, chrome_trace(program, r.session, steps));
    for (std::size_t i = 0; i < dumps.size(); ++i)
      write_text(dumps[i].file, to_npy(r.session.output(m->own_outputs + i)));

    print_report({{"model", m->path},
                  {"outputs", std::move(outputs)},
                  {"compile_ms", rounded(compile_ms)},
                  {"first_ms", rounded(first)},
                  {"median_ms", rounded(median(times))},
                  {"min_ms", rounded(*std::min_element(times.begin(), times.end()))},
                  {"bind_us", o.frozen ? 0.0 : rounded(median(binds))},
                  {"arena_bytes", r.session.arena_bytes()},
                  {"lower_bound_bytes", r.session.lower_bound_bytes()},
                  {"weights_bytes", program.summary().weights_bytes},
                  {"peak_rss_bytes", peak_rss_bytes()},
                  {"nodes_run", r.session.nodes_run()},
                  {"groups_run", r.session.groups_run()},
                  {"policy", o.run.policy},
                  {"threads", o.run.threads}},
                 as_json);
    print_warnings(*m);
    return static_cast<int>(success);
  });
}
}  // namespace

void add_run(CLI::App& app, std::vector<command>& list) {
  command& c = add_command(app, list, "run", "Runs a model");
  auto o = std::make_shared<inference_options>();
  add_model_options(*c.app, o->model);
  add_run_options(*c.app, o->run);
  c.app
      ->add_option("--input", o->inputs,
                   "NAME=FILE, a .npy or an ONNX .pb (tensor, sequence or optional)")
      ->allow_extra_args(false);
  c.app->add_option("--seed", o->seed, "Of the inputs that are not given")->capture_default_str();
  c.app->add_option("--output-dir", o->output_dir, "Writes the outputs there as .npy");
  c.app->add_option("--repeat", o->repeat, "Number of runs; times are those after the first")
      ->check(whole_number(1))
      ->capture_default_str();
  c.app->add_flag("--frozen", o->frozen, "Binds all symbols before compiling");
  c.app->add_option("--profile", o->profile, "Writes a Chrome trace of the last run");
  c.app->add_option("--dump", o->dumps, "TENSOR=FILE, writes a tensor of the main graph as .npy")
      ->allow_extra_args(false);
  c.run = [o, &c] { return infer(*o, c.as_json); };
}

}  // namespace tool
