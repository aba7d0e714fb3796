// Partition of a graph into regions: a region ends where a value must exist before a later size
// does (paper section 4.2; here only the value boundary cuts, see docs/architecture.md).
#pragma once

#include <cstdint>
#include <vector>

#include <sod2/rdp/analysis.hpp>

namespace sod2 {

/// Paper Fig. 8: what the sizes of a region depend on.
enum class region_kind : std::uint8_t { all_constant, mixed, with_nac };

struct region {
  region_kind kind = region_kind::all_constant;
  std::vector<node_id> nodes;  // in topological order
  std::uint32_t symbols = 0;   // distinct input symbols in its sizes
};

/// Regions of the root graph: a region ends before the first node with a size that depends on what
/// the region itself computes. `whole_nac`: cut behind every node with a size that only execution
/// decides, whether or not a later size needs it, and count its region as with_nac, as the paper's
/// coarse rule does.
inline std::vector<region> partition(const graph_view& view, analysis& facts,
                                     bool whole_nac = false) {
  dim_context& c = facts.context();
  std::vector<region> out(1);
  vector<std::uint8_t> seen;
  struct origin {
    std::uint32_t node = no_index, region = 0;
  };
  vector<origin> origins;  // of the symbols that only execution decides
  const auto for_each_inferred = [&](node_id n, auto&& f) {
    for (value_id v : view.outputs(n))
      if (v != absent)
        for (dim d : facts.fact(v).dims)
          if (d.is_known())
            c.for_each_symbol(d, [&](std::uint32_t s) {
              if (c.origin_of_symbol(s) == symbol_origin::inferred) f(s);
            });
  };
  const auto cut = [&] {
    out.emplace_back();
    seen.assign(seen.size(), std::uint8_t{0});
  };
  for (node_id n : view.order()) {
    bool waits = false;
    for_each_inferred(n, [&](std::uint32_t s) {
      waits = waits || (s < origins.size() && origins[s].node != no_index &&
                        origins[s].node != n.index && origins[s].region == out.size() - 1);
    });
    if (waits && !whole_nac) cut();
    for_each_inferred(n, [&](std::uint32_t s) {
      if (origins.size() <= s) origins.resize(s + 1);
      if (origins[s].node == no_index)
        origins[s] = {n.index, static_cast<std::uint32_t>(out.size() - 1)};
    });
    region& r = out.back();
    r.nodes.push_back(n);
    for (value_id v : view.outputs(n)) {
      if (v == absent) continue;
      const symbolic_fact& f = facts.fact(v);
      if (!f.rank_known()) r.kind = region_kind::with_nac;
      for (dim d : f.dims) {
        if (!d.is_known()) {
          r.kind = region_kind::with_nac;
          continue;
        }
        c.for_each_symbol(d, [&](std::uint32_t s) {
          if (r.kind == region_kind::all_constant) r.kind = region_kind::mixed;
          if (whole_nac && c.origin_of_symbol(s) == symbol_origin::inferred)
            r.kind = region_kind::with_nac;
          if (seen.size() <= s) seen.resize(s + 1, std::uint8_t{0});
          if (seen[s] == 0) {
            seen[s] = 1;
            ++r.symbols;
          }
        });
      }
    }
    if (whole_nac && facts.node(n).boundary) cut();
  }
  if (out.back().nodes.empty() && out.size() > 1) out.pop_back();
  return out;
}

}  // namespace sod2
