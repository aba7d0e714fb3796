// Everything of onnx/: reading and writing ONNX files. The only part of the library that uses
// exceptions inside; none leaves it.
#pragma once

#include <sod2/onnx/file.hpp>
#include <sod2/onnx/fwd.hpp>
#include <sod2/onnx/reader.hpp>
#include <sod2/onnx/tensor.hpp>
#include <sod2/onnx/writer.hpp>
