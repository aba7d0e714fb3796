// SkipNet: a ResNet-50 with one recurrent gate that reads each block's result and decides whether
// the next block runs.
#pragma once

#include "resnet.hpp"

namespace models::skipnet {

inline constexpr std::int64_t features = 10;

/// An LSTM over the sequence of blocks; its weights are shared by all of them.
class controller {
 public:
  controller(network& n, tensor image) : network_(n) {
    const auto here = n.part("control");
    const std::int64_t h = features;
    input_weight_ = n.weight_around("weight_ih", {1, 4 * h, h}, 0, 0.3);
    hidden_weight_ = n.weight_around("weight_hh", {1, 4 * h, h}, 0, 0.3);
    bias_ = n.weight_around("bias", {1, 8 * h}, 0, 0.1);
    proj_weight_ = n.weight_around("proj.weight", {1, h}, 0, 2.5);
    proj_bias_ = n.weight_around("proj.bias", {1}, n.gate_bias(), 0);
    hidden_ = cell_ = n.op("ConstantOfShape", {n.shape({1, n.size(image, 0), h})});
  }
  /// 1 for each sample that wants the next block, as (B, 1, 1, 1).
  tensor decide(tensor x) {
    network& n = network_;
    const auto here = n.part("gate");
    const tensor seen = n.conv(n.global_pool(x), "proj", features, {.contrast = true});
    const tensor step = n.reshape(seen, {1, n.size(x, 0), -1});
    const auto out = n.ops("LSTM", {step, input_weight_, hidden_weight_, bias_, {}, hidden_, cell_},
                           3, {{"hidden_size", features}});
    hidden_ = out[1];
    cell_ = out[2];
    const tensor row = n.squeeze(hidden_, {0});
    const tensor logit = n.op("Gemm", {row, proj_weight_, proj_bias_}, {{"transB", 1}});
    const tensor open = n.op("Greater", {n.sigmoid(logit), n.real(0.5)});
    return n.reshape(n.cast(open, sod2::dtype::f32), {n.size(x, 0), 1, 1, 1});
  }

 private:
  network& network_;
  tensor input_weight_, hidden_weight_, bias_, proj_weight_, proj_bias_, hidden_, cell_;
};

inline sod2::graph build(const config& c = {}) {
  network n(c);
  const tensor image = n.input("image", sod2::dtype::f32, {"B", 3, "H", "W"}, 3);
  controller control(n, image);
  tensor mask;
  const tensor x =
      resnet::stages(n, resnet::stem(n, image), {3, 4, 6, 3},
                     [&](tensor in, std::int64_t planes, std::int64_t stride, bool first) {
                       const auto shortcut = [&] {
                         return resnet::shortcut(n, in, resnet::expansion * planes, stride);
                       };
                       const auto run = [&](tensor base) {
                         return n.relu(n.add(resnet::bottleneck(n, in, planes, stride), base));
                       };
                       // Samples that do not want the block keep their shortcut.
                       const auto blend = [&] {
                         const tensor base = shortcut();
                         const tensor kept = n.mul(n.sub(n.real(1), mask), base);
                         return n.add(n.mul(run(base), mask), {kept, base.channels});
                       };
                       const tensor out = first ? run(shortcut())
                                                : n.choose(n.any(mask), blend,
                                                           [&] { return n.identity(shortcut()); });
                       mask = control.decide(out);
                       return out;
                     });
  resnet::classify(n, x);
  return n.finish();
}

/// Any size will do.
inline sod2::analysis_options facts() { return {}; }

}  // namespace models::skipnet
