// What a kernel is to its caller: a row of function pointers, keyed by operator name and version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include <sod2/core/attribute.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/tensor_view.hpp>
#include <sod2/expr/dim.hpp>
#include <sod2/expr/fwd.hpp>
#include <sod2/kernel/fwd.hpp>
#include <sod2/kernel/pool.hpp>

namespace sod2 {

/// What is known of one input or output before any shape is bound.
struct operand_info {
  dtype type = dtype::undefined;  // undefined: an absent optional operand
  int rank = -1;                  // -1 when unknown
  constant_view constant{};       // present if the value is known at compile time
  std::span<const dim> dims{};    // `rank` symbolic dims, or empty
};

struct prepare_args {
  attribute_source attributes{};
  int since_version = 1;  // version of the operator (or the model's opset: both work)
  std::span<const operand_info> inputs{};
  std::span<const operand_info> outputs{};
  const simd_table* simd = nullptr;  // null: the best instruction set of this CPU
};

/// What `prepare` leaves behind for every later run: decoded attributes and packed constants.
/// Immutable after `prepare`, so sessions on different threads share it.
class kernel_state {
 public:
  kernel_state() noexcept = default;
  kernel_state(void* data_, void (*destroy_)(void*), std::int64_t bytes_ = 0,
               std::uint64_t consumed_ = 0) noexcept
      : data(data_), destroy(destroy_), bytes(bytes_), consumed(consumed_) {}
  kernel_state(kernel_state&& other) noexcept
      : data(std::exchange(other.data, nullptr)),
        destroy(std::exchange(other.destroy, nullptr)),
        bytes(other.bytes),
        consumed(other.consumed) {}
  kernel_state& operator=(kernel_state&& other) noexcept {
    std::swap(data, other.data);
    std::swap(destroy, other.destroy);
    std::swap(bytes, other.bytes);
    std::swap(consumed, other.consumed);
    return *this;
  }
  ~kernel_state() {
    if (destroy != nullptr) destroy(data);
  }

  void* data = nullptr;
  void (*destroy)(void*) = nullptr;
  std::int64_t bytes = 0;      // packed constants, counted in weights_bytes
  std::uint64_t consumed = 0;  // bit i: constant input i was packed; a run no longer reads it
};

/// Memory for the characters of strings that a kernel makes. It stays valid until the run after
/// next begins, so that results may be given back as inputs. From one thread at a time.
struct text_source {
  void* context = nullptr;
  char* (*get)(void* context, std::size_t bytes) = nullptr;  // null: out of memory
};

/// One call. Dims of all inputs and outputs are settled and right; buffers do not overlap except as
/// `kernel_row::in_place` allows. Inputs that steer sizes (axes, starts, pads, sizes) are read from
/// `inputs` at run, whether constant or not. Data must be aligned to its element type.
struct kernel_args {
  const void* state = nullptr;  // kernel_state::data
  std::span<const tensor_view> inputs{};
  std::span<const tensor_view> outputs{};
  std::byte* workspace = nullptr;  // aligned to 64; `workspace_bytes` times `pool.threads` bytes
  const epilogue_call* epilogue = nullptr;
  thread_pool_ref pool{};
  /// For outputs whose size depends on data (NonZero, Compress, Unique): element `count_axis` of
  /// output i's dims is an upper bound, the kernel writes the true value to `counts[i]`.
  std::int64_t* counts = nullptr;
  text_source text{};
};

/// Runs; never allocates but through `text`, never throws. Errors are those that only data can
/// cause (index_range, value_range) and `unsupported`.
using kernel_run = errc (*)(const kernel_args&);

struct kernel_row {
  std::string_view domain;  // "" is ai.onnx
  std::string_view name;
  int since = 1;  // first and last operator version that this row implements
  int until = std::numeric_limits<int>::max();
  /// Decodes attributes, checks types and packs constants. Errors: `unsupported`, `bad_attribute`,
  /// `type_mismatch`, `arity`.
  result<kernel_state> (*prepare)(const prepare_args&) = nullptr;
  kernel_run run = nullptr;
  /// Bytes for ONE thread of the pool; null means none. A multiple of 64.
  dim (*workspace_bytes)(dim_context&, const void* state, std::span<const operand_info> inputs,
                         std::span<const operand_info> outputs) = nullptr;
  std::uint32_t in_place = 0;  // bit i: output 0 may overwrite input i
  bool takes_epilogue = false;
};

}  // namespace sod2
