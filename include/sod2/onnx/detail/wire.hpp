// The ONNX wire format: field numbers of onnx.proto, and the one border where exceptions end.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include <sod2/core/status.hpp>

namespace sod2::onnx {

/// Newest opset of the default domain whose operators are known; newer models are refused.
inline constexpr int newest_known_opset = 28;

namespace detail {

using protozero::pbf_reader;
using protozero::pbf_tag_type;
using protozero::pbf_wire_type;

namespace field {
enum model : pbf_tag_type {
  model_ir_version = 1,
  model_producer_name = 2,
  model_producer_version = 3,
  model_domain = 4,
  model_version = 5,
  model_graph = 7,
  model_opset_import = 8,
  model_functions = 25,
};
enum opset : pbf_tag_type { opset_domain = 1, opset_version = 2 };
enum graph : pbf_tag_type {
  graph_node = 1,
  graph_name = 2,
  graph_initializer = 5,
  graph_input = 11,
  graph_output = 12,
  graph_value_info = 13,
  graph_sparse_initializer = 15,
};
enum node : pbf_tag_type {
  node_input = 1,
  node_output = 2,
  node_name = 3,
  node_op_type = 4,
  node_attribute = 5,
  node_domain = 7,
  node_overload = 8,
};
enum attribute : pbf_tag_type {
  attribute_name = 1,
  attribute_f = 2,
  attribute_i = 3,
  attribute_s = 4,
  attribute_t = 5,
  attribute_g = 6,
  attribute_floats = 7,
  attribute_ints = 8,
  attribute_strings = 9,
  attribute_tensors = 10,
  attribute_graphs = 11,
  attribute_tp = 14,
  attribute_type_protos = 15,
  attribute_type = 20,
  attribute_ref_name = 21,
  attribute_sparse_tensor = 22,
  attribute_sparse_tensors = 23,
};
enum function : pbf_tag_type {
  function_name = 1,
  function_input = 4,
  function_output = 5,
  function_node = 7,
  function_opset_import = 9,
  function_domain = 10,
  function_attribute_proto = 11,
  function_overload = 13,
};
enum tensor : pbf_tag_type {
  tensor_dims = 1,
  tensor_data_type = 2,
  tensor_segment = 3,
  tensor_float_data = 4,
  tensor_int32_data = 5,
  tensor_string_data = 6,
  tensor_int64_data = 7,
  tensor_name = 8,
  tensor_raw_data = 9,
  tensor_double_data = 10,
  tensor_uint64_data = 11,
  tensor_external_data = 13,
  tensor_data_location = 14,
};
enum entry : pbf_tag_type { entry_key = 1, entry_value = 2 };
enum sparse : pbf_tag_type { sparse_values = 1, sparse_indices = 2, sparse_dims = 3 };
enum sequence : pbf_tag_type { sequence_tensors = 3 };
enum optional : pbf_tag_type { optional_tensor = 3, optional_sequence = 5 };
enum value_info : pbf_tag_type { value_info_name = 1, value_info_type = 2 };
enum type : pbf_tag_type {
  type_tensor = 1,
  type_sequence = 4,
  type_map = 5,
  type_sparse_tensor = 8,
  type_optional = 9,
};
enum tensor_type : pbf_tag_type { tensor_type_elem = 1, tensor_type_shape = 2 };
enum container_type : pbf_tag_type { container_elem = 1 };
enum shape : pbf_tag_type { shape_dim = 1 };
enum dim : pbf_tag_type { dim_value = 1, dim_param = 2 };
}  // namespace field

/// AttributeProto.AttributeType
enum class attribute_type : int {
  undefined = 0,
  real = 1,
  integer = 2,
  string = 3,
  tensor = 4,
  graph = 5,
  reals = 6,
  integers = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,
  type_protos = 14,
};

// A field of the expected number but another wire type is skipped, as protobuf does with unknown
// fields: protozero's getters only assert on it.
constexpr auto bytes_field(pbf_tag_type f) {
  return protozero::tag_and_type(f, pbf_wire_type::length_delimited);
}
constexpr auto varint_field(pbf_tag_type f) {
  return protozero::tag_and_type(f, pbf_wire_type::varint);
}
constexpr auto fixed32_field(pbf_tag_type f) {
  return protozero::tag_and_type(f, pbf_wire_type::fixed32);
}
constexpr auto fixed64_field(pbf_tag_type f) {
  return protozero::tag_and_type(f, pbf_wire_type::fixed64);
}

inline std::string_view text_of(protozero::data_view v) { return {v.data(), v.size()}; }
inline pbf_reader message_of(std::string_view bytes) {
  return pbf_reader{protozero::data_view{bytes.data(), bytes.size()}};
}

// How the reader gives up, from any depth. Never leaves `guarded`.
struct refusal {
  sod2::error error;
};
[[noreturn]] inline void refuse(sod2::error e) { throw refusal{std::move(e)}; }
[[noreturn]] inline void refuse(errc code, std::string message) {
  throw refusal{sod2::error(code, std::move(message))};
}

/// Runs `work` and turns whatever it throws into an error.
template <class T, class Work>
result<T> guarded(Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (refusal& r) {
    return std::move(r.error);
  } catch (const protozero::exception& e) {
    return error(errc::malformed_model, std::string("not a valid ONNX file: ") + e.what());
  } catch (const std::bad_alloc&) {
    return error(errc::out_of_memory);
  } catch (const std::exception& e) {
    return error(errc::malformed_model, e.what());
  }
}

}  // namespace detail
}  // namespace sod2::onnx
