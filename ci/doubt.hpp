#pragma once
// What laws found and the profile does not fail: suspicions, and whatever else is not among its
// `fails`. The run holds all the same, so each screen, page and file says these beside the verdict.

#include <string>
#include <vector>

#include "ci/run_report.hpp"

namespace attest::ci {

struct RunDoubt {
    const search::LawReport* law = nullptr;
    std::string word{};     ///< "suspected"; "violated", of what is no matter of chance
    std::string problem{};  ///< with the rate at which it accuses a right kernel
    std::string share{};    ///< "in 3 of 120 cases"; empty: of all cases together
    std::string tried{};    ///< the first such case; empty: there is no single one
    std::string replay{};   ///< of that case
};

/// In the order of the laws. Every text is free of control characters.
std::vector<RunDoubt> doubts_of(const RunReport& report);

/// Of a profile that lets pass what is no matter of chance: "fails nothing: 7 laws are violated";
/// empty: it let nothing pass.
std::string let_pass_text(const RunReport& report);
/// "1 law is suspected"; empty: none is.
std::string suspected_text(const RunReport& report);

/// The verdict of a law in words: "holds", "not run", "violated, not failed", "suspected".
std::string decision_text(const search::LawReport& law);
/// And its mark: "holds", "violated", or "doubted" where it holds in doubt.
std::string_view mark_word(const search::LawReport& law);
std::string_view mark_word(const RunReport& report);

}  // namespace attest::ci
