#include "reference/bound/structure_bound.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/entry_loops.hpp"
#include "reference/bound/rounding.hpp"

namespace attest::bound {

bool structure_declared(const KernelModel& model, std::int64_t splits) noexcept {
    return !model.coarse_steps && model.up > 0 && model.tile > 0 &&
           (splits == 1 || model.len_kv <= model.tile);
}

// The running maximum before and in each tile, in the kernel's order. A tile's maximum may exceed
// the running one, as computed, if it comes within 2 max e plus the rounding of the maximum itself.
void StructureRow::replay_maxima(const RowFacts& facts, std::span<const std::int64_t> visible) {
    const std::size_t keys = visible.size();
    const double slack = 2 * error_max_ + 4 * model_.ua * std::abs(facts.max);
    std::vector<double> tile_max, tile_entries;
    std::vector<std::size_t> tile_of(keys);
    std::int64_t last = -1;
    for (std::size_t step = 0; step < keys; ++step) {
        const std::size_t j = order_ == TileOrder::ascending ? step : keys - 1 - step;
        const std::int64_t tile = visible[j] / model_.tile;
        if (tile != last) tile_max.push_back(-infinite);
        last = tile;
        tile_of[j] = tile_max.size() - 1;
        tile_max.back() = std::max(tile_max.back(), facts.score[j]);
    }
    std::vector<double> running(tile_max.size()), rises(tile_max.size(), 0.0);
    double most = -infinite;
    std::vector<std::uint8_t> raises(tile_max.size(), 0);
    for (std::size_t t = 0; t < tile_max.size(); ++t) {
        raises[t] = t > 0 && tile_max[t] + slack > most ? 1 : 0;
        most = std::max(most, tile_max[t]);
        running[t] = most;
    }
    // A sink enters the maximum at the start, at the end, or not at all: one rise more.
    double later = facts.sink ? 1 : 0;
    for (std::size_t t = tile_max.size(); t-- > 0;) {
        rises[t] = later;
        later += raises[t];
    }
    for (std::size_t j = 0; j < keys; ++j) {
        frame_[j] = running[tile_of[j]];
        rises_[j] = rises[tile_of[j]];
    }
    if (facts.sink) {
        frame_[keys] = facts.max;
        rises_[keys] = 1;
    }
}

// Let w_j = exp(s_j - m_t) in the frame of its tile, P_j = rd(w_j), f_t = exp(m_t - m), and
// l = sum f_t w_j (or f_t P_j where l sums rounded weights). The structure's output is
// O = sum f_t P_j v_j / l.
//
// The kernel's w_j is within a relative H_j = expm1(e_j + max e + 3 ua (m_t - s_j) + ua |m| +
// log1p(exp_error)) (forward_bound.cpp). Rounding is monotone, so its P_j lies in
// [rd(w(1-H)), rd(min(1, w(1+H)))]: mostly one number. a_j is how far that interval reaches from
// P_j. Its f_t is exactly 1 where the maximum cannot rise any more, and else within
// F_t = expm1(2 max e + 3 ua (m - m_t) + rises log1p(exp_error)). So, with the chains of
// forward_bound.cpp for the sums (gO, gl),
//   |N - sum f P v| <= sum f [ (P (F + gO (1+F)) + a (1+F)(1+gO) ] |v|       =: l slack,
//   |l' - l| <= l (h + gl (1+h)), h = sum f (w (H + F + H F)) / l  (or sum f (P F + a (1+F)) / l),
// and |N/l' - O| <= ( sum slack |v| + (h + gl (1+h)) |O| ) / ((1-h)(1-gl)).
void StructureRow::round_weights(const RowFacts& facts, double own_weight) {
    const std::size_t entries = facts.score.size();
    const double ua = model_.ua;
    const bool common = model_.sums_rounded_weights;
    const double one_exp = std::log1p(model_.exp_error);
    double l = 0, l_error = 0;
    for (std::size_t j = 0; j < entries; ++j) {
        const bool is_sink = facts.sink && j + 1 == entries;
        const double w = std::exp(facts.score[j] - frame_[j]);
        const double f = std::exp(frame_[j] - facts.max);
        double d = score_error_[j] + error_max_ + 3 * ua * (frame_[j] - facts.score[j]) +
                   ua * std::abs(facts.max) + one_exp + 4 * own_weight + model_.by_way;
        if (is_sink) d += 4 * ua * (std::abs(facts.max) + std::abs(facts.lse) + 1);
        const double h = std::expm1(std::min(d, 700.0));
        const double rise =
            rises_[j] == 0
                ? 0
                : std::expm1(std::min(700.0, 2 * error_max_ + 3 * ua * (facts.max - frame_[j]) +
                                                 rises_[j] * one_exp));
        const double p = round_to(w, weights_);
        double least = round_to(w * (1 - std::min(h, 1.0)), weights_);
        if (w * (1 - h) < model_.weight_floor) least = 0;  // exp may have returned 0
        if (model_.flushes && least < model_.omp) least = 0;
        const double most = round_to(std::min(1.0, w * (1 + h)), weights_);
        const double astray = std::max(most - p, p - least);
        share_[j] = is_sink ? 0 : f * p;
        slack_[j] = is_sink ? 0
                            : f * (p * (rise + sum_error_ * (1 + rise)) +
                                   astray * (1 + rise) * (1 + sum_error_));
        const bool rounded = common && !is_sink;
        l += f * (rounded ? p : w);
        l_error += f * (rounded ? p * rise + astray * (1 + rise) : w * (h + rise + h * rise));
    }
    const double h = l_error / l;
    of_sum_ = h + sum_error_l_ * (1 + h);
    // From 0.9 on the divisions below would prove nothing worth having.
    valid_ = valid_ && h < 0.9 && sum_error_l_ < 0.9 && sum_error_ < 0.9;
    inverse_ = valid_ ? evaluation / ((1 - h) * (1 - sum_error_l_)) : infinite;
    for (std::size_t j = 0; j < entries; ++j) {
        share_[j] /= l;
        slack_[j] /= l;
    }
    lse_ = facts.max + std::log(l);
    lse_bound_ = infinite;
    if (valid_)
        lse_bound_ = evaluation * (-std::log1p(-h) - std::log1p(-sum_error_l_) + error_max_ +
                                   1.5 * model_.log_error * std::log(entries_ + 1) +
                                   4 * ua * (std::abs(facts.max) + std::abs(lse_)) + 2 * ua) +
                     2 * entries_ * model_.weight_floor + 4 * model_.oma;
}

void StructureRow::weigh(const RowFacts& facts, std::span<const std::int64_t> visible,
                         double own_weight) {
    const std::size_t entries = facts.score.size();
    for (std::vector<double>* x : {&share_, &slack_, &score_error_, &frame_, &rises_})
        x->assign(entries, 0.0);
    entries_ = static_cast<double>(entries);
    const RowMaxima most =
        score_errors(facts, score_error(model_, facts.q_max, facts.k_max), score_error_.data());
    error_max_ = most.error;
    const double unscaled = static_cast<double>(model_.dim_qk) * facts.q_max * facts.k_max;
    valid_ = std::max(unscaled, most.magnitude) < model_.max_finite / 8;
    replay_maxima(facts, visible);
    double rises_max = 0;
    for (const double r : rises_) rises_max = std::max(rises_max, r);
    sum_error_ = chain_error(model_.sum_depth(entries_) + rises_max + 4, model_.ua);
    sum_error_l_ = chain_error(model_.sum_depth(entries_) + rises_max + 1, model_.ua);
    round_weights(facts, own_weight);
}

double StructureRow::output(double value, double slack_sum, double value_total) const noexcept {
    if (!valid_ || !(value_total < model_.max_finite / 4)) return infinite;
    const double size = std::abs(value);
    double error = (slack_sum + of_sum_ * size) * inverse_;
    error += 2.5 * model_.ua * (size + error);
    error +=
        2 * model_.oma * (2 * entries_ + 4) + 2 * (model_.oma + model_.weight_floor) * value_total;
    error += model_.uo * (size + error) + model_.omo;
    return error >= 0 ? error : infinite;
}

}  // namespace attest::bound
