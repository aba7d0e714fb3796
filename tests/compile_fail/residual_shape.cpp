// The branch of a residual block that does not keep the shape.
// expect: error: static assertion failed.*sod2: dimensions do not agree
// expect: shapes<.*Batch, .*<16>, Height, .*<8>.*Batch, .*<16>, .*ceildiv<Height, 2>, .*<4>.*equal
#include <sod2/model/network.hpp>

inline constexpr struct Batch : sod2::symbol<"Batch"> {
} batch;
inline constexpr struct Height : sod2::symbol<"Height"> {
} height;

using namespace sod2::model;
using sod2::dims;

#ifdef SOD2_EXPECT_FAIL
constexpr auto net = residual(conv2d<16, 3, 2, 1>, relu);
#else
constexpr auto net = residual(conv2d<16, 3, 1, 1>, relu);
#endif
using output = decltype(sequential(net, relu)(dims<batch, 16, height, 8>{}))::output;
