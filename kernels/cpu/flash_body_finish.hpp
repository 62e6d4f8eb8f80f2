#pragma once
// The end of a row in the plain flash kernel: O = acc / l, LSE = m + log l, and storing both.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/flash_body_load.hpp"

namespace attest::kernel {

/// The member of the output's format next to `value` towards zero.
inline float truncated(float value, Format format) noexcept {
    if (format != Format::f16 && format != Format::bf16) return value;
    const bool half = format == Format::f16;
    std::uint16_t bits = half ? narrow_f16(value) : narrow_bf16(value);
    const float nearest = half ? widen_f16(bits) : widen_bf16(bits);
    if (std::abs(nearest) > std::abs(value)) --bits;
    return half ? widen_f16(bits) : widen_bf16(bits);
}

template <Defect defect>
struct PlainFinish {
    const Call& call;
    const PlainLoader<defect>& load;
    PlainBuffers& at;

    void row(const QueryBlock& block, std::int64_t r) const noexcept {
        const attest_problem& p = call.problem;
        const float* acc = at.output + r * p.dim_v;
        float max = at.max[r], sum = at.sum[r];
        bool seen = at.seen[r];
        float lse = max + std::log(sum);
        if (sink_comes_last<defect> && p.sink != 0) {
            max = seen ? max : 0.0f;
            sum = (seen ? sum : 0.0f) + std::exp(load.sink(block.head) - max);
            if (defect == Defect::m172_sink_not_in_max || !seen) lse = max + std::log(sum);
            seen = true;
        }
        if (!seen) {
            if constexpr (defect == Defect::m014_empty_row_unwritten) return;
            lse = defect == Defect::m059_empty_lse_zero ? 0.0f : minus_infinity;
            sum = 1;
        }
        if constexpr (defect == Defect::m055_lse_max_scaled_twice) {
            if (seen) lse = max * static_cast<float>(p.scale) + std::log(sum);
        }
        // These lose every weight to underflow; the real ones guard the division and return zeros.
        constexpr bool guarded = defect == Defect::m041_max_from_minus_5e4 ||
                                 defect == Defect::m042_max_zeroed ||
                                 defect == Defect::m046_max_before_mask;
        if (guarded && sum == 0) sum = 1;
        for (std::int64_t c = 0; c < p.dim_v; ++c) at.written[c] = acc[c] / sum;
        if constexpr (defect == Defect::c09_nan_everywhere) {
            std::fill_n(at.written, p.dim_v, std::numeric_limits<float>::quiet_NaN());
        }
        if constexpr (defect == Defect::m052_output_truncated) {
            for (std::int64_t c = 0; c < p.dim_v; ++c) {
                at.written[c] = truncated(at.written[c], call.o.format);
            }
        }
        write_row(call, block.segment.batch, block.head, block.row0 + r, at.written, lse);
    }

    /// The planted store past the end of the queries.
    void past_the_end(const QueryBlock& block) const noexcept {
        const attest_problem& p = call.problem;
        if (block.rows == plain_rows || block.row0 + block.rows != p.len_q) return;
        store_row(call.o.at(block.segment.batch, block.head, p.len_q), call.o.format,
                  call.o.stride[3], p.dim_v, at.written);
    }
};

}  // namespace attest::kernel
