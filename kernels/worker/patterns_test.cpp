// What a NaN tells of the memory that it came from.

#include "kernels/worker/patterns.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "kernels/worker/arena.hpp"

namespace attest::worker {
namespace {

template <typename Real, typename Bits>
Real held(std::uint16_t pattern) {
    Bits bits = 0;
    for (std::size_t at = 0; at < sizeof(Bits); at += 2)
        bits |= static_cast<Bits>(pattern) << 8 * at;
    return std::bit_cast<Real>(bits);
}

Tensor one_number(ElementType type, std::uint64_t bits) {
    Tensor tensor(type, {1, 1, 2, 1});
    tensor.set(0, 1);
    tensor.set_bits(1, bits);
    return tensor;
}

bool found(float x, std::uint16_t pattern) {
    return holds_nan_of(one_number(ElementType::f32, std::bit_cast<std::uint32_t>(x)), pattern);
}

TEST(Patterns, ANanComputedWithOneIsKnown) {
    for (std::uint64_t call = 0; call < 2; ++call)
        for (std::uint64_t seed = 0; seed < 6; ++seed) {
            const Variant v = variant_of(call, seed, false);
            volatile float single = held<float, std::uint32_t>(v.workspace);
            volatile double wide = held<double, std::uint64_t>(v.workspace);
            for (const float x :
                 {static_cast<float>(single), single * -2.0f + 3.0f, 0.0f / single, -single,
                  static_cast<float>(wide), static_cast<float>(wide * 0.5 - 7)}) {
                EXPECT_TRUE(found(x, v.workspace));
                EXPECT_FALSE(found(x, v.poison) || found(x, v.canary));
            }
            const auto bits = std::bit_cast<std::uint64_t>(wide * -3);
            EXPECT_TRUE(holds_nan_of(one_number(ElementType::f64, bits), v.workspace));
            EXPECT_FALSE(holds_nan_of(one_number(ElementType::f64, bits), v.poison));
        }
}

TEST(Patterns, OtherNumbersAreNone) {
    const std::uint16_t pattern = variant_of(0, 0, false).workspace;
    volatile float zero = 0;
    for (const float x : {1.0f, zero / zero, 1 / zero, -zero}) EXPECT_FALSE(found(x, pattern));
}

}  // namespace
}  // namespace attest::worker
