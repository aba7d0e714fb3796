// Random tensors. Element i of run r is a hash of (seed, r, i): the same for any number of threads,
// new in every run, and the same sequence of runs for the same attribute `seed`.
#pragma once

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>

#include <sod2/kernel/std/reduction.hpp>

namespace sod2::kernel_detail {

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
constexpr std::uint64_t mix_bits(std::uint64_t v) {
  v = (v ^ v >> 30U) * 0xbf58476d1ce4e5b9U;
  v = (v ^ v >> 27U) * 0x94d049bb133111ebU;
  return v ^ v >> 31U;
}

struct random_state {
  double first = 0, second = 1;  // low and high, or mean and scale
  std::uint64_t seed = 0;
  /// Runs so far: the only thing that a run changes, so sessions may share the state.
  mutable std::atomic<std::uint64_t> runs{0};

  std::uint64_t next_key() const {
    return mix_bits(seed + mix_bits(runs.fetch_add(1, std::memory_order_relaxed) + 1));
  }
};
/// In [0, 1), for draw `i` of a run.
inline double random_unit(std::uint64_t key, i64 i) {
  const std::uint64_t bits =
      mix_bits(key + 0x9e3779b97f4a7c15U * static_cast<std::uint64_t>(i + 1));
  return static_cast<double>(bits >> 11U) * 0x1p-53;
}

inline result<kernel_state> make_random(const prepare_args& args, double first, double second) {
  auto* s = new (std::nothrow) random_state;
  if (s == nullptr) return error(errc::out_of_memory);
  s->first = first;
  s->second = second;
  const attribute_view seed = args.attributes("seed");
  if (seed.kind == attribute_kind::real)
    s->seed = std::bit_cast<std::uint64_t>(seed.real);
  else if (seed.kind == attribute_kind::integer)
    s->seed = static_cast<std::uint64_t>(seed.integer);
  else  // two nodes without a seed must differ, and so must two programs
    s->seed =
        mix_bits(reinterpret_cast<std::uintptr_t>(s)) ^
        static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return own(s);
}
inline result<kernel_state> prepare_random_uniform(const prepare_args& args) {
  if (args.outputs.empty() || !is_float(args.outputs[0].type))
    return error(errc::type_mismatch, "random numbers are floats");
  return make_random(args, args.attributes.real("low", 0), args.attributes.real("high", 1));
}
inline result<kernel_state> prepare_random_normal(const prepare_args& args) {
  if (args.outputs.empty() || !is_float(args.outputs[0].type))
    return error(errc::type_mismatch, "random numbers are floats");
  return make_random(args, args.attributes.real("mean", 0), args.attributes.real("scale", 1));
}
inline result<kernel_state> prepare_random(const prepare_args& args) {
  if (!is_float(input_type(args, 0))) return error(errc::type_mismatch, "probabilities are floats");
  return make_random(args, 0, 1);
}

/// RandomUniform, RandomUniformLike (1, 22).
inline errc run_random_uniform(const kernel_args& args) {
  const auto& s = state_of<random_state>(args);
  const tensor_view& y = args.outputs[0];
  const std::uint64_t key = s.next_key();
  return with_real(y.type, [&]<class T>() {
    parallel_parts(args.pool, y.count(), 8000, [&](i64, i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i)
        y.as<T>()[i] = convert_value<T>(s.first + (s.second - s.first) * random_unit(key, i));
    });
  });
}

/// RandomNormal, RandomNormalLike (1, 22), after Box and Muller.
inline errc run_random_normal(const kernel_args& args) {
  const auto& s = state_of<random_state>(args);
  const tensor_view& y = args.outputs[0];
  const std::uint64_t key = s.next_key();
  return with_real(y.type, [&]<class T>() {
    parallel_parts(args.pool, y.count(), 4000, [&](i64, i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) {
        const double radius = std::sqrt(-2 * std::log(1 - random_unit(key, 2 * i)));
        const double angle = 6.283185307179586 * random_unit(key, 2 * i + 1);
        y.as<T>()[i] = convert_value<T>(s.first + s.second * radius * std::cos(angle));
      }
    });
  });
}

/// Bernoulli (15, 22): 1 with the probability in the input.
inline errc run_bernoulli(const kernel_args& args) {
  const std::uint64_t key = state_of<random_state>(args).next_key();
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const bool known = with_storage(y.type, [&]<class T>() {
    parallel_parts(args.pool, y.count(), 8000, [&](i64, i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i)
        y.as<T>()[i] = convert_value<T>(random_unit(key, i) < real_at(x, i) ? 1.0f : 0.0f);
    });
  });
  return known ? errc::ok : errc::unsupported;
}

inline result<kernel_state> prepare_dropout(const prepare_args& args) {
  if (!is_float(input_type(args, 0))) return error(errc::type_mismatch, "Dropout works on floats");
  return make_random(args, 0, 1);
}
/// Dropout (12, 13, 22) whose training_mode the run decides: each element is dropped with the
/// probability `ratio` (default 0.5), the others grow by 1 / (1 - ratio).
inline errc run_dropout(const kernel_args& args) {
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  const bool training = *args.inputs[2].as<const std::uint8_t>() != 0;
  const double given = has_input(args, 1) ? real_at(args.inputs[1], 0) : 0.5;
  const double ratio = training ? given : 0;
  if (!(ratio >= 0 && ratio < 1)) return errc::value_range;
  const std::uint64_t key = ratio > 0 ? state_of<random_state>(args).next_key() : 0;
  auto* const mask = args.outputs.size() > 1 && args.outputs[1].present()
                         ? args.outputs[1].as<std::uint8_t>()
                         : nullptr;
  return with_real(x.type, [&]<class T>() {
    using S = typename accumulator<T>::type;
    const S scale = static_cast<S>(1 / (1 - ratio));
    parallel_parts(args.pool, y.count(), 8000, [&](i64, i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) {
        const bool kept = ratio == 0 || random_unit(key, i) >= ratio;
        y.as<T>()[i] = kept ? narrow<T>(widen(x.as<const T>()[i]) * scale) : narrow<T>(S(0));
        if (mask != nullptr) mask[i] = kept ? 1 : 0;
      }
    });
  });
}

/// Multinomial (7, 22): log-probabilities (B, classes), up to a constant -> classes (B, samples).
inline errc run_multinomial(const kernel_args& args) {
  const std::uint64_t key = state_of<random_state>(args).next_key();
  const tensor_view &x = args.inputs[0], &y = args.outputs[0];
  if (x.rank != 2 || y.rank != 2) return errc::rank_mismatch;
  if (y.type != dtype::i32 && y.type != dtype::i64) return errc::unsupported;
  const i64 classes = x.dims[1], samples = y.dims[1];
  if (y.count() == 0) return errc::ok;
  if (classes == 0) return errc::value_range;
  parallel_parts(args.pool, x.dims[0], 1, [&](i64, i64 begin, i64 end) {
    for (i64 b = begin; b < end; ++b) {
      double top = real_at(x, b * classes), sum = 0;
      for (i64 c = 1; c < classes; ++c)
        top = real_at(x, b * classes + c) > top ? real_at(x, b * classes + c) : top;
      for (i64 c = 0; c < classes; ++c) sum += std::exp(real_at(x, b * classes + c) - top);
      for (i64 k = 0; k < samples; ++k) {
        double left = random_unit(key, b * samples + k) * sum;
        i64 chosen = -1;
        for (i64 c = 0; c < classes; ++c) {
          const double p = std::exp(real_at(x, b * classes + c) - top);
          if (!(p > 0)) continue;
          chosen = c;
          if (left < p) break;
          left -= p;
        }
        if (chosen < 0) chosen = 0;
        if (y.type == dtype::i32)
          y.as<std::int32_t>()[b * samples + k] = static_cast<std::int32_t>(chosen);
        else
          y.as<i64>()[b * samples + k] = chosen;
      }
    }
  });
  return errc::ok;
}

}  // namespace sod2::kernel_detail
