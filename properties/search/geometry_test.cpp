// A kernel that takes few shapes is asked for those: its refusals are learned before the first
// case, and hardly a draw is refused after.

#include "properties/search/geometry.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/search/draw.hpp"
#include "properties/search/planted_test.hpp"

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

    const law::Property law = zero_law("geometry.any");
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

TEST(Geometry, OfAKernelThatTakesAllIsAny) {
    PlantedKernel kernel({.manifest = full_manifest()});
    std::vector<std::string> narrowed;
    EXPECT_FALSE(probed_capability(kernel, narrowed).narrow());
    EXPECT_EQ(narrowed, std::vector<std::string>{});
}

TEST(Geometry, MovesALengthToOneThatIsTaken) {
    const Lengths tiles{.multiple = 16, .most = 96}, any{}, one{.multiple = 1, .most = 1};
    EXPECT_EQ(tiles.nearest(1), 16);
    EXPECT_EQ(tiles.nearest(33), 32);
    EXPECT_EQ(tiles.nearest(500), 96);
    EXPECT_EQ(any.nearest(33), 33);
    EXPECT_EQ(one.nearest(33), 1);
    EXPECT_TRUE(tiles.has(96));
    EXPECT_FALSE(tiles.has(112));
    EXPECT_FALSE(tiles.has(17));
}

TEST(Geometry, AFeatureThatIsDeclaredAndRefusedIsSaid) {
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
