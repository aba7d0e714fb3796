// Everything of memory/.
#pragma once

#include <sod2/memory/csv.hpp>
#include <sod2/memory/greedy.hpp>
#include <sod2/memory/layout_planner.hpp>
#include <sod2/memory/portfolio.hpp>
#include <sod2/memory/problem.hpp>
#include <sod2/memory/symbolic.hpp>
#include <sod2/memory/validate.hpp>
