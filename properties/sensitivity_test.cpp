// Every law of these families holds for any answer its bounds admit, and is violated by the
// deviation it exists for: a law that nothing turns red would not be worth its time, and one that a
// right kernel turns red would be worth less.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "properties/truthful_test.hpp"

namespace attest {
namespace {

using testing::Question;
using testing::Slip;
using testing::TruthfulKernel;
using testing::try_law;
using testing::Twist;

/// What a kernel does wrong: to its question, or to its answer.
struct Deviation {
    Twist twist = nullptr;
    Slip slip = nullptr;
    std::int64_t tile = 0;  ///< declared, and not computed
};

Deviation asks(Twist twist) {
    return {std::move(twist), nullptr};
}
Deviation answers(Slip slip) {
    return {nullptr, std::move(slip)};
}
Deviation answers_times(double factor) {
    return answers([factor](const ExpectedElement& e) { return e.value * factor; });
}
Deviation caps(double softcap) {
    return asks([softcap](Question& q) { q.problem.softcap = softcap; });
}

/// The last key scores as if it were zero: what a tail read as padding does.
void blank_last_key(Question& q) {
    const Problem& p = q.problem;
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t g = 0; g < p.heads_kv; ++g)
            for (std::int64_t c = 0; c < p.dim_qk; ++c)
                q.inputs[Role::k].put(b, g, p.len_kv - 1, c, 0);
}

void ignore_masks(Question& q) {
    Mask mask;
    mask.lens_q = q.problem.mask.lens_q;
    q.problem.mask = mask;
}

/// All heads read the queries of the first.
void one_head_for_all(Question& q) {
    const Problem& p = q.problem;
    Tensor& queries = q.inputs[Role::q];
    const std::int64_t head = p.len_q * p.dim_qk, sequence = p.heads_q * head;
    for (std::int64_t at = 0; at < queries.size(); ++at)
        queries.set(at, queries.get(at / sequence * sequence + at % head));
}

/// Queries over the square of their size and the reciprocal of the scale: what should warm cools.
void invert_temperature(Question& q) {
    Tensor& queries = q.inputs[Role::q];
    double most = 0;
    for (std::int64_t at = 0; at < queries.size(); ++at)
        most = std::max(most, std::abs(queries.get(at)));
    for (std::int64_t at = 0; at < queries.size() && most > 0; ++at)
        queries.set(at, queries.get(at) / (most * most));
    q.problem.scale = 1 / (4 * effective_scale(q.problem));
}

void clamp_biases(Question& q) {
    Tensor& mask = q.inputs[Role::mask];
    for (std::int64_t at = 0; at < mask.size(); ++at) mask.set(at, std::min(mask.get(at), 4.0));
}

double not_a_number(const ExpectedElement&) {
    return std::numeric_limits<double>::quiet_NaN();
}

std::map<std::string, Deviation> deviations() {
    return {
        {"reference.output", asks(blank_last_key)},
        {"reference.lse", asks(blank_last_key)},
        {"reference.decode", asks(blank_last_key)},
        {"probability.row_sum", answers_times(1.02)},
        {"probability.nonnegative", answers_times(-1)},
        {"reference.structure", {nullptr, nullptr, 64}},
        {"reference.rounding", answers_times(0.999)},
        {"reference.probable", answers_times(1.02)},
        {"reference.error_budget", answers_times(1.001)},
        {"probability.masked_zero", asks(ignore_masks)},
        {"probability.order",
         asks([](Question& q) { q.problem.scale = -effective_scale(q.problem); })},
        {"probability.single_key", answers_times(1.02)},
        {"convex_hull.box", answers_times(3)},
        {"convex_hull.support", answers_times(3)},
        {"convex_hull.membership", answers_times(3)},
        {"rank.scores", caps(0.5)},
        {"rank.bilinear", asks([](Question& q) { q.problem.scale = 1; })},
        {"rank.heads", asks(one_head_for_all)},
        {"variance.scaled",
         asks([](Question& q) { q.problem.scale = effective_scale(q.problem) / 4; })},
        {"variance.unscaled", asks([](Question& q) { q.problem.scale = 3; })},
        {"variance.dimension_free",
         asks([](Question& q) { q.problem.scale = 1 / static_cast<double>(q.problem.dim_qk); })},
        {"jacobian.finite", caps(1)},
        {"jacobian.saturation", caps(4)},
        {"entropy.monotone", asks(invert_temperature)},
        {"entropy.derivative", caps(0.25)},
        {"entropy.limits", asks(blank_last_key)},
        {"invariance.value_linear",
         answers([](const ExpectedElement& e) { return e.value + 0.25; })},
        {"invariance.key_shift", caps(5)},
        {"invariance.bias_shift", asks(clamp_biases)},
        {"invariance.scale_exchange", asks([](Question& q) { q.problem.scale.reset(); })},
        {"invariance.duplicate", asks(blank_last_key)},
        {"invariance.neutral_key", asks(ignore_masks)},
        {"invariance.kernel_regression", caps(0.5)},
        {"partition.merge", answers_times(1 / std::log(2.0))},
        {"partition.tile_edges", asks(blank_last_key)},
        {"partition.order", asks(blank_last_key)},
        {"partition.stability", answers(not_a_number)},
    };
}

const std::set<std::string> families = {"reference", "probability", "convex_hull",
                                        "rank",      "variance",    "jacobian",
                                        "entropy",   "invariance",  "partition"};

class EveryLaw : public ::testing::TestWithParam<std::string> {};
class LawOfBounds : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryLaw, IsViolatedByItsDeviation) {
    const Property* law = find_property(GetParam());
    ASSERT_NE(law, nullptr);
    const Deviation deviation = deviations().at(GetParam());
    TruthfulKernel kernel({}, deviation.twist, deviation.slip);
    kernel.claim_tile(deviation.tile);
    const auto tried = try_law(kernel, *law, 60);
    EXPECT_GT(tried.violated, 0) << "of " << tried.judged;
}

/// Laws that know more of a kernel than its bounds: that weights are never negative, that zero
/// times anything is zero, that one weight over itself is one; what it declared beside them, or how
/// errors are spread within them.
const std::set<std::string> knowing = {"probability.nonnegative", "probability.masked_zero",
                                       "probability.single_key",  "convex_hull.box",
                                       "convex_hull.support",     "convex_hull.membership",
                                       "reference.structure",     "reference.rounding",
                                       "reference.probable",      "reference.error_budget"};

// Half of all answers go to the very edge of the bound, and no two calls agree.
TEST_P(LawOfBounds, HoldsForEveryAnswerWithinThem) {
    const Property* law = find_property(GetParam());
    ASSERT_NE(law, nullptr);
    std::uint64_t calls = 0;
    const auto slip = [&](const ExpectedElement& e) {
        const double share = counter_uniform(23, 0, ++calls);
        const double radius = e.bound - e.error;
        const double side = share < 0.25 ? -1 : share < 0.5 ? 1 : 4 * share - 3;
        return radius > 0 ? e.value + side * radius * (1 - 0x1p-40) : e.value;
    };
    TruthfulKernel kernel({}, nullptr, slip);
    const auto tried = try_law(kernel, *law, 100);
    EXPECT_EQ(tried.violated, 0) << tried.example;
    EXPECT_GT(tried.judged, 50);
}

std::vector<std::string> names(const std::set<std::string>& but) {
    std::vector<std::string> all;
    for (const auto& [name, deviation] : deviations())
        if (!but.contains(name)) all.push_back(name);
    return all;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& parameter) {
    std::string name = parameter.param;
    name[name.find('.')] = '_';
    return name;
}

INSTANTIATE_TEST_SUITE_P(Families, EveryLaw, ::testing::ValuesIn(names({})), test_name);
INSTANTIATE_TEST_SUITE_P(Families, LawOfBounds, ::testing::ValuesIn(names(knowing)), test_name);

// PyTorch's exp(0) is 1 - 5e-5 on a CPU, in f16 and bf16: a tie then goes the other way.
TEST(Sensitivity, ACoarseExpIsNoWrongRounding) {
    const auto violated = [](double ulp, double factor) {
        TruthfulKernel kernel({}, nullptr, answers_times(factor).slip);
        kernel.claim_exp(ulp);
        return try_law(kernel, *find_property("reference.rounding"), 60).violated;
    };
    EXPECT_GT(violated(2, 1 + 5.3e-5), 0);
    EXPECT_EQ(violated(1000, 1 + 5.3e-5), 0);
    EXPECT_GT(violated(1000, 1 + 2e-3), 0);
}

TEST(Sensitivity, KnowsADeviationForEveryLawOfItsFamilies) {
    const auto known = deviations();
    for (const Property& law : catalogue()) {
        if (families.contains(law.family())) {
            EXPECT_EQ(known.count(law.id), 1u) << law.id;
        }
    }
}

}  // namespace
}  // namespace attest
