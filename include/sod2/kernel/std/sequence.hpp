// Operators along one axis or over values: CumSum, CumProd, Range, OneHot, TopK, NonZero.
#pragma once

#include <cstdint>

#include <sod2/kernel/std/movement.hpp>
#include <sod2/kernel/std/product.hpp>

namespace sod2::kernel_detail {

// ---- CumSum (11, 14)
// -----------------------------------------------------------------------------

struct cumsum_state {
  bool exclusive = false, reverse = false;
};
inline result<kernel_state> prepare_cumsum(const prepare_args& args) {
  return own(new (std::nothrow) cumsum_state{args.attributes.integer("exclusive", 0) != 0,
                                             args.attributes.integer("reverse", 0) != 0});
}
/// Op is add (CumSum) or mul (CumProd 26).
template <tile_op Op>
errc run_cumulative(const kernel_args& args) {
  const auto& s = state_of<cumsum_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const i64 rank = static_cast<i64>(x.rank);
  i64 axis = integer_at(args.inputs[1], 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return errc::axis_range;
  const i64 outer = product_of(x, 0, idx(axis)), n = x.dims[axis],
            inner = product_of(x, idx(axis) + 1, x.rank);
  errc outcome = errc::unsupported;
  with_storage(x.type, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      using S = typename accumulator<T>::type;
      for (i64 r = 0; r < outer * inner; ++r) {
        const i64 at = r / inner * n * inner + r % inner;
        S sum = Op == tile_op::mul ? 1 : 0;
        for (i64 k = 0; k < n; ++k) {
          const i64 i = at + (s.reverse ? n - 1 - k : k) * inner;
          const S v = widen(x.as<const T>()[i]);
          const S next = binary_value<Op, S>(sum, v);
          y.as<T>()[i] = narrow<T>(s.exclusive ? sum : next);
          sum = next;
        }
      }
      outcome = errc::ok;
    }
  });
  return outcome;
}

// ---- Range (11)
// ----------------------------------------------------------------------------------

inline errc run_range(const kernel_args& args) {
  const tensor_view& y = args.outputs[0];
  const i64 n = y.count();
  errc outcome = errc::unsupported;
  with_number(y.type, [&]<class T>() {
    const T start = *args.inputs[0].as<const T>(), delta = *args.inputs[2].as<const T>();
    for (i64 i = 0; i < n; ++i)
      y.as<T>()[i] = binary_value<tile_op::add, T>(
          start, binary_value<tile_op::mul, T>(static_cast<T>(i), delta));
    outcome = errc::ok;
  });
  return outcome;
}

// ---- OneHot (9, 11)
// ------------------------------------------------------------------------------

inline result<kernel_state> prepare_one_hot(const prepare_args& args) {
  if (args.inputs.size() < 3 || !movable(input_type(args, 2)))
    return error(errc::type_mismatch, "OneHot does not support this element type");
  auto* s = new (std::nothrow) axes_state;
  if (s == nullptr) return error(errc::out_of_memory);
  s->axis = args.attributes.integer("axis", -1);
  return own(s);
}
inline errc run_one_hot(const kernel_args& args) {
  const tensor_view &indices = args.inputs[0], &values = args.inputs[2], &y = args.outputs[0];
  const i64 rank = static_cast<i64>(y.rank);
  i64 axis = state_of<axes_state>(args).axis;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || values.count() != 2) return errc::axis_range;
  const i64 depth = y.dims[axis], inner = product_of(y, idx(axis) + 1, y.rank);
  if (y.count() == 0) return errc::ok;
  return with_size(y.type, [&]<class T>() {
    const T off = values.as<const T>()[0], on = values.as<const T>()[1];
    T* const to = y.as<T>();
    for (i64 i = 0; i < y.count(); ++i) to[i] = off;
    for (i64 i = 0; i < indices.count(); ++i) {
      i64 hot = static_cast<i64>(real_at(indices, i));
      if (hot < 0) hot += depth;
      if (hot >= 0 && hot < depth) to[(i / inner * depth + hot) * inner + i % inner] = on;
    }
    return errc::ok;
  });
}

// ---- TopK (1, 10, 11)
// ----------------------------------------------------------------------------

struct topk_state {
  i64 axis = -1;
  bool largest = true;
};
inline result<kernel_state> prepare_topk(const prepare_args& args) {
  return own(new (std::nothrow) topk_state{args.attributes.integer("axis", -1),
                                           args.attributes.integer("largest", 1) != 0});
}

/// Keeps the k best in a heap that lives in the output itself, worst at the root, then sorts it.
/// Equal values: the lower index wins and comes first. `indices` may be null.
template <class T>
void top_of(const T* x, i64 n, i64 step, i64 k, bool largest, T* values, i64* indices) {
  const auto before = [&](T a, i64 i, T b, i64 j) {
    const auto u = widen(a), v = widen(b);
    if (u != v) return largest ? u > v : u < v;
    return i < j;
  };
  const auto swap_at = [&](i64 a, i64 b) {
    std::swap(values[a * step], values[b * step]);
    if (indices != nullptr) std::swap(indices[a * step], indices[b * step]);
  };
  const auto index_of = [&](i64 a) { return indices != nullptr ? indices[a * step] : 0; };
  const auto worse = [&](i64 a, i64 b) {  // a must sink below b
    return before(values[b * step], index_of(b), values[a * step], index_of(a));
  };
  const auto sift_down = [&](i64 at, i64 size) {
    while (true) {
      i64 worst = at;
      for (i64 child = 2 * at + 1; child <= 2 * at + 2; ++child)
        if (child < size && worse(child, worst)) worst = child;
      if (worst == at) return;
      swap_at(at, worst);
      at = worst;
    }
  };
  for (i64 i = 0; i < k; ++i) {
    values[i * step] = x[i * step];
    if (indices != nullptr) indices[i * step] = i;
  }
  for (i64 i = k / 2; i-- > 0;) sift_down(i, k);
  for (i64 i = k; i < n; ++i)
    if (before(x[i * step], i, values[0], index_of(0))) {
      values[0] = x[i * step];
      if (indices != nullptr) indices[0] = i;
      sift_down(0, k);
    }
  for (i64 size = k; size > 1; --size) {
    swap_at(0, size - 1);
    sift_down(0, size - 1);
  }
}

inline errc run_topk(const kernel_args& args) {
  const auto& s = state_of<topk_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  i64* const where =
      args.outputs.size() > 1 && args.outputs[1].present() ? args.outputs[1].as<i64>() : nullptr;
  const i64 rank = static_cast<i64>(x.rank), axis = s.axis < 0 ? s.axis + rank : s.axis;
  if (axis < 0 || axis >= rank) return errc::axis_range;
  const i64 outer = product_of(x, 0, idx(axis)), n = x.dims[axis],
            inner = product_of(x, idx(axis) + 1, x.rank), k = y.dims[axis];
  if (k > n) return errc::value_range;
  if (!y.present()) return errc::unsupported;
  if (k == 0) return errc::ok;
  errc outcome = errc::unsupported;
  with_storage(x.type, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      parallel_parts(args.pool, outer * inner, 10000 / (n + 1) + 1, [&](i64, i64 begin, i64 end) {
        for (i64 r = begin; r < end; ++r) {
          const i64 o = r / inner, i = r % inner;
          top_of<T>(x.as<const T>() + o * n * inner + i, n, inner, k, s.largest,
                    y.as<T>() + o * k * inner + i,
                    where != nullptr ? where + o * k * inner + i : nullptr);
        }
      });
      outcome = errc::ok;
    }
  });
  return outcome;
}

// ---- NonZero (9, 13)
// -----------------------------------------------------------------------------

/// Output 0 is (rank, count) with count in `counts[0]`; its dim 1 on entry is the capacity.
inline errc run_non_zero(const kernel_args& args) {
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const int rank = x.rank == 0 ? 1 : static_cast<int>(x.rank);
  if (rank > max_rank) return errc::unsupported;
  const i64 total = x.count();
  errc outcome = errc::unsupported;
  with_storage(x.type, [&]<class T>() {
    const T* const from = x.as<const T>();
    i64 n = 0;
    for (i64 i = 0; i < total; ++i) n += widen(from[i]) != 0 ? 1 : 0;
    if (n > y.dims[1]) {
      outcome = errc::buffer_too_small;
      return;
    }
    i64 at[max_rank] = {};
    i64 found = 0;
    i64* const to = y.as<i64>();
    for (i64 i = 0; i < total; ++i) {
      if (widen(from[i]) != 0) {
        for (int d = 0; d < rank; ++d) to[d * n + found] = at[d];
        ++found;
      }
      for (int d = static_cast<int>(x.rank) - 1; d >= 0; --d) {
        if (++at[d] < x.dims[d]) break;
        at[d] = 0;
      }
    }
    if (args.counts != nullptr) args.counts[0] = n;
    outcome = args.counts != nullptr || n == y.dims[1] ? errc::ok : errc::unsupported;
  });
  return outcome;
}

}  // namespace sod2::kernel_detail
