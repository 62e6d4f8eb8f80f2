// Each output is a convex combination of the values its query sees. This needs no reference: how
// far a correct kernel may leave the hull follows from its declared numerics and the number of
// keys, because weights are non-negative whatever the error of their exponents.

#include "properties/convex_hull_checks.hpp"
#include "properties/law/property.hpp"

namespace attest::laws {

namespace {

CaseSpace space(std::int64_t scores_max, std::int64_t len_max, std::int64_t dim_max) {
    return {.allow = FeatureSet::all().without(Feature::dropout),
            .scores_max = scores_max,
            .len_max = len_max,
            .dim_max = dim_max};
}

CaseSpace membership_space() {
    CaseSpace s = space(512, 32, 16);
    s.allow = s.allow.without(Feature::sink);
    return s;
}

}  // namespace

std::vector<Property> convex_hull() {
    return {
        {
            .id = "convex_hull.box",
            .statement =
                "Every output lies between the least and the largest value its query sees.",
            .statement_short = "every output lies within the values its query sees",
            .why = "O_ic = sum_j P_ij v_jc with P_ij >= 0 and sum_j P_ij = 1, so it is a mean of "
                   "the visible v_jc (a sink is one more, of value 0). Computed weights are "
                   "non-negative as well, whatever the error of their exponents, and their sum "
                   "misses one by no more than the roundings of the two sums and of P: that is the "
                   "whole slack, and no reference is needed.",
            .source = "convexity; Boyd and Vandenberghe 2004, section 2.1.4",
            .compares = Compares::bound,
            .needs = {},
            .cases = space(16384, 300, 128),
            .check = check_box,
            .file = "properties/convex_hull.cpp",
        },
        {
            .id = "convex_hull.support",
            .statement =
                "In every direction the output reaches no further than some visible value.",
            .statement_short = "no output reaches beyond the hull in any direction",
            .why =
                "u.O_i = sum_j P_ij u.v_j <= max_j u.v_j for every direction u, since the weights "
                "are non-negative and sum to one. The box asks along the axes alone; mixed-up "
                "columns show in other directions. Each column may be off by the slack of the "
                "box, so u.O by sum_c |u_c| slack_c.",
            .source = "support functions; Boyd and Vandenberghe 2004, section 2.5",
            .compares = Compares::bound,
            .needs = {},
            .cases = space(4096, 128, 64),
            .check = check_support,
            .file = "properties/convex_hull.cpp",
        },
        {
            .id = "convex_hull.membership",
            .statement = "Some non-negative weights of sum one reproduce the whole output row.",
            .statement_short = "some convex weights reproduce every output row",
            .why =
                "The weights themselves do: O_i = sum_j P_ij v_j. Non-negative least squares looks "
                "for any that reproduce the row, each column within its slack. Where it finds "
                "none its residual is a direction that separates the output from the hull "
                "(Farkas), and the violation is checked in that direction: the solver is not "
                "trusted.",
            .source = "Lawson and Hanson 1974, chapter 23; Farkas' lemma",
            .compares = Compares::bound,
            .needs = {},
            .cases = membership_space(),
            .check = check_membership,
            .file = "properties/convex_hull.cpp",
        },
    };
}

}  // namespace attest::laws
