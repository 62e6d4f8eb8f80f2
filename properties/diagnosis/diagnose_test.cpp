// Every deviation is played by a kernel that computes it, and must be recognised; kernels that are
// right, or wrong in no known way, must not be accused of anything.

#include "properties/diagnosis/diagnose.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "properties/diagnosis/respecify.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::diagnosis {
namespace {

using Answer = std::function<bound::Expected(const Specification&, const bound::Expected& truth)>;

// A kernel made of the reference itself, or of one deviation of it, rounded to the output's format.
class Actor final : public search::Kernel {
public:
    explicit Actor(Answer answer, const Dialect& dialect = {}) : answer_(std::move(answer)) {
        manifest_.name = "actor";
        manifest_.dialect = dialect;
        manifest_.formats = {Precision::f32};
    }
    const kernel::Manifest& manifest() const noexcept override { return manifest_; }
    bool supports(const Problem&, std::string*) override { return true; }
    worker::CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        const Specification s{problem, manifest_.dialect, manifest_.numerics, inputs};
        const bound::Expected truth = oracle::attend(problem, s.dialect, s.numerics, inputs);
        const bound::Expected own = answer_(s, truth);
        worker::CallResult result;
        Tensor& o =
            result.outputs.put(Role::o, Tensor(element_type(problem.format_o), truth.output_shape));
        for (std::int64_t n = 0; n < o.size(); ++n)
            o.set(n, (own.output.empty() ? truth : own).output[static_cast<std::size_t>(n)].value);
        Tensor& lse = result.outputs.put(
            Role::lse,
            Tensor(ElementType::f32, {problem.batch, problem.heads_q, problem.len_q, 1}));
        for (std::int64_t n = 0; n < lse.size(); ++n)
            lse.set(n, (own.lse.empty() ? truth : own).lse[static_cast<std::size_t>(n)].value);
        return result;
    }
    void restart() override {}
    void set_timeout(std::chrono::milliseconds) noexcept override {}

private:
    Answer answer_;
    kernel::Manifest manifest_;
};

std::vector<Case> read_stages() {
    std::vector<Case> list;
    for (const char* line : {
             "b2 hq6 hkv2 tq5 tk7 d6 causal f32",
             "b2 hq4 hkv2 tq7 tk5 d6 causal f32",
             "b1 hq2 hkv2 tq9 tk9 d4 window 3 1 f32",
             "b1 hq2 hkv2 tq9 tk12 d4 causal window 3 -1 f32",
             "b2 hq2 hkv2 tq4 tk6 d4 mask bool f32",
             "b2 hq2 hkv2 tq4 tk6 d4 mask additive f32",
             "b2 hq2 hkv2 tq4 tk6 d4 lens_kv 3,5 f32",
             "b1 hq2 hkv2 tq6 tk6 d4 docs_q 2,4 docs_kv 3,3 f32",
             "b1 hq6 hkv2 tq3 tk3 d13 scale 0.5 f32",
             "b1 hq3 hkv3 tq3 tk5 d13 dv7 f32",
             "b1 hq2 hkv2 tq3 tk5 d4 softcap 0.5 f32",
             "b1 hq2 hkv2 tq3 tk5 d4 softcap 0.5 mask additive f32",
             "b1 hq2 hkv2 tq3 tk5 d4 sink f32",
             "b1 hq4 hkv4 tq5 tk5 d4 alibi f32",
             "b1 hq2 hkv2 tq5 tk5 d8 rope half base 100 dims 4 f32",
             "b1 hq2 hkv2 tq2 tk6 d8 rope half cache 4 f32",
             "b1 hq2 hkv2 tq3 tk7 d4 splits 2 f32",
             "b1 hq1 hkv1 tq3 tk33 d4 f32",
             "b1 hq1 hkv1 tq3 tk300 d4 f32",
             "b1 hq6 hkv6 tq4 tk4 d4 f32",
             "b1 hq1 hkv1 tq2 tk2 d1 f32",
             "b1 hq2 hkv2 tq3 tk5 d4 causal softcap 0.5 f32",
             "b1 hq2 hkv2 tq3 tk7 d4 splits 2 sink f32",
             "b1 hq6 hkv6 tq5 tk5 d4 alibi f32 seed 3",
             "b1 hq2 hkv2 tq9 tk2 d4 f32 values logit1e4",
             "b1 hq2 hkv2 tq3 tk5 d4 f32 values tiny",
         }) {
        try {
            list.push_back(parse_case(line));
        } catch (const BadInput& error) {
            ADD_FAILURE() << line << ": " << error.what();
        }
    }
    return list;
}

const std::vector<Case>& stages() {
    static const std::vector<Case> list = read_stages();
    return list;
}

Answer acting(const Deviation& deviation) {
    return [&deviation](const Specification& s, const bound::Expected& truth) {
        const std::optional<bound::Expected> own = predict(deviation, s, truth);
        return own ? *own : truth;
    };
}

constexpr int stages_a_deviation = 2;  // more would show the same again
constexpr std::size_t groups = 8;      // tests of a few seconds each

// Deviations that are each other on every call: naming either is right.
bool same_thing(const std::string& a, const std::string& b) {
    static const std::set<std::set<std::string>> pairs{
        {"causal_one_less", "causal_unasked"},
        {"causal_bottom_right", "diagonal_bottom_right"},  // where there is no window
        {"causal_bottom_right", "window_top_left"},
        {"uniform_visible", "uniform_all"},         // where nothing is hidden
        {"scale_one", "scale_times_root"},          // where the scale is the default one
        {"window_ignored", "window_left_ignored"},  // where there is no right limit
    };
    // A window hides most added keys, whatever the tile.
    if (a.starts_with("tail_padded_") && b.starts_with("tail_padded_")) return true;
    // A scale that is corrected is made anew where it is the default one.
    const std::string made = "scale_", corrected = "scale_times_";
    if (a.starts_with(made) && b == corrected + a.substr(made.size())) return true;
    if (b.starts_with(made) && a == corrected + b.substr(made.size())) return true;
    return a == b || pairs.count({a, b}) != 0;
}

// Plays one deviation; returns what went wrong.
std::string misread(const Deviation& deviation) {
    Dialect nan, top_left;
    nan.empty_row = top_left.empty_row = EmptyRow::nan;
    top_left.causal = CausalAlignment::top_left;
    int played = 0;
    for (const Dialect& dialect : {Dialect{}, top_left, nan}) {
        Actor actor(acting(deviation), dialect);
        for (const Case& stage : stages()) {
            const std::optional<Evidence> e = evidence_of(actor, stage);
            if (played == stages_a_deviation || !e || !e->wrong()) continue;
            ++played;
            search::Counterexample c;
            c.smallest = c.found.tried = stage;
            const Diagnosis d = diagnose(actor, c, {});
            if (!d.known || !same_thing(d.id, deviation.id) || d.agree != d.of)
                return "taken for " + (d.known ? d.id : "not known") + " on " + print(stage) +
                       ", " + std::to_string(d.agree) + " of " + std::to_string(d.of) + ", next " +
                       d.next_id;
        }
    }
    return played == 0 ? "has no stage" : "";
}

class EveryDeviation : public testing::TestWithParam<std::size_t> {};

TEST_P(EveryDeviation, IsRecognised) {
    for (std::size_t n = GetParam(); n < deviations().size(); n += groups)
        EXPECT_EQ(misread(deviations()[n]), "") << deviations()[n].id;
}

INSTANTIATE_TEST_SUITE_P(Group, EveryDeviation, testing::Range<std::size_t>(0, groups));

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
    EXPECT_GT(d.of, d.agree);
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
                             "b2 hq2 hkv2 tq1 tk6 d4 lens_kv 3,6 cache 5 f32"})  // it lies there
        EXPECT_EQ(diagnosed(leak, line).id, "hidden_leaks") << line;
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
        for (std::size_t n = 0; n < own.output.size(); ++n) {
            const auto row = static_cast<std::int64_t>(n) / value_dim(s.problem);
            const double sum = oracle::row_detail(s.problem, s.dialect, s.inputs, 0,
                                                  row / s.problem.len_q, row % s.problem.len_q)
                                   .sum;
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
    const auto zeros_from_8_keys = [](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        if (s.problem.len_kv >= 8)
            for (bound::ExpectedElement& e : own.output) e.value = 0;
        return own;
    };
    const Diagnosis d = diagnosed(zeros_from_8_keys, "b1 hq1 hkv1 tq1 tk8 d4 f32");
    EXPECT_EQ(d.id, "zeros");
    EXPECT_TRUE(d.refuted);
    EXPECT_TRUE(d.says.ends_with(", in the cases that fail")) << d.says;
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
            if (std::isnan(e.value)) e.value = -std::numeric_limits<double>::infinity();
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

TEST(Diagnose, DeathsAreNotExplained) {
    Actor right([](const Specification&, const bound::Expected& truth) { return truth; });
    search::Counterexample c;
    c.smallest = c.found.tried = stages().front();
    c.outcome = worker::Outcome::crash;
    EXPECT_FALSE(diagnose(right, c, {}).known);
    EXPECT_EQ(diagnose(right, c, {}).tried, 0);
}

TEST(Deviations, HaveDistinctNamesAndSentences) {
    std::set<std::string> ids, says;
    for (const Deviation& d : deviations()) {
        EXPECT_TRUE(ids.insert(d.id).second) << d.id;
        EXPECT_TRUE(says.insert(d.says).second) << d.says;
        EXPECT_NE(static_cast<bool>(d.respecify), static_cast<bool>(d.formula)) << d.id;
    }
    EXPECT_GE(ids.size(), 60u);
}

// The rules written out as a mask must be the problem itself, whatever the problem.
TEST(Respecify, RulesWrittenOutChangeNothing) {
    for (const Case& stage : stages()) {
        for (const CausalAlignment causal :
             {CausalAlignment::bottom_right, CausalAlignment::top_left})
            for (const WindowEnds ends : {WindowEnds::inclusive, WindowEnds::exclusive}) {
                Dialect dialect;
                dialect.causal = causal;
                dialect.window_ends = ends;
                const Specification s{stage.problem, dialect, {}, make_inputs(stage)};
                const Specification w = with_rules(s, rules_of(s));
                const bound::Expected a =
                    oracle::attend(s.problem, s.dialect, s.numerics, s.inputs);
                const bound::Expected b =
                    oracle::attend(w.problem, w.dialect, w.numerics, w.inputs);
                ASSERT_EQ(a.output.size(), b.output.size());
                for (std::size_t n = 0; n < a.output.size(); ++n)
                    EXPECT_LE(std::abs(a.output[n].value - b.output[n].value),
                              a.output[n].error + b.output[n].error)
                        << print(stage);
            }
    }
}

}  // namespace
}  // namespace attest::diagnosis
