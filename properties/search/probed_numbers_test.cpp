// A kernel that takes few shapes is asked for those: its refusals are learned before the first
// case, and hardly a draw is refused after.

#include "properties/search/probed_numbers.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/search/draw.hpp"
#include "properties/search/planted_test.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {
namespace {

struct NarrowKernel {
    const char* name;
    bool (*refuses)(const Problem&);
    const char* said;  ///< among what people are told
};

constexpr NarrowKernel narrow_kernels[] = {
    {"tiles",
     [](const Problem& p) {
         return p.dim_qk != 64 || value_dim(p) != 64 || p.len_q % 16 != 0 || p.len_kv % 16 != 0;
     },
     "queries: multiples of 16"},
    {"decode", [](const Problem& p) { return p.len_q != 1; }, "queries: 1 alone"},
    {"many_keys", [](const Problem& p) { return p.len_kv < 17; }, "keys: from 17"},
    {"many_tiles", [](const Problem& p) { return p.len_kv < 96 || p.len_kv % 32 != 0; },
     "keys: multiples of 32, from 96"},
    {"fours", [](const Problem& p) { return p.len_kv % 4 != 0; }, "keys: multiples of 4"},
    {"self", [](const Problem& p) { return p.len_q != p.len_kv; }, "queries: as many as keys"},
    {"no_empty_rows", [](const Problem& p) { return p.len_q > p.len_kv; },
     "queries: no more than keys"},
    {"short", [](const Problem& p) { return std::max(p.len_q, p.len_kv) > 100; },
     "keys: up to 100"},
    {"pages", [](const Problem& p) { return p.cache.page_size != 16; }, "page size: 16"},
    {"one_head", [](const Problem& p) { return p.heads_q != 1 || p.batch != 1; },
     "key/value heads: 1"},
    {"causal", [](const Problem& p) { return !p.mask.causal; }, "features: nothing without causal"},
    {"groups_of_eight", [](const Problem& p) { return group_size(p) != 8; }, "heads a group: 8"},
    {"training",
     [](const Problem& p) {
         return p.dim_qk != 128 || value_dim(p) != 128 || p.len_q % 128 != 0 ||
                p.len_q != p.len_kv || !p.mask.causal;
     },
     "keys: multiples of 128"},
    {"batched_decode",
     [](const Problem& p) { return p.cache.present && p.batch > 1 && p.len_q > 1; },
     "refuses cache with batch > 1 with several queries (not today)"},
    {"causal_window", [](const Problem& p) { return p.mask.window.limited() && !p.mask.causal; },
     "refuses window without causal (not today)"},
    {"alibi_window", [](const Problem& p) { return p.alibi && p.mask.window.left >= 0; },
     "refuses alibi with a window that ends to the left (not today)"},
    {"two_of_them",
     [](const Problem& p) {
         return (p.sink && p.softcap != 0) || (p.rope.style != RopeStyle::none && p.splits > 0);
     },
     "refuses softcap with sink (not today)"},
};

kernel::Manifest manifest_of() {
    kernel::Manifest manifest = full_manifest();
    manifest.features = manifest.features.without(Feature::documents);  // never beside a cache
    return manifest;
}

class Narrow : public ::testing::TestWithParam<NarrowKernel> {};

TEST_P(Narrow, IsAskedForWhatItTakes) {
    PlantedKernel kernel({.manifest = manifest_of(), .refuses = GetParam().refuses});
    std::vector<std::string> narrowed;
    const Capability capability = probed_capability(kernel, narrowed);
    EXPECT_TRUE(capability.narrow());
    const auto said = std::find_if(narrowed.begin(), narrowed.end(), [](const std::string& line) {
        return line.starts_with(GetParam().said);
    });
    EXPECT_NE(said, narrowed.end()) << GetParam().said;

    const law::Property law = zero_law("probed.any");
    const Profile profile;
    std::int64_t drawn = 0, refused = 0;
    for (std::int64_t number = 0; number < 200; ++number)
        for (std::int64_t attempt = 0; attempt < 16; ++attempt) {
            const auto c = draw({law, capability, profile}, 1, number, attempt);
            if (!c) continue;
            ++drawn;
            refused += GetParam().refuses(c->problem);
            EXPECT_NO_THROW(require_valid(c->problem)) << print(*c);
            break;
        }
    EXPECT_GE(drawn, 196);
    EXPECT_LE(refused, 4);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Narrow, ::testing::ValuesIn(narrow_kernels),
                         [](const auto& kernel) { return std::string(kernel.param.name); });

struct Declaration {
    const char* name;
    const char* formats;
    const char* takes;
};

constexpr Declaration declarations[] = {
    {"tiles", R"(["f32"])", R"({"len_q":{"multiple":16},"len_kv":{"multiple":32}})"},
    {"long", R"(["f32"])", R"({"len_q":{"least":16},"len_kv":{"least":100,"most":300}})"},
    {"listed_lengths", R"(["f32"])", R"({"len_q":[1,128],"len_kv":[128,192]})"},
    {"dims", R"(["f16"])", R"({"dim_qk":[40,80,96],"dim_v":{"multiple":32}})"},
    {"pairs", R"(["bf16"])", R"({"dims":[[64,64],[192,128]]})"},
    {"one_pair", R"(["bf16"])", R"({"dims":[[192,128]]})"},
    {"self", R"(["f32"])", R"({"queries":"as_keys"})"},
    {"two_sizes", R"(["f32"])", R"({"queries":"as_keys","len_q":[64,256]})"},
    {"mixed", R"(["f32 kv f16"])", "{}"},
    {"out", R"(["f16 out f32","bf16 out f32"])", "{}"},
    {"left", R"(["f32"])", R"({"window_right":-1})"},
    {"page", R"(["f32"])", R"({"page_size":[0,24]})"},
    {"heads", R"(["f32"])", R"({"batch":1,"heads_kv":[2,8],"group":[1,8]})"},
    {"rope", R"(["f32"])", R"({"rope":["half"],"rope_dims":{"multiple":16},"rope_base":10000})"},
    {"whole_rope", R"(["f32"])", R"({"rope_dims":"all","rope_offset":0})"},
    {"order", R"(["f32"])", R"({"orders":["bthd"]})"},
    {"lens", R"(["f32"])", R"({"lens_q":{"least":1},"lens_kv":{"least":1}})"},
    {"padding", R"(["f32"])", R"({"padding":"right"})"},
    {"causal", R"(["f32"])", R"({"always":["causal","gqa"]})"},
    {"decode", R"(["f32"])", R"({"len_q":1,"page_size":[16,32],"always":["cache","paged"]})"},
    {"few_queries", R"(["f32"])", R"({"len_q":[1,4],"always":["cache","lens_q"]})"},
    {"packed", R"(["f32"])", R"({"always":["documents"]})"},
    {"padded", R"(["f32"])", R"({"always":["lens_kv"]})"},
    {"padded_cache", R"(["f32"])", R"({"always":["cache","lens_kv"]})"},
    {"padded_decode", R"(["f32"])", R"({"len_q":1,"always":["cache","lens_kv"]})"},
    {"biased", R"(["f32"])", R"({"always":["alibi"]})"},
    {"rotated", R"(["f32"])", R"({"always":["rope","keys_rotated"]})"},
};

class Declared : public ::testing::TestWithParam<Declaration> {};

// What the manifest says is drawn, and nothing else: no draw is refused, and hardly one is dropped.
TEST_P(Declared, NoDrawIsWasted) {
    kernel::Manifest manifest = kernel::parse_manifest(
        std::string(R"({"name":"x","version":"1","features":["causal",)"
                    R"("gqa","cache","paged","lens_q","lens_kv","documents",)"
                    R"("alibi","rope","keys_rotated"],"formats":)") +
            GetParam().formats + R"(,"takes":)" + GetParam().takes + "}",
        "x");
    manifest.features =
        manifest_of().features.without(Feature::mixed_formats) | manifest.takes.always;
    if (!manifest.takes.orders.empty())
        manifest.features = manifest.features.without(Feature::layout);
    if (manifest.takes.queries == kernel::Queries::as_keys)  // a cache has fewer queries than keys
        for (const Feature f :
             {Feature::cache, Feature::paged, Feature::keys_rotated, Feature::ring})
            manifest.features = manifest.features.without(f);
    const auto refuses = [&](const Problem& p) {
        EXPECT_FALSE(find_contradiction(p)) << print(p);
        return kernel::refusal(manifest, p).has_value();
    };
    PlantedKernel kernel({.manifest = manifest, .refuses = refuses});
    std::vector<std::string> narrowed;
    const Capability capability = probed_capability(kernel, narrowed);
    EXPECT_EQ(capability.refused, FeatureSet{});
    // Nor does what a problem's own rules say, as that packed sequences are no batch, limit it.
    if (manifest.takes[kernel::Quantity::batch].any())
        EXPECT_TRUE(capability.found[kernel::Quantity::batch].any());
    // What it always wants leaves its lengths as they were declared.
    if (manifest.takes.always != FeatureSet{}) {
        EXPECT_TRUE(capability.found[kernel::Quantity::len_kv].any());
        EXPECT_TRUE(capability.found[kernel::Quantity::len_q].any() ||
                    manifest.takes[kernel::Quantity::len_q].has(1));
    }
    const law::Property any = zero_law("declared.any");
    const Profile profile;
    std::int64_t drawn = 0, first = 0;
    for (std::int64_t number = 0; number < 200; ++number)
        for (std::int64_t attempt = 0; attempt < 16; ++attempt) {
            const auto c = draw({any, capability, profile}, 1, number, attempt);
            if (!c) continue;
            ++drawn;
            first += attempt == 0;
            EXPECT_EQ(kernel::refusal(manifest, c->problem).value_or(""), "") << print(*c);
            break;
        }
    EXPECT_EQ(drawn, 200);
    EXPECT_GE(first, 155);  // dropped: lengths that leave no choice, up to a sixth of the draws
    for (const auto& padded :
         {zero_law("declared.padded", {.require = FeatureSet(Feature::lens_kv)}),
          zero_law("declared.square", {.square = true})})
        for (std::int64_t number = 0; number < 200; ++number) {
            const auto c = draw({padded, capability, profile}, 1, number, 0);
            // An outlier is as dear as 32 cases, of two heads, sequences and queries a head.
            if (!c) continue;
            EXPECT_LE(score_count(c->problem), 8 * 32 * profile.scores_max) << print(*c);
        }
    // Nor is a law lost because a choice is none: a bare one has its cases.
    if (manifest.takes.always != FeatureSet{}) return;
    const law::Property bare = zero_law("declared.bare", {.allow = FeatureSet{}});
    EXPECT_EQ(why_not_applicable(bare, capability), std::nullopt);
    drawn = 0;
    for (std::int64_t number = 0; number < 50; ++number)
        drawn += draw({bare, capability, profile}, 1, number, 0).has_value();
    EXPECT_GE(drawn, 45);
}

INSTANTIATE_TEST_SUITE_P(Manifests, Declared, ::testing::ValuesIn(declarations),
                         [](const auto& one) { return std::string(one.param.name); });

// Who refuses without a pattern is believed to have none, and each law says how much it lost.
TEST(ProbedNumbers, WhatHasNoPatternTeachesNothing) {
    PlantedKernel kernel({.manifest = manifest_of(), .refuses = [](const Problem& p) {
                              return (p.len_q * 7 + p.len_kv * 13 + p.dim_qk) % 5 < 2;
                          }});
    std::vector<std::string> narrowed;
    EXPECT_TRUE(probed_capability(kernel, narrowed).refused_together.empty());
}

TEST(ProbedNumbers, OfAKernelThatTakesAllIsAny) {
    PlantedKernel kernel({.manifest = full_manifest()});
    std::vector<std::string> narrowed;
    EXPECT_FALSE(probed_capability(kernel, narrowed).narrow());
    EXPECT_EQ(narrowed, std::vector<std::string>{});
}

TEST(ProbedNumbers, AFeatureThatIsDeclaredAndRefusedIsSaid) {
    PlantedKernel kernel(
        {.manifest = full_manifest(), .refuses = [](const Problem& p) { return p.softcap != 0; }});
    std::vector<std::string> narrowed;
    const Capability capability = probed_capability(kernel, narrowed);
    EXPECT_EQ(capability.refused, FeatureSet(Feature::softcap));
    EXPECT_FALSE(capability.features.has(Feature::softcap));
    ASSERT_EQ(narrowed.size(), 1u);
    EXPECT_TRUE(narrowed.front().starts_with("features: refuses softcap, which it declares"));
}

}  // namespace
}  // namespace attest::search
