#include "ci/recounted.hpp"

#include <algorithm>

#include "ci/record.hpp"
#include "properties/search/few_shapes.hpp"
#include "properties/search/glob.hpp"
#include "properties/search/recount.hpp"
#include "reference/problem/digest.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

using ReasonKind = law::Reason::Kind;

bool may_be_left_out(const RunHeader& run, const search::LawReport& law) {
    const ReasonKind kind = law.verdict.reason.kind;
    const bool in_place = !run.profile.has(law.law) ? kind == ReasonKind::not_in_profile
                          : !search::selected(run.match, law.law)
                              ? kind == ReasonKind::not_selected
                              : !law.verdict.reason.on_purpose();
    return in_place && law.cases == 0 && law.verdict.decision != law::Decision::holds;
}

/// What came of each number of one law.
search::Slots slots_of(const RunReport& report, const std::string& law) {
    search::Slots slots;
    for (const search::DrawReport& drawn : report.draws) {
        if (drawn.law != law) continue;
        search::SlotResult slot{
            {}, drawn.discarded, drawn.refused, drawn.refusals, drawn.nothing, drawn.inapplicable};
        if (!slots.emplace(drawn.number, std::move(slot)).second)
            throw BadInput(law + ": draws of number " + std::to_string(drawn.number) +
                           " stand twice");
    }
    for (const search::CaseReport& tried : report.cases) {
        if (tried.law != law) continue;
        search::SlotResult& slot = slots[tried.record.number];
        if (slot.record)
            throw BadInput(law + ": case number " + std::to_string(tried.record.number) +
                           " stands twice");
        if (tried.id != search::short_id(tried.record.tried, law))
            throw BadInput(law + ": the case " + tried.id + " is another than its id says");
        slot.record = tried.record;
    }
    return slots;
}

/// The violation's class is all that a verdict needs of it.
void restore_violations(search::Slots& slots) {
    for (auto& [number, slot] : slots)
        if (slot.record && slot.record->verdict.decision == law::Decision::violated)
            slot.record->verdict.violation.emplace();
}

/// As groups are made at the end of a run: of what was seen again.
void regroup(RunReport& report) {
    const auto proven = [](const diagnosis::CounterexampleReport& c) {
        return search::is_proven(c.example.confirmed.how);
    };
    auto& all = report.counterexamples;
    for (diagnosis::CounterexampleReport& c : all) c.cause.clear();
    std::vector<diagnosis::CounterexampleReport> grouped;
    std::ranges::copy_if(all, std::back_inserter(grouped), proven);
    report.causes = diagnosis::group_causes(grouped);
    for (diagnosis::CounterexampleReport& c : all)
        for (const diagnosis::CounterexampleReport& one : grouped)
            if (c.example.law == one.example.law) c = one;
    for (search::LawReport& law : report.laws) {
        law.cause.clear();
        for (const diagnosis::CounterexampleReport& c : all)
            if (c.example.law == law.law) law.cause = c.cause;
    }
}

}  // namespace

std::string not_countable(const RunReport& report) {
    if (!report.run.recorded)
        return "it has no record of each case (attest certify, --shard and --record cases write "
               "them)";
    if (!report.end) return "it has no end: it was cut, or goes on";
    if (report.end->interrupted || !report.end->ended.empty()) return "it was cut";
    if (report.run.shapes && report.end->shapes_chosen.empty())
        return "which shapes it chose (--shapes) is not recorded";
    if (report.run.seconds) return "how many cases it had hung on the clock (--time)";
    if (report.run.until_first) return "it ended with the first violation (--until-first)";
    return {};
}

RunReport recounted(const RunReport& report) {
    const RunHeader& run = report.run;
    search::Recount recount({search::profile_for(run.profile, run.shapes),
                             run.cases,
                             {run.shard_index, std::max<std::int64_t>(1, run.shard_count), 0},
                             report.end->narrow || run.shapes,
                             run.all_cases,
                             run.kernel.manifest});
    RunReport out = report;
    out.laws.clear();
    search::CampaignResult result;
    result.manifest = run.kernel.manifest;
    for (const law::Property& property : law::catalogue()) {
        const search::LawReport* law = report.law(property.id);
        if (law == nullptr) throw BadInput(property.id + ": the law has no record");
        search::RecordedLaw recorded{slots_of(report, property.id), law->promised, {}};
        restore_violations(recorded.slots);
        for (const diagnosis::CounterexampleReport& c : report.counterexamples)
            if (c.example.law == property.id) recorded.counterexample = c.example;
        if (law->verdict.reason.left_out()) {
            if (!may_be_left_out(run, *law) || !recorded.slots.empty())
                throw BadInput(property.id + ": it was not left out for the reason that it states");
            out.laws.push_back(*law);
            continue;
        }
        result.laws.push_back(recount.law(property, recorded));
        out.laws.push_back(search::law_report(result.laws.back()));
    }
    if (report.laws.size() != law::catalogue().size())
        throw BadInput("a law stands twice, or is not in the catalogue");
    out.coverage = search::recounted_coverage(result, report.coverage);
    regroup(out);
    out.sort();
    out.end->verdict = verdict_of(out, false);
    return out;
}

std::vector<std::string> record_lines(const RunReport& report) {
    std::vector<std::string> lines{record_line(report.run)};
    const auto add = [&](const auto& reports) {
        for (const auto& each : reports) lines.push_back(record_line(each));
    };
    add(report.cases);
    add(report.draws);
    add(report.laws);
    add(report.counterexamples);
    add(report.causes);
    add(report.coverage);
    return lines;
}

std::string sealed_digest(const std::string& path, const std::string& text) {
    const std::size_t last = text.empty() ? text.npos : text.rfind('\n', text.size() - 2);
    const bool ends = last != text.npos && text.back() == '\n';
    const std::string before = text.substr(0, last + 1);
    const std::string seal = "\"sha256\":\"" + sha256_hex(before) + "\"";
    const std::string lines = "\"lines\":" + std::to_string(std::ranges::count(text, '\n')) + ",";
    if (!ends || text.find(seal, last) == text.npos || text.find(lines, last) == text.npos)
        throw BadInput(path + ": not as it was written: its last line does not seal it");
    return sha256_hex(text);
}

}  // namespace attest::ci
