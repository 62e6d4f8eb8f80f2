#pragma once
// Scores of one tile in the plain flash kernel: which tiles a block of queries needs, which keys of
// a tile are visible, and what is added to their scores.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/call.hpp"
#include "kernels/cpu/defect.hpp"
#include "kernels/cpu/score.hpp"

namespace attest::kernel {

inline constexpr std::int64_t plain_rows = 8;   ///< queries a block
inline constexpr std::int64_t plain_tile = 16;  ///< keys a tile

/// Queries [row0, row0 + rows) of one head of one segment.
struct QueryBlock {
    Segment segment;
    std::int64_t head = 0, kv_head = 0, row0 = 0, rows = 0;
};

constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) noexcept {
    return a / b - (a % b < 0 ? 1 : 0);
}

template <Defect defect>
struct PlainMask {
    const Call& call;
    const QueryBlock& block;

    std::int64_t causal_diagonal(std::int64_t i) const noexcept {
        const std::int64_t offset = block.segment.offset;
        if constexpr (defect == Defect::m001_causal_top_left) return i;
        if constexpr (defect == Defect::m003_causal_one_more) return i + offset + 1;
        if constexpr (defect == Defect::m008_row_divided_by_group) return i / call.group + offset;
        return i + offset;
    }

    std::int64_t window_diagonal(std::int64_t i) const noexcept {
        if constexpr (defect == Defect::m007_window_row_of_chunk) return i;
        return i + block.segment.offset;
    }

    std::int64_t window_left() const noexcept {
        const std::int64_t left = call.problem.window_left;
        if constexpr (defect == Defect::m009_window_one_wider) return left < 0 ? left : left + 1;
        return left;
    }

    std::int64_t key_limit() const noexcept {
        if constexpr (defect == Defect::m016_tail_one_more) return block.segment.keys + 1;
        return block.segment.keys;
    }

    bool causal_checked(std::int64_t key0) const noexcept {
        const Segment& s = block.segment;
        if constexpr (defect == Defect::m004_causal_in_one_tile) {
            return key0 == floor_div(s.offset + block.row0, plain_tile) * plain_tile;
        }
        if constexpr (defect == Defect::m006_aligned_path_forgets_causal) {
            return s.keys % plain_tile != 0;
        }
        return true;
    }

    /// Tiles [first, last) that some row of the block can reach.
    KeyRange tiles() const noexcept {
        const attest_problem& p = call.problem;
        KeyRange keys{0, key_limit()};
        const std::int64_t last_row = block.row0 + block.rows - 1;
        if (p.causal != 0) keys.last = std::min(keys.last, causal_diagonal(last_row) + 1);
        if (p.window_right >= 0 && p.window_right < keys.last - window_diagonal(last_row)) {
            keys.last = window_diagonal(last_row) + p.window_right + 1;
        }
        if (p.window_left >= 0) {
            constexpr bool from_last = defect == Defect::m011_first_tile_of_last_row;
            const std::int64_t row = from_last ? last_row : block.row0;
            keys.first = std::max(keys.first, window_diagonal(row) - window_left());
        }
        if constexpr (defect == Defect::e05_all_tiles_visited) keys = {0, block.segment.keys};
        if constexpr (defect == Defect::m042_max_zeroed) keys.first = 0;
        if (keys.last <= keys.first) return {0, 0};
        return {keys.first / plain_tile, (keys.last + plain_tile - 1) / plain_tile};
    }

    bool reachable(std::int64_t i, std::int64_t j, std::int64_t key0) const noexcept {
        const attest_problem& p = call.problem;
        if (p.causal != 0 && causal_checked(key0) && j > causal_diagonal(i)) return false;
        if (p.window_left >= 0 && j < window_diagonal(i) - window_left()) return false;
        return p.window_right < 0 || j - window_diagonal(i) <= p.window_right;
    }

    Bias<float> mask_value(std::int64_t i, std::int64_t j) const noexcept {
        const Segment& s = block.segment;
        const Operand& mask = call.mask;
        Bias<float> bias;
        if (call.problem.mask_kind == ATTEST_MASK_NONE) return bias;
        const std::byte* at = mask.at(s.batch, block.head, i, j);
        if constexpr (defect == Defect::m023_mask_head_stride) {
            if (mask.shape[1] == 1) {
                at += block.head * call.problem.len_q * call.problem.len_kv * mask.element_bytes;
            }
        }
        if (call.problem.mask_kind == ATTEST_MASK_BOOL) {
            bias.hidden = *at == std::byte{0};
            if constexpr (defect == Defect::m021_bool_mask_added) {
                bias = {bias.hidden ? 0.0f : 1.0f, false};
            }
            return bias;
        }
        load_row(at, mask.format, 1, 1, &bias.value);
        bias.hidden = bias.value == -std::numeric_limits<float>::infinity();
        if constexpr (defect == Defect::m177_floor_is_hidden) bias.hidden = bias.value <= -1e4f;
        if constexpr (defect == Defect::m025_bias_scaled) {
            bias.value *= static_cast<float>(call.problem.scale);
        }
        if constexpr (defect == Defect::m022_bias_as_bool) bias = {0.0f, bias.value == 0.0f};
        return bias;
    }

    float alibi(std::int64_t i, std::int64_t j) const noexcept {
        if (call.problem.alibi == 0) return 0;
        std::int64_t slope_of = block.head;
        if constexpr (defect == Defect::m168_alibi_slope_of_batch) {
            slope_of += block.segment.batch * call.problem.heads_q;
        }
        const std::int64_t ahead = i + block.segment.offset - j;
        const std::int64_t distance =
            defect == Defect::m169_alibi_signed_distance ? ahead : std::abs(ahead);
        const float term = call.alibi_slopes.real(slope_of) * static_cast<float>(distance);
        if constexpr (defect == Defect::m167_alibi_sign) return term;
        return -term;
    }

    float score(float dot, float bias) const noexcept {
        const attest_problem& p = call.problem;
        float scale = static_cast<float>(p.scale);
        if constexpr (defect == Defect::m085_scale_ignored) {
            scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(p.dim_qk)));
        }
        if constexpr (defect == Defect::m145_query_scaled_in_place) scale = 1;
        if constexpr (defect == Defect::m027_cap_before_scale) {
            return soft_capped(dot, p.softcap) * scale + bias;
        }
        if constexpr (defect == Defect::m028_cap_ignored) return scale * dot + bias;
        return soft_capped(scale * dot, p.softcap) + bias;
    }
};

}  // namespace attest::kernel
