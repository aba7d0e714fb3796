// Sizes at run time: evaluated without an allocation, refused where they do not fit.
#include "unit/runtime/support.hpp"

TEST_CASE("sizes: evaluating them all allocates nothing") {
  sod2::graph g;
  sod2::value_id x = g.input("x", sod2::dtype::f32, {"B", "L", 16});
  const auto ints = [&](std::vector<std::int64_t> list) {
    const auto n = static_cast<std::int64_t>(list.size());
    return g.constant<std::int64_t>("", {n}, list);
  };
  const sod2::value_id zero = ints({0}), one = ints({1}), two = ints({2}), heads = ints({4, 4});
  for (int layer = 0; layer < 12; ++layer) {
    const sod2::value_id shape = g.op("Shape", {x});
    const sod2::value_id target =
        g.op("Concat", {g.op("Gather", {shape, zero}), g.op("Gather", {shape, one}), heads},
             {{"axis", 0}});
    const sod2::value_id q =
        g.op("Transpose", {g.op("Reshape", {x, target})}, {{"perm", {0, 2, 1, 3}}});
    const sod2::value_id past =
        g.input("past" + std::to_string(layer), sod2::dtype::f32, {"B", 4, "P", 4});
    const sod2::value_id k = g.op("Concat", {past, q}, {{"axis", 2}});
    const sod2::value_id scores =
        g.op("MatMul", {q, g.op("Transpose", {k}, {{"perm", {0, 1, 3, 2}}})});
    const sod2::value_id whole = g.op("Gather", {g.op("Shape", {k}), two});
    const sod2::value_id cut = g.op("Slice", {scores, zero, whole, ints({3})});
    const sod2::value_id y =
        g.op("Transpose", {g.op("MatMul", {cut, k})}, {{"perm", {0, 2, 1, 3}}});
    x = g.op("Add", {x, g.op("Reshape", {y, shape})});
    g.output(k);
  }
  g.output(x, "y");
  auto view = sod2::make_view(g);
  REQUIRE(view);
  auto facts = sod2::analyze(*view, sod2::standard_registry());
  REQUIRE(facts);
  sod2::dim_context& c = facts->context();
  sod2::size_program_builder builder(c);
  std::size_t y_count = 0;
  for (std::uint32_t i = 1; i < view->value_count(); ++i) {
    sod2::dim count = c.one();
    for (sod2::dim d : facts->dims(sod2::value_id{i})) {
      builder.add_output(d);
      count = c.mul(count, d);
    }
    const std::uint32_t at = builder.add_output(count);
    if (view->name(sod2::value_id{i}) == "y") y_count = at;
  }
  const sod2::size_program sizes = std::move(builder).finish();
  std::vector<std::int64_t> symbols(c.symbol_count(), 1), scratch(sizes.register_count()),
      out(sizes.output_count());
  const auto slot = [&](const char* name) -> std::int64_t& {
    return symbols[static_cast<std::size_t>(c.find_symbol(name))];
  };
  std::int64_t &b = slot("B"), &l = slot("L"), &p = slot("P");
  bool fine = true;
  const std::uint64_t before = test::allocations();
  for (std::int64_t k = 1; k <= 200; ++k) {
    b = k % 5 + 1;
    l = k;
    p = 3 * k;
    fine = fine && sizes.evaluate(symbols, scratch, out) == sod2::errc::ok;
    fine = fine && out[y_count] == b * l * 16;
  }
  CHECK(test::allocations() == before);
  CHECK(fine);
}

TEST_CASE("sizes: a result whose size only the run knows has to fit into 64 bits") {
  sod2::graph g;
  g.output(g.op("ConstantOfShape", {g.input("dims", sod2::dtype::i64, {2})}));
  auto view = sod2::make_view(g);
  REQUIRE(view);
  auto program = sod2::compile(*view, sod2::standard_registry(), sod2::standard_kernels());
  REQUIRE(program);
  sod2::session session(*program);
  std::int64_t elements[] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  const std::int64_t two = 2;
  const sod2::tensor_view dims{elements, &two, 1, sod2::dtype::i64};
  const sod2::status refused = session.run({&dims, 1});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == sod2::errc::overflow);
  elements[0] = 3;
  elements[1] = 2;
  REQUIRE(session.run({&dims, 1}));
  CHECK(session.output(0).count() == 6);
}
