#include "support.hpp"

#include <algorithm>

using namespace kernel_test;

TEST_CASE("CumSum and CumProd") {
  random_source rng;
  for (dtype type : {dtype::f32, dtype::i64, dtype::f64})
    for (i64 axis : {0, 1, -1})
      for (int form = 0; form < 4; ++form) {
        const bool exclusive = (form & 1) != 0, reverse = (form & 2) != 0;
        const shape dims{3, 4, 5};
        const tensor x = rng.fill(type, dims, -5, 5);
        const std::size_t a = axis < 0 ? 2 : idx(axis);
        tensor expected(type, dims), products(type, dims);
        for_each_index(dims, [&](const shape& at, i64 i) {
          double sum = 0, product = 1;
          shape p = at;
          for (i64 k = 0; k < dims[a]; ++k) {
            const bool before = reverse ? k > at[a] : k < at[a];
            if (!before && !(k == at[a] && !exclusive)) continue;
            p[a] = k;
            sum += x.value(offset_of(dims, p));
            product *= x.value(offset_of(dims, p));
          }
          expected.set(i, sum);
          products.set(i, product);
        });
        call c;
        c.name = "CumSum";
        c.version = 14;
        c.attrs.set("exclusive", exclusive ? 1 : 0).set("reverse", reverse ? 1 : 0);
        c.inputs = {x, tensor::of<i64>({}, {axis})};
        c.outputs = {tensor(type, dims)};
        REQUIRE(c.run() == sod2::errc::ok);
        check_close(c.outputs[0], expected);
        c.name = "CumProd";
        c.version = 26;
        REQUIRE(c.run() == sod2::errc::ok);
        check_close(c.outputs[0], products);
      }
}

TEST_CASE("BitCast keeps the bytes") {
  random_source rng;
  for (i64 n : {0, 1, 7}) {
    const tensor x = rng.fill(dtype::f32, {n, 2});
    for (const auto& [type, dims] :
         {std::pair<dtype, shape>{dtype::i32, {n, 2}}, {dtype::u8, {n, 8}}, {dtype::i64, {n, 1}}}) {
      call c;
      c.name = "BitCast";
      c.version = 26;
      c.inputs = {x};
      c.outputs = {tensor(type, dims)};
      REQUIRE(c.run() == sod2::errc::ok);
      CHECK(std::memcmp(c.outputs[0].data<void>(), x.data<void>(), idx(n * 8)) == 0);
    }
  }
}

TEST_CASE("TensorScatter writes rows of a cache, round the end where it may") {
  random_source rng;
  for (int round = 0; round < 60; ++round) {
    const bool circular = round % 2 == 1, indexed = round % 3 != 0;
    const i64 batch = rng.integer(0, 3), heads = rng.integer(1, 2), room = rng.integer(3, 6),
              steps = rng.integer(0, 3), width = rng.integer(1, 4);
    const dtype type = round % 4 == 0 ? dtype::u8 : dtype::f32;
    const tensor past = rng.fill(type, {batch, heads, room, width}, 0, 99);
    const tensor update = rng.fill(type, {batch, heads, steps, width}, 0, 99);
    const tensor first =
        rng.fill(dtype::i64, {batch}, 0, static_cast<double>(circular ? room - 1 : room - steps));
    tensor expected = past.clone();
    for_each_index(update.dims(), [&](const shape& at, i64 i) {
      shape p = at;
      p[2] = (at[2] + (indexed ? first.at<i64>(at[0]) : 0)) % room;
      expected.set(offset_of(past.dims(), p), update.value(i));
    });
    call c;
    c.name = "TensorScatter";
    c.version = 24;
    c.attrs.set("mode", circular ? "circular" : "linear");
    c.inputs = {past, update};
    if (indexed) c.inputs.push_back(first);
    c.outputs = {tensor(type, past.dims())};
    REQUIRE(c.run() == sod2::errc::ok);
    check_equal(c.outputs[0], expected);
    if (circular || !indexed || batch == 0 || steps == 0) continue;
    first.set(0, static_cast<double>(room));
    CHECK(c.run() == sod2::errc::index_range);
  }
}

TEST_CASE("Range and OneHot") {
  call r;
  r.name = "Range";
  r.inputs = {tensor::of<i64>({}, {10}), tensor::of<i64>({}, {4}), tensor::of<i64>({}, {-2})};
  r.outputs = {tensor(dtype::i64, {3})};
  REQUIRE(r.run() == sod2::errc::ok);
  CHECK((r.outputs[0].at<i64>(0) == 10 && r.outputs[0].at<i64>(2) == 6));
  r.inputs = {tensor::scalar(0.5f), tensor::scalar(2.0f), tensor::scalar(0.5f)};
  r.outputs = {tensor(dtype::f32, {3})};
  REQUIRE(r.run() == sod2::errc::ok);
  CHECK(r.outputs[0].value(2) == 1.5);
  for (i64 axis : {-1, 0, 1}) {
    const tensor index = tensor::of<i64>({2, 3}, {0, 1, -1, 3, 7, 2});
    shape out{2, 3};
    const i64 at_axis = axis < 0 ? 2 : axis;
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(at_axis), 4);
    tensor expected(dtype::f32, out);
    for_each_index(out, [&](const shape& at, i64 i) {
      shape p = at;
      p.erase(p.begin() + static_cast<std::ptrdiff_t>(at_axis));
      i64 hot = index.at<i64>(offset_of({2, 3}, p));
      if (hot < 0) hot += 4;
      expected.set(i, hot == at[idx(at_axis)] ? 5 : -1);
    });
    call o;
    o.name = "OneHot";
    o.version = 11;
    o.attrs.set("axis", axis);
    o.inputs = {index, tensor::of<i64>({}, {4}), tensor::of<float>({2}, {-1, 5})};
    o.outputs = {tensor(dtype::f32, out)};
    REQUIRE(o.run() == sod2::errc::ok);
    check_equal(o.outputs[0], expected);
  }
}

TEST_CASE("TopK orders equal values by index") {
  random_source rng;
  for (dtype type : {dtype::f32, dtype::i32, dtype::u8})
    for (bool largest : {true, false})
      for (i64 axis : {0, 1, -1})
        for (i64 k : {0, 1, 2, 5}) {
          const shape dims{6, 5, 7};
          const tensor x = rng.fill(type, dims, 0, 4);
          const std::size_t a = axis < 0 ? 2 : idx(axis);
          shape out = dims;
          out[a] = k;
          tensor values(type, out), where(dtype::i64, out);
          shape rows = dims;
          rows[a] = 1;
          for_each_index(rows, [&](const shape& at, i64) {
            std::vector<std::pair<double, i64>> v;
            shape p = at;
            for (i64 i = 0; i < dims[a]; ++i) {
              p[a] = i;
              v.push_back({x.value(offset_of(dims, p)), i});
            }
            std::stable_sort(v.begin(), v.end(), [&](const auto& l, const auto& r) {
              return largest ? l.first > r.first : l.first < r.first;
            });
            for (i64 i = 0; i < k; ++i) {
              p[a] = i;
              values.set(offset_of(out, p), v[idx(i)].first);
              where.set(offset_of(out, p), static_cast<double>(v[idx(i)].second));
            }
          });
          call c;
          c.name = "TopK";
          c.version = 11;
          c.attrs.set("axis", axis).set("largest", largest ? 1 : 0);
          c.inputs = {x, tensor::ints({k})};
          c.outputs = {tensor(type, out), tensor(dtype::i64, out)};
          c.threads = 2;
          REQUIRE(c.run() == sod2::errc::ok);
          check_equal(c.outputs[0], values);
          check_equal(c.outputs[1], where);
          c.outputs = {tensor(type, out)};  // without the indices
          REQUIRE(c.run() == sod2::errc::ok);
          check_equal(c.outputs[0], values);
        }
}

TEST_CASE("NonZero reports its count") {
  const tensor x = tensor::of<float>({2, 3}, {0, 1, 0, 2, 0, 3});
  i64 count = -1;
  call c;
  c.name = "NonZero";
  c.inputs = {x};
  c.outputs = {tensor(dtype::i64, {2, 6})};
  c.counts = &count;
  REQUIRE(c.run() == sod2::errc::ok);
  REQUIRE(count == 3);
  const i64 expected[] = {0, 1, 1, 1, 0, 2};
  for (i64 i = 0; i < 6; ++i) CHECK(c.outputs[0].at<i64>(i) == expected[i]);
  c.outputs = {tensor(dtype::i64, {2, 2})};
  CHECK(c.run() == sod2::errc::buffer_too_small);
}
