#include "support.hpp"

#include <algorithm>
#include <numeric>

using namespace kernel_test;

namespace {

const dtype sizes[] = {dtype::f32, dtype::i64, dtype::u8, dtype::f16, dtype::boolean};

tensor counting(dtype type, const shape& dims) {
  tensor t(type, dims);
  for (i64 i = 0; i < t.count(); ++i) {
    if (type == dtype::f16)
      t.at<std::uint16_t>(i) = static_cast<std::uint16_t>(i);
    else
      t.set(i, static_cast<double>(type == dtype::boolean ? i % 3 == 0
                                   : type == dtype::u8    ? i % 251
                                                          : i));
  }
  return t;
}
void copy_element(const tensor& to, i64 i, const tensor& from, i64 j) {
  const std::size_t n = sod2::bytes_of(to.type());
  std::memcpy(to.data<char>() + idx(i) * n, from.data<char>() + idx(j) * n, n);
}
shape random_dims(random_source& rng, int rank, i64 limit) {
  shape s;
  for (int d = 0; d < rank; ++d) s.push_back(rng.integer(0, 19) == 0 ? 0 : rng.extent(limit));
  return s;
}

}  // namespace

TEST_CASE("Transpose") {
  random_source rng;
  for (int round = 0; round < 150; ++round) {
    const int rank = static_cast<int>(rng.integer(1, 5));
    const shape dims = random_dims(rng, rank, rank > 3 ? 9 : 40);
    const tensor x = counting(sizes[round % 5], dims);
    shape perm(idx(rank));
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), rng.engine);
    const bool given = round % 6 != 0;
    if (!given) std::iota(perm.rbegin(), perm.rend(), 0);
    shape out;
    for (i64 p : perm) out.push_back(dims[idx(p)]);
    tensor expected(x.type(), out);
    for_each_index(out, [&](const shape& at, i64 i) {
      shape from(idx(rank));
      for (std::size_t d = 0; d < perm.size(); ++d) from[idx(perm[d])] = at[d];
      copy_element(expected, i, x, offset_of(dims, from));
    });
    call c;
    c.name = "Transpose";
    if (given) c.attrs.set("perm", perm);
    c.inputs = {x};
    c.outputs = {tensor(x.type(), out)};
    c.threads = round % 3 + 1;
    REQUIRE(c.run() == sod2::errc::ok);
    check_equal(c.outputs[0], expected);
  }
  // Large enough that strips and threads matter.
  const tensor x = counting(dtype::f32, {3, 300, 200});
  tensor expected(dtype::f32, {200, 3, 300});
  for_each_index(expected.dims(), [&](const shape& at, i64 i) {
    expected.set(i, x.value((at[1] * 300 + at[2]) * 200 + at[0]));
  });
  call c;
  c.name = "Transpose";
  c.attrs.set("perm", shape{2, 0, 1});
  c.inputs = {x};
  c.outputs = {tensor(dtype::f32, expected.dims())};
  c.threads = 3;
  REQUIRE(c.run() == sod2::errc::ok);
  check_equal(c.outputs[0], expected);
}

TEST_CASE("Concat and Split are inverse to each other") {
  random_source rng;
  for (int round = 0; round < 100; ++round) {
    const int rank = static_cast<int>(rng.integer(1, 4));
    shape dims = random_dims(rng, rank, 12);
    const std::size_t axis = idx(rng.integer(0, rank - 1));
    const dtype type = sizes[round % 5];
    std::vector<tensor> parts;
    i64 total = 0;
    for (i64 n = rng.integer(1, 4); n > 0; --n) {
      shape own = dims;
      own[axis] = rng.integer(0, 6);
      total += own[axis];
      parts.push_back(counting(type, own));
    }
    shape whole = dims;
    whole[axis] = total;
    const i64 named = round % 2 == 0 ? static_cast<i64>(axis) : static_cast<i64>(axis) - rank;
    tensor expected(type, whole);
    i64 start = 0;
    for (const tensor& p : parts) {
      for_each_index(p.dims(), [&](const shape& at, i64 i) {
        shape to = at;
        to[axis] += start;
        copy_element(expected, offset_of(whole, to), p, i);
      });
      start += p.dims()[axis];
    }
    call c;
    c.name = "Concat";
    c.attrs.set("axis", named);
    c.inputs = parts;
    c.outputs = {tensor(type, whole)};
    c.threads = round % 2 + 1;
    REQUIRE(c.run() == sod2::errc::ok);
    check_equal(c.outputs[0], expected);
    call s;
    s.name = "Split";
    s.attrs.set("axis", named);
    s.inputs = {expected};
    for (const tensor& p : parts) s.outputs.push_back(tensor(type, p.dims()));
    REQUIRE(s.run() == sod2::errc::ok);
    for (std::size_t i = 0; i < parts.size(); ++i) check_equal(s.outputs[i], parts[i]);
    // An absent output keeps its place, whichever way sizes are stated.
    shape widths;
    for (const tensor& p : parts) widths.push_back(p.dims()[axis]);
    if (round % 3 == 0)
      s.inputs.push_back(tensor::ints(widths));
    else
      s.attrs.set("split", widths);
    for (std::size_t i = 0; i < parts.size(); ++i)
      s.outputs[i] = i == idx(round) % parts.size() ? tensor() : tensor(type, parts[i].dims());
    REQUIRE(s.run() == sod2::errc::ok);
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (s.outputs[i].present()) check_equal(s.outputs[i], parts[i]);
  }
}

TEST_CASE("Slice: attributes and inputs, negative steps, clamped bounds") {
  random_source rng;
  for (int round = 0; round < 300; ++round) {
    const int rank = static_cast<int>(rng.integer(1, 4));
    shape dims;
    for (int d = 0; d < rank; ++d) dims.push_back(rng.integer(1, 9));
    const bool attribute = round % 4 == 0;
    const tensor x = counting(sizes[round % 5], dims);
    shape axes(idx(rank));
    std::iota(axes.begin(), axes.end(), 0);
    std::shuffle(axes.begin(), axes.end(), rng.engine);
    axes.resize(idx(rng.integer(1, rank)));
    shape starts, ends, steps, from(idx(rank), 0), by(idx(rank), 1), out = dims;
    for (i64& axis : axes) {
      const i64 n = dims[idx(axis)];
      i64 s = rng.integer(-n - 3, n + 3), e = rng.integer(-n - 3, n + 3);
      if (rng.integer(0, 4) == 0) e = INT64_MAX;
      i64 step = attribute ? 1 : rng.integer(-3, 3);
      if (step == 0) step = 1;
      if (step < 0 && rng.integer(0, 1) == 0) e = INT64_MIN;
      starts.push_back(s);
      ends.push_back(e);
      steps.push_back(step);
      i64 a = s < 0 ? s + n : s, b = e < 0 && e > INT64_MIN / 2 ? e + n : e;
      if (step > 0) {
        a = std::clamp<i64>(a, 0, n);
        b = std::clamp<i64>(b, 0, n);
        out[idx(axis)] = std::max<i64>(0, (b - a + step - 1) / step);
      } else {
        a = std::clamp<i64>(a, 0, n - 1);
        b = std::clamp<i64>(b, -1, n - 1);
        out[idx(axis)] = std::max<i64>(0, (a - b - step - 1) / -step);
      }
      from[idx(axis)] = a;
      by[idx(axis)] = step;
      if (rng.integer(0, 1) == 0) axis -= rank;
    }
    tensor expected(x.type(), out);
    for_each_index(out, [&](const shape& at, i64 i) {
      shape p = at;
      for (std::size_t d = 0; d < p.size(); ++d) p[d] = from[d] + at[d] * by[d];
      copy_element(expected, i, x, offset_of(dims, p));
    });
    call c;
    c.name = "Slice";
    c.version = attribute ? 1 : 13;
    if (attribute) {
      c.attrs.set("starts", starts).set("ends", ends).set("axes", axes);
      c.inputs = {x};
    } else {
      c.inputs = {x, tensor::ints(starts), tensor::ints(ends), tensor::ints(axes),
                  tensor::ints(steps)};
    }
    c.outputs = {tensor(x.type(), out)};
    REQUIRE(c.run() == sod2::errc::ok);
    check_equal(c.outputs[0], expected);
  }
}

TEST_CASE("Expand and Tile") {
  random_source rng;
  for (int round = 0; round < 80; ++round) {
    shape out;
    for (i64 n = rng.integer(1, 4); n > 0; --n) out.push_back(rng.extent(17));
    shape own = out;
    for (i64& d : own)
      if (rng.integer(0, 1) == 0) d = 1;
    own.erase(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(
                                             rng.integer(0, static_cast<i64>(own.size()) - 1)));
    const tensor x = counting(sizes[round % 5], own);
    tensor expected(x.type(), out);
    for_each_index(out, [&](const shape& at, i64 i) {
      copy_element(expected, i, x, broadcast_offset(own, at));
    });
    call c;
    c.name = "Expand";
    c.inputs = {x, tensor::ints(out)};
    c.outputs = {tensor(x.type(), out)};
    c.threads = 2;
    REQUIRE(c.run() == sod2::errc::ok);
    check_equal(c.outputs[0], expected);

    shape repeats, big = own;
    for (i64& d : big) {
      repeats.push_back(rng.integer(0, 3));
      d *= repeats.back();
    }
    tensor tiled(x.type(), big);
    for_each_index(big, [&](const shape& at, i64 i) {
      shape p = at;
      for (std::size_t d = 0; d < p.size(); ++d) p[d] %= own[d];
      copy_element(tiled, i, x, offset_of(own, p));
    });
    call t;
    t.name = "Tile";
    t.inputs = {x, tensor::ints(repeats)};
    t.outputs = {tensor(x.type(), big)};
    REQUIRE(t.run() == sod2::errc::ok);
    check_equal(t.outputs[0], tiled);
  }
}

TEST_CASE("DepthToSpace and SpaceToDepth") {
  for (i64 b : {1, 2, 3})
    for (bool crd : {false, true}) {
      const i64 c = 3, h = 4, w = 5;
      const tensor x = counting(dtype::f32, {2, c * b * b, h, w});
      tensor expected(dtype::f32, {2, c, h * b, w * b});
      for_each_index(expected.dims(), [&](const shape& at, i64 i) {
        const i64 by = at[2] % b, bx = at[3] % b;
        const i64 channel = crd ? (at[1] * b + by) * b + bx : (by * b + bx) * c + at[1];
        expected.set(i, x.value(offset_of(x.dims(), {at[0], channel, at[2] / b, at[3] / b})));
      });
      call d;
      d.name = "DepthToSpace";
      d.attrs.set("blocksize", b).set("mode", crd ? "CRD" : "DCR");
      d.inputs = {x};
      d.outputs = {tensor(dtype::f32, expected.dims())};
      REQUIRE(d.run() == sod2::errc::ok);
      check_equal(d.outputs[0], expected);
      call s;
      s.name = "SpaceToDepth";
      s.attrs.set("blocksize", b).set("mode", crd ? "CRD" : "DCR");
      s.inputs = {expected};
      s.outputs = {tensor(dtype::f32, x.dims())};
      REQUIRE(s.run() == sod2::errc::ok);
      check_equal(s.outputs[0], x);  // each form is the other's inverse
    }
}

TEST_CASE("Gather, GatherElements, GatherND and their range checks") {
  random_source rng;
  for (int round = 0; round < 60; ++round) {
    const shape dims{rng.integer(1, 6), rng.integer(1, 6), rng.integer(1, 6)};
    const tensor x = counting(sizes[round % 5], dims);
    const i64 axis = rng.integer(-3, 2);
    const std::size_t a = idx(axis < 0 ? axis + 3 : axis);
    const i64 n = dims[a];
    shape index_dims;
    for (i64 r = rng.integer(0, 2); r > 0; --r) index_dims.push_back(rng.integer(0, 4));
    const tensor index = rng.fill(round % 2 == 0 ? dtype::i64 : dtype::i32, index_dims,
                                  static_cast<double>(-n), static_cast<double>(n - 1));
    shape out(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(a));
    out.insert(out.end(), index_dims.begin(), index_dims.end());
    out.insert(out.end(), dims.begin() + static_cast<std::ptrdiff_t>(a) + 1, dims.end());
    tensor expected(x.type(), out);
    for_each_index(out, [&](const shape& at, i64 i) {
      const std::ptrdiff_t r = static_cast<std::ptrdiff_t>(index_dims.size()),
                           p = static_cast<std::ptrdiff_t>(a);
      const shape in_index(at.begin() + p, at.begin() + p + r);
      i64 k = static_cast<i64>(index.value(offset_of(index_dims, in_index)));
      if (k < 0) k += n;
      shape from(at.begin(), at.begin() + p);
      from.push_back(k);
      from.insert(from.end(), at.begin() + p + r, at.end());
      copy_element(expected, i, x, offset_of(dims, from));
    });
    call c;
    c.name = "Gather";
    c.attrs.set("axis", axis);
    c.inputs = {x, index};
    c.outputs = {tensor(x.type(), out)};
    c.threads = 2;
    REQUIRE(c.run() == sod2::errc::ok);
    check_equal(c.outputs[0], expected);

    shape element_dims = dims;
    element_dims[a] = rng.integer(1, 7);
    for (std::size_t d = 0; d < 3; ++d)
      if (d != a) element_dims[d] = rng.integer(1, dims[d]);
    const tensor which =
        rng.fill(dtype::i64, element_dims, static_cast<double>(-n), static_cast<double>(n - 1));
    tensor picked(x.type(), element_dims);
    for_each_index(element_dims, [&](const shape& at, i64 i) {
      shape from = at;
      from[a] = static_cast<i64>(which.value(i));
      if (from[a] < 0) from[a] += n;
      copy_element(picked, i, x, offset_of(dims, from));
    });
    call e;
    e.name = "GatherElements";
    e.attrs.set("axis", axis);
    e.inputs = {x, which};
    e.outputs = {tensor(x.type(), element_dims)};
    REQUIRE(e.run() == sod2::errc::ok);
    check_equal(e.outputs[0], picked);
  }
  {
    call c;
    c.name = "Gather";
    c.inputs = {counting(dtype::f32, {3}), tensor::ints({3})};
    c.outputs = {tensor(dtype::f32, {1})};
    CHECK(c.run() == sod2::errc::index_range);
  }
  for (i64 batch : {0, 1}) {
    const tensor x = counting(dtype::f32, {2, 3, 4});
    const tensor index =
        batch == 0 ? tensor::of<i64>({2, 2}, {0, 1, 1, -1}) : tensor::of<i64>({2, 1}, {1, 0});
    const shape out = {2, 4};
    tensor expected(dtype::f32, out);
    for (i64 r = 0; r < 2; ++r)
      for (i64 j = 0; j < 4; ++j) {
        const i64 row = batch == 0 ? (r == 0 ? 1 : 3 + 2) : (r == 0 ? 1 : 3);
        expected.set(r * 4 + j, x.value(row * 4 + j));
      }
    call c;
    c.name = "GatherND";
    c.attrs.set("batch_dims", batch);
    c.inputs = {x, index};
    c.outputs = {tensor(dtype::f32, out)};
    REQUIRE(c.run() == sod2::errc::ok);
    check_equal(c.outputs[0], expected);
  }
}

TEST_CASE("ScatterElements and ScatterND with every reduction") {
  random_source rng;
  const char* const modes[] = {"none", "add", "mul", "max", "min"};
  for (int round = 0; round < 60; ++round) {
    const std::string mode = modes[round % 5];
    const dtype type = round % 2 == 0 ? dtype::f32 : dtype::i64;
    const auto combine = [&](double a, double b) {
      return mode == "none"  ? b
             : mode == "add" ? a + b
             : mode == "mul" ? a * b
             : mode == "max" ? std::max(a, b)
                             : std::min(a, b);
    };
    const shape dims{4, 5, 3};
    const tensor x = rng.fill(type, dims, -5, 5);
    const i64 axis = rng.integer(-3, 2);
    const std::size_t a = idx(axis < 0 ? axis + 3 : axis);
    shape own = dims;
    own[a] = 2;
    tensor index =
        rng.fill(dtype::i64, own, static_cast<double>(-dims[a]), static_cast<double>(dims[a] - 1));
    const tensor updates = rng.fill(type, own, -5, 5);
    tensor expected = x.clone();
    for_each_index(own, [&](const shape& at, i64 i) {
      shape to = at;
      to[a] = static_cast<i64>(index.value(i));
      if (to[a] < 0) to[a] += dims[a];
      const i64 o = offset_of(dims, to);
      expected.set(o, combine(expected.value(o), updates.value(i)));
    });
    call c;
    c.name = "ScatterElements";
    c.version = 18;
    c.attrs.set("axis", axis).set("reduction", mode.c_str());
    c.inputs = {x, index, updates};
    c.outputs = {tensor(type, dims)};
    REQUIRE(c.run() == sod2::errc::ok);
    check_close(c.outputs[0], expected);

    const tensor where = tensor::of<i64>({3, 2}, {0, 1, 3, -1, 0, 1});
    const tensor rows = rng.fill(type, {3, 3}, -5, 5);
    expected = x.clone();
    for (i64 r = 0; r < 3; ++r)
      for (i64 j = 0; j < 3; ++j) {
        const i64 o = (r == 1 ? 3 * 5 + 4 : 1) * 3 + j;
        expected.set(o, combine(expected.value(o), rows.value(r * 3 + j)));
      }
    call n;
    n.name = "ScatterND";
    n.version = 18;
    n.attrs.set("reduction", mode.c_str());
    n.inputs = {x, where, rows};
    n.outputs = {tensor(type, dims)};
    REQUIRE(n.run() == sod2::errc::ok);
    check_close(n.outputs[0], expected);
  }
}

TEST_CASE("Pad in every mode, also negative") {
  random_source rng;
  const char* const modes[] = {"constant", "reflect", "edge", "wrap"};
  for (int round = 0; round < 200; ++round) {
    const std::string mode = modes[round % 4];
    const int rank = static_cast<int>(rng.integer(1, 3));
    shape dims, begin, pads(idx(2 * rank)), out;
    for (int d = 0; d < rank; ++d) {
      const i64 n = rng.integer(2, 9);
      const i64 limit = mode == "reflect" ? n - 1 : 5;
      i64 b = rng.integer(0, limit), e = rng.integer(0, limit);
      if (mode == "constant" && rng.integer(0, 2) == 0) b = -rng.integer(0, 1);
      if (mode == "constant" && rng.integer(0, 2) == 0) e = -rng.integer(0, 1);
      dims.push_back(n);
      begin.push_back(b);
      pads[idx(d)] = b;
      pads[idx(d + rank)] = e;
      out.push_back(n + b + e);
    }
    const dtype type = sizes[round % 3];
    const tensor x = counting(type, dims);
    tensor value(type, {});
    value.set(0, 7);
    tensor expected(type, out);
    for_each_index(out, [&](const shape& at, i64 i) {
      shape p = at;
      bool inside = true;
      for (std::size_t d = 0; d < p.size(); ++d) {
        i64 v = at[d] - begin[d];
        const i64 n = dims[d];
        if (v < 0 || v >= n) {
          inside = inside && mode != "constant";
          if (mode == "edge") v = std::clamp<i64>(v, 0, n - 1);
          if (mode == "wrap") v = ((v % n) + n) % n;
          if (mode == "reflect") v = v < 0 ? -v : 2 * (n - 1) - v;
        }
        p[d] = v;
      }
      if (inside)
        copy_element(expected, i, x, offset_of(dims, p));
      else
        copy_element(expected, i, value, 0);
    });
    const int form = round % 3;  // attribute, inputs, inputs with axes in reverse
    call c;
    c.name = "Pad";
    c.version = form == 0 ? 2 : form == 1 ? 11 : 19;
    c.attrs.set("mode", mode.c_str());
    if (form == 0) {
      c.attrs.set("pads", pads).set("value", 7.0);
      c.inputs = {x};
    } else if (form == 1) {
      c.inputs = {x, tensor::ints(pads), value};
    } else {
      shape axes, reversed;
      for (i64 d = rank; d-- > 0;) axes.push_back(d);
      for (i64 d = rank; d-- > 0;) reversed.push_back(pads[idx(d)]);
      for (i64 d = rank; d-- > 0;) reversed.push_back(pads[idx(d + rank)]);
      c.inputs = {x, tensor::ints(reversed), value, tensor::ints(axes)};
    }
    c.outputs = {tensor(type, out)};
    c.threads = 2;
    REQUIRE(c.run() == sod2::errc::ok);
    INFO(mode);
    check_equal(c.outputs[0], expected);
  }
}

TEST_CASE("Shape, Size, ConstantOfShape, Trilu, Reshape") {
  const tensor x = counting(dtype::f32, {2, 3, 4, 5});
  call c;
  c.name = "Shape";
  c.version = 15;
  c.attrs.set("start", -3).set("end", -1);
  c.inputs = {x};
  c.outputs = {tensor(dtype::i64, {2})};
  REQUIRE(c.run() == sod2::errc::ok);
  CHECK((c.outputs[0].at<i64>(0) == 3 && c.outputs[0].at<i64>(1) == 4));
  call s;
  s.name = "Size";
  s.inputs = {x};
  s.outputs = {tensor(dtype::i64, {})};
  REQUIRE(s.run() == sod2::errc::ok);
  CHECK(s.outputs[0].at<i64>(0) == 120);
  call k;
  k.name = "ConstantOfShape";
  k.attrs.set("value", tensor::of<i64>({1}, {-3}));
  k.inputs = {tensor::ints({2, 3})};
  k.outputs = {tensor(dtype::i64, {2, 3})};
  REQUIRE(k.run() == sod2::errc::ok);
  for (i64 i = 0; i < 6; ++i) CHECK(k.outputs[0].at<i64>(i) == -3);
  call r;
  r.name = "Reshape";
  r.inputs = {x, tensor::ints({6, 20})};
  r.outputs = {tensor(dtype::f32, {6, 20})};
  REQUIRE(r.run() == sod2::errc::ok);
  CHECK(r.outputs[0].value(119) == 119);
  for (int upper : {0, 1})
    for (i64 diagonal : {-9, -2, -1, 0, 1, 2, 9}) {
      call t;
      t.name = "Trilu";
      t.version = 14;
      t.attrs.set("upper", upper);
      t.inputs = {x, tensor::of<i64>({}, {diagonal})};
      t.outputs = {tensor(dtype::f32, x.dims())};
      REQUIRE(t.run() == sod2::errc::ok);
      tensor expected(dtype::f32, x.dims());
      for_each_index(x.dims(), [&](const shape& at, i64 i) {
        const i64 d = at[3] - at[2];
        expected.set(i, (upper != 0 ? d >= diagonal : d <= diagonal) ? x.value(i) : 0);
      });
      check_equal(t.outputs[0], expected);
    }
}
