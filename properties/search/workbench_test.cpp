// A failure that another law has met already: its smallest case is tried first, in a fresh process.

#include "properties/search/workbench.hpp"

#include <gtest/gtest.h>

#include "properties/search/campaign_test.hpp"

namespace attest::search {
namespace {

Case with_keys(std::int64_t keys) {
    Case c;
    c.problem.len_kv = keys;
    return c;
}

/// Crashes past forty keys, and in a process that is not fresh also where the known case is tried.
class Worn final : public Kernel {
public:
    const kernel::Manifest& manifest() const noexcept override { return sound_.manifest(); }
    bool supports(const Problem& p, std::string* r) override { return sound_.supports(p, r); }
    worker::CallResult forward(const Problem& p, const TensorSet& inputs) override {
        return past_forty(p) || worn ? broken_.forward(p, inputs) : sound_.forward(p, inputs);
    }
    void restart() override { worn = false; }
    void set_timeout(std::chrono::milliseconds) noexcept override {}

    bool worn = false;

private:
    PlantedKernel sound_{KernelPlan{.manifest = full_manifest()}};
    PlantedKernel broken_{plan_with(PlantedDefect::crash, [](const Problem&) { return true; })};
};

class KnownCase : public ::testing::Test {
protected:
    /// Shrinks a crash at 90 keys, with `known` as the smallest case of an earlier law.
    Counterexample shrink(const Case& known) {
        ShrinkTask task;
        task.found = judge_case(kernel_, law_, with_keys(90), 0).record;
        task.likely = known;
        task.evaluations = 2000;
        task.seconds = 600;
        EXPECT_EQ(task.found.outcome, worker::Outcome::crash);
        kernel_.worn = true;
        return *bench_.shrink(kernel_, law_, task, {});
    }

    Worn kernel_;
    const law::Property law_ = zero_law("known.case");
    const CampaignOptions options_ = few_cases();
    const Capability capability_ = declared_capability(kernel_.manifest());
    TimeLimit limit_{std::chrono::milliseconds(10'000)};
    Workbench bench_{options_, capability_, limit_};
};

TEST_F(KnownCase, stands_where_a_fresh_process_fails_alike) {
    const Counterexample c = shrink(with_keys(50));
    EXPECT_EQ(c.smallest, with_keys(50));
    EXPECT_EQ(c.steps.back().pass, "known");
    EXPECT_EQ(c.found.tried, with_keys(90));
    EXPECT_EQ(c.confirmed.how, Confirmation::alone);
    EXPECT_FALSE(kernel_.worn);
}

TEST_F(KnownCase, does_not_stand_where_only_a_used_process_fails) {
    const Counterexample c = shrink(with_keys(30));
    EXPECT_EQ(c.smallest.problem.len_kv, 41);  // shrunk from what was found
    EXPECT_EQ(c.confirmed.how, Confirmation::alone);
}

TEST_F(KnownCase, does_not_stand_where_the_kernel_fails_otherwise) {
    class Both final : public Kernel {
    public:
        const kernel::Manifest& manifest() const noexcept override { return wrong_.manifest(); }
        bool supports(const Problem& p, std::string* r) override { return wrong_.supports(p, r); }
        worker::CallResult forward(const Problem& p, const TensorSet& inputs) override {
            return p.len_kv > 60 ? crash_.forward(p, inputs) : wrong_.forward(p, inputs);
        }
        void restart() override {}
        void set_timeout(std::chrono::milliseconds) noexcept override {}

    private:
        PlantedKernel wrong_{plan_with(PlantedDefect::wrong, past_forty)};
        PlantedKernel crash_{plan_with(PlantedDefect::crash, past_forty)};
    } kernel;
    ShrinkTask task;
    task.found = judge_case(kernel, law_, with_keys(90), 0).record;
    task.likely = with_keys(50);  // a wrong answer there, no crash
    task.evaluations = 2000;
    task.seconds = 600;
    const Counterexample c = *bench_.shrink(kernel, law_, task, {});
    EXPECT_EQ(c.outcome, worker::Outcome::crash);
    EXPECT_EQ(c.smallest.problem.len_kv, 61);
}

}  // namespace
}  // namespace attest::search
