#include "reference/oracle/lane_rows.hpp"

namespace attest::oracle {

namespace {

class LaneRowsDoubleDouble final : public RowArithmetic {
public:
    explicit LaneRowsDoubleDouble(const Prepared& call) : call_(call), head_(call) {
        const std::size_t keys =
            static_cast<std::size_t>(padded(TiledKeys::room(call.problem.len_kv) + 1));
        for (std::vector<double>* x : {&dot_hi_, &dot_lo_, &score_hi_, &score_lo_}) x->resize(keys);
        output_.resize(static_cast<std::size_t>(padded(call.dim_v)));
    }

    /// Weights carry 2^200, so that one at exp(-768) still has its low word: none is lost that a
    /// double could hold. The products with values stay below 2^996 if values stay below 2^700.
    ArithmeticError error() const override {
        ArithmeticError e = Arithmetics<DoubleDouble>::error();
        e.weight_floor = std::numeric_limits<double>::denorm_min();
        e.range = 0x1p700;
        return e;
    }

    void compute(std::span<const RowQuery> queries, std::span<RowValues> rows) override {
        head_.load(queries, span_of(queries));
        for (std::size_t row = 0; row < queries.size(); ++row)
            compute(row, queries[row], rows[row]);
    }

private:
    void compute(std::size_t row, const RowQuery& query, RowValues& out) {
        const KeySpan span = span_of({&query, 1});
        dots(head_.keys(), head_.query_hi(row), head_.query_lo(row), call_.scale, span.first,
             span.last, dot_hi_.data(), dot_lo_.data());
        const std::size_t keys = query.visible.size();
        const std::size_t entries = keys + (query.sink != nullptr ? 1 : 0);
        DoubleDouble most(-infinite);
        const bool finished = is_finished(call_, query);
        for (std::size_t j = 0; j < entries; ++j) {
            DoubleDouble s;
            if (j < keys) {
                const std::size_t at = static_cast<std::size_t>(query.visible[j]);
                s = {dot_hi_[at], dot_lo_[at]};
                if (!finished) s = finish_score(call_, query, j, s);
            } else {
                s = DoubleDouble(*query.sink);
            }
            score_hi_[j] = s.hi;
            score_lo_[j] = s.lo;
            if (most < s) most = s;
        }
        out.score.assign(score_hi_.begin(),
                         score_hi_.begin() + static_cast<std::ptrdiff_t>(entries));
        const std::size_t n = static_cast<std::size_t>(padded(static_cast<std::int64_t>(entries)));
        for (std::size_t j = entries; j < n; ++j) {
            score_hi_[j] = -infinite;
            score_lo_[j] = 0;
        }
        const DoubleDouble sum =
            exponentials(most, static_cast<std::int64_t>(n), score_hi_.data(), score_lo_.data());
        combine(head_.values(), padded(call_.dim_v), query.visible, score_hi_.data(),
                score_lo_.data(), sum, output_.data());

        out.weight.resize(entries);
        for (std::size_t j = 0; j < entries; ++j) out.weight[j] = score_hi_[j] / sum.hi;
        out.max = most.hi;
        const DoubleDouble unshifted{std::ldexp(sum.hi, -weight_shift),
                                     std::ldexp(sum.lo, -weight_shift)};
        out.sum = unshifted.hi;
        const DoubleDouble lse = most + log(unshifted);
        out.lse = lse.hi + lse.lo;
        const DoubleDouble two = lse / log_of_two_;
        out.lse_two = two.hi + two.lo;
        out.output.assign(output_.begin(), output_.begin() + call_.dim_v);
        head_.sizes(row, query, entries, out);
    }

    const Prepared& call_;
    LaneHead<DoubleDouble> head_;
    std::vector<double> dot_hi_, dot_lo_, score_hi_, score_lo_, output_;
    const DoubleDouble log_of_two_ = log(DoubleDouble(2.0));
};

}  // namespace

std::unique_ptr<RowArithmetic> lanes_in_double_double(const Prepared& call) {
    return std::make_unique<LaneRowsDoubleDouble>(call);
}

}  // namespace attest::oracle
