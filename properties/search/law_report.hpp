#pragma once
// What a run says of one law and of one case, as values. They are made here, once, from what a
// campaign came to, or read from the file of an earlier run; screens, certificates and files are
// drawn from them.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "properties/search/conclude.hpp"

namespace attest::search {

/// Counts of error/bound on a logarithmic axis; what lies below it falls into its first bin.
struct RatioHistogram {
    static constexpr int log10_min = -4, per_decade = 8, bins = 48;
    std::array<std::int64_t, bins> counts{};
    std::int64_t zero = 0, above = 0;
};

struct FormatRatios {
    std::int64_t cases = 0;
    double median = 0, p999 = 0, worst = 0;
};

struct WorstCase {
    double ratio = 0;
    std::string id;
    Case tried;
};

/// How near the judged cases of a law came to their bounds.
struct Ratios {
    WorstCase worst;
    RatioHistogram histogram;
    std::map<std::string, FormatRatios> formats;  ///< by the format of q
    std::vector<std::string> nearest;             ///< ids of the cases nearest_cases() names
};

struct LawReport : LawTotals {
    std::string law, statement;
    law::Compares compares = law::Compares::bound;
    std::optional<Ratios> ratios;       ///< of laws with a bound, where a case was judged
    std::string counterexample, cause;  ///< their ids; empty: none
    std::string family() const { return law.substr(0, law.find('.')); }
};

struct CaseReport {
    std::string id, law;
    CaseRecord record;
    std::optional<double> ratio;  ///< of a judged case of a law with a bound
};

/// Draws under one number that led to no judged case, beside the case that was judged, if one was.
struct DrawReport {
    std::string law;
    std::int64_t number = 0;  ///< negative: a case known before
    std::int64_t discarded = 0, refused = 0;
    std::map<std::string, std::int64_t> refusals;
    law::Reason nothing;  ///< why the last had nothing to compare
    bool inapplicable = false;
};

/// The name of a case and law in reports: the first 8 digits of its SHA-256.
std::string short_id(const Case& tried, std::string_view law);
std::string short_id(std::string_view full_id);

LawReport law_report(const LawResult& result);
CaseReport case_report(const law::Property& law, const CaseRecord& record);

/// The three holding cases nearest to their bound, nearest first; none for laws without a ratio.
std::vector<const CaseRecord*> nearest_cases(const LawResult& result);

}  // namespace attest::search
