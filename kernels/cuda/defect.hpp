#pragma once
// The planted bugs of the GPU kernels: one change each, chosen at compile time. `none` is the
// kernel itself.

namespace attest_cuda {

enum class Defect : int {
    none,
    no_barrier_after_load,      ///< the tile is read while it is being written
    narrow_reduction,           ///< the row maximum misses lanes
    copy_one_row_too_far,       ///< a tile copy runs past its shared array
    copy_never_awaited,         ///< the last cp.async group is read in flight (mma)
    tail_not_cleared,           ///< keys behind the end of a partial tile are left as they were
    idle_warps_skip_barriers,   ///< warps without rows leave the loop
    tile_reused_early,          ///< no barrier before the tile is overwritten
    no_syncwarp_after_weights,  ///< weights are read from shared memory without a __syncwarp
                                ///< (flash)
    value_not_transposed,       ///< ldmatrix without .trans for V (mma)
    wrong_shuffle_mask,         ///< half a warp is named, all of it takes part
    lane_forgotten,             ///< the row sum misses a lane of the quad (mma)
    key_tail_not_cleared,  ///< as tail_not_cleared, but the keys alone: their scores are hidden
                           ///< whatever they are (mma)
};
inline constexpr int defect_count = 13;

}  // namespace attest_cuda
