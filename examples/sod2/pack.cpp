// sod2 pack: placement alone.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include <sod2/memory.hpp>

#include "options.hpp"

namespace tool {

namespace {
struct pack_options {
  std::string file, algorithm = "portfolio", output;
  std::int64_t capacity = 0, budget_ms = 1000;
};

sod2::placement_plan place(const sod2::placement_problem& p, const pack_options& o) {
  sod2::placement_options budget;
  budget.work = static_cast<std::uint64_t>(std::min(o.budget_ms, std::int64_t{1} << 32)) *
                sod2::placement_work_per_ms;
  if (o.algorithm == "greedy") return sod2::place_greedy(p);
  if (o.algorithm == "peak_first") return sod2::place_peak_first(p);
  if (o.algorithm == "exact") return sod2::place_exact(p, budget);
  return sod2::place_portfolio(p, budget);
}

int pack(const pack_options& o, bool as_json) {
  auto file = sod2::read_placement_csv(read_text(o.file));
  if (!file) fail(std::move(file).error().in_file(o.file));
  file->problem.capacity = o.capacity;
  stopwatch watch;
  const sod2::placement_plan plan = place(file->problem, o);
  double us = watch.us();
  // A first plan mostly measures how a process gets its memory. Plans are the same every time.
  constexpr double quick_us = 10'000;
  for (int again = 0; again < 5 && us < quick_us; ++again) {
    watch = stopwatch();
    place(file->problem, o);
    us = std::min(us, watch.us());
  }
  json report = {{"buffers", file->problem.buffers.size()},
                 {"peak_bytes", plan.peak_bytes},
                 {"lower_bound_bytes", plan.lower_bound_bytes},
                 {"exact", plan.exact},
                 {"feasible", plan.feasible},
                 {"us", rounded(us)}};
  if (as_json) {
    json offsets = json::array();
    for (std::int64_t at : plan.offsets) offsets.push_back(at);
    report["offsets"] = std::move(offsets);
  }
  if (o.capacity > 0 && !plan.feasible)
    throw failure{
        answer_is_no,
        sod2::error(sod2::errc::infeasible, plan.lower_bound_bytes > o.capacity
                                                ? "no placement fits into the capacity"
                                                : "no placement was found within the capacity")
            .in_file(o.file)
            .between("peak " + std::to_string(plan.peak_bytes),
                     "capacity " + std::to_string(o.capacity)),
        std::move(report)};
  need(sod2::validate(file->problem, plan));
  if (!o.output.empty()) write_text(o.output, sod2::write_placement_csv(*file, &plan));
  print_report(report, as_json);
  return success;
}
}  // namespace

void add_pack(CLI::App& app, std::vector<command>& list) {
  command& c = add_command(app, list, "pack", "Places buffers of a CSV file in one arena");
  auto o = std::make_shared<pack_options>();
  c.app->add_option("FILE", o->file, "Columns id,lower,upper,size and optionally alignment")
      ->required();
  c.app->add_option("--capacity", o->capacity, "Bytes of the arena")->check(whole_number(1));
  c.app->add_option("--algorithm", o->algorithm, "greedy, peak_first, portfolio or exact")
      ->check(CLI::IsMember({"greedy", "peak_first", "portfolio", "exact"}))
      ->capture_default_str();
  c.app->add_option("--budget-ms", o->budget_ms, "Search effort, about this many milliseconds")
      ->check(whole_number(0))
      ->capture_default_str();
  c.app->add_option("-o", o->output, "Writes the CSV with a column of offsets");
  c.run = [o, &c] { return pack(*o, c.as_json); };
}

}  // namespace tool
