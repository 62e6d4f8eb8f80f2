#pragma once
// The state of cpu_flash between its tiles. One key/value head at a time: a tile of 64 keys is
// packed once (converted, rotated, keys transposed) and every query of every head of the group
// takes it in, so that packing is paid per key and not per query.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/call.hpp"
#include "kernels/cpu/rope.hpp"

namespace attest::cpu {

inline constexpr std::int64_t flash_tile = 64;  ///< keys; one bit each in a row's set of keys

template <typename Real>
struct FlashBuffers {
    std::int64_t rows = 0;          ///< group * len_q
    std::int64_t value_stride = 0;  ///< dim_v, rounded up to whole vectors of 64 bytes
    RopeTable<Real> rope;
    Real* queries;    ///< [rows, dim_qk]
    Real* keys;       ///< [dim_qk, flash_tile]: transposed
    Real* values;     ///< [flash_tile, value_stride]
    Real* row;        ///< [max(dim_qk, dim_v)]
    Real* scores;     ///< [2, flash_tile]
    Real* bias;       ///< [flash_tile]
    Real *max, *sum;  ///< [rows]
    Real* output;     ///< [rows, value_stride]
    bool* seen;       ///< [rows]

    FlashBuffers(const attest_problem& p, Scratch& scratch)
        : rows(p.heads_kv > 0 ? p.heads_q / p.heads_kv * p.len_q : 0),
          value_stride((p.dim_v + 15) / 16 * 16),
          rope(p, scratch),
          queries(scratch.take<Real>(rows * p.dim_qk)),
          keys(scratch.take<Real>(p.dim_qk * flash_tile)),
          values(scratch.take<Real>(flash_tile * value_stride)),
          row(scratch.take<Real>(p.dim_qk > p.dim_v ? p.dim_qk : p.dim_v)),
          scores(scratch.take<Real>(2 * flash_tile)),
          bias(scratch.take<Real>(flash_tile)),
          max(scratch.take<Real>(rows)),
          sum(scratch.take<Real>(rows)),
          output(scratch.take<Real>(rows * value_stride)),
          seen(scratch.take<bool>(rows)) {}
};

/// Packs keys [key0, key0 + count) of a segment; columns past `count` are zeros up to a whole
/// vector.
template <typename Real>
void pack_tile(const Call& call, const Segment& s, std::int64_t kv_head, std::int64_t key0,
               std::int64_t count, FlashBuffers<Real>& to) noexcept;

/// Which of the tile's keys query i sees, one bit each; fills `to.bias` where the problem has one.
template <typename Real>
std::uint64_t visible_keys(const Call& call, const Segment& s, std::int64_t head, std::int64_t i,
                           std::int64_t key0, std::int64_t count, FlashBuffers<Real>& to) noexcept;

template <typename Real>
void start_rows(const Call& call, const Segment& s, std::int64_t kv_head,
                FlashBuffers<Real>& to) noexcept;
template <typename Real>
void finish_rows(const Call& call, const Segment& s, std::int64_t kv_head,
                 FlashBuffers<Real>& from) noexcept;

/// The tile's work for all rows, on the best instruction set this machine has (flash_simd.cpp).
void take_tile(const Call& call, const Segment& s, std::int64_t kv_head, std::int64_t key0,
               std::int64_t count, FlashBuffers<float>& at);
void take_tile(const Call& call, const Segment& s, std::int64_t kv_head, std::int64_t key0,
               std::int64_t count, FlashBuffers<double>& at);

/// The backward pass (flash_backward.cpp): what it wants of the workspace, and one call.
std::size_t flash_backward_workspace(const attest_problem& problem) noexcept;
int flash_backward(const attest_call* from, char* error, std::size_t cap);

/// exp as the kernel computes it, element by element, in place: for the test of its claim.
void exp_in_place(float* values, std::int64_t count);
void exp_in_place(double* values, std::int64_t count);

}  // namespace attest::cpu
