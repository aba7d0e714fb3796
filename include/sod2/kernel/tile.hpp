// Tile programs: pointwise work as bytecode over cache-resident tiles, executed without a JIT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <sod2/core/status.hpp>
#include <sod2/core/tensor_view.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/kernel/fwd.hpp>
#include <sod2/kernel/pool.hpp>

namespace sod2 {

/// What an instruction computes. `type` is the element type of the sources; arithmetic keeps it,
/// comparisons and logic give bool, `cast` gives `to`. Float16 and bfloat16 are only copied and
/// cast: the lowering computes them in float32.
enum class tile_op : std::uint8_t {
  copy,
  cast,
  constant,  // imm[0], or the integer bits in `bits`
  // binary
  add,
  sub,
  mul,
  div,   // integers truncate; x / 0 gives 0
  mod,   // sign of the divisor (ONNX fmod = 0)
  fmod,  // sign of the dividend
  pow,   // integers: a negative exponent gives 0 unless the base is 1 or -1
  max,   // NaN if either is
  min,
  equal,
  less,
  less_equal,
  logical_and,
  logical_or,
  logical_xor,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  prelu,
  // unary
  neg,
  abs,
  sqrt,
  exp,
  log,
  erf,
  reciprocal,
  ceil,
  floor,
  round,  // to nearest, ties to even
  sign,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  relu,
  leaky_relu,  // imm[0] alpha
  elu,         // imm[0] alpha
  celu,        // imm[0] alpha
  selu,        // imm[0] alpha, imm[1] gamma
  sigmoid,
  hard_sigmoid,  // imm[0] alpha, imm[1] beta
  hard_swish,
  softplus,
  softsign,
  thresholded_relu,  // imm[0] alpha
  shrink,            // imm[0] bias, imm[1] lambda
  gelu_erf,
  gelu_tanh,
  mish,
  silu,
  clip,  // imm[0] low, imm[1] high
  bit_not,
  logical_not,
  is_nan,
  is_inf,  // imm[0] detect_positive, imm[1] detect_negative
  // ternary
  where,  // src[0] bool, src[1] and src[2] of `type`
  fma,    // src[0] * src[1] + src[2]
  count_
};

struct tile_instruction {
  tile_op op = tile_op::copy;
  dtype type = dtype::f32;
  dtype to = dtype::f32;
  std::uint16_t dst = 0;
  std::uint16_t src[3] = {0, 0, 0};
  double imm[2] = {0, 0};
  std::int64_t bits = 0;  // constants of integer type
};

/// One operand. `first_axis < 0`: numpy broadcasting, trailing axes aligned. Otherwise operand axis
/// 0 stands on output axis `first_axis` (per-channel operands: 1). Scalars broadcast either way.
struct tile_operand {
  dtype type = dtype::f32;
  std::int8_t first_axis = -1;
};

/// Straight-line code over registers of one tile each. Registers 0 .. inputs-1 are the operands,
/// the others are written exactly once. Plain data, the same for every instruction set.
struct tile_program {
  vector<tile_instruction> code;
  vector<tile_operand> inputs;
  vector<std::uint16_t> outputs;  // registers, one per output; all outputs share one index space
  vector<dtype> registers;        // element type of every register
  // Settled by `tile_builder::finish`:
  vector<std::int32_t> slots;   // place of every register in the scratch, in units of
                                // 8 * `tile` bytes; -1: not materialised
  vector<std::uint8_t> direct;  // per output: may be written to memory at once
  std::int32_t slot_count = 0;
  std::int32_t tile = 1024;  // elements per tile
};

/// Most operands, outputs, registers that are live at once, instructions, and axes.
inline constexpr std::size_t tile_max_inputs = 24;
inline constexpr std::size_t tile_max_outputs = 16;
inline constexpr std::size_t tile_max_slots = 48;
inline constexpr std::size_t tile_max_code = 128;
inline constexpr std::size_t tile_max_rank = 12;

/// Composes programs; a fused group lowers each of its operators into the same builder.
class tile_builder {
 public:
  /// Inputs come before any instruction.
  std::uint16_t input(dtype type, int first_axis = -1) {
    SOD2_ASSERT(program_.code.empty());
    program_.inputs.push_back({type, static_cast<std::int8_t>(first_axis)});
    program_.registers.push_back(type);
    return static_cast<std::uint16_t>(program_.registers.size() - 1);
  }
  dtype type_of(std::uint16_t reg) const { return program_.registers[reg]; }

  /// Appends one instruction; returns its register. Sources of another element type than `type`
  /// are an error of the caller (`convert` first).
  std::uint16_t emit(tile_op op, dtype type, std::uint16_t a, std::uint16_t b = 0,
                     std::uint16_t c = 0, double imm0 = 0, double imm1 = 0) {
    tile_instruction i;
    i.op = op;
    i.type = type;
    i.to = result_type(op, type);
    i.src[0] = a;
    i.src[1] = b;
    i.src[2] = c;
    i.imm[0] = imm0;
    i.imm[1] = imm1;
    return push(i);
  }
  /// The register itself if it has this type already.
  std::uint16_t convert(std::uint16_t reg, dtype to) {
    if (type_of(reg) == to) return reg;
    tile_instruction i;
    i.op = tile_op::cast;
    i.type = type_of(reg);
    i.to = to;
    i.src[0] = reg;
    return push(i);
  }
  std::uint16_t constant(dtype type, double value) {
    tile_instruction i;
    i.op = tile_op::constant;
    i.type = i.to = type;
    i.imm[0] = value;
    i.bits = static_cast<std::int64_t>(value >= 9.2e18    ? INT64_MAX
                                       : value <= -9.2e18 ? INT64_MIN
                                       : value == value   ? static_cast<std::int64_t>(value)
                                                          : 0);
    return push(i);
  }
  std::uint16_t push(const tile_instruction& i) {
    tile_instruction copy = i;
    copy.dst = static_cast<std::uint16_t>(program_.registers.size());
    program_.registers.push_back(copy.to);
    program_.code.push_back(copy);
    return copy.dst;
  }
  void output(std::uint16_t reg) { program_.outputs.push_back(reg); }
  std::span<const tile_instruction> code() const { return program_.code.view(); }

  /// Drops dead code, places registers, settles the tile size. Errors: `unsupported` when a limit
  /// (`tile_max_*`) is passed; the caller then makes two groups.
  result<tile_program> finish();

  static constexpr dtype result_type(tile_op op, dtype type) {
    switch (op) {
      case tile_op::equal:
      case tile_op::less:
      case tile_op::less_equal:
      case tile_op::logical_and:
      case tile_op::logical_or:
      case tile_op::logical_xor:
      case tile_op::logical_not:
      case tile_op::is_nan:
      case tile_op::is_inf: return dtype::boolean;
      default: return type;
    }
  }
  static constexpr int arity(tile_op op) {
    if (op == tile_op::constant) return 0;
    if (op >= tile_op::add && op <= tile_op::prelu) return 2;
    return op >= tile_op::where ? 3 : 1;
  }

 private:
  tile_program program_;
};

/// One execution of a program over the whole index space `outputs[0].dims`. Output k may be the
/// same buffer as a contiguous input of the same element size and count.
struct tile_call {
  const tile_program* program = nullptr;
  std::span<const tensor_view> inputs{};
  std::span<const tensor_view> outputs{};
  thread_pool_ref pool{};
};

/// A program that a product or convolution applies to its output block while it is in cache.
/// Operand 0 is the block, read and overwritten in place; operands 1.. are tensors that broadcast
/// against the output. The program has one output, of the kernel's output type.
struct epilogue_call {
  const tile_program* program = nullptr;
  std::span<const tensor_view> operands{};  // operand 1 first
};

inline result<tile_program> tile_builder::finish() {
  tile_program& p = program_;
  const std::size_t inputs = p.inputs.size();
  if (inputs > tile_max_inputs || p.outputs.size() > tile_max_outputs)
    return error(errc::unsupported, "tile program with too many operands");

  // An output that is an operand, or the same register twice, is copied.
  for (std::size_t k = 0; k < p.outputs.size(); ++k) {
    bool copy = p.outputs[k] < inputs;
    for (std::size_t j = 0; j < k; ++j) copy = copy || p.outputs[j] == p.outputs[k];
    if (copy) p.outputs[k] = emit(tile_op::copy, type_of(p.outputs[k]), p.outputs[k]);
  }

  vector<std::uint8_t> live(p.registers.size());
  for (std::uint16_t r : p.outputs) live[r] = 1;
  for (std::size_t i = p.code.size(); i-- > 0;)
    if (live[p.code[i].dst] != 0)
      for (int s = 0; s < arity(p.code[i].op); ++s) live[p.code[i].src[s]] = 1;
  vector<tile_instruction> code;
  for (const tile_instruction& i : p.code)
    if (live[i.dst] != 0) code.push_back(i);
  p.code = std::move(code);

  // Linear scan. Operands keep a slot of their own: whether they need one depends on the shapes.
  const std::size_t none = p.code.size();
  vector<std::size_t> last(p.registers.size(), 0);
  std::size_t last_operand_read = 0;
  for (std::size_t i = 0; i < p.code.size(); ++i)
    for (int s = 0; s < arity(p.code[i].op); ++s) {
      last[p.code[i].src[s]] = i;
      if (p.code[i].src[s] < inputs) last_operand_read = i;
    }
  for (std::uint16_t r : p.outputs) last[r] = none;
  p.slots.assign(p.registers.size(), -1);
  vector<std::uint16_t> owner;  // register that holds each slot, or 0xffff
  for (std::size_t r = 0; r < inputs; ++r) {
    p.slots[r] = static_cast<std::int32_t>(owner.size());
    owner.push_back(static_cast<std::uint16_t>(r));
  }
  for (std::size_t i = 0; i < p.code.size(); ++i) {
    const std::uint16_t dst = p.code[i].dst;
    std::size_t at = inputs;
    while (at < owner.size() && owner[at] != 0xffff) ++at;
    if (at == owner.size()) owner.push_back(0xffff);
    owner[at] = dst;
    p.slots[dst] = static_cast<std::int32_t>(at);
    for (std::size_t k = inputs; k < owner.size(); ++k)
      if (owner[k] != 0xffff && last[owner[k]] <= i) owner[k] = 0xffff;
  }
  if (owner.size() > tile_max_slots || p.code.size() > tile_max_code)
    return error(errc::unsupported, "tile program needs too many registers");
  p.slot_count = static_cast<std::int32_t>(owner.size());

  // In-place safety: memory is written early only when no operand is read afterwards.
  p.direct.assign(p.outputs.size(), 0);
  for (std::size_t k = 0; k < p.outputs.size(); ++k)
    for (std::size_t i = 0; i < p.code.size(); ++i)
      if (p.code[i].dst == p.outputs[k] && i >= last_operand_read) p.direct[k] = 1;

  const std::int32_t fit = 24 * 1024 / 8 / (p.slot_count > 0 ? p.slot_count : 1);
  p.tile = fit >= 1024 ? 1024 : fit >= 512 ? 512 : fit >= 256 ? 256 : fit >= 128 ? 128 : 64;
  return std::move(program_);
}

}  // namespace sod2
