// One case, judged with its tensors laid both ways.

#include "properties/search/judge.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "properties/search/planted_test.hpp"

namespace attest::search {
namespace {

/// Fails in calls of one parity alone, as a read past one end of a tensor shows in every second
/// call. Remembers how its cases began.
class EverySecond final : public Kernel {
public:
    explicit EverySecond(std::uint64_t parity) : parity_(parity) {}

    const kernel::Manifest& manifest() const noexcept override { return kernel_.manifest(); }
    bool supports(const Problem& p, std::string* r) override { return kernel_.supports(p, r); }
    worker::CallResult forward(const Problem& p, const TensorSet& inputs) override {
        return calls_++ % 2 == parity_ ? failing_.forward(p, inputs) : kernel_.forward(p, inputs);
    }
    void begin_case(std::uint64_t first) noexcept override {
        calls_ = first;
        begun.push_back(first);
    }
    void restart() override {}
    void set_timeout(std::chrono::milliseconds) noexcept override {}

    std::vector<std::uint64_t> begun;

private:
    static KernelPlan always() {
        KernelPlan plan{.manifest = full_manifest()};
        plan.fails = [](const Problem&, const TensorSet&) { return true; };
        return plan;
    }

    PlantedKernel kernel_{KernelPlan{.manifest = full_manifest()}}, failing_{always()};
    std::uint64_t parity_, calls_ = 0;
};

/// Leaves the log-sum-exp out of what it returns.
class OnlyO final : public Kernel {
public:
    explicit OnlyO(KernelPlan plan) : kernel_(std::move(plan)) {}
    const kernel::Manifest& manifest() const noexcept override { return kernel_.manifest(); }
    bool supports(const Problem& p, std::string* r) override { return kernel_.supports(p, r); }
    worker::CallResult forward(const Problem& p, const TensorSet& inputs) override {
        worker::CallResult result = kernel_.forward(p, inputs);
        TensorSet only;
        only.put(Role::o, result.outputs[Role::o]);
        result.outputs = std::move(only);
        return result;
    }
    void begin_case(std::uint64_t) noexcept override {}
    void restart() override {}
    void set_timeout(std::chrono::milliseconds) noexcept override {}

private:
    PlantedKernel kernel_;
};

TEST(Judge, what_is_declared_is_returned) {
    KernelPlan plan{.manifest = full_manifest()};
    for (const bool declared : {true, false}) {
        if (!declared) plan.manifest.features = {};
        OnlyO kernel(plan);
        const Judged judged = judge_case(kernel, zero_law("judge.lse"), Case{}, 0);
        EXPECT_EQ(failure_kind(judged.record).has_value(), declared);
        if (declared) {
            EXPECT_EQ(judged.record.verdict.violation->problem,
                      "an element of lse was never written");
            EXPECT_TRUE(std::isnan(judged.record.verdict.violation->expected)) << "not a 0";
        }
    }
    OnlyO kernel({.manifest = full_manifest()});
    Case not_asked;
    not_asked.problem.want_lse = false;
    EXPECT_FALSE(failure_kind(judge_case(kernel, zero_law("judge.lse"), not_asked, 0).record));
}

TEST(Judge, what_one_placement_hides_the_other_shows) {
    const law::Property law = zero_law("judge.both");
    for (const std::uint64_t parity : {0, 1})
        for (const std::int64_t number : {6, 7}) {
            EverySecond kernel(parity);
            const Judged judged = judge_both_ways(kernel, law, Case{}, number, std::nullopt);
            EXPECT_TRUE(failure_kind(judged.record)) << parity << " of case " << number;
            const auto own = static_cast<std::uint64_t>(number % 2);
            const bool at_once = own == parity;
            EXPECT_EQ(kernel.begun, at_once ? std::vector{own} : (std::vector{own, 1 - own}));
        }
}

TEST(Judge, what_fails_in_neither_placement_is_tried_in_both) {
    EverySecond kernel(2);
    const Judged judged = judge_both_ways(kernel, zero_law("judge.both"), Case{}, 0, std::nullopt);
    EXPECT_FALSE(failure_kind(judged.record));
    EXPECT_EQ(kernel.begun, (std::vector<std::uint64_t>{0, 1}));
}

/// Skips what the kernel shows no number of: no law may.
law::Judgement looks_away(const law::Trial& trial) {
    const Tensor& o = trial.observed()[Role::o];
    std::int64_t read = 0;
    for (std::int64_t i = 0; i < o.size(); ++i) read += std::isfinite(o.get(i)) ? 1 : 0;
    return law::holds(read);
}

TEST(Judge, WhatTheTruthShowsAndTheKernelDoesNotIsAViolation) {
    law::Property law = zero_law("judge.looks_away");
    law.check = law::always<looks_away>;
    KernelPlan nan{.manifest = full_manifest(), .defect = PlantedDefect::nan};
    nan.fails = [](const Problem& p, const TensorSet&) { return p.len_q > 0; };
    PlantedKernel kernel(nan);
    EXPECT_EQ(judge_case(kernel, law, Case{}, 0).record.verdict.decision, law::Decision::violated);
    Case no_query;
    no_query.problem.len_q = 0;
    EXPECT_TRUE(judge_case(kernel, law, no_query, 0).vacuous);
}

}  // namespace
}  // namespace attest::search
