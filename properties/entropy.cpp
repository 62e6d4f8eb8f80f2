// Temperature: dividing the scores by tau spreads the weights. The entropy of a row never falls as
// tau grows, at a rate that is the variance of the scores; its limits are the mean over the largest
// scores and the mean over all visible keys.

#include "properties/entropy_checks.hpp"
#include "properties/law/property.hpp"

namespace attest::laws {

namespace {

/// The temperature must divide the whole score: nothing is added to it, nothing caps it.
constexpr FeatureSet scaled_alone = FeatureSet::all()
                                        .without(Feature::dropout)
                                        .without(Feature::sink)
                                        .without(Feature::softcap)
                                        .without(Feature::mask_additive)
                                        .without(Feature::alibi);

CaseSpace monotone_space() {
    return {
        .allow = scaled_alone,
        .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int, ValueKind::flat,
                  ValueKind::ties, ValueKind::logit50, ValueKind::ascending, ValueKind::one_hot},
        .scores_max = 512,
        .len_max = 32,
        .dim_max = 32};
}

CaseSpace derivative_space() {
    return {.allow = FeatureSet(Feature::gqa, Feature::dim_v, Feature::layout, Feature::lse,
                                Feature::splits, Feature::mixed_formats),
            .kinds = {ValueKind::normal},
            .scores_max = 512,
            .len_max = 16,
            .dim_max = 32,
            .default_scale = true};
}

CaseSpace limits_space() {
    return {.allow = scaled_alone.without(Feature::rope),
            .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int, ValueKind::wide},
            .scores_max = 2048,
            .len_max = 300,
            .dim_max = 24,
            .default_scale = true};
}

}  // namespace

std::vector<Property> entropy() {
    return {
        {
            .id = "entropy.monotone",
            .statement = "The entropy of a query's weights does not fall as temperature rises.",
            .statement_short = "the entropy of the weights grows with temperature",
            .why = "For P proportional to exp(s/tau), dH/dtau = Var(s)/tau^3 >= 0. Every weight is "
                   "known within an interval, -x log x is enclosed on each, and the sums must not "
                   "contradict H(2 tau) >= H(tau).",
            .source = "Jaynes 1957; derivative of the Gibbs entropy",
            .compares = Compares::bound,
            .needs = {},
            .cases = monotone_space(),
            .check = check_monotone,
            .file = "properties/entropy.cpp",
        },
        {
            .id = "entropy.derivative",
            .statement = "The entropy changes with temperature at the rate Var(s)/tau^3.",
            .statement_short = "entropy changes by the variance of the scores",
            .why = "With b = 1/tau, dH/db = -b Var(s), and Var(s) = Var(log P)/b^2 is read off the "
                   "weights themselves. Between b = 1 and 9/8 the trapezium rule gives the change "
                   "of H "
                   "with a remainder bounded by the range of the scores (cumulants of a bounded "
                   "variable). Queries are whole numbers, so that 9/8 of them is exact.",
            .source = "dH/dtau = Var(s)/tau^3; trapezium rule with remainder",
            .compares = Compares::bound,
            .needs = {},
            .cases = derivative_space(),
            .check = check_derivative,
            .file = "properties/entropy.cpp",
        },
        {
            .id = "entropy.limits",
            .statement = "Hot weights are uniform over visible keys, cold ones over the best keys.",
            .statement_short = "temperature limits: mean of all, mean of the best",
            .why = "As tau grows all scores tend to each other: O is the plain mean of the visible "
                   "values within expm1(2 max|S|) of their spread. As tau falls only the largest "
                   "scores count, ties alike: scores are whole numbers times a gap g >= 40, so all "
                   "others weigh at most n exp(-g) together.",
            .source = "limits of softmax in its temperature",
            .compares = Compares::bound,
            .needs = {},
            .cases = limits_space(),
            .check = check_limits,
            .file = "properties/entropy.cpp",
        },
    };
}

}  // namespace attest::laws
