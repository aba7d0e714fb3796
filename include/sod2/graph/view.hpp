// graph_view: the dense, read-only form on which all heavy algorithms work, built once per graph.
//
// Sub-graphs are flattened into the same numbering: every node and value belongs to a scope,
// captured outer values are simply used by id. Nodes of a scope are listed in topological order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/ids.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/graph/traits.hpp>

namespace sod2 {

inline constexpr std::uint32_t no_index = 0xffffffff;

namespace detail {
template <class G>
class view_builder;

// Open-addressing map from a user's handle to a dense index.
class handle_map {
 public:
  std::uint32_t find(std::uint64_t key) const {
    if (slots_.empty()) return no_index;
    for (std::size_t i = hash_mix(0, key) & (slots_.size() - 1);;
         i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].index == no_index) return no_index;
      if (slots_[i].key == key) return slots_[i].index;
    }
  }
  void insert(std::uint64_t key, std::uint32_t index) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    place(key, index);
    ++count_;
  }

 private:
  struct slot {
    std::uint64_t key = 0;
    std::uint32_t index = no_index;
  };
  void place(std::uint64_t key, std::uint32_t index) {
    std::size_t i = hash_mix(0, key) & (slots_.size() - 1);
    while (slots_[i].index != no_index) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {key, index};
  }
  void grow() {
    vector<slot> old = std::move(slots_);
    slots_ = vector<slot>(old.empty() ? 64 : old.size() * 2);
    for (const slot& s : old)
      if (s.index != no_index) place(s.key, s.index);
  }
  vector<slot> slots_;
  std::size_t count_ = 0;
};
}  // namespace detail

class graph_view {
 public:
  std::size_t node_count() const { return nodes_.size(); }
  /// Including id 0, "absent".
  std::size_t value_count() const { return values_.size(); }
  std::size_t scope_count() const { return scopes_.size(); }
  static constexpr scope_id root() { return scope_id{0U}; }

  // ---- nodes ----
  std::string_view operator_name(node_id n) const { return text(nodes_[n.index].op); }
  std::string_view operator_domain(node_id n) const { return text(nodes_[n.index].domain); }
  int opset(node_id n) const { return nodes_[n.index].opset; }
  /// The user's name, scoped for nodes of sub-graphs.
  std::string_view name(node_id n) const { return text(nodes_[n.index].name); }
  std::span<const value_id> inputs(node_id n) const {
    return {operands_.data() + nodes_[n.index].input_first, nodes_[n.index].input_count};
  }
  std::span<const value_id> outputs(node_id n) const {
    return {operands_.data() + nodes_[n.index].output_first, nodes_[n.index].output_count};
  }
  const attribute_source& attributes(node_id n) const { return nodes_[n.index].attributes; }
  scope_id scope(node_id n) const { return nodes_[n.index].scope; }
  /// Scopes of a control-flow node, in the order of its attributes.
  std::span<const scope_id> scopes(node_id n) const {
    return {node_scopes_.data() + nodes_[n.index].scope_first, nodes_[n.index].scope_count};
  }
  /// The user's handle, as an integer.
  std::uint64_t user_key(node_id n) const { return nodes_[n.index].user; }

  // ---- values ----
  /// Scoped name: `node/branch/value` inside sub-graphs.
  std::string_view name(value_id v) const { return text(values_[v.index].name); }
  /// The name inside its own graph.
  std::string_view local_name(value_id v) const { return text(values_[v.index].local); }
  /// Index of the producing node, or no_index for inputs and constants.
  std::uint32_t producer(value_id v) const { return values_[v.index].producer; }
  std::span<const node_id> consumers(value_id v) const {
    const std::uint32_t first = consumer_first_[v.index];
    return {consumers_.data() + first, consumer_first_[v.index + 1] - first};
  }
  scope_id scope(value_id v) const { return values_[v.index].scope; }
  const declared_value& declared(value_id v) const { return values_[v.index].declared; }
  bool is_constant(value_id v) const { return values_[v.index].declared.constant.present(); }
  std::uint64_t user_key(value_id v) const { return values_[v.index].user; }
  /// The value with this key, or `absent`.
  value_id find_value(std::uint64_t key) const {
    const std::uint32_t id = value_ids_.find(key);
    return id == no_index ? absent : value_id{id};
  }
  /// Is v an output of the root scope?
  bool is_graph_output(value_id v) const { return values_[v.index].is_output; }

  // ---- scopes ----
  std::span<const value_id> inputs(scope_id s = root()) const {
    return scopes_[s.index].inputs.view();
  }
  std::span<const value_id> outputs(scope_id s = root()) const {
    return scopes_[s.index].outputs.view();
  }
  /// Nodes of the scope itself, in topological order.
  std::span<const node_id> order(scope_id s = root()) const {
    return scopes_[s.index].order.view();
  }
  /// The control-flow node that owns the scope, or no_index for the root.
  std::uint32_t owner(scope_id s) const { return scopes_[s.index].owner; }
  std::string_view name(scope_id s) const { return text(scopes_[s.index].name); }
  /// The name within its node: "then_branch", "body".
  std::string_view own_name(scope_id s) const {
    return name(s).substr(name(s).rfind('/') + 1);  // npos + 1 is 0
  }

 private:
  template <class G>
  friend class detail::view_builder;

  struct text_ref {
    std::uint32_t first = 0, count = 0;
  };
  struct node_entry {
    text_ref op, domain, name;
    int opset = newest_opset;
    std::uint32_t input_first = 0, input_count = 0, output_first = 0, output_count = 0;
    std::uint32_t scope_first = 0, scope_count = 0;
    scope_id scope;
    attribute_source attributes;
    std::uint64_t user = 0;
  };
  struct value_entry {
    text_ref name, local;
    std::uint32_t producer = no_index;
    scope_id scope;
    bool is_input = false, is_output = false;
    declared_value declared;
    std::uint64_t user = 0;
  };
  struct scope_entry {
    text_ref name;
    std::uint32_t owner = no_index;
    vector<value_id> inputs, outputs;
    vector<node_id> order;
  };

  std::string_view text(text_ref r) const { return {text_.data() + r.first, r.count}; }

  vector<char> text_;
  vector<node_entry> nodes_;
  vector<value_entry> values_;
  vector<scope_entry> scopes_;
  vector<value_id> operands_;
  vector<scope_id> node_scopes_;
  vector<std::uint32_t> consumer_first_;
  vector<node_id> consumers_;
  detail::handle_map value_ids_;
};

namespace detail {

template <class Handle>
std::uint64_t key_of(Handle h) {
  if constexpr (requires { h.index; })
    return h.index;
  else if constexpr (requires { *h; })
    return reinterpret_cast<std::uintptr_t>(h);
  else
    return static_cast<std::uint64_t>(h);
}
template <class Handle>
Handle handle_of(std::uint64_t key) {
  if constexpr (requires(Handle h) { h.index; })
    return Handle{static_cast<std::size_t>(key)};
  else if constexpr (requires(Handle h) { *h; })
    return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(key));
  else
    return static_cast<Handle>(key);
}

template <class G>
class view_builder {
  using traits = graph_traits<G>;
  using node_handle = typename traits::node_handle;
  using value_handle = typename traits::value_handle;

 public:
  explicit view_builder(const G& graph) : graph_(graph) {}

  result<graph_view> build() {
    view_.values_.push_back({});  // absent
    view_.scopes_.push_back({});
    for (auto v : traits::graph_inputs(graph_)) SOD2_TRY(define_input(v, graph_view::root()));
    SOD2_TRY(add_nodes(traits::nodes(graph_), graph_view::root(), {}));
    for (auto v : traits::graph_outputs(graph_))
      outputs_.push_back({key_of(v), graph_view::root()});
    SOD2_TRY(connect());
    SOD2_TRY(sort());
    index_consumers();
    return std::move(view_);
  }

 private:
  using text_ref = graph_view::text_ref;
  struct pending_output {
    std::uint64_t key = 0;
    scope_id scope;
  };

  text_ref store(std::string_view text) {
    const text_ref r{static_cast<std::uint32_t>(view_.text_.size()),
                     static_cast<std::uint32_t>(text.size())};
    view_.text_.append(text.data(), text.data() + text.size());
    return r;
  }
  bool absent(value_handle v) const {
    if constexpr (requires { traits::absent(graph_, v); })
      return traits::absent(graph_, v);
    else if constexpr (requires { v == nullptr; })
      return v == nullptr;
    else
      return false;
  }
  std::string name_of(value_handle v, std::string_view fallback) const {
    if constexpr (requires { traits::value_name(graph_, v); }) {
      const std::string_view given = traits::value_name(graph_, v);
      if (!given.empty()) return std::string(given);
    }
    return std::string(fallback);
  }
  declared_value facts_of(value_handle v) const {
    if constexpr (requires { traits::facts(graph_, v); })
      return traits::facts(graph_, v);
    else
      return {};
  }
  std::uint32_t add_value(value_handle v, scope_id scope, std::string_view fallback) {
    const std::uint32_t id = static_cast<std::uint32_t>(view_.values_.size());
    graph_view::value_entry entry;
    const std::string local = name_of(v, fallback);
    entry.local = store(local);
    if (scope.index == 0) {
      entry.name = entry.local;
    } else {
      const std::string prefix(view_.text(view_.scopes_[scope.index].name));
      entry.name = store(prefix + "/" + local);
    }
    entry.scope = scope;
    entry.user = key_of(v);
    entry.declared = facts_of(v);
    view_.values_.push_back(std::move(entry));
    view_.value_ids_.insert(key_of(v), id);
    return id;
  }
  status define_input(value_handle v, scope_id scope) {
    if (view_.value_ids_.find(key_of(v)) != no_index)
      return error(errc::duplicate_value).at_tensor(name_of(v, "input"));
    const std::string fallback = "input" + std::to_string(view_.scopes_[scope.index].inputs.size());
    const std::uint32_t id = add_value(v, scope, fallback);
    view_.values_[id].is_input = true;
    view_.scopes_[scope.index].inputs.push_back(value_id{id});
    return {};
  }

  template <class Nodes>
  status add_nodes(Nodes&& nodes, scope_id scope, std::string_view prefix) {
    for (node_handle n : nodes) {
      const std::uint32_t id = static_cast<std::uint32_t>(view_.nodes_.size());
      view_.nodes_.push_back({});
      handles_.push_back(n);
      graph_view::node_entry entry;
      const std::string op(traits::operator_name(graph_, n));
      entry.op = store(op);
      if constexpr (requires { traits::operator_domain(graph_, n); })
        entry.domain = store(traits::operator_domain(graph_, n));
      if constexpr (requires { traits::opset(graph_, n); }) entry.opset = traits::opset(graph_, n);
      std::string name;
      if constexpr (requires { traits::node_name(graph_, n); }) name = traits::node_name(graph_, n);
      if (name.empty()) name = op + "_" + std::to_string(id);
      const std::string local = name;
      if (!prefix.empty()) name = std::string(prefix) + "/" + name;
      entry.name = store(name);
      entry.scope = scope;
      entry.user = key_of(n);
      if constexpr (requires { traits::attribute(graph_, n, std::string_view{}); })
        entry.attributes = {&graph_, key_of(n),
                            [](const void* g, std::uint64_t key, std::string_view attribute) {
                              return traits::attribute(*static_cast<const G*>(g),
                                                       handle_of<node_handle>(key), attribute);
                            }};
      if constexpr (requires { traits::attribute_name(graph_, n, std::size_t{}); })
        entry.attributes.name_at = [](const void* g, std::uint64_t key, std::size_t i) {
          return std::string_view(
              traits::attribute_name(*static_cast<const G*>(g), handle_of<node_handle>(key), i));
        };
      entry.output_first = static_cast<std::uint32_t>(view_.operands_.size());
      std::size_t k = 0;
      for (auto v : traits::outputs(graph_, n)) {
        std::uint32_t out = 0;
        if (!absent(v)) {
          if (view_.value_ids_.find(key_of(v)) != no_index)
            return error(errc::duplicate_value).at_node(name).at_tensor(name_of(v, "output"));
          out = add_value(v, scope, local + ":" + std::to_string(k));
          view_.values_[out].producer = id;
        }
        view_.operands_.push_back(value_id{out});
        ++k;
      }
      entry.output_count = static_cast<std::uint32_t>(k);
      view_.nodes_[id] = entry;
      if constexpr (graph_with_scopes<G>) SOD2_TRY(add_scopes(n, id, name));
      scope_nodes_.resize(view_.scopes_.size());
      scope_nodes_[scope.index].push_back(node_id{id});
    }
    scope_nodes_.resize(view_.scopes_.size());
    return {};
  }
  status add_scopes(node_handle n, std::uint32_t id, std::string_view node_name) {
    vector<scope_id> children;
    for (auto s : traits::scopes(graph_, n)) {
      const scope_id child{view_.scopes_.size()};
      children.push_back(child);
      view_.scopes_.push_back({});
      view_.scopes_[child.index].owner = id;
      const std::string name =
          std::string(node_name) + "/" + std::string(traits::scope_name(graph_, s));
      view_.scopes_[child.index].name = store(name);
      for (auto v : traits::graph_inputs(graph_, s)) SOD2_TRY(define_input(v, child));
      SOD2_TRY(add_nodes(traits::nodes(graph_, s), child, name));
      for (auto v : traits::graph_outputs(graph_, s)) outputs_.push_back({key_of(v), child});
    }
    view_.nodes_[id].scope_first = static_cast<std::uint32_t>(view_.node_scopes_.size());
    view_.nodes_[id].scope_count = static_cast<std::uint32_t>(children.size());
    for (scope_id c : children) view_.node_scopes_.push_back(c);
    return {};
  }

  // A value used before any definition must be a constant.
  result<value_id> use(value_handle v, std::string_view node, scope_id scope) {
    if (absent(v)) return sod2::absent;
    if (const std::uint32_t id = view_.value_ids_.find(key_of(v)); id != no_index) {
      if (!visible(id, scope))
        return error(errc::undefined_value).at_node(node).at_tensor(name_of(v, "value"));
      return value_id{id};
    }
    if (facts_of(v).constant.present()) return value_id{add_value(v, scope, "constant")};
    return error(errc::undefined_value).at_node(node).at_tensor(name_of(v, "value"));
  }
  // A scope sees its own values and those of the scopes around it; constants are seen everywhere.
  bool visible(std::uint32_t value, scope_id from) const {
    const graph_view::value_entry& v = view_.values_[value];
    if (v.producer == no_index && !v.is_input) return true;
    while (from != v.scope) {
      const std::uint32_t owner = view_.scopes_[from.index].owner;
      if (owner == no_index) return false;
      from = view_.nodes_[owner].scope;
    }
    return true;
  }
  status connect() {
    for (std::uint32_t id = 0; id < view_.nodes_.size(); ++id) {
      const std::string name(view_.text(view_.nodes_[id].name));
      const std::uint32_t first = static_cast<std::uint32_t>(view_.operands_.size());
      std::uint32_t count = 0;
      for (auto v : traits::inputs(graph_, handles_[id])) {
        SOD2_ASSIGN(const value_id used, use(v, name, view_.nodes_[id].scope));
        view_.operands_.push_back(used);
        ++count;
      }
      view_.nodes_[id].input_first = first;
      view_.nodes_[id].input_count = count;
    }
    for (const pending_output& o : outputs_) {
      SOD2_ASSIGN(const value_id used, use(handle_of<value_handle>(o.key), {}, o.scope));
      view_.scopes_[o.scope.index].outputs.push_back(used);
      if (o.scope.index == 0) view_.values_[used.index].is_output = true;
    }
    return {};
  }
  // The node of scope `s` through which a use inside `inner` happens: itself, or the control-flow
  // node whose sub-graph captures the value; no_index when the use is outside `s`.
  std::uint32_t ancestor_in(std::uint32_t node, scope_id s) const {
    while (node != no_index && view_.nodes_[node].scope != s)
      node = view_.scopes_[view_.nodes_[node].scope.index].owner;
    return node;
  }
  // Kahn's algorithm per scope, smallest original index first, so that a valid order is kept.
  status sort() {
    const std::size_t n = view_.nodes_.size();
    vector<std::uint32_t> waiting(n, 0U), edge_first(n + 1, 0U), edges;
    vector<std::uint32_t> from, to;
    const auto depend = [&](value_id v, std::uint32_t user) {
      const std::uint32_t producer = view_.values_[v.index].producer;
      if (v == sod2::absent || producer == no_index) return;
      const std::uint32_t at = ancestor_in(user, view_.nodes_[producer].scope);
      if (at == producer) {  // it reads its own output, itself or in a sub-graph
        self_ = producer;
        return;
      }
      from.push_back(producer);
      to.push_back(at);
    };
    for (std::uint32_t id = 0; id < n; ++id)
      for (value_id v : view_.inputs(node_id{id})) depend(v, id);
    for (std::size_t s = 1; s < view_.scopes_.size(); ++s)
      for (value_id v : view_.scopes_[s].outputs)
        if (v != sod2::absent && view_.values_[v.index].scope.index != s)
          depend(v, view_.scopes_[s].owner);
    if (self_ != no_index) return error(errc::cycle).at_node(view_.name(node_id{self_}));
    for (std::size_t e = 0; e < from.size(); ++e) {
      ++edge_first[from[e] + 1];
      ++waiting[to[e]];
    }
    for (std::size_t i = 0; i < n; ++i) edge_first[i + 1] += edge_first[i];
    edges.resize(from.size());
    vector<std::uint32_t> cursor = edge_first;
    for (std::size_t e = 0; e < from.size(); ++e) edges[cursor[from[e]]++] = to[e];
    for (std::size_t s = 0; s < view_.scopes_.size(); ++s) {
      vector<std::uint32_t> heap;
      for (node_id id : scope_nodes_[s])
        if (waiting[id.index] == 0) push(heap, id.index);
      vector<node_id>& order = view_.scopes_[s].order;
      while (!heap.empty()) {
        const std::uint32_t id = pop(heap);
        order.push_back(node_id{id});
        for (std::uint32_t e = edge_first[id]; e < edge_first[id + 1]; ++e)
          if (--waiting[edges[e]] == 0) push(heap, edges[e]);
      }
      if (order.size() != scope_nodes_[s].size())
        for (node_id id : scope_nodes_[s])
          if (waiting[id.index] != 0) return error(errc::cycle).at_node(view_.name(id));
    }
    return {};
  }
  static void push(vector<std::uint32_t>& heap, std::uint32_t v) {
    heap.push_back(v);
    for (std::size_t i = heap.size() - 1; i > 0 && heap[(i - 1) / 2] > heap[i]; i = (i - 1) / 2)
      std::swap(heap[i], heap[(i - 1) / 2]);
  }
  static std::uint32_t pop(vector<std::uint32_t>& heap) {
    const std::uint32_t top = heap[0];
    heap[0] = heap.back();
    heap.pop_back();
    for (std::size_t i = 0;;) {
      std::size_t child = 2 * i + 1;
      if (child >= heap.size()) break;
      if (child + 1 < heap.size() && heap[child + 1] < heap[child]) ++child;
      if (heap[i] <= heap[child]) break;
      std::swap(heap[i], heap[child]);
      i = child;
    }
    return top;
  }
  void index_consumers() {
    const std::size_t n = view_.values_.size();
    view_.consumer_first_.assign(n + 1, 0U);
    for (std::uint32_t id = 0; id < view_.nodes_.size(); ++id)
      for (value_id v : view_.inputs(node_id{id}))
        if (v != sod2::absent) ++view_.consumer_first_[v.index + 1];
    for (std::size_t i = 0; i < n; ++i) view_.consumer_first_[i + 1] += view_.consumer_first_[i];
    view_.consumers_.resize(view_.consumer_first_[n]);
    vector<std::uint32_t> cursor = view_.consumer_first_;
    for (std::uint32_t id = 0; id < view_.nodes_.size(); ++id)
      for (value_id v : view_.inputs(node_id{id}))
        if (v != sod2::absent) view_.consumers_[cursor[v.index]++] = node_id{id};
  }

  const G& graph_;
  graph_view view_;
  vector<node_handle> handles_;
  vector<vector<node_id>> scope_nodes_;
  vector<pending_output> outputs_;
  std::uint32_t self_ = no_index;
};

}  // namespace detail

/// The view's id of a value of the graph of type G that it was made from, `absent` if it has none.
/// Ids of a view are its own: those of the reference graph are handles like any other.
template <operator_graph G>
value_id find_value(const graph_view& view, typename graph_traits<G>::value_handle v) {
  return view.find_value(detail::key_of(v));
}
/// The handles of the graph of type G that a view was made from.
template <operator_graph G>
typename graph_traits<G>::node_handle user_handle(const graph_view& view, node_id n) {
  return detail::handle_of<typename graph_traits<G>::node_handle>(view.user_key(n));
}
template <operator_graph G>
typename graph_traits<G>::value_handle user_handle(const graph_view& view, value_id v) {
  return detail::handle_of<typename graph_traits<G>::value_handle>(view.user_key(v));
}

/// Builds the dense view of any graph with traits. The graph must outlive the view (attributes and
/// constants are read through it). Errors: undefined_value, duplicate_value, cycle, each naming the
/// node and the value.
template <operator_graph G>
result<graph_view> make_view(const G& graph) {
  return detail::view_builder<G>(graph).build();
}

}  // namespace sod2
