#include "properties/law/relations.hpp"

#include <Eigen/QR>
#include <cmath>
#include <vector>

namespace attest::law {

namespace {

/// A relation u put into the queries of a head: what is left of it.
struct Remainder {
    std::vector<double> factor, size;  ///< sum_i u_i q_ic and sum_i |u_i q_ic|, [dim_qk]
    double queries = 0;
};

Remainder remainder_of(const TensorSet& inputs, const Problem& problem, std::int64_t batch,
                       std::int64_t head, const Eigen::VectorXd& u) {
    Remainder left;
    left.queries = static_cast<double>(problem.len_q);
    for (std::int64_t c = 0; c < problem.dim_qk; ++c) {
        double sum = 0, size = 0;
        for (std::int64_t i = 0; i < problem.len_q; ++i) {
            const double term = u[i] * inputs[Role::q].at(batch, head, i, c);
            sum += term;
            size += std::abs(term);
        }
        left.factor.push_back(sum);
        left.size.push_back(size);
    }
    return left;
}

// sum_i u_i S_ij = sigma sum_c (sum_i u_i q_ic) k_jc, exactly. The inner sums are computed in
// double, each term with two roundings and T more on its way (rounding.hpp), the outer one with D +
// 3: all within (T + D + 5) 2^-53 of the sum of sizes, itself known to 2^-30 of itself.
Interval exact_remainder(const Remainder& left, const TensorSet& inputs, const Problem& problem,
                         std::int64_t batch, std::int64_t head_kv, std::int64_t key) {
    double sum = 0, size = 0;
    for (std::int64_t c = 0; c < problem.dim_qk; ++c) {
        const double k = inputs[Role::k].at(batch, head_kv, key, c);
        sum += left.factor[static_cast<std::size_t>(c)] * k;
        size += left.size[static_cast<std::size_t>(c)] * std::abs(k);
    }
    const double scale = effective_scale(problem);
    const double roundings = left.queries + static_cast<double>(problem.dim_qk) + 5;
    return Interval::around(scale * sum, evaluation * roundings * 0x1p-53 * std::abs(scale) * size);
}

/// sum_i u_i log P_ij as the kernel shows it.
Interval shown_remainder(const Weights& weights, const Eigen::VectorXd& u, std::int64_t batch,
                         std::int64_t head, std::int64_t key) {
    Interval sum;
    for (Eigen::Index i = 0; i < u.size(); ++i)
        sum = sum + Interval::exactly(u[i]) * log(weights.at({batch, head, i}, key));
    return sum;
}

}  // namespace

// In Q = UR the columns of U behind those of Q are orthogonal to all of Q.
Eigen::MatrixXd relations_among(const TensorSet& inputs, const Problem& problem, std::int64_t batch,
                                std::int64_t head) {
    Eigen::MatrixXd queries(problem.len_q, problem.dim_qk);
    for (std::int64_t i = 0; i < problem.len_q; ++i)
        for (std::int64_t c = 0; c < problem.dim_qk; ++c)
            queries(i, c) = inputs[Role::q].at(batch, head, i, c);
    const Eigen::Index more = queries.rows() - queries.cols();
    const Eigen::MatrixXd last =
        Eigen::MatrixXd::Identity(queries.rows(), queries.rows()).rightCols(more);
    return Eigen::HouseholderQR<Eigen::MatrixXd>(queries).householderQ() * last;
}

// sum_i u_i L_i is common to all keys: each is compared with key 0.
void compare_relation(Tally& tally, const Weights& weights, const TensorSet& inputs,
                      const Eigen::VectorXd& u, std::int64_t batch, std::int64_t in,
                      const std::function<std::string()>& sentence) {
    const Problem& problem = weights.first().problem();
    const std::int64_t head_kv = in / group_size(problem);
    const Remainder left = remainder_of(inputs, problem, batch, in, u);
    const Interval exact = exact_remainder(left, inputs, problem, batch, head_kv, 0);
    const Interval shown = shown_remainder(weights, u, batch, in, 0);
    for (std::int64_t j = 1; j < problem.len_kv; ++j)
        tally.same(exact_remainder(left, inputs, problem, batch, head_kv, j) - exact,
                   shown_remainder(weights, u, batch, in, j) - shown, output_at({batch, in, 0}, 0),
                   sentence);
    if (!weights.first().has_lse()) return;
    Interval lse;
    for (Eigen::Index i = 0; i < u.size(); ++i)
        lse = lse + Interval::exactly(u[i]) * lse_truth(weights.first(), {batch, in, i});
    tally.same(exact, shown + lse, lse_at({batch, in, 0}), sentence);
}

}  // namespace attest::law
