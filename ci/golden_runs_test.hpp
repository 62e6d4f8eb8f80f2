#pragma once
// Runs that were recorded, and what would have become of them had they ended otherwise.

#include <string>

#include "ci/golden.hpp"
#include "ci/record.hpp"

namespace attest::ci::golden_runs {

inline RunReport golden_report(const std::string& name) {
    return read_records(golden_directory() + "/" + name + ".jsonl");
}

/// As at the end of a run that found this.
inline RunReport ended(RunReport report, bool interrupted = false) {
    report.end->interrupted = interrupted;
    report.end->verdict = verdict_of(report, interrupted);
    return report;
}

// The run of check_pass, interrupted after the ninth family.
inline RunReport interrupted() {
    RunReport report = golden_report("check_pass");
    bool cut = false;
    for (search::LawReport& law : report.laws) {
        cut = cut || law.family() == "invariance";
        if (!cut || law.verdict.decision != law::Decision::holds) continue;
        law.verdict = law::not_run(law::Reason(law::Reason::Kind::interrupted));
        law.cases = 0;
    }
    return ended(report, true);
}

inline RunReport inconclusive_run() {
    RunReport report = golden_report("check_pass");
    for (search::LawReport& law : report.laws)
        if (law.family() == "reference" && law.verdict.decision == law::Decision::holds) {
            law.verdict.decision = law::Decision::inconclusive;
            law.verdict.reason = "every one of 306 draws was refused: \"head dim 64 only\"";
        }
    return ended(report);
}

}  // namespace attest::ci::golden_runs
