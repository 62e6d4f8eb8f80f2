#pragma once
// What the emulated kernels are made of: partial results, and steps that may be rounded coarser
// than the rest.

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "reference/oracle/prepared.hpp"
#include "reference/oracle/visibility.hpp"
#include "reference/problem/dialect.hpp"
#include "reference/problem/problem.hpp"

namespace attest::oracle {

/// Partial results over some keys: running maximum, sum and output.
template <typename F>
struct Part {
    F max = -std::numeric_limits<F>::infinity(), sum = 0;
    std::vector<F> output;
};

template <typename F>
F rounded(F x, NumberFormat format) {
    if (format == NumberFormat::unrounded) return x;
    const bool half = format == NumberFormat::f16;
    return static_cast<F>(
        round_to(static_cast<double>(x), half ? Precision::f16 : Precision::bf16));
}

/// As a split is kept until it is merged, its output `divided` by its sum or not.
template <typename F>
Part<F> kept(Part<F> part, NumberFormat partials, bool divided) {
    const F sum = divided && part.sum > 0 ? part.sum : F(1);
    for (F& o : part.output) o = rounded(o / sum, partials) * sum;
    return part;
}

/// As a unit that multiplies matrices takes it.
template <typename F>
F fed(F x, Operands operands, bool cut) {
    switch (operands) {
        case Operands::unrounded:
            return x;
        case Operands::tf32:
            return static_cast<F>(to_tf32(static_cast<double>(static_cast<float>(x)), cut));
        case Operands::f32:
            return static_cast<F>(static_cast<float>(x));
        default:
            return rounded(x, operands == Operands::f16 ? NumberFormat::f16 : NumberFormat::bf16);
    }
}

/// The vector, turned by RoPE at this position if it turns; cos, sin and the turn are rounded to
/// `format`.
template <typename F>
std::vector<F> turned(const Problem& p, const double* x, std::int64_t position, NumberFormat format,
                      bool turns) {
    std::vector<F> y(x, x + p.dim_qk);
    const std::int64_t dims = !turns ? 0 : p.rope.dims == 0 ? p.dim_qk : p.rope.dims;
    for (std::int64_t c = 0; c < dims / 2; ++c) {
        const bool pairs = p.rope.style == RopeStyle::interleaved;
        const std::size_t r = static_cast<std::size_t>(pairs ? 2 * c : c);
        const std::size_t s = static_cast<std::size_t>(pairs ? 2 * c + 1 : c + dims / 2);
        const F frequency = F(1) / std::pow(static_cast<F>(p.rope.base),
                                            static_cast<F>(2 * c) / static_cast<F>(dims));
        const F angle = static_cast<F>(position) * frequency;
        const F u = y[r], v = y[s];
        const auto low = [&](F z) { return rounded(z, format); };
        const F cosine = low(std::cos(angle)), sine = low(std::sin(angle));
        y[r] = low(low(u * cosine) - low(v * sine));
        y[s] = low(low(u * sine) + low(v * cosine));
    }
    return y;
}

/// Of all the sequence's values, hidden ones too, where they are numbers; zeros if not `wanted`.
template <typename F>
std::vector<F> value_mean(const Prepared& call, std::int64_t b, std::int64_t h_kv, bool wanted) {
    std::vector<F> mean(static_cast<std::size_t>(call.dim_v), F(0));
    const std::int64_t keys = wanted ? keys_valid(call.problem, b) : 0;
    for (std::size_t c = 0; c < mean.size(); ++c) {
        for (std::int64_t j = 0; j < keys; ++j)
            mean[c] += static_cast<F>(call.value(b, h_kv, j)[c]) / static_cast<F>(keys);
        if (!std::isfinite(mean[c])) mean[c] = 0;
    }
    return mean;
}

}  // namespace attest::oracle
