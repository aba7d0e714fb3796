// All standard ONNX operators as types, one header a family. Heavy: most code wants
// op/standard.hpp.
#pragma once

#include <sod2/op/registry.hpp>
#include <sod2/op/std/attention.hpp>
#include <sod2/op/std/control.hpp>
#include <sod2/op/std/conversion.hpp>
#include <sod2/op/std/convolution.hpp>
#include <sod2/op/std/dynamic.hpp>
#include <sod2/op/std/elementwise.hpp>
#include <sod2/op/std/image.hpp>
#include <sod2/op/std/movement.hpp>
#include <sod2/op/std/normalization.hpp>
#include <sod2/op/std/pooling.hpp>
#include <sod2/op/std/product.hpp>
#include <sod2/op/std/quantization.hpp>
#include <sod2/op/std/random.hpp>
#include <sod2/op/std/recurrent.hpp>
#include <sod2/op/std/reduction.hpp>
#include <sod2/op/std/reshape.hpp>
#include <sod2/op/std/sequence.hpp>
#include <sod2/op/std/shape.hpp>
#include <sod2/op/std/signal.hpp>
#include <sod2/op/std/text.hpp>
#include <sod2/op/std/training.hpp>

namespace sod2 {

using standard_ops =
    join<ops::attention_ops, ops::control_ops, ops::conversion_ops, ops::convolution_ops,
         ops::dynamic_ops, ops::elementwise_ops, ops::image_ops, ops::movement_ops,
         ops::normalization_ops, ops::pooling_ops, ops::product_ops, ops::quantization_ops,
         ops::random_ops, ops::recurrent_ops, ops::reduction_ops, ops::reshape_ops,
         ops::sequence_ops, ops::shape_ops, ops::signal_ops, ops::text_ops, ops::training_ops>;

}  // namespace sod2
