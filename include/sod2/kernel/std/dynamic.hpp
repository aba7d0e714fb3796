// Operators whose output size only the data decides: Compress, Unique, NonMaxSuppression. On entry
// the dims of outputs are upper bounds; results stand densely by the true count in
// `kernel_args::counts`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <sod2/kernel/std/product.hpp>

namespace sod2::kernel_detail {

/// Reports the true count of output `o`, whose bound is `bound`. Without a place to report to, the
/// bound must be exact.
inline errc report_count(const kernel_args& args, std::size_t o, i64 count, i64 bound) {
  if (count > bound) return errc::buffer_too_small;
  if (args.counts != nullptr) {
    args.counts[o] = count;
    return errc::ok;
  }
  return count == bound ? errc::ok : errc::unsupported;
}

struct optional_axis_state {
  bool along = false;  // attribute axis is set
  i64 axis = 0;
  bool sorted = true;  // Unique
};
inline result<kernel_state> prepare_optional_axis(const prepare_args& args) {
  if (!movable(input_type(args, 0)))
    return error(errc::type_mismatch, "this kernel does not support this element type");
  const attribute_view axis = args.attributes("axis");
  return own(new (std::nothrow)
                 optional_axis_state{axis.kind == attribute_kind::integer, axis.integer,
                                     args.attributes.integer("sorted", 1) != 0});
}

/// A tensor as (outer, n, inner); without an axis as one row of single elements.
struct axis_walk {
  i64 axis = 0, outer = 1, n = 0, inner = 1;
  bool resolve(const optional_axis_state& s, const tensor_view& x) {
    axis = 0;
    n = x.count();
    if (!s.along) return true;
    const i64 rank = static_cast<i64>(x.rank);
    axis = s.axis < 0 ? s.axis + rank : s.axis;
    if (axis < 0 || axis >= rank) return false;
    outer = product_of(x, 0, idx(axis));
    n = x.dims[axis];
    inner = product_of(x, idx(axis) + 1, x.rank);
    return true;
  }
};

// ---- Compress (9, 11)
// ----------------------------------------------------------------------------

/// The slices of x along the axis (or its elements) where the condition holds; conditions past the
/// end count for nothing, a short condition leaves the rest out.
inline errc run_compress(const kernel_args& args) {
  const tensor_view &x = args.inputs[0], &condition = args.inputs[1], &y = args.outputs[0];
  axis_walk w;
  if (!w.resolve(state_of<optional_axis_state>(args), x)) return errc::axis_range;
  if (condition.type != dtype::boolean) return errc::type_mismatch;
  const i64 length = condition.count() < w.n ? condition.count() : w.n;
  const auto* keep = condition.as<const std::uint8_t>();
  i64 count = 0;
  for (i64 i = 0; i < length; ++i) count += keep[i] != 0 ? 1 : 0;
  if (const errc e = report_count(args, 0, count, y.dims[w.axis]); e != errc::ok) return e;
  const i64 bytes = w.inner * static_cast<i64>(bytes_of(x.type));
  if (count == 0 || bytes == 0) return errc::ok;
  const auto* from = x.as<const std::byte>();
  auto* to = y.as<std::byte>();
  for (i64 o = 0; o < w.outer; ++o)
    for (i64 i = 0; i < length; ++i)
      if (keep[i] != 0) {
        std::memcpy(to, from + (o * w.n + i) * bytes, idx(bytes));
        to += bytes;
      }
  return errc::ok;
}

// ---- Unique (11)
// ---------------------------------------------------------------------------------

/// Three-way order of elements; NaN stands last and equals itself.
template <class T>
int order_of(const void* data, i64 a, i64 b) {
  const auto u = widen(static_cast<const T*>(data)[a]), v = widen(static_cast<const T*>(data)[b]);
  if (u < v) return -1;
  if (v < u) return 1;
  if constexpr (is_real<decltype(u + v)>) {
    if (u == v) return 0;
    return (u != u ? 1 : 0) - (v != v ? 1 : 0);
  } else {
    return 0;
  }
}
struct slice_order {
  const void* data = nullptr;
  int (*element)(const void*, i64, i64) = nullptr;
  axis_walk w;
  int operator()(i64 a, i64 b) const {
    for (i64 o = 0; o < w.outer; ++o)
      for (i64 k = 0; k < w.inner; ++k)
        if (const int c = element(data, (o * w.n + a) * w.inner + k, (o * w.n + b) * w.inner + k);
            c != 0)
          return c;
    return 0;
  }
};

/// Two indices for every slice.
inline dim unique_bytes(dim_context& context, const void* state,
                        std::span<const operand_info> inputs, std::span<const operand_info>) {
  const auto& s = *static_cast<const optional_axis_state*>(state);
  if (inputs.empty() || inputs[0].rank != static_cast<int>(inputs[0].dims.size()))
    return context.constant(0);
  const auto dims = inputs[0].dims;
  dim n = context.one();
  if (s.along) {
    const i64 rank = static_cast<i64>(dims.size()), axis = s.axis < 0 ? s.axis + rank : s.axis;
    if (axis < 0 || axis >= rank) return context.constant(0);
    n = dims[idx(axis)];
  } else {
    for (const dim& d : dims) n = context.mul(n, d);
  }
  return context.align_up(context.mul(n, 16), 64);
}

/// Y, and where wanted the index of the first of each, the number of each element's kind, and how
/// often each occurs.
inline errc run_unique(const kernel_args& args) {
  const auto& s = state_of<optional_axis_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  slice_order order;
  axis_walk& w = order.w;
  if (!w.resolve(s, x)) return errc::axis_range;
  order.data = x.data;
  if (!with_storage(x.type, [&]<class T>() { order.element = order_of<T>; }))
    return errc::unsupported;
  if (w.n > 0 && args.workspace == nullptr) return errc::unsupported;
  i64* const sequence = reinterpret_cast<i64*>(args.workspace);
  i64* const first = sequence + w.n;  // the first slice equal to each
  for (i64 i = 0; i < w.n; ++i) sequence[i] = i;
  std::sort(sequence, sequence + w.n, [&](i64 a, i64 b) {
    const int c = order(a, b);
    return c != 0 ? c < 0 : a < b;
  });
  i64 count = 0;
  for (i64 k = 0; k < w.n; ++k) {
    const bool fresh = k == 0 || order(sequence[k - 1], sequence[k]) != 0;
    first[sequence[k]] = fresh ? sequence[k] : first[sequence[k - 1]];
    count += fresh ? 1 : 0;
  }
  const auto output = [&](std::size_t o) {
    return o < args.outputs.size() && args.outputs[o].present() ? args.outputs[o].as<i64>()
                                                                : nullptr;
  };
  i64 *const indices = output(1), *const inverse = output(2), *const counts = output(3);
  if (y.present())
    if (const errc e = report_count(args, 0, count, y.dims[w.axis]); e != errc::ok) return e;
  for (std::size_t o : {std::size_t{1}, std::size_t{3}})
    if (output(o) != nullptr)
      if (const errc e = report_count(args, o, count, args.outputs[o].dims[0]); e != errc::ok)
        return e;
  if (inverse != nullptr && args.counts != nullptr) args.counts[2] = w.n;
  const i64 bytes = w.inner * static_cast<i64>(bytes_of(x.type));
  const auto emit = [&](i64 slice, i64 at) {
    if (y.present() && bytes > 0)
      for (i64 o = 0; o < w.outer; ++o)
        std::memcpy(y.as<std::byte>() + (o * count + at) * bytes,
                    x.as<const std::byte>() + (o * w.n + slice) * bytes, idx(bytes));
    if (indices != nullptr) indices[at] = slice;
    if (counts != nullptr) counts[at] = 0;
  };
  i64 at = -1;
  for (i64 k = 0; k < w.n; ++k) {
    const i64 i = s.sorted ? sequence[k] : k;
    i64 kind = 0;
    if (s.sorted) {
      if (first[i] == i) emit(i, ++at);
      kind = at;
    } else {
      // In order of appearance `sequence` is free again: it numbers the kinds by their first slice.
      if (first[i] == i) {
        emit(i, ++at);
        sequence[i] = at;
      }
      kind = sequence[first[i]];
    }
    if (inverse != nullptr) inverse[i] = kind;
    if (counts != nullptr) ++counts[kind];
  }
  return errc::ok;
}

// ---- NonMaxSuppression (10, 11)
// ------------------------------------------------------------------

struct suppression_state {
  bool centered = false;  // center_point_box: (x, y, width, height) instead of two corners
};
inline result<kernel_state> prepare_suppression(const prepare_args& args) {
  if (args.inputs.size() < 2) return error(errc::arity, "NonMaxSuppression needs two inputs");
  if (input_type(args, 0) != dtype::f32 || input_type(args, 1) != dtype::f32)
    return error(errc::type_mismatch, "NonMaxSuppression works on float32");
  return own(new (std::nothrow)
                 suppression_state{args.attributes.integer("center_point_box", 0) != 0});
}
inline dim suppression_bytes(dim_context& context, const void*,
                             std::span<const operand_info> inputs, std::span<const operand_info>) {
  if (inputs.empty() || inputs[0].dims.size() != 3) return context.constant(0);
  return context.align_up(context.mul(inputs[0].dims[1], 8), 64);
}

/// The corners of a box in any order, or its centre and size.
struct suppression_box {
  float lo[2], hi[2];
  suppression_box(const float* b, bool centered) : lo{}, hi{} {
    for (int i = 0; i < 2; ++i) {
      const float u = centered ? b[i] - b[i + 2] / 2 : b[i];
      const float v = centered ? b[i] + b[i + 2] / 2 : b[i + 2];
      lo[i] = u < v ? u : v;
      hi[i] = u < v ? v : u;
    }
  }
  float area() const { return (hi[0] - lo[0]) * (hi[1] - lo[1]); }
};
/// Intersection over union is above the threshold. Boxes without area overlap nothing.
inline bool overlaps(const suppression_box& a, const suppression_box& b, float threshold) {
  float side[2];
  for (int i = 0; i < 2; ++i) {
    const float lo = a.lo[i] > b.lo[i] ? a.lo[i] : b.lo[i];
    const float hi = a.hi[i] < b.hi[i] ? a.hi[i] : b.hi[i];
    side[i] = hi - lo;
    if (side[i] <= 0) return false;
  }
  const float shared = side[0] * side[1], one = a.area(), two = b.area();
  const float whole = one + two - shared;
  return one > 0 && two > 0 && whole > 0 && shared / whole > threshold;
}

/// boxes (B, N, 4), scores (B, K, N) -> (count, 3): batch, class and box, best score first within a
/// class; equal scores in order of index.
inline errc run_suppression(const kernel_args& args) {
  const auto& s = state_of<suppression_state>(args);
  const tensor_view &boxes = args.inputs[0], &scores = args.inputs[1], &y = args.outputs[0];
  if (boxes.rank != 3 || scores.rank != 3 || boxes.dims[2] != 4) return errc::rank_mismatch;
  const i64 batches = scores.dims[0], classes = scores.dims[1], n = scores.dims[2];
  if (boxes.dims[0] != batches || boxes.dims[1] != n) return errc::dim_mismatch;
  const auto given = [&](std::size_t i) {
    return has_input(args, i) && args.inputs[i].count() > 0;
  };
  i64 limit = given(2) ? integer_at(args.inputs[2], 0) : 0;
  if (limit > n) limit = n;
  const float threshold = given(3) ? static_cast<float>(real_at(args.inputs[3], 0)) : 0.0f;
  const bool floor = given(4);
  const float least = floor ? static_cast<float>(real_at(args.inputs[4], 0)) : 0.0f;
  if (!(threshold >= 0 && threshold <= 1)) return errc::value_range;
  i64* const candidate = reinterpret_cast<i64*>(args.workspace);
  if (n > 0 && candidate == nullptr) return errc::unsupported;
  const i64 capacity = y.dims[0];
  i64 total = 0;
  for (i64 p = 0; p < batches * classes && limit > 0; ++p) {
    const float* score = scores.as<const float>() + p * n;
    const float* box = boxes.as<const float>() + p / classes * n * 4;
    i64 count = 0;
    for (i64 i = 0; i < n; ++i)
      if (!floor || score[i] > least) candidate[count++] = i;
    // NaN scores stand last: an order must be strict.
    std::sort(candidate, candidate + count, [&](i64 a, i64 b) {
      const float u = score[a], v = score[b];
      const bool u_nan = u != u, v_nan = v != v;
      if (u_nan != v_nan) return v_nan;
      if (!u_nan && u != v) return u > v;
      return a < b;
    });
    i64 kept = 0;  // candidate[0, kept) are the selected ones
    for (i64 k = 0; k < count && kept < limit; ++k) {
      const i64 i = candidate[k];
      const suppression_box here(box + 4 * i, s.centered);
      bool free = true;
      for (i64 j = 0; j < kept && free; ++j)
        free = !overlaps(here, suppression_box(box + 4 * candidate[j], s.centered), threshold);
      if (!free) continue;
      candidate[kept++] = i;
      if (total >= capacity) return errc::buffer_too_small;
      i64* const to = y.as<i64>() + total++ * 3;
      to[0] = p / classes;
      to[1] = p % classes;
      to[2] = i;
    }
  }
  return report_count(args, 0, total, capacity);
}

}  // namespace sod2::kernel_detail
