#include "properties/law/alibi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "properties/law/paired_runs.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

/// Slopes that are powers of two: slope * |i - j| is then exact in the mask's format for
/// |i - j| <= 2^p, 256 in bf16, and the explicit bias is the same real number.
std::vector<double> exact_slopes(const Trial& trial) {
    std::vector<double> slopes;
    for (std::int64_t h = 0; h < trial.problem().heads_q; ++h)
        slopes.push_back(std::ldexp(
            1.0, -static_cast<int>(1 + trial.random_below(stream_of("position.alibi"), h, 6))));
    return slopes;
}

TensorSet with_slopes(const Trial& trial, const std::vector<double>& slopes) {
    TensorSet inputs = trial.inputs();
    for (std::size_t h = 0; h < slopes.size(); ++h)
        inputs[Role::alibi_slopes].set(static_cast<std::int64_t>(h), slopes[h]);
    return inputs;
}

/// The distance |i + off - j| as reference/problem/README.md has it.
std::int64_t distance(const Visibility& visibility, const Row& row, std::int64_t key, bool cached) {
    const std::int64_t offset =
        cached ? visibility.length_kv(row.batch) - visibility.length_q(row.batch) : 0;
    return std::abs(row.query + offset - key);
}

Judgement alibi_is_a_bias(const Run& built_in, const std::vector<double>& slopes) {
    const Trial& trial = built_in.trial();
    const Problem& problem = built_in.problem();
    const Visibility visibility = built_in.visibility();
    Problem p = problem;
    p.alibi = false;
    p.mask.tensor = {.kind = MaskKind::additive};
    if (!trial.supports(p)) return nothing_compared("the kernel takes no additive mask");
    TensorSet inputs = built_in.inputs();
    inputs.erase(Role::alibi_slopes);
    Tensor bias(type_of(p, Role::mask), *shape_of(p, Role::mask));
    std::int64_t flat = 0;
    std::vector<Row> inexact;  // with a distance that the mask's format does not have
    for (const Row& row : all_rows(p)) {
        bool exact = true;
        for (std::int64_t j = 0; j < p.len_kv; ++j, ++flat) {
            const double wanted =
                -slopes[static_cast<std::size_t>(row.head)] *
                static_cast<double>(distance(visibility, row, j, p.cache.present));
            bias.set(flat, wanted);
            exact = exact && bias.get(flat) == wanted;
        }
        if (!exact) inexact.push_back(row);
    }
    inputs.put(Role::mask, std::move(bias));
    const Run explicit_bias(trial, p, std::move(inputs));
    Relation relation;
    relation.rows = defined_rows(built_in);
    std::erase_if(relation.rows, [&](const RowMatch& match) {
        return std::find(inexact.begin(), inexact.end(), match.first) != inexact.end();
    });
    relation.sentence = [&](const RowMatch& match) {
        return name_of(problem, match.first) +
               " gets another answer when its ALiBi term is written out as a bias";
    };
    return compare_runs(built_in, explicit_bias, relation);
}

/// Flat scores and one column of V that shows a near key, one that shows a far one: the near one
/// weighs more.
Judgement near_weighs_more(const Trial& trial, const TensorSet& with_exact_slopes) {
    const Problem& problem = trial.problem();
    if (value_dim(problem) < 2) return nothing_compared("two weights need two channels");
    const std::uint64_t stream = stream_of("position.alibi.near");
    const std::int64_t near = trial.random_below(stream, 0, problem.len_kv);
    const std::int64_t far = trial.random_below(stream, 1, problem.len_kv);
    TensorSet inputs = with_exact_slopes;
    inputs[Role::q] = tensor_of(problem, Role::q, [](auto...) { return 0.0; });
    Tensor& values = inputs[Role::v];
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g)
            for (std::int64_t j = 0; j < problem.len_kv; ++j) {
                values.put(b, g, j, 0, j == near ? 1 : 0);
                values.put(b, g, j, 1, j == far ? 1 : 0);
            }
    const Run call(trial, problem, std::move(inputs));
    std::int64_t compared = 0;
    for (const RowMatch& match : defined_rows(call)) {
        const auto [b, h, i] = match.first;
        const std::int64_t at = call.output().flat(b, h, i, 0);
        const auto order = contrast(call, at, call, at + 1);
        if (!order) continue;
        ++compared;
        if (order->reversed())
            return violated(missing_change(call, *order,
                                           fmt::format("{} does not weigh keys {} and {} by their "
                                                       "distance",
                                                       name_of(problem, match.first), near, far)),
                            compared);
    }
    return nothing_compared(compared, 0, "both keys are as far from every query");
}

}  // namespace

Judgement alibi_is_its_bias(const Trial& trial) {
    const std::vector<double> slopes = exact_slopes(trial);
    TensorSet inputs = with_slopes(trial, slopes);
    Judgement order = near_weighs_more(trial, inputs);
    if (order.violated()) return order;
    const Run built_in(trial, trial.problem(), std::move(inputs));
    Judgement bias = alibi_is_a_bias(built_in, slopes);
    if (bias.violated()) return bias;
    return nothing_compared(order.elements + bias.elements, bias.worst_ratio,
                            "no distance of this case shows");
}

}  // namespace attest::law
