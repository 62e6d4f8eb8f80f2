#include "properties/law/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/problem/errors.hpp"

namespace attest {

namespace {

/// a ln(a / b), with 0 ln 0 = 0.
double relative_entropy_term(double a, double b) {
    return a > 0 ? a * std::log(a / b) : 0;
}

void require_rate(double rate) {
    require(rate > 0 && rate < 1, "a false-positive rate lies strictly between 0 and 1");
}

}  // namespace

void SelfNormalised::add(double x) noexcept {
    sum_ += x;
    squares_ += x * x;
    ++samples_;
}

double SelfNormalised::value() const noexcept {
    // Of zeros alone the sum is 0 whatever it is divided by; anything not finite stays NaN or
    // becomes it.
    if (squares_ == 0) return sum_;
    return sum_ / std::sqrt(squares_);
}

double SelfNormalised::threshold(double false_positive_rate) {
    require_rate(false_positive_rate);
    return std::sqrt(2 * std::log(2 / false_positive_rate));
}

Statistic SelfNormalised::statistic(std::string name, double false_positive_rate) const {
    return {std::move(name), value(), threshold(false_positive_rate), false_positive_rate,
            samples_};
}

ChiSquareInterval chi_square_interval(std::int64_t n, double false_positive_rate) {
    require_rate(false_positive_rate);
    require(n >= 1, "a chi-square has at least one square");
    const double x = std::log(2 / false_positive_rate);
    const auto count = static_cast<double>(n);
    const double spread = 2 * std::sqrt(count * x);
    return {std::max(count - spread, 0.0), count + spread + 2 * x};
}

double binomial_tail(std::int64_t n, std::int64_t count, double p) {
    require(n >= 0 && count >= 0 && count <= n, "a binomial count lies between 0 and n");
    require(p > 0 && p < 1, "a binomial chance lies strictly between 0 and 1");
    if (n == 0) return 1;
    const double q = static_cast<double>(count) / static_cast<double>(n);
    const double divergence = relative_entropy_term(q, p) + relative_entropy_term(1 - q, 1 - p);
    return std::min(1.0, std::exp(-static_cast<double>(n) * std::max(divergence, 0.0)));
}

}  // namespace attest
