// Everything of expr/ that needs no types: symbols, canonical expressions, proofs, evaluation, text.
#pragma once

#include <sod2/expr/context.hpp>
#include <sod2/expr/dim.hpp>
#include <sod2/expr/domain.hpp>
#include <sod2/expr/evaluate.hpp>
#include <sod2/expr/interval.hpp>
#include <sod2/expr/parse.hpp>
#include <sod2/expr/print.hpp>
