#pragma once
// The files that a run leaves for others beside its own records: those asked for by name, and what
// GitHub Actions takes where it is the one that runs us. Each is written whole or not at all.

#include <string>

#include "ci/gate.hpp"
#include "ci/options.hpp"
#include "ci/run_report.hpp"

namespace attest::ci {

/// Before the run: BadInput where a file cannot be written later, and none of an earlier run stays,
/// which would speak for this one if it ends early.
void prepare_ci_files(const ReportFiles& files);

/// After it. `page` is where --report puts its page; `summary` is the page of Markdown, where it is
/// not the run's own, and `gate` what it is about.
void write_ci_files(const RunReport& report, const ReportFiles& files, const std::string& directory,
                    const std::string& page, const std::string& summary = {},
                    const GateReport* gate = nullptr);

/// What is printed of a run, or of the gate it was put to: its screen, and on GitHub annotations.
std::string printed(const RunReport& report, const std::string& screen,
                    const std::string& directory, const GateReport* gate = nullptr);

}  // namespace attest::ci
