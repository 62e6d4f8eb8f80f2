// What is explained, and what must not be: kernels that are right, or wrong in no known way.

#include "properties/diagnosis/diagnose.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {
namespace {

TEST(Diagnose, ARightKernelIsNoEvidence) {
    Actor right([](const Specification&, const bound::Expected& truth) { return truth; });
    for (const Case& stage : stages())
        EXPECT_FALSE(evidence_of(right, stage).value().wrong()) << print(stage);
}

TEST(Diagnose, AnUnknownBugStaysUnknown) {
    // Every value a tenth too large: no specification of attention does that.
    Actor odd([](const Specification&, const bound::Expected& truth) {
        bound::Expected own = truth;
        for (bound::ExpectedElement& e : own.output) e.value *= 1.1;
        return own;
    });
    search::Counterexample c;
    c.smallest = c.found.tried = stages().front();
    const Diagnosis d = diagnose(odd, c, {});
    EXPECT_FALSE(d.known) << d.id;
    EXPECT_GT(d.tried, 10);
    EXPECT_GT(d.of, d.agree) << d.next_id;
    EXPECT_GT(d.cases, 0);
}

TEST(Diagnose, ASoftCapOverAlibiIsNamed) {
    Actor late([](const Specification& s, const bound::Expected&) {
        Dialect dialect = s.dialect;
        dialect.softcap = SoftcapPlace::after_bias;
        return oracle::attend(s.problem, dialect, s.numerics, s.inputs);
    });
    search::Counterexample c;
    c.smallest = c.found.tried = parse_case("b1 hq2 hkv2 tq5 tk5 d4 softcap 0.5 alibi f32");
    EXPECT_EQ(diagnose(late, c, {}).id, "softcap_over_alibi");
    c.smallest = c.found.tried =
        parse_case("b1 hq2 hkv2 tq5 tk5 d4 mask additive softcap 0.5 alibi f32");
    EXPECT_EQ(diagnose(late, c, {}).id, "softcap_other_place");
}

TEST(Diagnose, OutputsOfALowerPrecisionAreNamed) {
    Actor low([](const Specification&, const bound::Expected& truth) {
        bound::Expected own = truth;
        for (bound::ExpectedElement& e : own.output) e.value = round_to(e.value, Precision::bf16);
        return own;
    });
    search::Counterexample c;
    c.smallest = c.found.tried = stages().front();
    const Diagnosis d = diagnose(low, c, {});
    EXPECT_TRUE(d.known);
    EXPECT_EQ(d.id, "output_bf16");
}

TEST(Diagnose, AStepThatHasAWordIsPointedTo) {
    Actor low(row_by_row([](const std::vector<double>& below, const std::vector<double>& values) {
        const auto half = [](double x) { return round_to(x, Precision::f16); };
        RowAnswer answer;
        for (std::size_t j = 0; j < below.size(); ++j) {
            answer.sum = half(answer.sum + std::exp(below[j]));
            answer.output = half(answer.output + std::exp(below[j]) * values[j]);
        }
        answer.output /= answer.sum;
        return answer;
    }));
    search::Counterexample c;
    c.smallest = c.found.tried = parse_case("b1 hq2 hkv2 tq4 tk16 d8 f32");
    const Diagnosis d = diagnose(low, c, {});
    EXPECT_TRUE(d.known);
    EXPECT_EQ(d.id, "step_accumulate_f16") << d.next_id << " " << d.cases;
    EXPECT_NE(d.declared.find("declare numerics: "), d.declared.npos) << d.declared;
}

Diagnosis diagnosed(Answer answer, const char* line, const std::string& law = "reference.output") {
    Actor actor(std::move(answer));
    search::Counterexample c;
    c.law = law;
    c.smallest = c.found.tried = parse_case(line);
    return diagnose(actor, c, {});
}

TEST(Diagnose, ZeroTimesWhatIsHiddenIsNamed) {
    const auto leak = [](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        const Tensor& v = s.inputs[Role::v];
        double sum = 0;
        for (std::int64_t n = 0; n < v.size(); ++n) sum += 0 * v.get(n);
        for (bound::ExpectedElement& e : own.output) e.value += sum;
        return own;
    };
    for (const char* line : {"b1 hq2 hkv2 tq4 tk6 d4 causal f32",  // the poison is put there
                             "b2 hq2 hkv2 tq1 tk6 d4 lens_kv 3,6 cache 5 f32"}) {  // it lies there
        const Diagnosis found = diagnosed(leak, line);
        EXPECT_EQ(found.id, "hidden_leaks") << line;
        EXPECT_TRUE(found.declared.ends_with("declare dialect: nonfinite unspecified")) << line;
    }
    EXPECT_FALSE(diagnosed(leak, "b1 hq2 hkv2 tq4 tk6 d4 f32").known);  // nothing is hidden
}

// Numbers that no list of deviations can hold are read off the answers.
TEST(Diagnose, WhatOnlyTheEvidenceCanTellIsFitted) {
    const auto without_keys_from_7 = [](const Specification& s, const bound::Expected&) {
        Rules rules = rules_of(s);
        rules.also_hidden = [](const MaskPlace& p) { return p.key >= 7; };
        const Specification cut = with_rules(s, rules);
        return oracle::attend(cut.problem, cut.dialect, cut.numerics, cut.inputs);
    };
    const auto warmer = [](const Specification& s, const bound::Expected&) {
        const Specification warm = with_scale(s, effective_scale(s.problem) * 0.98);
        return oracle::attend(warm.problem, warm.dialect, warm.numerics, warm.inputs);
    };
    const auto epsilon = [](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        oracle::RowDetails rows(s.problem, s.dialect, s.inputs);
        for (std::size_t n = 0; n < own.output.size(); ++n) {
            const auto row = static_cast<std::int64_t>(n) / value_dim(s.problem);
            const double sum = rows.row(row).sum;
            own.output[n].value *= sum / (sum + 1e-3);
        }
        return own;
    };
    EXPECT_EQ(diagnosed(without_keys_from_7, "b1 hq1 hkv1 tq1 tk8 d4 f32").says,
              "attention without the keys from 7 on");
    EXPECT_EQ(diagnosed(warmer, "b1 hq2 hkv2 tq3 tk4 d4 f32").says,
              "scores 0.98 times as large as asked for");
    EXPECT_EQ(diagnosed(epsilon, "b1 hq2 hkv2 tq3 tk4 d4 f32").says,
              "weights divided by their sum and an epsilon of 0.001");
}

// An answer that is right in some cases is not called wrong everywhere.
TEST(Diagnose, WhatRightCasesRefuteIsSaidOfTheFailingOnes) {
    const auto zeros_where = [](bool (*wrong)(const Specification&)) {
        return [wrong](const Specification& s, const bound::Expected& truth) {
            bound::Expected own = truth;
            if (wrong(s))
                for (bound::ExpectedElement& e : own.output) e.value = 0;
            return own;
        };
    };
    const char* line = "b1 hq1 hkv1 tq1 tk8 d4 f32";
    const Diagnosis d =
        diagnosed(zeros_where([](const Specification& s) { return s.problem.len_kv >= 8; }), line);
    EXPECT_EQ(d.id, "zeros");
    EXPECT_TRUE(d.refuted);
    EXPECT_EQ(d.says, "zeros everywhere, when Tk > 7");
    // Where no relation tells when, nothing is claimed.
    const auto by_data = [](const Specification& s) {
        const Tensor& q = s.inputs[Role::q];
        return q.size() > 0 && std::fmod(std::abs(q.get(0)), 0.25) < 0.125;
    };
    EXPECT_FALSE(diagnosed(zeros_where(by_data), line).known);
}

// A defect of some rows is named with them; where no relation tells which, nothing is.
TEST(Diagnose, WhatHoldsInSomeRowsIsSaidOfThem) {
    const auto one_more_where = [](bool (*wrong)(const Specification&, std::int64_t row)) {
        return [wrong](const Specification& s, const bound::Expected& truth) {
            Rules rules = rules_of(s);
            rules.diagonal = 1;
            const Specification other = with_rules(s, rules);
            const bound::Expected more =
                oracle::attend(other.problem, other.dialect, other.numerics, other.inputs);
            bound::Expected own = truth;
            const auto dim = static_cast<std::size_t>(value_dim(s.problem));
            for (std::size_t row = 0; row < truth.row_empty.size(); ++row) {
                if (!wrong(s, static_cast<std::int64_t>(row))) continue;
                for (std::size_t n = row * dim; n < (row + 1) * dim; ++n)
                    own.output[n] = more.output[n];
                own.lse[row] = more.lse[row];
            }
            return own;
        };
    };
    const char* line = "b1 hq2 hkv2 tq12 tk20 d4 causal f32";
    const Diagnosis d = diagnosed(one_more_where([](const Specification& s, std::int64_t row) {
                                      return row % s.problem.len_q % 4 == 3;
                                  }),
                                  line);
    EXPECT_EQ(d.says, "a causal mask that shows one key too many, in the last query of each 4");
    EXPECT_EQ(d.agree, d.of);
    EXPECT_FALSE(d.refuted);
    EXPECT_FALSE(diagnosed(one_more_where([](const Specification&, std::int64_t row) {
                               return row * row % 7 == 2;
                           }),
                           line)
                     .known);
}

TEST(Diagnose, TwoElementsAreTooFew) {
    const auto zeros = [](const Specification&, const bound::Expected& truth) {
        bound::Expected own = truth;
        for (bound::ExpectedElement& e : own.output) e.value = 0;
        return own;
    };
    const auto evidence = [&](const char* line) {
        Actor actor(zeros);
        AllEvidence all;
        all.add(evidence_of(actor, parse_case(line)));
        return explain_evidence(all).known;
    };
    EXPECT_FALSE(evidence("b1 hq1 hkv1 tq1 tk2 d2 f32"));
    EXPECT_TRUE(evidence("b1 hq1 hkv1 tq1 tk2 d3 f32"));
}

// The output is as if zero keys filled the tile, but the log-sum-exp is right.
TEST(Diagnose, TheLogSumExpRefutes) {
    const auto padded = [](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        if (const auto other = with_zero_tail(s, 16)) {
            own.output =
                oracle::attend(other->problem, other->dialect, other->numerics, other->inputs)
                    .output;
        }
        return own;
    };
    EXPECT_FALSE(diagnosed(padded, "b1 hq1 hkv1 tq3 tk9 d4 f32").known);
}

TEST(Diagnose, NaNThatIsSwallowedIsNoLeak) {
    const auto swallows = [](const Specification&, const bound::Expected& truth) {
        bound::Expected own = truth;
        for (bound::ExpectedElement& e : own.lse)
            if (std::isnan(e.value)) e.value = -infinite;
        return own;
    };
    EXPECT_NE(diagnosed(swallows, "b1 hq2 hkv2 tq4 tk6 d4 causal f32").id, "hidden_leaks");
}

TEST(Diagnose, NaNBesideRightNumbersIsNamed) {
    const auto third_row = [](double value) {
        return [value](const Specification& s, const bound::Expected& truth) {
            bound::Expected own = truth;
            const auto dim = static_cast<std::size_t>(value_dim(s.problem));
            for (std::size_t c = 0; c < dim; ++c) own.output[2 * dim + c].value = value;
            return own;
        };
    };
    const char* line = "b1 hq1 hkv1 tq4 tk5 d3 f32";
    EXPECT_EQ(diagnosed(third_row(std::nan("")), line).id, "not_finite");
    EXPECT_FALSE(diagnosed(third_row(77), line).known);
}

TEST(Diagnose, AnswersThatDependOnEarlierCallsAreNamed) {
    const auto right = [](const Specification&, const bound::Expected& truth) { return truth; };
    const char* line = "b1 hq1 hkv1 tq4 tk5 d3 f32";
    EXPECT_EQ(diagnosed(right, line, "hygiene.stale_state").id, "remembers");
    EXPECT_FALSE(diagnosed(right, line, "equivariance.keys").known);
}

// Threads that race: wrong as the first call of a process too, if not of every one.
class Racing : public Actor {
public:
    Racing()
        : Actor([this](const Specification&, const bound::Expected& truth) {
              bound::Expected own = truth;
              if (calls_++ == 0 || processes_ == 3)
                  for (bound::ExpectedElement& e : own.output) e.value += 1;
              return own;
          }) {}
    void restart() override { ++processes_; }

private:
    int calls_ = 0, processes_ = 0;
};

TEST(Diagnose, AnAnswerThatIsNowAndThenWrongByItselfRemembersNothing) {
    Racing racing;
    search::Counterexample c;
    c.law = "reference.output";
    c.smallest = c.found.tried = parse_case("b1 hq1 hkv1 tq4 tk5 d3 f32");
    EXPECT_NE(diagnose(racing, c, {}).id, "remembers");
}

// Its smaller relatives have no key, no query or no channel.
TEST(Diagnose, TheSmallestCaseOfAllIsLookedAt) {
    const auto right = [](const Specification&, const bound::Expected& truth) { return truth; };
    EXPECT_FALSE(diagnosed(right, "b1 hq1 hkv1 tq1 tk1 d1 f32").known);
    EXPECT_FALSE(diagnosed(right, "b2 hq2 hkv2 tq1 tk1 d1 lens_kv 1,1 cache 0 f32").known);
}

TEST(Diagnose, DeathsAreNotExplained) {
    Actor right([](const Specification&, const bound::Expected& truth) { return truth; });
    search::Counterexample c;
    c.smallest = c.found.tried = stages().front();
    c.outcome = worker::Outcome::crash;
    EXPECT_FALSE(diagnose(right, c, {}).known);
    EXPECT_EQ(diagnose(right, c, {}).tried, 0);
}

}  // namespace
}  // namespace attest::diagnosis
