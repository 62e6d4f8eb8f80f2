#include "reference/oracle/gradient_own_error.hpp"

#include <algorithm>
#include <cmath>

namespace attest::oracle {

// The reference's own dX_ij. With h the relative error of a normalised weight (2H + 2g), dP within
// sum(dv) of its size, D less dLSE within sum(dv + 1) of its size and what O's error brings, each
// operation within a unit, the cap's slope within f, and the sums that follow within sum(n) of what
// they add:
//   own_ij = p_ij [ (h + sum(dv + 1) + sum(n) + f + 10 units) (size dP + size D) + O's ].
// In base 2 dLSE is over log(2), which is within its function's error;
// a weight below weight_floor may be missing altogether. The slope 1 - t^2 is within 2.1 times
// what t is off by, the rotation of own_error.cpp costs 1.6 times a coordinate's error; 1.01 covers
// the products of two errors.
// Turning dQ and dK back costs, and the turned q and k hold, a rotation's error each.
void own_scores(const Prepared& call, const bound::KernelModel& model, const ArithmeticError& a,
                const GradientEntry& e, std::vector<double>& own) {
    const Problem& p = call.problem;
    const double n = static_cast<double>(p.len_kv + p.len_q * call.group);
    double relative =
        2 * e.own.weight + 2 * e.own.sum + a.sum(e.back.dim_v + 1) + a.sum(n) + 10 * a.unit;
    if (e.back.d_lse != 0) relative += a.function;
    if (model.softcap > 0) {
        double size = 0;
        for (std::size_t j = 0; j < e.row.score.size(); ++j) {
            const double bias = e.row.bias.empty() ? 0 : e.row.bias[j];
            size = std::max(size, std::abs(e.row.score[j]) + bias);
        }
        relative +=
            2.1 * (e.own.weight + a.function + 4 * a.unit * size) * (1 + 1 / model.softcap) +
            3 * a.unit;
    }
    if (model.rope) {
        const double angle = static_cast<double>(p.rope.offset + p.len_q + p.len_kv);
        relative += 4 * 1.6 * (2 * a.function + 3 * a.unit) +
                    3 * ((1 + model.rope_log_base) * a.function + 4 * a.unit) * angle;
    }
    own.resize(e.row.score.size());
    for (std::size_t j = 0; j < own.size(); ++j) {
        const double size = e.back.dp_size[j] + e.back.d_size;
        own[j] =
            1.01 * (e.row.weight[j] * (relative * size + e.own_output) + 2 * a.weight_floor * size);
        if (!(own[j] >= 0)) own[j] = infinite;
    }
}

}  // namespace attest::oracle
