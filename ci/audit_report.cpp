// What follows from an audit, and its records.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "ci/audit.hpp"
#include "ci/record_reader.hpp"
#include "ci/record_writer.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

/// An equivalent is no bug that could be caught.
bool is_caught(const BugAudit& bug) {
    return !bug.equivalent && bug.killers() > 0;
}

}  // namespace

const LawOnBug* BugAudit::quickest() const {
    const LawOnBug* best = nullptr;
    for (const LawOnBug& law : laws)
        if (law.seen == seeds && (best == nullptr || law.cases < best->cases)) best = &law;
    return best;
}

std::int64_t BugAudit::killers() const {
    return std::ranges::count(laws, seeds, &LawOnBug::seen);
}

std::string BugAudit::fault() const {
    if (equivalent) {
        const auto sees = [](const LawOnBug& law) { return law.seen > 0; };
        const auto accuser = std::ranges::find_if(laws, sees);
        return accuser == laws.end() ? "" : "accused by " + accuser->law;
    }
    if (killers() == 0) return "seen by no law";
    std::string missed;
    for (const std::string& law : must) {
        const auto at = std::ranges::find(laws, law, &LawOnBug::law);
        if (at != laws.end() && at->seen < seeds) missed += (missed.empty() ? "" : ", ") + law;
    }
    return missed.empty() ? "" : "not seen by " + missed;
}

bool BugAudit::beyond() const {
    const auto tried = [&](const std::string& law) {
        return std::ranges::find(laws, law, &LawOnBug::law) != laws.end();
    };
    return !equivalent && killers() == 0 && std::ranges::none_of(must, tried);
}

std::int64_t AuditReport::planted() const {
    return std::ranges::count(bugs, false, &BugAudit::equivalent);
}

std::int64_t AuditReport::caught() const {
    return std::ranges::count_if(bugs, is_caught);
}

std::int64_t AuditReport::caught_by_peers(std::size_t rule) const {
    return std::ranges::count_if(bugs, [rule](const BugAudit& bug) {
        return !bug.equivalent && bug.peers.rejected[rule] > 0;
    });
}

std::vector<std::string> AuditReport::idle_laws() const {
    std::set<std::string> idle, seeing;
    for (const BugAudit& bug : bugs)
        for (const LawOnBug& law : bug.laws)
            (law.seen == bug.seeds && !bug.equivalent ? seeing : idle).insert(law.law);
    for (const std::string& law : seeing) idle.erase(law);
    return {idle.begin(), idle.end()};
}

bool AuditReport::faultless(bool chosen) const {
    return std::ranges::all_of(
        bugs, [&](const BugAudit& bug) { return bug.fault().empty() || (chosen && bug.beyond()); });
}

template <>
inline constexpr auto last_word<Told> = Told::wrong;

template <typename V>
void time_of(V& v, double& seconds) {
    v("seconds", seconds);
    v.require("seconds", seconds >= 0 && std::isfinite(seconds), "a time, at least 0");
}

template <typename V>
void fields(V& v, LawOnBug& law) {
    v("law", law.law);
    v("seen", law.seen);
    v("cases", law.cases);
    time_of(v, law.seconds);
}

template <typename V>
void fields(V& v, PeerCount& peers) {
    v("cases", peers.cases);
    v.group("rejected", [&](auto& rules) {
        for (std::size_t rule = 0; rule < peer_rule_count; ++rule)
            rules(peer_rules[rule], peers.rejected[rule]);
    });
}

template <typename V>
void fields(V& v, BugAudit& bug) {
    v("bug", bug.bug);
    v("class", bug.bug_class);
    v("kernel", bug.kernel);
    v("equivalent", bug.equivalent);
    v("must", bug.must);
    v("laws", bug.laws);
    v("seeds", bug.seeds);
    v("diagnosis", bug.told);
    v("says", bug.says);
    v("peers", bug.peers);
    time_of(v, bug.seconds);
}

template <typename V>
void fields(V& v, RightAudit& right) {
    v("kernel", right.kernel);
    v("peers", right.peers);
}

template <typename V>
void fields(V& v, AuditReport& report) {
    v("attest", report.attest);
    v("catalogue", report.catalogue);
    v("seed", AsDigits{report.seed});
    v("cases", report.cases);
    v("cases_elsewhere", report.cases_elsewhere);
    v("cases_simulated", report.cases_simulated);
    v("seeds", report.seeds);
    v("whole", report.whole);
}

std::string audit_records(AuditReport report) {
    std::string text = RecordWriter::line_of("audit", report) + "\n";
    for (BugAudit& bug : report.bugs) text += RecordWriter::line_of("bug", bug) + "\n";
    for (RightAudit& right : report.right) text += RecordWriter::line_of("right", right) + "\n";
    return text;
}

AuditReport read_audit(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw BadInput(path + ": cannot be read");
    AuditReport report;
    std::string line;
    for (std::int64_t number = 1; std::getline(file, line); ++number) {
        const JsonSource source{line, path, number};
        const Json value = parse_json(source);
        RecordReader v(source, value);
        const std::string kind = v.kind();
        v.require("record", (number == 1) == (kind == "audit"), "one audit, first");
        if (kind == "audit")
            fields(v, report);
        else if (kind == "bug")
            fields(v, report.bugs.emplace_back());
        else if (kind == "right")
            fields(v, report.right.emplace_back());
        else
            v.require("record", false, "a record of an audit");
        v.finish();
    }
    if (report.attest.empty()) throw BadInput(path + ": has no audit record");
    return report;
}

}  // namespace attest::ci
