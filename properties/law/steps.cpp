#include "properties/law/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "properties/law/other_answer.hpp"
#include "properties/law/paired_cases.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

/// Queries of the case that make a call of their own.
struct DecodeStep {
    std::int64_t begin = 0, count = 0;
};

/// The step as a call: through a cache where the kernel has one, else as a plain problem. None
/// where the kernel takes neither form, or where neither means the same (the plain form keeps no
/// position; a cache always aligns bottom-right).
std::optional<PairedCase> call_of(const Given& given, const DecodeStep& step) {
    const Problem& problem = given.problem();
    const auto [begin, count] = step;
    const bool bottom_right = given.dialect().causal == CausalAlignment::bottom_right;
    // A cache aligns bottom-right whatever the dialect; on equal lengths the two are the same.
    const bool square = problem.len_q == problem.len_kv && problem.mask.lens_kv.empty();
    const bool long_enough = std::all_of(problem.mask.lens_kv.begin(), problem.mask.lens_kv.end(),
                                         [&](std::int64_t keys) { return keys >= problem.len_q; });
    if ((problem.cache.present || bottom_right || square) && long_enough &&
        problem.len_kv >= problem.len_q) {
        PairedCase paired = continued(problem, given.inputs(), begin, count, true);
        if (given.supports(paired.problem)) return paired;
    }
    if (problem.cache.present || has_positions(problem) || !bottom_right ||
        problem.len_kv - (problem.len_q - begin - count) < 1)
        return std::nullopt;
    PairedCase paired = continued(problem, given.inputs(), begin, count, false);
    if (!given.supports(paired.problem)) return std::nullopt;
    return paired;
}

Judgement compare_step(const Run& whole, const DecodeStep& step, const PairedCase& call) {
    Relation relation;
    for (RowMatch match : defined_rows(whole)) {
        const std::int64_t query = match.first.query;
        if (query < step.begin || query >= step.begin + step.count) continue;
        match.second.query = query - step.begin;
        relation.rows.push_back(match);
    }
    relation.sentence = [&](const RowMatch& match) {
        const std::string query = name_of(whole.problem(), match.first);
        if (step.count == 1)
            return fmt::format(
                "{} gets another answer when it is decoded alone behind a cache of length {}",
                query, call.problem.len_kv - 1);
        return fmt::format(
            "{} gets another answer in a chunk of {} queries behind a cache of length {}", query,
            step.count, call.problem.len_kv - step.count);
    };
    return compare_runs(whole, Run(whole.trial(), call.problem, call.inputs), relation);
}

Plan compare_steps(const Given& given, const std::vector<DecodeStep>& steps) {
    std::vector<std::pair<DecodeStep, PairedCase>> calls;
    for (const DecodeStep& step : steps) {
        auto call = call_of(given, step);
        if (!call) return not_applicable("the kernel takes no problem that continues a sequence");
        calls.emplace_back(step, std::move(*call));
    }
    return [calls](const Trial& trial) -> Judgement {
        const Run whole(trial);
        Judgement sum = nothing_compared("no row of this case has an answer to compare");
        for (const auto& [step, call] : calls)
            if (!sum.violated()) sum = merge(sum, compare_step(whole, step, call));
        return sum;
    };
}

}  // namespace

Plan steps_of_one(const Given& given) {
    constexpr std::int64_t steps_max = 6;
    const std::int64_t queries = given.problem().len_q;
    std::set<std::int64_t> tokens = {0, queries - 1};
    for (std::int64_t n = 0; n < queries && n < steps_max - 2; ++n)
        tokens.insert(
            queries <= steps_max ? n : given.random_below(stream_of("decode.prefill"), n, queries));
    std::vector<DecodeStep> steps;
    for (const std::int64_t token : tokens) steps.push_back({token, 1});
    return compare_steps(given, steps);
}

Plan steps_of_chunks(const Given& given) {
    constexpr std::int64_t cuts_max = 3;
    const std::int64_t queries = given.problem().len_q;
    std::set<std::int64_t> cuts = {0, queries};
    for (std::int64_t n = 0; n < cuts_max; ++n)
        cuts.insert(given.random_below(stream_of("decode.chunked"), n, queries));
    if (cuts.size() == 2 && queries > 1) cuts.insert(1);
    std::vector<DecodeStep> steps;
    for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut)
        steps.push_back({*cut, *std::next(cut) - *cut});
    return compare_steps(given, steps);
}

namespace {

/// What a kernel answers that counts positions from 0 in every step: query i turns as at position
/// i, key j as at position j. A square problem without a cache has just these positions; its mask
/// is written out, and rows past the step's queries are zero.
PairedCase restarted(const Run& step) {
    const Problem& problem = step.problem();
    const Visibility visibility = step.visibility();
    Problem p = problem;
    p.len_q = p.len_kv;
    p.cache = {};
    p.mask = {};
    p.mask.tensor.kind = MaskKind::boolean;
    TensorSet inputs = step.inputs();
    Tensor q(inputs[Role::q].type(), *shape_of(p, Role::q));
    Tensor mask(ElementType::u8, *shape_of(p, Role::mask));
    for (const Row& row : all_rows(problem)) {
        for (std::int64_t c = 0; c < p.dim_qk; ++c)
            copy_element(q, q.flat(row.batch, row.head, row.query, c), inputs[Role::q],
                         inputs[Role::q].flat(row.batch, row.head, row.query, c));
        for (std::int64_t j = 0; j < p.len_kv; ++j)
            mask.put(row.batch, row.head, row.query, j, visibility.sees(row, j) ? 1 : 0);
    }
    // Slots that hold no key are hidden from every row of the paired case, but no reference needs
    // NaN there.
    inputs.put(Role::q, std::move(q));
    inputs.put(Role::mask, std::move(mask));
    return adopt(p, inputs);
}

}  // namespace

Judgement positions_continue(const Trial& trial) {
    const Run step(trial);
    const Problem& problem = step.problem();
    const PairedCase zero = restarted(step);
    const Visibility visibility = step.visibility();
    OtherAnswer answer;
    answer.expected = trial.expected(zero.problem, zero.inputs);
    answer.flat = [&](const Row& row, std::int64_t channel) {
        const std::int64_t head = row.batch * problem.heads_q + row.head;
        return (head * zero.problem.len_q + row.query) * value_dim(problem) + channel;
    };
    answer.sentence = [&](const Row& row) {
        return fmt::format(
            "{} is rotated at position {}, not at {}", name_of(problem, row), row.query,
            visibility.length_kv(row.batch) - visibility.length_q(row.batch) + row.query);
    };
    return not_the_other(step, answer);
}

namespace {

Judgement compare_paging(const Run& base, const Run& other, bool bits, const char* change) {
    Relation relation;
    relation.rows = defined_rows(base);
    relation.promise = same_bits_if(bits);
    relation.sentence = [&, change](const RowMatch& match) {
        return name_of(base.problem(), match.first) + " changes when " + change;
    };
    return compare_runs(base, other, relation);
}

}  // namespace

Judgement pages_do_not_matter(const Trial& trial) {
    const Run base(trial);
    const Problem& problem = base.problem();
    const std::int64_t pages = (*cache_shape_of(problem, Role::k))[0];
    const auto renamed = permutation(trial, stream_of("decode.paged"), pages);
    TensorSet inputs = base.inputs();
    Tensor& table = inputs[Role::block_table];
    for (std::int64_t i = 0; i < table.size(); ++i)
        if (table.get(i) >= 0)
            table.set(i, static_cast<double>(renamed[static_cast<std::size_t>(table.get(i))]));
    // Only addresses differ: a deterministic kernel repeats the same arithmetic.
    Judgement sum =
        compare_paging(base, Run(trial, problem, std::move(inputs)), trial.numerics().deterministic,
                       "the physical pages of its cache are renamed");
    if (sum.violated()) return sum;
    for (const std::int64_t page :
         {std::int64_t{0}, problem.cache.page_size == 8 ? std::int64_t{16} : std::int64_t{8}}) {
        Problem other = problem;
        other.cache.page_size = page;
        if (!trial.supports(other)) continue;
        PairedCase paired = adopt(other, base.inputs());
        Judgement verdict =
            compare_paging(base, Run(trial, paired.problem, std::move(paired.inputs)), false,
                           page == 0 ? "its cache is contiguous instead of paged"
                                     : "its cache has pages of another size");
        if (verdict.violated()) return verdict;
        sum.elements += verdict.elements;
        sum.worst_ratio = std::max(sum.worst_ratio, verdict.worst_ratio);
    }
    return sum;
}

Judgement sequences_stand_alone(const Trial& trial) {
    constexpr std::int64_t few = 3;
    const Run base(trial);
    const Problem& problem = base.problem();
    const Visibility visibility = base.visibility();
    std::int64_t elements = 0;
    double worst = 0;
    for (std::int64_t b = 0; b < std::min(problem.batch, few); ++b) {
        if (visibility.length_q(b) == 0 || visibility.length_kv(b) == 0) continue;
        PairedCase paired = sequence_alone(problem, base.inputs(), b);
        const auto alone = run_if_supported(trial, paired.problem, std::move(paired.inputs));
        if (!alone) continue;
        Relation relation;
        for (RowMatch match : defined_rows(base)) {
            if (match.first.batch != b || !visibility.is_query(match.first)) continue;
            match.second.batch = 0;
            relation.rows.push_back(match);
        }
        relation.sentence = [&](const RowMatch& match) {
            return name_of(problem, match.first) +
                   " gets another answer when its sequence is run alone";
        };
        Judgement verdict = compare_runs(base, *alone, relation);
        if (verdict.violated()) return verdict;
        elements += verdict.elements;
        worst = std::max(worst, verdict.worst_ratio);
    }
    return nothing_compared(elements, worst, "no sequence of this case can be run alone");
}

}  // namespace attest::law
