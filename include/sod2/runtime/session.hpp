// session: one thread's use of a program. `bind` settles all sizes and the memory layout, `run`
// executes. A steady run (sizes bound before) allocates nothing.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sod2/core/checked.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/tensor_view.hpp>
#include <sod2/kernel/pool.hpp>
#include <sod2/runtime/buffer.hpp>
#include <sod2/runtime/program.hpp>

namespace sod2 {

struct session_options {
  allocator_ref allocator{};
  /// At most the `threads` that the program was compiled for.
  thread_pool_ref pool{};
  /// Caller-owned arena, 64-byte aligned; `bind` fails with `buffer_too_small` beyond it.
  std::span<std::byte> arena{};
  /// Limit of the arena in bytes; 0: none. `bind` fails with `budget` beyond it.
  std::int64_t memory_budget = 0;
  /// Overwrites dead buffers after every step, so that a wrong live range shows in the results.
  bool poison = false;
  /// Called after every step, for profiles and dumps; may be null.
  void (*observer)(void* context, std::size_t step) = nullptr;
  void* observer_context = nullptr;
};

/// Where one output goes.
struct output_target {
  enum class protocol : std::uint8_t {
    session_owned,  // valid until the next run or bind
    buffer,         // `data` with `capacity` bytes
    callback,       // `allocate(context, output, dims, rank, type, bytes)`
  };
  protocol how = protocol::session_owned;
  void* data = nullptr;
  std::size_t capacity = 0;
  void* (*allocate)(void* context, std::size_t output, const std::int64_t* dims, std::size_t rank,
                    dtype type, std::size_t bytes) = nullptr;
  void* context = nullptr;
};

class session {
 public:
  explicit session(const program& p, session_options options = {})
      : program_(&p), options_(options), arena_(options.allocator), host_(options.allocator) {
    const program_region& r = p.root();
    symbol_values_.assign(p.symbol_values(), 0);
    scratch_.assign(r.sizes.register_count(), 0);
    sizes_.assign(r.sizes.output_count(), 0);
    offsets_.assign(r.buffers, 0);
    views_.resize(r.tensors.size());
    operands_.resize(r.operands.size());
    bound_values_.assign(p.symbols().size(), 0);
    wanted_values_.assign(p.symbols().size(), 0);
    outputs_.resize(p.outputs().size());
    for (std::size_t i = 0; i < p.outputs().size(); ++i) owned_.emplace_back(options.allocator);
  }

  /// Binds all symbols, in the order of program::symbols(). Checks ranges, strides and the model's
  /// assertions, evaluates all sizes, lays out the arena. Errors: assertion_failed (or the code of
  /// the assertion), overflow, budget, buffer_too_small, out_of_memory. After an error the session
  /// stays usable and unbound.
  status bind(std::span<const std::int64_t> values) {
    const program_region& r = program_->root();
    if (values.size() != program_->symbols().size())
      return error(errc::invalid_argument, "bind takes one value per symbol");
    bound_ = false;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const program_symbol& s = program_->symbols()[i];
      if (status e = check_symbol(s, values[i]); !e) return located(std::move(e).error(), i);
      symbol_values_[s.index] = values[i];
      bound_values_[i] = values[i];
    }
    const errc evaluated = r.sizes.evaluate(symbol_values_, scratch_, sizes_);
    // An assertion says more than the failed evaluation of what depends on it.
    for (const program_check& c : r.checks) SOD2_TRY(check(c));
    if (evaluated != errc::ok) return failed(evaluated);
    for (const program_tensor& t : r.tensors)
      for (std::uint32_t i = 0; i < t.rank; ++i)
        if (sizes_[t.dims + i] < 0)
          return error(errc::value_range, "a dimension is negative")
              .at_tensor(t.name, static_cast<int>(i))
              .between(std::to_string(sizes_[t.dims + i]), "0");
    arena_bytes_ = r.layout.evaluate({sizes_.data() + r.buffer_bytes, r.buffers}, offsets_);
    SOD2_TRY(provide_arena());
    if (!host_.reserve(r.host_bytes)) return error(errc::out_of_memory);
    fill_host(r);
    for (std::size_t i = 0; i < r.tensors.size(); ++i) locate(r, i);
    bound_ = true;
    return {};
  }

  /// Binds from the shapes (and, for shape inputs, the values) of the model's inputs. Does nothing
  /// when they are bound already.
  status bind_inputs(std::span<const tensor_view> inputs) {
    const auto declared = program_->inputs();
    if (inputs.size() != declared.size())
      return error(errc::input_missing, "the model has " + std::to_string(declared.size()) +
                                            " inputs, got " + std::to_string(inputs.size()));
    for (std::int64_t& v : wanted_values_) v = unset;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const program_input& in = declared[i];
      const tensor_view& t = inputs[i];
      if (t.type != in.type)
        return error(errc::input_type)
            .at_tensor(in.name)
            .between(name_of(in.type), name_of(t.type));
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

  /// Runs. `inputs`: in the model's order, contiguous, 64-bit-aligned or better; never written.
  /// `targets`: one per output, or empty for session-owned outputs. Results are in `output(i)`.
  /// Errors: those of bind_inputs, buffer_too_small (naming the bytes needed), out_of_memory, and
  /// what kernels report (index_range, value_range).
  status run(std::span<const tensor_view> inputs, std::span<const output_target> targets = {}) {
    SOD2_TRY(bind_inputs(inputs));
    const program_region& r = program_->root();
    SOD2_TRY(place_outputs(r, targets));
    for (std::size_t i = 0; i < r.tensors.size(); ++i) {
      const program_tensor& t = r.tensors[i];
      if (t.kind == storage_kind::input) views_[i].data = inputs[t.storage].data;
      if (t.kind == storage_kind::output) views_[i].data = outputs_[t.storage].data;
    }
    for (std::size_t i = 0; i < r.operands.size(); ++i)
      operands_[i] = r.operands[i] == no_slot ? tensor_view{} : views_[r.operands[i]];
    nodes_run_ = 0;
    groups_run_ = 0;
    for (std::size_t s = 0; s < r.steps.size(); ++s) {
      const program_step& step = r.steps[s];
      const errc e = launch(step);
      if (e != errc::ok)
        return error(e, std::string(text_of(e)) + " while running " + step.op).at_node(step.name);
      nodes_run_ += step.nodes;
      ++groups_run_;
      if (options_.observer != nullptr) options_.observer(options_.observer_context, s);
      if (options_.poison)
        for (std::uint32_t d = 0; d < step.death_count; ++d)
          poison(r, r.deaths[step.death_first + d]);
    }
    for (const program_copy& c : r.copies) {
      const tensor_view& from = views_[c.from];
      const auto bytes = static_cast<std::size_t>(bytes_of(from.type, from.count()));
      if (bytes > 0) std::memcpy(outputs_[c.output].data, from.data, bytes);
    }
    return {};
  }

  /// Output i of the last run.
  const tensor_view& output(std::size_t i) const { return outputs_[i]; }
  /// Any tensor of the root region, meaningful while it is live (for observers).
  const tensor_view& tensor(std::size_t i) const { return views_[i]; }

  bool bound() const { return bound_; }
  /// Bytes of the arena at the current binding; weights and caller's buffers excluded.
  std::int64_t arena_bytes() const { return arena_bytes_; }
  /// Largest sum of live bytes over the steps at the current binding, 64-byte alignment included:
  /// no layout of this order can be smaller.
  std::int64_t lower_bound_bytes() {
    const program_region& r = program_->root();
    return r.layout.lower_bound({sizes_.data() + r.buffer_bytes, r.buffers});
  }
  /// Sum of all materialised intermediate tensors at the current binding, in bytes.
  std::int64_t intermediate_bytes() const { return sizes_[program_->root().intermediate_bytes]; }
  std::uint64_t nodes_run() const { return nodes_run_; }
  std::uint64_t groups_run() const { return groups_run_; }
  /// Gives the arena back; the next bind takes what it needs.
  void trim() {
    arena_.release();
    bound_ = false;
  }

 private:
  static constexpr std::int64_t unset = INT64_MIN;

  static status check_symbol(const program_symbol& s, std::int64_t v) {
    if (v < s.lo || v > s.hi)
      return error(errc::assertion_failed, "symbol '" + s.name + "' = " + std::to_string(v) +
                                               " is outside " + std::to_string(s.lo) + ".." +
                                               std::to_string(s.hi));
    if (s.step > 1 && floor_mod(v - s.offset, s.step) != 0)
      return error(errc::assertion_failed,
                   "symbol '" + s.name + "' = " + std::to_string(v) + " is not " +
                       (s.offset == 0 ? "a multiple of " : std::to_string(s.offset) + " modulo ") +
                       std::to_string(s.step));
    return {};
  }
  /// Names the first dim whose evaluation failed, else the tensor whose bytes nobody can count.
  error failed(errc code) const {
    const program_region& r = program_->root();
    for (const program_tensor& t : r.tensors)
      for (std::uint32_t i = 0; i < t.rank; ++i)
        if (sizes_[t.dims + i] < 0) return error(code).at_tensor(t.name, static_cast<int>(i));
    for (const program_tensor& t : r.tensors) {
      std::int64_t bytes = static_cast<std::int64_t>(bytes_of(t.type));
      for (std::uint32_t i = 0; i < t.rank; ++i)
        if (!checked_mul(bytes, sizes_[t.dims + i], bytes)) return error(code).at_tensor(t.name);
    }
    return error(code);
  }
  /// Names the first dim of an input that the symbol is.
  error located(error e, std::size_t symbol) const {
    for (const program_input& in : program_->inputs())
      for (std::size_t axis = 0; axis < in.axes.size(); ++axis)
        if (in.axes[axis].symbol == symbol)
          return std::move(e).at_tensor(in.name, static_cast<int>(axis));
    return e;
  }
  status check(const program_check& c) const {
    const std::int64_t a = sizes_[c.left], b = sizes_[c.right];
    if (a == b || (c.broadcast && (a == 1 || b == 1))) return {};
    return error(c.code, std::string(text_of(c.code)) + ": " + c.text)
        .at_node(c.node)
        .at_tensor(c.tensor, c.axis)
        .between(std::to_string(a), std::to_string(b));
  }
  status want(std::uint32_t symbol, std::int64_t value, const std::string& input, int axis) {
    std::int64_t& slot = wanted_values_[symbol];
    if (slot == unset || slot == value) {
      slot = value;
      return {};
    }
    return error(errc::input_shape,
                 "symbol '" + program_->symbols()[symbol].name + "' has two values")
        .at_tensor(input, axis)
        .between(std::to_string(slot), std::to_string(value));
  }
  static std::int64_t element(const tensor_view& t, std::size_t k) {
    switch (t.type) {
      case dtype::i64: return t.as<std::int64_t>()[k];
      case dtype::i32: return t.as<std::int32_t>()[k];
      case dtype::i16: return t.as<std::int16_t>()[k];
      case dtype::i8: return t.as<std::int8_t>()[k];
      case dtype::u8: return t.as<std::uint8_t>()[k];
      default: return 0;
    }
  }
  status provide_arena() {
    if (options_.memory_budget > 0 && arena_bytes_ > options_.memory_budget)
      return error(errc::budget, "arena needs " + std::to_string(arena_bytes_) +
                                     " bytes, the budget is " +
                                     std::to_string(options_.memory_budget));
    if (!options_.arena.empty()) {
      if (static_cast<std::size_t>(arena_bytes_) > options_.arena.size())
        return error(errc::buffer_too_small, "arena needs " + std::to_string(arena_bytes_) +
                                                 " bytes, got " +
                                                 std::to_string(options_.arena.size()));
      arena_data_ = options_.arena.data();
      return {};
    }
    if (!arena_.reserve(static_cast<std::size_t>(arena_bytes_))) return error(errc::out_of_memory);
    arena_data_ = arena_.data();
    return {};
  }
  void fill_host(const program_region& r) {
    for (const host_value& h : r.host) {
      std::byte* out = host_.data() + h.offset;
      const std::size_t width = bytes_of(h.type);
      for (std::uint32_t i = 0; i < h.count; ++i, out += width) {
        const std::int64_t v = sizes_[h.first + i];
        if (h.type == dtype::f32) {
          const float f = static_cast<float>(std::bit_cast<double>(v));
          std::memcpy(out, &f, sizeof f);
        } else {
          // Integers of any width are the low bytes; float64 is its own bits.
          std::memcpy(out, &v, width);
        }
      }
    }
  }
  void locate(const program_region& r, std::size_t i) {
    const program_tensor& t = r.tensors[i];
    tensor_view& v = views_[i];
    v.type = t.type;
    v.rank = t.rank;
    v.dims = sizes_.data() + t.dims;
    switch (t.kind) {
      case storage_kind::arena: v.data = arena_data_ + offsets_[t.storage]; break;
      case storage_kind::constant: v.data = program_->constants()[t.storage].data(); break;
      case storage_kind::host: v.data = host_.data() + t.storage; break;
      default: break;  // inputs and outputs: at run
    }
  }
  status place_outputs(const program_region& r, std::span<const output_target> targets) {
    if (!targets.empty() && targets.size() != outputs_.size())
      return error(errc::invalid_argument, "run takes one target per output");
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const program_output& o = program_->outputs()[i];
      const program_tensor& t = r.tensors[o.tensor];
      tensor_view& v = outputs_[i];
      v.type = t.type;
      v.rank = t.rank;
      v.dims = sizes_.data() + t.dims;
      const auto bytes = static_cast<std::size_t>(bytes_of(v.type, v.count()));
      const output_target target = targets.empty() ? output_target{} : targets[i];
      switch (target.how) {
        case output_target::protocol::session_owned:
          if (!owned_[i].reserve(bytes)) return error(errc::out_of_memory);
          v.data = owned_[i].data();
          break;
        case output_target::protocol::buffer:
          if (bytes > target.capacity)
            return error(errc::buffer_too_small, "output needs " + std::to_string(bytes) +
                                                     " bytes, the buffer has " +
                                                     std::to_string(target.capacity))
                .at_tensor(o.name);
          v.data = target.data;
          break;
        case output_target::protocol::callback:
          v.data = target.allocate(target.context, i, v.dims, v.rank, v.type, bytes);
          if (v.data == nullptr && bytes > 0) return error(errc::out_of_memory).at_tensor(o.name);
          break;
      }
    }
    return {};
  }
  errc launch(const program_step& s) {
    const std::span<const tensor_view> inputs{operands_.data() + s.input_first, s.input_count};
    const std::span<const tensor_view> outputs{operands_.data() + s.output_first, s.output_count};
    if (s.run == nullptr) {
      tile_call call;
      call.program = &program_->tiles()[s.tile];
      call.inputs = inputs;
      call.outputs = outputs;
      call.pool = options_.pool;
      return program_->run_tile()(call);
    }
    kernel_args args;
    args.state = s.state == no_slot ? nullptr : program_->states()[s.state].data;
    args.inputs = inputs;
    args.outputs = outputs;
    args.pool = options_.pool;
    if (s.workspace != no_slot) args.workspace = arena_data_ + offsets_[s.workspace];
    epilogue_call epilogue;
    if (s.tile != no_slot) {
      epilogue.program = &program_->tiles()[s.tile];
      epilogue.operands = {operands_.data() + s.operand_first, s.operand_count};
      args.epilogue = &epilogue;
    }
    return s.run(args);
  }
  void poison(const program_region& r, std::uint32_t buffer) {
    const std::int64_t bytes = sizes_[r.buffer_bytes + buffer];
    if (bytes > 0)
      std::memset(arena_data_ + offsets_[buffer], 0xff, static_cast<std::size_t>(bytes));
  }

  const program* program_;
  session_options options_;
  memory_block arena_, host_;
  std::byte* arena_data_ = nullptr;
  std::vector<memory_block> owned_;
  std::vector<std::int64_t> symbol_values_, scratch_, sizes_, offsets_, bound_values_,
      wanted_values_;
  std::vector<tensor_view> views_, operands_, outputs_;
  std::int64_t arena_bytes_ = 0;
  std::uint64_t nodes_run_ = 0, groups_run_ = 0;
  bool bound_ = false;
};

}  // namespace sod2
