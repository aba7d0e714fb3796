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

namespace detail {
// Outside the class, because clang instantiates them for constant expressions only there.
template <class Float>
constexpr Float floor_of(Float v) {
  if (!(v > Float(-9.2e18) && v < Float(9.2e18))) return v;
  const std::int64_t i = static_cast<std::int64_t>(v);
  const Float f = static_cast<Float>(i);
  return f > v ? f - Float(1) : f;
}
template <class Float>
constexpr Float apply_real(real_op op, Float x, Float y) {
  switch (op) {
    case real_op::literal:
    case real_op::from_int: return x;
    case real_op::add: return x + y;
    case real_op::sub: return x - y;
    case real_op::mul: return x * y;
    case real_op::div: return x / y;
    case real_op::min: return y < x ? y : x;
    case real_op::max: return x < y ? y : x;
    case real_op::neg: return -x;
    case real_op::sqrt: return Float(0);  // not a constant expression: size_program computes it
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
}  // namespace detail

class dim_context {
 public:
  /// Larger sums become unknown: no expression grows without bound.
  static constexpr std::size_t max_terms = 96;
  /// Powers above this, and atoms whose written-out form is larger than `max_weight`, become
  /// unknown.
  static constexpr std::int64_t max_power = 64;
  static constexpr std::uint32_t max_weight = 4096;
  /// Operands of one min or max.
  static constexpr std::size_t max_alternatives = 64;
  /// Rewrites and case splits that one proof may take.
  static constexpr int proof_budget = 160;

  constexpr dim_context() {
    for (int k = 0; k < 3; ++k) nodes_.push_back(make_node(static_cast<dim_kind>(k)));
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
    if (const std::int64_t known = find_symbol(name); known >= 0)
      return resolve(symbols_[static_cast<std::size_t>(known)].expr);
    const std::uint32_t index = new_symbol(name, symbol_origin::input, {facts.lo, facts.hi});
    if (facts.step > 1) make_strided(index, facts.step, facts.offset);
    return resolve(symbols_[index].expr);
  }
  /// A new bounded symbol that stands for a size known only later. `note` says where it came from.
  constexpr dim fresh(interval range, std::string_view note = {}) {
    char name[24] = "u";
    std::size_t n = 1;
    do {  // names of inputs are taken
      n = 1;
      char digits[20] = {};
      std::size_t count = 0;
      std::uint64_t v = fresh_count_++;
      do digits[count++] = static_cast<char>('0' + v % 10);
      while ((v /= 10) != 0);
      while (count > 0) name[n++] = digits[--count];
    } while (find_symbol({name, n}) >= 0);
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
  constexpr symbol_origin origin_of_symbol(std::uint32_t index) const {
    return symbols_[index].origin;
  }
  constexpr interval range_of_symbol(std::uint32_t index) const { return symbols_[index].range; }
  /// For a strided symbol: the input symbol, step and offset it was made from.
  constexpr std::uint32_t base_of_symbol(std::uint32_t index) const { return symbols_[index].base; }
  constexpr std::int64_t step_of_symbol(std::uint32_t index) const { return symbols_[index].step; }
  constexpr std::int64_t offset_of_symbol(std::uint32_t index) const {
    return symbols_[index].offset;
  }
  /// Index of a declared input symbol, or -1.
  constexpr std::int64_t find_symbol(std::string_view name) const {
    return find_name(name, symbol_origin::input);
  }
  /// Index of an inferred symbol, or -1.
  constexpr std::int64_t find_inferred(std::string_view name) const {
    return find_name(name, symbol_origin::inferred);
  }
  /// What the symbol currently stands for (itself, or what facts replaced it with).
  constexpr dim dim_of_symbol(std::uint32_t index) { return resolve(symbols_[index].expr); }
  /// The plain symbol node, before any replacement.
  constexpr dim atom_of_symbol(std::uint32_t index) const { return symbols_[index].expr; }

  // ---- facts -----------------------------------------------------------------------------------

  /// Narrows the range of an input or inferred symbol. False when nothing remains.
  constexpr bool assume_range(std::uint32_t symbol_index, interval range) {
    if (!narrow(symbol_index, range)) return false;
    // The hidden multiple of a strided symbol, and a symbol it was replaced by, narrow with it.
    const dim now = resolve(symbols_[symbol_index].expr);
    if (now == symbols_[symbol_index].expr) return true;
    if (!now.is_known()) return true;
    if (is_constant(now)) return symbols_[symbol_index].range.contains(value(now));
    return narrow_through(as_linear_symbol(now), symbols_[symbol_index].range) &&
           !meet(bounds(now), symbols_[symbol_index].range).empty();
  }
  /// Records `s = offset (mod step)`. False when that contradicts what is known.
  constexpr bool assume_divisible(std::uint32_t symbol_index, std::int64_t step,
                                  std::int64_t offset = 0) {
    if (step <= 1) return true;
    const dim now = resolve(symbols_[symbol_index].expr);
    if (!now.is_known()) return true;
    if (is_constant(now)) return floor_mod(value(now) - offset, step) == 0;
    const linear_symbol line = as_linear_symbol(now);
    if (line.symbol < 0)  // replaced by an expression: nothing to simplify
      return decide_divisible(sub(now, constant(offset)), step) != tri::no;
    // Solve scale*t + shift = offset (mod step) for t.
    const std::int64_t g = gcd(line.scale, step);
    const std::int64_t need = floor_mod(offset - line.offset, step);
    if (need % g != 0) return false;
    const std::int64_t modulus = step / g;
    if (modulus == 1) return true;
    // scale/g is invertible modulo step/g.
    const std::int64_t inverse = inverse_mod(floor_mod(line.scale / g, modulus), modulus);
    const std::int64_t r = mul_mod(need / g % modulus, inverse, modulus);
    return make_strided(static_cast<std::uint32_t>(line.symbol), modulus, r);
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
    terms all = terms_of(difference);
    std::int64_t content = 0;
    for (const dim_operand& t : all) content = gcd(content, t.a);
    if (content > 1)
      for (dim_operand& t : all) t.a /= content;
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
    if (!replacement.is_known()) return tri::unknown;
    // The replacement inherits the range of what it replaces.
    const interval old_range = bounds(chosen.d);
    if (meet(old_range, bounds(replacement)).empty()) return tri::no;
    nodes_[chosen.d.id].replaced_by = replacement;
    touch(chosen.d);
    return to_tri(narrow_through(as_linear_symbol(replacement), old_range));
  }
  /// Grows whenever a fact changes what expressions simplify to.
  constexpr std::uint32_t version() const { return version_; }
  /// The canonical form under all facts learned so far.
  constexpr dim resolve(dim d) {
    if (version_ == 0 || !d.is_known() || nodes_[d.id].resolved_version == version_)
      return version_ == 0 || !d.is_known() ? d : nodes_[d.id].resolved;
    return resolve_again(d);
  }

  // ---- building --------------------------------------------------------------------------------

  constexpr dim constant(std::int64_t v) { return intern(make_node(dim_kind::constant, v), {}); }
  constexpr dim add(dim a, dim b) { return combine(a, b, 1); }
  constexpr dim sub(dim a, dim b) { return combine(a, b, -1); }
  constexpr dim neg(dim a) { return combine(zero_, a, -1); }
  constexpr dim mul(dim a, dim b) {
    if (const dim bad = poison(a, b); bad.id != no_poison) return bad;
    return multiply(resolve(a), resolve(b));
  }
  constexpr dim mul(dim a, std::int64_t k) { return mul(a, constant(k)); }
  constexpr dim add(dim a, std::int64_t k) { return add(a, constant(k)); }
  constexpr dim sub(dim a, std::int64_t k) { return sub(a, constant(k)); }
  constexpr dim min(dim a, std::int64_t k) { return min(a, constant(k)); }
  constexpr dim max(dim a, std::int64_t k) { return max(a, constant(k)); }
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
    rest.reserve(all.size());
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
    // floor((floor(e/m) + p)/k) = floor((e + m*p)/(m*k)) when the inner division stands alone; the
    // same for its negative, since -floor(e/m) = floor((m - 1 - e)/m).
    std::size_t nested = rest.size();
    bool alone = true;
    for (std::size_t i = 0; i < rest.size(); ++i)
      if (kind(rest[i].d) == dim_kind::floordiv) {
        alone = nested == rest.size();
        nested = i;
      }
    if (nested != rest.size() && alone && (rest[nested].a == 1 || rest[nested].a == divisor - 1)) {
      const dim atom = rest[nested].d;
      // With divisor 2 both signs fit: keep the one that was written.
      bool minus = rest[nested].a != 1;
      if (divisor == 2)
        for (const dim_operand& t : all) minus = minus || (t.d == atom && t.a < 0);
      const std::int64_t m = nodes_[atom.id].value;
      terms others;
      for (std::size_t i = 0; i < rest.size(); ++i)
        if (i != nested) others.push_back(rest[i]);
      others.push_back({shift, one_});
      const dim e = operand(atom, 0).d;
      dim numerator = mul(make_sum(others), m);
      numerator = minus ? add(sub(numerator, e), m - 1) : add(numerator, e);
      std::int64_t product = 0;
      if (numerator.is_known() && checked_mul(divisor, m, product)) {
        if (minus) quotient.push_back({1, atom});
        return add(make_sum(quotient), floordiv(numerator, product));
      }
    }
    // One spelling for floor and ceil: the leading coefficient takes its smaller magnitude;
    // floor(-e/k) = -floor((e + k - 1)/k).
    bool negated = false;
    if (rest[0].a > divisor - rest[0].a) {
      for (dim_operand& t : rest) {
        // c*t = divisor*t - f*t with f = divisor - c: whole multiples go to the quotient.
        quotient.push_back({1, t.d});
        t.a = divisor - t.a;
      }
      shift = divisor - 1 - shift;
      negated = true;
    }
    rest.push_back({shift, one_});
    const dim numerator = make_sum(rest);
    if (!numerator.is_known()) return numerator;
    const interval range = bounds(numerator);
    dim core{};
    if (!detail::is_infinite(range.lo) && !detail::is_infinite(range.hi) &&
        floor_div(range.lo, divisor) == floor_div(range.hi, divisor))
      core = constant(floor_div(range.lo, divisor));
    else
      core = make_floordiv(numerator, divisor);
    if (negated) core = neg(core);
    return add(make_sum(quotient), core);
  }
  constexpr dim ceildiv(dim a, std::int64_t k) { return floordiv(add(a, k - 1), k); }
  constexpr dim mod(dim a, std::int64_t k) { return sub(a, mul(floordiv(a, k), k)); }
  constexpr dim align_up(dim a, std::int64_t k) { return mul(ceildiv(a, k), k); }
  constexpr dim min(dim a, dim b) { return extremum(dim_kind::min, a, b); }
  constexpr dim max(dim a, dim b) { return extremum(dim_kind::max, a, b); }
  /// The largest of `all`, where the caller has dropped what others reach: nothing is proved here,
  /// so that a long list costs no more than it must. At least one.
  constexpr dim max_of(std::span<const dim> all) {
    small_vector<dim, 4> list;
    for (dim d : all) {
      d = resolve(d);
      if (!d.is_known()) return d;
      collect(dim_kind::max, d, list);
    }
    return list.size() > max_alternatives ? dim::unknown() : make_list(dim_kind::max, list);
  }
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
  /// A floating-point operation; `wide` selects float64, else float32. Folds constants in IEEE
  /// where the result is an ordinary number.
  constexpr dim real(real_op op, bool wide, std::span<const dim> given) {
    small_vector<dim, 2> args;
    for (dim a : given) {
      const dim now = a.is_known() ? resolve(a) : a;
      if (!now.is_known()) return now;
      args.push_back(now);
    }
    bool folded = op != real_op::sqrt;
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
                               : static_cast<double>(static_cast<float>(value(args[0]))),
                          wide);
    if (folded && foldable(op, wide, in[0], in[1])) {
      const double r = apply_real(op, wide, in[0], in[1]);
      if (is_integer_valued(op)) {
        if (!(r >= -9.2e18 && r <= 9.2e18)) return dim::overflow();
        return constant(static_cast<std::int64_t>(r));
      }
      return real_literal(r, wide);
    }
    const bool same_width = kind(args[0]) == dim_kind::real && is_wide(args[0]) == wide;
    if ((op == real_op::mul || op == real_op::div) && same_width && is_real_literal(args[1]) &&
        literal_value(args[1]) == 1.0)
      return args[0];
    if ((op == real_op::add || op == real_op::sub) && same_width && is_real_literal(args[1]) &&
        literal_value(args[1]) == 0.0)
      return args[0];
    if (is_integer_valued(op)) {
      // What is not negative is cut off downwards; one form for both.
      if (op == real_op::trunc_int && real_bounds(args[0]).lo >= 0) op = real_op::floor_int;
      const dim whole = exact_integer(op, args[0]);
      if (whole.is_known()) return whole;
    }
    small_vector<dim_operand, 4> operands;
    for (dim a : args) operands.push_back({0, a});
    node n = make_node(dim_kind::real);
    n.op = static_cast<std::uint8_t>(op);
    n.wide = wide;
    return intern_atom(n, operands);
  }
  constexpr dim real_literal(double v, bool wide) {
    node n = make_node(dim_kind::real, std::bit_cast<std::int64_t>(v));
    n.op = static_cast<std::uint8_t>(real_op::literal);
    n.wide = wide;
    return intern(n, {});
  }

  /// d with every occurrence of an atom (a symbol, or a compound one) replaced by another
  /// expression. A symbol with a stride is put in as if `with` had it too; one that facts replaced
  /// by a larger expression cannot be put in anywhere: unknown.
  constexpr dim substitute(dim d, dim atom, dim with) {
    d = resolve(d);
    atom = resolve(atom);
    with = resolve(with);
    if (!d.is_known() || !atom.is_known() || !with.is_known()) return d.is_known() ? with : d;
    if (!is_atom(atom)) {
      const linear_symbol line = as_linear_symbol(atom);
      if (line.symbol < 0 || line.scale <= 0) return d == atom ? with : dim::unknown();
      const dim hidden = symbols_[static_cast<std::size_t>(line.symbol)].expr;
      return substitute(d, hidden, floordiv(sub(with, line.offset), line.scale));
    }
    if (!contains(d, atom)) return d;
    if (d == atom) return with;
    const std::size_t n = operand_count(d);
    switch (kind(d)) {
      case dim_kind::sum: {
        dim out = zero_;
        for (std::size_t i = 0; i < n; ++i) {
          const dim_operand o = operand(d, i);
          out = add(out, mul(substitute(o.d, atom, with), o.a));
        }
        return out;
      }
      case dim_kind::product: {
        dim out = one_;
        for (std::size_t i = 0; i < n; ++i) {
          const dim_operand o = operand(d, i);
          const dim factor = substitute(o.d, atom, with);
          for (std::int64_t p = 0; p < o.a; ++p) out = mul(out, factor);
        }
        return out;
      }
      case dim_kind::floordiv: return floordiv(substitute(operand(d, 0).d, atom, with), value(d));
      case dim_kind::min:
      case dim_kind::max:
      case dim_kind::broadcast: {
        const dim_kind k = kind(d);
        dim out = substitute(operand(d, 0).d, atom, with);
        for (std::size_t i = 1; i < n; ++i) {
          const dim next = substitute(operand(d, i).d, atom, with);
          out = k == dim_kind::min   ? min(out, next)
                : k == dim_kind::max ? max(out, next)
                                     : broadcast(out, next);
        }
        return out;
      }
      case dim_kind::real: {
        small_vector<dim, 4> args;
        for (std::size_t i = 0; i < n; ++i) args.push_back(substitute(operand(d, i).d, atom, with));
        return real(real_operation(d), is_wide(d), args);
      }
      default: return d;
    }
  }
  /// The x for which d == value, where d contains the symbol x once and linearly, or below floor
  /// divisions: floordiv(x + 3, 2) == v gives 2*v - 3 .. 2*v - 2. `lo` and `hi` are the smallest
  /// and the largest x; false when d is not of that form. This is how backward rules invert a size.
  constexpr bool solve(dim d, dim x, dim value_of_d, dim& lo, dim& hi) {
    d = resolve(d);
    x = resolve(x);
    lo = hi = resolve(value_of_d);
    if (!d.is_known() || !x.is_known() || !lo.is_known() || contains(lo, x)) return false;
    for (int depth = 0; depth < 16; ++depth) {
      if (d == x) return lo.is_known() && hi.is_known();
      if (kind(d) == dim_kind::floordiv) {
        // floor(e/k) = v: k*v <= e <= k*v + k - 1.
        const std::int64_t k = value(d);
        lo = mul(lo, k);
        hi = add(mul(hi, k), k - 1);
        d = operand(d, 0).d;
        continue;
      }
      const terms all = terms_of(d);
      std::size_t at = all.size();
      dim rest = zero_;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!contains(all[i].d, x)) {
          rest = add(rest, mul(all[i].d, all[i].a));
        } else if (at != all.size() || !is_atom(all[i].d)) {
          return false;
        } else {
          at = i;
        }
      }
      if (at == all.size()) return false;
      lo = sub(lo, rest);
      hi = sub(hi, rest);
      std::int64_t c = all[at].a;
      if (c < 0) {
        const dim other = neg(lo);
        lo = neg(hi);
        hi = other;
        c = -c;
      }
      // c*y in lo .. hi.
      lo = ceildiv(lo, c);
      hi = floordiv(hi, c);
      d = all[at].d;
    }
    return false;
  }

  // ---- looking at expressions ------------------------------------------------------------------

  constexpr dim_kind kind(dim d) const { return nodes_[d.id].kind; }
  constexpr bool is_constant(dim d) const { return kind(d) == dim_kind::constant; }
  /// Requires a constant (or, for floordiv, gives the divisor).
  constexpr std::int64_t value(dim d) const { return nodes_[d.id].value; }
  constexpr std::uint32_t symbol_index(dim d) const {
    return static_cast<std::uint32_t>(nodes_[d.id].value);
  }
  constexpr std::size_t operand_count(dim d) const { return nodes_[d.id].count; }
  constexpr dim_operand operand(dim d, std::size_t i) const {
    return operands_[nodes_[d.id].first + i];
  }
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
  /// Memory of all expressions and symbols, in bytes.
  constexpr std::size_t memory_bytes() const {
    return nodes_.size() * sizeof(node) + operands_.size() * sizeof(dim_operand) +
           table_.size() * sizeof(std::uint32_t) + symbols_.size() * sizeof(symbol_info) +
           text_.size();
  }
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
    dim_operand one_a[1], one_b[1];
    const operands_view x = term_view(a, one_a), y = term_view(b, one_b);
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
    if (const std::uint32_t known_at = nodes_[d.id].bounds_version;
        known_at != 0 && !changed_since(known_at - 1, nodes_[d.id].mask)) {
      nodes_[d.id].bounds_version = version_ + 1;
      return nodes_[d.id].range;
    }
    interval out{};
    switch (kind(d)) {
      case dim_kind::symbol: out = symbols_[symbol_index(d)].range; break;
      case dim_kind::sum: {
        out = interval::point(0);
        for (std::size_t i = 0; i < operand_count(d); ++i)
          out = out + interval::point(operand(d, i).a) * bounds(operand(d, i).d);
        out = meet(out, correlated_bounds(d));
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
          // Broadcast is the larger one, unless a dim is 0.
          out = kind(d) == dim_kind::min                                    ? sod2::min(out, next)
                : kind(d) == dim_kind::max || (out.lo >= 1 && next.lo >= 1) ? sod2::max(out, next)
                                                                            : hull(out, next);
        }
        break;
      }
      case dim_kind::real: {
        const real_interval r = real_bounds(d);
        out = {
            r.lo <= -9.2e18 ? minus_infinity : static_cast<std::int64_t>(r.lo) - (r.lo < 0 ? 1 : 0),
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
    if (prove_at_least(difference, 1, budget) || prove_at_least(neg(difference), 1, budget))
      return tri::no;
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
    if (k == 1) return tri::yes;
    d = resolve(d);
    if (!d.is_known()) return tri::unknown;
    if (is_multiple(d, k)) return tri::yes;
    const dim rest = mod(d, k);
    if (!rest.is_known()) return tri::unknown;
    return decide_eq(rest, zero_);
  }

  /// Integer-valued operations of `real` nodes.
  static constexpr bool is_integer_valued(real_op op) { return op >= real_op::floor_int; }
  /// One IEEE operation in the given width; used by folding, evaluation and tests alike.
  static constexpr double apply_real(real_op op, bool wide, double x, double y) {
    if (wide) return detail::apply_real<double>(op, x, y);
    return static_cast<double>(
        detail::apply_real<float>(op, static_cast<float>(x), static_cast<float>(y)));
  }

 private:
  using terms = small_vector<dim_operand, 6>;
  using operands_view = std::span<const dim_operand>;
  static constexpr std::uint32_t no_poison = 0xffffffff;

  struct node {
    dim_kind kind = dim_kind::undefined;
    std::uint8_t op = 0;
    bool wide = false;
    std::uint32_t first = 0, count = 0;
    std::uint32_t weight = 1;  // size when written out
    dim replaced_by{};         // atoms: what a fact made of it
    std::int64_t value = 0;    // constant, symbol index, divisor, literal bits
    std::uint64_t mask = 0;    // one bit an atom below (shared by hash): what a fact may concern
    interval range{};
    std::uint32_t bounds_version = 0;  // version + 1 for which `range` holds
    dim resolved{};
    std::uint32_t resolved_version = 0;
  };
  static constexpr node make_node(dim_kind kind, std::int64_t value = 0) {
    node n;
    n.kind = kind;
    n.value = value;
    return n;
  }
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
    s.expr = intern(make_node(dim_kind::symbol, index), {});
    symbols_.push_back(s);
    if (origin != symbol_origin::strided) {
      if (names_.size() < 2 * (symbols_.size() + 1))
        rehash_names();
      else
        insert_name(index);
    }
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
    touch(symbols_[index].expr);
    return true;
  }
  // Every fact goes through here: what it concerns is looked at anew, the rest keeps its memo.
  constexpr void touch(dim atom) {
    changes_.push_back(nodes_[atom.id].mask);
    ++version_;
  }
  constexpr bool changed_since(std::uint32_t version, std::uint64_t mask) const {
    for (std::size_t i = version; i < changes_.size(); ++i)
      if ((changes_[i] & mask) != 0) return true;
    return false;
  }
  // False when no value remains.
  constexpr bool narrow(std::uint32_t index, interval range) {
    symbol_info& s = symbols_[index];
    const interval both = meet(s.range, range);
    if (both == s.range) return true;
    s.range = both;
    touch(s.expr);
    return !both.empty();
  }
  // line = scale*t + offset lies in `range`: narrows t. False when no value remains.
  constexpr bool narrow_through(linear_symbol line, interval range) {
    if (line.symbol < 0 || line.scale == 0) return true;
    const interval shifted = range - interval::point(line.offset);
    const interval up = line.scale > 0 ? shifted : -shifted;
    const std::int64_t scale = line.scale > 0 ? line.scale : -line.scale;
    interval wanted{};
    if (!detail::is_infinite(up.lo)) wanted.lo = ceil_div(up.lo, scale);
    if (!detail::is_infinite(up.hi)) wanted.hi = floor_div(up.hi, scale);
    return narrow(static_cast<std::uint32_t>(line.symbol), wanted);
  }
  // a*b mod m without overflow, by doubling. 0 <= a, b < m.
  static constexpr std::int64_t mul_mod(std::int64_t a, std::int64_t b, std::int64_t m) {
    std::int64_t out = 0;
    for (; b > 0; b /= 2) {
      if (b % 2 != 0) out = out >= m - a ? out - (m - a) : out + a;
      a = a >= m - a ? a - (m - a) : a + a;
    }
    return out;
  }
  // x with a*x = 1 (mod m), where gcd(a, m) = 1 and m > 1.
  static constexpr std::int64_t inverse_mod(std::int64_t a, std::int64_t m) {
    std::int64_t r0 = m, r1 = a, t0 = 0, t1 = 1;
    while (r1 != 0) {
      const std::int64_t q = r0 / r1;
      const std::int64_t r2 = r0 - q * r1, t2 = t0 - q * t1;
      r0 = r1;
      r1 = r2;
      t0 = t1;
      t1 = t2;
    }
    return floor_mod(t0, m);
  }

  constexpr std::int64_t find_name(std::string_view name, symbol_origin origin) const {
    if (names_.empty()) return -1;
    const std::size_t mask = names_.size() - 1;
    for (std::size_t slot = hash_text(name) & mask; names_[slot] != 0; slot = (slot + 1) & mask)
      if (symbols_[names_[slot] - 1].origin == origin && name_of_symbol(names_[slot] - 1) == name)
        return names_[slot] - 1;
    return -1;
  }
  constexpr void insert_name(std::uint32_t index) {
    const std::size_t mask = names_.size() - 1;
    std::size_t slot = hash_text(name_of_symbol(index)) & mask;
    while (names_[slot] != 0) slot = (slot + 1) & mask;
    names_[slot] = index + 1;
  }
  constexpr void rehash_names() {
    names_.assign(names_.empty() ? 16 : names_.size() * 2, 0);
    for (std::uint32_t i = 0; i < symbols_.size(); ++i)
      if (symbols_[i].origin != symbol_origin::strided) insert_name(i);
  }

  constexpr dim resolve_again(dim d) {
    const dim memo = nodes_[d.id].resolved;
    if (memo.is_known() &&
        !changed_since(nodes_[d.id].resolved_version, nodes_[d.id].mask | nodes_[memo.id].mask)) {
      nodes_[d.id].resolved_version = version_;
      return memo;
    }
    // Rebuilding an expression may meet the expression itself: it stands for itself meanwhile.
    nodes_[d.id].resolved = d;
    nodes_[d.id].resolved_version = version_;
    dim out = rebuild(d);
    // Too large with the facts put in: as it stood it is still true, unless it needs them to be
    // bound.
    if (out.is_unknown() && only_input_symbols(d)) out = d;
    nodes_[d.id].resolved = out;
    return out;
  }
  constexpr dim rebuild(dim d) {
    const dim_kind k = kind(d);
    const std::size_t n = operand_count(d);
    if (nodes_[d.id].replaced_by.is_known()) return resolve(nodes_[d.id].replaced_by);
    switch (k) {
      case dim_kind::sum: {
        terms list;
        bool changed = false;
        for (std::size_t i = 0; i < n; ++i) {
          const dim_operand o = operand(d, i);
          const dim now = resolve(o.d);
          changed = changed || now != o.d;
          if (!now.is_known()) return now;
          dim_operand one[1];
          for (const dim_operand& t : term_view(now, one)) {
            std::int64_t c = 0;
            if (!checked_mul(t.a, o.a, c)) return dim::overflow();
            list.push_back({c, t.d});
          }
        }
        return changed ? make_sum(list) : d;
      }
      case dim_kind::product: {
        dim acc = one_;
        bool changed = false;
        for (std::size_t i = 0; i < n; ++i) {
          const dim_operand o = operand(d, i);
          const dim now = resolve(o.d);
          changed = changed || now != o.d;
          for (std::int64_t p = 0; p < o.a; ++p) acc = multiply(acc, now);
        }
        return changed ? acc : d;
      }
      case dim_kind::floordiv: return floordiv(resolve(operand(d, 0).d), nodes_[d.id].value);
      case dim_kind::min:
      case dim_kind::max:
      case dim_kind::broadcast: {
        dim out = resolve(operand(d, 0).d);
        for (std::size_t i = 1; i < n; ++i) {
          const dim next = resolve(operand(d, i).d);
          out = k == dim_kind::min   ? min(out, next)
                : k == dim_kind::max ? max(out, next)
                                     : broadcast(out, next);
        }
        return out;
      }
      case dim_kind::real: {
        if (real_operation(d) == real_op::literal) return d;
        small_vector<dim, 4> args;
        for (std::size_t i = 0; i < n; ++i) args.push_back(operand(d, i).d);
        return real(real_operation(d), is_wide(d), args);
      }
      default: return d;
    }
  }
  // d as scale*symbol + offset, if it is that.
  constexpr linear_symbol as_linear_symbol(dim d) const {
    dim_operand one[1];
    const operands_view all = term_view(d, one);
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
    if ((nodes_[d.id].mask & nodes_[atom.id].mask) != nodes_[atom.id].mask) return false;
    for (std::size_t i = 0; i < operand_count(d); ++i)
      if (contains(operand(d, i).d, atom)) return true;
    return false;
  }

  // A canonical expression as terms, leading first, the constant last.
  constexpr terms terms_of(dim d) const {
    dim_operand one[1];
    const operands_view view = term_view(d, one);
    terms out;
    out.append(view);
    return out;
  }
  // The same without a copy: valid until something is interned; `one` keeps a single term.
  constexpr operands_view term_view(dim d, dim_operand (&one)[1]) const {
    const node& n = nodes_[d.id];
    if (n.kind == dim_kind::sum) return {operands_.data() + n.first, n.count};
    if (n.kind == dim_kind::constant) {
      one[0] = {n.value, one_};
      return {one, n.value == 0 ? std::size_t{0} : std::size_t{1}};
    }
    one[0] = {1, d};
    return {one, 1};
  }
  constexpr operands_view factor_view(dim product, dim_operand (&one)[1]) const {
    const node& n = nodes_[product.id];
    if (n.kind == dim_kind::product) return {operands_.data() + n.first, n.count};
    one[0] = {1, product};
    return {one, product == one_ ? std::size_t{0} : std::size_t{1}};
  }
  constexpr dim combine(dim a, dim b, std::int64_t sign) {
    if (const dim bad = poison(a, b); bad.id != no_poison) return bad;
    a = resolve(a);
    b = resolve(b);
    if (const dim bad = poison(a, b); bad.id != no_poison) return bad;
    if (b == zero_) return a;
    if (a == zero_ && sign == 1) return b;
    dim_operand one_a[1], one_b[1];
    return merge_terms(term_view(a, one_a), term_view(b, one_b), sign);
  }
  // x + scale*y; both sorted, neither empty terms.
  constexpr dim merge_terms(operands_view x, operands_view y, std::int64_t scale) {
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
      if (!checked_mul(y[j].a, scale, scaled)) return dim::overflow();
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
    stable_sort(list.begin(), list.end(), [this](const dim_operand& a, const dim_operand& b) {
      return compare_products(a.d, b.d) < 0;
    });
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
    const dim shorter = complete(list);
    return shorter.is_undefined() ? intern(make_node(dim_kind::sum), list) : shorter;
  }
  // Sums of whole families: floor(e/k) + floor((e+1)/k) + ... + floor((e+k-1)/k) = e (Hermite), as
  // interleaved slices give them; min(a,b) + max(a,b) = a + b. Undefined when there is none.
  constexpr dim complete(const terms& list) {
    std::size_t divisions = 0, least = 0, greatest = 0;
    for (const dim_operand& t : list) {
      const dim_kind k = kind(t.d);
      divisions += k == dim_kind::floordiv ? 1 : 0;
      least += k == dim_kind::min ? 1 : 0;
      greatest += k == dim_kind::max ? 1 : 0;
    }
    if (divisions < 2 && (least == 0 || greatest == 0)) return dim::undefined();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const dim_kind kind_i = kind(list[i].d);
      small_vector<std::size_t, 6> family;
      dim total{};
      if (kind_i == dim_kind::floordiv) {
        const std::int64_t k = value(list[i].d);
        if (k > static_cast<std::int64_t>(divisions)) continue;
        family.push_back(i);
        const dim e = operand(list[i].d, 0).d;
        for (std::int64_t step = 1; step < k; ++step)
          for (std::size_t j = 0; j < list.size(); ++j)
            if (list[j].a == list[i].a && kind(list[j].d) == dim_kind::floordiv &&
                value(list[j].d) == k && operand(list[j].d, 0).d == add(e, step))
              family.push_back(j);
        if (family.size() != static_cast<std::size_t>(k)) continue;
        total = e;
      } else if (kind_i == dim_kind::min && operand_count(list[i].d) == 2) {
        for (std::size_t j = 0; j < list.size(); ++j)
          if (list[j].a == list[i].a && kind(list[j].d) == dim_kind::max &&
              operand_count(list[j].d) == 2 && operand(list[j].d, 0).d == operand(list[i].d, 0).d &&
              operand(list[j].d, 1).d == operand(list[i].d, 1).d)
            family.push_back(j);
        if (family.empty()) continue;
        family.push_back(i);
        total = add(operand(list[i].d, 0).d, operand(list[i].d, 1).d);
      } else {
        continue;
      }
      terms rest;
      for (std::size_t j = 0; j < list.size(); ++j) {
        bool used = false;
        for (std::size_t f : family) used = used || f == j;
        if (!used) rest.push_back(list[j]);
      }
      return add(make_sum(rest), mul(total, list[i].a));
    }
    return dim::undefined();
  }
  constexpr terms factors_of(dim product) const {
    dim_operand one[1];
    const operands_view view = factor_view(product, one);
    terms out;
    out.append(view);
    return out;
  }
  constexpr dim make_product(const terms& factors) {
    if (factors.empty()) return one_;
    if (factors.size() == 1 && factors[0].a == 1) return factors[0].d;
    return intern(make_node(dim_kind::product), factors);
  }
  constexpr dim multiply_products(dim a, dim b) {
    if (a == one_) return b;
    if (b == one_) return a;
    dim_operand one_a[1], one_b[1];
    const operands_view x = factor_view(a, one_a), y = factor_view(b, one_b);
    terms out;
    std::size_t i = 0, j = 0;
    while (i < x.size() || j < y.size()) {
      const int c = i == x.size() ? 1 : j == y.size() ? -1 : compare_atoms(x[i].d, y[j].d);
      if (c < 0) {
        out.push_back(x[i++]);
      } else if (c > 0) {
        out.push_back(y[j++]);
      } else {
        if (x[i].a + y[j].a > max_power) return dim::unknown();
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
    dim_operand one_a[1], one_b[1];
    const operands_view x = factor_view(a, one_a), y = factor_view(b, one_b);
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
    const dim_operand args[1] = {{0, numerator}};
    return intern_atom(make_node(dim_kind::floordiv, k), args);
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
    return intern_atom(make_node(k), args);
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
    if (list.size() > max_alternatives) return dim::unknown();
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
    // Work grows with the number of terms, and so does its price.
    if (!d.is_known() || (budget -= 1 + static_cast<int>(term_count(d)) / 4) < 0) return false;
    const interval range = bounds(d);
    if (range.lo >= least) return true;
    if (range.hi < least) return false;
    const terms all = terms_of(d);
    // The budget cannot pay for splitting a long sum to its end.
    if (all.size() > 24) return prove_by_shift(d, least);
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
  // Divides term by term, factor by factor; extremes are multiples when all their operands are.
  constexpr bool is_multiple(dim d, std::int64_t k) const {
    if (k == 1) return true;
    switch (kind(d)) {
      case dim_kind::constant: return value(d) % k == 0;
      case dim_kind::sum:
        for (std::size_t i = 0; i < operand_count(d); ++i)
          if (!is_multiple(operand(d, i).d, k / gcd(k, operand(d, i).a))) return false;
        return true;
      case dim_kind::product:
        for (std::size_t i = 0; i < operand_count(d) && k > 1; ++i) {
          const std::int64_t g = atom_multiple(operand(d, i).d, k);
          for (std::int64_t p = 0; p < operand(d, i).a; ++p) k /= gcd(k, g);
        }
        return k == 1;
      default: return atom_multiple(d, k) == k;
    }
  }
  // A divisor of k that divides the atom.
  constexpr std::int64_t atom_multiple(dim d, std::int64_t k) const {
    if (kind(d) != dim_kind::min && kind(d) != dim_kind::max && kind(d) != dim_kind::broadcast)
      return 1;
    std::int64_t common = k;
    for (std::size_t i = 0; i < operand_count(d); ++i) {
      const dim e = operand(d, i).d;
      dim_operand one[1];
      std::int64_t g = k;
      for (const dim_operand& t : term_view(e, one)) g = gcd(g, t.a);
      common = gcd(common, g);
    }
    return common;
  }
  constexpr dim replace_term(const terms& all, std::size_t at, dim with) {
    if (!with.is_known()) return with;
    terms rest;
    rest.reserve(all.size());
    for (std::size_t j = 0; j < all.size(); ++j)
      if (j != at) rest.push_back(all[j]);
    dim_operand one[1];
    return merge_terms(rest.view(), term_view(with, one), all[at].a);
  }
  // Range of a sum in which a floor division meets its own numerator, as in H - 3*floordiv(H, 3):
  // k*floor(e/k) = e - r with 0 <= r < k, and equal terms cancel.
  constexpr interval correlated_bounds(dim d) {
    interval out{};
    const std::size_t n = operand_count(d);
    if (n > 8) return out;
    for (std::size_t i = 0; i < n; ++i) {
      const dim_operand o = operand(d, i);
      if (kind(o.d) != dim_kind::floordiv) continue;
      const std::int64_t k = value(o.d);
      const dim e = operand(o.d, 0).d;
      const dim rest = sub(d, mul(o.d, o.a));
      const dim scaled = add(mul(rest, k), mul(e, o.a));
      if (!scaled.is_known() || term_count(scaled) >= term_count(rest) + term_count(e)) continue;
      const interval whole = bounds(scaled) - interval::point(o.a) * interval{0, k - 1};
      out = meet(out, {detail::is_infinite(whole.lo) ? whole.lo : ceil_div(whole.lo, k),
                       detail::is_infinite(whole.hi) ? whole.hi : floor_div(whole.hi, k)});
    }
    return out;
  }
  // Without the constant.
  constexpr std::size_t term_count(dim d) const {
    dim_operand one[1];
    const operands_view all = term_view(d, one);
    return all.size() - (!all.empty() && all.back().d == one_ ? 1 : 0);
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
            const dim grown = multiply_products(e.d, f.d);
            if (!grown.is_known()) return false;
            next.push_back({e.a, grown});
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

  // Folding stays away from infinities and NaN: constant expressions may not hold them.
  static constexpr bool foldable(real_op op, bool wide, double x, double y) {
    const double large = wide ? 1e150 : 1e18;
    if (!(x > -large && x < large && y > -large && y < large)) return false;
    return op != real_op::div || y > 1 / large || y < -1 / large;
  }
  // An integer that passes exactly through floating point: floor(f32(e)) = e, floor(f32(e)*2.0) =
  // 2*e, floor(f32(e)/3.0) = floordiv(e, 3) while everything fits the significand. Undefined
  // otherwise.
  constexpr dim exact_integer(real_op op, dim arg) {
    if (kind(arg) != dim_kind::real) return dim::undefined();
    const bool wide = is_wide(arg);
    const std::int64_t exact = wide ? (std::int64_t{1} << 53) : (std::int64_t{1} << 24);
    real_op outer = real_operation(arg);
    dim inner = arg;
    std::int64_t k = 1;
    if (outer == real_op::mul || outer == real_op::div) {
      const dim factor = operand(arg, 1).d;
      if (!is_real_literal(factor)) return dim::undefined();
      double c = literal_value(factor);
      if (outer == real_op::mul && c > 0 && c < 1 && power_of_two(1 / c)) {
        c = 1 / c;
        outer = real_op::div;
      }
      if (!(c >= 1 && c <= 1e6) || static_cast<double>(static_cast<std::int64_t>(c)) != c)
        return dim::undefined();
      k = static_cast<std::int64_t>(c);
      inner = operand(arg, 0).d;
      if (kind(inner) != dim_kind::real || is_wide(inner) != wide) return dim::undefined();
    }
    if (real_operation(inner) != real_op::from_int) return dim::undefined();
    const dim e = operand(inner, 0).d;
    if (is_real_valued(e)) return dim::undefined();
    const interval r = bounds(e);
    if (outer != real_op::div) {
      if (r.lo < -exact / k || r.hi > exact / k) return dim::undefined();
      return mul(e, k);
    }
    if (r.lo < 0 || r.hi > exact - k) return dim::undefined();
    if (op == real_op::ceil_int) return ceildiv(e, k);
    return op == real_op::round_int ? dim::undefined() : floordiv(e, k);
  }
  static constexpr bool power_of_two(double v) {
    for (double p = 1; p <= 1e6; p *= 2)
      if (p == v) return true;
    return false;
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
    const real_interval y =
        operand_count(d) > 1 ? real_bounds(operand(d, 1).d) : real_interval{0, 0};
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
        const double p = both(x.lo, y.lo), q = both(x.lo, y.hi), r = both(x.hi, y.lo),
                     s = both(x.hi, y.hi);
        const double lo1 = p < q ? p : q, lo2 = r < s ? r : s, hi1 = p > q ? p : q,
                     hi2 = r > s ? r : s;
        return {lo1 < lo2 ? lo1 : lo2, hi1 > hi2 ? hi1 : hi2};
      }
      default: return {both(x.lo, y.lo), both(x.hi, y.hi)};
    }
  }

  constexpr std::uint64_t hash_of(const node& n, std::span<const dim_operand> args) const {
    std::uint64_t h =
        hash_mix(static_cast<std::uint64_t>(n.kind) * 131 + n.op * 7 + (n.wide ? 1 : 0),
                 static_cast<std::uint64_t>(n.value));
    for (const dim_operand& o : args)
      h = hash_mix(hash_mix(h, static_cast<std::uint64_t>(o.a)), o.d.id);
    return h;
  }
  constexpr bool same(const node& n, std::span<const dim_operand> args, std::uint32_t id) const {
    const node& m = nodes_[id];
    if (m.kind != n.kind || m.op != n.op || m.wide != n.wide || m.value != n.value ||
        m.count != args.size())
      return false;
    for (std::size_t i = 0; i < args.size(); ++i)
      if (!(operands_[m.first + i] == args[i])) return false;
    return true;
  }
  // Atoms nest, so that their size is capped.
  constexpr dim intern_atom(const node& n, std::span<const dim_operand> args) {
    std::uint32_t weight = 1;
    for (const dim_operand& o : args) weight += nodes_[o.d.id].weight;
    return weight > max_weight ? dim::unknown() : intern(n, args);
  }
  // `args` may not lie in operands_.
  constexpr dim intern(const node& n, std::span<const dim_operand> args) {
    if (table_.size() < 2 * (nodes_.size() + 1)) rehash();
    const std::size_t mask = table_.size() - 1;
    std::size_t slot = hash_of(n, args) & mask;
    while (table_[slot] != 0) {
      if (same(n, args, table_[slot])) {
        const dim found{table_[slot]};
        // An atom that a fact replaced stands for its replacement from then on.
        return nodes_[found.id].replaced_by.is_known() && n.kind != dim_kind::symbol
                   ? resolve(found)
                   : found;
      }
      slot = (slot + 1) & mask;
    }
    const std::uint32_t id = static_cast<std::uint32_t>(nodes_.size());
    node& made = nodes_.push_back(n);
    made.first = static_cast<std::uint32_t>(operands_.size());
    made.count = static_cast<std::uint32_t>(args.size());
    operands_.append(args);
    if (n.kind >= dim_kind::symbol && n.kind <= dim_kind::real)
      made.mask = std::uint64_t{1} << (hash_mix(0, id) >> 58);
    for (const dim_operand& o : args) {
      made.mask |= nodes_[o.d.id].mask;
      made.weight += nodes_[o.d.id].weight;
    }
    // Builders resolve their operands, so what is new is canonical under the facts of now.
    made.resolved = {id};
    made.resolved_version = version_;
    table_[slot] = id;
    return {id};
  }
  constexpr void rehash() {
    const std::size_t size = table_.empty() ? 64 : table_.size() * 2;
    table_.assign(size, 0);
    for (std::uint32_t id = 3; id < nodes_.size(); ++id) {
      const std::span<const dim_operand> args{operands_.data() + nodes_[id].first,
                                              nodes_[id].count};
      std::size_t slot = hash_of(nodes_[id], args) & (size - 1);
      while (table_[slot] != 0) slot = (slot + 1) & (size - 1);
      table_[slot] = id;
    }
  }

  vector<node> nodes_;
  vector<dim_operand> operands_;
  vector<std::uint32_t> table_;
  vector<symbol_info> symbols_;
  vector<std::uint32_t> names_;    // hash table of symbol index + 1
  vector<std::uint64_t> changes_;  // per version: mask of the atom that a fact was about
  vector<char> text_;
  dim zero_{}, one_{};
  std::uint32_t version_ = 0;
  std::uint64_t fresh_count_ = 0;
};

}  // namespace sod2
