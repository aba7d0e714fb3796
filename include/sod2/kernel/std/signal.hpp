// Fourier transforms and windows: DFT, STFT, HannWindow, HammingWindow, BlackmanWindow,
// MelWeightMatrix. Everything is computed in double precision and rounded once.
#pragma once

#include <cmath>
#include <cstdint>

#include <sod2/kernel/std/reduction.hpp>

namespace sod2::kernel_detail {

// ---- the transform
// -------------------------------------------------------------------------------

struct complex_value {
  double re = 0, im = 0;
};
inline complex_value operator*(complex_value a, complex_value b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
inline complex_value operator+(complex_value a, complex_value b) {
  return {a.re + b.re, a.im + b.im};
}

/// Decimation in time for any length: O(n * sum of its prime factors).
struct fourier {
  i64 length = 0;
  const complex_value* roots = nullptr;  // roots[k] = exp(sign * 2 pi i k / length)
  complex_value* scratch = nullptr;      // as many as the largest prime factor

  static i64 smallest_factor(i64 n) {
    for (i64 p = 2; p * p <= n; ++p)
      if (n % p == 0) return p;
    return n;
  }
  void run(const complex_value* in, i64 step, complex_value* out, i64 n) const {
    if (n == 1) {
      out[0] = in[0];
      return;
    }
    const i64 p = smallest_factor(n), m = n / p, scale = length / n;
    for (i64 q = 0; q < p; ++q) run(in + q * step, step * p, out + q * m, m);
    for (i64 k = 0; k < m; ++k) {
      for (i64 q = 0; q < p; ++q) scratch[q] = out[q * m + k] * roots[q * k * scale % length];
      for (i64 r = 0; r < p; ++r) {
        complex_value sum;
        for (i64 q = 0; q < p; ++q) sum = sum + scratch[q] * roots[q * r % p * (length / p)];
        out[r * m + k] = sum;
      }
    }
  }
};
inline void fill_roots(complex_value* roots, i64 n, bool inverse) {
  for (i64 k = 0; k < n; ++k) {
    const double angle = (inverse ? 6.283185307179586477 : -6.283185307179586477) *
                         static_cast<double>(k) / static_cast<double>(n);
    roots[k] = {std::cos(angle), std::sin(angle)};
  }
}
/// Roots, input, output and scratch of one thread.
inline dim fourier_bytes(dim_context& context, dim length) {
  return context.align_up(context.mul(length, 4 * 16), 64);
}

// ---- DFT (17, 20)
// --------------------------------------------------------------------------------

struct dft_state {
  i64 axis = 1;
  bool axis_input = false;  // version 20: input 2
  bool one_sided = false, inverse = false;
};
inline result<kernel_state> prepare_dft(const prepare_args& args) {
  if (!is_float(input_type(args, 0))) return error(errc::type_mismatch, "DFT works on floats");
  const bool newer = args.since_version >= 20;
  return own(new (std::nothrow) dft_state{newer ? -2 : args.attributes.integer("axis", 1), newer,
                                          args.attributes.integer("onesided", 0) != 0,
                                          args.attributes.integer("inverse", 0) != 0});
}
/// No transform is longer than any dim of input and output, or twice the output's if one-sided.
inline dim dft_bytes(dim_context& context, const void* state, std::span<const operand_info> inputs,
                     std::span<const operand_info> outputs) {
  const auto& s = *static_cast<const dft_state*>(state);
  if (inputs.empty() || outputs.empty()) return context.constant(0);
  dim most = context.one();
  for (const dim& d : outputs[0].dims)
    most = context.max(most, s.one_sided ? context.mul(d, 2) : d);
  return fourier_bytes(context, most);
}

/// X (..., 1 or 2) -> (..., 2) along an axis that is cut or padded with zeros to dft_length. A
/// one-sided inverse takes the first half of a symmetric spectrum and gives real numbers.
inline errc run_dft(const kernel_args& args) {
  const auto& s = state_of<dft_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const i64 rank = static_cast<i64>(x.rank);
  if (rank < 2 || y.rank != x.rank) return errc::rank_mismatch;
  i64 axis = s.axis_input && has_input(args, 2) ? integer_at(args.inputs[2], 0) : s.axis;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank - 1) return errc::axis_range;
  const i64 parts = x.dims[rank - 1], out_parts = y.dims[rank - 1], given = x.dims[axis],
            bins = y.dims[axis];
  if (parts < 1 || parts > 2) return errc::dim_mismatch;
  const bool real = s.inverse && s.one_sided;  // the result
  i64 n = has_input(args, 1) ? integer_at(args.inputs[1], 0) : real ? 2 * (given - 1) : given;
  if (y.count() == 0) return errc::ok;
  if (n < 1 || bins != (s.one_sided && !s.inverse ? n / 2 + 1 : n)) return errc::value_range;
  if (args.workspace == nullptr) return errc::unsupported;
  const i64 outer = product_of(x, 0, idx(axis)),
            inner = product_of(x, idx(axis) + 1, idx(rank) - 1);
  i64 most = 1;
  for (i64 d = 0; d < rank; ++d) {
    const i64 bound = s.one_sided ? 2 * y.dims[d] : y.dims[d];
    most = bound > most ? bound : most;
  }
  if (n > most) return errc::value_range;
  return with_real(x.type, [&]<class T>() {
    parallel_parts(args.pool, outer * inner, 4000 / n + 1, [&](i64 part, i64 begin, i64 end) {
      auto* const roots =
          reinterpret_cast<complex_value*>(args.workspace + part * align_up(most * 64, 64));
      complex_value *const in = roots + n, *const out = in + n;
      const fourier f{n, roots, out + n};
      fill_roots(roots, n, s.inverse);
      for (i64 r = begin; r < end; ++r) {
        const i64 o = r / inner, i = r % inner;
        const T* from = x.as<const T>() + (o * given * inner + i) * parts;
        for (i64 k = 0; k < n; ++k) {
          complex_value v;
          // The mirrored half of a one-sided spectrum is conjugate.
          const bool mirrored = real && k > n / 2;
          const i64 at = mirrored ? n - k : k;
          if (at < given) {
            v.re = static_cast<double>(widen(from[at * inner * parts]));
            if (parts == 2) v.im = static_cast<double>(widen(from[at * inner * parts + 1]));
            if (mirrored) v.im = -v.im;
          }
          in[k] = v;
        }
        f.run(in, 1, out, n);
        const double scale = s.inverse ? 1.0 / static_cast<double>(n) : 1.0;
        T* to = y.as<T>() + (o * bins * inner + i) * out_parts;
        for (i64 k = 0; k < bins; ++k) {
          to[k * inner * out_parts] = convert_value<T>(out[k].re * scale);
          if (out_parts == 2) to[k * inner * out_parts + 1] = convert_value<T>(out[k].im * scale);
        }
      }
    });
  });
}

// ---- STFT (17)
// -----------------------------------------------------------------------------------

struct stft_state {
  bool one_sided = true;
};
inline result<kernel_state> prepare_stft(const prepare_args& args) {
  if (!is_float(input_type(args, 0))) return error(errc::type_mismatch, "STFT works on floats");
  return own(new (std::nothrow) stft_state{args.attributes.integer("onesided", 1) != 0});
}
inline dim stft_bytes(dim_context& context, const void*, std::span<const operand_info>,
                      std::span<const operand_info> outputs) {
  if (outputs.empty() || outputs[0].dims.size() != 4) return context.constant(0);
  return fourier_bytes(context, context.mul(outputs[0].dims[2], 2));
}
/// signal (B, L, 1 or 2), frame_step, window (n), frame_length -> (B, frames, bins, 2).
inline errc run_stft(const kernel_args& args) {
  const auto& s = state_of<stft_state>(args);
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.rank != 3 || y.rank != 4 || y.dims[3] != 2) return errc::rank_mismatch;
  const bool windowed = has_input(args, 2);
  if (!windowed && !has_input(args, 3)) return errc::input_missing;
  const i64 step = integer_at(args.inputs[1], 0), length = x.dims[1], parts = x.dims[2];
  const i64 n = has_input(args, 3) ? integer_at(args.inputs[3], 0) : args.inputs[2].count();
  if (y.count() == 0) return errc::ok;
  const i64 frames = y.dims[1], bins = y.dims[2];
  if (n < 1 || step < 1 || (windowed && args.inputs[2].count() != n) ||
      bins != (s.one_sided ? n / 2 + 1 : n) || (frames - 1) * step + n > length || parts < 1 ||
      parts > 2)
    return errc::value_range;
  if (args.workspace == nullptr) return errc::unsupported;
  return with_real(x.type, [&]<class T>() {
    parallel_parts(args.pool, x.dims[0] * frames, 4000 / n + 1, [&](i64 part, i64 begin, i64 end) {
      auto* const roots =
          reinterpret_cast<complex_value*>(args.workspace + part * align_up(bins * 2 * 64, 64));
      complex_value *const in = roots + n, *const out = in + n;
      const fourier f{n, roots, out + n};
      fill_roots(roots, n, false);
      for (i64 r = begin; r < end; ++r) {
        const T* from = x.as<const T>() + (r / frames * length + r % frames * step) * parts;
        for (i64 k = 0; k < n; ++k) {
          const double w =
              windowed ? static_cast<double>(widen(args.inputs[2].as<const T>()[k])) : 1.0;
          in[k] = {w * static_cast<double>(widen(from[k * parts])),
                   parts == 2 ? w * static_cast<double>(widen(from[k * parts + 1])) : 0.0};
        }
        f.run(in, 1, out, n);
        for (i64 k = 0; k < bins; ++k) {
          y.as<T>()[(r * bins + k) * 2] = convert_value<T>(out[k].re);
          y.as<T>()[(r * bins + k) * 2 + 1] = convert_value<T>(out[k].im);
        }
      }
    });
  });
}

// ---- windows (17)
// --------------------------------------------------------------------------------

struct window_function_state {
  bool periodic = true;
};
inline result<kernel_state> prepare_window_function(const prepare_args& args) {
  return own(new (std::nothrow) window_function_state{args.attributes.integer("periodic", 1) != 0});
}
/// a - b cos(2 pi k / n) + c cos(4 pi k / n), n the size or, for a symmetric window, one less.
inline errc run_window_function(const kernel_args& args, double a, double b, double c) {
  const tensor_view& y = args.outputs[0];
  const i64 size = y.count(), n = state_of<window_function_state>(args).periodic ? size : size - 1;
  const bool known = with_storage(y.type, [&]<class T>() {
    for (i64 k = 0; k < size; ++k) {
      const double angle =
          6.283185307179586477 * static_cast<double>(k) / static_cast<double>(n > 0 ? n : 1);
      // A symmetric window of one element is its peak.
      y.as<T>()[k] =
          convert_value<T>(n > 0 ? a - b * std::cos(angle) + c * std::cos(2 * angle) : a + b + c);
    }
  });
  return known ? errc::ok : errc::unsupported;
}
inline errc run_hann(const kernel_args& args) { return run_window_function(args, 0.5, 0.5, 0); }
inline errc run_hamming(const kernel_args& args) {
  return run_window_function(args, 25.0 / 46, 21.0 / 46, 0);
}
inline errc run_blackman(const kernel_args& args) {
  return run_window_function(args, 0.42, 0.5, 0.08);
}

// ---- MelWeightMatrix (17)
// ------------------------------------------------------------------------

/// Triangles on the mel scale: (floor(dft_length / 2) + 1, num_mel_bins).
inline errc run_mel_weights(const kernel_args& args) {
  const tensor_view& y = args.outputs[0];
  if (y.rank != 2) return errc::rank_mismatch;
  const i64 rows = y.dims[0], bins = y.dims[1];
  const double length = static_cast<double>(integer_at(args.inputs[1], 0));
  const double rate = static_cast<double>(integer_at(args.inputs[2], 0));
  if (!(rate > 0)) return errc::value_range;
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(real_at(args.inputs[3], 0)), high = mel(real_at(args.inputs[4], 0));
  const double step = (high - low) / static_cast<double>(bins + 2);
  const auto edge = [&](i64 k) {  // spectrogram bin of mel bin k
    const double hertz = 700 * (std::pow(10.0, (static_cast<double>(k) * step + low) / 2595) - 1);
    const double at = std::floor((length + 1) * hertz / rate);
    return at >= 0 && at <= static_cast<double>(rows) ? static_cast<i64>(at)
           : at < 0                                   ? i64{0}
                                                      : rows;
  };
  const bool known = with_storage(y.type, [&]<class T>() {
    for (i64 i = 0; i < rows * bins; ++i) y.as<T>()[i] = convert_value<T>(0.0);
    for (i64 i = 0; i < bins; ++i) {
      const i64 lo = edge(i), centre = edge(i + 1), hi = edge(i + 2);
      const auto set = [&](i64 row, double v) {
        if (row < rows) y.as<T>()[row * bins + i] = convert_value<T>(v);
      };
      if (centre == lo) set(centre, 1);
      for (i64 j = lo; j <= centre && centre > lo; ++j)
        set(j, static_cast<double>(j - lo) / static_cast<double>(centre - lo));
      for (i64 j = centre; j < hi; ++j)
        set(j, static_cast<double>(hi - j) / static_cast<double>(hi - centre));
    }
  });
  return known ? errc::ok : errc::unsupported;
}

}  // namespace sod2::kernel_detail
