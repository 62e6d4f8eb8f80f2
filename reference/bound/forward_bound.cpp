#include "reference/bound/forward_bound.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/entry_loops.hpp"
#include "reference/bound/far_keys.hpp"
#include "reference/bound/rounding.hpp"

namespace attest::bound {

namespace {

/// -log(1 - x) or a little more: for 0 <= x <= 2^-12 it is below x + x^2.
double log_loss(double x) {
    return x < 0x1p-12 ? x * (1 + x) : -std::log1p(-x);
}

/// How often the maximum of the scores taken one after another rises, or may seem to where each is
/// off by at most `slack` / 2.
template <typename Iterator>
double rises_of(Iterator score, Iterator last, double slack) {
    double count = 0, most = score == last ? 0 : *score;
    for (; score != last; ++score) {
        if (*score + slack < most) continue;
        ++count;
        most = std::max(most, *score);
    }
    return std::max(0.0, count - 1);  // the first is no rise
}

/// Times the running maximum can rise, each time multiplying what was summed by a computed exp (by
/// exp(0) = 1, exactly, where it does not rise): at most once a key after the first. A kernel that
/// declares its tile takes them in order, from the first key or from the last: then at most once a
/// tile after the first, of which n keys meet at most ceil((n - 1) / tile), wherever tiles begin;
/// and, where no part of the keys starts a maximum of its own, as often as the row's scores rise.
double most_rises(const KernelModel& m, double keys) {
    const double count = std::max(0.0, keys - 1);
    if (m.tile == 0) return count;
    const double after_first = static_cast<double>(m.len_kv - 1) / static_cast<double>(m.tile);
    return std::clamp(std::ceil(after_first), 0.0, count);
}

/// Roundings an addend passes in a sum of n: n in any order; where every `chunk` of the keys are
/// summed by themselves, those of its chunk and one for each chunk's sum that is added, of which
/// the keys, visible or not, make at most one more than len_kv / chunk rounded up. Nothing is
/// claimed of parts of the keys, whose number is the kernel's own.
double sum_depth(const KernelModel& m, double n) {
    const double whole = m.sum_depth(n);
    if (m.chunk == 0 || m.may_split) return whole;
    const double chunk = static_cast<double>(m.chunk);
    return std::min(whole,
                    m.sum_depth(chunk) + std::ceil(static_cast<double>(m.len_kv) / chunk) + 2);
}

double keys_of(const RowOutline& row) {
    return row.entries - (row.sink ? 1 : 0);
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
// addends (sink included; where a chunk is declared the depth of its sums), R rescalings, and for O
// a product, a division and the normalisation of P where that comes first. Parts of the keys merged
// through their LSE add a relative X: L_z = m_z + log l_z is known to 4 ua (|m| + log n + 1) twice,
// one exp and log each; l_z itself cancels.
//
// Since sum p_j (v_j - O) = 0:
//   N - O l = sum p_j eta_j (v_j - O) + sum W_j [((1+rho)(1+th) - 1) v_j - th' O],
// and l >= (1-gl)(1-h1), h1 = sum p_j H_j. So centred_j = p_j H_j,
// plain_j = p_j (1+H_j) ((1+gO) r_j + gO (1+up)).
// Of a rounded v_j, or part, th has a factor more, uv. Where l sums the rounded P, rho_j is common,
// r_j moves to centred_j and l loses sum p_j (1+H_j) r_j. (README.md, "Any order of operations")
EntryRule RowBound::begin(const RowOutline& row, const RowMaxima& maxima, double rises) {
    const double ua = model_.ua;
    row_ = row;
    maxima_ = maxima;
    rescales_ = most_rises(model_, keys_of(row));
    if (wants_rises(row)) rescales_ = std::min(rescales_, rises);
    // A sink is one more score. Two more multiplications where parts are merged.
    rescales_ += (row.sink ? 1 : 0) + (model_.may_split ? 2 : 0);
    // No intermediate may overflow: the dot product with and without its scale, log2(e) times it.
    const double unscaled = static_cast<double>(model_.dim_qk) * row.q_max * row.k_max;
    const double centred = model_.centred_keys ? model_.scale * unscaled : 0;
    const double product =
        model_.centred_keys ? 2 * unscaled : std::min(unscaled, maxima_.magnitude / model_.scale);
    valid_ = std::max({maxima_.magnitude + centred, product, maxima_.bias}) < model_.score_max / 8;
    // q is rounded with its scale and log2(e), or without.
    if (model_.uq > 0 && !(row.q_max * std::max(1.0, 1.45 * model_.scale) < model_.query_max))
        valid_ = false;
    if (!(maxima_.bias < model_.bias_max)) valid_ = false;
    if (!model_.feeds(row.q_max, row.k_max, model_.value_max)) valid_ = false;
    // A key or value less the mean of all is at most twice the largest, and rounded as weights are.
    if (model_.centred_keys && !(2 * evaluation * row.k_max < model_.centred_max)) valid_ = false;
    if (model_.centred_values && !(2 * evaluation * model_.value_max < model_.centred_max))
        valid_ = false;

    const double per_split =
        8 * ua * (maxima_.score + std::log(row.entries + 1) + 2) + 6 * model_.exp_error + 4 * ua;
    const double merge = model_.may_split ? std::expm1(per_split) : 0;
    const double chain = sum_depth(model_, row.entries) + rescales_;
    sum_error_o_ = chain_error(chain + 4 + model_.factor_roundings, ua) * (1 + merge) + merge;
    sum_error_o_ += model_.uv * (1 + sum_error_o_);
    sum_error_l_ = chain_error(chain + 1, ua) * (1 + merge) + merge;

    const double of_lost = 1 + sum_error_o_;
    EntryRule rule;
    rule.common = 6 * ua * maxima_.error + ua * (std::abs(row.max) + centred) +
                  (1 + rescales_) * exp_exponent_;
    rule.per_distance = 3 * ua;
    rule.max = row.max;
    rule.lse = row.lse;
    rule.up = model_.up;
    rule.omp = model_.omp;
    rule.of_most = sum_error_o_ * (1 + model_.up);
    (model_.sums_rounded_weights ? rule.lost_centred : rule.lost_plain) = of_lost;
    // A weight loses at least up of itself where it is rounded.
    plain_share_ = rule.of_most + rule.lost_plain * model_.up;
    return rule;
}

EntryRule RowBound::of_sink(EntryRule rule, double unit) {
    rule.common += 4 * unit * (std::abs(rule.max) + std::abs(rule.lse) + 1);
    rule.up = rule.omp = 0;
    return rule;
}

bool RowBound::wants_rises(const RowOutline& row) const noexcept {
    constexpr double worth_counting = 16;  // below, the pass costs more than it can gain
    return model_.tile > 0 && !model_.may_split &&
           most_rises(model_, keys_of(row)) > worth_counting;
}

void RowBound::end(const EntryTotals& totals) {
    const double ua = model_.ua;
    // Where no weight is off by a quarter, no element is off by the width of the hull.
    wants_hull_ = !(totals.relative_max < 0.25);
    h1_ = totals.h1;
    rounded_mass_ = model_.sums_rounded_weights ? totals.lost : 0;
    centred_sum_ = totals.centred_sum;
    // From 0.9 on the divisions below would prove nothing worth having.
    const bool proof = valid_ && h1_ < 0.9 && sum_error_l_ < 0.9 && rounded_mass_ < 0.5;
    inverse_ =
        proof ? evaluation / ((1 - sum_error_l_) * (1 - h1_) * (1 - rounded_mass_)) : infinite;
    // Weights that sum to (1 + up)(1 + gO)/(1 - gl) at most; 1.1 covers the product up gO.
    leak_ = (1.1 * (model_.up + sum_error_o_ + sum_error_l_) + 2.1 * model_.epsilon) /
                (1 - sum_error_l_) +
            2 * row_.entries * model_.omp;
    absolute_ = 2 * model_.oma * (row_.entries + rescales_ + 4);
    shifted_ = model_.centred_values ? shifted_values() : fed_values();
    // L = m + log l: the relative error of l in a logarithm, the error of log on at most log n, the
    // roundings of m, of L, and of their products with log2(e) or log(2).
    lse_ = infinite;
    if (!proof) return;
    // scale q.mean(k), at most A, is added to it again: a product like any other, whose error that
    // of every centred score already holds once (score_error: their magnitude grows by A), and the
    // sum.
    const double of_mean =
        model_.centred_keys
            ? totals.relative_max + 8 * ua *
                                        (1 + model_.scale * static_cast<double>(model_.dim_qk) *
                                                 row_.q_max * row_.k_max)
            : 0;
    lse_ = evaluation * (log_loss(h1_) + log_loss(sum_error_l_) + 2 * rounded_mass_ +
                         1.5 * model_.log_error * std::log(row_.entries + 1) +
                         4 * ua * (std::abs(row_.max) + std::abs(row_.lse)) + 2 * ua +
                         model_.epsilon * inverse_ * (model_.may_split ? 2 : 1) + of_mean) +
           2 * row_.entries * model_.weight_floor + 4 * model_.oma;
}

// Values that underflow where a unit is fed them, or outputs of parts where they are rounded: omv
// of each, among weights that sum to (1+up)(1+gO)/(1-gl) at most.
double RowBound::fed_values() const noexcept {
    if (model_.uv == 0) return 0;
    const double heaviest = (1 + model_.up) * (1 + sum_error_o_) / (1 - sum_error_l_);
    return sum_error_l_ < 1 ? evaluation * (1 + model_.uo) * heaviest * model_.omv : infinite;
}

// Values less their mean: O = sum w_j (v_j - m) + m for whatever vector m is taken off and added
// back, |m| <= M, the largest value of all keys. The theorem and the hull then hold for v_j - m:
// v_j - O is what it was, |v_j - m| <= |v_j| + M, |O - m| <= |O| + M, the hull's largest value 2M.
// Beyond what they give for the values themselves: M sum plain_j, with sum p_j (1+H_j) <= 1 + h1;
// M of_size; M leak; n M in the total; each difference rounded to ua and to the format of P, among
// weights that sum to (1+up)(1+gO)/(1-gl) at most; the quotient of 2M, and the sum with m.
double RowBound::shifted_values() const noexcept {
    const double most = model_.value_max, ua = model_.ua, up = model_.up;
    const double heaviest = (1 + up) * (1 + sum_error_o_) / (1 - sum_error_l_);
    const double plain = (1 + h1_) * ((1 + sum_error_o_) * up + sum_error_o_ * (1 + up)) +
                         row_.entries * (1 + sum_error_o_) * model_.omp;
    const double of_theorem = inverse_ * most * (plain + sum_error_l_ * (1 + h1_));
    const double of_rounding =
        heaviest * (2 * (most * (ua + up + ua * up) + model_.oma + model_.omp + model_.omv));
    const double of_quotient =
        8 * ua * most + 2 * most * model_.epsilon * inverse_ * (model_.may_split ? 2 : 1);
    const double of_total = 2 * (model_.oma + model_.weight_floor) * row_.entries * most;
    const bool in_range = 2 * row_.entries * most < model_.max_finite / 8;
    const double all = of_theorem + 2 * leak_ * most + of_rounding + of_quotient + of_total;
    return in_range && all < infinite ? evaluation * (1 + model_.uo) * all : infinite;
}

void RowBound::weigh(const RowFacts& every) {
    RowFacts facts = every;
    const FarKeys far(every, score_error(model_, every.q_max, every.k_max));
    if (!far.score.empty()) {
        facts.score = far.score;
        facts.bias = far.bias;
    }
    const std::size_t entries = facts.score.size(), keys = entries - (facts.sink ? 1 : 0);
    centred_.resize(entries);
    plain_.resize(entries);
    scratch_.resize(entries);
    const RowOutline row = facts.outline();
    const RowMaxima maxima =
        score_errors(facts, score_error(model_, row.q_max, row.k_max), scratch_.data());
    double rises = infinite;
    if (wants_rises(row) && facts.count.empty()) {
        const double slack = rise_slack(maxima, model_.ua);
        const auto scores = facts.score.first(keys);
        rises = std::max(rises_of(scores.begin(), scores.end(), slack),
                         rises_of(scores.rbegin(), scores.rend(), slack));
    }
    EntryTask task{begin(row, maxima, rises)};
    task.score = facts.score.data();
    task.weight = facts.weight.data();
    task.count = facts.count.empty() ? nullptr : facts.count.data();
    task.exponent = scratch_.data();
    task.centred = centred_.data();
    task.plain = plain_.data();
    EntryTotals totals;
    coefficients(task, 0, keys, totals);
    if (row.sink) {
        static_cast<EntryRule&>(task) = of_sink(task, model_.ua);
        coefficients(task, keys, entries, totals);
    }
    end(totals);
}

// The weights are not negative whatever the error of their exponents, so N/l cannot leave the hull
// of the visible values by more than the roundings of P and of the sums: `hull`. A weight that
// underflows is off by weight_floor, an operation of the sums by oma, both against l >= 1.
void RowBound::outputs(std::size_t n, const double* exact, const ColumnArrays& sums,
                       double* bounds) const noexcept {
    std::fill(bounds, bounds + n, infinite);
    if (sums.low != nullptr && wants_hull_ && sum_error_l_ < 0.5 && sum_error_o_ < 0.5) {
        for (std::size_t c = 0; c < n; ++c) {
            const double low = row_.sink ? std::min(0.0, sums.low[c]) : sums.low[c];
            const double high = row_.sink ? std::max(0.0, sums.high[c]) : sums.high[c];
            const double largest = std::max(std::abs(low), std::abs(high));
            const double beyond = std::max({high - exact[c], exact[c] - low, 0.0});
            bounds[c] = evaluation * (beyond + leak_ * largest);
        }
    }
    // N / (l + epsilon): off by epsilon / l of itself, 1 / l being at most inverse; twice where
    // parts are merged.
    const double of_quotient = model_.epsilon > 0 ? model_.ua + model_.epsilon * inverse_ *
                                                                    (model_.may_split ? 2 : 1) / 2.5
                                                  : model_.ua;
    output_bounds({.exact = exact,
                   .spread = sums.spread,
                   .plain = sums.plain,
                   .total = sums.value_total,
                   .of_size = sum_error_l_ * (1 + h1_),
                   .inverse = inverse_,
                   .ua = of_quotient,
                   .absolute = absolute_,
                   .of_total = 2 * (model_.oma + model_.weight_floor),
                   .uo = model_.uo,
                   .omo = model_.omo,
                   .total_max = valid_ ? model_.max_finite / 4 : 0},
                  n, bounds);
    if (shifted_ > 0)
        for (std::size_t c = 0; c < n; ++c) bounds[c] += shifted_;
}

Bound RowBound::output(double exact, const ColumnSums& sums) const noexcept {
    double bound = 0;
    outputs(1, &exact, {&sums.spread, &sums.plain, &sums.value_total, &sums.low, &sums.high},
            &bound);
    return Bound(bound);
}

Bound RowBound::lse_base_two() const noexcept {
    constexpr double log2e = 1.4426950408889634;
    const double scaled = evaluation * log2e * lse_;
    return Bound(scaled + 2 * model_.ua * (log2e * std::abs(row_.lse) + scaled));
}

}  // namespace attest::bound
