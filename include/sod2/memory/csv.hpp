// Placement problems and plans as CSV: `id,lower,upper,size[,alignment]`, live ranges half-open.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <sod2/core/status.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/memory/problem.hpp>
#include <sod2/memory/validate.hpp>

namespace sod2 {

/// A problem and the names of its buffers.
struct placement_file {
  placement_problem problem;
  vector<std::string> ids;
};

namespace detail {
/// The part of `text` before the next `separator`, which is removed with it.
constexpr std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}
constexpr std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}
inline bool to_integer(std::string_view text, std::int64_t& out) {
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, out);
  return code == std::errc{} && stop == end && !text.empty();
}
}  // namespace detail

/// Reads a problem. Columns are found by the names in the first line, in any order; other columns
/// are ignored. Buffers without an alignment need none (1 byte).
/// Errors: errc::parse names line and column; errc::invalid_argument as `validate`.
inline result<placement_file> read_placement_csv(std::string_view text) {
  constexpr std::string_view names[] = {"id", "lower", "upper", "size", "alignment"};
  enum : std::size_t { id, lower, upper, size, alignment, known };
  const auto fail = [](std::size_t line, std::string what) -> error {
    return error(errc::parse, "line " + std::to_string(line) + ": " + what);
  };
  placement_file file;
  file.problem.alignment = 1;
  vector<std::size_t> columns;
  std::size_t line_number = 0;
  while (!text.empty()) {
    std::string_view line = detail::trim(detail::take_until(text, '\n'));
    ++line_number;
    if (line.empty() || line[0] == '#') continue;
    if (columns.empty()) {
      bool seen[known] = {};
      while (!line.empty()) {
        const std::string_view name = detail::trim(detail::take_until(line, ','));
        std::size_t column = 0;
        while (column < known && names[column] != name) ++column;
        if (column < known && std::exchange(seen[column], true))
          return fail(line_number, "column '" + std::string(name) + "' appears twice");
        columns.push_back(column);
      }
      for (std::size_t column = id; column <= size; ++column)
        if (!seen[column])
          return fail(line_number, "column '" + std::string(names[column]) + "' is missing");
      continue;
    }
    buffer b;
    std::string name;
    std::int64_t* const fields[] = {nullptr, &b.lower, &b.upper, &b.size, &b.alignment};
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (line.empty()) return fail(line_number, "too few fields");
      const std::string_view field = detail::trim(detail::take_until(line, ','));
      const std::size_t column = columns[c];
      if (column == id)
        name = field;
      else if (column < known && !detail::to_integer(field, *fields[column]))
        return fail(line_number, std::string(names[column]) + " is not an integer");
    }
    if (!line.empty()) return fail(line_number, "too many fields");
    file.problem.buffers.push_back(b);
    file.ids.push_back(std::move(name));
  }
  if (columns.empty()) return fail(line_number, "the line of column names is missing");
  SOD2_TRY(validate(file.problem));
  return file;
}

/// Writes a problem, and the offsets of a plan as a last column if there is one.
inline std::string write_placement_csv(const placement_file& file,
                                       const placement_plan* plan = nullptr) {
  bool aligned = false;
  for (const buffer& b : file.problem.buffers) aligned |= b.alignment > 1;
  aligned |= file.problem.alignment > 1;
  std::string out = "id,lower,upper,size";
  if (aligned) out += ",alignment";
  if (plan != nullptr) out += ",offset";
  out += '\n';
  for (std::size_t i = 0; i < file.problem.buffers.size(); ++i) {
    const buffer& b = file.problem.buffers[i];
    out += i < file.ids.size() ? file.ids[i] : std::to_string(i);
    for (const std::int64_t field : {b.lower, b.upper, b.size}) out += ',' + std::to_string(field);
    if (aligned)
      out += ',' + std::to_string(b.alignment != 0 ? b.alignment : file.problem.alignment);
    if (plan != nullptr) out += ',' + std::to_string(plan->offsets[i]);
    out += '\n';
  }
  return out;
}

}  // namespace sod2
