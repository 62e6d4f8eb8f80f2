#include "reference/oracle/emulated_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "reference/oracle/emulated_steps.hpp"
#include "reference/oracle/matrix_unit.hpp"

namespace attest::oracle {
namespace {

template <typename F>
class KernelEmulator {
public:
    KernelEmulator(const Prepared& call, const Emulation& how, EmulatedDefect defect)
        : call_(call), p_(call.problem), how_(how), defect_(defect) {}

    void row(std::int64_t b, std::int64_t h, std::int64_t i, double* output, double* lse) {
        visible_keys(call_, b, h, i, keys_);
        if (defect_ == EmulatedDefect::last_key_lost && keys_.size() > 1) keys_.pop_back();
        range_ = keys_of(p_, call_.dialect, b, i);
        b_ = b;
        h_ = h;
        std::fill(output, output + call_.dim_v, 0.0);
        *lse = -infinite;
        if (!range_.is_query || (keys_.empty() && !p_.sink)) return;
        if (how_.backwards) std::reverse(keys_.begin(), keys_.end());
        scores(i);
        value_mean_ = value_mean<F>(call_, b_, h_ / call_.group, how_.centred_values && !p_.sink);
        Part<F> all = merged();
        const F epsilon = static_cast<F>(how_.epsilon);
        F natural = all.max * (how_.base_two ? F(0.6931471805599453) : F(1)) +
                    std::log(all.sum + epsilon) + shift_;
        if (p_.sink) natural = apply_sink(all, natural);
        for (std::size_t c = 0; c < value_mean_.size(); ++c) {
            const F quotient = all.output[c] / (all.sum + epsilon) + value_mean_[c];
            output[c] = stored(static_cast<double>(all.sum > 0 ? quotient : F(0)));
        }
        if (call_.dialect.lse_base == LseBase::two) natural *= F(1.4426950408889634);
        *lse = round_to(static_cast<double>(natural),
                        p_.format_q == Precision::f64 ? Precision::f64 : Precision::f32);
    }

private:
    bool centred() const { return how_.centred_keys && p_.softcap == 0; }  // a cap sees scores
    F value(std::int64_t key, std::size_t c) const {
        const F v = static_cast<F>(call_.value(b_, h_ / call_.group, key)[c]);
        return operand(value_mean_[c] == 0 ? v : low(v - value_mean_[c]));
    }
    F operand(F x) const { return fed(x, how_.operands, how_.cut); }
    bool by_unit() const { return how_.unit_block > 0 && std::is_same_v<F, float>; }
    void add(F a, F b, F& sum) const { sum = how_.fused ? std::fma(a, b, sum) : sum + a * b; }
    F power(F x) const {
        F y = how_.base_two ? std::exp2(x) : std::exp(x);
        if (defect_ == EmulatedDefect::exp_off) y *= F(1 + 0x1p-13);
        return defect_ == EmulatedDefect::exp_off && x == 0 ? F(1) : y;
    }
    F low(F x) const {
        if (!how_.round_weights) return x;
        return static_cast<F>(round_to(static_cast<double>(x), p_.format_q));
    }

    double stored(double x) const {
        const double nearest = round_to(x, p_.format_o);
        if (defect_ != EmulatedDefect::truncated || std::abs(nearest) <= std::abs(x))
            return nearest;
        const double step = traits(p_.format_o).unit_roundoff * std::abs(nearest) * 2;
        return round_to(nearest - std::copysign(step, nearest), p_.format_o);
    }

    F dot(const std::vector<F>& q, const std::vector<F>& k) const {
        const auto product = [&](std::size_t c) {
            return double{operand(q[c])} * double{operand(k[c])};
        };
        if (by_unit()) return static_cast<F>(sum_by_unit(how_.unit_block, q.size(), 0, product));
        F lane[8] = {};
        for (std::size_t c = 0; c < q.size(); ++c)
            add(operand(q[c]), operand(k[c]), lane[how_.lanes ? c % 8 : 0]);
        return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
               ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }

    void scores(std::int64_t i) {
        const double* from = call_.query(b_, h_, i);
        const bool rope = p_.rope.style != RopeStyle::none;
        auto q = turned<F>(p_, from, p_.rope.offset + range_.position, how_.rotation, rope);
        for (F& x : q) x = rounded(x, how_.query);
        const bool rotate_keys = rope && !(p_.cache.present && p_.cache.keys_rotated);
        F scale = static_cast<F>(call_.scale);
        if (defect_ == EmulatedDefect::scale_off) scale *= F(1 + 0x1p-12);
        const F cap = static_cast<F>(p_.softcap);
        const bool late = call_.dialect.softcap == SoftcapPlace::after_bias;
        score_.clear();
        std::vector<std::vector<F>> keys;
        std::vector<F> mean(static_cast<std::size_t>(p_.dim_qk), F(0));
        for (const std::int64_t j : keys_) {
            const double* key = call_.key(b_, h_ / call_.group, j);
            keys.push_back(turned<F>(p_, key, p_.rope.offset + key_position(p_, j), how_.rotation,
                                     rotate_keys));
            for (std::size_t c = 0; centred() && c < mean.size(); ++c)
                mean[c] += keys.back()[c] / static_cast<F>(keys_.size());
        }
        const auto step = [&](F x) { return rounded(x, how_.scores); };
        std::size_t at = 0;
        shift_ = centred() ? dot(q, mean) * scale : F(0);
        for (const std::int64_t j : keys_) {
            std::vector<F>& k = keys[at++];
            for (std::size_t c = 0; centred() && c < k.size(); ++c) k[c] = low(k[c] - mean[c]);
            F x = step(step(dot(q, k)) * scale);
            F bias = 0;
            if (p_.mask.tensor.kind == MaskKind::additive)
                bias = rounded(static_cast<F>(call_.mask_at(b_, h_, i, j)), how_.bias);
            if (p_.alibi) {
                const std::int64_t apart = std::abs(range_.position - (j - range_.key_base));
                bias -=
                    rounded(static_cast<F>(call_.slopes[static_cast<std::size_t>(h_)]), how_.bias) *
                    static_cast<F>(apart);
            }
            if (late) x = step(x + bias);
            if (cap > 0) x = step(cap * std::tanh(x / cap));
            if (!late) x = step(x + bias);
            score_.push_back(how_.base_two ? x * F(1.4426950408889634) : x);
        }
    }

    /// Online softmax over keys [first, last) of the list.
    Part<F> part(std::size_t first, std::size_t last) const {
        Part<F> out;
        out.output.assign(static_cast<std::size_t>(call_.dim_v), F(0));
        const std::size_t tile =
            how_.tile > 0 ? static_cast<std::size_t>(how_.tile) : std::max<std::size_t>(1, last);
        for (std::size_t t = first, end = first; t < last; t = end) {
            end = std::min(last, t + tile);
            if (how_.aligned_tiles)
                for (end = t + 1; end < last && keys_[end] / how_.tile == keys_[t] / how_.tile;)
                    ++end;
            F top = out.max;
            for (std::size_t j = t; j < end; ++j) top = std::max(top, score_[j]);
            const F rescale = t == first ? F(0) : power(out.max - top);
            out.sum *= rescale;
            if (!(defect_ == EmulatedDefect::rescale_lost && end == last))
                for (F& x : out.output) x *= rescale;
            out.max = top;
            tile_into(t, end, out);
        }
        return out;
    }

    void tile_into(std::size_t t, std::size_t end, Part<F>& out) const {
        F lane[8] = {};
        Part<F> alone;
        std::vector<double> weights;
        if (how_.sum_tiles) alone.output.assign(out.output.size(), F(0));
        for (std::size_t j = t; j < end; ++j) {
            const F weight = power(score_[j] - out.max);
            const F low_weight = low(weight);
            F& sum = lane[how_.lanes ? j % 8 : 0];
            sum += how_.sum_rounded ? low_weight : weight;
            if (defect_ == EmulatedDefect::sum_in_bf16)
                sum = static_cast<F>(round_to(static_cast<double>(sum), Precision::bf16));
            weights.push_back(static_cast<double>(operand(low_weight)));
            if (!how_.normalise_first && !by_unit())
                accumulate(low_weight, j, how_.sum_tiles ? alone : out);
        }
        if (by_unit()) accumulate_by_unit(weights, t, how_.sum_tiles ? alone : out);
        for (std::size_t c = 0; c < alone.output.size(); ++c) out.output[c] += alone.output[c];
        out.sum += ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
                   ((lane[4] + lane[5]) + (lane[6] + lane[7]));
        if (!how_.normalise_first) return;
        const F inverse = F(1) / out.sum;
        for (std::size_t j = t; j < end; ++j)
            accumulate(low(power(score_[j] - out.max) * inverse), j, out);
        for (F& x : out.output) x *= out.sum;  // merged() divides again
    }

    void accumulate_by_unit(const std::vector<double>& weights, std::size_t t, Part<F>& out) const {
        for (std::size_t c = 0; c < out.output.size(); ++c)
            out.output[c] = static_cast<F>(
                sum_by_unit(how_.unit_block, weights.size(), static_cast<double>(out.output[c]),
                            [&](std::size_t n) {
                                return weights[n] * static_cast<double>(value(keys_[t + n], c));
                            }));
    }

    void accumulate(F weight, std::size_t j, Part<F>& out) const {
        for (std::size_t c = 0; c < out.output.size(); ++c)
            add(operand(weight), value(keys_[j], c), out.output[c]);
    }

    Part<F> merged() const {
        const std::size_t n = score_.size();
        const std::size_t splits = static_cast<std::size_t>(std::max<std::int64_t>(1, how_.splits));
        const std::size_t each = (n + splits - 1) / splits;
        if (splits == 1 || each == 0) return part(0, n);
        std::vector<Part<F>> parts;
        const bool divided = how_.merge_by_lse || how_.partials == NumberFormat::f16;
        for (std::size_t x = 0; x < n; x += each)
            parts.push_back(kept(part(x, std::min(n, x + each)), how_.partials, divided));
        return how_.merge_by_lse ? by_lse(std::move(parts)) : by_sums(parts);
    }

    Part<F> by_sums(const std::vector<Part<F>>& parts) const {
        Part<F> all;
        all.output.assign(static_cast<std::size_t>(call_.dim_v), F(0));
        for (const Part<F>& x : parts) all.max = std::max(all.max, x.max);
        for (const Part<F>& x : parts) {
            const F factor = power(x.max - all.max);
            all.sum += x.sum * factor;
            for (std::size_t c = 0; c < all.output.size(); ++c)
                all.output[c] += x.output[c] * factor;
        }
        return all;
    }

    Part<F> by_lse(std::vector<Part<F>> parts) const {
        const F to_natural = how_.base_two ? F(0.6931471805599453) : F(1);
        F top = -std::numeric_limits<F>::infinity(), total = 0;
        std::vector<F> lse;
        for (Part<F>& x : parts) {
            lse.push_back(x.max * to_natural + std::log(x.sum));
            top = std::max(top, lse.back());
            for (F& o : x.output) o /= x.sum;
        }
        for (const F l : lse) total += std::exp(l - top);
        const F whole = top + std::log(total);
        Part<F> all;
        all.max = how_.base_two ? whole * F(1.4426950408889634) : whole;
        all.sum = 1;
        all.output.assign(static_cast<std::size_t>(call_.dim_v), F(0));
        for (std::size_t z = 0; z < parts.size(); ++z) {
            const F weight = std::exp(lse[z] - whole);
            for (std::size_t c = 0; c < all.output.size(); ++c)
                all.output[c] += weight * parts[z].output[c];
        }
        return all;
    }

    /// Returns the LSE with the sink, and leaves sum and output so that their quotient holds it.
    F apply_sink(Part<F>& all, F natural) const {
        const F sink =
            rounded(static_cast<F>(call_.sinks[static_cast<std::size_t>(h_)]), how_.bias);
        if (keys_.empty()) return sink;
        if (how_.sink_afterwards) {
            const F share = F(1) / (F(1) + std::exp(sink - natural));
            for (F& x : all.output) x = x / all.sum * share;
            all.sum = 1;
        } else {
            const F mine = (sink - shift_) * (how_.base_two ? F(1.4426950408889634) : F(1));
            const F top = std::max(all.max, mine);
            const F factor = power(all.max - top);
            all.sum = all.sum * factor + power(mine - top);
            for (F& x : all.output) x *= factor;
            return top * (how_.base_two ? F(0.6931471805599453) : F(1)) + std::log(all.sum) +
                   shift_;
        }
        const F high = std::max(natural, sink), small = std::min(natural, sink);
        return high + std::log1p(std::exp(small - high));
    }

    const Prepared& call_;
    const Problem& p_;
    Emulation how_;
    EmulatedDefect defect_;
    std::int64_t b_ = 0, h_ = 0;
    KeyRange range_;
    std::vector<std::int64_t> keys_;
    std::vector<F> score_;
    F shift_ = 0;                ///< taken off every score
    std::vector<F> value_mean_;  ///< taken off every value
};

template <typename F>
Observed run(const Prepared& call, const Emulation& how, EmulatedDefect defect) {
    const Problem& p = call.problem;
    Observed out;
    const std::size_t rows = static_cast<std::size_t>(p.batch * p.heads_q * p.len_q);
    out.output.resize(rows * static_cast<std::size_t>(call.dim_v));
    out.lse.resize(rows);
    KernelEmulator<F> kernel(call, how, defect);
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(rows); ++row) {
        const std::int64_t bh = row / p.len_q;
        kernel.row(bh / p.heads_q, bh % p.heads_q, row % p.len_q,
                   out.output.data() + row * call.dim_v, &out.lse[static_cast<std::size_t>(row)]);
    }
    return out;
}

}  // namespace

Observed emulate(const Case& tried, const Dialect& dialect, const TensorSet& inputs,
                 const Emulation& how, EmulatedDefect defect) {
    const Prepared call = prepare(tried.problem, dialect, inputs);
    return tried.problem.format_q == Precision::f64 ? run<double>(call, how, defect)
                                                    : run<float>(call, how, defect);
}

}  // namespace attest::oracle
