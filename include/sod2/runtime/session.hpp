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
#include <sod2/core/vector.hpp>
#include <sod2/expr/context.hpp>
#include <sod2/kernel/pool.hpp>
#include <sod2/op/constant.hpp>
#include <sod2/op/definition.hpp>
#include <sod2/runtime/buffer.hpp>
#include <sod2/runtime/detail/container.hpp>
#include <sod2/runtime/detail/text_heap.hpp>
#include <sod2/runtime/program.hpp>

namespace sod2 {

struct session_options {
  allocator_ref allocator{};
  /// At most the `threads` that the program was compiled for.
  thread_pool_ref pool{};
  /// Caller-owned arena, 64-byte aligned; `bind` fails with `buffer_too_small` beyond it.
  std::span<std::byte> arena{};
  /// Limit in bytes of the arena, and of each output that the session owns beside it; 0: none.
  /// `bind` and `run` fail with `budget` beyond it.
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
  explicit session(const program& p, session_options options = {});

  /// Binds all symbols, in the order of program::symbols(). Checks ranges, strides and the model's
  /// assertions, evaluates all sizes, lays out the arena. Errors: assertion_failed (or the code of
  /// the assertion), overflow, budget, buffer_too_small, out_of_memory. After an error the session
  /// stays usable and unbound.
  status bind(std::span<const std::int64_t> values);

  /// Binds from the shapes (and, for shape inputs, the values) of the model's inputs. Does nothing
  /// when they are bound already.
  status bind_inputs(std::span<const tensor_view> inputs);

  /// Runs. `inputs`: in the model's order, contiguous, 64-bit-aligned or better; never written.
  /// `targets`: one per output, or empty for session-owned outputs. Results are in `output(i)`.
  /// Errors: those of bind_inputs, buffer_too_small (naming the bytes needed), out_of_memory, and
  /// what kernels report (index_range, value_range).
  status run(std::span<const tensor_view> inputs, std::span<const output_target> targets = {});

  /// Output i of the last run. A sequence or optional is the session's until the next run or bind,
  /// whatever its target says.
  const tensor_view& output(std::size_t i) const { return active().outputs_[i]; }
  /// Any tensor of the root region, meaningful while it is live (for observers).
  const tensor_view& tensor(std::size_t i) const { return active().states_[0].views[i]; }

  bool bound() const { return bound_; }
  /// Bytes of the arena at the current binding; weights and caller's buffers excluded.
  /// What runs have added for sizes that only they know is included.
  std::int64_t arena_bytes() const {
    return active().arena_bytes_ + active().grown_bytes_ + active().elements_.bytes();
  }
  /// Largest sum of live bytes over the steps at the current binding, 64-byte alignment included:
  /// no layout of this order can be smaller.
  std::int64_t lower_bound_bytes() {
    if (active_ > 0) return variants_[active_ - 1].lower_bound_bytes();
    const program_segment& g = program_->root().segments[0];
    return g.layout.lower_bound({states_[0].sizes.data() + g.buffer_bytes, g.buffers});
  }
  /// Bytes and offsets of the arena's buffers at the current binding, for reports.
  std::span<const std::int64_t> buffer_bytes() const {
    const session& s = active();
    const program_segment& g = s.program_->root().segments[0];
    return {s.states_[0].sizes.data() + g.buffer_bytes, g.buffers};
  }
  std::span<const std::int64_t> buffer_offsets() const {
    const session& s = active();
    return {s.states_[0].offsets.data(), s.program_->root().segments[0].buffers};
  }
  /// Sum of all materialised intermediate tensors at the current binding, in bytes.
  std::int64_t intermediate_bytes() const {
    return active().states_[0].sizes[active().program_->root().intermediate_bytes];
  }
  std::uint64_t nodes_run() const { return active().nodes_run_; }
  std::uint64_t groups_run() const { return active().groups_run_; }
  /// Gives the arena back; the next bind takes what it needs.
  void trim() {
    arena_.release();
    for (memory_block& b : blocks_) b.release();
    for (session& v : variants_) v.trim();
    for (detail::container& c : containers_) c.forget();
    elements_.release();
    grown_bytes_ = 0;
    bound_ = false;
  }

 private:
  static constexpr std::int64_t unset = INT64_MIN;

  /// What one region's run leaves; regions never run twice at a time.
  struct region_state {
    std::vector<std::int64_t> sizes, offsets;
    std::vector<std::byte*> bases;     // of the arena's parts, per segment
    std::vector<tensor_view> views;    // of all tensors, once their dims are known
    std::vector<tensor_view> results;  // outputs
    memory_block host;
    std::byte* lent = nullptr;  // workspace of the step that runs the region
    std::int64_t lent_bytes = 0;
  };
  /// A loop or scan between two trips.
  struct loop_state {
    struct stack {
      std::vector<std::int64_t> dims;  // of one slice
      std::byte* base = nullptr;
      std::int64_t bytes = 0;  // of one slice
      std::int64_t axis = 0;
    };
    std::vector<tensor_view> inputs;              // of the body
    std::vector<std::vector<std::int64_t>> dims;  // of carried values, then of slices read
    std::vector<stack> stacks;                    // scan outputs
    std::int64_t trip = 0, trips = -1;            // trips: -1 when only the body decides
    std::int64_t batch = 0, batches = 1;          // Scan-8: samples
    std::int64_t length = 0;                      // Scan-8: slices in each
    std::uint8_t enter = 1, go_on = 1;
    std::uint32_t first = 0;  // output of the body that is the first carried value
  };
  /// Where the outputs of a region go.
  struct sink {
    std::span<const output_target> targets{};  // of the root
    std::uint32_t parent = 0;                  // else: region and step that run it
    const program_step* step = nullptr;
    loop_state* loop = nullptr;
  };

  /// The session of the variant that is bound.
  const session& active() const { return active_ == 0 ? *this : variants_[active_ - 1]; }
  status choose_variant(std::span<const std::int64_t> values) {
    active_ = 0;
    if (variants_.empty() || holds(symbol_values_)) return {};
    for (std::size_t k = 0; k < variants_.size(); ++k) {
      session& v = variants_[k];
      for (std::size_t i = 0; i < values.size(); ++i)
        v.symbol_values_[v.program_->symbols()[i].index] = values[i];
      if (!v.holds(v.symbol_values_)) continue;
      active_ = k + 1;
      return {};
    }
    return error(errc::contradiction, "no outcome of the model's conditions fits these sizes");
  }
  bool holds(std::span<const std::int64_t> symbols) {
    for (const program_guard& g : program_->guards()) {
      std::int64_t v = 0;
      if (g.condition.evaluate(symbols, scratch_, {&v, 1}) != errc::ok || (v != 0) != g.outcome)
        return false;
    }
    return true;
  }
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
  static error failed(errc code, const program_region& r, const program_segment& segment,
                      const std::vector<std::int64_t>& sizes) {
    for (std::uint32_t k : segment.tensors) {
      const program_tensor& t = r.tensors[k];
      for (std::uint32_t i = 0; i < t.rank; ++i)
        if (sizes[t.dims + i] < 0) return error(code).at_tensor(t.name, static_cast<int>(i));
    }
    for (std::uint32_t k : segment.tensors) {
      const program_tensor& t = r.tensors[k];
      std::int64_t bytes = static_cast<std::int64_t>(bytes_of(t.type));
      for (std::uint32_t i = 0; i < t.rank; ++i)
        if (!checked_mul(bytes, sizes[t.dims + i], bytes)) return error(code).at_tensor(t.name);
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
  static status check(const program_check& c, const std::vector<std::int64_t>& sizes) {
    const std::int64_t a = sizes[c.left], b = sizes[c.right];
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
  /// At least `bytes` in block `b`, growing geometrically; `keep` keeps the content.
  status grow(std::uint32_t b, std::int64_t bytes, bool keep = false) {
    if (rehearsing_) {
      if (bytes > reserved_[b].bytes) reserved_[b].bytes = bytes;
      block_data_[b] = arena_data_;
      return {};
    }
    if (b < reserved_.size() && bytes <= reserved_[b].bytes) {
      block_data_[b] = arena_data_ + reserved_[b].offset;
      return {};
    }
    memory_block& block = blocks_[b];
    const auto have = static_cast<std::int64_t>(block.bytes());
    if (bytes > have) {
      const std::int64_t wanted = bytes > 2 * have ? bytes : 2 * have;
      if (options_.memory_budget > 0 &&
          arena_bytes_ + grown_bytes_ + elements_.bytes() - have + wanted > options_.memory_budget)
        return error(errc::budget,
                     "a run needs " + std::to_string(arena_bytes_ + grown_bytes_ - have + wanted) +
                         " bytes, the budget is " + std::to_string(options_.memory_budget));
      memory_block larger(options_.allocator);
      if (!keep) block.release();
      if (!larger.reserve(static_cast<std::size_t>(wanted))) {
        grown_bytes_ -= keep ? 0 : have;
        return error(errc::out_of_memory);
      }
      if (keep && have > 0)
        std::memcpy(larger.data(), block.data(), static_cast<std::size_t>(have));
      block = std::move(larger);
      grown_bytes_ += wanted - have;
    }
    block_data_[b] = block.data();
    return {};
  }

  // ---- segments ----

  /// Evaluates what the symbols bound so far decide, checks it and gives it memory.
  status begin_segment(std::uint32_t region, std::size_t g) {
    const program_region& r = program_->regions()[region];
    const program_segment& segment = r.segments[g];
    region_state& st = states_[region];
    errc evaluated = errc::ok;
    if (g == 0) {
      evaluated = segment.sizes.evaluate(symbol_values_, scratch_, st.sizes);
    } else {
      evaluated = segment.sizes.evaluate(symbol_values_, scratch_, staged_);
      for (std::size_t i = 0; i < segment.targets.size(); ++i)
        st.sizes[segment.targets[i]] = staged_[i];
    }
    // An assertion says more than the failed evaluation of what depends on it.
    for (std::uint32_t k = 0; k < segment.check_count; ++k)
      SOD2_TRY(check(r.checks[segment.check_first + k], st.sizes));
    if (evaluated != errc::ok) return failed(evaluated, r, segment, st.sizes);
    for (std::uint32_t k : segment.tensors) {
      const program_tensor& t = r.tensors[k];
      for (std::uint32_t i = 0; i < t.rank; ++i)
        if (st.sizes[t.dims + i] < 0)
          return error(errc::value_range, "a dimension is negative")
              .at_tensor(t.name, static_cast<int>(i))
              .between(std::to_string(st.sizes[t.dims + i]), "0");
    }
    const std::int64_t bytes =
        segment.layout.evaluate({st.sizes.data() + segment.buffer_bytes, segment.buffers},
                                {st.offsets.data() + segment.buffer_first, segment.buffers});
    if (region == 0 && g == 0) {
      arena_bytes_ = bytes + reserved_bytes_;
      SOD2_TRY(provide_arena());
      st.bases[0] = arena_data_;
    } else if (g == 0 && bytes <= st.lent_bytes) {
      st.bases[0] = st.lent;
    } else if (segment.block != no_slot) {
      SOD2_TRY(grow(segment.block, bytes));
      st.bases[g] = block_data_[segment.block];
    }
    if (!st.host.reserve(r.host_bytes)) return error(errc::out_of_memory);
    for (std::uint32_t k = 0; k < segment.host_count; ++k)
      fill_host(r.host[segment.host_first + k], st);
    for (std::uint32_t k : segment.tensors) {
      const program_tensor& t = r.tensors[k];
      tensor_view& v = st.views[k];
      v.type = t.type;
      v.rank = t.rank;
      v.dims = st.sizes.data() + t.dims;
      switch (t.kind) {
        case storage_kind::arena:
          v.data = st.bases[r.segment_of_buffer[t.storage]] + st.offsets[t.storage];
          break;
        case storage_kind::constant: v.data = program_->constants()[t.storage].data(); break;
        case storage_kind::host: v.data = st.host.data() + t.storage; break;
        default: break;  // what a run brings
      }
    }
    return {};
  }
  static void fill_host(const host_value& h, region_state& st) {
    std::byte* out = st.host.data() + h.offset;
    const std::size_t width = bytes_of(h.type);
    for (std::uint32_t i = 0; i < h.count; ++i, out += width) {
      const std::int64_t v = st.sizes[h.first + i];
      if (h.type == dtype::f32) {
        const float f = static_cast<float>(std::bit_cast<double>(v));
        std::memcpy(out, &f, sizeof f);
      } else {
        // Integers of any width are the low bytes; float64 is its own bits.
        std::memcpy(out, &v, width);
      }
    }
  }
  /// The addresses that this run brings to the tensors of a segment.
  status attach(std::uint32_t region, std::size_t g, std::span<const tensor_view> inputs,
                const sink& out) {
    const program_region& r = program_->regions()[region];
    region_state& st = states_[region];
    for (const program_segment::provided& p : r.segments[g].outputs)
      SOD2_TRY(provide(out, p.output, st.views[p.tensor], st.results[p.output]));
    for (std::uint32_t k : r.segments[g].tensors) {
      const program_tensor& t = r.tensors[k];
      tensor_view& v = st.views[k];
      switch (t.kind) {
        case storage_kind::input: v.data = inputs[t.storage].data; break;
        case storage_kind::output: v.data = st.results[t.storage].data; break;
        case storage_kind::outer: v.data = states_[t.region].views[t.storage].data; break;
        case storage_kind::block: v.data = block_data_[t.storage]; break;
        default: break;
      }
    }
    return {};
  }

  // ---- running ----

  status execute(std::uint32_t region, std::span<const tensor_view> inputs, const sink& out) {
    const program_region& r = program_->regions()[region];
    region_state& st = states_[region];
    if (!r.impossible.empty() && r.steps.empty()) return error(errc::contradiction, r.impossible);
    if (region != 0) {
      for (const program_binding& b : r.entry) SOD2_TRY(bind_symbol(b, inputs[b.operand].shape()));
      SOD2_TRY(begin_segment(region, 0));
    }
    SOD2_TRY(attach(region, 0, inputs, out));
    std::size_t segment = 0;
    for (std::size_t s = 0; s < r.steps.size(); ++s) {
      const program_step& step = r.steps[s];
      const program_binder* binder = step.binder == no_slot ? nullptr : &r.binders[step.binder];
      const auto next_segment = [&]() -> status {
        for (const program_binding& b : binder->bindings)
          SOD2_TRY(named(bind_symbol(b, shapes_[b.operand].view()), step));
        SOD2_TRY(named(begin_segment(region, ++segment), step));
        return attach(region, segment, inputs, out);
      };
      if (binder != nullptr && binder->how != program_binder::mode::control) {
        if (region != 0 || !recall(s)) SOD2_TRY(named(resolve(r, st, step, *binder), step));
        if (binder->how == program_binder::mode::values) SOD2_TRY(next_segment());
      }
      if (step.control != no_slot)
        SOD2_TRY(run_control(region, step));
      else if (step.sequence != no_slot)
        SOD2_TRY(named(run_sequence(region, step), step));
      else if (step.run != nullptr || step.tile != no_slot)
        SOD2_TRY(launch(r, st, step, binder));
      nodes_run_ += step.nodes;
      if (step.kind != group_kind::view) ++groups_run_;
      if (binder != nullptr && binder->how != program_binder::mode::values)
        SOD2_TRY(next_segment());
      if (binder != nullptr || step.control != no_slot) SOD2_TRY(verify(r, st, step));
      if (region == 0 && options_.observer != nullptr)
        options_.observer(options_.observer_context, s);
      if (options_.poison)
        for (std::uint32_t d = 0; d < step.death_count; ++d)
          poison(r, st, r.deaths[step.death_first + d]);
    }
    if (!r.impossible.empty()) return error(errc::contradiction, r.impossible);
    for (const program_copy& c : r.copies) {
      if (const program_tensor& t = r.tensors[c.from]; t.kind == storage_kind::container) {
        SOD2_TRY(hand_on(out, c, t));
        continue;
      }
      const tensor_view& from = st.views[c.from];
      SOD2_TRY(provide(out, c.output, from, st.results[c.output]));
      copy_bytes(st.results[c.output].data, from);
    }
    return {};
  }
  static status named(status s, const program_step& step) {
    if (s) return s;
    return std::move(s).error().at_node(step.name);
  }
  static std::int64_t bytes_of_view(const tensor_view& v) {
    return static_cast<std::int64_t>(bytes_of(v.type, v.count()));
  }
  static void copy_bytes(void* to, const tensor_view& from) {
    if (const std::int64_t bytes = bytes_of_view(from); bytes > 0 && to != from.data)
      std::memcpy(to, from.data, static_cast<std::size_t>(bytes));
  }
  tensor_view operand(const program_region& r, const region_state& st, std::uint32_t at) const {
    return r.operands[at] == no_slot ? tensor_view{} : st.views[r.operands[at]];
  }

  status launch(const program_region& r, const region_state& st, const program_step& s,
                const program_binder* binder) {
    std::size_t n = 0;
    const auto gather = [&](std::uint32_t first, std::uint32_t count) {
      const std::size_t from = n;
      for (std::uint32_t k = 0; k < count; ++k) operands_[n++] = operand(r, st, first + k);
      return std::span<tensor_view>{operands_.data() + from, count};
    };
    const std::span<tensor_view> inputs = gather(s.input_first, s.input_count);
    const std::span<tensor_view> outputs = gather(s.output_first, s.output_count);
    const std::span<tensor_view> epilogue_operands = gather(s.operand_first, s.operand_count);
    const bool counting = binder != nullptr && binder->how == program_binder::mode::counts;
    if (counting) {
      // Room for the most that there can be; the kernel says how much it is.
      counts_.assign(outputs.size(), 0);
      for (std::uint32_t k = 0; k < outputs.size(); ++k) {
        const std::uint32_t t = r.operands[s.output_first + k];
        if (t == no_slot) continue;
        outputs[k].type = r.tensors[t].type;
        outputs[k].rank = static_cast<std::uint32_t>(shapes_[k].size());
        outputs[k].dims = shapes_[k].data();
        SOD2_TRY(grow(binder->block_first + k, bytes_of_view(outputs[k])));
        outputs[k].data = block_data_[binder->block_first + k];
      }
    }
    errc e = errc::ok;
    if (s.run == nullptr) {
      tile_call call;
      call.program = &program_->tiles()[s.tile];
      call.inputs = inputs;
      call.outputs = outputs;
      call.pool = options_.pool;
      e = program_->run_tile()(call);
    } else {
      kernel_args args;
      args.state = s.state == no_slot ? nullptr : program_->states()[s.state].data;
      args.inputs = inputs;
      args.outputs = outputs;
      args.pool = options_.pool;
      args.text = {&text_, [](void* heap, std::size_t bytes) {
                     return static_cast<detail::text_heap*>(heap)->get(bytes);
                   }};
      if (counting) args.counts = counts_.data();
      if (s.workspace != no_slot)
        args.workspace = st.bases[r.segment_of_buffer[s.workspace]] + st.offsets[s.workspace];
      epilogue_call epilogue;
      if (s.tile != no_slot) {
        epilogue.program = &program_->tiles()[s.tile];
        epilogue.operands = epilogue_operands;
        args.epilogue = &epilogue;
      }
      e = s.run(args);
    }
    if (e != errc::ok)
      return error(e, std::string(text_of(e)) + " while running " + s.op).at_node(s.name);
    if (counting)
      for (std::size_t k = 0; k < outputs.size(); ++k)
        if (outputs[k].present() && open_axes_[k] >= 0)
          shapes_[k][static_cast<std::size_t>(open_axes_[k])] = counts_[k];
    return {};
  }
  void poison(const program_region& r, const region_state& st, std::uint32_t buffer) {
    const std::uint32_t g = r.segment_of_buffer[buffer];
    const program_segment& segment = r.segments[g];
    const std::int64_t bytes = st.sizes[segment.buffer_bytes + (buffer - segment.buffer_first)];
    if (bytes > 0)
      std::memset(st.bases[g] + st.offsets[buffer], 0xff, static_cast<std::size_t>(bytes));
  }

  // ---- sizes that a run finds out ----

  status bind_symbol(const program_binding& b, std::span<const std::int64_t> dims);
  /// Runs the operator's transfer function over the concrete inputs: shapes_ receives the outputs'
  /// dims, with upper bounds where only the kernel knows; open_axes_ says where.
  status resolve(const program_region& r, const region_state& st, const program_step& step,
                 const program_binder& binder);
  /// What ran has the sizes that analysis found.
  status verify(const program_region& r, const region_state& st, const program_step& step) const;

  // ---- upper bounds ----

  /// Lays out the root, with room for what its run can come to where a bound is known.
  status begin_root();
  void rehearse();
  /// The sizes that resolve would find at the root's step, where the rehearsal found them already.
  bool recall(std::size_t step);
  /// Does `bind` know the elements of the operand?
  static bool is_settled(const program_region& r, std::uint32_t operand) {
    const storage_kind kind = r.tensors[r.operands[operand]].kind;
    return kind == storage_kind::constant || kind == storage_kind::host;
  }

  // ---- outputs of regions ----

  /// Output of the region that is a sequence or optional.
  status hand_on(const sink& out, const program_copy& c, const program_tensor& from);
  status provide_element(const sink& out, std::uint32_t k, tensor_view& result);
  /// Gives output k, whose shape is that of `shape`, a place.
  status provide(const sink& out, std::uint32_t k, const tensor_view& shape, tensor_view& result);
  status provide_root(const sink& out, std::uint32_t k, tensor_view& result);
  /// The step's own output k: the tensor, where its size was known, else its block.
  status provide_step(const sink& out, std::uint32_t k, std::int64_t bytes, void*& data);
  status provide_trip(const sink& out, std::uint32_t k, tensor_view& result);
  static std::int64_t slice_at(const std::vector<std::uint8_t>& backwards, std::size_t k,
                               const loop_state& loop);
  /// Copies `count` slices from `first` on along `axis` out of a whole tensor, or into it.
  static void copy_part(const tensor_view& whole, std::byte* part, std::size_t axis,
                        std::int64_t first, std::int64_t count, bool out_of);
  /// One slice of a whole tensor whose dim along `axis` is `extent`.
  static void copy_slice(std::byte* whole, std::byte* slice, std::span<const std::int64_t> dims,
                         std::int64_t axis, std::int64_t extent, std::int64_t at, dtype type,
                         bool gather);
  static void copy_parts(std::byte* whole, std::byte* part, std::int64_t outer, std::int64_t inner,
                         std::int64_t extent, std::int64_t first, std::int64_t count, bool out_of);

  // ---- control flow ----

  /// SequenceMap.
  status run_map(std::uint32_t region, const program_step& step, const program_control& c);
  status run_control(std::uint32_t region, const program_step& step);
  status run_branch(std::uint32_t region, const program_step& step, const program_control& c);
  /// Loop and Scan.
  status run_trips(std::uint32_t region, const program_step& step, const program_control& c);
  status open_slices(const program_region& r, const region_state& st, const program_step& step,
                     const program_control& c, loop_state& loop);
  status read_slice(const program_region& r, const region_state& st, const program_step& step,
                    const program_control& c, loop_state& loop, std::size_t k);
  /// Input k of a scan, its sample at hand where they are batched.
  tensor_view scanned(const program_region& r, const region_state& st, const program_step& step,
                      const program_control& c, const loop_state& loop, std::size_t k) const;
  /// The trips of the sample at hand, where their lengths are given.
  status shorten(const program_region& r, const region_state& st, const program_step& step,
                 const program_control& c, loop_state& loop) const;
  /// The results of one sample go to their part of the outputs.
  status close_batch(std::uint32_t region, const program_step& step, const program_control& c,
                     loop_state& loop);
  /// Hands the last carried values on and tells the shapes of all outputs.
  status close_trips(std::uint32_t region, const program_step& step, const program_control& c,
                     loop_state& loop, std::uint32_t initial, std::size_t made);

  // ---- sequences and optionals ----

  status run_sequence(std::uint32_t region, const program_step& step);
  /// A new element of `to`, of the type and dims of `like`, in front of element `at`.
  status add_element(detail::container& to, std::size_t at, const tensor_view& like,
                     tensor_view& made);
  /// Room for the step's tensor output 0, of the type and dims of `like`.
  status open_tensor(const program_region& r, const region_state& st, const program_step& step,
                     const tensor_view& like, tensor_view& made);
  status split_to_sequence(const program_region& r, const region_state& st,
                           const program_step& step, const program_sequence& q,
                           detail::container& to);
  status concat_from_sequence(const program_region& r, const region_state& st,
                              const program_step& step, const program_sequence& q,
                              const detail::container& from);
  detail::container& container_of(const program_region& r, std::uint32_t operand) {
    return containers_[r.tensors[r.operands[operand]].storage];
  }
  /// Bytes that elements of sequences, or an output of the session's own, may take.
  std::int64_t budget_left() const {
    return options_.memory_budget > 0 ? options_.memory_budget - arena_bytes_ - grown_bytes_
                                      : INT64_MAX;
  }
  /// Brings the caller's sequences and optionals, and forgets what the last run left.
  void open_containers(std::span<const tensor_view> inputs);
  static status check_container(const program_input& in, const tensor_view& t);

  const program* program_;
  session_options options_;
  memory_block arena_;
  std::byte* arena_data_ = nullptr;
  std::vector<memory_block> owned_, blocks_;
  detail::text_heap text_;
  std::vector<std::byte*> block_data_;  // where block i is: its own memory, or a loop's
  /// Upper bounds: bytes of the arena that are block i's.
  struct reservation {
    std::int64_t bytes = 0, offset = 0;
  };
  std::vector<reservation> reserved_;
  std::int64_t reserved_bytes_ = 0;
  bool rehearsing_ = false;
  detail::element_pool elements_;
  std::vector<detail::container> containers_;
  std::vector<region_state> states_;
  std::vector<loop_state> loops_;
  std::vector<session> variants_;
  std::size_t active_ = 0;  // 0: this, else one more than the variant
  std::vector<std::int64_t> symbol_values_, scratch_, staged_, bound_values_, wanted_values_;
  std::vector<small_vector<std::int64_t, 8>> shapes_;  // of the outputs of the step at hand
  std::vector<int> open_axes_;
  /// What resolve finds at a step of the root, while that follows from the binding alone.
  struct foreseen {
    bool known = false;
    std::vector<small_vector<std::int64_t, 8>> shapes;
    std::vector<int> open_axes;
  };
  std::vector<foreseen> foreseen_;
  std::vector<std::int64_t> counts_;
  std::vector<tensor_view> operands_, outputs_;
  std::int64_t arena_bytes_ = 0, grown_bytes_ = 0;
  std::uint64_t nodes_run_ = 0, groups_run_ = 0;
  bool bound_ = false;
};

}  // namespace sod2

#ifndef SOD2_INSTANTIATED
#include <sod2/runtime/detail/session.hpp>
#endif
