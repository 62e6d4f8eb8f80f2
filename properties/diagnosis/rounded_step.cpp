#include "properties/diagnosis/rounded_step.hpp"

#include <cmath>
#include <utility>

namespace attest::diagnosis {

namespace {

std::optional<Precision> where_narrow(Precision format) {
    const bool half = format == Precision::f16 || format == Precision::bf16;
    return half ? std::optional(format) : std::nullopt;
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
    switch (narrow) {
        case RoundsTo::inputs:
            return "own";
        case RoundsTo::queries:
            return "queries";
        case RoundsTo::values:
            return "values";
        case RoundsTo::output:
            return "output";
        case RoundsTo::bf16:
            return "bf16";
        case RoundsTo::f16:
            return "f16";
    }
    return {};
}

std::string words_of(RoundsTo narrow) {
    switch (narrow) {
        case RoundsTo::inputs:
            return "the format of the inputs";
        case RoundsTo::queries:
            return "the format of the queries";
        case RoundsTo::values:
            return "the format of keys and values";
        case RoundsTo::output:
            return "the format of the output";
        case RoundsTo::bf16:
            return words_of(Precision::bf16);
        case RoundsTo::f16:
            return words_of(Precision::f16);
    }
    return {};
}

std::optional<double> rounded_surely(double x, double size, Precision format) {
    const double off = 0x1p-21 * size;
    const double low = round_to(x - off, format), high = round_to(x + off, format);
    if (low != high || !std::isfinite(low)) return std::nullopt;
    return low;
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
