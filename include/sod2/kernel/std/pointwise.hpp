// Lowering of pointwise operators to tile instructions: the only way they run.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <sod2/kernel/std/tile_functions.hpp>
#include <sod2/kernel/table.hpp>

namespace sod2::kernel_detail {

/// What every lowering works with: float16 and bfloat16 are computed in float32.
struct lowering {
  tile_builder& b;
  const prepare_args& args;
  std::span<const std::uint16_t> in;
  std::span<std::uint16_t> out;

  bool has(std::size_t i) const {
    return i < args.inputs.size() && i < in.size() && args.inputs[i].type != dtype::undefined;
  }
  dtype type(std::size_t i) const { return args.inputs[i].type; }
  /// The type to compute in.
  dtype work() const { return work_of(type(0)); }
  static dtype work_of(dtype t) { return t == dtype::f16 || t == dtype::bf16 ? dtype::f32 : t; }
  std::uint16_t operand(std::size_t i) const { return b.convert(in[i], work_of(type(i))); }
  std::uint16_t operand(std::size_t i, dtype t) const { return b.convert(operand(i), t); }
  status done(std::uint16_t reg) const {
    if (!out.empty()) out[0] = b.convert(reg, type(0));
    return {};
  }
  status done_as(std::uint16_t reg, dtype t) const {
    if (!out.empty()) out[0] = b.convert(reg, t);
    return {};
  }
  std::uint16_t unary(tile_op op, std::uint16_t x, double p = 0, double q = 0) const {
    return b.emit(op, b.type_of(x), x, 0, 0, p, q);
  }
  std::uint16_t binary(tile_op op, std::uint16_t x, std::uint16_t y) const {
    return b.emit(op, b.type_of(x), x, y);
  }
  double real(std::string_view name, double fallback) const {
    return args.attributes.real(name, fallback);
  }
  int version() const { return args.since_version; }
};

/// A constant of one element as a double; false when the input is not one.
inline bool scalar_constant(const operand_info& info, double& value) {
  if (!info.constant.present() || info.constant.count() != 1) return false;
  return with_storage(info.constant.type, [&]<class T>() {
    T v;
    std::memcpy(&v, info.constant.data, sizeof v);
    value = convert_value<double>(v);
  });
}

template <tile_op Op>
status lower_unary(const lowering& l) {
  return l.done(l.unary(Op, l.operand(0)));
}
template <tile_op Op>
status lower_binary(const lowering& l) {
  return l.done(l.binary(Op, l.operand(0), l.operand(1)));
}
/// The output is bool: compare in the work type.
template <tile_op Op, bool Swap = false>
status lower_compare(const lowering& l) {
  const std::uint16_t x = l.operand(0), y = l.operand(1);
  return l.done_as(Swap ? l.binary(Op, y, x) : l.binary(Op, x, y), dtype::boolean);
}
template <tile_op Op>
status lower_test(const lowering& l) {
  return l.done_as(l.unary(Op, l.operand(0)), dtype::boolean);
}
template <tile_op Op>
status lower_variadic(const lowering& l) {
  std::uint16_t acc = l.operand(0);
  for (std::size_t i = 1; i < l.args.inputs.size(); ++i) acc = l.binary(Op, acc, l.operand(i));
  return l.done(acc);
}

inline status lower_mean(const lowering& l) {
  std::uint16_t acc = l.operand(0);
  for (std::size_t i = 1; i < l.args.inputs.size(); ++i)
    acc = l.binary(tile_op::add, acc, l.operand(i));
  const auto n = static_cast<double>(l.args.inputs.size());
  return l.done(l.binary(tile_op::div, acc, l.b.constant(l.work(), n)));
}

inline status lower_mod(const lowering& l) {
  const bool c_style = l.args.attributes.integer("fmod", 0) != 0;
  return l.done(l.binary(c_style ? tile_op::fmod : tile_op::mod, l.operand(0), l.operand(1)));
}

/// The result has the base's type; mixed types meet in float64 or int64.
inline status lower_pow(const lowering& l) {
  const dtype base = l.work(), exponent = lowering::work_of(l.type(1));
  dtype meet = base;
  if (base != exponent) {
    if (is_float(base))
      meet = base;
    else
      meet = is_float(exponent) ? dtype::f64 : dtype::i64;
  }
  return l.done(l.binary(tile_op::pow, l.operand(0, meet), l.operand(1, meet)));
}

template <tile_op Op>
status lower_with_alpha(const lowering& l, double alpha) {
  return l.done(l.unary(Op, l.operand(0), l.real("alpha", alpha)));
}
inline status lower_leaky_relu(const lowering& l) {
  return lower_with_alpha<tile_op::leaky_relu>(l, 0.01);
}
inline status lower_elu(const lowering& l) { return lower_with_alpha<tile_op::elu>(l, 1.0); }
inline status lower_celu(const lowering& l) { return lower_with_alpha<tile_op::celu>(l, 1.0); }
inline status lower_thresholded_relu(const lowering& l) {
  return lower_with_alpha<tile_op::thresholded_relu>(l, 1.0);
}
inline status lower_selu(const lowering& l) {
  const bool first = l.version() < 6;
  return l.done(l.unary(tile_op::selu, l.operand(0),
                        l.real("alpha", first ? 1.6732 : 1.67326319217681884765625),
                        l.real("gamma", first ? 1.0507 : 1.05070102214813232421875)));
}
inline status lower_hard_sigmoid(const lowering& l) {
  return l.done(
      l.unary(tile_op::hard_sigmoid, l.operand(0), l.real("alpha", 0.2), l.real("beta", 0.5)));
}
inline status lower_shrink(const lowering& l) {
  return l.done(l.unary(tile_op::shrink, l.operand(0), l.real("bias", 0.0), l.real("lambd", 0.5)));
}
inline status lower_gelu(const lowering& l) {
  const bool approximate = l.args.attributes.string("approximate", "none") == "tanh";
  return l.done(l.unary(approximate ? tile_op::gelu_tanh : tile_op::gelu_erf, l.operand(0)));
}
inline status lower_bias_gelu(const lowering& l) {
  return l.done(l.unary(tile_op::gelu_erf, l.binary(tile_op::add, l.operand(0), l.operand(1))));
}
inline status lower_fast_gelu(const lowering& l) {
  std::uint16_t x = l.operand(0);
  if (l.has(1)) x = l.binary(tile_op::add, x, l.operand(1));
  return l.done(l.unary(tile_op::gelu_tanh, x));
}
/// x * sigmoid(alpha * x).
inline status lower_gated(const lowering& l, double fallback) {
  const std::uint16_t x = l.operand(0);
  const std::uint16_t alpha = l.b.constant(l.work(), l.real("alpha", fallback));
  return l.done(
      l.binary(tile_op::mul, x, l.unary(tile_op::sigmoid, l.binary(tile_op::mul, x, alpha))));
}
inline status lower_quick_gelu(const lowering& l) { return lower_gated(l, 1.702); }
inline status lower_swish(const lowering& l) { return lower_gated(l, 1.0); }

/// Clip 1 and 6: attributes; 11 and later: optional inputs. min > max gives max.
inline status lower_clip(const lowering& l) {
  std::uint16_t x = l.operand(0);
  const dtype t = l.work();
  constexpr double lowest = -3.4028234663852886e38, highest = 3.4028234663852886e38;
  if (l.version() < 11)
    return l.done(l.unary(tile_op::clip, x, l.real("min", lowest), l.real("max", highest)));
  double low = -__builtin_inf(), high = __builtin_inf();
  const bool low_known = !l.has(1) || scalar_constant(l.args.inputs[1], low);
  const bool high_known = !l.has(2) || scalar_constant(l.args.inputs[2], high);
  if (low_known && high_known && is_float(t)) return l.done(l.unary(tile_op::clip, x, low, high));
  if (l.has(1)) x = l.binary(tile_op::max, x, l.operand(1));
  if (l.has(2)) x = l.binary(tile_op::min, x, l.operand(2));
  return l.done(x);
}

inline status lower_where(const lowering& l) {
  if (l.type(0) != dtype::boolean)
    return error(errc::type_mismatch, "Where needs a bool condition");
  return l.done_as(l.b.emit(tile_op::where, l.type(1), l.in[0], l.in[1], l.in[2]), l.type(1));
}

inline status lower_not(const lowering& l) {
  return l.done(l.unary(tile_op::logical_not, l.operand(0)));
}
inline status lower_bit_shift(const lowering& l) {
  const std::string_view direction = l.args.attributes.string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return error(errc::bad_attribute, "BitShift needs direction LEFT or RIGHT");
  return l.done(l.binary(direction == "LEFT" ? tile_op::shift_left : tile_op::shift_right,
                         l.operand(0), l.operand(1)));
}
inline status lower_is_inf(const lowering& l) {
  return l.done_as(l.unary(tile_op::is_inf, l.operand(0),
                           static_cast<double>(l.args.attributes.integer("detect_positive", 1)),
                           static_cast<double>(l.args.attributes.integer("detect_negative", 1))),
                   dtype::boolean);
}

inline status lower_cast(const lowering& l) {
  dtype to = dtype::undefined;
  const attribute_view a = l.args.attributes("to");
  if (a.kind == attribute_kind::integer)
    to = static_cast<dtype>(a.integer);
  else if (!l.args.outputs.empty())
    to = l.args.outputs[0].type;
  if (to == dtype::undefined) return error(errc::missing_attribute, "Cast needs 'to'");
  return l.done_as(l.in[0], to);
}
/// Strings are converted by a kernel.
inline bool no_text(const prepare_args& args) {
  for (const auto& list : {args.inputs, args.outputs})
    if (!list.empty() && list[0].type == dtype::string) return false;
  return true;
}
inline status lower_cast_like(const lowering& l) { return l.done_as(l.in[0], l.type(1)); }
inline status lower_identity(const lowering& l) {
  // `finish` turns an output that is an operand into a copy.
  return l.done(l.in[0]);
}

/// Is it known that the node runs at inference?
inline bool dropout_passes(const prepare_args& args) {
  double training = 0;
  return args.inputs.size() < 3 || args.inputs[2].type == dtype::undefined ||
         (scalar_constant(args.inputs[2], training) && training == 0);
}
/// Inference: the data passes, the mask is all ones.
inline status lower_dropout(const lowering& l) {
  if (l.version() < 7 && l.args.attributes.integer("is_test", 0) == 0 && l.out.size() > 1 &&
      l.args.outputs.size() > 1 && l.args.outputs[1].type != dtype::undefined)
    return error(errc::unsupported, "Dropout in training mode");
  if (l.out.size() > 1 && l.args.outputs.size() > 1 && l.args.outputs[1].type != dtype::undefined)
    l.out[1] = l.b.constant(l.args.outputs[1].type, 1.0);
  return l.done(l.in[0]);
}

inline bool uses_given_statistics(const prepare_args& args) {
  return args.attributes.integer("training_mode", 0) == 0;
}
/// y = (x - mean) / sqrt(var + epsilon) * scale + B with per-channel operands: the factors are
/// computed once per tile as scalars where a tile lies within one channel.
inline status lower_batch_normalization(const lowering& l) {
  const dtype t = l.work();
  const std::uint16_t x = l.operand(0);
  const std::uint16_t scale = l.operand(1, t), bias = l.operand(2, t);
  const std::uint16_t mean = l.operand(3, t), variance = l.operand(4, t);
  const std::uint16_t eps = l.b.constant(t, l.real("epsilon", 1e-5));
  const std::uint16_t root = l.unary(tile_op::sqrt, l.binary(tile_op::add, variance, eps));
  const std::uint16_t factor = l.binary(tile_op::div, scale, root);
  const std::uint16_t centred = l.binary(tile_op::sub, x, mean);
  return l.done(l.binary(tile_op::add, l.binary(tile_op::mul, centred, factor), bias));
}

/// Wraps a lowering as a table entry: checks arity and that every instruction has code.
template <auto Lower, std::size_t MinInputs>
status lower_entry(tile_builder& b, const prepare_args& args, std::span<const std::uint16_t> inputs,
                   std::span<std::uint16_t> outputs) {
  if (args.inputs.size() < MinInputs || inputs.size() < MinInputs)
    return error(errc::arity, "pointwise operator with too few inputs");
  const std::size_t before = b.code().size();
  const lowering l{b, args, inputs, outputs};
  status lowered = Lower(l);
  if (!lowered) return lowered;
  const std::span<const tile_instruction> code = b.code();
  for (std::size_t i = before; i < code.size(); ++i) {
    if (code[i].op == tile_op::cast ? cast_function(code[i].type, code[i].to) == nullptr
                                    : generic_tile(code[i]) == nullptr)
      return error(errc::unsupported, "element type is not supported");
    for (int s = 0; s < tile_builder::arity(code[i].op); ++s)
      if (code[i].op != tile_op::where && b.type_of(code[i].src[s]) != code[i].type)
        return error(errc::type_mismatch);
  }
  if (code.size() == before)
    for (std::uint16_t r : outputs)
      if (r < inputs.size() && bytes_of(b.type_of(r)) == 0) return error(errc::unsupported);
  return {};
}

template <auto Lower, std::size_t MinInputs>
constexpr pointwise_row row_of(std::string_view name, int since, std::uint32_t channels = 0,
                               std::uint32_t unread = 0, bool legacy = false,
                               std::string_view domain = "") {
  pointwise_row row;
  row.domain = domain;
  row.name = name;
  row.since = since;
  row.lower = lower_entry<Lower, MinInputs>;
  row.channel_inputs = channels;
  row.unread_inputs = unread;
  row.legacy_broadcast = legacy;
  return row;
}

constexpr pointwise_row until(pointwise_row row, int last) {
  row.until = last;
  return row;
}
constexpr pointwise_row where(bool (*applies)(const prepare_args&), pointwise_row row) {
  row.applies = applies;
  return row;
}

inline constexpr pointwise_row pointwise_rows[] = {
    row_of<lower_binary<tile_op::add>, 2>("Add", 1, 0, 0, true),
    row_of<lower_binary<tile_op::sub>, 2>("Sub", 1, 0, 0, true),
    row_of<lower_binary<tile_op::mul>, 2>("Mul", 1, 0, 0, true),
    row_of<lower_binary<tile_op::div>, 2>("Div", 1, 0, 0, true),
    row_of<lower_mod, 2>("Mod", 10),
    row_of<lower_pow, 2>("Pow", 1, 0, 0, true),
    row_of<lower_variadic<tile_op::max>, 1>("Max", 1),
    row_of<lower_variadic<tile_op::min>, 1>("Min", 1),
    row_of<lower_variadic<tile_op::add>, 1>("Sum", 1),
    row_of<lower_mean, 1>("Mean", 1),
    row_of<lower_unary<tile_op::neg>, 1>("Neg", 1),
    row_of<lower_unary<tile_op::abs>, 1>("Abs", 1),
    row_of<lower_unary<tile_op::sqrt>, 1>("Sqrt", 1),
    row_of<lower_unary<tile_op::exp>, 1>("Exp", 1),
    row_of<lower_unary<tile_op::log>, 1>("Log", 1),
    row_of<lower_unary<tile_op::erf>, 1>("Erf", 9),
    row_of<lower_unary<tile_op::reciprocal>, 1>("Reciprocal", 1),
    row_of<lower_unary<tile_op::ceil>, 1>("Ceil", 1),
    row_of<lower_unary<tile_op::floor>, 1>("Floor", 1),
    row_of<lower_unary<tile_op::round>, 1>("Round", 11),
    row_of<lower_unary<tile_op::sign>, 1>("Sign", 9),
    row_of<lower_unary<tile_op::sin>, 1>("Sin", 7),
    row_of<lower_unary<tile_op::cos>, 1>("Cos", 7),
    row_of<lower_unary<tile_op::tan>, 1>("Tan", 7),
    row_of<lower_unary<tile_op::asin>, 1>("Asin", 7),
    row_of<lower_unary<tile_op::acos>, 1>("Acos", 7),
    row_of<lower_unary<tile_op::atan>, 1>("Atan", 7),
    row_of<lower_unary<tile_op::sinh>, 1>("Sinh", 9),
    row_of<lower_unary<tile_op::cosh>, 1>("Cosh", 9),
    row_of<lower_unary<tile_op::tanh>, 1>("Tanh", 1),
    row_of<lower_unary<tile_op::asinh>, 1>("Asinh", 9),
    row_of<lower_unary<tile_op::acosh>, 1>("Acosh", 9),
    row_of<lower_unary<tile_op::atanh>, 1>("Atanh", 9),
    row_of<lower_unary<tile_op::relu>, 1>("Relu", 1),
    row_of<lower_leaky_relu, 1>("LeakyRelu", 1),
    row_of<lower_elu, 1>("Elu", 1),
    row_of<lower_celu, 1>("Celu", 12),
    row_of<lower_selu, 1>("Selu", 1),
    row_of<lower_unary<tile_op::sigmoid>, 1>("Sigmoid", 1),
    row_of<lower_hard_sigmoid, 1>("HardSigmoid", 1),
    row_of<lower_unary<tile_op::hard_swish>, 1>("HardSwish", 14),
    row_of<lower_unary<tile_op::softplus>, 1>("Softplus", 1),
    row_of<lower_unary<tile_op::softsign>, 1>("Softsign", 1),
    row_of<lower_thresholded_relu, 1>("ThresholdedRelu", 10),
    row_of<lower_shrink, 1>("Shrink", 9),
    row_of<lower_gelu, 1>("Gelu", 20),
    row_of<lower_unary<tile_op::mish>, 1>("Mish", 18),
    row_of<lower_swish, 1>("Swish", 24),
    row_of<lower_clip, 1>("Clip", 1),
    until(row_of<lower_binary<tile_op::prelu>, 2>("PRelu", 1, 0b10), 6),
    row_of<lower_binary<tile_op::prelu>, 2>("PRelu", 7),
    row_of<lower_where, 3>("Where", 9),
    row_of<lower_compare<tile_op::equal>, 2>("Equal", 1, 0, 0, true),
    row_of<lower_compare<tile_op::less>, 2>("Less", 1, 0, 0, true),
    row_of<lower_compare<tile_op::less, true>, 2>("Greater", 1, 0, 0, true),
    row_of<lower_compare<tile_op::less_equal>, 2>("LessOrEqual", 12),
    row_of<lower_compare<tile_op::less_equal, true>, 2>("GreaterOrEqual", 12),
    row_of<lower_binary<tile_op::logical_and>, 2>("And", 1, 0, 0, true),
    row_of<lower_binary<tile_op::logical_or>, 2>("Or", 1, 0, 0, true),
    row_of<lower_binary<tile_op::logical_xor>, 2>("Xor", 1, 0, 0, true),
    row_of<lower_not, 1>("Not", 1),
    row_of<lower_bit_shift, 2>("BitShift", 11),
    row_of<lower_binary<tile_op::bit_and>, 2>("BitwiseAnd", 18),
    row_of<lower_binary<tile_op::bit_or>, 2>("BitwiseOr", 18),
    row_of<lower_binary<tile_op::bit_xor>, 2>("BitwiseXor", 18),
    row_of<lower_unary<tile_op::bit_not>, 1>("BitwiseNot", 18),
    row_of<lower_test<tile_op::is_nan>, 1>("IsNaN", 9),
    row_of<lower_is_inf, 1>("IsInf", 10),
    where(no_text, row_of<lower_cast, 1>("Cast", 1)),
    where(no_text, row_of<lower_cast_like, 2>("CastLike", 15, 0, 2)),
    row_of<lower_identity, 1>("Identity", 1),
    where(dropout_passes, row_of<lower_dropout, 1>("Dropout", 1, 0, 6)),
    where(uses_given_statistics,
          row_of<lower_batch_normalization, 5>("BatchNormalization", 1, 0b11110)),
    row_of<lower_gelu, 1>("Gelu", 1, 0, 0, false, "com.microsoft"),
    row_of<lower_bias_gelu, 2>("BiasGelu", 1, 0, 0, false, "com.microsoft"),
    row_of<lower_fast_gelu, 1>("FastGelu", 1, 0, 0, false, "com.microsoft"),
    row_of<lower_quick_gelu, 1>("QuickGelu", 1, 0, 0, false, "com.microsoft"),
};

}  // namespace sod2::kernel_detail
