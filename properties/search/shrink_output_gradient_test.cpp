// The dO of a smallest case: one number, one in eight, all alike, small integers; its dLSE: none,
// one number, none that is not 0, all alike, small integers; the first that shows the defect.

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "properties/search/judge.hpp"
#include "properties/search/planted_test.hpp"
#include "properties/search/shrinker.hpp"

namespace attest::search {
namespace {

/// How many of its numbers lie in [least, most].
std::int64_t count(const TensorSet& inputs, double least, double most, Role role = Role::d_o) {
    const std::vector<double> all = inputs[role].to_doubles();
    return std::ranges::count_if(all, [&](double x) { return x >= least && x <= most; });
}

struct Need {
    const char* smallest;
    bool (*fails)(const TensorSet&);
};

constexpr Need needs[] = {
    {"", [](const TensorSet& t) { return count(t, 0, 0) < t[Role::d_o].size(); }},
    {" d_o sparse",
     [](const TensorSet& t) {
         return count(t, 0, 0) > 1 && count(t, 0, 0) + 1 < t[Role::d_o].size();
     }},
    {" d_o ones", [](const TensorSet& t) { return count(t, 0, 0) == 0; }},
    {" d_o index", [](const TensorSet& t) { return count(t, 1.5, 1e9) > 0; }}};

std::int64_t zeros(const TensorSet& t) {
    return count(t, 0, 0, Role::d_lse);
}
constexpr Need lse_needs[] = {
    {"", [](const TensorSet& t) { return zeros(t) < t[Role::d_lse].size(); }},
    {" d_lse zeros", [](const TensorSet& t) { return zeros(t) == t[Role::d_lse].size(); }},
    {" d_lse ones", [](const TensorSet& t) { return zeros(t) == 0; }},
    {" d_lse index", [](const TensorSet& t) { return count(t, 1.5, 1e9, Role::d_lse) > 1; }}};

Case backward_case(std::uint64_t seed, Role role) {
    Case c;
    c.problem.len_q = 20;
    c.problem.len_kv = 11;
    c.problem.want_grad = true;
    c.problem.lse_grad = role == Role::d_lse;
    c.values.seed = seed;
    return c;
}

/// Which of twenty cases fail, and that each shrinks to the one line.
void expect_smallest(std::span<const Need> all, Role role) {
    for (const Need& need : all) {
        int found = 0;
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            KernelPlan plan{.manifest = full_manifest()};
            plan.manifest.gradients = {Role::d_q, Role::d_k, Role::d_v};
            plan.fails = [&need, role](const Problem& p, const TensorSet& inputs) {
                return p.len_q >= 9 && inputs.has(role) && need.fails(inputs);
            };
            PlantedKernel kernel(plan);
            const law::Property law = zero_law("shrink.gradient");
            const Judged judged = judge_case(kernel, law, backward_case(seed, role), 4);
            if (!failure_kind(judged.record)) continue;
            ++found;
            const Capability capability = declared_capability(plan.manifest);
            Shrinker shrinker(kernel, law, capability, {}, {});
            EXPECT_EQ(print(shrinker.shrink(judged.record).smallest),
                      std::string("b1 hq1 hkv1 tq9 tk1 d1 f32 grad") +
                          (role == Role::d_lse ? " lse_grad" : "") + " q zeros k zeros v ones" +
                          need.smallest);
        }
        EXPECT_GT(found, 0) << need.smallest;
    }
}

TEST(Shrinker, TheOutputGradientShrinksToo) {
    expect_smallest(needs, Role::d_o);
}

TEST(Shrinker, TheGradientOfTheLseShrinksToo) {
    expect_smallest(lse_needs, Role::d_lse);
}

}  // namespace
}  // namespace attest::search
