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
#include "operators_page.hpp"
#include "options.hpp"
#include "probe.hpp"

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

/// The header below sod2/op/std that defines each operator.
class header_map {
 public:
  header_map() {
    using namespace sod2::ops;
    add("attention.hpp", attention_ops{});
    add("control.hpp", control_ops{});
    add("conversion.hpp", conversion_ops{});
    add("convolution.hpp", convolution_ops{});
    add("dynamic.hpp", dynamic_ops{});
    add("elementwise.hpp", elementwise_ops{});
    add("image.hpp", image_ops{});
    add("movement.hpp", movement_ops{});
    add("normalization.hpp", normalization_ops{});
    add("pooling.hpp", pooling_ops{});
    add("product.hpp", product_ops{});
    add("quantization.hpp", quantization_ops{});
    add("random.hpp", random_ops{});
    add("recurrent.hpp", recurrent_ops{});
    add("reduction.hpp", reduction_ops{});
    add("reshape.hpp", reshape_ops{});
    add("sequence.hpp", sequence_ops{});
    add("shape.hpp", shape_ops{});
    add("signal.hpp", signal_ops{});
    add("text.hpp", text_ops{});
    add("training.hpp", training_ops{});
  }
  std::string of(const sod2::op_info& info) const { return headers_.at({info.domain, info.name}); }

 private:
  template <class... Ops>
  void add(const char* header, sod2::op_set<Ops...>) {
    (headers_.emplace(op_key{Ops::info.domain, Ops::info.name}, header), ...);
  }
  std::map<op_key, const char*> headers_;
};

std::string arity_text(sod2::arity a) {
  if (a.most == sod2::any_number) return std::to_string(a.least) + "+";
  if (a.most == a.least) return std::to_string(a.least);
  return std::to_string(a.least) + "-" + std::to_string(a.most);
}

json operators_json(const std::set<std::pair<std::string, std::string>>* used) {
  const sod2::kernel_table& kernels = sod2::standard_kernels();
  const header_map headers;
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
    const int newest = info.versions.empty() ? 1 : info.versions.back();
    const operator_answers answers = probe(row, newest);
    json kinds = json::array(), dtypes = json::array();
    for (sod2::dtype t : answers.types) dtypes.push_back(name_of(t));
    if (kernels.find_pointwise(info.domain, info.name, newest) != nullptr) kinds.push_back("tile");
    if (kernels.find(info.domain, info.name, newest) != nullptr) kinds.push_back("kernel");
    if (kinds.empty() && !answers.types.empty()) {  // control flow, sequences, constants
      kinds.push_back("runtime");
      with_kernel = versions;
    }
    list.push_back({{"name", info.name},
                    {"domain", info.domain},
                    {"versions", std::move(versions)},
                    {"class", name_of(info.base)},
                    {"value_inputs", answers.value_inputs},
                    {"mapping", name_of(info.map)},
                    {"inputs", arity_text(info.inputs)},
                    {"outputs", arity_text(info.outputs)},
                    {"backward", row.backward != nullptr},
                    {"value", row.value != nullptr},
                    {"deterministic", info.deterministic},
                    {"header", "sod2/op/std/" + headers.of(info)},
                    {"dtypes", std::move(dtypes)},
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
    std::fputs(model.empty() ? operators_page(list).c_str() : operators_table(list).c_str(),
               stdout);
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
  for (const json& op : list)
    std::printf("%-28s %-8s %-8s %-14s %s; %s; %s\n", op["name"].get<std::string>().c_str(),
                op["class"].get<std::string>().c_str(), values_text(op).c_str(),
                op["mapping"].get<std::string>().c_str(), joined(op["versions"]).c_str(),
                dtypes_text(op).c_str(), kernels_text(op).c_str());
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
  c.app->add_flag("--markdown", o->markdown,
                  "As Markdown: docs/operators.md, or with --used a table");
  c.run = [o, &c] { return list_operators(o->used, o->markdown, c.as_json); };
}

}  // namespace tool
