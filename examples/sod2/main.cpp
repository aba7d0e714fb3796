// The sod2 program: analysis, plans and inference of ONNX models on the command line.
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <sod2/version.hpp>

#include "options.hpp"

namespace {

// Of the contract, and still to come. They take any arguments, so that what is missing is said
// first.
void add_missing(CLI::App& app, std::vector<tool::command>& list, const std::string& name,
                 const std::string& description) {
  tool::command& c = tool::add_command(app, list, name, description + " (not built yet)", false);
  c.app->prefix_command()->allow_extras();
  c.run = [name]() -> int { tool::not_built("command '" + name + "'"); };
}

int run(int argc, char** argv) {
  CLI::App app("sod2 makes dynamic neural networks run like static ones");
  app.name("sod2");
  const std::string version = "sod2 " + std::to_string(SOD2_VERSION_MAJOR) + "." +
                              std::to_string(SOD2_VERSION_MINOR) + "." +
                              std::to_string(SOD2_VERSION_PATCH);
  app.set_version_flag("--version", version);
  app.require_subcommand(1);
  std::vector<tool::command> commands;
  commands.reserve(32);  // options keep pointers into it
  tool::add_analyze(app, commands);
  tool::add_plan(app, commands);
  tool::add_run(app, commands);
  tool::add_test(app, commands);
  tool::add_order(app, commands);
  tool::add_pack(app, commands);
  tool::add_ops(app, commands);
  tool::add_export(app, commands);
  add_missing(app, commands, "trace", "Many requests with changing shapes");
  add_missing(app, commands, "tune", "Genetic tuning of kernel versions");
  add_missing(app, commands, "emit", "A model as C++ templates");
  add_missing(app, commands, "report", "A model and its plan as one HTML page");
  // The parser would only say that a command is missing.
  bool known = argc < 2 || argv[1][0] == '-';
  for (const tool::command& c : commands) known = known || c.app->get_name() == argv[1];
  if (!known)
    tool::fail(sod2::errc::invalid_argument,
               "there is no command '" + std::string(argv[1]) + "', see sod2 --help");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help and --version
    tool::fail(sod2::errc::invalid_argument, e.what());
  }
  for (tool::command& c : commands)
    if (c.app->parsed()) return c.run();
  return tool::bad_input;
}

}  // namespace

int main(int argc, char** argv) {
  bool as_json = false;  // also where parsing the line fails
  for (int k = 1; k < argc; ++k) as_json = as_json || std::string_view(argv[k]) == "--json";
  try {
    const int status = run(argc, argv);
    if (std::fflush(stdout) != 0) tool::fail(sod2::errc::io, "standard output cannot be written");
    return status;
  } catch (const tool::failure& f) {
    return tool::print_failure(f, as_json);
  } catch (const std::bad_alloc&) {
    return tool::print_failure({tool::bad_input, sod2::error(sod2::errc::out_of_memory), {}},
                               as_json);
  } catch (const std::exception& e) {
    return tool::print_failure({tool::bad_input, sod2::error(sod2::errc::internal, e.what()), {}},
                               as_json);
  }
}
