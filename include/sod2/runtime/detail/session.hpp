// The entry points of a session; what they call stands in the class.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <sod2/core/config.hpp>
#include <sod2/runtime/detail/control_flow.hpp>
#include <sod2/runtime/detail/rehearsal.hpp>
#include <sod2/runtime/detail/run_sizes.hpp>
#include <sod2/runtime/detail/sequence_steps.hpp>
#include <sod2/runtime/session.hpp>

namespace sod2 {

SOD2_HEAVY session::session(const program& p, session_options options)
    : program_(&p),
      options_(options),
      arena_(options.allocator),
      text_(options.allocator),
      elements_(options.allocator) {
  symbol_values_.assign(p.symbol_values(), 0);
  std::size_t scratch = 0, staged = 0;
  states_.resize(p.regions().size());
  for (std::size_t i = 0; i < p.regions().size(); ++i) {
    const program_region& r = p.regions()[i];
    region_state& st = states_[i];
    st.host = memory_block(options.allocator);
    st.sizes.assign(r.size_count, 0);
    st.offsets.assign(r.buffers, 0);
    st.bases.assign(r.segments.size(), nullptr);
    st.views.resize(r.tensors.size());
    st.results.resize(r.results.size());
    const auto measure = [&](const size_program& sizes) {
      if (sizes.register_count() > scratch) scratch = sizes.register_count();
      if (sizes.output_count() > staged) staged = sizes.output_count();
    };
    for (const program_segment& g : r.segments) measure(g.sizes);
    for (const program_binding& b : r.entry) measure(b.rest);
    for (const program_binder& k : r.binders)
      for (const program_binding& b : k.bindings) measure(b.rest);
    for (const program_step& step : r.steps)
      if (const std::size_t n = step.input_count + step.output_count + step.operand_count;
          n > operands_.size())
        operands_.resize(n);
  }
  scratch_.assign(scratch, 0);
  staged_.assign(staged, 0);
  for (std::size_t i = 0; i < p.block_count(); ++i) blocks_.emplace_back(options.allocator);
  block_data_.assign(p.block_count(), nullptr);
  loops_.resize(p.control_count());
  containers_.resize(p.containers().size());
  bound_values_.assign(p.symbols().size(), 0);
  wanted_values_.assign(p.symbols().size(), 0);
  outputs_.resize(p.outputs().size());
  for (std::size_t i = 0; i < p.outputs().size(); ++i) owned_.emplace_back(options.allocator);
  for (const program& variant : p.variants()) variants_.emplace_back(variant, options);
  for (const program_guard& g : p.guards())
    if (g.condition.register_count() > scratch_.size())
      scratch_.resize(g.condition.register_count());
}

SOD2_HEAVY status session::bind(std::span<const std::int64_t> values) {
  if (values.size() != program_->symbols().size())
    return error(errc::invalid_argument, "bind takes one value per symbol");
  bound_ = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const program_symbol& s = program_->symbols()[i];
    if (status e = check_symbol(s, values[i]); !e) return located(std::move(e).error(), i);
    symbol_values_[s.index] = values[i];
    bound_values_[i] = values[i];
  }
  SOD2_TRY(choose_variant(values));
  if (active_ > 0)
    SOD2_TRY(variants_[active_ - 1].bind(values));
  else
    SOD2_TRY(begin_root());
  bound_ = true;
  return {};
}

SOD2_HEAVY status session::bind_inputs(std::span<const tensor_view> inputs) {
  const auto declared = program_->inputs();
  if (inputs.size() != declared.size())
    return error(errc::input_missing, "the model has " + std::to_string(declared.size()) +
                                          " inputs, got " + std::to_string(inputs.size()));
  for (std::int64_t& v : wanted_values_) v = unset;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const program_input& in = declared[i];
    const tensor_view& t = inputs[i];
    if (is_container(in.kind)) {
      SOD2_TRY(check_container(in, t));
      continue;
    }
    if (t.type != in.type)
      return error(errc::input_type).at_tensor(in.name).between(name_of(in.type), name_of(t.type));
    if (!in.is_read) continue;
    if (t.rank != in.axes.size())
      return error(errc::input_shape, "rank differs")
          .at_tensor(in.name)
          .between(std::to_string(in.axes.size()), std::to_string(t.rank));
    for (std::size_t axis = 0; axis < in.axes.size(); ++axis) {
      const std::int64_t got = t.dims[axis];
      if (in.axes[axis].symbol == no_slot) {
        if (got != in.axes[axis].size)
          return error(errc::input_shape)
              .at_tensor(in.name, static_cast<int>(axis))
              .between(std::to_string(in.axes[axis].size), std::to_string(got));
        continue;
      }
      SOD2_TRY(want(in.axes[axis].symbol, got, in.name, static_cast<int>(axis)));
    }
    for (std::size_t k = 0; k < in.element_symbols.size(); ++k)
      SOD2_TRY(want(in.element_symbols[k], element(t, k), in.name, -1));
  }
  for (std::size_t s = 0; s < wanted_values_.size(); ++s)
    if (wanted_values_[s] == unset)  // bound at compile, or not used by any input
      wanted_values_[s] = program_->symbols()[s].lo;
  if (bound_ && wanted_values_ == bound_values_) return {};
  return bind(wanted_values_);
}

SOD2_HEAVY status session::run(std::span<const tensor_view> inputs,
                               std::span<const output_target> targets) {
  SOD2_TRY(bind_inputs(inputs));
  if (active_ > 0) return variants_[active_ - 1].run(inputs, targets);
  if (!targets.empty() && targets.size() != outputs_.size())
    return error(errc::invalid_argument, "run takes one target per output");
  text_.start_run();
  nodes_run_ = 0;
  groups_run_ = 0;
  open_containers(inputs);
  sink out;
  out.targets = targets;
  return execute(0, inputs, out);
}

}  // namespace sod2
