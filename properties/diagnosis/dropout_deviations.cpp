// Deviations of backward under dropout: its mask or its factor missing in dP or in dV, in dS where
// it has no place, another factor, another mask.

#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "properties/diagnosis/backward_evidence.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "properties/law/compare.hpp"

namespace attest::diagnosis {

namespace {

double factor_of(const ModelPair& pair) {
    return 1 / (1 - pair.row.call.problem().dropout.p);
}
double kept_alone(const ModelPair& pair) {
    return pair.facts.kept == 0 ? 0 : 1;
}
double kept_twice(const ModelPair& pair) {
    return pair.facts.kept * pair.facts.kept;
}
double one(const ModelPair&) {
    return 1;
}

using Kept = double (*)(const ModelPair&);

/// No factor: as forward has it.
BackwardDeviation kept(std::string id, std::string says, Kept in_dp, Kept in_values) {
    return {.id = std::move(id),
            .says = std::move(says),
            .change = [in_dp, in_values](const BackwardCall& call, ModelSteps& s) {
                if (call.problem().dropout.p == 0) return;
                if (in_dp != nullptr) s.dp_kept = in_dp;
                if (in_values != nullptr) s.value_kept = in_values;
            }};
}

void add_factors(std::vector<BackwardDeviation>& list) {
    list.push_back(kept("dropout_ignored", "in backward no dropout", one, one));
    list.push_back(kept("dropout_missing_in_dp", "dP without dropout", one, nullptr));
    list.push_back(kept("dropout_missing_in_dv", "dV of the weights before dropout", nullptr, one));
    list.push_back(kept("dropout_mask_missing_in_dp",
                        "dP of all keys, dropped ones among them, times 1/(1-p)", factor_of,
                        nullptr));
    list.push_back(kept("dropout_mask_missing_in_dv",
                        "dV of all weights, dropped ones among them, times 1/(1-p)", nullptr,
                        factor_of));
    list.push_back(kept("dropout_factor_missing", "kept weights without the factor 1/(1-p)",
                        kept_alone, kept_alone));
    list.push_back(
        kept("dropout_factor_missing_in_dp", "dP without the factor 1/(1-p)", kept_alone, nullptr));
    list.push_back(
        kept("dropout_factor_missing_in_dv", "dV without the factor 1/(1-p)", nullptr, kept_alone));
    const Kept kept_rate = [](const ModelPair& pair) {
        return pair.facts.kept == 0 ? 0 : 1 - pair.row.call.problem().dropout.p;
    };
    list.push_back(kept("dropout_times_kept_rate", "kept weights times 1-p instead of 1/(1-p)",
                        kept_rate, kept_rate));
    const Kept over_rate = [](const ModelPair& pair) {
        return pair.facts.kept == 0 ? 0 : 1 / pair.row.call.problem().dropout.p;
    };
    list.push_back(kept("dropout_over_rate", "kept weights times 1/p instead of 1/(1-p)", over_rate,
                        over_rate));
    list.push_back(
        kept("dropout_factor_twice", "kept weights times 1/(1-p) twice", kept_twice, kept_twice));
    const Kept byte_rate = [](const ModelPair& pair) {
        const double p = pair.row.call.problem().dropout.p;
        return pair.facts.kept == 0 ? 0 : 255 / std::floor(255 * (1 - p));
    };
    list.push_back(kept("dropout_factor_of_bytes",
                        "kept weights times 255/n, n = 255 (1-p) cut off, instead of 1/(1-p)",
                        byte_rate, byte_rate));
    list.push_back({.id = "dropped_ds_negated",
                    .says = "dS of the wrong sign where the weight is dropped",
                    .change = [](const BackwardCall& call, ModelSteps& s) {
                        if (call.problem().dropout.p == 0) return;
                        s.ds = [](const ModelPair& pair) {
                            const Near right = plain_ds(pair, pair.row.delta);
                            return pair.facts.kept == 0 ? -right : right;
                        };
                    }});
    list.push_back({.id = "dropout_of_ds",
                    .says = "dropout of dS, where it is that of dP",
                    .change = [](const BackwardCall& call, ModelSteps& s) {
                        if (call.problem().dropout.p == 0) return;
                        s.dp_kept = one;
                        s.ds = [](const ModelPair& pair) {
                            return pair.facts.kept * plain_ds(pair, pair.row.delta);
                        };
                    }});
    list.push_back({.id = "dropout_mask_in_ds",
                    .says = "no dS where the weight is dropped, delta left out as well",
                    .change = [](const BackwardCall& call, ModelSteps& s) {
                        if (call.problem().dropout.p == 0) return;
                        s.ds = [](const ModelPair& pair) {
                            return pair.facts.kept == 0 ? Near{} : plain_ds(pair, pair.row.delta);
                        };
                    }});
    list.push_back({.id = "dropout_in_ds",
                    .says = "dS of the weights after dropout",
                    .change = [](const BackwardCall& call, ModelSteps& s) {
                        if (call.problem().dropout.p == 0) return;
                        s.ds = [](const ModelPair& pair) {
                            return pair.facts.kept * plain_ds(pair, pair.row.delta);
                        };
                    }});
}

void add_deltas(std::vector<BackwardDeviation>& list) {
    const auto add = [&list](std::string id, std::string says, Kept factor) {
        list.push_back(exchanged_step(
            std::move(id), std::move(says), [factor](const BackwardCall& call, ModelSteps& s) {
                if (call.problem().dropout.p == 0) return;
                s.delta = [factor](const ModelRow& row) { return delta_of_weights(row, factor); };
            }));
    };
    add("dropout_missing_in_delta", "delta = sum of P dP, both before dropout", one);
    add("dropout_factor_missing_in_delta", "a delta of kept weights without the factor 1/(1-p)",
        kept_alone);
    add("dropout_twice_in_delta", "delta = sum of P dP, both after dropout", kept_twice);
}

/// `from` turns the place of a cell, [batch, head, query, key], into that whose fate it has.
BackwardDeviation mask(std::string id, std::string says,
                       std::function<void(const Problem& problem, Shape& place)> from) {
    return {.id = std::move(id),
            .says = "in backward " + std::move(says),
            .keeps = [from = std::move(from)](const BackwardEvidence& e) -> std::optional<Tensor> {
                if (!e.square_keep) return std::nullopt;
                const Tensor& right = *e.square_keep;
                Tensor keep = e.asked.inputs[Role::dropout_keep];
                for (std::int64_t at = 0; at < keep.size(); ++at) {
                    Shape place = law::index_of(keep.shape(), at);
                    from(e.asked.problem, place);
                    keep.set_bits(at,
                                  right.bits(right.flat(place[0], place[1], place[2], place[3])));
                }
                return keep;
            }};
}

void add_masks(std::vector<BackwardDeviation>& list) {
    list.push_back({.id = "dropout_next_seed",
                    .says = "in backward the dropout mask of the next seed",
                    .keeps = [](const BackwardEvidence& e) { return e.next_keep; }});
    list.push_back(mask("dropout_first_head", "the dropout mask of the first head",
                        [](const Problem&, Shape& at) { at[1] = 0; }));
    list.push_back(mask("dropout_first_of_group", "the dropout mask of the group's first head",
                        [](const Problem& p, Shape& at) { at[1] -= at[1] % group_size(p); }));
    list.push_back(mask("dropout_key_head", "the dropout mask of the key head's number",
                        [](const Problem& p, Shape& at) { at[1] /= group_size(p); }));
    list.push_back(mask("dropout_head_in_group",
                        "the dropout mask of the head's number in its group",
                        [](const Problem& p, Shape& at) { at[1] %= group_size(p); }));
    list.push_back(mask("dropout_first_sequence", "the dropout mask of the first sequence",
                        [](const Problem&, Shape& at) { at[0] = 0; }));
    list.push_back(mask("dropout_first_row", "the dropout mask of the first query",
                        [](const Problem&, Shape& at) { at[2] = 0; }));
    // Counted over the axis, and in each document.
    for (const std::int64_t tile : {16, 32, 64, 128})
        for (const bool packed : {false, true}) {
            const std::string n = std::to_string(tile);
            list.push_back(mask("dropout_key_in_tile_" + n, "the dropout mask of key j mod " + n,
                                [=](const Problem& p, Shape& at) {
                                    const KeyExtent own = segment_of(p, at[0], at[2]).keys;
                                    if (at[3] < own.begin || at[3] >= own.end) return;
                                    const std::int64_t first = packed ? own.begin : 0;
                                    at[3] = first + (at[3] - first) % tile;
                                }));
            list.push_back(mask("dropout_query_in_tile_" + n,
                                "the dropout mask of query i mod " + n,
                                [=](const Problem& p, Shape& at) {
                                    const std::int64_t first =
                                        packed ? segment_of(p, at[0], at[2]).queries.begin : 0;
                                    at[2] = first + (at[2] - first) % tile;
                                }));
        }
    const auto in_document = [&list](const char* id, const char* says, bool query, bool key) {
        list.push_back(mask(id, says, [query, key](const Problem& p, Shape& at) {
            const SegmentExtent own = segment_of(p, at[0], at[2]);
            if (at[3] < own.keys.begin || at[3] >= own.keys.end) return;
            if (query) at[2] -= own.queries.begin;
            if (key) at[3] -= own.keys.begin;
        }));
    };
    in_document("dropout_in_document", "the dropout mask of the place in its document", true, true);
    in_document("dropout_query_in_document",
                "the dropout mask of the query's number in its document", true, false);
    in_document("dropout_key_in_document", "the dropout mask of the key's number in its document",
                false, true);
    list.push_back(mask("dropout_transposed", "the dropout mask with queries and keys exchanged",
                        [](const Problem&, Shape& at) { std::swap(at[2], at[3]); }));
}

}  // namespace

std::vector<BackwardDeviation> dropout_deviations() {
    std::vector<BackwardDeviation> list;
    add_factors(list);
    add_deltas(list);
    add_masks(list);
    return list;
}

}  // namespace attest::diagnosis
