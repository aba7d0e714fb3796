// The standard operators, compiled once for all tests of this program.
#include <sod2/op/std/instantiate.hpp>
