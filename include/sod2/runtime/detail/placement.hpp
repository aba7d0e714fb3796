// Where values live and in which order launches run.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <sod2/core/checked.hpp>
#include <sod2/expr/evaluate.hpp>
#include <sod2/runtime/detail/launch_lowering.hpp>
#include <sod2/schedule/liveness.hpp>
#include <sod2/schedule/order.hpp>

namespace sod2::detail {

class placement : public launch_lowering {
 public:
  using launch_lowering::launch_lowering;

 protected:
  // ---- storages ----

  std::uint32_t new_storage(storage_kind kind, value_id v) {
    w_.storages.push_back({kind, no_slot, v, no_slot});
    if (holds_elements(v)) {
      w_.storages.back().kind = storage_kind::container;
      w_.storages.back().place = container_for(v);
    }
    return static_cast<std::uint32_t>(w_.storages.size() - 1);
  }
  /// Every value that a launch touches belongs to a storage; views share that of their input.
  void assign_storages() {
    for (std::size_t i = 0; i < view_.inputs(w_.scope).size(); ++i) {
      const value_id v = view_.inputs(w_.scope)[i];
      w_.storage_of[v.index] = new_storage(storage_kind::input, v);
      if (!holds_elements(v)) w_.storages.back().place = static_cast<std::uint32_t>(i);
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
    if (!is_possible(w_.scope)) return;
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
    if (l.binder == no_slot || holds_elements(l.outputs[output])) return no_slot;
    const program_binder& b = here().binders[l.binder];
    if (b.how == program_binder::mode::values) return no_slot;
    if (b.how == program_binder::mode::counts)
      return b.block_first + static_cast<std::uint32_t>(output);
    for (dim d : facts_.dims(l.outputs[output])) {
      bool open = false;
      context().for_each_symbol(context().resolve(d), [&](std::uint32_t s) {
        for (std::uint32_t o : binds_[l.nodes[0].index]) open = open || o == s;
      });
      if (open)
        return (l.sequence != no_slot ? here().sequences[l.sequence].block_first
                                      : here().controls[l.control].block_first) +
               static_cast<std::uint32_t>(output);
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

  // ---- order ----

  bool is_made_here(value_id v) const {
    return view_.scope(v) == w_.scope && view_.producer(v) != no_index;
  }

  /// Values of all symbols at one point of the declared ranges: 0 low, 1 middle, 2 high, then
  /// scattered ones.
  static constexpr int sample_count = 24;
  std::vector<std::int64_t> sample(int which) {
    dim_context& c = context();
    std::vector<std::int64_t> values(c.symbol_count(), 1);
    for (std::uint32_t s = 0; s < c.symbol_count(); ++s) {
      interval r = c.range_of_symbol(s);
      if (r.lo < 1) r.lo = 1;
      // Undeclared ranges end at 2^31: sizes that models really meet are far below.
      if (r.hi > 4096) r.hi = r.lo < 512 ? 512 : r.lo;
      if (r.hi < r.lo) r.hi = r.lo;
      const double part = which < 3 ? 0.5 * which : scattered(which, s);
      const double between = static_cast<double>(r.lo) *
                             std::pow(static_cast<double>(r.hi) / static_cast<double>(r.lo), part);
      std::int64_t v = which == 0 ? r.lo : which == 2 ? r.hi : static_cast<std::int64_t>(between);
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
  /// In 0..1, different for each symbol.
  static double scattered(int which, std::uint32_t symbol) {
    const std::uint64_t h = hash_mix(hash_mix(0, static_cast<std::uint64_t>(which)), symbol);
    return static_cast<double>(h >> 40) / static_cast<double>(1U << 24);
  }
  std::vector<std::int64_t> evaluate_all(const std::vector<dim>& sizes,
                                         const std::vector<std::int64_t>& values) {
    size_program_builder builder(context());
    for (dim d : sizes) builder.add_output(d);
    const size_program p = std::move(builder).finish();
    std::vector<std::int64_t> scratch(p.register_count()), out(p.output_count());
    (void)p.evaluate(values, scratch, out);  // an overflowing sample only misleads heuristics
    // Nor may the sum overflow.
    const std::int64_t most = (INT64_MAX >> 2) / static_cast<std::int64_t>(out.size() + 1);
    for (std::int64_t& v : out) v = v < 0 ? 0 : v > most ? most : v;
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
          if (in != absent && same_shape(facts_, out, in)) try_pair(out, in);
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
                   kind != storage_kind::block &&
                   (kind != storage_kind::container || !is_made_here(w_.storages[i].first));
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
      out_.summary.order_exact = plan.exact;
      out_.summary.order_peak_bytes = plan.peak_bytes;
      out_.summary.order_lower_bound_bytes = plan.lower_bound_bytes;
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
};

}  // namespace sod2::detail
