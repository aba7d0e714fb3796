// Shapes of compile-time networks, as exact types.
#include <type_traits>

#include <sod2/model/network.hpp>

namespace {

using namespace sod2;
using namespace sod2::model;

inline constexpr struct Batch : symbol<"Batch"> {
} batch;
inline constexpr struct Height : symbol<"Height", 32, 640, 32> {
} height;
inline constexpr struct Width : symbol<"Width"> {
} width;

constexpr auto net = sequential(dense<64>, relu, reshape<dims<batch, 32, 2>>);
using made = decltype(net(dims<batch, 128>{}));
static_assert(std::is_same_v<made::shape<0>, static_shape<Batch, lit<128>>>);
static_assert(std::is_same_v<made::shape<1>, static_shape<Batch, lit<64>>>);
static_assert(std::is_same_v<made::shape<2>, static_shape<Batch, lit<64>>>);
static_assert(std::is_same_v<made::output, static_shape<Batch, lit<32>, lit<2>>>);
static_assert(std::is_same_v<made::output, dims<batch, 32, 2>>);
static_assert(net.weight_count<made::input>() == 129 * 64);
static_assert(std::is_empty_v<decltype(net)>);

// Sizes that are computed become named types again.
constexpr auto stem =
    sequential(conv2d<16, 3, 2, 1>, relu, conv2d<32, 3, 2, 1>, residual(conv2d<32, 3, 1, 1>, relu));
using features = decltype(stem(dims<batch, 3, height, width>{}))::output;
static_assert(
    std::is_same_v<features,
                   static_shape<Batch, lit<32>, ct::floordiv<Height, 4>, ct::ceildiv<Width, 4>>>);
using flat = output_t<decltype(sequential(flatten)), features>;
// 32 * (Height / 4) is 8 * Height, since 32 divides Height.
static_assert(
    std::is_same_v<flat, static_shape<Batch, prod<lit<8>, Height, ct::ceildiv<Width, 4>>>>);

// -1 is inferred, networks nest.
using inferred =
    decltype(sequential(reshape<dims<batch, -1, 8>>, softmax)(dims<batch, 4, width, 16>{}))::output;
static_assert(std::is_same_v<inferred, static_shape<Batch, prod<lit<8>, Width>, lit<8>>>);
using nested =
    decltype(sequential(net, reshape<dims<batch * lit<2>{}, 32>>)(dims<batch, 128>{}))::output;
static_assert(std::is_same_v<nested, static_shape<prod<lit<2>, Batch>, lit<32>>>);

}  // namespace
