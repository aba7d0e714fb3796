// All standard ONNX operators as types, one header a family. Heavy: most code wants op/standard.hpp.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/conversion.hpp>
#include <sod2/op/std/convolution.hpp>
#include <sod2/op/std/elementwise.hpp>
#include <sod2/op/std/image.hpp>
#include <sod2/op/std/movement.hpp>
#include <sod2/op/std/normalization.hpp>
#include <sod2/op/std/pooling.hpp>
#include <sod2/op/std/product.hpp>
#include <sod2/op/std/reduction.hpp>
#include <sod2/op/std/reshape.hpp>
#include <sod2/op/std/shape.hpp>

namespace sod2 {

using standard_ops = join<ops::elementwise_ops, ops::conversion_ops, ops::product_ops,
                          ops::convolution_ops, ops::pooling_ops, ops::normalization_ops,
                          ops::reduction_ops, ops::movement_ops, ops::reshape_ops, ops::shape_ops,
                          ops::image_ops>;

}  // namespace sod2
