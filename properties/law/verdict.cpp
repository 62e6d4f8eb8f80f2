#include "properties/law/verdict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "reference/problem/errors.hpp"

namespace attest::law {

std::string_view name(Decision decision) noexcept {
    constexpr std::array<std::string_view, 5> names = {"not_applicable", "not_run", "holds",
                                                       "inconclusive", "violated"};
    return names[static_cast<std::size_t>(decision)];
}

std::string_view name(Compares compares) noexcept {
    constexpr std::array<std::string_view, 4> names = {"bound", "bits", "statistic", "property"};
    return names[static_cast<std::size_t>(compares)];
}

std::string_view name(BoundKind kind) noexcept {
    constexpr std::array<std::string_view, 5> names = {"derived", "exact", "bits", "statistic",
                                                       "declared"};
    return names[static_cast<std::size_t>(kind)];
}

std::string_view name(ViolationClass c) noexcept {
    constexpr std::array<std::string_view, 3> names = {"violation", "structure", "suspect"};
    return names[static_cast<std::size_t>(c)];
}

std::string_view name(Reason::Kind kind) noexcept {
    constexpr std::array<std::string_view, 16> names = {
        "none",          "law",        "not_in_profile", "not_selected",
        "interrupted",   "time_spent", "always_dead",    "kernel_lacks",
        "machine_lacks", "refused",    "none_judged",    "too_little",
        "slow_once",     "too_slow",   "no_memory",      "flaky"};
    return names[static_cast<std::size_t>(kind)];
}

Reason::Reason(Kind of) : kind(of) {
    switch (of) {
        case Kind::not_selected:
            text = "not selected";
            break;
        case Kind::interrupted:
            text = "interrupted before its first case";
            break;
        case Kind::time_spent:
            text = "the time was spent before its first case";
            break;
        case Kind::always_dead:
            text = "every case before ended without an answer to judge";
            break;
        case Kind::machine_lacks:
            text = "one processor: no two threads call at once";
            break;
        case Kind::slow_once:
            text = "a call was slow once and came back under the full time limit";
            break;
        case Kind::no_memory:
            text =
                "the machine, or its container, ran out of memory, and the system killed the "
                "kernel: judge it with more memory, with --jobs 1 or in a smaller --profile";
            break;
        default:
            throw InternalError("a reason of kind " + std::string(name(of)) + " has details");
    }
}

namespace {

Verdict without_answer(Decision decision, Reason reason) {
    Verdict verdict;
    verdict.decision = decision;
    verdict.reason = std::move(reason);
    return verdict;
}

/// NaN counts as the largest: an error nobody can measure is the worst there is.
double larger_ratio(double a, double b) noexcept {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    return a < b ? b : a;
}

/// How near the statistic is to its threshold; NaN or a threshold of nothing counts as beyond it.
double strain(const Statistic& s) noexcept {
    const double strain = std::abs(s.value) / s.threshold;
    return std::isnan(strain) ? infinite : strain;
}

}  // namespace

Judgement::operator Verdict() const {
    Verdict verdict;
    verdict.elements = elements;
    verdict.undecided = undecided;
    verdict.worst_ratio = worst_ratio;
    verdict.violation = violation;
    verdict.statistic = statistic;
    verdict.decision = Decision::inconclusive;
    if (violation)
        verdict.decision = Decision::violated;
    else if (!open.empty())
        verdict.reason = open;
    else if (elements <= 0)
        verdict.reason = "nothing was compared";
    else if (std::isnan(worst_ratio))
        verdict.reason = "an error/bound is not a number";
    else
        verdict.decision = Decision::holds;
    return verdict;
}

Judgement holds(std::int64_t elements, double worst_ratio) {
    return {.elements = elements, .worst_ratio = worst_ratio};
}

Judgement violated(Violation violation, std::int64_t elements) {
    const double ratio = violation.ratio;
    return {.elements = elements, .worst_ratio = ratio, .violation = std::move(violation)};
}

Judgement nothing_compared(std::string why) {
    return {.open = std::move(why)};
}

NotApplicable::operator Verdict() const {
    return without_answer(Decision::not_applicable, reason);
}

Verdict inconclusive(Reason reason) {
    return without_answer(Decision::inconclusive, std::move(reason));
}

Verdict not_run(Reason reason) {
    return without_answer(Decision::not_run, std::move(reason));
}

Verdict graded(Verdict verdict, std::span<const std::string> fails) {
    if (verdict.decision != Decision::violated) return verdict;
    const std::string_view its_class =
        name(verdict.violation ? verdict.violation->violation_class : ViolationClass{});
    if (std::find(fails.begin(), fails.end(), its_class) != fails.end()) return verdict;
    verdict.decision = Decision::holds;
    verdict.doubt = std::exchange(verdict.violation, std::nullopt);
    return verdict;
}

Judgement merge(Judgement a, const Judgement& b) {
    if (b.compared_nothing()) return a;
    if (a.compared_nothing()) return b;
    a.worst_ratio = larger_ratio(a.worst_ratio, b.worst_ratio);
    a.elements += b.elements;
    a.undecided += b.undecided;
    if (!a.violation) a.violation = b.violation;
    if (a.open.empty()) a.open = b.open;
    if (b.statistic && (!a.statistic || strain(*b.statistic) > strain(*a.statistic)))
        a.statistic = b.statistic;
    return a;
}

Verdict merge(Verdict a, const Verdict& b) {
    const bool b_is_worse = static_cast<int>(b.decision) > static_cast<int>(a.decision);
    Verdict merged = std::move(a);
    if (b_is_worse) {
        merged.decision = b.decision;
        merged.reason = b.reason;
    }
    merged.worst_ratio = larger_ratio(merged.worst_ratio, b.worst_ratio);
    merged.elements += b.elements;
    merged.undecided += b.undecided;
    if (!merged.violation) merged.violation = b.violation;
    const bool doubted_more =
        b.doubt && (!merged.doubt || b.doubt->violation_class < merged.doubt->violation_class);
    if (doubted_more) merged.doubt = b.doubt;
    const bool b_is_nearer =
        b.statistic && (!merged.statistic || strain(*b.statistic) > strain(*merged.statistic));
    if (b_is_nearer) merged.statistic = b.statistic;
    return merged;
}

}  // namespace attest::law
