// Sequences and optionals at run time: lists of elements that share memory by counting.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <sod2/core/checked.hpp>
#include <sod2/core/dtype.hpp>
#include <sod2/core/status.hpp>
#include <sod2/core/tensor_view.hpp>
#include <sod2/runtime/buffer.hpp>
#include <sod2/shape/fact.hpp>

namespace sod2::detail {

/// Memory of elements: chunks that at least double, cut from the front, and lists of what was given
/// back. `reset` takes everything back at once, so a run like the one before allocates nothing.
class element_pool {
 public:
  /// Stands in front of an element's dims and data.
  struct element {
    std::uint32_t users = 1;
    std::uint32_t size_class = 0;
    element* next = nullptr;  // while it is free
  };

  explicit element_pool(allocator_ref allocator = {}) : allocator_(allocator) {}

  /// Room for a tensor of the type and dims of `like`; `made` views it. At most `limit` bytes are
  /// held. Errors: budget, out_of_memory, unsupported (strings).
  result<element*> make(const tensor_view& like, std::int64_t limit, tensor_view& made) {
    if (like.type == dtype::string) return error(errc::unsupported, "elements of strings");
    const std::size_t head = round_up(sizeof(element) + like.rank * sizeof(std::int64_t));
    std::int64_t bytes = 0;
    if (!like.checked_bytes(bytes) || !checked_add(static_cast<std::int64_t>(head), bytes, bytes) ||
        bytes > INT64_MAX / 4)
      return error(errc::overflow);
    const auto size_class =
        static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(bytes - 1)));
    void* place = nullptr;
    if (element*& first = free_[size_class]; first != nullptr) {
      place = first;
      first = first->next;
    } else {
      SOD2_ASSIGN(place, cut(std::size_t{1} << size_class, limit));
    }
    auto* e = new (place) element;
    e->size_class = size_class;
    auto* const start = static_cast<std::byte*>(place);
    auto* const dims = reinterpret_cast<std::int64_t*>(start + sizeof(element));
    if (like.rank > 0) std::memcpy(dims, like.dims, like.rank * sizeof(std::int64_t));
    made = {start + head, dims, like.rank, like.type};
    return e;
  }
  void keep(element* e) {
    if (e != nullptr) ++e->users;
  }
  void drop(element* e) {
    if (e == nullptr || --e->users > 0) return;
    e->next = free_[e->size_class];
    free_[e->size_class] = e;
  }
  void reset() {
    for (element*& e : free_) e = nullptr;
    chunk_ = used_ = 0;
  }
  void release() {
    reset();
    chunks_.clear();
    held_ = 0;
  }
  std::int64_t bytes() const { return held_; }

 private:
  static constexpr std::int64_t least_chunk = 4096;

  static std::size_t round_up(std::size_t n) {
    return (n + tensor_alignment - 1) / tensor_alignment * tensor_alignment;
  }
  result<void*> cut(std::size_t bytes, std::int64_t limit) {
    while (chunk_ < chunks_.size() && used_ + bytes > chunks_[chunk_].bytes()) {
      ++chunk_;
      used_ = 0;
    }
    if (chunk_ == chunks_.size()) {
      const auto needed = static_cast<std::int64_t>(bytes);
      std::int64_t wanted = held_ > least_chunk ? held_ : least_chunk;
      if (wanted < needed || wanted > limit - held_) wanted = needed;
      if (wanted > limit - held_) return error(errc::budget, "elements of sequences exceed it");
      memory_block made(allocator_);
      if (!made.reserve(static_cast<std::size_t>(wanted))) return error(errc::out_of_memory);
      held_ += wanted;
      chunks_.push_back(std::move(made));
      used_ = 0;
    }
    void* const place = chunks_[chunk_].data() + used_;
    used_ += bytes;
    return place;
  }

  allocator_ref allocator_;
  std::vector<memory_block> chunks_;
  std::size_t chunk_ = 0, used_ = 0;  // where the next element is cut
  element* free_[64] = {};            // by bits of the size
  std::int64_t held_ = 0;
};

/// One sequence or optional. Elements without an owner are in the caller's memory.
class container {
 public:
  std::size_t size() const { return items_.size(); }
  const tensor_view& item(std::size_t i) const { return items_[i]; }
  /// False for an optional without a value.
  bool has_value() const { return has_value_; }

  void clear(element_pool& pool) {
    for (element_pool::element* e : owners_) pool.drop(e);
    forget();
  }
  /// Empties it when the pool has been reset: there is nothing to give back.
  void forget() {
    items_.clear();
    owners_.clear();
    has_value_ = false;
  }
  void start(element_pool& pool, bool has_value) {
    clear(pool);
    has_value_ = has_value;
  }
  void share(element_pool& pool, const container& other) {
    if (this == &other) return;
    for (element_pool::element* e : other.owners_) pool.keep(e);
    clear(pool);
    reserve(other.size());
    items_.assign(other.items_.begin(), other.items_.end());
    owners_.assign(other.owners_.begin(), other.owners_.end());
    has_value_ = other.has_value_;
  }
  /// Takes the caller's value, without copying elements.
  void borrow(element_pool& pool, fact_kind kind, const tensor_view& v) {
    const bool given = kind == fact_kind::sequence || v.count() > 0;
    start(pool, given);
    if (!given) return;
    const tensor_view& list = kind == fact_kind::optional_sequence ? v.item(0) : v;
    for (std::int64_t i = 0; i < list.count(); ++i) insert(size(), list.item(i), nullptr);
  }
  /// Takes the caller's hold on `owner`.
  void insert(std::size_t at, const tensor_view& v, element_pool::element* owner) {
    items_.insert(items_.begin() + static_cast<std::ptrdiff_t>(at), v);
    owners_.insert(owners_.begin() + static_cast<std::ptrdiff_t>(at), owner);
  }
  void erase(element_pool& pool, std::size_t at) {
    pool.drop(owners_[at]);
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(at));
    owners_.erase(owners_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  /// Copies the elements that are the caller's, so that the value outlives the run.
  status own(element_pool& pool, std::int64_t limit) {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (owners_[i] != nullptr) continue;
      tensor_view mine;
      SOD2_ASSIGN(owners_[i], pool.make(items_[i], limit, mine));
      if (const auto bytes = bytes_of(mine.type, mine.count()); bytes > 0)
        std::memcpy(mine.data, items_[i].data, static_cast<std::size_t>(bytes));
      items_[i] = mine;
    }
    return {};
  }
  /// The value as callers see it, until this changes.
  tensor_view view(fact_kind kind) {
    length_ = static_cast<std::int64_t>(items_.size());
    given_ = has_value_ ? 1 : 0;
    if (kind == fact_kind::optional) return {items_.data(), &given_, 1, dtype::optional};
    list_ = {items_.data(), &length_, 1, dtype::sequence};
    if (kind == fact_kind::optional_sequence) return {&list_, &given_, 1, dtype::optional};
    return list_;
  }
  /// Takes over the value of `other`, which nobody reads any more.
  void take(element_pool& pool, container& other) {
    clear(pool);
    swap(other);
  }
  void swap(container& other) noexcept {
    items_.swap(other.items_);
    owners_.swap(other.owners_);
    std::swap(has_value_, other.has_value_);
  }

 private:
  /// Growing lists are shared one element longer each time.
  void reserve(std::size_t n) {
    if (n <= items_.capacity()) return;
    items_.reserve(2 * n);
    owners_.reserve(2 * n);
  }

  std::vector<tensor_view> items_;
  std::vector<element_pool::element*> owners_;
  bool has_value_ = false;
  std::int64_t length_ = 0, given_ = 0;
  tensor_view list_;
};

}  // namespace sod2::detail
