// Graphs as files, and annotated files.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>

#include <sod2/graph/view.hpp>
#include <sod2/onnx.hpp>

#include "unit/onnx/craft.hpp"

using namespace craft;
using sod2::dtype;
using sod2::errc;
using sod2::graph;
using sod2::onnx::annotation;

namespace {

// x [N, 4] -> If(c){x + w}else{-x} -> Split -> y, z
graph sample() {
  graph g;
  g.set_opset(17);
  const auto x = g.input("x", dtype::f32, {"N", 4});
  const auto c = g.input("c", dtype::boolean, {});
  const auto w = g.constant<float>("w", {4}, {1, 2, 3, 4});
  const auto then_scope = g.add_scope("then_branch");
  const auto else_scope = g.add_scope("else_branch");
  auto outer = g.enter(then_scope);
  g.output(g.op("Add", {x, w}));
  g.enter(else_scope);
  g.output(g.op("Neg", {x}, {}, "x"));  // a name that the outer graph uses
  g.enter(outer);
  graph::node choice;
  choice.op = "If";
  choice.name = "choice";
  choice.opset = 17;
  choice.inputs = {c};
  choice.outputs = {g.add_value("chosen")};
  choice.scopes = {then_scope, else_scope};
  const auto chosen = choice.outputs[0];
  g.add_node(std::move(choice));
  const auto halves = g.ops("Split", {chosen, sod2::absent}, 2,
                            {{"axis", 1},
                             {"alpha", 0.5},
                             {"mode", "half"},
                             {"sizes", {2, 2}},
                             {"weights", std::vector<float>{1, 2}},
                             {"words", std::vector<std::string>{"a"}}});
  g.output(halves[0], "y");
  g.output(halves[1], "z");
  return g;
}

struct claim {
  std::string text;
  int count = 0;
};
std::string text_of(const sod2::onnx::detail::raw_value_info& v) {
  std::string text = "[";
  for (const auto& d : v.dims)
    text += (d.size >= 0 ? std::to_string(d.size) : d.symbol.empty() ? "?" : d.symbol) + " ";
  return v.has_shape ? text + "]" : "-";
}
// All value infos of a serialised graph by name, sub-graphs as `name/`.
void collect(std::string_view bytes, const std::string& prefix, std::map<std::string, claim>& out) {
  using namespace sod2::onnx::detail;
  for (pbf_reader r = message_of(bytes); r.next();) {
    switch (r.tag_and_type()) {
      case bytes_field(field::graph_input):
      case bytes_field(field::graph_output):
      case bytes_field(field::graph_value_info): {
        const auto v = parse_value_info(sod2::onnx::detail::text_of(r.get_view()));
        claim& c = out[prefix + std::string(v.name)];
        c.text = ::text_of(v);
        ++c.count;
        break;
      }
      case bytes_field(field::graph_node):
        for (std::string_view a :
             parse_node(sod2::onnx::detail::text_of(r.get_view())).attributes) {
          const auto attribute = parse_attribute(a);
          if (!attribute.graph.empty())
            collect(attribute.graph, prefix + std::string(attribute.name) + "/", out);
        }
        break;
      default: r.skip();
    }
  }
}
std::map<std::string, claim> claims_of(std::string_view bytes) {
  using namespace sod2::onnx::detail;
  std::map<std::string, claim> out;
  for (pbf_reader r = message_of(bytes); r.next();)
    if (r.tag_and_type() == bytes_field(field::model_graph))
      collect(sod2::onnx::detail::text_of(r.get_view()), "", out);
    else
      r.skip();
  return out;
}

}  // namespace

TEST_CASE("a graph survives writing and reading") {
  const graph g = sample();
  auto bytes = sod2::onnx::to_bytes(g);
  REQUIRE(bytes);
  auto m = sod2::onnx::read_bytes(*bytes);
  REQUIRE_MESSAGE(m, (m ? std::string() : m.error().text()));
  CHECK(m->nodes_imported == 4);
  CHECK(m->opset_imports[0].version == 17);
  CHECK(m->producer_name == "sod2");
  const graph& back = m->graph;
  CHECK(back.scopes().size() == 3);
  CHECK(back.scopes()[0].inputs.size() == 2);
  REQUIRE(back.scopes()[0].outputs.size() == 2);
  CHECK(back[back.scopes()[0].outputs[1]].name == "z");
  CHECK(elements<float>(back.constants()[0]) == std::vector<float>{1, 2, 3, 4});
  for (const auto& n : back.nodes()) {
    if (n.op == "Neg") CHECK(n.inputs[0] == back.scopes()[0].inputs[0]);
    if (n.op != "Split") continue;
    CHECK(n.inputs[1] == sod2::absent);
    REQUIRE(n.attributes.size() == 6);
    CHECK(n.attributes[1].real == 0.5);
    CHECK(n.attributes[2].string == "half");
    CHECK(n.attributes[3].integers == std::vector<std::int64_t>{2, 2});
    CHECK(n.attributes[4].reals == std::vector<float>{1, 2});
    CHECK(n.attributes[5].strings == std::vector<std::string>{"a"});
  }
  CHECK(sod2::make_view(back).ok());
  // Once written, writing again changes nothing.
  auto again = sod2::onnx::to_bytes(back);
  REQUIRE(again);
  auto third = sod2::onnx::read_bytes(*again);
  REQUIRE(third);
  CHECK(*sod2::onnx::to_bytes(third->graph) == *again);
}

TEST_CASE("nodes of one domain need one opset") {
  graph g;
  g.set_opset(13);
  const auto x = g.input("x", dtype::f32, {1});
  const auto h = g.op("Relu", {x});
  g.set_opset(14);
  g.output(g.op("Relu", {h}), "y");
  CHECK(sod2::onnx::to_bytes(g).error().code() == errc::invalid_argument);
}

TEST_CASE("annotations change shapes and nothing else") {
  const graph g = sample();
  const std::string bytes = *sod2::onnx::to_bytes(g);
  auto m = sod2::onnx::read_bytes(bytes);
  REQUIRE(m);
  CHECK(*sod2::onnx::annotate(*m, {}) == bytes);

  std::vector<annotation> facts(m->graph.values().size());
  for (std::size_t v = 1; v < facts.size(); ++v)
    facts[v] = {sod2::fact_kind::tensor, dtype::f32, true, {"N", "2*L + 1", {}, 7}};
  const sod2::value_id x = m->graph.scopes()[0].inputs[0];
  facts[x.index].dims = {"x.0", 4};
  auto annotated = sod2::onnx::annotate(*m, facts);
  REQUIRE(annotated);
  const auto claims = claims_of(*annotated);
  CHECK(claims.at("x").text == "[x.0 4 ]");
  for (const char* name : {"y", "z", "chosen", "then_branch/v4", "else_branch/x_1"}) {
    REQUIRE_MESSAGE(claims.count(name) == 1, name);
    CHECK(claims.at(name).text == "[N 2*L + 1 ? 7 ]");
    CHECK(claims.at(name).count == 1);
  }
  // Annotating the annotated file the same way changes nothing.
  auto second = sod2::onnx::read_bytes(*annotated);
  REQUIRE(second);
  CHECK(*sod2::onnx::annotate(*second, facts) == *annotated);
  // Where the facts know no rank, the file's own claims stay.
  for (auto& f : facts) f.rank_known = false;
  CHECK(claims_of(*sod2::onnx::annotate(*second, facts)).at("chosen").text == "[N 2*L + 1 ? 7 ]");
}

TEST_CASE("files are written entirely or not at all") {
  namespace fs = std::filesystem;
  const fs::path path = fs::temp_directory_path() / "sod2_onnx_writer.onnx";
  REQUIRE(sod2::onnx::write(sample(), path));
  CHECK(sod2::onnx::read_file(path));
  CHECK(!fs::exists(path.string() + ".partial"));
  fs::remove(path);
  auto failed = sod2::onnx::write_file("/nonexistent/folder/x", "bytes");
  CHECK(failed.error().code() == errc::io);
}
