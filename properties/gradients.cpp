// The gradients against each other and against the forward pass: sums that are known without
// knowing an element, and calls whose gradients must be the same. Where a law compares numbers it
// does so within the derived bounds; the sums are of intervals, so a law holds for any order of
// operations.

#include <array>
#include <cmath>
#include <vector>

#include "properties/law/gradient_cases.hpp"
#include "properties/law/gradient_pairs.hpp"
#include "properties/law/paired_cases.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/visibility.hpp"

namespace attest::law {

namespace {

CaseSpace without(std::initializer_list<Feature> features, std::int64_t cost = 4) {
    CaseSpace space = gradient_cases(cost);
    for (const Feature feature : features) space.allow = space.allow.without(feature);
    return space;
}

constexpr const char* source = "differentiation of the definition; Dao et al. 2022, appendix B.2";

/// Key heads of every sequence, with their channels of one gradient.
template <typename Check>
void each_head(const Problem& p, std::int64_t heads, std::int64_t channels, Check check) {
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < heads; ++h)
            for (std::int64_t c = 0; c < channels; ++c) check(b, h, c);
}

Interval sum_over_keys(const GradientRun& call, Role role, std::int64_t b, std::int64_t h,
                       std::int64_t c) {
    Interval sum;
    for (std::int64_t j = 0; j < call.problem().len_kv; ++j)
        sum = sum + call.truth(role, call[role].flat(b, h, j, c));
    return sum;
}

// O is linear in V: with delta in its place, <dO, O(delta)> = <dV, delta>. Both sides are read off
// the kernel, forward and backward.
Judgement check_adjoint(const Trial& trial) {
    const GradientRun call = run_of(trial);
    const Problem& p = call.problem();
    TensorSet turned = trial.inputs();
    turned[Role::v] = grid_tensor(trial, p, Role::v, stream_of("gradients.adjoint"), 64, 1.0 / 8);
    const Run forward(trial, p, turned);
    Tally tally(p);
    each_head(p, p.heads_kv, value_dim(p), [&](std::int64_t b, std::int64_t h, std::int64_t c) {
        Interval by_backward, by_forward;
        for (std::int64_t j = 0; j < p.len_kv; ++j) {
            const std::int64_t at = call[Role::d_v].flat(b, h, j, c);
            by_backward = by_backward + given(turned[Role::v], at) * call.truth(Role::d_v, at);
        }
        const std::int64_t group = group_size(p);
        for (std::int64_t head = h * group; head < (h + 1) * group; ++head)
            for (std::int64_t i = 0; i < p.len_q; ++i) {
                const Row row{b, head, i};
                if (blind(forward, row)) continue;
                by_forward = by_forward +
                             given(call.inputs()[Role::d_o], forward.output().flat(b, head, i, c)) *
                                 truth(forward, row, c);
            }
        tally.same(by_forward, by_backward, {Role::d_v, {b, h, 0, c}}, [] {
            return std::string("dO times the output of other values is not dV times those values");
        });
    });
    return tally.judgement("nothing is bounded");
}

Judgement check_value_sum(const Trial& trial) {
    const GradientRun call = run_of(trial);
    const Problem& p = call.problem();
    const Visibility visibility(p, trial.dialect(), call.inputs());
    const Tensor& d_o = call.inputs()[Role::d_o];
    Tally tally(p);
    each_head(p, p.heads_kv, value_dim(p), [&](std::int64_t b, std::int64_t h, std::int64_t c) {
        Interval rows;
        for (std::int64_t head = h * group_size(p); head < (h + 1) * group_size(p); ++head)
            for (std::int64_t i = 0; i < p.len_q; ++i) {
                const Row row{b, head, i};
                if (!visibility.is_query(row) || visibility.empty(row)) continue;
                rows = rows + given(d_o, d_o.flat(b, head, i, c));
            }
        tally.same(rows, sum_over_keys(call, Role::d_v, b, h, c), {Role::d_v, {b, h, 0, c}},
                   [] { return std::string("the gradients of the values do not add up to dO"); });
    });
    return tally.judgement("nothing is bounded");
}

Judgement check_key_sum(const Trial& trial) {
    const GradientRun call = run_of(trial);
    const Problem& p = call.problem();
    const Visibility visibility(p, trial.dialect(), call.inputs());
    const Tensor& q = call.inputs()[Role::q];
    Tally tally(p);
    each_head(p, p.heads_kv, p.dim_qk, [&](std::int64_t b, std::int64_t h, std::int64_t c) {
        Interval rows;
        for (std::int64_t head = h * group_size(p); head < (h + 1) * group_size(p); ++head)
            for (std::int64_t i = 0; call.inputs().has(Role::d_lse) && i < p.len_q; ++i) {
                const Row row{b, head, i};
                if (!visibility.is_query(row) || visibility.empty(row)) continue;
                rows = rows + lse_gradient(call.inputs(), trial.dialect(), row) *
                                  given(q, q.flat(b, head, i, c));
            }
        tally.same(rows * Interval::exactly(effective_scale(p)),
                   sum_over_keys(call, Role::d_k, b, h, c), {Role::d_k, {b, h, 0, c}}, [] {
                       return std::string(
                           "the gradients of the keys do not add up to what the LSE's gives");
                   });
    });
    return tally.judgement("nothing is bounded");
}

Judgement check_euler(const Trial& trial) {
    const GradientRun call = run_of(trial);
    const Problem& p = call.problem();
    Tally tally(p);
    each_head(p, p.heads_kv, 1, [&](std::int64_t b, std::int64_t h, std::int64_t) {
        Interval queries;
        for (std::int64_t head = h * group_size(p); head < (h + 1) * group_size(p); ++head)
            queries = queries + inner_product(call, Role::q, Role::d_q, b, head);
        tally.same(queries, inner_product(call, Role::k, Role::d_k, b, h),
                   {Role::d_k, {b, h, 0, 0}},
                   [] { return std::string("queries times dQ are not keys times dK"); });
    });
    return tally.judgement("nothing is bounded");
}

/// One row of dO becomes something else; what it does not reach stays.
Judgement check_causal(const Trial& trial) {
    const GradientRun first = run_of(trial);
    const Problem& p = first.problem();
    if (p.len_q == 0 || p.batch == 0) return nothing_compared("there is no query");
    const std::uint64_t stream = stream_of("gradients.causal");
    const Row changed{trial.random_below(stream, 0, p.batch),
                      trial.random_below(stream, 1, p.heads_q),
                      trial.random_below(stream, 2, p.len_q)};
    TensorSet inputs = trial.inputs();
    for (std::int64_t c = 0; c < value_dim(p); ++c)
        inputs[Role::d_o].put(changed.batch, changed.head, changed.query, c,
                              on_grid(trial, stream + 1, static_cast<std::uint64_t>(c), 200, 1));
    if (inputs.has(Role::d_lse))
        inputs[Role::d_lse].put(changed.batch, changed.head, changed.query, 0,
                                on_grid(trial, stream + 2, 0, 200, 1));
    const GradientRun second(trial, p, inputs);
    const Visibility visibility(p, trial.dialect(), first.inputs());
    const auto match = [&](Role role, std::int64_t flat) -> std::optional<std::int64_t> {
        if (is_summed(role)) return std::nullopt;
        const auto index = gradient_at(p, role, flat).index;
        if (index[0] != changed.batch) return flat;
        if (role == Role::d_q)
            return index[1] == changed.head && index[2] == changed.query ? std::nullopt
                                                                         : std::optional(flat);
        const bool reads = index[1] == changed.head / group_size(p);
        return reads && visibility.sees(changed, index[2]) ? std::nullopt : std::optional(flat);
    };
    return same_gradients(first, second, repeats_gradients(trial.numerics()),
                          "when dO changes in a row that does not reach it", match);
}

Judgement check_grouped(const Trial& trial) {
    const GradientRun call = run_of(trial);
    const Problem& p = call.problem();
    PairedCase repeated = with_heads_repeated(p, trial.inputs());
    for (const Role role : {Role::d_o, Role::d_lse})
        if (trial.inputs().has(role)) repeated.inputs[role] = trial.inputs()[role];
    const GradientRun single(trial, repeated.problem, repeated.inputs);
    Tally tally(p);
    for (const Role role : {Role::d_k, Role::d_v}) {
        if (!call.has(role)) continue;
        for (std::int64_t at = 0; at < call[role].size() && !tally.violated(); ++at) {
            const ElementPlace place = gradient_at(p, role, at);
            Interval sum;
            for (std::int64_t g = 0; g < group_size(p); ++g)
                sum = sum + single.truth(role, single[role].flat(place.index[0],
                                                                 place.index[1] * group_size(p) + g,
                                                                 place.index[2], place.index[3]));
            tally.same(sum, call.truth(role, at), place, [&] {
                return "the " + element_name(p, place) +
                       " is not the sum over the query heads of its group";
            });
        }
    }
    return tally.judgement("nothing is bounded");
}

Plan grouped_plan(const Given& given) {
    if (!given.supports(with_heads_repeated(given.problem(), given.inputs()).problem))
        return not_applicable("the kernel takes no key head for each query head");
    return Judge(check_grouped);
}

/// dO = a + b, and so dLSE, all on a grid, so that the sum is exact in every format.
Judgement check_linear(const Trial& trial) {
    const Problem& p = trial.problem();
    std::uint64_t stream = stream_of("gradients.linear");
    std::array<TensorSet, 3> parts = {trial.inputs(), trial.inputs(), trial.inputs()};
    for (const Role role : {Role::d_o, Role::d_lse}) {
        if (!trial.inputs().has(role)) continue;
        for (TensorSet& part : parts)
            part[role] = grid_tensor(trial, p, role, stream++, 100, 1.0 / 16);
        for (std::int64_t at = 0; at < parts[2][role].size(); ++at)
            parts[2][role].set(at, parts[0][role].get(at) + parts[1][role].get(at));
    }
    std::vector<GradientRun> runs;
    for (TensorSet& part : parts) runs.emplace_back(trial, p, std::move(part));
    Tally tally(p);
    for (const Role role : gradient_roles) {
        if (!runs[0].has(role)) continue;
        for (std::int64_t at = 0; at < runs[0][role].size() && !tally.violated(); ++at) {
            const ElementPlace place = gradient_at(p, role, at);
            tally.same(runs[0].truth(role, at) + runs[1].truth(role, at), runs[2].truth(role, at),
                       place, [&] {
                           return "the " + element_name(p, place) +
                                  " is not linear in what is given";
                       });
        }
    }
    return tally.judgement("nothing is bounded");
}

}  // namespace

std::vector<Property> gradients() {
    using enum Feature;
    using namespace planted;
    CaseSpace grouped = gradient_cases(8);
    grouped.require = FeatureSet(gqa);
    return {
        gradient_law(
            "gradients.adjoint", "dO times the output of other values is dV times those values.",
            "<dO, O(W)> = <dV, W> for other values W",
            "The output is linear in the values, so dO.O(q, k, W) = dV.W for any W, "
            "channel by channel and key head by key head: forward and backward of the "
            "kernel are held against each other.",
            source, gradient_cases(), always<check_adjoint>,
            {last_key_without_gradient(), group_overwritten()}, {.backward = true, .d_v = true}),
        gradient_law("gradients.value_sum",
                     "The gradients of a head's values add up to dO of the rows that see a key.",
                     "dV over keys adds up to dO over rows",
                     "dV_j = sum_i P_ij dO_i, and the weights of a row that sees a key add up to "
                     "1 where there is no sink.",
                     source, without({sink}), always<check_value_sum>,
                     {last_key_without_gradient()}, {.backward = true, .d_v = true}),
        gradient_law("gradients.key_sum",
                     "The gradients of a head's keys add up to zero, or to what the LSE's gives.",
                     "dK over keys adds up to zero",
                     "dK_j = sigma sum_i dS_ij q_i, and dS_i = P_i (dP_i - D_i) adds up to zero "
                     "over the keys, because D_i = sum_j P_ij dP_ij. A gradient of the LSE adds "
                     "P_i dLSE_i, which adds up to dLSE_i: sigma sum_i dLSE_i q_i. Without soft "
                     "cap, sink and rotation.",
                     source, without({sink, softcap, rope}), always<check_key_sum>,
                     {last_key_without_gradient(), lse_gradient_ignored()},
                     {.backward = true, .d_k = true}),
        gradient_law("gradients.euler", "Queries times dQ are keys times dK, in every group.",
                     "<q, dQ> = <k, dK> for each key head",
                     "Both are sum_ij dX_ij sigma q_i.k_j: the scores are of degree one in the "
                     "queries and in the keys, whatever follows. Rotations keep it: q.dQ does not "
                     "change when both are turned.",
                     source, gradient_cases(), always<check_euler>,
                     {key_gradients_unscaled(), group_overwritten()},
                     {.backward = true, .d_q = true, .d_k = true}),
        gradient_law("gradients.causal",
                     "dO of one row moves only that row's dQ, and dK and dV of keys it sees.",
                     "dO of a row reaches only what the row sees",
                     "dS_i and P_i of a row are the row's own, and are zero where a key is hidden "
                     "from it. What they do not reach sees the same numbers, so its bits stay "
                     "where the kernel repeats bits.",
                     source, gradient_cases(8), always<check_causal>, {mask_ignored_in_backward()}),
        gradient_law("gradients.grouped",
                     "dK and dV of a key head are sums over the query heads of its group.",
                     "dK and dV add up over a group of heads",
                     "A key head that several query heads read is one variable in several places: "
                     "its gradient is the sum of those of copies of it, one a query head.",
                     source, std::move(grouped), grouped_plan, {group_overwritten()}),
        gradient_law(
            "gradients.linear",
            "The gradients of dO = A + B are the sums of those of A "
            "and of B.",
            "gradients are linear in dO",
            "Every gradient is a linear map of dO and dLSE: P and the Jacobian of the softmax do "
            "not depend on it. A and B lie on a grid, so that their sum is exact.",
            source, gradient_cases(12), always<check_linear>, {gradients_of_squares()}),
    };
}

}  // namespace attest::law
