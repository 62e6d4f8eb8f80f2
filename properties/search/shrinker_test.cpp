// One defect, one smallest case: whatever case it was found by.

#include "properties/search/shrinker.hpp"

#include <gtest/gtest.h>

#include <set>

#include "properties/search/draw_case_test.hpp"
#include "properties/search/planted_test.hpp"

namespace attest::search {
namespace {

/// The smallest cases found from 50 seeds, and the most evaluations any of them took.
struct Outcomes {
    std::map<std::string, int> smallest;
    std::int64_t evaluations_max = 0;
    int found = 0;
};

Outcomes shrink_from_many(const KernelPlan& plan, const law::Property& law) {
    Outcomes outcomes;
    PlantedKernel kernel(plan);
    const Capability capability = declared_capability(plan.manifest);
    for (std::uint64_t seed = 1; seed <= 50; ++seed)
        for (std::int64_t k = 0; k < 3000; ++k) {
            const auto c = draw_case(law, plan.manifest, Profile{}, seed, k);
            if (!c) continue;
            const Judged judged = judge_case(kernel, law, *c, k);
            if (!failure_kind(judged.record)) continue;
            Shrinker shrinker(kernel, law, capability, {}, {});
            const Counterexample smallest = shrinker.shrink(judged.record);
            EXPECT_EQ(smallest.confirmed.how, Confirmation::alone);
            EXPECT_EQ(smallest.verdict.decision, law::Decision::violated);
            ++outcomes.smallest[print(smallest.smallest)];
            outcomes.evaluations_max = std::max(outcomes.evaluations_max, smallest.evaluations);
            ++outcomes.found;
            break;
        }
    return outcomes;
}

Counterexample shrink(Kernel& kernel, const law::Property& law, const CaseRecord& found) {
    const Capability capability = declared_capability(kernel.manifest());
    return Shrinker(kernel, law, capability, {}, {}).shrink(found);
}

std::string listing(const Outcomes& outcomes) {
    std::string all;
    for (const auto& [line, count] : outcomes.smallest)
        all += std::to_string(count) + " x " + line + "\n";
    return all;
}

void expect_one(const char* smallest, bool (*fails)(const Problem&), law::CaseSpace cases = {}) {
    KernelPlan plan{.manifest = full_manifest()};
    plan.fails = [fails](const Problem& p, const TensorSet&) { return fails(p); };
    const Outcomes outcomes = shrink_from_many(plan, zero_law("shrink.one", std::move(cases)));
    EXPECT_EQ(outcomes.found, 50);
    const std::string all = listing(outcomes);
    EXPECT_EQ(outcomes.smallest.size(), 1u) << all;
    EXPECT_EQ(outcomes.smallest.begin()->first, std::string(smallest)) << all;
    EXPECT_LE(outcomes.evaluations_max, 2000);
    ::testing::Test::RecordProperty("evaluations_max", static_cast<int>(outcomes.evaluations_max));
}

constexpr const char* plain_data = " q zeros k zeros v ones";

TEST(Shrinker, OnePastATile) {
    expect_one((std::string("b1 hq1 hkv1 tq1 tk65 d1 f32") + plain_data).c_str(),
               [](const Problem& p) { return p.len_kv > 64 && p.len_kv % 64 == 1; });
}

TEST(Shrinker, AKeyCountAndAFeature) {
    expect_one((std::string("b1 hq1 hkv1 tq1 tk37 d1 causal f32") + plain_data).c_str(),
               [](const Problem& p) { return p.len_kv >= 37 && p.mask.causal; });
    expect_one((std::string("b1 hq1 hkv1 tq1 tk2 d1 scale -1 f32") + plain_data).c_str(),
               [](const Problem& p) { return p.scale && *p.scale < 0 && p.len_kv > 1; });
}

TEST(Shrinker, TheDifferenceOfTheLengths) {
    expect_one((std::string("b1 hq1 hkv1 tq1 tk18 d1 causal f32") + plain_data).c_str(),
               [](const Problem& p) { return p.mask.causal && p.len_kv - p.len_q >= 17; });
}

TEST(Shrinker, EqualLengthsAndTwoKeyHeads) {
    expect_one(
        (std::string("b1 hq2 hkv2 tq33 tk33 d1 f32") + plain_data).c_str(),
        [](const Problem& p) { return p.len_q == p.len_kv && p.len_q >= 33 && p.heads_kv > 1; });
}

TEST(Shrinker, AGroupADimensionAndAWindow) {
    expect_one((std::string("b1 hq3 hkv1 tq1 tk40 d1 window 0 -1 f32") + plain_data).c_str(),
               [](const Problem& p) {
                   return group_size(p) >= 3 && p.len_kv >= 40 && p.mask.window.left >= 0;
               });
}

TEST(Shrinker, TwoSequencesOfDifferentLength) {
    expect_one((std::string("b2 hq1 hkv1 tq1 tk1 d1 lens_kv 1,0 f32") + plain_data).c_str(),
               [](const Problem& p) {
                   return p.batch > 1 && !p.mask.lens_kv.empty() &&
                          p.mask.lens_kv[0] > p.mask.lens_kv[1];
               });
}

TEST(Shrinker, AnEmptyDocument) {
    expect_one(
        (std::string("b1 hq1 hkv1 tq1 tk1 d1 docs_q 0,1 docs_kv 1,0 f32") + plain_data).c_str(),
        [](const Problem& p) {
            const auto& docs = p.mask.documents_kv;
            return docs.size() >= 2 && docs.back() == 0;
        },
        {.require = FeatureSet(Feature::documents)});
}

TEST(Shrinker, ARemainderOfPages) {
    expect_one((std::string("b1 hq1 hkv1 tq1 tk3 d1 cache 2 page 2 f32") + plain_data).c_str(),
               [](const Problem& p) {
                   return p.cache.page_size > 1 && p.len_kv > p.cache.page_size &&
                          p.len_kv % p.cache.page_size != 0;
               },
               {.require = FeatureSet(Feature::cache, Feature::paged)});
}

TEST(Shrinker, AFormat) {
    expect_one((std::string("b1 hq1 hkv1 tq1 tk1 d1 bf16") + plain_data).c_str(),
               [](const Problem& p) {
                   return p.format_q == Precision::bf16 && p.format_o == Precision::bf16;
               });
}

/// A defect that depends on the data and not on the shape: a negative product somewhere.
TEST(Shrinker, TheDataAreTheSimplestThatFail) {
    KernelPlan plan{.manifest = full_manifest()};
    plan.fails = [](const Problem& p, const TensorSet& inputs) {
        if (p.len_kv < 5) return false;
        const auto q = inputs[Role::q].to_doubles(), k = inputs[Role::k].to_doubles();
        return q.front() * k.front() < 0 && q.front() != 0;
    };
    const Outcomes outcomes = shrink_from_many(plan, zero_law("shrink.data"));
    EXPECT_EQ(outcomes.found, 50);
    const std::string all = listing(outcomes);
    EXPECT_EQ(outcomes.smallest.size(), 1u) << all;
    const Case smallest = parse_case(outcomes.smallest.begin()->first);
    EXPECT_EQ(smallest.problem.len_kv, 5) << all;
    EXPECT_EQ(score_count(smallest.problem), 5) << all;
}

/// A maximum that first grows past key 16: which data show it depends on how many keys there are,
/// so lengths and data must shrink together.
TEST(Shrinker, LengthsAndDataShrinkTogether) {
    KernelPlan plan{.manifest = full_manifest()};
    plan.fails = [](const Problem& p, const TensorSet& inputs) {
        const Tensor& k = inputs[Role::k];
        const auto first = [&](std::int64_t key) { return k.at(0, 0, key, 0); };
        double before = -infinite, after = before;
        for (std::int64_t key = 0; key < p.len_kv; ++key)
            (key < 16 ? before : after) = std::max(key < 16 ? before : after, first(key));
        return after > before;
    };
    const Outcomes outcomes = shrink_from_many(plan, zero_law("shrink.both"));
    const std::string all = listing(outcomes);
    EXPECT_EQ(outcomes.found, 50);
    EXPECT_EQ(outcomes.smallest.size(), 1u) << all;
    EXPECT_EQ(parse_case(outcomes.smallest.begin()->first).problem.len_kv, 17) << all;
}

/// Crashes and wrong answers side by side: the one does not shrink into the other.
TEST(Shrinker, ACrashStaysACrash) {
    class Both final : public Kernel {
    public:
        const kernel::Manifest& manifest() const noexcept override { return manifest_; }
        bool supports(const Problem&, std::string*) override { return true; }
        worker::CallResult forward(const Problem& p, const TensorSet& inputs) override {
            KernelPlan plan{.manifest = manifest_,
                            .defect = p.len_kv >= 7 ? PlantedDefect::crash : PlantedDefect::wrong};
            plan.fails = [](const Problem& q, const TensorSet&) { return q.len_kv >= 3; };
            return PlantedKernel(plan).forward(p, inputs);
        }
        void restart() override {}
        void set_timeout(std::chrono::milliseconds) noexcept override {}

    private:
        kernel::Manifest manifest_ = full_manifest();
    } kernel;
    const law::Property law = zero_law("shrink.kinds");
    for (const auto& [keys, smallest] : {std::pair{90, 7}, {5, 3}}) {
        Case c;
        c.problem.len_kv = keys;
        const CaseRecord found = judge_case(kernel, law, c, 0).record;
        const Counterexample result = shrink(kernel, law, found);
        EXPECT_EQ(result.smallest.problem.len_kv, smallest);
        EXPECT_EQ(result.outcome, found.outcome);
    }
}

/// A read past an end shows or not with where the tensors lie, call by call.
TEST(Shrinker, WhatDependsOnThePlacementIsTriedBothWays) {
    class EverySecond final : public Kernel {
    public:
        const kernel::Manifest& manifest() const noexcept override { return manifest_; }
        bool supports(const Problem&, std::string*) override { return true; }
        worker::CallResult forward(const Problem& p, const TensorSet& inputs) override {
            KernelPlan plan{.manifest = manifest_};
            const bool shows = (calls_++ + static_cast<std::uint64_t>(p.len_kv)) % 2 == 1;
            plan.fails = [shows](const Problem& q, const TensorSet&) {
                return shows && q.len_kv >= 3;
            };
            return PlantedKernel(plan).forward(p, inputs);
        }
        void begin_case(std::uint64_t first) noexcept override { calls_ = first; }
        void restart() override { calls_ = 0; }
        void set_timeout(std::chrono::milliseconds) noexcept override {}

    private:
        kernel::Manifest manifest_ = full_manifest();
        std::uint64_t calls_ = 0;
    } kernel;
    const law::Property law = zero_law("shrink.placement");
    for (std::int64_t keys = 20; keys < 40; ++keys) {
        CaseRecord found;
        found.tried = parse_case("b2 hq4 hkv2 tq5 tk30 d8 causal sink f16 values ties seed 9");
        found.tried.problem.len_kv = keys;
        found.verdict = law::violated({});
        const Counterexample result = shrink(kernel, law, found);
        EXPECT_EQ(result.confirmed.how, Confirmation::alone);
        EXPECT_EQ(print(result.smallest), "b1 hq1 hkv1 tq1 tk3 d1 f32 q zeros k zeros v ones");
    }
}

TEST(Shrinker, KeepsToTheLawsSpace) {
    KernelPlan plan{.manifest = full_manifest()};
    plan.fails = [](const Problem& p, const TensorSet&) { return p.len_kv >= 3; };
    law::CaseSpace cases{.require = FeatureSet(Feature::window),
                         .kinds = {ValueKind::ties, ValueKind::flat},
                         .square = true};
    const Outcomes outcomes = shrink_from_many(plan, zero_law("shrink.space", cases));
    ASSERT_EQ(outcomes.smallest.size(), 1u);
    const Case c = parse_case(outcomes.smallest.begin()->first);
    EXPECT_EQ(c.problem.len_q, 3);
    EXPECT_EQ(c.problem.len_kv, 3);
    EXPECT_TRUE(c.problem.mask.window.limited());
    EXPECT_TRUE(c.values.kind == ValueKind::ties || c.values.kind == ValueKind::flat);
    EXPECT_TRUE(c.values.tensors.empty());
}

/// A crash does not shrink into the wrong answer beside it.
TEST(Shrinker, KeepsTheKindOfFailure) {
    for (const PlantedDefect defect :
         {PlantedDefect::crash, PlantedDefect::write_outside, PlantedDefect::error,
          PlantedDefect::nan, PlantedDefect::unwritten}) {
        KernelPlan plan{.manifest = full_manifest(), .defect = defect};
        plan.fails = [](const Problem& p, const TensorSet&) { return p.len_kv >= 7; };
        PlantedKernel kernel(plan);
        const law::Property law = zero_law("shrink.kind");
        Case c;
        c.problem.len_kv = 90;
        const Judged judged = judge_case(kernel, law, c, 4);
        ASSERT_TRUE(failure_kind(judged.record));
        const Counterexample smallest = shrink(kernel, law, judged.record);
        EXPECT_EQ(smallest.smallest.problem.len_kv, 7);
        EXPECT_EQ(smallest.outcome, judged.record.outcome);
        EXPECT_EQ(smallest.fault.has_value(), judged.record.fault.has_value());
        EXPECT_EQ(smallest.confirmed.how, Confirmation::alone);
        EXPECT_EQ(smallest.steps.front().pass, "found");
        EXPECT_EQ(smallest.steps.back().line, print(smallest.smallest));
        EXPECT_EQ(smallest.accepted + 1, static_cast<std::int64_t>(smallest.steps.size()));
    }
}

TEST(Shrinker, WhatDoesNotFailAgainIsNotConfirmed) {
    KernelPlan plan{.manifest = full_manifest()};
    PlantedKernel kernel(plan);
    const law::Property law = zero_law("shrink.flaky");
    CaseRecord found;
    found.tried.problem.len_kv = 9;
    found.verdict = law::violated({});
    const Counterexample smallest = shrink(kernel, law, found);
    EXPECT_EQ(smallest.confirmed.how, Confirmation::none);
    EXPECT_EQ(smallest.smallest.problem.len_kv, 9);
    EXPECT_EQ(smallest.accepted, 0);
}

/// Whether a row of the mask begins with `hidden` hidden keys and sees one behind them.
bool left_padded(const Problem& p, const TensorSet& inputs, std::int64_t hidden) {
    if (p.mask.tensor.kind != MaskKind::boolean || p.len_kv <= hidden) return false;
    const Tensor& mask = inputs[Role::mask];
    for (std::int64_t row = 0; row < mask.size(); row += p.len_kv) {
        std::int64_t first = 0;
        while (first < p.len_kv && mask.get(row + first) == 0) ++first;
        if (first >= hidden && first < p.len_kv) return true;
    }
    return false;
}

// Twenty hidden keys are no accident: the smallest case still says who makes such masks. One is,
// and needs no pattern.
TEST(Shrinker, AMaskKeepsItsPatternWhileItTakesOne) {
    for (const auto& [hidden, pattern] :
         {std::pair{20, "pattern "}, std::pair{1, "mask bool f32"}}) {
        KernelPlan plan{.manifest = full_manifest()};
        plan.fails = [hidden = hidden](const Problem& p, const TensorSet& inputs) {
            return left_padded(p, inputs, hidden);
        };
        const law::CaseSpace masked{.require = FeatureSet(Feature::mask_bool)};
        const Outcomes outcomes = shrink_from_many(plan, zero_law("shrink.masks", masked));
        EXPECT_EQ(outcomes.found, 50);
        const std::string smallest = " tq1 tk" + std::to_string(hidden + 1) + " ";
        for (const auto& [line, count] : outcomes.smallest) {
            EXPECT_NE(line.find(smallest), line.npos) << listing(outcomes);
            EXPECT_NE(line.find(pattern), line.npos) << listing(outcomes);
        }
    }
}

}  // namespace
}  // namespace attest::search
