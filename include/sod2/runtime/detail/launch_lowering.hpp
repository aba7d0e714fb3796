// Fused groups to launches: prepared kernels, tile programs, control flow, and how a launch makes
// sizes known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/core/attribute.hpp>
#include <sod2/fuse/plan.hpp>
#include <sod2/runtime/detail/role_assignment.hpp>

namespace sod2::detail {

class launch_lowering : public role_assignment {
 public:
  using role_assignment::role_assignment;

 protected:
  /// Compiles a scope, and with it those of its nodes, to a region. Gives its number.
  virtual result<std::uint32_t> compile_scope(scope_id s) = 0;

  status lower_groups(fusion_plan& fused) {
    for (const fused_group& g : fused.groups) {
      for (node_id n : g.nodes)
        if (role(n) != node_role::dead) ++out_.summary.nodes;
      if (g.kind == group_kind::host) {
        --out_.summary.nodes;
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
      ++out_.summary.groups;
      ++out_.summary.by_kind[static_cast<unsigned>(l.kind)];
    }
    return {};
  }
  status lower(launch& l) {
    const node_id anchor = l.nodes[0];
    if (!view_.scopes(anchor).empty()) return lower_control(l);
    if (handles_elements(anchor)) return lower_sequence(l);
    if (!binds_[anchor.index].empty()) SOD2_TRY(lower_binder(l));
    if (l.kind == group_kind::view) {
      l.inputs.assign(view_.inputs(anchor).begin(), view_.inputs(anchor).end());
      l.outputs.clear();
      return {};
    }
    if (l.kind == group_kind::opaque && kernel_of(anchor) == nullptr) l.kind = group_kind::tile;
    if (l.kind == group_kind::tile) {
      SOD2_ASSIGN(tile_program tile, lower_tile(l, false));
      l.tile = static_cast<std::uint32_t>(out_.tiles.size());
      out_.tiles.push_back(std::move(tile));
      return {};
    }
    l.row = kernel_of(anchor);
    node_operands described;
    describe(anchor, described);
    if (l.nodes.size() > 1) {
      SOD2_ASSIGN(tile_program tile, lower_tile(l, true));
      l.tile = static_cast<std::uint32_t>(out_.tiles.size());
      out_.tiles.push_back(std::move(tile));
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
    out_.summary.weights_bytes += state->bytes;
    if (state->data != nullptr) {
      l.state = static_cast<std::uint32_t>(out_.states.size());
      out_.states.push_back(std::move(*state));
    }
    return {};
  }
  /// Compiles the scopes of a node. Arms exclude each other, so they share their memory.
  status lower_control(launch& l) {
    const node_id n = l.nodes[0];
    program_control c;
    c.index = out_.controls++;
    c.what = info(n).name == "If"     ? program_control::kind::branch
             : info(n).name == "Loop" ? program_control::kind::loop
             : info(n).name == "Scan" ? program_control::kind::scan
                                      : program_control::kind::map;
    auto inputs = view_.inputs(n);
    const auto outputs = view_.outputs(n);
    const auto scopes = live_scopes(n);
    value_id lengths{};
    if (c.what == program_control::kind::scan && facts_.node(n).op.version < 9) {
      c.batched = true;
      lengths = inputs[0];
      inputs = inputs.subspan(1);
    }
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
          const auto x = a.integers(axes), d = a.integers(c.batched ? "directions" : directions);
          to.push_back(k < x.size() ? x[k] : 0);
          backwards.push_back(k < d.size() && d[k] != 0 ? 1 : 0);
        }
      };
      list("scan_input_axes", "scan_input_directions", scanned_inputs, c.input_axes,
           c.input_backwards);
      if (!c.batched)
        list("scan_output_axes", "scan_output_directions", made - c.carried, c.output_axes,
             c.output_backwards);
    }
    if (c.what == program_control::kind::map) {
      made = view_.outputs(scopes[0]).size();
      for (std::size_t k = 0; k < made; ++k)
        c.next.push_back(k < outputs.size() && outputs[k] != absent
                             ? container_for(outputs[k])
                             : new_container(fact_kind::sequence));
    }
    for (std::size_t k = 0; k < c.carried; ++k) {
      const std::size_t initial = c.what == program_control::kind::loop ? 2 : 0;
      const value_id formal = view_.inputs(scopes[0])[initial + k];
      const bool list = holds_elements(formal);
      c.formal.push_back(list ? container_for(formal) : no_slot);
      c.next.push_back(list ? new_container(facts_.fact(formal).kind) : no_slot);
    }
    c.block_first = out_.blocks;
    out_.blocks += static_cast<std::uint32_t>(made);
    if (c.what != program_control::kind::branch)
      out_.blocks +=
          static_cast<std::uint32_t>(2 * c.carried + (made - c.carried) + scanned_inputs);
    const std::uint32_t shared = out_.blocks;
    std::uint32_t most = shared;
    for (std::size_t k = 0; k < scopes.size(); ++k) {
      if (is_excluded(n, k)) continue;
      out_.blocks = shared;
      SOD2_ASSIGN(c.regions[k], compile_scope(scopes[k]));
      if (out_.blocks > most) most = out_.blocks;
      // What is known of the scope's sizes before it runs is memory of this launch.
      if (required_.is_known() && required_ != context().zero() &&
          context().only_input_symbols(required_))
        l.workspace = l.workspace.is_known() ? context().max(l.workspace, required_) : required_;
      here().children.push_back(c.regions[k]);
      if (is_compiled(scopes[k])) collect_captures(scopes[k], l);
    }
    out_.blocks = most;
    l.kind = group_kind::opaque;
    l.inputs.assign(inputs.begin(), inputs.end());
    if (lengths != absent) l.inputs.push_back(lengths);
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
  /// Operators on sequences and optionals; the session runs them.
  status lower_sequence(launch& l) {
    using kind = program_sequence::kind;
    const node_id n = l.nodes[0];
    const std::string_view op = info(n).name;
    const auto inputs = view_.inputs(n);
    const attribute_source& a = view_.attributes(n);
    const bool list_in = !inputs.empty() && holds_elements(inputs[0]);
    program_sequence q;
    if (op == "SequenceConstruct" || op == "SequenceEmpty") {
      q.what = kind::construct;
    } else if (op == "Optional" && !list_in) {
      q.what = kind::construct;
      q.has_value = !inputs.empty() && inputs[0] != absent;
    } else if (list_in && (op == "Identity" || op == "Optional")) {
      q.what = kind::assign;
    } else if (op == "OptionalGetElement") {
      q.what = kind::element;
    } else if (op == "OptionalHasElement") {
      q.what = kind::has;
    } else if (op == "SequenceAt") {
      q.what = kind::at;
    } else if (op == "SequenceInsert") {
      q.what = kind::insert;
    } else if (op == "SequenceErase") {
      q.what = kind::erase;
    } else if (op == "SequenceLength") {
      q.what = kind::length;
    } else if (op == "SplitToSequence") {
      q.what = kind::split;
      q.axis = a.integer("axis", 0);
      q.keeps_axis =
          inputs.size() > 1 && inputs[1] != absent ? true : a.integer("keepdims", 1) != 0;
    } else if (op == "ConcatFromSequence") {
      q.what = kind::concat;
      q.axis = a.integer("axis", 0);
      q.keeps_axis = a.integer("new_axis", 0) == 0;
    } else {
      return error(errc::unsupported,
                   "running operator '" + std::string(op) + "' on sequences or optionals")
          .at_node(name(n));
    }
    if ((q.what == kind::split || q.what == kind::concat) &&
        bytes_of(facts_.fact(inputs[0]).type) == 0)  // rows would begin inside a byte
      return error(errc::unsupported, "cutting and joining elements below a byte").at_node(name(n));
    q.block_first = out_.blocks;
    out_.blocks += static_cast<std::uint32_t>(view_.outputs(n).size());
    l.kind = group_kind::opaque;
    l.inputs.assign(inputs.begin(), inputs.end());
    l.outputs.assign(view_.outputs(n).begin(), view_.outputs(n).end());
    l.sequence = static_cast<std::uint32_t>(here().sequences.size());
    here().sequences.push_back(q);
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
    if (is_possible(s))
      for (value_id v : view_.outputs(s)) read(v);
    for (node_id n : view_.order(s)) {
      if (role(n) == node_role::dead) continue;
      for (value_id v : view_.inputs(n)) read(v);
      for (value_id v : view_.outputs(n)) read(v);
      const auto scopes = live_scopes(n);
      for (std::size_t k = 0; k < scopes.size(); ++k)
        if (!is_excluded(n, k) && is_compiled(scopes[k])) collect_captures(scopes[k], l);
    }
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
    const attribute_source& source = view_.attributes(n);
    if (source.name_at != nullptr) {
      for (std::size_t i = 0;; ++i) {
        const std::string_view set = source.name_at(source.graph, source.node, i);
        if (set.empty()) break;
        if (const attribute_view a = source(set); a.kind != attribute_kind::graph)
          b.attributes.push_back(copy(set, a));
      }
    } else {
      // What steers sizes in the standard operators.
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
        if (const attribute_view a = source(wanted)) b.attributes.push_back(copy(wanted, a));
    }
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
      b.block_first = out_.blocks;
      out_.blocks += static_cast<std::uint32_t>(view_.outputs(n).size());
    }
    l.binder = static_cast<std::uint32_t>(here().binders.size());
    here().binders.push_back(std::move(b));
    return {};
  }
  static attribute copy(std::string_view name, const attribute_view& a) {
    attribute out(std::string(name), a);
    if (a.tensor.present() && a.tensor.type != dtype::string)
      out.tensor =
          constant_tensor::copy_of(a.tensor.type, {a.tensor.dims.begin(), a.tensor.dims.end()},
                                   a.tensor.data, a.tensor.bytes);
    else
      out.tensor = {};
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
};

}  // namespace sod2::detail
