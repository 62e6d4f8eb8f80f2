#pragma once
// The groups of CUDA's cooperative_groups that lie within a block: the block itself, and tiles of
// up to a warp, with their barriers, shuffles, votes and reductions. Each is what CUDA says it is
// made of, and is checked as that. Grids, clusters and groups of whoever comes by are not here.

#include <type_traits>

#include "kernels/simt/collectives.hpp"
#include "kernels/simt/types.hpp"

namespace cooperative_groups {

class thread_block {
public:
    static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned num_threads() { return size(); }
    static unsigned thread_rank() {
        return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    }
    static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
    static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
    static dim3 dim_threads() { return blockDim; }
    static void sync(simt::Location at = simt::Location::here()) { __syncthreads(at); }
};

inline thread_block this_thread_block() {
    return {};
}

/// `Size` threads of a block that follow one another: a power of two, up to a warp. Its rank is
/// among the tiles that its parent, the block or a larger tile, was parted into; written without a
/// parent's type it keeps what it was made with.
template <unsigned Size, typename Parent = void>
class thread_block_tile {
    static_assert(Size > 0 && Size <= 32 && (Size & (Size - 1)) == 0, "1, 2, 4, 8, 16 or 32");
    static constexpr int width = static_cast<int>(Size);
    static unsigned mask() {
        const unsigned lane = thread_block::thread_rank() % 32, first = lane & ~(Size - 1);
        return (Size == 32 ? ~0u : (1u << Size % 32) - 1) << first;
    }

    unsigned rank_, tiles_;

public:
    thread_block_tile(unsigned rank_in_parent, unsigned parent_size)
        : rank_(rank_in_parent / Size), tiles_((parent_size + Size - 1) / Size) {}
    template <typename Other>
    thread_block_tile(const thread_block_tile<Size, Other>& other)
        : rank_(other.meta_group_rank()), tiles_(other.meta_group_size()) {}

    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    static unsigned thread_rank() { return thread_block::thread_rank() % Size; }
    unsigned meta_group_rank() const { return rank_; }
    unsigned meta_group_size() const { return tiles_; }
    static void sync(simt::Location at = simt::Location::here()) { __syncwarp(mask(), at); }

    template <typename T>
    T shfl(T value, int source, simt::Location at = simt::Location::here()) const {
        return __shfl_sync(mask(), value, source, width, at);
    }
    template <typename T>
    T shfl_down(T value, unsigned by, simt::Location at = simt::Location::here()) const {
        return __shfl_down_sync(mask(), value, by, width, at);
    }
    template <typename T>
    T shfl_up(T value, unsigned by, simt::Location at = simt::Location::here()) const {
        return __shfl_up_sync(mask(), value, by, width, at);
    }
    template <typename T>
    T shfl_xor(T value, int flip, simt::Location at = simt::Location::here()) const {
        return __shfl_xor_sync(mask(), value, flip, width, at);
    }
    int any(int predicate, simt::Location at = simt::Location::here()) const {
        return __any_sync(mask(), predicate, at);
    }
    int all(int predicate, simt::Location at = simt::Location::here()) const {
        return __all_sync(mask(), predicate, at);
    }
    /// Bit n is the tile's thread n.
    unsigned ballot(int predicate, simt::Location at = simt::Location::here()) const {
        const unsigned lanes = __ballot_sync(mask(), predicate, at) & mask();
        return lanes >> (thread_block::thread_rank() % 32 & ~(Size - 1));
    }
};

template <unsigned Size, typename Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent& parent) {
    return {parent.thread_rank(), parent.size()};
}

template <typename Group>
void sync(const Group&, simt::Location at = simt::Location::here()) {
    Group::sync(at);
}

template <typename T>
struct plus {
    T operator()(T a, T b) const { return a + b; }
};
template <typename T>
struct less {  ///< the smaller
    T operator()(T a, T b) const { return b < a ? b : a; }
};
template <typename T>
struct greater {  ///< the larger
    T operator()(T a, T b) const { return a < b ? b : a; }
};
template <typename T>
struct bit_and {
    T operator()(T a, T b) const { return a & b; }
};
template <typename T>
struct bit_or {
    T operator()(T a, T b) const { return a | b; }
};
template <typename T>
struct bit_xor {
    T operator()(T a, T b) const { return a ^ b; }
};

/// In every thread, of the values of all of the tile's.
template <unsigned Size, typename Parent, typename T, typename Combine>
T reduce(const thread_block_tile<Size, Parent>& tile, T value, Combine combine,
         simt::Location at = simt::Location::here()) {
    for (unsigned flip = Size / 2; flip > 0; flip /= 2)
        value = combine(value, tile.shfl_xor(value, static_cast<int>(flip), at));
    return value;
}

}  // namespace cooperative_groups
