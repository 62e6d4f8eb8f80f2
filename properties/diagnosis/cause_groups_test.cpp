// What is put down to a name that other counterexamples have, and when a name is withdrawn.

#include <gtest/gtest.h>

#include <memory>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/cause_example_test.hpp"
#include "properties/diagnosis/stray_read.hpp"

namespace attest::diagnosis {
namespace {

TEST(Cause, IgnoredStridesAreThoseOfTheTensorThatIsNamed) {
    const std::string strided = "b1 hq1 hkv1 tq1 tk2 d2 layout_v bhdt f32";
    std::vector<CounterexampleReport> all{
        counterexample("reference.output", "strides_ignored", strided),
        counterexample("masking.padding", "v_k_head_strides", strided),
    };
    EXPECT_EQ(group_causes(all).size(), 1u);
    EXPECT_EQ(all[0].diagnosis.id, "strides_ignored");  // as it was found there
    all[1] = counterexample("masking.padding", "window_left_one_more", strided);
    EXPECT_EQ(group_causes(all).size(), 2u);
}

TEST(Cause, WhatALawOfStridesFindsIsPutDownToStrides) {
    const std::string strided = "b1 hq1 hkv1 tq1 tk2 d2 layout_v bhdt f32";
    std::vector<CounterexampleReport> all{
        counterexample("reference.output", "strides_ignored", strided),
        counterexample("hygiene.large_index", "", strided),
    };
    EXPECT_EQ(group_causes(all).size(), 1u);
    all[1] = counterexample("masking.padding", "", strided);
    EXPECT_EQ(group_causes(all).size(), 2u);
    all[0] = counterexample("reference.output", "window_left_one_more", strided);
    all[1] = counterexample("hygiene.large_index", "", strided);
    EXPECT_EQ(group_causes(all).size(), 2u);
}

TEST(Cause, ANameThatMostOfItsCallsRefuteIsNone) {
    const std::string line = "b1 hq1 hkv1 tq2 tk2 d1 window 0 -1 f32";
    std::vector<CounterexampleReport> all{
        counterexample("hygiene.arguments_matter", "window_two_sided", line),
        counterexample("reference.output", "", line),
        counterexample("reference.lse", "", line),
    };
    for (std::size_t n = 1; n < all.size(); ++n)
        all[n].diagnosis.shared = {explanation("window_two_sided")};
    std::vector<CounterexampleReport> partly = all;
    group_causes(partly);
    EXPECT_EQ(partly[0].diagnosis.id, "window_two_sided");
    for (std::size_t n = 1; n < all.size(); ++n) all[n].diagnosis.shared.front().few = true;
    EXPECT_EQ(group_causes(all).size(), 1u);
    EXPECT_FALSE(all[0].diagnosis.known);
}

TEST(Cause, ThatSomeNumbersAreNoneIsNoCauseBesideWhatHasNoName) {
    const std::string line = "b1 hq1 hkv1 tq1 tk2 d1 softcap 1 f32";
    std::vector<CounterexampleReport> all{
        counterexample("reference.output", "", line),
        counterexample("convex_hull.box", "not_finite", line),
    };
    all[1].diagnosis.general = true;
    EXPECT_EQ(group_causes(all).size(), 1u);
    EXPECT_FALSE(all[1].diagnosis.known);
    std::vector<CounterexampleReport> alone{counterexample("convex_hull.box", "not_finite", line)};
    alone[0].diagnosis.general = true;
    EXPECT_EQ(group_causes(alone).size(), 1u);
    EXPECT_EQ(alone[0].diagnosis.id, "not_finite");
}

TEST(Cause, WhatIsReadNextToATensorIsADeathOrAWrongAnswer) {
    const std::string line = "b1 hq1 hkv1 tq1 tk1 d1 dv2 f32";
    std::vector<CounterexampleReport> all{
        counterexample("hygiene.bounds", "", line),
        counterexample("reference.output", "", line),
        counterexample("reference.rounding", "not_finite", line),
    };
    all[0].example.outcome = worker::Outcome::crash;
    all[0].example.fault.emplace().stray = worker::Fault::Access::read;
    all[2].diagnosis.general = true;
    std::vector<CounterexampleReport> apart = all;
    EXPECT_EQ(group_causes(apart).size(), 2u);
    all[1].diagnosis.strays = all[2].diagnosis.strays = true;
    all[0].example.id = std::string(64, 'd');
    const std::vector<CauseReport> causes = group_causes(all);
    ASSERT_EQ(causes.size(), 1u);
    EXPECT_EQ(causes[0].lead, "dddddddd");  // the death says more
    all[0].example.fault->stray = worker::Fault::Access::write;
    EXPECT_EQ(group_causes(all).size(), 2u);
}

// A missing barrier lets many accesses race: which is told of first is chance.
TEST(Cause, RacesOfOneMemoryAreOneDefect) {
    const std::string line = "b1 hq1 hkv1 tq1 tk33 d1 f16";
    std::vector<CounterexampleReport> all{counterexample("hygiene.bounds", "", line),
                                          counterexample("reference.output", "", line)};
    const auto say = [&](std::size_t n, const std::string& problem) {
        all[n].example.outcome = worker::Outcome::error;
        all[n].example.verdict.violation->problem = "the kernel returned an error: " + problem;
    };
    say(0, "shared_race: read-write race on v_tile: a.cu:73 and a.cu:50");
    say(1, "shared_race: write-read race on k_tile: a.cu:49 and a.cu:57 (and 3 more)");
    EXPECT_EQ(group_causes(all).size(), 1u);
    say(1, "global_race: write-read race on o: a.cu:49 and a.cu:57");
    EXPECT_EQ(group_causes(all).size(), 2u);
}

// A page number that is not the key's may be that of no page.
TEST(Cause, AStrayReadBesideMisreadPagesIsOneDefect) {
    const std::string paged = "b2 hq1 hkv1 tq1 tk3 d1 lens_kv 2,3 cache 2 page 1 f32";
    std::vector<CounterexampleReport> all{
        counterexample("hygiene.bounds", "", paged),
        counterexample("reference.output", "pages_of_own_columns", paged),
    };
    all[0].example.outcome = worker::Outcome::crash;
    all[0].example.fault.emplace().stray = worker::Fault::Access::read;
    std::vector<CounterexampleReport> contiguous = all;
    EXPECT_EQ(group_causes(all).size(), 1u);
    contiguous[0].example.smallest = parse_case("b2 hq1 hkv1 tq1 tk3 d1 lens_kv 2,3 cache 2 f32");
    EXPECT_EQ(group_causes(contiguous).size(), 2u);
}

/// Dies where the second of two seeds, its tensors laid one way, makes it read a guard.
TEST(StrayRead, DiesOfItInSomeCallLikeThis) {
    class Straying final : public Actor {
    public:
        using Actor::Actor;
        void begin_case(std::uint64_t number) noexcept override { odd_ = number == 1; }
        worker::CallResult forward(const Problem& problem, const TensorSet& inputs) override {
            calls += 1;
            if (!odd_ || calls < first) return Actor::forward(problem, inputs);
            worker::CallResult died;
            died.outcome = worker::Outcome::crash;
            died.fault.emplace().stray = access;
            return died;
        }
        int calls = 0, first = 4;
        worker::Fault::Access access = worker::Fault::Access::read;

    private:
        bool odd_ = false;
    };
    const auto right = [](const Specification&, const bound::Expected& truth) { return truth; };
    search::Counterexample paged, plain;
    paged.smallest = paged.found.tried = parse_case("b1 hq1 hkv1 tq1 tk3 d1 cache 2 page 2 f32");
    plain.smallest = plain.found.tried = parse_case("b1 hq1 hkv1 tq1 tk3 d1 f32");
    Straying kernel(right);
    EXPECT_TRUE(dies_of_stray_read(kernel, paged, {}));
    EXPECT_EQ(kernel.calls, 4);
    kernel.first = 7;  // no case has so many calls but one with pages
    kernel.calls = 0;
    EXPECT_FALSE(dies_of_stray_read(kernel, plain, {}));
    kernel.access = worker::Fault::Access::write;
    EXPECT_FALSE(dies_of_stray_read(kernel, paged, {}));
    plain.smallest = parse_case("b1 hq1 hkv1 tq1 tk3 d2 f32 q [1,2] k [1,2,3,4,5,6]");
    kernel.first = 5;  // widened, its listed numbers would be too few
    kernel.calls = 0;
    kernel.access = worker::Fault::Access::read;
    EXPECT_TRUE(dies_of_stray_read(kernel, plain, {}));
}

TEST(Cause, WhatADefectMakesOfSomeCallsIsNoOther) {
    const std::string line = "b1 hq1 hkv1 tq1 tk2 d1 mask bool splits 2 f32";
    std::vector<CounterexampleReport> all{
        counterexample("reference.output", "empty_splits_counted_16", line),
        counterexample("reference.lse", "lse_empty_zero", line),
    };
    EXPECT_EQ(group_causes(all).size(), 2u);
    Deviation counted;
    counted.entails = {"lse_empty_zero"};
    all[0].diagnosis.deviation = std::make_shared<const Deviation>(std::move(counted));
    EXPECT_EQ(group_causes(all).size(), 1u);
}

}  // namespace
}  // namespace attest::diagnosis
