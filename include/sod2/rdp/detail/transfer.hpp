// The RDP instance of the solver: facts forward and backward through operators and control flow.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/core/checked.hpp>
#include <sod2/core/ids.hpp>
#include <sod2/core/status.hpp>
#include <sod2/expr/context.hpp>
#include <sod2/expr/print.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/op/registry.hpp>
#include <sod2/rdp/analysis.hpp>
#include <sod2/rdp/solver.hpp>
#include <sod2/shape/fact.hpp>

namespace sod2 {

/// The RDP instance of the solver's transfer.
class rdp_transfer {
 public:
  rdp_transfer(const graph_view& view, const registry& ops, const analysis_options& options,
               analysis& out)
      : view_(view), ops_(ops), options_(options), out_(out), domain_(out.context_) {}

  /// Looks up operators and seeds facts of inputs and constants.
  status start() {
    out_.facts_.resize(view_.value_count());
    out_.nodes_.resize(view_.node_count());
    caches_.resize(view_.node_count());
    waiting_.resize(view_.value_count());
    loops_.resize(view_.scope_count());
    impossible_.assign(view_.scope_count(), 0);
    for (std::size_t i = 0; i < view_.node_count(); ++i) SOD2_TRY(look_up(node_id{i}));
    for (const symbol_declaration& d : options_.symbols) SOD2_TRY(declare(d));
    for (std::size_t v = 1; v < view_.value_count(); ++v)
      if (view_.is_constant(value_id{v})) seed_constant(value_id{v});
    // Control flow hands facts on without asking for values.
    for (std::size_t i = 0; i < view_.node_count() && view_.scope_count() > 1; ++i)
      if (!view_.scopes(node_id{i}).empty())
        for (value_id v : view_.inputs(node_id{i})) load(v);
    for (std::size_t s = 1; s < view_.scope_count(); ++s)
      for (value_id v : view_.outputs(scope_id{s})) load(v);
    for (value_id v : view_.inputs()) seed_input(v);
    for (std::size_t v = 1; v < view_.value_count(); ++v)
      if (view_.producer(value_id{v}) != no_index) seed_produced(value_id{v});
    for (std::size_t s = 1; s < view_.scope_count(); ++s) {
      const node_id owner{view_.owner(scope_id{s})};
      for (value_id v : view_.outputs(scope_id{s})) {
        if (owners_.size() < view_.value_count()) owners_.resize(view_.value_count());
        owners_[v.index].push_back(owner);
      }
    }
    return {};
  }

  const vector<node_id>* also(value_id v) const {
    return v.index < owners_.size() && !owners_[v.index].empty() ? &owners_[v.index] : nullptr;
  }

  template <class Changed>
  status visit(node_id n, Changed& changed) {
    // Bodies of loops wait until their loop has seeded their inputs.
    if (!is_open(view_.scope(n))) return {};
    if (!view_.scopes(n).empty()) return visit_control(n, changed);
    analysis::node_info& info = out_.nodes_[n.index];
    const op_row& row = *info.op.row;
    small_vector<const symbolic_fact*, 8> inputs;
    for (value_id v : view_.inputs(n))
      inputs.push_back(v == absent ? nullptr : &out_.facts_[v.index]);
    small_vector<symbolic_fact, 2> outputs(view_.outputs(n).size());
    symbolic_transfer c(domain_, inputs, outputs, view_.attributes(n), info.op.version);
    reader reads{this, n};
    c.use_names(view_.name(n), &reads, &name_input);
    c.use_cache(caches_[n.index]);
    c.use_loader(&reads, &load_input);
    if (status s = row.forward(c); !s) {
      if (unconditional(n)) return std::move(s).error().at_node(view_.name(n));
      return exclude(n, std::move(s).error().at_node(view_.name(n)));
    }
    // Values that only pass through do not make the shape depend on them.
    info.value_reads |= c.value_reads();
    info.ranks_missed = c.ranks_missed();
    if (row.value != nullptr)
      if (status s = row.value(c); !s) return std::move(s).error().at_node(view_.name(n));
    if (status s = record(n, c.requirements()); !s) {
      if (unconditional(n)) return s;
      return exclude(n, std::move(s).error());
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (view_.outputs(n)[i] != absent)
        SOD2_TRY(merge(n, view_.outputs(n)[i], outputs[i], changed));
    if (row.backward == nullptr) return {};
    bool open = false;
    for (value_id v : view_.inputs(n))
      open = open || (v != absent && !settled(out_.facts_[v.index]));
    if (!open) return {};
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (view_.outputs(n)[i] != absent) outputs[i] = out_.facts_[view_.outputs(n)[i].index];
    symbolic_transfer back(domain_, inputs, outputs, view_.attributes(n), info.op.version);
    back.use_names(view_.name(n), &reads, &name_input);
    back.use_loader(&reads, &load_input);
    if (status s = row.backward(back); !s) return std::move(s).error().at_node(view_.name(n));
    SOD2_TRY(record(n, back.requirements()));
    return refine(n, back.refinements(), changed);
  }

  /// After the fixpoint: resolves every dim, turns what stayed undefined into unknown, derives
  /// classes.
  void finish() {
    for (symbolic_fact& f : out_.facts_) {
      if (f.rank == rank_state::undefined) f.rank = rank_state::unknown;
      for (dim& d : f.dims) d = d.is_undefined() ? dim::unknown() : out_.context_.resolve(d);
      for (dim& d : f.elements) d = d.is_undefined() ? dim::unknown() : out_.context_.resolve(d);
    }
    // What an arm that cannot run would make does not exist: it has no elements.
    for (std::size_t v = 1; v < view_.value_count(); ++v) {
      symbolic_fact& f = out_.facts_[v];
      if (is_container(f.kind)) continue;
      if (!never_made(value_id{v})) continue;
      if (!f.rank_known()) {
        f.rank = rank_state::known;
        f.dims.assign(1, out_.context_.zero());
      }
      for (dim& d : f.dims)
        if (!d.is_known()) d = out_.context_.zero();
    }
    for (std::size_t i = 0; i < view_.node_count(); ++i) classify(node_id{i});
  }

 private:
  status look_up(node_id n) {
    const auto match = ops_.find(view_.operator_domain(n), view_.operator_name(n), view_.opset(n));
    if (!match) {
      std::string what = "operator '" + std::string(view_.operator_name(n)) + "' of domain '" +
                         std::string(view_.operator_domain(n)) + "' ";
      what += ops_.knows(view_.operator_domain(n), view_.operator_name(n))
                  ? "does not exist in opset " + std::to_string(view_.opset(n))
                  : "is not registered; add an op_row for it to the registry";
      return error(errc::unknown_operator, std::move(what)).at_node(view_.name(n));
    }
    const op_info& info = *match.row->info;
    const auto check = [&](arity a, std::size_t count, const char* side) -> status {
      if (count >= a.least && (count <= a.most || a.most == any_number)) return {};
      return error(errc::arity, std::string(info.name) + " takes " + std::to_string(a.least) +
                                    (a.most == any_number ? " or more"
                                     : a.most == a.least  ? ""
                                                          : " to " + std::to_string(a.most)) +
                                    " " + side + (a.least == 1 && a.most == 1 ? "" : "s") +
                                    ", got " + std::to_string(count))
          .at_node(view_.name(n));
    };
    SOD2_TRY(check(info.inputs, view_.inputs(n).size(), "input"));
    SOD2_TRY(check(info.outputs, view_.outputs(n).size(), "output"));
    for (std::size_t i = 0; i < info.inputs.least && info.inputs.most != any_number; ++i)
      if (view_.inputs(n)[i] == absent)
        return error(errc::arity, "required input " + std::to_string(i) + " is left out")
            .at_node(view_.name(n));
    out_.nodes_[n.index].op = match;
    return {};
  }
  status declare(const symbol_declaration& d) {
    if (d.facts.lo > d.facts.hi)
      return error(errc::contradiction, "symbol '" + d.name + "' has an empty range " +
                                            std::to_string(d.facts.lo) + ".." +
                                            std::to_string(d.facts.hi));
    if (d.facts.step < 1)
      return error(errc::invalid_argument, "symbol '" + d.name + "' has a step below 1");
    if (ceil_div(d.facts.lo - d.facts.offset, d.facts.step) >
        floor_div(d.facts.hi - d.facts.offset, d.facts.step))
      return error(errc::contradiction,
                   "symbol '" + d.name + "' has no multiple of " + std::to_string(d.facts.step) +
                       " in " + std::to_string(d.facts.lo) + ".." + std::to_string(d.facts.hi));
    dim_context& c = out_.context_;
    const dim s = c.symbol(d.name, d.facts);
    const interval range = c.bounds(s);
    if (range.is_point()) (void)c.assume_eq(s, c.constant(range.lo));
    return {};
  }
  void seed_constant(value_id v) {
    const declared_value& d = view_.declared(v);
    symbolic_fact& f = out_.facts_[v.index];
    f.kind = fact_kind::tensor;
    f.type = d.constant.type;
    f.rank = rank_state::known;
    std::int64_t count = 1;
    for (std::int64_t k : d.constant.dims) {
      f.dims.push_back(out_.context_.constant(k));
      count *= k;
    }
    // Floats rarely decide a size: they wait until somebody reads them, see load.
    const bool is_real = f.type == dtype::f32 || f.type == dtype::f64;
    if (count > static_cast<std::int64_t>(max_tracked_elements)) return;
    if (is_real)
      waiting_[v.index] = 1;
    else
      seed_elements(d.constant, static_cast<std::size_t>(count), f);
  }
  /// Tracks the elements of a small float constant.
  void load(value_id v) {
    if (waiting_[v.index] == 0) return;
    waiting_[v.index] = 0;
    const constant_view& c = view_.declared(v).constant;
    seed_elements(c, static_cast<std::size_t>(c.count()), out_.facts_[v.index]);
  }
  struct reader {
    rdp_transfer* self;
    node_id node;
  };
  static void load_input(void* loader, std::size_t input) {
    const reader& r = *static_cast<reader*>(loader);
    r.self->load(r.self->view_.inputs(r.node)[input]);
  }
  static std::string_view name_input(void* names, std::size_t input) {
    const reader& r = *static_cast<reader*>(names);
    return r.self->view_.name(r.self->view_.inputs(r.node)[input]);
  }
  template <class T>
  static T load(const constant_view& c, std::size_t i) {
    T out;  // constants may be misaligned
    std::memcpy(&out, c.data + i * sizeof(T), sizeof(T));
    return out;
  }
  void seed_elements(const constant_view& c, std::size_t count, symbolic_fact& f) {
    if (c.type != dtype::string && c.bytes < count * bytes_of(c.type)) return;
    for (std::size_t i = 0; i < count; ++i) {
      dim e{};
      switch (c.type) {
        case dtype::i64: e = out_.context_.constant(load<std::int64_t>(c, i)); break;
        case dtype::i32: e = out_.context_.constant(load<std::int32_t>(c, i)); break;
        case dtype::i16: e = out_.context_.constant(load<std::int16_t>(c, i)); break;
        case dtype::i8: e = out_.context_.constant(load<std::int8_t>(c, i)); break;
        case dtype::u8: e = out_.context_.constant(load<std::uint8_t>(c, i)); break;
        case dtype::u16: e = out_.context_.constant(load<std::uint16_t>(c, i)); break;
        case dtype::u32: e = out_.context_.constant(load<std::uint32_t>(c, i)); break;
        case dtype::boolean:
          e = out_.context_.constant(load<std::uint8_t>(c, i) != 0 ? 1 : 0);
          break;
        case dtype::f32:
          e = out_.context_.real_literal(static_cast<double>(load<float>(c, i)), false);
          break;
        case dtype::f64: e = out_.context_.real_literal(load<double>(c, i), true); break;
        default: return;  // other types never decide a shape
      }
      f.elements.push_back(e);
    }
    f.has_value = true;
  }
  void seed_input(value_id v) {
    const declared_value& d = view_.declared(v);
    symbolic_fact& f = out_.facts_[v.index];
    if (d.constant.present()) return;  // an input with a fixed value
    f.kind = d.kind;
    f.type = d.type;
    if (is_container(d.kind)) f.rank = rank_state::unknown;  // no shape is not: no elements
    if (!d.has_shape) return;
    f.rank = rank_state::known;
    for (std::size_t axis = 0; axis < d.dims.size(); ++axis) {
      const declared_dim& declared = d.dims[axis];
      if (declared.size >= 0) {
        f.dims.push_back(out_.context_.constant(declared.size));
      } else if (is_container(d.kind)) {
        f.dims.push_back(dim::unknown());  // elements may differ in it
      } else if (!declared.symbol.empty()) {
        f.dims.push_back(out_.context_.symbol(declared.symbol));
      } else {
        f.dims.push_back(
            out_.context_.symbol(std::string(view_.name(v)) + "." + std::to_string(axis)));
      }
    }
    for (const std::string& name : options_.shape_inputs)
      if (name == view_.name(v)) seed_shape_input(v, f);
  }
  // What a graph declares of a value that a node makes is a fact to start from. Names count where a
  // symbol of that name exists; others name nothing that a run could check.
  void seed_produced(value_id v) {
    const declared_value& d = view_.declared(v);
    symbolic_fact& f = out_.facts_[v.index];
    if (!d.has_shape || d.kind != fact_kind::tensor) return;
    f.kind = fact_kind::tensor;
    f.type = d.type;
    f.rank = rank_state::known;
    for (const declared_dim& k : d.dims) {
      dim known = dim::undefined();
      if (k.size >= 0)
        known = out_.context_.constant(k.size);
      else if (const std::int64_t s = out_.context_.find_symbol(k.symbol); s >= 0)
        known = out_.context_.dim_of_symbol(static_cast<std::uint32_t>(s));
      f.dims.push_back(known);
    }
  }
  void seed_shape_input(value_id v, symbolic_fact& f) {
    std::int64_t count = 1;
    for (dim d : f.dims) {
      std::int64_t k = 0;
      if (!domain_.as_constant(d, k)) return;
      count *= k;
    }
    if (!is_integer(f.type) || count > static_cast<std::int64_t>(max_tracked_elements)) return;
    f.has_value = true;
    for (std::int64_t i = 0; i < count; ++i)
      f.elements.push_back(
          out_.context_.symbol(std::string(view_.name(v)) + "[" + std::to_string(i) + "]",
                               {0, default_symbol_max, 1, 0}));
  }

  static bool settled(const symbolic_fact& f) {
    if (!f.rank_known()) return false;
    for (dim d : f.dims)
      if (!d.is_known()) return false;
    return true;
  }
  bool never_made(value_id v) const {
    for (scope_id s = view_.scope(v); s != graph_view::root();
         s = view_.scope(node_id{view_.owner(s)}))
      if (impossible_[s.index] != 0) return true;
    return false;
  }
  /// A node that cannot run makes its arm impossible: the model is refused only if a run takes it.
  status exclude(node_id n, error why) {
    const scope_id s = view_.scope(n);
    if (impossible_[s.index] != 0) return {};
    impossible_[s.index] = 1;
    out_.impossible_.push_back({s, n, why.text()});
    return {};
  }
  /// Is the node executed whenever the model runs? Facts found elsewhere hold only there.
  bool unconditional(node_id n) const { return view_.scope(n) == graph_view::root(); }

  status record(node_id n, std::span<const symbolic_transfer::requirement> requirements) {
    dim_context& c = out_.context_;
    for (const auto& r : requirements) {
      const dim left = c.resolve(r.left), right = c.resolve(r.right);
      if (!left.is_known() || !right.is_known()) continue;
      const tri now = c.decide_eq(left, right);
      if (now == tri::yes) continue;
      if (r.broadcast &&
          (c.decide_eq(left, c.one()) == tri::yes || c.decide_eq(right, c.one()) == tri::yes))
        continue;
      if (now == tri::no && !r.broadcast) return unequal(n, r.code, left, right);
      if (known_assertion(left, right, r.broadcast)) continue;
      assertion a;
      a.what = r.broadcast ? assertion::kind::broadcast : assertion::kind::equal;
      a.left = left;
      a.right = right;
      a.code = r.code;
      a.node = n;
      locate(n, left, right, a.tensor, a.axis);
      a.relation = r.broadcast ? "broadcast(" + print(c, left) + ", " + print(c, right) + ") exists"
                               : print(c, left) + " == " + print(c, right);
      a.text = "node '" + std::string(view_.name(n)) + "': " + a.relation;
      out_.assertions_.push_back(std::move(a));
      if (!r.broadcast && unconditional(n) && c.assume_eq(left, right) == tri::no)
        return unequal(n, r.code, left, right);
    }
    return {};
  }
  /// The input of n of which a dim is one of the two, the later ones first: those of weights say
  /// more than what everything else was derived from.
  void locate(node_id n, dim left, dim right, value_id& tensor, int& axis) {
    const auto inputs = view_.inputs(n);
    for (std::size_t i = inputs.size(); i-- > 0;) {
      if (inputs[i] == absent) continue;
      const auto& dims = out_.facts_[inputs[i].index].dims;
      for (std::size_t k = dims.size(); k-- > 0;) {
        if (!dims[k].is_known()) continue;
        const dim d = out_.context_.resolve(dims[k]);
        if (d != left && d != right) continue;
        tensor = inputs[i];
        axis = static_cast<int>(k);
        return;
      }
    }
  }
  error unequal(node_id n, errc code, dim left, dim right) {
    value_id tensor{};
    int axis = -1;
    locate(n, left, right, tensor, axis);
    error e = error(code)
                  .at_node(view_.name(n))
                  .between(print(out_.context_, left), print(out_.context_, right));
    return tensor == absent ? std::move(e) : std::move(e).at_tensor(view_.name(tensor), axis);
  }
  /// Is this recorded? If not, it is expected to be recorded next. A hash table of indices plus
  /// one, made anew when assertions were dropped.
  bool known_assertion(dim left, dim right, bool broadcast) {
    const auto slot_of = [&](dim a, dim b, bool c) {
      const std::uint64_t key = (std::uint64_t{a.id} << 32 ^ b.id) * 2 + (c ? 1U : 0U);
      return (key * 0x9e3779b97f4a7c15U >> 32) & (recorded_.size() - 1);
    };
    const std::vector<assertion>& all = out_.assertions_;
    if (recorded_count_ > all.size() || recorded_.size() < 2 * (all.size() + 1)) {
      std::size_t slots = 16;
      while (slots < 4 * (all.size() + 1)) slots *= 2;
      recorded_.assign(slots, 0U);
      recorded_count_ = 0;
    }
    for (; recorded_count_ < all.size(); ++recorded_count_) {
      const assertion& a = all[recorded_count_];
      std::size_t at = slot_of(a.left, a.right, a.what == assertion::kind::broadcast);
      while (recorded_[at] != 0) at = (at + 1) & (recorded_.size() - 1);
      recorded_[at] = static_cast<std::uint32_t>(recorded_count_ + 1);
    }
    for (std::size_t at = slot_of(left, right, broadcast); recorded_[at] != 0;
         at = (at + 1) & (recorded_.size() - 1)) {
      const assertion& a = all[recorded_[at] - 1];
      if (a.left == left && a.right == right && (a.what == assertion::kind::broadcast) == broadcast)
        return true;
    }
    return false;
  }

  // Takes over a dim inferred anew: fills what was open, checks what was known.
  status unify(node_id n, value_id v, std::size_t axis, dim& have, dim now, bool& moved) {
    dim_context& c = out_.context_;
    if (!now.is_known()) {
      if (have.is_undefined() && now.is_unknown()) {
        have = now;
        moved = true;
      }
      return {};
    }
    if (!have.is_known()) {
      have = now;
      moved = true;
      return {};
    }
    const dim a = c.resolve(have), b = c.resolve(now);
    if (a == b) return {};
    symbolic_transfer::requirement r{a, b, errc::dim_mismatch, false};
    if (status s = record(n, {&r, 1}); !s)
      return std::move(s).error().at_tensor(view_.name(v), static_cast<int>(axis));
    return {};
  }
  bool same_elements(const symbolic_fact& a, const symbolic_fact& b) {
    dim_context& c = out_.context_;
    const auto same = [&](dim x, dim y) {
      return x == y || (x.is_known() && y.is_known() && c.resolve(x) == c.resolve(y));
    };
    if (a.rank != b.rank || a.dims.size() != b.dims.size() || !same(a.length, b.length))
      return false;
    for (std::size_t i = 0; i < a.dims.size(); ++i)
      if (!same(a.dims[i], b.dims[i])) return false;
    return true;
  }
  /// The join of two containers, in place: sizes in which elements differ, or which a run finds
  /// out, are unknown. Never narrower than before.
  void join_elements(symbolic_fact& f, const symbolic_fact& other) {
    dim_context& c = out_.context_;
    const auto join = [&](dim x, dim y) {
      return x.is_known() && y.is_known() && c.resolve(x) == c.resolve(y) &&
                     c.only_input_symbols(c.resolve(x))
                 ? x
                 : dim::unknown();
    };
    if (f.type == dtype::undefined) f.type = other.type;
    f.length = join(f.length, other.length);
    if (other.rank == rank_state::undefined) return;
    if (f.rank == rank_state::undefined) {
      f.rank = other.rank;
      f.dims = other.dims;
    }
    if (!f.rank_known() || !other.rank_known() || f.dims.size() != other.dims.size()) {
      f.rank = rank_state::unknown;
      f.dims.clear();
    }
    for (std::size_t i = 0; i < f.dims.size(); ++i) f.dims[i] = join(f.dims[i], other.dims[i]);
  }
  template <class Changed>
  status merge(node_id n, value_id v, const symbolic_fact& now, Changed& changed) {
    symbolic_fact& have = out_.facts_[v.index];
    bool moved = false;
    if (have.kind == fact_kind::undefined && now.kind != fact_kind::undefined) {
      have.kind = now.kind;
      moved = true;
    }
    if (have.type == dtype::undefined && now.type != dtype::undefined) {
      have.type = now.type;
      moved = true;
    } else if (now.type != dtype::undefined && have.type != now.type) {
      return error(errc::type_mismatch)
          .at_node(view_.name(n))
          .at_tensor(view_.name(v))
          .between(name_of(have.type), name_of(now.type));
    }
    if (is_container(now.kind)) {
      // A join grows with its elements, so what was found before is no promise.
      if (!same_elements(have, now)) {
        have.rank = now.rank;
        have.dims = now.dims;
        have.length = now.length;
        moved = true;
      }
      if (moved) changed(v);
      return {};
    }
    if (now.rank_known()) {
      if (!have.rank_known()) {
        have.rank = rank_state::known;
        have.dims = now.dims;
        moved = true;
      } else if (have.dims.size() != now.dims.size()) {
        return error(errc::rank_mismatch)
            .at_node(view_.name(n))
            .at_tensor(view_.name(v))
            .between(print(out_.context_, have.dims.view()), print(out_.context_, now.dims.view()));
      } else {
        for (std::size_t i = 0; i < have.dims.size(); ++i)
          SOD2_TRY(unify(n, v, i, have.dims[i], now.dims[i], moved));
      }
    } else if (now.rank == rank_state::unknown && have.rank == rank_state::undefined) {
      have.rank = rank_state::unknown;
      moved = true;
    }
    if (now.has_value) {
      if (!have.has_value || have.elements.size() != now.elements.size()) {
        have.has_value = true;
        have.elements = now.elements;
        moved = true;
      } else {
        for (std::size_t i = 0; i < have.elements.size(); ++i)
          if (!have.elements[i].is_known() && now.elements[i].is_known()) {
            have.elements[i] = now.elements[i];
            moved = true;
          }
      }
    }
    if (moved) changed(v);
    return {};
  }
  template <class Changed>
  status refine(node_id n, std::span<const symbolic_transfer::refinement> list, Changed& changed) {
    for (const auto& r : list) {
      const value_id v = view_.inputs(n)[r.input];
      // What an arm or a body needs says nothing of outer values: it may not run.
      if (!runs_with(view_.scope(n), view_.scope(v))) continue;
      symbolic_fact& f = out_.facts_[v.index];
      bool moved = false;
      if (r.axis == symbolic_transfer::rank_only) {
        if (!f.rank_known()) {
          f.rank = rank_state::known;
          f.dims.assign(r.rank, dim::undefined());
          moved = true;
        }
      } else if (f.rank_known() && static_cast<std::size_t>(r.axis) < f.dims.size()) {
        SOD2_TRY(unify(n, v, static_cast<std::size_t>(r.axis),
                       f.dims[static_cast<std::size_t>(r.axis)], r.value, moved));
      }
      if (moved) changed(v);
    }
    return {};
  }

  // Join of what several arms give: equal stays exact, different dims become a bounded symbol,
  // different ranks give rank unknown.
  symbolic_fact join(node_id n, std::size_t output, const symbolic_fact& a,
                     const symbolic_fact& b) {
    // An arm of which nothing is known yet may still differ.
    if (a.kind == fact_kind::undefined || b.kind == fact_kind::undefined) return {};
    symbolic_fact out;
    if (is_container(a.kind)) {
      out = a;
      join_elements(out, b);
      return out;
    }
    out.kind = a.kind;
    out.type = a.type;
    if (!a.rank_known() || !b.rank_known() || a.dims.size() != b.dims.size()) {
      out.rank = a.rank == rank_state::undefined || b.rank == rank_state::undefined
                     ? rank_state::undefined
                     : rank_state::unknown;
      return out;
    }
    out.rank = rank_state::known;
    dim_context& c = out_.context_;
    for (std::size_t i = 0; i < a.dims.size(); ++i)
      out.dims.push_back(join_dim(n, output, i, a.dims[i], b.dims[i]));
    if (a.has_value && b.has_value && a.elements.size() == b.elements.size()) {
      out.has_value = true;
      for (std::size_t i = 0; i < a.elements.size(); ++i)
        out.elements.push_back(
            c.resolve(a.elements[i]) == c.resolve(b.elements[i]) ? a.elements[i] : dim::unknown());
    }
    return out;
  }
  dim join_dim(node_id n, std::size_t output, std::size_t axis, dim a, dim b) {
    dim_context& c = out_.context_;
    if (!a.is_known() || !b.is_known())
      return a.is_undefined() || b.is_undefined() ? dim::undefined() : dim::unknown();
    if (c.resolve(a) == c.resolve(b)) return a;
    for (const auto& e : caches_[n.index])
      if (e.output == output && e.axis == axis) return e.symbol;
    const dim phi = c.fresh(hull(c.bounds(a), c.bounds(b)), view_.name(n));
    caches_[n.index].push_back(
        {static_cast<std::uint32_t>(output), static_cast<std::uint32_t>(axis), phi});
    return phi;
  }
  // Control flow, in rdp/detail/control.hpp.
 public:
  /// An error where a node needs the rank of what arms of different ranks give, and no scenario
  /// can settle which arm it is.
  status check_ranks();

 private:
  template <class Changed>
  status visit_control(node_id n, Changed& changed);
  template <class Changed>
  status visit_if(node_id n, Changed& changed);
  template <class Changed>
  status visit_loop(node_id n, Changed& changed);
  template <class Changed>
  status visit_scan(node_id n, Changed& changed);
  template <class Changed>
  status visit_sequence_map(node_id n, Changed& changed);
  struct loop_state;
  /// A body's formal inputs against what its last pass gave. Returns true when the body has to be
  /// analysed again from wider facts.
  template <class Changed>
  bool widen(node_id n, loop_state& state, std::span<const symbolic_fact> initial,
             std::span<const value_id> formal, std::span<const value_id> given, Changed& changed);
  symbolic_fact carried_result(node_id n, std::size_t output, const loop_state& state,
                               const symbolic_fact& first, value_id given, dim trips,
                               bool zero_trips);
  /// What is known of the initial values; in batches (Scan-8), of those of one sample.
  small_vector<symbolic_fact, 4> initial_facts(std::span<const value_id> initial,
                                               bool batched = false) const {
    small_vector<symbolic_fact, 4> out;
    for (value_id v : initial) {
      out.push_back(out_.facts_[v.index]);
      if (batched && !out.back().dims.empty()) out.back().dims.erase(0);
    }
    return out;
  }
  symbolic_fact stacked_result(node_id n, std::size_t output, const loop_state& state,
                               value_id given, dim trips, std::size_t axis);
  template <class Changed>
  void restart(scope_id s, Changed& changed);
  bool inside(scope_id s, scope_id outer) const;
  bool is_open(scope_id s) const;
  /// Is this arm the one of a true condition?
  bool is_then(scope_id arm) const;
  /// Whenever the nodes of `outer` run, do those of `inner`, too?
  bool runs_with(scope_id inner, scope_id outer);
  /// The truth of a boolean scalar, where it is proved.
  tri truth(value_id v) const;
  /// The outcome of a conditional node, proved or assumed by the scenario.
  tri outcome(node_id n);

  bool all_elements_known(const symbolic_fact& f) const {
    if (!f.has_value) return false;
    for (dim d : f.elements)
      if (!d.is_known()) return false;
    return true;
  }
  void classify(node_id n) {
    analysis::node_info& info = out_.nodes_[n.index];
    const dynamism base = info.op.row->info->base;
    info.effective = base;
    bool values = !view_.outputs(n).empty();
    bool sizes = true;
    for (value_id v : view_.outputs(n)) {
      if (v == absent) continue;
      const symbolic_fact& f = out_.facts_[v.index];
      values = values && all_elements_known(f);
      sizes = sizes && settled(f);
    }
    bool read_known = true;
    const auto inputs = view_.inputs(n);
    for (std::size_t i = 0; i < inputs.size() && i < 64; ++i)
      if ((info.value_reads >> i & 1) != 0 && inputs[i] != absent)
        read_known = read_known && all_elements_known(out_.facts_[inputs[i].index]);
    if (values && info.op.row->info->deterministic)
      info.effective = dynamism::isdo;
    else if (base == dynamism::isdo)
      info.effective = dynamism::isdos;
    else if (base == dynamism::isvdos && read_known)
      info.effective = dynamism::isdos;
    for (const auto& e : caches_[n.index]) info.boundary = info.boundary || e.symbol.is_known();
  }

  /// What the fixpoint of one loop has come to.
  struct loop_state {
    bool open = false;
    std::uint32_t passes = 0;
    small_vector<symbolic_fact, 0> start;  // formal facts of the current pass, per carried value
    vector<vector<dim>> widened;           // per carried value and axis: its symbol, or undefined
    vector<std::uint8_t> rank_lost;        // per carried value
  };

  const graph_view& view_;
  const registry& ops_;
  const analysis_options& options_;
  analysis& out_;
  std::vector<loop_state> loops_;         // per scope; only bodies use theirs
  std::vector<std::uint8_t> impossible_;  // per scope: an arm that cannot run
  symbolic_domain domain_;
  std::vector<std::uint8_t> waiting_;    // per value: small floats that nobody has read yet
  std::vector<std::uint32_t> recorded_;  // see known_assertion
  std::size_t recorded_count_ = 0;
  std::vector<symbolic_transfer::fresh_cache> caches_;
  vector<vector<node_id>> owners_;
};

SOD2_HEAVY result<analysis> analyze(const graph_view& view, const registry& ops,
                                    const analysis_options& options) {
  analysis out;
  rdp_transfer transfer(view, ops, options, out);
  SOD2_TRY(transfer.start());
  SOD2_ASSIGN(out.statistics_, solve(view, transfer));
  transfer.finish();
  SOD2_TRY(transfer.check_ranks());
  return out;
}

}  // namespace sod2

#include <sod2/rdp/detail/control.hpp>
