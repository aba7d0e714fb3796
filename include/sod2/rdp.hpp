// Rank and dimension propagation: solver, analysis, explanations, regions.
#pragma once

#include <sod2/rdp/analysis.hpp>
#include <sod2/rdp/explain.hpp>
#include <sod2/rdp/regions.hpp>
#include <sod2/rdp/scenario.hpp>
#include <sod2/rdp/solver.hpp>
