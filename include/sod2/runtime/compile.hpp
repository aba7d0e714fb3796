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
    tensor_of_.assign(view_.value_count(), no_slot);
    for (node_id n : view_.order()) SOD2_TRY(assign_role(n));
    mark_needed();
    fusion_plan fused = plan_fusion(view_, facts_, roles_, options_.fusion);
    SOD2_TRY(lower_groups(fused));
    assign_storages();
    SOD2_TRY(choose_order());
    share_in_place();
    SOD2_TRY(emit());
    return std::move(out_);
  }

  analysis& facts() { return facts_; }

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
    group_kind kind = group_kind::opaque;
    std::vector<node_id> nodes;
    const kernel_row* row = nullptr;
    std::uint32_t state = no_slot, tile = no_slot;
    std::vector<value_id> inputs, outputs, operands;  // absent: not passed
    std::uint64_t consumed = 0;                       // bit i: only the shape of input i is read
    dim workspace{};
  };

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
      if (!d.is_known()) return false;
    for (dim d : f.dims)
      if (!d.is_known()) return false;
    return true;
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

  status assign_role(node_id n) {
    if (!view_.scopes(n).empty())
      return error(errc::unsupported,
                   "running operator '" + std::string(info(n).name) + "' with a sub-graph")
          .at_node(name(n));
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
      const symbolic_fact& f = facts_.fact(v);
      if (!f.rank_known())
        return error(errc::rank_unknown).at_node(name(n)).at_tensor(view_.name(v));
      for (std::size_t i = 0; i < f.dims.size(); ++i)
        if (!f.dims[i].is_known() || !context().only_input_symbols(f.dims[i]))
          return error(errc::unsupported, "running with a size that only execution decides")
              .at_node(name(n))
              .at_tensor(view_.name(v), static_cast<int>(i));
      if (f.type == dtype::string)
        return error(errc::unsupported, "running on strings")
            .at_node(name(n))
            .at_tensor(view_.name(v));
    }
    if (is_view(view_, facts_, n)) {
      role(n) = node_role::view;
    } else if (pointwise_of(n) != nullptr) {
      role(n) = node_role::pointwise;
    } else if (const kernel_row* row = kernel_of(n); row != nullptr) {
      role(n) = !row->takes_epilogue                                  ? node_role::opaque
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
  void mark_needed() {
    needed_.assign(view_.value_count(), 0);
    for (value_id v : view_.outputs()) needed_[v.index] = 1;
    const auto order = view_.order();
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
      const pointwise_row* row = role(n) == node_role::pointwise ? pointwise_of(n) : nullptr;
      for (std::size_t k = 0; k < view_.inputs(n).size(); ++k) {
        const value_id v = view_.inputs(n)[k];
        if (v == absent || (role(n) == node_role::view && k > 0)) continue;
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
      if (g.kind == group_kind::view) {
        views_.push_back(g.nodes[0]);
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
          launches_.push_back(std::move(single));
        }
        continue;
      }
      SOD2_TRY(std::move(done));
      launches_.push_back(std::move(l));
    }
    out_.summary_.nodes_imported = view_.node_count();
    out_.summary_.groups = launches_.size();
    for (const launch& l : launches_) ++out_.summary_.by_kind[static_cast<unsigned>(l.kind)];
    return {};
  }
  status lower(launch& l) {
    const node_id anchor = l.nodes[0];
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
    storages_.push_back({kind, no_slot, v, no_slot});
    return static_cast<std::uint32_t>(storages_.size() - 1);
  }
  /// Every value that a launch touches belongs to a storage; views share that of their input.
  void assign_storages() {
    storage_of_.assign(view_.value_count(), no_slot);
    for (std::size_t i = 0; i < view_.inputs().size(); ++i) {
      const value_id v = view_.inputs()[i];
      storage_of_[v.index] = new_storage(storage_kind::input, v);
      storages_.back().place = static_cast<std::uint32_t>(i);
    }
    for (const launch& l : launches_)
      for (value_id v : l.outputs)
        if (v != absent) storage_of_[v.index] = new_storage(storage_kind::arena, v);
    // Views in topological order, so that chains resolve.
    for (node_id n : view_.order())
      if (role(n) == node_role::view)
        storage_of_[view_.outputs(n)[0].index] = storage_for(view_.inputs(n)[0]);
    // An output's storage is the caller's buffer, unless it already is something else.
    for (std::size_t k = 0; k < view_.outputs().size(); ++k) {
      const value_id v = view_.outputs()[k];
      storage& s = storages_[storage_for(v)];
      if (s.kind != storage_kind::arena) continue;
      s.kind = storage_kind::output;
      s.place = static_cast<std::uint32_t>(k);
    }
  }
  /// The storage of any value, made on first use for constants and host values.
  std::uint32_t storage_for(value_id v) {
    std::uint32_t& s = storage_of_[v.index];
    if (s == no_slot)
      s = new_storage(constant(v).present() ? storage_kind::constant : storage_kind::host, v);
    return s;
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
  }
  /// Pairs (output value, input value) whose memory may be one.
  template <class F>
  void for_each_in_place(const launch& l, F&& f) {
    const auto try_pair = [&](value_id out, value_id in) {
      const storage& o = storages_[storage_for(out)];
      const storage& i = storages_[storage_for(in)];
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
    for (const launch& l : launches_) {
      for_each_read(l, [&](value_id v) { (void)storage_for(v); });
    }
    for (const storage& s : storages_)
      sizes.push_back(s.kind == storage_kind::arena ? bytes_of_value(s.first) : context().zero());
    for (const launch& l : launches_)
      sizes.push_back(l.workspace.is_known() ? l.workspace : context().zero());
    const std::vector<std::int64_t> bytes = evaluate_all(sizes, sample(1));
    std::vector<std::uint32_t> writers(storages_.size(), 0);
    for (std::size_t i = 0; i < storages_.size(); ++i) {
      order_value v;
      v.bytes = align_up(bytes[i], static_cast<std::int64_t>(tensor_alignment));
      v.is_input =
          storages_[i].kind != storage_kind::arena && storages_[i].kind != storage_kind::output;
      v.is_output = storages_[i].kind == storage_kind::output;
      problem.values.push_back(v);
    }
    for (std::size_t k = 0; k < launches_.size(); ++k) {
      const launch& l = launches_[k];
      order_node node;
      const auto add = [](auto& list, std::uint32_t s) {
        for (std::uint32_t x : list)
          if (x == s) return;
        list.push_back(s);
      };
      for_each_read(l, [&](value_id v) { add(node.inputs, storage_for(v)); });
      for (value_id v : l.outputs)
        if (v != absent) add(node.outputs, storage_for(v));
      node.workspace = bytes[storages_.size() + k];
      for_each_in_place(l, [&](value_id out, value_id in) {
        node.in_place.push_back({storage_for(out), storage_for(in)});
      });
      problem.nodes.push_back(std::move(node));
    }
    const order_plan plan = options_.reorder ? order_best(problem) : order_given(problem);
    SOD2_TRY(validate(problem, plan));
    order_.assign(plan.order.begin(), plan.order.end());
    out_.summary_.order_exact = plan.exact;
    out_.summary_.order_peak_bytes = plan.peak_bytes;
    out_.summary_.order_lower_bound_bytes = plan.lower_bound_bytes;
    return {};
  }

  // ---- memory ----

  std::uint32_t buffer_of(std::uint32_t s) const {
    while (storages_[s].merged != no_slot) s = storages_[s].merged;
    return s;
  }
  /// Lets outputs take over the memory of inputs that die in the same launch.
  void share_in_place() {
    last_use_.assign(storages_.size(), 0);
    first_use_.assign(storages_.size(), no_slot);
    const auto touch = [&](std::uint32_t s, std::uint32_t at) {
      if (first_use_[s] == no_slot) first_use_[s] = at;
      last_use_[s] = at;
    };
    for (std::uint32_t at = 0; at < order_.size(); ++at) {
      const launch& l = launches_[order_[at]];
      for_each_read(l, [&](value_id v) { touch(storage_for(v), at); });
      for (value_id v : l.outputs)
        if (v != absent) touch(storage_for(v), at);
    }
    if (!options_.share_memory) return;
    std::vector<std::uint8_t> taken(storages_.size(), 0);
    for (std::uint32_t at = 0; at < order_.size(); ++at)
      for_each_in_place(launches_[order_[at]], [&](value_id out, value_id in) {
        const std::uint32_t o = storage_for(out), i = storage_for(in);
        if (storages_[o].merged != no_slot || taken[i] != 0 || last_use_[i] != at) return;
        storages_[o].merged = i;
        taken[i] = 1;
      });
  }

  // ---- emit ----

  std::uint32_t tensor_for(value_id v) {
    if (v == absent) return no_slot;
    if (tensor_of_[v.index] != no_slot) return tensor_of_[v.index];
    const std::uint32_t s = storage_for(v);
    const storage_kind kind = storages_[s].kind;
    tensor_of_[v.index] = add_tensor(
        v, kind, kind == storage_kind::arena ? buffer_index_[buffer_of(s)] : storages_[s].place);
    return tensor_of_[v.index];
  }
  std::uint32_t add_tensor(value_id v, storage_kind kind, std::uint32_t place) {
    program_region& r = out_.regions_[0];
    const symbolic_fact& f = facts_.fact(v);
    program_tensor t;
    t.type = f.type;
    t.rank = static_cast<std::uint32_t>(f.dims.size());
    t.name = view_.name(v);
    t.dims = static_cast<std::uint32_t>(sizes_.size());
    for (dim d : f.dims) sizes_.push_back(d);
    t.kind = kind;
    t.storage = place;
    r.tensors.push_back(std::move(t));
    return static_cast<std::uint32_t>(r.tensors.size() - 1);
  }
  status place_constants_and_host() {
    program_region& r = out_.regions_[0];
    std::uint32_t offset = 0;
    for (storage& s : storages_) {
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
        h.first = static_cast<std::uint32_t>(sizes_.size());
        h.count = static_cast<std::uint32_t>(f.elements.size());
        h.offset = offset;
        for (dim d : f.elements) sizes_.push_back(d);
        s.place = offset;
        offset += static_cast<std::uint32_t>(
            align_up(static_cast<std::int64_t>(h.count * bytes_of(h.type)), 8));
        r.host.push_back(h);
      }
    }
    r.host_bytes = offset;
    return {};
  }
  status emit() {
    out_.regions_.resize(1);
    out_.run_tile_ = kernels_.run_tile;
    out_.threads_ = options_.threads;
    program_region& r = out_.regions_[0];
    describe_symbols();
    // Buffers: storages of the arena, then workspaces.
    buffer_index_.assign(storages_.size(), no_slot);
    std::vector<dim> buffer_bytes;
    placement_problem problem;
    problem.alignment = static_cast<std::int64_t>(tensor_alignment);
    for (std::uint32_t s = 0; s < storages_.size(); ++s) {
      if (storages_[s].kind != storage_kind::arena || first_use_[s] == no_slot) continue;
      const std::uint32_t root = buffer_of(s);
      if (buffer_index_[root] == no_slot) {
        buffer_index_[root] = static_cast<std::uint32_t>(buffer_bytes.size());
        buffer_bytes.push_back(bytes_of_value(storages_[root].first));
        buffer b;
        b.lower = first_use_[root];
        b.upper = first_use_[root];
        problem.buffers.push_back(b);
      }
      buffer& b = problem.buffers[buffer_index_[root]];
      if (static_cast<std::int64_t>(first_use_[s]) < b.lower) b.lower = first_use_[s];
      if (last_use_[s] + 1 > b.upper) b.upper = last_use_[s] + 1;
    }
    std::vector<std::uint32_t> workspace(order_.size(), no_slot);
    for (std::uint32_t at = 0; at < order_.size(); ++at) {
      const launch& l = launches_[order_[at]];
      if (!l.workspace.is_known()) continue;
      workspace[at] = static_cast<std::uint32_t>(buffer_bytes.size());
      buffer_bytes.push_back(l.workspace);
      buffer b;
      b.lower = at;
      b.upper = at + 1;
      problem.buffers.push_back(b);
    }
    if (!options_.share_memory)
      for (buffer& b : problem.buffers) {
        b.lower = 0;
        b.upper = static_cast<std::int64_t>(order_.size());
      }
    // Two buffers never share dims slots: sizes are contiguous for the layout.
    r.buffer_bytes = static_cast<std::uint32_t>(sizes_.size());
    r.buffers = static_cast<std::uint32_t>(buffer_bytes.size());
    for (dim d : buffer_bytes) sizes_.push_back(d);
    r.intermediate_bytes = static_cast<std::uint32_t>(sizes_.size());
    dim intermediate = context().zero();
    for (std::uint32_t s = 0; s < storages_.size(); ++s)
      if (storages_[s].kind == storage_kind::arena && first_use_[s] != no_slot)
        intermediate = context().add(intermediate, bytes_of_value(storages_[s].first));
    // A sum with too many different terms has no text; it is then left out of reports.
    sizes_.push_back(intermediate.is_known() ? intermediate : context().zero());
    if (intermediate.is_known()) out_.summary_.intermediate_bytes = print(context(), intermediate);
    SOD2_TRY(place_constants_and_host());
    SOD2_TRY(plan_layout(problem, buffer_bytes));
    for (std::uint32_t at = 0; at < order_.size(); ++at) emit_step(at, workspace[at], problem);
    emit_outputs();
    // Sizes last: tensors, buffers and host values have all been listed.
    size_program_builder builder(context());
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const dim d = context().resolve(sizes_[i]);
      if (d.is_overflow())
        return error(errc::overflow, "a size of the model does not fit into 64 bits");
      if (!d.is_known()) return error(errc::unsupported, "a size of the model is too complicated");
      builder.add_output(d);
    }
    for (const assertion& a : facts_.assertions()) {
      if (view_.scope(a.node) != graph_view::root()) continue;  // holds only where its arm runs
      program_check c;
      c.left = builder.add_output_as_is(a.left);
      c.right = builder.add_output_as_is(a.right);
      c.broadcast = a.what == assertion::kind::broadcast;
      c.code = a.code;
      c.node = view_.name(a.node);
      if (a.tensor != absent) c.tensor = view_.name(a.tensor);
      c.axis = a.axis;
      c.text = a.relation;
      r.checks.push_back(std::move(c));
    }
    r.sizes = std::move(builder).finish();
    return {};
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
  status plan_layout(const placement_problem& problem, const std::vector<dim>& bytes) {
    std::vector<std::vector<std::int64_t>> samples;
    std::vector<std::span<const std::int64_t>> spans;
    for (int which = 0; which < 3; ++which) samples.push_back(evaluate_all(bytes, sample(which)));
    for (const auto& one : samples) spans.push_back(one);
    program_region& r = out_.regions_[0];
    symbolic_layout_planner planner(problem, spans);
    r.layout = planner.stacked();
    dim required = r.layout.required_bytes(context(), bytes);
    std::string text = required.is_known() ? print(context(), required) : std::string();
    if (text.empty() || text.size() > longest_formula) {
      r.layout = planner.slots();
      required = r.layout.required_bytes(context(), bytes);
      text = required.is_known() ? print(context(), required) : std::string();
    }
    out_.summary_.required_bytes = std::move(text);
    return {};
  }
  void emit_step(std::uint32_t at, std::uint32_t workspace, const placement_problem& problem) {
    program_region& r = out_.regions_[0];
    const launch& l = launches_[order_[at]];
    program_step s;
    s.kind = l.kind;
    s.run = l.row != nullptr ? l.row->run : nullptr;
    s.state = l.state;
    s.tile = l.tile;
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
    for (std::uint32_t b = 0; b < problem.buffers.size(); ++b)
      if (problem.buffers[b].upper == static_cast<std::int64_t>(at) + 1) r.deaths.push_back(b);
    s.death_count = static_cast<std::uint32_t>(r.deaths.size()) - s.death_first;
    r.steps.push_back(std::move(s));
  }
  void emit_outputs() {
    program_region& r = out_.regions_[0];
    for (std::size_t k = 0; k < view_.outputs().size(); ++k) {
      const value_id v = view_.outputs()[k];
      program_output o;
      o.name = view_.name(v);
      o.tensor = tensor_for(v);
      const program_tensor& t = r.tensors[o.tensor];
      if (t.kind != storage_kind::output || t.storage != k)
        r.copies.push_back({o.tensor, static_cast<std::uint32_t>(k)});
      out_.outputs_.push_back(std::move(o));
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
  std::vector<launch> launches_;
  std::vector<node_id> views_;
  std::vector<storage> storages_;
  std::vector<std::uint32_t> storage_of_, tensor_of_, order_, first_use_, last_use_, buffer_index_;
  std::vector<dim> sizes_;
};

/// Compiles a graph to a program that outlives it: constants are copied or packed. Errors name the
/// node, tensor and axis; `kernel_missing` and `unsupported` say what cannot be run.
inline result<program> compile(const graph_view& view, const registry& ops,
                               const kernel_table& kernels, const compile_options& options = {}) {
  return program_compiler(view, ops, kernels, options).run();
}

}  // namespace sod2
