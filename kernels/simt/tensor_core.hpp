#pragma once
// cp.async, ldmatrix and mma under the names both worlds share: device.hpp has the same functions
// as PTX.

#include <cstdint>
#include <type_traits>

#include "kernels/simt/block.hpp"
#include "kernels/simt/half.hpp"

namespace simt {

/// Copies `bytes` of the 16 at source to shared memory and zero-fills the rest; lands at its wait,
/// not before.
void cp_async_16(void* destination, const void* source, int bytes = 16);
void cp_async_commit();
void cp_async_wait_groups(std::size_t groups_left);
template <int groups_left>
void cp_async_wait() {
    cp_async_wait_groups(groups_left);
}

/// Four 8x8 matrices of 16-bit elements; lane 8m + r gives the address of row r of matrix m.
void ldmatrix_x4(std::uint32_t (&r)[4], const void* row, Location at = Location::here());
void ldmatrix_x4_trans(std::uint32_t (&r)[4], const void* row, Location at = Location::here());

enum class MmaType : std::uint8_t { f16, bf16, tf32 };
/// D (16x8, f32) += A (16xk) B (kx8), fragments as the PTX manual lays them out over the lanes.
void mma_16x8x16(MmaType type, float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                 std::uint32_t b1, const Location& location);
void mma_16x8x8_tf32(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                     const Location& location);

template <typename T>
void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                  Location at = Location::here()) {
    static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
    mma_16x8x16(std::is_same_v<T, __half> ? MmaType::f16 : MmaType::bf16, d, a, b0, b1, at);
}
inline void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                             std::uint32_t b1, Location at = Location::here()) {
    mma_16x8x8_tf32(d, a, b0, b1, at);
}

}  // namespace simt
