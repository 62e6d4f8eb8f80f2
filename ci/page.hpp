#pragma once
// report.html: one self-contained page of a run, drawn from its records alone. Nothing on it is
// loaded from anywhere; without scripts it reads the same; the same records give the same bytes.

#include <string>

#include "ci/audit.hpp"
#include "ci/bench.hpp"
#include "ci/run_report.hpp"

namespace attest::ci {

/// Of a run with an end. `directory` is where its results lie, as replay lines name it.
std::string draw_page(const RunReport& report, const std::string& directory);
/// Of an audit, of a bench.
std::string draw_audit_page(const AuditReport& report);
std::string draw_bench_page(const BenchReport& report);

}  // namespace attest::ci
