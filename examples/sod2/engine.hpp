// Compiling and running a loaded model, as plan, run and test need it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/runtime/program.hpp>
#include <sod2/runtime/session.hpp>

#include "models.hpp"
#include "options.hpp"
#include "tensors.hpp"
#include "threads.hpp"

namespace tool {

/// A compiled model. Fails with the model's file.
sod2::program compile_model(const loaded_model& m, const shape_options& shapes,
                            const run_options& o);

/// A session with the threads and the budget of the options. Stays where it is.
struct running {
  thread_pool pool;
  sod2::session session;
  running(const sod2::program& p, const run_options& o,
          void (*observer)(void* context, std::size_t step) = nullptr, void* context = nullptr);
};

/// Values of the model's input symbols by name.
using symbol_values = std::map<std::string, std::int64_t, std::less<>>;

/// One tensor an input, in the model's order; entries without type are not given.
using input_list = std::vector<host_tensor>;

/// Values from the given inputs' shapes and from `bound`. Fails where they contradict each other.
symbol_values symbols_of(const loaded_model& m, const shape_options& shapes,
                         const input_list& given);
/// Names of input symbols without a value: what `--dim` should bind.
std::vector<std::string> unbound_symbols(const loaded_model& m, const shape_options& shapes,
                                         const symbol_values& values);
/// Sizes start at 1 unless somebody says otherwise: an input that is empty does, for its symbols.
void allow_empty(const loaded_model& m, const input_list& given, shape_options& shapes);
/// Fills the inputs that are not given: floats in [0, 1), integers below the number of rows of the
/// tables that they index (else 0 or 1), declared shape inputs with their symbols.
void fill_inputs(const loaded_model& m, const shape_options& shapes, const symbol_values& values,
                 std::uint64_t seed, input_list& inputs);

std::vector<sod2::tensor_view> views_of(const input_list& inputs);

/// The values in the order of `program::symbols()`; symbols that nobody bound take their only
/// value.
std::vector<std::int64_t> in_order(const sod2::program& p, const symbol_values& values);

/// Most memory that this process ever had, in bytes.
std::int64_t peak_rss_bytes();

}  // namespace tool
