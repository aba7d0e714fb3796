// What tests of operators share: a node as text. Shapes are lists of expressions; one case runs
// over symbols, over integers at random bindings, and over intervals, and all three must agree.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <sod2/expr/evaluate.hpp>
#include <sod2/expr/parse.hpp>
#include <sod2/op/context.hpp>
#include <sod2/op/definition.hpp>
#include <sod2/op/registry.hpp>

namespace test {

using sod2::dtype;

/// One input: absent, of unknown rank, or with dims such as "N, 3, H" and perhaps elements.
struct operand {
  bool given = true;
  bool rank_known = true;
  std::string dims;
  dtype type = dtype::f32;
  bool tracked = false;
  std::string elements;
};
inline operand in(std::string dims, dtype type = dtype::f32) {
  return {true, true, std::move(dims), type, false, {}};
}
inline operand no_rank(dtype type = dtype::f32) { return {true, false, {}, type, false, {}}; }
inline operand absent() { return {false, false, {}, dtype::undefined, false, {}}; }

/// "a, f(b, c), d" at top-level commas.
inline std::vector<std::string> pieces(std::string_view text) {
  std::vector<std::string> out;
  std::string piece;
  int depth = 0;
  for (char c : text) {
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      out.push_back(piece);
      piece.clear();
    } else if (c != ' ' || !piece.empty()) {
      piece += c;
    }
  }
  if (!piece.empty()) out.push_back(piece);
  return out;
}

/// A tracked vector of int64 (or another type).
inline operand vec(std::string elements, dtype type = dtype::i64) {
  const std::size_t n = pieces(elements).size();
  return {true, true, std::to_string(n), type, true, std::move(elements)};
}
inline operand scalar(std::string element, dtype type = dtype::i64) {
  return {true, true, "", type, true, std::move(element)};
}
inline operand values(std::string dims, std::string elements, dtype type = dtype::i64) {
  return {true, true, std::move(dims), type, true, std::move(elements)};
}

/// Attributes that own what views point to.
class attributes {
 public:
  attributes() = default;
  attributes&& set(std::string name, std::int64_t v) && {
    item& i = items_[std::move(name)];
    i.kind = sod2::attribute_kind::integer;
    i.integer = v;
    return std::move(*this);
  }
  attributes&& set(std::string name, int v) && {
    return std::move(*this).set(std::move(name), std::int64_t{v});
  }
  attributes&& set(std::string name, double v) && {
    item& i = items_[std::move(name)];
    i.kind = sod2::attribute_kind::real;
    i.real = v;
    return std::move(*this);
  }
  attributes&& set(std::string name, const char* v) && {
    item& i = items_[std::move(name)];
    i.kind = sod2::attribute_kind::string;
    i.string = v;
    return std::move(*this);
  }
  attributes&& ints(std::string name, std::vector<std::int64_t> v) && {
    item& i = items_[std::move(name)];
    i.kind = sod2::attribute_kind::integers;
    i.integers = std::move(v);
    return std::move(*this);
  }
  attributes&& reals(std::string name, std::vector<float> v) && {
    item& i = items_[std::move(name)];
    i.kind = sod2::attribute_kind::reals;
    i.reals = std::move(v);
    return std::move(*this);
  }
  attributes&& strings(std::string name, std::vector<std::string> v) && {
    item& i = items_[std::move(name)];
    i.kind = sod2::attribute_kind::strings;
    i.strings = std::move(v);
    return std::move(*this);
  }
  template <class T>
  attributes&& tensor(std::string name, std::vector<std::int64_t> dims, std::vector<T> data) && {
    item& i = items_[std::move(name)];
    i.kind = sod2::attribute_kind::tensor;
    i.integers = std::move(dims);
    const auto* first = reinterpret_cast<const std::byte*>(data.data());
    i.bytes.assign(first, first + data.size() * sizeof(T));
    i.type = sod2::dtype_of<T>;
    return std::move(*this);
  }
  sod2::attribute_source source() const {
    return {this, 0, [](const void* self, std::uint64_t, std::string_view name) {
              return static_cast<const attributes*>(self)->find(name);
            }};
  }

 private:
  struct item {
    sod2::attribute_kind kind = sod2::attribute_kind::none;
    std::int64_t integer = 0;
    double real = 0;
    std::string string;
    std::vector<std::int64_t> integers;
    std::vector<float> reals;
    std::vector<std::string> strings;
    std::vector<std::byte> bytes;
    dtype type = dtype::undefined;
  };
  sod2::attribute_view find(std::string_view name) const {
    sod2::attribute_view out;
    const auto it = items_.find(std::string(name));
    if (it == items_.end()) return out;
    const item& i = it->second;
    out.kind = i.kind;
    out.integer = i.integer;
    out.real = i.real;
    out.string = i.string;
    out.integers = i.integers;
    out.reals = i.reals;
    out.strings = i.strings;
    out.tensor = {i.bytes.data(), i.bytes.size(), i.integers, i.type};
    return out;
  }
  std::map<std::string, item> items_;
};

struct node {
  int version = 1;
  std::vector<operand> inputs;
  attributes attrs{};
  std::size_t outputs = 1;
};

/// A node over one domain, with facts it owns.
template <class Domain>
struct run {
  using context = sod2::transfer_context<Domain>;
  using fact = typename context::fact;
  Domain& domain;
  std::vector<fact> facts;
  std::vector<const fact*> pointers;
  std::vector<fact> results;
  std::vector<std::string> names;
  std::vector<std::string_view> views;
  typename context::fresh_cache cache;
  std::unique_ptr<context> c;

  explicit run(Domain& d) : domain(d) {}
  void start(const node& n) {
    results.resize(n.outputs);
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      pointers.push_back(n.inputs[i].given ? &facts[i] : nullptr);
      names.push_back("in" + std::to_string(i));
    }
    for (const std::string& name : names) views.push_back(name);
    c = std::make_unique<context>(domain, pointers, results, n.attrs.source(), n.version);
    c->name("node", views);
    c->use_cache(cache);
  }
  template <class Op>
  sod2::status go() {
    if (sod2::status s = Op::forward(*c); !s) return s;
    if constexpr (requires { Op::value(*c); }) return Op::value(*c);
    return {};
  }
};

/// Symbols of a case: small sizes unless declared otherwise.
class symbols {
 public:
  sod2::dim_context context;
  sod2::symbolic_domain domain{context};

  sod2::dim parse(const std::string& text) {
    if (text == "?") return sod2::dim::unknown();
    if (text == "_") return sod2::dim::undefined();
    auto d = sod2::parse(context, text);
    if (!d) FAIL(text, ": ", d.error().text());
    return *d;
  }
  /// Float elements are literals or already floating-point expressions.
  sod2::dim element(const std::string& text, dtype type) {
    const sod2::dim d = parse(text);
    if ((type == dtype::f32 || type == dtype::f64) && d.is_known()) {
      if (context.is_constant(d))
        return context.real_literal(static_cast<double>(context.value(d)), type == dtype::f64);
      if (context.is_real_literal(d)) {
        const double v = context.literal_value(d);
        return context.real_literal(
            type == dtype::f64 ? v : static_cast<double>(static_cast<float>(v)),
            type == dtype::f64);
      }
    }
    return d;
  }
  sod2::symbolic_fact fact(const operand& o) {
    sod2::symbolic_fact f;
    if (!o.given) return f;
    f.kind = sod2::fact_kind::tensor;
    f.type = o.type;
    f.rank = o.rank_known ? sod2::rank_state::known : sod2::rank_state::unknown;
    for (const std::string& d : pieces(o.dims)) f.dims.push_back(parse(d));
    f.has_value = o.tracked;
    if (o.tracked)
      for (const std::string& e : pieces(o.elements)) f.elements.push_back(element(e, o.type));
    return f;
  }
  std::string text(const sod2::symbolic_fact& f) {
    if (f.rank == sod2::rank_state::undefined) return "undefined";
    if (f.rank == sod2::rank_state::unknown) return "unknown";
    return sod2::print(context, f.dims.view());
  }
  std::string elements(const sod2::symbolic_fact& f) {
    return f.has_value ? sod2::print(context, f.elements.view()) : std::string("untracked");
  }
  /// A node's outputs, or its error.
  template <class Op>
  sod2::status apply(const node& n, std::vector<sod2::symbolic_fact>& out,
                     std::vector<sod2::symbolic_transfer::requirement>* needs = nullptr) {
    run<sod2::symbolic_domain> r(domain);
    for (const operand& o : n.inputs) r.facts.push_back(fact(o));
    r.start(n);
    sod2::status s = r.template go<Op>();
    out = r.results;
    if (needs != nullptr) needs->assign(r.c->requirements().begin(), r.c->requirements().end());
    // A second run meets the same symbols.
    const auto first = r.results;
    run<sod2::symbolic_domain> again(domain);
    again.facts = r.facts;
    again.cache = r.cache;
    again.start(n);
    if (sod2::status t = again.template go<Op>(); s && t)
      for (std::size_t o = 0; o < first.size(); ++o) CHECK(first[o].dims == again.results[o].dims);
    return s;
  }
  /// Value of an expression at a binding of all input symbols; false when it has inferred symbols.
  bool evaluate(sod2::dim d, const std::vector<std::int64_t>& binding, std::int64_t& out) {
    if (!d.is_known() || !context.only_input_symbols(d)) return false;
    sod2::size_program_builder builder(context);
    builder.add_output(d);
    const sod2::size_program p = std::move(builder).finish();
    std::vector<std::int64_t> scratch(p.register_count());
    std::int64_t result[1] = {0};
    if (p.evaluate(binding, scratch, result) != sod2::errc::ok) return false;
    out = result[0];
    return true;
  }
};

inline std::vector<std::int64_t> random_binding(const sod2::dim_context& context,
                                                std::mt19937& random, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::uint32_t s = 0; s < context.symbol_count(); ++s) {
    const sod2::interval range = context.range_of_symbol(s);
    std::uniform_int_distribution<std::int64_t> pick(range.lo, sod2::min_of(range.hi, most));
    out.push_back(pick(random));
  }
  return out;
}

/// The generic soundness check. `expected` per output: "(2, N)", "unknown", or "" for anything.
template <class Op>
void check(const node& n, const std::vector<std::string>& expected, dtype type = dtype::undefined) {
  symbols s;
  std::vector<sod2::symbolic_fact> out;
  const sod2::status done = s.apply<Op>(n, out);
  CAPTURE(std::string(Op::info.name));
  CAPTURE(n.version);
  if (!done) FAIL(done.error().text());
  CHECK(sod2::check_arity(Op::info, n.inputs.size(), n.outputs).ok());
  for (std::size_t o = 0; o < expected.size(); ++o) {
    CAPTURE(o);
    if (type != dtype::undefined && o == 0)
      CHECK(sod2::name_of(out[o].type) == sod2::name_of(type));
    if (expected[o].empty()) continue;
    if (expected[o][0] != '(') {
      CHECK(s.text(out[o]) == expected[o]);
      continue;
    }
    const auto dims = pieces(std::string_view(expected[o]).substr(1, expected[o].size() - 2));
    CAPTURE(s.text(out[o]));
    REQUIRE(out[o].rank_known());
    REQUIRE(out[o].dims.size() == dims.size());
    for (std::size_t i = 0; i < dims.size(); ++i) {
      CAPTURE(i);
      if (dims[i] == "*") {  // some bounded symbol
        CHECK(out[o].dims[i].is_known());
        CHECK_FALSE(s.context.only_input_symbols(out[o].dims[i]));
        continue;
      }
      CHECK(sod2::print(s.context, out[o].dims[i]) == sod2::print(s.context, s.parse(dims[i])));
    }
  }
  // Integers, and intervals around them, at random bindings.
  std::mt19937 random(7);
  for (int round = 0; round < 12; ++round) {
    const auto binding = random_binding(s.context, random, 24);
    sod2::integer_domain integers;
    sod2::interval_domain intervals;
    run<sod2::integer_domain> concrete(integers);
    run<sod2::interval_domain> ranges(intervals);
    bool usable = true;
    for (const operand& o : n.inputs) {
      const sod2::symbolic_fact f = s.fact(o);
      sod2::basic_fact<std::int64_t> k;
      sod2::basic_fact<sod2::interval> r;
      k.kind = r.kind = f.kind;
      k.type = r.type = f.type;
      k.rank = r.rank = f.rank;
      k.has_value = r.has_value = f.has_value;
      for (sod2::dim d : f.dims) {
        std::int64_t v = 0;
        usable = usable && s.evaluate(d, binding, v);
        k.dims.push_back(v);
        r.dims.push_back(round % 2 == 0 ? sod2::interval::point(v)
                                        : sod2::interval{v > 1 ? v - 1 : v, v + 2});
        if (s.context.is_constant(d)) r.dims.back() = sod2::interval::point(v);
      }
      for (sod2::dim d : f.elements) {
        std::int64_t v = 0;
        // A float is the bits of a double; intervals do not track them.
        if (!s.evaluate(d, binding, v)) {
          k.has_value = r.has_value = false;
          if (sod2::is_integer(o.type)) usable = false;
        }
        if (d.is_known() && s.context.is_real_valued(d)) r.has_value = false;
        k.elements.push_back(v);
        r.elements.push_back(sod2::interval::point(v));
      }
      if (!k.has_value) k.elements.clear();
      if (!r.has_value) r.elements.clear();
      concrete.facts.push_back(k);
      ranges.facts.push_back(r);
    }
    if (!usable) continue;
    concrete.start(n);
    ranges.start(n);
    // A binding that a requirement of the operator excludes is no test.
    if (!concrete.template go<Op>()) continue;
    const bool in_ranges = ranges.template go<Op>().ok();
    CHECK(in_ranges);
    for (std::size_t o = 0; o < out.size(); ++o) {
      CAPTURE(o);
      if (out[o].rank_known() && concrete.results[o].rank_known()) {
        REQUIRE(out[o].dims.size() == concrete.results[o].dims.size());
        for (std::size_t i = 0; i < out[o].dims.size(); ++i) {
          std::int64_t v = 0;
          const std::int64_t w = concrete.results[o].dims[i];
          CAPTURE(i);
          if (!s.evaluate(out[o].dims[i], binding, v)) continue;
          CAPTURE(s.text(out[o]));
          CHECK(v == w);
          if (in_ranges && ranges.results[o].rank_known())
            CHECK(ranges.results[o].dims[i].contains(w));
        }
      }
      if (out[o].has_value && concrete.results[o].has_value) {
        REQUIRE(out[o].elements.size() == concrete.results[o].elements.size());
        for (std::size_t i = 0; i < out[o].elements.size(); ++i) {
          std::int64_t v = 0;
          CAPTURE(i);
          if (s.evaluate(out[o].elements[i], binding, v))
            CHECK(v == concrete.results[o].elements[i]);
        }
      }
    }
  }
}

/// Elements of output 0, "(N, ?, 3)", or "untracked".
template <class Op>
void check_value(const node& n, std::string_view expected) {
  symbols s;
  std::vector<sod2::symbolic_fact> out;
  const sod2::status done = s.apply<Op>(n, out);
  CAPTURE(std::string(Op::info.name));
  if (!done) FAIL(done.error().text());
  CAPTURE(s.elements(out[0]));
  CHECK(out[0].has_value == (expected != "untracked"));
  if (out[0].has_value) {
    const auto wanted = pieces(expected.substr(1, expected.size() - 2));
    REQUIRE(out[0].elements.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      CHECK(sod2::print(s.context, out[0].elements[i]) ==
            sod2::print(s.context, s.parse(wanted[i])));
  }
  check<Op>(n, {});
}

/// The one line of an error.
template <class Op>
void check_error(const node& n, sod2::errc code, std::string_view text) {
  symbols s;
  std::vector<sod2::symbolic_fact> out;
  const sod2::status done = s.apply<Op>(n, out);
  CAPTURE(std::string(Op::info.name));
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().code() == code);
  CHECK(done.error().text() == text);
}

/// Inputs with hidden dims ("_") or none at all (no_rank), the outputs given: what backward infers
/// about each input, "axis=expression" joined, "rank r" first where the rank is new.
template <class Op>
std::vector<std::string> infer(symbols& s, const node& n, const std::vector<std::string>& outputs) {
  run<sod2::symbolic_domain> r(s.domain);
  for (const operand& o : n.inputs) {
    r.facts.push_back(s.fact(o));
    if (o.given && !o.rank_known) r.facts.back().rank = sod2::rank_state::undefined;
  }
  r.start(n);
  for (std::size_t o = 0; o < outputs.size(); ++o) r.results[o] = s.fact(in(outputs[o]));
  const sod2::status done = Op::backward(*r.c);
  if (!done) FAIL(done.error().text());
  std::vector<std::string> out(n.inputs.size());
  for (const auto& f : r.c->refinements()) {
    std::string& text = out[f.input];
    if (!text.empty()) text += ' ';
    if (f.axis == sod2::symbolic_transfer::rank_only) {
      text += "rank " + std::to_string(f.rank);
      continue;
    }
    // What is known already is not news.
    const auto& have = r.facts[f.input];
    if (have.rank_known() && have.dims[static_cast<std::size_t>(f.axis)] == f.value) {
      if (!text.empty()) text.pop_back();
      continue;
    }
    text += std::to_string(f.axis) + "=" + sod2::print(s.context, f.value);
  }
  return out;
}
template <class Op>
void check_back(const node& n, const std::vector<std::string>& outputs,
                const std::vector<std::string>& expected) {
  symbols s;
  CAPTURE(std::string(Op::info.name));
  const auto got = infer<Op>(s, n, outputs);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == expected[i]);
  }
}

}  // namespace test
