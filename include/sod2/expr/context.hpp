// dim_context: interned canonical expressions over symbols, and what is known of the symbols.
//
// The whole class is constexpr: compile-time dims are computed by this same code. Expressions are
// canonical when built: polynomials with sorted terms over sorted atoms, floor divisions reduced to
// one spelling, symbols with a known stride replaced by multiples of a hidden symbol (`H = 32*h`).
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/checked.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/expr/dim.hpp>
#include <sod2/expr/interval.hpp>

namespace sod2 {

/// Default range of a model input's symbol; a listed assumption, checked at bind.
inline constexpr std::int64_t default_symbol_max = 2147483647;

/// What is declared of a symbol: lo <= s <= hi, s = offset (mod step).
struct symbol_facts {
  std::int64_t lo = 1;
  std::int64_t hi = default_symbol_max;
  std::int64_t step = 1;
  std::int64_t offset = 0;
};

/// Where a symbol comes from.
enum class symbol_origin : std::uint8_t {
  input,     // a dim (or value element) of a model input: bound by the caller
  inferred,  // fresh and bounded: bound while running, or defined by a later fact
  strided,   // hidden: (base - offset) / step of an input symbol
};

/// One operand of a node: coefficient and product for sums, power and atom for products; `a` is 0
/// for the others.
struct dim_operand {
  std::int64_t a = 0;
  dim d{};
  friend constexpr bool operator==(const dim_operand&, const dim_operand&) = default;
};

class dim_context {
 public:
  /// Larger sums become unknown: no expression grows without bound.
  static constexpr std::size_t max_terms = 96;
  /// Rewrites and case splits that one proof may take.
  static constexpr int proof_budget = 160;

  constexpr dim_context() {
    for (int k = 0; k < 3; ++k) nodes_.push_back(node{static_cast<dim_kind>(k), 0, 0, 0, 0, {}, 0, {}, 0, {}, 0});
    zero_ = constant(0);
    one_ = constant(1);
  }
  dim_context(const dim_context&) = delete;
  dim_context& operator=(const dim_context&) = delete;
  constexpr dim_context(dim_context&&) noexcept = default;
  constexpr dim_context& operator=(dim_context&&) noexcept = default;

  // ---- symbols ---------------------------------------------------------------------------------

  /// Finds or declares the input symbol `name`. Facts are taken at the first declaration; refine
  /// them with `assume_range` / `assume_divisible`.
  constexpr dim symbol(std::string_view name, symbol_facts facts = {}) {
    for (std::uint32_t i = 0; i < symbols_.size(); ++i)
      if (symbols_[i].origin == symbol_origin::input && name_of_symbol(i) == name)
        return resolve(symbols_[i].expr);
    const std::uint32_t index = new_symbol(name, symbol_origin::input, {facts.lo, facts.hi});
    if (facts.step > 1) make_strided(index, facts.step, facts.offset);
    return resolve(symbols_[index].expr);
  }
  /// A new bounded symbol that stands for a size known only later. `note` says where it came from.
  constexpr dim fresh(interval range, std::string_view note = {}) {
    char name[24] = "u";
    std::size_t n = 1;
    char digits[20] = {};
    std::size_t count = 0;
    std::uint64_t v = fresh_count_++;
    do digits[count++] = static_cast<char>('0' + v % 10);
    while ((v /= 10) != 0);
    while (count > 0) name[n++] = digits[--count];
    const std::uint32_t index = new_symbol({name, n}, symbol_origin::inferred, range);
    symbols_[index].note_first = static_cast<std::uint32_t>(text_.size());
    symbols_[index].note_count = static_cast<std::uint32_t>(note.size());
    text_.append(note.data(), note.data() + note.size());
    return symbols_[index].expr;
  }

  constexpr std::size_t symbol_count() const { return symbols_.size(); }
  /// Valid until the next symbol is declared.
  constexpr std::string_view name_of_symbol(std::uint32_t index) const {
    const symbol_info& s = symbols_[index];
    return {text_.data() + s.name_first, s.name_count};
  }
  constexpr std::string_view note_of_symbol(std::uint32_t index) const {
    const symbol_info& s = symbols_[index];
    return {text_.data() + s.note_first, s.note_count};
  }
  constexpr symbol_origin origin_of_symbol(std::uint32_t index) const { return symbols_[index].origin; }
  constexpr interval range_of_symbol(std::uint32_t index) const { return symbols_[index].range; }
  /// For a strided symbol: the input symbol, step and offset it was made from.
  constexpr std::uint32_t base_of_symbol(std::uint32_t index) const { return symbols_[index].base; }
  constexpr std::int64_t step_of_symbol(std::uint32_t index) const { return symbols_[index].step; }
  constexpr std::int64_t offset_of_symbol(std::uint32_t index) const { return symbols_[index].offset; }
  /// Index of a declared input symbol, or -1.
  constexpr std::int64_t find_symbol(std::string_view name) const {
    for (std::uint32_t i = 0; i < symbols_.size(); ++i)
      if (symbols_[i].origin == symbol_origin::input && name_of_symbol(i) == name) return i;
    return -1;
  }
  /// What the symbol currently stands for (itself, or what facts replaced it with).
  constexpr dim dim_of_symbol(std::uint32_t index) { return resolve(symbols_[index].expr); }
  /// The plain symbol node, before any replacement.
  constexpr dim atom_of_symbol(std::uint32_t index) const { return symbols_[index].expr; }

  // ---- facts -----------------------------------------------------------------------------------

  /// Narrows the range of an input or inferred symbol. False when nothing remains.
  constexpr bool assume_range(std::uint32_t symbol_index, interval range) {
    symbol_info& s = symbols_[symbol_index];
    s.range = meet(s.range, range);
    ++version_;
    if (s.range.empty()) return false;
    // The hidden multiple of a strided symbol, and a symbol it was replaced by, narrow with it.
    const dim now = resolve(s.expr);
    if (now == s.expr) return true;
    const linear_symbol line = as_linear_symbol(now);
    if (line.symbol < 0 || line.scale <= 0) return true;
    const std::uint32_t target = static_cast<std::uint32_t>(line.symbol);
    interval wanted{};
    if (!detail::is_infinite(s.range.lo)) wanted.lo = ceil_div(s.range.lo - line.offset, line.scale);
    if (!detail::is_infinite(s.range.hi)) wanted.hi = floor_div(s.range.hi - line.offset, line.scale);
    symbol_info& t = symbols_[target];
    t.range = meet(t.range, wanted);
    return !t.range.empty();
  }
  /// Records `s = offset (mod step)`. False when that contradicts what is known.
  constexpr bool assume_divisible(std::uint32_t symbol_index, std::int64_t step, std::int64_t offset = 0) {
    if (step <= 1) return true;
    const dim now = resolve(symbols_[symbol_index].expr);
    const linear_symbol line = as_linear_symbol(now);
    if (line.symbol < 0) return true;  // replaced by an expression: nothing to simplify
    // Solve scale*t + shift = offset (mod step) for t.
    const std::int64_t g = gcd(line.scale, step);
    const std::int64_t need = floor_mod(offset - line.offset, step);
    if (need % g != 0) return false;
    const std::int64_t modulus = step / g;
    if (modulus == 1) return true;
    for (std::int64_t r = 0; r < modulus; ++r)
      if (floor_mod(line.scale * r - need, step) == 0)
        return make_strided(static_cast<std::uint32_t>(line.symbol), modulus, r);
    return false;
  }
  /// Makes two expressions one. yes: they already were or now are equal; unknown: neither could be
  /// expressed by the other (the caller keeps it as an assertion only); no: they contradict.
  constexpr tri assume_eq(dim a, dim b) {
    a = resolve(a);
    b = resolve(b);
    if (!a.is_known() || !b.is_known()) return tri::unknown;
    const tri now = decide_eq(a, b);
    if (now != tri::unknown) return now;
    const dim difference = sub(a, b);
    if (!difference.is_known()) return tri::unknown;
    // Solve for an atom that occurs once, alone, with coefficient +-1: the latest inferred symbol,
    // else a compound atom, else the latest input symbol.
    const terms all = terms_of(difference);
    std::int64_t best = -1;
    int best_rank = -1;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const dim atom = all[i].d;
      if ((all[i].a != 1 && all[i].a != -1) || !is_atom(atom)) continue;
      bool alone = true;
      for (std::size_t j = 0; j < all.size() && alone; ++j)
        if (j != i && contains(all[j].d, atom)) alone = false;
      if (!alone) continue;
      int rank = 0;
      if (kind(atom) == dim_kind::symbol) {
        const auto origin = symbols_[symbol_index(atom)].origin;
        rank = origin == symbol_origin::inferred ? 3 : 1;
      } else {
        rank = 2;
      }
      if (rank > best_rank ||
          (rank == best_rank && compare_atoms(atom, all[static_cast<std::size_t>(best)].d) > 0)) {
        best = static_cast<std::int64_t>(i);
        best_rank = rank;
      }
    }
    if (best < 0) return tri::unknown;
    const dim_operand chosen = all[static_cast<std::size_t>(best)];
    terms rest;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (static_cast<std::int64_t>(i) != best)
        rest.push_back({chosen.a == 1 ? detail::sat_neg(all[i].a) : all[i].a, all[i].d});
    const dim replacement = make_sum(rest);
    if (kind(chosen.d) == dim_kind::symbol) {
      symbol_info& s = symbols_[symbol_index(chosen.d)];
      const interval there = bounds(replacement);
      if (meet(s.range, there).empty()) return tri::no;
      // The replacement inherits the range of what it replaces.
      const linear_symbol line = as_linear_symbol(replacement);
      const interval old_range = s.range;
      nodes_[chosen.d.id].replaced_by = replacement;
      ++version_;
      if (line.symbol >= 0 && line.scale > 0) {
        interval wanted{};
        if (!detail::is_infinite(old_range.lo)) wanted.lo = ceil_div(old_range.lo - line.offset, line.scale);
        if (!detail::is_infinite(old_range.hi)) wanted.hi = floor_div(old_range.hi - line.offset, line.scale);
        symbol_info& t = symbols_[static_cast<std::size_t>(line.symbol)];
        t.range = meet(t.range, wanted);
        if (t.range.empty()) return tri::no;
      }
    } else {
      nodes_[chosen.d.id].replaced_by = replacement;
      ++version_;
    }
    return tri::yes;
  }
  /// Grows whenever a fact changes what expressions simplify to.
  constexpr std::uint32_t version() const { return version_; }
  /// The canonical form under all facts learned so far.
  constexpr dim resolve(dim d) {
    if (version_ == 0 || !d.is_known()) return d;
    if (nodes_[d.id].resolved_version == version_) return nodes_[d.id].resolved;
    // Rebuilding an expression may meet the expression itself: it stands for itself meanwhile.
    nodes_[d.id].resolved = d;
    nodes_[d.id].resolved_version = version_;
    dim out = d;
    const dim_kind k = kind(d);
    if (nodes_[d.id].replaced_by.is_known()) {
      out = resolve(nodes_[d.id].replaced_by);
    } else if (k == dim_kind::sum) {
      terms list;
      bool changed = false;
      const std::size_t n = nodes_[d.id].count;
      for (std::size_t i = 0; i < n; ++i) {
        const dim_operand o = operand(d, i);
        const dim now = resolve(o.d);
        changed = changed || now != o.d;
        if (!now.is_known()) return now;
        for (const dim_operand& t : terms_of(now)) {
          std::int64_t c = 0;
          if (!checked_mul(t.a, o.a, c)) return dim::overflow();
          list.push_back({c, t.d});
        }
      }
      if (changed) out = make_sum(list);
    } else if (k == dim_kind::product) {
      dim acc = one_;
      bool changed = false;
      const std::size_t n = nodes_[d.id].count;
      for (std::size_t i = 0; i < n; ++i) {
        const dim_operand o = operand(d, i);
        const dim now = resolve(o.d);
        changed = changed || now != o.d;
        for (std::int64_t p = 0; p < o.a; ++p) acc = multiply(acc, now);
      }
      if (changed) out = acc;
    } else if (k == dim_kind::floordiv) {
      out = floordiv(resolve(operand(d, 0).d), nodes_[d.id].value);
    } else if (k == dim_kind::min || k == dim_kind::max || k == dim_kind::broadcast) {
      out = resolve(operand(d, 0).d);
      const std::size_t n = nodes_[d.id].count;
      for (std::size_t i = 1; i < n; ++i) {
        const dim next = resolve(operand(d, i).d);
        out = k == dim_kind::min ? min(out, next) : k == dim_kind::max ? max(out, next) : broadcast(out, next);
      }
    } else if (k == dim_kind::real) {
      small_vector<dim, 4> args;
      const std::size_t n = nodes_[d.id].count;
      for (std::size_t i = 0; i < n; ++i) args.push_back(resolve(operand(d, i).d));
      out = nodes_[d.id].op == static_cast<std::uint8_t>(real_op::literal)
                ? d
                : real(static_cast<real_op>(nodes_[d.id].op), nodes_[d.id].wide, args);
    }
    nodes_[d.id].resolved = out;
    return out;
  }

  // ---- building --------------------------------------------------------------------------------

  constexpr dim constant(std::int64_t v) { return intern(node{dim_kind::constant, 0, 0, 0, 0, {}, v, {}, 0, {}, 0}, {}); }
  constexpr dim add(dim a, dim b) { return combine(a, b, 1); }
  constexpr dim sub(dim a, dim b) { return combine(a, b, -1); }
  constexpr dim neg(dim a) { return combine(zero_, a, -1); }
  constexpr dim mul(dim a, dim b) {
    if (const dim bad = poison(a, b); bad.id != no_poison) return bad;
    return multiply(resolve(a), resolve(b));
  }
  constexpr dim mul(dim a, std::int64_t k) { return mul(a, constant(k)); }
  constexpr dim add(dim a, std::int64_t k) { return add(a, constant(k)); }
  /// floor(a / k). Requires k > 0.
  constexpr dim floordiv(dim a, std::int64_t k) {
    SOD2_ASSERT(k > 0);
    if (!a.is_known()) return a;
    a = resolve(a);
    if (k == 1 || !a.is_known()) return a;
    if (kind(a) == dim_kind::constant) return constant(floor_div(value(a), k));
    // a = k*q + r with small coefficients in r: floor(a/k) = q + floor(r/k).
    const terms all = terms_of(a);
    terms quotient, rest;
    std::int64_t g = k;  // common divisor of k and the coefficients of r (constant excluded)
    for (const dim_operand& t : all) {
      const std::int64_t q = floor_div(t.a, k);
      const std::int64_t r = t.a - q * k;
      if (q != 0) quotient.push_back({q, t.d});
      if (r != 0) rest.push_back({r, t.d});
      if (r != 0 && t.d != one_) g = gcd(g, r);
    }
    if (rest.empty()) return make_sum(quotient);
    std::int64_t shift = 0;
    if (rest.back().d == one_) {
      shift = rest.back().a;
      rest.pop_back();
    }
    if (rest.empty()) return make_sum(quotient);  // only a constant below k remained
    std::int64_t divisor = k;
    if (g > 1) {
      for (dim_operand& t : rest) t.a /= g;
      shift = floor_div(shift, g);
      divisor /= g;
    }
    if (divisor == 1) {
      rest.push_back({shift, one_});
      return add(make_sum(quotient), make_sum(rest));
    }
    // One spelling for floor and ceil: the leading coefficient takes its smaller magnitude;
    // floor(-e/k) = -floor((e + k - 1)/k).
    bool negated = false;
    if (2 * rest[0].a > divisor) {
      terms flipped;
      for (dim_operand& t : rest) {
        // c*t = divisor*t - f*t with f = divisor - c: whole multiples go to the quotient.
        const std::int64_t f = divisor - t.a;
        quotient.push_back({1, t.d});
        flipped.push_back({f, t.d});
      }
      rest = flipped;
      shift = divisor - 1 - shift;
      negated = true;
    }
    terms inner = rest;
    // floor((floor(e/m) + p)/k) = floor((e + m*p)/(m*k)) when the inner division stands alone.
    std::size_t nested = inner.size();
    bool single = true;
    for (std::size_t i = 0; i < inner.size(); ++i)
      if (kind(inner[i].d) == dim_kind::floordiv) {
        if (nested != inner.size() || inner[i].a != 1) single = false;
        nested = i;
      }
    dim core{};
    std::int64_t product = 0;
    if (nested != inner.size() && single &&
        checked_mul(divisor, nodes_[inner[nested].d.id].value, product)) {
      const std::int64_t m = nodes_[inner[nested].d.id].value;
      dim numerator = operand(inner[nested].d, 0).d;
      terms others;
      for (std::size_t i = 0; i < inner.size(); ++i)
        if (i != nested) others.push_back(inner[i]);
      others.push_back({shift, one_});
      numerator = add(numerator, mul(make_sum(others), m));
      core = floordiv(numerator, product);
    } else {
      inner.push_back({shift, one_});
      const dim numerator = make_sum(inner);
      if (!numerator.is_known()) return numerator;
      const interval range = bounds(numerator);
      if (!detail::is_infinite(range.lo) && !detail::is_infinite(range.hi) &&
          floor_div(range.lo, divisor) == floor_div(range.hi, divisor))
        core = constant(floor_div(range.lo, divisor));
      else
        core = make_floordiv(numerator, divisor);
    }
    if (negated) core = neg(core);
    return add(make_sum(quotient), core);
  }
  constexpr dim ceildiv(dim a, std::int64_t k) { return floordiv(add(a, k - 1), k); }
  constexpr dim mod(dim a, std::int64_t k) { return sub(a, mul(floordiv(a, k), k)); }
  constexpr dim align_up(dim a, std::int64_t k) { return mul(ceildiv(a, k), k); }
  constexpr dim min(dim a, dim b) { return extremum(dim_kind::min, a, b); }
  constexpr dim max(dim a, dim b) { return extremum(dim_kind::max, a, b); }
  /// The numpy result dim of a and b, assuming they broadcast.
  constexpr dim broadcast(dim a, dim b) {
    if (const dim bad = poison(a, b); bad.id != no_poison) return bad;
    a = resolve(a);
    b = resolve(b);
    if (a == b || b == one_) return a;
    if (a == one_) return b;
    // A dim that cannot be 1 decides.
    if (decide_eq(a, one_) == tri::no) return a;
    if (decide_eq(b, one_) == tri::no) return b;
    // 1 <= a <= b: equal, or a is 1.
    if (bounds(a).lo >= 1 && decide_le(a, b) == tri::yes) return b;
    if (bounds(b).lo >= 1 && decide_le(b, a) == tri::yes) return a;
    small_vector<dim, 4> list;
    collect(dim_kind::broadcast, a, list);
    collect(dim_kind::broadcast, b, list);
    return make_list(dim_kind::broadcast, list);
  }
  /// a / b where b divides a exactly as a polynomial; undefined when it does not. Sound only where
  /// b >= 1 is known: the caller checks.
  constexpr dim div_exact(dim a, dim b) {
    a = resolve(a);
    b = resolve(b);
    if (!a.is_known() || !b.is_known() || b == zero_) return dim::undefined();
    if (a == zero_ || b == one_) return a;
    if (a == b) return one_;
    terms remainder = terms_of(a);
    const terms divisor = terms_of(b);
    const dim_operand lead = divisor[0];
    terms quotient;
    // Terms are sorted by a monomial order, so leading terms divide or nothing does.
    for (std::size_t guard = 0; guard < max_terms; ++guard) {
      if (remainder.empty()) return make_sum(quotient);
      const dim_operand top = remainder[0];
      if (top.a % lead.a != 0) return dim::undefined();
      const dim monomial = divide_products(top.d, lead.d);
      if (monomial.is_undefined()) return dim::undefined();
      const dim_operand q{top.a / lead.a, monomial};
      quotient.push_back(q);
      terms subtrahend;
      for (const dim_operand& t : divisor) {
        std::int64_t c = 0;
        if (!checked_mul(t.a, q.a, c)) return dim::undefined();
        subtrahend.push_back({c, multiply_products(t.d, q.d)});
      }
      const dim next = sub(make_sum(remainder), make_sum(subtrahend));
      if (!next.is_known()) return dim::undefined();
      remainder = terms_of(next);
    }
    return dim::undefined();
  }
  /// A floating-point operation; `wide` selects float64, else float32. Folds constants in IEEE.
  constexpr dim real(real_op op, bool wide, std::span<const dim> args) {
    for (dim a : args)
      if (!a.is_known()) return a;
    bool folded = true;
    double in[2] = {0, 0};
    for (std::size_t i = 0; i < args.size() && i < 2; ++i) {
      const dim a = args[i];
      if (op == real_op::from_int ? kind(a) == dim_kind::constant : is_real_literal(a))
        in[i] = op == real_op::from_int ? static_cast<double>(value(a)) : literal_value(a);
      else
        folded = false;
    }
    if (op == real_op::from_int && folded)
      // Through the type itself: float32 rounds once, from the integer.
      return real_literal(wide ? static_cast<double>(value(args[0]))
                               : static_cast<double>(static_cast<float>(value(args[0]))), wide);
    if (folded && op != real_op::sqrt) {
      const double r = apply_real(op, wide, in[0], in[1]);
      if (is_integer_valued(op)) {
        if (!(r >= -9.2e18 && r <= 9.2e18)) return dim::overflow();
        return constant(static_cast<std::int64_t>(r));
      }
      return real_literal(r, wide);
    }
    if ((op == real_op::mul || op == real_op::div) && is_real_literal(args[1]) && literal_value(args[1]) == 1.0)
      return args[0];
    if ((op == real_op::add || op == real_op::sub) && is_real_literal(args[1]) && literal_value(args[1]) == 0.0)
      return args[0];
    // An integer that is exactly representable passes unchanged through its rounding.
    if ((is_integer_valued(op)) && kind(args[0]) == dim_kind::real &&
        static_cast<real_op>(nodes_[args[0].id].op) == real_op::from_int) {
      const interval r = bounds(operand(args[0], 0).d);
      const std::int64_t exact = wide ? (std::int64_t{1} << 53) : (std::int64_t{1} << 24);
      if (r.lo >= -exact && r.hi <= exact) return operand(args[0], 0).d;
    }
    small_vector<dim_operand, 4> operands;
    for (dim a : args) operands.push_back({0, a});
    node n{dim_kind::real, static_cast<std::uint8_t>(op), wide, 0, 0, {}, 0, {}, 0, {}, 0};
    return intern(n, operands);
  }
  constexpr dim real_literal(double v, bool wide) {
    node n{dim_kind::real, static_cast<std::uint8_t>(real_op::literal), wide, 0, 0, {}, std::bit_cast<std::int64_t>(v), {}, 0, {}, 0};
    return intern(n, {});
  }

  // ---- looking at expressions ------------------------------------------------------------------

  constexpr dim_kind kind(dim d) const { return nodes_[d.id].kind; }
  constexpr bool is_constant(dim d) const { return kind(d) == dim_kind::constant; }
  /// Requires a constant (or, for floordiv, gives the divisor).
  constexpr std::int64_t value(dim d) const { return nodes_[d.id].value; }
  constexpr std::uint32_t symbol_index(dim d) const { return static_cast<std::uint32_t>(nodes_[d.id].value); }
  constexpr std::size_t operand_count(dim d) const { return nodes_[d.id].count; }
  constexpr dim_operand operand(dim d, std::size_t i) const { return operands_[nodes_[d.id].first + i]; }
  constexpr real_op real_operation(dim d) const { return static_cast<real_op>(nodes_[d.id].op); }
  constexpr bool is_wide(dim d) const { return nodes_[d.id].wide; }
  constexpr bool is_real_literal(dim d) const {
    return kind(d) == dim_kind::real && real_operation(d) == real_op::literal;
  }
  constexpr double literal_value(dim d) const { return std::bit_cast<double>(nodes_[d.id].value); }
  /// A floating-point value (not an integer) as an element of a float tensor.
  constexpr bool is_real_valued(dim d) const {
    return kind(d) == dim_kind::real && !is_integer_valued(real_operation(d));
  }
  constexpr dim zero() const { return zero_; }
  constexpr dim one() const { return one_; }
  constexpr std::size_t node_count() const { return nodes_.size(); }
  constexpr bool is_atom(dim d) const {
    const dim_kind k = kind(d);
    return k >= dim_kind::symbol && k <= dim_kind::real;
  }
  /// Visits every symbol below d, each once per call in a fixed order.
  template <class F>
  constexpr void for_each_symbol(dim d, F&& f) const {
    vector<dim> stack, seen;
    stack.push_back(d);
    while (!stack.empty()) {
      const dim top = stack.back();
      stack.pop_back();
      if (!top.is_known()) continue;
      bool done = false;
      for (dim s : seen) done = done || s == top;
      if (done) continue;
      if (kind(top) == dim_kind::symbol) f(symbol_index(top));
      if (operand_count(top) > 0 || kind(top) == dim_kind::symbol) seen.push_back(top);
      for (std::size_t i = operand_count(top); i-- > 0;) stack.push_back(operand(top, i).d);
    }
  }
  /// True when d is constant or built from input symbols only.
  constexpr bool only_input_symbols(dim d) const {
    bool all = d.is_known();
    for_each_symbol(d, [&](std::uint32_t s) {
      if (symbols_[s].origin == symbol_origin::inferred) all = false;
    });
    return all;
  }
  /// Structural order, independent of the order in which expressions were built.
  constexpr int compare(dim a, dim b) const {
    if (a == b) return 0;
    const terms x = terms_of(a), y = terms_of(b);
    for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (const int c = compare_products(x[i].d, y[i].d); c != 0) return c;
      if (x[i].a != y[i].a) return x[i].a < y[i].a ? -1 : 1;
    }
    return x.size() == y.size() ? 0 : x.size() < y.size() ? -1 : 1;
  }

  // ---- asking ----------------------------------------------------------------------------------

  /// Range of values at every binding that respects the facts.
  constexpr interval bounds(dim d) {
    if (!d.is_known()) return {};
    d = resolve(d);
    if (!d.is_known()) return {};
    if (kind(d) == dim_kind::constant) return interval::point(value(d));
    if (nodes_[d.id].bounds_version == version_ + 1) return nodes_[d.id].range;
    interval out{};
    switch (kind(d)) {
      case dim_kind::symbol: out = symbols_[symbol_index(d)].range; break;
      case dim_kind::sum: {
        out = interval::point(0);
        for (std::size_t i = 0; i < operand_count(d); ++i)
          out = out + interval::point(operand(d, i).a) * bounds(operand(d, i).d);
        break;
      }
      case dim_kind::product: {
        out = interval::point(1);
        for (std::size_t i = 0; i < operand_count(d); ++i) {
          const interval factor = bounds(operand(d, i).d);
          for (std::int64_t p = 0; p < operand(d, i).a; ++p) out = out * factor;
          if (operand(d, i).a % 2 == 0 && out.lo < 0 && operand_count(d) == 1) out.lo = 0;
        }
        break;
      }
      case dim_kind::floordiv: out = sod2::floordiv(bounds(operand(d, 0).d), value(d)); break;
      case dim_kind::min:
      case dim_kind::max:
      case dim_kind::broadcast: {
        out = bounds(operand(d, 0).d);
        for (std::size_t i = 1; i < operand_count(d); ++i) {
          const interval next = bounds(operand(d, i).d);
          out = kind(d) == dim_kind::min   ? sod2::min(out, next)
                : kind(d) == dim_kind::max ? sod2::max(out, next)
                                           : interval{min_of(out.lo, next.lo), max_of(out.hi, next.hi)};
        }
        break;
      }
      case dim_kind::real: {
        const real_interval r = real_bounds(d);
        out = {r.lo <= -9.2e18 ? minus_infinity : static_cast<std::int64_t>(r.lo) - (r.lo < 0 ? 1 : 0),
               r.hi >= 9.2e18 ? infinity : static_cast<std::int64_t>(r.hi) + (r.hi > 0 ? 1 : 0)};
        if (is_integer_valued(real_operation(d))) {
          if (r.lo > -9.2e18) out.lo = static_cast<std::int64_t>(r.lo);
          if (r.hi < 9.2e18) out.hi = static_cast<std::int64_t>(r.hi);
        }
        break;
      }
      default: break;
    }
    nodes_[d.id].range = out;
    nodes_[d.id].bounds_version = version_ + 1;
    return out;
  }
  /// Is a == b at every binding (yes), at none (no), or not provable (unknown).
  constexpr tri decide_eq(dim a, dim b) {
    if (!a.is_known() || !b.is_known()) return tri::unknown;
    a = resolve(a);
    b = resolve(b);
    if (a == b) return tri::yes;
    if (is_constant(a) && is_constant(b)) return tri::no;
    const interval ra = bounds(a), rb = bounds(b);
    if (ra.hi < rb.lo || rb.hi < ra.lo) return tri::no;
    const dim difference = sub(a, b);
    if (!difference.is_known()) return tri::unknown;
    if (is_constant(difference)) return to_tri(value(difference) == 0);
    const terms all = terms_of(difference);
    std::int64_t g = 0, shift = 0;
    for (const dim_operand& t : all)
      if (t.d == one_)
        shift = t.a;
      else
        g = gcd(g, t.a);
    if (g > 1 && shift % g != 0) return tri::no;
    int budget = proof_budget;
    if (prove_at_least(difference, 1, budget) || prove_at_least(neg(difference), 1, budget)) return tri::no;
    return tri::unknown;
  }
  /// Is a <= b at every binding (yes), at none (no), or not provable.
  constexpr tri decide_le(dim a, dim b) {
    if (!a.is_known() || !b.is_known()) return tri::unknown;
    a = resolve(a);
    b = resolve(b);
    if (a == b) return tri::yes;
    const dim difference = sub(b, a);
    if (!difference.is_known()) return tri::unknown;
    if (is_constant(difference)) return to_tri(value(difference) >= 0);
    int budget = proof_budget;
    if (prove_at_least(difference, 0, budget)) return tri::yes;
    budget = proof_budget;
    if (prove_at_least(neg(difference), 1, budget)) return tri::no;
    return tri::unknown;
  }
  /// Is k a divisor of d at every binding.
  constexpr tri decide_divisible(dim d, std::int64_t k) {
    if (!d.is_known()) return tri::unknown;
    const dim rest = mod(d, k);
    if (!rest.is_known()) return tri::unknown;
    return decide_eq(rest, zero_);
  }

  /// Integer-valued operations of `real` nodes.
  static constexpr bool is_integer_valued(real_op op) { return op >= real_op::floor_int; }
  /// One IEEE operation in the given width; used by folding, evaluation and tests alike.
  static constexpr double apply_real(real_op op, bool wide, double x, double y) {
    if (wide) return apply<double>(op, x, y);
    return static_cast<double>(apply<float>(op, static_cast<float>(x), static_cast<float>(y)));
  }

 private:
  using terms = small_vector<dim_operand, 6>;
  static constexpr std::uint32_t no_poison = 0xffffffff;

  struct node {
    dim_kind kind = dim_kind::undefined;
    std::uint8_t op = 0;
    bool wide = false;
    std::uint32_t first = 0, count = 0;
    dim replaced_by{};           // atoms: what a fact made of it
    std::int64_t value = 0;      // constant, symbol index, divisor, literal bits
    interval range{};
    std::uint32_t bounds_version = 0;  // version + 1 for which `range` holds
    dim resolved{};
    std::uint32_t resolved_version = 0;
  };
  struct symbol_info {
    std::uint32_t name_first = 0, name_count = 0, note_first = 0, note_count = 0;
    symbol_origin origin = symbol_origin::input;
    interval range{};
    std::uint32_t base = 0;
    std::int64_t step = 1, offset = 0;
    dim expr{};
  };
  struct linear_symbol {
    std::int64_t symbol = -1, scale = 0, offset = 0;
  };
  struct real_interval {
    double lo = -1e300, hi = 1e300;
  };

  // Undefined wins over unknown over overflow; no_poison when both are known.
  constexpr dim poison(dim a, dim b) const {
    if (a.is_known() && b.is_known()) return {no_poison};
    if (a.is_overflow() || b.is_overflow()) return dim::overflow();
    if (a.is_undefined() || b.is_undefined()) return dim::undefined();
    return dim::unknown();
  }

  constexpr std::uint32_t new_symbol(std::string_view name, symbol_origin origin, interval range) {
    const std::uint32_t index = static_cast<std::uint32_t>(symbols_.size());
    symbol_info s;
    s.name_first = static_cast<std::uint32_t>(text_.size());
    s.name_count = static_cast<std::uint32_t>(name.size());
    text_.append(name.data(), name.data() + name.size());
    s.origin = origin;
    s.range = range;
    s.expr = intern(node{dim_kind::symbol, 0, 0, 0, 0, {}, index, {}, 0, {}, 0}, {});
    symbols_.push_back(s);
    return index;
  }
  // Replaces symbol s by step*t + offset with a hidden t. False when no value remains.
  constexpr bool make_strided(std::uint32_t index, std::int64_t step, std::int64_t offset) {
    offset = floor_mod(offset, step);
    interval range = symbols_[index].range;
    if (!detail::is_infinite(range.lo)) range.lo = ceil_div(range.lo - offset, step);
    if (!detail::is_infinite(range.hi)) range.hi = floor_div(range.hi - offset, step);
    if (range.empty()) return false;
    // Strides of strides are kept relative to the input symbol they came from.
    std::uint32_t base = index;
    std::int64_t whole_step = step, whole_offset = offset;
    symbol_origin origin = symbols_[index].origin;
    if (origin == symbol_origin::strided) {
      base = symbols_[index].base;
      whole_offset = symbols_[index].step * offset + symbols_[index].offset;
      whole_step = symbols_[index].step * step;
    } else if (origin == symbol_origin::inferred) {
      return true;  // bound while running: its stride would have to be undone there
    }
    const std::uint32_t hidden = new_symbol({}, symbol_origin::strided, range);
    symbols_[hidden].base = base;
    symbols_[hidden].step = whole_step;
    symbols_[hidden].offset = whole_offset;
    const dim multiple = add(mul(symbols_[hidden].expr, step), offset);
    nodes_[symbols_[index].expr.id].replaced_by = multiple;
    ++version_;
    return true;
  }
  // d as scale*symbol + offset, if it is that.
  constexpr linear_symbol as_linear_symbol(dim d) const {
    const terms all = terms_of(d);
    linear_symbol out;
    if (all.empty() || all.size() > 2 || kind(all[0].d) != dim_kind::symbol) return out;
    if (all.size() == 2 && all[1].d != one_) return out;
    out.symbol = symbol_index(all[0].d);
    out.scale = all[0].a;
    out.offset = all.size() == 2 ? all[1].a : 0;
    return out;
  }

  constexpr bool contains(dim d, dim atom) const {
    if (d == atom) return true;
    for (std::size_t i = 0; i < operand_count(d); ++i)
      if (contains(operand(d, i).d, atom)) return true;
    return false;
  }

  // A canonical expression as terms, leading first, the constant last.
  constexpr terms terms_of(dim d) const {
    terms out;
    const dim_kind k = kind(d);
    if (k == dim_kind::constant) {
      if (value(d) != 0) out.push_back({value(d), one_});
    } else if (k == dim_kind::sum) {
      out.append(operands_.data() + nodes_[d.id].first, operands_.data() + nodes_[d.id].first + nodes_[d.id].count);
    } else {
      out.push_back({1, d});
    }
    return out;
  }
  constexpr dim combine(dim a, dim b, std::int64_t sign) {
    if (const dim bad = poison(a, b); bad.id != no_poison) return bad;
    a = resolve(a);
    b = resolve(b);
    if (const dim bad = poison(a, b); bad.id != no_poison) return bad;
    if (b == zero_) return a;
    if (a == zero_ && sign == 1) return b;
    const terms x = terms_of(a), y = terms_of(b);
    terms out;
    out.reserve(x.size() + y.size());
    std::size_t i = 0, j = 0;
    while (i < x.size() || j < y.size()) {
      const int c = i == x.size() ? 1 : j == y.size() ? -1 : compare_products(x[i].d, y[j].d);
      if (c < 0) {
        out.push_back(x[i++]);
        continue;
      }
      std::int64_t scaled = 0;
      if (!checked_mul(y[j].a, sign, scaled)) return dim::overflow();
      if (c > 0) {
        out.push_back({scaled, y[j++].d});
        continue;
      }
      std::int64_t total = 0;
      if (!checked_add(x[i].a, scaled, total)) return dim::overflow();
      if (total != 0) out.push_back({total, x[i].d});
      ++i;
      ++j;
    }
    return sorted_sum(out);
  }
  // Both resolved.
  constexpr dim multiply(dim a, dim b) {
    if (const dim bad = poison(a, b); bad.id != no_poison) return bad;
    if (a == zero_ || b == zero_) return zero_;
    if (a == one_) return b;
    if (b == one_) return a;
    const terms ta = terms_of(a), tb = terms_of(b);
    if (ta.size() * tb.size() > 4 * max_terms) return dim::unknown();
    terms out;
    for (const dim_operand& x : ta)
      for (const dim_operand& y : tb) {
        std::int64_t c = 0;
        if (!checked_mul(x.a, y.a, c)) return dim::overflow();
        out.push_back({c, multiply_products(x.d, y.d)});
      }
    return make_sum(out);
  }
  // Terms in any order, possibly repeated.
  constexpr dim make_sum(terms list) {
    for (const dim_operand& t : list)
      if (!t.d.is_known()) return t.d;
    stable_sort(list.begin(), list.end(),
                [this](const dim_operand& a, const dim_operand& b) { return compare_products(a.d, b.d) < 0; });
    terms out;
    for (const dim_operand& t : list) {
      if (!out.empty() && out.back().d == t.d) {
        if (!checked_add(out.back().a, t.a, out.back().a)) return dim::overflow();
      } else {
        if (!out.empty() && out.back().a == 0) out.pop_back();
        out.push_back(t);
      }
    }
    if (!out.empty() && out.back().a == 0) out.pop_back();
    return sorted_sum(out);
  }
  constexpr dim sorted_sum(const terms& list) {
    if (list.empty()) return zero_;
    if (list.size() > max_terms) return dim::unknown();
    if (list.size() == 1) {
      if (list[0].d == one_) return constant(list[0].a);
      if (list[0].a == 1) return list[0].d;
    }
    return intern(node{dim_kind::sum, 0, 0, 0, 0, {}, 0, {}, 0, {}, 0}, list);
  }
  constexpr terms factors_of(dim product) const {
    terms out;
    if (product == one_) return out;
    if (kind(product) == dim_kind::product)
      out.append(operands_.data() + nodes_[product.id].first,
                 operands_.data() + nodes_[product.id].first + nodes_[product.id].count);
    else
      out.push_back({1, product});
    return out;
  }
  constexpr dim make_product(const terms& factors) {
    if (factors.empty()) return one_;
    if (factors.size() == 1 && factors[0].a == 1) return factors[0].d;
    return intern(node{dim_kind::product, 0, 0, 0, 0, {}, 0, {}, 0, {}, 0}, factors);
  }
  constexpr dim multiply_products(dim a, dim b) {
    if (a == one_) return b;
    if (b == one_) return a;
    const terms x = factors_of(a), y = factors_of(b);
    terms out;
    std::size_t i = 0, j = 0;
    while (i < x.size() || j < y.size()) {
      const int c = i == x.size() ? 1 : j == y.size() ? -1 : compare_atoms(x[i].d, y[j].d);
      if (c < 0) {
        out.push_back(x[i++]);
      } else if (c > 0) {
        out.push_back(y[j++]);
      } else {
        out.push_back({x[i].a + y[j].a, x[i].d});
        ++i;
        ++j;
      }
    }
    return make_product(out);
  }
  // a / b, undefined when some power is missing.
  constexpr dim divide_products(dim a, dim b) {
    terms x = factors_of(a);
    const terms y = factors_of(b);
    for (const dim_operand& f : y) {
      bool found = false;
      for (std::size_t i = 0; i < x.size() && !found; ++i)
        if (x[i].d == f.d && x[i].a >= f.a) {
          x[i].a -= f.a;
          found = true;
        }
      if (!found) return dim::undefined();
    }
    terms out;
    for (const dim_operand& f : x)
      if (f.a > 0) out.push_back(f);
    return make_product(out);
  }
  constexpr std::int64_t degree(dim product) const {
    if (product == one_) return 0;
    if (kind(product) != dim_kind::product) return 1;
    std::int64_t n = 0;
    for (std::size_t i = 0; i < operand_count(product); ++i) n += operand(product, i).a;
    return n;
  }
  // Higher degree first, then lexicographic: a monomial order, so exact division works on leading
  // terms.
  constexpr int compare_products(dim a, dim b) const {
    if (a == b) return 0;
    const std::int64_t da = degree(a), db = degree(b);
    if (da != db) return da > db ? -1 : 1;
    const terms x = factors_of(a), y = factors_of(b);
    for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (const int c = compare_atoms(x[i].d, y[i].d); c != 0) return c;
      if (x[i].a != y[i].a) return x[i].a > y[i].a ? -1 : 1;
    }
    return x.size() == y.size() ? 0 : x.size() < y.size() ? -1 : 1;
  }
  constexpr int compare_atoms(dim a, dim b) const {
    if (a == b) return 0;
    const node& x = nodes_[a.id];
    const node& y = nodes_[b.id];
    if (x.kind != y.kind) return x.kind < y.kind ? -1 : 1;
    if (x.op != y.op) return x.op < y.op ? -1 : 1;
    if (x.wide != y.wide) return x.wide ? 1 : -1;
    for (std::uint32_t i = 0; i < x.count && i < y.count; ++i)
      if (const int c = compare(operand(a, i).d, operand(b, i).d); c != 0) return c;
    if (x.count != y.count) return x.count < y.count ? -1 : 1;
    return x.value == y.value ? 0 : x.value < y.value ? -1 : 1;
  }

  constexpr dim make_floordiv(dim numerator, std::int64_t k) {
    node n{dim_kind::floordiv, 0, 0, 0, 0, {}, k, {}, 0, {}, 0};
    small_vector<dim_operand, 4> args;
    args.push_back({0, numerator});
    return intern(n, args);
  }
  constexpr void collect(dim_kind k, dim d, small_vector<dim, 4>& out) const {
    if (kind(d) == k)
      for (std::size_t i = 0; i < operand_count(d); ++i) out.push_back(operand(d, i).d);
    else
      out.push_back(d);
  }
  constexpr dim make_list(dim_kind k, small_vector<dim, 4>& list) {
    stable_sort(list.begin(), list.end(), [this](dim a, dim b) { return compare(a, b) < 0; });
    small_vector<dim_operand, 4> args;
    for (dim d : list)
      if (args.empty() || args.back().d != d) args.push_back({0, d});
    if (args.size() == 1) return args[0].d;
    return intern(node{k, 0, 0, 0, 0, {}, 0, {}, 0, {}, 0}, args);
  }
  constexpr dim extremum(dim_kind k, dim a, dim b) {
    if (const dim bad = poison(a, b); bad.id != no_poison) return bad;
    a = resolve(a);
    b = resolve(b);
    if (const dim bad = poison(a, b); bad.id != no_poison) return bad;
    if (a == b) return a;
    if (is_constant(a) && is_constant(b))
      return k == dim_kind::min ? (value(a) < value(b) ? a : b) : (value(a) < value(b) ? b : a);
    small_vector<dim, 4> list, kept;
    collect(k, a, list);
    collect(k, b, list);
    if (list.size() > 16) return dim::unknown();
    // Keep only what no other operand dominates.
    for (dim candidate : list) {
      bool dominated = false;
      for (std::size_t i = 0; i < kept.size();) {
        const dim other = kept[i];
        if (other == candidate || dominates(k, other, candidate)) {
          dominated = true;
          break;
        }
        if (dominates(k, candidate, other))
          kept.erase(i);
        else
          ++i;
      }
      if (!dominated) kept.push_back(candidate);
    }
    return make_list(k, kept);
  }
  // True when `a` decides the extremum whatever `b` is.
  constexpr bool dominates(dim_kind k, dim a, dim b) {
    return (k == dim_kind::min ? decide_le(a, b) : decide_le(b, a)) == tri::yes;
  }

  // Proves d >= least, within the budget. Tries interval bounds, the extremes of min and max,
  // linear relaxations of floor divisions, and non-negative coefficients after moving every atom
  // to its lower bound.
  constexpr bool prove_at_least(dim d, std::int64_t least, int& budget) {
    if (--budget < 0 || !d.is_known()) return false;
    const interval range = bounds(d);
    if (range.lo >= least) return true;
    if (range.hi < least) return false;
    const terms all = terms_of(d);
    // min and max: c*max(a,b) >= c*a; -c*max(a,b) needs both cases.
    for (std::size_t i = 0; i < all.size(); ++i) {
      const terms factors = factors_of(all[i].d);
      for (const dim_operand& f : factors) {
        const dim_kind k = kind(f.d);
        if (k != dim_kind::min && k != dim_kind::max && k != dim_kind::broadcast) continue;
        if (f.a != 1) continue;
        const dim others = divide_products(all[i].d, f.d);
        if (factors.size() > 1 && bounds(others).lo < 0) continue;
        const bool either = k != dim_kind::broadcast && (k == dim_kind::max) == (all[i].a > 0);
        bool proved = !either;
        for (std::size_t j = 0; j < operand_count(f.d); ++j) {
          const dim replaced = replace_term(all, i, mul(others, operand(f.d, j).d));
          const bool one_case = prove_at_least(replaced, least, budget);
          if (either && one_case) return true;
          if (!either && !one_case) {
            proved = false;
            break;
          }
        }
        if (proved) return true;
        break;
      }
    }
    if (prove_by_shift(d, least)) return true;
    // floor(e/k): (e - k + 1)/k <= floor(e/k) <= e/k, everything scaled by k.
    for (std::size_t i = 0; i < all.size(); ++i) {
      const terms factors = factors_of(all[i].d);
      for (const dim_operand& f : factors) {
        if (kind(f.d) != dim_kind::floordiv || f.a != 1) continue;
        const dim others = divide_products(all[i].d, f.d);
        if (factors.size() > 1 && bounds(others).lo < 0) continue;
        const std::int64_t k = value(f.d);
        std::int64_t scaled_least = 0;
        if (!checked_mul(least, k, scaled_least)) continue;
        dim numerator = operand(f.d, 0).d;
        if (all[i].a > 0) numerator = add(numerator, 1 - k);
        terms scaled;
        bool fits = true;
        for (std::size_t j = 0; j < all.size(); ++j) {
          if (j == i) continue;
          std::int64_t c = 0;
          fits = fits && checked_mul(all[j].a, k, c);
          scaled.push_back({c, all[j].d});
        }
        if (!fits) continue;
        const dim relaxed = add(make_sum(scaled), mul(mul(others, numerator), all[i].a));
        // For integers, k*x >= k*(least-1) + 1 is enough.
        return prove_at_least(relaxed, scaled_least - k + 1, budget);
      }
    }
    return false;
  }
  constexpr dim replace_term(const terms& all, std::size_t at, dim with) {
    terms rest;
    for (std::size_t j = 0; j < all.size(); ++j)
      if (j != at) rest.push_back(all[j]);
    return add(make_sum(rest), mul(with, all[at].a));
  }
  // With every atom x written as lo + x', x' >= 0, are all coefficients but the constant >= 0 and
  // the constant >= least? Products are expanded; atoms without a lower bound end it.
  constexpr bool prove_by_shift(dim d, std::int64_t least) {
    const terms all = terms_of(d);
    // A term expands into all sub-products of its factors: (lo1 + x1)(lo2 + x2) ...
    small_vector<dim_operand, 6> sums;  // coefficient per product of primed atoms
    for (const dim_operand& t : all) {
      small_vector<dim_operand, 6> expanded;
      expanded.push_back({t.a, one_});
      const terms factors = factors_of(t.d);
      for (const dim_operand& f : factors) {
        const std::int64_t lo = bounds(f.d).lo;
        if (detail::is_infinite(lo)) return false;
        for (std::int64_t p = 0; p < f.a; ++p) {
          small_vector<dim_operand, 6> next;
          for (const dim_operand& e : expanded) {
            std::int64_t c = 0;
            if (!checked_mul(e.a, lo, c)) return false;
            if (c != 0) next.push_back({c, e.d});
            next.push_back({e.a, multiply_products(e.d, f.d)});
          }
          if (next.size() > 32) return false;
          expanded = next;
        }
      }
      for (const dim_operand& e : expanded) {
        bool found = false;
        for (dim_operand& s : sums)
          if (s.d == e.d) {
            if (!checked_add(s.a, e.a, s.a)) return false;
            found = true;
          }
        if (!found) sums.push_back(e);
      }
    }
    std::int64_t fixed = 0;
    for (const dim_operand& s : sums) {
      if (s.d == one_)
        fixed = s.a;
      else if (s.a < 0)
        return false;
    }
    return fixed >= least;
  }

  template <class Float>
  static constexpr Float floor_of(Float v) {
    if (!(v > Float(-9.2e18) && v < Float(9.2e18))) return v;
    const std::int64_t i = static_cast<std::int64_t>(v);
    const Float f = static_cast<Float>(i);
    return f > v ? f - Float(1) : f;
  }
  template <class Float>
  static constexpr Float apply(real_op op, Float x, Float y) {
    switch (op) {
      case real_op::literal:
      case real_op::from_int: return x;
      case real_op::add: return x + y;
      case real_op::sub: return x - y;
      case real_op::mul: return x * y;
      case real_op::div: return y == Float(0) ? Float(0) : x / y;
      case real_op::min: return y < x ? y : x;
      case real_op::max: return x < y ? y : x;
      case real_op::neg: return -x;
      case real_op::sqrt: return Float(0);  // never folded: evaluated by the size program
      case real_op::floor:
      case real_op::floor_int: return floor_of(x);
      case real_op::ceil:
      case real_op::ceil_int: return -floor_of(-x);
      case real_op::round:
      case real_op::round_int: {
        const Float f = floor_of(x);
        const Float rest = x - f;
        if (rest < Float(0.5)) return f;
        if (rest > Float(0.5)) return f + Float(1);
        return floor_of(f / Float(2)) * Float(2) == f ? f : f + Float(1);
      }
      case real_op::trunc_int: return x < Float(0) ? -floor_of(-x) : floor_of(x);
    }
    return x;
  }
  constexpr real_interval real_bounds(dim d) {
    if (kind(d) != dim_kind::real) {
      const interval r = bounds(d);
      return {r.lo == minus_infinity ? -1e300 : static_cast<double>(r.lo),
              r.hi == infinity ? 1e300 : static_cast<double>(r.hi)};
    }
    const real_op op = real_operation(d);
    if (op == real_op::literal) return {literal_value(d), literal_value(d)};
    const real_interval x = real_bounds(operand(d, 0).d);
    const real_interval y = operand_count(d) > 1 ? real_bounds(operand(d, 1).d) : real_interval{0, 0};
    const bool w = is_wide(d);
    // Rounding is monotone, so applying the operation to the ends bounds the result.
    auto both = [&](double a, double b) { return apply_real(op, w, a, b); };
    if (x.lo <= -1e299 || x.hi >= 1e299 || y.lo <= -1e299 || y.hi >= 1e299) {
      if (op == real_op::from_int && x.lo > -1e299) return {both(x.lo, 0), 1e300};
      if (op >= real_op::floor && x.lo > -1e299) return {both(x.lo, 0), 1e300};
      return {};
    }
    switch (op) {
      case real_op::sub: return {both(x.lo, y.hi), both(x.hi, y.lo)};
      case real_op::neg: return {-x.hi, -x.lo};
      case real_op::sqrt: return {0, x.hi > 1 ? x.hi : 1};
      case real_op::div:
        if (y.lo <= 0 && y.hi >= 0) return {};
        [[fallthrough]];
      case real_op::mul: {
        const double p = both(x.lo, y.lo), q = both(x.lo, y.hi), r = both(x.hi, y.lo), s = both(x.hi, y.hi);
        const double lo1 = p < q ? p : q, lo2 = r < s ? r : s, hi1 = p > q ? p : q, hi2 = r > s ? r : s;
        return {lo1 < lo2 ? lo1 : lo2, hi1 > hi2 ? hi1 : hi2};
      }
      default: return {both(x.lo, y.lo), both(x.hi, y.hi)};
    }
  }

  constexpr std::uint64_t hash_of(const node& n, std::span<const dim_operand> args) const {
    std::uint64_t h = hash_mix(static_cast<std::uint64_t>(n.kind) * 131 + n.op * 7 + (n.wide ? 1 : 0),
                               static_cast<std::uint64_t>(n.value));
    for (const dim_operand& o : args)
      h = hash_mix(hash_mix(h, static_cast<std::uint64_t>(o.a)), o.d.id);
    return h;
  }
  constexpr bool same(const node& n, std::span<const dim_operand> args, std::uint32_t id) const {
    const node& m = nodes_[id];
    if (m.kind != n.kind || m.op != n.op || m.wide != n.wide || m.value != n.value || m.count != args.size())
      return false;
    for (std::size_t i = 0; i < args.size(); ++i)
      if (!(operands_[m.first + i] == args[i])) return false;
    return true;
  }
  constexpr dim intern(node n, std::span<const dim_operand> args) {
    if (table_.size() < 2 * (nodes_.size() + 1)) rehash();
    const std::size_t mask = table_.size() - 1;
    std::size_t slot = hash_of(n, args) & mask;
    while (table_[slot] != 0) {
      if (same(n, args, table_[slot])) {
        const dim found{table_[slot]};
        // An atom that a fact replaced stands for its replacement from then on.
        return nodes_[found.id].replaced_by.is_known() && n.kind != dim_kind::symbol ? resolve(found) : found;
      }
      slot = (slot + 1) & mask;
    }
    n.first = static_cast<std::uint32_t>(operands_.size());
    n.count = static_cast<std::uint32_t>(args.size());
    operands_.append(args);
    const std::uint32_t id = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(n);
    table_[slot] = id;
    return {id};
  }
  constexpr void rehash() {
    const std::size_t size = table_.empty() ? 64 : table_.size() * 2;
    table_.assign(size, 0);
    for (std::uint32_t id = 3; id < nodes_.size(); ++id) {
      const std::span<const dim_operand> args{operands_.data() + nodes_[id].first, nodes_[id].count};
      std::size_t slot = hash_of(nodes_[id], args) & (size - 1);
      while (table_[slot] != 0) slot = (slot + 1) & (size - 1);
      table_[slot] = id;
    }
  }

  vector<node> nodes_;
  vector<dim_operand> operands_;
  vector<std::uint32_t> table_;
  vector<symbol_info> symbols_;
  vector<char> text_;
  dim zero_{}, one_{};
  std::uint32_t version_ = 0;
  std::uint64_t fresh_count_ = 0;
};

}  // namespace sod2
