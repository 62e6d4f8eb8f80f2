// A maximum that is taken of keys, too, that a query does not see.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "properties/diagnosis/other_maximum.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rounded_step.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "properties/diagnosis/rows_of.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

bool feeds_f16(const Specification& s) {
    return resolved(s.numerics.weights, s.problem.format_kv) == Precision::f16;
}

// The sum is of the weights as they were, where nothing else is declared.
std::optional<WeightChange> lost_weights(const std::vector<double>& maxima, const Specification& s,
                                         const oracle::RowDetail& row) {
    WeightChange change{std::vector<double>(row.scores.size()), {}};
    if (s.numerics.sum_weights == SumWeights::unrounded) change.denominator = 0;
    for (std::size_t j = 0; j < row.scores.size(); ++j) {
        if (!(row.weights[j] > 0) || maxima[j] == -infinite) continue;
        const double below = row.scores[j] - maxima[j], w = std::exp(below);
        const double size = w * (4 + std::abs(below) + std::abs(row.scores[j]));
        const std::optional<double> r = rounded_surely(w, size, Precision::f16);
        if (!r) return std::nullopt;
        change.numerator[j] = *r > 0 ? std::log(*r) - below : -infinite;
    }
    return change;
}

// Weights that are all 0 in f16, below a sum in f32 that is not, leave an output of 0.
void clear_lost_rows(const KeyMaxima& maxima, const Specification& s, bound::Expected& out) {
    constexpr double lost = -18;  // exp(-18) is less than half of 2^-24
    const auto kept = rows_of(s);
    const auto dim = static_cast<std::size_t>(value_dim(s.problem));
    for (std::size_t n = 0; n < maxima.size(); ++n) {
        const std::vector<double>& scores = (*kept)[n].scores;
        bool all = out.row_empty[n] == 0;
        for (std::size_t j = 0; j < scores.size() && all; ++j)
            all = scores[j] == -infinite || scores[j] - maxima[n][j] < lost;
        for (std::size_t c = n * dim; c < (n + 1) * dim && all; ++c)
            out.output[c] = bound::ExpectedElement{};
    }
}

/// Which hidden keys share in a maximum: all of the sequence or document, or those alone that the
/// mask tensor hides.
enum class HiddenKeys : std::uint8_t { all, of_tensor };

Specification with_hidden_seen(const Specification& s, HiddenKeys which) {
    Rules rules = which == HiddenKeys::all ? Rules{} : rules_of(s);
    rules.mask_tensor = false;
    return with_rules(s, rules);
}

/// Of scores from one key to before another; comparisons drop what is not a number.
double largest_of(const std::vector<double>& scores, std::int64_t from, std::int64_t to) {
    double most = -infinite;
    for (std::int64_t j = from; j < to; ++j)
        most = std::fmax(most, scores[static_cast<std::size_t>(j)]);
    return most;
}

/// The keys of a row's sequence or document; with a tile, all of the tiles, on the axis that packs
/// them, that a document has a key in.
KeyExtent keys_seen(std::int64_t tile, const Specification& s, std::size_t row) {
    const Problem& p = s.problem;
    if (p.mask.documents_kv.empty() || tile == 0) return {0, p.len_kv};
    const KeyExtent own = span_of(s, 0, static_cast<std::int64_t>(row) % p.len_q);
    if (own.begin == own.end) return {};
    return {own.begin / tile * tile, std::min(p.len_kv, (own.end + tile - 1) / tile * tile)};
}

std::vector<double> maxima_of(HiddenKeys which, std::int64_t tile, const Specification& s,
                              std::size_t rows) {
    Rules nothing_hidden;  // nor parted into documents
    nothing_hidden.mask_tensor = nothing_hidden.documents = false;
    const auto all = rows_of(tile > 0 ? with_rules(s, nothing_hidden) : with_hidden_seen(s, which));
    std::vector<double> maxima;
    for (std::size_t n = 0; n < rows; ++n) {
        const KeyExtent keys = keys_seen(tile, s, n);
        maxima.push_back(largest_of((*all)[n].scores, keys.begin, keys.end));
    }
    return maxima;
}

/// Running maxima, of tiles of so many keys: that a weight is taken against, where hidden keys
/// raise it. Tile 0: of all keys at once.
KeyMaxima running_maxima(HiddenKeys which, std::int64_t tile, const Specification& s) {
    const auto rows = rows_of(s), all = rows_of(with_hidden_seen(s, which));
    const Problem& p = s.problem;
    KeyMaxima maxima;
    for (std::size_t n = 0; n < rows->size(); ++n) {
        const auto flat = static_cast<std::int64_t>(n);
        const KeyExtent span = span_of(s, flat / p.len_q / p.heads_q, flat % p.len_q);
        std::vector<double>& of_row = maxima.emplace_back((*rows)[n].scores.size(), -infinite);
        double with_hidden = -infinite, seen = -infinite;
        for (const KeyExtent part :
             parts_of(span, tile > 0 ? tile : std::max<std::int64_t>(p.len_kv, 1))) {
            with_hidden =
                std::fmax(with_hidden, largest_of((*all)[n].scores, part.begin, part.end));
            seen = std::fmax(seen, largest_of((*rows)[n].scores, part.begin, part.end));
            for (std::int64_t j = part.begin; j < part.end && with_hidden > seen; ++j)
                of_row[static_cast<std::size_t>(j)] = with_hidden;
        }
    }
    return maxima;
}

std::string words_of(HiddenKeys which) {
    return which == HiddenKeys::all ? "hidden keys too" : "keys too that the mask tensor hides";
}

std::string id_of(HiddenKeys which) {
    return which == HiddenKeys::all ? "maximum_of_hidden" : "maximum_of_masked";
}

Deviation maximum_of(HiddenKeys which, bool guarded) {
    return underflowing(
        id_of(which),
        "a maximum over " + words_of(which) +
            ": where one of them stands far above all that are seen, every weight underflows and",
        guarded, [which](double quotient, const Specification& s, const bound::Expected& truth) {
            return maximum_from(std::bind_front(maxima_of, which, 0), quotient, s, truth);
        });
}

Deviation maximum_of_tiles(std::int64_t tile, bool guarded) {
    return underflowing(
        fmt::format("maximum_of_hidden_tiles_{}", tile),
        fmt::format(
            "a maximum over all keys of its tiles of {} too, hidden ones and those of other "
            "documents: where one of them stands far above all that are seen, every weight "
            "underflows and",
            tile),
        guarded, [tile](double quotient, const Specification& s, const bound::Expected& truth) {
            return maximum_from(std::bind_front(maxima_of, HiddenKeys::all, tile), quotient, s,
                                truth);
        });
}

// Weights in f16 lose their bits where those in f32 vanish.
Deviation maximum_of_f16(HiddenKeys which, std::int64_t tile, bool guarded) {
    const std::string of_tiles = tile > 0 ? fmt::format(" of tiles of {} keys", tile) : "";
    return underflowing(
        id_of(which) + "_f16" + (tile > 0 ? fmt::format("_{}", tile) : ""),
        (tile > 0 ? "a running maximum" + of_tiles + ", over " : "a maximum over ") +
            words_of(which) +
            ": where one of them stands above all that are seen, weights lose their bits in f16, "
            "and where it stands so far above them that every weight underflows",
        guarded,
        [which, tile](double quotient, const Specification& s, const bound::Expected& truth) {
            const auto few =
                weights_lost_in_f16(std::bind_front(running_maxima, which, tile), s, truth);
            auto all =
                maximum_from(std::bind_front(maxima_of, which, 0), quotient, s, few ? *few : truth);
            return all ? all : few;
        });
}

}  // namespace

std::optional<bound::Expected> weights_lost_in_f16(const KeyMaximaOf& maxima_of,
                                                   const Specification& s,
                                                   const bound::Expected& truth) {
    if (!feeds_f16(s) || s.problem.sink) return std::nullopt;
    const KeyMaxima maxima = maxima_of(s);
    const Deviation lost = weight_deviation(
        "", "",
        [&maxima](const Specification& of, const oracle::RowDetail& row, const RowKeys& keys) {
            return lost_weights(maxima[keys.row], of, row);
        });
    std::optional<bound::Expected> out = lost.formula(s, truth);
    if (out && s.numerics.sum_weights == SumWeights::unrounded) clear_lost_rows(maxima, s, *out);
    return out;
}

std::vector<Deviation> maximum_of_hidden(bool guarded) {
    const Deviation hidden = maximum_of(HiddenKeys::all, guarded);
    std::vector<Deviation> list{hidden};
    const auto form = [&](Deviation d) { list.push_back(as_form_of(hidden.id, std::move(d))); };
    for (const std::int64_t tile : {16, 32, 64, 128}) form(maximum_of_tiles(tile, guarded));
    form(maximum_of(HiddenKeys::of_tensor, guarded));
    for (const HiddenKeys which : {HiddenKeys::all, HiddenKeys::of_tensor})
        for (const std::int64_t tile : {0, 16, 32, 64, 128})
            form(maximum_of_f16(which, tile, guarded));
    return list;
}

}  // namespace attest::diagnosis
