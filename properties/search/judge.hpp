#pragma once
// One case, one law, one kernel: the trial is set up, the law asked, and whatever the kernel did
// instead of answering is turned into a verdict.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kernels/worker/session.hpp"
#include "properties/law/property.hpp"
#include "properties/search/kernel.hpp"
#include "properties/search/sizes.hpp"
#include "reference/problem/case.hpp"

namespace attest::search {

/// One tried case, as reports and the boundary search need it.
struct CaseRecord {
    std::int64_t number = 0;  ///< k of the campaign; negative: a stored failure or a fixture
    Case tried;
    law::Verdict verdict;
    worker::Outcome outcome = worker::Outcome::ok;
    std::optional<worker::Fault> fault;
    double seconds = 0;
    Sizes largest{};                   ///< of the problems that the kernel answered
    bool again = false;                ///< it failed twice, the second time in a fresh process
    std::shared_ptr<const Past> past;  ///< what its process had judged before, where it failed
    std::string printed;               ///< by the kernel in the last of its calls that printed
    /// Of all that its calls returned, in order, to the bit: whether another run returns the same.
    std::uint64_t outputs = 0;
};

/// What judging found, beside the record that is kept.
struct Judged {
    CaseRecord record;
    bool refused = false;  ///< supports() said no; record.verdict.reason says why
    bool vacuous = false;  ///< the law found nothing to compare in this case
};

PlacementOrder placement_order_of(std::int64_t number) noexcept;

/// Judges in the process as it stands. A law that throws anything but Stopped is a bug of ours:
/// InternalError with law and case. A kernel that is gone passes through.
Judged judge_case(Kernel& kernel, const law::Property& property, const Case& tried,
                  std::int64_t number);
Judged judge_case(Kernel& kernel, const law::Property& property, const Case& tried,
                  std::int64_t number, PlacementOrder placement);

/// How a case failed, as far as one failure stands for another: how the kernel ended, and whether
/// it touched memory it must not.
struct FailureKind {
    worker::Outcome outcome = worker::Outcome::ok;
    bool fault = false;
    bool operator==(const FailureKind&) const = default;
    auto operator<=>(const FailureKind&) const = default;

    /// Not a wrong answer but no answer, or a broken neighbour: every law meets it.
    bool death() const noexcept { return outcome != worker::Outcome::ok || fault; }
};

/// It cost a time limit, or all memory, and would again.
bool is_slow_death(const CaseRecord& record) noexcept;

/// The same of one that nothing is said against.
bool is_undecided_death(const CaseRecord& record) noexcept;

/// None where the case did not fail.
std::optional<FailureKind> failure_kind(const CaseRecord& record) noexcept;

/// As judge_case, and where that is not the failure wanted (none: any), once more the other way.
Judged judge_both_ways(Kernel& kernel, const law::Property& property, const Case& tried,
                       std::int64_t number, std::optional<FailureKind> wanted);

/// One case under one law in a fresh worker: what `replay`, confirmation and the tests use.
CaseRecord try_case(Kernel& kernel, const law::Property& property, const Case& tried);

}  // namespace attest::search
