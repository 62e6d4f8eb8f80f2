#include "properties/search/judge.hpp"

#include <chrono>
#include <utility>

#include "properties/search/kernel_trial.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {

namespace {

/// Nothing compared and nothing left undecided: the case said nothing about the kernel.
bool says_nothing(const law::Verdict& verdict) noexcept {
    switch (verdict.decision) {
        case law::Decision::not_applicable:
        case law::Decision::not_run:
            return true;
        case law::Decision::holds:
        case law::Decision::inconclusive:
            return verdict.elements == 0 && verdict.undecided == 0;
        case law::Decision::violated:
            return false;
    }
    return false;
}

/// The law's own answer, or the verdict that stopped it.
law::Verdict ask(const law::Property& property, const KernelTrial& trial) {
    try {
        return property.check(trial);
    } catch (const law::Stopped& stopped) {
        return stopped.verdict;
    } catch (const BadInput&) {
        throw;
    } catch (const worker::KernelGone&) {
        throw;
    } catch (const std::exception& error) {
        throw InternalError("law " + property.id + " on case `" + print(trial.tried()) +
                            "`: " + error.what());
    }
}

}  // namespace

PlacementOrder placement_order_of(std::int64_t number) noexcept {
    return number % 2 == 0 ? PlacementOrder::even : PlacementOrder::odd;
}

Judged judge_case(Kernel& kernel, const law::Property& property, const Case& tried,
                  std::int64_t number) {
    return judge_case(kernel, property, tried, number, placement_order_of(number));
}

Judged judge_case(Kernel& kernel, const law::Property& property, const Case& tried,
                  std::int64_t number, PlacementOrder placement) {
    Judged judged;
    CaseRecord& record = judged.record;
    record.number = number;
    record.tried = tried;
    std::string reason;
    try {
        if (!kernel.supports(tried.problem, &reason)) {
            judged.refused = true;
            record.outcome = worker::Outcome::refused;
            record.verdict = law::not_applicable(
                {law::Reason::Kind::refused, "the kernel refuses it: " + reason});
            return judged;
        }
    } catch (const worker::KernelDied& died) {
        record.outcome = died.result.outcome;
        record.fault = died.result.fault;
        record.verdict = verdict_of_call(tried.problem, died.result).value();
        return judged;
    }
    kernel.begin_case(placement == PlacementOrder::even ? 0 : 1);
    const auto begin = std::chrono::steady_clock::now();
    const KernelTrial trial(kernel, tried);
    record.verdict = ask(property, trial);
    record.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    record.outcome = trial.account().outcome;
    record.fault = trial.account().fault;
    record.largest = trial.account().largest;
    judged.longest_call = trial.account().longest_call;
    judged.refused = record.outcome == worker::Outcome::refused;
    judged.vacuous =
        record.outcome == worker::Outcome::ok && says_nothing(record.verdict);
    return judged;
}

std::optional<FailureKind> failure_kind(const CaseRecord& record) noexcept {
    if (record.verdict.decision != law::Decision::violated) return std::nullopt;
    return FailureKind{record.outcome, record.fault.has_value()};
}

Judged judge_both_ways(Kernel& kernel, const law::Property& property, const Case& tried,
                       std::int64_t number, std::optional<FailureKind> wanted) {
    const auto is_wanted = [&](const Judged& judged) {
        const auto kind = failure_kind(judged.record);
        return wanted ? kind == wanted : kind.has_value();
    };
    Judged first = judge_case(kernel, property, tried, number);
    if (first.refused || is_wanted(first)) return first;
    const bool was_even = placement_order_of(number) == PlacementOrder::even;
    Judged second = judge_case(kernel, property, tried, number,
                               was_even ? PlacementOrder::odd : PlacementOrder::even);
    return is_wanted(second) ? second : first;
}

CaseRecord try_case(Kernel& kernel, const law::Property& property, const Case& tried) {
    kernel.restart();
    return judge_both_ways(kernel, property, tried, 0, std::nullopt).record;
}

}  // namespace attest::search
