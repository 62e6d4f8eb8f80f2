// Dividing the scores by sqrt(head_dim) makes their variance one, whatever the dimension.
// law/score_sampling draws inputs with known moments, reads the scores off the weights and tests
// their mean square.

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/score_sampling.hpp"
#include "properties/law/statistics.hpp"

namespace attest::law {

namespace {

/// The problem at its default scale, which is 1/sqrt(D) rounded to f32, exact enough for any
/// sample; taken as it is.
Sampling at_default_scale(Problem problem, bool signs, std::uint64_t stream) {
    problem.scale.reset();
    const double deviation =
        effective_scale(problem) * std::sqrt(static_cast<double>(problem.dim_qk));
    return {std::move(problem), signs, 0, deviation, stream};
}

bool draws_signs(const Given& given, std::uint64_t stream) {
    return (given.random_bits(stream, 0) & 1) != 0;
}

std::string variance_is(const Sought& sought, const Samples& samples) {
    const Problem& problem = sought.samplings[0].problem;
    return fmt::format("scores of head_dim {}{} have variance {:.3g}; it should be {:.3g}",
                       problem.dim_qk, problem.scale ? " and scale 1" : "",
                       samples[0].mean() * sought.unit, sought.unit);
}

std::string variance_drifts(const Sought& sought, const Samples& samples) {
    return fmt::format(
        "the variance of the scores drifts from {:.3g} at head_dim {} to {:.3g} at {}",
        samples[0].mean(), sought.samplings[0].problem.dim_qk, samples[1].mean(),
        sought.samplings[1].problem.dim_qk);
}

constexpr const char* deviation_of_variance = "relative deviation of the variance of the scores";

Plan check_scaled(const Given& given) {
    const std::uint64_t stream = stream_of("variance.scaled");
    const Sampling sampling =
        at_default_scale(sampling_problem(given.problem(), given.problem().dim_qk),
                         draws_signs(given, stream), stream + 1);
    if (!given.supports(sampling.problem)) return not_taken(sampling.problem);
    return estimated(
        given, {.samplings = {sampling}, .name = deviation_of_variance, .sentence = variance_is});
}

CaseSpace space() {
    return {
        .allow = FeatureSet(Feature::gqa, Feature::layout, Feature::lse, Feature::dim_v,
                            Feature::splits, Feature::mixed_formats),
        .kinds = {ValueKind::normal},
        .cost = 64,
        .len_max = 32,
        .batch_max = 2,
        .limited_because = "its 512 scores are its own: of the case it takes heads and dimensions",
        .default_scale = true};
}

Property scaled() {
    return {
        .id = "variance.scaled",
        .statement = "Queries and keys of variance one give scores of variance one, for every D.",
        .statement_short = "scores of unit inputs have variance one",
        .why =
            "q.k is a sum of D products of variance one, so Var(q.k / sqrt(D)) = 1. Inputs are "
            "random signs or normal numbers; one key is zero, so log P_ij - log P_i0 = S_ij. Given "
            "the query the scores are independent sums with sub-Gaussian tails; Chernoff bounds on "
            "their mean square give a band that a correct kernel leaves with probability 1e-9, in "
            "whichever of five stages. Up to 65536 scores: a scale that is 3 % off shows. The "
            "first "
            "256 of each case (in f32 or f64 where the kernel takes those) are pooled over the "
            "cases, in a band as sharp as their number.",
        .source = "Vaswani et al. 2017, section 3.2.1, footnote 4",
        .compares = Compares::statistic,
        .cases = space(),
        .check = check_scaled,
        .pool = pooled_variance,
        .turned_red_by = {planted::scale_times(0.25), planted::scale_times(1.03),
                          planted::scale_times(0.97)},
    };
}

// With sigma = 1 scores of unit inputs spread by sqrt(D), too far for weights to show: the inputs
// are made smaller by a power of two, 2^-e each, and the variance D 2^-4e is multiplied back.
Plan check_unscaled(const Given& given) {
    const std::uint64_t stream = stream_of("variance.unscaled");
    Problem problem = sampling_problem(given.problem(), given.problem().dim_qk);
    problem.scale = 1;
    problem = canonical(problem);
    if (!given.supports(problem)) return not_applicable("the kernel does not take scale 1");
    const double dim = static_cast<double>(problem.dim_qk);
    const int exponent = static_cast<int>(std::ceil(std::log2(dim) / 4));
    const double deviation = std::ldexp(std::sqrt(dim), -2 * exponent);
    const Sampling sampling{problem, draws_signs(given, stream), exponent, deviation, stream + 1};
    return estimated(given, {.samplings = {sampling},
                             .unit = dim,
                             .name = deviation_of_variance,
                             .sentence = variance_is});
}

CaseSpace unscaled_space() {
    CaseSpace s = space();
    s.allow = s.allow.with(Feature::scale);
    s.require = FeatureSet(Feature::scale);
    s.default_scale = false;
    return s;
}

Property unscaled() {
    return {
        .id = "variance.unscaled",
        .statement = "With scale 1, queries and keys of variance one give scores of variance D.",
        .statement_short = "with scale 1 the scores have variance head_dim",
        .why =
            "q.k is a sum of D uncorrelated products of mean 0 and variance 1. Inputs are made "
            "smaller by a power of two, exactly, so that the weights still show the scores; the "
            "band is that of variance.scaled.",
        .source = "Vaswani et al. 2017, section 3.2.1, footnote 4",
        .compares = Compares::statistic,
        .cases = unscaled_space(),
        .check = check_unscaled,
        .pool = pooled_variance,
        .turned_red_by = {planted::scale_is(3)},
    };
}

// What drifts with D (a scale of 1/D, of a padded or of the model's dimension, none at all beyond
// some D) moves the ratio of two dimensions' variances.
Plan check_dimension_free(const Given& given) {
    // Of published models, of padded ones, and of what kernels round up to.
    constexpr std::int64_t dims[] = {8,  16,  24,  32,  40,  48,  64,  72, 80,
                                     96, 112, 128, 160, 192, 256, 320, 576};
    const std::uint64_t stream = stream_of("variance.dimension_free");
    std::vector<Sampling> taken;
    std::optional<Problem> refused;
    for (const std::int64_t dim : dims) {
        Sampling sampling = at_default_scale(sampling_problem(given.problem(), dim), true,
                                             stream + static_cast<std::uint64_t>(dim << 32));
        if (given.supports(sampling.problem))
            taken.push_back(std::move(sampling));
        else if (!refused)
            refused = std::move(sampling.problem);
    }
    if (taken.size() < 2) return not_taken(*refused);
    const auto last = static_cast<std::int64_t>(taken.size()) - 1;
    const auto other = static_cast<std::size_t>(1 + given.random_below(stream, 0, last));
    return estimated(given, {.samplings = {taken.front(), taken[other]},
                             .estimate = drift_of,
                             .name = "drift of the variance of the scores",
                             .sentence = variance_drifts});
}

void scale_one_over_dim(Question& q) {
    q.problem.scale = 1 / static_cast<double>(q.problem.dim_qk);
}

/// Scores so far apart that hardly a weight can be told from zero.
void no_scale_beyond_8(Question& q) {
    if (q.problem.dim_qk > 8) q.problem.scale = 8;
}

Property dimension_free() {
    return {
        .id = "variance.dimension_free",
        .statement = "The variance of the scores does not drift with the head dimension.",
        .statement_short = "the variance of the scores is the same for every D",
        .why =
            "Var(S) = 1 for the least D that the kernel takes and for any other, so the ratio of "
            "two estimates is one within their two bands. Scales of 1/D, of a padded head "
            "dimension or of the whole model's dimension drift with D.",
        .source = "Vaswani et al. 2017, section 3.2.1, footnote 4",
        .compares = Compares::statistic,
        .cases = space(),
        .check = check_dimension_free,
        .pool = pooled_drift,
        .turned_red_by = {{.id = "scale_one_over_dim", .asks = scale_one_over_dim},
                          {.id = "no_scale_beyond_8", .asks = no_scale_beyond_8}},
    };
}

}  // namespace

std::vector<Property> variance() {
    return {scaled(), unscaled(), dimension_free()};
}

}  // namespace attest::law
