// Matrix products and what is built from them.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/support.hpp>
#include <sod2/shape/rules/product.hpp>

namespace sod2::ops {

namespace detail {

/// Output 0 = matmul of inputs a and b.
template <class C>
status matmul_forward(C& c, std::size_t a, std::size_t b) {
  if (!ranks_known(c, {a, b})) return {};
  typename C::dim_list dims;
  std::size_t failed = 0;
  const errc e = rules::matmul(c.domain(), c, c.dims(a), c.dims(b), dims, &failed);
  if (e == errc::rank_mismatch) {
    const std::size_t scalar = c.dims(a).empty() ? a : b;
    return rank_error(c.input_name(scalar), 0, "at least 1");
  }
  if (e == errc::inner_dims) {
    const auto x = c.dims(a), y = c.dims(b);
    const std::size_t k = y.size() == 1 ? 0 : y.size() - 2;
    return c.fail(e, b, static_cast<int>(k), c.text(x.back()), c.text(y[k]));
  }
  if (e != errc::ok) {
    const std::size_t rank =
        c.dims(a).size() > c.dims(b).size() ? c.dims(a).size() : c.dims(b).size();
    const int axis = static_cast<int>(failed + c.dims(b).size()) - static_cast<int>(rank);
    return c.fail(e, b, axis, c.text(c.dims(a)), c.text(c.dims(b)));
  }
  c.set_shape(0, dims);
  return {};
}

/// K of one operand from the other; M, N and, where the other operand is a matrix, the batch dims
/// from the output.
template <class C>
status matmul_back(C& c, std::size_t a, std::size_t b) {
  const auto& out = c.output(0);
  for (int side = 0; side < 2; ++side) {
    const std::size_t own = side == 0 ? a : b, other = side == 0 ? b : a;
    if (!c.rank_known(other) || c.dims(other).empty()) continue;
    const auto theirs = c.dims(other);
    std::size_t rank = c.rank_known(own) ? c.dims(own).size() : 0;
    if (!c.rank_known(own)) {
      // A matrix or more on both sides gives the rank of the larger; a vector takes one dim away.
      if (!out.rank_known()) continue;
      if (theirs.size() >= 2 && out.dims.size() + 1 == theirs.size())
        rank = 1;
      else if (theirs.size() >= 2 &&
               (out.dims.size() > theirs.size() || (out.dims.size() == 2 && theirs.size() == 2)))
        rank = out.dims.size();
      else
        continue;
      c.refine_rank(own, rank);
    }
    const auto k = side == 0 ? theirs[theirs.size() == 1 ? 0 : theirs.size() - 2] : theirs.back();
    c.refine(own, rank == 1 || side == 0 ? rank - 1 : rank - 2, k);
    if (!out.rank_known() || rank < 2) continue;
    // The own free dim sits last, or before the other's free dim.
    const bool other_is_matrix = theirs.size() >= 2;
    const std::size_t after = side == 0 && other_is_matrix ? 1 : 0;
    if (out.dims.size() < 1 + after) continue;
    c.refine(own, side == 0 ? rank - 2 : rank - 1, out.dims[out.dims.size() - 1 - after]);
    if (theirs.size() <= 2) {
      const std::size_t batch = rank - 2;
      for (std::size_t i = 0; i < batch && i < out.dims.size(); ++i) c.refine(own, i, out.dims[i]);
    }
  }
  return {};
}

}  // namespace detail

/// MatMul-1, 9, 13: numpy.matmul; (..., M, K) x (..., K, N) -> (..., M, N), vectors are promoted.
struct mat_mul {
  static constexpr int since[] = {1, 9, 13};
  static constexpr op_info info{.name = "MatMul", .versions = since, .inputs = {2, 2}};
  template <class C>
  static status forward(C& c) {
    SOD2_TRY(detail::need_same_type(c, 0, 1));
    c.set_type(0, detail::type_of(c, 0, 1));
    return detail::matmul_forward(c, 0, 1);
  }
  template <class C>
  static status backward(C& c) {
    return detail::matmul_back(c, 0, 1);
  }
};
/// MatMulInteger-10: 8-bit operands, int32 result.
struct mat_mul_integer {
  static constexpr int since[] = {10};
  static constexpr op_info info{.name = "MatMulInteger", .versions = since, .inputs = {2, 4}};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, dtype::i32);
    return detail::matmul_forward(c, 0, 1);
  }
  template <class C>
  static status backward(C& c) {
    return detail::matmul_back(c, 0, 1);
  }
};
/// QLinearMatMul-10, 21: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point.
struct qlinear_mat_mul {
  static constexpr int since[] = {10, 21};
  static constexpr op_info info{.name = "QLinearMatMul", .versions = since, .inputs = {8, 8}};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, detail::type_of(c, 7, 0));
    return detail::matmul_forward(c, 0, 3);
  }
  template <class C>
  static status backward(C& c) {
    return detail::matmul_back(c, 0, 3);
  }
};

/// Gemm-1, 6, 7, 9, 11, 13: A (M, K), B (K, N), each transposed on request; C broadcasts to (M, N).
struct gemm {
  static constexpr int since[] = {1, 6, 7, 9, 11, 13};
  static constexpr op_info info{.name = "Gemm", .versions = since, .inputs = {2, 3}};
  template <class C>
  static status transposed(C& c, bool& a, bool& b) {
    SOD2_TRY(detail::read(c.attributes(), "transA", a));
    return detail::read(c.attributes(), "transB", b);
  }
  template <class C>
  static status forward(C& c) {
    bool ta = false, tb = false;
    SOD2_TRY(transposed(c, ta, tb));
    SOD2_TRY(detail::need_same_type(c, 0, 1));
    c.set_type(0, detail::type_of(c, 0, 1));
    SOD2_TRY(detail::need_rank(c, 0, 2));
    SOD2_TRY(detail::need_rank(c, 1, 2));
    const bool known_a = c.rank_known(0), known_b = c.rank_known(1);
    if (c.pending(0) || c.pending(1)) return {};
    typename C::dim_list dims(2, unknown_dim(c.domain()));
    if (known_a) dims[0] = c.dims(0)[ta ? 1 : 0];
    if (known_b) dims[1] = c.dims(1)[tb ? 0 : 1];
    if (known_a && known_b)
      SOD2_TRY(detail::need_dim(c, 1, tb ? 1 : 0, c.dims(0)[ta ? 0 : 1], errc::inner_dims));
    if (c.rank_known(2) && known_a && known_b) {
      // Unidirectional: C may not widen the result.
      const auto bias = c.dims(2);
      if (bias.size() > 2) return detail::rank_error(c.input_name(2), bias.size(), "at most 2");
      const auto one = c.domain().constant(1);
      for (std::size_t i = 0; i < bias.size(); ++i)
        if (c.domain().decide_eq(bias[i], one) == tri::no)
          SOD2_TRY(detail::need_dim(c, 2, i, dims[i + 2 - bias.size()], errc::broadcast));
    }
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status backward(C& c) {
    bool ta = false, tb = false;
    SOD2_TRY(transposed(c, ta, tb));
    c.refine_rank(0, 2);
    c.refine_rank(1, 2);
    if (c.output(0).rank_known() && c.output(0).dims.size() == 2) {
      c.refine(0, ta ? 1 : 0, c.output(0).dims[0]);
      c.refine(1, tb ? 0 : 1, c.output(0).dims[1]);
    }
    if (c.rank_known(1) && c.dims(1).size() == 2) c.refine(0, ta ? 0 : 1, c.dims(1)[tb ? 1 : 0]);
    if (c.rank_known(0) && c.dims(0).size() == 2) c.refine(1, tb ? 1 : 0, c.dims(0)[ta ? 0 : 1]);
    return {};
  }
};

/// Det-11, 22: (..., M, M) -> (...).
struct det {
  static constexpr int since[] = {11, 22};
  static constexpr op_info info{.name = "Det", .versions = since};
  template <class C>
  static status forward(C& c) {
    c.copy_type(0, 0);
    if (!detail::ranks_known(c, {0})) return {};
    SOD2_TRY(detail::need_rank_least(c, 0, 2));
    const auto in = c.dims(0);
    SOD2_TRY(detail::need_dim(c, 0, in.size() - 1, in[in.size() - 2]));
    c.set_shape(0, in.first(in.size() - 2));
    return {};
  }
  template <class C>
  static status backward(C& c) {
    const auto& out = c.output(0);
    if (!out.rank_known()) return {};
    c.refine_rank(0, out.dims.size() + 2);
    for (std::size_t i = 0; i < out.dims.size(); ++i) c.refine(0, i, out.dims[i]);
    return {};
  }
};

/// Einsum-12, 28: dims are named by the letters of `equation`; `...` broadcasts.
struct einsum {
  static constexpr int since[] = {12, 28};
  static constexpr op_info info{.name = "Einsum", .versions = since, .inputs = {1, many}};

  template <class C>
  static status forward(C& c) {
    using value_type = typename C::value_type;
    std::string_view equation;
    SOD2_TRY(detail::require(c.attributes(), "equation", equation));
    c.copy_type(0, 0);
    bool known = true, pending = false;
    for (std::size_t i = 0; i < c.input_count(); ++i) {
      known = known && c.rank_known(i);
      pending = pending || c.pending(i);
    }
    std::string text;
    for (char ch : equation)
      if (ch != ' ') text.push_back(ch);
    const std::size_t arrow = text.find("->");
    const std::string terms = text.substr(0, arrow);
    if (!known) {
      if (pending) return {};
      const std::string result =
          arrow == std::string::npos ? std::string("...") : text.substr(arrow + 2);
      if (result.find('.') == std::string::npos)
        c.set_rank(0, result.size());
      else
        c.set_rank_unknown(0);
      return {};
    }
    // Letters are 7-bit.
    value_type dims[128]{};
    int uses[128] = {};
    typename C::dim_list ellipsis;
    std::size_t at = 0;
    for (std::size_t i = 0; i < c.input_count(); ++i) {
      const std::size_t comma = terms.find(',', at);
      if (at > terms.size())
        return detail::wrong_attribute("equation", "an equation with one term per input");
      const std::string term = terms.substr(at, comma == std::string::npos ? comma : comma - at);
      at = comma == std::string::npos ? terms.size() + 1 : comma + 1;
      const auto in = c.dims(i);
      const std::size_t dots = term.find("...");
      const std::size_t letters = dots == std::string::npos ? term.size() : term.size() - 3;
      if (letters > in.size() || (dots == std::string::npos && letters != in.size()))
        return detail::rank_error(c.input_name(i), in.size(),
                                  std::to_string(letters) + " as the equation says");
      std::size_t axis = 0;
      for (std::size_t k = 0; k < term.size(); ++k) {
        if (k == dots) {
          const typename C::dim_list before = ellipsis;
          const auto part = in.subspan(axis, in.size() - letters);
          if (rules::broadcast_shapes(c.domain(), c, before.view(), part, ellipsis) != errc::ok)
            return c.fail(errc::broadcast, i, static_cast<int>(axis), c.text(before.view()),
                          c.text(part));
          axis += in.size() - letters;
          k += 2;
          continue;
        }
        const auto letter = static_cast<unsigned char>(term[k]) & 127U;
        if (uses[letter]++ == 0) {
          dims[letter] = in[axis];
        } else {
          // Repeated letters agree; a literal 1 yields, as every runtime lets it.
          value_type joined = dims[letter];
          if (rules::broadcast_dim(c.domain(), c, dims[letter], in[axis], joined) != errc::ok)
            return c.fail(errc::dim_mismatch, i, static_cast<int>(axis), c.text(in[axis]),
                          c.text(dims[letter]));
          dims[letter] = joined;
        }
        ++axis;
      }
    }
    typename C::dim_list out;
    if (arrow == std::string::npos) {
      // Implicit: the ellipsis, then the letters used once, in alphabetical order.
      out = ellipsis;
      for (std::size_t letter = 0; letter < 128; ++letter)
        if (uses[letter] == 1) out.push_back(dims[letter]);
    } else {
      const std::string result = text.substr(arrow + 2);
      for (std::size_t k = 0; k < result.size(); ++k) {
        if (result[k] == '.') {
          for (const value_type& d : ellipsis) out.push_back(d);
          k += 2;
          continue;
        }
        const auto letter = static_cast<unsigned char>(result[k]) & 127U;
        if (uses[letter] == 0)
          return detail::wrong_attribute("equation",
                                         "an equation whose result uses letters of its terms");
        out.push_back(dims[letter]);
      }
    }
    c.set_shape(0, out);
    return {};
  }
};

using product_ops = op_set<mat_mul, mat_mul_integer, qlinear_mat_mul, gemm, det, einsum>;

}  // namespace sod2::ops
