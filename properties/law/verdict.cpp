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
    constexpr std::array<std::string_view, 14> names = {
        "none",        "law",         "not_in_profile", "not_selected", "interrupted",
        "time_spent",  "always_dead", "kernel_lacks",   "refused",      "none_judged",
        "too_little",  "slow_once",   "too_slow",       "flaky"};
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
            text = "the kernel hung or ran out of memory in every case before";
            break;
        case Kind::slow_once:
            text = "a call was slow once and came back under the full time limit";
            break;
        default:
            throw InternalError("a reason of kind " + std::string(name(of)) + " has details");
    }
}

Verdict holds(std::int64_t elements, double worst_ratio) {
    if (!(elements > 0)) return inconclusive("nothing was compared");
    if (std::isnan(worst_ratio)) return inconclusive("an error/bound is not a number");
    Verdict verdict;
    verdict.decision = Decision::holds;
    verdict.elements = elements;
    verdict.worst_ratio = worst_ratio;
    return verdict;
}

Verdict violated(Violation violation, std::int64_t elements) {
    Verdict verdict;
    verdict.decision = Decision::violated;
    verdict.elements = elements;
    verdict.worst_ratio = violation.ratio;
    verdict.violation = std::move(violation);
    return verdict;
}

namespace {

Verdict undecided(Decision decision, Reason reason) {
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
    return std::isnan(strain) ? std::numeric_limits<double>::infinity() : strain;
}

}  // namespace

Verdict inconclusive(Reason reason) {
    return undecided(Decision::inconclusive, std::move(reason));
}

Verdict not_applicable(Reason reason) {
    return undecided(Decision::not_applicable, std::move(reason));
}

Verdict not_run(Reason reason) {
    return undecided(Decision::not_run, std::move(reason));
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
    if (!merged.doubt) merged.doubt = b.doubt;
    const bool b_is_nearer =
        b.statistic && (!merged.statistic || strain(*b.statistic) > strain(*merged.statistic));
    if (b_is_nearer) merged.statistic = b.statistic;
    return merged;
}

}  // namespace attest::law
