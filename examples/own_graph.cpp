// A miniature engine with a graph of its own (layers and blobs, pointers as ids, its own operator
// names and kernels) gets shapes, execution order and arena offsets from the library, and runs its
// own kernels at those offsets. Nothing of runtime/ or kernel/ is involved.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sod2/expr.hpp>
#include <sod2/graph.hpp>
#include <sod2/memory.hpp>
#include <sod2/op.hpp>
#include <sod2/rdp.hpp>
#include <sod2/schedule.hpp>
#include <sod2/shape.hpp>

// ---- the engine
// ----------------------------------------------------------------------------------

namespace engine {

constexpr std::int64_t batch = -1;  // a dim that only the caller of a run knows

struct blob {
  std::string name;
  std::vector<std::int64_t> dims;  // of feeds and weights; other blobs leave them to the library
  std::vector<float> weights;
  float* data = nullptr;  // during a run
  std::int64_t rows = 0, columns = 0;
};
struct layer {
  std::string kind;
  std::vector<blob*> reads;
  blob* writes = nullptr;
};
struct net {
  std::vector<std::unique_ptr<blob>> blobs;
  std::vector<std::unique_ptr<layer>> layers;
  std::vector<blob*> feeds, results;

  blob* add_blob(std::string name, std::vector<std::int64_t> dims = {},
                 std::vector<float> weights = {}) {
    blobs.push_back(std::make_unique<blob>());
    blob* const b = blobs.back().get();
    b->name = std::move(name);
    b->dims = std::move(dims);
    b->weights = std::move(weights);
    return b;
  }
  blob* add_layer(std::string kind, std::vector<blob*> reads, std::string name) {
    blob* const out = add_blob(std::move(name));
    layers.push_back(std::make_unique<layer>(layer{std::move(kind), std::move(reads), out}));
    return out;
  }
};

void run(const layer& l) {
  blob& out = *l.writes;
  const blob& a = *l.reads[0];
  if (l.kind == "fully_connected") {
    const blob& w = *l.reads[1];
    for (std::int64_t i = 0; i < out.rows; ++i)
      for (std::int64_t j = 0; j < out.columns; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < a.columns; ++k)
          sum += a.data[i * a.columns + k] * w.weights[static_cast<std::size_t>(k * w.columns + j)];
        out.data[i * out.columns + j] = sum;
      }
  } else if (l.kind == "rectify") {
    for (std::int64_t i = 0; i < out.rows * out.columns; ++i)
      out.data[i] = std::max(a.data[i], 0.0F);
  } else {  // join
    const blob& b = *l.reads[1];
    for (std::int64_t i = 0; i < out.rows; ++i) {
      float* const row = out.data + i * out.columns;
      std::copy_n(a.data + i * a.columns, a.columns, row);
      std::copy_n(b.data + i * b.columns, b.columns, row + a.columns);
    }
  }
}

}  // namespace engine

// ---- what the library must know of it
// ------------------------------------------------------------

// [traits]
template <>
struct sod2::graph_traits<engine::net> {
  using node_handle = engine::layer*;
  using value_handle = engine::blob*;

  static std::vector<node_handle> nodes(const engine::net& n) {
    std::vector<node_handle> out;
    for (const auto& l : n.layers) out.push_back(l.get());
    return out;
  }
  static const auto& inputs(const engine::net&, node_handle l) { return l->reads; }
  static std::span<const value_handle> outputs(const engine::net&, node_handle l) {
    return {&l->writes, 1};
  }
  static const auto& graph_inputs(const engine::net& n) { return n.feeds; }
  static const auto& graph_outputs(const engine::net& n) { return n.results; }
  static std::string_view operator_name(const engine::net&, node_handle l) { return l->kind; }
  // The rest is optional.
  static std::string_view operator_domain(const engine::net&, node_handle) { return "engine"; }
  static std::string_view value_name(const engine::net&, value_handle b) { return b->name; }
  static declared_value facts(const engine::net&, value_handle b) {
    declared_value d;
    d.type = dtype::f32;
    d.has_shape = !b->dims.empty();
    for (const std::int64_t size : b->dims)
      d.dims.push_back(size == engine::batch ? declared_dim{-1, "batch"} : declared_dim{size, {}});
    if (!b->weights.empty())
      d.constant = {reinterpret_cast<const std::byte*>(b->weights.data()),
                    b->weights.size() * sizeof(float), b->dims, dtype::f32};
    return d;
  }
};
// [traits]

// One struct an operator: what it is called and the shape of its output, over any kind of dims.
constexpr int since_ever[] = {1};

// [operator]
struct fully_connected {
  static constexpr sod2::op_info info{
      .name = "fully_connected", .domain = "engine", .versions = since_ever, .inputs = {2, 2}};
  template <class C>
  static sod2::status forward(C& c) {
    typename C::dim_list dims;
    const sod2::errc e = sod2::rules::matmul(c.domain(), c, c.dims(0), c.dims(1), dims);
    if (e != sod2::errc::ok) return c.fail(e);
    c.copy_type(0, 0);
    c.set_shape(0, dims);
    return {};
  }
};
// [operator]
struct rectify {
  static constexpr sod2::op_info info{
      .name = "rectify", .domain = "engine", .versions = since_ever};
  template <class C>
  static sod2::status forward(C& c) {
    c.copy_type(0, 0);
    c.copy_shape(0, 0);
    return {};
  }
};
struct join {
  static constexpr sod2::op_info info{
      .name = "join", .domain = "engine", .versions = since_ever, .inputs = {2, 2}};
  template <class C>
  static sod2::status forward(C& c) {
    auto dims = c.input(0).dims;
    dims.back() = c.domain().add(dims.back(), c.dims(1).back());
    c.copy_type(0, 0);
    c.set_shape(0, dims);
    return {};
  }
};

// ---- planning: once, for every batch
// -------------------------------------------------------------

namespace {

struct plan {
  std::vector<engine::layer*> order;
  std::vector<engine::blob*> blobs;  // those that the arena holds
  sod2::size_program sizes;          // per blob: rows, columns, then bytes of all
  sod2::symbolic_layout layout;
};

std::vector<std::int64_t> evaluate(const sod2::size_program& sizes, std::int64_t batch) {
  std::vector<std::int64_t> scratch(sizes.register_count()), out(sizes.output_count());
  if (sizes.evaluate({&batch, 1}, scratch, out) != sod2::errc::ok) out.clear();
  return out;
}

sod2::result<plan> make_plan(const engine::net& net) {
  plan out;
  // [analyse]
  SOD2_ASSIGN(const sod2::graph_view view, sod2::make_view(net));
  const sod2::registry operators{sod2::op_set<fully_connected, rectify, join>{}};
  SOD2_ASSIGN(sod2::analysis facts, sod2::analyze(view, operators));
  // [analyse]

  // Sizes as a flat program over the only symbol, the batch.
  sod2::dim_context& c = facts.context();
  sod2::size_program_builder builder(c);
  std::vector<sod2::dim> bytes;
  std::vector<std::uint32_t> position(view.value_count());  // of a value among the blobs, plus one
  for (std::uint32_t v = 1; v < view.value_count(); ++v) {
    const sod2::value_id id{v};
    if (view.producer(id) == sod2::no_index) continue;
    out.blobs.push_back(sod2::user_handle<engine::net>(view, id));
    position[v] = static_cast<std::uint32_t>(out.blobs.size());
    const auto dims = facts.dims(id);
    builder.add_output(dims[0]);
    builder.add_output(dims[1]);
    bytes.push_back(c.mul(c.mul(dims[0], dims[1]), sizeof(float)));
    std::printf("%-8s %-18s %s\n", out.blobs.back()->name.c_str(), facts.text(id).c_str(),
                sod2::print(c, bytes.back()).c_str());
  }
  for (const sod2::dim d : bytes) builder.add_output(d);
  out.sizes = std::move(builder).finish();

  // [order]
  // The sizes at some batch decide the order; it is valid at every batch.
  const auto typical = evaluate(out.sizes, 16);
  const std::span<const std::int64_t> typical_bytes =
      std::span(typical).subspan(2 * out.blobs.size());
  sod2::order_problem order;
  for (const std::int64_t b : typical_bytes) order.values.push_back({b});
  for (const sod2::value_id v : view.outputs())
    order.values[position[v.index] - 1].is_output = true;
  for (const sod2::node_id n : view.order()) {
    sod2::order_node node;
    for (const sod2::value_id v : view.inputs(n))
      if (position[v.index] != 0) node.inputs.push_back(position[v.index] - 1);
    node.outputs.push_back(position[view.outputs(n)[0].index] - 1);
    order.nodes.push_back(node);
  }
  const sod2::order_plan ordered = sod2::order_best(order);
  SOD2_TRY(sod2::validate(order, ordered));
  for (const std::uint32_t n : ordered.order)
    out.order.push_back(sod2::user_handle<engine::net>(view, view.order()[n]));
  // [order]

  // [memory]
  // Live ranges of that order, and a layout whose offsets are formulas of the sizes.
  sod2::placement_problem placement;
  for (const sod2::live_range& r : sod2::live_ranges(order, ordered.order.view()))
    placement.buffers.push_back({r.lower, r.upper});
  out.layout = sod2::symbolic_layout_planner(placement, {&typical_bytes, 1}).stacked();
  SOD2_TRY(sod2::validate(placement, out.layout));
  const sod2::dim arena = out.layout.required_bytes(c, bytes).bytes;
  std::printf("arena    %s bytes\n\n", sod2::print(c, arena).c_str());
  // [memory]
  return out;
}

// ---- running at one batch
// ------------------------------------------------------------------------

std::int64_t run(const plan& p, engine::blob& feed, std::vector<float>& input,
                 std::vector<float>& arena) {
  feed.data = input.data();
  feed.columns = feed.dims[1];
  feed.rows = static_cast<std::int64_t>(input.size()) / feed.columns;
  const auto sizes = evaluate(p.sizes, feed.rows);
  const std::size_t count = p.blobs.size();
  std::vector<std::int64_t> offsets(count);
  const std::int64_t bytes = p.layout.evaluate(std::span(sizes).subspan(2 * count), offsets);
  arena.assign(static_cast<std::size_t>(bytes) / sizeof(float), std::nanf(""));
  for (std::size_t i = 0; i < count; ++i) {
    p.blobs[i]->rows = sizes[2 * i];
    p.blobs[i]->columns = sizes[2 * i + 1];
    p.blobs[i]->data = arena.data() + static_cast<std::size_t>(offsets[i]) / sizeof(float);
  }
  for (const engine::layer* l : p.order) engine::run(*l);
  return bytes;
}

std::vector<float> values(std::size_t count, int seed) {
  std::vector<float> out(count);
  for (float& v : out) v = static_cast<float>((seed = (seed * 37 + 11) % 101)) / 50.0F - 1.0F;
  return out;
}

// The same network, written out: join(fc2(rectify(fc1(x))), x).
std::vector<float> plain(const std::vector<float>& x, const std::vector<float>& w1,
                         const std::vector<float>& w2) {
  std::vector<float> out;
  for (std::size_t row = 0; row < x.size(); row += 16) {
    float hidden[24] = {}, narrow[8] = {};
    for (std::size_t k = 0; k < 16; ++k)
      for (std::size_t j = 0; j < 24; ++j) hidden[j] += x[row + k] * w1[k * 24 + j];
    for (std::size_t k = 0; k < 24; ++k)
      for (std::size_t j = 0; j < 8; ++j) narrow[j] += std::max(hidden[k], 0.0F) * w2[k * 8 + j];
    out.insert(out.end(), narrow, narrow + 8);
    for (std::size_t k = 0; k < 16; ++k) out.push_back(x[row + k]);
  }
  return out;
}

}  // namespace

int main() {
  engine::net net;
  engine::blob* const x = net.add_blob("x", {engine::batch, 16});
  engine::blob* const w1 = net.add_blob("w1", {16, 24}, values(16 * 24, 1));
  engine::blob* const w2 = net.add_blob("w2", {24, 8}, values(24 * 8, 2));
  w1->columns = 24;
  w2->columns = 8;
  engine::blob* const wide = net.add_layer("fully_connected", {x, w1}, "wide");
  engine::blob* const hidden = net.add_layer("rectify", {wide}, "hidden");
  engine::blob* const narrow = net.add_layer("fully_connected", {hidden, w2}, "narrow");
  engine::blob* const y = net.add_layer("join", {narrow, x}, "y");
  net.feeds = {x};
  net.results = {y};

  auto planned = make_plan(net);
  if (!planned) {
    std::printf("%s\n", planned.error().text().c_str());
    return 1;
  }
  std::vector<float> arena;
  for (const std::size_t batch : {std::size_t{3}, std::size_t{50}}) {
    std::vector<float> input = values(batch * 16, 3);
    const std::int64_t bytes = run(*planned, *x, input, arena);
    const std::vector<float> want = plain(input, w1->weights, w2->weights);
    if (y->rows * y->columns != static_cast<std::int64_t>(want.size())) return 1;
    for (std::size_t i = 0; i < want.size(); ++i)
      if (!(std::abs(y->data[i] - want[i]) < 1e-4F)) {
        std::printf("batch %zu: element %zu is %f, not %f\n", batch, i,
                    static_cast<double>(y->data[i]), static_cast<double>(want[i]));
        return 1;
      }
    std::printf("batch %2zu: %lld x %lld in an arena of %lld bytes\n", batch,
                static_cast<long long>(y->rows), static_cast<long long>(y->columns),
                static_cast<long long>(bytes));
  }
  return 0;
}
