#include <algorithm>

#include "ci/certificate.hpp"
#include "ci/ci_formats.hpp"
#include "ci/escape.hpp"
#include "ci/record_writer.hpp"
#include "ci/screen.hpp"

namespace attest::ci {

namespace {

Record message_of(const std::string& text) {
    return {{"text", clean(text, 2000)}};
}

Record rules_of(const RunReport& report) {
    Record rules = Record::array();
    for (const search::LawReport& law : report.laws) {
        Record rule{{"id", law.law},
                    {"shortDescription", message_of(law.statement)},
                    {"fullDescription", message_of(full_statement(law))},
                    {"defaultConfiguration", {{"level", "error"}}},
                    {"properties", {{"tags", {law.family()}}}}};
        if (const law::Property* property = law::find_property(law.law))
            rule["help"] = message_of(property->why);
        rules.push_back(std::move(rule));
    }
    return rules;
}

Record at(const std::string& file, std::optional<std::int64_t> line) {
    Record place{{"artifactLocation", {{"uri", uri_of(file)}}}};
    if (line) place["region"] = {{"startLine", *line}};
    return {{"physicalLocation", std::move(place)}};
}

Record logical(const RunReport& report) {
    return {{{"fullyQualifiedName", clean(report.run.kernel.manifest.name)}, {"kind", "module"}}};
}

// The kernel's source; else its library; else its name.
Record location_of(const RunReport& report, const RunFinding& f) {
    const KernelReport& kernel = report.run.kernel;
    Record place = Record::object();
    if (!f.places.empty())
        place = at(f.places.front().file, f.places.front().line);
    else if (!kernel.file.empty())
        place = at(clean(kernel.typed), std::nullopt);
    place["logicalLocations"] = logical(report);
    return place;
}

std::string sentences(const RunFinding& f) {
    std::string text = f.problem + ".";
    if (!f.computes.empty()) text += " It computes: " + f.computes + ".";
    if (!f.declares.empty()) text += " It declares: " + f.declares + ".";
    if (!f.held_in.empty()) text += " Held in: " + f.held_in + ".";
    if (!f.fails.empty()) text += " It fails: " + f.when() + ".";
    return text + " Smallest case: " + f.smallest + ". Replay: " + f.replay;
}

// Of a gate. All results of a run say whether they are suppressed, or none does (3.27.23).
Record suppressions(const GateReport& gate, const RunFinding& f) {
    Record list = Record::array();
    if (const std::string waiver = gate.waiver_of(f.laws); !waiver.empty())
        list.push_back({{"kind", "external"}, {"status", "accepted"}, {"justification", waiver}});
    return list;
}

Record result_of(const RunReport& report, const RunFinding& f) {
    const auto rule = std::ranges::find(report.laws, f.laws.front(), &search::LawReport::law);
    Record result{{"ruleId", f.laws.front()},
                  {"level", f.proven ? "error" : "warning"},
                  {"message", message_of(sentences(f))},
                  {"locations", {location_of(report, f)}},
                  {"partialFingerprints", {{"attest/v1", f.fingerprint}}},
                  {"properties",
                   {{"laws", f.laws}, {"smallestCase", f.smallest}, {"confirmed", f.confirmed}}}};
    if (rule != report.laws.end()) result["ruleIndex"] = rule - report.laws.begin();
    for (std::size_t n = 1; n < f.places.size(); ++n) {
        Record related = at(f.places[n].file, f.places[n].line);
        related["message"] = message_of("also here");
        result["relatedLocations"].push_back(std::move(related));
    }
    return result;
}

// What is open, laws that judged too little and a run that was not whole; of a gate, what fails it
// and is no law's finding.
Record notices(const RunReport& report, const std::vector<RunFinding>& findings,
               const GateReport* gate) {
    Record list = Record::array();
    for (const search::LawReport& law : report.laws)
        if (law.verdict.decision == law::Decision::inconclusive)
            list.push_back({{"level", "warning"},
                            {"message", message_of(law.law + ", " + reason_text(law))},
                            {"associatedRule", {{"id", law.law}}}});
    const RunVerdict& v = report.end->verdict;
    if (v.decision == RunDecision::inconclusive || v.decision == RunDecision::not_complete)
        list.push_back({{"level", "error"}, {"message", message_of(headline(report))}});
    if (gate == nullptr) return list;
    for (const GateChange* loss : gate->losses(proven_laws(findings)))
        list.push_back({{"level", "error"},
                        {"message", message_of("gate: " + loss->subject + ", " + loss->baseline +
                                               " → " + loss->candidate)}});
    return list;
}

}  // namespace

std::string draw_sarif(const RunReport& report, const std::string& directory,
                       const GateReport* gate) {
    std::string line = "attest";
    for (const std::string& word : report.run.argv) line += " " + shell_word(clean(word));
    const RunVerdict& v = report.end->verdict;
    Record results = Record::array();
    const std::vector<RunFinding> findings = findings_of(report, directory);
    for (const RunFinding& f : findings) {
        results.push_back(result_of(report, f));
        if (gate == nullptr) continue;
        const GateChange* change = gate->about(f.laws);
        const bool before = change != nullptr && change->baseline == "violated";
        results.back()["suppressions"] = suppressions(*gate, f);
        results.back()["baselineState"] = before ? "unchanged" : "new";
    }
    const Record run{{"tool",
                      {{"driver",
                        {{"name", "attest"},
                         {"version", report.run.attest_version},
                         {"rules", rules_of(report)}}}}},
                     {"automationDetails",
                      {{"id", "attest/" + clean(report.run.kernel.manifest.name) + "/" +
                                  clean(report.run.profile.name) + "/"}}},
                     {"invocations",
                      {{{"executionSuccessful",
                         v.decision == RunDecision::holds || v.decision == RunDecision::violated},
                        {"exitCode", v.exit},
                        {"commandLine", line},
                        {"startTimeUtc", report.run.started},
                        {"toolExecutionNotifications", notices(report, findings, gate)}}}},
                     {"columnKind", "utf16CodeUnits"},
                     {"results", std::move(results)}};
    const Record log{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                     {"version", "2.1.0"},
                     {"runs", {run}}};
    return record_text(log, 1) + "\n";
}

}  // namespace attest::ci
