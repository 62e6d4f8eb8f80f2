// Which counterexamples are one defect.

#include "ci/cause.hpp"

#include <gtest/gtest.h>

#include "reference/problem/case.hpp"

namespace attest {
namespace {

Record counterexample(const std::string& law, const std::string& deviation,
                      const std::string& boundary, const std::string& problem) {
    return {{"law", law},
            {"id", sha256_hex(law).substr(0, 8)},
            {"line", problem},
            {"problem", "sentence of " + law},
            {"outcome", "ok"},
            {"diagnosis",
             {{"known", !deviation.empty()},
              {"id", deviation},
              {"tells", deviation == "causal_top_left" ? "sight"
                        : deviation == "remembers"     ? "memory"
                                                       : "nothing"},
              {"cases", 3}}},
            {"boundary", {{"found", !boundary.empty()}, {"says", boundary}}}};
}

TEST(Cause, OneDefectIsOneCause) {
    const std::string small = "b1 hq1 hkv1 tq2 tk1 d1 causal f32";
    const std::string large = "b1 hq1 hkv1 tq1 tk65 d1 f32";
    std::vector<Record> all{
        counterexample("reference.output", "causal_top_left", "", large),
        counterexample("partition.tile_edges", "", "only when Tk mod 64 = 1", large),
        counterexample("masking.causal", "causal_top_left", "", small),
        counterexample("convex_hull.box", "", "only when Tk mod 64 = 1",
                       "b1 hq1 hkv1 tq3 tk1 d1 causal f32"),
        counterexample("rank.scores", "", "", "b1 hq1 hkv1 tq1 tk9 d1 f32"),
        counterexample("hygiene.batch_invariant", "", "", "b2 hq1 hkv1 tq1 tk9 d1 f32"),
        counterexample("hygiene.stale_state", "remembers", "", "b1 hq1 hkv1 tq1 tk1 d1 f32"),
    };
    all[5]["diagnosis"]["cases"] = all[6]["diagnosis"]["cases"] = 0;
    std::vector<Record> forgetful(all.begin(), all.end() - 1);
    const std::vector<Record> causes = group_causes(forgetful);
    ASSERT_EQ(causes.size(), 3u);
    EXPECT_EQ(causes[0].at("laws").size(), 2u);
    EXPECT_TRUE(causes[0].at("known"));
    EXPECT_EQ(causes[0].at("lead"), all[2].at("id"));  // masking before reference, and smaller
    EXPECT_EQ(causes[1].at("laws").size(), 3u);        // what nothing explains
    EXPECT_EQ(causes[2].at("lead"), all[5].at("id"));  // right by itself, wrong in company
    EXPECT_EQ(forgetful[4].at("cause"), "c2");
    const std::vector<Record> remembering = group_causes(all);
    ASSERT_EQ(remembering.size(), 2u);
    EXPECT_EQ(remembering[0].at("lead"), all[6].at("id"));
    EXPECT_EQ(remembering[0].at("laws").size(), 5u);
}

TEST(Cause, WhatShowsAtTheShapeOfAnExplainedDefectIsThatDefect) {
    const std::string shape = "b1 hq1 hkv1 tq1 tk65 d1 ", one = "b1 hq1 hkv1 tq1 tk1 d1 ";
    std::vector<Record> all{counterexample("reference.lse", "last_key", "", shape + "f32"),
                            counterexample("reference.decode", "", "", shape + "cache 64 f32"),
                            counterexample("rank.scores", "", "", "b1 hq1 hkv1 tq1 tk99 d1 f32"),
                            counterexample("decode.chunked", "", "", shape + "causal f32")};
    all[3]["diagnosis"]["cases"] = 0;  // right by itself
    EXPECT_EQ(group_causes(all).size(), 1u);
    all[1]["line"] = "b1 hq1 hkv1 tq1 tk66 d1 cache 65 f32";
    EXPECT_EQ(group_causes(all).size(), 3u);
    // Where everything is 1 every defect shows.
    std::vector<Record> ones{counterexample("reference.lse", "lse_base", "", one + "f32"),
                             counterexample("reference.output", "", "", one + "f16")};
    EXPECT_EQ(group_causes(ones).size(), 2u);
}

TEST(Cause, TheSameDeathIsOneCause) {
    std::vector<Record> all{counterexample("masking.causal", "", "", "a"),
                            counterexample("hygiene.bounds", "", "", "b")};
    for (Record& c : all) {
        c["outcome"] = "crash";
        c["problem"] = "read 64 bytes past the end of k";
    }
    const std::vector<Record> causes = group_causes(all);
    ASSERT_EQ(causes.size(), 1u);
    EXPECT_EQ(causes[0].at("lead"), all[1].at("id"));
    // Of a stray access and of a lost GPU each sentence is another, and none of them matters.
    for (std::size_t n = 0; n < 2; ++n) {
        all[n]["problem"] = n == 0 ? "each tensor ends" : "each tensor begins";
        all[n]["fault"] = {{"kind", "context_lost"}, {"stray", "none"}};
    }
    EXPECT_EQ(group_causes(all).size(), 1u);
    for (std::size_t n = 0; n < 2; ++n)
        all[n]["fault"] = {{"kind", n == 0 ? "read_outside" : "outside_all"}, {"stray", "read"}};
    EXPECT_EQ(group_causes(all).size(), 1u);
    all[1]["fault"]["stray"] = "write";
    EXPECT_EQ(group_causes(all).size(), 2u);
}

}  // namespace
}  // namespace attest
