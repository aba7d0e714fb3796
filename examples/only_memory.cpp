// One planner alone: offsets for a program's own buffers, checked by the validator.
#include <cstdio>
#include <vector>

#include <sod2/memory.hpp>

struct tensor {  // the user's own data
  const char* name;
  int first_use, last_use;
  long bytes;
};

int main() {
  const std::vector<tensor> tensors = {{"input", 0, 1, 602112},  {"conv1", 1, 3, 3211264},
                                       {"relu1", 2, 4, 3211264}, {"pool", 4, 6, 802816},
                                       {"conv2", 5, 6, 1605632}, {"sum", 6, 7, 1605632}};
  sod2::placement_problem problem;  // 64-byte alignment by default
  for (const tensor& t : tensors) problem.buffers.push_back({t.first_use, t.last_use + 1, t.bytes});

  const sod2::placement_plan plan = sod2::place_portfolio(problem);
  if (const sod2::status s = sod2::validate(problem, plan); !s) {
    std::printf("%s\n", s.error().text().c_str());
    return 1;
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    std::printf("%-6s at %8lld\n", tensors[i].name, static_cast<long long>(plan.offsets[i]));
  std::printf("arena %lld bytes, bound %lld%s\n", static_cast<long long>(plan.peak_bytes),
              static_cast<long long>(plan.lower_bound_bytes), plan.exact ? ", optimal" : "");
}
