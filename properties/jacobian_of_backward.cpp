// The Jacobian of the softmax, read off backward: with unit vectors for keys, values and dO, one
// call gives P_j (1[i=j] - P_i) for every i and j. And the slopes of the kernel's own forward.

#include <algorithm>
#include <cmath>
#include <vector>

#include "properties/law/gradient_cases.hpp"
#include "properties/law/gradient_pairs.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

/// n queries that are one, n keys and values that are unit vectors, dO_i the unit vector i: dP_ij =
/// 1[i=j], and dQ_ij = sigma dS_ij.
Problem unit_problem(const Given& given) {
    const std::int64_t n = 2 + given.random_below(stream_of("jacobian.size"), 0, 7);
    Problem p = plain(given.problem(), n, n);
    p.dim_qk = n;
    p.dim_v = 0;
    p.layout_q = p.layout_k = p.layout_v = p.layout_o = {};
    return canonical(p);
}

struct UnitCall {
    GradientRun backward;
    bound::Expected forward;

    explicit UnitCall(const Trial& trial, const Problem& p)
        : backward(trial, p, inputs_of(trial, p), {Role::d_q}),
          forward(trial.expected(p, backward.inputs())) {}

    /// dS_ij of one head.
    Interval slope(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
        return backward.truth(Role::d_q, backward[Role::d_q].flat(b, h, i, j)) /
               Interval::exactly(effective_scale(backward.problem()));
    }
    /// P_j: values are unit vectors.
    Interval weight(std::int64_t b, std::int64_t h, std::int64_t j) const {
        const Tensor& o = backward.inputs()[Role::o];
        const std::int64_t at = o.flat(b, h, j, j);
        return truth_of(o.get(at), forward.output[static_cast<std::size_t>(at)].bound,
                        backward.problem().format_o);
    }

    static TensorSet inputs_of(const Trial& trial, const Problem& p) {
        TensorSet inputs = blank_inputs(p);
        const auto unit = [](auto, auto, std::int64_t t, std::int64_t c) {
            return t == c ? 1.0 : 0.0;
        };
        for (const Role role : {Role::k, Role::v, Role::d_o})
            inputs.put(role, tensor_of(p, role, unit));
        const std::uint64_t stream = stream_of("jacobian.queries");
        inputs.put(Role::q, tensor_of(p, Role::q, [&](auto b, auto h, auto, auto c) {
                       return on_grid(trial, stream,
                                      static_cast<std::uint64_t>((b * p.heads_q + h) * 64 + c), 64,
                                      16);
                   }));
        return inputs;
    }
};

template <typename Check>
void each_head(const Problem& p, Check check) {
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < p.heads_q; ++h) check(b, h);
}

Judgement judge_vjp(const Trial& trial, const Problem& p) {
    const UnitCall call(trial, p);
    Tally tally(p);
    each_head(p, [&](std::int64_t b, std::int64_t h) {
        for (std::int64_t i = 0; i < p.len_q; ++i)
            for (std::int64_t j = 0; j < p.len_kv; ++j) {
                const Interval own = Interval::exactly(i == j ? 1 : 0);
                tally.same(
                    call.weight(b, h, j) * (own - call.weight(b, h, i)), call.slope(b, h, i, j),
                    {Role::d_q, {b, h, i, j}}, [] {
                        return std::string("the derivative of a weight is not P_j (1[i=j] - P_i)");
                    });
            }
    });
    return tally.judgement("nothing is bounded");
}

// x'Jx is the variance of x under P.
Judgement judge_psd(const Trial& trial, const Problem& p) {
    const UnitCall call(trial, p);
    const std::uint64_t stream = stream_of("jacobian.symmetric_psd");
    const Interval zero = Interval::exactly(0);
    Tally tally(p);
    each_head(p, [&](std::int64_t b, std::int64_t h) {
        Interval form;
        for (std::int64_t i = 0; i < p.len_q; ++i) {
            Interval row;
            for (std::int64_t j = 0; j < p.len_kv; ++j) {
                const Interval slope = call.slope(b, h, i, j);
                const ElementPlace place{Role::d_q, {b, h, i, j}};
                row = row + slope;
                const auto sign = [&](std::int64_t n) {
                    return trial.random_bits(stream, static_cast<std::uint64_t>(n)) % 2 == 0 ? 1.0
                                                                                             : -1.0;
                };
                form = form + Interval::exactly(sign(i) * sign(j)) * slope;
                tally.same(slope, call.slope(b, h, j, i), place, [] {
                    return std::string("the Jacobian of the softmax is not symmetric");
                });
            }
            tally.same(zero, row, {Role::d_q, {b, h, i, 0}},
                       [] { return std::string("a row of the Jacobian does not add up to zero"); });
        }
        tally.at_most(zero - form, zero, {Role::d_q, {b, h, 0, 0}}, [] {
            return std::string("the Jacobian of the softmax is not positive semidefinite");
        });
    });
    return tally.judgement("nothing is bounded");
}

template <Judgement (*judge)(const Trial&, const Problem&)>
Plan unit_plan(const Given& given) {
    const Problem p = unit_problem(given);
    const std::vector<Role> had = given.gradients_of(p);
    if (effective_scale(p) == 0) return not_applicable("no query reaches a score");
    if (std::find(had.begin(), had.end(), Role::d_q) == had.end() || !given.supports(p))
        return not_applicable("the kernel takes no problem of unit vectors");
    return [p](const Trial& trial) { return judge(trial, p); };
}

double norm(const Tensor& x, std::int64_t b, std::int64_t h, std::int64_t t) {
    double sum = 0;
    for (std::int64_t c = 0; c < x.shape()[3]; ++c) sum += std::pow(x.at(b, h, t, c), 2);
    return std::sqrt(sum);
}

/// Whose gradient is held against differences, and the directions' step to the next.
struct Direction {
    Role role, gradient;
    double unit;
};
constexpr Direction directions[] = {{Role::q, Role::d_q, 1.0 / 16},
                                    {Role::k, Role::d_k, 1.0 / 16},
                                    {Role::alibi_slopes, Role::d_slopes, 1.0 / 64}};

/// Slopes of the case are on no grid, and f32 would not hold them a step further.
void put_on_grid(const Trial& trial, TensorSet& inputs, std::uint64_t stream) {
    const Problem& p = trial.problem();
    for (const Role role : {Role::q, Role::k, Role::v, Role::d_o, Role::alibi_slopes}) {
        if (inputs.has(role)) inputs[role] = grid_tensor(trial, p, role, stream, 64, 1.0 / 64);
        ++stream;
    }
    if (!p.alibi) return;
    Tensor& slopes = inputs[Role::alibi_slopes];
    for (std::int64_t h = 0; h < slopes.size(); ++h)
        slopes.set(h, std::abs(slopes.get(h)) + 1.0 / 64);
}

/// sum over rows of dO.O + dLSE LSE, by the forward's answer.
Interval objective(const Run& call, const TensorSet& inputs) {
    Interval sum;
    const Problem& p = call.problem();
    const Tensor& d_o = inputs[Role::d_o];
    for (const Row& row : all_rows(p)) {
        if (blind(call, row)) continue;
        for (std::int64_t c = 0; c < value_dim(p); ++c)
            sum = sum + Interval::exactly(d_o.at(row.batch, row.head, row.query, c)) *
                            truth(call, row, c);
        if (inputs.has(Role::d_lse))
            sum = sum + lse_gradient(inputs, call.trial().dialect(), row) * lse_truth(call, row);
    }
    return sum;
}

// f(t) = dO.O + dLSE LSE along a direction delta of q, or of k: scores are linear in t, a_ij a
// unit, and f''' is the joint cumulant E[(y-Ey)(a-Ea)^3] - 3 Var(a) Cov(y, a) of y_ij = dO_i.v_j
// under P_i. With |a - Ea| <= R and |y - Ey| <= Y (twice the largest sizes; a sink has a = y = 0):
// |f'''| <= 4 Y R^3. So the central difference is off by at most h^2/6 sum_i 4 Y_i R_i^3, for
// |a_ij| <= sigma |delta||k| and |y_ij| <= |dO||v|, which rotation does not change. f''' of the LSE
// is the third cumulant E[(a-Ea)^3], at most R^3: |dLSE_i| R_i^3 more. Along slopes a_ij = -delta_h
// |i
// + off - j|, between 0 and |delta_h| (max(n_q, n_kv) - 1): R is that.
double truncation(const Trial& trial, const TensorSet& inputs, const Tensor& delta, Role along,
                  double step) {
    const Problem& p = trial.problem();
    const double furthest = static_cast<double>(std::max(p.len_q, p.len_kv) - 1);
    double sum = 0;
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < p.heads_q; ++h) {
            const std::int64_t g = h / group_size(p);
            double key = 0, value = 0;
            for (std::int64_t j = 0; j < p.len_kv; ++j) {
                key = std::max(key, norm(along == Role::k ? delta : inputs[Role::k], b, g, j));
                value = std::max(value, norm(inputs[Role::v], b, g, j));
            }
            for (std::int64_t i = 0; i < p.len_q; ++i) {
                const double query = norm(along == Role::q ? delta : inputs[Role::q], b, h, i);
                const double r = along == Role::alibi_slopes
                                     ? std::abs(delta.get(h)) * furthest
                                     : 2 * std::abs(effective_scale(p)) * query * key;
                const Interval of_lse = square(lse_gradient(inputs, trial.dialect(), {b, h, i}));
                sum += (4 * 2 * norm(inputs[Role::d_o], b, h, i) * value + std::sqrt(of_lse.hi)) *
                       r * r * r;
            }
        }
    return evaluation * step * step / 6 * sum;
}

Judgement check_differences(const Trial& trial) {
    const Problem& p = trial.problem();
    const std::uint64_t stream = stream_of("gradients.differences");
    TensorSet inputs = trial.inputs();
    put_on_grid(trial, inputs, stream);
    std::uint64_t n = 5;
    const GradientRun call(trial, p, inputs);
    Tally tally(p);
    for (const auto& [role, gradient, unit] : directions) {
        if (!call.has(gradient)) continue;
        const Tensor delta = grid_tensor(trial, p, role, stream + n++, 16, unit);
        const double step = 0x1p-13;  // truncation h^2 and rounding 2^-52 / h are near another
        const auto moved = [&](double by) {
            TensorSet there = inputs;
            for (std::int64_t at = 0; at < delta.size(); ++at)
                there[role].set(at, inputs[role].get(at) + by * delta.get(at));
            return objective(Run(trial, p, std::move(there)), inputs);
        };
        Interval slope;
        for (std::int64_t at = 0; at < delta.size(); ++at)
            slope = slope + given(delta, at) * call.truth(gradient, at);
        const Interval difference = (moved(step) - moved(-step)) / Interval::exactly(2 * step);
        const double off = truncation(trial, inputs, delta, role, step);
        tally.same(difference + Interval{-off, off}, slope, {gradient, {0, 0, 0, 0}}, [&] {
            return std::string("the gradients are not the slopes of the kernel's own forward");
        });
    }
    return tally.judgement("the kernel returns no gradients of q, k and slopes");
}

}  // namespace

std::vector<Property> jacobian_of_backward() {
    CaseSpace units{
        .allow = FeatureSet(Feature::lse, Feature::gqa, Feature::scale, Feature::mixed_formats),
        .cost = 16};
    CaseSpace smooth = gradient_cases(12);
    smooth.allow = smooth.allow.without(Feature::softcap).without(Feature::mixed_formats);
    smooth.formats = {Precision::f64};
    return {
        gradient_law(
            "jacobian.vjp", "Probed with unit vectors, backward gives P_j (1[i=j] - P_i).",
            "the derivative of a weight is P_j (1[i=j] - P_i)",
            "Keys, values and dO are unit vectors: O_i is P, dP_ij = 1[i=j], and dQ is sigma "
            "times the Jacobian of the softmax. P is read off forward, the Jacobian off "
            "backward.",
            "the softmax's derivative; Dao et al. 2022, appendix B.2", units, unit_plan<judge_vjp>,
            {planted::first_channel_doubled()}),
        gradient_law(
            "jacobian.symmetric_psd",
            "The Jacobian of the softmax is symmetric, semidefinite, and its rows add up to 0.",
            "diag(P) - PP' is symmetric and semidefinite",
            "x'Jx is the variance of x under P, and J 1 = P - P (1'P) = 0.",
            "the softmax's derivative", units, unit_plan<judge_psd>,
            {planted::first_channel_doubled()}),
        gradient_law(
            "gradients.differences",
            "In f64 the gradients are the slopes of the kernel's own forward.",
            "gradients are slopes of the own forward (f64)",
            "A central difference of dO.O + dLSE.LSE along a direction is off by h^2/6 times the "
            "third derivative: cumulants of the scores' change and dO.v, which their ranges "
            "bound. Everything lies on a grid, so that the step is exact. Without a soft cap.",
            "cumulants of an exponential family", std::move(smooth), always<check_differences>,
            {planted::both_gradients_unscaled(), planted::slope_gradients_negated(),
             planted::lse_gradient_ignored()}),
    };
}

}  // namespace attest::law
