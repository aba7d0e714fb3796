// Compile-time shapes: spelling, queries, rules over them.
#include <type_traits>

#include <sod2/shape/rules/broadcast.hpp>
#include <sod2/shape/rules/product.hpp>
#include <sod2/shape/static_shape.hpp>

namespace {

using namespace sod2;

inline constexpr struct Batch : symbol<"Batch"> {
} batch;
inline constexpr struct Len : symbol<"Len", 1, 384> {
} len;

using shape = dims<batch, 32, len * lit<2>{}>;
static_assert(std::is_same_v<shape, static_shape<Batch, lit<32>, prod<lit<2>, Len>>>);
static_assert(shape::rank == 3 && dims<>::rank == 0);
static_assert(std::is_same_v<shape::dim<1>, lit<32>>);
static_assert(std::is_same_v<shape::symbols, ct::symbol_set<Batch, Len>>);
static_assert(std::is_same_v<dims<len, batch>::symbols, ct::symbol_set<Batch, Len>>);
static_assert(std::is_same_v<element_count_t<shape>, prod<lit<64>, Batch, Len>>);
static_assert(std::is_same_v<element_count_t<dims<>>, lit<1>>);
static_assert(dims<batch * len, 3>{} == dims<len * batch, 3>{});
static_assert(!(dims<batch, 3>{} == dims<batch, 4>{}));
static_assert(std::is_empty_v<shape>);

// The rules of shape/rules, unchanged.
struct broadcast_rule {
  template <class Domain, class Sink, class Out>
  static constexpr errc forward(Domain& domain, Sink& sink, Out& out,
                                std::span<const typename Domain::value_type> a,
                                std::span<const typename Domain::value_type> b) {
    return rules::broadcast_shapes(domain, sink, a, b, out);
  }
};
struct matmul_rule {
  template <class Domain, class Sink, class Out>
  static constexpr errc forward(Domain& domain, Sink& sink, Out& out,
                                std::span<const typename Domain::value_type> a,
                                std::span<const typename Domain::value_type> b) {
    return rules::matmul(domain, sink, a, b, out);
  }
};
template <class Rule, class A, class B>
using made = ct::shape_result<Rule, A, B>;

static_assert(std::is_same_v<made<broadcast_rule, dims<batch, 1, len>, dims<7, 1>>::type,
                             dims<batch, 7, len>>);
static_assert(made<broadcast_rule, dims<3>, dims<4>>::code == errc::broadcast);
// Neither is proved to be 1, nor are they proved equal.
static_assert(made<broadcast_rule, dims<batch>, dims<len>>::code == errc::broadcast);
static_assert(std::is_same_v<made<matmul_rule, dims<batch, len, 64>, dims<64, len>>::type,
                             dims<batch, len, len>>);
static_assert(made<matmul_rule, dims<batch, 64>, dims<32, 8>>::code == errc::inner_dims);

}  // namespace
