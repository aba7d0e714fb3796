// Text to expressions: the inverse of print.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include <sod2/expr/context.hpp>

namespace sod2 {

namespace detail {

// Recursive descent over: sum = term {(+|-) term}; term = unary {(*|/) unary}; unary = [-] primary;
// primary = number | name | "name" | function(args) | (sum).
class dim_parser {
 public:
  dim_parser(dim_context& context, std::string_view text) : context_(context), text_(text) {}

  result<dim> parse() {
    const dim d = sum();
    skip();
    if (failed_ || at_ != text_.size() || d.is_undefined()) return problem();
    if (d.is_overflow())
      return error(errc::overflow, "expression '" + std::string(text_) + "' overflows");
    return d;
  }

 private:
  error problem() const {
    return error(errc::parse, "expression '" + std::string(text_) + "' is wrong at column " +
                                  std::to_string(at_ + 1));
  }
  dim fail() {
    failed_ = true;
    return dim::undefined();
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool eat(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool is_real(dim d) const { return d.is_known() && context_.is_real_valued(d); }
  // Mixed arithmetic takes the width of the floating-point side.
  dim arithmetic(real_op op, dim a, dim b) {
    if (!a.is_known() || !b.is_known()) return a.is_known() ? b : a;
    if (!is_real(a) && !is_real(b) && op != real_op::div)
      return op == real_op::add   ? context_.add(a, b)
             : op == real_op::sub ? context_.sub(a, b)
                                  : context_.mul(a, b);
    // The width is that of the first operand that is not a literal.
    const auto wide_of = [&](dim d) { return is_real(d) && context_.is_wide(d); };
    const bool wide = !is_literal(a) && is_real(a)   ? wide_of(a)
                      : !is_literal(b) && is_real(b) ? wide_of(b)
                                                     : wide_of(a);
    dim pair[2] = {widened(a, wide), widened(b, wide)};
    return context_.real(op, wide, pair);
  }
  bool is_literal(dim d) const { return context_.is_real_literal(d); }
  dim widened(dim d, bool wide) {
    if (!is_real(d)) return context_.real(real_op::from_int, wide, {&d, 1});
    if (is_literal(d) && !wide)
      return context_.real_literal(
          static_cast<double>(static_cast<float>(context_.literal_value(d))), false);
    return d;
  }
  dim sum() {
    if (++depth_ > 200) return fail();
    dim left = term();
    for (;;) {
      if (eat('+'))
        left = arithmetic(real_op::add, left, term());
      else if (eat('-'))
        left = arithmetic(real_op::sub, left, term());
      else
        break;
      if (failed_) break;
    }
    --depth_;
    return left;
  }
  dim term() {
    dim left = unary();
    for (;;) {
      if (eat('*'))
        left = arithmetic(real_op::mul, left, unary());
      else if (eat('/'))
        left = arithmetic(real_op::div, left, unary());
      else
        return left;
      if (failed_) return left;
    }
  }
  dim unary() {
    if (!eat('-')) return primary();
    if (++depth_ > 200) return fail();
    const dim d = unary();
    --depth_;
    if (is_real(d)) return context_.real(real_op::neg, context_.is_wide(d), {&d, 1});
    return d.is_known() ? context_.neg(d) : d;
  }
  static bool starts_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  static bool in_name(char c) { return starts_name(c) || (c >= '0' && c <= '9') || c == '.'; }
  dim primary() {
    skip();
    if (at_ >= text_.size()) return fail();
    if (eat('(')) {
      const dim d = sum();
      return eat(')') ? d : fail();
    }
    const char c = text_[at_];
    if (c >= '0' && c <= '9') return number();
    if (c == '"') {
      std::string name;
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
        name += text_[at_];
      }
      return eat('"') ? named(name) : fail();
    }
    if (!starts_name(c)) return fail();
    const std::size_t first = at_;
    while (at_ < text_.size() && in_name(text_[at_])) ++at_;
    const std::string_view name = text_.substr(first, at_ - first);
    if (eat('(')) return call(name);
    return named(name);
  }
  // Inferred symbols print under their own names and are found by them.
  dim named(std::string_view name) {
    if (context_.find_symbol(name) < 0)
      if (const std::int64_t index = context_.find_inferred(name); index >= 0)
        return context_.dim_of_symbol(static_cast<std::uint32_t>(index));
    return context_.symbol(name);
  }
  dim number() {
    const char* first = text_.data() + at_;
    const char* last = text_.data() + text_.size();
    std::int64_t whole = 0;
    const auto as_int = std::from_chars(first, last, whole);
    double real = 0.0;
    const auto as_real = std::from_chars(first, last, real);
    if (as_real.ptr > as_int.ptr) {
      at_ += static_cast<std::size_t>(as_real.ptr - first);
      return context_.real_literal(real, true);
    }
    if (as_int.ec != std::errc{}) return fail();
    at_ += static_cast<std::size_t>(as_int.ptr - first);
    return context_.constant(whole);
  }
  dim call(std::string_view f) {
    small_vector<dim, 4> args;
    if (!eat(')')) {
      do args.push_back(sum());
      while (!failed_ && eat(','));
      if (!eat(')')) return fail();
    }
    for (dim a : args)
      if (!a.is_known()) return a.is_undefined() ? fail() : a;
    const auto divisor = [&]() -> std::int64_t {
      return args.size() == 2 && context_.is_constant(args[1]) ? context_.value(args[1]) : 0;
    };
    if (f == "floordiv" || f == "ceildiv" || f == "mod" || f == "alignup") {
      const std::int64_t k = divisor();
      if (k <= 0) return fail();
      return f == "floordiv"  ? context_.floordiv(args[0], k)
             : f == "ceildiv" ? context_.ceildiv(args[0], k)
             : f == "mod"     ? context_.mod(args[0], k)
                              : context_.align_up(args[0], k);
    }
    if ((f == "min" || f == "max" || f == "broadcast") && !args.empty()) {
      dim d = args[0];
      for (std::size_t i = 1; i < args.size(); ++i) {
        if (is_real(d) || is_real(args[i]))
          d = arithmetic(f == "min" ? real_op::min : real_op::max, d, args[i]);
        else
          d = f == "min"   ? context_.min(d, args[i])
              : f == "max" ? context_.max(d, args[i])
                           : context_.broadcast(d, args[i]);
      }
      return d;
    }
    if (args.size() != 1) return fail();
    const dim a = args[0];
    if (f == "f32" || f == "f64") return context_.real(real_op::from_int, f == "f64", {&a, 1});
    const bool wide = is_real(a) && context_.is_wide(a);
    if (!is_real(a)) return fail();
    if (f == "float_floor") return context_.real(real_op::floor, wide, {&a, 1});
    if (f == "float_ceil") return context_.real(real_op::ceil, wide, {&a, 1});
    if (f == "float_round") return context_.real(real_op::round, wide, {&a, 1});
    if (f == "floor") return context_.real(real_op::floor_int, wide, {&a, 1});
    if (f == "ceil") return context_.real(real_op::ceil_int, wide, {&a, 1});
    if (f == "round") return context_.real(real_op::round_int, wide, {&a, 1});
    if (f == "trunc") return context_.real(real_op::trunc_int, wide, {&a, 1});
    if (f == "sqrt") return context_.real(real_op::sqrt, wide, {&a, 1});
    if (f == "neg") return context_.real(real_op::neg, wide, {&a, 1});
    return fail();
  }

  dim_context& context_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

}  // namespace detail

/// Reads an expression; names that are new become input symbols with the default range.
inline result<dim> parse(dim_context& context, std::string_view text) {
  return detail::dim_parser(context, text).parse();
}

}  // namespace sod2
