#include <doctest/doctest.h>

#include <sod2/memory.hpp>

using namespace sod2;

namespace {
placement_problem two_buffers() {
  placement_problem p;
  p.buffers.push_back({0, 4, 64});
  p.buffers.push_back({3, 6, 128});
  return p;
}
placement_plan good_plan() {
  placement_plan plan;
  plan.offsets = {128, 0};
  plan.peak_bytes = 192;
  plan.lower_bound_bytes = 192;
  plan.exact = true;
  return plan;
}
}  // namespace

TEST_CASE("a right plan passes, each broken one is refused for its reason") {
  const placement_problem p = two_buffers();
  REQUIRE(validate(p, good_plan()).ok());
  const auto refused = [&](auto breakage, std::string_view why) {
    placement_plan plan = good_plan();
    breakage(plan);
    const status s = validate(p, plan);
    REQUIRE(!s.ok());
    CHECK(s.error().code() == errc::invalid_plan);
    CHECK_MESSAGE(s.error().message().find(why) != std::string_view::npos, s.error().text());
  };
  refused([](placement_plan& x) { x.offsets[1] = 64; }, "overlap");
  refused(
      [](placement_plan& x) {
        x.offsets[0] = 144;
        x.peak_bytes = 208;
      },
      "misaligned");
  refused([](placement_plan& x) { x.offsets[0] = -64; }, "negative");
  refused([](placement_plan& x) { x.offsets.pop_back(); }, "number of offsets");
  refused([](placement_plan& x) { x.peak_bytes = 128; }, "above the claimed peak");
  refused([](placement_plan& x) { x.peak_bytes = 256; }, "not the highest end");
  refused([](placement_plan& x) { x.lower_bound_bytes = 256; }, "above the peak");
  refused([](placement_plan& x) { x.exact = false; }, "not called exact");
  refused([](placement_plan& x) { x.feasible = false; }, "feasibility");
}

TEST_CASE("capacity and fixed offsets are obeyed") {
  placement_problem p = two_buffers();
  p.capacity = 128;
  placement_plan plan = good_plan();
  CHECK(validate(p, plan).error().code() == errc::invalid_plan);  // claims to fit
  plan.feasible = false;
  CHECK(validate(p, plan).error().code() == errc::infeasible);
  p.capacity = 192;
  plan.feasible = true;
  CHECK(validate(p, plan).ok());
  p.buffers[0].fixed_offset = 0;
  CHECK(validate(p, plan).error().message().find("fixed") != std::string_view::npos);
}

TEST_CASE("exclusive buffers may share bytes, others of the same arm may not") {
  placement_problem p = two_buffers();
  p.guards = {{0, 7, 0}, {0, 7, 1}};
  p.buffers[0].guard = 1;
  p.buffers[1].guard = 2;
  placement_plan plan;
  plan.offsets = {0, 0};
  plan.peak_bytes = plan.lower_bound_bytes = 128;
  plan.exact = true;
  CHECK(validate(p, plan).ok());
  p.buffers[1].guard = 1;
  CHECK(!validate(p, plan).ok());
}

TEST_CASE("malformed problems are refused") {
  const auto refused = [](auto breakage) {
    placement_problem p = two_buffers();
    breakage(p);
    return !validate(p).ok();
  };
  CHECK(validate(two_buffers()).ok());
  CHECK(refused([](placement_problem& p) { p.alignment = 0; }));
  CHECK(refused([](placement_problem& p) { p.capacity = -1; }));
  CHECK(refused([](placement_problem& p) { p.buffers[0].size = -1; }));
  CHECK(refused([](placement_problem& p) { p.buffers[0].upper = -1; }));
  CHECK(refused([](placement_problem& p) { p.buffers[0].guard = 1; }));
  CHECK(refused([](placement_problem& p) { p.buffers[0].fixed_offset = 3; }));
  CHECK(refused([](placement_problem& p) { p.buffers[0].size = INT64_MAX; }));
  CHECK(refused([](placement_problem& p) { p.guards = {{2, 1, 0}, {0, 2, 0}}; }));
  CHECK(refused([](placement_problem& p) { p.guards = {{0, 1, 0}, {0, 1, 0}}; }));
}
