#pragma once
// CUDA's vocabulary for a C++ compiler that is not nvcc: qualifiers, vector types, built-in
// variables.
//
// threadIdx and its kin are thread_local objects, not macros: CUDA sources use the names as
// parameters too. The scheduler writes them at every switch.

#include <cstdint>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#undef __launch_bounds__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __restrict__ __restrict
#define __constant__

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
    constexpr dim3() = default;
    constexpr dim3(unsigned x_, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

inline float2 make_float2(float x, float y) {
    return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
inline int2 make_int2(int x, int y) {
    return {x, y};
}
inline int4 make_int4(int x, int y, int z, int w) {
    return {x, y, z, w};
}
inline uint2 make_uint2(unsigned x, unsigned y) {
    return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}

// constinit spares each use a call that might initialise; initial-exec a search for the variable
// in the thread's table of libraries.
#define SIMT_THREAD_LOCAL constinit thread_local __attribute__((tls_model("initial-exec")))
extern SIMT_THREAD_LOCAL uint3 threadIdx, blockIdx;
extern SIMT_THREAD_LOCAL dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace simt {

/// A place in the kernel's source, taken where a collective is written.
struct Location {
    const char* file = "";
    unsigned line = 0;
    static constexpr Location here(const char* f = __builtin_FILE(),
                                   unsigned l = __builtin_LINE()) {
        return {f, l};
    }
};

}  // namespace simt
