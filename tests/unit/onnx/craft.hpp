// Hand-made protobuf messages for the reader's tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include <sod2/onnx.hpp>

namespace craft {

namespace field = sod2::onnx::detail::field;
using protozero::pbf_writer;

/// A message under construction: every call appends one field.
class message {
 public:
  message& text(protozero::pbf_tag_type f, std::string_view value) {
    pbf_writer(bytes_).add_bytes(f, value.data(), value.size());
    return *this;
  }
  message& number(protozero::pbf_tag_type f, std::int64_t value) {
    pbf_writer(bytes_).add_int64(f, value);
    return *this;
  }
  message& real(protozero::pbf_tag_type f, float value) {
    pbf_writer(bytes_).add_float(f, value);
    return *this;
  }
  message& real64(protozero::pbf_tag_type f, double value) {
    pbf_writer(bytes_).add_double(f, value);
    return *this;
  }
  message& packed(protozero::pbf_tag_type f, const std::vector<std::int64_t>& values) {
    pbf_writer(bytes_).add_packed_int64(f, values.begin(), values.end());
    return *this;
  }
  message& packed_floats(protozero::pbf_tag_type f, const std::vector<float>& values) {
    pbf_writer(bytes_).add_packed_float(f, values.begin(), values.end());
    return *this;
  }
  message& packed_doubles(protozero::pbf_tag_type f, const std::vector<double>& values) {
    pbf_writer(bytes_).add_packed_double(f, values.begin(), values.end());
    return *this;
  }
  message& add(protozero::pbf_tag_type f, const message& inner) { return text(f, inner.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

inline message tensor(std::string_view name, sod2::dtype type,
                      const std::vector<std::int64_t>& dims) {
  message m;
  m.packed(field::tensor_dims, dims).number(field::tensor_data_type, static_cast<int>(type));
  return m.text(field::tensor_name, name);
}
template <class T>
message raw(std::string_view name, sod2::dtype type, const std::vector<std::int64_t>& dims,
            const std::vector<T>& elements) {
  return tensor(name, type, dims)
      .text(field::tensor_raw_data,
            {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)});
}
inline message scalar(std::string_view name, std::int64_t value) {
  return raw<std::int64_t>(name, sod2::dtype::i64, {}, {value});
}

inline message info(std::string_view name, sod2::dtype type,
                    const std::vector<sod2::dim_spec>& dims) {
  message m;
  m.text(field::value_info_name, name);
  return m.text(field::value_info_type,
                sod2::onnx::detail::type_bytes(sod2::fact_kind::tensor, type, true, dims));
}
inline message info(std::string_view name) { return message().text(field::value_info_name, name); }

inline message node(std::string_view op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, std::string_view name = {}) {
  message m;
  for (const std::string& i : inputs) m.text(field::node_input, i);
  for (const std::string& o : outputs) m.text(field::node_output, o);
  if (!name.empty()) m.text(field::node_name, name);
  return m.text(field::node_op_type, op);
}
inline message attribute(std::string_view name, int type) {
  return message().text(field::attribute_name, name).number(field::attribute_type, type);
}
inline message graph_attribute(std::string_view name, const message& graph) {
  return attribute(name, 5).add(field::attribute_g, graph);
}
inline message constant(std::string_view output, std::int64_t value) {
  return node("Constant", {}, {std::string(output)})
      .add(field::node_attribute, attribute("value", 4).add(field::attribute_t, scalar("", value)));
}

inline message import(std::string_view domain, std::int64_t version) {
  return message().text(field::opset_domain, domain).number(field::opset_version, version);
}
inline message model(const message& graph, int opset = 17) {
  return message()
      .number(field::model_ir_version, 8)
      .add(field::model_graph, graph)
      .add(field::model_opset_import, import("", opset));
}

/// x (f32, [N, 4]) -> Relu -> y
inline message small_graph() {
  return message()
      .add(field::graph_node, node("Relu", {"x"}, {"y"}, "relu"))
      .add(field::graph_input, info("x", sod2::dtype::f32, {"N", 4}))
      .add(field::graph_output, info("y", sod2::dtype::f32, {"N", 4}));
}

inline const sod2::graph::value* value_named(const sod2::graph& g, std::string_view name) {
  for (std::size_t v = 1; v < g.values().size(); ++v)
    if (g.values()[v].name == name) return &g.values()[v];
  return nullptr;
}
template <class T>
std::vector<T> elements(const sod2::constant_tensor& t) {
  std::vector<T> out(t.size / sizeof(T));
  if (t.size > 0) std::memcpy(out.data(), t.data, t.size);
  return out;
}

}  // namespace craft
