// How algorithms see a graph: the customisation point `graph_traits<G>`.
//
// Specialise it for your graph type. Handles are pointers or integers of your choice.
//
//   using node_handle, value_handle;
//   static auto nodes(const G&);                         range of node_handle, in any order
//   static auto inputs(const G&, node_handle);           range of value_handle
//   static auto outputs(const G&, node_handle);          range of value_handle
//   static auto graph_inputs(const G&);                  range of value_handle
//   static auto graph_outputs(const G&);                 range of value_handle
//   static std::string_view operator_name(const G&, node_handle);
//
// Optional (left out: the default in brackets):
//   static std::string_view operator_domain(const G&, node_handle);              [""]
//   static int opset(const G&, node_handle);                                     [the newest]
//   static std::string_view node_name(const G&, node_handle);                    [operator_index]
//   static std::string_view value_name(const G&, value_handle);                  [node:output]
//   static attribute_view attribute(const G&, node_handle, std::string_view);    [none]
//   static std::string_view attribute_name(const G&, node_handle, std::size_t i);   [not listed]
//       of the i-th attribute, empty behind the last; graphs without it are not rewritten
//   static declared_value facts(const G&, value_handle);                         [nothing known]
//   static bool absent(const G&, value_handle);                                  [null pointer]
// Sub-graphs (control flow), all or none:
//   using scope_handle;
//   static auto scopes(const G&, node_handle);           range of scope_handle
//   static std::string_view scope_name(const G&, scope_handle);
//   static auto nodes / graph_inputs / graph_outputs(const G&, scope_handle);
#pragma once

#include <cstdint>
#include <string_view>

#include <sod2/core/attribute.hpp>
#include <sod2/core/dtype.hpp>
#include <sod2/core/tensor_view.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/graph/fwd.hpp>
#include <sod2/shape/fact.hpp>

namespace sod2 {

/// One dim as a graph declares it: a size, a symbol's name, or neither.
struct declared_dim {
  std::int64_t size = -1;
  std::string_view symbol{};
};

/// What a graph says of a value before analysis.
struct declared_value {
  fact_kind kind = fact_kind::tensor;
  dtype type = dtype::undefined;
  bool has_shape = false;
  small_vector<declared_dim, 6> dims;
  constant_view constant{};
};

/// Opset of graphs that do not version their operators.
inline constexpr int newest_opset = 1 << 20;

// Unconstrained handles are passed by value; ranges are anything that range-for accepts.
template <class G>
concept operator_graph = requires(const G& g, typename graph_traits<G>::node_handle n) {
  graph_traits<G>::nodes(g);
  graph_traits<G>::inputs(g, n);
  graph_traits<G>::outputs(g, n);
  graph_traits<G>::graph_inputs(g);
  graph_traits<G>::graph_outputs(g);
  graph_traits<G>::operator_name(g, n);
};

template <class G>
concept graph_with_scopes =
    operator_graph<G> && requires(const G& g, typename graph_traits<G>::node_handle n,
                                  typename graph_traits<G>::scope_handle s) {
      graph_traits<G>::scopes(g, n);
      graph_traits<G>::nodes(g, s);
      graph_traits<G>::graph_inputs(g, s);
      graph_traits<G>::graph_outputs(g, s);
      graph_traits<G>::scope_name(g, s);
    };

}  // namespace sod2
