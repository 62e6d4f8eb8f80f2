#pragma once
// What one run of compute-sanitizer printed, understood or not. Its lines begin with nine equal
// signs; a finding is a headline and, indented below it, where in the device's code it was:
//
//     ========= Invalid __global__ write of size 4 bytes
//     =========     at flash(float *, int)+0xd0 in flash.cuh:88
//     =========     by thread (0,0,0) in block (0,0,0)
//
// A line that is neither that, nor a summary, nor about how the program ended, is the tool's own
// trouble: with it the absence of findings says nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attest::diagnosis {

struct SanitizerFinding {
    std::string says;    ///< "Invalid __global__ write of size 4 bytes at flash.cuh:88"
    std::string kernel;  ///< the function; empty where it is not told
    bool operator==(const SanitizerFinding&) const = default;
};

struct SanitizerReport {
    std::vector<SanitizerFinding> findings;  ///< in the order printed, each once
    std::optional<std::int64_t> errors;      ///< of the summary; none: there was no summary
    std::string trouble;                     ///< the first line that tells of it
};

SanitizerReport read_sanitizer_report(std::string_view output);

/// What one of its tools had to say of a smallest case: evidence beside the verdict.
struct SanitizerEntry {
    enum class Verdict : std::uint8_t { found, clean, not_run };
    std::string tool;
    Verdict verdict = Verdict::not_run;
    std::string reason;  ///< why it was not run
    std::optional<std::int64_t> errors;
    std::vector<SanitizerFinding> findings;  ///< the first three
};
std::string_view name(SanitizerEntry::Verdict verdict) noexcept;

}  // namespace attest::diagnosis
