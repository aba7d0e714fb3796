#include <algorithm>

#include "unit/fuse/support.hpp"

using namespace sod2;
using test::fusable;

namespace {
value_id conv(graph& g, value_id x, std::string name) {
  const value_id w = g.constant<float>("", {4, 4, 3, 3}, std::vector<float>(144, 0.1F));
  return g.op("Conv", {x, w}, {{"pads", {1, 1, 1, 1}}}, std::move(name));
}
value_id image(graph& g) { return g.input("x", dtype::f32, {"B", 4, "H", "W"}); }
}  // namespace

TEST_CASE("SiLU is an epilogue of its convolution, diamond and all") {
  graph g;
  const value_id c = conv(g, image(g), "c");
  const value_id s = g.op("Sigmoid", {c});
  g.output(g.op("Mul", {c, s}, {}, "silu"));
  fusable f(g);
  const fusion_plan p = f.plan();
  CHECK(f.text(p) == "Conv Sigmoid Mul");
  CHECK(p.launches() == 1);
  CHECK(p.groups[0].kind == group_kind::convolution);
  REQUIRE(p.groups[0].outputs.size() == 1);
  CHECK(f.view.name(p.groups[0].outputs[0]) == "silu");
  CHECK(p.groups[0].inputs.size() == 2);  // image and weight
  CHECK(f.plan({false}).launches() == 3);
}

TEST_CASE("an epilogue has one output: a value that is read elsewhere ends it") {
  graph g;
  const value_id c = conv(g, image(g), "c");
  const value_id r = g.op("Relu", {c}, {}, "r");
  g.output(g.op("Sigmoid", {r}));
  SUBCASE("nothing else reads") { CHECK(fusable(g).plan().launches() == 1); }
  SUBCASE("the middle is a graph output") {
    g.output(r);
    fusable f(g);
    CHECK(f.text(f.plan()) == "Conv Relu | Sigmoid");
  }
  SUBCASE("an opaque operator reads the convolution itself") {
    g.output(g.op("Softmax", {c}));
    fusable f(g);
    const fusion_plan p = f.plan();
    CHECK(f.text(p) == "Conv | Relu Sigmoid | Softmax");
  }
}

TEST_CASE("an epilogue works in place: its result has the element type of the convolution") {
  graph g;
  const value_id c = conv(g, image(g), "c");
  const value_id zero = g.constant<float>("", {}, {0.0F});
  const value_id open = g.op("GreaterOrEqual", {g.op("Relu", {c}), zero}, {}, "open");
  SUBCASE("booleans are a launch of their own") {
    g.output(open);
    fusable f(g);
    fusion_plan p = f.plan();
    CHECK(f.text(p) == "Conv Relu | GreaterOrEqual");
    // Joined by hand, the validator sees it.
    p.groups[0].nodes.push_back(p.groups[1].nodes[0]);
    p.groups[0].outputs = p.groups[1].outputs;
    p.group_of[p.groups[1].nodes[0].index] = 0;
    p.groups.pop_back();
    CHECK_FALSE(f.validate(p));
  }
  SUBCASE("inside, any type will do") {
    g.output(g.op("Cast", {open}, {{"to", 1}}));
    CHECK(fusable(g).plan().launches() == 1);
  }
}

TEST_CASE("operands that broadcast into the index space fuse, a larger index space does not") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", "L"});
  const value_id row = g.input("row", dtype::f32, {"L"});
  const value_id one = g.input("one", dtype::f32, {"N", 1});
  SUBCASE("smaller operands") {
    g.output(g.op("Mul", {g.op("Add", {g.op("Relu", {x}), row}), one}));
    fusable f(g);
    CHECK(f.text(f.plan()) == "Relu Add Mul");
  }
  SUBCASE("the result grows") {
    g.output(g.op("Add", {g.op("Relu", {one}), x}));  // (N, 1) + (N, L)
    fusable f(g);
    CHECK(f.text(f.plan()) == "Relu | Add");
  }
  SUBCASE("sizes that are equal only by assertion are equal") {
    const value_id y = g.input("y", dtype::f32, {"N", "M"});
    g.output(g.op("Add", {g.op("Relu", {x}), y}));
    fusable apart(g);
    CHECK(apart.text(apart.plan()) == "Relu | Add");  // broadcast(L, M) may be neither
    fusable together(g, test::symbols({{"L", {2, 100, 1, 0}}, {"M", {2, 100, 1, 0}}}));
    CHECK(together.text(together.plan()) == "Relu Add");
  }
}

TEST_CASE("groups that would need each other stay apart") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 16});
  const value_id y = g.input("y", dtype::f32, {"N", 16});
  SUBCASE("through an opaque operator") {
    const value_id a = g.op("Relu", {x});
    g.output(g.op("Add", {a, g.op("Softmax", {a})}));
    fusable f(g);
    CHECK(f.text(f.plan()) == "Relu | Softmax | Add");
  }
  SUBCASE("through a group that was formed before") {
    // {Relu, Add} reads the Sigmoid; Mul reads the Relu by way of the Softmax. {Sigmoid, Mul} would
    // stand before and behind {Relu, Add}, though no node of one chain depends on the other's last.
    const value_id r = g.op("Relu", {y});
    const value_id s = g.op("Sigmoid", {x});
    g.output(g.op("Add", {r, s}));
    g.output(g.op("Mul", {s, g.op("Softmax", {r})}));
    fusable f(g);
    CHECK(f.text(f.plan()) == "Sigmoid | Relu Add | Softmax | Mul");
  }
  SUBCASE("the same without the shared value fuses both") {
    const value_id r = g.op("Relu", {y});
    const value_id s = g.op("Sigmoid", {x});
    g.output(g.op("Add", {r, y}));
    g.output(g.op("Mul", {s, g.op("Softmax", {r})}));
    fusable f(g);
    CHECK(f.text(f.plan()) == "Relu Add | Softmax | Sigmoid Mul");
  }
}

TEST_CASE("groups keep to their limits") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N"});
  value_id y = x;
  for (int i = 0; i < 30; ++i) y = g.op(i % 2 == 0 ? "Relu" : "Sigmoid", {y});
  g.output(y);
  fusable f(g);
  const fusion_plan p = f.plan({true, 10, 12, 4, 512});
  CHECK(p.groups.size() == 3);
  for (const fused_group& group : p.groups) CHECK(group.nodes.size() <= 10);
  CHECK(f.plan({true, 64, 12, 4, 512}).groups.size() == 1);

  graph wide;
  value_id sum = wide.input("x", dtype::f32, {"N"});
  for (int i = 0; i < 8; ++i)
    sum = wide.op("Add", {sum, wide.input("in" + std::to_string(i), dtype::f32, {"N"})});
  wide.output(sum);
  fusable w(wide);
  for (const fused_group& group : w.plan({true, 24, 3, 4, 512}).groups)
    CHECK(group.inputs.size() <= 3);
}

TEST_CASE("the validator refuses broken plans") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 16});
  const value_id w = g.constant<float>("w", {16, 16}, std::vector<float>(256, 0.1F));
  const value_id p = g.op("MatMul", {x, w}, {}, "p");
  const value_id r = g.op("Relu", {p}, {}, "r");
  const value_id s = g.op("Softmax", {r}, {}, "s");
  const value_id m = g.op("ReduceMean", {s}, {{"keepdims", 1}}, "m");
  g.output(g.op("Sigmoid", {m}, {}, "out"));
  fusable f(g);
  const fusion_plan good = f.plan();
  REQUIRE(f.text(good) == "MatMul Relu | Softmax | ReduceMean | Sigmoid");
  fusion_plan bad = good;
  std::string expected;
  const auto settle = [&] {  // positions again
    bad.group_of.assign(f.view.node_count(), no_index);
    for (std::uint32_t i = 0; i < bad.groups.size(); ++i)
      for (node_id n : bad.groups[i].nodes) bad.group_of[n.index] = i;
  };
  SUBCASE("order of groups") {
    std::swap(bad.groups[0], bad.groups[1]);
    settle();
    expected = "group stands before what it reads";
  }
  SUBCASE("order inside a group") {
    std::swap(bad.groups[0].nodes[0], bad.groups[0].nodes[1]);
    bad.groups[0].anchor = bad.groups[0].nodes[0];
    bad.groups[0].kind = group_kind::tile;
    expected = "nodes of a group are out of order";
  }
  SUBCASE("missing node") {
    bad.groups.pop_back();
    settle();
    expected = "node is in no group";
  }
  SUBCASE("node twice") {
    bad.groups[1].nodes.push_back(bad.groups[0].nodes[0]);
    expected = "node is in two groups";
  }
  SUBCASE("node that does not exist") {
    bad.groups[1].nodes.push_back(node_id{99U});
    expected = "group holds a node that does not exist";
  }
  SUBCASE("opaque member") {
    bad.groups[0].nodes.push_back(bad.groups[1].nodes[0]);
    bad.groups.erase(bad.groups.begin() + 1);
    settle();
    expected = "only pointwise nodes may follow an anchor";
  }
  SUBCASE("another index space") {
    // The last Sigmoid works on (1, 1), Relu on (N, 16).
    bad.groups[0].nodes.push_back(bad.groups[3].nodes[0]);
    std::swap(bad.groups[0], bad.groups[2]);  // behind what it reads
    bad.groups.pop_back();
    settle();
    CHECK_FALSE(f.validate(bad));  // whichever rule speaks first
    return;
  }
  SUBCASE("output not listed") {
    bad.groups[1].outputs.clear();
    expected = "a value read outside its group is not listed as its output";
  }
  SUBCASE("input not listed") {
    bad.groups[1].inputs.clear();
    expected = "group reads a value that is not listed as its input";
  }
  SUBCASE("foreign output") {
    bad.groups[1].outputs.push_back(f.view.inputs()[0]);
    expected = "group lists an output that it does not make";
  }
  SUBCASE("wrong kind") {
    bad.groups[1].kind = group_kind::tile;
    expected = "group has a wrong kind";
  }
  SUBCASE("group_of disagrees") {
    bad.group_of[0] = 3;
    expected = "plan and its groups disagree on where nodes are";
  }
  SUBCASE("dead node") {
    f.roles[good.groups[3].nodes[0].index] = node_role::dead;
    expected = "dead node is in a group";
  }
  SUBCASE("no anchor") {
    bad.groups[0].anchor = bad.groups[0].nodes[1];
    expected = "group without an anchor";
  }
  const status verdict = f.validate(bad);
  REQUIRE_FALSE(verdict);
  CHECK(verdict.error().code() == errc::invalid_plan);
  CHECK(verdict.error().detail().message == expected);
}

TEST_CASE("an epilogue whose index space differs is refused") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 1});
  const value_id y = g.input("y", dtype::f32, {"N", "L"});
  const value_id r = g.op("Relu", {x}, {}, "r");
  g.output(g.op("Add", {r, y}, {}, "sum"));
  fusable f(g);
  fusion_plan p = f.plan();
  REQUIRE(p.groups.size() == 2);
  p.groups[0].nodes.push_back(p.groups[1].nodes[0]);
  p.groups[0].outputs = p.groups[1].outputs;
  p.groups[0].inputs = {f.view.inputs()[0], f.view.inputs()[1]};
  p.groups.pop_back();
  p.group_of = {0, 0};
  CHECK(f.validate(p).error().detail().message == "index spaces of a group are not proved equal");
}

// ---- views
// ---------------------------------------------------------------------------------------

namespace {
// Is the node that makes `v` (the last one) a view?
bool last_is_view(const graph& g, const analysis_options& options = {}) {
  fusable f(g, options);
  return is_view(f.view, f.facts, f.view.order().back());
}
}  // namespace

TEST_CASE("views are what moves no bytes at any binding") {
  graph g;
  const value_id x = g.input("x", dtype::f32, {"N", 1, "L"});
  const auto constant = [&](std::vector<std::int64_t> v) {
    const auto n = static_cast<std::int64_t>(v.size());
    return g.constant<std::int64_t>("", {n}, std::move(v));
  };
  SUBCASE("reorganising operators") {
    SUBCASE("Reshape") { g.output(g.op("Reshape", {x, constant({0, -1})})); }
    SUBCASE("Flatten") { g.output(g.op("Flatten", {x})); }
    SUBCASE("Squeeze") { g.output(g.op("Squeeze", {x, constant({1})})); }
    SUBCASE("Unsqueeze") { g.output(g.op("Unsqueeze", {x, constant({0})})); }
    SUBCASE("Identity") { g.output(g.op("Identity", {x})); }
    SUBCASE("Dropout of inference") { g.output(g.op("Dropout", {x})); }
    SUBCASE("Cast to the same type") { g.output(g.op("Cast", {x}, {{"to", 1}})); }
    SUBCASE("Transpose of axes of size 1") {
      g.output(g.op("Transpose", {x}, {{"perm", {1, 0, 2}}}));
    }
    SUBCASE("Expand to the same shape") { g.output(g.op("Expand", {x, constant({1, 1, 1})})); }
    SUBCASE("Tile once") { g.output(g.op("Tile", {x, constant({1, 1, 1})})); }
    SUBCASE("Slice of everything") {
      g.output(g.op("Slice", {x, constant({0}), constant({INT64_MAX}), constant({2})}));
    }
    SUBCASE("Concat of one") { g.output(g.op("Concat", {x}, {{"axis", 2}})); }
    CHECK(last_is_view(g));
  }
  SUBCASE("the others") {
    SUBCASE("Transpose") { g.output(g.op("Transpose", {x}, {{"perm", {2, 1, 0}}})); }
    SUBCASE("Transpose by default") { g.output(g.op("Transpose", {x})); }
    SUBCASE("Cast to another type") { g.output(g.op("Cast", {x}, {{"to", 11}})); }
    SUBCASE("Expand to more") { g.output(g.op("Expand", {x, constant({1, 4, 1})})); }
    SUBCASE("Tile twice") { g.output(g.op("Tile", {x, constant({1, 2, 1})})); }
    SUBCASE("Slice of a part") {
      g.output(g.op("Slice", {x, constant({1}), constant({INT64_MAX}), constant({2})}));
    }
    SUBCASE("Slice backwards") {
      g.output(
          g.op("Slice", {x, constant({-1}), constant({INT64_MIN}), constant({2}), constant({-1})}));
    }
    SUBCASE("Concat of two") { g.output(g.op("Concat", {x, x}, {{"axis", 2}})); }
    SUBCASE("pointwise") { g.output(g.op("Relu", {x})); }
    SUBCASE("Dropout with its mask") { g.output(g.ops("Dropout", {x}, 2)[0]); }
    CHECK_FALSE(last_is_view(g));
  }
}

TEST_CASE("a transposition is a view when facts make an axis 1") {
  graph g;
  g.output(g.op("Transpose", {g.input("x", dtype::f32, {"N", "L"})}, {{"perm", {1, 0}}}));
  CHECK_FALSE(last_is_view(g));
  CHECK(last_is_view(g, test::symbols({{"N", {1, 1, 1, 0}}})));
}
