// The executor of tile programs: whole index spaces, and sub-rectangles for epilogues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <sod2/kernel/simd/dispatch.hpp>
#include <sod2/kernel/std/tile_functions.hpp>
#include <sod2/kernel/tile.hpp>

namespace sod2::kernel_detail {

/// Rows shorter than this are gathered into registers, several rows to a tile.
inline constexpr std::int64_t tile_short_row = 96;

/// A program bound to buffers and collapsed dims. Lives on the stack of the caller.
struct tile_run {
  struct operand {
    const std::byte* data = nullptr;
    std::int64_t stride[tile_max_rank] = {};  // elements, over the collapsed dims
    std::int64_t size = 0;                    // bytes of an element
    bool contiguous = false;
    bool scalar = false;
  };
  const tile_program* program = nullptr;
  std::int64_t count = 0;  // elements of the index space
  std::int64_t tile = 0;
  int rank = 0;
  std::int64_t dims[tile_max_rank] = {};
  operand operands[tile_max_inputs];
  std::byte* outputs[tile_max_outputs] = {};
  std::int64_t output_size[tile_max_outputs] = {};
  tile_function function[tile_max_code] = {};
  bool takes_scalars[tile_max_code] = {};
};

/// Binds operands to a program over the index space `dims`. Errors: `broadcast` when an operand
/// does not fit, `unsupported` when an instruction has no code for its type.
inline errc tile_bind(tile_run& run, const simd_table& simd, const tile_program& program,
                      std::span<const tensor_view> inputs, std::span<const std::int64_t> dims) {
  if (dims.size() > tile_max_rank || inputs.size() != program.inputs.size() ||
      program.code.size() > tile_max_code)
    return errc::unsupported;
  run.program = &program;
  const int rank = static_cast<int>(dims.size());
  run.count = 1;
  for (int d = 0; d < rank; ++d) run.count *= dims[static_cast<std::size_t>(d)];
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const tensor_view& t = inputs[i];
    tile_run::operand& o = run.operands[i];
    o.data = static_cast<const std::byte*>(t.data);
    o.size = static_cast<std::int64_t>(bytes_of(t.type));
    if (t.type != program.inputs[i].type) return errc::type_mismatch;
    for (int d = 0; d < rank; ++d) o.stride[d] = 0;
    const int own = static_cast<int>(t.rank);
    const std::int64_t elements = t.count();
    const int first = program.inputs[i].first_axis;
    // Where the operand's axis 0 stands; leading axes of size 1 may hang over.
    const int shift = first >= 0 && elements != 1 ? first : rank - own;
    std::int64_t stride = 1;
    for (int a = own - 1; a >= 0; --a) {
      const int d = a + shift;
      const std::int64_t extent = t.dims[a];
      if (d < 0 || d >= rank) {
        if (extent != 1) return errc::broadcast;
      } else if (extent != 1) {
        if (extent != dims[static_cast<std::size_t>(d)]) return errc::broadcast;
        o.stride[d] = stride;
      }
      stride *= extent;
    }
  }
  // Collapse: drop axes of size 1, merge neighbours that every operand walks as one.
  run.rank = 0;
  for (int d = 0; d < rank; ++d) {
    const std::int64_t extent = dims[static_cast<std::size_t>(d)];
    if (extent == 1) continue;
    bool merge = run.rank > 0;
    for (std::size_t i = 0; i < inputs.size() && merge; ++i)
      merge = run.operands[i].stride[run.rank - 1] == run.operands[i].stride[d] * extent;
    const int at = merge ? run.rank - 1 : run.rank++;
    run.dims[at] = merge ? run.dims[at] * extent : extent;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      run.operands[i].stride[at] = run.operands[i].stride[d];
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    tile_run::operand& o = run.operands[i];
    o.scalar = true;
    o.contiguous = true;
    std::int64_t dense = 1;
    for (int d = run.rank - 1; d >= 0; --d) {
      o.scalar = o.scalar && o.stride[d] == 0;
      o.contiguous = o.contiguous && o.stride[d] == dense;
      dense *= run.dims[d];
    }
    if (run.count == 1) o.scalar = false;  // one element either way: read in place
  }
  run.tile = program.tile;
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    run.function[i] = tile_function_of(simd, program.code[i], run.takes_scalars[i]);
    if (run.function[i] == nullptr) return errc::unsupported;
  }
  for (std::size_t k = 0; k < program.outputs.size(); ++k)
    run.output_size[k] = static_cast<std::int64_t>(bytes_of(program.registers[program.outputs[k]]));
  return errc::ok;
}

template <class T>
void splat(void* dst, const void* value, std::int64_t n) {
  T v;
  std::memcpy(&v, value, sizeof v);
  T* const y = static_cast<T*>(dst);
  for (std::int64_t i = 0; i < n; ++i) y[i] = v;
}
inline void splat(void* dst, const void* value, std::int64_t size, std::int64_t n) {
  switch (size) {
    case 1: return splat<std::uint8_t>(dst, value, n);
    case 2: return splat<std::uint16_t>(dst, value, n);
    case 4: return splat<std::uint32_t>(dst, value, n);
    default: return splat<std::uint64_t>(dst, value, n);
  }
}

/// Copies elements [index, index + n) of a broadcast operand into a register.
template <class T>
void gather_operand(const tile_run& run, const tile_run::operand& o, const std::int64_t* index,
                    std::int64_t n, void* dst) {
  std::int64_t at[tile_max_rank];
  const int last = run.rank - 1;
  std::int64_t offset = 0;
  for (int d = 0; d < run.rank; ++d) {
    at[d] = index[d];
    offset += at[d] * o.stride[d];
  }
  const T* const data = reinterpret_cast<const T*>(o.data);
  T* y = static_cast<T*>(dst);
  const std::int64_t inner = run.dims[last];
  const std::int64_t step = o.stride[last];
  while (n > 0) {
    const std::int64_t left = inner - at[last];
    const std::int64_t take = left < n ? left : n;
    const T* x = data + offset;
    if (step == 0) {
      const T v = *x;
      for (std::int64_t i = 0; i < take; ++i) y[i] = v;
    } else {
      for (std::int64_t i = 0; i < take; ++i) y[i] = x[i];
    }
    y += take;
    n -= take;
    if (n == 0) break;
    offset -= at[last] * step;
    at[last] = 0;
    for (int d = last - 1; d >= 0; --d) {
      offset += o.stride[d];
      if (++at[d] < run.dims[d]) break;
      offset -= at[d] * o.stride[d];
      at[d] = 0;
    }
  }
}

/// Runs elements [begin, end) of the index space. `block`, when given, holds element `begin` of
/// operand 0 and of the only output (an epilogue working in place).
inline void tile_execute(const tile_run& run, std::int64_t begin, std::int64_t end,
                         std::byte* block = nullptr) {
  const tile_program& p = *run.program;
  const std::size_t inputs = p.inputs.size();
  alignas(64) std::byte scratch[24 * 1024];
  // What each slot's register is right now: memory or scratch, one element or a tile.
  const void* where[tile_max_slots];
  bool scalar[tile_max_slots];
  const std::int64_t slot_bytes = run.tile * 8;
  const auto slot = [&](std::size_t reg) {
    return scratch + static_cast<std::ptrdiff_t>(p.slots[reg] * slot_bytes);
  };
  const auto place = [&](std::size_t reg) { return static_cast<std::size_t>(p.slots[reg]); };

  const int last = run.rank - 1;
  const std::int64_t inner = run.rank > 0 ? run.dims[last] : 1;
  const bool rows = run.rank > 1;
  // Long rows are cut into equal pieces, so that no tile is a sliver.
  std::int64_t piece = run.tile;
  if (rows && inner >= tile_short_row) piece = ceil_div(inner, ceil_div(inner, run.tile));

  for (std::int64_t pos = begin; pos < end;) {
    std::int64_t n = end - pos < run.tile ? end - pos : run.tile;
    std::int64_t index[tile_max_rank];
    bool gather = false;
    if (rows) {
      std::int64_t rest = pos;
      for (int d = last; d >= 0; --d) {
        index[d] = rest % run.dims[d];
        rest /= run.dims[d];
      }
      const std::int64_t left = inner - index[last];
      if (inner >= tile_short_row) {
        n = end - pos < piece ? end - pos : piece;
        if (n > left) n = left;
      } else {
        gather = n > left;
      }
    }
    for (std::size_t i = 0; i < inputs; ++i) {
      const tile_run::operand& o = run.operands[i];
      const std::size_t at = place(i);
      scalar[at] = false;
      if (block != nullptr && i == 0) {
        where[at] = block + (pos - begin) * o.size;
      } else if (o.contiguous) {
        where[at] = o.data + pos * o.size;
      } else if (o.scalar) {
        where[at] = o.data;
        scalar[at] = true;
      } else if (!gather) {
        std::int64_t offset = 0;
        for (int d = 0; d <= last; ++d) offset += index[d] * o.stride[d];
        where[at] = o.data + offset * o.size;
        scalar[at] = o.stride[last] == 0;
      } else {
        void* const dst = slot(i);
        switch (o.size) {
          case 1: gather_operand<std::uint8_t>(run, o, index, n, dst); break;
          case 2: gather_operand<std::uint16_t>(run, o, index, n, dst); break;
          case 4: gather_operand<std::uint32_t>(run, o, index, n, dst); break;
          default: gather_operand<std::uint64_t>(run, o, index, n, dst); break;
        }
        where[at] = dst;
      }
    }
    for (std::size_t c = 0; c < p.code.size(); ++c) {
      const tile_instruction& in = p.code[c];
      const int arity = tile_builder::arity(in.op);
      unsigned mask = 0;
      for (int s = 0; s < arity; ++s)
        if (scalar[place(in.src[s])]) mask |= 1U << s;
      const bool all = mask == (1U << arity) - 1U;  // constants count as scalars
      const void* src[3] = {nullptr, nullptr, nullptr};
      for (int s = 0; s < arity; ++s) {
        const std::size_t from = place(in.src[s]);
        if ((mask >> s & 1U) != 0 && !all && !run.takes_scalars[c]) {
          void* const dst = slot(in.src[s]);
          splat(dst, where[from], static_cast<std::int64_t>(bytes_of(p.registers[in.src[s]])), n);
          where[from] = dst;
          scalar[from] = false;
        }
        src[s] = where[from];
      }
      void* dst = slot(in.dst);
      if (!all)
        for (std::size_t k = 0; k < p.outputs.size(); ++k)
          if (p.outputs[k] == in.dst && p.direct[k] != 0)
            dst = block != nullptr ? block + (pos - begin) * run.output_size[k]
                                   : run.outputs[k] + pos * run.output_size[k];
      run.function[c](in, dst, src, all ? 0U : mask, all ? 1 : n);
      where[place(in.dst)] = dst;
      scalar[place(in.dst)] = all;
    }
    for (std::size_t k = 0; k < p.outputs.size(); ++k) {
      const std::size_t at = place(p.outputs[k]);
      const std::int64_t size = run.output_size[k];
      std::byte* const dst =
          block != nullptr ? block + (pos - begin) * size : run.outputs[k] + pos * size;
      if (scalar[at])
        splat(dst, where[at], size, n);
      else if (where[at] != dst)
        std::memcpy(dst, where[at], static_cast<std::size_t>(n * size));
    }
    pos += n;
  }
}

inline errc run_tile_on(const simd_table& simd, const tile_call& call) {
  const tile_program& p = *call.program;
  if (call.outputs.size() != p.outputs.size() || p.outputs.empty()) return errc::arity;
  tile_run run;
  const errc bound = tile_bind(run, simd, p, call.inputs, call.outputs[0].shape());
  if (bound != errc::ok || run.count == 0) return bound;
  for (std::size_t k = 0; k < call.outputs.size(); ++k) {
    if (call.outputs[k].type != p.registers[p.outputs[k]]) return errc::type_mismatch;
    run.outputs[k] = static_cast<std::byte*>(call.outputs[k].data);
  }
  // A thread gets at least about 30 microseconds of work.
  const std::int64_t grain = ceil_div(32768, static_cast<std::int64_t>(p.code.size()) + 1);
  parallel_parts(
      call.pool, run.count, grain,
      [&](std::int64_t, std::int64_t begin, std::int64_t end) { tile_execute(run, begin, end); });
  return errc::ok;
}

/// An epilogue bound to one kernel call; does nothing when there is none.
struct bound_epilogue {
  tile_run run;
  bool active = false;

  errc bind(const simd_table& simd, const epilogue_call* call, const tensor_view& output) {
    if (call == nullptr || call->program == nullptr) return errc::ok;
    tensor_view inputs[tile_max_inputs];
    if (call->operands.size() + 1 > tile_max_inputs || call->program->outputs.size() != 1)
      return errc::unsupported;
    inputs[0] = output;
    for (std::size_t i = 0; i < call->operands.size(); ++i) inputs[i + 1] = call->operands[i];
    active = true;
    return tile_bind(run, simd, *call->program, {inputs, call->operands.size() + 1},
                     output.shape());
  }
  /// Elements [begin, begin + n) of the output, which stand at `data`.
  void apply(std::int64_t begin, std::int64_t n, void* data) const {
    if (active) tile_execute(run, begin, begin + n, static_cast<std::byte*>(data));
  }
  /// Rows of `columns` elements; row r starts at element begin + r * row_step of the output.
  void apply_rows(std::int64_t begin, std::int64_t rows, std::int64_t row_step,
                  std::int64_t columns, float* data) const {
    if (!active) return;
    if (row_step == columns) return apply(begin, rows * columns, data);
    for (std::int64_t r = 0; r < rows; ++r)
      tile_execute(run, begin + r * row_step, begin + r * row_step + columns,
                   reinterpret_cast<std::byte*>(data + r * row_step));
  }
};

}  // namespace sod2::kernel_detail
