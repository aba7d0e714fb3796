// A convolution over two axes takes four dims.
// expect: error: static assertion failed.*sod2: ranks do not agree
// expect: rank<.*conv2d_layer<8, 3, 1, 1>, .*<Batch, .*lit<3>, .*lit<32> ?> ?>::accepted
#include <sod2/model/network.hpp>

inline constexpr struct Batch : sod2::symbol<"Batch"> {
} batch;

using namespace sod2::model;

#ifdef SOD2_EXPECT_FAIL
using input = sod2::dims<batch, 3, 32>;
#else
using input = sod2::dims<batch, 3, 32, 32>;
#endif
using output = decltype(sequential(conv2d<8, 3, 1, 1>, relu)(input{}))::output;
