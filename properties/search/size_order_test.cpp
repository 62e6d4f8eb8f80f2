#include "properties/search/size_order.hpp"

#include <gtest/gtest.h>

#include <set>

namespace attest::search {
namespace {

TEST(SizeOrder, IsTotalAndScoresComeFirst) {
    Case a, b;
    a.problem.len_kv = 3;
    b.problem.len_kv = 2;
    b.problem.dim_qk = 64;
    EXPECT_LT(size_key(b), size_key(a));
    std::set<SizeKey> keys;
    for (const Values& values : data_ladder()) keys.insert(size_key({{}, values}));
    EXPECT_EQ(keys.size(), data_ladder().size());
}

TEST(SizeOrder, PlainerIsSmaller) {
    const auto key = [](const char* line) { return size_key(parse_case(line)); };
    EXPECT_LT(key("b1 hq1 hkv1 tq2 tk2 d1 f32"), key("b1 hq1 hkv1 tq2 tk2 d1 causal f32"));
    EXPECT_LT(key("b1 hq1 hkv1 tq2 tk2 d1 f32"), key("b1 hq1 hkv1 tq2 tk2 d1 f16"));
    EXPECT_LT(key("b1 hq1 hkv1 tq1 tk2 d1 f32"), key("b1 hq1 hkv1 tq2 tk1 d1 f32"));
    EXPECT_LT(key("b1 hq1 hkv1 tq1 tk2 d1 f32 values small_int seed 3"),
              key("b1 hq1 hkv1 tq1 tk2 d1 f32 values logit50"));
    EXPECT_LT(key("b1 hq1 hkv1 tq1 tk1 d1 f32 q [0] k [0] v [2]"),
              key("b1 hq1 hkv1 tq1 tk1 d1 f32 q [0] k [0] v [-3]"));
}

}  // namespace
}  // namespace attest::search
