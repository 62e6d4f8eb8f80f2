#include "ci/gate.hpp"

#include <algorithm>
#include <cmath>

#include "ci/doubt.hpp"
#include "ci/exit_code.hpp"
#include "ci/finding.hpp"
#include "ci/number.hpp"
#include "ci/record.hpp"
#include "ci/run_words.hpp"
#include "ci/screen.hpp"
#include "properties/search/glob.hpp"

namespace attest::ci {

namespace {

using Kind = GateChange::Kind;

struct GateComparison : GateChanges {
    const RunReport& baseline;
    const RunReport& candidate;
    const GateLimits& limits;
    bool mended = false;           ///< a law that was violated is not any more
    std::int64_t other_draws = 0;  ///< laws whose cases were others, so that errors do not compare
    /// The law whose failure ended the candidate's others early, and how many had fewer cases so.
    const search::LawReport* stopped_by = nullptr;
    std::int64_t stopped = 0;
};

bool judged(const search::LawReport& law) {
    return law.verdict.decision == law::Decision::holds ||
           law.verdict.decision == law::Decision::violated;
}

const diagnosis::CauseReport* cause_of(const RunReport& report, const search::LawReport& law) {
    const auto at = std::ranges::find(report.causes, law.cause, &diagnosis::CauseReport::id);
    return law.cause.empty() || at == report.causes.end() ? nullptr : &*at;
}

// What the kernel computes instead, where it is known: another thing is another defect.
std::string computes(const RunReport& report, const search::LawReport& law) {
    const diagnosis::CounterexampleReport* one = report.counterexample(law.counterexample);
    return one != nullptr && one->diagnosis.known ? clean(one->diagnosis.says) : "";
}

void compare_verdicts(GateComparison& c, const search::LawReport& before,
                      const search::LawReport& after) {
    const bool was = before.verdict.decision == law::Decision::violated,
               is = after.verdict.decision == law::Decision::violated;
    if (is) {
        const diagnosis::CounterexampleReport* one =
            c.candidate.counterexample(after.counterexample);
        const diagnosis::CauseReport* cause = cause_of(c.candidate, after);
        const std::string title = cause == nullptr ? "" : clean(cause->title);
        const std::string then = was ? computes(c.baseline, before) : "",
                          now = computes(c.candidate, after);
        if (!was)
            c.add(Kind::worse, after.law, decision_text(before), "violated",
                  one == nullptr ? "" : clean(one->violation().problem), title);
        else if (!then.empty() && !now.empty() && then != now)
            c.add(Kind::worse, after.law, "violated", "violated otherwise",
                  "it computed " + then + ", now " + now, title);
        else
            c.add(Kind::told, after.law, "violated", "violated", "as before", title);
    } else if (judged(before) && !judged(after)) {
        c.add(Kind::worse, after.law, decision_text(before), decision_text(after),
              clean(after.verdict.reason.text));
    } else if (was) {
        c.add(Kind::better, after.law, "violated", decision_text(after));
    } else if (!judged(before) && judged(after)) {
        c.add(Kind::better, after.law, decision_text(before), decision_text(after));
    } else if (after.verdict.doubt && !before.verdict.doubt) {  // what the profile does not fail
        c.add(Kind::told, after.law, decision_text(before), decision_text(after),
              clean(after.verdict.doubt->problem));
    }
}

// A candidate that did what was planned has judged enough, whatever the baseline's store held. Of
// one that was stopped early by a failure, each law behind it has fewer: that is said once.
void compare_cases(GateComparison& c, const search::LawReport& before,
                   const search::LawReport& after) {
    const RunHeader& run = c.candidate.run;
    const std::int64_t planned = run.cases.value_or(run.profile.cases_per_law);
    if (!(after.cases < before.cases && after.cases < planned)) return;
    if (c.stopped_by != nullptr)
        ++c.stopped;
    else
        c.add(Kind::worse, after.law, counted(before.cases, "case"), counted(after.cases, "case"),
              "fewer cases judged");
}

// Whether both were asked the same: what a kernel takes decides what is drawn for it, and quantiles
// of other cases say nothing.
bool same_draws(const GateComparison& c, const search::LawReport& before,
                const search::LawReport& after) {
    const kernel::Manifest &then = c.baseline.run.kernel.manifest,
                           &now = c.candidate.run.kernel.manifest;
    return then.features == now.features && then.formats == now.formats &&
           then.takes == now.takes && c.baseline.end->narrowed == c.candidate.end->narrowed &&
           before.cases == after.cases && before.discarded == after.discarded &&
           before.refusals == after.refusals;
}

void compare_accuracy(GateComparison& c, const search::LawReport& before,
                      const search::LawReport& after) {
    if (!before.ratios || !after.ratios) return;
    if (c.stopped_by != nullptr && after.cases < before.cases) return;
    if (!same_draws(c, before, after)) {
        ++c.other_draws;
        return;
    }
    for (const auto& [format, now] : after.ratios->formats) {
        const auto at = before.ratios->formats.find(format);
        if (at == before.ratios->formats.end()) continue;
        const search::FormatRatios& then = at->second;
        const struct {
            const char* word;
            double then, now;
        } quantiles[] = {{"median", then.median, now.median}, {"p999", then.p999, now.p999}};
        for (const auto& q : quantiles) {
            const double least = std::max(q.then, GateLimits::floor);
            const std::string side = std::string(q.word) + " " + format + " ";
            // What was wrong erred otherwise: its margins are no promise of what is right.
            if (!(q.now <= c.limits.accuracy * least))
                c.add(c.mended ? Kind::told : Kind::worse, after.law, side + ratio_text(q.then),
                      ratio_text(q.now),
                      "error/bound " + ratio_text(q.now / least) + " times as large" +
                          (c.mended ? ", beside a law that the baseline violated" : ""));
            else if (q.then > c.limits.accuracy * std::max(q.now, GateLimits::floor))
                c.add(Kind::better, after.law, side + ratio_text(q.then), ratio_text(q.now));
        }
    }
}

void compare_time(GateComparison& c) {
    const auto per_case = [](const RunReport& report) {
        double seconds = 0;
        std::int64_t cases = 0;
        for (const search::LawReport& law : report.laws) {
            seconds += law.seconds;
            cases += law.cases;
        }
        return cases == 0 ? 0 : seconds / static_cast<double>(cases);
    };
    const double then = per_case(c.baseline), now = per_case(c.candidate);
    if (then > 0 && now > 0)
        c.add(Kind::told, "time", time_text(then), time_text(now),
              "a case, reference and all: for information");
}

// Each change that fails is held against the waivers; what they did, or did not, is told.
void apply(const std::vector<Waiver>& waivers, const std::string& kernel, const std::string& today,
           GateReport& report) {
    for (const Waiver& waiver : waivers) {
        if (!search::matches(waiver.kernel, kernel)) continue;
        const bool expired = waiver.expires < today;
        std::int64_t covered = 0;
        for (GateChange& change : report.changes) {
            const bool open = change.kind == Kind::worse || change.kind == Kind::waived ||
                              change.baseline == "violated";
            if (!open || change.kind == Kind::better) continue;
            if (!waiver.subject.empty() && !search::matches(waiver.subject, change.subject))
                continue;
            if (!waiver.cause.empty() && !search::matches(waiver.cause, change.cause)) continue;
            ++covered;
            if (expired || change.kind != Kind::worse) continue;
            change.kind = Kind::waived;
            change.waiver =
                clean(waiver.reason) + " (" + clean(waiver.who) + ", until " + waiver.expires + ")";
        }
        if (expired)
            report.notes.push_back("the waiver of " + clean(waiver.name()) + " expired on " +
                                   waiver.expires + " (" + clean(waiver.who) + ")");
        else if (covered == 0)
            report.notes.push_back("nothing needs the waiver of " + clean(waiver.name()) + " (" +
                                   clean(waiver.who) + ")");
    }
}

// Why this run leaves the gate open; empty: it is whole.
std::string cut_text(const char* which, const RunReport& report) {
    if (!was_ended_early(report)) return {};
    const std::int64_t cut = report.end->verdict.cut;
    return "the " + std::string(which) + " is not complete: " +
           (report.end->interrupted ? "it was interrupted" : "it was ended before its time") +
           (cut > 0 ? ", and " + counted(cut, "law") + " did not run" : "");
}

void say_undecided(const GateComparison& c, GateReport& out) {
    for (const std::string& why :
         {cut_text("baseline", c.baseline), cut_text("candidate", c.candidate)})
        if (!why.empty()) out.undecided.push_back(why);
    if (out.compared == 0)
        out.undecided.push_back(
            "no law was judged by both: record both by the same laws (--match)");
    if (c.stopped > 0)
        out.undecided.push_back("the candidate tried fewer cases of " + counted(c.stopped, "law") +
                                " than the baseline: " + fewer_cases_text(c.candidate));
}

}  // namespace

GateReport compare_runs(const RunReport& baseline, const RunReport& candidate,
                        const GateLimits& limits, const std::vector<Waiver>& waivers,
                        const std::string& today) {
    GateComparison c{{}, baseline, candidate, limits};
    c.mended = std::ranges::any_of(candidate.laws, [&](const search::LawReport& after) {
        const search::LawReport* before = baseline.law(after.law);
        return before != nullptr && before->verdict.decision == law::Decision::violated &&
               after.verdict.decision == law::Decision::holds;
    });
    c.stopped_by = stopped_by(candidate);
    GateReport out;
    for (const search::LawReport& after : candidate.laws) {
        const search::LawReport* before = baseline.law(after.law);
        if (before == nullptr) continue;
        compare_verdicts(c, *before, after);
        if (!judged(*before) || !judged(after)) continue;
        ++out.compared;
        if (before->verdict.decision != law::Decision::holds ||
            after.verdict.decision != law::Decision::holds)
            continue;
        compare_cases(c, *before, after);
        compare_accuracy(c, *before, after);
    }
    compare_kernels(baseline, candidate, c);
    compare_time(c);
    if (c.other_draws > 0)
        c.add(Kind::told, "accuracy", "", "not compared",
              "of " + counted(c.other_draws, "law") +
                  ": what the kernels take differs, so that their cases do too");
    say_undecided(c, out);
    out.changes = std::move(c.list);
    apply(waivers, candidate.run.kernel.manifest.name, today, out);
    std::ranges::stable_sort(out.changes, {}, &GateChange::kind);
    if (out.count(Kind::worse) > 0)
        out.exit = exit_violated;
    else if (!out.undecided.empty())
        out.exit = exit_inconclusive;
    return out;
}

std::string other_cases(const RunReport& baseline, const RunReport& candidate) {
    const RunHeader &a = baseline.run, &b = candidate.run;
    const auto differs = [](const char* what, const std::string& one, const std::string& other) {
        return one == other ? "" : std::string(what) + " " + clean(one) + ", not " + clean(other);
    };
    for (const std::string& difference :
         {differs("attest", a.attest_version, b.attest_version),
          differs("the catalogue of laws", a.catalogue, b.catalogue),
          differs("seed", std::to_string(a.seed), std::to_string(b.seed)),
          differs("profile", profile_text(a.profile), profile_text(b.profile)),
          differs("cases a law", std::to_string(a.cases.value_or(0)),
                  std::to_string(b.cases.value_or(0))),
          differs("shard", shard_text(a), shard_text(b))})
        if (!difference.empty()) return difference;
    if (a.seconds || b.seconds) return "how many cases it had hung on the clock (--time)";
    return {};
}

}  // namespace attest::ci
