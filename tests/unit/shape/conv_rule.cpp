// The output formula of a convolution stands in shape/rules/convolution.hpp alone. Here it runs
// over integers, intervals, symbolic dims and compile-time dims.
#include <doctest/doctest.h>

#include <cstdint>
#include <type_traits>

#include <sod2/expr.hpp>
#include <sod2/shape/rules/convolution.hpp>
#include <sod2/shape/static_shape.hpp>

using namespace sod2;

namespace {

struct window {
  std::int64_t kernel, stride, dilation, pads;
  bool ceil_mode;
};

template <class Domain>
constexpr typename Domain::value_type output(Domain& domain, typename Domain::value_type in,
                                             window w) {
  return rules::window_count(domain, in, domain.constant(w.kernel), w.stride, w.dilation, w.pads,
                             w.ceil_mode);
}

// Counts positions one by one: what the formula must give.
std::int64_t by_counting(std::int64_t in, window w) {
  const std::int64_t extent = w.dilation * (w.kernel - 1) + 1;
  std::int64_t n = 0;
  for (std::int64_t at = 0; at + extent <= in + w.pads; at += w.stride) ++n;
  if (w.ceil_mode && n * w.stride < in + w.pads - extent + w.stride &&
      (n - 1) * w.stride + extent < in + w.pads)
    ++n;
  return n;
}

inline constexpr struct Height : symbol<"Height"> {
} height;

// As a rule over compile-time shapes: the same call, while compiling.
template <std::int64_t Kernel, std::int64_t Stride, std::int64_t Pads>
struct window_rule {
  template <class Domain, class Sink, class Out>
  static constexpr errc forward(Domain& domain, Sink&, Out& out,
                                std::span<const typename Domain::value_type> in) {
    for (const auto& d : in) out.push_back(output(domain, d, {Kernel, Stride, 1, Pads, false}));
    return errc::ok;
  }
};
template <std::int64_t Kernel, std::int64_t Stride, std::int64_t Pads, class Shape>
using windows_t = typename ct::shape_result<window_rule<Kernel, Stride, Pads>, Shape>::type;

static_assert(std::is_same_v<windows_t<7, 2, 6, dims<height, 224>>,
                             static_shape<ct::ceildiv<Height, 2>, lit<112>>>);
static_assert(std::is_same_v<windows_t<3, 2, 2, dims<height>>, windows_t<1, 2, 0, dims<height>>>);
static_assert(std::is_same_v<windows_t<3, 1, 2, dims<height>>, dims<height>>);

}  // namespace

TEST_CASE("one convolution formula for integers, intervals and symbols") {
  const window windows[] = {{1, 1, 1, 0, false}, {3, 1, 1, 2, false}, {3, 2, 1, 2, false},
                            {7, 2, 1, 6, false}, {1, 2, 1, 0, false}, {3, 3, 2, 4, false},
                            {2, 2, 1, 0, true},  {3, 2, 1, 0, true}};
  for (const window& w : windows) {
    integer_domain integers;
    interval_domain intervals;
    dim_context context;
    symbolic_domain symbols(context);
    const interval range = output(intervals, interval{7, 200}, w);
    const dim expression = output(symbols, context.symbol("H", {7, 200, 1, 0}), w);
    CHECK(context.bounds(expression) == range);
    for (std::int64_t h = 7; h <= 200; ++h) {
      const std::int64_t concrete = output(integers, h, w);
      REQUIRE(concrete == by_counting(h, w));
      REQUIRE(range.contains(concrete));
      REQUIRE(*evaluate(context, expression, {&h, 1}) == concrete);
    }
  }
}

TEST_CASE("symbolic outputs of the three spellings are one expression") {
  dim_context context;
  symbolic_domain symbols(context);
  const dim h = context.symbol("H");
  const dim wanted = context.ceildiv(h, 2);
  CHECK(output(symbols, h, {7, 2, 1, 6, false}) == wanted);
  CHECK(output(symbols, h, {3, 2, 1, 2, false}) == wanted);
  CHECK(output(symbols, h, {1, 2, 1, 0, false}) == wanted);
}
