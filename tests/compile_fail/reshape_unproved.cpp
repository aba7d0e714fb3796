// Two symbols are not taken for equal: what compiles is proved.
// expect: error: static assertion failed.*sod2: reshape must keep the number of elements
// expect: element_count<.*<Batch, Len>.*<Batch, Other>.*<Batch, Len>.*<Batch, Other>.*equal
#include <sod2/model/network.hpp>

inline constexpr struct Batch : sod2::symbol<"Batch"> {
} batch;
inline constexpr struct Len : sod2::symbol<"Len"> {
} len;
inline constexpr struct Other : sod2::symbol<"Other"> {
} other;

using namespace sod2::model;
using sod2::dims;

#ifdef SOD2_EXPECT_FAIL
constexpr auto net = sequential(reshape<dims<batch, other>>);
#else
constexpr auto net = sequential(reshape<dims<batch, len>>);
#endif
using output = decltype(net(dims<batch, len>{}))::output;
