// The ten networks of the SoD2 paper as one list, and the examples besides.
#pragma once

#include <span>
#include <string_view>

#include "blockdrop.hpp"
#include "codebert.hpp"
#include "conformer.hpp"
#include "convnet_aig.hpp"
#include "dgnet.hpp"
#include "mixture_of_experts.hpp"
#include "ranet.hpp"
#include "segment_anything.hpp"
#include "skipnet.hpp"
#include "stable_diffusion_encoder.hpp"
#include "yolo_v6.hpp"

namespace models {

struct entry {
  const char* name;
  sod2::graph (*build)(const config&);
  sod2::analysis_options (*facts)();  // what holds of its input sizes
};

inline constexpr entry all[] = {
    {"stable_diffusion_encoder", stable_diffusion_encoder::build, stable_diffusion_encoder::facts},
    {"segment_anything", segment_anything::build, segment_anything::facts},
    {"conformer", conformer::build, conformer::facts},
    {"codebert", codebert::build, codebert::facts},
    {"yolo_v6", yolo_v6::build, yolo_v6::facts},
    {"skipnet", skipnet::build, skipnet::facts},
    {"dgnet", dgnet::build, dgnet::facts},
    {"convnet_aig", convnet_aig::build, convnet_aig::facts},
    {"ranet", ranet::build, ranet::facts},
    {"blockdrop", blockdrop::build, blockdrop::facts},
};

/// Sizes that a run decides, in a network that the paper does not have.
inline constexpr entry others[] = {
    {"mixture_of_experts", mixture_of_experts::build, mixture_of_experts::facts},
};

/// The example of that name, or null.
inline const entry* find(std::string_view name) {
  for (const std::span<const entry> list :
       {std::span<const entry>(all), std::span<const entry>(others)})
    for (const entry& e : list)
      if (e.name == name) return &e;
  return nullptr;
}

}  // namespace models
