// Deviations of dP, the product of a row's dO and a value: channels left out or read past the end,
// and operands rounded.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/rounded_step.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "reference/problem/operands.hpp"

namespace attest::diagnosis {

namespace {

BackwardDeviation dp_channels(std::string id, std::string says,
                              std::function<std::int64_t(const BackwardCall&)> channels) {
    return exchanged_step(std::move(id), std::move(says),
                          [channels = std::move(channels)](const BackwardCall&, ModelSteps& s) {
                              s.dp_channels = channels;
                          });
}

/// Sums over channels, of which some are left out.
void add_channels(std::vector<BackwardDeviation>& list) {
    list.push_back(dp_channels(
        "dp_key_channels", "dP of as many channels as keys have",
        [](const BackwardCall& call) { return std::min(call.problem().dim_qk, call.call.dim_v); }));
    for (const std::int64_t step : {4, 8, 16, 32})
        list.push_back(dp_channels(
            fmt::format("dp_key_channels_up_to_{}", step),
            fmt::format("dP of as many channels as keys have, rounded up to multiples of {}", step),
            [step](const BackwardCall& call) {
                const std::int64_t keys = (call.problem().dim_qk + step - 1) / step * step;
                return std::min(keys, call.call.dim_v);
            }));
    list.push_back(exchanged_step(
        "d_o_key_channels", "dO of as many channels as keys have, in dP and dV",
        [](const BackwardCall&, ModelSteps& s) {
            s.dp_channels = [](const BackwardCall& call) {
                return std::min(call.problem().dim_qk, call.call.dim_v);
            };
            s.afterwards = [](const BackwardCall& call, Predicted& out) {
                for (std::size_t at = 0; at < out[Role::d_v].size(); ++at)
                    if (static_cast<std::int64_t>(at) % call.call.dim_v >= call.problem().dim_qk)
                        out[Role::d_v][at] = {};
            };
        }));
    list.push_back(dp_channels(
        "dp_last_channel", "dP without the last channel",
        [](const BackwardCall& call) { return std::max<std::int64_t>(call.call.dim_v - 1, 0); }));
    for (const std::int64_t lane : {2, 4, 8, 16, 32, 64})
        list.push_back(dp_channels(
            fmt::format("dp_channels_{}", lane),
            fmt::format("dP without the last dv mod {} channels", lane),
            [lane](const BackwardCall& call) { return call.call.dim_v / lane * lane; }));
    for (const std::int64_t kept : {32, 64, 96, 128, 192, 256})
        list.push_back(dp_channels(
            fmt::format("dp_first_{}_channels", kept),
            fmt::format("dP of the first {} channels alone", kept),
            [kept](const BackwardCall& call) { return std::min(kept, call.call.dim_v); }));
}

struct Rounding {
    std::string id, words;
    std::function<double(double)> of;
};

std::vector<Rounding> roundings() {
    std::vector<Rounding> all;
    for (const bool cut : {false, true})
        all.push_back({"tf32", "TF32", [cut](double x) { return to_tf32(x, cut); }});
    for (const Precision narrow : {Precision::bf16, Precision::f16})
        all.push_back({std::string(name(narrow)), words_of(narrow),
                       [narrow](double x) { return round_to(x, narrow); }});
    return all;
}

void add_operands(std::vector<BackwardDeviation>& list) {
    for (const Rounding& rounding : roundings())
        list.push_back(exchanged_step(
            "dp_operands_" + rounding.id, "dP of dO and values rounded to " + rounding.words,
            [of = rounding.of](const BackwardCall& call, ModelSteps& s) {
                s.dp = [of, &call](const ModelPair& pair) {
                    const ModelRow& row = pair.row;
                    const double* v = call.call.value(row.b, row.h / call.call.group, pair.j);
                    return sum_of_channels(row, [&](std::size_t c) {
                        return Near{of(row.facts.d_o[c]) * of(v[c]), 0};
                    });
                };
            }));
}

/// The channels past the last are the first of the next row of dO and of the next value: in the
/// sequence or document, behind which are zeros, or in memory.
enum class NextRow : std::uint8_t { of_own_or_zeros, in_memory };

Near with_channels_of_next(const ModelPair& pair, std::int64_t up_to, NextRow next) {
    const ModelRow& row = pair.row;
    const BackwardCall& call = row.call;
    const Problem& p = call.problem();
    const std::int64_t dim = call.call.dim_v, more = (dim + up_to - 1) / up_to * up_to - dim,
                       head = row.b * p.heads_q + row.h,
                       head_kv = row.b * p.heads_kv + row.h / call.call.group;
    if (more == 0) return pair.dp;
    std::int64_t i = head * p.len_q + row.i + 1, j = head_kv * p.len_kv + pair.j + 1;
    const SegmentExtent own = segment_of(p, row.b, row.i);
    if (next == NextRow::of_own_or_zeros &&
        (row.i + 1 >= own.queries.end || pair.j + 1 >= own.keys.end))
        return pair.dp;
    // What lies behind the last row, or between two, is not known.
    if (more > dim || p.layout_v != Layout{} || i == p.batch * p.heads_q * p.len_q ||
        j == p.batch * p.heads_kv * p.len_kv)
        return {0, infinite};
    const std::vector<double>& d_o =
        call.row(i / p.len_q / p.heads_q, i / p.len_q % p.heads_q, i % p.len_q).d_o;
    if (d_o.empty()) return {0, infinite};  // of no query
    const double* v =
        call.call.value(j / p.len_kv / p.heads_kv, j / p.len_kv % p.heads_kv, j % p.len_kv);
    Near sum = pair.dp;
    for (std::size_t c = 0; c < static_cast<std::size_t>(more); ++c)
        sum = sum +
              rounded(Near{d_o[c] * v[c], 0}, call.of_products(static_cast<double>(dim + more)), 0);
    return sum;
}

void add_channels_of_next(std::vector<BackwardDeviation>& list) {
    for (const std::int64_t up_to : {2, 4, 8, 16, 32, 64})
        for (const NextRow next : {NextRow::of_own_or_zeros, NextRow::in_memory})
            list.push_back(exchanged_step(
                fmt::format("dp_channels_up_to_{}", up_to),
                fmt::format(
                    "dP of dv channels rounded up to a multiple of {}: the others are those "
                    "of the next row",
                    up_to),
                [=](const BackwardCall&, ModelSteps& s) {
                    s.dp = [=](const ModelPair& pair) {
                        return with_channels_of_next(pair, up_to, next);
                    };
                }));
}

}  // namespace

std::vector<BackwardDeviation> product_deviations() {
    std::vector<BackwardDeviation> list;
    add_channels(list);
    add_operands(list);
    add_channels_of_next(list);
    return list;
}

}  // namespace attest::diagnosis
