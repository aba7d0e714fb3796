// Order problems as text: one node a line, `id bytes pred pred ...`, `#` starts a comment line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <sod2/core/status.hpp>
#include <sod2/core/vector.hpp>
#include <sod2/schedule/problem.hpp>
#include <sod2/schedule/validate.hpp>

namespace sod2 {

/// A problem whose node i is the i-th line, and the names of its nodes. A node makes one value of
/// `bytes`, which reads its predecessors' values; values without a reader are outputs.
struct order_file {
  order_problem problem;
  vector<std::string> ids;
};

/// Nodes may come in any order; `given_order` is the order of lines where that is topological.
/// Errors: errc::parse with the line, errc::undefined_value, duplicate_value, cycle.
inline result<order_file> read_order_dag(std::string_view text) {
  const auto fail = [](errc code, std::size_t line, std::string what) {
    return error(code, "line " + std::to_string(line) + ": " + what);
  };
  struct name {
    std::string_view id;
    std::uint32_t node = 0;
  };
  struct read {
    std::string_view id;
    std::uint32_t node = 0;
    std::size_t line = 0;
  };
  order_file file;
  vector<name> names;
  vector<read> reads;
  constexpr std::string_view blanks = " \t\r";
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto word = [&] {
      rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size()));
      const std::string_view w = rest.substr(0, rest.find_first_of(blanks));
      rest.remove_prefix(w.size());
      return w;
    };
    const std::string_view id = word();
    if (id.empty() || id[0] == '#') continue;
    const std::string_view bytes = word();
    const auto node = static_cast<std::uint32_t>(names.size());
    order_value value;
    value.is_output = true;
    if (bytes.empty()) return fail(errc::parse, line, "the number of bytes is missing");
    for (char c : bytes)
      if (c < '0' || c > '9' || !checked_mul(value.bytes, 10, value.bytes) ||
          !checked_add(value.bytes, c - '0', value.bytes))
        return fail(errc::parse, line, "'" + std::string(bytes) + "' is no number of bytes");
    file.problem.values.push_back(value);
    file.problem.nodes.push_back({});
    file.problem.nodes.back().outputs.push_back(node);
    file.ids.push_back(std::string(id));
    names.push_back({id, node});
    for (std::string_view w = word(); !w.empty(); w = word()) reads.push_back({w, node, line});
  }
  const auto before = [](const name& a, const name& b) { return a.id < b.id; };
  std::sort(names.begin(), names.end(), before);
  for (std::size_t k = 1; k < names.size(); ++k)
    if (names[k].id == names[k - 1].id)
      return error(errc::duplicate_value, "node '" + std::string(names[k].id) + "' appears twice");
  for (const read& r : reads) {
    const name* at = std::lower_bound(names.begin(), names.end(), name{r.id, 0}, before);
    if (at == names.end() || at->id != r.id)
      return fail(errc::undefined_value, r.line, "node '" + std::string(r.id) + "' is not defined");
    auto& inputs = file.problem.nodes[r.node].inputs;
    if (std::find(inputs.begin(), inputs.end(), at->node) == inputs.end())
      inputs.push_back(at->node);
    file.problem.values[at->node].is_output = false;
  }
  SOD2_TRY(validate(file.problem));
  return file;
}

}  // namespace sod2
