// Dividing the scores by sqrt(head_dim) makes their variance one, whatever the dimension. The laws
// draw inputs with known moments, read the scores off the weights and test their mean square. The
// test is exact for every sample size: a correct kernel fails a case with probability 1e-9 at most.

#include "properties/law/property.hpp"
#include "properties/variance_checks.hpp"

namespace attest::laws {

namespace {

CaseSpace space() {
    return {.allow = FeatureSet(Feature::gqa, Feature::layout, Feature::lse, Feature::dim_v,
                                Feature::splits, Feature::mixed_formats),
            .kinds = {ValueKind::normal},
            .scores_max = 256,
            .len_max = 32,
            .dim_max = 128,
            .default_scale = true};
}

CaseSpace unscaled_space() {
    CaseSpace s = space();
    s.allow = s.allow.with(Feature::scale);
    s.require = FeatureSet(Feature::scale);
    s.default_scale = false;
    return s;
}

}  // namespace

std::vector<Property> variance() {
    return {
        {
            .id = "variance.scaled",
            .statement =
                "Queries and keys of variance one give scores of variance one, for every D.",
            .statement_short = "scores of unit inputs have variance one",
            .why =
                "q.k is a sum of D products of variance one, so Var(q.k / sqrt(D)) = 1. Inputs are "
                "random signs or normal numbers; one key is zero, so log P_ij - log P_i0 = S_ij. "
                "Given the query the scores are independent sums with sub-Gaussian tails; Chernoff "
                "bounds on their mean square give a band that a correct kernel leaves with "
                "probability 1e-9.",
            .source = "Vaswani et al. 2017, section 3.2.1, footnote 4",
            .compares = Compares::statistic,
            .needs = {},
            .cases = space(),
            .check = check_scaled,
            .file = "properties/variance.cpp",
        },
        {
            .id = "variance.unscaled",
            .statement =
                "With scale 1, queries and keys of variance one give scores of variance D.",
            .statement_short = "with scale 1 the scores have variance head_dim",
            .why =
                "q.k is a sum of D uncorrelated products of mean 0 and variance 1. Inputs are made "
                "smaller by a power of two, exactly, so that the weights still show the scores; "
                "the "
                "band is that of variance.scaled.",
            .source = "Vaswani et al. 2017, section 3.2.1, footnote 4",
            .compares = Compares::statistic,
            .needs = {},
            .cases = unscaled_space(),
            .check = check_unscaled,
            .file = "properties/variance.cpp",
        },
        {
            .id = "variance.dimension_free",
            .statement = "The variance of the scores does not drift with the head dimension.",
            .statement_short = "the variance of the scores is the same for every D",
            .why =
                "Var(S) = 1 for D = 8 and for any other D, so the ratio of two estimates is one "
                "within their two bands. Scales of 1/D, of a padded head dimension or of the whole "
                "model's dimension drift with D.",
            .source = "Vaswani et al. 2017, section 3.2.1, footnote 4",
            .compares = Compares::statistic,
            .needs = {},
            .cases = space(),
            .check = check_dimension_free,
            .file = "properties/variance.cpp",
        },
    };
}

}  // namespace attest::laws
