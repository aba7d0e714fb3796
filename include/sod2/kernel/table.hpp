// The table of kernels: rows by operator, the lowering of pointwise operators, the tile executor.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include <sod2/kernel/kernel.hpp>
#include <sod2/kernel/tile.hpp>

namespace sod2 {

/// How a pointwise operator becomes instructions.
struct pointwise_row {
  std::string_view domain;
  std::string_view name;
  int since = 1;
  int until = std::numeric_limits<int>::max();
  /// Appends the operator's instructions. `inputs[i]` is the register of input i (ignored where the
  /// input is absent, see `prepare_args::inputs`), `outputs[k]` receives the register of output k
  /// (untouched where the output is absent). Reads attributes, types and constants only. Errors:
  /// `unsupported`, `bad_attribute`, `type_mismatch`.
  status (*lower)(tile_builder&, const prepare_args&, std::span<const std::uint16_t> inputs,
                  std::span<std::uint16_t> outputs) = nullptr;
  /// Does this form of the node lower? Null: always; else a kernel of the same name runs the
  /// others.
  bool (*applies)(const prepare_args&) = nullptr;
  /// Bit i: input i has one element per channel, so its operand takes `first_axis = 1`.
  std::uint32_t channel_inputs = 0;
  /// Bit i: input i is a scalar that steers the operator (Dropout's ratio): lowering never reads
  /// its register, so it needs no operand.
  std::uint32_t unread_inputs = 0;
  /// Versions with the attributes `broadcast` and `axis` (before opset 7).
  bool legacy_broadcast = false;

  /// `tile_operand::first_axis` of input i of one node.
  int first_axis(const prepare_args& args, std::size_t i) const {
    if ((channel_inputs >> i & 1U) != 0) return 1;
    if (legacy_broadcast && i == 1 && args.attributes.integer("broadcast", 0) != 0)
      return static_cast<int>(args.attributes.integer("axis", -1));
    return -1;
  }
};

/// Instruction sets with microkernels of their own.
enum class simd_target : std::uint8_t { best, baseline, sse4, avx2, avx512, neon };

struct kernel_table {
  std::span<const kernel_row> rows{};
  std::span<const pointwise_row> pointwise{};
  /// Runs a tile program; no allocation, splits over the pool where it pays.
  errc (*run_tile)(const tile_call&) = nullptr;
  const simd_table* simd = nullptr;  // for `prepare_args::simd`; null means the best of this CPU
  std::string_view target{};         // its name: "avx512", "avx2", ..

  /// The row for an operator version (any opset in [since, until]); null when there is none.
  const kernel_row* find(std::string_view domain, std::string_view name, int version) const {
    return find_in(rows, domain, name, version);
  }
  const pointwise_row* find_pointwise(std::string_view domain, std::string_view name,
                                      int version) const {
    return find_in(pointwise, domain, name, version);
  }

 private:
  template <class Row>
  static const Row* find_in(std::span<const Row> rows, std::string_view domain,
                            std::string_view name, int version) {
    for (const Row& row : rows)
      if (row.name == name && row.since <= version && version <= row.until &&
          (row.domain == domain || (row.domain.empty() && domain == "ai.onnx")))
        return &row;
    return nullptr;
  }
};

/// The kernels of this library for the best instruction set of this CPU. Defined by
/// `sod2/instantiate.hpp`, which one translation unit of the program includes.
const kernel_table& standard_kernels();

/// The same for one instruction set; null when it is not built in or this CPU lacks it.
const kernel_table* standard_kernels(simd_target target);

}  // namespace sod2
