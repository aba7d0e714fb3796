// Shapes as values, constants, ranges.
#pragma once

#include <bit>
#include <cmath>

#include <sod2/op/constant.hpp>
#include <sod2/op/registry.hpp>
#include <sod2/op/std/detail/elements.hpp>
#include <sod2/op/std/detail/support.hpp>
#include <sod2/shape/rules/reshape.hpp>

namespace sod2::ops {

/// Shape-1, 13, 15 (start, end), 19, 21, 23, 24, 25: a vector of the dims [start, end).
struct shape {
  static constexpr int since[] = {1, 13, 15, 19, 21, 23, 24, 25};
  static constexpr op_info info{
      .name = "Shape", .versions = since, .base = dynamism::isdo, .map = mapping::source};
  // Start and end clamp, as in a slice.
  template <class C>
  static status range(C& c, std::size_t rank, std::size_t& first, std::size_t& last) {
    const std::int64_t r = static_cast<std::int64_t>(rank);
    std::int64_t start = 0, end = r;
    SOD2_TRY(detail::read(c.attributes(), "start", start));
    SOD2_TRY(detail::read(c.attributes(), "end", end));
    if (start < 0) start += r;
    if (end < 0) end += r;
    start = start < 0 ? 0 : start > r ? r : start;
    end = end < start ? start : end > r ? r : end;
    first = static_cast<std::size_t>(start);
    last = static_cast<std::size_t>(end);
    return {};
  }
  template <class C>
  static status forward(C& c) {
    c.set_type(0, dtype::i64);
    typename C::dim_list dims;
    if (c.rank_known(0)) {
      std::size_t first = 0, last = 0;
      SOD2_TRY(range(c, c.dims(0).size(), first, last));
      dims.push_back(c.domain().constant(static_cast<std::int64_t>(last - first)));
    } else {
      dims.push_back(c.pending(0) ? typename C::value_type{} : c.fresh(0, 0, {0, 64}));
    }
    c.set_shape(0, dims);
    return {};
  }
  /// The rank of the input from the length; its dims where the elements are known from elsewhere.
  template <class C>
  static status backward(C& c) {
    const auto& out = c.output(0);
    std::int64_t rank = 0;
    if (!out.rank_known() || out.dims.size() != 1 || c.attributes()("start") ||
        c.attributes()("end"))
      return {};
    if (!is_known(out.dims[0]) || !c.domain().as_constant(out.dims[0], rank) || rank < 0) return {};
    c.refine_rank(0, static_cast<std::size_t>(rank));
    if (out.has_value && out.elements.size() == static_cast<std::size_t>(rank))
      for (std::size_t i = 0; i < out.elements.size(); ++i) c.refine(0, i, out.elements[i]);
    return {};
  }
  template <class C>
  static status value(C& c) {
    if (!c.rank_known(0)) return {};
    std::size_t first = 0, last = 0;
    SOD2_TRY(range(c, c.dims(0).size(), first, last));
    c.set_value(0, c.dims(0).subspan(first, last - first));
    return {};
  }
};

/// Size-1, 13, 19, 21, 23, 24, 25: the number of elements, a scalar.
struct size {
  static constexpr int since[] = {1, 13, 19, 21, 23, 24, 25};
  static constexpr op_info info{
      .name = "Size", .versions = since, .base = dynamism::isdo, .map = mapping::source};
  template <class C>
  static status forward(C& c) {
    c.set_type(0, dtype::i64);
    c.set_rank(0, 0);
    return {};
  }
  template <class C>
  static status value(C& c) {
    if (!c.rank_known(0)) return {};
    const typename C::value_type count[1] = {rules::element_count(c.domain(), c.dims(0))};
    c.set_value(0, std::span<const typename C::value_type>(count));
    return {};
  }
};

/// Constant-1, 9, 11 (sparse_value), 12 (value_int, value_ints, ...), 13, 19, 21, 23, 24, 25.
struct constant {
  static constexpr int since[] = {1, 9, 11, 12, 13, 19, 21, 23, 24, 25};
  static constexpr op_info info{.name = "Constant",
                                .versions = since,
                                .base = dynamism::isdo,
                                .map = mapping::source,
                                .inputs = {0, 0}};
  template <class C>
  static status forward(C& c) {
    auto& domain = c.domain();
    const attribute_source& a = c.attributes();
    typename C::dim_list dims;
    if (const attribute_view v = a("value"); v) {
      if (v.kind != attribute_kind::tensor) return detail::wrong_attribute("value", "a tensor");
      read_constant(domain, v.tensor, c.output(0));
      return {};
    }
    if (const attribute_view v = a("sparse_value"); v) {
      if (v.kind != attribute_kind::tensor)
        return detail::wrong_attribute("sparse_value", "a tensor");
      c.set_type(0, v.tensor.type);
      for (std::int64_t d : v.tensor.dims) dims.push_back(domain.constant(d));
      c.set_shape(0, dims);
      return {};
    }
    auto list = [&](dtype type, std::size_t count) {
      c.set_type(0, type);
      dims.push_back(domain.constant(static_cast<std::int64_t>(count)));
      c.set_shape(0, dims);
    };
    detail::element_list<C> elements(c);
    if (const attribute_view v = a("value_int"); v) {
      c.set_type(0, dtype::i64);
      c.set_shape(0, dims);
      elements.push_constant(v.integer);
      elements.commit(0);
    } else if (const attribute_view vs = a("value_ints"); vs) {
      list(dtype::i64, vs.integers.size());
      if (vs.integers.size() > max_tracked_elements) return {};
      for (std::int64_t k : vs.integers) elements.push_constant(k);
      elements.commit(0);
    } else if (const attribute_view r = a("value_float"); r) {
      c.set_type(0, dtype::f32);
      c.set_shape(0, dims);
      push_real(c, elements, r.real);
      elements.commit(0);
    } else if (const attribute_view rs = a("value_floats"); rs) {
      list(dtype::f32, rs.reals.size());
      if (rs.reals.size() > max_tracked_elements) return {};
      for (float x : rs.reals) push_real(c, elements, static_cast<double>(x));
      elements.commit(0);
    } else if (a("value_string")) {
      c.set_type(0, dtype::string);
      c.set_shape(0, dims);
    } else if (const attribute_view s = a("value_strings"); s) {
      list(dtype::string, s.strings.size());
    } else {
      return detail::no_attribute("value");
    }
    return {};
  }

 private:
  template <class C>
  static void push_real(C& c, detail::element_list<C>& elements, double x) {
    typename C::value_type v{};
    if (detail::real_constant(c.domain(), static_cast<double>(static_cast<float>(x)), false, v))
      elements.push(v);
    else
      elements.push_unknown();
  }
};

/// ConstantOfShape-9, 20, 21, 23, 24, 25: dims from the input's value, filled with attribute value
/// (one float 0 when absent).
struct constant_of_shape {
  static constexpr int since[] = {9, 20, 21, 23, 24, 25};
  static constexpr op_info info{
      .name = "ConstantOfShape", .versions = since, .base = dynamism::isdo, .map = mapping::source};
  template <class C>
  static status forward(C& c) {
    const attribute_view fill = c.attributes()("value");
    if (fill && fill.kind != attribute_kind::tensor)
      return detail::wrong_attribute("value", "a tensor");
    c.set_type(0, fill ? fill.tensor.type : dtype::f32);
    if (c.pending(0)) return {};
    SOD2_TRY(detail::need_rank(c, 0, 1));
    typename C::dim_list dims;
    if (!detail::dims_from_value(c, 0, dims)) return {};
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status value(C& c) {
    detail::index_list dims;
    if (!c.constants(0, dims)) return {};
    const std::int64_t count = detail::product_of(dims);
    if (!detail::tracked(count)) return {};
    using value_type = typename C::value_type;
    basic_fact<value_type> fill;
    const attribute_view given = c.attributes()("value");
    if (given) {
      read_constant(c.domain(), given.tensor, fill);
    } else if (value_type zero{}; detail::real_constant(c.domain(), 0.0, false, zero)) {
      fill.has_value = true;
      fill.elements.push_back(zero);
    }
    if (!fill.has_value || fill.elements.size() != 1) return {};
    const small_vector<value_type, 8> all(static_cast<std::size_t>(count), fill.elements[0]);
    c.set_value(0, all);
    return {};
  }
};

/// Range-11, 27: max(0, ceil((limit - start) / delta)) elements.
struct range {
  static constexpr int since[] = {11, 27};
  static constexpr op_info info{.name = "Range",
                                .versions = since,
                                .base = dynamism::isvdos,
                                .map = mapping::source,
                                .inputs = {3, 3}};
  template <class C>
  static status forward(C& c) {
    using value_type = typename C::value_type;
    auto& domain = c.domain();
    const dtype type = detail::type_of(c, 0, 1);
    c.set_type(0, type);
    if (c.pending(0) || c.pending(1) || c.pending(2)) return {};
    value_type v[3]{};
    bool known = true;
    for (std::size_t i = 0; i < 3; ++i) {
      SOD2_TRY(check_scalar(c, i));
      known = known && c.has_value(i) && c.value(i).size() == 1;
      if (known) v[i] = c.value(i)[0];
      if (known && is_undefined(v[i])) return {};
      known = known && is_known(v[i]);
    }
    typename C::dim_list dims(1);
    bool done = false;
    std::int64_t step = 0;
    if (known && is_integer(type) && domain.as_constant(v[2], step)) {
      if (step == 0)
        return error(errc::value_range, "Range needs a delta that is not 0")
            .at_tensor(c.input_name(2));
      const auto distance = step > 0 ? domain.sub(v[1], v[0]) : domain.sub(v[0], v[1]);
      const std::int64_t stride = step > 0 ? step : step == INT64_MIN ? INT64_MAX : -step;
      const auto one = domain.constant(1);
      const auto count = domain.add(domain.floordiv(domain.sub(distance, one), stride), one);
      dims[0] = domain.max(domain.constant(0), count);
      done = true;
    }
    if constexpr (detail::is_symbolic<typename C::domain_type>) {
      if (known && !done && (type == dtype::f32 || type == dtype::f64)) {
        dim_context& context = domain.context();
        const bool wide = type == dtype::f64;
        const dim ends[2] = {v[1], v[0]};
        const dim ratio[2] = {context.real(real_op::sub, wide, ends), v[2]};
        const dim rounded[1] = {context.real(real_op::div, wide, ratio)};
        dims[0] = domain.max(domain.constant(0), context.real(real_op::ceil_int, wide, rounded));
        done = true;
      }
    }
    if constexpr (detail::is_concrete<typename C::domain_type>) {
      if (known && !done && (type == dtype::f32 || type == dtype::f64)) {
        const bool wide = type == dtype::f64;
        std::int64_t distance = 0, ratio = 0;
        if (detail::real_element(domain, detail::element_op::sub, wide, v[1], v[0], distance) &&
            detail::real_element(domain, detail::element_op::div, wide, distance, v[2], ratio)) {
          const double count = std::ceil(std::bit_cast<double>(ratio));
          dims[0] = count > 0 ? static_cast<std::int64_t>(count) : 0;
          done = true;
        }
      }
    }
    if (!done) dims[0] = c.fresh(0, 0, {0, infinity});
    c.set_shape(0, dims);
    return {};
  }
  template <class C>
  static status value(C& c) {
    auto& domain = c.domain();
    const auto& out = c.output(0);
    std::int64_t count = 0;
    if (!is_integer(out.type) || !out.rank_known() || out.dims.size() != 1 ||
        !is_known(out.dims[0]) || !domain.as_constant(out.dims[0], count) ||
        !detail::tracked(count))
      return {};
    if (!c.has_value(0) || !c.has_value(2) || c.value(0).empty() || c.value(2).empty()) return {};
    detail::element_list<C> elements(c);
    for (std::int64_t i = 0; i < count; ++i)
      elements.push(domain.add(c.value(0)[0], domain.mul(c.value(2)[0], domain.constant(i))));
    elements.commit(0);
    return {};
  }

 private:
  // A scalar, or one element as some exporters write it.
  template <class C>
  static status check_scalar(C& c, std::size_t i) {
    if (c.rank_known(i) && c.dims(i).size() > 1)
      return detail::rank_error(c.input_name(i), c.dims(i).size(), "0");
    return {};
  }
};

/// EyeLike-9, 22: the shape of a matrix; type from attribute dtype, else the input's.
struct eye_like {
  static constexpr int since[] = {9, 22};
  static constexpr op_info info{
      .name = "EyeLike", .versions = since, .base = dynamism::isdo, .map = mapping::source};
  template <class C>
  static status forward(C& c) {
    dtype type = c.input(0).type;
    SOD2_TRY(detail::read_type(c.attributes(), "dtype", type));
    c.set_type(0, type);
    SOD2_TRY(detail::need_rank(c, 0, 2));
    return detail::same_shape(c);
  }
  template <class C>
  static status backward(C& c) {
    return detail::same_shape_back(c);
  }
  template <class C>
  static status value(C& c) {
    detail::index_list dims;
    std::int64_t k = 0;
    SOD2_TRY(detail::read(c.attributes(), "k", k));
    if (!detail::concrete_dims(c, 0, dims) || dims.size() != 2 ||
        !detail::tracked(detail::product_of(dims)) || !is_integer(c.output(0).type))
      return {};
    detail::element_list<C> elements(c);
    for (std::int64_t i = 0; i < dims[0]; ++i)
      for (std::int64_t j = 0; j < dims[1]; ++j) elements.push_constant(j - i == k ? 1 : 0);
    elements.commit(0);
    return {};
  }
};

using shape_ops = op_set<shape, size, constant, constant_of_shape, range, eye_like>;

}  // namespace sod2::ops
