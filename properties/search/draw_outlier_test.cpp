// The sizes a profile names are reached by every law that can follow, within its usual number of
// cases; and by nothing but luck beyond.

#include "properties/search/draw_outlier.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "properties/search/draw_case_test.hpp"
#include "properties/search/features.hpp"
#include "properties/search/planted_test.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {
namespace {

constexpr std::int64_t quick_cases = 120;

Sizes largest_drawn(const law::Property& law, const Capability& capability, const Profile& profile,
                    std::uint64_t seed) {
    Sizes largest;
    for (std::int64_t k = 0; k < quick_cases; ++k)
        for (std::int64_t attempt = 0; attempt < 16; ++attempt)
            if (const auto c = draw({law, capability, profile}, seed, k, attempt)) {
                EXPECT_FALSE(find_contradiction(c->problem)) << print(*c);
                EXPECT_TRUE(in_space(law, capability, c->problem)) << print(*c);
                largest.cover(sizes_of(c->problem));
                break;
            }
    return largest;
}

kernel::Manifest manifest_of(std::vector<kernel::Formats> formats) {
    kernel::Manifest manifest = full_manifest();
    manifest.formats = std::move(formats);
    return manifest;
}

using enum SizeAxis;

TEST(Outlier, EveryPromisedSizeIsDrawnWhateverTheSeed) {
    const Profile profile;
    for (const auto& formats :
         {std::vector<kernel::Formats>{Precision::f32},
          {Precision::f64, Precision::f32, Precision::f16, Precision::bf16}}) {
        const Capability capability = declared_capability(manifest_of(formats));
        for (const law::Property& law :
             {zero_law("outlier.any"), zero_law("outlier.square", {.square = true}),
              zero_law("outlier.dear", {.cost = 16}),
              zero_law("outlier.one_query", {.len_q_one = true}),
              zero_law("outlier.cached", {.require = FeatureSet(Feature::cache)}),
              zero_law("outlier.rope", {.require = FeatureSet(Feature::rope)}),
              zero_law("outlier.grouped", {.require = FeatureSet(Feature::gqa)}),
              zero_law("outlier.limited",
                       {.len_max = 40, .dim_max = 20, .limited_because = "a test"}),
              zero_law("outlier.documents", {.require = FeatureSet(Feature::documents)})}) {
            const Sizes promised = promised_sizes({law, capability, profile});
            for (const std::uint64_t seed : {1, 2, 3})
                EXPECT_TRUE(promised.within(largest_drawn(law, capability, profile, seed)))
                    << law.id << " of " << formats.size() << " formats, seed " << seed;
        }
    }
}

TEST(Outlier, WhatIsPromisedIsAllThatLawAndProfileAllow) {
    const Profile profile;
    const Capability capability = declared_capability(manifest_of({Precision::f32}));
    const auto promised = [&](const law::CaseSpace& cases) {
        const law::Property law = zero_law("outlier.promise", cases);
        return promised_sizes({law, capability, profile});
    };
    EXPECT_EQ(promised({}), profile.reach);
    const Sizes one_query = promised({.len_q_one = true});
    EXPECT_EQ(one_query[len_q], 0);
    EXPECT_EQ(one_query[len_kv], profile.reach[len_kv]);
    const Sizes limited = promised({.len_max = 40, .dim_max = 20, .limited_because = "a test"});
    EXPECT_EQ(limited[len_kv], 0);
    EXPECT_EQ(limited[dim_qk], 0);
    EXPECT_EQ(limited[batch], profile.reach[batch]);
    EXPECT_EQ(promised({.allow = FeatureSet()})[documents], 0);
    // As many queries as keys: the scores of the longest are more than a case may have.
    EXPECT_EQ(promised({.square = true})[len_kv], 513);
    EXPECT_EQ(promised({.cost = 2, .square = true})[len_kv], 385);
}

TEST(Outlier, OneSizeIsLargeAndTheOthersSmall) {
    const Profile profile;
    const Capability capability = declared_capability(manifest_of({Precision::f32}));
    const law::Property law = zero_law("outlier.small");
    std::int64_t seen = 0;
    for (std::int64_t k = 0; k < 600; ++k) {
        const auto c = draw({law, capability, profile}, 1, k, 0);
        if (!c || std::max(c->problem.len_q, c->problem.len_kv) <= profile.len_max) continue;
        ++seen;
        EXPECT_LE(score_count(c->problem), 2 * 32 * profile.scores_max) << print(*c);  // two heads
        EXPECT_LE(std::max(c->problem.dim_qk, value_dim(c->problem)), 10) << print(*c);
    }
    EXPECT_GE(seen, 20);
}

// Nothing hides what is far out: a key past 1024 that is dropped shows.
TEST(Outlier, TheFarKeysAreSeen) {
    const Profile profile;
    const Capability capability = declared_capability(manifest_of({Precision::f32}));
    const law::Property law = zero_law("outlier.seen");
    for (std::int64_t k = 0; k < 600; ++k) {
        const auto c = draw({law, capability, profile}, 1, k, 0);
        if (!c || c->problem.len_kv <= 1024) continue;
        EXPECT_TRUE(c->problem.mask.lens_kv.empty() && !c->problem.mask.window.limited())
            << print(*c);
    }
}

TEST(Outlier, HeadsBetweenTheUsualOnesAreDrawnToo) {
    std::set<std::int64_t> met;
    const Capability capability = declared_capability(full_manifest());
    const law::Property law = zero_law("outlier.heads");
    for (std::int64_t k = 0; k < 2000; ++k)
        if (const auto c = draw({law, capability, Profile{}}, 1, k, 0))
            met.insert(c->problem.heads_kv);
    for (const std::int64_t heads : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32})
        EXPECT_TRUE(met.contains(heads)) << heads;
}

TEST(Outlier, OnlyWhatTheKernelTakesIsDrawnAndPromised) {
    KernelPlan plan{.manifest = full_manifest()};
    plan.refuses = [](const Problem& p) {
        return p.batch > 8 || std::max(p.dim_qk, value_dim(p)) > 256 || p.len_kv > 5000 ||
               p.len_kv % 16 != 0 || p.heads_q > 64;
    };
    PlantedKernel kernel(plan);
    std::vector<std::string> narrowed;
    const Capability capability = probed_capability(kernel, narrowed);
    const Profile profile;
    const law::Property law = zero_law("outlier.narrow");
    const Sizes promised = promised_sizes({law, capability, profile});
    EXPECT_EQ(promised[batch], 5);
    EXPECT_EQ(promised[dim_qk], 193);
    EXPECT_EQ(promised[heads_q], 64);
    EXPECT_EQ(promised[len_kv], 4992);  // the largest
    const Sizes drawn = largest_drawn(law, capability, profile, 1);
    EXPECT_TRUE(promised.within(drawn));
    EXPECT_LE(drawn[batch], 8);
    EXPECT_LE(drawn[dim_qk], 256);
    EXPECT_LE(drawn[len_kv], 5000);
}

// Latent attention: values of fewer channels than queries, and nothing else.
TEST(Capability, AKernelOfUnequalHeadDimensionsAloneIsAskedForThem) {
    for (const auto& [qk, v] : {std::pair<std::int64_t, std::int64_t>{192, 128}, {576, 512}}) {
        KernelPlan plan{.manifest = full_manifest()};
        plan.refuses = [qk = qk, v = v](const Problem& p) {
            return p.dim_qk != qk || value_dim(p) != v;
        };
        PlantedKernel kernel(plan);
        std::vector<std::string> narrowed;
        const Capability capability = probed_capability(kernel, narrowed);
        EXPECT_TRUE(capability.always.has(Feature::dim_v));
        const law::Property law = zero_law("unequal.any");
        std::int64_t drawn = 0, keys = 0;
        for (std::int64_t k = 0; k < quick_cases; ++k) {
            const auto c = draw({law, capability, Profile{}}, 1, k, 0);
            if (!c) continue;
            ++drawn;
            EXPECT_EQ(c->problem.dim_qk, qk) << print(*c);
            EXPECT_EQ(value_dim(c->problem), v) << print(*c);
            keys = std::max(keys, c->problem.len_kv);
        }
        EXPECT_GE(drawn, quick_cases * 9 / 10);
        EXPECT_EQ(keys, qk == 576 ? 6145 : 24577);  // 98305 keys of so many are a gigabyte
        // A law that makes problems as large as the channels are many: at its word, not far beyond.
        const law::Property few =
            zero_law("unequal.few", {.dim_max = 12, .limited_because = "a test"});
        EXPECT_EQ(why_not_applicable(few, capability).value_or(""),
                  qk == 576
                      ? "the smallest head dimension that the kernel takes is too large for it"
                      : "");
        EXPECT_EQ(promised_sizes({few, capability, Profile{}}), Sizes());
    }
}

struct KernelEnd {
    const char* takes;
    Sizes sizes;
};

const KernelEnd ends[] = {
    {R"({"queries":"as_keys","len_q":[64,256]})", {{len_q, 256}, {len_kv, 256}}},
    {R"({"queries":"as_keys","len_q":{"most":256}})", {{len_q, 256}, {len_kv, 256}}},
    {R"({"queries":"at_most_keys","len_q":{"multiple":4,"most":254}})", {{len_q, 252}}},
    {R"({"len_q":{"most":300},"len_kv":{"most":1000}})", {{len_q, 300}, {len_kv, 1000}}},
    {R"({"batch":{"most":7},"heads_kv":{"most":11}})", {{batch, 7}, {heads_kv, 11}}},
    {R"({"dim_qk":{"most":200},"dim_v":{"most":190}})", {{dim_qk, 200}, {dim_v, 190}}},
};

// What goes wrong at a kernel's own ends alone is met nowhere else; of those it only tells when
// asked, too.
TEST(Outlier, TheLargestThatAKernelTakesIsDrawn) {
    const law::Property law = zero_law("outlier.any");
    for (const auto& [takes, sizes] : ends) {
        kernel::Manifest declared = manifest_of({Precision::f32});
        declared.takes =
            kernel::parse_manifest(
                fmt::format(R"({{"name":"x","version":"1","formats":["f32"],"takes":{}}})", takes),
                "x")
                .takes;
        for (const bool silent : {false, true}) {
            const auto refuses = [&declared](const Problem& p) {
                return kernel::refusal(declared, p).has_value();
            };
            // Asked of lengths alone, and not of every number.
            if (silent && (!declared.takes[kernel::Quantity::len_q].only.empty() ||
                           sizes[batch] + sizes[dim_qk] > 0))
                continue;
            PlantedKernel kernel({.manifest = silent ? manifest_of({Precision::f32}) : declared,
                                  .refuses = refuses});
            std::vector<std::string> narrowed;
            const Capability capability = probed_capability(kernel, narrowed);
            const Sizes drawn = largest_drawn(law, capability, Profile(), 1);
            EXPECT_TRUE(sizes.within(drawn)) << takes << (silent ? " of supports()" : "");
        }
    }
}

}  // namespace
}  // namespace attest::search
