// Failures outlive the run that found them.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "properties/search/campaign_test.hpp"
#include "properties/search/store.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {
namespace {

class RunnerStore : public ::testing::Test {
protected:
    std::string directory_ = (std::filesystem::temp_directory_path() /
                              ("attest_runner_test_" + std::to_string(::getpid())))
                                 .string();
    void TearDown() override { std::filesystem::remove_all(directory_); }
};

TEST_F(RunnerStore, FailuresAreKeptAndComeFirstNextTime) {
    const auto laws = std::vector{zero_law("store.one")};
    CampaignOptions options = few_cases();
    options.store = directory_;
    const CampaignResult first = run(laws, plan_with(PlantedDefect::wrong, past_forty), options);
    const auto stored = load_failures(directory_);
    ASSERT_EQ(stored.size(), 1u);  // the shrunk one alone
    EXPECT_TRUE(stored[0].shrunk);
    EXPECT_EQ(stored[0].kernel, "planted");
    EXPECT_EQ(stored[0].id, first.laws[0].counterexample->id);

    options.seed = 8;
    const CampaignResult second = run(laws, plan_with(PlantedDefect::wrong, past_forty), options);
    EXPECT_EQ(second.laws[0].records.front().number, -1);
    EXPECT_EQ(second.laws[0].records.front().tried, stored[0].tried);
    EXPECT_EQ(second.laws[0].counterexample->found.number, -1);
    EXPECT_EQ(load_failures(directory_).size(), 1u);

    const CampaignResult mended = run(laws, plan_with(PlantedDefect::wrong), options);
    EXPECT_EQ(mended.laws[0].verdict.decision, law::Decision::holds);
    EXPECT_EQ(mended.laws[0].cases, 41);
    EXPECT_EQ(load_failures(directory_).size(), 1u);  // a regression case from now on
}

TEST_F(RunnerStore, FixturesComeBeforeTheDraws) {
    const auto laws = std::vector{zero_law("store.one")};
    const Case fixture = parse_case("b1 hq1 hkv1 tq41 tk41 d1 f32");
    CampaignOptions options = few_cases();
    const CampaignResult plain = run(laws, plan_with(PlantedDefect::wrong), options);
    options.fixtures = {{"store.one", fixture}, {"store.another", fixture}};
    const CampaignResult right = run(laws, plan_with(PlantedDefect::wrong), options);
    ASSERT_EQ(right.laws[0].cases, plain.laws[0].cases + 1);
    EXPECT_EQ(right.laws[0].records[0].number, -1);
    EXPECT_EQ(right.laws[0].records[0].tried, fixture);
    for (std::size_t i = 0; i < plain.laws[0].records.size(); ++i)  // the draws are the same ones
        EXPECT_EQ(right.laws[0].records[i + 1].tried, plain.laws[0].records[i].tried);
    EXPECT_EQ(run(laws, plan_with(PlantedDefect::wrong, past_forty), options)
                  .laws[0]
                  .counterexample->found.tried,
              fixture);

    options.shard_index = 1;
    options.shard_count = 2;
    EXPECT_EQ(run(laws, plan_with(PlantedDefect::wrong), options).laws[0].records[0].number, 1);

    KernelPlan refusing = plan_with(PlantedDefect::wrong);
    refusing.manifest.formats = {Precision::f16};  // what it does not take is no refused draw
    options.shard_index = 0;
    EXPECT_GE(run(laws, refusing, options).laws[0].records[0].number, 0);
}

/// Not after its shrinking, which may take minutes: the very next call finds it on the disk.
TEST_F(RunnerStore, AFailureIsKeptTheMomentItIsFound) {
    int failures = 0, late = 0, looked = 0;
    std::vector<StoredFailure> at_first;
    KernelPlan plan{.manifest = full_manifest()};
    plan.fails = [&](const Problem& problem, const TensorSet&) {
        if (failures == 1) at_first = load_failures(directory_);
        if (failures > 0) {
            ++looked;
            late += load_failures(directory_).empty();
        }
        failures += past_forty(problem);
        return past_forty(problem);
    };
    CampaignOptions options = few_cases(40, 1);
    options.store = directory_;
    const auto laws = std::vector{zero_law("store.one")};
    const CampaignResult result = run(laws, plan, options);
    EXPECT_GT(looked, 0);
    EXPECT_EQ(late, 0) << "of " << looked;
    ASSERT_EQ(at_first.size(), 1u);
    EXPECT_FALSE(at_first[0].shrunk);
    EXPECT_EQ(at_first[0].tried, result.laws[0].counterexample->found.tried);
}

TEST_F(RunnerStore, WhatTheKernelNoLongerDeclaresIsNotAskedAgain) {
    const auto laws = std::vector{zero_law("store.one")};
    CampaignOptions options = few_cases();
    options.store = directory_;
    run(laws, plan_with(PlantedDefect::wrong, past_forty), options);
    const Precision was = load_failures(directory_).front().tried.problem.format_q;

    KernelPlan narrowed =
        plan_with(PlantedDefect::wrong, [was](const Problem& p) { return p.format_q == was; });
    std::erase(narrowed.manifest.formats, was);
    const CampaignResult second = run(laws, narrowed, options);
    EXPECT_EQ(second.laws[0].verdict.decision, law::Decision::holds);
    EXPECT_EQ(second.laws[0].cases, 40);
}

}  // namespace
}  // namespace attest::search
