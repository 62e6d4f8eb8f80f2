#pragma once
// For the tests of the campaign: small campaigns over planted kernels.

#include <list>
#include <string>
#include <vector>

#include "properties/search/planted_test.hpp"
#include "properties/search/runner.hpp"

namespace attest::search {

inline KernelFactory factory_of(const KernelPlan& plan) {
    return [plan]() -> std::unique_ptr<Kernel> { return std::make_unique<PlantedKernel>(plan); };
}

inline CampaignOptions few_cases(std::int64_t cases = 40, int jobs = 2) {
    CampaignOptions options;
    options.kernel.id = "planted";
    options.profile.name = "test";
    options.cases = cases;
    options.jobs = jobs;
    options.seed = 7;
    return options;
}

inline CampaignResult run(const std::vector<law::Property>& laws, const KernelPlan& plan,
                          const CampaignOptions& options) {
    static std::list<std::vector<law::Property>> kept;  // results point to their laws
    CampaignObserver silent;
    return run_laws(kept.emplace_back(laws), factory_of(plan), options, silent);
}

inline KernelPlan plan_with(PlantedDefect defect, std::function<bool(const Problem&)> fails = {}) {
    KernelPlan plan{.manifest = full_manifest(), .defect = defect};
    if (fails) plan.fails = [fails](const Problem& p, const TensorSet&) { return fails(p); };
    return plan;
}

inline bool past_forty(const Problem& p) {
    return p.len_kv > 40;
}

inline std::vector<law::Property> four_laws() {
    return {
        zero_law("first.any"), zero_law("second.causal", {.require = FeatureSet(Feature::causal)}),
        zero_law("third.square", {.square = true}),
        zero_law("fourth.small", {.scores_max = 64, .len_max = 8, .limited_because = "a test"})};
}

}  // namespace attest::search
