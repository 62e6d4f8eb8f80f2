#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/full_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "properties/diagnosis/diagonal.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "properties/diagnosis/rows_of.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

using ExtentOf = std::int64_t (*)(const Problem&);

// What is dropped from N on shows where there are more than N: the shortest call that is wrong has
// N + 1. Calls of that length alone would not tell it from a last key that is dropped.
std::int64_t dropped_from(const AllEvidence& evidence, ExtentOf extent) {
    const auto of = [extent](const Evidence& e) { return extent(e.asked.problem); };
    return of(*std::ranges::min_element(evidence.wrong, {}, of)) - 1;
}

Deviation keys_dropped(std::int64_t from) {
    return {.id = "keys_dropped",
            .says = fmt::format("attention without the keys from {} on", from),
            .respecify = [from](const Specification& s) -> std::optional<Specification> {
                if (s.problem.len_kv <= from) return std::nullopt;
                Rules rules = rules_of(s);
                rules.also_hidden = [from](const MaskPlace& p) { return p.key >= from; };
                return with_rules(s, rules);
            },
            .tells = law::Tells::visibility};
}

Deviation channels_dropped(std::int64_t from) {
    return {.id = "channels_dropped",
            .says = fmt::format("scores without the channels from {} on", from),
            .respecify = [from](const Specification& s) -> std::optional<Specification> {
                if (s.problem.dim_qk <= from) return std::nullopt;
                return with_channels(s, from);
            }};
}

// What is never stored keeps what the output held before: nothing is claimed of it.
Deviation outputs_dropped(std::int64_t from) {
    return {.id = "outputs_dropped",
            .says = fmt::format("zeros in the output's channels from {} on", from),
            .formula = [from](const Specification& s,
                              const bound::Expected& truth) -> std::optional<bound::Expected> {
                const auto dim = static_cast<std::size_t>(value_dim(s.problem));
                if (dim <= static_cast<std::size_t>(from)) return std::nullopt;
                bound::Expected out = truth;
                for (std::size_t n = 0; n < out.output.size(); ++n)
                    if (n % dim >= static_cast<std::size_t>(from)) out.output[n] = {};
                return out;
            }};
}

// Sum of squared distances in units of the largest output, of what a scale this many times the one
// asked for predicts; NaN counts as far off.
double distance(const Evidence& e, double factor) {
    const Specification other = with_scale(e.asked, effective_scale(e.asked.problem) * factor);
    const bound::Expected predicted =
        oracle::attend(other.problem, other.dialect, other.numerics, other.inputs,
                       oracle::Arithmetic::plain_double);
    double sum = 0;
    for (std::size_t n = 0; n < predicted.output.size(); ++n) {
        const double d =
            e.observed[Role::o].get(static_cast<std::int64_t>(n)) - predicted.output[n].value;
        sum += std::isfinite(d) ? d * d : 1e300;
    }
    return sum;
}

// The temperature that comes nearest: the best of a grid of eighths of an octave between 1/64 and
// 64, then a golden section between its neighbours. 48 steps of 0.618 leave 1e-10 of an octave.
double nearest_factor(const Evidence& e) {
    const auto at = [&](double octaves) { return distance(e, std::exp2(octaves)); };
    double best = 0, least = at(0);
    for (int n = -48; n <= 48; ++n)
        if (const double d = at(n / 8.0); d < least) {
            least = d;
            best = n / 8.0;
        }
    constexpr double golden = 0.6180339887498949;  // (sqrt(5) - 1) / 2
    double low = best - 0.125, high = best + 0.125;
    double a = high - golden * (high - low), b = low + golden * (high - low);
    double at_a = at(a), at_b = at(b);
    for (int step = 0; step < 48; ++step) {
        if (at_a < at_b) {
            high = std::exchange(b, a);
            at_b = at_a;
            at_a = at(a = high - golden * (high - low));
        } else {
            low = std::exchange(a, b);
            at_a = at_b;
            at_b = at(b = low + golden * (high - low));
        }
    }
    return std::exp2((low + high) / 2);
}

Deviation other_temperature(double factor) {
    return {.id = "temperature",
            .says = fmt::format("scores {:.6g} times as large as asked for", factor),
            .respecify = [factor](const Specification& s) -> std::optional<Specification> {
                return with_scale(s, effective_scale(s.problem) * factor);
            }};
}

/// What of a row an epsilon is added for: once, or for each key of its sequence.
double epsilons_of(const Specification& s, std::int64_t row, bool each_key) {
    const std::int64_t rows = s.problem.len_q;
    const KeyExtent span = span_of(s, row / rows / s.problem.heads_q, row % rows);
    return each_key ? static_cast<double>(span.end - span.begin) : 1.0;
}

// O l / (l + e) and, where the kernel's log-sum-exp is of the same sum, L + log(1 + e / l). The
// bounds of O and L cover what the kernel's own l differs by: e / (l + e) is below 1.
Deviation with_epsilon(double epsilon, bool in_lse, bool each_key) {
    return {.id = each_key ? "denominator_epsilon_each_key" : "denominator_epsilon",
            .says = fmt::format("weights divided by their sum and an epsilon of {:.3g}{}", epsilon,
                                each_key ? " for each key" : ""),
            .formula = [epsilon, in_lse, each_key](
                           const Specification& s,
                           const bound::Expected& truth) -> std::optional<bound::Expected> {
                bound::Expected out = truth;
                const auto dim = static_cast<std::size_t>(value_dim(s.problem));
                const auto rows = rows_of(s);
                for (std::size_t row = 0; row < truth.row_empty.size(); ++row) {
                    if (truth.row_empty[row] != 0) continue;
                    const auto flat = static_cast<std::int64_t>(row);
                    const double sum = (*rows)[row].sum;
                    const double added = epsilon * epsilons_of(s, flat, each_key);
                    for (std::size_t n = row * dim; n < (row + 1) * dim; ++n)
                        out.output[n].value *= sum / (sum + added);
                    if (in_lse && row < out.lse.size())
                        out.lse[row].value += std::log1p(added / sum);
                }
                return out;
            }};
}

// From the output that stands out most of its bound: O / O' = 1 + e / l. A power of ten where that
// is what it is but for rounding.
double nearest_epsilon(const Evidence& e, bool each_key) {
    double most = 0, epsilon = 0;
    const auto rows = rows_of(e.asked);
    for (std::size_t n = 0; n < e.truth.output.size(); ++n) {
        const auto flat = static_cast<std::int64_t>(n);
        const bound::ExpectedElement& o = e.truth.output[n];
        const double seen = e.observed[Role::o].get(flat);
        const double ratio = bound::error_ratio(seen, o, e.asked.problem.format_o);
        if (!(ratio > most) || !std::isfinite(ratio)) continue;
        most = ratio;
        const std::int64_t row = flat / value_dim(e.asked.problem);
        epsilon = (*rows)[static_cast<std::size_t>(row)].sum * (o.value / seen - 1) /
                  epsilons_of(e.asked, row, each_key);
    }
    if (!(epsilon > 0) || !std::isfinite(epsilon)) return 0;
    const double round = std::pow(10.0, std::round(std::log10(epsilon)));
    // It is known to one part in `most`, by which it stands out of the bound.
    return std::abs(epsilon / round - 1) * most < 1 ? round : epsilon;
}

// Tiles of sizes that are not listed, rounder ones first.
std::vector<Deviation> other_tails(const AllEvidence& evidence) {
    std::vector<Deviation> list;
    const Evidence& first = evidence.wrong.front();
    for (const std::int64_t step : {16, 8, 4, 2, 1})
        for (std::int64_t tile = step; tile < first.asked.problem.len_kv && tile <= 512;
             tile += step) {
            const bool listed = tile >= 8 && (tile & (tile - 1)) == 0;
            const bool before = step < 16 && tile % (2 * step) == 0;
            if (listed || before || tile < 3) continue;
            Deviation d = tail_dropped(tile);
            if (agrees(d, first)) list.push_back(std::move(d));
        }
    return list;
}

// All that is known, tried on a call of so many keys, takes a minute.
constexpr std::int64_t keys_of_all_max = 8192;

bool splits_some(const AllEvidence& evidence) {
    return std::ranges::any_of(evidence.wrong,
                               [](const Evidence& e) { return e.asked.problem.splits > 1; });
}

std::vector<Deviation> all_lists(const AllEvidence& evidence) {
    std::vector<Deviation> list = diagonal_candidates(evidence.wrong);
    for (auto part : {starting_maxima(),
                      tile_candidates(),
                      other_tails(evidence),
                      tile_deviations(),
                      sinks_of_splits(),
                      lse_of_splits(),
                      late_rescales(),
                      cut_indices(),
                      skipped_tiles(evidence.wrong),
                      full_tiles(evidence.wrong),
                      window_origins(),
                      counted_without_keys(evidence.paged()),
                      length_scales(),
                      rotation_tables(),
                      other_heads(),
                      pages_beside(),
                      page_layouts(),
                      other_strides(),
                      last_sums_not_rescaled(),
                      not_rescaled_after_sink(),
                      hidden_at_scores_in_part(),
                      hidden_scores(evidence),
                      inputs_narrowed(),
                      exponents_narrowed(),
                      parameters_rounded(),
                      merges_rounded(),
                      split_outputs_rounded(splits_some(evidence)),
                      sums_of_values_rounded(),
                      weights_of_splits_rounded(),
                      weights_of_tiles_rounded(),
                      fitted_outputs(evidence),
                      lost_keys(),
                      early_limits(),
                      channel_orders(),
                      channel_factors(evidence),
                      sinks_in_output(),
                      lse_maximum_held(),
                      large_inputs_lost(),
                      queries_placed_elsewhere(),
                      numbers_of_other_heads(),
                      mixed_lengths(),
                      shared_masks(),
                      lse_in_other_rows(),
                      own_splits(evidence),
                      in_some_channels(evidence)})
        list.insert(list.end(), part.begin(), part.end());
    return list;
}

}  // namespace

// What fails with no fewer keys has to do with how many there are.
std::vector<Deviation> fitted_deviations(const AllEvidence& evidence) {
    const bool long_alone = std::ranges::all_of(
        evidence.wrong, [](const Evidence& e) { return e.asked.problem.len_kv > keys_of_all_max; });
    std::vector<Deviation> list = long_alone ? cut_indices() : all_lists(evidence);
    const auto from = [&](ExtentOf extent, Deviation (*dropped)(std::int64_t)) {
        const std::int64_t n = dropped_from(evidence, extent);
        const bool longer = std::ranges::any_of(
            evidence.wrong, [&](const Evidence& e) { return extent(e.asked.problem) > n + 1; });
        if (n > 0 && longer) list.push_back(dropped(n));
    };
    from([](const Problem& p) { return p.len_kv; }, keys_dropped);
    from([](const Problem& p) { return p.dim_qk; }, channels_dropped);
    from([](const Problem& p) { return value_dim(p); }, outputs_dropped);
    const auto wrong = [](const Evidence& e) { return e.output_wrong; };
    const auto fits = [](const Evidence& e) {
        return e.output_wrong && e.observed[Role::o].size() > 1 && e.asked.problem.len_kv > 1;
    };
    const auto e = std::ranges::find_if(evidence.wrong, fits);
    const bool several = e != evidence.wrong.end();
    const auto any = several ? e : std::ranges::find_if(evidence.wrong, wrong);
    if (any == evidence.wrong.end()) return list;
    for (const bool each_key : {false, true})
        if (const double epsilon = nearest_epsilon(*any, each_key); epsilon > 0)
            for (const bool in_lse : {true, false})
                list.push_back(with_epsilon(epsilon, in_lse, each_key));
    if (!several) return list;
    list.push_back(other_temperature(nearest_factor(*e)));
    return list;
}

}  // namespace attest::diagnosis
