// Compiling and running.
#pragma once

#include <sod2/runtime/buffer.hpp>
#include <sod2/runtime/compile.hpp>
#include <sod2/runtime/program.hpp>
#include <sod2/runtime/session.hpp>
