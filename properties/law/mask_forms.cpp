#include "properties/law/mask_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "properties/law/other_answer.hpp"
#include "properties/law/paired_cases.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

std::string mask_name(const Problem& problem) {
    const Mask& mask = problem.mask;
    if (mask.causal) return "the causal mask";
    if (mask.window.limited()) return "the window";
    if (!mask.documents_q.empty()) return "the packing of documents";
    if (!mask.lens_kv.empty()) return "the list of lengths";
    return "the mask tensor";
}

/// Rows whose keys are sliced out and run alone: all of few, else three random ones.
std::vector<RowMatch> rows_to_slice(const Run& base) {
    constexpr std::size_t few = 3;
    const Visibility visibility = base.visibility();
    std::vector<RowMatch> rows = defined_rows(base);
    std::erase_if(rows, [&](const RowMatch& match) {
        return !visibility.is_query(match.first) || visibility.empty(match.first);
    });
    if (rows.size() <= few) return rows;
    std::vector<RowMatch> chosen;
    for (std::size_t n = 0; n < few; ++n)
        chosen.push_back(rows[static_cast<std::size_t>(base.trial().random_below(
            stream_of("masking.equivalence.row"), n, static_cast<std::int64_t>(rows.size())))]);
    return chosen;
}

void add(Judgement& sum, const Judgement& part) {
    sum.elements += part.elements;
    sum.worst_ratio = std::max(sum.worst_ratio, part.worst_ratio);
}

}  // namespace

Judgement mask_forms_agree(const Trial& trial) {
    const Run base(trial);
    const Problem& problem = base.problem();
    Judgement sum;
    std::vector<MaskKind> kinds = {MaskKind::additive};
    if (problem.mask.tensor.kind != MaskKind::additive) kinds.push_back(MaskKind::boolean);
    for (const MaskKind kind : kinds) {
        PairedCase paired = with_explicit_mask(problem, trial.dialect(), base.inputs(), kind);
        const auto call = run_if_supported(trial, paired.problem, std::move(paired.inputs));
        if (!call) continue;
        Relation relation;
        relation.rows = defined_rows(base);
        relation.sentence = [&](const RowMatch& match) {
            return fmt::format("{} gets another answer when {} is written out as {} mask tensor",
                               name_of(problem, match.first), mask_name(problem),
                               kind == MaskKind::boolean ? "a boolean" : "an additive");
        };
        Judgement verdict = compare_runs(base, *call, relation);
        if (verdict.violated()) return verdict;
        add(sum, verdict);
    }
    for (RowMatch match : rows_to_slice(base)) {
        PairedCase paired = with_visible_keys(problem, trial.dialect(), base.inputs(), match.first);
        const auto call = run_if_supported(trial, paired.problem, std::move(paired.inputs));
        if (!call) continue;
        match.second = {0, 0, 0};
        Relation relation;
        relation.rows = {match};
        relation.sentence = [&](const RowMatch& row) {
            return fmt::format("{} gets another answer when the keys hidden by {} are sliced away",
                               name_of(problem, row.first), mask_name(problem));
        };
        Judgement verdict = compare_runs(base, *call, relation);
        if (verdict.violated()) return verdict;
        add(sum, verdict);
    }
    return nothing_compared(sum.elements, sum.worst_ratio,
                            "the kernel takes no other form of this mask");
}

namespace {

Judgement judge_broadcast(const Trial& trial, const Problem& expanded) {
    const Run base(trial);
    const Problem& problem = base.problem();
    TensorSet inputs = base.inputs();
    Tensor mask = inputs[Role::mask];
    const Shape extents = *shape_of(expanded, Role::mask);
    for (int axis = 0; axis < 4; ++axis)
        if (mask.shape()[static_cast<std::size_t>(axis)] == 1)
            mask = gather(mask, axis,
                          std::vector<std::int64_t>(static_cast<std::size_t>(extents[axis]), 0));
    inputs[Role::mask] = std::move(mask);
    Relation relation;
    relation.rows = defined_rows(base);
    relation.sentence = [&](const RowMatch& match) {
        return name_of(problem, match.first) +
               " gets another answer when its broadcast mask is written out in full";
    };
    return compare_runs(base, Run(trial, expanded, std::move(inputs)), relation);
}

}  // namespace

Plan broadcast_agrees(const Given& given) {
    Problem expanded = given.problem();
    expanded.mask.tensor = {.kind = expanded.mask.tensor.kind};
    if (!given.supports(expanded))
        return not_applicable("the kernel takes no mask of the full shape");
    return [expanded](const Trial& trial) { return judge_broadcast(trial, expanded); };
}

Judgement alignment_is_declared(const Trial& trial) {
    const Run call(trial);
    const Problem& problem = call.problem();
    const bool top_left = trial.dialect().causal == CausalAlignment::top_left;
    Dialect flipped = trial.dialect();
    flipped.causal = top_left ? CausalAlignment::bottom_right : CausalAlignment::top_left;
    const bool biased = problem.mask.tensor.kind == MaskKind::additive;
    const PairedCase paired = with_explicit_mask(problem, flipped, call.inputs(),
                                                 biased ? MaskKind::additive : MaskKind::boolean);
    const char* declared = top_left ? "top-left" : "bottom-right";
    const char* other = top_left ? "bottom-right" : "top-left";
    OtherAnswer answer = same_shape(call, trial.expected(paired.problem, paired.inputs));
    answer.sentence = [&](const Row& row) {
        return fmt::format("{} sees the keys of a mask aligned {}; the kernel declares {}",
                           name_of(problem, row), other, declared);
    };
    return not_the_other(call, answer);
}

namespace {

/// The case with one row of the mask, or one sequence, emptied where it has something to empty;
/// `touched` tells which rows that concerns.
struct Emptied {
    Problem problem;
    TensorSet inputs;
    std::vector<Row> touched;
};

Emptied emptied(const Trial& trial) {
    Emptied e{trial.problem(), trial.inputs(), {}};
    const Problem& p = e.problem;
    const std::uint64_t stream = stream_of("masking.empty_row");
    if (p.mask.tensor.kind != MaskKind::none) {
        Tensor& mask = e.inputs[Role::mask];
        const Shape& s = mask.shape();
        const std::int64_t b = trial.random_below(stream, 0, s[0]);
        const std::int64_t h = trial.random_below(stream, 1, s[1]);
        const std::int64_t i = trial.random_below(stream, 2, s[2]);
        for (std::int64_t j = 0; j < s[3]; ++j)
            mask.put(b, h, i, j, p.mask.tensor.kind == MaskKind::boolean ? 0 : -infinite);
        for (const Row& row : all_rows(p))
            if ((s[0] == 1 || row.batch == b) && (s[1] == 1 || row.head == h) &&
                (s[2] == 1 || row.query == i))
                e.touched.push_back(row);
    } else if (!p.mask.lens_kv.empty() && !p.cache.present) {
        const std::int64_t b = trial.random_below(stream, 3, p.batch);
        Problem shortened = p;
        shortened.mask.lens_kv[static_cast<std::size_t>(b)] = 0;
        if (!trial.supports(shortened)) return e;
        PairedCase paired = adopt(shortened, e.inputs);
        e = {std::move(paired.problem), std::move(paired.inputs), {}};
        for (const Row& row : all_rows(e.problem))
            if (row.batch == b) e.touched.push_back(row);
    }
    return e;
}

/// A row without keys against the policy: none where it is as it must be.
std::optional<Violation> check_row_without_keys(const Run& call, const Row& row, bool query,
                                                std::int64_t& compared) {
    const Problem& problem = call.problem();
    const bool nan = query && call.trial().dialect().empty_row == EmptyRow::nan && !problem.sink;
    const auto broken = [&](Role role, std::int64_t channel, double expected, double observed) {
        Violation v;
        v.problem = query ? name_of(problem, row) +
                                " sees no key and does not come out as the "
                                "kernel declares"
                          : name_of(problem, row) +
                                " lies past its sequence's end and is not left "
                                "at zero";
        v.tensor = role;
        v.index = {row.batch, row.head, row.query};
        if (role == Role::o) v.index.push_back(channel);
        v.element_name =
            (role == Role::o ? "output of " : "log-sum-exp of ") + name_of(problem, row);
        v.expected = expected;
        v.observed = observed;
        v.bound_kind = BoundKind::exact;
        v.ratio = infinite;
        return v;
    };
    for (std::int64_t c = 0; c < value_dim(problem); ++c) {
        const double o = call.output().at(row.batch, row.head, row.query, c);
        const double wanted = nan ? std::numeric_limits<double>::quiet_NaN() : 0;
        ++compared;
        if (nan ? !std::isnan(o) : !(o == 0)) return broken(Role::o, c, wanted, o);
    }
    // Without a sink the denominator is empty: L = log 0. With one, reference.lse judges it.
    if (!call.has_lse() || nan || (query && problem.sink)) return std::nullopt;
    const double lse = call.lse().at(row.batch, row.head, row.query, 0);
    ++compared;
    const double wanted = query ? call.trial().dialect().lse_of_no_key() : -infinite;
    if (!(lse == wanted)) return broken(Role::lse, 0, wanted, lse);
    return std::nullopt;
}

Judgement judge_empty_rows(const Trial& trial) {
    Emptied e = emptied(trial);
    const Run call(trial, std::move(e.problem), std::move(e.inputs));
    if (trial.dialect().empty_row == EmptyRow::mean)
        return trial.compare(call.problem(), call.inputs(), call.outputs());
    const Visibility visibility = call.visibility();
    std::int64_t compared = 0;
    for (const Row& row : all_rows(call.problem())) {
        const bool query = visibility.is_query(row);
        if (query && !visibility.empty(row)) continue;
        if (auto v = check_row_without_keys(call, row, query, compared))
            return violated(std::move(*v), compared);
    }
    if (compared == 0) return nothing_compared("every query of this case sees a key");
    if (e.touched.empty()) return holds(compared);
    // Rows that were not emptied differ in nothing they read from what they were in the case
    // itself.
    const Run before(trial);
    Relation relation;
    // A kernel may plan its work by the lengths, so those keep bits only by batch invariance.
    relation.promise =
        same_bits_if(trial.numerics().deterministic &&
                     (call.inputs().has(Role::mask) || trial.numerics().batch_invariant));
    for (const RowMatch& match : defined_rows(before))
        if (std::find(e.touched.begin(), e.touched.end(), match.first) == e.touched.end())
            relation.rows.push_back(match);
    relation.sentence = [&](const RowMatch& match) {
        return name_of(call.problem(), match.first) + " changes when another row is emptied";
    };
    Judgement verdict = compare_runs(before, call, relation);
    if (verdict.violated()) return verdict;
    return holds(compared + verdict.elements, verdict.worst_ratio);
}

}  // namespace

Plan empty_rows_follow_policy(const Given& given) {
    if (given.dialect().empty_row == EmptyRow::refuse)
        return not_applicable("the kernel leaves empty rows unspecified (empty_row: refuse)");
    return judge_empty_rows;
}

}  // namespace attest::law
