#pragma once
// The definition of attention.hpp as a RowArithmetic.

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "reference/oracle/attention.hpp"
#include "reference/oracle/rotated_head.hpp"
#include "reference/oracle/row_arithmetic.hpp"

namespace attest::oracle {

/// `turned`: RoPE has turned q and k, so they are no longer doubles.
template <typename Real, bool turned>
class DefinitionRows final : public RowArithmetic {
public:
    using Element = std::conditional_t<turned, Real, double>;
    explicit DefinitionRows(const Prepared& call) : call_(call), p_(call.problem), head_(call) {}

    ArithmeticError error() const override { return Arithmetics<Real>::error(); }

    /// The row last computed, and from what.
    const AttentionRow<Real>& computed() const { return row_; }
    const RowInputs<Element>& inputs() const { return inputs_; }
    const RotatedHead<Real>& head() const { return head_; }

    void compute(std::span<const RowQuery> queries, std::span<RowValues> rows) override {
        for (std::size_t row = 0; row < queries.size(); ++row) compute(queries[row], rows[row]);
    }

private:
    void compute(const RowQuery& query, RowValues& out) {
        const std::int64_t h_kv = query.h / call_.group;
        RowInputs<Element>& in = inputs_;
        if constexpr (turned) {
            head_.load(query.b, h_kv);
            head_.turn_query(query.b, query.h, query.i, query.range.position);
            in.keys = head_.keys.data();
            in.query = head_.query.data();
        } else {
            head_.load_sizes(query.b, h_kv);
            head_.query_sizes(query.b, query.h, query.i);
            in.keys = call_.key(query.b, h_kv, 0);
            in.query = call_.query(query.b, query.h, query.i);
        }
        in.values = call_.value(query.b, h_kv, 0);
        in.dim_qk = p_.dim_qk;
        in.dim_v = call_.dim_v;
        in.visible = query.visible;
        in.mask = query.mask;
        in.distance = query.distance;
        in.slope = query.slope;
        in.scale = call_.scale;
        in.softcap = p_.softcap;
        in.cap_after_bias = call_.dialect.softcap == SoftcapPlace::after_bias;
        in.sink = query.sink;
        attend_row<Real>(in, row_);
        round(query, out);
    }

    void round(const RowQuery& query, RowValues& out) const {
        using A = Arithmetics<Real>;
        const std::size_t entries = row_.score.size();
        out.score.resize(entries);
        out.weight.resize(entries);
        out.sum = A::nearest(row_.sum);
        for (std::size_t j = 0; j < entries; ++j) {
            out.score[j] = A::nearest(row_.score[j]);
            out.weight[j] = A::nearest(row_.weight[j]) / out.sum;
        }
        out.max = A::nearest(row_.max);
        out.lse = A::nearest(row_.lse);
        out.lse_two = A::nearest(row_.lse / A::log(Real(2.0)));
        out.output.resize(row_.output.size());
        for (std::size_t c = 0; c < row_.output.size(); ++c)
            out.output[c] = A::nearest(row_.output[c]);
        head_.sizes(query.visible, entries, out);
    }

    const Prepared& call_;
    const Problem& p_;
    RotatedHead<Real> head_;
    RowInputs<Element> inputs_;
    AttentionRow<Real> row_;
};

template <typename Real>
std::unique_ptr<RowArithmetic> make_definition(const Prepared& call) {
    if (call.problem.rope.style == RopeStyle::none)
        return std::make_unique<DefinitionRows<Real, false>>(call);
    return std::make_unique<DefinitionRows<Real, true>>(call);
}

}  // namespace attest::oracle
