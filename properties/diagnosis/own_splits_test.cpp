// Kernels that part the keys of their own accord, where the problem asks for no splits.

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/fitted.hpp"

namespace attest::diagnosis {
namespace {

TEST(OwnSplits, OfSoManyKeysEachAndAtMostSoMany) {
    const Deviation each = *std::ranges::find(deviations(), "sink_each_split", &Deviation::id);
    const auto answer = [each](const Specification& s, const bound::Expected& truth) {
        Specification split = s;
        if (s.problem.splits == 0)
            split.problem.splits = std::clamp<std::int64_t>(s.problem.len_kv / 32, 1, 8);
        const std::optional<bound::Expected> e = predict(each, split, truth);
        return e ? *e : truth;
    };
    const Diagnosis d = diagnosed_of(answer, "b1 hq2 hkv2 tq2 tk64 d4 sink f32");
    EXPECT_EQ(d.form_of, "sink_each_split");
    EXPECT_TRUE(d.says.starts_with("the sink once for each split; split to 32 keys and more"))
        << d.says;
}

TEST(OwnSplits, OfWhichTheFirstAreRead) {
    const std::vector<Deviation> limits = early_limits();
    const Deviation first = *std::ranges::find(limits, "splits_end_4", &Deviation::id);
    const auto answer = [first](const Specification& s, const bound::Expected& truth) {
        Specification split = s;
        if (s.problem.splits == 0) split.problem.splits = (s.problem.len_kv + 31) / 32;
        return predict(first, split, truth).value_or(truth);
    };
    const Diagnosis d = diagnosed_of(answer, "b1 hq2 hkv2 tq2 tk130 d4 f32");
    EXPECT_EQ(d.form_of, "splits_end_4") << d.says;
}

}  // namespace
}  // namespace attest::diagnosis
