// Random expression trees: what the context makes of them must have the value that the tree has, at
// every binding that satisfies what was assumed.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <sod2/expr.hpp>

using sod2::dim;
using sod2::dim_context;
using sod2::tri;

namespace {

// A tree as written: evaluated directly, and built through the context.
struct tree {
  enum kind {
    constant,
    symbol,
    add,
    sub,
    mul,
    floordiv,
    ceildiv,
    mod,
    align,
    min,
    max,
    real
  } what = constant;
  std::int64_t k = 0;
  int real_kind = 0;
  std::vector<tree> args;
};

constexpr std::size_t symbols = 4;
constexpr const char* names[symbols] = {"A", "B", "C", "D"};

struct generator {
  std::mt19937_64 random;
  std::int64_t pick(std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(random);
  }
  tree make(int depth) {
    tree t;
    const int what = static_cast<int>(depth == 0 ? pick(0, 3) : pick(1, 16));
    if (what <= 3) {
      t.what = what == 0 ? tree::constant : tree::symbol;
      t.k = what == 0 ? pick(-9, 40) : pick(0, std::int64_t{symbols} - 1);
      return t;
    }
    const auto binary = [&](tree::kind k) {
      t.what = k;
      t.args.push_back(make(depth - 1));
      t.args.push_back(make(depth - 1));
    };
    const auto by_constant = [&](tree::kind k) {
      t.what = k;
      t.args.push_back(make(depth - 1));
      t.k = pick(1, 3) == 1 ? (std::int64_t{1} << pick(0, 5)) : pick(1, 12);
    };
    switch (what) {
      case 4:
      case 5: binary(tree::add); break;
      case 6: binary(tree::sub); break;
      case 7:
      case 8: binary(tree::mul); break;
      case 9:
      case 10: by_constant(tree::floordiv); break;
      case 11: by_constant(tree::ceildiv); break;
      case 12: by_constant(tree::mod); break;
      case 13: by_constant(tree::align); break;
      case 14: binary(tree::min); break;
      case 15: binary(tree::max); break;
      default:
        by_constant(tree::real);
        t.real_kind = static_cast<int>(pick(0, 5));
        break;
    }
    return t;
  }
};

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  std::int64_t q = a / b;
  while (q * b > a) --q;
  return q;
}
// What the six floating-point sizes compute, written as a kernel would.
std::int64_t real_value(int kind, std::int64_t x, std::int64_t k) {
  // Rounded before use: no fused multiply-add, which a kernel of two operators has not either.
  const float f = static_cast<float>(x);
  const volatile float g = static_cast<float>(k) * 0.3f;
  const double d = static_cast<double>(x);
  const volatile double e = static_cast<double>(k) * 0.3;
  switch (kind) {
    case 0: return static_cast<std::int64_t>(std::floor(f * g));
    case 1: return static_cast<std::int64_t>(std::ceil(d / e));
    case 2: return static_cast<std::int64_t>(std::nearbyint(d * e));
    case 3: return static_cast<std::int64_t>(f / static_cast<float>(k));
    case 4: return static_cast<std::int64_t>(std::floor(f + g));
    default: return static_cast<std::int64_t>(std::floor(d * static_cast<double>(k)));
  }
}
dim real_dim(dim_context& c, int kind, dim x, std::int64_t k) {
  using sod2::real_op;
  const bool wide = kind == 1 || kind == 2 || kind == 5;
  const double literal = kind == 3 || kind == 5 ? static_cast<double>(k)
                         : wide                 ? static_cast<double>(k) * 0.3
                                                : static_cast<double>(static_cast<float>(k) * 0.3f);
  const dim args[2] = {c.real(real_op::from_int, wide, {&x, 1}), c.real_literal(literal, wide)};
  const real_op inner = kind == 1 || kind == 3 ? real_op::div
                        : kind == 4            ? real_op::add
                                               : real_op::mul;
  const dim y = c.real(inner, wide, args);
  const real_op outer = kind == 1   ? real_op::ceil_int
                        : kind == 2 ? real_op::round_int
                        : kind == 3 ? real_op::trunc_int
                                    : real_op::floor_int;
  return c.real(outer, wide, {&y, 1});
}

std::int64_t value_of(const tree& t, const std::int64_t* values) {
  const auto arg = [&](std::size_t i) { return value_of(t.args[i], values); };
  switch (t.what) {
    case tree::constant: return t.k;
    case tree::symbol: return values[t.k];
    case tree::add: return arg(0) + arg(1);
    case tree::sub: return arg(0) - arg(1);
    case tree::mul: return arg(0) * arg(1);
    case tree::floordiv: return floor_div(arg(0), t.k);
    case tree::ceildiv: return -floor_div(-arg(0), t.k);
    case tree::mod: return arg(0) - t.k * floor_div(arg(0), t.k);
    case tree::align: return -floor_div(-arg(0), t.k) * t.k;
    case tree::min: return std::min(arg(0), arg(1));
    case tree::max: return std::max(arg(0), arg(1));
    case tree::real: return real_value(t.real_kind, arg(0), t.k);
  }
  return 0;
}
dim build(dim_context& c, const tree& t) {
  const auto arg = [&](std::size_t i) { return build(c, t.args[i]); };
  switch (t.what) {
    case tree::constant: return c.constant(t.k);
    case tree::symbol: return c.symbol(names[t.k]);
    case tree::add: {
      const dim x = arg(0);
      return c.add(x, arg(1));
    }
    case tree::sub: {
      const dim x = arg(0);
      return c.sub(x, arg(1));
    }
    case tree::mul: {
      const dim x = arg(0);
      return c.mul(x, arg(1));
    }
    case tree::floordiv: return c.floordiv(arg(0), t.k);
    case tree::ceildiv: return c.ceildiv(arg(0), t.k);
    case tree::mod: return c.mod(arg(0), t.k);
    case tree::align: return c.align_up(arg(0), t.k);
    case tree::min: {
      const dim x = arg(0);
      return c.min(x, arg(1));
    }
    case tree::max: {
      const dim x = arg(0);
      return c.max(x, arg(1));
    }
    case tree::real: return real_dim(c, t.real_kind, arg(0), t.k);
  }
  return dim::unknown();
}
std::string text(const tree& t) {
  static const char* const shown[] = {"",        "",    "add",   "sub", "mul", "floordiv",
                                      "ceildiv", "mod", "align", "min", "max", "real"};
  if (t.what == tree::constant) return std::to_string(t.k);
  if (t.what == tree::symbol) return names[t.k];
  std::string out = std::string(shown[t.what]) + "(";
  for (const tree& a : t.args) out += text(a) + ", ";
  return out + std::to_string(t.k) +
         (t.what == tree::real ? " kind " + std::to_string(t.real_kind) : "") + ")";
}

// What is assumed of the four symbols, in a form that a binding can be drawn from.
struct assumptions {
  bool equal[symbols] = {};  // equal to the symbol before
  std::int64_t lo[symbols], hi[symbols], step[symbols], offset[symbols];
};

}  // namespace

TEST_CASE("random expressions keep their value") {
  generator g{std::mt19937_64(20240831)};
  int decided = 0, known = 0, made_equal = 0, inverted = 0;
  for (int round = 0; round < 4000; ++round) {
    dim_context c;
    for (const char* name : names) c.symbol(name);
    std::vector<tree> trees;
    std::vector<dim> dims;
    for (int i = 0; i < 4; ++i) {
      trees.push_back(g.make(static_cast<int>(g.pick(1, 4))));
      dims.push_back(build(c, trees.back()));
    }
    // Facts in random order, learnt after the first trees were built.
    assumptions facts;
    bool possible = true;
    for (std::size_t s = 0; s < symbols; ++s) {
      facts.lo[s] = 1;
      facts.hi[s] = 60;
      facts.step[s] = 1;
      facts.offset[s] = 0;
      const std::uint32_t index = static_cast<std::uint32_t>(c.find_symbol(names[s]));
      if (g.pick(0, 2) == 0) facts.hi[s] = g.pick(8, 100);
      if (g.pick(0, 3) == 0) {
        facts.step[s] = g.pick(2, 8);
        facts.offset[s] = g.pick(0, facts.step[s] - 1);
      }
      if (s > 0 && g.pick(0, 4) == 0) {
        facts.equal[s] = true;
        if (g.pick(0, 1) == 0)
          possible = possible && c.assume_eq(c.symbol(names[s]), c.symbol(names[s - 1])) != tri::no;
        else
          possible = possible && c.assume_eq(c.symbol(names[s - 1]), c.symbol(names[s])) != tri::no;
      }
      possible = possible && c.assume_range(index, {facts.lo[s], facts.hi[s]});
      possible = possible && c.assume_divisible(index, facts.step[s], facts.offset[s]);
    }
    // Two random expressions are called equal as well; bindings that disagree are left out below.
    tree left, right;
    bool related = g.pick(0, 2) == 0;
    if (related) {
      left = g.make(static_cast<int>(g.pick(1, 2)));
      right = g.make(static_cast<int>(g.pick(0, 2)));
      const tri answer = c.assume_eq(build(c, left), build(c, right));
      possible = possible && answer != tri::no;
      made_equal += answer == tri::yes ? 1 : 0;
    }
    for (int i = 0; i < 3; ++i) {
      trees.push_back(g.make(static_cast<int>(g.pick(1, 4))));
      dims.push_back(build(c, trees.back()));
    }
    // One tree with a constant for C, one with D found from the value of the tree.
    const std::int64_t put_in = facts.step[2] * g.pick(1, 5) + facts.offset[2];
    const dim replaced = c.substitute(dims[4], c.symbol("C"), c.constant(put_in));
    dim lo{}, hi{};
    const dim value = c.fresh({sod2::minus_infinity, sod2::infinity});
    const bool solved =
        c.solve(dims[5], c.symbol("D"), value, lo, hi) && lo.is_known() && hi.is_known();
    const std::uint32_t value_index = c.symbol_index(value);
    inverted += solved ? 1 : 0;
    std::vector<sod2::interval> bounds;
    std::vector<dim> again;
    for (dim d : dims) {
      bounds.push_back(c.bounds(d));
      const auto parsed = d.is_known() ? sod2::parse(c, sod2::print(c, d)) : sod2::result<dim>(d);
      CAPTURE(sod2::print(c, d));
      REQUIRE(parsed.ok());
      again.push_back(*parsed);
      known += d.is_known() ? 1 : 0;
    }
    const std::int64_t k = g.pick(2, 9);
    std::vector<tri> equal, less, divides;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const dim other = dims[(i + 1) % dims.size()];
      equal.push_back(c.decide_eq(dims[i], other));
      less.push_back(c.decide_le(dims[i], other));
      divides.push_back(c.decide_divisible(dims[i], k));
      decided += less.back() != tri::unknown ? 1 : 0;
    }
    sod2::size_program_builder builder(c);
    std::vector<int> output(dims.size(), -1);
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (c.resolve(dims[i]).is_known()) output[i] = static_cast<int>(builder.add_output(dims[i]));
    const sod2::size_program program = std::move(builder).finish();
    std::vector<std::int64_t> scratch(program.register_count()), results(program.output_count());

    int seen = 0;
    for (int attempt = 0; attempt < 600 && seen < 12; ++attempt) {
      // By symbol index: the four inputs come first; hidden symbols are derived.
      std::vector<std::int64_t> values(c.symbol_count(), 0);
      bool satisfies = true;
      std::int64_t before = 0;
      for (std::size_t s = 0; s < symbols; ++s) {
        const std::int64_t v = facts.equal[s] ? before : g.pick(1, 60);
        values[s] = before = v;
        satisfies = satisfies && v >= facts.lo[s] && v <= facts.hi[s] &&
                    v % facts.step[s] == facts.offset[s];
      }
      if (related)
        satisfies = satisfies && value_of(left, values.data()) == value_of(right, values.data());
      if (!satisfies) continue;
      ++seen;
      if (!possible) {
        CAPTURE(round);
        FAIL_CHECK("facts that a binding satisfies were called contradictory");
        break;
      }
      if (c.resolve(replaced).is_known()) {
        std::vector<std::int64_t> other(values);
        other[2] = put_in;
        // Whatever equals C changes with it, so that only a free C is looked at.
        const bool in_range = facts.lo[2] <= put_in && put_in <= facts.hi[2];
        if (in_range && !facts.equal[2] && !facts.equal[3] && !related) {
          const auto got = sod2::evaluate(c, replaced, values);
          REQUIRE(got.ok());
          REQUIRE(*got == value_of(trees[4], other.data()));
        }
      }
      if (solved) {
        values[value_index] = value_of(trees[5], values.data());
        const auto least = sod2::evaluate(c, lo, values), most = sod2::evaluate(c, hi, values);
        REQUIRE((least.ok() && most.ok()));
        const auto x = sod2::evaluate(c, c.symbol("D"), values);
        REQUIRE((*least <= *x && *x <= *most));
      }
      const sod2::errc state = program.evaluate(values, scratch, results);
      REQUIRE(state == sod2::errc::ok);
      std::vector<std::int64_t> wanted;
      for (std::size_t i = 0; i < dims.size(); ++i)
        wanted.push_back(value_of(trees[i], values.data()));
      for (std::size_t i = 0; i < dims.size(); ++i) {
        CAPTURE(round);
        CAPTURE(text(trees[i]));
        CAPTURE(sod2::print(c, dims[i]));
        CAPTURE(values[0]);
        CAPTURE(values[1]);
        CAPTURE(values[2]);
        CAPTURE(values[3]);
        if (output[i] >= 0) {
          REQUIRE(results[static_cast<std::size_t>(output[i])] == wanted[i]);
          REQUIRE(bounds[i].contains(wanted[i]));
          if (c.resolve(again[i]).is_known()) {  // else too large when written out
            const auto reparsed = sod2::evaluate(c, again[i], values);
            REQUIRE(reparsed.ok());
            REQUIRE(*reparsed == wanted[i]);
          }
        }
        const std::int64_t other = wanted[(i + 1) % dims.size()];
        if (equal[i] != tri::unknown) REQUIRE((equal[i] == tri::yes) == (wanted[i] == other));
        if (less[i] != tri::unknown) REQUIRE((less[i] == tri::yes) == (wanted[i] <= other));
        if (divides[i] != tri::unknown) REQUIRE((divides[i] == tri::yes) == (wanted[i] % k == 0));
      }
    }
  }
  // The test is worthless if everything is unknown.
  CHECK(known > 27000);
  CHECK(decided > 4000);
  CHECK(made_equal > 400);
  CHECK(inverted > 200);
}
