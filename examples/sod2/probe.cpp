#include "probe.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/expr/context.hpp>
#include <sod2/graph/graph.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/kernel/std/half.hpp>
#include <sod2/kernel/table.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/runtime/compile.hpp>
#include <sod2/runtime/session.hpp>

#include "tensors.hpp"

namespace tool {

namespace {
using sod2::dtype;

/// A node that shows an operator at work. `inputs` are operands behind one another:
///   [seq:|opt:]TYPE(DIMS)[=ELEMENTS]   or - where there is none
/// TYPE is T for the type in question, else f32, i64 or bool. Operands with
/// elements are constants, one element stands for all; the others are inputs of the graph.
struct example {
  std::string_view name;
  std::string_view inputs;
  std::vector<sod2::attribute> attributes{};
  /// The attribute that names the type in question, or holds a tensor of it.
  std::string_view typed{}, filled{};
  /// A sub-graph that hands its inputs on: its name and its operands.
  std::string_view body{}, operands{};
  std::size_t outputs = 1;
};

/// Operators that are not described by as many operands T(2,3) as they need.
const std::vector<example>& examples() {
  static const std::vector<example> list = {
      {"AffineGrid", "T(1,2,3) i64(4)=1,1,2,3"},
      {"Attention", "T(1,2,3,4) T(1,2,3,4) T(1,2,3,4)"},
      {"AveragePool", "T(1,2,4,4)", {{"kernel_shape", {2, 2}}}},
      {"BatchNormalization", "T(1,2,3) T(2) T(2) T(2) T(2)"},
      {"BitCast", "T(2,3)", {}, "to"},
      {"BitShift", "T(2,3) T(2,3)", {{"direction", "LEFT"}}},
      {"BlackmanWindow", "i64()=4", {}, "output_datatype"},
      {"Cast", "T(2,3)", {{"to", 1}}},
      {"CastLike", "T(2,3) f32(2)"},
      {"CausalConvWithState", "T(1,2,5) T(2,1,3)"},
      {"CenterCropPad", "T(2,3) i64(2)=3,2"},
      {"Clip", "T(2,3) T()=0 T()=1"},
      {"Col2Im", "T(1,4,2) i64(2)=2,3 i64(2)=2,2"},
      {"Compress", "T(2,3) bool(2)"},
      {"ConcatFromSequence", "seq:T(2,3)", {{"axis", 0}}},
      {"Concat", "T(2,3) T(2,3)", {{"axis", 0}}},
      {"Constant", "", {}, {}, "value"},
      {"ConstantOfShape", "i64(2)=2,3", {}, {}, "value"},
      {"Conv", "T(1,2,4,4) T(2,2,3,3)"},
      {"ConvInteger", "T(1,2,4,4) T(2,2,3,3)"},
      {"ConvTranspose", "T(1,2,4,4) T(2,2,3,3)"},
      {"CumProd", "T(2,3) i64()=1"},
      {"CumSum", "T(2,3) i64()=1"},
      {"DFT", "T(1,4,1)"},
      {"DeformConv", "T(1,1,3,3) T(1,1,2,2) T(1,8,2,2)"},
      {"DepthToSpace", "T(1,4,2,2)", {{"blocksize", 2}}},
      {"DequantizeLinear", "T(2,3) f32()=1"},
      {"Det", "T(2,2)"},
      {"Dropout", "T(2,3)"},
      {"Einsum", "T(2,3) T(3,2)", {{"equation", "ij,jk->ik"}}},
      {"Expand", "T(2,3) i64(3)=2,2,3"},
      {"EyeLike", "f32(2,3)", {}, "dtype"},
      {"GRU", "T(2,1,3) T(1,6,3) T(1,6,2)", {{"hidden_size", 2}}},
      {"Gather", "T(2,3) i64(2)=0,1"},
      {"GatherElements", "T(2,3) i64(1,2)=0"},
      {"GatherND", "T(2,3) i64(1,2)=0"},
      {"Gemm", "T(2,3) T(3,2)"},
      {"GlobalAveragePool", "T(1,2,3,3)"},
      {"GlobalLpPool", "T(1,2,3,3)"},
      {"GlobalMaxPool", "T(1,2,3,3)"},
      {"GridSample", "T(1,1,3,3) f32(1,2,2,2)"},
      {"GroupNormalization", "T(1,2,3) T(2) T(2)", {{"num_groups", 1}}},
      {"HammingWindow", "i64()=4", {}, "output_datatype"},
      {"HannWindow", "i64()=4", {}, "output_datatype"},
      {"If", "bool()", {}, {}, {}, "then_branch"},
      {"InstanceNormalization", "T(1,2,3) T(2) T(2)"},
      {"LRN", "T(1,2,3,3)", {{"size", 1}}},
      {"LSTM", "T(2,1,3) T(1,8,3) T(1,8,2)", {{"hidden_size", 2}}},
      {"LayerNormalization", "T(2,3) T(3)"},
      {"LinearAttention", "T(1,2,4) T(1,2,4) T(1,2,4)", {{"q_num_heads", 1}, {"kv_num_heads", 1}}},
      {"Loop", "i64()=2 bool()=1 T(2,3)", {}, {}, {}, "body", "i64() bool() T(2,3)"},
      {"LpPool", "T(1,2,4,4)", {{"kernel_shape", {2, 2}}}},
      {"MatMul", "T(2,3) T(3,2)"},
      {"MatMulInteger", "T(2,3) T(3,2)"},
      {"Max", "T(2,3) T(2,3)"},
      {"MaxPool", "T(1,2,4,4)", {{"kernel_shape", {2, 2}}}},
      {"MaxRoiPool", "T(1,1,4,4) T(1,5)=0,0,0,2,2", {{"pooled_shape", {2, 2}}}},
      {"MaxUnpool", "T(1,1,2,2) i64(1,1,2,2)=0", {{"kernel_shape", {2, 2}}, {"strides", {2, 2}}}},
      {"Mean", "T(2,3) T(2,3)"},
      {"MeanVarianceNormalization", "T(1,2,3,3)"},
      {"MelWeightMatrix", "i64()=4 i64()=16 i64()=8000 f32()=0 f32()=4000", {}, "output_datatype"},
      {"Min", "T(2,3) T(2,3)"},
      {"Multinomial", "T(1,3)"},
      {"NegativeLogLikelihoodLoss", "T(2,3) i64(2)=0,1"},
      {"NonMaxSuppression", "T(1,2,4) T(1,1,2) i64()=2 f32()=0.5 f32()=0.5"},
      {"OneHot", "i64(2)=0,1 i64()=3 T(2)"},
      {"OptionalGetElement", "opt:T(2,3)"},
      {"OptionalHasElement", "opt:T(2,3)"},
      {"Optional", "T(2,3)"},
      {"Pad", "T(2,3) i64(4)=1"},
      {"QLinearConv", "T(1,2,4,4) f32()=1 T()=0 T(2,2,3,3) f32()=1 T()=0 f32()=1 T()=0"},
      {"QLinearMatMul", "T(2,3) f32()=1 T()=0 T(3,2) f32()=1 T()=0 f32()=1 T()=0"},
      {"QuantizeLinear", "T(2,3) T()=1"},
      {"RMSNormalization", "T(2,3) T(3)"},
      {"RNN", "T(2,1,3) T(1,2,3) T(1,2,2)", {{"hidden_size", 2}}},
      {"RandomNormal", "", {{"shape", {2, 3}}}, "dtype"},
      {"RandomNormalLike", "f32(2,3)", {}, "dtype"},
      {"RandomUniform", "", {{"shape", {2, 3}}}, "dtype"},
      {"RandomUniformLike", "f32(2,3)", {}, "dtype"},
      {"Range", "T()=0 T()=3 T()=1"},
      {"Reshape", "T(2,3) i64(2)=3,2"},
      {"Resize", "T(1,1,2,2) - f32(4)=1,1,2,3"},
      {"ReverseSequence", "T(2,3) i64(3)=1"},
      {"RoiAlign", "T(1,1,4,4) T(1,4)=0,0,2,2 i64(1)=0"},
      {"RotaryEmbedding", "T(1,2,3,4) T(1,3,2) T(1,3,2)"},
      {"STFT", "T(1,8,1) i64()=2 - i64()=4"},
      {"Scan", "T(2,3)", {{"num_scan_inputs", 1}}, {}, {}, "body", "T(3)"},
      {"Scatter", "T(2,3) i64(1,2)=0 T(1,2)"},
      {"ScatterElements", "T(2,3) i64(1,2)=0 T(1,2)"},
      {"ScatterND", "T(2,3) i64(1,1)=0 T(1,3)"},
      {"SequenceAt", "seq:T(2,3) i64()=0"},
      {"SequenceConstruct", "T(2,3) T(2,3)"},
      {"SequenceEmpty", "", {}, "dtype"},
      {"SequenceErase", "seq:T(2,3)"},
      {"SequenceInsert", "seq:T(2,3) T(2,3)"},
      {"SequenceLength", "seq:T(2,3)"},
      {"SequenceMap", "seq:T(2,3)", {}, {}, {}, "body", "T(2,3)"},
      {"Slice", "T(2,3) i64(1)=1 i64(1)=2 i64(1)=1 i64(1)=1"},
      {"SoftmaxCrossEntropyLoss", "T(2,3) i64(2)=0,1"},
      {"SpaceToDepth", "T(1,1,4,4)", {{"blocksize", 2}}},
      {"Split", "T(2,3) i64(2)=1,1", {}, {}, {}, {}, {}, 2},
      {"SplitToSequence", "T(2,3) i64()=1"},
      {"Squeeze", "T(1,3) i64(1)=0"},
      {"StringNormalizer", "T(2)"},
      {"Sum", "T(2,3) T(2,3)"},
      {"TensorScatter", "T(1,4,2) T(1,1,2)", {{"axis", 1}}},
      {"TfIdfVectorizer",
       "T(3)",
       {{"mode", "TF"},
        {"min_gram_length", 1},
        {"max_gram_length", 1},
        {"max_skip_count", 0},
        {"ngram_counts", {0}},
        {"ngram_indexes", {0, 1}}},
       {},
       "pool"},
      {"Tile", "T(2,3) i64(2)=2,1"},
      {"TopK", "T(2,3) i64(1)=2"},
      {"Unsqueeze", "T(2,3) i64(1)=0"},
      {"Upsample", "T(1,1,2,2) f32(4)=1,1,2,3"},
      {"Where", "bool(2,3) T(2,3) T(2,3)"},
  };
  return list;
}

example example_of(const sod2::op_info& info) {
  for (const example& e : examples())
    if (e.name == info.name) return e;
  static constexpr std::string_view many =
      "T(2,3) T(2,3) T(2,3) T(2,3) T(2,3) T(2,3) T(2,3) T(2,3)";
  const std::size_t count = std::min<std::size_t>(info.inputs.least, 8);
  return {info.name, many.substr(0, count * 7)};
}

struct operand {
  enum class wrap : std::uint8_t { none, sequence, optional } wrapped = wrap::none;
  dtype type = dtype::undefined;  // undefined: left out
  std::vector<std::int64_t> dims;
  std::vector<double> elements;
  bool is_constant() const { return !elements.empty(); }
};

dtype type_called(std::string_view name, dtype asked) {
  static constexpr std::pair<std::string_view, dtype> names[] = {
      {"f32", dtype::f32}, {"i64", dtype::i64}, {"bool", dtype::boolean}};
  for (const auto& [text, type] : names)
    if (text == name) return type;
  return asked;
}
template <class Number>
std::vector<Number> numbers_of(std::string_view text) {
  std::vector<Number> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    out.push_back(static_cast<Number>(std::stod(std::string(text.substr(0, end)))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}
std::vector<operand> operands_of(std::string_view text, dtype asked) {
  std::vector<operand> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    operand& o = out.emplace_back();
    if (one == "-") continue;
    if (one.starts_with("seq:")) o.wrapped = operand::wrap::sequence;
    if (one.starts_with("opt:")) o.wrapped = operand::wrap::optional;
    if (o.wrapped != operand::wrap::none) one.remove_prefix(4);
    const std::size_t open = one.find('('), close = one.find(')');
    o.type = type_called(one.substr(0, open), asked);
    o.dims = numbers_of<std::int64_t>(one.substr(open + 1, close - open - 1));
    if (close + 1 < one.size()) o.elements = numbers_of<double>(one.substr(close + 2));
  }
  return out;
}

std::int64_t count_of(const std::vector<std::int64_t>& dims) {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= d;
  return n;
}
/// Writes one element that is whole bytes; types that have no such number keep their zeros.
void store(std::byte* to, dtype type, double v) {
  const auto put = [to](auto value) { std::memcpy(to, &value, sizeof(value)); };
  if (type == dtype::f32) return put(static_cast<float>(v));
  if (type == dtype::f64) return put(v);
  if (type == dtype::f16) return put(sod2::kernel_detail::to_half(static_cast<float>(v)));
  if (type == dtype::bf16) return put(sod2::kernel_detail::to_brain(static_cast<float>(v)));
  if (!sod2::is_integer(type) && type != dtype::boolean) return;
  const auto whole = static_cast<std::int64_t>(v);  // little-endian: the low bytes come first
  std::memcpy(to, &whole, sod2::bytes_of(type));
}
sod2::constant_tensor tensor_of(dtype type, const std::vector<std::int64_t>& dims,
                                const std::vector<double>& elements) {
  const std::int64_t n = count_of(dims);
  if (type == dtype::string)
    return sod2::constant_tensor::of_strings(
        dims, std::vector<std::string>(static_cast<std::size_t>(n), "1"));
  std::vector<std::byte> bytes(static_cast<std::size_t>(sod2::bytes_of(type, n)));
  const std::size_t width = sod2::bytes_of(type);
  for (std::size_t i = 0; width > 0 && i * width < bytes.size(); ++i)
    store(&bytes[i * width], type, elements[i < elements.size() ? i : 0]);
  return sod2::constant_tensor::copy_of(type, dims, bytes.data(), bytes.size());
}
host_tensor filled(dtype type, const std::vector<std::int64_t>& dims) {
  if (type == dtype::string)
    return host_tensor::of_strings(
        dims, std::vector<std::string>(static_cast<std::size_t>(count_of(dims)), "1"));
  const sod2::constant_tensor ones = tensor_of(type, dims, {1});
  host_tensor out(type, dims);
  if (ones.size > 0) std::memcpy(out.data(), ones.data, ones.size);
  return out;
}

std::vector<sod2::attribute> attributes_of(const example& e, dtype asked) {
  std::vector<sod2::attribute> out = e.attributes;
  if (!e.typed.empty()) out.emplace_back(std::string(e.typed), static_cast<int>(asked));
  if (e.filled == "pool") {
    if (asked == dtype::string)
      out.emplace_back("pool_strings", std::vector<std::string>{"1", "2"});
    else
      out.emplace_back("pool_int64s", std::vector<std::int64_t>{1, 2});
  } else if (!e.filled.empty()) {
    out.emplace_back(std::string(e.filled), tensor_of(asked, {1}, {1}));
  }
  return out;
}

/// The example as a graph of its own, and what to run it with.
struct experiment {
  sod2::graph graph;
  std::vector<host_tensor> inputs;

  sod2::value_id add(const operand& o) {
    if (o.type == dtype::undefined) return sod2::absent;
    if (o.is_constant()) return graph.constant("", tensor_of(o.type, o.dims, o.elements));
    const std::string name = "x" + std::to_string(inputs.size());
    const sod2::value_id v =
        graph.input(name, o.type, std::vector<sod2::dim_spec>(o.dims.begin(), o.dims.end()));
    inputs.push_back(filled(o.type, o.dims));
    if (o.wrapped == operand::wrap::sequence) return graph.op("SequenceConstruct", {v, v});
    if (o.wrapped == operand::wrap::optional) return graph.op("Optional", {v});
    return v;
  }
  sod2::scope_id body(std::string name, const std::vector<operand>& operands,
                      sod2::value_id captured) {
    const sod2::scope_id scope = graph.add_scope(std::move(name));
    const sod2::scope_id outer = graph.enter(scope);
    std::vector<sod2::value_id> values;
    for (const operand& o : operands)
      values.push_back(
          graph.input("", o.type, std::vector<sod2::dim_spec>(o.dims.begin(), o.dims.end())));
    if (values.empty()) values.push_back(captured);
    const bool counts = values.size() > 1;  // of a loop: the trip is not handed on
    for (std::size_t i = counts ? 1 : 0; i < values.size(); ++i)
      graph.output(graph.op("Identity", {values[i]}));
    graph.enter(outer);
    return scope;
  }
};

bool runs(const sod2::op_info& info, int version, const example& e, dtype asked) {
  experiment x;
  sod2::graph::node node;
  node.op = info.name;
  node.domain = info.domain;
  node.opset = version;
  for (const operand& o : operands_of(e.inputs, asked)) node.inputs.push_back(x.add(o));
  node.attributes = attributes_of(e, asked);
  if (!e.body.empty()) {
    const sod2::value_id captured =
        e.operands.empty() ? x.add(operands_of("T(2,3)", asked)[0]) : sod2::absent;
    const auto operands = operands_of(e.operands, asked);
    node.scopes.push_back(x.body(std::string(e.body), operands, captured));
    if (operands.empty()) node.scopes.push_back(x.body("else_branch", operands, captured));
  }
  const std::size_t outputs = std::max<std::size_t>(info.outputs.least, e.outputs);
  for (std::size_t i = 0; i < outputs; ++i) node.outputs.push_back(x.graph.add_value());
  const std::vector<sod2::value_id> results = node.outputs;
  x.graph.add_node(std::move(node));
  for (sod2::value_id v : results) x.graph.output(v);

  auto view = sod2::make_view(x.graph);
  if (!view) return false;
  const auto program = sod2::compile(*view, sod2::standard_registry(), sod2::standard_kernels());
  if (!program) return false;
  sod2::session session(*program);
  std::vector<sod2::tensor_view> views;
  for (const host_tensor& t : x.inputs) views.push_back(t.view());
  return static_cast<bool>(session.run(views));
}

/// Bits of the inputs that the shape rule reads; `tracked`: of those that have elements.
std::uint64_t values_read(const sod2::op_row& row, int version,
                          const std::vector<operand>& operands,
                          const std::vector<sod2::attribute>& attributes, std::uint64_t tracked) {
  sod2::dim_context context;
  sod2::symbolic_domain domain(context);
  std::vector<sod2::symbolic_fact> facts(operands.size());
  std::vector<const sod2::symbolic_fact*> inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const operand& o = operands[i];
    sod2::symbolic_fact& f = facts[i];
    f.kind = o.wrapped == operand::wrap::sequence   ? sod2::fact_kind::sequence
             : o.wrapped == operand::wrap::optional ? sod2::fact_kind::optional
                                                    : sod2::fact_kind::tensor;
    f.type = o.type;
    f.rank = sod2::rank_state::known;
    for (std::int64_t d : o.dims) f.dims.push_back(context.constant(d));
    f.length = context.constant(1);
    if ((tracked >> i & 1) != 0 && o.is_constant()) {
      const bool real = sod2::is_float(o.type);
      f.has_value = true;
      for (std::size_t k = 0; k < static_cast<std::size_t>(count_of(o.dims)); ++k) {
        const double v = o.elements[k < o.elements.size() ? k : 0];
        f.elements.push_back(real ? context.real_literal(v, o.type == dtype::f64)
                                  : context.constant(static_cast<std::int64_t>(v)));
      }
    }
    inputs.push_back(o.type == dtype::undefined ? nullptr : &f);
  }
  std::vector<sod2::symbolic_fact> outputs(std::max<std::size_t>(row.info->outputs.least, 1));
  sod2::attribute_source source;
  source.graph = &attributes;
  source.find = [](const void* list, std::uint64_t, std::string_view name) {
    for (const sod2::attribute& a : *static_cast<const std::vector<sod2::attribute>*>(list))
      if (a.name == name) return a.view();
    return sod2::attribute_view{};
  };
  sod2::symbolic_transfer transfer(domain, inputs, outputs, source, version);
  (void)row.forward(transfer);  // what it read counts, not whether it liked it
  return transfer.value_reads();
}
}  // namespace

operator_answers probe(const sod2::op_row& row, int version) {
  const example e = example_of(*row.info);
  operator_answers out;
  for (int t = static_cast<int>(dtype::f32); t <= static_cast<int>(dtype::i4); ++t)
    if (const auto type = static_cast<dtype>(t); runs(*row.info, version, e, type))
      out.types.push_back(type);

  const dtype type = out.types.empty() ? dtype::f32 : out.types[0];
  const std::vector<operand> operands = operands_of(e.inputs, type);
  const std::vector<sod2::attribute> attributes = attributes_of(e, type);
  std::uint64_t read = values_read(row, version, operands, attributes, ~std::uint64_t{0});
  // A rule may stop at the first value it misses: each input is the missing one once.
  for (std::size_t i = 0; i < operands.size(); ++i)
    read |= values_read(row, version, operands, attributes, ~(std::uint64_t{1} << i));
  // Inputs that the example leaves out, one at a time: beside the others, and alone.
  const std::size_t least = row.info->inputs.least, most = row.info->inputs.most;
  for (std::size_t i = least; i < most && most != sod2::any_number; ++i) {
    if (i < operands.size() && operands[i].type != dtype::undefined) continue;
    for (const std::size_t kept : {operands.size(), std::min(least, operands.size())}) {
      std::vector<operand> with(operands.begin(),
                                operands.begin() + static_cast<std::ptrdiff_t>(kept));
      with.resize(std::max(with.size(), i + 1));
      with[i] = operands_of("i64(1)=1", type)[0];
      read |= values_read(row, version, with, attributes, ~std::uint64_t{0});
    }
  }
  for (std::size_t i = 0; i < 63; ++i)
    if ((read >> i & 1) != 0) out.value_inputs.push_back(i);
  return out;
}

}  // namespace tool
