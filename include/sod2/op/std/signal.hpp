// Fourier transforms and windows.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/elements.hpp>
#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops {

namespace detail {
/// The single element of value input i as a size; false when it is not known.
template <class C>
bool scalar_size(C& c, std::size_t i, typename C::value_type& out) {
  if (!c.has_value(i) || c.value(i).size() != 1 || !is_known(c.value(i)[0])) return false;
  out = c.value(i)[0];
  return true;
}
/// floor(n / 2) + 1 bins of a one-sided transform.
template <class C>
typename C::value_type one_sided_bins(C& c, typename C::value_type n) {
  return c.domain().add(c.domain().floordiv(n, 2), c.domain().constant(1));
}
/// A vector of `size` elements.
struct window_function {
  template <class C>
  static status forward(C& c) {
    dtype type = dtype::f32;
    SOD2_TRY(read_type(c.attributes(), "output_datatype", type));
    c.set_type(0, type);
    if (c.pending(0)) return {};
    typename C::dim_list dims(1);
    if (!scalar_size(c, 0, dims[0])) dims[0] = c.fresh(0, 0, {0, infinity});
    c.set_shape(0, dims);
    return {};
  }
};
}  // namespace detail

/// DFT-17 (attribute axis), 20 (input axis): the axis gets dft_length (one-sided: half of it plus
/// 1), the last dim becomes 2 (real and imaginary part).
struct dft {
  static constexpr int since[] = {17, 20};
  static constexpr op_info info{
      .name = "DFT", .versions = since, .base = dynamism::isvdos, .inputs = {1, 3}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    auto& domain = c.domain();
    c.copy_type(0, 0);
    if (!ranks_known(c, {0})) return {};
    if (c.pending(1) || c.pending(2)) return {};
    SOD2_TRY(need_rank_least(c, 0, 2));
    bool one_sided = false, inverse = false;
    SOD2_TRY(read(c.attributes(), "onesided", one_sided));
    SOD2_TRY(read(c.attributes(), "inverse", inverse));
    typename C::dim_list dims = c.input(0).dims;
    const std::size_t rank = dims.size();
    std::int64_t axis = c.version() < 20 ? 1 : -2;
    index_list given;
    bool axis_known = true;
    if (c.version() < 20)
      SOD2_TRY(read(c.attributes(), "axis", axis));
    else if (c.has_input(2)) {
      axis_known = c.constants(2, given) && given.size() == 1;
      if (axis_known) axis = given[0];
    }
    dims.back() = domain.constant(one_sided && inverse ? 1 : 2);
    if (!axis_known) {
      for (std::size_t i = 0; i + 1 < rank; ++i) dims[i] = c.fresh(0, i, {0, infinity});
      c.set_shape(0, dims);
      return {};
    }
    std::size_t at = 0;
    SOD2_TRY(axis_of(c, 0, axis, rank, at));
    auto length = dims[at];
    if (one_sided && inverse)
      length = domain.mul(domain.sub(length, domain.constant(1)), domain.constant(2));
    if (c.has_input(1) && !scalar_size(c, 1, length)) length = unknown_dim(domain);
    if (one_sided && !inverse && is_known(length)) length = one_sided_bins(c, length);
    if (at + 1 < rank) dims[at] = size_or_fresh(c, 0, at, length);
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    if (!c.output(0).rank_known() || c.output(0).dims.empty()) return {};
    c.refine_rank(0, c.output(0).dims.size());
    c.refine(0, 0, c.output(0).dims[0]);
    return {};
  }
};

/// STFT-17: signal (B, L, 1 or 2) -> (B, floor((L - frame)/step) + 1, bins, 2).
struct stft {
  static constexpr int since[] = {17};
  static constexpr op_info info{
      .name = "STFT", .versions = since, .base = dynamism::isvdos, .inputs = {2, 4}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    auto& domain = c.domain();
    c.copy_type(0, 0);
    for (std::size_t i = 0; i < c.input_count(); ++i)
      if (c.pending(i)) return {};
    SOD2_TRY(need_rank(c, 0, 3));
    bool one_sided = true;
    SOD2_TRY(read(c.attributes(), "onesided", one_sided));
    typename C::dim_list dims(3, unknown_dim(domain));
    dims.push_back(domain.constant(2));
    if (c.rank_known(0)) dims[0] = c.dims(0)[0];
    auto frame = unknown_dim(domain);
    bool known = c.has_input(3) && scalar_size(c, 3, frame);
    if (!c.has_input(3) && c.rank_known(2) && c.dims(2).size() == 1) {
      frame = c.dims(2)[0];
      known = is_known(frame);
    }
    index_list step;
    if (known && c.rank_known(0) && c.constants(1, step) && step.size() == 1 && step[0] > 0)
      dims[1] =
          domain.add(domain.floordiv(domain.sub(c.dims(0)[1], frame), step[0]), domain.constant(1));
    dims[1] = size_or_fresh(c, 0, 1, dims[1]);
    if (known) dims[2] = one_sided ? one_sided_bins(c, frame) : frame;
    dims[2] = size_or_fresh(c, 0, 2, dims[2]);
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    c.refine_rank(0, 3);
    if (c.output(0).rank_known() && !c.output(0).dims.empty()) c.refine(0, 0, c.output(0).dims[0]);
    return {};
  }
};

/// BlackmanWindow-17: (size).
struct blackman_window : detail::window_function {
  static constexpr int since[] = {17};
  static constexpr op_info info{.name = "BlackmanWindow",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::source};
};
/// HammingWindow-17: (size).
struct hamming_window : detail::window_function {
  static constexpr int since[] = {17};
  static constexpr op_info info{
      .name = "HammingWindow", .versions = since, .base = dynamism::isvdos, .map = mapping::source};
};
/// HannWindow-17: (size).
struct hann_window : detail::window_function {
  static constexpr int since[] = {17};
  static constexpr op_info info{
      .name = "HannWindow", .versions = since, .base = dynamism::isvdos, .map = mapping::source};
};
/// MelWeightMatrix-17: (floor(dft_length/2) + 1, num_mel_bins).
struct mel_weight_matrix {
  static constexpr int since[] = {17};
  static constexpr op_info info{.name = "MelWeightMatrix",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::source,
                                .inputs = {5, 5}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    dtype type = dtype::f32;
    SOD2_TRY(read_type(c.attributes(), "output_datatype", type));
    c.set_type(0, type);
    if (c.pending(0) || c.pending(1)) return {};
    typename C::dim_list dims(2);
    if (scalar_size(c, 1, dims[0]))
      dims[0] = one_sided_bins(c, dims[0]);
    else
      dims[0] = c.fresh(0, 0, {1, infinity});
    if (!scalar_size(c, 0, dims[1])) dims[1] = c.fresh(0, 1, {0, infinity});
    c.set_shape(0, dims);
    return {};
  }
};

using signal_ops =
    op_set<dft, stft, blackman_window, hamming_window, hann_window, mel_weight_matrix>;

}  // namespace sod2::ops
