// The ratio of two weights: nothing but the exponential of the difference of two scores, asked
// where hardly anything else is left of the arithmetic.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/statistics.hpp"
#include "properties/law/tally.hpp"
#include "reference/bound/kernel_model.hpp"

namespace attest::law {

namespace {

// One channel, two keys, values that show the two weights, and one key of zeros: its score is 0,
// exactly, and so is the largest. The other's is -D. What a kernel returns is W_0/l and W_1/l, so
// the quotient of the two is W_1/W_0 but for what happens to each by itself:
//   exp(-D): E, the declared error; E once more where the two keys are parts of their own, merged
//     by exps of differences of log-sum-exps, and twice more where E is also of exp(0);
//   the score: one product passes five roundings (reference/bound/README.md, "Error of a score"),
//     the maximum's difference and log2(e) three: 8 ua D;
//   merged parts: their log-sum-exps are 0 and -D, known to 4 ua (D + 1) and 4 ua, and the
//     difference from a common one is rounded: 2 ua (D + 1);
//   the quotient by l, or the product with its reciprocal, and a conversion, of each: 5 ua; and the
//     roundings of P and of the output where they are coarser.
// No sum has two terms that are not zero, but l, and it is common.
//
// Half of the cases have more keys, which score -1000 and weigh nothing: exp(-1000) is 0, and so is
// all that it rescales. Nothing of the above changes but that parts may be merged by levels, each
// of which rounds the log-sum-exps anew; where exp(0) need not be 1, a running sum is off by E for
// each tile between the two keys, and there are no more than two.
//
// A weight stays a normal number of what it is rounded to: exp(-D) and half of it, l being at most
// 2, and twice that again for the error of each.
constexpr std::int64_t queries_most = 64;
constexpr double exp_range = 80;   // exp(-80) is a normal number of f32
constexpr double no_score = 1000;  // exp(-1000) is 0 in f64 too
constexpr std::int64_t many_keys[] = {17, 65, 129, 257, 513, 1025, 2049, 4097};

double log_error(const bound::KernelModel& m, double distance, std::int64_t keys) {
    const double exps = (m.exp_error <= 4 * m.ua ? 2 : 4) * std::log1p(m.exp_error);
    const auto levels = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(keys - 1)));
    const double merges = levels * (4 * (distance + 1) + 2 * (distance + 1));
    const double roundings = (8 * distance + merges + 4 + 5) * m.ua;
    return evaluation * (exps + roundings + 2 * m.up + 2 * m.uo) + 8 * m.oma;
}

double range_of(const Numerics& numerics) {
    double range = exp_range;
    for (const NumberFormat rounded : {numerics.weights, numerics.output}) {
        const FormatTraits format = traits(resolved(rounded, Precision::f32));
        range = std::min(range, -(format.exponent_min + 2) * std::log(2.0));
    }
    return range;
}

/// How many keys there are beside so few queries that a case costs the same.
std::int64_t keys_wanted(const Given& given) {
    const bool one_is_one = given.numerics().exp_ulp <= 2;
    const std::uint64_t stream = stream_of("probability.ratio") + 2;
    const std::int64_t pick = given.random_below(stream, 0, 2 * std::ssize(many_keys));
    return one_is_one && pick < std::ssize(many_keys) ? many_keys[pick] : 2;
}

/// What stays of the case, for a kernel that takes nothing without it: lengths and a cache; causal
/// order, of one query that sees all.
struct WhatStays {
    bool cache = false, causal = false;
};

/// So many queries that see so many keys each.
Problem queries_of(const Problem& drawn, std::int64_t queries, std::int64_t keys, WhatStays kept) {
    Problem problem = plain(drawn, kept.causal ? 1 : queries, keys);
    problem.mask.causal = kept.causal;
    if (kept.cache && !drawn.mask.lens_kv.empty()) {
        problem.len_kv = keys + 1;  // where every length is the axis's own there are none
        problem.mask.lens_kv.assign(static_cast<std::size_t>(problem.batch), keys);
    }
    if (!kept.cache || !drawn.cache.present) return problem;
    problem.len_q = std::min(problem.len_q, keys);
    problem.cache = {.present = true, .len = problem.len_kv - problem.len_q};
    return problem;
}

/// How many of them a row sees.
std::int64_t keys_seen(const Problem& problem) {
    return problem.mask.lens_kv.empty() ? problem.len_kv : problem.mask.lens_kv.front();
}

/// Two output channels show two weights; the other sizes are the smallest that the kernel takes.
std::optional<Problem> two_keys(const Given& given, std::int64_t keys, WhatStays kept) {
    const Problem& drawn = given.problem();
    const std::int64_t queries = keys > 512 ? queries_most / 8 : queries_most;
    const std::pair<std::int64_t, std::int64_t> dims[] = {
        {1, 2}, {2, 2}, {drawn.dim_qk, value_dim(drawn)}};
    const std::optional<double> scales[] = {0.5, std::nullopt};
    for (const auto& [dim_qk, dim_v] : dims)
        for (const std::optional<double>& scale : scales)
            for (const bool own_length : {false, true}) {
                if (keys > 2 && dim_qk < 2) continue;  // one channel keeps the others far away
                const std::int64_t wanted = own_length ? drawn.len_q : queries;
                Problem problem = queries_of(drawn, wanted, keys, kept);
                problem.dim_qk = dim_qk;
                problem.dim_v = dim_v;
                problem.scale = scale;
                problem = canonical(problem);
                if (value_dim(problem) >= 2 && given.supports(problem)) return problem;
            }
    return std::nullopt;
}

/// The key of zeros, and the one compared with it: the maximum comes first or rises.
struct ComparedKeys {
    std::int64_t zero, other;
};
ComparedKeys keys_of(const Given& given, const Problem& problem, std::int64_t b, std::int64_t g) {
    const auto head = static_cast<std::uint64_t>(b * problem.heads_kv + g);
    const std::uint64_t stream = stream_of("probability.ratio");
    const std::int64_t keys = keys_seen(problem);
    const std::int64_t zero = given.random_below(stream, head, keys);
    const std::int64_t step = 1 + given.random_below(stream + 3, head, keys - 1);
    return {zero, (zero + step) % keys};
}

/// A third of the scores lie within 1, where the bound is least, the others over the range of exp.
TensorSet two_key_inputs(const Given& given, const Problem& problem) {
    const std::uint64_t stream = stream_of("probability.ratio") + 1;
    const double scale = effective_scale(problem), range = range_of(given.numerics());
    TensorSet inputs = blank_inputs(problem);
    std::uint64_t index = 0;
    inputs.put(Role::q, tensor_of(problem, Role::q, [&](auto, auto, auto i, auto c) {
                   const double any = std::fmod(std::abs(given.random_normal(stream, index++)), 1);
                   if (c > 0) return c == 1 ? 1.0 : 0.0;
                   return (i % 3 == 0 ? any : any * range) / scale;
               }));
    inputs.put(Role::k, tensor_of(problem, Role::k, [&](auto b, auto g, auto j, auto c) {
                   const ComparedKeys keys = keys_of(given, problem, b, g);
                   if (c == 0) return j == keys.other ? -1.0 : 0.0;
                   const bool far = c == 1 && j != keys.zero && j != keys.other;
                   return far ? -no_score / scale : 0.0;
               }));
    inputs.put(Role::v, tensor_of(problem, Role::v, [&](auto b, auto g, auto j, auto c) {
                   const ComparedKeys keys = keys_of(given, problem, b, g);
                   return j == (c % 2 == 0 ? keys.zero : keys.other) ? 1.0 : 0.0;
               }));
    return inputs;
}

Judgement judge_ratio(const Trial& trial, const Problem& problem) {
    const Run call(trial, problem, two_key_inputs(trial, problem));
    const bound::KernelModel model = bound::resolve(problem, trial.numerics());
    const double scale = effective_scale(problem);
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        const double distance =
            scale * call.inputs()[Role::q].at(row.batch, row.head, row.query, 0);
        const auto shown = [&](std::int64_t channel) {
            return log(preimage(output(call, row, channel), problem.format_o));
        };
        const Interval ratio = shown(1) - shown(0);
        tally.same(Interval::around(-distance, log_error(model, distance, keys_seen(problem))),
                   ratio, output_at(row, 1), [&] {
                       return fmt::format(
                           "the scores of two keys are {:.4g} apart for {}, their weights by "
                           "exp({:.9g})",
                           distance, name_of(problem, row), ratio.mid());
                   });
    }
    return tally.judgement("no weight is claimed");
}

Plan check_ratio(const Given& given) {
    if (has_coarse_steps(given.numerics())) return not_applicable(coarse_steps);
    std::optional<Problem> problem;
    for (const WhatStays kept :
         {WhatStays{}, WhatStays{true, false}, WhatStays{false, true}, WhatStays{true, true}})
        for (const std::int64_t keys : {keys_wanted(given), std::int64_t{2}})
            if (!problem) problem = two_keys(given, keys, kept);
    if (!problem) return not_applicable("the kernel takes no two keys alone");
    return [problem = *problem](const Trial& trial) { return judge_ratio(trial, problem); };
}

Property ratio() {
    return {
        .id = "probability.ratio",
        .statement = "Two weights stand in the ratio of the exponentials of their scores.",
        .statement_short = "two weights differ by exp of their scores alone",
        .why =
            "P_0 / P_1 = exp(S_0 - S_1). Over one channel and two keys, one of them zero, hardly a "
            "rounding is left, and what both weights share cancels in their quotient: it is off by "
            "little more than the declared error of exp, at every score from 0 to -80, or as far "
            "as a format that rounds the weights has normal numbers. Up to 4095 other keys beside "
            "them score -1000 and weigh nothing.",
        .source = "Vaswani et al. 2017, eq. 1; the manifest\'s numerics.exp_ulp",
        .compares = Compares::bound,
        .cases = {.allow = FeatureSet(Feature::gqa, Feature::layout, Feature::lse, Feature::dim_v,
                                      Feature::scale, Feature::splits, Feature::cache,
                                      Feature::lens_kv, Feature::causal),
                  .formats = {Precision::f32},
                  .kinds = {ValueKind::normal},
                  .cost = 16,
                  .len_max = 64,
                  .limited_because = "its two keys are its own: of the case it takes the heads"},
        .check = check_ratio,
        .turned_red_by = {planted::scale_times(1 + 0x1p-14)},
        .knows_more = true,
    };
}

}  // namespace

std::vector<Property> probability_ratio() {
    return {ratio()};
}

}  // namespace attest::law
