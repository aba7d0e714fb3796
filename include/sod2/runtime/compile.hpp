// compile: graph, operators and kernels in, an immutable program out. The only place that turns a
// fused graph into order, memory and kernel problems.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sod2/fuse/plan.hpp>
#include <sod2/fuse/planner.hpp>
#include <sod2/fuse/validate.hpp>
#include <sod2/fuse/views.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/kernel/table.hpp>
#include <sod2/memory/symbolic.hpp>
#include <sod2/op/registry.hpp>
#include <sod2/rdp/analysis.hpp>
#include <sod2/rdp/scenario.hpp>
#include <sod2/runtime/program.hpp>
#include <sod2/schedule/liveness.hpp>
#include <sod2/schedule/order.hpp>

namespace sod2 {

struct compile_options {
  analysis_options analysis;
  fusion_options fusion;
  bool reorder = true;       // false: the graph's own order
  bool share_memory = true;  // false: every intermediate has bytes of its own
  int threads = 1;           // most threads of any session
  /// Largest result of constant folding, in bytes; larger ones are computed at run.
  std::int64_t fold_limit = std::int64_t{16} << 20;
};

class program_compiler {
 public:
  program_compiler(const graph_view& view, const registry& ops, const kernel_table& kernels,
                   const compile_options& options)
      : view_(view), ops_(ops), kernels_(kernels), options_(options) {}

  result<program> run() {
    SOD2_ASSIGN(facts_, analyze(view_, ops_, options_.analysis));
    constant_.resize(view_.value_count());
    constant_state_.assign(view_.value_count(), 0);
    roles_.assign(view_.node_count(), node_role::dead);
    binds_.resize(view_.node_count());
    scope_binds_.resize(view_.scope_count());
    needed_.assign(view_.value_count(), 0);
    bound_.assign(context().symbol_count(), 0);
    for (std::uint32_t s = 0; s < bound_.size(); ++s) {
      bound_[s] = context().origin_of_symbol(s) != symbol_origin::inferred;
      late_symbols_ = late_symbols_ || bound_[s] == 0;
    }
    impossible_.resize(view_.scope_count());
    for (const impossible_scope& k : facts_.impossible()) impossible_[k.scope.index] = k.text;
    SOD2_TRY(assign_roles(graph_view::root()));
    mark_needed(graph_view::root());
    out_.run_tile_ = kernels_.run_tile;
    out_.threads_ = options_.threads;
    out_.summary_.nodes_imported = view_.node_count();
    describe_symbols();
    SOD2_TRY(compile_scope(graph_view::root()));
    return std::move(out_);
  }

  analysis& facts() { return facts_; }

  static program guarded(program p, std::vector<program_guard> guards) {
    p.guards_ = std::move(guards);
    return p;
  }
  static program joined(std::vector<program> variants) {
    program first = std::move(variants[0]);
    for (std::size_t k = 1; k < variants.size(); ++k)
      first.variants_.push_back(std::move(variants[k]));
    return first;
  }

 private:
  /// Longest text of a layout formula, in characters; a layout with shorter slots takes over.
  static constexpr std::size_t longest_formula = 20000;

  struct storage {
    storage_kind kind = storage_kind::arena;
    std::uint32_t place = no_slot;   // input, output, constant; arena buffer after `share_in_place`
    value_id first{};                // the value that gives the size
    std::uint32_t merged = no_slot;  // arena: the storage whose buffer this one takes over
  };
  /// A launch while it is being built.
  struct launch {
    std::uint32_t control = no_slot;   // among the region's
    std::uint32_t binder = no_slot;    // among the region's
    std::vector<value_id> captures;    // of the sub-graphs
    std::vector<std::uint32_t> needs;  // symbols of the run that must be bound before
    group_kind kind = group_kind::opaque;
    std::vector<node_id> nodes;
    const kernel_row* row = nullptr;
    std::uint32_t state = no_slot, tile = no_slot;
    std::vector<value_id> inputs, outputs, operands;  // absent: not passed
    std::uint64_t consumed = 0;                       // bit i: only the shape of input i is read
    dim workspace{};
  };

  /// The scope that is being compiled.
  struct scope_work {
    scope_id scope{};
    std::uint32_t region = 0;
    std::vector<launch> launches;
    std::vector<node_id> views;
    std::vector<storage> storages;
    std::vector<std::uint32_t> storage_of, tensor_of, order, first_use, last_use, buffer_index;
    std::vector<dim> sizes;
    std::vector<std::uint32_t> segment_of_symbol;  // 0: known when the region starts
    std::vector<std::uint32_t> segment_starts;     // position in the order
    dim required{};                                // bytes of the first segment
  };

  /// Compiles a scope, and with it those of its nodes, to a region. Gives its number.
  result<std::uint32_t> compile_scope(scope_id s) {
    scope_work outer = std::exchange(w_, scope_work{});
    w_.scope = s;
    w_.region = static_cast<std::uint32_t>(out_.regions_.size());
    out_.regions_.emplace_back();
    w_.tensor_of.assign(view_.value_count(), no_slot);
    w_.storage_of.assign(view_.value_count(), no_slot);
    w_.segment_of_symbol.assign(context().symbol_count(), 0);
    if (impossible_[s.index].empty()) {
      fusion_plan fused = plan_fusion(view_, facts_, roles_, options_.fusion, s);
      SOD2_TRY(lower_groups(fused));
      assign_storages();
      SOD2_TRY(choose_order());
      share_in_place();
      SOD2_TRY(emit());
    } else {
      here().impossible = impossible_[s.index];
      here().segments.resize(1);
    }
    const std::uint32_t region = w_.region;
    required_ = w_.required;
    w_ = std::move(outer);
    return region;
  }

  program_region& here() { return out_.regions_[w_.region]; }
  bool is_root() const { return w_.scope == graph_view::root(); }
  dim_context& context() { return facts_.context(); }
  node_role& role(node_id n) { return roles_[n.index]; }
  std::string_view name(node_id n) const { return view_.name(n); }
  const op_info& info(node_id n) { return *facts_.node(n).op.row->info; }

  // ---- constants and roles ----

  bool constant_elements(value_id v) {
    const symbolic_fact& f = facts_.fact(v);
    if (!f.has_value || !f.rank_known()) return false;
    for (dim d : f.elements)
      if (!d.is_known() || (!context().is_constant(d) && !context().is_real_literal(d)))
        return false;
    return true;
  }
  bool known_elements(value_id v) {
    const symbolic_fact& f = facts_.fact(v);
    if (!f.has_value || !f.rank_known()) return false;
    if (f.type != dtype::f32 && f.type != dtype::f64 && f.type != dtype::boolean &&
        !is_integer(f.type))
      return false;
    for (dim d : f.elements)
      if (!is_bound(d)) return false;
    for (dim d : f.dims)
      if (!is_bound(d)) return false;
    return true;
  }
  /// Is the size known where analysis of roles has come to?
  bool is_bound(dim d) {
    if (!d.is_known()) return false;
    if (!late_symbols_) return true;
    bool all = true;
    context().for_each_symbol(context().resolve(d), [&](std::uint32_t s) {
      all = all && s < bound_.size() && bound_[s] != 0;
    });
    return all;
  }
  /// Symbols that the dims of v contain and nothing bound so far: v's maker binds them.
  void bind_sizes(value_id v, std::vector<std::uint32_t>& list) {
    if (!late_symbols_) return;
    for (dim d : facts_.dims(v))
      if (d.is_known())
        context().for_each_symbol(context().resolve(d), [&](std::uint32_t s) {
          if (bound_[s] != 0) return;
          bound_[s] = 1;
          list.push_back(s);
        });
  }
  /// The constant behind v, or a view that is not present.
  constant_view constant(value_id v) {
    if (v == absent) return {};
    if (constant_state_[v.index] == 0) {
      constant_state_[v.index] = 1;
      if (view_.is_constant(v))
        constant_[v.index] = view_.declared(v).constant;
      else if (constant_elements(v))
        constant_[v.index] = materialise(v);
    }
    return constant_[v.index];
  }
  constant_view keep(dtype type, std::vector<std::int64_t> dims, memory_block bytes,
                     std::size_t size) {
    kept_.push_back({std::move(bytes), std::move(dims)});
    constant_view c;
    c.type = type;
    c.data = kept_.back().bytes.data();
    c.bytes = size;
    c.dims = kept_.back().dims;
    return c;
  }
  constant_view materialise(value_id v) {
    const symbolic_fact& f = facts_.fact(v);
    std::vector<std::int64_t> dims;
    for (dim d : f.dims) {
      if (!d.is_known() || !context().is_constant(d)) return {};
      dims.push_back(context().value(d));
    }
    const std::size_t width = bytes_of(f.type);
    if (width == 0 || width > 8) return {};
    memory_block block;
    if (!block.reserve(f.elements.size() * width + 1)) return {};
    std::byte* out = block.data();
    for (dim d : f.elements) {
      if (context().is_real_literal(d)) {
        const double wide = context().literal_value(d);
        const float narrow = static_cast<float>(wide);
        if (f.type == dtype::f64)
          std::memcpy(out, &wide, 8);
        else if (f.type == dtype::f32)
          std::memcpy(out, &narrow, 4);
        else
          return {};
      } else {
        if (is_float(f.type)) return {};
        const std::int64_t k = context().value(d);
        std::memcpy(out, &k, width);
      }
      out += width;
    }
    return keep(f.type, std::move(dims), std::move(block), f.elements.size() * width);
  }

  operand_info operand(value_id v) {
    operand_info o;
    if (v == absent) return o;
    const symbolic_fact& f = facts_.fact(v);
    o.type = f.type;
    o.constant = constant(v);
    if (f.rank_known()) {
      o.rank = static_cast<int>(f.dims.size());
      o.dims = f.dims.view();
    }
    return o;
  }
  struct node_operands {
    std::vector<operand_info> inputs, outputs;
    prepare_args args;
  };
  void describe(node_id n, node_operands& out) {
    out.inputs.clear();
    out.outputs.clear();
    for (value_id v : view_.inputs(n)) out.inputs.push_back(operand(v));
    for (value_id v : view_.outputs(n)) out.outputs.push_back(operand(v));
    out.args.attributes = view_.attributes(n);
    out.args.since_version = facts_.node(n).op.version;
    out.args.inputs = out.inputs;
    out.args.outputs = out.outputs;
    out.args.simd = kernels_.simd;
  }
  const kernel_row* kernel_of(node_id n) {
    return kernels_.find(info(n).domain, info(n).name, facts_.node(n).op.version);
  }
  const pointwise_row* pointwise_of(node_id n) {
    return kernels_.find_pointwise(info(n).domain, info(n).name, facts_.node(n).op.version);
  }

  status assign_roles(scope_id s) {
    for (value_id v : view_.inputs(s)) bind_sizes(v, scope_binds_[s.index]);
    for (node_id n : view_.order(s)) SOD2_TRY(assign_role(n));
    return {};
  }
  /// The arms of a branch that may be taken; the body of a loop.
  std::vector<scope_id> live_scopes(node_id n) {
    const auto scopes = view_.scopes(n);
    std::vector<scope_id> live(scopes.begin(), scopes.end());
    if (info(n).name != "If" || scopes.size() != 2) return live;
    // `then` first, whatever the order of the attributes.
    const std::string_view first = view_.name(scopes[0]);
    if (first.substr(first.rfind('/') + 1).starts_with("else")) std::swap(live[0], live[1]);
    return live;
  }
  /// A condition that is proved, or that the scenario decides: 1 or 0, else -1.
  int proved_condition(node_id n) {
    const tri taken = outcome_of(view_, facts_, options_.analysis.decided, n);
    if (taken != tri::unknown) return taken == tri::yes ? 1 : 0;
    const constant_view c = constant(view_.inputs(n)[0]);
    return c.present() && c.bytes == 1 ? (c.data[0] != std::byte{0} ? 1 : 0) : -1;
  }
  bool is_excluded(node_id n, std::size_t arm) {
    if (info(n).name != "If") return false;
    const int proved = proved_condition(n);
    return proved >= 0 && (proved == 1) != (arm == 0);
  }
  status assign_control(node_id n) {
    const std::string_view op = info(n).name;
    if ((op != "If" || view_.scopes(n).size() != 2) && op != "Loop" &&
        (op != "Scan" || facts_.node(n).op.version < 9))
      return error(errc::unsupported, "running operator '" + std::string(op) + "' version " +
                                          std::to_string(facts_.node(n).op.version))
          .at_node(name(n));
    role(n) = node_role::opaque;
    const std::vector<std::uint8_t> before = bound_;
    const auto scopes = live_scopes(n);
    for (std::size_t k = 0; k < scopes.size(); ++k) {
      if (is_excluded(n, k) || !impossible_[scopes[k].index].empty()) continue;
      SOD2_TRY(assign_roles(scopes[k]));
      bound_ = before;
    }
    for (value_id v : view_.outputs(n))
      if (v != absent) {
        SOD2_TRY(check_runnable(n, v));
        bind_sizes(v, binds_[n.index]);
      }
    return {};
  }
  /// A tensor of known rank whose sizes somebody can tell.
  status check_runnable(node_id n, value_id v) {
    const symbolic_fact& f = facts_.fact(v);
    if (f.kind != fact_kind::tensor)
      return error(errc::unsupported, "running sequences and optionals")
          .at_node(name(n))
          .at_tensor(view_.name(v));
    if (!f.rank_known()) return error(errc::rank_unknown).at_node(name(n)).at_tensor(view_.name(v));
    for (std::size_t i = 0; i < f.dims.size(); ++i)
      if (!f.dims[i].is_known())
        return error(errc::unsupported, "running with a size that nothing tells")
            .at_node(name(n))
            .at_tensor(view_.name(v), static_cast<int>(i));
    if (f.type == dtype::string)
      return error(errc::unsupported, "running on strings")
          .at_node(name(n))
          .at_tensor(view_.name(v));
    return {};
  }

  status assign_role(node_id n) {
    if (!view_.scopes(n).empty()) return assign_control(n);
    bool host = info(n).deterministic && !view_.outputs(n).empty();
    for (value_id v : view_.outputs(n)) {
      if (v == absent) continue;
      const symbolic_fact& f = facts_.fact(v);
      if (f.kind != fact_kind::tensor)
        return error(errc::unsupported, "running sequences and optionals")
            .at_node(name(n))
            .at_tensor(view_.name(v));
      host = host && known_elements(v);
    }
    if (host) {
      role(n) = node_role::host;
      return {};
    }
    if (info(n).deterministic && foldable(n)) {
      SOD2_ASSIGN(const bool done, fold(n));
      if (done) return {};
    }
    for (value_id v : view_.outputs(n)) {
      if (v == absent) continue;
      SOD2_TRY(check_runnable(n, v));
      bind_sizes(v, binds_[n.index]);
    }
    if (is_view(view_, facts_, n)) {
      role(n) = node_role::view;
    } else if (pointwise_of(n) != nullptr) {
      // What makes a size known stands alone.
      role(n) = binds_[n.index].empty() ? node_role::pointwise : node_role::opaque;
    } else if (const kernel_row* row = kernel_of(n); row != nullptr) {
      role(n) = !row->takes_epilogue || !binds_[n.index].empty()      ? node_role::opaque
                : info(n).name.find("Conv") != std::string_view::npos ? node_role::convolution
                                                                      : node_role::product;
    } else {
      return error(errc::kernel_missing, "no kernel for operator '" + std::string(info(n).name) +
                                             "' version " +
                                             std::to_string(facts_.node(n).op.version))
          .at_node(name(n));
    }
    return {};
  }
  bool foldable(node_id n) {
    if (view_.inputs(n).empty()) return false;
    for (value_id v : view_.inputs(n))
      if (v != absent && !constant(v).present()) return false;
    for (value_id v : view_.outputs(n)) {
      if (v == absent) continue;
      const symbolic_fact& f = facts_.fact(v);
      if (!f.rank_known() || f.type == dtype::string || f.type == dtype::undefined) return false;
      std::int64_t count = 1;
      for (dim d : f.dims) {
        if (!d.is_known() || !context().is_constant(d) ||
            !checked_mul(count, context().value(d), count))
          return false;
      }
      if (count < 0 || count > options_.fold_limit || bytes_of(f.type, count) > options_.fold_limit)
        return false;
    }
    return true;
  }
  /// Executes the node now. False when it has no kernel that can.
  result<bool> fold(node_id n) {
    node_operands described;
    describe(n, described);
    std::vector<tensor_view> inputs, outputs;
    std::vector<memory_block> copies;
    std::vector<std::pair<memory_block, std::vector<std::int64_t>>> results;
    for (const operand_info& o : described.inputs) {
      tensor_view t;
      if (o.type != dtype::undefined) {
        t.type = o.type;
        t.dims = o.constant.dims.data();
        t.rank = static_cast<std::uint32_t>(o.constant.dims.size());
        copies.emplace_back();  // constants of files may be misaligned
        if (!copies.back().reserve(o.constant.bytes + 1))
          return error(errc::out_of_memory).at_node(name(n));
        if (o.constant.bytes > 0)
          std::memcpy(copies.back().data(), o.constant.data, o.constant.bytes);
        t.data = copies.back().data();
      }
      inputs.push_back(t);
    }
    results.resize(view_.outputs(n).size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      tensor_view t;
      if (const value_id v = view_.outputs(n)[i]; v != absent) {
        for (dim d : facts_.dims(v)) results[i].second.push_back(context().value(d));
        t.type = facts_.fact(v).type;
        t.rank = static_cast<std::uint32_t>(results[i].second.size());
        t.dims = results[i].second.data();
        if (!results[i].first.reserve(static_cast<std::size_t>(bytes_of(t.type, t.count())) + 1))
          return error(errc::out_of_memory).at_node(name(n));
        t.data = results[i].first.data();
      }
      outputs.push_back(t);
    }
    if (const kernel_row* row = kernel_of(n); row != nullptr) {
      auto state = row->prepare(described.args);
      if (!state) return std::move(state).error().at_node(name(n));
      kernel_args args;
      args.state = state->data;
      args.inputs = inputs;
      args.outputs = outputs;
      memory_block workspace;
      if (row->workspace_bytes != nullptr) {
        const dim bytes =
            row->workspace_bytes(context(), state->data, described.inputs, described.outputs);
        if (!bytes.is_known() || !context().is_constant(bytes)) return false;
        if (!workspace.reserve(static_cast<std::size_t>(context().value(bytes)) + 1))
          return error(errc::out_of_memory).at_node(name(n));
        args.workspace = workspace.data();
      }
      // What the data forbids is reported when the node runs, if it ever does.
      if (row->run(args) != errc::ok) return false;
    } else if (pointwise_of(n) != nullptr) {
      launch l;
      l.nodes = {n};
      SOD2_ASSIGN(const tile_program tile, lower_tile(l, false));
      tile_call call;
      call.program = &tile;
      std::vector<tensor_view> operands;
      for (value_id v : l.inputs)
        for (std::size_t i = 0; i < inputs.size(); ++i)
          if (view_.inputs(n)[i] == v) {
            operands.push_back(inputs[i]);
            break;
          }
      std::vector<tensor_view> present;
      for (const tensor_view& t : outputs)
        if (t.present()) present.push_back(t);
      call.inputs = operands;
      call.outputs = present;
      if (kernels_.run_tile(call) != errc::ok) return false;
    } else {
      return false;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const value_id v = view_.outputs(n)[i];
      if (v == absent) continue;
      const auto bytes = static_cast<std::size_t>(bytes_of(outputs[i].type, outputs[i].count()));
      constant_[v.index] =
          keep(outputs[i].type, std::move(results[i].second), std::move(results[i].first), bytes);
      constant_state_[v.index] = 1;
    }
    return true;
  }

  /// Nodes whose results nobody needs are dead; needed host values are those that kernels read.
  void mark_needed(scope_id s) {
    for (value_id v : view_.outputs(s)) needed_[v.index] = 1;
    const auto order = view_.order(s);
    for (std::size_t i = order.size(); i-- > 0;) {
      const node_id n = order[i];
      if (role(n) == node_role::dead) continue;  // folded
      bool used = false;
      for (value_id v : view_.outputs(n))
        used = used || (v != absent && needed_[v.index] != 0 && !constant(v).present());
      if (!used) {
        role(n) = node_role::dead;
        continue;
      }
      if (role(n) == node_role::host) continue;
      const auto scopes = live_scopes(n);
      for (std::size_t k = 0; k < scopes.size(); ++k)
        if (!is_excluded(n, k) && impossible_[scopes[k].index].empty()) mark_needed(scopes[k]);
      const pointwise_row* row = role(n) == node_role::pointwise ? pointwise_of(n) : nullptr;
      for (std::size_t k = 0; k < view_.inputs(n).size(); ++k) {
        const value_id v = view_.inputs(n)[k];
        if (v == absent || (role(n) == node_role::view && k > 0 && binds_[n.index].empty()))
          continue;
        if (row != nullptr && k < 32 && (row->unread_inputs >> k & 1U) != 0) continue;
        needed_[v.index] = 1;
      }
    }
  }

  // ---- groups to launches ----

  status lower_groups(fusion_plan& fused) {
    for (const fused_group& g : fused.groups) {
      for (node_id n : g.nodes)
        if (role(n) != node_role::dead) ++out_.summary_.nodes;
      if (g.kind == group_kind::host) {
        --out_.summary_.nodes;
        continue;
      }
      if (g.kind == group_kind::view && binds_[g.nodes[0].index].empty()) {
        w_.views.push_back(g.nodes[0]);
        continue;
      }
      launch l;
      l.kind = g.kind;
      l.nodes = g.nodes;
      l.outputs = g.outputs;
      status done = lower(l);
      if (!done && done.error().code() == errc::unsupported && g.nodes.size() > 1) {
        // Too large for the executor: one launch a node.
        for (node_id n : g.nodes) {
          launch single;
          single.nodes = {n};
          single.kind = role(n) == node_role::pointwise ? group_kind::tile : g.kind;
          for (value_id v : view_.outputs(n)) single.outputs.push_back(v);
          SOD2_TRY(lower(single));
          w_.launches.push_back(std::move(single));
        }
        continue;
      }
      SOD2_TRY(std::move(done));
      w_.launches.push_back(std::move(l));
    }
    for (const launch& l : w_.launches) {
      if (l.kind == group_kind::view) continue;
      ++out_.summary_.groups;
      ++out_.summary_.by_kind[static_cast<unsigned>(l.kind)];
    }
    return {};
  }
  status lower(launch& l) {
    const node_id anchor = l.nodes[0];
    if (!view_.scopes(anchor).empty()) return lower_control(l);
    if (!binds_[anchor.index].empty()) SOD2_TRY(lower_binder(l));
    if (l.kind == group_kind::view) {
      l.inputs.assign(view_.inputs(anchor).begin(), view_.inputs(anchor).end());
      l.outputs.clear();
      return {};
    }
    if (l.kind == group_kind::opaque && kernel_of(anchor) == nullptr) l.kind = group_kind::tile;
    if (l.kind == group_kind::tile) {
      SOD2_ASSIGN(tile_program tile, lower_tile(l, false));
      l.tile = static_cast<std::uint32_t>(out_.tiles_.size());
      out_.tiles_.push_back(std::move(tile));
      return {};
    }
    l.row = kernel_of(anchor);
    node_operands described;
    describe(anchor, described);
    if (l.nodes.size() > 1) {
      SOD2_ASSIGN(tile_program tile, lower_tile(l, true));
      l.tile = static_cast<std::uint32_t>(out_.tiles_.size());
      out_.tiles_.push_back(std::move(tile));
      l.operands = std::move(l.inputs);
      l.inputs.clear();
    } else {
      l.outputs.assign(view_.outputs(anchor).begin(), view_.outputs(anchor).end());
    }
    auto state = l.row->prepare(described.args);
    if (!state) return std::move(state).error().at_node(name(anchor));
    l.inputs.assign(view_.inputs(anchor).begin(), view_.inputs(anchor).end());
    l.consumed = state->consumed;
    if (l.row->workspace_bytes != nullptr) {
      const dim bytes =
          l.row->workspace_bytes(context(), state->data, described.inputs, described.outputs);
      l.workspace = context().mul(bytes, options_.threads);
      if (l.workspace == context().zero()) l.workspace = {};
    }
    out_.summary_.weights_bytes += state->bytes;
    if (state->data != nullptr) {
      l.state = static_cast<std::uint32_t>(out_.states_.size());
      out_.states_.push_back(std::move(*state));
    }
    return {};
  }
  /// Compiles the scopes of a node. Arms exclude each other, so they share their memory.
  status lower_control(launch& l) {
    const node_id n = l.nodes[0];
    program_control c;
    c.index = out_.controls_++;
    c.what = info(n).name == "If"     ? program_control::kind::branch
             : info(n).name == "Loop" ? program_control::kind::loop
                                      : program_control::kind::scan;
    const auto inputs = view_.inputs(n);
    const auto outputs = view_.outputs(n);
    const auto scopes = live_scopes(n);
    std::size_t scanned_inputs = 0, made = outputs.size();
    if (c.what == program_control::kind::loop) {
      c.carried = static_cast<std::uint32_t>(inputs.size() - 2);
      made = view_.outputs(scopes[0]).size() - 1;
    }
    if (c.what == program_control::kind::scan) {
      const attribute_source& a = view_.attributes(n);
      scanned_inputs = static_cast<std::size_t>(a.integer("num_scan_inputs", 0));
      c.carried = static_cast<std::uint32_t>(inputs.size() - scanned_inputs);
      made = view_.outputs(scopes[0]).size();
      const auto list = [&](std::string_view axes, std::string_view directions, std::size_t count,
                            std::vector<std::int64_t>& to, std::vector<std::uint8_t>& backwards) {
        for (std::size_t k = 0; k < count; ++k) {
          const auto x = a.integers(axes), d = a.integers(directions);
          to.push_back(k < x.size() ? x[k] : 0);
          backwards.push_back(k < d.size() && d[k] != 0 ? 1 : 0);
        }
      };
      list("scan_input_axes", "scan_input_directions", scanned_inputs, c.input_axes,
           c.input_backwards);
      list("scan_output_axes", "scan_output_directions", made - c.carried, c.output_axes,
           c.output_backwards);
    }
    c.block_first = out_.blocks_;
    out_.blocks_ += static_cast<std::uint32_t>(made);
    if (c.what != program_control::kind::branch)
      out_.blocks_ +=
          static_cast<std::uint32_t>(2 * c.carried + (made - c.carried) + scanned_inputs);
    const std::uint32_t shared = out_.blocks_;
    std::uint32_t most = shared;
    for (std::size_t k = 0; k < scopes.size(); ++k) {
      if (is_excluded(n, k)) continue;
      out_.blocks_ = shared;
      SOD2_ASSIGN(c.regions[k], compile_scope(scopes[k]));
      if (out_.blocks_ > most) most = out_.blocks_;
      // What is known of the scope's sizes before it runs is memory of this launch.
      if (required_.is_known() && required_ != context().zero() &&
          context().only_input_symbols(required_))
        l.workspace = l.workspace.is_known() ? context().max(l.workspace, required_) : required_;
      here().children.push_back(c.regions[k]);
      if (impossible_[scopes[k].index].empty()) collect_captures(scopes[k], l);
    }
    out_.blocks_ = most;
    l.kind = group_kind::opaque;
    l.inputs.assign(inputs.begin(), inputs.end());
    l.outputs.assign(outputs.begin(), outputs.end());
    for (value_id& v : l.outputs)
      if (v != absent && needed_[v.index] == 0) v = absent;
    l.control = static_cast<std::uint32_t>(here().controls.size());
    here().controls.push_back(std::move(c));
    if (!binds_[n.index].empty()) {
      SOD2_TRY(lower_binder(l));
      here().binders[l.binder].how = program_binder::mode::control;
    }
    return {};
  }
  /// What the scope and those inside it read of this region, and the symbols that they need.
  void collect_captures(scope_id s, launch& l) {
    const auto read = [&](value_id v) {
      if (v == absent || constant(v).present()) return;
      for (dim d : facts_.dims(v)) need(l, d);
      for (dim d : facts_.fact(v).elements) need(l, d);
      if (view_.scope(v) != w_.scope || is_host(v)) return;
      for (value_id known : l.captures)
        if (known == v) return;
      l.captures.push_back(v);
    };
    for (value_id v : view_.outputs(s)) read(v);
    for (node_id n : view_.order(s)) {
      if (role(n) == node_role::dead) continue;
      for (value_id v : view_.inputs(n)) read(v);
      for (value_id v : view_.outputs(n)) read(v);
      const auto scopes = live_scopes(n);
      for (std::size_t k = 0; k < scopes.size(); ++k)
        if (!is_excluded(n, k) && impossible_[scopes[k].index].empty())
          collect_captures(scopes[k], l);
    }
  }
  bool is_host(value_id v) {
    return view_.producer(v) != no_index && role(node_id{view_.producer(v)}) == node_role::host;
  }
  void need(launch& l, dim d) {
    if (!late_symbols_ || !d.is_known()) return;
    context().for_each_symbol(context().resolve(d), [&](std::uint32_t s) {
      if (context().origin_of_symbol(s) != symbol_origin::inferred) return;
      for (std::uint32_t known : l.needs)
        if (known == s) return;
      l.needs.push_back(s);
    });
  }
  /// How the node's sizes become known.
  status lower_binder(launch& l) {
    const node_id n = l.nodes[0];
    program_binder b;
    b.how =
        info(n).base == dynamism::edo ? program_binder::mode::counts : program_binder::mode::values;
    b.outputs = static_cast<std::uint32_t>(view_.outputs(n).size());
    b.forward = facts_.node(n).op.row->forward;
    b.version = facts_.node(n).op.version;
    for (std::string_view wanted : {"allowzero",
                                    "axes",
                                    "axis",
                                    "batch_dims",
                                    "ceil_mode",
                                    "coordinate_transformation_mode",
                                    "depth",
                                    "dtype",
                                    "ends",
                                    "k",
                                    "keep_aspect_ratio_policy",
                                    "keepdims",
                                    "largest",
                                    "mode",
                                    "noop_with_empty_axes",
                                    "num_outputs",
                                    "onesided",
                                    "output_dtype",
                                    "output_shape",
                                    "pads",
                                    "paddings",
                                    "repeats",
                                    "scales",
                                    "shape",
                                    "sizes",
                                    "sorted",
                                    "split",
                                    "starts",
                                    "steps",
                                    "tiles",
                                    "to",
                                    "value"})
      if (const attribute_view a = view_.attributes(n)(wanted))
        b.attributes.push_back(copy(wanted, a));
    for (std::uint32_t s : binds_[n.index]) {
      bool found = false;
      for (std::size_t k = 0; k < view_.outputs(n).size() && !found; ++k) {
        const value_id v = view_.outputs(n)[k];
        if (v != absent) found = solve(v, k, s, binds_[n.index], b.bindings);
      }
      if (!found)
        return error(errc::unsupported, "running with sizes that hide a size of the run")
            .at_node(name(n));
    }
    if (b.how == program_binder::mode::counts) {
      b.block_first = out_.blocks_;
      out_.blocks_ += static_cast<std::uint32_t>(view_.outputs(n).size());
    }
    l.binder = static_cast<std::uint32_t>(here().binders.size());
    here().binders.push_back(std::move(b));
    return {};
  }
  static attribute copy(std::string_view name, const attribute_view& a) {
    attribute out;
    out.name = name;
    out.kind = a.kind;
    out.integer = a.integer;
    out.real = a.real;
    out.string = a.string;
    out.integers.assign(a.integers.begin(), a.integers.end());
    out.reals.assign(a.reals.begin(), a.reals.end());
    out.strings.assign(a.strings.begin(), a.strings.end());
    if (a.tensor.present() && a.tensor.type != dtype::string)
      out.tensor =
          constant_tensor::copy_of(a.tensor.type, {a.tensor.dims.begin(), a.tensor.dims.end()},
                                   a.tensor.data, a.tensor.bytes);
    return out;
  }
  /// Finds a dim of v that is linear in symbol s and holds no other of `open`.
  bool solve(value_id v, std::size_t operand, std::uint32_t s,
             const std::vector<std::uint32_t>& open, std::vector<program_binding>& out) {
    dim_context& c = context();
    for (std::size_t axis = 0; axis < facts_.dims(v).size(); ++axis) {
      const dim d = c.resolve(facts_.dims(v)[axis]);
      if (!d.is_known()) continue;
      program_binding b;
      b.operand = static_cast<std::uint32_t>(operand);
      b.axis = static_cast<std::uint32_t>(axis);
      b.symbol = s;
      const dim symbol = c.dim_of_symbol(s);
      b.factor = 0;
      if (d == symbol) b.factor = 1;
      if (c.kind(d) == dim_kind::sum)
        for (std::size_t i = 0; i < c.operand_count(d); ++i)
          if (c.operand(d, i).d == symbol) b.factor = c.operand(d, i).a;
      if (b.factor == 0) continue;
      const dim rest = c.sub(d, c.mul(symbol, b.factor));
      bool free = rest.is_known();
      c.for_each_symbol(rest, [&](std::uint32_t other) {
        for (std::uint32_t o : open) free = free && o != other;
      });
      if (!free) continue;
      size_program_builder builder(c);
      builder.add_output(rest);
      b.rest = std::move(builder).finish();
      b.lo = c.range_of_symbol(s).lo;
      b.hi = c.range_of_symbol(s).hi;
      out.push_back(std::move(b));
      return true;
    }
    return false;
  }
  /// One program for the pointwise nodes of a launch; with `epilogue`, operand 0 is the anchor's
  /// output block and l.inputs receives the operands from 1 on.
  result<tile_program> lower_tile(launch& l, bool epilogue) {
    struct source {
      value_id value;
      int first_axis;
      std::uint16_t reg;
    };
    std::vector<source> registers;  // values made inside have first_axis -1
    tile_builder builder;
    std::vector<node_operands> described(l.nodes.size());
    l.inputs.clear();
    const std::size_t begin = epilogue ? 1 : 0;
    const auto find = [&](value_id v, int first_axis) -> const source* {
      for (const source& s : registers)
        if (s.value == v && s.first_axis == first_axis) return &s;
      return nullptr;
    };
    const auto made_inside = [&](value_id v) {
      if (view_.producer(v) == no_index) return false;
      for (node_id n : l.nodes)
        if (n.index == view_.producer(v)) return true;
      return false;
    };
    if (epilogue) {
      const value_id head = view_.outputs(l.nodes[0])[0];
      registers.push_back({head, -1, builder.input(facts_.fact(head).type)});
    }
    const auto axis_of = [&](node_id n, const node_operands& d, std::size_t k) {
      return pointwise_of(n)->first_axis(d.args, k);
    };
    for (std::size_t i = begin; i < l.nodes.size(); ++i) {
      const node_id n = l.nodes[i];
      describe(n, described[i]);
      const pointwise_row* row = pointwise_of(n);
      for (std::size_t k = 0; k < view_.inputs(n).size(); ++k) {
        const value_id v = view_.inputs(n)[k];
        if (v == absent || made_inside(v) || (k < 32 && (row->unread_inputs >> k & 1U) != 0))
          continue;
        const int axis = axis_of(n, described[i], k);
        if (find(v, axis) != nullptr) continue;
        registers.push_back({v, axis, builder.input(facts_.fact(v).type, axis)});
        l.inputs.push_back(v);
      }
    }
    for (std::size_t i = begin; i < l.nodes.size(); ++i) {
      const node_id n = l.nodes[i];
      small_vector<std::uint16_t, 8> in, made(view_.outputs(n).size());
      for (std::size_t k = 0; k < view_.inputs(n).size(); ++k) {
        const value_id v = view_.inputs(n)[k];
        const source* s =
            v == absent ? nullptr : find(v, made_inside(v) ? -1 : axis_of(n, described[i], k));
        in.push_back(s == nullptr ? std::uint16_t{0} : s->reg);
      }
      if (status s = pointwise_of(n)->lower(builder, described[i].args, in, made); !s)
        return std::move(s).error().at_node(name(n));
      for (std::size_t k = 0; k < made.size(); ++k)
        if (view_.outputs(n)[k] != absent) registers.push_back({view_.outputs(n)[k], -1, made[k]});
    }
    if (l.outputs.empty())
      for (value_id v : view_.outputs(l.nodes.back()))
        if (v != absent) l.outputs.push_back(v);
    for (value_id v : l.outputs)
      if (v != absent) builder.output(find(v, -1)->reg);
    return builder.finish();
  }

  // ---- storages ----

  std::uint32_t new_storage(storage_kind kind, value_id v) {
    w_.storages.push_back({kind, no_slot, v, no_slot});
    return static_cast<std::uint32_t>(w_.storages.size() - 1);
  }
  /// Every value that a launch touches belongs to a storage; views share that of their input.
  void assign_storages() {
    for (std::size_t i = 0; i < view_.inputs(w_.scope).size(); ++i) {
      const value_id v = view_.inputs(w_.scope)[i];
      w_.storage_of[v.index] = new_storage(storage_kind::input, v);
      w_.storages.back().place = static_cast<std::uint32_t>(i);
    }
    for (const launch& l : w_.launches)
      for (std::size_t k = 0; k < l.outputs.size(); ++k) {
        const value_id v = l.outputs[k];
        if (v == absent) continue;
        w_.storage_of[v.index] = new_storage(storage_kind::arena, v);
        const std::uint32_t block = own_block(l, k);
        if (block == no_slot) continue;
        w_.storages.back().kind = storage_kind::block;
        w_.storages.back().place = block;
      }
    // Views in topological order, so that chains resolve.
    for (node_id n : view_.order(w_.scope))
      if (role(n) == node_role::view)
        w_.storage_of[view_.outputs(n)[0].index] = storage_for(view_.inputs(n)[0]);
    // An output's storage is the caller's buffer, unless it already is something else.
    for (std::size_t k = 0; k < view_.outputs(w_.scope).size(); ++k) {
      const value_id v = view_.outputs(w_.scope)[k];
      storage& s = w_.storages[storage_for(v)];
      if (s.kind != storage_kind::arena || !known_with(v, s.first)) continue;
      s.kind = storage_kind::output;
      s.place = static_cast<std::uint32_t>(k);
    }
  }
  /// The block of an output whose bytes nobody knows when its launch starts; no_slot where they
  /// are.
  std::uint32_t own_block(const launch& l, std::size_t output) {
    if (l.binder == no_slot) return no_slot;
    const program_binder& b = here().binders[l.binder];
    if (b.how == program_binder::mode::values) return no_slot;
    if (b.how == program_binder::mode::counts)
      return b.block_first + static_cast<std::uint32_t>(output);
    for (dim d : facts_.dims(l.outputs[output])) {
      bool open = false;
      context().for_each_symbol(context().resolve(d), [&](std::uint32_t s) {
        for (std::uint32_t o : binds_[l.nodes[0].index]) open = open || o == s;
      });
      if (open) return here().controls[l.control].block_first + static_cast<std::uint32_t>(output);
    }
    return no_slot;
  }
  /// Are the sizes of v known as soon as those of `first` are?
  bool known_with(value_id v, value_id first) {
    if (v == first || !late_symbols_) return true;
    bool all = true;
    for (dim d : facts_.dims(v))
      context().for_each_symbol(context().resolve(d), [&](std::uint32_t s) {
        if (context().origin_of_symbol(s) != symbol_origin::inferred) return;
        bool found = false;
        for (dim other : facts_.dims(first))
          context().for_each_symbol(context().resolve(other),
                                    [&](std::uint32_t t) { found = found || s == t; });
        all = all && found;
      });
    return all;
  }
  /// The storage of any value, made on first use for constants, host values and what is captured.
  std::uint32_t storage_for(value_id v) {
    if (w_.storage_of[v.index] == no_slot) {
      const storage_kind kind = constant(v).present()        ? storage_kind::constant
                                : is_host(v)                 ? storage_kind::host
                                : view_.scope(v) != w_.scope ? storage_kind::outer
                                                             : storage_kind::host;
      const std::uint32_t made = new_storage(kind, v);
      w_.storage_of[v.index] = made;
    }
    return w_.storage_of[v.index];
  }
  /// Bytes of v as an expression.
  dim bytes_of_value(value_id v) {
    dim n = context().one();
    for (dim d : facts_.dims(v)) n = context().mul(n, d);
    const unsigned bits = bits_of(facts_.fact(v).type);
    return bits % 8 == 0 ? context().mul(n, bits / 8) : context().ceildiv(n, 2);
  }

  // ---- order ----

  /// Values of all symbols at one point of the declared ranges: 0 low, 1 middle, 2 high.
  std::vector<std::int64_t> sample(int which) {
    dim_context& c = context();
    std::vector<std::int64_t> values(c.symbol_count(), 1);
    for (std::uint32_t s = 0; s < c.symbol_count(); ++s) {
      interval r = c.range_of_symbol(s);
      if (r.lo < 1) r.lo = 1;
      // Undeclared ranges end at 2^31: sizes that models really meet are far below.
      if (r.hi > 4096) r.hi = r.lo < 512 ? 512 : r.lo;
      if (r.hi < r.lo) r.hi = r.lo;
      const double middle = std::sqrt(static_cast<double>(r.lo) * static_cast<double>(r.hi));
      std::int64_t v = which == 0 ? r.lo : which == 2 ? r.hi : static_cast<std::int64_t>(middle);
      if (v < r.lo) v = r.lo;
      values[s] = v;
    }
    // Strided symbols read their base: move it onto the stride.
    for (std::uint32_t s = 0; s < c.symbol_count(); ++s)
      if (c.origin_of_symbol(s) == symbol_origin::strided) {
        std::int64_t& base = values[c.base_of_symbol(s)];
        const std::int64_t step = c.step_of_symbol(s), offset = c.offset_of_symbol(s);
        base = ceil_div(base - offset, step) * step + offset;
        const interval r = c.range_of_symbol(c.base_of_symbol(s));
        if (base > r.hi) base -= step;
      }
    return values;
  }
  std::vector<std::int64_t> evaluate_all(const std::vector<dim>& sizes,
                                         const std::vector<std::int64_t>& values) {
    size_program_builder builder(context());
    for (dim d : sizes) builder.add_output(d);
    const size_program p = std::move(builder).finish();
    std::vector<std::int64_t> scratch(p.register_count()), out(p.output_count());
    (void)p.evaluate(values, scratch, out);  // an overflowing sample only misleads heuristics
    for (std::int64_t& v : out)
      if (v < 0) v = 0;
    return out;
  }
  static bool is_consumed(const launch& l, std::size_t input) {
    return input < 64 && (l.consumed >> input & 1U) != 0;
  }
  template <class F>
  void for_each_read(const launch& l, F&& f) {
    for (std::size_t i = 0; i < l.inputs.size(); ++i)
      if (l.inputs[i] != absent && !is_consumed(l, i)) f(l.inputs[i]);
    for (value_id v : l.operands)
      if (v != absent) f(v);
    for (value_id v : l.captures) f(v);
  }
  /// Pairs (output value, input value) whose memory may be one.
  template <class F>
  void for_each_in_place(const launch& l, F&& f) {
    const auto try_pair = [&](value_id out, value_id in) {
      const storage& o = w_.storages[storage_for(out)];
      const storage& i = w_.storages[storage_for(in)];
      if (o.kind != storage_kind::arena || i.kind != storage_kind::arena) return;
      if (bits_of(facts_.fact(out).type) != bits_of(facts_.fact(in).type)) return;
      std::size_t reads = 0;
      for_each_read(l, [&](value_id v) { reads += storage_for(v) == storage_for(in); });
      if (reads == 1) f(out, in);
    };
    if (l.kind == group_kind::tile) {
      for (value_id out : l.outputs)
        for (value_id in : l.inputs)
          if (in != absent && detail::same_shape(facts_, out, in)) try_pair(out, in);
    } else if (l.row != nullptr && l.tile == no_slot && !l.outputs.empty() &&
               l.outputs[0] != absent) {
      for (std::size_t k = 0; k < l.inputs.size() && k < 32; ++k)
        if ((l.row->in_place >> k & 1U) != 0 && l.inputs[k] != absent &&
            context().resolve(bytes_of_value(l.outputs[0])) ==
                context().resolve(bytes_of_value(l.inputs[k])))
          try_pair(l.outputs[0], l.inputs[k]);
    }
  }
  status choose_order() {
    order_problem problem;
    std::vector<dim> sizes;
    for (const launch& l : w_.launches) {
      for_each_read(l, [&](value_id v) { (void)storage_for(v); });
    }
    for (const storage& s : w_.storages)
      sizes.push_back(s.kind == storage_kind::arena ? bytes_of_value(s.first) : context().zero());
    for (const launch& l : w_.launches)
      sizes.push_back(l.workspace.is_known() ? l.workspace : context().zero());
    const std::vector<std::int64_t> bytes = evaluate_all(sizes, sample(1));
    std::vector<std::uint32_t> binder_of(late_symbols_ ? context().symbol_count() : 0, no_slot);
    for (std::uint32_t k = 0; k < w_.launches.size() && late_symbols_; ++k)
      for (std::uint32_t s : binds_[w_.launches[k].nodes[0].index]) binder_of[s] = k;
    for (std::size_t i = 0; i < w_.storages.size(); ++i) {
      order_value v;
      v.bytes = align_up(bytes[i], static_cast<std::int64_t>(tensor_alignment));
      const storage_kind kind = w_.storages[i].kind;
      v.is_input = kind != storage_kind::arena && kind != storage_kind::output &&
                   kind != storage_kind::block;
      v.is_output = w_.storages[i].kind == storage_kind::output;
      problem.values.push_back(v);
    }
    for (std::size_t k = 0; k < w_.launches.size(); ++k) {
      const launch& l = w_.launches[k];
      order_node node;
      const auto add = [](auto& list, std::uint32_t s) {
        for (std::uint32_t x : list)
          if (x == s) return;
        list.push_back(s);
      };
      for_each_read(l, [&](value_id v) { add(node.inputs, storage_for(v)); });
      for (value_id v : l.outputs)
        if (v != absent) add(node.outputs, storage_for(v));
      node.workspace = bytes[w_.storages.size() + k];
      for_each_in_place(l, [&](value_id out, value_id in) {
        node.in_place.push_back({storage_for(out), storage_for(in)});
      });
      if (late_symbols_) collect_needs(w_.launches[k]);
      for (std::uint32_t s : l.needs)
        if (binder_of[s] != no_slot && binder_of[s] != k) add(node.after, binder_of[s]);
      problem.nodes.push_back(std::move(node));
    }
    const order_plan plan = options_.reorder ? order_best(problem) : order_given(problem);
    SOD2_TRY(validate(problem, plan));
    w_.order.assign(plan.order.begin(), plan.order.end());
    if (is_root()) {
      out_.summary_.order_exact = plan.exact;
      out_.summary_.order_peak_bytes = plan.peak_bytes;
      out_.summary_.order_lower_bound_bytes = plan.lower_bound_bytes;
    }
    // A segment starts at a step that binds symbols, or behind it.
    w_.segment_starts.assign(1, 0);
    for (std::uint32_t at = 0; at < w_.order.size(); ++at) {
      const launch& l = w_.launches[w_.order[at]];
      if (l.binder == no_slot) continue;
      for (std::uint32_t s : binds_[l.nodes[0].index])
        w_.segment_of_symbol[s] = static_cast<std::uint32_t>(w_.segment_starts.size());
      w_.segment_starts.push_back(
          here().binders[l.binder].how == program_binder::mode::values ? at : at + 1);
    }
    return {};
  }
  /// Symbols that must be bound before the launch: those of the sizes and host values it reads.
  void collect_needs(launch& l) {
    for (const auto* list : {&l.inputs, &l.outputs, &l.operands, &l.captures})
      for (value_id v : *list) {
        if (v == absent) continue;
        for (dim d : facts_.dims(v)) need(l, d);
        if (is_host(v))
          for (dim d : facts_.fact(v).elements) need(l, d);
      }
    need(l, l.workspace);
  }
  std::uint32_t segment_of(dim d) {
    std::uint32_t segment = 0;
    if (late_symbols_ && d.is_known())
      context().for_each_symbol(context().resolve(d), [&](std::uint32_t s) {
        if (w_.segment_of_symbol[s] > segment) segment = w_.segment_of_symbol[s];
      });
    return segment;
  }

  // ---- memory ----

  std::uint32_t buffer_of(std::uint32_t s) const {
    while (w_.storages[s].merged != no_slot) s = w_.storages[s].merged;
    return s;
  }
  /// From which segment on the storage has an address.
  std::uint32_t segment_of(const storage& s) {
    std::uint32_t segment = 0;
    if (s.kind == storage_kind::arena || s.kind == storage_kind::output)
      segment = segment_of(bytes_of_value(s.first));
    if (s.kind == storage_kind::block)
      for (std::uint32_t symbol : binds_[view_.producer(s.first)])
        if (w_.segment_of_symbol[symbol] > segment) segment = w_.segment_of_symbol[symbol];
    return segment;
  }
  /// Lets outputs take over the memory of inputs that die in the same launch.
  void share_in_place() {
    w_.last_use.assign(w_.storages.size(), 0);
    w_.first_use.assign(w_.storages.size(), no_slot);
    const auto touch = [&](std::uint32_t s, std::uint32_t at) {
      if (w_.first_use[s] == no_slot) w_.first_use[s] = at;
      w_.last_use[s] = at;
    };
    for (std::uint32_t at = 0; at < w_.order.size(); ++at) {
      const launch& l = w_.launches[w_.order[at]];
      for_each_read(l, [&](value_id v) { touch(storage_for(v), at); });
      for (value_id v : l.outputs)
        if (v != absent) touch(storage_for(v), at);
    }
    if (!options_.share_memory) return;
    std::vector<std::uint8_t> taken(w_.storages.size(), 0);
    for (std::uint32_t at = 0; at < w_.order.size(); ++at)
      for_each_in_place(w_.launches[w_.order[at]], [&](value_id out, value_id in) {
        const std::uint32_t o = storage_for(out), i = storage_for(in);
        if (w_.storages[o].merged != no_slot || taken[i] != 0 || w_.last_use[i] != at) return;
        w_.storages[o].merged = i;
        taken[i] = 1;
      });
  }

  // ---- emit ----

  std::uint32_t tensor_for(value_id v) {
    if (v == absent) return no_slot;
    if (w_.tensor_of[v.index] != no_slot) return w_.tensor_of[v.index];
    const std::uint32_t s = storage_for(v);
    const storage_kind kind = w_.storages[s].kind;
    w_.tensor_of[v.index] = add_tensor(
        v, kind,
        kind == storage_kind::arena ? w_.buffer_index[buffer_of(s)] : w_.storages[s].place);
    return w_.tensor_of[v.index];
  }
  std::uint32_t add_tensor(value_id v, storage_kind kind, std::uint32_t place) {
    program_region& r = here();
    const symbolic_fact& f = facts_.fact(v);
    program_tensor t;
    t.type = f.type;
    t.rank = static_cast<std::uint32_t>(f.dims.size());
    t.name = view_.name(v);
    t.dims = static_cast<std::uint32_t>(w_.sizes.size());
    for (dim d : f.dims) {
      w_.sizes.push_back(d);
      const std::uint32_t segment = segment_of(d);
      if (segment > t.segment) t.segment = segment;
    }
    // Nor is there an address before the bytes behind it have one.
    if (kind != storage_kind::none)
      if (const std::uint32_t segment = segment_of(w_.storages[buffer_of(storage_for(v))]);
          segment > t.segment)
        t.segment = segment;
    t.kind = kind;
    t.storage = place;
    const auto index = static_cast<std::uint32_t>(r.tensors.size());
    if (kind == storage_kind::outer) {
      // The region that makes the value says where it is when it has been emitted itself.
      t.storage = no_slot;
      captured_.push_back({w_.region, index, w_.storages[storage_for(v)].first});
    }
    r.tensors.push_back(std::move(t));
    return index;
  }
  status place_constants_and_host() {
    program_region& r = here();
    std::uint32_t offset = 0;
    std::vector<std::uint32_t> host_segments;
    for (storage& s : w_.storages) {
      if (s.kind == storage_kind::constant) {
        const constant_view c = constant(s.first);
        memory_block block;
        if (!block.reserve(c.bytes + 1))
          return error(errc::out_of_memory).at_tensor(view_.name(s.first));
        if (c.bytes > 0) std::memcpy(block.data(), c.data, c.bytes);
        s.place = static_cast<std::uint32_t>(out_.constants_.size());
        out_.constants_.push_back(std::move(block));
        out_.summary_.weights_bytes += static_cast<std::int64_t>(c.bytes);
      } else if (s.kind == storage_kind::host) {
        const symbolic_fact& f = facts_.fact(s.first);
        host_value h;
        h.type = f.type;
        h.first = static_cast<std::uint32_t>(w_.sizes.size());
        h.count = static_cast<std::uint32_t>(f.elements.size());
        h.offset = offset;
        std::uint32_t segment = 0;
        for (dim d : f.elements) {
          w_.sizes.push_back(d);
          if (segment_of(d) > segment) segment = segment_of(d);
        }
        host_segments.push_back(segment);
        s.place = offset;
        offset += static_cast<std::uint32_t>(
            align_up(static_cast<std::int64_t>(h.count * bytes_of(h.type)), 8));
        r.host.push_back(h);
      }
    }
    r.host_bytes = offset;
    const std::vector<host_value> all = std::move(r.host);
    r.host.clear();
    for (std::uint32_t g = 0; g < r.segments.size(); ++g) {
      r.segments[g].host_first = static_cast<std::uint32_t>(r.host.size());
      for (std::size_t k = 0; k < all.size(); ++k)
        if (host_segments[k] == g) r.host.push_back(all[k]);
      r.segments[g].host_count =
          static_cast<std::uint32_t>(r.host.size()) - r.segments[g].host_first;
    }
    return {};
  }
  status emit() {
    program_region& r = here();
    r.segments.resize(w_.segment_starts.size());
    // Buffers: storages of the arena, then workspaces.
    w_.buffer_index.assign(w_.storages.size(), no_slot);
    std::vector<dim> bytes;
    std::vector<buffer> buffers;
    for (std::uint32_t s = 0; s < w_.storages.size(); ++s) {
      if (w_.storages[s].kind != storage_kind::arena || w_.first_use[s] == no_slot) continue;
      const std::uint32_t root = buffer_of(s);
      if (w_.buffer_index[root] == no_slot) {
        w_.buffer_index[root] = static_cast<std::uint32_t>(bytes.size());
        bytes.push_back(bytes_of_value(w_.storages[root].first));
        buffer b;
        b.lower = w_.first_use[root];
        b.upper = w_.first_use[root];
        buffers.push_back(b);
      }
      buffer& b = buffers[w_.buffer_index[root]];
      if (static_cast<std::int64_t>(w_.first_use[s]) < b.lower) b.lower = w_.first_use[s];
      if (w_.last_use[s] + 1 > b.upper) b.upper = w_.last_use[s] + 1;
    }
    std::vector<std::uint32_t> workspace(w_.order.size(), no_slot);
    for (std::uint32_t at = 0; at < w_.order.size(); ++at) {
      const launch& l = w_.launches[w_.order[at]];
      if (!l.workspace.is_known()) continue;
      workspace[at] = static_cast<std::uint32_t>(bytes.size());
      bytes.push_back(l.workspace);
      buffer b;
      b.lower = at;
      b.upper = at + 1;
      buffers.push_back(b);
    }
    if (!options_.share_memory)
      for (buffer& b : buffers) {
        b.lower = 0;
        b.upper = static_cast<std::int64_t>(w_.order.size());
      }
    dim intermediate = context().zero();
    for (std::uint32_t s = 0; s < w_.storages.size(); ++s)
      if (w_.storages[s].kind == storage_kind::arena && w_.first_use[s] != no_slot)
        intermediate = context().add(intermediate, bytes_of_value(w_.storages[s].first));
    number_buffers(bytes, buffers, workspace);
    r.intermediate_bytes = static_cast<std::uint32_t>(w_.sizes.size());
    // A sum with too many different terms has no text; it is then left out of reports.
    w_.sizes.push_back(intermediate.is_known() ? intermediate : context().zero());
    if (is_root() && intermediate.is_known())
      out_.summary_.intermediate_bytes = print(context(), intermediate);
    SOD2_TRY(place_constants_and_host());
    for (program_segment& g : r.segments) {
      if (g.buffers > 0 && (!is_root() || &g != r.segments.data())) g.block = out_.blocks_++;
      placement_problem problem;
      problem.alignment = static_cast<std::int64_t>(tensor_alignment);
      std::vector<dim> own;
      for (std::uint32_t b = g.buffer_first; b < g.buffer_first + g.buffers; ++b) {
        problem.buffers.push_back(buffers[b]);
        own.push_back(bytes[b]);
      }
      SOD2_TRY(plan_layout(problem, own, g));
    }
    r.layout = r.segments[0].layout;
    for (std::uint32_t at = 0; at < w_.order.size(); ++at) emit_step(at, workspace[at], buffers);
    emit_outputs();
    settle_captures();
    for (std::uint32_t t = 0; t < r.tensors.size(); ++t)
      r.segments[r.tensors[t].segment].tensors.push_back(t);
    SOD2_TRY(emit_entry());
    return emit_sizes();
  }
  /// Buffers of a segment follow each other, and so do their sizes.
  void number_buffers(std::vector<dim>& bytes, std::vector<buffer>& buffers,
                      std::vector<std::uint32_t>& workspace) {
    program_region& r = here();
    std::vector<std::uint32_t> number(bytes.size(), 0);
    std::vector<dim> sorted_bytes;
    std::vector<buffer> sorted;
    for (std::uint32_t g = 0; g < r.segments.size(); ++g) {
      program_segment& segment = r.segments[g];
      segment.buffer_first = static_cast<std::uint32_t>(sorted.size());
      segment.buffer_bytes = static_cast<std::uint32_t>(w_.sizes.size());
      for (std::uint32_t b = 0; b < bytes.size(); ++b) {
        if (segment_of(bytes[b]) != g) continue;
        number[b] = static_cast<std::uint32_t>(sorted.size());
        sorted.push_back(buffers[b]);
        sorted_bytes.push_back(bytes[b]);
        w_.sizes.push_back(bytes[b]);
        r.segment_of_buffer.push_back(g);
      }
      segment.buffers = static_cast<std::uint32_t>(sorted.size()) - segment.buffer_first;
    }
    for (std::uint32_t& b : w_.buffer_index)
      if (b != no_slot) b = number[b];
    for (std::uint32_t& b : workspace)
      if (b != no_slot) b = number[b];
    r.buffers = static_cast<std::uint32_t>(sorted.size());
    bytes = std::move(sorted_bytes);
    buffers = std::move(sorted);
  }
  /// Tensors of inner regions that this one makes: now they have a place.
  void settle_captures() {
    std::size_t kept = 0;
    for (const capture& c : captured_) {
      if (view_.scope(c.value) == w_.scope && c.region != w_.region) {
        const std::uint32_t made = tensor_for(c.value);
        program_tensor& t = out_.regions_[c.region].tensors[c.tensor];
        t.region = w_.region;
        t.storage = made;
      } else {
        captured_[kept++] = c;
      }
    }
    captured_.resize(kept);
  }
  status emit_entry() {
    const auto inputs = view_.inputs(w_.scope);
    const auto& open = scope_binds_[w_.scope.index];
    for (std::uint32_t s : open) {
      bool found = false;
      for (std::size_t k = 0; k < inputs.size() && !found; ++k)
        found = solve(inputs[k], k, s, open, here().entry);
      if (!found)
        return error(errc::unsupported, "running a body with sizes that hide a size of the run")
            .at_node(view_.name(w_.scope));
    }
    return {};
  }
  /// Sizes last: tensors, buffers and host values have all been listed.
  status emit_sizes() {
    program_region& r = here();
    struct pending_check {
      dim left{}, right{};
      std::uint32_t segment = 0;
      program_check check;
    };
    std::vector<pending_check> checks;
    for (const assertion& a : facts_.assertions()) {
      if (view_.scope(a.node) != w_.scope) continue;  // holds only where its arm runs
      if (!is_known_here(a.left) || !is_known_here(a.right)) continue;
      program_check c;
      c.broadcast = a.what == assertion::kind::broadcast;
      c.code = a.code;
      c.node = view_.name(a.node);
      if (a.tensor != absent) c.tensor = view_.name(a.tensor);
      c.axis = a.axis;
      c.text = a.relation;
      std::uint32_t segment = segment_of_raw(a.left);
      if (segment_of_raw(a.right) > segment) segment = segment_of_raw(a.right);
      checks.push_back({a.left, a.right, segment, std::move(c)});
    }
    const auto listed = static_cast<std::uint32_t>(w_.sizes.size());
    r.size_count = listed + 2 * static_cast<std::uint32_t>(checks.size());
    for (std::uint32_t g = 0; g < r.segments.size(); ++g) {
      program_segment& segment = r.segments[g];
      size_program_builder builder(context());
      for (std::uint32_t i = 0; i < listed; ++i) {
        const dim d = context().resolve(w_.sizes[i]);
        if (d.is_overflow())
          return error(errc::overflow, "a size of the model does not fit into 64 bits");
        if (!d.is_known())
          return error(errc::unsupported, "a size of the model is too complicated");
        const bool own = segment_of(d) == g;
        if (g == 0) builder.add_output(own ? d : context().zero());
        if (g == 0 || !own) continue;
        builder.add_output(d);
        segment.targets.push_back(i);
      }
      segment.check_first = static_cast<std::uint32_t>(r.checks.size());
      for (std::uint32_t k = 0; k < checks.size(); ++k) {
        pending_check& c = checks[k];
        const bool own = c.segment == g;
        c.check.left = listed + 2 * k;
        c.check.right = listed + 2 * k + 1;
        if (g == 0 || own) {
          builder.add_output_as_is(own ? c.left : context().zero());
          builder.add_output_as_is(own ? c.right : context().zero());
        }
        if (!own) continue;
        if (g > 0) {
          segment.targets.push_back(c.check.left);
          segment.targets.push_back(c.check.right);
        }
        r.checks.push_back(std::move(c.check));
      }
      segment.check_count = static_cast<std::uint32_t>(r.checks.size()) - segment.check_first;
      segment.sizes = std::move(builder).finish();
    }
    return {};
  }
  // Assertions are evaluated as they stood, so their symbols are looked at unresolved.
  bool is_known_here(dim d) {
    bool all = true;
    context().for_each_symbol(d, [&](std::uint32_t s) {
      if (context().origin_of_symbol(s) != symbol_origin::inferred) return;
      bool found = w_.segment_of_symbol[s] > 0;
      for (scope_id at = w_.scope; !found; at = view_.scope(node_id{view_.owner(at)})) {
        for (std::uint32_t k : scope_binds_[at.index]) found = found || k == s;
        if (at == graph_view::root()) break;
      }
      all = all && found;
    });
    return all;
  }
  std::uint32_t segment_of_raw(dim d) {
    std::uint32_t segment = 0;
    context().for_each_symbol(d, [&](std::uint32_t s) {
      if (w_.segment_of_symbol[s] > segment) segment = w_.segment_of_symbol[s];
    });
    return segment;
  }
  void describe_symbols() {
    dim_context& c = context();
    out_.symbol_values_ = c.symbol_count();
    std::vector<std::uint32_t> position(c.symbol_count(), no_slot);
    for (std::uint32_t s = 0; s < c.symbol_count(); ++s) {
      if (c.origin_of_symbol(s) != symbol_origin::input) continue;
      position[s] = static_cast<std::uint32_t>(out_.symbols_.size());
      program_symbol p;
      p.name = c.name_of_symbol(s);
      p.index = s;
      // What the user declared, not what analysis narrowed: assertions say the rest.
      p.lo = 1;
      p.hi = default_symbol_max;
      for (const symbol_declaration& d : options_.analysis.symbols)
        if (d.name == p.name) {
          p.lo = d.facts.lo;
          p.hi = d.facts.hi;
          p.step = d.facts.step;
          p.offset = d.facts.offset;
        }
      out_.symbols_.push_back(std::move(p));
    }
    for (value_id v : view_.inputs()) {
      program_input in;
      in.name = view_.name(v);
      in.type = facts_.fact(v).type;
      const auto& declared = view_.declared(v);
      for (std::size_t axis = 0; axis < declared.dims.size(); ++axis) {
        program_input::axis a;
        a.size = declared.dims[axis].size;
        if (a.size < 0) {
          const std::string symbol = declared.dims[axis].symbol.empty()
                                         ? std::string(view_.name(v)) + "." + std::to_string(axis)
                                         : std::string(declared.dims[axis].symbol);
          if (const std::int64_t s = c.find_symbol(symbol); s >= 0)
            a.symbol = position[static_cast<std::size_t>(s)];
        }
        in.axes.push_back(a);
      }
      for (const std::string& shaped : options_.analysis.shape_inputs)
        if (shaped == in.name)
          for (std::size_t k = 0; k < facts_.fact(v).elements.size(); ++k)
            if (const std::int64_t s = c.find_symbol(in.name + "[" + std::to_string(k) + "]");
                s >= 0) {
              in.element_symbols.push_back(position[static_cast<std::size_t>(s)]);
              out_.symbols_[in.element_symbols.back()].lo = 0;
            }
      out_.inputs_.push_back(std::move(in));
    }
  }
  status plan_layout(const placement_problem& problem, const std::vector<dim>& bytes,
                     program_segment& segment) {
    std::vector<std::vector<std::int64_t>> samples;
    std::vector<std::span<const std::int64_t>> spans;
    for (int which = 0; which < 3; ++which) samples.push_back(evaluate_all(bytes, sample(which)));
    for (const auto& one : samples) spans.push_back(one);
    symbolic_layout_planner planner(problem, spans);
    segment.layout = planner.stacked();
    dim required = segment.layout.required_bytes(context(), bytes);
    std::string text = required.is_known() ? print(context(), required) : std::string();
    if (text.empty() || text.size() > longest_formula) {
      segment.layout = planner.slots();
      required = segment.layout.required_bytes(context(), bytes);
      text = required.is_known() ? print(context(), required) : std::string();
    }
    if (&segment != here().segments.data()) return {};
    w_.required = text.size() <= longest_formula ? required : dim{};
    if (is_root()) out_.summary_.required_bytes = std::move(text);
    return {};
  }
  void emit_step(std::uint32_t at, std::uint32_t workspace, const std::vector<buffer>& buffers) {
    program_region& r = here();
    const launch& l = w_.launches[w_.order[at]];
    program_step s;
    s.kind = l.kind;
    s.run = l.row != nullptr ? l.row->run : nullptr;
    s.state = l.state;
    s.tile = l.tile;
    s.control = l.control;
    s.binder = l.binder;
    s.workspace = workspace;
    s.nodes = static_cast<std::uint32_t>(l.nodes.size());
    s.name = name(l.nodes[0]);
    s.op = info(l.nodes[0]).name;
    const auto list = [&](const std::vector<value_id>& values, std::uint64_t consumed,
                          std::uint32_t& first, std::uint32_t& count) {
      first = static_cast<std::uint32_t>(r.operands.size());
      count = static_cast<std::uint32_t>(values.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        r.operands.push_back(values[i] != absent && i < 64 && (consumed >> i & 1U) != 0
                                 ? add_tensor(values[i], storage_kind::none, 0)
                                 : tensor_for(values[i]));
    };
    list(l.inputs, l.consumed, s.input_first, s.input_count);
    list(l.outputs, 0, s.output_first, s.output_count);
    list(l.operands, 0, s.operand_first, s.operand_count);
    s.death_first = static_cast<std::uint32_t>(r.deaths.size());
    for (std::uint32_t b = 0; b < buffers.size(); ++b)
      if (buffers[b].upper == static_cast<std::int64_t>(at) + 1) r.deaths.push_back(b);
    s.death_count = static_cast<std::uint32_t>(r.deaths.size()) - s.death_first;
    r.steps.push_back(std::move(s));
  }
  void emit_outputs() {
    program_region& r = here();
    for (std::size_t k = 0; k < view_.outputs(w_.scope).size(); ++k) {
      const value_id v = view_.outputs(w_.scope)[k];
      const std::uint32_t made = tensor_for(v);
      r.results.push_back(made);
      const program_tensor& t = r.tensors[made];
      if (t.kind != storage_kind::output || t.storage != k)
        r.copies.push_back({made, static_cast<std::uint32_t>(k)});
      else
        r.segments[t.segment].outputs.push_back({made, static_cast<std::uint32_t>(k)});
      if (is_root()) out_.outputs_.push_back({std::string(view_.name(v)), made});
    }
  }

  struct kept_constant {
    memory_block bytes;
    std::vector<std::int64_t> dims;
  };

  const graph_view& view_;
  const registry& ops_;
  const kernel_table& kernels_;
  const compile_options& options_;
  analysis facts_;
  program out_;
  std::vector<node_role> roles_;
  std::vector<constant_view> constant_;
  std::vector<std::uint8_t> constant_state_;  // 1: looked up
  std::vector<kept_constant> kept_;
  std::vector<std::uint8_t> needed_;
  struct capture {
    std::uint32_t region = 0, tensor = 0;
    value_id value{};
  };
  std::vector<capture> captured_;    // tensors of regions whose maker has not been emitted
  bool late_symbols_ = false;        // some size is known only while running
  std::vector<std::uint8_t> bound_;  // per symbol, while roles are assigned
  std::vector<std::vector<std::uint32_t>> binds_;        // per node: symbols that it makes known
  std::vector<std::vector<std::uint32_t>> scope_binds_;  // per scope: those of its inputs
  std::vector<std::string> impossible_;                  // per scope: why it cannot run
  dim required_{};  // bytes of the first segment of the scope compiled last
  scope_work w_;
};

namespace detail {

/// One program per scenario; each is guarded by the conditions that led to it.
inline result<program> compile_variants(const graph_view& view, const registry& ops,
                                        const kernel_table& kernels, const compile_options& options,
                                        const std::vector<scenario>& scenarios) {
  std::vector<program> variants;
  for (const scenario& s : scenarios) {
    compile_options assumed = options;
    assumed.analysis.decided = options.analysis.decided;
    std::vector<program_guard> guards;
    for (std::size_t k = options.analysis.decided.size(); k < s.decided.size(); ++k) {
      // The condition as it stands before its outcome is assumed.
      SOD2_ASSIGN(analysis before, analyze(view, ops, assumed.analysis));
      size_program_builder builder(before.context());
      builder.add_output(before.fact(view.inputs(s.decided[k].node)[0]).elements[0]);
      guards.push_back({std::move(builder).finish(), s.decided[k].outcome});
      assumed.analysis.decided.push_back(s.decided[k]);
    }
    SOD2_ASSIGN(program variant, program_compiler(view, ops, kernels, assumed).run());
    variants.push_back(program_compiler::guarded(std::move(variant), std::move(guards)));
  }
  return program_compiler::joined(std::move(variants));
}

}  // namespace detail

/// Compiles a graph to a program that outlives it: constants are copied or packed. Errors name the
/// node, tensor and axis; `kernel_missing` and `unsupported` say what cannot be run.
inline result<program> compile(const graph_view& view, const registry& ops,
                               const kernel_table& kernels, const compile_options& options = {}) {
  auto general = program_compiler(view, ops, kernels, options).run();
  if (general || general.error().code() != errc::rank_unknown) return general;
  // Ranks that conditions on sizes decide: one variant for each of their outcomes.
  SOD2_ASSIGN(const std::vector<scenario> scenarios,
              analyze_scenarios(view, ops, options.analysis));
  if (scenarios.empty() || scenarios[0].condition.empty()) return general;
  return detail::compile_variants(view, ops, kernels, options, scenarios);
}

}  // namespace sod2
