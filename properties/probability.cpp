// The weights are a distribution over the visible keys. All of it is read off the kernel by the
// values it is given: a constant column shows the sum of the weights, unit columns the weights
// themselves.

#include "properties/law/property.hpp"
#include "properties/probability_checks.hpp"

namespace attest::laws {

namespace {

constexpr FeatureSet attention = FeatureSet::all().without(Feature::dropout);
/// A sink takes part of the weight: what is left does not sum to one.
constexpr FeatureSet sinkless = attention.without(Feature::sink);

CaseSpace space(FeatureSet allow) {
    return {.allow = allow, .scores_max = 4096, .len_max = 300, .dim_max = 80};
}

CaseSpace hiding_space() {
    CaseSpace s = space(attention);
    s.require_any = {FeatureSet(Feature::causal),    FeatureSet(Feature::window),
                     FeatureSet(Feature::lens_kv),   FeatureSet(Feature::mask_bool),
                     FeatureSet(Feature::documents), FeatureSet(Feature::mask_additive)};
    return s;
}

/// Scores are sigma q.k with a cap: the order of two keys follows from them alone.
CaseSpace order_space() {
    CaseSpace s = space(
        sinkless.without(Feature::mask_additive).without(Feature::alibi).without(Feature::rope));
    s.admits = [](const Problem& p) { return p.len_kv > 1 && value_dim(p) > 1; };
    return s;
}

}  // namespace

std::vector<Property> probability() {
    return {
        {
            .id = "probability.row_sum",
            .statement = "The weights of every query that sees a key sum to one.",
            .statement_short = "the weights of a query sum to one",
            .why = "Softmax divides every weight by the sum of the weights. A column of V that is "
                   "one constant c comes out as c sum_j P_ij = c. Errors of the scores move weight "
                   "between keys but not the sum, so the bound holds only the roundings of the two "
                   "sums and of P.",
            .source = "Vaswani et al. 2017, eq. 1",
            .compares = Compares::bound,
            .needs = {},
            .cases = space(sinkless),
            .check = check_row_sum,
            .file = "properties/probability.cpp",
        },
        {
            .id = "probability.nonnegative",
            .statement = "No weight is negative, -0 or NaN.",
            .statement_short = "no weight is negative, -0 or NaN",
            .why =
                "exp is positive and so is the sum of the weights. A column of V that is zero but "
                "for one key shows that key's weight; products and sums of non-negative numbers "
                "round to non-negative numbers, so no bound is needed.",
            .source = "Vaswani et al. 2017, eq. 1; IEEE 754-2019, 6.3",
            .compares = Compares::property,
            .needs = {},
            .cases = space(attention),
            .check = check_nonnegative,
            .file = "properties/probability.cpp",
        },
        {
            .id = "probability.masked_zero",
            .statement = "The weight of a hidden key is exactly zero.",
            .statement_short = "the weight of a hidden key is exactly zero",
            .why = "A hidden key's score is -inf and exp(-inf) = 0. A column of V that is large at "
                   "keys a row must not see, and zero at all it sees, must come out as exact zero "
                   "for that row: sums of zeros are zero in any order and any format.",
            .source = "Vaswani et al. 2017, section 3.2.3",
            .compares = Compares::property,
            .needs = {},
            .cases = hiding_space(),
            .check = check_masked_zero,
            .file = "properties/probability.cpp",
        },
        {
            .id = "probability.order",
            .statement = "A key that scores higher weighs no less; equal keys weigh the same.",
            .statement_short = "a key that scores higher weighs no less",
            .why = "P_ij = exp(S_ij) / Z_i with one Z_i for the row, and exp is increasing: S_ij > "
                   "S_ik implies P_ij > P_ik, and equal keys have equal scores. The scores are "
                   "computed with a proven error, so that only pairs whose order is certain are "
                   "compared; each weight is known within the bound of the output that shows it.",
            .source = "monotonicity of softmax",
            .compares = Compares::bound,
            .needs = {},
            .cases = order_space(),
            .check = check_order,
            .file = "properties/probability.cpp",
        },
        {
            .id = "probability.single_key",
            .statement = "A query that sees one key returns that key's value.",
            .statement_short = "one visible key: the output is its value",
            .why = "The one weight is exp(0)/exp(0) = 1, so O_i = v_j. What may differ is the "
                   "weight's "
                   "rounding on its way into the two sums, which cancels but for a few roundings "
                   "of the accumulator: after rounding to half or bfloat16, v_j to the bit.",
            .source = "definition of softmax",
            .compares = Compares::bound,
            .needs = {},
            .cases = space(sinkless),
            .check = check_single_key,
            .file = "properties/probability.cpp",
        },
    };
}

}  // namespace attest::laws
