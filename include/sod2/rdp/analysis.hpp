// RDP: rank and dimension propagation (paper section 3). Facts flow forward, backward and through
// values to a fixpoint; what cannot be proved but must hold becomes an assertion checked at bind.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/core/checked.hpp>
#include <sod2/core/ids.hpp>
#include <sod2/core/status.hpp>
#include <sod2/expr/context.hpp>
#include <sod2/expr/print.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/op/registry.hpp>
#include <sod2/rdp/solver.hpp>
#include <sod2/shape/fact.hpp>

namespace sod2 {

struct symbol_declaration {
  std::string name;
  symbol_facts facts;
};

/// The outcome of one conditional node: true takes the first arm.
struct decision {
  node_id node{};
  bool outcome = true;
};

struct analysis_options {
  /// Ranges and strides of symbols; lo == hi binds a symbol. Unnamed input dims are
  /// `<input>.<axis>`.
  std::vector<symbol_declaration> symbols;
  /// Small integer inputs whose elements become symbols `<input>[i]`.
  std::vector<std::string> shape_inputs;
  /// Outcomes that a scenario assumes of conditional nodes; see rdp/scenario.hpp.
  std::vector<decision> decided;
};

/// Something a run must satisfy and analysis could not prove.
struct assertion {
  enum class kind : std::uint8_t { equal, broadcast };
  kind what = kind::equal;
  dim left{}, right{};  // as they stood before the fact was assumed
  errc code = errc::dim_mismatch;
  node_id node{};
  value_id tensor{};  // the input of the node that has one of the two as a dim, if there is one
  int axis = -1;
  std::string relation;  // `K1 == K2`
  std::string text;      // `node 'n': K1 == K2`
};

/// An arm or body that fails whenever it runs: the first node that cannot, and why.
struct impossible_scope {
  scope_id scope{};
  node_id node{};
  std::string text;
};

class analysis {
 public:
  struct node_info {
    registry::match op;
    std::uint64_t value_reads = 0;
    dynamism effective = dynamism::isdos;
    /// The node introduces a size that only execution decides.
    bool boundary = false;
    /// Bit i: the node asked for the rank of input i and did not get it, the last one for the rest.
    std::uint32_t ranks_missed = 0;
  };

  dim_context& context() { return context_; }
  const symbolic_fact& fact(value_id v) const { return facts_[v.index]; }
  std::span<const dim> dims(value_id v) const { return facts_[v.index].dims.view(); }
  const node_info& node(node_id n) const { return nodes_[n.index]; }
  const std::vector<assertion>& assertions() const { return assertions_; }
  const std::vector<impossible_scope>& impossible() const { return impossible_; }
  const solve_statistics& statistics() const { return statistics_; }
  /// Memory that facts and expressions take, in bytes.
  std::size_t facts_bytes() const {
    std::size_t bytes = facts_.size() * sizeof(symbolic_fact) + context_.memory_bytes();
    for (const symbolic_fact& f : facts_) {
      if (f.dims.size() > 6) bytes += f.dims.size() * sizeof(dim);
      if (f.elements.size() > 2) bytes += f.elements.size() * sizeof(dim);
    }
    return bytes;
  }
  std::string text(value_id v) {
    const symbolic_fact& f = facts_[v.index];
    return f.rank_known() ? print(context_, f.dims.view()) : std::string("(unknown rank)");
  }

 private:
  friend class rdp_transfer;
  friend result<analysis> analyze(const graph_view&, const registry&, const analysis_options&);

  dim_context context_;
  std::vector<symbolic_fact> facts_;
  std::vector<node_info> nodes_;
  std::vector<assertion> assertions_;
  std::vector<impossible_scope> impossible_;
  solve_statistics statistics_;
};

/// Analyses a graph. The view must outlive nothing: the result owns its context and facts.
/// Errors name the node, the tensor, the axis and both expressions.
SOD2_HEAVY result<analysis> analyze(const graph_view& view, const registry& ops,
                                    const analysis_options& options = {});

}  // namespace sod2

#ifndef SOD2_INSTANTIATED
#include <sod2/rdp/detail/transfer.hpp>
#endif
