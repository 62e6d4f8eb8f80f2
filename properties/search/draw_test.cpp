// What is drawn: always valid, always within the law's space and the kernel's words, the same for
// the same (seed, law, number) - and wide enough: the shares below are what makes bugs come up at
// all.

#include "properties/search/draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "properties/search/draw_case_test.hpp"
#include "properties/search/features.hpp"
#include "properties/search/planted_test.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/mask_pattern.hpp"

namespace attest::search {
namespace {

TEST(Draw, EveryCaseIsValidAndInItsSpace) {
    const kernel::Manifest manifest = full_manifest();
    const Capability capability = declared_capability(manifest);
    for (const law::Property& law :
         {zero_law("draw.any"), zero_law("draw.square", {.square = true}),
          zero_law("draw.decode", {.require = FeatureSet(Feature::cache), .len_q_one = true}),
          zero_law("draw.rope", {.require = FeatureSet(Feature::rope)}),
          zero_law("draw.one_query", {.require = FeatureSet(Feature::alibi), .len_q_one = true}),
          zero_law("draw.documents", {.require = FeatureSet(Feature::documents)})}) {
        const auto cases = draws(law, manifest, 400);
        EXPECT_GE(cases.size(), 396u) << law.id;
        for (const Case& c : cases) {
            EXPECT_NO_THROW(require_valid(c.problem)) << print(c);
            EXPECT_TRUE(in_space(law, capability, c.problem)) << print(c);
            EXPECT_EQ(c.problem, canonical(c.problem)) << print(c);
            EXPECT_TRUE(features_of(c.problem).contains(law.cases.require)) << print(c);
        }
    }
}

/// Cases that are no draw of the law are held to its space too: stored ones, and few shapes.
TEST(Draw, NoOtherFeatureBringsOneThatTheLawIsNotTriedOn) {
    const Capability capability = declared_capability(full_manifest());
    const FeatureSet cacheless = FeatureSet::all().without(Feature::cache).without(Feature::paged);
    const law::Property law = zero_law("draw.cacheless", {.allow = cacheless});
    for (const char* line : {"b1 hq1 hkv1 tq2 tk4 d4 causal cache 2 f32",
                             "b1 hq1 hkv1 tq2 tk40 d4 causal window 7 -1 cache 38 ring f32"}) {
        const Problem p = parse_problem(line);
        EXPECT_TRUE(in_space(zero_law("draw.any"), capability, p)) << line;
        EXPECT_FALSE(in_space(law, capability, p)) << line;
    }
}

TEST(Draw, StaysWithinWhatTheKernelDeclares) {
    kernel::Manifest manifest = full_manifest();
    manifest.features = FeatureSet(Feature::causal, Feature::gqa, Feature::lse);
    manifest.formats = {Precision::f16};
    manifest.takes[kernel::Quantity::dim_qk].most = 64;
    manifest.takes[kernel::Quantity::len_q].most = manifest.takes[kernel::Quantity::len_kv].most =
        100;
    for (const Case& c : draws(zero_law("draw.limits"), manifest, 400)) {
        EXPECT_TRUE(manifest.features.contains(features_of(c.problem))) << print(c);
        EXPECT_EQ(c.problem.format_q, Precision::f16);
        EXPECT_LE(c.problem.dim_qk, 64);
        EXPECT_LE(std::max(c.problem.len_q, c.problem.len_kv), 100);
    }
}

TEST(Draw, IsTheSameForTheSameSeedLawAndNumber) {
    const kernel::Manifest manifest = full_manifest();
    const law::Property law = zero_law("draw.same");
    EXPECT_EQ(draws(law, manifest, 50), draws(law, manifest, 50));
    EXPECT_NE(draws(law, manifest, 50), draws(law, manifest, 50, 2));
    EXPECT_NE(draws(law, manifest, 50), draws(zero_law("draw.other"), manifest, 50));
}

// The shares that keep the generator from narrowing unnoticed: one sequence, equal heads, whole
// tiles or equal lengths alone would leave most real bugs unseen.
TEST(Draw, ComesWithTheShapesThatBugsNeed) {
    const auto cases = draws(zero_law("draw.shares"), full_manifest(), 2000);
    const auto at_least = [&](double least, const char* what, auto predicate) {
        EXPECT_GE(share(cases, predicate), least) << what;
    };
    at_least(0.25, "more than one sequence", [](const Problem& p) { return p.batch > 1; });
    at_least(0.30, "groups", [](const Problem& p) { return p.heads_q != p.heads_kv; });
    at_least(0.12, "groups with two key heads or more",
             [](const Problem& p) { return p.heads_q != p.heads_kv && p.heads_kv > 1; });
    at_least(0.06, "groups of 3, 5, 6, 7 with two key heads or more", [](const Problem& p) {
        return p.heads_kv > 1 && std::set<std::int64_t>{3, 5, 6, 7}.contains(group_size(p));
    });
    at_least(0.01, "groups above 8 with two key heads or more",
             [](const Problem& p) { return p.heads_kv > 1 && group_size(p) > 8; });
    at_least(0.40, "len_q != len_kv", [](const Problem& p) { return p.len_q != p.len_kv; });
    at_least(0.14, "len_q > len_kv", [](const Problem& p) { return p.len_q > p.len_kv; });
    at_least(0.15, "len_q == len_kv", [](const Problem& p) { return p.len_q == p.len_kv; });
    at_least(0.08, "one query", [](const Problem& p) { return p.len_q == 1; });
    at_least(0.60, "no multiple of a tile of 16", [](const Problem& p) { return p.len_kv % 16; });
    at_least(0.05, "whole tiles of 16", [](const Problem& p) { return p.len_kv % 16 == 0; });
    at_least(0.20, "a second tile of 64", [](const Problem& p) { return p.len_kv > 64; });
    at_least(0.08, "a second tile of 128", [](const Problem& p) { return p.len_kv >= 130; });
    at_least(0.03, "a second row tile of 128", [](const Problem& p) { return p.len_q >= 130; });
    at_least(0.04, "one key past whole tiles of 16",
             [](const Problem& p) { return p.len_kv > 16 && p.len_kv % 16 == 1; });
    at_least(0.40, "dim no multiple of 8", [](const Problem& p) { return p.dim_qk % 8 != 0; });
    at_least(0.10, "dim 64 or more", [](const Problem& p) { return p.dim_qk >= 64; });
    at_least(0.10, "dim_v != dim_qk", [](const Problem& p) { return p.dim_v != 0; });
    at_least(0.30, "causal", [](const Problem& p) { return p.mask.causal; });
    at_least(0.08, "causal, len_q < len_kv",
             [](const Problem& p) { return p.mask.causal && p.len_q < p.len_kv; });
    at_least(0.05, "causal, len_q > len_kv",
             [](const Problem& p) { return p.mask.causal && p.len_q > p.len_kv; });
    at_least(0.15, "a layout", [](const Problem& p) {
        return p.layout_q != Layout{} || p.layout_k != Layout{} || p.layout_v != Layout{};
    });
}

TEST(Draw, IsMostlySmall) {
    const auto cases = draws(zero_law("draw.sizes"), full_manifest(), 2000);
    std::vector<std::int64_t> scores;
    for (const Case& c : cases) scores.push_back(score_count(c.problem));
    std::sort(scores.begin(), scores.end());
    EXPECT_GE(scores[scores.size() / 2], 128);
    EXPECT_LE(scores[scores.size() / 2], 4096);
    EXPECT_LE(scores[scores.size() * 19 / 20], 16384);
    EXPECT_LE(scores.back(), 2 * 32 * 16384);  // of the outliers
    EXPECT_GE(scores.back(), 8192);
}

/// What the tiles of kernels lose sight of is drawn at every size of a tile.
TEST(Draw, MasksComeInEveryPatternAndTile) {
    const law::Property law = zero_law(
        "draw.masks",
        {.require_any = {FeatureSet(Feature::mask_bool), FeatureSet(Feature::mask_additive)}});
    kernel::Manifest manifest = full_manifest();
    manifest.takes.mask_shared.push_back(&MaskTensor::shared_keys);
    const auto cases = draws(law, manifest, 2000);
    std::map<MaskPattern, double> patterns;
    std::map<std::int64_t, int> tiles;
    for (const Case& c : cases) {
        const MaskTensor& mask = c.problem.mask.tensor;
        patterns[mask.pattern] += 1.0 / static_cast<double>(cases.size());
        if (has_tiles(mask.pattern)) ++tiles[mask.tile];
        EXPECT_TRUE(!mask.shared_keys || mask.pattern == MaskPattern::iid ||
                    mask.pattern == MaskPattern::empty_rows)
            << print(c);
    }
    for (int n = 0; n < mask_pattern_count; ++n)
        EXPECT_GE(patterns[static_cast<MaskPattern>(n)], 0.03) << name(static_cast<MaskPattern>(n));
    for (const std::int64_t tile : {1, 2, 4, 8, 16, 32, 64, 128})
        EXPECT_GE(tiles[tile], 10) << tile;
    EXPECT_GE(share(cases, [](const Problem& p) { return p.mask.tensor.floor < 0; }), 0.08);
    for (bool MaskTensor::*shared : {&MaskTensor::shared_batch, &MaskTensor::shared_heads,
                                     &MaskTensor::shared_queries, &MaskTensor::shared_keys})
        EXPECT_GE(share(cases, [&](const Problem& p) { return p.mask.tensor.*shared; }), 0.05);
    manifest.dialect.empty_row = EmptyRow::refuse;
    manifest.takes = {};
    for (const Case& c : draws(law, manifest, 400)) {
        EXPECT_NE(c.problem.mask.tensor.pattern, MaskPattern::empty_rows) << print(c);
        EXPECT_FALSE(c.problem.mask.tensor.shared_keys) << print(c);
    }
}

TEST(Draw, EveryFormatAndEveryKindComesUp) {
    std::map<Precision, int> formats;
    std::map<ValueKind, int> kinds;
    std::set<std::pair<Precision, ValueKind>> both;
    for (const Case& c : draws(zero_law("draw.kinds"), full_manifest(), 300)) {
        ++formats[c.problem.format_q];
        ++kinds[c.values.kind];
        both.emplace(c.problem.format_q, c.values.kind);
    }
    EXPECT_EQ(formats.size(), 3u);
    for (const auto& [format, count] : formats) EXPECT_EQ(count, 100) << name(format);
    EXPECT_EQ(kinds.size(), static_cast<std::size_t>(value_kind_count));
    EXPECT_EQ(both.size(), static_cast<std::size_t>(3 * value_kind_count));
    const auto most = std::max_element(kinds.begin(), kinds.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    EXPECT_EQ(most->first, ValueKind::normal);
}

TEST(Draw, KeepsToTheKindsOfALaw) {
    const law::Property law =
        zero_law("draw.two_kinds", {.kinds = {ValueKind::small_int, ValueKind::flat}});
    std::set<ValueKind> kinds;
    for (const Case& c : draws(law, full_manifest(), 40)) kinds.insert(c.values.kind);
    EXPECT_EQ(kinds, (std::set<ValueKind>{ValueKind::small_int, ValueKind::flat}));
}

// Features come a few at a time, and every pair that can be comes within the cases of a few laws.
TEST(Draw, EveryPairOfFeaturesComesUp) {
    std::set<std::pair<int, int>> seen;
    double features = 0, cases = 0;
    for (int law = 0; law < 16; ++law)
        for (const Case& c :
             draws(zero_law("draw.pairs_" + std::to_string(law)), full_manifest(), 120)) {
            const FeatureSet set = features_of(c.problem);
            ++cases;
            for (int a = 0; a < feature_count; ++a) {
                if (!set.has(static_cast<Feature>(a))) continue;
                features += structural_features().has(static_cast<Feature>(a)) ? 0 : 1;
                for (int b = a + 1; b < feature_count; ++b)
                    if (set.has(static_cast<Feature>(b))) seen.emplace(a, b);
            }
        }
    EXPECT_LE(features / cases, 3.0);
    for (int a = 0; a < feature_count; ++a)
        for (int b = a + 1; b < feature_count; ++b) {
            const auto fa = static_cast<Feature>(a), fb = static_cast<Feature>(b);
            // They come with what this law is not about.
            if (fa == Feature::dropout || fb == Feature::dropout) continue;
            if (fa == Feature::d_lse || fb == Feature::d_lse) continue;
            EXPECT_EQ(seen.contains({a, b}), compatible(fa, fb)) << name(fa) << " " << name(fb);
        }
}

// Only for a kernel that says so.
TEST(Draw, ScalesBelowZeroComeUpWhereTheyAreTaken) {
    kernel::Manifest manifest = full_manifest();
    const auto share = [&] {
        double below = 0, given = 0;
        for (const Case& c : draws(zero_law("draw.scales"), manifest, 800)) {
            if (!c.problem.scale) continue;
            ++given;
            below += *c.problem.scale < 0 ? 1 : 0;
        }
        return below / given;
    };
    EXPECT_NEAR(share(), 0.5, 0.15);
    manifest.features = manifest.features.without(Feature::negative_scale);
    EXPECT_EQ(share(), 0);
}

TEST(Draw, RequireAnyTakesTurnsAmongWhatTheKernelHas) {
    const FeatureSet causal(Feature::causal), window(Feature::window), sink(Feature::sink);
    law::CaseSpace cases{.allow = {}, .require_any = {causal, window, sink}};
    kernel::Manifest manifest = full_manifest();
    manifest.features = FeatureSet(Feature::causal, Feature::window);
    std::set<std::uint32_t> seen;
    for (const Case& c : draws(zero_law("draw.either", cases), manifest, 40))
        seen.insert(features_of(c.problem).bits());
    EXPECT_EQ(seen, (std::set<std::uint32_t>{causal.bits(), window.bits()}));
}

// A kernel that is causal and nothing else is asked what an empty row gives as often as any.
TEST(Draw, CausalAloneComesWithEmptyRowsWhereALawIsAboutThem) {
    law::CaseSpace cases{.require_any = {FeatureSet(Feature::causal)}, .more_queries = true};
    kernel::Manifest manifest = full_manifest();
    manifest.features = FeatureSet(Feature::causal, Feature::lse).with(Feature::alibi);
    for (const Case& c : draws(zero_law("draw.more_queries", cases), manifest, 200))
        EXPECT_GT(c.problem.len_q, c.problem.len_kv) << print(c);
}

TEST(Draw, WhatALawCannotBeAskedIsSaidInTheKernelsTerms) {
    kernel::Manifest manifest = full_manifest();
    manifest.features = FeatureSet(Feature::causal);
    Capability capability = declared_capability(manifest);
    const auto why = [&](const law::Property& law) {
        return why_not_applicable(law, capability).value_or("");
    };
    law::Property law = zero_law("draw.needs");
    EXPECT_EQ(why(law), "");
    law.needs = {.backward = true};
    EXPECT_EQ(why(law), "kernel has no backward");
    law.needs = {.lse = true};
    EXPECT_EQ(why(law), "kernel returns no log-sum-exp");
    law.needs = {.batch_invariant = true};
    EXPECT_EQ(why(law), "kernel does not claim batch invariance");
    law.needs = {.structure = true};
    EXPECT_EQ(why(law), "kernel declares no tile, or weights that no format rounds");
    capability.gradients = {Role::d_v};
    law.needs = {.backward = true, .structure = true};
    EXPECT_EQ(why(law), "kernel declares no structure of its gradients, or nothing rounded");
    capability.gradients.clear();
    law.needs = {};
    law.cases.require = FeatureSet(Feature::window, Feature::causal, Feature::sink);
    EXPECT_EQ(why(law), "kernel does not declare window, sink");
    law.cases.require = {};
    law.cases.require_any = {FeatureSet(Feature::rope), FeatureSet(Feature::cache, Feature::paged)};
    EXPECT_EQ(why(law), "kernel takes none of: rope, cache with paged");
}

TEST(Capability, IsNarrowedToWhatTheKernelTakes) {
    KernelPlan plan{.manifest = full_manifest()};
    plan.refuses = [](const Problem& p) {
        return p.dim_qk % 8 != 0 || p.softcap != 0 || p.format_q == Precision::bf16;
    };
    PlantedKernel kernel(plan);
    std::vector<std::string> narrowed;
    const Capability capability = probed_capability(kernel, narrowed);
    EXPECT_EQ(narrowed.size(), 3u);
    EXPECT_FALSE(capability.dims.empty());
    for (const std::int64_t dim : capability.dims) EXPECT_EQ(dim % 8, 0);
    EXPECT_FALSE(capability.features.has(Feature::softcap));
    EXPECT_TRUE(capability.features.has(Feature::causal));
    EXPECT_EQ(capability.formats, (std::vector<kernel::Formats>{Precision::f32, Precision::f16}));
}

}  // namespace
}  // namespace attest::search
