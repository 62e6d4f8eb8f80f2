// What a kernel takes: read from its manifest, told to people, held against problems, and what a
// problem is moved to.

#include "kernels/interface/takes.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "kernels/interface/manifest.hpp"
#include "kernels/interface/manifest_words.hpp"
#include "reference/problem/errors.hpp"

namespace attest::kernel {
namespace {

Manifest with_takes(const std::string& takes) {
    return parse_manifest(
        R"({"name":"x","version":"1","formats":["f32","f32 kv f16"],"features":["causal",)"
        R"("mask_bool","mask_additive","window","lens_q","lens_kv","rope","gqa","scale",)"
        R"("cache","paged","splits"],)"
        R"("takes":)" +
            takes + "}",
        "x");
}

struct LimitCase {
    const char* name;
    const char* takes;
    const char* said;     ///< in `described`
    const char* inside;   ///< a problem that is taken
    const char* outside;  ///< and one that is not
};

constexpr LimitCase limits[] = {
    {"one_number", R"({"batch":1})", "batch: 1", "b1", "b2"},
    {"a_list", R"({"dim_qk":[64,128]})", "head dimension: 64, 128", "d128", "d96"},
    {"multiples", R"({"len_q":{"multiple":16}})", "queries: multiples of 16", "tq48", "tq50"},
    {"a_range", R"({"len_kv":{"least":8,"most":100}})", "keys: from 8, up to 100", "tk8", "tk7"},
    {"heads", R"({"heads_kv":[1,8]})", "key/value heads: 1, 8", "hq8 hkv8", "hq2 hkv2"},
    {"groups", R"({"group":[1,4]})", "heads a group: 1, 4", "hq8 hkv2", "hq2 hkv1"},
    {"self", R"({"queries":"as_keys"})", "queries: as many as keys", "tq3 tk3", "tq3 tk4"},
    {"at_most", R"({"queries":"at_most_keys"})", "queries: no more than keys", "tq3 tk4",
     "tq4 tk3"},
    {"left", R"({"window_right":-1})", "window to the right: -1", "tq9 tk9 window 3 -1",
     "tq9 tk9 window 3 3"},
    {"right_alone", R"({"window_left":-1})", "window to the left: -1", "tq9 tk9 window -1 3",
     "tq9 tk9 window 3 -1"},
    {"pages", R"({"page_size":[0,16]})", "page size: 0, 16", "tk40 cache 39 page 16",
     "tk40 cache 39 page 8"},
    {"no_pages", R"({"page_size":16})", "page size: 16", "tk40 cache 39 page 16", "tk40 cache 39"},
    {"some_lens", R"({"lens_kv":{"least":1}})", "lens_kv: from 1", "b2 tk4 lens_kv 1,4",
     "b2 tk4 lens_kv 0,4"},
    {"padding", R"({"padding":"right"})", "lengths: as many queries as keys",
     "b2 tq4 tk4 lens_q 1,3 lens_kv 1,3", "b2 tq4 tk4 lens_kv 1,3"},
    {"masks", R"({"mask_shared":["heads"]})", "mask of extent 1 along: heads",
     "b2 hq2 hkv2 tq3 mask bool shared heads", "b2 hq2 hkv2 tq3 mask bool shared heads,queries"},
    {"whole_masks", R"({"mask_shared":[]})", "mask of extent 1 along: no axis",
     "b2 hq2 hkv2 tq3 mask bool", "b2 hq2 hkv2 tq3 mask bool shared batch"},
    {"half", R"({"rope":["half"]})", "rope: half", "d4 rope half", "d4 rope interleaved"},
    {"turned", R"({"rope_dims":{"multiple":16}})", "channels that turn: multiples of 16",
     "d32 rope half dims 16", "d32 rope half dims 8"},
    {"whole_rope", R"({"rope_dims":"all"})", "rope: turns every channel", "d8 rope half",
     "d8 rope half dims 4"},
    {"base", R"({"rope_base":10000})", "rope base: 10000", "d4 rope half", "d4 rope half base 100"},
    {"order", R"({"orders":["bthd"]})", "order of axes: bthd",
     "layout_q bthd layout_k bthd layout_v bthd layout_o bthd", "tq3"},
    {"pairs", R"({"dims":[[8,8],[24,16]]})", "head dimension: 8 with 8, 24 with 16", "d24 dv16",
     "d16"},
    {"always", R"({"always":["causal"]})", "nothing without causal", "tq3 tk3 causal", "tq3 tk3"},
};

class Limited : public ::testing::TestWithParam<LimitCase> {};

Problem asked(const char* line) {
    return parse_problem(std::string(line) + " no_lse");
}

TEST_P(Limited, IsReadToldAndHeld) {
    const LimitCase& limit = GetParam();
    const Manifest m = with_takes(limit.takes);
    EXPECT_EQ(parse_manifest(to_json(m), "again").takes, m.takes) << to_json(m);
    const auto said = described(m.takes);
    ASSERT_EQ(said.size(), 1u);
    EXPECT_TRUE(said.front().starts_with(limit.said)) << said.front();
    const Problem inside = asked(limit.inside), outside = asked(limit.outside);
    EXPECT_EQ(refusal(m, inside).value_or(""), "");
    EXPECT_NE(refusal(m, outside), std::nullopt);
    EXPECT_EQ(refusal(with_takes("{}").takes, outside).value_or(""), "");
}

TEST_P(Limited, IsWhatAProblemIsMovedTo) {
    const Manifest m = with_takes(GetParam().takes);
    Problem inside = asked(GetParam().inside), outside = asked(GetParam().outside);
    const Problem before = inside;
    fit(inside, m.takes);
    EXPECT_EQ(inside, before) << print(inside);
    if (m.takes.always != FeatureSet{}) return;  // a feature is the search's matter
    fit_heads(outside, m.takes);
    fit_lengths(outside, m.takes, outside.cache.present ? Queries::at_most_keys : Queries::any);
    fit(outside, m.takes);
    EXPECT_EQ(refusal(m, canonical(outside)).value_or(""), "") << print(outside);
}

INSTANTIATE_TEST_SUITE_P(Limits, Limited, ::testing::ValuesIn(limits),
                         [](const auto& limit) { return std::string(limit.param.name); });

// Few kernels read one number for all keys of a row: those that say so.
TEST(Takes, AMaskThatKeysShareOnlyWhereItIsSaid) {
    const Problem shared = asked("tk5 mask additive shared keys");
    const Takes silent = with_takes("{}").takes;
    EXPECT_EQ(refusal(silent, shared), "it takes mask of extent 1 along: batch, heads, queries");
    EXPECT_TRUE(described(silent).empty());
    const Manifest said = with_takes(R"({"mask_shared":["batch","heads","queries","keys"]})");
    EXPECT_EQ(refusal(said, shared), std::nullopt);
    EXPECT_TRUE(described(said.takes).empty());
    EXPECT_EQ(parse_manifest(to_json(said), "again").takes, said.takes);
    Problem moved = shared;
    fit(moved, silent);
    EXPECT_EQ(print(moved), print(asked("tk5 mask additive")));
}

TEST(Takes, MovesANumberToOneThatIsTaken) {
    const NumberSet tiles{.most = 96, .multiple = 16}, any{}, one{.only = {1}},
        up_to_one{.most = 1};
    EXPECT_EQ(tiles.nearest(1), 16);
    EXPECT_EQ(tiles.nearest(33), 32);
    EXPECT_EQ(tiles.nearest(500), 96);
    EXPECT_EQ(any.nearest(33), 33);
    EXPECT_EQ(one.nearest(33), 1);
    EXPECT_EQ(up_to_one.nearest(33), 1);
    EXPECT_TRUE(tiles.has(96));
    EXPECT_FALSE(tiles.has(112));
    EXPECT_FALSE(tiles.has(17));
}

TEST(Takes, AsManyQueriesAsKeysAreOfALengthThatBothTake) {
    struct Row {
        const char* says;
        std::int64_t asked, found;
    };
    const Row rows[] = {
        {R"({"len_q":{"multiple":16},"len_kv":{"multiple":24}})", 100, 96},
        {R"({"len_q":{"multiple":16},"len_kv":{"multiple":24}})", 5, 48},
        {R"({"len_q":{"most":40},"len_kv":{"multiple":16}})", 100, 32},
        {R"({"len_q":{"least":3},"len_kv":{"least":70}})", 9, 70},
        {R"({"len_q":[64,128],"len_kv":{"least":100}})", 70, 128},
        {R"({"len_q":[1,64,128],"len_kv":[64,96,128]})", 100, 64},
    };
    for (const auto& [says, asked_for, found] : rows) {
        Problem p = asked("tq1 tk1");
        p.len_q = p.len_kv = asked_for;
        fit_lengths(p, with_takes(says).takes, Queries::as_keys);
        EXPECT_EQ(p.len_q, found) << says;
        EXPECT_EQ(p.len_kv, found) << says;
    }
    Problem decode = asked("tq1 tk9");
    fit_lengths(decode, with_takes(R"({"len_q":1,"len_kv":{"least":512}})").takes,
                Queries::as_keys);
    EXPECT_EQ(decode.len_q, 1);  // they have none in common: the caller sees that they differ
    EXPECT_EQ(decode.len_kv, 512);
}

// A kernel that takes bthd alone, or f32 queries beside f16 keys, has no choice to be asked about.
TEST(Takes, ACacheHoldsWhatTheQueriesTakenLeave) {
    Problem decode = asked("tq16 tk64 cache 48 page 16");
    fit(decode, with_takes(R"({"len_q":1})").takes);
    EXPECT_EQ(print(decode), print(asked("tq1 tk64 cache 63 page 16")));
    Problem longer = asked("tq2 tk4 cache 2");
    fit(longer, with_takes(R"({"len_q":8})").takes);
    EXPECT_EQ(print(longer), print(asked("tq8 tk8 cache 0")));
}

TEST(Takes, WhatIsNoChoiceIsNoFeature) {
    const Manifest m = with_takes(R"({"orders":["bthd"],"dims":[[24,16]]})");
    const Problem p =
        asked("d24 dv16 layout_q bthd layout_k bthd layout_v bthd layout_o bthd f32 kv f16");
    EXPECT_EQ(inherent_features(m, p),
              FeatureSet(Feature::layout, Feature::dim_v, Feature::mixed_formats));
    EXPECT_EQ(refusal(m, p).value_or(""), "");
    const Problem other = asked("f32 out f16");
    EXPECT_EQ(refusal(with_takes("{}"), other),
              "its manifest does not list the feature mixed_formats");
}

// Steps that a kernel rounds by themselves are declared, told again, and in the manual.
TEST(Takes, StepsAreReadAndTold) {
    const Manifest m = parse_manifest(
        R"({"name":"x","version":"1","formats":["f16"],"numerics":{"accumulate":"f16",)"
        R"("scores":"f16","query":"same","rotation":"bf16","bias":"f32","epsilon":1e-6,)"
        R"("operands":"tf32","centred_keys":true,"centred_values":true}})",
        "x");
    EXPECT_EQ(m.numerics.accumulate, NumberFormat::f16);
    EXPECT_EQ(m.numerics.scores, NumberFormat::f16);
    EXPECT_EQ(m.numerics.rotation, NumberFormat::bf16);
    EXPECT_EQ(m.numerics.operands, Operands::tf32);
    EXPECT_EQ(m.numerics.epsilon, 1e-6);
    EXPECT_EQ(parse_manifest(to_json(m), "again").numerics, m.numerics) << to_json(m);
    EXPECT_TRUE(has_coarse_steps(m.numerics));
    EXPECT_FALSE(has_coarse_steps({}));
    // Of rounded operands the bounds of gradients know, too.
    Numerics fed;
    fed.operands = Operands::bf16;
    EXPECT_TRUE(has_coarse_steps(fed));
    EXPECT_FALSE(gradients_unjudged(fed));
}

// No problem is refused for it: it says where a tensor lies.
TEST(Takes, SayInWhichOrderTheLogSumExpLies) {
    EXPECT_EQ(with_takes("{}").takes.lse_order, LseOrder::output);
    EXPECT_EQ(with_takes(R"({"lse_order":"output"})").takes, Takes{});
    const Manifest m = with_takes(R"({"lse_order":"bht"})");
    EXPECT_EQ(m.takes.lse_order, LseOrder::bht);
    EXPECT_EQ(parse_manifest(to_json(m), "again").takes, m.takes) << to_json(m);
    EXPECT_EQ(refusal(m.takes, Problem{}), std::nullopt);
    EXPECT_EQ(described(m.takes),
              std::vector<std::string>{"order of axes of the log-sum-exp: bht, without gaps"});
}

// A log-sum-exp is asked for where the kernel returns one, and left out where it need not.
TEST(Takes, SayWhenTheLogSumExpIsAskedFor) {
    const char* words[] = {"any", "always", "always_with_cache", "with_cache", "without_cache"};
    // Asked for with a cache, without one; left out with a cache, without one.
    const bool taken[][4] = {{true, true, true, true},
                             {true, true, false, false},
                             {true, true, false, true},
                             {true, false, true, true},
                             {false, true, true, true}};
    for (std::size_t w = 0; w < std::size(words); ++w) {
        Takes takes;
        takes.lse = static_cast<LseAsked>(w);
        for (int n = 0; n < 4; ++n) {
            Problem p;
            p.want_lse = n < 2;
            p.cache.present = n % 2 == 0;
            EXPECT_EQ(!refusal(takes, p).has_value(), taken[w][n]) << words[w] << n;
            fit_lse(p, takes.lse);
            EXPECT_FALSE(refusal(takes, p)) << words[w] << n;
        }
        const Manifest m = with_takes(R"({"lse":")" + std::string(words[w]) + R"("})");
        EXPECT_EQ(m.takes.lse, takes.lse);
        EXPECT_EQ(parse_manifest(to_json(m), "again").takes.lse, takes.lse);
    }
}

TEST(Takes, TheManualNamesEveryKey) {
    std::ifstream file(std::filesystem::path(__FILE__).parent_path() / "README.md");
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    for (const QuantityRow& row : quantities())
        EXPECT_NE(page.find("`" + std::string(row.key) + "`"), page.npos) << row.key;
    for (const manifest_words::RoundedStep& step : manifest_words::steps)
        EXPECT_NE(page.find("`" + std::string(step.key) + "`"), page.npos) << step.key;
    for (const std::string key :
         {"operands", "epsilon", "centred_keys", "centred_values", "lse", "lse_order", "empty_row"})
        EXPECT_NE(page.find("`" + key + "`"), page.npos) << key;
}

TEST(Takes, WhatIsWrongIsSaid) {
    const auto error_of = [](const std::string& takes) {
        try {
            with_takes(takes);
        } catch (const BadInput& error) {
            return std::string(error.what()).substr(std::string("x: manifest:1:").size()) + " | " +
                   error.details().back();
        }
        return std::string();
    };
    EXPECT_EQ(error_of(R"({"len_q":"sixteen"})"),
              "199: this is no whole number | 64, [64, 128] or {\"least\": 16, \"most\": 256, "
              "\"multiple\": 16}");
    EXPECT_EQ(error_of(R"({"len_q":[]})"), "199: this list is empty | leave the key out: any");
    EXPECT_EQ(error_of(R"({"len_q":{"multiple":16,"most":8}})"),
              "199: no number is all of this | least, most and a multiple between them");
    EXPECT_EQ(error_of(R"({"len_q":{"least":128,"most":64}})"),
              "199: least is above most | least, most and a multiple between them");
    EXPECT_EQ(error_of(R"({"dims":[64]})"),
              "199: this is no pair of dimensions | [[128, 128], [192, 128]]: q and v");
    EXPECT_NE(error_of(R"({"len":1})").find("no key takes.len is known"), std::string::npos);
    EXPECT_NE(error_of(R"({"lse_order":"bth"})").find("did you mean bht?"), std::string::npos);
    EXPECT_NE(error_of(R"({"queries":"askeys"})").find("did you mean as_keys?"), std::string::npos);
}

}  // namespace
}  // namespace attest::kernel
