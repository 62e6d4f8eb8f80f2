// A campaign of few shapes: no more than were asked for, the same ones on any number of threads,
// and still cases enough to see what is wrong.

#include "properties/search/few_shapes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/search/campaign_test.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::search {
namespace {

/// A law that also asks about half of its queries.
law::Judgement halves_are_zero(const law::Trial& trial) {
    Problem half = trial.problem();
    half.len_q = (half.len_q + 1) / 2;
    half = canonical(half);
    if (!trial.supports(half)) return law::nothing_compared("no half is taken");
    trial.run(half, make_inputs({half, trial.tried().values}));
    return all_zero(trial);
}

std::vector<law::Property> laws() {
    std::vector<law::Property> all = four_laws();
    all.push_back(zero_law("fifth.halves", {.allow = FeatureSet(Feature::gqa)}));
    all.back().check = law::always<halves_are_zero>;
    return all;
}

struct SeenShapes {
    std::mutex mutex;
    std::set<std::string> shapes;
};

CampaignResult run_few(SeenShapes& seen, std::int64_t shapes, int jobs,
                       std::function<bool(const Problem&)> fails = {}) {
    KernelPlan plan = plan_with(PlantedDefect::wrong);
    plan.fails = [&seen, fails](const Problem& p, const TensorSet&) {
        const std::lock_guard lock(seen.mutex);
        seen.shapes.insert(shape_of(p));
        return fails && fails(p);
    };
    CampaignOptions options = few_cases(40, jobs);
    options.profile.scores_max = 512;
    options.shapes = shapes;
    options.profile.reach = {};
    options.profile.refuse_max = 1;
    return run(laws(), plan, options);
}

TEST(FewShapes, AreNoMoreThanAskedForAndTheSameOnAnyNumberOfThreads) {
    SeenShapes one, four;
    const CampaignResult result = run_few(one, 8, 1);
    run_few(four, 8, 4);
    EXPECT_LE(one.shapes.size(), 8u);
    EXPECT_GE(one.shapes.size(), 5u);
    EXPECT_EQ(one.shapes, four.shapes);
    EXPECT_NE(result.narrowed.back().find("shapes: " + std::to_string(one.shapes.size())),
              std::string::npos)
        << result.narrowed.back();
    for (const LawResult& law : result.laws) {
        EXPECT_EQ(law.verdict.decision, law::Decision::holds)
            << law.property->id << " " << law.verdict.reason.text;
        EXPECT_GE(law.cases, 30) << law.property->id;
    }
}

TEST(FewShapes, SeeWhatIsWrong) {
    SeenShapes seen;
    const CampaignResult result =
        run_few(seen, 8, 2, [](const Problem& p) { return p.mask.causal; });
    const auto causal = std::ranges::find_if(
        result.laws, [](const LawResult& law) { return law.property->id == "second.causal"; });
    ASSERT_NE(causal, result.laws.end());
    EXPECT_EQ(causal->verdict.decision, law::Decision::violated);
    EXPECT_LE(seen.shapes.size(), 8u);  // shrinking included
}

TEST(FewShapes, AShapeIsWhatNoValueTells) {
    const auto shape = [](const char* line) { return shape_of(parse_problem(line)); };
    EXPECT_EQ(shape("b2 hq1 hkv1 tq4 tk8 d4 lens_kv 3,8 f32"),
              shape("b2 hq1 hkv1 tq4 tk8 d4 lens_kv 8,5 f32"));
    EXPECT_NE(shape("b2 hq1 hkv1 tq4 tk8 d4 f32"), shape("b2 hq1 hkv1 tq4 tk8 d4 lens_kv 3,8 f32"));
    EXPECT_EQ(shape("b1 hq1 hkv1 tq4 tk8 d4 mask bool pattern left_pad f32"),
              shape("b1 hq1 hkv1 tq4 tk8 d4 mask bool pattern one_key f32"));
    EXPECT_NE(shape("b1 hq1 hkv1 tq4 tk8 d4 causal f32"), shape("b1 hq1 hkv1 tq4 tk8 d4 f32"));
}

}  // namespace
}  // namespace attest::search
