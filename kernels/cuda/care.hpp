#pragma once
// The care that the GPU kernels take, chosen at compile time. As it stands it is the kernels
// themselves; a planted bug (planted_bugs.hpp) leaves one thing out.

namespace attest::cuda {

struct Care {
    bool barrier_after_load = true;      ///< a tile is read only when all of it is written
    bool barrier_before_load = true;     ///< and overwritten only when everybody has read it
    bool syncwarp_after_weights = true;  ///< before weights are read from shared memory (flash)
    bool last_copy_awaited = true;       ///< the last cp.async group (mma)
    bool idle_warps_stay = true;         ///< warps without rows keep to the barriers
    bool all_lanes_compared = true;      ///< the row maximum is reduced over every lane
    bool all_lanes_named = true;         ///< in the mask of the row sum's shuffle
    bool all_lanes_summed = true;        ///< of a quad, in the row sum (mma)
    bool values_transposed = true;       ///< ldmatrix with .trans for V (mma)
    /// Keys behind the end of a partial tile are zeros, as their values; without the second the
    /// keys alone are left as they were, and their scores are hidden whatever they are (mma).
    bool tail_cleared = true, key_tail_cleared = true;
    bool barrier_after_weights = true;  ///< before other warps read P and dS (backward)
    bool sums_cleared = true;           ///< what atomics are added to starts at 0 (backward)
    /// One block sums dK and dV over the group; else each query head's stores its own (backward).
    bool group_in_one_block = true;
    int rows_too_many = 0;  ///< that a tile copy runs past its shared array
};

/// nvcc takes no class as an argument of a __global__ template: a number that says the same. 0 is
/// all the care there is.
constexpr unsigned coded(Care c) {
    const bool taken[] = {c.barrier_after_load, c.barrier_before_load, c.syncwarp_after_weights,
                          c.last_copy_awaited,  c.idle_warps_stay,     c.all_lanes_compared,
                          c.all_lanes_named,    c.all_lanes_summed,    c.values_transposed,
                          c.tail_cleared,       c.key_tail_cleared,    c.barrier_after_weights,
                          c.sums_cleared,       c.group_in_one_block};
    unsigned code = 0;
    for (int bit = 0; bit < 14; ++bit) code |= taken[bit] ? 0u : 1u << bit;
    return code | static_cast<unsigned>(c.rows_too_many) << 14;
}

constexpr Care decoded(unsigned code) {
    const auto taken = [code](int bit) { return (code >> bit & 1u) == 0; };
    return {taken(0), taken(1), taken(2), taken(3),  taken(4), taken(5),
            taken(6), taken(7), taken(8), taken(9), taken(10), taken(11),
            taken(12), taken(13), static_cast<int>(code >> 14)};
}

}  // namespace attest::cuda
