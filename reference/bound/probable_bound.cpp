#include "reference/bound/probable_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace attest::bound {

namespace {

/// Weights that round alike: the same binade and the same bits but for the last one of the format.
double bin_of(double weight, Precision format) {
    int exponent = 0;
    const double mantissa = std::frexp(weight, &exponent);
    const int bits = traits(format).significand_bits - 1;
    return std::ldexp(std::floor(std::ldexp(mantissa, bits)), exponent - bits);
}

/// Addends that hardly differ round alike: by how much n of them, one after another, are off in the
/// sums of one binade, where that is most; the largest partial sum is `top`, each is known to `ua`.
double biased_by(std::span<const double> addends, double top, double ua) {
    double largest = 0, most = 0;
    for (const double a : addends) largest = std::max(largest, std::abs(a));
    if (!(largest > 0) || !std::isfinite(top)) return 0;
    for (double grid = 2 * ua * std::ldexp(1.0, std::ilogb(top)); grid >= 2 * ua * largest;
         grid /= 2) {
        double error = 0;
        for (const double a : addends) error += a - grid * std::nearbyint(a / grid);
        most = std::max(most, std::abs(error));
    }
    return most;
}

/// How far roundings of one sign take the sums of a row of many keys; 0 of fewer, whose n/4 stay
/// within the root of their squares, 3.8 sqrt(2 n).
class OneSided {
public:
    OneSided(const RowFacts& facts, std::size_t keys, double ua)
        : facts_(facts), sum_(std::exp(facts.lse - facts.max)), ua_(ua) {
        constexpr std::size_t many = 256;
        if (keys < many) return;
        addends_.resize(keys);
        for (std::size_t j = 0; j < keys; ++j) addends_[j] = sum_ * facts.weight[j];
        of_sum_ = biased_by(addends_, sum_, ua) / sum_;
    }
    /// What is added up is not p v but p l v, in the frame of the row's maximum.
    void add(std::size_t j, double v) {
        if (!addends_.empty()) addends_[j] = sum_ * facts_.weight[j] * v;
    }
    /// Of an output of this size, once all of its keys are added; w1: the sum of their sizes.
    double of_output(double size, double w1) const {
        if (addends_.empty()) return 0;
        return of_sum_ * size + biased_by(addends_, sum_ * w1, ua_) / sum_;
    }

private:
    const RowFacts& facts_;
    double sum_, ua_, of_sum_ = 0;
    std::vector<double> addends_;
};

}  // namespace

double azuma_factor(double delta) noexcept {
    return std::sqrt(2.0 / 3.0 * std::log(2 / delta));
}

// Equal scores get equal errors, and weights in one bin round alike: their errors are added up
// before they are squared, as if fully correlated.
void ProbableRow::group(const RowFacts& facts) {
    const std::size_t keys = facts.score.size() - (facts.sink ? 1 : 0);
    const double ua = model_.ua, heaviest = std::exp(facts.max - facts.lse);
    const double d = static_cast<double>(model_.dim_qk) + 4 + model_.biases;
    order_.resize(keys);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(),
              [&](std::size_t x, std::size_t y) { return facts.score[x] > facts.score[y]; });
    new_score_.assign(keys, 1);
    new_bin_.assign(keys, 1);
    of_score_.assign(keys, 0.0);
    of_rounding_.assign(keys, 0.0);
    const ScoreError error = score_error(model_, facts.q_max, facts.k_max);
    double score = 0, bin = 0;
    for (std::size_t at = 0; at < keys; ++at) {
        const std::size_t j = order_[at];
        const double p = facts.weight[j], apart = facts.max - facts.score[j];
        const double a = ua * facts.magnitude[j];
        double h = std::sqrt(d * a * a + 9 * ua * ua * apart * apart +
                             model_.exp_error * model_.exp_error) +
                   error.absolute;
        // Bias and angle errors are of constants, shared by many keys: not random.
        if (!facts.bias.empty()) h += error.bias * facts.bias[j];
        if (!facts.turn.empty()) h += error.angle * facts.turn[j] + error.dot * facts.magnitude[j];
        of_score_[j] = p * h;
        if (model_.up > 0) of_rounding_[j] = std::min(p, std::max(model_.up * p, model_.omp));
        const double own_bin = bin_of(p / heaviest, weights_);
        if (at > 0 && facts.score[j] == score) new_score_[at] = 0;
        if (at > 0 && own_bin == bin) new_bin_[at] = 0;
        score = facts.score[j];
        bin = own_bin;
    }
}

void ProbableRow::square_groups(std::span<const std::int64_t> visible, const double* values,
                                std::int64_t stride, std::span<const double> exact) {
    const std::size_t columns = exact.size();
    square_.assign(columns, 0.0);
    score_sum_.assign(columns, 0.0);
    rounding_sum_.assign(columns, 0.0);
    const auto close = [&](std::vector<double>& sums) {
        for (std::size_t c = 0; c < columns; ++c) {
            square_[c] += sums[c] * sums[c];
            sums[c] = 0;
        }
    };
    for (std::size_t at = 0; at < order_.size(); ++at) {
        if (new_score_[at] != 0) close(score_sum_);
        if (new_bin_[at] != 0) close(rounding_sum_);
        const std::size_t j = order_[at];
        const double* v = values + visible[j] * stride;
        for (std::size_t c = 0; c < columns; ++c) {
            const double centred = scale_ * std::abs(v[c] - exact[c]);
            score_sum_[c] += of_score_[j] * centred;
            rounding_sum_[c] +=
                of_rounding_[j] * (model_.sums_rounded_weights ? centred : scale_ * std::abs(v[c]));
        }
    }
    close(score_sum_);
    close(rounding_sum_);
}

// E_b = sys + lambda sqrt(B2):
//   B2 = groups of scores + groups of roundings + R (exp_error S1)^2 + (ua srms sigma)^2
//        + h_O (ua w1)^2 + h_l (ua O)^2 + (2.5 ua O)^2,
//   sys = 3 ua srms sigma + ua |m| S1 + X (w1 + |O|) + max(stagnation, one-sided roundings),
// S1 = sum p |v - O|, sigma^2 = sum p (v - O)^2, w1 = sum p |v|, srms^2 = sum p (m - s)^2.
// Constants that are rounded (scale, log2(e)) err one way for all keys: sys. So do addends too
// small to register in a long sum: all keys with p < 8 ua count min(p, ua)(|v| + |O|), without
// which the model fails (measured: one dominant key and thousands of keys below ua). And addends
// that hardly differ, as of 98,305 keys with flat scores, are all rounded the same way.
void ProbableRow::bound(const RowFacts& facts, std::span<const std::int64_t> visible,
                        const double* values, std::int64_t stride, std::span<const double> exact,
                        double factor, std::span<double> worst_case) {
    const std::size_t keys = visible.size(), columns = exact.size();
    if (keys == 0) return;
    group(facts);
    // Squares of small values would underflow: all is computed at a scale where the largest is 1.
    double largest = 0;
    for (const std::int64_t key : visible)
        for (std::size_t c = 0; c < columns; ++c)
            largest =
                std::max(largest, std::abs(values[key * stride + static_cast<std::int64_t>(c)]));
    const int exponent = largest > 0 ? std::clamp(std::ilogb(largest), -1000, 1000) : 0;
    scale_ = std::ldexp(1.0, -exponent);
    square_groups(visible, values, stride, exact);
    const double ua = model_.ua, n = static_cast<double>(keys);
    double rises = n - 1;
    if (model_.tile > 0)
        rises = std::min(
            rises,
            std::ceil(static_cast<double>(model_.len_kv) / static_cast<double>(model_.tile)) - 1);
    rises += model_.may_split ? 2 : 0;
    double srms = 0, score_max = 0, relative = 0;
    for (std::size_t j = 0; j < keys; ++j) {
        const double apart = facts.max - facts.score[j];
        srms += facts.weight[j] * apart * apart;
        score_max = std::max(score_max, std::abs(facts.score[j]));
        relative += of_score_[j];
    }
    srms = std::sqrt(srms);
    const double merge =
        model_.may_split
            ? std::expm1(8 * ua * (score_max + std::log(n) + 2) + 6 * model_.exp_error + 4 * ua)
            : 0;
    OneSided one_sided(facts, keys, ua);
    for (std::size_t c = 0; c < columns; ++c) {
        double s1 = 0, variance = 0, w1 = 0, stagnant = 0, total = 0;
        const double exact_c = scale_ * exact[c], size = std::abs(exact_c);
        for (std::size_t j = 0; j < keys; ++j) {
            const double p = facts.weight[j];
            const double v = scale_ * values[visible[j] * stride + static_cast<std::int64_t>(c)];
            const double centred = std::abs(v - exact_c);
            s1 += p * centred;
            variance += p * centred * centred;
            w1 += p * std::abs(v);
            total += std::abs(v);
            if (p < 8 * ua) stagnant += std::min(p, ua) * (std::abs(v) + size);
            one_sided.add(j, v);
        }
        const auto squared = [](double x) { return x * x; };
        const double sigma = std::sqrt(variance);
        const double b2 = square_[c] + rises * squared(model_.exp_error * s1) +
                          squared(ua * srms * sigma) + (n + rises + 4) * squared(ua * w1) +
                          (n + rises + 1) * squared(ua * size) + squared(2.5 * ua * size);
        const double systematic = 3 * ua * srms * sigma + ua * std::abs(facts.max) * s1 +
                                  merge * (w1 + size) +
                                  std::max(stagnant, one_sided.of_output(size, w1));
        double error = (systematic + factor * std::sqrt(b2)) *
                       (1 + 2 * (relative + (n + rises) * ua + model_.up));
        // Back at its own scale, rounded up.
        error = error / scale_ + std::numeric_limits<double>::denorm_min();
        error += 2 * model_.oma * (n + rises + 4) +
                 2 * (model_.oma + model_.weight_floor) * (total / scale_);
        error += model_.uo * (std::abs(exact[c]) + error) + model_.omo;
        if (error < worst_case[c]) worst_case[c] = error;
    }
}

}  // namespace attest::bound
