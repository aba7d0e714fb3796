// Upper bounds: at bind, the root is walked as a run would walk it, with every size of the run at
// its bound. What that needs is part of the arena. Methods of session.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sod2/core/checked.hpp>
#include <sod2/core/status.hpp>
#include <sod2/runtime/program.hpp>
#include <sod2/runtime/session.hpp>

namespace sod2 {

inline status session::begin_root() {
  reserved_.clear();
  foreseen_.clear();
  reserved_bytes_ = 0;
  SOD2_TRY(begin_segment(0, 0));
  if (!program_->upper_bounds() || program_->root().segments.size() == 1) return {};
  rehearse();
  const std::int64_t own = arena_bytes_;
  for (reservation& r : reserved_) {
    r.offset = own + reserved_bytes_;
    std::int64_t end = 0;
    if (!checked_add(r.offset, r.bytes, end) || end > INT64_MAX / 2)
      return error(errc::overflow, "memory for the upper bounds does not fit into 64 bits");
    reserved_bytes_ += align_up(r.bytes, static_cast<std::int64_t>(tensor_alignment));
  }
  return begin_segment(0, 0);
}

inline void session::rehearse() {
  const program_region& r = program_->root();
  const region_state& st = states_[0];
  reserved_.assign(program_->block_count(), {});
  foreseen_.resize(r.steps.size());
  rehearsing_ = true;
  std::size_t segment = 0;
  const auto pass = [&](std::size_t s) -> status {
    const program_step& step = r.steps[s];
    const program_binder& binder = r.binders[step.binder];
    if (binder.how == program_binder::mode::control) {
      for (const program_binding& b : binder.bindings) {
        if (b.hi >= default_symbol_max) return error(errc::unsupported, "no bound");
        symbol_values_[b.symbol] = b.hi;
      }
      return begin_segment(0, ++segment);
    }
    SOD2_TRY(resolve(r, st, step, binder));
    if (binder.how == program_binder::mode::counts) {
      counts_.reserve(binder.outputs);
      bool settled = true;
      for (std::uint32_t k = step.input_first; k < step.input_first + step.input_count; ++k)
        settled = settled && (r.operands[k] == no_slot || r.tensors[r.operands[k]].segment == 0);
      for (std::uint32_t k = 0; k < step.output_count; ++k) {
        const std::uint32_t t = r.operands[step.output_first + k];
        if (t == no_slot) continue;
        const tensor_view most{nullptr, shapes_[k].data(),
                               static_cast<std::uint32_t>(shapes_[k].size()), r.tensors[t].type};
        SOD2_TRY(grow(binder.block_first + k, bytes_of_view(most)));
      }
      if (settled) {
        foreseen_[s].known = true;
        foreseen_[s].shapes.assign(shapes_.begin(),
                                   shapes_.begin() + static_cast<std::ptrdiff_t>(binder.outputs));
        foreseen_[s].open_axes = open_axes_;
      }
    }
    for (const program_binding& b : binder.bindings)
      SOD2_TRY(bind_symbol(b, shapes_[b.operand].view()));
    return begin_segment(0, ++segment);
  };
  // From the first size without a bound on, memory grows when it is needed.
  for (std::size_t s = 0; s < r.steps.size(); ++s)
    if (r.steps[s].binder != no_slot && !pass(s)) break;
  rehearsing_ = false;
}

inline bool session::recall(std::size_t step) {
  if (step >= foreseen_.size() || !foreseen_[step].known) return false;
  const foreseen& f = foreseen_[step];
  for (std::size_t k = 0; k < f.shapes.size(); ++k) shapes_[k] = f.shapes[k];
  open_axes_ = f.open_axes;
  return true;
}

}  // namespace sod2
