// Kernels that part the keys of their own accord, where the problem asks for no splits.

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

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

TEST(OwnSplits, OfEachSequenceByItsOwnNumberOfKeys) {
    const std::vector<Deviation> list = split_outputs_rounded(true);
    const Deviation rounded =
        *std::ranges::find(list, "split_outputs_rounded_bf16", &Deviation::id);
    const auto answer = [rounded](const Specification& s, const bound::Expected& truth) {
        bound::Expected out = truth;
        const Problem& p = s.problem;
        const auto each = static_cast<std::ptrdiff_t>(out.output.size()) / p.batch;
        for (std::int64_t b = 0; b < p.batch; ++b) {
            Specification split = s;
            if (p.splits == 0)
                split.problem.splits = (length_of(p.mask.lens_kv, p.len_kv, b) + 31) / 32;
            const auto e = predict(rounded, split, truth);
            if (e) std::copy_n(e->output.begin() + b * each, each, out.output.begin() + b * each);
        }
        return out;
    };
    const Diagnosis d = diagnosed_of(answer, "b2 hq2 hkv2 tq2 tk130 d4 lens_kv 70,130 f32");
    EXPECT_EQ(d.form_of, "split_outputs_rounded");
    EXPECT_NE(d.says.find("split to 32 keys of its own accord, each sequence by its own number"),
              std::string::npos)
        << d.says;
    EXPECT_EQ(d.declared, "no such step; by design? declare numerics: partials bf16");
}

}  // namespace
}  // namespace attest::diagnosis
