// Expressions as text, in the language that `parse` reads back.
#pragma once

#include <charconv>
#include <string>

#include <sod2/expr/context.hpp>

namespace sod2 {

namespace detail {

class dim_printer {
 public:
  dim_printer(dim_context& context, std::string& out) : context_(context), out_(out) {}

  // precedence: 0 sum, 1 product, 2 atom
  void print(dim d, int precedence = 0) {
    if (!d.is_known()) {
      out_ += d.is_undefined() ? "undef" : d.is_unknown() ? "?" : "overflow";
      return;
    }
    switch (context_.kind(d)) {
      case dim_kind::constant: out_ += std::to_string(context_.value(d)); break;
      case dim_kind::sum: sum(d, precedence); break;
      case dim_kind::product: term(1, d, precedence); break;
      case dim_kind::symbol: term(1, d, precedence); break;
      default: atom(d); break;
    }
  }

 private:
  void sum(dim d, int precedence) {
    const std::size_t n = context_.operand_count(d);
    if (n == 1) return term(context_.operand(d, 0).a, context_.operand(d, 0).d, precedence);
    if (precedence > 0) out_ += '(';
    // A leading minus reads badly: start with the first positive term, if any.
    std::size_t first = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (context_.operand(d, i).a > 0) {
        first = i;
        break;
      }
    single(context_.operand(d, first), true);
    for (std::size_t i = 0; i < n; ++i)
      if (i != first) single(context_.operand(d, i), false);
    if (precedence > 0) out_ += ')';
  }
  void single(dim_operand o, bool leading) {
    const bool negative = o.a < 0;
    if (!leading)
      out_ += negative ? " - " : " + ";
    else if (negative)
      out_ += '-';
    const std::int64_t magnitude = negative ? detail::sat_neg(o.a) : o.a;
    if (o.d == context_.one())
      out_ += std::to_string(magnitude);
    else
      term(magnitude, o.d, 1);
  }
  // coefficient * product. Hidden strided symbols (H = 32*h) show as H or floordiv(H, 32/c).
  void term(std::int64_t c, dim product, int precedence) {
    const bool is_product = context_.kind(product) == dim_kind::product;
    const std::size_t n = is_product ? context_.operand_count(product) : 1;
    // Spend the coefficient on hidden symbols first.
    small_vector<std::int64_t, 8> divisor;
    bool shown = false;
    for (std::size_t i = 0; i < n; ++i) {
      const dim_operand o = is_product ? context_.operand(product, i) : dim_operand{1, product};
      for (std::int64_t p = 0; p < o.a; ++p) {
        std::int64_t left = 1;
        if (const std::int64_t step = plain_step(o.d); step > 1) {
          const std::int64_t g = gcd(c, step);
          left = step / g;
          c /= g;
        }
        divisor.push_back(left);
      }
    }
    std::size_t factors = divisor.size();
    const bool several = c != 1 || factors > 1;
    if (several && precedence > 1) out_ += '(';
    if (c == -1 && factors > 0) {
      out_ += '-';
    } else if (c != 1 || factors == 0) {
      out_ += std::to_string(c);
      shown = true;
    }
    std::size_t at = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const dim_operand o = is_product ? context_.operand(product, i) : dim_operand{1, product};
      for (std::int64_t p = 0; p < o.a; ++p, ++at) {
        if (shown) out_ += '*';
        shown = true;
        if (plain_step(o.d) > 1)
          strided(context_.base_of_symbol(context_.symbol_index(o.d)), divisor[at]);
        else
          atom(o.d);
      }
    }
    if (several && precedence > 1) out_ += ')';
  }
  // Step of a hidden symbol without offset, else 1.
  std::int64_t plain_step(dim d) const {
    if (context_.kind(d) != dim_kind::symbol) return 1;
    const std::uint32_t s = context_.symbol_index(d);
    if (context_.origin_of_symbol(s) != symbol_origin::strided || context_.offset_of_symbol(s) != 0)
      return 1;
    return context_.step_of_symbol(s);
  }
  void strided(std::uint32_t base, std::int64_t divisor) {
    if (divisor == 1) return name(base);
    out_ += "floordiv(";
    name(base);
    out_ += ", " + std::to_string(divisor) + ")";
  }
  void name(std::uint32_t symbol) {
    const std::string_view text = context_.name_of_symbol(symbol);
    bool plain = !text.empty() && !(text[0] >= '0' && text[0] <= '9');
    for (char c : text)
      plain = plain && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '_');
    if (!plain) out_ += '"';
    for (char c : text) {
      if (!plain && (c == '"' || c == '\\')) out_ += '\\';
      out_ += c;
    }
    if (!plain) out_ += '"';
  }
  void list(const char* function, dim d) {
    out_ += function;
    out_ += '(';
    for (std::size_t i = 0; i < context_.operand_count(d); ++i) {
      if (i > 0) out_ += ", ";
      print(context_.operand(d, i).d);
    }
    out_ += ')';
  }
  void atom(dim d) {
    switch (context_.kind(d)) {
      case dim_kind::symbol: {
        const std::uint32_t s = context_.symbol_index(d);
        if (context_.origin_of_symbol(s) != symbol_origin::strided) return name(s);
        out_ += "floordiv(";
        name(context_.base_of_symbol(s));
        if (const std::int64_t shift = context_.offset_of_symbol(s); shift != 0)
          out_ += " - " + std::to_string(shift);
        out_ += ", " + std::to_string(context_.step_of_symbol(s)) + ")";
        return;
      }
      case dim_kind::floordiv: {
        const std::int64_t k = context_.value(d);
        dim e = context_.operand(d, 0).d;
        const std::size_t n = context_.operand_count(e);
        const bool ceil = context_.kind(e) == dim_kind::sum &&
                          context_.operand(e, n - 1).d == context_.one() &&
                          context_.operand(e, n - 1).a == k - 1;
        if (ceil) e = context_.add(e, 1 - k);
        out_ += ceil ? "ceildiv(" : "floordiv(";
        print(e);
        out_ += ", " + std::to_string(k) + ")";
        return;
      }
      case dim_kind::min: return list("min", d);
      case dim_kind::max: return list("max", d);
      case dim_kind::broadcast: return list("broadcast", d);
      case dim_kind::real: return real(d);
      default:
        out_ += '(';
        print(d);
        out_ += ')';
    }
  }
  void real(dim d) {
    const char* width = context_.is_wide(d) ? "f64" : "f32";
    const real_op op = context_.real_operation(d);
    switch (op) {
      case real_op::literal: {
        char text[40];
        const double v = context_.literal_value(d);
        // The shortest text that reads back as the same value of the type.
        const auto end = context_.is_wide(d)
                             ? std::to_chars(text, text + 40, v)
                             : std::to_chars(text, text + 40, static_cast<float>(v));
        std::string shown(text, end.ptr);
        if (shown.find_first_of(".en") == std::string::npos) shown += ".0";
        out_ += shown;
        return;
      }
      case real_op::from_int: return list(width, d);
      case real_op::add: return infix(d, " + ");
      case real_op::sub: return infix(d, " - ");
      case real_op::mul: return infix(d, " * ");
      case real_op::div: return infix(d, " / ");
      case real_op::min: return list("min", d);
      case real_op::max: return list("max", d);
      case real_op::neg: return list("neg", d);
      case real_op::sqrt: return list("sqrt", d);
      case real_op::floor: return list("float_floor", d);
      case real_op::floor_int: return list("floor", d);
      case real_op::ceil: return list("float_ceil", d);
      case real_op::ceil_int: return list("ceil", d);
      case real_op::round: return list("float_round", d);
      case real_op::round_int: return list("round", d);
      case real_op::trunc_int: return list("trunc", d);
    }
  }
  void infix(dim d, const char* op) {
    real_operand(context_.operand(d, 0).d);
    out_ += op;
    real_operand(context_.operand(d, 1).d);
  }
  void real_operand(dim d) {
    const bool group = context_.kind(d) == dim_kind::real &&
                       context_.real_operation(d) >= real_op::add &&
                       context_.real_operation(d) <= real_op::div;
    if (group) out_ += '(';
    print(d);
    if (group) out_ += ')';
  }

  dim_context& context_;
  std::string& out_;
};

}  // namespace detail

/// Appends the text of d: `ceildiv(H, 2)`, `2*L + 1`, `min(S, 512)`, `floor(f32(H) * 0.7)`.
inline void print_to(std::string& out, dim_context& context, dim d) {
  detail::dim_printer(context, out).print(context.resolve(d));
}
inline std::string print(dim_context& context, dim d) {
  std::string out;
  print_to(out, context, d);
  return out;
}
/// `(B, 3, ceildiv(H, 2))`.
inline std::string print(dim_context& context, std::span<const dim> dims) {
  std::string out = "(";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) out += ", ";
    print_to(out, context, dims[i]);
  }
  return out += ")";
}

}  // namespace sod2
