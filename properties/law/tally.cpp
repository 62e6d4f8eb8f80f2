#include "properties/law/tally.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace attest::law {

std::string element_name(const Problem& problem, const ElementPlace& place) {
    const bool lse = place.role == Role::lse;
    std::string text = lse ? "log-sum-exp" : "output";
    if (place.index.size() < 3) return text;
    text += " of " + name_of(problem, {place.index[0], place.index[1], place.index[2]});
    if (!lse && place.index.size() > 3 && value_dim(problem) > 1)
        text += fmt::format(", channel {}", place.index[3]);
    return text;
}

bool Tally::claimed(const bound::ExpectedElement& expected) noexcept {
    return !(expected.bound == std::numeric_limits<double>::infinity()) &&
           expected.error < std::numeric_limits<double>::infinity();
}

bool Tally::unbounded(const Interval& interval) noexcept {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return interval.lo == -infinity && interval.hi == infinity;
}

bool Tally::agreed(double ratio) noexcept {
    ++elements_;
    worst_ = std::max(worst_, ratio);
    return true;
}

bool Tally::disagreed(double expected, double observed, double bound, double ratio,
                      const ElementPlace& place, std::string sentence, BoundKind kind) {
    ++elements_;
    if (violation_) return false;
    Violation violation;
    violation.problem = std::move(sentence);
    violation.tensor = place.role;
    violation.index = place.index;
    violation.element_name = element_name(*problem_, place);
    violation.expected = expected;
    violation.observed = observed;
    violation.bound = bound;
    violation.bound_kind = kind;
    const bool exact = kind == BoundKind::exact || std::isnan(ratio);
    violation.ratio = exact ? std::numeric_limits<double>::infinity() : ratio;
    violation_ = std::move(violation);
    return false;
}

Judgement Tally::judgement(const std::string& nothing) const {
    if (violation_) return law::violated(*violation_, elements_);
    return elements_ > 0 ? holds(elements_, worst_) : nothing_compared(nothing);
}

}  // namespace attest::law
