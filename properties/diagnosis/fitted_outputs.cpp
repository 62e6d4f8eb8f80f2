// What only the evidence can tell of values and outputs: which are exchanged, which are taken for
// 0, and where weights end.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/diagonal.hpp"
#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

/// In tiles of so many keys, key `at` and the next have each other's value, where both are there.
Deviation values_exchanged(std::int64_t tile, std::int64_t at) {
    return {.id = fmt::format("values_exchanged_{}_of_{}", at, tile),
            .says = tile == 2 ? "each two keys with each other's value"
                              : fmt::format("keys {} and {} of each {} with each other's value", at,
                                            at + 1, tile),
            .respecify = [tile, at](const Specification& s) -> std::optional<Specification> {
                const Problem& p = s.problem;
                if (p.cache.page_size > 0 || p.len_kv <= at + 1) return std::nullopt;
                Specification out = s;
                const Tensor& v = s.inputs[Role::v];
                const auto source = [&](std::int64_t b, std::int64_t j) {
                    const std::int64_t keys = length_of(p.mask.lens_kv, p.len_kv, b);
                    const std::int64_t place = j % tile;
                    if (place == at && j + 1 < keys) return j + 1;
                    return place == at + 1 && j < keys ? j - 1 : j;
                };
                out.inputs.put(Role::v,
                               remake(v.type(), v.shape(),
                                      [&](std::int64_t b, std::int64_t h, std::int64_t j,
                                          std::int64_t c) { return v.at(b, h, source(b, j), c); }));
                return out;
            }};
}

std::vector<Deviation> exchanged_values(const Evidence& first) {
    std::vector<Deviation> list;
    for (const std::int64_t tile : {2, 4, 8, 16, 32, 64, 128})
        for (std::int64_t at = 0; at + 1 < tile && at + 1 < first.asked.problem.len_kv; ++at) {
            Deviation d = values_exchanged(tile, at);
            if (agrees(d, first)) list.push_back(std::move(d));
        }
    return list;
}

// Outputs nearer to 0 than this become 0. One whose bound reaches across the limit may be either.
Deviation outputs_flushed(double limit, const std::string& words) {
    return {.id = "outputs_flushed",
            .says = "0 for outputs below " + words,
            .formula = [limit](const Specification&,
                               const bound::Expected& truth) -> std::optional<bound::Expected> {
                bound::Expected out = truth;
                for (bound::ExpectedElement& o : out.output) {
                    const double slack = o.bound + o.error, size = std::abs(o.value);
                    if (!(size - slack < limit)) continue;
                    o = size + slack < limit
                            ? bound::ExpectedElement{}
                            : bound::ExpectedElement{o.value, o.error, o.bound + size};
                }
                return out;
            }};
}

// The limit lies between the largest that became 0 and the least that did not: the least normal or
// the least number of f16, or a power of ten, where one of them does; else none is stated.
std::vector<Deviation> flushed_outputs(const AllEvidence& evidence) {
    double flushed = 0, kept = infinite;
    for (const std::vector<Evidence>* list : {&evidence.wrong, &evidence.right})
        for (const Evidence& e : *list)
            for (std::size_t n = 0; n < e.truth.output.size(); ++n) {
                const bound::ExpectedElement& o = e.truth.output[n];
                const double least = std::abs(o.value) - o.bound - o.error;
                if (!(least > 0)) continue;
                if (e.observed[Role::o].get(static_cast<std::int64_t>(n)) == 0)
                    flushed = std::max(flushed, least);
                else
                    kept = std::min(kept, std::abs(o.value) + o.bound + o.error);
            }
    if (flushed == 0 || flushed > kept) return {};
    const auto between = [&](double limit) { return flushed <= limit && limit <= kept; };
    if (between(0x1p-14))
        return {outputs_flushed(0x1p-14, "2^-14, the least normal number of f16")};
    if (between(0x1p-24)) return {outputs_flushed(0x1p-24, "2^-24, the least number of f16")};
    const double ten = std::pow(10.0, std::ceil(std::log10(flushed)));
    if (between(ten)) return {outputs_flushed(ten, fmt::format("{:.3g}", ten))};
    return {};
}

// Kernels take scores by the maximum so far: that of all of these keys, where one of the first has
// it. None where none has.
std::optional<double> maximum_that_comes_early(const oracle::RowDetail& row, KeyExtent part) {
    constexpr std::int64_t least_tile = 16;
    const auto seen = [&row](std::int64_t j) {
        return row.weights[static_cast<std::size_t>(j)] > 0;
    };
    std::int64_t first = part.begin;
    while (first < part.end && !seen(first)) ++first;
    double early = -infinite, most = -infinite;
    for (std::int64_t j = first; j < part.end; ++j) {
        if (!seen(j)) continue;
        most = std::max(most, row.scores[static_cast<std::size_t>(j)]);
        if (j < first + least_tile) early = most;
    }
    return early == most ? std::optional(most) : std::nullopt;
}

// Known to a few roundings to f32 of the score and its maximum.
bool surely_apart(double a, double b) {
    return std::abs(a - b) > 0x1p-18 * (1 + std::abs(b));
}

/// Weights exp(x) of keys x below the largest score: `below` it they are another number.
struct SmallWeights {
    double below, instead;
    bool in_sum = true;
};

/// The largest score is that of the row, which says nothing of a call in splits, or that of each
/// split.
enum class Largest : std::uint8_t { of_row, of_split };

std::optional<WeightChange> without_small_weights(const SmallWeights& small,
                                                  const oracle::RowDetail& row,
                                                  const std::vector<KeyExtent>& parts) {
    WeightChange change{std::vector<double>(row.scores.size()), {}};
    if (!small.in_sum) change.denominator = 0;
    for (const KeyExtent part : parts) {
        const std::optional<double> most = maximum_that_comes_early(row, part);
        if (!most) return std::nullopt;
        for (auto j = static_cast<std::size_t>(part.begin); j < static_cast<std::size_t>(part.end);
             ++j) {
            const double x = row.scores[j] - *most;
            if (!(row.weights[j] > 0)) continue;
            if (!surely_apart(x, small.below)) return std::nullopt;
            if (x < small.below) change.numerator[j] = small.instead - x;
        }
    }
    return change;
}

void add_small_weights(std::vector<Deviation>& list, const std::string& id, const std::string& says,
                       const SmallWeights& small) {
    for (const Largest largest : {Largest::of_row, Largest::of_split})
        list.push_back(
            weight_deviation(id + (largest == Largest::of_row ? "" : "_by_split"), says,
                             [small, largest](const Specification& s, const oracle::RowDetail& row,
                                              KeyExtent span) -> std::optional<WeightChange> {
                                 const Problem& p = s.problem;
                                 if (p.sink || (p.splits > 1 && largest == Largest::of_row))
                                     return std::nullopt;
                                 return without_small_weights(small, row, split_extents(p, span));
                             }));
}

std::vector<Deviation> ends_of_weights() {
    std::vector<Deviation> list;
    for (const int digits : {2, 3, 4, 5, 6, 7, 8})
        for (const bool in_sum : {true, false})
            add_small_weights(
                list, fmt::format("weights_dropped_1e{}{}", digits, in_sum ? "" : "_summed"),
                fmt::format("weights below 1e-{} of the largest dropped{}", digits,
                            in_sum ? "" : ", their sum not"),
                {-digits * std::log(10.0), -infinite, in_sum});
    for (const int limit : {5, 8, 10, 15, 16, 20, 30, 40, 50, 60, 80}) {
        const double below = -limit;
        add_small_weights(
            list, fmt::format("exp_clamped_at_{}", limit),
            fmt::format("exp(-{0}) for scores more than {0} below the largest", limit),
            {below, below});
        add_small_weights(list, fmt::format("exp_cut_at_{}", limit),
                          fmt::format("no weight for scores more than {} below the largest", limit),
                          {below, -infinite});
    }
    return list;
}

/// Tiles behind the first one whose scores are all 0 or less, as if they were padding.
Deviation tiles_not_positive(std::int64_t tile) {
    return weight_deviation(
        fmt::format("tiles_not_positive_{}", tile),
        fmt::format("no tile of {} keys behind the first whose largest score is not above 0", tile),
        [tile](const Specification& s, const oracle::RowDetail& row,
               KeyExtent) -> std::optional<WeightChange> {
            if (s.problem.splits > 1) return std::nullopt;
            WeightChange change{std::vector<double>(row.scores.size()), {}};
            const auto width = static_cast<std::size_t>(tile);
            for (std::size_t from = width; from < row.scores.size(); from += width) {
                const auto begin = row.scores.begin() + static_cast<std::ptrdiff_t>(from);
                const std::size_t to = std::min(from + width, row.scores.size());
                const double most =
                    *std::max_element(begin, row.scores.begin() + static_cast<std::ptrdiff_t>(to));
                if (most != 0 && !surely_apart(most, 0)) return std::nullopt;
                for (std::size_t j = from; most <= 0 && j < to; ++j)
                    change.numerator[j] = -infinite;
            }
            return change;
        });
}

/// Weights of a tile taken by its own maximum and added to what is scaled by the largest so far:
/// too large where that is not its own.
Deviation tile_own_maximum(std::int64_t tile) {
    return weight_deviation(
        fmt::format("tile_own_maximum_{}", tile),
        fmt::format("weights of each tile of {} keys by its own maximum, not by the largest so far",
                    tile),
        [tile](const Specification& s, const oracle::RowDetail& row,
               KeyExtent) -> std::optional<WeightChange> {
            if (s.problem.splits > 1) return std::nullopt;
            WeightChange change{std::vector<double>(row.scores.size()), {}};
            const auto width = static_cast<std::size_t>(tile);
            double before = -infinite;
            for (std::size_t from = 0; from < row.scores.size(); from += width) {
                const std::size_t to = std::min(from + width, row.scores.size());
                double own = -infinite;
                for (std::size_t j = from; j < to; ++j)
                    if (row.weights[j] > 0) own = std::max(own, row.scores[j]);
                if (!std::isfinite(own)) continue;
                for (std::size_t j = from; own < before && j < to; ++j)
                    change.numerator[j] = before - own;
                before = std::max(before, own);
            }
            return change;
        });
}

/// A row of equal scores is taken for one with a single key.
Deviation first_of_equal() {
    return weight_deviation("first_of_equal", "the first value where all scores are equal",
                            [](const Specification&, const oracle::RowDetail& row,
                               KeyExtent) -> std::optional<WeightChange> {
                                WeightChange change{std::vector<double>(row.scores.size()), {}};
                                bool first = true;
                                for (std::size_t j = 0; j < row.scores.size(); ++j) {
                                    if (!(row.weights[j] > 0)) continue;
                                    if (row.scores[j] != row.max) return WeightChange{};
                                    if (!first) change.numerator[j] = -infinite;
                                    first = false;
                                }
                                return change;
                            });
}

}  // namespace

std::vector<Deviation> fitted_outputs(const AllEvidence& evidence) {
    std::vector<Deviation> list;
    for (auto part :
         {flushed_outputs(evidence), exchanged_values(evidence.wrong.front()), ends_of_weights()})
        list.insert(list.end(), part.begin(), part.end());
    for (const std::int64_t tile : {16, 32, 64, 128}) {
        list.push_back(tiles_not_positive(tile));
        list.push_back(tile_own_maximum(tile));
    }
    list.push_back(first_of_equal());
    return list;
}

}  // namespace attest::diagnosis
