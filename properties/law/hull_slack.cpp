#include "properties/law/hull_slack.hpp"

#include <algorithm>
#include <cmath>

#include "properties/law/interval.hpp"
#include "reference/bound/rounding.hpp"

namespace attest::law {

namespace {

/// Norms of the innermost rows of a tensor, rounded up: the sum of squares and the root are off by
/// less than (dim + 2) 2^-53 of themselves, and dim stays below 2^20.
std::vector<double> row_norms(const Tensor& tensor) {
    constexpr double rounding_up = 1 + 0x1p-30;
    const std::int64_t dim = tensor.shape()[3];
    std::vector<double> norms;
    const std::vector<double> values = tensor.to_doubles();
    for (std::size_t at = 0; dim > 0 && at < values.size(); at += static_cast<std::size_t>(dim)) {
        double sum = 0;
        for (std::size_t c = 0; c < static_cast<std::size_t>(dim); ++c)
            sum += values[at + c] * values[at + c];
        norms.push_back(std::sqrt(sum) * rounding_up);
    }
    return norms;
}

double largest_finite(const Tensor& tensor) {
    double most = 0;
    for (const double x : tensor.to_doubles())
        if (std::isfinite(x)) most = std::max(most, std::abs(x));
    return most;
}

}  // namespace

ScoreBounds::ScoreBounds(const Problem& problem, const TensorSet& inputs)
    : heads_q_(problem.heads_q),
      heads_kv_(problem.heads_kv),
      queries_(problem.len_q),
      scale_(std::abs(effective_scale(problem))),
      softcap_(problem.softcap),
      query_norm_(row_norms(inputs[Role::q])) {
    const std::vector<double> keys = row_norms(inputs[Role::k]);
    for (std::int64_t head = 0; head < problem.batch * heads_kv_; ++head) {
        double most = 0;
        for (std::int64_t j = 0; j < problem.len_kv; ++j)
            most = std::max(most, keys[static_cast<std::size_t>(head * problem.len_kv + j)]);
        key_norm_max_.push_back(most);
    }
    if (problem.mask.tensor.kind == MaskKind::additive) bias_ += largest_finite(inputs[Role::mask]);
    if (problem.alibi)
        bias_ += largest_finite(inputs[Role::alibi_slopes]) *
                 static_cast<double>(problem.len_q + problem.len_kv);
    if (problem.sink) bias_ = std::max(bias_, largest_finite(inputs[Role::sinks]));
}

double ScoreBounds::of(const Row& row) const noexcept {
    const std::int64_t head_kv = row.head / (heads_q_ / heads_kv_);
    const std::int64_t query = (row.batch * heads_q_ + row.head) * queries_ + row.query;
    double score = scale_ * query_norm_[static_cast<std::size_t>(query)] *
                   key_norm_max_[static_cast<std::size_t>(row.batch * heads_kv_ + head_kv)];
    if (softcap_ > 0) score = std::min(score, softcap_);
    return score + bias_;
}

// In the model of forward_bound.cpp the computed output is N / l with
//   N = sum W_j (1+rho_j)(1+th_jc) v_jc,   l = sum W_j (1+th'_j),   W_j >= 0,
// |rho| <= up, |th| <= gO, |th'| <= gl, whatever the errors of the exponents. So w_j =
// W_j (1+rho_j)(1+th_jc) / l >= 0, and since every factor is positive
//   |sum_j w_j - 1| <= (1+up)(1+gO)/(1-gl) - 1.
// (A matrix unit's loss is no factor of an addend but at most gO of the sum of their sizes: that is
// within the same slack.) Division and normalisation are among the roundings of gO. Parts merged
// through their LSE weigh in sum within expm1(merge) of one (forward_bound.cpp). Weights below the
// format of P lose omp each against l >= 1 - gl; sums and products that underflow lose oma each,
// flushed weights weight_floor times their value. A coarser output costs uo more.
HullSlack hull_slack(const bound::KernelModel& model, std::int64_t keys, double score_max,
                     double values_total) {
    const double n = static_cast<double>(keys), ua = model.ua;
    double rescales = std::max(0.0, n - 1);
    if (model.tile > 0)
        rescales = std::min(rescales, std::ceil(static_cast<double>(model.len_kv) /
                                                static_cast<double>(model.tile)));
    if (model.may_split) rescales += 2;
    const double exponent =
        8 * ua * (score_max + std::log(n + 1) + 2) + 6 * model.exp_error + 4 * ua;
    const double merge = model.may_split ? std::expm1(exponent) : 0;
    const double chain = model.sum_depth(n) + rescales;
    const double sum_o = bound::chain_error(chain + 6, ua),
                 sum_l = bound::chain_error(chain + 3, ua);
    // Relative to the values alone it would be 0 where they are.
    constexpr HullSlack nothing_claimed{0, infinite};
    if (!(sum_o < 0.5) || !(sum_l < 0.5) || !(values_total < model.max_finite / 4))
        return nothing_claimed;
    // A score of half precision may overflow, with its scale or without: then nothing is claimed.
    const double largest = score_max * std::max(1.0, 1 / model.scale);
    if (model.coarse_steps && !(largest < model.score_max / 8)) return nothing_claimed;
    // Nor beside a bias near the largest number of all, which a product with log2(e) passes.
    if (std::isfinite(score_max) && score_max >= model.max_finite / 8) return nothing_claimed;
    // Nor where parts are merged by weights that may overflow.
    if (!(merge < infinite)) return nothing_claimed;
    HullSlack slack;
    slack.relative = (1 + model.up) * (1 + model.uv) * (1 + sum_o) * (1 + merge) / (1 - sum_l) - 1;
    // What is added to l, at most 1 / (1 - gl) of itself a time, takes that part off the weights.
    slack.relative += 2.1 * model.epsilon / (1 - sum_l);
    slack.relative = evaluation * (slack.relative + 2 * n * model.omp + model.uo);
    slack.absolute = 2 * model.oma * (n + rescales + 4) +
                     2 * (model.oma + model.weight_floor) * values_total + model.omo;
    // Values that a unit is fed, and outputs of parts, are rounded: within uv, or omv below the
    // numbers there.
    if (model.uv > 0) slack.absolute += 1.01 * (1 + slack.relative) * model.omv;
    if (!model.feeds(0, 0, model.value_max)) return nothing_claimed;
    if (model.uf > 0 && !(score_max < model.fed_max)) return nothing_claimed;
    if (!model.centred_values) return slack;
    // Values less a mean, and the mean added again (forward_bound.cpp): the hull holds for the
    // differences, the largest of which is 2M; each is rounded to ua and to the format of P.
    const double most = model.value_max, heaviest = 1 + slack.relative;
    slack.absolute +=
        evaluation * (1 + model.uo) *
        (2 * slack.relative * most + 8 * ua * most +
         heaviest * 2 * (most * (ua + model.up + ua * model.up) + model.oma + model.omp) +
         2 * (model.oma + model.weight_floor) * n * most);
    if (!(2 * n * most < model.max_finite / 8)) slack.absolute = infinite;
    return slack;
}

}  // namespace attest::law
