#pragma once
// One call of the ABI, read into C++: tensors as strided operands, sequences as segments, and
// which keys a query may reach. All the CPU kernels stand on this; none of it is shared with the
// reference.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/element.hpp"
#include "kernels/interface/attest_kernel.h"

namespace attest::cpu {

/// A tensor of the call: logical axes, strides in elements, 64-bit throughout. An axis of extent 1
/// has stride 0.
struct Operand {
    std::byte* data = nullptr;
    Format format = Format::f32;
    std::int64_t element_bytes = 4;
    std::array<std::int64_t, 4> shape{1, 1, 1, 1};
    std::array<std::int64_t, 4> stride{};

    explicit operator bool() const noexcept { return data != nullptr; }
    std::byte* at(std::int64_t a, std::int64_t b = 0, std::int64_t c = 0,
                  std::int64_t d = 0) const noexcept {
        return data +
               (a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3]) * element_bytes;
    }
    std::int64_t integer(std::int64_t a, std::int64_t b = 0) const noexcept;  ///< int32 element
    float real(std::int64_t a) const noexcept;                                ///< f32 element
};

struct Call {
    attest_problem problem{};
    Operand q, k, v, o, lse, mask;
    Operand lens_q, lens_kv, cu_seqlens_q, cu_seqlens_kv, block_table, positions, alibi_slopes,
        sinks;
    Operand d_o, d_lse;                                ///< given to backward; dLSE absent: 0
    Operand d_q, d_k, d_v, d_mask, d_sinks, d_slopes;  ///< of backward; absent: not wanted
    Operand dropout_keep;                              ///< of forward, where it is wanted
    std::int64_t group = 1;                            ///< query heads a key/value head
    Format format_q = Format::f32;
    bool wide = false;  ///< f64 inputs: accumulate in double

    bool ring() const noexcept { return (problem.flags & ATTEST_FLAG_RING) != 0; }

    /// First channel of key (or value) j of a sequence, in pages where the cache is paged, in its
    /// slot of a ring.
    const std::byte* row(const Operand& operand, std::int64_t batch, std::int64_t head,
                         std::int64_t j) const noexcept {
        if (ring()) return operand.at(batch, head, j % operand.shape[2]);
        if (problem.page_size == 0) return operand.at(batch, head, j);
        const std::int64_t page = block_table.integer(batch, j / problem.page_size);
        return operand.at(page, head, j % problem.page_size);
    }
};

/// Queries [query0, query0 + queries) and keys [key0, key0 + keys) that see nothing outside: a
/// sequence of the batch, or a document of a packed one. Query i stands over key i + offset.
struct Segment {
    std::int64_t batch = 0, query0 = 0, queries = 0, key0 = 0, keys = 0, offset = 0;
};

/// Keys [first, last) of a segment; empty where last <= first.
struct SegmentKeys {
    std::int64_t first = 0, last = 0;
};

/// False, with a text in `error`, where a tensor the problem needs is absent or of a strange type.
bool read_call(const attest_call* from, Call& call, char* error, std::size_t error_cap) noexcept;

std::int64_t segment_count(const Call& call) noexcept;
Segment segment_at(const Call& call, std::int64_t index) noexcept;

/// What causal order, window and length leave of a segment's keys to its query i:
/// j <= i + offset where causal, i + offset - left <= j <= i + offset + right within a window.
inline SegmentKeys reach(const attest_problem& problem, const Segment& segment,
                         std::int64_t i) noexcept {
    const std::int64_t diagonal = i + segment.offset;
    SegmentKeys keys{0, segment.keys};
    if (problem.causal != 0) keys.last = std::min(keys.last, diagonal + 1);
    if (problem.window_left >= 0) keys.first = std::max(keys.first, diagonal - problem.window_left);
    if (problem.window_right >= 0 && problem.window_right < keys.last - diagonal) {
        keys.last = diagonal + problem.window_right + 1;  // compared so that nothing overflows
    }
    return keys;
}

/// Rows that are no queries (at or past lens_q): zeros, with LSE -inf.
void write_absent_rows(const Call& call) noexcept;
template <typename Real>
void write_row(const Call& call, std::int64_t batch, std::int64_t head, std::int64_t i,
               const Real* output, Real lse) noexcept;

/// Hands out parts of the caller's workspace. With no memory it only counts: the same code asks for
/// the workspace and uses it.
class Scratch {
public:
    Scratch() = default;
    Scratch(void* memory, std::size_t bytes) noexcept;
    template <typename T>
    T* take(std::int64_t count) noexcept {
        return static_cast<T*>(take_bytes(static_cast<std::size_t>(count) * sizeof(T)));
    }
    std::size_t wanted() const noexcept { return used_ + alignment; }
    bool enough() const noexcept { return used_ <= bytes_; }

private:
    static constexpr std::size_t alignment = 64;
    void* take_bytes(std::size_t bytes) noexcept;
    std::byte* base_ = nullptr;
    std::size_t bytes_ = 0, used_ = 0;
};

}  // namespace attest::cpu
