
#include "reference/oracle/oracle.hpp"
#include "reference/oracle/row_runner.hpp"

namespace attest::oracle {

namespace {

// Scores are those before dropout; its mask, where the inputs hold it, is for the weights.
Problem undropped(Problem problem, const TensorSet& inputs) {
    if (inputs.has(Role::dropout_keep)) problem.dropout = {};
    return problem;
}

/// Rows of one problem, made ready once.
class RowDetails {
public:
    RowDetails(const Problem& problem, const Dialect& dialect, const TensorSet& inputs)
        : call_(prepare(undropped(problem, inputs), dialect, inputs)),
          clean_(cleaned(call_)),
          runner_(call_, clean_, bound::resolve(undropped(problem, inputs), Numerics{}),
                  definition_in_double(clean_)),
          len_kv_(static_cast<std::size_t>(problem.len_kv)),
          dropped_(problem.dropout.p),
          keep_(dropped_ > 0 ? &inputs[Role::dropout_keep] : nullptr) {
        const auto rows = static_cast<std::size_t>(problem.batch * problem.heads_q * problem.len_q);
        out_.output.resize(rows * static_cast<std::size_t>(call_.dim_v));
        out_.lse.resize(rows);
        out_.row_empty.resize(rows);
    }

    RowDetail row(std::int64_t flat) {
        runner_.row(flat, out_);
        RowDetail detail;
        constexpr double hidden = -infinite;
        detail.scores.assign(len_kv_, hidden);
        detail.weights.assign(len_kv_, 0.0);
        detail.max = detail.lse = hidden;
        const RowValues& row = runner_.values();
        if (row.score.empty()) return detail;
        for (std::size_t j = 0; j < runner_.visible().size(); ++j) {
            const auto key = static_cast<std::size_t>(runner_.visible()[j]);
            detail.scores[key] = row.score[j];
            detail.weights[key] = row.weight[j];
            if (keep_ == nullptr) continue;
            const bool kept =
                keep_->get(flat * static_cast<std::int64_t>(len_kv_) + runner_.visible()[j]) != 0;
            detail.weights[key] = kept ? row.weight[j] / (1 - dropped_) : 0;
        }
        detail.max = row.max;
        detail.sum = row.sum;
        detail.lse = row.lse;
        return detail;
    }

private:
    static Prepared cleaned(Prepared call) {
        clean_values(call);
        return call;
    }

    Prepared call_, clean_;
    RowRunner runner_;
    std::size_t len_kv_;
    double dropped_;
    const Tensor* keep_;  ///< [batch, heads_q, len_q, len_kv]
    bound::Expected out_;
};

}  // namespace

RowDetail row_detail(const Problem& problem, const Dialect& dialect, const TensorSet& inputs,
                     std::int64_t batch, std::int64_t head, std::int64_t query) {
    return RowDetails(problem, dialect, inputs)
        .row((batch * problem.heads_q + head) * problem.len_q + query);
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
