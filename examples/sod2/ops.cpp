// sod2 ops: what each operator is and which kernels it has.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/kernel/table.hpp>
#include <sod2/onnx.hpp>
#include <sod2/op/standard.hpp>
#include <sod2/op/std.hpp>

#include "models.hpp"
#include "options.hpp"

namespace tool {

namespace {
using op_key = std::pair<std::string_view, std::string_view>;  // domain, name

template <class Op>
std::string type_name() {
  const std::string_view text = __PRETTY_FUNCTION__;  // "... [with Op = sod2::ops::conv; ..."
  const std::size_t first = text.find("Op = ") + 5;
  return std::string(text.substr(first, text.find_first_of(";]", first) - first));
}
template <class... Ops>
std::map<op_key, std::string> type_names(sod2::op_set<Ops...>) {
  return {{{Ops::info.domain, Ops::info.name}, type_name<Ops>()}...};
}

std::string versions_text(const json& versions) {
  std::string text;
  for (const json& v : versions) text += (text.empty() ? "" : ", ") + std::to_string(v.get<int>());
  return text;
}
std::string arity_text(sod2::arity a) {
  if (a.most == sod2::any_number) return std::to_string(a.least) + "+";
  if (a.most == a.least) return std::to_string(a.least);
  return std::to_string(a.least) + "-" + std::to_string(a.most);
}

json operators_json(const std::set<std::pair<std::string, std::string>>* used) {
  const sod2::kernel_table& kernels = sod2::standard_kernels();
  json list = json::array();
  for (const sod2::op_row& row : sod2::standard_registry().rows()) {
    const sod2::op_info& info = *row.info;
    if (used != nullptr && !used->contains({std::string(info.domain), std::string(info.name)}))
      continue;
    json versions = json::array(), with_kernel = json::array();
    for (int v : info.versions) {
      versions.push_back(v);
      if (kernels.find(info.domain, info.name, v) != nullptr ||
          kernels.find_pointwise(info.domain, info.name, v) != nullptr)
        with_kernel.push_back(v);
    }
    json kinds = json::array();
    const int newest = info.versions.empty() ? 1 : info.versions.back();
    if (kernels.find_pointwise(info.domain, info.name, newest) != nullptr) kinds.push_back("tile");
    if (kernels.find(info.domain, info.name, newest) != nullptr) kinds.push_back("kernel");
    list.push_back({{"name", info.name},
                    {"domain", info.domain},
                    {"versions", std::move(versions)},
                    {"class", name_of(info.base)},
                    {"mapping", name_of(info.map)},
                    {"inputs", arity_text(info.inputs)},
                    {"outputs", arity_text(info.outputs)},
                    {"backward", row.backward != nullptr},
                    {"value", row.value != nullptr},
                    {"deterministic", info.deterministic},
                    {"kernels", std::move(kinds)},
                    {"kernel_versions", std::move(with_kernel)}});
  }
  return list;
}

int list_operators(const std::string& model, bool markdown, bool as_json) {
  std::set<std::pair<std::string, std::string>> used;
  std::vector<std::string> unknown;
  if (!model.empty()) {
    const auto m = load_model(model);
    for (std::size_t i = 0; i < m->view.node_count(); ++i) {
      const sod2::node_id n{i};
      const std::string domain(m->view.operator_domain(n)), name(m->view.operator_name(n));
      if (!used.emplace(domain, name).second) continue;
      if (!sod2::standard_registry().knows(domain, name))
        unknown.push_back(domain.empty() ? name : domain + "." + name);
    }
    if (!unknown.empty())
      fail(sod2::error(sod2::errc::unknown_operator,
                       "operator '" + unknown[0] + "' is not registered")
               .in_file(m->path));
  }
  const json list = operators_json(model.empty() ? nullptr : &used);
  if (as_json) {
    json report = {{"operators", list}};
    if (!model.empty()) report["model"] = model;
    print_report(report, true);
    return success;
  }
  if (markdown) {
    std::printf(
        "| operator | versions | class | mapping | inputs | outputs | backward | value | kernels "
        "|\n|---|---|---|---|---|---|---|---|---|\n");
    for (const json& op : list) {
      std::string kernels;
      for (const json& k : op["kernels"])
        kernels += (kernels.empty() ? "" : ", ") + k.get<std::string>();
      std::printf("| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
                  op["name"].get<std::string>().c_str(), versions_text(op["versions"]).c_str(),
                  op["class"].get<std::string>().c_str(), op["mapping"].get<std::string>().c_str(),
                  op["inputs"].get<std::string>().c_str(), op["outputs"].get<std::string>().c_str(),
                  op["backward"].get<bool>() ? "yes" : "", op["value"].get<bool>() ? "yes" : "",
                  kernels.c_str());
    }
    return success;
  }
  if (!model.empty()) {
    const auto names = type_names(sod2::standard_ops{});
    std::string text;
    for (const json& op : list) {
      const std::string domain = op["domain"].get<std::string>(),
                        name = op["name"].get<std::string>();
      text += (text.empty() ? "    " : ",\n    ") + names.at({domain, name});
    }
    std::printf("using ops_of_model = sod2::op_set<\n%s>;\n", text.c_str());
    return success;
  }
  for (const json& op : list) {
    std::string kernels;
    for (const json& k : op["kernels"]) kernels += " " + k.get<std::string>();
    std::printf("%-28s %-8s %-14s %s %s\n", op["name"].get<std::string>().c_str(),
                op["class"].get<std::string>().c_str(), op["mapping"].get<std::string>().c_str(),
                versions_text(op["versions"]).c_str(), kernels.c_str());
  }
  return success;
}
}  // namespace

void add_ops(CLI::App& app, std::vector<command>& list) {
  command& c = add_command(app, list, "ops", "Lists the operators");
  struct ops_options {
    std::string used;
    bool markdown = false;
  };
  auto o = std::make_shared<ops_options>();
  c.app->add_option("--used", o->used, "Only those of this model, as a C++ type list");
  c.app->add_flag("--markdown", o->markdown, "As a Markdown table");
  c.run = [o, &c] { return list_operators(o->used, o->markdown, c.as_json); };
}

}  // namespace tool
