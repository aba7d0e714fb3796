// Characters of the strings that runs make: they live as long as the results of the next run.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <sod2/runtime/buffer.hpp>

namespace sod2::detail {

class text_heap {
 public:
  explicit text_heap(allocator_ref allocator) : allocator_(allocator) {}

  /// What the run before the last made is gone.
  void start_run() {
    std::swap(now_, before_);
    now_.used = 0;
    if (now_.blocks.size() < 2) return;
    // One block that holds as much as all of them: steady runs then need no second one.
    std::size_t all = 0;
    for (const memory_block& b : now_.blocks) all += b.bytes();
    now_.blocks.resize(1);
    if (!now_.blocks[0].reserve(all)) now_.blocks.clear();
  }
  char* get(std::size_t bytes) {
    if (now_.blocks.empty() || now_.used + bytes > now_.blocks.back().bytes()) {
      const std::size_t last = now_.blocks.empty() ? 0 : now_.blocks.back().bytes();
      memory_block block(allocator_);
      if (!block.reserve(bytes > 2 * last ? bytes + least_bytes : 2 * last)) return nullptr;
      now_.blocks.push_back(std::move(block));
      now_.used = 0;
    }
    char* const at = reinterpret_cast<char*>(now_.blocks.back().data()) + now_.used;
    now_.used += bytes;
    return at;
  }

 private:
  static constexpr std::size_t least_bytes = 4096;
  struct generation {
    std::vector<memory_block> blocks;
    std::size_t used = 0;  // of the last block
  };
  allocator_ref allocator_;
  generation now_, before_;
};

}  // namespace sod2::detail
