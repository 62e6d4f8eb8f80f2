#include "properties/law/paired_cases.hpp"

#include <algorithm>
#include <utility>

#include "properties/law/paired_runs.hpp"
#include "properties/law/visibility.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/given_inputs.hpp"
#include "reference/problem/validity.hpp"

namespace attest::law {

namespace {

using Indices = std::vector<std::int64_t>;

std::int64_t length_of(const std::vector<std::int64_t>& lens, std::int64_t batch,
                       std::int64_t full) {
    return lens.empty() ? full : lens[static_cast<std::size_t>(batch)];
}

std::vector<std::int64_t> picked(const std::vector<std::int64_t>& values, const Indices& from) {
    std::vector<std::int64_t> result;
    if (values.empty()) return result;
    for (const std::int64_t i : from) result.push_back(values[static_cast<std::size_t>(i)]);
    return result;
}

}  // namespace

PairedCase adopt(const Problem& problem, const TensorSet& inputs) {
    require_valid(problem);
    return {problem, make_inputs({.problem = problem}, inputs)};
}

PairedCase with_sequences(const Problem& problem, const TensorSet& inputs, const Indices& from) {
    require(problem.mask.documents_q.empty(), "packed documents are one sequence");
    Problem p = problem;
    p.batch = static_cast<std::int64_t>(from.size());
    p.mask.lens_q = picked(problem.mask.lens_q, from);
    p.mask.lens_kv = picked(problem.mask.lens_kv, from);
    TensorSet chosen = inputs;
    for (const Role role : {Role::q, Role::k, Role::v})
        chosen[role] = gather(inputs[role], 0, from);
    if (inputs.has(Role::mask) && !problem.mask.tensor.shared_batch)
        chosen[Role::mask] = gather(inputs[Role::mask], 0, from);
    return adopt(p, chosen);
}

PairedCase with_explicit_mask(const Problem& problem, const Dialect& dialect,
                              const TensorSet& inputs, MaskKind kind) {
    require(!problem.cache.present && !has_positions(problem),
            "an explicit mask keeps no positions");
    const bool biased = problem.mask.tensor.kind == MaskKind::additive;
    require(!biased || kind == MaskKind::additive, "a boolean mask keeps no bias");
    Problem p = problem;
    p.mask = {};
    p.mask.lens_q = problem.mask.lens_q;
    p.mask.tensor.kind = kind;
    TensorSet shared = inputs;
    shared.erase(Role::mask);
    PairedCase paired = adopt(p, shared);
    Tensor mask(type_of(p, Role::mask), {p.batch, p.heads_q, p.len_q, p.len_kv});
    const Visibility visibility(problem, dialect, inputs);
    constexpr double hidden = -infinite;
    std::int64_t flat = 0;
    for (const Row& row : all_rows(p)) {
        for (std::int64_t j = 0; j < p.len_kv; ++j, ++flat) {
            const bool seen = visibility.sees(row, j);
            if (kind == MaskKind::boolean) {
                mask.set(flat, seen ? 1 : 0);
            } else if (!seen) {
                mask.set(flat, hidden);
            } else if (biased) {
                mask.set(flat, inputs[Role::mask].broadcast_at(row.batch, row.head, row.query, j));
            }
        }
    }
    paired.inputs[Role::mask] = std::move(mask);
    return paired;
}

PairedCase with_visible_keys(const Problem& problem, const Dialect& dialect,
                             const TensorSet& inputs, const Row& row) {
    require(!problem.cache.present && !has_positions(problem), "keys that move keep no positions");
    const Visibility visibility(problem, dialect, inputs);
    Indices visible;
    for (std::int64_t j = 0; j < problem.len_kv; ++j)
        if (visibility.sees(row, j)) visible.push_back(j);
    require(!visible.empty(), "a row alone needs a key to see");
    Problem p = problem;
    p.batch = p.heads_q = p.heads_kv = p.len_q = 1;
    p.len_kv = static_cast<std::int64_t>(visible.size());
    p.mask = {};
    const MaskTensor& how = problem.mask.tensor;
    if (how.kind == MaskKind::additive)
        p.mask.tensor = {.kind = how.kind, .shared_keys = how.shared_keys};
    const Indices batch{row.batch}, head{row.head}, query{row.query};
    const Indices head_kv{row.head / group_size(problem)};
    TensorSet alone;
    alone.put(Role::q, gather(gather(gather(inputs[Role::q], 0, batch), 1, head), 2, query));
    for (const Role role : {Role::k, Role::v})
        alone.put(role, gather(gather(gather(inputs[role], 0, batch), 1, head_kv), 2, visible));
    if (inputs.has(Role::sinks)) alone.put(Role::sinks, gather(inputs[Role::sinks], 0, head));
    if (p.mask.tensor.kind == MaskKind::additive) {
        Tensor bias = gather_unless_shared(inputs[Role::mask], 0, batch);
        bias = gather_unless_shared(bias, 1, head);
        bias = gather_unless_shared(bias, 2, query);
        alone.put(Role::mask, gather_mask_keys(how, bias, visible));
    }
    return adopt(p, alone);
}

PairedCase continued(const Problem& problem, const TensorSet& inputs, std::int64_t begin,
                     std::int64_t count, bool cached) {
    require(problem.mask.lens_q.empty() && problem.mask.documents_q.empty(),
            "a step is a slice of full sequences");
    Problem p = problem;
    const std::int64_t dropped = problem.len_q - (begin + count);  // queries after the step
    p.len_q = count;
    p.len_kv = problem.len_kv - dropped;
    // A sequence that would have no key left saw none in the original either.
    for (std::int64_t& length : p.mask.lens_kv)
        length = std::max<std::int64_t>(length - dropped, 0);
    p.cache = cached ? problem.cache : Cache{};
    p.cache.present = cached;
    p.cache.len = cached ? p.len_kv - count : 0;
    TensorSet step = inputs;
    step[Role::q] = gather(inputs[Role::q], 2, range(begin, count));
    for (const Role role : {Role::k, Role::v})
        step[role] = gather(inputs[role], 2, range(0, p.len_kv));
    if (inputs.has(Role::mask)) {
        const Tensor rows = problem.mask.tensor.shared_queries
                                ? inputs[Role::mask]
                                : gather(inputs[Role::mask], 2, range(begin, count));
        step[Role::mask] = gather_mask_keys(p.mask.tensor, rows, range(0, p.len_kv));
    }
    return adopt(p, step);
}

PairedCase sequence_alone(const Problem& problem, const TensorSet& inputs, std::int64_t batch) {
    require(problem.mask.documents_q.empty(), "packed documents are one sequence");
    Problem p = problem;
    p.batch = 1;
    p.len_q = length_of(problem.mask.lens_q, batch, problem.len_q);
    p.len_kv = length_of(problem.mask.lens_kv, batch, problem.len_kv);
    p.mask.lens_q.clear();
    p.mask.lens_kv.clear();
    if (p.cache.present) p.cache.len = p.len_kv - p.len_q;
    const Indices one{batch};
    TensorSet alone = inputs;
    alone[Role::q] = gather(gather(inputs[Role::q], 0, one), 2, range(0, p.len_q));
    for (const Role role : {Role::k, Role::v})
        alone[role] = gather(gather(inputs[role], 0, one), 2, range(0, p.len_kv));
    if (inputs.has(Role::mask)) {
        Tensor mask = gather_unless_shared(inputs[Role::mask], 0, one);
        if (!problem.mask.tensor.shared_queries) mask = gather(mask, 2, range(0, p.len_q));
        alone[Role::mask] = gather_mask_keys(p.mask.tensor, mask, range(0, p.len_kv));
    }
    return adopt(p, alone);
}

PairedCase with_heads_repeated(const Problem& problem, const TensorSet& inputs) {
    Problem p = problem;
    p.heads_kv = problem.heads_q;
    Indices read;
    for (std::int64_t h = 0; h < problem.heads_q; ++h) read.push_back(h / group_size(problem));
    TensorSet repeated = inputs;
    for (const Role role : {Role::k, Role::v}) repeated[role] = gather(inputs[role], 1, read);
    return adopt(p, repeated);
}

}  // namespace attest::law
