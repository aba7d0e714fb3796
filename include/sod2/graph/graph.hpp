// The reference graph: what the ONNX reader fills, what examples and tests build by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/core/ids.hpp>
#include <sod2/graph/traits.hpp>

namespace sod2 {

/// A dim of a graph input: a size, a symbol by name, or nothing known.
struct dim_spec {
  std::int64_t size = -1;
  std::string symbol;
  dim_spec() = default;
  template <class Int>
    requires(static_cast<Int>(1) / 2 == 0)
  dim_spec(Int value) : size(static_cast<std::int64_t>(value)) {}
  dim_spec(const char* name) : symbol(name) {}
  dim_spec(std::string name) : symbol(std::move(name)) {}
};

/// A constant tensor; `bytes` may point into a file that the graph's owner keeps mapped.
struct constant_tensor {
  dtype type = dtype::undefined;
  std::vector<std::int64_t> dims;
  const std::byte* data = nullptr;
  std::size_t size = 0;              // in bytes
  std::vector<std::byte> owned;      // backs `data` when the graph owns it
  std::vector<std::string> strings;  // elements of a string tensor

  constant_tensor() = default;
  constant_tensor(constant_tensor&&) noexcept = default;
  constant_tensor& operator=(constant_tensor&&) noexcept = default;
  constant_tensor(const constant_tensor& other)
      : type(other.type),
        dims(other.dims),
        data(other.data),
        size(other.size),
        owned(other.owned),
        strings(other.strings) {
    if (!owned.empty()) data = owned.data();
    if (!strings.empty()) data = reinterpret_cast<const std::byte*>(strings.data());
  }
  constant_tensor& operator=(const constant_tensor& other) {
    return *this = constant_tensor(other);
  }

  constant_view view() const { return {data, size, dims, type}; }

  static constant_tensor copy_of(dtype type, std::vector<std::int64_t> dims, const void* data,
                                 std::size_t bytes) {
    constant_tensor t;
    t.type = type;
    t.dims = std::move(dims);
    t.owned.resize(bytes);
    if (bytes > 0) std::memcpy(t.owned.data(), data, bytes);
    t.data = t.owned.data();
    t.size = bytes;
    return t;
  }
  /// Its bytes stay where they are.
  static constant_tensor borrow(const constant_view& c) {
    constant_tensor t;
    t.type = c.type;
    t.dims.assign(c.dims.begin(), c.dims.end());
    t.data = c.data;
    t.size = c.bytes;
    return t;
  }
  template <class T>
  static constant_tensor of(std::vector<std::int64_t> dims, std::span<const T> elements) {
    return copy_of(dtype_of<T>, std::move(dims), elements.data(), elements.size_bytes());
  }
  static constant_tensor of_strings(std::vector<std::int64_t> dims,
                                    std::vector<std::string> elements) {
    constant_tensor t;
    t.type = dtype::string;
    t.dims = std::move(dims);
    t.strings = std::move(elements);
    t.data = reinterpret_cast<const std::byte*>(t.strings.data());
    t.size = t.strings.size() * sizeof(std::string);
    return t;
  }
};

/// A named attribute; the constructors make `attribute("axis", 1)` and `attribute("perm", {0, 2,
/// 1})`.
struct attribute {
  std::string name;
  attribute_kind kind = attribute_kind::none;
  std::int64_t integer = 0;
  double real = 0;
  std::string string;
  std::vector<std::int64_t> integers;
  std::vector<float> reals;
  std::vector<std::string> strings;
  constant_tensor tensor;

  attribute() = default;
  attribute(std::string n, int v) : name(std::move(n)), kind(attribute_kind::integer), integer(v) {}
  attribute(std::string n, std::int64_t v)
      : name(std::move(n)), kind(attribute_kind::integer), integer(v) {}
  attribute(std::string n, double v) : name(std::move(n)), kind(attribute_kind::real), real(v) {}
  attribute(std::string n, float v)
      : name(std::move(n)), kind(attribute_kind::real), real(static_cast<double>(v)) {}
  attribute(std::string n, const char* v)
      : name(std::move(n)), kind(attribute_kind::string), string(v) {}
  attribute(std::string n, std::string v)
      : name(std::move(n)), kind(attribute_kind::string), string(std::move(v)) {}
  attribute(std::string n, std::initializer_list<std::int64_t> v)
      : name(std::move(n)), kind(attribute_kind::integers), integers(v) {}
  attribute(std::string n, std::vector<std::int64_t> v)
      : name(std::move(n)), kind(attribute_kind::integers), integers(std::move(v)) {}
  attribute(std::string n, std::vector<float> v)
      : name(std::move(n)), kind(attribute_kind::reals), reals(std::move(v)) {}
  attribute(std::string n, std::vector<std::string> v)
      : name(std::move(n)), kind(attribute_kind::strings), strings(std::move(v)) {}
  attribute(std::string n, constant_tensor v)
      : name(std::move(n)), kind(attribute_kind::tensor), tensor(std::move(v)) {}

  /// What another graph says; the bytes of a tensor stay there.
  attribute(std::string n, const attribute_view& v)
      : name(std::move(n)),
        kind(v.kind),
        integer(v.integer),
        real(v.real),
        string(v.string),
        integers(v.integers.begin(), v.integers.end()),
        reals(v.reals.begin(), v.reals.end()),
        strings(v.strings.begin(), v.strings.end()),
        tensor(constant_tensor::borrow(v.tensor)) {}

  attribute_view view() const {
    attribute_view v;
    v.kind = kind;
    v.integer = integer;
    v.real = real;
    v.string = string;
    v.integers = integers;
    v.reals = reals;
    v.strings = strings;
    v.tensor = tensor.view();
    return v;
  }
};

class graph {
 public:
  struct node {
    std::string name, op, domain;
    int opset = newest_opset;
    std::vector<value_id> inputs, outputs;
    std::vector<attribute> attributes;
    std::vector<scope_id> scopes;
  };
  struct value {
    std::string name;
    fact_kind kind = fact_kind::tensor;
    dtype type = dtype::undefined;
    bool has_shape = false;
    bool is_hint = false;  // type and shape are what a file claims, not what analysis may trust
    std::vector<dim_spec> dims;
    std::uint32_t constant = 0xffffffff;  // index into constants()
  };
  struct scope {
    std::string name;  // "then_branch", "body"; empty for the root
    std::vector<node_id> nodes;
    std::vector<value_id> inputs, outputs;
  };

  graph() : values_(1), scopes_(1) {}

  // ---- building ----

  /// Opset of nodes added from now on (default domain unless the node says otherwise).
  void set_opset(int version) { opset_ = version; }
  /// Nodes and inputs go to this scope from now on; returns the previous one.
  scope_id enter(scope_id s) { return std::exchange(current_, s); }
  scope_id add_scope(std::string name) {
    scopes_.push_back({std::move(name), {}, {}, {}});
    return scope_id{scopes_.size() - 1};
  }

  value_id add_value(std::string name = {}) {
    values_.push_back({});
    values_.back().name = std::move(name);
    return value_id{values_.size() - 1};
  }
  value_id input(std::string name, dtype type, std::vector<dim_spec> dims) {
    const value_id v = add_value(std::move(name));
    values_[v.index].type = type;
    values_[v.index].has_shape = true;
    values_[v.index].dims = std::move(dims);
    scopes_[current_.index].inputs.push_back(v);
    return v;
  }
  value_id constant(std::string name, constant_tensor tensor) {
    const value_id v = add_value(std::move(name));
    set_constant(v, std::move(tensor));
    return v;
  }
  template <class T>
  value_id constant(std::string name, std::vector<std::int64_t> dims,
                    const std::vector<T>& elements) {
    return constant(std::move(name), constant_tensor::of<T>(std::move(dims), elements));
  }
  void set_constant(value_id v, constant_tensor tensor) {
    values_[v.index].type = tensor.type;
    if (values_[v.index].constant == 0xffffffff) {
      values_[v.index].constant = static_cast<std::uint32_t>(constants_.size());
      constants_.push_back(std::move(tensor));
    } else {
      constants_[values_[v.index].constant] = std::move(tensor);
    }
  }
  /// Adds an operator with one output and returns that.
  value_id op(std::string op_name, std::vector<value_id> inputs,
              std::vector<attribute> attributes = {}, std::string output_name = {}) {
    return ops(std::move(op_name), std::move(inputs), 1, std::move(attributes),
               std::move(output_name))[0];
  }
  /// Adds an operator with several outputs.
  std::vector<value_id> ops(std::string op_name, std::vector<value_id> inputs, std::size_t outputs,
                            std::vector<attribute> attributes = {}, std::string output_name = {}) {
    node n;
    n.op = std::move(op_name);
    n.inputs = std::move(inputs);
    n.attributes = std::move(attributes);
    n.opset = opset_;
    for (std::size_t i = 0; i < outputs; ++i)
      n.outputs.push_back(add_value(i == 0 ? output_name : std::string{}));
    std::vector<value_id> result = n.outputs;
    add_node(std::move(n));
    return result;
  }
  node_id add_node(node n) {
    nodes_.push_back(std::move(n));
    const node_id id{nodes_.size() - 1};
    scopes_[current_.index].nodes.push_back(id);
    return id;
  }
  void output(value_id v, std::string name = {}) {
    if (!name.empty()) values_[v.index].name = std::move(name);
    scopes_[current_.index].outputs.push_back(v);
  }

  // ---- looking ----

  const std::vector<node>& nodes() const { return nodes_; }
  std::vector<node>& nodes() { return nodes_; }
  const std::vector<value>& values() const { return values_; }
  std::vector<value>& values() { return values_; }
  const std::vector<scope>& scopes() const { return scopes_; }
  std::vector<scope>& scopes() { return scopes_; }
  const std::vector<constant_tensor>& constants() const { return constants_; }
  const value& operator[](value_id v) const { return values_[v.index]; }
  const node& operator[](node_id n) const { return nodes_[n.index]; }

 private:
  std::vector<node> nodes_;
  std::vector<value> values_;  // entry 0 is "absent"
  std::vector<scope> scopes_;  // entry 0 is the root
  std::vector<constant_tensor> constants_;
  scope_id current_;
  int opset_ = newest_opset;
};

template <>
struct graph_traits<graph> {
  using node_handle = node_id;
  using value_handle = value_id;
  using scope_handle = scope_id;

  static std::span<const node_id> nodes(const graph& g, scope_id s = {}) {
    return g.scopes()[s.index].nodes;
  }
  static std::span<const value_id> graph_inputs(const graph& g, scope_id s = {}) {
    return g.scopes()[s.index].inputs;
  }
  static std::span<const value_id> graph_outputs(const graph& g, scope_id s = {}) {
    return g.scopes()[s.index].outputs;
  }
  static std::span<const value_id> inputs(const graph& g, node_id n) { return g[n].inputs; }
  static std::span<const value_id> outputs(const graph& g, node_id n) { return g[n].outputs; }
  static std::span<const scope_id> scopes(const graph& g, node_id n) { return g[n].scopes; }
  static std::string_view scope_name(const graph& g, scope_id s) {
    return g.scopes()[s.index].name;
  }
  static std::string_view operator_name(const graph& g, node_id n) { return g[n].op; }
  static std::string_view operator_domain(const graph& g, node_id n) { return g[n].domain; }
  static int opset(const graph& g, node_id n) { return g[n].opset; }
  static std::string_view node_name(const graph& g, node_id n) { return g[n].name; }
  static std::string_view value_name(const graph& g, value_id v) { return g[v].name; }
  static bool absent(const graph&, value_id v) { return v == sod2::absent; }
  static attribute_view attribute(const graph& g, node_id n, std::string_view name) {
    for (const sod2::attribute& a : g[n].attributes)
      if (a.name == name) return a.view();
    return {};
  }
  static std::string_view attribute_name(const graph& g, node_id n, std::size_t i) {
    return i < g[n].attributes.size() ? std::string_view(g[n].attributes[i].name)
                                      : std::string_view();
  }
  static declared_value facts(const graph& g, value_id v) {
    const graph::value& value = g[v];
    declared_value d;
    d.kind = value.kind;
    if (!value.is_hint) {
      d.type = value.type;
      d.has_shape = value.has_shape;
      for (const dim_spec& s : value.dims) d.dims.push_back({s.size, s.symbol});
    }
    if (value.constant != 0xffffffff) {
      d.constant = g.constants()[value.constant].view();
      d.type = d.constant.type;
      d.has_shape = true;
      d.dims.clear();
      for (std::int64_t k : d.constant.dims) d.dims.push_back({k, {}});
    }
    return d;
  }
};

}  // namespace sod2
