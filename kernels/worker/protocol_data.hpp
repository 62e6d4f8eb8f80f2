#pragma once
// What frames carry: a problem and the tensors of a call, in the bytes that PROTOCOL.md fixes.

#include <array>
#include <cstddef>
#include <cstdint>

namespace attest::protocol {

/// attest_problem with its padding taken out.
struct Problem {
    std::int64_t batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v;
    std::int32_t format_q, format_kv, format_o, causal;
    double scale;
    std::int64_t window_left, window_right;
    double softcap;
    std::int32_t mask_kind, rope_kind;
    double rope_base;
    std::int64_t rope_dims, rope_offset;
    std::int32_t alibi, sink;
    double dropout_p;
    std::uint64_t dropout_seed;
    std::int64_t page_size, cache_len, splits;
    std::int32_t want_lse, want_grad;
    std::uint32_t flags, call_number;
};

enum class Access : std::uint8_t { read = 1, write = 2 };

struct Tensor {
    std::uint16_t role = 0;
    std::uint8_t code = 0, bits = 0;  // DLPack's
    Access access = Access::read;
    std::uint8_t ndim = 0;
    std::uint16_t reserved = 0;
    std::uint64_t data = 0;                    // of the first element, from the memory's start
    std::uint64_t pages = 0, pages_bytes = 0;  // the whole pages it lies in
    std::array<std::int64_t, 4> shape{};       // ndim of them are used
    std::array<std::int64_t, 4> stride{};      // in elements
};

static_assert(sizeof(Problem) == 200 && offsetof(Problem, scale) == 72);
static_assert(offsetof(Problem, rope_base) == 112 && offsetof(Problem, page_size) == 160);
static_assert(offsetof(Problem, flags) == 192);
static_assert(sizeof(Tensor) == 96 && offsetof(Tensor, shape) == 32);

}  // namespace attest::protocol
