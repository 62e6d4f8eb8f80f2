#include <cmath>
#include <utility>

#include "properties/law/compare.hpp"
#include "properties/law/gradient_cases.hpp"
#include "properties/law/gradient_run.hpp"

namespace attest::law::planted {

namespace {

/// `change` made to the right gradients.
PlantedDeviation gives(std::string id,
                       std::function<void(const Question&, std::int64_t, TensorSet&)> change) {
    return {.id = std::move(id),
            .differentiates = [change = std::move(change)](const Question& asked, std::int64_t call,
                                                           const auto& truth) {
                TensorSet gradients = truth(asked);
                change(asked, call, gradients);
                return gradients;
            }};
}

/// The gradients of another question.
PlantedDeviation differentiates_another(std::string id, std::function<void(Question&)> change) {
    return {.id = std::move(id),
            .differentiates = [change = std::move(change)](Question asked, std::int64_t,
                                                           const auto& truth) {
                change(asked);
                return truth(asked);
            }};
}

using planted::each;
void each(TensorSet& gradients, const std::function<double(double)>& change) {
    for (const Role role : gradient_roles)
        if (gradients.has(role)) each(gradients[role], change);
}

void unscale(const Question& asked, Tensor& gradient) {
    const double scale = effective_scale(asked.problem);
    if (scale != 0) each(gradient, [scale](double x) { return x / scale; });
}

}  // namespace

PlantedDeviation key_gradients_unscaled() {
    return gives("key_gradients_unscaled", [](const Question& asked, std::int64_t, TensorSet& g) {
        unscale(asked, g[Role::d_k]);
    });
}

PlantedDeviation both_gradients_unscaled() {
    return gives("both_gradients_unscaled", [](const Question& asked, std::int64_t, TensorSet& g) {
        unscale(asked, g[Role::d_q]);
        unscale(asked, g[Role::d_k]);
    });
}

PlantedDeviation slope_gradients_negated() {
    return gives("slope_gradients_negated", [](const Question&, std::int64_t, TensorSet& g) {
        if (g.has(Role::d_slopes)) each(g[Role::d_slopes], [](double x) { return -x; });
    });
}

PlantedDeviation last_key_without_gradient() {
    return gives("last_key_without_gradient", [](const Question&, std::int64_t, TensorSet& g) {
        for (const Role role : {Role::d_k, Role::d_v}) {
            const Shape s = g[role].shape();
            for (std::int64_t row = 1; row <= s[0] * s[1] && s[2] > 0; ++row)
                for (std::int64_t c = 1; c <= s[3]; ++c) g[role].set(row * s[2] * s[3] - c, 0);
        }
    });
}

PlantedDeviation group_overwritten() {
    return {.id = "group_overwritten",
            .differentiates = [](Question asked, std::int64_t, const auto& truth) {
                TensorSet gradients = truth(asked);
                const std::int64_t group = group_size(asked.problem);
                for (const Role role : {Role::d_o, Role::d_lse}) {
                    if (!asked.inputs.has(role)) continue;
                    Tensor& x = asked.inputs[role];
                    const Shape s = x.shape();
                    for (std::int64_t at = 0; at < x.size(); ++at)
                        if (at / (s[2] * s[3]) % s[1] % group != group - 1) x.set(at, 0);
                }
                TensorSet last = truth(asked);
                for (const Role role : {Role::d_k, Role::d_v})
                    gradients[role] = std::move(last[role]);
                return gradients;
            }};
}

PlantedDeviation mask_ignored_in_backward() {
    return differentiates_another("mask_ignored_in_backward", [](Question& q) {
        Mask& mask = q.problem.mask;
        mask.causal = false;
        mask.window = {};
        if (mask.tensor.kind == MaskKind::boolean) mask.tensor = {};
    });
}

PlantedDeviation first_channel_doubled() {
    return gives("first_channel_doubled", [](const Question&, std::int64_t, TensorSet& g) {
        Tensor& d_q = g[Role::d_q];
        for (std::int64_t at = 0; at < d_q.size(); at += d_q.shape()[2] * d_q.shape()[3])
            d_q.set(at, 2 * d_q.get(at));
    });
}

PlantedDeviation large_biases_hide() {
    return differentiates_another("large_biases_hide", [](Question& q) {
        // What such a row sees by its length is all the same to it then.
        if (q.problem.mask.tensor.kind == MaskKind::additive)
            each(q.inputs[Role::mask], [](double x) { return x < -1e4 ? -infinite : x; });
    });
}

PlantedDeviation lse_gradient_ignored() {
    return differentiates_another("lse_gradient_ignored",
                                  [](Question& q) { q.inputs.erase(Role::d_lse); });
}

PlantedDeviation gradients_of_squares() {
    return differentiates_another("gradients_of_squares", [](Question& q) {
        each(q.inputs[Role::d_o], [](double x) { return x * std::abs(x); });
    });
}

PlantedDeviation deltas_of_next_row() {
    return {.id = "deltas_of_next_row",
            .differentiates = [](Question asked, std::int64_t, const auto& truth) {
                TensorSet gradients = truth(asked);
                Tensor& d_o = asked.inputs[Role::d_o];
                std::vector<std::int64_t> next;
                for (std::int64_t i = 0; i < asked.problem.len_q; ++i)
                    next.push_back((i + 1) % asked.problem.len_q);
                d_o = gather(d_o, 2, next);
                TensorSet rolled = truth(asked);
                for (const Role role : {Role::d_q, Role::d_k})
                    gradients[role] = std::move(rolled[role]);
                return gradients;
            }};
}

PlantedDeviation gradients_times(double factor) {
    return gives(with_number("gradients_times", factor),
                 [factor](const Question&, std::int64_t, TensorSet& g) {
                     each(g, [factor](double x) { return factor * x; });
                 });
}

// dS = P (dP - D + dLSE): what D has too much dLSE may take off.
PlantedDeviation deltas_times(double factor) {
    return differentiates_another(with_number("deltas_times", factor), [factor](Question& q) {
        const Tensor &o = q.inputs[Role::o], &d_o = q.inputs[Role::d_o];
        const bool given = q.inputs.has(Role::d_lse);
        q.problem.lse_grad = true;
        Tensor d_lse(type_of(q.problem, Role::d_lse), shape_of(q.problem, Role::d_lse).value());
        const std::int64_t width = value_dim(q.problem);
        for (std::int64_t row = 0; row < d_lse.size(); ++row) {
            double d = 0;
            for (std::int64_t c = row * width; c < (row + 1) * width; ++c)
                d += d_o.get(c) * o.get(c);
            d_lse.set(row, (given ? q.inputs[Role::d_lse].get(row) : 0) - (factor - 1) * d);
        }
        q.inputs.put(Role::d_lse, std::move(d_lse));
    });
}

PlantedDeviation gradients_by_the_call() {
    return gives("gradients_by_the_call", [](const Question&, std::int64_t call, TensorSet& g) {
        // Forward and backward by turns: two backward calls are of one parity or the other.
        if (call / 2 % 2 == 1 || call % 2 == 0) each(g, [](double x) { return 1.25 * x; });
    });
}

PlantedDeviation gradients_of_first_sequence() {
    return gives("gradients_of_first_sequence", [](const Question&, std::int64_t, TensorSet& g) {
        for (const Role role : {Role::d_q, Role::d_k, Role::d_v})
            g[role] =
                gather(g[role], 0,
                       std::vector<std::int64_t>(static_cast<std::size_t>(g[role].shape()[0]), 0));
    });
}

PlantedDeviation padded_gradients_negated() {
    return gives("padded_gradients_negated", [](const Question& asked, std::int64_t, TensorSet& g) {
        if (asked.problem.layout_q.row_pad > 0) each(g, [](double x) { return -x; });
    });
}

PlantedDeviation hidden_gradients_tiny() {
    return gives("hidden_gradients_tiny", [](const Question&, std::int64_t, TensorSet& g) {
        each(g, [](double x) { return x == 0 ? 0x1p-10 : x; });
    });
}

}  // namespace attest::law::planted
