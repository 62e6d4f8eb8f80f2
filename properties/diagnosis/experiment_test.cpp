// Experiments: what a kernel answers to a failing call that is changed.

#include "properties/diagnosis/experiment.hpp"

#include <gtest/gtest.h>

#include "properties/diagnosis/actor_test.hpp"

namespace attest::diagnosis {
namespace {

using Spoil = void (*)(bound::Expected&);

std::string strides_of(Spoil spoil, bool of_contiguous, const char* line) {
    Actor kernel([=](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        if (of_contiguous || s.problem.layout_q != Layout{}) spoil(own);
        return own;
    });
    const auto e = evidence_of(kernel, parse_case(line));
    if (!e || !e->wrong()) return "right";
    const auto found = strides_ignored(kernel, {*e});
    return found ? found->id : "";
}

TEST(Experiment, StridesAreIgnoredWhereAnOutputIsRightOfContiguousTensorsAlone) {
    const char* line = "b1 hq1 hkv1 tq2 tk3 d2 layout_q bhdt f32";
    const Spoil output = [](bound::Expected& e) { e.output[0].value += 1; };
    const Spoil lse = [](bound::Expected& e) { e.lse[0].value += 1; };
    for (const Spoil spoil : {output, lse}) {
        EXPECT_EQ(strides_of(spoil, false, line), "strides_ignored");
        EXPECT_EQ(strides_of(spoil, true, line), "");
        EXPECT_EQ(strides_of(spoil, true, "b1 hq1 hkv1 tq2 tk3 d2 f32"), "");
    }
}

TEST(Experiment, OffsetsAreCutWhereTheSameRowsNearerToEachOtherAreAnsweredRightly) {
    const auto said = [](bool always, const char* line) -> std::string {
        Actor kernel([always](const Specification& s, const bound::Expected& truth) {
            bound::Expected own = truth;
            const Problem& p = s.problem;
            if (always || (p.layout_k.row_pad + p.dim_qk) * (p.len_kv - 1) >= (1 << 24))
                own.output[0].value += 1;
            return own;
        });
        const auto e = evidence_of(kernel, parse_case(line));
        if (!e || !e->wrong()) return "right";
        const auto found = offsets_cut(kernel, {*e});
        return found ? found->says : "";
    };
    const char* far = "b1 hq1 hkv1 tq2 tk3 d2 layout_k bhtd pad 2147483648 f32";
    EXPECT_NE(said(false, far).find("farther than 2^24 from"), std::string::npos);
    EXPECT_EQ(said(true, far), "");
    EXPECT_EQ(said(true, "b1 hq1 hkv1 tq2 tk3 d2 layout_k bhtd pad 9 f32"), "");
}

}  // namespace
}  // namespace attest::diagnosis
