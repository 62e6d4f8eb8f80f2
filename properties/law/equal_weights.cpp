#include "properties/law/equal_weights.hpp"

#include <cmath>

#include "properties/law/reading.hpp"
#include "reference/bound/rounding.hpp"

namespace attest::law {

namespace {

// Parts that were normalised, and are merged by their log-sum-exps unasked, leave n - 1 merges at
// most, each of two exps of differences (E each, a rounding of each log-sum-exp, which is at most
// log n), a logarithm of 2 ulp and its sum with the maximum, and two products: the merged O is off
// by at most 3 E + (14 log n + 4) ua of mean |v|, the shift of weight between the two parts
// included.
double merge_slack(const bound::KernelModel& m, double keys) {
    if (!m.may_split) return 0;
    const double one = 3 * m.exp_error + (14 * std::log(keys) + 4) * m.ua;
    return evaluation * std::expm1((keys - 1) * one);
}

}  // namespace

// An exp declared coarser than a library's may be off at 0 too, by E; half precision and an epsilon
// leave no sum exact either. Numerator and denominator are off by x = E + up + epsilon + g of the
// sum of sizes, g that of the n + 6 roundings on the way, up where E may show in P: the mean by at
// most 2x/(1 - x) mean |v|. What rounds from there agrees.
double mean_slack(const bound::KernelModel& m, const Numerics& numerics, double keys) {
    if (!coarse_exp(numerics) && m.ua <= 0x1p-24 && m.epsilon == 0 && m.uf == 0 && m.uv == 0)
        return merge_slack(m, keys);
    const double up = m.exp_error < m.up / 2 ? 0 : m.up;
    const double x =
        m.exp_error + up + m.uv + m.epsilon + bound::chain_error(m.sum_depth(keys) + 6, m.ua);
    return x < 0.5 ? 2 * x / (1 - x) + merge_slack(m, keys) : HUGE_VAL;
}

}  // namespace attest::law
