// cp.async, ldmatrix, mma.

#include <cstring>

#include "kernels/cuda/conformance.hpp"
#include "kernels/simt/simt.hpp"

namespace attest::cuda {
namespace {

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

/// Two groups: the first is there when one may still be on its way, and both in the end.
__global__ void copy_groups(const std::uint32_t* in, std::uint32_t* out) {
    SIMT_SHARED(std::uint32_t, cells, [2][lanes][4]);
    const unsigned lane = threadIdx.x;
    for (int group = 0; group < 2; ++group) {
        simt::cp_async_16(&cells[group][lane][0], in + lane * 4, group == 0 ? 16 : 0);
        simt::cp_async_commit();
    }
    simt::cp_async_wait<1>();
    __syncthreads();
    for (unsigned w = 0; w < 4; ++w) out[w * lanes + lane] = cells[0][lane][w];
    simt::cp_async_wait<0>();
    __syncthreads();
    for (unsigned w = 0; w < 4; ++w) out[(w + 4) * lanes + lane] = cells[1][lane][w];
}
Words expect_copy_groups(const Words& x) {
    Words out(8 * lanes);
    for (std::size_t lane = 0; lane < lanes; ++lane)
        for (std::size_t w = 0; w < 4; ++w) out[w * lanes + lane] = x[lane * 4 + w];
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
Words expect_product(int depth) {
    Words out;
    for (int r = 0; r < 4; ++r)
        for (int lane = 0; lane < lanes; ++lane) {
            const int i = lane / 4 + r / 2 * 8, j = lane % 4 * 2 + r % 2;
            int sum = r + 1;
            for (int k = 0; k < depth; ++k) sum += entry(i, k, 1) * entry(k, j, 2);
            const float value = static_cast<float>(sum);
            out.emplace_back();
            std::memcpy(&out.back(), &value, sizeof value);
        }
    return out;
}

/// tf32, 16 x 8 by 8 x 8: one element a word, "Matrix fragments for mma.m16n8k8".
__global__ void multiply_tf32(const std::uint32_t* in, std::uint32_t* out) {
    const unsigned lane = threadIdx.x;
    std::uint32_t a[4];
    float d[4] = {1, 2, 3, 4};
    for (int r = 0; r < 4; ++r) a[r] = in[r * lanes + static_cast<int>(lane)];
    simt::mma_m16n8k8_tf32(d, a, in[4 * lanes + lane], in[5 * lanes + lane]);
    for (int r = 0; r < 4; ++r) out[r * lanes + static_cast<int>(lane)] = __float_as_uint(d[r]);
}
Words fragments_tf32() {
    const auto word = [](int value) {
        const float real = static_cast<float>(value);
        std::uint32_t bits;
        std::memcpy(&bits, &real, sizeof bits);
        return bits;
    };
    Words in;
    for (int r = 0; r < 4; ++r)
        for (int lane = 0; lane < lanes; ++lane)
            in.push_back(word(entry(lane / 4 + r % 2 * 8, lane % 4 + r / 2 * 4, 1)));
    for (int r = 0; r < 2; ++r)
        for (int lane = 0; lane < lanes; ++lane)
            in.push_back(word(entry(lane % 4 + r * 4, lane / 4, 2)));
    return in;
}

}  // namespace

std::vector<WarpQuestion> questions_of_tensor_cores() {
    const Words in = scrambled(4 * lanes);
    return {{"cp.async, ldmatrix", copies_and_matrices<false>, in, expect_matrices<false>(in)},
            {"cp.async, ldmatrix.trans", copies_and_matrices<true>, in, expect_matrices<true>(in)},
            {"cp.async in two groups", copy_groups, in, expect_copy_groups(in)},
            {"mma.m16n8k16 f16", multiply<__half>, fragments<__half>(), expect_product(16)},
            {"mma.m16n8k16 bf16", multiply<__nv_bfloat16>, fragments<__nv_bfloat16>(),
             expect_product(16)},
            {"mma.m16n8k8 tf32", multiply_tf32, fragments_tf32(), expect_product(8)}};
}

}  // namespace attest::cuda
