// Sets of operators as types, and the run-time registry built from them. A registry is a value: no
// static registration anywhere.
#pragma once

#include <span>
#include <string_view>

#include <sod2/core/algorithm.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/op/definition.hpp>

namespace sod2 {

/// A list of operators.
template <class... Ops>
struct op_set {};

namespace detail {
template <class... Sets>
struct join_sets {
  using type = op_set<>;
};
template <class... A>
struct join_sets<op_set<A...>> {
  using type = op_set<A...>;
};
template <class... A, class... B, class... Rest>
struct join_sets<op_set<A...>, op_set<B...>, Rest...> {
  using type = typename join_sets<op_set<A..., B...>, Rest...>::type;
};
template <class Old, class New, class Op>
struct replace_one {
  using type = Op;
};
template <class Old, class New>
struct replace_one<Old, New, Old> {
  using type = New;
};
}  // namespace detail

/// One set out of several.
template <class... Sets>
using join = typename detail::join_sets<Sets...>::type;

/// The set with operator Old exchanged for New.
template <class Set, class Old, class New>
struct replace_in;
template <class... Ops, class Old, class New>
struct replace_in<op_set<Ops...>, Old, New> {
  using type = op_set<typename detail::replace_one<Old, New, Ops>::type...>;
};
template <class Set, class Old, class New>
using replace = typename replace_in<Set, Old, New>::type;

class registry {
 public:
  struct match {
    const op_row* row = nullptr;
    int version = 0;  // the since-version that applies
    explicit operator bool() const { return row != nullptr; }
  };

  registry() = default;
  template <class... Ops>
  explicit registry(op_set<Ops...> set) {
    add(set);
  }
  template <class... Ops>
  registry& add(op_set<Ops...>) {
    (rows_.push_back(row_of<Ops>()), ...);
    sort();
    return *this;
  }
  registry& add(const op_row& row) {
    rows_.push_back(row);
    sort();
    return *this;
  }

  std::span<const op_row> rows() const { return rows_.view(); }

  /// The operator by name and the version that a model of `opset` means; empty when the name is not
  /// registered or is newer than the opset. Later additions win over earlier ones.
  match find(std::string_view domain, std::string_view name, int opset) const {
    std::size_t low = 0, high = rows_.size();
    while (low < high) {
      const std::size_t mid = (low + high) / 2;
      if (before(*rows_[mid].info, domain, name))
        low = mid + 1;
      else
        high = mid;
    }
    match best;
    for (; low < rows_.size() && rows_[low].info->name == name && rows_[low].info->domain == domain; ++low)
      for (int v : rows_[low].info->versions)
        if (v <= opset && v >= best.version) best = {&rows_[low], v};
    return best;
  }
  bool knows(std::string_view domain, std::string_view name) const {
    for (const op_row& r : rows_)
      if (r.info->name == name && r.info->domain == domain) return true;
    return false;
  }

 private:
  static bool before(const op_info& info, std::string_view domain, std::string_view name) {
    return info.domain != domain ? info.domain < domain : info.name < name;
  }
  void sort() {
    stable_sort(rows_.begin(), rows_.end(), [](const op_row& a, const op_row& b) {
      return before(*a.info, b.info->domain, b.info->name);
    });
  }
  vector<op_row> rows_;
};

}  // namespace sod2
