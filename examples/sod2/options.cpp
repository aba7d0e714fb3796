#include "options.hpp"

#include <charconv>
#include <system_error>

#include <sod2/version.hpp>

namespace tool {

namespace {
bool to_number(std::string_view text, std::int64_t& out) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  return code == std::errc{} && end == text.data() + text.size();
}
}  // namespace

dim_option parse_dim(std::string_view text) {
  const auto bad = [&](const std::string& what) {
    fail(sod2::errc::invalid_argument, "--dim " + std::string(text) + ": " + what);
  };
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0)
    bad("expected NAME=VALUE, NAME=LO..HI, NAME=LO..HI%STEP or NAME=LO..");
  dim_option d;
  d.name = text.substr(0, equals);
  std::string_view value = text.substr(equals + 1);
  const std::size_t dots = value.find("..");
  if (dots == std::string_view::npos) {
    if (!to_number(value, d.facts.lo) || d.facts.lo < 0) bad("the value is not a size");
    d.facts.hi = d.facts.lo;
    d.bound = true;
    return d;
  }
  if (!to_number(value.substr(0, dots), d.facts.lo) || d.facts.lo < 0)
    bad("the lower end is not a size");
  value.remove_prefix(dots + 2);
  if (const std::size_t percent = value.find('%'); percent != std::string_view::npos) {
    if (!to_number(value.substr(percent + 1), d.facts.step) || d.facts.step < 1)
      bad("the step is not a positive number");
    value = value.substr(0, percent);
  }
  if (!value.empty() && (!to_number(value, d.facts.hi) || d.facts.hi < 0))
    bad("the upper end is not a size");
  if (d.facts.lo > d.facts.hi) bad("the range is empty");
  return d;
}

named_file parse_named_file(std::string_view text, std::string_view option) {
  // Names of tensors may hold '=', names of files rarely do.
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size())
    fail(sod2::errc::invalid_argument,
         std::string(option) + " " + std::string(text) + ": expected NAME=FILE");
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

command& add_command(CLI::App& app, std::vector<command>& list, std::string name,
                     std::string description, bool with_json) {
  command c;
  c.app = app.add_subcommand(std::move(name), std::move(description));
  c.app->set_version_flag("--version", app.version());
  list.push_back(std::move(c));
  command& added = list.back();
  if (with_json) added.app->add_flag("--json", added.as_json, "One JSON object on stdout");
  return added;
}

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        std::int64_t n = 0;
        if (to_number(text, n) && n >= least && n <= most) return {};
        std::string range = std::to_string(least);
        range += most == INT64_MAX ? " or more" : " to " + std::to_string(most);
        return "'" + text + "' is no whole number, " + range;
      },
      "");
}

void add_model_options(CLI::App& app, model_options& o) {
  app.add_option("MODEL", o.model, "An .onnx file, or a folder that holds model.onnx")->required();
  app.add_option("--dim", o.dims,
                 "Binds a symbol (NAME=VALUE) or declares its range and stride (NAME=LO..HI, "
                 "NAME=LO..HI%STEP, NAME=LO..)")
      ->allow_extra_args(false);
  app.add_option("--shape-input", o.shape_inputs,
                 "Makes the elements of a small integer input symbols")
      ->allow_extra_args(false);
}

void add_run_options(CLI::App& app, run_options& o) {
  app.add_option("--threads", o.threads, "Threads of the session")->check(whole_number(1, 1024));
  app.add_option("--policy", o.policy,
                 "sod2, no_opt, reinit, max_alloc, all_branches, shape_vm or static_fusion");
  app.add_option("--disable", o.disable, "Any of fusion,order,memory,versions");
  app.add_option("--tuned", o.tuned, "Tuning records");
  app.add_option("--memory-budget", o.memory_budget, "Most bytes that the arena may take")
      ->check(whole_number(0));
  app.add_option("--bucket", o.bucket, "NAME=32,64,128: pads a symbol to the next bucket")
      ->allow_extra_args(false);
}

void check_run_options(run_options& o) {
  std::string_view rest = o.disable;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    if (part == "fusion")
      o.no_fusion = true;
    else if (part == "order")
      o.no_order = true;
    else if (part == "memory")
      o.no_memory = true;
    else if (part == "versions")
      o.no_versions = true;  // only one version of each kernel exists so far
    else
      fail(sod2::errc::invalid_argument,
           "--disable knows fusion, order, memory and versions, not '" + std::string(part) + "'");
  }
  constexpr std::string_view policies[] = {"sod2",         "no_opt",   "reinit",       "max_alloc",
                                           "all_branches", "shape_vm", "static_fusion"};
  bool known = false;
  for (std::string_view p : policies) known = known || o.policy == p;
  if (!known) fail(sod2::errc::invalid_argument, "--policy knows no '" + o.policy + "'");
  if (o.policy != "sod2" && o.policy != "all_branches") not_built("--policy " + o.policy);
  if (!o.tuned.empty()) not_built("--tuned");
  if (!o.bucket.empty()) not_built("--bucket");
}

}  // namespace tool
