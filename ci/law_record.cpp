#include "ci/law_record.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace attest {

namespace {

constexpr int log10_min = -4, per_decade = 8, bins = 48;  // report.md: fixed
constexpr std::size_t nearest_max = 3;

bool has_ratio(const Property& property) { return property.compares == Compares::bound; }

// NaN ratios count as the largest there is: an error that is no number exceeds every bound.
double ordered(double ratio) {
    return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
}

bool judged(const CaseRecord& record) {
    return record.outcome == Outcome::ok && (record.verdict.decision == Decision::holds ||
                                             record.verdict.decision == Decision::violated);
}

// A ratio as a JSON number, where the schema has no word for infinity.
double finite(double ratio) {
    return std::min(ordered(ratio), std::numeric_limits<double>::max());
}

Record histogram_of(const std::vector<double>& ratios) {
    std::vector<std::int64_t> counts(bins);
    std::int64_t zero = 0, above = 0;
    for (const double ratio : ratios) {
        if (ratio == 0) {
            ++zero;
        } else if (!(ordered(ratio) < 100)) {
            ++above;
        } else {
            const double place = (std::log10(ratio) - log10_min) * per_decade;
            const int bin = std::clamp(static_cast<int>(std::floor(place)), 0, bins - 1);
            ++counts[static_cast<std::size_t>(bin)];
        }
    }
    return {{"log10_min", log10_min},
            {"per_decade", per_decade},
            {"counts", counts},
            {"zero", zero},
            {"above", above}};
}

// The smallest ratio that at least this share of the cases does not exceed.
double quantile(const std::vector<double>& sorted, double share) {
    const double rank = std::ceil(share * static_cast<double>(sorted.size()));
    return sorted[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

Record formats_of(const LawResult& result) {
    std::map<std::string, std::vector<double>> ratios;
    for (const CaseRecord& record : result.records)
        if (judged(record))
            ratios[std::string(name(record.subject.problem.format_q))].push_back(
                ordered(record.verdict.worst_ratio));
    Record formats = Record::object();
    for (auto& [format, all] : ratios) {
        std::sort(all.begin(), all.end());
        formats[format] = {{"cases", all.size()},
                           {"median", finite(quantile(all, 0.5))},
                           {"p999", finite(quantile(all, 0.999))},
                           {"worst", real(all.back())}};
    }
    return formats;
}

void add_ratios(Record& law, const LawResult& result) {
    std::vector<double> ratios;
    const CaseRecord* worst = nullptr;
    for (const CaseRecord& record : result.records) {
        if (!judged(record)) continue;
        ratios.push_back(record.verdict.worst_ratio);
        if (!worst || ordered(record.verdict.worst_ratio) > ordered(worst->verdict.worst_ratio))
            worst = &record;
    }
    law["worst"] = nullptr;
    if (worst == nullptr) return;
    law["worst"] = {{"ratio", real(ordered(worst->verdict.worst_ratio))},
                    {"case", short_id(worst->subject, result.property->id)},
                    {"line", print(worst->subject)},
                    {"format", name(worst->subject.problem.format_q)}};
    law["histogram"] = histogram_of(ratios);
    law["formats"] = formats_of(result);
    Record nearest = Record::array();
    for (const CaseRecord* record : nearest_cases(result))
        nearest.push_back(short_id(record->subject, result.property->id));
    law["nearest"] = nearest;
}

}  // namespace

std::string short_id(std::string_view full_id) { return std::string(full_id.substr(0, 8)); }

std::string short_id(const Case& subject, std::string_view law) {
    return short_id(failure_id(subject, law));
}

std::vector<const CaseRecord*> nearest_cases(const LawResult& result) {
    std::vector<const CaseRecord*> list;
    if (!has_ratio(*result.property)) return list;
    for (const CaseRecord& record : result.records)
        if (record.verdict.decision == Decision::holds && record.verdict.worst_ratio > 0)
            list.push_back(&record);
    std::stable_sort(list.begin(), list.end(), [](const CaseRecord* a, const CaseRecord* b) {
        return a->verdict.worst_ratio > b->verdict.worst_ratio;
    });
    if (list.size() > nearest_max) list.resize(nearest_max);
    return list;
}

Record fault_record(const std::optional<Fault>& fault) {
    if (!fault) return nullptr;
    return {{"kind", name(fault->kind)},
            {"stray", name(fault->stray)},
            {"tensor", fault->tensor      ? std::string(name(*fault->tensor))
                       : fault->workspace ? std::string("workspace")
                                          : std::string("none")},
            {"offset_bytes", fault->offset_bytes},
            {"side", fault->before ? "before" : "after"},
            {"signal", fault->signal},
            {"says", fault->sentence}};
}

Record law_record(const LawResult& result) {
    const Property& property = *result.property;
    const Verdict& verdict = result.verdict;
    const bool decided =
        verdict.decision == Decision::holds || verdict.decision == Decision::violated;
    Record law{{"record", "law"},
               {"v", 1},
               {"law", property.id},
               {"family", property.family()},
               {"statement", property.statement_short},
               {"compares", name(property.compares)},
               {"verdict", name(verdict.decision)},
               {"reason", decided ? Record(nullptr) : Record(verdict.reason.text)},
               {"cases", result.cases},
               {"discarded", result.discarded},
               {"refused", result.refused},
               {"violated", result.violated},
               {"elements", verdict.elements},
               {"undecided", verdict.undecided},
               {"seconds", result.seconds}};
    if (!decided) law["reason_kind"] = name(verdict.reason.kind);
    if (!result.refusals.empty()) law["refusals"] = result.refusals;
    if (has_ratio(property)) add_ratios(law, result);
    if (verdict.statistic) {
        const Statistic& s = *verdict.statistic;
        law["statistic"] = {{"name", s.name},
                            {"value", finite(s.value)},
                            {"threshold", finite(s.threshold)},
                            {"false_positive_rate", s.false_positive_rate},
                            {"samples", s.samples}};
    }
    if (verdict.doubt)
        law["doubt"] = {{"class", name(verdict.doubt->violation_class)},
                        {"says", verdict.doubt->problem}};
    if (result.counterexample) law["counterexample"] = short_id(result.counterexample->id);
    return law;
}

Record case_record(std::string_view law, Compares compares, const CaseRecord& record) {
    const bool ratio = compares == Compares::bound && judged(record);
    Record out{{"record", "case"},
               {"v", 1},
               {"id", short_id(record.subject, law)},
               {"law", law},
               {"line", print(record.subject)},
               {"number", std::max<std::int64_t>(0, record.number)},
               {"verdict", name(record.verdict.decision)},
               {"ratio", ratio ? real(ordered(record.verdict.worst_ratio)) : Record(nullptr)},
               {"outcome", name(record.outcome)},
               {"seconds", record.seconds}};
    if (record.number < 0) out["stored"] = true;  // replayed: no number makes it again
    if (record.fault) out["fault"] = fault_record(record.fault);
    return out;
}

}  // namespace attest
