#include "ci/gate.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ci/exit_code.hpp"
#include "ci/golden.hpp"
#include "ci/record.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {
namespace {

using Kind = GateChange::Kind;

RunReport recorded(const std::string& name) {
    return read_records(golden_directory() + "/" + name + ".jsonl");
}

GateReport compare(const RunReport& baseline, const RunReport& candidate,
                   const std::vector<Waiver>& waivers = {}) {
    return compare_runs(baseline, candidate, {}, waivers, "2026-06-01");
}

std::vector<std::string> worse(const GateReport& gate) {
    std::vector<std::string> all;
    for (const GateChange& change : gate.changes)
        if (change.kind == Kind::worse) all.push_back(change.subject);
    return all;
}

search::LawReport& law_of(RunReport& report, const std::string& id) {
    for (search::LawReport& law : report.laws)
        if (law.law == id) return law;
    throw InternalError("the law is there");
}

TEST(Gate, TheSameRunIsNotWorse) {
    for (const char* name : {"check_pass", "check_fail"}) {
        const GateReport gate = compare(recorded(name), recorded(name));
        EXPECT_EQ(worse(gate), std::vector<std::string>()) << name;
        EXPECT_EQ(gate.exit, exit_holds);
        EXPECT_GT(gate.compared, 50);
    }
}

TEST(Gate, WhatHeldAndIsViolatedFails) {
    const GateReport gate = compare(recorded("check_pass"), recorded("check_fail"));
    EXPECT_EQ(gate.exit, exit_violated);
    std::int64_t violated = 0;
    for (const GateChange& change : gate.changes)
        violated += change.kind == Kind::worse && change.candidate == "violated";
    EXPECT_EQ(violated, 13);
    EXPECT_EQ(compare(recorded("check_fail"), recorded("check_pass")).count(Kind::better), 14);
}

// Each thing that can be lost, lost alone.
TEST(Gate, EveryLossIsSeen) {
    RunReport whole = recorded("check_pass");
    search::CaseReport kept;
    kept.record.tried.problem.dim_qk = 64;
    whole.add(kept);
    const std::string law = "reference.output";
    const auto lost = [&](auto change) {
        RunReport candidate = whole;
        change(candidate);
        return worse(compare(whole, candidate));
    };
    const auto one = [](const char* subject) { return std::vector<std::string>{subject}; };
    EXPECT_EQ(
        lost([&](RunReport& r) { law_of(r, law).verdict.decision = law::Decision::inconclusive; }),
        one("reference.output"));
    EXPECT_EQ(lost([&](RunReport& r) { law_of(r, law).cases = 7; }), one("reference.output"));
    EXPECT_EQ(lost([&](RunReport& r) {
                  for (auto& [format, ratios] : law_of(r, law).ratios->formats)
                      if (format == "f16") ratios.p999 = 1.6 * std::max(ratios.p999, 0.01);
              }).size(),
              law_of(whole, law).ratios->formats.count("f16"));
    EXPECT_EQ(lost([](RunReport& r) { r.run.kernel.manifest.numerics.deterministic = false; }),
              one("claims.deterministic"));
    EXPECT_EQ(lost([](RunReport& r) { r.run.kernel.manifest.features = {}; }).front().substr(0, 8),
              "feature.");
    EXPECT_EQ(lost([](RunReport& r) { r.run.kernel.manifest.formats.pop_back(); }).size(), 1u);
    EXPECT_EQ(lost([](RunReport& r) { r.end->narrowed.push_back("queries: multiples of 16"); }),
              one("taken"));
    EXPECT_EQ(lost([](RunReport& r) {
                  r.run.kernel.manifest.takes[kernel::Quantity::dim_qk] = {.only = {5}};
              }),
              one("takes"));
    EXPECT_EQ(lost([](RunReport& r) {
                  r.run.kernel.manifest.takes[kernel::Quantity::len_kv] = {.most = 1 << 30};
              }),
              std::vector<std::string>());  // all that was tried is taken still
    EXPECT_EQ(lost([](RunReport& r) { r.laws.front().refused += 5; }), one("refused"));
    EXPECT_EQ(lost([](RunReport& r) {
                  for (search::LawReport& l : r.laws) l.largest[search::SizeAxis::len_kv] /= 2;
              }),
              one("size.len_kv"));
    EXPECT_EQ(lost([](RunReport& r) {
                  r.coverage.front().impossible.push_back({3, 1});
              }),
              one("pairs.f32"));
    EXPECT_EQ(lost([](RunReport& r) { r.laws.front().seconds *= 100; }),
              std::vector<std::string>());  // information alone
}

TEST(Gate, AnErrorFarBelowItsBoundIsNotHeldAgainstAnother) {
    RunReport before = recorded("check_pass"), after = before;
    law_of(before, "reference.output").ratios->formats["f16"] = {9, 0, 1e-6, 1e-6};
    law_of(after, "reference.output").ratios->formats["f16"] = {9, 0.004, 0.009, 0.009};
    EXPECT_EQ(worse(compare(before, after)), std::vector<std::string>());
    law_of(after, "reference.output").ratios->formats["f16"].p999 = 0.016;
    EXPECT_EQ(worse(compare(before, after)).size(), 1u);
    // Of a kernel that another law proved wrong: what mends it is not held to its margins.
    law_of(before, "masking.causal").verdict.decision = law::Decision::violated;
    EXPECT_EQ(worse(compare(before, after)), std::vector<std::string>());
    law_of(after, "masking.causal").verdict.decision = law::Decision::violated;
    EXPECT_EQ(worse(compare(before, after)).size(), 1u);
}

TEST(Gate, ARunThatWasCutDecidesNothing) {
    RunReport cut = recorded("check_pass");
    cut.end->interrupted = true;
    EXPECT_EQ(compare(recorded("check_pass"), cut).exit, exit_inconclusive);
    EXPECT_EQ(compare(recorded("check_pass"), cut).undecided,
              std::vector<std::string>{"the candidate is not complete: it was interrupted"});
    EXPECT_EQ(compare(cut, recorded("check_fail")).exit, exit_violated);
    RunReport none = recorded("check_pass");
    for (search::LawReport& law : none.laws)
        law.verdict = law::not_run(law::Reason(law::Reason::Kind::not_selected));
    const GateReport apart = compare(none, recorded("check_pass"));
    EXPECT_EQ(apart.exit, exit_inconclusive);
    ASSERT_EQ(apart.undecided.size(), 1u);
    EXPECT_EQ(apart.undecided[0],
              "no law was judged by both: record both by the same laws (--match)");
}

// What a failure that both have left untried is said once, and is no loss of the kernel's.
TEST(Gate, WhatAttestStoppedItselfIsOneReasonAndNoLoss) {
    RunReport whole = recorded("check_fail");
    whole.run.cases.reset();
    whole.run.seconds.reset();
    RunReport stopped = whole;
    for (search::LawReport& law : stopped.laws) {
        law.cases = std::min<std::int64_t>(law.cases, 40);
        law.largest[search::SizeAxis::len_kv] /= 2;
    }
    const GateReport gate = compare(whole, stopped);
    EXPECT_EQ(worse(gate), std::vector<std::string>());
    EXPECT_EQ(gate.exit, exit_inconclusive);
    ASSERT_EQ(gate.undecided.size(), 1u);
    EXPECT_NE(gate.undecided[0].find("reference.output, which failed; --cases 120 tries all"),
              std::string::npos)
        << gate.undecided[0];
    stopped.run.cases = 120;  // then it was not attest that stopped
    EXPECT_GT(worse(compare(whole, stopped)).size(), 40u);
}

TEST(Gate, ANewDoubtIsToldAndFailsNothing) {
    const RunReport before = recorded("check_pass");
    RunReport after = before;
    law::Violation& doubt = law_of(after, "reference.output").verdict.doubt.emplace();
    doubt.violation_class = law::ViolationClass::suspect;
    doubt.problem = "improbable";
    const GateReport gate = compare(before, after);
    EXPECT_EQ(gate.exit, exit_holds);
    const GateChange* change = gate.about({"reference.output"});
    ASSERT_NE(change, nullptr);
    EXPECT_EQ(change->kind, Kind::told);
    EXPECT_EQ(change->candidate + ": " + change->says, "suspected: improbable");
    EXPECT_EQ(compare(after, after).about({"reference.output"}), nullptr);
}

TEST(Gate, AWaiverIsShownAndExpires) {
    const Waiver one{"*", "", "cpu_mine", "known", "me", "2026-06-01"};
    const RunReport before = recorded("check_pass"), after = recorded("check_fail");
    const GateReport all = compare(before, after, {one});
    EXPECT_EQ(all.exit, exit_holds);
    EXPECT_GE(all.count(Kind::waived), 13);
    EXPECT_NE(all.changes.front().waiver.find("known (me, until 2026-06-01)"), std::string::npos);
    Waiver old = one;
    old.expires = "2026-05-31";
    EXPECT_EQ(compare(before, after, {old}).exit, exit_violated);
    EXPECT_EQ(compare(before, after, {old}).notes.size(), 1u);
    Waiver other = one;
    other.kernel = "another";
    EXPECT_EQ(compare(before, after, {other}).exit, exit_violated);
    EXPECT_EQ(compare(before, before, {one}).notes.size(), 1u);  // nothing needs it
    Waiver cause{"", "no such cause", "*", "known", "me", "2026-12-31"};
    EXPECT_EQ(compare(before, after, {cause}).exit, exit_violated);
    cause.cause = "*";
    EXPECT_GE(compare(before, after, {cause}).count(Kind::waived), 13);
}

TEST(Gate, RunsOfOtherCasesAreNotCompared) {
    const RunReport one = recorded("check_pass");
    const auto other = [&](auto change) {
        RunReport two = one;
        two.run.seconds.reset();
        change(two.run);
        RunReport same = one;
        same.run.seconds.reset();
        return other_cases(same, two);
    };
    EXPECT_EQ(other([](RunHeader&) {}), "");
    EXPECT_NE(other([](RunHeader& run) { run.seed += 1; }), "");
    EXPECT_NE(other([](RunHeader& run) { run.profile.scores_max += 1; }), "");
    EXPECT_NE(other([](RunHeader& run) { run.catalogue += "0"; }), "");
    EXPECT_NE(other([](RunHeader& run) { run.attest_version += "0"; }), "");
    EXPECT_NE(other([](RunHeader& run) { run.cases = 3; }), "");
    EXPECT_NE(other([](RunHeader& run) { run.shard_count = 2; }), "");
    EXPECT_NE(other([](RunHeader& run) { run.seconds = 3; }), "");
}

std::string waiver_complaint(const std::string& text) {
    try {
        parse_waivers(text, "w.json");
    } catch (const BadInput& error) {
        return error.what();
    }
    return "";
}

std::string waivers(const std::string& inside) {
    return "{\"waivers\": [{" + inside + "}]}";
}

TEST(Waivers, AreStrict) {
    const std::string rest =
        "\"kernel\": \"k\", \"reason\": \"r\", \"who\": \"w\", \"expires\": \"2028-02-29\"";
    EXPECT_EQ(waiver_complaint("{\"waivers\": []}"), "");
    EXPECT_EQ(waiver_complaint(waivers("\"law\": \"a.*\", " + rest)), "");
    EXPECT_EQ(waiver_complaint(waivers("\"cause\": \"a\", " + rest)), "");
    EXPECT_EQ(waiver_complaint(waivers(rest)), "w.json:1:14: a waiver needs \"law\" or \"cause\"");
    EXPECT_NE(waiver_complaint(waivers("\"law\": \"\", " + rest)), "");
    EXPECT_NE(waiver_complaint(waivers("\"law\": 7, " + rest)), "");
    EXPECT_NE(waiver_complaint(waivers("\"law\": \"a\", \"laws\": \"b\", " + rest)), "");
    EXPECT_NE(waiver_complaint(waivers("\"law\": \"a\", \"law\": \"b\", " + rest)), "");
    EXPECT_NE(waiver_complaint("[]"), "");
    EXPECT_NE(waiver_complaint("{}"), "");
    EXPECT_NE(waiver_complaint(""), "");
    for (const char* day : {"2027-02-29", "2026-13-01", "2026-00-10", "2026-1-1", "never",
                            "2026-12-31 ", "+026-12-31"})
        EXPECT_NE(waiver_complaint(
                      waivers("\"law\": \"a\", \"kernel\": \"k\", \"reason\": \"r\", \"who\": "
                              "\"w\", \"expires\": \"" +
                              std::string(day) + "\"")),
                  "")
            << day;
}

// Whatever the bytes are, they are waivers or one complaint.
RC_GTEST_PROP(Waivers, AnyBytesAreReadOrRefused, (std::string noise)) {
    std::string text = waivers(
        "\"law\": \"a\", \"kernel\": \"k\", \"reason\": \"r\", \"who\": \"w\", \"expires\": "
        "\"2026-12-31\"");
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    text.replace(at, *rc::gen::inRange<std::size_t>(0, 5), noise);
    try {
        for (const Waiver& waiver : parse_waivers(text, "w.json")) {
            RC_ASSERT(!waiver.subject.empty() || !waiver.cause.empty());
            RC_ASSERT(waiver.expires.size() == 10u);
        }
    } catch (const BadInput& error) {
        RC_ASSERT(std::string(error.what()).starts_with("w.json:"));
    }
}

}  // namespace
}  // namespace attest::ci
