// Errors as values: `error`, `result<T>`, `status`. Nothing here throws; an error is one pointer
// plus a code, so that a `result<int>` stays small and success costs nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <sod2/core/config.hpp>
#include <sod2/core/diagnostic.hpp>

namespace sod2 {

/// What an error is about. Empty strings mean "not applicable".
struct error_detail {
  std::string message;  // one sentence, without a trailing period or a line break
  std::string file;     // model file
  std::string node;     // operator instance, as the user's graph names it
  std::string tensor;   // value, scoped name for sub-graph values
  int axis = -1;        // dimension within `tensor`, -1 when the whole tensor is meant
  std::string left;     // the two facts that disagree (values or expressions)
  std::string right;
};

/// An error value. Copies are explicit (`clone`), since they allocate.
class error {
 public:
  error() noexcept = default;
  /// Without text: always succeeds, also when memory ran out.
  explicit error(errc code) noexcept : code_(code) {}
  error(errc code, std::string message) : code_(code), detail_(new error_detail) {
    detail_->message = std::move(message);
  }
  error(errc code, error_detail detail) : code_(code), detail_(new error_detail(std::move(detail))) {}
  error(error&& other) noexcept
      : code_(other.code_), detail_(std::exchange(other.detail_, nullptr)) {}
  error& operator=(error&& other) noexcept {
    if (this != &other) {
      delete detail_;
      code_ = other.code_;
      detail_ = std::exchange(other.detail_, nullptr);
    }
    return *this;
  }
  error(const error&) = delete;
  error& operator=(const error&) = delete;
  ~error() { delete detail_; }

  error clone() const {
    error copy(code_);
    if (detail_ != nullptr) copy.detail_ = new error_detail(*detail_);
    return copy;
  }

  errc code() const noexcept { return code_; }
  bool ok() const noexcept { return code_ == errc::ok; }
  std::string_view message() const noexcept {
    return detail_ != nullptr ? std::string_view(detail_->message) : text_of(code_);
  }
  /// The structured part; a shared empty one when the error carries only a code.
  const error_detail& detail() const noexcept {
    static const error_detail none{};
    return detail_ != nullptr ? *detail_ : none;
  }

  // Builders: add what the layer above knows. The innermost layer wins.
  error&& in_file(std::string_view name) && { return std::move(*this).set(&error_detail::file, name); }
  error&& at_node(std::string_view name) && { return std::move(*this).set(&error_detail::node, name); }
  error&& at_tensor(std::string_view name, int axis = -1) && {
    if (axis >= 0) ensure().axis = axis;
    return std::move(*this).set(&error_detail::tensor, name);
  }
  error&& between(std::string_view left, std::string_view right) && {
    // Moved in: g++ 12 warns falsely of an overlap where a view is assigned (PR105329).
    ensure().left = std::string(left);
    ensure().right = std::string(right);
    return std::move(*this);
  }

  /// One line: `file: node 'n': tensor 't' axis 1: message (left vs right)`.
  std::string text() const {
    const error_detail& d = detail();
    std::string out;
    if (!d.file.empty()) out.append(d.file).append(": ");
    if (!d.node.empty()) out.append("node '").append(d.node).append("': ");
    if (!d.tensor.empty()) {
      out.append("tensor '").append(d.tensor).append("'");
      if (d.axis >= 0) out.append(" axis ").append(std::to_string(d.axis));
      out.append(": ");
    }
    out.append(message());
    if (!d.left.empty() || !d.right.empty())
      out.append(" (").append(d.left).append(" vs ").append(d.right).append(")");
    // Names come from files and may hold anything: the text stays one line.
    for (char& c : out)
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    return out;
  }

 private:
  error_detail& ensure() {
    if (detail_ == nullptr) {
      detail_ = new error_detail;
      detail_->message = std::string(text_of(code_));
    }
    return *detail_;
  }
  error&& set(std::string error_detail::*field, std::string_view text) && {
    std::string& slot = ensure().*field;
    if (slot.empty()) slot = std::string(text);
    return std::move(*this);
  }

  errc code_ = errc::ok;
  error_detail* detail_ = nullptr;
};

/// Success or an error.
class [[nodiscard]] status {
 public:
  status() noexcept = default;
  status(sod2::error e) noexcept : error_(std::move(e)) {}
  explicit operator bool() const noexcept { return error_.ok(); }
  bool ok() const noexcept { return error_.ok(); }
  const sod2::error& error() const& noexcept { return error_; }
  sod2::error&& error() && noexcept { return std::move(error_); }
  sod2::error& error() & noexcept { return error_; }

 private:
  sod2::error error_;
};

/// A value or an error. `operator*` requires success.
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : has_value_(true), value_(std::move(value)) {}
  result(sod2::error e) noexcept : has_value_(false), error_(std::move(e)) {}
  result(result&& other) noexcept : has_value_(other.has_value_) {
    if (has_value_)
      ::new (static_cast<void*>(&value_)) T(std::move(other.value_));
    else
      ::new (static_cast<void*>(&error_)) sod2::error(std::move(other.error_));
  }
  result& operator=(result&& other) noexcept {
    if (this != &other) {
      this->~result();
      ::new (static_cast<void*>(this)) result(std::move(other));
    }
    return *this;
  }
  ~result() {
    if (has_value_)
      value_.~T();
    else
      error_.~error();
  }

  explicit operator bool() const noexcept { return has_value_; }
  bool ok() const noexcept { return has_value_; }
  T& operator*() & noexcept {
    SOD2_ASSERT(has_value_);
    return value_;
  }
  const T& operator*() const& noexcept {
    SOD2_ASSERT(has_value_);
    return value_;
  }
  T&& operator*() && noexcept {
    SOD2_ASSERT(has_value_);
    return std::move(value_);
  }
  T* operator->() noexcept { return &**this; }
  const T* operator->() const noexcept { return &**this; }
  const sod2::error& error() const& noexcept {
    SOD2_ASSERT(!has_value_);
    return error_;
  }
  sod2::error&& error() && noexcept {
    SOD2_ASSERT(!has_value_);
    return std::move(error_);
  }

 private:
  bool has_value_;
  union {
    T value_;
    sod2::error error_;
  };
};

}  // namespace sod2

/// Returns the error of a `status` or `result` expression to the caller.
#define SOD2_TRY(expression)                                                    \
  do {                                                                          \
    if (auto sod2_try_ = (expression); !sod2_try_) return std::move(sod2_try_).error(); \
  } while (false)

#define SOD2_CONCAT_(a, b) a##b
#define SOD2_CONCAT(a, b) SOD2_CONCAT_(a, b)
/// `SOD2_ASSIGN(auto x, f())`: declares x from a result, or returns its error.
#define SOD2_ASSIGN(declaration, expression)                                              \
  auto SOD2_CONCAT(sod2_result_, __LINE__) = (expression);                                \
  if (!SOD2_CONCAT(sod2_result_, __LINE__))                                               \
    return std::move(SOD2_CONCAT(sod2_result_, __LINE__)).error();                        \
  declaration = *std::move(SOD2_CONCAT(sod2_result_, __LINE__))
