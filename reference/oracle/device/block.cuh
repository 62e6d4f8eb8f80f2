#pragma once
// What the oracle's two kernels share: a block's rows, and sums over its threads.

#include <cstdint>

#include "kernels/simt/simt.hpp"
#include "reference/oracle/device_rows.hpp"
#include "reference/oracle/double_double_sum.hpp"

namespace attest::oracle {

constexpr int oracle_threads = 256;
/// Rows of a block share every key and value that is loaded.
constexpr int block_rows = 4;

/// Four numbers for every key of a row, each an array of len_kv; what a row does not see is never
/// touched. The second kernel writes over what only the first needs.
struct RowScratch {
    double *score, *weight;
    double* low;    ///< of the score, then of the weight; then plain
    double* error;  ///< of the kernel's score; then centred
    __device__ RowScratch(double* scratch, std::int64_t row, std::int64_t len_kv)
        : score(scratch + row * 4 * len_kv),
          weight(score + len_kv),
          low(weight + len_kv),
          error(low + len_kv) {}
};

/// The rows of one block.
struct BlockRows {
    const DeviceRow* row;
    std::int64_t first_row, live;
    std::int64_t first, last;  ///< the keys that any of them sees

    __device__ BlockRows(const DeviceRow* rows, std::int64_t count) {
        first_row = static_cast<std::int64_t>(blockIdx.x) * block_rows;
        row = rows + first_row;
        live = count - first_row < block_rows ? count - first_row : block_rows;
        first = row[0].first;
        last = row[0].last;
        for (std::int64_t r = 1; r < live; ++r) {
            first = row[r].first < first ? row[r].first : first;
            last = row[r].last > last ? row[r].last : last;
        }
    }
    __device__ bool sees(std::int64_t r, std::int64_t j) const {
        return r < live && row[r].first <= j && j < row[r].last;
    }
};

/// combine() over what every thread of the block has, in one order; all threads get it.
template <typename T, typename Combine>
__device__ T over_threads(const T& mine, unsigned char* shared, Combine combine) {
    T* room = reinterpret_cast<T*>(shared);
    const int thread = static_cast<int>(threadIdx.x);
    __syncthreads();
    room[thread] = mine;
    __syncthreads();
    for (int half = oracle_threads / 2; half > 0; half /= 2) {
        if (thread < half) room[thread] = combine(room[thread], room[thread + half]);
        __syncthreads();
    }
    return room[0];
}

/// Where a thread stands when a block goes through columns [first, first + width) of the values:
/// each column is shared by `parts` threads, which take the keys by turns.
struct ColumnPlace {
    std::int64_t first, width, parts, part, column;
    __device__ ColumnPlace(std::int64_t c0, std::int64_t dim_v) {
        const std::int64_t thread = threadIdx.x;
        first = c0;
        width = dim_v - c0 < oracle_threads ? dim_v - c0 : oracle_threads;
        parts = oracle_threads / width;
        part = thread / width;
        column = c0 + thread % width;
    }
    __device__ bool active() const { return part < parts; }
};

}  // namespace attest::oracle
