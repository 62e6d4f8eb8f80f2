// The steps of the backward pass as they are right, for the model and for deviations to build on.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "properties/diagnosis/backward_model.hpp"
#include "reference/bound/rounding.hpp"

namespace attest::diagnosis {

// Score, its error and what the cap does to it, as reference/oracle/attention.hpp has them.
void set_score(ModelPair& pair, const ScoreParts& parts) {
    const BackwardCall& call = pair.row.call;
    const Problem& p = call.problem();
    const BackwardScore& f = pair.facts;
    const bool late = call.call.dialect.softcap == SoftcapPlace::after_bias;
    const double bias = (parts.mask ? f.mask : 0) + (parts.alibi ? f.alibi : 0);
    double x = call.call.scale * parts.scale * f.dot;
    if (late) x += bias;
    pair.biased = x;
    if (p.softcap > 0 && parts.cap) x = p.softcap * std::tanh(x / p.softcap);
    const bound::ScoreError e =
        bound::score_error(call.model, pair.row.facts.q_max, pair.row.facts.k_max);
    const double error = e.dot * f.magnitude * std::max(1.0, std::abs(parts.scale)) +
                         e.bias * (std::isfinite(bias) ? std::abs(bias) : 0) + e.angle * f.turn +
                         e.absolute;
    pair.capped = {x, error};
    pair.score = {late ? x : x + bias, error};
}

Near weight_of(Near score, const ModelRow& row) {
    const bound::KernelModel& m = row.call.model;
    const double x = score.value - row.lse.value;
    if (x == -infinite) return {};
    const double p = std::exp(x);
    const double d = score.error + row.lse.error + 3 * m.ua * (std::abs(x) + 2 * score.error) +
                     m.ua * (std::abs(row.facts.max) + std::abs(row.lse.value)) +
                     std::log1p(m.exp_error);
    return {p, p * std::expm1(std::min(d, 700.0)) + 2 * m.weight_floor};
}

bool of_last_packed(const ModelRow& row) {
    const Problem& p = row.call.problem();
    const auto& documents = p.mask.documents_q;
    if (documents.empty()) return row.b == p.batch - 1;
    return row.i >= std::accumulate(documents.begin(), documents.end() - 1, std::int64_t{0});
}

Near sum_of_channels(const ModelRow& row, const std::function<Near(std::size_t)>& term) {
    Near sum;
    double size = 0;
    for (std::size_t c = 0; c < row.facts.d_o.size(); ++c) {
        const Near x = term(c);
        sum = sum + x;
        size += most(x);
    }
    sum.error += row.call.of_products(static_cast<double>(row.facts.d_o.size())) * size;
    return sum;
}

Near largest_score(const ModelRow& row) {
    const BackwardCall& call = row.call;
    Near largest{-infinite, 0};
    if (call.problem().sink) largest.value = call.call.sinks[static_cast<std::size_t>(row.h)];
    for (std::int64_t j = 0; j < call.problem().len_kv; ++j) {
        const BackwardScore& facts = call.score(row.b, row.h, row.i, j);
        if (!facts.visible) continue;
        ModelPair pair{row, j, facts, {}, {}};
        set_score(pair, {});
        if (pair.score.value > largest.value) largest = pair.score;
    }
    return largest;
}

Near lse_of_keys(const ModelRow& row) {
    const BackwardCall& call = row.call;
    std::vector<Near> scores;
    double largest = -infinite, sum = 0, error = 0;
    for (std::int64_t j = 0; j < call.problem().len_kv; ++j) {
        const BackwardScore& facts = call.score(row.b, row.h, row.i, j);
        if (!facts.visible) continue;
        ModelPair pair{row, j, facts, {}, {}};
        set_score(pair, {});
        largest = std::max(largest, pair.score.value);
        scores.push_back(pair.score);
    }
    if (largest == -infinite) return {-infinite, 0};
    for (const Near& s : scores) {
        const double weight = std::exp(s.value - largest);
        sum += weight;
        // What the weight's own roundings cost is that of weight_of().
        error += weight * (s.error + 3 * call.model.ua * std::abs(s.value - largest));
    }
    const double lse = largest + std::log(sum);
    const double roundings = call.of_sum(static_cast<double>(scores.size()));
    // A sink may stand in the maximum that weights are taken against, and not in their sum: where
    // it is so much larger that f32, down to exp(-87), loses weights, nothing is known.
    constexpr double reach = 80;
    const double sink = call.problem().sink ? call.call.sinks[static_cast<std::size_t>(row.h)] : 0;
    if (sink - largest > reach) return {lse, infinite};
    return {lse, error / sum + roundings + std::log1p(call.model.exp_error) +
                     3 * call.model.ua * (std::abs(largest) + std::abs(lse) + std::abs(sink))};
}

Near plain_probability(const ModelPair& pair) {
    return weight_of(pair.score, pair.row);
}

Near plain_ds(const ModelPair& pair, Near delta) {
    const bound::KernelModel& m = pair.row.call.model;
    // 2.1: the subtraction and the product; 3.2 with dLSE's partial sum (backward_bound.cpp).
    const double roundings = pair.row.facts.d_lse.value == 0 ? 2.1 : 3.2;
    return rounded(pair.p * rounded(pair.dp - delta, roundings * m.ua, 0), 0, 2 * m.oma);
}

Near plain_slope(const ModelPair& pair) {
    const bound::KernelModel& m = pair.row.call.model;
    if (!(m.softcap > 0)) return {1, 0};
    const double t = pair.capped.value / m.softcap;
    return {1 - t * t,
            // Of backward_bound.cpp: the slope is within 2.1 times what t is off by.
            2.1 * (m.exp_error / 2 + 7 * m.ua + pair.score.error / m.softcap) + 3 * m.ua};
}

Near delta_of_weights(const ModelRow& row, double (*kept)(const ModelPair&)) {
    Near sum;
    double size = 0;
    const std::int64_t keys = row.call.problem().len_kv;
    for (std::int64_t j = 0; j < keys; ++j) {
        const BackwardScore& facts = row.call.score(row.b, row.h, row.i, j);
        if (!facts.visible) continue;
        ModelPair pair{row, j, facts, {}, {}};
        set_score(pair, {});
        const Near term = kept(pair) * (plain_probability(pair) * facts.dp);
        sum = sum + term;
        size += most(term);
    }
    sum.error += row.call.of_sum(static_cast<double>(keys)) * size;
    return sum;
}

double as_forward_kept(const ModelPair& pair) {
    return pair.facts.kept;
}

Near plain_slope_term(const ModelPair& pair, Near of_bias) {
    return -(std::abs(pair.facts.ahead) * of_bias);
}

Near rounded_to(Near x, Precision format) {
    const double low = round_to(x.value - x.error, format),
                 high = round_to(x.value + x.error, format);
    return {(low + high) / 2, (high - low) / 2};
}

}  // namespace attest::diagnosis
