// What operators declare and registries of them; the standard operators are in op/std.hpp.
#pragma once

#include <sod2/op/context.hpp>
#include <sod2/op/definition.hpp>
#include <sod2/op/kind.hpp>
#include <sod2/op/registry.hpp>
