// Pointwise nodes to tile programs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <sod2/core/vector.hpp>
#include <sod2/kernel/tile.hpp>
#include <sod2/runtime/detail/compile_state.hpp>

namespace sod2::detail {

class tile_lowering : public compile_state {
 public:
  using compile_state::compile_state;

 protected:
  /// One program for the pointwise nodes of a launch; with `epilogue`, operand 0 is the anchor's
  /// output block and l.inputs receives the operands from 1 on.
  result<tile_program> lower_tile(launch& l, bool epilogue) {
    struct source {
      value_id value;
      int first_axis;
      std::uint16_t reg;
    };
    std::vector<source> registers;  // values made inside have first_axis -1
    tile_builder builder;
    std::vector<node_operands> described(l.nodes.size());
    l.inputs.clear();
    const std::size_t begin = epilogue ? 1 : 0;
    const auto find = [&](value_id v, int first_axis) -> const source* {
      for (const source& s : registers)
        if (s.value == v && s.first_axis == first_axis) return &s;
      return nullptr;
    };
    const auto made_inside = [&](value_id v) {
      if (view_.producer(v) == no_index) return false;
      for (node_id n : l.nodes)
        if (n.index == view_.producer(v)) return true;
      return false;
    };
    if (epilogue) {
      const value_id head = view_.outputs(l.nodes[0])[0];
      registers.push_back({head, -1, builder.input(facts_.fact(head).type)});
    }
    const auto axis_of = [&](node_id n, const node_operands& d, std::size_t k) {
      return pointwise_of(n)->first_axis(d.args, k);
    };
    for (std::size_t i = begin; i < l.nodes.size(); ++i) {
      const node_id n = l.nodes[i];
      describe(n, described[i]);
      const pointwise_row* row = pointwise_of(n);
      for (std::size_t k = 0; k < view_.inputs(n).size(); ++k) {
        const value_id v = view_.inputs(n)[k];
        if (v == absent || made_inside(v) || (k < 32 && (row->unread_inputs >> k & 1U) != 0))
          continue;
        const int axis = axis_of(n, described[i], k);
        if (find(v, axis) != nullptr) continue;
        registers.push_back({v, axis, builder.input(facts_.fact(v).type, axis)});
        l.inputs.push_back(v);
      }
    }
    for (std::size_t i = begin; i < l.nodes.size(); ++i) {
      const node_id n = l.nodes[i];
      constexpr std::uint16_t nothing = 0xffff;
      small_vector<std::uint16_t, 8> in, made(view_.outputs(n).size(), nothing);
      for (std::size_t k = 0; k < view_.inputs(n).size(); ++k) {
        const value_id v = view_.inputs(n)[k];
        const source* s =
            v == absent ? nullptr : find(v, made_inside(v) ? -1 : axis_of(n, described[i], k));
        in.push_back(s == nullptr ? std::uint16_t{0} : s->reg);
      }
      if (status s = pointwise_of(n)->lower(builder, described[i].args, in, made); !s)
        return std::move(s).error().at_node(name(n));
      for (std::size_t k = 0; k < made.size(); ++k)
        if (view_.outputs(n)[k] != absent && made[k] != nothing)
          registers.push_back({view_.outputs(n)[k], -1, made[k]});
    }
    if (l.outputs.empty())
      for (value_id v : view_.outputs(l.nodes.back()))
        if (v != absent && find(v, -1) != nullptr) l.outputs.push_back(v);
    for (value_id v : l.outputs) {
      if (v == absent) continue;
      const source* made = find(v, -1);
      if (made == nullptr)  // statistics of a normalisation that was given them
        return error(errc::kernel_missing, "only the first output can be computed here")
            .at_node(name(l.nodes.back()))
            .at_tensor(view_.name(v));
      builder.output(made->reg);
    }
    return builder.finish();
  }
};

}  // namespace sod2::detail
