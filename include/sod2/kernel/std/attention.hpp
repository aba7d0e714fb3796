// Attention, row by row, and RotaryEmbedding.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <sod2/kernel/std/reduction.hpp>

namespace sod2::kernel_detail {

// ---- Attention (23, 24, 25)
// ----------------------------------------------------------------------

struct attention_state {
  i64 q_heads = 0, kv_heads = 0;
  bool causal = false;
  bool has_scale = false;
  double scale = 1, softcap = 0;
  i64 mode = 0;  // of output 3: raw, after the first step, after the second, after softmax
  bool cap_first = false;  // version 25: softcap before the mask; before, the mask came first
  bool pad_mask = false;   // version 24: a short mask ends in excluded keys
};
inline result<kernel_state> prepare_attention(const prepare_args& args) {
  if (args.inputs.size() < 3) return error(errc::arity, "Attention needs Q, K and V");
  const dtype type = input_type(args, 0);
  if (!is_float(type)) return error(errc::type_mismatch, "Attention works on floats");
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{5}})
    if (has_input(args, i) && input_type(args, i) != type)
      return error(errc::type_mismatch, "Q, K, V and the cache differ in type");
  if (has_input(args, 4) != has_input(args, 5))
    return error(errc::arity, "past_key and past_value come together");
  auto* s = new (std::nothrow) attention_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  const attribute_source& a = args.attributes;
  s->q_heads = a.integer("q_num_heads", 0);
  s->kv_heads = a.integer("kv_num_heads", 0);
  s->causal = a.integer("is_causal", 0) != 0;
  s->has_scale = static_cast<bool>(a("scale"));
  s->scale = a.real("scale", 1);
  s->softcap = a.real("softcap", 0);
  s->mode = a.integer("qk_matmul_output_mode", 0);
  s->cap_first = args.since_version >= 25;
  s->pad_mask = args.since_version >= 24;
  if (s->mode < 0 || s->mode > 3)
    return error(errc::bad_attribute, "qk_matmul_output_mode is 0 to 3");
  return owner;
}
/// The scores of one query against all keys.
inline dim attention_bytes(dim_context& context, const void*, std::span<const operand_info> inputs,
                           std::span<const operand_info>) {
  if (inputs.size() < 3 || inputs[1].dims.size() < 3) return context.constant(0);
  dim keys = inputs[1].dims[inputs[1].dims.size() - 2];
  if (inputs.size() > 4 && inputs[4].dims.size() == 4) keys = context.add(keys, inputs[4].dims[2]);
  return context.align_up(context.mul(keys, 8), 64);
}

/// One of Q, K, V, Y in either form: (B, heads, S, width) or (B, S, heads * width).
struct attention_operand {
  i64 heads = 0, steps = 0, width = 0;
  bool flat = false;
  bool resolve(const tensor_view& t, i64 flat_heads) {
    flat = t.rank == 3;
    if (t.rank != 3 && t.rank != 4) return false;
    heads = flat ? flat_heads : t.dims[1];
    steps = t.dims[flat ? 1 : 2];
    if (heads < 1 || t.dims[t.rank - 1] % (flat ? heads : 1) != 0) return heads == 0 && !flat;
    width = flat ? t.dims[2] / heads : t.dims[3];
    return true;
  }
  i64 at(i64 b, i64 h, i64 i) const {
    return (flat ? (b * steps + i) * heads + h : (b * heads + h) * steps + i) * width;
  }
};

/// Q, K, V, mask, past_key, past_value, nonpad_kv_seqlen -> Y, present key and value, scores. Heads
/// of Q share those of K and V in groups; causal rows see keys up to their own, counted from the
/// end of what came before.
inline errc run_attention(const kernel_args& args) {
  const auto& s = state_of<attention_state>(args);
  const tensor_view& y = args.outputs[0];
  attention_operand q, k, v;
  if (!q.resolve(args.inputs[0], s.q_heads) || !k.resolve(args.inputs[1], s.kv_heads) ||
      !v.resolve(args.inputs[2], s.kv_heads))
    return errc::rank_mismatch;
  const i64 batch = args.inputs[0].dims[0];
  const bool past = has_input(args, 4), masked = has_input(args, 3), counted = has_input(args, 6);
  const i64 before = past ? args.inputs[4].dims[2] : 0, keys = before + k.steps;
  if (k.heads != v.heads || k.steps != v.steps || q.width != k.width ||
      args.inputs[1].dims[0] != batch || args.inputs[2].dims[0] != batch)
    return errc::dim_mismatch;
  if (past && (args.inputs[5].dims[2] != before || args.inputs[4].dims[1] != k.heads ||
               args.inputs[5].dims[1] != k.heads))
    return errc::dim_mismatch;
  if (q.heads > 0 && (k.heads == 0 || q.heads % k.heads != 0)) return errc::divisibility;
  // The mask broadcasts over (B, Hq, Sq, keys).
  i64 mask_step[4] = {}, mask_keys = keys;
  if (masked) {
    const tensor_view& m = args.inputs[3];
    const i64 extent[4] = {batch, q.heads, q.steps, keys};
    if (m.rank > 4 || (m.type != dtype::boolean && m.type != args.inputs[0].type))
      return errc::unsupported;
    i64 stride = 1;
    for (int d = static_cast<int>(m.rank) - 1, e = 3; d >= 0; --d, --e) {
      const bool shorter = e == 3 && s.pad_mask && m.dims[d] < keys;
      if (m.dims[d] != extent[e] && m.dims[d] != 1 && !shorter) return errc::broadcast;
      mask_step[e] = m.dims[d] == 1 && !shorter ? 0 : stride;
      if (shorter) mask_keys = m.dims[d];
      stride *= m.dims[d];
    }
  }
  if (counted && args.inputs[6].count() != batch) return errc::dim_mismatch;
  if (y.count() > 0 && keys > 0 && args.workspace == nullptr) return errc::unsupported;
  const auto output = [&](std::size_t o) {
    return o < args.outputs.size() && args.outputs[o].present();
  };
  return with_real(args.inputs[0].type, [&]<class T>() {
    using S = typename accumulator<T>::type;
    const auto data = [&](std::size_t i) { return args.inputs[i].as<const T>(); };
    // Key or value `j` of a head: the past first.
    const auto row = [&](const attention_operand& o, std::size_t now, i64 b, i64 h, i64 j) {
      return j < before ? data(now + 3) + ((b * o.heads + h) * before + j) * o.width
                        : data(now) + o.at(b, h, j - before);
    };
    for (std::size_t o : {std::size_t{1}, std::size_t{2}}) {
      if (!output(o)) continue;
      const attention_operand& from = o == 1 ? k : v;
      T* to = args.outputs[o].template as<T>();
      for (i64 b = 0; b < batch; ++b)
        for (i64 h = 0; h < from.heads; ++h)
          for (i64 j = 0; j < keys; ++j, to += from.width)
            if (from.width > 0) std::memcpy(to, row(from, o, b, h, j), idx(from.width) * sizeof(T));
    }
    const S scale = static_cast<S>(
        s.has_scale ? s.scale : 1 / std::sqrt(static_cast<double>(q.width > 0 ? q.width : 1)));
    const S cap = static_cast<S>(s.softcap);
    constexpr S excluded = -std::numeric_limits<S>::infinity();
    attention_operand out = v;
    out.heads = q.heads;
    out.steps = q.steps;
    T* const y_data = y.present() ? y.as<T>() : nullptr;
    T* const scores_data = output(3) ? args.outputs[3].template as<T>() : nullptr;
    parallel_parts(
        args.pool, batch * q.heads * q.steps, 20000 / ((keys + 1) * (q.width + v.width + 1)) + 1,
        [&](i64 part, i64 begin, i64 end) {
          S* const score = reinterpret_cast<S*>(args.workspace + part * align_up(keys * 8, 64));
          for (i64 r = begin; r < end; ++r) {
            const i64 i = r % q.steps, h = r / q.steps % q.heads, b = r / q.steps / q.heads;
            const i64 group = h / (q.heads / k.heads);
            const T* query = data(0) + q.at(b, h, i);
            const i64 valid = counted ? integer_at(args.inputs[6], b) : keys;
            // Keys in front of this block of queries.
            const i64 offset = past ? before : counted ? valid - q.steps : 0;
            const auto emit = [&](i64 mode) {
              if (scores_data != nullptr && s.mode == mode)
                for (i64 j = 0; j < keys; ++j) scores_data[r * keys + j] = narrow<T>(score[j]);
            };
            const auto limit = [&] {
              if (cap > 0)
                for (i64 j = 0; j < keys; ++j) score[j] = cap * std::tanh(score[j] / cap);
            };
            for (i64 j = 0; j < keys; ++j) {
              const T* key = row(k, 1, b, group, j);
              S sum = 0;
              for (i64 d = 0; d < q.width; ++d)
                sum += static_cast<S>(widen(query[d])) * static_cast<S>(widen(key[d]));
              score[j] = sum * scale;
            }
            emit(0);
            if (s.cap_first) {
              limit();
              emit(1);
            }
            for (i64 j = 0; j < keys; ++j) {
              if (masked) {
                const i64 m =
                    b * mask_step[0] + h * mask_step[1] + i * mask_step[2] + j * mask_step[3];
                if (j >= mask_keys)
                  score[j] = excluded;
                else if (args.inputs[3].type == dtype::boolean)
                  score[j] = args.inputs[3].template as<const std::uint8_t>()[m] != 0 ? score[j]
                                                                                      : excluded;
                else
                  score[j] += static_cast<S>(widen(data(3)[m]));
              }
              if ((s.causal && j > i + offset) || j >= valid) score[j] = excluded;
            }
            emit(s.cap_first ? 2 : 1);
            if (!s.cap_first) {
              limit();
              emit(2);
            }
            S top = excluded, sum = 0;
            for (i64 j = 0; j < keys; ++j) top = score[j] > top ? score[j] : top;
            for (i64 j = 0; j < keys; ++j) {
              score[j] = std::exp(score[j] - top);
              sum += score[j];
            }
            for (i64 j = 0; j < keys; ++j) score[j] /= sum;
            emit(3);
            if (y_data == nullptr) continue;
            T* to = y_data + out.at(b, h, i);
            // Blocks of the width keep sums in registers or cache, in the order of the keys.
            for (i64 d0 = 0; d0 < v.width; d0 += 64) {
              const i64 n = v.width - d0 < 64 ? v.width - d0 : 64;
              S sums[64] = {};
              for (i64 j = 0; j < keys; ++j) {
                const T* value = row(v, 2, b, group, j) + d0;
                for (i64 d = 0; d < n; ++d) sums[d] += score[j] * static_cast<S>(widen(value[d]));
              }
              for (i64 d = 0; d < n; ++d) to[d0 + d] = narrow<T>(sums[d]);
            }
          }
        });
  });
}

// ---- RotaryEmbedding (23)
// ------------------------------------------------------------------------

struct rotary_state {
  bool interleaved = false;
  i64 rotated = 0, heads = 0;
};
inline result<kernel_state> prepare_rotary(const prepare_args& args) {
  if (!is_float(input_type(args, 0)))
    return error(errc::type_mismatch, "RotaryEmbedding works on floats");
  return own(new (std::nothrow) rotary_state{args.attributes.integer("interleaved", 0) != 0,
                                             args.attributes.integer("rotary_embedding_dim", 0),
                                             args.attributes.integer("num_heads", 0)});
}
/// X (B, heads, S, width) or (B, S, heads * width); caches (positions, half) with position_ids
/// (B, S), else (B, S, half). Pairs of the first `rotary_embedding_dim` elements turn by an angle.
inline errc run_rotary(const kernel_args& args) {
  const auto& s = state_of<rotary_state>(args);
  const tensor_view &x = args.inputs[0], &cosine = args.inputs[1], &sine = args.inputs[2];
  attention_operand o;
  if (!o.resolve(x, s.heads)) return errc::rank_mismatch;
  const i64 batch = x.dims[0], rotated = s.rotated == 0 ? o.width : s.rotated, half = rotated / 2;
  if (rotated < 0 || rotated > o.width || rotated % 2 != 0) return errc::value_range;
  const bool positions = has_input(args, 3);
  if (x.count() == 0) return errc::ok;
  if (cosine.rank == 0 || cosine.dims[cosine.rank - 1] != half || sine.count() != cosine.count())
    return errc::dim_mismatch;
  const i64 rows = half > 0 ? cosine.count() / half : 0;
  if (positions) {
    if (args.inputs[3].count() != batch * o.steps) return errc::dim_mismatch;
    for (i64 i = 0; i < batch * o.steps; ++i) {
      const i64 p = integer_at(args.inputs[3], i);
      if (p < 0 || p >= rows) return errc::index_range;
    }
  } else if (half > 0 && rows != batch * o.steps) {
    return errc::dim_mismatch;
  }
  return with_real(x.type, [&]<class T>() {
    using S = typename accumulator<T>::type;
    parallel_parts(
        args.pool, batch * o.heads * o.steps, 8000 / (o.width + 1) + 1,
        [&](i64, i64 begin, i64 end) {
          for (i64 r = begin; r < end; ++r) {
            const i64 i = r % o.steps, h = r / o.steps % o.heads, b = r / o.steps / o.heads;
            const i64 p = positions ? integer_at(args.inputs[3], b * o.steps + i) : b * o.steps + i;
            const T* from = x.as<const T>() + o.at(b, h, i);
            T* to = args.outputs[0].template as<T>() + o.at(b, h, i);
            for (i64 d = 0; d < half; ++d) {
              const i64 u = s.interleaved ? 2 * d : d, v = s.interleaved ? 2 * d + 1 : d + half;
              const S c = widen(cosine.as<const T>()[p * half + d]),
                      n = widen(sine.as<const T>()[p * half + d]);
              const S first = widen(from[u]), second = widen(from[v]);
              to[u] = narrow<T>(c * first - n * second);
              to[v] = narrow<T>(n * first + c * second);
            }
            for (i64 d = rotated; d < o.width; ++d) to[d] = from[d];
          }
        });
  });
}

}  // namespace sod2::kernel_detail
