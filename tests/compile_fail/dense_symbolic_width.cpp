// Weights have a fixed size, so that the dim they meet must be a literal.
// expect: error: static assertion failed.*sod2: dense requires a literal last dimension
// expect: weights<.*dense_layer<64>, .*static_shape<Batch, Len>, Len>::fixed
#include <sod2/model/network.hpp>

inline constexpr struct Batch : sod2::symbol<"Batch"> {
} batch;
inline constexpr struct Len : sod2::symbol<"Len"> {
} len;

using namespace sod2::model;

#ifdef SOD2_EXPECT_FAIL
using input = sod2::dims<batch, len>;
#else
using input = sod2::dims<batch, len, 32>;
#endif
using output = decltype(sequential(dense<64>, relu)(input{}))::output;
