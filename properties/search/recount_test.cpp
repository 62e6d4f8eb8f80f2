// The parts of a campaign come to the whole: verdicts, counts and violations, also where a shard
// saw more than the whole would have, died, or lacks a number.

#include "properties/search/recount.hpp"

#include <gtest/gtest.h>

#include "properties/law/score_sampling.hpp"
#include "properties/search/campaign_test.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {
namespace {

/// What a file of records would hold.
class Keeper final : public CampaignObserver {
public:
    void on_slot(const law::Property& law, const CaseSlot& slot,
                 const SlotResult& result) override {
        laws[law.id].slots[slot.number] = result;
    }
    std::map<std::string, RecordedLaw> laws;
};

/// All but the seconds.
std::string summary(const LawResult& law) {
    std::string text =
        std::string(name(law.verdict.decision)) + " [" + law.verdict.reason.text + "]";
    for (const std::int64_t n : {law.cases, law.discarded, law.refused, law.violated,
                                 law.verdict.elements, law.largest[SizeAxis::len_kv]})
        text += " " + std::to_string(n);
    for (const CaseRecord& record : law.records) text += " " + std::to_string(record.number);
    return text;
}

Keeper shards_of(const std::vector<law::Property>& laws, const KernelPlan& plan,
                 CampaignOptions options, std::int64_t count) {
    Keeper keeper;
    options.shard_count = count;
    for (options.shard_index = 0; options.shard_index < count; ++options.shard_index)
        for (const LawResult& law : run_laws(laws, factory_of(plan), options, keeper).laws) {
            auto& kept = keeper.laws[law.property->id].counterexample;
            if (law.counterexample &&
                (!kept || law.counterexample->found.number < kept->found.number))
                kept = law.counterexample;
        }
    return keeper;
}

RecountOptions recount_of(const CampaignOptions& options) {
    return {options.profile, options.cases, {}, false, options.all_cases};
}

/// Each case by itself is well within its band: 256 samples of variance 1.1.
law::Judgement a_tenth_too_much(const law::Trial&) {
    law::Judgement judgement = law::holds(1);
    judgement.statistic = {"variance", 0.1, 0.7, 1e-9, 256, {{1.1 * 256, 0, 0, 256}}};
    return judgement;
}

// What cases say together is told of the whole alone, and of each part what it says itself.
TEST(Recount, WhatIsPooledIsPooledOverShards) {
    law::Property law = zero_law("pool.law");
    law.check = law::always<a_tenth_too_much>;
    law.pool = law::pooled_variance;
    const KernelPlan plan = plan_with(PlantedDefect::wrong);
    const CampaignOptions options = few_cases(40);
    const LawResult whole = std::move(run({law}, plan, options).laws[0]);
    EXPECT_EQ(whole.verdict.decision, law::Decision::holds);
    ASSERT_TRUE(whole.verdict.pooled);
    EXPECT_EQ(whole.verdict.pooled->samples, 40 * 256);
    ASSERT_TRUE(whole.verdict.doubt);
    EXPECT_EQ(whole.verdict.doubt->violation_class, law::ViolationClass::suspect);
    EXPECT_TRUE(whole.verdict.statistic->pool.empty());

    const Keeper shards = shards_of({law}, plan, options, 8);
    const LawResult merged = Recount(recount_of(options)).law(law, shards.laws.at(law.id));
    ASSERT_TRUE(merged.verdict.pooled);
    EXPECT_EQ(merged.verdict.pooled->value, whole.verdict.pooled->value);
    EXPECT_TRUE(merged.verdict.doubt);

    const LawResult part = std::move(run({law}, plan, few_cases(5)).laws[0]);
    EXPECT_EQ(part.verdict.pooled->samples, 5 * 256);
    EXPECT_FALSE(part.verdict.doubt);
}

// A failure known before was chosen by what the kernel answered: it is no sample.
TEST(Recount, CasesKnownBeforeAreNotPooled) {
    law::Property law = zero_law("pool.law");
    law.pool = law::pooled_variance;
    LawResult result;
    result.property = &law;
    for (const std::int64_t number : {-1, 0}) {
        CaseRecord& record = result.records.emplace_back();
        record.number = number;
        record.verdict = law::holds(1);
        record.verdict.statistic = {"variance", 0, 1, 1e-9, 10, {{10, 0, 0, 10}}};
    }
    conclude(result, {}, {.slots = 2, .planned = 2});
    EXPECT_EQ(result.verdict.pooled->samples, 10);
}

TEST(Recount, ShardsComeToOneRun) {
    const auto laws = four_laws();
    for (const PlantedDefect defect :
         {PlantedDefect::wrong, PlantedDefect::crash, PlantedDefect::hang, PlantedDefect::no_memory,
          PlantedDefect::unwritten}) {
        KernelPlan plan = plan_with(defect, past_forty);
        plan.refuses = [](const Problem& p) { return p.len_q == 3; };
        CampaignOptions options = few_cases();
        options.cases.reset();  // so that a violated law bears on those behind it
        options.profile.cases_per_law = 45;
        const CampaignResult whole = run(laws, plan, options);
        const Keeper keeper = shards_of(laws, plan, options, 4);
        Recount recount(recount_of(options));
        for (const LawResult& law : whole.laws) {
            const LawResult again = recount.law(*law.property, keeper.laws.at(law.property->id));
            EXPECT_EQ(summary(again), summary(law)) << law.property->id;
            ASSERT_EQ(again.counterexample.has_value(), law.counterexample.has_value());
            if (law.counterexample) {
                EXPECT_EQ(again.counterexample->found.number, law.counterexample->found.number);
            }
        }
    }
}

/// Of a kernel whose smallest problem is large there are fewer cases: that is no gap.
TEST(Recount, FewerCasesOfALargeSmallestProblemAreAllThereAre) {
    const auto law = zero_law("large.any");
    KernelPlan plan{.manifest = full_manifest()};
    plan.manifest.takes[kernel::Quantity::len_kv].least = 4096;
    plan.manifest.takes[kernel::Quantity::dim_qk].only = {128};
    CampaignOptions options = few_cases();
    options.cases.reset();
    options.profile.cases_per_law = 9;
    const CampaignResult whole = run({law}, plan, options);
    EXPECT_EQ(whole.laws[0].cases, 3);
    const Keeper keeper = shards_of({law}, plan, options, 2);
    RecountOptions recounted = recount_of(options);
    recounted.narrow = whole.narrow;
    EXPECT_THROW(Recount(recounted).law(law, keeper.laws.at(law.id)), BadInput);
    recounted.manifest = plan.manifest;
    EXPECT_EQ(summary(Recount(recounted).law(law, keeper.laws.at(law.id))), summary(whole.laws[0]));
}

TEST(Recount, AMissingNumberIsNamed) {
    const auto laws = four_laws();
    const CampaignOptions options = few_cases();
    Keeper keeper = shards_of(laws, {.manifest = full_manifest()}, options, 2);
    keeper.laws.at(laws[1].id).slots.erase(17);
    Recount recount(recount_of(options));
    recount.law(laws[0], keeper.laws.at(laws[0].id));
    try {
        recount.law(laws[1], keeper.laws.at(laws[1].id));
        ADD_FAILURE() << "a law with a gap was counted";
    } catch (const BadInput& error) {
        EXPECT_EQ(std::string(error.what()), "second.causal: case number 17 is missing");
    }
}

TEST(Recount, AViolationNeedsItsCounterexample) {
    const auto laws = four_laws();
    const CampaignOptions options = few_cases();
    Keeper keeper = shards_of(laws, plan_with(PlantedDefect::wrong, past_forty), options, 1);
    keeper.laws.at(laws[0].id).counterexample.reset();
    Recount recount(recount_of(options));
    EXPECT_THROW(recount.law(laws[0], keeper.laws.at(laws[0].id)), BadInput);
}

}  // namespace
}  // namespace attest::search
