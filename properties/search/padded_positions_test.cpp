// RoPE and ALiBi beside lengths: without a cache queries and keys are padded alike.

#include <gtest/gtest.h>

#include "properties/search/draw_case_test.hpp"
#include "properties/search/features.hpp"
#include "properties/search/planted_test.hpp"
#include "properties/search/shrinker.hpp"

namespace attest::search {
namespace {

using enum Feature;

bool padded(const Problem& p) {
    return !p.cache.present && !p.mask.lens_kv.empty() && p.mask.lens_q == p.mask.lens_kv &&
           p.len_q == p.len_kv;
}

TEST(PaddedPositions, AreDrawnWithAndWithoutACacheToCountFrom) {
    for (const Feature positions : {rope, alibi}) {
        const FeatureSet lengths(lens_q, lens_kv);
        const auto drawn = [&](FeatureSet more) {
            return draws(zero_law("draw.padded", {.allow = lengths | more,
                                                  .require = FeatureSet().with(positions)}),
                         full_manifest(), 600);
        };
        EXPECT_GE(share(drawn({}), padded), 0.3);
        const std::vector<Case> cached = drawn(FeatureSet(cache));
        EXPECT_GE(share(cached, padded), 0.05);
        EXPECT_GE(
            share(cached,
                  [](const Problem& p) { return p.cache.present && !p.mask.lens_kv.empty(); }),
            0.1);
    }
}

TEST(PaddedPositions, ShrinkTogether) {
    KernelPlan plan{.manifest = full_manifest()};
    plan.fails = [](const Problem& p, const TensorSet&) {
        return padded(p) && p.rope.style != RopeStyle::none && p.batch > 1 &&
               p.mask.lens_kv[0] > p.mask.lens_kv[1] + 1;
    };
    PlantedKernel kernel(plan);
    const law::Property law = zero_law(
        "shrink.padded", {.allow = FeatureSet(lens_q, lens_kv), .require = FeatureSet(rope)});
    const Capability capability = declared_capability(plan.manifest);
    int found = 0;
    for (std::int64_t k = 0; k < 2000 && found < 20; ++k) {
        const auto c = draw_case(law, plan.manifest, Profile{}, 1, k);
        if (!c) continue;
        const Judged judged = judge_case(kernel, law, *c, k);
        if (!failure_kind(judged.record)) continue;
        ++found;
        const Problem smallest =
            Shrinker(kernel, law, capability, {}, {}).shrink(judged.record).smallest.problem;
        EXPECT_EQ(smallest.batch, 2);
        EXPECT_EQ(smallest.len_kv, 2);
        EXPECT_EQ(smallest.mask.lens_kv, (std::vector<std::int64_t>{2, 0}));
        EXPECT_EQ(smallest.mask.lens_q, smallest.mask.lens_kv);
    }
    EXPECT_EQ(found, 20);
}

}  // namespace
}  // namespace attest::search
