// Graph rewriting before fusion: a copy of the graph in which nodes were removed, merged or folded
// into others. Every rule keeps results (up to rounding, where constants are multiplied) and names:
// what the graph gives to its caller and what remains keeps its own.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/core/algorithm.hpp>
#include <sod2/graph/graph.hpp>
#include <sod2/graph/view.hpp>
#include <sod2/op/registry.hpp>

namespace sod2 {

struct rewrite_options {
  bool enabled = true;  // false: planners see the caller's own graph
  bool fold_pads = true;
  bool fold_batch_normalization = true;
  bool compose_transposes = true;
  bool merge_common = true;
};

/// What was done, in ids of the view that was rewritten (graph ids below value_count() and
/// node_count() are the view's; later ones are new constants).
struct graph_edit {
  enum class rule : std::uint8_t { pad, batch_normalization, transpose, common };
  rule what = rule::common;
  node_id removed{};  // for `transpose`: the node that now reads further up
  node_id into{};     // the node that does its work
};

struct rewritten_graph {
  graph result;
  std::vector<graph_edit> edits;
};

/// Can the graph be rewritten? It must be able to list its attributes.
inline bool can_rewrite(const graph_view& view) {
  for (std::uint32_t n = 0; n < view.node_count(); ++n) {
    const attribute_source& a = view.attributes(node_id{n});
    if (a.find != nullptr && a.name_at == nullptr) return false;
  }
  return true;
}

namespace detail {

/// A graph with the ids, names and attributes of the view; tensors stay where they are.
inline graph copy_of(const graph_view& view) {
  graph g;
  for (std::uint32_t v = 1; v < view.value_count(); ++v) {
    const value_id id{v};
    const value_id made = g.add_value(std::string(view.local_name(id)));
    const declared_value& d = view.declared(id);
    if (d.constant.present()) {
      g.set_constant(made, constant_tensor::borrow(d.constant));
      continue;
    }
    graph::value& value = g.values()[made.index];
    value.kind = d.kind;
    value.type = d.type;
    value.has_shape = d.has_shape;
    for (const declared_dim& k : d.dims) {
      dim_spec spec;
      spec.size = k.size;
      spec.symbol = k.symbol;
      value.dims.push_back(std::move(spec));
    }
  }
  const auto local = [](std::string_view name, std::string_view prefix) {
    return std::string(prefix.empty() ? name : name.substr(prefix.size() + 1));
  };
  for (std::uint32_t s = 0; s < view.scope_count(); ++s) {
    const scope_id id{s};
    if (s > 0) g.add_scope(local(view.name(id), view.name(node_id{view.owner(id)})));
    graph::scope& scope = g.scopes()[s];
    scope.inputs.assign(view.inputs(id).begin(), view.inputs(id).end());
    scope.outputs.assign(view.outputs(id).begin(), view.outputs(id).end());
    scope.nodes.assign(view.order(id).begin(), view.order(id).end());
  }
  for (std::uint32_t k = 0; k < view.node_count(); ++k) {
    const node_id id{k};
    graph::node n;
    n.name = local(view.name(id), view.name(view.scope(id)));
    n.op = view.operator_name(id);
    n.domain = view.operator_domain(id);
    n.opset = view.opset(id);
    n.inputs.assign(view.inputs(id).begin(), view.inputs(id).end());
    n.outputs.assign(view.outputs(id).begin(), view.outputs(id).end());
    n.scopes.assign(view.scopes(id).begin(), view.scopes(id).end());
    const attribute_source& a = view.attributes(id);
    for (std::size_t i = 0; a.name_at != nullptr; ++i) {
      const std::string_view name = a.name_at(a.graph, a.node, i);
      if (name.empty()) break;
      n.attributes.emplace_back(std::string(name), a(name));
    }
    g.nodes().push_back(std::move(n));
  }
  return g;
}

class rewriter {
 public:
  rewriter(const graph_view& view, const registry& ops) : view_(view), g_(copy_of(view)) {
    rows_.reserve(view.node_count());
    for (std::uint32_t n = 0; n < view.node_count(); ++n)
      rows_.push_back(ops.find(view.operator_domain(node_id{n}), view.operator_name(node_id{n}),
                               view.opset(node_id{n})));
    gone_.assign(view.node_count(), 0);
    replaced_.resize(view.value_count());
    for (std::uint32_t v = 0; v < replaced_.size(); ++v) replaced_[v] = value_id{v};
    reads_.assign(view.value_count(), 0);
    for (const graph::node& n : g_.nodes())
      for (value_id v : n.inputs) ++reads_[v.index];
    // What a scope hands out is read once more, from outside.
    for (const graph::scope& s : g_.scopes())
      for (value_id v : s.outputs) ++reads_[v.index];
  }

  rewritten_graph run(const rewrite_options& options) {
    if (options.fold_pads) each("Conv", [&](node_id n) { fold_pad(n); });
    if (options.fold_batch_normalization)
      each("BatchNormalization", [&](node_id n) { fold_normalization(n); });
    if (options.compose_transposes) each("Transpose", [&](node_id n) { compose(n); });
    if (options.merge_common) merge_common();
    for (graph::scope& s : g_.scopes()) {
      std::size_t kept = 0;
      for (node_id n : s.nodes)
        if (gone_[n.index] == 0) s.nodes[kept++] = n;
      s.nodes.resize(kept);
      for (value_id& v : s.outputs) v = now(v);
    }
    for (graph::node& n : g_.nodes())
      for (value_id& v : n.inputs) v = now(v);
    return {std::move(g_), std::move(edits_)};
  }

 private:
  /// Bytes up to which constants are compared by content: shapes, indices and scalars repeat, big
  /// weights do not, or share their bytes.
  static constexpr std::size_t compared_bytes = std::size_t{1} << 16;

  template <class F>
  void each(std::string_view op, F&& f) {
    for (std::uint32_t s = 0; s < view_.scope_count(); ++s)
      for (node_id n : view_.order(scope_id{s}))
        if (gone_[n.index] == 0 && is(n, op)) f(n);
  }
  bool is(node_id n, std::string_view op) const {
    return g_[n].op == op && g_[n].domain.empty() && rows_[n.index];
  }
  /// The value that stands for v now.
  value_id now(value_id v) const {
    while (v.index < replaced_.size() && replaced_[v.index] != v) v = replaced_[v.index];
    return v;
  }
  const attribute* find(node_id n, std::string_view name) const {
    for (const attribute& a : g_[n].attributes)
      if (a.name == name) return &a;
    return nullptr;
  }
  std::int64_t integer(node_id n, std::string_view name, std::int64_t fallback) const {
    const attribute* a = find(n, name);
    return a != nullptr ? a->integer : fallback;
  }
  value_id input(node_id n, std::size_t k) const {
    return k < g_[n].inputs.size() ? now(g_[n].inputs[k]) : absent;
  }
  /// The node that makes v and feeds nobody else, if it is of this operator and in the same scope.
  const std::uint32_t* only_source(value_id v, node_id reader, std::string_view op) {
    if (v == absent || v.index >= reads_.size() || reads_[v.index] != 1) return nullptr;
    source_ = view_.producer(v);
    if (source_ == no_index || gone_[source_] != 0 || !is(node_id{source_}, op)) return nullptr;
    return view_.scope(node_id{source_}) == view_.scope(reader) ? &source_ : nullptr;
  }
  /// Bytes of an initialiser or of a Constant node.
  constant_view constant(value_id v) const {
    if (v == absent) return {};
    if (g_[v].constant != 0xffffffff) return g_.constants()[g_[v].constant].view();
    if (v.index >= view_.value_count() || view_.producer(v) == no_index) return {};
    const node_id n{view_.producer(v)};
    const attribute* a = is(n, "Constant") ? find(n, "value") : nullptr;
    return a != nullptr ? a->tensor.view() : constant_view{};
  }
  template <class T>
  static bool read(const constant_view& c, dtype type, std::vector<T>& out) {
    if (!c.present() || c.type != type || c.bytes % sizeof(T) != 0) return false;
    out.resize(c.bytes / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), c.data, c.bytes);
    return true;
  }
  void remove(node_id n, node_id into, graph_edit::rule what) {
    gone_[n.index] = 1;
    for (value_id v : g_[n].inputs)
      if (v.index < reads_.size()) --reads_[v.index];
    edits_.push_back({what, n, into});
  }

  // ---- zero padding into the convolution that reads it ----

  bool pad_amounts(node_id pad, std::vector<std::int64_t>& amounts) {
    const attribute* mode = find(pad, "mode");
    if (mode != nullptr && mode->string != "constant") return false;
    if (rows_[pad.index].version < 11) {
      const attribute* pads = find(pad, "pads");
      const attribute* value = find(pad, "value");
      if (pads == nullptr || (value != nullptr && value->real != 0)) return false;
      amounts = pads->integers;
      return true;
    }
    if (input(pad, 3) != absent || !read(constant(input(pad, 1)), dtype::i64, amounts))
      return false;
    if (input(pad, 2) == absent) return true;
    const constant_view value = constant(input(pad, 2));
    for (std::size_t i = 0; i < value.bytes; ++i)
      if (value.data[i] != std::byte{0}) return false;
    return value.present();
  }
  void fold_pad(node_id conv) {
    const std::uint32_t* source = only_source(input(conv, 0), conv, "Pad");
    if (source == nullptr) return;
    const node_id pad{*source};
    const attribute* how = find(conv, "auto_pad");
    if (how != nullptr && how->string != "NOTSET" && !how->string.empty()) return;
    std::vector<std::int64_t> amounts;
    if (!pad_amounts(pad, amounts) || amounts.size() < 6 || amounts.size() % 2 != 0) return;
    const std::size_t rank = amounts.size() / 2, axes = rank - 2;
    for (std::size_t i = 0; i < amounts.size(); ++i)
      if (amounts[i] < 0 || (i % rank < 2 && amounts[i] != 0)) return;
    std::vector<std::int64_t> pads(2 * axes, 0);
    if (const attribute* own = find(conv, "pads"); own != nullptr) {
      if (own->integers.size() != pads.size()) return;
      pads = own->integers;
    }
    for (std::size_t i = 0; i < axes; ++i) {
      pads[i] += amounts[2 + i];
      pads[axes + i] += amounts[rank + 2 + i];
    }
    set(conv, attribute("pads", std::move(pads)));
    read_instead(conv, 0, input(pad, 0));
    remove(pad, conv, graph_edit::rule::pad);
  }
  void set(node_id n, attribute a) {
    for (attribute& old : g_.nodes()[n.index].attributes)
      if (old.name == a.name) {
        old = std::move(a);
        return;
      }
    g_.nodes()[n.index].attributes.push_back(std::move(a));
  }
  void read_instead(node_id n, std::size_t k, value_id v) {
    value_id& slot = g_.nodes()[n.index].inputs[k];
    if (slot.index < reads_.size()) --reads_[slot.index];
    if (v.index < reads_.size()) ++reads_[v.index];
    slot = v;
  }

  // ---- inference normalisation into the weights of the convolution before it ----

  void fold_normalization(node_id norm) {
    if (rows_[norm.index].version < 9 || integer(norm, "training_mode", 0) != 0) return;
    for (std::size_t k = 1; k < g_[norm].outputs.size(); ++k)
      if (g_[norm].outputs[k] != absent) return;
    bool transposed = false;
    const std::uint32_t* source = only_source(input(norm, 0), norm, "Conv");
    if (source == nullptr) {
      source = only_source(input(norm, 0), norm, "ConvTranspose");
      transposed = true;
    }
    if (source == nullptr) return;
    const node_id conv{*source};
    std::vector<float> weight, bias, scale, shift, mean, variance;
    const constant_view w = constant(input(conv, 1));
    if (!read(w, dtype::f32, weight) || w.dims.size() < 3 ||
        !read(constant(input(norm, 1)), dtype::f32, scale) ||
        !read(constant(input(norm, 2)), dtype::f32, shift) ||
        !read(constant(input(norm, 3)), dtype::f32, mean) ||
        !read(constant(input(norm, 4)), dtype::f32, variance))
      return;
    if (input(conv, 2) != absent && !read(constant(input(conv, 2)), dtype::f32, bias)) return;
    const std::int64_t groups = integer(conv, "group", 1);
    const std::int64_t channels = transposed ? w.dims[1] * groups : w.dims[0];
    const auto count = static_cast<std::size_t>(channels);
    if (channels <= 0 || groups <= 0 || scale.size() != count || shift.size() != count ||
        mean.size() != count || variance.size() != count ||
        (!bias.empty() && bias.size() != count) || weight.empty() || w.dims[0] % groups != 0)
      return;
    bias.resize(count, 0.0F);
    const attribute* e = find(norm, "epsilon");
    const double epsilon = e != nullptr ? e->real : 1e-5;
    std::vector<double> factor(count);
    for (std::size_t o = 0; o < count; ++o) {
      factor[o] =
          static_cast<double>(scale[o]) / std::sqrt(static_cast<double>(variance[o]) + epsilon);
      if (!std::isfinite(factor[o])) return;
      bias[o] = static_cast<float>((static_cast<double>(bias[o]) - static_cast<double>(mean[o])) *
                                       factor[o] +
                                   static_cast<double>(shift[o]));
    }
    // (M, C/group, ..) or, transposed, (C, M/group, ..).
    const std::size_t rows =
        static_cast<std::size_t>(transposed ? w.dims[0] * w.dims[1] : channels);
    const std::size_t inner = weight.size() / rows;
    const std::int64_t in_group = transposed ? w.dims[0] / groups : 1;
    for (std::size_t row = 0; row < rows; ++row) {
      std::size_t o = row;
      if (transposed) {
        const auto c = static_cast<std::int64_t>(row) / w.dims[1];
        o = static_cast<std::size_t>(c / in_group * w.dims[1] +
                                     static_cast<std::int64_t>(row) % w.dims[1]);
      }
      for (std::size_t i = 0; i < inner; ++i)
        weight[row * inner + i] =
            static_cast<float>(static_cast<double>(weight[row * inner + i]) * factor[o]);
    }
    const std::string name(g_[input(conv, 1)].name);
    const value_id new_weight =
        g_.constant(name + ":normalised", {w.dims.begin(), w.dims.end()}, weight);
    const value_id new_bias = g_.constant(name + ":shift", {channels}, bias);
    read_instead(conv, 1, new_weight);
    if (g_[conv].inputs.size() < 3) g_.nodes()[conv.index].inputs.resize(3, absent);
    read_instead(conv, 2, new_bias);
    // The convolution now makes what the normalisation made.
    std::swap(g_.nodes()[conv.index].outputs[0], g_.nodes()[norm.index].outputs[0]);
    remove(norm, conv, graph_edit::rule::batch_normalization);
  }

  // ---- transpositions of transpositions ----

  void compose(node_id second) {
    const value_id v = input(second, 0);
    if (v == absent || v.index >= view_.value_count() || view_.producer(v) == no_index) return;
    const node_id first{view_.producer(v)};
    if (gone_[first.index] != 0 || !is(first, "Transpose")) return;
    const attribute* p = find(first, "perm");
    const attribute* q = find(second, "perm");
    if (p == nullptr || q == nullptr || p->integers.size() != q->integers.size()) return;
    std::vector<std::int64_t> perm;
    for (std::int64_t axis : q->integers) {
      if (axis < 0 || static_cast<std::size_t>(axis) >= p->integers.size()) return;
      perm.push_back(p->integers[static_cast<std::size_t>(axis)]);
    }
    set(second, attribute("perm", std::move(perm)));
    read_instead(second, 0, input(first, 0));
    edits_.push_back({graph_edit::rule::transpose, second, first});
    if (view_.outputs(first).size() == 1 && reads_[v.index] == 0)
      remove(first, second, graph_edit::rule::transpose);
  }

  // ---- common sub-expressions ----

  static std::uint64_t hash_bytes(std::uint64_t h, const void* data, std::size_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (; bytes >= 8; bytes -= 8, p += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, p, 8);
      h = hash_mix(h, word);
    }
    for (; bytes > 0; --bytes, ++p) h = hash_mix(h, *p);
    return h;
  }
  static bool same_constant(const constant_view& a, const constant_view& b) {
    if (a.type != b.type || a.bytes != b.bytes || a.dims.size() != b.dims.size()) return false;
    for (std::size_t i = 0; i < a.dims.size(); ++i)
      if (a.dims[i] != b.dims[i]) return false;
    if (a.data == b.data) return true;
    if (a.bytes > compared_bytes) return false;
    if (a.type != dtype::string) return a.bytes == 0 || std::memcmp(a.data, b.data, a.bytes) == 0;
    const auto* x = reinterpret_cast<const std::string*>(a.data);
    const auto* y = reinterpret_cast<const std::string*>(b.data);
    for (std::size_t i = 0; i < a.bytes / sizeof(std::string); ++i)
      if (x[i] != y[i]) return false;
    return true;
  }
  static std::uint64_t hash_constant(std::uint64_t h, const constant_view& c) {
    h = hash_mix(h, static_cast<std::uint64_t>(c.type));
    h = hash_mix(h, c.bytes);
    return c.type == dtype::string || c.bytes > compared_bytes ? h : hash_bytes(h, c.data, c.bytes);
  }
  static bool same_attribute(const attribute& a, const attribute& b) {
    const auto bits = [](double x) {
      std::uint64_t u = 0;
      std::memcpy(&u, &x, 8);
      return u;
    };
    return a.name == b.name && a.kind == b.kind && a.integer == b.integer &&
           bits(a.real) == bits(b.real) && a.string == b.string && a.integers == b.integers &&
           a.reals.size() == b.reals.size() &&
           (a.reals.empty() ||
            std::memcmp(a.reals.data(), b.reals.data(), a.reals.size() * sizeof(float)) == 0) &&
           a.strings == b.strings && same_constant(a.tensor.view(), b.tensor.view());
  }
  std::uint64_t hash_node(node_id n) const {
    const graph::node& node = g_[n];
    std::uint64_t h = hash_bytes(node.outputs.size(), node.op.data(), node.op.size());
    for (value_id v : node.inputs) h = hash_mix(h, now(v).index);
    for (const attribute& a : node.attributes) {
      h = hash_mix(h, static_cast<std::uint64_t>(a.integer));
      if (!a.integers.empty())
        h = hash_bytes(h, a.integers.data(), a.integers.size() * sizeof(a.integers[0]));
      h = hash_bytes(h, a.string.data(), a.string.size());
      if (a.tensor.type != dtype::undefined) h = hash_constant(h, a.tensor.view());
    }
    return h;
  }
  bool same_node(node_id a, node_id b) const {
    const graph::node &x = g_[a], &y = g_[b];
    if (rows_[a.index].row != rows_[b.index].row ||
        rows_[a.index].version != rows_[b.index].version || x.inputs.size() != y.inputs.size() ||
        x.outputs.size() != y.outputs.size() || x.attributes.size() != y.attributes.size())
      return false;
    for (std::size_t i = 0; i < x.inputs.size(); ++i)
      if (now(x.inputs[i]) != now(y.inputs[i])) return false;
    for (std::size_t i = 0; i < x.outputs.size(); ++i)
      if ((x.outputs[i] == absent) != (y.outputs[i] == absent)) return false;
    for (const attribute& k : x.attributes) {
      const attribute* other = find(b, k.name);
      if (other == nullptr || !same_attribute(k, *other)) return false;
    }
    return true;
  }
  void merge_common() {
    std::vector<std::vector<std::uint32_t>> table(64);
    while (table.size() < 2 * view_.value_count()) table.resize(2 * table.size());
    const auto bucket = [&](std::uint64_t h) -> std::vector<std::uint32_t>& {
      return table[h & (table.size() - 1)];
    };
    for (std::uint32_t v = 1; v < view_.value_count(); ++v) {
      if (!view_.is_constant(value_id{v}) || view_.is_graph_output(value_id{v})) continue;
      const constant_view c = view_.declared(value_id{v}).constant;
      auto& others = bucket(hash_constant(1, c));
      bool found = false;
      for (std::uint32_t other : others)
        if (same_constant(c, view_.declared(value_id{other}).constant)) {
          replaced_[v] = value_id{other};
          found = true;
          break;
        }
      if (!found) others.push_back(v);
    }
    for (auto& b : table) b.clear();
    merge_scope(graph_view::root(), bucket);
  }
  template <class Bucket>
  void merge_scope(scope_id s, const Bucket& bucket) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> added;
    for (node_id n : view_.order(s)) {
      if (gone_[n.index] != 0) continue;
      for (scope_id inner : view_.scopes(n)) merge_scope(inner, bucket);
      if (!view_.scopes(n).empty() || !rows_[n.index] || !rows_[n.index].row->info->deterministic)
        continue;
      const std::uint64_t h = hash_node(n);
      auto& others = bucket(h);
      std::uint32_t twin = no_index;
      for (std::uint32_t other : others)
        if (same_node(node_id{other}, n)) {
          twin = other;
          break;
        }
      if (twin == no_index) {
        others.push_back(n.index);
        added.push_back({h, n.index});
        continue;
      }
      // The caller asked for a tensor of this name.
      bool handed_out = false;
      for (value_id v : g_[n].outputs)
        handed_out = handed_out || (v != absent && view_.is_graph_output(v));
      if (handed_out) continue;
      for (std::size_t i = 0; i < g_[n].outputs.size(); ++i)
        if (g_[n].outputs[i] != absent)
          replaced_[g_[n].outputs[i].index] = g_[node_id{twin}].outputs[i];
      remove(n, node_id{twin}, graph_edit::rule::common);
    }
    // What an arm or body computes is not there outside of it.
    for (const auto& [h, n] : added) {
      auto& others = bucket(h);
      for (std::size_t i = 0; i < others.size(); ++i)
        if (others[i] == n) {
          others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
          break;
        }
    }
  }

  const graph_view& view_;
  graph g_;
  std::vector<registry::match> rows_;
  std::vector<std::uint8_t> gone_;
  std::vector<value_id> replaced_;
  std::vector<std::uint32_t> reads_;
  std::vector<graph_edit> edits_;
  std::uint32_t source_ = no_index;
};

}  // namespace detail

/// Rewrites a graph that can_rewrite. The result borrows constants from the view's graph.
inline rewritten_graph rewrite(const graph_view& view, const registry& ops,
                               const rewrite_options& options = {}) {
  return detail::rewriter(view, ops).run(options);
}

}  // namespace sod2
