#include "reference/oracle/gradient_facts.hpp"

#include <algorithm>
#include <cmath>

#include "reference/oracle/own_error.hpp"

namespace attest::oracle {

namespace {

double size_of(const double* x, std::int64_t n) {
    double size = 0;
    for (std::int64_t c = 0; c < n; ++c) size += std::abs(x[c]);
    return size;
}

}  // namespace

bound::BackwardFacts GradientFacts::make(std::int64_t flat, std::span<const std::int64_t> visible,
                                         const double* d_output, const double* values,
                                         const bound::Expected& forward, double d, double d_lse) {
    const Problem& p = call_.problem;
    const std::int64_t dim_v = call_.dim_v;
    dp_size_.assign(dp.size(), 0.0);
    bound::BackwardFacts facts;
    for (std::size_t j = 0; j < visible.size(); ++j) {
        const double* v = values + visible[j] * dim_v;
        for (std::int64_t c = 0; c < dim_v; ++c) dp_size_[j] += std::abs(d_output[c] * v[c]);
        if (feeds_unit_) facts.fed = std::max(facts.fed, size_of(v, dim_v));
    }
    if (feeds_unit_) facts.fed += size_of(d_output, dim_v);
    facts.dp = dp;
    facts.dp_size = dp_size_;
    facts.slope = slope;
    facts.d = d;
    facts.d_size = facts.d_lse = std::abs(d_lse);
    // Where dropout gave each row channels of its own (dropped.hpp), dO is zero in all others.
    const std::int64_t rows = p.dropout.p > 0 ? call_.group * p.len_q : 1;
    facts.dim_v = static_cast<double>(dim_v / rows);
    // dropped.hpp hands over dLSE (1-p) in double: two units.
    own_output_ = p.dropout.p > 0 ? 0x1p-51 * std::abs(d_lse) : 0;
    const FormatTraits o = traits(p.format_o);
    for (std::int64_t c = 0; c < dim_v; ++c) {
        const bound::ExpectedElement& x =
            forward.output[static_cast<std::size_t>(flat * dim_v + c)];
        const double size = std::abs(d_output[c]);
        facts.d_size += size * std::abs(x.value);
        // The stored O is off by the bound, its rounding, and half a subnormal step.
        facts.d_output += size * (x.bound + o.unit_roundoff * (std::abs(x.value) + x.bound) +
                                  std::ldexp(1.0, o.exponent_min - o.significand_bits));
        // 1.01 covers the products of two errors.
        own_output_ += 1.01 * size * std::max(0.0, x.error - double_rounding(x.value));
    }
    const bound::ExpectedElement& lse = forward.lse[static_cast<std::size_t>(flat)];
    const double unit =
        traits(p.format_q == Precision::f64 ? Precision::f64 : Precision::f32).unit_roundoff;
    const double natural = call_.dialect.lse_base == LseBase::two ? std::log(2.0) : 1.0;
    // In base 2 it is multiplied by log(2) again: two units more.
    facts.lse_error = 1.0001 * natural * (lse.bound + 3 * unit * (std::abs(lse.value) + lse.bound));
    return facts;
}

bool zeros_add_nothing(const Prepared& call) {
    constexpr double small = 0x1p15;  // f16 has 65504: room for every rounding
    if (call.any_nonfinite) return false;
    const auto size = [](const std::vector<double>& x) {
        double most = 0;
        for (const double e : x) most = std::max(most, std::abs(e));
        return most;
    };
    // -inf hides a key; a finite floor may be all that a row has, and its P = exp(S - L) is then
    // the difference of two large numbers.
    const auto shown = [](const std::vector<double>& x) {
        double most = 0;
        for (const double e : x) most = std::max(most, e == -infinite ? 0 : std::abs(e));
        return most;
    };
    // Twice: rotation turns both operands.
    const double scores = 2 * static_cast<double>(call.problem.dim_qk) * size(call.q) *
                          size(call.k) * std::max(1.0, std::abs(call.scale));
    return scores + shown(call.mask) < small && size(call.v) < small && shown(call.sinks) < small;
}

}  // namespace attest::oracle
