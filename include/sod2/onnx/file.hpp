// The bytes of a file, mapped or read.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#if __has_include(<sys/mman.h>)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define SOD2_HAS_MMAP 1
#else
#define SOD2_HAS_MMAP 0
#endif

#include <sod2/core/status.hpp>
#include <sod2/onnx/fwd.hpp>

namespace sod2::onnx {

/// Read-only bytes of one file. Addresses stay the same when the object moves.
class file_bytes {
 public:
  file_bytes() = default;
  file_bytes(file_bytes&& other) noexcept
      : mapped_(std::exchange(other.mapped_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        read_(std::move(other.read_)) {}
  file_bytes& operator=(file_bytes&& other) noexcept {
    if (this != &other) {
      release();
      mapped_ = std::exchange(other.mapped_, nullptr);
      size_ = std::exchange(other.size_, 0);
      read_ = std::move(other.read_);
    }
    return *this;
  }
  ~file_bytes() { release(); }

  /// `map`: map the file (someone who truncates it later makes access a fault), else read it.
  /// Errors: errc::io, also for what is no regular file.
  static result<file_bytes> open(const std::filesystem::path& path, bool map) {
    std::error_code code;
    const auto kind = std::filesystem::status(path, code);
    if (!std::filesystem::exists(kind)) return error(errc::io, "no such file");
    if (!std::filesystem::is_regular_file(kind)) return error(errc::io, "not a regular file");
    file_bytes f;
#if SOD2_HAS_MMAP
    if (map) {
      const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (descriptor < 0) return error(errc::io, std::strerror(errno));
      struct ::stat info {};
      const bool known = ::fstat(descriptor, &info) == 0;
      if (known && info.st_size > 0) {
        const auto bytes = static_cast<std::size_t>(info.st_size);
        void* address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (address != MAP_FAILED) {
          f.mapped_ = address;
          f.size_ = bytes;
        }
      }
      ::close(descriptor);
      if (f.mapped_ != nullptr || (known && info.st_size == 0)) return f;
    }
#else
    static_cast<void>(map);
#endif
    std::FILE* file = std::fopen(path.string().c_str(), "rb");
    if (file == nullptr) return error(errc::io, std::strerror(errno));
    const auto expected = std::filesystem::file_size(path, code);
    if (!code) f.read_.resize(static_cast<std::size_t>(expected));
    std::size_t used = 0;
    while (used < f.read_.size()) {
      const std::size_t got = std::fread(f.read_.data() + used, 1, f.read_.size() - used, file);
      if (got == 0) break;
      used += got;
    }
    const bool failed = std::ferror(file) != 0;
    std::fclose(file);
    if (failed || code) return error(errc::io, "cannot be read");
    f.read_.resize(used);
    return f;
  }

  std::string_view view() const {
    if (mapped_ != nullptr) return {static_cast<const char*>(mapped_), size_};
    return {read_.data(), read_.size()};
  }

 private:
  void release() {
#if SOD2_HAS_MMAP
    if (mapped_ != nullptr) ::munmap(mapped_, size_);
#endif
    mapped_ = nullptr;
  }
  void* mapped_ = nullptr;
  std::size_t size_ = 0;
  std::vector<char> read_;
};

}  // namespace sod2::onnx
