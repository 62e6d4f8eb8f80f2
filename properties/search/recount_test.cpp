// The parts of a campaign come to the whole: verdicts, counts and violations, also where a shard
// saw more than the whole would have, died, or lacks a number.

#include "properties/search/recount.hpp"

#include <gtest/gtest.h>

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

TEST(Recount, TenShardsComeToOneRun) {
    const auto laws = four_laws();
    for (const PlantedDefect defect : {PlantedDefect::wrong, PlantedDefect::crash,
                                       PlantedDefect::hang, PlantedDefect::unwritten}) {
        KernelPlan plan = plan_with(defect, past_forty);
        plan.refuses = [](const Problem& p) { return p.len_q == 3; };
        CampaignOptions options = few_cases();
        options.cases.reset();  // so that a violated law bears on those behind it
        options.profile.cases_per_law = 50;
        const CampaignResult whole = run(laws, plan, options);
        const Keeper keeper = shards_of(laws, plan, options, 10);
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
