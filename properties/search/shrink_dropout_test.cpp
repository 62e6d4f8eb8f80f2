// Whatever rate and seed a defect of dropout was found with: half of the weights dropped, by the
// first seed that shows it.

#include <gtest/gtest.h>

#include <set>

#include "properties/law/dropout_mask.hpp"
#include "properties/search/draw_case_test.hpp"
#include "properties/search/judge.hpp"
#include "properties/search/planted_test.hpp"
#include "properties/search/shrinker.hpp"

namespace attest::search {
namespace {

/// The smallest cases from 30 seeds.
std::set<std::string> smallest_of(bool (*fails)(const Problem&)) {
    KernelPlan plan{.manifest = full_manifest()};
    plan.fails = [fails](const Problem& p, const TensorSet&) { return fails(p); };
    const law::Property law = zero_law("shrink.dropout", {.require = FeatureSet(Feature::dropout)});
    PlantedKernel kernel(plan);
    const Capability capability = declared_capability(plan.manifest);
    std::set<std::string> smallest;
    for (std::uint64_t seed = 1; seed <= 30; ++seed)
        for (std::int64_t k = 0; k < 100; ++k) {
            const auto c = draw_case(law, plan.manifest, Profile{}, seed, k);
            if (!c) continue;
            const Judged judged = judge_case(kernel, law, *c, k);
            if (!failure_kind(judged.record)) continue;
            Shrinker shrinker(kernel, law, capability, {}, {});
            smallest.insert(print(shrinker.shrink(judged.record).smallest));
            break;
        }
    return smallest;
}

TEST(Shrinker, HalfOfTheWeightsAreDropped) {
    EXPECT_EQ(smallest_of([](const Problem& p) {
                  if (p.dropout.p == 0) return false;
                  const Tensor keep = law::drawn_keep(p);
                  bool any[2] = {};
                  for (std::int64_t at = 0; at < keep.size(); ++at) any[keep.bits(at)] = true;
                  return any[0] && any[1];
              }),
              std::set<std::string>{
                  "b1 hq1 hkv1 tq1 tk2 d1 dropout 0.5 seed 1 f32 q zeros k zeros v ones"});
}

TEST(Shrinker, ASeedOfMoreThan32BitsIsTheFirstOne) {
    EXPECT_EQ(
        smallest_of([](const Problem& p) { return p.dropout.seed >> 32 != 0; }),
        std::set<std::string>{"b1 hq1 hkv1 tq1 tk1 d1 dropout 0.5 seed 4294967296 f32 q zeros "
                              "k zeros v ones"});
}

TEST(Shrinker, AQuarterWhereAHalfShowsNothing) {  // 1/p is 1/(1-p)
    EXPECT_EQ(
        smallest_of([](const Problem& p) { return p.dropout.p != 0 && p.dropout.p != 0.5; }),
        std::set<std::string>{"b1 hq1 hkv1 tq1 tk1 d1 dropout 0.25 f32 q zeros k zeros v ones"});
}

}  // namespace
}  // namespace attest::search
