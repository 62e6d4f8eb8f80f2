#pragma once
// Bound (a) of forward_bound.hpp, entry by entry, in scalars: for where the entries are out of the
// host's reach. The loops of entry_loops.hpp compute the same many at a time.

#include <algorithm>
#include <cmath>

namespace attest::bound {

/// How exact the numbers must be that a bound is evaluated at (relative; scores: absolute). The
/// factor that covers it is `evaluation` in rounding.hpp.
constexpr double facts_accuracy = 0x1p-17;

/// A row apart from its entries.
struct RowOutline {
    double entries = 0;  ///< keys counted, and the sink
    double max = 0, lse = 0;
    double q_max = 0, k_max = 0;
    bool sink = false;
};

/// The largest of what the entries of a row have (of score: |s_j|), and the least score.
struct RowMaxima {
    double error = 0;  ///< of the kernel's score
    double score = 0, score_least = 0, magnitude = 0, bias = 0, turn = 0;
};

/// Two scores are off by e_i + e_j, and exact to facts_accuracy; scaling and log2(e) round each
/// once more.
constexpr double rise_slack(const RowMaxima& maxima, double unit) {
    return 2 * (maxima.error + facts_accuracy) + 8 * unit * maxima.score;
}

/// What every entry's coefficients are made of.
struct EntryRule {
    double common = 0, per_distance = 0, max = 0, lse = 0;
    double up = 0, omp = 0;
    double of_most = 0, lost_centred = 0, lost_plain = 0;
};

struct EntryTotals {
    double relative_max = 0;  ///< D_j
    double h1 = 0;            ///< sum of excess_j, at least p_j expm1(D_j)
    double lost = 0;          ///< sum of what rounding P may lose, lost_j
    double centred_sum = 0;
};

struct EntryCoefficients {
    double centred = 0, plain = 0;
};

/// For an entry of weight p whose score may be off by `error`: with
/// D = error + per_distance (max - score) + common, most = p + excess and
/// lost = min(most, max(up most, omp)),
///   centred = excess + lost_centred lost,   plain = of_most most + lost_plain lost.
/// Adds to totals.
constexpr EntryCoefficients weigh_entry(const EntryRule& rule, double score, double p, double error,
                                        EntryTotals& totals) {
    const double r = error + rule.per_distance * (rule.max - score) + rule.common;
    // expm1(r) <= r (1 + r) below 1; beyond, p e^r from the score, as p may have underflowed.
    const double excess =
        r < 1 ? p * (r * (1 + r)) : std::exp(std::min(700.0, score - rule.lse + r));
    const double most = p + excess;
    const double lost = std::min(most, std::max(rule.up * most, rule.omp));
    const EntryCoefficients out{excess + rule.lost_centred * lost,
                                rule.of_most * most + rule.lost_plain * lost};
    totals.relative_max = std::max(totals.relative_max, r);
    totals.h1 += excess;
    totals.lost += lost;
    totals.centred_sum += out.centred;
    return out;
}

}  // namespace attest::bound
