// program: what `compile` makes and sessions run. Immutable flat data and text; no context inside.
//
// A program is a tree of regions. A region has its own flat size program, evaluated when its last
// symbol is bound; region 0 is the root, evaluated at `bind`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sod2/core/dtype.hpp>
#include <sod2/core/group_kind.hpp>
#include <sod2/core/status.hpp>
#include <sod2/expr/evaluate.hpp>
#include <sod2/kernel/table.hpp>
#include <sod2/memory/symbolic.hpp>
#include <sod2/runtime/buffer.hpp>
#include <sod2/runtime/fwd.hpp>

namespace sod2 {

inline constexpr std::uint32_t no_slot = 0xffffffff;

/// A symbol that the caller binds, with the facts that every binding must satisfy.
struct program_symbol {
  std::string name;
  std::uint32_t index = 0;  // position among the values that size programs read
  std::int64_t lo = 1, hi = 0, step = 1, offset = 0;
};

/// A model input. Each dim binds or checks a symbol, or has a fixed size.
struct program_input {
  struct axis {
    std::int64_t size = -1;          // fixed size, or -1
    std::uint32_t symbol = no_slot;  // position in program::symbols()
  };
  std::string name;
  dtype type = dtype::undefined;
  std::vector<axis> axes;
  /// Elements that are symbols (declared shape inputs): positions in program::symbols().
  std::vector<std::uint32_t> element_symbols;
};

struct program_output {
  std::string name;
  std::uint32_t tensor = 0;  // of the root region
};

/// Where the bytes of a tensor are; `none`: only its shape is read (a constant that was packed).
enum class storage_kind : std::uint8_t { arena, input, output, constant, host, none };

struct program_tensor {
  dtype type = dtype::undefined;
  std::uint32_t rank = 0;
  std::uint32_t dims = 0;  // first of `rank` entries among the region's sizes
  storage_kind kind = storage_kind::arena;
  std::uint32_t storage = 0;  // arena buffer, input, output, constant, or byte offset of host data
  std::string name;           // of the value, scoped
};

/// One launch.
struct program_step {
  group_kind kind = group_kind::opaque;
  kernel_run run = nullptr;       // null: a tile program alone
  std::uint32_t state = no_slot;  // kernel state
  std::uint32_t tile = no_slot;   // tile program: the launch itself or an epilogue
  std::uint32_t input_first = 0, input_count = 0;
  std::uint32_t output_first = 0, output_count = 0;
  std::uint32_t operand_first = 0, operand_count = 0;  // of the epilogue
  std::uint32_t workspace = no_slot;                   // arena buffer
  std::uint32_t nodes = 1;                             // operators that the launch executes
  std::uint32_t death_first = 0, death_count = 0;      // among program_region::deaths
  std::string name;                                    // the anchor's name
  std::string op;
};

/// Small tensors that are pure shape arithmetic, filled when sizes are evaluated.
struct host_value {
  std::uint32_t offset = 0;  // bytes into the session's host data
  dtype type = dtype::i64;
  std::uint32_t first = 0, count = 0;  // among the region's sizes; floats hold bits of a double
};

/// What must hold between two sizes, checked when they are evaluated.
struct program_check {
  std::uint32_t left = 0, right = 0;  // among the region's sizes
  bool broadcast = false;             // 1 yields
  errc code = errc::assertion_failed;
  std::string node, tensor;  // see assertion; the tensor may be empty
  int axis = -1;
  std::string text;
};

struct program_copy {
  std::uint32_t from = 0;    // tensor
  std::uint32_t output = 0;  // of the program
};

struct program_region {
  std::vector<program_tensor> tensors;
  std::vector<program_step> steps;
  std::vector<std::uint32_t> operands;  // tensors of all steps; no_slot: absent
  std::vector<std::uint32_t> deaths;    // arena buffers that no later step touches
  std::vector<host_value> host;
  std::vector<program_check> checks;
  std::vector<program_copy> copies;  // outputs that alias an input, a constant or another output
  size_program sizes;
  std::uint32_t buffer_bytes = 0;  // first of `buffers` entries among the sizes
  std::uint32_t buffers = 0;
  std::uint32_t host_bytes = 0;
  std::uint32_t intermediate_bytes = 0;  // among the sizes: sum of all materialised intermediates
  symbolic_layout layout;
  std::vector<std::uint32_t> children;
};

/// What `compile` did, for reports.
struct program_summary {
  std::uint64_t nodes_imported = 0;  // nodes of the view, sub-graphs included
  std::uint64_t nodes = 0;           // after folding constants and shape arithmetic
  std::uint64_t groups = 0;          // launches
  std::uint64_t by_kind[8] = {};     // per group_kind
  bool order_exact = false;
  std::int64_t order_peak_bytes = 0;  // at the representative binding
  std::int64_t order_lower_bound_bytes = 0;
  std::int64_t weights_bytes = 0;
  std::string required_bytes;      // formula text
  std::string intermediate_bytes;  // formula text, empty when it is too long
};

class program {
 public:
  std::span<const program_symbol> symbols() const { return symbols_; }
  std::span<const program_input> inputs() const { return inputs_; }
  std::span<const program_output> outputs() const { return outputs_; }
  const program_region& root() const { return regions_[0]; }
  std::span<const program_region> regions() const { return regions_; }
  const program_summary& summary() const { return summary_; }
  /// Values that size programs read: one per symbol of the analysis.
  std::size_t symbol_values() const { return symbol_values_; }
  /// Position of the symbol called `name`, or no_slot.
  std::uint32_t find_symbol(std::string_view name) const {
    for (std::uint32_t i = 0; i < symbols_.size(); ++i)
      if (symbols_[i].name == name) return i;
    return no_slot;
  }
  int threads() const { return threads_; }

  // For sessions.
  std::span<const kernel_state> states() const { return states_; }
  std::span<const tile_program> tiles() const { return tiles_; }
  std::span<const memory_block> constants() const { return constants_; }
  errc (*run_tile() const)(const tile_call&) { return run_tile_; }

 private:
  friend class program_compiler;
  std::vector<program_symbol> symbols_;
  std::vector<program_input> inputs_;
  std::vector<program_output> outputs_;
  std::vector<program_region> regions_;
  std::vector<kernel_state> states_;
  std::vector<tile_program> tiles_;
  std::vector<memory_block> constants_;
  errc (*run_tile_)(const tile_call&) = nullptr;
  std::size_t symbol_values_ = 0;
  int threads_ = 1;
  program_summary summary_;
};

}  // namespace sod2
