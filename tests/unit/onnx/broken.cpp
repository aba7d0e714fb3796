// Files that are cut, random or changed: an error of one line, never a crash or a huge allocation.
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <random>

#include <sod2/graph/view.hpp>
#include <sod2/onnx.hpp>

#include "unit/onnx/craft.hpp"

using namespace craft;
using sod2::dtype;
using sod2::errc;
using sod2::onnx::read_bytes;

namespace {

// Something of everything that the reader knows.
std::string rich_model() {
  const message then_graph = message()
                                 .add(field::graph_node, node("Add", {"x", "w"}, {"t"}))
                                 .add(field::graph_output, info("t"));
  const message else_graph = message()
                                 .add(field::graph_initializer, scalar("v", 3))
                                 .add(field::graph_node, node("Mul", {"x", "v"}, {"e"}))
                                 .add(field::graph_output, info("e", dtype::f32, {"N", 4}));
  message g = small_graph();
  g.add(field::graph_initializer, raw<float>("w", dtype::f32, {4}, {1, 2, 3, 4}));
  g.add(field::graph_initializer,
        tensor("typed", dtype::f16, {2}).packed(field::tensor_int32_data, {15360, 0}));
  g.add(field::graph_initializer,
        tensor("text", dtype::string, {1}).text(field::tensor_string_data, "word"));
  g.add(field::graph_sparse_initializer,
        message()
            .add(field::sparse_values, raw<float>("sp", dtype::f32, {2}, {5, 7}))
            .add(field::sparse_indices, raw<std::int64_t>("", dtype::i64, {2}, {1, 5}))
            .packed(field::sparse_dims, {2, 3}));
  g.add(field::graph_node, constant("c", 1));
  g.add(field::graph_node,
        node("If", {"c"}, {"q"}, "choice")
            .add(field::node_attribute, graph_attribute("then_branch", then_graph))
            .add(field::node_attribute, graph_attribute("else_branch", else_graph)));
  g.add(field::graph_node, node("F", {"x"}, {"z"}).text(field::node_domain, "local"));
  g.add(field::graph_value_info, info("q", dtype::f32, {"N", 4}));
  const message function = message()
                               .text(field::function_name, "F")
                               .text(field::function_domain, "local")
                               .text(field::function_input, "a")
                               .text(field::function_output, "b")
                               .add(field::function_node, node("Abs", {"a"}, {"b"}))
                               .add(field::function_opset_import, import("", 17));
  return model(g).add(field::model_functions, function).bytes();
}

// Reads, and does with the result what a program would. True when it was accepted.
bool survive(const std::string& bytes) {
  auto m = read_bytes(bytes);
  if (!m) {
    const std::string text = m.error().text();
    CHECK(!text.empty());
    CHECK(text.find('\n') == std::string::npos);
    return false;
  }
  CHECK(sod2::onnx::annotate(*m, {}));
  static_cast<void>(sod2::onnx::to_bytes(m->graph));
  static_cast<void>(sod2::make_view(m->graph));
  return true;
}

}  // namespace

TEST_CASE("the model itself is good") { CHECK(survive(rich_model())); }

TEST_CASE("nothing, garbage, and files that do not exist") {
  CHECK(!survive(""));
  CHECK(!survive("this is no model, just a sentence"));
  CHECK(!survive(std::string(100, '\0')));
  CHECK(!survive(std::string(100, '\xff')));
  std::mt19937_64 random(7);
  for (int k = 0; k < 2000; ++k) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    survive(bytes);
  }
  auto missing = sod2::onnx::read_file("/nonexistent/model.onnx");
  REQUIRE(!missing);
  CHECK(missing.error().code() == errc::io);
  CHECK(missing.error().detail().file == "/nonexistent/model.onnx");
  CHECK(!sod2::onnx::read_file("/dev/null"));
  CHECK(!sod2::onnx::read_file(std::filesystem::temp_directory_path() / "no_such_folder"));
}

TEST_CASE("cut at every byte") {
  const std::string bytes = rich_model();
  // The import and the function follow the graph, so a cut before them is never a whole model.
  const std::size_t graph_end = model(message()).bytes().size() - 2;
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const bool accepted = survive(bytes.substr(0, n));
    if (n < bytes.size() - 60 - graph_end) CHECK_MESSAGE(!accepted, n);
  }
}

TEST_CASE("changed bytes") {
  const std::string original = rich_model();
  std::mt19937_64 random(11);
  for (int k = 0; k < 6000; ++k) {
    std::string bytes = original;
    for (std::size_t changes = 1 + random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8))); break;
        case 2: bytes.erase(at, 1 + random() % 4); break;
        default: bytes.insert(at, 1 + random() % 4, static_cast<char>(random()));
      }
      if (bytes.empty()) bytes.push_back('\0');
    }
    survive(bytes);
  }
}
