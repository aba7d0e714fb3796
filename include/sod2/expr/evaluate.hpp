// Flat programs that evaluate many sizes at once: a loop over an array, no allocation, no context.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include <sod2/core/status.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/expr/context.hpp>

namespace sod2 {

/// Evaluates a list of expressions from symbol values. Build once (`size_program_builder`), run at
/// every bind; results are exact or `overflow` is reported.
class size_program {
 public:
  enum class op : std::uint8_t {
    constant,
    symbol,
    add,
    mul,
    mul_add,
    floordiv,
    min,
    max,
    broadcast,
    real
  };
  struct instruction {
    op code = op::constant;
    std::uint8_t real = 0;  // real_op
    bool wide = false;
    bool real_args = false;      // the operands hold bits of doubles
    std::uint32_t a = 0, b = 0;  // registers, or the symbol's index
    std::int64_t k = 0;          // constant, coefficient or divisor
  };

  /// Number of int64 scratch registers that `evaluate` needs.
  constexpr std::size_t register_count() const { return code_.size(); }
  constexpr std::size_t output_count() const { return outputs_.size(); }
  constexpr std::size_t instruction_count() const { return code_.size(); }

  /// symbols: value per symbol index of the context (strided symbols are derived from their base);
  /// scratch: register_count() values; out: output_count() values, in the order of `add_output`.
  /// Errors: overflow, or broadcast when two dims do not broadcast. Allocates nothing.
  constexpr errc evaluate(std::span<const std::int64_t> symbols, std::span<std::int64_t> scratch,
                          std::span<std::int64_t> out) const {
    errc state = errc::ok;
    std::int64_t* r = scratch.data();
    const std::size_t n = code_.size();
    for (std::size_t i = 0; i < n; ++i) {
      const instruction& in = code_[i];
      std::int64_t v = 0;
      bool fits = true;
      switch (in.code) {
        case op::constant: v = in.k; break;
        case op::symbol: v = symbols[in.a]; break;
        case op::add: fits = checked_add(r[in.a], r[in.b], v); break;
        case op::mul: fits = checked_mul(r[in.a], r[in.b], v); break;
        case op::mul_add: {  // a + k*b
          std::int64_t product = 0;
          fits = checked_mul(r[in.b], in.k, product) && checked_add(r[in.a], product, v);
          break;
        }
        case op::floordiv: v = floor_div(r[in.a], in.k); break;
        case op::min: v = r[in.a] < r[in.b] ? r[in.a] : r[in.b]; break;
        case op::max: v = r[in.a] < r[in.b] ? r[in.b] : r[in.a]; break;
        case op::broadcast: {
          const std::int64_t a = r[in.a], b = r[in.b];
          v = a == 1 ? b : a;
          if (a != b && a != 1 && b != 1 && state == errc::ok) state = errc::broadcast;
          break;
        }
        case op::real: {
          const double x =
              in.real_args ? std::bit_cast<double>(r[in.a]) : static_cast<double>(r[in.a]);
          const double y = in.real_args ? std::bit_cast<double>(r[in.b]) : 0.0;
          const real_op f = static_cast<real_op>(in.real);
          double z = 0.0;
          if (f == real_op::from_int)
            z = in.wide ? static_cast<double>(r[in.a])
                        : static_cast<double>(static_cast<float>(r[in.a]));
          else if (f == real_op::sqrt)
            z = in.wide ? __builtin_sqrt(x)
                        : static_cast<double>(__builtin_sqrtf(static_cast<float>(x)));
          else
            z = dim_context::apply_real(f, in.wide, x, y);
          if (dim_context::is_integer_valued(f)) {
            fits = z >= -9.2e18 && z <= 9.2e18;
            v = fits ? static_cast<std::int64_t>(z) : 0;
          } else {
            v = std::bit_cast<std::int64_t>(z);
          }
          break;
        }
      }
      if (!fits) {
        state = errc::overflow;
        v = INT64_MIN;  // no size is: shows callers which ones failed
      }
      r[i] = v;
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) out[i] = r[outputs_[i]];
    return state;
  }

 private:
  friend class size_program_builder;
  vector<instruction> code_;
  vector<std::uint32_t> outputs_;
};

/// Compiles expressions of one context; common sub-expressions are computed once.
class size_program_builder {
 public:
  constexpr explicit size_program_builder(dim_context& context) : context_(context) {}

  /// Adds an output and gives its position. Requires a known expression.
  constexpr std::uint32_t add_output(dim d) { return add_output_as_is(context_.resolve(d)); }
  /// Without applying facts: an assertion `a == b` must see both sides, although the context has
  /// long replaced one by the other.
  constexpr std::uint32_t add_output_as_is(dim d) {
    SOD2_ASSERT(d.is_known());
    const std::uint32_t reg = emit(d);
    program_.outputs_.push_back(reg);
    return static_cast<std::uint32_t>(program_.outputs_.size() - 1);
  }
  constexpr size_program finish() && { return std::move(program_); }

 private:
  using op = size_program::op;
  constexpr std::uint32_t push(size_program::instruction in) {
    program_.code_.push_back(in);
    return static_cast<std::uint32_t>(program_.code_.size() - 1);
  }
  constexpr std::uint32_t emit(dim d) {
    if (memo_.size() <= d.id)
      memo_.resize(context_.node_count() > d.id ? context_.node_count() : d.id + 1, 0);
    if (memo_[d.id] != 0) return memo_[d.id] - 1;
    std::uint32_t reg = 0;
    switch (context_.kind(d)) {
      case dim_kind::constant:
        reg = push({op::constant, 0, false, false, 0, 0, context_.value(d)});
        break;
      case dim_kind::symbol: {
        const std::uint32_t s = context_.symbol_index(d);
        if (context_.origin_of_symbol(s) == symbol_origin::strided) {
          reg = push({op::symbol, 0, false, false, context_.base_of_symbol(s), 0, 0});
          if (const std::int64_t shift = context_.offset_of_symbol(s); shift != 0) {
            const std::uint32_t c = push({op::constant, 0, false, false, 0, 0, -shift});
            reg = push({op::add, 0, false, false, reg, c, 0});
          }
          reg = push({op::floordiv, 0, false, false, reg, 0, context_.step_of_symbol(s)});
        } else {
          reg = push({op::symbol, 0, false, false, s, 0, 0});
        }
        break;
      }
      case dim_kind::sum: {
        // The constant, if any, is last and starts the accumulation.
        const std::size_t n = context_.operand_count(d);
        std::size_t terms = n;
        std::int64_t start = 0;
        if (context_.operand(d, n - 1).d == context_.one()) {
          start = context_.operand(d, n - 1).a;
          --terms;
        }
        reg = push({op::constant, 0, false, false, 0, 0, start});
        for (std::size_t i = 0; i < terms; ++i) {
          const dim_operand o = context_.operand(d, i);
          const std::uint32_t term = emit(o.d);
          reg = push({op::mul_add, 0, false, false, reg, term, o.a});
        }
        break;
      }
      case dim_kind::product: {
        const std::size_t n = context_.operand_count(d);
        bool first = true;
        for (std::size_t i = 0; i < n; ++i) {
          const dim_operand o = context_.operand(d, i);
          const std::uint32_t factor = emit(o.d);
          for (std::int64_t p = 0; p < o.a; ++p) {
            reg = first ? factor : push({op::mul, 0, false, false, reg, factor, 0});
            first = false;
          }
        }
        break;
      }
      case dim_kind::floordiv: {
        const std::uint32_t a = emit(context_.operand(d, 0).d);
        reg = push({op::floordiv, 0, false, false, a, 0, context_.value(d)});
        break;
      }
      case dim_kind::min:
      case dim_kind::max:
      case dim_kind::broadcast: {
        const op code = context_.kind(d) == dim_kind::min   ? op::min
                        : context_.kind(d) == dim_kind::max ? op::max
                                                            : op::broadcast;
        reg = emit(context_.operand(d, 0).d);
        for (std::size_t i = 1; i < context_.operand_count(d); ++i) {
          const std::uint32_t next = emit(context_.operand(d, i).d);
          reg = push({code, 0, false, false, reg, next, 0});
        }
        break;
      }
      case dim_kind::real: {
        const real_op f = context_.real_operation(d);
        if (f == real_op::literal) {
          reg = push({op::constant, 0, false, false, 0, 0,
                      std::bit_cast<std::int64_t>(context_.literal_value(d))});
        } else {
          const std::uint32_t a = emit(context_.operand(d, 0).d);
          const std::uint32_t b =
              context_.operand_count(d) > 1 ? emit(context_.operand(d, 1).d) : a;
          reg = push({op::real, static_cast<std::uint8_t>(f), context_.is_wide(d),
                      f != real_op::from_int, a, b, 0});
        }
        break;
      }
      default: SOD2_ASSERT(false);
    }
    memo_[d.id] = reg + 1;
    return reg;
  }

  dim_context& context_;
  size_program program_;
  vector<std::uint32_t> memo_;  // register + 1 of an expression already emitted
};

/// Evaluates one expression; for tests and tools, not for runs. `symbols` as in size_program.
inline result<std::int64_t> evaluate(dim_context& context, dim d,
                                     std::span<const std::int64_t> symbols) {
  size_program_builder builder(context);
  builder.add_output(d);
  const size_program program = std::move(builder).finish();
  vector<std::int64_t> scratch(program.register_count(), 0);
  std::int64_t out = 0;
  if (const errc e = program.evaluate(symbols, scratch, {&out, 1}); e != errc::ok) return error(e);
  return out;
}

}  // namespace sod2
