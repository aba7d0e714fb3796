// A reshape to another number of elements: one sentence, with both shapes and both counts.
// expect: error: static assertion failed.*sod2: reshape must keep the number of elements
// expect: element_count<.*Batch, .*<64>.*Batch, .*<30>, .*<2>.*<64>, Batch>.*<60>, Batch>.*equal
#include <sod2/model/network.hpp>

inline constexpr struct Batch : sod2::symbol<"Batch"> {
} batch;

using namespace sod2::model;
using sod2::dims;

#ifdef SOD2_EXPECT_FAIL
constexpr auto net = sequential(dense<64>, reshape<dims<batch, 30, 2>>, relu, flatten);
#else
constexpr auto net = sequential(dense<64>, reshape<dims<batch, 32, 2>>, relu, flatten);
#endif
using output = decltype(net(dims<batch, 128>{}))::output;
