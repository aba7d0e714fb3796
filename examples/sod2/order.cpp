// sod2 order: execution order alone.
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

#include <sod2/schedule.hpp>

#include "options.hpp"

namespace tool {

namespace {
// Numbers stay numbers.
json id_of_line(const std::string& id) {
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (code == std::errc{} && end == id.data() + id.size() && std::to_string(number) == id)
    return number;
  return id;
}

int order(const std::string& path, bool as_json) {
  auto file = sod2::read_order_dag(read_text(path));
  if (!file) fail(std::move(file).error().in_file(path));
  const sod2::order_plan given = sod2::order_given(file->problem);
  const stopwatch watch;
  const sod2::order_plan plan = sod2::order_best(file->problem);
  const double ms = watch.ms();
  need(sod2::validate(file->problem, plan));
  json report = {{"nodes", file->problem.nodes.size()},
                 {"peak_bytes", plan.peak_bytes},
                 {"given_peak_bytes", given.peak_bytes},
                 {"lower_bound_bytes", plan.lower_bound_bytes},
                 {"exact", plan.exact},
                 {"ms", rounded(ms)}};
  json ids = json::array();
  for (std::uint32_t n : plan.order) ids.push_back(id_of_line(file->ids[n]));
  report["order"] = std::move(ids);
  print_report(report, as_json);
  return success;
}
}  // namespace

void add_order(CLI::App& app, std::vector<command>& list) {
  command& c = add_command(app, list, "order", "Finds the execution order with the least memory");
  auto file = std::make_shared<std::string>();
  c.app->add_option("FILE", *file, "One node a line: id bytes pred pred ..")->required();
  c.run = [file, &c] { return order(*file, c.as_json); };
}

}  // namespace tool
