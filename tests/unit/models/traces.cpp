// What analysis must know of the ten networks of the paper at full size: golden traces as
// expressions that equal what is found, written in the same context.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include <sod2/expr/parse.hpp>
#include <sod2/rdp/regions.hpp>

#include "models/all.hpp"
#include "unit/rdp/support.hpp"

using namespace sod2;

namespace {

/// A network and what analysis says of it; values are found by their names inside their own scope.
struct traced {
  graph network;
  test::analysed result;

  traced(graph g, const analysis_options& options)
      : network(std::move(g)), result(network, options) {}

  value_id value(std::string_view name) const {
    for (std::uint32_t i = 1; i < result.view.value_count(); ++i)
      if (result.view.local_name(value_id{i}) == name) return value_id{i};
    FAIL("no value called ", std::string(name));
    return {};
  }
  /// Is the list of dims the one that is written, dim by dim one expression?
  bool is(std::span<const dim> dims, const std::vector<std::string>& wanted) {
    dim_context& c = result.facts.context();
    bool same = dims.size() == wanted.size();
    for (std::size_t i = 0; same && i < dims.size(); ++i) {
      auto d = parse(c, wanted[i]);
      if (!d) FAIL(d.error().text());
      same = c.resolve(*d) == dims[i];
    }
    if (!same) MESSAGE("found ", print(c, dims));
    return same;
  }
  bool is(std::string_view name, const std::vector<std::string>& wanted) {
    const symbolic_fact& f = result.facts.fact(value(name));
    return f.rank_known() && is(f.dims.view(), wanted);
  }
};

traced trace(std::string_view name) {
  for (const models::entry& m : models::all)
    if (m.name == name) return {m.build({}), m.facts()};
  FAIL("no model called ", std::string(name));
  return {models::all[0].build({}), {}};
}
traced without_facts(graph g) { return {std::move(g), {}}; }

std::string part(std::string_view text, std::string_view what, std::int64_t k) {
  std::string out(text);
  for (std::size_t at; (at = out.find(what)) != std::string::npos;)
    out.replace(at, what.size(), std::to_string(k));
  return out;
}

}  // namespace

TEST_CASE("the ten networks have the sizes of the published ones") {
  const struct {
    std::string_view name;
    double millions;
  } published[] = {{"stable_diffusion_encoder", 34.16},
                   {"segment_anything", 4.06},
                   {"conformer", 76.9},
                   {"codebert", 124.65},
                   {"yolo_v6", 59.61},
                   {"skipnet", 25.71},
                   {"dgnet", 22.35},
                   {"convnet_aig", 25.77},
                   {"ranet", 131.12},
                   {"blockdrop", 44.55}};
  for (const auto& p : published)
    for (const models::entry& m : models::all)
      if (m.name == p.name) {
        const double found = static_cast<double>(models::parameter_count(m.build({}))) / 1e6;
        CHECK_MESSAGE(found == doctest::Approx(p.millions).epsilon(0.01), m.name);
      }
}

TEST_CASE("everything is known of all ten, and nothing is left to assert") {
  for (const models::entry& m : models::all) {
    CAPTURE(m.name);
    traced t(m.build({}), m.facts());
    const graph_view& view = t.result.view;
    analysis& facts = t.result.facts;
    for (std::uint32_t v = 1; v < view.value_count(); ++v) {
      const symbolic_fact& f = facts.fact(value_id{v});
      REQUIRE_MESSAGE(f.rank_known(), view.name(value_id{v}));
      REQUIRE(f.type != dtype::undefined);
      for (dim d : f.dims) REQUIRE_MESSAGE(d.is_known(), view.name(value_id{v}));
    }
    CHECK(t.result.assertions().empty());
    CHECK(partition(view, facts).size() == (std::string_view(m.name) == "dgnet" ? 33U : 1U));
    // Only gathered tiles and channels are sizes that a run decides.
    std::size_t boundaries = 0, conditions = 0;
    for (std::uint32_t n = 0; n < view.node_count(); ++n) {
      boundaries += facts.node(node_id{n}).boundary ? 1 : 0;
      if (view.operator_name(node_id{n}) != "If") continue;
      ++conditions;
      // Both arms give what the node gives.
      const auto whole = facts.dims(view.outputs(node_id{n})[0]);
      for (scope_id s : view.scopes(node_id{n})) {
        const auto arm = facts.dims(view.outputs(s)[0]);
        CHECK(std::equal(arm.begin(), arm.end(), whole.begin(), whole.end()));
      }
    }
    const std::string_view name = m.name;
    CHECK(boundaries == (name == "dgnet" ? 32U : 0U));
    CHECK(conditions == (name == "skipnet"       ? 15U
                         : name == "convnet_aig" ? 16U
                         : name == "ranet"       ? 7U
                         : name == "blockdrop"   ? 33U
                                                 : 0U));
  }
}

TEST_CASE("classes: what reads values that are shapes is as good as static") {
  const auto count = [](traced& t, std::string_view op, dynamism d) {
    std::size_t n = 0;
    for (std::uint32_t i = 0; i < t.result.view.node_count(); ++i)
      n += t.result.view.operator_name(node_id{i}) == op &&
                   t.result.facts.node(node_id{i}).effective == d
               ? 1
               : 0;
    return n;
  };
  for (const models::entry& m : models::all) {
    CAPTURE(m.name);
    traced t(m.build({}), m.facts());
    for (const char* op : {"Reshape", "Expand", "Slice", "Resize", "Tile", "Range"})
      CHECK_MESSAGE(count(t, op, dynamism::isvdos) == 0, op);
    CHECK(count(t, "Shape", dynamism::isdos) == 0);
    CHECK(count(t, "Conv", dynamism::isvdos) + count(t, "Conv", dynamism::edo) == 0);
  }
  traced gathered = trace("dgnet");
  CHECK(count(gathered, "NonZero", dynamism::edo) == 32);
  // Where the size of the original image is no shape input, two slices and a resize depend on it.
  traced free(models::segment_anything::build(),
              models::assuming({models::multiples("P", 1, 1024)}));
  CHECK(count(free, "Slice", dynamism::isvdos) == 2);
  CHECK(count(free, "Resize", dynamism::isvdos) == 1);
}

TEST_CASE("small twins with weights of their own are known as well") {
  for (const models::entry& m : models::all) {
    CAPTURE(m.name);
    const models::config small{
        .width = 8, .depth = 4, .size = 64, .weights = models::weight_source::synthetic};
    const graph once = m.build(small);
    const graph again = m.build(small);
    traced t(m.build(small), m.facts());
    CHECK(t.result.assertions().empty());
    for (std::uint32_t v = 1; v < t.result.view.value_count(); ++v)
      for (dim d : t.result.facts.dims(value_id{v})) REQUIRE(d.is_known());
    REQUIRE(once.constants().size() == again.constants().size());
    for (std::size_t i = 0; i < once.constants().size(); ++i) {
      CHECK(once.constants()[i].size > 0);
      CHECK(once.constants()[i].owned == again.constants()[i].owned);
    }
  }
}

TEST_CASE("gated ResNets: strides by three spellings of a half, blocks that keep their shape") {
  for (const char* name : {"skipnet", "convnet_aig", "blockdrop"}) {
    CAPTURE(name);
    traced t = trace(name);
    CHECK(t.is("half", {"B", "64", "ceildiv(H, 2)", "ceildiv(W, 2)"}));
    CHECK(t.is("quarter", {"B", "64", "ceildiv(H, 4)", "ceildiv(W, 4)"}));
    CHECK(t.is("layer1", {"B", "256", "ceildiv(H, 4)", "ceildiv(W, 4)"}));
    CHECK(t.is("layer2", {"B", "512", "ceildiv(H, 8)", "ceildiv(W, 8)"}));
    CHECK(t.is("layer3", {"B", "1024", "ceildiv(H, 16)", "ceildiv(W, 16)"}));
    CHECK(t.is("layer4", {"B", "2048", "ceildiv(H, 32)", "ceildiv(W, 32)"}));
    CHECK(t.is("pooled", {"B", "2048", "1", "1"}));
    CHECK(t.is("logits", {"B", "1000"}));
  }
}

TEST_CASE("DGNet: fixed maps, counts of tiles and channels that only a run knows") {
  traced t = trace("dgnet");
  CHECK(t.is("half", {"B", "64", "112", "112"}));
  CHECK(t.is("layer1", {"B", "64", "56", "56"}));
  CHECK(t.is("layer2", {"B", "128", "28", "28"}));
  CHECK(t.is("layer3", {"B", "256", "14", "14"}));
  CHECK(t.is("layer4", {"B", "512", "7", "7"}));
  CHECK(t.is("logits", {"B", "1000"}));
  // The scattered map has as many channels as were gathered, at most all of them.
  dim_context& c = t.result.facts.context();
  const dim count = t.result.facts.dims(t.value("layer2.0/channels"))[0];
  CHECK(t.result.facts.dims(t.value("layer2.0/inner"))[1] == count);
  CHECK(c.bounds(count) == interval{0, 128});
  CHECK(t.result.facts.dims(t.value("layer2.0/tiles")).size() == 2);
}

TEST_CASE("Stable Diffusion's encoder: three halvings, attention over a product of two sizes") {
  traced t = trace("stable_diffusion_encoder");
  const std::string_view channels[] = {"128", "256", "512"};
  for (int i = 0; i < 3; ++i) {
    const std::string k = std::to_string(2 << i);
    CHECK(
        t.is("down." + std::to_string(i) + ".downsample/out",
             {"B", std::string(channels[i]), "floordiv(H, " + k + ")", "floordiv(W, " + k + ")"}));
  }
  const std::string pixels = "floordiv(H, 8) * floordiv(W, 8)";
  CHECK(t.is("mid.attn_1/scores", {"B", pixels, pixels}));
  CHECK(t.is("moments", {"B", "8", "floordiv(H, 8)", "floordiv(W, 8)"}));
  // The padding makes any size fit: the facts of the model are not what proves it.
  traced free = without_facts(models::stable_diffusion_encoder::build());
  CHECK(free.is("moments", {"B", "8", "floordiv(H, 8)", "floordiv(W, 8)"}));
  CHECK(free.is("mid.attn_1/scores", {"B", pixels, pixels}));
}

TEST_CASE("YOLOv6: a pyramid that fits together at multiples of 32 only") {
  traced t = trace("yolo_v6");
  const std::string_view channels[] = {"128", "256", "512", "1024"};
  for (int i = 0; i < 4; ++i) {
    const std::string k = std::to_string(4 << i);
    CHECK(t.is("stage." + std::to_string(i + 2) + "/out",
               {"B", std::string(channels[i]), "ceildiv(H, " + k + ")", "ceildiv(W, " + k + ")"}));
  }
  CHECK(t.is("neck.fusion0/up", {"B", "256", "2 * ceildiv(H, 32)", "2 * ceildiv(W, 32)"}));
  CHECK(t.is("neck.fusion0/joined", {"B", "768", "ceildiv(H, 16)", "ceildiv(W, 16)"}));
  CHECK(t.is("neck.fusion1/joined", {"B", "384", "floordiv(H, 8)", "floordiv(W, 8)"}));
  dim_context& c = t.result.facts.context();
  const dim cells = t.result.facts.dims(t.value("outputs"))[1];
  const auto levels = parse(c,
                            "floordiv(H, 8) * floordiv(W, 8) + floordiv(H, 16) * floordiv(W, 16) + "
                            "floordiv(H, 32) * floordiv(W, 32)");
  REQUIRE(levels);
  CHECK(c.resolve(*levels) == cells);
  CHECK(c.decide_eq(c.mul(cells, 1024), *parse(c, "21 * H * W")) == tri::yes);
  CHECK(t.is("outputs", {"B", "floordiv(21 * H * W, 1024)", "85"}));
  // Without the fact, the first concatenation of the neck names what must hold.
  traced free = without_facts(models::yolo_v6::build());
  REQUIRE_FALSE(free.result.assertions().empty());
  CHECK(free.result.assertions()[0].find("neck.fusion0/Concat") != std::string::npos);
  // At a height that is no multiple, the same node is where it cannot go on.
  const graph g = models::yolo_v6::build();
  const error e = test::refused(g, models::assuming({models::multiples("H", 48, 48)}));
  CHECK(e.detail().node == "neck.fusion0/Concat");
}

TEST_CASE("RANet: four resolutions, fused features resized to the size of the current map") {
  traced t = trace("ranet");
  for (int s = 0; s < 4; ++s) {
    const std::string k = std::to_string(32 >> s);
    const std::string channels = std::to_string(s == 0 ? 128 : s == 3 ? 32 : 64);
    CHECK(t.is("base." + std::to_string(s),
               {"B", channels, "ceildiv(H, " + k + ")", "ceildiv(W, " + k + ")"}));
  }
  // Sub-network, block: channels and the divisor of the image.
  const int blocks[][4] = {{0, 0, 640, 32}, {0, 1, 1152, 32}, {1, 0, 400, 16}, {1, 1, 410, 32},
                           {1, 2, 666, 32}, {1, 3, 922, 32},  {2, 0, 400, 8},  {2, 1, 410, 16},
                           {2, 2, 832, 16}, {2, 3, 680, 32},  {2, 4, 936, 32}, {2, 5, 1192, 32},
                           {3, 0, 200, 4},  {3, 1, 205, 8},   {3, 2, 416, 8},  {3, 3, 340, 16},
                           {3, 4, 585, 16}, {3, 5, 445, 32},  {3, 6, 573, 32}, {3, 7, 701, 32}};
  for (const auto& [scale, block, channels, k] : blocks) {
    const std::string name = "scale." + std::to_string(scale) + ".block." + std::to_string(block);
    CAPTURE(name);
    const std::string height = part("ceildiv(H, K)", "K", k), width = part("ceildiv(W, K)", "K", k);
    CHECK(t.is(name + "/out", {"B", std::to_string(channels), height, width}));
    if (block < 2 * scale) continue;
    CHECK(t.is(name + ".classifier/half",
               {"B", std::to_string(channels), "ceildiv(H, 64)", "ceildiv(W, 64)"}));
    CHECK(t.is(name + ".classifier/quarter",
               {"B", std::to_string(channels), "ceildiv(H, 128)", "ceildiv(W, 128)"}));
    if (scale < 3 || block < 7) CHECK(t.is(name + "/exit", {"B", "1000"}));
  }
  CHECK(t.is("logits", {"B", "1000"}));
}

TEST_CASE("Conformer: distances 2T'-1 shifted into positions T'") {
  traced t = trace("conformer");
  const std::string frames = "floordiv(floordiv(T - 1, 2) - 1, 2)";
  const std::string distances = "2 * " + frames + " - 1";
  CHECK(t.is("subsampled", {"B", frames, "512"}));
  CHECK(t.is("block.0.self_attention/positions", {"B", distances, "512"}));
  CHECK(t.is("block.0.self_attention/by_distance", {"B", "8", frames, distances}));
  CHECK(t.is("block.0.self_attention/skewed", {"B", "8", "2 * " + frames, frames}));
  CHECK(t.is("block.10.self_attention/shifted", {"B", "8", frames, frames}));
  CHECK(t.is("block.10.self_attention/shifted",
             {"B", "8", frames, "floordiv(" + distances + ", 2) + 1"}));
  CHECK(t.is("log_probabilities", {"B", frames, "1000"}));
}

TEST_CASE("CodeBERT: targets of reshapes computed from shapes") {
  traced t = trace("codebert");
  CHECK(t.is("embeddings/embedded", {"B", "L", "768"}));
  CHECK(t.is("layer.0/heads", {"B", "12", "L", "64"}));
  CHECK(t.is("layer.11/scores", {"B", "12", "L", "L"}));
  CHECK(t.is("last_hidden_state", {"B", "L", "768"}));
  CHECK(t.is("pooled", {"B", "768"}));
  // What the reshape behind the heads reads.
  const graph_view& view = t.result.view;
  const node_id transpose{view.producer(t.value("layer.0/heads"))};
  const node_id reshape{view.producer(view.inputs(transpose)[0])};
  REQUIRE(view.operator_name(reshape) == "Reshape");
  const symbolic_fact& target = t.result.facts.fact(view.inputs(reshape)[1]);
  REQUIRE(target.has_value);
  CHECK(t.is(target.elements.view(), {"B", "L", "12", "64"}));
  CHECK(t.result.facts.node(reshape).effective == dynamism::isdos);
}

TEST_CASE("Segment Anything: the value of an input is the size of the masks") {
  traced t = trace("segment_anything");
  CHECK(t.is("tokens", {"1", "P + 5", "256"}));
  for (const char* layer : {"transformer.layers.0.", "transformer.layers.1."}) {
    const std::string prefix = layer;
    CHECK(t.is(prefix + "self_attn/scores", {"1", "8", "P + 5", "P + 5"}));
    CHECK(t.is(prefix + "cross_attn_token_to_image/scores", {"1", "8", "P + 5", "4096"}));
    CHECK(t.is(prefix + "cross_attn_image_to_token/scores", {"1", "8", "4096", "P + 5"}));
  }
  CHECK(t.is("low_res_masks", {"1", "4", "256", "256"}));
  CHECK(t.is("iou_predictions", {"1", "4"}));
  CHECK(t.is("masks", {"1", "4", "\"orig_im_size[0]\"", "\"orig_im_size[1]\""}));
  // Not declared a shape input, the size of the masks is a bounded symbol, everything else the
  // same.
  traced free(models::segment_anything::build(),
              models::assuming({models::multiples("P", 1, 1024)}));
  CHECK(free.is("low_res_masks", {"1", "4", "256", "256"}));
  const auto masks = free.result.facts.dims(free.value("masks"));
  REQUIRE(masks.size() == 4);
  CHECK(masks[2].is_known());
  CHECK_FALSE(free.result.facts.context().only_input_symbols(masks[2]));
}
