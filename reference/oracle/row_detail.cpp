
#include "reference/oracle/oracle.hpp"
#include "reference/oracle/row_runner.hpp"

namespace attest::oracle {

namespace {

// Scores are those before dropout; its mask, where the inputs hold it, is for the weights.
Problem undropped(Problem problem, const TensorSet& inputs) {
    if (inputs.has(Role::dropout_keep)) problem.dropout = {};
    return problem;
}

Prepared cleaned(Prepared call) {
    clean_values(call);
    return call;
}

}  // namespace

struct RowDetails::Call {
    Call(const Problem& p, const Dialect& dialect, const TensorSet& inputs)
        : problem(p),
          call(prepare(undropped(p, inputs), dialect, inputs)),
          changed(call.any_nonfinite ? cleaned(call) : Prepared{}),
          runner(call, clean(), bound::resolve(undropped(p, inputs), Numerics{}),
                 definition_in_double(clean())),
          keep(p.dropout.p > 0 ? &inputs[Role::dropout_keep] : nullptr) {
        const auto rows = static_cast<std::size_t>(p.batch * p.heads_q * p.len_q);
        out.output.resize(rows * static_cast<std::size_t>(call.dim_v));
        out.lse.resize(rows);
        out.row_empty.resize(rows);
    }
    const Prepared& clean() const { return call.any_nonfinite ? changed : call; }

    Problem problem;
    Prepared call, changed;
    RowRunner runner;
    const Tensor* keep;  ///< [batch, heads_q, len_q, len_kv]
    bound::Expected out;
};

RowDetails::RowDetails(const Problem& problem, const Dialect& dialect, const TensorSet& inputs)
    : call_(std::make_unique<Call>(problem, dialect, inputs)) {}

RowDetails::~RowDetails() = default;

RowDetail RowDetails::row(std::int64_t flat) {
    Call& c = *call_;
    c.runner.row(flat, c.out);
    RowDetail detail;
    constexpr double hidden = -infinite;
    const std::int64_t len_kv = c.problem.len_kv;
    detail.scores.assign(static_cast<std::size_t>(len_kv), hidden);
    detail.weights.assign(static_cast<std::size_t>(len_kv), 0.0);
    detail.shares = detail.weights;
    detail.max = detail.lse = detail.sink = hidden;
    const RowValues& row = c.runner.values();
    if (!c.call.sinks.empty())
        detail.sink =
            c.call.sinks[static_cast<std::size_t>(flat / c.problem.len_q % c.problem.heads_q)];
    if (row.score.empty()) return detail;
    for (std::size_t j = 0; j < c.runner.visible().size(); ++j) {
        const std::int64_t at = c.runner.visible()[j];
        const auto key = static_cast<std::size_t>(at);
        detail.scores[key] = row.score[j];
        detail.weights[key] = detail.shares[key] = row.weight[j];
        if (c.keep == nullptr) continue;
        const bool kept = c.keep->get(flat * len_kv + at) != 0;
        detail.weights[key] = kept ? row.weight[j] / (1 - c.problem.dropout.p) : 0;
    }
    detail.max = row.max;
    detail.sum = row.sum;
    detail.lse = row.lse;
    return detail;
}

RowDetail RowDetails::row(std::int64_t batch, std::int64_t head, std::int64_t query) {
    const Problem& p = call_->problem;
    return row((batch * p.heads_q + head) * p.len_q + query);
}

std::vector<RowDetail> row_details(const Problem& problem, const Dialect& dialect,
                                   const TensorSet& inputs) {
    RowDetails details(problem, dialect, inputs);
    std::vector<RowDetail> list;
    for (std::int64_t n = 0; n < problem.batch * problem.heads_q * problem.len_q; ++n)
        list.push_back(details.row(n));
    return list;
}

}  // namespace attest::oracle
