// A model on the command line: loaded, with the shapes that the options declare.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sod2/graph/view.hpp>
#include <sod2/onnx.hpp>
#include <sod2/rdp/analysis.hpp>

#include "options.hpp"

namespace tool {

/// Stays where it is: the view points into the graph.
struct loaded_model {
  std::string path;
  sod2::onnx::model model;
  sod2::graph_view view;
  double load_ms = 0;
  /// Values that `extra_outputs` made outputs follow the model's own.
  std::size_t own_outputs = 0;
};

/// Reads a model and builds its view, or fails with the file's name. Values called like
/// `extra_outputs` become outputs of the graph.
std::unique_ptr<loaded_model> load_model(const std::string& path,
                                         const std::vector<std::string>& extra_outputs = {});

/// Prints the reader's warnings on stderr. Called where the command succeeded: failures say one
/// line and nothing else.
void print_warnings(const loaded_model& m);

/// What `--dim` and `--shape-input` say.
struct shape_options {
  sod2::analysis_options analysis;
  struct binding {
    std::string name;
    std::int64_t value = 0;
  };
  std::vector<binding> bound;  // NAME=VALUE

  const std::int64_t* value_of(std::string_view name) const {
    for (const binding& b : bound)
      if (b.name == name) return &b.value;
    return nullptr;
  }
};
/// Fails where a name is none of the model's. `bind_in_analysis`: values become facts of the
/// analysis; else they are only listed in `bound`.
shape_options read_shapes(const loaded_model& m, const model_options& o, bool bind_in_analysis);

/// The symbol of an input's dim: its name, or `<input>.<axis>`; empty when the dim has a size.
std::string symbol_of(const sod2::graph_view& view, sod2::value_id input, std::size_t axis);

/// Runs `work` and adds the model's file to what it throws.
template <class Work>
auto with_file(const loaded_model& m, Work&& work) {
  try {
    return work();
  } catch (failure& f) {
    f.error = std::move(f.error).in_file(m.path);
    throw;
  }
}

/// A dim as JSON: number, expression text, or null when unknown.
json dim_json(sod2::dim_context& c, sod2::dim d);

/// A fact as the ONNX writer takes it.
sod2::onnx::annotation annotation_of(sod2::analysis& facts, sod2::value_id v);

}  // namespace tool
