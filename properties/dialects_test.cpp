// Kernels that are right break no law: one that tells the truth in any dialect, also those that no
// built-in kernel speaks; and one that uses its bounds up, another way in every call.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "properties/truthful_test.hpp"
#include "reference/problem/counter.hpp"
#include "reference/problem/inputs.hpp"
#include "reference/problem/text.hpp"

namespace attest::law {
namespace {

Dialect dialect_number(int n) {
    Dialect d;
    if (n % 2 == 1) d.causal = CausalAlignment::top_left;
    if (n == 1 || n == 4) d.empty_row = EmptyRow::nan;
    if (n == 2) d.empty_row = EmptyRow::refuse;
    if (n == 1 || n == 2) d.window_ends = WindowEnds::exclusive;
    if (n == 2 || n == 3) d.softcap = SoftcapPlace::after_bias;
    if (n >= 3) d.lse_base = LseBase::two;
    if (n == 4) d.nonfinite = Nonfinite::unspecified;
    if (n == 3) d.empty_lse = EmptyLse::infinity;
    return d;
}

class EveryDialect : public ::testing::TestWithParam<int> {};

TEST_P(EveryDialect, TheTruthBreaksNoLaw) {
    constexpr std::int64_t cases = 16;
    TruthfulKernel kernel(dialect_number(GetParam()));
    const Dialect& d = kernel.manifest().dialect;
    for (const Property& law : catalogue()) {
        if (law.needs.simulated) continue;
        const auto tried = try_law(kernel, law, cases);
        EXPECT_EQ(tried.violated, 0) << law.id << ": " << tried.example;
        const bool asked =
            !law.needs.structure &&            // it declares none
            law.id != "hygiene.many_calls" &&  // no threads are simulated for so long
            law.id != "hygiene.concurrent" &&  // two threads call none of them
            law.cases.formats != std::vector{Precision::f64} &&
            !(law.id == "masking.empty_row" && d.empty_row == EmptyRow::refuse) &&
            !(law.id == "hygiene.nonfinite" && d.nonfinite == Nonfinite::unspecified);
        if (asked) {
            EXPECT_GT(tried.judged, cases / 2) << law.id;
        }
    }
}

// Dialect 0 is planted_test's.
INSTANTIATE_TEST_SUITE_P(Dialects, EveryDialect, ::testing::Range(1, 5));

struct Taking {
    const char* name;
    const char* says;                 ///< of its manifest
    std::set<std::string> not_asked;  ///< laws whose other calls it does not take
};

// Kernels that take little and are right: of a few thousand in use.
const Taking kernels_taking[] = {
    {"tiles",
     R"("formats":["f32"],"features":["causal","gqa","scale","lse"],
      "takes":{"len_q":{"multiple":4},"len_kv":{"multiple":8},"dim_qk":[8,12],"batch":[1,2]})",
     {"decode.chunked", "decode.prefill", "invariance.neutral_key", "masking.equivalence",
      "partition.merge", "probability.ratio", "reference.error_budget", "variance.dimension_free",
      "variance.scaled", "variance.unscaled"}},
    {"as_people_have_it",
     R"("formats":["f32"],"features":["causal"],"takes":{"queries":"as_keys"})",
     {"decode.chunked", "invariance.duplicate", "invariance.neutral_key", "masking.alignment",
      "masking.empty_row", "partition.tile_edges", "reference.error_budget",
      "variance.dimension_free", "variance.scaled"}},
    // ONNX Runtime's GroupQueryAttention: packed heads, a cache, right padding, causal alone.
    {"group_query_attention",
     R"("formats":["f16"],"features":["causal","gqa","scale","lens_q",
      "lens_kv","rope","cache","window","lse"],"takes":{"always":["causal"],"orders":["bthd"],
      "padding":"right","rope":["half"],"rope_dims":{"multiple":4},"dim_qk":{"multiple":4},
      "queries":"at_most_keys","window_right":-1,"lens_kv":{"least":1}})",
     {"hygiene.degenerate", "invariance.neutral_key", "masking.equivalence", "position.rope_norm"}},
    {"decode",
     R"("formats":["bf16"],"features":["causal","gqa","cache","paged","lens_kv","splits",
      "lse"],"takes":{"len_q":1,"page_size":[16,32],"always":["paged"],"group":[1,2,4]})",
     {"decode.chunked", "equivariance.queries", "hygiene.arguments_matter", "hygiene.degenerate",
      "masking.causal", "masking.empty_row"}},
    {"mixed",
     R"("formats":["f32 kv f16","f16 out f32"],"features":["causal","window","gqa",
      "mask_additive","lse"],"takes":{"dims":[[8,8],[12,8]]})",
     {"variance.dimension_free"}},
    {"left",
     R"("formats":["f32"],"features":["causal","window","rope","alibi","layout","lse"],
      "takes":{"window_right":-1,"rope_dims":"all","rope_base":10000,"dim_v":{"multiple":4},
      "dim_qk":{"multiple":4}})",
     {"invariance.neutral_key", "variance.dimension_free"}},
};

class EveryTaking : public ::testing::TestWithParam<int> {};

TEST_P(EveryTaking, TheTruthBreaksNoLawAndNoDrawIsRefused) {
    constexpr std::int64_t cases = 12;
    const Taking& taking = kernels_taking[GetParam()];
    TruthfulKernel kernel(kernel::parse_manifest(
        std::string(R"({"name":"x","version":"1",)") + taking.says +
            R"(,"simulated":true,"numerics":{"deterministic":true,"batch_invariant":true}})",
        taking.name));
    const search::Capability capability = search::declared_capability(kernel.manifest());
    std::set<std::string> not_asked;
    for (const Property& law : catalogue()) {
        if (law.needs.backward || law.needs.simulated ||
            search::why_not_applicable(law, capability))
            continue;
        const auto tried = try_law(kernel, law, cases);
        EXPECT_EQ(tried.violated, 0) << law.id << ": " << tried.example;
        EXPECT_EQ(tried.refused, 0) << law.id;
        if (tried.judged == 0) not_asked.insert(law.id);
    }
    EXPECT_EQ(not_asked, taking.not_asked);
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryTaking, ::testing::Range(0, 6), [](const auto& one) {
    return std::string(kernels_taking[one.param].name);
});

// 257 is no number of bf16: written out, that bias is another one.
TEST(Laws, AnAlibiBiasThatIsRoundedIsNoAlibi) {
    TruthfulKernel kernel(Dialect{});
    const Case far =
        parse_case("b1 hq1 hkv1 tq1 tk258 d1 alibi cache 257 bf16 values descending seed 1");
    const auto record = search::try_case(kernel, *find_property("position.alibi"), far);
    EXPECT_NE(record.verdict.decision, Decision::violated);
}

/// Answers that are off keep the law where the kernel says why, and there alone.
template <typename Answers, typename SaysSo>
void expect_needs_its_word(const char* id, std::int64_t cases, const Answers& off,
                           const SaysSo& says_so,
                           const kernel::Manifest& all = TruthfulKernel(Dialect{}).manifest()) {
    const Property& law = *find_property(id);
    TruthfulKernel told(all, {.id = "told", .answers = off, .declares = says_so});
    const auto tried = try_law(told, law, cases);
    EXPECT_EQ(tried.violated, 0) << id << ": " << tried.example;
    EXPECT_EQ(tried.judged, cases) << id;
    TruthfulKernel untold(all, {.id = "untold", .answers = off});
    EXPECT_GT(try_law(untold, law, cases).violated, 0) << id;
}

void expect_rounding_needs_its_word(const char* id, std::int64_t cases, Precision format,
                                    NumberFormat word) {
    expect_needs_its_word(
        id, cases,
        [=](const bound::ExpectedElement& e, std::int64_t) { return round_to(e.value, format); },
        [=](Numerics& numerics) { numerics.output = word; });
}

// The last rounding is to the declared output, where that is coarser than what stores it.
TEST(Laws, AnOutputRoundedToBf16IsNoOutputRoundedWrongly) {
    expect_rounding_needs_its_word("reference.rounding", 40, Precision::bf16, NumberFormat::bf16);
}

// Values and weights that a unit is fed in bf16 are off by up to 2^-8 each.
TEST(Laws, ValuesThatAUnitIsFedAreRounded) {
    const auto off = planted::answers_times(1 + 0x1.8p-8).answers;
    const auto fed = [](Numerics& numerics) { numerics.operands = Operands::bf16; };
    kernel::Manifest wide = TruthfulKernel(Dialect{}).manifest();
    wide.formats = {Precision::f32};
    wide.features = wide.features.without(Feature::mixed_formats);
    for (const char* law : {"reference.rounding", "probability.single_key", "convex_hull.box"})
        expect_needs_its_word(law, 40, off, fed, wide);
}

// A weight below the normal numbers of f16 is what it is: the law asks for none.
TEST(Laws, AWeightThatIsRoundedToF16StandsInNoRatioBelowItsNumbers) {
    expect_rounding_needs_its_word("probability.ratio", 20, Precision::f16, NumberFormat::f16);
}

// Parts that are normalised and merged by their log-sum-exps are off by a few roundings of these,
// unless the kernel says that its keys are summed in chunks.
TEST(Laws, PartsThatAreMergedByTheirLogSumExpsAreRoundedMoreThanOnce) {
    constexpr std::int64_t cases = 20;
    const auto merged = [](const bound::ExpectedElement& e, std::int64_t) {
        return e.value * (1 + 0x1p-21);
    };
    const auto in_chunks = [](Numerics& numerics) { numerics.sum_chunk = 32; };
    const Property& law = *find_property("reference.rounding");
    kernel::Manifest unasked = TruthfulKernel(Dialect{}).manifest();
    unasked.features = unasked.features.without(Feature::splits);
    unasked.formats = {Precision::f32};
    TruthfulKernel kernel(unasked, {.id = "merged", .answers = merged});
    const auto tried = try_law(kernel, law, cases);
    EXPECT_EQ(tried.violated, 0) << tried.example;
    EXPECT_EQ(tried.judged, cases);
    TruthfulKernel beyond(unasked,
                          {.id = "beyond", .answers = planted::answers_times(1 + 0x1p-16).answers});
    EXPECT_GT(try_law(beyond, law, cases).violated, 0);  // few keys have few merges
    TruthfulKernel chunked(unasked, {.id = "chunked", .answers = merged, .declares = in_chunks});
    EXPECT_GT(try_law(chunked, law, cases).violated, 0);
}

// Products of weights and values may be subnormal in f16: twice the values are not twice the sums.
TEST(Laws, SumsInF16DoNotScaleToTheBit) {
    constexpr std::int64_t cases = 60;
    const auto off_by_its_number = [](const bound::ExpectedElement& e, std::int64_t) {
        const double side = std::remainder(e.value * 1009, 1.0);  // the same for the same number
        return std::isfinite(e.value) ? e.value + side * std::max(e.bound - e.error, 0.0) : e.value;
    };
    const auto in_f16 = [](Numerics& numerics) { numerics.accumulate = NumberFormat::f16; };
    const Property& law = *find_property("invariance.value_linear");
    TruthfulKernel kernel(Dialect{},
                          {.id = "sums_in_f16", .answers = off_by_its_number, .declares = in_f16});
    const auto tried = try_law(kernel, law, cases);
    EXPECT_EQ(tried.violated, 0) << tried.example;
    TruthfulKernel wider(Dialect{}, {.id = "sums_in_f32", .answers = off_by_its_number});
    EXPECT_GT(try_law(wider, law, cases).violated, 0);
}

// A smallest case may hold its values number by number: these fit no other shape than its own.
TEST(Laws, TakeValuesThatAreWrittenOut) {
    constexpr std::int64_t cases = 8;
    TruthfulKernel kernel(Dialect{});
    for (const Property& law : catalogue()) {
        if (law.needs.simulated) continue;
        for (std::int64_t k = 0; k < cases; ++k) {
            search::Profile profile;
            // The truth is slow where a law calls it a hundred times.
            if (law.cases.require.has(Feature::dropout)) profile.scores_max = 256;
            std::optional<Case> c = search::draw_case(law, kernel.manifest(), profile, 1, k);
            if (!c) continue;
            const TensorSet inputs = make_inputs(*c);
            for (const Role role : {Role::q, Role::k, Role::v}) {
                std::vector<double> numbers = inputs[role].to_doubles();
                for (double& x : numbers)
                    if (std::isnan(x)) x = 0;  // poison cannot be written out
                c->values.tensors[role] = {Fill::explicit_values, std::move(numbers)};
            }
            search::Judged judged;
            EXPECT_NO_THROW(judged = search::judge_case(kernel, law, *c, k)) << law.id;
            EXPECT_FALSE(search::failure_kind(judged.record).has_value()) << law.id;
        }
    }
}

// Any answer within the bounds passes, also when no two calls agree: half of all elements go to the
// very edge. (Not asked: laws that know more of a kernel than its bounds.)
class EveryBound : public ::testing::TestWithParam<int> {};

TEST_P(EveryBound, SlippingToTheEdgeBreaksNoLawThatRestsOnIt) {
    constexpr std::int64_t cases = 40;
    std::uint64_t elements = 0;
    const auto slip = [&](const bound::ExpectedElement& e, std::int64_t) {
        const double share = counter_uniform(7, 0, ++elements);
        const double radius = e.bound - e.error;
        const double side = share < 0.25 ? -1 : share < 0.5 ? 1 : 4 * share - 3;
        return radius > 0 ? e.value + side * radius * (1 - 0x1p-40) : e.value;
    };
    TruthfulKernel kernel(dialect_number(GetParam()), {.id = "slips", .answers = slip});
    kernel.claim_no_bits();
    for (const Property& law : catalogue()) {
        if (law.knows_more || law.needs.deterministic) continue;
        const auto tried =
            try_law(kernel, law, law.cases_enough > 0 ? std::min(cases, law.cases_enough) : cases);
        EXPECT_EQ(tried.violated, 0) << law.id << ": " << tried.example;
    }
}

INSTANTIATE_TEST_SUITE_P(Dialects, EveryBound, ::testing::Range(0, 5));

}  // namespace
}  // namespace attest::law
