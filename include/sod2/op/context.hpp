// What an operator sees while facts flow through it: its inputs' and outputs' facts, attributes and
// the dimension domain. Never a graph, so that one transfer function serves models, compile-time
// shapes, foreign engines and tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <sod2/core/attribute.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/expr/domain.hpp>
#include <sod2/expr/print.hpp>
#include <sod2/shape/fact.hpp>

namespace sod2 {

/// Text of dims in any domain, for messages.
inline std::string text_of(integer_domain&, std::int64_t d) { return std::to_string(d); }
inline std::string text_of(interval_domain&, interval d) {
  return "[" + std::to_string(d.lo) + ", " + std::to_string(d.hi) + "]";
}
inline std::string text_of(symbolic_domain& domain, dim d) { return print(domain.context(), d); }

/// Is this dim usable by arithmetic (neither undefined nor unknown)?
constexpr bool is_known(dim d) { return d.is_known(); }
constexpr bool is_known(std::int64_t) { return true; }
constexpr bool is_known(interval) { return true; }

/// The bottom of a domain's dims ("not a function of symbols").
constexpr dim unknown_dim(const symbolic_domain&) { return dim::unknown(); }
constexpr std::int64_t unknown_dim(const integer_domain&) { return -1; }
constexpr interval unknown_dim(const interval_domain&) { return {0, infinity}; }

/// Range of a dim at every binding; everything when it is undefined or unknown.
constexpr interval bounds_of(const integer_domain&, std::int64_t d) { return interval::point(d); }
constexpr interval bounds_of(const interval_domain&, interval d) { return d; }
constexpr interval bounds_of(symbolic_domain& domain, dim d) { return domain.context().bounds(d); }
constexpr bool is_undefined(dim d) { return d.is_undefined(); }
constexpr bool is_undefined(std::int64_t) { return false; }
constexpr bool is_undefined(interval) { return false; }

template <class Domain>
class transfer_context {
 public:
  using domain_type = Domain;
  using value_type = typename Domain::value_type;
  using fact = basic_fact<value_type>;
  using dim_list = decltype(fact::dims);

  /// Something that must hold and could not be proved: an equality, or that two dims broadcast.
  struct requirement {
    value_type left{}, right{};
    errc code = errc::dim_mismatch;
    bool broadcast = false;
  };
  /// What a backward rule infers about an input. axis == rank_only: only `value`-many axes exist.
  struct refinement {
    std::uint32_t input = 0;
    std::int32_t axis = 0;
    value_type value{};
    std::size_t rank = 0;
  };
  static constexpr std::int32_t rank_only = -1;
  /// A symbol made for one dim of one output. Kept by the caller from call to call, so that a
  /// transfer function that runs again gets the same symbol again.
  struct fresh_entry {
    std::uint32_t output = 0, axis = 0;
    value_type symbol{};
  };
  using fresh_cache = vector<fresh_entry>;

  transfer_context(Domain& domain, std::span<const fact* const> inputs, std::span<fact> outputs,
                   attribute_source attributes, int version)
      : domain_(&domain), inputs_(inputs), outputs_(outputs), attributes_(attributes), version_(version) {}

  Domain& domain() { return *domain_; }
  /// The operator version that applies: the newest one not above the model's opset.
  int version() const { return version_; }
  const attribute_source& attributes() const { return attributes_; }

  // ---- inputs and outputs ----

  std::size_t input_count() const { return inputs_.size(); }
  std::size_t output_count() const { return outputs_.size(); }
  /// False for an optional input that is left out.
  bool has_input(std::size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  /// Requires has_input(i).
  const fact& input(std::size_t i) const {
    SOD2_ASSERT(has_input(i));
    return *inputs_[i];
  }
  fact& output(std::size_t i) {
    SOD2_ASSERT(i < outputs_.size());
    return outputs_[i];
  }
  const fact& output(std::size_t i) const { return outputs_[i]; }
  bool rank_known(std::size_t i) const {
    if (!has_input(i)) return false;
    if (!input(i).rank_known()) ranks_missed_ |= std::uint32_t{1} << (i < 31 ? i : 31);
    return input(i).rank_known();
  }
  /// Bit i: the transfer function asked for the rank of input i in vain.
  std::uint32_t ranks_missed() const { return ranks_missed_; }
  std::span<const value_type> dims(std::size_t i) const { return input(i).dims.view(); }

  // ---- values: reading one makes the node value-dependent ----

  /// Is input i tracked as a value (its elements may still be unknown one by one)?
  bool has_value(std::size_t i) {
    if (!has_input(i)) return false;
    value_reads_ |= std::uint64_t{1} << (i < 63 ? i : 63);
    if (load_ != nullptr && !input(i).has_value) load_(loader_, i);
    return input(i).has_value;
  }
  /// Elements of input i; requires has_value(i).
  std::span<const value_type> value(std::size_t i) {
    SOD2_ASSERT(has_value(i));
    return input(i).elements.view();
  }
  /// All elements of input i as constants; false when it is absent, untracked or not constant.
  bool constants(std::size_t i, small_vector<std::int64_t, 8>& out) {
    if (!has_value(i)) return false;
    out.clear();
    for (const value_type& v : input(i).elements) {
      std::int64_t k = 0;
      if (!is_known(v) || !domain_->as_constant(v, k)) return false;
      out.push_back(k);
    }
    return true;
  }
  /// Bit i: the transfer function asked for the value of input i.
  std::uint64_t value_reads() const { return value_reads_; }
  /// `load(loader, i)` is called before the value of an untracked input is read. It may make it
  /// tracked: most weights are never read, so their elements become expressions only then.
  void use_loader(void* loader, void (*load)(void* loader, std::size_t input)) {
    loader_ = loader;
    load_ = load;
  }

  // ---- writing outputs ----

  void set_type(std::size_t i, dtype type) {
    outputs_[i].kind = fact_kind::tensor;
    outputs_[i].type = type;
  }
  template <class Dims>
  void set_shape(std::size_t i, const Dims& dims) {
    fact& f = outputs_[i];
    f.kind = fact_kind::tensor;
    f.rank = rank_state::known;
    f.dims.clear();
    for (const auto& d : dims) f.dims.push_back(d);
  }
  /// The rank is known, the dims are not functions of symbols.
  void set_rank(std::size_t i, std::size_t rank) {
    fact& f = outputs_[i];
    f.kind = fact_kind::tensor;
    f.rank = rank_state::known;
    f.dims.clear();
    for (std::size_t k = 0; k < rank; ++k) f.dims.push_back(unknown_dim(*domain_));
  }
  void set_rank_unknown(std::size_t i) {
    outputs_[i].kind = fact_kind::tensor;
    outputs_[i].rank = rank_state::unknown;
    outputs_[i].dims.clear();
  }
  /// Output o has the shape of input i (nothing yet, when that is not known).
  void copy_shape(std::size_t i, std::size_t o) {
    fact& f = outputs_[o];
    f.kind = fact_kind::tensor;
    f.rank = input(i).rank;
    f.dims = input(i).dims;
  }
  void copy_type(std::size_t i, std::size_t o) { set_type(o, input(i).type); }
  /// Records the elements of output o; dropped when there are too many to track.
  template <class Elements>
  void set_value(std::size_t o, const Elements& elements) {
    if (elements.size() > max_tracked_elements) return;
    fact& f = outputs_[o];
    f.has_value = true;
    f.elements.clear();
    for (const auto& e : elements) f.elements.push_back(e);
  }

  // ---- requirements (rules::Sink) ----

  /// a == b must hold. False when it provably does not; recorded when it cannot be proved.
  bool require_eq(const value_type& a, const value_type& b, errc code) {
    const tri t = domain_->decide_eq(a, b);
    if (t == tri::unknown && is_known(a) && is_known(b)) requirements_.push_back({a, b, code, false});
    return t != tri::no;
  }
  bool require_broadcast(const value_type& a, const value_type& b) {
    if (is_known(a) && is_known(b)) requirements_.push_back({a, b, errc::broadcast, true});
    return true;
  }
  std::span<const requirement> requirements() const { return requirements_.view(); }

  // ---- sizes known only later ----

  void use_cache(fresh_cache& cache) { cache_ = &cache; }
  /// A bounded symbol for dim `axis` of output `output`; the same one at every call, narrowed when
  /// a later call knows a smaller range. A constant where the range holds one value only.
  value_type fresh(std::size_t output, std::size_t axis, interval range) {
    if constexpr (std::is_same_v<Domain, symbolic_domain>) {
      if (cache_ != nullptr) {
        for (const fresh_entry& e : *cache_)
          if (e.output == output && e.axis == axis) {
            narrow(e.symbol, range);
            return e.symbol;
          }
        if (range.is_point()) return domain_->constant(range.lo);
        cache_->push_back({static_cast<std::uint32_t>(output), static_cast<std::uint32_t>(axis), domain_->fresh(range)});
        return cache_->back().symbol;
      }
    }
    return domain_->fresh(range);
  }
  /// For rules:: that resolve the dims of output 0.
  value_type fresh_dim(Domain&, std::size_t axis, interval range) { return fresh(0, axis, range); }
  /// Range of a dim, see bounds_of.
  interval bounds(const value_type& d) { return bounds_of(*domain_, d); }
  /// Nothing is known of input i yet; a later pass may know more.
  bool pending(std::size_t i) const {
    return has_input(i) && (input(i).kind == fact_kind::undefined || input(i).rank == rank_state::undefined);
  }

  // ---- backward inference ----

  /// Input i has this rank.
  void refine_rank(std::size_t i, std::size_t rank) {
    if (has_input(i) && !input(i).rank_known())
      refinements_.push_back({static_cast<std::uint32_t>(i), rank_only, value_type{}, rank});
  }
  /// Input i has this dim at `axis`; its rank must be known or refined first.
  void refine(std::size_t i, std::size_t axis, value_type d) {
    if (has_input(i) && is_known(d))
      refinements_.push_back({static_cast<std::uint32_t>(i), static_cast<std::int32_t>(axis), d, 0});
  }
  void refine_shape(std::size_t i, std::span<const value_type> shape) {
    refine_rank(i, shape.size());
    for (std::size_t k = 0; k < shape.size(); ++k) refine(i, k, shape[k]);
  }
  std::span<const refinement> refinements() const { return refinements_.view(); }

  // ---- errors ----

  void name(std::string_view node, std::span<const std::string_view> inputs) {
    node_ = node;
    input_names_ = inputs;
  }
  /// Names that are looked up only where an error needs them.
  void use_names(std::string_view node, void* owner,
                 std::string_view (*of_input)(void* owner, std::size_t i)) {
    node_ = node;
    names_owner_ = owner;
    name_of_input_ = of_input;
  }
  std::string_view input_name(std::size_t i) const {
    if (name_of_input_ != nullptr && i < inputs_.size()) return name_of_input_(names_owner_, i);
    return i < input_names_.size() ? input_names_[i] : std::string_view{};
  }
  error fail(errc code) const { return error(code).at_node(node_); }
  error fail(errc code, std::string message) const { return error(code, std::move(message)).at_node(node_); }
  /// About input i, optionally one axis, with the two facts that disagree.
  error fail(errc code, std::size_t i, int axis, std::string left, std::string right) const {
    return error(code, std::string(sod2::text_of(code))).at_node(node_).at_tensor(input_name(i), axis).between(left, right);
  }
  std::string text(const value_type& d) { return sod2::text_of(*domain_, d); }
  std::string text(std::span<const value_type> dims) {
    std::string out = "(";
    for (std::size_t i = 0; i < dims.size(); ++i) out.append(i > 0 ? ", " : "").append(text(dims[i]));
    return out += ")";
  }

 private:
  void narrow(const value_type& symbol, interval range) {
    if constexpr (std::is_same_v<Domain, symbolic_domain>) {
      dim_context& context = domain_->context();
      if (context.kind(symbol) != dim_kind::symbol) return;
      const interval now = context.range_of_symbol(context.symbol_index(symbol));
      const interval both = meet(now, range);
      if (!both.empty() && both != now) (void)context.assume_range(context.symbol_index(symbol), both);
    }
  }

  Domain* domain_;
  std::span<const fact* const> inputs_;
  std::span<fact> outputs_;
  attribute_source attributes_;
  int version_;
  std::uint64_t value_reads_ = 0;
  mutable std::uint32_t ranks_missed_ = 0;
  void* loader_ = nullptr;
  void (*load_)(void*, std::size_t) = nullptr;
  fresh_cache* cache_ = nullptr;
  small_vector<requirement, 2> requirements_;
  small_vector<refinement, 4> refinements_;
  std::string_view node_;
  std::span<const std::string_view> input_names_;
  void* names_owner_ = nullptr;
  std::string_view (*name_of_input_)(void*, std::size_t) = nullptr;
};

using symbolic_transfer = transfer_context<symbolic_domain>;

}  // namespace sod2
