#include "properties/law/placed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "properties/law/paired_runs.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

using Indices = std::vector<std::int64_t>;

std::string what_tells_places(const Problem& p) {
    if (p.mask.causal) return "the causal mask";
    if (p.mask.window.limited()) return "the window";
    return p.alibi ? "the ALiBi bias" : "the rotary position";
}

}  // namespace

/// Row t of f(PX) is what token order[t] gets; where the references say that this is certainly not
/// what it got in f(X), the kernel's two answers must be apart.
Judgement places_show(const Trial& trial) {
    const Problem& problem = trial.problem();
    const Indices order = permutation(trial, stream_of("equivariance.broken"), problem.len_q);
    TensorSet inputs = trial.inputs();
    for (const Role role : {Role::q, Role::k, Role::v})
        inputs[role] = gather(inputs[role], 2, order);
    const Run first(trial);
    const Run second(trial, problem, std::move(inputs));
    const Tensor& output = first.output();
    std::optional<Contrast> widest;
    for (const RowMatch& match : defined_rows(first)) {
        const auto [b, h, t] = match.first;
        const std::int64_t from = order[static_cast<std::size_t>(t)];
        for (std::int64_t c = 0; c < output.shape()[3]; ++c) {
            const auto apart =
                contrast(first, output.flat(b, h, from, c), second, output.flat(b, h, t, c));
            if (apart && (!widest || std::abs(apart->certain) > std::abs(widest->certain)))
                widest = apart;
        }
    }
    if (!widest)
        return nothing_compared("the reordered tokens get the same answers by the reference");
    if (!widest->absent()) return holds(1);
    return violated(
        missing_change(first, *widest,
                       fmt::format("the output follows its tokens as if {} were not there",
                                   what_tells_places(problem))));
}

/// With Q = K and columns of V that show single weights, O[a, col(b)] = P_ab and O[b, col(a)] =
/// P_ba.
Judgement softmax_runs_over_keys(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::int64_t group = group_size(problem);
    TensorSet inputs = trial.inputs();
    // Each in its own format, the keys' numbers in both.
    const Tensor& rows = trial.inputs()[Role::q];
    inputs[Role::k] = tensor_of(problem, Role::k, [&](auto b, auto g, auto j, auto c) {
        return rows.at(b, g * group, j, c);
    });
    const Tensor keys = inputs[Role::k];
    inputs[Role::q] = tensor_of(problem, Role::q, [&](auto b, auto h, auto i, auto c) {
        return keys.at(b, h / group, i, c);
    });
    const Indices tokens = permutation(trial, stream_of("equivariance.asymmetry"), problem.len_q);
    const auto shown = static_cast<std::size_t>(std::min(value_dim(problem), problem.len_kv));
    inputs[Role::v] = tensor_of(problem, Role::v, [&](auto, auto, std::int64_t j, std::int64_t c) {
        return static_cast<std::size_t>(c) < shown && tokens[static_cast<std::size_t>(c)] == j ? 1
                                                                                               : 0;
    });
    const Run call(trial, problem, std::move(inputs));
    const Tensor& output = call.output();
    std::int64_t compared = 0;
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h < problem.heads_q; ++h)
            for (std::size_t x = 0; x < shown; ++x)
                for (std::size_t y = 0; y < x; ++y) {
                    const std::int64_t row_x = tokens[x], row_y = tokens[y];
                    const auto apart =
                        contrast(call, output.flat(b, h, row_x, static_cast<std::int64_t>(y)), call,
                                 output.flat(b, h, row_y, static_cast<std::int64_t>(x)));
                    if (!apart) continue;
                    ++compared;
                    if (apart->reversed())
                        return violated(
                            missing_change(call, *apart,
                                           fmt::format("with Q = K the weights of tokens {} and "
                                                       "{} for each other are not those of a "
                                                       "softmax over the keys",
                                                       row_x, row_y)),
                            compared);
                }
    return nothing_compared(compared, 0, "no two weights of this case differ for certain");
}

}  // namespace attest::law
