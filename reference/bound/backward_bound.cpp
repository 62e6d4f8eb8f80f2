#include "reference/bound/backward_bound.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/entry_loops.hpp"
#include "reference/bound/rounding.hpp"

namespace attest::bound {

namespace {

/// No infinity times 0.
double times(double x, double y) {
    return x == 0 || y == 0 ? 0 : x * y;
}

}  // namespace

// P_ij = exp(S_ij - L_i) is recomputed: its relative error H = expm1(D) (1 + exp_error) has in D
// the score's error e, three units of |S - L| + 2e (the subtraction, and log2(e) after it) and the
// error of the stored L. Below the smallest normal number it may be off by that (pu).
//
// dP is a sum of dim_v products: off by G = gamma(dv+1) sum |dO v|. D comes from the stored O, off
// by F = sum |dO| E_O + gamma(dv+1) sum |dO| (|O| + E_O). dS = P (dP - D), with one rounding each
// for the subtraction and the product:
//   S = (P(1+H) + pu) (G + F + 2.1 ua (|dP - D| + G + F)) + (P H + pu) |dP - D| + 2 oma.
//
// With dLSE given, D is dO.O - L', L' = dLSE in natural units. L' is off by 3 units at most (it is
// converted; in base 2 log2(e) is rounded, and the product) and by oma. A kernel may add it in two
// places. To D, before or after: one term more in D's sum,
//   F = sum |dO| E_O + gamma(dv+2) (sum |dO| (|O| + E_O) + |L'|) + 3.1 ua |L'| + oma;
// or to dP, or to dP - dO.O: of the three numbers' sum, which has one more rounding then, that of a
// partial sum. It differs from the whole, dP - D, by one of the terms, dO.O or L', neither of which
// is above |D| + |L'|: R = 1.05 ua (|dP - D| + G + F + |D| + |L'|), beside 2.1 ua (...) above.
//
// With a cap, dX = dS (1 - t^2): t is within tanh's error (exp_error/2 + 7 ua) plus e/c, so the
// slope within f = 2.1 (that) + 3 ua, and at most 1: X = S (slope + f) + |dS| f.
//
// Rounding P and dS to the format of the second products adds up P(1+H) + 2 omp and up (|dS| + S) +
// 2 omp; there dS must not overflow. A sum over n rows (or keys) and the multiplication by scale
// cost gamma(n + 5). (README.md, "Gradients")
//
// A unit that multiplies matrices may take rounded operands (uf): dO and v in dP, each within uf,
// or omf below its numbers; dO, q and k in the sums over queries and keys. P and dS are rounded
// then too, which ugp and ugs are of.
//
// The gradient of a bias, a sink or a slope is a sum of dS itself (of dX where the cap comes after
// the bias), and a kernel may add up what it rounded for the second products. Relative to its size
// that is of_sum's; where it underflows it is off by 2 omp, and where it overflows by anything:
// both are dS's own here, so that a slope's term has them times its distance.
//
// In dQ, a sum over keys, two of these errors are common to the row: delta of D, |delta| <= F, and
// lambda of L, |lambda| <= E_L. With computed P = P e^lambda (1 + eta), |P eta| <= excess0, which
// is the excess without E_L,
//   dS~ = e^lambda P (1 + eta) (dP + g - D - delta) + roundings
//       = e^lambda dS - e^lambda delta P + e^lambda [ P eta (dP - D - delta) + P (1 + eta) g ] +
//       ...
// so that what is not common is at most
//   S0 = e^E_L [ (P + excess0)(G + 2.1 ua (|dP - D| + G + F)) + excess0 (|dP - D| + F) ]
//        + pu (|dP - D| + G + F)(1 + 2.1 ua) + 2 oma,
// and the common parts are e^E_L F |sum P slope k| and expm1(E_L) |sum dX k|.
void BackwardRow::weigh(const RowFacts& row, const BackwardFacts& facts) {
    const std::size_t entries = row.score.size();
    for (std::vector<double>* x : {&score_error_, &weight_, &of_p_, &by_queries_, &by_keys_,
                                   &alone_, &of_ds_, &of_dx_, &size_ds_, &size_dx_})
        x->resize(entries);
    const double ua = model_.ua, oma = model_.oma, up = model_.ugs;
    score_errors(row, score_error(model_, row.q_max, row.k_max), score_error_.data());
    const bool lse_given = facts.d_lse != 0;
    const double depth = model_.dot_depth(facts.dim_v) + 1 + model_.factor_roundings;
    const double of_sum = fed(chain_error(depth, ua), 2);
    const double of_d = facts.d_output +
                        chain_error(depth + lse_given, ua) * (facts.d_size + facts.d_output) +
                        2 * facts.dim_v * oma + lse_given * (3.1 * ua * facts.d_lse + oma);
    const double partial = lse_given ? std::abs(facts.d) + facts.d_lse : 0;
    const double over_queries = over(queries_, model_.factor_roundings);
    const double over_keys = over(keys_, 0);
    const double pu = 2 * model_.weight_floor;
    const double of_exp = facts.lse_error + std::log1p(model_.exp_error);
    const double overflow = std::log(model_.max_finite);
    of_lse_ = evaluation * std::expm1(facts.lse_error);
    of_d_ = evaluation * times(1 + of_lse_, of_d);
    overflows_ = model_.uf > 0 && !(facts.fed < model_.fed_max);
    for (std::size_t j = 0; j < entries; ++j) {
        // The reference may have lost a weight that a kernel still has.
        const double p =
            std::max(row.weight[j], evaluation * std::exp(std::min(0.0, row.score[j] - row.lse)));
        const double e = score_error_[j];
        const double d = e + 3 * ua * (std::abs(row.score[j] - row.lse) + 2 * e) +
                         ua * (std::abs(row.max) + std::abs(row.lse)) + of_exp;
        overflows_ = overflows_ || row.score[j] - row.lse + d >= overflow;
        // exp(S - L + d) even where p has underflowed.
        const auto excess_at = [&](double x) {
            return x < 1 ? p * (x * (1 + x))
                         : std::exp(std::min(700.0, row.score[j] - row.lse + x));
        };
        const double excess = excess_at(d), excess0 = excess_at(d - facts.lse_error);
        const double most = p + excess;
        of_p_[j] = evaluation * (excess + pu);
        const double rounds = model_.ugp > 0 ? model_.ugp * most + 2 * model_.omgp : 0;
        weight_[j] = evaluation * (excess + pu + rounds + over_queries * (most + rounds));

        const double apart = std::abs(facts.dp[j] - facts.d);
        const double of_dp = of_sum * facts.dp_size[j] + lost_in_products(facts);
        const double all = apart + of_dp + of_d;
        const double third = lse_given ? 1.05 * ua * (all + partial) : 0;
        const double roundings = 2.1 * ua * all + third;
        double s = times(most + pu, of_dp + of_d + roundings) + times(excess + pu, apart) + 2 * oma;
        double s0 = times(1 + of_lse_,
                          times(p + excess0, of_dp + roundings) + times(excess0, apart + of_d)) +
                    times(pu, all + roundings) + 2 * oma;
        double size = p * apart;
        of_ds_[j] = evaluation * (s + lost_in_rounding(size + s));
        size_ds_[j] = evaluation * (size + s);
        if (!facts.slope.empty()) {
            const double f = 2.1 * (model_.exp_error / 2 + 7 * ua + e / model_.softcap) + 3 * ua;
            s0 = times(s0, facts.slope[j]) + times(size + s, f);
            s = times(s, facts.slope[j] + f) + size * f;
            size *= facts.slope[j];
        }
        const double lost = lost_in_rounding(size + s);
        of_dx_[j] = evaluation * (s + lost);
        size_dx_[j] = evaluation * (size + s);
        s0 += times(up, size + s) + lost;
        s += times(up, size + s) + lost;
        by_queries_[j] = evaluation * (s + times(over_queries, size + s));
        by_keys_[j] = evaluation * (s + times(over_keys, size + s));
        alone_[j] = evaluation * (s0 + times(over_keys, size + s));
    }
}

/// Of a dP: what products lose where they underflow, or operands of a unit do; 1.01 for what the
/// other operand is off by.
double BackwardRow::lost_in_products(const BackwardFacts& facts) const noexcept {
    return 2 * facts.dim_v * model_.oma +
           1.01 * model_.omf * (facts.fed + facts.dim_v * model_.omf);
}

/// A sum over so many, of products with one operand that a unit may be fed, and the scale.
double BackwardRow::over(double terms, double more) const noexcept {
    return fed(chain_error(model_.sum_depth(terms) + 5 + more, model_.ua), 1) + model_.by_way;
}

double BackwardRow::fed(double error, double times) const noexcept {
    return (1 + error) * (1 + chain_error(times, model_.uf)) - 1;
}

double BackwardRow::lost_in_rounding(double size) const noexcept {
    if (model_.ugs == 0) return 0;
    return size < model_.gradient_max ? 2 * model_.omgs : infinite;
}

double BackwardRow::of_sum(double terms) const noexcept {
    return chain_error(model_.sum_depth(terms) + 5, model_.ua) + 2 * model_.ugs + model_.by_way;
}

double BackwardRow::absolute(double terms, double scale) const noexcept {
    return 2 * model_.oma * (1 + scale) * (terms + 1) + model_.omo;
}

}  // namespace attest::bound
