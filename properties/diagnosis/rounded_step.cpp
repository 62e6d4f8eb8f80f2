#include "properties/diagnosis/rounded_step.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace attest::diagnosis {

namespace {

std::optional<Precision> where_narrow(Precision format) {
    const bool half = format == Precision::f16 || format == Precision::bf16;
    return half ? std::optional(format) : std::nullopt;
}

struct RoundsToTexts {
    RoundsTo what;
    const char *id, *words;
};
constexpr RoundsToTexts texts[] = {
    {RoundsTo::inputs, "own", "the format of the inputs"},
    {RoundsTo::queries, "queries", "the format of the queries"},
    {RoundsTo::values, "values", "the format of keys and values"},
    {RoundsTo::output, "output", "the format of the output"},
    {RoundsTo::bf16, "bf16", "bfloat16"},
    {RoundsTo::f16, "f16", "f16"},
};

const RoundsToTexts& texts_of(RoundsTo narrow) {
    return *std::ranges::find(texts, narrow, &RoundsToTexts::what);
}

}  // namespace

std::optional<Precision> format_in(RoundsTo narrow, const Problem& p) {
    switch (narrow) {
        case RoundsTo::inputs:
            return p.format_q == p.format_kv ? where_narrow(p.format_q) : std::nullopt;
        case RoundsTo::queries:
            return where_narrow(p.format_q);
        case RoundsTo::values:
            return where_narrow(p.format_kv);
        case RoundsTo::output:
            return where_narrow(p.format_o);
        case RoundsTo::bf16:
            return Precision::bf16;
        case RoundsTo::f16:
            return Precision::f16;
    }
    return std::nullopt;
}

std::string words_of(Precision format) {
    return format == Precision::bf16 ? "bfloat16" : std::string(name(format));
}

std::string id_of(RoundsTo narrow) {
    return texts_of(narrow).id;
}

std::string words_of(RoundsTo narrow) {
    return texts_of(narrow).words;
}

std::optional<double> rounded_surely(double x, double size, Precision format) {
    const double off = 0x1p-21 * size;
    const double low = round_to(x - off, format), high = round_to(x + off, format);
    if (low != high || !std::isfinite(low)) return std::nullopt;
    return low;
}

double cut_off(double x, Precision format) {
    const double nearest = round_to(x, format);
    return std::abs(nearest) <= std::abs(x) ? nearest : decode(encode(nearest, format) - 1, format);
}

Deviation rounded_step(std::string id, std::string says, RoundsTo narrow, ChangeIn change) {
    return weight_deviation(
        std::move(id), std::move(says),
        [narrow, change = std::move(change)](const Specification& s, const oracle::RowDetail& row,
                                             KeyExtent span) -> std::optional<WeightChange> {
            const std::optional<Precision> format = format_in(narrow, s.problem);
            if (!format) return WeightChange{};
            return change(*format, s, row, span);
        });
}

}  // namespace attest::diagnosis
