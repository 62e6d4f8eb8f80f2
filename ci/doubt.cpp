#include "ci/doubt.hpp"

#include <algorithm>

#include "ci/check_screen.hpp"
#include "ci/number.hpp"
#include "ci/screen.hpp"

namespace attest::ci {

namespace {

bool is_doubted(const search::LawReport& law) {
    return law.verdict.decision == law::Decision::holds && law.verdict.doubt.has_value();
}

bool is_suspected(const search::LawReport& law) {
    return law.verdict.doubt->violation_class == law::ViolationClass::suspect;
}

std::int64_t count(const RunReport& report, bool suspected) {
    return std::ranges::count_if(report.laws, [&](const search::LawReport& law) {
        return is_doubted(law) && is_suspected(law) == suspected;
    });
}

std::string laws_text(std::int64_t laws, const char* word) {
    return counted(laws, "law") + (laws == 1 ? " is " : " are ") + word;
}

}  // namespace

std::vector<RunDoubt> doubts_of(const RunReport& report) {
    std::vector<RunDoubt> all;
    for (const search::LawReport& law : report.laws) {
        if (!law.verdict.doubt) continue;
        RunDoubt out{.law = &law, .word = is_suspected(law) ? "suspected" : "violated"};
        out.problem = clean(law.verdict.doubt->problem);
        if (const auto& statistic = law.verdict.statistic; statistic && is_suspected(law))
            out.problem +=
                " (false-positive rate " + value_text(statistic->false_positive_rate) + ")";
        if (law.doubted) {
            out.share =
                "in " + count_text(law.doubted->cases) + " of " + counted(law.cases, "case");
            out.tried = clean(print(law.doubted->first), 4000);
            out.replay = replay_line(report.run.kernel, law.doubted->first, law.law);
        }
        all.push_back(std::move(out));
    }
    return all;
}

std::string let_pass_text(const RunReport& report) {
    const std::int64_t broken = count(report, false);
    if (broken == 0) return {};
    std::string fails;
    for (const std::string& one : report.run.profile.fails)
        fails += (fails.empty() ? "" : " and ") + clean(one);
    return "fails " + (fails.empty() ? "nothing" : fails + " alone") + ": " +
           laws_text(broken, "violated");
}

std::string suspected_text(const RunReport& report) {
    const std::int64_t suspected = count(report, true);
    return suspected == 0 ? "" : laws_text(suspected, "suspected");
}

std::string decision_text(const search::LawReport& law) {
    if (is_doubted(law)) return is_suspected(law) ? "suspected" : "violated, not failed";
    std::string words(name(law.verdict.decision));
    std::ranges::replace(words, '_', ' ');
    return words;
}

std::string_view mark_word(const search::LawReport& law) {
    return is_doubted(law) ? "doubted" : name(law.verdict.decision);
}

std::string_view mark_word(const RunReport& report) {
    const RunDecision decision = report.end->verdict.decision;
    if (decision == RunDecision::holds && !let_pass_text(report).empty()) return "doubted";
    return decision == RunDecision::not_complete ? "not_run" : name(decision);
}

}  // namespace attest::ci
