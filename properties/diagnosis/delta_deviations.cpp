// Deviations of dS = P (dP - D) and of D, the row's sum of dO times O.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/backward_deviation.hpp"

namespace attest::diagnosis {

namespace {

using DeltaOf = std::function<Near(const ModelRow&)>;
using DsOf = std::function<Near(const ModelPair&)>;

BackwardDeviation delta(std::string id, std::string says, DeltaOf value) {
    return {.id = std::move(id),
            .says = std::move(says),
            .change = [value = std::move(value)](const BackwardCall&, ModelSteps& s) {
                s.delta = value;
            }};
}

BackwardDeviation ds(std::string id, std::string says, DsOf value) {
    return {
        .id = std::move(id),
        .says = std::move(says),
        .change = [value = std::move(value)](const BackwardCall&, ModelSteps& s) { s.ds = value; }};
}

/// sum_c dO_c f(O_c).
template <typename Change>
Near delta_with(const ModelRow& row, Change change) {
    Near sum;
    double size = 0;
    for (std::size_t c = 0; c < row.facts.d_o.size(); ++c) {
        const Near term = row.facts.d_o[c] * change(row.facts.output[c]);
        sum = sum + term;
        size += most(term);
    }
    sum.error += row.call.of_products(static_cast<double>(row.facts.d_o.size())) * size;
    return sum;
}

/// exp(x), to within two units of the accumulator beside what x is off by.
Near exponential(Near x) {
    const double e = std::exp(x.value);
    return {e, e * std::expm1(std::min(x.error, 700.0))};
}

void add_rows(std::vector<BackwardDeviation>& list) {
    for (const std::int64_t up : {1, -1, 2, 4, 8, 16, 32, 64, -2, -4, -8, -16}) {
        const std::string id =
            fmt::format("delta_row_{}_{}", up > 0 ? "above" : "below", std::abs(up));
        const std::string says = fmt::format("the delta of the row {} {} its own", std::abs(up),
                                             up > 0 ? "above" : "below");
        // At the first or last rows: their own, those of the head before, or from the other end.
        list.push_back(delta(id, says, [up](const ModelRow& row) {
            const std::int64_t i = row.i - up;
            if (i < 0 || i >= row.call.problem().len_q) return row.delta;
            return row.call.row(row.b, row.h, i).delta;
        }));
        list.push_back(delta(id, says, [up](const ModelRow& row) {
            const auto other = row_above(row, up);
            return other ? other->facts.delta : row.delta;
        }));
        list.push_back(delta(id, says, [up](const ModelRow& row) {
            const std::int64_t n = row.call.problem().len_q;
            return row.call.row(row.b, row.h, ((row.i - up) % n + n) % n).delta;
        }));
    }
    list.push_back(delta("delta_first_row", "the delta of the head's first row for every row",
                         [](const ModelRow& row) { return row.call.row(row.b, row.h, 0).delta; }));
    for (const std::int64_t tile : {4, 8, 16, 32, 64, 128})
        list.push_back(delta(fmt::format("delta_first_of_{}", tile),
                             fmt::format("the delta of the first of {} rows for all of them", tile),
                             [tile](const ModelRow& row) {
                                 return row.call.row(row.b, row.h, row.i / tile * tile).delta;
                             }));
    list.push_back(delta("delta_first_head", "the deltas of the first head for every head",
                         [](const ModelRow& row) { return row.call.row(row.b, 0, row.i).delta; }));
    list.push_back(delta("delta_key_head", "the deltas of the head with its key head's number",
                         [](const ModelRow& row) {
                             return row.call.row(row.b, row.h / row.call.call.group, row.i).delta;
                         }));
    list.push_back(delta("delta_heads_sequences",
                         "deltas with heads and sequences exchanged in memory",
                         [](const ModelRow& row) {
                             const Problem& p = row.call.problem();
                             const std::int64_t n = row.h * p.batch + row.b;
                             return row.call.row(n / p.heads_q, n % p.heads_q, row.i).delta;
                         }));
    for (const std::int64_t by : {1, -1})
        list.push_back(
            delta(by > 0 ? "delta_next_head" : "delta_head_before",
                  by > 0 ? "the deltas of the next head" : "the deltas of the head before",
                  [by](const ModelRow& row) {
                      const std::int64_t n = row.call.problem().heads_q;
                      return row.call.row(row.b, (row.h + by + n) % n, row.i).delta;
                  }));
    list.push_back(delta("delta_first_sequence", "the deltas of the first sequence for all of them",
                         [](const ModelRow& row) { return row.call.row(0, row.h, row.i).delta; }));
}

void add_values(std::vector<BackwardDeviation>& list) {
    list.push_back(delta("delta_omitted", "dS = P dP: delta is left out",
                         [](const ModelRow&) { return Near{}; }));
    list.push_back(delta("delta_added", "dS = P (dP + delta)",
                         [](const ModelRow& row) { return -row.delta; }));
    list.push_back(delta("delta_twice", "twice the delta",
                         [](const ModelRow& row) { return 2.0 * row.delta; }));
    list.push_back(
        delta("delta_half", "half the delta", [](const ModelRow& row) { return 0.5 * row.delta; }));
    list.push_back(delta("delta_of_d_o", "a delta of dO alone, without O", [](const ModelRow& row) {
        return delta_with(row, [](Near) { return Near{1, 0}; });
    }));
    list.push_back(delta("delta_of_o", "a delta of O alone, without dO", [](const ModelRow& row) {
        Near sum;
        for (const Near& o : row.facts.output)
            sum = sum +
                  rounded(o, static_cast<double>(row.facts.d_o.size() + 2) * row.call.model.ua, 0);
        return sum;
    }));
    list.push_back(delta("delta_mean", "a delta that is the mean over channels instead of the sum",
                         [](const ModelRow& row) {
                             return 1.0 / static_cast<double>(row.facts.d_o.size()) * row.delta;
                         }));
    list.push_back(delta("delta_scaled", "a delta multiplied by the softmax scale",
                         [](const ModelRow& row) { return row.call.call.scale * row.delta; }));
    list.push_back(delta(
        "delta_unnormalised", "a delta of O before it is divided by the row's sum",
        [](const ModelRow& row) { return exponential(row.lse - largest_score(row)) * row.delta; }));
    for (const std::int64_t lane : {2, 4, 8, 16, 32, 64})
        list.push_back(delta(
            fmt::format("delta_channels_{}", lane),
            fmt::format("a delta without the last dv mod {} channels", lane),
            [lane](const ModelRow& row) {
                std::size_t c = 0;
                const std::size_t kept = row.facts.d_o.size() / static_cast<std::size_t>(lane) *
                                         static_cast<std::size_t>(lane);
                return delta_with(row, [&](Near o) { return c++ < kept ? o : Near{}; });
            }));
    for (const std::int64_t kept : {1, 32, 64, 128})
        list.push_back(delta(fmt::format("delta_first_{}_channels", kept),
                             fmt::format("a delta of the first {} channels alone", kept),
                             [kept](const ModelRow& row) {
                                 std::int64_t c = 0;
                                 return delta_with(row,
                                                   [&](Near o) { return c++ < kept ? o : Near{}; });
                             }));
    for (const Precision narrow : {Precision::bf16, Precision::f16}) {
        const std::string format(name(narrow));
        list.push_back(
            delta("delta_" + format, "delta rounded to " + format,
                  [narrow](const ModelRow& row) { return rounded_to(row.delta, narrow); }));
        list.push_back(delta("delta_of_output_" + format, "a delta of O rounded to " + format,
                             [narrow](const ModelRow& row) {
                                 return delta_with(
                                     row, [narrow](Near o) { return rounded_to(o, narrow); });
                             }));
    }
}

BackwardDeviation d_o(std::string id, std::string says,
                      std::function<const BackwardCall::RowFacts&(const ModelRow&)> whose) {
    return {.id = std::move(id),
            .says = std::move(says),
            .change = [whose = std::move(whose)](const BackwardCall&, ModelSteps& s) {
                s.d_o = whose;
            }};
}

void add_d_o(std::vector<BackwardDeviation>& list) {
    list.push_back(d_o("d_o_first_of_group", "the dO of the first query head of each group",
                       [](const ModelRow& row) -> const BackwardCall::RowFacts& {
                           const std::int64_t group = row.call.call.group;
                           return row.call.row(row.b, row.h / group * group, row.i);
                       }));
    list.push_back(d_o("d_o_key_head", "the dO of the head with its key head's number",
                       [](const ModelRow& row) -> const BackwardCall::RowFacts& {
                           return row.call.row(row.b, row.h / row.call.call.group, row.i);
                       }));
    list.push_back(d_o("d_o_first_head", "the dO of the first head for every head",
                       [](const ModelRow& row) -> const BackwardCall::RowFacts& {
                           return row.call.row(row.b, 0, row.i);
                       }));
    list.push_back(d_o("d_o_first_sequence", "the dO of the first sequence for all of them",
                       [](const ModelRow& row) -> const BackwardCall::RowFacts& {
                           return row.call.row(0, row.h, row.i);
                       }));
}

}  // namespace

std::optional<ModelRow> row_above(const ModelRow& row, std::int64_t up) {
    const Problem& p = row.call.problem();
    const std::int64_t flat = (row.b * p.heads_q + row.h) * p.len_q + row.i - up;
    if (flat < 0 || flat >= p.batch * p.heads_q * p.len_q) return std::nullopt;
    const std::int64_t b = flat / p.len_q / p.heads_q, h = flat / p.len_q % p.heads_q,
                       i = flat % p.len_q;
    const BackwardCall::RowFacts& facts = row.call.row(b, h, i);
    return ModelRow{row.call, b, h, i, facts, facts.lse, facts.delta};
}

std::vector<BackwardDeviation> delta_deviations() {
    std::vector<BackwardDeviation> list;
    add_values(list);
    list.push_back(ds("delta_unweighted", "dS = P dP - delta, delta without its weight",
                      [](const ModelPair& pair) { return pair.p * pair.dp - pair.row.delta; }));
    list.push_back(ds("ds_unweighted", "dS = dP - delta, without the weight",
                      [](const ModelPair& pair) { return pair.dp - pair.row.delta; }));
    list.push_back(ds("ds_weight_squared", "dS with the weight squared", [](const ModelPair& pair) {
        return pair.p * plain_ds(pair, pair.row.delta);
    }));
    list.push_back(ds("ds_diagonal", "dS = P (1 - P) dP, the diagonal of softmax's Jacobian alone",
                      [](const ModelPair& pair) {
                          return rounded(
                              pair.p * ((Near{1, 0} - pair.p) * pair.dp + pair.row.facts.d_lse),
                              3 * pair.row.call.model.ua, 0);
                      }));
    for (const Precision narrow : {Precision::bf16, Precision::f16}) {
        const std::string format(name(narrow));
        list.push_back(
            ds("ds_" + format, "dS rounded to " + format, [narrow](const ModelPair& pair) {
                return rounded_to(plain_ds(pair, pair.row.delta), narrow);
            }));
        list.push_back(
            ds("dp_" + format, "dP rounded to " + format, [narrow](const ModelPair& pair) {
                return pair.p * (rounded_to(pair.dp, narrow) - pair.row.delta);
            }));
    }
    add_rows(list);
    add_d_o(list);
    return list;
}

}  // namespace attest::diagnosis
