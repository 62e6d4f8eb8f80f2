#include "ci/peer_rules.hpp"

#include <cmath>

namespace attest::ci {

namespace {

/// torch.allclose: |o - e| <= atol + rtol |e|, and equal infinities; NaN is close to nothing.
bool all_close(std::span<const double> expected, std::span<const double> observed, double rtol,
               double atol) {
    for (std::size_t n = 0; n < expected.size(); ++n) {
        const double e = expected[n], o = observed[n];
        if (e != o && !(std::abs(o - e) <= atol + rtol * std::abs(e))) return false;
    }
    return true;
}

/// tests/test_flash_attn.py: no more than twice the largest error of a plain kernel.
bool twice_the_naive_error(std::span<const double> expected, std::span<const double> observed,
                           std::span<const double> naive) {
    double own = 0, plain = 0;
    for (std::size_t n = 0; n < expected.size(); ++n) {
        if (std::isnan(observed[n]) != std::isnan(expected[n])) return false;
        own = std::fmax(own, std::abs(observed[n] - expected[n]));
        plain = std::fmax(plain, std::abs(naive[n] - expected[n]));
    }
    return own <= 2 * plain;
}

/// ggml's test-backend-ops: the sum of squared errors over that of squares.
bool small_mean_square(std::span<const double> expected, std::span<const double> observed) {
    constexpr double most = 5e-4;
    double errors = 0, squares = 0;
    for (std::size_t n = 0; n < expected.size(); ++n) {
        errors += (observed[n] - expected[n]) * (observed[n] - expected[n]);
        squares += expected[n] * expected[n];
    }
    return errors <= most * squares;
}

}  // namespace

std::array<bool, peer_rule_count> accepted_by_peers(std::span<const double> expected,
                                                    std::span<const double> observed,
                                                    std::span<const double> naive) {
    constexpr double torch_rtol = 1e-5, torch_atol = 1e-8, bench = 1e-2;
    return {all_close(expected, observed, torch_rtol, torch_atol),
            twice_the_naive_error(expected, observed, naive), small_mean_square(expected, observed),
            all_close(expected, observed, bench, bench)};
}

}  // namespace attest::ci
