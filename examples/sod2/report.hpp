// How commands answer: results as text or JSON, failures as one line and an exit status.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <sod2/core/status.hpp>

namespace tool {

using json = nlohmann::ordered_json;

enum exit_status : int {
  success = 0,
  answer_is_no = 1,  // understood, but: wrong result, infeasible plan, budget too small
  bad_input = 2,     // usage, files, models
};

/// Thrown by commands; `main` prints it and exits.
struct failure {
  int status = bad_input;
  sod2::error error;
  json fields = json::object();  // of the report, as far as it goes
};
[[noreturn]] void fail(sod2::error e);
[[noreturn]] void fail(sod2::errc code, std::string message);
/// For commands and options of the contract that do not exist yet.
[[noreturn]] void not_built(std::string_view what);

/// The value of a result, or `fail`.
template <class T>
T need(sod2::result<T> r) {
  if (!r) fail(std::move(r).error());
  return *std::move(r);
}
inline void need(sod2::status s) {
  if (!s) fail(std::move(s).error());
}

/// Prints a failure as the contract says: one line on stderr, with `as_json` also an object with
/// `error` on stdout. Returns the exit status.
int print_failure(const failure& f, bool as_json);

/// The name of a code in JSON, like "malformed_model".
std::string_view id_of(sod2::errc code);

/// JSON on one line; text that is no UTF-8 is repaired.
std::string dump(const json& value, int indent = -1);

/// `fields` as JSON on stdout, or as aligned lines for people. Nested objects are flattened.
void print_report(const json& fields, bool as_json);

/// Milliseconds since construction.
class stopwatch {
 public:
  stopwatch();
  double ms() const;
  double us() const { return ms() * 1000; }

 private:
  long long start_;
};

/// Rounded to three decimals, so that reports stay readable.
double rounded(double value);

/// The whole file, or `fail`.
std::string read_text(const std::string& path);
/// Entirely or not at all, or `fail`.
void write_text(const std::string& path, std::string_view text);

}  // namespace tool
