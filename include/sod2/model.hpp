// Everything of model/: compile-time networks, and what makes programs of them.
#pragma once

#include <sod2/model/diagnostic.hpp>
#include <sod2/model/layer.hpp>
#include <sod2/model/lower.hpp>
#include <sod2/model/network.hpp>
