#include "properties/diagnosis/backward_model.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "properties/diagnosis/backward_totals.hpp"
#include "properties/law/gradient_run.hpp"
#include "reference/bound/rounding.hpp"
#include "reference/oracle/rotated_head.hpp"
#include "reference/oracle/visibility.hpp"

namespace attest::diagnosis {

namespace {

/// Score, its error and what the cap does to it, as reference/oracle/attention.hpp has them.
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

/// What an accumulator of the kernel's cannot hold is infinite in it.
Near held(Near x, const bound::KernelModel& model) {
    if (std::abs(x.value) > model.max_finite) x.value = std::copysign(infinite, x.value);
    return x;
}

std::size_t elements_of(const Problem& p, Role role) {
    const std::optional<Shape> s = shape_of(p, role);
    return s ? static_cast<std::size_t>((*s)[0] * (*s)[1] * (*s)[2] * (*s)[3]) : 0;
}

/// Runs the steps over a call.
class ModelPass {
public:
    ModelPass(const BackwardCall& call, const ModelSteps& steps)
        : call_(call),
          p_(call.problem()),
          s_(steps),
          d_q_(elements_of(p_, Role::d_q)),
          d_k_(elements_of(p_, Role::d_k)),
          d_v_(elements_of(p_, Role::d_v)),
          d_mask_(elements_of(p_, Role::d_mask)),
          d_sinks_(elements_of(p_, Role::d_sinks)),
          d_slopes_(elements_of(p_, Role::d_slopes)),
          has_mask_(elements_of(p_, Role::d_mask) > 0 && !call.call.mask.empty() &&
                    p_.mask.tensor.kind == MaskKind::additive) {}

    Predicted run() {
        for (std::int64_t b = 0; b < p_.batch; ++b)
            for (std::int64_t h = 0; h < p_.heads_q; ++h) head(b, h);
        return finish();
    }

private:
    void head(std::int64_t b, std::int64_t h) {
        const std::int64_t group = call_.call.group;
        if (s_.groups == Joining::first && h % group != 0)
            discards_ = true;
        else
            discards_ = s_.groups == Joining::last && h % group != group - 1;
        for (std::int64_t i = 0; i < p_.len_q; ++i) {
            const BackwardCall::RowFacts& facts = call_.row(b, h, i);
            if (facts.is_query || i < rows_end(b))
                row({call_, b, h, i, facts, facts.lse, facts.delta});
        }
    }

    /// Behind the last row that is taken for a query.
    std::int64_t rows_end(std::int64_t b) const {
        const std::int64_t tile = s_.past_lengths;
        if (tile == 0) return 0;
        if (tile == ModelSteps::all_rows || p_.mask.lens_q.empty()) return p_.len_q;
        return (p_.mask.lens_q[static_cast<std::size_t>(b)] + tile - 1) / tile * tile;
    }

    void row(ModelRow row) {
        if (s_.lse) row.lse = s_.lse(row);
        if (s_.delta) row.delta = s_.delta(row);
        const Near of_lse = s_.d_lse ? s_.d_lse(row) : row.facts.d_lse;
        row.delta = taken_off(row.delta, of_lse, call_.model.ua);
        const std::int64_t key_head =
            s_.key_head ? s_.key_head(call_, row.h) : row.h / call_.call.group;
        for (std::int64_t j = 0; j < p_.len_kv; ++j) {
            const BackwardScore& facts = call_.score(row.b, row.h, row.i, j);
            if (s_.sees ? s_.sees(row, j, facts.visible) : facts.visible)
                pair({row, j, facts, {}, {}}, key_head);
        }
        if (!p_.sink) return;
        const double sink = call_.call.sinks[static_cast<std::size_t>(row.h)];
        const Near weight = weight_of({sink, call_.model.ua * std::abs(sink)}, row);
        Near term = -(weight * row.delta);
        if (s_.sink_term) term = s_.sink_term(row, weight);
        d_sinks_.add(static_cast<std::size_t>(row.h), rounded(term, 3 * call_.model.ua, 0),
                     s_.sinks);
    }

    static Near weight_of(Near score, const ModelRow& row) {
        const bound::KernelModel& m = row.call.model;
        const double x = score.value - row.lse.value;
        if (x == -infinite) return {};
        const double p = std::exp(x);
        const double d = score.error + row.lse.error + 3 * m.ua * (std::abs(x) + 2 * score.error) +
                         m.ua * (std::abs(row.facts.max) + std::abs(row.lse.value)) +
                         std::log1p(m.exp_error);
        return {p, p * std::expm1(std::min(d, 700.0)) + 2 * m.weight_floor};
    }
    friend Near attest::diagnosis::plain_probability(const ModelPair&);

    /// A dropped weight is left out, whatever it would multiply.
    Near dropped(Near x, double factor) const {
        if (factor == 0) return {};
        return rounded(factor * x, call_.model.factor_roundings * call_.model.ua, 0);
    }

    void pair(ModelPair pair, std::int64_t key_head) {
        const ModelRow& row = pair.row;
        const bound::KernelModel& m = call_.model;
        set_score(pair, s_.parts);
        const BackwardCall::RowFacts& given = s_.d_o ? s_.d_o(row) : row.facts;
        pair.dp =
            s_.d_o ? call_.dp_of(given, row.b, row.h / call_.call.group, pair.j) : pair.facts.dp;
        pair.dp = dropped(pair.dp, s_.dp_kept ? s_.dp_kept(pair) : pair.facts.kept);
        pair.p = held(s_.probability ? s_.probability(pair) : plain_probability(pair), m);
        pair.ds = held(s_.ds ? s_.ds(pair) : plain_ds(pair, row.delta), m);
        const Near slope = s_.slope ? s_.slope(pair) : plain_slope(pair);
        const Near dx = rounded(pair.ds * slope, p_.softcap > 0 ? 2 * m.ua : 0, m.oma);
        const Near weight =
            dropped(s_.value_weight ? s_.value_weight(pair) : rounded(pair.p, m.ugp, 2 * m.omgp),
                    s_.value_kept ? s_.value_kept(pair) : pair.facts.kept);
        const bool late = call_.call.dialect.softcap == SoftcapPlace::after_bias;
        if (p_.alibi) {
            const Near of_bias = late ? dx : pair.ds;
            d_slopes_.add(
                static_cast<std::size_t>(row.h),
                s_.slope_term ? s_.slope_term(pair, of_bias) : plain_slope_term(pair, of_bias),
                s_.slopes);
        }
        if (has_mask_) {
            Near term = late ? dx : pair.ds;
            if (s_.mask_term) term = s_.mask_term(pair, term);
            d_mask_.add(call_.call.mask_index(row.b, row.h, row.i, pair.j), term, s_.mask);
        }
        const Near stored = rounded(dx, m.ugs, 2 * m.omgs);
        const std::size_t d = static_cast<std::size_t>(p_.dim_qk),
                          dv = static_cast<std::size_t>(call_.call.dim_v);
        const std::size_t q =
            static_cast<std::size_t>((row.b * p_.heads_q + row.h) * p_.len_q + row.i) * d;
        const std::size_t key =
            static_cast<std::size_t>((row.b * p_.heads_kv + key_head) * p_.len_kv + pair.j);
        const double* k = call_.key(row.b, row.h / call_.call.group, pair.j);
        for (std::size_t c = 0; c < d; ++c) d_q_.add(q + c, k[c] * stored, Joining::sum);
        if (discards_) return;
        for (std::size_t c = 0; c < d; ++c)
            d_k_.add(key * d + c, row.facts.query[c] * stored, Joining::sum);
        for (std::size_t c = 0; c < dv; ++c)
            d_v_.add(key * dv + c, given.d_o[c] * weight, Joining::sum);
    }

    Predicted finish() {
        const bound::KernelModel& m = call_.model;
        const double queries = static_cast<double>(p_.len_q * call_.call.group),
                     keys = static_cast<double>(p_.len_kv),
                     rows = static_cast<double>(p_.batch * p_.heads_q * p_.len_q);
        const auto absolute = [&](double n) { return 2 * m.oma * (n + 1) + m.omo; };
        const double scale = call_.call.scale;
        Predicted out;
        out[Role::d_q] = d_q_.take(call_.of_sum(keys), absolute(keys), scale, Joining::sum);
        out[Role::d_k] = d_k_.take(call_.of_sum(queries), absolute(queries), scale, Joining::sum);
        out[Role::d_v] =
            d_v_.take(call_.of_sum(queries), absolute(queries),
                      s_.groups == Joining::mean ? 1.0 / static_cast<double>(call_.call.group) : 1,
                      Joining::sum);
        if (s_.groups == Joining::mean)
            for (Near& x : out[Role::d_k]) x = (1.0 / static_cast<double>(call_.call.group)) * x;
        if (p_.rope.style != RopeStyle::none) turn(out);
        if (has_mask_)
            out[Role::d_mask] = d_mask_.take(call_.of_sum(rows), absolute(rows), 1, s_.mask);
        if (p_.sink)
            out[Role::d_sinks] = d_sinks_.take(call_.of_sum(rows), absolute(rows), 1, s_.sinks);
        if (p_.alibi) {
            const double pairs = static_cast<double>(p_.batch * p_.len_q * p_.len_kv);
            out[Role::d_slopes] =
                d_slopes_.take(call_.of_sum(pairs), absolute(pairs), 1, s_.slopes);
        }
        if (s_.afterwards) s_.afterwards(call_, out);
        return out;
    }

    /// Out of RoPE's frame, with what the turned inputs and the turning cost (GradientBook::add).
    void turn(Predicted& out) {
        const oracle::Rotation<double> rotation(p_);
        const std::vector<double> frequency = rotation.channel_frequency();
        const bound::KernelModel& m = call_.model;
        // 2.02 and 1.01: the products of two errors, as in GradientBook::add.
        const double unit = 2.02 * (9 * m.ua + std::max(m.up, m.ugs)),
                     // As in score_error().
            angle = 1.01 * (2 * m.rope_log_base + 7) * m.ua,
                     furthest =
                         2 * static_cast<double>(std::abs(p_.rope.offset) + p_.len_q + p_.len_kv);
        const std::size_t d = static_cast<std::size_t>(p_.dim_qk);
        const auto row = [&](std::vector<Near>& all, std::int64_t at, std::int64_t position) {
            std::vector<double> x(d), size(d), error(d);
            Near* from = all.data() + static_cast<std::size_t>(at) * d;
            for (std::size_t c = 0; c < d; ++c) {
                x[c] = from[c].value;
                size[c] = most(from[c]);
                error[c] = from[c].error;
            }
            rotation.spread(size.data());
            rotation.spread(error.data());
            const std::int64_t to = p_.rope.offset + position;
            if (s_.turns_back != 0) rotation.turn_back(x.data(), s_.turns_back * to);
            for (std::size_t c = 0; c < d; ++c)
                from[c] = {x[c],
                           2 * error[c] + 2 * size[c] * (unit + angle * frequency[c] * furthest)};
        };
        for (std::int64_t at = 0; at < p_.batch * p_.heads_q * p_.len_q; ++at)
            row(out[Role::d_q], at,
                call_.row(at / (p_.heads_q * p_.len_q), at / p_.len_q % p_.heads_q, at % p_.len_q)
                    .position);
        if (p_.cache.present && p_.cache.keys_rotated) return;
        for (std::int64_t at = 0; at < p_.batch * p_.heads_kv * p_.len_kv; ++at)
            row(out[Role::d_k], at, oracle::key_position(p_, at % p_.len_kv));
    }

    const BackwardCall& call_;
    const Problem& p_;
    const ModelSteps& s_;
    Totals d_q_, d_k_, d_v_, d_mask_, d_sinks_, d_slopes_;
    bool has_mask_ = false, discards_ = false;
};

}  // namespace

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

Near plain_probability(const ModelPair& pair) {
    return ModelPass::weight_of(pair.score, pair.row);
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

Near plain_slope_term(const ModelPair& pair, Near of_bias) {
    return -(std::abs(pair.facts.ahead) * of_bias);
}

Near rounded_to(Near x, Precision format) {
    const double low = round_to(x.value - x.error, format),
                 high = round_to(x.value + x.error, format);
    return {(low + high) / 2, (high - low) / 2};
}

Predicted run_backward(const BackwardCall& call, const ModelSteps& steps) {
    return ModelPass(call, steps).run();
}

}  // namespace attest::diagnosis
