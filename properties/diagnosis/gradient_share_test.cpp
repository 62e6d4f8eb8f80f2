// Shares of dK and dV that query heads leave rounded, each played and named.

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/diagnosis/backward_actor_test.hpp"

namespace attest::diagnosis {
namespace {

// Roundings that are no larger than those of weights in the inputs' format: of weights in f32.
TEST(GradientShares, ThoseThatAreRoundedAreNamed) {
    Numerics f32;
    f32.weights = NumberFormat::f32;
    for (const char* id : {"heads_rounded_apart", "heads_rounded_as_added"}) {
        const auto d = std::ranges::find(backward_deviations(), id, &BackwardDeviation::id);
        ASSERT_NE(d, backward_deviations().end());
        AllBackwardEvidence all;
        for (const char* line :
             {"b1 hq8 hkv1 tq5 tk7 d4 f16 grad", "b1 hq6 hkv1 tq5 tk7 d4 bf16 grad",
              "b2 hq6 hkv2 tq4 tk3 d3 causal bf16 grad", "b1 hq4 hkv2 tq5 tk3 d4 f32 grad"}) {
            const Case c = parse_case(line);
            const auto own = predict(*d, evidence_of(c, reference, f32));
            all.add(evidence_of(c, changed([&](const Specification&, GradientNumbers& values) {
                                    for (const Role role : {Role::d_k, Role::d_v})
                                        for (std::size_t n = 0; own && n < values[role].size(); ++n)
                                            values[role][n] = (*own)[role][n].value;
                                }),
                                f32));
        }
        EXPECT_EQ(explain_backward(all).id, id);
    }
}

}  // namespace
}  // namespace attest::diagnosis
