#include "properties/search/judge.hpp"

#include <chrono>
#include <utility>

#include "properties/search/kernel_trial.hpp"
#include "reference/problem/errors.hpp"

namespace attest {

namespace {

/// Nothing compared and nothing left undecided: the case said nothing about the kernel.
bool says_nothing(const Verdict& verdict) noexcept {
    switch (verdict.decision) {
        case Decision::not_applicable:
        case Decision::not_run:
            return true;
        case Decision::holds:
        case Decision::inconclusive:
            return verdict.elements == 0 && verdict.undecided == 0;
        case Decision::violated:
            return false;
    }
    return false;
}

/// The law's own answer, or the verdict that stopped it.
Verdict ask(const Property& property, const KernelTrial& trial) {
    try {
        return property.check(trial);
    } catch (const Stopped& stopped) {
        return stopped.verdict;
    } catch (const BadInput&) {
        throw;
    } catch (const std::exception& error) {
        throw InternalError("law " + property.id + " on case `" + print(trial.subject()) +
                            "`: " + error.what());
    }
}

}  // namespace

Placement placement_of(std::int64_t number) noexcept {
    return number % 2 == 0 ? Placement::even : Placement::odd;
}

Judged judge_case(Subject& kernel, const Property& property, const Case& subject,
                  std::int64_t number) {
    return judge_case(kernel, property, subject, number, placement_of(number));
}

Judged judge_case(Subject& kernel, const Property& property, const Case& subject,
                  std::int64_t number, Placement placement) {
    Judged judged;
    CaseRecord& record = judged.record;
    record.number = number;
    record.subject = subject;
    std::string reason;
    if (!kernel.supports(subject.problem, &reason)) {
        judged.refused = true;
        record.outcome = Outcome::refused;
        record.verdict =
            not_applicable({Reason::Kind::refused, "the kernel refuses it: " + reason});
        return judged;
    }
    kernel.begin_case(placement == Placement::even ? 0 : 1);
    const auto begin = std::chrono::steady_clock::now();
    const KernelTrial trial(kernel, subject);
    record.verdict = ask(property, trial);
    record.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    record.outcome = trial.account().outcome;
    record.fault = trial.account().fault;
    judged.longest_call = trial.account().longest_call;
    judged.refused = record.outcome == Outcome::refused;
    judged.vacuous = !judged.refused && says_nothing(record.verdict);
    return judged;
}

std::optional<FailureKind> failure_kind(const CaseRecord& record) noexcept {
    if (record.verdict.decision != Decision::violated) return std::nullopt;
    return FailureKind{record.outcome, record.fault.has_value()};
}

Judged judge_both_ways(Subject& kernel, const Property& property, const Case& subject,
                       std::int64_t number, std::optional<FailureKind> wanted) {
    const auto is_wanted = [&](const Judged& judged) {
        const auto kind = failure_kind(judged.record);
        return wanted ? kind == wanted : kind.has_value();
    };
    Judged first = judge_case(kernel, property, subject, number);
    if (first.refused || is_wanted(first)) return first;
    const bool was_even = placement_of(number) == Placement::even;
    Judged second =
        judge_case(kernel, property, subject, number, was_even ? Placement::odd : Placement::even);
    return is_wanted(second) ? second : first;
}

CaseRecord try_case(Subject& kernel, const Property& property, const Case& subject) {
    kernel.restart();
    return judge_both_ways(kernel, property, subject, 0, std::nullopt).record;
}

}  // namespace attest
