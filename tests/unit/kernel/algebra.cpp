#include "support.hpp"

#include <algorithm>

using namespace kernel_test;

namespace {

/// Every label walked in one nest; the terms' letters are given axis by axis, ellipsis expanded.
tensor einsum(const std::vector<std::string>& terms, const std::string& result,
              const std::vector<tensor>& inputs, const shape& out) {
  std::string labels;
  shape extent;
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t d = 0; d < terms[i].size(); ++d) {
      const std::size_t at = labels.find(terms[i][d]);
      if (at == std::string::npos) {
        labels.push_back(terms[i][d]);
        extent.push_back(inputs[i].dims()[d]);
      } else if (extent[at] == 1) {
        extent[at] = inputs[i].dims()[d];
      }
    }
  tensor y(inputs[0].type(), out);
  for (i64 i = 0; i < y.count(); ++i) y.set(i, 0);
  for_each_index(extent, [&](const shape& at, i64) {
    const auto offset = [&](const std::string& term, const shape& dims) {
      i64 o = 0;
      for (std::size_t d = 0; d < dims.size(); ++d)
        o = o * dims[d] + (dims[d] == 1 ? 0 : at[labels.find(term[d])]);
      return o;
    };
    double v = 1;
    for (std::size_t i = 0; i < terms.size(); ++i)
      v *= inputs[i].value(offset(terms[i], inputs[i].dims()));
    const i64 o = offset(result, out);
    y.set(o, y.value(o) + v);
  });
  return y;
}

double determinant(const std::vector<std::vector<double>>& m) {  // by the first row
  if (m.empty()) return 1;
  double sum = 0;
  for (std::size_t c = 0; c < m.size(); ++c) {
    std::vector<std::vector<double>> minor;
    for (std::size_t r = 1; r < m.size(); ++r) {
      minor.push_back(m[r]);
      minor.back().erase(minor.back().begin() + static_cast<std::ptrdiff_t>(c));
    }
    sum += (c % 2 == 0 ? 1 : -1) * m[0][c] * determinant(minor);
  }
  return sum;
}

}  // namespace

TEST_CASE("Einsum") {
  random_source rng;
  struct form {
    const char* equation;
    std::vector<std::string> terms;  // expanded
    std::string result;
    std::vector<shape> dims;
    shape out;
  };
  const form forms[] = {
      {"ij,jk->ik", {"ij", "jk"}, "ik", {{3, 4}, {4, 5}}, {3, 5}},
      {"ij,jk", {"ij", "jk"}, "ik", {{3, 4}, {4, 5}}, {3, 5}},
      {" b i j , b j k -> b i k ", {"bij", "bjk"}, "bik", {{2, 3, 4}, {2, 4, 5}}, {2, 3, 5}},
      {"ii->i", {"ii"}, "i", {{4, 4}}, {4}},
      {"ii", {"ii"}, "", {{4, 4}}, {}},
      {"ba", {"ba"}, "ab", {{3, 2}}, {2, 3}},
      {"ij->", {"ij"}, "", {{3, 2}}, {}},
      {"i,i", {"i", "i"}, "", {{5}, {5}}, {}},
      {"i,j->ij", {"i", "j"}, "ij", {{5}, {3}}, {5, 3}},
      {"...ij,...jk->...ik", {"XYij", "Yjk"}, "XYik", {{2, 3, 4, 2}, {3, 2, 5}}, {2, 3, 4, 5}},
      {"...ij,jk", {"XYij", "jk"}, "XYik", {{2, 3, 4, 2}, {2, 5}}, {2, 3, 4, 5}},
      {"...ii->...i", {"Xii"}, "Xi", {{2, 3, 3}}, {2, 3}},
      {"a...b->b...a", {"aXYb"}, "bXYa", {{2, 3, 1, 4}}, {4, 3, 1, 2}},
      {"...,...->...", {"XY", "Y"}, "XY", {{2, 3}, {1}}, {2, 3}},
      {"...", {"XY"}, "XY", {{2, 3}}, {2, 3}},
      {"...->...", {""}, "", {{}}, {}},
      {"ij,jk,kl->il", {"ij", "jk", "kl"}, "il", {{2, 3}, {3, 4}, {4, 5}}, {2, 5}},
      {"bn,anm,bm->ba", {"bn", "anm", "bm"}, "ba", {{2, 3}, {4, 3, 5}, {2, 5}}, {2, 4}},
      {"i,i,i,i->i", {"i", "i", "i", "i"}, "i", {{7}, {7}, {1}, {7}}, {7}},
      {"ij,jk->ik", {"ij", "jk"}, "ik", {{3, 0}, {0, 5}}, {3, 5}},
      {"ij,jk->ik", {"ij", "jk"}, "ik", {{0, 4}, {4, 5}}, {0, 5}},
      {"Zij,jk->Zik", {"Zij", "jk"}, "Zik", {{2, 17, 33}, {33, 9}}, {2, 17, 9}},
  };
  for (const form& f : forms)
    for (dtype type : {dtype::f32, dtype::f64, dtype::i32, dtype::i64, dtype::u8}) {
      call c;
      c.name = "Einsum";
      c.attrs.set("equation", f.equation);
      for (const shape& d : f.dims) c.inputs.push_back(rng.fill(type, d, 0, 1.9));
      c.outputs = {tensor(type, f.out)};
      c.threads = 2;
      INFO(f.equation);
      REQUIRE(c.run() == sod2::errc::ok);
      check_close(c.outputs[0], einsum(f.terms, f.result, c.inputs, f.out));
    }
  call bad;
  bad.name = "Einsum";
  bad.inputs = {tensor(dtype::f32, {2, 3}), tensor(dtype::f32, {4})};
  bad.outputs = {tensor(dtype::f32, {2})};
  for (const char* equation : {"ij->i", "ij,j,k->i", "ij,j->iz", "i1,j->i", ""}) {
    bad.attrs.set("equation", equation);
    CHECK(bad.run() == sod2::errc::bad_attribute);
  }
  bad.attrs.set("equation", "ij,j->i");
  CHECK(bad.run() == sod2::errc::dim_mismatch);
  bad.attrs.set("equation", "i,j->i");
  CHECK(bad.run() == sod2::errc::dim_mismatch);
}

TEST_CASE("Det") {
  random_source rng;
  for (i64 n : {0, 1, 2, 3, 4, 6})
    for (const shape& batch : {shape{}, shape{3}, shape{2, 0}, shape{2, 9}})
      for (dtype type : {dtype::f32, dtype::f64}) {
        shape dims = batch;
        dims.push_back(n);
        dims.push_back(n);
        const tensor x = rng.fill(type, dims);
        if (n > 1 && x.count() > 0)
          for (i64 i = 0; i < n; ++i) x.set(i * n, 0);  // the first matrix is singular
        tensor expected(type, batch);
        for (i64 b = 0; b < expected.count(); ++b) {
          std::vector<std::vector<double>> m(idx(n), std::vector<double>(idx(n)));
          for (i64 i = 0; i < n * n; ++i) m[idx(i / n)][idx(i % n)] = x.value(b * n * n + i);
          expected.set(b, determinant(m));
        }
        call c;
        c.name = "Det";
        c.inputs = {x};
        c.outputs = {tensor(type, batch)};
        c.threads = 2;
        REQUIRE(c.run() == sod2::errc::ok);
        check_close(c.outputs[0], expected);
      }
}

TEST_CASE("ReverseSequence") {
  random_source rng;
  for (const shape& dims : {shape{3, 4}, shape{4, 3, 5}, shape{1, 1, 2}, shape{0, 2}, shape{2, 0}})
    for (i64 batch : {0, 1})
      for (dtype type : {dtype::f32, dtype::u8, dtype::i64}) {
        const std::size_t b = idx(batch), t = 1 - b;
        const tensor x = rng.fill(type, dims, 0, 99);
        const tensor lens = rng.fill(dtype::i64, {dims[b]}, 0, static_cast<double>(dims[t]));
        tensor expected(type, dims);
        for_each_index(dims, [&](const shape& at, i64 i) {
          shape p = at;
          if (at[t] < lens.at<i64>(at[b])) p[t] = lens.at<i64>(at[b]) - 1 - at[t];
          expected.set(i, x.value(offset_of(dims, p)));
        });
        call c;
        c.name = "ReverseSequence";
        c.attrs.set("batch_axis", batch).set("time_axis", 1 - batch);
        c.inputs = {x, lens};
        c.outputs = {tensor(type, dims)};
        REQUIRE(c.run() == sod2::errc::ok);
        check_equal(c.outputs[0], expected);
        if (dims[b] == 0) continue;
        lens.set(0, static_cast<double>(dims[t] + 1));
        CHECK(c.run() == sod2::errc::value_range);
      }
}

TEST_CASE("EyeLike") {
  for (const shape& dims : {shape{3, 3}, shape{2, 5}, shape{5, 2}, shape{0, 3}, shape{1, 1}})
    for (i64 k : {-2, 0, 1, 9})
      for (dtype type : {dtype::f32, dtype::i64, dtype::u8, dtype::boolean}) {
        tensor expected(type, dims);
        for_each_index(dims, [&](const shape& at, i64 i) { expected.set(i, at[1] == at[0] + k); });
        call c;
        c.name = "EyeLike";
        c.attrs.set("k", k);
        c.inputs = {tensor(dtype::f32, dims)};
        c.outputs = {tensor(type, dims)};
        REQUIRE(c.run() == sod2::errc::ok);
        check_equal(c.outputs[0], expected);
      }
}
