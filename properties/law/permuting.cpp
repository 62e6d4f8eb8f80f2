#include "properties/law/permuting.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "properties/law/paired_cases.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

using Indices = std::vector<std::int64_t>;

std::int64_t shortest(const std::vector<std::int64_t>& lens, std::int64_t full) {
    return lens.empty() ? full : *std::min_element(lens.begin(), lens.end());
}

Judgement compare_permuted(const Trial& trial, const Problem& problem, TensorSet inputs,
                           const std::function<Row(const Row&)>& where_to, bool bits,
                           std::string sentence_end) {
    const Run first(trial);
    const Run second(trial, problem, std::move(inputs));
    Relation relation;
    relation.rows = defined_rows(first);
    for (RowMatch& match : relation.rows) match.second = where_to(match.first);
    relation.promise = same_bits_if(bits);
    relation.sentence = [&, end = std::move(sentence_end)](const RowMatch& match) {
        return name_of(first.problem(), match.first) + end;
    };
    return compare_runs(first, second, relation);
}

std::vector<double> random_signs(const Trial& trial, std::uint64_t stream, std::int64_t n) {
    std::vector<double> signs;
    for (std::int64_t i = 0; i < n; ++i)
        signs.push_back(trial.random_bits(stream, static_cast<std::uint64_t>(i)) % 2 ? 1 : -1);
    return signs;
}

/// Whole sixteenths up to 31/16, and room for what a quarter turn of four of them gives.
void put_on_grid(const Trial& trial, const Problem& problem, TensorSet& inputs) {
    const std::uint64_t stream = stream_of("equivariance.features.grid");
    constexpr std::int64_t most = 31;
    constexpr double step = 0x1p-4;
    inputs[Role::q] = grid_tensor(trial, problem, Role::q, stream, most, step);
    inputs[Role::k] = grid_tensor(trial, problem, Role::k, stream + 1, most, step);
}

// Channels in fours times H/2, H the Hadamard matrix of order 4: orthogonal, symmetric, and exact
// on the grid above: a sum of four has 7 bits, bf16 has 8.
void turn(Tensor& tensor, std::int64_t dim) {
    for (std::int64_t at = 0; at + dim <= tensor.size() && dim > 0; at += dim)
        for (std::int64_t c = 0; c + 4 <= dim; c += 4) {
            double x[4];
            for (std::int64_t n = 0; n < 4; ++n) x[n] = tensor.get(at + c + n);
            const double s = x[0] + x[1], d = x[0] - x[1], t = x[2] + x[3], u = x[2] - x[3];
            const double turned[4] = {(s + t) / 2, (d + u) / 2, (s - t) / 2, (d - u) / 2};
            for (std::int64_t n = 0; n < 4; ++n) tensor.set(at + c + n, turned[n]);
        }
}

}  // namespace

Indices inverse(const Indices& order) {
    Indices result(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        result[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    return result;
}

std::int64_t keys_everywhere(const Problem& p) {
    return shortest(p.mask.lens_kv, p.len_kv);
}
std::int64_t queries_everywhere(const Problem& p) {
    return shortest(p.mask.lens_q, p.len_q);
}

Judgement permuted_keys(const Trial& trial) {
    const Problem& problem = trial.problem();
    const Indices order = permutation(trial, stream_of("equivariance.keys"), problem.len_kv,
                                      keys_everywhere(problem));
    TensorSet inputs = trial.inputs();
    inputs[Role::k] = gather(inputs[Role::k], 2, order);
    inputs[Role::v] = gather(inputs[Role::v], 2, order);
    if (inputs.has(Role::mask))
        inputs[Role::mask] = gather_unless_shared(inputs[Role::mask], 3, order);
    return compare_permuted(
        trial, problem, std::move(inputs), [](const Row& row) { return row; }, false,
        " changes when keys and values trade places together");
}

Judgement permuted_queries(const Trial& trial) {
    const Problem& problem = trial.problem();
    const Indices order = permutation(trial, stream_of("equivariance.queries"), problem.len_q,
                                      queries_everywhere(problem));
    const Indices to = inverse(order);
    TensorSet inputs = trial.inputs();
    inputs[Role::q] = gather(inputs[Role::q], 2, order);
    if (inputs.has(Role::mask))
        inputs[Role::mask] = gather_unless_shared(inputs[Role::mask], 2, order);
    return compare_permuted(
        trial, problem, std::move(inputs),
        [&](const Row& row) {
            return Row{row.batch, row.head, to[static_cast<std::size_t>(row.query)]};
        },
        false, " gets another answer at another place among the queries");
}

Judgement permuted_tokens(const Trial& trial) {
    const Problem& problem = trial.problem();
    const Indices order = permutation(trial, stream_of("equivariance.tokens"), problem.len_q);
    const Indices to = inverse(order);
    TensorSet inputs = trial.inputs();
    for (const Role role : {Role::q, Role::k, Role::v})
        inputs[role] = gather(inputs[role], 2, order);
    return compare_permuted(
        trial, problem, std::move(inputs),
        [&](const Row& row) {
            return Row{row.batch, row.head, to[static_cast<std::size_t>(row.query)]};
        },
        false, " gets another answer when the tokens of the sequence are reordered");
}

Judgement permuted_heads(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::int64_t group = group_size(problem);
    const Indices order_kv = permutation(trial, stream_of("equivariance.heads"), problem.heads_kv);
    const Indices within = permutation(trial, stream_of("equivariance.heads.group"), group);
    Indices order;  // a query head follows its key/value head; inside the group they trade places
    for (const std::int64_t g : order_kv)
        for (const std::int64_t r : within) order.push_back(g * group + r);
    const Indices to = inverse(order);
    TensorSet inputs = trial.inputs();
    inputs[Role::q] = gather(inputs[Role::q], 1, order);
    inputs[Role::k] = gather(inputs[Role::k], 1, order_kv);
    inputs[Role::v] = gather(inputs[Role::v], 1, order_kv);
    if (inputs.has(Role::mask))
        inputs[Role::mask] = gather_unless_shared(inputs[Role::mask], 1, order);
    for (const Role role : {Role::alibi_slopes, Role::sinks})
        if (inputs.has(role)) inputs[role] = gather(inputs[role], 0, order);
    return compare_permuted(
        trial, problem, std::move(inputs),
        [&](const Row& row) {
            return Row{row.batch, to[static_cast<std::size_t>(row.head)], row.query};
        },
        false, " gets another answer when the heads are reordered");
}

Judgement permuted_batch(const Trial& trial) {
    const Indices order =
        permutation(trial, stream_of("equivariance.batch"), trial.problem().batch);
    const Indices to = inverse(order);
    PairedCase paired = with_sequences(trial.problem(), trial.inputs(), order);
    const Numerics& numerics = trial.numerics();
    return compare_permuted(
        trial, paired.problem, std::move(paired.inputs),
        [&](const Row& row) {
            return Row{to[static_cast<std::size_t>(row.batch)], row.head, row.query};
        },
        numerics.deterministic && numerics.batch_invariant,
        " gets another answer when the sequences of the batch are reordered");
}

Judgement permuted_features(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::int64_t channels_v = value_dim(problem);
    const Indices order_qk =
        permutation(trial, stream_of("equivariance.features.qk"), problem.dim_qk);
    const Indices order_v = permutation(trial, stream_of("equivariance.features.v"), channels_v);
    const auto signs_qk =
        random_signs(trial, stream_of("equivariance.features.signs.qk"), problem.dim_qk);
    const auto signs_v =
        random_signs(trial, stream_of("equivariance.features.signs.v"), channels_v);
    const bool turned =
        problem.dim_qk >= 4 && trial.random_below(stream_of("equivariance.features"), 0, 2) == 0;
    TensorSet asked = trial.inputs();
    if (turned) put_on_grid(trial, problem, asked);
    TensorSet inputs = asked;
    for (const Role role : {Role::q, Role::k}) {
        inputs[role] = with_signs(gather(inputs[role], 3, order_qk), signs_qk);
        if (turned) turn(inputs[role], problem.dim_qk);
    }
    inputs[Role::v] = with_signs(gather(inputs[Role::v], 3, order_v), signs_v);

    const Run first = turned ? Run(trial, problem, asked) : Run(trial);
    const Run second(trial, problem, std::move(inputs));
    Relation relation;
    relation.rows = defined_rows(first);
    relation.promise = SameTruth{[to = inverse(order_v), &signs_v](std::int64_t c) {
        const std::int64_t channel = to[static_cast<std::size_t>(c)];
        return SecondChannel{channel, signs_v[static_cast<std::size_t>(channel)] < 0};
    }};
    relation.sentence = [&](const RowMatch& match) {
        return name_of(problem, match.first) +
               (turned ? " gets another answer when channels are turned into each other"
                       : " gets another answer when channels trade places or signs");
    };
    return compare_runs(first, second, relation);
}

}  // namespace attest::law
