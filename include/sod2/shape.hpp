// Everything of shape/ that needs no types.
#pragma once

#include <sod2/shape/fact.hpp>
#include <sod2/shape/rules/broadcast.hpp>
#include <sod2/shape/rules/convolution.hpp>
#include <sod2/shape/rules/product.hpp>
#include <sod2/shape/rules/reshape.hpp>
#include <sod2/shape/rules/slicing.hpp>
