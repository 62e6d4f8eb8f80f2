#include "properties/search/compare_gradients.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "properties/law/gradient_run.hpp"
#include "properties/law/tally.hpp"
#include "reference/oracle/gradients.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {

namespace {

/// What the reference's rounding to double costs.
double own_rounding(const bound::ExpectedElement& e) noexcept {
    return 0x1p-52 * std::abs(e.value) + std::numeric_limits<double>::denorm_min();
}

/// The element that is furthest out, and how many are open.
struct GradientFindings {
    std::int64_t elements = 0, undecided = 0;
    double worst_ratio = 0, worst_outside = 0;
    std::optional<law::ElementPlace> outside;
    bound::ExpectedElement expected;
    double observed = 0;
};

void tally_role(const Comparison& c, Role role, const std::vector<bound::ExpectedElement>& expected,
                GradientFindings& tally) {
    const std::vector<double> observed = c.observed[role].to_doubles();
    require(observed.size() == expected.size(), "observed and expected gradients have one shape");
    const Precision format = law::gradient_format(c.problem, role);
    for (std::size_t at = 0; at < observed.size(); ++at) {
        const bound::ExpectedElement& e = expected[at];
        // Nothing is claimed, or the reference itself is not sure of so much: of weights below
        // 1e-280, which it may have lost.
        if (e.bound == infinite || !(e.error <= e.bound || e.error <= own_rounding(e))) continue;
        ++tally.elements;
        const bound::Agreement agreement = bound::judge(observed[at], e, format);
        double ratio = bound::error_ratio(observed[at], e, format);
        if (std::isnan(ratio)) ratio = infinite;
        if (agreement == bound::Agreement::agrees) {
            tally.worst_ratio = std::max(tally.worst_ratio, ratio);
        } else if (agreement == bound::Agreement::undecided) {
            ++tally.undecided;
        } else if (!tally.outside || ratio > tally.worst_outside) {
            tally.worst_outside = ratio;
            tally.outside = law::gradient_at(c.problem, role, static_cast<std::int64_t>(at));
            tally.expected = e;
            tally.observed = observed[at];
        }
    }
}

GradientFindings tally_of(const Comparison& c, const bound::ExpectedGradients& expected) {
    GradientFindings tally;
    for (const Role role : gradient_roles)
        if (c.observed.has(role) && !expected[role].empty())
            tally_role(c, role, expected[role], tally);
    return tally;
}

// A product in 50 digits costs about half a microsecond: so many take a second or two.
bool takes_exact(const Problem& p) {
    constexpr std::int64_t products_max = 1'000'000;
    return score_count(p) * (3 * p.dim_qk + 2 * value_dim(p)) <= products_max;
}

law::Violation violation_of(const Comparison& c, const GradientFindings& tally) {
    law::Violation v;
    v.tensor = tally.outside->role;
    v.index = tally.outside->index;
    v.element_name = law::element_name(c.problem, *tally.outside);
    v.problem = "the " + v.element_name + " is outside its bound of the reference";
    v.expected = tally.expected.value;
    v.observed = tally.observed;
    v.bound = tally.expected.bound + tally.expected.error;
    v.bound_kind = law::BoundKind::derived;
    v.ratio = tally.worst_outside;
    return v;
}

}  // namespace

law::Judgement compare_gradients_with(const Comparison& c,
                                      const bound::ExpectedGradients& expected) {
    GradientFindings tally = tally_of(c, expected);
    const auto again = [&](oracle::Arithmetic wider) {
        tally = tally_of(
            c, oracle::attend_gradients(c.problem, c.dialect, c.numerics, c.inputs, wider));
    };
    if (tally.outside || tally.undecided > 0) again(oracle::Arithmetic::double_double);
    if (!tally.outside && tally.undecided > 0 && takes_exact(c.problem))
        again(oracle::Arithmetic::exact);
    if (tally.outside) return law::violated(violation_of(c, tally), tally.elements);
    if (tally.undecided > 0)
        return {.elements = tally.elements,
                .undecided = tally.undecided,
                .worst_ratio = tally.worst_ratio,
                .open = "the widest arithmetic tried could not decide a gradient"};
    return {.elements = tally.elements, .worst_ratio = tally.worst_ratio};
}

law::Judgement compare_gradients_as_declared(const Comparison& c,
                                             const bound::ExpectedGradients& expected) {
    const GradientFindings tally = tally_of(c, expected);
    if (!tally.outside) return law::holds(tally.elements, tally.worst_ratio);
    law::Violation v = violation_of(c, tally);
    v.problem = "the " + v.element_name + " is not what the declared rounding of P and dS computes";
    v.bound_kind = law::BoundKind::declared;
    v.violation_class = law::ViolationClass::structure;
    return law::violated(std::move(v), tally.elements);
}

}  // namespace attest::search
