// The sink taken wrongly: left out, of another head, of another base, once too often.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "properties/diagnosis/rows_of.hpp"

namespace attest::diagnosis {

namespace {

Deviation sink_left_out(std::string id, std::string says) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [](const Specification& s) -> std::optional<Specification> {
                if (!s.problem.sink) return std::nullopt;
                return without_sink(s);
            }};
}

Deviation sink_deviation(std::string id, std::string says,
                         std::function<double(const Specification&, double)> value_of) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [value_of = std::move(value_of)](
                             const Specification& s) -> std::optional<Specification> {
                if (!s.problem.sink) return std::nullopt;
                Specification out = s;
                const Tensor& sinks = s.inputs[Role::sinks];
                out.inputs.put(Role::sinks, remake(ElementType::f64, sinks.shape(),
                                                   [&](std::int64_t a, std::int64_t b,
                                                       std::int64_t c, std::int64_t d) {
                                                       return value_of(s, sinks.at(a, b, c, d));
                                                   }));
                return out;
            }};
}

std::vector<Deviation> shares_of_the_sink() {
    std::vector<Deviation> all;
    all.push_back(sink_deviation(
        "sink_each_split", "the sink once for each split", [](const Specification& s, double v) {
            const std::int64_t n = std::clamp<std::int64_t>(
                s.problem.splits, 1, std::max<std::int64_t>(1, s.problem.len_kv));
            return v + std::log(static_cast<double>(n));
        }));
    for (const std::int64_t tile : {8, 16, 32, 64, 128})
        all.push_back(sink_deviation(
            "sink_each_tile_" + std::to_string(tile),
            "the sink once for each tile of " + std::to_string(tile) + " keys",
            [tile](const Specification& s, double v) {
                const auto tiles = static_cast<double>((s.problem.len_kv + tile - 1) / tile);
                return tiles > 0 ? v + std::log(tiles) : v;
            }));
    all.push_back(
        weight_deviation("sink_as_largest", "a sink as large as the largest score of the row",
                         [](const Specification& s, const oracle::RowDetail& row,
                            KeyExtent) -> std::optional<WeightChange> {
                             if (!s.problem.sink) return WeightChange{};
                             double keys = 0;
                             for (const double share : row.shares) keys += share;
                             return WeightChange{{}, std::log(keys + std::exp(row.max - row.lse))};
                         }));
    // Its share of the sum is e^(sink - LSE). 2^(sink - m) of a share that is not told from 0 is
    // not told either.
    all.push_back(weight_deviation(
        "sink_weight_base_two", "a sink weighed 2^(sink - m) where keys are weighed exp(S - m)",
        [](const Specification& s, const oracle::RowDetail& row,
           KeyExtent) -> std::optional<WeightChange> {
            if (!s.problem.sink) return WeightChange{};
            double keys = 0;
            for (const double share : row.shares) keys += share;
            const double share = 1 - keys;
            if (!(share > 0x1p-20)) return std::nullopt;
            const double sink = row.lse + std::log(share), most = std::max(row.max, sink);
            return WeightChange{{},
                                std::log(keys + std::exp2(sink - most) * std::exp(most - row.lse))};
        }));
    all.push_back(weight_deviation(
        "sink_without_maximum",
        "a sink weighed exp(sink) where keys are weighed exp(S - m): as if it were larger by m",
        [](const Specification& s, const oracle::RowDetail& row,
           KeyExtent) -> std::optional<WeightChange> {
            if (!s.problem.sink) return WeightChange{};
            double keys = 0;
            for (const double share : row.shares) keys += share;
            if (!(keys > 0) || !(1 - keys > 0x1p-20)) return std::nullopt;
            const double most = *std::ranges::max_element(row.scores);  // of keys alone
            return WeightChange{{}, std::log(keys + std::exp(most) * (1 - keys))};
        }));
    all.push_back(sink_deviation("sink_twice", "the sink counted twice",
                                 [](const Specification&, double v) { return v + std::log(2.0); }));
    all.push_back(sink_deviation("sink_zero", "a sink of 0 whatever its value",
                                 [](const Specification&, double) { return 0.0; }));
    return all;
}

/// The largest score of the keys that a query sees, and their share of its weights.
struct SeenKeys {
    double most = -infinite, share = 0;
};
SeenKeys seen_keys(const oracle::RowDetail& row) {
    SeenKeys seen;
    for (std::size_t j = 0; j < row.scores.size(); ++j) {
        if (row.shares[j] > 0) seen.most = std::max(seen.most, row.scores[j]);
        seen.share += row.shares[j];
    }
    return seen;
}

/// A sink that is added behind all keys and lies above their scores: what was summed up of them is
/// left as it was.
Deviation sink_not_rescaled(const std::string& what, bool output, bool sum) {
    return weight_deviation("sink_not_rescaled" + (output && sum ? "" : "_" + what),
                            (output && sum ? "sums" : "a sum of " + what) +
                                std::string(" not rescaled where the sink is above all scores"),
                            [output, sum](const Specification& s, const oracle::RowDetail& row,
                                          KeyExtent) -> std::optional<WeightChange> {
                                if (!s.problem.sink) return WeightChange{};
                                const auto [most, of_keys] = seen_keys(row);
                                const double rise = row.sink - most;
                                if (!std::isfinite(most) || !(rise > 0)) return WeightChange{};
                                WeightChange change{{}, 0.0};
                                if (output) change.numerator.assign(row.scores.size(), rise);
                                if (sum)
                                    change.denominator = std::log1p(of_keys * std::expm1(rise));
                                return change;
                            });
}

/// A query that sees no key is taken for one without an answer, whose log-sum-exp is then the
/// sink's no more. The output is 0 either way.
Deviation sink_without_keys(const std::string& id, const std::string& says, double value) {
    return {.id = "sink_without_keys_" + id,
            .says = "a log-sum-exp of " + says + ", not of the sink, where a query sees no key",
            .formula = [value](const Specification& s,
                               const bound::Expected& truth) -> std::optional<bound::Expected> {
                if (!s.problem.sink || truth.lse.empty()) return std::nullopt;
                const auto rows = rows_of(s);
                bound::Expected out;
                out.lse = truth.lse;
                bool any = false;
                for (std::size_t n = 0; n < out.lse.size(); ++n) {
                    const auto seen = [](double score) { return score != -infinite; };
                    if (!std::isfinite(out.lse[n].value) ||
                        std::ranges::any_of((*rows)[n].scores, seen))
                        continue;
                    out.lse[n] = {value, 0, 0};
                    any = true;
                }
                return any ? std::optional(std::move(out)) : std::nullopt;
            }};
}

}  // namespace

std::vector<Deviation> sink_deviations() {
    std::vector<Deviation> all;
    all.push_back(sink_left_out("sink_omitted", "softmax without the sink"));
    all.push_back(sink_deviation(
        "sink_scaled", "a sink multiplied by the scale",
        [](const Specification& s, double v) { return v * effective_scale(s.problem); }));
    all.push_back(
        sink_deviation("sink_of_base_two", "a sink taken for one in base 2: ln(2) of it",
                       [](const Specification&, double v) { return v * std::numbers::ln2; }));
    all.push_back(
        sink_deviation("sink_into_base_two", "a sink multiplied by log2(e)",
                       [](const Specification&, double v) { return v * std::numbers::log2e; }));
    all.push_back(sink_deviation("sink_negated", "a sink of the wrong sign",
                                 [](const Specification&, double v) { return -v; }));
    all.push_back(sink_deviation("sink_capped", "a sink under the soft cap",
                                 [](const Specification& s, double v) {
                                     const double cap = s.problem.softcap;
                                     return cap > 0 ? cap * std::tanh(v / cap) : v;
                                 }));
    // Taken by the keys' maximum, as exp of a score that is never above 0.
    all.push_back(weight_deviation(
        "sink_at_most_one", "a sink's weight of no more than that of the largest key",
        [](const Specification& s, const oracle::RowDetail& row,
           KeyExtent) -> std::optional<WeightChange> {
            if (!s.problem.sink) return WeightChange{};
            const auto [most, of_keys] = seen_keys(row);
            const double largest = std::exp(most - row.lse), own = 1 - of_keys;
            if (!std::isfinite(most) || own <= largest) return WeightChange{};
            return WeightChange{{}, std::log(of_keys + largest)};
        }));
    all.push_back({.id = "sink_next_head",
                   .says = "the sink of the next head",
                   .respecify = [](const Specification& s) -> std::optional<Specification> {
                       if (!s.problem.sink || s.problem.heads_q == 1) return std::nullopt;
                       const Tensor& sinks = s.inputs[Role::sinks];
                       return with_numbers_of_heads(s, Role::sinks, [&](std::int64_t h) {
                           return sinks.get((h + 1) % sinks.size());
                       });
                   }});
    all.push_back({.id = "sink_of_key_head",
                   .says = "the sink of the head with the key head's number",
                   .respecify = [](const Specification& s) -> std::optional<Specification> {
                       if (!s.problem.sink || group_size(s.problem) == 1) return std::nullopt;
                       return with_numbers_of_heads(s, Role::sinks, [&](std::int64_t h) {
                           return s.inputs[Role::sinks].get(h / group_size(s.problem));
                       });
                   }});
    for (Deviation& d : shares_of_the_sink()) all.push_back(std::move(d));
    return all;
}

// Whoever normalises the output by a sum of its own: the log-sum-exp is right.
std::vector<Deviation> sinks_in_output() {
    const auto alone = [](Deviation d) {
        return formula_deviation(d.id + "_in_output", d.says + ", in the output alone",
                                 [d](const Specification& s, const bound::Expected& truth) {
                                     std::optional<bound::Expected> e = predict(d, s, truth);
                                     if (e) e->lse = truth.lse;
                                     return e;
                                 });
    };
    std::vector<Deviation> all{sink_not_rescaled("values", true, false),
                               sink_not_rescaled("weights", false, true),
                               sink_not_rescaled("", true, true)};
    const auto shared = [](const Specification& s, double v) {
        return v - std::log(static_cast<double>(group_size(s.problem)));
    };
    const Deviation of_group =
        sink_deviation("sink_shared_by_group", "a sink divided among the heads of a group", shared);
    all.push_back(of_group);
    all.push_back(alone(of_group));
    all.push_back(alone(sink_left_out("sink_ignored", "no sink at all")));
    all.push_back(
        alone(sink_deviation("sink_twice", "the sink counted twice",
                             [](const Specification&, double v) { return v + std::log(2.0); })));
    all.push_back(sink_without_keys("minus_infinity", "-inf", -infinite));
    all.push_back(sink_without_keys("infinity", "+inf", infinite));
    all.push_back(sink_without_keys("zero", "0", 0));
    return all;
}

// The sink's share is 1 less the keys'. A split of no key that the query sees has no sum to add to.
std::vector<Deviation> sinks_of_splits() {
    std::vector<Deviation> all;
    all.push_back(sink_deviation("sink_each_split_asked",
                                 "the sink once for each split that is asked for",
                                 [](const Specification& s, double v) {
                                     const auto n = std::max<std::int64_t>(1, s.problem.splits);
                                     return v + std::log(static_cast<double>(n));
                                 }));
    for (const std::int64_t tile : {1, 16, 32, 64, 128})
        all.push_back(weight_deviation(
            "sink_each_split_of_tiles_" + std::to_string(tile),
            tile == 1 ? "the sink once for each split in which the query sees a key"
                      : "the sink once for each split, of whole tiles of " + std::to_string(tile) +
                            ", in which the query sees a key",
            [tile](const Specification& s, const oracle::RowDetail& row,
                   KeyExtent span) -> std::optional<WeightChange> {
                if (!s.problem.sink || s.problem.splits < 2) return WeightChange{};
                const std::int64_t tiles = (span.end - span.begin + tile - 1) / tile;
                const std::int64_t keys =
                    tile * ((tiles + s.problem.splits - 1) / s.problem.splits);
                double splits = 0, share = 1;
                for (std::int64_t from = span.begin; from < span.end; from += keys) {
                    double seen = 0;
                    for (std::int64_t j = from; j < std::min(from + keys, span.end); ++j)
                        seen += row.shares[static_cast<std::size_t>(j)];
                    share -= seen;
                    splits += seen > 0;
                }
                return WeightChange{{}, std::log1p((std::max(splits, 1.0) - 1) * share)};
            }));
    for (Deviation& d : all) d.form_of = "sink_each_split";
    return all;
}

}  // namespace attest::diagnosis
