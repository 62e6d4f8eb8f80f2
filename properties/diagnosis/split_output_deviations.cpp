// Outputs of splits that are stored in a narrower format before they are merged.

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rounded_step.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "properties/diagnosis/rows_of.hpp"

namespace attest::diagnosis {

namespace {

/// One row's keys, and the values of its key head.
struct RowOfValues {
    const oracle::RowDetail& row;
    const Tensor& values;
    std::int64_t b = 0, head_kv = 0;
};

// What a split adds to one channel: its share of the weights times its own output as it is stored.
// A kernel's own is known to a few roundings of f32 of what it is a sum of.
bound::ExpectedElement stored_part(const RowOfValues& of, KeyExtent split, std::int64_t c,
                                   Precision format) {
    double share = 0, sum = 0, size = 0;
    for (std::int64_t j = split.begin; j < split.end; ++j) {
        const auto n = static_cast<std::size_t>(j);
        const double w = of.row.weights[n];
        if (w <= 0) continue;
        const double v = of.values.at(of.b, of.head_kv, j, c);
        share += w;
        sum += w * v;
        size += std::abs(w * v) * (8 + std::abs(of.row.scores[n]));
    }
    if (share == 0) return {};
    const double off = 0x1p-22 * size / share;
    const double low = round_to(sum / share - off, format),
                 high = round_to(sum / share + off, format);
    if (!std::isfinite(low) || !std::isfinite(high)) return {0, 0, infinite};
    return {share * (low + high) / 2, 0, share * (high - low) / 2};
}

// `alone`: where all keys are one part, too.
std::optional<bound::Expected> merged_of_stored(const Specification& s,
                                                const bound::Expected& truth, RoundsTo narrow,
                                                bool alone) {
    const Problem& p = s.problem;
    const std::optional<Precision> format = format_in(narrow, p);
    const Precision weights = resolved(s.numerics.weights, p.format_q);
    const bool exact = weights == Precision::f32 || weights == Precision::f64;
    if ((p.splits < 2 && !alone) || !format || !exact) return std::nullopt;
    const auto rows = rows_of(s);
    const auto dim = static_cast<std::size_t>(value_dim(p));
    bound::Expected out = truth;
    for (std::size_t n = 0; n < rows->size(); ++n) {
        const auto flat = static_cast<std::int64_t>(n);
        const std::int64_t b = flat / p.len_q / p.heads_q;
        const RowOfValues of{(*rows)[n], s.inputs[Role::v], b,
                             flat / p.len_q % p.heads_q / group_size(p)};
        const auto splits = split_extents(p, span_of(s, b, flat % p.len_q));
        for (std::size_t c = 0; c < dim && truth.row_empty[n] == 0; ++c) {
            bound::ExpectedElement& o = out.output[n * dim + c];
            if (!std::isfinite(o.value)) continue;
            bound::ExpectedElement sum{0, o.error, o.bound};
            for (const KeyExtent split : splits) {
                const auto part = stored_part(of, split, static_cast<std::int64_t>(c), *format);
                sum.value += part.value;
                sum.bound += part.bound;
            }
            o = sum;
        }
    }
    return out;
}

}  // namespace

std::vector<Deviation> split_outputs_rounded(bool one_alone_too) {
    std::vector<Deviation> list;
    for (const bool alone : {false, true}) {
        if (alone && !one_alone_too) break;
        for (const RoundsTo narrow : narrow_or_own) {
            Deviation rounded = formula_deviation(
                "split_outputs_rounded_" + id_of(narrow) + (alone ? "_alone" : ""),
                "outputs of splits rounded to " + words_of(narrow) + " before they are merged" +
                    (alone ? ", that of one alone too" : ""),
                [narrow, alone](const Specification& s, const bound::Expected& truth) {
                    return merged_of_stored(s, truth, narrow, alone);
                });
            rounded.declares = [narrow](const Specification& s) -> std::string {
                const auto format = format_in(narrow, s.problem);
                return format ? "no such step; by design? declare numerics: partials " +
                                    std::string(name(*format))
                              : "";
            };
            list.push_back(
                as_form_of("split_outputs_rounded", alone ? of_parts(rounded) : rounded));
        }
    }
    return list;
}

}  // namespace attest::diagnosis
