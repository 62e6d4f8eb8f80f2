#include <algorithm>
#include <cmath>

#include "reference/oracle/lane_rows.hpp"

namespace attest {

namespace {

class LaneRows final : public RowArithmetic {
public:
    explicit LaneRows(const Prepared& call) : call_(call), head_(call) {
        const std::size_t keys = static_cast<std::size_t>(padded(call.problem.len_kv + 1));
        for (std::vector<double>* x : {&dot_, &size_, &score_, &weight_}) x->resize(keys);
        output_.resize(static_cast<std::size_t>(padded(call.dim_v)));
    }

    /// As the scalar double's, but exp stops at exp(-708) < 2^-1021.
    ArithmeticError error() const override {
        ArithmeticError e = Arithmetics<double>::error();
        e.weight_floor = 0x1p-1021;
        return e;
    }

    void compute(const RowQuery& query, RowValues& out) override {
        head_.load(query);
        const KeySpan span = span_of(query.visible);
        dots(head_.keys(), head_.query_hi(), span.first, span.last, dot_.data(), size_.data());
        const std::size_t keys = query.visible.size();
        const std::size_t entries = keys + (query.sink != nullptr ? 1 : 0);
        for (std::size_t j = 0; j < keys; ++j)
            score_[j] =
                finish_score(call_, query, j, dot_[static_cast<std::size_t>(query.visible[j])]);
        if (query.sink != nullptr) score_[keys] = *query.sink;
        const double most = *std::max_element(
            score_.begin(), score_.begin() + static_cast<std::ptrdiff_t>(entries));
        const std::int64_t n = padded(static_cast<std::int64_t>(entries));
        std::fill(score_.begin() + static_cast<std::ptrdiff_t>(entries),
                  score_.begin() + static_cast<std::ptrdiff_t>(n),
                  -std::numeric_limits<double>::infinity());
        const double sum = exponentials(score_.data(), most, n, weight_.data());
        combine(head_.values(), head_.stride(), query.visible, weight_.data(), output_.data());

        out.score.assign(score_.begin(), score_.begin() + static_cast<std::ptrdiff_t>(entries));
        out.weight.resize(entries);
        for (std::size_t j = 0; j < entries; ++j) out.weight[j] = weight_[j] / sum;
        out.max = most;
        out.sum = sum;
        out.lse = most + std::log(sum);
        out.lse_two = out.lse / 0.6931471805599453;
        out.output.resize(static_cast<std::size_t>(call_.dim_v));
        for (std::size_t c = 0; c < out.output.size(); ++c) out.output[c] = output_[c] / sum;
        if (head_.turned()) return head_.sizes().sizes(query.visible, entries, out);
        out.q_max = head_.sizes().query_max;
        out.k_max = head_.sizes().key_max;
        out.turn.clear();
        out.magnitude.assign(entries, 0.0);
        const double scale = std::abs(call_.scale);
        for (std::size_t j = 0; j < keys; ++j)
            out.magnitude[j] = scale * size_[static_cast<std::size_t>(query.visible[j])];
    }

private:
    const Prepared& call_;
    LaneHead<double> head_;
    std::vector<double> dot_, size_, score_, weight_, output_;
};

}  // namespace

std::unique_ptr<RowArithmetic> lanes_in_double(const Prepared& call) {
    return std::make_unique<LaneRows>(call);
}

}  // namespace attest
