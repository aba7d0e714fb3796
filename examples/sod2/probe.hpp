// What an operator can do, found out by asking it: a small node of it is analysed, compiled and
// run.
#pragma once

#include <cstddef>
#include <vector>

#include <sod2/core/dtype.hpp>
#include <sod2/op/definition.hpp>

namespace tool {

struct operator_answers {
  /// Element types that run, of the operand that gives the operator its type: mostly input 0, the
  /// output where elements are made.
  std::vector<sod2::dtype> types;
  /// Inputs whose elements the shape rules read.
  std::vector<std::size_t> value_inputs;
};

/// `version` is the one that is asked.
operator_answers probe(const sod2::op_row& row, int version);

}  // namespace tool
