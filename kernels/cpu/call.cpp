#include "kernels/cpu/call.hpp"

#include <cstdio>
#include <cstring>
#include <limits>

namespace attest::cpu {
namespace {

bool fill(Operand& operand, const DLTensor* tensor, const char* name, char* error,
          std::size_t error_cap) noexcept {
    if (tensor->ndim > 4 || tensor->dtype.lanes != 1) {
        std::snprintf(error, error_cap, "%s: at most four axes of single elements are read", name);
        return false;
    }
    operand.data = static_cast<std::byte*>(tensor->data) + tensor->byte_offset;
    operand.element_bytes = tensor->dtype.bits / 8;
    for (int axis = 0; axis < tensor->ndim; ++axis) {
        const auto a = static_cast<std::size_t>(axis);
        operand.shape[a] = tensor->shape[axis];
        operand.stride[a] = tensor->shape[axis] == 1 ? 0 : tensor->strides[axis];
    }
    const auto [code, bits, lanes] = tensor->dtype;
    if (code == ATTEST_DL_FLOAT) {
        operand.format = bits == 64 ? Format::f64 : bits == 32 ? Format::f32 : Format::f16;
    } else if (code == ATTEST_DL_BFLOAT) {
        operand.format = Format::bf16;
    }
    return true;
}

std::int64_t clamp_length(std::int64_t length, std::int64_t limit) noexcept {
    return std::clamp<std::int64_t>(length, 0, limit);
}

std::int64_t queries_end(const Call& call, std::int64_t batch) noexcept {
    const attest_problem& p = call.problem;
    if ((p.flags & ATTEST_FLAG_PACKED) != 0) {
        return clamp_length(call.cu_seqlens_q.integer(call.cu_seqlens_q.shape[0] - 1), p.len_q);
    }
    return call.lens_q ? clamp_length(call.lens_q.integer(batch), p.len_q) : p.len_q;
}

/// Query i of a sequence stands at the position of its first query plus i.
bool consecutive(const Call& call) noexcept {
    for (std::int64_t b = 0; b < call.problem.batch; ++b) {
        for (std::int64_t i = 1; i < queries_end(call, b); ++i) {
            if (call.positions.integer(b, i) != call.positions.integer(b) + i) return false;
        }
    }
    return true;
}

}  // namespace

std::int64_t Operand::integer(std::int64_t a, std::int64_t b) const noexcept {
    std::int32_t value = 0;
    std::memcpy(&value, at(a, b), sizeof value);
    return value;
}

float Operand::real(std::int64_t a) const noexcept {
    float value = 0;
    std::memcpy(&value, at(a), sizeof value);
    return value;
}

bool read_call(const attest_call* from, Call& call, char* error, std::size_t error_cap) noexcept {
    if (from->struct_size < sizeof(attest_call) ||
        from->problem->struct_size < sizeof(attest_problem)) {
        std::snprintf(error, error_cap, "the caller's structs are older than this kernel");
        return false;
    }
    call.problem = *from->problem;
    const attest_problem& p = call.problem;
    struct Wanted {
        int role;
        Operand* operand;
        bool needed;
    };
    const bool packed = (p.flags & ATTEST_FLAG_PACKED) != 0;
    const Wanted wanted[] = {
        {ATTEST_ROLE_Q, &call.q, true},
        {ATTEST_ROLE_K, &call.k, true},
        {ATTEST_ROLE_V, &call.v, true},
        {ATTEST_ROLE_O, &call.o, true},
        {ATTEST_ROLE_LSE, &call.lse, p.want_lse != 0},
        {ATTEST_ROLE_MASK, &call.mask, p.mask_kind != ATTEST_MASK_NONE},
        {ATTEST_ROLE_LENS_Q, &call.lens_q, false},
        {ATTEST_ROLE_LENS_KV, &call.lens_kv, false},
        {ATTEST_ROLE_CU_SEQLENS_Q, &call.cu_seqlens_q, packed},
        {ATTEST_ROLE_CU_SEQLENS_KV, &call.cu_seqlens_kv, packed},
        {ATTEST_ROLE_BLOCK_TABLE, &call.block_table, p.page_size != 0},
        {ATTEST_ROLE_POSITIONS, &call.positions, false},
        {ATTEST_ROLE_ALIBI_SLOPES, &call.alibi_slopes, p.alibi != 0},
        {ATTEST_ROLE_SINKS, &call.sinks, p.sink != 0},
        {ATTEST_ROLE_D_O, &call.d_o, false},
        {ATTEST_ROLE_D_LSE, &call.d_lse, false},
        {ATTEST_ROLE_D_Q, &call.d_q, false},
        {ATTEST_ROLE_D_K, &call.d_k, false},
        {ATTEST_ROLE_D_V, &call.d_v, false},
        {ATTEST_ROLE_D_MASK, &call.d_mask, false},
        {ATTEST_ROLE_D_SINKS, &call.d_sinks, false},
        {ATTEST_ROLE_D_SLOPES, &call.d_slopes, false},
        {ATTEST_ROLE_DROPOUT_KEEP, &call.dropout_keep, false},
    };
    for (const Wanted& w : wanted) {
        const char* name = attest_role_name(w.role);
        const DLTensor* tensor = from->tensor[w.role];
        if (tensor == nullptr && w.needed) {
            std::snprintf(error, error_cap, "%s is needed and absent", name);
            return false;
        }
        if (tensor != nullptr && !fill(*w.operand, tensor, name, error, error_cap)) return false;
    }
    call.group = p.heads_kv > 0 ? p.heads_q / p.heads_kv : 0;
    call.format_q = static_cast<Format>(p.format_q);
    call.wide = p.format_q == ATTEST_F64 || p.format_kv == ATTEST_F64;
    if (call.positions && !consecutive(call)) {
        std::snprintf(error, error_cap, "positions of a sequence that do not rise by one");
        return false;
    }
    return true;
}

std::int64_t segment_count(const Call& call) noexcept {
    if ((call.problem.flags & ATTEST_FLAG_PACKED) != 0) return call.cu_seqlens_q.shape[0] - 1;
    return call.problem.batch;
}

Segment segment_at(const Call& call, std::int64_t index) noexcept {
    const attest_problem& p = call.problem;
    Segment s;
    if ((p.flags & ATTEST_FLAG_PACKED) != 0) {
        s.query0 = clamp_length(call.cu_seqlens_q.integer(index), p.len_q);
        s.key0 = clamp_length(call.cu_seqlens_kv.integer(index), p.len_kv);
        s.queries = clamp_length(call.cu_seqlens_q.integer(index + 1), p.len_q) - s.query0;
        s.keys = clamp_length(call.cu_seqlens_kv.integer(index + 1), p.len_kv) - s.key0;
    } else {
        s.batch = index;
        s.queries = queries_end(call, index);
        s.keys = call.lens_kv ? clamp_length(call.lens_kv.integer(index), p.len_kv) : p.len_kv;
    }
    s.offset = s.keys - s.queries;
    if (call.positions && s.queries > 0) s.offset = call.positions.integer(s.batch);
    return s;
}

template <typename Real>
void write_row(const Call& call, std::int64_t batch, std::int64_t head, std::int64_t i,
               const Real* output, Real lse) noexcept {
    store_row(call.o.at(batch, head, i), call.o.format, call.o.stride[3], call.problem.dim_v,
              output);
    if (call.lse) store_row(call.lse.at(batch, head, i), call.lse.format, 1, 1, &lse);
}
template void write_row<float>(const Call&, std::int64_t, std::int64_t, std::int64_t, const float*,
                               float) noexcept;
template void write_row<double>(const Call&, std::int64_t, std::int64_t, std::int64_t,
                                const double*, double) noexcept;

void write_absent_rows(const Call& call) noexcept {
    const attest_problem& p = call.problem;
    const float zero = 0;
    const float minus_infinity = -std::numeric_limits<float>::infinity();
    for (std::int64_t b = 0; b < p.batch; ++b) {
        for (std::int64_t h = 0; h < p.heads_q; ++h) {
            for (std::int64_t i = queries_end(call, b); i < p.len_q; ++i) {
                for (std::int64_t c = 0; c < p.dim_v; ++c) {
                    store_row(call.o.at(b, h, i, c), call.o.format, 1, 1, &zero);
                }
                if (!call.lse) continue;
                store_row(call.lse.at(b, h, i), call.lse.format, 1, 1, &minus_infinity);
            }
        }
    }
}

Scratch::Scratch(void* memory, std::size_t bytes) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    const std::size_t skip = (alignment - address % alignment) % alignment;
    if (memory == nullptr || bytes < skip) return;
    base_ = static_cast<std::byte*>(memory) + skip;
    bytes_ = bytes - skip;
}

void* Scratch::take_bytes(std::size_t bytes) noexcept {
    const std::size_t start = used_;
    used_ += (bytes + alignment - 1) / alignment * alignment;
    return base_ != nullptr ? base_ + start : nullptr;
}

}  // namespace attest::cpu
