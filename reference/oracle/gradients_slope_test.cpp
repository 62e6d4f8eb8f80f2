// Gradients against central differences of the definition in 50 digits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/oracle/attention.hpp"
#include "reference/oracle/gradients.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

/// Attention of a plain problem in 50 digits, as a function of q and k.
struct FiftyDigits {
    const Problem& p;
    std::vector<Exact> q, k;
    std::vector<double> v, d_o, d_lse;
    LseBase base;

    static std::vector<Exact> widened(const Tensor& tensor) {
        const std::vector<double> x = tensor.to_doubles();
        return {x.begin(), x.end()};
    }
    FiftyDigits(const Problem& problem, const TensorSet& inputs, LseBase lse_base)
        : p(problem),
          q(widened(inputs[Role::q])),
          k(widened(inputs[Role::k])),
          v(inputs[Role::v].to_doubles()),
          d_o(inputs[Role::d_o].to_doubles()),
          d_lse(inputs[Role::d_lse].to_doubles()),
          base(lse_base) {}

    Exact objective() const {
        RowInputs<Exact> in;
        in.keys = k.data();
        in.values = v.data();
        in.dim_qk = p.dim_qk;
        in.dim_v = value_dim(p);
        in.scale = effective_scale(p);
        in.softcap = p.softcap;
        AttentionRow<Exact> row;
        std::vector<std::int64_t> seen;
        Exact total = 0;
        for (std::int64_t i = 0; i < p.len_q; ++i) {
            seen.clear();
            const std::int64_t last = p.mask.causal ? p.len_kv - p.len_q + i + 1 : p.len_kv;
            for (std::int64_t j = 0; j < last; ++j) seen.push_back(j);
            in.visible = seen;
            in.query = q.data() + i * p.dim_qk;
            attend_row<Exact>(in, row);
            for (std::int64_t c = 0; c < in.dim_v; ++c)
                total += row.output[static_cast<std::size_t>(c)] *
                         d_o[static_cast<std::size_t>(i * in.dim_v + c)];
            const Exact unit = base == LseBase::two ? log(Exact(2)) : Exact(1);
            total += row.lse / unit * d_lse[static_cast<std::size_t>(i)];
        }
        return total;
    }
    /// Central difference; its error is near step^2 = 2^-120, and 10^-50 / step.
    template <typename T>
    double slope(std::vector<T>& of, std::size_t at, const T& step) {
        const T x = of[at];
        of[at] = x + step;
        const Exact above = objective();
        of[at] = x - step;
        const Exact below = objective();
        of[at] = x;
        return Exact((above - below) / (2 * Exact(step))).template convert_to<double>();
    }
};

TEST(gradients, are_within_their_errors_of_the_slopes_in_fifty_digits) {
    const Exact step = ldexp(Exact(1), -60);
    double worst = 0;
    const auto check = [&](double softcap, LseBase base) {
        for (const ValueKind kind : {ValueKind::normal, ValueKind::logit50, ValueKind::cancel_v}) {
            Case c;
            Problem& p = c.problem;
            p.len_q = 3;
            p.len_kv = 7;
            p.dim_qk = 5;
            p.dim_v = 4;
            p.mask.causal = true;
            p.softcap = softcap;
            p.want_grad = p.lse_grad = true;
            p.format_q = p.format_kv = p.format_o = Precision::f64;
            c.values.kind = kind;
            const TensorSet inputs = make_inputs(c);
            FiftyDigits truth(p, inputs, base);
            for (const Arithmetic a : {Arithmetic::plain_double, Arithmetic::double_double}) {
                const bound::ExpectedGradients g =
                    attend_gradients(p, {.lse_base = base}, {}, inputs, a);
                const auto agree = [&](const bound::ExpectedElement& e, double slope) {
                    const double allowed = e.error + 1e-24 * (1 + std::abs(slope));
                    EXPECT_LE(std::abs(e.value - slope), allowed);
                    EXPECT_LT(e.error, 1e-9 * (1 + std::abs(slope)));
                    worst = std::max(worst, std::abs(e.value - slope) / allowed);
                };
                for (std::size_t x = 0; x < truth.q.size(); ++x)
                    agree(g.d_q[x], truth.slope(truth.q, x, step));
                for (std::size_t x = 0; x < truth.k.size(); ++x)
                    agree(g.d_k[x], truth.slope(truth.k, x, step));
                for (std::size_t x = 0; x < truth.v.size(); ++x)  // linear in v
                    agree(g.d_v[x], truth.slope(truth.v, x, 0x1p-10));
            }
        }
    };
    for (const double softcap : {0.0, 5.0})
        for (const LseBase base : {LseBase::e, LseBase::two}) check(softcap, base);
    std::printf("gradients against slopes in 50 digits: worst %.3g of their errors\n", worst);
}

}  // namespace
}  // namespace attest::oracle
