// One defect, one smallest case: whatever case it was found by.

#include "properties/search/shrinker.hpp"

#include <gtest/gtest.h>

#include <set>

#include "properties/search/draw.hpp"
#include "properties/search/planted_test.hpp"

namespace attest {
namespace {

using testing::Defect;
using testing::full_manifest;
using testing::Plan;
using testing::PlantedKernel;
using testing::zero_law;

/// The smallest cases found from 50 seeds, and the most evaluations any of them took.
struct Outcomes {
    std::map<std::string, int> smallest;
    std::int64_t evaluations_max = 0;
    int found = 0;
};

Outcomes shrink_from_many(const Plan& plan, const Property& law) {
    Outcomes outcomes;
    PlantedKernel kernel(plan);
    const Capability capability = declared_capability(plan.manifest);
    for (std::uint64_t seed = 1; seed <= 50; ++seed)
        for (std::int64_t k = 0; k < 3000; ++k) {
            const auto c = draw_case(law, plan.manifest, Profile{}, seed, k);
            if (!c) continue;
            const Judged judged = judge_case(kernel, law, *c, k);
            if (!failure_kind(judged.record)) continue;
            Shrinker shrinker(kernel, law, capability, {}, {});
            const Counterexample smallest = shrinker.shrink(judged.record);
            EXPECT_TRUE(smallest.confirmed);
            EXPECT_EQ(smallest.verdict.decision, Decision::violated);
            ++outcomes.smallest[print(smallest.smallest)];
            outcomes.evaluations_max = std::max(outcomes.evaluations_max, smallest.evaluations);
            ++outcomes.found;
            break;
        }
    return outcomes;
}

void expect_one(const char* smallest, bool (*fails)(const Problem&), CaseSpace cases = {}) {
    Plan plan{.manifest = full_manifest()};
    plan.fails = [fails](const Problem& p, const TensorSet&) { return fails(p); };
    const Outcomes outcomes = shrink_from_many(plan, zero_law("shrink.one", std::move(cases)));
    EXPECT_EQ(outcomes.found, 50);
    std::string all;
    for (const auto& [line, count] : outcomes.smallest)
        all += std::to_string(count) + " x " + line + "\n";
    EXPECT_EQ(outcomes.smallest.size(), 1u) << all;
    EXPECT_EQ(outcomes.smallest.begin()->first, std::string(smallest)) << all;
    EXPECT_LE(outcomes.evaluations_max, 2000);
    ::testing::Test::RecordProperty("evaluations_max", static_cast<int>(outcomes.evaluations_max));
}

constexpr const char* plain_data = " q zeros k zeros v ones";

TEST(Shrinker, OnePastATile) {
    expect_one((std::string("b1 hq1 hkv1 tq1 tk65 d1 f32") + plain_data).c_str(),
               [](const Problem& p) { return p.len_kv > 64 && p.len_kv % 64 == 1; });
}

TEST(Shrinker, AKeyCountAndAFeature) {
    expect_one((std::string("b1 hq1 hkv1 tq1 tk37 d1 causal f32") + plain_data).c_str(),
               [](const Problem& p) { return p.len_kv >= 37 && p.mask.causal; });
}

TEST(Shrinker, TheDifferenceOfTheLengths) {
    expect_one((std::string("b1 hq1 hkv1 tq1 tk18 d1 causal f32") + plain_data).c_str(),
               [](const Problem& p) { return p.mask.causal && p.len_kv - p.len_q >= 17; });
}

TEST(Shrinker, EqualLengthsAndTwoKeyHeads) {
    expect_one(
        (std::string("b1 hq2 hkv2 tq33 tk33 d1 f32") + plain_data).c_str(),
        [](const Problem& p) { return p.len_q == p.len_kv && p.len_q >= 33 && p.heads_kv > 1; });
}

TEST(Shrinker, AGroupADimensionAndAWindow) {
    expect_one((std::string("b1 hq3 hkv1 tq1 tk40 d1 window 0 -1 f32") + plain_data).c_str(),
               [](const Problem& p) {
                   return group_size(p) >= 3 && p.len_kv >= 40 && p.mask.window.left >= 0;
               });
}

TEST(Shrinker, TwoSequencesOfDifferentLength) {
    expect_one((std::string("b2 hq1 hkv1 tq1 tk1 d1 lens_kv 1,0 f32") + plain_data).c_str(),
               [](const Problem& p) {
                   return p.batch > 1 && !p.mask.lens_kv.empty() &&
                          p.mask.lens_kv[0] > p.mask.lens_kv[1];
               });
}

TEST(Shrinker, AnEmptyDocument) {
    expect_one(
        (std::string("b1 hq1 hkv1 tq1 tk1 d1 docs_q 0,1 docs_kv 1,0 f32") + plain_data).c_str(),
        [](const Problem& p) {
            const auto& docs = p.mask.documents_kv;
            return docs.size() >= 2 && docs.back() == 0;
        },
        {.require = FeatureSet(Feature::documents)});
}

TEST(Shrinker, ARemainderOfPages) {
    expect_one((std::string("b1 hq1 hkv1 tq1 tk3 d1 cache 2 page 2 f32") + plain_data).c_str(),
               [](const Problem& p) {
                   return p.cache.page_size > 1 && p.len_kv > p.cache.page_size &&
                          p.len_kv % p.cache.page_size != 0;
               },
               {.require = FeatureSet(Feature::cache, Feature::paged)});
}

TEST(Shrinker, AFormat) {
    expect_one((std::string("b1 hq1 hkv1 tq1 tk1 d1 bf16") + plain_data).c_str(),
               [](const Problem& p) {
                   return p.format_q == Precision::bf16 && p.format_o == Precision::bf16;
               });
}

/// A defect that depends on the data and not on the shape: a negative product somewhere.
TEST(Shrinker, TheDataAreTheSimplestThatFail) {
    Plan plan{.manifest = full_manifest()};
    plan.fails = [](const Problem& p, const TensorSet& inputs) {
        if (p.len_kv < 5) return false;
        const auto q = inputs[Role::q].to_doubles(), k = inputs[Role::k].to_doubles();
        return q.front() * k.front() < 0 && q.front() != 0;
    };
    const Outcomes outcomes = shrink_from_many(plan, zero_law("shrink.data"));
    EXPECT_EQ(outcomes.found, 50);
    std::string all;
    for (const auto& [line, count] : outcomes.smallest)
        all += std::to_string(count) + " x " + line + "\n";
    EXPECT_EQ(outcomes.smallest.size(), 1u) << all;
    const Case smallest = parse_case(outcomes.smallest.begin()->first);
    EXPECT_EQ(smallest.problem.len_kv, 5) << all;
    EXPECT_EQ(score_count(smallest.problem), 5) << all;
}

TEST(Shrinker, KeepsToTheLawsSpace) {
    Plan plan{.manifest = full_manifest()};
    plan.fails = [](const Problem& p, const TensorSet&) { return p.len_kv >= 3; };
    CaseSpace cases{.require = FeatureSet(Feature::window),
                    .kinds = {ValueKind::ties, ValueKind::flat},
                    .square = true};
    const Outcomes outcomes = shrink_from_many(plan, zero_law("shrink.space", cases));
    ASSERT_EQ(outcomes.smallest.size(), 1u);
    const Case c = parse_case(outcomes.smallest.begin()->first);
    EXPECT_EQ(c.problem.len_q, 3);
    EXPECT_EQ(c.problem.len_kv, 3);
    EXPECT_TRUE(c.problem.mask.window.limited());
    EXPECT_TRUE(c.values.kind == ValueKind::ties || c.values.kind == ValueKind::flat);
    EXPECT_TRUE(c.values.tensors.empty());
}

/// A crash does not shrink into the wrong answer beside it.
TEST(Shrinker, KeepsTheKindOfFailure) {
    for (const Defect defect :
         {Defect::crash, Defect::write_outside, Defect::error, Defect::nan, Defect::unwritten}) {
        Plan plan{.manifest = full_manifest(), .defect = defect};
        plan.fails = [](const Problem& p, const TensorSet&) { return p.len_kv >= 7; };
        PlantedKernel kernel(plan);
        const Property law = zero_law("shrink.kind");
        Case c;
        c.problem.len_kv = 90;
        const Judged judged = judge_case(kernel, law, c, 4);
        ASSERT_TRUE(failure_kind(judged.record));
        CampaignObserver silent;
        const Counterexample smallest = shrink(kernel, law, judged.record, 2000, silent);
        EXPECT_EQ(smallest.smallest.problem.len_kv, 7);
        EXPECT_EQ(smallest.outcome, judged.record.outcome);
        EXPECT_EQ(smallest.fault.has_value(), judged.record.fault.has_value());
        EXPECT_TRUE(smallest.confirmed);
        EXPECT_EQ(smallest.steps.front().pass, "found");
        EXPECT_EQ(smallest.steps.back().line, print(smallest.smallest));
        EXPECT_EQ(smallest.accepted + 1, static_cast<std::int64_t>(smallest.steps.size()));
    }
}

TEST(Shrinker, WhatDoesNotFailAgainIsNotConfirmed) {
    Plan plan{.manifest = full_manifest()};
    PlantedKernel kernel(plan);
    const Property law = zero_law("shrink.flaky");
    CaseRecord found;
    found.subject.problem.len_kv = 9;
    found.verdict = violated({});
    CampaignObserver silent;
    const Counterexample smallest = shrink(kernel, law, found, 2000, silent);
    EXPECT_FALSE(smallest.confirmed);
    EXPECT_EQ(smallest.smallest.problem.len_kv, 9);
    EXPECT_EQ(smallest.accepted, 0);
}

TEST(SizeOrder, IsTotalAndScoresComeFirst) {
    Case a, b;
    a.problem.len_kv = 3;
    b.problem.len_kv = 2;
    b.problem.dim_qk = 64;
    EXPECT_LT(size_key(b), size_key(a));
    std::set<SizeKey> keys;
    for (const Values& values : data_ladder()) keys.insert(size_key({{}, values}));
    EXPECT_EQ(keys.size(), data_ladder().size());
}

}  // namespace
}  // namespace attest
