// What becomes of each node: computed with the sizes, folded now, a view, or run.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/core/checked.hpp>
#include <sod2/fuse/views.hpp>
#include <sod2/runtime/detail/tile_lowering.hpp>

namespace sod2::detail {

class role_assignment : public tile_lowering {
 public:
  using tile_lowering::tile_lowering;

 protected:
  status assign_roles(scope_id s) {
    for (value_id v : view_.inputs(s)) bind_sizes(v, scope_binds_[s.index]);
    for (node_id n : view_.order(s)) SOD2_TRY(assign_role(n));
    return {};
  }
  /// What a scope does before it breaks; the rest of it stays dead.
  void assign_first_roles(scope_id s) {
    for (node_id n : view_.order(s)) {
      if (n == impossible_[s.index].node || !view_.scopes(n).empty() || !assign_role(n)) return;
    }
  }
  status assign_control(node_id n) {
    const std::string_view op = info(n).name;
    if ((op != "If" || view_.scopes(n).size() != 2) && op != "Loop" && op != "Scan" &&
        op != "SequenceMap")
      return error(errc::unsupported, "running operator '" + std::string(op) + "' version " +
                                          std::to_string(facts_.node(n).op.version))
          .at_node(name(n));
    role(n) = node_role::opaque;
    const std::vector<std::uint8_t> before = bound_;
    const auto scopes = live_scopes(n);
    for (std::size_t k = 0; k < scopes.size(); ++k) {
      if (is_excluded(n, k) || !is_compiled(scopes[k])) continue;
      if (is_possible(scopes[k]))
        SOD2_TRY(assign_roles(scopes[k]));
      else
        assign_first_roles(scopes[k]);
      bound_ = before;
    }
    for (value_id v : view_.outputs(n))
      if (v != absent) {
        SOD2_TRY(check_runnable(n, v));
        bind_sizes(v, binds_[n.index]);
      }
    return {};
  }
  /// A tensor of known rank whose sizes somebody can tell, or a list of tensors.
  status check_runnable(node_id n, value_id v) {
    const symbolic_fact& f = facts_.fact(v);
    if (is_container(f.kind) && f.type != dtype::string) return {};
    if (!f.rank_known()) return error(errc::rank_unknown).at_node(name(n)).at_tensor(view_.name(v));
    for (std::size_t i = 0; i < f.dims.size(); ++i)
      if (!f.dims[i].is_known())
        return error(errc::unsupported, "running with a size that nothing tells")
            .at_node(name(n))
            .at_tensor(view_.name(v), static_cast<int>(i));
    if (!bytes_of_value(v).is_known())
      return error(errc::overflow).at_node(name(n)).at_tensor(view_.name(v));
    return {};
  }
  status assign_role(node_id n) {
    if (!view_.scopes(n).empty()) return assign_control(n);
    bool host = info(n).deterministic && !view_.outputs(n).empty();
    for (value_id v : view_.outputs(n)) {
      if (v == absent) continue;
      host = host && !holds_elements(v) && known_elements(v);
    }
    if (host) {
      role(n) = node_role::host;
      return {};
    }
    const bool handles = handles_elements(n);
    for (value_id v : view_.inputs(n))
      if (handles && v != absent && facts_.fact(v).type == dtype::string)
        return error(errc::unsupported, "running sequences and optionals of strings")
            .at_node(name(n))
            .at_tensor(view_.name(v));
    if (info(n).deterministic && !handles && foldable(n)) {
      SOD2_ASSIGN(const bool done, fold(n));
      if (done) return {};
    }
    for (value_id v : view_.outputs(n)) {
      if (v == absent) continue;
      SOD2_TRY(check_runnable(n, v));
      bind_sizes(v, binds_[n.index]);
    }
    for (value_id v : view_.inputs(n)) {
      if (v == absent) continue;
      const symbolic_fact& f = facts_.fact(v);
      if (f.kind == fact_kind::tensor && f.type == dtype::undefined)
        return error(errc::type_mismatch, "the element type is unknown")
            .at_node(name(n))
            .at_tensor(view_.name(v));
    }
    if (handles) {
      role(n) = node_role::opaque;
    } else if (is_view(view_, facts_, n)) {
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
      if (v != absent && (!constant(v).present() || constant(v).type == dtype::string))
        return false;
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
    const auto order = view_.order(s);
    if (is_possible(s)) {
      for (value_id v : view_.outputs(s)) need_value(v);
    } else {
      for (node_id n : order)
        if (role(n) != node_role::dead)
          for (value_id v : view_.outputs(n)) need_value(v);
    }
    for (std::size_t i = order.size(); i-- > 0;) {
      const node_id n = order[i];
      if (role(n) == node_role::dead) continue;  // folded
      bool used = false;
      for (value_id v : view_.outputs(n))
        used = used || (v != absent && needed_[v.index] != 0 && !constant(v).present());
      for (std::uint32_t symbol : binds_[n.index]) used = used || wanted_[symbol] != 0;
      if (!used) {
        role(n) = node_role::dead;
        continue;
      }
      if (role(n) == node_role::host) continue;
      const auto scopes = live_scopes(n);
      for (std::size_t k = 0; k < scopes.size(); ++k)
        if (!is_excluded(n, k) && is_compiled(scopes[k])) mark_needed(scopes[k]);
      const pointwise_row* row = role(n) == node_role::pointwise ? pointwise_of(n) : nullptr;
      for (std::size_t k = 0; k < view_.inputs(n).size(); ++k) {
        const value_id v = view_.inputs(n)[k];
        if (v == absent || (role(n) == node_role::view && k > 0 && binds_[n.index].empty()))
          continue;
        if (row != nullptr && k < 32 && (row->unread_inputs >> k & 1U) != 0) continue;
        need_value(v);
      }
      for (value_id v : view_.outputs(n)) want_sizes(v);
    }
  }
  void need_value(value_id v) {
    needed_[v.index] = 1;
    want_sizes(v);
  }
  /// Whoever tells the sizes and elements of v has to run, even if nobody reads its results.
  void want_sizes(value_id v) {
    if (!late_symbols_ || v == absent || holds_elements(v)) return;
    const auto want = [&](dim d) {
      if (d.is_known())
        context().for_each_symbol(context().resolve(d),
                                  [&](std::uint32_t symbol) { wanted_[symbol] = 1; });
    };
    for (dim d : facts_.dims(v)) want(d);
    for (dim d : facts_.fact(v).elements) want(d);
  }
};

}  // namespace sod2::detail
