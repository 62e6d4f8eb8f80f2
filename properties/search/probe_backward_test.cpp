// What is found of a backward that takes less than its forward.

#include <gtest/gtest.h>

#include "properties/search/campaign_test.hpp"
#include "properties/search/capability.hpp"
#include "properties/search/draw.hpp"
#include "properties/search/planted_test.hpp"

namespace attest::search {
namespace {

struct ProbedBackward {
    Capability capability;
    std::vector<std::string> narrowed;
};

kernel::Manifest differentiable() {
    kernel::Manifest manifest = full_manifest();
    manifest.gradients = {Role::d_q, Role::d_k, Role::d_v};
    return manifest;
}

ProbedBackward probed(const std::function<bool(const Problem&)>& refuses_gradients) {
    PlantedKernel kernel({.manifest = differentiable(), .refuses = [&](const Problem& p) {
                              return p.want_grad && refuses_gradients(p);
                          }});
    ProbedBackward found;
    found.capability = probed_capability(kernel, found.narrowed);
    return found;
}

law::Property law_of_gradients() {
    law::Property law = zero_law("probe.gradients");
    law.needs.backward = true;
    law.cases.allow = FeatureSet::all()
                          .without(Feature::cache)
                          .without(Feature::paged)
                          .without(Feature::keys_rotated)
                          .without(Feature::ring);
    return law;
}

struct Less {
    const char* name;
    std::function<bool(const Problem&)> refuses;
    std::vector<std::string> said;
};

class LessThanForward : public ::testing::TestWithParam<Less> {};

TEST_P(LessThanForward, IsFoundAndDrawn) {
    const ProbedBackward found = probed(GetParam().refuses);
    EXPECT_EQ(found.narrowed, GetParam().said);
    ASSERT_NE(found.capability.backward, nullptr);
    EXPECT_EQ(found.capability.backward->gradients, found.capability.gradients);
    const law::Property law = law_of_gradients();
    EXPECT_EQ(why_not_applicable(law, found.capability).value_or(""), "");
    const Profile profile;
    std::int64_t drawn = 0, refused = 0;
    for (std::int64_t number = 0; number < 200; ++number)
        for (std::int64_t attempt = 0; attempt < 16; ++attempt)
            if (const auto c = draw({law, found.capability, profile}, 1, number, attempt)) {
                ++drawn;
                refused += GetParam().refuses(c->problem);
                break;
            }
    EXPECT_GE(drawn, 196);
    EXPECT_EQ(refused, 0);
}

const std::vector<Less> all_less = {
    {"few_queries",
     [](const Problem& p) { return p.len_q > 32; },
     {"gradients: queries: up to 32"}},
    {"a_hundred_queries",
     [](const Problem& p) { return p.len_q > 100; },
     {"gradients: queries: up to 100"}},
    {"one_query", [](const Problem& p) { return p.len_q != 1; }, {"gradients: queries: 1 alone"}},
    {"few_tokens",
     [](const Problem& p) { return p.len_q > 32 || p.len_kv > 40; },
     {"gradients: queries: up to 32", "gradients: keys: up to 40"}},
    {"whole_tiles",
     [](const Problem& p) { return p.len_q % 128 != 0 || p.len_kv % 128 != 0; },
     {"gradients: queries: multiples of 128", "gradients: keys: multiples of 128"}},
    {"narrow_heads",
     [](const Problem& p) { return p.dim_qk > 64 || value_dim(p) > 64; },
     {"gradients: head dimension: up to 64"}},
    {"one_format",
     [](const Problem& p) { return p.format_q != Precision::bf16; },
     {"gradients: format: refuses f32, which it declares (not today)",
      "gradients: format: refuses f16, which it declares (not today)"}},
    {"no_soft_cap",
     [](const Problem& p) { return p.softcap != 0; },
     {"gradients: refuses those of softcap (not today)"}},
};

INSTANTIATE_TEST_SUITE_P(Backward, LessThanForward, ::testing::ValuesIn(all_less),
                         [](const auto& less) { return std::string(less.param.name); });

TEST(ProbeBackward, WhatIsAsMuchAsForwardIsNotTold) {
    const ProbedBackward found = probed([](const Problem&) { return false; });
    EXPECT_EQ(found.narrowed, std::vector<std::string>{});
    EXPECT_EQ(found.capability.backward, nullptr);
}

// It has one, and says so.
TEST(ProbeBackward, WhatRefusesEverythingIsNoKernelWithoutOne) {
    const ProbedBackward found = probed([](const Problem&) { return true; });
    ASSERT_EQ(found.narrowed.size(), 1u);
    EXPECT_EQ(found.narrowed[0], "gradients: refuses them, which it declares (not today)");
    EXPECT_EQ(why_not_applicable(law_of_gradients(), found.capability),
              "kernel refuses declared gradients");
}

}  // namespace
}  // namespace attest::search
