// Attention and its companions.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>

namespace sod2::ops {

/// Attention-23, 24, 25: Q (B, Hq, Sq, D), K (B, Hk, Sk, D), V (B, Hk, Sk, Dv), or (B, S, H*D) with
/// attributes q_num_heads and kv_num_heads; Y as Q with Dv, the present keys and values (B, Hk,
/// P + Sk, D), the scores (B, Hq, Sq, P + Sk).
struct attention {
  static constexpr int since[] = {23, 24, 25};
  static constexpr op_info info{
      .name = "Attention", .versions = since, .inputs = {3, 7}, .outputs = {1, 4}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    using value_type = typename C::value_type;
    auto& domain = c.domain();
    c.copy_type(0, 0);
    if (c.output_count() > 1) c.copy_type(1, 1);
    if (c.output_count() > 2) c.copy_type(2, 2);
    if (c.output_count() > 3) c.copy_type(0, 3);
    if (!ranks_known(c, {0, 1, 2})) return {};
    std::int64_t q_heads = 0, kv_heads = 0;
    SOD2_TRY(read(c.attributes(), "q_num_heads", q_heads));
    SOD2_TRY(read(c.attributes(), "kv_num_heads", kv_heads));
    const auto q = c.dims(0), k = c.dims(1), v = c.dims(2);
    const bool flat = q.size() == 3;
    if (q.size() != 3 && q.size() != 4) return rank_error(c.input_name(0), q.size(), "3 or 4");
    SOD2_TRY(need_rank(c, 1, q.size()));
    SOD2_TRY(need_rank(c, 2, q.size()));
    if (flat && (q_heads < 1 || kv_heads < 1))
      return no_attribute(q_heads < 1 ? "q_num_heads" : "kv_num_heads");
    SOD2_TRY(need_dim(c, 1, 0, q[0]));
    SOD2_TRY(need_dim(c, 2, 0, q[0]));
    const std::size_t at = flat ? 1 : 2;
    SOD2_TRY(need_dim(c, 2, at, k[at]));
    auto head = [&](const value_type& width, std::int64_t heads, std::size_t input,
                    value_type& out) -> status {
      out = domain.floordiv(width, heads);
      if (!c.require_eq(domain.mul(out, domain.constant(heads)), width, errc::divisibility))
        return c.fail(errc::divisibility, input, 2, c.text(width),
                      std::to_string(heads) + " heads");
      return {};
    };
    value_type key = k.back(), width = v.back();
    const value_type heads = flat ? domain.constant(q_heads) : q[1],
                     kv = flat ? domain.constant(kv_heads) : k[1];
    if (flat) {
      SOD2_TRY(head(k[2], kv_heads, 1, key));
      SOD2_TRY(head(v[2], kv_heads, 2, width));
    } else {
      SOD2_TRY(need_dim(c, 1, 3, q[3], errc::inner_dims));
      SOD2_TRY(need_dim(c, 2, 1, k[1]));
    }
    value_type total = k[at];
    if (c.has_input(4))
      total = c.rank_known(4) && c.dims(4).size() == 4 ? domain.add(c.dims(4)[2], total)
                                                       : unknown_dim(domain);
    typename C::dim_list y, dims;
    if (flat)
      y = {q[0], q[1], domain.mul(heads, width)};
    else
      y = {q[0], heads, q[2], width};
    c.set_shape(0, y);
    for (std::size_t o = 1; o < c.output_count(); ++o) {
      dims = {q[0], o == 3 ? heads : kv, o == 3 ? q[at] : total,
              o == 1   ? key
              : o == 2 ? width
                       : total};
      c.set_shape(o, dims);
    }
    return {};
  }
  template <class C>
  static status backward(C& c) {
    const auto& y = c.output(0);
    if (!y.rank_known() || (y.dims.size() != 3 && y.dims.size() != 4)) return {};
    const std::size_t rank = y.dims.size(), at = rank == 3 ? 1 : 2;
    for (std::size_t i = 0; i < 3; ++i) {
      c.refine_rank(i, rank);
      c.refine(i, 0, y.dims[0]);
    }
    c.refine(0, at, y.dims[at]);
    if (rank == 4) {
      c.refine(0, 1, y.dims[1]);
      c.refine(2, 3, y.dims[3]);
    }
    for (std::size_t i = 1; i < 3; ++i) {
      const std::size_t other = 3 - i;
      if (c.rank_known(other) && c.dims(other).size() == rank) c.refine(i, at, c.dims(other)[at]);
    }
    return {};
  }
};

/// RotaryEmbedding-23: the shape of X.
struct rotary_embedding : detail::keeps_shape {
  static constexpr int since[] = {23};
  static constexpr op_info info{
      .name = "RotaryEmbedding", .versions = since, .map = mapping::one_to_one, .inputs = {3, 4}};
};

/// LinearAttention-27: query, key, value (B, T, heads*width) -> output (B, T, q heads * value
/// width); present_state as past_state, (B, kv heads, key width, value width).
struct linear_attention {
  static constexpr int since[] = {27};
  static constexpr op_info info{
      .name = "LinearAttention", .versions = since, .inputs = {3, 6}, .outputs = {1, 2}};
  template <class C>
  static status forward(C& c) {
    using namespace detail;
    auto& domain = c.domain();
    c.copy_type(0, 0);
    if (c.output_count() > 1) c.set_type(1, type_of(c, 3, 0));
    if (!ranks_known(c, {0, 2})) return {};
    std::int64_t q_heads = 0, kv_heads = 0;
    SOD2_TRY(read(c.attributes(), "q_num_heads", q_heads));
    SOD2_TRY(read(c.attributes(), "kv_num_heads", kv_heads));
    SOD2_TRY(need_rank_least(c, 0, 2));
    SOD2_TRY(need_rank(c, 2, c.dims(0).size()));
    typename C::dim_list dims = c.input(0).dims;
    const auto width = c.dims(2).back();
    if (dims.size() != 3 || q_heads == kv_heads || kv_heads < 1)
      dims.back() = width;
    else
      dims.back() = domain.mul(domain.floordiv(width, kv_heads), domain.constant(q_heads));
    c.set_shape(0, dims);
    if (c.output_count() < 2) return {};
    if (c.has_input(3)) {
      c.copy_shape(3, 1);
    } else if (dims.size() == 3 && kv_heads >= 1 && c.rank_known(1) && c.dims(1).size() == 3) {
      const typename C::dim_list state = {dims[0], domain.constant(kv_heads),
                                          domain.floordiv(c.dims(1)[2], kv_heads),
                                          domain.floordiv(width, kv_heads)};
      c.set_shape(1, state);
    } else {
      const typename C::dim_list state = {dims[0], c.fresh(1, 1, {0, infinity}),
                                          c.fresh(1, 2, {0, infinity}),
                                          c.fresh(1, 3, {0, infinity})};
      c.set_shape(1, state);
    }
    return {};
  }
};
/// CausalConvWithState-27: input (B, C, L), weight (C, 1, k) -> output as input; present_state as
/// past_state, (B, C, k - 1).
struct causal_conv_with_state {
  static constexpr int since[] = {27};
  static constexpr op_info info{
      .name = "CausalConvWithState", .versions = since, .inputs = {2, 4}, .outputs = {1, 2}};
  template <class C>
  static status forward(C& c) {
    if (c.output_count() > 1) {
      c.copy_type(0, 1);
      if (c.has_input(3)) {
        c.copy_shape(3, 1);
      } else if (c.rank_known(0) && c.rank_known(1) && c.dims(0).size() == 3 &&
                 !c.dims(1).empty()) {
        const typename C::dim_list state = {
            c.dims(0)[0], c.dims(0)[1], c.domain().sub(c.dims(1).back(), c.domain().constant(1))};
        c.set_shape(1, state);
      }
    }
    return detail::same_shape_and_type(c);
  }
  template <class C>
  static status backward(C& c) {
    return detail::same_shape_back(c);
  }
};

using attention_ops = op_set<attention, rotary_embedding, linear_attention, causal_conv_with_state>;

}  // namespace sod2::ops
