// Operators that move data without computing: by element size, for every element type of 1, 2, 4 or
// 8 bytes.
#pragma once

#include <cstdint>
#include <cstring>

#include <sod2/core/vector.hpp>
#include <sod2/kernel/std/support.hpp>

namespace sod2::kernel_detail {

// ---- strided copy
// --------------------------------------------------------------------------------

/// A copy between two strided arrays over one index space; strides in elements, may be 0 or
/// negative.
struct strided_copy {
  int rank = 0;
  i64 dims[2 * max_rank] = {};
  i64 from[2 * max_rank] = {};
  i64 to[2 * max_rank] = {};

  void add(i64 extent, i64 from_stride, i64 to_stride) {
    if (extent == 1) return;
    if (rank > 0 && from[rank - 1] == from_stride * extent && to[rank - 1] == to_stride * extent) {
      dims[rank - 1] *= extent;
      from[rank - 1] = from_stride;
      to[rank - 1] = to_stride;
      return;
    }
    dims[rank] = extent;
    from[rank] = from_stride;
    to[rank++] = to_stride;
  }
  i64 count() const {
    i64 n = 1;
    for (int d = 0; d < rank; ++d) n *= dims[d];
    return n;
  }
};

template <class T>
void copy_run(const T* x, i64 from, T* y, i64 to, i64 n) {
  if (from == 1 && to == 1) {
    std::memcpy(y, x, idx(n) * sizeof(T));
  } else if (from == 0 && to == 1) {
    const T v = *x;
    for (i64 i = 0; i < n; ++i) y[i] = v;
  } else if (to == 1) {
    for (i64 i = 0; i < n; ++i) y[i] = x[i * from];
  } else {
    for (i64 i = 0; i < n; ++i) y[i * to] = x[i * from];
  }
}

/// A matrix whose rows are contiguous in x and whose columns are contiguous in y, block by block so
/// that both sides use whole cache lines.
template <class T>
void copy_transposed(const T* x, i64 x_step, T* y, i64 y_step, i64 rows, i64 columns) {
  // y[r * y_step + c] = x[r + c * x_step]
  constexpr i64 edge = 16;
  for (i64 r0 = 0; r0 < rows; r0 += edge) {
    const i64 r1 = r0 + edge < rows ? r0 + edge : rows;
    for (i64 c0 = 0; c0 < columns; c0 += edge) {
      const i64 c1 = c0 + edge < columns ? c0 + edge : columns;
      for (i64 r = r0; r < r1; ++r)
        for (i64 c = c0; c < c1; ++c) y[r * y_step + c] = x[r + c * x_step];
    }
  }
}

template <class T>
void run_copy(const strided_copy& copy, const T* x, T* y, const thread_pool_ref& pool) {
  const i64 total = copy.count();
  if (total == 0) return;
  if (copy.rank == 0) {
    *y = *x;
    return;
  }
  const int last = copy.rank - 1;
  // The axis that is contiguous in the source, if it isn't the last one.
  int cross = -1;
  if (copy.to[last] == 1 && copy.from[last] != 0 && copy.from[last] != 1)
    for (int d = 0; d < last; ++d)
      if (copy.from[d] == 1 && copy.dims[d] > 1) cross = d;
  // Axes walked one index at a time; for a transposition the cross axis is cut into strips.
  constexpr i64 strip = 64;
  int axes[2 * max_rank];
  i64 extent[2 * max_rank];
  int rank = 0;
  for (int d = 0; d < last; ++d) {
    axes[rank] = d;
    extent[rank++] = d == cross ? ceil_div(copy.dims[d], strip) : copy.dims[d];
  }
  i64 outer = 1;
  for (int d = 0; d < rank; ++d) outer *= extent[d];
  // One long run still feeds several threads.
  if (rank == 0) {
    parallel_parts(pool, copy.dims[last], 65536, [&](i64, i64 begin, i64 end) {
      copy_run(x + begin * copy.from[last], copy.from[last], y + begin * copy.to[last],
               copy.to[last], end - begin);
    });
    return;
  }
  const i64 per_outer = total / outer > 0 ? total / outer : 1;
  parallel_parts(pool, outer, 65536 / per_outer + 1, [&](i64, i64 begin, i64 end) {
    i64 at[2 * max_rank];
    i64 rest = begin, x_at = 0, y_at = 0;
    const auto scale = [&](int i) { return axes[i] == cross ? strip : i64{1}; };
    for (int d = rank - 1; d >= 0; --d) {
      at[d] = rest % extent[d];
      rest /= extent[d];
      x_at += at[d] * scale(d) * copy.from[axes[d]];
      y_at += at[d] * scale(d) * copy.to[axes[d]];
    }
    for (i64 u = begin; u < end; ++u) {
      if (cross < 0) {
        copy_run(x + x_at, copy.from[last], y + y_at, copy.to[last], copy.dims[last]);
      } else {
        i64 first = 0;
        for (int d = 0; d < rank; ++d)
          if (axes[d] == cross) first = at[d] * strip;
        const i64 left = copy.dims[cross] - first;
        copy_transposed(x + x_at, copy.from[last], y + y_at, copy.to[cross],
                        left < strip ? left : strip, copy.dims[last]);
      }
      for (int d = rank - 1; d >= 0; --d) {
        x_at += scale(d) * copy.from[axes[d]];
        y_at += scale(d) * copy.to[axes[d]];
        if (++at[d] < extent[d]) break;
        x_at -= at[d] * scale(d) * copy.from[axes[d]];
        y_at -= at[d] * scale(d) * copy.to[axes[d]];
        at[d] = 0;
      }
    }
  });
}

inline errc run_copy(const strided_copy& copy, const tensor_view& x, i64 x_at, const tensor_view& y,
                     i64 y_at, const thread_pool_ref& pool) {
  return with_size(y.type, [&]<class T>() {
    run_copy<T>(copy, x.as<const T>() + x_at, y.as<T>() + y_at, pool);
    return errc::ok;
  });
}

// ---- Identity, Reshape, Squeeze, Unsqueeze, Flatten (all versions): copies, normally views
// ---------

inline result<kernel_state> prepare_move(const prepare_args& args) {
  if (!movable(input_type(args, 0)))
    return error(errc::type_mismatch, "element type cannot be moved");
  return kernel_state();
}

inline errc run_flat_copy(const kernel_args& args) {
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.count() != y.count()) return errc::element_count;
  if (x.data == y.data || y.count() == 0) return errc::ok;
  strided_copy copy;
  copy.add(y.count(), 1, 1);
  return run_copy(copy, x, 0, y, 0, args.pool);
}

// ---- Transpose (1, 13, 21)
// -----------------------------------------------------------------------

struct axes_state {
  int count = -1;
  i64 axes[max_rank] = {};
  i64 axis = 0;
};

inline result<kernel_state> prepare_transpose(const prepare_args& args) {
  if (!movable(input_type(args, 0)))
    return error(errc::type_mismatch, "Transpose does not support this element type");
  auto* s = new (std::nothrow) axes_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  const attribute_view perm = args.attributes("perm");
  if (perm.kind == attribute_kind::integers) {
    if (perm.integers.size() > static_cast<std::size_t>(max_rank)) return error(errc::unsupported);
    s->count = static_cast<int>(perm.integers.size());
    for (std::size_t i = 0; i < perm.integers.size(); ++i) s->axes[i] = perm.integers[i];
  }
  return owner;
}

inline errc run_transpose_axes(const kernel_args& args) {
  const auto& s = state_of<axes_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const int rank = static_cast<int>(x.rank);
  if (rank > max_rank || (s.count > 0 && s.count != rank)) return errc::rank_mismatch;
  i64 from[max_rank], to[max_rank];
  dense_strides(x.shape(), from);
  dense_strides(y.shape(), to);
  strided_copy copy;
  for (int d = 0; d < rank; ++d) {
    const i64 axis = s.count > 0 ? s.axes[d] : rank - 1 - d;
    if (axis < 0 || axis >= rank) return errc::axis_range;
    copy.add(x.dims[axis], from[axis], to[d]);
  }
  return run_copy(copy, x, 0, y, 0, args.pool);
}

// ---- Concat (1, 4, 11, 13), Split (1, 2, 11, 13, 18)
// ---------------------------------------------

inline result<kernel_state> prepare_concat(const prepare_args& args) {
  if (!movable(input_type(args, 0)))
    return error(errc::type_mismatch, "Concat does not support this element type");
  auto* s = new (std::nothrow) axes_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  const attribute_view axis = args.attributes("axis");
  if (axis.kind == attribute_kind::none && args.since_version >= 4)
    return error(errc::missing_attribute, "Concat needs 'axis'");
  s->axis = args.attributes.integer("axis", 1);
  return owner;
}

inline errc run_concat(const kernel_args& args) {
  const auto& s = state_of<axes_state>(args);
  const tensor_view& y = args.outputs[0];
  const i64 rank = static_cast<i64>(y.rank), axis = s.axis < 0 ? s.axis + rank : s.axis;
  if (axis < 0 || axis >= rank) return errc::axis_range;
  const i64 outer = product_of(y, 0, idx(axis)), inner = product_of(y, idx(axis) + 1, y.rank);
  const i64 row = y.dims[axis] * inner;
  i64 at = 0;
  for (const tensor_view& x : args.inputs) {
    if (static_cast<i64>(x.rank) != rank) return errc::rank_mismatch;
    const i64 width = x.dims[axis] * inner;
    if (at + width > row) return errc::dim_mismatch;
    strided_copy copy;
    copy.add(outer, width, row);
    copy.add(width, 1, 1);
    if (const errc e = run_copy(copy, x, 0, y, at, args.pool); e != errc::ok) return e;
    at += width;
  }
  return errc::ok;
}

struct split_state {
  i64 axis = 0;
  i64 parts = 1;  // equal pieces where nothing states their sizes
  vector<i64> sizes;
};
inline result<kernel_state> prepare_split(const prepare_args& args) {
  if (!movable(input_type(args, 0)))
    return error(errc::type_mismatch, "Split does not support this element type");
  auto* s = new (std::nothrow) split_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  s->axis = args.attributes.integer("axis", 0);
  s->parts = args.attributes.integer("num_outputs", static_cast<i64>(args.outputs.size()));
  if (s->parts < 1) return error(errc::bad_attribute, "num_outputs must be positive");
  for (i64 n : args.attributes.integers("split")) s->sizes.push_back(n);
  return owner;
}

inline errc run_split(const kernel_args& args) {
  const auto& s = state_of<split_state>(args);
  const tensor_view& x = args.inputs[0];
  const i64 rank = static_cast<i64>(x.rank), axis = s.axis < 0 ? s.axis + rank : s.axis;
  if (axis < 0 || axis >= rank) return errc::axis_range;
  const i64 outer = product_of(x, 0, idx(axis)), inner = product_of(x, idx(axis) + 1, x.rank);
  const i64 row = x.dims[axis] * inner;
  i64 at = 0;
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    const tensor_view& y = args.outputs[i];
    if (!y.present()) {  // skipped, but it takes its place
      if (has_input(args, 1) && static_cast<i64>(i) < args.inputs[1].count())
        at += integer_at(args.inputs[1], static_cast<i64>(i)) * inner;
      else
        at += (i < s.sizes.size() ? s.sizes[i] : ceil_div(x.dims[axis], s.parts)) * inner;
      continue;
    }
    const i64 width = y.dims[axis] * inner;
    if (at + width > row) return errc::dim_mismatch;
    strided_copy copy;
    copy.add(outer, row, width);
    copy.add(width, 1, 1);
    if (const errc e = run_copy(copy, x, at, y, 0, args.pool); e != errc::ok) return e;
    at += width;
  }
  return errc::ok;
}

// ---- Slice (1, 10, 11, 13)
// -----------------------------------------------------------------------

struct slice_state {
  bool attributes = false;
  int count = 0;
  i64 starts[max_rank] = {};
  int axis_count = 0;
  i64 axes[max_rank] = {};
};

inline result<kernel_state> prepare_slice(const prepare_args& args) {
  if (!movable(input_type(args, 0)))
    return error(errc::type_mismatch, "Slice does not support this element type");
  auto* s = new (std::nothrow) slice_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  if (args.since_version < 10) {
    const auto starts = args.attributes.integers("starts"), axes = args.attributes.integers("axes");
    if (starts.size() > static_cast<std::size_t>(max_rank) ||
        axes.size() > static_cast<std::size_t>(max_rank))
      return error(errc::unsupported);
    s->attributes = true;
    s->count = static_cast<int>(starts.size());
    for (std::size_t i = 0; i < starts.size(); ++i) s->starts[i] = starts[i];
    s->axis_count = static_cast<int>(axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) s->axes[i] = axes[i];
  }
  return owner;
}

inline errc run_slice(const kernel_args& args) {
  const auto& s = state_of<slice_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const int rank = static_cast<int>(x.rank);
  if (rank > max_rank || y.rank != x.rank) return errc::rank_mismatch;
  if (y.count() == 0) return errc::ok;
  i64 start[max_rank] = {}, step[max_rank];
  for (i64& v : step) v = 1;
  const bool has_axes = s.attributes ? s.axis_count > 0 : has_input(args, 3);
  const i64 n = s.attributes ? s.count : args.inputs[1].count();
  for (i64 i = 0; i < n; ++i) {
    i64 axis = i;
    if (has_axes) axis = s.attributes ? s.axes[i] : integer_at(args.inputs[3], i);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return errc::axis_range;
    i64 from = s.attributes ? s.starts[i] : integer_at(args.inputs[1], i);
    const i64 by = !s.attributes && has_input(args, 4) ? integer_at(args.inputs[4], i) : 1;
    if (by == 0) return errc::value_range;
    const i64 extent = x.dims[axis];
    if (from < 0) from += extent;
    const i64 top = by > 0 ? extent : extent - 1;
    from = from < 0 ? 0 : from > top ? top : from;
    // The output's dim already says where the slice ends; it must lie inside the input.
    const i64 end = from + (y.dims[axis] - 1) * by;
    if (end < 0 || end >= extent) return errc::index_range;
    start[axis] = from;
    step[axis] = by;
  }
  i64 from[max_rank], to[max_rank];
  dense_strides(x.shape(), from);
  dense_strides(y.shape(), to);
  strided_copy copy;
  i64 at = 0;
  for (int d = 0; d < rank; ++d) {
    if (start[d] + y.dims[d] > x.dims[d] && step[d] == 1) return errc::index_range;
    at += start[d] * from[d];
    copy.add(y.dims[d], from[d] * step[d], to[d]);
  }
  return run_copy(copy, x, at, y, 0, args.pool);
}

// ---- Expand (8, 13), Tile (6, 13)
// ----------------------------------------------------------------

inline errc run_expand(const kernel_args& args) {
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const int rank = static_cast<int>(y.rank), shift = rank - static_cast<int>(x.rank);
  if (rank > max_rank || shift < 0) return errc::rank_mismatch;
  i64 from[max_rank], to[max_rank];
  dense_strides(x.shape(), from);
  dense_strides(y.shape(), to);
  strided_copy copy;
  for (int d = 0; d < rank; ++d) {
    const bool own_axis = d >= shift && x.dims[d - shift] != 1;
    if (own_axis && x.dims[d - shift] != y.dims[d]) return errc::broadcast;
    copy.add(y.dims[d], own_axis ? from[d - shift] : 0, to[d]);
  }
  return run_copy(copy, x, 0, y, 0, args.pool);
}

inline errc run_tile_operator(const kernel_args& args) {
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const int rank = static_cast<int>(x.rank);
  if (rank > max_rank || y.rank != x.rank) return errc::rank_mismatch;
  if (y.count() == 0) return errc::ok;
  i64 from[max_rank], to[max_rank];
  dense_strides(x.shape(), from);
  dense_strides(y.shape(), to);
  strided_copy copy;
  for (int d = 0; d < rank; ++d) {
    if (y.dims[d] % x.dims[d] != 0) return errc::dim_mismatch;
    copy.add(y.dims[d] / x.dims[d], 0, to[d] * x.dims[d]);
    copy.add(x.dims[d], from[d], to[d]);
  }
  return run_copy(copy, x, 0, y, 0, args.pool);
}

// ---- DepthToSpace (1, 11, 13), SpaceToDepth (1, 13)
// ----------------------------------------------

struct block_state {
  i64 block = 1;
  bool crd = false;
};
inline result<kernel_state> prepare_block(const prepare_args& args) {
  const i64 block = args.attributes.integer("blocksize", 0);
  if (block < 1) return error(errc::bad_attribute, "blocksize below 1");
  return own(new (std::nothrow) block_state{block, args.attributes.string("mode", "DCR") == "CRD"});
}

inline errc run_depth_to_space(const kernel_args& args) {
  const auto& s = state_of<block_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.rank != 4 || y.rank != 4) return errc::rank_mismatch;
  const i64 b = s.block, n = x.dims[0], c = y.dims[1], h = x.dims[2], w = x.dims[3];
  if (c * b * b != x.dims[1] || y.dims[2] != h * b || y.dims[3] != w * b) return errc::divisibility;
  // Source axes: DCR (b, b, c, h, w), CRD (c, b, b, h, w); target: c, h, b, w, b.
  const i64 plane = h * w;
  const i64 channel = s.crd ? b * b * plane : plane;
  const i64 block_y = s.crd ? b * plane : b * c * plane, block_x = s.crd ? plane : c * plane;
  strided_copy copy;
  copy.add(n, x.dims[1] * plane, x.dims[1] * plane);
  copy.add(c, channel, plane * b * b);
  copy.add(h, w, b * w * b);
  copy.add(b, block_y, w * b);
  copy.add(w, 1, b);
  copy.add(b, block_x, 1);
  return run_copy(copy, x, 0, y, 0, args.pool);
}

inline errc run_space_to_depth(const kernel_args& args) {
  const auto& s = state_of<block_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.rank != 4 || y.rank != 4) return errc::rank_mismatch;
  const i64 b = s.block, n = x.dims[0], c = x.dims[1], h = y.dims[2], w = y.dims[3];
  if (y.dims[1] != c * b * b || x.dims[2] != h * b || x.dims[3] != w * b) return errc::divisibility;
  // Target axes: DCR (b, b, c, h, w), CRD (c, b, b, h, w).
  const i64 plane = h * w, wide = w * b, channel = s.crd ? b * b * plane : plane;
  const i64 block_y = s.crd ? b * plane : b * c * plane, block_x = s.crd ? plane : c * plane;
  strided_copy copy;
  copy.add(n, c * plane * b * b, c * plane * b * b);
  copy.add(b, wide, block_y);
  copy.add(b, 1, block_x);
  copy.add(c, plane * b * b, channel);
  copy.add(h, wide * b, w);
  copy.add(w, b, 1);
  return run_copy(copy, x, 0, y, 0, args.pool);
}

// ---- Gather (1, 11, 13), GatherElements (11, 13), GatherND (11, 12, 13)
// --------------------------

inline result<kernel_state> prepare_axis(const prepare_args& args) {
  if (!movable(input_type(args, 0)))
    return error(errc::type_mismatch, "element type cannot be moved");
  auto* s = new (std::nothrow) axes_state;
  if (s == nullptr) return error(errc::out_of_memory);
  s->axis = args.attributes.integer("axis", 0);
  return own(s);
}

inline errc run_gather(const kernel_args& args) {
  const auto& s = state_of<axes_state>(args);
  const tensor_view &x = args.inputs[0], &indices = args.inputs[1], &y = args.outputs[0];
  const i64 rank = static_cast<i64>(x.rank), axis = s.axis < 0 ? s.axis + rank : s.axis;
  if (axis < 0 || axis >= rank) return errc::axis_range;
  const i64 outer = product_of(x, 0, idx(axis)), n = x.dims[axis],
            inner = product_of(x, idx(axis) + 1, x.rank), count = indices.count();
  if (outer * count * inner == 0) return errc::ok;
  for (i64 i = 0; i < count; ++i) {
    const i64 at = integer_at(indices, i);
    if (at < -n || at >= n) return errc::index_range;
  }
  return with_size(x.type, [&]<class T>() {
    const T* const from = x.as<const T>();
    T* const to = y.as<T>();
    parallel_parts(args.pool, outer * count, 32768 / inner + 1, [&](i64, i64 begin, i64 end) {
      for (i64 u = begin; u < end; ++u) {
        i64 at = integer_at(indices, u % count);
        if (at < 0) at += n;
        copy_run(from + (u / count * n + at) * inner, 1, to + u * inner, 1, inner);
      }
    });
    return errc::ok;
  });
}

inline errc run_gather_elements(const kernel_args& args) {
  const auto& s = state_of<axes_state>(args);
  const tensor_view &x = args.inputs[0], &indices = args.inputs[1], &y = args.outputs[0];
  const int rank = static_cast<int>(x.rank);
  const i64 axis = s.axis < 0 ? s.axis + rank : s.axis;
  if (axis < 0 || axis >= rank || rank > max_rank) return errc::axis_range;
  i64 stride[max_rank];
  dense_strides(x.shape(), stride);
  const i64 n = x.dims[axis], total = y.count();
  return with_size(x.type, [&]<class T>() {
    i64 at[max_rank] = {};
    for (i64 i = 0; i < total; ++i) {
      i64 index = integer_at(indices, i);
      if (index < 0) index += n;
      if (index < 0 || index >= n) return errc::index_range;
      i64 from = index * stride[axis];
      for (int d = 0; d < rank; ++d)
        if (d != axis) from += at[d] * stride[d];
      y.as<T>()[i] = x.as<const T>()[from];
      for (int d = rank - 1; d >= 0; --d) {
        if (++at[d] < y.dims[d]) break;
        at[d] = 0;
      }
    }
    return errc::ok;
  });
}

inline result<kernel_state> prepare_gather_nd(const prepare_args& args) {
  if (!movable(input_type(args, 0)))
    return error(errc::type_mismatch, "GatherND does not support this element type");
  auto* s = new (std::nothrow) axes_state;
  if (s == nullptr) return error(errc::out_of_memory);
  s->axis = args.attributes.integer("batch_dims", 0);
  return own(s);
}

inline errc run_gather_nd(const kernel_args& args) {
  const i64 batch_dims = state_of<axes_state>(args).axis;
  const tensor_view &x = args.inputs[0], &indices = args.inputs[1], &y = args.outputs[0];
  const i64 rank = static_cast<i64>(x.rank);
  if (indices.rank == 0) return errc::rank_mismatch;
  const i64 depth = indices.dims[indices.rank - 1];
  if (batch_dims < 0 || batch_dims + depth > rank || batch_dims >= static_cast<i64>(indices.rank))
    return errc::rank_mismatch;
  const i64 batches = product_of(x, 0, idx(batch_dims));
  const i64 rows = product_of(indices, idx(batch_dims), indices.rank - 1);
  const i64 inner = product_of(x, idx(batch_dims + depth), x.rank);
  const i64 batch_size = product_of(x, idx(batch_dims), x.rank);
  if (batches * rows * inner == 0) return errc::ok;
  return with_size(x.type, [&]<class T>() {
    for (i64 r = 0; r < batches * rows; ++r) {
      i64 from = 0;
      for (i64 d = 0; d < depth; ++d) {
        const i64 n = x.dims[batch_dims + d];
        i64 index = integer_at(indices, r * depth + d);
        if (index < 0) index += n;
        if (index < 0 || index >= n) return errc::index_range;
        from = from * n + index;
      }
      copy_run(x.as<const T>() + r / rows * batch_size + from * inner, 1, y.as<T>() + r * inner, 1,
               inner);
    }
    return errc::ok;
  });
}

// ---- ScatterElements, Scatter (9, 11, 13, 16, 18), ScatterND (11, 13, 16, 18)
// --------------------

enum class scatter_reduction : std::uint8_t { none, add, mul, max, min };

struct scatter_state {
  i64 axis = 0;
  scatter_reduction reduction = scatter_reduction::none;
};

inline result<kernel_state> prepare_scatter(const prepare_args& args) {
  if (!movable(input_type(args, 0)))
    return error(errc::type_mismatch, "Scatter does not support this element type");
  const std::string_view mode = args.attributes.string("reduction", "none");
  scatter_reduction r = scatter_reduction::none;
  if (mode == "add")
    r = scatter_reduction::add;
  else if (mode == "mul")
    r = scatter_reduction::mul;
  else if (mode == "max")
    r = scatter_reduction::max;
  else if (mode == "min")
    r = scatter_reduction::min;
  else if (mode != "none")
    return error(errc::bad_attribute, "unknown reduction");
  return own(new (std::nothrow) scatter_state{args.attributes.integer("axis", 0), r});
}

template <class T>
void scatter_value(T& to, T v, scatter_reduction r) {
  if constexpr (std::is_same_v<T, two_words>) {
    to = v;  // only moved
  } else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, brain>) {
    float a = to_float(to);
    scatter_value(a, to_float(v), r);
    if constexpr (std::is_same_v<T, half>)
      to = to_half(a);
    else
      to = to_brain(a);
  } else if constexpr (std::is_same_v<T, bool>) {
    switch (r) {
      case scatter_reduction::none: to = v; break;
      case scatter_reduction::add:
      case scatter_reduction::max: to = to || v; break;
      case scatter_reduction::mul:
      case scatter_reduction::min: to = to && v; break;
    }
  } else {
    switch (r) {
      case scatter_reduction::none: to = v; break;
      case scatter_reduction::add: to = binary_value<tile_op::add, T>(to, v); break;
      case scatter_reduction::mul: to = binary_value<tile_op::mul, T>(to, v); break;
      case scatter_reduction::max: to = binary_value<tile_op::max, T>(to, v); break;
      case scatter_reduction::min: to = binary_value<tile_op::min, T>(to, v); break;
    }
  }
}

/// Calls f for the arithmetic type when values are combined, for any type of that size otherwise.
template <class F>
errc with_scatter_type(dtype type, scatter_reduction r, F&& f) {
  if (r == scatter_reduction::none) return with_size(type, f);
  errc outcome = errc::unsupported;
  with_storage(type, [&]<class T>() { outcome = f.template operator()<T>(); });
  return outcome;
}

inline errc run_scatter_elements(const kernel_args& args) {
  const auto& s = state_of<scatter_state>(args);
  const tensor_view &x = args.inputs[0], &indices = args.inputs[1], &updates = args.inputs[2];
  const tensor_view& y = args.outputs[0];
  const int rank = static_cast<int>(x.rank);
  const i64 axis = s.axis < 0 ? s.axis + rank : s.axis;
  if (axis < 0 || axis >= rank || rank > max_rank) return errc::axis_range;
  if (const errc e = run_flat_copy(args); e != errc::ok) return e;
  i64 stride[max_rank];
  dense_strides(x.shape(), stride);
  const i64 n = x.dims[axis], total = indices.count();
  return with_scatter_type(x.type, s.reduction, [&]<class T>() {
    i64 at[max_rank] = {};
    for (i64 i = 0; i < total; ++i) {
      i64 index = integer_at(indices, i);
      if (index < 0) index += n;
      if (index < 0 || index >= n) return errc::index_range;
      i64 to = index * stride[axis];
      for (int d = 0; d < rank; ++d)
        if (d != axis) to += at[d] * stride[d];
      scatter_value<T>(y.as<T>()[to], updates.as<const T>()[i], s.reduction);
      for (int d = rank - 1; d >= 0; --d) {
        if (++at[d] < indices.dims[d]) break;
        at[d] = 0;
      }
    }
    return errc::ok;
  });
}

inline errc run_scatter_nd(const kernel_args& args) {
  const auto& s = state_of<scatter_state>(args);
  const tensor_view &x = args.inputs[0], &indices = args.inputs[1], &updates = args.inputs[2];
  const tensor_view& y = args.outputs[0];
  if (indices.rank == 0) return errc::rank_mismatch;
  const i64 depth = indices.dims[indices.rank - 1];
  if (depth > static_cast<i64>(x.rank)) return errc::rank_mismatch;
  if (const errc e = run_flat_copy(args); e != errc::ok) return e;
  const i64 rows = product_of(indices, 0, indices.rank - 1);
  const i64 inner = product_of(x, idx(depth), x.rank);
  if (updates.count() < rows * inner) return errc::dim_mismatch;
  return with_scatter_type(x.type, s.reduction, [&]<class T>() {
    for (i64 r = 0; r < rows; ++r) {
      i64 to = 0;
      for (i64 d = 0; d < depth; ++d) {
        const i64 n = x.dims[d];
        i64 index = integer_at(indices, r * depth + d);
        if (index < 0) index += n;
        if (index < 0 || index >= n) return errc::index_range;
        to = to * n + index;
      }
      for (i64 i = 0; i < inner; ++i)
        scatter_value<T>(y.as<T>()[to * inner + i], updates.as<const T>()[r * inner + i],
                         s.reduction);
    }
    return errc::ok;
  });
}

// ---- Pad (1, 2, 11, 13, 18, 19)
// ------------------------------------------------------------------

enum class pad_mode : std::uint8_t { constant, reflect, edge, wrap };

struct pad_state {
  pad_mode mode = pad_mode::constant;
  bool attributes = false;
  int rank = 0;
  i64 begin[max_rank] = {};
  double value = 0;
};

inline result<kernel_state> prepare_pad(const prepare_args& args) {
  if (!movable(input_type(args, 0)))
    return error(errc::type_mismatch, "Pad does not support this element type");
  auto* s = new (std::nothrow) pad_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  const std::string_view mode = args.attributes.string("mode", "constant");
  if (mode == "reflect")
    s->mode = pad_mode::reflect;
  else if (mode == "edge")
    s->mode = pad_mode::edge;
  else if (mode == "wrap")
    s->mode = pad_mode::wrap;
  else if (mode != "constant")
    return error(errc::bad_attribute, "unknown Pad mode");
  if (args.since_version < 11) {
    const auto pads = args.attributes.integers(args.since_version < 2 ? "paddings" : "pads");
    if (pads.size() % 2 != 0 || pads.size() / 2 > static_cast<std::size_t>(max_rank))
      return error(errc::bad_attribute, "pads have a wrong length");
    s->attributes = true;
    s->rank = static_cast<int>(pads.size() / 2);
    for (std::size_t i = 0; i < pads.size() / 2; ++i) s->begin[i] = pads[i];
    s->value = args.attributes.real("value", 0);
  }
  return owner;
}

/// Input index of output index o - begin, for the modes that read inside; requires n >= 1.
inline i64 pad_source(pad_mode mode, i64 at, i64 n) {
  switch (mode) {
    case pad_mode::edge: return at < 0 ? 0 : at >= n ? n - 1 : at;
    case pad_mode::wrap: return floor_mod(at, n);
    default: {  // reflect without repeating the edge
      if (n == 1) return 0;
      const i64 period = 2 * (n - 1), r = floor_mod(at, period);
      return r < n ? r : period - r;
    }
  }
}

inline errc run_pad(const kernel_args& args) {
  const auto& s = state_of<pad_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const int rank = static_cast<int>(x.rank);
  if (rank > max_rank || y.rank != x.rank) return errc::rank_mismatch;
  i64 begin[max_rank] = {};
  if (s.attributes) {
    if (s.rank != rank) return errc::rank_mismatch;
    for (int d = 0; d < rank; ++d) begin[d] = s.begin[d];
  } else {
    const i64 n = args.inputs[1].count() / 2;
    const bool axes = has_input(args, 3);
    if (!axes && n != rank) return errc::rank_mismatch;
    for (i64 i = 0; i < n; ++i) {
      i64 axis = axes ? integer_at(args.inputs[3], i) : i;
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) return errc::axis_range;
      begin[axis] = integer_at(args.inputs[1], i);
    }
  }
  if (y.count() == 0) return errc::ok;
  i64 from[max_rank], to[max_rank];
  dense_strides(x.shape(), from);
  dense_strides(y.shape(), to);
  if (s.mode == pad_mode::constant) {
    alignas(8) std::byte value[16] = {};
    if (!s.attributes && has_input(args, 2))
      std::memcpy(value, args.inputs[2].data, bytes_of(y.type));
    else if (s.value != 0)
      with_storage(y.type, [&]<class T>() {
        const T v = convert_value<T>(s.value);
        std::memcpy(value, &v, sizeof v);
      });
    strided_copy copy;
    i64 x_at = 0, y_at = 0;
    bool whole = true;
    for (int d = 0; d < rank; ++d) {
      const i64 lo = begin[d] > 0 ? begin[d] : 0;  // first output index that reads the input
      i64 hi = x.dims[d] + begin[d];
      if (hi > y.dims[d]) hi = y.dims[d];
      const i64 n = hi > lo ? hi - lo : 0;
      whole = whole && n == y.dims[d];
      x_at += (lo - begin[d]) * from[d];
      y_at += lo * to[d];
      copy.add(n, from[d], to[d]);
    }
    return with_size(y.type, [&]<class T>() {
      T v;
      std::memcpy(&v, value, sizeof v);
      if (!whole) {
        strided_copy fill;
        fill.add(y.count(), 0, 1);
        run_copy<T>(fill, &v, y.as<T>(), args.pool);
      }
      if (copy.count() > 0) run_copy<T>(copy, x.as<const T>() + x_at, y.as<T>() + y_at, args.pool);
      return errc::ok;
    });
  }
  for (int d = 0; d < rank; ++d)
    if (x.dims[d] == 0) return errc::value_range;
  if (rank == 0) return run_flat_copy(args);
  const int last = rank - 1;
  const i64 width = y.dims[last], n = x.dims[last], shift = begin[last];
  const i64 lo = shift > 0 ? (shift < width ? shift : width) : 0;
  i64 hi = n + shift;
  hi = hi < lo ? lo : hi > width ? width : hi;
  return with_size(y.type, [&]<class T>() {
    parallel_parts(args.pool, y.count() / width, 32768 / width + 1, [&](i64, i64 first, i64 stop) {
      for (i64 r = first; r < stop; ++r) {
        i64 rest = r, at = 0;
        for (int d = last - 1; d >= 0; --d) {
          at += pad_source(s.mode, rest % y.dims[d] - begin[d], x.dims[d]) * from[d];
          rest /= y.dims[d];
        }
        const T* const a = x.as<const T>() + at;
        T* const b = y.as<T>() + r * width;
        for (i64 i = 0; i < lo; ++i) b[i] = a[pad_source(s.mode, i - shift, n)];
        if (hi > lo) copy_run(a + lo - shift, 1, b + lo, 1, hi - lo);
        for (i64 i = hi; i < width; ++i) b[i] = a[pad_source(s.mode, i - shift, n)];
      }
    });
    return errc::ok;
  });
}

// ---- Shape (1, 13, 15), Size (1), ConstantOfShape (9), Trilu (14)
// --------------------------------

inline result<kernel_state> prepare_shape(const prepare_args& args) {
  auto* s = new (std::nothrow) axes_state;
  if (s == nullptr) return error(errc::out_of_memory);
  s->axis = args.attributes.integer("start", 0);
  return own(s);
}
inline errc run_shape(const kernel_args& args) {
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const i64 rank = static_cast<i64>(x.rank);
  i64 start = state_of<axes_state>(args).axis;
  if (start < 0) start += rank;
  start = start < 0 ? 0 : start > rank ? rank : start;
  for (i64 i = 0; i < y.count(); ++i) {
    if (start + i >= rank) return errc::axis_range;
    y.as<i64>()[i] = x.dims[start + i];
  }
  return errc::ok;
}
inline errc run_size(const kernel_args& args) {
  args.outputs[0].as<i64>()[0] = args.inputs[0].count();
  return errc::ok;
}
inline result<kernel_state> prepare_any(const prepare_args&) { return kernel_state(); }

struct fill_state {
  alignas(8) std::byte value[16] = {};
  dtype type = dtype::f32;
};
inline result<kernel_state> prepare_constant_of_shape(const prepare_args& args) {
  auto* s = new (std::nothrow) fill_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  const attribute_view v = args.attributes("value");
  if (v.kind == attribute_kind::tensor && v.tensor.present()) {
    s->type = v.tensor.type;
    if (!movable(s->type) || v.tensor.bytes < bytes_of(s->type))
      return error(errc::bad_attribute, "ConstantOfShape has an unusable value");
    std::memcpy(s->value, v.tensor.data, bytes_of(s->type));
  }
  return owner;
}
inline errc run_constant_of_shape(const kernel_args& args) {
  const auto& s = state_of<fill_state>(args);
  const tensor_view& y = args.outputs[0];
  if (y.type != s.type) return errc::type_mismatch;
  return with_size(y.type, [&]<class T>() {
    T v;
    std::memcpy(&v, s.value, sizeof v);
    strided_copy fill;
    fill.add(y.count(), 0, 1);
    run_copy<T>(fill, &v, y.as<T>(), args.pool);
    return errc::ok;
  });
}

inline result<kernel_state> prepare_trilu(const prepare_args& args) {
  if (!movable(input_type(args, 0)))
    return error(errc::type_mismatch, "Trilu does not support this element type");
  auto* s = new (std::nothrow) axes_state;
  if (s == nullptr) return error(errc::out_of_memory);
  s->axis = args.attributes.integer("upper", 1);
  return own(s);
}
inline errc run_trilu(const kernel_args& args) {
  const bool upper = state_of<axes_state>(args).axis != 0;
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.rank < 2) return errc::rank_mismatch;
  const i64 k =
      has_input(args, 1) && args.inputs[1].count() > 0 ? integer_at(args.inputs[1], 0) : 0;
  const i64 rows = x.dims[x.rank - 2], columns = x.dims[x.rank - 1];
  if (x.count() == 0) return errc::ok;
  return with_size(y.type, [&]<class T>() {
    for (i64 r = 0; r < x.count() / columns; ++r) {
      const i64 i = r % rows;
      // Kept: j - i >= k (upper), j - i <= k (lower).
      i64 cut = upper ? i + k : i + k + 1;
      cut = cut < 0 ? 0 : cut > columns ? columns : cut;
      const T* a = x.as<const T>() + r * columns;
      T* b = y.as<T>() + r * columns;
      const i64 lo = upper ? cut : 0, hi = upper ? columns : cut;
      for (i64 j = 0; j < columns; ++j) b[j] = j >= lo && j < hi ? a[j] : T(0);
    }
    return errc::ok;
  });
}

// ---- BitCast (26)
// --------------------------------------------------------------------------------

/// The bytes of the input under another type.
inline errc run_bit_cast(const kernel_args& args) {
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const i64 bytes = bytes_of(x.type, x.count());
  if (x.type == dtype::string || y.type == dtype::string) return errc::unsupported;
  if (bytes_of(y.type, y.count()) != bytes) return errc::dim_mismatch;
  if (bytes > 0 && y.data != x.data) std::memcpy(y.data, x.data, idx(bytes));
  return errc::ok;
}

// ---- TensorScatter (24)
// --------------------------------------------------------------------------

struct tensor_scatter_state {
  i64 axis = -2;
  bool circular = false;
};
inline result<kernel_state> prepare_tensor_scatter(const prepare_args& args) {
  if (!movable(input_type(args, 0)) || input_type(args, 0) != input_type(args, 1))
    return error(errc::type_mismatch, "TensorScatter does not support these element types");
  const std::string_view mode = args.attributes.string("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return error(errc::bad_attribute, "mode is linear or circular");
  return own(new (std::nothrow)
                 tensor_scatter_state{args.attributes.integer("axis", -2), mode == "circular"});
}
/// past_cache with the rows of `update` written from write_indices[b] on along an axis.
inline errc run_tensor_scatter(const kernel_args& args) {
  const auto& s = state_of<tensor_scatter_state>(args);
  const tensor_view &past = args.inputs[0], &update = args.inputs[1], &y = args.outputs[0];
  const i64 rank = static_cast<i64>(past.rank), axis = s.axis < 0 ? s.axis + rank : s.axis;
  if (axis < 1 || axis >= rank) return errc::axis_range;  // axis 0 is the batch
  if (update.rank != past.rank) return errc::rank_mismatch;
  for (i64 d = 0; d < rank; ++d)
    if (d != axis && update.dims[d] != past.dims[d]) return errc::dim_mismatch;
  const i64 batch = past.dims[0], room = past.dims[axis], steps = update.dims[axis];
  const i64 middle = product_of(past, 1, idx(axis));
  const std::size_t bytes = idx(product_of(past, idx(axis) + 1, past.rank)) * bytes_of(past.type);
  const bool indexed = has_input(args, 2);
  if (indexed && args.inputs[2].count() != batch) return errc::dim_mismatch;
  const auto first = [&](i64 b) { return indexed ? integer_at(args.inputs[2], b) : 0; };
  for (i64 b = 0; b < batch && steps > 0; ++b)
    if (first(b) < 0 || (s.circular ? room == 0 : first(b) + steps > room))
      return errc::index_range;
  if (y.count() == 0) return errc::ok;
  if (y.data != past.data) std::memcpy(y.data, past.data, idx(y.count()) * bytes_of(y.type));
  for (i64 r = 0; r < batch * middle; ++r)
    for (i64 t = 0; t < steps; ++t)
      std::memcpy(y.as<std::byte>() + idx(r * room + (first(r / middle) + t) % room) * bytes,
                  update.as<const std::byte>() + idx(r * steps + t) * bytes, bytes);
  return errc::ok;
}

}  // namespace sod2::kernel_detail
