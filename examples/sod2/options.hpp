// What the commands share of the command line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <sod2/expr/context.hpp>

#include "report.hpp"

namespace tool {

/// `--dim NAME=VALUE | LO..HI | LO..HI%STEP | LO..`
struct dim_option {
  std::string name;
  bool bound = false;  // to facts.lo
  sod2::symbol_facts facts;
};
dim_option parse_dim(std::string_view text);

/// `NAME=FILE`, at the last `=` that leaves both parts non-empty.
struct named_file {
  std::string name, file;
};
named_file parse_named_file(std::string_view text, std::string_view option);

/// One command while the line is parsed.
struct command {
  CLI::App* app = nullptr;
  bool as_json = false;
  std::function<int()> run;
};

/// Adds a subcommand with --help and --version, `main` calls `run` when it was given.
command& add_command(CLI::App& app, std::vector<command>& list, std::string name,
                     std::string description, bool with_json = true);

/// For option values: a whole number, `least` or more.
CLI::Validator whole_number(std::int64_t least, std::int64_t most = INT64_MAX);

/// Model and shapes, common to analyze, plan and run.
struct model_options {
  std::string model;
  std::vector<std::string> dims, shape_inputs;
};
void add_model_options(CLI::App& app, model_options& o);

/// Common to plan, run and trace.
struct run_options {
  int threads = 1;
  std::string policy = "sod2", disable, tuned;
  std::int64_t memory_budget = 0;
  std::vector<std::string> bucket;
  bool describe_memory = false;
  bool no_fusion = false, no_order = false, no_memory = false, no_versions = false;
};
void add_run_options(CLI::App& app, run_options& o);
/// Reads `--disable`, refuses what is unknown or not built yet.
void check_run_options(run_options& o);

// One function a command; each stands in its own file.
void add_analyze(CLI::App& app, std::vector<command>& list);
void add_plan(CLI::App& app, std::vector<command>& list);
void add_run(CLI::App& app, std::vector<command>& list);
void add_test(CLI::App& app, std::vector<command>& list);
void add_ops(CLI::App& app, std::vector<command>& list);
void add_order(CLI::App& app, std::vector<command>& list);
void add_pack(CLI::App& app, std::vector<command>& list);
void add_export(CLI::App& app, std::vector<command>& list);

}  // namespace tool
