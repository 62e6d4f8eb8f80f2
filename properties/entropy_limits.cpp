// The limits of temperature: the mean over the largest scores, and over all visible keys.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/hull_slack.hpp"
#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/scores.hpp"
#include "properties/law/tally.hpp"
#include "properties/law/visibility.hpp"

namespace attest::law {

namespace {

/// The mean of a value over some keys, enclosed.
bound::ExpectedElement mean_of(const Tensor& values, const Row& row, std::int64_t head_kv,
                               const std::vector<std::int64_t>& keys, std::int64_t channel) {
    double sum = 0, magnitude = 0;
    for (const std::int64_t j : keys) {
        const double v = values.at(row.batch, head_kv, j, channel);
        sum += v;
        magnitude += std::abs(v);
    }
    const double n = static_cast<double>(keys.size());
    return {sum / n, (n + 2) * 0x1p-53 * magnitude / n, 0};
}

double spread_of(const Tensor& values, const Row& row, std::int64_t head_kv,
                 const std::vector<std::int64_t>& keys, std::int64_t channel) {
    double low = values.at(row.batch, head_kv, keys[0], channel), high = low;
    for (const std::int64_t j : keys) {
        low = std::min(low, values.at(row.batch, head_kv, j, channel));
        high = std::max(high, values.at(row.batch, head_kv, j, channel));
    }
    return high - low;
}

/// The rows of a call against the mean over `chosen` keys of theirs; the weights of the row differ
/// from uniform ones over those keys by at most `off` in sum.
template <typename Choose>
void compare_means(Tally& tally, const Run& call, const char* which, Choose&& choose) {
    const Problem& problem = call.problem();
    const Visibility visibility = call.visibility();
    const Tensor& values = call.inputs()[Role::v];
    for (const Row& row : all_rows(problem)) {
        const std::int64_t g = row.head / group_size(problem);
        std::vector<std::int64_t> visible;
        for (std::int64_t j = 0; j < problem.len_kv; ++j)
            if (visibility.sees(row, j)) visible.push_back(j);
        if (visible.empty()) continue;
        double off = 0;
        const std::vector<std::int64_t> chosen = choose(row, visible, off);
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            bound::ExpectedElement mean = mean_of(values, row, g, chosen, c);
            mean.error += evaluation * off * spread_of(values, row, g, visible, c);
            mean.bound = element(call, row, c).bound;
            tally.element(output(call, row, c), mean, problem.format_o, output_at(row, c), [&] {
                return fmt::format("the output of {} is not the mean over the {}",
                                   name_of(problem, row), which);
            });
        }
    }
}

// Hot: all scores within e of each other, so n P_j lies between exp(-2e) and exp(2e); the weights
// miss uniform ones by expm1(2e) in sum. Cold: scores are whole numbers times g; the keys with the
// largest have equal scores, all others lose at least g: their weights sum to at most n exp(-g).
Problem at_its_scale(const Given& given) {
    Problem problem = given.problem();
    problem.scale.reset();
    return canonical(problem);
}

Judgement judge_limits(const Trial& trial) {
    const Problem problem = at_its_scale(trial);
    const std::uint64_t stream = stream_of("entropy.limits");
    Tally tally(problem);

    TensorSet hot = trial.inputs();
    // Far below one, and of at least four significant bits in f16, whose least number is 2^-24.
    const int tiny = problem.format_q == Precision::f16 ? -20 : -60;
    std::uint64_t index = 0;
    hot.put(Role::q, tensor_of(problem, Role::q,
                               [&](std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
                                   return std::ldexp(trial.random_normal(stream, index++), tiny);
                               }));
    const ScoreBounds small(problem, hot);
    compare_means(tally, Run(trial, problem, hot), "keys it sees, at equal scores",
                  [&](const Row& row, const std::vector<std::int64_t>& visible, double& off) {
                      off = std::expm1(2 * small.of(row));
                      return visible;
                  });

    TensorSet cold = trial.inputs();
    const double scale = effective_scale(problem);
    const int large = static_cast<int>(std::ceil(std::log2(40 / scale)));
    cold.put(Role::q, grid_tensor(trial, problem, Role::q, stream + 1, 3, std::ldexp(1.0, large)));
    cold.put(Role::k, grid_tensor(trial, problem, Role::k, stream + 2, 3, 1));
    const Scores scores(problem, cold);
    compare_means(tally, Run(trial, problem, cold), "keys that score highest",
                  [&](const Row& row, const std::vector<std::int64_t>& visible, double& off) {
                      // Whole numbers times a power of two: the sums are exact.
                      double most = scores.sum(row, visible[0]);
                      for (const std::int64_t j : visible)
                          most = std::max(most, scores.sum(row, j));
                      std::vector<std::int64_t> best;
                      for (const std::int64_t j : visible)
                          if (scores.sum(row, j) == most) best.push_back(j);
                      off =
                          static_cast<double>(visible.size()) * std::exp(-std::ldexp(scale, large));
                      return best;
                  });
    return tally.judgement(nothing_visible);
}

Plan check_limits(const Given& given) {
    if (!given.supports(at_its_scale(given)))
        return not_applicable("the kernel does not take its default scale");
    return judge_limits;
}

CaseSpace limits_space() {
    return {.allow = scaled_alone.without(Feature::rope),
            .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int, ValueKind::wide},
            .cost = 8,
            .default_scale = true};
}

Property limits() {
    return {
        .id = "entropy.limits",
        .statement = "Hot weights are uniform over visible keys, cold ones over the best keys.",
        .statement_short = "temperature limits: mean of all, mean of the best",
        .why =
            "As tau grows all scores tend to each other: O is the plain mean of the visible values "
            "within expm1(2 max|S|) of their spread. As tau falls only the largest scores count, "
            "ties alike: scores are whole numbers times a gap g >= 40, so all others weigh at most "
            "n exp(-g) together.",
        .source = "limits of softmax in its temperature",
        .compares = Compares::bound,
        .cases = limits_space(),
        .check = check_limits,
        .turned_red_by = {planted::last_key_scores_zero()},
    };
}

}  // namespace

std::vector<Property> entropy_limits() {
    return {limits()};
}

}  // namespace attest::law
