// The reference laws: agreement with the truth, element by element, each within its own derived
// bound. They are the strongest laws and the only ones that need the whole reference; the others
// see the same kernel from sides where no reference is needed.

#include "properties/law/property.hpp"

namespace attest::laws {

namespace {

/// The outputs of one role alone: a law judges what it is named after.
TensorSet only(const TensorSet& observed, Role role) {
    TensorSet part;
    if (observed.has(role)) part.put(role, observed[role]);
    return part;
}

Verdict check_output(const Trial& trial) {
    return trial.compare(trial.problem(), trial.inputs(), only(trial.observed(), Role::o));
}

Verdict check_lse(const Trial& trial) {
    if (!trial.observed().has(Role::lse))
        return not_applicable("the kernel returned no log-sum-exp");
    return trial.compare(trial.problem(), trial.inputs(), only(trial.observed(), Role::lse));
}

Verdict check_decode(const Trial& trial) {
    return trial.compare(trial.problem(), trial.inputs(), trial.observed());
}

constexpr FeatureSet attention = FeatureSet::all().without(Feature::dropout);

// Score and length limits: tiles of 16 to 256 keys are crossed with remainders, while a case costs
// the double-double reference a few milliseconds.
CaseSpace any_case() {
    return {.allow = attention, .scores_max = 8192, .len_max = 300, .any_length = true};
}

CaseSpace cached_case() {
    CaseSpace space = any_case();
    space.require_any = {FeatureSet(Feature::cache), FeatureSet(Feature::cache, Feature::paged)};
    return space;
}

CaseSpace lse_case() {
    CaseSpace space = any_case();
    space.require = FeatureSet(Feature::lse);
    return space;
}

}  // namespace

std::vector<Property> reference() {
    return {
        {
            .id = "reference.output",
            .statement = "Every output element is within its own derived bound of the exact value.",
            .statement_short = "every output is within its derived bound",
            .why =
                "O_ic = sum_j P_ij v_jc is computed with a certified error. A kernel whose sums, "
                "exponentials and roundings are as declared can differ from it by no more than "
                "the bound, in whatever order it works; the bound is worst case and centred: an "
                "error common to all weights of a row cancels. Rounding to the output format is "
                "monotone, so the element must lie between the rounded ends. Undecided elements "
                "are computed again in wider arithmetic, disagreements confirmed in exact "
                "arithmetic.",
            .source = "Vaswani et al. 2017, eq. 1; Higham 2002, Accuracy and Stability, lemma 3.1",
            .compares = Compares::bound,
            .needs = {},
            .cases = any_case(),
            .check = check_output,
            .file = "properties/reference.cpp",
        },
        {
            .id = "reference.lse",
            .statement = "Every log-sum-exp is within its derived bound, and -inf for empty rows.",
            .statement_short = "every log-sum-exp is within its derived bound",
            .why = "L_i = log sum_j exp(S_ij), the sink included. Its absolute error is at most "
                   "the relative error of the sum and the roundings of maximum and logarithm. The "
                   "output does not show an error common to all weights of a row; L does.",
            .source = "Milakov and Gimelshein 2018; Dao et al. 2022, section 3.1",
            .compares = Compares::bound,
            .needs = {.lse = true},
            .cases = lse_case(),
            .check = check_lse,
            .file = "properties/reference.cpp",
        },
        {
            .id = "reference.decode",
            .statement = "Over a KV cache, contiguous or paged, every output is within its bound.",
            .statement_short = "over a KV cache every output is within its bound",
            .why = "Where the keys lie in memory does not enter the definition: a cache holds the "
                   "first cache.len keys of the sequence and the new ones after them, query i "
                   "stands at position n - q + i. So the outputs are those of attention on the "
                   "gathered keys, within the same bounds.",
            .source = "Kwon et al. 2023 (PagedAttention), section 4.1",
            .compares = Compares::bound,
            .needs = {},
            .cases = cached_case(),
            .check = check_decode,
            .file = "properties/reference.cpp",
        },
    };
}

}  // namespace attest::laws
