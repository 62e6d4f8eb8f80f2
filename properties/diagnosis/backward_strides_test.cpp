// Gradients that are wrong only of tensors with strides of their own: whose they are is told by
// laying the call out in other ways.

#include "properties/diagnosis/backward_strides.hpp"

#include <gtest/gtest.h>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/backward_actor_test.hpp"

namespace attest::diagnosis {
namespace {

/// Its gradients are negated wherever `wrong` says so of a call's layouts.
class NegatingActor final : public Actor {
public:
    explicit NegatingActor(std::function<bool(const Problem&)> wrong)
        : Actor([](const Specification&, const bound::Expected&) { return bound::Expected{}; }),
          wrong_(std::move(wrong)) {}
    worker::CallResult backward(const Problem& problem, const TensorSet& inputs,
                                const std::vector<Role>& wanted) override {
        const GradientNumbers truth = reference({problem, {}, manifest().numerics, inputs});
        worker::CallResult result;
        for (const Role role : wanted) {
            Tensor& t = result.outputs.put(
                role, Tensor(type_of(problem, role), shape_of(problem, role).value()));
            for (std::int64_t n = 0; n < t.size(); ++n)
                t.set(n, truth.at(role)[static_cast<std::size_t>(n)] * (wrong_(problem) ? -1 : 1));
        }
        return result;
    }

private:
    std::function<bool(const Problem&)> wrong_;
};

std::string told(const std::function<bool(const Problem&)>& wrong,
                 const char* line = "b1 hq2 hkv2 tq3 tk4 d4 layout_v bthd f32 grad") {
    const Case c = parse_case(line);
    const auto negated = changed([&](const Specification& s, GradientNumbers& values) {
        for (auto& [role, numbers] : values)
            for (double& x : numbers) x *= wrong(s.problem) ? -1 : 1;
    });
    NegatingActor kernel(wrong);
    const auto found =
        gradient_strides_ignored(kernel, {evidence_of(c, negated, kernel.manifest().numerics)});
    return found ? found->says : "";
}

TEST(BackwardStrides, TheTensorsWhoseStridesAreIgnoredAreNamed) {
    EXPECT_EQ(told([](const Problem& p) { return p.layout_v != Layout{}; }),
              "right gradients only where V and dO are contiguous: the strides of one of them are "
              "ignored");
}

TEST(BackwardStrides, TheTensorsWhoseStridesAreTakenForThoseOfOthersAreNamed) {
    EXPECT_EQ(told([](const Problem& p) { return p.layout_v != p.layout_o; }),
              "right gradients only where V and dO are laid out as O, the LSE and dQ: one of the "
              "first has the strides of one of the others, or the other way");
}

TEST(BackwardStrides, OfMoreThanTwoLayoutsNothingMoreIsSaid) {
    EXPECT_EQ(told([](const Problem& p) {
                  return p.layout_v != Layout{} && p.layout_k == Layout{} && p.layout_q == Layout{};
              }),
              "right gradients of contiguous tensors alone: strides are ignored, or are another's");
}

TEST(BackwardStrides, WhatIsWrongOfContiguousTensorsHasAnotherReason) {
    const auto always = [](const Problem&) { return true; };
    EXPECT_EQ(told(always), "");
    EXPECT_EQ(told(always, "b1 hq2 hkv2 tq3 tk4 d4 f32 grad"), "");
}

}  // namespace
}  // namespace attest::diagnosis
