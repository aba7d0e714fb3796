#include "support.hpp"

using namespace kernel_test;

namespace {

/// Mean and variance.
std::pair<double, double> moments(const tensor& t) {
  double mean = 0, var = 0;
  for (i64 i = 0; i < t.count(); ++i) mean += t.value(i) / static_cast<double>(t.count());
  for (i64 i = 0; i < t.count(); ++i)
    var += std::pow(t.value(i) - mean, 2) / static_cast<double>(t.count());
  return {mean, var};
}

}  // namespace

TEST_CASE("RandomUniform and RandomNormal: moments, range, seeds") {
  for (bool normal : {false, true})
    for (bool like : {false, true})
      for (dtype type : {dtype::f32, dtype::f64}) {
        call c;
        c.name = std::string(normal ? "RandomNormal" : "RandomUniform") + (like ? "Like" : "");
        c.attrs.set("seed", 7.0).set("low", -2.0).set("high", 4.0).set("mean", 1.0);
        c.attrs.set("scale", 3.0).set("shape", shape{200, 301});
        if (like) c.inputs = {tensor(dtype::i64, {200, 301})};
        c.outputs = {tensor(type, {200, 301})};
        REQUIRE(c.run() == sod2::errc::ok);
        const auto [mean, var] = moments(c.outputs[0]);
        CHECK(mean == doctest::Approx(1).epsilon(0.05));
        CHECK(var == doctest::Approx(normal ? 9 : 3).epsilon(0.03));
        if (!normal)
          for (i64 i = 0; i < c.outputs[0].count(); ++i)
            CHECK((c.outputs[0].value(i) >= -2 && c.outputs[0].value(i) <= 4));
        call again = c;
        again.outputs = {tensor(type, {200, 301})};
        again.threads = 3;
        REQUIRE(again.run() == sod2::errc::ok);
        check_equal(again.outputs[0], c.outputs[0]);
        again.attrs.set("seed", 8.0);
        REQUIRE(again.run() == sod2::errc::ok);
        i64 same = 0;
        for (i64 i = 0; i < 1000; ++i)
          same += again.outputs[0].value(i) == c.outputs[0].value(i) ? 1 : 0;
        CHECK(same < 10);
        c.outputs = {tensor(type, {0, 3})};
        CHECK(c.run() == sod2::errc::ok);
      }
}

TEST_CASE("a kernel draws anew in every run") {
  const sod2::kernel_row* row = sod2::standard_kernels().find("", "RandomUniform", 1);
  REQUIRE(row != nullptr);
  attributes attrs;
  attrs.set("seed", 3.0);
  sod2::operand_info out;
  out.type = dtype::f32;
  sod2::prepare_args p;
  p.attributes = attrs.source();
  p.outputs = {&out, 1};
  auto state = row->prepare(p);
  REQUIRE(state);
  tensor first(dtype::f32, {64}), second(dtype::f32, {64});
  for (const tensor* t : {&first, &second}) {
    const sod2::tensor_view v = t->view();
    sod2::kernel_args k;
    k.state = state->data;
    k.outputs = {&v, 1};
    REQUIRE(row->run(k) == sod2::errc::ok);
  }
  i64 same = 0;
  for (i64 i = 0; i < 64; ++i) same += first.value(i) == second.value(i) ? 1 : 0;
  CHECK(same < 4);
}

TEST_CASE("Bernoulli and Multinomial follow their probabilities") {
  const i64 n = 40000;
  for (dtype type : {dtype::f32, dtype::i64, dtype::boolean}) {
    tensor p(dtype::f32, {3, n});
    for (i64 i = 0; i < p.count(); ++i) p.set(i, i < n ? 0 : i < 2 * n ? 1 : 0.3);
    call c;
    c.name = "Bernoulli";
    c.version = 15;
    c.attrs.set("seed", 1.0);
    c.inputs = {p};
    c.outputs = {tensor(type, {3, n})};
    c.threads = 2;
    REQUIRE(c.run() == sod2::errc::ok);
    double ones[3] = {};
    for (i64 i = 0; i < p.count(); ++i) ones[i / n] += c.outputs[0].value(i);
    CHECK(ones[0] == 0);
    CHECK(ones[1] == n);
    CHECK(ones[2] / n == doctest::Approx(0.3).epsilon(0.03));
  }
  for (dtype type : {dtype::i32, dtype::i64}) {
    tensor logs(dtype::f32, {2, 4});
    const double weights[2][4] = {{1, 2, 0, 5}, {0, 0, 1, 0}};
    for (i64 i = 0; i < 8; ++i) logs.set(i, std::log(weights[i / 4][i % 4]) + 100);
    call c;
    c.name = "Multinomial";
    c.version = 7;
    c.attrs.set("sample_size", n).set("seed", 2.0);
    c.inputs = {logs};
    c.outputs = {tensor(type, {2, n})};
    REQUIRE(c.run() == sod2::errc::ok);
    double count[2][4] = {};
    for (i64 i = 0; i < 2 * n; ++i) count[i / n][idx(static_cast<i64>(c.outputs[0].value(i)))] += 1;
    CHECK(count[0][2] == 0);
    CHECK(count[1][2] == n);
    CHECK(count[0][0] / n == doctest::Approx(0.125).epsilon(0.05));
    CHECK(count[0][3] / n == doctest::Approx(0.625).epsilon(0.05));
  }
}
