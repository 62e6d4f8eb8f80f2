#include "kernels/simt/tensor_core.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/simt/check.hpp"
#include "kernels/simt/switch.hpp"

namespace simt {
namespace {

constexpr int copy_width = 16;

void land(PendingCopy& copy) {
    if (copy.landed) return;
    copy.landed = true;
    if (checker() != nullptr) {
        const auto bytes = static_cast<std::size_t>(copy.bytes);
        if (bytes != 0) checker()->access(copy.source, bytes, false, false, copy.pc);
        checker()->async_done(copy.destination, copy_width, copy.pc);
    }
    auto* to = static_cast<unsigned char*>(copy.destination);
    std::memcpy(to, copy.source, static_cast<std::size_t>(copy.bytes));
    std::memset(to + copy.bytes, 0, static_cast<std::size_t>(copy_width - copy.bytes));
}

bool misaligned(const void* p) {
    return (reinterpret_cast<std::uintptr_t>(p) & 15u) != 0;
}

void load_matrices(std::uint32_t (&r)[4], const void* row, bool transposed,
                   const Location& location, const void* pc) {
    const InRuntime in_runtime;
    Block* block = current_block();
    if (misaligned(row))
        block->report("misaligned", "an ldmatrix row is not 16-byte aligned at " + place(location));
    if (checker() != nullptr) checker()->access(row, 16, false, false, pc);
    block->collect(~0u, Collective::ldmatrix, row, &r, location, [transposed](OpenCollective& c) {
        for (int m = 0; m < 4; ++m) {
            std::uint16_t matrix[8][8];
            for (int i = 0; i < 8; ++i) std::memcpy(matrix[i], c.in[m * 8 + i], sizeof matrix[i]);
            for (int lane = 0; lane < 32; ++lane) {
                const int a = lane / 4, b = lane % 4 * 2;
                const std::uint32_t low = transposed ? matrix[b][a] : matrix[a][b];
                const std::uint32_t high = transposed ? matrix[b + 1][a] : matrix[a][b + 1];
                (*static_cast<std::uint32_t(*)[4]>(c.out[lane]))[m] = low | high << 16;
            }
        }
    });
}

const std::vector<float>& half_table() {
    static const std::vector<float> table = [] {
        std::vector<float> values(65536);
        for (unsigned i = 0; i < 65536; ++i)
            values[i] = half_to_float(static_cast<std::uint16_t>(i));
        return values;
    }();
    return table;
}

struct MmaOperand {
    std::uint32_t a[4], b[2];
    float c[4];
};

template <int K>
void multiply(float (&a)[16][K], float (&b)[K][8], float (&d)[16][8]) {
    for (int i = 0; i < 16; ++i) {
        float row[8];
        std::copy(d[i], d[i] + 8, row);
        for (int k = 0; k < K; ++k)
            for (int j = 0; j < 8; ++j) row[j] += a[i][k] * b[k][j];
        std::copy(row, row + 8, d[i]);
    }
}

/// Lane l holds rows g and g + 8 (g = l / 4), columns q and q + 1 (q = 2 (l mod 4)) of the
/// accumulator.
void gather_accumulator(const OpenCollective& c, float (&d)[16][8]) {
    for (int lane = 0; lane < 32; ++lane) {
        const auto& in = *static_cast<const MmaOperand*>(c.in[lane]);
        for (int r = 0; r < 4; ++r) d[lane / 4 + r / 2 * 8][lane % 4 * 2 + r % 2] = in.c[r];
    }
}

void scatter_accumulator(OpenCollective& c, const float (&d)[16][8]) {
    for (int lane = 0; lane < 32; ++lane) {
        auto* out = static_cast<float*>(c.out[lane]);
        for (int r = 0; r < 4; ++r) out[r] = d[lane / 4 + r / 2 * 8][lane % 4 * 2 + r % 2];
    }
}

template <typename Convert>
void complete_16(OpenCollective& c, Convert convert) {
    alignas(64) float a[16][16], b[16][8], d[16][8];
    for (int lane = 0; lane < 32; ++lane) {
        const auto& in = *static_cast<const MmaOperand*>(c.in[lane]);
        const int g = lane / 4, q = lane % 4 * 2;
        for (int r = 0; r < 4; ++r)
            for (int e = 0; e < 2; ++e)
                a[g + r % 2 * 8][q + e + r / 2 * 8] =
                    convert(static_cast<std::uint16_t>(in.a[r] >> (16 * e)));
        for (int r = 0; r < 2; ++r)
            for (int e = 0; e < 2; ++e)
                b[q + e + r * 8][g] = convert(static_cast<std::uint16_t>(in.b[r] >> (16 * e)));
    }
    gather_accumulator(c, d);
    multiply<16>(a, b, d);
    scatter_accumulator(c, d);
}

void complete_8_tf32(OpenCollective& c) {
    alignas(64) float a[16][8], b[8][8], d[16][8];
    constexpr std::uint32_t kept =
        0xffffe000u;  // 10 fraction bits: the tensor core ignores the rest
    for (int lane = 0; lane < 32; ++lane) {
        const auto& in = *static_cast<const MmaOperand*>(c.in[lane]);
        const int g = lane / 4, q = lane % 4;
        for (int r = 0; r < 4; ++r) a[g + r % 2 * 8][q + r / 2 * 4] = bits_float(in.a[r] & kept);
        for (int r = 0; r < 2; ++r) b[q + r * 4][g] = bits_float(in.b[r] & kept);
    }
    gather_accumulator(c, d);
    multiply<8>(a, b, d);
    scatter_accumulator(c, d);
}

}  // namespace

__attribute__((noinline)) void cp_async_16(void* destination, const void* source, int bytes) {
    const InRuntime in_runtime;
    Block* block = current_block();
    PendingCopy copy{destination, source, bytes, copy_width, false, __builtin_return_address(0)};
    if (misaligned(destination) || (bytes != 0 && misaligned(source)))
        block->report("misaligned", "a cp.async of 16 bytes at a misaligned address");
    if (checker() != nullptr) checker()->async_issue(destination, copy_width, copy.pc);
    const AsyncCopy when = block->options().async_copy;
    const bool eager =
        when == AsyncCopy::eager || (when == AsyncCopy::random && (block->random()() & 1u) != 0);
    if (eager && checker() == nullptr) land(copy);
    block->self().open_copies.push_back(copy);
}

void cp_async_commit() {
    const InRuntime in_runtime;
    BlockThread& thread = current_block()->self();
    thread.committed_copies.push_back(std::move(thread.open_copies));
    thread.open_copies.clear();
}

void cp_async_wait_groups(std::size_t groups_left) {
    const InRuntime in_runtime;
    auto& groups = current_block()->self().committed_copies;
    for (; groups.size() > groups_left; groups.pop_front())
        for (PendingCopy& copy : groups.front()) land(copy);
}

__attribute__((noinline)) void ldmatrix_x4(std::uint32_t (&r)[4], const void* row, Location at) {
    load_matrices(r, row, false, at, __builtin_return_address(0));
}

__attribute__((noinline)) void ldmatrix_x4_trans(std::uint32_t (&r)[4], const void* row,
                                                 Location at) {
    load_matrices(r, row, true, at, __builtin_return_address(0));
}

void mma_16x8x16(MmaType type, float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                 std::uint32_t b1, const Location& location) {
    const MmaOperand in{{a[0], a[1], a[2], a[3]}, {b0, b1}, {d[0], d[1], d[2], d[3]}};
    current_block()->collect(~0u, Collective::mma, &in, &d[0], location, [type](OpenCollective& c) {
        if (type == MmaType::bf16)
            return complete_16(c, [](std::uint16_t bits) { return bfloat16_to_float(bits); });
        const float* table = half_table().data();
        complete_16(c, [table](std::uint16_t bits) { return table[bits]; });
    });
}

void mma_16x8x8_tf32(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                     const Location& location) {
    const MmaOperand in{{a[0], a[1], a[2], a[3]}, {b0, b1}, {d[0], d[1], d[2], d[3]}};
    current_block()->collect(~0u, Collective::mma, &in, &d[0], location, complete_8_tf32);
}

}  // namespace simt
