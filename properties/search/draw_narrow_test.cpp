// A kernel that takes little is asked for all of it: no law is left without cases for being too
// small, every promised size is drawn, and every pair of its features.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "properties/search/campaign_test.hpp"
#include "properties/search/coverage.hpp"
#include "properties/search/draw.hpp"
#include "properties/search/features.hpp"

namespace attest::search {
namespace {

struct Little {
    std::string name;
    void (*narrow)(kernel::Manifest&);
};

std::string PrintToString(const Little& one) {
    return one.name;
}

using enum kernel::Quantity;

void takes_only(kernel::Manifest& m, Feature feature) {
    m.takes.always = FeatureSet(feature);
}

const Little little_takers[] = {
    {"pages", [](kernel::Manifest& m) { takes_only(m, Feature::paged); }},
    {"rings", [](kernel::Manifest& m) { takes_only(m, Feature::ring); }},
    {"rotated_keys", [](kernel::Manifest& m) { takes_only(m, Feature::keys_rotated); }},
    {"packed_sequences", [](kernel::Manifest& m) { takes_only(m, Feature::documents); }},
    {"values_of_other_channels", [](kernel::Manifest& m) { takes_only(m, Feature::dim_v); }},
    {"mixed_formats", [](kernel::Manifest& m) { takes_only(m, Feature::mixed_formats); }},
    {"caches", [](kernel::Manifest& m) { takes_only(m, Feature::cache); }},
    {"causal_order", [](kernel::Manifest& m) { takes_only(m, Feature::causal); }},
    {"windows", [](kernel::Manifest& m) { takes_only(m, Feature::window); }},
    {"rotations", [](kernel::Manifest& m) { takes_only(m, Feature::rope); }},
    {"slopes", [](kernel::Manifest& m) { takes_only(m, Feature::alibi); }},
    {"sinks", [](kernel::Manifest& m) { takes_only(m, Feature::sink); }},
    {"groups", [](kernel::Manifest& m) { takes_only(m, Feature::gqa); }},
    {"lengths_of_keys", [](kernel::Manifest& m) { takes_only(m, Feature::lens_kv); }},
    {"lengths_of_queries", [](kernel::Manifest& m) { takes_only(m, Feature::lens_q); }},
    {"boolean_masks", [](kernel::Manifest& m) { takes_only(m, Feature::mask_bool); }},
    {"additive_masks", [](kernel::Manifest& m) { takes_only(m, Feature::mask_additive); }},
    {"many_keys", [](kernel::Manifest& m) { m.takes[len_kv].least = 512; }},
    {"many_keys_and_heads",
     [](kernel::Manifest& m) { m.takes[len_kv].least = 256, m.takes[heads_kv].least = 8; }},
    {"whole_tiles_of_keys", [](kernel::Manifest& m) { m.takes[len_kv].multiple = 64; }},
    {"whole_tiles",
     [](kernel::Manifest& m) { m.takes[len_q].multiple = m.takes[len_kv].multiple = 64; }},
    {"large_pages",
     [](kernel::Manifest& m) { takes_only(m, Feature::paged), m.takes[page_size].only = {256}; }},
    {"many_sequences", [](kernel::Manifest& m) { m.takes[batch].least = 64; }},
};

class LittleTaking : public testing::TestWithParam<Little> {
protected:
    LittleTaking() {
        plan.manifest = full_manifest();
        plan.manifest.formats = {Precision::f32, Precision::f16};
        GetParam().narrow(plan.manifest);
        plan.refuses = [manifest = plan.manifest](const Problem& p) {
            return !features_of(p).contains(with_needed(manifest.takes.always)) ||
                   kernel::refusal(manifest.takes, p);
        };
        PlantedKernel kernel(plan);
        std::vector<std::string> narrowed;
        capability = probed_capability(kernel, narrowed);
    }

    KernelPlan plan{};
    Capability capability;
    Profile profile;
};

TEST_P(LittleTaking, IsAskedForEveryPromisedSize) {
    for (const law::Property& law :
         {zero_law("narrow.any"), zero_law("narrow.dear", {.cost = 16}),
          zero_law("narrow.few_sequences", {.batch_max = 2, .limited_because = "a test"})}) {
        EXPECT_EQ(why_not_applicable(law, capability), std::nullopt);
        const Sizes promised = promised_sizes({law, capability, profile});
        EXPECT_FALSE(promised.empty());
        Sizes largest;
        std::int64_t drawn = 0;
        for (std::int64_t n = 0; n < profile.cases_per_law; ++n)
            for (std::int64_t attempt = 0; attempt < 16; ++attempt)
                if (const auto c = draw({law, capability, profile}, 1, n, attempt)) {
                    largest.cover(sizes_of(c->problem));
                    EXPECT_LE(score_count(c->problem), 64 * profile.scores_max) << print(*c);
                    ++drawn;
                    break;
                }
        EXPECT_TRUE(promised.within(largest)) << law.id;
        EXPECT_EQ(drawn, profile.cases_per_law) << law.id;
    }
}

TEST_P(LittleTaking, IsAskedForEveryPairOfItsFeatures) {
    CampaignResult result;
    result.manifest = plan.manifest;
    LawResult law;
    const law::Property any = zero_law("narrow.pairs");
    for (std::int64_t n = 0; n < 4000; ++n)
        if (const auto c = draw({any, capability, profile}, 1, n, n % 4)) {
            CaseRecord record;
            record.tried = *c;
            law.records.push_back(record);
        }
    result.laws.push_back(law);
    PlantedKernel kernel(plan);
    for (const CoverageReport& report : coverage_reports(result, 4, &kernel, {})) {
        std::string undrawn;
        for (const auto& [a, b] : report.undrawn)
            undrawn += report.features[static_cast<std::size_t>(a)] + " with " +
                       report.features[static_cast<std::size_t>(b)] + "; ";
        EXPECT_EQ(undrawn, "") << name(report.format);
        EXPECT_LT(report.impossible.size(), report.pairs.size() / 2);
    }
}

// A probe of lengths and heads that asks about others must not stand before what is listed.
TEST(Listed, EveryNumberIsDrawn) {
    KernelPlan plan{};
    plan.manifest = full_manifest();
    kernel::Takes& takes = plan.manifest.takes;
    takes[batch].only = {1, 6};
    takes[heads_kv].only = {2, 12, 32};
    takes[len_q].only = {1, 77};
    takes[len_kv].only = {64, 100, 777};
    takes[page_size].only = {24, 48};
    takes[window_left].only = {-1, 17, 1000};
    plan.refuses = [takes](const Problem& p) { return kernel::refusal(takes, p).has_value(); };
    PlantedKernel kernel(plan);
    std::vector<std::string> narrowed;
    const Capability capability = probed_capability(kernel, narrowed);
    const law::Property law = zero_law("draw.listed");
    std::map<std::string, std::set<std::int64_t>> met;
    for (std::int64_t n = 0; n < 1000; ++n)
        if (const auto c = draw({law, capability, Profile{}}, 1, n, n % 4)) {
            const Problem& p = c->problem;
            met["batch"].insert(p.batch);
            met["heads_kv"].insert(p.heads_kv);
            met["len_q"].insert(p.len_q);
            met["len_kv"].insert(p.len_kv);
            if (p.cache.page_size > 0) met["page_size"].insert(p.cache.page_size);
            met["window_left"].insert(p.mask.window.left);
        }
    const std::map<std::string, std::set<std::int64_t>> all = {
        {"batch", {1, 6}},          {"heads_kv", {2, 12, 32}}, {"len_q", {1, 77}},
        {"len_kv", {64, 100, 777}}, {"page_size", {24, 48}},   {"window_left", {-1, 17, 1000}}};
    EXPECT_EQ(met, all);
}

// What goes wrong between tiles shows in no case of one tile.
TEST(WholeTiles, ManyACaseHasSeveral) {
    const Profile profile;
    for (const std::int64_t tile : {16, 64, 128})
        for (const bool square : {false, true})
            for (const std::int64_t cost : {1, 4}) {
                Capability capability = declared_capability(full_manifest());
                capability.takes[len_q].multiple = capability.takes[len_kv].multiple = tile;
                capability.takes[dim_qk].only = {64, 128};
                capability.dims = {64, 128};
                law::CaseSpace space{.cost = cost};
                space.square = square;
                const law::Property law = zero_law("narrow.tiles", space);
                std::int64_t cases = 0, of_keys = 0, of_queries = 0, of_heads = 0;
                for (std::int64_t n = 0; n < 400; ++n)
                    if (const auto c = draw({law, capability, profile}, 1, n, 0)) {
                        ++cases;
                        of_keys += c->problem.len_kv > tile;
                        of_queries += c->problem.len_q > tile;
                        of_heads += c->problem.heads_q > 1;
                    }
                // Of the largest tiles a dear law affords few.
                const std::int64_t least = tile * cost <= 256 ? cases / 5 : cases / 10;
                const std::string what =
                    fmt::format("tile {} square {} cost {}", tile, square, cost);
                EXPECT_GE(of_keys, least) << what;
                EXPECT_GE(of_queries, least) << what;
                EXPECT_GE(of_heads, least) << what;
            }
}

// Nor does what goes wrong between pages in a case of one page.
TEST(LargePages, ManyACaseHasSeveral) {
    Capability capability = declared_capability(full_manifest());
    capability.takes[page_size].only = {256};
    const law::Property law = zero_law("narrow.pages");
    std::int64_t paged = 0, several = 0;
    for (std::int64_t n = 0; n < 1000; ++n)
        if (const auto c = draw({law, capability, Profile{}}, 1, n, 0)) {
            const Problem& p = c->problem;
            paged += p.cache.page_size > 0;
            several += p.cache.page_size > 0 && p.len_kv > p.cache.page_size;
        }
    EXPECT_GE(paged, 50);
    EXPECT_GE(4 * several, paged) << several << " of " << paged;
}

TEST(LittleTaken, WhatALawCannotAffordIsSaidInNumbers) {
    Capability capability = declared_capability(full_manifest());
    capability.features = FeatureSet(Feature::causal);
    const auto why = [&](law::CaseSpace cases) {
        const law::Property law = zero_law("narrow.why", std::move(cases));
        return why_not_applicable(law, capability).value_or("");
    };
    capability.takes[len_q].least = 2048;
    EXPECT_EQ(why({.square = true}),
              "the law affords 1048576 scores a case; the kernel takes no fewer than 4194304");
    EXPECT_EQ(why({.cost = 8}), "");
    capability.takes[len_kv].least = 33;
    EXPECT_EQ(why({.cost = 8}),
              "the law affords 65536 scores a case; the kernel takes no fewer than 67584");
    EXPECT_EQ(why({.cost = 4}), "");
    capability.takes[len_q].only = {1};
    EXPECT_EQ(why({.square = true}), "kernel takes no call of as many queries as keys");
}

TEST(CasesAfforded, AreFewerWhereTheSmallestProblemIsLarge) {
    kernel::Takes takes;
    EXPECT_EQ(cases_afforded(120, takes), 120);
    takes[dim_qk].only = {64, 128};
    takes[len_q].multiple = takes[len_kv].multiple = 128;
    EXPECT_EQ(cases_afforded(120, takes), 120);
    takes[len_kv].least = 1024;  // (128 + 1024) * (64 + 64) numbers
    EXPECT_EQ(cases_afforded(120, takes), 106);
    takes[heads_kv].least = 8;
    EXPECT_EQ(cases_afforded(120, takes), 40);
    EXPECT_EQ(cases_afforded(1, takes), 1);
}

INSTANTIATE_TEST_SUITE_P(Search, LittleTaking, testing::ValuesIn(little_takers),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace attest::search
