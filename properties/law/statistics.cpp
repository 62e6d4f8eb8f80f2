#include "properties/law/statistics.hpp"

#include <cmath>
#include <utility>

#include "reference/problem/errors.hpp"

namespace attest::law {

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
    require(false_positive_rate > 0 && false_positive_rate < 1,
            "a false-positive rate lies strictly between 0 and 1");
    return std::sqrt(2 * std::log(2 / false_positive_rate));
}

Statistic SelfNormalised::statistic(std::string name, double false_positive_rate) const {
    return {std::move(name), value(), threshold(false_positive_rate), false_positive_rate,
            samples_};
}

}  // namespace attest::law
