#include "reference/oracle/dropped.hpp"

#include <cmath>

#include "reference/oracle/gradients.hpp"
#include "reference/problem/errors.hpp"

namespace attest::oracle {

namespace {

const Tensor& keep_of(const Problem& p, const TensorSet& inputs) {
    if (!inputs.has(Role::dropout_keep) ||
        inputs[Role::dropout_keep].shape() != shape_of(p, Role::dropout_keep))
        throw BadInput("dropout " + std::to_string(p.dropout.p) + ": not defined here",
                       {"which weights are dropped is the kernel's own choice; hand over "
                        "dropout_keep, or ask for dropout 0"});
    return inputs[Role::dropout_keep];
}

/// What a kernel that is within e of the undropped is within of the dropped. Products with f in
/// double cost two units.
bound::ExpectedElement times_factor(const Problem& p, bound::ExpectedElement e) {
    const double f = 1 / (1 - p.dropout.p);
    e.value *= f;
    e.error = f * e.error + 0x1p-51 * std::abs(e.value);
    e.bound *= f * (1 + 0x1p-50);
    return e;
}

class Undropped {
public:
    Undropped(const Problem& problem, const TensorSet& inputs)
        : was_(problem), problem_(problem), inputs_(inputs), keep_(keep_of(problem, inputs)) {
        problem_.dim_v = group_size(problem) * problem.len_q * value_dim(problem);
        problem_.layout_v = problem_.layout_o = {};
        spread_values();
        if (inputs.has(Role::d_o)) spread_output_gradient();
        if (inputs.has(Role::d_lse)) divide_lse_gradient();
        inputs_.erase(Role::dropout_keep);
    }

    const Problem& problem() const { return problem_; }
    const TensorSet& inputs() const { return inputs_; }

    /// Channel of row i of query head h that stands for channel c.
    std::int64_t channel(std::int64_t h, std::int64_t i, std::int64_t c) const {
        return (h % group_size(was_) * was_.len_q + i) * value_dim(was_) + c;
    }
    bool keeps(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
        return keep_.bits(keep_.flat(b, h, i, j)) != 0;
    }
    /// Over each row and channel.
    template <typename Visit>
    void each_row(Visit visit) const {
        for (std::int64_t b = 0; b < was_.batch; ++b)
            for (std::int64_t h = 0; h < was_.heads_q; ++h)
                for (std::int64_t i = 0; i < was_.len_q; ++i)
                    for (std::int64_t c = 0; c < value_dim(was_); ++c) visit(b, h, i, c);
    }

private:
    void spread_values() {
        const Tensor& v = inputs_[Role::v];
        Tensor wide(v.type(), {was_.batch, was_.heads_kv, was_.len_kv, problem_.dim_v});
        each_row([&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
            const std::int64_t kv = h / group_size(was_);
            for (std::int64_t j = 0; j < was_.len_kv; ++j)
                if (keeps(b, h, i, j))
                    wide.set_bits(wide.flat(b, kv, j, channel(h, i, c)),
                                  v.bits(v.flat(b, kv, j, c)));
        });
        inputs_.put(Role::v, std::move(wide));
    }

    void spread_output_gradient() {
        const Tensor d_o = inputs_[Role::d_o];
        Tensor wide(d_o.type(), {was_.batch, was_.heads_q, was_.len_q, problem_.dim_v});
        each_row([&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
            wide.set_bits(wide.flat(b, h, i, channel(h, i, c)), d_o.bits(d_o.flat(b, h, i, c)));
        });
        inputs_.put(Role::d_o, std::move(wide));
    }

    /// dS = P (f dP' - f D' + dLSE) is f times P (dP' - D' + dLSE / f).
    void divide_lse_gradient() {
        const Tensor d_lse = inputs_[Role::d_lse];
        Tensor divided(ElementType::f64, d_lse.shape());
        for (std::int64_t at = 0; at < d_lse.size(); ++at)
            divided.set(at, d_lse.get(at) * (1 - was_.dropout.p));
        inputs_.put(Role::d_lse, std::move(divided));
    }

    const Problem& was_;
    Problem problem_;
    TensorSet inputs_;
    const Tensor& keep_;
};

}  // namespace

bound::Expected attend_dropped(const Problem& p, const Dialect& dialect, const Numerics& numerics,
                               const TensorSet& inputs, Arithmetic arithmetic) {
    const Undropped u(p, inputs);
    bound::Expected wide = attend_spread(u.problem(), dialect, numerics, u.inputs(), arithmetic);
    std::vector<bound::ExpectedElement> output;
    output.reserve(static_cast<std::size_t>(p.batch * p.heads_q * p.len_q * value_dim(p)));
    u.each_row([&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
        const std::int64_t row = (b * p.heads_q + h) * p.len_q + i;
        const std::int64_t at = row * u.problem().dim_v + u.channel(h, i, c);
        output.push_back(times_factor(p, wide.output[static_cast<std::size_t>(at)]));
    });
    wide.output = std::move(output);
    wide.output_shape[3] = value_dim(p);
    return wide;
}

// Of one row alone the values are masked in place.
bound::Expected attend_rows_dropped(const Problem& p, const Dialect& dialect,
                                    const Numerics& numerics, const TensorSet& inputs,
                                    const std::vector<std::int64_t>& rows, Arithmetic arithmetic) {
    const Tensor& keep = keep_of(p, inputs);
    const Tensor& v = inputs[Role::v];
    bound::Expected all;
    all.rows = rows;
    for (const std::int64_t row : rows) {
        TensorSet masked = inputs;
        masked.erase(Role::dropout_keep);
        const std::int64_t values = p.len_kv * value_dim(p);
        for (std::int64_t at = 0; at < v.size(); ++at)
            if (keep.bits(row * p.len_kv + at % values / value_dim(p)) == 0)
                masked[Role::v].set_bits(at, 0);
        const bound::Expected one =
            attend_rows_spread(p, dialect, numerics, masked, {row}, arithmetic);
        for (const bound::ExpectedElement& e : one.output) all.output.push_back(times_factor(p, e));
        all.lse.push_back(one.lse.front());
        all.row_empty.push_back(one.row_empty.front());
        all.output_shape = one.output_shape;
    }
    return all;
}

bound::ExpectedGradients gradients_dropped(const Problem& p, const Dialect& dialect,
                                           const Numerics& numerics, const TensorSet& inputs,
                                           Arithmetic arithmetic) {
    const Undropped u(p, inputs);
    bound::ExpectedGradients wide =
        gradients_spread(u.problem(), dialect, numerics, u.inputs(), arithmetic);
    for (const Role role : {Role::d_q, Role::d_k, Role::d_mask, Role::d_sinks, Role::d_slopes})
        for (bound::ExpectedElement& e : wide[role]) e = times_factor(p, e);
    // A row's term has in dV' the bound that it has in the sum of all.
    std::vector<bound::ExpectedElement> d_v(
        static_cast<std::size_t>(p.batch * p.heads_kv * p.len_kv * value_dim(p)));
    u.each_row([&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
        const std::int64_t kv = b * p.heads_kv + h / group_size(p);
        for (std::int64_t j = 0; j < p.len_kv; ++j) {
            if (!u.keeps(b, h, i, j)) continue;
            const std::int64_t key = kv * p.len_kv + j;
            const bound::ExpectedElement e = times_factor(
                p,
                wide.d_v[static_cast<std::size_t>(key * u.problem().dim_v + u.channel(h, i, c))]);
            bound::ExpectedElement& sum = d_v[static_cast<std::size_t>(key * value_dim(p) + c)];
            sum.value += e.value;
            sum.error += e.error + 0x1p-52 * std::abs(sum.value);
            sum.bound += e.bound;
        }
    });
    wide.d_v = std::move(d_v);
    return wide;
}

}  // namespace attest::oracle
