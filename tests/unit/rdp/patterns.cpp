// Patterns of exported models that defeat other tools (reference/anchors.md A.1): each resolves
// here. Those of convolutional pyramids stand in analysis.cpp, those of sub-graphs with control
// flow.
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include <sod2/expr/evaluate.hpp>

#include "unit/rdp/support.hpp"

using namespace sod2;
using test::analysed;
using test::range;

namespace {

value_id ints(graph& g, std::vector<std::int64_t> v) {
  const auto n = static_cast<std::int64_t>(v.size());
  return g.constant<std::int64_t>({}, {n}, v);
}
value_id scalar(graph& g, std::int64_t v) { return g.constant<std::int64_t>({}, {}, {v}); }
/// The size of one axis of x as a vector of one element.
value_id size_of(graph& g, value_id x, std::int64_t axis) {
  const value_id all = g.op("Shape", {x});
  return g.op("Unsqueeze", {g.op("Gather", {all, scalar(g, axis)}), ints(g, {0})});
}

}  // namespace

TEST_CASE("1: sliced position embeddings meet a sequence through min(S, 512)") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"B", "S", 64});
  const value_id table = g.input("table", dtype::f32, {1, 512, 64});
  const value_id part =
      g.op("Slice", {table, ints(g, {0}), size_of(g, x, 1), ints(g, {1})}, {}, "part");
  g.output(g.op("Add", {x, part}, {}, "sum"));
  analysed a(g);
  CHECK(a.shape("sum") == "(B, S, 64)");
  CHECK(a.assertions().size() == 1);  // S is at most 512, or min(S, 512) is 1
  analysed bounded(g, test::symbols({range("S", 2, 384)}));
  CHECK(bounded.shape("part") == "(1, S, 64)");
  CHECK(bounded.assertions().empty());
}

TEST_CASE("2: a causal mask cut by past and present lengths") {
  graph g;
  const value_id scores = g.input("scores", dtype::f32, {"B", 12, "S", "K"});
  const value_id past = g.input("past", dtype::f32, {"B", 12, "P", 64});
  const value_id bias = g.input("bias", dtype::boolean, {1, 1, 1024, 1024});
  const value_id s = size_of(g, scores, 2);
  const value_id k = g.op("Add", {size_of(g, past, 2), s});
  const value_id from = g.op("Sub", {k, s});
  const value_id rows = g.op("Slice", {bias, from, k, ints(g, {2})}, {}, "rows");
  g.output(g.op("Slice", {rows, ints(g, {0}), k, ints(g, {3})}, {}, "mask"));
  analysed a(g, test::symbols({range("S", 1, 128), range("P", 1, 512)}));
  CHECK(a.shape("mask") == "(1, 1, S, S + P)");
  CHECK(a.assertions().empty());
}

TEST_CASE("3: relative positions pe[c - T + 1 : c + T] have 2T - 1 rows") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"B", "T", 64});
  const value_id pe = g.input("pe", dtype::f32, {1, 9999, 64});
  const value_id t = size_of(g, x, 1);
  const value_id start = g.op("Add", {g.op("Sub", {ints(g, {4999}), t}), ints(g, {1})});
  const value_id end = g.op("Add", {ints(g, {4999}), t});
  g.output(g.op("Slice", {pe, start, end, ints(g, {1})}, {}, "part"));
  analysed a(g, test::symbols({range("T", 1, 2000)}));
  CHECK(a.shape("part") == "(1, 2*T - 1, 64)");
  CHECK(a.assertions().empty());
}

TEST_CASE("4: pads computed as (7 - H mod 7) mod 7") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"B", "H", "W", 96});
  const value_id seven = ints(g, {7}), zero = ints(g, {0});
  const auto missing = [&](std::int64_t axis) {
    const value_id rest = g.op("Mod", {size_of(g, x, axis), seven});
    return g.op("Mod", {g.op("Sub", {seven, rest}), seven});
  };
  const value_id pads = g.op("Concat", {zero, zero, zero, zero, zero, missing(1), missing(2), zero},
                             {{"axis", 0}}, "pads");
  const value_id padded = g.op("Pad", {x, pads}, {}, "padded");
  const value_id windows = ints(g, {0, -1, 7, 96});
  g.output(g.op("Reshape",
                {g.op("Reshape", {padded, ints(g, {0, 0, -1, 672})}, {}, "blocks"), windows}, {},
                "windows"));
  analysed a(g);
  CHECK(a.shape("padded") == "(B, 7*ceildiv(H, 7), 7*ceildiv(W, 7), 96)");
  CHECK(a.shape("blocks") == "(B, 7*ceildiv(H, 7), ceildiv(W, 7), 672)");
  CHECK(a.assertions().empty());
}

TEST_CASE("5: Resize to sizes computed in floating point") {
  // torchvision: scale = min(800 / min(H, W), 1333 / max(H, W)); sizes = floor(float(H) * scale).
  graph g;
  const value_id image = g.input("image", dtype::f32, {1, 3, "H", "W"});
  const value_id sides =
      g.op("Slice", {g.op("Shape", {image}), ints(g, {2}), ints(g, {4}), ints(g, {0})});
  const value_id real = g.op("Cast", {sides}, {{"to", 1}});
  const value_id shortest = g.op("ReduceMin", {real}, {{"keepdims", 0}});
  const value_id longest = g.op("ReduceMax", {real}, {{"keepdims", 0}});
  const value_id a = g.op("Div", {g.constant<float>({}, {}, {800.0F}), shortest});
  const value_id b = g.op("Div", {g.constant<float>({}, {}, {1333.0F}), longest});
  const value_id scale = g.op("Min", {a, b});
  const value_id wanted = g.op("Cast", {g.op("Floor", {g.op("Mul", {real, scale})})}, {{"to", 7}});
  const value_id sizes = g.op("Concat", {ints(g, {1, 3}), wanted}, {{"axis", 0}}, "sizes");
  g.output(g.op("Resize", {image, absent, absent, sizes}, {{"mode", "linear"}}, "resized"));
  analysed r(g);
  const value_id out = r["resized"];
  REQUIRE(r.facts.dims(out).size() == 4);
  dim_context& context = r.facts.context();
  size_program_builder builder(context);
  for (dim d : r.facts.dims(out)) {
    REQUIRE(d.is_known());
    CHECK(context.only_input_symbols(d));
    builder.add_output(d);
  }
  const size_program p = std::move(builder).finish();
  std::vector<std::int64_t> scratch(p.register_count());
  for (const auto& [h, w] : {std::pair{480, 640}, std::pair{333, 1777}, std::pair{1200, 801}}) {
    std::vector<std::int64_t> binding(context.symbol_count());
    binding[static_cast<std::size_t>(context.find_symbol("H"))] = h;
    binding[static_cast<std::size_t>(context.find_symbol("W"))] = w;
    std::int64_t got[4] = {};
    REQUIRE(p.evaluate(binding, scratch, got) == errc::ok);
    const float fh = static_cast<float>(h), fw = static_cast<float>(w);
    const float low = fh < fw ? fh : fw, high = fh < fw ? fw : fh;
    const float x = 800.0F / low, y = 1333.0F / high;
    const float s = x < y ? x : y;
    CHECK(got[2] == static_cast<std::int64_t>(fh * s));
    CHECK(got[3] == static_cast<std::int64_t>(fw * s));
  }
}

TEST_CASE("7: ConvTranspose and Upsample keep batch, channels and multiples") {
  graph g;
  g.set_opset(9);
  const value_id x = g.input("x", dtype::f32, {"N", 8, "H", "W"});
  const value_id w = g.constant<float>({}, {8, 4, 2, 2}, std::vector<float>(128));
  const value_id up = g.op("ConvTranspose", {x, w}, {{"strides", {2, 2}}}, "up");
  const value_id scales = g.constant<float>({}, {4}, {1, 1, 2, 2});
  g.output(g.op("Upsample", {up, scales}, {{"mode", "nearest"}}, "twice"));
  analysed a(g);
  CHECK(a.shape("up") == "(N, 4, 2*H, 2*W)");
  CHECK(a.shape("twice") == "(N, 4, 4*H, 4*W)");
}

TEST_CASE("10: counts are bounded, and one mask has one count") {
  graph g;
  const value_id scores = g.input("scores", dtype::f32, {3234});
  const value_id boxes = g.input("boxes", dtype::f32, {3234, 4});
  const value_id mask = g.op("Greater", {scores, g.constant<float>({}, {}, {0.5F})});
  const value_id picked = g.op("Transpose", {g.op("NonZero", {mask}, {}, "found")}, {}, "picked");
  const value_id kept = g.op("GatherND", {scores, picked}, {}, "kept");
  g.output(g.op("GatherND", {boxes, picked}, {}, "rows"));
  const value_id count = g.op("Shape", {kept});
  const value_id k = g.op("Min", {count, ints(g, {300})}, {}, "k");
  const auto top = g.ops("TopK", {kept, k}, 2, {}, "top");
  g.output(top[0]);
  g.output(top[1]);
  analysed a(g);
  CHECK(a.shape("kept") == "(u0)");
  CHECK(a.shape("rows") == "(u0, 4)");
  CHECK(a.shape("top") == "(min(u0, 300))");
  CHECK(a.facts.context().bounds(a.facts.dims(a["kept"])[0]) == interval{0, 3234});
  CHECK(a.facts.context().bounds(a.facts.dims(a["top"])[0]) == interval{0, 300});
}

TEST_CASE("11: Flatten after a count, and a Reshape whose target has only a length") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 8});
  const value_id target = g.input("target", dtype::i64, {3});
  g.output(g.op("Flatten", {g.op("NonZero", {x}, {}, "found")}, {}, "flat"));
  g.output(g.op("Reshape", {x, target}, {}, "free"));
  analysed a(g);
  CHECK(a.shape("flat") == "(2, u0)");
  for (dim d : a.facts.dims(a["free"])) CHECK(d.is_known());
  CHECK(a.facts.dims(a["free"]).size() == 3);
}

TEST_CASE("12: Reshape with -1 divides products of symbols") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"B", "H", "T", "D"});
  const value_id bh = g.op("Mul", {size_of(g, x, 0), size_of(g, x, 1)});
  const value_id target = g.op("Concat", {bh, ints(g, {-1}), size_of(g, x, 3)}, {{"axis", 0}});
  const value_id y = g.op("Reshape", {x, target}, {}, "folded");
  const value_id back =
      g.op("Concat", {size_of(g, x, 0), ints(g, {-1}), size_of(g, x, 2), size_of(g, x, 3)},
           {{"axis", 0}});
  g.output(g.op("Reshape", {y, back}, {}, "unfolded"));
  analysed a(g);
  CHECK(a.shape("folded") == "(B*H, T, D)");
  CHECK(a.shape("unfolded") == "(B, H, T, D)");
  CHECK(a.assertions().empty());
}
