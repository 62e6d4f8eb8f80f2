// Right kernels whose arithmetic overflows where nothing is claimed break no law.

#include <gtest/gtest.h>

#include "properties/truthful_test.hpp"
#include "reference/problem/text.hpp"

namespace attest::law {
namespace {

// A step that is declared in f16 may overflow where nothing is claimed of it: NaN is no leak then,
// and what the law would have read of it is not missed.
TEST(Laws, NaNOfAStepThatMayOverflowIsNoWeight) {
    TruthfulKernel kernel(Dialect{});
    kernel.overflow_early();
    for (const char* law : {"probability.nonnegative", "probability.masked_zero"}) {
        const Case far =
            parse_case("b1 hq1 hkv1 tq2 tk2 d55 causal f16 no_lse values logit1e4 seed 1");
        const auto record = search::try_case(kernel, *find_property(law), far);
        EXPECT_NE(record.verdict.decision, Decision::violated) << law;
    }
}

/// By 40 cases of each law, of a kernel whose answers differ from call to call.
void expect_none_violated(TruthfulKernel& kernel) {
    constexpr std::int64_t cases = 40;
    kernel.claim_no_bits();
    for (const Property& law : catalogue()) {
        if (law.needs.backward || law.needs.simulated || law.needs.deterministic) continue;
        const auto tried = try_law(kernel, law, cases);
        EXPECT_EQ(tried.violated, 0) << law.id << ": " << tried.example;
    }
}

// 65504 is soon exceeded, and inf - inf is NaN: that is no law's business where nothing is claimed.
TEST(Laws, AnOverflowOfADeclaredFormatBreaksNone) {
    TruthfulKernel kernel(Dialect{});
    kernel.overflow_early();
    expect_none_violated(kernel);
}

// Nor does that of a hidden key's score, to which such a kernel adds -inf: where nothing is asked
// beside infinities, hidden numbers are as large as the declared format leaves room for.
TEST(Laws, AnOverflowOfAHiddenScoreBreaksNone) {
    TruthfulKernel kernel(Dialect{});
    kernel.overflow_of_hidden_keys();
    expect_none_violated(kernel);
}

// A floor of -FLT_MAX times log2(e) is -inf, and exp(-inf - -inf) is NaN.
TEST(Laws, TheLowestFloorInBaseTwoBreaksNone) {
    TruthfulKernel kernel(Dialect{});
    kernel.overflow_in_base_two();
    kernel.claim_no_bits();
    const std::string mask = " mask additive floor -3.4028234663852886e+38 f32 values small_int";
    const search::Capability capability = search::declared_capability(kernel.manifest());
    int judged = 0;
    for (const char* shape : {"b1 hq1 hkv1 tq1 tk1 d1", "b1 hq2 hkv1 tq3 tk1 d2"})
        for (const Property& law : catalogue()) {
            if (law.needs.backward || law.needs.simulated || law.needs.deterministic) continue;
            const Case c = parse_case(shape + mask + " seed 2");
            if (!search::in_space(law, capability, c.problem)) continue;
            const auto record = search::try_case(kernel, law, c);
            EXPECT_NE(record.verdict.decision, Decision::violated) << law.id;
            judged += record.verdict.decision == Decision::holds;
        }
    EXPECT_GT(judged, 20);
}

}  // namespace
}  // namespace attest::law
