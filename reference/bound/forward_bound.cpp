#include "reference/bound/forward_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/bound/rounding.hpp"

namespace attest {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// The bounds themselves are evaluated in double, from sums of at most 2^30 terms of one sign
// (relative error below 2^-22), at p_j, s_j and O_c that are exact to 2^-17: 1.0001 covers both.
constexpr double evaluation = 1.0001;

/// Times the running maximum can rise, each time multiplying what was summed by a computed exp: at
/// most once a tile after the first, at most once a key after the first; two more multiplications
/// where parts are merged.
double rescale_count(const KernelModel& m, double keys) {
    double count = std::max(0.0, keys - 1);
    if (m.tile > 0) {
        const double tiles = std::ceil(static_cast<double>(m.len_kv) / static_cast<double>(m.tile));
        count = std::min(count, std::max(0.0, tiles - 1));
    }
    return count + (m.may_split ? 2 : 0);
}

/// At least p expm1(relative), and no infinity times 0 where p has underflowed and relative is
/// large. For 0 <= x < 1, expm1(x) <= x + (e - 2) x^2 <= x (1 + x).
double excess_of(double weight, double score, double lse, double relative) {
    if (relative < 1) return weight * (relative * (1 + relative));
    return std::exp(std::min(700.0, score - lse + relative));
}

}  // namespace

// Let W_j = p_j (1 + eta_j) be the computed weights before any sum, on a common factor.
//
// |eta_j| <= H_j = expm1(D_j + (1 + R) log1p(exp_error)), where D_j is the error of the exponent:
// the score's, e_j; the subtraction of the maximum and a later product with log2(e), 3 ua of the
// difference, which is at most (m - s_j) + 2 max e; ua |m| where m is scaled by itself before a
// fused multiply-add. The R rescalings of a running maximum telescope: their differences add up to
// m - s_j, so the one term covers them; each costs one exp more.
//
// A sink may also be applied afterwards, as O times sigmoid(L' - sink): then its exponent inherits
// the error of the LSE of the keys, 4 ua (|m| + |L| + 1) beyond what H and gl already hold.
//
// The kernel's sums are N = sum W_j (1+rho_j)(1+th_j) v_j and l = sum W_j (1+th'_j), with |rho_j|
// <= r_j the rounding of P, |th| <= gO, |th'| <= gl by chain_error over the longest path: n + 1
// addends (sink included), R rescalings, and for O a product, a division and the normalisation of P
// where that comes first. Parts of the keys merged through their LSE add a relative X: L_z = m_z +
// log l_z is known to 4 ua (|m| + log n + 1) twice, one exp and log each; l_z itself cancels.
//
// Since sum p_j (v_j - O) = 0:
//   N - O l = sum p_j eta_j (v_j - O) + sum W_j [((1+rho)(1+th) - 1) v_j - th' O],
// and l >= (1-gl)(1-h1), h1 = sum p_j H_j. So centred_j = p_j H_j, plain_j = p_j (1+H_j) ((1+gO)
// r_j
// + gO (1+up)). Where l sums the rounded P, rho_j is common to both sums and r_j moves to
// centred_j; l then loses sum p_j (1+H_j) r_j too. (numerics.md B.1)
void RowBound::weigh(const RowFacts& facts) {
    const std::size_t entries = facts.score.size();
    const double ua = model_.ua;
    sink_ = facts.sink;
    entries_ = facts.keys_counted();
    const double keys = entries_ - (sink_ ? 1 : 0);
    rescales_ = rescale_count(model_, keys);
    lse_exact_ = facts.lse;
    centred_.resize(entries);
    plain_.resize(entries);
    scratch_.resize(entries);

    const ScoreError error = score_error(model_, facts.q_max, facts.k_max);
    double error_max = 0, score_max = 0, magnitude_max = 0, bias_max = 0;
    for (std::size_t j = 0; j < entries; ++j) {
        double e = error.dot * facts.magnitude[j] + error.absolute;
        if (!facts.bias.empty()) e += error.bias * facts.bias[j];
        if (!facts.turn.empty()) e += error.angle * facts.turn[j];
        scratch_[j] = e;
        error_max = std::max(error_max, e);
        score_max = std::max(score_max, std::abs(facts.score[j]));
        magnitude_max = std::max(magnitude_max, facts.magnitude[j]);
        if (!facts.bias.empty()) bias_max = std::max(bias_max, facts.bias[j]);
    }
    // No intermediate may overflow: the dot product with and without its scale, log2(e) times it.
    const double unscaled = static_cast<double>(model_.dim_qk) * facts.q_max * facts.k_max;
    valid_ = std::max({magnitude_max, std::min(unscaled, magnitude_max / model_.scale), bias_max}) <
             model_.max_finite / 8;

    const double per_split =
        8 * ua * (score_max + std::log(entries_) + 2) + 6 * model_.exp_error + 4 * ua;
    const double merge = model_.may_split ? std::expm1(per_split) : 0;
    const double chain = entries_ + rescales_;
    sum_error_o_ = chain_error(chain + 4, ua) * (1 + merge) + merge;
    sum_error_l_ = chain_error(chain + 1, ua) * (1 + merge) + merge;

    const double exps = (1 + rescales_) * std::log1p(model_.exp_error);
    double largest = 0;
    for (std::size_t j = 0; j < entries; ++j) {
        double d = scratch_[j] + 3 * ua * ((facts.max - facts.score[j]) + 2 * error_max) +
                   ua * std::abs(facts.max) + exps;
        const bool is_sink = sink_ && j + 1 == entries;
        if (is_sink) d += 4 * ua * (std::abs(facts.max) + std::abs(facts.lse) + 1);
        scratch_[j] = d;
        largest = std::max(largest, d);
    }
    // Where no weight is off by a quarter, no element is off by the width of the hull.
    wants_hull_ = !(largest < 0.25);
    weigh_entries(facts, largest);

    const bool proof = valid_ && h1_ < 0.9 && sum_error_l_ < 0.9 && rounded_mass_ < 0.5;
    inverse_ =
        proof ? evaluation / ((1 - sum_error_l_) * (1 - h1_) * (1 - rounded_mass_)) : infinite;
    leak_ = 1.1 * (model_.up + sum_error_o_ + sum_error_l_) / (1 - sum_error_l_) +
            2 * entries_ * model_.omp;
    absolute_ = 2 * model_.oma * (entries_ + rescales_ + 4);
    // L = m + log l: the relative error of l in a logarithm, the error of log on at most log n, the
    // roundings of m, of L, and of their products with log2(e) or log(2).
    lse_ = infinite;
    if (!proof) return;
    lse_ = evaluation * (-std::log1p(-h1_) - std::log1p(-sum_error_l_) + 2 * rounded_mass_ +
                         1.5 * model_.log_error * std::log(entries_ + 1) +
                         4 * ua * (std::abs(facts.max) + std::abs(facts.lse)) + 2 * ua) +
           2 * entries_ * model_.weight_floor + 4 * model_.oma;
}

/// From the relative errors in scratch_: the coefficients, h1 and what rounding P may lose.
void RowBound::weigh_entries(const RowFacts& facts, double largest) {
    const std::size_t entries = facts.score.size();
    const bool small = largest<1, rounds = model_.up> 0;
    const bool common = model_.sums_rounded_weights;
    const double up = model_.up, omp = model_.omp;
    const double of_lost = 1 + sum_error_o_, of_most = sum_error_o_ * (1 + up);
    double h1 = 0, rounded = 0;
    for (std::size_t j = 0; j < entries; ++j) {
        const double p = facts.weight[j], r = scratch_[j];
        const double excess =
            small ? p * (r * (1 + r)) : excess_of(p, facts.score[j], facts.lse, r);
        const double most = p + excess;  // p (1 + H)
        // P may be rounded after it was divided by l: the least it can be is p itself.
        double lost = rounds ? std::min(most, std::max(up * most, omp)) : 0.0;
        if (sink_ && j + 1 == entries) lost = 0;
        const double n = facts.count.empty() ? 1 : facts.count[j];
        h1 += n * excess;
        rounded += n * lost;
        centred_[j] = excess + (common ? of_lost * lost : 0);
        plain_[j] = of_most * most + (common ? 0 : of_lost * lost);
    }
    h1_ = h1;
    rounded_mass_ = common ? rounded : 0;
}

// The weights are not negative whatever the error of their exponents, so N/l cannot leave the hull
// of the visible values by more than the roundings of P and of the sums: `hull`. A weight that
// underflows is off by weight_floor, an operation of the sums by oma, both against l >= 1.
Bound RowBound::output(double exact, const ColumnSums& sums) const noexcept {
    if (!valid_ || !(sums.value_total < model_.max_finite / 4)) return Bound(infinite);
    const double ua = model_.ua, size = std::abs(exact);
    double error = (sums.spread + sums.plain + sum_error_l_ * (1 + h1_) * size) * inverse_;
    if (!(error >= 0)) error = infinite;  // 0 times infinity
    if (wants_hull_ && sum_error_l_ < 0.5 && sum_error_o_ < 0.5) {
        const double low = sink_ ? std::min(0.0, sums.low) : sums.low;
        const double high = sink_ ? std::max(0.0, sums.high) : sums.high;
        const double largest = std::max(std::abs(low), std::abs(high));
        const double hull =
            evaluation * (std::max({high - exact, exact - low, 0.0}) + leak_ * largest);
        error = std::min(error, hull);
    }
    error += 2.5 * ua * (size + error);
    error += absolute_ + 2 * (model_.oma + model_.weight_floor) * sums.value_total;
    error += model_.uo * (size + error) + model_.omo;
    return Bound(error);
}

Bound RowBound::lse_base_two() const noexcept {
    constexpr double log2e = 1.4426950408889634;
    const double scaled = evaluation * log2e * lse_;
    return Bound(scaled + 2 * model_.ua * (log2e * std::abs(lse_exact_) + scaled));
}

}  // namespace attest
