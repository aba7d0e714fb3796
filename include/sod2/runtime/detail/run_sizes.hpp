// Sizes that a run finds out: how steps make them known. Methods of session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sod2/core/checked.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/tensor_view.hpp>
#include <sod2/op/constant.hpp>
#include <sod2/op/definition.hpp>
#include <sod2/runtime/program.hpp>
#include <sod2/runtime/session.hpp>

namespace sod2 {

inline status session::bind_symbol(const program_binding& b, std::span<const std::int64_t> dims) {
  std::int64_t rest = 0;
  if (const errc e = b.rest.evaluate(symbol_values_, scratch_, {&rest, 1}); e != errc::ok)
    return error(e);
  const std::int64_t size = b.axis < dims.size() ? dims[b.axis] : -1;
  if (size < 0) {  // a stack of no slices: any size will do
    symbol_values_[b.symbol] = b.lo > 0 ? b.lo : 0;
    return {};
  }
  const std::int64_t value = floor_div(size - rest, b.factor);
  if (value * b.factor != size - rest || value < b.lo || value > b.hi)
    return error(errc::assertion_failed, "a size is outside its bounds " + std::to_string(b.lo) +
                                             ".." + std::to_string(b.hi))
        .between(std::to_string(value), std::to_string(size));
  symbol_values_[b.symbol] = value;
  return {};
}

inline status session::resolve(const program_region& r, const region_state& st,
                               const program_step& step, const program_binder& binder) {
  dim_context context;
  symbolic_domain domain(context);
  std::vector<symbolic_fact> facts(step.input_count);
  std::vector<const symbolic_fact*> inputs(step.input_count, nullptr);
  for (std::uint32_t k = 0; k < step.input_count; ++k) {
    const tensor_view v = operand(r, st, step.input_first + k);
    if (!v.present()) continue;
    inputs[k] = &facts[k];
    if (rehearsing_ && !is_settled(r, step.input_first + k)) {
      facts[k].kind = fact_kind::tensor;
      facts[k].type = v.type;
      facts[k].rank = rank_state::known;
      for (std::int64_t d : v.shape()) facts[k].dims.push_back(context.constant(d));
      continue;
    }
    constant_view c;
    c.type = v.type;
    c.dims = v.shape();
    c.data = static_cast<const std::byte*>(v.data);
    c.bytes = v.data == nullptr ? 0 : static_cast<std::size_t>(bytes_of_view(v));
    read_constant(domain, c, facts[k]);
  }
  std::vector<symbolic_fact> outputs(binder.outputs);
  attribute_source attributes;
  attributes.graph = &binder;
  attributes.find = [](const void* of, std::uint64_t, std::string_view name) {
    for (const attribute& a : static_cast<const program_binder*>(of)->attributes)
      if (a.name == name) return a.view();
    return attribute_view{};
  };
  symbolic_transfer transfer(domain, inputs, outputs, attributes, binder.version);
  symbolic_transfer::fresh_cache cache;
  transfer.use_cache(cache);
  SOD2_TRY(binder.forward(transfer));
  shapes_.resize(shapes_.size() < outputs.size() ? outputs.size() : shapes_.size());
  open_axes_.assign(outputs.size(), -1);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    shapes_[k].clear();
    for (std::size_t axis = 0; axis < outputs[k].dims.size(); ++axis) {
      const dim d = outputs[k].dims[axis];
      std::int64_t size = 0;
      if (!domain.as_constant(d, size)) {
        size = d.is_known() ? context.bounds(d).hi : infinity;
        if ((binder.how == program_binder::mode::values && !rehearsing_) || size == infinity)
          return error(errc::unsupported, "an output's size does not follow from the inputs");
        open_axes_[k] = static_cast<int>(axis);
      }
      shapes_[k].push_back(size);
    }
    // A count that the inputs show is still the kernel's to report.
    if (binder.how == program_binder::mode::counts && open_axes_[k] < 0)
      for (const program_binding& b : binder.bindings)
        if (b.operand == k) open_axes_[k] = static_cast<int>(b.axis);
  }
  return {};
}

inline status session::verify(const program_region& r, const region_state& st,
                              const program_step& step) const {
  for (std::uint32_t k = 0; k < step.output_count; ++k) {
    const std::uint32_t t = r.operands[step.output_first + k];
    if (t == no_slot) continue;
    const tensor_view& v = st.views[t];
    for (std::uint32_t axis = 0; axis < v.rank; ++axis) {
      const std::int64_t got = axis < shapes_[k].size() ? shapes_[k][axis] : -1;
      if (got >= 0 && got != v.dims[axis])
        return error(errc::dim_mismatch)
            .at_node(step.name)
            .at_tensor(r.tensors[t].name, static_cast<int>(axis))
            .between(std::to_string(v.dims[axis]), std::to_string(got));
    }
  }
  return {};
}

}  // namespace sod2
