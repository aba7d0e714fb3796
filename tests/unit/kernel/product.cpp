#include "support.hpp"

using namespace kernel_test;

namespace {

tensor reference_matmul(const tensor& a, const tensor& b, const shape& out) {
  tensor y(a.type(), out);
  const bool av = a.dims().size() == 1, bv = b.dims().size() == 1;
  const i64 k = a.dims().back();
  const i64 m = av ? 1 : a.dims()[a.dims().size() - 2], n = bv ? 1 : b.dims().back();
  shape batch(out.begin(), out.end() - (av ? 0 : 1) - (bv ? 0 : 1));
  const shape ab(a.dims().begin(), a.dims().end() - (av ? 1 : 2));
  const shape bb(b.dims().begin(), b.dims().end() - (bv ? 1 : 2));
  for_each_index(batch, [&](const shape& at, i64 index) {
    const i64 ao = broadcast_offset(ab, at) * m * k, bo = broadcast_offset(bb, at) * k * n;
    for (i64 i = 0; i < m; ++i)
      for (i64 j = 0; j < n; ++j) {
        double sum = 0;
        for (i64 l = 0; l < k; ++l) sum += a.value(ao + i * k + l) * b.value(bo + l * n + j);
        y.set((index * m + i) * n + j, sum);
      }
  });
  return y;
}

void check_matmul(random_source& rng, dtype type, const shape& a, const shape& b,
                  const shape& out) {
  const double hi = type == dtype::u32 || type == dtype::u64 ? 5 : 1;
  const double lo = type == dtype::u32 || type == dtype::u64 ? 0 : -hi;
  const double scale = type == dtype::i32 || type == dtype::i64 ? 9 : 1;
  const tensor ta = rng.fill(type, a, lo * scale, hi * scale),
               tb = rng.fill(type, b, lo * scale, hi * scale);
  const tensor expected = reference_matmul(ta, tb, out);
  for (const auto* table : targets())
    for (int threads : {1, 3})
      for (bool constant : {false, true}) {
        call c;
        c.table = table;
        c.name = "MatMul";
        c.inputs = {ta, tb};
        c.outputs = {tensor(type, out)};
        c.constant = {false, constant};
        c.threads = threads;
        REQUIRE(c.run() == sod2::errc::ok);
        check_close(c.outputs[0], expected, 1e-4, 1e-4);
      }
}

}  // namespace

TEST_CASE("MatMul agrees with a plain product") {
  random_source rng;
  for (int round = 0; round < 25; ++round) {
    const i64 m = rng.extent(), n = rng.extent(), k = rng.extent();
    check_matmul(rng, dtype::f32, {m, k}, {k, n}, {m, n});
  }
  check_matmul(rng, dtype::f32, {37, 1100}, {1100, 150}, {37, 150});
  check_matmul(rng, dtype::f32, {3, 530}, {530, 291}, {3, 291});
  check_matmul(rng, dtype::f32, {1, 64}, {64, 500}, {1, 500});
  check_matmul(rng, dtype::f32, {230, 20}, {20, 145}, {230, 145});
}

TEST_CASE("MatMul: vectors, batches, empty") {
  random_source rng;
  const dtype f = dtype::f32;
  check_matmul(rng, f, {7}, {7}, {});
  check_matmul(rng, f, {7}, {7, 5}, {5});
  check_matmul(rng, f, {5, 7}, {7}, {5});
  check_matmul(rng, f, {3, 5, 7}, {7}, {3, 5});
  check_matmul(rng, f, {7}, {3, 7, 4}, {3, 4});
  check_matmul(rng, f, {2, 3, 5, 7}, {7, 4}, {2, 3, 5, 4});
  check_matmul(rng, f, {2, 3, 5, 7}, {2, 3, 7, 4}, {2, 3, 5, 4});
  check_matmul(rng, f, {2, 1, 5, 7}, {3, 7, 4}, {2, 3, 5, 4});
  check_matmul(rng, f, {5, 7}, {2, 3, 7, 4}, {2, 3, 5, 4});
  check_matmul(rng, f, {1, 5, 7}, {1, 7, 4}, {1, 5, 4});
  check_matmul(rng, f, {0, 7}, {7, 4}, {0, 4});
  check_matmul(rng, f, {3, 0}, {0, 4}, {3, 4});
  check_matmul(rng, f, {3, 4}, {4, 0}, {3, 0});
  check_matmul(rng, f, {0, 3, 4}, {4, 2}, {0, 3, 2});
}

TEST_CASE("MatMul: other types") {
  random_source rng;
  for (dtype t : {dtype::f64, dtype::i32, dtype::i64, dtype::u32, dtype::u64}) {
    check_matmul(rng, t, {5, 9}, {9, 70}, {5, 70});
    check_matmul(rng, t, {2, 5, 9}, {2, 9, 3}, {2, 5, 3});
    check_matmul(rng, t, {3, 70, 130}, {3, 130, 67}, {3, 70, 67});
    check_matmul(rng, t, {4, 0}, {0, 3}, {4, 3});
  }
}

TEST_CASE("Gemm: transposed operands, alpha, beta, every form of C") {
  random_source rng;
  for (int round = 0; round < 60; ++round) {
    const i64 m = rng.extent(), n = rng.extent(), k = round % 9 == 0 ? 0 : rng.extent();
    const bool ta = rng.integer(0, 1) != 0, tb = rng.integer(0, 1) != 0;
    const dtype type = round % 3 == 2 ? dtype::f64 : dtype::f32;
    const double alpha = rng.integer(0, 1) != 0 ? 1.0 : 0.5,
                 beta = rng.integer(0, 1) != 0 ? 1.0 : -2.0;
    const shape forms[] = {{}, {1}, {n}, {1, n}, {m, 1}, {m, n}, {1, 1}};
    const int form = static_cast<int>(rng.integer(-1, 6));
    const tensor a = rng.fill(type, ta ? shape{k, m} : shape{m, k});
    const tensor b = rng.fill(type, tb ? shape{n, k} : shape{k, n});
    tensor c;
    if (form >= 0) c = rng.fill(type, forms[form]);
    tensor expected(type, {m, n});
    for (i64 i = 0; i < m; ++i)
      for (i64 j = 0; j < n; ++j) {
        double sum = 0;
        for (i64 l = 0; l < k; ++l)
          sum += a.value(ta ? l * m + i : i * k + l) * b.value(tb ? j * k + l : l * n + j);
        sum *= alpha;
        if (form >= 0) sum += beta * c.value(broadcast_offset(c.dims(), {i, j}));
        expected.set(i * n + j, sum);
      }
    for (const auto* table : targets())
      for (bool constant : {false, true}) {
        call g;
        g.table = table;
        g.name = "Gemm";
        g.attrs.set("transA", ta ? 1 : 0)
            .set("transB", tb ? 1 : 0)
            .set("alpha", alpha)
            .set("beta", beta);
        g.inputs = {a, b};
        if (form >= 0) g.inputs.push_back(c);
        g.constant = {false, constant};
        g.outputs = {tensor(type, {m, n})};
        g.threads = round % 2 == 0 ? 1 : 4;
        REQUIRE(g.run() == sod2::errc::ok);
        check_close(g.outputs[0], expected, 1e-4, 1e-4);
      }
  }
}

TEST_CASE("a product is bit-identical for any thread count") {
  random_source rng;
  const tensor a = rng.fill(dtype::f32, {130, 700}), b = rng.fill(dtype::f32, {700, 333});
  for (bool constant : {false, true}) {
    tensor first;
    for (int threads : {1, 2, 3, 7}) {
      call c;
      c.name = "MatMul";
      c.inputs = {a, b};
      c.constant = {false, constant};
      c.outputs = {tensor(dtype::f32, {130, 333})};
      c.threads = threads;
      REQUIRE(c.run() == sod2::errc::ok);
      if (threads == 1)
        first = c.outputs[0];
      else
        check_equal(c.outputs[0], first);
    }
  }
}

TEST_CASE("epilogue of a product: bias, residual and activation in place") {
  random_source rng;
  const i64 m = 21, n = 171, k = 40;
  const tensor a = rng.fill(dtype::f32, {m, k}), b = rng.fill(dtype::f32, {k, n}),
               bias = rng.fill(dtype::f32, {n}), residual = rng.fill(dtype::f32, {m, n});
  sod2::tile_builder builder;
  const auto block = builder.input(dtype::f32), vb = builder.input(dtype::f32),
             vr = builder.input(dtype::f32);
  auto r = builder.emit(sod2::tile_op::add, dtype::f32, block, vb);
  r = builder.emit(sod2::tile_op::relu, dtype::f32, r);
  builder.output(builder.emit(sod2::tile_op::add, dtype::f32, r, vr));
  auto program = builder.finish();
  REQUIRE(program.ok());
  const sod2::tensor_view operands[] = {bias.view(), residual.view()};
  const sod2::epilogue_call epilogue{&*program, operands};
  tensor expected = reference_matmul(a, b, {m, n});
  for (i64 i = 0; i < m * n; ++i)
    expected.set(i, std::max(0.0, expected.value(i) + bias.value(i % n)) + residual.value(i));
  for (const auto* table : targets())
    for (int threads : {1, 3}) {
      call c;
      c.table = table;
      c.name = "MatMul";
      c.inputs = {a, b};
      c.outputs = {tensor(dtype::f32, {m, n})};
      c.epilogue = &epilogue;
      c.threads = threads;
      REQUIRE(c.run() == sod2::errc::ok);
      check_close(c.outputs[0], expected, 1e-4, 1e-5);
    }
}
