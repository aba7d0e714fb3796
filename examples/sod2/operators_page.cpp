#include "operators_page.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/onnx.hpp>

namespace tool {

namespace {
/// Why operators that have shape rules do not run, other than that nobody wrote a kernel.
constexpr std::pair<std::string_view, std::string_view> not_run[] = {
    {"Adagrad", "training preview"},
    {"Adam", "training preview"},
    {"Gradient", "training preview: needs automatic differentiation"},
    {"ImageDecoder", "needs decoders of image files"},
    {"Momentum", "training preview"},
    {"RegexFullMatch", "needs a regular-expression engine with RE2's syntax"},
    {"StringSplit", "no kernel yet: makes strings whose number only a run knows"},
};

constexpr std::string_view head =
    R"(# Operators

<!-- Written by `sod2 ops --markdown`; the test operators_page compares. -->

Every operator that `standard_registry()` knows, up to opset {opset} of the default domain.

- **versions**: the opsets in which the operator's meaning or types changed, all of them covered; a model's opset selects the newest that is not above it.
- **class**: what decides the output, before anything is known of a node: ISDO, input shapes decide shape and value; ISDOS, input shapes decide the shape; ISVDOS, shapes and some values; EDO, only execution. **values**: the inputs, from 0, whose elements the shape rule reads. A node where these are constants or functions of shapes is as good as ISDOS; `sod2 analyze` tells the classes of a model's nodes.
- **mapping**: DNNFusion's mapping types, which decide what may be fused.
- **rules**: shapes go forward in all operators; *backward*, outputs refine inputs; *value*, elements of small tensors are followed.
- **types**: element types that run, found by running a small node of the newest version: of input 0, or of the output where the operator makes its elements. `float`: float16, bfloat16, float32, float64. `int`: int8 to int64, uint8 to uint64. `float8`: all four 8-bit floats. `int4`: int4, uint4. `complex`: complex64, complex128. `all`: these, bool and string.
- **runs as**: *tile*, instructions that fuse with their neighbours; *kernel*, a launch of its own; *runtime*, the session itself (control flow, sequences, constants); *shapes only*, analysed but not run. Behind it the versions, if not all.
)";

constexpr std::string_view tail = R"(
## Operators that are not there

A model that uses one of them is refused with the node, operator, domain and opset; an operator of your own takes a struct and, to run, a row of a kernel table ([architecture](architecture.md)).

| domain | operators | why |
|---|---|---|
| ai.onnx | ATen, Affine, Crop, DynamicSlice, GRUUnit, GivenTensorFill, ImageScaler, ParametricSoftplus, Scale, ScaledTanh | experimental: never part of the standard, and removed |
| ai.onnx.ml | ArrayFeatureExtractor, Binarizer, CastMap, CategoryMapper, DictVectorizer, FeatureVectorizer, Imputer, LabelEncoder, LinearClassifier, LinearRegressor, Normalizer, OneHotEncoder, SVMClassifier, SVMRegressor, Scaler, TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor, ZipMap | classical machine learning, partly on maps; comes later |
| com.microsoft | all, FusedMatMul, Attention, SkipLayerNormalization and MatMulNBits among them | results of ONNX Runtime's own optimiser: export the model without it; comes later |
| any other | all | somebody's own: register them. Functions that the model brings along are inlined |

`Scatter` and `Upsample` left the standard with opsets 11 and 10; models of later opsets that still hold them are read as if they had not.

Element types that nothing takes: float4e2m1, float6e2m3, float6e3m2, float8e8m0, int2, uint2.

Tests of ONNX that `sod2 test --onnx-suite` skips, nothing else: results that depend on the generator of random numbers (Bernoulli, Dropout in training mode), and the training preview.
)";

std::string text_of(const json& v) {
  return v.is_string() ? v.get<std::string>() : std::to_string(v.get<int>());
}
std::string replaced(std::string_view text, std::string_view what, const std::string& with) {
  std::string out(text);
  return out.replace(out.find(what), what.size(), with);
}
bool only_shapes(const json& op) { return op["dtypes"].empty(); }

std::string rules_text(const json& op) {
  std::string text = op["backward"].get<bool>() ? "backward" : "";
  if (op["value"].get<bool>()) text += text.empty() ? "value" : ", value";
  return text;
}
}  // namespace

std::string joined(const json& list) {
  std::string text;
  for (const json& v : list) text += (text.empty() ? "" : ", ") + text_of(v);
  return text;
}
std::string values_text(const json& op) {
  return op["value_inputs"].empty() ? "-" : joined(op["value_inputs"]);
}
std::string dtypes_text(const json& op) {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> families = {
      {"float", {"float16", "bfloat16", "float32", "float64"}},
      {"int", {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}},
      {"float8", {"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"}},
      {"int4", {"int4", "uint4"}},
      {"complex", {"complex64", "complex128"}},
      {"bool", {"bool"}},
      {"string", {"string"}}};
  auto rest = op["dtypes"].get<std::vector<std::string>>();
  std::string whole, missing;
  std::size_t complete = 0;
  const auto add = [](std::string& list, const std::string& name) {
    list += (list.empty() ? "" : ", ") + name;
  };
  for (const auto& [name, members] : families) {
    const auto has = [&](const std::string& m) {
      return std::find(rest.begin(), rest.end(), m) != rest.end();
    };
    if (!std::all_of(members.begin(), members.end(), has)) {
      add(missing, name);
      continue;
    }
    ++complete;
    add(whole, name);
    std::erase_if(rest, [&members = members](const std::string& type) {
      return std::find(members.begin(), members.end(), type) != members.end();
    });
  }
  if (missing.empty()) return "all";
  if (rest.empty() && complete + 2 >= families.size()) return "all but " + missing;
  for (const std::string& type : rest) add(whole, type);
  return whole.empty() ? "-" : whole;
}
std::string kernels_text(const json& op) {
  if (only_shapes(op)) return "shapes only";
  std::string text = joined(op["kernels"]);
  if (op["kernel_versions"] != op["versions"]) text += " (" + joined(op["kernel_versions"]) + ")";
  return text;
}

std::string operators_table(const json& list) {
  std::string out =
      "| operator | versions | class | values | mapping | inputs | outputs | rules | types | runs "
      "as |\n|---|---|---|---|---|---|---|---|---|---|\n";
  for (const json& op : list) {
    const auto column = [&](const std::string& text) { out += " | " + text; };
    out += "| [" + op["name"].get<std::string>() + "](../include/" +
           op["header"].get<std::string>() + ")";
    column(joined(op["versions"]));
    column(op["class"]);
    column(values_text(op));
    column(op["mapping"]);
    column(op["inputs"]);
    column(op["outputs"]);
    column(rules_text(op));
    column(dtypes_text(op));
    column(kernels_text(op));
    out += " |\n";
  }
  return out;
}

std::string operators_page(const json& list) {
  std::string out = replaced(head, "{opset}", std::to_string(sod2::onnx::newest_known_opset));
  for (std::size_t begin = 0; begin < list.size();) {
    const std::string domain = list[begin]["domain"];
    json part = json::array();
    for (; begin < list.size() && list[begin]["domain"] == domain; ++begin)
      part.push_back(list[begin]);
    out += "\n## " + (domain.empty() ? "ai.onnx" : domain) + " (" + std::to_string(part.size()) +
           ")\n\n" + operators_table(part);
  }
  out += "\n## Operators that do not run\n\n| operator | why |\n|---|---|\n";
  for (const json& op : list) {
    if (!only_shapes(op)) continue;
    const std::string name = op["name"];
    const auto* const found = std::find_if(std::begin(not_run), std::end(not_run),
                                           [&](const auto& entry) { return entry.first == name; });
    out += "| " + name + " | " +
           std::string(found != std::end(not_run) ? found->second
                       : op["kernels"].empty()    ? "no kernel yet"
                                                  : "its example in probe.cpp fails") +
           " |\n";
  }
  return out.append(tail);
}

}  // namespace tool
