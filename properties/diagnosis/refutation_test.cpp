// Names that the failing calls alone would bear, and that calls made to refute them take back.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/agreement.hpp"
#include "properties/diagnosis/experiment.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/step_experiment.hpp"

namespace attest::diagnosis {
namespace {

Diagnosis diagnosed_after_probes(Answer answer, const char* line) {
    Actor actor(std::move(answer));
    search::Counterexample c;
    c.law = "reference.output";
    c.smallest = c.found.tried = parse_case(line);
    return diagnose(actor, c, {});
}

AllEvidence evidence_of_calls(Answer answer, const std::vector<const char*>& lines) {
    Actor actor(std::move(answer));
    AllEvidence evidence;
    for (const char* line : lines) evidence.add(evidence_of(actor, parse_case(line)));
    return evidence;
}

const Deviation& subnormals_flushed() {
    return *std::ranges::find(deviations(), "subnormals_flushed", &Deviation::id);
}

/// Subnormal numbers taken for 0 in some calls.
Answer flushing(bool (*in)(const Problem&)) {
    return [in](const Specification& s, const bound::Expected& truth) {
        return in(s.problem) ? predict(subnormals_flushed(), s, truth).value_or(truth) : truth;
    };
}

Answer with_rules_of(void (*change)(const Specification&, Rules&)) {
    return [change](const Specification& s, const bound::Expected&) {
        Rules rules = rules_of(s);
        change(s, rules);
        const Specification other = with_rules(s, rules);
        return oracle::attend(other.problem, other.dialect, other.numerics, other.inputs);
    };
}

Answer zeros_past(std::int64_t keys) {
    return [keys](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        if (s.problem.len_kv > keys)
            for (bound::ExpectedElement& e : own.output) e.value = 0;
        return own;
    };
}

// Calls that the law did not choose tell a period from its divisors, and a limit from the next.
TEST(Refutation, APeriodIsToldFromItsDivisors) {
    const auto drops_past_64 = [](const Specification& s, Rules& rules) {
        rules.also_hidden = [n = s.problem.len_kv](const MaskPlace& p) {
            return n > 64 && n % 64 == 1 && p.key == n - 1;
        };
    };
    EXPECT_EQ(
        diagnosed_after_probes(with_rules_of(drops_past_64), "b1 hq1 hkv1 tq1 tk65 d1 f32").says,
        "attention without the last key, when Tk mod 64 = 1");
}

// A smallest case fails with all of its features alone: what is said without them is refuted there.
TEST(Refutation, WhatShorterCallsBearOutIsSaidOfThem) {
    const auto scaled_otherwise = [](const Specification& s, const bound::Expected&) {
        const double scale = effective_scale(s.problem);
        const Specification other = with_scale(s, s.problem.len_kv < 200 ? 2 * scale : -scale);
        return oracle::attend(other.problem, other.dialect, other.numerics, other.inputs);
    };
    const Diagnosis d = diagnosed_after_probes(scaled_otherwise, "b1 hq2 hkv2 tq3 tk6 d4 f32");
    EXPECT_EQ(d.says,
              "scores 2 times as large as asked for, of up to 193 keys; of 384 it computes "
              "something else");
}

// What queries and keys part together is not told of keys, though short calls alone would bear it
// out.
TEST(Refutation, WhatLengthsDoNotPartIsNotSaidOfThem) {
    const auto scaled_otherwise = [](const Specification& s, const bound::Expected&) {
        const double scale = effective_scale(s.problem);
        const bool other_path = s.problem.len_q > 60 && s.problem.len_kv > 60;
        const Specification other = with_scale(s, other_path ? -scale : 2 * scale);
        return oracle::attend(other.problem, other.dialect, other.numerics, other.inputs);
    };
    const Diagnosis d = diagnosed_after_probes(scaled_otherwise, "b1 hq2 hkv2 tq3 tk6 d4 f32");
    EXPECT_EQ(d.says.find("keys; of"), std::string::npos) << d.says;
}

TEST(Refutation, AFeatureThatItTakesIsSaid) {
    const auto windows_hide_later_keys = [](const Specification&, Rules& rules) {
        if (rules.window.left >= 0) rules.window.right = 0;
    };
    const std::string says = diagnosed_after_probes(with_rules_of(windows_hide_later_keys),
                                                    "b1 hq1 hkv1 tq2 tk1 d1 window 0 -1 f32")
                                 .says;
    EXPECT_NE(says.find("window"), std::string::npos) << says;
}

// Nobody looked whether its answer is right by itself.
TEST(Refutation, WhatIsTooLargeIsNotCalledRightByItself) {
    Actor actor(zeros_past(60000));
    search::Counterexample c;
    c.law = "hygiene.stale_state";
    c.smallest = c.found.tried = parse_case("b1 hq2 hkv1 tq64 tk82787 d2 f32");
    const Diagnosis d = diagnose(actor, c, {});
    EXPECT_FALSE(d.known) << d.says;
    EXPECT_TRUE(d.too_large);
}

// Beyond all lengths that are divisible alike: 65537 keys are one more than a multiple of 256, too.
TEST(Refutation, ALimitFarUpIsNoPeriod) {
    const auto drops_past_1000 = [](const Specification& s, Rules& rules) {
        rules.also_hidden = [n = s.problem.len_kv](const MaskPlace& p) {
            return n > 1000 && p.key == n - 1;
        };
    };
    const std::string says =
        diagnosed_after_probes(with_rules_of(drops_past_1000), "b1 hq1 hkv1 tq1 tk1025 d1 f32")
            .says;
    EXPECT_EQ(says.find("multiple"), std::string::npos) << says;
    EXPECT_EQ(says.find("mod"), std::string::npos) << says;
}

// PyTorch's flash on a CPU flushes in bf16, by the machine's own instruction, and not in f32.
TEST(Refutation, WhatOtherFormatsAloneRefuteIsSaidOfOneFormat) {
    const auto in_bf16 = [](const Problem& p) { return p.format_q == Precision::bf16; };
    const AllEvidence evidence = evidence_of_calls(
        flushing(in_bf16),
        {"b1 hq1 hkv1 tq1 tk1 d1 bf16 values tiny", "b1 hq2 hkv2 tq3 tk5 d4 bf16 values tiny",
         "b1 hq1 hkv1 tq4 tk1 d8 bf16 values tiny", "b1 hq2 hkv2 tq3 tk5 d4 f32 values tiny"});
    const auto found = shared_explanation(subnormals_flushed(), evidence);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->explanation.says, "subnormal numbers taken for 0, in bf16");
    EXPECT_EQ(found->explanation.declared,
              "no such arithmetic; by design? declare numerics: flush_subnormals true");
}

// The rows of a wrong call part from those of right ones in whatever the calls do.
TEST(Refutation, CallsThatDifferDoNotTellWhichRowsAreWrong) {
    const auto narrow = [](const Problem& p) { return p.dim_qk < 8; };
    const AllEvidence evidence = evidence_of_calls(
        flushing(narrow),
        {"b1 hq1 hkv1 tq1 tk1 d1 f32 values tiny", "b1 hq1 hkv1 tq3 tk5 d4 f32 values tiny",
         "b1 hq4 hkv4 tq64 tk5 d8 f32 values tiny", "b1 hq4 hkv4 tq64 tk5 d9 f32 values tiny"});
    const auto unasked = [](const std::string&) { return false; };
    const std::string says = explain_evidence(evidence, unasked).says;
    EXPECT_EQ(says.find("quer"), std::string::npos) << says;
}

// One format alone would bear out that format as well as the queries'.
TEST(Refutation, OutputsOfTheQueriesPrecisionAreTheirs) {
    const auto own_precision = [](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        for (bound::ExpectedElement& e : own.output)
            e.value = round_to(e.value, s.problem.format_q);
        return own;
    };
    std::vector<const char*> lines{"b1 hq2 hkv2 tq3 tk5 d4 f16 out f32",
                                   "b1 hq2 hkv2 tq5 tk9 d4 f16 out f32"};
    EXPECT_EQ(explain_evidence(evidence_of_calls(own_precision, lines)).id, "output_f16");
    lines.push_back("b1 hq2 hkv2 tq3 tk5 d4 bf16 out f32");
    EXPECT_EQ(explain_evidence(evidence_of_calls(own_precision, lines)).id, "output_own");
}

// Bounds of half sums are wide. What they are named for has to show in a sum itself.
TEST(Refutation, AStepIsRefutedBeforeItIsNamed) {
    const auto rounds_outputs = [](Precision format) {
        return [format](const Specification&, const bound::Expected& truth) {
            bound::Expected own = truth;
            for (bound::ExpectedElement& e : own.output)
                e.value = round_to(e.value, format) + 0x1p-13 * e.value;
            return own;
        };
    };
    const Answer coarse_exp =
        weighing([](double x) { return std::exp(x) * (1 + 3e-4 * std::sin(5 * x)); });
    const char* line = "b1 hq2 hkv2 tq4 tk16 d8 f32";
    EXPECT_NE(diagnosed_after_probes(rounds_outputs(Precision::bf16), line).id,
              "step_accumulate_f16");
    EXPECT_EQ(diagnosed_after_probes(coarse_exp, line).says,
              "errors of the size of an exp off by 1024 ulp");
}

// A rounding to bfloat16 is none to f16, though that lies within the bound of one.
TEST(Refutation, SumsInBfloat16AreNotTakenForSumsInF16) {
    const auto sums_in = [](Precision format) {
        return row_by_row([format](const std::vector<double>& below,
                                   const std::vector<double>& values) {
            RowAnswer answer;
            for (std::size_t j = 0; j < below.size(); ++j) {
                answer.sum += std::exp(below[j]);
                answer.output = round_to(answer.output + std::exp(below[j]) * values[j], format);
            }
            answer.output /= answer.sum;
            return answer;
        });
    };
    // Of values in f16 a single one is right, and the sum of weights is nowhere rounded.
    for (const char* line : {"b1 hq1 hkv1 tq2 tk4 d4 f32", "b1 hq1 hkv1 tq2 tk4 d4 f32 kv f16"}) {
        EXPECT_EQ(diagnosed_after_probes(sums_in(Precision::f16), line).id, "step_accumulate_f16");
        EXPECT_NE(diagnosed_after_probes(sums_in(Precision::bf16), line).id, "step_accumulate_f16");
    }
}

// Sums of weights in f16 lie within the bound of a coarse exp.
TEST(Refutation, HalfSumsOfWeightsAreNoCoarseExp) {
    const Answer half_sums =
        row_by_row([](const std::vector<double>& below, const std::vector<double>& values) {
            RowAnswer answer;
            for (std::size_t j = 0; j < below.size(); ++j) {
                answer.sum = round_to(answer.sum + std::exp(below[j]), Precision::f16);
                answer.output += std::exp(below[j]) * values[j];
            }
            answer.output /= answer.sum;
            return answer;
        });
    Actor actor(half_sums);
    const Case line = parse_case("b1 hq2 hkv2 tq4 tk16 d8 f32");
    EXPECT_TRUE(step_refuted(actor, line, "step_exp_16384"));
    EXPECT_FALSE(step_refuted(actor, line, "step_accumulate_f16"));
}

// "accumulate f64" says so of scores too, where nothing is said of them.
TEST(Refutation, ScoresInF32BesideSumsInF64AreNotRefuted) {
    Actor single([](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        const auto rows = oracle::row_details(s.problem, s.dialect, s.inputs);
        const Problem& p = s.problem;
        const std::int64_t dim = value_dim(p);
        for (std::int64_t n = 0; n < std::ssize(own.output); ++n) {
            const std::int64_t head = n / dim / p.len_q, b = head / p.heads_q;
            const std::int64_t h = head % p.heads_q / group_size(p);
            const oracle::RowDetail& row = rows[static_cast<std::size_t>(n / dim)];
            double sum = 0, output = 0;
            for (std::int64_t j = 0; j < p.len_kv; ++j) {
                const double x = round_to(row.scores[static_cast<std::size_t>(j)], Precision::f32);
                sum += std::exp(x - row.max);
                output += std::exp(x - row.max) * s.inputs[Role::v].at(b, h, j, n % dim);
            }
            own.output[static_cast<std::size_t>(n)].value = output / sum;
            own.lse[static_cast<std::size_t>(n / dim)].value = row.max + std::log(sum);
        }
        return own;
    });
    Numerics numerics;
    numerics.accumulate = NumberFormat::f64;
    numerics.weights = NumberFormat::f32;
    single.declare(numerics);
    search::Counterexample c;
    c.smallest = c.found.tried =
        parse_case("b1 hq1 hkv1 tq4 tk16 d8 f32 values negative_logits seed 1");
    const Diagnosis d = diagnose(single, c, {});
    EXPECT_EQ(d.id, "step_scores_f32") << d.says << " " << d.cases;
}

// What is hidden is seen there, which a value like all others would not show.
TEST(Refutation, AHiddenKeyThatIsSeenIsNoLeak) {
    Actor actor([](const Specification& s, const bound::Expected&) {
        Specification own = s;
        own.problem.mask.causal = false;
        return oracle::attend(own.problem, own.dialect, own.numerics, own.inputs);
    });
    AllEvidence evidence;
    add_poisoned(evidence, actor,
                 parse_case("b1 hq1 hkv1 tq2 tk2 d1 causal f32 q zeros k zeros v ones"));
    ASSERT_FALSE(evidence.wrong.empty());
    EXPECT_FALSE(hidden_leaks(actor, evidence.wrong));
}

// NaN of a formula is predicted for the numbers of a kernel, not for what nobody wrote.
TEST(Refutation, ANaNThatNobodyWroteIsNotPredicted) {
    const auto& own = *std::ranges::find(deviations(), "softcap_overflows", &Deviation::id);
    Actor actor([&own](const Specification& s, const bound::Expected& truth) {
        return predict(own, s, truth).value_or(truth);
    });
    std::optional<Evidence> e =
        evidence_of(actor, parse_case("b1 hq1 hkv1 tq3 tk5 d4 softcap 0.5 f32 values logit1e3"));
    ASSERT_TRUE(e && e->wrong());
    EXPECT_TRUE(count_call(own, *e, JudgedPart::both)->all());
    e->unwritten = true;
    EXPECT_FALSE(count_call(own, *e, JudgedPart::both)->all());
}

}  // namespace
}  // namespace attest::diagnosis
