// One planner alone: the order of a small cell's operators that needs the least memory.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <sod2/schedule.hpp>

struct operation {  // the user's own graph: an operation makes one tensor
  const char* name;
  long bytes;
  std::vector<std::uint32_t> reads;
};

int main() {
  const std::vector<operation> cell = {
      {"image", 600, {}},  {"wide", 3200, {0}}, {"deep", 800, {0}},     {"narrow", 200, {1}},
      {"deep2", 800, {2}}, {"gate", 200, {4}},  {"concat", 400, {3, 5}}};
  sod2::order_problem problem;
  for (std::uint32_t i = 0; i < cell.size(); ++i) {
    problem.values.push_back({cell[i].bytes, false, i + 1 == cell.size()});
    sod2::order_node node;
    for (const std::uint32_t x : cell[i].reads) node.inputs.push_back(x);
    node.outputs.push_back(i);
    problem.nodes.push_back(node);
  }
  const sod2::order_plan plan = sod2::order_best(problem);
  if (const sod2::status s = sod2::validate(problem, plan); !s) {
    std::printf("%s\n", s.error().text().c_str());
    return 1;
  }
  for (const std::uint32_t node : plan.order) std::printf("%s ", cell[node].name);
  std::printf("\npeak %lld bytes, as written %lld%s\n", static_cast<long long>(plan.peak_bytes),
              static_cast<long long>(sod2::order_given(problem).peak_bytes),
              plan.exact ? ", optimal" : "");
}
