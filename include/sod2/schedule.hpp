// Everything of schedule/.
#pragma once

#include <sod2/schedule/dag.hpp>
#include <sod2/schedule/liveness.hpp>
#include <sod2/schedule/order.hpp>
#include <sod2/schedule/problem.hpp>
#include <sod2/schedule/validate.hpp>
