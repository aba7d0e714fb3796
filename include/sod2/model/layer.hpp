// Layers of compile-time models. A layer is an empty type with
//
//   name                                        for nodes and listings
//   forward(domain, sink, out, in..)            its shape rule, over any dimension domain
//   weight_count<In>()                          floats that it takes
//   lower<In, Out>(builder&, value)             its operators in the reference graph
//
// and is written as a value: `dense<64>`, `relu`, `conv2d<32, 3, 2, 1>`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/core/diagnostic.hpp>
#include <sod2/graph/graph.hpp>
#include <sod2/model/diagnostic.hpp>
#include <sod2/model/fwd.hpp>
#include <sod2/shape/rules/convolution.hpp>
#include <sod2/shape/rules/product.hpp>
#include <sod2/shape/rules/reshape.hpp>
#include <sod2/shape/static_shape.hpp>

namespace sod2::model {

/// Stands where a shape was refused, with the diag:: type that says why. Layers pass it on, so that
/// one mistake is reported once, by `instance`.
template <errc Code, class Reason>
struct refused {};
template <class T>
inline constexpr bool is_refused = false;
template <errc Code, class Reason>
inline constexpr bool is_refused<refused<Code, Reason>> = true;

/// What lowering adds to: the graph, and the weights that are left.
class builder {
 public:
  builder(graph& g, std::span<const float> weights) : graph_(g), weights_(weights) {}

  value_id op(std::string_view what, std::vector<value_id> inputs,
              std::vector<attribute> attributes = {}) {
    return op(what, std::move(inputs), std::move(attributes), what);
  }
  /// Adds an operator; the node is `<prefix><label>_<number>`, its output too.
  value_id op(std::string_view what, std::vector<value_id> inputs,
              std::vector<attribute> attributes, std::string_view label) {
    std::string name = prefix_ + std::string(label) + "_" + std::to_string(count_++);
    const value_id v = graph_.op(std::string(what), std::move(inputs), std::move(attributes), name);
    graph_.nodes().back().name = std::move(name);
    return v;
  }
  /// The next weights, row-major.
  value_id weights(std::string_view label, std::vector<std::int64_t> dims) {
    std::size_t n = 1;
    for (std::int64_t d : dims) n *= static_cast<std::size_t>(d);
    const value_id v = graph_.constant(
        label_of(label), constant_tensor::of<float>(std::move(dims), weights_.first(n)));
    weights_ = weights_.subspan(n);
    return v;
  }
  value_id integers(std::string_view label, std::vector<std::int64_t> values) {
    const auto n = static_cast<std::int64_t>(values.size());
    return graph_.constant(label_of(label), {n}, values);
  }
  /// Nodes added from now on carry this before their names; returns the previous one.
  std::string enter(std::string prefix) { return std::exchange(prefix_, std::move(prefix)); }
  const std::string& prefix() const { return prefix_; }
  std::size_t node_number() const { return count_; }

 private:
  std::string label_of(std::string_view label) const {
    return prefix_ + std::string(label) + "_" + std::to_string(count_);
  }

  graph& graph_;
  std::span<const float> weights_;
  std::string prefix_;
  std::size_t count_ = 0;
};

namespace detail {
template <class T>
inline constexpr std::int64_t literal = -1;
template <std::int64_t V>
inline constexpr std::int64_t literal<lit<V>> = V;

template <class Shape>
using last_dim = typename Shape::template dim<Shape::rank - 1>;

// One input, one output of the same shape, one operator without weights.
struct elementwise {
  template <class Domain, class Sink, class Out>
  static constexpr errc forward(Domain&, Sink&, Out& out,
                                std::span<const typename Domain::value_type> in) {
    for (const auto& d : in) out.push_back(d);
    return errc::ok;
  }
  template <class In>
  static constexpr std::int64_t weight_count() {
    return 0;
  }
};
}  // namespace detail

struct relu_layer : detail::elementwise {
  static constexpr std::string_view name = "relu";
  template <class In, class Out>
  static value_id lower(builder& b, value_id in) {
    return b.op("Relu", {in});
  }
};
struct sigmoid_layer : detail::elementwise {
  static constexpr std::string_view name = "sigmoid";
  template <class In, class Out>
  static value_id lower(builder& b, value_id in) {
    return b.op("Sigmoid", {in});
  }
};
struct tanh_layer : detail::elementwise {
  static constexpr std::string_view name = "tanh";
  template <class In, class Out>
  static value_id lower(builder& b, value_id in) {
    return b.op("Tanh", {in});
  }
};
/// Over the last axis.
struct softmax_layer : detail::elementwise {
  static constexpr std::string_view name = "softmax";
  template <class Domain, class Sink, class Out>
  static constexpr errc forward(Domain& domain, Sink& sink, Out& out,
                                std::span<const typename Domain::value_type> in) {
    return in.empty() ? errc::rank_mismatch : elementwise::forward(domain, sink, out, in);
  }
  template <class In, class Out>
  static value_id lower(builder& b, value_id in) {
    return b.op("Softmax", {in}, {attribute("axis", -1)});
  }
};

/// [..., K] -> [..., Units]: x * kernel + bias. Weights: kernel [K, Units], bias [Units].
template <std::int64_t Units>
struct dense_layer {
  static_assert(Units > 0, "dense requires a positive number of units");
  static constexpr std::string_view name = "dense";
  template <class Domain, class Sink, class Out>
  static constexpr errc forward(Domain& domain, Sink& sink, Out& out,
                                std::span<const typename Domain::value_type> in) {
    if (in.empty()) return errc::rank_mismatch;
    std::int64_t k = 0;
    if (!domain.as_constant(in.back(), k)) return errc::inner_dims;
    const typename Domain::value_type kernel[] = {in.back(), domain.constant(Units)};
    return rules::matmul(domain, sink, in, kernel, out);
  }
  template <class In>
  static constexpr std::int64_t weight_count() {
    return (detail::literal<detail::last_dim<In>> + 1) * Units;
  }
  template <class In, class Out>
  static value_id lower(builder& b, value_id in) {
    const value_id kernel = b.weights("kernel", {detail::literal<detail::last_dim<In>>, Units});
    const value_id product = b.op("MatMul", {in, kernel});
    const value_id bias = b.weights("bias", {Units});
    return b.op("Add", {product, bias});
  }
};

/// [N, C, H, W] -> [N, Channels, H', W'] with a square window, the same stride and padding on both
/// axes. Weights: [Channels, C, Kernel, Kernel], bias [Channels].
template <std::int64_t Channels, std::int64_t Kernel, std::int64_t Stride, std::int64_t Pad>
struct conv2d_layer {
  static_assert(Channels > 0 && Kernel > 0 && Stride > 0 && Pad >= 0,
                "conv2d requires positive channels, kernel and stride, and a padding >= 0");
  static constexpr std::string_view name = "conv2d";
  template <class Domain, class Sink, class Out>
  static constexpr errc forward(Domain& domain, Sink&, Out& out,
                                std::span<const typename Domain::value_type> in) {
    if (in.size() != 4) return errc::rank_mismatch;
    std::int64_t c = 0;
    if (!domain.as_constant(in[1], c)) return errc::channels;
    out.push_back(in[0]);
    out.push_back(domain.constant(Channels));
    for (std::size_t axis = 2; axis < 4; ++axis) {
      out.push_back(
          rules::window_count(domain, in[axis], domain.constant(Kernel), Stride, 1, 2 * Pad));
      if (domain.decide_le(domain.constant(1), out.back()) == tri::no) return errc::value_range;
    }
    return errc::ok;
  }
  template <class In>
  static constexpr std::int64_t weight_count() {
    return Channels * (detail::literal<typename In::template dim<1>> * Kernel * Kernel + 1);
  }
  template <class In, class Out>
  static value_id lower(builder& b, value_id in) {
    const value_id kernel = b.weights(
        "kernel", {Channels, detail::literal<typename In::template dim<1>>, Kernel, Kernel});
    const value_id bias = b.weights("bias", {Channels});
    return b.op("Conv", {in, kernel, bias},
                {attribute("kernel_shape", {Kernel, Kernel}),
                 attribute("strides", {Stride, Stride}), attribute("pads", {Pad, Pad, Pad, Pad})});
  }
};

/// [N, ...] -> [N, the rest].
struct flatten_layer {
  static constexpr std::string_view name = "flatten";
  template <class Domain, class Sink, class Out>
  static constexpr errc forward(Domain& domain, Sink&, Out& out,
                                std::span<const typename Domain::value_type> in) {
    if (in.empty()) return errc::rank_mismatch;
    rules::flatten(domain, in, 1, out);
    return errc::ok;
  }
  template <class In>
  static constexpr std::int64_t weight_count() {
    return 0;
  }
  template <class In, class Out>
  static value_id lower(builder& b, value_id in) {
    return b.op("Flatten", {in}, {attribute("axis", 1)});
  }
};

/// To another shape of as many elements; one entry may be -1. Dims that are neither literals nor
/// the input's dim at the same axis may occur once, since the operator that this becomes infers
/// one.
template <class To>
struct reshape_layer {
  static_assert(is_static_shape<To>, "reshape requires a shape, as reshape<dims<batch, 32, 2>>");
  static constexpr std::string_view name = "reshape";
  template <class Domain, class Sink, class Out>
  static constexpr errc forward(Domain& domain, Sink& sink, Out& out,
                                std::span<const typename Domain::value_type> in,
                                std::span<const typename Domain::value_type> to) {
    return rules::reshape(domain, sink, in, to, true, out);
  }
  template <class In>
  static constexpr std::int64_t weight_count() {
    return 0;
  }
  template <class In, class Out>
  static value_id lower(builder& b, value_id in) {
    return b.op("Reshape",
                {in, b.integers("shape", target<In, Out>(std::make_index_sequence<Out::rank>{}))});
  }

 private:
  template <class In, class Out, std::size_t I>
  static constexpr std::int64_t entry() {
    using wanted = typename Out::template dim<I>;
    if constexpr (detail::literal<wanted> > 0)
      return detail::literal<wanted>;
    else if constexpr (I < In::rank) {
      if constexpr (__is_same(wanted, typename In::template dim<I>))
        return 0;
      else
        return -1;
    } else {
      return -1;
    }
  }
  template <class In, class Out, std::size_t... I>
  static std::vector<std::int64_t> target(std::index_sequence<I...>) {
    static_assert(
        (0 + ... + (entry<In, Out, I>() == -1 ? 1 : 0)) <= 1,
        "sod2: reshape lowers at most one dimension that is not in its place in the input");
    return {entry<In, Out, I>()...};
  }
};

inline constexpr relu_layer relu{};
inline constexpr sigmoid_layer sigmoid{};
inline constexpr tanh_layer tanh{};
inline constexpr softmax_layer softmax{};
inline constexpr flatten_layer flatten{};
template <std::int64_t Units>
inline constexpr dense_layer<Units> dense{};
template <std::int64_t Channels, std::int64_t Kernel, std::int64_t Stride = 1, std::int64_t Pad = 0>
inline constexpr conv2d_layer<Channels, Kernel, Stride, Pad> conv2d{};
template <class To>
inline constexpr reshape_layer<To> reshape{};

// ---- a layer on a shape ----

namespace detail {

template <class Layer, class In>
struct result_of {
  using type = ct::shape_result<Layer, In>;
};
template <class To, class In>
struct result_of<reshape_layer<To>, In> {
  using type = ct::shape_result<reshape_layer<To>, In, To>;
};

// What a layer makes of a shape, by the code of its rule: the shape, or why not.
template <errc Code, class Layer, class In>
struct outcome;
template <class Layer, class In>
struct outcome<errc::ok, Layer, In> {
  using type = typename result_of<Layer, In>::type::type;
};
template <class To, class In>
struct outcome<errc::element_count, reshape_layer<To>, In> {
  using type = refused<errc::element_count,
                       diag::element_count<In, To, element_count_t<In>, element_count_t<To>>>;
};
template <class Layer, class In>
struct outcome<errc::rank_mismatch, Layer, In> {
  using type = refused<errc::rank_mismatch, diag::rank<Layer, In>>;
};
template <class Layer, class In>
struct outcome<errc::inner_dims, Layer, In> {
  using type = refused<errc::inner_dims, diag::weights<Layer, In, last_dim<In>>>;
};
template <class Layer, class In>
struct outcome<errc::channels, Layer, In> {
  using type = refused<errc::channels, diag::weights<Layer, In, typename In::template dim<1>>>;
};
template <class Layer, class In>
struct outcome<errc::value_range, Layer, In> {
  using type = refused<errc::value_range, diag::window<Layer, In>>;
};

template <class Layer, class In>
struct output_of {
  using type = typename outcome<result_of<Layer, In>::type::code, Layer, In>::type;
};
template <class Layer, errc Code, class Reason>
struct output_of<Layer, refused<Code, Reason>> {
  using type = refused<Code, Reason>;
};

// The only place that asserts. It stands outside of everything that computes a type, since clang
// gives up on a type in whose making an assertion failed, and then reports what follows from that.
template <class Output>
struct report {
  static constexpr bool done = true;
};
template <class Reason>
struct report<refused<errc::element_count, Reason>> {
  static constexpr bool done = true;
  SOD2_STATIC_CHECK(errc::element_count, "reshape must keep the number of elements", Reason::equal);
};
template <class Reason>
struct report<refused<errc::rank_mismatch, Reason>> {
  static constexpr bool done = true;
  SOD2_STATIC_CHECK(errc::rank_mismatch, "ranks do not agree", Reason::accepted);
};
template <class Reason>
struct report<refused<errc::dim_mismatch, Reason>> {
  static constexpr bool done = true;
  SOD2_STATIC_CHECK(errc::dim_mismatch, "dimensions do not agree", Reason::equal);
};
template <class Reason>
struct report<refused<errc::inner_dims, Reason>> {
  static constexpr bool done = true;
  static_assert(
      Reason::fixed,
      "sod2: dense requires a literal last dimension, since its weights have a fixed size");
};
template <class Reason>
struct report<refused<errc::channels, Reason>> {
  static constexpr bool done = true;
  static_assert(Reason::fixed,
                "sod2: conv2d requires literal channels, since its weights have a fixed size");
};
template <class Reason>
struct report<refused<errc::value_range, Reason>> {
  static constexpr bool done = true;
  static_assert(Reason::fits, "sod2: conv2d requires an input that the window fits into");
};

}  // namespace detail

/// The shape that a layer makes of a shape.
template <class Layer, class In>
using output_t = typename detail::output_of<Layer, In>::type;

}  // namespace sod2::model
