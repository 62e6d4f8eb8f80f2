#pragma once
// What this process runs on, and when.

#include <cstdint>
#include <string>

namespace attest::ci {

/// What a run ran on, without names of hosts, users or folders.
struct Machine {
    std::string cpu, isa, os, compiler;
    std::int64_t cores = 1, memory_bytes = 0;
    std::string gpu;  ///< the first, and its driver; empty: none
};
Machine this_machine();

/// "NVIDIA H100 PCIe, driver 535.104.05", as the driver tells in this folder; empty: there is none.
std::string gpu_in(const std::string& folder);

/// RFC 3339, UTC, seconds: "2026-11-20T14:02:11Z".
std::string time_now();

}  // namespace attest::ci
