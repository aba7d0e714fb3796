// Operators on sequences and optionals. Methods of session.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <sod2/core/status.hpp>
#include <sod2/core/tensor_view.hpp>
#include <sod2/runtime/detail/container.hpp>
#include <sod2/runtime/program.hpp>
#include <sod2/runtime/session.hpp>

namespace sod2 {

inline status session::check_container(const program_input& in, const tensor_view& t) {
  const dtype wanted = in.kind == fact_kind::sequence ? dtype::sequence : dtype::optional;
  if (t.type != wanted)
    return error(errc::input_type).at_tensor(in.name).between(name_of(wanted), name_of(t.type));
  if (t.rank != 1 || (wanted == dtype::optional && t.count() > 1))
    return error(errc::input_shape, "a sequence has one dim, an optional at most one element")
        .at_tensor(in.name);
  const auto check_items = [&](const tensor_view& list) -> status {
    for (std::int64_t i = 0; i < list.count(); ++i)
      if (list.item(i).type != in.type && in.type != dtype::undefined)
        return error(errc::input_type, "element " + std::to_string(i) + " has another type")
            .at_tensor(in.name)
            .between(name_of(in.type), name_of(list.item(i).type));
    return {};
  };
  if (in.kind != fact_kind::optional_sequence) return check_items(t);
  if (t.count() == 0) return {};
  if (t.item(0).type != dtype::sequence)
    return error(errc::input_type, "the optional holds no sequence")
        .at_tensor(in.name)
        .between(name_of(dtype::sequence), name_of(t.item(0).type));
  return check_items(t.item(0));
}

inline void session::open_containers(std::span<const tensor_view> inputs) {
  for (detail::container& c : containers_) c.forget();
  elements_.reset();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (const program_input& in = program_->inputs()[i]; in.container != no_slot)
      containers_[in.container].borrow(elements_, in.kind, inputs[i]);
}

inline status session::add_element(detail::container& to, std::size_t at, const tensor_view& like,
                                   tensor_view& made) {
  SOD2_ASSIGN(detail::element_pool::element* const owner,
              elements_.make(like, budget_left(), made));
  to.insert(at, made, owner);
  return {};
}

inline status session::open_tensor(const program_region& r, const region_state& st,
                                   const program_step& step, const tensor_view& like,
                                   tensor_view& made) {
  const std::uint32_t t = r.operands[step.output_first];
  const program_tensor& out = r.tensors[t];
  if (like.type != out.type)
    return error(errc::type_mismatch)
        .at_tensor(out.name)
        .between(name_of(out.type), name_of(like.type));
  if (like.rank != out.rank)
    return error(errc::rank_mismatch)
        .at_tensor(out.name)
        .between(std::to_string(out.rank), std::to_string(like.rank));
  shapes_[0].clear();
  for (std::int64_t d : like.shape()) shapes_[0].push_back(d);
  made = like;
  if (out.kind == storage_kind::block) {
    SOD2_TRY(grow(out.storage, bytes_of_view(like)));
    made.data = block_data_[out.storage];
    return {};
  }
  const tensor_view& known = st.views[t];
  for (std::uint32_t axis = 0; axis < like.rank; ++axis)
    if (known.dims[axis] != like.dims[axis])
      return error(errc::dim_mismatch)
          .at_tensor(out.name, static_cast<int>(axis))
          .between(std::to_string(known.dims[axis]), std::to_string(like.dims[axis]));
  made.data = known.data;
  return {};
}

inline status session::run_sequence(std::uint32_t region, const program_step& step) {
  using kind = program_sequence::kind;
  const program_region& r = program_->regions()[region];
  const region_state& st = states_[region];
  const program_sequence& q = r.sequences[step.sequence];
  if (shapes_.empty()) shapes_.resize(1);
  shapes_[0].clear();
  const auto input = [&](std::uint32_t k) {
    return k < step.input_count ? operand(r, st, step.input_first + k) : tensor_view{};
  };
  const auto list = [&]() -> detail::container& { return container_of(r, step.input_first); };
  const std::uint32_t result = r.operands[step.output_first];
  const auto made = [&]() -> detail::container& { return containers_[r.tensors[result].storage]; };
  const auto add = [&](std::size_t at, const tensor_view& v) -> status {
    tensor_view copy;
    SOD2_TRY(add_element(made(), at, v, copy));
    copy_bytes(copy.data, v);
    return {};
  };
  const auto assign = [&] {
    if (q.takes)
      made().take(elements_, list());
    else
      made().share(elements_, list());
  };
  const auto give = [&](const tensor_view& v) -> status {
    tensor_view copy;
    SOD2_TRY(open_tensor(r, st, step, v, copy));
    copy_bytes(copy.data, v);
    return {};
  };
  // The position that input k says, below `limit`; `otherwise` when it is absent.
  const auto position = [&](std::uint32_t k, std::size_t limit, std::size_t otherwise,
                            std::size_t& at) -> status {
    const tensor_view v = input(k);
    const auto n = static_cast<std::int64_t>(list().size());
    at = otherwise;
    std::int64_t i = 0;
    if (v.present()) {
      i = element(v, 0);
      at = static_cast<std::size_t>(i < 0 ? i + n : i);
    }
    if (at < limit) return {};
    return error(errc::index_range, "position " + std::to_string(i) + " in a sequence of " +
                                        std::to_string(n) + " elements");
  };
  std::size_t at = 0;
  switch (q.what) {
    case kind::assign: assign(); return {};
    case kind::construct:
      made().start(elements_, q.has_value);
      for (std::uint32_t k = 0; k < step.input_count; ++k)
        if (const tensor_view v = input(k); v.present()) SOD2_TRY(add(made().size(), v));
      return {};
    case kind::at: SOD2_TRY(position(1, list().size(), 0, at)); return give(list().item(at));
    case kind::insert:
      SOD2_TRY(position(2, list().size() + 1, list().size(), at));
      assign();
      return add(at, input(1));
    case kind::erase:
      SOD2_TRY(position(1, list().size(), list().size() - 1, at));
      assign();
      made().erase(elements_, at);
      return {};
    case kind::length: {
      std::int64_t n = static_cast<std::int64_t>(list().size());
      return give({&n, nullptr, 0, dtype::i64});
    }
    case kind::has: {
      std::uint8_t has = list().has_value() ? 1 : 0;
      return give({&has, nullptr, 0, dtype::boolean});
    }
    case kind::element:
      if (!list().has_value()) return error(errc::value_range, "the optional has no value");
      if (r.tensors[result].kind != storage_kind::container) return give(list().item(0));
      assign();
      return {};
    case kind::split: return split_to_sequence(r, st, step, q, made());
    case kind::concat: return concat_from_sequence(r, st, step, q, list());
  }
  return {};
}

inline status session::split_to_sequence(const program_region& r, const region_state& st,
                                         const program_step& step, const program_sequence& q,
                                         detail::container& to) {
  const tensor_view whole = operand(r, st, step.input_first);
  const tensor_view split =
      step.input_count > 1 ? operand(r, st, step.input_first + 1) : tensor_view{};
  const auto axis = static_cast<std::size_t>(
      q.axis < 0 ? q.axis + static_cast<std::int64_t>(whole.rank) : q.axis);
  if (axis >= whole.rank)
    return error(errc::axis_range)
        .between(std::to_string(q.axis), "rank " + std::to_string(whole.rank));
  const std::int64_t extent = whole.dims[axis];
  const std::int64_t parts = split.present() && split.rank > 0 ? split.count() : 0;
  std::int64_t each = split.present() && split.rank == 0 ? element(split, 0) : 1, sum = 0;
  for (std::int64_t k = 0; k < parts; ++k) {
    each = element(split, static_cast<std::size_t>(k));
    if (each < 0 || !checked_add(sum, each, sum))
      return error(errc::value_range, "a part has " + std::to_string(each) + " elements");
  }
  if (parts > 0 && sum != extent)
    return error(errc::dim_mismatch, "the parts do not make up the whole")
        .between(std::to_string(extent), std::to_string(sum));
  if (parts == 0 && each < 1)
    return error(errc::value_range, "a part has " + std::to_string(each) + " elements");
  to.start(elements_, true);
  std::int64_t first = 0;
  for (std::int64_t k = 0; parts > 0 ? k < parts : first < extent; ++k) {
    std::int64_t size = parts > 0 ? element(split, static_cast<std::size_t>(k)) : each;
    if (size > extent - first) size = extent - first;
    small_vector<std::int64_t, 8> dims;
    for (std::uint32_t i = 0; i < whole.rank; ++i)
      if (i != axis)
        dims.push_back(whole.dims[i]);
      else if (q.keeps_axis)
        dims.push_back(size);
    tensor_view part;
    SOD2_TRY(add_element(
        to, to.size(), {nullptr, dims.data(), static_cast<std::uint32_t>(dims.size()), whole.type},
        part));
    copy_part(whole, static_cast<std::byte*>(part.data), axis, first, size, true);
    first += size;
  }
  return {};
}

inline status session::concat_from_sequence(const program_region& r, const region_state& st,
                                            const program_step& step, const program_sequence& q,
                                            const detail::container& from) {
  if (from.size() == 0)
    return error(errc::value_range, "an empty sequence has nothing to concatenate");
  const tensor_view& first = from.item(0);
  small_vector<std::int64_t, 8> dims;
  for (std::int64_t d : first.shape()) dims.push_back(d);
  const std::int64_t rank = static_cast<std::int64_t>(first.rank) + (q.keeps_axis ? 0 : 1);
  const auto axis = static_cast<std::size_t>(q.axis < 0 ? q.axis + rank : q.axis);
  if (axis >= static_cast<std::size_t>(rank))
    return error(errc::axis_range).between(std::to_string(q.axis), "rank " + std::to_string(rank));
  if (!q.keeps_axis) dims.insert(axis, 1);
  const auto size_of = [&](const tensor_view& part) { return q.keeps_axis ? part.dims[axis] : 1; };
  dims[axis] = 0;
  for (std::size_t k = 0; k < from.size(); ++k) {
    const tensor_view& part = from.item(k);
    if (part.rank != first.rank)
      return error(errc::rank_mismatch, "element " + std::to_string(k) + " has another rank")
          .between(std::to_string(first.rank), std::to_string(part.rank));
    for (std::size_t i = 0; i < first.rank; ++i)
      if ((!q.keeps_axis || i != axis) && part.dims[i] != first.dims[i])
        return error(errc::dim_mismatch,
                     "element " + std::to_string(k) + " differs in axis " + std::to_string(i))
            .between(std::to_string(first.dims[i]), std::to_string(part.dims[i]));
    dims[axis] += size_of(part);
  }
  tensor_view whole;
  SOD2_TRY(open_tensor(r, st, step,
                       {nullptr, dims.data(), static_cast<std::uint32_t>(dims.size()), first.type},
                       whole));
  std::int64_t at = 0;
  for (std::size_t k = 0; k < from.size(); ++k) {
    const tensor_view& part = from.item(k);
    copy_part(whole, static_cast<std::byte*>(part.data), axis, at, size_of(part), false);
    at += size_of(part);
  }
  return {};
}

}  // namespace sod2
