// Analyses the ten networks of the SoD2 paper at full size (weights are shapes without data) and
// prints what is known of every tensor before a single input size is.
#include <chrono>
#include <cstdint>
#include <cstdio>

#include <sod2/graph/view.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/rdp/analysis.hpp>

#include "models/all.hpp"

namespace {

struct row {
  std::uint64_t nodes = 0, tensors = 0, symbols = 0, unranked = 0;
  std::uint64_t constant = 0, symbolic = 0, inferred = 0, unknown = 0;
};

// Dims of everything that nodes make: numbers, expressions of input symbols, expressions with sizes
// that only a run decides, and what is not known at all.
row count(const sod2::graph_view& view, sod2::analysis& facts) {
  sod2::dim_context& c = facts.context();
  row r;
  r.nodes = view.node_count();
  for (std::uint32_t s = 0; s < c.symbol_count(); ++s)
    r.symbols += c.origin_of_symbol(s) == sod2::symbol_origin::input ? 1 : 0;
  for (std::size_t v = 1; v < view.value_count(); ++v) {
    if (view.producer(sod2::value_id{v}) == sod2::no_index) continue;
    ++r.tensors;
    const sod2::symbolic_fact& f = facts.fact(sod2::value_id{v});
    if (!f.rank_known()) ++r.unranked;
    for (const sod2::dim d : f.dims) {
      if (!d.is_known())
        ++r.unknown;
      else if (c.is_constant(d))
        ++r.constant;
      else
        ++(c.only_input_symbols(d) ? r.symbolic : r.inferred);
    }
  }
  return r;
}

}  // namespace

int main() {
  std::printf("%-25s %6s %7s %9s %7s | %8s %8s %8s %7s %8s | %8s\n", "model", "nodes", "tensors",
              "params M", "symbols", "constant", "symbolic", "inferred", "unknown", "unranked",
              "ms");
  bool complete = true;
  for (const models::entry& m : models::all) {
    const sod2::graph g = m.build({});
    auto view = sod2::make_view(g);
    if (!view) return std::fprintf(stderr, "%s: %s\n", m.name, view.error().text().c_str()), 1;
    const auto start = std::chrono::steady_clock::now();
    auto facts = sod2::analyze(*view, sod2::standard_registry(), m.facts());
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (!facts) return std::fprintf(stderr, "%s: %s\n", m.name, facts.error().text().c_str()), 1;
    const row r = count(*view, *facts);
    std::printf(
        "%-25s %6llu %7llu %9.2f %7llu | %8llu %8llu %8llu %7llu %8llu | %8.2f\n", m.name,
        static_cast<unsigned long long>(r.nodes), static_cast<unsigned long long>(r.tensors),
        static_cast<double>(models::parameter_count(g)) / 1e6,
        static_cast<unsigned long long>(r.symbols), static_cast<unsigned long long>(r.constant),
        static_cast<unsigned long long>(r.symbolic), static_cast<unsigned long long>(r.inferred),
        static_cast<unsigned long long>(r.unknown), static_cast<unsigned long long>(r.unranked),
        ms);
    complete = complete && r.unknown == 0 && r.unranked == 0;
  }
  return complete ? 0 : 1;
}
