#include "properties/law/verdict.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "properties/law/trial.hpp"

namespace attest::law {
namespace {

Decision decision_of(const Judgement& judgement) {
    return Verdict(judgement).decision;
}

TEST(Judgement, NothingComparedNeverHolds) {
    EXPECT_EQ(decision_of(holds(0)), Decision::inconclusive);
    EXPECT_EQ(decision_of(holds(-1)), Decision::inconclusive);
    EXPECT_EQ(decision_of(holds(1)), Decision::holds);
    EXPECT_EQ(decision_of(nothing_compared("no key")), Decision::inconclusive);
    EXPECT_EQ(Verdict(nothing_compared("no key")).reason.text, "no key");
    EXPECT_EQ(Verdict{}.decision, Decision::inconclusive);
}

TEST(Judgement, ARatioThatIsNoNumberNeverHolds) {
    EXPECT_EQ(decision_of(holds(3, std::nan(""))), Decision::inconclusive);
}

// What a law may say once the kernel has run; that it does not apply is not among it.
static_assert(!std::is_convertible_v<NotApplicable, Judgement>);
static_assert(!std::is_constructible_v<Judgement, NotApplicable>);
static_assert(!std::is_constructible_v<Judgement, Verdict>);
static_assert(std::is_same_v<Judge::result_type, Judgement>);

TEST(Judgement, MergingIsWorstFirst) {
    Violation violation;
    violation.problem = "wrong";
    const Judgement bad = violated(violation), good = holds(4, 0.5);
    const Judgement open{.elements = 2, .undecided = 1, .open = "exact arithmetic cannot say"};
    EXPECT_EQ(decision_of(merge(good, open)), Decision::inconclusive);
    EXPECT_EQ(merge(good, open).open, "exact arithmetic cannot say");
    EXPECT_EQ(decision_of(merge(open, bad)), Decision::violated);
    EXPECT_EQ(merge(bad, good).violation->problem, "wrong");
    EXPECT_EQ(decision_of(merge(good, nothing_compared("no mask"))), Decision::holds);
    EXPECT_EQ(decision_of(merge(nothing_compared("no mask"), good)), Decision::holds);
    EXPECT_EQ(merge(nothing_compared("no mask"), nothing_compared("no key")).open, "no mask");
}

TEST(Verdict, MergingIsWorstFirst) {
    Violation violation;
    violation.problem = "wrong";
    const Verdict bad = violated(violation), doubt = inconclusive("too few"), good = holds(4, 0.5);
    EXPECT_EQ(merge(good, doubt).decision, Decision::inconclusive);
    EXPECT_EQ(merge(good, doubt).reason.text, "too few");
    EXPECT_EQ(merge(doubt, bad).decision, Decision::violated);
    EXPECT_EQ(merge(bad, good).violation->problem, "wrong");
    EXPECT_EQ(merge(good, Verdict(not_applicable("no mask"))).decision, Decision::holds);
    EXPECT_EQ(merge(Verdict(not_applicable("no mask")), good).decision, Decision::holds);
}

TEST(Verdict, NanIsTheLargestRatioHoweverItIsMerged) {
    Verdict odd = holds(1, 0.25);
    odd.worst_ratio = std::nan("");
    const Verdict far = holds(1, 7);
    EXPECT_TRUE(std::isnan(merge(odd, far).worst_ratio));
    EXPECT_TRUE(std::isnan(merge(far, odd).worst_ratio));
    EXPECT_EQ(merge(holds(1, 0.5), holds(1, 0.25)).worst_ratio, 0.5);
}

TEST(Verdict, TheFirstViolationIsKept) {
    Violation first, second;
    first.problem = "first";
    second.problem = "second";
    EXPECT_EQ(merge(violated(first), violated(second)).violation->problem, "first");
    EXPECT_EQ(merge(Verdict(violated(first)), Verdict(violated(second))).violation->problem,
              "first");
}

TEST(Verdict, TheFirstDoubtIsKeptWhateverItIsMergedWith) {
    const auto doubted = [](const char* problem) {
        Violation suspect;
        suspect.problem = problem;
        suspect.violation_class = ViolationClass::suspect;
        return graded(violated(suspect), {});
    };
    const Verdict doubt = doubted("improbable");
    ASSERT_TRUE(doubt.doubt);
    for (const Verdict& other : {Verdict(holds(4, 0.5)), inconclusive("too few"),
                                 Verdict(not_applicable("no mask")), Verdict(violated({}))}) {
        ASSERT_TRUE(merge(doubt, other).doubt) << name(other.decision);
        ASSERT_TRUE(merge(other, doubt).doubt) << name(other.decision);
        EXPECT_EQ(merge(other, doubt).doubt->problem, "improbable");
    }
    EXPECT_EQ(merge(doubt, doubted("another")).doubt->problem, "improbable");
    // What is no matter of chance stands before what is.
    Violation proven;
    proven.problem = "proven";
    const Verdict passed = graded(violated(proven), {});
    EXPECT_EQ(merge(doubt, passed).doubt->problem, "proven");
    EXPECT_EQ(merge(passed, doubt).doubt->problem, "proven");
}

Verdict drawn_verdict() {
    using rc::gen::element;
    Verdict v;
    v.decision = *element(Decision::not_applicable, Decision::not_run, Decision::holds,
                          Decision::inconclusive, Decision::violated);
    v.worst_ratio = *element(0.0, 0.5, 2.0);
    v.elements = *rc::gen::inRange(0, 9);
    return v;
}

RC_GTEST_PROP(Verdict, MergingIsAssociativeAndCounts, ()) {
    const Verdict a = drawn_verdict(), b = drawn_verdict(), c = drawn_verdict();
    const Verdict left = merge(merge(a, b), c), right = merge(a, merge(b, c));
    RC_ASSERT(left.decision == right.decision);
    RC_ASSERT(left.elements == a.elements + b.elements + c.elements);
    RC_ASSERT(left.elements == right.elements);
    RC_ASSERT(left.worst_ratio == right.worst_ratio);
    RC_ASSERT(left.decision >= a.decision && left.decision >= c.decision);
}

}  // namespace
}  // namespace attest::law
