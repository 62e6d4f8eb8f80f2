// Conversions, arithmetic of f16 and bf16, scalar intrinsics: those that round correctly on numbers
// of any kind, those that approximate where the PTX manual gives their value.

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cuda/conformance.hpp"
#include "kernels/simt/simt.hpp"

namespace attest::cuda {
namespace {

std::uint32_t bits(float x) {
    return std::bit_cast<std::uint32_t>(x);
}
float real(std::uint32_t x) {
    return std::bit_cast<float>(x);
}

/// The nearest multiple of the format's last place at x, ties to even. Sums, products and quotients
/// of f16 or bf16 numbers are given in double, which is exact or wide enough for one rounding.
double rounded(double x, int digits, int least_exponent) {
    int exponent = 0;
    (void)std::frexp(x, &exponent);
    const int place = std::max(exponent - digits, least_exponent);
    return std::ldexp(std::nearbyint(std::ldexp(x, -place)), place);
}
struct HalfNumber {
    static std::uint32_t nearest(double x) {
        const double y = rounded(x, 11, -24);
        return bits(std::abs(y) > 65504 ? std::copysign(INFINITY, static_cast<float>(x))
                                        : static_cast<float>(y));
    }
};
struct Bfloat16 {
    static std::uint32_t nearest(double x) { return bits(static_cast<float>(rounded(x, 8, -133))); }
};

__global__ void conversions(const std::uint32_t* in, std::uint32_t* out) {
    const unsigned lane = threadIdx.x;
    const float x = __uint_as_float(in[lane]), y = __int_as_float(static_cast<int>(in[lane ^ 1u]));
    const __half h = __float2half_rn(x);
    const __nv_bfloat16 b = __float2bfloat16_rn(x);
    const __half2 pair = __floats2half2_rn(x, y), same = __halves2half2(h, __float2half(y));
    const __nv_bfloat162 wide = __floats2bfloat162_rn(x, y),
                         joined = __halves2bfloat162(b, __float2bfloat16(y));
    const float answers[] = {__half2float(h),
                             __half2float(__low2half(pair)),
                             __half2float(__high2half(pair)),
                             __half2float(__low2half(same)),
                             __half2float(__high2half(same)),
                             __bfloat162float(b),
                             __bfloat162float(wide.x),
                             __bfloat162float(wide.y),
                             __bfloat162float(joined.x),
                             __bfloat162float(joined.y)};
    for (int n = 0; n < 10; ++n)
        out[n * lanes + static_cast<int>(lane)] = __float_as_uint(answers[n]);
    out[10 * lanes + static_cast<int>(lane)] = static_cast<std::uint32_t>(__float_as_int(x));
}
Words conversion_inputs() {
    // Ties of f16 and of bf16, then where f16 has subnormals, then where it ends.
    Words in;
    for (std::uint32_t n = 0; n < lanes; ++n)
        in.push_back(n < 8    ? 0x3f800000u + n * 0x800u
                     : n < 16 ? 0x3f800000u + (n - 8) * 0x4000u
                     : n < 24 ? 0x33000000u + (n - 16) * 0x00400000u
                              : 0x477fe000u + (n - 24) * 0x800u);
    return in;
}
Words expect_conversions(const Words& in) {
    Words out(11 * lanes);
    for (std::size_t lane = 0; lane < lanes; ++lane)
        for (std::size_t n = 0; n < 11; ++n) {
            const bool second = n == 2 || n == 4 || n == 7 || n == 9;
            const std::uint32_t word = in[second ? lane ^ 1 : lane];
            out[n * lanes + lane] = n == 10  ? word
                                    : n >= 5 ? Bfloat16::nearest(static_cast<double>(real(word)))
                                             : HalfNumber::nearest(static_cast<double>(real(word)));
        }
    return out;
}

__global__ void half_arithmetic(const std::uint32_t* in, std::uint32_t* out) {
    const unsigned lane = threadIdx.x;
    const __half a = __float2half_rn(__uint_as_float(in[lane])),
                 b = __float2half_rn(__uint_as_float(in[lane + 32]));
    const __half answers[] = {__hadd(a, b), __hsub(a, b), __hmul(a, b), __hdiv(a, b), __hmax(a, b)};
    for (int n = 0; n < 5; ++n)
        out[n * lanes + static_cast<int>(lane)] = __float_as_uint(__half2float(answers[n]));
    out[5 * lanes + static_cast<int>(lane)] = __hgt(a, b) ? 1u : 0u;
}
__global__ void bfloat16_arithmetic(const std::uint32_t* in, std::uint32_t* out) {
    const unsigned lane = threadIdx.x;
    const __nv_bfloat16 a = __float2bfloat16_rn(__uint_as_float(in[lane])),
                        b = __float2bfloat16_rn(__uint_as_float(in[lane + 32]));
    const __nv_bfloat16 answers[] = {__hadd(a, b), __hmul(a, b), __hmax(a, b)};
    for (int n = 0; n < 3; ++n)
        out[n * lanes + static_cast<int>(lane)] = __float_as_uint(__bfloat162float(answers[n]));
}
/// Between 2^-3 and 2^3, of both signs: no result leaves the normal numbers but by cancellation.
Words moderate(std::size_t count) {
    Words words = scrambled(count + 1);
    words.erase(words.begin());
    for (std::uint32_t& word : words) word = (word & 0x807fffffu) | (124u + word % 7u) << 23;
    return words;
}
template <typename Format>
Words expect_arithmetic(const Words& in, bool all) {
    Words out;
    const auto ask = [&](auto result) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const auto read = [&](std::size_t at) {
                return static_cast<double>(
                    real(Format::nearest(static_cast<double>(real(in[at])))));
            };
            out.push_back(Format::nearest(result(read(lane), read(lane + 32))));
        }
    };
    ask([](double a, double b) { return a + b; });
    if (all) ask([](double a, double b) { return a - b; });
    ask([](double a, double b) { return a * b; });
    if (all) ask([](double a, double b) { return a / b; });
    ask([](double a, double b) { return std::max(a, b); });
    if (!all) return out;
    ask([](double a, double b) { return a > b ? 1.0 : 0.0; });
    std::for_each(out.end() - lanes, out.end(), [](auto& word) { word = word != 0 ? 1 : 0; });
    return out;
}

__global__ void rounded_intrinsics(const std::uint32_t* in, std::uint32_t* out) {
    const unsigned lane = threadIdx.x;
    const float a = __uint_as_float(__ldg(in + lane)), b = __uint_as_float(in[lane + 32]);
    const float answers[] = {__fadd_rn(a, b),
                             __fmul_rn(a, b),
                             __fmaf_rn(a, b, 1.5f),
                             __frcp_rn(a),
                             __fsqrt_rn(fabsf(a)),
                             __saturatef(a),
                             max(a, b),
                             min(a, b)};
    for (int n = 0; n < 8; ++n)
        out[n * lanes + static_cast<int>(lane)] = __float_as_uint(answers[n]);
    const int whole[] = {__float2int_rn(a * 2.0f), __float2int_rd(a), __popc(in[lane]),
                         __clz(static_cast<int>(in[lane] >> lane)),
                         __ffs(static_cast<int>(in[lane] << lane))};
    for (int n = 0; n < 5; ++n)
        out[(n + 8) * lanes + static_cast<int>(lane)] = static_cast<std::uint32_t>(whole[n]);
}
Words expect_rounded_intrinsics(const Words& in) {
    Words out(13 * lanes);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        const float a = real(in[lane]), b = real(in[lane + 32]);
        const double x = static_cast<double>(a), y = static_cast<double>(b);
        const std::uint32_t shifted = in[lane] >> lane, lifted = in[lane] << lane;
        const auto word = [](double whole) {
            return static_cast<std::uint32_t>(static_cast<int>(whole));
        };
        // f32 results by way of double, which is wide enough; the fused one is exact there.
        const std::uint32_t answers[] = {
            bits(static_cast<float>(x + y)),
            bits(static_cast<float>(x * y)),
            bits(std::fma(a, b, 1.5f)),
            bits(static_cast<float>(1 / x)),
            bits(static_cast<float>(std::sqrt(std::abs(x)))),
            bits(a < 0 ? 0.0f : std::min(a, 1.0f)),
            bits(std::max(a, b)),
            bits(std::min(a, b)),
            word(std::nearbyint(2 * x)),
            word(std::floor(x)),
            static_cast<std::uint32_t>(std::popcount(in[lane])),
            static_cast<std::uint32_t>(std::countl_zero(shifted)),
            lifted == 0 ? 0u : static_cast<std::uint32_t>(std::countr_zero(lifted) + 1)};
        for (std::uint32_t n = 0; n < 13; ++n) out[n * lanes + lane] = answers[n];
    }
    return out;
}

__global__ void approximate_intrinsics(const std::uint32_t* in, std::uint32_t* out) {
    const float zero = __uint_as_float(in[0]), one = __uint_as_float(in[1]),
                infinity = __uint_as_float(in[2]);
    const float answers[] = {__expf(zero),     __expf(-infinity), __logf(one),
                             __logf(infinity), __log2f(one),      __exp10f(zero),
                             __powf(one, one), __sinf(zero),      __cosf(zero),
                             rsqrtf(zero),     rsqrtf(infinity),  __fdividef(zero, one)};
    for (int n = 0; n < 12; ++n)
        out[n * lanes + static_cast<int>(threadIdx.x)] = __float_as_uint(answers[n]);
}
Words expect_approximate_intrinsics() {
    Words out;
    for (const float x :
         {1.0f, 0.0f, 0.0f, INFINITY, 0.0f, 1.0f, 1.0f, 0.0f, 1.0f, INFINITY, 0.0f, 0.0f})
        out.insert(out.end(), lanes, bits(x));
    return out;
}

}  // namespace

std::vector<WarpQuestion> questions_of_numbers() {
    const Words converted = conversion_inputs(), in = moderate(2 * lanes);
    return {{"rounding to f16 and bf16", conversions, converted, expect_conversions(converted)},
            {"f16 arithmetic", half_arithmetic, in, expect_arithmetic<HalfNumber>(in, true)},
            {"bf16 arithmetic", bfloat16_arithmetic, in, expect_arithmetic<Bfloat16>(in, false)},
            {"intrinsics that round", rounded_intrinsics, in, expect_rounded_intrinsics(in)},
            {"intrinsics that approximate, where exact",
             approximate_intrinsics,
             {bits(0.0f), bits(1.0f), bits(INFINITY)},
             expect_approximate_intrinsics()}};
}

}  // namespace attest::cuda
