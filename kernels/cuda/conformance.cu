// Does an instruction do what its definition says? Run on a GPU and on the CPU it asks both the
// same questions, on data for which the answer is exact: what agrees with the definition in both
// worlds agrees to the bit. Prints one line an instruction; exit 1 where one differs.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/simt/simt.hpp"

namespace {

using Words = std::vector<std::uint32_t>;
constexpr int lanes = 32;

__global__ void shuffles(const std::uint32_t* in, std::uint32_t* out) {
    const unsigned lane = threadIdx.x, all = 0xffffffffu;
    const std::uint32_t x = in[lane];
    out[lane] = __shfl_sync(all, x, static_cast<int>(lane * 7));
    out[lane + 32] = __shfl_xor_sync(all, x, 5);
    out[lane + 64] = __shfl_up_sync(all, x, 3u);
    out[lane + 96] = __shfl_down_sync(all, x, 3u);
    out[lane + 128] = __shfl_sync(all, x, 3, 8);
    out[lane + 160] = __shfl_up_sync(all, x, 3u, 8);
    out[lane + 192] = __shfl_down_sync(all, x, 3u, 8);
    out[lane + 224] = __shfl_xor_sync(all, x, 9, 8);
}
Words expect_shuffles(const Words& x) {
    Words out;
    const auto ask = [&](auto source) {
        for (int lane = 0; lane < lanes; ++lane)
            out.push_back(x[static_cast<std::size_t>(source(lane))]);
    };
    ask([](int l) { return l * 7 % 32; });
    ask([](int l) { return l ^ 5; });
    ask([](int l) { return l < 3 ? l : l - 3; });
    ask([](int l) { return l + 3 > 31 ? l : l + 3; });
    ask([](int l) { return l / 8 * 8 + 3; });
    ask([](int l) { return l % 8 < 3 ? l : l - 3; });
    ask([](int l) { return l % 8 + 3 > 7 ? l : l + 3; });
    // With a width, an earlier segment may be read, a later one may not.
    ask([](int l) { return (l ^ 9) / 8 <= l / 8 ? l ^ 9 : l; });
    return out;
}

__global__ void votes(const std::uint32_t* in, std::uint32_t* out) {
    const unsigned lane = threadIdx.x;
    const int yes = (in[lane] & 1u) != 0 ? 1 : 0;
    out[lane] = __ballot_sync(0xffffffffu, yes);
    out[lane + 32] = static_cast<std::uint32_t>(__any_sync(0xffffffffu, yes) != 0);
    out[lane + 64] = static_cast<std::uint32_t>(__all_sync(0xffffffffu, yes) != 0);
    out[lane + 96] = static_cast<std::uint32_t>(__syncthreads_count(yes));
    out[lane + 128] = static_cast<std::uint32_t>(__syncthreads_or(yes) != 0);
    out[lane + 160] = static_cast<std::uint32_t>(__syncthreads_and(yes) != 0);
}
Words expect_votes(const Words& x) {
    std::uint32_t ballot = 0, count = 0;
    for (int lane = 0; lane < lanes; ++lane) {
        const std::uint32_t yes = x[static_cast<std::size_t>(lane)] & 1u;
        ballot |= yes << lane;
        count += yes;
    }
    Words out;
    for (const std::uint32_t answer : {ballot, count > 0 ? 1u : 0u, count == 32 ? 1u : 0u, count,
                                       count > 0 ? 1u : 0u, count == 32 ? 1u : 0u})
        out.insert(out.end(), lanes, answer);
    return out;
}

/// Four matrices of 8 rows of 16 bytes; a copy of the first half of them is cut to 6 bytes.
template <bool transposed>
__global__ void copies_and_matrices(const std::uint32_t* in, std::uint32_t* out) {
    SIMT_SHARED(std::uint16_t, rows, [lanes][8]);
    const unsigned lane = threadIdx.x;
    simt::cp_async_16(&rows[lane][0], in + lane * 4, lane < 16 ? 6 : 16);
    simt::cp_async_commit();
    simt::cp_async_wait<0>();
    __syncthreads();
    std::uint32_t r[4];
    if (transposed)
        simt::ldmatrix_x4_trans(r, &rows[lane][0]);
    else
        simt::ldmatrix_x4(r, &rows[lane][0]);
    for (int m = 0; m < 4; ++m) out[m * lanes + static_cast<int>(lane)] = r[m];
}
template <bool transposed>
Words expect_matrices(const Words& x) {
    std::uint16_t rows[lanes][8];
    std::memcpy(rows, x.data(), sizeof rows);
    for (int row = 0; row < 16; ++row)
        for (int c = 3; c < 8; ++c) rows[row][c] = 0;
    Words out;
    for (int m = 0; m < 4; ++m)
        for (int lane = 0; lane < lanes; ++lane) {
            const int i = lane / 4, j = lane % 4 * 2;
            const auto element = [&](int a, int b) -> std::uint32_t {
                return transposed ? rows[m * 8 + b][a] : rows[m * 8 + a][b];
            };
            out.push_back(element(i, j) | element(i, j + 1) << 16);
        }
    return out;
}

/// Small whole numbers: products and sums are exact, whatever the order. A is 16 x 16, B 16 x 8.
int entry(int i, int k, int salt) {
    return (i * 5 + k * 3 + salt) % 9 - 4;
}
template <typename T>
__global__ void multiply(const std::uint32_t* in, std::uint32_t* out) {
    const unsigned lane = threadIdx.x;
    std::uint32_t a[4];
    float d[4] = {1, 2, 3, 4};
    for (int r = 0; r < 4; ++r) a[r] = in[r * lanes + static_cast<int>(lane)];
    simt::mma_m16n8k16<T>(d, a, in[4 * lanes + lane], in[5 * lanes + lane]);
    for (int r = 0; r < 4; ++r) {
        std::uint32_t bits;
        memcpy(&bits, &d[r], sizeof bits);
        out[r * lanes + static_cast<int>(lane)] = bits;
    }
}
/// The fragments of PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type".
template <typename T>
Words fragments() {
    const auto packed = [](int low, int high) {
        const T pair[2] = {T(static_cast<float>(low)), T(static_cast<float>(high))};
        std::uint32_t bits;
        std::memcpy(&bits, pair, sizeof bits);
        return bits;
    };
    Words in;
    for (int r = 0; r < 4; ++r)
        for (int lane = 0; lane < lanes; ++lane) {
            const int i = lane / 4 + r % 2 * 8, k = lane % 4 * 2 + r / 2 * 8;
            in.push_back(packed(entry(i, k, 1), entry(i, k + 1, 1)));
        }
    for (int r = 0; r < 2; ++r)
        for (int lane = 0; lane < lanes; ++lane) {
            const int k = lane % 4 * 2 + r * 8, j = lane / 4;
            in.push_back(packed(entry(k, j, 2), entry(k + 1, j, 2)));
        }
    return in;
}
Words expect_product(const Words&) {
    Words out;
    for (int r = 0; r < 4; ++r)
        for (int lane = 0; lane < lanes; ++lane) {
            const int i = lane / 4 + r / 2 * 8, j = lane % 4 * 2 + r % 2;
            int sum = r + 1;
            for (int k = 0; k < 16; ++k) sum += entry(i, k, 1) * entry(k, j, 2);
            const float value = static_cast<float>(sum);
            out.emplace_back();
            std::memcpy(&out.back(), &value, sizeof value);
        }
    return out;
}

/// Rounding to f16 and bf16, ties and subnormals among them, and back.
__global__ void conversions(const std::uint32_t* in, std::uint32_t* out) {
    const unsigned lane = threadIdx.x;
    const float x = __uint_as_float(in[lane]);
    out[lane] = __float_as_uint(__half2float(__float2half_rn(x)));
    out[lane + 32] = __float_as_uint(__bfloat162float(__float2bfloat16_rn(x)));
}
Words conversion_inputs() {
    Words in;
    for (int n = 0; n < lanes; ++n)
        in.push_back(n < 8    ? 0x3f800000u + static_cast<std::uint32_t>(n) * 0x800u
                     : n < 16 ? 0x3f800000u + static_cast<std::uint32_t>(n - 8) * 0x4000u
                     : n < 24 ? 0x33000000u + static_cast<std::uint32_t>(n - 16) * 0x00400000u
                              : 0x477fe000u + static_cast<std::uint32_t>(n - 24) * 0x800u);
    return in;
}
/// To a multiple of 2^drop, ties to even; 2^drop is the format's last place at x.
float rounded(float x, int digits, int least_exponent) {
    int exponent = 0;
    (void)frexpf(x, &exponent);
    const int place = (exponent - digits > least_exponent ? exponent - digits : least_exponent);
    return ldexpf(nearbyintf(ldexpf(x, -place)), place);
}
Words expect_conversions(const Words& x) {
    Words out(64);
    for (std::size_t n = 0; n < lanes; ++n) {
        float value;
        std::memcpy(&value, &x[n], sizeof value);
        const float half = rounded(value, 11, -24);
        const float answer = half > 65504.0f ? INFINITY : half, bf16 = rounded(value, 8, -133);
        std::memcpy(&out[n], &answer, sizeof answer);
        std::memcpy(&out[n + 32], &bf16, sizeof bf16);
    }
    return out;
}

bool agree(const char* name, void (*kernel)(const std::uint32_t*, std::uint32_t*), const Words& in,
           const Words& expected) {
    std::uint32_t *device_in = nullptr, *device_out = nullptr;
    Words observed(expected.size());
    const std::size_t in_bytes = in.size() * 4, out_bytes = expected.size() * 4;
    cudaMalloc(&device_in, in_bytes);
    cudaMalloc(&device_out, out_bytes);
    cudaMemcpy(device_in, in.data(), in_bytes, cudaMemcpyHostToDevice);
    const int code = simt::launch(kernel, dim3(1), dim3(lanes), 0, nullptr,
                                  static_cast<const std::uint32_t*>(device_in), device_out);
    cudaMemcpy(observed.data(), device_out, out_bytes, cudaMemcpyDeviceToHost);
    cudaFree(device_in);
    cudaFree(device_out);
    for (std::size_t n = 0; code == 0 && n < expected.size(); ++n)
        if (observed[n] != expected[n]) {
            std::printf("differs  %s at %zu: %08x, defined as %08x\n", name, n, observed[n],
                        expected[n]);
            return false;
        }
    std::printf(code == 0 ? "agrees   %s\n" : "failed   %s\n", name);
    return code == 0;
}

}  // namespace

int main() {
    Words in(lanes * 4);
    for (std::size_t n = 0; n < in.size(); ++n) in[n] = static_cast<std::uint32_t>(n * 2654435761u);
    bool all = agree("shuffles", shuffles, in, expect_shuffles(in));
    all &= agree("votes and barriers that count", votes, in, expect_votes(in));
    all &= agree("cp.async, ldmatrix", copies_and_matrices<false>, in, expect_matrices<false>(in));
    all &=
        agree("cp.async, ldmatrix.trans", copies_and_matrices<true>, in, expect_matrices<true>(in));
    all &= agree("mma.m16n8k16 f16", multiply<__half>, fragments<__half>(), expect_product({}));
    all &= agree("mma.m16n8k16 bf16", multiply<__nv_bfloat16>, fragments<__nv_bfloat16>(),
                 expect_product({}));
    all &= agree("rounding to f16 and bf16", conversions, conversion_inputs(),
                 expect_conversions(conversion_inputs()));
    return all ? 0 : 1;
}
