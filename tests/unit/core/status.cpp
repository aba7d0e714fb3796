#include <doctest/doctest.h>

#include <string>
#include <utility>

#include <sod2/core/status.hpp>

using namespace sod2;

namespace {
result<int> parse_digit(char c) {
  if (c < '0' || c > '9') return error(errc::parse, "not a digit");
  return c - '0';
}
result<int> sum(const char* text) {
  int total = 0;
  for (; *text != '\0'; ++text) {
    SOD2_ASSIGN(const int digit, parse_digit(*text));
    total += digit;
  }
  return total;
}
status check(const char* text) {
  SOD2_TRY(sum(text));
  return {};
}
}  // namespace

TEST_CASE("results carry a value or an error") {
  CHECK(*sum("123") == 6);
  CHECK(sum("1x").error().code() == errc::parse);
  CHECK(check("42").ok());
  CHECK_FALSE(check("4.2").ok());
  result<std::string> text = std::string(100, 'a');
  result<std::string> moved = std::move(text);
  CHECK(moved->size() == 100);
  moved = error(errc::io, "gone");
  CHECK_FALSE(moved.ok());
  moved = result<std::string>(std::string("back"));
  CHECK(*moved == "back");
}

TEST_CASE("an error is one line with everything that is known") {
  error e = error(errc::dim_mismatch, "dimensions do not agree")
                .at_tensor("x", 2)
                .between("H", "64")
                .at_node("add");
  CHECK(e.text() == "node 'add': tensor 'x' axis 2: dimensions do not agree (H vs 64)");
  error inner = std::move(e).at_node("outer").in_file("m.onnx");
  CHECK(inner.detail().node == "add");  // the innermost layer wins
  CHECK(inner.text().substr(0, 8) == "m.onnx: ");
  CHECK(inner.clone().text() == inner.text());
  CHECK(error(errc::overflow).text() == text_of(errc::overflow));
  CHECK(error(errc::io, "two\nlines").text() == "two lines");
  CHECK(error().ok());
}

TEST_CASE("every code has a sentence") {
  for (int code = 0; code < 600; ++code) {
    const std::string_view text = text_of(static_cast<errc>(code));
    CHECK_FALSE(text.empty());
    CHECK(text.back() != '.');
  }
}
