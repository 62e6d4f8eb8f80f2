// Where an explanation holds: limits that others refute, the same defect under two ids, and the
// lists of lengths that a name is tried on.

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/agreement.hpp"
#include "properties/diagnosis/cause.hpp"
#include "properties/diagnosis/relatives.hpp"
#include "reference/problem/case.hpp"
#include "reference/problem/digest.hpp"

namespace attest::diagnosis {
namespace {

const Scope paged{"with a paged cache", [](const Problem& p) { return p.cache.page_size > 0; }};

CounterexampleReport named(const std::string& law, const std::string& id, const char* line,
                           bool only_paged) {
    CounterexampleReport c;
    c.example.law = law;
    c.example.id = sha256_hex(law);
    c.example.smallest = parse_case(line);
    c.example.verdict.violation.emplace().problem = "sentence of " + law;
    c.diagnosis.known = true;
    c.diagnosis.id = id;
    c.diagnosis.says = "a narrower window";
    c.diagnosis.cases = 3;
    if (only_paged) limit(c.diagnosis, paged);
    return c;
}

constexpr const char* in_pages = "b1 hq1 hkv1 tq1 tk2 d1 cache 1 page 2 f32";
constexpr const char* plain = "b1 hq1 hkv1 tq1 tk2 d1 f32";

TEST(Limits, WhatAnotherCounterexampleRefutesIsDropped) {
    std::vector<CounterexampleReport> all{named("decode.paged", "window", in_pages, true),
                                          named("masking.window", "window", plain, false)};
    ASSERT_EQ(all[0].diagnosis.says, "a narrower window, with a paged cache");
    EXPECT_EQ(group_causes(all).size(), 1u);
    EXPECT_EQ(all[0].diagnosis.says, "a narrower window, in the cases that fail");
    EXPECT_EQ(all[1].diagnosis.says, "a narrower window");
}

TEST(Limits, WhatAllOfThemFulfilStays) {
    std::vector<CounterexampleReport> all{named("decode.paged", "window", in_pages, true),
                                          named("masking.window", "window", in_pages, false)};
    EXPECT_EQ(group_causes(all).size(), 1u);
    EXPECT_EQ(all[0].diagnosis.says, "a narrower window, with a paged cache");
}

TEST(Limits, SplitsOfTheKernelsOwnAreThoseThatAreAskedFor) {
    std::vector<CounterexampleReport> all{named("reference.output", "lost", in_pages, false),
                                          named("masking.window", "lost_own_4", plain, false)};
    all[1].diagnosis.form_of = "lost";
    EXPECT_EQ(group_causes(all).size(), 1u);
    all[1].diagnosis.form_of = "found";
    EXPECT_EQ(group_causes(all).size(), 2u);
}

TEST(Limits, AMaximumThatStartsTooHighIsOneDefectInAllFormats) {
    std::vector<CounterexampleReport> all{
        named("reference.output", "maximum_finite", plain, false),
        named("reference.lse", "maximum_finite_f16", plain, false),
        named("masking.causal", "causal_top_left", plain, false)};
    for (CounterexampleReport& c : all)
        c.diagnosis.form_of =
            std::ranges::find(deviations(), c.diagnosis.id, &Deviation::id)->form_of;
    EXPECT_EQ(group_causes(all).size(), 2u);
}

// Of what was not asked it is not known that its answers are right by themselves.
TEST(Limits, WhatWasNotAskedIsNotPutDownToWhatWas) {
    std::vector<CounterexampleReport> all{named("decode.paged", "window", in_pages, false),
                                          named("masking.window", "", plain, false)};
    all[1].diagnosis = {};
    EXPECT_EQ(group_causes(all).size(), 1u);  // right by itself: the one defect that is named
    all[1].diagnosis.skipped = "the run was interrupted";
    EXPECT_EQ(group_causes(all).size(), 2u);
}

// Its smallest case has ALiBi alone; that a soft cap beside it makes it right is seen where one is
// asked for.
TEST(Limits, ARightAnswerToOneFeatureMoreRefutes) {
    const auto& ignored = *std::ranges::find(deviations(), "alibi_ignored", &Deviation::id);
    const auto says = [&ignored](bool everywhere) {
        const Answer answer = [&, everywhere](const Specification& s,
                                              const bound::Expected& truth) {
            const bool here = everywhere || s.problem.softcap == 0;
            return here ? predict(ignored, s, truth).value_or(truth) : truth;
        };
        return diagnosed_of(answer, "b1 hq1 hkv1 tq2 tk2 d1 alibi f32").says;
    };
    EXPECT_EQ(says(true), ignored.says);
    EXPECT_EQ(says(false), ignored.says + ", without a soft cap");
}

TEST(Limits, ListsWithoutEmptyOnesAndInOtherOrders) {
    const std::vector<Case> documents =
        list_neighbours(parse_case("b1 hq1 hkv1 tq1 tk1 d1 docs_q 0,0,1 docs_kv 0,0,1 f32"));
    const auto has = [](const std::vector<Case>& list, std::vector<std::int64_t> Mask::*lens,
                        const std::vector<std::int64_t>& wanted) {
        return std::ranges::any_of(list,
                                   [&](const Case& c) { return c.problem.mask.*lens == wanted; });
    };
    EXPECT_TRUE(has(documents, &Mask::documents_kv, {1, 1, 1}));
    EXPECT_TRUE(has(documents, &Mask::documents_kv, {1, 0, 0}));
    EXPECT_TRUE(has(documents, &Mask::documents_kv, {2, 0, 0, 1}));
    for (const Case& c : documents) EXPECT_NO_THROW(require_valid(c.problem)) << print(c);
    const std::vector<Case> lengths =
        list_neighbours(parse_case("b2 hq1 hkv1 tq1 tk3 d1 lens_kv 0,3 f32"));
    EXPECT_TRUE(has(lengths, &Mask::lens_kv, {1, 3}));
    EXPECT_TRUE(has(lengths, &Mask::lens_kv, {3, 0}));
    EXPECT_TRUE(list_neighbours(parse_case(plain)).empty());
}

}  // namespace
}  // namespace attest::diagnosis
