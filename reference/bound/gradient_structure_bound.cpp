#include "reference/bound/gradient_structure_bound.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/rounding.hpp"

namespace attest::bound {

namespace {

KernelModel unrounded(KernelModel model) {
    model.ugp = model.omgp = model.ugs = model.omgs = 0;
    return model;
}

NumberFormat of_weights(const Numerics& n, NumberFormat declared) {
    return declared == NumberFormat::same ? n.weights : declared;
}

}  // namespace

bool gradient_structure_declared(const Problem& problem, const Numerics& numerics) {
    if (!numerics.gradient_structure) return false;
    const KernelModel m = resolve(problem, numerics);
    // The replay is in double: of no use to who sums in double.
    constexpr double sums_least = 0x1p-40;
    return !m.coarse_steps && !m.rope && problem.dropout.p == 0 && m.ua > sums_least &&
           m.ugh == 0 && (m.ugp > 0 || m.ugs > 0);
}

GradientStructureRow::GradientStructureRow(const Problem& problem, const Numerics& n)
    : model_(resolve(problem, n)),
      row_(unrounded(model_), static_cast<double>(problem.len_q * group_size(problem)),
           static_cast<double>(problem.len_kv)),
      weight_{resolved(of_weights(n, n.gradient_weights), problem.format_q), model_.ugp,
              model_.omgp},
      score_{resolved(of_weights(n, n.gradient_scores), problem.format_q), model_.ugs,
             model_.omgs} {
    const auto of_sum = [&](double terms) {
        return chain_error(model_.sum_depth(terms) + 5, model_.ua) + model_.by_way;
    };
    of_queries_ = of_sum(static_cast<double>(problem.len_q * group_size(problem)));
    of_keys_ = of_sum(static_cast<double>(problem.len_kv));
}

// A kernel rounds a number within `error` of `exact`. Rounding is monotone, so that what it gets
// lies between the rounded ends: mostly one number. By way of f32 the number itself is off by that
// unit more. A format that flushes may give 0 for what is below its smallest normal number.
void GradientStructureRow::put(RoundedEntries& to, const Rounding& how, std::size_t j, double exact,
                               double error) const {
    if (how.unit == 0) {
        to.value[j] = exact;
        to.reach[j] = error;
    } else {
        error += model_.by_way * (std::abs(exact) + error);
        double low = round_to(exact - error, how.format),
               high = round_to(exact + error, how.format);
        if (model_.flushes && low > 0 && low < how.underflow) low = 0;
        if (model_.flushes && high < 0 && -high < how.underflow) high = 0;
        to.value[j] = round_to(exact, how.format);
        to.reach[j] = evaluation * std::max(high - to.value[j], to.value[j] - low);
    }
    if (!std::isfinite(to.value[j])) to.value[j] = 0, to.reach[j] = infinite;
    if (!(to.reach[j] >= 0)) to.reach[j] = infinite;
}

// P = exp(S - L) and dX = P (dP - D) cap', with L and D of what was handed over, are off by what
// BackwardRow says of a kernel that rounds neither.
void GradientStructureRow::weigh(const RowFacts& row, const BackwardFacts& facts,
                                 const OwnEntries& own) {
    row_.weigh(row, facts);
    const std::size_t entries = row.score.size();
    for (RoundedEntries* x : {&weights_, &scores_}) {
        x->value.resize(entries);
        x->reach.resize(entries);
    }
    for (std::size_t j = 0; j < entries; ++j) {
        const double p = row.weight[j];
        const double dx = p * (facts.dp[j] - facts.d) * (facts.slope.empty() ? 1 : facts.slope[j]);
        put(weights_, weight_, j, p, row_.of_p()[j] + own.weight * p);
        put(scores_, score_, j, dx, row_.of_dx()[j] + own.score[j]);
        if (row_.overflows()) weights_.reach[j] = scores_.reach[j] = infinite;
    }
}

}  // namespace attest::bound
