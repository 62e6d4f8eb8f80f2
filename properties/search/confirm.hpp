#pragma once
// What it takes for a failure to show again, found by trying: the case by itself, on one processor,
// after the cases that ran before it.

#include <chrono>
#include <optional>
#include <span>

#include "properties/search/confirmation.hpp"
#include "properties/search/judge.hpp"

namespace attest::search {

/// How often a failure that shows now and then is tried: one of one case in five is missed once in
/// a hundred times.
inline constexpr std::int64_t replays_most = 20;
/// A process of Python takes a second to start: then three must do, and what they cost is bounded.
inline constexpr std::int64_t replays_least = 3;

/// Judges a case after others, in a fresh process.
CaseRecord try_after(Kernel& kernel, std::span<const Judging> before, const law::Property& property,
                     const Case& tried, PlacementOrder placement);

/// How long a case is replayed: so many times, or, where that is enough, until it has failed and
/// held.
struct ReplayLimit {
    std::int64_t most = replays_most;
    bool until_both = false;
};

/// A case by itself, each time in a fresh process, its tensors laid both ways.
Replays replay_alone(Kernel& kernel, const law::Property& property, const Case& tried,
                     FailureKind kind, ReplayLimit limit = {});

/// Of a law's cases, each in a fresh process, the first that fails so: a kernel that answers
/// otherwise at each call may answer the case it failed rightly for long.
std::optional<CaseRecord> first_failing(Kernel& kernel, const law::Property& property,
                                        std::span<const Case> cases, FailureKind kind);

/// Of a case that failed in some of these replays: whether it is the thread schedule that decides.
Confirmed by_itself(Kernel& kernel, const law::Property& property, const Case& tried,
                    FailureKind kind, Replays alone);

/// Of a case that failed in none: whether it fails after what its process had judged before.
Confirmed after_its_past(Kernel& kernel, const law::Property& property, const CaseRecord& found,
                         Replays alone);

}  // namespace attest::search
