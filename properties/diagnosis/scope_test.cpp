// The calls in which an explanation holds, told from those in which right answers refute it.

#include "properties/diagnosis/scope.hpp"

#include <gtest/gtest.h>

#include "reference/problem/case.hpp"

namespace attest::diagnosis {
namespace {

std::vector<Problem> problems(std::initializer_list<const char*> lines) {
    std::vector<Problem> list;
    for (const char* line : lines) list.push_back(parse_case(line).problem);
    return list;
}

std::string said(const std::vector<Problem>& wrong, const std::vector<Problem>& refuting) {
    const std::optional<Scope> scope = scope_of(wrong, refuting);
    if (!scope) return "";
    for (const Problem& p : wrong) EXPECT_TRUE(scope->holds(p)) << print(p);
    for (const Problem& p : refuting) EXPECT_FALSE(scope->holds(p)) << print(p);
    return scope->says;
}

// The others may be right for what else they have not.
TEST(Scope, AFormatIsNamedWhereACallWasTriedInTwo) {
    const auto wrong = problems({"b1 hq1 hkv1 tq2 tk3 d2 docs_q 1,1 docs_kv 1,2 f32",
                                 "b1 hq1 hkv1 tq3 tk5 d2 docs_q 1,2 docs_kv 1,4 f32",
                                 "b1 hq1 hkv1 tq4 tk4 d2 docs_q 1,3 docs_kv 2,2 f32"});
    EXPECT_EQ(said(wrong, problems({"b1 hq1 hkv1 tq2 tk7 d2 f16"})), "");
    EXPECT_EQ(said(wrong, problems({"b1 hq1 hkv1 tq2 tk3 d2 docs_q 1,1 docs_kv 1,2 f16"})),
              "in f32");
}

TEST(Scope, AFeatureAndALimit) {
    const auto wrong = problems({"b1 hq1 hkv1 tq2 tk5 d2 causal cache 3 f32",
                                 "b1 hq1 hkv1 tq3 tk5 d2 causal cache 2 f32",
                                 "b1 hq1 hkv1 tq4 tk5 d2 causal cache 1 f32"});
    const char *no_cache = "b1 hq1 hkv1 tq2 tk5 d2 causal f32",
               *longer = "b1 hq1 hkv1 tq5 tk5 d2 causal cache 0 f32";
    EXPECT_EQ(said(wrong, problems({no_cache})), "with a cache");
    EXPECT_EQ(said(wrong, problems({longer})), "when Tq ≤ 4");
    EXPECT_EQ(said(wrong, problems({no_cache, longer})), "with a cache, when Tq ≤ 4");
}

}  // namespace
}  // namespace attest::diagnosis
