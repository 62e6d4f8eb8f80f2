#pragma once
// Rotary positions: channel pair c of `dims` turns by position * base^(-2c/dims). Angles, sines and
// the rotation itself are taken one step wider than the accumulate format and rounded once, so
// that large positions keep their phase.

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/call.hpp"

namespace attest::cpu {

template <typename Real>
class RopeTable {
public:
    using Wide = std::conditional_t<std::is_same_v<Real, float>, double, long double>;

    /// Takes the tables from the scratch: sines and cosines of every key position a segment has.
    RopeTable(const attest_problem& problem, Scratch& scratch) : problem_(problem) {
        if (problem.rope_kind == ATTEST_ROPE_NONE) return;
        dims_ = problem.rope_dims > 0 ? problem.rope_dims : problem.dim_qk;
        pairs_ = dims_ / 2;
        frequency_ = scratch.take<Wide>(pairs_);
        turns_ = scratch.take<Wide>(2 * pairs_ * problem.len_kv);
    }

    void fill() noexcept {
        for (std::int64_t c = 0; c < pairs_; ++c) {
            frequency_[c] = std::pow(static_cast<Wide>(problem_.rope_base),
                                     static_cast<Wide>(-2 * c) / static_cast<Wide>(dims_));
        }
        if ((problem_.flags & ATTEST_FLAG_KEYS_ROTATED) != 0) return;
        for (std::int64_t j = 0; j < (pairs_ > 0 ? problem_.len_kv : 0); ++j) {
            for (std::int64_t c = 0; c < pairs_; ++c) turn_of(j, c, turns_ + 2 * (j * pairs_ + c));
        }
    }

    void turn_key(std::int64_t j, Real* row) const noexcept {
        if ((problem_.flags & ATTEST_FLAG_KEYS_ROTATED) != 0) return;
        for (std::int64_t c = 0; c < pairs_; ++c) rotate(turns_ + 2 * (j * pairs_ + c), c, row);
    }

    /// `position` counts from key 0; it may be negative.
    void turn_query(std::int64_t position, Real* row) const noexcept {
        for (std::int64_t c = 0; c < pairs_; ++c) {
            Wide turn[2];
            turn_of(position, c, turn);
            rotate(turn, c, row);
        }
    }

    /// The gradients of turned rows, as gradients of the rows before: the other way round.
    void turn_key_back(std::int64_t j, Real* row) const noexcept {
        if ((problem_.flags & ATTEST_FLAG_KEYS_ROTATED) != 0) return;
        for (std::int64_t c = 0; c < pairs_; ++c) {
            const Wide* turn = turns_ + 2 * (j * pairs_ + c);
            const Wide back[2] = {turn[0], -turn[1]};
            rotate(back, c, row);
        }
    }
    void turn_query_back(std::int64_t position, Real* row) const noexcept {
        for (std::int64_t c = 0; c < pairs_; ++c) {
            Wide turn[2];
            turn_of(position, c, turn);
            turn[1] = -turn[1];
            rotate(turn, c, row);
        }
    }

private:
    void turn_of(std::int64_t position, std::int64_t c, Wide* turn) const noexcept {
        const Wide angle = static_cast<Wide>(problem_.rope_offset + position) * frequency_[c];
        turn[0] = std::cos(angle);
        turn[1] = std::sin(angle);
    }

    void rotate(const Wide* turn, std::int64_t c, Real* row) const noexcept {
        const bool half = problem_.rope_kind == ATTEST_ROPE_HALF;
        Real& x = row[half ? c : 2 * c];
        Real& y = row[half ? c + pairs_ : 2 * c + 1];
        const Wide a = static_cast<Wide>(x), b = static_cast<Wide>(y);
        x = static_cast<Real>(a * turn[0] - b * turn[1]);
        y = static_cast<Real>(a * turn[1] + b * turn[0]);
    }

    const attest_problem& problem_;
    std::int64_t dims_ = 0, pairs_ = 0;
    Wide* frequency_ = nullptr;
    Wide* turns_ = nullptr;
};

}  // namespace attest::cpu
