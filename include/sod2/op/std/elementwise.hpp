// Operators that compute every element from the elements at the same (broadcast) index.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/elements.hpp>
#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops {

namespace detail {

/// Y = f(X): shape and type of X; Op::element names the arithmetic of small values.
template <class Op>
struct unary_with_value : keeps_shape {
  template <class C>
  static status value(C& c) {
    return unary_value(c, Op::element);
  }
};

/// Y(bool) = f(X).
struct unary_predicate {
  template <class C>
  static status forward(C& c) {
    c.set_type(0, dtype::boolean);
    return same_shape(c);
  }
  template <class C>
  static status backward(C& c) {
    return same_shape_back(c);
  }
};

/// The broadcast of opsets before 7: B fits into A at `axis` (its trailing axes by default).
template <class C>
status legacy_broadcast(C& c) {
  bool enabled = false;
  SOD2_TRY(read(c.attributes(), "broadcast", enabled));
  c.copy_shape(0, 0);
  if (!c.rank_known(0) || !c.rank_known(1)) return {};
  const std::size_t a = c.dims(0).size(), b = c.dims(1).size();
  if (!enabled && a != b) return rank_error(c.input_name(1), b, std::to_string(a));
  if (b > a) return rank_error(c.input_name(1), b, "at most " + std::to_string(a));
  std::size_t first = a - b;
  if (const attribute_view given = c.attributes()("axis"); enabled && given) {
    std::int64_t axis = 0;
    SOD2_TRY(read(c.attributes(), "axis", axis));
    SOD2_TRY(axis_of(c, 0, axis, a == 0 ? 1 : a, first));
    if (first + b > a) return axis_error(c.input_name(1), axis, a);
  }
  for (std::size_t k = 0; k < b; ++k) {
    const auto whole = c.dims(0)[first + k], part = c.dims(1)[k];
    auto both = part;
    if ((enabled && rules::broadcast_dim(c.domain(), c, whole, part, both) != errc::ok) ||
        !c.require_eq(both, whole, errc::broadcast))
      return c.fail(errc::broadcast, 1, static_cast<int>(k), c.text(part), c.text(whole));
  }
  return {};
}

/// C = f(A, B) under numpy broadcasting.
template <class C>
status binary_forward(C& c, dtype type) {
  c.set_type(0, type);
  if (c.version() < 7) return legacy_broadcast(c);
  typename C::dim_list dims;
  bool known = false;
  SOD2_TRY(broadcast_inputs(c, 0, 2, dims, known));
  if (known) c.set_shape(0, dims);
  return {};
}
/// Operators whose first version already broadcasts as numpy.
template <class C>
status numpy_forward(C& c, std::size_t inputs, dtype type) {
  c.set_type(0, type);
  typename C::dim_list dims;
  bool known = false;
  SOD2_TRY(broadcast_inputs(c, 0, inputs, dims, known));
  if (known) c.set_shape(0, dims);
  return {};
}
template <class C>
status binary_back(C& c) {
  return c.version() < 7 ? same_shape_back(c) : broadcast_back(c, 0, 2);
}
template <class C>
bool values_broadcast_as_numpy(C& c) {
  // Before opset 7 `axis` may align B elsewhere.
  return c.version() >= 7 || !c.attributes()("axis");
}

/// Arithmetic: both inputs and the output have one type.
struct arithmetic {
  template <class C>
  static status forward(C& c) {
    SOD2_TRY(need_same_type(c, 0, 1));
    return binary_forward(c, type_of(c, 0, 1));
  }
  template <class C>
  static status backward(C& c) {
    return binary_back(c);
  }
};
template <class Op>
struct arithmetic_with_value : arithmetic {
  template <class C>
  static status value(C& c) {
    return values_broadcast_as_numpy(c) ? broadcast_value(c, Op::element) : status{};
  }
};
/// Comparisons and logic: the output is boolean.
template <class Op>
struct predicate {
  template <class C>
  static status forward(C& c) {
    SOD2_TRY(need_same_type(c, 0, 1));
    return binary_forward(c, dtype::boolean);
  }
  template <class C>
  static status backward(C& c) {
    return binary_back(c);
  }
  template <class C>
  static status value(C& c) {
    return values_broadcast_as_numpy(c) ? broadcast_value(c, Op::element) : status{};
  }
};
/// Any number of inputs of one type.
struct variadic {
  template <class C>
  static status forward(C& c) {
    for (std::size_t i = 1; i < c.input_count(); ++i) SOD2_TRY(need_same_type(c, 0, i));
    return numpy_forward(c, c.input_count(), c.input(0).type);
  }
  template <class C>
  static status backward(C& c) {
    return broadcast_back(c, 0, c.input_count());
  }
};
template <class Op>
struct variadic_with_value : variadic {
  template <class C>
  static status value(C& c) {
    return broadcast_value(c, Op::element);
  }
};

}  // namespace detail

// ---- unary, shape and type of the input; the versions widen the allowed types only ----

/// Abs-1, 6, 13.
struct abs : detail::unary_with_value<abs> {
  static constexpr int since[] = {1, 6, 13};
  static constexpr op_info info{.name = "Abs", .versions = since, .map = mapping::one_to_one};
  static constexpr auto element = detail::element_op::abs;
};
/// Acos-7, 22.
struct acos : detail::keeps_shape {
  static constexpr int since[] = {7, 22};
  static constexpr op_info info{.name = "Acos", .versions = since, .map = mapping::one_to_one};
};
/// Acosh-9, 22.
struct acosh : detail::keeps_shape {
  static constexpr int since[] = {9, 22};
  static constexpr op_info info{.name = "Acosh", .versions = since, .map = mapping::one_to_one};
};
/// Asin-7, 22.
struct asin : detail::keeps_shape {
  static constexpr int since[] = {7, 22};
  static constexpr op_info info{.name = "Asin", .versions = since, .map = mapping::one_to_one};
};
/// Asinh-9, 22.
struct asinh : detail::keeps_shape {
  static constexpr int since[] = {9, 22};
  static constexpr op_info info{.name = "Asinh", .versions = since, .map = mapping::one_to_one};
};
/// Atan-7, 22.
struct atan : detail::keeps_shape {
  static constexpr int since[] = {7, 22};
  static constexpr op_info info{.name = "Atan", .versions = since, .map = mapping::one_to_one};
};
/// Atanh-9, 22.
struct atanh : detail::keeps_shape {
  static constexpr int since[] = {9, 22};
  static constexpr op_info info{.name = "Atanh", .versions = since, .map = mapping::one_to_one};
};
/// BitwiseNot-18.
struct bitwise_not : detail::keeps_shape {
  static constexpr int since[] = {18};
  static constexpr op_info info{
      .name = "BitwiseNot", .versions = since, .map = mapping::one_to_one};
};
/// Ceil-1, 6, 13.
struct ceil : detail::unary_with_value<ceil> {
  static constexpr int since[] = {1, 6, 13};
  static constexpr op_info info{.name = "Ceil", .versions = since, .map = mapping::one_to_one};
  static constexpr auto element = detail::element_op::ceil;
};
/// Celu-12, 28.
struct celu : detail::keeps_shape {
  static constexpr int since[] = {12, 28};
  static constexpr op_info info{.name = "Celu", .versions = since, .map = mapping::one_to_one};
};
/// Cos-7, 22.
struct cos : detail::keeps_shape {
  static constexpr int since[] = {7, 22};
  static constexpr op_info info{.name = "Cos", .versions = since, .map = mapping::one_to_one};
};
/// Cosh-9, 22.
struct cosh : detail::keeps_shape {
  static constexpr int since[] = {9, 22};
  static constexpr op_info info{.name = "Cosh", .versions = since, .map = mapping::one_to_one};
};
/// Elu-1, 6, 22.
struct elu : detail::keeps_shape {
  static constexpr int since[] = {1, 6, 22};
  static constexpr op_info info{.name = "Elu", .versions = since, .map = mapping::one_to_one};
};
/// Erf-9, 13.
struct erf : detail::keeps_shape {
  static constexpr int since[] = {9, 13};
  static constexpr op_info info{.name = "Erf", .versions = since, .map = mapping::one_to_one};
};
/// Exp-1, 6, 13.
struct exp : detail::keeps_shape {
  static constexpr int since[] = {1, 6, 13};
  static constexpr op_info info{.name = "Exp", .versions = since, .map = mapping::one_to_one};
};
/// Floor-1, 6, 13.
struct floor : detail::unary_with_value<floor> {
  static constexpr int since[] = {1, 6, 13};
  static constexpr op_info info{.name = "Floor", .versions = since, .map = mapping::one_to_one};
  static constexpr auto element = detail::element_op::floor;
};
/// Gelu-20.
struct gelu : detail::keeps_shape {
  static constexpr int since[] = {20};
  static constexpr op_info info{.name = "Gelu", .versions = since, .map = mapping::one_to_one};
};
/// HardSigmoid-1, 6, 22.
struct hard_sigmoid : detail::keeps_shape {
  static constexpr int since[] = {1, 6, 22};
  static constexpr op_info info{
      .name = "HardSigmoid", .versions = since, .map = mapping::one_to_one};
};
/// HardSwish-14, 22.
struct hard_swish : detail::keeps_shape {
  static constexpr int since[] = {14, 22};
  static constexpr op_info info{.name = "HardSwish", .versions = since, .map = mapping::one_to_one};
};
/// LeakyRelu-1, 6, 16.
struct leaky_relu : detail::keeps_shape {
  static constexpr int since[] = {1, 6, 16};
  static constexpr op_info info{.name = "LeakyRelu", .versions = since, .map = mapping::one_to_one};
};
/// Log-1, 6, 13.
struct log : detail::keeps_shape {
  static constexpr int since[] = {1, 6, 13};
  static constexpr op_info info{.name = "Log", .versions = since, .map = mapping::one_to_one};
};
/// Mish-18, 22.
struct mish : detail::keeps_shape {
  static constexpr int since[] = {18, 22};
  static constexpr op_info info{.name = "Mish", .versions = since, .map = mapping::one_to_one};
};
/// Neg-1, 6, 13.
struct neg : detail::unary_with_value<neg> {
  static constexpr int since[] = {1, 6, 13};
  static constexpr op_info info{.name = "Neg", .versions = since, .map = mapping::one_to_one};
  static constexpr auto element = detail::element_op::neg;
};
/// Reciprocal-1, 6, 13.
struct reciprocal : detail::keeps_shape {
  static constexpr int since[] = {1, 6, 13};
  static constexpr op_info info{
      .name = "Reciprocal", .versions = since, .map = mapping::one_to_one};
};
/// Relu-1, 6, 13, 14.
struct relu : detail::unary_with_value<relu> {
  static constexpr int since[] = {1, 6, 13, 14};
  static constexpr op_info info{.name = "Relu", .versions = since, .map = mapping::one_to_one};
  static constexpr auto element = detail::element_op::relu;
};
/// Round-11, 22.
struct round : detail::unary_with_value<round> {
  static constexpr int since[] = {11, 22};
  static constexpr op_info info{.name = "Round", .versions = since, .map = mapping::one_to_one};
  static constexpr auto element = detail::element_op::round;
};
/// Selu-1, 6, 22.
struct selu : detail::keeps_shape {
  static constexpr int since[] = {1, 6, 22};
  static constexpr op_info info{.name = "Selu", .versions = since, .map = mapping::one_to_one};
};
/// Shrink-9.
struct shrink : detail::keeps_shape {
  static constexpr int since[] = {9};
  static constexpr op_info info{.name = "Shrink", .versions = since, .map = mapping::one_to_one};
};
/// Sigmoid-1, 6, 13.
struct sigmoid : detail::keeps_shape {
  static constexpr int since[] = {1, 6, 13};
  static constexpr op_info info{.name = "Sigmoid", .versions = since, .map = mapping::one_to_one};
};
/// Sign-9, 13.
struct sign : detail::unary_with_value<sign> {
  static constexpr int since[] = {9, 13};
  static constexpr op_info info{.name = "Sign", .versions = since, .map = mapping::one_to_one};
  static constexpr auto element = detail::element_op::sign;
};
/// Sin-7, 22.
struct sin : detail::keeps_shape {
  static constexpr int since[] = {7, 22};
  static constexpr op_info info{.name = "Sin", .versions = since, .map = mapping::one_to_one};
};
/// Sinh-9, 22.
struct sinh : detail::keeps_shape {
  static constexpr int since[] = {9, 22};
  static constexpr op_info info{.name = "Sinh", .versions = since, .map = mapping::one_to_one};
};
/// Softplus-1, 22.
struct softplus : detail::keeps_shape {
  static constexpr int since[] = {1, 22};
  static constexpr op_info info{.name = "Softplus", .versions = since, .map = mapping::one_to_one};
};
/// Softsign-1, 22.
struct softsign : detail::keeps_shape {
  static constexpr int since[] = {1, 22};
  static constexpr op_info info{.name = "Softsign", .versions = since, .map = mapping::one_to_one};
};
/// Sqrt-1, 6, 13.
struct sqrt : detail::unary_with_value<sqrt> {
  static constexpr int since[] = {1, 6, 13};
  static constexpr op_info info{.name = "Sqrt", .versions = since, .map = mapping::one_to_one};
  static constexpr auto element = detail::element_op::sqrt;
};
/// Swish-24.
struct swish : detail::keeps_shape {
  static constexpr int since[] = {24};
  static constexpr op_info info{.name = "Swish", .versions = since, .map = mapping::one_to_one};
};
/// Tan-7, 22.
struct tan : detail::keeps_shape {
  static constexpr int since[] = {7, 22};
  static constexpr op_info info{.name = "Tan", .versions = since, .map = mapping::one_to_one};
};
/// Tanh-1, 6, 13.
struct tanh : detail::keeps_shape {
  static constexpr int since[] = {1, 6, 13};
  static constexpr op_info info{.name = "Tanh", .versions = since, .map = mapping::one_to_one};
};
/// ThresholdedRelu-10, 22.
struct thresholded_relu : detail::keeps_shape {
  static constexpr int since[] = {10, 22};
  static constexpr op_info info{
      .name = "ThresholdedRelu", .versions = since, .map = mapping::one_to_one};
};

/// Not-1: boolean to boolean.
struct not_ : detail::unary_with_value<not_> {
  static constexpr int since[] = {1};
  static constexpr op_info info{.name = "Not", .versions = since, .map = mapping::one_to_one};
  static constexpr auto element = detail::element_op::logical_not;
};
/// IsInf-10, 20: float to boolean.
struct is_inf : detail::unary_predicate {
  static constexpr int since[] = {10, 20};
  static constexpr op_info info{.name = "IsInf", .versions = since, .map = mapping::one_to_one};
};
/// IsNaN-9, 13, 20: float to boolean.
struct is_nan : detail::unary_predicate {
  static constexpr int since[] = {9, 13, 20};
  static constexpr op_info info{.name = "IsNaN", .versions = since, .map = mapping::one_to_one};
};

/// Clip-1, 6 (attributes min, max), 11, 12, 13 (optional scalar inputs): shape of the input.
struct clip : detail::keeps_shape {
  static constexpr int since[] = {1, 6, 11, 12, 13};
  static constexpr op_info info{
      .name = "Clip", .versions = since, .map = mapping::one_to_one, .inputs = {1, 3}};
  template <class C>
  static status value(C& c) {
    if (!c.has_value(0)) return {};
    auto& domain = c.domain();
    const dtype type = c.input(0).type;
    bool bounded[2] = {false, false};
    typename C::value_type bound[2]{};
    for (std::size_t k = 0; k < 2; ++k) {
      if (c.version() >= 11) {
        if (!c.has_input(k + 1)) continue;
        if (!c.has_value(k + 1) || c.value(k + 1).size() != 1) return {};
        bounded[k] = true;
        bound[k] = c.value(k + 1)[0];
      } else if (const attribute_view a = c.attributes()(k == 0 ? "min" : "max"); a) {
        if (!detail::real_constant(domain, a.real, type == dtype::f64, bound[k])) return {};
        bounded[k] = true;
      }
    }
    detail::element_list<C> out(c);
    for (const auto& v : c.value(0)) {
      auto r = v;
      bool ok = is_known(v);
      if (ok && bounded[0])
        ok = detail::element(domain, detail::element_op::max, type, r, bound[0], r);
      if (ok && bounded[1])
        ok = detail::element(domain, detail::element_op::min, type, r, bound[1], r);
      if (ok)
        out.push(r);
      else
        out.push_unknown();
    }
    out.commit(0);
    return {};
  }
};

// ---- binary ----

/// Add-1, 6 (legacy broadcast), 7, 13, 14.
struct add : detail::arithmetic_with_value<add> {
  static constexpr int since[] = {1, 6, 7, 13, 14};
  static constexpr op_info info{
      .name = "Add", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  static constexpr auto element = detail::element_op::add;
};
/// Sub-1, 6 (legacy broadcast), 7, 13, 14.
struct sub : detail::arithmetic_with_value<sub> {
  static constexpr int since[] = {1, 6, 7, 13, 14};
  static constexpr op_info info{
      .name = "Sub", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  static constexpr auto element = detail::element_op::sub;
};
/// Mul-1, 6 (legacy broadcast), 7, 13, 14.
struct mul : detail::arithmetic_with_value<mul> {
  static constexpr int since[] = {1, 6, 7, 13, 14};
  static constexpr op_info info{
      .name = "Mul", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  static constexpr auto element = detail::element_op::mul;
};
/// And-1 (legacy broadcast), 7: boolean.
struct and_ : detail::predicate<and_> {
  static constexpr int since[] = {1, 7};
  static constexpr op_info info{
      .name = "And", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  static constexpr auto element = detail::element_op::logical_and;
};
/// Or-1 (legacy broadcast), 7: boolean.
struct or_ : detail::predicate<or_> {
  static constexpr int since[] = {1, 7};
  static constexpr op_info info{
      .name = "Or", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  static constexpr auto element = detail::element_op::logical_or;
};
/// Xor-1 (legacy broadcast), 7: boolean.
struct xor_ : detail::predicate<xor_> {
  static constexpr int since[] = {1, 7};
  static constexpr op_info info{
      .name = "Xor", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  static constexpr auto element = detail::element_op::logical_xor;
};
/// Equal-1 (legacy broadcast), 7, 11, 13, 19 (strings): boolean.
struct equal : detail::predicate<equal> {
  static constexpr int since[] = {1, 7, 11, 13, 19};
  static constexpr op_info info{
      .name = "Equal", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  static constexpr auto element = detail::element_op::equal;
};
/// Greater-1 (legacy broadcast), 7, 9, 13: boolean.
struct greater : detail::predicate<greater> {
  static constexpr int since[] = {1, 7, 9, 13};
  static constexpr op_info info{
      .name = "Greater", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  static constexpr auto element = detail::element_op::greater;
};
/// GreaterOrEqual-12, 16: boolean.
struct greater_or_equal : detail::predicate<greater_or_equal> {
  static constexpr int since[] = {12, 16};
  static constexpr op_info info{
      .name = "GreaterOrEqual", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  static constexpr auto element = detail::element_op::greater_equal;
};
/// Less-1 (legacy broadcast), 7, 9, 13: boolean.
struct less : detail::predicate<less> {
  static constexpr int since[] = {1, 7, 9, 13};
  static constexpr op_info info{
      .name = "Less", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  static constexpr auto element = detail::element_op::less;
};
/// LessOrEqual-12, 16: boolean.
struct less_or_equal : detail::predicate<less_or_equal> {
  static constexpr int since[] = {12, 16};
  static constexpr op_info info{
      .name = "LessOrEqual", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  static constexpr auto element = detail::element_op::less_equal;
};

/// Div-1, 6 (legacy broadcast), 7, 13, 14: integers truncate towards zero.
struct div : detail::arithmetic_with_value<div> {
  static constexpr int since[] = {1, 6, 7, 13, 14};
  static constexpr op_info info{
      .name = "Div", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  static constexpr auto element = detail::element_op::div;
};
/// Mod-10, 13, 28: sign of the divisor, or of the dividend where attribute fmod is set.
struct mod : detail::arithmetic {
  static constexpr int since[] = {10, 13, 28};
  static constexpr op_info info{
      .name = "Mod", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  template <class C>
  static status value(C& c) {
    bool fmod = false;
    SOD2_TRY(detail::read(c.attributes(), "fmod", fmod));
    return detail::broadcast_value(c, fmod ? detail::element_op::fmod : detail::element_op::mod);
  }
};
/// Pow-1 (legacy broadcast), 7, 12 (exponent of another type), 13, 15: type of the base.
struct pow {
  static constexpr int since[] = {1, 7, 12, 13, 15};
  static constexpr op_info info{
      .name = "Pow", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    return detail::binary_forward(c, c.input(0).type);
  }
  template <class C>
  static status backward(C& c) {
    return detail::binary_back(c);
  }
  template <class C>
  static status value(C& c) {
    if (!c.has_input(1) || c.input(0).type != c.input(1).type ||
        !detail::values_broadcast_as_numpy(c))
      return {};
    return detail::broadcast_value(c, detail::element_op::pow);
  }
};
/// PRelu-1, 6 (slope per channel), 7, 9, 16 (unidirectional broadcast): shape of X.
struct prelu : detail::keeps_shape {
  static constexpr int since[] = {1, 6, 7, 9, 16};
  static constexpr op_info info{
      .name = "PRelu", .versions = since, .map = mapping::one_to_many, .inputs = {2, 2}};
};
/// BitShift-11 (unsigned integers), 28 (signed ones too).
struct bit_shift : detail::arithmetic {
  static constexpr int since[] = {11, 28};
  static constexpr op_info info{
      .name = "BitShift", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
};
/// BitwiseAnd-18.
struct bitwise_and : detail::arithmetic {
  static constexpr int since[] = {18};
  static constexpr op_info info{
      .name = "BitwiseAnd", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
};
/// BitwiseOr-18.
struct bitwise_or : detail::arithmetic {
  static constexpr int since[] = {18};
  static constexpr op_info info{
      .name = "BitwiseOr", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
};
/// BitwiseXor-18.
struct bitwise_xor : detail::arithmetic {
  static constexpr int since[] = {18};
  static constexpr op_info info{
      .name = "BitwiseXor", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
};
/// SwiGLU-28: A and B have one shape, which Y has too.
struct swiglu : detail::arithmetic {
  static constexpr int since[] = {28};
  static constexpr op_info info{
      .name = "SwiGLU", .versions = since, .map = mapping::one_to_one, .inputs = {2, 2}};
};

// ---- any number of inputs ----

/// Max-1, 6, 8, 12, 13; broadcasting since 8.
struct max : detail::variadic_with_value<max> {
  static constexpr int since[] = {1, 6, 8, 12, 13};
  static constexpr op_info info{
      .name = "Max", .versions = since, .map = mapping::one_to_one, .inputs = {1, many}};
  static constexpr auto element = detail::element_op::max;
};
/// Min-1, 6, 8, 12, 13; broadcasting since 8.
struct min : detail::variadic_with_value<min> {
  static constexpr int since[] = {1, 6, 8, 12, 13};
  static constexpr op_info info{
      .name = "Min", .versions = since, .map = mapping::one_to_one, .inputs = {1, many}};
  static constexpr auto element = detail::element_op::min;
};
/// Sum-1, 6, 8, 13; broadcasting since 8.
struct sum : detail::variadic_with_value<sum> {
  static constexpr int since[] = {1, 6, 8, 13};
  static constexpr op_info info{
      .name = "Sum", .versions = since, .map = mapping::one_to_one, .inputs = {1, many}};
  static constexpr auto element = detail::element_op::add;
};
/// Mean-1, 6, 8, 13.
struct mean : detail::variadic {
  static constexpr int since[] = {1, 6, 8, 13};
  static constexpr op_info info{
      .name = "Mean", .versions = since, .map = mapping::one_to_one, .inputs = {1, many}};
};

/// Where-9, 16: broadcast of condition, X and Y.
struct where {
  static constexpr int since[] = {9, 16};
  static constexpr op_info info{
      .name = "Where", .versions = since, .map = mapping::one_to_one, .inputs = {3, 3}};
  template <class C>
  static status forward(C& c) {
    SOD2_TRY(detail::need_same_type(c, 1, 2));
    return detail::numpy_forward(c, 3, detail::type_of(c, 1, 2));
  }
  template <class C>
  static status backward(C& c) {
    return detail::broadcast_back(c, 0, 3);
  }
  /// The chosen element where the condition is decided; where it is not, an element that both
  /// branches agree on.
  template <class C>
  static status value(C& c) {
    detail::index_list dims[3], joined, at[3];
    for (std::size_t i = 0; i < 3; ++i)
      if (!c.has_value(i) || !detail::concrete_dims(c, i, dims[i])) return {};
    std::size_t rank = 0;
    for (const auto& d : dims) rank = d.size() > rank ? d.size() : rank;
    joined.assign(rank, 1);
    for (const auto& d : dims)
      for (std::size_t k = 0; k < d.size(); ++k) {
        std::int64_t& slot = joined[k + rank - d.size()];
        if (slot != 1 && d[k] != 1 && slot != d[k]) return {};
        if (slot == 1) slot = d[k];
      }
    if (!detail::tracked(detail::product_of(joined))) return {};
    for (std::size_t i = 0; i < 3; ++i) detail::broadcast_indices(dims[i], joined, at[i]);
    detail::element_list<C> out(c);
    for (std::size_t k = 0; k < at[0].size(); ++k) {
      const auto x = c.value(1)[static_cast<std::size_t>(at[1][k])];
      const auto y = c.value(2)[static_cast<std::size_t>(at[2][k])];
      const auto condition = c.value(0)[static_cast<std::size_t>(at[0][k])];
      const tri t = detail::truth(c.domain(), condition);
      if (t != tri::unknown)
        out.push(t == tri::yes ? x : y);
      else if (is_known(x) && is_known(y) && c.domain().decide_eq(x, y) == tri::yes)
        out.push(x);
      else
        out.push(detail::select(c.domain(), condition, x, y));
    }
    out.commit(0);
    return {};
  }
};

using elementwise_ops =
    op_set<abs, acos, acosh, asin, asinh, atan, atanh, bitwise_not, ceil, celu, cos, cosh, elu, erf,
           exp, floor, gelu, hard_sigmoid, hard_swish, leaky_relu, log, mish, neg, reciprocal, relu,
           round, selu, shrink, sigmoid, sign, sin, sinh, softplus, softsign, sqrt, swish, tan,
           tanh, thresholded_relu, not_, is_inf, is_nan, clip, add, sub, mul, and_, or_, xor_,
           equal, greater, greater_or_equal, less, less_or_equal, div, mod, pow, prelu, bit_shift,
           bitwise_and, bitwise_or, bitwise_xor, swiglu, max, min, sum, mean, where>;

}  // namespace sod2::ops
