// The layer vocabulary in which the ten networks are written: thin functions over the public graph
// builder that give what exporters of PyTorch give (opset 17), weights included.
//
// Weights are either declared (a shape without data: enough for analysis, no memory) or synthetic
// (seeded He-normal, so that activations keep their scale), which is what small twins run with.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/graph/graph.hpp>
#include <sod2/rdp/analysis.hpp>

namespace models {

enum class weight_source { declared, synthetic };

/// How large a network is and where its weights come from; the published size by default.
struct config {
  double width = 1;        // divides numbers of channels
  std::int64_t depth = 1;  // divides numbers of repeated layers
  std::int64_t size = 0;   // side of inputs whose size is fixed; 0: published, smaller if narrower
  weight_source weights = weight_source::declared;
  std::uint64_t seed = 1;
  double open = 0.85;  // about the share of gates that open, for synthetic weights
};

/// A value and its number of features: what a layer's weights must fit to.
struct tensor {
  sod2::value_id id{};
  std::int64_t channels = 0;
  operator sod2::value_id() const { return id; }
};

/// One entry of a shape: a number, or a scalar that the graph computes.
struct extent {
  std::int64_t number = 0;
  sod2::value_id value = sod2::absent;
  extent(int n) : number(n) {}
  extent(std::int64_t n) : number(n) {}
  extent(tensor t) : value(t.id) {}
};

struct conv_shape {
  std::int64_t kernel = 1, stride = 1;
  std::int64_t pad = -1;  // left out: half the kernel
  std::int64_t groups = 1;
  bool bias = true;
  int axes = 2;
  bool contrast = false;  // see network::contrast_weight
};

class network {
 public:
  explicit network(const config& c) : config_(c) { graph_.set_opset(17); }

  const config& settings() const { return config_; }
  sod2::graph& graph() { return graph_; }
  sod2::graph finish() { return std::move(graph_); }
  /// Channels as the configuration scales them, a multiple of `multiple`.
  std::int64_t wide(std::int64_t channels, std::int64_t multiple = 1) const {
    const auto scaled = static_cast<std::int64_t>(static_cast<double>(channels) / config_.width);
    return multiple * at_least_one(scaled / multiple);
  }
  std::int64_t deep(std::int64_t layers) const { return at_least_one(layers / config_.depth); }
  /// Side of an input of fixed size, a multiple of `multiple`; narrow networks look at less.
  std::int64_t side(std::int64_t published, std::int64_t multiple) const {
    if (config_.size > 0) return config_.size;
    if (config_.width <= 1) return published;
    const auto scaled = static_cast<std::int64_t>(static_cast<double>(published) / config_.width);
    return multiple * (scaled < 2 * multiple ? 2 : scaled / multiple);
  }

  // ---- names ----

  /// Names of nodes and weights made while it lives begin with `name`.
  class part_guard {
   public:
    part_guard(network& n, std::string_view name) : network_(n), before_(n.prefix_) {
      if (!network_.prefix_.empty()) network_.prefix_ += '.';
      network_.prefix_ += name;
    }
    part_guard(const part_guard&) = delete;
    part_guard& operator=(const part_guard&) = delete;
    ~part_guard() { network_.prefix_ = before_; }

   private:
    network& network_;
    std::string before_;
  };
  [[nodiscard]] part_guard part(std::string_view name) { return {*this, name}; }
  [[nodiscard]] part_guard part(std::string_view name, std::int64_t index) {
    return {*this, std::string(name) + "." + std::to_string(index)};
  }
  /// Gives a value a name of its own, below the current part.
  tensor named(tensor x, std::string_view name) {
    graph_.values()[x.id.index].name =
        prefix_.empty() ? std::string(name) : prefix_ + "/" + std::string(name);
    return x;
  }

  // ---- inputs, outputs, weights, constants ----

  tensor input(std::string name, sod2::dtype type, std::vector<sod2::dim_spec> dims,
               std::int64_t channels = 0) {
    return {graph_.input(std::move(name), type, std::move(dims)), channels};
  }
  void output(tensor x, std::string name) { graph_.output(x, std::move(name)); }

  /// A trained tensor, made when its name is first used: He-normal for `fan_in` inputs per element,
  /// or `mean` with some spread.
  tensor weight(std::string_view name, std::vector<std::int64_t> dims, std::int64_t fan_in,
                double gain = 1) {
    return make(name, std::move(dims), 0, gain * std::sqrt(2.0 / static_cast<double>(fan_in)));
  }
  tensor weight_around(std::string_view name, std::vector<std::int64_t> dims, double mean,
                       double spread) {
    return make(name, std::move(dims), mean, spread);
  }
  /// Like `weight`, with a sum of zero for each output: what all inputs have in common cancels. So
  /// a gate over features that are positive anyway sees how images differ.
  tensor contrast_weight(std::string_view name, std::vector<std::int64_t> dims, std::int64_t fan_in,
                         double gain = 1) {
    const std::int64_t outputs = dims.front();
    return make(name, std::move(dims), 0, gain * std::sqrt(2.0 / static_cast<double>(fan_in)),
                outputs);
  }
  /// A stored tensor that was not trained; its name begins with "buffer:" and counts nowhere.
  tensor buffer(std::string_view name, std::vector<std::int64_t> dims, double mean = 0,
                double spread = 1) {
    return make("buffer:" + std::string(name), std::move(dims), mean, spread);
  }
  tensor integers(const std::vector<std::int64_t>& values) {
    return {graph_.constant<std::int64_t>(literal_name(),
                                          {static_cast<std::int64_t>(values.size())}, values)};
  }
  tensor integer(std::int64_t value) {
    return {graph_.constant<std::int64_t>(literal_name(), {}, {value})};
  }
  tensor real(double value) {
    return {graph_.constant<float>(literal_name(), {}, {static_cast<float>(value)})};
  }
  tensor reals(std::int64_t count, float value) {
    return {graph_.constant<float>(literal_name(), {count},
                                   std::vector<float>(static_cast<std::size_t>(count), value))};
  }

  // ---- operators ----

  std::vector<tensor> ops(std::string_view op, std::vector<tensor> inputs, std::size_t outputs,
                          std::vector<sod2::attribute> attributes = {}) {
    std::vector<sod2::value_id> ids(inputs.begin(), inputs.end());
    const auto made = graph_.ops(std::string(op), std::move(ids), outputs, std::move(attributes));
    graph_.nodes().back().name = node_name(op);
    std::vector<tensor> out;
    for (const sod2::value_id v : made)
      out.push_back({v, inputs.empty() ? 0 : inputs.front().channels});
    return out;
  }
  /// One output with the features of the first input.
  tensor op(std::string_view op, std::vector<tensor> inputs,
            std::vector<sod2::attribute> attributes = {}) {
    return ops(op, std::move(inputs), 1, std::move(attributes))[0];
  }
  tensor add(tensor a, tensor b) { return op("Add", {a, b}); }
  tensor sub(tensor a, tensor b) { return op("Sub", {a, b}); }
  tensor mul(tensor a, tensor b) { return op("Mul", {a, b}); }
  tensor div(tensor a, tensor b) { return op("Div", {a, b}); }
  tensor matmul(tensor a, tensor b) { return {op("MatMul", {a, b}), b.channels}; }
  tensor transpose(tensor x, std::vector<std::int64_t> order) {
    return op("Transpose", {x}, {{"perm", std::move(order)}});
  }
  tensor softmax(tensor x, std::int64_t axis = -1) { return op("Softmax", {x}, {{"axis", axis}}); }
  tensor cast(tensor x, sod2::dtype to) {
    const std::int64_t code = to == sod2::dtype::f32 ? 1 : to == sod2::dtype::i64 ? 7 : 9;  // bool
    return op("Cast", {x}, {{"to", code}});
  }
  /// Along the feature axis by default.
  tensor concat(std::vector<tensor> parts, std::int64_t axis = 1) {
    std::int64_t channels = 0;
    for (const tensor& p : parts) channels += p.channels;
    const tensor joined = op("Concat", std::move(parts), {{"axis", axis}});
    return {joined, channels};
  }
  tensor slice(tensor x, std::int64_t axis, extent from, extent to) {
    return op("Slice", {x, shape({from}), shape({to}), integers({axis}), integers({1})});
  }
  tensor gather(tensor x, tensor indices, std::int64_t axis) {
    return op("Gather", {x, indices}, {{"axis", axis}});
  }
  tensor unsqueeze(tensor x, std::vector<std::int64_t> axes) {
    return op("Unsqueeze", {x, integers(axes)});
  }
  tensor squeeze(tensor x, std::vector<std::int64_t> axes) {
    return op("Squeeze", {x, integers(axes)});
  }

  // ---- shapes as exporters compute them ----

  /// x.size(axis): a scalar.
  tensor size(tensor x, std::int64_t axis) {
    return {gather({op("Shape", {x})}, integer(axis), 0), 0};
  }
  /// A vector of extents: a constant, or scalars unsqueezed and concatenated.
  tensor shape(const std::vector<extent>& list) {
    std::vector<tensor> parts;
    std::vector<std::int64_t> numbers;
    bool computed = false;
    for (const extent& e : list) computed = computed || e.value != sod2::absent;
    for (const extent& e : list) {
      if (!computed)
        numbers.push_back(e.number);
      else
        parts.push_back(e.value == sod2::absent ? integers({e.number})
                                                : unsqueeze({e.value, 0}, {0}));
    }
    if (!computed) return integers(numbers);
    return parts.size() == 1 ? parts[0] : concat(std::move(parts), 0);
  }
  tensor reshape(tensor x, const std::vector<extent>& target) {
    return op("Reshape", {x, shape(target)});
  }
  tensor expand(tensor x, const std::vector<extent>& target) {
    return op("Expand", {x, shape(target)});
  }
  /// (B, C, H, W) -> (B, C, H*W)
  tensor flat_map(tensor x) {
    return reshape(x, {size(x, 0), size(x, 1), mul(size(x, 2), size(x, 3))});
  }
  /// (B, L, heads*d) -> (B, L, heads, d), reordered.
  tensor split_heads(tensor x, std::int64_t heads, std::vector<std::int64_t> order) {
    const std::int64_t head = x.channels / heads;
    return transpose(reshape(x, {size(x, 0), size(x, 1), heads, head}), std::move(order));
  }
  /// (B, heads, L, d) -> (B, L, features)
  tensor join_heads(tensor x, std::int64_t features) {
    const tensor rows = transpose(x, {0, 2, 1, 3});
    return {reshape(rows, {size(rows, 0), size(rows, 1), features}), features};
  }
  /// Bilinear, to a vector of height and width.
  tensor resize(tensor x, tensor sizes, const char* coordinates) {
    const tensor outer = op("Shape", {x}, {{"start", 0}, {"end", 2}});
    return op("Resize", {x, {}, {}, op("Concat", {outer, sizes}, {{"axis", 0}})},
              {{"mode", "linear"}, {"coordinate_transformation_mode", coordinates}});
  }
  tensor resize_like(tensor x, tensor like) {
    return resize(x, op("Shape", {like}, {{"start", 2}, {"end", 4}}), "align_corners");
  }

  // ---- layers with weights ----

  tensor conv(tensor x, std::string_view name, std::int64_t out, const conv_shape& s = {}) {
    const auto here = part(name);
    const std::int64_t pad = s.pad < 0 ? s.kernel / 2 : s.pad;
    const std::size_t axes = static_cast<std::size_t>(s.axes);
    std::vector<std::int64_t> dims{out, x.channels / s.groups};
    dims.insert(dims.end(), axes, s.kernel);
    std::int64_t fan_in = x.channels / s.groups;
    for (std::size_t i = 0; i < axes; ++i) fan_in *= s.kernel;
    std::vector<tensor> inputs{
        x, s.contrast ? contrast_weight("weight", dims, fan_in) : weight("weight", dims, fan_in)};
    if (s.bias) inputs.push_back(weight_around("bias", {out}, 0, 0.05));
    return {op("Conv", inputs,
               {{"kernel_shape", std::vector<std::int64_t>(axes, s.kernel)},
                {"strides", std::vector<std::int64_t>(axes, s.stride)},
                {"pads", std::vector<std::int64_t>(2 * axes, pad)},
                {"group", s.groups}}),
            out};
  }
  /// Doubles height and width.
  tensor conv_transpose(tensor x, std::string_view name, std::int64_t out) {
    const auto here = part(name);
    return {op("ConvTranspose",
               {x, weight("weight", {x.channels, out, 2, 2}, x.channels),
                weight_around("bias", {out}, 0, 0.05)},
               {{"kernel_shape", {2, 2}}, {"strides", {2, 2}}}),
            out};
  }
  /// `gain` scales what a residual branch adds, so that deep stacks do not grow.
  tensor batch_norm(tensor x, std::string_view name, double gain = 1) {
    const auto here = part(name);
    const std::vector<std::int64_t> dims{x.channels};
    return op("BatchNormalization",
              {x, weight_around("weight", dims, gain, 0.05), weight_around("bias", dims, 0, 0.05),
               buffer("running_mean", dims, 0, 0.05), buffer("running_var", dims, 1, 0.05)});
  }
  /// Fully connected over the last axis of a sequence.
  tensor linear(tensor x, std::string_view name, std::int64_t out, bool bias = true) {
    const auto here = part(name);
    const tensor y{matmul(x, weight("weight", {x.channels, out}, x.channels)), out};
    return bias ? add(y, weight_around("bias", {out}, 0, 0.05)) : y;
  }
  /// Fully connected over a matrix; `gain` scales synthetic weights.
  tensor gemm(tensor x, std::string_view name, std::int64_t out, double gain = 1) {
    const auto here = part(name);
    return {op("Gemm",
               {x, weight("weight", {out, x.channels}, x.channels, gain),
                weight_around("bias", {out}, 0, 0.05)},
               {{"transB", 1}}),
            out};
  }
  /// Several of them, with ReLU in between.
  tensor mlp(tensor x, std::string_view name, const std::vector<std::int64_t>& widths) {
    const auto here = part(name);
    for (std::size_t i = 0; i < widths.size(); ++i) {
      x = linear(x, "layers." + std::to_string(i), widths[i]);
      if (i + 1 < widths.size()) x = relu(x);
    }
    return x;
  }
  tensor layer_norm(tensor x, std::string_view name, double epsilon = 1e-5) {
    const auto here = part(name);
    return op("LayerNormalization",
              {x, weight_around("weight", {x.channels}, 1, 0.05),
               weight_around("bias", {x.channels}, 0, 0.05)},
              {{"axis", -1}, {"epsilon", epsilon}});
  }
  /// The same written out, over `axis`; the affine part has the shape (C) or (C, 1, 1).
  tensor layer_norm_in_pieces(tensor x, std::string_view name, std::int64_t axis = -1,
                              double epsilon = 1e-5) {
    const auto here = part(name);
    const std::vector<std::int64_t> dims = axis == -1 ? std::vector<std::int64_t>{x.channels}
                                                      : std::vector<std::int64_t>{x.channels, 1, 1};
    const std::vector<sod2::attribute> along{{"axes", {axis}}, {"keepdims", 1}};
    const tensor centred = sub(x, op("ReduceMean", {x}, along));
    const tensor variance = op("ReduceMean", {op("Pow", {centred, real(2)})}, along);
    const tensor normal = div(centred, op("Sqrt", {add(variance, real(epsilon))}));
    return add(mul(normal, weight_around("weight", dims, 1, 0.05)),
               weight_around("bias", dims, 0, 0.05));
  }
  /// Over groups of channels, as exporters write it: an instance normalisation of three axes.
  tensor group_norm(tensor x, std::string_view name, std::int64_t groups, double epsilon) {
    const auto here = part(name);
    const tensor grouped = reshape(x, {0, groups, -1});
    const tensor normal =
        op("InstanceNormalization", {grouped, reals(groups, 1.0F), reals(groups, 0.0F)},
           {{"epsilon", epsilon}});
    const tensor back = op("Reshape", {{normal, x.channels}, op("Shape", {x})});
    return add(mul(back, weight_around("weight", {x.channels, 1, 1}, 1, 0.05)),
               weight_around("bias", {x.channels, 1, 1}, 0, 0.05));
  }

  // ---- layers without ----

  tensor relu(tensor x) { return op("Relu", {x}); }
  tensor sigmoid(tensor x) { return op("Sigmoid", {x}); }
  tensor swish(tensor x) { return mul(x, sigmoid(x)); }
  /// x/2 * (1 + erf(x / sqrt 2))
  tensor gelu(tensor x) {
    const tensor e = op("Erf", {div(x, real(1.4142135623730951))});
    return mul(mul(x, add(e, real(1))), real(0.5));
  }
  tensor max_pool(tensor x, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
    return op("MaxPool", {x},
              {{"kernel_shape", {kernel, kernel}},
               {"strides", {stride, stride}},
               {"pads", {pad, pad, pad, pad}}});
  }
  tensor global_pool(tensor x) { return op("GlobalAveragePool", {x}); }
  tensor flatten(tensor x) { return op("Flatten", {x}, {{"axis", 1}}); }

  // ---- control flow ----

  /// If: each arm is a function that builds its nodes and returns its result.
  template <class Then, class Else>
  tensor choose(tensor condition, Then&& then_arm, Else&& else_arm) {
    std::int64_t channels = 0;
    sod2::graph::node n;
    n.op = "If";
    n.opset = 17;
    n.name = node_name("If");
    n.inputs = {condition};
    const auto arm = [&](const char* name, auto&& build) {
      const sod2::scope_id s = graph_.add_scope(name);
      const sod2::scope_id outer = graph_.enter(s);
      const tensor result = build();
      channels = result.channels;
      graph_.output(result);
      graph_.enter(outer);
      n.scopes.push_back(s);
    };
    arm("then_branch", std::forward<Then>(then_arm));
    arm("else_branch", std::forward<Else>(else_arm));
    const sod2::value_id out = graph_.add_value();
    n.outputs = {out};
    graph_.add_node(std::move(n));
    return {out, channels};
  }
  /// What an arm gives that only hands a value on.
  tensor identity(tensor x) { return op("Identity", {x}); }
  /// Is any element above one half? Samples of a batch share one control flow.
  tensor any(tensor mask) {
    return op("Greater", {op("ReduceMax", {mask}, {{"keepdims", 0}}), real(0.5)});
  }
  /// Bias of a gate's logit, of about unit spread, that opens it in `settings().open` of the cases.
  double gate_bias() const {
    const double p = config_.open;
    return p <= 0 ? -100 : p >= 1 ? 100 : std::log(p / (1 - p)) / 1.702;
  }

 private:
  static std::int64_t at_least_one(std::int64_t n) { return n < 1 ? 1 : n; }

  std::string node_name(std::string_view op) {
    std::string name = prefix_.empty() ? std::string(op) : prefix_ + "/" + std::string(op);
    const int before = nodes_called_[name]++;
    return before == 0 ? name : name + "_" + std::to_string(before);
  }
  std::string literal_name() { return "literal:" + std::to_string(literals_++); }

  tensor make(std::string_view name, std::vector<std::int64_t> dims, double mean, double spread,
              std::int64_t centred_parts = 0) {
    std::string full = prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
    if (name.starts_with("buffer:"))
      full = "buffer:" + (prefix_.empty() ? std::string{} : prefix_ + ".") +
             std::string(name.substr(7));
    if (const auto known = weights_.find(full); known != weights_.end()) return known->second;
    sod2::constant_tensor t;
    t.type = sod2::dtype::f32;
    t.dims = std::move(dims);
    if (config_.weights == weight_source::synthetic) fill(t, full, mean, spread, centred_parts);
    const std::int64_t channels = t.dims.empty() ? 0 : t.dims.back();
    const tensor made{graph_.constant(full, std::move(t)), channels};
    return weights_.emplace(std::move(full), made).first->second;
  }
  // The same numbers on every machine: sums of uniform ones, seeded by the tensor's name.
  void fill(sod2::constant_tensor& t, std::string_view name, double mean, double spread,
            std::int64_t centred_parts) const {
    std::uint64_t state = config_.seed;
    for (const char c : name) state = (state ^ static_cast<std::uint8_t>(c)) * 0x100000001b3ULL;
    const auto uniform = [&state] {
      std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
      return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
    };
    std::vector<float> data(static_cast<std::size_t>(t.view().count()));
    for (float& x : data) {
      double sum = -6;
      for (int k = 0; k < 12; ++k) sum += uniform();
      x = static_cast<float>(mean + spread * sum);
    }
    const std::size_t part =
        centred_parts > 0 ? data.size() / static_cast<std::size_t>(centred_parts) : 0;
    for (std::size_t first = 0; part > 1 && first < data.size(); first += part) {
      double sum = 0;
      for (std::size_t i = 0; i < part; ++i) sum += static_cast<double>(data[first + i]);
      for (std::size_t i = 0; i < part; ++i)
        data[first + i] -= static_cast<float>(sum / static_cast<double>(part));
    }
    t = sod2::constant_tensor::of<float>(t.dims, data);
  }

  config config_;
  sod2::graph graph_;
  std::string prefix_;
  std::map<std::string, int> nodes_called_;
  std::map<std::string, tensor> weights_;
  int literals_ = 0;
};

/// Trained numbers of a network: everything stored but buffers and literals.
inline std::int64_t parameter_count(const sod2::graph& g) {
  std::int64_t sum = 0;
  for (const sod2::graph::value& v : g.values())
    if (v.constant != 0xffffffff && !v.name.starts_with("buffer:") &&
        !v.name.starts_with("literal:"))
      sum += g.constants()[v.constant].view().count();
  return sum;
}

/// A range of multiples that an input size keeps to.
inline sod2::symbol_declaration multiples(std::string name, std::int64_t lo, std::int64_t hi,
                                          std::int64_t step = 1) {
  return {std::move(name), {lo, hi, step, 0}};
}
/// What analysis may assume: ranges of sizes, and inputs whose values are sizes.
inline sod2::analysis_options assuming(std::vector<sod2::symbol_declaration> ranges,
                                       std::vector<std::string> shape_inputs = {}) {
  sod2::analysis_options options;
  options.symbols = std::move(ranges);
  options.shape_inputs = std::move(shape_inputs);
  return options;
}

}  // namespace models
