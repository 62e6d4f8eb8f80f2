// Heads: query head h reads key/value head floor(h / g) and nothing of any other; queries and keys
// may come from different sequences and have values of another width.

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/hidden.hpp"
#include "properties/law/paired_cases.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

Plan check_grouped(const Given& given) {
    const PairedCase paired = with_heads_repeated(given.problem(), given.inputs());
    if (!given.supports(paired.problem))
        return not_applicable("the kernel takes no problem with a key/value head a query head");
    return [paired](const Trial& trial) -> Judgement {
        const Problem& problem = trial.problem();
        const Run grouped(trial), repeated(trial, paired.problem, paired.inputs);
        Relation relation;
        relation.rows = defined_rows(grouped);
        relation.sentence = [&](const RowMatch& match) {
            return fmt::format("{} does not read key/value head {}", name_of(problem, match.first),
                               match.first.head / group_size(problem));
        };
        return compare_runs(grouped, repeated, relation);
    };
}

/// Overwrites key/value head `head_kv` of one sequence: rows of other heads and sequences stay.
Judgement other_heads_unchanged(const Run& base, std::int64_t batch, std::int64_t head_kv,
                                Filling filling) {
    const Problem& problem = base.problem();
    const Trial& trial = base.trial();
    KeySet keys(problem);
    for (std::int64_t j = 0; j < problem.len_kv; ++j) keys.add(batch, head_kv, j);
    Relation relation;
    relation.promise = same_bits_if(trial.numerics().deterministic);
    for (const RowMatch& match : defined_rows(base))
        if (match.first.batch != batch || match.first.head / group_size(problem) != head_kv)
            relation.rows.push_back(match);
    relation.sentence = [&](const RowMatch& match) {
        return fmt::format("{} reads key/value head {}{}", name_of(problem, match.first), head_kv,
                           problem.batch > 1 ? fmt::format(" of sequence {}", batch) : "");
    };
    const Run changed(trial, problem, overwritten(trial, problem, base.inputs(), keys, filling));
    return compare_runs(base, changed, relation);
}

/// Overwrites query head `head` of one sequence: only its own rows may change.
Judgement other_queries_unchanged(const Run& base, std::int64_t batch, std::int64_t head) {
    const Problem& problem = base.problem();
    TensorSet inputs = base.inputs();
    Tensor& q = inputs[Role::q];
    for (std::int64_t i = 0; i < problem.len_q; ++i)
        for (std::int64_t c = 0; c < problem.dim_qk; ++c) {
            const std::int64_t flat = q.flat(batch, head, i, c);
            q.set(flat, filling_value(base.trial(), Filling::huge, Role::k, problem.format_q,
                                      static_cast<std::uint64_t>(flat)));
        }
    Relation relation;
    relation.promise = same_bits_if(base.trial().numerics().deterministic);
    for (const RowMatch& match : defined_rows(base))
        if (match.first.batch != batch || match.first.head != head) relation.rows.push_back(match);
    relation.sentence = [&](const RowMatch& match) {
        return fmt::format("{} reads query head {}{}", name_of(problem, match.first), head,
                           problem.batch > 1 ? fmt::format(" of sequence {}", batch) : "");
    };
    return compare_runs(base, Run(base.trial(), problem, std::move(inputs)), relation);
}

Judgement check_isolation(const Trial& trial) {
    constexpr std::uint64_t rounds = 2;
    const std::uint64_t stream = stream_of("heads.isolation");
    const Run base(trial);
    const Problem& problem = base.problem();
    std::int64_t elements = 0;
    double worst = 0;
    const auto keep = [&](const Judgement& verdict) {
        elements += verdict.elements;
        worst = std::max(worst, verdict.worst_ratio);
        return !verdict.violated();
    };
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const std::int64_t batch = trial.random_below(stream, round, problem.batch);
        const std::int64_t start = trial.random_below(stream + 1, 0, problem.heads_kv);
        const std::int64_t head_kv = (start + static_cast<std::int64_t>(round)) % problem.heads_kv;
        const Filling filling = round == 0 ? Filling::huge : Filling::fresh;
        Judgement keys = other_heads_unchanged(base, batch, head_kv, filling);
        if (!keep(keys)) return keys;
        const std::int64_t head = trial.random_below(stream + 2, round, problem.heads_q);
        Judgement queries = other_queries_unchanged(base, batch, head);
        if (!keep(queries)) return queries;
    }
    return nothing_compared(elements, worst, "no row of this case has an answer to compare");
}

/// Queries [begin, begin + count) with all keys, and the first `channels` channels of V.
PairedCase cropped(const Trial& trial, std::int64_t begin, std::int64_t count,
                   std::int64_t channels) {
    Problem p = trial.problem();
    const TensorSet& inputs = trial.inputs();
    p.len_q = count;
    p.dim_v = channels;
    for (std::int64_t& length : p.mask.lens_q)
        length = std::clamp<std::int64_t>(length - begin, 0, count);
    TensorSet part = inputs;
    part[Role::q] = gather(inputs[Role::q], 2, range(begin, count));
    part[Role::v] = gather(inputs[Role::v], 3, range(0, channels));
    if (inputs.has(Role::mask) && !p.mask.tensor.shared_queries)
        part[Role::mask] = gather(inputs[Role::mask], 2, range(begin, count));
    return adopt(p, part);
}

/// Channels of zeros behind those of Q and K, with the scale held: no score changes.
PairedCase widened(const Trial& trial, std::int64_t extra) {
    Problem p = trial.problem();
    p.scale = effective_scale(p);
    p.dim_v = value_dim(p);
    p.dim_qk += extra;
    TensorSet inputs = trial.inputs();
    for (const Role role : {Role::q, Role::k}) {
        const Tensor& narrow = trial.inputs()[role];
        inputs[role] = tensor_of(p, role, [&](auto b, auto h, auto t, std::int64_t c) {
            return c < narrow.shape()[3] ? narrow.at(b, h, t, c) : 0;
        });
    }
    return adopt(p, inputs);
}

Judgement check_cross(const Trial& trial) {
    const Run whole(trial);
    const Problem& problem = whole.problem();
    const std::uint64_t stream = stream_of("heads.cross");
    const std::int64_t begin = trial.random_below(stream, 0, problem.len_q);
    const std::int64_t count = 1 + trial.random_below(stream, 1, problem.len_q - begin);
    const std::int64_t channels = 1 + trial.random_below(stream, 2, value_dim(problem));
    const std::int64_t extra = 1 + trial.random_below(stream, 3, 8);
    std::int64_t elements = 0;
    double worst = 0;
    const auto compare = [&](PairedCase paired, std::int64_t first_query,
                             const char* change) -> std::optional<Judgement> {
        const auto part = run_if_supported(trial, paired.problem, std::move(paired.inputs));
        if (!part) return std::nullopt;
        Relation relation;
        for (RowMatch match : defined_rows(*part)) {
            match.second.query += first_query;
            relation.rows.push_back(match);
        }
        relation.sentence = [&, change](const RowMatch& match) {
            return name_of(problem, match.second) + " gets another answer " + change;
        };
        Judgement verdict = compare_runs(*part, whole, relation);
        if (verdict.violated()) return verdict;
        elements += verdict.elements;
        worst = std::max(worst, verdict.worst_ratio);
        return std::nullopt;
    };
    if (auto verdict = compare(cropped(trial, begin, count, value_dim(problem)), begin,
                               "without the queries around it"))
        return *verdict;
    if (auto verdict =
            compare(cropped(trial, 0, problem.len_q, channels), 0, "with fewer channels of V"))
        return *verdict;
    if (auto verdict = compare(widened(trial, extra), 0, "with channels of zeros added to Q and K"))
        return *verdict;
    return nothing_compared(elements, worst,
                            "the kernel takes no other number of queries or channels");
}

bool grouped_heads(const Problem& p) {
    return p.heads_q > p.heads_kv;
}
bool isolable(const Problem& p) {
    return p.heads_q >= 2 || p.batch >= 2;
}
bool shapes_differ(const Problem& p) {
    return p.len_q != p.len_kv || value_dim(p) != p.dim_qk || value_dim(p) > 1;
}

Property grouped() {
    return {
        .id = "heads.grouped",
        .statement =
            "Grouped heads are multi-head attention with each key/value head repeated for the "
            "query heads of its group.",
        .statement_short = "GQA/MQA = MHA with K, V repeated (floor(h/g))",
        .why =
            "Query head h reads key/value head floor(h / g), g = Hq / Hkv. Repeating head r at "
            "places r g .. r g + g - 1 gives head h the same keys and values in a problem without "
            "groups. Within bounds: grouped kernels may pack the rows of a group into one tile.",
        .source = "Ainslie et al. 2023, GQA; Shazeer 2019, multi-query attention",
        .compares = Compares::bound,
        .cases = {.allow = attention,
                  .require = FeatureSet(Feature::gqa),
                  .cost = 2,
                  .admits = grouped_heads},
        .check = check_grouped,
        .turned_red_by = {planted::heads_by_modulo()},
    };
}

Property isolation() {
    return {
        .id = "heads.isolation",
        .statement =
            "Changing one key/value head of one sequence changes only its own query heads; "
            "changing one query head changes only that head.",
        .statement_short = "one head changed: no bit of other heads changes",
        .why =
            "O of (b, h) is a function of q of (b, h) and of k, v of (b, floor(h/g)). The runs "
            "differ in other heads' numbers alone: a deterministic kernel repeats its operations "
            "on the same operands; another one is held to the bounds.",
        .source = "Vaswani et al. 2017, section 3.2.2",
        .compares = Compares::bits,
        .cases = {.allow = attention, .admits = isolable},
        .check = always<check_isolation>,
        .turned_red_by = {planted::values_of_next_sequence()},
    };
}

void scale_by_the_value_dimension(Question& q) {
    q.problem.scale = 1 / std::sqrt(static_cast<double>(value_dim(q.problem)));
}

Property cross() {
    return {
        .id = "heads.cross",
        .statement =
            "Queries, keys and the channels of Q, K and V each have an extent of their own: "
            "queries and value channels can be left out, zero channels added to Q and K.",
        .statement_short = "Tq, Tk, D and Dv are independent of each other",
        .why =
            "O_ic is a function of q_i, K and column c of V: other queries and columns can go. "
            "Channels of zeros add exact zeros to q.k under the same scale. Tiles and sums may be "
            "cut elsewhere, so the runs agree within the sum of their bounds.",
        .source = "Vaswani et al. 2017, section 3.2.3 (encoder-decoder attention)",
        .compares = Compares::bound,
        .cases = {.allow = FeatureSet(Feature::gqa, Feature::dim_v, Feature::scale,
                                      Feature::softcap, Feature::sink, Feature::lens_kv,
                                      Feature::mask_bool, Feature::mask_additive, Feature::lse,
                                      Feature::layout, Feature::mixed_formats),
                  .cost = 2,
                  .admits = shapes_differ},
        .check = always<check_cross>,
        .turned_red_by = {{.id = "scale_by_the_value_dimension",
                           .asks = scale_by_the_value_dimension}},
    };
}

}  // namespace

std::vector<Property> heads() {
    return {grouped(), isolation(), cross()};
}

}  // namespace attest::law
