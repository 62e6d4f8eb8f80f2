#pragma once
// The certificate of a run: what was judged, by what, under which claims, how near it came, and
// what it does not say. As data and as a page.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ci/record.hpp"
#include "ci/screen.hpp"

namespace attest::ci {

/// The kernel's file was another at the end of the run than at its start.
inline bool was_swapped(const RunReport& report) {
    const std::string& then = report.run.kernel.sha256;
    return !then.empty() && report.end->kernel_sha256 != then;
}

struct Certificate {
    const RunReport& report;                       ///< of a run that has ended
    std::map<std::string, std::int64_t> refusals;  ///< of all laws, by the kernel's reason
    std::vector<std::string> does_not_say;
    std::string result_sha256;
    /// A profile run whole, on one file; else it is the record of a part, and certifies nothing.
    bool whole() const { return report.run.whole && !was_swapped(report); }
    /// "holds under profile serving", "2 of 80 laws judged: not a certificate".
    std::string title() const;
};

/// From the report and the SHA-256 of result.jsonl.
Certificate certificate(const RunReport& report, const std::string& result_sha256);

/// certificate.json.
std::string certificate_text(const Certificate& certificate);
/// The same as a Markdown page, and as a page of HTML.
std::string certificate_page(const Certificate& certificate);
std::string certificate_html(const Certificate& certificate);

/// A fault that this law alone sees, in fewer than this share of its cases, may have been missed
/// (95 % confidence, rule of three); 1 where no case was judged.
double missed_share(const search::LawReport& law);

/// What the run was made with: versions, profile, seed, digests, threads, begin and end.
Facts made_with(const Certificate& certificate);

/// What is not the same of two runs' certificates, a line each.
void draw_changes(Screen& screen, const RunReport& a, const RunReport& b);

/// A law's sentence as it is declared; that of the report, where no such law is in the catalogue.
const std::string& full_statement(const search::LawReport& law);

}  // namespace attest::ci
