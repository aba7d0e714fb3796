// What the stages of compile share: the graph and what is known of it, constants, and the scope at
// hand. The stages are classes in a row, each over the one before:
//
//   compile_state -> tile_lowering -> role_assignment -> launch_lowering -> placement -> emission
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/core/group_kind.hpp>
#include <sod2/fuse/plan.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/kernel/table.hpp>
#include <sod2/op/registry.hpp>
#include <sod2/rdp/analysis.hpp>
#include <sod2/rdp/scenario.hpp>
#include <sod2/runtime/buffer.hpp>
#include <sod2/runtime/options.hpp>
#include <sod2/runtime/program.hpp>

namespace sod2::detail {

class compile_state {
 public:
  compile_state(const graph_view& view, const registry& ops, const kernel_table& kernels,
                const compile_options& options)
      : view_(view), ops_(ops), kernels_(kernels), options_(options) {}
  compile_state(const compile_state&) = delete;
  compile_state& operator=(const compile_state&) = delete;
  virtual ~compile_state() = default;

 protected:
  struct storage {
    storage_kind kind = storage_kind::arena;
    std::uint32_t place = no_slot;   // input, output, constant; arena buffer after `share_in_place`
    value_id first{};                // the value that gives the size
    std::uint32_t merged = no_slot;  // arena: the storage whose buffer this one takes over
  };

  /// A launch while it is being built.
  struct launch {
    std::uint32_t control = no_slot;   // among the region's
    std::uint32_t sequence = no_slot;  // among the region's
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
  struct kept_constant {
    memory_block bytes;
    std::vector<std::int64_t> dims;
  };
  struct capture {
    std::uint32_t region = 0, tensor = 0;
    value_id value{};
  };

  program_region& here() { return out_.regions[w_.region]; }
  bool is_root() const { return w_.scope == graph_view::root(); }
  dim_context& context() { return facts_.context(); }
  node_role& role(node_id n) { return roles_[n.index]; }
  std::string_view name(node_id n) const { return view_.name(n); }
  const op_info& info(node_id n) { return *facts_.node(n).op.row->info; }

  // ---- constants and operands ----

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
    if (bytes_of(f.type) == 0) return false;  // two to a byte: only kernels pack
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
    if (!late_symbols_ || holds_elements(v)) return;
    for (dim d : facts_.dims(v))
      if (d.is_known())
        context().for_each_symbol(context().resolve(d), [&](std::uint32_t s) {
          if (bound_[s] != 0) return;
          bound_[s] = 1;
          list.push_back(s);
        });
  }
  /// A sequence or optional: a list in the session, whose elements say their own sizes.
  bool holds_elements(value_id v) { return v != absent && is_container(facts_.fact(v).kind); }
  bool handles_elements(node_id n) {
    for (value_id v : view_.inputs(n))
      if (holds_elements(v)) return true;
    for (value_id v : view_.outputs(n))
      if (holds_elements(v)) return true;
    return false;
  }
  /// Number of the value's list, the same in every region that reads it.
  std::uint32_t container_for(value_id v) {
    std::uint32_t& at = container_of_[v.index];
    if (at == no_slot) at = new_container(facts_.fact(v).kind);
    return at;
  }
  std::uint32_t new_container(fact_kind kind) {
    out_.containers.push_back(kind);
    return static_cast<std::uint32_t>(out_.containers.size() - 1);
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
  /// Null where the node lowers to tile instructions.
  const kernel_row* kernel_of(node_id n) {
    if (pointwise_of(n) != nullptr) return nullptr;
    return kernels_.find(info(n).domain, info(n).name, facts_.node(n).op.version);
  }
  const pointwise_row* pointwise_of(node_id n) {
    const pointwise_row* row =
        kernels_.find_pointwise(info(n).domain, info(n).name, facts_.node(n).op.version);
    if (row == nullptr || row->applies == nullptr) return row;
    node_operands described;
    describe(n, described);
    return row->applies(described.args) ? row : nullptr;
  }
  /// The arms of a branch that may be taken; the body of a loop.
  std::vector<scope_id> live_scopes(node_id n) {
    const auto scopes = view_.scopes(n);
    std::vector<scope_id> live(scopes.begin(), scopes.end());
    if (info(n).name != "If" || scopes.size() != 2) return live;
    // `then` first, whatever the order of the attributes.
    if (view_.own_name(scopes[0]).starts_with("else")) std::swap(live[0], live[1]);
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
  bool is_possible(scope_id s) const { return impossible_[s.index].text.empty(); }
  /// A scope that cannot run is compiled up to where it breaks, if something runs it nevertheless.
  bool is_compiled(scope_id s) const { return is_possible(s) || options_.all_branches; }
  bool is_host(value_id v) {
    return view_.producer(v) != no_index && role(node_id{view_.producer(v)}) == node_role::host;
  }
  /// Bytes of v as an expression.
  dim bytes_of_value(value_id v) {
    dim n = context().one();
    for (dim d : facts_.dims(v)) n = context().mul(n, d);
    const unsigned bits = bits_of(facts_.fact(v).type);
    return bits % 8 == 0 ? context().mul(n, bits / 8) : context().ceildiv(n, 2);
  }

  const graph_view& view_;
  const registry& ops_;
  const kernel_table& kernels_;
  const compile_options& options_;
  analysis facts_;
  program_data out_;
  std::vector<node_role> roles_;
  std::vector<constant_view> constant_;
  std::vector<std::uint8_t> constant_state_;  // 1: looked up
  std::vector<kept_constant> kept_;
  std::vector<std::uint8_t> needed_;
  std::vector<std::uint8_t> wanted_;  // per symbol of the run: some needed size or element holds it
  std::vector<std::uint32_t> container_of_;
  std::vector<capture> captured_;    // tensors of regions whose maker has not been emitted
  bool late_symbols_ = false;        // some size is known only while running
  std::vector<std::uint8_t> bound_;  // per symbol, while roles are assigned
  std::vector<std::vector<std::uint32_t>> binds_;        // per node: symbols that it makes known
  std::vector<std::vector<std::uint32_t>> scope_binds_;  // per scope: those of its inputs
  std::vector<impossible_scope> impossible_;             // per scope: why it cannot run, if so
  dim required_{};  // bytes of the first segment of the scope compiled last
  scope_work w_;
};

}  // namespace sod2::detail
