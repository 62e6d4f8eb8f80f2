// Compiled several times with other flags. The definitions ATTEST_PLAIN (the function's name) and
// Eigen (its namespace, so that no two copies of a template share a symbol) come from CMake.

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ci/plain_attention.hpp"

namespace attest::ci {

namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Input = Eigen::Map<const Matrix>;
using Output = Eigen::Map<Matrix>;

// exp(x) = 2^k exp(r), |r| <= log(2)/2, and the Taylor polynomial of degree 13; 0 below -708.
inline double plain_exp(double x) {
    constexpr double log2_high = 0x1.62e42feep-1, log2_low = 0x1.a39ef35793c76p-33;
    constexpr double shift = 0x1.8p52;
    constexpr double coefficients[] = {
        1 / 6227020800.0, 1 / 479001600.0, 1 / 39916800.0, 1 / 3628800.0, 1 / 362880.0, 1 / 40320.0,
        1 / 5040.0,       1 / 720.0,       1 / 120.0,      1 / 24.0,      1 / 6.0,      1 / 2.0};
    const double clamped = x < -708.0 ? -708.0 : x;
    const double biased = clamped * 1.4426950408889634 + shift, k = biased - shift;
    double r = clamped - k * log2_high;
    r = r - k * log2_low;
    double p = coefficients[0];
    for (int i = 1; i < 12; ++i) p = p * r + coefficients[i];
    p = p * (r * r) + r + 1.0;
    std::int64_t bits;
    std::memcpy(&bits, &biased, sizeof bits);
    bits = static_cast<std::int64_t>(static_cast<std::uint64_t>(bits + 1023) << 52);
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return x < -708.0 ? 0.0 : p * power;
}

}  // namespace

void ATTEST_PLAIN(const PlainCall& call) {
    const Input q(call.q, call.len_q, call.dim), k(call.k, call.len_kv, call.dim);
    const Input v(call.v, call.len_kv, call.dim);
    Output out(call.out, call.len_q, call.dim);
    constexpr std::int64_t block = 64;
    static thread_local Matrix scores;
    scores.resize(block, call.len_kv);
    const std::int64_t n = call.len_kv;
    for (std::int64_t i = 0; i < call.len_q; i += block) {
        const std::int64_t rows = std::min(block, call.len_q - i);
        auto part = scores.topRows(rows);
        part.noalias() = q.middleRows(i, rows) * k.transpose();
        part *= call.scale;
        for (std::int64_t r = 0; r < rows; ++r) {
            double* s = scores.data() + r * n;
            double most = s[0];
            for (std::int64_t j = 1; j < n; ++j) most = s[j] > most ? s[j] : most;
            for (std::int64_t j = 0; j < n; ++j) s[j] = plain_exp(s[j] - most);
            Eigen::Map<Eigen::VectorXd> row(s, n);
            row *= 1 / row.sum();
        }
        out.middleRows(i, rows).noalias() = part * v;
    }
}

}  // namespace attest::ci
