// Online softmax: attention may be computed a part of the keys at a time, in any order, with a
// running maximum and a running sum. These laws look at what that can get wrong: merging, tile
// edges, the order in which the maximum rises, and numbers at the edge of the format.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/merging.hpp"
#include "properties/law/paired_keys.hpp"
#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/statistics.hpp"
#include "properties/law/tally.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::law {

namespace {

/// A part of the keys, or another order of them, has the same meaning.
constexpr FeatureSet apart =
    placeless.without(Feature::cache).without(Feature::paged).without(Feature::lens_kv);

/// A sink would be counted once a part.
CaseSpace merge_space() {
    return {.allow = apart.without(Feature::sink),
            .require = FeatureSet(Feature::lse),
            .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int, ValueKind::flat,
                      ValueKind::ties, ValueKind::one_hot, ValueKind::logit50, ValueKind::const_v,
                      ValueKind::ascending, ValueKind::descending, ValueKind::negative_logits},
            .cost = 8};
}

Property merge() {
    return {
        .id = "partition.merge",
        .statement = "Keys split anywhere, run in parts and merged by L, give the whole.",
        .statement_short = "parts of the keys merged by L give the whole",
        .why =
            "exp(L) of the whole is the sum of exp(L_p) over the parts, and O = sum_p exp(L_p - L) "
            "O_p. The parts are known within their bounds; an error common to all L_p cancels, so "
            "each counts with |O_p - O|. Parts that see no key have L = -inf and drop out.",
        .source = "Milakov and Gimelshein 2018; Dao 2023 (Flash-Decoding)",
        .compares = Compares::bound,
        .needs = {.lse = true},
        .cases = merge_space(),
        .check = parts_merge,
        .turned_red_by = {planted::answers_times(1 / std::log(2.0))},
    };
}

/// Some tensor's numbers are the case's own: they fit no other length.
bool written_out(const Values& values) {
    return std::any_of(values.tensors.begin(), values.tensors.end(), [](const auto& tensor) {
        return tensor.second.fill == Fill::explicit_values;
    });
}

// The edge nearest to the case's own length, one key less, as many, or one more: the case shrinks
// with its length. Values are drawn as the case says, for the new length.
Plan check_tile_edges(const Given& given) {
    constexpr std::int64_t edges[] = {16,  32,  64,  80,  96,   112,  128,  176,
                                      256, 384, 512, 768, 1024, 2048, 4096, 8192};
    const Problem& tried = given.problem();
    std::int64_t edge = edges[0];
    for (const std::int64_t e : edges)
        if (std::abs(e - tried.len_kv) < std::abs(edge - tried.len_kv)) edge = e;
    const std::uint64_t stream = stream_of("partition.tile_edges");
    Case at_edge = given.tried();
    Problem& problem = at_edge.problem;
    problem.len_kv = edge + given.random_below(stream, 0, 3) - 1;
    problem.len_q = std::min(problem.len_q, problem.len_kv);
    if (problem.cache.present) problem.cache.len = problem.len_kv - problem.len_q;
    problem = canonical(problem);
    if (!given.supports(problem)) return not_taken(problem);
    if (written_out(at_edge.values) && !(problem == tried))
        return not_applicable("values that are written out have no other length");
    return [at_edge](const Trial& trial) -> Judgement {
        const TensorSet inputs = make_inputs(at_edge);
        Judgement judgement =
            trial.compare(at_edge.problem, inputs, trial.run(at_edge.problem, inputs));
        if (judgement.violation)
            judgement.violation->problem = fmt::format("with {} keys {}", at_edge.problem.len_kv,
                                                       judgement.violation->problem);
        return judgement;
    };
}

/// Lengths follow from the edge, so nothing that lists lengths or needs equal ones is drawn.
CaseSpace edge_space() {
    return {.allow = attention.without(Feature::lens_q)
                         .without(Feature::lens_kv)
                         .without(Feature::documents)
                         .without(Feature::alibi)
                         .without(Feature::rope),
            .cost = 4};
}

Property tile_edges() {
    return {
        .id = "partition.tile_edges",
        .statement = "At tile edges, one key less and one key more, every output is in bounds.",
        .statement_short = "outputs are within bounds at every tile edge +-1",
        .why =
            "Where keys are cut into tiles does not enter the definition. Lengths 16, 32, 64, 80, "
            "96, 112, 128, 176, 256 to 8192 and their neighbours are where the last tile is full, "
            "empty or "
            "holds one key; the outputs there must be within the same bounds as anywhere.",
        .source = "Dao et al. 2022, algorithm 1",
        .compares = Compares::bound,
        .cases = edge_space(),
        .check = check_tile_edges,
        .turned_red_by = {planted::last_key_scores_zero()},
    };
}

/// One channel of the keys rises along a ramp that queries read at 1: scores climb by `climb` from
/// the first key to the last, whatever the other channels add.
TensorSet climbing_scores(const Trial& trial, std::uint64_t stream) {
    const Problem& problem = trial.problem();
    TensorSet inputs = trial.inputs();
    Tensor &q = inputs[Role::q], &k = inputs[Role::k];
    const std::int64_t channel = trial.random_below(stream, 0, problem.dim_qk);
    const double climb = std::ldexp(1.0, static_cast<int>(trial.random_below(stream, 1, 7)));
    for (std::int64_t at = channel; at < q.size(); at += problem.dim_qk) q.set(at, 1);
    const double step = climb / static_cast<double>(std::max<std::int64_t>(1, problem.len_kv - 1)) /
                        effective_scale(problem);
    for (std::int64_t at = channel; at < k.size(); at += problem.dim_qk)
        k.set(at, step * static_cast<double>(at / problem.dim_qk % problem.len_kv));
    return inputs;
}

// Softmax is a symmetric function of (score, value) pairs: their order changes neither O nor L. In
// ascending order a running maximum rises in every tile; reversed it never rises after the first;
// with the largest moved behind all others it rises on the last key; and at random places.
Judgement check_order_of_keys(const Trial& trial) {
    const Problem& problem = trial.problem();
    if (problem.len_kv < 2) return nothing_compared("one key has one order");
    // Keys climb to 64 / scale at most, which must be a number of f16, the narrowest format.
    if (!(64 / std::abs(effective_scale(problem)) < traits(Precision::f16).max_finite))
        return nothing_compared("the scale is too small for scores to climb");
    const std::uint64_t stream = stream_of("partition.order");
    const TensorSet inputs = climbing_scores(trial, stream);
    std::vector<std::int64_t> falling = range(0, problem.len_kv);
    std::reverse(falling.begin(), falling.end());
    std::vector<std::int64_t> late = falling;
    std::rotate(late.begin(), late.begin() + 1, late.end());
    const std::pair<const char*, std::vector<std::int64_t>> orders[] = {
        {"falling scores", falling},
        {"the largest score last", late},
        {"scores in random order", permutation(trial, stream + 1, problem.len_kv)}};
    const Run rising(trial, problem, inputs);
    Judgement verdict = nothing_compared("no query sees a key");
    for (const auto& [name, order] : orders) {
        const PairedCase paired = with_keys(problem, inputs, order, {});
        const Run other(trial, paired.problem, paired.inputs);
        Relation relation;
        relation.rows = defined_rows(rising);
        relation.sentence = [&](const RowMatch& rows) {
            return fmt::format("{} give {} another result than rising ones", name,
                               name_of(problem, rows.first));
        };
        verdict = merge(verdict, compare_runs(rising, other, relation));
        if (verdict.violated()) break;
    }
    return verdict;
}

CaseSpace order_space() {
    return {.allow = apart,
            .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int, ValueKind::flat},
            .cost = 8};
}

Property order() {
    return {
        .id = "partition.order",
        .statement = "The running maximum may rise late, never, or on the last key: no matter.",
        .statement_short = "when the running maximum rises does not matter",
        .why =
            "Softmax is symmetric in its (score, value) pairs. Keys ordered by rising scores make "
            "a running maximum rise in every tile, falling ones never after the first, and with "
            "the largest last every earlier term must be rescaled at the end. All orders have one "
            "truth, and each run is held to its bound.",
        .source = "Milakov and Gimelshein 2018, algorithm 3",
        .compares = Compares::bound,
        .cases = order_space(),
        .check = always<check_order_of_keys>,
        .turned_red_by = {planted::last_key_scores_zero()},
    };
}

// First that every number is one where the reference's is and the format can hold it, said in those
// words; then that it is within its bound.
Judgement check_stability(const Trial& trial) {
    const Problem& problem = trial.problem();
    const Run call(trial);
    Tally tally(problem);
    const double largest = traits(call.output_format()).max_finite;
    for (const Row& row : all_rows(problem)) {
        if (blind(call, row)) continue;
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            const bound::ExpectedElement& e = element(call, row, c);
            if (!(std::abs(e.value) + e.bound + e.error < largest)) continue;
            const double observed = output(call, row, c);
            tally.fact(std::isfinite(observed), e.value, observed, output_at(row, c), [&] {
                return fmt::format("the output of {}, channel {}, is {}", name_of(problem, row), c,
                                   observed);
            });
        }
    }
    if (tally.violated()) return tally.judgement({});
    return trial.compare(problem, trial.inputs(), trial.observed());
}

CaseSpace stability_space() {
    return {.allow = attention,
            .kinds = {ValueKind::logit50, ValueKind::logit1e3, ValueKind::logit1e4,
                      ValueKind::negative_logits, ValueKind::ties, ValueKind::flat, ValueKind::tiny,
                      ValueKind::wide, ValueKind::one_hot, ValueKind::qk_cancel},
            .cost = 4};
}

Property stability() {
    return {
        .id = "partition.stability",
        .statement = "Extreme scores and values give finite outputs within their bounds.",
        .statement_short = "extreme scores give finite outputs within bounds",
        .why =
            "With the maximum subtracted every exponent is at most 0 and the sum at least 1: "
            "nothing overflows for scores to 1e4 of either sign, ties, one outlier or subnormals, "
            "and the bound holds as it stands.",
        .source = "Higham, Blanchard and Higham 2021 (log-sum-exp and softmax)",
        .compares = Compares::bound,
        .cases = stability_space(),
        .check = always<check_stability>,
        .turned_red_by = {planted::answers_not_a_number()},
    };
}

}  // namespace

std::vector<Property> partition() {
    return {merge(), tile_edges(), order(), stability()};
}

}  // namespace attest::law
