// Reference graphs as ONNX files, and files with the shapes that analysis found.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include <sod2/core/attribute.hpp>
#include <sod2/core/ids.hpp>
#include <sod2/core/status.hpp>
#include <sod2/graph/graph.hpp>
#include <sod2/onnx/detail/wire.hpp>
#include <sod2/onnx/fwd.hpp>
#include <sod2/onnx/reader.hpp>

namespace sod2::onnx {

struct write_options {
  std::string producer = "sod2";
  std::string graph_name = "graph";
};

/// What analysis knows of a value: the type, and the dims once the rank is known. A dim without
/// size and symbol is unknown.
struct annotation {
  fact_kind kind = fact_kind::undefined;
  dtype type = dtype::undefined;
  bool rank_known = false;
  std::vector<dim_spec> dims;
};

namespace detail {

using protozero::pbf_writer;

// Messages are built as strings of their own: protozero drops nested writers that stay empty, and
// an empty shape (a scalar) or dim (unknown) means something.
inline std::string type_bytes(fact_kind kind, dtype type, bool rank_known,
                              std::span<const dim_spec> dims) {
  std::string out;
  pbf_writer w(out);
  if (is_container(kind)) {
    const fact_kind inner =
        kind == fact_kind::optional_sequence ? fact_kind::sequence : fact_kind::tensor;
    std::string element;
    pbf_writer(element).add_message(field::container_elem,
                                    type_bytes(inner, type, rank_known, dims));
    w.add_message(kind == fact_kind::sequence ? field::type_sequence : field::type_optional,
                  element);
    return out;
  }
  std::string tensor;
  pbf_writer(tensor).add_int32(field::tensor_type_elem, static_cast<std::int32_t>(type));
  if (rank_known) {
    std::string shape;
    for (const dim_spec& d : dims) {
      std::string dim;
      if (d.size >= 0)
        pbf_writer(dim).add_int64(field::dim_value, d.size);
      else if (!d.symbol.empty())
        pbf_writer(dim).add_string(field::dim_param, d.symbol);
      pbf_writer(shape).add_message(field::shape_dim, dim);
    }
    pbf_writer(tensor).add_message(field::tensor_type_shape, shape);
  }
  w.add_message(field::type_tensor, tensor);
  return out;
}
inline std::string value_info_bytes(std::string_view name, const std::string& type) {
  std::string out;
  pbf_writer w(out);
  w.add_string(field::value_info_name, name.data(), name.size());
  if (!type.empty()) w.add_message(field::value_info_type, type);
  return out;
}

inline std::string tensor_bytes(std::string_view name, const constant_view& t,
                                std::span<const std::string> strings) {
  std::string out;
  pbf_writer w(out);
  w.add_packed_int64(field::tensor_dims, t.dims.begin(), t.dims.end());
  w.add_int32(field::tensor_data_type, static_cast<std::int32_t>(t.type));
  if (!name.empty()) w.add_string(field::tensor_name, name.data(), name.size());
  if (t.type == dtype::string)
    for (const std::string& s : strings) w.add_bytes(field::tensor_string_data, s);
  else
    w.add_bytes(field::tensor_raw_data, reinterpret_cast<const char*>(t.data), t.bytes);
  return out;
}

/// Oldest IR version that may import an opset of the default domain.
constexpr int ir_version_for(int opset) {
  constexpr struct {
    int opset, ir;
  } first[] = {{25, 12}, {23, 11}, {21, 10}, {19, 9}, {15, 8}};
  for (const auto& f : first)
    if (opset >= f.opset) return f.ir;
  return 7;
}

class graph_writer {
 public:
  explicit graph_writer(const sod2::graph& g) : graph_(g) {}

  std::string write(const write_options& options) {
    for (const sod2::graph::node& n : graph_.nodes()) {
      const int opset = n.domain.empty() ? std::min(n.opset, newest_known_opset)
                                         : (n.opset == newest_opset ? 1 : n.opset);
      const auto [at, fresh] = imports_.try_emplace(n.domain, opset);
      if (!fresh && at->second != opset)
        refuse(error(errc::invalid_argument, "nodes of one domain have different opsets")
                   .at_node(n.name)
                   .between(std::to_string(at->second), std::to_string(opset)));
    }
    imports_.try_emplace("", newest_known_opset);
    name_values();
    std::string out;
    pbf_writer w(out);
    w.add_int64(field::model_ir_version, ir_version_for(imports_.at("")));
    w.add_string(field::model_producer_name, options.producer);
    w.add_message(field::model_graph, graph_bytes(scope_id{}, options.graph_name, 0));
    for (const auto& [domain, version] : imports_) {
      std::string import;
      pbf_writer i(import);
      i.add_string(field::opset_domain, domain);
      i.add_int64(field::opset_version, version);
      w.add_message(field::model_opset_import, import);
    }
    return out;
  }

 private:
  // One name a value in the whole file, so that no sub-graph shadows what it captures.
  void name_values() {
    names_.resize(graph_.values().size());
    std::unordered_set<std::string> taken;
    const auto name = [&](value_id v) {
      if (v == absent || !names_[v.index].empty()) return;
      std::string base = graph_[v].name.empty() ? "v" + std::to_string(v.index) : graph_[v].name;
      std::string unique = base;
      for (std::size_t k = 1; !taken.insert(unique).second; ++k)
        unique = base + "_" + std::to_string(k);
      names_[v.index] = std::move(unique);
    };
    const sod2::graph::scope& root = graph_.scopes()[0];
    for (value_id v : root.inputs) name(v);
    for (value_id v : root.outputs) name(v);
    for (std::size_t v = 1; v < names_.size(); ++v) name(value_id{v});
  }

  std::string graph_bytes(scope_id s, const std::string& name, int depth) {
    if (depth > max_graph_depth) refuse(errc::invalid_argument, "sub-graphs are nested too deep");
    const sod2::graph::scope& scope = graph_.scopes()[s.index];
    std::string out;
    pbf_writer w(out);
    for (node_id n : scope.nodes) w.add_message(field::graph_node, node_bytes(n, depth));
    w.add_string(field::graph_name, name);
    if (s.index == 0)  // constants that sub-graphs use are captured from here
      for (std::size_t v = 1; v < names_.size(); ++v)
        if (const std::uint32_t c = graph_.values()[v].constant; c != 0xffffffff)
          w.add_message(
              field::graph_initializer,
              tensor_bytes(names_[v], graph_.constants()[c].view(), graph_.constants()[c].strings));
    for (value_id v : scope.inputs) w.add_message(field::graph_input, info_bytes(v));
    for (value_id v : scope.outputs) w.add_message(field::graph_output, info_bytes(v));
    for (node_id n : scope.nodes)
      for (value_id v : graph_[n].outputs)
        if (v != absent && graph_[v].type != dtype::undefined &&
            std::find(scope.outputs.begin(), scope.outputs.end(), v) == scope.outputs.end())
          w.add_message(field::graph_value_info, info_bytes(v));
    return out;
  }
  std::string info_bytes(value_id v) const {
    const sod2::graph::value& value = graph_[v];
    if (value.type == dtype::undefined && !value.has_shape)
      return value_info_bytes(names_[v.index], {});
    return value_info_bytes(names_[v.index],
                            type_bytes(value.kind, value.type, value.has_shape, value.dims));
  }
  std::string node_bytes(node_id id, int depth) {
    const sod2::graph::node& n = graph_[id];
    std::string out;
    pbf_writer w(out);
    for (value_id v : n.inputs) w.add_string(field::node_input, names_[v.index]);
    for (value_id v : n.outputs) w.add_string(field::node_output, names_[v.index]);
    if (!n.name.empty()) w.add_string(field::node_name, n.name);
    w.add_string(field::node_op_type, n.op);
    if (!n.domain.empty()) w.add_string(field::node_domain, n.domain);
    for (const attribute& a : n.attributes)
      if (a.kind != attribute_kind::none && a.kind != attribute_kind::graph)
        w.add_message(field::node_attribute, attribute_bytes(a));
    for (scope_id s : n.scopes) {
      const std::string& name = graph_.scopes()[s.index].name;
      std::string attribute;
      pbf_writer a(attribute);
      a.add_string(field::attribute_name, name);
      a.add_message(field::attribute_g, graph_bytes(s, name, depth + 1));
      a.add_int32(field::attribute_type, static_cast<int>(attribute_type::graph));
      w.add_message(field::node_attribute, attribute);
    }
    return out;
  }
  static std::string attribute_bytes(const attribute& a) {
    std::string out;
    pbf_writer w(out);
    w.add_string(field::attribute_name, a.name);
    const auto type = [&](attribute_type t) {
      w.add_int32(field::attribute_type, static_cast<int>(t));
    };
    switch (a.kind) {
      case attribute_kind::integer:
        w.add_int64(field::attribute_i, a.integer);
        type(attribute_type::integer);
        break;
      case attribute_kind::real:
        w.add_float(field::attribute_f, static_cast<float>(a.real));
        type(attribute_type::real);
        break;
      case attribute_kind::string:
        w.add_bytes(field::attribute_s, a.string);
        type(attribute_type::string);
        break;
      case attribute_kind::integers:
        w.add_packed_int64(field::attribute_ints, a.integers.begin(), a.integers.end());
        type(attribute_type::integers);
        break;
      case attribute_kind::reals:
        w.add_packed_float(field::attribute_floats, a.reals.begin(), a.reals.end());
        type(attribute_type::reals);
        break;
      case attribute_kind::strings:
        for (const std::string& s : a.strings) w.add_bytes(field::attribute_strings, s);
        type(attribute_type::strings);
        break;
      case attribute_kind::tensor:
        w.add_message(field::attribute_t, tensor_bytes({}, a.tensor.view(), a.tensor.strings));
        type(attribute_type::tensor);
        break;
      case attribute_kind::none:
      case attribute_kind::graph: break;
    }
    return out;
  }

  const sod2::graph& graph_;
  std::map<std::string, int> imports_;
  std::vector<std::string> names_;
};

/// Copies a model with other value_info, see `annotate`.
class annotator {
 public:
  annotator(const model& m, std::span<const annotation> facts) : model_(m), facts_(facts) {
    for (const model::graph_record& r : m.graph_records) records_.emplace(r.offset, &r);
  }

  std::string write() {
    std::string_view graph;
    for (pbf_reader r = message_of(model_.bytes()); r.next();)
      if (r.tag_and_type() == bytes_field(field::model_graph))
        graph = text_of(r.get_view());
      else
        r.skip();
    return rewritten(model_.bytes(), [&](pbf_reader& r, pbf_writer& w) {
      if (r.tag_and_type() != bytes_field(field::model_graph)) return false;
      // Where a file holds several graphs the last one counts, for the reader too.
      if (const auto bytes = text_of(r.get_view()); bytes.data() == graph.data())
        w.add_message(field::model_graph, graph_bytes(bytes));
      return true;
    });
  }

 private:
  /// Copies a message field by field, except those that `edit` took and wrote itself.
  template <class Edit>
  static std::string rewritten(std::string_view bytes, Edit&& edit) {
    std::string out;
    out.reserve(bytes.size() + bytes.size() / 16);
    pbf_writer w(out);
    pbf_reader r = message_of(bytes);
    for (;;) {
      const auto rest = r.data();
      if (!r.next()) return out;
      if (edit(r, w)) continue;
      r.skip();
      out.append(rest.data(), static_cast<std::size_t>(r.data().data() - rest.data()));
    }
  }

  const annotation* fact(value_id v) const {
    if (v == absent || v.index >= facts_.size()) return nullptr;
    const annotation& a = facts_[v.index];
    return a.kind != fact_kind::undefined && (a.rank_known || a.type != dtype::undefined) ? &a
                                                                                          : nullptr;
  }
  static std::string type_of(const annotation& a) {
    return type_bytes(a.kind, a.type, a.rank_known, a.dims);
  }
  /// The entry with the type that the fact says, where it says more than the file.
  std::string info_bytes(std::string_view bytes, value_id v) const {
    const annotation* a = fact(v);
    if (a == nullptr || !a->rank_known || a->type == dtype::undefined) return std::string(bytes);
    std::string out = rewritten(bytes, [](pbf_reader& r, pbf_writer&) {
      if (r.tag() != field::value_info_type) return false;
      r.skip();
      return true;
    });
    pbf_writer(out).add_message(field::value_info_type, type_of(*a));
    return out;
  }

  std::string graph_bytes(std::string_view bytes) {
    const auto found =
        records_.find(static_cast<std::size_t>(bytes.data() - model_.bytes().data()));
    if (found == records_.end()) return std::string(bytes);
    const model::graph_record& record = *found->second;
    const sod2::graph& g = model_.graph;
    const sod2::graph::scope& scope = g.scopes()[record.scope.index];
    std::unordered_map<std::string_view, value_id> inputs;
    for (value_id v : scope.inputs) inputs.emplace(g[v].name, v);
    // Outputs carry their shapes themselves.
    std::unordered_set<std::string_view> written;
    for (pbf_reader r = message_of(bytes); r.next();)
      if (r.tag_and_type() == bytes_field(field::graph_output))
        written.insert(parse_value_info(text_of(r.get_view())).name);
      else
        r.skip();
    std::string infos;
    for (value_id v : record.made) {
      const annotation* a = fact(v);
      if (a == nullptr || !a->rank_known || !written.insert(g[v].name).second) continue;
      pbf_writer(infos).add_message(field::graph_value_info,
                                    value_info_bytes(g[v].name, type_of(*a)));
    }
    std::size_t output = 0;
    std::string out = rewritten(bytes, [&](pbf_reader& r, pbf_writer& w) {
      switch (r.tag_and_type()) {
        case bytes_field(field::graph_node):
          w.add_message(field::graph_node, node_bytes(text_of(r.get_view())));
          return true;
        case bytes_field(field::graph_input): {
          const std::string_view info = text_of(r.get_view());
          const auto known = inputs.find(parse_value_info(info).name);
          w.add_message(field::graph_input,
                        info_bytes(info, known == inputs.end() ? absent : known->second));
          return true;
        }
        case bytes_field(field::graph_output): {
          const value_id v = output < scope.outputs.size() ? scope.outputs[output] : absent;
          ++output;
          w.add_message(field::graph_output, info_bytes(text_of(r.get_view()), v));
          return true;
        }
        case bytes_field(field::graph_value_info): {
          const std::string_view info = text_of(r.get_view());
          if (!written.contains(parse_value_info(info).name))
            w.add_message(field::graph_value_info, info.data(), info.size());
          return true;
        }
        default: return false;
      }
    });
    return out += infos;
  }
  std::string node_bytes(std::string_view bytes) {
    bool nested = false;
    for (std::string_view a : parse_node(bytes).attributes)
      for (pbf_reader r = message_of(a); r.next(); r.skip())
        nested |= r.tag() == field::attribute_g || r.tag() == field::attribute_graphs;
    if (!nested) return std::string(bytes);
    return rewritten(bytes, [&](pbf_reader& r, pbf_writer& w) {
      if (r.tag_and_type() != bytes_field(field::node_attribute)) return false;
      const std::string attribute =
          rewritten(text_of(r.get_view()), [&](pbf_reader& a, pbf_writer& inner) {
            const pbf_tag_type tag = a.tag();
            if (a.tag_and_type() != bytes_field(field::attribute_g) &&
                a.tag_and_type() != bytes_field(field::attribute_graphs))
              return false;
            inner.add_message(tag, graph_bytes(text_of(a.get_view())));
            return true;
          });
      w.add_message(field::node_attribute, attribute);
      return true;
    });
  }

  const model& model_;
  std::span<const annotation> facts_;
  std::unordered_map<std::size_t, const model::graph_record*> records_;
};

}  // namespace detail

/// The graph as a serialised ModelProto. Names are made unique; constants become initializers of
/// the main graph. Errors: errc::invalid_argument where nodes of one domain have different opsets.
inline result<std::string> to_bytes(const sod2::graph& g, const write_options& options = {}) {
  return detail::guarded<std::string>([&] { return detail::graph_writer(g).write(options); });
}

/// The tensor as a serialised TensorProto.
inline std::string to_bytes(const named_tensor& t) {
  return detail::tensor_bytes(t.name, t.tensor.view(), t.tensor.strings);
}

/// The model's own bytes, unchanged but for what the facts say of types and shapes: value_info of
/// node outputs (of each sub-graph in itself), and the types of inputs and outputs. `facts` is
/// indexed by the values of `m.graph`. Claims of the file stay where the facts know no rank.
inline result<std::string> annotate(const model& m, std::span<const annotation> facts) {
  return detail::guarded<std::string>([&] { return detail::annotator(m, facts).write(); });
}

/// Writes a file so that it is there entirely or not at all. Errors: errc::io.
inline status write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::path partial = path;
  partial += ".partial";
  std::FILE* file = std::fopen(partial.string().c_str(), "wb");
  if (file == nullptr) return error(errc::io, "cannot be written").in_file(path.string());
  bool good = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  good = std::fclose(file) == 0 && good;
  std::error_code code;
  if (good) std::filesystem::rename(partial, path, code);
  if (!good || code) {
    std::filesystem::remove(partial, code);
    return error(errc::io, "cannot be written").in_file(path.string());
  }
  return {};
}

inline status write(const sod2::graph& g, const std::filesystem::path& path,
                    const write_options& options = {}) {
  SOD2_ASSIGN(const std::string bytes, to_bytes(g, options));
  return write_file(path, bytes);
}

}  // namespace sod2::onnx
