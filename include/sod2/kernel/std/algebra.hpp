// Einsum, Det, ReverseSequence, EyeLike.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include <sod2/kernel/std/product.hpp>

namespace sod2::kernel_detail {

// ---- Einsum (12)
// ---------------------------------------------------------------------------------

/// Letters are labels 0 .. 51; the axes of the ellipsis, counted from its end, are 52 and up.
inline constexpr int einsum_labels = 52 + max_rank;
inline constexpr int einsum_inputs = 16;

/// One term: the letters before and after the ellipsis.
struct einsum_term {
  std::int8_t labels[max_rank] = {};
  int before = 0, after = 0;
  bool ellipsis = false;
  int letters() const { return before + after; }
};
struct einsum_state {
  einsum_term terms[einsum_inputs];
  einsum_term result;
};

inline int einsum_label(char c) {
  return c >= 'a' && c <= 'z' ? c - 'a' + 26 : c >= 'A' && c <= 'Z' ? c - 'A' : -1;
}
inline status parse_einsum_term(std::string_view text, einsum_term& term) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text.substr(i, 3) == "..." && !term.ellipsis) {
      term.ellipsis = true;
      i += 2;
      continue;
    }
    const int label = einsum_label(text[i]);
    if (label < 0 || term.letters() == max_rank)
      return error(errc::bad_attribute, "equation has a term that cannot be read");
    term.labels[term.letters()] = static_cast<std::int8_t>(label);
    ++(term.ellipsis ? term.after : term.before);
  }
  return {};
}

inline result<kernel_state> prepare_einsum(const prepare_args& args) {
  const dtype type = input_type(args, 0);
  if (args.inputs.empty() || args.inputs.size() > static_cast<std::size_t>(einsum_inputs))
    return error(errc::unsupported, "Einsum takes 1 to 16 inputs");
  if (!with_number(type, []<class T>() {}) && type != dtype::f16 && type != dtype::bf16)
    return error(errc::type_mismatch, "Einsum does not support this element type");
  auto* s = new (std::nothrow) einsum_state;
  if (s == nullptr) return error(errc::out_of_memory);
  kernel_state owner = *own(s);
  const std::string_view equation = args.attributes.string("equation", "");
  const std::size_t arrow = equation.find("->");
  std::string_view terms = equation.substr(0, arrow);
  bool ellipsis = false;
  int uses[52] = {};
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    if (input_type(args, i) != type)
      return error(errc::type_mismatch, "inputs of Einsum differ in type");
    const std::size_t comma = terms.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == args.inputs.size()))
      return error(errc::bad_attribute, "equation must have one term per input");
    SOD2_TRY(parse_einsum_term(terms.substr(0, comma), s->terms[i]));
    for (int k = 0; k < s->terms[i].letters(); ++k) ++uses[s->terms[i].labels[k]];
    ellipsis = ellipsis || s->terms[i].ellipsis;
    if (comma != std::string_view::npos) terms.remove_prefix(comma + 1);
  }
  if (arrow != std::string_view::npos) {
    SOD2_TRY(parse_einsum_term(equation.substr(arrow + 2), s->result));
    for (int k = 0; k < s->result.letters(); ++k)
      if (uses[s->result.labels[k]] == 0)
        return error(errc::bad_attribute, "equation's result uses a letter of no term");
  } else {  // the ellipsis, then the letters used once, in alphabetical order
    s->result.ellipsis = ellipsis;
    for (int label = 0; label < 52; ++label) {
      if (uses[label] != 1) continue;
      if (s->result.letters() == max_rank)
        return error(errc::unsupported, "Einsum's result has too many axes");
      s->result.labels[s->result.letters()] = static_cast<std::int8_t>(label);
      ++s->result.after;
    }
  }
  return owner;
}

/// Calls f(axis, label) for every axis of a tensor of this rank; false when the ranks disagree.
template <class F>
bool einsum_axes(const einsum_term& t, int rank, const F& f) {
  const int dots = rank - t.letters();
  if (dots < 0 || (dots > 0 && !t.ellipsis)) return false;
  for (int k = 0; k < t.before; ++k) f(k, static_cast<int>(t.labels[k]));
  for (int k = 0; k < dots; ++k) f(t.before + k, 52 + dots - 1 - k);
  for (int k = 0; k < t.after; ++k)
    f(t.before + dots + k, static_cast<int>(t.labels[t.before + k]));
  return true;
}

/// The sum over all labels that the result lacks of the product of all inputs. Labels are walked
/// with the result's first, so every sum runs in one piece.
inline errc run_einsum(const kernel_args& args) {
  const auto& s = state_of<einsum_state>(args);
  const tensor_view& y = args.outputs[0];
  const int inputs = static_cast<int>(args.inputs.size());
  i64 extent[einsum_labels], step[einsum_inputs][einsum_labels] = {};
  for (i64& e : extent) e = -1;
  if (y.rank > static_cast<std::uint32_t>(max_rank)) return errc::unsupported;
  bool fits = true;
  for (int i = 0; i < inputs; ++i) {
    const tensor_view& x = args.inputs[static_cast<std::size_t>(i)];
    if (x.rank > static_cast<std::uint32_t>(max_rank)) return errc::unsupported;
    i64 stride[max_rank];
    dense_strides(x.shape(), stride);
    fits = einsum_axes(s.terms[i], static_cast<int>(x.rank),
                       [&](int axis, int label) {
                         const i64 d = x.dims[axis];
                         // An extent of 1 yields to any other.
                         if (d != 1) {
                           if (extent[label] > 1 || extent[label] == 0)
                             fits = fits && extent[label] == d;
                           extent[label] = d;
                           step[i][label] += stride[axis];
                         } else if (extent[label] < 0) {
                           extent[label] = 1;
                         }
                       }) &&
           fits;
  }
  int order[einsum_labels], result = 0, count = 0;
  bool listed[einsum_labels] = {};
  fits = einsum_axes(s.result, static_cast<int>(y.rank),
                     [&](int axis, int label) {
                       if (listed[label] || extent[label] != y.dims[axis]) fits = false;
                       listed[label] = true;
                       order[result++] = label;
                     }) &&
         fits;
  if (!fits) return errc::dim_mismatch;
  count = result;
  i64 terms = 1;
  for (int label = 0; label < einsum_labels; ++label)
    if (!listed[label] && extent[label] >= 0) {
      order[count++] = label;
      terms *= extent[label];
    }
  const i64 n = y.count();
  if (n == 0) return errc::ok;
  errc outcome = errc::unsupported;
  with_storage(y.type, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      using S = typename accumulator<T>::type;
      parallel_parts(args.pool, n, 20000 / (terms + 1) + 1, [&](i64, i64 begin, i64 end) {
        for (i64 o = begin; o < end; ++o) {
          i64 base[einsum_inputs] = {}, rest = o;
          for (int k = result - 1; k >= 0; --k) {
            const i64 index = rest % extent[order[k]];
            rest /= extent[order[k]];
            for (int i = 0; i < inputs; ++i) base[i] += index * step[i][order[k]];
          }
          i64 at[einsum_labels] = {};
          S sum = 0;
          for (i64 t = 0; t < terms; ++t) {
            S product = widen(args.inputs[0].as<const T>()[base[0]]);
            for (int i = 1; i < inputs; ++i)
              product = binary_value<tile_op::mul, S>(
                  product, widen(args.inputs[static_cast<std::size_t>(i)].as<const T>()[base[i]]));
            sum = binary_value<tile_op::add, S>(sum, product);
            for (int k = count - 1; k >= result; --k) {
              const int label = order[k];
              const bool wraps = ++at[k] == extent[label];
              const i64 by = wraps ? 1 - extent[label] : 1;
              for (int i = 0; i < inputs; ++i) base[i] += by * step[i][label];
              if (!wraps) break;
              at[k] = 0;
            }
          }
          y.as<T>()[o] = narrow<T>(sum);
        }
      });
      outcome = errc::ok;
    }
  });
  return outcome;
}

// ---- Det (11, 22)
// --------------------------------------------------------------------------------

inline result<kernel_state> prepare_det(const prepare_args& args) {
  if (!is_float(input_type(args, 0))) return error(errc::type_mismatch, "Det works on floats");
  return own(new (std::nothrow) empty_state);
}
/// One matrix of doubles for each thread.
inline dim det_bytes(dim_context& context, const void*, std::span<const operand_info> inputs,
                     std::span<const operand_info>) {
  if (inputs.empty() || inputs[0].dims.size() < 2) return context.constant(0);
  const dim n = inputs[0].dims.back();
  return context.align_up(context.mul(context.mul(n, n), 8), 64);
}
/// (..., M, M) -> (...): elimination with partial pivots, in double precision.
inline errc run_det(const kernel_args& args) {
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.rank < 2 || x.dims[x.rank - 1] != x.dims[x.rank - 2]) return errc::dim_mismatch;
  const i64 n = x.dims[x.rank - 1];
  if (n > 0 && y.count() > 0 && args.workspace == nullptr) return errc::unsupported;
  bool known = false;
  with_storage(x.type, [&]<class T>() {
    if constexpr (!std::is_integral_v<T>) {
      known = true;
      parallel_parts(args.pool, y.count(), 4, [&](i64 part, i64 begin, i64 end) {
        auto* const m = reinterpret_cast<double*>(args.workspace + part * align_up(n * n * 8, 64));
        for (i64 b = begin; b < end; ++b) {
          for (i64 i = 0; i < n * n; ++i)
            m[i] = static_cast<double>(widen(x.as<const T>()[b * n * n + i]));
          double det = 1;
          for (i64 k = 0; k < n; ++k) {
            i64 pivot = k;
            for (i64 i = k + 1; i < n; ++i)
              if (std::fabs(m[i * n + k]) > std::fabs(m[pivot * n + k])) pivot = i;
            const double p = m[pivot * n + k];
            det *= pivot == k ? p : -p;
            if (p == 0) break;
            for (i64 j = k; j < n && pivot != k; ++j) std::swap(m[pivot * n + j], m[k * n + j]);
            for (i64 i = k + 1; i < n; ++i) {
              const double f = m[i * n + k] / p;
              for (i64 j = k + 1; j < n; ++j) m[i * n + j] -= f * m[k * n + j];
            }
          }
          y.as<T>()[b] = convert_value<T>(det);
        }
      });
    }
  });
  return known ? errc::ok : errc::unsupported;
}

// ---- ReverseSequence (10)
// ------------------------------------------------------------------------

struct reverse_state {
  i64 batch = 1, time = 0;
};
inline result<kernel_state> prepare_reverse(const prepare_args& args) {
  if (!movable(input_type(args, 0)))
    return error(errc::type_mismatch, "ReverseSequence does not support this element type");
  reverse_state s{args.attributes.integer("batch_axis", 1),
                  args.attributes.integer("time_axis", 0)};
  if (s.batch + s.time != 1 || s.batch * s.time != 0)
    return error(errc::bad_attribute, "batch_axis and time_axis are 0 and 1");
  return own(new (std::nothrow) reverse_state(s));
}
/// The first sequence_lens[b] steps of every batch item backwards, the rest as they are.
inline errc run_reverse(const kernel_args& args) {
  const auto& s = state_of<reverse_state>(args);
  const tensor_view &x = args.inputs[0], &lens = args.inputs[1], &y = args.outputs[0];
  if (x.rank < 2) return errc::rank_mismatch;
  const i64 batch = x.dims[s.batch], steps = x.dims[s.time];
  if (lens.count() != batch) return errc::dim_mismatch;
  for (i64 b = 0; b < batch; ++b)
    if (integer_at(lens, b) < 0 || integer_at(lens, b) > steps) return errc::value_range;
  const i64 inner = product_of(x, 2, x.rank);
  const std::size_t bytes = idx(inner) * bytes_of(x.type);
  if (bytes == 0) return errc::ok;
  const i64 b_step = s.batch == 0 ? steps : 1, t_step = s.time == 0 ? batch : 1;
  parallel_parts(args.pool, batch, 1, [&](i64, i64 begin, i64 end) {
    for (i64 b = begin; b < end; ++b) {
      const i64 n = integer_at(lens, b);
      for (i64 t = 0; t < steps; ++t) {
        const i64 from = t < n ? n - 1 - t : t;
        std::memcpy(y.as<std::byte>() + idx(b * b_step + t * t_step) * bytes,
                    x.as<const std::byte>() + idx(b * b_step + from * t_step) * bytes, bytes);
      }
    }
  });
  return errc::ok;
}

// ---- EyeLike (9, 22)
// -----------------------------------------------------------------------------

struct eye_state {
  i64 k = 0;
};
inline result<kernel_state> prepare_eye(const prepare_args& args) {
  return own(new (std::nothrow) eye_state{args.attributes.integer("k", 0)});
}
/// Ones where column = row + k.
inline errc run_eye(const kernel_args& args) {
  const i64 k = state_of<eye_state>(args).k;
  const tensor_view& y = args.outputs[0];
  if (y.rank != 2) return errc::rank_mismatch;
  if (y.count() == 0) return errc::ok;
  std::memset(y.data, 0, idx(y.count()) * bytes_of(y.type));
  const bool known = with_storage(y.type, [&]<class T>() {
    for (i64 i = 0; i < y.dims[0]; ++i)
      if (i + k >= 0 && i + k < y.dims[1])
        y.as<T>()[i * y.dims[1] + i + k] = convert_value<T>(1.0f);
  });
  return known ? errc::ok : errc::unsupported;
}

}  // namespace sod2::kernel_detail
