#pragma once
// The certificate of a run: what was judged, by what, under which claims, how near it came, and
// what it does not say. As data and as a page.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ci/run_report.hpp"

namespace attest::ci {

struct Certificate {
    const RunReport& report;                       ///< of a run that has ended
    std::map<std::string, std::int64_t> refusals;  ///< of all laws, by the kernel's reason
    std::vector<std::string> does_not_say;
    std::string result_sha256;
    std::string own_profile;  ///< the text of a profile that is not one of attest's; empty: it is
    /// A profile run whole; else it is the record of a part, and certifies nothing.
    bool whole() const { return report.run.whole; }
    /// "holds under profile serving", "2 of 80 laws judged: not a certificate".
    std::string title() const;
};

/// From the report, the SHA-256 of result.jsonl and the text of a profile of one's own.
Certificate certificate(const RunReport& report, const std::string& result_sha256,
                        const std::string& own_profile = {});

/// certificate.json.
std::string certificate_text(const Certificate& certificate);
/// The same as a Markdown page.
std::string certificate_page(const Certificate& certificate);

/// A law's sentence as it is declared; that of the report, where no such law is in the catalogue.
const std::string& full_statement(const search::LawReport& law);

}  // namespace attest::ci
