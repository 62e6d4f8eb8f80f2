#include "ci/run_verdict.hpp"

#include "ci/coverage.hpp"
#include "ci/number.hpp"

namespace attest {

bool was_cut(const Record& law) {
    if (law.at("verdict") != "not_run") return false;
    // What was left out on purpose says so: by the profile, or by --match.
    const std::string kind = law.value("reason_kind", "");
    return kind != name(Reason::Kind::not_in_profile) && kind != name(Reason::Kind::not_selected);
}

RunVerdict verdict_of(const Records& records, bool interrupted) {
    RunVerdict sum;
    for (const Record& law : records.laws) {
        const std::string verdict = law.at("verdict");
        if (verdict == "holds") ++sum.holds;
        if (verdict == "violated") ++sum.violated;
        if (verdict == "inconclusive") ++sum.inconclusive;
        if (verdict == "not_applicable") ++sum.not_applicable;
        if (verdict == "not_run") ++sum.not_run;
        if (was_cut(law)) ++sum.cut;
        sum.cases += law.at("cases").get<std::int64_t>();
        sum.elements += law.at("elements").get<std::int64_t>();
        sum.discarded += law.at("discarded").get<std::int64_t>();
    }
    const CoverageSummary coverage = summarise(records.coverage);
    sum.exit = exit_inconclusive;
    if (sum.violated > 0) {
        sum.verdict = "violated";
        sum.exit = exit_violated;
    } else if (interrupted || sum.cut > 0) {
        sum.verdict = "not_complete";
    } else if (sum.inconclusive > 0) {
        sum.verdict = "inconclusive";
    } else if (sum.holds == 0) {
        sum.verdict = "inconclusive";
        sum.reason = "no law applies to this kernel";
    } else if (records.run.value("whole", false) && coverage.undrawn > coverage.allowed) {
        sum.verdict = "inconclusive";
        sum.reason = counted(coverage.undrawn, "feature pair") +
                     " never drawn, the profile allows " + count_text(coverage.allowed);
    } else {
        sum.verdict = "holds";
        sum.exit = exit_holds;
    }
    return sum;
}

}  // namespace attest
