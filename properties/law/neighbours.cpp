#include "properties/law/neighbours.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "properties/law/paired_cases.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/reading.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::law {

namespace {

/// The same problem with q, k and v of another seed.
TensorSet fresh_contents(const Trial& trial) {
    Case other;
    other.problem = trial.problem();
    other.values.seed = trial.random_bits(stream_of("hygiene.fresh"), 0) | 1;
    TensorSet inputs = trial.inputs();
    TensorSet fresh = make_inputs(other);
    for (const Role role : {Role::q, Role::k, Role::v}) inputs[role] = fresh[role];
    return inputs;
}

/// The first call repeated: to the bit where determinism is claimed, else within bounds.
Judgement repeated_as_before(const Run& first, const char* between) {
    const Run again(first.trial(), first.problem(), first.inputs());
    Relation relation;
    relation.rows = defined_rows(first);
    relation.promise = same_bits_if(first.trial().numerics().deterministic);
    relation.sentence = [&, between](const RowMatch& match) {
        return fmt::format("{} gets another answer after {}", name_of(first.problem(), match.first),
                           between);
    };
    return compare_runs(first, again, relation);
}

/// A call against its own reference.
Judgement answered_as_itself(const Run& call, const std::string& sentence) {
    std::int64_t compared = 0;
    double worst = 0;
    for (const RowMatch& match : defined_rows(call))
        for (std::int64_t c = 0; c < value_dim(call.problem()); ++c) {
            const auto [b, h, i] = match.first;
            const std::int64_t at = call.output().flat(b, h, i, c);
            const bound::ExpectedElement& expected = call.expected_output(at);
            if (!std::isfinite(expected.bound)) continue;
            const double observed = call.output().get(at);
            ++compared;
            const double ratio = bound::error_ratio(observed, expected, call.output_format());
            if (bound::judge(observed, expected, call.output_format()) !=
                bound::Agreement::disagrees) {
                worst = std::max(worst, ratio);
                continue;
            }
            Violation v;
            v.problem = sentence;
            v.index = {b, h, i, c};
            v.element_name = "output of " + name_of(call.problem(), match.first);
            v.expected = expected.value;
            v.observed = observed;
            v.bound = expected.bound + expected.error;
            v.ratio = ratio;
            return violated(std::move(v), compared);
        }
    return nothing_compared(compared, worst, "no row of the call has an answer to compare");
}

}  // namespace

Judgement no_stale_state(const Trial& trial) {
    const Run first(trial);
    const Problem& problem = first.problem();
    const Run other(trial, problem, fresh_contents(trial));
    // Both outputs are the same number by number, yet their references are apart: as of a kept
    // answer.
    const bool kept = !first_difference(first.output(), other.output());
    std::int64_t compared = 0;
    for (const RowMatch& match : defined_rows(first))
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            const auto [b, h, i] = match.first;
            const std::int64_t at = first.output().flat(b, h, i, c);
            const auto change = contrast(first, at, other, at);
            if (!change) continue;
            ++compared;
            if (!change->absent()) continue;
            return violated(
                missing_change(first, *change,
                               kept
                                   ? "returns the same output for other contents in the same shapes"
                                   : name_of(problem, match.first) +
                                         " does not follow new contents in the same shapes"),
                compared);
        }
    Judgement again = repeated_as_before(first, "a call with other contents");
    if (again.violated()) return again;
    return nothing_compared(compared + again.elements, again.worst_ratio,
                            "no row of this case has an answer to compare");
}

namespace {

Layout random_layout(const Trial& trial, std::uint64_t use) {
    constexpr std::array orders = {AxisOrder::bhtd, AxisOrder::bthd, AxisOrder::tbhd,
                                   AxisOrder::bhdt};
    const std::uint64_t stream = stream_of("hygiene.sequence.layout");
    return {orders[static_cast<std::size_t>(trial.random_below(stream, use, 4))],
            trial.random_below(stream + 1, use, 5), trial.random_below(stream + 2, use, 4)};
}

/// The case with other strides, or shorter, or of another dimension, or in another format.
std::vector<std::pair<const char*, Problem>> other_problems(const Trial& trial) {
    const Problem& base = trial.problem();
    const std::uint64_t stream = stream_of("hygiene.sequence");
    std::vector<std::pair<const char*, Problem>> others;
    Problem strided = base;
    strided.layout_q = random_layout(trial, 0);
    strided.layout_k = random_layout(trial, 1);
    strided.layout_v = random_layout(trial, 2);
    strided.layout_o = random_layout(trial, 3);
    others.emplace_back("a call of the same shapes with other strides", strided);

    Problem plain = base;  // lengths may change freely where nothing is tied to them
    plain.mask.lens_q.clear();
    plain.mask.lens_kv.clear();
    plain.mask.documents_q.clear();
    plain.mask.documents_kv.clear();
    Problem shorter = plain;
    shorter.len_kv = 1 + trial.random_below(stream, 0, base.len_kv + 1);
    shorter.len_q =
        base.len_q == base.len_kv ? shorter.len_kv : std::min(base.len_q, shorter.len_kv);
    if (shorter.cache.present) shorter.cache.len = shorter.len_kv - shorter.len_q;
    others.emplace_back("a call of other lengths", shorter);

    Problem narrower = base;
    narrower.dim_v = 1 + trial.random_below(stream, 1, value_dim(base));
    others.emplace_back("a call of another value dimension", narrower);

    constexpr std::array formats = {Precision::f64, Precision::f32, Precision::f16,
                                    Precision::bf16};
    Problem other_format = base;
    other_format.format_q = other_format.format_kv = other_format.format_o =
        formats[static_cast<std::size_t>(trial.random_below(stream, 2, 4))];
    others.emplace_back("a call of another format", other_format);
    return others;
}

}  // namespace

Judgement no_stale_plan(const Trial& trial) {
    const Run first(trial);
    std::int64_t elements = 0;
    double worst = 0;
    const auto keep = [&](const Judgement& verdict) {
        elements += verdict.elements;
        worst = std::max(worst, verdict.worst_ratio);
        return !verdict.violated();
    };
    for (const auto& [name, problem] : other_problems(trial)) {
        if (canonical(problem) == canonical(first.problem()) || !trial.supports(problem)) continue;
        // Where the shapes are the case's, its contents are kept: only the strides differ.
        bool same_shapes = problem.format_q == first.problem().format_q &&
                           problem.format_kv == first.problem().format_kv;
        for (const Role role : {Role::q, Role::k, Role::v, Role::mask})
            same_shapes &= shape_of(problem, role) == shape_of(first.problem(), role);
        TensorSet inputs =
            same_shapes ? adopt(problem, first.inputs()).inputs : blank_inputs(problem);
        const Run other(trial, problem, std::move(inputs));
        Judgement own = answered_as_itself(
            other, fmt::format("{} is answered right alone, but wrong right after the case", name));
        // A call that is wrong in a fresh process too is another law's to tell, and so is how far
        // off it is.
        if (!own.violated())
            keep(own);
        else if (!answered_as_itself(other.alone(), "").violated())
            return own;
        Judgement again = repeated_as_before(first, name);
        if (!keep(again)) return again;
    }
    return nothing_compared(elements, worst,
                            "the kernel takes no other strides, lengths, dims or formats");
}

}  // namespace attest::law
