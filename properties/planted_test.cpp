// Every law turns red under each deviation that it names, and holds for the truth: a law that
// nothing turns red would not be worth its time, and one that a right kernel turns red would be
// worth less. The museum (kernels/mutants) does the same with real kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "properties/truthful_test.hpp"

namespace attest::law {
namespace {

constexpr std::int64_t cases = 120;

struct Planting {
    Property law;
    PlantedDeviation deviation;
};

std::vector<Planting> plantings() {
    std::vector<Planting> all;
    for (const Property& law : catalogue())
        for (const PlantedDeviation& deviation : law.turned_red_by) all.push_back({law, deviation});
    return all;
}

void PrintTo(const Planting& planting, std::ostream* out) {
    *out << planting.law.id << " by " << planting.deviation.id;
}

std::string test_name(std::string id) {
    id[id.find('.')] = '_';
    return id;
}

/// As the profile quick tries.
std::int64_t cases_of(const Property& law) {
    return law.cases_enough > 0 ? std::min(cases, law.cases_enough) : cases;
}

bool turns_red(const Property& law, const PlantedDeviation& deviation) {
    TruthfulKernel kernel(Dialect{}, deviation);
    kernel.take_formats_of(law);
    return try_until_violated(kernel, law, cases_of(law)).violated > 0;
}

class EveryPlantedDeviation : public ::testing::TestWithParam<Planting> {};

TEST_P(EveryPlantedDeviation, TurnsItsLawRed) {
    EXPECT_TRUE(turns_red(GetParam().law, GetParam().deviation));
}

// The red above is the law's own: nothing else around it would notice.
TEST_P(EveryPlantedDeviation, IsMissedByALawThatAlwaysHolds) {
    Property law = GetParam().law;
    law.check = [](const Given&) -> Plan { return Judge([](const Trial&) { return holds(1); }); };
    EXPECT_FALSE(turns_red(law, GetParam().deviation));
}

INSTANTIATE_TEST_SUITE_P(Laws, EveryPlantedDeviation, ::testing::ValuesIn(plantings()),
                         [](const auto& one) {
                             return test_name(one.param.law.id) + "_by_" + one.param.deviation.id;
                         });

class EveryLaw : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryLaw, HoldsForTheTruth) {
    const Property& law = *find_property(GetParam());
    TruthfulKernel kernel(Dialect{});
    kernel.take_formats_of(law);
    const auto tried = try_law(kernel, law, cases_of(law));
    EXPECT_EQ(tried.violated, 0) << tried.example;
    const bool declared = !law.needs.structure;  // the truth declares none
    EXPECT_EQ(tried.judged > cases_of(law) / 2, declared) << tried.judged;
}

std::vector<std::string> ids() {
    std::vector<std::string> all;
    for (const Property& law : catalogue()) all.push_back(law.id);
    return all;
}

INSTANTIATE_TEST_SUITE_P(Laws, EveryLaw, ::testing::ValuesIn(ids()),
                         [](const auto& one) { return test_name(one.param); });

// PyTorch's exp(0) is 1 - 5e-5 on a CPU, in f16 and bf16: a tie then goes the other way.
TEST(Rounding, ACoarseExpIsNoWrongRounding) {
    const auto violated = [](double ulp, double factor) {
        TruthfulKernel kernel(Dialect{}, planted::answers_times(factor));
        kernel.claim_exp(ulp);
        return try_law(kernel, *find_property("reference.rounding"), cases).violated;
    };
    EXPECT_GT(violated(2, 1 + 5.3e-5), 0);
    EXPECT_EQ(violated(1000, 1 + 5.3e-5), 0);
    EXPECT_GT(violated(1000, 1 + 2e-3), 0);
}

// An exp that is off is seen of kernels that answer nothing but what decoding asks.
TEST(Ratio, IsAskedOfKernelsThatTakeNothingWithoutACache) {
    const Property& law = *find_property("probability.ratio");
    for (const FeatureSet always :
         {FeatureSet(Feature::cache), FeatureSet(Feature::lens_kv), FeatureSet(Feature::causal),
          FeatureSet(Feature::cache, Feature::lens_kv, Feature::causal)}) {
        kernel::Manifest manifest = truthful_manifest(Dialect{});
        manifest.takes.always = always;
        TruthfulKernel right(manifest), wrong(manifest, law.turned_red_by.front());
        const auto tried = try_law(right, law, cases);
        EXPECT_EQ(tried.violated, 0) << tried.example;
        EXPECT_GT(tried.judged, cases / 2);
        EXPECT_GT(try_until_violated(wrong, law, cases).violated, 0);
    }
}

TEST(StaleState, ARememberedAnswerIsNamed) {
    const Property& law = *find_property("hygiene.stale_state");
    TruthfulKernel kernel(Dialect{}, law.turned_red_by.front());
    const auto tried = try_until_violated(kernel, law, cases);
    EXPECT_NE(tried.example.find("returns the same output for other contents"), std::string::npos)
        << tried.example;
}

}  // namespace
}  // namespace attest::law
