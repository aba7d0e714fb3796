#include "report.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include <sod2/onnx.hpp>

namespace tool {

void fail(sod2::error e) {
  const sod2::errc code = e.code();
  const bool no = code == sod2::errc::infeasible || code == sod2::errc::budget;
  throw failure{no ? answer_is_no : bad_input, std::move(e), json::object()};
}
void fail(sod2::errc code, std::string message) { fail(sod2::error(code, std::move(message))); }
void not_built(std::string_view what) {
  fail(sod2::errc::unsupported, std::string(what) + " is not built yet");
}

std::string_view id_of(sod2::errc code) {
  using sod2::errc;
  switch (code) {
    case errc::ok: return "ok";
    case errc::invalid_argument: return "invalid_argument";
    case errc::out_of_memory: return "out_of_memory";
    case errc::io: return "io";
    case errc::unsupported: return "unsupported";
    case errc::internal: return "internal";
    case errc::overflow: return "overflow";
    case errc::parse: return "parse";
    case errc::unbound_symbol: return "unbound_symbol";
    case errc::division: return "division";
    case errc::malformed_model: return "malformed_model";
    case errc::unknown_operator: return "unknown_operator";
    case errc::unknown_opset: return "unknown_opset";
    case errc::undefined_value: return "undefined_value";
    case errc::duplicate_value: return "duplicate_value";
    case errc::cycle: return "cycle";
    case errc::missing_attribute: return "missing_attribute";
    case errc::bad_attribute: return "bad_attribute";
    case errc::arity: return "arity";
    case errc::type_mismatch: return "type_mismatch";
    case errc::rank_mismatch: return "rank_mismatch";
    case errc::dim_mismatch: return "dim_mismatch";
    case errc::broadcast: return "broadcast";
    case errc::element_count: return "element_count";
    case errc::inner_dims: return "inner_dims";
    case errc::channels: return "channels";
    case errc::divisibility: return "divisibility";
    case errc::contradiction: return "contradiction";
    case errc::rank_unknown: return "rank_unknown";
    case errc::axis_range: return "axis_range";
    case errc::value_range: return "value_range";
    case errc::assertion_failed: return "assertion_failed";
    case errc::input_missing: return "input_missing";
    case errc::input_shape: return "input_shape";
    case errc::input_type: return "input_type";
    case errc::buffer_too_small: return "buffer_too_small";
    case errc::kernel_missing: return "kernel_missing";
    case errc::index_range: return "index_range";
    case errc::budget: return "budget";
    case errc::invalid_plan: return "invalid_plan";
    case errc::infeasible: return "infeasible";
    default: return "error";
  }
}

std::string dump(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

int print_failure(const failure& f, bool as_json) {
  std::fprintf(stderr, "sod2: error: %s\n", f.error.text().c_str());
  if (as_json) {
    const sod2::error_detail& d = f.error.detail();
    json e = {{"code", id_of(f.error.code())}, {"message", f.error.message()}};
    if (!d.file.empty()) e["file"] = d.file;
    if (!d.node.empty()) e["node"] = d.node;
    if (!d.tensor.empty()) e["tensor"] = d.tensor;
    if (d.axis >= 0) e["axis"] = d.axis;
    if (!d.left.empty() || !d.right.empty()) {
      e["left"] = d.left;
      e["right"] = d.right;
    }
    json object = f.fields;
    object["error"] = std::move(e);
    std::printf("%s\n", dump(object).c_str());
  }
  return f.status;
}

namespace {
std::string plain(const json& v) { return v.is_string() ? v.get<std::string>() : dump(v); }
void lines_of(const json& fields, const std::string& prefix,
              std::vector<std::pair<std::string, std::string>>& out) {
  for (const auto& [key, value] : fields.items()) {
    if (value.is_object()) {
      lines_of(value, prefix + key + ".", out);
    } else if (value.is_array() && !value.empty() && !value[0].is_number()) {
      for (std::size_t k = 0; k < value.size(); ++k) {
        std::string text = plain(value[k]);
        if (value[k].is_object()) {
          text.clear();
          for (const auto& item : value[k]) text += plain(item) + "  ";
        }
        out.emplace_back(k == 0 ? prefix + key : std::string(), text);
      }
    } else {
      out.emplace_back(prefix + key, plain(value));
    }
  }
}
}  // namespace

void print_report(const json& fields, bool as_json) {
  if (as_json) {
    std::printf("%s\n", dump(fields).c_str());
    return;
  }
  std::vector<std::pair<std::string, std::string>> lines;
  lines_of(fields, "", lines);
  std::size_t width = 0;
  for (const auto& [key, text] : lines) width = std::max(width, key.size());
  for (const auto& [key, text] : lines)
    std::printf("%-*s  %s\n", static_cast<int>(width), key.c_str(), text.c_str());
}

namespace {
long long now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
}  // namespace
stopwatch::stopwatch() : start_(now_ns()) {}
double stopwatch::ms() const { return static_cast<double>(now_ns() - start_) * 1e-6; }
double rounded(double value) { return std::round(value * 1000) / 1000; }

std::string read_text(const std::string& path) {
  auto file = sod2::onnx::file_bytes::open(path, false);
  if (!file) fail(std::move(file).error().in_file(path));
  return std::string(file->view());
}
void write_text(const std::string& path, std::string_view text) {
  need(sod2::onnx::write_file(path, text));
}

}  // namespace tool
