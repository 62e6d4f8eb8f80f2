#pragma once
// A run counted again from its own records: what `attest merge` makes of several shards, and what
// `attest verify` holds a certificate against. Nothing but cases, draws and counterexamples is
// taken as it stands; verdicts, counts, coverage and causes follow from them.

#include <string>
#include <vector>

#include "ci/run_report.hpp"

namespace attest::ci {

/// Of a run that recorded each number (RunHeader::recorded) and was neither cut nor timed; a law
/// that was not asked keeps its reason. BadInput where a record that must be there is missing.
RunReport recounted(const RunReport& report);

/// The lines of its file in canonical order, without the end.
std::vector<std::string> record_lines(const RunReport& report);

/// Empty where it can be counted again; else why not.
std::string not_countable(const RunReport& report);

/// SHA-256 of a result.jsonl, whose last line must seal all before it: BadInput where a byte of it
/// is not as it was written.
std::string sealed_digest(const std::string& path, const std::string& text);

}  // namespace attest::ci
