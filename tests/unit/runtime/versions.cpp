// What a model of an older opset means: nodes whose meaning changed, each at the opsets around the
// change, with results worked out by hand from the standard's text.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "unit/runtime/support.hpp"

using namespace sod2;

namespace {

/// Tensors are text: `[TYPE] DIMS: ELEMENTS`, float32 without a type; `-` is left out.
struct host {
  dtype type = dtype::undefined;
  std::vector<std::int64_t> dims;
  std::vector<double> elements;
  std::vector<std::byte> bytes;
};
host parse(std::string text) {
  host t;
  if (text.find(':') == std::string::npos) return t;
  t.type = dtype::f32;
  const std::pair<const char*, dtype> types[] = {{"i64 ", dtype::i64},      {"i32 ", dtype::i32},
                                                 {"i8 ", dtype::i8},        {"u8 ", dtype::u8},
                                                 {"bool ", dtype::boolean}, {"f64 ", dtype::f64}};
  for (const auto& [name, type] : types)
    if (text.rfind(name, 0) == 0) {
      t.type = type;
      text.erase(0, std::strlen(name));
    }
  const std::size_t colon = text.find(':');
  std::istringstream dims(text.substr(0, colon)), elements(text.substr(colon + 1));
  for (std::int64_t d = 0; dims >> d; dims.ignore()) t.dims.push_back(d);
  for (double v = 0; elements >> v;) {
    t.elements.push_back(v);
    const std::size_t width = bytes_of(t.type);
    t.bytes.resize(t.bytes.size() + width);
    std::byte* to = t.bytes.data() + t.bytes.size() - width;
    const auto narrow = static_cast<float>(v);
    const auto whole = static_cast<std::int64_t>(v);
    if (t.type == dtype::f32)
      std::memcpy(to, &narrow, width);
    else if (t.type == dtype::f64)
      std::memcpy(to, &v, width);
    else
      std::memcpy(to, &whole, width);
  }
  return t;
}
std::vector<host> parse_all(const std::string& text) {
  std::vector<host> out;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find(';', begin);
    if (end == std::string::npos) end = text.size();
    out.push_back(parse(text.substr(begin, end - begin)));
    begin = end + 1;
    while (begin < text.size() && text[begin] == ' ') ++begin;
  }
  return out;
}
double element(const tensor_view& t, std::int64_t i) {
  switch (t.type) {
    case dtype::f32: return static_cast<double>(t.as<float>()[i]);
    case dtype::f64: return t.as<double>()[i];
    case dtype::i64: return static_cast<double>(t.as<std::int64_t>()[i]);
    case dtype::i32: return t.as<std::int32_t>()[i];
    case dtype::i8: return t.as<std::int8_t>()[i];
    default: return t.as<std::uint8_t>()[i];
  }
}

struct meaning {
  const char* op;
  int opset;
  const char* inputs;
  std::vector<attribute> attributes;
  const char* outputs;  // those that are `-` are not asked for
};

/// Empty when the node gives what it should.
std::string failure(const meaning& m) {
  graph g;
  g.set_opset(m.opset);
  std::vector<host> inputs = parse_all(m.inputs);
  const std::vector<host> outputs = parse_all(m.outputs);
  std::vector<value_id> operands;
  std::vector<tensor_view> given;
  for (host& t : inputs) {
    const std::string name = "x" + std::to_string(operands.size());
    if (t.type == dtype::undefined) {
      operands.push_back(absent);
    } else if (t.type == dtype::i64) {
      operands.push_back(g.constant(
          name, constant_tensor::copy_of(t.type, t.dims, t.bytes.data(), t.bytes.size())));
    } else {
      operands.push_back(
          g.input(name, t.type, std::vector<dim_spec>(t.dims.begin(), t.dims.end())));
      given.push_back(
          {t.bytes.data(), t.dims.data(), static_cast<std::uint32_t>(t.dims.size()), t.type});
    }
  }
  const std::vector<value_id> results = g.ops(m.op, operands, outputs.size(), m.attributes);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (outputs[i].type != dtype::undefined) g.output(results[i], "y" + std::to_string(i));

  const auto view = make_view(g);
  if (!view) return view.error().text();
  const auto p = compile(*view, standard_registry(), standard_kernels());
  if (!p) return p.error().text();
  session s(*p);
  if (const status ran = s.run(given); !ran) return ran.error().text();
  std::size_t at = 0;
  for (const host& expected : outputs) {
    if (expected.type == dtype::undefined) continue;
    const tensor_view& got = s.output(at++);
    if (got.type != expected.type) return "type " + std::string(name_of(got.type));
    if (std::vector<std::int64_t>(got.shape().begin(), got.shape().end()) != expected.dims)
      return "other dims";
    for (std::int64_t i = 0; i < got.count(); ++i) {
      const double v = element(got, i), wanted = expected.elements[static_cast<std::size_t>(i)];
      if (!(std::abs(v - wanted) <= 1e-4 * std::max(1.0, std::abs(wanted))))
        return "element " + std::to_string(i) + " is " + std::to_string(v) + ", not " +
               std::to_string(wanted);
    }
  }
  return {};
}

const std::vector<meaning>& meanings() {
  static const std::vector<meaning> list = {
      // broadcasting of the second operand at an axis, then as in NumPy
      {"Add",
       6,
       "2,3: 1 2 3 4 5 6; 2: 10 20",
       {{"broadcast", 1}, {"axis", 0}},
       "2,3: 11 12 13 24 25 26"},
      {"Add", 7, "2,2: 1 2 3 4; 2: 10 20", {}, "2,2: 11 22 13 24"},
      {"Sub", 1, "2,3: 1 2 3 4 5 6; 2: 1 2", {{"broadcast", 1}, {"axis", 0}}, "2,3: 0 1 2 2 3 4"},
      {"Sub", 7, "2: 10 20; 2,2: 1 2 3 4", {}, "2,2: 9 18 7 16"},
      {"Mul",
       6,
       "1,2,2: 1 2 3 4; 2: 10 100",
       {{"broadcast", 1}, {"axis", 1}},
       "1,2,2: 10 20 300 400"},
      {"Mul", 7, "1,2,2: 1 2 3 4; 2: 10 100", {}, "1,2,2: 10 200 30 400"},
      {"Div", 6, "2,2: 2 4 9 12; 2: 2 3", {{"broadcast", 1}, {"axis", 0}}, "2,2: 1 2 3 4"},
      {"Div", 7, "2,2: 2 9 4 12; 2: 2 3", {}, "2,2: 1 3 2 4"},
      {"Pow", 1, "2,2: 1 2 3 4; 2: 1 2", {{"broadcast", 1}, {"axis", 0}}, "2,2: 1 2 9 16"},
      {"Pow", 7, "2,2: 1 2 3 4; 2: 1 2", {}, "2,2: 1 4 3 16"},
      {"Pow", 12, "2: 2 3; i32 2: 3 2", {}, "2: 8 9"},
      {"And",
       1,
       "bool 2,2: 1 1 1 0; bool 2: 1 0",
       {{"broadcast", 1}, {"axis", 0}},
       "bool 2,2: 1 1 0 0"},
      {"And", 7, "bool 2,2: 1 1 1 0; bool 2: 1 0", {}, "bool 2,2: 1 0 1 0"},
      {"Or",
       1,
       "bool 2,2: 1 0 0 0; bool 2: 0 1",
       {{"broadcast", 1}, {"axis", 0}},
       "bool 2,2: 1 0 1 1"},
      {"Or", 7, "bool 2,2: 1 0 0 0; bool 2: 0 1", {}, "bool 2,2: 1 1 0 1"},
      {"Xor",
       1,
       "bool 2,2: 1 0 1 0; bool 2: 0 1",
       {{"broadcast", 1}, {"axis", 0}},
       "bool 2,2: 1 0 0 1"},
      {"Xor", 7, "bool 2,2: 1 0 1 0; bool 2: 0 1", {}, "bool 2,2: 1 1 1 1"},
      {"Equal",
       1,
       "i32 2,2: 1 2 2 1; i32 2: 1 2",
       {{"broadcast", 1}, {"axis", 0}},
       "bool 2,2: 1 0 1 0"},
      {"Equal", 7, "i32 2,2: 1 2 2 1; i32 2: 1 2", {}, "bool 2,2: 1 1 0 0"},
      {"Equal", 11, "2: 1.5 2; 2: 1.5 3", {}, "bool 2: 1 0"},
      {"Greater", 1, "2,2: 1 2 3 1; 2: 1 2", {{"broadcast", 1}, {"axis", 0}}, "bool 2,2: 0 1 1 0"},
      {"Greater", 7, "2,2: 1 2 3 1; 2: 1 2", {}, "bool 2,2: 0 0 1 0"},
      {"Less", 1, "2,2: 0 2 3 1; 2: 1 2", {{"broadcast", 1}, {"axis", 0}}, "bool 2,2: 1 0 0 1"},
      {"Less", 7, "2,2: 0 2 3 1; 2: 1 2", {}, "bool 2,2: 1 0 0 1"},
      {"PRelu", 6, "1,2,2: -1 -2 -3 -4; 2: 10 100", {}, "1,2,2: -10 -20 -300 -400"},
      {"PRelu", 7, "1,2,2: -1 -2 -3 -4; 2: 10 100", {}, "1,2,2: -10 -200 -30 -400"},
      {"Max", 6, "2: 1 5; 2: 3 2", {}, "2: 3 5"},
      {"Max", 8, "2,2: 1 5 2 6; 2: 3 4", {}, "2,2: 3 5 3 6"},
      {"Min", 8, "2,2: 1 5 2 6; 2: 3 4", {}, "2,2: 1 4 2 4"},
      {"Sum", 8, "2,2: 1 5 2 6; 2: 3 4", {}, "2,2: 4 9 5 10"},
      {"Mean", 8, "2,2: 1 5 2 6; 2: 3 4", {}, "2,2: 2 4.5 2.5 5"},
      {"Gemm", 6, "1,2: 1 2; 2,2: 1 0 0 1; 2: 10 20", {{"broadcast", 1}}, "1,2: 11 22"},
      {"Gemm", 7, "2,2: 1 2 3 4; 2,2: 1 0 0 1; 2,1: 10 20", {}, "2,2: 11 12 23 24"},
      {"Gemm", 11, "1,2: 1 2; 2,2: 1 0 0 1", {}, "1,2: 1 2"},
      // one axis and all behind it, then one axis
      {"Softmax", 11, "1,2,2: 0 0 0 0", {}, "1,2,2: 0.25 0.25 0.25 0.25"},
      {"Softmax", 13, "1,2,2: 0 0 0 0", {}, "1,2,2: 0.5 0.5 0.5 0.5"},
      {"LogSoftmax",
       11,
       "1,2,2: 0 0 0 0",
       {},
       "1,2,2: -1.3862944 -1.3862944 -1.3862944 -1.3862944"},
      {"LogSoftmax",
       13,
       "1,2,2: 0 0 0 0",
       {},
       "1,2,2: -0.6931472 -0.6931472 -0.6931472 -0.6931472"},
      {"Hardmax", 11, "1,2,2: 1 2 4 3", {}, "1,2,2: 0 0 1 0"},
      {"Hardmax", 13, "1,2,2: 1 2 4 3", {}, "1,2,2: 0 1 1 0"},
      {"Flatten", 9, "2,1,2: 1 2 3 4", {{"axis", 2}}, "2,2: 1 2 3 4"},
      {"Flatten", 11, "2,1,2: 1 2 3 4", {{"axis", -3}}, "1,4: 1 2 3 4"},
      {"Concat", 1, "1,2: 1 2; 1,2: 3 4", {}, "1,4: 1 2 3 4"},
      {"Concat", 4, "1,2: 1 2; 1,2: 3 4", {{"axis", 0}}, "2,2: 1 2 3 4"},
      {"Concat", 11, "1,2: 1 2; 1,2: 3 4", {{"axis", -2}}, "2,2: 1 2 3 4"},
      {"Gather", 11, "3: 1 2 3; i64 2: -1 0", {}, "2: 3 1"},
      {"ArgMax", 11, "4: 1 3 3 2", {{"axis", 0}, {"keepdims", 0}}, "i64 : 1"},
      {"ArgMax",
       12,
       "4: 1 3 3 2",
       {{"axis", 0}, {"keepdims", 0}, {"select_last_index", 1}},
       "i64 : 2"},
      {"ArgMin",
       12,
       "4: 1 3 1 2",
       {{"axis", 0}, {"keepdims", 0}, {"select_last_index", 1}},
       "i64 : 2"},
      // attributes that became inputs
      {"Clip", 6, "3: -5 0.5 5", {{"min", -1.0}, {"max", 1.0}}, "3: -1 0.5 1"},
      {"Clip", 11, "3: -5 0.5 5; : -1; : 1", {}, "3: -1 0.5 1"},
      {"Clip", 12, "i32 3: -5 0 5; -; i32 : 1", {}, "i32 3: -5 0 1"},
      {"Cast", 1, "2: 1.5 -2.5", {{"to", "INT32"}}, "i32 2: 1 -2"},
      {"Cast", 6, "2: 1.5 -2.5", {{"to", 6}}, "i32 2: 1 -2"},
      {"TopK", 1, "3: 1 3 2", {{"k", 2}}, "2: 3 2; i64 2: 1 2"},
      {"TopK", 10, "3: 1 3 2; i64 1: 2", {}, "2: 3 2; i64 2: 1 2"},
      {"TopK", 11, "3: 1 3 2; i64 1: 2", {{"largest", 0}}, "2: 1 2; i64 2: 0 2"},
      {"Slice", 1, "4: 1 2 3 4", {{"starts", {1}}, {"ends", {3}}}, "2: 2 3"},
      {"Slice", 10, "4: 1 2 3 4; i64 1: 0; i64 1: 4; -; i64 1: 2", {}, "2: 1 3"},
      {"Slice", 11, "2,2: 1 2 3 4; i64 1: -1; i64 1: -3; i64 1: -1; i64 1: -1", {}, "2,2: 2 1 4 3"},
      {"Split", 2, "3: 1 2 3", {{"split", {1, 2}}}, "1: 1; 2: 2 3"},
      {"Split", 13, "3: 1 2 3; i64 2: 2 1", {}, "2: 1 2; 1: 3"},
      {"Split", 18, "3: 1 2 3", {{"num_outputs", 2}}, "2: 1 2; 1: 3"},
      {"Squeeze", 11, "1,2,1: 1 2", {{"axes", {-1}}}, "1,2: 1 2"},
      {"Squeeze", 13, "1,2,1: 1 2; i64 1: 0", {}, "2,1: 1 2"},
      {"Unsqueeze", 1, "2: 1 2", {{"axes", {0, 2}}}, "1,2,1: 1 2"},
      {"Unsqueeze", 11, "2: 1 2", {{"axes", {-1}}}, "2,1: 1 2"},
      {"Unsqueeze", 13, "2: 1 2; i64 1: 0", {}, "1,2: 1 2"},
      {"Reshape", 1, "2,2: 1 2 3 4", {{"shape", {0, 1, -1}}}, "2,1,2: 1 2 3 4"},
      {"Reshape", 5, "2,2: 1 2 3 4; i64 2: -1 1", {}, "4,1: 1 2 3 4"},
      {"Reshape", 13, "2,3: 1 2 3 4 5 6; i64 2: 0 3", {}, "2,3: 1 2 3 4 5 6"},
      {"Reshape", 14, "0,3: ; i64 2: 3 0", {{"allowzero", 1}}, "3,0:"},
      {"Pad", 1, "2: 1 2", {{"paddings", {1, 0}}}, "3: 0 1 2"},
      {"Pad", 2, "2: 1 2", {{"pads", {0, 1}}, {"value", 7.0}}, "3: 1 2 7"},
      {"Pad", 11, "2: 1 2; i64 2: 1 1; : 7", {}, "4: 7 1 2 7"},
      {"Pad", 18, "1,2: 1 2; i64 2: 0 1; : 7; i64 1: -1", {}, "1,3: 1 2 7"},
      {"Pad", 19, "3: 1 2 3; i64 2: 1 2", {{"mode", "wrap"}}, "6: 3 1 2 3 1 2"},
      {"Upsample",
       7,
       "1,1,1,2: 1 2",
       {{"scales", std::vector<float>{1, 1, 1, 2}}},
       "1,1,1,4: 1 1 2 2"},
      {"Upsample", 9, "1,1,1,2: 1 2; 4: 1 1 2 1", {}, "1,1,2,2: 1 2 1 2"},
      {"Dropout", 6, "2: 1 2", {{"is_test", 1}}, "2: 1 2"},
      {"Dropout", 7, "2: 1 2", {{"ratio", 0.9}}, "2: 1 2"},
      {"Dropout", 12, "2: 1 2; : 0.9", {}, "2: 1 2; bool 2: 1 1"},
      {"ReduceSum", 11, "2,2: 1 2 3 4", {{"axes", {-1}}, {"keepdims", 0}}, "2: 3 7"},
      {"ReduceSum", 13, "2,2: 1 2 3 4; i64 1: 0", {{"keepdims", 0}}, "2: 4 6"},
      {"ReduceSum", 13, "2: 1 2; i64 0:", {{"noop_with_empty_axes", 1}}, "2: 1 2"},
      {"ReduceL1", 13, "2,2: 1 -2 3 4", {{"axes", {1}}, {"keepdims", 0}}, "2: 3 7"},
      {"ReduceL1", 18, "2,2: 1 -2 3 4; i64 1: 1", {{"keepdims", 0}}, "2: 3 7"},
      {"ReduceL2", 13, "1,2: 3 4", {{"axes", {1}}}, "1,1: 5"},
      {"ReduceL2", 18, "1,2: 3 4; i64 1: 1", {}, "1,1: 5"},
      {"ReduceLogSum", 13, "1,2: 3 4", {{"axes", {1}}}, "1,1: 1.9459101"},
      {"ReduceLogSum", 18, "1,2: 3 4; i64 1: 1", {}, "1,1: 1.9459101"},
      {"ReduceLogSumExp", 13, "1,2: 0 0", {{"axes", {1}}}, "1,1: 0.6931472"},
      {"ReduceLogSumExp", 18, "1,2: 0 0; i64 1: 1", {}, "1,1: 0.6931472"},
      {"ReduceMax", 13, "2,2: 1 2 4 3", {{"axes", {0}}}, "1,2: 4 3"},
      {"ReduceMax", 18, "2,2: 1 2 4 3; i64 1: 0", {}, "1,2: 4 3"},
      {"ReduceMax", 20, "bool 2: 0 1; i64 1: 0", {}, "bool 1: 1"},
      {"ReduceMin", 13, "2,2: 1 2 4 3", {{"axes", {0}}}, "1,2: 1 2"},
      {"ReduceMin", 20, "bool 2: 0 1; i64 1: 0", {}, "bool 1: 0"},
      {"ReduceMean", 13, "2,2: 1 2 4 3", {{"axes", {0}}}, "1,2: 2.5 2.5"},
      {"ReduceMean", 18, "2,2: 1 2 4 3; i64 1: 0", {}, "1,2: 2.5 2.5"},
      {"ReduceProd", 13, "2: 3 4", {{"axes", {0}}}, "1: 12"},
      {"ReduceProd", 18, "2: 3 4; i64 1: 0", {}, "1: 12"},
      {"ReduceSumSquare", 13, "2: 3 4", {{"axes", {0}}}, "1: 25"},
      {"ReduceSumSquare", 18, "2: 3 4; i64 1: 0", {}, "1: 25"},
      {"DFT", 17, "1,2,1: 1 3", {{"axis", 1}}, "1,2,2: 4 0 -2 0"},
      {"DFT", 20, "1,2,1: 1 3; -; i64 : 1", {}, "1,2,2: 4 0 -2 0"},
      {"Tile", 1, "1,2: 1 2; i64 : 2; i64 : 1", {}, "1,4: 1 2 1 2"},
      {"Tile", 6, "1,2: 1 2; i64 2: 2 1", {}, "2,2: 1 2 1 2"},
      // new attributes, other defaults, other formulas
      {"BatchNormalization",
       6,
       "1,2,1: 1 2; 2: 1 2; 2: 0 1; 2: 1 1; 2: 1 1",
       {{"is_test", 1}, {"epsilon", 0.0}},
       "1,2,1: 0 3"},
      {"BatchNormalization",
       7,
       "1,2,2: 1 2 3 4; 2,2: 1 2 3 4; 2,2: 0 0 0 1; 2,2: 1 1 1 1; 2,2: 1 1 1 1",
       {{"spatial", 0}, {"epsilon", 0.0}},
       "1,2,2: 0 2 6 13"},
      {"BatchNormalization",
       9,
       "1,2,1: 1 2; 2: 1 2; 2: 0 1; 2: 1 1; 2: 1 1",
       {{"epsilon", 0.0}},
       "1,2,1: 0 3"},
      {"BatchNormalization",
       14,
       "2,1,1: 1 3; 1: 1; 1: 0; 1: 0; 1: 1",
       {{"training_mode", 1}, {"epsilon", 0.0}, {"momentum", 0.5}},
       "2,1,1: -1 1; 1: 1; 1: 1"},
      {"Resize", 10, "1,1,1,2: 1 2; 4: 1 1 1 2", {{"mode", "linear"}}, "1,1,1,4: 1 1.5 2 2"},
      {"Resize",
       11,
       "1,1,1,2: 1 2; 0: ; 4: 1 1 1 2",
       {{"mode", "linear"}},
       "1,1,1,4: 1 1.25 1.75 2"},
      {"Resize",
       13,
       "1,1,1,2: 1 2; -; -; i64 4: 1 1 1 4",
       {{"mode", "linear"}},
       "1,1,1,4: 1 1.25 1.75 2"},
      {"Resize",
       18,
       "1,1,1,2: 1 2; -; 1: 2",
       {{"mode", "linear"}, {"axes", {3}}},
       "1,1,1,4: 1 1.25 1.75 2"},
      {"AveragePool", 1, "1,1,2: 2 4", {{"kernel_shape", {2}}, {"pads", {1, 0}}}, "1,1,2: 2 3"},
      {"AveragePool",
       7,
       "1,1,2: 2 4",
       {{"kernel_shape", {2}}, {"pads", {1, 0}}, {"count_include_pad", 1}},
       "1,1,2: 1 3"},
      {"AveragePool",
       10,
       "1,1,3: 2 4 6",
       {{"kernel_shape", {2}}, {"strides", {2}}, {"ceil_mode", 1}},
       "1,1,2: 3 6"},
      {"AveragePool", 19, "1,1,3: 2 4 6", {{"kernel_shape", {2}}, {"dilations", {2}}}, "1,1,1: 4"},
      {"MaxPool", 1, "1,1,3: 2 4 3", {{"kernel_shape", {2}}, {"strides", {2}}}, "1,1,1: 4"},
      {"MaxPool", 8, "1,1,3: 2 4 3", {{"kernel_shape", {2}}}, "1,1,2: 4 4; i64 1,1,2: 1 1"},
      {"MaxPool",
       10,
       "1,1,3: 2 4 3",
       {{"kernel_shape", {2}}, {"strides", {2}}, {"ceil_mode", 1}},
       "1,1,2: 4 3"},
      {"MaxPool",
       12,
       "i8 1,1,3: 2 4 3",
       {{"kernel_shape", {2}}, {"dilations", {2}}},
       "i8 1,1,1: 3"},
      {"LpPool", 1, "1,1,2: 3 -4", {{"kernel_shape", {2}}, {"p", 1.0}}, "1,1,1: 7"},
      {"LpPool", 2, "1,1,2: 3 -4", {{"kernel_shape", {2}}, {"p", 1}}, "1,1,1: 7"},
      {"LpPool", 18, "1,1,3: 3 1 4", {{"kernel_shape", {2}}, {"dilations", {2}}}, "1,1,1: 5"},
      {"GlobalLpPool", 1, "1,1,2: 3 -4", {{"p", 1.0}}, "1,1,1: 7"},
      {"GlobalLpPool", 2, "1,1,2: 3 -4", {{"p", 1}}, "1,1,1: 7"},
      {"GatherND", 11, "2,2: 1 2 3 4; i64 1,2: 1 0", {}, "1: 3"},
      {"GatherND", 12, "2,2: 1 2 3 4; i64 2,1: 1 0", {{"batch_dims", 1}}, "2: 2 3"},
      {"Scatter", 9, "3: 1 2 3; i64 1: 1; 1: 9", {}, "3: 1 9 3"},
      {"ScatterElements", 11, "3: 1 2 3; i64 1: -1; 1: 9", {}, "3: 1 2 9"},
      {"ScatterElements", 16, "3: 1 2 3; i64 2: 1 1; 2: 9 9", {{"reduction", "add"}}, "3: 1 20 3"},
      {"ScatterElements", 18, "3: 1 2 3; i64 2: 1 2; 2: 9 1", {{"reduction", "max"}}, "3: 1 9 3"},
      {"ScatterND", 11, "3: 1 2 3; i64 1,1: 1; 1: 9", {}, "3: 1 9 3"},
      {"ScatterND", 16, "3: 1 2 3; i64 1,1: 1; 1: 9", {{"reduction", "mul"}}, "3: 1 18 3"},
      {"ScatterND", 18, "3: 1 2 3; i64 1,1: 1; 1: 1", {{"reduction", "min"}}, "3: 1 1 3"},
      {"Shape", 13, "2,3: 1 2 3 4 5 6", {}, "i64 2: 2 3"},
      {"Shape", 15, "2,3: 1 2 3 4 5 6", {{"start", -1}}, "i64 1: 3"},
      {"DepthToSpace",
       1,
       "1,8,1,1: 0 1 2 3 4 5 6 7",
       {{"blocksize", 2}},
       "1,2,2,2: 0 2 4 6 1 3 5 7"},
      {"DepthToSpace",
       11,
       "1,8,1,1: 0 1 2 3 4 5 6 7",
       {{"blocksize", 2}, {"mode", "CRD"}},
       "1,2,2,2: 0 1 2 3 4 5 6 7"},
      {"SpaceToDepth",
       13,
       "1,2,2,2: 0 1 2 3 4 5 6 7",
       {{"blocksize", 2}},
       "1,8,1,1: 0 4 1 5 2 6 3 7"},
      {"SpaceToDepth",
       28,
       "1,2,2,2: 0 1 2 3 4 5 6 7",
       {{"blocksize", 2}, {"mode", "CRD"}},
       "1,8,1,1: 0 1 2 3 4 5 6 7"},
      {"RoiAlign",
       10,
       "1,1,2,2: 1 2 3 4; 1,4: 0 0 2 2; i64 1: 0",
       {{"sampling_ratio", 1}},
       "1,1,1,1: 4"},
      {"RoiAlign",
       16,
       "1,1,2,2: 1 2 3 4; 1,4: 0 0 2 2; i64 1: 0",
       {{"sampling_ratio", 1}},
       "1,1,1,1: 2.5"},
      {"GroupNormalization",
       18,
       "1,2,2: 1 3 5 7; 1: 2; 1: 1",
       {{"num_groups", 1}, {"epsilon", 0.0}},
       "1,2,2: -1.6832816 0.1055728 1.8944272 3.6832816"},
      {"GroupNormalization",
       21,
       "1,2,2: 1 3 5 7; 2: 2 1; 2: 1 0",
       {{"num_groups", 1}, {"epsilon", 0.0}},
       "1,2,2: -1.6832816 0.1055728 0.4472136 1.3416408"},
      {"QuantizeLinear", 10, "2: 4 -2; : 2; u8 : 3", {}, "u8 2: 5 2"},
      {"QuantizeLinear", 13, "2,1: 4 6; 2: 2 3; u8 2: 3 0", {{"axis", 0}}, "u8 2,1: 5 2"},
      {"QuantizeLinear",
       21,
       "1,4: 2 4 3 6; 1,2: 2 3; u8 1,2: 0 0",
       {{"axis", 1}, {"block_size", 2}},
       "u8 1,4: 1 2 1 2"},
      {"DequantizeLinear", 10, "u8 2: 5 2; : 2; u8 : 3", {}, "2: 4 -2"},
      {"DequantizeLinear", 13, "u8 2,1: 5 2; 2: 2 3; u8 2: 3 0", {{"axis", 0}}, "2,1: 4 6"},
      {"DequantizeLinear",
       21,
       "u8 1,4: 1 2 1 2; 1,2: 2 3",
       {{"axis", 1}, {"block_size", 2}},
       "1,4: 2 4 3 6"},
      {"GridSample", 16, "1,1,1,2: 1 3; 1,1,1,2: 0 0", {{"mode", "bilinear"}}, "1,1,1,1: 2"},
      {"GridSample", 20, "1,1,1,2: 1 3; 1,1,1,2: 0 0", {{"mode", "linear"}}, "1,1,1,1: 2"},
      {"OneHot", 11, "i64 2: -1 3; i64 : 3; 2: 0 1", {}, "2,3: 0 0 1 0 0 0"},
      {"Constant",
       1,
       "",
       {{"value", constant_tensor::of<float>({2}, std::vector<float>{1, 2})}},
       "2: 1 2"},
      {"Constant", 12, "", {{"value_ints", {1, 2}}}, "i64 2: 1 2"},
      {"Relu", 14, "i32 2: -1 2", {}, "i32 2: 0 2"},
      {"CumSum", 14, "i32 2: 1 2; i64 : 0", {{"reverse", 1}}, "i32 2: 3 2"},
      {"RNN", 7, "1,1,1: 1; 1,1,1: 0.5; 1,1,1: 0", {{"hidden_size", 1}}, "1,1,1,1: 0.4621172"},
      {"RNN",
       14,
       "1,2,1: 1 1; 1,1,1: 0.5; 1,1,1: 0",
       {{"hidden_size", 1}, {"layout", 1}},
       "1,2,1,1: 0.4621172 0.4621172"},
      // With R and the recurrent bias 0 but for the hidden gate's 1: tanh(x + r * 1), r = 1/2.
      {"GRU",
       1,
       "1,1,1: 0; 1,3,1: 0 0 1; 1,3,1: 0 0 0; 1,6: 0 0 0 0 0 1",
       {{"hidden_size", 1}},
       "1,1,1,1: 0.3807971"},
      {"GRU",
       3,
       "1,1,1: 0; 1,3,1: 0 0 1; 1,3,1: 0 0 0; 1,6: 0 0 0 0 0 1",
       {{"hidden_size", 1}, {"linear_before_reset", 1}},
       "1,1,1,1: 0.2310586"},
      {"GRU",
       14,
       "1,1,1: 0; 1,3,1: 0 0 1; 1,3,1: 0 0 0; 1,6: 0 0 0 0 0 1",
       {{"hidden_size", 1}, {"layout", 1}},
       "-; 1,1,1: 0.3807971"},
      {"LSTM",
       7,
       "1,1,1: 0; 1,4,1: 0 0 0 0; 1,4,1: 0 0 0 0; 1,8: 0 0 0 1 0 0 0 0",
       {{"hidden_size", 1}},
       "1,1,1,1: 0.1817067"},
      {"LSTM",
       14,
       "2,1,1: 0 0; 1,4,1: 0 0 0 0; 1,4,1: 0 0 0 0; 1,8: 0 0 0 1 0 0 0 0",
       {{"hidden_size", 1}, {"layout", 1}},
       "2,1,1,1: 0.1817067 0.1817067"},
      {"Mod", 10, "i32 2: -7 7; i32 2: 3 -3", {}, "i32 2: 2 -2"},
      {"Mod", 28, "2: -7 7; 2: 3 -3", {}, "2: 2 -2"},
      {"BitShift", 11, "u8 2: 8 255; u8 2: 1 9", {{"direction", "RIGHT"}}, "u8 2: 4 0"},
      {"BitShift", 28, "i8 2: -8 -1; i8 2: 1 9", {{"direction", "RIGHT"}}, "i8 2: -4 -1"},
  };
  return list;
}

}  // namespace

TEST_CASE("operators mean what they meant in the opset of their model") {
  std::set<std::pair<std::string, int>> pairs;
  for (const meaning& m : meanings()) {
    pairs.emplace(m.op, m.opset);
    INFO(std::string(m.op), "-", m.opset, " ", std::string(m.inputs));
    CHECK(failure(m) == "");
  }
  CHECK(pairs.size() >= 60);
}
