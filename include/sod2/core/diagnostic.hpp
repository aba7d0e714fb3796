// The table of diagnostics: one code and one sentence for run-time errors and static_asserts alike.
#pragma once

#include <cstdint>
#include <string_view>

namespace sod2 {

enum class errc : std::uint16_t {
  ok = 0,
  // usage and environment
  invalid_argument = 1,
  out_of_memory,
  io,
  unsupported,
  internal,
  // expressions
  overflow = 100,
  parse,
  unbound_symbol,
  division,
  // models and graphs
  malformed_model = 200,
  unknown_operator,
  unknown_opset,
  undefined_value,
  duplicate_value,
  cycle,
  missing_attribute,
  bad_attribute,
  arity,
  type_mismatch,
  // shapes
  rank_mismatch = 300,
  dim_mismatch,
  broadcast,
  element_count,
  inner_dims,
  channels,
  divisibility,
  contradiction,
  rank_unknown,
  axis_range,
  value_range,
  // bind and run
  assertion_failed = 400,
  input_missing,
  input_shape,
  input_type,
  buffer_too_small,
  kernel_missing,
  index_range,
  budget,
  // plans
  invalid_plan = 500,
  infeasible,
};

/// The sentence that goes with a code, without names or values.
constexpr std::string_view text_of(errc code) {
  switch (code) {
    case errc::ok: return "success";
    case errc::invalid_argument: return "invalid argument";
    case errc::out_of_memory: return "out of memory";
    case errc::io: return "input or output failed";
    case errc::unsupported: return "not supported";
    case errc::internal: return "internal error";
    case errc::overflow: return "size does not fit into 64 bits";
    case errc::parse: return "text is not an expression";
    case errc::unbound_symbol: return "symbol has no value";
    case errc::division: return "division by zero";
    case errc::malformed_model: return "malformed model";
    case errc::unknown_operator: return "operator is not registered";
    case errc::unknown_opset: return "opset is newer than the newest known";
    case errc::undefined_value: return "value is not defined";
    case errc::duplicate_value: return "value is defined twice";
    case errc::cycle: return "graph has a cycle";
    case errc::missing_attribute: return "required attribute is missing";
    case errc::bad_attribute: return "attribute has a wrong type or value";
    case errc::arity: return "wrong number of inputs or outputs";
    case errc::type_mismatch: return "element types do not agree";
    case errc::rank_mismatch: return "ranks do not agree";
    case errc::dim_mismatch: return "dimensions do not agree";
    case errc::broadcast: return "dimensions do not broadcast";
    case errc::element_count: return "reshape must keep the number of elements";
    case errc::inner_dims: return "inner dimensions of a product do not agree";
    case errc::channels: return "channels do not agree";
    case errc::divisibility: return "dimension is not divisible";
    case errc::contradiction: return "facts contradict each other";
    case errc::rank_unknown: return "rank must be known here";
    case errc::axis_range: return "axis is out of range";
    case errc::value_range: return "value is out of range";
    case errc::assertion_failed: return "assertion of the model does not hold";
    case errc::input_missing: return "input is missing";
    case errc::input_shape: return "input has a wrong shape";
    case errc::input_type: return "input has a wrong element type";
    case errc::buffer_too_small: return "buffer is too small";
    case errc::kernel_missing: return "no kernel for this operator";
    case errc::index_range: return "index is out of range";
    case errc::budget: return "memory budget is too small";
    case errc::invalid_plan: return "plan is not valid";
    case errc::infeasible: return "no plan fits";
  }
  return "unknown error";
}

}  // namespace sod2
