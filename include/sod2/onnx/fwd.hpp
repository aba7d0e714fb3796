// Declarations of onnx/.
#pragma once

namespace sod2::onnx {
struct model;
struct read_options;
struct write_options;
struct named_tensor;
struct annotation;
class file_bytes;
}  // namespace sod2::onnx
