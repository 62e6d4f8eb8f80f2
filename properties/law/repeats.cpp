#include "properties/law/repeats.hpp"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "properties/law/paired_cases.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

/// The same call again: the other flush, another poison.
Judgement repeat(const Run& first, bool bits, const char* change) {
    const Run second(first.trial(), first.problem(), first.inputs());
    Relation relation;
    relation.rows = defined_rows(first);
    relation.promise = same_bits_if(bits);
    relation.sentence = [&, change](const RowMatch& match) {
        return name_of(first.problem(), match.first) + change;
    };
    return compare_runs(first, second, relation);
}

/// How often a call is made again: `usual`, and where it is small now and then as often as a kernel
/// is called in one step of a model, for one that is right in its first calls alone.
std::int64_t calls_again(const Given& given, std::int64_t usual) {
    constexpr std::int64_t often = 80, one_of = 16, scores_small = 2048;
    const bool small = score_count(given.problem()) <= scores_small;
    return small && given.random_below(stream_of("calls again"), 0, one_of) == 0 ? often : usual;
}

Judgement compare_copy(const Run& first, const Run& second, std::int64_t of, std::int64_t at,
                       const char* change) {
    Relation relation;
    relation.promise = SameBits{};
    for (RowMatch match : defined_rows(first)) {
        if (match.first.batch != of) continue;
        match.second.batch = at;
        relation.rows.push_back(match);
    }
    relation.sentence = [&, change](const RowMatch& match) {
        return name_of(first.problem(), match.first) + change;
    };
    return compare_runs(first, second, relation);
}

Layout drawn_layout(const Given& given, std::uint64_t use) {
    constexpr std::array orders = {AxisOrder::bhtd, AxisOrder::bthd, AxisOrder::tbhd,
                                   AxisOrder::bhdt};
    const std::uint64_t stream = stream_of("hygiene.layout");
    return {orders[static_cast<std::size_t>(given.random_below(stream, use, 4))],
            given.random_below(stream + 1, use, 4), given.random_below(stream + 2, use, 3)};
}

/// The case without masks and positions, which tie lengths together.
Problem bare(Problem p) {
    p.mask = {};
    p.cache = {};
    p.alibi = false;
    p.rope = {};
    return p;
}

}  // namespace

Judgement repeats_bits(const Trial& trial) {
    const Run first(trial);
    Judgement sum;
    for (std::int64_t n = calls_again(trial, 2); n > 0 && !sum.violated(); --n)
        sum = merge(std::move(sum),
                    repeat(first, true, " gets other bits when the same call is made again"));
    return sum;
}

/// Two calls, one in each flush: the worker reports what they touch. Where reading past an end only
/// meets slack, that is poison, and other poison in the second call: the answers differ.
Judgement memory_does_not_show(const Trial& trial) {
    const Run first(trial);
    Judgement sum;
    for (std::int64_t n = calls_again(trial, 1); n > 0 && !sum.violated(); --n)
        sum =
            merge(std::move(sum),
                  repeat(first, trial.numerics().deterministic,
                         " changes when the call is made again, its tensors elsewhere in memory"));
    return sum;
}

/// Call n of a case runs under schedule n mod 4: the first call is repeated under the three others
/// and, with another seed, its own.
Judgement schedule_does_not_show(const Trial& trial) {
    constexpr int schedules = 4;
    const Run first(trial);
    Judgement sum = nothing_compared("no schedule was tried");
    for (int n = 0; n < schedules && !sum.violated(); ++n)
        sum = merge(std::move(sum), repeat(first, true, " depends on the order of threads"));
    return sum;
}

/// What the runtime finds is the error of the call, and ends the law there.
Judgement runtime_reports_nothing(const Trial& trial) {
    std::int64_t watched = trial.observed()[Role::o].size();
    constexpr int further_calls = 2;
    for (int n = 0; n < further_calls; ++n)
        watched += trial.run(trial.problem(), trial.inputs())[Role::o].size();
    return holds(watched);
}

/// Outputs hold NaN before the call, of two patterns by turns, and the worker looks for them bit by
/// bit. An element that is NaN although the reference knows it was not computed either.
Judgement outputs_are_numbers(const Trial& trial) {
    const Run call(trial);
    const Problem& problem = call.problem();
    std::int64_t compared = 0;
    for (const RowMatch& match : defined_rows(call))
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            const auto [b, h, i] = match.first;
            const std::int64_t at = call.output().flat(b, h, i, c);
            const double observed = call.output().get(at);
            if (!admitted(call.expected_output(at), call.output_format()).bounded) continue;
            ++compared;
            if (!std::isnan(observed)) continue;
            Violation v;
            v.problem = name_of(problem, match.first) + " is left without an output";
            v.index = {b, h, i, c};
            v.element_name = "output of " + name_of(problem, match.first);
            v.expected = call.expected_output(at).value;
            v.observed = observed;
            v.bound_kind = BoundKind::exact;
            v.ratio = observed;
            return violated(std::move(v), compared);
        }
    return nothing_compared(compared, 0, "no output of this case is known to be a number");
}

/// Alone, and in a batch several times as large: axis lengths stay what they are.
Plan batch_does_not_show(const Given& given) {
    constexpr std::int64_t copies = 4;
    const Problem& problem = given.problem();
    const std::int64_t chosen =
        given.random_below(stream_of("hygiene.batch_invariant"), 0, problem.batch);
    std::vector<std::int64_t> from;
    for (std::int64_t n = 0; n < copies * problem.batch; ++n) from.push_back(n % problem.batch);
    struct Other {
        PairedCase batch;
        std::int64_t at;  ///< where the chosen sequence stands
        const char* change;
    };
    std::vector<Other> others = {
        {with_sequences(problem, given.inputs(), {chosen}), 0,
         " gets other bits when its sequence is alone"},
        {with_sequences(problem, given.inputs(), from), (copies - 1) * problem.batch + chosen,
         " gets other bits in a larger batch"}};
    std::erase_if(others, [&](const Other& o) { return !given.supports(o.batch.problem); });
    if (others.empty()) return not_applicable("the kernel takes no other batch");
    return [others, chosen](const Trial& trial) -> Judgement {
        const Run first(trial);
        Judgement sum;
        for (const auto& [batch, at, change] : others)
            if (!sum.violated())
                sum = merge(sum, compare_copy(first, Run(trial, batch.problem, batch.inputs),
                                              chosen, at, change));
        return sum;
    };
}

Plan layout_does_not_show(const Given& given) {
    constexpr std::uint64_t layouts_tried = 3;
    std::vector<Problem> others;
    for (std::uint64_t n = 0; n < layouts_tried; ++n) {
        Problem problem = given.problem();
        problem.layout_q = drawn_layout(given, 4 * n);
        problem.layout_k = drawn_layout(given, 4 * n + 1);
        problem.layout_v = drawn_layout(given, 4 * n + 2);
        problem.layout_o = drawn_layout(given, 4 * n + 3);
        if (!(problem == given.problem()) && given.supports(problem)) others.push_back(problem);
    }
    if (others.empty()) return not_applicable("the kernel takes no other layout of this problem");
    return [others](const Trial& trial) -> Judgement {
        const Run first(trial);
        Relation relation;
        relation.rows = defined_rows(first);
        relation.sentence = [&](const RowMatch& match) {
            return name_of(first.problem(), match.first) +
                   " gets another answer in another memory layout";
        };
        Judgement sum;
        for (const Problem& problem : others)
            if (!sum.violated())
                sum =
                    merge(sum, compare_runs(first, Run(trial, problem, first.inputs()), relation));
        return sum;
    };
}

namespace {

Judgement judge_degenerate(const Trial& trial, const std::vector<Problem>& problems) {
    Judgement sum;
    for (const Problem& problem : problems) {
        const TensorSet inputs = blank_inputs(problem);
        const TensorSet observed = trial.run(problem, inputs);
        // An axis of extent 0 leaves nothing to compare: returning is all that is asked.
        if (observed[Role::o].size() == 0) continue;
        sum = merge(std::move(sum), trial.compare(problem, inputs, observed));
        if (sum.violated()) {
            sum.violation->problem += problem.len_kv == 0   ? " (no keys at all)"
                                      : problem.len_kv == 1 ? " (a single key)"
                                                            : " (a single channel)";
            return sum;
        }
    }
    return sum;
}

}  // namespace

Plan degenerate_shapes_work(const Given& given) {
    std::vector<Problem> problems(5, bare(given.problem()));
    problems[0].len_kv = 1;
    problems[1].dim_qk = problems[1].dim_v = 1;
    problems[2].len_kv = 0;
    problems[3].len_q = 0;
    problems[4].batch = 0;
    const bool empty_defined =
        given.dialect().empty_row == EmptyRow::zeros || given.dialect().empty_row == EmptyRow::nan;
    std::erase_if(problems, [&](const Problem& problem) {
        return (problem.len_kv == 0 && !empty_defined) || !given.supports(problem);
    });
    if (problems.empty()) return not_applicable("the kernel takes no degenerate shape");
    return [problems](const Trial& trial) { return judge_degenerate(trial, problems); };
}

}  // namespace attest::law
