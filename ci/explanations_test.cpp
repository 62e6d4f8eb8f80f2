// What becomes of a violation that cannot be explained.

#include "ci/explanations.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>

#include "properties/diagnosis/actor_test.hpp"

namespace attest::ci {
namespace {

/// Has an answer to nothing but an error of attest's own.
class Throwing final : public diagnosis::Actor {
public:
    using diagnosis::Actor::Actor;
    bool supports(const Problem&, std::string*) override { throw std::logic_error("planted"); }
};

TEST(Explanations, AnErrorOfOursLosesNoViolation) {
    Throwing kernel(
        [](const diagnosis::Specification&, const bound::Expected& truth) { return truth; });
    search::LawResult law;
    search::Counterexample& c = law.counterexample.emplace();
    c.law = "reference.output";
    c.smallest = c.found.tried = parse_case("b1 hq1 hkv1 tq1 tk2 d1 f32");
    c.verdict.violation.emplace();
    const std::atomic<int> interrupts = 0;
    const auto another = [] { return std::unique_ptr<search::Kernel>(); };
    const std::vector<const search::LawResult*> laws(7, &law);  // of three rounds
    const auto reports = explanations(laws, kernel, another, 1, interrupts);
    ASSERT_EQ(reports.size(), laws.size());
    for (const diagnosis::CounterexampleReport& report : reports) {
        EXPECT_EQ(report.example.law, "reference.output");
        EXPECT_EQ(report.diagnosis.skipped, "attest's own error: planted");
    }
}

}  // namespace
}  // namespace attest::ci
