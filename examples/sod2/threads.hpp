// A fixed pool of threads for `--threads`.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <sod2/kernel/pool.hpp>

namespace tool {

/// `threads - 1` workers and the caller share the ranges of each call. One caller at a time.
class thread_pool {
 public:
  explicit thread_pool(int threads) : threads_(threads) {
    for (int k = 1; k < threads; ++k) workers_.emplace_back([this] { work(); });
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  ~thread_pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : workers_) t.join();
  }

  sod2::thread_pool_ref ref() {
    if (workers_.empty()) return {};
    return {this, threads_, [](void* self, std::int64_t count, body_type body, void* arg) {
              static_cast<thread_pool*>(self)->run(count, body, arg);
            }};
  }

 private:
  using body_type = void (*)(void* arg, std::int64_t begin, std::int64_t end);

  void run(std::int64_t count, body_type body, void* arg) {
    {
      const std::lock_guard lock(mutex_);
      body_ = body;
      arg_ = arg;
      count_ = count;
      next_ = 0;
      busy_ = static_cast<int>(workers_.size());
      ++round_;
    }
    wake_.notify_all();
    take();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }
  void take() {
    for (std::int64_t k = next_++; k < count_; k = next_++) body_(arg_, k, k + 1);
  }
  void work() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
      lock.unlock();
      take();
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  int threads_;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  body_type body_ = nullptr;
  void* arg_ = nullptr;
  std::int64_t count_ = 0;
  std::atomic<std::int64_t> next_{0};
  int busy_ = 0;
  std::uint64_t round_ = 0;
  bool stop_ = false;
};

}  // namespace tool
