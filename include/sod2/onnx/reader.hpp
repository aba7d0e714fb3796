// ONNX files as reference graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <sod2/core/attribute.hpp>
#include <sod2/core/ids.hpp>
#include <sod2/core/status.hpp>
#include <sod2/graph/graph.hpp>
#include <sod2/onnx/detail/wire.hpp>
#include <sod2/onnx/file.hpp>
#include <sod2/onnx/fwd.hpp>
#include <sod2/onnx/tensor.hpp>

namespace sod2::onnx {

struct read_options {
  bool map = true;  // map files; false: read them, so that nobody can truncate them under us
};

struct opset_import {
  std::string domain;  // "" is the default domain, also where the file says "ai.onnx"
  int version = 0;
};

/// A model as read. Constants of the graph may point, misaligned, into the file's bytes, which the
/// model keeps. Constant nodes and initializers are constants of the graph; model-local functions
/// are inlined; sub-graphs are scopes named like their attribute ("then_branch", "body").
struct model {
  sod2::graph graph;
  std::int64_t ir_version = 0;
  std::string producer_name, producer_version, domain;
  std::int64_t model_version = 0;
  std::vector<opset_import> opset_imports;
  std::size_t nodes_imported = 0;  // as read: Constants and nodes of sub-graphs included
  std::vector<std::string> warnings;

  /// The serialised model.
  std::string_view bytes() const { return bytes_; }
  /// One GraphProto of the file: where its bytes start, its scope, and the outputs of its nodes
  /// (Constants included) by the names they have in the file.
  struct graph_record {
    std::size_t offset = 0;
    scope_id scope;
    std::vector<value_id> made;
  };
  std::vector<graph_record> graph_records;

  model() = default;
  model(model&&) = default;
  model& operator=(model&&) = default;
  model(const model&) = delete;
  model& operator=(const model&) = delete;

 private:
  friend class model_reader;
  friend result<model> read_file(std::filesystem::path path, read_options options);
  file_bytes file_;
  detail::external_files external_;
  std::string_view bytes_;
};

namespace detail {

// Limits that no exporter comes near, against files made to exhaust stack or memory.
inline constexpr int max_graph_depth = 48;
inline constexpr int max_type_depth = 8;
inline constexpr int max_call_depth = 48;
inline constexpr std::size_t max_inlined_nodes = std::size_t{1} << 20;

struct raw_node {
  std::string_view name, op, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;

  std::string label() const {
    if (!name.empty()) return std::string(name);
    std::string text(op);
    if (!outputs.empty()) text.append(" of '").append(outputs[0]).append("'");
    return text;
  }
};

struct raw_value_info {
  std::string_view name;
  fact_kind kind = fact_kind::undefined;
  dtype type = dtype::undefined;
  bool has_shape = false;
  std::vector<dim_spec> dims;
};

struct raw_attribute {
  std::string_view name, reference, s;
  attribute_type type = attribute_type::undefined;
  std::int64_t i = 0;
  float f = 0;
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  std::string_view tensor, sparse, graph, type_proto;
  std::vector<std::string_view> graphs;
  bool lists = false;  // lists of tensors or types are present
};

inline std::string_view domain_of(std::string_view name) {
  return name == "ai.onnx" ? std::string_view{} : name;
}

inline raw_node parse_node(std::string_view bytes) {
  raw_node n;
  for (pbf_reader r = message_of(bytes); r.next();) {
    switch (r.tag_and_type()) {
      case bytes_field(field::node_input): n.inputs.push_back(text_of(r.get_view())); break;
      case bytes_field(field::node_output): n.outputs.push_back(text_of(r.get_view())); break;
      case bytes_field(field::node_name): n.name = text_of(r.get_view()); break;
      case bytes_field(field::node_op_type): n.op = text_of(r.get_view()); break;
      case bytes_field(field::node_attribute): n.attributes.push_back(text_of(r.get_view())); break;
      case bytes_field(field::node_domain): n.domain = domain_of(text_of(r.get_view())); break;
      case bytes_field(field::node_overload): n.overload = text_of(r.get_view()); break;
      default: r.skip();
    }
  }
  if (n.op.empty())
    refuse(error(errc::malformed_model, "node without an operator").at_node(n.label()));
  return n;
}

inline raw_attribute parse_attribute(std::string_view bytes) {
  raw_attribute a;
  attribute_type seen = attribute_type::undefined;  // for files that leave the type out
  for (pbf_reader r = message_of(bytes); r.next();) {
    if (read_integers(r, field::attribute_ints, a.ints)) {
      seen = attribute_type::integers;
      continue;
    }
    switch (r.tag_and_type()) {
      case bytes_field(field::attribute_name): a.name = text_of(r.get_view()); break;
      case bytes_field(field::attribute_ref_name): a.reference = text_of(r.get_view()); break;
      case varint_field(field::attribute_type):
        a.type = static_cast<attribute_type>(r.get_int32());
        break;
      case fixed32_field(field::attribute_f):
        a.f = r.get_float();
        seen = attribute_type::real;
        break;
      case varint_field(field::attribute_i):
        a.i = r.get_int64();
        seen = attribute_type::integer;
        break;
      case bytes_field(field::attribute_s):
        a.s = text_of(r.get_view());
        seen = attribute_type::string;
        break;
      case bytes_field(field::attribute_t):
        a.tensor = text_of(r.get_view());
        seen = attribute_type::tensor;
        break;
      case bytes_field(field::attribute_g):
        a.graph = text_of(r.get_view());
        seen = attribute_type::graph;
        break;
      case bytes_field(field::attribute_floats): {
        const auto range = r.get_packed_float();
        a.floats.insert(a.floats.end(), range.begin(), range.end());
        seen = attribute_type::reals;
        break;
      }
      case fixed32_field(field::attribute_floats):
        a.floats.push_back(r.get_float());
        seen = attribute_type::reals;
        break;
      case bytes_field(field::attribute_strings):
        a.strings.emplace_back(text_of(r.get_view()));
        seen = attribute_type::strings;
        break;
      case bytes_field(field::attribute_graphs):
        a.graphs.push_back(text_of(r.get_view()));
        seen = attribute_type::graphs;
        break;
      case bytes_field(field::attribute_tp):
        a.type_proto = text_of(r.get_view());
        seen = attribute_type::type_proto;
        break;
      case bytes_field(field::attribute_sparse_tensor):
        a.sparse = text_of(r.get_view());
        seen = attribute_type::sparse_tensor;
        break;
      case bytes_field(field::attribute_tensors):
      case bytes_field(field::attribute_sparse_tensors):
      case bytes_field(field::attribute_type_protos):
        a.lists = true;
        r.skip();
        break;
      default: r.skip();
    }
  }
  if (a.type == attribute_type::undefined) a.type = seen;
  if (a.name.empty()) refuse(errc::malformed_model, "attribute without a name");
  return a;
}

inline void parse_type(std::string_view bytes, raw_value_info& v, int depth = 0) {
  if (depth > max_type_depth) refuse(errc::malformed_model, "types are nested too deep");
  const auto element = [&](std::string_view container, fact_kind kind) {
    for (pbf_reader r = message_of(container); r.next();) {
      if (r.tag_and_type() == bytes_field(field::container_elem))
        parse_type(text_of(r.get_view()), v, depth + 1);
      else
        r.skip();
    }
    // What is known of elements is that of the innermost tensor.
    v.kind = kind == fact_kind::optional && v.kind == fact_kind::sequence
                 ? fact_kind::optional_sequence
                 : kind;
  };
  for (pbf_reader r = message_of(bytes); r.next();) {
    switch (r.tag_and_type()) {
      case bytes_field(field::type_sequence):
        element(text_of(r.get_view()), fact_kind::sequence);
        break;
      case bytes_field(field::type_optional):
        element(text_of(r.get_view()), fact_kind::optional);
        break;
      case bytes_field(field::type_map): refuse(errc::unsupported, "map types are not supported");
      case bytes_field(field::type_tensor):
      case bytes_field(field::type_sparse_tensor): {
        v.kind = fact_kind::tensor;
        for (pbf_reader t = r.get_message(); t.next();) {
          if (t.tag_and_type() == varint_field(field::tensor_type_elem)) {
            const std::int64_t number = t.get_int64();
            v.type = number == 0 ? dtype::undefined : dtype_from(number);
          } else if (t.tag_and_type() == bytes_field(field::tensor_type_shape)) {
            v.has_shape = true;
            v.dims.clear();
            for (pbf_reader s = t.get_message(); s.next();) {
              if (s.tag_and_type() != bytes_field(field::shape_dim)) {
                s.skip();
                continue;
              }
              dim_spec d;
              for (pbf_reader x = s.get_message(); x.next();) {
                if (x.tag_and_type() == varint_field(field::dim_value)) {
                  const std::int64_t size = x.get_int64();
                  d = dim_spec{};
                  if (size > 0) d.size = size;  // exporters write 0 and -1 for "dynamic"
                } else if (x.tag_and_type() == bytes_field(field::dim_param)) {
                  d = dim_spec{std::string(text_of(x.get_view()))};
                } else {
                  x.skip();
                }
              }
              v.dims.push_back(std::move(d));
            }
          } else {
            t.skip();
          }
        }
        break;
      }
      default: r.skip();
    }
  }
}

inline raw_value_info parse_value_info(std::string_view bytes) {
  raw_value_info v;
  std::string_view type;
  for (pbf_reader r = message_of(bytes); r.next();) {
    switch (r.tag_and_type()) {
      case bytes_field(field::value_info_name): v.name = text_of(r.get_view()); break;
      case bytes_field(field::value_info_type): type = text_of(r.get_view()); break;
      default: r.skip();
    }
  }
  try {
    parse_type(type, v);
  } catch (refusal& r) {
    refuse(std::move(r.error).at_tensor(v.name));
  }
  return v;
}

}  // namespace detail

/// Fills a model from bytes. Use `read_file` or `read_bytes`.
class model_reader {
 public:
  explicit model_reader(model& m) : model_(m), tensors_(m.external_) {}

  /// Throws detail::refusal and protozero's exceptions.
  void read(std::string_view bytes) {
    using namespace detail;
    model_.bytes_ = bytes;
    if (bytes.empty()) refuse(errc::malformed_model, "file is empty");
    std::string_view graph;
    std::vector<std::string_view> functions;
    for (pbf_reader r = message_of(bytes); r.next();) {
      switch (r.tag_and_type()) {
        case varint_field(field::model_ir_version): model_.ir_version = r.get_int64(); break;
        case bytes_field(field::model_producer_name):
          model_.producer_name = text_of(r.get_view());
          break;
        case bytes_field(field::model_producer_version):
          model_.producer_version = text_of(r.get_view());
          break;
        case bytes_field(field::model_domain): model_.domain = text_of(r.get_view()); break;
        case varint_field(field::model_version): model_.model_version = r.get_int64(); break;
        case bytes_field(field::model_graph): graph = text_of(r.get_view()); break;
        case bytes_field(field::model_opset_import):
          add_import(text_of(r.get_view()), imports_);
          break;
        case bytes_field(field::model_functions): functions.push_back(text_of(r.get_view())); break;
        default: r.skip();
      }
    }
    if (graph.data() == nullptr) refuse(errc::malformed_model, "not an ONNX model: no graph");
    // Before IR version 3 there were no imports, only the first opset.
    if (imports_.empty() && model_.ir_version < 3) imports_.emplace("", 1);
    if (imports_.empty()) refuse(errc::malformed_model, "model imports no opset");
    for (const auto& [domain, version] : imports_)
      model_.opset_imports.push_back({domain, version});
    for (std::string_view f : functions) add_function(f);
    frame root;
    root.imports = &imports_;
    read_graph(graph, root);
    if (model_.graph.scopes()[0].outputs.empty())
      refuse(errc::malformed_model, "graph has no outputs");
    if (repeated_ > 0)
      model_.warnings.push_back(std::to_string(repeated_) +
                                " repeated Constant outputs, the last of each counts (first: '" +
                                first_repeated_ + "')");
  }

 private:
  using import_map = std::map<std::string, int>;  // in a stable order

  enum class origin : std::uint8_t { input, initializer, constant, node, promised };
  struct binding {
    value_id value;
    origin from = origin::node;
  };
  /// Names of one graph or function body.
  struct frame {
    const frame* parent = nullptr;  // enclosing graph, null for the root and for function bodies
    std::unordered_map<std::string_view, binding> names;
    const import_map* imports = nullptr;
    const std::unordered_map<std::string_view, attribute>* arguments = nullptr;
    std::string prefix;  // of names inside inlined functions
    int depth = 0, calls = 0;
  };
  struct function {
    std::string_view name, domain, overload;
    std::vector<std::string_view> inputs, outputs, nodes, defaults;
    import_map imports;
  };

  static void add_import(std::string_view bytes, import_map& imports) {
    using namespace detail;
    std::string_view domain;
    std::int64_t version = 0;
    for (pbf_reader r = message_of(bytes); r.next();) {
      switch (r.tag_and_type()) {
        case bytes_field(field::opset_domain): domain = domain_of(text_of(r.get_view())); break;
        case varint_field(field::opset_version): version = r.get_int64(); break;
        default: r.skip();
      }
    }
    if (domain.empty() && version > newest_known_opset)
      refuse(errc::unknown_opset, "opset " + std::to_string(version) +
                                      " is newer than the newest known, " +
                                      std::to_string(newest_known_opset));
    if (version < 1 || version > std::numeric_limits<int>::max())
      refuse(errc::malformed_model, "opset version " + std::to_string(version) + " is no version");
    imports[std::string(domain)] = static_cast<int>(version);
  }

  static std::string key_of(std::string_view domain, std::string_view name,
                            std::string_view overload) {
    std::string key(domain);
    key.append(1, '\0').append(name).append(1, '\0').append(overload);
    return key;
  }
  void add_function(std::string_view bytes) {
    using namespace detail;
    function f;
    for (pbf_reader r = message_of(bytes); r.next();) {
      switch (r.tag_and_type()) {
        case bytes_field(field::function_name): f.name = text_of(r.get_view()); break;
        case bytes_field(field::function_domain):
          f.domain = domain_of(text_of(r.get_view()));
          break;
        case bytes_field(field::function_overload): f.overload = text_of(r.get_view()); break;
        case bytes_field(field::function_input): f.inputs.push_back(text_of(r.get_view())); break;
        case bytes_field(field::function_output): f.outputs.push_back(text_of(r.get_view())); break;
        case bytes_field(field::function_node): f.nodes.push_back(text_of(r.get_view())); break;
        case bytes_field(field::function_attribute_proto):
          f.defaults.push_back(text_of(r.get_view()));
          break;
        case bytes_field(field::function_opset_import):
          add_import(text_of(r.get_view()), f.imports);
          break;
        default: r.skip();
      }
    }
    if (f.imports.empty()) f.imports = imports_;
    std::string key = key_of(f.domain, f.name, f.overload);
    functions_.insert_or_assign(std::move(key), std::move(f));
  }
  const function* function_of(const detail::raw_node& n) const {
    if (functions_.empty()) return nullptr;
    const auto found = functions_.find(key_of(n.domain, n.op, n.overload));
    return found == functions_.end() ? nullptr : &found->second;
  }
  bool is_constant(const detail::raw_node& n) const {
    return n.op == "Constant" && n.domain.empty() && function_of(n) == nullptr;
  }

  // ---- graphs ----

  // Fills the current scope of the graph.
  void read_graph(std::string_view bytes, frame& f) {
    using namespace detail;
    if (f.depth > max_graph_depth) refuse(errc::malformed_model, "sub-graphs are nested too deep");
    std::vector<std::string_view> inputs, outputs, infos, initializers, sparse;
    std::vector<raw_node> nodes;
    for (pbf_reader r = message_of(bytes); r.next();) {
      switch (r.tag_and_type()) {
        case bytes_field(field::graph_node):
          nodes.push_back(parse_node(text_of(r.get_view())));
          break;
        case bytes_field(field::graph_initializer):
          initializers.push_back(text_of(r.get_view()));
          break;
        case bytes_field(field::graph_sparse_initializer):
          sparse.push_back(text_of(r.get_view()));
          break;
        case bytes_field(field::graph_input): inputs.push_back(text_of(r.get_view())); break;
        case bytes_field(field::graph_output): outputs.push_back(text_of(r.get_view())); break;
        case bytes_field(field::graph_value_info): infos.push_back(text_of(r.get_view())); break;
        default: r.skip();
      }
    }
    // Bodies of functions are no part of what was imported, and their graphs are never annotated.
    const bool in_function = f.calls > 0;
    if (!in_function) model_.nodes_imported += nodes.size();
    std::size_t record = model_.graph_records.size();
    if (!in_function)
      model_.graph_records.push_back(
          {static_cast<std::size_t>(bytes.data() - model_.bytes_.data()), scope_, {}});

    for (std::string_view t : initializers) add_initializer(tensors_.read(t), f);
    for (std::string_view t : sparse) add_initializer(tensors_.read_sparse(t), f);
    for (std::string_view v : inputs) add_input(parse_value_info(v), f);
    declare(nodes, f);
    for (const std::vector<std::string_view>* list : {&infos, &outputs})
      for (std::string_view v : *list) add_hint(parse_value_info(v), f);
    if (!in_function)
      for (const raw_node& n : nodes)
        for (std::string_view name : n.outputs)
          if (!name.empty())
            model_.graph_records[record].made.push_back(f.names.find(name)->second.value);
    connect(nodes, f);
    for (std::string_view v : outputs) {
      const std::string_view name = parse_value_info(v).name;
      const value_id value = find(name, f);
      if (value == absent)
        refuse(error(errc::undefined_value, "output of the graph is not defined").at_tensor(name));
      model_.graph.scopes()[scope_.index].outputs.push_back(value);
    }
  }

  value_id new_value(std::string_view name, const frame& f) {
    return model_.graph.add_value(f.prefix + std::string(name));
  }
  void add_initializer(named_tensor t, frame& f) {
    if (t.name.empty()) {
      model_.warnings.push_back("an initializer without a name is ignored");
      return;
    }
    // The name must view the file, not the decoded tensor: names outlive this call.
    const auto [at, fresh] =
        f.names.try_emplace(keep(t.name), binding{absent, origin::initializer});
    if (fresh)
      at->second.value = new_value(t.name, f);
    else
      model_.warnings.push_back("initializer '" + t.name + "' is given twice, the last one counts");
    model_.graph.set_constant(at->second.value, std::move(t.tensor));
  }
  void add_input(detail::raw_value_info info, frame& f) {
    using namespace detail;
    if (info.name.empty()) refuse(errc::malformed_model, "input without a name");
    if (const auto known = f.names.find(info.name); known != f.names.end()) {
      if (known->second.from == origin::initializer) return;  // a default value: a constant for us
      refuse(error(errc::duplicate_value).at_tensor(info.name));
    }
    sod2::graph& g = model_.graph;
    const value_id v = new_value(info.name, f);
    f.names.emplace(info.name, binding{v, origin::input});
    describe(v, std::move(info), scope_.index != 0);
    g.scopes()[scope_.index].inputs.push_back(v);
  }
  void add_hint(detail::raw_value_info info, frame& f) {
    const auto known = f.names.find(info.name);
    if (known == f.names.end() || known->second.from != origin::node) return;
    if (info.kind != fact_kind::undefined) describe(known->second.value, std::move(info), true);
  }
  void describe(value_id v, detail::raw_value_info info, bool hint) {
    sod2::graph::value& value = model_.graph.values()[v.index];
    value.kind = info.kind == fact_kind::undefined ? fact_kind::tensor : info.kind;
    value.type = info.type;
    value.has_shape = info.has_shape;
    value.is_hint = hint;
    value.dims = std::move(info.dims);
  }

  // Every output of the graph's own nodes gets a value before any input is looked up: nodes come in
  // any order, and sub-graphs may capture what is made after them.
  void declare(const std::vector<detail::raw_node>& nodes, frame& f) {
    using namespace detail;
    for (const raw_node& n : nodes) {
      const origin from = is_constant(n) ? origin::constant : origin::node;
      for (std::string_view name : n.outputs) {
        if (name.empty()) continue;
        const auto [at, fresh] = f.names.try_emplace(name, binding{absent, from});
        if (fresh) {
          at->second.value = new_value(name, f);
        } else if (at->second.from == origin::promised) {
          at->second.from = from;
        } else if (from == origin::constant && at->second.from == origin::constant) {
          if (repeated_++ == 0) first_repeated_ = name;
        } else {
          refuse(error(errc::duplicate_value).at_node(n.label()).at_tensor(name));
        }
      }
    }
  }
  static const binding* lookup(std::string_view name, const frame& f) {
    for (const frame* at = &f; at != nullptr; at = at->parent)
      if (const auto known = at->names.find(name); known != at->names.end()) return &known->second;
    return nullptr;
  }
  static value_id find(std::string_view name, const frame& f) {
    const binding* known = name.empty() ? nullptr : lookup(name, f);
    return known == nullptr ? absent : known->value;
  }

  void connect(const std::vector<detail::raw_node>& nodes, frame& f) {
    using namespace detail;
    for (const raw_node& n : nodes) {
      try {
        if (is_constant(n))
          add_constant(n, f);
        else
          add_node(n, f);
      } catch (refusal& r) {
        refuse(std::move(r.error).at_node(f.prefix + n.label()));
      }
    }
  }
  std::vector<value_id> operands(const detail::raw_node& n, const frame& f) {
    std::vector<value_id> inputs;
    for (std::string_view name : n.inputs) {
      inputs.push_back(find(name, f));
      if (name.empty() || inputs.back() != absent) continue;
      // A parameter that a call leaves out is left out by the nodes that read it.
      if (const binding* known = lookup(name, f); known == nullptr || known->from != origin::input)
        detail::refuse(error(errc::undefined_value, "input is not defined").at_tensor(name));
    }
    return inputs;
  }
  std::vector<value_id> results(const detail::raw_node& n, const frame& f) {
    std::vector<value_id> outputs;
    for (std::string_view name : n.outputs)
      outputs.push_back(name.empty() ? absent : f.names.find(name)->second.value);
    return outputs;
  }

  void add_node(const detail::raw_node& n, frame& f) {
    if (const function* callee = function_of(n)) {
      inline_call(*callee, n, f);
      return;
    }
    sod2::graph& g = model_.graph;
    sod2::graph::node fresh;
    fresh.name = f.prefix + std::string(n.name);
    fresh.op = n.op;
    fresh.domain = n.domain;
    fresh.opset = opset_of(n.domain, f);
    fresh.inputs = operands(n, f);
    fresh.outputs = results(n, f);
    const node_id id = g.add_node(std::move(fresh));  // before its sub-graphs' nodes
    for (std::string_view bytes : n.attributes) {
      std::vector<scope_id> scopes;
      attribute a = decode(detail::parse_attribute(bytes), f, &scopes);
      sod2::graph::node& node = g.nodes()[id.index];
      node.scopes.insert(node.scopes.end(), scopes.begin(), scopes.end());
      if (a.kind != attribute_kind::none) node.attributes.push_back(std::move(a));
    }
  }
  int opset_of(std::string_view domain, const frame& f) {
    const auto known = f.imports->find(std::string(domain));
    if (known != f.imports->end()) return known->second;
    if (domain.empty())
      detail::refuse(errc::malformed_model, "model imports no opset of the default domain");
    if (missing_.insert(std::string(domain)).second)
      model_.warnings.push_back("domain '" + std::string(domain) +
                                "' is not imported, its first version is assumed");
    return 1;
  }

  // ---- attributes ----

  // `scopes` null: sub-graphs are not allowed here. Kind none: the attribute is not set.
  attribute decode(detail::raw_attribute raw, frame& f, std::vector<scope_id>* scopes) {
    using namespace detail;
    if (!raw.reference.empty()) {
      if (f.arguments == nullptr)
        refuse(errc::malformed_model, "attribute refers to a parameter outside of a function");
      const auto given = f.arguments->find(raw.reference);
      if (given == f.arguments->end()) return {};
      attribute a = given->second;
      a.name = raw.name;
      return a;
    }
    attribute a;
    a.name = raw.name;
    try {
      switch (raw.type) {
        case attribute_type::real:
          a.kind = attribute_kind::real;
          a.real = static_cast<double>(raw.f);
          break;
        case attribute_type::integer:
          a.kind = attribute_kind::integer;
          a.integer = raw.i;
          break;
        case attribute_type::string:
          a.kind = attribute_kind::string;
          a.string = raw.s;
          break;
        case attribute_type::reals:
          a.kind = attribute_kind::reals;
          a.reals = std::move(raw.floats);
          break;
        case attribute_type::integers:
          a.kind = attribute_kind::integers;
          a.integers = std::move(raw.ints);
          break;
        case attribute_type::strings:
          a.kind = attribute_kind::strings;
          a.strings = std::move(raw.strings);
          break;
        case attribute_type::tensor:
          a.kind = attribute_kind::tensor;
          a.tensor = tensors_.read(raw.tensor).tensor;
          break;
        case attribute_type::sparse_tensor:
          a.kind = attribute_kind::tensor;
          a.tensor = tensors_.read_sparse(raw.sparse).tensor;
          break;
        case attribute_type::type_proto: {  // the element type, and the kind by name
          raw_value_info info;
          parse_type(raw.type_proto, info);
          a.kind = attribute_kind::integer;
          a.integer = static_cast<std::int64_t>(info.type);
          a.string = info.kind == fact_kind::sequence            ? "sequence"
                     : info.kind == fact_kind::optional          ? "optional"
                     : info.kind == fact_kind::optional_sequence ? "optional_sequence"
                                                                 : "tensor";
          break;
        }
        case attribute_type::graph:
          a.kind = attribute_kind::graph;
          a.integer = read_scope(raw.graph, raw.name, f, scopes);
          break;
        case attribute_type::graphs:
          a.kind = attribute_kind::graph;  // the first one; all are scopes of the node
          for (std::size_t k = 0; k < raw.graphs.size(); ++k) {
            const std::int64_t s = read_scope(raw.graphs[k], raw.name, f, scopes);
            if (k == 0) a.integer = s;
          }
          break;
        case attribute_type::tensors:
        case attribute_type::sparse_tensors:
        case attribute_type::type_protos:
          refuse(errc::unsupported, "lists of tensors or types are not supported");
        default: refuse(errc::bad_attribute, "attribute of an unknown type");
      }
    } catch (refusal& r) {
      if (scopes != nullptr && a.kind == attribute_kind::graph) throw;
      std::string message = "attribute '" + a.name + "': " + std::string(r.error.message());
      error_detail d = r.error.detail();
      d.message = std::move(message);
      refuse(error(r.error.code(), std::move(d)));
    }
    return a;
  }
  std::int64_t read_scope(std::string_view bytes, std::string_view name, const frame& f,
                          std::vector<scope_id>* scopes) {
    if (scopes == nullptr)
      detail::refuse(errc::unsupported, "graphs as arguments of functions are not supported");
    sod2::graph& g = model_.graph;
    const scope_id s = g.add_scope(std::string(name));
    scopes->push_back(s);
    frame inner;
    inner.parent = &f;
    inner.imports = f.imports;
    inner.arguments = f.arguments;
    inner.prefix = f.prefix;
    inner.depth = f.depth + 1;
    inner.calls = f.calls;
    const scope_id outer = std::exchange(scope_, s);
    g.enter(s);
    read_graph(bytes, inner);
    scope_ = outer;
    g.enter(outer);
    return static_cast<std::int64_t>(s.index);
  }

  void add_constant(const detail::raw_node& n, frame& f) {
    using namespace detail;
    constant_tensor t;
    for (std::string_view bytes : n.attributes) {
      raw_attribute raw = parse_attribute(bytes);
      const std::string name(raw.name);
      attribute a = decode(std::move(raw), f, nullptr);
      switch (a.kind) {
        case attribute_kind::tensor:
          if (name == "value" || name == "sparse_value") t = std::move(a.tensor);
          break;
        case attribute_kind::integer:
          if (name == "value_int")
            t = constant_tensor::of<std::int64_t>({}, std::span(&a.integer, 1));
          break;
        case attribute_kind::integers:
          if (name == "value_ints")
            t = constant_tensor::of<std::int64_t>({static_cast<std::int64_t>(a.integers.size())},
                                                  a.integers);
          break;
        case attribute_kind::real:
          if (name == "value_float") {
            const float x = static_cast<float>(a.real);
            t = constant_tensor::of<float>({}, std::span(&x, 1));
          }
          break;
        case attribute_kind::reals:
          if (name == "value_floats")
            t = constant_tensor::of<float>({static_cast<std::int64_t>(a.reals.size())}, a.reals);
          break;
        case attribute_kind::string:
          if (name == "value_string") t = constant_tensor::of_strings({}, {a.string});
          break;
        case attribute_kind::strings:
          if (name == "value_strings") {
            const auto count = static_cast<std::int64_t>(a.strings.size());
            t = constant_tensor::of_strings({count}, std::move(a.strings));
          }
          break;
        default: break;
      }
    }
    if (t.type == dtype::undefined) refuse(errc::missing_attribute, "Constant without a value");
    if (n.outputs.size() != 1 || n.outputs[0].empty())
      refuse(errc::arity, "Constant needs exactly one output");
    model_.graph.set_constant(f.names.find(n.outputs[0])->second.value, std::move(t));
  }

  // ---- functions ----

  void inline_call(const function& callee, const detail::raw_node& n, frame& caller) {
    using namespace detail;
    if (caller.calls >= max_call_depth)
      refuse(errc::malformed_model, "functions call each other too deep");
    inlined_ += callee.nodes.size();
    if (inlined_ > max_inlined_nodes)
      refuse(errc::malformed_model, "functions unfold to too many nodes");
    if (n.inputs.size() > callee.inputs.size() || n.outputs.size() > callee.outputs.size())
      refuse(errc::arity, "function has fewer parameters");
    std::unordered_map<std::string_view, attribute> arguments;
    for (std::string_view bytes : callee.defaults) {
      raw_attribute raw = parse_attribute(bytes);
      const std::string_view name = raw.name;
      arguments.insert_or_assign(name, decode(std::move(raw), caller, nullptr));
    }
    for (std::string_view bytes : n.attributes) {
      raw_attribute raw = parse_attribute(bytes);
      const std::string_view name = raw.name;
      attribute a = decode(std::move(raw), caller, nullptr);
      if (a.kind != attribute_kind::none) arguments.insert_or_assign(name, std::move(a));
    }
    frame body;
    body.imports = &callee.imports;
    body.arguments = &arguments;
    body.prefix = caller.prefix + n.label() + "/";
    body.depth = caller.depth;
    body.calls = caller.calls + 1;
    const std::vector<value_id> given = operands(n, caller), wanted = results(n, caller);
    for (std::size_t k = 0; k < callee.inputs.size(); ++k)
      body.names.insert_or_assign(callee.inputs[k],
                                  binding{k < given.size() ? given[k] : absent, origin::input});
    std::vector<std::pair<value_id, std::string_view>> copies;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      if (wanted[k] == absent) continue;
      const auto [at, fresh] =
          body.names.try_emplace(callee.outputs[k], binding{wanted[k], origin::promised});
      if (!fresh) copies.emplace_back(wanted[k], callee.outputs[k]);
    }
    std::vector<raw_node> nodes;
    for (std::string_view bytes : callee.nodes) nodes.push_back(parse_node(bytes));
    declare(nodes, body);
    for (std::string_view name : callee.outputs)
      if (const auto at = body.names.find(name);
          at != body.names.end() && at->second.from == origin::promised)
        refuse(
            error(errc::undefined_value, "output of the function is not defined").at_tensor(name));
    connect(nodes, body);
    for (const auto& [to, name] : copies) {  // an input, or the same output twice
      sod2::graph::node copy;
      copy.name = body.prefix + "output";
      copy.op = "Identity";
      copy.opset = opset_of({}, body);
      copy.inputs = {find(name, body)};
      copy.outputs = {to};
      model_.graph.add_node(std::move(copy));
    }
  }

  std::string_view keep(const std::string& name) {
    return *kept_.insert(name).first;  // nodes of the set stay where they are
  }

  model& model_;
  detail::tensor_reader tensors_;
  import_map imports_;
  std::unordered_map<std::string, function> functions_;
  std::unordered_set<std::string> kept_, missing_;
  scope_id scope_;
  std::size_t repeated_ = 0, inlined_ = 0;
  std::string first_repeated_;
};

/// Reads an ONNX file, or `model.onnx` of a folder. Errors name the file: errc::io,
/// malformed_model, unknown_opset, undefined_value, duplicate_value, missing_attribute,
/// bad_attribute, unsupported, out_of_memory. Operators and attributes are not checked here.
inline result<model> read_file(std::filesystem::path path, read_options options = {}) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) path /= "model.onnx";
  result<model> out = detail::guarded<model>([&]() -> result<model> {
    model m;
    SOD2_ASSIGN(m.file_, file_bytes::open(path, options.map));
    m.external_ = detail::external_files(path, options.map);
    model_reader(m).read(m.file_.view());
    return m;
  });
  if (!out) return std::move(out).error().in_file(path.string());
  return out;
}

/// Reads a serialised model. The bytes must outlive the result. External data is refused.
inline result<model> read_bytes(std::span<const std::byte> bytes) {
  return detail::guarded<model>([&] {
    model m;
    model_reader(m).read({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return m;
  });
}
inline result<model> read_bytes(std::string_view bytes) {
  return read_bytes(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

}  // namespace sod2::onnx
