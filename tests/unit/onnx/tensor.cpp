// Every encoding of a tensor's elements, external data, sparse tensors.
#include <doctest/doctest.h>

#include <complex>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <sod2/onnx.hpp>

#include "unit/onnx/craft.hpp"

using namespace craft;
using sod2::dtype;
using sod2::errc;

namespace {

template <class T>
void expect(const message& m, const std::vector<T>& expected) {
  auto t = sod2::onnx::read_tensor(m.bytes());
  REQUIRE_MESSAGE(t, (t ? std::string() : t.error().text()));
  CHECK(elements<T>(t->tensor) == expected);
}
void expect_error(const message& m, errc code) {
  auto t = sod2::onnx::read_tensor(m.bytes());
  REQUIRE(!t);
  CHECK(t.error().code() == code);
}

}  // namespace

TEST_CASE("raw data points into the file") {
  const message m = raw<float>("w", dtype::f32, {2, 2}, {1, 2, 3, 4});
  auto t = sod2::onnx::read_tensor(m.bytes());
  REQUIRE(t);
  CHECK(t->name == "w");
  CHECK(t->tensor.type == dtype::f32);
  CHECK(t->tensor.dims == std::vector<std::int64_t>{2, 2});
  CHECK(t->tensor.owned.empty());
  CHECK(reinterpret_cast<const char*>(t->tensor.data) > m.bytes().data());
  CHECK(elements<float>(t->tensor) == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("typed fields, packed and one by one") {
  expect<float>(tensor("t", dtype::f32, {3}).packed_floats(field::tensor_float_data, {1, -2, 3}),
                {1, -2, 3});
  expect<float>(tensor("t", dtype::f32, {2})
                    .real(field::tensor_float_data, 1)
                    .real(field::tensor_float_data, 0.5F),
                {1, 0.5F});
  expect<std::complex<float>>(
      tensor("t", dtype::c64, {1}).packed_floats(field::tensor_float_data, {1, 2}), {{1, 2}});
  expect<double>(tensor("t", dtype::f64, {2}).packed_doubles(field::tensor_double_data, {1, 2.5}),
                 {1, 2.5});
  expect<double>(tensor("t", dtype::f64, {1}).real64(field::tensor_double_data, 7), {7});
  expect<std::int64_t>(
      tensor("t", dtype::i64, {3}).packed(field::tensor_int64_data, {-1, 0, INT64_MAX}),
      {-1, 0, INT64_MAX});
  expect<std::int64_t>(tensor("t", dtype::i64, {2})
                           .number(field::tensor_int64_data, -5)
                           .number(field::tensor_int64_data, 6),
                       {-5, 6});
  expect<std::uint64_t>(tensor("t", dtype::u64, {1}).packed(field::tensor_uint64_data, {-1}),
                        {UINT64_MAX});
  expect<std::uint32_t>(
      tensor("t", dtype::u32, {2}).packed(field::tensor_uint64_data, {1, 4294967295}),
      {1, 4294967295U});
  const std::vector<std::int64_t> numbers = {-1, 2, 127};
  const auto of = [&](dtype t) {
    return tensor("t", t, {3}).packed(field::tensor_int32_data, numbers);
  };
  expect<std::int32_t>(of(dtype::i32), {-1, 2, 127});
  expect<std::int16_t>(of(dtype::i16), {-1, 2, 127});
  expect<std::uint16_t>(of(dtype::u16), {65535, 2, 127});
  expect<std::int8_t>(of(dtype::i8), {-1, 2, 127});
  expect<std::uint8_t>(of(dtype::u8), {255, 2, 127});
  expect<std::uint8_t>(of(dtype::boolean), {1, 1, 1});
  expect<std::uint16_t>(tensor("t", dtype::f16, {2}).packed(field::tensor_int32_data, {15360, 0}),
                        {0x3c00, 0});
  expect<std::uint16_t>(tensor("t", dtype::bf16, {1}).number(field::tensor_int32_data, 0x3f80),
                        {0x3f80});
  expect<std::uint8_t>(tensor("t", dtype::i4, {3}).packed(field::tensor_int32_data, {0x21, 0x03}),
                       {0x21, 0x03});
  expect<float>(tensor("t", dtype::f32, {0}), {});
  expect<float>(tensor("t", dtype::f32, {1})
                    .text(field::tensor_raw_data, "")
                    .packed_floats(field::tensor_float_data, {4}),
                {4});
}

TEST_CASE("strings") {
  auto t = sod2::onnx::read_tensor(tensor("s", dtype::string, {2})
                                       .text(field::tensor_string_data, "a")
                                       .text(field::tensor_string_data, "")
                                       .bytes());
  REQUIRE(t);
  CHECK(t->tensor.strings == std::vector<std::string>{"a", ""});
  CHECK(t->tensor.view().count() == 2);
  expect_error(tensor("s", dtype::string, {2}).text(field::tensor_string_data, "a"),
               errc::malformed_model);
}

TEST_CASE("dims that lie cost nothing") {
  expect_error(tensor("t", dtype::f32, {1LL << 60, 1LL << 60}), errc::malformed_model);
  expect_error(tensor("t", dtype::f32, {1LL << 61}), errc::malformed_model);
  expect_error(tensor("t", dtype::f32, {1LL << 40}), errc::malformed_model);
  expect_error(tensor("t", dtype::f32, {-1}), errc::malformed_model);
  expect_error(tensor("t", dtype::f32, {1LL << 40}).packed_floats(field::tensor_float_data, {1}),
               errc::malformed_model);
  expect_error(tensor("t", dtype::f32, {1}).packed_floats(field::tensor_float_data, {1, 2}),
               errc::malformed_model);
  expect_error(raw<float>("t", dtype::f32, {3}, {1, 2}), errc::malformed_model);
  expect_error(tensor("t", static_cast<dtype>(0), {1}), errc::unsupported);
  expect_error(tensor("t", static_cast<dtype>(99), {1}), errc::unsupported);
}

TEST_CASE("sparse tensors become dense") {
  const auto sparse = [](const message& indices, const std::vector<std::int64_t>& dims) {
    return message()
        .add(field::sparse_values, raw<float>("s", dtype::f32, {2}, {5, 7}))
        .add(field::sparse_indices, indices)
        .packed(field::sparse_dims, dims);
  };
  const auto read = [](const message& initializer) {
    const message g = message(small_graph()).add(field::graph_sparse_initializer, initializer);
    return sod2::onnx::read_bytes(std::string_view(model(g).bytes())).ok();
  };
  sod2::onnx::detail::external_files none;
  sod2::onnx::detail::tensor_reader reader(none);
  const message linear = sparse(raw<std::int64_t>("", dtype::i64, {2}, {1, 5}), {2, 3});
  auto dense = reader.read_sparse(linear.bytes());
  CHECK(dense.name == "s");
  CHECK(dense.tensor.dims == std::vector<std::int64_t>{2, 3});
  CHECK(elements<float>(dense.tensor) == std::vector<float>{0, 5, 0, 0, 0, 7});
  const message pairs = sparse(raw<std::int64_t>("", dtype::i64, {2, 2}, {0, 1, 1, 2}), {2, 3});
  dense = reader.read_sparse(pairs.bytes());
  CHECK(elements<float>(dense.tensor) == std::vector<float>{0, 5, 0, 0, 0, 7});
  CHECK(read(linear));
  CHECK(!read(sparse(raw<std::int64_t>("", dtype::i64, {2}, {1, 6}), {2, 3})));
  CHECK(!read(sparse(raw<std::int64_t>("", dtype::i64, {2}, {1, -1}), {2, 3})));
  CHECK(!read(sparse(raw<std::int64_t>("", dtype::i64, {1}, {1}), {2, 3})));
  CHECK(!read(sparse(raw<std::int64_t>("", dtype::i64, {2}, {0, 1}), {1LL << 20, 1LL << 20})));
}

TEST_CASE("external data") {
  namespace fs = std::filesystem;
  const fs::path top = fs::temp_directory_path() / "sod2_onnx_external";
  fs::remove_all(top);
  fs::create_directories(top / "m" / "data");
  const float numbers[] = {1, 2, 3, 4};
  const std::string_view bytes(reinterpret_cast<const char*>(numbers), sizeof(numbers));
  REQUIRE(sod2::onnx::write_file(top / "m" / "data" / "w.bin", bytes));
  REQUIRE(sod2::onnx::write_file(top / "outside.bin", bytes));
  fs::create_symlink(top / "outside.bin", top / "m" / "link.bin");

  const auto entry = [](std::string_view key, std::string_view value) {
    return message().text(field::entry_key, key).text(field::entry_value, value);
  };
  const auto read = [&](std::string_view location, std::string_view offset, std::string_view length,
                        bool map = true) {
    message t = tensor("w", dtype::f32, {2}).number(field::tensor_data_location, 1);
    t.add(field::tensor_external_data, entry("location", location));
    if (!offset.empty()) t.add(field::tensor_external_data, entry("offset", offset));
    if (!length.empty()) t.add(field::tensor_external_data, entry("length", length));
    const message g = small_graph().add(field::graph_initializer, t);
    REQUIRE(sod2::onnx::write_file(top / "m" / "model.onnx", model(g).bytes()));
    return sod2::onnx::read_file(top / "m", {map});
  };
  for (bool map : {true, false}) {
    auto m = read("data/w.bin", "4", "8", map);
    REQUIRE_MESSAGE(m, (m ? std::string() : m.error().text()));
    auto moved = *std::move(m);
    CHECK(elements<float>(moved.graph.constants()[0]) == std::vector<float>{2, 3});
  }
  CHECK(read("./data/../data/w.bin", "", "8"));
  CHECK(read("data/w.bin", "8", ""));
  for (const auto& [location, offset, length] :
       {std::tuple("data/w.bin", "12", "8"), std::tuple("data/w.bin", "4", "4"),
        std::tuple("data/w.bin", "-4", "8"), std::tuple("data/w.bin", "99999999999999999999", ""),
        std::tuple("data/w.bin", "4x", ""), std::tuple("../outside.bin", "", ""),
        std::tuple("data/../../outside.bin", "", ""), std::tuple("link.bin", "", ""),
        std::tuple("/etc/passwd", "", ""), std::tuple("", "", ""), std::tuple("data", "", ""),
        std::tuple("missing.bin", "", "")}) {
    auto m = read(location, offset, length);
    CHECK_MESSAGE(!m, location);
    if (!m) CHECK(m.error().detail().tensor == "w");
  }
  // Without a folder there is nothing to be relative to.
  message t = tensor("w", dtype::f32, {2}).number(field::tensor_data_location, 1);
  CHECK(!sod2::onnx::read_tensor(t.bytes()));
  fs::remove_all(top);
}

TEST_CASE("a tensor survives writing and reading") {
  sod2::onnx::named_tensor t;
  t.name = "x";
  t.tensor = sod2::constant_tensor::of<float>({2}, std::vector<float>{1, 2});
  const std::string bytes = sod2::onnx::to_bytes(t);
  auto back = sod2::onnx::read_tensor(bytes);
  REQUIRE(back);
  CHECK(back->name == "x");
  CHECK(elements<float>(back->tensor) == std::vector<float>{1, 2});
  t.tensor = sod2::constant_tensor::of_strings({1}, {"hello"});
  const std::string text = sod2::onnx::to_bytes(t);
  back = sod2::onnx::read_tensor(text);
  REQUIRE(back);
  CHECK(back->tensor.strings == std::vector<std::string>{"hello"});
}

TEST_CASE("sequences and optionals") {
  using sod2::fact_kind;
  using sod2::onnx::read_list;
  const message a = raw<float>("a", dtype::f32, {2}, {1, 2});
  const message b = raw<float>("b", dtype::f32, {1}, {3});
  const message both =
      message().text(field::sequence_tensors, a.bytes()).text(field::sequence_tensors, b.bytes());
  const auto check = [](const message& m, fact_kind kind, bool has_value, std::size_t count) {
    const auto list = read_list(m.bytes(), kind);
    REQUIRE(list);
    CHECK(list->has_value == has_value);
    REQUIRE(list->elements.size() == count);
    if (count > 1) CHECK(elements<float>(list->elements[1].tensor) == std::vector<float>{3});
  };
  check(both, fact_kind::sequence, true, 2);
  check(message(), fact_kind::sequence, true, 0);
  check(message().text(field::optional_tensor, a.bytes()), fact_kind::optional, true, 1);
  check(message(), fact_kind::optional, false, 0);
  check(message().text(field::optional_sequence, both.bytes()), fact_kind::optional_sequence, true,
        2);
  check(message().text(field::optional_sequence, ""), fact_kind::optional_sequence, true, 0);
  CHECK(!read_list(message().text(field::sequence_tensors, "\x0a").bytes(), fact_kind::sequence));
}
