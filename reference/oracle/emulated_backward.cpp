#include "reference/oracle/emulated_backward.hpp"

#include <cmath>

#include "reference/oracle/emulated_steps.hpp"
#include "reference/oracle/prepared.hpp"
#include "reference/oracle/visibility.hpp"

namespace attest::oracle {

namespace {

/// RoPE in float; sign -1 turns back.
void turn(const Problem& p, std::int64_t position, float sign, float* x) {
    if (p.rope.style == RopeStyle::none) return;
    const std::int64_t dims = p.rope.dims == 0 ? p.dim_qk : p.rope.dims;
    for (std::int64_t c = 0; c < dims / 2; ++c) {
        const bool pairs = p.rope.style == RopeStyle::interleaved;
        const std::int64_t r = pairs ? 2 * c : c, s = pairs ? 2 * c + 1 : c + dims / 2;
        const float frequency =
            1.0f / std::pow(static_cast<float>(p.rope.base),
                            static_cast<float>(2 * c) / static_cast<float>(dims));
        const float angle = static_cast<float>(position) * frequency;
        const float sine = sign * std::sin(angle), cosine = std::cos(angle);
        const float u = x[r], v = x[s];
        x[r] = u * cosine - v * sine;
        x[s] = u * sine + v * cosine;
    }
}

class BackwardEmulator {
public:
    BackwardEmulator(const Prepared& call, const Observed& forward, const TensorSet& inputs,
                     const Emulation& how, BackwardDefect defect)
        : call_(call),
          p_(call.problem),
          forward_(forward),
          d_o_(inputs[Role::d_o].to_doubles()),
          how_(how),
          defect_(defect) {
        if (inputs.has(Role::d_lse)) d_lse_ = inputs[Role::d_lse].to_doubles();
        d_q_.resize(call.q.size());
        d_k_.resize(static_cast<std::size_t>(p_.batch * p_.heads_kv * p_.len_kv * p_.dim_qk));
        d_v_.resize(call.v.size());
        if (p_.mask.tensor.kind == MaskKind::additive) d_mask_.resize(call.mask.size());
        d_slopes_.resize(call.slopes.size());
        d_sinks_.resize(call.sinks.size());
    }

    Backward run() {
        const bool by_heads = how_.gradient_heads != NumberFormat::unrounded && call_.group > 1;
        std::vector<float> all_k(d_k_.size()), all_v(d_v_.size());
        for (std::int64_t b = 0; b < p_.batch; ++b)
            for (std::int64_t h = 0; h < p_.heads_q; ++h) {
                for (std::int64_t i = 0; i < p_.len_q; ++i) row(b, h, i);
                if (!by_heads) continue;
                add_head(d_k_, all_k);
                add_head(d_v_, all_v);
            }
        if (by_heads) {
            d_k_ = all_k;
            d_v_ = all_v;
        }
        const std::int64_t d = p_.dim_qk;
        const bool rotate = !(p_.cache.present && p_.cache.keys_rotated);
        for (std::size_t at = 0; rotate && at < d_k_.size(); at += static_cast<std::size_t>(d)) {
            const std::int64_t key = static_cast<std::int64_t>(at) / d % p_.len_kv;
            turn(p_, p_.rope.offset + key_position(p_, key), -1, d_k_.data() + at);
        }
        return {rounded(d_q_, p_.format_q),         rounded(d_k_, p_.format_kv),
                rounded(d_v_, p_.format_kv),        rounded(d_mask_, p_.format_q),
                rounded(d_slopes_, Precision::f32), rounded(d_sinks_, Precision::f32)};
    }

private:
    static std::vector<double> rounded(const std::vector<float>& from, Precision format) {
        std::vector<double> out;
        for (const float x : from) out.push_back(round_to(static_cast<double>(x), format));
        return out;
    }
    float low(float x) const {
        if (!how_.round_weights) return x;
        return static_cast<float>(round_to(static_cast<double>(x), p_.format_q));
    }
    float operand(float x) const { return fed(x, how_.operands, how_.cut); }
    float low_weight(float p) const {
        const float near = low(p);
        if (defect_ != BackwardDefect::weights_truncated || near <= p) return near;
        return static_cast<float>(
            decode(encode(static_cast<double>(near), p_.format_q) - 1, p_.format_q));
    }
    /// One head's, rounded.
    void add_head(std::vector<float>& own, std::vector<float>& all) const {
        for (std::size_t at = 0; at < own.size(); ++at) {
            all[at] += oracle::rounded(own[at], how_.gradient_heads);
            own[at] = 0;
        }
    }
    std::size_t row_of(std::int64_t b, std::int64_t h, std::int64_t i) const {
        return static_cast<std::size_t>((b * p_.heads_q + h) * p_.len_q + i);
    }

    float delta(std::int64_t b, std::int64_t h, std::int64_t i) const {
        if (defect_ == BackwardDefect::d_omitted) return 0;
        if (defect_ == BackwardDefect::d_of_next_row) i = (i + 1) % p_.len_q;
        const std::size_t at = row_of(b, h, i) * static_cast<std::size_t>(call_.dim_v);
        float sum = 0;
        for (std::size_t c = 0; c < static_cast<std::size_t>(call_.dim_v); ++c)
            sum += static_cast<float>(d_o_[at + c]) * static_cast<float>(forward_.output[at + c]);
        return sum;
    }

    /// In natural units.
    float lse_gradient(std::size_t flat) const {
        if (d_lse_.empty() || defect_ == BackwardDefect::lse_ignored) return 0;
        const auto given = static_cast<float>(d_lse_[flat]);
        const bool two = (call_.dialect.lse_base == LseBase::two) !=
                         (defect_ == BackwardDefect::lse_of_other_base);
        return (defect_ == BackwardDefect::lse_negated ? -given : given) *
               (two ? 1.4426950f : 1.0f);
    }

    /// dX of one pair; `probability` is P, `of_bias` the gradient of its bias.
    float pair(const std::vector<float>& q, const std::vector<float>& k, float bias, float lse,
               float dp, float d, float& probability, float& of_bias) const {
        float x = 0;
        for (std::size_t c = 0; c < q.size(); ++c) x += operand(q[c]) * operand(k[c]);
        x *= static_cast<float>(call_.scale);
        const float cap = static_cast<float>(p_.softcap);
        const bool late = call_.dialect.softcap == SoftcapPlace::after_bias;
        if (late) x += bias;
        float slope = 1;
        if (cap > 0) {
            const float t = std::tanh(x / cap);
            x = cap * t;
            if (defect_ != BackwardDefect::cap_slope_omitted) slope = 1 - t * t;
        }
        if (!late) x += bias;
        probability = std::exp(x - lse);
        of_bias = probability * (dp - d) * (late ? slope : 1);
        return probability * (dp - d) * slope;
    }

    void add_slope(std::int64_t h, const KeyRange& range, std::int64_t j, float of_bias) {
        const std::int64_t apart = range.position - (j - range.key_base);
        const bool sign = defect_ == BackwardDefect::distance_signed;
        d_slopes_[static_cast<std::size_t>(h)] -=
            of_bias * static_cast<float>(sign ? apart : std::abs(apart));
    }

    void add_sink(std::int64_t h, float lse, float d) {
        const auto head = static_cast<std::size_t>(h);
        d_sinks_[head] -= std::exp(static_cast<float>(call_.sinks[head]) - lse) * d;
    }

    void row(std::int64_t b, std::int64_t h, std::int64_t i) {
        visible_keys(call_, b, h, i, keys_);
        const KeyRange range = keys_of(p_, call_.dialect, b, i);
        if (!range.is_query || (keys_.empty() && !p_.sink)) return;
        const std::size_t d = static_cast<std::size_t>(p_.dim_qk), flat = row_of(b, h, i);
        const std::size_t dim_v = static_cast<std::size_t>(call_.dim_v);
        float lse = static_cast<float>(forward_.lse[flat]);
        if (call_.dialect.lse_base == LseBase::two) lse *= 0.69314718f;
        const double* from = call_.query(b, h, i);
        std::vector<float> q(from, from + d), d_query(d);
        turn(p_, p_.rope.offset + range.position, 1, q.data());
        float own = delta(b, h, i);
        const float of_lse = lse_gradient(flat);
        if (flat % 3 == 0) own -= of_lse;
        if (p_.sink) add_sink(h, lse, flat % 3 == 0 ? own : own - of_lse);
        const float scale = static_cast<float>(call_.scale);
        const double* d_o = d_o_.data() + flat * dim_v;
        for (const std::int64_t j : keys_) {
            const double* key = call_.key(b, h / call_.group, j);
            std::vector<float> k(key, key + d);
            if (!(p_.cache.present && p_.cache.keys_rotated))
                turn(p_, p_.rope.offset + key_position(p_, j), 1, k.data());
            float bias = 0;
            if (p_.mask.tensor.kind == MaskKind::additive)
                bias = static_cast<float>(call_.mask_at(b, h, i, j));
            if (p_.alibi)
                bias -= static_cast<float>(call_.slopes[static_cast<std::size_t>(h)]) *
                        static_cast<float>(std::abs(range.position - (j - range.key_base)));
            const double* v = call_.value(b, h / call_.group, j);
            float dp = 0, p = 0, of_bias = 0;
            for (std::size_t c = 0; c < dim_v; ++c)
                dp += operand(static_cast<float>(d_o[c])) * operand(static_cast<float>(v[c]));
            const float low_dp = flat % 3 == 1 ? dp + of_lse : flat % 3 == 2 ? dp - own : dp;
            const float less = flat % 3 == 2 ? -of_lse : own;
            float dx = pair(q, k, bias, lse, low_dp, less, p, of_bias);
            if (defect_ != BackwardDefect::scores_unrounded) dx = low(dx);
            if (how_.rounded_ds) of_bias = low(of_bias);
            if (!d_mask_.empty()) d_mask_[call_.mask_index(b, h, i, j)] += of_bias;
            if (p_.alibi) add_slope(h, range, j, of_bias);
            const std::size_t at =
                static_cast<std::size_t>((b * p_.heads_kv + h / call_.group) * p_.len_kv + j);
            dx = operand(dx);
            for (std::size_t c = 0; c < d; ++c) {
                d_query[c] += dx * operand(k[c]);
                d_k_[at * d + c] +=
                    dx * operand(q[c]) * (defect_ == BackwardDefect::k_unscaled ? 1.0f : scale);
            }
            for (std::size_t c = 0; c < dim_v; ++c)
                d_v_[at * dim_v + c] +=
                    operand(low_weight(p)) * operand(static_cast<float>(d_o[c]));
        }
        for (float& x : d_query)
            x *= defect_ == BackwardDefect::q_scaled_twice ? scale * scale : scale;
        turn(p_, p_.rope.offset + range.position, -1, d_query.data());
        std::copy(d_query.begin(), d_query.end(),
                  d_q_.begin() + static_cast<std::ptrdiff_t>(flat * d));
    }

    const Prepared& call_;
    const Problem& p_;
    const Observed& forward_;
    std::vector<double> d_o_, d_lse_;
    Emulation how_;
    BackwardDefect defect_;
    std::vector<std::int64_t> keys_;
    std::vector<float> d_q_, d_k_, d_v_, d_mask_, d_slopes_, d_sinks_;
};

}  // namespace

Backward emulate_backward(const Case& tried, const Dialect& dialect, const TensorSet& inputs,
                          const Emulation& how, BackwardDefect defect) {
    const Prepared call = prepare(tried.problem, dialect, inputs);
    const Observed forward = emulate(tried, dialect, inputs, how);
    return BackwardEmulator(call, forward, inputs, how, defect).run();
}

}  // namespace attest::oracle
