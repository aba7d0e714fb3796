// Compile-time shapes: lists of compile-time dims.
//
//   dims<batch, 32, 2>   is   static_shape<Batch, lit<32>, lit<2>>
//
// Rules of shape/rules/ run on them unchanged: over a context, while compiling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <sod2/core/diagnostic.hpp>
#include <sod2/expr/domain.hpp>
#include <sod2/expr/static_dim.hpp>

namespace sod2 {

namespace detail {
template <std::size_t I, class... Ts>
struct type_at;
template <class First, class... Rest>
struct type_at<0, First, Rest...> {
  using type = First;
};
template <std::size_t I, class First, class... Rest>
struct type_at<I, First, Rest...> : type_at<I - 1, Rest...> {};
}  // namespace detail

template <static_dim... Dims>
struct static_shape {
  static constexpr std::size_t rank = sizeof...(Dims);
  /// The dictionary of its symbols.
  using symbols = ct::symbols_of<Dims...>;
  template <std::size_t I>
  using dim = typename detail::type_at<I, Dims...>::type;

  /// Its dims in a context; the symbols are declared there if need be.
  static constexpr void make([[maybe_unused]] dim_context& context, ct::dim_list& out) {
    (out.push_back(Dims::make(context)), ...);
  }
};

/// A shape from symbols and integers: `dims<batch, 32, 2>`.
template <auto... Entries>
using dims = static_shape<static_dim_t<Entries>...>;

template <class T>
inline constexpr bool is_static_shape = false;
template <class... Dims>
inline constexpr bool is_static_shape<static_shape<Dims...>> = true;

namespace ct {

template <class... Shapes>
using shape_symbols = typename union_of<typename Shapes::symbols...>::type;

// Compile-time shapes take nothing on trust: what is not proved is refused.
struct proofs_only {
  template <class V>
  constexpr bool require_eq(const V&, const V&, errc) {
    return false;
  }
  template <class V>
  constexpr bool require_broadcast(const V&, const V&) {
    return false;
  }
};

/// A rule as `computed` wants it. Rule::forward(domain, sink, out, dims_of_shape...) -> errc.
template <class Rule, class... Shapes>
struct shape_rule {
  static constexpr errc apply(dim_context& context, dim_list& out) {
    symbolic_domain domain(context);
    proofs_only sink;
    return Rule::forward(domain, sink, out, list<Shapes>(context).view()...);
  }

 private:
  template <class Shape>
  static constexpr dim_list list(dim_context& context) {
    dim_list all;
    Shape::make(context, all);
    return all;
  }
};

template <class Set, class C, class Results>
struct shape_from;
template <class Set, class C, std::size_t... I>
struct shape_from<Set, C, std::index_sequence<I...>> {
  using type = static_shape<named_t<Set, C, C::start(I)>...>;
};

/// Runs a rule over shapes: `code`, and `type`, the resulting shape.
template <class Rule, class... Shapes>
struct shape_result {
  using set = shape_symbols<Shapes...>;
  using run = computed<set, shape_rule<Rule, Shapes...>>;
  static constexpr errc code = run::code;
  using type = typename shape_from<set, run, std::make_index_sequence<run::result_count>>::type;
};

template <class Shape>
struct element_count_rule {
  static constexpr errc apply(dim_context& context, dim_list& out) {
    dim_list all;
    Shape::make(context, all);
    dim n = context.one();
    for (dim d : all) n = context.mul(n, d);
    out.push_back(n);
    return errc::ok;
  }
};

}  // namespace ct

/// The number of elements, as a compile-time dim.
template <class Shape>
using element_count_t = ct::result_t<typename Shape::symbols, ct::element_count_rule<Shape>>;

/// Equal symbol by symbol: identity of canonical types.
template <class... A, class... B>
constexpr bool operator==(static_shape<A...>, static_shape<B...>) {
  return __is_same(static_shape<canonical_t<A>...>, static_shape<canonical_t<B>...>);
}

}  // namespace sod2
