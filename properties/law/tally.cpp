#include "properties/law/tally.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace attest::law {

namespace {

std::string gradient_name(const Problem& problem, const ElementPlace& place) {
    const auto& at = place.index;
    const auto of = [&](std::int64_t count, const char* what, std::int64_t n) {
        return count > 1 ? fmt::format(", {} {}", what, n) : std::string();
    };
    if (place.role == Role::d_sinks) return fmt::format("gradient of the sink of head {}", at[0]);
    if (place.role == Role::d_slopes) return fmt::format("gradient of the slope of head {}", at[0]);
    if (place.role == Role::d_mask)
        return fmt::format("gradient of the mask at [{}]", fmt::join(at, ", "));
    const bool query = place.role == Role::d_q;
    const char* what = query ? "query" : place.role == Role::d_k ? "key" : "value";
    return fmt::format("gradient of {} {}", what, at[2]) +
           of(query ? problem.heads_q : problem.heads_kv, "head", at[1]) +
           of(problem.batch, "sequence", at[0]) +
           of(place.role == Role::d_v ? value_dim(problem) : problem.dim_qk, "channel", at[3]);
}

}  // namespace

std::string element_name(const Problem& problem, const ElementPlace& place) {
    if (is_gradient(place.role)) return gradient_name(problem, place);
    const bool lse = place.role == Role::lse, keep = place.role == Role::dropout_keep;
    std::string text = lse ? "log-sum-exp" : keep ? "dropout_keep" : "output";
    if (place.index.size() < 3) return text;
    text += " of " + name_of(problem, {place.index[0], place.index[1], place.index[2]});
    if (keep) return text + fmt::format(", key {}", place.index[3]);
    if (!lse && place.index.size() > 3 && value_dim(problem) > 1)
        text += fmt::format(", channel {}", place.index[3]);
    return text;
}

ElementPlace gradient_at(const Problem& problem, Role role, std::int64_t flat) {
    const Shape index = index_of(shape_of(problem, role).value(), flat);
    if (is_summed(role) && role != Role::d_mask) return {role, {index[0]}};
    return {role, {index.begin(), index.end()}};
}

bool Tally::claimed(const bound::ExpectedElement& expected) noexcept {
    return !(expected.bound == infinite) && expected.error < infinite;
}

bool Tally::unbounded(const Interval& interval) noexcept {
    return interval.lo == -infinite && interval.hi == infinite;
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
    violation.ratio = exact ? infinite : ratio;
    violation_ = std::move(violation);
    return false;
}

Judgement Tally::judgement(const std::string& nothing) const {
    if (violation_) return law::violated(*violation_, elements_);
    return elements_ > 0 ? holds(elements_, worst_) : nothing_compared(nothing);
}

}  // namespace attest::law
