#include "support.hpp"

#include <limits>

using namespace kernel_test;
using sod2::tile_op;

namespace {

/// Runs one pointwise operator as a program of its own.
sod2::errc run_pointwise(const sod2::kernel_table& table, const std::string& name, int version,
                         const attributes& attrs, const std::vector<tensor>& inputs,
                         const std::vector<tensor>& outputs, int threads = 1,
                         const std::vector<bool>& constant = {}, const std::string& domain = "") {
  const sod2::pointwise_row* row = table.find_pointwise(domain, name, version);
  REQUIRE_MESSAGE(row != nullptr, name);
  std::vector<sod2::operand_info> in, out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    sod2::operand_info o;
    o.type = inputs[i].type();
    if (i < constant.size() && constant[i]) o.constant = inputs[i].constant();
    in.push_back(o);
  }
  for (const tensor& t : outputs) {
    sod2::operand_info o;
    o.type = t.type();
    out.push_back(o);
  }
  sod2::prepare_args args;
  args.attributes = attrs.source();
  args.since_version = version;
  args.inputs = in;
  args.outputs = out;
  sod2::tile_builder b;
  std::vector<std::uint16_t> registers(inputs.size(), 0), results(outputs.size(), 0);
  std::vector<sod2::tensor_view> iv, ov;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].present() && (row->unread_inputs >> i & 1U) == 0) {
      registers[i] = b.input(inputs[i].type(), row->first_axis(args, i));
      iv.push_back(inputs[i].view());
    }
  sod2::status lowered = row->lower(b, args, registers, results);
  if (!lowered) return lowered.error().code();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    b.output(results[k]);
    ov.push_back(outputs[k].view());
  }
  auto program = b.finish();
  if (!program) return program.error().code();
  sod2::tile_call call;
  call.program = &*program;
  call.inputs = iv;
  call.outputs = ov;
  call.pool = fake_pool(threads);
  return table.run_tile(call);
}

shape broadcast_of(const shape& a, const shape& b) {
  shape out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < a.size(); ++i) out[out.size() - a.size() + i] = a[i];
  for (std::size_t i = 0; i < b.size(); ++i)
    if (b[i] != 1) out[out.size() - b.size() + i] = b[i];
  return out;
}

using scalar_unary = double (*)(double);

void check_unary(const std::string& name, int version, const attributes& attrs, double lo,
                 double hi, const std::function<double(double)>& f, double rtol = 3e-6,
                 double atol = 1e-6) {
  random_source rng;
  for (dtype type : {dtype::f32, dtype::f64})
    for (const auto* table : targets())
      for (i64 n : {0, 1, 3, 17, 1000, 5001}) {
        const tensor x = rng.fill(type, {n}, lo, hi);
        const tensor y(type, {n});
        tensor expected(type, {n});
        for (i64 i = 0; i < n; ++i) expected.set(i, f(x.value(i)));
        REQUIRE(run_pointwise(*table, name, version, attrs, {x}, {y}, n > 4000 ? 3 : 1) ==
                sod2::errc::ok);
        INFO(name);
        check_close(y, expected, rtol, atol);
      }
}

void check_binary(const std::string& name, int version, const attributes& attrs,
                  const std::vector<dtype>& types, double lo, double hi, bool boolean_result,
                  const std::function<double(double, double)>& f) {
  random_source rng;
  const std::pair<shape, shape> forms[] = {
      {{}, {}},
      {{5}, {}},
      {{}, {5}},
      {{5}, {1}},
      {{2, 3, 4}, {2, 3, 4}},
      {{2, 3, 4}, {4}},
      {{2, 3, 4}, {3, 1}},
      {{2, 1, 4}, {3, 1}},
      {{3, 300}, {3, 1}},
      {{3, 300}, {300}},
      {{300, 3}, {3}},
      {{7, 1100}, {7, 1}},
      {{2, 5, 130}, {5, 1}},
      {{2, 3, 2, 3, 2}, {3, 1, 3, 1}},
      {{0, 4}, {4}},
      {{3000}, {3000}},
  };
  for (dtype type : types)
    for (const auto& [a, b] : forms) {
      const shape out = broadcast_of(a, b);
      const tensor x = rng.fill(type, a, lo, hi), y = rng.fill(type, b, lo, hi);
      const dtype result = boolean_result ? dtype::boolean : type;
      tensor expected(result, out);
      for_each_index(out, [&](const shape& at, i64 i) {
        expected.set(i, f(x.value(broadcast_offset(a, at)), y.value(broadcast_offset(b, at))));
      });
      for (const auto* table : targets()) {
        const tensor z(result, out);
        INFO(name, " type ", static_cast<int>(type));
        REQUIRE(run_pointwise(*table, name, version, attrs, {x, y}, {z}, 2) == sod2::errc::ok);
        check_close(z, expected, 1e-5, 1e-6);
      }
    }
}

const std::vector<dtype> reals{dtype::f32, dtype::f64};
const std::vector<dtype> numbers{dtype::f32, dtype::f64, dtype::i32, dtype::i64, dtype::u8,
                                 dtype::i8,  dtype::i16, dtype::u16, dtype::u32, dtype::u64};
const std::vector<dtype> integers{dtype::i32, dtype::i64, dtype::i8, dtype::i16};
const std::vector<dtype> naturals{dtype::u8, dtype::u16, dtype::u32, dtype::u64};

}  // namespace

TEST_CASE("unary operators agree with the standard library") {
  const attributes none;
  check_unary("Neg", 13, none, -5, 5, [](double x) { return -x; });
  check_unary("Abs", 13, none, -5, 5, [](double x) { return std::fabs(x); });
  check_unary("Sqrt", 13, none, 0, 50, [](double x) { return std::sqrt(x); });
  check_unary("Exp", 13, none, -90, 80, [](double x) { return std::exp(x); });
  check_unary("Log", 13, none, 1e-8, 100, [](double x) { return std::log(x); });
  check_unary(
      "Log", 13, none, 0.9, 1.1, [](double x) { return std::log(x); }, 3e-6, 1e-9);
  check_unary("Erf", 13, none, -5, 5, [](double x) { return std::erf(x); });
  check_unary(
      "Erf", 13, none, -1e-3, 1e-3, [](double x) { return std::erf(x); }, 1e-6, 0);
  check_unary("Reciprocal", 13, none, 1, 9, [](double x) { return 1 / x; });
  check_unary("Ceil", 13, none, -5, 5, [](double x) { return std::ceil(x); });
  check_unary("Floor", 13, none, -5, 5, [](double x) { return std::floor(x); });
  check_unary("Round", 11, none, -5, 5, [](double x) { return std::nearbyint(x); });
  check_unary("Sign", 13, none, -5, 5, [](double x) { return double((x > 0) - (x < 0)); });
  check_unary("Sin", 7, none, -50, 50, [](double x) { return std::sin(x); });
  check_unary("Cos", 7, none, -50, 50, [](double x) { return std::cos(x); });
  check_unary("Tan", 7, none, -1, 1, [](double x) { return std::tan(x); });
  check_unary("Asin", 7, none, -1, 1, [](double x) { return std::asin(x); });
  check_unary("Acos", 7, none, -1, 1, [](double x) { return std::acos(x); });
  check_unary("Atan", 7, none, -9, 9, [](double x) { return std::atan(x); });
  check_unary("Sinh", 9, none, -3, 3, [](double x) { return std::sinh(x); });
  check_unary("Cosh", 9, none, -3, 3, [](double x) { return std::cosh(x); });
  check_unary("Tanh", 13, none, -10, 10, [](double x) { return std::tanh(x); });
  check_unary(
      "Tanh", 13, none, -1e-3, 1e-3, [](double x) { return std::tanh(x); }, 1e-6, 0);
  check_unary("Asinh", 9, none, -3, 3, [](double x) { return std::asinh(x); });
  check_unary(
      "Acosh", 9, none, 1, 3, [](double x) { return std::acosh(x); }, 3e-5, 1e-5);
  check_unary("Atanh", 9, none, -0.9, 0.9, [](double x) { return std::atanh(x); });
  check_unary("Relu", 14, none, -5, 5, [](double x) { return x > 0 ? x : 0; });
  check_unary("Sigmoid", 13, none, -20, 20, [](double x) { return 1 / (1 + std::exp(-x)); });
  check_unary("Swish", 24, none, -8, 8, [](double x) { return x / (1 + std::exp(-x)); });
  check_unary("Swish", 24, attributes().set("alpha", 1.5), -8, 8,
              [](double x) { return x / (1 + std::exp(-1.5 * x)); });
  check_unary("HardSwish", 14, none, -5, 5,
              [](double x) { return x * std::max(0.0, std::min(1.0, x / 6 + 0.5)); });
  check_unary(
      "Softplus", 1, none, -20, 20, [](double x) { return std::log1p(std::exp(x)); }, 1e-5, 1e-9);
  check_unary("Softsign", 1, none, -5, 5, [](double x) { return x / (1 + std::fabs(x)); });
  check_unary(
      "Mish", 18, none, -20, 30, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); },
      1e-5, 1e-6);
  check_unary(
      "Gelu", 20, none, -6, 6,
      [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, 1e-5, 2e-6);
  check_unary(
      "Gelu", 20, attributes().set("approximate", "tanh"), -6, 6,
      [](double x) {
        return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
      },
      1e-5, 2e-6);
}

TEST_CASE("unary operators with attributes, defaults and given") {
  const attributes none;
  check_unary("LeakyRelu", 16, none, -5, 5, [](double x) { return x < 0 ? 0.01 * x : x; });
  check_unary("LeakyRelu", 16, attributes().set("alpha", 0.3), -5, 5,
              [](double x) { return x < 0 ? 0.3 * x : x; });
  check_unary("Elu", 6, none, -5, 5, [](double x) { return x < 0 ? std::expm1(x) : x; });
  check_unary(
      "Elu", 6, attributes().set("alpha", 2.0), -0.2, 0.2,
      [](double x) { return x < 0 ? 2 * std::expm1(x) : x; }, 1e-6, 0);
  check_unary("Celu", 12, attributes().set("alpha", 0.5), -3, 3,
              [](double x) { return x < 0 ? 0.5 * std::expm1(x / 0.5) : x; });
  check_unary("Selu", 6, none, -5, 5, [](double x) {
    return 1.05070102214813232421875 * (x > 0 ? x : 1.67326319217681884765625 * std::expm1(x));
  });
  check_unary("HardSigmoid", 6, none, -5, 5,
              [](double x) { return std::max(0.0, std::min(1.0, 0.2 * x + 0.5)); });
  check_unary("HardSigmoid", 6, attributes().set("alpha", 0.1666).set("beta", 0.4), -5, 5,
              [](double x) { return std::max(0.0, std::min(1.0, 0.1666 * x + 0.4)); });
  check_unary("ThresholdedRelu", 10, none, -5, 5, [](double x) { return x > 1 ? x : 0; });
  check_unary("Shrink", 9, attributes().set("bias", 0.25).set("lambd", 1.5), -5, 5, [](double x) {
    return x < -1.5 ? x + 0.25 : x > 1.5 ? x - 0.25 : 0;
  });
  check_unary("Clip", 6, attributes().set("min", -1.0).set("max", 2.0), -5, 5,
              [](double x) { return std::min(std::max(x, -1.0), 2.0); });
  check_unary("Clip", 6, none, -5, 5, [](double x) { return x; });
}

TEST_CASE("float32 math at the ends of the range, on every target") {
  const float big = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values{0.0f,    -0.0f,  1e-42f,  -1e-42f, 1e-38f,  88.0f,    89.5f,
                                  1000.0f, -87.0f, -100.0f, -103.9f, -150.0f, -1000.0f, big,
                                  -big,    nan,    1.0f,    -1.0f,   3e38f};
  const tensor x = tensor::of<float>({static_cast<i64>(values.size())}, values);
  struct item {
    const char* name;
    int version;
    scalar_unary f;
  };
  for (const item& t :
       {item{"Exp", 13, [](double v) { return std::exp(v); }},
        item{"Log", 13, [](double v) { return std::log(v); }},
        item{"Tanh", 13, [](double v) { return std::tanh(v); }},
        item{"Erf", 13, [](double v) { return std::erf(v); }},
        item{"Sigmoid", 13, [](double v) { return 1 / (1 + std::exp(-v)); }},
        item{"Relu", 14, [](double v) { return v < 0 ? 0 : v; }},
        item{"Sqrt", 13, [](double v) { return std::sqrt(v); }},
        item{"Sign", 13, [](double v) { return v != v ? v : double((v > 0) - (v < 0)); }}})
    for (const auto* table : targets()) {
      tensor y(dtype::f32, x.dims());
      tensor expected(dtype::f32, x.dims());
      for (i64 i = 0; i < x.count(); ++i) expected.set(i, t.f(x.value(i)));
      REQUIRE(run_pointwise(*table, t.name, t.version, {}, {x}, {y}) == sod2::errc::ok);
      INFO(t.name, " on ", table->target);
      check_close(y, expected, 1e-5, std::string(t.name) == "Sigmoid" ? 1e-38 : 1e-40);
    }
}

TEST_CASE("binary operators over every way of broadcasting") {
  const attributes none;
  check_binary("Add", 14, none, numbers, 0, 9, false, [](double a, double b) { return a + b; });
  check_binary("Sub", 14, none, reals, -9, 9, false, [](double a, double b) { return a - b; });
  check_binary("Sub", 14, none, integers, -9, 9, false, [](double a, double b) { return a - b; });
  check_binary("Mul", 14, none, numbers, 0, 9, false, [](double a, double b) { return a * b; });
  check_binary("Div", 14, none, reals, 1, 9, false, [](double a, double b) { return a / b; });
  check_binary("Div", 14, none, integers, -9, 9, false,
               [](double a, double b) { return b == 0 ? 0 : std::trunc(a / b); });
  check_binary("Mod", 13, none, integers, -9, 9, false,
               [](double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); });
  check_binary("Mod", 13, attributes().set("fmod", 1), integers, -9, 9, false,
               [](double a, double b) { return b == 0 ? 0 : std::fmod(a, b); });
  check_binary("Mod", 13, attributes().set("fmod", 1), reals, 1, 9, false,
               [](double a, double b) { return std::fmod(a, b); });
  check_binary("Pow", 15, none, reals, 0.1, 3, false,
               [](double a, double b) { return std::pow(a, b); });
  check_binary("Pow", 15, none, naturals, 0, 3, false,
               [](double a, double b) { return std::pow(a, b); });
  check_binary("Max", 13, none, numbers, 0, 9, false,
               [](double a, double b) { return std::max(a, b); });
  check_binary("Min", 13, none, numbers, 0, 9, false,
               [](double a, double b) { return std::min(a, b); });
  check_binary("Sum", 13, none, reals, 0, 9, false, [](double a, double b) { return a + b; });
  check_binary("Mean", 13, none, reals, 0, 9, false,
               [](double a, double b) { return (a + b) / 2; });
  check_binary("PRelu", 16, none, reals, -9, 9, false,
               [](double a, double b) { return a < 0 ? a * b : a; });
  check_binary("Equal", 13, none, numbers, 0, 3, true,
               [](double a, double b) { return double(a == b); });
  check_binary("Less", 13, none, numbers, 0, 3, true,
               [](double a, double b) { return double(a < b); });
  check_binary("Greater", 13, none, numbers, 0, 3, true,
               [](double a, double b) { return double(a > b); });
  check_binary("LessOrEqual", 16, none, numbers, 0, 3, true,
               [](double a, double b) { return double(a <= b); });
  check_binary("GreaterOrEqual", 16, none, numbers, 0, 3, true,
               [](double a, double b) { return double(a >= b); });
  const std::vector<dtype> boolean{dtype::boolean};
  check_binary("And", 7, none, boolean, 0, 1, true,
               [](double a, double b) { return double(a != 0 && b != 0); });
  check_binary("Or", 7, none, boolean, 0, 1, true,
               [](double a, double b) { return double(a != 0 || b != 0); });
  check_binary("Xor", 7, none, boolean, 0, 1, true,
               [](double a, double b) { return double((a != 0) != (b != 0)); });
  check_binary("Equal", 13, none, boolean, 0, 1, true,
               [](double a, double b) { return double(a == b); });
  check_binary("BitwiseAnd", 18, none, naturals, 0, 100, false,
               [](double a, double b) { return double(i64(a) & i64(b)); });
  check_binary("BitwiseOr", 18, none, integers, 0, 100, false,
               [](double a, double b) { return double(i64(a) | i64(b)); });
  check_binary("BitwiseXor", 18, none, integers, 0, 100, false,
               [](double a, double b) { return double(i64(a) ^ i64(b)); });
  check_binary("BitShift", 11, attributes().set("direction", "LEFT"), {dtype::u32, dtype::u64}, 0,
               5, false, [](double a, double b) { return double(i64(a) << i64(b)); });
  check_binary("BitShift", 11, attributes().set("direction", "RIGHT"), naturals, 0, 9, false,
               [](double a, double b) { return double(i64(a) >> i64(b)); });
}

TEST_CASE("BitShift of signed integers copies the sign, also from outside of the type") {
  const tensor x = tensor::of<std::int8_t>({6}, {-128, -7, 5, -1, 5, 64});
  const tensor n = tensor::of<std::int8_t>({6}, {3, 1, 1, 8, 9, -1});
  for (const bool left : {false, true}) {
    tensor y(dtype::i8, {6});
    const auto direction = attributes().set("direction", left ? "LEFT" : "RIGHT");
    REQUIRE(run_pointwise(sod2::standard_kernels(), "BitShift", 28, direction, {x, n}, {y}) ==
            sod2::errc::ok);
    check_equal(y, left ? tensor::of<std::int8_t>({6}, {0, -14, 10, 0, 0, 0})
                        : tensor::of<std::int8_t>({6}, {-16, -4, 2, -1, 0, 0}));
  }
}

TEST_CASE("Mod of floats takes the sign of the divisor, zeros and infinities too") {
  const float inf = std::numeric_limits<float>::infinity();
  const tensor a = tensor::of<float>({7}, {-7, 7, -0.0F, 6, 3, 3, -3});
  const tensor b = tensor::of<float>({7}, {3, -3, 3, -3, inf, -inf, inf});
  const std::vector<float> expected{2, -2, 0.0F, -0.0F, 3, -inf, inf};
  tensor y(dtype::f32, {7});
  REQUIRE(run_pointwise(sod2::standard_kernels(), "Mod", 28, attributes(), {a, b}, {y}) ==
          sod2::errc::ok);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(y.data<float>()[i] == expected[i]);
    CHECK(std::signbit(y.data<float>()[i]) == std::signbit(expected[i]));
  }
}

TEST_CASE("legacy broadcasting with an axis") {
  random_source rng;
  const tensor x = rng.fill(dtype::f32, {2, 3, 4, 5}), b = rng.fill(dtype::f32, {3, 4});
  tensor y(dtype::f32, x.dims()), expected(dtype::f32, x.dims());
  for_each_index(x.dims(), [&](const shape& at, i64 i) {
    expected.set(i, x.value(i) + b.value(at[1] * 4 + at[2]));
  });
  REQUIRE(run_pointwise(sod2::standard_kernels(), "Add", 6,
                        attributes().set("broadcast", 1).set("axis", 1), {x, b},
                        {y}) == sod2::errc::ok);
  check_close(y, expected);
}

TEST_CASE("Clip 11 and later, Where, IsInf, IsNaN, Not, BitwiseNot") {
  random_source rng;
  const auto& k = sod2::standard_kernels();
  for (dtype type : {dtype::f32, dtype::f64, dtype::i32, dtype::i64, dtype::i8})
    for (bool constant : {false, true})
      for (int form = 0; form < 4; ++form) {
        const tensor x = rng.fill(type, {3, 50}, -9, 9);
        tensor low(type, {}), high(type, {});
        low.set(0, -3);
        high.set(0, 4);
        tensor y(type, x.dims()), expected(type, x.dims());
        for (i64 i = 0; i < x.count(); ++i) {
          double v = x.value(i);
          if ((form & 1) != 0) v = std::max(v, -3.0);
          if ((form & 2) != 0) v = std::min(v, 4.0);
          expected.set(i, v);
        }
        REQUIRE(
            run_pointwise(k, "Clip", 13, {},
                          {x, (form & 1) != 0 ? low : tensor(), (form & 2) != 0 ? high : tensor()},
                          {y}, 1, {false, constant, constant}) == sod2::errc::ok);
        check_close(y, expected);
      }
  for (dtype type : {dtype::f32, dtype::i64, dtype::u8, dtype::boolean}) {
    const tensor c = rng.fill(dtype::boolean, {4, 1, 30}, 0, 1), a = rng.fill(type, {5, 1}, 0, 1),
                 b = rng.fill(type, {}, 0, 1);
    tensor y(type, {4, 5, 30}), expected(type, {4, 5, 30});
    for_each_index(y.dims(), [&](const shape& at, i64 i) {
      expected.set(i, c.value(broadcast_offset(c.dims(), at)) != 0
                          ? a.value(broadcast_offset(a.dims(), at))
                          : b.value(0));
    });
    REQUIRE(run_pointwise(k, "Where", 16, {}, {c, a, b}, {y}) == sod2::errc::ok);
    check_equal(y, expected);
  }
  const float big = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  const tensor x = tensor::of<float>({4}, {big, -big, nan, 1});
  tensor y(dtype::boolean, {4});
  REQUIRE(run_pointwise(k, "IsInf", 10, {}, {x}, {y}) == sod2::errc::ok);
  CHECK((y.value(0) == 1 && y.value(1) == 1 && y.value(2) == 0 && y.value(3) == 0));
  REQUIRE(run_pointwise(k, "IsInf", 10, attributes().set("detect_positive", 0), {x}, {y}) ==
          sod2::errc::ok);
  CHECK((y.value(0) == 0 && y.value(1) == 1));
  REQUIRE(run_pointwise(k, "IsNaN", 13, {}, {x}, {y}) == sod2::errc::ok);
  CHECK((y.value(0) == 0 && y.value(2) == 1));
  REQUIRE(run_pointwise(k, "Not", 1, {}, {y}, {y}) == sod2::errc::ok);
  CHECK((y.value(0) == 1 && y.value(2) == 0));
  const tensor bits = tensor::of<std::uint8_t>({2}, {0, 0x0f});
  REQUIRE(run_pointwise(k, "BitwiseNot", 18, {}, {bits}, {bits}) == sod2::errc::ok);
  CHECK((bits.value(0) == 255 && bits.value(1) == 0xf0));
}

TEST_CASE("Cast between every pair of numeric types") {
  random_source rng;
  const dtype all[] = {dtype::f32, dtype::f64, dtype::i8,  dtype::u8,  dtype::i16,    dtype::u16,
                       dtype::i32, dtype::u32, dtype::i64, dtype::u64, dtype::boolean};
  for (dtype from : all)
    for (dtype to : all) {
      const tensor x = rng.fill(from, {77}, 0, from == dtype::boolean ? 1 : 100);
      tensor y(to, {77}), expected(to, {77});
      for (i64 i = 0; i < 77; ++i) expected.set(i, x.value(i));
      REQUIRE(run_pointwise(sod2::standard_kernels(), "Cast", 13,
                            attributes().set("to", static_cast<int>(to)), {x},
                            {y}) == sod2::errc::ok);
      check_equal(y, expected);
    }
  // Truncation, and 16-bit floats there and back.
  const tensor x = tensor::of<float>({6}, {1.9f, -1.9f, 0.1f, 65504.0f, 1e-7f, -0.0f});
  tensor i(dtype::i32, {6}), h(dtype::f16, {6}), f(dtype::f32, {6});
  const auto& k = sod2::standard_kernels();
  REQUIRE(run_pointwise(k, "Cast", 13, attributes().set("to", 6), {x}, {i}) == sod2::errc::ok);
  CHECK((i.value(0) == 1 && i.value(1) == -1 && i.value(2) == 0 && i.value(3) == 65504));
  REQUIRE(run_pointwise(k, "Cast", 13, attributes().set("to", 10), {x}, {h}) == sod2::errc::ok);
  REQUIRE(run_pointwise(k, "CastLike", 15, {}, {h, x}, {f}) == sod2::errc::ok);
  check_close(f, x, 1e-3, 6e-8);
  // Every half converts exactly both ways.
  tensor halves(dtype::f16, {65536}), floats(dtype::f32, {65536}), back(dtype::f16, {65536});
  for (i64 b = 0; b < 65536; ++b) halves.at<std::uint16_t>(b) = static_cast<std::uint16_t>(b);
  REQUIRE(run_pointwise(k, "Cast", 13, attributes().set("to", 1), {halves}, {floats}) ==
          sod2::errc::ok);
  REQUIRE(run_pointwise(k, "Cast", 13, attributes().set("to", 10), {floats}, {back}) ==
          sod2::errc::ok);
  i64 wrong = 0;
  for (i64 b = 0; b < 65536; ++b)
    wrong += !std::isnan(floats.at<float>(b)) && back.at<std::uint16_t>(b) != b ? 1 : 0;
  CHECK(wrong == 0);
}

TEST_CASE("pointwise arithmetic on float16 goes through float32") {
  tensor a(dtype::f16, {3}), b(dtype::f16, {}), y(dtype::f16, {3});
  a.at<std::uint16_t>(0) = 0x3c00;  // 1
  a.at<std::uint16_t>(1) = 0x4000;  // 2
  a.at<std::uint16_t>(2) = 0xc200;  // -3
  b.at<std::uint16_t>(0) = 0x3800;  // 0.5
  REQUIRE(run_pointwise(sod2::standard_kernels(), "Mul", 13, {}, {a, b}, {y}) == sod2::errc::ok);
  CHECK((y.at<std::uint16_t>(0) == 0x3800 && y.at<std::uint16_t>(1) == 0x3c00 &&
         y.at<std::uint16_t>(2) == 0xbe00));
}

TEST_CASE("BatchNormalization and Dropout at inference") {
  random_source rng;
  for (const shape& dims :
       {shape{2, 3, 4, 5}, shape{1, 7, 40, 41}, shape{6, 5}, shape{2, 3, 1, 1}, shape{0, 3, 2}})
    for (const auto* table : targets()) {
      const i64 c = dims[1];
      const tensor x = rng.fill(dtype::f32, dims), scale = rng.fill(dtype::f32, {c}),
                   bias = rng.fill(dtype::f32, {c}), mean = rng.fill(dtype::f32, {c}),
                   var = rng.fill(dtype::f32, {c}, 0.1, 2);
      tensor y(dtype::f32, dims), expected(dtype::f32, dims);
      for_each_index(dims, [&](const shape& at, i64 i) {
        const i64 k = at[1];
        expected.set(
            i, (x.value(i) - mean.value(k)) / std::sqrt(var.value(k) + 1e-3) * scale.value(k) +
                   bias.value(k));
      });
      REQUIRE(run_pointwise(*table, "BatchNormalization", 15, attributes().set("epsilon", 1e-3),
                            {x, scale, bias, mean, var}, {y}, 2) == sod2::errc::ok);
      check_close(y, expected, 1e-4, 1e-5);
    }
  const tensor x = rng.fill(dtype::f32, {300});
  tensor y(dtype::f32, {300}), mask(dtype::boolean, {300});
  REQUIRE(run_pointwise(sod2::standard_kernels(), "Dropout", 13, {}, {x, tensor::scalar(0.5f)},
                        {y, mask}) == sod2::errc::ok);
  check_equal(y, x);
  CHECK((mask.value(0) == 1 && mask.value(299) == 1));
}

TEST_CASE("programs of several operators agree with scalar evaluation") {
  // Random straight-line float programs over operands of mixed shapes, several outputs.
  random_source rng;
  const tile_op binary[] = {tile_op::add, tile_op::sub, tile_op::mul, tile_op::max, tile_op::min};
  const tile_op unary[] = {tile_op::neg, tile_op::abs, tile_op::relu, tile_op::tanh,
                           tile_op::sigmoid};
  for (int round = 0; round < 60; ++round) {
    const shape dims = round % 3 == 0 ? shape{rng.integer(1, 5), rng.integer(1, 400)}
                       : round % 3 == 1
                           ? shape{rng.integer(1, 9), rng.integer(1, 9), rng.integer(1, 9)}
                           : shape{rng.integer(1, 3000)};
    const std::size_t inputs = idx(rng.integer(1, 6));
    std::vector<tensor> operands;
    sod2::tile_builder b;
    std::vector<std::uint16_t> live;
    for (std::size_t i = 0; i < inputs; ++i) {
      shape own = dims;
      for (i64& d : own)
        if (rng.integer(0, 3) == 0) d = 1;
      if (rng.integer(0, 3) == 0) own.erase(own.begin());
      operands.push_back(rng.fill(dtype::f32, own));
      live.push_back(b.input(dtype::f32));
    }
    struct step {
      tile_op op;
      std::uint16_t dst, x, y;
    };
    std::vector<step> steps;
    for (i64 s = rng.integer(1, 25); s > 0; --s) {
      const std::uint16_t x = live[idx(rng.integer(0, static_cast<i64>(live.size()) - 1))];
      const std::uint16_t y = live[idx(rng.integer(0, static_cast<i64>(live.size()) - 1))];
      const bool two = rng.integer(0, 1) != 0;
      const tile_op op = two ? binary[idx(rng.integer(0, 4))] : unary[idx(rng.integer(0, 4))];
      const std::uint16_t dst = b.emit(op, dtype::f32, x, y);
      steps.push_back({op, dst, x, y});
      live.push_back(dst);
    }
    std::vector<std::uint16_t> results{live.back()};
    if (rng.integer(0, 1) != 0)
      results.push_back(live[idx(rng.integer(0, static_cast<i64>(live.size()) - 1))]);
    for (std::uint16_t r : results) b.output(r);
    auto program = b.finish();
    REQUIRE(program.ok());
    // Scalar evaluation.
    std::vector<tensor> expected(results.size());
    for (tensor& t : expected) t = tensor(dtype::f32, dims);
    for_each_index(dims, [&](const shape& at, i64 i) {
      std::map<std::uint16_t, double> reg;
      for (std::size_t k = 0; k < inputs; ++k)
        reg[static_cast<std::uint16_t>(k)] =
            operands[k].value(broadcast_offset(operands[k].dims(), at));
      for (const step& s : steps) {
        const double x = reg[s.x], y = reg[s.y];
        double v = 0;
        switch (s.op) {
          case tile_op::add: v = x + y; break;
          case tile_op::sub: v = x - y; break;
          case tile_op::mul: v = x * y; break;
          case tile_op::max: v = std::max(x, y); break;
          case tile_op::min: v = std::min(x, y); break;
          case tile_op::neg: v = -x; break;
          case tile_op::abs: v = std::fabs(x); break;
          case tile_op::relu: v = std::max(x, 0.0); break;
          case tile_op::tanh: v = std::tanh(x); break;
          default: v = 1 / (1 + std::exp(-x)); break;
        }
        reg[s.dst] = v;
      }
      for (std::size_t k = 0; k < results.size(); ++k) expected[k].set(i, reg[results[k]]);
    });
    for (const auto* table : targets())
      for (int threads : {1, 3}) {
        std::vector<tensor> outputs;
        std::vector<sod2::tensor_view> iv, ov;
        // In place where operand 0 is whole: output 0 overwrites a copy of it.
        const bool in_place = operands[0].dims() == dims && threads == 1;
        tensor first = operands[0].clone();
        for (std::size_t k = 0; k < inputs; ++k)
          iv.push_back(k == 0 ? first.view() : operands[k].view());
        for (std::size_t k = 0; k < results.size(); ++k) {
          outputs.push_back(k == 0 && in_place ? first : tensor(dtype::f32, dims));
          ov.push_back(outputs.back().view());
        }
        sod2::tile_call call;
        call.program = &*program;
        call.inputs = iv;
        call.outputs = ov;
        call.pool = fake_pool(threads);
        REQUIRE(table->run_tile(call) == sod2::errc::ok);
        for (std::size_t k = 0; k < results.size(); ++k)
          check_close(outputs[k], expected[k], 1e-3, 1e-4);
      }
  }
}

TEST_CASE("an operand that does not broadcast is refused") {
  random_source rng;
  CHECK(run_pointwise(sod2::standard_kernels(), "Add", 13, {},
                      {rng.fill(dtype::f32, {3}), rng.fill(dtype::f32, {4})},
                      {tensor(dtype::f32, {4})}) == sod2::errc::broadcast);
}
