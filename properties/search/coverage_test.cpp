// Which pairs of features a kernel could have been asked for.

#include "properties/search/coverage.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/search/features.hpp"

namespace attest::search {
namespace {

using Pair = CoverageReport::Pair;

std::int64_t place(const CoverageReport& report, Feature feature) {
    return std::find(report.features.begin(), report.features.end(), name(feature)) -
           report.features.begin();
}

bool contains(const std::vector<Pair>& pairs, const Pair& pair) {
    return std::find(pairs.begin(), pairs.end(), pair) != pairs.end();
}

// ALiBi beside lengths is no problem by itself; a cache tells where the queries stand.
TEST(Coverage, APairMayNeedAThirdFeature) {
    CampaignResult result;
    result.manifest.formats = {Precision::f32};
    for (const bool cached : {false, true}) {
        result.manifest.features = FeatureSet(Feature::alibi, Feature::lens_q);
        if (cached) result.manifest.features = result.manifest.features.with(Feature::cache);
        const CoverageReport report = coverage_reports(result, 4, nullptr, {})[0];
        const auto [low, high] =
            std::minmax({place(report, Feature::alibi), place(report, Feature::lens_q)});
        EXPECT_EQ(contains(report.undrawn, {high, low}), cached);
    }
}

TEST(Coverage, WhereEverythingIsOfferedWhatFitsCanOccur) {
    CampaignResult result;
    result.manifest.formats = {Precision::f32, Precision::bf16};
    for (int n = 0; n < feature_count; ++n)
        result.manifest.features = result.manifest.features.with(static_cast<Feature>(n));
    const CoverageReport report = coverage_reports(result, 4, nullptr, {})[0];
    EXPECT_FALSE(report.impossible.empty());
    for (const Pair& pair : report.impossible) {
        const auto feature = [&](std::size_t end) {
            return *parse_feature(report.features[static_cast<std::size_t>(pair[end])]);
        };
        EXPECT_FALSE(compatible(feature(0), feature(1))) << pair[0] << " " << pair[1];
    }
}

// A run that goes on judges anew what was cut, or what failed and was not shrunk: once counted is
// enough.
TEST(Coverage, WhatIsRunAgainIsCountedThen) {
    CampaignResult result;
    result.manifest.formats = {Precision::f32};
    result.manifest.features = FeatureSet(Feature::causal);
    result.interrupted = true;
    LawResult whole, cut, failed;
    for (LawResult* law : {&whole, &cut, &failed}) {
        law->records.resize(2);
        for (CaseRecord& record : law->records)
            record.tried = parse_case("b1 hq1 hkv1 tq2 tk3 d4 causal f32");
    }
    whole.verdict = law::holds(2, 0);
    cut.verdict = law::inconclusive(law::Reason(law::Reason::Kind::interrupted));
    failed.verdict = law::violated(law::Violation());
    result.laws = {whole, cut, failed};
    const auto cases = [&] { return coverage_reports(result, 4, nullptr, {})[0].cases; };
    EXPECT_EQ(cases(), 2);
    result.laws[2].counterexample.emplace();
    EXPECT_EQ(cases(), 4);
}

TEST(Coverage, CountsPairsAndKnowsTheImpossible) {
    CampaignResult result;
    result.manifest.formats = {Precision::f32};
    result.manifest.features =
        FeatureSet(Feature::causal, Feature::gqa, Feature::mask_bool, Feature::mask_additive);
    LawResult law;
    law.records.resize(3);
    for (CaseRecord& record : law.records)
        record.tried = parse_case("b1 hq2 hkv1 tq2 tk3 d4 causal f32");
    result.laws.push_back(law);
    const std::vector<CoverageReport> reports = coverage_reports(result, 4, nullptr, {});
    ASSERT_EQ(reports.size(), 1u);
    const CoverageReport& report = reports[0];
    EXPECT_EQ(report.pairs.size(), report.features.size() * (report.features.size() + 1) / 2);
    const auto count = [&](Feature larger, Feature smaller) {
        const std::int64_t row = place(report, larger);
        return report.pairs[static_cast<std::size_t>(row * (row + 1) / 2 + place(report, smaller))];
    };
    EXPECT_EQ(count(Feature::causal, Feature::causal), 3);
    EXPECT_EQ(count(Feature::gqa, Feature::causal), 3);
    // A problem has one mask tensor.
    EXPECT_TRUE(contains(report.impossible, {place(report, Feature::mask_additive),
                                             place(report, Feature::mask_bool)}));
    const CoverageSummary sum = summarise(reports);
    EXPECT_EQ(sum.undrawn, sum.possible - sum.drawn);
    EXPECT_GT(sum.drawn, 2);
    EXPECT_EQ(coverage_reports(result, 4, nullptr, reports)[0].cases, 6);
}

}  // namespace
}  // namespace attest::search
