#include "unit/op/support.hpp"

#include <random>

#include <sod2/expr/evaluate.hpp>
#include <sod2/expr/parse.hpp>
#include <sod2/expr/print.hpp>

namespace test {

operand_list::operand_list(std::initializer_list<operand> list) {
  for (const operand& o : list) items_[count_++] = o;
}
operand_list operand_list::placeholders(std::size_t n) {
  operand_list out;
  out.count_ = n;
  return out;
}

std::vector<std::string> pieces(std::string_view text) {
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

attributes::attributes() = default;
attributes::attributes(attributes&&) noexcept = default;
attributes& attributes::operator=(attributes&&) noexcept = default;
attributes::attributes(const attributes&) = default;
attributes& attributes::operator=(const attributes&) = default;
attributes::~attributes() = default;
attributes::item& attributes::add(const char* name, sod2::attribute_kind kind) {
  item& i = items_[name];
  i.kind = kind;
  return i;
}
attributes&& attributes::set(const char* name, std::int64_t v) && {
  add(name, sod2::attribute_kind::integer).integer = v;
  return std::move(*this);
}
attributes&& attributes::set(const char* name, int v) && {
  return std::move(*this).set(name, std::int64_t{v});
}
attributes&& attributes::set(const char* name, double v) && {
  add(name, sod2::attribute_kind::real).real = v;
  return std::move(*this);
}
attributes&& attributes::set(const char* name, const char* v) && {
  add(name, sod2::attribute_kind::string).string = v;
  return std::move(*this);
}
attributes&& attributes::ints(const char* name, std::initializer_list<std::int64_t> v) && {
  add(name, sod2::attribute_kind::integers).integers = v;
  return std::move(*this);
}
attributes&& attributes::reals(const char* name, std::initializer_list<float> v) && {
  add(name, sod2::attribute_kind::reals).reals = v;
  return std::move(*this);
}
attributes&& attributes::strings(const char* name, std::initializer_list<const char*> v) && {
  add(name, sod2::attribute_kind::strings).strings.assign(v.begin(), v.end());
  return std::move(*this);
}
void attributes::set_tensor(const char* name, std::initializer_list<std::int64_t> dims,
                            const void* data, std::size_t bytes, dtype type) {
  item& i = add(name, sod2::attribute_kind::tensor);
  i.integers = dims;
  const auto* first = static_cast<const std::byte*>(data);
  i.bytes.assign(first, first + bytes);
  i.type = type;
}
sod2::attribute_source attributes::source() const {
  return {this, 0, [](const void* self, std::uint64_t, std::string_view name) {
            return static_cast<const attributes*>(self)->find(name);
          }};
}
sod2::attribute_view attributes::find(std::string_view name) const {
  sod2::attribute_view out;
  const auto it = items_.find(name);
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

template <class Domain>
run<Domain>::run(Domain& d) : domain(d) {}
template <class Domain>
run<Domain>::~run() = default;
template <class Domain>
void run<Domain>::start(const node& n) {
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
template <class Domain>
sod2::status run<Domain>::go(const transfers<Domain>& op) {
  if (sod2::status s = op.forward(*c); !s) return s;
  return op.value != nullptr ? op.value(*c) : sod2::status{};
}
template struct run<sod2::symbolic_domain>;
template struct run<sod2::integer_domain>;
template struct run<sod2::interval_domain>;

symbols::symbols() = default;
symbols::~symbols() = default;
sod2::dim symbols::parse(const std::string& text) {
  if (text == "?") return sod2::dim::unknown();
  if (text == "_") return sod2::dim::undefined();
  auto d = sod2::parse(context, text);
  if (!d) FAIL(text, ": ", d.error().text());
  return *d;
}
sod2::dim symbols::element(const std::string& text, dtype type) {
  const sod2::dim d = parse(text);
  if ((type == dtype::f32 || type == dtype::f64) && d.is_known()) {
    if (context.is_constant(d))
      return context.real_literal(static_cast<double>(context.value(d)), type == dtype::f64);
    if (context.is_real_literal(d)) {
      const double v = context.literal_value(d);
      return context.real_literal(
          type == dtype::f64 ? v : static_cast<double>(static_cast<float>(v)), type == dtype::f64);
    }
  }
  return d;
}
sod2::symbolic_fact symbols::fact(const operand& o) {
  sod2::symbolic_fact f;
  if (!o.given) return f;
  f.kind = sod2::fact_kind::tensor;
  f.type = o.type;
  f.rank = o.rank_known ? sod2::rank_state::known : sod2::rank_state::unknown;
  f.has_value = o.elements != nullptr;
  if (f.has_value)
    for (const std::string& e : pieces(o.elements)) f.elements.push_back(element(e, o.type));
  if (o.dims == nullptr)
    f.dims.push_back(context.constant(static_cast<std::int64_t>(f.elements.size())));
  else
    for (const std::string& d : pieces(o.dims)) f.dims.push_back(parse(d));
  return f;
}
std::string symbols::text(const sod2::symbolic_fact& f) {
  if (f.rank == sod2::rank_state::undefined) return "undefined";
  if (f.rank == sod2::rank_state::unknown) return "unknown";
  return sod2::print(context, f.dims.view());
}
std::string symbols::elements(const sod2::symbolic_fact& f) {
  return f.has_value ? sod2::print(context, f.elements.view()) : std::string("untracked");
}
sod2::status symbols::apply(const operator_under_test& op, const node& n,
                            std::vector<sod2::symbolic_fact>& out,
                            std::vector<requirement>* needs) {
  run<sod2::symbolic_domain> r(domain);
  for (const operand& o : n.inputs) r.facts.push_back(fact(o));
  r.start(n);
  sod2::status s = r.go(op.symbols);
  out = r.results;
  if (needs != nullptr) needs->assign(r.c->requirements().begin(), r.c->requirements().end());
  // A second run meets the same symbols.
  const auto first = r.results;
  run<sod2::symbolic_domain> again(domain);
  again.facts = r.facts;
  again.cache = r.cache;
  again.start(n);
  if (sod2::status t = again.go(op.symbols); s && t)
    for (std::size_t o = 0; o < first.size(); ++o) CHECK(first[o].dims == again.results[o].dims);
  return s;
}
bool symbols::evaluate(sod2::dim d, const std::vector<std::int64_t>& binding, std::int64_t& out) {
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

namespace {
std::vector<std::int64_t> random_binding(const sod2::dim_context& context, std::mt19937& random,
                                         std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::uint32_t s = 0; s < context.symbol_count(); ++s) {
    const sod2::interval range = context.range_of_symbol(s);
    std::uniform_int_distribution<std::int64_t> pick(range.lo, sod2::min_of(range.hi, most));
    out.push_back(pick(random));
  }
  return out;
}

}  // namespace

void check(const operator_under_test& op, const node& n, std::initializer_list<const char*> list,
           dtype type) {
  const std::vector<std::string> expected(list.begin(), list.end());
  symbols s;
  std::vector<sod2::symbolic_fact> out;
  const sod2::status done = s.apply(op, n, out);
  CAPTURE(std::string(op.info->name));
  CAPTURE(n.version);
  if (!done) FAIL(done.error().text());
  CHECK(sod2::check_arity(*op.info, n.inputs.size(), n.outputs).ok());
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
    if (!concrete.go(op.integers)) continue;
    const bool in_ranges = ranges.go(op.intervals).ok();
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

void check_value(const operator_under_test& op, const node& n, std::string_view expected) {
  symbols s;
  std::vector<sod2::symbolic_fact> out;
  const sod2::status done = s.apply(op, n, out);
  CAPTURE(std::string(op.info->name));
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
  check(op, n, {}, dtype::undefined);
}

void check_error(const operator_under_test& op, const node& n, sod2::errc code,
                 std::string_view text) {
  symbols s;
  std::vector<sod2::symbolic_fact> out;
  const sod2::status done = s.apply(op, n, out);
  CAPTURE(std::string(op.info->name));
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().code() == code);
  CHECK(done.error().text() == text);
}

namespace {
std::vector<std::string> infer(const operator_under_test& op, symbols& s, const node& n,
                               std::initializer_list<const char*> outputs) {
  run<sod2::symbolic_domain> r(s.domain);
  for (const operand& o : n.inputs) {
    r.facts.push_back(s.fact(o));
    if (o.given && !o.rank_known) r.facts.back().rank = sod2::rank_state::undefined;
  }
  r.start(n);
  std::size_t o = 0;
  for (const char* dims : outputs) r.results[o++] = s.fact(in(dims));
  const sod2::status done = op.symbols.backward(*r.c);
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
}  // namespace

void check_back(const operator_under_test& op, const node& n,
                std::initializer_list<const char*> outputs,
                std::initializer_list<const char*> expected) {
  symbols s;
  CAPTURE(std::string(op.info->name));
  REQUIRE((op.symbols.backward != nullptr));
  const auto got = infer(op, s, n, outputs);
  std::size_t i = 0;
  for (const char* wanted : expected) {
    CAPTURE(i);
    CHECK(got[i++] == wanted);
  }
}

}  // namespace test
