// Which pairs of features a kernel could have been asked for.

#include "ci/coverage.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/search/features.hpp"

namespace attest {
namespace {

// ALiBi beside lengths is no problem by itself; a cache tells where the queries stand.
TEST(Coverage, APairMayNeedAThirdFeature) {
    CampaignResult result;
    result.manifest.formats = {Precision::f32};
    result.manifest.features_declared = true;
    result.manifest.features = FeatureSet(Feature::alibi, Feature::lens_q);
    for (const bool cached : {false, true}) {
        // Who aligns at the end has a cache from the border, whether it declares one or not.
        result.manifest.dialect.causal =
            cached ? CausalAlignment::bottom_right : CausalAlignment::top_left;
        const Record record = coverage_records(result, 4, nullptr, {})[0];
        const Record& features = record.at("features");
        Record pair = Record::array();
        for (std::size_t n = features.size(); n-- > 0;)
            if (features[n] == "alibi" || features[n] == "lens_q") pair.push_back(n);
        const Record& undrawn = record.at("undrawn");
        EXPECT_EQ(std::find(undrawn.begin(), undrawn.end(), pair) != undrawn.end(), cached);
    }
}

TEST(Coverage, WhereEverythingIsOfferedWhatFitsCanOccur) {
    CampaignResult result;
    result.manifest.formats = {Precision::f32, Precision::bf16};
    result.manifest.features_declared = true;
    for (int n = 0; n < feature_count; ++n)
        result.manifest.features = result.manifest.features.with(static_cast<Feature>(n));
    const Record record = coverage_records(result, 4, nullptr, {})[0];
    const Record& features = record.at("features");
    for (const Record& pair : record.at("impossible")) {
        const auto feature = [&](int end) {
            return *parse_feature(features[pair[end].get<std::size_t>()].get<std::string>());
        };
        EXPECT_FALSE(compatible(feature(0), feature(1))) << features << pair;
    }
}

}  // namespace
}  // namespace attest
