// Recurrent layers.
#pragma once

#include <initializer_list>

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops {

namespace detail {

/// X (T, B, I) or, with layout 1 (version 14), (B, T, I); W (D, gates*H, I), R (D, gates*H, H) ->
/// Y (T, D, B, H) or (B, T, D, H), and the last states (D, B, H) or (B, D, H).
template <class C>
status recurrent_forward(C& c, std::int64_t gates) {
  auto& domain = c.domain();
  for (std::size_t o = 0; o < c.output_count(); ++o) c.copy_type(0, o);
  std::string_view direction = "forward";
  std::int64_t hidden = 0, layout = 0;
  SOD2_TRY(read(c.attributes(), "direction", direction));
  SOD2_TRY(read(c.attributes(), "hidden_size", hidden));
  SOD2_TRY(read(c.attributes(), "layout", layout));
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return wrong_attribute("direction", "forward, reverse or bidirectional");
  if (c.pending(0) || c.pending(1) || c.pending(2)) return {};
  for (std::size_t i = 0; i < 3; ++i) SOD2_TRY(need_rank(c, i, 3));
  const auto directions = domain.constant(direction == "bidirectional" ? 2 : 1);
  const auto none = unknown_dim(domain);
  auto state = none, steps = none, batch = none;
  if (hidden > 0)
    state = domain.constant(hidden);
  else if (c.rank_known(2))
    state = c.dims(2)[2];
  if (c.rank_known(1)) {
    SOD2_TRY(need_dim(c, 1, 0, directions));
    SOD2_TRY(need_dim(c, 1, 1, domain.mul(state, domain.constant(gates))));
    if (c.rank_known(0)) SOD2_TRY(need_dim(c, 1, 2, c.dims(0)[2], errc::inner_dims));
  }
  if (c.rank_known(2)) SOD2_TRY(need_dim(c, 2, 2, state));
  if (c.rank_known(0)) {
    steps = c.dims(0)[layout == 0 ? 0 : 1];
    batch = c.dims(0)[layout == 0 ? 1 : 0];
  }
  // Bias, lengths, first states, peepholes.
  const auto agrees = [&](std::size_t i,
                          std::initializer_list<typename C::value_type> expected) -> status {
    if (!c.has_input(i) || !c.rank_known(i)) return {};
    SOD2_TRY(need_rank(c, i, expected.size()));
    std::size_t axis = 0;
    for (const auto& d : expected) {
      if (is_known(d)) SOD2_TRY(need_dim(c, i, axis, d));
      ++axis;
    }
    return {};
  };
  SOD2_TRY(agrees(3, {directions, domain.mul(state, domain.constant(2 * gates))}));
  SOD2_TRY(agrees(4, {batch}));
  for (std::size_t i = 5; i < 7; ++i)
    SOD2_TRY(layout == 0 ? agrees(i, {directions, batch, state})
                         : agrees(i, {batch, directions, state}));
  SOD2_TRY(agrees(7, {directions, domain.mul(state, domain.constant(3))}));
  for (std::size_t o = 0; o < c.output_count(); ++o) {
    typename C::dim_list dims;
    if (layout == 0) {
      if (o == 0) dims.push_back(steps);
      dims.push_back(directions);
      dims.push_back(batch);
    } else {
      dims.push_back(batch);
      if (o == 0) dims.push_back(steps);
      dims.push_back(directions);
    }
    dims.push_back(state);
    c.set_shape(o, dims);
  }
  return {};
}
template <class C>
status recurrent_back(C& c) {
  std::int64_t layout = 0;
  SOD2_TRY(read(c.attributes(), "layout", layout));
  c.refine_rank(0, 3);
  if (c.rank_known(1) && c.dims(1).size() == 3) c.refine(0, 2, c.dims(1)[2]);
  if (c.output_count() == 0) return {};
  const auto& out = c.output(0);
  if (!out.rank_known() || out.dims.size() != 4) return {};
  c.refine(0, layout == 0 ? 0 : 1, out.dims[layout == 0 ? 0 : 1]);
  c.refine(0, layout == 0 ? 1 : 0, out.dims[layout == 0 ? 2 : 0]);
  return {};
}
template <int Gates>
struct recurrent {
  template <class C>
  static status forward(C& c) {
    return recurrent_forward(c, Gates);
  }
  template <class C>
  static status backward(C& c) {
    return recurrent_back(c);
  }
};

}  // namespace detail

/// LSTM-1, 7, 14 (layout), 22: four gates; Y, Y_h, Y_c.
struct lstm : detail::recurrent<4> {
  static constexpr int since[] = {1, 7, 14, 22};
  static constexpr op_info info{
      .name = "LSTM", .versions = since, .inputs = {3, 8}, .outputs = {0, 3}};
};
/// GRU-1, 3, 7, 14 (layout), 22: three gates; Y, Y_h.
struct gru : detail::recurrent<3> {
  static constexpr int since[] = {1, 3, 7, 14, 22};
  static constexpr op_info info{
      .name = "GRU", .versions = since, .inputs = {3, 6}, .outputs = {0, 2}};
};
/// RNN-1, 7, 14 (layout), 22: one gate; Y, Y_h.
struct rnn : detail::recurrent<1> {
  static constexpr int since[] = {1, 7, 14, 22};
  static constexpr op_info info{
      .name = "RNN", .versions = since, .inputs = {3, 6}, .outputs = {0, 2}};
};

using recurrent_ops = op_set<lstm, gru, rnn>;

}  // namespace sod2::ops
