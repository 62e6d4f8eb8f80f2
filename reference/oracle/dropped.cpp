#include "reference/oracle/dropped.hpp"

#include <cmath>

#include "reference/oracle/gradients.hpp"
#include "reference/oracle/undropped.hpp"

namespace attest::oracle {

bound::Expected attend_dropped(const Problem& p, const Dialect& dialect, const Numerics& numerics,
                               const TensorSet& inputs, Arithmetic arithmetic) {
    const Undropped u(p, inputs);
    return u.folded(attend_spread(u.problem(), dialect, numerics, u.inputs(), arithmetic));
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
            const std::int64_t key = kv * p.len_kv + j;
            const bound::ExpectedElement& term =
                wide.d_v[static_cast<std::size_t>(key * u.problem().dim_v + u.channel(h, i, c))];
            bound::ExpectedElement& sum = d_v[static_cast<std::size_t>(key * value_dim(p) + c)];
            if (!u.keeps(b, h, i, j)) {
                // A weight that a kernel may have as infinity times 0 is NaN.
                if (term.bound == infinite) sum.bound = infinite;
                continue;
            }
            const bound::ExpectedElement e = times_factor(p, term);
            sum.value += e.value;
            sum.error += e.error + 0x1p-52 * std::abs(sum.value);
            sum.bound += e.bound;
        }
    });
    wide.d_v = std::move(d_v);
    return wide;
}

}  // namespace attest::oracle
