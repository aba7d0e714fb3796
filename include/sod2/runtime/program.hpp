// program: what `compile` makes and sessions run. Immutable flat data and text; no context inside.
//
// A program is a tree of regions: the root, and one for each arm and loop body. A region is cut
// into segments where a run binds symbols: each segment has a flat size program and a layout of its
// own, evaluated when its last symbol is bound. The root's first segment is evaluated at `bind`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/core/dtype.hpp>
#include <sod2/core/group_kind.hpp>
#include <sod2/core/status.hpp>
#include <sod2/expr/evaluate.hpp>
#include <sod2/graph/graph.hpp>
#include <sod2/kernel/table.hpp>
#include <sod2/memory/symbolic.hpp>
#include <sod2/op/definition.hpp>
#include <sod2/runtime/buffer.hpp>
#include <sod2/runtime/fwd.hpp>
#include <sod2/shape/fact.hpp>

namespace sod2 {

inline constexpr std::uint32_t no_slot = 0xffffffff;

/// A symbol that the caller binds, with the facts that every binding must satisfy.
struct program_symbol {
  std::string name;
  std::uint32_t index = 0;  // position among the values that size programs read
  std::int64_t lo = 1, hi = 0, step = 1, offset = 0;
};

/// A model input. Each dim binds or checks a symbol, or has a fixed size. `type` is that of the
/// elements of a sequence or optional, whose dims nothing here says.
struct program_input {
  struct axis {
    std::int64_t size = -1;          // fixed size, or -1
    std::uint32_t symbol = no_slot;  // position in program::symbols()
  };
  std::string name;
  fact_kind kind = fact_kind::tensor;
  std::uint32_t container = no_slot;  // of a sequence or optional
  dtype type = dtype::undefined;
  std::vector<axis> axes;
  /// Does anything depend on its shape or elements? Of the others only the type counts (the second
  /// input of CastLike).
  bool is_read = true;
  /// Elements that are symbols (declared shape inputs): positions in program::symbols().
  std::vector<std::uint32_t> element_symbols;
};

struct program_output {
  std::string name;
  fact_kind kind = fact_kind::tensor;
  std::uint32_t tensor = 0;  // of the root region
};

/// Where the bytes of a tensor are. `outer`: in a tensor of a region around this one; `block`: in
/// memory of its own that grows as results turn out; `none`: only its shape is read (a constant
/// that was packed); `container`: a sequence or optional, in the session's list of those.
enum class storage_kind : std::uint8_t {
  arena,
  input,
  output,
  constant,
  host,
  none,
  outer,
  block,
  container
};

struct program_tensor {
  dtype type = dtype::undefined;
  std::uint32_t rank = 0;
  std::uint32_t dims = 0;  // first of `rank` entries among the region's sizes
  storage_kind kind = storage_kind::arena;
  /// Arena buffer, input, output, constant, byte offset of host data, tensor of `region`, block, or
  /// container.
  std::uint32_t storage = 0;
  std::uint32_t segment = 0;       // from which on its dims are known
  std::uint32_t region = no_slot;  // of an outer tensor
  std::string name;                // of the value, scoped
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
  std::uint32_t control = no_slot;                     // among program_region::controls
  std::uint32_t sequence = no_slot;                    // among program_region::sequences
  std::uint32_t binder = no_slot;                      // among program_region::binders
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

/// A symbol that a size gives: symbol = (size - rest) / factor, within its bounds.
struct program_binding {
  std::uint32_t operand = 0, axis = 0;  // output of the step, or input of the region
  std::uint32_t symbol = 0;
  std::int64_t factor = 1;
  size_program rest;  // one output
  std::int64_t lo = 0, hi = 0;
};

/// How a step makes sizes known; the region's next segment starts when it has.
struct program_binder {
  enum class mode : std::uint8_t {
    values,  // before the step: the operator's transfer function over concrete inputs
    counts,  // after the step, which got the upper bounds of the transfer function
    control  // after the step: the sizes of what ran
  };
  mode how = mode::values;
  status (*forward)(symbolic_transfer&) = nullptr;
  int version = 1;
  std::vector<attribute> attributes;
  std::vector<program_binding> bindings;
  std::uint32_t outputs = 0;      // of the node
  std::uint32_t block_first = 0;  // counts: one block per output
};

/// What a step does with sequences and optionals; operands are those of the ONNX operator.
struct program_sequence {
  enum class kind : std::uint8_t {
    assign,     // Identity, Optional of a sequence
    construct,  // SequenceConstruct, SequenceEmpty, Optional of a tensor or of nothing
    at,
    insert,
    erase,
    length,
    split,
    concat,
    element,  // OptionalGetElement
    has       // OptionalHasElement
  };
  kind what = kind::assign;
  std::int64_t axis = 0;          // split, concat
  bool keeps_axis = true;         // split: in each part; concat: false when it is a new one
  bool has_value = true;          // construct: false for an optional of nothing
  bool takes = false;             // nobody reads input 0 afterwards
  std::uint32_t block_first = 0;  // one per output: tensors whose sizes the run finds out
};

/// A node with sub-graphs.
struct program_control {
  enum class kind : std::uint8_t { branch, loop, scan, map };
  kind what = kind::branch;
  /// Carried sequences and optionals: the body's own and where a trip puts the next one, else
  /// no_slot. Map: `next` is where the elements of each output go.
  std::vector<std::uint32_t> formal, next;
  /// Branch: `then` and `else`; no_slot for an arm that a proof excludes. Else the body.
  std::uint32_t regions[2] = {no_slot, no_slot};
  std::uint32_t carried = 0;  // loop and scan: values passed from trip to trip
  /// Scan-8: axis 0 counts samples, scanned one after the other; the last operand, if there is one
  /// more than carried and scanned, says how long each is.
  bool batched = false;
  /// Blocks: one per output, then (loop and scan) two per carried value and one per scan output
  /// and scan input.
  std::uint32_t block_first = 0;
  std::vector<std::int64_t> input_axes, output_axes;            // scan; negative from the end
  std::vector<std::uint8_t> input_backwards, output_backwards;  // scan
  std::uint32_t index = 0;                                      // among all of the program
};

/// Part of a region between two points where symbols are bound.
struct program_segment {
  size_program sizes;
  std::vector<std::uint32_t> targets;  // where its outputs go; empty: one after the other from 0
  std::uint32_t buffer_bytes = 0;      // first of `buffers` entries among the sizes
  std::uint32_t buffer_first = 0, buffers = 0;
  symbolic_layout layout;
  std::uint32_t block = no_slot;  // that holds its part of the arena; no_slot: the session's arena
  std::uint32_t host_first = 0, host_count = 0;
  std::uint32_t check_first = 0, check_count = 0;
  std::vector<std::uint32_t> tensors;  // whose dims become known
  struct provided {
    std::uint32_t tensor = 0, output = 0;
  };
  std::vector<provided> outputs;  // of the region, written in place
};

struct program_copy {
  std::uint32_t from = 0;    // tensor
  std::uint32_t output = 0;  // of the region
  bool takes = false;        // container: nobody reads it afterwards
};

/// A buffer of the arena as text, for reports.
struct buffer_description {
  std::int64_t lower = 0, upper = 0;  // half-open range of steps
  std::string bytes;
  std::vector<std::string> offsets;  // one per formula of the layout; empty where too long
};

struct program_region {
  std::vector<program_tensor> tensors;
  std::vector<program_step> steps;
  std::vector<std::uint32_t> operands;  // tensors of all steps; no_slot: absent
  std::vector<std::uint32_t> deaths;    // arena buffers that no later step touches
  std::vector<host_value> host;
  std::vector<program_check> checks;
  std::vector<program_copy> copies;  // outputs that alias an input, a constant or another output
  std::vector<program_segment> segments;  // at least one
  std::vector<std::uint32_t> segment_of_buffer;
  symbolic_layout layout;                     // the first segment's, for reports
  std::vector<buffer_description> described;  // on demand; those of the first segment
  std::vector<program_control> controls;
  std::vector<program_sequence> sequences;
  std::vector<program_binder> binders;
  std::vector<program_binding> entry;   // symbols that the inputs' sizes give
  std::vector<std::uint32_t> results;   // tensors of the outputs
  std::vector<std::uint32_t> children;  // regions
  std::uint32_t size_count = 0;
  std::uint32_t buffers = 0;  // of all segments
  std::uint32_t host_bytes = 0;
  std::uint32_t intermediate_bytes = 0;  // among the sizes: sum of all materialised intermediates
  std::string impossible;                // why the region cannot run to its end
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
  std::string required_bytes;      // formula text, empty when it is too long
  std::string lower_bound_bytes;   // formula text, empty when it is too long
  bool layout_proved = false;      // both are equal at every binding
  double layout_ratio = 1.0;       // arena over lower bound, the worst of the sampled bindings
  std::string intermediate_bytes;  // formula text, empty when it is too long
};

/// A condition on sizes with the outcome that a variant of the program is for.
struct program_guard {
  size_program condition;  // one output
  bool outcome = true;
};

class program;

/// The parts of a program, while it is being built.
struct program_data {
  std::vector<program_symbol> symbols;
  std::vector<program_input> inputs;
  std::vector<program_output> outputs;
  std::vector<program_region> regions;
  std::vector<kernel_state> states;
  std::vector<tile_program> tiles;
  std::vector<memory_block> constants;
  errc (*run_tile)(const tile_call&) = nullptr;
  std::size_t symbol_values = 0;
  std::vector<program_guard> guards;
  std::vector<program> variants;
  std::uint32_t blocks = 0, controls = 0;
  std::vector<fact_kind> containers;
  int threads = 1;
  bool all_branches = false, upper_bounds = false;
  program_summary summary;
};

class program {
 public:
  explicit program(program_data data) : data_(std::move(data)) {}

  std::span<const program_symbol> symbols() const { return data_.symbols; }
  std::span<const program_input> inputs() const { return data_.inputs; }
  std::span<const program_output> outputs() const { return data_.outputs; }
  const program_region& root() const { return data_.regions[0]; }
  std::span<const program_region> regions() const { return data_.regions; }
  const program_summary& summary() const { return data_.summary; }
  /// Values that size programs read: one per symbol of the analysis.
  std::size_t symbol_values() const { return data_.symbol_values; }
  /// Position of the symbol called `name`, or no_slot.
  std::uint32_t find_symbol(std::string_view name) const {
    for (std::uint32_t i = 0; i < data_.symbols.size(); ++i)
      if (data_.symbols[i].name == name) return i;
    return no_slot;
  }
  int threads() const { return data_.threads; }
  /// See compile_options.
  bool all_branches() const { return data_.all_branches; }
  bool upper_bounds() const { return data_.upper_bounds; }

  /// Conditions on sizes decide ranks: this program is for the outcomes in guards(), these are for
  /// the others. Symbols, inputs and outputs are the same.
  std::span<const program> variants() const { return data_.variants; }
  std::span<const program_guard> guards() const { return data_.guards; }

  // For sessions.
  std::span<const kernel_state> states() const { return data_.states; }
  std::span<const tile_program> tiles() const { return data_.tiles; }
  std::span<const memory_block> constants() const { return data_.constants; }
  /// Pieces of memory that grow during runs.
  std::size_t block_count() const { return data_.blocks; }
  std::size_t control_count() const { return data_.controls; }
  /// Sequences and optionals of all regions.
  std::span<const fact_kind> containers() const { return data_.containers; }
  errc (*run_tile() const)(const tile_call&) { return data_.run_tile; }

  /// Takes it apart again.
  program_data release() && { return std::move(data_); }

 private:
  program_data data_;
};

}  // namespace sod2
