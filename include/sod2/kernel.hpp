// Everything of kernel/ but the kernels themselves: those come with `sod2/instantiate.hpp`.
#pragma once

#include <sod2/kernel/fwd.hpp>
#include <sod2/kernel/kernel.hpp>
#include <sod2/kernel/pool.hpp>
#include <sod2/kernel/table.hpp>
#include <sod2/kernel/tile.hpp>
