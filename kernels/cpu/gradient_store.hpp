#pragma once
// What the backward passes of the CPU kernels share: where the gradients of mask, sinks and slopes
// are summed, and how they and the zeros of what nobody sees are written.

#include <cstdint>

#include "kernels/cpu/call.hpp"

namespace attest::cpu {

/// Room for the sums of a mask's gradient, whatever its axes of extent 1.
inline std::int64_t mask_sums(const attest_problem& p) noexcept {
    if (p.mask_kind != ATTEST_MASK_ADDITIVE || p.want_grad == 0) return 0;
    return p.batch * p.heads_q * p.len_q * p.len_kv;
}

/// Which of the sums the pair of query i and key j belongs to; they count within the segment.
inline std::int64_t mask_index(const Call& call, const Segment& s, std::int64_t head,
                               std::int64_t i, std::int64_t j) noexcept {
    const std::array<std::int64_t, 4>& shape = call.d_mask.shape;
    const std::int64_t at[] = {s.batch, head, s.query0 + i, s.key0 + j};
    std::int64_t flat = 0;
    for (std::size_t axis = 0; axis < 4; ++axis)
        flat = flat * shape[axis] + (shape[axis] == 1 ? 0 : at[axis]);
    return flat;
}

void write_zeros(const Call& call) noexcept;  ///< to dQ, dK and dV
template <typename Real>
void store_mask(const Call& call, const Real* sums) noexcept;
template <typename Real>
void store_heads(const Operand& to, const Real* sums) noexcept;  ///< a number a head

}  // namespace attest::cpu
