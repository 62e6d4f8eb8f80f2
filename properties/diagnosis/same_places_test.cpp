// What is one cause with a named defect though it holds other numbers.

#include "properties/diagnosis/same_places.hpp"

#include <gtest/gtest.h>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/backward_actor_test.hpp"
#include "properties/diagnosis/cause.hpp"
#include "reference/problem/case.hpp"
#include "reference/problem/digest.hpp"

namespace attest::diagnosis {
namespace {

constexpr const char* oblong = "b1 hq2 hkv2 tq4 tk6 d4 causal f32";

CounterexampleReport counterexample(const std::string& law, const std::string& line) {
    CounterexampleReport c;
    c.example.law = law;
    c.example.id = sha256_hex(law);
    c.example.smallest = parse_case(line);
    c.example.verdict.violation.emplace().problem = "sentence of " + law;
    c.diagnosis.cases = 1;
    return c;
}

CounterexampleReport top_left_named() {
    CounterexampleReport c = counterexample("masking.causal", oblong);
    const auto known = std::ranges::find(deviations(), "causal_top_left", &Deviation::id);
    c.diagnosis.known = true;
    c.diagnosis.id = known->id;
    c.diagnosis.says = known->says;
    c.diagnosis.deviation = std::make_shared<const Deviation>(*known);
    return c;
}

/// The causes beside that name of a kernel that answers so.
std::vector<CauseReport> causes_beside_top_left(const Answer& answer, const std::string& line) {
    Actor kernel(answer);
    AllEvidence evidence;
    evidence.add(evidence_of(kernel, parse_case(line)));
    EXPECT_EQ(evidence.wrong.size(), 1u);
    CounterexampleReport open = counterexample("reference.output", line);
    open.diagnosis.evidence = std::make_shared<const AllEvidence>(std::move(evidence));
    std::vector<CounterexampleReport> all{top_left_named(), std::move(open)};
    return group_causes(all);
}

bound::Expected top_left_times(const Specification& s, const bound::Expected& truth,
                               double factor) {
    const auto known = std::ranges::find(deviations(), "causal_top_left", &Deviation::id);
    bound::Expected own = predict(*known, s, truth).value_or(truth);
    for (bound::ExpectedElement& e : own.output) e.value *= factor;
    return own;
}

TEST(SamePlaces, OtherNumbersWhereADefectShowsAreThatDefect) {
    const auto causes = causes_beside_top_left(
        [](const auto& s, const auto& truth) { return top_left_times(s, truth, 1.5); }, oblong);
    ASSERT_EQ(causes.size(), 1u);
    EXPECT_EQ(causes[0].laws.size(), 2u);
    EXPECT_EQ(causes[0].other_numbers, std::vector<std::string>{"reference.output"});
    EXPECT_EQ(causes[0].title, "Sentence of masking.causal");
}

// Of as many queries as keys both alignments are one: the defect shows nowhere there. Nor does it
// in the last row, which sees all keys but for the alignment.
TEST(SamePlaces, WhatIsWrongElsewhereStaysApart) {
    const auto larger = [](const Specification&, const bound::Expected& truth) {
        bound::Expected own = truth;
        for (bound::ExpectedElement& e : own.output) e.value *= 1.5;
        return own;
    };
    const auto square = causes_beside_top_left(larger, "b1 hq2 hkv2 tq6 tk6 d4 causal f32");
    ASSERT_EQ(square.size(), 2u);
    EXPECT_TRUE(square[0].other_numbers.empty() && square[1].other_numbers.empty());
    EXPECT_EQ(causes_beside_top_left(larger, "b1 hq2 hkv2 tq6 tk4 d4 f32").size(), 2u);
}

std::vector<CauseReport> causes_beside_no_delta(Role wrong) {
    const BackwardEvidence e = evidence_of(parse_case(lines[0]), [wrong](const Specification& s) {
        GradientNumbers values = reference(s);
        for (double& x : values[wrong]) x = 3 * x + 1;
        return values;
    });
    AllBackwardEvidence evidence;
    evidence.add(e);
    EXPECT_EQ(evidence.wrong.size(), 1u);
    CounterexampleReport named = counterexample("gradients.euler", lines[0]), open = named;
    open.example.law = "gradients.shift";
    named.diagnosis.backward = open.diagnosis.backward = true;
    named.diagnosis.known = true;
    named.diagnosis.id = "delta_omitted";
    open.diagnosis.backward_evidence =
        std::make_shared<const AllBackwardEvidence>(std::move(evidence));
    std::vector<CounterexampleReport> all{std::move(named), std::move(open)};
    return group_causes(all);
}

TEST(SamePlaces, AGradientThatTheDefectLeavesRightIsAnother) {
    EXPECT_EQ(causes_beside_no_delta(Role::d_q).size(), 1u);
    EXPECT_EQ(causes_beside_no_delta(Role::d_v).size(), 2u);
}

}  // namespace
}  // namespace attest::diagnosis
