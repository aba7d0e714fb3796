// Launches in their order to the flat region of the program: tensors, segments, sizes, layout.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/expr/print.hpp>
#include <sod2/memory/layout_planner.hpp>
#include <sod2/runtime/detail/placement.hpp>

namespace sod2::detail {

class emission : public placement {
 public:
  using placement::placement;

 protected:
  /// Longest text of a layout formula, in characters.
  static constexpr std::size_t longest_formula = 65536;

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
    t.name = view_.name(v);
    if (kind == storage_kind::container) {
      t.type = f.kind == fact_kind::sequence ? dtype::sequence : dtype::optional;
      t.kind = kind;
      t.storage = place;
      r.tensors.push_back(std::move(t));
      return static_cast<std::uint32_t>(r.tensors.size() - 1);
    }
    t.type = f.type;
    t.rank = static_cast<std::uint32_t>(f.dims.size());
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
  /// Elements as a run sees them, their characters behind them.
  static bool place_text(const constant_view& c, memory_block& block) {
    const auto count = static_cast<std::size_t>(c.count());
    const auto* const from = reinterpret_cast<const std::string*>(c.data);
    std::size_t bytes = count * sizeof(std::string_view) + 1;
    for (std::size_t i = 0; i < count; ++i) bytes += from[i].size();
    if (!block.reserve(bytes)) return false;
    auto* const to = reinterpret_cast<std::string_view*>(block.data());
    char* text = reinterpret_cast<char*>(to + count);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(text, from[i].data(), from[i].size());
      new (to + i) std::string_view(text, from[i].size());
      text += from[i].size();
    }
    return true;
  }
  status place_constants_and_host() {
    program_region& r = here();
    std::uint32_t offset = 0;
    std::vector<std::uint32_t> host_segments;
    for (storage& s : w_.storages) {
      if (s.kind == storage_kind::constant) {
        const constant_view c = constant(s.first);
        memory_block block;
        if (!(c.type == dtype::string ? place_text(c, block) : block.reserve(c.bytes + 1)))
          return error(errc::out_of_memory).at_tensor(view_.name(s.first));
        if (c.bytes > 0 && c.type != dtype::string) std::memcpy(block.data(), c.data, c.bytes);
        s.place = static_cast<std::uint32_t>(out_.constants.size());
        out_.constants.push_back(std::move(block));
        out_.summary.weights_bytes += static_cast<std::int64_t>(c.bytes);
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
      out_.summary.intermediate_bytes = print(context(), intermediate);
    SOD2_TRY(place_constants_and_host());
    for (program_segment& g : r.segments) {
      if (g.buffers > 0 && (!is_root() || &g != r.segments.data())) g.block = out_.blocks++;
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
    if (is_possible(w_.scope)) emit_outputs();
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
        program_tensor& t = out_.regions[c.region].tensors[c.tensor];
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
    out_.symbol_values = c.symbol_count();
    std::vector<std::uint32_t> position(c.symbol_count(), no_slot);
    for (std::uint32_t s = 0; s < c.symbol_count(); ++s) {
      if (c.origin_of_symbol(s) != symbol_origin::input) continue;
      position[s] = static_cast<std::uint32_t>(out_.symbols.size());
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
      out_.symbols.push_back(std::move(p));
    }
    for (value_id v : view_.inputs()) {
      program_input in;
      in.name = view_.name(v);
      in.type = facts_.fact(v).type;
      in.kind = facts_.fact(v).kind;
      if (holds_elements(v)) {
        in.container = container_for(v);
        out_.inputs.push_back(std::move(in));
        continue;
      }
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
              out_.symbols[in.element_symbols.back()].lo = 0;
            }
      in.is_read = needed_[v.index] != 0 || !in.element_symbols.empty();
      for (const program_input::axis& a : in.axes) in.is_read = in.is_read || a.symbol != no_slot;
      out_.inputs.push_back(std::move(in));
    }
  }
  status plan_layout(const placement_problem& problem, const std::vector<dim>& bytes,
                     program_segment& segment) {
    std::vector<std::vector<std::int64_t>> samples;
    std::vector<std::span<const std::int64_t>> spans;
    for (int which = 0; which < sample_count; ++which)
      samples.push_back(evaluate_all(bytes, sample(which)));
    for (const auto& one : samples) spans.push_back(one);
    symbolic_layout::requirement required;
    segment.layout = symbolic_layout_planner(problem, spans).stacked(context(), bytes, required);
    if (&segment != here().segments.data()) return {};
    std::string text = short_text(required.bytes);
    if (!text.empty()) w_.required = required.bytes;
    if (!is_root()) return {};
    out_.summary.required_bytes = std::move(text);
    out_.summary.lower_bound_bytes = short_text(required.lower_bound);
    out_.summary.layout_proved = required.proved();
    out_.summary.layout_ratio = segment.layout.worst_ratio();
    if (options_.describe_memory) describe_memory(problem, bytes, segment.layout);
    return {};
  }
  /// Empty when the expression is unknown or too long to be of use.
  std::string short_text(dim d) {
    std::string text;
    if (d.is_known()) text = print(context(), d);
    if (text.size() > longest_formula) text.clear();
    return text;
  }
  void describe_memory(const placement_problem& problem, const std::vector<dim>& bytes,
                       const symbolic_layout& layout) {
    std::vector<buffer_description>& all = here().described;
    for (std::size_t b = 0; b < bytes.size(); ++b)
      all.push_back({problem.buffers[b].lower, problem.buffers[b].upper, short_text(bytes[b]), {}});
    for (std::size_t f = 0; f < layout.formulas().size(); ++f) {
      const vector<dim> offsets = layout.symbolic_offsets(context(), f, bytes);
      for (std::size_t b = 0; b < all.size(); ++b) all[b].offsets.push_back(short_text(offsets[b]));
    }
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
    s.sequence = l.sequence;
    if (l.sequence != no_slot) r.sequences[l.sequence].takes = takes_input(at);
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
  /// Made here, given out once: then the output takes the list over.
  bool is_last_reader(value_id v, std::size_t output) {
    if (!holds_elements(v) || is_root() || !is_made_here(v)) return false;
    const auto outputs = view_.outputs(w_.scope);
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (k != output && outputs[k] == v) return false;
    return true;
  }
  /// Does nobody read input 0 of the launch at `at` once it has run?
  bool takes_input(std::uint32_t at) {
    const launch& l = w_.launches[w_.order[at]];
    if (l.sequence == no_slot || l.inputs.empty() || !holds_elements(l.inputs[0])) return false;
    const value_id v = l.inputs[0];
    if (view_.scope(v) != w_.scope || w_.last_use[storage_for(v)] != at) return false;
    for (value_id out : view_.outputs(w_.scope))
      if (out == v) return false;
    return true;
  }
  void emit_outputs() {
    program_region& r = here();
    for (std::size_t k = 0; k < view_.outputs(w_.scope).size(); ++k) {
      const value_id v = view_.outputs(w_.scope)[k];
      const std::uint32_t made = tensor_for(v);
      r.results.push_back(made);
      const program_tensor& t = r.tensors[made];
      if (t.kind != storage_kind::output || t.storage != k)
        r.copies.push_back({made, static_cast<std::uint32_t>(k), is_last_reader(v, k)});
      else
        r.segments[t.segment].outputs.push_back({made, static_cast<std::uint32_t>(k)});
      if (is_root())
        out_.outputs.push_back({std::string(view_.name(v)), facts_.fact(v).kind, made});
    }
  }
};

}  // namespace sod2::detail
