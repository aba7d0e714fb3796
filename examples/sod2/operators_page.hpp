// What `sod2 ops` prints of its list of operators, and docs/operators.md made of it.
#pragma once

#include <string>

#include "report.hpp"

namespace tool {

/// The entries of a list, with commas.
std::string joined(const json& list);
/// The inputs whose elements decide the shape of the output; `-`: none.
std::string values_text(const json& op);
/// Element types, those that come together under one name (see `operators_page`).
std::string dtypes_text(const json& op);
/// What runs the operator.
std::string kernels_text(const json& op);

std::string operators_table(const json& list);
std::string operators_page(const json& list);

}  // namespace tool
