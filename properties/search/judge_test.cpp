// One case, judged with its tensors laid both ways.

#include "properties/search/judge.hpp"

#include <gtest/gtest.h>

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
    static Plan always() {
        Plan plan{.manifest = full_manifest()};
        plan.fails = [](const Problem&, const TensorSet&) { return true; };
        return plan;
    }

    PlantedKernel kernel_{Plan{.manifest = full_manifest()}}, failing_{always()};
    std::uint64_t parity_, calls_ = 0;
};

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

}  // namespace
}  // namespace attest::search
