#include "properties/diagnosis/rounded_step.hpp"

#include <cmath>
#include <utility>

namespace attest::diagnosis {

RoundsTo format_in(RoundsTo narrow, const Problem& p) {
    if (narrow) return narrow;
    const bool one = p.format_q == p.format_kv;
    const bool half = p.format_q == Precision::f16 || p.format_q == Precision::bf16;
    return one && half ? RoundsTo(p.format_q) : std::nullopt;
}

std::string id_of(RoundsTo narrow) {
    return narrow ? std::string(name(*narrow)) : "own";
}

std::string words_of(RoundsTo narrow) {
    if (!narrow) return "the format of the inputs";
    return *narrow == Precision::bf16 ? "bfloat16" : std::string(name(*narrow));
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
            const RoundsTo format = format_in(narrow, s.problem);
            if (!format) return WeightChange{};
            return change(*format, s, row, span);
        });
}

}  // namespace attest::diagnosis
