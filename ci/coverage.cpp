#include "ci/coverage.hpp"

#include <initializer_list>
#include <optional>

#include "properties/search/features.hpp"
#include "reference/problem/errors.hpp"

namespace attest {

namespace {

// A place in the lower triangle, rows i, columns j <= i.
std::size_t triangle(std::size_t i, std::size_t j) {
    return i * (i + 1) / 2 + j;
}

std::vector<Feature> features_of_kernel(const Manifest& manifest) {
    std::vector<Feature> list;
    for (int n = 0; n < feature_count; ++n) {
        const Feature f = static_cast<Feature>(n);
        if (offered_features(manifest).has(f)) list.push_back(f);
    }
    return list;
}

enum class Taken { yes, no, clash };

// Clash: it is no problem at all.
Taken taken(Problem problem, Subject* kernel) {
    try {
        problem = canonical(problem);
        require_valid(problem);
    } catch (const BadInput&) {
        return Taken::clash;
    }
    std::string reason;
    return kernel == nullptr || kernel->supports(problem, &reason) ? Taken::yes : Taken::no;
}

// A small problem with the plainest forms of these features, in this order.
std::optional<Problem> plain_problem(std::initializer_list<Feature> features, Precision format,
                                     const Manifest& manifest) {
    std::optional<Problem> plain = Problem();
    plain->heads_q = plain->heads_kv = 2;
    plain->len_q = plain->len_kv = 4;
    plain->dim_qk = 8;
    plain->format_q = plain->format_kv = plain->format_o = format;
    plain->want_lse = false;
    for (const Feature f : features) {
        plain = with_plain_feature(*plain, f, manifest.formats);
        if (!plain) break;
    }
    return plain;
}

// Whether some problem of this format has both; the kernel decides where the problem is possible.
bool can_occur(Feature a, Feature b, Precision format, const Manifest& manifest, Subject* kernel) {
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
        for (const CaseRecord& record : law.records) {
            if (record.subject.problem.format_q != format) continue;
            ++counts.cases;
            const FeatureSet has = features_of(record.subject.problem);
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

void add_earlier(Counts& counts, const std::vector<Record>& earlier, std::string_view format) {
    for (const Record& record : earlier) {
        if (record.at("format") != format) continue;
        const auto& pairs = record.at("pairs");
        if (pairs.size() != counts.pairs.size()) continue;
        counts.cases += record.at("cases").get<std::int64_t>();
        for (std::size_t n = 0; n < pairs.size(); ++n)
            counts.pairs[n] += pairs[n].get<std::int64_t>();
    }
}

}  // namespace

std::vector<Record> coverage_records(const CampaignResult& result, std::int64_t allowed,
                                     Subject* kernel, const std::vector<Record>& earlier) {
    const std::vector<Feature> features = features_of_kernel(result.manifest);
    std::vector<std::string> names;
    for (const Feature f : features) names.emplace_back(name(f));
    std::vector<Record> records;
    for (const Precision format : result.manifest.formats) {
        Counts counts = count(result, format, features);
        add_earlier(counts, earlier, name(format));
        Record impossible = Record::array(), undrawn = Record::array(), violated = Record::array();
        for (std::size_t i = 0; i < features.size(); ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                const std::size_t at = triangle(i, j);
                if (counts.violated[at]) violated.push_back({i, j});
                if (counts.pairs[at] > 0) continue;
                if (can_occur(features[i], features[j], format, result.manifest, kernel))
                    undrawn.push_back({i, j});
                else
                    impossible.push_back({i, j});
            }
        records.push_back({{"record", "coverage"},
                           {"v", 1},
                           {"format", name(format)},
                           {"cases", counts.cases},
                           {"features", names},
                           {"pairs", counts.pairs},
                           {"impossible", impossible},
                           {"undrawn", undrawn},
                           {"violated", violated},
                           {"allowed", allowed}});
    }
    return records;
}

CoverageSummary summarise(const std::vector<Record>& coverage) {
    CoverageSummary sum;
    for (const Record& record : coverage) {
        const std::int64_t possible = static_cast<std::int64_t>(record.at("pairs").size()) -
                                      static_cast<std::int64_t>(record.at("impossible").size());
        const std::int64_t undrawn = static_cast<std::int64_t>(record.at("undrawn").size());
        sum.possible += possible;
        sum.undrawn += undrawn;
        sum.drawn += possible - undrawn;
        sum.allowed = record.at("allowed").get<std::int64_t>();
        sum.formats.push_back(record.at("format"));
    }
    return sum;
}

}  // namespace attest
