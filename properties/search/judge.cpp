#include "properties/search/judge.hpp"

#include <chrono>
#include <cmath>
#include <utility>

#include "properties/search/clock.hpp"
#include "properties/search/kernel_trial.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {

namespace {

/// What can be read off the truth can be read off every correct kernel. Where a law compares
/// nothing in either the case has nothing for it; where it does in the truth alone, the kernel is
/// why.
law::Verdict of_nothing(const law::Judge& judge, const law::Judgement& nothing,
                        const KernelTrial& trial) {
    const law::Judgement of_truth = judge(TruthTrial(trial));
    if (of_truth.compared_nothing()) return nothing;
    law::Violation violation;
    violation.problem = "what the law reads off exact attention cannot be read off the kernel";
    violation.bound_kind = law::BoundKind::exact;
    violation.ratio = infinite;
    return law::violated(std::move(violation), of_truth.elements);
}

/// Two numbers that are both NaN show no relation, whatever the law says of two that differ.
law::Verdict without_relation(law::Verdict verdict) {
    if (auto& v = verdict.violation;
        v && std::isnan(v->expected) && std::isnan(v->observed) && !v->element_name.empty())
        v->problem = v->element_name + " is NaN";
    return verdict;
}

/// The law's own answer, or what stopped it.
law::Verdict ask(const law::Property& property, const KernelTrial& trial) {
    const law::Plan plan = property.check(trial);
    if (const auto* not_applicable = std::get_if<law::NotApplicable>(&plan)) return *not_applicable;
    const law::Judge& judge = std::get<law::Judge>(plan);
    const law::Judgement judgement = judge(trial);
    return judgement.compared_nothing() ? of_nothing(judge, judgement, trial) : judgement;
}

law::Verdict guarded(const law::Property& property, const KernelTrial& trial) {
    try {
        return without_relation(ask(property, trial));
    } catch (const law::Stopped& stopped) {
        return stopped.judgement;
    } catch (const NoAnswer& none) {
        return none.verdict;
    } catch (const BadInput&) {
        throw;
    } catch (const worker::KernelGone&) {
        throw;
    } catch (const std::exception& error) {
        throw InternalError("law " + property.id + " on case `" + print(trial.tried()) +
                            "`: " + error.what());
    }
}

/// Nothing compared and nothing left undecided: the case said nothing about the kernel.
bool says_nothing(const law::Verdict& verdict) noexcept {
    return verdict.decision != law::Decision::violated && verdict.elements == 0 &&
           verdict.undecided == 0;
}

}  // namespace

PlacementOrder placement_order_of(std::int64_t number) noexcept {
    return number % 2 == 0 ? PlacementOrder::even : PlacementOrder::odd;
}

Judged judge_case(Kernel& kernel, const law::Property& property, const Case& tried,
                  std::int64_t number) {
    return judge_case(kernel, property, tried, number, placement_order_of(number));
}

namespace {

/// The law's answer; what the kernel did, in the record.
law::Verdict answer(Kernel& kernel, const law::Property& property, CaseRecord& record) {
    std::string reason;
    try {
        if (!kernel.supports(record.tried.problem, &reason)) {
            record.outcome = worker::Outcome::refused;
            if (reason.empty()) reason = "the kernel refuses it";
            return law::not_applicable({law::Reason::Kind::refused, reason});
        }
    } catch (const worker::KernelDied& died) {
        record.outcome = died.result.outcome;
        record.fault = died.result.fault;
        record.printed = died.result.printed;
        return verdict_of_call(record.tried.problem, died.result).value();
    }
    const KernelTrial trial(kernel, record.tried);
    law::Verdict verdict = guarded(property, trial);
    record.outcome = trial.account().outcome;
    record.fault = trial.account().fault;
    record.largest = trial.account().largest;
    record.outputs = trial.account().outputs;
    record.printed = trial.account().printed;
    return verdict;
}

}  // namespace

Judged judge_case(Kernel& kernel, const law::Property& property, const Case& tried,
                  std::int64_t number, PlacementOrder placement) {
    Judged judged;
    CaseRecord& record = judged.record;
    record.number = number;
    record.tried = tried;
    kernel.judging({&property, tried, placement});
    kernel.begin_case(placement == PlacementOrder::even ? 0 : 1);
    const auto begin = std::chrono::steady_clock::now();
    Past past = kernel.past();
    record.verdict = answer(kernel, property, record);
    record.seconds = seconds_since(begin);
    if (failure_kind(record)) record.past = std::make_shared<const Past>(std::move(past));
    judged.refused = record.outcome == worker::Outcome::refused;
    judged.vacuous = record.outcome == worker::Outcome::ok && says_nothing(record.verdict);
    return judged;
}

bool is_slow_death(const CaseRecord& record) noexcept {
    return record.outcome == worker::Outcome::hang || record.outcome == worker::Outcome::memory;
}

bool is_undecided_death(const CaseRecord& record) noexcept {
    return record.outcome == worker::Outcome::slow || record.outcome == worker::Outcome::no_memory;
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
