#pragma once
// What this process runs on, and when.

#include "ci/run_report.hpp"

namespace attest::ci {

Machine this_machine();

/// RFC 3339, UTC, seconds: "2026-11-20T14:02:11Z".
std::string time_now();

}  // namespace attest::ci
