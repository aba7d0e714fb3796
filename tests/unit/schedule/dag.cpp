#include <doctest/doctest.h>

#include <string>

#include <sod2/schedule.hpp>

using namespace sod2;

TEST_CASE("a DAG file becomes values and nodes, sinks are outputs") {
  auto file = read_order_dag("# cell\nin 100\na 40 in\nb\t8 a in \r\n\nc 8 a a\n");
  REQUIRE(file.ok());
  CHECK(file->ids.size() == 4);
  CHECK(file->ids[2] == "b");
  const order_problem& p = file->problem;
  CHECK(p.nodes[2].inputs.size() == 2);
  CHECK(p.nodes[3].inputs.size() == 1);
  CHECK(!p.values[0].is_output);
  CHECK(p.values[2].is_output);
  CHECK(p.values[3].is_output);
  // in, a: 140; b: 148, then in dies; c: 40 + 8 + 8.
  CHECK(order_given(p).peak_bytes == 148);
  CHECK(order_best(p).exact);
}

TEST_CASE("nodes may come in any order") {
  auto file = read_order_dag("b 1 a\na 2\n");
  REQUIRE(file.ok());
  CHECK(order_given(file->problem).order[0] == 1);
}

TEST_CASE("malformed files are refused with a line") {
  const auto message = [](std::string_view text) {
    auto file = read_order_dag(text);
    return file.ok() ? std::string("accepted") : std::string(file.error().message());
  };
  CHECK(message("") == "accepted");
  CHECK(message("a\n") == "line 1: the number of bytes is missing");
  CHECK(message("a x\n") == "line 1: 'x' is no number of bytes");
  CHECK(message("a -1\n") == "line 1: '-1' is no number of bytes");
  CHECK(message("a 99999999999999999999\n") ==
        "line 1: '99999999999999999999' is no number of bytes");
  CHECK(message("a 1 b\n") == "line 1: node 'b' is not defined");
  CHECK(message("a 1\na 2\n") == "node 'a' appears twice");
  CHECK(message("a 1 b\nb 1 a\n") == "no order exists: the nodes form a cycle");
}
