#include "reference/oracle/lane_rows.hpp"

namespace attest::oracle {

namespace {

/// Keys whose values stay in the cache while all rows of a block are combined with them.
constexpr std::int64_t keys_at_once = 64;

class LaneRowsDouble final : public RowArithmetic {
public:
    explicit LaneRowsDouble(const Prepared& call) : call_(call), head_(call) {}

    /// As the scalar double's, but exp stops at exp(-708) < 2^-1021.
    ArithmeticError error() const override {
        ArithmeticError e = Arithmetics<double>::error();
        e.weight_floor = 0x1p-1021;
        return e;
    }

    void compute(std::span<const RowQuery> queries, std::span<RowValues> rows) override {
        span_ = span_of(queries);
        head_.load(queries, span_);
        const std::int64_t count = static_cast<std::int64_t>(queries.size());
        dot_products(count);
        weight_.resize(dot_.size());
        sum_.resize(queries.size());
        for (std::size_t row = 0; row < queries.size(); ++row) weigh(row, queries[row], rows[row]);
        combine_values(count);
        const std::size_t stride = static_cast<std::size_t>(padded(call_.dim_v));
        for (std::size_t row = 0; row < queries.size(); ++row) {
            std::vector<double>& out = rows[row].output;
            out.resize(static_cast<std::size_t>(call_.dim_v));
            // Two roundings, which output_errors() allows for.
            scaled(output_.data() + row * stride, 1 / sum_[row], call_.dim_v, out.data());
        }
    }

private:
    void dot_products(std::int64_t rows) {
        const std::int64_t d = call_.problem.dim_qk, width = span_.size();
        dot_.resize(static_cast<std::size_t>(rows * width));
        for (std::int64_t j = span_.first; j < span_.last; j += key_tile)
            add_product(Product<double>{.rows = rows,
                                        .inner = d,
                                        .width = key_tile,
                                        .a = head_.query_hi(0),
                                        .a_stride = d,
                                        .b = head_.keys().hi + TiledKeys::at(d, j, 0),
                                        .b_stride = key_tile,
                                        .out = dot_.data() + (j - span_.first),
                                        .out_stride = width,
                                        .fresh = true});
    }

    /// Scores and weights of a row; weights before division also into weight_, one a key.
    void weigh(std::size_t row, const RowQuery& query, RowValues& out) {
        const std::size_t keys = query.visible.size();
        const std::size_t entries = keys + (query.sink != nullptr ? 1 : 0);
        const std::int64_t n = padded(static_cast<std::int64_t>(entries));
        const std::int64_t base = static_cast<std::int64_t>(row) * span_.size() - span_.first;
        const double* dot = dot_.data() + base;
        out.score.resize(static_cast<std::size_t>(n));
        out.weight.resize(static_cast<std::size_t>(n));
        const bool dense = query.dense() && keys > 0;
        const std::int64_t begin = dense ? query.visible.front() : 0;
        if (dense && is_finished(call_, query)) {
            out.max =
                scaled(dot + begin, call_.scale, static_cast<std::int64_t>(keys), out.score.data());
        } else {
            for (std::size_t j = 0; j < keys; ++j)
                out.score[j] = finish_score(call_, query, j, dot[query.visible[j]] * call_.scale);
            out.max =
                scaled(out.score.data(), 1, static_cast<std::int64_t>(keys), out.score.data());
        }
        if (query.sink != nullptr) out.max = std::max(out.max, out.score[keys] = *query.sink);
        std::fill(out.score.begin() + static_cast<std::ptrdiff_t>(entries), out.score.end(),
                  -infinite);
        out.sum = sum_[row] = exponentials(out.score.data(), out.max, n, out.weight.data());
        out.score.resize(entries);
        out.weight.resize(entries);
        double* weight = weight_.data() + base;
        if (dense) {
            std::fill(weight + span_.first, weight + begin, 0.0);
            double* end = std::copy_n(out.weight.data(), keys, weight + begin);
            std::fill(end, weight + span_.last, 0.0);
        } else {
            std::fill(weight + span_.first, weight + span_.last, 0.0);
            for (std::size_t j = 0; j < keys; ++j) weight[query.visible[j]] = out.weight[j];
        }
        scaled(out.weight.data(), 1 / out.sum, static_cast<std::int64_t>(entries),
               out.weight.data());
        out.lse = out.max + std::log(out.sum);
        out.lse_two = out.lse / 0.6931471805599453;
        head_.sizes(row, query, entries, out);
    }

    void combine_values(std::int64_t rows) {
        const std::int64_t stride = padded(call_.dim_v);
        output_.resize(static_cast<std::size_t>(rows * stride));
        if (span_.size() == 0) std::fill(output_.begin(), output_.end(), 0.0);
        const std::int64_t last = std::min(span_.last, call_.problem.len_kv);
        for (std::int64_t j = span_.first; j < last; j += keys_at_once)
            add_product(Product<double>{.rows = rows,
                                        .inner = std::min(keys_at_once, last - j),
                                        .width = stride,
                                        .a = weight_.data() + (j - span_.first),
                                        .a_stride = span_.size(),
                                        .b = head_.values() + j * stride,
                                        .b_stride = stride,
                                        .out = output_.data(),
                                        .out_stride = stride,
                                        .fresh = j == span_.first});
    }

    const Prepared& call_;
    LaneHead<double> head_;
    KeySpan span_;
    std::vector<double> dot_, weight_;  // [rows, span]
    std::vector<double> output_;        // [rows, padded(dim_v)]
    std::vector<double> sum_;           // [rows]
};

}  // namespace

std::unique_ptr<RowArithmetic> lanes_in_double(const Prepared& call) {
    return std::make_unique<LaneRowsDouble>(call);
}

}  // namespace attest::oracle
