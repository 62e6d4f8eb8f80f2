#pragma once
// The place at which reports become JSON and are read back: result.jsonl, one report a line, as
// fixtures/schema/result.schema.json says, and certificate.json. Nothing else of ci knows how a
// report is written.

#include <string>
#include <utility>
#include <vector>

#include "ci/run_report.hpp"

namespace attest::ci {

/// One line, sorted keys, no newline; invalid UTF-8 is replaced. A counterexample too long for a
/// line goes without its map, its weights, its pictures, the points of its boundary, in this order.
std::string record_line(RunHeader run);
std::string record_line(search::LawReport law);
std::string record_line(search::CaseReport tried);
std::string record_line(diagnosis::CounterexampleReport counterexample);
std::string record_line(diagnosis::CauseReport cause);
std::string record_line(search::CoverageReport coverage);
std::string record_line(RunEnd end);

/// Names and values of a run as they are written, sorted: for tables.
using Facts = std::vector<std::pair<std::string, std::string>>;
struct RunFacts {
    Facts kernel, claims, dialect, machine;
};
RunFacts facts_of(const RunHeader& run);

/// A profile as records have it: two are the same where this is.
std::string profile_text(search::Profile profile);

/// Reads a result.jsonl, strictly: BadInput "PATH:LINE:COLUMN: ..." where a record is not whole,
/// has a key or a value that no version of attest wrote, or stands where none may. The last line
/// may be half of one, where the run was cut.
RunReport read_records(const std::string& path);

}  // namespace attest::ci
