// Attention under a known dropout mask against the formula written down once more, in long double,
// and against differences of the forward pass.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "reference/oracle/gradients.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/counter.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

struct Dropped {
    Problem p;
    TensorSet inputs;
};

Dropped dropped(const char* line) {
    Dropped d{parse_problem(line), {}};
    d.inputs = make_inputs({d.p, {.seed = 5}});
    Tensor keep(ElementType::u8, *shape_of(d.p, Role::dropout_keep));
    for (std::int64_t at = 0; at < keep.size(); ++at)
        keep.set_bits(at, counter_uniform(3, 1, static_cast<std::uint64_t>(at)) >= d.p.dropout.p);
    d.inputs.put(Role::dropout_keep, std::move(keep));
    return d;
}

// Grouped heads, causal; no other feature.
std::vector<double> by_formula(const Dropped& d) {
    const Problem& p = d.p;
    const TensorSet& in = d.inputs;
    std::vector<double> out;
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < p.heads_q; ++h)
            for (std::int64_t i = 0; i < p.len_q; ++i) {
                const std::int64_t kv = h / group_size(p);
                std::vector<long double> weight(static_cast<std::size_t>(p.len_kv));
                long double sum = 0;
                for (std::int64_t j = 0; j <= i + p.len_kv - p.len_q; ++j) {
                    long double dot = 0;
                    for (std::int64_t c = 0; c < p.dim_qk; ++c)
                        dot += in[Role::q].at(b, h, i, c) * in[Role::k].at(b, kv, j, c);
                    sum += weight[static_cast<std::size_t>(j)] = std::exp(dot * effective_scale(p));
                }
                for (std::int64_t c = 0; c < value_dim(p); ++c) {
                    long double o = 0;
                    for (std::int64_t j = 0; j < p.len_kv; ++j)
                        o += weight[static_cast<std::size_t>(j)] / sum *
                             in[Role::dropout_keep].at(b, h, i, j) * in[Role::v].at(b, kv, j, c) /
                             (1 - p.dropout.p);
                    out.push_back(static_cast<double>(o));
                }
            }
    return out;
}

TEST(Dropped, OutputIsTheFormulasAndTheLseIsOfAllWeights) {
    const Dropped d = dropped("b2 hq4 hkv2 tq5 tk7 d6 dv3 f64 causal dropout 0.25");
    Problem plain = d.p;
    plain.dropout = {};
    const bound::Expected e = attend(d.p, {}, {}, d.inputs), all = attend(plain, {}, {}, d.inputs);
    const std::vector<double> want = by_formula(d);
    ASSERT_EQ(e.output.size(), want.size());
    for (std::size_t at = 0; at < want.size(); ++at) {
        EXPECT_NEAR(e.output[at].value, want[at], 1e-14);
        EXPECT_GT(e.output[at].bound, 0);
    }
    for (std::size_t at = 0; at < e.lse.size(); ++at) EXPECT_EQ(e.lse[at].value, all.lse[at].value);
}

TEST(Dropped, ARowByItselfIsTheRowAmongAll) {
    const Dropped d = dropped("b2 hq4 hkv2 tq3 tk9 d4 f32 window 2 -1 softcap 5 sink dropout 0.5");
    const bound::Expected all = attend(d.p, {}, {}, d.inputs);
    const std::vector<std::int64_t> rows{0, 7, 23};
    const bound::Expected some = attend_rows(d.p, {}, {}, d.inputs, rows, Arithmetic::exact);
    for (std::size_t n = 0; n < rows.size(); ++n)
        for (std::size_t c = 0; c < 4; ++c) {
            const auto& one = some.output[n * 4 + c];
            const auto& other = all.output[static_cast<std::size_t>(rows[n]) * 4 + c];
            EXPECT_NEAR(one.value, other.value, one.error + other.error);
            EXPECT_NEAR(one.bound, other.bound, 1e-3 * other.bound);
        }
}

// Of <dO, O> + <dLSE, LSE>, LSE in base 2, by central differences; every input of every role.
TEST(Dropped, GradientsAreDerivativesOfTheOutput) {
    Dropped d = dropped("b2 hq4 hkv2 tq3 tk5 d4 dv3 f64 causal mask additive sink dropout 0.25");
    d.p.want_grad = d.p.lse_grad = true;
    const Dialect dialect{.lse_base = LseBase::two};
    const TensorSet given = make_inputs({d.p, {.seed = 5}});
    for (const Role role : {Role::d_o, Role::d_lse}) d.inputs.put(role, given[role]);
    const auto loss = [&] {
        const bound::Expected e = attend(d.p, dialect, {}, d.inputs);
        double sum = 0;
        for (std::size_t at = 0; at < e.lse.size(); ++at)
            sum += e.lse[at].value * given[Role::d_lse].get(static_cast<std::int64_t>(at));
        for (std::size_t at = 0; at < e.output.size(); ++at)
            sum += e.output[at].value * d.inputs[Role::d_o].get(static_cast<std::int64_t>(at));
        return sum;
    };
    const bound::ExpectedGradients g = attend_gradients(d.p, dialect, {}, d.inputs);
    const std::pair<Role, Role> roles[] = {{Role::q, Role::d_q},
                                           {Role::k, Role::d_k},
                                           {Role::v, Role::d_v},
                                           {Role::mask, Role::d_mask}};
    for (const auto& [role, gradient] : roles)
        for (std::int64_t at = 0; at < d.inputs[role].size(); at += 3) {
            const double x = d.inputs[role].get(at);
            if (!std::isfinite(x)) continue;
            constexpr double step = 0x1p-16;
            d.inputs[role].set(at, x + step);
            const double above = loss();
            d.inputs[role].set(at, x - step);
            const double below = loss();
            d.inputs[role].set(at, x);
            EXPECT_NEAR(g[gradient][static_cast<std::size_t>(at)].value, (above - below) / 2 / step,
                        1e-7)
                << name(gradient) << " " << at;
        }
}

// An LSE near -1e30 is known to 1e23: a kernel may have any weight there, and times 0 it is NaN.
TEST(Dropped, NothingIsClaimedOfAWeightThatMayBeInfiniteThoughItIsDropped) {
    for (const double floor : {0.0, -1e30}) {
        Dropped d = dropped("tq1 tk1 d1 mask additive f32 dropout 0.5");
        d.p.want_grad = true;
        d.inputs.put(Role::d_o, make_inputs({d.p, {.seed = 5}})[Role::d_o]);
        d.inputs[Role::mask].set(0, floor);
        d.inputs[Role::dropout_keep].set_bits(0, 0);
        const bound::ExpectedElement d_v = attend_gradients(d.p, {}, {}, d.inputs).d_v.at(0);
        EXPECT_EQ(d_v.value, 0);
        EXPECT_EQ(d_v.bound, floor == 0 ? 0 : infinite);
    }
}

TEST(Dropped, AMaskOfAnotherShapeIsRefused) {
    Dropped d = dropped("tq2 tk3 d4 dropout 0.5");
    d.inputs.put(Role::dropout_keep, Tensor(ElementType::u8, {1, 1, 3, 2}));
    EXPECT_THROW(attend(d.p, {}, {}, d.inputs), BadInput);
}

}  // namespace
}  // namespace attest::oracle
