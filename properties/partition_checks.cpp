#include "properties/partition_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "properties/law/key_twins.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/tally.hpp"

namespace attest::laws {

namespace {

/// The keys cut into parts at random places: one boundary or two, never an empty part.
std::vector<std::int64_t> cuts(const Trial& trial, std::uint64_t stream, std::int64_t keys) {
    std::vector<std::int64_t> ends = {0, 1 + trial.random_below(stream, 0, keys - 1)};
    const std::int64_t second = 1 + trial.random_below(stream, 1, keys - 1);
    if (second != ends[1]) ends.push_back(second);
    ends.push_back(keys);
    std::sort(ends.begin(), ends.end());
    return ends;
}

/// What the parts say of one row: for each that sees a key, its L and its share of the whole.
struct Merge {
    std::vector<const Call*> parts;
    std::vector<double> share;   ///< softmax of the middles of the parts' L
    std::vector<double> excess;  ///< expm1 of what each L may be off by
    Interval lse;
    double off = 0;  ///< sum of share * excess
};

// The parts that the mask leaves without a key say L = -inf. Where the dialect leaves that open
// they are not asked; else their own answer is taken: a wrong one spoils the merge, as it would for
// a user.
Merge merge_row(const std::vector<Call>& parts, const Row& row) {
    Merge merge;
    std::vector<Interval> lse;
    for (const Call& part : parts) {
        if (blind(part, row)) {
            if (part.trial().dialect().empty_row != EmptyRow::zeros) continue;
            const double said = part.lse().get(flat(part.problem(), row));
            if (said == -std::numeric_limits<double>::infinity()) continue;
            lse.push_back(Interval::exactly(said));
        } else {
            lse.push_back(lse_truth(part, row));
        }
        merge.parts.push_back(&part);
    }
    double most = -std::numeric_limits<double>::infinity(), sum = 0, worst = 0;
    for (const Interval& l : lse) most = std::max(most, l.mid());
    for (const Interval& l : lse) {
        merge.share.push_back(std::exp(l.mid() - most));
        merge.excess.push_back(std::expm1(l.radius()));
        sum += merge.share.back();
        worst = std::max(worst, l.radius());
    }
    for (std::size_t p = 0; p < merge.share.size(); ++p) {
        merge.share[p] /= sum;
        merge.off += merge.share[p] * merge.excess[p];
    }
    const double middle = most + std::log(sum);
    // Of the middle itself: a few roundings of exp, of the sum and of the logarithm.
    merge.lse = Interval::around(middle, worst + 16 * 0x1p-53 * (1 + std::abs(middle)));
    return merge;
}

// O = sum_p exp(L_p) O_p / sum_p exp(L_p). With L_p known to e_p, shares w_p from the middles and
// O^ = sum w_p m_p, m_p the middle of O_p known to r_p:
//   |O - O^| <= [sum w_p H_p |m_p - O^| + sum w_p (1 + H_p) r_p] / (1 - sum w_p H_p), H_p =
//   expm1(e_p),
// as for bound (a): an error common to all parts cancels.
Interval merged(const Merge& merge, const Row& row, std::int64_t channel) {
    std::vector<Interval> part;
    double centre = 0, magnitude = 0;
    for (std::size_t p = 0; p < merge.parts.size(); ++p) {
        const Call& call = *merge.parts[p];
        part.push_back(blind(call, row) ? Interval::exactly(output(call, row, channel))
                                        : truth(call, row, channel));
        centre += merge.share[p] * part[p].mid();
        magnitude += merge.share[p] * std::abs(part[p].mid());
    }
    if (!(merge.off < 0.5))
        return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    double error = 0;
    for (std::size_t p = 0; p < merge.parts.size(); ++p)
        error += merge.share[p] * (merge.excess[p] * std::abs(part[p].mid() - centre) +
                                   (1 + merge.excess[p]) * part[p].radius());
    const double own = 32 * 0x1p-53 * magnitude;  // a few roundings of shares and sums
    return Interval::around(centre, 1.0001 * error / (1 - merge.off) + own);
}

/// Some tensor's numbers are the case's own: they fit no other length.
bool written_out(const Values& values) {
    return std::any_of(values.tensors.begin(), values.tensors.end(), [](const auto& tensor) {
        return tensor.second.fill == Fill::explicit_values;
    });
}

}  // namespace

Verdict check_merge(const Trial& trial) {
    const Problem& problem = trial.problem();
    if (problem.len_kv < 2) return not_applicable("one key cannot be split");
    const Call whole(trial);
    if (!whole.has_lse()) return not_applicable("the kernel returned no log-sum-exp");
    const std::vector<std::int64_t> ends =
        cuts(trial, stream_of("partition.merge"), problem.len_kv);
    std::vector<Call> parts;
    for (std::size_t p = 0; p + 1 < ends.size(); ++p) {
        const Twin part =
            with_keys(problem, trial.inputs(), range(ends[p], ends[p + 1] - ends[p]), {});
        if (!trial.supports(part.problem))
            return not_applicable("the kernel does not take a part of the keys");
        parts.emplace_back(trial, part.problem, part.inputs);
    }
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        if (blind(whole, row)) continue;
        const Merge merge = merge_row(parts, row);
        if (merge.parts.empty()) continue;
        for (std::int64_t c = 0; c < value_dim(problem); ++c)
            tally.same(truth(whole, row, c), merged(merge, row, c), output_at(row, c), [&] {
                return fmt::format(
                    "keys cut at {} and merged by their log-sum-exp give {} another "
                    "output than the whole",
                    ends[1], name_of(problem, row));
            });
        tally.same(lse_truth(whole, row), merge.lse, lse_at(row), [&] {
            return fmt::format("keys cut at {} and merged give {} another log-sum-exp", ends[1],
                               name_of(problem, row));
        });
    }
    return tally.verdict("no query sees a key");
}

// The edge nearest to the case's own length, one key less, as many, or one more: the case shrinks
// with its length. Values are drawn as the case says, for the new length.
Verdict check_tile_edges(const Trial& trial) {
    constexpr std::int64_t edges[] = {16, 32, 64, 80, 96, 112, 128, 176, 256};
    const Problem& subject = trial.problem();
    std::int64_t edge = edges[0];
    for (const std::int64_t e : edges)
        if (std::abs(e - subject.len_kv) < std::abs(edge - subject.len_kv)) edge = e;
    const std::uint64_t stream = stream_of("partition.tile_edges");
    Case at_edge = trial.subject();
    Problem& problem = at_edge.problem;
    problem.len_kv = edge + trial.random_below(stream, 0, 3) - 1;
    problem.len_q = std::min(problem.len_q, problem.len_kv);
    if (problem.cache.present) problem.cache.len = problem.len_kv - problem.len_q;
    problem = canonical(problem);
    if (!trial.supports(problem)) return not_applicable("the kernel does not take so many keys");
    if (written_out(at_edge.values) && !(problem == subject))
        return not_applicable("values that are written out have no other length");
    const TensorSet inputs = make_inputs(at_edge);
    Verdict verdict = trial.compare(problem, inputs, trial.run(problem, inputs));
    if (verdict.violation)
        verdict.violation->problem =
            fmt::format("with {} keys {}", problem.len_kv, verdict.violation->problem);
    return verdict;
}

namespace {

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

}  // namespace

// Softmax is a symmetric function of (score, value) pairs: their order changes neither O nor L. In
// ascending order a running maximum rises in every tile; reversed it never rises after the first;
// with the largest moved behind all others it rises on the last key; and at random places.
Verdict check_order_of_keys(const Trial& trial) {
    const Problem& problem = trial.problem();
    if (problem.len_kv < 2) return not_applicable("one key has one order");
    // Keys climb to 64 / scale at most, which must be a number of f16, the narrowest format.
    if (!(64 / effective_scale(problem) < traits(Precision::f16).max_finite))
        return not_applicable("the scale is too small for scores to climb");
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
    const Call rising(trial, problem, inputs);
    Verdict verdict = not_applicable("no query sees a key");
    for (const auto& [name, order] : orders) {
        const Twin twin = with_keys(problem, inputs, order, {});
        const Call other(trial, twin.problem, twin.inputs);
        Likeness likeness;
        likeness.rows = defined_rows(rising);
        likeness.sentence = [&](const RowMatch& rows) {
            return fmt::format("{} give {} another result than rising ones", name,
                               name_of(problem, rows.first));
        };
        verdict = merge(verdict, compare_runs(rising, other, likeness));
        if (verdict.decision == Decision::violated) break;
    }
    return verdict;
}

// First that every number is one where the reference's is and the format can hold it, said in those
// words; then that it is within its bound.
Verdict check_stability(const Trial& trial) {
    const Problem& problem = trial.problem();
    const Call call(trial);
    Tally tally(problem);
    const double largest = traits(call.output_format()).max_finite;
    for (const Row& row : all_rows(problem)) {
        if (blind(call, row)) continue;
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            const ExpectedElement& e = element(call, row, c);
            if (!(std::abs(e.value) + e.bound + e.error < largest)) continue;
            const double observed = output(call, row, c);
            tally.fact(std::isfinite(observed), e.value, observed, output_at(row, c), [&] {
                return fmt::format("the output of {}, channel {}, is {}", name_of(problem, row), c,
                                   observed);
            });
        }
    }
    if (tally.violated()) return tally.verdict({});
    return trial.compare(problem, trial.inputs(), trial.observed());
}

}  // namespace attest::laws
