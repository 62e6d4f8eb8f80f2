#pragma once
// f32, f16 and bf16 as numbers: reading, rounding to nearest even, packing two into a register.

#include "kernels/cuda/params.hpp"
#include "kernels/simt/simt.hpp"

namespace attest::cuda {

template <typename T>
struct Number;

template <>
struct Number<float> {
    __device__ static float read(float x) { return x; }
    __device__ static float round(float x) { return x; }
};

template <>
struct Number<__half> {
    __device__ static float read(__half x) { return __half2float(x); }
    __device__ static __half round(float x) { return __float2half_rn(x); }
    __device__ static std::uint32_t pack(float x, float y) {
        const __half2 pair = __floats2half2_rn(x, y);
        std::uint32_t bits;
        memcpy(&bits, &pair, sizeof bits);
        return bits;
    }
};

template <>
struct Number<__nv_bfloat16> {
    __device__ static float read(__nv_bfloat16 x) { return __bfloat162float(x); }
    __device__ static __nv_bfloat16 round(float x) { return __float2bfloat16_rn(x); }
    __device__ static std::uint32_t pack(float x, float y) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
        std::uint32_t bits;
        memcpy(&bits, &pair, sizeof bits);
        return bits;
    }
};

template <typename T>
__device__ inline T* at(const Strided& t, std::int64_t a, std::int64_t b, std::int64_t c,
                        std::int64_t d) {
    return static_cast<T*>(t.data) + a * t.stride[0] + b * t.stride[1] + c * t.stride[2] +
           d * t.stride[3];
}

}  // namespace attest::cuda
