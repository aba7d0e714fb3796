// LSTM, GRU and RNN: the input product is hoisted over chunks of time steps, the recurrent product
// runs once per step, gates are computed row by row.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include <sod2/kernel/std/product.hpp>

namespace sod2::kernel_detail {

// ---- activations
// ---------------------------------------------------------------------------------

enum class recurrent_function : std::uint8_t {
  sigmoid,
  tanh,
  relu,
  affine,
  leaky_relu,
  thresholded_relu,
  scaled_tanh,
  hard_sigmoid,
  elu,
  softsign,
  softplus,
};
struct recurrent_activation {
  recurrent_function function = recurrent_function::sigmoid;
  float alpha = 0, beta = 0;
};
struct recurrent_name {
  std::string_view name;
  recurrent_function function;
  float alpha, beta;
  int parameters;  // how many of alpha and beta it takes from the attribute lists
};
inline constexpr recurrent_name recurrent_names[] = {
    {"sigmoid", recurrent_function::sigmoid, 0, 0, 0},
    {"tanh", recurrent_function::tanh, 0, 0, 0},
    {"relu", recurrent_function::relu, 0, 0, 0},
    {"affine", recurrent_function::affine, 1, 0, 2},
    {"leakyrelu", recurrent_function::leaky_relu, 0.01f, 0, 1},
    {"thresholdedrelu", recurrent_function::thresholded_relu, 1, 0, 1},
    {"scaledtanh", recurrent_function::scaled_tanh, 1, 1, 2},
    {"hardsigmoid", recurrent_function::hard_sigmoid, 0.2f, 0.5f, 2},
    {"elu", recurrent_function::elu, 1, 0, 1},
    {"softsign", recurrent_function::softsign, 0, 0, 0},
    {"softplus", recurrent_function::softplus, 0, 0, 0},
};

/// Names compare without case, as other runtimes read them.
inline const recurrent_name* find_recurrent_name(std::string_view name) {
  for (const recurrent_name& r : recurrent_names) {
    bool same = r.name.size() == name.size();
    for (std::size_t i = 0; same && i < name.size(); ++i) {
      const char c =
          name[i] >= 'A' && name[i] <= 'Z' ? static_cast<char>(name[i] - 'A' + 'a') : name[i];
      same = c == r.name[i];
    }
    if (same) return &r;
  }
  return nullptr;
}

template <class S>
S recurrent_value(const recurrent_activation& a, S x) {
  const S alpha = static_cast<S>(a.alpha), beta = static_cast<S>(a.beta);
  switch (a.function) {
    case recurrent_function::sigmoid: return S(1) / (S(1) + std::exp(-x));
    case recurrent_function::tanh: return std::tanh(x);
    case recurrent_function::relu: return x > 0 ? x : S(0);
    case recurrent_function::affine: return alpha * x + beta;
    case recurrent_function::leaky_relu: return x >= 0 ? x : alpha * x;
    case recurrent_function::thresholded_relu: return x > alpha ? x : S(0);
    case recurrent_function::scaled_tanh: return alpha * std::tanh(beta * x);
    case recurrent_function::hard_sigmoid: {
      const S v = alpha * x + beta;
      return v < 0 ? S(0) : v > 1 ? S(1) : v;
    }
    case recurrent_function::elu: return x >= 0 ? x : alpha * (std::exp(x) - S(1));
    case recurrent_function::softsign: return x / (S(1) + std::fabs(x));
    case recurrent_function::softplus:
      // exp overflows where the result is x to the last bit.
      return x > S(30) ? x : std::log(S(1) + std::exp(x));
  }
  return x;
}

/// v[i] = activation(v[i]); vector code where the instruction set has it.
template <class S>
void recurrent_apply(const simd_table& simd, const recurrent_activation& a, S* v, i64 n) {
  if constexpr (std::is_same_v<S, float>) {
    tile_op op = tile_op::copy;
    if (a.function == recurrent_function::sigmoid) op = tile_op::sigmoid;
    if (a.function == recurrent_function::tanh) op = tile_op::tanh;
    const tile_function f = simd.tile[static_cast<std::size_t>(op)];
    if (op != tile_op::copy && f != nullptr) {
      tile_instruction in;
      in.op = op;
      const void* const from = v;
      f(in, v, &from, 0, n);
      return;
    }
  }
  for (i64 i = 0; i < n; ++i) v[i] = recurrent_value(a, v[i]);
}

// ---- state
// ---------------------------------------------------------------------------------------

enum class recurrent_kind : std::uint8_t { lstm, gru, rnn };
constexpr i64 gates_of(recurrent_kind kind) {
  return kind == recurrent_kind::lstm ? 4 : kind == recurrent_kind::gru ? 3 : 1;
}

struct recurrent_state {
  const simd_table* simd = nullptr;
  recurrent_kind kind = recurrent_kind::lstm;
  i64 directions = 1;
  bool first_reversed = false;  // direction 0 walks backwards; direction 1 always does
  bool batch_first = false;     // layout 1
  bool reset_after = false;     // linear_before_reset
  bool coupled = false;         // input_forget: the forget gate is 1 - input gate
  float clip = 0;               // 0: none
  recurrent_activation activations[2][3];
  // Packed constants, one after the other per direction; empty when the input is not constant.
  packed_floats w_panels, r_panels;
};

/// Columns of the recurrent product that run first and second: GRU needs its reset gate before the
/// candidate's product.
inline i64 first_columns(const recurrent_state& s, i64 hidden) {
  return s.kind == recurrent_kind::gru ? 2 * hidden : gates_of(s.kind) * hidden;
}
inline i64 second_columns(const recurrent_state& s, i64 hidden) {
  return s.kind == recurrent_kind::gru ? hidden : 0;
}
inline i64 recurrent_panel_floats(const recurrent_state& s, i64 hidden) {
  return hidden * (align_up(first_columns(s, hidden), s.simd->nr) +
                   align_up(second_columns(s, hidden), s.simd->nr));
}
/// Packs R of one direction, (gates * hidden, hidden) row-major, for both products.
inline void pack_recurrent(const recurrent_state& s, const float* r, i64 hidden, float* out) {
  const i64 first = first_columns(s, hidden), second = second_columns(s, hidden);
  const i64 nr = s.simd->nr;
  pack_panels(r, 1, hidden, hidden, first, nr, 1, out);
  if (second > 0)
    pack_panels(r + first * hidden, 1, hidden, hidden, second, nr, 1,
                out + hidden * align_up(first, nr));
}

template <recurrent_kind Kind>
result<kernel_state> prepare_recurrent(const prepare_args& args) {
  if (args.inputs.size() < 3) return error(errc::arity, "a recurrent layer needs X, W and R");
  const dtype type = input_type(args, 0);
  if (!is_float(type)) return error(errc::type_mismatch, "a recurrent layer works on floats");
  for (std::size_t i = 1; i < args.inputs.size(); ++i)
    if (i != 4 && has_input(args, i) && input_type(args, i) != type)
      return error(errc::type_mismatch, "inputs of a recurrent layer differ in type");
  auto* s = new (std::nothrow) recurrent_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  s->simd = &simd_of(args.simd);
  s->kind = Kind;
  const attribute_source& a = args.attributes;
  const std::string_view direction = a.string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return error(errc::bad_attribute, "direction is forward, reverse or bidirectional");
  s->directions = direction == "bidirectional" ? 2 : 1;
  s->first_reversed = direction == "reverse";
  s->batch_first = a.integer("layout", 0) != 0;
  s->reset_after = a.integer("linear_before_reset", 0) != 0;
  s->coupled = a.integer("input_forget", 0) != 0;
  s->clip = static_cast<float>(a.real("clip", 0));
  // Activations, with their parameters consumed in order by those that take some.
  constexpr std::size_t functions = Kind == recurrent_kind::lstm  ? 3
                                    : Kind == recurrent_kind::gru ? 2
                                                                  : 1;
  const std::span<const std::string> names = a("activations").strings;
  const std::span<const float> alphas = a("activation_alpha").reals;
  const std::span<const float> betas = a("activation_beta").reals;
  if (!names.empty() && names.size() != functions * static_cast<std::size_t>(s->directions))
    return error(errc::bad_attribute, "activations do not match the number of directions");
  std::size_t alpha = 0, beta = 0;
  for (std::size_t i = 0; i < functions * static_cast<std::size_t>(s->directions); ++i) {
    const bool first = i % functions == 0 && Kind != recurrent_kind::rnn;
    const recurrent_name* found = find_recurrent_name(names.empty() ? (first ? "sigmoid" : "tanh")
                                                                    : std::string_view(names[i]));
    if (found == nullptr) return error(errc::bad_attribute, "unknown activation");
    recurrent_activation& to = s->activations[i / functions][i % functions];
    to = {found->function, found->alpha, found->beta};
    if (found->parameters > 0 && alpha < alphas.size()) to.alpha = alphas[alpha++];
    if (found->parameters > 1 && beta < betas.size()) to.beta = betas[beta++];
  }
  // Constant weights are packed once.
  if (type == dtype::f32) {
    const constant_view &w = args.inputs[1].constant, &r = args.inputs[2].constant;
    packed_floats copy;  // raw data of a file may stand anywhere
    if (w.present() && w.dims.size() == 3 && w.count() > 0) {
      const i64 n = w.dims[1], k = w.dims[2], panel = align_up(n, s->simd->nr) * k;
      if (!copy.allocate(w.count()) || !s->w_panels.allocate(w.dims[0] * panel))
        return error(errc::out_of_memory);
      read_floats(w, copy.data());
      for (i64 d = 0; d < w.dims[0]; ++d)
        pack_panels(copy.data() + d * n * k, 1, k, k, n, s->simd->nr, 1,
                    s->w_panels.data() + d * panel);
      owner.consumed |= 2;
      owner.bytes += s->w_panels.bytes();
    }
    if (r.present() && r.dims.size() == 3 && r.count() > 0) {
      const i64 hidden = r.dims[2], panel = recurrent_panel_floats(*s, hidden);
      if (r.dims[1] != gates_of(Kind) * hidden)
        return error(errc::dim_mismatch, "R is not (directions, gates * hidden, hidden)");
      if (!copy.allocate(r.count()) || !s->r_panels.allocate(r.dims[0] * panel))
        return error(errc::out_of_memory);
      read_floats(r, copy.data());
      for (i64 d = 0; d < r.dims[0]; ++d)
        pack_recurrent(*s, copy.data() + d * r.dims[1] * hidden, hidden,
                       s->r_panels.data() + d * panel);
      owner.consumed |= 4;
      owner.bytes += s->r_panels.bytes();
    }
  }
  return owner;
}

// ---- workspace
// -----------------------------------------------------------------------------------

/// Rows of the hoisted input product: as many time steps as fit, at least one.
inline constexpr i64 recurrent_rows = 192;

/// The scratch of products (per thread), then what all threads share: the input product of one
/// chunk (rows, gates * H), the recurrent product (B, gates * H), the reset candidate (B, H) twice,
/// hidden and cell state (B, H) each, R packed where it is not constant.
inline i64 recurrent_scratch(const recurrent_state& s) {
  return align_up(product_workspace(!s.w_panels, false), 16);
}
inline dim recurrent_bytes(dim_context& context, const void* state,
                           std::span<const operand_info> inputs, std::span<const operand_info>) {
  const auto& s = *static_cast<const recurrent_state*>(state);
  if (inputs.size() < 3 || inputs[0].dims.size() != 3 || inputs[2].dims.size() != 3)
    return context.constant(0);
  const i64 width = inputs[0].type == dtype::f64 ? 8 : 4, gates = gates_of(s.kind);
  const dim hidden = inputs[2].dims[2], batch = inputs[0].dims[s.batch_first ? 0 : 1];
  const dim rows = context.max(batch, recurrent_rows);
  dim floats = context.mul(context.mul(rows, hidden), gates);
  floats = context.add(floats, context.mul(context.mul(batch, hidden), gates + 4));
  if (!s.r_panels && width == 4) {
    // Two panel groups, each padded by less than nr columns.
    const dim columns = context.add(context.mul(hidden, gates), 2 * s.simd->nr);
    floats = context.add(floats, context.mul(hidden, columns));
  }
  floats = context.add(floats, 16 * 8);  // alignment of the pieces
  return context.align_up(context.add(context.mul(floats, width), 4 * recurrent_scratch(s)), 64);
}

// ---- run
// -----------------------------------------------------------------------------------------

template <class T>
struct recurrent_run {
  using S = typename accumulator<T>::type;
  const recurrent_state& s;
  const kernel_args& args;
  i64 steps = 0, batch = 0, inputs = 0, hidden = 0, gates = 0;
  float* scratch = nullptr;
  S *xw = nullptr, *hr = nullptr, *reset = nullptr, *candidate = nullptr, *h = nullptr,
    *c = nullptr;
  float* packed = nullptr;

  const T* data(std::size_t input) const {
    return has_input(args, input) ? args.inputs[input].as<const T>() : nullptr;
  }
  i64 length(i64 b) const {
    if (!has_input(args, 4)) return steps;
    const i64 n = integer_at(args.inputs[4], b);
    return n < steps ? n : steps;
  }
  i64 state_at(i64 d, i64 b) const {  // of (D, B, H) or (B, D, H)
    return (s.batch_first ? b * s.directions + d : d * batch + b) * hidden;
  }
  i64 output_at(i64 t, i64 d, i64 b) const {  // of (T, D, B, H) or (B, T, D, H)
    return (s.batch_first ? (b * steps + t) * s.directions + d
                          : (t * s.directions + d) * batch + b) *
           hidden;
  }
  /// Row of step t (counted from the chunk's first) and batch item b in the input product.
  i64 row_at(i64 t, i64 b, i64 chunk) const {
    return s.batch_first ? b * chunk + t : t * batch + b;
  }

  /// out (m, n) = a (m, k) * b^T, b (n, k) row-major with step k.
  template <class A>
  static void plain(i64 m, i64 n, i64 k, const A* a, const T* b, S* out,
                    const thread_pool_ref& pool) {
    parallel_parts(pool, m * n, 100000 / (k + 1) + 1, [&](i64, i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) {
        const A* row = a + i / n * k;
        const T* column = b + i % n * k;
        S sum = 0;
        for (i64 l = 0; l < k; ++l) sum += static_cast<S>(widen(row[l])) * widen(column[l]);
        out[i] = sum;
      }
    });
  }

  void input_product(i64 d, i64 t0, i64 chunk) const {
    const i64 n = gates * hidden;
    const T* x = args.inputs[0].as<const T>() + (s.batch_first ? t0 : t0 * batch) * inputs;
    const T* w = data(1) == nullptr ? nullptr : data(1) + d * n * inputs;
    const i64 blocks = s.batch_first ? batch : 1, m = s.batch_first ? chunk : chunk * batch;
    if constexpr (std::is_same_v<T, float>) {
      product_call p;
      p.simd = s.simd;
      p.batches = blocks;
      p.m = m;
      p.n = n;
      p.k = inputs;
      p.a = x;
      p.lda = inputs;
      p.batch_rank = 1;
      p.batch_dims[0] = blocks;
      p.a_step[0] = steps * inputs;
      if (s.w_panels) {
        p.panels = s.w_panels.data() + d * align_up(n, s.simd->nr) * inputs;
      } else {
        p.b = w;
        p.b_k_step = 1;
        p.b_column_step = inputs;
      }
      p.c = xw;
      p.pool = args.pool;
      p.workspace = scratch;
      run_product(p);
    } else {
      for (i64 i = 0; i < blocks; ++i)
        plain<T>(m, n, inputs, x + i * steps * inputs, w, xw + i * m * n, args.pool);
    }
  }

  /// Product of `a` (B, H) with columns [first, first + n) of R of direction d.
  void recurrent_product(i64 d, const S* a, bool second, S* out) const {
    const i64 first = first_columns(s, hidden);
    const i64 n = second ? second_columns(s, hidden) : first;
    if constexpr (std::is_same_v<T, float>) {
      const float* panels =
          s.r_panels ? s.r_panels.data() + d * recurrent_panel_floats(s, hidden) : packed;
      product_call p;
      p.simd = s.simd;
      p.m = batch;
      p.n = n;
      p.k = hidden;
      p.a = a;
      p.lda = hidden;
      p.panels = panels + (second ? hidden * align_up(first, s.simd->nr) : 0);
      p.c = out;
      p.pool = args.pool;
      run_product(p);
    } else {
      plain<S>(batch, n, hidden, a, data(2) + (d * gates * hidden + (second ? first : 0)) * hidden,
               out, args.pool);
    }
  }

  S bias(const T* b, i64 i) const { return b == nullptr ? S(0) : static_cast<S>(widen(b[i])); }
  S clipped(S v) const {
    const S limit = static_cast<S>(s.clip);
    if (!(limit > 0)) return v;
    return v > limit ? limit : v < -limit ? -limit : v;
  }
  void apply(i64 d, int function, S* v, i64 n) const {
    recurrent_apply(*s.simd, s.activations[d][function], v, n);
  }

  /// Gates i, o, f, c in `g`, the input product in `x`.
  void lstm_row(i64 d, const S* x, S* g, S* hid, S* cell) const {
    const T* wb = data(3) == nullptr ? nullptr : data(3) + d * 8 * hidden;
    const T* peep = data(7) == nullptr ? nullptr : data(7) + d * 3 * hidden;
    const i64 n = hidden;
    for (i64 j = 0; j < 4 * n; ++j) g[j] += x[j] + bias(wb, j) + bias(wb, 4 * n + j);
    S *const i = g, *const o = g + n, *const f = g + 2 * n, *const u = g + 3 * n;
    for (i64 j = 0; j < n; ++j) {
      i[j] = clipped(i[j] + bias(peep, j) * cell[j]);
      f[j] = clipped(f[j] + bias(peep, 2 * n + j) * cell[j]);
      u[j] = clipped(u[j]);
    }
    apply(d, 0, i, n);
    if (s.coupled)
      for (i64 j = 0; j < n; ++j) f[j] = S(1) - i[j];
    else
      apply(d, 0, f, n);
    apply(d, 1, u, n);
    for (i64 j = 0; j < n; ++j) {
      cell[j] = f[j] * cell[j] + i[j] * u[j];
      hid[j] = cell[j];
      o[j] = clipped(o[j] + bias(peep, n + j) * cell[j]);
    }
    apply(d, 0, o, n);
    apply(d, 2, hid, n);
    for (i64 j = 0; j < n; ++j) hid[j] *= o[j];
  }

  /// Gates z and r in `g`.
  void gru_gates(i64 d, const S* x, S* g, const S* hid, S* gated) const {
    const T* wb = data(3) == nullptr ? nullptr : data(3) + d * 6 * hidden;
    const i64 n = hidden;
    for (i64 j = 0; j < 2 * n; ++j) g[j] = clipped(g[j] + x[j] + bias(wb, j) + bias(wb, 3 * n + j));
    apply(d, 0, g, 2 * n);
    if (gated != nullptr)
      for (i64 j = 0; j < n; ++j) gated[j] = g[n + j] * hid[j];
  }
  void gru_row(i64 d, const S* x, const S* g, S* u, S* hid) const {
    const T* wb = data(3) == nullptr ? nullptr : data(3) + d * 6 * hidden;
    const i64 n = hidden;
    for (i64 j = 0; j < n; ++j) {
      const S shift = bias(wb, 5 * n + j);
      const S part = s.reset_after ? g[n + j] * (u[j] + shift) : u[j] + shift;
      u[j] = clipped(part + x[2 * n + j] + bias(wb, 2 * n + j));
    }
    apply(d, 1, u, n);
    for (i64 j = 0; j < n; ++j) hid[j] = (S(1) - g[j]) * u[j] + g[j] * hid[j];
  }

  void rnn_row(i64 d, const S* x, S* g, S* hid) const {
    const T* wb = data(3) == nullptr ? nullptr : data(3) + d * 2 * hidden;
    for (i64 j = 0; j < hidden; ++j)
      hid[j] = clipped(g[j] + x[j] + bias(wb, j) + bias(wb, hidden + j));
    apply(d, 0, hid, hidden);
  }

  void step(i64 d, i64 t, i64 in_chunk, i64 chunk) const {
    recurrent_product(d, h, false, hr);
    const i64 first = first_columns(s, hidden), wide = gates * hidden;
    const i64 grain = 4000 / (wide + 1) + 1;
    const auto x_row = [&](i64 b) { return xw + row_at(in_chunk, b, chunk) * wide; };
    if (s.kind == recurrent_kind::gru) {
      parallel_parts(args.pool, batch, grain, [&](i64, i64 begin, i64 end) {
        for (i64 b = begin; b < end; ++b)
          gru_gates(d, x_row(b), hr + b * first, h + b * hidden,
                    s.reset_after ? nullptr : reset + b * hidden);
      });
      recurrent_product(d, s.reset_after ? h : reset, true, candidate);
    }
    T* const y =
        !args.outputs.empty() && args.outputs[0].present() ? args.outputs[0].as<T>() : nullptr;
    parallel_parts(args.pool, batch, grain, [&](i64, i64 begin, i64 end) {
      for (i64 b = begin; b < end; ++b) {
        T* const out = y == nullptr ? nullptr : y + output_at(t, d, b);
        if (t >= length(b)) {  // past the end of this sequence: state stays, output is zero
          if (out != nullptr)
            for (i64 j = 0; j < hidden; ++j) out[j] = narrow<T>(S(0));
          continue;
        }
        S* const hid = h + b * hidden;
        if (s.kind == recurrent_kind::lstm)
          lstm_row(d, x_row(b), hr + b * wide, hid, c + b * hidden);
        else if (s.kind == recurrent_kind::gru)
          gru_row(d, x_row(b), hr + b * first, candidate + b * hidden, hid);
        else
          rnn_row(d, x_row(b), hr + b * wide, hid);
        if (out != nullptr)
          for (i64 j = 0; j < hidden; ++j) out[j] = narrow<T>(hid[j]);
      }
    });
  }

  void load_state(std::size_t input, i64 d, S* to) const {
    const T* from = data(input);
    for (i64 b = 0; b < batch; ++b)
      for (i64 j = 0; j < hidden; ++j)
        to[b * hidden + j] =
            from == nullptr ? S(0) : static_cast<S>(widen(from[state_at(d, b) + j]));
  }
  void store_state(std::size_t output, i64 d, const S* from) const {
    if (output >= args.outputs.size() || !args.outputs[output].present()) return;
    T* const to = args.outputs[output].as<T>();
    for (i64 b = 0; b < batch; ++b)
      for (i64 j = 0; j < hidden; ++j) to[state_at(d, b) + j] = narrow<T>(from[b * hidden + j]);
  }

  /// A reversed direction walks time downwards and skips what lies past a sequence's end: the same
  /// as reversing every sequence within its own length.
  void direction(i64 d) const {
    if constexpr (std::is_same_v<T, float>)
      if (!s.r_panels) pack_recurrent(s, data(2) + d * gates * hidden * hidden, hidden, packed);
    load_state(5, d, h);
    if (s.kind == recurrent_kind::lstm) load_state(6, d, c);
    const bool reversed = d == 1 || s.first_reversed;
    const i64 chunk = batch >= recurrent_rows ? 1 : recurrent_rows / batch;
    for (i64 done = 0; done < steps; done += chunk) {
      const i64 n = steps - done < chunk ? steps - done : chunk;
      const i64 t0 = reversed ? steps - done - n : done;
      input_product(d, t0, n);
      for (i64 i = 0; i < n; ++i) {
        const i64 at = reversed ? n - 1 - i : i;
        step(d, t0 + at, at, n);
      }
    }
    store_state(1, d, h);
    if (s.kind == recurrent_kind::lstm) store_state(2, d, c);
  }
};

/// LSTM (1, 7, 14, 22), GRU (1, 3, 7, 14, 22), RNN (1, 7, 14, 22). X (T, B, I) or (B, T, I),
/// W (D, gates * H, I), R (D, gates * H, H), B (D, 2 * gates * H), sequence_lens (B), initial
/// states (D, B, H) or (B, D, H), peepholes (D, 3 * H) -> Y, Y_h, Y_c, each optional.
inline errc run_recurrent(const kernel_args& args) {
  const auto& s = state_of<recurrent_state>(args);
  const tensor_view &x = args.inputs[0], &w = args.inputs[1], &r = args.inputs[2];
  if (x.rank != 3 || w.rank != 3 || r.rank != 3) return errc::rank_mismatch;
  const i64 hidden = r.dims[2], gates = gates_of(s.kind);
  const i64 steps = x.dims[s.batch_first ? 1 : 0], batch = x.dims[s.batch_first ? 0 : 1];
  if (w.dims[1] != gates * hidden || r.dims[1] != gates * hidden || w.dims[0] != s.directions ||
      r.dims[0] != s.directions)
    return errc::dim_mismatch;
  if (w.dims[2] != x.dims[2]) return errc::inner_dims;
  if (batch == 0 || hidden == 0) return errc::ok;
  if (args.workspace == nullptr) return errc::unsupported;
  if (has_input(args, 4))
    for (i64 b = 0; b < batch; ++b)
      if (integer_at(args.inputs[4], b) < 0) return errc::value_range;
  const i64 threads = args.pool.threads > 1 ? args.pool.threads : 1;
  const auto go = [&]<class T>() {
    using S = typename accumulator<T>::type;
    recurrent_run<T> run{s, args, steps, batch, x.dims[2], hidden, gates};
    std::byte* at = args.workspace;
    const auto take = [&](i64 count, i64 width) {
      std::byte* const p = at;
      at += align_up(count * width, 64);
      return static_cast<void*>(p);
    };
    const i64 width = static_cast<i64>(sizeof(S));
    const auto piece = [&](i64 count) { return static_cast<S*>(take(count, width)); };
    run.scratch = static_cast<float*>(take(threads * recurrent_scratch(s), 4));
    i64 rows = batch > recurrent_rows ? batch : recurrent_rows;
    run.xw = piece(rows * gates * hidden);
    run.hr = piece(batch * gates * hidden);
    run.reset = piece(batch * hidden);
    run.candidate = piece(batch * hidden);
    run.h = piece(batch * hidden);
    run.c = piece(batch * hidden);
    if constexpr (std::is_same_v<T, float>)
      if (!s.r_panels) run.packed = static_cast<float*>(take(recurrent_panel_floats(s, hidden), 4));
    for (i64 d = 0; d < s.directions; ++d) run.direction(d);
  };
  switch (x.type) {
    case dtype::f32: go.template operator()<float>(); return errc::ok;
    case dtype::f64: go.template operator()<double>(); return errc::ok;
    case dtype::f16: go.template operator()<half>(); return errc::ok;
    case dtype::bf16: go.template operator()<brain>(); return errc::ok;
    default: return errc::unsupported;
  }
}

}  // namespace sod2::kernel_detail
