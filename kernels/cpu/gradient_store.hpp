#pragma once
// What the backward passes of the CPU kernels share: where the gradients of mask, sinks and slopes
// are summed, how they and the zeros of what nobody sees are written, and the gradient of a row's
// LSE.

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

/// Of query i of the segment; 0 where none is given.
template <typename Real>
Real lse_gradient_of(const Call& call, const Segment& s, std::int64_t head, std::int64_t i) {
    Real given = 0;
    if (call.d_lse)
        load_row(call.d_lse.at(s.batch, head, s.query0 + i), call.d_lse.format, 1, 1, &given);
    return given;
}

void write_zeros(const Call& call) noexcept;  ///< to dQ, dK and dV

/// Sums over the whole call: the gradients of the mask, and of sinks and slopes, a number a head.
template <typename Real>
struct SharedSums {
    Real *mask, *sinks, *slopes;
    SharedSums(const attest_problem& p, Scratch& scratch)
        : mask(scratch.take<Real>(mask_sums(p))),
          sinks(scratch.take<Real>(p.heads_q)),
          slopes(scratch.take<Real>(p.heads_q)) {}
    void clear(const attest_problem& p) noexcept;
    void store(const Call& call) const noexcept;
};

}  // namespace attest::cpu
