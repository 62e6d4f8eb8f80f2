#include "properties/law/compare.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <numeric>

#include "reference/problem/errors.hpp"

namespace attest::law {
namespace {

Tensor counted(const Shape& shape) {
    Tensor tensor(ElementType::f32, shape);
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i));
    return tensor;
}

TEST(Compare, GatherTakesSlicesRepetitionsAndPermutationsAlongEveryAxis) {
    const Tensor tensor = counted({2, 3, 4, 5});
    for (int axis = 0; axis < 4; ++axis) {
        const std::int64_t extent = tensor.shape()[static_cast<std::size_t>(axis)];
        const std::vector<std::int64_t> from = {extent - 1, 0, extent - 1};
        const Tensor got = gather(tensor, axis, from);
        for (std::int64_t flat = 0; flat < got.size(); ++flat) {
            Shape at = index_of(got.shape(), flat);
            auto& i = at[static_cast<std::size_t>(axis)];
            i = from[static_cast<std::size_t>(i)];
            EXPECT_EQ(got.get(flat), tensor.at(at[0], at[1], at[2], at[3]));
        }
    }
    EXPECT_EQ(gather(tensor, 2, {}).size(), 0);
    EXPECT_THROW(gather(tensor, 2, {4}), InternalError);
}

RC_GTEST_PROP(Compare, GatherByAPermutationAndItsInverseIsTheIdentity, ()) {
    const int axis = *rc::gen::inRange(0, 4);
    const Tensor tensor = counted({2, 3, 4, 5});
    std::vector<std::int64_t> order(
        static_cast<std::size_t>(tensor.shape()[static_cast<std::size_t>(axis)]));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
    std::vector<std::int64_t> back(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    RC_ASSERT(gather(gather(tensor, axis, order), axis, back) == tensor);
}

TEST(Compare, NaNsAreOneAndZerosAreOneAndNothingElseIs) {
    Tensor a(ElementType::f32, {1, 1, 1, 4}), b = a;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    a.set(0, nan);
    b.set_bits(0, 0xffc12345u);  // another payload, another sign
    a.set(1, 0.0);
    b.set(1, -0.0);
    EXPECT_FALSE(first_difference(a, b).has_value());
    a.set(2, 1.0);
    b.set_bits(2, a.bits(2) + 1);  // one ulp
    EXPECT_EQ(first_difference(a, b), 2);
    b.set(2, nan);
    EXPECT_EQ(first_difference(a, b), 2);
    EXPECT_THROW(first_difference(a, counted({1, 1, 1, 3})), InternalError);
}

TEST(Compare, SignsFlipTheSignBitAlone) {
    const Tensor tensor = counted({1, 1, 2, 3});
    const Tensor flipped = with_signs(tensor, {1, -1, 1});
    for (std::int64_t i = 0; i < 6; ++i)
        EXPECT_EQ(flipped.get(i), (i % 3 == 1 ? -1 : 1) * static_cast<double>(i));
    EXPECT_EQ(with_signs(flipped, {1, -1, 1}).bits(4), tensor.bits(4));
}

TEST(Compare, ARowIsNamedByWhatThereIsSeveralOf) {
    Problem problem;
    problem.len_q = 8;
    EXPECT_EQ(name_of(problem, {0, 0, 3}), "query 3");
    problem.heads_q = 2;
    EXPECT_EQ(name_of(problem, {0, 1, 3}), "query 3 of head 1");
    problem.batch = 2;
    EXPECT_EQ(name_of(problem, {1, 1, 3}), "query 3 of head 1 of sequence 1");
}

}  // namespace
}  // namespace attest::law
