#include "properties/search/law_report.hpp"

#include <algorithm>
#include <cmath>

#include "properties/search/store.hpp"

namespace attest::search {

namespace {

constexpr std::size_t nearest_max = 3;

bool has_ratio(const law::Property& property) {
    return property.compares == law::Compares::bound;
}

// NaN ratios count as the largest there is: an error that is no number exceeds every bound.
double ordered(double ratio) {
    return std::isnan(ratio) ? infinite : ratio;
}

bool judged(const CaseRecord& record) {
    return record.outcome == worker::Outcome::ok &&
           (record.verdict.decision == law::Decision::holds ||
            record.verdict.decision == law::Decision::violated);
}

void count(RatioHistogram& histogram, double ratio) {
    if (ratio == 0) {
        ++histogram.zero;
    } else if (!(ratio < 100)) {
        ++histogram.above;
    } else {
        const double place =
            (std::log10(ratio) - RatioHistogram::log10_min) * RatioHistogram::per_decade;
        // An error as large as its bound is within it.
        constexpr int within = -RatioHistogram::log10_min * RatioHistogram::per_decade - 1;
        const int bin = std::clamp(static_cast<int>(std::floor(place)), 0,
                                   ratio <= 1 ? within : RatioHistogram::bins - 1);
        ++histogram.counts[static_cast<std::size_t>(bin)];
    }
}

// The smallest ratio that at least this share of the cases does not exceed.
double quantile(const std::vector<double>& sorted, double share) {
    const double rank = std::ceil(share * static_cast<double>(sorted.size()));
    return sorted[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

// The median, and what one case in a thousand exceeds (0.999).
FormatRatios ratios_of(std::vector<double> ratios) {
    std::sort(ratios.begin(), ratios.end());
    return {static_cast<std::int64_t>(ratios.size()), quantile(ratios, 0.5),
            quantile(ratios, 0.999), ratios.back()};
}

std::optional<Ratios> ratios_of(const LawResult& result) {
    Ratios out;
    const CaseRecord* worst = nullptr;
    std::map<std::string, std::vector<double>> by_format;
    for (const CaseRecord& record : result.records) {
        if (!judged(record)) continue;
        const double ratio = ordered(record.verdict.worst_ratio);
        count(out.histogram, ratio);
        by_format[std::string(name(record.tried.problem.format_q))].push_back(ratio);
        if (worst != nullptr && !(ratio > out.worst.ratio)) continue;
        worst = &record;
        out.worst.ratio = ratio;
    }
    if (worst == nullptr) return std::nullopt;
    out.worst.tried = worst->tried;
    out.worst.id = short_id(worst->tried, result.property->id);
    for (auto& [format, ratios] : by_format) out.formats[format] = ratios_of(std::move(ratios));
    for (const CaseRecord* record : nearest_cases(result))
        out.nearest.push_back(short_id(record->tried, result.property->id));
    return out;
}

}  // namespace

std::string short_id(std::string_view full_id) {
    return std::string(full_id.substr(0, 8));
}

std::string short_id(const Case& tried, std::string_view law) {
    return short_id(failure_id(tried, law));
}

std::vector<const CaseRecord*> nearest_cases(const LawResult& result) {
    std::vector<const CaseRecord*> list;
    if (!has_ratio(*result.property)) return list;
    for (const CaseRecord& record : result.records)
        if (record.verdict.decision == law::Decision::holds && record.verdict.worst_ratio > 0)
            list.push_back(&record);
    std::stable_sort(list.begin(), list.end(), [](const CaseRecord* a, const CaseRecord* b) {
        return a->verdict.worst_ratio > b->verdict.worst_ratio;
    });
    if (list.size() > nearest_max) list.resize(nearest_max);
    return list;
}

LawReport law_report(const LawResult& result) {
    const law::Property& property = *result.property;
    LawReport report{result, property.id, property.statement_short, property.compares, {}, {}, {}};
    if (has_ratio(property)) report.ratios = ratios_of(result);
    if (result.counterexample) report.counterexample = short_id(result.counterexample->id);
    return report;
}

CaseReport case_report(const law::Property& law, const CaseRecord& record) {
    CaseReport report{short_id(record.tried, law.id), law.id, record, {}};
    if (has_ratio(law) && judged(record)) report.ratio = ordered(record.verdict.worst_ratio);
    return report;
}

}  // namespace attest::search
