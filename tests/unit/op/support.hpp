// What tests of operators share: a node as text. Shapes are lists of expressions; one case runs
// over symbols, over integers at random bindings, and over intervals, and all three must agree.
// Everything that does not depend on the operator's type stands in support.cpp, compiled once.
#pragma once

#include <doctest/doctest.h>

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sod2/expr/domain.hpp>
#include <sod2/op/context.hpp>
#include <sod2/op/definition.hpp>

namespace test {

using sod2::dtype;

/// One input: absent, of unknown rank, or with dims such as "N, 3, H" and perhaps elements. Made
/// from literals only.
struct operand {
  bool given = true;
  bool rank_known = true;
  const char* dims = "";  // null: a vector as long as `elements`
  dtype type = dtype::f32;
  const char* elements = nullptr;  // null: not tracked
};
constexpr operand in(const char* dims, dtype type = dtype::f32) {
  return {true, true, dims, type, nullptr};
}
constexpr operand no_rank(dtype type = dtype::f32) { return {true, false, "", type, nullptr}; }
constexpr operand absent() { return {false, false, "", dtype::undefined, nullptr}; }
/// A tracked vector of int64 (or another type).
constexpr operand vec(const char* elements, dtype type = dtype::i64) {
  return {true, true, nullptr, type, elements};
}
constexpr operand scalar(const char* element, dtype type = dtype::i64) {
  return {true, true, "", type, element};
}
constexpr operand values(const char* dims, const char* elements, dtype type = dtype::i64) {
  return {true, true, dims, type, elements};
}

class operand_list {
 public:
  operand_list() = default;
  operand_list(std::initializer_list<operand> list);
  /// n operands that only count.
  static operand_list placeholders(std::size_t n);
  std::size_t size() const { return count_; }
  const operand* begin() const { return items_; }
  const operand* end() const { return items_ + count_; }
  const operand& operator[](std::size_t i) const { return items_[i]; }

 private:
  operand items_[12];
  std::size_t count_ = 0;
};

/// "a, f(b, c), d" at top-level commas.
std::vector<std::string> pieces(std::string_view text);

/// Attributes that own what views point to.
class attributes {
 public:
  attributes();
  attributes(attributes&&) noexcept;
  attributes& operator=(attributes&&) noexcept;
  attributes(const attributes&);
  attributes& operator=(const attributes&);
  ~attributes();
  attributes&& set(const char* name, std::int64_t v) &&;
  attributes&& set(const char* name, int v) &&;
  attributes&& set(const char* name, double v) &&;
  attributes&& set(const char* name, const char* v) &&;
  attributes&& ints(const char* name, std::initializer_list<std::int64_t> v) &&;
  attributes&& reals(const char* name, std::initializer_list<float> v) &&;
  attributes&& strings(const char* name, std::initializer_list<const char*> v) &&;
  template <class T>
  attributes&& tensor(const char* name, std::initializer_list<std::int64_t> dims,
                      std::initializer_list<T> data) && {
    set_tensor(name, dims, data.begin(), data.size() * sizeof(T), sod2::dtype_of<T>);
    return std::move(*this);
  }
  sod2::attribute_source source() const;

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
  item& add(const char* name, sod2::attribute_kind kind);
  void set_tensor(const char* name, std::initializer_list<std::int64_t> dims, const void* data,
                  std::size_t bytes, dtype type);
  sod2::attribute_view find(std::string_view name) const;
  std::map<std::string, item, std::less<>> items_;
};

struct node {
  int version = 1;
  operand_list inputs{};
  attributes attrs{};
  std::size_t outputs = 1;
};

// ---- operators without their type ----

template <class Domain>
using transfer = sod2::status (*)(sod2::transfer_context<Domain>&);
template <class Domain>
struct transfers {
  transfer<Domain> forward = nullptr, backward = nullptr, value = nullptr;
};
struct operator_under_test {
  const sod2::op_info* info = nullptr;
  transfers<sod2::symbolic_domain> symbols;
  transfers<sod2::integer_domain> integers;
  transfers<sod2::interval_domain> intervals;
};
template <class Op, class Domain>
constexpr transfers<Domain> transfers_of() {
  using context = sod2::transfer_context<Domain>;
  transfers<Domain> t;
  t.forward = &Op::template forward<context>;
  if constexpr (requires(context& c) { Op::backward(c); })
    t.backward = &Op::template backward<context>;
  if constexpr (requires(context& c) { Op::value(c); }) t.value = &Op::template value<context>;
  return t;
}
template <class Op>
inline constexpr operator_under_test under_test{
    &Op::info, transfers_of<Op, sod2::symbolic_domain>(), transfers_of<Op, sod2::integer_domain>(),
    transfers_of<Op, sod2::interval_domain>()};

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

  explicit run(Domain& d);
  ~run();
  void start(const node& n);
  /// forward, then value.
  sod2::status go(const transfers<Domain>& op);
};
extern template struct run<sod2::symbolic_domain>;
extern template struct run<sod2::integer_domain>;
extern template struct run<sod2::interval_domain>;

/// Symbols of a case: small sizes unless declared otherwise.
class symbols {
 public:
  sod2::dim_context context;
  sod2::symbolic_domain domain{context};
  using requirement = sod2::symbolic_transfer::requirement;

  symbols();
  ~symbols();
  sod2::dim parse(const std::string& text);
  /// Float elements are literals or already floating-point expressions.
  sod2::dim element(const std::string& text, dtype type);
  sod2::symbolic_fact fact(const operand& o);
  std::string text(const sod2::symbolic_fact& f);
  std::string elements(const sod2::symbolic_fact& f);
  /// A node's outputs, or its error. A second run must meet the same symbols.
  sod2::status apply(const operator_under_test& op, const node& n,
                     std::vector<sod2::symbolic_fact>& out,
                     std::vector<requirement>* needs = nullptr);
  template <class Op>
  sod2::status apply(const node& n, std::vector<sod2::symbolic_fact>& out,
                     std::vector<requirement>* needs = nullptr) {
    return apply(under_test<Op>, n, out, needs);
  }
  /// Value of an expression at a binding of all input symbols; false when it has inferred symbols.
  bool evaluate(sod2::dim d, const std::vector<std::int64_t>& binding, std::int64_t& out);
};

/// The generic soundness check. `expected` per output: "(2, N)", "unknown", or "" for anything; "*"
/// is some bounded symbol.
void check(const operator_under_test& op, const node& n,
           std::initializer_list<const char*> expected, dtype type);
template <class Op>
void check(const node& n, std::initializer_list<const char*> expected,
           dtype type = dtype::undefined) {
  check(under_test<Op>, n, expected, type);
}

/// Elements of output 0, "(N, ?, 3)", or "untracked".
void check_value(const operator_under_test& op, const node& n, std::string_view expected);
template <class Op>
void check_value(const node& n, std::string_view expected) {
  check_value(under_test<Op>, n, expected);
}

/// The one line of an error.
void check_error(const operator_under_test& op, const node& n, sod2::errc code,
                 std::string_view text);
template <class Op>
void check_error(const node& n, sod2::errc code, std::string_view text) {
  check_error(under_test<Op>, n, code, text);
}

/// Inputs with hidden dims ("_") or none at all (no_rank), the outputs given: what backward infers
/// about each input, "rank r" first where the rank is new, then "axis=expression".
void check_back(const operator_under_test& op, const node& n,
                std::initializer_list<const char*> outputs,
                std::initializer_list<const char*> expected);
template <class Op>
void check_back(const node& n, std::initializer_list<const char*> outputs,
                std::initializer_list<const char*> expected) {
  check_back(under_test<Op>, n, outputs, expected);
}

}  // namespace test
