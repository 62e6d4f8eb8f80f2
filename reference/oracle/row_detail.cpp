#include <limits>

#include "reference/oracle/oracle.hpp"
#include "reference/oracle/row_runner.hpp"

namespace attest::oracle {

RowDetail row_detail(const Problem& problem, const Dialect& dialect, const TensorSet& inputs,
                     std::int64_t batch, std::int64_t head, std::int64_t query) {
    // Scores are those before dropout; its mask, where the inputs hold it, is for the weights.
    Problem undropped = problem;
    if (inputs.has(Role::dropout_keep)) undropped.dropout = {};
    const Prepared call = prepare(undropped, dialect, inputs);
    Prepared clean = call;
    clean_values(clean);
    RowRunner runner(call, clean, bound::resolve(undropped, Numerics{}),
                     definition_in_double(clean));
    const std::size_t rows =
        static_cast<std::size_t>(problem.batch * problem.heads_q * problem.len_q);
    bound::Expected out;
    out.output.resize(rows * static_cast<std::size_t>(call.dim_v));
    out.lse.resize(rows);
    out.row_empty.resize(rows);
    runner.row((batch * problem.heads_q + head) * problem.len_q + query, out);

    RowDetail detail;
    constexpr double hidden = -std::numeric_limits<double>::infinity();
    detail.scores.assign(static_cast<std::size_t>(problem.len_kv), hidden);
    detail.weights.assign(static_cast<std::size_t>(problem.len_kv), 0.0);
    detail.max = detail.lse = hidden;
    const RowValues& row = runner.values();
    if (row.score.empty()) return detail;
    for (std::size_t j = 0; j < runner.visible().size(); ++j) {
        const std::size_t key = static_cast<std::size_t>(runner.visible()[j]);
        detail.scores[key] = row.score[j];
        detail.weights[key] = row.weight[j];
        if (problem.dropout.p == 0) continue;
        const Tensor& keep = inputs[Role::dropout_keep];
        const bool kept = keep.at(batch, head, query, runner.visible()[j]) != 0;
        detail.weights[key] = kept ? row.weight[j] / (1 - problem.dropout.p) : 0;
    }
    detail.max = row.max;
    detail.sum = row.sum;
    detail.lse = row.lse;
    return detail;
}

}  // namespace attest::oracle
