#include "reference/problem/tensor.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "reference/problem/counter.hpp"
#include "reference/problem/errors.hpp"

namespace attest {
namespace {

constexpr ElementType all_types[] = {ElementType::f64,  ElementType::f32, ElementType::f16,
                                     ElementType::bf16, ElementType::i32, ElementType::u8};

TEST(Tensor, starts_at_zero_with_its_size_in_bytes) {
    for (const ElementType type : all_types) {
        const Tensor tensor(type, {2, 3, 5, 7});
        EXPECT_EQ(tensor.size(), 210);
        EXPECT_EQ(tensor.bytes().size(), 210 * size_of(type));
        for (const double x : tensor.to_doubles()) EXPECT_EQ(x, 0.0);
    }
    EXPECT_EQ(Tensor(ElementType::f32, {0, 3, 5, 7}).size(), 0);
    EXPECT_THROW(Tensor(ElementType::f32, {1 << 30, 1 << 30, 1 << 30, 1}), InternalError);
    EXPECT_THROW(Tensor(ElementType::f32, {1, -1, 1, 1}), InternalError);
}

TEST(Tensor, writes_round_and_reads_widen) {
    Tensor tensor(ElementType::bf16, {1, 1, 1, 2});
    tensor.set(0, 0.3);
    tensor.put(0, 0, 0, 1, -1e300);
    EXPECT_EQ(tensor.get(0), round_to(0.3, Precision::bf16));
    EXPECT_TRUE(std::isinf(tensor.at(0, 0, 0, 1)));
    EXPECT_EQ(tensor.bits(0), 0x3e9au);
    tensor.set_bits(0, 0x3f80);
    EXPECT_EQ(tensor.get(0), 1.0);
}

/// The fast paths of to_doubles against the bit code, over every pattern; NaN by its bits.
/// One is shifted by hand, the other by the machine.
TEST(Tensor, writes_what_encode_says) {
    for (const Precision format :
         {Precision::f64, Precision::f32, Precision::f16, Precision::bf16}) {
        Tensor tensor(element_type(format), {1, 1, 1, 1});
        for (std::uint64_t i = 0; i < 200'000; ++i) {
            // Half of them about the range of f32, its subnormals and its overflow among them.
            std::uint64_t wide = counter_bits(8, 0, i);
            if (i % 2 == 0) wide = (wide & ~(std::uint64_t{0x7ff} << 52)) | ((860 + i % 300) << 52);
            const auto value = std::bit_cast<double>(wide);
            tensor.set(0, value);
            ASSERT_EQ(tensor.bits(0), encode(value, format)) << value;
        }
    }
}

TEST(Tensor, narrow_writes_many_as_set_writes_one) {
    for (const ElementType type : {ElementType::f64, ElementType::f32, ElementType::f16,
                                   ElementType::bf16, ElementType::i32, ElementType::u8}) {
        Tensor one(type, {1, 1, 1, 1000}), many = one;
        std::vector<double> values;
        for (std::uint64_t i = 0; i < 995; ++i) {
            const std::uint64_t wide = counter_bits(9, 0, i);
            values.push_back(type >= ElementType::i32 ? static_cast<double>(wide % 256)
                                                      : std::bit_cast<double>(wide));
            one.set(static_cast<std::int64_t>(i) + 3, values.back());
        }
        many.narrow(3, values);
        EXPECT_EQ(many, one) << name(type);
    }
}

TEST(Tensor, to_doubles_agrees_with_get_on_every_sixteen_bit_pattern) {
    for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
        Tensor tensor(type, {1, 1, 1, 0x10000});
        for (std::int64_t i = 0; i < tensor.size(); ++i)
            tensor.set_bits(i, static_cast<std::uint64_t>(i));
        const std::vector<double> wide = tensor.to_doubles();
        for (std::int64_t i = 0; i < tensor.size(); ++i) {
            const double fast = wide[static_cast<std::size_t>(i)], slow = tensor.get(i);
            if (std::isnan(slow))
                ASSERT_TRUE(std::isnan(fast)) << i;
            else
                ASSERT_EQ(std::bit_cast<std::uint64_t>(fast), std::bit_cast<std::uint64_t>(slow))
                    << i;
        }
    }
}

TEST(Tensor, integers_are_exact_and_never_wrap) {
    Tensor whole(ElementType::i32, {2, 1, 1, 1});
    whole.set(0, -1);
    whole.set(1, 2147483647);
    EXPECT_EQ(whole.to_doubles(), (std::vector<double>{-1, 2147483647}));
    EXPECT_EQ(whole.bits(0), 0xffffffffu);
    EXPECT_THROW(whole.set(0, 2147483648.0), InternalError);
    EXPECT_THROW(whole.set(0, std::nan("")), InternalError);
    Tensor byte(ElementType::u8, {1, 1, 1, 1});
    byte.set(0, 255);
    EXPECT_EQ(byte.get(0), 255);
    EXPECT_THROW(byte.set(0, 256), InternalError);
    EXPECT_THROW(byte.set(0, -1), InternalError);
}

TEST(Tensor, equality_is_of_type_shape_and_bits) {
    Tensor a(ElementType::f32, {1, 1, 1, 2}), b = a;
    EXPECT_EQ(a, b);
    b.set(0, -0.0);
    EXPECT_NE(a, b);
    EXPECT_NE(a, Tensor(ElementType::f32, {1, 1, 2, 1}));
    EXPECT_NE(a, Tensor(ElementType::i32, {1, 1, 1, 2}));
}

TEST(Roles, have_distinct_names) {
    for (std::size_t i = 0; i < role_count; ++i)
        for (std::size_t j = 0; j < i; ++j)
            EXPECT_NE(name(static_cast<Role>(i)), name(static_cast<Role>(j)));
    EXPECT_EQ(name(Role::q), "q");
    EXPECT_EQ(name(Role::cu_seqlens_kv), "cu_seqlens_kv");
    EXPECT_EQ(name(Role::dropout_keep), "dropout_keep");
}

}  // namespace
}  // namespace attest
