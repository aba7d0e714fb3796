// Compile-time dims: exact types of computed sizes.
#include <type_traits>

#include <sod2/expr/static_dim.hpp>

namespace {

inline constexpr struct Batch : sod2::symbol<"Batch"> {
} batch;
inline constexpr struct Len : sod2::symbol<"Len", 1, 384> {
} len;
inline constexpr struct Height : sod2::symbol<"Height", 32, 640, 32> {
} height;
inline constexpr struct Odd : sod2::symbol<"Odd", 1, 99, 2, 1> {
} odd;

template <std::int64_t V>
constexpr sod2::lit<V> c{};

namespace ct = sod2::ct;
using sod2::lit;
using sod2::prod;
using sod2::sum;

template <class Expected, class Actual>
constexpr bool is(Actual) {
  return std::is_same_v<Expected, Actual>;
}

static_assert(is<sum<prod<lit<3>, Batch, Len>, lit<7>>>(c<3> * batch * len + c<7>));
static_assert(is<sum<prod<lit<3>, Batch, Len>, lit<7>>>(c<7> + len * (batch + batch + batch)));
static_assert(is<Batch>(batch + len - len));
static_assert(is<lit<0>>(batch - batch));
static_assert(is<sod2::power<Len, 2>>(len * len));
static_assert(is<sum<sod2::power<Batch, 2>, prod<lit<-1>, sod2::power<Len, 2>>>>((batch + len) *
                                                                                 (batch - len)));
static_assert(batch * len == len * batch);
static_assert(!(batch == len));

// The three spellings of ceil(H/2), and their nesting.
static_assert(is<ct::ceildiv<Len, 2>>(floordiv(len - c<1>, c<2>) + c<1>));
static_assert(is<ct::ceildiv<Len, 2>>(floordiv(len + c<6> - c<7>, c<2>) + c<1>));
static_assert(is<ct::ceildiv<Len, 4>>(ceildiv(ceildiv(len, c<2>), c<2>)));
static_assert(is<sum<Len, prod<lit<-3>, ct::floordiv<Len, 3>>>>(mod(len, c<3>)));
static_assert(is<Len>(floordiv(len, c<2>) + ceildiv(len, c<2>)));

// Facts of symbols take part: ranges decide, strides divide.
static_assert(is<Len>(min(len, c<512>)));
static_assert(is<ct::min<Len, lit<100>>>(min(c<100>, len)) ||
              is<ct::min<lit<100>, Len>>(min(c<100>, len)));
static_assert(is<ct::floordiv<Height, 32>>(ceildiv(height, c<32>)));
static_assert(is<ct::floordiv<Height, 16>>(c<2> * ceildiv(height, c<32>)));
static_assert(is<Height>(align_up(height, c<32>)));
static_assert(is<lit<0>>(mod(height, c<8>)));
static_assert(is<lit<1>>(mod(odd, c<2>)));
static_assert(is<ct::floordiv<sum<Odd, lit<-1>>, 2>>(floordiv(odd, c<2>)));
static_assert(decide_le(len, c<384>) == sod2::tri::yes);
static_assert(decide_eq(len, c<385>) == sod2::tri::no);
static_assert(decide_le(len, batch) == sod2::tri::unknown);

static_assert(is<Len>(div_exact(batch * len * c<6>, batch* c<6>)));
static_assert(is<ct::broadcast<Batch, Len>>(broadcast(len, batch)));
static_assert(is<Len>(broadcast(len, c<1>)));
static_assert(is<ct::unknown>(c<INT64_MAX> * c<2>));

// Hand-written names become canonical; entries of shapes are dims or integers.
static_assert(std::is_same_v<sod2::canonical_t<sum<lit<1>, prod<Len, Batch>, lit<2>>>,
                             sum<prod<Batch, Len>, lit<3>>>);
static_assert(std::is_same_v<sod2::static_dim_t<batch>, Batch>);
static_assert(std::is_same_v<sod2::static_dim_t<32>, lit<32>>);
static_assert(std::is_same_v<sod2::static_dim_t<batch * len>, prod<Batch, Len>>);
static_assert(std::is_empty_v<decltype(batch * len + c<2>)>);

// Mixed with sizes of the run: what is static stays so.
static_assert(is<lit<0>>(c<0> * std::int64_t{5}));
static_assert(is<lit<0>>(mod(std::int64_t{5}, c<1>)));
static_assert(c<3> * std::int64_t{5} + c<1> == 16);
constexpr bool mixed_with_a_context() {
  sod2::dim_context context;
  const sod2::dim_value h{&context, context.symbol("H")};
  const sod2::dim_value size = batch * h + len * c<2>;
  const sod2::dim b = context.symbol("Batch"), l = context.symbol("Len");
  return size.d == context.add(context.mul(b, h.d), context.mul(l, 2)) && is<lit<0>>(c<0> * h) &&
         is<lit<0>>(mod(h, c<1>)) && context.bounds(l).hi == 384;
}
static_assert(mixed_with_a_context());

}  // namespace
