// From a compile-time network to the reference graph, and from there to a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sod2/core/status.hpp>
#include <sod2/graph/graph.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/model/network.hpp>
#include <sod2/rdp/analysis.hpp>
#include <sod2/runtime/compile.hpp>

namespace sod2::model {

/// Floats that a network takes, layer after layer.
template <class Input, class... Layers>
constexpr std::int64_t weight_count(instance<Input, Layers...>) {
  return network<Layers...>::template weight_count<Input>();
}

namespace detail {

template <class Input, class Dim>
struct input_entry {
  static constexpr bool is_symbol = requires { Dim::facts(); };
  static_assert(is_symbol || literal<Dim> >= 0 || diag::input_dim<Input, Dim>::plain,
                "sod2: each dimension of an input is a symbol or a literal");
  static dim_spec spec() {
    if constexpr (is_symbol)
      return dim_spec(std::string(Dim::name()));
    else
      return dim_spec(literal<Dim>);
  }
};

template <class... Dims>
std::vector<dim_spec> specs(static_shape<Dims...>) {
  return {input_entry<static_shape<Dims...>, Dims>::spec()...};
}
template <class... Symbols>
std::vector<symbol_declaration> declarations(ct::symbol_set<Symbols...>) {
  return {symbol_declaration{std::string(Symbols::name()), Symbols::facts()}...};
}

}  // namespace detail

/// The graph of a network: input `input`, output `output`, both float32. `weights` holds
/// weight_count floats: of each layer in turn what it documents.
template <class Input, class... Layers>
result<graph> lower(instance<Input, Layers...> net, std::span<const float> weights) {
  using made = instance<Input, Layers...>;
  if constexpr (is_refused<typename made::output>) {
    return error(errc::unsupported);  // the compiler has said why
  } else {
    if (static_cast<std::int64_t>(weights.size()) != weight_count(net))
      return error(errc::invalid_argument, "the network takes another number of weights")
          .between(std::to_string(weight_count(net)), std::to_string(weights.size()));
    graph g;
    const value_id in = g.input("input", dtype::f32, detail::specs(Input{}));
    builder b(g, weights);
    const value_id out = network<Layers...>::template lower<Input, typename made::output>(b, in);
    g.output(out, sizeof...(Layers) > 0 ? "output" : "");
    return g;
  }
}

/// What the input's symbols declare: to be analysed and compiled with.
template <class Input, class... Layers>
analysis_options assumptions(instance<Input, Layers...>) {
  analysis_options options;
  options.symbols = detail::declarations(typename Input::symbols{});
  return options;
}

/// Lowers and compiles. Operators and kernels: the standard tables of `sod2/instantiate.hpp`, or
/// the caller's.
template <class Input, class... Layers>
result<program> compile(instance<Input, Layers...> net, std::span<const float> weights,
                        const registry& operators, const kernel_table& kernels,
                        compile_options options = {}) {
  SOD2_ASSIGN(const graph g, lower(net, weights));
  SOD2_ASSIGN(const graph_view view, make_view(g));
  for (symbol_declaration& d : assumptions(net).symbols)
    options.analysis.symbols.push_back(std::move(d));
  return sod2::compile(view, operators, kernels, options);
}

}  // namespace sod2::model
