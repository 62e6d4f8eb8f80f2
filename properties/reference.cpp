// The reference laws: agreement with the truth, element by element, each within its own derived
// bound. They are the strongest laws and the only ones that need the whole reference; the others
// see the same kernel from sides where no reference is needed.

#include "properties/law/property.hpp"
#include "properties/reference_checks.hpp"

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

// A sink enters the running maximum at the start, at the end or not at all: no structure is
// declared for it. Only half formats round the weights.
CaseSpace structured_case() {
    CaseSpace space = any_case();
    space.allow = space.allow.without(Feature::sink).without(Feature::splits);
    space.formats = {Precision::f16, Precision::bf16};
    space.any_length = false;  // no tile holds the keys of a long context
    return space;
}

// What the averages are taken over: whole heads of normal numbers, no mask. Against a kernel that
// computes in f64 no reference number in f64 is finer.
CaseSpace averaged_case() {
    return {.allow = FeatureSet(Feature::layout, Feature::lse, Feature::dim_v),
            .formats = {Precision::f32, Precision::f16, Precision::bf16},
            .kinds = {ValueKind::normal},
            .scores_max = 4096,
            .len_max = 300,
            .default_scale = true};
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
            .tells = Tells::truth,
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
            .tells = Tells::truth,
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
            .tells = Tells::truth,
            .needs = {},
            .cases = cached_case(),
            .check = check_decode,
            .file = "properties/reference.cpp",
        },
        {
            .id = "reference.structure",
            .statement = "Where tile and rounding of the weights are declared, the output is what "
                         "they compute.",
            .statement_short = "the output is what the declared tile computes",
            .why =
                "A declared tile fixes the running maximum each weight is taken against, so the "
                "rounding of P is part of the answer and no error: it is replayed, and only "
                "weights that straddle a rounding boundary are paid for. A disagreement says that "
                "the kernel does something else than it declares: its class is structure.",
            .source = "Dao et al. 2022, algorithm 1; numerics.md B.4",
            .compares = Compares::bound,
            .tells = Tells::truth,
            .cases = structured_case(),
            .check = check_structure,
            .file = "properties/reference.cpp",
        },
        {
            .id = "reference.rounding",
            .statement = "A mean that is known exactly is rounded to the nearest output.",
            .statement_short = "an exact mean is rounded to the nearest output",
            .why = "With all keys zero every weight is exp(0) = 1. Values are whole numbers and "
                   "their count a power of two: every sum and the quotient are exact in any order, "
                   "and the rounding to the output format is the only one left. Numerics declares "
                   "it to nearest, ties to even; its class is structure.",
            .source = "IEEE 754-2019, section 4.3.1; numerics.md C.3",
            .compares = Compares::property,
            .tells = Tells::truth,
            .cases = {.allow = averaged_case().allow.with(Feature::gqa), .scores_max = 1024},
            .check = check_rounding,
            .file = "properties/reference.cpp",
        },
        {
            .id = "reference.probable",
            .statement = "Every output is as near to the exact value as random roundings leave it.",
            .statement_short = "every output is within its probable bound",
            .why =
                "If rounding errors are independent and unbiased, their sum exceeds lambda times "
                "the root of the sum of their squares with probability 2 exp(-3 lambda^2 / 2). "
                "Equal scores and equal roundings are grouped, lost addends counted whole. The "
                "model is an assumption: its class is suspect.",
            .source = "Higham and Mary 2019; Azuma 1967; numerics.md B.3",
            .compares = Compares::statistic,
            .tells = Tells::truth,
            .cases = any_case(),
            .check = check_probable,
            .file = "properties/reference.cpp",
        },
        {
            .id = "reference.error_budget",
            .statement = "Over many rows errors are no larger than predicted, and lean nowhere.",
            .statement_short = "errors are as large as predicted and unbiased",
            .why =
                "The root mean square of the errors over their predicted standard deviations is "
                "about one. Along a direction in which a wrong kernel errs (gain, temperature, an "
                "even share of weight, a key of score zero) the scores of independent rows have "
                "fair signs, so their self-normalised sum exceeds 6 with probability 3e-8. "
                "Biases that stay inside every single bound show here; the class is suspect.",
            .source = "Efron 1969; numerics.md B.5, C.4",
            .compares = Compares::statistic,
            .tells = Tells::truth,
            .cases = averaged_case(),
            .check = check_error_budget,
            .file = "properties/reference.cpp",
        },
    };
}

}  // namespace attest::laws
