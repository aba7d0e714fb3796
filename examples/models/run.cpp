#include "run.hpp"

#include <chrono>
#include <cstdio>
#include <string>

#include <sod2/graph/view.hpp>
#include <sod2/kernel/table.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/runtime/compile.hpp>
#include <sod2/runtime/session.hpp>

#include "all.hpp"
#include "inputs.hpp"

namespace {

double us_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}
int failed(const sod2::error& e) {
  std::fprintf(stderr, "%s\n", e.text().c_str());
  return 1;
}

}  // namespace

int models::run(const char* name) {
  const entry* const m = find(name);
  if (m == nullptr) return 1;
  const sod2::graph g = m->build({.width = 8, .weights = weight_source::synthetic});
  const auto view = sod2::make_view(g);
  if (!view) return failed(view.error());
  sod2::compile_options options;
  options.analysis = m->facts();
  const auto program =
      sod2::compile(*view, sod2::standard_registry(), sod2::standard_kernels(), options);
  if (!program) return failed(program.error());
  sod2::session session(*program);
  std::printf("%-28s %8s %9s %12s %12s %9s\n", m->name, "bind us", "run ms", "arena bytes",
              "lower bound", "nodes run");
  for (int k = 0; k < size_count; ++k) {
    const auto inputs = inputs_at(g, options.analysis, k);
    const auto views = models::views(inputs);
    auto start = std::chrono::steady_clock::now();
    if (const sod2::status s = session.bind_inputs(views); !s) return failed(s.error());
    const double bind_us = us_since(start);
    start = std::chrono::steady_clock::now();
    if (const sod2::status s = session.run(views); !s) return failed(s.error());
    const double run_us = us_since(start);
    std::string shape;
    for (const std::int64_t d : inputs[0].dims)
      shape += (shape.empty() ? "" : "x") + std::to_string(d);
    std::printf("%-28s %8.0f %9.3f %12lld %12lld %9llu\n", shape.c_str(), bind_us, run_us / 1000,
                static_cast<long long>(session.arena_bytes()),
                static_cast<long long>(session.lower_bound_bytes()),
                static_cast<unsigned long long>(session.nodes_run()));
  }
  return 0;
}
