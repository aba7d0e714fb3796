// Backward rules against ONNX's own tests, where the distribution's package has them: the shapes of
// all inputs are hidden, those of the outputs given, and what is inferred has to fit the data.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <sod2/graph/view.hpp>
#include <sod2/onnx/reader.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/rdp/analysis.hpp>

namespace {

namespace fs = std::filesystem;
const fs::path suite = "/usr/share/libonnx-testdata/data";

/// Dims of tensor `name`_`k` of the first data set; false for what is no tensor or not there.
bool dims_of(const fs::path& folder, const char* name, std::size_t k,
             std::vector<std::int64_t>& dims) {
  std::ifstream file(folder / "test_data_set_0" / (name + std::to_string(k) + ".pb"),
                     std::ios::binary);
  if (!file) return false;
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto read = sod2::onnx::read_tensor(bytes);
  if (!read) return false;
  dims = read->tensor.dims;
  return true;
}

}  // namespace

TEST_CASE("shapes of hidden inputs, inferred from outputs, are those of the data") {
  if (!fs::exists(suite)) {
    MESSAGE("the package libonnx-testdata is not installed");
    return;
  }
  std::size_t inferred = 0;
  std::set<std::string> operators;
  for (const auto& entry : fs::recursive_directory_iterator(suite)) {
    if (entry.path().filename() != "model.onnx") continue;
    const fs::path folder = entry.path().parent_path();
    CAPTURE(folder.filename().string());
    auto model = sod2::onnx::read_file(entry.path());
    REQUIRE(model);
    sod2::graph& g = model->graph;
    const auto& root = g.scopes()[0];
    for (const sod2::value_id v : root.inputs)
      if (!sod2::is_container(g[v].kind)) {
        g.values()[v.index].has_shape = false;
        g.values()[v.index].dims.clear();
      }
    for (std::size_t k = 0; k < root.outputs.size(); ++k) {
      std::vector<std::int64_t> dims;
      sod2::graph::value& value = g.values()[root.outputs[k].index];
      if (sod2::is_container(value.kind) || !dims_of(folder, "output_", k, dims)) continue;
      value.has_shape = true;
      value.is_hint = false;
      value.dims.assign(dims.begin(), dims.end());
    }
    const auto view = sod2::make_view(g);
    REQUIRE(view);
    auto facts = sod2::analyze(*view, sod2::standard_registry());
    if (!facts) {
      CAPTURE(facts.error().text());
      CHECK(facts.error().code() == sod2::errc::rank_unknown);
      continue;
    }
    for (std::size_t k = 0; k < view->inputs().size(); ++k) {
      const sod2::symbolic_fact& f = facts->fact(view->inputs()[k]);
      std::vector<std::int64_t> dims;
      if (sod2::is_container(f.kind) || !f.rank_known() || !dims_of(folder, "input_", k, dims))
        continue;
      CAPTURE(k);
      CAPTURE(facts->text(view->inputs()[k]));
      REQUIRE(f.dims.size() == dims.size());
      sod2::dim_context& c = facts->context();
      for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        if (!f.dims[axis].is_known()) continue;
        const sod2::interval range = c.bounds(c.resolve(f.dims[axis]));
        CHECK(range.contains(dims[axis]));
        if (!range.is_point()) continue;
        ++inferred;
        operators.emplace(view->operator_name(sod2::node_id{0U}));
      }
    }
  }
  // Most operators say something of their inputs.
  CHECK(inferred >= 1000);
  CHECK(operators.size() >= 80);
  MESSAGE(inferred, " dims of inputs of ", operators.size(), " operators inferred");
}
