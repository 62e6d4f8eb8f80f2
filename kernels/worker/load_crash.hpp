#pragma once
// A kernel whose process ends or hangs while it is loaded: how long it may take, how often it is
// tried, and what is said of it.

#include <chrono>
#include <string>

#include "kernels/interface/kernel_spec.hpp"
#include "kernels/worker/autopsy.hpp"

namespace attest::worker {

/// Importing a large Python framework from a cold disk takes most of a minute.
inline constexpr std::chrono::milliseconds load_time_min{60'000};
/// An import reads files and touches memory all the time.
inline constexpr std::chrono::milliseconds load_silence{20'000};
inline constexpr int load_attempts = 3;

/// "./libmine.so#1"; "python", whose errors name the module themselves.
std::string source_of(const kernel::KernelSpec& spec);

/// `same`: of all attempts.
LoadCrash load_crash(const kernel::KernelSpec& spec, const WorkerDeath& death, bool same);

bool same_end(const WorkerDeath& a, const WorkerDeath& b);

/// What was loaded before, and now fails to load as `error` says.
KernelGone kernel_gone(const auto& error) {
    std::vector<std::string> details = {"it was loaded before; it could not be loaded again"};
    details.insert(details.end(), error.details().begin(), error.details().end());
    return {error.what(), std::move(details)};
}

}  // namespace attest::worker
