// sod2 export: the example models as ONNX files with synthetic weights.
#include <cstdint>
#include <memory>
#include <string>

#include <sod2/onnx.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/rdp.hpp>

#include "../models/all.hpp"
#include "models.hpp"
#include "options.hpp"

namespace tool {

namespace {
struct export_options {
  std::string example, output;
  double scale = 1, open = 0.85;
  std::uint64_t seed = 1;
};

/// What the file says of its outputs, and those of sub-graphs: types and shapes as analysis finds
/// them.
void type_outputs(sod2::graph& g, const sod2::analysis_options& options) {
  const sod2::graph_view view = need(sod2::make_view(g));
  sod2::analysis facts = need(sod2::analyze(view, sod2::standard_registry(), options));
  for (const sod2::graph::scope& s : g.scopes())
    for (sod2::value_id v : s.outputs) {
      const sod2::value_id found = sod2::find_value<sod2::graph>(view, v);
      const sod2::onnx::annotation a = annotation_of(facts, found);
      sod2::graph::value& value = g.values()[v.index];
      value.type = a.type;
      value.has_shape = a.rank_known;
      value.dims = a.dims;
    }
}

/// Bytes of all constants, with or without data.
double stored_bytes(const sod2::graph& g) {
  double sum = 0;
  for (const sod2::constant_tensor& c : g.constants())
    sum += static_cast<double>(c.view().count()) * static_cast<double>(sod2::bytes_of(c.type));
  return sum;
}

int write_example(const export_options& o, bool as_json) {
  const models::entry* const example = models::find(o.example);
  if (example == nullptr) {
    std::string names;
    for (const models::entry& e : models::all) names += std::string(e.name) + ", ";
    fail(sod2::errc::invalid_argument,
         "there is no example '" + o.example + "', only " + names + models::others[0].name);
  }
  if (!(o.scale >= 1.0 / 1024 && o.scale <= 1024))
    fail(sod2::errc::invalid_argument, "--scale: expected a number from 1/1024 to 1024");
  models::config config;
  config.width = 1 / o.scale;
  config.seed = o.seed;
  config.open = o.open;
  // What protobuf can hold, less some room for everything but weights.
  constexpr double limit = 2147483647.0 - (1 << 24);
  if (const double bytes = stored_bytes(example->build(config)); bytes > limit)
    fail(sod2::errc::invalid_argument,
         "the weights of '" + o.example + "' at this scale take " +
             std::to_string(static_cast<std::int64_t>(bytes)) +
             " bytes, an ONNX file holds at most 2147483647: give a smaller --scale");
  config.weights = models::weight_source::synthetic;
  sod2::graph g = example->build(config);
  type_outputs(g, example->facts());
  sod2::onnx::write_options names;
  names.graph_name = o.example;
  need(sod2::onnx::write(g, o.output, names));
  print_report({{"example", o.example},
                {"nodes", g.nodes().size()},
                {"parameters", models::parameter_count(g)}},
               as_json);
  return success;
}
}  // namespace

void add_export(CLI::App& app, std::vector<command>& list) {
  command& c = add_command(app, list, "export", "Writes an example model with synthetic weights");
  auto o = std::make_shared<export_options>();
  c.app->add_option("EXAMPLE", o->example, "Name of the example, like skipnet")->required();
  c.app->add_option("-o", o->output, "The ONNX file to write")->required();
  c.app->add_option("--scale", o->scale, "Multiplies the numbers of channels, like 0.125")
      ->capture_default_str();
  c.app->add_option("--seed", o->seed, "Of the weights")->capture_default_str();
  c.app->add_option("--open", o->open, "About the share of gates that open, where there are any")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  c.run = [o, &c] { return write_example(*o, c.as_json); };
}

}  // namespace tool
