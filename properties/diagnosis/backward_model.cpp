#include "properties/diagnosis/backward_model.hpp"

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/backward_totals.hpp"
#include "properties/law/gradient_run.hpp"
#include "reference/bound/rounding.hpp"

namespace attest::diagnosis {

namespace {

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
        discards_ = s_.into_keys && !s_.into_keys(call_, h);
        sequence_ = s_.key_sequence ? s_.key_sequence(call_, b) : b;
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
        const HeadPlaces heads = places_of(row.h);
        BackwardScore other;
        for (std::int64_t j = 0; j < p_.len_kv; ++j) {
            const BackwardScore& own = call_.score(row.b, row.h, row.i, j);
            if (!(s_.sees ? s_.sees(row, j, own.visible) : own.visible)) continue;
            const bool same = heads.read == row.h / call_.call.group;
            const BackwardScore& facts = same ? own : (other = score_of(row, heads.read, j));
            for (int n = s_.times ? s_.times(row, j) : 1; n > 0; --n)
                pair({row, j, facts, {}, {}}, heads);
        }
        if (!p_.sink) return;
        const double sink = call_.call.sinks[static_cast<std::size_t>(row.h)];
        const Near weight = weight_of({sink, call_.model.ua * std::abs(sink)}, row);
        Near term = s_.sink_term ? s_.sink_term(row, weight) : -(weight * row.delta);
        // Of an LSE that nothing is in, or that is not known: what a kernel makes of it is not
        // known.
        if (row.lse.value == -infinite || row.lse.error == infinite) term = {0, infinite};
        d_sinks_.add(static_cast<std::size_t>(heads.shared), rounded(term, 3 * call_.model.ua, 0),
                     s_.sinks);
    }

    struct HeadPlaces {
        std::int64_t read, value, product, sum, shared;
    };
    HeadPlaces places_of(std::int64_t h) const {
        const auto of = [&](const ModelSteps::HeadOf& head, std::int64_t otherwise) {
            return head ? head(call_, h) : otherwise;
        };
        const std::int64_t own = h / call_.call.group, read = of(s_.read_head, own);
        return {read, of(s_.value_head, read), of(s_.product_head, read), of(s_.key_head, own),
                of(s_.shared_head, h)};
    }

    /// The score of another head's key. A turn keeps a pair's length: no product of two channels is
    /// more than twice what it was.
    BackwardScore score_of(const ModelRow& row, std::int64_t key_head, std::int64_t j) const {
        BackwardScore s = call_.score(row.b, row.h, row.i, j);
        const double* k = call_.key(row.b, key_head, j);
        double size = 0;
        s.dot = 0;
        for (std::size_t c = 0; c < row.facts.query.size(); ++c) {
            s.dot += row.facts.query[c] * k[c];
            size += std::abs(row.facts.query[c] * k[c]);
        }
        size *= 2 * std::abs(call_.call.scale);
        s.turn *= s.magnitude > 0 ? std::max(1.0, size / s.magnitude) : 1;
        s.magnitude = size;
        return s;
    }

    /// A dropped weight is left out, or multiplied by 0: of what is not finite that is a NaN, so
    /// that nothing is known.
    Near dropped(Near x, double factor) const {
        if (factor == 0) return most(x) < call_.model.max_finite ? Near{} : Near{0, infinite};
        return rounded(factor * x, call_.model.factor_roundings * call_.model.ua, 0);
    }

    /// dO times V, as it is where nothing of it is exchanged.
    Near dp_of(const ModelPair& pair, const BackwardCall::RowFacts& given,
               std::int64_t value_head) const {
        const ModelRow& row = pair.row;
        if (!s_.d_o && !s_.dp_channels && value_head == row.h / call_.call.group)
            return pair.facts.dp;
        return call_.dp_of(given, row.b, value_head, pair.j,
                           s_.dp_channels ? s_.dp_channels(call_) : call_.call.dim_v);
    }

    void pair(ModelPair pair, const HeadPlaces& heads) {
        const ModelRow& row = pair.row;
        const bound::KernelModel& m = call_.model;
        set_score(pair, s_.parts);
        const BackwardCall::RowFacts& given = s_.d_o ? s_.d_o(row) : row.facts;
        pair.dp = dp_of(pair, given, heads.value);
        if (s_.dp) pair.dp = s_.dp(pair);
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
                static_cast<std::size_t>(heads.shared),
                s_.slope_term ? s_.slope_term(pair, of_bias) : plain_slope_term(pair, of_bias),
                s_.slopes);
        }
        if (has_mask_) {
            Near term = late ? dx : pair.ds;
            if (s_.mask_term) term = s_.mask_term(pair, term);
            d_mask_.add(call_.call.mask_index(row.b, row.h, row.i, pair.j), term, s_.mask,
                        s_.mask_owner ? s_.mask_owner(row) : Totals::none);
        }
        const Near stored = rounded(s_.stored ? s_.stored(pair, dx) : dx, m.ugs, 2 * m.omgs);
        const std::size_t d = static_cast<std::size_t>(p_.dim_qk),
                          dv = static_cast<std::size_t>(call_.call.dim_v);
        const std::size_t q =
            static_cast<std::size_t>((row.b * p_.heads_q + row.h) * p_.len_q + row.i) * d;
        const std::size_t key =
            static_cast<std::size_t>((sequence_ * p_.heads_kv + heads.sum) * p_.len_kv + pair.j);
        const double* k = s_.plain_keys ? call_.call.key(row.b, heads.product, pair.j)
                                        : call_.key(row.b, heads.product, pair.j);
        const double* query =
            s_.plain_queries ? call_.call.query(row.b, row.h, row.i) : row.facts.query.data();
        for (std::size_t c = 0; c < d; ++c) d_q_.add(q + c, k[c] * stored, Joining::sum);
        if (discards_) return;
        for (std::size_t c = 0; c < d; ++c) d_k_.add(key * d + c, query[c] * stored, Joining::sum);
        for (std::size_t c = 0; c < dv; ++c)
            d_v_.add(key * dv + c, given.d_o[c] * weight, Joining::sum);
    }

    Predicted finish() {
        const bound::KernelModel& m = call_.model;
        const double queries = static_cast<double>(p_.len_q * call_.call.group),
                     keys = static_cast<double>(p_.len_kv),
                     rows = static_cast<double>(p_.batch * p_.heads_q * p_.len_q);
        const double scale = call_.call.scale;
        const auto sums = [&](const Totals& totals, double terms, double factor, Joining how) {
            const double absolute = 2 * m.oma * (terms + 1) + m.omo;
            return totals.take(call_.of_sum(terms), absolute, factor, how, s_.sum_unit);
        };
        const double of_group =
            s_.groups == Joining::mean ? 1.0 / static_cast<double>(call_.call.group) : 1;
        Predicted out;
        out[Role::d_q] = sums(d_q_, keys, scale, Joining::sum);
        out[Role::d_k] = sums(d_k_, queries, of_group * scale, Joining::sum);
        out[Role::d_v] = sums(d_v_, queries, of_group, Joining::sum);
        if (p_.rope.style != RopeStyle::none) turn_back(call_, s_, out);
        if (has_mask_)
            out[Role::d_mask] =
                sums(d_mask_, p_.mask.tensor.shared_keys ? rows * keys : rows, 1, s_.mask);
        if (p_.sink) out[Role::d_sinks] = sums(d_sinks_, rows, 1, s_.sinks);
        if (p_.alibi) {
            const double pairs = static_cast<double>(p_.batch * p_.len_q * p_.len_kv);
            out[Role::d_slopes] = sums(d_slopes_, pairs, 1, s_.slopes);
        }
        if (s_.afterwards) s_.afterwards(call_, out);
        return out;
    }

    const BackwardCall& call_;
    const Problem& p_;
    const ModelSteps& s_;
    Totals d_q_, d_k_, d_v_, d_mask_, d_sinks_, d_slopes_;
    bool has_mask_ = false, discards_ = false;
    std::int64_t sequence_ = 0;
};

}  // namespace

Predicted run_backward(const BackwardCall& call, const ModelSteps& steps) {
    return ModelPass(call, steps).run();
}

}  // namespace attest::diagnosis
