#include <sod2/instantiate.hpp>
