#pragma once
// What a run says in the formats of others, each drawn from the report alone: the same records give
// the same bytes. `directory` is where the results lie, as replay lines name it; `gate`, where
// there is one, is what the run was held against: not all that is wrong is new.

#include <string>
#include <vector>

#include "ci/finding.hpp"
#include "ci/gate.hpp"

namespace attest::ci {

/// JUnit: a suite a family, a test a law, and one test of the whole run where it decided nothing.
/// A gate is a suite of its own: a test each change that fails it, or would; a law whose violation
/// is waived is skipped.
std::string draw_junit(const RunReport& report, const std::string& directory,
                       const GateReport* gate = nullptr);

/// SARIF 2.1.0: a rule a law, a result a cause. Of a gate what is waived is suppressed, what is as
/// in the baseline is unchanged, and what fails it and no law found is a notification.
std::string draw_sarif(const RunReport& report, const std::string& directory,
                       const GateReport* gate = nullptr);

/// GitLab's code quality report: an issue a cause; what fails no gate is for information.
std::string draw_code_quality(const RunReport& report, const std::string& directory,
                              const GateReport* gate = nullptr);

/// GitHub's annotations: an error a cause, a warning a reason to be inconclusive, and a notice. At
/// most ten of each are shown there, so the last tells of the rest. Of a gate an error is what is
/// worse, a warning what is waived, a notice what is wrong as before.
std::string draw_annotations(const RunReport& report, const std::string& directory,
                             const GateReport* gate = nullptr);

/// A page of Markdown for the summary of a job; what lies beyond so many bytes is left out and
/// told.
std::string draw_summary(const RunReport& report, const std::string& directory,
                         std::size_t bytes_max);

/// "cpu_mine breaks 13 of 70 laws, 2 causes": the run in one line, without its verdict.
std::string headline(const RunReport& report);

}  // namespace attest::ci
