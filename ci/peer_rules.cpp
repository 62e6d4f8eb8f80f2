#include "ci/peer_rules.hpp"

#include <cmath>
#include <cstddef>

namespace attest::ci {

namespace {

/// torch.allclose: |o - e| <= atol + rtol |e|, and equal infinities; NaN is close to nothing.
bool all_close(const Outputs& outputs, double rtol, double atol) {
    for (std::size_t n = 0; n < outputs.expected.size(); ++n) {
        const double e = outputs.expected[n], o = outputs.observed[n];
        if (e != o && !(std::abs(o - e) <= atol + rtol * std::abs(e))) return false;
    }
    return true;
}

/// tests/test_flash_attn.py: no more than twice the largest error of a plain kernel.
bool twice_the_naive_error(const Outputs& outputs) {
    const auto& [expected, observed, naive, bf16] = outputs;
    double own = 0, plain = 0;
    for (std::size_t n = 0; n < expected.size(); ++n) {
        if (std::isnan(observed[n]) != std::isnan(expected[n])) return false;
        own = std::fmax(own, std::abs(observed[n] - expected[n]));
        plain = std::fmax(plain, std::abs(naive[n] - expected[n]));
    }
    return own <= 2 * plain;
}

/// ggml's test-backend-ops: the sum of squared errors over that of squares.
bool small_mean_square(const Outputs& outputs) {
    constexpr double most = 5e-4;
    double errors = 0, squares = 0;
    for (std::size_t n = 0; n < outputs.expected.size(); ++n) {
        const double e = outputs.expected[n], o = outputs.observed[n];
        errors += (o - e) * (o - e);
        squares += e * e;
    }
    return errors <= most * squares;
}

/// tests/gtests/internals/test_sdpa.cpp: two in a thousand may be off by more than a threshold,
/// relative above 1, and none by more than another.
bool few_are_off(const Outputs& outputs) {
    const double threshold = outputs.bf16 ? 0.0079 : 0.001466;
    constexpr double most = 0.03, share = 0.002;
    std::size_t off = 0;
    for (std::size_t n = 0; n < outputs.expected.size(); ++n) {
        const double e = outputs.expected[n], o = outputs.observed[n];
        const double error = e == o ? 0 : std::abs(o - e);
        if (std::isnan(error) || error > threshold * std::fmax(1, std::abs(e))) ++off;
        if (error > most) return false;
    }
    return off <= static_cast<std::size_t>(static_cast<double>(outputs.expected.size()) * share);
}

}  // namespace

std::array<bool, peer_rule_count> accepted_by_peers(const Outputs& outputs) {
    constexpr double torch_rtol = 1e-5, torch_atol = 1e-8, bench = 1e-2;
    constexpr double cudnn = 2e-2;  // cudnn-frontend's test_mhas.py
    return {all_close(outputs, torch_rtol, torch_atol),
            twice_the_naive_error(outputs),
            small_mean_square(outputs),
            all_close(outputs, bench, bench),
            all_close(outputs, cudnn, cudnn),
            few_are_off(outputs)};
}

}  // namespace attest::ci
