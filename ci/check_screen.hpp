#pragma once
// What `attest check` prints at its end, drawn from the report alone: families, causes, what was
// inconclusive, and last the verdict, where the eye is when the prompt returns.

#include <string>

#include "ci/finding.hpp"
#include "ci/screen.hpp"

namespace attest::ci {

/// Of a run that has ended. `directory` is where its results lie, as replay lines name it.
std::string draw_check(const RunReport& report, const ScreenStyle& style,
                       const std::string& directory);

/// The parts, for other screens.
void draw_families(Screen& screen, const RunReport& report);
void draw_causes(Screen& screen, const RunReport& report, const std::string& directory);
/// What failed and was not seen again in a fresh process: no violation.
void draw_unproven(Screen& screen, const RunReport& report, const std::string& directory);

/// What was observed, what was expected and the bound, in a line.
void draw_element(Screen& screen, const ElementWords& words);

/// How a failure was seen again: "in a fresh process".
std::string confirmation_text(const search::Confirmed& confirmed);

/// "attest check ./libmine.so --resume attest-out", with the key of a certificate.
std::string resume_line(const RunHeader& run, const std::string& directory);

/// " --out DIR"; empty where it is the folder that nobody need name.
std::string out_option(const std::string& directory);

/// "--python venv/bin/python", where it is another than the usual one.
std::string python_option(const std::string& interpreter);

/// "attest replay 94d22f --kernel ./libmine.so"; of a hang with the limit that was asked for.
std::string replay_line(const KernelReport& kernel, const std::string& id,
                        const std::string& directory, worker::Outcome how);
/// Of a case that is not stored, by one law.
std::string replay_line(const KernelReport& kernel, const Case& tried, const std::string& law);

}  // namespace attest::ci
