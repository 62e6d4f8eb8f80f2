#pragma once
// What a run ran on, without names of hosts, users or folders.

#include "ci/record.hpp"

namespace attest {

/// {cpu, isa, cores, memory_bytes, os, compiler, gpu}.
Record machine_record();

/// RFC 3339, UTC, seconds: "2026-11-20T14:02:11Z".
std::string time_now();

}  // namespace attest
