// What an operator declares: one struct per operator.
//
//   struct my_op {
//     static constexpr int since[] = {1};
//     static constexpr op_info info{.name = "MyOp", .domain = "my.domain", .versions = since,
//                                   .base = dynamism::isdos, .map = mapping::one_to_one,
//                                   .inputs = {1, 1}, .outputs = {1, 1}};
//     template <class C> static status forward(C& c);   // shapes and types of the outputs
//     template <class C> static status backward(C& c);  // optional: refine inputs from outputs
//     template <class C> static status value(C& c);     // optional: elements of small outputs
//   };
//
// C is a transfer_context over any dimension domain.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <sod2/core/status.hpp>
#include <sod2/op/context.hpp>
#include <sod2/op/fwd.hpp>
#include <sod2/op/kind.hpp>

namespace sod2 {

struct arity {
  std::uint16_t least = 0, most = 0;
};
inline constexpr std::uint16_t any_number = 0xffff;

struct op_info {
  std::string_view name;
  std::string_view domain{};               // "" is the default ONNX domain
  std::span<const int> versions{};         // ascending since-versions
  dynamism base = dynamism::isdos;         // class of the operator, before anything is known
  mapping map = mapping::many_to_many;
  arity inputs{1, 1};
  arity outputs{1, 1};
  bool deterministic = true;               // false: random, never folded
};

/// Are there as many inputs and outputs as the operator takes? Absent optional ones in the middle
/// count; trailing ones may be left away.
inline status check_arity(const op_info& info, std::size_t inputs, std::size_t outputs) {
  auto text = [&](const char* what, arity range, std::size_t got) {
    std::string out(info.name);
    out.append(" takes ").append(std::to_string(range.least));
    if (range.most == any_number)
      out.append(" or more ");
    else if (range.most != range.least)
      out.append(" to ").append(std::to_string(range.most)).append(" ");
    else
      out.append(" ");
    return out.append(what).append(", not ").append(std::to_string(got));
  };
  if (inputs < info.inputs.least || (info.inputs.most != any_number && inputs > info.inputs.most))
    return error(errc::arity, text("inputs", info.inputs, inputs));
  if (outputs < info.outputs.least || (info.outputs.most != any_number && outputs > info.outputs.most))
    return error(errc::arity, text("outputs", info.outputs, outputs));
  return {};
}

template <class Op, class Domain = symbolic_domain>
concept operator_definition = requires(transfer_context<Domain>& c) {
  { Op::info.name };
  { Op::forward(c) };
};

/// The run-time form of one operator: its declaration and its instantiated transfer functions.
struct op_row {
  const op_info* info = nullptr;
  status (*forward)(symbolic_transfer&) = nullptr;
  status (*backward)(symbolic_transfer&) = nullptr;  // null when there is no rule
  status (*value)(symbolic_transfer&) = nullptr;     // null when values do not pass
};

template <class Op>
  requires operator_definition<Op>
constexpr op_row row_of() {
  op_row row;
  row.info = &Op::info;
  row.forward = &Op::template forward<symbolic_transfer>;
  if constexpr (requires(symbolic_transfer& c) { Op::backward(c); })
    row.backward = &Op::template backward<symbolic_transfer>;
  if constexpr (requires(symbolic_transfer& c) { Op::value(c); })
    row.value = &Op::template value<symbolic_transfer>;
  return row;
}

}  // namespace sod2
