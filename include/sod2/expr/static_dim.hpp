// Compile-time dims: types that name the canonical expressions of a dim_context.
//
//   inline constexpr struct Batch : sod2::symbol<"Batch"> {} batch;
//   using t = decltype(batch * sod2::lit<3>{} + sod2::lit<7>{});   // sum<prod<lit<3>, Batch>,
//   lit<7>>
//
// There is no second algebra here. An operation declares the symbols of its operands in a context,
// runs the ordinary code and gives the result a name: the canonical expression is written as flat
// tokens, and the tokens become a type through the dictionary of the operands' symbol types. So two
// sizes are equal exactly when their types are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <sod2/core/vector.hpp>
#include <sod2/expr/context.hpp>

namespace sod2 {

/// A name as a template argument. It never shows in messages: those print the symbol's own type.
template <std::size_t Size>
struct symbol_name {
  char text[Size] = {};
  constexpr symbol_name(const char (&from)[Size]) {
    for (std::size_t i = 0; i < Size; ++i) text[i] = from[i];
  }
  constexpr std::string_view view() const { return {text, Size - 1}; }
};

/// What every compile-time dim derives from.
struct static_dim_base {};

template <class T>
concept static_dim = __is_base_of(static_dim_base, T);

/// Base of a user's symbol. The name identifies it, as dim_param does in a model: two types of one
/// name are one symbol. Facts are those of `symbol_facts`.
template <symbol_name Name, std::int64_t Lo = 1, std::int64_t Hi = default_symbol_max,
          std::int64_t Step = 1, std::int64_t Offset = 0>
struct symbol : static_dim_base {
  static constexpr std::string_view name() { return Name.view(); }
  static constexpr symbol_facts facts() { return {Lo, Hi, Step, Offset}; }
  static constexpr dim make(dim_context& context) { return context.symbol(name(), facts()); }
};

namespace ct {

/// The dictionary: symbol types, sorted by name, each once.
template <class... Symbols>
struct symbol_set {
  static constexpr std::size_t size = sizeof...(Symbols);
  /// In this order always, since the canonical order of factors follows it.
  static constexpr void declare([[maybe_unused]] dim_context& context) {
    (static_cast<void>(Symbols::make(context)), ...);
  }
};

template <class Done, class A, class B>
struct merge_sets;
template <class... Done, class... B>
struct merge_sets<symbol_set<Done...>, symbol_set<>, symbol_set<B...>> {
  using type = symbol_set<Done..., B...>;
};
template <class... Done, class A, class... As>
struct merge_sets<symbol_set<Done...>, symbol_set<A, As...>, symbol_set<>> {
  using type = symbol_set<Done..., A, As...>;
};
template <int Order, class Done, class A, class B>
struct merge_next;
template <class... Done, class A, class... As, class B, class... Bs>
struct merge_sets<symbol_set<Done...>, symbol_set<A, As...>, symbol_set<B, Bs...>>
    : merge_next<A::name() == B::name()  ? 0
                 : A::name() < B::name() ? -1
                                         : 1,
                 symbol_set<Done...>, symbol_set<A, As...>, symbol_set<B, Bs...>> {};
template <class... Done, class A, class... As, class B, class... Bs>
struct merge_next<0, symbol_set<Done...>, symbol_set<A, As...>, symbol_set<B, Bs...>>
    : merge_sets<symbol_set<Done..., A>, symbol_set<As...>, symbol_set<Bs...>> {};
template <class... Done, class A, class... As, class B>
struct merge_next<-1, symbol_set<Done...>, symbol_set<A, As...>, B>
    : merge_sets<symbol_set<Done..., A>, symbol_set<As...>, B> {};
template <class... Done, class A, class B, class... Bs>
struct merge_next<1, symbol_set<Done...>, A, symbol_set<B, Bs...>>
    : merge_sets<symbol_set<Done..., B>, A, symbol_set<Bs...>> {};

// The symbol types below a dim: of a composed one those of its parts, of a symbol itself.
template <class T>
struct symbols_in {
  using type = symbol_set<T>;
};
template <class... Sets>
struct union_of {
  using type = symbol_set<>;
};
template <class First, class... Rest>
struct union_of<First, Rest...> {
  using type = typename merge_sets<symbol_set<>, First, typename union_of<Rest...>::type>::type;
};
template <class... Ts>
using symbols_of = typename union_of<typename symbols_in<Ts>::type...>::type;

// ---- the names of expressions ----

template <std::int64_t Value>
struct lit : static_dim_base {
  static constexpr std::int64_t value = Value;
  static constexpr dim make(dim_context& context) { return context.constant(Value); }
};
template <class... Terms>
struct sum : static_dim_base {
  static constexpr dim make(dim_context& context) {
    dim d = context.zero();
    ((d = context.add(d, Terms::make(context))), ...);
    return d;
  }
};
template <class... Factors>
struct prod : static_dim_base {
  static constexpr dim make(dim_context& context) {
    dim d = context.one();
    ((d = context.mul(d, Factors::make(context))), ...);
    return d;
  }
};
template <class Base, std::int64_t Exponent>
struct power : static_dim_base {
  static constexpr dim make(dim_context& context) {
    const dim base = Base::make(context);
    dim d = context.one();
    for (std::int64_t i = 0; i < Exponent; ++i) d = context.mul(d, base);
    return d;
  }
};
template <class Numerator, std::int64_t Divisor>
struct floordiv : static_dim_base {
  static_assert(Divisor > 0, "floordiv requires a positive divisor");
  static constexpr dim make(dim_context& context) {
    return context.floordiv(Numerator::make(context), Divisor);
  }
};
template <class Numerator, std::int64_t Divisor>
struct ceildiv : static_dim_base {
  static_assert(Divisor > 0, "ceildiv requires a positive divisor");
  static constexpr dim make(dim_context& context) {
    return context.ceildiv(Numerator::make(context), Divisor);
  }
};
template <class First, class... Rest>
struct min : static_dim_base {
  static constexpr dim make(dim_context& context) {
    dim d = First::make(context);
    ((d = context.min(d, Rest::make(context))), ...);
    return d;
  }
};
template <class First, class... Rest>
struct max : static_dim_base {
  static constexpr dim make(dim_context& context) {
    dim d = First::make(context);
    ((d = context.max(d, Rest::make(context))), ...);
    return d;
  }
};
template <class First, class... Rest>
struct broadcast : static_dim_base {
  static constexpr dim make(dim_context& context) {
    dim d = First::make(context);
    ((d = context.broadcast(d, Rest::make(context))), ...);
    return d;
  }
};
/// Not a function of symbols, overflowed, or computed in floating point.
struct unknown : static_dim_base {
  static constexpr dim make(dim_context&) { return dim::unknown(); }
};

template <std::int64_t V>
struct symbols_in<lit<V>> {
  using type = symbol_set<>;
};
template <>
struct symbols_in<unknown> {
  using type = symbol_set<>;
};
template <class... Ts>
struct symbols_in<sum<Ts...>> : union_of<typename symbols_in<Ts>::type...> {};
template <class... Ts>
struct symbols_in<prod<Ts...>> : union_of<typename symbols_in<Ts>::type...> {};
template <class T, std::int64_t N>
struct symbols_in<power<T, N>> : symbols_in<T> {};
template <class T, std::int64_t N>
struct symbols_in<floordiv<T, N>> : symbols_in<T> {};
template <class T, std::int64_t N>
struct symbols_in<ceildiv<T, N>> : symbols_in<T> {};
template <class... Ts>
struct symbols_in<min<Ts...>> : union_of<typename symbols_in<Ts>::type...> {};
template <class... Ts>
struct symbols_in<max<Ts...>> : union_of<typename symbols_in<Ts>::type...> {};
template <class... Ts>
struct symbols_in<broadcast<Ts...>> : union_of<typename symbols_in<Ts>::type...> {};

// ---- from expressions to tokens ----

enum class token_kind : std::uint8_t {
  unknown,
  lit,
  symbol,  // value: position in the dictionary
  sum,
  prod,
  power,
  floordiv,
  ceildiv,
  min,
  max,
  broadcast,
};
/// Prefix order: `count` children follow, `size` tokens in all.
struct token {
  token_kind kind = token_kind::unknown;
  std::int64_t value = 0;
  std::uint32_t count = 0, size = 1;
};

class token_writer {
 public:
  constexpr token_writer(dim_context& context, vector<token>& out) : context_(context), out_(out) {}

  constexpr void write(dim d) {
    d = context_.resolve(d);
    switch (d.is_known() ? context_.kind(d) : dim_kind::unknown) {
      case dim_kind::undefined:
      case dim_kind::unknown:
      case dim_kind::overflow:
      case dim_kind::real: leaf(token_kind::unknown, 0); return;
      case dim_kind::constant: leaf(token_kind::lit, context_.value(d)); return;
      case dim_kind::sum: {
        const std::size_t n = context_.operand_count(d);
        if (n == 1) return term(context_.operand(d, 0).a, context_.operand(d, 0).d);
        const std::size_t at = open(token_kind::sum, 0, n);
        for (std::size_t i = 0; i < n; ++i)
          term(context_.operand(d, i).a, context_.operand(d, i).d);
        close(at);
        return;
      }
      default: term(1, d); return;
    }
  }

 private:
  constexpr void leaf(token_kind kind, std::int64_t value) { out_.push_back({kind, value, 0, 1}); }
  constexpr std::size_t open(token_kind kind, std::int64_t value, std::size_t count) {
    out_.push_back({kind, value, static_cast<std::uint32_t>(count), 1});
    return out_.size() - 1;
  }
  constexpr void close(std::size_t at) {
    out_[at].size = static_cast<std::uint32_t>(out_.size() - at);
  }

  // coefficient * product. A symbol with a stride is a multiple of a hidden one (H = 32*h): spend
  // the coefficient on it first, so that 32*h is H again and 2*h is floordiv<H, 16>.
  constexpr void term(std::int64_t coefficient, dim product) {
    if (product == context_.one()) return leaf(token_kind::lit, coefficient);
    const bool is_product = context_.kind(product) == dim_kind::product;
    const std::size_t n = is_product ? context_.operand_count(product) : 1;
    struct factor {
      dim atom{};
      std::int64_t exponent = 1, divisor = 0;  // divisor: of the base of a hidden symbol
    };
    small_vector<factor, 6> factors;
    for (std::size_t i = 0; i < n; ++i) {
      const dim_operand o = is_product ? context_.operand(product, i) : dim_operand{1, product};
      if (const std::int64_t step = hidden_step(o.d); step > 1) {
        for (std::int64_t p = 0; p < o.a; ++p) {
          const std::int64_t g = gcd(coefficient, step);
          coefficient /= g;
          factors.push_back({o.d, 1, step / g});
        }
      } else {
        factors.push_back({o.d, o.a, 0});
      }
    }
    const std::size_t children = factors.size() + (coefficient != 1 ? 1 : 0);
    const std::size_t at = children > 1 ? open(token_kind::prod, 0, children) : 0;
    if (coefficient != 1) leaf(token_kind::lit, coefficient);
    for (const factor& f : factors) {
      if (f.divisor != 0) {
        const std::uint32_t base = context_.base_of_symbol(context_.symbol_index(f.atom));
        if (f.divisor == 1) {
          named(base);
        } else {
          const std::size_t division = open(token_kind::floordiv, f.divisor, 1);
          named(base);
          close(division);
        }
      } else if (f.exponent > 1) {
        const std::size_t raised = open(token_kind::power, f.exponent, 1);
        atom(f.atom);
        close(raised);
      } else {
        atom(f.atom);
      }
    }
    if (children > 1) close(at);
  }
  // Step of a hidden symbol that has no offset, else 1.
  constexpr std::int64_t hidden_step(dim d) const {
    if (context_.kind(d) != dim_kind::symbol) return 1;
    const std::uint32_t s = context_.symbol_index(d);
    if (context_.origin_of_symbol(s) != symbol_origin::strided || context_.offset_of_symbol(s) != 0)
      return 1;
    return context_.step_of_symbol(s);
  }
  // Input symbols were declared in the order of the dictionary, hidden ones in between.
  constexpr void named(std::uint32_t index) {
    std::int64_t position = 0;
    for (std::uint32_t i = 0; i < index; ++i)
      if (context_.origin_of_symbol(i) == symbol_origin::input) ++position;
    leaf(token_kind::symbol, position);
  }
  constexpr void atom(dim d) {
    switch (context_.kind(d)) {
      case dim_kind::symbol: {
        const std::uint32_t s = context_.symbol_index(d);
        if (context_.origin_of_symbol(s) == symbol_origin::input) return named(s);
        if (context_.origin_of_symbol(s) == symbol_origin::inferred)
          return leaf(token_kind::unknown, 0);
        const std::size_t division = open(token_kind::floordiv, context_.step_of_symbol(s), 1);
        const std::size_t shifted = open(token_kind::sum, 0, 2);
        named(context_.base_of_symbol(s));
        leaf(token_kind::lit, -context_.offset_of_symbol(s));
        close(shifted);
        close(division);
        return;
      }
      case dim_kind::floordiv: {
        const std::int64_t k = context_.value(d);
        dim e = context_.operand(d, 0).d;
        const std::size_t n = context_.operand_count(e);
        const bool ceil = context_.kind(e) == dim_kind::sum &&
                          context_.operand(e, n - 1) == dim_operand{k - 1, context_.one()};
        if (ceil) e = context_.add(e, 1 - k);
        const std::size_t at = open(ceil ? token_kind::ceildiv : token_kind::floordiv, k, 1);
        write(e);
        close(at);
        return;
      }
      case dim_kind::min: return list(token_kind::min, d);
      case dim_kind::max: return list(token_kind::max, d);
      case dim_kind::broadcast: return list(token_kind::broadcast, d);
      default: return leaf(token_kind::unknown, 0);
    }
  }
  constexpr void list(token_kind kind, dim d) {
    const std::size_t n = context_.operand_count(d);
    const std::size_t at = open(kind, 0, n);
    for (std::size_t i = 0; i < n; ++i) write(context_.operand(d, i).d);
    close(at);
  }

  dim_context& context_;
  vector<token>& out_;
};

// ---- from tokens to types ----

template <std::size_t Size>
struct token_array {
  token items[Size == 0 ? 1 : Size] = {};
};

using dim_list = small_vector<dim, 6>;

/// Runs `Rule::apply(context, dim_list& out) -> errc` on a context that knows the symbols of Set,
/// and keeps its results as tokens.
template <class Set, class Rule>
struct computed {
  struct outcome {
    vector<token> tokens;
    vector<std::uint32_t> starts;
    errc code = errc::ok;
  };
  static constexpr outcome run() {
    dim_context context;
    Set::declare(context);
    dim_list results;
    outcome out;
    out.code = Rule::apply(context, results);
    if (out.code != errc::ok) return out;
    token_writer writer(context, out.tokens);
    for (dim d : results) {
      out.starts.push_back(static_cast<std::uint32_t>(out.tokens.size()));
      writer.write(d);
    }
    return out;
  }
  struct extent {
    std::size_t tokens, results;
    errc code;
  };
  static constexpr extent measure() {
    const outcome o = run();
    return {o.tokens.size(), o.starts.size(), o.code};
  }
  static constexpr extent sizes = measure();
  static constexpr errc code = sizes.code;
  static constexpr std::size_t result_count = sizes.results;
  static constexpr token_array<sizes.tokens> tokens = [] {
    token_array<sizes.tokens> out;
    const outcome o = run();
    for (std::size_t i = 0; i < o.tokens.size(); ++i) out.items[i] = o.tokens[i];
    return out;
  }();
  static constexpr std::size_t start(std::size_t result) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < result; ++i) at += tokens.items[at].size;
    return at;
  }
  static constexpr std::size_t child(std::size_t of, std::size_t which) {
    std::size_t at = of + 1;
    for (std::size_t i = 0; i < which; ++i) at += tokens.items[at].size;
    return at;
  }
};

template <std::size_t I, class Set>
struct symbol_at;
template <std::size_t I, class First, class... Rest>
struct symbol_at<I, symbol_set<First, Rest...>> : symbol_at<I - 1, symbol_set<Rest...>> {};
template <class First, class... Rest>
struct symbol_at<0, symbol_set<First, Rest...>> {
  using type = First;
};

template <class Set, class Computed, std::size_t At, token_kind Kind, class Children>
struct named_as {  // token_kind::unknown
  using type = unknown;
};
template <class Set, class Computed, std::size_t At>
using named_t = typename named_as<Set, Computed, At, Computed::tokens.items[At].kind,
                                  std::make_index_sequence<Computed::tokens.items[At].count>>::type;

template <class Set, class C, std::size_t At, std::size_t... I>
struct named_as<Set, C, At, token_kind::lit, std::index_sequence<I...>> {
  using type = lit<C::tokens.items[At].value>;
};
template <class Set, class C, std::size_t At, std::size_t... I>
struct named_as<Set, C, At, token_kind::symbol, std::index_sequence<I...>> {
  using type = typename symbol_at<static_cast<std::size_t>(C::tokens.items[At].value), Set>::type;
};
template <class Set, class C, std::size_t At, std::size_t... I>
struct named_as<Set, C, At, token_kind::sum, std::index_sequence<I...>> {
  using type = sum<named_t<Set, C, C::child(At, I)>...>;
};
template <class Set, class C, std::size_t At, std::size_t... I>
struct named_as<Set, C, At, token_kind::prod, std::index_sequence<I...>> {
  using type = prod<named_t<Set, C, C::child(At, I)>...>;
};
template <class Set, class C, std::size_t At, std::size_t... I>
struct named_as<Set, C, At, token_kind::power, std::index_sequence<I...>> {
  using type = power<named_t<Set, C, At + 1>, C::tokens.items[At].value>;
};
template <class Set, class C, std::size_t At, std::size_t... I>
struct named_as<Set, C, At, token_kind::floordiv, std::index_sequence<I...>> {
  using type = floordiv<named_t<Set, C, At + 1>, C::tokens.items[At].value>;
};
template <class Set, class C, std::size_t At, std::size_t... I>
struct named_as<Set, C, At, token_kind::ceildiv, std::index_sequence<I...>> {
  using type = ceildiv<named_t<Set, C, At + 1>, C::tokens.items[At].value>;
};
template <class Set, class C, std::size_t At, std::size_t... I>
struct named_as<Set, C, At, token_kind::min, std::index_sequence<I...>> {
  using type = min<named_t<Set, C, C::child(At, I)>...>;
};
template <class Set, class C, std::size_t At, std::size_t... I>
struct named_as<Set, C, At, token_kind::max, std::index_sequence<I...>> {
  using type = max<named_t<Set, C, C::child(At, I)>...>;
};
template <class Set, class C, std::size_t At, std::size_t... I>
struct named_as<Set, C, At, token_kind::broadcast, std::index_sequence<I...>> {
  using type = broadcast<named_t<Set, C, C::child(At, I)>...>;
};

/// The type of result I of a rule over the symbols of Set.
template <class Set, class Rule, std::size_t I = 0>
using result_t = named_t<Set, computed<Set, Rule>, computed<Set, Rule>::start(I)>;

// ---- operations ----

enum class operation : std::uint8_t {
  identity,
  add,
  sub,
  mul,
  floordiv,
  ceildiv,
  mod,
  align_up,
  min,
  max,
  broadcast,
  div_exact
};

template <operation Op, class A, class B>
struct operation_rule {
  static constexpr errc apply(dim_context& c, dim_list& out) {
    const dim a = A::make(c);
    if constexpr (Op == operation::identity) {
      out.push_back(a);
    } else if constexpr (Op == operation::floordiv || Op == operation::ceildiv ||
                         Op == operation::mod || Op == operation::align_up) {
      constexpr std::int64_t k = B::value;
      out.push_back(Op == operation::floordiv  ? c.floordiv(a, k)
                    : Op == operation::ceildiv ? c.ceildiv(a, k)
                    : Op == operation::mod     ? c.mod(a, k)
                                               : c.align_up(a, k));
    } else {
      const dim b = B::make(c);
      switch (Op) {
        case operation::add: out.push_back(c.add(a, b)); break;
        case operation::sub: out.push_back(c.sub(a, b)); break;
        case operation::mul: out.push_back(c.mul(a, b)); break;
        case operation::min: out.push_back(c.min(a, b)); break;
        case operation::max: out.push_back(c.max(a, b)); break;
        case operation::broadcast: out.push_back(c.broadcast(a, b)); break;
        case operation::div_exact:
          if (c.decide_le(c.one(), b) != tri::yes) return errc::divisibility;
          out.push_back(c.div_exact(a, b));
          if (!out.back().is_known()) return errc::divisibility;
          break;
        default: break;
      }
    }
    return errc::ok;
  }
};
template <operation Op, class A, class B = lit<0>>
using operation_t = result_t<symbols_of<A, B>, operation_rule<Op, A, B>>;

/// The canonical name of a dim: `canonical_t<sum<lit<1>, lit<2>>>` is `lit<3>`.
template <static_dim T>
using canonical_t = operation_t<operation::identity, T>;

template <class A, class B, bool Less>
constexpr tri decide() {
  dim_context c;
  symbols_of<A, B>::declare(c);
  const dim a = A::make(c), b = B::make(c);
  return Less ? c.decide_le(a, b) : c.decide_eq(a, b);
}

}  // namespace ct

using ct::canonical_t;
using ct::lit;
using ct::power;
using ct::prod;
using ct::sum;

/// What an entry of `dims<...>` is: an integer, or a compile-time dim.
template <auto Entry>
struct static_dim_of {
  using type = ct::lit<static_cast<std::int64_t>(Entry)>;
};
template <auto Entry>
  requires static_dim<decltype(Entry)>
struct static_dim_of<Entry> {
  // g++ says const of a template argument's type, clang does not.
  template <class T>
  static canonical_t<T> plain(const T*);
  using type = decltype(plain(static_cast<decltype(Entry)*>(nullptr)));
};
template <auto Entry>
using static_dim_t = typename static_dim_of<Entry>::type;

// Arithmetic on the (empty) values; every result is canonical.
template <static_dim A, static_dim B>
constexpr auto operator+(A, B) {
  return ct::operation_t<ct::operation::add, A, B>{};
}
template <static_dim A, static_dim B>
constexpr auto operator-(A, B) {
  return ct::operation_t<ct::operation::sub, A, B>{};
}
template <static_dim A, static_dim B>
constexpr auto operator*(A, B) {
  return ct::operation_t<ct::operation::mul, A, B>{};
}
template <static_dim A, std::int64_t K>
constexpr auto floordiv(A, lit<K>) {
  return ct::operation_t<ct::operation::floordiv, A, lit<K>>{};
}
template <static_dim A, std::int64_t K>
constexpr auto ceildiv(A, lit<K>) {
  return ct::operation_t<ct::operation::ceildiv, A, lit<K>>{};
}
template <static_dim A, std::int64_t K>
constexpr auto mod(A, lit<K>) {
  return ct::operation_t<ct::operation::mod, A, lit<K>>{};
}
template <static_dim A, std::int64_t K>
constexpr auto align_up(A, lit<K>) {
  return ct::operation_t<ct::operation::align_up, A, lit<K>>{};
}
template <static_dim A, static_dim B>
constexpr auto min(A, B) {
  return ct::operation_t<ct::operation::min, A, B>{};
}
template <static_dim A, static_dim B>
constexpr auto max(A, B) {
  return ct::operation_t<ct::operation::max, A, B>{};
}
template <static_dim A, static_dim B>
constexpr auto broadcast(A, B) {
  return ct::operation_t<ct::operation::broadcast, A, B>{};
}
/// a / b where it is exact as a polynomial and b >= 1 is known.
template <static_dim A, static_dim B>
constexpr auto div_exact(A, B) {
  return ct::operation_t<ct::operation::div_exact, A, B>{};
}
/// Equality is identity of canonical names; `decide_eq` also proves.
template <static_dim A, static_dim B>
constexpr bool operator==(A, B) {
  return __is_same(canonical_t<A>, canonical_t<B>);
}
template <static_dim A, static_dim B>
constexpr tri decide_eq(A, B) {
  return ct::decide<A, B, false>();
}
template <static_dim A, static_dim B>
constexpr tri decide_le(A, B) {
  return ct::decide<A, B, true>();
}

// ---- mixed with sizes that only the run knows ----
//
// What is static stays so: literals fold, and absorbing ones win over anything. Otherwise the
// result is as dynamic as the other operand.

/// A dim of a context at run time, with operators; also what compile-time dims mix with.
struct dim_value {
  dim_context* context = nullptr;
  dim d{};
};
constexpr dim_value operator+(dim_value a, dim_value b) {
  return {a.context, a.context->add(a.d, b.d)};
}
constexpr dim_value operator-(dim_value a, dim_value b) {
  return {a.context, a.context->sub(a.d, b.d)};
}
constexpr dim_value operator*(dim_value a, dim_value b) {
  return {a.context, a.context->mul(a.d, b.d)};
}

template <static_dim A>
constexpr dim_value operator+(A, dim_value b) {
  return dim_value{b.context, A::make(*b.context)} + b;
}
template <static_dim A>
constexpr dim_value operator+(dim_value b, A) {
  return b + dim_value{b.context, A::make(*b.context)};
}
template <static_dim A>
constexpr dim_value operator-(A, dim_value b) {
  return dim_value{b.context, A::make(*b.context)} - b;
}
template <static_dim A>
constexpr dim_value operator-(dim_value b, A) {
  return b - dim_value{b.context, A::make(*b.context)};
}
template <static_dim A>
constexpr auto operator*(A, dim_value b) {
  if constexpr (__is_same(canonical_t<A>, lit<0>))
    return lit<0>{};
  else
    return dim_value{b.context, A::make(*b.context)} * b;
}
template <static_dim A>
constexpr auto operator*(dim_value b, A a) {
  return a * b;
}
template <std::int64_t A>
constexpr std::int64_t operator+(lit<A>, std::int64_t b) {
  return A + b;
}
template <std::int64_t A>
constexpr std::int64_t operator+(std::int64_t b, lit<A>) {
  return A + b;
}
template <std::int64_t A>
constexpr std::int64_t operator-(lit<A>, std::int64_t b) {
  return A - b;
}
template <std::int64_t A>
constexpr std::int64_t operator-(std::int64_t b, lit<A>) {
  return b - A;
}
template <std::int64_t A>
constexpr auto operator*(lit<A>, std::int64_t b) {
  if constexpr (A == 0)
    return lit<0>{};
  else
    return A * b;
}
template <std::int64_t A>
constexpr auto operator*(std::int64_t b, lit<A> a) {
  return a * b;
}
template <std::int64_t K>
constexpr std::int64_t floordiv(std::int64_t a, lit<K>) {
  return floor_div(a, K);
}
template <std::int64_t K>
constexpr auto mod([[maybe_unused]] std::int64_t a, lit<K>) {
  if constexpr (K == 1)
    return lit<0>{};
  else
    return floor_mod(a, K);
}
template <std::int64_t K>
constexpr auto mod([[maybe_unused]] dim_value a, lit<K>) {
  if constexpr (K == 1)
    return lit<0>{};
  else
    return dim_value{a.context, a.context->mod(a.d, K)};
}
template <std::int64_t K>
constexpr dim_value floordiv(dim_value a, lit<K>) {
  return {a.context, a.context->floordiv(a.d, K)};
}

}  // namespace sod2
