// What may be done to the inputs without changing the outputs, or changing them in a known way.
// Every law here runs the kernel on both and needs no reference but the bounds of the two runs.

#include "properties/invariance_checks.hpp"
#include "properties/law/property.hpp"

namespace attest::laws {

namespace {

constexpr FeatureSet attention = FeatureSet::all().without(Feature::dropout);
/// Scores are sigma q.k plus what a constant does not touch: no rotation, no cap, no other logit.
constexpr FeatureSet shiftable =
    attention.without(Feature::softcap).without(Feature::rope).without(Feature::sink);
/// Keys have no place: nothing depends on where they stand or what lies between them.
constexpr FeatureSet placeless = attention.without(Feature::causal)
                                     .without(Feature::window)
                                     .without(Feature::documents)
                                     .without(Feature::cache)
                                     .without(Feature::paged)
                                     .without(Feature::alibi)
                                     .without(Feature::rope);

/// Distributions whose scores stay moderate: the bounds of two runs are then tight.
std::vector<ValueKind> moderate() {
    return {ValueKind::normal, ValueKind::uniform, ValueKind::small_int, ValueKind::flat,
            ValueKind::ties,   ValueKind::one_hot, ValueKind::const_v,   ValueKind::cancel_v};
}

CaseSpace space(FeatureSet allow) {
    return {.allow = allow, .kinds = moderate(), .scores_max = 2048, .len_max = 300, .dim_max = 64};
}

/// -1e5 in f32 leaves scores to 2^-7: with more channels the bounds would say nothing.
CaseSpace key_shift_space() {
    CaseSpace s = space(shiftable);
    s.dim_max = 24;
    return s;
}

CaseSpace bias_shift_space() {
    CaseSpace s = space(shiftable);
    s.require = FeatureSet(Feature::mask_additive);
    return s;
}

CaseSpace scale_space() {
    CaseSpace s = space(attention);
    s.require = FeatureSet(Feature::scale);
    return s;
}

CaseSpace doubled_space() {
    CaseSpace s = space(placeless.without(Feature::sink));
    s.scores_max = 1024;
    s.len_max = 150;
    return s;
}

CaseSpace neutral_space() {
    return space(attention.without(Feature::documents)
                     .without(Feature::cache)
                     .without(Feature::paged)
                     .without(Feature::alibi)
                     .without(Feature::rope));
}

CaseSpace regression_space() {
    CaseSpace s = space(shiftable.without(Feature::mask_additive).without(Feature::alibi));
    s.kinds.push_back(ValueKind::logit50);
    return s;
}

}  // namespace

std::vector<Property> invariance() {
    return {
        {
            .id = "invariance.value_linear",
            .statement = "The output is linear in the values: O(aV + bW) = a O(V) + b O(W).",
            .statement_short = "the output is linear in the values",
            .why =
                "The weights do not depend on the values, so O = P V is linear in V. Values are "
                "coarse enough for a V + b W to be exact. A power of two scales every product, sum "
                "and quotient exactly while none is subnormal: a deterministic kernel then returns "
                "the scaled output to the bit.",
            .source = "O = P V; IEEE 754-2019 scaling by the radix",
            .compares = Compares::bound,
            .needs = {},
            .cases = space(attention),
            .check = check_value_linear,
            .file = "properties/invariance.cpp",
        },
        {
            .id = "invariance.key_shift",
            .statement = "Adding one vector to every key changes no output and shifts L by s q.u.",
            .statement_short = "adding one vector to every key changes no output",
            .why =
                "S_ij becomes S_ij + sigma q_i.u for all j of a row: softmax does not change, "
                "log-sum-exp grows by that number. Keys and u are exact on a common grid, or u is "
                "one channel that shifts scores by up to -1e5, where clamps and sentinels for "
                "masked scores show.",
            .source = "shift invariance of softmax",
            .compares = Compares::bound,
            .needs = {},
            .cases = key_shift_space(),
            .check = check_key_shift,
            .file = "properties/invariance.cpp",
        },
        {
            .id = "invariance.bias_shift",
            .statement = "Adding a constant to a bias row changes no output and shifts L by it.",
            .statement_short = "adding a constant to a bias row changes no output",
            .why =
                "S_ij becomes S_ij + c_i for all j of a row: softmax does not change, L_i grows by "
                "c_i. Biases and constants are multiples of 1/4 whose sums are exact; -inf stays "
                "-inf.",
            .source = "shift invariance of softmax",
            .compares = Compares::bound,
            .needs = {},
            .cases = bias_shift_space(),
            .check = check_bias_shift,
            .file = "properties/invariance.cpp",
        },
        {
            .id = "invariance.scale_exchange",
            .statement = "Queries times c at a scale over c give the same; for c = 2^e to the bit.",
            .statement_short = "(cQ, scale/c) = (Q, scale)",
            .why =
                "sigma/c (cq).k = sigma q.k. For a power of two every product, partial sum and "
                "product with the scale is the same number times a power of two, so a kernel that "
                "claims determinism comes back to the same scores, and, where neither scale is "
                "one, the same bits; others to the same truth within both bounds.",
            .source = "definition of the score; IEEE 754-2019 scaling by the radix",
            .compares = Compares::bound,
            .needs = {},
            .cases = scale_space(),
            .check = check_scale_exchange,
            .file = "properties/invariance.cpp",
        },
        {
            .id = "invariance.duplicate",
            .statement = "Every key and value twice: the output stays, L grows by log 2.",
            .statement_short = "every key twice: same output, L + log 2",
            .why =
                "Every exponential comes twice in numerator and denominator: O does not change, "
                "the sum doubles. Keys stand side by side or the whole row is repeated, so tiles "
                "are cut elsewhere.",
            .source = "softmax over a multiset",
            .compares = Compares::bound,
            .needs = {},
            .cases = doubled_space(),
            .check = check_duplicate,
            .file = "properties/invariance.cpp",
        },
        {
            .id = "invariance.neutral_key",
            .statement = "Appending keys that no query may see changes nothing.",
            .statement_short = "appending hidden keys changes nothing",
            .why =
                "A hidden key adds exp(-inf) = 0 to both sums. The keys lie past every sequence's "
                "length, or a boolean or additive mask hides them; the kernel may cut its tiles "
                "elsewhere, so both runs are held to their bounds.",
            .source = "definition of the mask",
            .compares = Compares::bound,
            .needs = {},
            .cases = neutral_space(),
            .check = check_neutral_key,
            .file = "properties/invariance.cpp",
        },
        {
            .id = "invariance.kernel_regression",
            .statement = "The output is the Nadaraya-Watson estimate with kernel exp(scale q.k).",
            .statement_short = "the output is a Nadaraya-Watson estimate",
            .why =
                "O_i = sum_j kappa(q_i, k_j) v_j / sum_j kappa(q_i, k_j) with kappa = exp(sigma "
                "q.k): "
                "kernel regression of the values at the query. Evaluated as written, in interval "
                "arithmetic, without the maximum that attention kernels and the reference "
                "subtract.",
            .source = "Nadaraya 1964; Watson 1964; Tsai et al. 2019",
            .compares = Compares::bound,
            .needs = {},
            .cases = regression_space(),
            .check = check_kernel_regression,
            .file = "properties/invariance.cpp",
        },
    };
}

}  // namespace attest::laws
