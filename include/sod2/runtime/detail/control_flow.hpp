// Where the outputs of regions go, and what runs regions: branches, loops and scans. Methods of
// session.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sod2/core/status.hpp>
#include <sod2/core/tensor_view.hpp>
#include <sod2/runtime/program.hpp>
#include <sod2/runtime/session.hpp>

namespace sod2 {

// ---- outputs of regions ----

inline status session::provide(const sink& out, std::uint32_t k, const tensor_view& shape,
                               tensor_view& result) {
  result = shape;
  result.data = nullptr;
  // Sizes of the run are checked one by one; their product may still be too large.
  std::int64_t bytes = 0;
  if (!shape.checked_bytes(bytes)) return error(errc::overflow);
  if (out.step == nullptr) return provide_root(out, k, result);
  if (out.loop != nullptr) return provide_trip(out, k, result);
  if (program_->regions()[out.parent].controls[out.step->control].what ==
      program_control::kind::map)
    return provide_element(out, k, result);
  return provide_step(out, k, bytes, result.data);
}

inline status session::hand_on(const sink& out, const program_copy& copy,
                               const program_tensor& from) {
  detail::container& value = containers_[from.storage];
  if (out.step == nullptr) {
    SOD2_TRY(value.own(elements_, budget_left()));
    outputs_[copy.output] = value.view(program_->containers()[from.storage]);
    return {};
  }
  const program_region& r = program_->regions()[out.parent];
  const program_control& c = r.controls[out.step->control];
  std::uint32_t to = no_slot;
  if (out.loop != nullptr) {
    to = c.next[copy.output - out.loop->first];
  } else if (copy.output < out.step->output_count) {
    const std::uint32_t t = r.operands[out.step->output_first + copy.output];
    if (t != no_slot) to = r.tensors[t].storage;
  }
  if (to == no_slot) return {};
  if (copy.takes)
    containers_[to].take(elements_, value);
  else
    containers_[to].share(elements_, value);
  return {};
}

inline status session::provide_element(const sink& out, std::uint32_t k, tensor_view& result) {
  const program_control& c = program_->regions()[out.parent].controls[out.step->control];
  detail::container& to = containers_[c.next[k]];
  const tensor_view like = result;
  tensor_view made;
  SOD2_TRY(add_element(to, to.size(), like, made));
  result.data = made.data;
  return {};
}

inline status session::provide_root(const sink& out, std::uint32_t k, tensor_view& result) {
  const output_target target = out.targets.empty() ? output_target{} : out.targets[k];
  const auto bytes = static_cast<std::size_t>(bytes_of_view(result));
  const std::string& name = program_->outputs()[k].name;
  switch (target.how) {
    case output_target::protocol::session_owned:
      if (static_cast<std::int64_t>(bytes) > budget_left())
        return error(errc::budget, "output needs " + std::to_string(bytes) +
                                       " bytes, the budget is " +
                                       std::to_string(options_.memory_budget))
            .at_tensor(name);
      if (!owned_[k].reserve(bytes)) return error(errc::out_of_memory).at_tensor(name);
      result.data = owned_[k].data();
      break;
    case output_target::protocol::buffer:
      if (bytes > target.capacity)
        return error(errc::buffer_too_small, "output needs " + std::to_string(bytes) +
                                                 " bytes, the buffer has " +
                                                 std::to_string(target.capacity))
            .at_tensor(name);
      result.data = target.data;
      break;
    case output_target::protocol::callback:
      result.data =
          target.allocate(target.context, k, result.dims, result.rank, result.type, bytes);
      if (result.data == nullptr && bytes > 0) return error(errc::out_of_memory).at_tensor(name);
      break;
  }
  outputs_[k] = result;
  return {};
}

inline status session::provide_step(const sink& out, std::uint32_t k, std::int64_t bytes,
                                    void*& data) {
  const program_region& r = program_->regions()[out.parent];
  const program_control& c = r.controls[out.step->control];
  const std::uint32_t t =
      k < out.step->output_count ? r.operands[out.step->output_first + k] : no_slot;
  if (t == no_slot || r.tensors[t].kind == storage_kind::block) {
    SOD2_TRY(grow(c.block_first + k, bytes));
    data = block_data_[c.block_first + k];
    return {};
  }
  const tensor_view& v = states_[out.parent].views[t];
  if (bytes_of_view(v) != bytes)
    return error(errc::dim_mismatch, "a result has other bytes than its node says")
        .at_node(out.step->name)
        .at_tensor(r.tensors[t].name)
        .between(std::to_string(bytes_of_view(v)), std::to_string(bytes));
  data = v.data;
  return {};
}

inline status session::provide_trip(const sink& out, std::uint32_t k, tensor_view& result) {
  const program_region& r = program_->regions()[out.parent];
  const program_control& c = r.controls[out.step->control];
  loop_state& loop = *out.loop;
  const std::int64_t bytes = bytes_of_view(result);
  if (k < loop.first) {
    result.data = &loop.go_on;
    return {};
  }
  k -= loop.first;
  const auto made = c.carried + static_cast<std::uint32_t>(loop.stacks.size());
  if (k < c.carried) {
    // Two blocks take turns: a trip reads one and writes the other.
    const std::uint32_t b =
        c.block_first + made + 2 * k + static_cast<std::uint32_t>(loop.trip & 1);
    SOD2_TRY(grow(b, bytes));
    result.data = block_data_[b];
    return {};
  }
  const std::uint32_t which = k - c.carried;
  loop_state::stack& stack = loop.stacks[which];
  if (loop.trip == 0) {
    stack.dims.assign(result.dims, result.dims + result.rank);
    stack.bytes = bytes;
    stack.axis = which < c.output_axes.size() ? c.output_axes[which] : 0;
    if (stack.axis < 0) stack.axis += result.rank + 1;
    if (stack.axis < 0 || stack.axis > static_cast<std::int64_t>(result.rank))
      return error(errc::axis_range).at_node(out.step->name);
  }
  for (std::uint32_t axis = 0; axis < result.rank; ++axis)
    if (stack.dims[axis] != result.dims[axis])
      return error(errc::dim_mismatch, "a scan output changes its shape from trip to trip")
          .at_node(out.step->name)
          .between(std::to_string(stack.dims[axis]), std::to_string(result.dims[axis]));
  const std::uint32_t t =
      k < out.step->output_count ? r.operands[out.step->output_first + k] : no_slot;
  if (t != no_slot && r.tensors[t].kind != storage_kind::block) {
    const tensor_view& whole = states_[out.parent].views[t];
    if ((loop.batch * loop.length + loop.trip + 1) * bytes > bytes_of_view(whole))
      return error(errc::dim_mismatch, "more slices than the output has room for")
          .at_node(out.step->name)
          .at_tensor(r.tensors[t].name);
    stack.base = static_cast<std::byte*>(whole.data) + loop.batch * loop.length * bytes;
  } else {
    const std::uint32_t b = c.block_first + k;
    const std::int64_t slices = c.batched         ? loop.batches * loop.length
                                : loop.trips >= 0 ? loop.trips
                                                  : loop.trip + 1;
    SOD2_TRY(grow(b, slices * bytes, loop.batch + loop.trip > 0));
    stack.base = block_data_[b] + loop.batch * loop.length * bytes;
  }
  if (stack.axis == 0) {
    result.data = stack.base + slice_at(c.output_backwards, which, loop) * bytes;
    return {};
  }
  const std::uint32_t stage = c.block_first + made + 2 * c.carried + which;
  SOD2_TRY(grow(stage, bytes));
  result.data = block_data_[stage];
  return {};
}

inline std::int64_t session::slice_at(const std::vector<std::uint8_t>& backwards, std::size_t k,
                                      const loop_state& loop) {
  return k < backwards.size() && backwards[k] != 0 ? loop.trips - 1 - loop.trip : loop.trip;
}

inline void session::copy_parts(std::byte* whole, std::byte* part, std::int64_t outer,
                                std::int64_t inner, std::int64_t extent, std::int64_t first,
                                std::int64_t count, bool out_of) {
  const std::int64_t bytes = count * inner;
  if (bytes == 0) return;
  for (std::int64_t o = 0; o < outer; ++o) {
    std::byte* const w = whole + (o * extent + first) * inner;
    std::byte* const p = part + o * bytes;
    std::memcpy(out_of ? p : w, out_of ? w : p, static_cast<std::size_t>(bytes));
  }
}
inline void session::copy_part(const tensor_view& whole, std::byte* part, std::size_t axis,
                               std::int64_t first, std::int64_t count, bool out_of) {
  std::int64_t outer = 1, inner = static_cast<std::int64_t>(bytes_of(whole.type));
  for (std::size_t i = 0; i < whole.rank; ++i)
    if (i != axis) (i < axis ? outer : inner) *= whole.dims[i];
  copy_parts(static_cast<std::byte*>(whole.data), part, outer, inner, whole.dims[axis], first,
             count, out_of);
}
inline void session::copy_slice(std::byte* whole, std::byte* slice,
                                std::span<const std::int64_t> dims, std::int64_t axis,
                                std::int64_t extent, std::int64_t at, dtype type, bool gather) {
  std::int64_t outer = 1, inner = static_cast<std::int64_t>(bytes_of(type));
  for (std::size_t i = 0; i < dims.size(); ++i)
    (static_cast<std::int64_t>(i) < axis ? outer : inner) *= dims[i];
  copy_parts(whole, slice, outer, inner, extent, at, 1, gather);
}

// ---- control flow ----

inline status session::run_control(std::uint32_t region, const program_step& step) {
  const program_region& r = program_->regions()[region];
  const program_control& c = r.controls[step.control];
  if (step.workspace != no_slot) {
    const region_state& st = states_[region];
    const std::uint32_t g = r.segment_of_buffer[step.workspace];
    const program_segment& segment = r.segments[g];
    for (std::uint32_t inner : c.regions) {
      if (inner == no_slot) continue;
      states_[inner].lent = st.bases[g] + st.offsets[step.workspace];
      states_[inner].lent_bytes =
          st.sizes[segment.buffer_bytes + (step.workspace - segment.buffer_first)];
    }
  }
  switch (c.what) {
    case program_control::kind::branch: return run_branch(region, step, c);
    case program_control::kind::map: return run_map(region, step, c);
    default: return run_trips(region, step, c);
  }
}

inline status session::run_branch(std::uint32_t region, const program_step& step,
                                  const program_control& c) {
  const program_region& r = program_->regions()[region];
  std::size_t arm = c.regions[0] == no_slot ? 1 : 0;
  if (c.regions[0] != no_slot && c.regions[1] != no_slot) {
    const tensor_view condition = operand(r, states_[region], step.input_first);
    if (condition.count() != 1)
      return error(errc::value_range, "a condition has one element").at_node(step.name);
    arm = *condition.as<std::uint8_t>() != 0 ? 0 : 1;
  }
  sink out;
  out.parent = region;
  out.step = &step;
  // The selected arm comes last and overwrites what the other one left.
  if (program_->all_branches() && c.regions[1 - arm] != no_slot)
    (void)execute(c.regions[1 - arm], {}, out);
  SOD2_TRY(execute(c.regions[arm], {}, out));
  const auto& results = states_[c.regions[arm]].results;
  if (shapes_.size() < results.size()) shapes_.resize(results.size());
  for (std::size_t k = 0; k < results.size(); ++k) {
    shapes_[k].clear();
    for (std::int64_t d : results[k].shape()) shapes_[k].push_back(d);
  }
  return {};
}

inline status session::run_trips(std::uint32_t region, const program_step& step,
                                 const program_control& c) {
  const program_region& r = program_->regions()[region];
  region_state& st = states_[region];
  const program_region& body = program_->regions()[c.regions[0]];
  loop_state& loop = loops_[c.index];
  const bool scan = c.what == program_control::kind::scan;
  loop.first = scan ? 0 : 1;
  const std::uint32_t initial = scan ? 0 : 2;
  const std::size_t slices = c.input_axes.size();
  // An impossible body has no results; it only says why when it is entered.
  const std::size_t made =
      body.impossible.empty() ? body.results.size() - loop.first : step.output_count;
  loop.stacks.resize(made - c.carried);
  loop.inputs.resize(initial + c.carried + slices);
  loop.dims.resize(c.carried + slices);
  sink out;
  out.parent = region;
  out.step = &step;
  out.loop = &loop;
  loop.batch = loop.length = 0;
  loop.batches = 1;
  if (c.batched) {
    const tensor_view whole = operand(r, st, step.input_first + c.carried);
    loop.batches = whole.dims[0];
    loop.length = whole.dims[1];
  }
  for (; loop.batch < loop.batches; ++loop.batch) {
    for (std::uint32_t k = 0; k < c.carried; ++k) {
      tensor_view v = scanned(r, st, step, c, loop, initial + k);
      if (c.formal[k] != no_slot)
        containers_[c.formal[k]].share(elements_, container_of(r, step.input_first + initial + k));
      loop.dims[k].assign(v.dims, v.dims + v.rank);
      v.dims = loop.dims[k].data();
      loop.inputs[initial + k] = v;
    }
    loop.trips = -1;
    loop.enter = 1;
    std::int64_t limit = INT64_MAX;
    if (scan) {
      SOD2_TRY(open_slices(r, st, step, c, loop));
      SOD2_TRY(shorten(r, st, step, c, loop));
      limit = loop.trips;
    } else {
      if (const tensor_view m = operand(r, st, step.input_first); m.present())
        limit = *m.as<std::int64_t>();
      if (const tensor_view go = operand(r, st, step.input_first + 1); go.present())
        loop.enter = *go.as<std::uint8_t>();
      loop.inputs[0] = {&loop.trip, nullptr, 0, dtype::i64};
      loop.inputs[1] = {&loop.enter, nullptr, 0, dtype::boolean};
    }
    loop.go_on = loop.enter;
    for (loop.trip = 0; loop.trip < limit && loop.go_on != 0; ++loop.trip) {
      for (std::size_t k = 0; k < slices; ++k) SOD2_TRY(read_slice(r, st, step, c, loop, k));
      loop.enter = loop.go_on;
      SOD2_TRY(execute(c.regions[0], loop.inputs, out));
      const auto& results = states_[c.regions[0]].results;
      for (std::uint32_t k = 0; k < c.carried; ++k) {
        if (c.formal[k] != no_slot) {
          containers_[c.formal[k]].swap(containers_[c.next[k]]);
          continue;
        }
        tensor_view v = results[loop.first + k];
        loop.dims[k].assign(v.dims, v.dims + v.rank);
        v.dims = loop.dims[k].data();
        loop.inputs[initial + k] = v;
      }
      for (std::size_t k = 0; k < loop.stacks.size(); ++k) {
        const loop_state::stack& s = loop.stacks[k];
        if (s.axis == 0) continue;
        const tensor_view& v = results[loop.first + c.carried + k];
        copy_slice(s.base, static_cast<std::byte*>(v.data), s.dims, s.axis, loop.trips,
                   slice_at(c.output_backwards, k, loop), v.type, false);
      }
    }
    if (c.batched) SOD2_TRY(close_batch(region, step, c, loop));
  }
  return close_trips(region, step, c, loop, initial, made);
}

inline status session::run_map(std::uint32_t region, const program_step& step,
                               const program_control& c) {
  const program_region& r = program_->regions()[region];
  const region_state& st = states_[region];
  const auto list = [&](std::uint32_t k) -> const detail::container* {
    const std::uint32_t t = r.operands[step.input_first + k];
    return t != no_slot && r.tensors[t].kind == storage_kind::container
               ? &containers_[r.tensors[t].storage]
               : nullptr;
  };
  std::vector<tensor_view>& inputs = loops_[c.index].inputs;
  inputs.resize(step.input_count);
  const detail::container* const first = list(0);
  for (std::uint32_t k = 0; k < step.input_count; ++k) {
    inputs[k] = operand(r, st, step.input_first + k);
    const detail::container* const other = list(k);
    if (other != nullptr && other->size() != first->size())
      return error(errc::dim_mismatch, "mapped sequences differ in length")
          .at_node(step.name)
          .between(std::to_string(first->size()), std::to_string(other->size()));
  }
  for (std::uint32_t to : c.next) containers_[to].start(elements_, true);
  sink out;
  out.parent = region;
  out.step = &step;
  for (std::size_t i = 0; i < first->size(); ++i) {
    for (std::uint32_t k = 0; k < step.input_count; ++k)
      if (const detail::container* const from = list(k)) inputs[k] = from->item(i);
    SOD2_TRY(execute(c.regions[0], inputs, out));
  }
  if (shapes_.size() < step.output_count) shapes_.resize(step.output_count);
  for (std::uint32_t k = 0; k < step.output_count; ++k) shapes_[k].clear();
  return {};
}

inline tensor_view session::scanned(const program_region& r, const region_state& st,
                                    const program_step& step, const program_control& c,
                                    const loop_state& loop, std::size_t k) const {
  tensor_view v = operand(r, st, step.input_first + static_cast<std::uint32_t>(k));
  if (!c.batched) return v;
  ++v.dims;
  --v.rank;
  if (v.data != nullptr) v.data = static_cast<std::byte*>(v.data) + loop.batch * bytes_of_view(v);
  return v;
}

inline status session::shorten(const program_region& r, const region_state& st,
                               const program_step& step, const program_control& c,
                               loop_state& loop) const {
  if (!c.batched || step.input_count == c.carried + c.input_axes.size()) return {};
  const tensor_view lengths = operand(r, st, step.input_first + step.input_count - 1);
  if (lengths.count() != loop.batches)
    return error(errc::dim_mismatch, "there is one length per sample")
        .at_node(step.name)
        .between(std::to_string(loop.batches), std::to_string(lengths.count()));
  const std::int64_t n = element(lengths, static_cast<std::size_t>(loop.batch));
  if (n < 1 || n > loop.length)
    return error(errc::value_range, "sample " + std::to_string(loop.batch) + " has " +
                                        std::to_string(n) + " of 1.." +
                                        std::to_string(loop.length) + " slices")
        .at_node(step.name);
  loop.trips = n;
  return {};
}

inline status session::close_batch(std::uint32_t region, const program_step& step,
                                   const program_control& c, loop_state& loop) {
  sink out;
  out.parent = region;
  out.step = &step;
  for (std::uint32_t k = 0; k < c.carried; ++k) {
    const std::int64_t bytes = bytes_of_view(loop.inputs[k]);
    void* data = nullptr;
    SOD2_TRY(provide_step(out, k, loop.batches * bytes, data));
    copy_bytes(static_cast<std::byte*>(data) + loop.batch * bytes, loop.inputs[k]);
  }
  // A shorter sample: what follows its last slice is zero.
  for (const loop_state::stack& s : loop.stacks)
    if (const std::int64_t left = loop.length - loop.trip; loop.trip > 0 && left * s.bytes > 0)
      std::memset(s.base + loop.trip * s.bytes, 0, static_cast<std::size_t>(left * s.bytes));
  return {};
}

inline status session::open_slices(const program_region& r, const region_state& st,
                                   const program_step& step, const program_control& c,
                                   loop_state& loop) {
  for (std::size_t k = 0; k < c.input_axes.size(); ++k) {
    const tensor_view whole = scanned(r, st, step, c, loop, c.carried + k);
    std::int64_t axis = c.input_axes[k];
    if (axis < 0) axis += whole.rank;
    if (axis < 0 || axis >= static_cast<std::int64_t>(whole.rank))
      return error(errc::axis_range).at_node(step.name);
    const std::int64_t n = whole.dims[axis];
    if (loop.trips >= 0 && loop.trips != n)
      return error(errc::dim_mismatch, "scan inputs differ in length")
          .at_node(step.name)
          .between(std::to_string(loop.trips), std::to_string(n));
    loop.trips = n;
    auto& dims = loop.dims[c.carried + k];
    dims.clear();
    for (std::uint32_t i = 0; i < whole.rank; ++i)
      if (static_cast<std::int64_t>(i) != axis) dims.push_back(whole.dims[i]);
    loop.inputs[c.carried + k] = {nullptr, dims.data(), whole.rank - 1, whole.type};
  }
  return {};
}

inline status session::read_slice(const program_region& r, const region_state& st,
                                  const program_step& step, const program_control& c,
                                  loop_state& loop, std::size_t k) {
  const tensor_view whole = scanned(r, st, step, c, loop, c.carried + k);
  tensor_view& slice = loop.inputs[c.carried + k];
  std::int64_t axis = c.input_axes[k];
  if (axis < 0) axis += whole.rank;
  const std::int64_t at = slice_at(c.input_backwards, k, loop);
  const std::int64_t bytes = bytes_of_view(slice);
  auto* const data = static_cast<std::byte*>(whole.data);
  if (axis == 0) {
    slice.data = data == nullptr ? nullptr : data + at * bytes;
    return {};
  }
  const std::uint32_t b =
      c.block_first + c.carried + static_cast<std::uint32_t>(loop.stacks.size()) + 2 * c.carried +
      static_cast<std::uint32_t>(loop.stacks.size()) + static_cast<std::uint32_t>(k);
  SOD2_TRY(grow(b, bytes));
  slice.data = block_data_[b];
  copy_slice(data, block_data_[b], slice.shape(), axis, loop.trips, at, whole.type, true);
  return {};
}

inline status session::close_trips(std::uint32_t region, const program_step& step,
                                   const program_control& c, loop_state& loop,
                                   std::uint32_t initial, std::size_t made) {
  const program_region& r = program_->regions()[region];
  const program_region& body = program_->regions()[c.regions[0]];
  sink out;
  out.parent = region;
  out.step = &step;
  if (shapes_.size() < made) shapes_.resize(made);
  for (std::uint32_t k = 0; k < made; ++k) {
    const std::uint32_t t = k < step.output_count ? r.operands[step.output_first + k] : no_slot;
    const bool own = t == no_slot || r.tensors[t].kind == storage_kind::block;
    shapes_[k].clear();
    if (k < c.carried && c.formal[k] != no_slot) {
      if (t != no_slot)
        containers_[r.tensors[t].storage].share(elements_, containers_[c.formal[k]]);
      continue;
    }
    if (c.batched) shapes_[k].push_back(loop.batches);
    if (k < c.carried) {
      const tensor_view& last = loop.inputs[initial + k];
      for (std::int64_t d : last.shape()) shapes_[k].push_back(d);
      if (c.batched) continue;
      if (own && loop.trip > 0) {  // it stays where the last trip wrote it
        block_data_[c.block_first + k] = static_cast<std::byte*>(last.data);
        continue;
      }
      void* data = nullptr;
      SOD2_TRY(provide_step(out, k, bytes_of_view(last), data));
      copy_bytes(data, last);
      continue;
    }
    const loop_state::stack& s = loop.stacks[k - c.carried];
    if (loop.trip > 0) {
      for (std::int64_t d : s.dims) shapes_[k].push_back(d);
      shapes_[k].insert(static_cast<std::size_t>(s.axis) + (c.batched ? 1 : 0),
                        c.batched ? loop.length : loop.trip);
      continue;
    }
    if (own) SOD2_TRY(grow(c.block_first + k, 0));
    const std::uint32_t rank =
        body.impossible.empty() ? body.tensors[body.results[loop.first + k]].rank + 1 : 1;
    std::int64_t axis = k - c.carried < c.output_axes.size() ? c.output_axes[k - c.carried] : 0;
    if (axis < 0) axis += rank;
    for (std::uint32_t i = 0; i < rank; ++i)
      shapes_[k].push_back(static_cast<std::int64_t>(i) == axis ? 0 : -1);
  }
  return {};
}

}  // namespace sod2
