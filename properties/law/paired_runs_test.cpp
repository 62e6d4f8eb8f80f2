#include "properties/law/paired_runs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/problem/inputs.hpp"

namespace attest::law {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(Admitted, IsTheIntervalRoundedToTheFormat) {
    const Admitted half = admitted({1.0, 0, 1e-4}, Precision::f16);
    EXPECT_TRUE(half.bounded);
    EXPECT_EQ(half.low, 1.0);  // 1e-4 is below a quarter of an ulp of 1 in f16
    EXPECT_EQ(half.high, 1.0);
    const Admitted single = admitted({1.0, 0, 1e-4}, Precision::f32);
    EXPECT_LT(single.low, 1 - 0.9e-4);
    EXPECT_GT(single.high, 1 + 0.9e-4);
    EXPECT_FALSE(admitted({1.0, 0, infinite}, Precision::f32).bounded);
    EXPECT_FALSE(admitted({nan, 0, 0}, Precision::f32).bounded);
    EXPECT_FALSE(admitted({-infinite, 0, 0}, Precision::f32).bounded);
}

TEST(CertainChange, IsTheDistanceOfIntervalsThatDoNotMeet) {
    const Admitted low{1, 2, true}, high{5, 7, true}, middle{2, 6, true}, unknown{};
    EXPECT_EQ(certain_change(low, high), 3);
    EXPECT_EQ(certain_change(high, low), -3);
    EXPECT_EQ(certain_change(low, middle), 0);
    EXPECT_EQ(certain_change(low, unknown), 0);
}

TEST(Contrast, TellsNoChangeFromAWrongOneAndCountsNaNAsNone) {
    Contrast change;
    change.expected = 10;  // the references differ by 10, of which 2 may be rounding
    change.certain = 8;
    const auto with = [&](double observed) {
        change.observed = observed;
        return change;
    };
    EXPECT_TRUE(with(9).shown());
    EXPECT_TRUE(with(8).shown());
    EXPECT_FALSE(with(7.9).shown());
    EXPECT_FALSE(with(nan).shown());
    EXPECT_FALSE(with(9).absent());
    EXPECT_FALSE(with(5).absent());  // wrong, but not absent
    EXPECT_TRUE(with(2).absent());
    EXPECT_TRUE(with(0).absent());
    EXPECT_TRUE(with(-1).absent());
    EXPECT_TRUE(with(nan).absent());
    EXPECT_FALSE(with(0.1).reversed());
    EXPECT_TRUE(with(0).reversed());
    EXPECT_TRUE(with(-9).reversed());
    EXPECT_TRUE(with(nan).reversed());
    change.certain = -8;
    change.expected = -10;
    EXPECT_TRUE(with(-8).shown());
    EXPECT_FALSE(with(8).shown());
    EXPECT_TRUE(with(1).reversed());
}

/// A kernel that gives the same numbers to whoever asks, and references of a fixed bound.
class FixedTrial final : public Trial {
public:
    FixedTrial() {
        tried_.problem.dim_qk = 2;
        inputs_ = make_inputs(tried_);
        answer.put(Role::o, Tensor(ElementType::f32, {1, 1, 1, 2}));
        answer.put(Role::lse, Tensor(ElementType::f32, {1, 1, 1, 1}));
        observed_ = answer;
        truth.output_shape = {1, 1, 1, 2};
        truth.output = {{0, 0, 1e-3}, {0, 0, 1e-3}};
        truth.lse = {{0, 0, 1e-3}};
        truth.row_empty = {0};
    }
    const Case& tried() const override { return tried_; }
    const TensorSet& inputs() const override { return inputs_; }
    const Dialect& dialect() const override { return dialect_; }
    const Numerics& numerics() const override { return numerics_; }
    const TensorSet& observed() const override { return observed_; }
    TensorSet run(const Problem&, const TensorSet&) const override { return answer; }
    TensorSet run_alone(const Problem&, const TensorSet&) const override { return answer; }
    TensorSet run_beside(const Problem&, const TensorSet&) const override { return answer; }
    bool supports(const Problem&) const override { return true; }
    const bound::Expected& expected() const override { return truth; }
    bound::Expected expected(const Problem&, const TensorSet&) const override { return truth; }
    Judgement compare(const Problem&, const TensorSet&, const TensorSet&) const override {
        return nothing_compared("not asked");
    }
    Judgement compare_structure() const override { return nothing_compared("not asked"); }
    Judgement compare_probable(double) const override { return nothing_compared("not asked"); }
    std::vector<Role> gradients_of(const Problem&) const override { return {}; }
    bound::ExpectedGradients expected_gradients(const Problem&, const TensorSet&) const override {
        return {};
    }
    TensorSet backward(const Problem&, const TensorSet&, const std::vector<Role>&) const override {
        return {};
    }
    Judgement compare_gradient_structure(const TensorSet&, const TensorSet&) const override {
        return nothing_compared("not asked");
    }
    Judgement compare_gradients(const Problem&, const TensorSet&, const TensorSet&) const override {
        return nothing_compared("not asked");
    }
    bound::ErrorBudget error_budget(const Problem&, const TensorSet&) const override { return {}; }

    TensorSet answer;
    bound::Expected truth;

private:
    Case tried_;
    TensorSet inputs_, observed_;
    Dialect dialect_;
    Numerics numerics_;
};

Judgement compared(const FixedTrial& trial, bool bits) {
    const Run first(trial), second(trial, trial.problem(), trial.inputs());
    Relation relation;
    relation.rows = defined_rows(first);
    relation.promise = same_bits_if(bits);
    relation.sentence = [](const RowMatch&) { return std::string("they differ"); };
    return compare_runs(first, second, relation);
}

TEST(CompareRuns, HoldsUpToTheSumOfTheBounds) {
    FixedTrial trial;
    trial.answer[Role::o].set(1, 1.9e-3);
    EXPECT_FALSE(compared(trial, false).violated());
    EXPECT_EQ(compared(trial, false).elements, 3);
    EXPECT_NEAR(compared(trial, false).worst_ratio, 0.95, 1e-6);
    EXPECT_TRUE(compared(trial, true).violated());
    trial.answer[Role::o].set(1, 2.1e-3);
    const Judgement verdict = compared(trial, false);
    ASSERT_TRUE(verdict.violated());
    EXPECT_EQ(verdict.violation->index, (std::vector<std::int64_t>{0, 0, 0, 1}));
    EXPECT_NEAR(verdict.violation->bound, 2e-3, 1e-9);
    EXPECT_GT(verdict.violation->ratio, 1);
}

TEST(CompareRuns, NaNNeverAgreesWithANumber) {
    FixedTrial trial;
    trial.answer[Role::lse].set(0, nan);
    for (const bool bits : {false, true}) {
        const Judgement verdict = compared(trial, bits);
        ASSERT_TRUE(verdict.violated());
        EXPECT_EQ(verdict.violation->tensor, Role::lse);
    }
}

TEST(MissingChange, OfARowThatIsNaNSaysSo) {
    const FixedTrial trial;
    const law::Run first(trial);
    Contrast change{.flat_first = 0, .flat_second = 0, .expected = 10, .observed = 0, .certain = 8};
    EXPECT_EQ(missing_change(first, change, "it ignores key 0").problem, "it ignores key 0");
    change.observed = nan;
    EXPECT_EQ(missing_change(first, change, "it ignores key 0").problem,
              "the change of the output of query 0 is NaN, though it sees none");
}

TEST(CompareRuns, AnUnboundedElementIsNotCounted) {
    FixedTrial trial;
    trial.truth.output[0].bound = trial.truth.output[1].bound = trial.truth.lse[0].bound = infinite;
    EXPECT_TRUE(compared(trial, false).compared_nothing());
    EXPECT_EQ(compared(trial, true).elements, 3);  // bits need no reference
}

}  // namespace
}  // namespace attest::law
