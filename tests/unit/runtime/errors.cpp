// Broken graphs and bindings, and the one line that each is refused with: node, tensor and axis
// where they exist, and both facts that disagree.
#include <functional>

#include "unit/runtime/support.hpp"

namespace {

using sod2::dtype;
using sod2::value_id;

/// A graph under construction and what is done with it once it is built.
struct attempt {
  sod2::graph g;
  sod2::analysis_options options;
  std::vector<test::tensor> bound;  // if there are any: compile, and bind these

  value_id in(std::string name, std::vector<sod2::dim_spec> dims, dtype type = dtype::f32) {
    return g.input(std::move(name), type, std::move(dims));
  }
  value_id ints(std::string name, const std::vector<std::int64_t>& elements) {
    return g.constant<std::int64_t>(std::move(name), {static_cast<std::int64_t>(elements.size())},
                                    elements);
  }
  value_id weight(std::string name, std::vector<std::int64_t> dims) {
    std::int64_t count = 1;
    for (std::int64_t d : dims) count *= d;
    return g.constant<float>(std::move(name), std::move(dims),
                             std::vector<float>(static_cast<std::size_t>(count)));
  }
  /// A node called `name` whose outputs are called by it too.
  std::vector<value_id> ops(const std::string& name, std::string op, std::vector<value_id> inputs,
                            std::size_t outputs, std::vector<sod2::attribute> attributes = {}) {
    std::vector<value_id> out =
        g.ops(std::move(op), std::move(inputs), outputs, std::move(attributes));
    g.nodes().back().name = name;
    for (std::size_t i = 0; i < outputs; ++i)
      g.values()[out[i].index].name = name + "." + std::to_string(i);
    return out;
  }
  value_id op(const std::string& name, std::string op, std::vector<value_id> inputs,
              std::vector<sod2::attribute> attributes = {}) {
    return ops(name, std::move(op), std::move(inputs), 1, std::move(attributes))[0];
  }
  void range(std::string name, std::int64_t lo, std::int64_t hi, std::int64_t step = 1,
             std::int64_t offset = 0) {
    options.symbols.push_back({std::move(name), {lo, hi, step, offset}});
  }
  /// What the graph's author claims of a value.
  void declare(value_id v, std::vector<sod2::dim_spec> dims) {
    g.values()[v.index].type = dtype::f32;
    g.values()[v.index].has_shape = true;
    g.values()[v.index].dims = std::move(dims);
  }
  /// If: each arm is what its function adds and gives what that returns.
  value_id branch(const std::string& name, value_id condition,
                  const std::function<value_id()>& then, const std::function<value_id()>& other) {
    const sod2::scope_id a = g.add_scope("then"), b = g.add_scope("else");
    const sod2::scope_id outer = g.enter(a);
    g.output(then());
    g.enter(b);
    g.output(other());
    g.enter(outer);
    const value_id y = op(name, "If", {condition});
    g.nodes().back().scopes = {a, b};
    return y;
  }
};

struct broken {
  const char* what;
  void (*build)(attempt&);
  std::string_view text;
};

/// The error of the first step that refuses it.
std::string refusal(const broken& b) {
  attempt a;
  b.build(a);
  if (a.g.scopes()[0].outputs.empty() && !a.g.nodes().empty() &&
      !a.g.nodes().back().outputs.empty())
    a.g.output(a.g.nodes().back().outputs[0]);
  auto view = sod2::make_view(a.g);
  if (!view) return view.error().text();
  if (a.bound.empty()) {
    auto facts = sod2::analyze(*view, sod2::standard_registry(), a.options);
    return facts ? "accepted" : facts.error().text();
  }
  sod2::compile_options options;
  options.analysis = a.options;
  auto program = sod2::compile(*view, sod2::standard_registry(), sod2::standard_kernels(), options);
  if (!program) return program.error().text();
  sod2::session s(*program);
  const std::vector<sod2::tensor_view> inputs = test::views(a.bound);
  const sod2::status bound = s.bind_inputs(inputs);
  return bound ? "accepted" : bound.error().text();
}

constexpr broken table[] = {
    // ---- numbers of elements
    {"reshape to another number of elements",
     [](attempt& a) {
       a.op("flat", "Reshape", {a.in("x", {4, 6}), a.ints("s", {5, 5})});
     },
     "node 'flat': tensor 'x': reshape must keep the number of elements: (4, 6) has 24, "
     "(5, 5) has 25"},
    {"reshape that loses a symbol's factor",
     [](attempt& a) {
       a.op("flat", "Reshape", {a.in("x", {"B", 6}), a.ints("s", {0, 7})});
     },
     "node 'flat': tensor 'x': reshape must keep the number of elements: (B, 6) has 6*B, "
     "(B, 7) has 7*B"},
    {"reshape with two -1",
     [](attempt& a) {
       a.op("flat", "Reshape", {a.in("x", {4, 6}), a.ints("s", {-1, -1})});
     },
     "node 'flat': tensor 's': reshape target (-1, -1) has more than one -1"},
    {"reshape with a negative size",
     [](attempt& a) {
       a.op("flat", "Reshape", {a.in("x", {4, 6}), a.ints("s", {-2, 12})});
     },
     "node 'flat': tensor 's': reshape target (-2, 12) has a negative dim"},
    {"reshape that copies a dim past the rank",
     [](attempt& a) {
       a.op("flat", "Reshape", {a.in("x", {4, 6}), a.ints("s", {4, 6, 0})});
     },
     "node 'flat': tensor 'x': reshape target (4, 6, 0) copies a dim that the input of "
     "rank 2 does not have"},
    {"reshape whose -1 does not come out",
     [](attempt& a) {
       a.op("flat", "Reshape", {a.in("x", {4, 6}), a.ints("s", {5, -1})});
     },
     "node 'flat': tensor 'x': reshape must keep the number of elements: (4, 6) has 24, "
     "which the other dims of (5, -1) do not divide"},
    {"reshape target that is a matrix",
     [](attempt& a) {
       a.op("flat", "Reshape",
            {a.in("x", {4, 6}), a.g.constant<std::int64_t>("s", {1, 2}, {4, 6})});
     },
     "node 'flat': tensor 's': rank must be 1, not 2"},
    // ---- products
    {"inner dims of a product",
     [](attempt& a) {
       a.op("mm", "MatMul", {a.in("x", {"B", 3, 4}), a.weight("w", {5, 6})});
     },
     "node 'mm': tensor 'w' axis 0: inner dimensions of a product do not agree (4 vs 5)"},
    {"inner dims that differ by one",
     [](attempt& a) {
       const value_id x = a.in("x", {"B", "L"});
       const value_id grown = a.op("cat", "Concat", {x, a.in("one", {"B", 1})}, {{"axis", 1}});
       a.op("mm", "MatMul", {grown, a.in("w", {"L", 8})});
     },
     "node 'mm': tensor 'w' axis 0: inner dimensions of a product do not agree (L + 1 vs "
     "L)"},
    {"batches of a product",
     [](attempt& a) {
       a.op("mm", "MatMul", {a.in("x", {2, 3, 4}), a.in("y", {5, 4, 6})});
     },
     "node 'mm': tensor 'y' axis 0: dimensions do not broadcast ((2, 3, 4) vs (5, 4, 6))"},
    {"product with a scalar",
     [](attempt& a) {
       a.op("mm", "MatMul", {a.in("x", {2, 3}), a.in("y", {})});
     },
     "node 'mm': tensor 'y': rank must be at least 1, not 0"},
    {"inner dims of a transposed Gemm",
     [](attempt& a) {
       a.op("fc", "Gemm", {a.in("x", {"B", 64}), a.weight("w", {10, 32})}, {{"transB", 1}});
     },
     "node 'fc': tensor 'w' axis 1: inner dimensions of a product do not agree (32 vs 64)"},
    {"bias of a Gemm",
     [](attempt& a) {
       a.op("fc", "Gemm", {a.in("x", {"B", 64}), a.weight("w", {64, 10}), a.weight("b", {9})});
     },
     "node 'fc': tensor 'b' axis 0: dimensions do not broadcast (9 vs 10)"},
    {"Gemm of a tensor of rank 3",
     [](attempt& a) {
       a.op("fc", "Gemm", {a.in("x", {2, 3, 4}), a.weight("w", {4, 5})});
     },
     "node 'fc': tensor 'x': rank must be 2, not 3"},
    {"einsum with two sizes for a letter",
     [](attempt& a) {
       a.op("e", "Einsum", {a.in("x", {2, 3}), a.in("y", {4, 5})}, {{"equation", "ij,jk->ik"}});
     },
     "node 'e': tensor 'y' axis 0: dimensions do not agree (4 vs 3)"},
    // ---- concatenation
    {"concat of other dims",
     [](attempt& a) {
       a.op("cat", "Concat", {a.in("x", {"B", 3, 8}), a.in("y", {"B", 4, 9})}, {{"axis", 1}});
     },
     "node 'cat': tensor 'y' axis 2: dimensions do not agree (9 vs 8)"},
    {"concat of ranks",
     [](attempt& a) {
       a.op("cat", "Concat", {a.in("x", {"B", 3}), a.in("y", {"B", 3, 1})}, {{"axis", 0}});
     },
     "node 'cat': tensor 'y': rank must be 2, not 3"},
    {"concat along no axis",
     [](attempt& a) {
       a.op("cat", "Concat", {a.in("x", {2, 3}), a.in("y", {2, 3})});
     },
     "node 'cat': required attribute 'axis' is missing"},
    {"concat past the rank",
     [](attempt& a) {
       a.op("cat", "Concat", {a.in("x", {2, 3}), a.in("y", {2, 3})}, {{"axis", 2}});
     },
     "node 'cat': tensor 'x': axis 2 is out of range for rank 2"},
    // ---- convolution and pooling
    {"channels of a convolution",
     [](attempt& a) {
       a.op("conv", "Conv", {a.in("x", {1, 3, "H", "W"}), a.weight("w", {8, 4, 3, 3})});
     },
     "node 'conv': tensor 'x' axis 1: channels do not agree (3 vs 4)"},
    {"channels of groups",
     [](attempt& a) {
       a.op("conv", "Conv", {a.in("x", {1, 6, "H", "W"}), a.weight("w", {8, 2, 3, 3})},
            {{"group", 2}});
     },
     "node 'conv': tensor 'x' axis 1: channels do not agree (6 vs 4)"},
    {"filters that groups do not divide",
     [](attempt& a) {
       a.op("conv", "Conv", {a.in("x", {1, 6, "H", "W"}), a.weight("w", {8, 2, 3, 3})},
            {{"group", 3}});
     },
     "node 'conv': tensor 'w' axis 0: channels do not agree (8 vs 3 groups)"},
    {"kernel larger than the padded input",
     [](attempt& a) {
       a.op("conv", "Conv", {a.in("x", {1, 3, 4, 4}), a.weight("w", {8, 3, 8, 8})},
            {{"pads", {1, 1, 1, 1}}});
     },
     "node 'conv': tensor 'x' axis 2: window does not fit into the padded input (4 vs 8)"},
    {"pool larger than a bounded input",
     [](attempt& a) {
       a.range("H", 1, 6);
       a.op("pool", "MaxPool", {a.in("x", {1, 3, "H", 32})}, {{"kernel_shape", {9, 9}}});
     },
     "node 'pool': tensor 'x' axis 2: window does not fit into the padded input (H vs 9)"},
    {"pads of the wrong length",
     [](attempt& a) {
       a.op("conv", "Conv", {a.in("x", {1, 3, 8, 8}), a.weight("w", {8, 3, 3, 3})},
            {{"pads", {1, 1}}});
     },
     "node 'conv': attribute 'pads' must be a list of 4 integers, one for each axis it is "
     "about, not (1, 1)"},
    {"bias of a convolution",
     [](attempt& a) {
       a.op("conv", "Conv",
            {a.in("x", {1, 3, 8, 8}), a.weight("w", {8, 3, 3, 3}), a.weight("b", {7})});
     },
     "node 'conv': tensor 'b' axis 0: channels do not agree (7 vs 8)"},
    {"scale of a normalisation",
     [](attempt& a) {
       a.op("bn", "BatchNormalization",
            {a.in("x", {"B", 16, "L"}), a.weight("s", {16}), a.weight("b", {16}),
             a.weight("m", {8}), a.weight("v", {16})});
     },
     "node 'bn': tensor 'm' axis 0: channels do not agree (8 vs 16)"},
    // ---- broadcast
    {"sum that does not broadcast",
     [](attempt& a) {
       a.op("add", "Add", {a.in("x", {"B", 3, 4}), a.in("y", {3, 5})});
     },
     "node 'add': tensor 'y' axis 1: dimensions do not broadcast ((B, 3, 4) vs (3, 5))"},
    {"sum of a size and the next",
     [](attempt& a) {
       const value_id x = a.in("x", {"L"});
       a.range("L", 2, 100);
       const value_id y = a.op("cat", "Concat", {x, x}, {{"axis", 0}});
       a.op("add", "Add", {x, y});
     },
     "node 'add': tensor 'cat.0' axis 0: dimensions do not broadcast ((L) vs (2*L))"},
    {"choice of three that do not broadcast",
     [](attempt& a) {
       a.op("pick", "Where",
            {a.in("c", {4}, dtype::boolean), a.in("x", {2, 4}), a.in("y", {3, 1})});
     },
     "node 'pick': tensor 'y' axis 0: dimensions do not broadcast ((2, 4) vs (3, 1))"},
    {"expansion of a dim that is not 1",
     [](attempt& a) {
       a.op("grow", "Expand", {a.in("x", {3, 1}), a.ints("s", {4, 7})});
     },
     "node 'grow': tensor 'x' axis 0: dimensions do not broadcast (3 vs 4)"},
    {"largest of three that do not broadcast",
     [](attempt& a) {
       a.op("most", "Max", {a.in("x", {2, 1}), a.in("y", {1, 3}), a.in("z", {2, 4})});
     },
     "node 'most': tensor 'z' axis 1: dimensions do not broadcast ((2, 3) vs (2, 4))"},
    // ---- divisibility
    {"split into unequal parts",
     [](attempt& a) {
       a.ops("parts", "Split", {a.in("x", {"B", 10})}, 3, {{"axis", 1}});
       a.g.nodes().back().opset = 11;
     },
     "node 'parts': tensor 'x' axis 1: dimension is not divisible (10 vs 3 equal parts)"},
    {"split sizes that do not add up",
     [](attempt& a) {
       a.ops("parts", "Split", {a.in("x", {"B", 10}), a.ints("s", {4, 4})}, 2, {{"axis", 1}});
     },
     "node 'parts': tensor 'x' axis 1: dimensions do not agree (10 vs 8)"},
    {"split sizes for other outputs",
     [](attempt& a) {
       a.ops("parts", "Split", {a.in("x", {"B", 10}), a.ints("s", {5, 5})}, 3, {{"axis", 1}});
     },
     "node 'parts': tensor 's': split has 2 parts, the node has 3 outputs"},
    {"depth that blocks do not divide",
     [](attempt& a) {
       a.op("d2s", "DepthToSpace", {a.in("x", {1, 6, "H", "W"})}, {{"blocksize", 2}});
     },
     "node 'd2s': tensor 'x' axis 1: dimension is not divisible (6 vs 4)"},
    {"space that blocks do not divide",
     [](attempt& a) {
       a.range("H", 1, 99, 2, 1);
       a.op("s2d", "SpaceToDepth", {a.in("x", {1, 3, "H", 8})}, {{"blocksize", 2}});
     },
     "node 's2d': tensor 'x' axis 2: dimension is not divisible (2*floordiv(H - 1, 2) + 1 "
     "vs 2)"},
    {"groups of a normalisation",
     [](attempt& a) {
       a.op("gn", "GroupNormalization",
            {a.in("x", {1, 10, 8}), a.weight("s", {10}), a.weight("b", {10})}, {{"num_groups", 4}});
     },
     "node 'gn': tensor 'x' axis 1: dimension is not divisible (10 vs 4 groups)"},
    // ---- assumptions
    {"empty range",
     [](attempt& a) {
       a.range("B", 9, 3);
       a.op("r", "Relu", {a.in("x", {"B"})});
     },
     "symbol 'B' has an empty range 9..3"},
    {"range without a multiple",
     [](attempt& a) {
       a.range("B", 9, 15, 8);
       a.op("r", "Relu", {a.in("x", {"B"})});
     },
     "symbol 'B' has no multiple of 8 in 9..15"},
    {"ranges that exclude each other",
     [](attempt& a) {
       a.range("A", 1, 4);
       a.range("B", 8, 9);
       a.op("mm", "MatMul", {a.in("x", {2, "A"}), a.in("y", {"B", 3})});
     },
     "node 'mm': tensor 'y' axis 0: inner dimensions of a product do not agree (A vs B)"},
    {"strides that exclude each other",
     [](attempt& a) {
       a.range("A", 2, 100, 2, 0);
       a.range("B", 1, 101, 2, 1);
       a.op("mm", "MatMul", {a.in("x", {2, "A"}), a.in("y", {"B", 3})});
     },
     "node 'mm': tensor 'y' axis 0: inner dimensions of a product do not agree (A vs "
     "2*floordiv(B - 1, 2) + 1)"},
    {"a bound symbol against a weight",
     [](attempt& a) {
       a.range("D", 32, 32);
       a.op("mm", "MatMul", {a.in("x", {2, "D"}), a.weight("w", {64, 3})});
     },
     "node 'mm': tensor 'w' axis 0: inner dimensions of a product do not agree (32 vs 64)"},
    {"equal by one node, unequal by another",
     [](attempt& a) {
       const value_id x = a.in("x", {"A"});
       a.op("cat", "Concat", {a.in("p", {"A", 2}), a.in("q", {"B", 2})}, {{"axis", 1}});
       const value_id grown =
           a.op("pad", "Concat", {a.in("y", {"B"}), a.weight("w", {2})}, {{"axis", 0}});
       a.range("A", 2, 100);
       a.op("add", "Add", {x, grown});
     },
     "node 'add': tensor 'pad.0' axis 0: dimensions do not broadcast ((A) vs (A + 2))"},
    {"declared and inferred size",
     [](attempt& a) {
       const value_id y =
           a.op("up", "Concat", {a.in("x", {"B", 3}), a.in("z", {"B", 4})}, {{"axis", 1}});
       a.declare(y, {"B", 8});
     },
     "node 'up': tensor 'up.0' axis 1: dimensions do not agree (8 vs 7)"},
    {"declared and inferred rank",
     [](attempt& a) {
       const value_id y = a.op("r", "Relu", {a.in("x", {"B", 3})});
       a.declare(y, {"B", 3, 1});
     },
     "node 'r': tensor 'r.0': ranks do not agree ((B, 3, 1) vs (B, 3))"},
    {"declared and inferred type",
     [](attempt& a) {
       const value_id y = a.op("shape", "Shape", {a.in("x", {"B", 3})});
       a.declare(y, {2});
     },
     "node 'shape': tensor 'shape.0': element types do not agree (float32 vs int64)"},
    // ---- axes
    {"softmax past the rank",
     [](attempt& a) {
       a.op("sm", "Softmax", {a.in("x", {2, 3})}, {{"axis", 2}});
     },
     "node 'sm': tensor 'x': axis 2 is out of range for rank 2"},
    {"gather past the rank",
     [](attempt& a) {
       a.op("take", "Gather", {a.in("x", {2, 3}), a.ints("i", {0})}, {{"axis", -3}});
     },
     "node 'take': tensor 'x': axis -3 is out of range for rank 2"},
    {"reduction past the rank",
     [](attempt& a) {
       a.op("sum", "ReduceSum", {a.in("x", {2, 3}), a.ints("axes", {5})});
     },
     "node 'sum': tensor 'x': axis 5 is out of range for rank 2"},
    {"permutation with an axis twice",
     [](attempt& a) {
       a.op("t", "Transpose", {a.in("x", {2, 3, 4})}, {{"perm", {0, 2, 2}}});
     },
     "node 't': tensor 'x': attribute 'perm' must be a permutation of the axes of rank 3, "
     "not (0, 2, 2)"},
    {"permutation of another rank",
     [](attempt& a) {
       a.op("t", "Transpose", {a.in("x", {2, 3, 4})}, {{"perm", {1, 0}}});
     },
     "node 't': tensor 'x': rank must be 2 as perm has it, not 3"},
    {"squeeze of a dim that is not 1",
     [](attempt& a) {
       a.op("sq", "Squeeze", {a.in("x", {1, 3, 4}), a.ints("axes", {1})});
     },
     "node 'sq': tensor 'x' axis 1: dimensions do not agree (3 vs 1)"},
    {"unsqueeze of an axis twice",
     [](attempt& a) {
       a.op("un", "Unsqueeze", {a.in("x", {3}), a.ints("axes", {0, 0})});
     },
     "node 'un': tensor 'x': axis 0 is given twice"},
    {"flatten past the rank",
     [](attempt& a) {
       a.op("fl", "Flatten", {a.in("x", {2, 3})}, {{"axis", 4}});
     },
     "node 'fl': tensor 'x': axis 4 is out of range for rank 2"},
    {"more than there is of the largest",
     [](attempt& a) {
       a.ops("top", "TopK", {a.in("x", {"B", 5}), a.ints("k", {6})}, 2);
     },
     "node 'top': tensor 'x' axis 1: value is out of range (6 vs 5)"},
    {"repeats for another rank",
     [](attempt& a) {
       a.op("tile", "Tile", {a.in("x", {2, 3}), a.ints("r", {1, 2, 3})});
     },
     "node 'tile': tensor 'r': repeats has 3 entries for an input of rank 2"},
    {"slice by steps of 0",
     [](attempt& a) {
       a.op("cut", "Slice",
            {a.in("x", {8}), a.ints("from", {0}), a.ints("to", {8}), a.ints("axes", {0}),
             a.ints("by", {0})});
     },
     "node 'cut': tensor 'by': Slice needs steps that are not 0"},
    {"pads for another rank",
     [](attempt& a) {
       a.op("pad", "Pad", {a.in("x", {2, 3}), a.ints("p", {1, 1})});
     },
     "node 'pad': tensor 'p': pads has 2 entries, not 2 for each of 2 axes"},
    {"padding that takes all away",
     [](attempt& a) {
       a.op("pad", "Pad", {a.in("x", {2, 3}), a.ints("p", {0, -2, 0, -2})});
     },
     "node 'pad': tensor 'x' axis 1: dimensions do not agree (3 vs -4)"},
    // ---- operators
    {"too many inputs",
     [](attempt& a) {
       a.op("r", "Relu", {a.in("x", {2}), a.in("y", {2})});
     },
     "node 'r': Relu takes 1 input, got 2"},
    {"too few inputs", [](attempt& a) { a.op("add", "Add", {a.in("x", {2})}); },
     "node 'add': Add takes 2 inputs, got 1"},
    {"a required input left out",
     [](attempt& a) {
       a.op("mm", "MatMul", {a.in("x", {2, 3}), sod2::absent});
     },
     "node 'mm': required input 1 is left out"},
    {"a required attribute left out",
     [](attempt& a) {
       a.op("d2s", "DepthToSpace", {a.in("x", {1, 4, 2, 2})});
     },
     "node 'd2s': required attribute 'blocksize' is missing"},
    {"an attribute of a wrong type",
     [](attempt& a) {
       a.op("sm", "Softmax", {a.in("x", {2, 3})}, {{"axis", 1.5}});
     },
     "node 'sm': attribute 'axis' must be an integer"},
    {"an attribute that is no list",
     [](attempt& a) {
       a.op("t", "Transpose", {a.in("x", {2, 3})}, {{"perm", 1}});
     },
     "node 't': attribute 'perm' must be a list of integers"},
    {"operands of two types",
     [](attempt& a) {
       a.op("add", "Add", {a.in("x", {2}), a.in("n", {2}, dtype::i64)});
     },
     "node 'add': tensor 'n': element types do not agree (float32 vs int64)"},
    {"an operator that nobody knows",
     [](attempt& a) { a.op("magic", "Conjure", {a.in("x", {2})}); },
     "node 'magic': operator 'Conjure' of domain '' is not registered; add an op_row for "
     "it to the registry"},
    {"an operator of a later opset",
     [](attempt& a) {
       a.op("g", "Gelu", {a.in("x", {2})});
       a.g.nodes().back().opset = 13;
     },
     "node 'g': operator 'Gelu' of domain '' does not exist in opset 13"},
    // ---- graphs
    {"a cycle",
     [](attempt& a) {
       const value_id x = a.in("x", {2}), later = a.g.add_value("later");
       const value_id y = a.op("first", "Add", {x, later});
       sod2::graph::node n;
       n.name = "second";
       n.op = "Relu";
       n.inputs = {y};
       n.outputs = {later};
       a.g.add_node(std::move(n));
     },
     "node 'first': graph has a cycle"},
    {"a value that nobody makes", [](attempt& a) { a.op("r", "Relu", {a.g.add_value("ghost")}); },
     "node 'r': tensor 'ghost': value is not defined"},
    {"a value that two nodes make",
     [](attempt& a) {
       const value_id y = a.op("first", "Relu", {a.in("x", {2})});
       sod2::graph::node n;
       n.name = "second";
       n.op = "Sigmoid";
       n.inputs = {a.g.scopes()[0].inputs[0]};
       n.outputs = {y};
       a.g.add_node(std::move(n));
     },
     "node 'second': tensor 'first.0': value is defined twice"},
    {"arms of different ranks before a consumer that needs the rank",
     [](attempt& a) {
       const value_id x = a.in("x", {2, 3}), c = a.in("c", {}, dtype::boolean);
       const value_id axes = a.ints("axes", {0});
       const value_id y = a.branch(
           "choose", c, [&] { return a.op("same", "Relu", {x}); },
           [&] {
             return a.op("wider", "Unsqueeze", {x, axes});
           });
       a.op("last", "Softmax", {a.op("act", "Relu", {y})}, {{"axis", -1}});
     },
     "node 'last': tensor 'act.0': rank must be known here, but the arms of 'choose' give "
     "different ones ((2, 3) vs (1, 2, 3))"},
    {"arms that no run can take",
     [](attempt& a) {
       const value_id x = a.in("x", {4, 6}), c = a.in("c", {}, dtype::boolean);
       const value_id s = a.ints("s", {5, 5});
       a.branch(
           "choose", c,
           [&] {
             return a.op("one", "Reshape", {x, s});
           },
           [&] {
             return a.op("two", "Reshape", {x, s});
           });
     },
     "node 'choose': no arm can run: node 'choose/then/one': tensor 'x': reshape must "
     "keep the number of elements: (4, 6) has 24, (5, 5) has 25"},
    // ---- at bind
    {"a symbol with two values",
     [](attempt& a) {
       a.op("add", "Add", {a.in("x", {"B", 3}), a.in("y", {"B", 3})});
       a.bound = {{{2, 3}, std::vector<float>(6)}, {{4, 3}, std::vector<float>(12)}};
     },
     "tensor 'y' axis 0: symbol 'B' has two values (2 vs 4)"},
    {"inner dims at bind",
     [](attempt& a) {
       a.op("mm", "MatMul", {a.in("x", {2, "K"}), a.in("y", {"J", 3})});
       a.bound = {{{2, 4}, std::vector<float>(8)}, {{5, 3}, std::vector<float>(15)}};
     },
     "node 'mm': tensor 'y' axis 0: inner dimensions of a product do not agree: K == J (4 "
     "vs 5)"},
    {"broadcast at bind",
     [](attempt& a) {
       a.op("add", "Add", {a.in("x", {"A"}), a.in("y", {"B"})});
       a.bound = {{{4}, std::vector<float>(4)}, {{5}, std::vector<float>(5)}};
     },
     "node 'add': tensor 'y' axis 0: dimensions do not broadcast: broadcast(A, B) exists "
     "(4 vs 5)"},
    {"divisibility at bind",
     [](attempt& a) {
       a.op("pairs", "Reshape", {a.in("x", {"L"}), a.ints("s", {-1, 2})});
       a.bound = {{{5}, std::vector<float>(5)}};
     },
     "node 'pairs': tensor 'x' axis 0: reshape must keep the number of elements: L == "
     "2*floordiv(L, 2) (5 vs 4)"},
    {"a range at bind",
     [](attempt& a) {
       a.range("B", 1, 8);
       a.op("r", "Relu", {a.in("x", {"B"})});
       a.bound = {{{9}, std::vector<float>(9)}};
     },
     "tensor 'x' axis 0: symbol 'B' = 9 is outside 1..8"},
    {"a stride at bind",
     [](attempt& a) {
       a.range("B", 8, 64, 8);
       a.op("r", "Relu", {a.in("x", {"B"})});
       a.bound = {{{12}, std::vector<float>(12)}};
     },
     "tensor 'x' axis 0: symbol 'B' = 12 is not a multiple of 8"},
    {"a fixed dim at bind",
     [](attempt& a) {
       a.op("r", "Relu", {a.in("x", {"B", 3})});
       a.bound = {{{2, 4}, std::vector<float>(8)}};
     },
     "tensor 'x' axis 1: input has a wrong shape (3 vs 4)"},
    {"a rank at bind",
     [](attempt& a) {
       a.op("r", "Relu", {a.in("x", {"B", 3})});
       a.bound = {{{6}, std::vector<float>(6)}};
     },
     "tensor 'x': rank differs (2 vs 1)"},
    {"a type at bind",
     [](attempt& a) {
       a.op("r", "Relu", {a.in("x", {"B"}, dtype::f64)});
       a.bound = {{{1}, {0}}};
     },
     "tensor 'x': input has a wrong element type (float64 vs float32)"},
    {"inputs at bind",
     [](attempt& a) {
       a.op("add", "Add", {a.in("x", {"B"}), a.in("y", {"B"})});
       a.bound = {{{1}, {0}}};
     },
     "the model has 2 inputs, got 1"},
    {"a window that does not fit at bind",
     [](attempt& a) {
       a.op("pool", "MaxPool", {a.in("x", {1, 1, "L"})}, {{"kernel_shape", {9}}});
       a.bound = {{{1, 1, 3}, std::vector<float>(3)}};
     },
     "tensor 'pool.0' axis 2: a dimension is negative (-5 vs 0)"},
    {"a size that 64 bits do not hold",
     [](attempt& a) {
       const value_id x = a.in("x", {"N"});
       const value_id n = a.op("shape", "Shape", {x});
       const value_id n2 = a.op("n2", "Mul", {n, a.ints("much", {std::int64_t{1} << 62})});
       a.op("fill", "ConstantOfShape", {n2});
       a.bound = {{{3}, std::vector<float>(3)}};
     },
     "node 'fill': tensor 'fill.0': size does not fit into 64 bits"},
};

}  // namespace

TEST_CASE("errors: one line with node, tensor, axis and both facts") {
  static_assert(std::size(table) >= 40);
  for (const broken& b : table) {
    CAPTURE(b.what);
    CHECK(refusal(b) == b.text);
  }
}
