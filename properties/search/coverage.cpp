#include "properties/search/coverage.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <utility>

#include "properties/search/capability.hpp"
#include "properties/search/features.hpp"
#include "properties/search/recount.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {

namespace {

// A place in the lower triangle, rows i, columns j <= i.
std::size_t triangle(std::size_t i, std::size_t j) {
    return i * (i + 1) / 2 + j;
}

std::vector<Feature> features_of_kernel(const kernel::Manifest& manifest) {
    std::vector<Feature> list;
    for (int n = 0; n < feature_count; ++n) {
        const Feature f = static_cast<Feature>(n);
        if (manifest.features.has(f) && f != Feature::dropout && f != Feature::d_lse)
            list.push_back(f);  // laws of their own alone draw those two
    }
    return list;
}

enum class Taken { yes, no, clash };

// Clash: it is no problem at all.
Taken taken(Problem problem, Kernel* kernel) {
    try {
        problem = canonical(problem);
        require_valid(problem);
    } catch (const BadInput&) {
        return Taken::clash;
    }
    std::string reason;
    try {
        return kernel == nullptr || kernel->supports(problem, &reason) ? Taken::yes : Taken::no;
    } catch (const worker::KernelDied&) {
    } catch (const worker::KernelGone&) {
    }
    return Taken::yes;  // it did not say no
}

// A small problem with the plainest forms of these features, in this order.
std::optional<Problem> plain_problem(std::initializer_list<Feature> features, Precision format,
                                     const kernel::Manifest& manifest) {
    Problem bare;
    bare.heads_q = bare.heads_kv = 2;
    bare.len_q = bare.len_kv = 4;
    bare.dim_qk = 8;
    for (const kernel::Formats& one : manifest.formats)
        if (one.q == format) std::tie(bare.format_kv, bare.format_o) = std::tie(one.kv, one.o);
    bare.format_q = format;
    bare.want_lse = false;
    std::optional<Problem> plain = fitted(bare, manifest);
    for (const Feature f : features) {
        plain = with_plain_feature(*plain, f, manifest.formats);
        if (!plain) return plain;
    }
    kernel::fit(*plain, manifest.takes);
    return plain;
}

// Whether some problem of this format has both; the kernel decides where the problem is possible.
bool can_occur(Feature a, Feature b, Precision format, const kernel::Manifest& manifest,
               Kernel* kernel) {
    if (a != b && !compatible(a, b)) return false;
    const auto plain = plain_problem({a, b}, format, manifest);
    if (!plain) return false;
    const Taken answer = taken(*plain, kernel);
    if (answer != Taken::clash) return answer == Taken::yes;
    // A third feature may reconcile them, as a cache does what counts queries and keys apart. It
    // comes first: a cache leaves few queries, which lengths then are lengths of.
    for (const Feature third : features_of_kernel(manifest)) {
        const auto richer = plain_problem({third, a, b}, format, manifest);
        if (richer && taken(*richer, kernel) == Taken::yes) return true;
    }
    return false;
}

struct Counts {
    std::int64_t cases = 0;
    std::vector<std::int64_t> pairs;
    std::vector<bool> violated;
};

Counts count(const CampaignResult& result, Precision format, const std::vector<Feature>& features) {
    Counts counts;
    counts.pairs.resize(features.size() * (features.size() + 1) / 2);
    counts.violated.resize(counts.pairs.size());
    for (const LawResult& law : result.laws) {
        // What was cut, or while it was shrunk, is run again where the run is resumed, and counted
        // then.
        const bool unshrunk =
            law.verdict.decision == law::Decision::violated && !law.counterexample;
        if (law.verdict.reason.kind == law::Reason::Kind::interrupted ||
            (result.interrupted && unshrunk))
            continue;
        for (const CaseRecord& record : law.records) {
            if (record.tried.problem.format_q != format) continue;
            ++counts.cases;
            const FeatureSet has = features_of(record.tried.problem);
            for (std::size_t i = 0; i < features.size(); ++i)
                for (std::size_t j = 0; j <= i && has.has(features[i]); ++j)
                    if (has.has(features[j])) ++counts.pairs[triangle(i, j)];
        }
        if (!law.counterexample) continue;
        const Problem& smallest = law.counterexample->smallest.problem;
        if (smallest.format_q != format) continue;
        const FeatureSet has = features_of(smallest);
        for (std::size_t i = 0; i < features.size(); ++i)
            for (std::size_t j = 0; j <= i; ++j)
                if (has.has(features[i]) && has.has(features[j]))
                    counts.violated[triangle(i, j)] = true;
    }
    return counts;
}

void add_earlier(Counts& counts, const std::vector<CoverageReport>& earlier, Precision format) {
    for (const CoverageReport& report : earlier) {
        if (report.format != format || report.pairs.size() != counts.pairs.size()) continue;
        counts.cases += report.cases;
        for (const auto& [larger, smaller] : report.violated)
            counts.violated[triangle(static_cast<std::size_t>(larger),
                                     static_cast<std::size_t>(smaller))] = true;
        for (std::size_t n = 0; n < counts.pairs.size(); ++n) counts.pairs[n] += report.pairs[n];
    }
}

/// Into those that were violated and, of those never drawn, the ones that can occur or cannot.
template <typename CanOccur>
void part_pairs(CoverageReport& report, const Counts& counts, CanOccur can) {
    report.violated.clear();
    report.undrawn.clear();
    report.impossible.clear();
    std::size_t at = 0;
    for (std::int64_t i = 0; at < counts.pairs.size(); ++i)
        for (std::int64_t j = 0; j <= i; ++j, ++at) {
            const CoverageReport::Pair pair{i, j};
            if (counts.violated[at]) report.violated.push_back(pair);
            if (counts.pairs[at] == 0)
                (can(pair) ? report.undrawn : report.impossible).push_back(pair);
        }
}

}  // namespace

std::vector<CoverageReport> coverage_reports(const CampaignResult& result, std::int64_t allowed,
                                             Kernel* kernel,
                                             const std::vector<CoverageReport>& earlier) {
    const std::vector<Feature> features = features_of_kernel(result.manifest);
    std::vector<std::string> names;
    for (const Feature f : features) names.emplace_back(name(f));
    std::vector<CoverageReport> reports;
    std::vector<Precision> formats;
    for (const kernel::Formats& one : result.manifest.formats)
        if (std::find(formats.begin(), formats.end(), one.q) == formats.end())
            formats.push_back(one.q);
    for (const Precision format : formats) {
        Counts counts = count(result, format, features);
        add_earlier(counts, earlier, format);
        CoverageReport report{format, counts.cases, names, counts.pairs, {}, {}, {}, allowed};
        part_pairs(report, counts, [&](const CoverageReport::Pair& pair) {
            const auto [a, b] = pair;
            return can_occur(features[static_cast<std::size_t>(a)],
                             features[static_cast<std::size_t>(b)], format, result.manifest,
                             kernel);
        });
        reports.push_back(std::move(report));
    }
    return reports;
}

std::vector<CoverageReport> recounted_coverage(const CampaignResult& result,
                                               const std::vector<CoverageReport>& recorded) {
    const std::vector<Feature> features = features_of_kernel(result.manifest);
    std::vector<CoverageReport> reports = recorded;
    for (CoverageReport& report : reports) {
        Counts counts = count(result, report.format, features);
        if (counts.pairs.size() != report.pairs.size())
            throw BadInput("the coverage is of other features than the kernel's");
        report.cases = counts.cases;
        const auto impossible = std::exchange(report.impossible, {});
        part_pairs(report, counts, [&](const CoverageReport::Pair& pair) {
            return std::ranges::find(impossible, pair) == impossible.end();
        });
        report.pairs = std::move(counts.pairs);
    }
    return reports;
}

CoverageSummary summarise(const std::vector<CoverageReport>& coverage) {
    CoverageSummary sum;
    for (const CoverageReport& report : coverage) {
        const auto possible =
            static_cast<std::int64_t>(report.pairs.size() - report.impossible.size());
        const auto undrawn = static_cast<std::int64_t>(report.undrawn.size());
        sum.possible += possible;
        sum.undrawn += undrawn;
        sum.drawn += possible - undrawn;
        sum.allowed = report.allowed;
        sum.formats.push_back(report.format);
        const auto mixed = std::ranges::find(report.features, name(Feature::mixed_formats));
        if (mixed == report.features.end()) continue;
        const auto place = static_cast<std::size_t>(mixed - report.features.begin());
        const std::size_t itself = place * (place + 1) / 2 + place;
        sum.mixed = sum.mixed || (itself < report.pairs.size() && report.pairs[itself] > 0);
    }
    return sum;
}

}  // namespace attest::search
