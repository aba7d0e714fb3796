// Networks as types: layers in a Hana tuple, shapes by a scan over it.
//
//   constexpr auto net = sequential(dense<64>, relu, reshape<dims<batch, 32, 2>>);
//   constexpr auto made = net(dims<batch, 128>{});          // shapes are checked here
//   decltype(made)::output                                  // static_shape<Batch, lit<32>, lit<2>>
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <boost/hana/at.hpp>
#include <boost/hana/fold_left.hpp>
#include <boost/hana/scan_left.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>

#include <sod2/expr/print.hpp>
#include <sod2/model/layer.hpp>

namespace sod2::model {

namespace hana = boost::hana;

namespace detail {
// hana::type of the shape before a layer, and the layer, to hana::type of the shape after it.
struct next_shape {
  template <class Before, class Layer>
  constexpr auto operator()(Before, Layer) const {
    return hana::type_c<output_t<Layer, typename Before::type>>;
  }
};

// hana::tuple of hana::type: the input's shape and the shape after each layer.
template <class Input, class... Layers>
using shapes_of =
    decltype(hana::scan_left(hana::tuple<Layers...>{}, hana::type_c<Input>, next_shape{}));

template <std::size_t I, class Shapes>
using shape_at =
    typename std::remove_cvref_t<decltype(hana::at_c<I>(std::declval<Shapes>()))>::type;
}  // namespace detail

/// A network on an input of known shape. What does not fit is reported here.
template <class Input, class... Layers>
struct instance {
  using input = Input;
  using layers = hana::tuple<Layers...>;
  using shapes = detail::shapes_of<Input, Layers...>;
  static constexpr std::size_t size = sizeof...(Layers);

  /// The shape after the first I layers.
  template <std::size_t I>
  using shape = detail::shape_at<I, shapes>;
  using output = shape<size>;

  static_assert(detail::report<output>::done);
};

/// Layers one after another, without an input yet. Itself a layer of larger networks.
template <class... Layers>
struct network {
  static constexpr std::string_view name = "sequential";

  template <class... Dims>
  constexpr auto operator()(static_shape<Dims...>) const {
    return instance<static_shape<Dims...>, Layers...>{};
  }
  template <class In>
  static constexpr std::int64_t weight_count() {
    return hana::fold_left(hana::tuple<Layers...>{}, counted<In>{},
                           [](auto so_far, auto layer) {
                             using before = typename decltype(so_far)::shape;
                             using after = output_t<decltype(layer), before>;
                             return counted<after>{
                                 so_far.weights + decltype(layer)::template weight_count<before>()};
                           })
        .weights;
  }
  template <class In, class Out>
  static value_id lower(builder& b, value_id in) {
    return hana::fold_left(hana::tuple<Layers...>{}, lowered<In>{in},
                           [&b](auto so_far, auto layer) {
                             using before = typename decltype(so_far)::shape;
                             using after = output_t<decltype(layer), before>;
                             return lowered<after>{
                                 decltype(layer)::template lower<before, after>(b, so_far.value)};
                           })
        .value;
  }

 private:
  template <class Shape>
  struct counted {
    using shape = Shape;
    std::int64_t weights = 0;
  };
  template <class Shape>
  struct lowered {
    using shape = Shape;
    value_id value{};
  };
};

/// x + layers(x); the layers must keep the shape.
template <class... Layers>
struct residual_layer {
  static constexpr std::string_view name = "residual";
  using inner = network<Layers...>;
  template <class In>
  static constexpr std::int64_t weight_count() {
    return inner::template weight_count<In>();
  }
  template <class In, class Out>
  static value_id lower(builder& b, value_id in) {
    const std::string outer =
        b.enter(b.prefix() + "residual_" + std::to_string(b.node_number()) + "/");
    const value_id branch = inner::template lower<In, Out>(b, in);
    b.enter(outer);
    return b.op("Add", {in, branch}, {}, "residual");
  }
};

template <class... Layers>
constexpr network<Layers...> sequential(Layers...) {
  return {};
}
template <class... Layers>
constexpr residual_layer<Layers...> residual(Layers...) {
  return {};
}

namespace detail {

template <class In, class... Layers>
struct output_of<network<Layers...>, In> {
  using type = shape_at<sizeof...(Layers), shapes_of<In, Layers...>>;
};
template <errc Code, class Reason, class... Layers>
struct output_of<network<Layers...>, refused<Code, Reason>> {
  using type = refused<Code, Reason>;
};

template <class In, class Branch>
struct sum_of {
  using type = refused<errc::dim_mismatch, diag::shapes<In, Branch>>;
};
template <class In>
struct sum_of<In, In> {
  using type = In;
};
template <class In, errc Code, class Reason>
struct sum_of<In, refused<Code, Reason>> {
  using type = refused<Code, Reason>;
};
template <class In, class... Layers>
struct output_of<residual_layer<Layers...>, In>
    : sum_of<In, typename output_of<network<Layers...>, In>::type> {};
template <errc Code, class Reason, class... Layers>
struct output_of<residual_layer<Layers...>, refused<Code, Reason>> {
  using type = refused<Code, Reason>;
};

}  // namespace detail

/// `(Batch, 128) -> dense (Batch, 64) -> relu (Batch, 64)`.
template <class Input, class... Layers>
std::string describe(instance<Input, Layers...>) {
  using made = instance<Input, Layers...>;
  std::string out;
  const auto show = [&out]<class Shape>(hana::basic_type<Shape>) {
    dim_context context;
    Shape::symbols::declare(context);
    ct::dim_list dims;
    Shape::make(context, dims);
    out += print(context, dims.view());
  };
  show(hana::type_c<Input>);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((out.append(" -> ").append(Layers::name).append(" "),
      show(hana::type_c<typename made::template shape<I + 1>>)),
     ...);
  }(std::index_sequence_for<Layers...>{});
  return out;
}

}  // namespace sod2::model
