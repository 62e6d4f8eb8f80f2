#pragma once
// The online softmax of the plain flash kernel: one row takes in one tile of scores. m is the
// largest score so far, l the sum of exp(s - m), acc the sum of exp(s - m) v; where m grows, l and
// acc are multiplied by exp(m_old - m_new).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/flash_body_mask.hpp"

namespace attest::kernel {

inline constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// Nothing is subtracted from the scores.
template <Defect defect>
inline constexpr bool no_frame =
    defect == Defect::m047_no_max || defect == Defect::c02_uniform_weights;

/// The sink joins after the keys, not before: in the two defects that leave it out of something.
template <Defect defect>
inline constexpr bool sink_comes_last =
    defect == Defect::m172_sink_not_in_max || defect == Defect::m173_sink_not_in_lse;

/// One row's state and the tile it takes in.
struct PlainRow {
    float& max;
    float& sum;
    bool& seen;             ///< some key was visible
    float* output;          ///< acc, [dim_v]
    float* scores;          ///< [plain_tile]
    const bool* hidden;     ///< [plain_tile]
    const float* values;    ///< [plain_tile, dim_v]
    std::int64_t keys = 0;  ///< of the tile
    std::int64_t dim_v = 0;
    Format weights = Format::f32;
};

template <Defect defect>
float plain_exp(float x) noexcept {
    if constexpr (defect == Defect::c07_short_range_exp) {
        const double at = std::max(static_cast<double>(x), -4.0);
        double series = 1;
        for (int n = 24; n > 0; --n) series = 1 + at / n * series;
        return static_cast<float>(series);
    }
    return std::exp(x);
}

/// The tile's largest score, and whether the row sees any of its keys.
template <Defect defect>
float tile_max(const PlainRow& row, bool& any) noexcept {
    float max = minus_infinity;
    for (std::int64_t j = 0; j < row.keys; ++j) {
        any = any || !row.hidden[j];
        if constexpr (defect == Defect::m060_nan_dropped) {
            if (!row.hidden[j] && row.scores[j] > max) max = row.scores[j];
        } else if constexpr (defect == Defect::m046_max_before_mask) {
            max = larger(row.scores[j], max);
        } else {
            if (!row.hidden[j]) max = larger(row.scores[j], max);
        }
    }
    return max;
}

/// Hidden keys, where the defect gives them a finite score instead of leaving them out.
template <Defect defect>
bool reveal(PlainRow& row, bool* hidden) noexcept {
    constexpr bool mean = defect == Defect::m012_empty_row_mean;
    if constexpr (!mean && defect != Defect::m019_hidden_is_minus_1e4) {
        return false;
    } else {
        for (std::int64_t j = 0; j < row.keys; ++j) {
            if (hidden[j]) row.scores[j] = mean ? -1e30f : -1e4f;
            hidden[j] = false;
        }
        return true;
    }
}

template <Defect defect>
void add_value(const PlainRow& row, float weight, const float* value) noexcept {
    float fed = rounded(weight, row.weights);
    if constexpr (defect == Defect::m050_weights_to_bf16) fed = rounded(weight, Format::bf16);
    for (std::int64_t c = 0; c < row.dim_v; ++c) {
        row.output[c] += fed * value[c];
        if constexpr (defect == Defect::m049_half_accumulator) {
            row.output[c] = rounded(row.output[c], Format::f16);
        }
    }
}

template <Defect defect>
void absorb(const PlainRow& row) noexcept {
    bool any = false;
    const float largest = tile_max<defect>(row, any);
    if (!any) {
        if constexpr (defect == Defect::m042_max_zeroed) {
            if (row.max == minus_infinity) row.max = 0;
        }
        return;
    }
    row.seen = true;
    if constexpr (defect == Defect::m053_small_tiles_skipped) {
        if (largest < row.max - 6) return;
    }
    float max = larger(row.max, largest);
    if constexpr (no_frame<defect>) max = row.max = 0;
    const float frame = max == minus_infinity ? 0 : max;  // scores of -inf alone: weights of zero
    const float rescale = plain_exp<defect>(row.max - frame);
    if constexpr (defect != Defect::m043_output_not_rescaled) {
        for (std::int64_t c = 0; c < row.dim_v; ++c) row.output[c] *= rescale;
    }
    float sum = 0;
    for (std::int64_t j = 0; j < row.keys; ++j) {
        if (row.hidden[j]) continue;
        float weight = plain_exp<defect>(row.scores[j] - frame);
        if constexpr (defect == Defect::m060_nan_dropped) {
            if (!(row.scores[j] <= frame)) weight = 0;
        }
        if constexpr (defect == Defect::c02_uniform_weights) weight = 1;
        sum += weight;
        add_value<defect>(row, weight, row.values + j * row.dim_v);
    }
    if constexpr (defect == Defect::m045_sum_rescaled_late) {
        row.sum = row.max == minus_infinity ? sum : (row.sum + sum) * rescale;
    } else {
        row.sum = row.sum * rescale + sum;
    }
    row.max = max;
}

}  // namespace attest::kernel
